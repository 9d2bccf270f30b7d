// A step on all parts at once, for links that are not linear: semismooth Newton on the face of the dual
// that the present multipliers lie on.
//
// Block-coordinate ascent is slow where blocks interact strongly (a large C, small ρ₂, quadratic slacks):
// each step is undone by the next. The dual along a change δ of all multipliers is
//
//   D(α + δ) - D(α) = Σ_i C_i (Σ δ l - σ [M_i δM_i + ½ δM_i²]) - [Ω*(u + d) - Ω*(u)],    d = Σ_i C_i Σ δ Δf,
//
// with σ = 1 for quadratic slacks (δM_i = Σ δ, the mass) and 0 else. Ω* is made of pieces of parabolas:
// its gradient is the link w = link(u), and S = diag(slope of the link) is its generalised Hessian.
// So with F the margins (less σ M_i) the Newton step on the multipliers that are above zero solves
//
//   H δ = C F,    H = Δ' S Δ + σ (one block 11' for each example),    Σ δ = 0 in each part (linear slacks),
//
// by conjugate gradients in that subspace, preconditioned with the diagonal of H's bound. A product with H
// goes through the weights: d from δ (one walk over the planes), S d, and the margins of S d (another).
// No Gram matrix over all planes is needed. Where the link is flat a small share of its slope stands for
// the weights that will leave zero on the way, so that H stays definite on all planes that differ.
//
// The step is shortened part by part to where a multiplier reaches zero (or, if the dual does not rise
// that way, by one factor for all), and the best length along it is found to the end: d is known, so that
// each trial costs one sweep over u and d. A step is taken if the dual rises. Multipliers at zero do not
// move: cached passes, between which this is called, bring them in and smooth what conjugate gradients
// left (Moré and Toraldo, "On the solution of large quadratic programming problems with bound
// constraints", SIAM J. Optim. 1991, alternate in the same way).
#pragma once

#include <cmath>

#include "blocks.hpp"
#include "pass.hpp"

namespace mm {

struct NewtonOptions {
  int products = 30;      // of conjugate gradients, in one solve
  int solves = 10;        // faces, in one pass
  double flat = 0.02;     // share of the slope that is taken where the link is flat
  double worth = 0.0;     // the pass ends after a solve that gains less than this for its work
};

template <class T>
class NewtonStep {
 public:
  using Workspace = typename Structure<T>::Workspace;

  explicit NewtonStep(const Structure<T>& structure) : structure_(structure) {}

  static bool applies(const Weights<T>& weights) { return !weights.lagging() && !weights.mapped(); }

  template <class Stop>
  void run(Blocks<T>& blocks, Weights<T>& weights, Workspace& ws, const NewtonOptions& options, PassResult& result, Stop&& stop) {
    sigma_ = blocks.slack() == Slack::kQuadratic ? 1.0 : 0.0;
    free_ = blocks.unconstrained();
    if (!direction_ || direction_->size() != weights.size()) {
      direction_ = std::make_unique<Weights<T>>(weights.size());
      sloped_.reset(weights.size());
    }
    for (int solve = 0; solve < options.solves; ++solve) {
      const double work = result.work;
      if (!gather(blocks, weights, ws, result, stop) || !conjugate_gradients(weights, ws, options, result, stop)) break;
      const double gain = step(blocks, weights, ws, result);
      if (!(gain > 0.0) || gain < options.worth * (result.work - work)) break;
    }
    structure_.weights_changed(ws);
  }

 private:
  struct Member {  // a part with multipliers that can move
    std::size_t i;
    Part<T>* part;
    std::size_t first, n;  // its variables
    double C, mass;
  };

  // The variables: multipliers above zero, of parts that have at least one degree of freedom.
  template <class Stop>
  bool gather(Blocks<T>& blocks, const Weights<T>& weights, Workspace& ws, PassResult& result, Stop&& stop) {
    members_.clear();
    plane_.clear();
    gradient_.clear();
    diagonal_.clear();
    structure_.weights_changed(ws);
    for (std::size_t i = 0; i < blocks.n_examples(); ++i) {
      if (structure_.example_weight(i) == 0.0) continue;
      for (Part<T>& part : blocks[i]) {
        if (stop(result)) return false;
        const std::size_t m = part.set.size(), first = plane_.size();
        for (std::uint32_t k = free_ ? 1 : 0; k < m; ++k) {
          if (part.set.alpha()[k] > 0.0) plane_.push_back(k);
        }
        const std::size_t n = plane_.size() - first;
        if (n == 0 || (n == 1 && !free_)) {
          plane_.resize(first);
          continue;
        }
        const Member member{i, &part, first, n, blocks.C_of(i), free_ ? Blocks<T>::mass(part) : 0.0};
        members_.push_back(member);
        margins(ws, member, weights.data());
        result.work += visit_work(part);
        ++result.visits;
        for (std::size_t a = first; a < plane_.size(); ++a) {
          const std::size_t k = plane_[a];
          const double own = double(part.set.gram()[k * part.set.stride() + k]);
          gradient_.push_back(k == 0 ? 0.0 : member.C * (row_[k] - sigma_ * member.mass));
          diagonal_.push_back(member.C * (member.C * weights.steepest() * own + sigma_) + 1e-12 * member.C);
        }
      }
    }
    return !members_.empty();
  }

  void margins(Workspace& ws, const Member& member, const T* w) {
    const auto& set = member.part->set;
    set.views(views_);
    row_.resize(set.size());
    structure_.margins(ws, member.i, w, member.part->index, views_, {set.loss(), set.size()}, Structure<T>::Fresh::kNo, row_.data());
  }

  // z = the preconditioned r in the subspace: (r - λ) / diagonal with Σ z = 0 in each part.
  void precondition(const std::vector<double>& r, std::vector<double>& z) const {
    for (const Member& member : members_) {
      const std::size_t end = member.first + member.n;
      double lambda = 0.0, sum = 0.0;
      // Plane 0 has no features; the smallest diagonal of the others stands for its own.
      double least = kInfinity;
      for (std::size_t a = member.first; a < end; ++a) {
        if (plane_[a] != 0) least = std::min(least, diagonal_[a]);
      }
      const auto own = [&](std::size_t a) { return plane_[a] == 0 ? least : diagonal_[a]; };
      for (std::size_t a = member.first; a < end && !free_; ++a) lambda += r[a] / own(a), sum += 1.0 / own(a);
      if (!free_) lambda /= sum;
      for (std::size_t a = member.first; a < end; ++a) z[a] = (r[a] - lambda) / own(a);
    }
  }

  // d of a step: direction_ = Σ C_i Σ x Δf.
  void walk(Workspace& ws, const std::vector<double>& x, PassResult& result) {
    direction_->clear();
    for (const Member& member : members_) {
      coef_.assign(member.part->set.size(), 0.0);
      for (std::size_t a = member.first; a < member.first + member.n; ++a) coef_[plane_[a]] = member.C * x[a];
      coef_[0] = 0.0;
      member.part->set.views(views_);
      structure_.accumulate(ws, member.i, member.part->index, views_, coef_.data(), *direction_);
      result.work += structure_.update_work(member.part->index);
    }
    result.work += double(direction_->size());
  }

  // q = H p
  template <class Stop>
  bool product(const Weights<T>& weights, Workspace& ws, const NewtonOptions& options, PassResult& result, Stop&& stop) {
    walk(ws, p_, result);
    weights.times_slope(direction_->data(), options.flat, sloped_.data());
    structure_.weights_changed(ws);
    for (const Member& member : members_) {
      if (stop(result)) return false;
      margins(ws, member, sloped_.data());
      double mass = 0.0;
      for (std::size_t a = member.first; a < member.first + member.n; ++a) mass += plane_[a] == 0 ? 0.0 : p_[a];
      for (std::size_t a = member.first; a < member.first + member.n; ++a) {
        const std::size_t k = plane_[a];
        q_[a] = k == 0 ? 0.0 : member.C * (member.part->set.loss()[k] - row_[k] + sigma_ * mass);
      }
      result.work += visit_work(*member.part);
      ++result.visits;
    }
    return true;
  }

  // y: about the maximiser on the face without its bounds.
  template <class Stop>
  bool conjugate_gradients(const Weights<T>& weights, Workspace& ws, const NewtonOptions& options, PassResult& result, Stop&& stop) {
    const std::size_t n = plane_.size();
    y_.assign(n, 0.0), p_.assign(n, 0.0), q_.assign(n, 0.0), z_.assign(n, 0.0);
    residual_ = gradient_;
    double rho = 0.0, start = 0.0;
    for (int made = 0; made < options.products; ++made) {
      precondition(residual_, z_);
      const double now = dot(residual_, z_);
      if (made == 0) start = now;
      if (!(now > kSolved * start)) break;
      const double beta = made == 0 ? 0.0 : now / rho;
      rho = now;
      for (std::size_t a = 0; a < n; ++a) p_[a] = z_[a] + beta * p_[a];
      if (!product(weights, ws, options, result, stop)) return false;
      const double bend = dot(p_, q_);
      double most = 0.0;
      for (std::size_t a = 0; a < n; ++a) most += diagonal_[a] * p_[a] * p_[a];
      if (!(bend > kFlat * most)) {  // no end to it but a bound
        if (made == 0) y_ = p_;
        break;
      }
      for (std::size_t a = 0; a < n; ++a) y_[a] += rho / bend * p_[a], residual_[a] -= rho / bend * q_[a];
      ++result.smo_steps;
    }
    return rho > 0.0;
  }

  // Step along y; returns what the dual gained.
  double step(Blocks<T>& blocks, Weights<T>& weights, Workspace& ws, PassResult& result) {
    double least = 1.0, linear = 0.0;
    step_ = y_;
    for (const Member& member : members_) {
      double room = 1.0;
      const double* alpha = member.part->set.alpha();
      for (std::size_t a = member.first; a < member.first + member.n; ++a) {
        if (y_[a] < 0.0) room = std::min(room, -alpha[plane_[a]] / y_[a]);
      }
      least = std::min(least, room);
      for (std::size_t a = member.first; a < member.first + member.n; ++a) step_[a] *= room, linear += step_[a] * gradient_[a];
    }
    if (!(linear > 0.0)) {
      for (std::size_t a = 0; a < y_.size(); ++a) step_[a] = least * y_[a];
    }
    walk(ws, step_, result);
    double pull = 0.0, price = 0.0;  // the dual along it: t pull - ½ t² price - [Ω*(u + t d) - Ω*(u)]
    for (const Member& member : members_) {
      double mass = 0.0;
      for (std::size_t a = member.first; a < member.first + member.n; ++a) {
        if (plane_[a] == 0) continue;
        pull += member.C * step_[a] * (member.part->set.loss()[plane_[a]] - sigma_ * member.mass);
        mass += step_[a];
      }
      price += sigma_ * member.C * mass * mass;
    }
    const auto [length, gain] = search(weights, pull, price, result);
    if (!(gain > 0.0)) return 0.0;
    return take(blocks, weights, ws, length, gain, result);
  }

  // The best length in (0, 1] and its gain: Newton's method in a bracket.
  std::pair<double, double> search(const Weights<T>& weights, double pull, double price, PassResult& result) const {
    double low = 0.0, high = 1.0, t = 1.0, gain = 0.0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const auto at = weights.along(direction_->data(), t);
      result.work += 2.0 * double(weights.size());
      gain = t * pull - 0.5 * t * t * price - at.value;
      const double slope = pull - t * price - at.slope, bend = price + at.bend;
      if (slope > 0.0 ? t == 1.0 : -slope * t <= 1e-3 * gain) break;
      (slope > 0.0 ? low : high) = t;
      if (slope > 0.0 && slope * (high - low) <= 1e-3 * gain) break;
      const double next = bend > 0.0 ? t + slope / bend : 0.0;
      t = next > low && next < high ? next : 0.5 * (low + high);
    }
    return {t, gain};
  }

  double take(Blocks<T>& blocks, Weights<T>& weights, Workspace& ws, double length, double gain, PassResult& result) {
    before_.assign(weights.sums(), weights.sums() + weights.size());
    double more_loss = 0.0, more_price = 0.0;
    weights.take_change();
    for (Member& member : members_) {
      auto& set = member.part->set;
      const double weight = structure_.example_weight(member.i);
      double* alpha = set.alpha();
      std::size_t largest = plane_[member.first];
      for (std::size_t a = member.first; a < member.first + member.n; ++a) {
        const std::size_t k = plane_[a];
        q_[a] = alpha[k];
        const double now = alpha[k] + length * step_[a];
        alpha[k] = now > kEmpty * alpha[k] ? now : 0.0;  // rounding may leave a little of a multiplier that goes
        if (alpha[k] > alpha[largest]) largest = k;
      }
      if (!free_) {  // and a little too much or too little of the sum
        double sum = 0.0;
        for (std::size_t k = 0; k < set.size(); ++k) sum += alpha[k];
        alpha[largest] += 1.0 - sum;
      }
      coef_.assign(set.size(), 0.0);
      double mass = member.mass;
      for (std::size_t a = member.first; a < member.first + member.n; ++a) {
        const std::size_t k = plane_[a];
        if (k == 0) continue;
        const double change = alpha[k] - q_[a];
        more_loss += weight * change * set.loss()[k];
        coef_[k] = member.C * change;
        mass += change;
      }
      more_price += sigma_ * weight * 0.5 * (mass * mass - member.mass * member.mass);
      set.views(views_);
      structure_.accumulate(ws, member.i, member.part->index, views_, coef_.data(), weights);
      result.work += structure_.update_work(member.part->index);
      ++result.solved;
    }
    if (!weights.linear()) gain = blocks.C() * (more_loss - more_price) - weights.take_change();
    if (gain < 0.0) {  // by rounding
      for (Member& member : members_) {
        for (std::size_t a = member.first; a < member.first + member.n; ++a) member.part->set.alpha()[plane_[a]] = q_[a];
      }
      std::copy(before_.begin(), before_.end(), weights.sums());
      weights.relink();
      return 0.0;
    }
    blocks.add_to_sums(more_loss, more_price);
    result.gain += gain;
    return gain;
  }

  static double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0.0;
    for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
    return sum;
  }
  static double visit_work(const Part<T>& part) { return 500.0 + 25.0 * double(part.index.size() + part.set.all_codes().size()); }

  static constexpr double kSolved = 1e-12;  // of the first residual, squared and preconditioned
  static constexpr double kFlat = 1e-9;     // least curvature, as a share of the diagonal's
  static constexpr double kEmpty = 1e-12;
  static constexpr int kTrials = 30;

  const Structure<T>& structure_;
  double sigma_ = 0.0;
  bool free_ = false;
  std::vector<Member> members_;
  std::vector<std::uint32_t> plane_;
  std::vector<double> gradient_, diagonal_, residual_, y_, z_, p_, q_, step_, row_, coef_;
  std::vector<CodeView> views_;
  std::vector<T> before_;
  std::unique_ptr<Weights<T>> direction_;  // w = u: a vector that accumulate() can write to
  AlignedArray<T> sloped_;
};

}  // namespace mm
