// Which weights are not zero, in arrays that may have hundreds of millions of entries.
#pragma once

#include "chunks.hpp"

namespace mm {

template <class T>
std::size_t count_nonzero(const T* x, std::size_t n, int threads) {
  // In T: chunks are short enough for exact counts, and the loop is one of vectors.
  return std::size_t(sum_chunks(n, threads, [&](std::size_t begin, std::size_t end) {
    T sums[16] = {};
    std::size_t j = begin;
    for (; j + 16 <= end; j += 16) {
      for (std::size_t k = 0; k < 16; ++k) sums[k] += x[j + k] != T(0) ? T(1) : T(0);
    }
    for (; j < end; ++j) sums[0] += x[j] != T(0) ? T(1) : T(0);
    return double(std::accumulate(sums, sums + 16, T(0)));
  }));
}

// Of a row.
template <class T>
std::uint32_t count_in_row(const T* row, std::size_t n) {
  std::uint32_t count = 0;
  for (std::size_t l = 0; l < n; ++l) count += row[l] != T(0) ? 1u : 0u;
  return count;
}

// Columns and values of a row, one behind the other; returns where the next row begins.
template <class T, class Column>
std::size_t collect_row(const T* row, std::size_t n, std::size_t at, Column* columns, T* values) {
  for (std::size_t l = 0; l < n; ++l) {
    if (row[l] != T(0)) columns[at] = Column(l), values[at++] = row[l];
  }
  return at;
}

}  // namespace mm
