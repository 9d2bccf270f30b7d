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
// The block of an example is kept in parts (part.hpp). These passes are offered; a solver is a
// schedule of them:
//   exact_pass    oracle, new planes and a step, example after example   (moves w; many threads, if they may)
//   collect_pass  oracle and new planes at one w: the true gap           (w fixed, many threads)
//   cached_pass   a step on each part from what is kept, no oracle       (moves w; many threads, if they may)
//   interior_pass all of what is kept at once, for few weights           (moves w)
//   newton_pass   a step on all parts together, no oracle                (moves w)
//   coordinate_pass  rounds over rows with a sign, by one number each    (moves w)
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <tuple>

#include "example_loop.hpp"
#include "interior_pass.hpp"
#include "joint_pass.hpp"
#include "newton_step.hpp"
#include "plane_windows.hpp"
#include "row_ascent.hpp"
#include "visits.hpp"

namespace mm {

template <class T>
class Engine {
 public:
  ExampleLoop<T, Lane<T>> loop;

  Engine(const Structure<T>& structure, double C, bool factored, Link link = {}, Slack slack = Slack::kLinear)
      : loop(structure), structure_(structure), blocks_(structure, C, slack, factored),
        weights_(structure.n_weights(), std::move(link), structure.row_size(), structure.maps_weights()), visits_(structure, weights_, loop.first, average_, own_),
        newton_(structure) {
    own_.leave = [this] { leave_own(); };
    if (!weights_.link().uniform()) recount();  // Ω*(0) is not 0 where the link has offsets or bounds
  }

  // The share of the examples that this engine works on, and the weights that shares have in common.
  Blocks<T>& blocks() { return blocks_; }
  const Blocks<T>& blocks() const { return blocks_; }
  const Weights<T>& weights() const {
    joint_.publish();
    return weights_;
  }
  // Who changes them ends the consensus of joint passes.
  Weights<T>& weights_to_change() {
    joint_.publish();
    joint_.forget();
    return weights_;
  }
  std::size_t n_weights() const { return weights_.size(); }
  std::size_t row_size() const { return structure_.row_size(); }
  // Would so many threads make the steps of a pass at the same time?
  bool joins(int threads) const { return may_join(threads) > 1; }
  VisitAverage<T>& average() { return average_; }
  const VisitAverage<T>& average() const { return average_; }
  double C() const { return blocks_.C(); }

  // Keep the planes of all but some examples in a file (plane_windows.hpp). Passes then go from window to
  // window, so that orders should, too.
  void set_windows(std::vector<std::size_t> ends, std::size_t limit, int descriptor) {
    if (blocks_.size().planes > 0) throw BadInput("windows are set before the first pass");
    windows_.emplace(structure_, blocks_, std::move(ends), limit, descriptor);
    blocks_.set_windows(&*windows_);
    loop.windows = &*windows_;
    visits_.windows = &*windows_;
  }
  PlaneWindows<T>* windows() { return windows_ ? &*windows_ : nullptr; }
  const PlaneWindows<T>* windows() const { return windows_ ? &*windows_ : nullptr; }

  // Passes over a share: what they return are sums over its examples.
  PassResult exact_pass(std::span<const std::uint32_t> order, const PassOptions& options, int threads = 1) {
    return exact_pass(blocks_, order, options, threads);
  }
  PassResult collect_pass(int threads, bool measured = true) { return collect_pass(blocks_, threads, measured); }
  PassResult cached_pass(std::span<const std::uint32_t> order, const PassOptions& options, int threads = 1) { return cached_pass(blocks_, order, options, threads); }

  PassResult exact_pass(Blocks<T>& blocks, std::span<const std::uint32_t> order, const PassOptions& options, int threads = 1) {
    PassResult result;
    const Counted counted(dual_, result);
    if (options.replay > 0) require_all("a replay");
    if (joint_pass(blocks, order, options, threads, true, result)) return result;
    if (options.epsilon < 0.0 || joint_.open()) result.gain += leave_own();
    structure_.weights_changed(*loop.first.ws);
    std::optional<OracleAhead<T>> ahead;
    if (threads > 1 && asks_ahead(options)) ahead.emplace(structure_, loop, threads);
    visits_.exact_visits(blocks, order, EveryTurn(order.size()), options, dual_, result, [&](PassResult& r) { return loop.stop(r); }, ahead ? &*ahead : nullptr);
    if (weights_.lagging()) weights_.refresh_all();
    if (options.coordinate && !result.interrupted) result.gap = approximate_gap(result.hinge, dual_ + result.gain);
    return result;
  }

  // One step of β in all coordinates, on its own.
  void beta_step() {
    leave_joint();
    weights_.tick();
    if (weights_.lagging()) weights_.refresh_all();
  }

  // The oracle at one w. New planes get their place, and for L2 the true gap follows from the sum of
  // the hinges alone: with E = Σ α l, D = C E - ½|w|² and P = ½|w|² - w.u₀ + C Σ max F, the sum
  // P + D = C (E + Σ max F) - w.u₀ has no |w|², and so P - D = C (E + Σ max F) - w.u₀ - 2 D.
  // (Examples that have weights have them in both sums.) Without `measured` no gap is asked for, and no sum over all
  // weights is made.
  PassResult collect_pass(Blocks<T>& blocks, int threads, bool measured = true) {
    joint_.publish();
    PassResult result = loop.template run<PassResult>(
        threads, [&](Lane<T>& lane, std::size_t i, std::size_t end, PassResult& share) {
          if (i + 4 < end) {  // the parts of other shares belong to other threads
            const Parts<T>& later = blocks[i + 4];
            prefetch_range(later.data(), later.size() * sizeof(Part<T>));
            for (const Part<T>& part : blocks[i + 2]) prefetch_range(part.set.alpha(), part.set.bytes());
          }
          const Found found = structure_.oracle(*lane.ws, i, weights_.data());
          ++share.oracle_calls;
          share.work += structure_.oracle_work(i) + lane.ws->more_work;
          blocks.slacks()[i] = blocks.slack() == Slack::kHard ? 1.0 : found.upper();
          if (!found.truth && structure_.example_weight(i) > 0.0) add_found(structure_, blocks, lane, i, share);
          if (blocks.slack() == Slack::kHard && found.F > 0.0) blocks.slacks()[i] = worst_slack(structure_, *lane.ws, i, weights_.data(), blocks.slack());
          if (!structure_.exact_oracle()) blocks.slacks()[i] = std::max(blocks.slacks()[i], blocks.known(structure_, *lane.ws, i, weights_.data(), blocks.slack()).slack);
          Blocks<T>::drop_idle(blocks[i]);
        });
    if (result.interrupted || !measured) {
      result.gap = std::nan("");
    } else if (blocks.slack() == Slack::kHard) {
      result.gap = blocks.hard_primal(weights_.penalty()) - dual_;
    } else if (own_.kept) {
      // w is not quite link(u): the primal is that of w, the dual that of the multipliers.
      result.gap = joint_.penalty() - weights_.fixed_gain() + C() * blocks.risk() - dual_;
    } else if (weights_.linear()) {
      result.gap = blocks.linear() + C() * blocks.risk() - 2.0 * dual_ - weights_.fixed_gain();
    } else {
      // Ω(w) is not Ω*(u); both are summed anew, and with them the dual.
      const double dual = blocks.linear() - weights_.conjugate();
      result.gain = dual - dual_;
      dual_ = dual;
      result.gap = weights_.penalty() - weights_.fixed_gain() + C() * blocks.risk() - dual_;
    }
    return result;
  }

  PassResult cached_pass(Blocks<T>& blocks, std::span<const std::uint32_t> order, const PassOptions& options, int threads = 1) {
    PassResult result;
    const Counted counted(dual_, result);
    if (joint_pass(blocks, order, options, threads, false, result)) return result;
    result.gain += leave_own();
    structure_.weights_changed(*loop.first.ws);
    const auto stop = [&](PassResult& r) { return loop.stop(r); };
    if (!windows_) {
      visits_.cached_visits(blocks, order, 0, blocks.n_examples(), options, result, stop);
    } else {
      // Runs of the order that are in one window.
      for (std::size_t at = 0, end = 0; at < order.size() && !result.interrupted; at = end) {
        const std::size_t k = windows_->of(order[at]), first = windows_->begin(k), last = windows_->end(k);
        for (end = at; end < order.size() && order[end] >= first && order[end] < last;) ++end;
        if (windows_->sums(k).planes == 0) continue;
        windows_->enter(k);
        visits_.cached_visits(blocks, order.subspan(at, end - at), first, last, options, result, stop);
      }
    }
    if (weights_.lagging()) weights_.refresh_all();
    return result;
  }

  // ---- all kept planes at once, by an interior point (interior_point.hpp) ----

  InteriorSize interior_size() const { return InteriorPass<T>::size(structure_, blocks_, weights_); }

  // The multipliers of all parts are replaced by those of the interior point if that raises the
  // dual (or the primal alone gets better); else all stays as it was, bit for bit. `prune`: drop the planes without a multiplier.
  PassResult interior_pass(const InteriorOptions& options, bool prune) {
    require_all("an interior point");
    if (weights_.mapped()) throw BadInput("with a kernel there are no weights of features for an interior point");
    if (weights_.lagging()) throw BadInput("an interior point does not go with a cost-to-move of beta");
    PassResult result;
    const auto halt = [&] {
      if (!result.interrupted && loop.poll) {
        const auto now = std::chrono::steady_clock::now();
        if (now - asked_ >= std::chrono::milliseconds(50)) asked_ = now, result.interrupted = loop.poll();
      }
      return result.interrupted;
    };
    result.gain = leave_joint();
    dual_ += result.gain;
    InteriorPass<T> pass(structure_, blocks_, weights_);
    const InteriorResult found = pass.solve(options, halt, own_.kept);
    result.work = found.work;
    result.smo_steps = found.iterations;
    result.cached_gap = found.start.gap();
    result.visits = std::int64_t(pass.parts().size());
    const auto count = [&] {
      blocks_.rebuild(structure_, weights_);
      weights_.relink();
      weights_.take_change();
      blocks_.recount();
      return counted();
    };
    if (sizeof(T) == 8 && found.only_w) {
      const double now = count();
      result.gain += std::max(now - dual_, 0.0);
      dual_ = now;
      result.solved = result.visits;
      result.cached_gap = std::max(found.value.gap(), 0.0);
      pass.note(found.F);
      pass.show(found.w, weights_);
      own_.kept = true;
      return result;
    }
    // A dual that is higher is no use with a w that is further off: the oracle would look at that.
    if (!found.better || found.value.gap() > found.start.gap()) return result;
    const std::vector<T> sums(weights_.sums(), weights_.sums() + weights_.size()), w(weights_.data(), weights_.data() + weights_.size());
    const double loss = blocks_.loss(), price = blocks_.price();
    // What steps added up to has their rounding; whether the dual rises is told from the multipliers alone.
    const double before = count();
    pass.give(found.z);
    const double now = count();
    if (!(now > before || (now == before && found.value.primal < found.start.primal))) {
      pass.take_back();
      std::copy(sums.begin(), sums.end(), weights_.sums());
      std::copy(w.begin(), w.end(), weights_.data());
      blocks_.set_sums(loss, price);
      return result;
    }
    result.gain += std::max(now - dual_, 0.0);
    result.solved = result.visits;
    result.cached_gap = std::max(found.value.gap(), 0.0);
    pass.note(found.F);
    dual_ = now;
    own_.kept = sizeof(T) == 8 && found.own_w;
    if (own_.kept) pass.show(found.w, weights_);
    if (prune) {
      for (auto& [i, part] : pass.parts()) {
        visits_.step().prune(loop.first, i, *part, blocks_.factored(), [part = part](std::size_t k) { return part->set.alpha()[k] > 0.0; });
      }
      for (Parts<T>& parts : blocks_.parts()) Blocks<T>::drop_idle(parts);
    }
    return result;
  }

  // Is w not link(u), but an iterate of the interior point with a lower primal (interior_point.hpp,
  // "Rounding")? The oracle looks at it, and a certificate has the better of the two. Steps on blocks are
  // those of link(u), which is made anew from the multipliers before the first of them.
  bool own_weights() const { return own_.kept; }
  void set_own_weights(bool own) {
    if (agreed_ && !own) forget_stiffness(), joint_.forget();
    agreed_ = agreed_ && own;
    own_.kept = own;
  }
  // Are they the z on which the members of joint passes agree (consensus.hpp)?
  bool agreed_weights() const { return agreed_; }
  void set_agreed_weights() { own_.kept = agreed_ = true; }
  // They stay as they are, and the memory of the members is given back: a certificate needs as much.
  void disband() { joint_.disband(); }

  // Newton's method on the multipliers that are above zero (newton_step.hpp); nothing where β lags behind
  // or a kernel maps the weights.
  PassResult newton_pass(const NewtonOptions& options) {
    require_all("Newton's method");
    PassResult result;
    const Counted counted(dual_, result);
    result.gain += leave_own();
    if (NewtonStep<T>::applies(weights_)) newton_.run(blocks_, weights_, *loop.first.ws, options, result, [&](PassResult& r) { return loop.stop(r); });
    return result;
  }

  // Are the planes rows with a sign, and w = u, so that coordinate_pass() goes?
  bool offers_coordinates() const {
    return structure_.signed_rows() != nullptr && blocks_.slack() == Slack::kLinear && weights_.linear() && !weights_.mapped();
  }
  // Algorithm 1 of the dual-coordinate paper on them (row_ascent.hpp); the gap is UB' - LB of (36) and (34).
  PassResult coordinate_pass(std::span<const std::uint32_t> order, const CoordinateOptions& options) {
    require_all("a coordinate pass");
    if (!offers_coordinates()) throw BadInput("coordinate passes go with rows with a sign, linear slacks and L2 only");
    PassResult result;
    leave_own();
    structure_.weights_changed(*loop.first.ws);
    if (!rows_ascent_) rows_ascent_.emplace(*structure_.signed_rows());
    rows_ascent_->run(blocks_, weights_, order, options, dual_, result, [&](PassResult& r) { return loop.stop(r); });
    blocks_.recount();
    const double now = counted();
    result.gain = now - dual_;
    dual_ = now;
    return result;
  }

  // Σ_i of what the slacks cost at the present w (ξ_i, or ½ ξ_i²; ξ_i where none is allowed).
  double hinge(int threads) {
    return look(threads, blocks_.slack() == Slack::kHard ? Slack::kLinear : blocks_.slack()) ? blocks_.risk() : std::nan("");
  }

  // The primal at the present w; infinite for a hard margin that w does not have.
  double objective(int threads) {
    return look(threads, blocks_.slack()) ? blocks_.objective(weights_.penalty() - weights_.fixed_gain()) : std::nan("");
  }

  // The slack of each example at the present w, or its factor (slack.hpp).
  bool look(int threads, Slack slack) {
    joint_.publish();
    const PassResult result = loop.template run<PassResult>(threads, [&](Lane<T>& lane, std::size_t i, std::size_t, PassResult&) {
      blocks_.slacks()[i] = blocks_.slack_of(structure_, *lane.ws, i, weights_.data(), slack);
    });
    return !result.interrupted;
  }

  // The dual of the multipliers. (Weights of the interior point's own are not quite link(u).)
  double dual() const { return own_.kept ? dual_ : counted(); }

  // What the steps added up to, for checkpoints; recount() does it from scratch.
  std::array<double, 3> running() const { return {blocks_.loss(), dual_, blocks_.price()}; }
  void set_running(double loss, double dual, double price) {
    blocks_.set_sums(loss, price);
    dual_ = dual;
  }
  void recount() {
    blocks_.recount();
    dual_ = counted();
  }

  // Warm start under another C: u is linear in it.
  void rescale(double C) {
    blocks_.set_C(C);
    rebuild();
  }

  // Warm start under another regulariser: the multipliers stay.
  void relink(Link link) {
    leave_joint();
    own_.kept = false;
    weights_.set_link(std::move(link));
    forget_stiffness();
    recount();
  }

  // Rounds between processes begin (member.hpp): what parts learned of the curvature was that of another metric.
  void start_rounds(double C) {
    blocks_.set_C(C);
    forget_stiffness();
  }

  // u was moved by another share of the examples (Δu): w follows, the multipliers here stay. The
  // dual counted here is then that of the joint u with the losses of this share only.
  void receive(const T* change) {
    leave_own();
    weights_.receive(change);
    recount();
  }

  // The u that all shares have made, and the C that steps are to be made with (shares.hpp): w follows, the
  // multipliers here stay.
  void settle(const T* sums, double C) {
    leave_joint();
    own_.kept = false;
    blocks_.set_C(C);
    std::copy(sums, sums + weights_.size(), weights_.sums());
    weights_.relink();
    weights_.take_change();
    recount();
  }

  // Another fixed linear term u₀ (nullptr: none): planes and multipliers stay.
  void set_fixed(const T* fixed) {
    leave_joint();
    own_.kept = false;
    weights_.set_fixed(fixed);
    recount();
  }

  // ---- for problems that grow (chunked.hpp) ----

  // Blocks for the examples that came since; they have their truths only, so that nothing else moves.
  void grow() { blocks_.grow(); }

  // Let go of parts until their planes take at most `budget` bytes: those with the least of C Σ α l first. Their
  // multipliers go back to the truth, and u is made anew of what is left, so that the dual is that of
  // multipliers as good as any, and a lower bound for all examples. Returns how many planes went.
  std::size_t shed(std::size_t budget) {
    struct Held {
      double worth;
      std::size_t i, part, bytes;
    };
    std::vector<Held> held;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < blocks_.n_examples(); ++i) {
      for (std::size_t p = 0; p < blocks_[i].size(); ++p) {
        const Part<T>& part = blocks_[i][p];
        double worth = 0.0;
        for (std::size_t k = 1; k < part.set.size(); ++k) worth += part.set.alpha()[k] * part.set.loss()[k];
        held.push_back({blocks_.C_of(i) * worth, i, p, Blocks<T>::plane_bytes(part)});
        bytes += held.back().bytes;
      }
    }
    if (bytes <= budget) return 0;
    std::sort(held.begin(), held.end(), [](const Held& a, const Held& b) { return std::tie(a.worth, a.i, a.part) < std::tie(b.worth, b.i, b.part); });
    std::size_t gone = 0;
    for (const Held& one : held) {
      if (bytes <= budget) break;
      Part<T>& part = blocks_[one.i][one.part];
      gone += part.set.size() - 1;
      bytes -= one.bytes;
      part.set.prune([](std::size_t) { return false; }, loop.first.survivors);
      part.set.alpha()[0] = 1.0;
    }
    for (Parts<T>& parts : blocks_.parts()) Blocks<T>::drop_idle(parts);
    rebuild();
    return gone;
  }

  // Let go of all planes of some examples: their multipliers go back to the truth.
  void release(std::span<const std::uint32_t> examples) {
    for (const std::uint32_t i : examples) {
      Parts<T>().swap(blocks_[i]);
      blocks_.gaps()[i] = 0.0;
    }
    rebuild();
  }

  // u and w of the multipliers, from scratch.
  void rebuild() {
    if (agreed_) forget_stiffness();
    joint_.forget();
    own_.kept = agreed_ = false;
    blocks_.rebuild(structure_, weights_);
    weights_.relink();
    weights_.take_change();
    recount();
  }

  typename Blocks<T>::Size size() const {
    auto size = blocks_.size();
    if (!windows_) size.bytes += structure_.cache_bytes();  // windows count theirs
    return size;
  }

 private:
  // What a part learned of the dual's curvature was learned under the old link.
  void forget_stiffness() {
    for_windows(blocks_.windows(), blocks_.n_examples(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        for (Part<T>& part : blocks_[i]) part.stiffness = 1;
      }
    });
  }

  void require_all(const char* what) const {
    if (windows_) throw BadInput(std::string(what) + " needs all planes in memory, and they are kept in windows");
  }

  // Returns by how much the dual is another one than was counted: passes of several threads add up terms that may be far larger.
  double leave_own() {
    if (!own_.kept) [[likely]] return 0.0;
    // Steps on shares learned the curvature of another metric.
    const bool agreed = agreed_;
    if (agreed) forget_stiffness();
    joint_.forget();
    own_.kept = agreed_ = false;
    blocks_.rebuild(structure_, weights_);
    weights_.relink();
    weights_.take_change();
    if (!agreed) return 0.0;
    blocks_.recount();
    return counted() - dual_;
  }
  double leave_joint() { return agreed_ ? leave_own() : 0.0; }

  // Whether several threads made the pass.
  bool joint_pass(Blocks<T>& blocks, std::span<const std::uint32_t> order, const PassOptions& options, int threads, bool exact, PassResult& result) {
    const std::size_t members = joint_members(order, options, threads);
    if (members < 2) return false;
    const bool goes_on = joint_.open() && joint_.members() == members, linked = !agreed_;
    if (!goes_on) {
      joint_.disband();
      if (linked) {
        result.gain += leave_own();
        forget_stiffness();
      }
    }
    const bool empty = !goes_on && blocks_.size().planes == 0;
    own_.kept = agreed_ = true;
    joint_.run(blocks, order, options, members, exact, linked, empty, result);
    return true;
  }

  // May the oracle be asked for many examples before the steps on them?
  bool asks_ahead(const PassOptions& options) const {
    if (!structure_.thread_safe() || windows_ || own_.kept || weights_.lagging()) return false;
    if (options.rounds > 1 || options.epsilon >= 0.0 || options.replay > 0 || options.tolerance != kInfinity) return false;
    return OracleAhead<T>::pays(structure_);
  }

  // How many threads make the steps at the same time (joint_pass.hpp). There must be enough steps, and room for copies.
  std::size_t joint_members(std::span<const std::uint32_t> order, const PassOptions& options, int threads) const {
    if (!options.joint || options.rounds > 1 || options.epsilon >= 0.0 || options.replay > 0 || options.tolerance != kInfinity) return 1;
    if (options.average || options.frank_wolfe || options.coordinate || !distinct(order)) return 1;
    return may_join(threads);
  }
  std::size_t may_join(int threads) const {
    if (threads < 2 || blocks_.n_examples() < kMany || windows_ || blocks_.slack() == Slack::kHard) return 1;
    if (weights_.mapped() || weights_.lagging() || !structure_.thread_safe() || !structure_.shares_steps()) return 1;
    return std::min({n_shares(threads, blocks_.n_examples()), Consensus<T>::kMostMembers, 1 + kMostCopies / weights_.bytes()});
  }
  static constexpr std::size_t kMostCopies = std::size_t{1} << 32;
  static constexpr std::size_t kMany = 1000;
  // Does no example come twice? Two threads must not step on one block.
  bool distinct(std::span<const std::uint32_t> order) const {
    std::vector<bool> seen(blocks_.n_examples());
    for (const std::uint32_t i : order) {
      if (seen[i]) return false;
      seen[i] = true;
    }
    return true;
  }

  // UB' - LB of the dual-coordinate paper's (36) and (34), from hinges that were met while w moved.
  double approximate_gap(double hinge, double dual) const { return weights_.penalty() - weights_.fixed_gain() + C() * hinge - dual; }

  double counted() const { return C() * (blocks_.expected_loss() - blocks_.expected_price()) - weights_.conjugate(); }

  // However a pass ends (a user's oracle may raise), the dual has what was gained.
  struct Counted {
    Counted(double& dual, const PassResult& result) : dual(dual), result(result) {}
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { dual += result.gain; }
    double& dual;
    const PassResult& result;
  };

  const Structure<T>& structure_;
  Blocks<T> blocks_;
  std::optional<PlaneWindows<T>> windows_;
  Weights<T> weights_;
  VisitAverage<T> average_;
  OwnWeights own_;
  Visits<T> visits_;
  NewtonStep<T> newton_;
  mutable JointPass<T> joint_{structure_, loop, weights_};
  bool agreed_ = false;  // whether own weights are those that members of joint passes agree on
  double dual_ = 0.0;  // D, kept up to date step by step
  std::optional<RowAscent<T>> rows_ascent_;
  std::chrono::steady_clock::time_point asked_{};  // when an interior pass last asked whether to stop
};

}  // namespace mm
