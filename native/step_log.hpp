// What one thread adds to the weights, for other threads to read: a ring of 4-byte words with one writer.
//
// Steps are outer products, some rows by some columns, and are written as such: a word for each row, not for each weight.
//   [columns << 28 | weights of a row << 10 | rows] [column ...] [amount ...] [row ...]     or, for one weight,
//   [kOne | weight] [amount]
#pragma once

#include <atomic>
#include <cstring>
#include <limits>
#include <vector>

#include "common.hpp"

namespace mm {

template <class T>
class StepLog {
 public:
  using Word = std::uint32_t;
  static constexpr std::uint64_t kRoom = 1 << 14;
  static constexpr std::size_t kMostColumns = 4, kMostRows = 256;
  // What the head of an entry has room for.
  static constexpr std::size_t kMostWeights = std::size_t{1} << 31, kLongestRow = (std::size_t{1} << 18) - 1;
  static constexpr Word kOne = Word{1} << 31, kNothing = 0;
  static constexpr std::uint64_t kLine = 64 / sizeof(Word), kAhead = 64 * kLine;
  // Rows whose weights are fetched ahead of the additions to them.
  static constexpr std::size_t kLead = 64;
  static constexpr std::size_t kAmountWords = sizeof(T) / sizeof(Word);
  // Words of the largest entry, and of what may be left empty before it: the rest of a line, or of the ring.
  static constexpr std::uint64_t kEntry = 1 + kMostColumns * (1 + kAmountWords) + kMostRows, kLargest = 2 * kEntry + kLine;

  // Of thread `writer` among so many.
  StepLog(std::size_t threads, std::size_t writer) : words_(kRoom), read_(threads) {
    read_[writer].at.store(std::numeric_limits<std::uint64_t>::max(), std::memory_order_relaxed);  // it waits for others only
  }

  // ---- the writer ----

  // Is there no room for another entry? Then readers must come on first.
  bool full() {
    if (own_.at + kLargest - own_.oldest <= kRoom) [[likely]] return false;
    own_.oldest = own_.at;
    for (const Mark& mark : read_) own_.oldest = std::min(own_.oldest, mark.at.load(std::memory_order_acquire));
    return own_.at + kLargest - own_.oldest > kRoom;
  }
  // N columns of up to kMostRows rows of so many weights.
  template <int N>
  void rows(const std::uint32_t* rows, std::size_t n, std::size_t stride, const std::uint32_t* column, const T* amount) {
    Word* entry = place(1 + N * (1 + kAmountWords) + n);
    entry[0] = Word(N) << 28 | Word(stride) << 10 | Word(n);
    for (int k = 0; k < N; ++k) entry[1 + k] = column[k];
    std::memcpy(entry + 1 + N, amount, N * sizeof(T));
    std::memcpy(entry + 1 + N * (1 + kAmountWords), rows, n * sizeof(Word));
  }
  // One weight.
  void one(std::uint32_t j, T amount) {
    Word* const entry = place(1 + kAmountWords);
    entry[0] = kOne | j;
    std::memcpy(entry + 1, &amount, sizeof(T));
  }
  // Let the others see what was put. The next entry begins on a new cache line: one that readers have fetched is not
  // written again before the ring has gone round, and those to come are fetched here, to be written.
  void publish() {
    if (own_.at == own_.published) return;
    leave_empty((kLine - own_.at % kLine) % kLine);
    own_.published = own_.at;
    written_.at.store(own_.at, std::memory_order_release);
  }

  // ---- reader k ----

  // Cache lines take long from one core to the other. So a reader looks in steps between which it does other things: ask
  // for the mark; see by the mark what there is, and ask for that; read it.
  void ask() const { prefetch(&written_.at); }
  void see(std::size_t k) {
    Mark& mark = read_[k];
    const std::uint64_t before = mark.seen;
    mark.seen = written_.at.load(std::memory_order_acquire);
    for (std::uint64_t at = before; at < mark.seen; at += kLine) prefetch(&words_[at % kRoom]);
  }
  // one(weight, amount) and rows(first row, number of rows, stride, columns, column, amount) for what was seen, and
  // fetch(the same) for rows some time before; true if there was something.
  template <class Fetch, class One, class Rows>
  bool read(std::size_t k, Fetch&& fetch, One&& one, Rows&& rows) {
    const std::uint64_t end = read_[k].seen;
    std::uint64_t at = read_[k].at.load(std::memory_order_relaxed), ahead = at;
    if (at == end) return false;
    const auto nothing = [](std::size_t, T) {};
    for (std::size_t lead = 0; lead < kLead && ahead < end;) lead += entry(ahead, nothing, fetch);
    while (at < end) {
      if (ahead < end) entry(ahead, nothing, fetch);
      entry(at, one, rows);
    }
    read_[k].at.store(end, std::memory_order_release);
    return true;
  }

 private:
  // What stands at a place of the ring, which moves on; returns the number of rows.
  template <class One, class Rows>
  std::size_t entry(std::uint64_t& at, One&& one, Rows&& rows) const {
    const Word* const entry = words_.data() + at % kRoom;
    const Word head = entry[0];
    T amount[kMostColumns];
    if (head == kNothing) {  // up to the next line
      at += kLine - at % kLine;
      return 0;
    }
    if ((head & kOne) != 0) {
      std::memcpy(amount, entry + 1, sizeof(T));
      at += 1 + kAmountWords;
      one(std::size_t(head & ~kOne), amount[0]);
      return 0;
    }
    const std::size_t columns = head >> 28, stride = head >> 10 & kLongestRow, n = head & 0x3ff, words = 1 + columns * (1 + kAmountWords);
    std::memcpy(amount, entry + 1 + columns, columns * sizeof(T));
    at += words + n;
    rows(entry + words, n, stride, columns, entry + 1, amount);
    return n;
  }
  // Room for an entry, which does not go round the end of the ring.
  Word* place(std::size_t words) {
    const std::uint64_t left = kRoom - own_.at % kRoom;
    if (left < words) [[unlikely]] leave_empty(left);
    Word* const entry = words_.data() + own_.at % kRoom;
    own_.at += words;
    // Readers had the lines to come when the ring was here last; they are fetched back some time before they are written.
    for (; own_.fetched < own_.at + kAhead; own_.fetched += kLine) prefetch_to_write(&words_[own_.fetched % kRoom]);
    return entry;
  }
  // Readers go from a word of nothing to the next line.
  void leave_empty(std::uint64_t n) {
    for (const std::uint64_t end = own_.at + n; own_.at < end; ++own_.at) words_[own_.at % kRoom] = kNothing;
  }

  // What threads write is on cache lines of its own (two, since they are fetched in pairs).
  struct alignas(128) Mark {
    std::atomic<std::uint64_t> at{0};
    std::uint64_t seen = 0;  // of the reader
  };
  struct alignas(128) Own {
    std::uint64_t at = 0, published = 0, oldest = 0, fetched = 0;
  };
  AlignedArray<Word> words_;
  std::vector<Mark> read_;
  Own own_;
  Mark written_;
};

}  // namespace mm
