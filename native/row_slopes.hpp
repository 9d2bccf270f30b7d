// How the weights of one of several threads follow u, row by row, and which of them its steps moved (consensus.hpp).
//
// Each row of weights has a code for its slope: how far w moves for each unit of u. Two codes leave that to the link: 0, and
// kUntouched, of rows in which no step was made; the first step there makes it 0.
//
// A row falls into chunks of a cache line or more. With many labels a feature moves the weights of a few of them, and who
// goes through the rows later skips chunks without a mark.
#pragma once

#include <array>
#include <bit>
#include <cmath>

#include "common.hpp"

namespace mm {

template <class T>
class RowSlopes {
 public:
  static constexpr std::uint32_t kUntouched = 255;
  static constexpr std::size_t kMostChunks = 24;

  RowSlopes() = default;
  RowSlopes(std::size_t n_rows, std::size_t row) : row_(row), shift_(shift_for(row)), entries_(n_rows) {}

  std::size_t row() const { return row_; }
  std::size_t chunk() const { return std::size_t{1} << shift_; }
  std::size_t chunks() const { return (row_ + chunk() - 1) >> shift_; }

  std::uint32_t code(std::size_t row) const { return entries_[row] & kCode; }
  // A bit for each chunk, from the lowest one on.
  std::uint32_t marks(std::size_t row) const { return entries_[row] >> kCodeBits; }
  void set_code(std::size_t row, std::uint32_t code) { entries_[row] = (entries_[row] & ~kCode) | code; }
  void mark(std::size_t row, std::uint32_t marks) { entries_[row] |= marks << kCodeBits; }
  void clear(std::size_t row, std::uint32_t code) { entries_[row] = code; }
  // Rows of code 0 that had been untouched, in the order of their first steps.
  std::vector<std::uint32_t>& touched() { return touched_; }
  const std::vector<std::uint32_t>& touched() const { return touched_; }

  // A step moves columns of a row: `bits` of these. Returns the slope's code.
  std::uint32_t bit_of(std::size_t column) const { return std::uint32_t{1} << (kCodeBits + (column >> shift_)); }
  std::uint32_t move(std::size_t row, std::uint32_t bits) {
    std::uint32_t& entry = entries_[row];
    if ((entry & kCode) == kUntouched) [[unlikely]] {
      touched_.push_back(std::uint32_t(row));
      entry &= ~kCode;
    }
    if ((entry & bits) != bits) entry |= bits;
    return entry & kCode;
  }
  void fetch(std::size_t row) const { prefetch(entries_.data() + row); }

  static T slope_of(std::uint32_t code) { return table_[code]; }
  T slope(std::size_t row) const { return slope_of(code(row)); }
  // The code whose slope is nearest to 1/ρ.
  static std::uint32_t code_of(double rho) {
    return std::uint32_t(std::clamp(std::lround(1.0 + kOfHalf * std::log2(rho)), 1l, long(kUntouched) - 1));
  }

 private:
  static constexpr std::uint32_t kCodeBits = 8, kCode = (1u << kCodeBits) - 1;
  static constexpr double kOfHalf = 8.0;  // so many slopes from one to half of it
  static std::uint32_t shift_for(std::size_t row) {
    std::uint32_t shift = std::bit_width(64 / sizeof(T)) - 1;
    while (((row - 1) >> shift) >= kMostChunks) ++shift;
    return shift;
  }
  static std::array<T, 256> table() {
    std::array<T, 256> all;
    for (std::size_t c = 0; c < all.size(); ++c) all[c] = T(c == 0 ? 1.0 : std::exp2((1.0 - double(c)) / kOfHalf));
    return all;
  }
  inline static const std::array<T, 256> table_ = table();

  std::size_t row_ = 1;
  std::uint32_t shift_ = 0;
  std::vector<std::uint32_t> entries_;  // of each row: code, and above it the marks
  std::vector<std::uint32_t> touched_;
};

}  // namespace mm
