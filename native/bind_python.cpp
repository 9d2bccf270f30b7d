// Python bindings of a user's Python structure, and of its oracle in other processes.
#include "bindings.hpp"
#include "formulated.hpp"
#include "python_structure.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

// A pool that is a Python object (maxmargin.structures.oracle_pool.OraclePool).
class PythonPool final : public OraclePool {
 public:
  PythonPool() = default;
  PythonPool(const PythonPool&) = delete;
  PythonPool& operator=(const PythonPool&) = delete;
  ~PythonPool() override {
    nb::gil_scoped_acquire gil;
    pool_.reset();
  }

  void set(nb::object pool) { pool_ = pool.is_none() ? nb::object() : std::move(pool); }

  bool open() const override { return pool_.is_valid(); }
  void begin(std::span<const std::uint32_t> examples, std::span<const double> w, const std::string& slack, const std::string& rescale) override {
    nb::gil_scoped_acquire gil;
    const nb::object listed = to_numpy(std::vector<std::uint32_t>(examples.begin(), examples.end()));
    // A view: the pool lets go of it in end().
    const nb::object shown = nb::cast(nb::ndarray<nb::numpy, const double, nb::ndim<1>>(w.data(), {w.size()}), nb::rv_policy::reference);
    pool_.attr("begin")(listed, shown, slack, rescale);
  }
  bool take(std::size_t i, Answer& answer) override {
    nb::gil_scoped_acquire gil;
    const nb::object found = pool_.attr("take")(i);
    if (found.is_none()) return false;
    Array<std::uint32_t> code;
    if (!nb::isinstance<nb::tuple>(found) || nb::len(found) != 4 || !nb::try_cast(nb::handle(found[0]), code, false) ||
        !nb::try_cast(nb::handle(found[1]), answer.found.F) || !nb::try_cast(nb::handle(found[2]), answer.found.bound) ||
        !nb::try_cast(nb::handle(found[3]), answer.more_work)) {
      throw BadInput("another process sent no answer of an oracle, for example " + std::to_string(i));
    }
    answer.code.assign(code.data(), code.data() + code.shape(0));
    answer.found.truth = answer.code.empty();
    return true;
  }
  void took(double seconds) override {
    nb::gil_scoped_acquire gil;
    pool_.attr("took")(seconds);
  }
  void end() noexcept override {
    nb::gil_scoped_acquire gil;
    try {
      if (pool_.is_valid()) pool_.attr("end")();
    } catch (nb::python_error& error) {
      // Ctrl-C at this moment is asked for again; there is nothing else that could go wrong.
      if (error.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
    } catch (...) {
    }
  }

 private:
  nb::object pool_;  // invalid: none
};

class PythonProblemHandle final : public Problem {
 public:
  explicit PythonProblemHandle(nb::object problem) : asked_(problem), structure_(std::move(problem)) {}
  std::size_t n_examples() const override { return structure_.n_examples(); }
  bool slow_oracle() const override { return true; }
  bool exact_oracle() const override { return false; }
  bool offers_single() const override { return false; }
  const Structure<float>* single_precision() override { return nullptr; }  // trains in 8-byte weights only
  const Structure<double>* double_precision() override { return &structure_; }
  OraclePool* oracle_pool() override { return &pool_; }

  void set_pool(nb::object pool) { pool_.set(std::move(pool)); }
  nb::object asked() const { return asked_; }

 private:
  nb::object asked_;
  PythonStructure structure_;
  PythonPool pool_;
};

// The oracle of a problem under a formulation, as another process asks it.
class OracleHandle {
 public:
  OracleHandle(Problem& problem, const std::string& slack, const std::string& rescale) : formulated_(problem, slack, rescale) {
    structure_ = formulated_.structure<double>();
    require(structure_ != nullptr, "this structure has no oracle under 8-byte weights");
    workspace_ = structure_->workspace();
  }

  void set_weights(Array<double> w) {
    require(w.shape(0) == structure_->n_weights(), "expected " + std::to_string(structure_->n_weights()) + " weights, got " + std::to_string(w.shape(0)));
    w_ = w;
    structure_->weights_changed(*workspace_);
  }
  // The code of the output found (empty: the truth), its F, a bound of F, and the work beyond that of a call.
  nb::tuple find(std::size_t i) {
    require(w_.is_valid(), "the weights are not set");
    require(i < structure_->n_examples(), "there is no example " + std::to_string(i));
    workspace_->more_work = 0.0;
    const Found found = structure_->oracle(*workspace_, i, w_.data());
    std::vector<std::uint32_t> code;
    if (!found.truth) code = workspace_->code;
    return nb::make_tuple(to_numpy(std::move(code)), found.F, found.bound, workspace_->more_work);
  }

 private:
  Formulated formulated_;
  const Structure<double>* structure_;
  std::unique_ptr<Structure<double>::Workspace> workspace_;
  Array<double> w_;
};

}  // namespace

void bind_python(nb::module_& m) {
  nb::class_<PythonProblemHandle, Problem>(m, "PythonProblem")
      .def(nb::init<nb::object>(), "problem"_a)
      .def("set_pool", &PythonProblemHandle::set_pool, "pool"_a.none(), "Answers of the oracle come from this pool; None: from here.")
      .def_prop_ro("asked", &PythonProblemHandle::asked, "What the oracle is asked of.");
  nb::class_<OracleHandle>(m, "Oracle")
      .def(nb::init<Problem&, const std::string&, const std::string&>(), "problem"_a, "slack"_a = "linear", "rescale"_a = "margin", nb::keep_alive<1, 2>())
      .def("set_weights", &OracleHandle::set_weights, "w"_a)
      .def("find", &OracleHandle::find, "i"_a);
}

}  // namespace mm
