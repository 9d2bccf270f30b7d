// What an output is worth under a formulation of the margin: H as a function of loss and margin.
//
//   slack    H = g(Δ) (a - m)          Δ the loss, m = w.δΨ the margin; g(Δ) = Δ, or √Δ with quadratic
//   margin   H = a g(Δ) - m            slacks. a is 1, or the number that `one` says where w is kept as
//   none     H = a - m                 a multiple of what the oracle sees.
//
// H falls with m and (for slack, where it is positive, and margin) grows with Δ. Along a line
// m = λΔ - V, which no output may lie below, it has one maximum. With the derivative set to zero:
//
//                         the loss of that maximum      the loss at which λΔ - m is least for H = v
//   slack,  g(Δ) = Δ      (a + V) / 2λ                  √(v / λ)
//   slack,  g(Δ) = √Δ     (a + V) / 3λ                  (v / 2λ)^(2/3)
//   margin, g(Δ) = √Δ     (a / 2λ)²                     (a / 2λ)²
//
// The slope dm/dΔ of the curve of equal H through a point is (a - m) / Δ, (a - m) / 2Δ and a / 2√Δ. If
// the output that maximises λΔ - m for the slope λ of its own curve is (Δ, m) again, then no output is
// better: all lie on the side of the tangent where H is smaller.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace mm {

enum class Rescale { kMargin, kSlack, kNone };

// The losses that the outputs of one example can have, apart from the truth's.
struct LossRange {
  double least = 0.0;  // no output has less
  double most = std::numeric_limits<double>::infinity();
  double step = 0.0;   // all are multiples of this; 0: not known
};

class Merit {
 public:
  Merit(Rescale rescale, bool root, double one) : rescale_(rescale), root_(root), one_(one) {}

  double one() const { return one_; }
  double g(double loss) const { return root_ ? std::sqrt(loss) : loss; }

  double value(double loss, double margin) const {
    switch (rescale_) {
      case Rescale::kSlack: return g(loss) * (one_ - margin);
      case Rescale::kMargin: return one_ * g(loss) - margin;
      default: return one_ - margin;
    }
  }

  // The margin at which an output of this loss has the value v.
  double margin_of(double loss, double v) const {
    if (rescale_ == Rescale::kNone) return one_ - v;
    if (rescale_ == Rescale::kMargin) return one_ * g(loss) - v;
    return loss > 0.0 ? one_ - v / g(loss) : -std::numeric_limits<double>::infinity();
  }

  // The slope dm/dΔ of the curve of equal value through a point.
  double slope(double loss, double margin) const {
    if (rescale_ == Rescale::kNone) return 0.0;
    if (rescale_ == Rescale::kSlack) return (one_ - margin) / (root_ ? 2.0 * loss : loss);
    return one_ / (2.0 * std::sqrt(loss));
  }

  // The loss at which the value along m = λΔ - V is greatest.
  double peak(double lambda, double V) const {
    if (rescale_ == Rescale::kSlack) return (one_ + V) / ((root_ ? 3.0 : 2.0) * lambda);
    return square(one_ / (2.0 * lambda));
  }

  // The least λΔ - m of an output with a value of v >= 0 and a loss in [from, to], on the grid if there is
  // one (of which `from` and `to` are points, then).
  double least_sum(double lambda, double v, double from, double to, double step) const {
    double at = square(one_ / (2.0 * lambda));
    if (rescale_ == Rescale::kSlack) at = root_ ? std::pow(v / (2.0 * lambda), 2.0 / 3.0) : std::sqrt(v / lambda);
    const auto sum = [&](double loss) {
      loss = std::clamp(loss, from, to);
      return lambda * loss - margin_of(loss, v);
    };
    if (!(step > 0.0)) return sum(at);
    return std::min(sum(std::floor(at / step) * step), sum(std::ceil(at / step) * step));
  }

 private:
  static double square(double x) { return x * x; }

  Rescale rescale_;
  bool root_;
  double one_;
};

}  // namespace mm
