// Functions of one word: its first and last letters, its lower case, its shape.
//
// A word is UTF-8 and its characters are code points. Results are views of the word or go to a
// buffer of the caller, which is overwritten and must not be where the word lies; a buffer that is
// used again costs no allocation. Bytes that are no UTF-8 do no harm: they are copied.
#pragma once

#include "common.hpp"
#include "unicode.hpp"

namespace mm {

// The first n characters; false if the word has fewer.
inline bool prefix(std::string_view word, unsigned n, std::string_view& out) {
  std::size_t at = 0;
  for (; n > 0; --n) {
    if (at == word.size()) return false;
    do ++at;
    while (at < word.size() && is_utf8_tail(word[at]));
  }
  out = word.substr(0, at);
  return true;
}

// The last n characters; false if the word has fewer.
inline bool suffix(std::string_view word, unsigned n, std::string_view& out) {
  std::size_t at = word.size();
  for (; n > 0; --n) {
    if (at == 0) return false;
    do --at;
    while (at > 0 && is_utf8_tail(word[at]));
  }
  out = word.substr(at);
  return true;
}

// Every character by itself: as many as there were.
inline void lower_case(std::string_view word, std::string& out) {
  out.assign(word);
  std::size_t ascii = 0;
  for (; ascii < out.size(); ++ascii) {
    const unsigned char c = static_cast<unsigned char>(out[ascii]);
    if (c >= 0x80) break;
    out[ascii] = static_cast<char>(detail::kLowLower[c]);
  }
  if (ascii == out.size()) return;
  // A lower-case letter may need more or fewer bytes than its upper-case one.
  out.resize(ascii);
  const char* const end = word.data() + word.size();
  for (const char* p = word.data() + ascii; p < end;) {
    const char* const begin = p;
    const std::uint32_t cp = decode_utf8(p, end);
    const std::uint32_t lowered = to_lower(cp);
    if (lowered == cp) {
      out.append(begin, p);
    } else {
      append_utf8(out, lowered);
    }
  }
}

namespace detail {

// What a character of this class is in a shape.
constexpr std::uint32_t shape_of(CharClass kind, std::uint32_t cp) {
  switch (kind) {
    case CharClass::upper: return 'X';
    case CharClass::lower:
    case CharClass::other_letter: return 'x';
    case CharClass::digit: return 'd';
    default: return cp;
  }
}

inline constexpr auto kAsciiShape = [] {
  std::array<char, 128> table{};
  for (std::uint32_t cp = 0; cp < 128; ++cp) {
    table[cp] = static_cast<char>(shape_of(kLowClass[cp], cp));
  }
  return table;
}();

template <bool Short>
void shape_into(std::string_view word, std::string& out) {
  out.resize(word.size());  // A shape is never longer than its word.
  char* write = out.data();
  const char* const end = word.data() + word.size();
  std::uint32_t last = 0xFFFFFFFFu;  // no character
  for (const char* p = word.data(); p < end;) {
    const char* const begin = p;
    const unsigned char c = static_cast<unsigned char>(*p);
    std::uint32_t mapped;
    if (c < 0x80) {
      mapped = static_cast<unsigned char>(kAsciiShape[c]);
      ++p;
    } else {
      const std::uint32_t cp = decode_utf8(p, end);
      mapped = shape_of(char_class(cp), cp);
    }
    if constexpr (Short) {
      if (mapped == last) continue;
      last = mapped;
    }
    if (mapped < 0x80) {
      *write++ = static_cast<char>(mapped);
    } else {
      write = std::copy(begin, p, write);
    }
  }
  out.resize(static_cast<std::size_t>(write - out.data()));
}

}  // namespace detail

// Upper-case letters become X, other letters x, digits d; every other character stays what it is.
// "McDonald's" gives "XxXxxxxx'x", "1990-12" gives "dddd-dd".
inline void shape(std::string_view word, std::string& out) {
  detail::shape_into<false>(word, out);
}

// The shape with one character for each run of the same: "XxXx'x", "d-d".
inline void short_shape(std::string_view word, std::string& out) {
  detail::shape_into<true>(word, out);
}

}  // namespace mm
