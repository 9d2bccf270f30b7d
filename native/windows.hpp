// Windows: the examples in contiguous pieces, of which one at a time is worked on.
//
// Data that do not fit in memory are mapped from a file (structure.hpp, release()), and passes go from
// window to window. Whoever loops over examples asks for their window first; what belongs to it (the
// planes of its examples) is then in memory, and what belonged to the window before may have left. Without
// windows all of it is there all the time, and nothing is asked.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common.hpp"

namespace mm {

class Windows {
 public:
  static constexpr std::size_t kNoWindow = ~std::size_t{0};

  // Window k has the examples from ends[k - 1] (0 for the first) to ends[k] - 1.
  explicit Windows(std::vector<std::size_t> ends) : ends_(std::move(ends)) {
    std::size_t before = 0;
    for (const std::size_t end : ends_) {
      if (end <= before) throw BadInput("the ends of windows must ascend");
      before = end;
    }
    if (ends_.empty()) throw BadInput("there must be at least one window");
  }
  virtual ~Windows() = default;
  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;

  std::size_t size() const { return ends_.size(); }
  std::size_t begin(std::size_t k) const { return k == 0 ? 0 : ends_[k - 1]; }
  std::size_t end(std::size_t k) const { return ends_[k]; }
  std::size_t current() const { return current_; }
  const std::vector<std::size_t>& ends() const { return ends_; }
  std::size_t of(std::size_t i) const {
    return std::size_t(std::upper_bound(ends_.begin(), ends_.end(), i) - ends_.begin());
  }

  // Work on window k from here on.
  void enter(std::size_t k) {
    if (k == current_) return;
    leave();
    load(k);
    current_ = k;
    low_ = begin(k), high_ = end(k);
  }
  // ... on the window of example i.
  void visit(std::size_t i) {
    if (i < low_ || i >= high_) [[unlikely]] enter(of(i));
  }
  // Work on none.
  void leave() {
    if (current_ == kNoWindow) return;
    store(current_);  // if that fails, all is as it was
    current_ = kNoWindow;
    low_ = high_ = 0;
  }

  // Numbers that are summed over the examples of a window.
  struct Sums {
    double loss = 0.0, price = 0.0;                  // as in Blocks
    std::size_t parts = 0, planes = 0, bytes = 0;  // of the planes, whether or not they are in memory
  };
  virtual Sums sums(std::size_t k) const = 0;

 protected:
  virtual void load(std::size_t k) = 0;
  virtual void store(std::size_t k) = 0;

 private:
  std::vector<std::size_t> ends_;
  std::size_t current_ = kNoWindow, low_ = 0, high_ = 0;
};

// f(begin, end) for the examples of each window in order; for all n at once where there are no windows.
template <class F>
void for_windows(Windows* windows, std::size_t n, F&& f) {
  if (windows == nullptr) return f(std::size_t{0}, n);
  for (std::size_t k = 0; k < windows->size(); ++k) {
    windows->enter(k);
    f(windows->begin(k), windows->end(k));
  }
}

}  // namespace mm
