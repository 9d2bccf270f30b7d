// The best projective tree at each number of wrong arcs: Eisner's chart (eisner.hpp) with the errors counted.
//
// An arc h -> d is worth right[h][d] if it counts as no error (the true head with the true relation; -inf elsewhere)
// and wrong[h][d] if it counts as one. Every entry of the chart becomes a list over the number of errors in it, and
// a sum of two entries a convolution: O(n⁵) in all, with a small constant (Σ over splits of the product of two
// lengths), which is why it is for short sentences and the last resort of the others.
#pragma once

#include "common.hpp"

namespace mm {

class CountedTrees {
 public:
  // Fill the chart; both matrices have (n + 1)² entries, h (n + 1) + d.
  void fill(std::size_t n, const double* right, const double* wrong, bool one_root) {
    n_ = n, m_ = n + 1, right_ = right, wrong_ = wrong, one_root_ = one_root;
    const std::size_t cells = m_ * m_ * m_;
    for (std::vector<double>* table : {&cr_, &cl_, &ir_, &il_, &base_}) table->assign(cells, -kInfinity);
    const std::size_t first = one_root ? 1 : 0;
    for (std::size_t s = first; s <= n; ++s) cr_[at(s, s)] = cl_[at(s, s)] = 0.0;
    for (std::size_t width = 1; width + first <= n; ++width) {
      for (std::size_t s = first; s + width <= n; ++s) {
        const std::size_t t = s + width;
        for (std::size_t r = s; r < t; ++r) join(&cr_[at(s, r)], r - s, &cl_[at(r + 1, t)], t - r - 1, &base_[at(s, t)]);
        arc(&base_[at(s, t)], width - 1, s, t, &ir_[at(s, t)]);
        if (s > 0) arc(&base_[at(s, t)], width - 1, t, s, &il_[at(s, t)]);
        for (std::size_t r = s + 1; r <= t; ++r) join(&ir_[at(s, r)], r - s, &cr_[at(r, t)], t - r, &cr_[at(s, t)]);
        for (std::size_t r = s; r < t; ++r) join(&cl_[at(s, r)], r - s, &il_[at(r, t)], t - r, &cl_[at(s, t)]);
      }
    }
    total_.assign(n + 1, -kInfinity);
    if (!one_root) {
      std::copy_n(&cr_[at(0, n)], n + 1, total_.begin());
      return;
    }
    std::vector<double> both(n + 1), with(n + 1);
    for (std::size_t r = 1; r <= n; ++r) {
      std::fill(both.begin(), both.end(), -kInfinity);
      join(&cl_[at(1, r)], r - 1, &cr_[at(r, n)], n - r, both.data());
      arc(both.data(), n - 1, 0, r, with.data());
      for (std::size_t k = 0; k <= n; ++k) total_[k] = std::max(total_[k], with[k]);
    }
  }

  // The score of the best tree with k wrong arcs; -inf where there is none.
  double total(std::size_t k) const { return total_[k]; }

  // The heads of that tree, and which of them count as errors.
  void read(std::size_t k, std::uint32_t* heads, std::vector<char>& is_wrong) {
    heads_ = heads;
    is_wrong.assign(m_, 0);
    wrong_flags_ = &is_wrong;
    if (!one_root_) return complete_right(0, n_, k);
    for (std::size_t r = 1; r <= n_; ++r) {
      for (std::size_t e = 0; e < 2; ++e) {
        if (k < e) continue;
        const double own = (e == 0 ? right_ : wrong_)[r];
        for (std::size_t a = 0; a <= std::min(k - e, r - 1); ++a) {
          const std::size_t b = k - e - a;
          if (b > n_ - r || cl_[at(1, r) + a] + cr_[at(r, n_) + b] + own != total_[k]) continue;
          take(0, r, e);
          complete_left(1, r, a);
          complete_right(r, n_, b);
          return;
        }
      }
    }
  }

 private:
  std::size_t at(std::size_t s, std::size_t t) const { return (s * m_ + t) * m_; }

  static void join(const double* a, std::size_t na, const double* b, std::size_t nb, double* out) {
    for (std::size_t p = 0; p <= na; ++p) {
      for (std::size_t q = 0; q <= nb; ++q) out[p + q] = std::max(out[p + q], a[p] + b[q]);
    }
  }
  void arc(const double* base, std::size_t n, std::size_t h, std::size_t d, double* out) const {
    const double r = right_[h * m_ + d], w = wrong_[h * m_ + d];
    for (std::size_t k = 0; k <= n + 1; ++k) {
      out[k] = std::max(k <= n ? base[k] + r : -kInfinity, k > 0 ? base[k - 1] + w : -kInfinity);
    }
  }
  void take(std::size_t h, std::size_t d, std::size_t error) {
    heads_[d] = static_cast<std::uint32_t>(h);
    (*wrong_flags_)[d] = char(error);
  }

  // An arc between s and t, in the direction from h to d, with k errors.
  void incomplete(std::size_t s, std::size_t t, std::size_t h, std::size_t d, std::size_t k) {
    const double value = (h < d ? ir_ : il_)[at(s, t) + k];
    for (std::size_t e = 0; e < 2; ++e) {
      if (k < e || k - e > t - s - 1) continue;
      const double inside = base_[at(s, t) + k - e];
      if (inside + (e == 0 ? right_ : wrong_)[h * m_ + d] != value) continue;
      take(h, d, e);
      for (std::size_t r = s; r < t; ++r) {
        for (std::size_t a = 0; a <= std::min(k - e, r - s); ++a) {
          const std::size_t b = k - e - a;
          if (b > t - r - 1 || cr_[at(s, r) + a] + cl_[at(r + 1, t) + b] != inside) continue;
          complete_right(s, r, a);
          complete_left(r + 1, t, b);
          return;
        }
      }
    }
  }
  void complete_right(std::size_t s, std::size_t t, std::size_t k) {
    if (s == t) return;
    for (std::size_t r = s + 1; r <= t; ++r) {
      for (std::size_t a = 0; a <= std::min(k, r - s); ++a) {
        const std::size_t b = k - a;
        if (b > t - r || ir_[at(s, r) + a] + cr_[at(r, t) + b] != cr_[at(s, t) + k]) continue;
        incomplete(s, r, s, r, a);
        complete_right(r, t, b);
        return;
      }
    }
  }
  void complete_left(std::size_t s, std::size_t t, std::size_t k) {
    if (s == t) return;
    for (std::size_t r = s; r < t; ++r) {
      for (std::size_t a = 0; a <= std::min(k, r - s); ++a) {
        const std::size_t b = k - a;
        if (b > t - r || cl_[at(s, r) + a] + il_[at(r, t) + b] != cl_[at(s, t) + k]) continue;
        incomplete(r, t, t, r, b);
        complete_left(s, r, a);
        return;
      }
    }
  }

  std::size_t n_ = 0, m_ = 0;
  const double *right_ = nullptr, *wrong_ = nullptr;
  bool one_root_ = true;
  std::vector<double> cr_, cl_, ir_, il_, base_, total_;
  std::uint32_t* heads_ = nullptr;
  std::vector<char>* wrong_flags_ = nullptr;
};

}  // namespace mm
