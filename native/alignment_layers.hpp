// The best alignment at every loss: the dynamic programme of alignment_table.hpp with one layer for each count.
//
// A layer is what an alignment has collected so far (alignment_data.hpp):
//   residues  base + Σ c, the number of wrong residues if it ended here: n + m + 1 layers, beginning at base;
//   matches   twice the number of true matches, plus one if there is a false one: a true match of |T| ones and
//             nothing else is the truth, and it must be told from other alignments of the same loss.
// Only matches change the layer. Time and memory are those of the plain programme times the number of layers,
// so this is for short sequences; it makes formulations exact that the hull of all outputs does not decide.
#pragma once

#include "alignment_data.hpp"

namespace mm {

class AlignmentLayers {
 public:
  struct Task {
    AlignmentMode mode;
    FreeEnds free;
    AlignmentLoss loss;
    std::size_t n, m, n_true;
    double open, extend;
    const std::int64_t* partner1;  // [n] of each residue in truth, or -1
    const std::int64_t* partner2;  // [m]
  };

  static std::size_t n_layers(AlignmentLoss loss, std::size_t n, std::size_t m, std::size_t n_true) {
    return loss == AlignmentLoss::kResidues ? n + m + 1 : 2 * (n_true + 1);
  }

  // score(i, j) of a match. Afterwards value(l) is the best score at layer l, or -infinity.
  template <class Score>
  void run(const Task& task, Score&& score) {
    task_ = task;
    const std::size_t n = task.n, m = task.m, L = n_layers(task.loss, n, m, task.n_true);
    L_ = L;
    first_ = task.loss == AlignmentLoss::kResidues ? 2 * task.n_true : 0;
    trace_.assign(n * m * L, 0);
    for (auto* row : {&M_, &X_, &Y_, &M_old_, &X_old_, &Y_old_}) row->assign((m + 1) * L, -kInfinity);
    value_.assign(L, -kInfinity);
    last_.assign(L, {0, 0});
    value_[first_] = 0.0;
    for_unmatched(task.mode, task.free, n, m, [&](std::size_t length) { value_[first_] += gap(length); });
    for (std::size_t i = 1; i <= n; ++i) {
      std::swap(M_, M_old_), std::swap(X_, X_old_), std::swap(Y_, Y_old_);
      for (auto* row : {&M_, &X_, &Y_}) std::fill(row->begin(), row->begin() + std::ptrdiff_t(L), -kInfinity);
      for (std::size_t j = 1; j <= m; ++j) {
        const double s = score(i - 1, j - 1);
        const double begin = outside(task.free.start1, task.free.start2, i - 1, j - 1);
        const double end = outside(task.free.end1, task.free.end2, n - i, m - j);
        for (std::size_t l = 0; l < L; ++l) {
          std::uint8_t cell = 0;
          double match = -kInfinity;
          for_sources(i - 1, j - 1, l, [&](std::size_t k, std::uint8_t which) {
            const std::size_t at = (j - 1) * L + k;
            const auto take = [&](double value, std::uint8_t from) {
              if (value > match) match = value, cell = std::uint8_t(from | (which << 5));
            };
            if (k == first_) take(begin, kStart);
            take(M_old_[at], kM), take(X_old_[at], kX), take(Y_old_[at], kY);
          });
          match += s;
          const std::size_t at = j * L + l, left = (j - 1) * L + l;
          const double x_open = M_old_[at] + task.open, x_extend = X_old_[at] + task.extend;
          const bool is_x = X_[left] > M_[left];
          const double y_open = std::max(M_[left], X_[left]) + task.open, y_extend = Y_[left] + task.extend;
          cell |= std::uint8_t((x_extend > x_open ? 4 : 0) | ((y_extend > y_open ? 2 : is_x ? 1 : 0) << 3));
          M_[at] = match, X_[at] = std::max(x_open, x_extend), Y_[at] = std::max(y_open, y_extend);
          trace_[((i - 1) * m + (j - 1)) * L + l] = cell;
          if (match + end > value_[l]) value_[l] = match + end, last_[l] = {std::uint32_t(i), std::uint32_t(j)};
        }
      }
    }
  }

  std::size_t size() const { return L_; }
  double value(std::size_t l) const { return value_[l]; }
  // The truth alone has this layer.
  std::size_t truth() const { return task_.loss == AlignmentLoss::kResidues ? 0 : 2 * task_.n_true; }
  // In units of the loss: wrong residues, or missed matches.
  std::size_t count(std::size_t l) const { return task_.loss == AlignmentLoss::kResidues ? l : task_.n_true - l / 2; }

  // Append the matches of the best alignment at a layer.
  void matches(std::size_t l, std::vector<Code>& out) const {
    const std::size_t begin = out.size();
    std::size_t i = last_[l].first, j = last_[l].second;
    std::uint8_t state = kM;
    while (i > 0 && j > 0 && state != kStart) {
      const std::uint8_t cell = trace_[((i - 1) * task_.m + (j - 1)) * L_ + l];
      if (state == kM) {
        out.push_back(Code(j - 1)), out.push_back(Code(i - 1));
        std::size_t next = l;
        for_sources(i - 1, j - 1, l, [&](std::size_t k, std::uint8_t which) {
          if (which == cell >> 5) next = k;
        });
        l = next, state = cell & 3, --i, --j;
      } else if (state == kX) {
        state = (cell & 4) != 0 ? kX : kM, --i;
      } else {
        state = std::uint8_t(1 + ((cell >> 3) & 3)), --j;
      }
    }
    std::reverse(out.begin() + std::ptrdiff_t(begin), out.end());
  }

 private:
  enum : std::uint8_t { kStart, kM, kX, kY };

  double gap(std::size_t length) const { return length == 0 ? 0.0 : task_.open + double(length - 1) * task_.extend; }
  double outside(bool free1, bool free2, std::size_t a, std::size_t b) const {
    double sum = 0.0;
    for_outside(task_.mode, free1, free2, a, b, [&](std::size_t length) { sum += gap(length); });
    return sum;
  }

  // The layers from which a match of (i, j) leads to layer l: visit(layer, number of the way).
  template <class Visit>
  void for_sources(std::size_t i, std::size_t j, std::size_t l, Visit&& visit) const {
    const bool right = task_.partner1[i] == std::int64_t(j);
    if (task_.loss == AlignmentLoss::kMatches) {
      if (right) {
        if (l >= 2) visit(l - 2, std::uint8_t(0));
      } else if (l % 2 == 1) {
        visit(l, std::uint8_t(0)), visit(l - 1, std::uint8_t(1));
      }
      return;
    }
    const std::int64_t change = right ? -2 : (task_.partner1[i] < 0) + (task_.partner2[j] < 0);
    const std::int64_t k = std::int64_t(l) - change;
    if (k >= 0 && k < std::int64_t(L_)) visit(std::size_t(k), std::uint8_t(0));
  }

  Task task_{};
  std::size_t L_ = 0, first_ = 0;
  std::vector<double> M_, X_, Y_, M_old_, X_old_, Y_old_, value_;
  std::vector<std::uint8_t> trace_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> last_;
};

}  // namespace mm
