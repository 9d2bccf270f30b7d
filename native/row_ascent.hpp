// Algorithm 1 of the dual-coordinate paper where the planes of an example are one row with a sign
// (signed_rows.hpp), as LIBLINEAR does it for binary problems: no lists of planes, no small matrices, one
// number an example.
//
// With β_i = α_up - α_down, of which one is zero, the dual is
//
//   D(β) = C Σ_i c_i (β_i⁺ above_i + β_i⁻ below_i) - ½|u|²,   u = u₀ + C Σ_i c_i β_i x_i,   -1 <= β_i <= 1,
//
// c_i being the weight of the example. With G = w.x_i and h = C c_i |x_i|² the best β_i, all others
// fixed, is β_i + (above_i - G)/h if that is above 0, β_i - (below_i + G)/h if that is below 0 (above + below
// <= 0, so that not both are), else 0; then clipped to [-1, 1]. These are (25) for either plane. A pair of the
// same example, (28), never has a step: at |β| = 1 mass that would go from one plane to the other has
// to come by zero.
//
// A pass visits all examples once, in the order given, and then those that are left in further
// rounds. An example is left out of them while its multiplier is at a bound and the gradient pushes
// it against the bound by more than the largest violation of the round before (*shrinking*; Hsieh et al., ICML
// 2008, section 3.2). The multipliers are copied from the blocks and back, so that everything else of the
// engine (certificates, checkpoints, other passes) sees them where it expects them.
#pragma once

#include <cmath>

#include "blocks.hpp"
#include "pass.hpp"
#include "random_bits.hpp"
#include "signed_rows.hpp"

namespace mm {

struct CoordinateOptions {
  int rounds = 10;            // at most so many times as many visits as there are examples; the first round visits all
  double enough = 0.1;        // the later ones end at this share of the first one's gap ...
  double goal = 0.0;          // ... or at this share of the dual
  double shrink = kInfinity;  // largest violation of the last pass, by which the first round leaves examples to the later ones
  std::uint64_t seed = 0;     // of the orders of later rounds
};

template <class T>
class RowAscent {
 public:
  explicit RowAscent(const SignedRows<T>& rows) : rows_(rows) {}

  // result.gap is that of (36), with each block as it was last visited. A block that the last round left out was at
  // a bound then, with the gradient against it, and has no gap: so the sum is over the last round. `dual` is that
  // before the pass; psi_max is of the last round.
  template <class Stop>
  void run(Blocks<T>& blocks, Weights<T>& weights, std::span<const std::uint32_t> order, const CoordinateOptions& options,
           double dual, PassResult& result, Stop&& stop) {
    gather(blocks);
    const RowData& data = rows_.data();
    const std::vector<double>& norms = rows_.norms();
    T* w = weights.sums();
    const double C = blocks.C();
    RandomBits random(options.seed);
    active_.assign(order.begin(), order.end());
    double threshold = options.shrink, first_gap = 0.0;
    const std::int64_t most = std::int64_t(options.rounds) * std::int64_t(order.size());
    for (int round = 0; result.visits < most; ++round) {
      if (round > 0) random.shuffle(std::span(active_));
      double gap = 0.0, hinge = 0.0, worst = 0.0;
      std::size_t kept = 0, entries = 0;
      const std::size_t n = active_.size();
      for (std::size_t at = 0; at < n; ++at) {
        if (stop(result)) break;
        if (at + 6 < n) rows_.prefetch_example(active_[at + 6]), prefetch(&beta_[active_[at + 6]]), prefetch(&norms[active_[at + 6]]);
        if (at + 2 < n) rows_.prefetch_row(active_[at + 2]);
        const std::uint32_t i = active_[at];
        const double c = data.weight(i);
        if (c == 0.0) continue;
        const double G = rows_.score(i, w), up = data.above[i] - G, down = data.below[i] + G;  // (24)
        const double beta = beta_[i], top = std::max({0.0, up, down});
        entries += data.n_features(i);
        hinge += c * top;
        gap += c * (top - (beta > 0.0 ? beta * up : beta < 0.0 ? -beta * down : 0.0));
        // The gradient by |β|, and whether it pushes against a bound.
        const double along = beta > 0.0 ? up : beta < 0.0 ? down : top;
        const bool bound = beta == 0.0 ? top == 0.0 : std::abs(beta) == 1.0 && along >= 0.0;
        if (bound) {
          const double push = c * (beta == 0.0 ? -std::max(up, down) : along);
          if (push <= threshold) active_[kept++] = i;
          continue;
        }
        active_[kept++] = i;
        worst = std::max(worst, c * std::abs(along));
        const double h = C * c * norms[i];
        double fresh;
        if (h > 0.0) {
          const double high = beta + up / h, low = beta - down / h;
          fresh = high > 0.0 ? std::min(high, 1.0) : low < 0.0 ? std::max(low, -1.0) : 0.0;
        } else {
          fresh = up > 0.0 ? 1.0 : down > 0.0 ? -1.0 : 0.0;  // a row of zeros
        }
        if (fresh == beta) continue;
        beta_[i] = fresh;
        ++result.smo_steps;
        const double step = C * c * (fresh - beta);
        dual += C * c * (linear(i, fresh) - linear(i, beta)) - step * (G + 0.5 * step * norms[i]);
        rows_.spread(i, step, [w](std::size_t j, T amount) { w[j] += amount; });  // (30)
      }
      result.visits += std::int64_t(n);
      result.work += 80.0 * double(n) + 4.0 * double(entries);
      if (round == 0) {
        result.oracle_calls += std::int64_t(n);
        result.hinge = hinge;
        first_gap = gap;
      }
      if (result.interrupted) {
        result.gap = std::nan("");
        break;
      }
      active_.resize(kept);
      result.psi_max = worst;
      result.gap = result.cached_gap = C * gap;
      threshold = worst;
      if (kept == 0 || gap <= options.enough * first_gap || C * gap <= options.goal * std::abs(dual)) break;
    }
    scatter(blocks);
  }

 private:
  // What the multiplier of an example adds to the dual but for the norm.
  double linear(std::size_t i, double beta) const {
    return beta > 0.0 ? beta * rows_.data().above[i] : beta < 0.0 ? -beta * rows_.data().below[i] : 0.0;
  }

  static constexpr Code kCodes[] = {SignedRows<T>::kUp, SignedRows<T>::kDown};

  void gather(const Blocks<T>& blocks) {
    const std::size_t n = blocks.n_examples();
    before_.assign(n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      for (const Part<T>& part : blocks[i]) {
        for (std::size_t k = 1; k < part.set.size(); ++k) {
          before_[i] += part.set.code(k)[0] == SignedRows<T>::kUp ? part.set.alpha()[k] : -part.set.alpha()[k];
        }
      }
    }
    beta_ = before_;
  }

  void scatter(Blocks<T>& blocks) {
    const auto ws = rows_.workspace();
    for (std::size_t i = 0; i < beta_.size(); ++i) {
      const double beta = beta_[i];
      Parts<T>& parts = blocks[i];
      // (Other solvers may have left mass on both planes, which a difference does not show.)
      if (beta == before_[i] && (parts.empty() || parts.front().set.size() == 2)) continue;
      if (beta == 0.0) {
        parts.clear();
        continue;
      }
      if (parts.empty()) {
        Part<T> fresh;
        fresh.extent = {0, ~std::uint32_t{0}};
        fresh.set.start();
        parts.reserve(1);
        parts.push_back(std::move(fresh));
      }
      Part<T>& part = parts.front();
      const CodeView code(&kCodes[beta > 0.0 ? 0 : 1], 1);
      if (part.set.find(code) == part.set.size()) add_plane(static_cast<const Structure<T>&>(rows_), *ws, i, part, code, views_, row_);
      const std::size_t k = part.set.find(code);
      std::fill(part.set.alpha(), part.set.alpha() + part.set.size(), 0.0);
      part.set.alpha()[k] = std::abs(beta);
      part.set.alpha()[0] = 1.0 - std::abs(beta);
      if (part.set.size() > 2) part.set.prune([k](std::size_t other) { return other == k; }, survivors_);
    }
  }

  const SignedRows<T>& rows_;
  std::vector<double> before_, beta_;
  std::vector<std::uint32_t> active_, survivors_;
  std::vector<CodeView> views_;
  std::vector<double> row_;
};

}  // namespace mm
