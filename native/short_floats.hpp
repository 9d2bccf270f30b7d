// Numbers in two bytes, for what shares and coordinator tell each other of changes.
//
// A sign, 5 bits of exponent and 10 of mantissa, as in IEEE's half precision, but counted down from the largest number
// of a message (`base`): 31 powers of two are told to within 2^-11 of each number, and what is smaller is told as zero.
// Who tells subtracts what was told from what is to be told, so that nothing is lost; it is in later messages. All of
// it is arithmetic of integers without branches, which compilers turn into vectors.
#pragma once

#include <bit>
#include <span>

#include "common.hpp"

namespace mm {

struct ShortFloats {
  std::int32_t base = 0;  // exponents of floats, as they are stored, begin here

  // For the numbers of a message, which are finite.
  static ShortFloats up_to(std::span<const float> numbers) {
    std::uint32_t largest = 0;  // floats are in the order of their bits
    for (const float x : numbers) largest = std::max(largest, std::bit_cast<std::uint32_t>(x) & 0x7fffffffu);
    const auto exponent = std::int32_t(largest >> 23);
    if (exponent > kMaxBase + kTop) throw BadInput("a change that is told is not finite. Features of very large size? Scale them");
    return {exponent > kTop ? exponent - kTop : 0};
  }
  std::uint16_t code(float x) const {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x), size = bits & 0x7fffffffu;
    const std::int32_t rounded = std::int32_t((size + 0xfffu + ((size >> 13) & 1u)) >> 13) - (base << 10);
    return std::uint16_t(rounded < kLeast ? 0u : std::uint32_t(rounded) | ((bits >> 16) & 0x8000u));
  }
  float value(std::uint16_t code) const {
    const std::uint32_t size = code & 0x7fffu;
    const std::uint32_t bits = ((size + std::uint32_t(base << 10)) << 13) | (std::uint32_t(code & 0x8000u) << 16);
    return std::bit_cast<float>(size == 0 ? 0u : bits);
  }

  static constexpr std::int32_t kMaxBase = 224;

 private:
  static constexpr std::int32_t kTop = 30;      // the exponent of the largest; rounding may make it 31
  static constexpr std::int32_t kLeast = 1024;  // codes of exponent 0 are zero
};

}  // namespace mm
