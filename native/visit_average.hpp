// The average of w over the visits of a run, that of the t-th visit with weight t (BCFW).
//
// With A = Σ_t t the sum Σ_t t w_t is A w + lag, where w is the present one: what a step adds to w now
// was not there in the visits before, so that the step times -A is added to lag.
#pragma once

#include <memory>

#include "structure.hpp"

namespace mm {

template <class T>
class VisitAverage {
 public:
  // A visit is over.
  void count() { averaged_ += (visits_ += 1.0); }

  // A step: coef[k] of each plane was added to u.
  void step(const Structure<T>& structure, typename Structure<T>::Workspace& ws, std::size_t i, CodeView index,
            std::span<const CodeView> planes, std::span<const double> coef, std::size_t n_weights) {
    if (!lag_) lag_ = std::make_unique<Weights<T>>(n_weights);
    scaled_.assign(coef.begin(), coef.end());
    for (double& c : scaled_) c *= -averaged_;
    structure.accumulate(ws, i, index, planes, scaled_.data(), *lag_);
  }

  void write(const Weights<T>& weights, T* out) const {
    for (std::size_t j = 0; j < weights.size(); ++j) {
      out[j] = weights.data()[j] + (lag_ ? T(double(lag_->data()[j]) / averaged_) : T(0));
    }
  }
  void forget() { lag_.reset(), averaged_ = visits_ = 0.0; }

  // What it is made of, for checkpoints: the lag, if there is one, and the visits.
  const Weights<T>* lag() const { return lag_.get(); }
  double visits() const { return visits_; }
  void restore(std::span<const T> lag, double visits) {
    forget();
    if (!lag.empty()) {
      lag_ = std::make_unique<Weights<T>>(lag.size());
      std::copy(lag.begin(), lag.end(), lag_->data());
    }
    visits_ = visits;
    // Σ t for t up to `visits` is exact in 8-byte numbers for all counts that are met.
    averaged_ = 0.5 * visits * (visits + 1.0);
  }

 private:
  std::unique_ptr<Weights<T>> lag_;  // averaged_ * (average - w)
  double averaged_ = 0.0, visits_ = 0.0;
  std::vector<double> scaled_;
};

}  // namespace mm
