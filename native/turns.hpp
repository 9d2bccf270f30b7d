// Which visits of a pass a thread makes: all of them, or, where several threads share a pass, those that it takes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mm {

// Which places of an order, or of a queue, a thread visits, one after the other; all before end() are its own, and what
// they need may be fetched ahead.
class EveryTurn {
 public:
  explicit EveryTurn(std::size_t n) : n_(n) {}
  bool next(std::size_t& at) {
    at = at_++;
    return at < n_;
  }
  std::size_t end() const { return n_; }

 private:
  std::size_t at_ = 0, n_;
};

// Places of which several threads take some at a time: their owner from the front, others from the back. What a thread
// took belongs to it alone.
class Stack {
 public:
  void fill(std::size_t n) { left_.store(std::uint64_t(n), std::memory_order_release); }
  bool take(std::size_t wanted, bool front, std::size_t& begin, std::size_t& end) {
    std::uint64_t left = left_.load(std::memory_order_relaxed);
    for (;;) {
      const std::uint64_t first = left >> 32, last = left & 0xffffffff, n = std::min<std::uint64_t>(wanted, last - first);
      if (n == 0) return false;
      const std::uint64_t now = front ? (first + n) << 32 | last : first << 32 | (last - n);
      if (!left_.compare_exchange_weak(left, now, std::memory_order_relaxed)) continue;
      begin = std::size_t(front ? first : last - n);
      end = begin + std::size_t(n);
      return true;
    }
  }

 private:
  alignas(128) std::atomic<std::uint64_t> left_{0};  // first and last place that nobody took, in 4 bytes each
};

// The owner's turns, which follow each other without a gap and are taken before the ones at hand are used up, or another's.
class StackTurns {
 public:
  StackTurns(Stack& stack, bool owner, std::size_t together, std::size_t ahead) : stack_(stack), owner_(owner), together_(together), ahead_(owner ? ahead : 0) {}
  bool next(std::size_t& at) {
    if (end_ - at_ <= ahead_ && more_) {
      std::size_t begin, end;
      more_ = stack_.take(together_, owner_, begin, end);
      if (more_) at_ = at_ == end_ ? begin : at_, end_ = end;
    }
    at = at_;
    return at_ < end_ ? ++at_, true : false;
  }
  std::size_t end() const { return end_; }

 private:
  Stack& stack_;
  bool owner_, more_ = true;
  std::size_t together_, ahead_, at_ = 0, end_ = 0;
};

}  // namespace mm
