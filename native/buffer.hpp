// Arrays that are made in native code and handed to NumPy.
#pragma once

#include <limits>

#include "common.hpp"

namespace mm {

// A growing array of numbers whose memory can be handed over. Uses realloc, which moves large
// blocks by page table and gives the unused rest back, where std::vector would copy.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() { std::free(data_); }

  std::size_t size() const { return size_; }
  const T* data() const { return data_; }
  T* data() { return data_; }
  void push(T x) {
    if (size_ == capacity_) resize_memory(std::max<std::size_t>(64, capacity_ * 2));
    data_[size_++] = x;
  }
  // Room for n more, to be written by the caller.
  T* extend(std::size_t n) {
    if (capacity_ - size_ < n) resize_memory(std::max(size_ + n, capacity_ * 2));
    size_ += n;
    return data_ + (size_ - n);
  }
  // Forget all but the first n.
  void truncate(std::size_t n) { size_ = std::min(size_, n); }
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  // The memory, never nullptr; to be freed with std::free.
  T* release() {
    resize_memory(std::max<std::size_t>(1, size_));
    size_ = capacity_ = 0;
    return std::exchange(data_, nullptr);
  }

 private:
  void resize_memory(std::size_t n) {
    if (n > std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T)) throw std::bad_alloc();
    T* bigger = static_cast<T*>(std::realloc(data_, n * sizeof(T)));
    if (bigger == nullptr) throw std::bad_alloc();
    data_ = bigger;
    capacity_ = n;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace mm
