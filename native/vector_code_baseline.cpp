// The vector code for the baseline instruction set of the platform.
#define MM_ISA isa_baseline
#include "vector_code_impl.hpp"

namespace mm {
template <>
const VectorCode<float>& baseline_vector_code<float>() {
  static const auto t = isa_baseline::table<float>("baseline");
  return t;
}
template <>
const VectorCode<double>& baseline_vector_code<double>() {
  static const auto t = isa_baseline::table<double>("baseline");
  return t;
}
}  // namespace mm
