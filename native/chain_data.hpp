// The encoded sequences of a chain: what is shared, read-only, by all threads and precisions.
#pragma once

#include "token_data.hpp"

namespace mm {

struct ChainData : TokenData {
  std::size_t n_labels = 0;
  std::size_t n_pair = 0;  // features of a token and two labels, its own and the one before

  std::span<const std::int64_t> offsets;        // [n + 1] first token of each sequence
  std::span<const std::int64_t> pair_indptr;    // [tokens + 1] into pair_indices; empty without them
  std::span<const std::uint32_t> pair_indices;  // pair features, ascending within a token
  const std::int32_t* labels = nullptr;     // [tokens] truth, nullptr when unknown
  const float* token_weight = nullptr;      // [tokens] factor of the loss, at most one of the two; neither: ones
  const double* token_weight64 = nullptr;
  const double* example_weight = nullptr;   // [n] factor of C, nullptr: ones
  const double* cost = nullptr;             // [L][L] cost[truth][label], nullptr: Hamming

  std::size_t size() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  std::size_t length(std::size_t i) const { return std::size_t(offsets[i + 1] - offsets[i]); }

  // Give back the pages of sequences begin .. end - 1, if they are mapped from a file.
  void release(std::size_t begin, std::size_t end) const {
    if (!mapping.there()) return;
    const std::size_t first = std::size_t(offsets[begin]), last = std::size_t(offsets[end]);
    release_tokens(first, last);
    if (!pair_indptr.empty()) {
      mapping.release(pair_indices.data() + pair_indptr[first], std::size_t(pair_indptr[last] - pair_indptr[first]));
      mapping.release(pair_indptr.data() + first, last - first + 1);
    }
    if (labels != nullptr) mapping.release(labels + first, last - first);
    mapping.release(offsets.data() + begin, end - begin + 1);
  }

  std::uint64_t file_hash = 0;  // of the features and labels, from the file that they are mapped from

  // A hash of all of it, so that a checkpoint knows its own data.
  std::uint64_t data_hash() const {
    DataHash hash(n_labels);
    const std::size_t tokens = std::size_t(offsets.back());
    if (mapping.there()) {
      hash.mix_number(file_hash);
    } else {
      hash.mix(offsets.data(), offsets.size_bytes());
      mix_into(hash, tokens);
      hash.mix(pair_indptr.data(), pair_indptr.size_bytes());
      hash.mix(pair_indices.data(), pair_indices.size_bytes());
      hash.mix(labels, tokens * sizeof(std::int32_t));
    }
    hash.mix(token_weight, tokens * sizeof(float));
    hash.mix(token_weight64, tokens * sizeof(double));
    hash.mix(example_weight, size() * sizeof(double));
    hash.mix(cost, n_labels * n_labels * sizeof(double));
    return hash.value();
  }

  // Rows of the weight matrix: sparse features, dense features, transitions by first label,
  // start, end, pair features by feature and first label.
  std::size_t row_transition() const { return n_token_rows(); }
  std::size_t row_start() const { return row_transition() + n_labels; }
  std::size_t row_end() const { return row_start() + 1; }
  std::size_t row_pair() const { return row_end() + 1; }
  std::size_t n_rows() const { return row_pair() + n_pair * n_labels; }

  double token_loss(std::size_t token, std::size_t truth, std::size_t label) const {
    const double base = cost != nullptr ? cost[truth * n_labels + label] : (truth != label ? 1.0 : 0.0);
    return weighs_tokens() ? base * weight_of(token) : base;
  }

  bool weighs_tokens() const { return token_weight != nullptr || token_weight64 != nullptr; }
  double weight_of(std::size_t token) const {
    return token_weight != nullptr ? double(token_weight[token]) : token_weight64 != nullptr ? token_weight64[token] : 1.0;
  }
};

}  // namespace mm
