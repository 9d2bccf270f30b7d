// The primal side of the dual engine: u = C * sum of alpha * Δf, and w = link(u).
//
// A regulariser owns the link. For L2, min ½|w|² + C Σ ξ, the link is the identity and w and u
// are one array; other regularisers keep u beside w and map each touched coordinate.
#pragma once

#include "common.hpp"

namespace mm {

template <class T>
class Weights {
 public:
  explicit Weights(std::size_t n) : w_(n) {}

  T* data() { return w_.data(); }
  const T* data() const { return w_.data(); }
  std::size_t size() const { return w_.size(); }

  void add(std::size_t j, T amount) { w_[j] += amount; }
  void clear() { std::fill(w_.data(), w_.data() + w_.size(), T(0)); }

  // Ω(w), and Ω*(u) of the dual: equal for L2.
  double penalty() const {
    double sum = 0.0;
    const T* w = w_.data();
    constexpr std::size_t kChunk = 4096;
    for (std::size_t at = 0; at < w_.size(); at += kChunk) {
      const std::size_t end = std::min(at + kChunk, w_.size());
      double part[4] = {0, 0, 0, 0};
      std::size_t j = at;
      for (; j + 4 <= end; j += 4) {
        for (int k = 0; k < 4; ++k) part[k] += double(w[j + k]) * double(w[j + k]);
      }
      for (; j < end; ++j) part[0] += double(w[j]) * double(w[j]);
      sum += (part[0] + part[1]) + (part[2] + part[3]);
    }
    return 0.5 * sum;
  }

 private:
  AlignedArray<T> w_;
};

}  // namespace mm
