// What decoding is given from Python: weights, and which edges are allowed; both checked.
#pragma once

#include "bindings.hpp"
#include "chain_decode.hpp"
#include "chain_problem.hpp"

namespace mm {

// The weights that decoding takes: a full matrix of either precision, or sparse ones.
template <class Weights>
struct Precision;
template <class T>
struct Precision<Array<T>> {
  using type = T;
};
template <>
struct Precision<SparseWeights> {
  using type = float;
};

template <class T>
const T* checked_weights(const ChainData& data, const Array<T>& weights) {
  const std::size_t wanted = data.n_rows() * padded_labels<T>(data.n_labels);
  require(weights.shape(0) == wanted, "expected " + std::to_string(wanted) + " weights, got " + std::to_string(weights.shape(0)));
  require(reinterpret_cast<std::uintptr_t>(weights.data()) % 32 == 0, "weights must be aligned to 32 bytes");
  return weights.data();
}

inline const SparseWeights& checked_weights(const ChainData& data, const SparseWeights& weights) {
  const std::size_t rows = data.n_rows() - data.n_sparse;
  require(weights.n_rows() == data.n_sparse && weights.n_labels() == data.n_labels &&
              weights.tail().size() == rows * weights.row_size(),
          "the weights are of other features or labels than the data");
  return weights;
}

using Mask = std::optional<Array<std::uint8_t>>;

inline AllowedEdges allowed_edges(const ChainData& data, const Mask& transition, const Mask& start, const Mask& end) {
  const std::size_t L = data.n_labels;
  AllowedEdges allowed;
  const auto take = [](const Mask& mask, std::size_t size, const char* name) -> std::span<const std::uint8_t> {
    if (!mask) return {};
    require(mask->shape(0) == size, std::string("the mask of allowed ") + name + " has the wrong size");
    return {mask->data(), size};
  };
  allowed.transition = take(transition, L * L, "transitions");
  allowed.start = take(start, L, "starts");
  allowed.end = take(end, L, "ends");
  return allowed;
}

}  // namespace mm
