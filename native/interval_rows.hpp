// A piecewise linear Γ over the auxiliary vectors v of a constrained chain, as blocks of the dual engine.
//
//   Γ(v) = Σ_i weight_i dist(A_i·v, [low_i, high_i]) = Σ_i weight_i max(0, A_i·v - high_i, low_i - A_i·v)
//
// A block has the zero plane as its reference and at most two more, Δf = -A_i with the loss -high_i and
// Δf = A_i with the loss low_i (F = l - v·Δf); losses have any sign. v stands where the constrained chain
// has it, so that both can be trained together (several.hpp).
#pragma once

#include "constrained_chain.hpp"

namespace mm {

struct IntervalData {
  std::span<const std::int64_t> indptr;    // [n + 1]
  std::span<const std::int64_t> indices;   // coordinates of v
  const double* values = nullptr;          // [len(indices)]
  const double* low = nullptr;             // [n], -inf: no bound
  const double* high = nullptr;            // [n], +inf: no bound
  const double* weight = nullptr;          // [n]
  ConstrainedData layout;                  // whose v it is about

  std::size_t size() const { return indptr.size() - 1; }
  std::uint64_t data_hash() const {
    DataHash hash(size());
    hash.mix(indptr.data(), indptr.size_bytes());
    hash.mix(indices.data(), indices.size_bytes());
    hash.mix(values, indices.size() * sizeof(double));
    hash.mix(low, size() * sizeof(double));
    hash.mix(high, size() * sizeof(double));
    hash.mix(weight, size() * sizeof(double));
    return hash.value();
  }
};

template <class T>
class IntervalRows final : public SparsePlanes<T, RowPlaces> {
 public:
  using Workspace = typename Structure<T>::Workspace;

  explicit IntervalRows(const IntervalData& data)
      : SparsePlanes<T, RowPlaces>(RowPlaces(data.layout.chain.n_labels, padded_labels<T>(data.layout.chain.n_labels))), data_(data),
        v_(auxiliary_weights<T>(data.layout)) {}

  struct Scratch final : Workspace {
    SparseSum sum;
  };
  std::unique_ptr<Workspace> workspace() const override { return std::make_unique<Scratch>(); }
  std::size_t n_examples() const override { return data_.size(); }
  std::size_t n_weights() const override { return (v_.first_row + v_.rows()) * v_.Lp; }
  std::size_t row_size() const override { return v_.Lp; }
  void rows_read(std::size_t i, std::vector<std::size_t>& rows) const override {
    rows.clear();
    for_entries(i, [&](std::size_t k, double) { rows.push_back(v_.row(k)); });
  }
  double example_weight(std::size_t i) const override { return data_.weight[i]; }
  bool signed_losses() const override { return true; }
  double oracle_work(std::size_t i) const override { return 60.0 + 4.0 * double(data_.indptr[i + 1] - data_.indptr[i]); }

  Found oracle(Workspace& base, std::size_t i, const T* w) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    double z = 0.0;
    for_entries(i, [&](std::size_t k, double x) { z += x * double(w[v_.place(k)]); });
    const double scale = ws.loss_scale;
    const double above = std::isfinite(data_.high[i]) ? z - scale * data_.high[i] : -kInfinity;
    const double below = std::isfinite(data_.low[i]) ? scale * data_.low[i] - z : -kInfinity;
    ws.code.clear();
    Found found;
    if (!(above > 0.0) && !(below > 0.0)) return found;
    const double sign = above > below ? 1.0 : -1.0;
    ws.sum.clear();
    for_entries(i, [&](std::size_t k, double x) { ws.sum.add(this->places().index(v_.row(k), v_.column(k)), -sign * x); });
    ws.sum.write(sign > 0.0 ? -data_.high[i] : data_.low[i], ws.code);
    found.truth = false;
    found.F = std::max(above, below);
    found.bound = found.F;
    return found;
  }

 private:
  template <class Visit>
  void for_entries(std::size_t i, Visit&& visit) const {
    for (std::int64_t e = data_.indptr[i]; e < data_.indptr[i + 1]; ++e) visit(std::size_t(data_.indices[std::size_t(e)]), data_.values[e]);
  }

  IntervalData data_;
  ExtraWeights v_;
};

}  // namespace mm
