// Tokens with sparse and dense features: what structures over tokens share, read-only, whatever they
// predict. (A class of examples without a sequence is one token each.)
#pragma once

#include "common.hpp"
#include "data_hash.hpp"
#include "mapping.hpp"
#include "token_kernel.hpp"

namespace mm {

struct TokenData {
  std::size_t n_sparse = 0;  // sparse features
  std::size_t n_dense = 0;   // dense features a token

  std::span<const std::int64_t> indptr;     // [tokens + 1] into indices; empty without sparse features
  std::span<const std::uint32_t> indices;   // feature ids, ascending within a token
  const float* values = nullptr;            // [len(indices)], at most one of the two; neither: all ones
  const double* values64 = nullptr;
  const float* dense32 = nullptr;           // [tokens][n_dense], at most one of the two
  const double* dense64 = nullptr;
  // Inner products of tokens, where they are not those of the features; each token then has one
  // sparse feature, the number under which the kernel knows it.
  const TokenKernel* kernel = nullptr;

  Mapping mapping;  // the file that the arrays are mapped from, if any

  // Give back the pages of the features of tokens first .. last - 1.
  void release_tokens(std::size_t first, std::size_t last) const {
    if (!indptr.empty()) {
      const auto begin = std::size_t(indptr[first]), n = std::size_t(indptr[last]) - begin;
      mapping.release(indices.data() + begin, n);
      if (values != nullptr) mapping.release(values + begin, n);
      if (values64 != nullptr) mapping.release(values64 + begin, n);
      mapping.release(indptr.data() + first, last - first + 1);
    }
    if (dense32 != nullptr) mapping.release(dense32 + first * n_dense, (last - first) * n_dense);
    if (dense64 != nullptr) mapping.release(dense64 + first * n_dense, (last - first) * n_dense);
  }

  // Rows of weights: the sparse features, then the dense ones.
  std::size_t row_dense() const { return n_sparse; }
  std::size_t n_token_rows() const { return n_sparse + n_dense; }

  bool ones() const { return values == nullptr && values64 == nullptr; }
  double value(std::size_t e) const {
    return values != nullptr ? double(values[e]) : values64 != nullptr ? values64[e] : 1.0;
  }
  // 32-bit words that a value takes in an index of cells.
  std::size_t value_words() const { return values != nullptr ? 1 : values64 != nullptr ? 2 : 0; }

  // Features of a token that may be other than zero.
  std::size_t n_features(std::size_t token) const {
    return (indptr.empty() ? 0 : std::size_t(indptr[token + 1] - indptr[token])) + n_dense;
  }

  // visit(row, value) for the features of a token.
  template <class Visit>
  void for_features(std::size_t token, Visit&& visit) const {
    if (!indptr.empty()) {
      for (std::int64_t e = indptr[token]; e < indptr[token + 1]; ++e) visit(std::size_t(indices[std::size_t(e)]), value(std::size_t(e)));
    }
    for_dense(token, [&](std::size_t j, double x) { visit(row_dense() + j, x); });
  }
  // visit(column, value) for the dense features of a token.
  template <class Visit>
  void for_dense(std::size_t token, Visit&& visit) const {
    const std::size_t d = n_dense;
    if (dense32 != nullptr) {
      for (std::size_t j = 0; j < d; ++j) visit(j, dense32[token * d + j]);
    }
    if (dense64 != nullptr) {
      for (std::size_t j = 0; j < d; ++j) visit(j, dense64[token * d + j]);
    }
  }

  void mix_into(DataHash& hash, std::size_t tokens) const {
    hash.mix(indptr.data(), indptr.size_bytes());
    hash.mix(indices.data(), indices.size_bytes());
    hash.mix(values, indices.size() * sizeof(float));
    hash.mix(values64, indices.size() * sizeof(double));
    hash.mix(dense32, tokens * n_dense * sizeof(float));
    hash.mix(dense64, tokens * n_dense * sizeof(double));
  }
};

}  // namespace mm
