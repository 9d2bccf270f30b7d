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
//   exact_pass    oracle, new planes and a step, example after example   (moves w)
//   collect_pass  oracle and new planes at one w: the true gap           (w fixed, many threads)
//   cached_pass   a step on each part from what is kept, no oracle       (moves w)
//   interior_pass all of what is kept at once, for few weights           (moves w)
//   newton_pass   a step on all parts together, no oracle                (moves w)
//   coordinate_pass  rounds over rows with a sign, by one number each    (moves w)
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <tuple>

#include "block_step.hpp"
#include "example_loop.hpp"
#include "interior_pass.hpp"
#include "newton_step.hpp"
#include "oracle_ahead.hpp"
#include "plane_windows.hpp"
#include "row_ascent.hpp"

namespace mm {

template <class T>
class Engine {
 public:
  ExampleLoop<T, Lane<T>> loop;

  Engine(const Structure<T>& structure, double C, bool factored, Link link = {}, Slack slack = Slack::kLinear)
      : loop(structure), structure_(structure), blocks_(structure, C, slack, factored),
        weights_(structure.n_weights(), std::move(link), structure.row_size(), structure.maps_weights()), step_(structure, weights_), newton_(structure) {
    if (!weights_.link().uniform()) recount();  // Ω*(0) is not 0 where the link has offsets or bounds
  }

  // The share of the examples that this engine works on (all, today), and the weights that shares have
  // in common.
  Blocks<T>& blocks() { return blocks_; }
  const Blocks<T>& blocks() const { return blocks_; }
  Weights<T>& weights() { return weights_; }
  const Weights<T>& weights() const { return weights_; }
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
  }
  PlaneWindows<T>* windows() { return windows_ ? &*windows_ : nullptr; }
  const PlaneWindows<T>* windows() const { return windows_ ? &*windows_ : nullptr; }

  // Passes over a share: what they return are sums over its examples.
  PassResult exact_pass(std::span<const std::uint32_t> order, const PassOptions& options, int threads = 1) {
    return exact_pass(blocks_, order, options, threads);
  }
  PassResult collect_pass(int threads) { return collect_pass(blocks_, threads); }
  PassResult cached_pass(std::span<const std::uint32_t> order, const PassOptions& options) { return cached_pass(blocks_, order, options); }

  PassResult exact_pass(Blocks<T>& blocks, std::span<const std::uint32_t> order, const PassOptions& options, int threads = 1) {
    PassResult result;
    const Counted counted(dual_, result);
    if (options.epsilon < 0.0) leave_own();
    structure_.weights_changed(*loop.first.ws);
    Replay replay(options, blocks.n_examples());
    if (options.replay > 0) require_all("a replay");
    std::optional<OracleAhead<T>> ahead;
    if (threads > 1 && asks_ahead(options)) ahead.emplace(structure_, loop, threads);
    for (std::size_t at = 0; at < order.size(); ++at) {
      if (loop.stop(result)) break;
      if (ahead && !ahead->ready(order, at, weights_.data())) {
        result.interrupted = true;
        break;
      }
      if (at + 16 < order.size()) structure_.prefetch_ends(order[at + 16]);
      if (at + 8 < order.size()) {
        prefetch(&blocks[order[at + 8]]);
        structure_.prefetch_example(order[at + 8]);
      }
      if (at + 2 < order.size()) {
        if (!ahead) structure_.prefetch_oracle(order[at + 2], weights_.data());
        for (const Part<T>& part : blocks[order[at + 1]]) prefetch_part(part);
        const Parts<T>& later = blocks[order[at + 2]];
        prefetch_range(later.data(), later.size() * sizeof(Part<T>));
      }
      const std::size_t i = order[at];
      if (windows_) [[unlikely]] windows_->visit(i);
      for (int round = 0; round < options.rounds; ++round) {
        catch_up(i);
        const bool moved = exact_visit(blocks, i, round == 0, options, result, ahead ? &ahead->answer(at) : nullptr);
        if (options.average) average_.count();
        if (options.beta_steps) weights_.tick();
        if (!moved) break;
      }
      Blocks<T>::drop_idle(blocks[i]);
      ++result.looked;
      if (options.replay > 0) visit_again(blocks, i, options, replay, result);
      if (options.open + result.gap > options.tolerance + options.share * (dual_ + result.gain + options.open + result.gap)) break;
    }
    if (weights_.lagging()) weights_.refresh_all();
    if (options.coordinate && !result.interrupted) result.gap = approximate_gap(result.hinge, dual_ + result.gain);
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
  PassResult collect_pass(Blocks<T>& blocks, int threads) {
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
          if (!found.truth && structure_.example_weight(i) > 0.0) add_found(blocks, lane, i, share);
          if (blocks.slack() == Slack::kHard && found.F > 0.0) blocks.slacks()[i] = worst_slack(structure_, *lane.ws, i, weights_.data(), blocks.slack());
          if (!structure_.exact_oracle()) blocks.slacks()[i] = std::max(blocks.slacks()[i], blocks.known(structure_, *lane.ws, i, weights_.data(), blocks.slack()).slack);
          Blocks<T>::drop_idle(blocks[i]);
        });
    if (result.interrupted) {
      result.gap = std::nan("");
    } else if (blocks.slack() == Slack::kHard) {
      result.gap = blocks.hard_primal(weights_.penalty()) - dual_;
    } else if (own_weights_) {
      // w is not quite link(u): the primal is that of w, the dual that of the multipliers.
      result.gap = weights_.penalty() - weights_.fixed_gain() + C() * blocks.risk() - dual_;
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

  PassResult cached_pass(Blocks<T>& blocks, std::span<const std::uint32_t> order, const PassOptions& options) {
    PassResult result;
    const Counted counted(dual_, result);
    leave_own();
    structure_.weights_changed(*loop.first.ws);
    if (!windows_) {
      cached_visits(blocks, order, 0, blocks.n_examples(), options, result);
    } else {
      // Runs of the order that are in one window.
      for (std::size_t at = 0, end = 0; at < order.size() && !result.interrupted; at = end) {
        const std::size_t k = windows_->of(order[at]), first = windows_->begin(k), last = windows_->end(k);
        for (end = at; end < order.size() && order[end] >= first && order[end] < last;) ++end;
        if (windows_->sums(k).planes == 0) continue;
        windows_->enter(k);
        cached_visits(blocks, order.subspan(at, end - at), first, last, options, result);
      }
    }
    if (weights_.lagging()) weights_.refresh_all();
    return result;
  }

 private:
  void cached_visits(Blocks<T>& blocks, std::span<const std::uint32_t> order, std::size_t first, std::size_t last,
                     const PassOptions& options, PassResult& result) {
    fill_queue(blocks, order, first, last, options);
    for (std::size_t at = 0; at < queue_.size(); ++at) {
      if (loop.stop(result)) break;
      // A visit is short and reads memory at random, so what later visits need is fetched in
      // stages, each of which reads what the stage before it fetched.
      ahead(at + 16, [&](std::size_t i, const Part<T>& part) {
        prefetch_range(&part, sizeof part);
        structure_.prefetch_ends(i);
      });
      ahead(at + 8, [&](std::size_t i, const Part<T>& part) {
        prefetch_part(part);
        structure_.prefetch_example(i);
      });
      ahead(at + 2, [&](std::size_t i, const Part<T>& part) {
        structure_.prefetch_part(i, part.index, weights_.data());
      });
      catch_up(queue_[at].first);
      cached_visit(blocks, queue_[at].first, *queue_[at].second, options, result);
      if (options.average) average_.count();
      if (options.beta_steps) weights_.tick();
    }
  }

 public:

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
    InteriorPass<T> pass(structure_, blocks_, weights_);
    const InteriorResult found = pass.solve(options, halt, own_weights_);
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
      result.gain = std::max(now - dual_, 0.0);
      dual_ = now;
      result.solved = result.visits;
      result.cached_gap = std::max(found.value.gap(), 0.0);
      pass.note(found.F);
      pass.show(found.w, weights_);
      own_weights_ = true;
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
    result.gain = std::max(now - dual_, 0.0);
    result.solved = result.visits;
    result.cached_gap = std::max(found.value.gap(), 0.0);
    pass.note(found.F);
    dual_ = now;
    own_weights_ = sizeof(T) == 8 && found.own_w;
    if (own_weights_) pass.show(found.w, weights_);
    if (prune) {
      for (auto& [i, part] : pass.parts()) {
        step_.prune(loop.first, i, *part, blocks_.factored(), [part = part](std::size_t k) { return part->set.alpha()[k] > 0.0; });
      }
      for (Parts<T>& parts : blocks_.parts()) Blocks<T>::drop_idle(parts);
    }
    return result;
  }

  // Is w not link(u), but an iterate of the interior point with a lower primal (interior_point.hpp,
  // "Rounding")? The oracle looks at it, and a certificate has the better of the two. Steps on blocks are
  // those of link(u), which is made anew from the multipliers before the first of them.
  bool own_weights() const { return own_weights_; }
  void set_own_weights(bool own) { own_weights_ = own; }

  // Newton's method on the multipliers that are above zero (newton_step.hpp); nothing where β lags behind
  // or a kernel maps the weights.
  PassResult newton_pass(const NewtonOptions& options) {
    require_all("Newton's method");
    PassResult result;
    const Counted counted(dual_, result);
    leave_own();
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
    const PassResult result = loop.template run<PassResult>(threads, [&](Lane<T>& lane, std::size_t i, std::size_t, PassResult&) {
      blocks_.slacks()[i] = blocks_.slack_of(structure_, *lane.ws, i, weights_.data(), slack);
    });
    return !result.interrupted;
  }

  // The dual of the multipliers. (Weights of the interior point's own are not quite link(u).)
  double dual() const { return own_weights_ ? dual_ : counted(); }

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
    own_weights_ = false;
    weights_.set_link(std::move(link));
    // What a part learned of the dual's curvature was learned under the old link.
    for_windows(blocks_.windows(), blocks_.n_examples(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        for (Part<T>& part : blocks_[i]) part.stiffness = 1;
      }
    });
    recount();
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
    own_weights_ = false;
    blocks_.set_C(C);
    std::copy(sums, sums + weights_.size(), weights_.sums());
    weights_.relink();
    weights_.take_change();
    recount();
  }

  // Another fixed linear term u₀ (nullptr: none): planes and multipliers stay.
  void set_fixed(const T* fixed) {
    own_weights_ = false;
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
    own_weights_ = false;
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
  using Workspace = typename Structure<T>::Workspace;
  using Fresh = typename Structure<T>::Fresh;

  void require_all(const char* what) const {
    if (windows_) throw BadInput(std::string(what) + " needs all planes in memory, and they are kept in windows");
  }

  void leave_own() {
    if (!own_weights_) [[likely]] return;
    own_weights_ = false;
    blocks_.rebuild(structure_, weights_);
    weights_.relink();
    weights_.take_change();
  }

  // May the oracle be asked for many examples before the steps on them?
  bool asks_ahead(const PassOptions& options) const {
    if (!structure_.thread_safe() || windows_ || own_weights_ || weights_.lagging()) return false;
    if (options.rounds > 1 || options.epsilon >= 0.0 || options.replay > 0 || options.tolerance != kInfinity) return false;
    return OracleAhead<T>::pays(structure_);
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

  // Bring the weights that an example reads up to date with the β of the steps made so far. β moves
  // in all coordinates after every visit, but while u_j rests s steps have a closed form
  // (slow_beta.hpp): only the rows that are read now need them.
  void catch_up(std::size_t i) {
    if (!weights_.lagging()) return;
    structure_.rows_read(i, rows_);
    bool moved = false;
    for (const std::size_t row : rows_) moved = weights_.refresh(row) || moved;
    if (moved) structure_.weights_changed(*loop.first.ws);
  }

  // The parts that a cached pass visits, in its order. Where most examples have none (they are right with a
  // margin), going through them in the order of memory first and noting which have some takes far less time
  // than following a random order through all of them.
  // The order is of examples from `first` to `last` - 1.
  void fill_queue(Blocks<T>& blocks, std::span<const std::uint32_t> order, std::size_t first, std::size_t last, const PassOptions& options) {
    constexpr std::size_t kAhead = Blocks<T>::kAhead;
    const auto wanted = [&](const Part<T>& part) { return part.set.size() > 1 && part.violation >= options.min_violation; };
    wanted_.assign(last - first, 0);
    for (std::size_t i = first; i < last; ++i) {
      if (i + kAhead < last && !blocks[i + kAhead].empty()) prefetch_range(blocks[i + kAhead].data(), sizeof(Part<T>));
      if (structure_.example_weight(i) == 0.0) continue;  // it may have planes of a time when it had a weight
      for (const Part<T>& part : blocks[i]) wanted_[i - first] |= wanted(part);
    }
    queue_.clear();
    order_.clear();
    for (const std::uint32_t i : order) {
      if (wanted_[i - first]) order_.push_back(i);
    }
    for (std::size_t at = 0; at < order_.size(); ++at) {
      if (at + 2 * kAhead < order_.size()) prefetch(&blocks[order_[at + 2 * kAhead]]);
      if (at + kAhead < order_.size()) {
        const Parts<T>& next = blocks[order_[at + kAhead]];
        prefetch_range(next.data(), next.size() * sizeof(Part<T>));
      }
      for (Part<T>& part : blocks[order_[at]]) {
        if (wanted(part)) queue_.push_back({order_[at], &part});
      }
    }
  }

  template <class F>
  void ahead(std::size_t at, F&& f) {
    if (at < queue_.size()) f(queue_[at].first, *queue_[at].second);
  }

  static void prefetch_part(const Part<T>& part) {
    prefetch_range(part.set.alpha(), part.set.bytes());
    prefetch_range(part.index.data(), part.index.size() * sizeof(Code));
  }

  // Oracle, new planes, a step on each part; true if w moved. The gap and ψ are those of the first
  // round; with several parts, those behind the first see the w that the ones before it moved.
  // `given`: the oracle's answer, found under an older w.
  bool exact_visit(Blocks<T>& blocks, std::size_t i, bool first, const PassOptions& options, PassResult& result,
                   const typename OracleAhead<T>::Answer* given = nullptr) {
    if (structure_.example_weight(i) == 0.0) return false;
    const Found found = given != nullptr ? given->found : structure_.oracle(*loop.first.ws, i, weights_.data());
    if (given != nullptr) loop.first.ws->code = given->code, loop.first.ws->more_work = given->more_work;
    ++result.oracle_calls;
    result.work += structure_.oracle_work(i) + loop.first.ws->more_work;
    if (found.truth && blocks[i].empty()) return false;
    const std::int64_t known = result.added;
    if (options.epsilon >= 0.0 && !violates(blocks, i, found, options)) {
      if (first) note_gap(blocks, i, found, result);
      return false;
    }
    if (!found.truth) add_found(blocks, loop.first, i, result);
    if (!first && result.added == known) return false;
    bool fresh = given == nullptr;  // the workspace still holds the scores under the present w
    if (own_weights_) [[unlikely]] {  // a pass that began with looking comes to its first step
      leave_own();
      structure_.weights_changed(*loop.first.ws);
      fresh = false;
    }
    bool moved = false;
    double top = 0.0, mean = 0.0, low = 0.0, M = 0.0;
    for (Part<T>& part : blocks[i]) {
      if (blocks.unconstrained()) part.set.alpha()[0] = kInfinity, M += Blocks<T>::mass(part);
      margins(loop.first, i, part, fresh ? Fresh::kOracle : Fresh::kNo);
      if (step_.ascend(blocks, average_, loop.first, i, part, options, result)) fresh = false, moved = true;
      top += loop.first.top;
      mean += loop.first.mean;
      low += loop.first.low;
    }
    if (first) {
      // An oracle may be worse than what is kept (rounding, or a user's approximation).
      const double best = given != nullptr ? top : std::max(found.F, top), upper = given != nullptr ? top : std::max(found.upper(), top);
      blocks.gaps()[i] = blocks.block_gap(i, best, mean, M);
      result.gap += blocks.gaps()[i];
      result.hinge += structure_.example_weight(i) * std::max(0.0, upper);
      result.psi_max = std::max(result.psi_max, structure_.example_weight(i) * (best - low));
    }
    return moved;
  }

  // Steps on some kept blocks, drawn at random from those of the examples that were looked at, so that w does not
  // follow the newest example only (the "reprocess" of LASVM; Bordes et al., JMLR 2005). What they gain is a part of
  // the gaps that were counted when these examples were looked at.
  struct Replay {
    Replay(const PassOptions& options, std::size_t n) : random(options.seed), seen(std::min(options.seen, n)) {}
    RandomBits random;
    std::size_t seen;  // examples below this one may have been looked at
    std::vector<std::size_t> drawn;
  };
  void visit_again(Blocks<T>& blocks, std::size_t i, const PassOptions& options, Replay& replay, PassResult& result) {
    replay.seen = std::max(replay.seen, i + 1);
    replay.drawn.clear();
    for (int k = 0; k < options.replay; ++k) {
      const std::size_t j = replay.random.below(replay.seen);
      if (blocks[j].empty() || structure_.example_weight(j) == 0.0) continue;
      prefetch_range(blocks[j].data(), blocks[j].size() * sizeof(Part<T>));
      structure_.prefetch_ends(j);
      replay.drawn.push_back(j);
    }
    PassOptions cached = options;
    cached.recombine = true;
    const double before = result.gain;
    for (std::size_t k = 0; k < replay.drawn.size(); ++k) {
      if (k + 1 < replay.drawn.size()) {
        for (const Part<T>& part : blocks[replay.drawn[k + 1]]) prefetch_part(part);
      }
      const std::size_t j = replay.drawn[k];
      catch_up(j);
      for (Part<T>& part : blocks[j]) {
        if (part.set.size() > 1) cached_visit(blocks, j, part, cached, result);
      }
    }
    result.gap -= std::min(result.gain - before, std::max(options.open + result.gap, 0.0));
  }

  // Does the output found violate its constraint by more than ε beyond the slack of the kept ones?
  bool violates(const Blocks<T>& blocks, std::size_t i, const Found& found, const PassOptions& options) {
    double xi = 0.0;
    for (const Part<T>& part : blocks[i]) {
      margins(loop.first, i, part, Fresh::kNo);
      for (const double f : loop.first.F) xi = std::max(xi, f);
    }
    return !found.truth && found.F > xi + options.epsilon;
  }

  // The gap of a block that is left alone.
  void note_gap(Blocks<T>& blocks, std::size_t i, const Found& found, PassResult& result) {
    double top = std::max(found.F, 0.0), mean = 0.0, M = 0.0;
    for (const Part<T>& part : blocks[i]) {
      margins(loop.first, i, part, Fresh::kNo);
      for (std::size_t k = 1; k < part.set.size(); ++k) {
        mean += part.set.alpha()[k] * loop.first.F[k];
        top = std::max(top, loop.first.F[k]);
      }
      M += Blocks<T>::mass(part);
    }
    blocks.gaps()[i] = blocks.block_gap(i, top, mean, M);
    result.gap += blocks.gaps()[i];
  }

  // Give the output in the workspace its place among the parts.
  void add_found(Blocks<T>& blocks, Lane<T>& lane, std::size_t i, PassResult& result) {
    lane.code.assign(lane.ws->code.begin(), lane.ws->code.end());
    const std::size_t added =
        lane.router.add(structure_, *lane.ws, i, lane.code, blocks.factored(), blocks[i], result.merges);
    result.added += std::int64_t(added);
    for (const Part<T>& part : blocks[i]) {
      if (added > 0) result.work += structure_.gram_work(lane.code, part.set.all_codes());
    }
  }

  void cached_visit(Blocks<T>& blocks, std::size_t i, Part<T>& part, const PassOptions& options, PassResult& result) {
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
    step_.ascend(blocks, average_, loop.first, i, part, options, result);
  }

  void margins(Lane<T>& lane, std::size_t i, const Part<T>& part, Fresh fresh) {
    part.set.views(lane.views);
    lane.F.resize(part.set.size());
    structure_.margins(*lane.ws, i, weights_.data(), part.index, lane.views,
                       {part.set.loss(), part.set.size()}, fresh, lane.F.data());
  }

  // Recombining pays where planes are short; long ones cost more in Gram entries than they bring.
  static constexpr std::size_t kRecombineWords = 128;
  static constexpr double kSame = 1e-9;  // relative difference below which two margins are equal

  const Structure<T>& structure_;
  Blocks<T> blocks_;
  std::optional<PlaneWindows<T>> windows_;
  Weights<T> weights_;
  BlockStep<T> step_;
  NewtonStep<T> newton_;
  VisitAverage<T> average_;
  double dual_ = 0.0;  // D, kept up to date step by step
  std::vector<std::pair<std::size_t, Part<T>*>> queue_;
  std::vector<std::uint8_t> wanted_;
  std::vector<std::uint32_t> order_;  // what a cached pass leaves of the order that it was given
  std::vector<std::size_t> rows_;
  std::optional<RowAscent<T>> rows_ascent_;
  bool own_weights_ = false;
  std::chrono::steady_clock::time_point asked_{};  // when an interior pass last asked whether to stop
};

}  // namespace mm
