// Imputing what the truth leaves open, for any native structure.
//
// A latent problem is one in which other outputs than the reference cost nothing: those are the outputs
// (y_i, h) that agree with the truth y_i, whatever their latent part h is. The best of them under w,
//
//   z_i = argmax over z with l_i(z) = 0 of w.f(x_i, z),
//
// is the constrained argmax that a concave-convex procedure asks for between two convex steps. A structure
// need not be written for that: it is the corner (structure.hpp) of argmax λ l_i(z) - w.Δf_i(z) for a very
// negative λ. Whatever λ is, an answer with l = 0 is right: no output without a loss has a higher score, as
// the answer would have been that one. An answer with a loss says that λ was not negative enough. The scores
// of outputs without a loss do not contain λ, so that its size costs them no digits.
//
// The linear term of the next convex step is then u₀ = C Σ_i (f(x_i, z_i) - f(x_i, reference)) = -C Σ_i Δf_i(z_i),
// examples counting with their weights, and the value of the concave part at w is w.u₀ = -C Σ_i w.Δf_i(z_i).
#pragma once

#include <string>

#include "example_loop.hpp"

namespace mm {

class Imputer {
 public:
  struct Lane {
    explicit Lane(const Structure<double>& structure) : ws(structure.workspace()) {}
    std::unique_ptr<Structure<double>::Workspace> ws;
  };
  struct Total {
    std::size_t changed = 0;
    bool interrupted = false;
    void add(const Total& other) {
      changed += other.changed;
      interrupted = interrupted || other.interrupted;
    }
  };

  explicit Imputer(const Structure<double>& structure) : loop(structure), structure_(structure), codes_(structure.n_examples()) {}

  ExampleLoop<double, Lane> loop;

  // What an output without a loss may have of it by rounding.
  static constexpr double kNoLoss = 1e-12;

  // z_i under w for all examples: codes(), and values[i] = w.(f(x_i, z_i) - f(x_i, reference)). How many
  // differ from those of the call before (at first: from the references).
  Total impute(const double* w, int threads, std::vector<double>& values) {
    values.assign(structure_.n_examples(), 0.0);
    return loop.template run<Total>(threads, [&](Lane& lane, std::size_t i, std::size_t, Total& total) {
      double lambda = -1e9;
      auto found = structure_.corner(*lane.ws, i, w, lambda);
      while (found.loss > kNoLoss) {
        lambda *= 1e3;
        if (lambda < -1e18) throw BadInput("example " + std::to_string(i) + ": no output without a loss was found under weights of this size");
        found = structure_.corner(*lane.ws, i, w, lambda);
      }
      values[i] = -found.margin;
      if (std::ranges::equal(codes_[i], lane.ws->code)) return;
      codes_[i].assign(lane.ws->code.begin(), lane.ws->code.end());
      ++total.changed;
    });
  }

  // u₀ of what was imputed last, into u [n_weights], which is zero.
  void linear_term(double C, double* u) {
    auto weights = Weights<double>::recorder(structure_.n_weights());
    std::vector<Code> index;
    for (std::size_t i = 0; i < codes_.size(); ++i) {
      const double coef = -C * structure_.example_weight(i);
      if (codes_[i].empty() || coef == 0.0) continue;
      const CodeView code(codes_[i]);
      index.clear();
      structure_.index(*loop.first.ws, i, code, index);
      structure_.accumulate(*loop.first.ws, i, index, {&code, 1}, &coef, weights);
    }
    std::copy_n(weights.data(), structure_.n_weights(), u);
  }

  const std::vector<std::vector<Code>>& codes() const { return codes_; }

  // Take an output of example i for the one that was imputed last; empty: the reference.
  void set_code(std::size_t i, CodeView code) {
    if (!code.empty()) {
      require(structure_.valid(i, code), "example " + std::to_string(i) + ": what was imputed is no output of it");
      require(structure_.loss(i, code) <= kNoLoss, "example " + std::to_string(i) + ": what was imputed has a loss");
    }
    codes_[i].assign(code.begin(), code.end());
  }

 private:
  const Structure<double>& structure_;
  std::vector<std::vector<Code>> codes_;  // of what was imputed, as planes; empty: the reference
};

}  // namespace mm
