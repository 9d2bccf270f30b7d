// A batch of encoded sequences that Python owns, checked once so that no kernel can read outside.
#pragma once

#include "bindings.hpp"
#include "chain.hpp"
#include "problem.hpp"

namespace mm {

class ChainProblem final : public Problem {
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
               std::optional<Array<double>> values64, std::optional<Array<double>> token_weight64);

  std::size_t n_examples() const override { return data_.size(); }
  std::uint64_t fingerprint() const override;
  const Structure<float>* single_precision() override { return chain<float>(); }
  const Structure<double>* double_precision() override { return chain<double>(); }
  void narrow(const double* from, float* to) override { repad(from, to); }
  void widen(const float* from, double* to) override { repad(from, to); }
  const ChainData& data() const { return data_; }

  template <class T>
  const Chain<T>* chain() {
    auto& slot = [this]() -> auto& {
      if constexpr (sizeof(T) == 4) {
        return single_;
      } else {
        return double_;
      }
    }();
    if (slot == nullptr) slot = std::make_unique<Chain<T>>(data_);
    return slot.get();
  }

 private:
  template <class From, class To>
  void repad(const From* from, To* to) const {
    const std::size_t L = data_.n_labels, old = padded_labels<From>(L), fresh = padded_labels<To>(L);
    for (std::size_t row = 0; row < data_.n_rows(); ++row) {
      for (std::size_t l = 0; l < L; ++l) to[row * fresh + l] = static_cast<To>(from[row * old + l]);
    }
  }

  ChainData data_;
  std::vector<nb::object> owners_;  // keep the arrays alive
  std::unique_ptr<Chain<float>> single_;
  std::unique_ptr<Chain<double>> double_;
};

}  // namespace mm
