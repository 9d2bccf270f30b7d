// Visits of the dual engine: to an example with the oracle, and to what is kept of it. Passes (engine.hpp) are loops of
// these; a step itself is in block_step.hpp.
#pragma once

#include <functional>

#include "block_step.hpp"
#include "oracle_ahead.hpp"
#include "plane_windows.hpp"
#include "turns.hpp"

namespace mm {

// Give the output in the workspace its place among the parts.
template <class T>
void add_found(const Structure<T>& structure, Blocks<T>& blocks, Lane<T>& lane, std::size_t i, PassResult& result) {
  lane.code.assign(lane.ws->code.begin(), lane.ws->code.end());
  const std::size_t added = lane.router.add(structure, *lane.ws, i, lane.code, blocks.factored(), blocks[i], result.merges);
  result.added += std::int64_t(added);
  for (const Part<T>& part : blocks[i]) {
    if (added > 0) result.work += structure.gram_work(lane.code, part.set.all_codes());
  }
}

// Weights of the interior point's own, which are not link(u): they are left before the first step on a block.
struct OwnWeights {
  bool kept = false;
  std::function<void()> leave;
  // Were there some, which are gone now?
  bool left() {
    if (!kept) [[likely]] return false;
    leave();
    return true;
  }
};

template <class T>
class Visits {
 public:
  Visits(const Structure<T>& structure, Weights<T>& weights, Lane<T>& lane, VisitAverage<T>& average, OwnWeights& own)
      : structure_(structure), weights_(weights), lane_(lane), average_(average), own_(own), step_(structure, weights) {}

  BlockStep<T>& step() { return step_; }

  PlaneWindows<T>* windows = nullptr;  // where not all planes are in memory

  // The oracle and a step on the examples of `order`, one after the other; stop(result) is asked before each. `dual`: before
  // the pass. `ahead`: who has the oracle's answers; nullptr: nobody.
  template <class Turns, class Stop>
  void exact_visits(Blocks<T>& blocks, std::span<const std::uint32_t> order, Turns turns, const PassOptions& options, double dual,
                    PassResult& result, Stop&& stop, OracleAhead<T>* ahead) {
    Replay replay(options, blocks.n_examples());
    for (std::size_t at; turns.next(at);) {
      if (stop(result)) break;
      if (ahead != nullptr && !ahead->ready(order, at, weights_.data())) {
        result.interrupted = true;
        break;
      }
      const std::size_t end = turns.end();
      if (at + 16 < end) structure_.prefetch_ends(order[at + 16]);
      if (at + 8 < end) {
        prefetch(&blocks[order[at + 8]]);
        structure_.prefetch_example(order[at + 8]);
      }
      if (at + 2 < end) {
        if (ahead == nullptr) structure_.prefetch_oracle(order[at + 2], weights_.data());
        for (const Part<T>& part : blocks[order[at + 1]]) prefetch_part(part);
        const Parts<T>& later = blocks[order[at + 2]];
        prefetch_range(later.data(), later.size() * sizeof(Part<T>));
      }
      const std::size_t i = order[at];
      if (windows != nullptr) [[unlikely]] windows->visit(i);
      for (int round = 0; round < options.rounds; ++round) {
        catch_up(i);
        const bool moved = exact_visit(blocks, i, round == 0, options, result, ahead != nullptr ? &ahead->answer(at) : nullptr);
        if (options.average) average_.count();
        if (options.beta_steps) weights_.tick();
        if (!moved) break;
      }
      Blocks<T>::drop_idle(blocks[i]);
      ++result.looked;
      if (options.replay > 0) visit_again(blocks, i, options, replay, result);
      if (options.open + result.gap > options.tolerance + options.share * (dual + result.gain + options.open + result.gap)) break;
    }
  }

  // A step on each part of the examples from `first` to `last` - 1 that has planes and is not left out, in the given order.
  // stop(result) is asked before each.
  template <class Stop>
  void cached_visits(Blocks<T>& blocks, std::span<const std::uint32_t> order, std::size_t first, std::size_t last,
                     const PassOptions& options, PassResult& result, Stop&& stop) {
    fill_queue(blocks, order, first, last, options);
    cached_visits(blocks, queue_, EveryTurn(queue_.size()), options, result, stop);
  }
  using Queue = std::vector<std::pair<std::size_t, Part<T>*>>;
  const Queue& queue() const { return queue_; }
  template <class Turns, class Stop>
  void cached_visits(Blocks<T>& blocks, const Queue& queue, Turns turns, const PassOptions& options, PassResult& result, Stop&& stop) {
    for (std::size_t at; turns.next(at);) {
      if (stop(result)) break;
      // A visit is short and reads memory at random, so what later visits need is fetched in
      // stages, each of which reads what the stage before it fetched.
      const auto ahead = [&](std::size_t later, auto&& f) {
        if (later < turns.end()) f(queue[later].first, *queue[later].second);
      };
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
      catch_up(queue[at].first);
      cached_visit(blocks, queue[at].first, *queue[at].second, options, result);
      if (options.average) average_.count();
      if (options.beta_steps) weights_.tick();
    }
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
      if (i >= first && i < last && wanted_[i - first]) order_.push_back(i);
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

 private:
  using Fresh = typename Structure<T>::Fresh;

  // Bring the weights that an example reads up to date with the β of the steps made so far. β moves
  // in all coordinates after every visit, but while u_j rests s steps have a closed form
  // (slow_beta.hpp): only the rows that are read now need them.
  void catch_up(std::size_t i) {
    if (!weights_.lagging()) return;
    structure_.rows_read(i, rows_);
    bool moved = false;
    for (const std::size_t row : rows_) moved = weights_.refresh(row) || moved;
    if (moved) structure_.weights_changed(*lane_.ws);
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
    const Found found = given != nullptr ? given->found : structure_.oracle(*lane_.ws, i, weights_.data());
    if (given != nullptr) lane_.ws->code = given->code, lane_.ws->more_work = given->more_work;
    ++result.oracle_calls;
    result.work += structure_.oracle_work(i) + lane_.ws->more_work;
    if (found.truth && blocks[i].empty()) return false;
    const std::int64_t known = result.added;
    if (options.epsilon >= 0.0 && !violates(blocks, i, found, options)) {
      if (first) note_gap(blocks, i, found, result);
      return false;
    }
    if (!found.truth) add_found(structure_, blocks, lane_, i, result);
    if (!first && result.added == known) return false;
    bool fresh = given == nullptr;  // the workspace still holds the scores under the present w
    if (own_.left()) [[unlikely]] {  // a pass that began with looking comes to its first step
      structure_.weights_changed(*lane_.ws);
      fresh = false;
    }
    bool moved = false;
    double top = 0.0, mean = 0.0, low = 0.0, M = 0.0;
    for (Part<T>& part : blocks[i]) {
      if (blocks.unconstrained()) part.set.alpha()[0] = kInfinity, M += Blocks<T>::mass(part);
      margins(lane_, i, part, fresh ? Fresh::kOracle : Fresh::kNo);
      if (step_.ascend(blocks, average_, lane_, i, part, options, result)) fresh = false, moved = true;
      top += lane_.top;
      mean += lane_.mean;
      low += lane_.low;
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
      margins(lane_, i, part, Fresh::kNo);
      for (const double f : lane_.F) xi = std::max(xi, f);
    }
    return !found.truth && found.F > xi + options.epsilon;
  }

  // The gap of a block that is left alone.
  void note_gap(Blocks<T>& blocks, std::size_t i, const Found& found, PassResult& result) {
    double top = std::max(found.F, 0.0), mean = 0.0, M = 0.0;
    for (const Part<T>& part : blocks[i]) {
      margins(lane_, i, part, Fresh::kNo);
      for (std::size_t k = 1; k < part.set.size(); ++k) {
        mean += part.set.alpha()[k] * lane_.F[k];
        top = std::max(top, lane_.F[k]);
      }
      M += Blocks<T>::mass(part);
    }
    blocks.gaps()[i] = blocks.block_gap(i, top, mean, M);
    result.gap += blocks.gaps()[i];
  }

  void cached_visit(Blocks<T>& blocks, std::size_t i, Part<T>& part, const PassOptions& options, PassResult& result) {
    if (!options.recombine || part.set.all_codes().size() > kRecombineWords) {
      margins(lane_, i, part, Fresh::kNo);
    } else {
      const Found found = structure_.recombine(*lane_.ws, i, weights_.data(), part.index);
      margins(lane_, i, part, Fresh::kRecombine);
      if (!found.truth) {
        double cached = 0.0;
        for (const double f : lane_.F) cached = std::max(cached, f);
        if (found.F > cached + kSame * std::abs(cached) && part.set.find(lane_.ws->code) == part.set.size()) {
          add_plane(structure_, *lane_.ws, i, part, CodeView(lane_.ws->code), lane_.views, lane_.row);
          lane_.F.push_back(found.F);
          ++result.added;
          result.work += structure_.gram_work(lane_.ws->code, part.set.all_codes());
        }
      }
    }
    step_.ascend(blocks, average_, lane_, i, part, options, result);
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
  Weights<T>& weights_;
  Lane<T>& lane_;
  VisitAverage<T>& average_;
  OwnWeights& own_;
  BlockStep<T> step_;
  Queue queue_;
  std::vector<std::uint8_t> wanted_;
  std::vector<std::uint32_t> order_;  // what a cached pass leaves of the order that it was given
  std::vector<std::size_t> rows_;
};

}  // namespace mm
