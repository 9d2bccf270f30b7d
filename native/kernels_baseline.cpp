// Chain kernels for the baseline instruction set of the platform.
#define MM_ISA isa_baseline
#include "kernels_impl.hpp"

namespace mm {
template <>
const ChainKernels<float>& baseline_kernels<float>() {
  static const auto t = isa_baseline::table<float>("baseline");
  return t;
}
template <>
const ChainKernels<double>& baseline_kernels<double>() {
  static const auto t = isa_baseline::table<double>("baseline");
  return t;
}
}  // namespace mm
