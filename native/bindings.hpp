// Small helpers that the binding files share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "buffer.hpp"
#include "common.hpp"

namespace mm {

namespace nb = nanobind;

template <class T, std::size_t Dim = 1>
using Array = nb::ndarray<const T, nb::ndim<Dim>, nb::c_contig, nb::device::cpu>;

// An array that is written to.
template <class T>
using Target = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Hand a vector over to NumPy without copying it.
template <class T>
nb::object to_numpy(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

template <class T>
nb::object to_numpy(Buffer<T>& buffer) {
  const std::size_t n = buffer.size();
  T* data = buffer.release();
  nb::capsule owner;
  try {
    owner = nb::capsule(data, [](void* p) noexcept { std::free(p); });
  } catch (...) {
    std::free(data);
    throw;
  }
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {n}, owner));
}

inline void require(bool condition, const std::string& message) {
  if (!condition) throw BadInput(message);
}
// Without making a string of it: some of these are asked for every entry of the data.
inline void require(bool condition, const char* message) {
  if (!condition) throw BadInput(message);
}

// Gives Python's global lock away while `work`, a number of simple operations, is done; but not for some microseconds:
// another thread takes the lock at once, and getting it back takes longer than the work. Threads that tag single
// sentences would then be slower together than one of them alone.
class ReleaseIfLong {
 public:
  static constexpr std::size_t kLong = std::size_t{1} << 20;
  static constexpr std::size_t kExpansion = std::size_t{1} << 13;  // the features of a token, from text

  explicit ReleaseIfLong(std::size_t work) {
    if (work >= kLong) release_.emplace();
  }
  // Of decoding: all pairs of labels for each token, and the weights of its features.
  static std::size_t decoding(std::size_t tokens, std::size_t labels) { return tokens * labels * (labels + 32); }

 private:
  std::optional<nb::gil_scoped_release> release_;
};

}  // namespace mm
