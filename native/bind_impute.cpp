// Python bindings of imputing what the truth leaves open.
#include <algorithm>
#include <cmath>

#include "bindings.hpp"
#include "impute.hpp"
#include "ownership.hpp"
#include "polling.hpp"
#include "problem.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

class ImputerHandle final : public Owned {
 public:
  explicit ImputerHandle(Problem& problem) : Owned("the imputer"), problem_(problem), imputer_(checked(problem)) {}

  // Values of the examples, and how many outputs changed. Weights are in the layout of either precision.
  template <class T>
  nb::tuple impute(Array<T> weights, int threads) {
    const Structure<T>* own = problem_.structure<T>();
    require(own != nullptr && weights.shape(0) == own->n_weights(), "the weights are not those of this problem");
    for (std::size_t j = 0; j < weights.shape(0); ++j) require(std::isfinite(weights.data()[j]), "the weights must be finite");
    const Structure<double>& wide = *problem_.double_precision();
    AlignedArray<double> w(wide.n_weights());
    std::fill_n(w.data(), wide.n_weights(), 0.0);
    if constexpr (sizeof(T) == 4) {
      problem_.widen(weights.data(), w.data());
    } else {
      std::copy_n(weights.data(), wide.n_weights(), w.data());
    }
    std::vector<double> values;
    const Imputer::Total total = run_polled(imputer_.loop, std::nullopt, [&] { return imputer_.impute(w.data(), threads, values); });
    return nb::make_tuple(to_numpy(std::move(values)), total.changed);
  }

  // u₀ of what was imputed last, 8-byte numbers in the layout of 4- or 8-byte weights.
  nb::object linear_term(double C, bool single) {
    const Structure<double>& wide = *problem_.double_precision();
    AlignedArray<double> u(wide.n_weights());
    std::fill_n(u.data(), wide.n_weights(), 0.0);
    {
      nb::gil_scoped_release release;
      imputer_.linear_term(C, u.data());
    }
    if (!single) return to_numpy(std::vector<double>(u.data(), u.data() + wide.n_weights()));
    const Structure<float>* own = problem_.single_precision();
    require(own != nullptr, "this structure has 8-byte weights only");
    // Rows are padded to whole vectors, of which 4-byte weights have longer ones; the numbers stay 8-byte.
    std::vector<double> narrow(own->n_weights());
    const std::size_t old = wide.row_size(), fresh = own->row_size(), width = std::min(old, fresh);
    for (std::size_t row = 0; row < wide.n_weights() / old; ++row) {
      std::copy_n(u.data() + row * old, width, narrow.data() + row * fresh);
    }
    return to_numpy(std::move(narrow));
  }

  // The outputs as the structure's codes: those of example i are codes[starts[i]:starts[i + 1]].
  nb::tuple codes() {
    std::vector<std::int64_t> starts{0};
    std::vector<std::uint32_t> all;
    for (const auto& code : imputer_.codes()) {
      all.insert(all.end(), code.begin(), code.end());
      starts.push_back(std::int64_t(all.size()));
    }
    return nb::make_tuple(to_numpy(std::move(starts)), to_numpy(std::move(all)));
  }

  // Undo codes(): go on from what another imputer had.
  void set_codes(Array<std::int64_t> starts, Array<std::uint32_t> codes) {
    const std::size_t n = problem_.n_examples();
    require(starts.shape(0) == n + 1 && starts.data()[0] == 0 && starts.data()[n] == std::int64_t(codes.shape(0)),
            "the codes of what was imputed are not those of " + std::to_string(n) + " examples");
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t begin = starts.data()[i], end = starts.data()[i + 1];
      require(begin <= end && end <= std::int64_t(codes.shape(0)), "the codes of what was imputed do not follow each other");
      imputer_.set_code(i, CodeView(codes.data() + begin, std::size_t(end - begin)));
    }
  }

 private:
  static const Structure<double>& checked(Problem& problem) {
    require(problem.exact_oracle(), "what a user's Python structure leaves open is imputed by its own argmax");
    require(!problem.has_kernel(), "with a kernel there are no weights of features to impute with");
    const Structure<double>& structure = *problem.double_precision();
    structure.require_truth();
    return structure;
  }

  Problem& problem_;
  Imputer imputer_;
};

}  // namespace

void bind_impute(nb::module_& m) {
  OwnedClass<ImputerHandle>(m, "Imputer")
      .init<Problem&>("problem"_a, nb::keep_alive<1, 2>())
      .def("impute", &ImputerHandle::impute<float>, "weights"_a.noconvert(), "threads"_a = 1)
      .def("impute", &ImputerHandle::impute<double>, "weights"_a.noconvert(), "threads"_a = 1)
      .def("linear_term", &ImputerHandle::linear_term, "C"_a, "single"_a)
      .def("codes", &ImputerHandle::codes)
      .def("set_codes", &ImputerHandle::set_codes, "starts"_a, "codes"_a);
}

}  // namespace mm
