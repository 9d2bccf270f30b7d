// A training or prediction problem as Python holds it: data plus structure, in either precision.
#pragma once

#include <memory>

#include "structure.hpp"

namespace mm {

class OraclePool;

class Problem {
 public:
  virtual ~Problem() = default;
  virtual std::size_t n_examples() const = 0;

  // A hash of the data, so that a checkpoint knows its own; 0 where nobody can tell.
  virtual std::uint64_t data_hash() const { return 0; }

  // What the driver of training asks: is an oracle call so slow (a user's Python code) that cached
  // passes cost next to nothing beside it, does the oracle always find the maximum, is there a kernel
  // in the place of weights of features, and are 4-byte weights offered?
  virtual bool slow_oracle() const { return false; }
  virtual bool exact_oracle() const { return true; }
  virtual bool has_kernel() const { return false; }
  virtual bool offers_single() const { return true; }

  // Other processes that answer for the oracle (oracle_pool.hpp), where there may be some.
  virtual OraclePool* oracle_pool() { return nullptr; }

  // Does an engine keep windows of the examples? It gives back what the structure keeps for them, and so
  // has the problem to itself.
  bool in_windows = false;

  // Built at first use; nullptr where the precision is not offered.
  virtual const Structure<float>* single_precision() = 0;
  virtual const Structure<double>* double_precision() = 0;

  // Narrow an array of 8-byte weights to an engine's own. Rows may be padded differently.
  void narrow(const double* from, float* to, int threads = 1) { repad(from, to, threads); }

  // The other way round.
  void widen(const float* from, double* to, int threads = 1) { repad(from, to, threads); }

  // Give an engine weights that were rebuilt: w and the sums it comes from, which are one array with some links.
  template <class T>
  void copy_weights(const Weights<double>& from, Weights<T>& to, int threads) {
    const auto copy = [&](const double* source, T* target) {
      if constexpr (sizeof(T) == 4) {
        narrow(source, target, threads);
      } else {
        std::copy(source, source + from.size(), target);
      }
    };
    copy(from.data(), to.data());
    if (from.sums() != from.data() || to.sums() != to.data()) copy(from.sums(), to.sums());
  }

  template <class T>
  const Structure<T>* structure() {
    if constexpr (sizeof(T) == 4) {
      return single_precision();
    } else {
      return double_precision();
    }
  }

 private:
  // Rows of weights that belong together are padded to whole vectors, of which 8-byte weights need
  // no more than 4-byte ones: what both have are the weights and maybe some padding, which is zero.
  template <class From, class To>
  void repad(const From* from, To* to, int threads) {
    const Structure<From>* source = structure<From>();
    const Structure<To>* target = structure<To>();
    if (source == nullptr || target == nullptr) return;  // one precision only
    const std::size_t old = source->row_size(), fresh = target->row_size(), width = std::min(old, fresh);
    const std::size_t rows = source->n_weights() / old, shares = n_shares(threads, rows * width / (kChunk * kChunksOfThread));
    run_shares(shares, [&](std::size_t share) {
      for (std::size_t row = rows * share / shares; row < rows * (share + 1) / shares; ++row) {
        for (std::size_t k = 0; k < width; ++k) to[row * fresh + k] = static_cast<To>(from[row * old + k]);
      }
    });
  }
};

}  // namespace mm
