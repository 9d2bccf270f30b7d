// The general family of planes: Δf is a sparse vector, kept as it is.
//
// A structure of this family writes three things (Outputs below): its oracle, the features of an
// output and its loss. Everything that the engine does with planes later (Gram entries, margins,
// steps, checkpoints, either precision) is here. A plane's code, in 32-bit words:
//   [loss: 2][index: n, ascending][value: 2 n]
// losses and values being 8-byte numbers, so that a code means the same in both precisions.
//
// Losses are relative to those of the reference output (the truth, for most) and may be negative.
//
// Weights that come in padded rows stand at other places in either precision. There an index of a code has the
// row and the column, and RowPlaces tells the place; elsewhere it is the place itself.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "structure.hpp"

namespace mm {

// An index of a code is the place of the weight.
struct DirectPlaces {
  std::size_t operator()(std::uint32_t index) const { return index; }
  std::size_t end(std::size_t n_weights) const { return n_weights; }  // indices are below this
};

// An index has the column in its lowest bits and the row above them.
struct RowPlaces {
  RowPlaces(std::size_t columns, std::size_t padded) : bits(static_cast<int>(std::bit_width(columns - 1))), columns(columns), padded(padded) {}
  std::uint32_t index(std::size_t row, std::size_t column) const { return std::uint32_t((row << bits) | column); }
  std::size_t operator()(std::uint32_t index) const { return std::size_t(index >> bits) * padded + (index & ((1u << bits) - 1)); }
  std::size_t end(std::size_t n_weights) const { return n_weights / padded << bits; }
  int bits;
  std::size_t columns, padded;
};

// Reads a code of this family.
class SparsePlane {
 public:
  explicit SparsePlane(CodeView code) : code_(code), n_(code.empty() ? 0 : (code.size() - 2) / 3) {}

  std::size_t size() const { return n_; }
  double loss() const { return code_.empty() ? 0.0 : number(code_.data()); }
  std::uint32_t index(std::size_t k) const { return code_[2 + k]; }
  double value(std::size_t k) const { return number(code_.data() + 2 + n_ + 2 * k); }

  template <class T, class Places = DirectPlaces>
  double dot(const T* w, const Places& places = {}) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < n_; ++k) sum += value(k) * double(w[places(index(k))]);
    return sum;
  }
  double dot(const SparsePlane& other) const {
    double sum = 0.0;
    for (std::size_t p = 0, q = 0; p < n_ && q < other.n_;) {
      if (index(p) < other.index(q)) {
        ++p;
      } else if (other.index(q) < index(p)) {
        ++q;
      } else {
        sum += value(p++) * other.value(q++);
      }
    }
    return sum;
  }

  // Could write() have made this code, for so many features?
  static bool valid(CodeView code, std::size_t n_features) {
    if (code.size() < 2 || (code.size() - 2) % 3 != 0) return false;
    const SparsePlane plane(code);
    if (!std::isfinite(plane.loss())) return false;
    for (std::size_t k = 0; k < plane.size(); ++k) {
      if (plane.index(k) >= n_features || (k > 0 && plane.index(k) <= plane.index(k - 1)) || !std::isfinite(plane.value(k))) return false;
    }
    return true;
  }

  // From indices that ascend.
  static void write(double loss, std::span<const std::uint32_t> indices, std::span<const double> values, std::vector<Code>& code) {
    const std::size_t n = indices.size();
    code.resize(2 + 3 * n);
    std::memcpy(code.data(), &loss, sizeof loss);
    std::copy(indices.begin(), indices.end(), code.begin() + 2);
    if (n > 0) std::memcpy(code.data() + 2 + n, values.data(), n * sizeof(double));
  }

 private:
  static double number(const Code* at) {
    double x;
    std::memcpy(&x, at, sizeof x);
    return x;
  }
  CodeView code_;
  std::size_t n_;
};

// A sparse vector in the making: entries in any order, any index several times.
class SparseSum {
 public:
  void clear() { entries_.clear(); }
  void add(std::size_t index, double value) { entries_.push_back({static_cast<std::uint32_t>(index), sign_ * value}); }
  // What add() multiplies by from now on.
  void set_sign(double sign) { sign_ = sign; }

  // The code of the plane with this loss: sorted, equal indices summed (in the order in which they
  // were added), zeros left out.
  void write(double loss, std::vector<Code>& code) {
    std::stable_sort(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    indices_.clear(), values_.clear();
    for (std::size_t k = 0; k < entries_.size();) {
      const std::uint32_t index = entries_[k].first;
      double sum = 0.0;
      for (; k < entries_.size() && entries_[k].first == index; ++k) sum += entries_[k].second;
      if (sum != 0.0) indices_.push_back(index), values_.push_back(sum);
    }
    SparsePlane::write(loss, indices_, values_, code);
  }

 private:
  std::vector<std::pair<std::uint32_t, double>> entries_;
  std::vector<std::uint32_t> indices_;
  std::vector<double> values_;
  double sign_ = 1.0;
};

// What the engine does with planes of this family.
template <class T, class Places = DirectPlaces>
class SparsePlanes : public Structure<T> {
 public:
  explicit SparsePlanes(Places places = {}) : places_(places) {}
  using Base = Structure<T>;
  using Workspace = typename Base::Workspace;
  using Fresh = typename Base::Fresh;

  double loss(std::size_t, CodeView plane) const override { return SparsePlane(plane).loss(); }

  void gram(Workspace&, std::size_t, CodeView a, std::span<const CodeView> planes, double* row) const override {
    const SparsePlane plane(a);
    for (std::size_t k = 0; k < planes.size(); ++k) row[k] = plane.dot(SparsePlane(planes[k]));
  }

  void margins(Workspace&, std::size_t, const T* w, CodeView, std::span<const CodeView> planes,
               std::span<const double> losses, Fresh, double* F) const override {
    for (std::size_t k = 0; k < planes.size(); ++k) F[k] = planes[k].empty() ? 0.0 : losses[k] - SparsePlane(planes[k]).dot(w, places_);
  }

  void accumulate(Workspace&, std::size_t, CodeView, std::span<const CodeView> planes, const double* coef,
                  Weights<T>& weights) const override {
    for (std::size_t k = 0; k < planes.size(); ++k) {
      if (coef[k] == 0.0) continue;
      const SparsePlane plane(planes[k]);
      for (std::size_t p = 0; p < plane.size(); ++p) weights.add(places_(plane.index(p)), static_cast<T>(coef[k] * plane.value(p)));
    }
  }

  bool valid(std::size_t, CodeView code) const override { return SparsePlane::valid(code, places_.end(this->n_weights())); }

 protected:
  const Places& places() const { return places_; }

 private:
  [[no_unique_address]] Places places_;
};

// A native structure: what it writes, and the oracle that follows. An output is a list of words that
// only the structure understands.
template <class T>
class Outputs : public SparsePlanes<T> {
 public:
  using Workspace = typename Structure<T>::Workspace;

  struct Scratch : Workspace {
    std::vector<Code> output;  // what best() found
    SparseSum sum;
  };
  std::unique_ptr<Workspace> workspace() const override { return std::make_unique<Scratch>(); }

  // ---- a structure writes these ----

  // Put argmax over y of scale * loss(i, y) + w.f(x_i, y) into ws.output.
  virtual void best(Scratch& ws, std::size_t i, const T* w, double scale) const = 0;
  // The reference output of example i: the truth.
  virtual CodeView reference(std::size_t i) const = 0;
  // Add f(x_i, y) up.
  virtual void features(std::size_t i, CodeView output, SparseSum& f) const = 0;
  // The loss of y, less that of the reference.
  virtual double output_loss(std::size_t i, CodeView output) const = 0;

  // ---- and gets this ----

  Found oracle(Workspace& base, std::size_t i, const T* w) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    best(ws, i, w, ws.loss_scale);
    const CodeView truth = reference(i);
    ws.code.clear();
    Found found;
    if (std::ranges::equal(ws.output, truth)) return found;
    write_plane(ws, i, ws.output);
    const SparsePlane plane(ws.code);
    found.truth = false;
    found.F = ws.loss_scale * plane.loss() - plane.dot(w);
    return found;
  }

 protected:
  // Δf = f(reference) - f(output), and the loss, into ws.code.
  void write_plane(Scratch& ws, std::size_t i, CodeView output) const {
    ws.sum.clear();
    ws.sum.set_sign(1.0);
    features(i, reference(i), ws.sum);
    ws.sum.set_sign(-1.0);
    features(i, output, ws.sum);
    ws.sum.write(output_loss(i, output), ws.code);
  }
};

}  // namespace mm
