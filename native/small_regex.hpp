// Wapiti's small regular expressions, over the characters of UTF-8 text.
//
//   .       any character
//   \a \d   a letter, a digit; in the same way \l lower-case letter, \p punctuation or symbol,
//           \s space, \u upper-case letter, \w letter or digit; a capital is the complement: \D is
//           any character that is no digit
//   \x      any other x: that character itself, as is every character without a backslash
//   ^  $    at the very start and at the very end: the match begins, ends where the text does;
//           elsewhere they stand for themselves
//   x*      any number of x, as few as will do
//   x?      one x or none, one if that will do
//
// Of all matches the leftmost is taken, and of those the one that trying in this order finds first.
//
// All tries are advanced together, character by character, in the order in which they would have
// been made one after the other. Two that stand before the same item of the pattern have the same
// future, so only the first is kept. So the time is at most that of the length of the pattern times
// the length of the text, whatever they are, and nothing recurs. A pattern of up to 64 items is
// matched without an allocation. Matching may run at the same time in several threads.
#pragma once

#include "common.hpp"
#include "unicode.hpp"

namespace mm {

class SmallRegex {
 public:
  SmallRegex() = default;  // the empty pattern, which matches at once

  explicit SmallRegex(std::string_view pattern) {
    const char* p = pattern.data();
    const char* end = p + pattern.size();
    const auto refuse = [&](const char* at, const std::string& why) {
      throw BadInput("regular expression '" + std::string(pattern) + "': the " + *at +
                     " at byte " + std::to_string(at - pattern.data()) + why + " (write \\" + *at +
                     " for the character itself)");
    };
    if (p < end && *p == '^') {
      at_start_ = true;
      ++p;
    }
    while (p < end) {
      const char* const begin = p;
      if (*p == '$' && p + 1 == end) {
        at_end_ = true;
        break;
      }
      if (*p == '*' || *p == '?') refuse(begin, " has no character before it to repeat");
      Item item;
      std::uint32_t cp = decode_utf8(p, end);
      if (cp == '.') {
        item.classes = kAll;
      } else if (cp == '\\') {
        if (p == end) refuse(begin, " has nothing after it");
        cp = decode_utf8(p, end);
        item.classes = class_set(cp);
      }
      if (item.classes == 0) item.literal = cp;
      if (p < end && (*p == '*' || *p == '?')) {
        item.repeat = *p == '*' ? Repeat::any : Repeat::optional;
        ++p;
      }
      items_.push_back(item);
    }
    // A state is the index of an item, in 32 bits; nobody means such a pattern.
    if (items_.size() >= 0xFFFFFFFFu) throw BadInput("regular expression is too long");
  }

  // Whether the text has a match, and the bytes that it covers.
  bool match(std::string_view text, std::size_t& begin, std::size_t& length) const {
    if (items_.size() <= kInline) {
      Thread first[kInline], second[kInline];
      std::size_t seen[kInline];
      std::fill_n(seen, items_.size(), std::size_t{0});
      return run(text, first, second, seen, begin, length);
    }
    std::vector<Thread> threads(2 * items_.size());
    std::vector<std::size_t> seen(items_.size());
    Thread* const second = threads.data() + items_.size();
    return run(text, threads.data(), second, seen.data(), begin, length);
  }
  bool matches(std::string_view text) const {
    std::size_t begin, length;
    return match(text, begin, length);
  }

 private:
  using ClassSet = std::uint8_t;  // a bit for each CharClass
  static constexpr std::size_t kInline = 64;

  static constexpr ClassSet bit(CharClass kind) {
    return static_cast<ClassSet>(1u << static_cast<unsigned>(kind));
  }
  static constexpr ClassSet kAll = 0x7F;
  static_assert(static_cast<unsigned>(CharClass::space) == 6, "kAll has a bit for each class");

  enum class Repeat : std::uint8_t { once, optional, any };
  struct Item {
    std::uint32_t literal = 0;  // if there are no classes
    ClassSet classes = 0;
    Repeat repeat = Repeat::once;

    bool takes(std::uint32_t cp, ClassSet cp_class) const {
      return classes != 0 ? (classes & cp_class) != 0 : literal == cp;
    }
  };

  // A try that began at `start` and waits for a character that `item` takes.
  struct Thread {
    std::size_t start;
    std::uint32_t item;
  };

  // What \x stands for; 0 if it is x itself.
  static constexpr ClassSet class_set(std::uint32_t x) {
    constexpr ClassSet letter =
        bit(CharClass::upper) | bit(CharClass::lower) | bit(CharClass::other_letter);
    const bool complement = x >= 'A' && x <= 'Z';
    ClassSet set = 0;
    switch (complement ? x + ('a' - 'A') : x) {
      case 'a': set = letter; break;
      case 'd': set = bit(CharClass::digit); break;
      case 'l': set = bit(CharClass::lower); break;
      case 'p': set = bit(CharClass::punctuation); break;
      case 's': set = bit(CharClass::space); break;
      case 'u': set = bit(CharClass::upper); break;
      case 'w': set = letter | bit(CharClass::digit); break;
      default: return 0;
    }
    return complement ? static_cast<ClassSet>(kAll & ~set) : set;
  }

  // `now` and `next` have room for a thread per item; seen[item] says where in the text a thread
  // last came to the item (plus one).
  bool run(std::string_view text, Thread* now, Thread* next, std::size_t* seen, std::size_t& begin,
           std::size_t& length) const {
    const char* const first = text.data();
    const char* const end = first + text.size();
    std::size_t waiting = 0;  // threads in `now`, in order of preference
    bool found = false;
    const bool may_skip = !at_start_ && !items_.empty() && items_[0].repeat == Repeat::once;
    for (const char* p = first;;) {
      if (may_skip && waiting == 0 && !found) p = first_taken(p, end);
      const std::size_t here = static_cast<std::size_t>(p - first);
      // A new start is worth less than all earlier ones and nothing once there is a match.
      if (!found && (here == 0 || !at_start_)) {
        found = enter(0, here, here, p == end, now, waiting, seen);
        if (found) begin = here, length = 0;
      }
      if (p == end || (waiting == 0 && (found || at_start_))) return found;
      const std::uint32_t cp = decode_utf8(p, end);
      const ClassSet cp_class = bit(char_class(cp));
      const std::size_t there = static_cast<std::size_t>(p - first);
      std::size_t advanced = 0;
      for (std::size_t i = 0; i < waiting; ++i) {
        const Thread thread = now[i];
        const Item& item = items_[thread.item];
        if (!item.takes(cp, cp_class)) continue;
        const std::uint32_t to = thread.item + (item.repeat != Repeat::any);
        if (enter(to, thread.start, there, p == end, next, advanced, seen)) {
          // What would have been tried later is out; what was tried earlier may still succeed.
          found = true;
          begin = thread.start;
          length = there - thread.start;
          break;
        }
      }
      std::swap(now, next);
      waiting = advanced;
    }
  }

  // The first character from p on that the first item takes: where no try is under way, the next
  // one that does not fail at once begins there.
  const char* first_taken(const char* p, const char* end) const {
    while (p < end) {
      const char* behind = p;
      const std::uint32_t cp = decode_utf8(behind, end);
      if (items_[0].takes(cp, bit(char_class(cp)))) break;
      p = behind;
    }
    return p;
  }

  // Come to an item at a place of the text: append the threads that wait there for a character, in
  // the order in which they are tried. True if the end of the pattern is reached instead and that
  // is a match; then the threads are those that are tried before.
  bool enter(std::uint32_t item, std::size_t start, std::size_t place, bool text_ends,
             Thread* threads, std::size_t& count, std::size_t* seen) const {
    // A repeated item waits behind whatever follows it. Until all of that is there, such threads
    // are kept from the far end of the room downwards; no item is seen twice, so there is room.
    const std::size_t room = items_.size();
    std::size_t deferred = room;
    bool matched = false;
    for (;; ++item) {
      if (item == room) {
        matched = text_ends || !at_end_;
        break;
      }
      if (seen[item] == place + 1) break;  // and so is all that follows it
      seen[item] = place + 1;
      const Repeat repeat = items_[item].repeat;
      if (repeat == Repeat::any) {
        threads[--deferred] = {start, item};
      } else {
        threads[count++] = {start, item};
        if (repeat == Repeat::once) break;
      }
    }
    if (!matched) {
      while (deferred < room) threads[count++] = threads[deferred++];
    }
    return matched;
  }

  std::vector<Item> items_;
  bool at_start_ = false, at_end_ = false;
};

}  // namespace mm
