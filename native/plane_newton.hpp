// The linear systems of the interior point, reduced to the columns or to the planes.
//
// With D_k = z_k / s_k of the planes of a part and D_0 of its truth (with quadratic slacks D_0 is C_p, with
// hard margins it is infinite), eliminating slacks and multipliers leaves
//
//   H = Q + Σ_p A_p' (D_p - D_p 1 1' D_p / δ_p) A_p,      δ_p = D_0 + Σ_k D_k,
//
// the curvature Q of the regulariser plus a weighted covariance of each part's planes: the low-rank form
// of Ferris and Munson, "Interior-point methods for massive support vector machines", SIAM J. Optim.
// 13 (2003). As the method converges, D of planes that bind grows without end, and D - DD'/δ would be
// the difference of two large numbers. But a covariance does not depend on the origin. So each part
// takes its plane with the largest D (or the truth) as the origin, its *pivot* r:
//
//   b_k = a_k - a_r for the planes,  -a_r for the truth,  each with its D;    δ_p as before,
//
// over all but the pivot, whose b is zero. The D that are left sum to at most (1 - 1/m) δ of the m planes, so
// that the subtraction loses no more than a factor m of accuracy. As there is always one row b less than
// planes and truth, a part has as many rows as planes: that of the pivot plane stands for the truth.
//
// Where there are fewer planes than columns, the system in the space of the rows is smaller (Woodbury):
//
//   H^-1 = Q^-1 - Q^-1 B' S^-1 B Q^-1,    S = B Q^-1 B' + diag(1/D) + 1 1'/D_r within each part.
//
// The cheaper one is taken. Solutions are refined with products that use the planes themselves.
//
// *Pulls.* The multipliers move by y = D (a.x - ȳ) (and what does not depend on x). Of planes that bind, D is
// z²/μ, and y computed like that has the rounding of a.x times D: the condition Qx + B'y = b of the first
// line is missed by more and more as μ falls. (C = 1e3, features of size 100, μ = 1e-6: by 2, where w is of
// size one.) In the space of the rows y is the solution itself and x = Q^-1 (b - B'y) follows from it: the
// condition is met up to rounding, and what refinement has left is a relative error of s z. So an
// interior point whose columns lose digits goes over to the rows (`go_by_planes`), if they are not too many.
#pragma once

#include "dense_cholesky.hpp"
#include "plane_program.hpp"

namespace mm {

class PlaneNewton {
 public:
  // `fixed_curvature`: Q stays the same in all factorisations.
  PlaneNewton(const PlaneProgram& program, bool fixed_curvature)
      : program_(program), fixed_curvature_(fixed_curvature),
        by_planes_(plane_work(program, fixed_curvature) < column_work(program)) {}

  bool by_planes() const { return by_planes_; }

  // Take the system of the rows from the next factorisation on, although it may cost more; false where
  // it is too large for that, or taken already.
  bool go_by_planes() {
    if (by_planes_ || program_.planes.size() > kMostPlanes || plane_work(program_, fixed_curvature_) > kWorth * column_work(program_)) return false;
    return by_planes_ = true;
  }

  // Multiplications of a factorisation, roughly; a product of the sparse rows counts three.
  static double column_work(double columns, double planes, double row) {
    const double wide = std::min(columns, 2.0 * row);
    return DenseCholesky::work(columns) + planes * std::min(1.5 * wide * wide, 0.5 * columns * columns);
  }
  static double plane_work(double planes, double row, bool fixed_curvature) {
    return DenseCholesky::work(planes) + planes * planes * (fixed_curvature ? 1.0 : 1.5 * row);
  }
  double work() const { return by_planes_ ? plane_work(program_, fixed_curvature_) : column_work(program_); }

  // False if `halt` said so.
  template <class Halt>
  bool factor(const std::vector<double>& D, const std::vector<double>& truth, const std::vector<double>& Q, Halt&& halt) {
    D_ = &D, truth_ = &truth, Q_ = &Q;
    choose_pivots();
    return (by_planes_ ? assemble_planes(halt) : assemble_columns(halt)) && matrix_.factor(halt);
  }

  // x = H^-1 b, refined; and y = D (a.x - ȳ) of the planes and the truths.
  void solve(const std::vector<double>& b, std::vector<double>& x, std::vector<double>& y, std::vector<double>& truth_y) {
    const PlaneProgram& q = program_;
    y.resize(q.planes.size()), truth_y.assign(q.n_parts(), 0.0);
    if (by_planes_) {
      solve_rows(b, x, y);
    } else {
      solve_columns(b, x);
      centred(x, y, truth_y);
      for (std::size_t p = 0; p < q.n_parts(); ++p) {
        for (std::size_t k = q.first[p]; k < q.first[p + 1]; ++k) y[k] *= (*D_)[k];
        if (pivot_[p] != kTruth) y[pivot_[p]] = (*truth_)[p] * truth_y[p];
      }
    }
    if (q.slack == Slack::kHard) return;
    // From the rows b to planes and truth: the pivot has what makes the sum of the part zero.
    for (std::size_t p = 0; p < q.n_parts(); ++p) {
      double sum = 0.0;
      for (std::size_t k = q.first[p]; k < q.first[p + 1]; ++k) sum += y[k];
      truth_y[p] = pivot_[p] == kTruth ? -sum : y[pivot_[p]];
      if (pivot_[p] != kTruth) y[pivot_[p]] = -sum;
    }
  }

  void solve_columns(const std::vector<double>& b, std::vector<double>& x) {
    const std::size_t d = b.size();
    x.assign(d, 0.0);
    left_ = b;
    double before = kInfinity;
    for (int round = 0; round < 4; ++round) {
      right_ = left_;
      matrix_.solve(right_.data());
      for (std::size_t j = 0; j < d; ++j) trial_.resize(d), trial_[j] = x[j] + right_[j];
      apply(trial_, product_);
      double now = 0.0;
      for (std::size_t j = 0; j < d; ++j) {
        left_[j] = b[j] - product_[j];
        now += left_[j] * left_[j] / diagonal_[j];
      }
      if (!(now < 0.25 * before)) {  // no better: rounding is all that is left
        if (now < before) x = trial_;
        break;
      }
      x = trial_;
      before = now;
    }
  }

  // a_k.x - ȳ for each plane and -ȳ for the truth of each part, with the mean ȳ = Σ D a.x / δ; the
  // numbers are taken relative to the pivot, so that those of planes that bind keep their digits.
  void centred(const std::vector<double>& x, std::vector<double>& planes, std::vector<double>& truths) const {
    const PlaneProgram& q = program_;
    planes.resize(q.planes.size()), truths.resize(q.n_parts());
    for (std::size_t k = 0; k < planes.size(); ++k) planes[k] = q.planes.dot(k, x.data());
    for (std::size_t p = 0; p < q.n_parts(); ++p) {
      truths[p] = 0.0;
      if (q.slack == Slack::kHard) continue;
      const double origin = pivot_[p] == kTruth ? 0.0 : planes[pivot_[p]];
      double sum = pivot_[p] == kTruth ? 0.0 : -(*truth_)[p] * origin;
      for (std::size_t k = q.first[p]; k < q.first[p + 1]; ++k) {
        planes[k] = k == pivot_[p] ? 0.0 : planes[k] - origin;
        sum += (*D_)[k] * planes[k];
      }
      const double mean = sum / delta_[p];
      for (std::size_t k = q.first[p]; k < q.first[p + 1]; ++k) planes[k] -= mean;
      truths[p] = -origin - mean;
    }
  }
  double delta(std::size_t p) const { return delta_[p]; }

 private:
  static constexpr std::size_t kTruth = ~std::size_t{0};

  static double row_length(const PlaneProgram& q) { return double(q.planes.column.size()) / std::max(1.0, double(q.planes.size())); }
  static double column_work(const PlaneProgram& q) { return column_work(double(q.columns.size()), double(q.planes.size()), row_length(q)); }
  static double plane_work(const PlaneProgram& q, bool fixed) { return plane_work(double(q.planes.size()), row_length(q), fixed); }

  void choose_pivots() {
    const PlaneProgram& q = program_;
    pivot_.assign(q.n_parts(), kTruth);
    delta_.assign(q.n_parts(), kInfinity);
    if (q.slack == Slack::kHard) return;
    for (std::size_t p = 0; p < q.n_parts(); ++p) {
      double top = (*truth_)[p], sum = top;
      for (std::size_t k = q.first[p]; k < q.first[p + 1]; ++k) {
        sum += (*D_)[k];
        if ((*D_)[k] > top) top = (*D_)[k], pivot_[p] = k;
      }
      delta_[p] = sum;
    }
  }
  // D of the row that plane k has.
  double row_weight(std::size_t p, std::size_t k) const { return k == pivot_[p] ? (*truth_)[p] : (*D_)[k]; }

  // H x, without forming H.
  void apply(const std::vector<double>& x, std::vector<double>& out) {
    const PlaneProgram& q = program_;
    out.resize(x.size());
    for (std::size_t j = 0; j < x.size(); ++j) out[j] = (*Q_)[j] * x[j];
    centred(x, planes_, truths_);
    for (std::size_t p = 0; p < q.n_parts(); ++p) {
      // The pivot takes what makes the sum of the part zero.
      double sum = pivot_[p] == kTruth || q.slack == Slack::kHard ? 0.0 : (*truth_)[p] * truths_[p];
      for (std::size_t k = q.first[p]; k < q.first[p + 1]; ++k) {
        if (k == pivot_[p]) continue;
        const double t = (*D_)[k] * planes_[k];
        sum += t;
        q.planes.add(k, t, out.data());
      }
      if (pivot_[p] != kTruth) q.planes.add(pivot_[p], -sum, out.data());
    }
  }

  // Q x + B'y = b, B x = W^-1 y with W^-1 = diag(1/D) + 1 1'/D_r within each part: S y = B Q^-1 b. The second
  // condition is refined; the first is met by the way x is made of y.
  void solve_rows(const std::vector<double>& b, std::vector<double>& x, std::vector<double>& y) {
    const std::size_t d = b.size(), n = program_.planes.size();
    y.assign(n, 0.0), left_.assign(n, 0.0);
    trial_ = b;
    for (std::size_t j = 0; j < d; ++j) trial_[j] /= (*Q_)[j];
    double before = kInfinity;
    for (int round = 0; round < 5; ++round) {
      // What is left of the second condition, over the sizes that S has on its diagonal.
      rows_times(trial_, planes_);
      subtract_inverse(left_, planes_);
      double now = 0.0;
      for (std::size_t k = 0; k < n; ++k) now += planes_[k] * planes_[k] / matrix_.row(k)[k];
      if (round > 1 && !(now < before)) break;  // no better: rounding is all that is left
      x = trial_, y = left_;
      if (round > 1 && !(now < 0.25 * before)) break;
      before = now;
      matrix_.solve(planes_.data());
      for (std::size_t k = 0; k < n; ++k) left_[k] += planes_[k];
      trial_ = b;
      rows_add(left_, -1.0, trial_);
      for (std::size_t j = 0; j < d; ++j) trial_[j] /= (*Q_)[j];
    }
  }

  // out -= W^-1 y
  void subtract_inverse(const std::vector<double>& y, std::vector<double>& out) const {
    const PlaneProgram& q = program_;
    for (std::size_t p = 0; p < q.n_parts(); ++p) {
      double sum = 0.0;
      for (std::size_t k = q.first[p]; k < q.first[p + 1]; ++k) sum += y[k];
      if (q.slack == Slack::kHard) {
        sum = 0.0;
      } else {
        sum /= pivot_[p] == kTruth ? (*truth_)[p] : (*D_)[pivot_[p]];
      }
      for (std::size_t k = q.first[p]; k < q.first[p + 1]; ++k) out[k] -= sum + y[k] / row_weight(p, k);
    }
  }

  // out += factor B'y
  void rows_add(const std::vector<double>& y, double factor, std::vector<double>& out) const {
    const PlaneProgram& q = program_;
    for (std::size_t p = 0; p < q.n_parts(); ++p) {
      double sum = 0.0;
      for (std::size_t k = q.first[p]; k < q.first[p + 1]; ++k) {
        sum += y[k];
        if (k != pivot_[p]) q.planes.add(k, factor * y[k], out.data());
      }
      if (pivot_[p] != kTruth) q.planes.add(pivot_[p], -factor * sum, out.data());
    }
  }

  // B x
  void rows_times(const std::vector<double>& x, std::vector<double>& out) const {
    const PlaneProgram& q = program_;
    out.resize(q.planes.size());
    for (std::size_t p = 0; p < q.n_parts(); ++p) {
      const double origin = pivot_[p] == kTruth ? 0.0 : q.planes.dot(pivot_[p], x.data());
      for (std::size_t k = q.first[p]; k < q.first[p + 1]; ++k) out[k] = (k == pivot_[p] ? 0.0 : q.planes.dot(k, x.data())) - origin;
    }
  }

  // ---- the space of the columns ----

  template <class Halt>
  bool assemble_columns(Halt&& halt) {
    const PlaneProgram& q = program_;
    const std::size_t d = q.columns.size();
    matrix_.reset(d);
    dense_.assign(d, 0.0);
    mean_.assign(d, 0.0);
    for (std::size_t p = 0; p < q.n_parts(); ++p) {
      if ((p & 15) == 0 && halt()) return false;
      const std::size_t begin = q.first[p], end = q.first[p + 1];
      // A part with one plane: D (1 - D / δ) = D D_r / δ.
      const bool single = end - begin == 1 && q.slack != Slack::kHard;
      touched_.clear();
      for (std::size_t k = begin; k < end; ++k) {
        const double weight = row_weight(p, k);
        make_row(p, k);
        if (single) {
          add_row(weight * (delta_[p] - weight) / delta_[p]);
        } else {
          add_row(weight);
          if (q.slack == Slack::kHard) continue;
          for (std::size_t e = 0; e < column_.size(); ++e) {
            if (mean_[column_[e]] == 0.0) touched_.push_back(column_[e]);
            mean_[column_[e]] += weight * value_[e];
          }
        }
      }
      if (touched_.empty()) continue;
      std::sort(touched_.begin(), touched_.end());
      touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
      column_.assign(touched_.begin(), touched_.end());
      value_.resize(column_.size());
      for (std::size_t e = 0; e < column_.size(); ++e) value_[e] = std::exchange(mean_[column_[e]], 0.0);
      add_row(-1.0 / delta_[p]);
    }
    matrix_.flush();
    diagonal_.resize(d);
    for (std::size_t j = 0; j < d; ++j) {
      matrix_.row(j)[j] += (*Q_)[j];
      diagonal_[j] = matrix_.row(j)[j];
    }
    return true;
  }

  // b of the row that plane k has, into column_ and value_, ascending.
  void make_row(std::size_t p, std::size_t k) {
    const SparseRows& a = program_.planes;
    column_.clear(), value_.clear();
    if (pivot_[p] == kTruth || k == pivot_[p]) {
      const double sign = k == pivot_[p] ? -1.0 : 1.0;
      for (std::size_t e = a.begin[k]; e < a.begin[k + 1]; ++e) column_.push_back(a.column[e]), value_.push_back(sign * a.value[e]);
      return;
    }
    const std::size_t r = pivot_[p];
    std::size_t e = a.begin[k], f = a.begin[r];
    while (e < a.begin[k + 1] || f < a.begin[r + 1]) {
      const std::uint32_t x = e < a.begin[k + 1] ? a.column[e] : ~0u, y = f < a.begin[r + 1] ? a.column[f] : ~0u;
      double value = 0.0;
      if (x <= y) value += a.value[e++];
      if (y <= x) value -= a.value[f++];
      if (value != 0.0) column_.push_back(std::min(x, y)), value_.push_back(value);
    }
  }

  // H += weight b b'
  void add_row(double weight) {
    if (weight == 0.0 || column_.empty()) return;
    if (double(column_.size()) > kDense * double(matrix_.size())) {
      double* x = matrix_.new_row(weight);
      for (std::size_t e = 0; e < column_.size(); ++e) x[column_[e]] = value_[e];
      return;
    }
    // Contiguous runs, across gaps of a few zeros.
    runs_.clear();
    for (std::size_t e = 0; e < column_.size(); ++e) {
      dense_[column_[e]] = value_[e];
      if (runs_.empty() || column_[e] > runs_.back().second + kGap) runs_.push_back({column_[e], column_[e]});
      runs_.back().second = column_[e] + 1;
    }
    std::size_t first = 0;
    for (std::size_t e = 0; e < column_.size(); ++e) {
      const std::uint32_t i = column_[e];
      while (runs_[first].second <= i) ++first;
      double* h = matrix_.row(i);
      const double factor = weight * value_[e];
      for (std::size_t r = first; r < runs_.size(); ++r) {
        const std::uint32_t from = std::max(runs_[r].first, i), to = runs_[r].second;
        for (std::uint32_t j = from; j < to; ++j) h[j] += factor * dense_[j];
      }
    }
    for (const std::uint32_t j : column_) dense_[j] = 0.0;
  }

  // ---- the space of the planes ----

  template <class Halt>
  bool assemble_planes(Halt&& halt) {
    const PlaneProgram& q = program_;
    const std::size_t n = q.planes.size(), d = q.columns.size();
    if (gram_.size() == 0 || !fixed_curvature_) {
      if (gram_.size() == 0) gram_.reset(n * n);
      dense_.assign(d, 0.0);
      for (std::size_t k = 0; k < n; ++k) {
        if ((k & 15) == 0 && halt()) return false;
        for (std::size_t e = q.planes.begin[k]; e < q.planes.begin[k + 1]; ++e) dense_[q.planes.column[e]] = q.planes.value[e] / (*Q_)[q.planes.column[e]];
        for (std::size_t l = 0; l <= k; ++l) gram_[k * n + l] = gram_[l * n + k] = q.planes.dot(l, dense_.data());
        for (std::size_t e = q.planes.begin[k]; e < q.planes.begin[k + 1]; ++e) dense_[q.planes.column[e]] = 0.0;
      }
    }
    matrix_.reset(n);
    part_of_.resize(n);
    for (std::size_t p = 0; p < q.n_parts(); ++p) {
      for (std::size_t k = q.first[p]; k < q.first[p + 1]; ++k) part_of_[k] = p;
    }
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t r = pivot_[part_of_[k]];
      // <b_k, a_l> = <a_k, a_l> - <a_r, a_l>, of which the first is missing for the truth's row.
      const double* mine = k == r ? nullptr : gram_.data() + k * n;
      const double* origin = r == kTruth ? nullptr : gram_.data() + r * n;
      const auto with = [&](std::size_t l) { return (mine == nullptr ? 0.0 : mine[l]) - (origin == nullptr ? 0.0 : origin[l]); };
      double* row = matrix_.row(k);
      for (std::size_t l = k; l < n; ++l) {
        const std::size_t s = pivot_[part_of_[l]];
        row[l] = (l == s ? 0.0 : with(l)) - (s == kTruth ? 0.0 : with(s));
      }
      const std::size_t p = part_of_[k];
      if (q.slack != Slack::kHard) {
        const double common = 1.0 / (r == kTruth ? (*truth_)[p] : (*D_)[r]);
        for (std::size_t l = k; l < q.first[p + 1]; ++l) row[l] += common;
      }
      row[k] += 1.0 / row_weight(p, k);
    }
    diagonal_ = *Q_;
    return true;
  }

  static constexpr std::size_t kMostPlanes = 2048;  // that columns without digits are given up for
  static constexpr double kWorth = 20.0;            // what may cost so many times as much
  static constexpr double kDense = 0.2;       // rows fuller than this are added as dense ones
  static constexpr std::uint32_t kGap = 4;

  const PlaneProgram& program_;
  const bool fixed_curvature_;
  bool by_planes_;
  const std::vector<double>*D_ = nullptr, *truth_ = nullptr, *Q_ = nullptr;
  std::vector<std::size_t> pivot_, part_of_;
  std::vector<double> delta_, diagonal_;
  DenseCholesky matrix_;
  AlignedArray<double> gram_;
  std::vector<double> dense_, mean_, value_, left_, right_, trial_, product_, planes_, truths_;
  std::vector<std::uint32_t> column_, touched_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> runs_;
};

}  // namespace mm
