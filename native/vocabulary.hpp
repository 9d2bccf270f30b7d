// A vocabulary: UTF-8 strings numbered in the order in which they were first seen.
//
// The bytes of all strings lie end to end in one arena. The index is an open-addressing table of
// 8-byte slots (32 bits of hash, id + 1). The home of a slot is made of the top bits of those 32,
// so the table grows by one pass over itself, in order, without looking at the strings again.
//
// Calls of const members may run at the same time in several threads; add() and reserve() may not
// run beside anything.
#pragma once

#include <bit>
#include <string_view>

#include "common.hpp"

namespace mm {

namespace detail {

inline std::uint64_t load64(const char* p) {
  std::uint64_t x;
  std::memcpy(&x, p, 8);
  if constexpr (std::endian::native == std::endian::big) x = __builtin_bswap64(x);
  return x;
}

inline std::uint64_t load32(const char* p) {
  std::uint32_t x;
  std::memcpy(&x, p, 4);
  if constexpr (std::endian::native == std::endian::big) x = __builtin_bswap32(x);
  return x;
}

// Both halves of the 128-bit product, folded: every bit of the inputs reaches the whole result.
inline std::uint64_t fold_multiply(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide(a) * b;
  return std::uint64_t(product) ^ std::uint64_t(product >> 64);
}

}  // namespace detail

// A 64-bit hash in the manner of wyhash: the same on every platform. Not for use against an enemy.
// behind(first, n) is called now and then with bytes that were read.
template <class Behind>
std::uint64_t hash_bytes(std::string_view text, Behind&& behind) {
  // Odd constants with bits well mixed: fractional parts of the roots of 2, 3 and 5.
  constexpr std::uint64_t k0 = 0x6a09e667f3bcc909u;
  constexpr std::uint64_t k1 = 0xbb67ae8584caa73bu;
  constexpr std::uint64_t k2 = 0x3c6ef372fe94f82bu;
  const char* p = text.data();
  const std::size_t n = text.size();
  std::uint64_t state = k0, a = 0, b = 0;
  if (n > 16) {
    constexpr std::size_t kPiece = std::size_t{1} << 24;
    std::size_t left = n;
    while (left > 16) {
      const char* const first = p;
      const std::size_t stop = left > kPiece ? left - kPiece : 0;
      for (; left > 16 && left > stop; left -= 16, p += 16) {
        state = detail::fold_multiply(detail::load64(p) ^ k1, detail::load64(p + 8) ^ state);
      }
      behind(first, std::size_t(p - first));
    }
    a = detail::load64(p + left - 16);  // The last 16 bytes, whatever of them was read before.
    b = detail::load64(p + left - 8);
  } else if (n >= 8) {
    a = detail::load64(p);
    b = detail::load64(p + n - 8);
  } else if (n >= 4) {
    a = detail::load32(p);
    b = detail::load32(p + n - 4);
  } else if (n > 0) {
    const auto byte = [p](std::size_t i) -> std::uint64_t {
      return static_cast<unsigned char>(p[i]);
    };
    a = byte(0) << 16 | byte(n / 2) << 8 | byte(n - 1);
  }
  return detail::fold_multiply(detail::fold_multiply(a ^ k1, b ^ state) ^ n, k2);
}

inline std::uint64_t hash_bytes(std::string_view text) {
  return hash_bytes(text, [](const char*, std::size_t) {});
}

// How many bytes, from the first on, are UTF-8 as Unicode defines it: no overlong forms, no
// surrogates, no more than U+10FFFF.
inline std::size_t utf8_prefix(std::string_view text) {
  const auto* const begin = reinterpret_cast<const unsigned char*>(text.data());
  const auto* p = begin;
  const auto* const end = p + text.size();
  const auto tail = [](unsigned char c) { return (c & 0xC0u) == 0x80u; };
  while (p < end) {
    if (*p < 0x80) {
      constexpr std::uint64_t kHigh = 0x8080808080808080u;
      const auto eight = [&] { return detail::load64(reinterpret_cast<const char*>(p)); };
      while (end - p >= 8 && (eight() & kHigh) == 0) p += 8;
      while (p < end && *p < 0x80) ++p;
      continue;
    }
    const std::ptrdiff_t left = end - p;
    std::ptrdiff_t size = 0;  // of a character that is right
    if (*p >= 0xC2 && *p <= 0xDF) {
      if (left >= 2 && tail(p[1])) size = 2;
    } else if (*p >= 0xE0 && *p <= 0xEF) {
      if (left >= 3 && tail(p[1]) && tail(p[2]) && !(*p == 0xE0 && p[1] < 0xA0) && !(*p == 0xED && p[1] > 0x9F)) size = 3;
    } else if (*p >= 0xF0 && *p <= 0xF4) {
      if (left >= 4 && tail(p[1]) && tail(p[2]) && tail(p[3]) && !(*p == 0xF0 && p[1] < 0x90) && !(*p == 0xF4 && p[1] > 0x8F)) size = 4;
    }
    if (size == 0) break;
    p += size;
  }
  return std::size_t(p - begin);
}

inline bool is_utf8(std::string_view text) { return utf8_prefix(text) == text.size(); }

class Vocabulary {
 public:
  static constexpr std::uint32_t npos = 0xFFFFFFFFu;          // What find() says of a stranger.
  static constexpr std::size_t kMaxSize = std::size_t{npos};  // So the last id is 2^32 - 2.

  explicit Vocabulary(std::size_t max_size = kMaxSize) : max_size_(std::min(max_size, kMaxSize)) {
    ends_.push_back(0);
  }

  std::size_t size() const { return ends_.size() - 1; }
  std::size_t max_size() const { return max_size_; }

  // All the memory that it holds.
  std::size_t bytes() const {
    return slots_.size() * sizeof(std::uint64_t) + arena_.capacity() +
           ends_.capacity() * sizeof(std::uint64_t);
  }

  // The string of an id below size(); the view lives until the next add().
  std::string_view name(std::uint32_t id) const {
    return {arena_.data() + ends_[id], std::size_t(ends_[id + 1] - ends_[id])};
  }
  // All strings, end to end.
  std::string_view arena() const { return {arena_.data(), arena_.size()}; }

  // What the index needs to know of a string.
  static std::uint32_t fragment(std::string_view text) {
    return static_cast<std::uint32_t>(hash_bytes(text) >> 32);
  }

  // A look-up misses the cache three times in a row: slot, place of the name, name. Who has many
  // strings calls each of these for all of them before the next, so that the misses overlap:
  // prefetch, guess, prefetch_name, and only then find or add. They change nothing.
  void prefetch(std::uint32_t fragment) const {
    if (slots_.size() > 0) mm::prefetch(slots_.data() + home(fragment));
  }
  std::uint32_t guess(std::uint32_t fragment) const {
    if (slots_.size() == 0) return npos;
    const std::uint64_t slot = slots_[home(fragment)];
    if (slot == 0 || slot >> 32 != fragment) return npos;
    const std::uint32_t id = static_cast<std::uint32_t>(slot) - 1;
    mm::prefetch(ends_.data() + id);
    return id;
  }
  void prefetch_name(std::uint32_t guessed) const {
    if (guessed != npos) mm::prefetch(arena_.data() + ends_[guessed]);
  }

  std::uint32_t find(std::string_view text) const { return find(text, fragment(text)); }
  std::uint32_t find(std::string_view text, std::uint32_t fragment) const {
    if (slots_.size() == 0) return npos;
    const std::uint64_t slot = slots_[probe(text, fragment)];
    return static_cast<std::uint32_t>(slot) - 1;  // An empty slot is 0 and gives npos.
  }

  // The id of the string, a new one if it was not there. The bytes are copied.
  std::uint32_t add(std::string_view text) { return add(text, fragment(text)); }
  std::uint32_t add(std::string_view text, std::uint32_t fragment) {
    if (slots_.size() == 0) grow_to(kFirstSlots);
    std::size_t at = probe(text, fragment);
    if (slots_[at] != 0) return static_cast<std::uint32_t>(slots_[at]) - 1;
    if (size() >= max_size_) {
      throw BadInput("a vocabulary holds at most " + std::to_string(max_size_) +
                     " strings; there is no number left for another one");
    }
    if (is_crowded(size() + 1, slots_.size())) {
      grow_to(slots_.size() * 2);
      at = probe(text, fragment);
    }
    // Whatever can run out of memory comes first, so that a failure changes nothing.
    if (ends_.size() == ends_.capacity()) ends_.reserve(ends_.size() * 2);
    arena_.insert(arena_.end(), text.begin(), text.end());
    ends_.push_back(arena_.size());
    slots_[at] = std::uint64_t{fragment} << 32 | size();  // size() is the new id + 1.
    return static_cast<std::uint32_t>(size() - 1);
  }

  // Make room for so many strings with so many bytes between them.
  void reserve(std::size_t strings, std::size_t text_bytes = 0) {
    strings = std::min(strings, max_size_);
    std::size_t slots = std::max(slots_.size(), kFirstSlots);
    while (is_crowded(strings, slots)) slots *= 2;
    if (slots > slots_.size()) grow_to(slots);
    ends_.reserve(strings + 1);
    arena_.reserve(text_bytes);
  }

 private:
  static constexpr std::size_t kFirstSlots = 64;

  // At most five slots in eight are used. Never more than 2^33 slots: 2^32 - 1 strings fill half.
  static bool is_crowded(std::size_t strings, std::size_t slots) {
    return strings > slots / 8 * 5;
  }

  std::size_t home(std::uint32_t fragment) const {
    return bits_ <= 32 ? fragment >> (32 - bits_) : std::size_t{fragment} << (bits_ - 32);
  }

  // The slot that holds the string, or the empty one where it would go.
  std::size_t probe(std::string_view text, std::uint32_t fragment) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = home(fragment);; at = (at + 1) & mask) {
      const std::uint64_t slot = slots_[at];
      if (slot == 0) return at;
      if (slot >> 32 == fragment && name(static_cast<std::uint32_t>(slot) - 1) == text) return at;
    }
  }

  void grow_to(std::size_t slots) {
    AlignedArray<std::uint64_t> old(slots);
    old.swap(slots_);
    bits_ = static_cast<unsigned>(std::countr_zero(slots));
    const std::size_t mask = slots - 1;
    for (std::size_t i = 0; i < old.size(); ++i) {
      if (old[i] == 0) continue;
      std::size_t at = home(static_cast<std::uint32_t>(old[i] >> 32));
      while (slots_[at] != 0) at = (at + 1) & mask;
      slots_[at] = old[i];
    }
  }

  std::size_t max_size_;
  unsigned bits_ = 0;  // log2 of the number of slots
  AlignedArray<std::uint64_t> slots_;
  std::vector<char> arena_;
  std::vector<std::uint64_t> ends_;  // [size + 1] where each string begins; the last is the end
};

}  // namespace mm
