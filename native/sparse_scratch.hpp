// A sparse vector under construction: a small hash table from index to value, emptied in one go.
#pragma once

#include "common.hpp"

namespace mm {

class SparseScratch {
 public:
  // Empty, with room for n entries.
  void clear(std::size_t n) {
    std::size_t slots = 64;
    int shift = 64 - 6;
    while (slots < 2 * n) slots *= 2, --shift;
    if (slots > slots_.size()) slots_.assign(slots, Slot{}), epoch_ = 0;
    shift_ = shift;
    mask_ = slots - 1;
    if (++epoch_ == 0) {
      slots_.assign(slots_.size(), Slot{});
      epoch_ = 1;
    }
  }

  void add(std::uint64_t index, double value) {
    Slot& slot = find(index);
    if (slot.epoch != epoch_) slot = {index, 0.0, epoch_};
    slot.value += value;
  }

  double get(std::uint64_t index) const {
    const Slot& slot = const_cast<SparseScratch*>(this)->find(index);
    return slot.epoch == epoch_ ? slot.value : 0.0;
  }

 private:
  struct Slot {
    std::uint64_t index = 0;
    double value = 0.0;
    std::uint32_t epoch = 0;
  };

  Slot& find(std::uint64_t index) {
    std::size_t at = (index * 0x9E3779B97F4A7C15ull) >> shift_;
    while (slots_[at].epoch == epoch_ && slots_[at].index != index) at = (at + 1) & mask_;
    return slots_[at];
  }

  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  int shift_ = 0;
  std::uint32_t epoch_ = 0;
};

}  // namespace mm
