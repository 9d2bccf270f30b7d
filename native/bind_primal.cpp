// Python bindings of the primal side: a w without multipliers.
#include <cmath>
#include <variant>

#include "formulated.hpp"
#include "ownership.hpp"
#include "polling.hpp"
#include "primal.hpp"
#include "problem.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

template <class T>
nb::object view(T* data, std::size_t n, nb::handle owner) {
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {n}, owner));
}

// A w of either precision, with the calls that Python makes.
class PrimalHandle final : public Owned {
  Problem& problem_;
  Formulated formulated_;
  double unsure_ = 0.0;  // of the last exact_hinge
  std::vector<double> slacks_;
  std::variant<std::unique_ptr<Primal<float>>, std::unique_ptr<Primal<double>>> primal_;

  template <class F>
  auto visit(F&& f) {
    return std::visit([&](auto& p) { return f(*p); }, primal_);
  }

 public:
  PrimalHandle(Problem& problem, bool single, const std::string& rescale)
      : Owned("the solver's state"), problem_(problem), formulated_(problem, "linear", rescale) {
    const auto make = [&]<class T>(T) {
      const Structure<T>* structure = formulated_.structure<T>();
      require(structure != nullptr, "this structure trains with 8-byte weights only (dtype=\"float64\")");
      structure->require_truth();
      require(!structure->maps_weights(), "with a kernel there are no weights of features to move; train with a dual solver");
      primal_ = std::make_unique<Primal<T>>(*structure);
    };
    if (single) {
      make(float{});
    } else {
      make(double{});
    }
  }

  bool solves(const Problem& problem) const { return &problem == &problem_; }
  double unsure() const { return unsure_; }

  // The factors of C.
  nb::object example_weights() {
    const Structure<double>* structure = problem_.structure<double>();
    std::vector<double> out(structure->n_examples());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = structure->example_weight(i);
    return to_numpy(std::move(out));
  }

  SweepResult hinge(int threads) {
    return visit([&](auto& p) { return run_polled(p.loop, std::nullopt, [&] { return p.hinge(threads); }); });
  }
  SweepResult hinge_of(Order order, int threads) {
    check_order(order, problem_.n_examples());
    return visit([&](auto& p) { return run_polled(p.loop, std::nullopt, [&] { return p.hinge_of({order.data(), order.shape(0)}, threads); }); });
  }
  // Σ_i max F of the present w in 8-byte arithmetic.
  double exact_hinge(int threads) {
    const Structure<double>* exact = formulated_.structure<double>();
    Primal<double> wide(*exact);
    visit([&](auto& p) {
      using T = std::decay_t<decltype(*p.weights())>;
      if constexpr (sizeof(T) == 4) {
        problem_.widen(p.weights(), wide.weights());
      } else {
        std::copy(p.weights(), p.weights() + p.size(), wide.weights());
      }
      return 0;
    });
    const SweepResult result = run_polled(wide.loop, std::nullopt, [&] { return wide.hinge(threads); });
    unsure_ = result.unsure;
    slacks_ = wide.slacks();
    return result.hinge;
  }
  // Of each example, in the last exact_hinge.
  nb::object slacks() const { return to_numpy(std::vector<double>(slacks_)); }
  SweepResult sweep(int threads, std::optional<double> seconds) {
    return visit([&](auto& p) { return run_polled(p.loop, seconds, [&] { return p.sweep(threads); }); });
  }
  SweepResult find(int threads, std::optional<double> seconds) {
    return visit([&](auto& p) { return run_polled(p.loop, seconds, [&] { return p.find(threads); }); });
  }
  void remember(std::size_t limit) {
    visit([&](auto& p) { return p.remember(limit), 0; });
  }
  SweepResult recall(int threads, std::optional<double> seconds) {
    return visit([&](auto& p) { return run_polled(p.loop, seconds, [&] { return p.recall(threads); }); });
  }
  nb::tuple cache() {
    return visit([](auto& p) {
      auto copy = p.cache.copy();
      return nb::make_tuple(to_numpy(std::move(copy.example)), to_numpy(std::move(copy.size)), to_numpy(std::move(copy.codes)));
    });
  }
  void restore_cache(Array<std::uint32_t> example, Array<std::uint32_t> size, Array<std::uint32_t> codes) {
    visit([&](auto& p) {
      p.cache.restore(*p.loop.first.ws, {example.data(), example.shape(0)}, {size.data(), size.shape(0)}, {codes.data(), codes.shape(0)});
      return 0;
    });
  }
  nb::tuple shares(std::size_t groups, int threads) {
    require(groups >= 1, "expected at least one group");
    return visit([&](auto& p) {
      require(p.size() <= ~std::uint32_t{0}, "too many weights");
      auto shares = [&] {
        nb::gil_scoped_release release;
        return p.shares(groups, threads);
      }();
      return nb::make_tuple(to_numpy(std::move(shares.loss)), to_numpy(std::move(shares.indptr)),
                            to_numpy(std::move(shares.indices)), to_numpy(std::move(shares.values)));
    });
  }
  nb::tuple cuts(Array<double> least, int threads, std::optional<double> seconds) {
    require(least.shape(0) == problem_.n_examples(), "expected a bound for each example");
    return visit([&](auto& p) {
      auto cuts = run_polled(p.loop, seconds, [&] { return p.cuts(least.data(), threads); });
      return nb::make_tuple(to_numpy(std::move(cuts.example)), to_numpy(std::move(cuts.loss)), to_numpy(std::move(cuts.F)),
                            to_numpy(std::move(cuts.indptr)), to_numpy(std::move(cuts.indices)),
                            to_numpy(std::move(cuts.values)), cuts.result);
    });
  }
  SweepResult subgradient_pass(Order order, const SubgradientOptions& options, double done, std::optional<double> seconds) {
    check_order(order, problem_.n_examples());
    require(std::isfinite(done) && done >= 0.0, "done must not be negative");
    return visit([&](auto& p) {
      return run_polled(p.loop, seconds, [&] { return p.subgradient_pass({order.data(), order.shape(0)}, options, done); });
    });
  }
  double project(double radius) {
    require(radius > 0.0, "radius must be positive");
    return visit([&](auto& p) { return p.project(radius); });
  }
  void forget_average() {
    visit([](auto& p) { return p.set_averages({}, 0.0, 0.0), 0; });
  }
  void written() {
    visit([](auto& p) { return p.written(), 0; });
  }
  // Weights and running averages, for checkpoints.
  nb::dict state() {
    return visit([](auto& p) {
      using T = std::decay_t<decltype(*p.weights())>;
      nb::dict d;
      d["weights"] = to_numpy(std::vector<T>(p.weights(), p.weights() + p.size()));
      d["sums"] = to_numpy(std::vector<T>(p.sums().begin(), p.sums().end()));
      d["masses"] = to_numpy(std::vector<double>{p.masses().first, p.masses().second});
      return d;
    });
  }
  void restore(const nb::dict& d) {
    visit([&](auto& p) {
      using T = std::decay_t<decltype(*p.weights())>;
      const auto take = [&]<class X>(const char* key, X) {
        require(d.contains(key), std::string("the checkpoint has no array \"") + key + "\"");
        Array<X> array;
        require(nb::try_cast(d[key], array, false), std::string("the checkpoint's array \"") + key + "\" has the wrong type");
        std::vector<X> out(array.data(), array.data() + array.shape(0));
        for (const X x : out) require(std::isfinite(x), std::string("the checkpoint's array \"") + key + "\" is not finite");
        return out;
      };
      const std::vector<T> weights = take("weights", T{}), sums = take("sums", T{});
      const std::vector<double> masses = take("masses", double{});
      require(weights.size() == p.size(), "the checkpoint does not fit this problem: expected " + std::to_string(p.size()) +
              " weights, found " + std::to_string(weights.size()));
      require(masses.size() == 2 && (sums.size() == p.size() || (sums.empty() && masses[0] == 0.0 && masses[1] == 0.0)),
              "the checkpoint's averages are damaged");
      std::copy(weights.begin(), weights.end(), p.weights());
      p.set_averages(sums, masses[0], masses[1]);
      p.written();
      return 0;
    });
  }
  std::size_t bytes() {
    return visit([](auto& p) { return p.bytes(); });
  }

  // Views that keep the handle alive.
  static nb::object weights(nb::handle self) {
    return nb::cast<PrimalHandle&>(self).visit([&](auto& p) { return view(p.weights(), p.size(), self); });
  }
  static nb::object plane(nb::handle self) {
    return nb::cast<PrimalHandle&>(self).visit([&](auto& p) { return view(p.plane(), p.size(), self); });
  }
  nb::object average() {
    return visit([](auto& p) {
      using T = std::decay_t<decltype(*p.weights())>;
      std::vector<T> out(p.size());
      p.average(out.data(), 1);
      return to_numpy(std::move(out));
    });
  }
  void average_into(nb::handle out, int threads) {
    visit([&](auto& p) {
      using T = std::decay_t<decltype(*p.weights())>;
      Target<T> target;
      require(nb::try_cast(out, target, false) && target.shape(0) == p.size(), "out does not fit the weights");
      nb::gil_scoped_release release;
      p.average(target.data(), threads);
      return 0;
    });
  }
};

}  // namespace

void bind_primal(nb::module_& m) {
  nb::class_<SweepResult>(m, "SweepResult")
      .def_ro("loss", &SweepResult::loss)
      .def_ro("hinge", &SweepResult::hinge)
      .def_ro("oracle_calls", &SweepResult::oracle_calls)
      .def_ro("violated", &SweepResult::violated)
      .def_ro("interrupted", &SweepResult::interrupted);

  nb::class_<SubgradientOptions>(m, "SubgradientOptions")
      .def("__init__",
           [](SubgradientOptions* self, double lambda, double eta, double radius, bool each, bool average) {
             require(lambda >= 0 && std::isfinite(lambda), "lambda must not be negative");
             require(eta > 0 && std::isfinite(eta) && eta * lambda <= 1, "eta must be positive, and eta * lambda at most 1");
             require(radius >= 0 && std::isfinite(radius), "radius must not be negative");
             require(!(average && radius > 0), "the average of projected iterates is not kept");
             require(!(lambda > 0 && radius > 0), "decay and an L1 ball do not go together");
             new (self) SubgradientOptions{lambda, eta, radius, each, average};
           },
           nb::kw_only(), "lambda_"_a = 0.0, "eta"_a = 1.0, "radius"_a = 0.0, "each"_a = false, "average"_a = false);

  OwnedClass<PrimalHandle>(m, "Primal")
      .init<Problem&, bool, const std::string&>("problem"_a, "single"_a = true, "rescale"_a = "margin", nb::keep_alive<1, 2>())
      .def("hinge", &PrimalHandle::hinge, "threads"_a = 1)
      .def("hinge_of", &PrimalHandle::hinge_of, "order"_a, "threads"_a = 1)
      .def("exact_hinge", &PrimalHandle::exact_hinge, "threads"_a = 1)
      .def("slacks", &PrimalHandle::slacks)
      .def("state", &PrimalHandle::state)
      .def("restore", &PrimalHandle::restore, "state"_a)
      .def("sweep", &PrimalHandle::sweep, "threads"_a = 1, "seconds"_a = nb::none())
      .def("find", &PrimalHandle::find, "threads"_a = 1, "seconds"_a = nb::none())
      .def("remember", &PrimalHandle::remember, "limit"_a)
      .def("recall", &PrimalHandle::recall, "threads"_a = 1, "seconds"_a = nb::none())
      .def("cache", &PrimalHandle::cache)
      .def("restore_cache", &PrimalHandle::restore_cache, "example"_a, "size"_a, "codes"_a)
      .def("shares", &PrimalHandle::shares, "groups"_a = 1, "threads"_a = 1)
      .def("cuts", &PrimalHandle::cuts, "least"_a, "threads"_a = 1, "seconds"_a = nb::none())
      .def("subgradient_pass", &PrimalHandle::subgradient_pass, "order"_a, "options"_a, "done"_a = 0.0, "seconds"_a = nb::none())
      .def("project", &PrimalHandle::project, "radius"_a)
      .def("forget_average", &PrimalHandle::forget_average)
      .def("written", &PrimalHandle::written)
      .def("average", &PrimalHandle::average)
      .def("average_into", &PrimalHandle::average_into, "out"_a, "threads"_a = 1)
      .property("example_weights", &PrimalHandle::example_weights)
      .def("solves", &PrimalHandle::solves, "problem"_a)
      .property("oracle_error_bound", &PrimalHandle::unsure)
      .property("nbytes", &PrimalHandle::bytes)
      .property("weights", &PrimalHandle::weights)
      .property("plane", &PrimalHandle::plane);
}

}  // namespace mm
