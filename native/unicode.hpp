// Characters of UTF-8 text: reading and writing them, what kind they are, their lower case.
//
// The tables are part of the source (native/unicode_tables.hpp names the version of Unicode), not
// the system's or Python's: a model gives the same features wherever it runs. Nothing here depends
// on a locale, and no input reads out of bounds.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "unicode_tables.hpp"

namespace mm {

inline constexpr std::string_view kUnicodeVersion = detail::kUnicodeVersion;

// Every code point is of one class. tools/make_unicode_tables.py counts them in the same order.
enum class CharClass : std::uint8_t {
  other,         // marks, controls, numbers that are no decimal digits, what is not assigned
  upper,         // Lu, Lt
  lower,         // Ll
  other_letter,  // Lm, Lo: letters of scripts without case, modifiers
  digit,         // Nd
  punctuation,   // P*, S*: symbols too
  space,         // Z* and the white space of ASCII
};

namespace detail {

// The letters of most alphabets are below this. They are looked up, all others are searched for.
// What is below it takes at most two bytes of UTF-8, and its lower case fits into 16 bits.
inline constexpr std::uint32_t kLow = 0x800;

constexpr CharClass class_in_run(std::uint32_t run, std::uint32_t cp) {
  const std::uint32_t kind = run & 15;
  if (kind < 7) return static_cast<CharClass>(kind);
  return (cp & 1) == kind - 7 ? CharClass::upper : CharClass::lower;
}

constexpr std::uint32_t lower_in_run(const LowerRun& run, std::uint32_t cp) {
  if (cp > run.last || (cp - run.first) % run.stride != 0) return cp;
  return cp + static_cast<std::uint32_t>(run.delta);
}

// Made of the runs by the compiler, so that they cannot disagree with them.
inline constexpr auto kLowClass = [] {
  std::array<CharClass, kLow> table{};
  std::size_t run = 0;
  for (std::uint32_t cp = 0; cp < kLow; ++cp) {
    while (run + 1 < std::size(kClassRuns) && kClassRuns[run + 1] >> 4 <= cp) ++run;
    table[cp] = class_in_run(kClassRuns[run], cp);
  }
  return table;
}();

inline constexpr auto kLowLower = [] {
  std::array<std::uint16_t, kLow> table{};
  std::size_t run = 0;
  for (std::uint32_t cp = 0; cp < kLow; ++cp) {
    while (run + 1 < std::size(kLowerRuns) && kLowerRuns[run + 1].first <= cp) ++run;
    const LowerRun& here = kLowerRuns[run];
    table[cp] = static_cast<std::uint16_t>(cp < here.first ? cp : lower_in_run(here, cp));
  }
  return table;
}();

}  // namespace detail

// What is no code point at all is `other`.
inline CharClass char_class(std::uint32_t cp) {
  if (cp < detail::kLow) return detail::kLowClass[cp];
  if (cp > 0x10FFFF) return CharClass::other;
  // The last run that begins at or before cp: the first one begins at 0.
  const auto after = std::upper_bound(std::begin(detail::kClassRuns), std::end(detail::kClassRuns),
                                      cp << 4 | 15);
  return detail::class_in_run(*(after - 1), cp);
}

// The simple mapping: one code point for one, whatever stands around it. So no sigma is final, and
// U+0130 (I with a dot) becomes i.
inline std::uint32_t to_lower(std::uint32_t cp) {
  if (cp < detail::kLow) return detail::kLowLower[cp];
  const auto after = std::upper_bound(
      std::begin(detail::kLowerRuns), std::end(detail::kLowerRuns), cp,
      [](std::uint32_t value, const detail::LowerRun& run) { return value < run.first; });
  return detail::lower_in_run(*(after - 1), cp);  // There are runs below kLow.
}

inline bool is_utf8_tail(char byte) { return (static_cast<unsigned char>(byte) & 0xC0u) == 0x80u; }

// The character at p, and p moves behind it; p < end. Of bytes that are no UTF-8, the first one
// counts as U+FFFD and p moves by one.
inline std::uint32_t decode_utf8(const char*& p, const char* end) {
  const std::uint32_t lead = static_cast<unsigned char>(*p++);
  if (lead < 0x80) return lead;
  constexpr std::uint32_t kBad = 0xFFFD;
  const std::ptrdiff_t left = end - p;
  const auto tail = [p](int i) { return static_cast<unsigned char>(p[i]) & 0x3Fu; };
  if (lead < 0xC2 || lead > 0xF4 || left < 1 || !is_utf8_tail(p[0])) return kBad;
  if (lead < 0xE0) {
    const std::uint32_t cp = (lead & 0x1F) << 6 | tail(0);
    p += 1;
    return cp;
  }
  if (left < 2 || !is_utf8_tail(p[1])) return kBad;
  if (lead < 0xF0) {
    const std::uint32_t cp = (lead & 0x0F) << 12 | tail(0) << 6 | tail(1);
    if (cp < 0x800 || (cp >= 0xD800 && cp < 0xE000)) return kBad;  // overlong, surrogate
    p += 2;
    return cp;
  }
  if (left < 3 || !is_utf8_tail(p[2])) return kBad;
  const std::uint32_t cp = (lead & 0x07) << 18 | tail(0) << 12 | tail(1) << 6 | tail(2);
  if (cp < 0x10000 || cp > 0x10FFFF) return kBad;
  p += 3;
  return cp;
}

// What UTF-8 cannot say (a surrogate, a number too large) is written as U+FFFD.
inline void append_utf8(std::string& out, std::uint32_t cp) {
  if (cp < 0x80) {
    out.push_back(static_cast<char>(cp));
    return;
  }
  if (cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000)) cp = 0xFFFD;
  const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
  const auto tail = [&](int shift) { return byte(0x80 | (cp >> shift & 0x3F)); };
  if (cp < 0x800) {
    out.append({byte(0xC0 | cp >> 6), tail(0)});
  } else if (cp < 0x10000) {
    out.append({byte(0xE0 | cp >> 12), tail(6), tail(0)});
  } else {
    out.append({byte(0xF0 | cp >> 18), tail(12), tail(6), tail(0)});
  }
}

}  // namespace mm
