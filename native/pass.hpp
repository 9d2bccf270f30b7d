// What a pass of the dual engine is asked to do, and what it counted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace mm {

struct PassOptions {
  double tau = 0.0;          // leave a part alone when its violation ψ is not above this
  double tau_inner = 0.0;    // SMO stops at this violation (as tau, times the weight of the example) ...
  double tau_relative = 0.0; // ... or at this share of the violation it started from
  int max_smo = 1000;        // steps of one SMO
  int rounds = 1;            // exact_pass: oracle calls on one example, while they find something
  double relaxation = 1.0;   // 1: solve the block; above, below 2: over-relax
  bool recombine = false;    // cached_pass: look for new planes among pieces of the kept ones
  double min_violation = 0.0;  // cached_pass: leave out parts whose last violation was below this
  bool prune = true;         // drop planes whose multiplier is zero after a step
  double mu = 0.0;           // cost-to-move of the multipliers (SAP)
  bool beta_steps = true;    // with a cost-to-move of β: it takes a step after every visit
  double epsilon = -1.0;     // exact_pass, not below 0: only outputs that violate by more than this
                             // beyond the kept ones count, the others leave the block alone
  bool frank_wolfe = false;  // step towards the best plane, with line search, in the place of SMO
  bool average = false;      // add the w of all visits up, that of the t-th with weight t
  bool coordinate = false;   // single and paired steps in random order in the place of SMO (coordinate_step.hpp)
  std::uint64_t seed = 0;    // of their order
  int replay = 0;            // exact_pass: after each example step on the kept planes of so many others, ...
  std::size_t seen = 0;      // ... drawn from those below this one and the examples of the pass
  // exact_pass, for Algorithm 2 of the dual-coordinate paper: end behind the example with which the gap exceeds
  // `tolerance` + `share` times the upper bound. With `open`, the gap before the pass, and the block gaps of the
  // visits so far, the gap is open + Σ and the upper bound the dual + open + Σ.
  double open = 0.0, share = 0.0, tolerance = std::numeric_limits<double>::infinity();
  bool joint = false;        // several threads may make the steps at the same time, and agree on w in the end (joint_pass.hpp); ...
  int sweeps = 1;            // ... then so many sweeps over what is kept are made at most
  bool measure = false;      // ... with a metric that is measured anew, ...
  double steepness = 0.0;    // ... which is so steep (consensus.hpp)
};

struct PassResult {
  double gap = 0.0;          // Σ over visits of C (max F - Σ α F), before the step (see Engine for other passes)
  double cached_gap = 0.0;   // the same over the kept planes only
  double hinge = 0.0;        // exact_pass, coordinate_pass: Σ over examples of c max(0, max F), before the step
  double gain = 0.0;         // increase of the dual
  double psi_max = 0.0;      // largest ψ_i = max F - min_{α>0} F (2.4) before the step
  double psi_cached_max = 0.0;  // the same over the planes with α > 0 only (4.9)
  double work = 0.0;         // about how many processor cycles it took, counted, not timed
  std::int64_t looked = 0;   // exact_pass: examples of its order that it came to
  std::int64_t oracle_calls = 0, visits = 0, added = 0, solved = 0, smo_steps = 0, merges = 0;
  bool interrupted = false;  // stopped early by `poll`; the state is consistent

  void add(const PassResult& other) {
    gap += other.gap;
    cached_gap += other.cached_gap;
    hinge += other.hinge;
    gain += other.gain;
    work += other.work;
    psi_max = std::max(psi_max, other.psi_max);
    psi_cached_max = std::max(psi_cached_max, other.psi_cached_max);
    looked += other.looked;
    oracle_calls += other.oracle_calls;
    visits += other.visits;
    added += other.added;
    solved += other.solved;
    smo_steps += other.smo_steps;
    merges += other.merges;
    interrupted = interrupted || other.interrupted;
  }
};

}  // namespace mm
