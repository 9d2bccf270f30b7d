// The labels of the greatest merit (merit.hpp) among all labels of a chain, where the corners of the hull
// (hull.hpp) did not decide: label setting with a bound.
//
// Merit grows with the loss and with the score. So of the beginnings of an output that end at the same
// token with the same label, only those matter that no other has beaten in both: the front of (loss,
// score) pairs. And of these only such as can still win: with
//
//   B[t][l]   greatest score + λ loss of all continuations behind token t, where it has the label l,
//
// every completion of a beginning (loss a, score s) has λΔ - m <= s + λa + B[t][l] - score of the truth,
// while an output with a merit above `top` and a loss in [from, to] has at least Merit::least_sum. For
// the slope λ of the hull where it is undecided these two numbers are close, and few beginnings are left.
//
// With Hamming loss a front has at most as many pairs as there are errors, so that the work never
// exceeds that of a dynamic programme over tokens, labels and errors; with arbitrary costs the fronts
// may grow without such a bound, and the search gives up after `most` pairs.
#pragma once

#include <algorithm>
#include <limits>

#include "common.hpp"
#include "merit.hpp"
#include "vector_code.hpp"

namespace mm {

// What is known before the search.
struct Undecided {
  double top;       // find an output of a greater merit than this ...
  double from, to;  // ... whose loss lies between these, all others being decided
  double slope;     // λ of the bounds
  double step;      // losses are multiples of this; 0: not known
};

template <class T>
class ParetoSearch {
 public:
  enum class Outcome { kNothing, kFound, kGaveUp };

  // S [n][Lp]: scores; into(t) [L][Lp]: transitions into token t, the same for all if `steady`;
  // start, end [Lp]; loss(t, l): that of label l at token t; `own`: the score of the truth; y: the labels, if found.
  template <class Into, class Loss>
  Outcome run(const Merit& merit, const Undecided& open, const T* S, std::size_t n, std::size_t L, std::size_t Lp,
              Into&& into, bool steady, const T* start, const T* end, Loss&& loss, double own, std::size_t most, std::uint32_t* y) {
    const double lambda = open.slope;
    fill_losses(n, L, Lp, loss);
    backward(S, n, L, Lp, into, steady, end, lambda);
    const double floor = merit.least_sum(lambda, open.top, open.from, open.to, open.step);
    const double tolerance = kRounding * (1.0 + std::abs(own) + std::abs(floor));
    // The greatest loss that the tokens behind each may add.
    rest_.assign(n + 1, 0.0);
    for (std::size_t t = n; t-- > 0;) rest_[t] = rest_[t + 1] + *std::max_element(&loss_[t * Lp], &loss_[t * Lp] + L);

    labels_.clear();
    fronts_.resize(L);
    worth_.resize(L);
    std::size_t first = 0;  // of the pairs of the token before
    for (std::size_t t = 0; t < n; ++t) {
      const std::size_t last = labels_.size();
      for (auto& front : fronts_) front.clear();
      // A beginning with x = s + λa behind the token before has at most x + A[p][l] + worth[l] to spare.
      for (std::size_t l = 0; l < L; ++l) {
        worth_[l] = double(S[t * Lp + l]) + lambda * loss_[t * Lp + l] + double(B_[t * Lp + l]) - own - floor + tolerance;
      }
      const auto extend = [&](double a, double s, std::int32_t from, const T* row) {
        const double x = s + lambda * a;
        for (std::size_t l = 0; l < L; ++l) {
          const double spare = x + double(row[l]) + worth_[l];
          if (!(spare > 0.0)) continue;
          const double now = a + loss_[t * Lp + l];
          if (!within_reach(merit, open, now, rest_[t + 1], spare + floor)) continue;
          fronts_[l].push_back({now, s + double(row[l]) + double(S[t * Lp + l]), from, static_cast<std::uint32_t>(l)});
        }
      };
      if (t == 0) {
        extend(0.0, 0.0, -1, start);
      } else {
        const T* A = into(t);
        for (std::size_t k = first; k < last; ++k) extend(labels_[k].loss, labels_[k].score, std::int32_t(k), A + labels_[k].label * Lp);
      }
      for (auto& front : fronts_) keep_best(front);
      if (labels_.size() > most) return Outcome::kGaveUp;
      first = last;
      if (labels_.size() == first) return Outcome::kNothing;
    }
    double top = open.top;
    std::int32_t best = -1;
    for (std::size_t k = first; k < labels_.size(); ++k) {
      const double value = merit.value(labels_[k].loss, own - labels_[k].score - double(end[labels_[k].label]));
      if (value > top) top = value, best = std::int32_t(k);
    }
    if (best < 0) return Outcome::kNothing;
    for (std::size_t t = n; t-- > 0; best = labels_[std::size_t(best)].from) y[t] = labels_[std::size_t(best)].label;
    return Outcome::kFound;
  }

  // Pairs that the last search kept.
  std::size_t kept() const { return labels_.size(); }

 private:
  // The beginning of an output.
  struct Label {
    double loss, score;
    std::int32_t from;  // what it extends
    std::uint32_t label;
  };

  template <class Loss>
  void fill_losses(std::size_t n, std::size_t L, std::size_t Lp, Loss&& loss) {
    loss_.resize(n * Lp);
    for (std::size_t t = 0; t < n; ++t) {
      for (std::size_t l = 0; l < L; ++l) loss_[t * Lp + l] = loss(t, l);
    }
  }

  // B by a forward pass over the tokens and the transitions in reverse. `steady`: the transitions are the
  // same into all tokens; else one step at a time.
  template <class Into>
  void backward(const T* S, std::size_t n, std::size_t L, std::size_t Lp, Into&& into, bool steady, const T* end, double lambda) {
    const auto& vector = vector_code<T>();
    if (B_.size() < n * Lp) {
      for (AlignedArray<T>* rows : {&B_, &reverse_, &D_}) rows->reset(n * Lp + n * Lp / 4);
    }
    if (turned_.size() < L * Lp) turned_.reset(L * Lp), lower_.reset(Lp), upper_.reset(Lp);
    for (std::size_t t = 0; t < n; ++t) {
      T* row = reverse_.data() + (n - 1 - t) * Lp;
      for (std::size_t l = 0; l < L; ++l) row[l] = S[t * Lp + l] + T(lambda * loss_[t * Lp + l]);
    }
    for (std::size_t l = 0; l < Lp; ++l) D_[l] = reverse_[l] + end[l];
    const auto turn = [&](const T* A) {
      for (std::size_t p = 0; p < L; ++p) {
        for (std::size_t l = 0; l < L; ++l) turned_[l * Lp + p] = A[p * Lp + l];
      }
      vector.transition_bounds(turned_.data(), L, Lp, lower_.data(), upper_.data());
    };
    if (steady && n > 1) {
      turn(into(1));
      vector.forward(reverse_.data(), end, turned_.data(), lower_.data(), upper_.data(), L, Lp, n, D_.data());
    }
    for (std::size_t k = 1; !steady && k < n; ++k) {
      turn(into(n - k));
      T* row = D_.data() + k * Lp;
      std::fill(row, row + Lp, std::numeric_limits<T>::lowest());
      for (std::size_t l = 0; l < L; ++l) {
        for (std::size_t p = 0; p < Lp; ++p) row[p] = std::max(row[p], D_[(k - 1) * Lp + l] + turned_[l * Lp + p]);
      }
      for (std::size_t l = 0; l < L; ++l) row[l] += reverse_[k * Lp + l];
    }
    for (std::size_t t = 0; t < n; ++t) {
      const std::size_t from = (n - 1 - t) * Lp;
      for (std::size_t l = 0; l < L; ++l) B_[t * Lp + l] = D_[from + l] - reverse_[from + l];
    }
  }

  // May a completion of a beginning with the loss `now` have a loss that is undecided, and λΔ - m enough?
  bool within_reach(const Merit& merit, const Undecided& open, double now, double rest, double sum) const {
    const double slack = 1e-9 * (1.0 + now);
    const double from = std::max(open.from, now), to = std::min(open.to, now + rest);
    if (from > to + slack) return false;
    if (from == open.from && to == open.to) return true;
    return sum > merit.least_sum(open.slope, open.top, from, std::max(from, to), open.step);
  }

  // Add those of the pairs at one token and label that no other beats in both. Losses that differ by
  // rounding only are equal.
  void keep_best(std::vector<Label>& pairs) {
    if (pairs.size() > 1) {
      std::sort(pairs.begin(), pairs.end(), [](const Label& a, const Label& b) {
        if (a.loss != b.loss) return a.loss > b.loss;
        return a.score != b.score ? a.score > b.score : a.from < b.from;
      });
    }
    const std::size_t first = labels_.size();
    for (const Label& pair : pairs) {
      if (labels_.size() > first) {
        const Label& last = labels_.back();
        if (pair.score <= last.score) continue;
        if (pair.loss >= last.loss - 1e-12 * (1.0 + last.loss)) labels_.pop_back();
      }
      labels_.push_back(pair);
    }
  }

  // Of the bounds, which are sums of T.
  static constexpr double kRounding = sizeof(T) == 4 ? 4e-6 : 1e-12;

  AlignedArray<T> B_, reverse_, D_, turned_, lower_, upper_;
  std::vector<double> loss_, rest_, worth_;
  std::vector<Label> labels_;
  std::vector<std::vector<Label>> fronts_;
};

}  // namespace mm
