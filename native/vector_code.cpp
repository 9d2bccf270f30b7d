// Chooses the vector code once, by what the processor can do.
#include "vector_code.hpp"

#include <atomic>
#include <cstring>

#include "common.hpp"

namespace mm {
namespace {

#if defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
bool has_avx2() { return false; }
#endif

std::atomic<bool> use_avx2{has_avx2()};

}  // namespace

void select_vector_code(const char* name) {
  if (std::strcmp(name, "auto") == 0) {
    use_avx2 = has_avx2();
  } else if (std::strcmp(name, "baseline") == 0) {
    use_avx2 = false;
  } else if (std::strcmp(name, "avx2") == 0) {
    if (!has_avx2()) throw BadInput("this machine has no AVX2; choose \"auto\" or \"baseline\"");
    use_avx2 = true;
  } else {
    throw BadInput(std::string("instruction set must be \"auto\", \"baseline\" or \"avx2\", got \"") +
                   name + "\"");
  }
}

template <class T>
const VectorCode<T>& vector_code() {
#if defined(__x86_64__)
  if (use_avx2) return avx2_vector_code<T>();
#endif
  return baseline_vector_code<T>();
}
template const VectorCode<float>& vector_code<float>();
template const VectorCode<double>& vector_code<double>();

}  // namespace mm
