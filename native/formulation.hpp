// The formulations of the margin (Tsochantaridis et al., ICML 2004), as planes.
//
// Every one of them bounds a slack by  ξ_i >= h(y) - w.Δh(y)  for all y ≠ y_i:
//
//   rescale   h(y)     Δh(y)                constraint of the paper
//   margin    g(Δ)     δΨ(y)                w.δΨ >= g(Δ) - ξ                          (10)
//   slack     g(Δ)     g(Δ) δΨ(y)           w.δΨ >= 1 - ξ / g(Δ)                      (9)
//   none      1        δΨ(y)                w.δΨ >= 1 - ξ                             (7b)
//
// with Δ = Δ(y_i, y), and g(Δ) = Δ for linear slacks C Σ ξ, √Δ for quadratic ones C/2 Σ ξ². So a
// formulation is a structure too: it turns losses, planes and the oracle of another one into these.
//
// The oracle. Where the structure can tell the best output at each loss (grades), the maximum over
// losses is exact. Elsewhere only its own oracle is there, which maximises λΔ - w.δΨ for any λ. Its
// answers are the corners of the upper hull of the points (Δ, -w.δΨ) of all outputs; every output
// lies below the lines through the corners, which bounds H = g(Δ)(1 - w.δΨ), or g(Δ) - w.δΨ, between
// two corners. λ is refined where the bound is highest until it falls to the best H found (that is
// the optimum, then) or the corners are neighbours: then the output that was found may be worse than
// the best by no more than `Found::bound` says, and certificates use that.
//
// Where both are there and grades are slow (all outputs are tried), the corners come first, and the
// grades only if the corners do not prove that the best output was found. Without losses (none) the
// corners cannot prove anything about an example whose best output is the truth.
#pragma once

#include <cmath>

#include "forwarding.hpp"

namespace mm {

enum class Rescale { kMargin, kSlack, kNone };
enum class Slack { kLinear, kQuadratic, kHard };

template <class T>
class Formulation final : public Forwarding<T> {
 public:
  using Base = Structure<T>;
  using Workspace = typename Base::Workspace;
  using Fresh = typename Base::Fresh;

  Formulation(const Base& base, Rescale rescale, bool root) : base_(base), rescale_(rescale), root_(root) {}

  // An output that the oracle found.
  struct Corner {
    double loss, margin;
  };
  // Between two corners; the lines through them have the slopes with which they were found.
  struct Stretch {
    Corner a, b;
    double slope_a, slope_b;
    bool edge;  // a and b are neighbours on the hull
    double bound;
  };
  struct Scratch final : Workspace {
    std::unique_ptr<Workspace> inner;
    std::vector<typename Base::Grade> grades;
    std::vector<double> losses, scaled;
    std::vector<Code> best;
    std::vector<Stretch> stretches;
  };

  std::unique_ptr<Workspace> workspace() const override {
    auto ws = std::make_unique<Scratch>();
    ws->inner = base_.workspace();
    return ws;
  }
  double rounding(std::size_t i, CodeView plane, const T* w) const override {
    return (rescale_ == Rescale::kSlack ? std::max(1.0, loss(i, plane)) : 1.0) * base_.rounding(i, plane, w);
  }
  double oracle_work(std::size_t i) const override { return 8.0 * base_.oracle_work(i); }

  // A wrapped output is one place: losses of two places do not add up, so nothing is put together
  // from pieces, and the grades below are of the structure inside.
  Extent extent(std::size_t, CodeView) const override { return {0, ~std::uint32_t{0}}; }
  std::size_t first_piece(CodeView code) const override { return code.size(); }
  Found recombine(Workspace&, std::size_t, const T*, CodeView) const override { return {}; }
  bool offers_grades(bool) const override { return false; }
  bool slow_grades(std::size_t) const override { return false; }
  bool grades(Workspace&, std::size_t, const T*, bool, std::vector<typename Base::Grade>&) const override { return false; }

  double loss(std::size_t i, CodeView plane) const override {
    return plane.empty() ? 0.0 : h(base_.loss(i, plane));
  }

  void gram(Workspace& ws, std::size_t i, CodeView a, std::span<const CodeView> planes, double* row) const override {
    base_.gram(inner(ws), i, a, planes, row);
    if (rescale_ != Rescale::kSlack) return;
    const double scale = loss(i, a);
    for (std::size_t k = 0; k < planes.size(); ++k) row[k] *= scale * loss(i, planes[k]);
  }

  void margins(Workspace& base, std::size_t i, const T* w, CodeView index, std::span<const CodeView> planes,
               std::span<const double> /*losses*/, Fresh /*fresh*/, double* F) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    ws.losses.resize(planes.size());
    for (std::size_t k = 0; k < planes.size(); ++k) ws.losses[k] = planes[k].empty() ? 0.0 : base_.loss(i, planes[k]);
    base_.margins(*ws.inner, i, w, index, planes, ws.losses, Fresh::kNo, F);
    for (std::size_t k = 0; k < planes.size(); ++k) F[k] = planes[k].empty() ? 0.0 : value(ws.losses[k], ws.losses[k] - F[k], 1.0);
  }

  void accumulate(Workspace& base, std::size_t i, CodeView index, std::span<const CodeView> planes,
                  const double* coef, Weights<T>& weights) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    if (rescale_ != Rescale::kSlack) return base_.accumulate(*ws.inner, i, index, planes, coef, weights);
    ws.scaled.resize(planes.size());
    for (std::size_t k = 0; k < planes.size(); ++k) ws.scaled[k] = planes[k].empty() ? 0.0 : coef[k] * loss(i, planes[k]);
    base_.accumulate(*ws.inner, i, index, planes, ws.scaled.data(), weights);
  }

  Found oracle(Workspace& base, std::size_t i, const T* w) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const bool any = rescale_ == Rescale::kNone;
    if (!any && base_.offers_grades(any) && base_.slow_grades(i)) {
      const Found found = by_corners(ws, i, w, true);
      if (found.bound == 0.0) return found;
    }
    if (base_.grades(*ws.inner, i, w, any, ws.grades)) return by_grade(ws, i, w);
    return by_corners(ws, i, w, false);
  }

 protected:
  const Base& base() const override { return base_; }
  Workspace& inner(Workspace& ws) const override { return *static_cast<Scratch&>(ws).inner; }

 private:
  double g(double loss) const { return root_ ? std::sqrt(loss) : loss; }
  double h(double loss) const { return rescale_ == Rescale::kNone ? 1.0 : g(loss); }
  // H(y) of Algorithm 1, line 5, from Δ and the margin w.δΨ. `one` is 1, or 1/a where w is kept as a
  // multiple a of what the oracle sees; then this is H/a.
  double value(double loss, double margin, double one) const {
    return rescale_ == Rescale::kSlack ? g(loss) * (one - margin) : one * h(loss) - margin;
  }

  Found by_grade(Scratch& ws, std::size_t i, const T* w) const {
    double top = 0.0;
    std::size_t best = 0;
    for (std::size_t k = 0; k < ws.grades.size(); ++k) {
      const double v = value(ws.grades[k].loss, ws.grades[k].margin, ws.loss_scale);
      if (v > top) top = v, best = k + 1;
    }
    Found found;
    ws.code.clear();
    if (best == 0) return found;
    const double margin = base_.take_grade(*ws.inner, i, w, best - 1);
    ws.code.assign(ws.inner->code.begin(), ws.inner->code.end());
    found.truth = ws.code.empty();
    if (!found.truth) found.F = value(base_.loss(i, ws.code), margin, ws.loss_scale);
    return found;
  }

  // `or_nothing`: end as soon as it is clear that the best output cannot be proved to be the best.
  Found by_corners(Scratch& ws, std::size_t i, const T* w, bool or_nothing) const {
    const double one = ws.loss_scale;
    double top = 0.0;
    ws.best.clear();
    const auto ask = [&](double lambda) {
      ws.inner->loss_scale = lambda;
      const Found found = base_.oracle(*ws.inner, i, w);
      ws.inner->loss_scale = 1.0;
      if (found.truth) return Corner{0.0, 0.0};
      const double loss = base_.loss(i, ws.inner->code);
      const Corner corner{loss, lambda * loss - found.F};
      if (value(loss, corner.margin, one) > top) {
        top = value(loss, corner.margin, one);
        ws.best.assign(ws.inner->code.begin(), ws.inner->code.end());
      }
      return corner;
    };
    // Outwards from λ = 1 until nothing outside can be better.
    double low = 1.0, high = 1.0;
    Corner left = ask(1.0), right = left;
    constexpr double kFarthest = 1 << 20;
    while (low > 1.0 / kFarthest && bound_left(left, low, one) > enough(top)) left = ask(low /= 4.0);
    while (high < kFarthest && bound_right(right, high, one) > enough(top)) right = ask(high *= 4.0);
    double bound = std::max(bound_left(left, low, one), bound_right(right, high, one));
    ws.stretches.clear();
    const auto push = [&](Stretch s) {
      s.bound = stretch_bound(s, one);
      ws.stretches.push_back(s);
    };
    if (right.loss > left.loss) push({left, right, low, high, false, 0.0});
    const bool hopeless = or_nothing && bound > enough(top);
    for (int asked = 0; !hopeless && !ws.stretches.empty();) {
      const auto worst = std::max_element(ws.stretches.begin(), ws.stretches.end(), [](const Stretch& p, const Stretch& q) { return p.bound < q.bound; });
      const Stretch s = *worst;
      if (s.bound <= enough(top)) break;
      ws.stretches.erase(worst);
      if (s.edge || ++asked > kMostAsked) {
        bound = std::max(bound, s.bound);
        if (or_nothing) break;
        continue;
      }
      const double slope = (s.b.margin - s.a.margin) / (s.b.loss - s.a.loss);
      const Corner c = slope > 0.0 ? ask(slope) : s.a;
      const bool fresh = c.loss > s.a.loss && c.loss < s.b.loss &&
                         slope * c.loss - c.margin > slope * s.a.loss - s.a.margin + 1e-9 * (1.0 + std::abs(s.a.margin));
      if (fresh) {
        push({s.a, c, s.slope_a, slope, false, 0.0});
        push({c, s.b, slope, s.slope_b, false, 0.0});
      } else {
        push({s.a, s.b, s.slope_a, s.slope_b, true, 0.0});
      }
    }
    Found found;
    ws.code = ws.best;
    found.truth = ws.code.empty();
    if (!found.truth) found.F = top;
    if (bound > enough(top)) found.bound = bound;
    return found;
  }

  static double enough(double top) { return top + 1e-9 * (1.0 + top); }

  // The largest H with Δ in [from, to], the margin being at least that of `line`; H is concave in Δ
  // along a line, so thirds will do.
  template <class Line>
  double most(double one, double from, double to, Line&& line) const {
    for (int k = 0; k < 60 && to - from > 1e-12 * (1.0 + to); ++k) {
      const double p = from + (to - from) / 3.0, q = to - (to - from) / 3.0;
      if (value(p, line(p), one) < value(q, line(q), one)) from = p; else to = q;
    }
    const double middle = 0.5 * (from + to);
    return std::max(0.0, value(middle, line(middle), one));
  }
  double bound_left(const Corner& c, double slope, double one) const {
    return most(one, 0.0, c.loss, [&](double l) { return c.margin - slope * (c.loss - l); });
  }
  double bound_right(const Corner& c, double slope, double one) const {
    // Beyond this, 1 - margin is negative (slack), or g grows less than the line (margin).
    const double reach = c.loss + (one + std::abs(c.margin)) / slope + one * one / (slope * slope) + 1.0;
    return most(one, c.loss, reach, [&](double l) { return c.margin + slope * (l - c.loss); });
  }
  double stretch_bound(const Stretch& s, double one) const {
    return most(one, s.a.loss, s.b.loss, [&](double l) {
      if (s.edge) return s.a.margin + (l - s.a.loss) * (s.b.margin - s.a.margin) / (s.b.loss - s.a.loss);
      return std::max(s.a.margin + s.slope_a * (l - s.a.loss), s.b.margin - s.slope_b * (s.b.loss - l));
    });
  }

  static constexpr int kMostAsked = 40;

  const Base& base_;
  Rescale rescale_;
  bool root_;
};

}  // namespace mm
