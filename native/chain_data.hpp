// The encoded sequences of a chain: what is shared, read-only, by all threads and precisions.
#pragma once

#include "common.hpp"
#include "token_kernel.hpp"

namespace mm {

struct ChainData {
  std::size_t n_labels = 0;
  std::size_t n_sparse = 0;  // sparse features
  std::size_t n_dense = 0;   // dense features a token
  std::size_t n_pair = 0;    // features of a token and two labels, its own and the one before

  std::span<const std::int64_t> offsets;    // [n + 1] first token of each sequence
  std::span<const std::int64_t> indptr;     // [tokens + 1] into indices; empty without sparse features
  std::span<const std::uint32_t> indices;   // feature ids, ascending within a token
  const float* values = nullptr;            // [len(indices)], at most one of the two; neither: all ones
  const double* values64 = nullptr;
  std::span<const std::int64_t> pair_indptr;    // [tokens + 1] into pair_indices; empty without them
  std::span<const std::uint32_t> pair_indices;  // pair features, ascending within a token
  const float* dense32 = nullptr;           // [tokens][n_dense], at most one of the two
  const double* dense64 = nullptr;
  const std::int32_t* labels = nullptr;     // [tokens] truth, nullptr when unknown
  const float* token_weight = nullptr;      // [tokens] factor of the loss, at most one of the two; neither: ones
  const double* token_weight64 = nullptr;
  const double* example_weight = nullptr;   // [n] factor of C, nullptr: ones
  // Inner products of tokens, where they are not those of the features; each token then has one
  // sparse feature, the number under which the kernel knows it.
  const TokenKernel* kernel = nullptr;
  const double* cost = nullptr;             // [L][L] cost[truth][label], nullptr: Hamming

  std::size_t size() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  std::uint64_t fingerprint() const;  // bind_chain.cpp
  std::size_t length(std::size_t i) const { return std::size_t(offsets[i + 1] - offsets[i]); }

  // Rows of the weight matrix: sparse features, dense features, transitions by first label,
  // start, end, pair features by feature and first label.
  std::size_t row_dense() const { return n_sparse; }
  std::size_t row_transition() const { return n_sparse + n_dense; }
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

  bool ones() const { return values == nullptr && values64 == nullptr; }
  double value(std::size_t e) const {
    return values != nullptr ? double(values[e]) : values64 != nullptr ? values64[e] : 1.0;
  }
  // 32-bit words that a value takes in an index of cells.
  std::size_t value_words() const { return values != nullptr ? 1 : values64 != nullptr ? 2 : 0; }
};

}  // namespace mm
