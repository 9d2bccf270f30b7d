// Several threads that make steps on one u at the same time.
//
// Each thread steps on examples of its own; u and w are common. Which weights two threads want at once depends on the
// row: those of transitions, biases and frequent words are moved by nearly every step (they are *contended*), a row of a
// rare word by few. A cache line that two cores write in turn goes back and forth between them, and a step that does
// not know of the other's last steps on contended rows undoes them. So the two kinds of rows are kept apart:
//
//   contended   each thread has a copy. A step adds to its own copy and writes what it added to its log; some visits
//               later every other thread reads that and adds it to its copy. In the end all copies are the same sums,
//               up to the order of additions.
//   all others  one array that all threads read and write without locks. An addition is one atomic operation, so that none
//               is ever lost (PASSCoDe-Atomic; Hsieh, Yu and Dhillon, ICML 2015). With plain additions (PASSCoDe-Wild)
//               some hundred of many millions were, in rows that are frequent but not contended. w and multipliers then
//               disagree by little, but along directions in which the primal is steep: its value at the w of the
//               multipliers was 4 % above that at the w of the passes, and certificates were refused.
//
// A thread may read a row while another one adds to it. That race is intended: relaxed atomic operations where threads add
// (Seat::add_shared), and plain loads where rows are read for scores (functions that are marked MM_READS_SHARED).
//
// *The dual.* D = C Σ α l - Ω*(u). Σ α l is summed by each thread over its own steps. What Ω* changed by is counted for
// the shared rows at each addition, from the value that it found there, and for the contended rows at the end.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <thread>

#include "common.hpp"
#include "own_rows.hpp"

namespace mm {

// What one thread added to its contended weights, for the others to read: a ring of 4-byte words with one writer. Steps
// are outer products, some rows by some columns, and are written as such: a word for each row, not for each weight.
//   [columns << 16 | rows] [column ...] [amount ...] [first weight of the row ...]     or, for one weight,
//   [kOne | weight] [amount]
template <class T>
class StepLog {
 public:
  using Word = std::uint32_t;
  static constexpr std::uint64_t kRoom = 1 << 14;
  static constexpr std::size_t kMostColumns = 4, kMostRows = 256;
  static constexpr Word kOne = Word{1} << 31, kNothing = 0;
  static constexpr std::uint64_t kLine = 64 / sizeof(Word), kLinesAhead = 4;
  static constexpr std::size_t kAmountWords = sizeof(T) / sizeof(Word);
  // Words of the largest entry, and of the rest of a line.
  static constexpr std::uint64_t kLargest = kLine + 1 + kMostColumns * (1 + kAmountWords) + kMostRows;

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
  // An entry with N columns, whose rows are put one by one.
  template <int N>
  class Entry {
   public:
    Entry(StepLog& log, const std::uint32_t* column, const T* amount) : words_(log.words_.data()), first_(log.own_.at), at_(first_ + 1), log_(log) {
      for (int k = 0; k < N; ++k) word(at_++) = column[k];
      for (int k = 0; k < N; ++k, at_ += kAmountWords) {
        Word bits[kAmountWords];
        std::memcpy(bits, amount + k, sizeof(T));
        for (std::size_t b = 0; b < kAmountWords; ++b) word(at_ + b) = bits[b];
      }
    }
    void row(std::uint32_t first) { word(at_++) = first; }
    std::size_t rows() const { return std::size_t(at_ - first_) - 1 - N * (1 + kAmountWords); }
    void end() {
      if (rows() == 0) return;
      word(first_) = Word(N) << 16 | Word(rows());
      log_.own_.at = at_;
    }

   private:
    Word& word(std::uint64_t at) { return words_[at & (kRoom - 1)]; }
    Word* words_;
    std::uint64_t first_, at_;
    StepLog& log_;
  };
  // One weight.
  void one(std::uint32_t j, T amount) {
    Word* const words = words_.data();
    words[own_.at++ & (kRoom - 1)] = kOne | j;
    Word bits[kAmountWords];
    std::memcpy(bits, &amount, sizeof(T));
    for (std::size_t b = 0; b < kAmountWords; ++b) words[own_.at++ & (kRoom - 1)] = bits[b];
  }
  // Let the others see what was put. The next entry begins on a new cache line: one that readers have fetched is not
  // written again before the ring has gone round, and those to come are fetched here, to be written.
  void publish() {
    if (own_.at == own_.published) return;
    const std::uint64_t end = (own_.at + kLine - 1) & ~(kLine - 1);
    for (; own_.at < end; ++own_.at) words_[own_.at & (kRoom - 1)] = kNothing;
    own_.published = end;
    written_.at.store(end, std::memory_order_release);
    for (std::uint64_t line = 0; line < kLinesAhead; ++line) prefetch_to_write(&words_[(end + line * kLine) & (kRoom - 1)]);
  }

  // ---- reader k ----

  // Cache lines take long from one core to the other. So a reader looks in three steps between which it does other
  // things: ask for the mark; see by the mark what there is, and ask for that; read it.
  void ask() const { prefetch(&written_.at); }
  void see(std::size_t k) {
    Mark& mark = read_[k];
    const std::uint64_t before = mark.seen;
    mark.seen = written_.at.load(std::memory_order_acquire);
    for (std::uint64_t at = before; at < mark.seen; at += kLine) prefetch(&words_[at & (kRoom - 1)]);
  }
  // Add what was seen to `weights`, in which weight j is at j, or at j - gap from head_end on; true if there was something.
  // `moved`: by how much |w|² changed.
  bool read(std::size_t k, T* weights, std::size_t head_end, std::size_t gap, double& moved) {
    const std::uint64_t end = read_[k].seen;
    std::uint64_t at = read_[k].at.load(std::memory_order_relaxed);
    if (at == end) return false;
    const auto add = [](T& weight, T amount) {
      const T before = weight;
      weight = before + amount;
      return amount * (before + before + amount);
    };
    const Word* const words = words_.data();
    const auto word = [words](std::uint64_t i) { return words[i & (kRoom - 1)]; };
    while (at < end) {
      const Word head = word(at++);
      if (head == kNothing) {
        at = (at + kLine - 1) & ~(kLine - 1);
        continue;
      }
      if ((head & kOne) != 0) {
        Word bits[kAmountWords];
        T a;
        for (std::size_t b = 0; b < kAmountWords; ++b) bits[b] = word(at++);
        std::memcpy(&a, bits, sizeof(T));
        const std::size_t j = head & ~kOne;
        moved += double(add(weights[j < head_end ? j : j - gap], a));
        continue;
      }
      const std::size_t columns = head >> 16, rows = head & 0xffff;
      Word column[kMostColumns];
      T amount[kMostColumns];
      for (std::size_t c = 0; c < columns; ++c) column[c] = word(at++);
      for (std::size_t c = 0; c < columns; ++c, at += kAmountWords) {
        Word bits[kAmountWords];
        for (std::size_t b = 0; b < kAmountWords; ++b) bits[b] = word(at + b);
        std::memcpy(amount + c, bits, sizeof(T));
      }
      for (std::size_t r = 0; r < rows; ++r) {
        T* row = weights + word(at++);
        T sum = T(0);
        for (std::size_t c = 0; c < columns; ++c) sum += add(row[column[c]], amount[c]);
        moved += double(sum);
      }
    }
    read_[k].at.store(at, std::memory_order_release);
    return true;
  }

 private:
  // What threads write is on cache lines of its own (two, since they are fetched in pairs).
  struct alignas(128) Mark {
    std::atomic<std::uint64_t> at{0};
    std::uint64_t seen = 0;  // of the reader
  };
  struct alignas(128) Own {
    std::uint64_t at = 0, published = 0, oldest = 0;
  };
  AlignedArray<Word> words_;
  std::vector<Mark> read_;
  Own own_;
  Mark written_;
};

// Which weights are contended: those below head_end and those from tail_begin on. (All of them, if these are the same.)
struct Contended {
  std::size_t head_end = 0, tail_begin = 0;
  bool operator==(const Contended&) const = default;
};

// The weights, as threads that make steps together have them.
template <class T>
class JointSteps {
 public:
  JointSteps(T* w, std::size_t n_weights, Contended contended, std::size_t threads)
      : w_(w), n_weights_(n_weights), contended_(contended) {
    for (std::size_t k = 0; k < threads; ++k) logs_.push_back(std::make_unique<StepLog<T>>(threads, k));
    for (std::size_t k = 0; k < threads; ++k) seats_.push_back(std::make_unique<Seat>(*this, k));
  }

  // Is it made for these?
  bool fits(const T* w, const Contended& contended, std::size_t threads) const {
    return w == w_ && contended == contended_ && threads == seats_.size();
  }

  // Before a pass. False: copies are not what the weights are; every thread then has to copy (Seat::copy) before any begins.
  bool start() {
    left_.store(0, std::memory_order_relaxed);
    const bool copied = copied_;
    copied_ = true;
    if (++passes_ % kTogether == 0) return false;
    return copied;
  }
  // The weights were changed by others.
  void forget() { copied_ = false; }

  // What one thread has: copies of the contended weights (the first thread has the weights themselves), and a log.
  class alignas(128) Seat {
   public:
    Seat(JointSteps& joint, std::size_t k)
        : joint_(joint), k_(k), log_(*joint.logs_[k]), w_(joint.w_), head_end_(joint.contended_.head_end),
          tail_begin_(joint.contended_.tail_begin), gap_(k == 0 ? 0 : tail_begin_ - head_end_), own_(w_) {
      if (k == 0) return;
      copies_.reset(joint.n_weights_ - gap_);
      own_ = copies_.data();
    }

    void copy() {
      if (k_ == 0) return;
      std::copy(w_, w_ + head_end_, own_);
      std::copy(w_ + tail_begin_, w_ + joint_.n_weights_, own_ + head_end_);
    }
    void begin() {
      moved_ = 0.0;
      phase_ = 0;
    }

    OwnRows<T> rows() const { return {own_, head_end_, own_ + (tail_begin_ - gap_), tail_begin_}; }

    // One weight.
    void add(std::size_t j, T amount) {
      if (j >= head_end_ && j < tail_begin_) {
        moved_ += add_shared(j, amount);
        return;
      }
      count(add_own(own_[j < head_end_ ? j : j - gap_], amount));
      make_room();
      log_.one(std::uint32_t(j), amount);
    }

    // The weights of some columns in rows before the tail: row f begins at f * stride.
    template <int N>
    void add_rows(std::span<const std::uint32_t> rows, std::size_t stride, const std::uint32_t* column, const T* amount) {
      std::uint32_t l[N];
      T a[N];
      for (int k = 0; k < N; ++k) l[k] = column[k], a[k] = amount[k];
      T* const own = own_;
      const std::size_t head_end = head_end_;
      double moved = 0.0, moved_own = 0.0;
      for (std::size_t begin = 0; begin < rows.size(); begin += StepLog<T>::kMostRows) {
        make_room();
        typename StepLog<T>::template Entry<N> entry(log_, l, a);
        const std::size_t end = std::min(begin + StepLog<T>::kMostRows, rows.size());
        for (std::size_t e = begin; e < end; ++e) {
          const std::size_t j = std::size_t(rows[e]) * stride;
          T sum = T(0);
          if (j < head_end) {
            entry.row(std::uint32_t(j));
            for (int k = 0; k < N; ++k) sum += add_own(own[j + l[k]], a[k]);
            moved_own += double(sum);
          } else {
            for (int k = 0; k < N; ++k) sum += add_shared(j + l[k], a[k]);
            moved += double(sum);
          }
        }
        entry.end();
      }
      moved_ += moved;
      count(moved_own);
    }

    // Between two visits: one step of the exchange with the others, whose cache lines come while visits are made; true if
    // weights of this thread changed.
    bool tick() {
      const int phase = phase_;
      phase_ = phase + 1 == kPhases ? 0 : phase + 1;
      if (phase == 0) {
        log_.publish();
        for_others([&](StepLog<T>& log) { log.ask(); });
      } else if (phase == 1) {
        for_others([&](StepLog<T>& log) { log.see(k_); });
      } else if (phase == 2) {
        return take();
      }
      return false;
    }
    // All of it at once.
    bool read() {
      log_.publish();
      for_others([&](StepLog<T>& log) { log.see(k_); });
      return take();
    }

    // This thread makes no more steps.
    void leave() {
      log_.publish();
      joint_.left_.fetch_add(1, std::memory_order_release);
    }
    // Follow the others until none makes steps any more.
    template <class Meanwhile>
    void follow(Meanwhile&& meanwhile) {
      for (std::uint32_t spun = 0; joint_.left_.load(std::memory_order_acquire) < joint_.seats_.size(); ++spun) {
        read();
        meanwhile();
        if (spun > 1000) std::this_thread::yield();
      }
      read();
    }

    // By how much |w|² changed: that of the shared weights through this thread, and that of the contended ones as this thread
    // saw all steps come, if it is the first.
    double moved() const { return moved_; }

   private:
    bool take() {
      bool some = false;
      double moved = 0.0;
      for_others([&](StepLog<T>& log) { some = log.read(k_, own_, head_end_, gap_, moved) || some; });
      count(moved);
      return some;
    }
    template <class F>
    void for_others(F&& f) {
      for (std::size_t other = 0; other < joint_.logs_.size(); ++other) {
        if (other != k_) f(*joint_.logs_[other]);
      }
    }
    void count(double moved) {
      if (k_ == 0) moved_ += moved;
    }
    static T add_own(T& weight, T amount) {
      const T before = weight;
      weight = before + amount;
      return amount * (before + before + amount);
    }
    // The change of the square of a shared weight.
    T add_shared(std::size_t j, T amount) {
      const std::atomic_ref<T> weight(w_[j]);
      T before = weight.load(std::memory_order_relaxed);
      while (!weight.compare_exchange_weak(before, before + amount, std::memory_order_relaxed)) continue;
      return amount * (before + before + amount);
    }
    void make_room() {
      if (log_.full()) [[unlikely]] wait();
    }
    [[gnu::noinline]] void wait() {
      while (log_.full()) {
        if (!read()) std::this_thread::yield();
      }
    }

    JointSteps& joint_;
    std::size_t k_;
    StepLog<T>& log_;
    T* w_;
    std::size_t head_end_, tail_begin_, gap_;  // gap: weight j of the tail is own_[j - gap]
    T* own_;
    AlignedArray<T> copies_;
    double moved_ = 0.0;
    // Steps of an exchange, of which those behind the third are empty. With more of them less is sent back and forth, and
    // the threads are further behind each other.
    static constexpr int kPhases = 6;
    int phase_ = 0;
  };

  Seat& seat(std::size_t k) { return *seats_[k]; }

 private:
  T* w_;
  std::size_t n_weights_;
  Contended contended_;
  bool copied_ = false;
  std::uint32_t passes_ = 0;
  // Copies are sums of the same steps in different orders. After so many passes they are made anew.
  static constexpr std::uint32_t kTogether = 64;
  std::vector<std::unique_ptr<StepLog<T>>> logs_;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::atomic<std::size_t> left_{0};
};

}  // namespace mm
