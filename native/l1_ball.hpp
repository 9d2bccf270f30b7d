// Projection onto the L1 ball in expected linear time (Duchi, Shalev-Shwartz, Singer and Chandra,
// "Efficient Projections onto the l1-Ball for Learning in High Dimensions", ICML 2008, Figure 2).
//
// The nearest point to v with Σ|w_j| <= radius is w_j = sign(v_j) max(|v_j| - θ, 0); θ is found by
// partitioning the sizes around random pivots, of which the larger or the smaller part goes on.
#pragma once

#include <cmath>

#include "common.hpp"

namespace mm {

// θ for sizes |v_j|, which are reordered; 0 where they lie in the ball already.
template <class T>
double l1_threshold(std::vector<T>& sizes, double radius, std::uint64_t& random) {
  double total = 0.0;
  for (const T size : sizes) total += double(size);
  if (total <= radius) return 0.0;
  // Of [0, lo) it is known that they stay above θ; of [hi, n) that they do not.
  std::size_t lo = 0, hi = sizes.size();
  double above = 0.0;  // Σ of sizes[0, lo)
  while (lo < hi) {
    random = random * 6364136223846793005ull + 1442695040888963407ull;
    const T pivot = sizes[lo + std::size_t((random >> 33) % (hi - lo))];
    // [lo, middle): above the pivot; [middle, equal): equal to it
    std::size_t middle = lo, equal = lo, end = hi;
    double sum = 0.0;
    while (equal < end) {
      const T size = sizes[equal];
      if (size > pivot) {
        sum += double(size);
        std::swap(sizes[middle++], sizes[equal++]);
      } else if (size < pivot) {
        std::swap(sizes[equal], sizes[--end]);
      } else {
        sum += double(size);
        ++equal;
      }
    }
    // Does the pivot stay above θ? Then so do all that are as large.
    if (above + sum - double(equal) * double(pivot) < radius) {
      above += sum;
      lo = equal;
    } else {
      hi = middle;
    }
  }
  // Where rounding lets none of them stay, all go.
  return lo == 0 ? double(*std::max_element(sizes.begin(), sizes.end())) : (above - radius) / double(lo);
}

}  // namespace mm
