// The training problem over a finite number of planes, as the interior point sees it:
//
//   min over w, ξ   Σ_j Ω_j(w_j) - w.u₀ + Σ_p C_p ξ_p     s.t.   ξ_p >= l_k - a_k.w  for all planes k of
//                                                                part p, and ξ_p >= 0,
//
// (linear slacks; with quadratic ones the cost is C_p/2 ξ_p², with hard margins ξ_p = 0). Its dual is
//
//   max over z >= 0   Σ_k z_k l_k - Σ_j Ω*_j(u_j) [- Σ_p (Σ_k z_k)²/(2 C_p)],   u = u₀ + Σ_k z_k a_k,
//   Σ_{k in p} z_k <= C_p  (linear slacks only; what is missing is the truth's),
//
// and z_k = C_p α_k in the engine's terms (engine.hpp). Only the columns that some plane touches are
// here. Where a plane is zero nothing is stored; columns are numbered so that those of one label are
// neighbours, which makes the rows of planes a few contiguous runs.
#pragma once

#include <cmath>

#include "common.hpp"
#include "formulation.hpp"
#include "link.hpp"

namespace mm {

// One coordinate of the regulariser (link.hpp), with its share of the fixed linear term.
struct PlaneColumn {
  double scale = 1.0, offset = 0.0, lower = 0.0, upper = 0.0, least = -kInfinity, most = kInfinity, fixed = 0.0;

  double weight(double u) const { return std::clamp(offset + scale * Link::soft(u, lower, upper), least, most); }
  double penalty(double w) const {
    const double d = w - offset;
    return d * d / (2.0 * scale) + (d > 0.0 ? upper * d : d < 0.0 ? lower * d : 0.0);
  }
  bool kinked() const { return upper > lower; }
};

// Sparse rows.
struct SparseRows {
  std::vector<std::size_t> begin{0};
  std::vector<std::uint32_t> column;
  std::vector<double> value;

  std::size_t size() const { return begin.size() - 1; }
  double dot(std::size_t k, const double* x) const {
    double sum = 0.0;
    for (std::size_t e = begin[k]; e < begin[k + 1]; ++e) sum += value[e] * x[column[e]];
    return sum;
  }
  void add(std::size_t k, double factor, double* x) const {
    for (std::size_t e = begin[k]; e < begin[k + 1]; ++e) x[column[e]] += factor * value[e];
  }
};

struct PlaneProgram {
  Slack slack = Slack::kLinear;
  SparseRows planes;
  std::vector<double> loss;             // per plane
  std::vector<std::size_t> first{0};    // planes of part p: first[p] to first[p + 1]
  std::vector<double> C;                // per part
  std::vector<PlaneColumn> columns;     // all of positive scale

  std::size_t n_parts() const { return C.size(); }
};

// What multipliers are worth: the dual, and the primal of the w that belongs to them over the planes
// that are here.
struct PlaneValue {
  double dual = -kInfinity, primal = kInfinity;
  double gap() const { return primal - dual; }
};

// The primal of weights; F are the margins at them.
inline double primal_over(const PlaneProgram& program, const std::vector<double>& w, std::vector<double>& F) {
  double penalty = 0.0, pull = 0.0, risk = 0.0, factor = 1.0;
  for (std::size_t j = 0; j < program.columns.size(); ++j) {
    penalty += program.columns[j].penalty(w[j]);
    pull += w[j] * program.columns[j].fixed;
  }
  F.resize(program.planes.size());
  for (std::size_t p = 0; p < program.n_parts(); ++p) {
    double top = 0.0;
    for (std::size_t k = program.first[p]; k < program.first[p + 1]; ++k) {
      const double margin = program.planes.dot(k, w.data());
      F[k] = program.loss[k] - margin;
      top = std::max(top, F[k]);
      if (program.slack == Slack::kHard && F[k] > 0.0) factor = margin > 0.0 ? std::max(factor, program.loss[k] / margin) : kInfinity;
    }
    risk += program.slack == Slack::kQuadratic ? 0.5 * program.C[p] * top * top : program.slack == Slack::kLinear ? program.C[p] * top : 0.0;
  }
  if (program.slack != Slack::kHard) return penalty - pull + risk;
  return factor == kInfinity ? kInfinity : penalty * factor * factor;
}

// Multipliers z must be feasible. u, w = link(u) and F (the margins at w) are written.
inline PlaneValue evaluate(const PlaneProgram& program, const std::vector<double>& z, std::vector<double>& u,
                           std::vector<double>& w, std::vector<double>& F) {
  const std::size_t d = program.columns.size();
  u.resize(d), w.resize(d);
  for (std::size_t j = 0; j < d; ++j) u[j] = program.columns[j].fixed;
  PlaneValue value;
  value.dual = 0.0;
  for (std::size_t p = 0; p < program.n_parts(); ++p) {
    double mass = 0.0;
    for (std::size_t k = program.first[p]; k < program.first[p + 1]; ++k) {
      if (z[k] == 0.0) continue;
      program.planes.add(k, z[k], u.data());
      value.dual += z[k] * program.loss[k];
      mass += z[k];
    }
    if (program.slack == Slack::kQuadratic) value.dual -= mass * mass / (2.0 * program.C[p]);
  }
  for (std::size_t j = 0; j < d; ++j) {
    w[j] = program.columns[j].weight(u[j]);
    value.dual -= w[j] * u[j] - program.columns[j].penalty(w[j]);
  }
  value.primal = primal_over(program, w, F);
  return value;
}

}  // namespace mm
