// The planes of all outputs of an example of a user's structure, as Python builds them.
#pragma once

#include "bindings.hpp"
#include "feature_reader.hpp"
#include "plane_rows.hpp"

namespace mm {

// A sparse vector of the Python side, which was checked; indices that do not fit would be read
// outside of w.
class Entries {
 public:
  Entries(nb::handle indices, nb::handle values, std::size_t n_features) : indices_(indices), values_(values) {
    require(indices_.is<std::uint32_t>() && values_.is<double>() && indices_.size() == values_.size(),
            "expected indices of uint32 and as many values of float64");
    const auto js = this->indices();
    for (std::size_t k = 0; k < js.size(); ++k) require(js[k] < n_features && (k == 0 || js[k - 1] < js[k]), "the indices do not ascend or are out of range");
  }
  std::span<const std::uint32_t> indices() const { return indices_.span<std::uint32_t>(); }
  std::span<const double> values() const { return values_.span<double>(); }

 private:
  FlatBuffer indices_, values_;
};

inline std::span<const double> weights_of(const FlatBuffer& w) {
  require(w.is<double>(), "w must be a flat array of float64");
  return w.span<double>();
}

// PlaneRows with the features of the truth, for Python.
class ListedPlanes {
 public:
  ListedPlanes(nb::object truth_indices, nb::object truth_values, std::size_t n_features) : n_features_(n_features) {
    const Entries truth(truth_indices, truth_values, n_features);
    truth_indices_.assign(truth.indices().begin(), truth.indices().end());
    truth_values_.assign(truth.values().begin(), truth.values().end());
  }

  // False where the features must be brought into another form first.
  bool add(nb::handle features, double loss) {
    FeatureReader reader;
    if (!reader.read(features, n_features_)) return false;
    rows_.add(truth_indices_, truth_values_, reader.indices(), reader.values(), loss);
    return true;
  }
  void add_truth() { rows_.add_truth(); }
  void shrink() { rows_.shrink(); }
  std::size_t size() const { return rows_.size(); }
  std::size_t n_features() const { return n_features_; }
  PlaneRows& rows() { return rows_; }
  std::size_t bytes() const { return rows_.bytes() + truth_indices_.size() * (sizeof(std::uint32_t) + sizeof(double)); }

  // (row, l - w.Δf, Σ |w Δf|)
  nb::tuple best(nb::handle weights) const {
    const FlatBuffer buffer(weights);
    const double* w = fitting(buffer);
    require(rows_.size() > 0, "there is no output");
    const auto [k, value] = rows_.best(w);
    return nb::make_tuple(k, value, rows_.scale(k, w));
  }
  // [(row, w.Δf)]
  nb::list best_by_loss(nb::handle weights, bool any) {
    const FlatBuffer buffer(weights);
    std::vector<std::pair<std::size_t, double>> found;
    rows_.best_by_loss(fitting(buffer), any, found);
    nb::list out;
    for (const auto& [k, margin] : found) out.append(nb::make_tuple(k, margin));
    return out;
  }
  // (indices, values, loss, is_truth)
  nb::tuple plane(std::size_t k) const {
    require(k < rows_.size(), "there is no such output");
    const auto indices = rows_.indices(k);
    const auto values = rows_.values(k);
    return nb::make_tuple(to_numpy(std::vector<std::uint32_t>(indices.begin(), indices.end())),
                          to_numpy(std::vector<double>(values.begin(), values.end())), rows_.loss(k), rows_.is_truth(k));
  }

 private:
  const double* fitting(const FlatBuffer& buffer) const {
    const auto w = weights_of(buffer);
    require(w.size() == n_features_, "w does not fit the features");
    return w.data();
  }

  std::size_t n_features_;
  std::vector<std::uint32_t> truth_indices_;
  std::vector<double> truth_values_;
  PlaneRows rows_;
};

}  // namespace mm
