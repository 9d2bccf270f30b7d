// Chooses the chain kernels once, by what the processor can do.
#include "kernels.hpp"

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

void select_kernels(const char* name) {
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
const ChainKernels<T>& kernels() {
#if defined(__x86_64__)
  if (use_avx2) return avx2_kernels<T>();
#endif
  return baseline_kernels<T>();
}
template const ChainKernels<float>& kernels<float>();
template const ChainKernels<double>& kernels<double>();

}  // namespace mm
