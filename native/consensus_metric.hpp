// What the kept planes of some examples tell of shared rows of weights: their u_k, and the metric (consensus.hpp has the
// mathematics). For threads of one process and for worker processes.
#pragma once

#include "blocks.hpp"
#include "row_slopes.hpp"

namespace mm {

// Adds C Σ coef(α) Δf, in rows that `rows` lists, over the planes of every `step`-th example from `first` to `last` - 1.
template <class T, class Coef>
void gather_planes(const Structure<T>& structure, const Blocks<T>& blocks, std::size_t first, std::size_t last, std::size_t step, GatheredRows<T>& rows,
                   Coef&& coef) {
  Weights<T> into(rows);
  auto ws = structure.workspace();
  for (std::size_t i = first; i < last; i += step) {
    for (const Part<T>& part : blocks[i]) {
      for (std::size_t p = 1; p < part.set.size(); ++p) {
        const double mass = blocks.C_of(i) * part.set.alpha()[p], amount = coef(mass);
        if (mass == 0.0) continue;
        const CodeView code = part.set.code(p);
        structure.accumulate(*ws, i, part.index, {&code, 1}, &amount, into);
      }
    }
  }
}

// Codes of ρ = max(1, c √(h/2)) for `n_shared` rows, `place` of each row being where it is among them: of some of the examples
// where they are many.
template <class T>
std::vector<std::uint8_t> metric_codes(const Structure<T>& structure, const Blocks<T>& blocks, std::size_t first, std::size_t last,
                                       const std::uint32_t* place, std::size_t n_shared, std::size_t row, double steepness) {
  constexpr std::size_t kSampled = 1000, kSteps = 8;
  const std::size_t step = std::clamp<std::size_t>((last - first) / kSampled, 1, kSteps);
  std::vector<float> h(n_shared, 0.0f);
  GatheredRows<T> rows{place, row};
  rows.squares = h.data();
  gather_planes(structure, blocks, first, last, step, rows, [](double mass) { return std::sqrt(mass); });
  std::vector<std::uint8_t> codes(n_shared);
  for (std::size_t s = 0; s < n_shared; ++s) {
    codes[s] = std::uint8_t(RowSlopes<T>::code_of(std::max(1.0, steepness * std::sqrt(0.5 * double(step) * double(h[s])))));
  }
  return codes;
}

// Chunks of rows as messages between processes have them: those of row_slopes.hpp, cut where they have more than 64 weights.
// Which weights of a chunk are meant is said by the bits of a word, from the lowest one on.
struct RowChunks {
  using Lanes = std::uint64_t;
  std::size_t row = 1, chunk = 1, chunks = 1, n_weights = 0;
  std::size_t parts = 1;  // of a chunk with a mark

  template <class T>
  static RowChunks of(std::size_t row, std::size_t n_weights) {
    const std::size_t marked = RowSlopes<T>(1, row).chunk(), chunk = std::min<std::size_t>(marked, 64);
    return {row, chunk, (row + chunk - 1) / chunk, n_weights, marked / chunk};
  }
  // Rows may be taken so many weights at a time where all examples read all of them; the last one may be shorter.
  std::size_t width(std::size_t r, std::size_t c) const {
    const std::size_t begin = r * row + c * chunk, end = std::min((r + 1) * row, n_weights);
    return begin < end ? std::min(chunk, end - begin) : 0;
  }
  std::size_t first(std::size_t r, std::size_t c) const { return r * row + c * chunk; }
  static Lanes all_lanes(std::size_t n) { return n >= 64 ? ~Lanes{0} : (Lanes{1} << n) - 1; }
  template <class F>
  static void for_lanes(Lanes lanes, F&& f) {
    for (; lanes != 0; lanes &= lanes - 1) f(std::size_t(std::countr_zero(lanes)));
  }
  // Lanes in which two differ. (As compilers turn it into vectors.)
  template <class X>
  static Lanes differ(const X* x, const X* y, std::size_t n) {
    using Bits = std::conditional_t<sizeof(X) == 4, std::uint32_t, std::uint64_t>;
    static constexpr Bits kBits[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    Lanes lanes = 0;
    std::size_t l = 0;
    for (; l + 8 <= n; l += 8) {
      Bits some = 0;
      for (std::size_t k = 0; k < 8; ++k) some |= x[l + k] != y[l + k] ? kBits[k] : Bits(0);
      lanes |= Lanes(some) << l;
    }
    for (; l < n; ++l) lanes |= Lanes(x[l] != y[l]) << l;
    return lanes;
  }
  // Lanes that are not zero.
  template <class X>
  static Lanes lanes_of(const X* x, std::size_t n) {
    Lanes lanes = 0;
    for (std::size_t l = 0; l < n; ++l) lanes |= Lanes(x[l] != X(0)) << l;
    return lanes;
  }

  // f(chunk, first weight, weights) for chunks of a row with a mark of row_slopes.hpp.
  template <class F>
  void for_marked(std::size_t r, std::uint32_t marks, F&& f) const {
    for (; marks != 0; marks &= marks - 1) {
      const std::size_t begin = std::size_t(std::countr_zero(marks)) * parts;
      for (std::size_t c = begin; c < std::min(begin + parts, chunks); ++c) {
        const std::size_t n = width(r, c);
        if (n > 0) f(c, first(r, c), n);
      }
    }
  }
  template <class F>
  void for_all(std::size_t r, F&& f) const {
    for (std::size_t c = 0; c < chunks; ++c) {
      const std::size_t n = width(r, c);
      if (n > 0) f(c, first(r, c), n);
    }
  }
};

}  // namespace mm
