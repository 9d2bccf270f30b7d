// The vector code for x86-64 machines with AVX2 and FMA.
#define MM_ISA isa_avx2
#include "vector_code_impl.hpp"

namespace mm {
template <>
const VectorCode<float>& avx2_vector_code<float>() {
  static const auto t = isa_avx2::table<float>("avx2");
  return t;
}
template <>
const VectorCode<double>& avx2_vector_code<double>() {
  static const auto t = isa_avx2::table<double>("avx2");
  return t;
}
}  // namespace mm
