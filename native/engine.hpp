// The dual engine: block-coordinate ascent on
//
//   D(α) = C Σ_i Σ_y α_i(y) l_i(y) - Ω*(u),   u = u₀ + C Σ_i Σ_y α_i(y) Δf_i(y),   w = link(u),
//   α_i(y) >= 0,  Σ_y α_i(y) = 1              (y_i itself is a member, with Δf = 0 and l = 0)
//
// whose primal is P(w) = Ω(w) - w.u₀ + C Σ_i max_y F_i(y), F_i(y) = l_i(y) - w.Δf_i(y). At one w the
// gap P - D is the sum of the block gaps  g_i = C (max_y F_i(y) - Σ_y α_i(y) F_i(y)).
//
// Planes are relative to a reference output y_i that never changes: Δf = f(x_i, y_i) - f(x_i, y), and l
// is the loss of y less that of the reference, of either sign. u₀ is a fixed linear term, zero unless
// the problem is one step of a concave-convex procedure: what such a procedure re-imputes (a latent
// output h_i, say) is u₀ = C Σ_i (f(x_i, h_i) - f(x_i, y_i)), and planes and multipliers stay valid.
//
// That is for linear slacks ξ_i = max_y F_i(y). With quadratic ones the primal has C/2 Σ ξ_i², there
// is no Σ_y α_i(y) = 1, and with M_i = Σ_{y≠y_i} α_i(y) the dual has -C/2 Σ M_i² instead and the gaps
// are C (½ ξ_i² + ½ M_i² - Σ α F). Without slacks (hard margin) neither term is there: the primal is
// Ω of the smallest multiple of w that has all margins, if there is one.
//
// The block of an example is kept in parts (part.hpp). Three passes are offered; a solver is a
// schedule of them:
//   exact_pass    oracle, new planes and a step, example after example   (moves w)
//   collect_pass  oracle and new planes at one w: the true gap           (w fixed, many threads)
//   cached_pass   a step on each part from what is kept, no oracle       (moves w)
#pragma once

#include <cmath>

#include "example_loop.hpp"
#include "formulation.hpp"
#include "part.hpp"
#include "smo.hpp"

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
};

struct PassResult {
  double gap = 0.0;          // Σ over visits of C (max F - Σ α F), before the step
  double cached_gap = 0.0;   // the same over the kept planes only
  double gain = 0.0;         // increase of the dual
  double psi_max = 0.0;      // largest ψ_i = max F - min_{α>0} F (2.4) before the step
  double psi_cached_max = 0.0;  // the same over the planes with α > 0 only (4.9)
  double work = 0.0;         // about how many processor cycles it took, counted, not timed
  std::int64_t oracle_calls = 0, visits = 0, added = 0, solved = 0, smo_steps = 0, merges = 0;
  bool interrupted = false;  // stopped early by `poll`; the state is consistent

  void add(const PassResult& other) {
    gap += other.gap;
    cached_gap += other.cached_gap;
    gain += other.gain;
    work += other.work;
    psi_max = std::max(psi_max, other.psi_max);
    psi_cached_max = std::max(psi_cached_max, other.psi_cached_max);
    oracle_calls += other.oracle_calls;
    visits += other.visits;
    added += other.added;
    solved += other.solved;
    smo_steps += other.smo_steps;
    merges += other.merges;
    interrupted = interrupted || other.interrupted;
  }
};

template <class T>
class Engine {
 public:
  using Workspace = typename Structure<T>::Workspace;
  using Fresh = typename Structure<T>::Fresh;

  // What one thread needs.
  struct Lane {
    explicit Lane(const Structure<T>& structure) : ws(structure.workspace()) {}
    std::unique_ptr<Workspace> ws;
    PlaneRouter<T> router;
    std::vector<CodeView> views;
    std::vector<double> F, row, before, coef;
    std::vector<Code> code;
    std::vector<std::uint32_t> survivors;
    double top = 0.0, mean = 0.0, low = 0.0;  // of the part last stepped on: max F, Σ α F, min_{α>0} F
  };
  ExampleLoop<T, Lane> loop;

  Engine(const Structure<T>& structure, double C, bool factored, Link link = {}, Slack slack = Slack::kLinear)
      : loop(structure), structure_(structure), C_(C), factored_(factored), slack_(slack),
        weights_(structure.n_weights(), link, structure.row_size(), structure.maps_weights()), parts_(structure.n_examples()),
        hinge_(structure.n_examples()), gaps_(structure.n_examples()) {
    recount();  // Ω*(0) is not 0 where the link has offsets or bounds
  }

  std::size_t n_examples() const { return parts_.size(); }
  double C() const { return C_; }
  bool factored() const { return factored_; }
  // Is there no constraint on the sum of a block's multipliers?
  bool free() const { return slack_ != Slack::kLinear; }
  // Was the dual found to have no upper bound?
  bool unbounded() const { return unbounded_; }
  Weights<T>& weights() { return weights_; }
  const Weights<T>& weights() const { return weights_; }
  std::vector<Parts<T>>& parts() { return parts_; }
  const std::vector<Parts<T>>& parts() const { return parts_; }

  PassResult exact_pass(std::span<const std::uint32_t> order, const PassOptions& options) {
    PassResult result;
    structure_.weights_changed(*loop.first.ws);
    for (std::size_t at = 0; at < order.size(); ++at) {
      if (loop.stop(result)) break;
      if (at + 2 < order.size()) {
        for (const Part<T>& part : parts_[order[at + 1]]) prefetch_part(part);
        const Parts<T>& later = parts_[order[at + 2]];
        prefetch_range(later.data(), later.size() * sizeof(Part<T>));
      }
      const std::size_t i = order[at];
      for (int round = 0; round < options.rounds; ++round) {
        catch_up(i);
        const bool moved = exact_visit(i, round == 0, options, result);
        if (options.average) count_visit();
        if (options.beta_steps) weights_.tick();
        if (!moved) break;
      }
      drop_idle(parts_[i]);
    }
    if (weights_.lagging()) weights_.refresh_all();
    return result;
  }

  // One step of β in all coordinates, on its own.
  void beta_step() {
    weights_.tick();
    if (weights_.lagging()) weights_.refresh_all();
  }

  // The oracle at one w. New planes get their place, and for L2 the true gap follows from the sum of
  // the hinges alone: with E = Σ α l, D = C E - ½|w|² and P = ½|w|² - w.u₀ + C Σ max F, the sum
  // P + D = C (E + Σ max F) - w.u₀ has no |w|², and so P - D = C (E + Σ max F) - w.u₀ - 2 D.
  // (Examples that have weights have them in both sums.)
  PassResult collect_pass(int threads) {
    PassResult result = loop.template run<PassResult>(
        threads, [&](Lane& lane, std::size_t i, std::size_t end, PassResult& share) {
          if (i + 4 < end) {  // the parts of other shares belong to other threads
            const Parts<T>& later = parts_[i + 4];
            prefetch_range(later.data(), later.size() * sizeof(Part<T>));
          }
          const Found found = structure_.oracle(*lane.ws, i, weights_.data());
          ++share.oracle_calls;
          share.work += structure_.oracle_work(i);
          hinge_[i] = slack_ == Slack::kHard ? 1.0 : found.upper();
          if (!found.truth && structure_.example_weight(i) > 0.0) add_found(lane, i, share);
          if (slack_ == Slack::kHard && found.F > 0.0) hinge_[i] = worst(structure_, *lane.ws, i, weights_.data(), slack_);
          if (!structure_.exact_oracle()) hinge_[i] = std::max(hinge_[i], known(structure_, *lane.ws, i, weights_.data(), slack_).slack);
          drop_idle(parts_[i]);
        });
    if (result.interrupted) {
      result.gap = std::nan("");
    } else if (slack_ == Slack::kHard) {
      result.gap = hard_primal(weights_.penalty()) - dual_;
    } else if (weights_.linear()) {
      result.gap = C_ * (loss_ - price_ + risk()) - 2.0 * dual_ - weights_.fixed_gain();
    } else {
      // Ω(w) is not Ω*(u); both are summed anew, and with them the dual.
      const double dual = C_ * (loss_ - price_) - weights_.conjugate();
      result.gain = dual - dual_;
      dual_ = dual;
      result.gap = weights_.penalty() - weights_.fixed_gain() + C_ * risk() - dual_;
    }
    return result;
  }

  PassResult cached_pass(std::span<const std::uint32_t> order, const PassOptions& options) {
    PassResult result;
    structure_.weights_changed(*loop.first.ws);
    queue_.clear();
    for (std::size_t at = 0; at < order.size(); ++at) {
      if (at + 8 < order.size()) prefetch(&parts_[order[at + 8]]);
      if (at + 4 < order.size()) {
        const Parts<T>& next = parts_[order[at + 4]];
        prefetch_range(next.data(), next.size() * sizeof(Part<T>));
      }
      for (Part<T>& part : parts_[order[at]]) {
        if (part.set.size() > 1 && part.violation >= options.min_violation) queue_.push_back({order[at], &part});
      }
    }
    for (std::size_t at = 0; at < queue_.size(); ++at) {
      if (loop.stop(result)) break;
      // A visit is short and reads memory at random, so what later visits need is fetched in
      // stages, each of which reads what the stage before it fetched.
      ahead(at + 16, [&](std::size_t, const Part<T>& part) { prefetch_range(&part, sizeof part); });
      ahead(at + 8, [&](std::size_t, const Part<T>& part) { prefetch_part(part); });
      ahead(at + 2, [&](std::size_t i, const Part<T>& part) {
        structure_.prefetch_part(i, part.index, weights_.data());
      });
      catch_up(queue_[at].first);
      cached_visit(queue_[at].first, *queue_[at].second, options, result);
      if (options.average) count_visit();
      if (options.beta_steps) weights_.tick();
    }
    if (weights_.lagging()) weights_.refresh_all();
    return result;
  }

  // Σ_i of what the slacks cost at the present w (ξ_i, or ½ ξ_i²; ξ_i where none is allowed).
  double hinge(int threads) {
    return look(threads, slack_ == Slack::kHard ? Slack::kLinear : slack_) ? risk() : std::nan("");
  }

  // The primal at the present w; infinite for a hard margin that w does not have.
  double objective(int threads) {
    if (!look(threads, slack_)) return std::nan("");
    return objective_of(weights_.penalty() - weights_.fixed_gain());
  }
  // The same from slacks that were found elsewhere.
  double objective(double penalty, std::vector<double> slacks) {
    hinge_ = std::move(slacks);
    return objective_of(penalty);
  }

  // From what the weights cost, and the slacks in hinge_.
  double objective_of(double penalty) const {
    return slack_ == Slack::kHard ? hard_primal(penalty) : penalty + C_ * risk();
  }

  // The slack of each example at the present w, or its factor (see worst()).
  bool look(int threads, Slack slack) {
    const PassResult result = loop.template run<PassResult>(threads, [&](Lane& lane, std::size_t i, std::size_t, PassResult&) {
      hinge_[i] = slack_of(structure_, *lane.ws, i, weights_.data(), slack);
    });
    return !result.interrupted;
  }

  // What is not sure of an example's slack.
  struct Doubt {
    double unsure = 0.0;  // by how much the oracle may have missed its best output, at most
    double missed = 0.0;  // by how much it did miss a kept one, beyond rounding
  };

  // The slack of an example at w (see worst()): the oracle's or, where a user's oracle is worse than
  // what is kept, that of the kept planes.
  template <class U>
  double slack_of(const Structure<U>& structure, typename Structure<U>::Workspace& ws, std::size_t i, const U* w,
                  Slack slack, Doubt* doubt = nullptr) const {
    const double found = worst(structure, ws, i, w, slack, doubt == nullptr ? nullptr : &doubt->unsure);
    if (structure.exact_oracle()) return found;
    const Known kept = known(structure, ws, i, w, slack);
    if (doubt != nullptr && kept.slack > found + kept.rounding) doubt->missed = kept.slack - found;
    return std::max(found, kept.slack);
  }

  struct Known {
    double slack = 0.0;     // of the best output that the parts can put together, or its factor
    double rounding = 0.0;  // that an oracle may have misjudged it by
  };
  template <class U>
  Known known(const Structure<U>& structure, typename Structure<U>::Workspace& ws, std::size_t i, const U* w, Slack slack) const {
    Known all;
    std::vector<CodeView> views;
    std::vector<double> F;
    for (const Part<T>& part : parts_[i]) {
      part.set.views(views);
      F.resize(part.set.size());
      structure.margins(ws, i, w, part.index, views, {part.set.loss(), part.set.size()}, Structure<U>::Fresh::kNo, F.data());
      double top = 0.0;
      std::size_t best = 0;
      for (std::size_t k = 1; k < F.size(); ++k) {
        const double loss = part.set.loss()[k], margin = loss - F[k];
        // Hard margins: the factor of w that this output needs, if any will do.
        const double need = slack != Slack::kHard ? F[k] : !(F[k] > 1e-12) ? 1.0 : margin > 0.0 ? loss / margin : kInfinity;
        if (need > top) top = need, best = k;
      }
      all.slack += top;
      if (best > 0) all.rounding += slack == Slack::kHard ? 1e-6 * top : structure.rounding(i, views[best], w);
    }
    return all;
  }

  // The slack of an example at w; for hard margins the smallest factor >= 1 by which w has all of its
  // margins, infinite where no multiple has. (Dinkelbach's method: the factor that the worst output
  // needs, until none needs more.)
  template <class U>
  static double worst(const Structure<U>& structure, typename Structure<U>::Workspace& ws, std::size_t i,
                      const U* w, Slack slack, double* unsure = nullptr) {
    const Found found = structure.oracle(ws, i, w);
    if (unsure != nullptr) *unsure = found.upper() - std::max(found.F, 0.0);
    if (slack != Slack::kHard) return found.upper();
    double factor = 1.0;
    for (Found f = found; !f.truth && f.F > 1e-12 * factor;) {
      const double loss = structure.loss(i, ws.code), margin = loss / factor - f.F;  // F is l / factor - w.Δf
      if (!(margin > 0.0)) return kInfinity;
      const double more = loss / margin;
      if (!(more > factor * (1.0 + 1e-12))) break;
      factor = more;
      ws.loss_scale = 1.0 / factor;
      f = structure.oracle(ws, i, w);
      ws.loss_scale = 1.0;
    }
    return factor;
  }

  // Σ_i Σ_y α_i(y) l_i(y)
  double expected_loss() const {
    double sum = 0.0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const double weight = structure_.example_weight(i);
      for (const Part<T>& part : parts_[i]) {
        for (std::size_t k = 1; k < part.set.size(); ++k) {
          sum += weight * part.set.alpha()[k] * part.set.loss()[k];
        }
      }
    }
    return sum;
  }
  // Σ_i ½ M_i², where slacks are quadratic.
  double expected_price() const {
    if (slack_ != Slack::kQuadratic) return 0.0;
    double sum = 0.0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      for (const Part<T>& part : parts_[i]) {
        const double M = mass(part);
        sum += structure_.example_weight(i) * 0.5 * M * M;
      }
    }
    return sum;
  }
  double dual() const { return C_ * (expected_loss() - expected_price()) - weights_.conjugate(); }

  // What the steps added up to, for checkpoints; recount() does it from scratch.
  std::pair<double, double> running() const { return {loss_, dual_}; }
  void set_running(double loss, double dual) { loss_ = loss, dual_ = dual, price_ = expected_price(); }
  void recount() { loss_ = expected_loss(), price_ = expected_price(), dual_ = dual(); }

  // The average of w over the visits of passes with `average`, that of the t-th with weight t.
  void average(T* out) const {
    for (std::size_t j = 0; j < weights_.size(); ++j) {
      out[j] = weights_.data()[j] + (lag_ ? T(double(lag_->data()[j]) / averaged_) : T(0));
    }
  }
  void forget_average() { lag_.reset(), averaged_ = visits_ = 0.0; }

  // What the average is made of, for checkpoints: the lag, if there is one, and the visits.
  const Weights<T>* average_lag() const { return lag_.get(); }
  double average_visits() const { return visits_; }
  void set_average(std::span<const T> lag, double visits) {
    forget_average();
    if (!lag.empty()) {
      lag_ = std::make_unique<Weights<T>>(weights_.size());
      std::copy(lag.begin(), lag.end(), lag_->data());
    }
    visits_ = visits;
    // As count_visit() adds it up: whole numbers, which doubles hold exactly.
    averaged_ = 0.5 * visits * (visits + 1.0);
  }

  // What each example's block was short of at its last visit (its share of the gap).
  const std::vector<double>& block_gaps() const { return gaps_; }
  void set_block_gaps(std::span<const double> gaps) { gaps_.assign(gaps.begin(), gaps.end()); }

  // w from the multipliers, from scratch; into the weights of an engine of any precision.
  template <class U>
  void rebuild(const Structure<U>& structure, Weights<U>& weights) const {
    weights.clear();
    weights.set_sums_only(true);
    auto ws = structure.workspace();
    std::vector<CodeView> views;
    std::vector<double> coef;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      for (const Part<T>& part : parts_[i]) {
        part.set.views(views);
        coef.assign(part.set.alpha(), part.set.alpha() + part.set.size());
        coef[0] = 0.0;  // the truth has no features, and maybe a mass without end
        for (double& c : coef) c *= C_of(i);
        structure.accumulate(*ws, i, part.index, views, coef.data(), weights);
      }
    }
    weights.set_sums_only(false);
    if (weights.mapped()) structure.map_weights(weights);
  }

  // Warm start under another C: u is linear in it.
  void rescale(double C) {
    C_ = C;
    rebuild(structure_, weights_);
    weights_.relink();
    recount();
  }

  // Warm start under another regulariser: the multipliers stay.
  void relink(Link link) {
    weights_.set_link(std::move(link));
    // What a part learned of the dual's curvature was learned under the old link.
    for (Parts<T>& parts : parts_) {
      for (Part<T>& part : parts) part.stiffness = 1;
    }
    recount();
  }

  // u was moved by another share of the examples (Δu): w follows, the multipliers here stay. The
  // dual counted here is then that of the joint u with the losses of this share only.
  void receive(const T* change) {
    weights_.receive(change);
    recount();
  }

  // Another fixed linear term u₀ (nullptr: none): planes and multipliers stay.
  void set_fixed(const T* fixed) {
    weights_.set_fixed(fixed);
    recount();
  }

  struct Size {
    std::size_t parts = 0, planes = 0, bytes = 0;
  };
  Size size() const {
    Size size;
    size.bytes = parts_.capacity() * sizeof(Parts<T>);
    for (const Parts<T>& parts : parts_) {
      size.parts += parts.size();
      size.bytes += parts.capacity() * sizeof(Part<T>);
      for (const Part<T>& part : parts) {
        size.planes += part.set.size() - 1;
        size.bytes += part.set.bytes() + part.index.capacity() * sizeof(Code);
      }
    }
    size.bytes += structure_.cache_bytes();
    return size;
  }

 private:
  double C_of(std::size_t i) const { return C_ * structure_.example_weight(i); }

  // Σ over y ≠ y_i of α(y)
  static double mass(const Part<T>& part) {
    double sum = 0.0;
    for (std::size_t k = 1; k < part.set.size(); ++k) sum += part.set.alpha()[k];
    return sum;
  }

  // Σ_i of what the slacks in hinge_ cost, in order, whatever the number of threads.
  double risk() const {
    double sum = 0.0;
    for (std::size_t i = 0; i < hinge_.size(); ++i) {
      const double xi = hinge_[i];
      sum += structure_.example_weight(i) * (slack_ == Slack::kQuadratic ? 0.5 * xi * xi : xi);
    }
    return sum;
  }

  // Ω of the multiple of w that has all margins; hinge_ has each example's factor. (ρ₁|w|₁ grows with
  // the factor only, so that with it this is a bound.)
  double hard_primal(double penalty) const {
    double factor = 1.0;
    for (std::size_t i = 0; i < hinge_.size(); ++i) {
      if (structure_.example_weight(i) > 0.0) factor = std::max(factor, hinge_[i]);
    }
    return penalty * factor * factor;
  }

  // Bring the weights that an example reads up to date with the β of the steps made so far.
  void catch_up(std::size_t i) {
    if (!weights_.lagging()) return;
    structure_.rows_read(i, rows_);
    bool moved = false;
    for (const std::size_t row : rows_) moved = weights_.refresh(row) || moved;
    if (moved) structure_.weights_changed(*loop.first.ws);
  }

  template <class F>
  void ahead(std::size_t at, F&& f) {
    if (at < queue_.size()) f(queue_[at].first, *queue_[at].second);
  }

  static void prefetch_part(const Part<T>& part) {
    prefetch_range(part.set.alpha(), part.set.bytes());
    prefetch_range(part.index.data(), part.index.size() * sizeof(Code));
  }

  static void drop_idle(Parts<T>& parts) {
    std::erase_if(parts, [](const Part<T>& part) { return part.set.size() == 1; });
  }

  // Oracle, new planes, a step on each part; true if w moved. The gap and ψ are those of the first
  // round; with several parts, those behind the first see the w that the ones before it moved.
  bool exact_visit(std::size_t i, bool first, const PassOptions& options, PassResult& result) {
    if (structure_.example_weight(i) == 0.0) return false;
    const Found found = structure_.oracle(*loop.first.ws, i, weights_.data());
    ++result.oracle_calls;
    result.work += structure_.oracle_work(i);
    if (found.truth && parts_[i].empty()) return false;
    const std::int64_t known = result.added;
    if (options.epsilon >= 0.0 && !violates(i, found, options)) {
      if (first) note_gap(i, found, result);
      return false;
    }
    if (!found.truth) add_found(loop.first, i, result);
    if (!first && result.added == known) return false;
    bool fresh = true;  // the workspace still holds the scores under the present w
    double top = 0.0, mean = 0.0, low = 0.0, M = 0.0;
    for (Part<T>& part : parts_[i]) {
      if (free()) part.set.alpha()[0] = kInfinity, M += mass(part);
      margins(loop.first, i, part, fresh ? Fresh::kOracle : Fresh::kNo);
      if (step(loop.first, i, part, options, result)) fresh = false;
      top += loop.first.top;
      mean += loop.first.mean;
      low += loop.first.low;
    }
    if (first) {
      // An oracle may be worse than what is kept (rounding, or a user's approximation).
      gaps_[i] = block_gap(i, std::max(found.F, top), mean, M);
      result.gap += gaps_[i];
      result.psi_max = std::max(result.psi_max, structure_.example_weight(i) * (std::max(found.F, top) - low));
    }
    return !fresh;
  }

  void count_visit() { averaged_ += (visits_ += 1.0); }

  // What the gap is short of in one block: ξ is max F, `mean` Σ α F.
  double block_gap(std::size_t i, double xi, double mean, double M) const {
    switch (slack_) {
      case Slack::kLinear: return C_of(i) * (xi - mean);
      case Slack::kQuadratic: return C_of(i) * (0.5 * xi * xi + 0.5 * M * M - mean);
      default: return C_of(i) * std::max(0.0, M * xi - mean);  // of no more than the kept planes
    }
  }

  // Does the output found violate its constraint by more than ε beyond the slack of the kept ones?
  bool violates(std::size_t i, const Found& found, const PassOptions& options) {
    double xi = 0.0;
    for (const Part<T>& part : parts_[i]) {
      margins(loop.first, i, part, Fresh::kNo);
      for (const double f : loop.first.F) xi = std::max(xi, f);
    }
    return !found.truth && found.F > xi + options.epsilon;
  }

  // The gap of a block that is left alone.
  void note_gap(std::size_t i, const Found& found, PassResult& result) {
    double top = std::max(found.F, 0.0), mean = 0.0, M = 0.0;
    for (const Part<T>& part : parts_[i]) {
      margins(loop.first, i, part, Fresh::kNo);
      for (std::size_t k = 1; k < part.set.size(); ++k) {
        mean += part.set.alpha()[k] * loop.first.F[k];
        top = std::max(top, loop.first.F[k]);
      }
      M += mass(part);
    }
    gaps_[i] = block_gap(i, top, mean, M);
    result.gap += gaps_[i];
  }

  // Give the output in the workspace its place among the parts.
  void add_found(Lane& lane, std::size_t i, PassResult& result) {
    lane.code.assign(lane.ws->code.begin(), lane.ws->code.end());
    const std::size_t added =
        lane.router.add(structure_, *lane.ws, i, lane.code, factored_, parts_[i], result.merges);
    result.added += std::int64_t(added);
    for (const Part<T>& part : parts_[i]) {
      if (added > 0) result.work += structure_.gram_work(lane.code, part.set.all_codes());
    }
  }

  void cached_visit(std::size_t i, Part<T>& part, const PassOptions& options, PassResult& result) {
    if (!options.recombine || part.set.all_codes().size() > kRecombineWords) {
      margins(loop.first, i, part, Fresh::kNo);
    } else {
      const Found found = structure_.recombine(*loop.first.ws, i, weights_.data(), part.index);
      margins(loop.first, i, part, Fresh::kRecombine);
      if (!found.truth) {
        double cached = 0.0;
        for (const double f : loop.first.F) cached = std::max(cached, f);
        if (found.F > cached + kSame * std::abs(cached) && part.set.find(loop.first.ws->code) == part.set.size()) {
          add_plane(structure_, *loop.first.ws, i, part, CodeView(loop.first.ws->code), loop.first.views, loop.first.row);
          loop.first.F.push_back(found.F);
          ++result.added;
          result.work += structure_.gram_work(loop.first.ws->code, part.set.all_codes());
        }
      }
    }
    step(loop.first, i, part, options, result);
  }

  void margins(Lane& lane, std::size_t i, const Part<T>& part, Fresh fresh) {
    part.set.views(lane.views);
    lane.F.resize(part.set.size());
    structure_.margins(*lane.ws, i, weights_.data(), part.index, lane.views,
                       {part.set.loss(), part.set.size()}, fresh, lane.F.data());
  }

  // Ascend on one part whose margins are in lane.F; true if w moved.
  bool step(Lane& lane, std::size_t i, Part<T>& part, const PassOptions& options,
            PassResult& result) {
    const std::size_t m = part.set.size();
    const double weight = structure_.example_weight(i), C = C_ * weight;
    double* alpha = part.set.alpha();
    double* F = lane.F.data();
    double M = 0.0;
    if (free()) alpha[0] = kInfinity, M = mass(part);
    double top = 0.0, mean = 0.0, low = kInfinity, high = -kInfinity;  // low, high: where α > 0
    for (std::size_t k = 1; k < m; ++k) {
      top = std::max(top, F[k]);
      mean += alpha[k] * F[k];
      if (alpha[k] > 0.0) low = std::min(low, F[k]), high = std::max(high, F[k]);
    }
    if (alpha[0] > 0.0) low = std::min(low, 0.0), high = std::max(high, 0.0);
    lane.top = top;
    lane.mean = mean;
    double gap = top - mean;
    if (free()) {
      gap = block_gap(i, top, mean, M) / C;
      // The gradients under the price of mass; plane 0 has none.
      if (slack_ == Slack::kQuadratic) {
        for (std::size_t k = 1; k < m; ++k) F[k] -= M;
      }
      top = low = high = 0.0;
      for (std::size_t k = 1; k < m; ++k) {
        top = std::max(top, F[k]);
        if (alpha[k] > 0.0) low = std::min(low, F[k]), high = std::max(high, F[k]);
      }
    }
    lane.low = free() ? lane.top - (top - low) : low;  // so that lane.top - lane.low is ψ
    ++result.visits;
    result.work += kVisitWork + kWordWork * double(part.index.size() + part.set.all_codes().size());
    // Violations count as much as their example does.
    const double size = slack_ == Slack::kHard ? std::max(gap, top - low) : gap;
    part.violation = static_cast<float>(weight * std::max(size, 0.0));
    result.cached_gap += C * gap;
    result.psi_cached_max = std::max(result.psi_cached_max, weight * (high - low));
    if (!(weight * (top - low) > options.tau)) {
      // A plane without a multiplier that is not even tight is of no use.
      if (options.prune) prune(lane, i, part, [&](std::size_t k) { return alpha[k] > 0.0 || F[k] >= top; });
      return false;
    }
    lane.before.assign(alpha, alpha + m);
    lane.coef.assign(F, F + m);
    // The link moves w by at most s = max scale of what u moves (link.hpp): with that curvature the
    // quadratic model of the dual lies below it (and is it, for L2), so that what the model gains,
    // the dual gains.
    // Where most weights stay zero the dual is far flatter than that, so the share of the curvature
    // that the last step met is taken, and a step that went too far is taken back. (With a
    // cost-to-move of β the model is the paper's: w moves with u while β rests.)
    const bool exact_model = weights_.linear(), adaptive = !exact_model && !weights_.lagging();
    const double curvature = C * double(part.stiffness) * weights_.steepest() / options.relaxation;
    const double sigma = slack_ == Slack::kQuadratic ? 1.0 / options.relaxation : 0.0;
    const int steps =
        options.frank_wolfe
            ? frank_wolfe(m, part.set.gram(), part.set.stride(), curvature, alpha, F)
            : smo(m, part.set.gram(), part.set.stride(), curvature, options.mu, sigma,
                  std::max(options.tau_inner / weight, options.tau_relative * (top - low)), options.max_smo, alpha, F);
    if (steps == 0) return false;
    if (steps < 0) {  // a plane without features and with a loss, and no end to its multiplier
      unbounded_ = true;
      std::copy(lane.before.begin(), lane.before.end(), alpha);
      return false;
    }
    // With δ the step and F' the gradient that SMO left under the relaxed curvature C s/ω,
    // s Kδ = ω (F - F' - μδ) / C, so that the gain Σ δF - C/2 δ'Kδ of the dual / C needs no K.
    double linear = 0.0, bend = 0.0;
    for (std::size_t k = 1; k < m; ++k) {  // plane 0 has F = 0 before and after
      const double delta = alpha[k] - lane.before[k];
      linear += delta * lane.coef[k];
      bend += options.relaxation * delta * (lane.coef[k] - F[k] - options.mu * delta);
    }
    if (weights_.mapped() && bends_up(part, lane.before.data(), bend, C)) {
      std::copy(lane.before.begin(), lane.before.end(), alpha);
      throw IndefiniteKernel();
    }
    double share = 1.0;
    if (linear < 0.5 * bend) {
      // An over-relaxed step that was not solved to the end can overshoot so far that the dual
      // falls. Then go back along it to the best point.
      share = bend > 0.0 ? std::max(linear, 0.0) / bend : 0.0;  // rounding may leave no bend at all
      for (std::size_t k = free() ? 1 : 0; k < m; ++k) alpha[k] = lane.before[k] + share * (alpha[k] - lane.before[k]);
    }
    const double before_loss = loss_, before_price = price_;
    lane.coef[0] = 0.0;
    for (std::size_t k = 1; k < m; ++k) {
      const double delta = alpha[k] - lane.before[k];
      loss_ += weight * delta * part.set.loss()[k];
      lane.coef[k] = C * delta;
    }
    if (slack_ == Slack::kQuadratic) {
      const double now = mass(part);
      price_ += weight * 0.5 * (now * now - M * M);
    }
    part.set.views(lane.views);
    weights_.take_change();
    structure_.accumulate(*lane.ws, i, part.index, lane.views, lane.coef.data(), weights_);
    if (options.average) {
      // Σ_t t w_t = mass w + lag: what is added to w now was not there in the visits before.
      if (!lag_) lag_ = std::make_unique<Weights<T>>(weights_.size());
      lane.row.assign(lane.coef.begin(), lane.coef.end());
      for (double& c : lane.row) c *= -averaged_;
      structure_.accumulate(*lane.ws, i, part.index, lane.views, lane.row.data(), *lag_);
    }
    result.work += structure_.update_work(part.index);
    double gain = C * share * (linear - 0.5 * share * bend);
    if (!exact_model) {
      gain = C_ * (loss_ - before_loss - (price_ - before_price)) - weights_.take_change();
    }
    if (adaptive) {
      if (gain < 0.0) {
        for (std::size_t k = 0; k < m; ++k) {
          lane.coef[k] = -lane.coef[k];
          alpha[k] = lane.before[k];
        }
        structure_.accumulate(*lane.ws, i, part.index, lane.views, lane.coef.data(), weights_);
        weights_.take_change();
        loss_ = before_loss;
        price_ = before_price;
        part.stiffness = std::min(1.0f, 4.0f * part.stiffness);
        return true;  // w has moved, by rounding at least
      }
      const double met = 2.0 * (share * linear - gain / C) / std::max(share * share * bend, 1e-300);
      const double wanted = 1.25 * met * double(part.stiffness);
      part.stiffness = static_cast<float>(std::clamp(wanted, 0.5 * double(part.stiffness), 1.0));
      part.stiffness = std::max(part.stiffness, 0.02f);
    }
    dual_ += gain;
    result.gain += gain;
    result.smo_steps += steps;
    ++result.solved;
    if (options.prune) prune(lane, i, part, [&](std::size_t k) { return alpha[k] > 0.0; });
    return true;
  }

  // Does the dual bend upwards along the step that was made, by more than rounding can tell? It
  // does so with a kernel that is none.
  static bool bends_up(const Part<T>& part, const double* before, double bend, double C) {
    if (bend >= 0.0) return false;
    double scale = 0.0;
    for (std::size_t k = 0; k < part.set.size(); ++k) {
      const double delta = part.set.alpha()[k] - before[k];
      scale += delta * delta * std::abs(double(part.set.gram()[k * part.set.stride() + k]));
    }
    return bend < -1e-5 * C * scale;
  }

  template <class Keep>
  void prune(Lane& lane, std::size_t i, Part<T>& part, Keep&& keep) {
    if (part.set.prune(keep, lane.survivors) == 0) return;
    part.set.views(lane.views);
    structure_.reindex(*lane.ws, i, lane.views, part.index);
    if (!factored_ || part.set.size() == 1) return;
    part.extent = structure_.extent(i, lane.views[1]);
    for (std::size_t k = 2; k < lane.views.size(); ++k) {
      const Extent extent = structure_.extent(i, lane.views[k]);
      part.extent = {std::min(part.extent.lo, extent.lo), std::max(part.extent.hi, extent.hi)};
    }
  }

  // Recombining pays where planes are short; long ones cost more in Gram entries than they bring.
  static constexpr std::size_t kRecombineWords = 128;
  // A step, by measurement: fixed cycles, and cycles for each word of index and codes.
  static constexpr double kVisitWork = 1000.0, kWordWork = 40.0;
  static constexpr double kSame = 1e-9;  // relative difference below which two margins are equal

  const Structure<T>& structure_;
  double C_;
  bool factored_;
  Slack slack_;
  Weights<T> weights_;
  std::vector<Parts<T>> parts_;
  double loss_ = 0.0, dual_ = 0.0;  // Σ α l and D, kept up to date step by step
  double price_ = 0.0;              // Σ ½ M², with quadratic slacks
  std::unique_ptr<Weights<T>> lag_; // of the average: averaged_ * (average - w)
  double averaged_ = 0.0, visits_ = 0.0;
  bool unbounded_ = false;
  std::vector<double> hinge_;       // max F of each example at the last w that was looked at
  std::vector<double> gaps_;        // of each block, when the oracle last visited it
  std::vector<std::pair<std::size_t, Part<T>*>> queue_;
  std::vector<std::size_t> rows_;
};

}  // namespace mm
