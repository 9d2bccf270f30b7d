// Split work into contiguous shares, one per thread, so that results do not depend on timing.
#pragma once

#include <exception>
#include <system_error>
#include <thread>

#include "common.hpp"

namespace mm {

// How many shares n items make with this many threads: at least one, at most n.
inline std::size_t n_shares(int threads, std::size_t n) {
  return std::clamp<std::size_t>(std::size_t(std::max(threads, 1)), 1, std::max<std::size_t>(n, 1));
}

// work(share) on one thread each; the calling thread takes share 0. The first failure is rethrown.
template <class Work>
void run_shares(std::size_t shares, Work&& work) {
  std::vector<std::exception_ptr> failures(shares);
  const auto guarded = [&](std::size_t share) {
    try {
      work(share);
    } catch (...) {
      failures[share] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  others.reserve(shares);
  std::size_t mine = 1;  // shares from here on that found no thread are done by the caller
  try {
    for (; mine < shares; ++mine) others.emplace_back(guarded, mine);
  } catch (const std::system_error&) {
  }
  guarded(0);
  for (; mine < shares; ++mine) guarded(mine);
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace mm
