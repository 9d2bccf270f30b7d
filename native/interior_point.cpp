// The interior point of interior_point.hpp.
#include "interior_point.hpp"

namespace mm {
namespace {

constexpr double kReach = 0.995;      // share of the step to the boundary that is taken
constexpr double kMix = 0.1;          // share of the centred multipliers in a warm start
constexpr int kPatience = 12;         // iterations without progress before it gives up
constexpr double kSigma = 0.02;       // least centring while w is not that of the multipliers: full steps join them
constexpr double kExhausted = 1e-16;  // of the dual: complementarity below it is rounding
constexpr double kFinest = 1e-15;      // of the dual: no smaller gap is asked for
constexpr double kNoRoom = 1e-8;       // of the dual: a gap at which its rounding may be what is left
constexpr double kBalance = 100.0;     // a gap so much above that of the iteration itself is not a gap of the dual
constexpr double kRounding = 1e-11;    // by which two sums of the same numbers may differ, over their sizes
constexpr double kDigits = 1e-13;      // the same, of the first condition after a step: beyond it, columns lose digits
constexpr double kNear = 1e-9;        // the same where a kink or bound adds μ over the distance from it
constexpr double kCycles = 0.5;       // of a multiplication, when many are made at once
constexpr double kSolves = 20.0;      // iterations that a solve is expected to take

// ξ above all F with Σ μ / (ξ - F_k) = C, or C ξ with quadratic slacks. The sum falls and the right side does not,
// and ξ - max F is between μ/C and (number of F) μ/C in the linear case: bisection.
template <class Sum>
double centre(double top, double low, double high, Sum&& excess) {
  for (int k = 0; k < 200 && high > low * (1.0 + 1e-12); ++k) {
    const double middle = std::sqrt(low * high);
    if (!(middle > low && middle < high)) break;
    (excess(top + middle, middle) > 0.0 ? low : high) = middle;
  }
  return high;
}

class Interior {
 public:
  Interior(const PlaneProgram& program, const InteriorOptions& options, const std::function<bool()>& halt)
      : q_(program), options_(options), halt_(halt), n_(program.planes.size()), parts_(program.n_parts()), d_(program.columns.size()),
        linear_(program.slack == Slack::kLinear), hard_(program.slack == Slack::kHard),
        fixed_curvature_(quadratic(program)), newton_(program, fixed_curvature_) {
    truth_ = n_;
    std::size_t at = n_ + (linear_ ? parts_ : 0);
    for (std::size_t j = 0; j < d_; ++j) {
      if (q_.columns[j].kinked()) kinks_.push_back({j, at}), at += 2;
    }
    for (std::size_t j = 0; j < d_; ++j) {
      if (q_.columns[j].least > -kInfinity) lows_.push_back({j, at++});
      if (q_.columns[j].most < kInfinity) highs_.push_back({j, at++});
    }
    pairs_ = at;
    for (auto* v : {&s_, &z_, &ds_, &dz_, &rp_, &rc_, &g_}) v->assign(pairs_, 0.0);
    w_.assign(d_, 0.0), xi_.assign(parts_, 0.0), dxi_.assign(parts_, 0.0);
    tau_.assign(kinks_.size(), 0.0), dtau_.assign(kinks_.size(), 0.0);
    D_.assign(n_, 0.0), D0_.assign(parts_, 0.0), Q_.assign(d_, 0.0), c_.assign(parts_, 0.0);
  }

  InteriorResult run(std::vector<double> z, const std::vector<double>* own) {
    InteriorResult result;
    result.by_planes = newton_.by_planes();
    result.start = result.value = evaluate(q_, z, u_, w_, F_);
    result.z = z;
    result.w = w_;
    result.F = F_;
    start_w_ = w_;
    const double gap = result.value.gap();
    if (own != nullptr) {
      const double primal = primal_over(q_, *own, F_);
      if (primal < result.value.primal) {
        result.start.primal = result.value.primal = primal;
        result.w = *own, result.F = F_;
      }
    }
    if (!(result.value.gap() > options_.accuracy)) return result;
    bool done = false;
    if (options_.warm && std::isfinite(gap)) {
      warm_start(z, gap);
      done = iterate(result) || (result.only_w && result.value.gap() <= options_.accuracy);
    }
    if (!done && !result.interrupted) {
      ++result.cold_starts;
      cold_start();
      iterate(result);
    }
    return result;
  }

  static bool quadratic(const PlaneProgram& program) {
    for (const PlaneColumn& c : program.columns) {
      if (c.kinked() || c.least > -kInfinity || c.most < kInfinity) return false;
    }
    return true;
  }

 private:
  struct Place {
    std::size_t column, pair;
  };

  // ---- starting points ----

  void cold_start() {
    double sum = 0.0, top = 0.0;
    for (const double C : q_.C) sum += C;
    for (const double l : q_.loss) top = std::max(top, std::abs(l));
    if (!(top > 0.0)) top = 1.0;
    for (std::size_t j = 0; j < d_; ++j) w_[j] = q_.columns[j].weight(q_.columns[j].fixed);
    place(sum / double(parts_) * top * (q_.slack == Slack::kQuadratic ? top : 1.0));
  }

  // w_ is that of the multipliers already.
  void warm_start(const std::vector<double>& z, double gap) {
    place(gap / double(pairs_));
    if (hard_) return;
    for (std::size_t p = 0; p < parts_; ++p) {
      double sum = 0.0;
      for (std::size_t k = q_.first[p]; k < q_.first[p + 1]; ++k) {
        sum += z[k];
        z_[k] = kMix * z_[k] + (1.0 - kMix) * z[k];
      }
      if (linear_) z_[truth_ + p] = kMix * z_[truth_ + p] + (1.0 - kMix) * std::max(0.0, q_.C[p] - sum);
    }
  }

  // Slacks and multipliers that are centred at w_.
  void place(double mu) {
    for (std::size_t k = 0; k < n_; ++k) F_[k] = q_.loss[k] - q_.planes.dot(k, w_.data());
    for (std::size_t p = 0; p < parts_; ++p) {
      const std::size_t begin = q_.first[p], end = q_.first[p + 1];
      const double C = q_.C[p];
      if (hard_) {
        for (std::size_t k = begin; k < end; ++k) s_[k] = std::max(-F_[k], 0.1 * std::max(std::abs(q_.loss[k]), 1e-3)), z_[k] = mu / s_[k];
        continue;
      }
      double top = linear_ ? 0.0 : -kInfinity;
      for (std::size_t k = begin; k < end; ++k) top = std::max(top, F_[k]);
      double above = 0.0;
      if (linear_) {
        const double m = double(end - begin) + 1.0;
        above = centre(top, mu / C, m * mu / C, [&](double xi, double over) {
          double sum = top == 0.0 ? mu / over : mu / xi;
          for (std::size_t k = begin; k < end; ++k) sum += mu / (F_[k] == top ? over : xi - F_[k]);
          return sum - C;
        });
        xi_[p] = top + above;
        s_[truth_ + p] = top == 0.0 ? above : xi_[p];
        z_[truth_ + p] = mu / s_[truth_ + p];
      } else {
        const double floor = std::max(top, 0.0), root = std::sqrt(mu / C);
        above = centre(floor, 1e-12 * (root + 1e-300), (double(end - begin) + 1.0) * root + 1e-300, [&](double xi, double over) {
          double sum = 0.0;
          for (std::size_t k = begin; k < end; ++k) sum += mu / (F_[k] == floor ? over : xi - F_[k]);
          return sum - C * xi;
        });
        xi_[p] = floor + above;
      }
      for (std::size_t k = begin; k < end; ++k) {
        s_[k] = std::max(xi_[p] - F_[k], above);
        z_[k] = mu / s_[k];
      }
    }
    for (std::size_t i = 0; i < kinks_.size(); ++i) {
      const auto [j, at] = kinks_[i];
      const PlaneColumn& c = q_.columns[j];
      const double v = w_[j] - c.offset, a = c.upper * v, b = c.lower * v, top = std::max(a, b), low = std::min(a, b);
      const double above = centre(top, mu, 2.0 * mu, [&](double, double over) { return mu / over + mu / (top - low + over) - 1.0; });
      tau_[i] = top + above;
      s_[at] = top - a + above, s_[at + 1] = top - b + above;
      z_[at] = mu / s_[at], z_[at + 1] = mu / s_[at + 1];
    }
    for (const auto& [j, at] : lows_) bound(at, w_[j] - q_.columns[j].least, std::sqrt(mu * q_.columns[j].scale), mu);
    for (const auto& [j, at] : highs_) bound(at, q_.columns[j].most - w_[j], std::sqrt(mu * q_.columns[j].scale), mu);
  }
  void bound(std::size_t at, double room, double least, double mu) {
    s_[at] = std::max(room, least);
    z_[at] = mu / s_[at];
  }

  // ---- iterations ----

  // True if the accuracy was reached.
  bool iterate(InteriorResult& result) {
    double best_mu = kInfinity, best_gap = kInfinity;
    joined_ = false;
    for (int waited = 0; result.iterations < options_.max_iterations;) {
      residuals();
      const double mu = complementarity(0.0);
      if (!std::isfinite(mu) || !(mu > 0.0)) return false;
      try {
        if (!factor()) {
          result.interrupted = true;
          return false;
        }
      } catch (const NotFinite&) {
        return false;  // the numbers have run out
      }
      for (std::size_t i = 0; i < pairs_; ++i) rc_[i] = s_[i] * z_[i];
      direction();
      const double reach = longest(1.0);
      const double ratio = complementarity(reach) / mu;
      const double sigma = std::clamp(ratio * ratio * ratio, joined_ ? 0.0 : kSigma, 1.0);
      for (std::size_t i = 0; i < pairs_; ++i) rc_[i] = s_[i] * z_[i] + ds_[i] * dz_[i] - sigma * mu;
      direction();
      const double step = std::min(1.0, kReach * longest(1.0 / kReach));
      if (!(step > 1e-10)) return false;
      move(step);
      if (lost_digits(step)) newton_.go_by_planes();
      ++result.iterations;
      result.work += kCycles * (newton_.work() + 40.0 * double(q_.planes.column.size()));
      take(result);
      const double gap = result.value.gap(), now = complementarity(0.0);
      // Where the gap is all due to making w of multipliers, the dual has no room left to rise by later: go on.
      const bool balanced = gap <= kBalance * now * double(pairs_) || gap <= kBalance * kExhausted * std::abs(result.value.dual);
      const double enough = std::max(options_.accuracy, kFinest * std::abs(result.value.dual));
      // A w alone is the end where the dual has hardly any room; else multipliers will do better.
      const bool end = result.better ? balanced : result.only_w && gap <= kNoRoom * std::abs(result.value.dual);
      if (gap <= enough && end) return true;
      if (now * double(pairs_) < kExhausted * std::abs(result.value.dual)) ++waited;  // nothing to be gained but by luck
      if (now < 0.5 * best_mu || gap < 0.5 * best_gap) {
        best_mu = std::min(best_mu, now), best_gap = std::min(best_gap, gap);
        waited = 0;
      } else if (++waited >= kPatience) {
        return false;
      }
    }
    return false;
  }

  void residuals() {
    for (std::size_t j = 0; j < d_; ++j) rd_.resize(d_), rd_[j] = (w_[j] - q_.columns[j].offset) / q_.columns[j].scale - q_.columns[j].fixed;
    rxi_.assign(parts_, 0.0);
    for (std::size_t p = 0; p < parts_; ++p) {
      double sum = 0.0;
      for (std::size_t k = q_.first[p]; k < q_.first[p + 1]; ++k) {
        q_.planes.add(k, -z_[k], rd_.data());
        rp_[k] = (hard_ ? 0.0 : xi_[p]) + q_.planes.dot(k, w_.data()) - q_.loss[k] - s_[k];
        sum += z_[k];
      }
      if (linear_) {
        rxi_[p] = sum + z_[truth_ + p] - q_.C[p];
        rp_[truth_ + p] = xi_[p] - s_[truth_ + p];
      } else if (!hard_) {
        rxi_[p] = sum - q_.C[p] * xi_[p];
      }
    }
    for (std::size_t i = 0; i < kinks_.size(); ++i) {
      const auto [j, at] = kinks_[i];
      const PlaneColumn& c = q_.columns[j];
      const double v = w_[j] - c.offset;
      rd_[j] += c.upper * z_[at] + c.lower * z_[at + 1];
      rp_[at] = tau_[i] - c.upper * v - s_[at];
      rp_[at + 1] = tau_[i] - c.lower * v - s_[at + 1];
    }
    for (const auto& [j, at] : lows_) rd_[j] -= z_[at], rp_[at] = w_[j] - q_.columns[j].least - s_[at];
    for (const auto& [j, at] : highs_) rd_[j] += z_[at], rp_[at] = q_.columns[j].most - w_[j] - s_[at];
  }

  // Is the first condition further from being met than a step of that length leaves it, beyond rounding?
  // (rd_ is that before the step.)
  bool lost_digits(double step) {
    if (newton_.by_planes()) return false;
    before_ = rd_;
    residuals();
    sizes(z_);
    for (std::size_t j = 0; j < d_; ++j) {
      if (std::abs(rd_[j] - (1.0 - step) * before_[j]) > kDigits * (size_[j] + std::abs(before_[j]))) return true;
    }
    return false;
  }
  // What is added up for each column of u, without its signs.
  void sizes(const std::vector<double>& z) {
    size_.assign(d_, 0.0);
    for (std::size_t j = 0; j < d_; ++j) size_[j] = std::abs(q_.columns[j].fixed) + std::abs(w_[j] - q_.columns[j].offset) / q_.columns[j].scale;
    for (std::size_t k = 0; k < n_; ++k) {
      if (z[k] == 0.0) continue;
      for (std::size_t e = q_.planes.begin[k]; e < q_.planes.begin[k + 1]; ++e) size_[q_.planes.column[e]] += std::abs(z[k] * q_.planes.value[e]);
    }
  }

  double weight(std::size_t at) const { return std::clamp(z_[at] / s_[at], 1e-250, 1e250); }

  bool factor() {
    for (std::size_t k = 0; k < n_; ++k) D_[k] = weight(k);
    for (std::size_t p = 0; p < parts_; ++p) D0_[p] = linear_ ? weight(truth_ + p) : hard_ ? kInfinity : q_.C[p];
    for (std::size_t j = 0; j < d_; ++j) Q_[j] = 1.0 / q_.columns[j].scale;
    for (const auto& [j, at] : kinks_) {
      const double a = weight(at), b = weight(at + 1), width = q_.columns[j].upper - q_.columns[j].lower;
      Q_[j] += width * width / (1.0 / a + 1.0 / b);
    }
    for (const auto& [j, at] : lows_) Q_[j] += weight(at);
    for (const auto& [j, at] : highs_) Q_[j] += weight(at);
    return newton_.factor(D_, D0_, Q_, halt_);
  }

  // The Newton step for the residuals and rc_.
  void direction() {
    for (std::size_t i = 0; i < pairs_; ++i) g_[i] = (rc_[i] + z_[i] * rp_[i]) / s_[i];
    right_.resize(d_);
    for (std::size_t j = 0; j < d_; ++j) right_[j] = -rd_[j];
    for (std::size_t p = 0; p < parts_; ++p) {
      c_[p] = 0.0;
      if (!hard_) {
        double sum = linear_ ? g_[truth_ + p] : 0.0;
        for (std::size_t k = q_.first[p]; k < q_.first[p + 1]; ++k) sum += g_[k];
        c_[p] = (rxi_[p] - sum) / newton_.delta(p);
      }
      for (std::size_t k = q_.first[p]; k < q_.first[p + 1]; ++k) q_.planes.add(k, -(g_[k] + D_[k] * c_[p]), right_.data());
    }
    for (const auto& [j, at] : kinks_) {
      const PlaneColumn& c = q_.columns[j];
      const double a = weight(at), b = weight(at + 1);
      const double shift = (z_[at] + z_[at + 1] - 1.0 - g_[at] - g_[at + 1]) / (a + b);
      right_[j] += c.upper * g_[at] + c.lower * g_[at + 1] + (c.upper * a + c.lower * b) * shift;
    }
    for (const auto& [j, at] : lows_) right_[j] -= g_[at];
    for (const auto& [j, at] : highs_) right_[j] += g_[at];
    newton_.solve(right_, dw_, pulls_, truth_pulls_);
    newton_.centred(dw_, planes_, truths_);
    for (std::size_t p = 0; p < parts_; ++p) {
      dxi_[p] = hard_ ? 0.0 : truths_[p] + c_[p];
      for (std::size_t k = q_.first[p]; k < q_.first[p + 1]; ++k) ds_[k] = planes_[k] + c_[p] + rp_[k];
      if (linear_) ds_[truth_ + p] = dxi_[p] + rp_[truth_ + p];
    }
    for (std::size_t i = 0; i < kinks_.size(); ++i) {
      const auto [j, at] = kinks_[i];
      const PlaneColumn& c = q_.columns[j];
      const double a = weight(at), b = weight(at + 1), width = c.upper - c.lower;
      const double shift = (z_[at] + z_[at + 1] - 1.0 - g_[at] - g_[at + 1]) / (a + b);
      dtau_[i] = shift + (c.upper * a + c.lower * b) / (a + b) * dw_[j];
      ds_[at] = shift - width * b / (a + b) * dw_[j] + rp_[at];
      ds_[at + 1] = shift + width * a / (a + b) * dw_[j] + rp_[at + 1];
    }
    for (const auto& [j, at] : lows_) ds_[at] = dw_[j] + rp_[at];
    for (const auto& [j, at] : highs_) ds_[at] = rp_[at] - dw_[j];
    // As -(rc + z ds) / s, which has the rounding of ds times z / s.
    for (std::size_t p = 0; p < parts_; ++p) {
      for (std::size_t k = q_.first[p]; k < q_.first[p + 1]; ++k) dz_[k] = -g_[k] - D_[k] * c_[p] - pulls_[k];
      if (linear_) dz_[truth_ + p] = -g_[truth_ + p] - D0_[p] * c_[p] - truth_pulls_[p];
    }
    for (std::size_t i = n_ + (linear_ ? parts_ : 0); i < pairs_; ++i) dz_[i] = -(rc_[i] + z_[i] * ds_[i]) / s_[i];
  }

  // The longest step, up to `step`, that leaves all s and z at least zero.
  double longest(double step) const {
    for (std::size_t i = 0; i < pairs_; ++i) {
      if (s_[i] + step * ds_[i] < 0.0) step = -s_[i] / ds_[i];
      if (z_[i] + step * dz_[i] < 0.0) step = -z_[i] / dz_[i];
    }
    return std::isfinite(step) ? step : 0.0;
  }
  // The mean of s z after a step.
  double complementarity(double step) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < pairs_; ++i) sum += (s_[i] + step * ds_[i]) * (z_[i] + step * dz_[i]);
    return sum / double(pairs_);
  }
  void move(double step) {
    for (std::size_t i = 0; i < pairs_; ++i) {
      s_[i] = std::max(s_[i] + step * ds_[i], 1e-3 * (1.0 - kReach) * s_[i]);
      z_[i] = std::max(z_[i] + step * dz_[i], 1e-3 * (1.0 - kReach) * z_[i]);
    }
    for (std::size_t j = 0; j < d_; ++j) w_[j] += step * dw_[j];
    for (std::size_t p = 0; p < parts_; ++p) xi_[p] += step * dxi_[p];
    for (std::size_t i = 0; i < kinks_.size(); ++i) tau_[i] += step * dtau_[i];
  }

  // What the present multipliers are worth, with their w; kept if their gap is the smallest so far
  // among those that raise the dual.
  void take(InteriorResult& result) {
    const double mu = complementarity(0.0);
    bool joined = false;
    for (const bool sparse : {false, true}) {
      feasible(mu, sparse);
      PlaneValue value = evaluate(q_, trial_, u_, shown_, F_);
      const bool same = rounded();
      joined = joined || same;
      bool own = false;
      if (same) {
        const double primal = primal_over(q_, own_, F_);
        own = primal < value.primal;
        value.primal = std::min(value.primal, primal);
      }
      // A dual that is higher, whatever the primal; or another one that is no lower, with a smaller gap.
      if (result.only_w && !(value.gap() < result.value.gap())) continue;
      if (!(result.better ? value.dual >= result.start.dual && value.gap() < result.value.gap() + (sparse ? 1e-9 * std::abs(result.value.gap()) : 0.0)
                          : value.dual > result.start.dual || (value.dual == result.start.dual && value.gap() < result.value.gap()))) continue;
      result.better = true, result.only_w = false;
      result.value = value;
      result.z = trial_;
      result.w = own ? own_ : shown_;
      result.own_w = own;
      if (same && !own) primal_over(q_, shown_, F_);
      result.F = F_;
    }
    joined_ = joined;
    if (result.better) return;
    // With the multipliers that were given, a w is as good as any other: its primal is what counts.
    make_own(start_w_);
    const double primal = primal_over(q_, own_, F_);
    if (!(primal - result.start.dual < 0.5 * result.value.gap())) return;
    result.value.primal = primal;
    result.w = own_, result.F = F_;
    result.own_w = result.only_w = true;
  }

  // The present multipliers, exactly feasible, in trial_; `sparse`: without those that are zero in the limit.
  // What a part has too much or too little is made up by its largest multiplier: to scale all of them would
  // change u by more than rounding.
  void feasible(double mu, bool sparse) {
    trial_.assign(z_.begin(), z_.begin() + std::ptrdiff_t(n_));
    for (std::size_t p = 0; p < parts_; ++p) {
      const std::size_t begin = q_.first[p], end = q_.first[p + 1];
      double truth = linear_ ? z_[truth_ + p] : 0.0, size = hard_ ? 0.0 : std::abs(xi_[p]);
      if (sparse) {
        for (std::size_t k = begin; k < end; ++k) size = std::max({size, s_[k], std::abs(q_.loss[k])});
        // On the central path z s = μ: zero in the limit are the z far below √(μ C / size of s).
        const double least = 0.1 * std::sqrt(mu * q_.C[p] / std::max(size, 1e-300));
        for (std::size_t k = begin; k < end; ++k) {
          if (trial_[k] < least) trial_[k] = 0.0;
        }
        if (truth < least) truth = 0.0;
      }
      if (!linear_) continue;
      double sum = truth;
      std::size_t top = begin;
      for (std::size_t k = begin; k < end; ++k) {
        sum += trial_[k];
        if (trial_[k] > trial_[top]) top = k;
      }
      if (truth < trial_[top]) {
        trial_[top] += q_.C[p] - sum;
      } else {
        truth += q_.C[p] - sum;
      }
      if (truth >= 0.0 && trial_[top] >= 0.0) continue;
      sum = 0.0;
      for (std::size_t k = begin; k < end; ++k) sum += trial_[k] = std::max(trial_[k], 0.0);
      for (std::size_t k = begin; k < end && sum > q_.C[p]; ++k) trial_[k] *= q_.C[p] / sum;
    }
  }

  // The w of the iteration, with those weights that `shown` has at a kink or a bound exactly there.
  void make_own(const std::vector<double>& shown) {
    own_.resize(d_);
    for (std::size_t j = 0; j < d_; ++j) {
      const PlaneColumn& c = q_.columns[j];
      const bool held = (c.kinked() && shown[j] == c.offset) || shown[j] == c.least || shown[j] == c.most;
      own_[j] = held ? shown[j] : std::clamp(w_[j], c.least, c.most);
    }
  }
  // Does rounding alone keep it from shown_, the w of the multipliers in trial_?
  bool rounded() {
    make_own(shown_);
    sizes(trial_);
    const double tolerance = fixed_curvature_ ? kRounding : kNear;
    for (std::size_t j = 0; j < d_; ++j) {
      if (!(std::abs(own_[j] - shown_[j]) <= tolerance * q_.columns[j].scale * size_[j])) return false;
    }
    return true;
  }

  const PlaneProgram& q_;
  const InteriorOptions& options_;
  const std::function<bool()>& halt_;
  const std::size_t n_, parts_, d_;
  const bool linear_, hard_, fixed_curvature_;
  PlaneNewton newton_;
  bool joined_ = false;  // is w that of the multipliers, up to rounding?
  std::size_t truth_ = 0, pairs_ = 0;  // where the truths begin among the pairs (s, z); all of them
  std::vector<Place> kinks_, lows_, highs_;
  std::vector<double> s_, z_, ds_, dz_, rp_, rc_, g_;
  std::vector<double> w_, dw_, xi_, dxi_, tau_, dtau_, rd_, rxi_, right_, c_;
  std::vector<double> D_, D0_, Q_, planes_, truths_, pulls_, truth_pulls_, u_, F_, trial_, shown_, own_, size_, before_, start_w_;
};

}  // namespace

InteriorResult interior_point(const PlaneProgram& program, std::vector<double> z, const InteriorOptions& options,
                              const std::function<bool()>& halt, const std::vector<double>* own) {
  return Interior(program, options, halt).run(std::move(z), own);
}

double interior_work(double columns, double planes, double row, bool quadratic) {
  const double once = std::min(PlaneNewton::column_work(columns, planes, row), PlaneNewton::plane_work(planes, row, quadratic));
  return kSolves * kCycles * (once + 40.0 * planes * row);
}

double interior_bytes(double columns, double planes, double row, bool quadratic) {
  const bool by_planes = PlaneNewton::plane_work(planes, row, quadratic) < PlaneNewton::column_work(columns, planes, row);
  return (by_planes ? DenseCholesky::bytes(planes) + 8.0 * planes * planes : DenseCholesky::bytes(columns)) + planes * (16.0 * row + 200.0);
}

}  // namespace mm
