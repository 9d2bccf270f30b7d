// Python bindings of examples with one row of features each (signed_rows.hpp).
#include <cmath>

#include "bind_tokens.hpp"
#include "problem_of.hpp"
#include "signed_rows.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

class RowProblem final : public ProblemOf<SignedRows, RowData> {
 public:
  RowProblem(Array<double> above, Array<double> below, std::size_t n_sparse, std::optional<Array<std::int64_t>> indptr,
             std::optional<Array<std::uint32_t>> indices, std::optional<Array<float>> values, std::optional<Array<double>> values64,
             std::optional<Array<float, 2>> dense32, std::optional<Array<double, 2>> dense64, std::optional<Array<double>> example_weight) {
    const auto keep = [this](const auto& array) { this->keep(array); };
    data_.n = above.shape(0);
    require(data_.n >= 1, "at least one example is needed");
    require(below.shape(0) == data_.n, "above and below differ in length");
    data_.above = above.data(), data_.below = below.data();
    keep(above), keep(below);
    for (std::size_t i = 0; i < data_.n; ++i) {
      const double up = data_.above[i], down = data_.below[i];
      const auto usable = [](double l) { return l == -kInfinity || std::abs(l) <= kMaxValue; };
      require(usable(up) && usable(down), "a bound is neither a number of at most 1e12 nor -inf");
      require(up != -kInfinity || down != -kInfinity, "an example has neither of the two bounds");
      require(up == -kInfinity || down == -kInfinity || up + down <= 0.0, "above + below is more than 0");
    }
    take_tokens(data_, n_sparse, data_.n, {indptr, indices, values, values64, dense32, dense64}, keep);
    require(data_.n_token_rows() >= 1, "at least one feature is needed");
    take_example_weights(example_weight, data_.n, "example", data_.example_weight, keep);
  }
};

}  // namespace

void bind_rows(nb::module_& m) {
  nb::class_<RowProblem, Problem>(m, "RowProblem",
                                  "Examples with one row x each, of which w.x >= above and -w.x >= below is wanted; -inf: no such bound.")
      .def(nb::init<Array<double>, Array<double>, std::size_t, std::optional<Array<std::int64_t>>, std::optional<Array<std::uint32_t>>,
                    std::optional<Array<float>>, std::optional<Array<double>>, std::optional<Array<float, 2>>,
                    std::optional<Array<double, 2>>, std::optional<Array<double>>>(),
           "above"_a, "below"_a, "n_sparse"_a, "indptr"_a = nb::none(), "indices"_a = nb::none(), "values"_a = nb::none(),
           "values64"_a = nb::none(), "dense32"_a = nb::none(), "dense64"_a = nb::none(), "example_weight"_a = nb::none());
}

}  // namespace mm
