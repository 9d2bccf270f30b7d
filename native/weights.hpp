// The primal side of the dual engine: u = C * sum of alpha * Δf, and w = link(u).
//
// A regulariser owns the link, the gradient of its conjugate:
//   L2           Ω(w) = ½|w|²                   w = u                     Ω*(u) = ½|w|²
//   elastic net  Ω(w) = ρ₁|w|₁ + (ρ₂/2)|w|²     w = soft(u, ρ₁) / ρ₂      Ω*(u) = (ρ₂/2)|w|²
// where soft(u, ρ) moves u towards zero by ρ, and to zero what is not further away. The weights
// that are zero are exactly zero. (soft(u, ρ₁) = u - β with β = clip(u, ±ρ₁): the β of the SAP
// paper, in closed form.)
//
// Weights may be held at zero (select()): Ω(w) is infinite for any other value of theirs, and Ω*(u)
// does not see their u. A re-fit of the weights that a sparse model selected is L2 with the rest held.
//
// For L2, w and u are one array; else u is kept beside w and each touched coordinate is mapped.
//
// With a cost-to-move ν the SAP paper moves β towards its fixed point by one step of (IV.14) after
// every example, in all coordinates:
//   β <- clip((1 - r) u + r β, ±ρ₁),   r = νCρ₂ / (1 + νCρ₂),        w = (u - β) / ρ₂.
// While u_j rests, s steps take β_j to clip(u_j + r^s (β_j - u_j), ±ρ₁): below the clip the distance
// to u_j shrinks by r each time, and a β_j that meets the clip stays there, because u_j lies beyond.
// So β is kept as of some earlier step, row by row, and brought up to date when a row is read.
//
// With a kernel, w is a linear map of u that the structure knows (Structure::map_weights), and with
// it Ω(w) = Ω*(u) = ½ u.w: the weights are *mapped*. u is kept beside w, and the structure writes
// both; add() is not for them.
#pragma once

#include <cmath>

#include "common.hpp"

namespace mm {

struct Link {
  double rho1 = 0.0, rho2 = 1.0;
  double decay = 0.0;  // r above; 0: β is always at its fixed point
  bool identity() const { return rho1 == 0.0 && rho2 == 1.0 && decay == 0.0; }
};

template <class T>
class Weights {
 public:
  // `row`: weights come in rows of so many, of which an example reads all or none.
  explicit Weights(std::size_t n, Link link = {}, std::size_t row = 0, bool mapped = false)
      : link_(link), identity_(link.identity() && !mapped), mapped_(mapped), row_(row), rho1_(T(link.rho1)), scale_(T(1.0 / link.rho2)),
        w_(n), u_(identity_ ? 0 : n) {
    start_lag();
  }

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
    if (recording_) {
      if (w_[j] == T(0)) touched_.push_back(j);
      w_[j] += amount;
      return;
    }
    if (lagging()) {
      const double before = shrink(u_[j]);
      u_[j] += amount;
      const double after = shrink(u_[j]);
      moved_ += after * after - before * before;
      w_[j] = (u_[j] - beta_[j]) * scale_;
      return;
    }
    u_[j] += amount;
    const T w = held(j) ? T(0) : shrink(u_[j]);
    moved_ += double(w) * double(w) - double(w_[j]) * double(w_[j]);
    w_[j] = w;
  }

  // Hold all weights at zero but those where `kept` is not zero. Not together with a cost-to-move.
  void select(const T* kept) {
    if (identity_) {
      u_.reset(w_.size());
      std::copy(w_.data(), w_.data() + w_.size(), u_.data());
      identity_ = false;
    }
    held_.resize(w_.size());
    for (std::size_t j = 0; j < w_.size(); ++j) held_[j] = kept[j] == T(0);
    relink();
  }
  bool selected() const { return !held_.empty(); }
  bool held(std::size_t j) const { return !held_.empty() && held_[j] != 0; }
  // Is w linear in u, so that the quadratic model of a step is the dual itself?
  bool linear() const { return identity_ || mapped_; }

  bool mapped() const { return mapped_; }
  // While u is being made anew, w waits for it to be complete.
  bool sums_only() const { return sums_only_; }
  void set_sums_only(bool only) { sums_only_ = only; }

  // ---- one sparse vector at a time, instead of weights ----

  // A vector that knows where it was written.
  static Weights recorder(std::size_t n) {
    Weights vector(n);
    vector.identity_ = false;
    vector.recording_ = true;
    return vector;
  }
  // Where it is not zero, ascending.
  void places(std::vector<std::size_t>& out) {
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    out.clear();
    for (const std::size_t j : touched_) {
      if (w_[j] != T(0)) out.push_back(j);
    }
  }
  // Move the entries that are not zero behind others, in the order of their first writing.
  void drain(std::vector<std::uint32_t>& places, std::vector<T>& values) {
    for (const std::size_t j : touched_) {
      if (w_[j] == T(0)) continue;  // or listed before
      places.push_back(std::uint32_t(j));
      values.push_back(std::exchange(w_[j], T(0)));
    }
    touched_.clear();
  }
  void wipe() {
    for (const std::size_t j : touched_) w_[j] = T(0);
    touched_.clear();
  }

  // ---- β with a cost-to-move ----

  bool lagging() const { return link_.decay > 0.0; }
  const T* beta() const { return beta_.data(); }
  // One step of (IV.14), in all coordinates; carried out when they are read.
  void tick() { ++time_; }
  // Bring a row up to date; true if it moved.
  bool refresh(std::size_t row) {
    const std::uint64_t steps = time_ - stamp_[row];
    if (steps == 0) return false;
    stamp_[row] = time_;
    const T share = T(std::pow(link_.decay, double(steps)));
    const std::size_t end = std::min((row + 1) * row_, w_.size());
    for (std::size_t j = row * row_; j < end; ++j) {
      beta_[j] = std::clamp(u_[j] + share * (beta_[j] - u_[j]), -rho1_, rho1_);
      w_[j] = (u_[j] - beta_[j]) * scale_;
    }
    return true;
  }
  void refresh_all() {
    for (std::size_t row = 0; row < stamp_.size(); ++row) refresh(row);
  }
  // After u or β were written: w follows. Without `beta`, β goes to its fixed point.
  void follow(const T* beta = nullptr) {
    for (std::size_t j = 0; j < beta_.size(); ++j) {
      beta_[j] = std::clamp(beta != nullptr ? beta[j] : u_[j], -rho1_, rho1_);
      w_[j] = (u_[j] - beta_[j]) * scale_;
    }
    std::fill(stamp_.begin(), stamp_.end(), time_);
  }
  // How far the furthest weight is from where β's fixed point would have it.
  double unsettled() const {
    double most = 0.0;
    for (std::size_t j = 0; j < beta_.size(); ++j) most = std::max(most, std::abs(double(w_[j]) - double(shrink(u_[j]))));
    return most;
  }
  // By how much Ω*(u) changed through add() since the last call; not kept for L2.
  double take_change() { return 0.5 * link_.rho2 * std::exchange(moved_, 0.0); }
  void clear() {
    std::fill(w_.data(), w_.data() + w_.size(), T(0));
    std::fill(u_.data(), u_.data() + u_.size(), T(0));
    std::fill(beta_.data(), beta_.data() + beta_.size(), T(0));
    std::fill(stamp_.begin(), stamp_.end(), time_);
    moved_ = 0.0;
  }
  // Another link: the sums stay, w follows, nothing is held any more.
  void set_link(Link link) {
    if (mapped_) return;  // goes with L2 only
    held_.clear();
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
    start_lag();
    relink();
  }
  // After the sums were written: w follows.
  void relink() {
    if (lagging()) return follow();
    if (mapped_) return;
    for (std::size_t j = 0; j < u_.size(); ++j) w_[j] = held(j) ? T(0) : shrink(u_[j]);
  }

  // Ω(w)
  double penalty() const {
    if (mapped_) return half_product();
    const double square = 0.5 * link_.rho2 * sum([](double w) { return w * w; });
    return link_.rho1 == 0.0 ? square : square + link_.rho1 * sum([](double w) { return std::abs(w); });
  }
  // Ω*(u)
  double conjugate() const {
    if (mapped_) return half_product();
    if (!lagging()) return 0.5 * link_.rho2 * sum([](double w) { return w * w; });
    double square = 0.0;
    for (std::size_t j = 0; j < u_.size(); ++j) square += double(shrink(u_[j])) * double(shrink(u_[j]));
    return 0.5 * link_.rho2 * square;
  }

 private:
  T shrink(T u) const {
    if (u > rho1_) return (u - rho1_) * scale_;
    if (u < -rho1_) return (u + rho1_) * scale_;
    return T(0);
  }

  // ½ u.w
  double half_product() const {
    double sum = 0.0;
    for (std::size_t j = 0; j < w_.size(); ++j) sum += double(u_[j]) * double(w_[j]);
    return 0.5 * sum;
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

  void start_lag() {
    beta_.reset(lagging() ? w_.size() : 0);
    stamp_.assign(lagging() ? (w_.size() + row_ - 1) / row_ : 0, time_);
  }

  Link link_;
  bool identity_, mapped_, recording_ = false, sums_only_ = false;
  std::vector<std::size_t> touched_;
  std::size_t row_;
  T rho1_, scale_;
  double moved_ = 0.0;
  AlignedArray<T> w_, u_, beta_;
  std::vector<std::uint8_t> held_;    // empty: none is
  std::vector<std::uint64_t> stamp_;  // per row: the step that its β is of
  std::uint64_t time_ = 0;
};

}  // namespace mm
