// The link: how the weights follow from the sums u = u₀ + C Σ α Δf, as data.
//
// A regulariser Ω that is a sum over coordinates,
//
//   Ω(w) = Σ_k  (w_k - m_k)² / (2 s_k)  +  max(t⁻_k (w_k - m_k), t⁺_k (w_k - m_k)),
//   least_k <= w_k <= most_k,   t⁻_k <= 0 <= t⁺_k,   s_k >= 0  (s_k = 0: w_k is held at m_k),
//
// has the conjugate Ω*(u) = max_w (w.u - Ω(w)), whose maximiser is the link
//
//   w_k = clip(m_k + s_k soft(u_k), least_k, most_k),
//   soft(u) = u - t⁺ above t⁺, u - t⁻ below t⁻, and 0 between them.
//
// (Set the derivative of w u - Ω(w) to zero on either side of m; between the thresholds the kink at
// m wins. The problem is concave in the one number w_k, so bounds only clip.) The derivative of the
// link is s_k or 0: w moves by at most max s of what u moves.
//
//   regulariser           thresholds   scale   offset   bounds
//   L2                    0            1       0        none
//   elastic net           -ρ₁, ρ₁      1/ρ₂    0        none
//   selected weights      0            0 or 1  0        none
//   non-negative weights  0            1       0        [0, ∞)
//   Gaussian prior        0            1/r_k   mean_k   none
//
// Each field is one number for all coordinates, or one for each.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "chunks.hpp"

namespace mm {

// One number, or one for each coordinate (in the layout of the engine's weights).
struct LinkField {
  double all = 0.0;
  std::shared_ptr<const std::vector<double>> each;

  bool is(double value) const { return !each && all == value; }
  double at(std::size_t k) const { return each ? (*each)[k] : all; }
  bool fits(std::size_t n) const { return !each || each->size() == n; }
  bool same(const LinkField& other) const {
    if (!each || !other.each) return !each && !other.each && all == other.all;
    return *each == *other.each;
  }
};

struct Link {
  LinkField lower{0.0, {}}, upper{0.0, {}};  // t⁻, t⁺
  LinkField scale{1.0, {}}, offset{0.0, {}};  // s, m
  LinkField least{-kInfinity, {}}, most{kInfinity, {}};
  double decay = 0.0;  // of β with a cost-to-move (slow_beta.hpp); 0: β is always at its fixed point

  // w = u, in the same memory.
  bool identity() const { return uniform() && lower.all == 0.0 && upper.all == 0.0 && scale.all == 1.0 && decay == 0.0; }
  // One pair of thresholds and one scale for all, and nothing else.
  bool uniform() const {
    return !lower.each && !upper.each && !scale.each && scale.all > 0.0 && offset.is(0.0) && least.is(-kInfinity) && most.is(kInfinity);
  }
  // w = s u with a scale for each weight, and nothing else.
  bool scaled() const {
    return scale.each && decay == 0.0 && lower.is(0.0) && upper.is(0.0) && offset.is(0.0) && least.is(-kInfinity) && most.is(kInfinity);
  }
  // What the derivative of the link is at most. (Where all weights are held it is 0, and so is
  // every step of w; 1 then keeps the quadratic model of a step bounded.)
  double steepest() const {
    const double top = scale.each ? (scale.each->empty() ? 0.0 : *std::max_element(scale.each->begin(), scale.each->end())) : scale.all;
    return top > 0.0 ? top : 1.0;
  }
  bool same(const Link& other) const {
    return lower.same(other.lower) && upper.same(other.upper) && scale.same(other.scale) && offset.same(other.offset) &&
           least.same(other.least) && most.same(other.most);
  }
  template <class F>
  void for_fields(F&& f) {
    f(lower), f(upper), f(scale), f(offset), f(least), f(most);
  }

  // Throws BadInput unless the numbers make a link, and one that leaves the padding of n weights at
  // zero: padding never gets a u, so what moves link(0) away from 0 must be given per coordinate.
  void check(std::size_t n) const {
    const auto bad = [](bool wrong, const char* what) {
      if (wrong) throw BadInput(std::string("the link of a regulariser ") + what);
    };
    Link copy = *this;
    copy.for_fields([&](const LinkField& field) {
      bad(!field.fits(n), "must have one number, or one for each weight");
    });
    const auto each = [&](const LinkField& field, auto&& ok, const char* what) {
      if (!field.each) return bad(!ok(field.all), what);
      for (const double x : *field.each) bad(!ok(x), what);
    };
    each(lower, [](double t) { return t <= 0.0; }, "must have lower thresholds that are not above 0");
    each(upper, [](double t) { return t >= 0.0; }, "must have upper thresholds that are not below 0");
    each(scale, [](double s) { return s >= 0.0 && std::isfinite(s); }, "must have scales that are finite and not negative");
    each(offset, [](double m) { return std::isfinite(m); }, "must have finite offsets");
    each(least, [](double b) { return b < kInfinity; }, "has a least weight that is not a number, or infinite");
    each(most, [](double b) { return b > -kInfinity; }, "has a largest weight that is not a number, or infinite");
    for (std::size_t k = 0; k < n; ++k) {
      bad(!(least.at(k) <= most.at(k)), "has a least weight above the largest one");
      if (!least.each && !most.each) break;
    }
    bad(!offset.each && offset.all != 0.0, "must give an offset other than 0 for each weight");
    bad((!least.each && least.all > 0.0) || (!most.each && most.all < 0.0), "must give bounds that leave out 0 for each weight");
  }

  // ---- one coordinate ----

  template <class T>
  static T soft(T u, T lower, T upper) {
    if (u > upper) return u - upper;
    if (u < lower) return u - lower;
    return T(0);
  }
  double weight(std::size_t k, double u) const {
    return std::clamp(offset.at(k) + scale.at(k) * soft(u, lower.at(k), upper.at(k)), least.at(k), most.at(k));
  }
  // argmin Ω_k(z) + ½ R z² - Y z
  double held(std::size_t k, double Y, double R) const {
    const double s = scale.at(k), m = offset.at(k);
    return std::clamp(m + s / (1 + s * R) * soft(Y - R * m, lower.at(k), upper.at(k)), least.at(k), most.at(k));
  }
  // The derivative of weight(k, u) by u; at kinks that of the flat side.
  double slope(std::size_t k, double u) const {
    const double t = soft(u, lower.at(k), upper.at(k)), w = offset.at(k) + scale.at(k) * t;
    const bool moves = t != 0.0 || (lower.at(k) == 0.0 && upper.at(k) == 0.0);
    return moves && w > least.at(k) && w < most.at(k) ? scale.at(k) : 0.0;
  }
  // Ω_k(w)
  double penalty(std::size_t k, double w) const {
    const double d = w - offset.at(k), s = scale.at(k);
    const double square = s > 0.0 ? d * d / (2.0 * s) : 0.0;
    return square + (d > 0.0 ? upper.at(k) * d : d < 0.0 ? lower.at(k) * d : 0.0);
  }
  // Ω(w)
  double penalty(const double* w, std::size_t n, int threads) const {
    if (!uniform()) return sum_each(n, threads, [&](std::size_t k) { return penalty(k, w[k]); });
    const double square = 0.5 / scale.all * sum_each(n, threads, [&](std::size_t k) { return w[k] * w[k]; });
    if (lower.all == 0.0 && upper.all == 0.0) return square;
    return square + sum_each(n, threads, [&](std::size_t k) { return w[k] > 0.0 ? upper.all * w[k] : lower.all * w[k]; });
  }
  // Ω*_k(u), given w = weight(k, u).
  double conjugate(std::size_t k, double u, double w) const { return w * u - penalty(k, w); }
  // Ω*(u), given w = link(u).
  double conjugate(const double* u, const double* w, std::size_t n, int threads) const {
    if (uniform()) return 0.5 / scale.all * sum_each(n, threads, [&](std::size_t k) { return w[k] * w[k]; });
    return sum_each(n, threads, [&](std::size_t k) { return conjugate(k, u[k], w[k]); });
  }
};

}  // namespace mm
