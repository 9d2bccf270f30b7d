// The weights of a trained chain, most of which are zero: for each sparse feature the labels that
// it speaks for or against. A model of a few megabytes stays in the cache where the full matrix
// would not. What is not about sparse features (dense features, edges) is dense: the tail.
#pragma once

#include "chain_data.hpp"

namespace mm {

class SparseWeights {
 public:
  struct Entry {
    std::uint32_t label;
    float weight;
  };

  std::size_t n_rows() const { return starts_.size() - 1; }
  std::size_t n_labels() const { return n_labels_; }
  std::size_t row_size() const { return row_size_; }
  std::size_t n_entries() const { return entries_.size(); }
  const AlignedArray<float>& tail() const { return tail_; }  // [rows behind the sparse ones][Lp]
  std::span<const Entry> row(std::size_t f) const {
    return {entries_.data() + starts_[f], std::size_t(starts_[f + 1] - starts_[f])};
  }
  std::size_t bytes() const {
    return starts_.size() * sizeof(starts_[0]) + entries_.size() * sizeof(Entry) + tail_.size() * sizeof(float);
  }

  // [rows + 1] where each row begins; label and weight of each entry; the tail without padding.
  template <class Label>
  SparseWeights(std::size_t n_labels, std::size_t row_size, std::span<const std::uint32_t> starts,
                std::span<const Label> labels, std::span<const float> weights, std::span<const float> tail)
      : n_labels_(n_labels), row_size_(row_size), starts_(starts.begin(), starts.end()) {
    const auto good = [](bool condition, const char* what) {
      if (!condition) throw BadInput(what);
    };
    good(!starts.empty() && starts.front() == 0 && starts.back() == labels.size(), "the rows of the weights do not fit their entries");
    good(labels.size() == weights.size(), "labels and weights differ in number");
    good(std::is_sorted(starts.begin(), starts.end()), "the rows of the weights are not in order");
    good(n_labels > 0 && n_labels < (std::size_t{1} << 24) && tail.size() % n_labels == 0, "the dense rows of the weights are incomplete");
    entries_.reserve(labels.size());
    for (std::size_t k = 0; k < labels.size(); ++k) {
      good(labels[k] < n_labels, "a weight is of a label that does not exist");
      entries_.push_back({std::uint32_t(labels[k]), weights[k]});
    }
    for (std::size_t f = 0; f < n_rows(); ++f) {
      for (std::size_t k = starts_[f] + 1; k < starts_[f + 1]; ++k) {
        good(labels[k - 1] < labels[k], "the labels of a row are not in order");
      }
    }
    const std::size_t rows = tail.size() / n_labels;
    tail_.reset(rows * row_size);
    for (std::size_t r = 0; r < rows; ++r) std::copy_n(tail.data() + r * n_labels, n_labels, tail_.data() + r * row_size);
  }

  // S[t][l] = scores of the sparse features of n tokens, from token `first` on.
  void emissions(const ChainData& data, std::size_t first, std::size_t n, float* S) const {
    std::fill(S, S + n * row_size_, 0.0f);
    if (data.indptr.empty()) return;
    const std::uint32_t* f = data.indices.data();
    const std::int64_t end = data.indptr[first + n];
    constexpr std::int64_t kAhead = 12;  // entries of the data; a row is a random place in memory
    for (std::size_t t = 0; t < n; ++t) {
      float* row = S + t * row_size_;
      for (std::int64_t e = data.indptr[first + t]; e < data.indptr[first + t + 1]; ++e) {
        if (e + kAhead < end) mm::prefetch(entries_.data() + starts_[f[e + kAhead]]);
        const float x = data.ones() ? 1.0f : static_cast<float>(data.value(std::size_t(e)));
        const std::uint32_t stop = starts_[f[e] + 1];
        for (std::uint32_t k = starts_[f[e]]; k < stop; ++k) row[entries_[k].label] += x * entries_[k].weight;
      }
    }
  }

 private:
  std::size_t n_labels_, row_size_;
  std::vector<std::uint32_t> starts_;
  std::vector<Entry> entries_;
  AlignedArray<float> tail_;
};

}  // namespace mm
