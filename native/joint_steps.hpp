// Several threads that make steps at the same time.
//
// Each thread steps on examples of its own, and all of them on one u. A cache line that two cores write in turn goes back
// and forth between them, and that takes longer than a step: rows of transitions, biases and frequent words are moved by
// nearly every step. So every thread has a copy of u and w. A step adds to the copy of its own thread and is written to
// that thread's log (step_log.hpp); some visits later every other thread reads it there and makes the same additions to
// its copy. In the end all copies are the same sums, up to the order of additions. Nothing is lost and nothing needs an
// atomic operation but the marks of the logs. What a step costs beside that is little: most of a visit is reading, and of
// that nobody does anything twice.
//
// A thread does not know the last steps of the others, about six visits of each. Where steps are large and examples share
// many rows, these undo a part of each other, and some more passes are needed.
//
// *The dual.* D = C Σ α l - Ω*(u). Σ α l is summed by each thread over its own steps. By how much Ω* changed is counted by
// the first thread, whose copy all steps come to one after the other (Weights::sit).
#pragma once

#include <memory>
#include <span>
#include <thread>

#include "step_log.hpp"

namespace mm {

template <class T>
class JointSteps {
 public:
  explicit JointSteps(std::size_t threads) {
    for (std::size_t k = 0; k < threads; ++k) logs_.push_back(std::make_unique<StepLog<T>>(threads, k));
    for (std::size_t k = 0; k < threads; ++k) seats_.push_back(std::make_unique<Seat>(*this, k));
  }
  std::size_t threads() const { return seats_.size(); }

  // Can the steps on such weights be written?
  static bool fits(std::size_t n_weights, std::size_t row) { return n_weights <= StepLog<T>::kMostWeights && row <= StepLog<T>::kLongestRow; }

  // Before a pass.
  void start() { left_.store(0, std::memory_order_relaxed); }

  // What one thread has: its log, and its place in those of the others. `weights` are its own everywhere.
  class alignas(128) Seat {
   public:
    Seat(JointSteps& joint, std::size_t k) : joint_(joint), k_(k), log_(*joint.logs_[k]) {}

    void begin() { phase_ = 0; }

    // Tell the others of an addition. Where a log is full they must read first; meanwhile this thread reads theirs.
    template <class Weights>
    void tell(Weights& weights, std::size_t j, T amount) {
      if (log_.full()) [[unlikely]] wait(weights);
      log_.one(std::uint32_t(j), amount);
    }
    // Some columns of some rows.
    template <int N, class Weights>
    void tell_rows(Weights& weights, std::span<const std::uint32_t> rows, std::size_t stride, const std::uint32_t* column, const T* amount) {
      for (std::size_t begin = 0; begin < rows.size(); begin += StepLog<T>::kMostRows) {
        if (log_.full()) [[unlikely]] wait(weights);
        log_.template rows<N>(rows.data() + begin, std::min(StepLog<T>::kMostRows, rows.size() - begin), stride, column, amount);
      }
    }

    // Between two visits: one step of the exchange with the others, whose cache lines come while visits are made; true if
    // weights of this thread changed.
    template <class Weights>
    bool tick(Weights& weights) {
      const int phase = phase_;
      phase_ = phase + 1 == kPhases ? 0 : phase + 1;
      if (phase == 0) {
        log_.publish();
        for_others([&](StepLog<T>& log) { log.ask(); });
      } else if (phase == 1) {
        for_others([&](StepLog<T>& log) { log.see(k_); });
      } else if (phase == 2) {
        return take(weights);
      }
      return false;
    }
    // All of it at once.
    template <class Weights>
    bool read(Weights& weights) {
      log_.publish();
      for_others([&](StepLog<T>& log) { log.see(k_); });
      return take(weights);
    }

    // This thread makes no more steps.
    void leave() {
      log_.publish();
      joint_.left_.fetch_add(1, std::memory_order_release);
    }
    // Follow the others until none makes steps any more.
    template <class Weights, class Meanwhile>
    void follow(Weights& weights, Meanwhile&& meanwhile) {
      for (std::uint32_t spun = 0; joint_.left_.load(std::memory_order_acquire) < joint_.threads(); ++spun) {
        read(weights);
        meanwhile();
        if (spun > 1000) std::this_thread::yield();
      }
      read(weights);
    }

   private:
    template <class Weights>
    bool take(Weights& weights) {
      bool some = false;
      const auto one = [&](std::size_t j, T amount) { weights.follow_one(j, amount); };
      const auto rows = [&](const std::uint32_t* row, std::size_t n, std::size_t stride, std::size_t columns, const std::uint32_t* column, const T* amount) {
        const std::span<const std::uint32_t> all(row, n);
        switch (columns) {
          case 1: return weights.template follow_rows<1>(all, stride, column, amount);
          case 2: return weights.template follow_rows<2>(all, stride, column, amount);
          case 3: return weights.template follow_rows<3>(all, stride, column, amount);
          default: return weights.template follow_rows<4>(all, stride, column, amount);
        }
      };
      // Two labels of a long row are on two cache lines.
      const auto fetch = [&](const std::uint32_t* row, std::size_t n, std::size_t stride, std::size_t columns, const std::uint32_t* column, const T*) {
        for (std::size_t r = 0; r < n; ++r) weights.fetch(row[r] * stride + column[0]);
        if (columns == 1 || stride * sizeof(T) <= kCacheLine) return;
        for (std::size_t r = 0; r < n; ++r) weights.fetch(row[r] * stride + column[1]);
      };
      for_others([&](StepLog<T>& log) { some = log.read(k_, fetch, one, rows) || some; });
      return some;
    }
    template <class F>
    void for_others(F&& f) {
      for (std::size_t other = 0; other < joint_.logs_.size(); ++other) {
        if (other != k_) f(*joint_.logs_[other]);
      }
    }
    template <class Weights>
    [[gnu::noinline]] void wait(Weights& weights) {
      while (log_.full()) {
        if (!read(weights)) std::this_thread::yield();
      }
    }

    JointSteps& joint_;
    std::size_t k_;
    StepLog<T>& log_;
    // Steps of an exchange, of which those behind the third are empty. With more of them less is sent back and forth, and
    // the threads are further behind each other.
    static constexpr int kPhases = 4;
    static constexpr std::size_t kCacheLine = 64;
    int phase_ = 0;
  };

  Seat& seat(std::size_t k) { return *seats_[k]; }

 private:
  std::vector<std::unique_ptr<StepLog<T>>> logs_;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::atomic<std::size_t> left_{0};
};

}  // namespace mm
