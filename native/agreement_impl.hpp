// Members agree on some weights (consensus.hpp); part of vector_code_impl.hpp.
//
//   w, v: of a member, with z in the place of the v of who takes no part; λ(w - z) moves v
//   U = Σ ρ (w - 2z + v),   z' = Σ ρ v' / (1 + Σ ρ),   w' = 2z' - v' + (w - 2z + v)
#pragma once

template <class T>
void agree(Agreement<T>& row) {
  const Vec<T> none = {};
  // In the place of a v of zero, which would say that the member takes no part.
  const Vec<T> tiny = none + std::numeric_limits<T>::min();
  Vec<T> conjugate = none, ended = none, begins = none, penalty = none;
  for (std::size_t at = 0; at < row.n; at += kLanes<T>) {
    Vec<T>& held = *as_vec<T>(row.z + at);
    const Vec<T> z = held;
    Vec<T> U = row.fixed == nullptr ? none : *as_vec<T>(row.fixed + at), Y = U, R = none;
    for (std::size_t k = 0; k < row.members; ++k) {
      const Vec<T> w = *as_vec<T>(row.w[k] + at), kept = *as_vec<T>(row.v[k] + at), moved = w - z;
      const Vec<T> rho = none + row.rho[k], v = kept != none ? kept : z;
      const Vec<T> part = (kept != none) | (moved != none) ? rho : none;
      ended += rho * w * w;
      U += part * (moved - z + v);
      Y += part * (v + row.over * moved);
      R += part;
    }
    const Vec<T> next = Y / (T(1) + R);
    conjugate += U * U;
    for (std::size_t k = 0; k < row.members; ++k) {
      Vec<T>& w_k = *as_vec<T>(row.w[k] + at);
      Vec<T>& v_k = *as_vec<T>(row.v[k] + at);
      const Vec<T> w = w_k, kept = v_k, moved = w - z, rho = none + row.rho[k], v = kept != none ? kept : z;
      const auto in = (kept != none) | (moved != none);
      const Vec<T> now = v + row.over * moved, begin = in ? T(2) * next - now + (moved - z + v) : next;
      v_k = in ? (now != none ? now : tiny) : none;
      w_k = begin;
      begins += rho * begin * begin;
    }
    held = next;
    penalty += next * next;
  }
  for (std::size_t l = 0; l < kLanes<T>; ++l) {
    row.conjugate += 0.5 * double(conjugate[l]), row.penalty += 0.5 * double(penalty[l]);
    row.ended += 0.5 * double(ended[l]), row.begins += 0.5 * double(begins[l]);
  }
}
