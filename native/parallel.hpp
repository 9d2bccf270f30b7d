// Split work into contiguous shares, one per thread, so that results do not depend on timing.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

#include "common.hpp"

namespace mm {

// How many shares n items make with this many threads: at least one, at most n.
inline std::size_t n_shares(int threads, std::size_t n) {
  return std::clamp<std::size_t>(std::size_t(std::max(threads, 1)), 1, std::max<std::size_t>(n, 1));
}

// work(share) on one thread each; the calling thread takes share 0. While it waits for the others it calls
// meanwhile() now and then. The first failure is rethrown.
template <class Work, class Meanwhile>
void run_shares(std::size_t shares, Work&& work, Meanwhile&& meanwhile) {
  std::vector<std::exception_ptr> failures(shares);
  std::mutex mutex;
  std::condition_variable finished;
  std::size_t busy = 0;
  const auto guarded = [&](std::size_t share) {
    try {
      work(share);
    } catch (...) {
      failures[share] = std::current_exception();
    }
  };
  const auto other = [&](std::size_t share) {
    guarded(share);
    const std::lock_guard lock(mutex);
    if (--busy == 0) finished.notify_one();
  };
  std::vector<std::thread> others;
  others.reserve(shares);
  std::size_t mine = 1;  // shares from here on that found no thread are done by the caller
  {
    const std::lock_guard lock(mutex);  // none ends before all are counted
    try {
      for (; mine < shares; ++mine) others.emplace_back(other, mine);
    } catch (const std::system_error&) {
    }
    busy = others.size();
  }
  guarded(0);
  for (; mine < shares; ++mine) guarded(mine);
  {
    std::unique_lock lock(mutex);
    while (!finished.wait_for(lock, std::chrono::milliseconds(20), [&] { return busy == 0; })) {
      lock.unlock();
      try {
        meanwhile();
      } catch (...) {
        failures[0] = failures[0] ? failures[0] : std::current_exception();
      }
      lock.lock();
    }
  }
  for (std::thread& thread : others) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

template <class Work>
void run_shares(std::size_t shares, Work&& work) {
  run_shares(shares, work, [] {});
}

// Threads for many short tasks, one after the other, with little between them: the threads stay, and wait for the next
// task without going to sleep.
class Crew {
 public:
  // So many members, the calling thread among them; fewer where no more threads can be had.
  explicit Crew(std::size_t members) {
    threads_.reserve(members);
    try {
      for (std::size_t k = 1; k < members; ++k) threads_.emplace_back([this, k] { serve(k); });
    } catch (const std::system_error&) {
    }
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    task_ = nullptr;
    round_.fetch_add(1, std::memory_order_release);
    for (std::thread& thread : threads_) thread.join();
  }

  std::size_t members() const { return threads_.size() + 1; }

  // task(member) by all members at once. The first failure is rethrown when all have come to their end. The calling thread
  // calls watch() again and again while it waits for the others.
  template <class Task>
  void run(Task&& task) {
    run(task, [] {});
  }
  template <class Task, class Watch>
  void run(Task&& task, Watch&& watch) {
    failures_.assign(members(), nullptr);
    const std::function<void(std::size_t)> call = [&](std::size_t k) {
      try {
        task(k);
      } catch (...) {
        failures_[k] = std::current_exception();
      }
    };
    task_ = &call;
    busy_.store(threads_.size(), std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);  // what was written before is seen by those who see this
    call(0);
    wait([&] { return watch(), busy_.load(std::memory_order_acquire) == 0; });
    for (const std::exception_ptr& failure : failures_) {
      if (failure) std::rethrow_exception(failure);
    }
  }

 private:
  void serve(std::size_t k) {
    for (std::uint64_t seen = 0;; ++seen) {
      wait([&] { return round_.load(std::memory_order_acquire) > seen; });
      if (task_ == nullptr) return;
      (*task_)(k);
      busy_.fetch_sub(1, std::memory_order_release);
    }
  }

  template <class Ready>
  static void wait(Ready&& ready) {
    for (int spun = 0; !ready(); ++spun) {
      if (spun > kSpins) std::this_thread::yield();  // there may be fewer cores than threads
    }
  }
  static constexpr int kSpins = 10000;

  std::vector<std::thread> threads_;
  std::vector<std::exception_ptr> failures_;
  const std::function<void(std::size_t)>* task_ = nullptr;
  alignas(128) std::atomic<std::uint64_t> round_{0};  // tasks begun
  alignas(128) std::atomic<std::size_t> busy_{0};     // threads that have not ended theirs
};

// Seconds that a cache line takes from one core to another: two threads hand one back and forth. For benchmarks, because
// on virtual machines it depends on where their cores are just now.
inline double core_latency(int rounds) {
  alignas(128) std::atomic<int> turn{0};
  const auto play = [&](int first) {
    for (int k = 0; k < rounds; ++k) {
      for (int spun = 0; turn.load(std::memory_order_acquire) != 2 * k + first; ++spun) {
        if (spun > 10000) std::this_thread::yield();
      }
      turn.store(2 * k + first + 1, std::memory_order_release);
    }
  };
  const auto begin = std::chrono::steady_clock::now();
  std::thread other(play, 1);
  play(0);
  other.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / (2.0 * std::max(rounds, 1));
}

}  // namespace mm
