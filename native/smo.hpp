// Algorithm 2 of the sequential dual method: SMO on the multipliers of one block.
//
//   max over δ   Σ_k δ_k F_k - C/2 δ'Kδ - μ/2 δ'δ    s.t.  Σ_k δ_k = 0,  α_k + δ_k >= 0
//
// μ is the cost-to-move of the SAP paper's α-SUB (IV.13), 0 in all other methods.
//
// With slacks that are quadratic or not allowed there is no constraint on the sum: the truth, plane
// 0, has mass without end (α_0 = ∞). Quadratic slacks then cost σ/2 (Σ_{k>0} δ_k)² besides (σ = 1).
// F_k is the gradient at the current w. On return F holds the gradient after the step, and alpha
// the new multipliers. Step (4.6) with the C and the running quantities of the errata.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace mm {


// Returns the number of steps taken, -1 if the gain has no end.
template <class K>
int smo(std::size_t m, const K* gram, std::size_t stride, double C, double mu, double sigma,
        double tolerance, int max_steps, double* alpha, double* F) {
  int steps = 0;
  for (; steps < max_steps; ++steps) {
    // (4.3) the maximal violating pair
    std::size_t p = 0, q = 0;
    double top = F[0], low = alpha[0] > 0.0 ? F[0] : kInfinity;
    for (std::size_t k = 1; k < m; ++k) {
      const double f = F[k], held = alpha[k] > 0.0 ? f : kInfinity;
      p = f > top ? k : p;
      top = f > top ? f : top;
      q = held < low ? k : q;
      low = held < low ? held : low;
    }
    const double violation = top - low;
    if (!(violation > tolerance) || p == q) break;  // (4.5)
    const K* Kp = gram + p * stride;
    const K* Kq = gram + q * stride;
    // +1 if mass comes from the truth, -1 if it goes there.
    const double given = double(p != 0) - double(q != 0);
    const double curvature = C * (double(Kp[p]) + double(Kq[q]) - 2.0 * double(Kp[q])) + 2.0 * mu + sigma * given * given;
    // (4.6), clipped so that alpha[q] stays non-negative
    double delta = alpha[q];
    const bool emptied = !(violation < curvature * delta);
    if (emptied && delta == kInfinity) return -1;  // no end to it
    if (!emptied) delta = violation / curvature;
    alpha[p] += delta;
    alpha[q] = emptied ? 0.0 : alpha[q] - delta;
    const double move = C * delta;
    for (std::size_t k = 0; k < m; ++k) F[k] -= move * (double(Kp[k]) - double(Kq[k]));
    F[p] -= mu * delta;
    F[q] += mu * delta;
    if (sigma * given != 0.0) {
      for (std::size_t k = 1; k < m; ++k) F[k] -= sigma * given * delta;
    }
  }
  return steps;
}

// A Frank-Wolfe step on one block, in the place of SMO: towards the plane p with the largest F,
// α <- α + γ (e_p - α), with the best γ in [0, 1] (Lacoste-Julien et al., ICML 2013, Algorithm 4).
template <class K>
int frank_wolfe(std::size_t m, const K* gram, std::size_t stride, double C, double* alpha, double* F) {
  std::size_t p = 0;
  double mean = 0.0;
  for (std::size_t k = 0; k < m; ++k) {
    if (F[k] > F[p]) p = k;
    mean += alpha[k] * F[k];
  }
  // Kd with d = e_p - α, and with it d'Kd
  double bend = 0.0;
  thread_local std::vector<double> Kd;
  Kd.assign(m, 0.0);
  for (std::size_t k = 0; k < m; ++k) {
    const K* row = gram + k * stride;
    double sum = double(row[p]);
    for (std::size_t j = 0; j < m; ++j) sum -= alpha[j] * double(row[j]);
    Kd[k] = sum;
  }
  bend = Kd[p];
  for (std::size_t k = 0; k < m; ++k) bend -= alpha[k] * Kd[k];
  const double gap = F[p] - mean;
  if (!(gap > 0.0)) return 0;
  const double gamma = gap < C * bend ? gap / (C * bend) : 1.0;
  for (std::size_t k = 0; k < m; ++k) {
    F[k] -= gamma * C * Kd[k];
    alpha[k] = (1.0 - gamma) * alpha[k] + (k == p ? gamma : 0.0);
  }
  return 1;
}

}  // namespace mm
