// Loops over long arrays that threads share, with results that do not depend on how many threads there are.
//
// An array is cut into chunks of a fixed size. What is summed is summed within each chunk, and the sums of the
// chunks are then added in their order. A thread takes a contiguous run of chunks. Arrays of a few chunks are left to
// the calling thread: to start another takes as long as to read some hundred kilobytes.
#pragma once

#include <numeric>

#include "parallel.hpp"

namespace mm {

inline constexpr std::size_t kChunk = std::size_t{1} << 15;  // entries
inline constexpr std::size_t kChunksOfThread = 8;            // at least, for a thread to be worth its start

// f(chunk, begin, end) for all chunks of n entries.
template <class F>
void for_chunks(std::size_t n, int threads, F&& f) {
  const std::size_t chunks = (n + kChunk - 1) / kChunk, shares = n_shares(threads, chunks / kChunksOfThread);
  run_shares(shares, [&](std::size_t share) {
    for (std::size_t c = chunks * share / shares; c < chunks * (share + 1) / shares; ++c) {
      f(c, c * kChunk, std::min(n, (c + 1) * kChunk));
    }
  });
}

// The sum over all chunks of what f(begin, end) returns.
template <class F>
double sum_chunks(std::size_t n, int threads, F&& f) {
  std::vector<double> sums((n + kChunk - 1) / kChunk);
  for_chunks(n, threads, [&](std::size_t c, std::size_t begin, std::size_t end) { sums[c] = f(begin, end); });
  double sum = 0.0;
  for (const double part : sums) sum += part;
  return sum;
}

// The sum over all entries of what f(j) returns. Eight sums at a time, so that no addition waits for the one before.
template <class F>
double sum_each(std::size_t n, int threads, F&& f) {
  return sum_chunks(n, threads, [&](std::size_t begin, std::size_t end) {
    double parts[8] = {};
    std::size_t j = begin;
    for (; j + 8 <= end; j += 8) {
      for (std::size_t k = 0; k < 8; ++k) parts[k] += f(j + k);
    }
    for (; j < end; ++j) parts[0] += f(j);
    return std::accumulate(parts, parts + 8, 0.0);
  });
}

}  // namespace mm
