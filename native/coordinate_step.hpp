// Algorithm 1 of the dual-coordinate paper on the multipliers of one block, in the place of SMO.
//
//   max over δ   Σ_k δ_k F_k - C/2 δ'Kδ    s.t.  α_k + δ_k >= 0,  Σ_{k>0} (α_k + δ_k) <= 1
//
// Plane 0, the truth, has Δf = 0 and F = 0; its multiplier is what the others leave of one, α_0 = 1 - Σ.
// So the engine's blocks, whose multipliers sum to one with the truth, are the paper's Σ_j α_ij <= 1. The
// gradient g_ij of (24) is F_j, and the paper's C, in the rows x_ij, is here in front of K.
//
// A step, with the corrections of docs/errata.md:
//   (25)  a = clip(F_j / (C K_jj), -α_j, α_0)                              one multiplier
//   (28)  a = clip((F_j - F_k) / (C |Δf_j - Δf_k|²), -α_j, α_k)            two, where α_0 = 0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "random_bits.hpp"

namespace mm {

// Every multiplier once, in random order; returns the number of steps taken. On return F holds the
// gradient after them.
template <class K>
int coordinate_steps(std::size_t m, const K* gram, std::size_t stride, double C, double tolerance, RandomBits& random, double* alpha,
                     double* F) {
  thread_local std::vector<std::size_t> order;
  order.resize(m - 1);
  std::iota(order.begin(), order.end(), std::size_t(1));
  random.shuffle(std::span(order));  // line 3
  int steps = 0;
  for (const std::size_t j : order) {
    const K* Kj = gram + j * stride;
    if (F[j] > tolerance && !(alpha[0] > 0.0)) {  // line 5
      if (m < 3) continue;
      std::size_t k = 1 + random.below(m - 2);  // line 6
      if (k >= j) ++k;
      const K* Kk = gram + k * stride;
      const double h = C * (double(Kj[j]) + double(Kk[k]) - 2.0 * double(Kj[k]));
      const double g = F[j] - F[k];
      if (g == 0.0) continue;
      const double a = h > 0.0 ? std::clamp(g / h, -alpha[j], alpha[k]) : g > 0.0 ? alpha[k] : -alpha[j];  // line 7
      if (a == 0.0) continue;
      alpha[j] = a == -alpha[j] ? 0.0 : alpha[j] + a;  // line 8
      alpha[k] = a == alpha[k] ? 0.0 : alpha[k] - a;
      for (std::size_t r = 0; r < m; ++r) F[r] -= C * a * (double(Kj[r]) - double(Kk[r]));
      ++steps;
    } else if (std::abs(F[j]) > tolerance) {  // line 9
      const double h = C * double(Kj[j]), g = F[j];
      const double a = h > 0.0 ? std::clamp(g / h, -alpha[j], alpha[0]) : g > 0.0 ? alpha[0] : -alpha[j];  // line 10
      if (a == 0.0) continue;
      alpha[j] = a == -alpha[j] ? 0.0 : alpha[j] + a;  // line 11
      alpha[0] = a == alpha[0] ? 0.0 : alpha[0] - a;
      for (std::size_t r = 0; r < m; ++r) F[r] -= C * a * double(Kj[r]);
      ++steps;
    }
  }
  return steps;
}

}  // namespace mm
