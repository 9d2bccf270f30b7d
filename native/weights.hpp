// The primal side of the dual engine: u = u₀ + C Σ α Δf, and w = link(u) (link.hpp).
//
// For L2, w and u are one array; else u is kept beside w and each touched coordinate is mapped.
// Weights that the link holds at zero are exactly zero.
//
// u₀ is a fixed linear term (Weights::set_fixed): the primal then has Ω(w) - w.u₀ in the place of
// Ω(w), and the dual is unchanged, C Σ α l - Ω*(u), with the u that contains u₀.
//
// With a kernel, w is a linear map of u that the structure knows (Structure::map_weights), and with
// it Ω(w) = Ω*(u) = ½ u.w: the weights are *mapped*. u is kept beside w, and the structure writes
// both; add() is not for them.
#pragma once

#include <cmath>

#include "link.hpp"
#include "own_blocks.hpp"
#include "row_slopes.hpp"
#include "slow_beta.hpp"

namespace mm {

template <class T>
class Weights;

// Sums over some of the rows of weights (consensus.hpp).
template <class T>
struct GatheredRows {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  const std::uint32_t* place;  // of each row; kNone: it is left out
  std::size_t row;             // weights in a row
  T* sums = nullptr;           // Σ a of each weight of these rows, unless null
  float* squares = nullptr;    // Σ a² over each of the rows, unless null
  Weights<T>* others = nullptr;  // what is added to other rows, unless null
  void add(std::size_t j, T amount) const {
    const std::size_t at = j / row;
    if (place[at] == kNone) {
      if (others != nullptr) others->add(j, amount);
      return;
    }
    if (squares != nullptr) squares[place[at]] += float(amount) * float(amount);
    if (sums == nullptr) return;
    sums[place[at] * row + (j - at * row)] += amount;
  }
};

template <class T>
class Weights {
 public:
  // `row`: weights come in rows of so many, of which an example reads all or none.
  explicit Weights(std::size_t n, Link link = {}, std::size_t row = 0, bool mapped = false) : mapped_(mapped), row_(row), w_(n) {
    adopt(std::move(link));
    relink();
  }

  // Nothing yet; become() makes it a copy.
  Weights() : mapped_(false), row_(0) {}
  // w where no plane has a multiplier, as relink() makes it.
  T at_rest(std::size_t j) const {
    const T u = fixed_.size() == 0 ? T(0) : fixed_[j];
    if (identity_) return u;
    if (scales_.size() > 0) return T(scales_[j] * double(u));
    return uniform_ ? shrink(u) : T(link_.weight(j, double(u)));
  }
  // They become that, until planes are added anew.
  void rest(std::size_t j) {
    if (!identity_) u_[j] = fixed_.size() == 0 ? T(0) : fixed_[j];
    w_[j] = at_rest(j);
  }
  // The sums of `all`, to which one of several threads adds blocks of its own; w must be made of them in the end (relink).
  Weights(Weights& all, std::size_t member, std::size_t members)
      : link_(all.link_), identity_(false), direct_(false), plain_(false), mapped_(false), row_(all.row_), own_blocks_{all.sums(), member, members - 1} {}

  // ---- as one member of a consensus has them (consensus.hpp) ----

  // From here on w follows u by the slopes of rows, and u is not kept where these have a code; nullptr: everywhere by the link.
  void set_slopes(RowSlopes<T>* slopes) {
    slopes_ = slopes;
    direct_ = identity_ && slopes == nullptr;
    moved_ = sloped_ = total_ = 0.0;
  }
  // By how much Ω*(u) and what stands for it changed since the slopes were set.
  double moved_in_all() { return take_change(), total_; }
  // A copy of others, with memory of its own. (Not where w has β.) `zero`: all of them are zero, and need not be read.
  void become(const Weights& all, bool zero) {
    link_ = all.link_;
    identity_ = direct_ = all.identity_;
    uniform_ = all.uniform_, plain_ = all.plain_;
    row_ = all.row_, steepest_ = all.steepest_;
    lower_ = all.lower_, upper_ = all.upper_, scale_ = all.scale_;
    if (zero && w_.size() == 0) return w_.reset(all.w_.size()), u_.reset(all.u_.size()), copy(all.scales_, scales_);
    copy(all.w_, w_), copy(all.u_, u_), copy(all.scales_, scales_);
  }

  // No weights: what is added goes to `gathered`.
  explicit Weights(GatheredRows<T>& gathered) : identity_(false), direct_(false), plain_(false), mapped_(false), row_(gathered.row), gathered_(&gathered) {}

  const Link& link() const { return link_; }
  // What w moves by at most, for each unit that u moves.
  double steepest() const { return steepest_; }
  T* data() { return w_.data(); }
  const T* data() const { return w_.data(); }
  T* sums() { return identity_ ? w_.data() : u_.data(); }
  const T* sums() const { return identity_ ? w_.data() : u_.data(); }
  std::size_t size() const { return w_.size(); }
  std::size_t bytes() const { return (w_.size() + u_.size()) * sizeof(T) + scales_.size() * sizeof(double); }

  void add(std::size_t j, T amount) {
    if (direct_) [[likely]] {
      w_[j] += amount;
    } else {
      add_apart(j, amount);
    }
  }
  [[gnu::noinline]] void add_apart(std::size_t j, T amount) {
    if (slopes_ == nullptr) return add_linked(j, amount);
    add_sloped(j, amount);
  }
  // Some columns of some rows: row f begins at weight f * stride.
  template <int N>
  void add_rows(std::span<const std::uint32_t> rows, std::size_t stride, const std::uint32_t* column, const T* amount) {
    if (direct_) [[likely]] return add_rows_with<N>(Direct{w_.data()}, rows, stride, column, amount);
    if (slopes_ != nullptr) return add_sloped_rows<N>(rows, stride, column, amount);
    adding_linked([&](auto&& add) { add_rows_with<N>(add, rows, stride, column, amount); });
  }

  // Where w is not u. Apart, so that the inner loops of L2 hold no more than an addition.
  [[gnu::noinline]] void add_linked(std::size_t j, T amount) {
    if (own_blocks_.sums != nullptr) return own_blocks_.add(j, amount);
    if (gathered_ != nullptr) return gathered_->add(j, amount);
    if (plain_) [[likely]] {
      u_[j] += amount;
      const T w = shrink(u_[j]);
      moved_ += double(w) * double(w) - double(w_[j]) * double(w_[j]);
      w_[j] = w;
      return;
    }
    if (scales_.size() > 0) {
      Scaled scaled{u_.data(), w_.data(), scales_.data()};
      scaled(j, amount);
      moved_ += scaled.moved;
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
      w_[j] = beta_.weight(j, u_[j]);
      return;
    }
    const double before = link_.conjugate(j, double(u_[j]), double(w_[j]));
    u_[j] += amount;
    w_[j] = T(link_.weight(j, double(u_[j])));
    moved_ += link_.conjugate(j, double(u_[j]), double(w_[j])) - before;
  }

  // f(add), with a function add(j, amount) that does what the one above does: loops over many
  // coordinates ask only once what kind of link there is. Where w is not u (`add.linked`),
  // add.fetch(j) starts to fetch what the visit has not read yet.
  template <class F>
  void adding(F&& f) {
    if (direct_) [[likely]] {
      f(Direct{w_.data()});
    } else if (slopes_ != nullptr) {
      f(Sloped{this});
    } else {
      adding_linked(f);
    }
  }
  template <class F>
  [[gnu::noinline]] void adding_linked(F&& f) {
    if (own_blocks_.sums != nullptr) {
      f(Sharing{own_blocks_});
    } else if (gathered_ != nullptr) {
      f(Linked{this});
    } else if (plain_) {
      Plain plain{u_.data(), w_.data(), lower_, upper_, scale_};
      f(plain);
      moved_ += plain.moved;
    } else if (scales_.size() > 0) {
      Scaled scaled{u_.data(), w_.data(), scales_.data()};
      f(scaled);
      moved_ += scaled.moved;
    } else {
      f(Linked{this});
    }
  }

  // Is w linear in u?
  bool linear() const { return identity_ || mapped_; }
  // Is the dual quadratic, so that the model of a step is the dual itself? Also w = s u is.
  bool quadratic() const { return slopes_ == nullptr && (linear() || (plain_ && lower_ == T(0) && upper_ == T(0))); }

  bool mapped() const { return mapped_; }
  // While u is being made anew, w waits for it to be complete.
  bool sums_only() const { return sums_only_; }
  void set_sums_only(bool only) { sums_only_ = only; }

  // ---- the fixed linear term ----

  // Replace u₀ (nullptr: none); u moves by the difference and w follows.
  void set_fixed(const T* fixed) {
    T* u = sums();
    for (std::size_t j = 0; j < fixed_.size(); ++j) u[j] -= fixed_[j];
    fixed_.reset(fixed != nullptr ? w_.size() : 0);
    if (fixed != nullptr) std::copy(fixed, fixed + w_.size(), fixed_.data());
    for (std::size_t j = 0; j < fixed_.size(); ++j) u[j] += fixed_[j];
    relink();
  }
  const T* fixed() const { return fixed_.size() == 0 ? nullptr : fixed_.data(); }
  // w.u₀
  double fixed_gain() const {
    double sum = 0.0;
    for (std::size_t j = 0; j < fixed_.size(); ++j) sum += double(w_[j]) * double(fixed_[j]);
    return sum;
  }
  // u receives what another share of the examples added to it.
  void receive(const T* change) {
    for (std::size_t j = 0; j < w_.size(); ++j) {
      if (change[j] != T(0)) add(j, change[j]);
    }
    moved_ = 0.0;
  }

  // ---- one sparse vector at a time, instead of weights ----

  // A vector that knows where it was written.
  static Weights recorder(std::size_t n) {
    Weights vector(n);
    vector.identity_ = vector.direct_ = false;
    vector.recording_ = true;
    vector.plain_ = false;
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

  // ---- β with a cost-to-move (slow_beta.hpp) ----

  bool lagging() const { return beta_.active(); }
  const T* beta() const { return beta_.data(); }
  void tick() { beta_.tick(); }
  bool refresh(std::size_t row) { return beta_.refresh(row, u_.data(), w_.data()); }
  void refresh_all() { beta_.refresh_all(u_.data(), w_.data()); }
  void follow(const T* beta = nullptr) { beta_.follow(beta, u_.data(), w_.data()); }
  // How far the furthest weight is from where β's fixed point would have it.
  double unsettled() const {
    double most = 0.0;
    if (!lagging()) return most;
    for (std::size_t j = 0; j < u_.size(); ++j) most = std::max(most, std::abs(double(w_[j]) - double(shrink(u_[j]))));
    return most;
  }

  // By how much Ω*(u) changed through add() since the last call; not kept for L2.
  double take_change() {
    const double moved = std::exchange(moved_, 0.0), change = (uniform_ ? 0.5 / link_.scale.all * moved : moved) + std::exchange(sloped_, 0.0);
    total_ += change;
    return change;
  }
  // ---- along a direction d of u, for steps on all parts at once ----

  // out = the derivative of the link times d. Where the link is flat, `least` of its slope is taken.
  void times_slope(const T* d, double least, T* out) const {
    const T* u = sums();
    if (uniform_) {
      const T flat = T(least) * scale_;
      for (std::size_t j = 0; j < w_.size(); ++j) out[j] = d[j] * (u[j] > upper_ || u[j] < lower_ ? scale_ : flat);
      return;
    }
    for (std::size_t j = 0; j < w_.size(); ++j) out[j] = T(double(d[j]) * std::max(link_.slope(j, double(u[j])), least * link_.scale.at(j)));
  }
  // Ω*(u + t d) - Ω*(u), its derivative by t and the derivative of that.
  struct Along {
    double value = 0.0, slope = 0.0, bend = 0.0;
  };
  Along along(const T* d, double t) const {
    Along sum;
    const T* u = sums();
    if (uniform_) {
      const double lower = link_.lower.all, upper = link_.upper.all;
      for (std::size_t j = 0; j < w_.size(); ++j) {
        const double dj = double(d[j]), at = double(u[j]) + t * dj;
        const double before = Link::soft(double(u[j]), lower, upper), after = Link::soft(at, lower, upper);
        sum.value += (after - before) * (after + before);
        sum.slope += dj * after;
        sum.bend += after != 0.0 ? dj * dj : 0.0;
      }
      const double s = link_.scale.all;
      return {0.5 * s * sum.value, s * sum.slope, s * sum.bend};
    }
    for (std::size_t j = 0; j < w_.size(); ++j) {
      const double dj = double(d[j]);
      if (dj == 0.0) continue;
      const double from = double(u[j]), at = from + t * dj, w = link_.weight(j, at);
      sum.value += link_.conjugate(j, at, w) - link_.conjugate(j, from, link_.weight(j, from));
      sum.slope += dj * w;
      sum.bend += dj * dj * link_.slope(j, at);
    }
    return sum;
  }
  // As before the first step: u = u₀.
  void clear() {
    std::fill(w_.data(), w_.data() + w_.size(), T(0));
    std::fill(u_.data(), u_.data() + u_.size(), T(0));
    std::copy(fixed_.data(), fixed_.data() + fixed_.size(), sums());
    beta_.clear();
    moved_ = 0.0;
    relink();
  }
  // Another link: the sums stay, w follows.
  void set_link(Link link) {
    if (mapped_) return;  // goes with L2 only
    AlignedArray<T> u(w_.size());
    std::copy(sums(), sums() + u.size(), u.data());
    adopt(std::move(link));
    std::copy(u.data(), u.data() + u.size(), sums());
    relink();
  }
  // After the sums were written: w follows.
  void relink() {
    if (lagging()) return follow();
    if (mapped_ || identity_) return;
    if (scales_.size() > 0) {
      for (std::size_t j = 0; j < u_.size(); ++j) w_[j] = T(scales_[j] * double(u_[j]));
      return;
    }
    for (std::size_t j = 0; j < u_.size(); ++j) w_[j] = uniform_ ? shrink(u_[j]) : T(link_.weight(j, double(u_[j])));
  }

  // Ω(w)
  double penalty() const {
    if (mapped_) return half_product();
    if (scales_.size() > 0) return 0.5 * sum([&](std::size_t j, double w) { return w == 0.0 ? 0.0 : w * w / scales_[j]; });
    if (!uniform_) return sum([&](std::size_t j, double w) { return link_.penalty(j, w); });
    const double square = 0.5 / link_.scale.all * sum([](std::size_t, double w) { return w * w; });
    const double lower = link_.lower.all, upper = link_.upper.all;
    if (lower == 0.0 && upper == 0.0) return square;
    return square + sum([&](std::size_t, double w) { return w > 0.0 ? upper * w : lower * w; });
  }
  // Ω*(u)
  double conjugate() const {
    if (mapped_) return half_product();
    if (scales_.size() > 0) return 0.5 * sum([&](std::size_t j, double) { return scales_[j] * double(u_[j]) * double(u_[j]); });
    if (!uniform_) return sum([&](std::size_t j, double w) { return link_.conjugate(j, double(u_[j]), w); });
    if (!lagging()) return 0.5 / link_.scale.all * sum([](std::size_t, double w) { return w * w; });
    return 0.5 / link_.scale.all * sum([&](std::size_t j, double) { return double(shrink(u_[j])) * double(shrink(u_[j])); });
  }

 private:
  struct Direct {
    static constexpr bool linked = false;
    T* w;
    void fetch(std::size_t) const {}
    void operator()(std::size_t j, T amount) const { w[j] += amount; }
  };
  // One pair of thresholds and one scale, without branches: u - clip(u) is soft(u), bit for bit.
  struct Plain {
    static constexpr bool linked = true;
    T* u;
    T* w;
    T lower, upper, scale;
    double moved = 0.0;
    void fetch(std::size_t j) const { prefetch(u + j); }
    void operator()(std::size_t j, T amount) {
      const T now = u[j] + amount, before = w[j];
      const T after = (now - std::min(std::max(now, lower), upper)) * scale;
      u[j] = now;
      w[j] = after;
      moved += double(after) * double(after) - double(before) * double(before);
    }
  };
  // A scale for each weight: Ω* is half of s u², of u alone. (Half of u w is the same but for the rounding of w, beside
  // which the gains of the last steps are small.)
  struct Scaled {
    static constexpr bool linked = true;
    T* u;
    T* w;
    const double* s;
    double moved = 0.0;
    void fetch(std::size_t j) const { prefetch(u + j), prefetch(s + j); }
    void operator()(std::size_t j, T amount) {
      const double before = double(u[j]);
      u[j] += amount;
      w[j] = T(s[j] * double(u[j]));
      moved += 0.5 * s[j] * (double(u[j]) - before) * (double(u[j]) + before);
    }
  };
  // One of several threads, with slopes of rows.
  struct Sloped {
    static constexpr bool linked = false;
    Weights* weights;
    void fetch(std::size_t) const {}
    void operator()(std::size_t j, T amount) const { weights->add_apart(j, amount); }
  };
  // One of several, which adds to blocks of its own.
  struct Sharing {
    static constexpr bool linked = false;
    OwnBlocks<T> own;
    void fetch(std::size_t) const {}
    void operator()(std::size_t j, T amount) const { own.add(j, amount); }
  };
  struct Linked {
    static constexpr bool linked = true;
    Weights* weights;
    void fetch(std::size_t) const {}
    void operator()(std::size_t j, T amount) const { weights->add_linked(j, amount); }
  };

  template <int N, class Add>
  static void add_rows_with(Add&& add, std::span<const std::uint32_t> rows, std::size_t stride, const std::uint32_t* column, const T* amount) {
    std::uint32_t l[N];
    T a[N];
    for (int k = 0; k < N; ++k) l[k] = column[k], a[k] = amount[k];
    if constexpr (std::remove_cvref_t<Add>::linked) {
      for (const std::uint32_t f : rows) {
        for (int k = 0; k < N; ++k) add.fetch(f * stride + l[k]);
      }
    }
    for (const std::uint32_t f : rows) {
      const std::size_t row = f * stride;
      for (int k = 0; k < N; ++k) add(row + l[k], a[k]);
    }
  }
  void add_sloped(std::size_t j, T amount) {
    const std::size_t at = j / slopes_->row();
    const std::uint32_t code = slopes_->move(at, slopes_->bit_of(j - at * slopes_->row()));
    if (code == 0 && !identity_) return add_linked(j, amount);
    const T before = w_[j], now = before + RowSlopes<T>::slope_of(code) * amount;
    w_[j] = now;
    sloped_ += 0.5 * double(amount) * (double(before) + double(now));
  }
  // What Ω* moves by is the integral of w over what u moves by. Two sums hide the latency of their additions.
  template <int N>
  [[gnu::noinline]] void add_sloped_rows(std::span<const std::uint32_t> rows, std::size_t stride, const std::uint32_t* column, const T* amount) {
    std::uint32_t l[N];
    T a[N];
    RowSlopes<T>& slopes = *slopes_;
    std::uint32_t bits = 0;
    for (int k = 0; k < N; ++k) l[k] = column[k], a[k] = amount[k], bits |= slopes.bit_of(l[k]);
    if (!identity_ || stride != slopes.row()) {
      for (const std::uint32_t f : rows) {
        for (int k = 0; k < N; ++k) add_apart(f * stride + l[k], a[k]);
      }
      return;
    }
    for (const std::uint32_t f : rows) slopes.fetch(f);
    double moved[2] = {0.0, 0.0};
    for (std::size_t r = 0; r < rows.size(); ++r) {
      T* const row = w_.data() + rows[r] * stride;
      const T slope = RowSlopes<T>::slope_of(slopes.move(rows[r], bits));
      T sum = T(0);
      for (int k = 0; k < N; ++k) {
        const T before = row[l[k]], now = before + slope * a[k];
        row[l[k]] = now;
        sum += a[k] * (before + now);
      }
      moved[r & 1] += double(sum);
    }
    sloped_ += 0.5 * (moved[0] + moved[1]);
  }
  static void copy(const auto& from, auto& to) {
    if (to.size() != from.size()) to.reset(from.size());
    std::copy(from.data(), from.data() + from.size(), to.data());
  }

  T shrink(T u) const { return Link::soft(u, lower_, upper_) * scale_; }

  // ½ u.w
  double half_product() const {
    return 0.5 * sum([&](std::size_t j, double w) { return double(u_[j]) * w; });
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
        for (std::size_t k = 0; k < 4; ++k) part[k] += f(j + k, double(w[j + k]));
      }
      for (; j < end; ++j) part[0] += f(j, double(w[j]));
      sum += (part[0] + part[1]) + (part[2] + part[3]);
    }
    return sum;
  }

  void adopt(Link link) {
    link_ = std::move(link);
    identity_ = direct_ = link_.identity() && !mapped_;
    uniform_ = link_.uniform();
    steepest_ = link_.steepest();
    lower_ = T(link_.lower.all), upper_ = T(link_.upper.all), scale_ = T(link_.scale.all);
    u_.reset(identity_ ? 0 : w_.size());
    beta_.start(w_.size(), row_, link_.decay, lower_, upper_, scale_);
    plain_ = uniform_ && !lagging();
    scales_.reset(link_.scaled() && !mapped_ ? w_.size() : 0);
    if (scales_.size() > 0) std::copy(link_.scale.each->begin(), link_.scale.each->end(), scales_.data());
  }

  Link link_;
  bool identity_ = true, direct_ = true;  // w is u; and no other thread must be told
  bool uniform_ = true, plain_ = true, mapped_, recording_ = false, sums_only_ = false;
  std::vector<std::size_t> touched_;
  std::size_t row_;
  RowSlopes<T>* slopes_ = nullptr;
  OwnBlocks<T> own_blocks_;
  GatheredRows<T>* gathered_ = nullptr;
  T lower_ = T(0), upper_ = T(0), scale_ = T(1);
  double moved_ = 0.0, sloped_ = 0.0, total_ = 0.0, steepest_ = 1.0;
  AlignedArray<T> w_, u_, fixed_;
  AlignedArray<double> scales_;  // of each weight, where the link has nothing else
  SlowBeta<T> beta_;
};

}  // namespace mm
