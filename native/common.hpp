// Shared small things: errors, aligned memory, prefetch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace mm {

// An input that cannot be used; becomes a Python ValueError.
struct BadInput : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// No value of a feature, weight of an example or token, or cost of an error is farther from zero.
// Products of two of them, summed over millions of tokens, then stay within a 4-byte float (3.4e38).
inline constexpr double kMaxValue = 1e12;

// A kernel that is not positive semidefinite, where it shows.
struct IndefiniteKernel : BadInput {
  IndefiniteKernel()
      : BadInput("the kernel is not positive semidefinite: a step of training met negative curvature, so that there is "
                 "no optimum. Expected a symmetric kernel whose matrices have no negative eigenvalues") {}
};

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline void prefetch(const void* address) { __builtin_prefetch(address); }
// To write there: the line is then not fetched a second time to own it.
inline void prefetch_to_write(const void* address) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

// Prefetch every cache line of [begin, begin + bytes).
inline void prefetch_range(const void* begin, std::size_t bytes) {
  const char* p = static_cast<const char*>(begin);
  for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(p + at);
  if (bytes > 0) __builtin_prefetch(p + bytes - 1);
}

// A zero-filled array aligned to a cache line. Large ones ask for huge pages: the weights are read
// at random, and a miss in the page table costs as much as a miss in the cache. They are mapped, so that
// the system clears each page when it is first used, and nobody clears it a second time.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(std::size_t n) { reset(n); }
  AlignedArray(const AlignedArray&) = delete;
  AlignedArray& operator=(const AlignedArray&) = delete;
  AlignedArray(AlignedArray&& other) noexcept { swap(other); }
  AlignedArray& operator=(AlignedArray&& other) noexcept {
    swap(other);
    return *this;
  }
  ~AlignedArray() { release(); }

  void reset(std::size_t n) {
    release();
    if (n == 0) return;
    if (n > (std::size_t{1} << 62) / sizeof(T)) throw std::bad_alloc();
    const std::size_t bytes = n * sizeof(T);
    if (!map(bytes)) {
      const std::size_t whole = (bytes + 63) / 64 * 64;
      data_ = static_cast<T*>(std::aligned_alloc(64, whole));
      if (data_ == nullptr) throw std::bad_alloc();
      std::memset(data_, 0, whole);
    }
    size_ = n;
  }
  void swap(AlignedArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
#if defined(__linux__) && defined(MADV_HUGEPAGE) && !defined(__SANITIZE_ADDRESS__)  // which does not watch what is mapped
  // Whole huge pages of their own; false for what is smaller than one.
  bool map(std::size_t bytes) {
    constexpr std::size_t kHuge = std::size_t{1} << 21;
    if (bytes < kHuge) return false;
    bytes = (bytes + kHuge - 1) / kHuge * kHuge;
    // One page more than is needed: what lies before the first boundary and behind the last is given back.
    void* found = mmap(nullptr, bytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) throw std::bad_alloc();
    char* const begin = static_cast<char*>(found);
    const std::size_t before = (kHuge - reinterpret_cast<std::uintptr_t>(begin) % kHuge) % kHuge;
    if (before > 0) munmap(begin, before);
    munmap(begin + before + bytes, kHuge - before);
    data_ = reinterpret_cast<T*>(begin + before);
    mapped_ = bytes;
    madvise(data_, bytes, MADV_HUGEPAGE);
    return true;
  }
  void release() {
    if (mapped_ > 0) munmap(data_, mapped_); else std::free(data_);
    data_ = nullptr;
    size_ = mapped_ = 0;
  }
#else
  bool map(std::size_t) { return false; }
  void release() {
    std::free(data_);
    data_ = nullptr;
    size_ = 0;
  }
#endif

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_ = 0;  // bytes, where it is mapped
};

}  // namespace mm
