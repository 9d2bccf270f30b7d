// The best labelling at each number of errors: dynamic programming over tokens, labels and errors.
//
//   D[t][c][l]  best score of labels for the tokens up to t, of which c differ from the truth and the
//               last is l; c stops counting at `most`, so that D[t][most] has "most or more"
//
// n tokens, L labels and K error counts take n K L² steps: K times a Viterbi.
#pragma once

#include <limits>

#include "common.hpp"

namespace mm {

template <class T>
class LossTable {
 public:
  // S [n][Lp]: scores; into(t) [L][Lp]: transitions into token t; start, end [Lp].
  template <class Into>
  void fill(const T* S, std::size_t n, std::size_t L, std::size_t Lp, const std::int32_t* truth,
            Into&& into, const T* start, const T* end, std::size_t most) {
    n_ = n, L_ = L, Lp_ = Lp, most_ = most;
    D_.assign(n * (most + 1) * Lp, kNever);
    for (std::size_t l = 0; l < L; ++l) at(0, std::size_t(truth[0]) == l ? 0 : std::min<std::size_t>(1, most))[l] = S[l] + start[l];
    reached_.resize(Lp);
    for (std::size_t t = 1; t < n; ++t) {
      const T* A = into(t);
      const std::size_t y = std::size_t(truth[t]);
      for (std::size_t c = 0; c <= std::min(most, t); ++c) {  // t tokens have at most t errors
        best_into(at(t - 1, c), A);
        const std::size_t next = std::min(c + 1, most);
        T* wrong = at(t, next);
        T* right = at(t, c);
        for (std::size_t l = 0; l < L; ++l) {
          T* row = l == y ? right : wrong;
          row[l] = std::max(row[l], reached_[l] + S[t * Lp + l]);
        }
      }
    }
    score_.assign(most + 1, kNever);
    last_.assign(most + 1, 0);
    for (std::size_t c = 0; c <= most; ++c) {
      for (std::size_t l = 0; l < L; ++l) {
        const T value = at(n - 1, c)[l] + end[l];
        if (value > score_[c]) score_[c] = value, last_[c] = std::uint32_t(l);
      }
    }
  }

  bool reachable(std::size_t c) const { return score_[c] > kNever / 2; }
  T score(std::size_t c) const { return score_[c]; }

  // The labels that have the score of c errors.
  template <class Into>
  void trace(std::size_t c, const std::int32_t* truth, Into&& into, std::uint32_t* y) {
    std::uint32_t l = last_[c];
    for (std::size_t t = n_; t-- > 0;) {
      y[t] = l;
      if (t == 0) break;
      // Where did D[t][c][l] come from? From c or c - 1 errors, or from `most` at the cap.
      const bool right = std::size_t(truth[t]) == l;
      const T* A = into(t);
      T best = kNever;
      std::uint32_t from = 0;
      std::size_t errors = c;
      const auto look = [&](std::size_t before) {
        const T* D = at(t - 1, before);
        for (std::size_t p = 0; p < L_; ++p) {
          if (D[p] > kNever / 2 && D[p] + A[p * Lp_ + l] > best) best = D[p] + A[p * Lp_ + l], from = std::uint32_t(p), errors = before;
        }
      };
      if (right || c == most_) look(c);
      if (!right && c > 0) look(c - 1);
      l = from;
      c = errors;
    }
  }

 private:
  static constexpr T kNever = std::numeric_limits<T>::lowest() / 4;

  T* at(std::size_t t, std::size_t c) { return D_.data() + (t * (most_ + 1) + c) * Lp_; }

  // reached[l] = max_p D[p] + A[p][l]
  void best_into(const T* D, const T* A) {
    std::fill(reached_.begin(), reached_.end(), kNever);
    for (std::size_t p = 0; p < L_; ++p) {
      if (!(D[p] > kNever / 2)) continue;
      const T* row = A + p * Lp_;
      for (std::size_t l = 0; l < Lp_; ++l) reached_[l] = std::max(reached_[l], D[p] + row[l]);
    }
  }

  std::size_t n_ = 0, L_ = 0, Lp_ = 0, most_ = 0;
  std::vector<T> D_, reached_, score_;
  std::vector<std::uint32_t> last_;
};

}  // namespace mm
