// Python bindings of classification with a taxonomy.
#include "bind_classes.hpp"
#include "taxonomy.hpp"

namespace mm {

namespace {

class TaxonomyProblem final : public ClassProblem<Taxonomy, TaxonomyData> {
 public:
  TaxonomyProblem(std::size_t n_columns, Array<std::int64_t> begins, Array<std::uint32_t> columns, Array<double> lambdas,
                  std::size_t n_sparse, Array<std::int32_t> labels, std::optional<Array<std::int64_t>> indptr,
                  std::optional<Array<std::uint32_t>> indices, std::optional<Array<float>> values, std::optional<Array<double>> values64,
                  std::optional<Array<float, 2>> dense32, std::optional<Array<double, 2>> dense64, std::optional<Array<double, 2>> cost,
                  std::optional<Array<double>> example_weight)
      : ClassProblem(classes_of(begins), n_sparse, labels, indptr, indices, values, values64, dense32, dense64, cost, example_weight) {
    require(n_columns >= 1 && n_columns < (std::size_t{1} << 24), "expected between 1 and 2^24 - 1 columns");
    data_.n_columns = n_columns;
    data_.begins = {begins.data(), begins.shape(0)};
    data_.columns = {columns.data(), columns.shape(0)};
    data_.values = {lambdas.data(), lambdas.shape(0)};
    this->keep(begins), this->keep(columns), this->keep(lambdas);
    require(data_.values.size() == data_.columns.size(), "columns and lambdas differ in length");
    require(data_.begins.front() == 0 && data_.begins.back() == std::int64_t(data_.columns.size()), "begins must run from 0 to the number of columns");
    for (std::size_t c = 0; c < data_.n_classes; ++c) {
      require(data_.begins[c] < data_.begins[c + 1] && data_.begins[c + 1] <= data_.begins.back(), "a class has no column");
      for (std::int64_t e = data_.begins[c]; e < data_.begins[c + 1]; ++e) {
        require(data_.columns[e] < n_columns, "a column is out of range");
        require(e == data_.begins[c] || data_.columns[e - 1] < data_.columns[e], "the columns of a class must be ascending");
        require(data_.values[e] > 0.0 && data_.values[e] <= 1e6, "an entry of lambda is not positive, or above 1e6");
      }
    }
  }

 private:
  static std::size_t classes_of(const Array<std::int64_t>& begins) {
    require(begins.shape(0) >= 2, "expected between 1 and 2^24 - 1 classes");
    return begins.shape(0) - 1;
  }
};

}  // namespace

void bind_taxonomy(nb::module_& m) {
  using namespace nb::literals;
  using P = TaxonomyProblem;
  nb::class_<P, Problem> bound(m, "TaxonomyProblem", "Examples with one of some classes each, which are nodes of a taxonomy.");
  bound.def(nb::init<std::size_t, Array<std::int64_t>, Array<std::uint32_t>, Array<double>, std::size_t, Array<std::int32_t>,
                     std::optional<Array<std::int64_t>>, std::optional<Array<std::uint32_t>>, std::optional<Array<float>>,
                     std::optional<Array<double>>, std::optional<Array<float, 2>>, std::optional<Array<double, 2>>,
                     std::optional<Array<double, 2>>, std::optional<Array<double>>>(),
            "n_columns"_a, "begins"_a, "columns"_a, "lambdas"_a, "n_sparse"_a, "labels"_a, "indptr"_a = nb::none(), "indices"_a = nb::none(),
            "values"_a = nb::none(), "values64"_a = nb::none(), "dense32"_a = nb::none(), "dense64"_a = nb::none(), "cost"_a = nb::none(),
            "example_weight"_a = nb::none());
  bind_class_scores(bound);
}

}  // namespace mm
