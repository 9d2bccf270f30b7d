// A training or prediction problem as Python holds it: data plus structure, in either precision.
#pragma once

#include <memory>

#include "structure.hpp"

namespace mm {

class Problem {
 public:
  virtual ~Problem() = default;
  virtual std::size_t n_examples() const = 0;

  // A hash of the data, so that a checkpoint knows its own; 0 where nobody can tell.
  virtual std::uint64_t fingerprint() const { return 0; }

  // Built at first use; nullptr where the precision is not offered.
  virtual const Structure<float>* single_precision() = 0;
  virtual const Structure<double>* double_precision() = 0;

  // Narrow an array of 8-byte weights to an engine's own; layouts may be padded differently.
  virtual void narrow(const double* from, float* to) = 0;

  // The other way round.
  virtual void widen(const float* from, double* to) = 0;

  // Give an engine weights that were rebuilt: w and the sums it comes from.
  void copy_weights(const Weights<double>& from, Weights<float>& to) {
    narrow(from.sums(), to.sums());
    narrow(from.data(), to.data());
  }
  void copy_weights(const Weights<double>& from, Weights<double>& to) {
    std::copy(from.sums(), from.sums() + from.size(), to.sums());
    std::copy(from.data(), from.data() + from.size(), to.data());
  }

  template <class T>
  const Structure<T>* structure() {
    if constexpr (sizeof(T) == 4) {
      return single_precision();
    } else {
      return double_precision();
    }
  }
};

}  // namespace mm
