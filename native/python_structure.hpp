// A user's Python structure behind the engine's interface.
//
// The Python side (maxmargin.structures.adapter.PythonProblem) checks everything that the user's
// methods return and hands over the plane as a sparse vector (sparse_planes.hpp).
//
// The user's methods see w as a read-only array that this file owns. It is brought up to date where w
// has changed since the last call, which are the few coordinates of one step; a new array is made
// only if w has changed and somebody kept the old one.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "listed_planes.hpp"
#include "sparse_planes.hpp"

namespace mm {

namespace nb = nanobind;

// The weights as Python sees them.
class WeightsView {
 public:
  WeightsView() = default;
  WeightsView(const WeightsView&) = delete;
  WeightsView& operator=(const WeightsView&) = delete;
  ~WeightsView() {
    if (!array_.is_valid()) return;
    nb::gil_scoped_acquire gil;
    array_.reset();
  }

  // All of w may have changed, or these coordinates of it.
  void all_changed() { stale_ = true; }
  void changed(const SparsePlane& plane) {
    if (stale_) return;
    for (std::size_t k = 0; k < plane.size(); ++k) touched_.push_back(plane.index(k));
    if (touched_.size() > copy_.second / 4) stale_ = true;
  }

  // factor * w, with the GIL held.
  const nb::object& of(const double* w, std::size_t n, double factor) {
    if (w != from_ || factor != factor_) stale_ = true;
    if (!stale_ && touched_.empty()) return array_;
    if (!array_.is_valid() || copy_.second != n || kept()) {
      make(n);
      stale_ = true;
    }
    double* copy = copy_.first;
    if (!stale_) {
      for (const std::uint32_t j : touched_) copy[j] = factor * w[j];
    } else if (factor == 1.0) {
      std::copy(w, w + n, copy);
    } else {
      for (std::size_t j = 0; j < n; ++j) copy[j] = factor * w[j];
    }
    touched_.clear();
    stale_ = false, from_ = w, factor_ = factor;
    return array_;
  }

 private:
  // Does anybody but us have the array? Our own reference is one, and a view that somebody made of the
  // array holds another one. What the array shows can also be had without it, through its `base`.
  bool kept() const { return Py_REFCNT(array_.ptr()) > 1 || Py_REFCNT(base_.ptr()) > base_count_; }

  void make(std::size_t n) {
    auto memory = std::make_unique_for_overwrite<double[]>(n);
    double* const copy = memory.get();
    const nb::capsule owner(copy, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    memory.release();
    array_ = nb::cast(nb::ndarray<nb::numpy, const double, nb::ndim<1>>(copy, {n}, owner));
    copy_ = {copy, n};
    base_ = nb::object(array_.attr("base"));  // lives as long as the array
    base_count_ = Py_REFCNT(base_.ptr());
  }

  nb::object array_;
  nb::handle base_;
  Py_ssize_t base_count_ = 0;
  std::pair<double*, std::size_t> copy_{nullptr, 0};  // what it shows
  const double* from_ = nullptr;
  double factor_ = 1.0;
  bool stale_ = true;
  std::vector<std::uint32_t> touched_;
};

class PythonStructure final : public SparsePlanes<double> {
 public:
  using Workspace = Structure<double>::Workspace;

  explicit PythonStructure(nb::object problem)
      : problem_(std::move(problem)), oracle_(problem_.attr("oracle")),
        n_examples_(nb::cast<std::size_t>(problem_.attr("n_examples"))), n_weights_(nb::cast<std::size_t>(problem_.attr("n_weights"))) {
    if (n_weights_ == 0 || n_weights_ > ~std::uint32_t{0}) {
      throw BadInput("a structure must have between 1 and 2^32 - 1 features, got " + std::to_string(n_weights_));
    }
    grades_offered_ = nb::cast<bool>(nb::getattr(problem_, "offers_grades", nb::bool_(false)));
    listings_kept_ = nb::hasattr(problem_, "kept_listing");
    const nb::object factors = nb::getattr(problem_, "example_weight", nb::none());
    if (!factors.is_none() && (!nb::try_cast(factors, example_weight_, false) || example_weight_.shape(0) != n_examples_)) {
      throw BadInput("the weights of the examples must be one 8-byte number for each");
    }
    for (std::size_t i = 0; !factors.is_none() && i < n_examples_; ++i) {
      const double weight = example_weight_.data()[i];
      if (!(weight >= 0.0 && weight <= 1e30)) throw BadInput("the weight of an example is negative or not finite");
    }
    argmax_too_ = nb::cast<bool>(nb::getattr(problem_, "offers_argmax_too", nb::bool_(false)));
  }

  std::size_t n_examples() const override { return n_examples_; }
  std::size_t n_weights() const override { return n_weights_; }
  // The array stays Python's, which may change it between two passes.
  double example_weight(std::size_t i) const override { return example_weight_.is_valid() ? example_weight_.data()[i] : 1.0; }
  bool thread_safe() const override { return false; }
  bool exact_oracle() const override { return false; }
  double rounding(std::size_t, CodeView code, const double* w) const override {
    if (code.empty()) return 0.0;
    const SparsePlane plane(code);
    double scale = std::abs(plane.loss());
    for (std::size_t k = 0; k < plane.size(); ++k) scale += std::abs(plane.value(k) * w[plane.index(k)]);
    return kValueTolerance * scale + 1e-12;
  }

  struct Scratch final : Workspace {
    std::vector<std::vector<Code>> grades;
    nb::object listing;  // kept by the problem, where the grades are rows of it
    std::vector<std::pair<std::size_t, double>> rows;
    WeightsView view;
    ~Scratch() override {
      if (!listing.is_valid()) return;
      nb::gil_scoped_acquire gil;
      listing.reset();
    }
  };
  std::unique_ptr<Workspace> workspace() const override { return std::make_unique<Scratch>(); }
  void weights_changed(Workspace& ws) const override { static_cast<Scratch&>(ws).view.all_changed(); }

  Found oracle(Workspace& base, std::size_t i, const double* w) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    nb::gil_scoped_acquire gil;
    // The user's loss cannot be scaled; a w that is as much smaller has the same argmax.
    const nb::object answer = oracle_(i, ws.view.of(w, n_weights_, 1.0 / ws.loss_scale));
    Found found;
    ws.code.clear();
    found.truth = read_plane(i, answer, ws.code);
    if (found.truth) return found;
    const SparsePlane plane(ws.code);
    found.F = ws.loss_scale * plane.loss() - plane.dot(w);
    return found;
  }

  void accumulate(Workspace& base, std::size_t i, CodeView index, std::span<const CodeView> planes, const double* coef,
                  Weights<double>& weights) const override {
    SparsePlanes::accumulate(base, i, index, planes, coef, weights);
    Scratch& ws = static_cast<Scratch&>(base);
    for (std::size_t k = 0; k < planes.size(); ++k) {
      if (coef[k] != 0.0) ws.view.changed(SparsePlane(planes[k]));
    }
  }

  bool offers_grades(bool) const override { return grades_offered_; }
  bool slow_grades(std::size_t i) const override {
    if (!argmax_too_) return false;
    nb::gil_scoped_acquire gil;
    return nb::cast<bool>(problem_.attr("prefers_argmax")(i));
  }
  bool grades(Workspace& base, std::size_t i, const double* w, bool any, std::vector<Grade>& out) const override {
    if (!grades_offered_) return false;
    Scratch& ws = static_cast<Scratch&>(base);
    nb::gil_scoped_acquire gil;
    out.clear();
    ws.listing = listings_kept_ ? nb::object(problem_.attr("kept_listing")(i)) : nb::none();
    if (!ws.listing.is_none()) {
      PlaneRows& rows = listed(i, ws.listing);
      rows.best_by_loss(w, any, ws.rows);
      for (const auto& [k, margin] : ws.rows) out.push_back({rows.loss(k), margin});
      return true;
    }
    const nb::object answer = problem_.attr("grades")(i, ws.view.of(w, n_weights_, 1.0), any);
    if (!nb::isinstance<nb::list>(answer)) throw bad(i, "the grades are no list of planes");
    const nb::list planes = nb::borrow<nb::list>(answer);
    ws.grades.resize(planes.size());
    for (std::size_t k = 0; k < planes.size(); ++k) {
      if (read_plane(i, planes[k], ws.grades[k])) throw bad(i, "the truth is among the grades");
      const SparsePlane plane(ws.grades[k]);
      out.push_back({plane.loss(), plane.dot(w)});
    }
    return true;
  }
  double take_grade(Workspace& base, std::size_t i, const double* w, std::size_t k) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    nb::gil_scoped_acquire gil;
    if (ws.listing.is_none()) {
      ws.code = ws.grades[k];
    } else {
      const PlaneRows& rows = listed(i, ws.listing);
      const std::size_t row = ws.rows[k].first;
      SparsePlane::write(rows.loss(row), rows.indices(row), rows.values(row), ws.code);
      if (!valid(i, ws.code)) throw bad(i, "the oracle's plane is not a sparse vector");
    }
    return SparsePlane(ws.code).dot(w);
  }

  // A plane as the Python side tells it, (indices, values, loss, is_truth), as a code; true for that
  // of the truth, whose code stays empty. Nothing is read that was not checked to be there.
  bool read_plane(std::size_t i, nb::handle answer, std::vector<Code>& code) const {
    if (!nb::isinstance<nb::tuple>(answer) || nb::len(answer) != 4) {
      throw bad(i, "the oracle's answer is no tuple of four (indices, values, loss, is_truth)");
    }
    const nb::tuple entries = nb::borrow<nb::tuple>(answer);
    bool truth = false;
    double loss = 0.0;
    nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> indices;
    nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu> values;
    if (!nb::try_cast(nb::handle(entries[3]), truth, false)) throw bad(i, "is_truth of the oracle's answer is no bool");
    if (truth) return true;
    if (!nb::try_cast(nb::handle(entries[0]), indices, false)) throw bad(i, "the oracle's indices are no array of uint32");
    if (!nb::try_cast(nb::handle(entries[1]), values, false)) throw bad(i, "the oracle's values are no array of float64");
    if (!nb::try_cast(nb::handle(entries[2]), loss)) throw bad(i, "the oracle's loss is no number");
    const std::size_t n = indices.shape(0);
    if (values.shape(0) != n) throw bad(i, "the oracle's indices and values differ in length");
    SparsePlane::write(loss, {indices.data(), n}, {values.data(), n}, code);
    if (!valid(i, code)) throw bad(i, "the oracle's plane is not a sparse vector");
    return false;
  }

  // A user's losses are those of the outputs themselves.
  bool valid(std::size_t i, CodeView code) const override { return SparsePlanes::valid(i, code) && SparsePlane(code).loss() >= 0.0; }

 private:
  PlaneRows& listed(std::size_t i, nb::handle listing) const {
    ListedPlanes* planes = nullptr;
    if (!nb::try_cast(listing, planes, false) || planes == nullptr || planes->n_features() != n_weights_) throw bad(i, "the listing is no list of planes");
    return planes->rows();
  }

  static BadInput bad(std::size_t i, const std::string& what) { return BadInput(what + ", for example " + std::to_string(i)); }

  static constexpr double kValueTolerance = 1e-6;  // as VALUE_TOLERANCE of the Python side

  nb::object problem_, oracle_;
  nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu> example_weight_;  // invalid: ones
  std::size_t n_examples_, n_weights_;
  bool grades_offered_ = false, listings_kept_ = false, argmax_too_ = false;
};

}  // namespace mm
