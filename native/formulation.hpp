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
// The oracle. Where all outputs are listed, or a user's structure can tell the best output at each loss
// (grades), the maximum over them is exact, and some structures find it by themselves (greatest). Elsewhere the structure's own oracle comes first, which maximises
// λΔ - w.δΨ for any λ: a few answers often prove that the best of them is the best of all (hull.hpp). Where
// they do not, a structure that can is asked for an output of a greater merit than the best one so far
// (pareto_search.hpp), with the losses about which the answers decide left out. If it cannot, or gives up,
// the output that was found may be worse than the best by no more than `Found::bound` says, and certificates
// use that.
//
// Without losses (none) the best output other than the truth is wanted. With λ = 1 / least loss, an answer
// that is the truth proves that all margins are at least 1, and one that has the least loss is it. Else a
// structure must tell (grades).
#pragma once

#include <cmath>

#include "forwarding.hpp"
#include "hull.hpp"

namespace mm {

enum class Slack { kLinear, kQuadratic, kHard };

template <class T>
class Formulation final : public Forwarding<T> {
 public:
  using Base = Structure<T>;
  using Workspace = typename Base::Workspace;
  using Fresh = typename Base::Fresh;
  using Grade = typename Base::Grade;

  Formulation(const Base& base, Rescale rescale, bool root) : base_(base), rescale_(rescale), root_(root) {}

  struct Scratch final : Workspace {
    std::unique_ptr<Workspace> inner;
    std::vector<typename Base::Grade> grades;
    std::vector<double> losses, scaled;
    std::vector<Code> best;
    Hull hull;
    int asked = 0;  // corners, in this call
  };

  std::unique_ptr<Workspace> workspace() const override {
    auto ws = std::make_unique<Scratch>();
    ws->inner = base_.workspace();
    return ws;
  }
  double rounding(std::size_t i, CodeView plane, const T* w) const override {
    return (rescale_ == Rescale::kSlack ? std::max(1.0, loss(i, plane)) : 1.0) * base_.rounding(i, plane, w);
  }

  // A wrapped output is one place: losses of two places do not add up, so nothing is put together
  // from pieces, and the grades below are of the structure inside.
  Extent extent(std::size_t, CodeView) const override { return {0, ~std::uint32_t{0}}; }
  std::size_t first_piece(CodeView code) const override { return code.size(); }
  Found recombine(Workspace&, std::size_t, const T*, CodeView) const override { return {}; }
  bool offers_search() const override { return false; }
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
               std::span<const double> losses, Fresh /*fresh*/, double* F) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const Merit merit(rescale_, root_, 1.0);
    ws.losses.resize(planes.size());
    for (std::size_t k = 0; k < planes.size(); ++k) ws.losses[k] = planes[k].empty() ? 0.0 : loss_of(i, planes[k], losses[k]);
    base_.margins(*ws.inner, i, w, index, planes, ws.losses, Fresh::kNo, F);
    for (std::size_t k = 0; k < planes.size(); ++k) F[k] = planes[k].empty() ? 0.0 : merit.value(ws.losses[k], ws.losses[k] - F[k]);
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
    Workspace& in = *ws.inner;
    in.same = false;  // whatever ended the last call
    in.more_work = ws.more_work = 0.0;
    ws.asked = 0;
    const Merit merit(rescale_, root_, ws.loss_scale);
    const Found found = rescale_ == Rescale::kNone ? without_losses(ws, i, w, merit) : with_losses(ws, i, w, merit);
    in.same = false;
    if (ws.asked > 1) ws.more_work += double(ws.asked - 1) * base_.corner_work(i);
    return found;
  }

 protected:
  const Base& base() const override { return base_; }
  Workspace& inner(Workspace& ws) const override { return *static_cast<Scratch&>(ws).inner; }

 private:
  double g(double loss) const { return root_ ? std::sqrt(loss) : loss; }
  double h(double loss) const { return rescale_ == Rescale::kNone ? 1.0 : g(loss); }
  // The loss of a plane whose h is known.
  double loss_of(std::size_t i, CodeView plane, double known) const {
    return rescale_ == Rescale::kNone ? base_.loss(i, plane) : root_ ? known * known : known;
  }

  // An answer of the structure's own oracle; its code is in the inner workspace.
  Grade ask(Scratch& ws, std::size_t i, const T* w, double lambda) const {
    const Grade answer = base_.corner(*ws.inner, i, w, lambda);
    ws.inner->same = true;
    ++ws.asked;
    return answer;
  }

  // What is known of an example before its structure's own oracle is asked.
  struct Begun {
    LossRange range;      // of the outputs that are undecided
    double top = 0.0;     // the value of ws.best
    double lambda = 1.0;  // the slope to ask for first
    bool decided = false;
  };

  // With one error. All outputs with a loss below 2 least are such; so what is left has at least that much. Let
  // P be the point with the loss 2 least and the value of the best so far. The first slope is that of the line
  // through P which leaves the truth, the output found and the curve of equal value above it, in -m below: if
  // the answer is one of them, no other output is better.
  Begun begin(Scratch& ws, std::size_t i, const T* w, const Merit& merit) const {
    Begun begun;
    begun.range = base_.losses(i);
    Grade one;
    if (!base_.one_error(*ws.inner, i, w, merit, one)) {
      ws.best.clear();
      return begun;
    }
    ws.inner->same = true;
    ws.more_work += std::exchange(ws.inner->more_work, 0.0);
    const double value = merit.value(one.loss, one.margin);
    ws.best.clear();
    if (value > 0.0) {
      begun.top = value;
      ws.best.assign(ws.inner->code.begin(), ws.inner->code.end());
    }
    const double least = 2.0 * begun.range.least;
    if (!(least > 0.0)) return begun;
    begun.range.least = least;
    begun.decided = least > begun.range.most * (1.0 + 1e-12);
    const double margin = merit.margin_of(least, begun.top);
    begun.lambda = std::max({margin / least, merit.slope(least, margin), 0.0});
    if (one.loss < least) begun.lambda = std::max(begun.lambda, (margin - one.margin) / (least - one.loss));
    begun.lambda *= 1.0 + 1e-9;  // rounding shall not decide
    return begun;
  }

  Found without_losses(Scratch& ws, std::size_t i, const T* w, const Merit& merit) const {
    const Begun begun = begin(ws, i, w, merit);
    if (begun.decided) return best(ws, begun.top);
    if (begun.range.least > 0.0) {
      // No margin is below λΔ - V, and that of λ times the least loss is enough.
      const Grade answer = ask(ws, i, w, begun.lambda);
      const double V = begun.lambda * answer.loss - answer.margin;
      if (merit.value(begun.range.least, begun.lambda * begun.range.least - V) <= enough(begun.top)) return best(ws, begun.top);
      if (begun.lambda == 0.0) {
        ws.best.assign(ws.inner->code.begin(), ws.inner->code.end());
        return best(ws, merit.value(answer.loss, answer.margin));
      }
    }
    if (!base_.grades(*ws.inner, i, w, true, ws.grades)) throw BadInput("no best output other than the truth for example " + std::to_string(i));
    return best_grade(ws, i, w, merit);
  }

  Found with_losses(Scratch& ws, std::size_t i, const T* w, const Merit& merit) const {
    Grade direct;
    const auto outcome = base_.greatest(*ws.inner, i, w, merit, direct);
    ws.more_work += std::exchange(ws.inner->more_work, 0.0);
    if (outcome != Base::Outcome::kGaveUp) {
      ws.best.clear();
      if (outcome == Base::Outcome::kFound) ws.best.assign(ws.inner->code.begin(), ws.inner->code.end());
      return best(ws, outcome == Base::Outcome::kFound ? merit.value(direct.loss, direct.margin) : 0.0);
    }
    const bool graded = base_.offers_grades(false);
    if (graded && !base_.slow_grades(i) && base_.grades(*ws.inner, i, w, false, ws.grades)) return best_grade(ws, i, w, merit);
    const Begun begun = begin(ws, i, w, merit);
    double top = begun.top;
    if (begun.decided) return best(ws, top);
    const Hull::Stretch open = by_corners(ws, i, w, merit, begun, graded || base_.offers_search(), top);
    if (!(open.bound > 0.0)) return best(ws, top);
    if (base_.offers_search()) {
      const Undecided undecided{enough(top), open.from, open.to, ws.hull.narrowest(enough(top), open), begun.range.step};
      Grade found;
      const auto outcome = base_.undecided(*ws.inner, i, w, merit, undecided, found);
      ws.more_work += std::exchange(ws.inner->more_work, 0.0);
      if (outcome == Base::Outcome::kFound) {
        ws.best.assign(ws.inner->code.begin(), ws.inner->code.end());
        top = merit.value(found.loss, found.margin);
      }
      if (outcome != Base::Outcome::kGaveUp) return best(ws, top);
    }
    if (graded && base_.grades(*ws.inner, i, w, false, ws.grades)) return best_grade(ws, i, w, merit);
    Found found = best(ws, top);
    found.bound = open.bound;
    return found;
  }

  // The output in ws.best, whose value is `top`.
  Found best(Scratch& ws, double top) const {
    Found found;
    ws.code = ws.best;
    found.truth = ws.code.empty();
    if (!found.truth) found.F = top;
    return found;
  }

  // The best of the outputs in ws.grades.
  Found best_grade(Scratch& ws, std::size_t i, const T* w, const Merit& merit) const {
    ws.more_work += std::exchange(ws.inner->more_work, 0.0);
    double top = 0.0;
    std::size_t taken = 0;
    for (std::size_t k = 0; k < ws.grades.size(); ++k) {
      const double v = merit.value(ws.grades[k].loss, ws.grades[k].margin);
      if (v > top) top = v, taken = k + 1;
    }
    Found found;
    ws.code.clear();
    if (taken == 0) return found;
    const double margin = base_.take_grade(*ws.inner, i, w, taken - 1);
    ws.code.assign(ws.inner->code.begin(), ws.inner->code.end());
    found.truth = ws.code.empty();
    if (!found.truth) found.F = merit.value(base_.loss(i, ws.code), margin);
    return found;
  }

  // Ask for corners until they prove that ws.best is the best output, with the value `top`, or do not help
  // any more; returns the losses that are undecided, with a bound of 0 if there are none. `resort`: something
  // else can decide, so do not ask for long.
  Hull::Stretch by_corners(Scratch& ws, std::size_t i, const T* w, const Merit& merit, const Begun& begun, bool resort, double& top) const {
    Hull& hull = ws.hull;
    hull.start(merit, begun.range);
    double lambda = begun.lambda;
    for (int asked = 0; asked < (resort ? kFew : kMany); ++asked) {
      const Grade answer = ask(ws, i, w, lambda);
      hull.answer(lambda, answer.loss, answer.margin);
      if (!ws.inner->code.empty() && merit.value(answer.loss, answer.margin) > top) {
        top = merit.value(answer.loss, answer.margin);
        ws.best.assign(ws.inner->code.begin(), ws.inner->code.end());
      }
      Hull::Stretch next = hull.worst(enough(top), false);
      if (next.ask == 0.0 && !resort) next = hull.worst(enough(top), true);
      if (next.ask == 0.0) break;
      lambda = next.ask;
    }
    return hull.open(enough(top));
  }

  // Values that are no greater are equal, but for rounding.
  static double enough(double top) { return top + (sizeof(T) == 4 ? 1e-7 : 1e-13) * (1.0 + top); }

  static constexpr int kFew = 8, kMany = 48;

  const Base& base_;
  Rescale rescale_;
  bool root_;
};

}  // namespace mm
