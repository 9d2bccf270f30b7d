// Python bindings of what the adapter of users' structures does with feature vectors.
#include "bindings.hpp"
#include "feature_reader.hpp"
#include "plane_rows.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

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

std::span<const double> weights_of(const FlatBuffer& w) {
  require(w.is<double>(), "w must be a flat array of float64");
  return w.span<double>();
}

nb::object sparse_entries(nb::handle features, std::optional<std::size_t> n_features) {
  FeatureReader reader;
  if (!reader.read(features, n_features.value_or(0))) return nb::none();
  return nb::make_tuple(to_numpy(std::move(reader.indices())), to_numpy(std::move(reader.values())));
}

nb::object sparse_plane(nb::handle truth_indices, nb::handle truth_values, nb::handle features, nb::handle weights) {
  const FlatBuffer buffer(weights);
  const auto w = weights_of(buffer);
  FeatureReader found;
  if (!found.read(features, w.size())) return nb::none();
  const Entries truth(truth_indices, truth_values, w.size());
  double value = 0.0, scale = 0.0;
  const auto add = [&](const auto& indices, const auto& values, double sign) {
    double sum = 0.0;
    for (std::size_t k = 0; k < indices.size(); ++k) {
      const double x = values[k] * w[indices[k]];
      sum += x, scale += std::abs(x);
    }
    value += sign * sum;
  };
  add(found.indices(), found.values(), 1.0);
  add(truth.indices(), truth.values(), -1.0);
  std::vector<std::uint32_t> indices;
  std::vector<double> values;
  each_difference(truth.indices(), truth.values(), found.indices(), found.values(),
                  [&](std::uint32_t index, double x) { indices.push_back(index), values.push_back(x); });
  return nb::make_tuple(to_numpy(std::move(indices)), to_numpy(std::move(values)), value, scale);
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

}  // namespace

void bind_features(nb::module_& m) {
  m.def("sparse_entries", &sparse_entries, "features"_a.none(), "n_features"_a.none() = nb::none(),
        "Indices and values of a feature vector of a common kind; None where it must be looked at more closely.");
  m.def("sparse_plane", &sparse_plane, "truth_indices"_a, "truth_values"_a, "features"_a.none(), "w"_a,
        "Indices and values of the truth's features less these, w.f less that of the truth, and the scale of rounding errors of that.");
  nb::class_<ListedPlanes>(m, "ListedPlanes", "The planes of all outputs of an example.")
      .def(nb::init<nb::object, nb::object, std::size_t>(), "truth_indices"_a, "truth_values"_a, "n_features"_a)
      .def("__len__", &ListedPlanes::size)
      .def("add", &ListedPlanes::add, "features"_a.none(), "loss"_a)
      .def("add_truth", &ListedPlanes::add_truth)
      .def("shrink", &ListedPlanes::shrink)
      .def("best", &ListedPlanes::best, "w"_a)
      .def("best_by_loss", &ListedPlanes::best_by_loss, "w"_a, "any_loss"_a)
      .def("plane", &ListedPlanes::plane, "k"_a)
      .def_prop_ro("nbytes", &ListedPlanes::bytes);
}

}  // namespace mm
