// The planes of a share of the examples by windows: those of most windows wait in a file.
//
// Policy. The planes of the window that is worked on are in memory. When it is left they stay there if all
// planes in memory take no more than `limit` bytes; else they go to the file, with their multipliers and
// Gram matrices, and come back when the window is entered again. No plane is ever given up for want of
// memory, and no number changes by a journey to the file and back: u, w and all later steps are, bit for
// bit, those of a run with memory for everything. What the structure keeps for the examples of a window
// (inner products of tokens) counts as theirs, and is given up when they go to the file; the pages of mapped
// data are given back whenever a window is left.
#pragma once

#include "engine_state.hpp"
#include "window_file.hpp"

namespace mm {

template <class T>
class PlaneWindows final : public Windows {
 public:
  PlaneWindows(const Structure<T>& structure, Blocks<T>& blocks, std::vector<std::size_t> ends, std::size_t limit, int descriptor)
      : Windows(std::move(ends)), structure_(structure), blocks_(blocks), limit_(limit), file_(descriptor, size()), kept_(size()) {
    if (end(size() - 1) != blocks.n_examples()) throw BadInput("the windows must have all examples");
  }

  Sums sums(std::size_t k) const override { return k == current() ? counted(k) : kept_[k].sums; }
  std::size_t file_bytes() const { return file_.bytes(); }
  std::size_t n_away() const {
    return std::size_t(std::count_if(kept_.begin(), kept_.end(), [](const Kept& kept) { return kept.away; }));
  }

  // The planes of a window as a checkpoint has them.
  std::vector<std::byte> state(std::size_t k) {
    enter(k);
    return packed(save_state(blocks_, begin(k), end(k)));
  }
  void restore(std::size_t k, std::span<const std::byte> piece) {
    enter(k);
    put(k, restored(k, piece));
  }

 protected:
  void load(std::size_t k) override {
    if (!kept_[k].away) return;
    put(k, restored(k, file_.get(k)));
    kept_[k].away = false;
    kept_[k].sums = counted(k);
    in_memory_ += kept_[k].sums.bytes;
  }

  void store(std::size_t k) override {
    Kept& kept = kept_[k];
    const Sums now = counted(k);
    const std::size_t total = in_memory_ - kept.sums.bytes + now.bytes;
    const bool away = total > limit_ && now.bytes > 0 && file_.there();
    if (away) file_.put(k, packed(save_state(blocks_, begin(k), end(k))));
    kept.sums = now;
    kept.away = away;
    in_memory_ = away ? total - now.bytes : total;
    if (away) put(k, std::vector<Parts<T>>(end(k) - begin(k)));
    structure_.release(begin(k), end(k), away);
  }

 private:
  struct Kept {
    Sums sums;
    bool away = false;
  };

  void put(std::size_t k, std::vector<Parts<T>>&& parts) {
    std::move(parts.begin(), parts.end(), blocks_.parts().begin() + std::ptrdiff_t(begin(k)));
  }

  std::vector<Parts<T>> restored(std::size_t k, std::span<const std::byte> piece) const {
    return restore_parts(unpacked<T>(piece), structure_, blocks_.factored(), blocks_.unconstrained(), begin(k), end(k));
  }

  Sums counted(std::size_t k) const {
    Sums sums;
    sums.loss = blocks_.loss_of(begin(k), end(k));
    sums.price = blocks_.price_of(begin(k), end(k));
    const auto size = blocks_.size_of(begin(k), end(k));
    sums.parts = size.parts, sums.planes = size.planes;
    sums.bytes = size.bytes + structure_.cache_bytes(begin(k), end(k));
    return sums;
  }

  const Structure<T>& structure_;
  Blocks<T>& blocks_;
  std::size_t limit_, in_memory_ = 0;
  WindowFile file_;
  std::vector<Kept> kept_;
};

}  // namespace mm
