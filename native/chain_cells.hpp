// The index of a part of a chain: all that a cached visit needs to know, in one piece of memory.
//
// A *cell* is a (token, label) at which some kept plane differs from the truth. The index lists
// the cells by token, each token with its surroundings and a copy of its feature ids, so that a
// visit does not have to collect them from the big arrays (on virtual machines a miss in the page
// table costs more than the data). Layout, in 32-bit words:
//   [number of cells]
//   per token: [token] [truth] [label before or kNone] [label after or kNone]
//              [number of cells here] [labels ...] [number of features] [ids ...] [values ...]
// (values only where the features are not all ones: a word each, or two where they are of 8 bytes).
#pragma once

#include <bit>

#include "chain_data.hpp"
#include "structure.hpp"

namespace mm {

inline constexpr std::uint32_t kNone = ~std::uint32_t{0};
// Room for labels that join the cells of an index later.
inline constexpr std::size_t kSpareLabels = 8;

// One token of an index.
struct CellToken {
  std::uint32_t token, truth, before, after;
  std::span<const Code> labels;
  std::span<const std::uint32_t> features;
  const Code* values;  // bits of floats, or of doubles if `wide`; nullptr: all ones
  bool wide;

  bool ones() const { return values == nullptr; }
  // f(value of the k-th feature), for loops over features that are not all ones: f is called with
  // a function of k that knows how wide the values are.
  template <class F>
  void with_values(F&& f) const {
    if (wide) {
      f([v = values](std::size_t k) {
        double x;
        std::memcpy(&x, v + 2 * k, sizeof x);
        return x;
      });
    } else {
      f([v = values](std::size_t k) { return std::bit_cast<float>(v[k]); });
    }
  }
};

// Walks over the tokens of an index.
class CellReader {
 public:
  // `words`: of a value, as ChainData::value_words().
  CellReader(CodeView index, std::size_t words) : at_(index.data()), end_(index.data() + index.size()), words_(words) {
    if (!index.empty()) ++at_;
  }
  static std::size_t n_cells(CodeView index) { return index.empty() ? 0 : index[0]; }

  bool next(CellToken& t) {
    if (at_ == end_) return false;
    t.token = at_[0];
    t.truth = at_[1];
    t.before = at_[2];
    t.after = at_[3];
    t.labels = {at_ + 5, at_[4]};
    at_ += 5 + at_[4];
    const std::size_t n = at_[0];
    t.features = {at_ + 1, n};
    at_ += 1 + n;
    t.values = words_ > 0 ? at_ : nullptr;
    t.wide = words_ == 2;
    at_ += words_ * n;
    return true;
  }

 private:
  const Code* at_;
  const Code* end_;
  std::size_t words_;
};

// Write the index of these cells, ascending codes (token << label_bits) | label.
inline void write_cells(const ChainData& data, int label_bits, std::size_t i, CodeView cells, std::vector<Code>& index) {
  const std::size_t first = std::size_t(data.offsets[i]), n = data.length(i), words = data.value_words();
  const Code mask = (Code{1} << label_bits) - 1;
  index.clear();
  if (cells.empty()) return;
  const auto entries = [&](std::size_t t) {
    return data.indptr.empty() ? std::size_t{0} : std::size_t(data.indptr[first + t + 1] - data.indptr[first + t]);
  };
  // The size first: an index is made often, and one that grows word by word is allocated often.
  std::size_t size = 1 + cells.size();
  for (std::size_t at = 0; at < cells.size(); ++at) {
    const std::size_t t = cells[at] >> label_bits;
    if (at == 0 || (cells[at - 1] >> label_bits) != t) size += 6 + (1 + words) * entries(t);
  }
  if (index.capacity() < size) index.reserve(size + kSpareLabels);
  index.resize(size);
  Code* out = index.data();
  *out++ = static_cast<Code>(cells.size());
  for (std::size_t at = 0; at < cells.size();) {
    const std::size_t t = cells[at] >> label_bits, token = first + t;
    *out++ = static_cast<Code>(t);
    *out++ = static_cast<Code>(data.labels[token]);
    *out++ = t == 0 ? kNone : static_cast<Code>(data.labels[token - 1]);
    *out++ = t + 1 == n ? kNone : static_cast<Code>(data.labels[token + 1]);
    Code* count = out++;
    for (; at < cells.size() && (cells[at] >> label_bits) == t; ++at) *out++ = cells[at] & mask;
    *count = static_cast<Code>(out - count - 1);
    const std::size_t here = entries(t);
    *out++ = static_cast<Code>(here);
    if (here == 0) continue;
    const std::size_t begin = std::size_t(data.indptr[token]);
    std::memcpy(out, data.indices.data() + begin, here * sizeof(Code));
    out += here;
    if (data.values != nullptr) std::memcpy(out, data.values + begin, here * sizeof(float));
    if (data.values64 != nullptr) std::memcpy(out, data.values64 + begin, here * sizeof(double));
    out += words * here;
  }
}

// The cells of an index, as codes.
inline void read_cells(CodeView index, std::size_t words, int label_bits, std::vector<Code>& cells) {
  cells.clear();
  CellReader reader(index, words);
  for (CellToken t; reader.next(t);) {
    for (const Code label : t.labels) cells.push_back((t.token << label_bits) | label);
  }
}

}  // namespace mm
