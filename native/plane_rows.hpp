// The planes of listed outputs of one example: Δf as sparse rows, with their losses.
//
// Joint features and losses do not depend on w, so that an oracle that tries all outputs reads them
// once from Python and is a product of these rows with w from then on.
#pragma once

#include <cmath>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "common.hpp"

namespace mm {

// f(index, a - b) where a - b is not zero, ascending; the indices of a and of b ascend.
template <class F>
void each_difference(std::span<const std::uint32_t> a, std::span<const double> av, std::span<const std::uint32_t> b,
                     std::span<const double> bv, F&& f) {
  std::size_t p = 0, q = 0;
  const auto emit = [&](std::uint32_t index, double x) {
    if (x != 0.0) f(index, x);
  };
  while (p < a.size() && q < b.size()) {
    if (a[p] < b[q]) {
      emit(a[p], av[p]), ++p;
    } else if (b[q] < a[p]) {
      emit(b[q], -bv[q]), ++q;
    } else {
      emit(a[p], av[p] - bv[q]), ++p, ++q;
    }
  }
  for (; p < a.size(); ++p) emit(a[p], av[p]);
  for (; q < b.size(); ++q) emit(b[q], -bv[q]);
}

class PlaneRows {
 public:
  std::size_t size() const { return loss_.size(); }
  std::size_t bytes() const {
    return indices_.capacity() * sizeof(std::uint32_t) + values_.capacity() * sizeof(double) +
           size() * (sizeof(double) + sizeof(std::size_t) + sizeof(std::uint8_t) + sizeof(std::uint32_t)) + sizeof *this;
  }

  // Add the output with these features, where the truth has those of `a`.
  void add(std::span<const std::uint32_t> a, std::span<const double> av, std::span<const std::uint32_t> b,
           std::span<const double> bv, double loss) {
    each_difference(a, av, b, bv, [&](std::uint32_t index, double x) { indices_.push_back(index), values_.push_back(x); });
    close(loss, false);
  }
  void add_truth() { close(0.0, true); }
  // Nothing will be added any more: give back the memory that was kept for it.
  void shrink() {
    begin_.shrink_to_fit(), indices_.shrink_to_fit(), values_.shrink_to_fit(), loss_.shrink_to_fit(), truth_.shrink_to_fit();
  }

  bool is_truth(std::size_t k) const { return truth_[k] != 0; }
  double loss(std::size_t k) const { return loss_[k]; }
  std::span<const std::uint32_t> indices(std::size_t k) const { return {indices_.data() + begin_[k], begin_[k + 1] - begin_[k]}; }
  std::span<const double> values(std::size_t k) const { return {values_.data() + begin_[k], begin_[k + 1] - begin_[k]}; }

  // w.Δf of a row.
  double margin(std::size_t k, const double* w) const {
    double sum = 0.0;
    for (std::size_t e = begin_[k]; e < begin_[k + 1]; ++e) sum += values_[e] * w[indices_[e]];
    return sum;
  }
  // Σ |w Δf|: the scale of rounding errors.
  double scale(std::size_t k, const double* w) const {
    double sum = 0.0;
    for (std::size_t e = begin_[k]; e < begin_[k + 1]; ++e) sum += std::abs(values_[e] * w[indices_[e]]);
    return sum;
  }

  // The first row of the largest l - w.Δf, and that number. There must be a row.
  std::pair<std::size_t, double> best(const double* w) const {
    std::size_t best = 0;
    double top = loss_[0] - margin(0, w);
    for (std::size_t k = 1; k < size(); ++k) {
      const double value = loss_[k] - margin(k, w);
      if (value > top) top = value, best = k;
    }
    return {best, top};
  }

  // For each loss, or for all together, the first row other than the truth's with the smallest w.Δf;
  // in the order in which the losses were first seen.
  void best_by_loss(const double* w, bool any, std::vector<std::pair<std::size_t, double>>& out) {
    group();
    out.assign(any ? 1 : n_groups_, {size(), 0.0});
    for (std::size_t k = 0; k < size(); ++k) {
      if (is_truth(k)) continue;
      auto& [row, least] = out[any ? 0 : group_[k]];
      const double m = margin(k, w);
      if (row == size() || m < least) row = k, least = m;
    }
    if (n_groups_ == 0) out.clear();
  }

 private:
  void close(double loss, bool truth) {
    begin_.push_back(indices_.size());
    loss_.push_back(loss);
    truth_.push_back(truth);
  }
  // Number the losses.
  void group() {
    if (group_.size() == size()) return;
    std::map<double, std::uint32_t> numbers;
    group_.assign(size(), 0);
    for (std::size_t k = 0; k < size(); ++k) {
      if (!is_truth(k)) group_[k] = numbers.try_emplace(loss_[k], std::uint32_t(numbers.size())).first->second;
    }
    n_groups_ = numbers.size();
  }

  std::vector<std::size_t> begin_{0};
  std::vector<std::uint32_t> indices_;
  std::vector<double> values_, loss_;
  std::vector<std::uint8_t> truth_;
  std::vector<std::uint32_t> group_;
  std::size_t n_groups_ = 0;
};

}  // namespace mm
