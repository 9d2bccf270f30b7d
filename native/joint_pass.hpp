// A pass of the dual engine in which several threads make the steps, on shares of the examples that agree after it
// (consensus.hpp).
//
// Such a pass is a round: with the oracle or without, each member visits its examples, and then what is kept of them, up to
// `PassOptions::sweeps` times and while that gains; then all of them meet. In a sweep behind the first visit a member leaves
// out parts whose violation is far below the mean that the one before it met.
//
// Between such passes the engine's weights are those of the first member, unless publish() made them z.
#pragma once

#include <optional>

#include "consensus.hpp"
#include "example_loop.hpp"
#include "visits.hpp"

namespace mm {

template <class T>
class JointPass {
 public:
  JointPass(const Structure<T>& structure, ExampleLoop<T, Lane<T>>& loop, Weights<T>& weights) : structure_(structure), loop_(loop), weights_(weights) {}

  // Are there members who agree on a z, which is not link(u)?
  bool open() const { return open_; }
  // The weights, or the multipliers, were changed by others than such passes; the weights are whatever they are.
  void forget() { open_ = false; }
  // The engine's weights become z and stay so; members have no memory any more.
  void disband() {
    publish();
    open_ = false;
    consensus_.reset();
    all_.clear(), copies_.clear();
  }
  std::size_t members() const { return consensus_ ? consensus_->members() : 0; }

  // The engine's weights become z.
  void publish() {
    if (open_) consensus_->publish(all_);
  }

  // Ω of the engine's weights when they are z.
  double penalty() const {
    return open_ && weights_.linear() ? consensus_->penalty() : weights_.penalty();
  }

  // `exact`: with the oracle; else from what is kept. The result is complete when a failure of a visit is thrown, too.
  // If not open(), the weights are those with which the members begin, `linked`: link(u) of the multipliers; `empty`: there
  // are no planes.
  void run(Blocks<T>& blocks, std::span<const std::uint32_t> order, const PassOptions& options, std::size_t members, bool exact,
           bool linked, bool empty, PassResult& total) {
    Crew crew(members);
    if (!consensus_ || consensus_->members() != crew.members()) {
      open_ = false;
      consensus_.emplace(structure_, crew.members());
      copies_.clear();
      copies_.resize(crew.members() - 1);
    }
    Consensus<T>& consensus = *consensus_;
    const std::size_t K = crew.members();
    loop_.enlist(K);
    if (!open_) {
      begin(crew, blocks, linked, empty, options.steepness);
    } else {
      crew.run([&](std::size_t k) { consensus.restore(k, weights_); });
    }
    consensus.restored();
    if (open_ && options.measure) {
      crew.run([&](std::size_t k) { consensus.measure(blocks, k, *all_[k], options.steepness); });
      crew.run([&](std::size_t k) { consensus.count_standing(k, all_); });
    }
    open_ = true;
    std::vector<Share> shares(K);
    std::atomic<bool> halt{false};
    crew.run([&](std::size_t k) {
      Weights<T>& weights = *all_[k];
      Lane<T>& lane = loop_.lane(k);
      lane.apart = true;
      lane.loss = lane.price = 0.0;
      consensus.begin_steps(k, weights);
      try {
        visit(blocks, order, options, k, weights, shares[k], exact, [&, asked = 0u]() mutable {
          // The clock costs less than a visit, but not nothing.
          if (k == 0 && (++asked & 15) == 0 && loop_.asked_to_stop()) halt.store(true, std::memory_order_relaxed);
          return halt.load(std::memory_order_relaxed);
        });
      } catch (...) {
        shares[k].failure = std::current_exception();
        halt.store(true, std::memory_order_relaxed);
      }
      shares[k].moved = weights.moved_in_all();
      weights.set_slopes(nullptr);
      lane.apart = false;
    }, [&] {
      if (loop_.asked_to_stop()) halt.store(true, std::memory_order_relaxed);
    });
    crew.run([&](std::size_t k) { shares[k].change = consensus.meet(k, all_); });
    structure_.weights_changed(*loop_.first.ws);
    // What Ω* changed by: in rows of one member what its steps counted, in shared rows what the meeting did.
    const double before = total.gain;
    double loss = 0.0, price = 0.0, moved = 0.0;
    for (std::size_t k = 0; k < K; ++k) {
      total.add(shares[k].result);
      loss += loop_.lane(k).loss, price += loop_.lane(k).price;
      moved += shares[k].moved - shares[k].change.stood + shares[k].change.conjugate;
    }
    blocks.add_to_sums(loss, price);
    total.gain = before + blocks.C() * (loss - price) - moved;
    for (const Share& share : shares) {
      if (share.failure) std::rethrow_exception(share.failure);
    }
  }

 private:
  struct alignas(128) Share {
    PassResult result;
    double moved = 0.0;
    typename Consensus<T>::Change change;
    std::exception_ptr failure;
  };

  void begin(Crew& crew, const Blocks<T>& blocks, bool linked, bool empty, double steepness) {
    Consensus<T>& consensus = *consensus_;
    consensus.start_opening();
    all_.assign(1, &weights_);
    for (std::unique_ptr<Weights<T>>& copy : copies_) {
      if (!copy) copy = std::make_unique<Weights<T>>();
      all_.push_back(copy.get());
    }
    // What a thread allocates lies apart from what others do, so that no two write to one cache line.
    crew.run([&](std::size_t k) {
      loop_.lane(k);
      if (k > 0) all_[k]->become(weights_, empty && weights_.quadratic() && weights_.fixed() == nullptr);
    });
    crew.run([&](std::size_t k) { consensus.recall(blocks, k, *all_[k], empty, linked, steepness); });
    if (empty) return;
    crew.run([&](std::size_t k) { consensus.open(k, all_); });
    consensus.opened();
  }

  // The visits of member k; stop() is asked before each.
  template <class Stop>
  void visit(Blocks<T>& blocks, std::span<const std::uint32_t> order, const PassOptions& options, std::size_t k, Weights<T>& weights,
             Share& share, bool exact, Stop&& stop) {
    Lane<T>& lane = loop_.lane(k);
    structure_.weights_changed(*lane.ws);
    Visits<T> visits(structure_, weights, lane, average_, no_own_);
    const std::size_t first = consensus_->share(k).first, last = consensus_->share(k).last;
    std::vector<std::uint32_t> own;
    for (const std::uint32_t i : order) {
      if (i >= first && i < last) own.push_back(i);
    }
    PassResult& result = share.result;
    const auto stopped = [&](PassResult& r) { return r.interrupted = stop(); };
    if (exact) visits.exact_visits(blocks, own, EveryTurn(own.size()), options, 0.0, result, stopped, nullptr);
    PassOptions cached = options;
    if (exact) cached.recombine = true, cached.tau = 0.0;
    double gained = 0.0;
    for (int sweep = 0; sweep < options.sweeps && !result.interrupted; ++sweep) {
      PassResult one;
      visits.cached_visits(blocks, own, first, last, cached, one, stopped);
      result.cached_gap = 0.0;  // that of the last sweep
      result.add(one);
      gained += one.gain;
      if (one.gain <= kSolved * gained) break;
      cached.min_violation = kBusy * one.cached_gap / blocks.C() / double(std::max<std::int64_t>(one.visits, 1));
      std::reverse(own.begin(), own.end());
    }
  }

  // A share has solved its problem when a sweep gains this part of all its sweeps.
  static constexpr double kSolved = 0.1;
  // Sweeps but the first visit parts whose violation is at least this part of the mean one.
  static constexpr double kBusy = 0.3;

  const Structure<T>& structure_;
  ExampleLoop<T, Lane<T>>& loop_;
  Weights<T>& weights_;
  std::optional<Consensus<T>> consensus_;
  std::vector<std::unique_ptr<Weights<T>>> copies_;  // of all members but the first
  std::vector<Weights<T>*> all_;
  bool open_ = false;
  VisitAverage<T> average_;  // not used in such passes
  OwnWeights no_own_;
};

}  // namespace mm
