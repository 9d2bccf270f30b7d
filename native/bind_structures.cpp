// Python bindings of native structures that need nothing but their data: one class, one call each.
#include "bind_classes.hpp"
#include "listed.hpp"
#include "multiclass.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

class ListedProblem final : public ProblemOf<Listed, ListedData> {
 public:
  ListedProblem(std::size_t n_features, Array<std::int64_t> offsets, Array<std::int64_t> indptr, Array<std::uint32_t> indices,
                Array<double> values, Array<double> loss, std::optional<Array<double>> example_weight) {
    const auto view = [](const auto& array) { return std::span(array.data(), array.shape(0)); };
    data_ = {n_features, view(offsets), view(indptr), view(indices), values.data(), loss.data(), example_weight ? example_weight->data() : nullptr};
    keep(offsets), keep(indptr), keep(indices), keep(values), keep(loss);
    if (example_weight) keep(*example_weight);
    require(n_features >= 1 && n_features <= ~std::uint32_t{0}, "expected between 1 and 2^32 - 1 features");
    require(data_.offsets.size() >= 2 && data_.offsets.front() == 0, "offsets must begin with 0 and end with the number of outputs");
    for (std::size_t i = 1; i < data_.offsets.size(); ++i) {
      if (data_.offsets[i] <= data_.offsets[i - 1]) throw BadInput("example " + std::to_string(i - 1) + " has no output");
    }
    const std::size_t rows = std::size_t(data_.offsets.back()), n = data_.indices.size();
    require(loss.shape(0) == rows, "expected one loss for each output");
    require(values.shape(0) == n, "values and indices differ in length");
    require(data_.indptr.size() == rows + 1 && data_.indptr.front() == 0 && data_.indptr.back() == std::int64_t(n),
            "indptr must run from 0 to the number of indices, with one entry more than there are outputs");
    for (std::size_t r = 0; r < rows; ++r) require(data_.indptr[r] <= data_.indptr[r + 1], "indptr must not decrease");
    for (std::size_t e = 0; e < n; ++e) {
      require(data_.indices[e] < n_features, "a feature is out of range");
      require(std::isfinite(data_.values[e]), "a feature is not finite");
    }
    for (std::size_t r = 0; r < rows; ++r) require(std::isfinite(data_.loss[r]), "a loss is not finite");
    for (std::size_t i = 0; i < data_.size(); ++i) {
      require(data_.loss[data_.offsets[i]] == 0.0, "the first output of an example is its reference: its loss must be 0");
    }
    if (!example_weight) return;
    require(example_weight->shape(0) == data_.size(), "expected one weight for each example");
    for (std::size_t i = 0; i < data_.size(); ++i) {
      require(data_.example_weight[i] >= 0.0 && data_.example_weight[i] <= 1e30, "the weight of an example is negative or not finite");
    }
  }
};

}  // namespace

void bind_structures(nb::module_& m) {
  bind_classes<Multiclass>(m, "MulticlassProblem", "Examples with one of some classes each (Crammer and Singer).");
  nb::class_<ListedProblem, Problem>(m, "ListedProblem", "Examples whose outputs are listed, each as a sparse row and a loss; the first is the reference.")
      .def(nb::init<std::size_t, Array<std::int64_t>, Array<std::int64_t>, Array<std::uint32_t>, Array<double>, Array<double>,
                    std::optional<Array<double>>>(),
           "n_features"_a, "offsets"_a, "indptr"_a, "indices"_a, "values"_a, "loss"_a, "example_weight"_a = nb::none());
}

}  // namespace mm
