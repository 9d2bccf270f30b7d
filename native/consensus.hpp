// Several threads that make steps at the same time, on weights of their own: consensus.
//
// A cache line that two cores write in turn goes back and forth between them, and that takes longer than a step. So every
// thread has a share of the examples and weights of its own, and they agree on one w after each pass. The primal is
//
//   Ω(w) + C Σ_k R_k(w),      R_k: the hinges of share k.
//
// *Own rows.* Many rows of weights are read by examples of one share only (rare features; about three of four rows in the
// corpora of the benchmarks). There the share's own dual has w = link(u), as always: nobody needs to agree.
//
// *Shared rows.* For them Douglas and Rachford's method (ADMM, in one of its forms) gives every share a state v_k and a
// metric ρ_k > 0, one number for each row. In a round
//
//   z   = argmin Ω(z) + Σ_k ½ |z - v_k|²_ρk = argmin Ω(z) + ½ R z² - Y z,       R = Σ_k ρ_k, Y = Σ_k ρ_k v_k
//   w_k ≈ argmin C R_k(w) + ½ |w - (2z - v_k)|²_ρk          (by a pass over the share, which begins where the last one ended)
//   v_k ← v_k + λ (w_k - z).
//
// The dual of the share's problem has w_k = 2z - v_k + u_k / ρ_k, u_k = C Σ α Δf over its examples: there w moves by 1/ρ
// times what u moves by (Weights::set_slopes), and u_k is kept nowhere, since it is ρ_k (w_k - 2z + v_k). So the passes of
// the engine are the local solver as they are. Multipliers stay feasible whatever v_k is: D = C Σ α l - Ω*(Σ_k u_k) is a
// lower bound after every round, and Ω(z) + C Σ_k R_k(z) an upper one. At a fixed point all w_k = z = link(Σ_k u_k).
//
// *Who takes part.* A share that never moved a weight takes no part in it: it has ρ_k = 0 there and w_k = v_k = z. It joins
// when a pass moves the weight for the first time. (With a part for all shares, those that have nothing to say hold the
// weight back.)
//
// *The metric.* Let the hinges of a share have the curvature h along a weight, and K shares have it. A difference between
// the shares shrinks by h / (h + ρ) in a round, what they do together by (ρ² + h/K) / ((ρ + 1/K) (ρ + h)): large ρ for the
// first, ρ near √(h / K) for the second. With one ρ for all weights the frequent ones or the rare ones are slow. Here
// ρ = max(1, c √h), where h is half of C Σ α Δf² over all weights of a row (a plane mostly has two of them), which the kept planes tell for any structure.
//
// Examples are divided once, in contiguous pieces of about the same work, and all sums are made in one order: a run can be
// repeated with the same number of threads.
#pragma once

#include <numeric>

#include "consensus_metric.hpp"
#include "consensus_shares.hpp"
#include "vector_code.hpp"

namespace mm {

template <class T>
class Consensus {
 public:
  static constexpr double kOver = 1.8;  // λ
  static constexpr std::size_t kMostMembers = 256;

  Consensus(const Structure<T>& structure, std::size_t members) : structure_(structure), shares_(structure, members), members_(members) {
    const RowSlopes<T> one(1, shares_.row());
    chunk_ = one.chunk(), chunks_ = one.chunks();
    slot_.resize(shared().size() * chunks_);
    z_.reset(slot_.size() * chunk_);
    run_shares(members, [&](std::size_t k) {
      members_[k].slopes = RowSlopes<T>(shares_.n_rows(), shares_.row());
      members_[k].v.reset(z_.size());
    });
  }

  std::size_t members() const { return members_.size(); }
  const typename ConsensusShares<T>::Share& share(std::size_t k) const { return shares_.of(k); }
  // Its weights have the slopes of its rows from here on.
  void begin_steps(std::size_t k, Weights<T>& weights) { weights.set_slopes(&members_[k].slopes); }

  // ---- beginning, with the multipliers that are there, at a w that all members have ----

  // Then each member does recall() and, when all did, open() for a part of the rows. `empty`: there are no planes.
  void start_opening() { std::fill(slot_.begin(), slot_.end(), 0u), published_ = false; }
  // A member sums up its part of u in shared rows, and of the metric. `linked`: w is link(u); else its own rows become that.
  void recall(const Blocks<T>& blocks, std::size_t k, Weights<T>& weights, bool empty, bool linked, double steepness) {
    Member& own = members_[k];
    RowSlopes<T>& slopes = own.slopes;
    slopes.touched().clear();
    for (const std::uint32_t row : share(k).own) {
      slopes.clear(row, RowSlopes<T>::kUntouched);
      if (!empty) mark_moved(row, weights, slopes);
      if (linked) continue;
      for_chunks_of(row, ~0u, [&](std::size_t, std::size_t j, std::size_t n) {
        for (std::size_t l = 0; l < n; ++l) weights.rest(j + l);
      });
    }
    for (const std::uint32_t row : shared()) slopes.clear(row, 1);
    own.used = 0;
    own.sums = {};
    if (empty) return;
    own.u.reset(shared().size() * shares_.row());
    GatheredRows<T> rows{shares_.place().data(), shares_.row(), own.u.data()};
    if (!linked) rows.others = &weights;
    gather_planes(structure_, blocks, share(k).first, share(k).last, 1, rows, [](double mass) { return mass; });
    if (!linked) {
      for (const std::uint32_t row : share(k).own) mark_moved(row, weights, slopes);
    }
    const std::vector<std::uint8_t> codes = metric(blocks, k, steepness);
    for (std::size_t s = 0; s < codes.size(); ++s) slopes.clear(shared()[s], codes[s]);
  }
  // z is the w that all have, and v_k = z + u_k / ρ_k: if z is that of other members who agreed, they go on as from a fixed point.
  // (With no planes there is nothing to do.)
  void open(std::size_t part, std::span<Weights<T>* const> weights) {
    Member& own = members_[part];
    const T* const w = weights[0]->data();
    const T* const u0 = weights[0]->fixed();
    for_shared_rows(part, [&](std::size_t s, std::uint32_t row) {
      for_chunks_of(row, ~0u, [&](std::size_t c, std::size_t j, std::size_t n) {
        const std::size_t from = s * shares_.row() + c * chunk_;
        const bool live = std::any_of(members_.begin(), members_.end(), [&](const Member& member) { return !all_zero(member.u.data() + from, n); });
        if (!live) return;
        const std::size_t at = take_slot(part, s, c);
        std::copy(w + j, w + j + n, z_.data() + at);
        for (Member& member : members_) member.slopes.mark(row, 1u << c);
        for (std::size_t l = 0; l < n; ++l) {
          double sum = u0 == nullptr ? 0.0 : double(u0[j + l]);
          for (Member& member : members_) {
            const T u = member.u[from + l];
            sum += double(u);
            member.v[at + l] = u == T(0) ? T(0) : taking_part(w[j + l] + member.slopes.slope(row) * u);
          }
          own.sums.conjugate += conjugate(*weights[0], j + l, sum);
        }
        own.sums.penalty += 0.5 * square(z_.data() + at, n);
      });
    });
    count_standing(part, weights);
  }
  // After all did.
  void opened() {
    for (Member& member : members_) member.u.reset(0);
  }

  // ---- another metric, that of the planes which there are by now ----

  // Each member does this and, when all did, count_standing() for a part of the rows. u_k and z stay.
  void measure(const Blocks<T>& blocks, std::size_t k, Weights<T>& weights, double steepness) {
    Member& own = members_[k];
    const std::vector<std::uint8_t> codes = metric(blocks, k, steepness);
    for (std::size_t s = 0; s < codes.size(); ++s) {
      const std::uint32_t row = shared()[s];
      const T rho = T(1) / own.slopes.slope(row), slope = RowSlopes<T>::slope_of(codes[s]);
      own.slopes.set_code(row, codes[s]);
      // Where it takes part; elsewhere its w is z. (Marks of others must not be read here: they are beside codes that change.)
      for_live_chunks(s, own.slopes.marks(row), [&](std::size_t at, std::size_t j, std::size_t n) {
        T* const w = weights.data() + j;
        T* const v = own.v.data() + at;
        const T* const z = z_.data() + at;
        for (std::size_t l = 0; l < n; ++l) {
          if (v[l] != T(0)) v[l] = taking_part(z[l] + slope * (rho * (w[l] - T(2) * z[l] + v[l])));
          w[l] = z[l];
        }
      });
    }
  }
  void count_standing(std::size_t part, std::span<Weights<T>* const> weights) {
    double begins = 0.0;
    for_shared_rows(part, [&](std::size_t s, std::uint32_t row) {
      for_live_chunks(s, marks_of(row), [&](std::size_t, std::size_t j, std::size_t n) {
        for (std::size_t k = 0; k < members(); ++k) begins += 0.5 * square(weights[k]->data() + j, n) / double(members_[k].slopes.slope(row));
      });
    });
    members_[part].sums.begins = begins;
  }

  // ---- after a pass ----

  // What meetings count: by how much Ω*(Σ u_k) changed in shared rows, and by how much in the pass before Σ_k ½ |w_k|²_ρk did,
  // which is what stands for it in the shares.
  struct Change {
    double conjugate = 0.0, stood = 0.0;
  };

  // The members agree on z in a part of the shared rows, and get the w at which the next pass begins.
  Change meet(std::size_t part, std::span<Weights<T>* const> weights) {
    Sums sums;
    const std::vector<std::uint32_t>& rows = shared();
    const std::size_t end = rows.size() * (part + 1) / members();
    for_shared_rows(part, [&](std::size_t s, std::uint32_t row) {
      if (s + kAhead < end) {
        for (std::uint32_t marks = marks_of(rows[s + kAhead]); marks != 0; marks &= marks - 1) {
          const std::size_t j = rows[s + kAhead] * shares_.row() + std::size_t(std::countr_zero(marks)) * chunk_;
          for (const Weights<T>* one : weights) prefetch_to_write(one->data() + j);
        }
      }
      for_chunks_of(row, marks_of(row), [&](std::size_t c, std::size_t j, std::size_t n) {
        const std::size_t before = slot_[s * chunks_ + c];
        meet_some(before != 0 ? (before - 1) * chunk_ : join(part, s, row, c, j, n, weights, sums), j, n, row, weights, sums);
      });
    });
    const Sums old = std::exchange(members_[part].sums, sums);
    return {sums.conjugate - sums.conjugate_before - old.conjugate, sums.ended - sums.ended_before - old.begins};
  }

  // The first member's weights become z, with what the others have in rows of their own; restore() undoes it.
  void publish(std::span<Weights<T>* const> weights) {
    if (published_) return;
    run_shares(members(), [&](std::size_t part) {
      swap_z(part, *weights[0]);
      double sum = 0.0;
      for (const std::uint32_t row : members_[part].slopes.touched()) {
        for_chunks_of(row, members_[part].slopes.marks(row), [&](std::size_t, std::size_t j, std::size_t n) {
          const T* const own = weights[part]->data() + j;
          sum += square(own, n);
          if (part > 0) std::copy(own, own + n, weights[0]->data() + j);
        });
      }
      members_[part].own_penalty = 0.5 * sum;
    });
    published_ = true;
  }
  void restore(std::size_t part, Weights<T>& first) {
    if (published_) swap_z(part, first);
  }
  void restored() { published_ = false; }

  // Ω of what publish() showed, for L2.
  double penalty() const {
    return std::accumulate(members_.begin(), members_.end(), 0.0, [](double sum, const Member& member) { return sum + member.own_penalty + member.sums.penalty; });
  }

 private:
  // Over live chunks: Ω*(Σ u_k), ½ |z|², and Σ_k ½ |w_k|²_ρk as the pass left them and as the next one begins; and what the first
  // and the third were before the pass in chunks that were not live then.
  struct Sums {
    double conjugate = 0.0, penalty = 0.0, ended = 0.0, begins = 0.0, conjugate_before = 0.0, ended_before = 0.0;
  };
  struct alignas(128) Member {
    RowSlopes<T> slopes;
    AlignedArray<T> v;     // in live chunks; zero where it takes no part
    AlignedArray<T> u;     // in shared rows, while rounds are opened
    Sums sums;             // of its part of the rows
    double own_penalty = 0.0;  // ½ |w|² in its own rows, as they were published
    std::size_t used = 0;  // slots that are taken in its part of the rows
  };

  const std::vector<std::uint32_t>& shared() const { return shares_.shared(); }

  // Chunks that are not zero count as moved.
  void mark_moved(std::uint32_t row, const Weights<T>& weights, RowSlopes<T>& slopes) const {
    for_chunks_of(row, ~0u, [&](std::size_t c, std::size_t j, std::size_t n) {
      if (!all_zero(weights.data() + j, n)) slopes.move(row, slopes.bit_of(c * chunk_));
    });
  }

  // ---- loops ----

  // f(place, row) for a part of the shared rows.
  template <class F>
  void for_shared_rows(std::size_t part, F&& f) const {
    const std::size_t n = shared().size();
    for (std::size_t s = n * part / members(); s < n * (part + 1) / members(); ++s) f(s, shared()[s]);
  }
  // f(chunk, first weight, weights) for chunks of a row with a mark.
  template <class F>
  void for_chunks_of(std::uint32_t row, std::uint32_t marks, F&& f) const {
    const std::size_t begin = row * shares_.row(), end = std::min(begin + shares_.row(), structure_.n_weights());
    for (marks &= (1u << chunks_) - 1; marks != 0; marks &= marks - 1) {
      const std::size_t c = std::size_t(std::countr_zero(marks)), j = begin + c * chunk_;
      if (j < end) f(c, j, std::min(chunk_, end - j));
    }
  }
  // f(place in v and z, first weight, weights) for chunks of a shared row in which somebody takes part, of those with a mark.
  template <class F>
  void for_live_chunks(std::size_t s, std::uint32_t marks, F&& f) const {
    for_chunks_of(shared()[s], marks, [&](std::size_t c, std::size_t j, std::size_t n) {
      const std::size_t slot = slot_[s * chunks_ + c];
      if (slot != 0) f((slot - 1) * chunk_, j, n);
    });
  }
  // Where a step of some member was made.
  std::uint32_t marks_of(std::uint32_t row) const {
    std::uint32_t marks = 0;
    for (const Member& member : members_) marks |= member.slopes.marks(row);
    return marks;
  }
  // The metric of the planes that there are, in shared rows; `steepness` 0: ρ = 1.
  std::vector<std::uint8_t> metric(const Blocks<T>& blocks, std::size_t k, double steepness) const {
    if (steepness == 0.0) return std::vector<std::uint8_t>(shared().size(), std::uint8_t(RowSlopes<T>::code_of(1.0)));
    return metric_codes(structure_, blocks, share(k).first, share(k).last, shares_.place().data(), shared().size(), shares_.row(), steepness);
  }

  // ---- weights of shared rows ----

  // Room in z and v for a chunk in which somebody takes part: parts of the rows have theirs one behind the other, so that little
  // memory is touched. Returns its place.
  std::size_t take_slot(std::size_t part, std::size_t s, std::size_t c) {
    const std::size_t slot = shared().size() * part / members() * chunks_ + members_[part].used++;
    slot_[s * chunks_ + c] = std::uint32_t(slot + 1);
    return slot * chunk_;
  }
  // A chunk that a member moved for the first time.
  std::size_t join(std::size_t part, std::size_t s, std::uint32_t row, std::size_t c, std::size_t j, std::size_t n, std::span<Weights<T>* const> weights,
                   Sums& sums) {
    const std::size_t at = take_slot(part, s, c);
    const T* const u0 = weights[0]->fixed();
    for (Member& member : members_) std::fill(member.v.data() + at, member.v.data() + at + n, T(0));
    double square = 0.0;
    for (std::size_t l = 0; l < n; ++l) {
      const T z = z_[at + l] = weights[0]->at_rest(j + l);
      square += double(z) * double(z);
      sums.conjugate_before += conjugate(*weights[0], j + l, u0 == nullptr ? 0.0 : double(u0[j + l]));
    }
    for (const Member& member : members_) sums.ended_before += 0.5 * square / double(member.slopes.slope(row));
    return at;
  }
  void swap_z(std::size_t part, Weights<T>& first) {
    for_shared_rows(part, [&](std::size_t s, std::uint32_t row) {
      for_live_chunks(s, marks_of(row), [&](std::size_t at, std::size_t j, std::size_t n) { std::swap_ranges(z_.data() + at, z_.data() + at + n, first.data() + j); });
    });
  }

  static bool all_zero(const T* x, std::size_t n) {
    return std::all_of(x, x + n, [](T value) { return value == T(0); });
  }
  static double square(const T* x, std::size_t n) {
    double sum[4] = {};
    std::size_t l = 0;
    for (; l + 4 <= n; l += 4) {
      for (std::size_t k = 0; k < 4; ++k) sum[k] += double(x[l + k]) * double(x[l + k]);
    }
    for (; l < n; ++l) sum[0] += double(x[l]) * double(x[l]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
  // v of who takes part is not zero.
  static T taking_part(T v) { return v != T(0) ? v : std::numeric_limits<T>::min(); }
  static double conjugate(const Weights<T>& weights, std::size_t j, double u) {
    const Link& link = weights.link();
    return link.identity() ? 0.5 * u * u : link.conjugate(j, u, link.weight(j, u));
  }

  // n weights of a chunk, from place `at` and weight j on.
  void meet_some(std::size_t at, std::size_t j, std::size_t n, std::uint32_t row, std::span<Weights<T>* const> weights, Sums& sums) {
    const std::size_t K = members();
    T* w[kMostMembers];
    T* v[kMostMembers];
    T rho[kMostMembers];
    for (std::size_t k = 0; k < K; ++k) {
      w[k] = weights[k]->data() + j;
      v[k] = members_[k].v.data() + at;
      rho[k] = T(1) / members_[k].slopes.slope(row);
    }
    const T* const u0 = weights[0]->fixed();
    T* const z = z_.data() + at;
    if (weights[0]->link().identity() && n * sizeof(T) % 32 == 0 && shares_.row() * sizeof(T) % 32 == 0) {
      Agreement<T> agreement{n, K, T(kOver), u0 == nullptr ? nullptr : u0 + j, z, w, v, rho};
      vector_code<T>().agree(agreement);
      sums.conjugate += agreement.conjugate, sums.ended += agreement.ended, sums.begins += agreement.begins, sums.penalty += agreement.penalty;
      return;
    }
    // The same as in agreement_impl.hpp, one by one.
    const Link& link = weights[0]->link();
    for (std::size_t l = 0; l < n; ++l) {
      const double before = double(z[l]), u = u0 == nullptr ? 0.0 : double(u0[j + l]);
      double R = 0.0, Y = u, U = u;
      for (std::size_t k = 0; k < K; ++k) {
        const double own = double(w[k][l]), part = double(rho[k]);
        sums.ended += 0.5 * part * own * own;
        if (v[k][l] == T(0) && own == before) continue;
        if (v[k][l] == T(0)) v[k][l] = taking_part(z[l]);
        const double kept = double(v[k][l]);
        U += part * (own - 2 * before + kept);
        Y += part * (kept + kOver * (own - before));
        R += part;
      }
      sums.conjugate += conjugate(*weights[0], j + l, U);
      z[l] = T(link.held(j + l, Y, R));
      sums.penalty += 0.5 * double(z[l]) * double(z[l]);
      for (std::size_t k = 0; k < K; ++k) {
        if (v[k][l] == T(0)) {
          w[k][l] = z[l];
        } else {
          const double own = double(w[k][l]), kept = double(v[k][l]), now = kept + kOver * (own - before);
          w[k][l] = T(2 * double(z[l]) - now + (own - 2 * before + kept));
          v[k][l] = taking_part(T(now));
        }
        sums.begins += 0.5 * double(rho[k]) * double(w[k][l]) * double(w[k][l]);
      }
    }
  }
  static constexpr std::size_t kAhead = 8;

  const Structure<T>& structure_;
  ConsensusShares<T> shares_;
  std::vector<Member> members_;
  std::size_t chunk_ = 1, chunks_ = 1;  // weights in a chunk, chunks in a row
  std::vector<std::uint32_t> slot_;     // of each chunk of the shared rows: its slot in z and v, and one more; 0: nobody takes part
  AlignedArray<T> z_;                   // in live chunks; while it is published, the first member's weights
  bool published_ = false;
};

}  // namespace mm
