// Python bindings of the plane store and of the quadratic program over its planes.
#include <cmath>
#include <variant>

#include "bindings.hpp"
#include "ownership.hpp"
#include "plane_store.hpp"
#include "simplex_qp.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

template <class X>
std::span<const X> span_of(const Array<X>& array) {
  return {array.data(), array.shape(0)};
}

void require_finite(std::span<const double> values, const char* name) {
  for (const double x : values) require(std::isfinite(x), std::string(name) + " must be finite");
}

SimplexQpResult solve_qp(const double* gram, std::size_t stride, Array<std::uint32_t> group, Array<double> b, double C,
                         Target<double> alpha, double tolerance, double kappa,
                         int max_rounds) {
  const std::size_t n = b.shape(0);
  require(group.shape(0) == n && alpha.shape(0) == n, "group, b and alpha must be of one length");
  require(C > 0.0 && std::isfinite(C) && kappa > 0.0 && std::isfinite(kappa), "C and kappa must be positive");
  require(tolerance >= 0.0 && max_rounds >= 0, "tolerance and max_rounds must not be negative");
  require_finite(span_of(b), "b");
  for (std::size_t p = 0; p < n; ++p) {
    require(alpha.data()[p] >= 0.0 && std::isfinite(alpha.data()[p]), "alpha must not be negative");
    require(group.data()[p] < (1u << 20), "a group is out of range");
  }
  nb::gil_scoped_release release;
  SimplexQp qp(gram, stride, span_of(group), span_of(b), kappa, C);
  return qp.solve(alpha.data(), tolerance, max_rounds);
}

template <class T>
double blend_arrays(Array<T> a, Array<T> b, double share, Target<T> out, int threads) {
  require(a.shape(0) == out.shape(0) && b.shape(0) == out.shape(0), "the arrays must be of one length");
  nb::gil_scoped_release release;
  return blend(a.data(), b.data(), share, out.data(), out.shape(0), threads);
}

template <class T>
double square_of(Array<T> w, int threads) {
  nb::gil_scoped_release release;
  return square(w.data(), w.shape(0), threads);
}

// A store of either precision.
class PlaneStoreHandle final : public Owned {
  std::variant<PlaneStore<float>, PlaneStore<double>> store_;

  template <class F>
  auto visit(F&& f) {
    return std::visit(std::forward<F>(f), store_);
  }
  template <class S>
  struct Value;
  template <class T>
  struct Value<PlaneStore<T>> {
    using type = T;
  };
  template <class S>
  using value_t = typename Value<std::decay_t<S>>::type;

 public:
  PlaneStoreHandle(std::size_t n_weights, bool single) : Owned("the plane store"), store_(PlaneStore<double>(0)) {
    require(n_weights < ~std::uint32_t{0}, "too many weights");
    if (single) {
      store_.emplace<PlaneStore<float>>(n_weights);
    } else {
      store_.emplace<PlaneStore<double>>(n_weights);
    }
  }

  void add(Array<std::int64_t> indptr, Array<std::uint32_t> indices, nb::handle values, int threads) {
    visit([&](auto& s) {
      using T = value_t<decltype(s)>;
      Array<T> array;
      require(nb::try_cast(values, array, false), "the values are not of the store's type");
      const auto rows = span_of(indptr);
      require(!rows.empty() && rows.front() == 0 && std::size_t(rows.back()) == indices.shape(0) && std::is_sorted(rows.begin(), rows.end()) &&
              indices.shape(0) == array.shape(0), "the rows do not fit together");
      require(s.size() + rows.size() < (1u << 20), "too many planes");
      require(indices.shape(0) < ~std::uint32_t{0}, "too many entries");
      for (const std::uint32_t j : span_of(indices)) require(j < s.n_weights(), "a column is out of range");
      for (const T x : span_of(array)) require(std::isfinite(x), "the values must be finite");
      nb::gil_scoped_release release;
      s.add({rows, span_of(indices), span_of(array)}, threads);
    });
  }

  void combine(Array<double> alpha, nb::handle out, int threads) {
    visit([&](auto& s) {
      using T = value_t<decltype(s)>;
      Target<T> target;
      require(alpha.shape(0) == s.size(), "expected a multiplier for each plane");
      require(nb::try_cast(out, target, false) && target.shape(0) == s.n_weights(), "out does not fit the store");
      nb::gil_scoped_release release;
      s.combine(alpha.data(), target.data(), threads);
    });
  }

  double square(Array<double> alpha) {
    return visit([&](auto& s) {
      require(alpha.shape(0) == s.size(), "expected a multiplier for each plane");
      return s.square(alpha.data());
    });
  }

  nb::object multiply(nb::handle weights, int threads) {
    return visit([&](auto& s) {
      using T = value_t<decltype(s)>;
      Array<T> w;
      require(nb::try_cast(weights, w, false) && w.shape(0) == s.n_weights(), "the weights do not fit the store");
      std::vector<double> products(s.size());
      {
        nb::gil_scoped_release release;
        s.multiply(w.data(), products.data(), threads);
      }
      return to_numpy(std::move(products));
    });
  }

  void keep(Array<bool> kept) {
    visit([&](auto& s) {
      require(kept.shape(0) == s.size(), "expected a truth value for each plane");
      const std::vector<std::uint8_t> flags(kept.data(), kept.data() + kept.shape(0));
      nb::gil_scoped_release release;
      s.keep(flags.data());
    });
  }

  SimplexQpResult solve(Array<std::uint32_t> group, Array<double> b, double C,
                        Target<double> alpha, double tolerance, double kappa,
                        int max_rounds) {
    return visit([&](auto& s) {
      require(b.shape(0) == s.size(), "expected b for each plane");
      return solve_qp(s.gram(), s.stride(), group, b, C, alpha, tolerance, kappa, max_rounds);
    });
  }

  nb::object gram() {
    return visit([](auto& s) {
      const std::size_t n = s.size();
      std::vector<double> out(n * n);
      for (std::size_t p = 0; p < n; ++p) std::copy_n(s.gram() + p * s.stride(), n, out.data() + p * n);
      return to_numpy(std::move(out)).attr("reshape")(n, n);
    });
  }

  // The planes as add() takes them: indptr, indices, values.
  nb::tuple planes() {
    return visit([](auto& s) {
      auto copy = s.planes();
      return nb::make_tuple(to_numpy(std::move(copy.indptr)), to_numpy(std::move(copy.indices)), to_numpy(std::move(copy.values)));
    });
  }

  std::size_t size() {
    return visit([](auto& s) { return s.size(); });
  }
  std::size_t bytes() {
    return visit([](auto& s) { return s.bytes(); });
  }
};

}  // namespace

void bind_planes(nb::module_& m) {
  nb::class_<SimplexQpResult>(m, "SimplexQpResult")
      .def_ro("gap", &SimplexQpResult::gap)
      .def_ro("steps", &SimplexQpResult::steps)
      .def_ro("rounds", &SimplexQpResult::rounds);

  m.def("solve_simplex_qp",
        [](Array<double, 2> gram, Array<std::uint32_t> group, Array<double> b, double C,
           Target<double> alpha, double tolerance, double kappa, int max_rounds) {
          require(gram.shape(0) == b.shape(0) && gram.shape(1) == b.shape(0), "the Gram matrix must be square, a row for each plane");
          return solve_qp(gram.data(), gram.shape(1), group, b, C, alpha, tolerance, kappa, max_rounds);
        },
        "gram"_a, "group"_a, "b"_a, "C"_a, "alpha"_a, "tolerance"_a, "kappa"_a = 1.0, "max_rounds"_a = 10000);

  m.def("blend", &blend_arrays<float>, "a"_a, "b"_a, "share"_a, "out"_a.noconvert(), "threads"_a = 1);
  m.def("blend", &blend_arrays<double>, "a"_a, "b"_a, "share"_a, "out"_a.noconvert(), "threads"_a = 1);

  m.def("square", &square_of<float>, "w"_a.noconvert(), "threads"_a = 1);
  m.def("square", &square_of<double>, "w"_a, "threads"_a = 1);

  OwnedClass<PlaneStoreHandle>(m, "PlaneStore")
      .init<std::size_t, bool>("n_weights"_a, "single"_a = true)
      .def("__len__", &PlaneStoreHandle::size)
      .def("add", &PlaneStoreHandle::add, "indptr"_a, "indices"_a, "values"_a, "threads"_a = 1)
      .def("combine", &PlaneStoreHandle::combine, "alpha"_a, "out"_a, "threads"_a = 1)
      .def("square", &PlaneStoreHandle::square, "alpha"_a)
      .def("multiply", &PlaneStoreHandle::multiply, "weights"_a, "threads"_a = 1)
      .def("keep", &PlaneStoreHandle::keep, "kept"_a)
      .def("solve", &PlaneStoreHandle::solve, "group"_a, "b"_a, "C"_a, "alpha"_a, "tolerance"_a, "kappa"_a = 1.0, "max_rounds"_a = 10000)
      .def("gram", &PlaneStoreHandle::gram)
      .def("planes", &PlaneStoreHandle::planes)
      .property("nbytes", &PlaneStoreHandle::bytes);
}

}  // namespace mm
