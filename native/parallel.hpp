// Split work into contiguous shares, one per thread, so that results do not depend on timing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
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

}  // namespace mm
