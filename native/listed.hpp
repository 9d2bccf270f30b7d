// Outputs that are listed: example i has so many of them, each with a sparse feature vector and a
// loss. The simplest structure of the family of sparse planes, and the most general: problem (1) of
// the dual-coordinate paper, max over j of l_ij - w.(x_i0 - x_ij), with the rows given.
#pragma once

#include "data_hash.hpp"
#include "sparse_planes.hpp"

namespace mm {

struct ListedData {
  std::size_t n_features = 0;
  std::span<const std::int64_t> offsets;   // [n + 1] first output of each example, its reference
  std::span<const std::int64_t> indptr;    // [outputs + 1] into indices
  std::span<const std::uint32_t> indices;  // below n_features
  const double* values = nullptr;          // [len(indices)]
  const double* loss = nullptr;            // [outputs], relative to the reference's
  const double* example_weight = nullptr;  // [n] factor of C, nullptr: ones

  std::size_t size() const { return offsets.size() - 1; }
  std::uint64_t data_hash() const {
    DataHash hash(n_features);
    hash.mix(offsets.data(), offsets.size_bytes());
    hash.mix(indptr.data(), indptr.size_bytes());
    hash.mix(indices.data(), indices.size_bytes());
    hash.mix(values, indices.size() * sizeof(double));
    hash.mix(loss, std::size_t(offsets.back()) * sizeof(double));
    hash.mix(example_weight, example_weight == nullptr ? 0 : size() * sizeof(double));
    return hash.value();
  }
};

template <class T>
class Listed final : public Outputs<T> {
 public:
  using Scratch = typename Outputs<T>::Scratch;
  using Workspace = typename Structure<T>::Workspace;

  explicit Listed(const ListedData& data)
      : data_(data), signed_(std::any_of(data.loss, data.loss + data.offsets.back(), [](double l) { return l < 0.0; })) {}

  std::size_t n_examples() const override { return data_.size(); }
  std::size_t n_weights() const override { return data_.n_features; }
  bool signed_losses() const override { return signed_; }
  double example_weight(std::size_t i) const override { return data_.example_weight != nullptr ? data_.example_weight[i] : 1.0; }

  void best(Scratch& ws, std::size_t i, const T* w, double scale) const override {
    Code top = 0;
    double most = -kInfinity;
    for (Code k = 0; k < n_outputs(i); ++k) {
      double value = scale * data_.loss[row(i, k)];
      for_entries(i, k, [&](std::uint32_t j, double x) { value += x * double(w[j]); });
      if (value > most) most = value, top = k;
    }
    ws.output.assign(1, top);
  }
  CodeView reference(std::size_t) const override { return {&kFirst, 1}; }
  void features(std::size_t i, CodeView output, SparseSum& f) const override {
    for_entries(i, output[0], [&](std::uint32_t j, double x) { f.add(j, x); });
  }
  double output_loss(std::size_t i, CodeView output) const override { return data_.loss[row(i, output[0])]; }

  double oracle_work(std::size_t i) const override {
    const std::size_t first = row(i, 0);
    return 100.0 + 2.0 * double(data_.indptr[first + n_outputs(i)] - data_.indptr[first]);
  }

  // Every output is its own grade: formulations of the margin are exact.
  bool offers_grades(bool) const override { return true; }
  bool grades(Workspace&, std::size_t i, const T* w, bool, std::vector<typename Structure<T>::Grade>& out) const override {
    out.clear();
    double own = 0.0;
    for_entries(i, 0, [&](std::uint32_t j, double x) { own += x * double(w[j]); });
    for (Code k = 1; k < n_outputs(i); ++k) {
      double margin = own;
      for_entries(i, k, [&](std::uint32_t j, double x) { margin -= x * double(w[j]); });
      out.push_back({data_.loss[row(i, k)], margin});
    }
    return true;
  }
  double take_grade(Workspace& base, std::size_t i, const T* w, std::size_t k) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const Code output = static_cast<Code>(k + 1);
    this->write_plane(ws, i, {&output, 1});
    return SparsePlane(ws.code).dot(w);
  }

 private:
  static constexpr Code kFirst = 0;
  std::size_t row(std::size_t i, std::size_t k) const { return std::size_t(data_.offsets[i]) + k; }
  std::size_t n_outputs(std::size_t i) const { return std::size_t(data_.offsets[i + 1] - data_.offsets[i]); }
  template <class Visit>
  void for_entries(std::size_t i, std::size_t k, Visit&& visit) const {
    for (std::int64_t e = data_.indptr[row(i, k)]; e < data_.indptr[row(i, k) + 1]; ++e) visit(data_.indices[std::size_t(e)], data_.values[e]);
  }

  ListedData data_;
  bool signed_;
};

}  // namespace mm
