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

#include "blocks.hpp"
#include "parallel.hpp"
#include "vector_code.hpp"

namespace mm {

template <class T>
class Consensus {
 public:
  // λ, and c of the metric.
  static constexpr double kOver = 1.8, kSteepness = 14.0;
  static constexpr std::size_t kMostMembers = 256;

  Consensus(const Structure<T>& structure, std::size_t members)
      : structure_(structure), row_(std::max<std::size_t>(structure.row_size(), 1)), n_rows_((structure.n_weights() + row_ - 1) / row_),
        members_(members) {
    divide_examples();
    run_shares(members, [&](std::size_t k) {
      Member& own = members_[k];
      own.codes.assign(n_rows_, 0);
      std::vector<std::size_t> rows;
      for (std::size_t i = own.first; i < own.last; ++i) {
        structure_.rows_read(i, rows);
        for (const std::size_t row : rows) own.codes[row] = 1;
      }
    });
    divide_rows();
  }

  std::size_t members() const { return members_.size(); }
  // The examples of a member.
  std::size_t first(std::size_t k) const { return members_[k].first; }
  std::size_t last(std::size_t k) const { return members_[k].last; }
  // Its weights have the slopes of its rows from here on.
  void begin_steps(std::size_t k, Weights<T>& weights) { weights.set_slopes(members_[k].codes.data(), &members_[k].touched); }

  // ---- beginning, with the multipliers that are there, at w = link(u), which all members have ----

  // `empty`: there are no planes. Then each member does recall() and, when all did, open() for a part of the rows.
  void start_opening() { refill(z_, shared_.size() * row_), live_.assign(shared_.size(), 0), published_ = false; }
  // A member sums up its part of u in shared rows, and of the metric.
  void recall(const Blocks<T>& blocks, std::size_t k, const Weights<T>& weights, bool empty) {
    Member& own = members_[k];
    own.touched.clear();
    for (const std::uint32_t row : own.own) {
      const T* const w = weights.data() + row * row_;
      const T* const end = weights.data() + std::min((row + std::size_t{1}) * row_, weights.size());
      const bool zero = empty || std::all_of(w, end, [](T x) { return x == T(0); });
      own.codes[row] = zero ? Weights<T>::kUntouched : 0;
      if (!zero) own.touched.push_back(row);
    }
    const std::size_t n = shared_.size() * row_;
    refill(own.v, n);
    for (const std::uint32_t row : shared_) own.codes[row] = 1;
    if (empty) return;
    gather(blocks, own, own.v.data());
    set_metric(blocks, own);
  }
  // z is that w, and v_k = z + u_k / ρ_k.
  void open(std::size_t part, std::span<Weights<T>* const> weights) {
    Member& own = members_[part];
    own.conjugate = 0.0;
    const T* const w = weights[0]->data();
    const T* const u0 = weights[0]->fixed();
    std::vector<double> sums;
    for_rows(part, [&](std::size_t s, std::size_t j, std::size_t n) {
      std::copy(w + j, w + j + n, z_.data() + s * row_);
      bool live = false;
      sums.assign(n, 0.0);
      for (Member& member : members_) {
        T* const v = member.v.data() + s * row_;
        const T slope = Weights<T>::slope_of(member.codes[shared_[s]]);
        for (std::size_t l = 0; l < n; ++l) {
          if (v[l] == T(0)) continue;
          sums[l] += double(v[l]);
          v[l] = taking_part(w[j + l] + slope * v[l]);
          live = true;
        }
      }
      live_[s] = live;
      if (!live) return;
      for (std::size_t l = 0; l < n; ++l) own.conjugate += conjugate(*weights[0], j + l, sums[l] + (u0 == nullptr ? 0.0 : double(u0[j + l])));
    });
    count_standing(part, weights);
  }

  // ---- another metric, that of the planes which there are by now ----

  // Each member does this and, when all did, count_standing() for a part of the rows. u_k and z stay.
  void measure(const Blocks<T>& blocks, std::size_t k, Weights<T>& weights) {
    Member& own = members_[k];
    const std::vector<std::uint8_t> old = own.codes;
    set_metric(blocks, own);
    for (std::size_t s = 0; s < shared_.size(); ++s) {
      if (live_[s] == 0) continue;
      const std::size_t j = shared_[s] * row_, n = std::min(row_, structure_.n_weights() - j);
      const T rho = T(1) / Weights<T>::slope_of(old[shared_[s]]), slope = Weights<T>::slope_of(own.codes[shared_[s]]);
      T* const w = weights.data() + j;
      T* const v = own.v.data() + s * row_;
      const T* const z = z_.data() + s * row_;
      for (std::size_t l = 0; l < n; ++l) {
        if (v[l] != T(0)) v[l] = taking_part(z[l] + slope * (rho * (w[l] - T(2) * z[l] + v[l])));
        w[l] = z[l];
      }
    }
  }
  void count_standing(std::size_t part, std::span<Weights<T>* const> weights) {
    double stood = 0.0;
    for_rows(part, [&](std::size_t s, std::size_t j, std::size_t n) {
      if (live_[s] == 0) return;
      for (std::size_t k = 0; k < members_.size(); ++k) {
        const T* const w = weights[k]->data() + j;
        double squares = 0.0;
        for (std::size_t l = 0; l < n; ++l) squares += double(w[l]) * double(w[l]);
        stood += 0.5 * squares / double(Weights<T>::slope_of(members_[k].codes[shared_[s]]));
      }
    });
    members_[part].stood = stood;
  }

  // ---- after a pass ----

  // What meetings count: by how much Ω*(Σ u_k) changed in shared rows, and by how much in the pass before Σ_k ½ |w_k|²_ρk did,
  // which is what stands for it in the shares.
  struct Change {
    double conjugate = 0.0, stood = 0.0;
  };

  // After a pass: the members agree on z in a part of the shared rows, and get the w at which the next one begins.
  Change meet(std::size_t part, std::span<Weights<T>* const> weights) {
    Member& own = members_[part];
    Sums sums;
    for_rows(part, [&](std::size_t s, std::size_t j, std::size_t n) {
      if (s + kAhead < shared_.size()) {
        for (const Weights<T>* one : weights) prefetch_to_write(one->data() + shared_[s + kAhead] * row_);
      }
      const bool live = live_[s] != 0;
      if (!live && !moved(s, j, n, weights)) return;
      live_[s] = 1;
      for (std::size_t at = 0; at < n; at += kChunk) meet_some(s * row_ + at, j + at, std::min(kChunk, n - at), shared_[s], live, weights, sums);
    });
    const double conjugate = std::exchange(own.conjugate, sums.conjugate), stood = std::exchange(own.stood, sums.begins);
    return {sums.conjugate - sums.conjugate_before - conjugate, sums.ended - sums.ended_before - stood};
  }

  // The first member's weights become z, with what the others have in rows of their own; restore() undoes it.
  void publish(std::span<Weights<T>* const> weights) {
    if (published_) return;
    if (aside_.size() == 0) aside_.reset(shared_.size() * row_);
    run_shares(members_.size(), [&](std::size_t part) {
      T* const w = weights[0]->data();
      for_rows(part, [&](std::size_t s, std::size_t j, std::size_t n) {
        if (live_[s] == 0) return;
        std::copy(w + j, w + j + n, aside_.data() + s * row_);
        std::copy(z_.data() + s * row_, z_.data() + s * row_ + n, w + j);
      });
      if (part == 0) return;
      const T* const theirs = weights[part]->data();
      for (const std::uint32_t row : members_[part].touched) {
        const std::size_t j = row * row_, n = std::min(row_, structure_.n_weights() - j);
        std::copy(theirs + j, theirs + j + n, w + j);
      }
    });
    published_ = true;
  }
  void restore(std::size_t part, Weights<T>& first) {
    if (!published_) return;
    for_rows(part, [&](std::size_t s, std::size_t j, std::size_t n) {
      if (live_[s] == 0) return;
      std::copy(aside_.data() + s * row_, aside_.data() + s * row_ + n, first.data() + j);
    });
  }
  void restored() { published_ = false; }

  // Ω of what publish() shows, for L2, in rows where it is not zero.
  double half_square(std::span<Weights<T>* const> weights) const {
    std::vector<double> sums(members_.size());
    run_shares(members_.size(), [&](std::size_t part) {
      double sum = 0.0;
      for_rows(part, [&](std::size_t s, std::size_t, std::size_t n) {
        if (live_[s] != 0) sum += square(z_.data() + s * row_, n);
      });
      for (const std::uint32_t row : members_[part].touched) {
        const std::size_t j = row * row_;
        sum += square(weights[part]->data() + j, std::min(row_, structure_.n_weights() - j));
      }
      sums[part] = sum;
    });
    return 0.5 * std::accumulate(sums.begin(), sums.end(), 0.0);
  }

 private:
  struct alignas(128) Member {
    std::size_t first = 0, last = 0;
    std::vector<std::uint8_t> codes;   // by rows
    std::vector<std::uint32_t> own;    // rows that no other member reads
    std::vector<std::uint32_t> touched;  // of these, in which a step was made
    AlignedArray<T> v;                 // in shared rows; zero where it takes no part
    double conjugate = 0.0, stood = 0.0;  // of its part of the rows, where they are live
  };

  // C Σ α Δf of a member's planes in shared rows.
  void gather(const Blocks<T>& blocks, const Member& own, T* sums) const {
    GatheredRows<T> rows{place_.data(), row_, sums};
    for_planes(blocks, own, 1, rows, [](double mass) { return mass; });
  }
  // The metric of the planes that there are: of some of them where they are many.
  void set_metric(const Blocks<T>& blocks, Member& own) const {
    const std::size_t step = std::clamp<std::size_t>((own.last - own.first) / kSampled, 1, kSteps);
    std::vector<float> h(shared_.size(), 0.0f);
    GatheredRows<T> rows{place_.data(), row_};
    rows.squares = h.data();
    for_planes(blocks, own, step, rows, [](double mass) { return std::sqrt(mass); });
    for (std::size_t s = 0; s < h.size(); ++s) {
      own.codes[shared_[s]] = Weights<T>::code_of(std::max(1.0, kSteepness * std::sqrt(0.5 * double(step) * double(h[s]))));
    }
  }
  template <class Coef>
  void for_planes(const Blocks<T>& blocks, const Member& own, std::size_t step, GatheredRows<T>& rows, Coef&& coef) const {
    Weights<T> into(rows);
    auto ws = structure_.workspace();
    for (std::size_t i = own.first; i < own.last; i += step) {
      for (const Part<T>& part : blocks[i]) {
        for (std::size_t p = 1; p < part.set.size(); ++p) {
          const double mass = blocks.C_of(i) * part.set.alpha()[p], amount = coef(mass);
          if (mass == 0.0) continue;
          const CodeView code = part.set.code(p);
          structure_.accumulate(*ws, i, part.index, {&code, 1}, &amount, into);
        }
      }
    }
  }
  static constexpr std::size_t kSampled = 1000, kSteps = 4;

  // Pieces of about the same work.
  void divide_examples() {
    const std::size_t n = structure_.n_examples(), K = members_.size();
    double all = 0.0;
    for (std::size_t i = 0; i < n; ++i) all += structure_.oracle_work(i);
    double done = 0.0;
    std::size_t i = 0;
    for (std::size_t k = 0; k < K; ++k) {
      members_[k].first = i;
      while (i < n - (K - 1 - k) && (k + 1 == K || i == members_[k].first || done < all * double(k + 1) / double(K))) done += structure_.oracle_work(i++);
      members_[k].last = i;
    }
  }
  void divide_rows() {
    place_.assign(n_rows_, GatheredRows<T>::kNone);
    for (std::size_t row = 0; row < n_rows_; ++row) {
      std::size_t readers = 0, reader = 0;
      for (std::size_t k = 0; k < members_.size(); ++k) {
        if (members_[k].codes[row] != 0) ++readers, reader = k;
      }
      if (readers > 1) {
        place_[row] = std::uint32_t(shared_.size());
        shared_.push_back(std::uint32_t(row));
      } else if (readers == 1) {
        members_[reader].codes[row] = 0;
        members_[reader].own.push_back(std::uint32_t(row));
      }
    }
    for (Member& member : members_) {
      for (const std::uint32_t row : shared_) member.codes[row] = 1;
    }
  }

  // f(place, first weight, weights) for a part of the shared rows.
  template <class F>
  void for_rows(std::size_t part, F&& f) const {
    const std::size_t n = shared_.size(), K = members_.size();
    for (std::size_t s = n * part / K; s < n * (part + 1) / K; ++s) {
      const std::size_t j = shared_[s] * row_;
      f(s, j, std::min(row_, structure_.n_weights() - j));
    }
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

  // Did a member move a weight of a row in which none took part?
  bool moved(std::size_t s, std::size_t j, std::size_t n, std::span<Weights<T>* const> weights) const {
    const T* const z = z_.data() + s * row_;
    for (const Weights<T>* one : weights) {
      const T* const w = one->data() + j;
      T most = T(0);
      for (std::size_t l = 0; l < n; ++l) most = std::max(most, std::abs(w[l] - z[l]));
      if (most > T(0)) return true;
    }
    return false;
  }

  static constexpr std::size_t kChunk = 64, kAhead = 8;

  // Over live rows: Ω*(Σ u_k), and Σ_k ½ |w_k|²_ρk as the pass left them and as the next one begins; and what both were before
  // the pass in rows that were not live then.
  struct Sums {
    double conjugate = 0.0, ended = 0.0, begins = 0.0, conjugate_before = 0.0, ended_before = 0.0;
  };

  // n weights of a shared row, from place `at` on and weight j. `live`: whether the row was so before.
  void meet_some(std::size_t at, std::size_t j, std::size_t n, std::uint32_t row, bool live, std::span<Weights<T>* const> weights, Sums& sums) {
    const std::size_t K = members_.size();
    T* w[kMostMembers];
    T* v[kMostMembers];
    T rho[kMostMembers];
    for (std::size_t k = 0; k < K; ++k) {
      w[k] = weights[k]->data() + j;
      v[k] = members_[k].v.data() + at;
      rho[k] = T(1) / Weights<T>::slope_of(members_[k].codes[row]);
    }
    const T* const u0 = weights[0]->fixed();
    T* const z = z_.data() + at;
    if (!live) {
      for (std::size_t l = 0; l < n; ++l) {
        sums.conjugate_before += conjugate(*weights[0], j + l, u0 == nullptr ? 0.0 : double(u0[j + l]));
        for (std::size_t k = 0; k < K; ++k) sums.ended_before += 0.5 * double(rho[k]) * double(z[l]) * double(z[l]);
      }
    }
    if (weights[0]->link().identity() && n * sizeof(T) % 32 == 0 && row_ * sizeof(T) % 32 == 0) {
      Agreement<T> agreement{n, K, T(kOver), u0 == nullptr ? nullptr : u0 + j, z, w, v, rho, 0.0, 0.0, 0.0};
      vector_code<T>().agree(agreement);
      sums.conjugate += agreement.conjugate, sums.ended += agreement.ended, sums.begins += agreement.begins;
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

  template <class X>
  static void refill(AlignedArray<X>& array, std::size_t n) {
    if (array.size() != n) return array.reset(n);
    std::fill(array.data(), array.data() + n, X(0));
  }
  const Structure<T>& structure_;
  std::size_t row_, n_rows_;
  std::vector<Member> members_;
  std::vector<std::uint32_t> shared_;  // rows that several members read
  std::vector<std::uint32_t> place_;   // of each row among these
  AlignedArray<T> z_, aside_;          // z in shared rows; and the first member's weights while they are published
  std::vector<std::uint8_t> live_;     // whether somebody takes part in a row
  bool published_ = false;
};

}  // namespace mm
