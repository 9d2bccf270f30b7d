// The corners of the upper hull of the points (Δ, -m) of all outputs, as far as they are needed to find
// the output of the greatest merit (merit.hpp), and what they prove about all the others.
//
// An oracle that maximises λΔ - m answers with a corner, and with a line that no output lies above. A
// corner that was the answer for the slopes from `low` to `high` bounds its neighbourhood on both sides;
// the merit's maximum along these lines has a closed form. The next slope is that of the line through
// the two corners between which the bound is greatest (it finds a corner between them, or proves that they
// are neighbours: an *edge*) or, beyond the first and the last corner, the slope of the merit's own
// curve there (it finds a corner beyond, or proves that there is nothing better). Where losses lie on a
// grid, only points of the grid count.
#pragma once

#include <vector>

#include "merit.hpp"

namespace mm {

struct Corner {
  double loss, margin;
  double low, high;   // slopes for which it was the answer
  bool edge = false;  // the next corner is its neighbour on the hull
};

class Hull {
 public:
  // A stretch of losses about which the corners do not decide.
  struct Stretch {
    double from, to;
    double bound = 0.0;  // no output there has a greater merit
    double ask = 0.0;    // the slope to ask for next; 0: there is none
  };

  void start(const Merit& merit, const LossRange& range) {
    merit_ = &merit;
    range_ = range;
    corners_.clear();
    if (!(range_.step > 0.0)) return;
    for (double* end : {&range_.least, &range_.most}) *end = std::round(*end / range_.step) * range_.step;
  }

  // An answer to the slope `lambda`; the truth is (0, 0).
  void answer(double lambda, double loss, double margin) {
    const double sum = lambda * loss - margin;
    std::size_t at = 0;
    while (at < corners_.size() && corners_[at].loss < loss - kSame * (1.0 + loss)) ++at;
    const bool known = at < corners_.size() && corners_[at].loss <= loss + kSame * (1.0 + loss);
    const Corner* before = at > 0 ? &corners_[at - 1] : nullptr;
    const Corner* after = at + known < corners_.size() ? &corners_[at + known] : nullptr;
    if (known) {
      corners_[at].low = std::min(corners_[at].low, lambda);
      corners_[at].high = std::max(corners_[at].high, lambda);
    }
    // The line through two corners was asked for, and neither of them or nothing above them was found.
    for (std::size_t k = 0; k + 1 < corners_.size(); ++k) {
      Corner &a = corners_[k], &b = corners_[k + 1];
      if (!(a.high <= lambda && lambda <= b.low)) continue;
      if (std::abs(lambda - chord(a, b)) > kSame * (1.0 + std::abs(lambda))) continue;
      if (known || sum <= lambda * a.loss - a.margin + kRise * (1.0 + std::abs(a.margin))) a.edge = true;
      if (a.edge) return;
    }
    if (known) return;
    // Rounding may put an answer where a hull has no corner; it then says nothing new.
    if ((before != nullptr && (lambda < before->high || before->edge)) || (after != nullptr && lambda > after->low)) return;
    corners_.insert(corners_.begin() + std::ptrdiff_t(at), {loss, margin, lambda, lambda, false});
    // The truth, as one end of the line that was asked for.
    if (loss == 0.0 && corners_.size() > 1 && lambda >= chord(corners_[0], corners_[1]) * (1.0 - kSame)) corners_[0].edge = true;
  }

  // The stretch with the greatest bound above `top`, of those for which there is a slope to ask for if
  // `asking`; bound = 0 if there is none.
  Stretch worst(double top, bool asking) const {
    Stretch worst{0.0, 0.0};
    for_stretches([&](const Stretch& s) {
      if (s.bound > top && s.bound > worst.bound && !(asking && s.ask == 0.0)) worst = s;
    });
    return worst;
  }

  // All losses at which an output may have a merit above `top`, as one interval.
  Stretch open(double top) const {
    Stretch all{range_.most, 0.0};
    for_stretches([&](const Stretch& s) {
      if (!(s.bound > top)) return;
      all.from = std::min(all.from, s.from);
      all.to = std::max(all.to, s.to);
      all.bound = std::max(all.bound, s.bound);
    });
    return all;
  }

  // The slope whose line leaves the least room for outputs with a merit above `top` in a stretch.
  double narrowest(double top, const Stretch& open) const {
    double best = 1.0, least = std::numeric_limits<double>::infinity();
    const auto look = [&](double lambda, const Corner& c) {
      if (!(lambda > 0.0)) return;
      const double room = lambda * c.loss - c.margin - merit_->least_sum(lambda, top, open.from, open.to, range_.step);
      if (room < least) least = room, best = lambda;
    };
    for (std::size_t k = 0; k < corners_.size(); ++k) {
      look(corners_[k].low, corners_[k]);
      look(corners_[k].high, corners_[k]);
      if (corners_[k].edge) look(chord(corners_[k], corners_[k + 1]), corners_[k]);
    }
    return best;
  }

 private:
  static double chord(const Corner& a, const Corner& b) { return (b.margin - a.margin) / (b.loss - a.loss); }

  template <class Visit>
  void for_stretches(Visit&& visit) const {
    if (corners_.empty()) return;
    const Corner &first = corners_.front(), &last = corners_.back();
    if (first.loss > 0.0) visit(left_of(first));
    for (std::size_t k = 0; k + 1 < corners_.size(); ++k) visit(between(corners_[k], corners_[k + 1]));
    visit(right_of(last));
  }

  Stretch left_of(const Corner& c) const {
    Stretch s = within(range_.least, c.loss, c, c.low, c, c.low);
    const double own = merit_->slope(c.loss, c.margin), truth = c.margin / c.loss;
    if (own > std::max(truth, 0.0) && own < c.low * (1.0 - kSame)) {
      s.ask = own;
    } else if (truth > 0.0) {
      if (truth < c.low * (1.0 - kSame)) s.ask = truth;
    } else if (c.low > kNearest) {
      s.ask = 0.25 * c.low;
    }
    return s;
  }

  Stretch right_of(const Corner& c) const {
    Stretch s = within(c.loss, range_.most, c, c.high, c, c.high);
    const double own = c.loss > 0.0 ? merit_->slope(c.loss, c.margin) : 0.0;
    s.ask = own > c.high * (1.0 + kSame) ? own : c.high < kFarthest ? 4.0 * c.high : 0.0;
    return s;
  }

  Stretch between(const Corner& a, const Corner& b) const {
    const double slope = chord(a, b);
    if (a.edge) return within(a.loss, b.loss, a, slope, b, slope);
    Stretch s = within(a.loss, b.loss, a, a.high, b, b.low);
    if (slope > 0.0) s.ask = slope;
    return s;
  }

  // The bound in [from, to] with the line of slope `la` through a and that of slope `lb` >= la through b;
  // on a grid its end points are those inside.
  Stretch within(double from, double to, const Corner& a, double la, const Corner& b, double lb) const {
    Stretch s{from, to};
    if (range_.step > 0.0) {
      // Points of the grid are compared as whole numbers: 3 × 0.3 - 0.3 is less than 2 × 0.3 by rounding, and a
      // stretch of one point must not be taken for an empty one.
      const auto steps = [&](double loss) { return loss / range_.step; };
      double least = std::ceil(steps(from) - kNear), most = std::floor(steps(to) + kNear);
      // The corners themselves are known.
      if (std::abs(least - steps(a.loss)) < 0.5) least += 1.0;
      if (std::abs(most - steps(b.loss)) < 0.5) most -= 1.0;
      s.from = std::max(least, std::round(steps(range_.least))) * range_.step;
      s.to = std::min(most, std::round(steps(range_.most))) * range_.step;
    } else {
      s.from = std::max(s.from, range_.least);
      s.to = std::min(s.to, range_.most);
    }
    if (s.from > s.to) return s;
    const auto margin = [&](double loss) { return std::max(a.margin + la * (loss - a.loss), b.margin - lb * (b.loss - loss)); };
    const auto look = [&](double loss) {
      loss = std::clamp(loss, s.from, s.to);
      s.bound = std::max(s.bound, merit_->value(loss, margin(loss)));
    };
    const auto peak = [&](double loss) {
      if (!(range_.step > 0.0)) return look(loss);
      look(std::floor(loss / range_.step) * range_.step);
      look(std::ceil(loss / range_.step) * range_.step);
    };
    const double meet = lb > la ? ((b.loss * lb - b.margin) - (a.loss * la - a.margin)) / (lb - la) : to;
    peak(std::min(merit_->peak(la, la * a.loss - a.margin), meet));
    if (lb > la) peak(std::max(merit_->peak(lb, lb * b.loss - b.margin), meet));
    return s;
  }

  static constexpr double kSame = 1e-12, kRise = 1e-13, kNear = 1e-6;
  static constexpr double kFarthest = 1 << 20, kNearest = 1.0 / (1 << 20);

  const Merit* merit_ = nullptr;
  LossRange range_;
  std::vector<Corner> corners_;
};

}  // namespace mm
