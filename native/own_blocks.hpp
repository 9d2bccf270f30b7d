// Which weights one of several threads adds to when u is made anew from all multipliers.
//
// All threads go through all planes, and each adds to blocks of weights of its own only. So every weight is a sum of the
// same numbers in the same order for any number of threads, bit for bit, and no addition needs a lock. Blocks are small
// and dealt out in turn: the weights of frequent features, which most additions go to, lie together. (Memory that was
// never written is cleared by the system when it is first touched, which takes longer than the additions where labels are
// many; the threads share that, too.)
#pragma once

#include <bit>
#include <cstddef>

namespace mm {

template <class T>
struct OwnBlocks {
  T* sums = nullptr;
  std::size_t member = 0, mask = 0;

  // How many threads of so many can take part.
  static std::size_t members(std::size_t threads) { return std::bit_floor(threads); }
  void add(std::size_t j, T amount) const {
    if (((j >> kBits) & mask) == member) sums[j] += amount;
  }
  static constexpr int kBits = 12;  // 4,096 weights in a block
};

}  // namespace mm
