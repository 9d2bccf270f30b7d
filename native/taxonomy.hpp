// Classification with a taxonomy (Tsochantaridis et al., ICML 2004, section 5.2): f(x, y) = x ⊗ λ(y).
//
// λ_z(y) is the square root of the weight v_z of node z where z is y or one of its ancestors, else zero, so that
// o(y, y') = λ(y).λ(y') is the weight of all nodes that y and y' have in common; with v = 1, their number. A node
// is a column of the weights. Classes need not be leaves, and a node may have several parents: all that is
// known here of the taxonomy is the list of the columns of each class. A class that no example has is scored by
// the columns of its ancestors.
#pragma once

#include "outer_planes.hpp"

namespace mm {

struct TaxonomyData : ClassData {
  std::size_t n_columns = 0;
  std::span<const std::int64_t> begins;   // [K + 1] first entry of each class
  std::span<const std::uint32_t> columns; // of λ, ascending within a class
  std::span<const double> values;         // of λ

  std::uint64_t data_hash() const {
    DataHash hash(n_columns);
    const std::uint64_t examples = ClassData::data_hash();
    hash.mix(&examples, sizeof examples);
    hash.mix(begins.data(), begins.size_bytes());
    hash.mix(columns.data(), columns.size_bytes());
    hash.mix(values.data(), values.size_bytes());
    return hash.value();
  }
};

template <class T>
class Taxonomy final : public OuterPlanes<T> {
 public:
  using Entry = typename OuterPlanes<T>::LambdaEntry;

  explicit Taxonomy(const TaxonomyData& data) : OuterPlanes<T>(data, data.n_columns), begins_(data.begins), entries_(data.columns.size()) {
    for (std::size_t e = 0; e < entries_.size(); ++e) entries_[e] = {data.columns[e], data.values[e]};
  }

  std::span<const Entry> lambda(std::size_t c) const override {
    const std::size_t begin = std::size_t(begins_[c]);
    return {entries_.data() + begin, std::size_t(begins_[c + 1]) - begin};
  }

  // Both lists ascend, and are as short as the taxonomy is deep: a table of all pairs would be larger than the caches.
  double overlap(std::size_t a, std::size_t b) const override {
    const auto one = lambda(a), other = lambda(b);
    double sum = 0.0;
    for (std::size_t i = 0, j = 0; i < one.size() && j < other.size();) {
      if (one[i].column == other[j].column) sum += one[i].value * other[j].value;
      const bool left = one[i].column <= other[j].column, right = other[j].column <= one[i].column;
      i += left, j += right;
    }
    return sum;
  }

  double oracle_work(std::size_t i) const override { return OuterPlanes<T>::oracle_work(i) + 2.0 * double(entries_.size()); }
  double gram_work(CodeView added, CodeView kept) const override {
    return OuterPlanes<T>::gram_work(added, kept) + 10.0 * double(kept.size() * entries_.size()) / double(begins_.size() - 1);
  }

 protected:
  void classes_of(typename OuterPlanes<T>::Scratch& ws) const override {
    const Entry* entry = entries_.data();
    for (std::size_t c = 0; c + 1 < begins_.size(); ++c) {
      double sum = 0.0;
      for (const Entry* end = entries_.data() + begins_[c + 1]; entry != end; ++entry) sum += entry->value * double(ws.S[entry->column]);
      ws.classes[c] = sum;
    }
  }

 private:
  std::span<const std::int64_t> begins_;
  std::vector<Entry> entries_;
};

}  // namespace mm
