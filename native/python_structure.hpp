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
  std::unique_ptr<Workspace> workspace() const override { return std::make_unique<Workspace>(); }

  Found oracle(Workspace& ws, std::size_t i, const double* w) const override {
    nb::gil_scoped_acquire gil;
    // A copy with an owner: the user may keep it, and the engine goes on changing its own.
    auto* kept = new std::vector<double>(w, w + n_weights_);
    // The user's loss cannot be scaled; a w that is as much smaller has the same argmax.
    if (ws.loss_scale != 1.0) for (double& x : *kept) x /= ws.loss_scale;
    const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
    const nb::ndarray<nb::numpy, const double, nb::ndim<1>> copy(kept->data(), {n_weights_}, owner);
    const nb::tuple answer = nb::cast<nb::tuple>(oracle_(i, copy));
    Found found;
    found.truth = nb::cast<bool>(answer[3]);
    ws.code.clear();
    if (found.truth) return found;
    const auto indices = nb::cast<nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(answer[0]);
    const auto values = nb::cast<nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(answer[1]);
    const double loss = nb::cast<double>(answer[2]);
    const std::size_t n = indices.shape(0);
    if (values.shape(0) != n) throw BadInput("the oracle's indices and values differ in length");
    ws.code.resize(2 + 3 * n);
    store(ws.code.data(), loss);
    std::copy(indices.data(), indices.data() + n, ws.code.begin() + 2);
    for (std::size_t k = 0; k < n; ++k) store(ws.code.data() + 2 + n + 2 * k, values.data()[k]);
    if (!valid(i, ws.code)) throw BadInput("the oracle's plane of example " + std::to_string(i) + " is not a sparse vector");
    found.F = ws.loss_scale * loss - dot(ws.code, w);
    return found;
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

  nb::object problem_, oracle_;
  std::size_t n_examples_, n_weights_;
};

}  // namespace mm
