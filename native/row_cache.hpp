// Rows of a matrix that is too large to keep: those used last, in a bounded number of bytes.
#pragma once

#include <list>
#include <unordered_map>

#include "common.hpp"

namespace mm {

template <class T>
class RowCache {
 public:
  // Room for at least one row, whatever the bound.
  RowCache(std::size_t n_rows, std::size_t row_size, std::size_t bytes)
      : row_size_(row_size),
        capacity_(std::clamp<std::size_t>(bytes / std::max<std::size_t>(row_size * sizeof(T), 1), 1, std::max<std::size_t>(n_rows, 1))) {}

  std::size_t capacity() const { return capacity_; }
  std::size_t bytes() const { return rows_.size() * row_size_ * sizeof(T); }

  // The row if it is here, which makes it the one used last; else nullptr.
  const T* find(std::uint32_t id) {
    const auto at = where_.find(id);
    if (at == where_.end()) return nullptr;
    rows_.splice(rows_.begin(), rows_, at->second);
    return at->second->values.data();
  }

  // Room for a row that is not here; the one whose last use is longest ago makes way.
  T* insert(std::uint32_t id) {
    if (rows_.size() < capacity_) {
      rows_.emplace_front();
      rows_.front().values.resize(row_size_);
    } else {
      rows_.splice(rows_.begin(), rows_, std::prev(rows_.end()));
      where_.erase(rows_.front().id);
    }
    rows_.front().id = id;
    where_[id] = rows_.begin();
    return rows_.front().values.data();
  }

  void clear() {
    rows_.clear();
    where_.clear();
  }

 private:
  struct Row {
    std::uint32_t id = 0;
    std::vector<T> values;
  };

  std::size_t row_size_, capacity_;
  std::list<Row> rows_;  // the one used last comes first
  std::unordered_map<std::uint32_t, typename std::list<Row>::iterator> where_;
};

}  // namespace mm
