// Hashes of arrays and numbers, folded into one: so that a checkpoint knows its own data.
#pragma once

#include "vocabulary.hpp"

namespace mm {

class DataHash {
 public:
  explicit DataHash(std::uint64_t seed) : hash_(seed) {}

  void mix(const void* data, std::size_t bytes) {
    const std::uint64_t own = data == nullptr ? 0 : hash_bytes({static_cast<const char*>(data), bytes});
    hash_ = detail::fold_multiply(hash_ ^ 0x9e3779b97f4a7c15u, own ^ bytes ^ 0xc2b2ae3d27d4eb4fu);
  }
  template <class Number>
  void mix_number(Number value) {
    mix(&value, sizeof value);
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_;
};

}  // namespace mm
