// The working set of one block: its planes, their multipliers and their Gram matrix, in one piece
// of memory so that visiting a block touches few cache lines and adding a plane rarely allocates.
//
// Plane 0 is the truth: no code, loss 0, Gram entries 0. Multipliers sum to one.
#pragma once

#include "structure.hpp"

namespace mm {

template <class K>
class WorkingSet {
 public:
  WorkingSet() = default;
  WorkingSet(const WorkingSet&) = delete;
  WorkingSet& operator=(const WorkingSet&) = delete;
  WorkingSet(WorkingSet&& other) noexcept { *this = std::move(other); }
  WorkingSet& operator=(WorkingSet&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(n_, other.n_);
    std::swap(capacity_, other.capacity_);
    std::swap(code_capacity_, other.code_capacity_);
    return *this;
  }
  ~WorkingSet() { std::free(memory_); }

  // Planes including the truth. An untouched block has no memory at all.
  std::size_t size() const { return n_; }
  bool untouched() const { return memory_ == nullptr; }

  double* alpha() { return reinterpret_cast<double*>(memory_); }
  const double* alpha() const { return reinterpret_cast<const double*>(memory_); }
  double* loss() { return alpha() + capacity_; }
  const double* loss() const { return alpha() + capacity_; }
  K* gram() { return reinterpret_cast<K*>(loss() + capacity_); }
  const K* gram() const { return reinterpret_cast<const K*>(loss() + capacity_); }
  std::size_t stride() const { return capacity_; }
  CodeView code(std::size_t k) const { return {codes() + ends()[k], ends()[k + 1] - ends()[k]}; }
  std::span<const Code> all_codes() const { return {codes(), untouched() ? 0 : ends()[n_]}; }
  std::size_t bytes() const {
    return untouched() ? 0 : layout_bytes(capacity_, code_capacity_);
  }

  void views(std::vector<CodeView>& out) const {
    out.resize(n_);
    for (std::size_t k = 0; k < n_; ++k) out[k] = code(k);
  }

  // Which plane has this code, or size() if none.
  std::size_t find(CodeView wanted) const {
    for (std::size_t k = 1; k < n_; ++k) {
      const CodeView c = code(k);
      if (c.size() == wanted.size() && std::equal(c.begin(), c.end(), wanted.begin())) return k;
    }
    return n_;
  }

  void start() {
    grow(4, 16);
    n_ = 1;
    alpha()[0] = 1.0;
    loss()[0] = 0.0;
    gram()[0] = K(0);
    ends()[0] = ends()[1] = 0;
  }

  // Add a plane with multiplier zero; row[k] is its Gram entry with plane k, row[n] with itself.
  void add(CodeView code, double plane_loss, const double* row) {
    const std::size_t used = ends()[n_];
    grow(n_ + 1, used + code.size());
    const std::size_t k = n_++;
    alpha()[k] = 0.0;
    loss()[k] = plane_loss;
    for (std::size_t j = 0; j <= k; ++j) gram()[k * capacity_ + j] = gram()[j * capacity_ + k] = K(row[j]);
    std::copy(code.begin(), code.end(), codes() + used);
    ends()[k + 1] = static_cast<std::uint32_t>(used + code.size());
  }

  // Keep the planes for which keep(k) holds (the truth always stays); returns how many went.
  template <class Keep>
  std::size_t prune(Keep&& keep, std::vector<std::uint32_t>& survivors) {
    survivors.clear();
    for (std::uint32_t k = 0; k < n_; ++k) {
      if (k == 0 || keep(k)) survivors.push_back(k);
    }
    const std::size_t m = survivors.size();
    if (m == n_) return 0;
    std::uint32_t at = 0;
    for (std::size_t a = 0; a < m; ++a) {
      const std::size_t from = survivors[a];
      const std::uint32_t begin = ends()[from], end = ends()[from + 1];
      alpha()[a] = alpha()[from];
      loss()[a] = loss()[from];
      for (std::size_t b = 0; b < m; ++b) {
        gram()[a * capacity_ + b] = gram()[from * capacity_ + survivors[b]];
      }
      std::copy(codes() + begin, codes() + end, codes() + at);
      ends()[a] = at;
      at += end - begin;
    }
    const std::size_t gone = n_ - m;
    n_ = static_cast<std::uint32_t>(m);
    ends()[m] = at;
    return gone;
  }

 private:
  std::uint32_t* ends() {
    return reinterpret_cast<std::uint32_t*>(gram() + std::size_t(capacity_) * capacity_);
  }
  const std::uint32_t* ends() const { return const_cast<WorkingSet*>(this)->ends(); }
  Code* codes() { return ends() + capacity_ + 1; }
  const Code* codes() const { return const_cast<WorkingSet*>(this)->codes(); }

  static std::size_t layout_bytes(std::size_t planes, std::size_t codes) {
    return 2 * planes * sizeof(double) + planes * planes * sizeof(K) +
           (planes + 1 + codes) * sizeof(std::uint32_t);
  }

  void grow(std::size_t planes, std::size_t words) {
    if (memory_ != nullptr && planes <= capacity_ && words <= code_capacity_) return;
    std::size_t cap = std::max<std::size_t>(capacity_, 4);
    while (cap < planes) cap += cap / 2;
    std::size_t code_cap = std::max<std::size_t>(code_capacity_, 16);
    if (code_cap < words) code_cap = words + words / 2;
    WorkingSet bigger;
    bigger.memory_ = static_cast<std::byte*>(std::malloc(layout_bytes(cap, code_cap)));
    if (bigger.memory_ == nullptr) throw std::bad_alloc();
    bigger.capacity_ = static_cast<std::uint32_t>(cap);
    bigger.code_capacity_ = static_cast<std::uint32_t>(code_cap);
    bigger.n_ = n_;
    if (memory_ != nullptr) {
      std::copy(alpha(), alpha() + n_, bigger.alpha());
      std::copy(loss(), loss() + n_, bigger.loss());
      for (std::size_t a = 0; a < n_; ++a) {
        std::copy(gram() + a * capacity_, gram() + a * capacity_ + n_, bigger.gram() + a * cap);
      }
      std::copy(ends(), ends() + n_ + 1, bigger.ends());
      std::copy(codes(), codes() + ends()[n_], bigger.codes());
    }
    *this = std::move(bigger);
  }

  std::byte* memory_ = nullptr;
  std::uint32_t n_ = 0, capacity_ = 0, code_capacity_ = 0;
};

}  // namespace mm
