// Python bindings of what the adapter of users' structures does with feature vectors.
#include "listed_planes.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

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

}  // namespace

void bind_features(nb::module_& m) {
  FeatureReader::prepare();
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
