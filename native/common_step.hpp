// The greatest step of which all of some numbers are multiples: Euclid's algorithm, with a tolerance.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace mm {

class CommonStep {
 public:
  // A number that is not negative.
  void add(double x) {
    largest_ = std::max(largest_, x);
    double a = std::max(x, step_), b = std::min(x, step_);
    if (std::isinf(step_)) a = x, b = 0.0;
    // Numbers below this are rounding.
    const double nothing = kTolerance * largest_;
    while (b > nothing) {
      const double rest = a - std::round(a / b) * b;
      a = b, b = std::abs(rest);
    }
    if (a > nothing) step_ = a;
    if (step_ * kMostSteps < largest_) none_ = true;
  }

  // 0: there is none, or one so small that it is of no use.
  double step() const { return none_ || std::isinf(step_) ? 0.0 : step_; }

 private:
  static constexpr double kTolerance = 1e-9, kMostSteps = 1000.0;
  double step_ = std::numeric_limits<double>::infinity(), largest_ = 0.0;
  bool none_ = false;
};

}  // namespace mm
