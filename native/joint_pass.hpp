// A pass of the dual engine in which several threads make the steps (joint_steps.hpp).
//
// Each thread has a share of the visits, and makes them as one thread alone does; what it needs of weights, workspace and
// sums is its own. Whoever is done first takes visits from the end of the others' shares, since cores are not equally fast
// and visits not equally long. A share is a contiguous piece of the examples: parts then mostly stay in the caches of one
// core, as do the words of one text, and what lies beside a part in memory was allocated by the same thread. Which thread comes first is a matter of timing, so that such a
// pass cannot be repeated.
#pragma once

#include <optional>

#include "example_loop.hpp"
#include "visits.hpp"

namespace mm {

template <class T>
class JointPass {
 public:
  JointPass(const Structure<T>& structure, ExampleLoop<T, Lane<T>>& loop, Weights<T>& weights) : structure_(structure), loop_(loop), weights_(weights) {}

  // `exact`: with the oracle; else from what is kept. The result is complete when a failure of a visit is thrown, too.
  void run(Blocks<T>& blocks, std::span<const std::uint32_t> order, const PassOptions& options, std::size_t members, bool exact,
           PassResult& total) {
    Crew crew(members);
    const std::size_t K = crew.members();
    if (!joint_ || joint_->threads() != K) {
      joint_.emplace(K);
      copies_.clear();
      copies_.resize(K - 1);
      copied_ = false;
    }
    loop_.enlist(K);
    joint_->start();
    const bool copied = copied_ && ++passes_ % kTogetherAgain != 0;
    // Now, so that nobody waits for a thread that has no memory for it, and no copy is made while others make steps.
    crew.run([&](std::size_t k) {
      loop_.lane(k);
      if (k == 0) return;
      if (!copies_[k - 1]) copies_[k - 1] = std::make_unique<Weights<T>>();
      if (!copied) copies_[k - 1]->become(weights_);
    });
    copied_ = true;
    std::vector<Share> shares(K);
    std::atomic<bool> halt{false};
    const auto ask = [&] {
      if (loop_.asked_to_stop()) halt.store(true, std::memory_order_relaxed);
    };
    double moved = 0.0;  // Ω*
    crew.run([&](std::size_t k) {
      Weights<T>& weights = k == 0 ? weights_ : *copies_[k - 1];
      Seat& seat = joint_->seat(k);
      Lane<T>& lane = loop_.lane(k);
      // However the visits end, the others must be followed: they wait for nobody who does not read.
      try {
        seat.begin();
        weights.sit(seat, k == 0);
        lane.apart = true;
        lane.loss = lane.price = 0.0;
        visit(blocks, order, options, k, weights, shares, exact, [&, asked = 0u]() mutable {
          if (k == 0 && (++asked & 15) == 0) ask();  // the clock costs less than a visit, but not nothing
          return halt.load(std::memory_order_relaxed);
        });
      } catch (...) {
        shares[k].failure = std::current_exception();
        halt.store(true, std::memory_order_relaxed);
      }
      shares[k].ready.store(true, std::memory_order_release);
      seat.leave();
      seat.follow(weights, [&] {
        if (k == 0) ask();
      });
      const double change = weights.stand_up();
      if (k == 0) moved = change;
      lane.apart = false;
    });
    structure_.weights_changed(*loop_.first.ws);
    // The dual by what the threads counted; what each step promised did not know of the others' steps.
    double loss = 0.0, price = 0.0;
    for (std::size_t k = 0; k < K; ++k) {
      total.add(shares[k].result);
      loss += loop_.lane(k).loss, price += loop_.lane(k).price;
    }
    blocks.add_to_sums(loss, price);
    total.gain = blocks.C() * (loss - price) - moved;
    for (const Share& share : shares) {
      if (share.failure) std::rethrow_exception(share.failure);
    }
  }

  // The weights were changed by others than such passes.
  void forget() { copied_ = false; }

 private:
  using Seat = typename JointSteps<T>::Seat;

  struct Share {
    Stack stack;
    std::atomic<bool> ready{false};
    std::vector<std::uint32_t> order;                  // of an exact pass
    const typename Visits<T>::Queue* queue = nullptr;  // of a cached pass
    std::unique_ptr<Visits<T>> visits;                 // which has it
    alignas(128) PassResult result;
    std::exception_ptr failure;
  };

  // The visits of thread k: those of its own share, then what is left of the others'. stop() is asked before each.
  template <class Stop>
  void visit(Blocks<T>& blocks, std::span<const std::uint32_t> order, const PassOptions& options, std::size_t k, Weights<T>& weights,
             std::vector<Share>& shares, bool exact, Stop&& stop) {
    const std::size_t K = shares.size(), n = blocks.n_examples();
    Share& own = shares[k];
    Lane<T>& lane = loop_.lane(k);
    structure_.weights_changed(*lane.ws);
    own.visits = std::make_unique<Visits<T>>(structure_, weights, lane, average_, no_own_);
    const std::size_t first = n * k / K, last = n * (k + 1) / K;
    if (exact) {
      for (const std::uint32_t i : order) {
        if (i >= first && i < last) own.order.push_back(i);
      }
      own.stack.fill(own.order.size());
    } else {
      own.visits->fill_queue(blocks, order, first, last, options);
      own.queue = &own.visits->queue();
      own.stack.fill(own.queue->size());
    }
    own.ready.store(true, std::memory_order_release);
    PassResult& result = own.result;
    const auto stopped = [&](PassResult& r) { return r.interrupted = stop(); };
    for (std::size_t at = 0; at < K && !result.interrupted; ++at) {
      const std::size_t whose = (k + at) % K;
      Share& share = shares[whose];
      while (!share.ready.load(std::memory_order_acquire)) {
        if (!joint_->seat(k).read(weights)) std::this_thread::yield();
      }
      const StackTurns turns(share.stack, at == 0, kTogether, kTogether);
      if (exact) {
        own.visits->exact_visits(blocks, share.order, turns, options, 0.0, result, stopped, nullptr);
      } else if (share.queue != nullptr) {
        own.visits->cached_visits(blocks, *share.queue, turns, options, result, stopped);
      }
    }
  }

  // Visits that are taken together; as many are fetched ahead.
  static constexpr std::size_t kTogether = 16;

  const Structure<T>& structure_;
  ExampleLoop<T, Lane<T>>& loop_;
  Weights<T>& weights_;
  std::optional<JointSteps<T>> joint_;
  std::vector<std::unique_ptr<Weights<T>>> copies_;  // of all threads but the first
  bool copied_ = false;                              // whether they are what the weights are
  std::uint32_t passes_ = 0;
  // Copies are sums of the same steps in different orders. After so many passes they are made anew.
  static constexpr std::uint32_t kTogetherAgain = 64;
  VisitAverage<T> average_;  // not used in such passes
  OwnWeights no_own_;
};

}  // namespace mm
