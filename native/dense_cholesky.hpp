// A dense symmetric matrix and its Cholesky factor, for systems of some thousand unknowns.
//
// The matrix is kept by rows, of which the upper triangle counts, with rows padded to whole vectors.
// It is scaled to a unit diagonal first (Jacobi), which makes the factorisation of the matrices of an
// interior point as accurate as their entries are, however far apart the sizes of the unknowns:
//
//   A = S (U'U) S,   S = diag(A)^½.
//
// Blocks of rows are factored and the rest is updated at once (right-looking); the update is the
// rank_update of the vector code. A pivot that is lost in rounding makes factor() begin again with a
// larger ridge on the unit diagonal; solutions are then refined by whoever knows the matrix better.
#pragma once

#include <cmath>

#include "common.hpp"
#include "vector_code.hpp"

namespace mm {

// A matrix has entries that are no numbers.
struct NotFinite : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class DenseCholesky {
 public:
  // All zero, n by n.
  void reset(std::size_t n) {
    n_ = n;
    ld_ = (n + 7) / 8 * 8;
    if (ld_ % 64 == 0) ld_ += 8;  // rows a power of two apart would share their cache lines
    if (entries_.size() != ld_ * ld_) {
      entries_.reset(ld_ * ld_);
      factor_.reset(ld_ * ld_);
      panel_.reset(2 * kPanel * ld_);
    } else {
      std::fill(entries_.data(), entries_.data() + ld_ * ld_, 0.0);
    }
    used_ = 0;
  }
  std::size_t size() const { return n_; }
  double* row(std::size_t i) { return entries_.data() + i * ld_; }
  const double* row(std::size_t i) const { return entries_.data() + i * ld_; }

  static double bytes(double n) { return 8.0 * (2.0 * n * n + 2.0 * kPanel * n); }
  // Multiplications of one factorisation.
  static double work(double n) { return n * n * n / 6.0; }

  // A += weight x x', by and by: rows are collected and added many at a time. x is dense.
  double* new_row(double weight) {
    if (used_ == kPanel) flush();
    weights_[used_] = weight;
    double* x = panel_.data() + kPanel * ld_ + used_++ * ld_;
    std::fill(x, x + ld_, 0.0);
    return x;
  }
  void flush() {
    for (std::size_t r = 0; r < used_; ++r) {
      const double* x = panel_.data() + (kPanel + r) * ld_;
      double* y = panel_.data() + r * ld_;
      for (std::size_t j = 0; j < ld_; ++j) y[j] = weights_[r] * x[j];
    }
    if (used_ > 0) vector_code<double>().rank_update(panel_.data(), panel_.data() + kPanel * ld_, ld_, used_, 0, entries_.data(), ld_);
    used_ = 0;
  }

  // False if `halt` said so. Every matrix has a factor, with a ridge that is large enough.
  template <class Halt>
  bool factor(Halt&& halt) {
    flush();
    scale_.resize(n_);
    for (std::size_t i = 0; i < n_; ++i) {
      const double d = row(i)[i];
      scale_[i] = d > 0.0 && std::isfinite(d) ? 1.0 / std::sqrt(d) : 1.0;
    }
    for (ridge_ = 1e-15; ridge_ <= 1.0; ridge_ *= 100.0) {
      bool halted = false;
      if (try_factor(halt, halted)) return true;
      if (halted) return false;
    }
    throw NotFinite("a matrix of the interior point is not finite");
  }
  double ridge() const { return ridge_; }

  // x <- A^-1 x, as far as the factor goes.
  void solve(double* x) const {
    for (std::size_t i = 0; i < n_; ++i) x[i] *= scale_[i];
    for (std::size_t i = 0; i < n_; ++i) {  // U'y = x
      const double* u = factor_.data() + i * ld_;
      const double y = x[i] /= u[i];
      for (std::size_t j = i + 1; j < n_; ++j) x[j] -= y * u[j];
    }
    for (std::size_t i = n_; i-- > 0;) {  // U x = y
      const double* u = factor_.data() + i * ld_;
      double part[4] = {0, 0, 0, 0};
      std::size_t j = i + 1;
      for (; j + 4 <= n_; j += 4) {
        for (std::size_t k = 0; k < 4; ++k) part[k] += u[j + k] * x[j + k];
      }
      for (; j < n_; ++j) part[0] += u[j] * x[j];
      x[i] = (x[i] - ((part[0] + part[1]) + (part[2] + part[3]))) / u[i];
    }
    for (std::size_t i = 0; i < n_; ++i) x[i] *= scale_[i];
  }

 private:
  template <class Halt>
  bool try_factor(Halt&& halt, bool& halted) {
    for (std::size_t i = 0; i < n_; ++i) {
      const double* a = row(i);
      double* u = factor_.data() + i * ld_;
      std::fill(u, u + ld_, 0.0);
      for (std::size_t j = i; j < n_; ++j) u[j] = a[j] * scale_[i] * scale_[j];
      u[i] = 1.0 + ridge_;
    }
    for (std::size_t at = 0; at < n_; at += kPanel) {
      if (halt()) {
        halted = true;
        return false;
      }
      const std::size_t end = std::min(at + kPanel, n_);
      for (std::size_t i = at; i < end; ++i) {
        double* u = factor_.data() + i * ld_;
        const double pivot = u[i];
        if (!(pivot > kLost)) return false;
        const double root = 1.0 / std::sqrt(pivot);
        for (std::size_t j = i; j < ld_; ++j) u[j] *= root;
        for (std::size_t k = i + 1; k < end; ++k) {
          const double factor = u[k];
          if (factor == 0.0) continue;
          double* v = factor_.data() + k * ld_;
          for (std::size_t j = k; j < ld_; ++j) v[j] -= factor * u[j];
        }
      }
      if (end == n_) break;
      const std::size_t rows = end - at;
      double* y = panel_.data();
      const double* x = factor_.data() + at * ld_;
      for (std::size_t e = 0; e < rows * ld_; ++e) y[e] = -x[e];
      vector_code<double>().rank_update(y, x, ld_, rows, end, factor_.data(), ld_);
    }
    return true;
  }

  static constexpr std::size_t kPanel = 64;  // a multiple of 8
  static constexpr double kLost = 4e-16;     // of a unit diagonal

  std::size_t n_ = 0, ld_ = 0, used_ = 0;
  double ridge_ = 0.0;
  AlignedArray<double> entries_, factor_, panel_;
  double weights_[kPanel] = {};
  std::vector<double> scale_;
};

}  // namespace mm
