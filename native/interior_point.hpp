// A primal-dual interior point for the training problem over some planes (plane_program.hpp).
//
// Mehrotra's predictor-corrector method (SIAM J. Optim. 2, 1992) on the conditions of optimality
//
//   Ω'(w) - u₀ - Σ_k z_k a_k = 0,   z_0 + Σ_{k in p} z_k = C_p,   s_k = ξ_p + a_k.w - l_k,   s_0 = ξ_p,
//   s_k z_k = μ,   s, z > 0,
//
// with μ going to zero; index 0 is the truth of the part. (Quadratic slacks: Σ z_k = C_p ξ_p and no truth;
// hard margins: ξ_p = 0.) How far the data and C are from unit size hardly matters to it, which is
// what block-coordinate ascent cannot say of itself.
//
// *Regularisers* are any link (link.hpp). The quadratic term is a diagonal. A pair of thresholds is a part with
// two planes and no truth of its own coordinate: τ >= t⁺(w - m), τ >= t⁻(w - m), multipliers y⁺ + y⁻ = 1.
// A bound is a hard constraint of one coordinate. Eliminated, each adds to the diagonal only.
//
// *Steps* solve the linear system of plane_newton.hpp twice with one factorisation. Primal and dual take the
// same step length, as a quadratic program needs.
//
// *Start.* For any w and μ, the slacks and multipliers of a part that are exactly centred have one unknown,
// ξ_p: Σ_k μ / (ξ_p - F_k) = C_p, with F = l - a.w. So only the first condition is not met at the
// beginning. A warm start takes the w of the multipliers that are given and the μ of their gap, and mixes
// the centred multipliers with those that are given; a cold start takes w = link(u₀).
//
// *End.* After each iteration the multipliers are made feasible and their dual is computed, with the
// primal of the w that belongs to them: the gap over these planes, by no other means than the engine's. It
// ends when that is small enough, when rounding stops it, or on request, and returns the multipliers of the
// best dual. Those that are zero in the limit (z small beside s, by strict complementarity) are set to zero
// if the dual does not fall by that.
//
// *Rounding.* Where C and the features are large, w = link(u₀ + Σ z a) is a small difference of large numbers,
// and no multipliers of 8 bytes give it to the digits that its margins need. (Breast-cancer as it comes, C = 1e4:
// the terms add up to 5e8, w to less than 1, and a margin to no better than 1e-4.) The w of the
// iteration does not come from that sum. So its primal is computed too, and it is returned if it is lower and
// equals link(u) up to what rounding explains. (Weights that link(u) has at a kink or a bound stay there.) Where
// no dual is higher than that of the multipliers that were given, w alone may still get better, whatever
// link(u) is: any multipliers and any w have a gap.
#pragma once

#include <functional>

#include "plane_newton.hpp"

namespace mm {

struct InteriorOptions {
  double accuracy = 0.0;     // the gap over these planes at which to stop
  int max_iterations = 100;
  bool warm = true;          // begin near the multipliers that are given
};

struct InteriorResult {
  std::vector<double> z;     // per plane, feasible
  PlaneValue start, value;   // of the multipliers that were given; the best dual and primal found
  bool better = false;       // is the dual higher, or as high and the gap smaller?
  bool only_w = false;       // or is the primal of w better, for the multipliers that were given?
  std::vector<double> w;     // the weights of the best primal
  bool own_w = false;        // is that an iterate of its own, and not the w of multipliers?
  std::vector<double> F;     // the margins at w
  int iterations = 0, cold_starts = 0;
  bool by_planes = false;    // were the systems those of the planes?
  bool interrupted = false;
  double work = 0.0;         // about how many processor cycles it took
};

// `z` are multipliers to begin from (zero, if there are none). `halt` is asked now and then. `own`: weights that
// are known already and not those of z; what is found must be better.
InteriorResult interior_point(const PlaneProgram& program, std::vector<double> z, const InteriorOptions& options,
                              const std::function<bool()>& halt, const std::vector<double>* own = nullptr);

// About how many cycles a solve takes, and the bytes of its matrices, by the size of a program: columns,
// planes, entries of a plane.
double interior_work(double columns, double planes, double row, bool quadratic);
double interior_bytes(double columns, double planes, double row, bool quadratic);

}  // namespace mm
