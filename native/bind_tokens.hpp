// Tokens with features as Python hands them over: arrays, checked once so that nothing reads outside.
#pragma once

#include "bindings.hpp"
#include "token_data.hpp"

namespace mm {

struct TokenArrays {
  std::optional<Array<std::int64_t>> indptr;
  std::optional<Array<std::uint32_t>> indices;
  std::optional<Array<float>> values;
  std::optional<Array<double>> values64;
  std::optional<Array<float, 2>> dense32;
  std::optional<Array<double, 2>> dense64;
};

// Sparse rows of ids below n_features, one for each token.
template <class Keep>
void take_rows(const std::optional<Array<std::int64_t>>& indptr, const std::optional<Array<std::uint32_t>>& indices,
               std::size_t n_features, std::size_t tokens, std::span<const std::int64_t>& ends,
               std::span<const std::uint32_t>& ids, Keep&& keep, const Mapping& mapping = {}) {
  require(indptr.has_value() == indices.has_value(), "indptr and indices go together");
  if (!indptr) {
    require(n_features == 0, "without indices there must be no features");
    return;
  }
  ends = {indptr->data(), indptr->shape(0)};
  ids = {indices->data(), indices->shape(0)};
  keep(*indptr);
  keep(*indices);
  require(ends.size() == tokens + 1, "indptr must have one entry more than there are tokens");
  require(ends.front() == 0 && ends.back() == std::int64_t(ids.size()), "indptr must run from 0 to the number of indices");
  // In pieces, of which the pages are given back if they are mapped. Without branches within a row, and so
  // with vectors: the data of each tagged batch come by here.
  constexpr std::size_t kPiece = 1 << 16;
  bool good = true;
  for (std::size_t begin = 0; begin < tokens; begin += kPiece) {
    const std::size_t end = std::min(begin + kPiece, tokens);
    for (std::size_t t = begin; t < end; ++t) require(ends[t] <= ends[t + 1] && ends[t + 1] <= ends.back(), "indptr must not decrease");
    std::uint32_t largest = 0;
    for (std::int64_t e = ends[begin]; e < ends[end]; ++e) largest = std::max(largest, ids[std::size_t(e)]);
    good &= ends[begin] == ends[end] || largest < n_features;
    for (std::size_t t = begin; t < end; ++t) {
      const std::uint32_t* row = ids.data() + ends[t];
      const std::int64_t n = ends[t + 1] - ends[t];
      bool ascending = true;
      for (std::int64_t k = 1; k < n; ++k) ascending &= row[k - 1] < row[k];
      good &= ascending;
    }
    mapping.release(ids.data() + ends[begin], std::size_t(ends[end] - ends[begin]));
    mapping.release(ends.data() + begin, end - begin);
  }
  require(good, "feature ids of a token must be ascending and below the number of features");
}

// An array of so many numbers, if there is one.
template <class X, class Keep>
void take_numbers(const std::optional<Array<X>>& array, std::size_t size, const X*& slot, const char* message, Keep&& keep) {
  if (!array) return;
  require(array->shape(0) == size, message);
  slot = array->data();
  keep(*array);
}

template <class Keep>
void take_tokens(TokenData& data, std::size_t n_sparse, std::size_t tokens, const TokenArrays& arrays, Keep&& keep) {
  require(n_sparse <= ~std::uint32_t{0}, "more sparse features than the index type holds (2^32 - 1)");
  data.n_sparse = n_sparse;
  take_rows(arrays.indptr, arrays.indices, n_sparse, tokens, data.indptr, data.indices, keep, data.mapping);
  require(!(arrays.values && arrays.values64), "values and token weights have one precision");
  constexpr const char* kLength = "values and indices differ in length";
  require(!(arrays.values || arrays.values64) || arrays.indptr.has_value(), kLength);
  take_numbers(arrays.values, data.indices.size(), data.values, kLength, keep);
  take_numbers(arrays.values64, data.indices.size(), data.values64, kLength, keep);
  require(!(arrays.dense32 && arrays.dense64), "dense features have one precision");
  const auto take_dense = [&](const auto& array, auto& slot) {
    if (!array) return;
    require(array->shape(0) == tokens, "dense features must have one row per token");
    require(array->shape(1) >= 1, "dense features must have at least one column");
    data.n_dense = array->shape(1);
    slot = array->data();
    keep(*array);
  };
  take_dense(arrays.dense32, data.dense32);
  take_dense(arrays.dense64, data.dense64);
}

// Factors of C, one for each example.
template <class Keep>
void take_example_weights(const std::optional<Array<double>>& weights, std::size_t n, const char* what, const double*& slot, Keep&& keep) {
  if (!weights) return;
  require(weights->shape(0) == n, std::string("example weights must have one entry per ") + what);
  for (std::size_t i = 0; i < n; ++i) {
    if (!(weights->data()[i] >= 0.0 && weights->data()[i] <= kMaxValue)) throw BadInput(std::string("the weight of a ") + what + " is negative or above 1e12");
  }
  slot = weights->data();
  keep(*weights);
}

// What each of the labels costs where another is the truth.
template <class Keep>
void take_costs(const std::optional<Array<double, 2>>& cost, std::size_t n_labels, const double*& slot, Keep&& keep) {
  if (!cost) return;
  require(cost->shape(0) == n_labels && cost->shape(1) == n_labels, "the cost matrix must be labels x labels");
  for (std::size_t l = 0; l < n_labels; ++l) {
    require(cost->data()[l * n_labels + l] == 0.0, "the cost matrix must have a zero diagonal");
  }
  slot = cost->data();
  keep(*cost);
}

}  // namespace mm
