// Random numbers for orders that native code chooses itself, from a seed that the schedule gives.
//
// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the same numbers on every machine, and no state but
// one word.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace mm {

class RandomBits {
 public:
  explicit RandomBits(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Below n, which is less than 2^32; what is not quite uniform about it is below 2^-32.
  std::size_t below(std::size_t n) { return std::size_t(((next() >> 32) * std::uint64_t(n)) >> 32); }

  template <class X>
  void shuffle(std::span<X> items) {
    for (std::size_t k = items.size(); k > 1; --k) std::swap(items[k - 1], items[below(k)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace mm
