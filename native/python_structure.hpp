// A user's Python structure behind the engine's interface.
//
// The Python side (maxmargin.structures.adapter.PythonProblem) checks everything that the user's
// methods return and hands over the plane as a sparse vector. A plane's code is that vector:
//   [loss: 2 words][index: n words][value: 2 n words]
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <bit>
#include <cmath>

#include "structure.hpp"

namespace mm {

namespace nb = nanobind;

class PythonStructure final : public Structure<double> {
 public:
  using Workspace = Structure<double>::Workspace;

  explicit PythonStructure(nb::object problem)
      : problem_(std::move(problem)), oracle_(problem_.attr("oracle")),
        n_examples_(nb::cast<std::size_t>(problem_.attr("n_examples"))),
        n_weights_(nb::cast<std::size_t>(problem_.attr("n_weights"))) {
    if (n_weights_ == 0 || n_weights_ > ~std::uint32_t{0}) {
      throw BadInput("a structure must have between 1 and 2^32 - 1 features, got " + std::to_string(n_weights_));
    }
  }

  std::size_t n_examples() const override { return n_examples_; }
  std::size_t n_weights() const override { return n_weights_; }
  bool thread_safe() const override { return false; }
  bool exact_oracle() const override { return false; }
  double rounding(std::size_t, CodeView plane, const double* w) const override {
    if (plane.empty()) return 0.0;
    double scale = load(plane.data());
    for (std::size_t p = 0; p < length(plane); ++p) scale += std::abs(value(plane, p) * w[index(plane, p)]);
    return kValueTolerance * scale + 1e-12;
  }
  struct Scratch final : Workspace {
    std::vector<std::vector<Code>> grades;
  };
  std::unique_ptr<Workspace> workspace() const override { return std::make_unique<Scratch>(); }

  Found oracle(Workspace& ws, std::size_t i, const double* w) const override {
    nb::gil_scoped_acquire gil;
    // The user's loss cannot be scaled; a w that is as much smaller has the same argmax.
    const nb::object answer = oracle_(i, copy_of(w, 1.0 / ws.loss_scale));
    Found found;
    ws.code.clear();
    found.truth = read_plane(i, answer, ws.code);
    if (found.truth) return found;
    found.F = ws.loss_scale * load(ws.code.data()) - dot(ws.code, w);
    return found;
  }

  bool offers_grades(bool) const override {
    nb::gil_scoped_acquire gil;
    return nb::cast<bool>(problem_.attr("offers_grades"));
  }
  bool grades(Workspace& base, std::size_t i, const double* w, bool any, std::vector<Grade>& out) const override {
    nb::gil_scoped_acquire gil;
    if (!nb::cast<bool>(problem_.attr("offers_grades"))) return false;
    Scratch& ws = static_cast<Scratch&>(base);
    const nb::object answer = problem_.attr("grades")(i, copy_of(w, 1.0), any);
    if (!nb::isinstance<nb::list>(answer)) throw bad(i, "the grades are no list of planes");
    const nb::list planes = nb::borrow<nb::list>(answer);
    out.clear();
    ws.grades.resize(planes.size());
    for (std::size_t k = 0; k < planes.size(); ++k) {
      if (read_plane(i, planes[k], ws.grades[k])) throw bad(i, "the truth is among the grades");
      out.push_back({load(ws.grades[k].data()), dot(ws.grades[k], w)});
    }
    return true;
  }
  double take_grade(Workspace& base, std::size_t, const double* w, std::size_t k) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    ws.code = ws.grades[k];
    return dot(ws.code, w);
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
    code.resize(2 + 3 * n);
    store(code.data(), loss);
    std::copy(indices.data(), indices.data() + n, code.begin() + 2);
    for (std::size_t k = 0; k < n; ++k) store(code.data() + 2 + n + 2 * k, values.data()[k]);
    if (!valid(i, code)) throw bad(i, "the oracle's plane is not a sparse vector");
    return false;
  }

  void margins(Workspace&, std::size_t, const double* w, CodeView, std::span<const CodeView> planes,
               std::span<const double> losses, Fresh, double* F) const override {
    for (std::size_t k = 0; k < planes.size(); ++k) F[k] = planes[k].empty() ? 0.0 : losses[k] - dot(planes[k], w);
  }

  double loss(std::size_t, CodeView plane) const override { return plane.empty() ? 0.0 : load(plane.data()); }

  void gram(Workspace&, std::size_t, CodeView a, std::span<const CodeView> planes, double* row) const override {
    for (std::size_t k = 0; k < planes.size(); ++k) {
      double sum = 0.0;
      const CodeView b = planes[k];
      const std::size_t na = length(a), nb_ = length(b);
      for (std::size_t p = 0, q = 0; p < na && q < nb_;) {
        if (index(a, p) < index(b, q)) {
          ++p;
        } else if (index(b, q) < index(a, p)) {
          ++q;
        } else {
          sum += value(a, p++) * value(b, q++);
        }
      }
      row[k] = sum;
    }
  }

  void accumulate(Workspace&, std::size_t, CodeView, std::span<const CodeView> planes,
                  const double* coef, Weights<double>& weights) const override {
    for (std::size_t k = 0; k < planes.size(); ++k) {
      if (coef[k] == 0.0) continue;
      for (std::size_t p = 0; p < length(planes[k]); ++p) weights.add(index(planes[k], p), coef[k] * value(planes[k], p));
    }
  }

  bool valid(std::size_t, CodeView code) const override {
    if (code.size() < 2 || (code.size() - 2) % 3 != 0 || !std::isfinite(load(code.data())) || load(code.data()) < 0.0) return false;
    for (std::size_t p = 0; p < length(code); ++p) {
      if (index(code, p) >= n_weights_ || (p > 0 && index(code, p) <= index(code, p - 1)) || !std::isfinite(value(code, p))) return false;
    }
    return true;
  }

 private:
  static BadInput bad(std::size_t i, const std::string& what) { return BadInput(what + ", for example " + std::to_string(i)); }

  // A copy with an owner: the user may keep it, and the engine goes on changing its own.
  nb::ndarray<nb::numpy, const double, nb::ndim<1>> copy_of(const double* w, double factor) const {
    auto* kept = new std::vector<double>(w, w + n_weights_);
    if (factor != 1.0) for (double& x : *kept) x *= factor;
    const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
    return nb::ndarray<nb::numpy, const double, nb::ndim<1>>(kept->data(), {n_weights_}, owner);
  }

  static void store(Code* at, double x) { std::memcpy(at, &x, sizeof x); }
  static double load(const Code* at) {
    double x;
    std::memcpy(&x, at, sizeof x);
    return x;
  }
  static std::size_t length(CodeView code) { return code.empty() ? 0 : (code.size() - 2) / 3; }
  static std::uint32_t index(CodeView code, std::size_t p) { return code[2 + p]; }
  static double value(CodeView code, std::size_t p) { return load(code.data() + 2 + length(code) + 2 * p); }
  static double dot(CodeView code, const double* w) {
    double sum = 0.0;
    for (std::size_t p = 0; p < length(code); ++p) sum += value(code, p) * w[index(code, p)];
    return sum;
  }

  static constexpr double kValueTolerance = 1e-6;  // as VALUE_TOLERANCE of the Python side

  nb::object problem_, oracle_;
  std::size_t n_examples_, n_weights_;
};

}  // namespace mm
