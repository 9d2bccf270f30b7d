// A batch of encoded sequences that Python owns, checked once so that no kernel can read outside.
#pragma once

#include "bindings.hpp"
#include "chain.hpp"
#include "problem_of.hpp"

namespace mm {

class ChainProblem final : public ProblemOf<Chain, ChainData> {
 public:
  ChainProblem(std::size_t n_labels, std::size_t n_sparse, Array<std::int64_t> offsets,
               std::optional<Array<std::int64_t>> indptr,
               std::optional<Array<std::uint32_t>> indices, std::optional<Array<float>> values,
               std::optional<Array<float, 2>> dense32, std::optional<Array<double, 2>> dense64,
               std::optional<Array<std::int32_t>> labels,
               std::optional<Array<float>> token_weight, std::optional<Array<double, 2>> cost,
               std::optional<Array<double>> example_weight, std::size_t n_pair,
               std::optional<Array<std::int64_t>> pair_indptr,
               std::optional<Array<std::uint32_t>> pair_indices,
               std::optional<Array<double>> values64, std::optional<Array<double>> token_weight64,
               std::optional<Array<std::uint8_t>> mapping, std::uint64_t file_hash);

  template <class T>
  const Chain<T>* chain() {
    return built<T>();
  }
};

}  // namespace mm
