// Fingerprint -> number: what a feature is known by, and where its weights are.
//
// A feature is known by a 64-bit hash of what it is made of, not by its name: a token has twenty of
// them, and putting together and comparing twenty strings a token would cost more than training.
// Two features of a model with n of them share a fingerprint with a chance of n^2 / 2^65: three in
// a hundred million for a million features. They would share their weights, and nothing else.
//
// Open addressing, 16 bytes a slot, at most five slots in eight used.
#pragma once

#include <bit>

#include "common.hpp"

namespace mm {

using Fingerprint = std::uint64_t;

class FeatureIndex {
 public:
  static constexpr std::uint32_t npos = 0xFFFFFFFFu;

  struct Slot {
    Fingerprint key;
    std::uint32_t next_id;  // id + 1; 0: the slot is empty
    std::uint32_t count;    // how often it was added
  };

  std::size_t size() const { return size_; }
  std::size_t bytes() const { return slots_.size() * sizeof(Slot); }

  void prefetch(Fingerprint key) const {
    if (slots_.size() > 0) mm::prefetch(slots_.data() + home(key));
  }

  std::uint32_t find(Fingerprint key) const {
    if (slots_.size() == 0) return npos;
    return slots_[probe(key)].next_id - 1;  // an empty slot gives npos
  }

  // The slot of the key, with the next number if it is new; its count goes up by one.
  const Slot& add(Fingerprint key) {
    if (size_ >= slots_.size() / 8 * 5) grow_to(std::max<std::size_t>(64, slots_.size() * 2));
    Slot& slot = slots_[probe(key)];
    if (slot.next_id == 0) {
      if (size_ + 1 >= npos) throw BadInput("there are more features than the index type holds");
      slot.key = key;
      slot.next_id = static_cast<std::uint32_t>(++size_);
    }
    ++slot.count;
    return slot;
  }

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].next_id != 0) visit(slots_[i]);
    }
  }

  // Slots for so many keys.
  void reserve(std::size_t keys) {
    std::size_t slots = std::max<std::size_t>(64, slots_.size());
    while (keys >= slots / 8 * 5) slots *= 2;
    if (slots > slots_.size()) grow_to(slots);
  }

 private:
  std::size_t home(Fingerprint key) const { return key >> shift_; }

  std::size_t probe(Fingerprint key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = home(key);
    while (slots_[at].next_id != 0 && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }

  void grow_to(std::size_t slots) {
    AlignedArray<Slot> old(slots);
    old.swap(slots_);
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots));
    for (std::size_t i = 0; i < old.size(); ++i) {
      if (old[i].next_id != 0) slots_[probe(old[i].key)] = old[i];
    }
  }

  AlignedArray<Slot> slots_;
  unsigned shift_ = 64;
  std::size_t size_ = 0;
};

}  // namespace mm
