// Chain kernels for x86-64 machines with AVX2 and FMA.
#define MM_ISA isa_avx2
#include "kernels_impl.hpp"

namespace mm {
template <>
const ChainKernels<float>& avx2_kernels<float>() {
  static const auto t = isa_avx2::table<float>("avx2");
  return t;
}
template <>
const ChainKernels<double>& avx2_kernels<double>() {
  static const auto t = isa_avx2::table<double>("avx2");
  return t;
}
}  // namespace mm
