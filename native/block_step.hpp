// One step of the dual engine: ascent on the multipliers of one part, all others fixed.
//
// Let K be the Gram matrix of the part's planes, F_k = l_k - w.Δf_k their margins under the present w,
// and δ a change of the multipliers α with Σ δ = 0 (no such constraint where blocks are unconstrained).
// It moves u by C Σ_k δ_k Δf_k, and the dual by
//
//   D(α + δ) - D(α) = C Σ δ_k l_k - [Ω*(u + C Σ δ_k Δf_k) - Ω*(u)]  >=  C (Σ δ_k F_k - (C s / 2) δ'Kδ),
//
// because the gradient of Ω* is the link, w = link(u), which is s-Lipschitz (link.hpp): the gradient of
// the dual in the block is C F, its curvature at most C² s K. For L2 this is an equality with s = 1. So
// SMO maximises Σ δF - (C s / 2) δ'Kδ on a few numbers without touching w, and u moves once, at the end.
//
// *Violations.* ψ = max_k F_k - min over α_k > 0 of F_k is zero exactly where the block is optimal
// (2.4); the gap of the block is C (max F - Σ α F) <= C ψ. What is left of it after the last visit
// is the part's `violation`, by which cached passes choose the parts to visit.
//
// *Stiffness.* Where most weights stay zero, few coordinates of u move w at all, and the dual is far
// flatter than the bound. Each part keeps the share of the bound's curvature that its last step met:
// a step of length δ that was predicted to gain linear - bend/2 and gained g has met the curvature
// 2 (linear - g) / bend of what was assumed. (With quadratic slacks the price of mass bends the dual too,
// by (Σ δ)², which is known and taken out of both.) The next step assumes 1.25 times that; a step that lowered
// the dual is taken back and the assumption multiplied by four.
#pragma once

#include <cmath>

#include "blocks.hpp"
#include "coordinate_step.hpp"
#include "pass.hpp"
#include "smo.hpp"
#include "visit_average.hpp"

namespace mm {

// What one thread needs.
template <class T>
struct alignas(128) Lane {  // no other thread's cache lines
  explicit Lane(const Structure<T>& structure) : ws(structure.workspace()) {}
  std::unique_ptr<typename Structure<T>::Workspace> ws;
  PlaneRouter<T> router;
  std::vector<CodeView> views;
  std::vector<double> F, row, before, coef;
  std::vector<Code> code;
  std::vector<std::uint32_t> survivors;
  double loss = 0.0, price = 0.0;  // what its steps added to the sums of the share, where several threads make steps
  bool apart = false;              // whether they do
  double top = 0.0, mean = 0.0, low = 0.0;  // of the part last stepped on: max F, Σ α F, min_{α>0} F
};

template <class T>
class BlockStep {
 public:
  BlockStep(const Structure<T>& structure, Weights<T>& weights) : structure_(structure), weights_(weights) {}

  // Ascend on one part whose margins are in lane.F; true if w moved.
  bool ascend(Blocks<T>& blocks, VisitAverage<T>& average, Lane<T>& lane, std::size_t i, Part<T>& part,
              const PassOptions& options, PassResult& result) {
    const std::size_t m = part.set.size();
    const Slack slack = blocks.slack();
    const double weight = structure_.example_weight(i), C = blocks.C_of(i);
    double* alpha = part.set.alpha();
    double* F = lane.F.data();
    double M = 0.0;
    if (blocks.unconstrained()) alpha[0] = kInfinity, M = Blocks<T>::mass(part);
    double top = 0.0, mean = 0.0, low = kInfinity, high = -kInfinity;  // low, high: where α > 0
    for (std::size_t k = 1; k < m; ++k) {
      top = std::max(top, F[k]);
      mean += alpha[k] * F[k];
      if (alpha[k] > 0.0) low = std::min(low, F[k]), high = std::max(high, F[k]);
    }
    if (alpha[0] > 0.0) low = std::min(low, 0.0), high = std::max(high, 0.0);
    lane.top = top;
    lane.mean = mean;
    double gap = top - mean;
    if (blocks.unconstrained()) {
      gap = blocks.block_gap(i, top, mean, M) / C;
      // The gradients under the price of mass; plane 0 has none.
      if (slack == Slack::kQuadratic) {
        for (std::size_t k = 1; k < m; ++k) F[k] -= M;
      }
      top = low = high = 0.0;
      for (std::size_t k = 1; k < m; ++k) {
        top = std::max(top, F[k]);
        if (alpha[k] > 0.0) low = std::min(low, F[k]), high = std::max(high, F[k]);
      }
    }
    lane.low = blocks.unconstrained() ? lane.top - (top - low) : low;  // so that lane.top - lane.low is ψ
    ++result.visits;
    result.work += kVisitWork + structure_.word_work() * double(part.index.size() + part.set.all_codes().size());
    // Violations count as much as their example does.
    const double size = slack == Slack::kHard ? std::max(gap, top - low) : gap;
    part.violation = static_cast<float>(weight * std::max(size, 0.0));
    result.cached_gap += C * gap;
    result.psi_cached_max = std::max(result.psi_cached_max, weight * (high - low));
    if (!(weight * (top - low) > options.tau)) {
      // A plane without a multiplier that is not even tight is of no use.
      if (options.prune) prune(lane, i, part, blocks.factored(), [&](std::size_t k) { return alpha[k] > 0.0 || F[k] >= top; });
      return false;
    }
    lane.before.assign(alpha, alpha + m);
    lane.coef.assign(F, F + m);
    // The link moves w by at most s = max scale of what u moves (link.hpp): with that curvature the
    // quadratic model of the dual lies below it (and is it, for L2), so that what the model gains,
    // the dual gains.
    // Where most weights stay zero the dual is far flatter than that, so the share of the curvature
    // that the last step met is taken, and a step that went too far is taken back. (With a
    // cost-to-move of β the model is the paper's: w moves with u while β rests.)
    const bool exact_model = weights_.quadratic(), adaptive = !exact_model && !weights_.lagging();
    const double curvature = C * double(part.stiffness) * weights_.steepest() / options.relaxation;
    const double sigma = slack == Slack::kQuadratic ? 1.0 / options.relaxation : 0.0;
    // Each visit has random numbers of its own, whatever the visits before it did.
    RandomBits random(options.seed + 0x2545f4914f6cdd1du * (i + 1));
    const int steps =
        options.coordinate
            ? coordinate_steps(m, part.set.gram(), part.set.stride(), curvature, options.tau_inner / weight, random, alpha, F)
        : options.frank_wolfe
            ? frank_wolfe(m, part.set.gram(), part.set.stride(), curvature, alpha, F)
            : smo(m, part.set.gram(), part.set.stride(), curvature, options.mu, sigma,
                  std::max(options.tau_inner / weight, options.tau_relative * (top - low)), options.max_smo, alpha, F);
    if (steps == 0) return false;
    if (steps < 0) {  // a plane without features and with a loss, and no end to its multiplier
      blocks.set_unbounded();
      std::copy(lane.before.begin(), lane.before.end(), alpha);
      return false;
    }
    // With δ the step and F' the gradient that SMO left under the relaxed curvature C s/ω,
    // s Kδ = ω (F - F' - μδ) / C, so that the gain Σ δF - C/2 δ'Kδ of the dual / C needs no K.
    double linear = 0.0, bend = 0.0;
    for (std::size_t k = 1; k < m; ++k) {  // plane 0 has F = 0 before and after
      const double delta = alpha[k] - lane.before[k];
      linear += delta * lane.coef[k];
      bend += options.relaxation * delta * (lane.coef[k] - F[k] - options.mu * delta);
    }
    if (weights_.mapped() && bends_up(part, lane, bend, C)) {
      std::copy(lane.before.begin(), lane.before.end(), alpha);
      throw IndefiniteKernel();
    }
    double share = 1.0;
    if (linear < 0.5 * bend) {
      // An over-relaxed step that was not solved to the end can overshoot so far that the dual
      // falls. Then go back along it to the best point.
      share = bend > 0.0 ? std::max(linear, 0.0) / bend : 0.0;  // rounding may leave no bend at all
      for (std::size_t k = blocks.unconstrained() ? 1 : 0; k < m; ++k) alpha[k] = lane.before[k] + share * (alpha[k] - lane.before[k]);
    }
    double more_loss = 0.0, more_price = 0.0;  // of the sums of this share
    lane.coef[0] = 0.0;
    for (std::size_t k = 1; k < m; ++k) {
      const double delta = alpha[k] - lane.before[k];
      more_loss += weight * delta * part.set.loss()[k];
      lane.coef[k] = C * delta;
    }
    if (slack == Slack::kQuadratic) {
      const double now = Blocks<T>::mass(part);
      more_price = weight * 0.5 * (now * now - M * M);
    }
    part.set.views(lane.views);
    weights_.take_change();
    structure_.accumulate(*lane.ws, i, part.index, lane.views, lane.coef.data(), weights_);
    if (options.average) average.step(structure_, *lane.ws, i, part.index, lane.views, lane.coef, weights_.size());
    result.work += structure_.update_work(part.index);
    double gain = C * share * (linear - 0.5 * share * bend);
    if (!exact_model) {
      gain = blocks.C() * (more_loss - more_price) - weights_.take_change();
    }
    if (adaptive) {
      const double mass = slack == Slack::kQuadratic ? Blocks<T>::mass(part) - M : 0.0;
      const double priced = mass * mass;  // what the price of mass has of the bend
      const double assumed = share * share * bend - priced, met = 2.0 * (share * linear - gain / C) - priced;
      if (gain < 0.0) {
        for (std::size_t k = 0; k < m; ++k) {
          lane.coef[k] = -lane.coef[k];
          alpha[k] = lane.before[k];
        }
        structure_.accumulate(*lane.ws, i, part.index, lane.views, lane.coef.data(), weights_);
        weights_.take_change();
        part.stiffness = std::min(1.0f, 4.0f * part.stiffness);
        return true;  // w has moved, by rounding at least
      }
      const double wanted = 1.25 * double(part.stiffness) * met / std::max(assumed, 1e-300);
      part.stiffness = static_cast<float>(std::clamp(wanted, 0.5 * double(part.stiffness), 1.0));
      part.stiffness = std::max(part.stiffness, 0.02f);
    }
    if (lane.apart) {
      lane.loss += more_loss, lane.price += more_price;
    } else {
      blocks.add_to_sums(more_loss, more_price);
    }
    result.gain += gain;
    result.smo_steps += steps;
    ++result.solved;
    if (options.prune) prune(lane, i, part, blocks.factored(), [&](std::size_t k) { return alpha[k] > 0.0; });
    return true;
  }

  template <class Keep>
  void prune(Lane<T>& lane, std::size_t i, Part<T>& part, bool factored, Keep&& keep) {
    if (part.set.prune(keep, lane.survivors) == 0) return;
    part.set.views(lane.views);
    structure_.reindex(*lane.ws, i, lane.views, part.index);
    if (!factored || part.set.size() == 1) return;
    part.extent = structure_.extent(i, lane.views[1]);
    for (std::size_t k = 2; k < lane.views.size(); ++k) {
      const Extent extent = structure_.extent(i, lane.views[k]);
      part.extent = {std::min(part.extent.lo, extent.lo), std::max(part.extent.hi, extent.hi)};
    }
  }

 private:
  // Does the dual bend upwards along the step that was made, by more than rounding can tell? It
  // does so with a kernel that is none. The bend is a sum of differences of gradients, before
  // (lane.coef) and after the step (lane.F), so that a tiny step may have the sign of their rounding.
  static bool bends_up(const Part<T>& part, const Lane<T>& lane, double bend, double C) {
    if (bend >= 0.0) return false;
    double scale = 0.0, rounding = 0.0;
    for (std::size_t k = 0; k < part.set.size(); ++k) {
      const double delta = part.set.alpha()[k] - lane.before[k];
      scale += delta * delta * std::abs(double(part.set.gram()[k * part.set.stride() + k]));
      rounding += std::abs(delta) * (std::abs(lane.coef[k]) + std::abs(lane.F[k]));
    }
    return bend < -1e-5 * C * scale - 1e-12 * rounding;
  }

  // A step, by measurement: fixed cycles, and cycles for each word of index and codes.
  static constexpr double kVisitWork = 1000.0;

  const Structure<T>& structure_;
  Weights<T>& weights_;
};

}  // namespace mm
