// β with a cost-to-move ν, as the SAP paper has it: w = (u - β) s, with s = 1/ρ₂.
//
// Without a cost β is clip(u, t⁻, t⁺), and u - β is soft(u). With it β moves towards that fixed
// point by one step of (IV.14) after every example, in all coordinates:
//   β <- clip((1 - r) u + r β, t⁻, t⁺),   r = νCρ₂ / (1 + νCρ₂).
// While u_j rests, s steps take β_j to clip(u_j + r^s (β_j - u_j), t⁻, t⁺): below the clip the
// distance to u_j shrinks by r each time, and a β_j that meets the clip stays there, because u_j lies
// beyond. So β is kept as of some earlier step, row by row, and brought up to date when a row is read.
#pragma once

#include <algorithm>
#include <cmath>

#include "common.hpp"

namespace mm {

template <class T>
class SlowBeta {
 public:
  // Not there: β follows u at once.
  bool active() const { return decay_ > 0.0; }
  const T* data() const { return beta_.data(); }

  // n weights in rows of so many, of which an example reads all or none.
  void start(std::size_t n, std::size_t row, double decay, T lower, T upper, T scale) {
    decay_ = decay, lower_ = lower, upper_ = upper, scale_ = scale, row_ = row;
    beta_.reset(active() ? n : 0);
    stamp_.assign(active() ? (n + row - 1) / row : 0, time_);
  }
  void clear() {
    std::fill(beta_.data(), beta_.data() + beta_.size(), T(0));
    std::fill(stamp_.begin(), stamp_.end(), time_);
  }

  T weight(std::size_t j, T u) const { return (u - beta_[j]) * scale_; }

  // One step of (IV.14), in all coordinates; carried out when they are read.
  void tick() { ++time_; }
  // Bring a row up to date; true if it moved.
  bool refresh(std::size_t row, const T* u, T* w) {
    const std::uint64_t steps = time_ - stamp_[row];
    if (steps == 0) return false;
    stamp_[row] = time_;
    const T share = T(std::pow(decay_, double(steps)));
    const std::size_t end = std::min((row + 1) * row_, beta_.size());
    for (std::size_t j = row * row_; j < end; ++j) {
      beta_[j] = std::clamp(u[j] + share * (beta_[j] - u[j]), lower_, upper_);
      w[j] = weight(j, u[j]);
    }
    return true;
  }
  void refresh_all(const T* u, T* w) {
    for (std::size_t row = 0; row < stamp_.size(); ++row) refresh(row, u, w);
  }
  // After u or β were written: w follows. Without `beta`, β goes to its fixed point.
  void follow(const T* beta, const T* u, T* w) {
    for (std::size_t j = 0; j < beta_.size(); ++j) {
      beta_[j] = std::clamp(beta != nullptr ? beta[j] : u[j], lower_, upper_);
      w[j] = weight(j, u[j]);
    }
    std::fill(stamp_.begin(), stamp_.end(), time_);
  }

 private:
  double decay_ = 0.0;
  T lower_ = T(0), upper_ = T(0), scale_ = T(1);
  std::size_t row_ = 0;
  AlignedArray<T> beta_;
  std::vector<std::uint64_t> stamp_;  // per row: the step that its β is of
  std::uint64_t time_ = 0;
};

}  // namespace mm
