// The best projective dependency tree: Eisner's algorithm (1996), O(n³).
//
// Positions are 0 (the root) and 1..n (words); score[h * (n + 1) + d] is that of the arc from h to d. A span
// [s, t] is *incomplete* with an arc between its ends, and *complete* with all dependents of one end on
// that side:
//
//   base(s, t)  = max over s <= r < t of  Cr(s, r) + Cl(r + 1, t)
//   Ir(s, t)    = base(s, t) + score(s -> t)        Il(s, t) = base(s, t) + score(t -> s)
//   Cr(s, t)    = max over s < r <= t of  Ir(s, r) + Cr(r, t)
//   Cl(s, t)    = max over s <= r < t of  Cl(s, r) + Il(r, t)
//
// Every maximum runs over two rows of memory, because tables that are read by their second index are
// kept transposed as well. Only values are stored; the split of a span is found again when the tree is
// read off, for the O(n) spans that are in it.
//
// Exactly one child of the root: the words alone are a chart of their own, and the root takes the word r with
// the greatest Cl(1, r) + Cr(r, n) + score(0 -> r). That is exact, and cheaper than a chart with the root.
#pragma once

#include <functional>

#include "common.hpp"

namespace mm {

template <class T>
class Eisner {
 public:
  // Asked now and then in a long sentence; true ends it, with any tree.
  std::function<bool()> halted;

  // heads[1..n] of the best tree; score has (n + 1)² entries, of which arcs into 0 and to itself are not read.
  void decode(std::size_t n, const T* score, bool one_root, std::uint32_t* heads) {
    if (n == 0) return;
    n_ = n;
    stride_ = n + 1;
    const std::size_t cells = stride_ * stride_;
    if (cr_.size() < cells) {
      for (std::vector<T>* table : {&cr_, &cr_turned_, &cl_, &cl_turned_, &ir_, &il_turned_}) table->resize(cells);
    }
    first_ = one_root ? 1 : 0;
    fill(score);
    heads_ = heads;
    todo_.clear();
    if (one_root) {
      T top = -std::numeric_limits<T>::infinity();
      std::size_t best = 1;
      for (std::size_t r = 1; r <= n; ++r) {
        const T value = cl_turned_[r * stride_ + 1] + cr_[r * stride_ + n] + score[r];
        if (value > top) top = value, best = r;
      }
      heads[best] = 0;
      push(kLeft, 1, best);
      push(kRight, best, n);
    } else {
      push(kRight, 0, n);
    }
    while (!todo_.empty()) {
      const Span span = todo_.back();
      todo_.pop_back();
      read(span);
    }
  }

 private:
  enum Kind : std::uint32_t { kRight, kLeft, kArc };  // complete to either side, and the base of an arc
  struct Span {
    Kind kind;
    std::size_t s, t;
  };

  void push(Kind kind, std::size_t s, std::size_t t) {
    if (s < t) todo_.push_back({kind, s, t});
  }

  void fill(const T* score) {
    for (std::size_t s = first_; s <= n_; ++s) cr_[at(s, s)] = cr_turned_[at(s, s)] = cl_[at(s, s)] = cl_turned_[at(s, s)] = T(0);
    for (std::size_t width = 1; width <= n_ - first_; ++width) {
      if (width >= 256 && halted && halted()) return;
      for (std::size_t s = first_; s + width <= n_; ++s) {
        const std::size_t t = s + width;
        const T base = most(&cr_[at(s, s)], &cl_turned_[at(t, s + 1)], width);
        ir_[at(s, t)] = base + score[at(s, t)];
        // Nothing goes into the root.
        il_turned_[at(t, s)] = s == 0 ? -std::numeric_limits<T>::infinity() : base + score[at(t, s)];
        cr_[at(s, t)] = cr_turned_[at(t, s)] = most(&ir_[at(s, s + 1)], &cr_turned_[at(t, s + 1)], width);
        cl_[at(s, t)] = cl_turned_[at(t, s)] = most(&cl_[at(s, s)], &il_turned_[at(t, s)], width);
      }
    }
  }

  // The greatest a[k] + b[k], in eight lanes.
  static T most(const T* a, const T* b, std::size_t n) {
    constexpr std::size_t kLanes = 8;
    T top = -std::numeric_limits<T>::infinity();
    std::size_t k = 0;
    if (n >= kLanes) {
      T lane[kLanes];
      for (std::size_t j = 0; j < kLanes; ++j) lane[j] = a[j] + b[j];
      for (k = kLanes; k + kLanes <= n; k += kLanes) {
        for (std::size_t j = 0; j < kLanes; ++j) {
          const T value = a[k + j] + b[k + j];
          lane[j] = lane[j] < value ? value : lane[j];
        }
      }
      for (std::size_t j = 0; j < kLanes; ++j) top = top < lane[j] ? lane[j] : top;
    }
    for (; k < n; ++k) top = std::max(top, a[k] + b[k]);
    return top;
  }
  static std::size_t which(const T* a, const T* b, std::size_t n) {
    std::size_t best = 0;
    for (std::size_t k = 1; k < n; ++k) {
      if (a[k] + b[k] > a[best] + b[best]) best = k;
    }
    return best;
  }

  void read(const Span& span) {
    const auto [kind, s, t] = span;
    const std::size_t width = t - s;
    if (kind == kArc) {
      const std::size_t r = s + which(&cr_[at(s, s)], &cl_turned_[at(t, s + 1)], width);
      push(kRight, s, r);
      push(kLeft, r + 1, t);
    } else if (kind == kRight) {
      const std::size_t r = s + 1 + which(&ir_[at(s, s + 1)], &cr_turned_[at(t, s + 1)], width);
      heads_[r] = static_cast<std::uint32_t>(s);
      push(kArc, s, r);
      push(kRight, r, t);
    } else {
      const std::size_t r = s + which(&cl_[at(s, s)], &il_turned_[at(t, s)], width);
      heads_[r] = static_cast<std::uint32_t>(t);
      push(kArc, r, t);
      push(kLeft, s, r);
    }
  }

  std::size_t at(std::size_t a, std::size_t b) const { return a * stride_ + b; }

  std::size_t n_ = 0, stride_ = 0, first_ = 0;
  std::vector<T> cr_, cr_turned_, cl_, cl_turned_, ir_, il_turned_;
  std::vector<Span> todo_;
  std::uint32_t* heads_ = nullptr;
};

}  // namespace mm
