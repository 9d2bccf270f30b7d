// Algorithm 2 of the sequential dual method: SMO on the multipliers of one block.
//
//   max over δ   Σ_k δ_k F_k - C/2 δ'Kδ    s.t.  Σ_k δ_k = 0,  α_k + δ_k >= 0
//
// F_k is the gradient at the current w. On return F holds the gradient after the step, and alpha
// the new multipliers. Step (4.6) with the C and the running quantities of the errata.
#pragma once

#include <cstddef>

namespace mm {

// Returns the number of steps taken.
template <class K>
int smo(std::size_t m, const K* gram, std::size_t stride, double C, double tolerance, int max_steps,
        double* alpha, double* F) {
  int steps = 0;
  for (; steps < max_steps; ++steps) {
    // (4.3) the maximal violating pair
    std::size_t p = 0, q = m;
    for (std::size_t k = 0; k < m; ++k) {
      if (F[k] > F[p]) p = k;
      if (alpha[k] > 0.0 && (q == m || F[k] < F[q])) q = k;
    }
    const double violation = F[p] - F[q];
    if (!(violation > tolerance) || p == q) break;  // (4.5)
    const double curvature =
        C * (double(gram[p * stride + p]) + double(gram[q * stride + q]) -
             2.0 * double(gram[p * stride + q]));
    double delta = alpha[q];
    bool emptied = true;
    if (curvature > 0.0 && violation < curvature * delta) {
      delta = violation / curvature;
      emptied = false;
    }
    alpha[p] += delta;
    alpha[q] = emptied ? 0.0 : alpha[q] - delta;
    const double move = C * delta;
    for (std::size_t k = 0; k < m; ++k) {
      F[k] -= move * (double(gram[k * stride + p]) - double(gram[k * stride + q]));
    }
  }
  return steps;
}

}  // namespace mm
