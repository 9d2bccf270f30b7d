// The weights as one thread of several reads them: some rows from a copy of its own, the others from the array that
// all threads share (joint_steps.hpp says why). With one thread there is no copy.
#pragma once

#include <cstddef>

namespace mm {

// Before functions that read weights while other threads may write them. That race is intended (joint_steps.hpp): a
// weight of 4 or 8 aligned bytes is read as it was before or after an addition, and a step with either is as good. The
// thread sanitizer does not look at them; loads stay plain ones, for the vector code.
#define MM_READS_SHARED [[gnu::no_sanitize("thread")]]

template <class T>
struct OwnRows {
  const T* head = nullptr;    // copies of the weights below head_end
  std::size_t head_end = 0;
  const T* tail = nullptr;    // copies of the weights from tail_begin on; nullptr: there are none
  std::size_t tail_begin = 0;
};

// Where a visit reads the weights.
template <class T>
struct WeightView {
  WeightView(const T* w) : w(w), head(w) {}
  WeightView(const T* w, const OwnRows<T>& own) : w(w), head(own.head), head_end(own.head_end), tail(own.tail), tail_begin(own.tail_begin) {}

  // The row that begins at weight j and is not in the tail.
  const T* row(std::size_t j) const { return (j < head_end ? head : w) + j; }
  // Do other threads write there too? (A cache line that they wrote last is best fetched to be written at once.)
  bool written_by_others(std::size_t j) const { return tail != nullptr && j >= head_end; }
  // One that is.
  const T* tail_row(std::size_t j) const { return tail == nullptr ? w + j : tail + (j - tail_begin); }

  const T* w;
  const T* head;
  std::size_t head_end = 0;
  const T* tail = nullptr;
  std::size_t tail_begin = 0;
};

}  // namespace mm
