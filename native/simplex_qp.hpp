// The quadratic program of a bundle method, over a few planes:
//
//   max over α   Σ_p α_p b_p - κ/2 α'Gα      s.t.  α >= 0,  Σ over the planes of a group of α <= C
//
// by block-coordinate ascent: the groups in turn, each by SMO (smo.hpp) with the rest of its mass on
// a plane of zero, the truth. The gradient b - κGα is kept for all planes, so that a step costs one
// row of G for each plane it moved. Any α on the way is feasible; the program's own duality gap,
//
//   Σ_groups C max(0, max_p g_p) - α·g,      g = b - κGα,
//
// is a sum over groups and says when it is solved.
#pragma once

#include <cmath>

#include "common.hpp"
#include "smo.hpp"

namespace mm {

struct SimplexQpResult {
  double gap = 0.0;      // of the α returned, from a gradient made anew
  std::int64_t steps = 0;
  int rounds = 0;
};

class SimplexQp {
 public:
  SimplexQp(const double* gram, std::size_t stride, std::span<const std::uint32_t> group,
            std::span<const double> b, double kappa, double C)
      : gram_(gram), stride_(stride), b_(b), kappa_(kappa), C_(C), gradient_(b.size()) {
    std::uint32_t groups = 0;
    for (const std::uint32_t g : group) groups = std::max(groups, g + 1);
    members_.resize(groups);
    for (std::size_t p = 0; p < group.size(); ++p) members_[group[p]].push_back(std::uint32_t(p));
    std::erase_if(members_, [](const auto& m) { return m.empty(); });
  }

  // Until the gap is at most `tolerance`, from a feasible α.
  SimplexQpResult solve(double* alpha, double tolerance, int max_rounds) {
    SimplexQpResult result;
    find_gradient(alpha);
    result.gap = gap(alpha);
    const double share = tolerance / (C_ * double(std::max<std::size_t>(members_.size(), 1)));
    // Deep solves of one group are undone by the next: a tenth of what it has is enough.
    const double depth = members_.size() > 1 ? 0.1 : 0.0;
    while (result.gap > tolerance && result.rounds < max_rounds) {
      for (const auto& members : members_) result.steps += improve(members, alpha, share, depth);
      ++result.rounds;
      result.gap = gap(alpha);
      // Rounding that the running gradient gathered must not end it too early or never.
      if (result.gap <= tolerance || result.rounds % 64 == 0) {
        find_gradient(alpha);
        result.gap = gap(alpha);
      }
    }
    return result;
  }

 private:
  void find_gradient(const double* alpha) {
    std::copy(b_.begin(), b_.end(), gradient_.begin());
    for (std::size_t p = 0; p < b_.size(); ++p) move(p, alpha[p]);
  }
  void move(std::size_t p, double delta) {
    if (delta == 0.0) return;
    const double* row = gram_ + p * stride_;
    const double step = kappa_ * delta;
    for (std::size_t q = 0; q < gradient_.size(); ++q) gradient_[q] -= step * row[q];
  }
  double gap(const double* alpha) const {
    double total = 0.0;
    for (const auto& members : members_) {
      double top = 0.0, held = 0.0;
      for (const std::uint32_t p : members) {
        top = std::max(top, gradient_[p]);
        held += alpha[p] * gradient_[p];
      }
      total += C_ * top - held;
    }
    return total;
  }

  int improve(const std::vector<std::uint32_t>& members, double* alpha, double tolerance, double depth) {
    const std::size_t m = members.size() + 1;
    local_.assign(m * m, 0.0);
    alpha_.assign(m, 0.0);
    F_.assign(m, 0.0);
    double left = C_, top = 0.0, low = kInfinity;
    for (std::size_t k = 1; k < m; ++k) {
      const std::uint32_t p = members[k - 1];
      alpha_[k] = alpha[p];
      left -= alpha[p];
      F_[k] = gradient_[p];
      top = std::max(top, F_[k]);
      if (alpha_[k] > 0.0) low = std::min(low, F_[k]);
    }
    // A sum of rounded numbers. What is left of nothing must not count as mass on the truth: it would
    // make the violation look large, and the group as good as solved.
    alpha_[0] = left > 1e-12 * C_ ? left : 0.0;
    if (alpha_[0] > 0.0) low = std::min(low, 0.0);
    if (!(top - low > tolerance)) return 0;
    for (std::size_t k = 1; k < m; ++k) {
      const double* row = gram_ + members[k - 1] * stride_;
      for (std::size_t l = 1; l < m; ++l) local_[k * m + l] = row[members[l - 1]];
    }
    const int steps = smo(m, local_.data(), m, kappa_, 0.0, 0.0, std::max(tolerance, depth * (top - low)), kMaxSteps,
                          alpha_.data(), F_.data());
    for (std::size_t k = 1; k < m; ++k) {
      const std::uint32_t p = members[k - 1];
      move(p, alpha_[k] - alpha[p]);
      alpha[p] = alpha_[k];
    }
    return steps;
  }

  static constexpr int kMaxSteps = 100000;

  const double* gram_;
  std::size_t stride_;
  std::span<const double> b_;
  double kappa_, C_;
  std::vector<double> gradient_;
  std::vector<std::vector<std::uint32_t>> members_;  // the planes of each group
  std::vector<double> local_, alpha_, F_;            // of the group at hand, the truth first
};

}  // namespace mm
