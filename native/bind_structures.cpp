// Python bindings of native structures that need nothing but their data: one class, one call each.
#include "bind_tokens.hpp"
#include "listed.hpp"
#include "multiclass.hpp"
#include "problem_of.hpp"

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

// Examples of a structure S on the family of outer products.
template <template <class> class S>
class ClassProblem final : public ProblemOf<S, ClassData> {
 public:
  ClassProblem(std::size_t n_classes, std::size_t n_sparse, Array<std::int32_t> labels, std::optional<Array<std::int64_t>> indptr,
               std::optional<Array<std::uint32_t>> indices, std::optional<Array<float>> values, std::optional<Array<double>> values64,
               std::optional<Array<float, 2>> dense32, std::optional<Array<double, 2>> dense64, std::optional<Array<double, 2>> cost,
               std::optional<Array<double>> example_weight) {
    const auto keep = [this](const auto& array) { this->keep(array); };
    ClassData& data = this->data_;
    require(n_classes >= 1 && n_classes < (std::size_t{1} << 24), "expected between 1 and 2^24 - 1 classes");
    data.n_classes = n_classes;
    data.labels = {labels.data(), labels.shape(0)};
    keep(labels);
    require(!data.labels.empty(), "at least one example is needed");
    for (const std::int32_t c : data.labels) require(c >= 0 && std::size_t(c) < n_classes, "label code out of range");
    take_tokens(data, n_sparse, data.size(), {indptr, indices, values, values64, dense32, dense64}, keep);
    require(data.n_token_rows() >= 1, "at least one feature is needed");
    take_costs(cost, n_classes, data.cost, keep);
    take_example_weights(example_weight, data.size(), "example", data.example_weight, keep);
  }

  // Scores of all classes, row by row.
  template <class T>
  nb::object scores(Array<T> weights) {
    const S<T>& structure = *this->template built<T>();
    require(weights.shape(0) == structure.n_weights(), "expected " + std::to_string(structure.n_weights()) + " weights, got " + std::to_string(weights.shape(0)));
    require(reinterpret_cast<std::uintptr_t>(weights.data()) % 32 == 0, "weights must be aligned to 32 bytes");
    const std::size_t n = this->data_.size(), K = this->data_.n_classes;
    std::vector<double> out(n * K);
    {
      nb::gil_scoped_release release;
      const auto base = structure.workspace();
      auto& ws = static_cast<typename OuterPlanes<T>::Scratch&>(*base);
      for (std::size_t i = 0; i < n; ++i) {
        structure.score_classes(ws, i, weights.data());
        std::copy(ws.classes.begin(), ws.classes.end(), out.begin() + std::ptrdiff_t(i * K));
      }
    }
    return to_numpy(std::move(out));
  }
};

template <template <class> class S>
void bind_classes(nb::module_& m, const char* name, const char* doc) {
  using P = ClassProblem<S>;
  nb::class_<P, Problem>(m, name, doc)
      .def(nb::init<std::size_t, std::size_t, Array<std::int32_t>, std::optional<Array<std::int64_t>>, std::optional<Array<std::uint32_t>>,
                    std::optional<Array<float>>, std::optional<Array<double>>, std::optional<Array<float, 2>>,
                    std::optional<Array<double, 2>>, std::optional<Array<double, 2>>, std::optional<Array<double>>>(),
           "n_classes"_a, "n_sparse"_a, "labels"_a, "indptr"_a = nb::none(), "indices"_a = nb::none(), "values"_a = nb::none(),
           "values64"_a = nb::none(), "dense32"_a = nb::none(), "dense64"_a = nb::none(), "cost"_a = nb::none(),
           "example_weight"_a = nb::none())
      .def("scores", &P::template scores<float>, "weights"_a, "Scores of all classes, row by row.")
      .def("scores", &P::template scores<double>, "weights"_a);
}

}  // namespace

void bind_structures(nb::module_& m) {
  bind_classes<Multiclass>(m, "MulticlassProblem", "Examples with one of some classes each (Crammer and Singer).");
  nb::class_<ListedProblem, Problem>(m, "ListedProblem", "Examples whose outputs are listed, each as a sparse row and a loss; the first is the reference.")
      .def(nb::init<std::size_t, Array<std::int64_t>, Array<std::int64_t>, Array<std::uint32_t>, Array<double>, Array<double>,
                    std::optional<Array<double>>>(),
           "n_features"_a, "offsets"_a, "indptr"_a, "indices"_a, "values"_a, "loss"_a, "example_weight"_a = nb::none());
}

}  // namespace mm
