// Python bindings of structures on the family of outer products (outer_planes.hpp): the arrays of their
// examples, checked once, and the scores of all classes.
#pragma once

#include "bind_tokens.hpp"
#include "outer_planes.hpp"
#include "prediction_loop.hpp"
#include "problem_of.hpp"

namespace mm {

// Examples of a structure S on the family of outer products.
template <template <class> class S, class Data = ClassData>
class ClassProblem : public ProblemOf<S, Data> {
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
    for (std::size_t k = 0; data.cost != nullptr && k < n_classes * n_classes; ++k) {
      require(data.cost[k] >= 0.0 && data.cost[k] <= kMaxValue, "a cost is negative or above 1e12");
    }
    take_example_weights(example_weight, data.size(), "example", data.example_weight, keep);
  }

  // Scores of all classes, row by row.
  template <class T>
  nb::object scores(Array<T> weights, int threads) {
    const std::size_t K = this->data_.n_classes;
    std::vector<double> out(this->data_.size() * K);
    for_all(weights, threads, [&](std::size_t i, const std::vector<double>& classes) {
      std::copy(classes.begin(), classes.end(), out.begin() + std::ptrdiff_t(i * K));
    });
    return to_numpy(std::move(out));
  }

  // The class with the highest score, the first of several.
  template <class T>
  nb::object predict(Array<T> weights, int threads) {
    std::vector<std::int32_t> out(this->data_.size());
    for_all(weights, threads, [&](std::size_t i, const std::vector<double>& classes) {
      out[i] = static_cast<std::int32_t>(std::max_element(classes.begin(), classes.end()) - classes.begin());
    });
    return to_numpy(std::move(out));
  }

  // The scores of the labels.
  template <class T>
  nb::object own_scores(Array<T> weights, int threads) {
    std::vector<double> out(this->data_.size());
    for_all(weights, threads, [&](std::size_t i, const std::vector<double>& classes) { out[i] = classes[std::size_t(this->data_.labels[i])]; });
    return to_numpy(std::move(out));
  }

 private:
  // take(i, scores of all classes) for all examples; each thread has a share of them.
  template <class T, class Take>
  void for_all(const Array<T>& weights, int threads, Take&& take) {
    const S<T>& structure = *this->template built<T>();
    require(weights.shape(0) == structure.n_weights(), "expected " + std::to_string(structure.n_weights()) + " weights, got " + std::to_string(weights.shape(0)));
    require(reinterpret_cast<std::uintptr_t>(weights.data()) % 32 == 0, "weights must be aligned to 32 bytes");
    const T* w = weights.data();
    for_predictions(threads, this->data_.size(), [&](std::size_t, auto) {
      return [&, base = structure.workspace()](std::size_t i) {
        auto& ws = static_cast<typename OuterPlanes<T>::Scratch&>(*base);
        structure.score_classes(ws, i, w);
        take(i, ws.classes);
      };
    });
  }
};

// Scores and predictions, of the class of Python that is bound to P.
template <class P>
void bind_class_scores(nb::class_<P, Problem>& bound) {
  using namespace nb::literals;
  bound.def("scores", &P::template scores<float>, "weights"_a, "threads"_a = 1, "Scores of all classes, row by row.")
      .def("scores", &P::template scores<double>, "weights"_a, "threads"_a = 1)
      .def("predict", &P::template predict<float>, "weights"_a, "threads"_a = 1, "The class with the highest score.")
      .def("predict", &P::template predict<double>, "weights"_a, "threads"_a = 1)
      .def("own_scores", &P::template own_scores<float>, "weights"_a, "threads"_a = 1, "Scores of the labels.")
      .def("own_scores", &P::template own_scores<double>, "weights"_a, "threads"_a = 1);
}

template <template <class> class S>
void bind_classes(nb::module_& m, const char* name, const char* doc) {
  using namespace nb::literals;
  using P = ClassProblem<S>;
  nb::class_<P, Problem> bound(m, name, doc);
  bound.def(nb::init<std::size_t, std::size_t, Array<std::int32_t>, std::optional<Array<std::int64_t>>, std::optional<Array<std::uint32_t>>,
                     std::optional<Array<float>>, std::optional<Array<double>>, std::optional<Array<float, 2>>,
                     std::optional<Array<double, 2>>, std::optional<Array<double, 2>>, std::optional<Array<double>>>(),
            "n_classes"_a, "n_sparse"_a, "labels"_a, "indptr"_a = nb::none(), "indices"_a = nb::none(), "values"_a = nb::none(),
            "values64"_a = nb::none(), "dense32"_a = nb::none(), "dense64"_a = nb::none(), "cost"_a = nb::none(),
            "example_weight"_a = nb::none());
  bind_class_scores(bound);
}

}  // namespace mm
