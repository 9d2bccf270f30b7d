// The primal side of the dual engine: u = C * sum of alpha * Δf, and w = link(u).
//
// A regulariser owns the link, the gradient of its conjugate:
//   L2           Ω(w) = ½|w|²                   w = u                     Ω*(u) = ½|w|²
//   elastic net  Ω(w) = ρ₁|w|₁ + (ρ₂/2)|w|²     w = soft(u, ρ₁) / ρ₂      Ω*(u) = (ρ₂/2)|w|²
// where soft(u, ρ) moves u towards zero by ρ, and to zero what is not further away. The weights
// that are zero are exactly zero. (soft(u, ρ₁) = u - β with β = clip(u, ±ρ₁): the β of the SAP
// paper, in closed form.)
//
// For L2, w and u are one array; else u is kept beside w and each touched coordinate is mapped.
#pragma once

#include <cmath>

#include "common.hpp"

namespace mm {

struct Link {
  double rho1 = 0.0, rho2 = 1.0;
  bool identity() const { return rho1 == 0.0 && rho2 == 1.0; }
};

template <class T>
class Weights {
 public:
  explicit Weights(std::size_t n, Link link = {})
      : link_(link), identity_(link.identity()), rho1_(T(link.rho1)), scale_(T(1.0 / link.rho2)),
        w_(n), u_(identity_ ? 0 : n) {}

  const Link& link() const { return link_; }
  T* data() { return w_.data(); }
  const T* data() const { return w_.data(); }
  T* sums() { return identity_ ? w_.data() : u_.data(); }
  const T* sums() const { return identity_ ? w_.data() : u_.data(); }
  std::size_t size() const { return w_.size(); }

  void add(std::size_t j, T amount) {
    if (identity_) [[likely]] {
      w_[j] += amount;
      return;
    }
    u_[j] += amount;
    const T w = shrink(u_[j]);
    moved_ += double(w) * double(w) - double(w_[j]) * double(w_[j]);
    w_[j] = w;
  }
  // By how much Ω*(u) changed through add() since the last call; not kept for L2.
  double take_change() { return 0.5 * link_.rho2 * std::exchange(moved_, 0.0); }
  void clear() {
    std::fill(w_.data(), w_.data() + w_.size(), T(0));
    std::fill(u_.data(), u_.data() + u_.size(), T(0));
    moved_ = 0.0;
  }
  // Another link: the sums stay, w follows.
  void set_link(Link link) {
    if (identity_ && !link.identity()) {
      u_.reset(w_.size());
      std::copy(w_.data(), w_.data() + w_.size(), u_.data());
    } else if (!identity_ && link.identity()) {
      std::copy(u_.data(), u_.data() + u_.size(), w_.data());
      u_.reset(0);
    }
    link_ = link;
    identity_ = link.identity();
    rho1_ = T(link.rho1);
    scale_ = T(1.0 / link.rho2);
    relink();
  }
  // After the sums were written: w follows.
  void relink() {
    for (std::size_t j = 0; j < u_.size(); ++j) w_[j] = shrink(u_[j]);
  }

  // Ω(w)
  double penalty() const {
    const double square = 0.5 * link_.rho2 * sum([](double w) { return w * w; });
    return link_.rho1 == 0.0 ? square : square + link_.rho1 * sum([](double w) { return std::abs(w); });
  }
  // Ω*(u)
  double conjugate() const { return 0.5 * link_.rho2 * sum([](double w) { return w * w; }); }

 private:
  T shrink(T u) const {
    if (u > rho1_) return (u - rho1_) * scale_;
    if (u < -rho1_) return (u + rho1_) * scale_;
    return T(0);
  }

  template <class F>
  double sum(F&& f) const {
    double sum = 0.0;
    const T* w = w_.data();
    constexpr std::size_t kChunk = 4096;
    for (std::size_t at = 0; at < w_.size(); at += kChunk) {
      const std::size_t end = std::min(at + kChunk, w_.size());
      double part[4] = {0, 0, 0, 0};
      std::size_t j = at;
      for (; j + 4 <= end; j += 4) {
        for (int k = 0; k < 4; ++k) part[k] += f(double(w[j + k]));
      }
      for (; j < end; ++j) part[0] += f(double(w[j]));
      sum += (part[0] + part[1]) + (part[2] + part[3]);
    }
    return sum;
  }

  Link link_;
  bool identity_;
  T rho1_, scale_;
  double moved_ = 0.0;
  AlignedArray<T> w_, u_;
};

}  // namespace mm
