// The dual engine: block-coordinate ascent on
//
//   D(α) = C Σ_i Σ_y α_i(y) l_i(y) - Ω*(u),   u = C Σ_i Σ_y α_i(y) Δf_i(y),   w = link(u),
//   α_i(y) >= 0,  Σ_y α_i(y) = 1              (y_i itself is a member, with Δf = 0 and l = 0)
//
// whose primal is P(w) = Ω(w) + C Σ_i max_y F_i(y), F_i(y) = l_i(y) - w.Δf_i(y). At one w the gap
// P - D is the sum of the block gaps  g_i = C (max_y F_i(y) - Σ_y α_i(y) F_i(y)).
#pragma once

#include <cmath>
#include <thread>
#include <atomic>

#include "smo.hpp"
#include "structure.hpp"
#include "working_set.hpp"

namespace mm {

struct PassOptions {
  bool exact = true;
  double tau = 0.0;
  double tau_inner = 0.0;
  double tau_relative = 0.0;
  int max_smo = 1000;
  bool prune_zero = true;
  int rounds = 1;
  int max_age = 0;
  double keep = 0;
  double omega = 1;
};

struct PassResult {
  double gap = 0.0;        // Σ g_i at the w of each visit, before the step
  double gain = 0.0;       // increase of the dual
  double psi_max = 0.0;    // largest ψ_i (2.4) at the visits
  double psi_hat_max = 0.0;
  std::int64_t oracle_calls = 0, added = 0, solved = 0, smo_steps = 0;
};

template <class T>
class Engine {
 public:
  Engine(const Structure<T>& structure, double C)
      : structure_(structure), C_(C), weights_(structure.n_weights()),
        blocks_(structure.n_examples()), gap_(structure.n_examples(), 0.0), ws_(structure.workspace()) {}

  Weights<T>& weights() { return weights_; }

  PassResult pass(std::span<const std::uint32_t> order, const PassOptions& options) {
    PassResult result;
    structure_.weights_changed(*ws_);
    for (std::size_t at = 0; at < order.size(); ++at) {
      if (!options.exact) {
        if (at + 1 < order.size()) {
          const WorkingSet<T>& next = blocks_[order[at + 1]];
          structure_.prefetch(order[at + 1], next.all_codes(), weights_.data());
        }
        if (at + 2 < order.size()) {
          const WorkingSet<T>& later = blocks_[order[at + 2]];
          if (!later.untouched()) prefetch_range(later.alpha(), std::min<std::size_t>(later.bytes(), 512));
        }
      }
      for (int r = 0; r < options.rounds; ++r) if (!visit(order[at], options, result, r)) break;
    }
    return result;
  }

  bool visit(std::size_t i, const PassOptions& options, PassResult& result, int round) {
    WorkingSet<T>& block = blocks_[i];
    Found found;
    if (options.exact) {
      found = structure_.oracle(*ws_, i, weights_.data());
      ++result.oracle_calls;
      if (found.truth && block.untouched()) { gap_[i] = 0; return false; }
    } else if (block.size() <= 1) {
      return false;
    }
    if (block.untouched()) block.start();
    block.views(views_);
    F_.resize(block.size() + 1);
    structure_.margins(*ws_, i, weights_.data(), views_, {block.loss(), block.size()}, options.exact, F_.data());
    double mean = 0.0, top = options.exact ? found.F : 0.0, low = INFINITY;
    double top_cached = -INFINITY;
    const double* alpha = block.alpha();
    for (std::size_t k = 0; k < block.size(); ++k) {
      mean += alpha[k] * F_[k];
      top_cached = std::max(top_cached, F_[k]);
      if (alpha[k] > 0) low = std::min(low, F_[k]);
    }
    top = std::max(top, top_cached);
    const double g = C_ * (top - mean);
    if (round == 0) { result.gap += g; if (options.exact) gap_[i] = g; }
    const double psi = top - low;
    if (round == 0) { result.psi_max = std::max(result.psi_max, psi); result.psi_hat_max = std::max(result.psi_hat_max, top_cached - low);}
    if (options.exact && psi <= options.tau) return false;
    bool added = false;
    if (options.exact && !found.truth && found.F > top_cached + 1e-12 * std::abs(top_cached)) {
      // a plane better than all kept ones is new
      if (block.find(ws_->code) == block.size()) {
        views_.push_back(ws_->code);
        row_.resize(views_.size());
        structure_.gram(*ws_, i, ws_->code, views_, row_.data());
        block.add(ws_->code, found.loss, row_.data());
        F_[block.size() - 1] = found.F;
        ++result.added;
        added = true;
      }
    }
    if (round > 0 && !added) return false;
    const std::size_t m = block.size();
    before_.assign(block.alpha(), block.alpha() + m);
    const SmoResult step = smo<T>(m, block.gram(), block.stride(), C_ / options.omega, std::max(options.tau_inner, options.tau_relative * psi),
                               options.max_smo, block.alpha(), F_.data());
    result.gain += C_ * step.gain;
    result.smo_steps += step.steps;
    if (step.steps > 0) {
      ++result.solved;
      block.views(views_);
      coef_.resize(m);
      for (std::size_t k = 0; k < m; ++k) coef_[k] = C_ * (block.alpha()[k] - before_[k]);
      structure_.accumulate(*ws_, i, views_, coef_.data(), weights_);
    }
    if (options.prune_zero) block.prune([&](std::size_t k) { return block.alpha()[k] > 0.0 || F_[k] > -options.keep; }, survivors_);
    return true;
  }

  double linear() const {
    double s = 0;
    for (auto& b : blocks_) for (std::size_t k = 1; k < b.size(); ++k) s += b.alpha()[k] * b.loss()[k];
    return C_ * s;
  }
  double dual() const { return linear() - weights_.penalty(); }
  // at fixed w
  double primal(int threads) {
    double sum = 0;
    structure_.weights_changed(*ws_);
    (void)threads;
    for (std::size_t i = 0; i < blocks_.size(); ++i) sum += structure_.oracle(*ws_, i, weights_.data()).F;
    return weights_.penalty() + C_ * sum;
  }
  std::pair<std::size_t,std::size_t> planes() const { std::size_t n = 0, b = 0; for (auto& x : blocks_) { n += x.size(); b += x.bytes(); } return {n, b}; }
  const std::vector<double>& gaps() const { return gap_; }

 private:
  const Structure<T>& structure_;
  double C_;
  Weights<T> weights_;
  std::vector<WorkingSet<T>> blocks_;
  std::vector<double> gap_;
  std::unique_ptr<typename Structure<T>::Workspace> ws_;
  std::vector<CodeView> views_;
  std::vector<double> F_, row_, before_, coef_;
  std::vector<std::uint32_t> survivors_;
};

}  // namespace mm
