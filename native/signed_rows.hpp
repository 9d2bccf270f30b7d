// Examples with one row of features each, whose planes are this row with a sign: binary classification
// and regression.
//
// The two planes of example i are
//   up    Δf =  x_i, l = above[i]:   w.x_i >= above[i] - ξ_i
//   down  Δf = -x_i, l = below[i]:  -w.x_i >= below[i] - ξ_i
// and either may be missing (l = -∞). These are the mappings 1.1 and 1.6 of the dual-coordinate paper: a
// binary example of the class +1 (-1) with the margin m has `up` (`down`) with the loss m alone, and a
// target t of ε-insensitive regression has both, with t - ε and -t - ε. The rows are kept once, as the user
// gave them; a plane's code is [0] (up) or [1] (down).
//
// above + below <= 0 where both are there. So no w violates both at once, and the dual loses nothing
// where one of the two multipliers is zero (taking the same amount from both leaves u and raises the
// dual by -(above + below) of it): they are one signed number, which row_ascent.hpp works on.
#pragma once

#include <cmath>
#include <mutex>

#include "structure.hpp"
#include "token_data.hpp"

namespace mm {

struct RowData : TokenData {
  std::size_t n = 0;                       // examples
  const double* above = nullptr;           // [n] at least one of the two is finite
  const double* below = nullptr;           // [n]
  const double* example_weight = nullptr;  // [n] factor of C, nullptr: ones

  std::size_t size() const { return n; }
  double weight(std::size_t i) const { return example_weight != nullptr ? example_weight[i] : 1.0; }
  std::uint64_t data_hash() const {
    DataHash hash(n);
    mix_into(hash, n);
    hash.mix(above, n * sizeof(double));
    hash.mix(below, n * sizeof(double));
    hash.mix(example_weight, example_weight == nullptr ? 0 : n * sizeof(double));
    return hash.value();
  }
};

template <class T>
class SignedRows final : public Structure<T> {
 public:
  using Base = Structure<T>;
  using Workspace = typename Base::Workspace;
  using Fresh = typename Base::Fresh;
  using Grade = typename Base::Grade;

  static constexpr Code kUp = 0, kDown = 1;

  explicit SignedRows(const RowData& data) : data_(data) {
    for (std::size_t i = 0; i < data.n; ++i) {
      for (const double l : {data.above[i], data.below[i]}) signed_ = signed_ || (l < 0.0 && std::isfinite(l));
    }
  }

  std::size_t n_examples() const override { return data_.n; }
  std::size_t n_weights() const override { return data_.n_token_rows(); }
  std::size_t row_size() const override { return 1; }
  void rows_read(std::size_t i, std::vector<std::size_t>& rows) const override {
    rows.clear();
    data_.for_features(i, [&](std::size_t row, double) { rows.push_back(row); });
  }
  std::unique_ptr<Workspace> workspace() const override { return std::make_unique<Scratch>(); }
  double example_weight(std::size_t i) const override { return data_.weight(i); }
  bool signed_losses() const override { return signed_; }
  std::size_t cache_bytes() const override { return norms_.size() * sizeof(double); }
  const SignedRows<T>* signed_rows() const override { return this; }
  const RowData& data() const { return data_; }

  // w.x_i
  double score(std::size_t i, const T* w) const {
    double sum = 0.0;
    if (!data_.indptr.empty()) sum = sparse_score(i, w);
    if (data_.dense64 != nullptr) sum += dense_score(data_.dense64 + i * data_.n_dense, w + data_.row_dense());
    if (data_.dense32 != nullptr) sum += dense_score(data_.dense32 + i * data_.n_dense, w + data_.row_dense());
    return sum;
  }
  // add(j, amount x_ij) over the features of an example
  template <class Add>
  void spread(std::size_t i, double amount, Add&& add) const {
    if (!data_.indptr.empty()) {
      const std::size_t begin = std::size_t(data_.indptr[i]), end = std::size_t(data_.indptr[i + 1]);
      const std::uint32_t* f = data_.indices.data();
      if (data_.values64 != nullptr) {
        for (std::size_t e = begin; e < end; ++e) add(f[e], T(amount * data_.values64[e]));
      } else if (data_.values != nullptr) {
        for (std::size_t e = begin; e < end; ++e) add(f[e], T(amount * double(data_.values[e])));
      } else {
        for (std::size_t e = begin; e < end; ++e) add(f[e], T(amount));
      }
    }
    const std::size_t first = data_.row_dense();
    data_.for_dense(i, [&](std::size_t j, auto x) { add(first + j, T(amount * double(x))); });
  }

  // |x_i|² of all examples, computed at first use.
  const std::vector<double>& norms() const {
    std::call_once(once_, [&] {
      std::vector<double> norms(data_.n);
      for (std::size_t i = 0; i < data_.n; ++i) {
        double sum = 0.0;
        data_.for_features(i, [&](std::size_t, double x) { sum += x * x; });
        norms[i] = sum;
      }
      norms_ = std::move(norms);
    });
    return norms_;
  }

  void prefetch_example(std::size_t i) const override {
    if (!data_.indptr.empty()) prefetch(&data_.indptr[i]);
    prefetch(data_.above + i), prefetch(data_.below + i);
  }
  // What score() reads of an example; prefetch_example() came before.
  void prefetch_row(std::size_t i) const {
    if (!data_.indptr.empty()) {
      const std::size_t begin = std::size_t(data_.indptr[i]), n = std::size_t(data_.indptr[i + 1]) - begin;
      prefetch_range(data_.indices.data() + begin, n * sizeof(std::uint32_t));
      if (data_.values != nullptr) prefetch_range(data_.values + begin, n * sizeof(float));
      if (data_.values64 != nullptr) prefetch_range(data_.values64 + begin, n * sizeof(double));
    }
    if (data_.dense32 != nullptr) prefetch_range(data_.dense32 + i * data_.n_dense, data_.n_dense * sizeof(float));
    if (data_.dense64 != nullptr) prefetch_range(data_.dense64 + i * data_.n_dense, data_.n_dense * sizeof(double));
  }

  Found oracle(Workspace& base, std::size_t i, const T* w) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    ws.G = score(i, w);
    const double up = ws.loss_scale * data_.above[i] - ws.G, down = ws.loss_scale * data_.below[i] + ws.G;
    ws.code.clear();
    Found found;
    found.truth = !(up > 0.0 || down > 0.0);
    if (found.truth) return found;
    ws.code.push_back(up >= down ? kUp : kDown);
    found.F = std::max(up, down);
    return found;
  }
  double oracle_work(std::size_t i) const override { return 60.0 + 2.0 * double(data_.n_features(i)); }

  // There are no more outputs than these: every formulation is exact.
  bool offers_grades(bool) const override { return true; }
  bool grades(Workspace& base, std::size_t i, const T* w, bool, std::vector<Grade>& out) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    ws.G = score(i, w);
    out.clear();
    if (present(i, kUp)) out.push_back({data_.above[i], ws.G});
    if (present(i, kDown)) out.push_back({data_.below[i], -ws.G});
    return true;
  }
  double take_grade(Workspace& base, std::size_t i, const T*, std::size_t k) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const Code code = k == 0 && present(i, kUp) ? kUp : kDown;
    ws.code.assign(1, code);
    return code == kUp ? ws.G : -ws.G;
  }

  double loss(std::size_t i, CodeView plane) const override {
    return plane.empty() ? 0.0 : plane[0] == kUp ? data_.above[i] : data_.below[i];
  }
  bool valid(std::size_t i, CodeView code) const override { return code.size() == 1 && code[0] <= kDown && present(i, code[0]); }
  void gram(Workspace&, std::size_t i, CodeView a, std::span<const CodeView> planes, double* row) const override {
    const double square = norms()[i];
    for (std::size_t k = 0; k < planes.size(); ++k) {
      row[k] = a.empty() || planes[k].empty() ? 0.0 : a[0] == planes[k][0] ? square : -square;
    }
  }
  void margins(Workspace& base, std::size_t i, const T* w, CodeView, std::span<const CodeView> planes,
               std::span<const double> losses, Fresh fresh, double* F) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    if (fresh != Fresh::kOracle) ws.G = score(i, w);
    for (std::size_t k = 0; k < planes.size(); ++k) {
      F[k] = planes[k].empty() ? 0.0 : losses[k] - (planes[k][0] == kUp ? ws.G : -ws.G);
    }
  }
  void accumulate(Workspace&, std::size_t i, CodeView, std::span<const CodeView> planes, const double* coef,
                  Weights<T>& weights) const override {
    double amount = 0.0;
    for (std::size_t k = 0; k < planes.size(); ++k) {
      if (!planes[k].empty()) amount += planes[k][0] == kUp ? coef[k] : -coef[k];
    }
    if (amount == 0.0) return;
    weights.adding([&](auto&& add) { spread(i, amount, add); });
  }

 private:
  struct Scratch : Workspace {
    double G = 0.0;  // w.x of the last oracle() or margins()
  };

  bool present(std::size_t i, Code code) const { return std::isfinite(code == kUp ? data_.above[i] : data_.below[i]); }

  // Several sums side by side, to hide the latency of additions.
  double sparse_score(std::size_t i, const T* w) const {
    const std::size_t begin = std::size_t(data_.indptr[i]), end = std::size_t(data_.indptr[i + 1]);
    const std::uint32_t* f = data_.indices.data();
    const auto sum = [&](auto value) {
      double s[4] = {0, 0, 0, 0};
      std::size_t e = begin;
      for (; e + 4 <= end; e += 4) {
        for (std::size_t k = 0; k < 4; ++k) s[k] += value(e + k) * double(w[f[e + k]]);
      }
      for (; e < end; ++e) s[0] += value(e) * double(w[f[e]]);
      return (s[0] + s[1]) + (s[2] + s[3]);
    };
    if (data_.values64 != nullptr) return sum([v = data_.values64](std::size_t e) { return v[e]; });
    if (data_.values != nullptr) return sum([v = data_.values](std::size_t e) { return double(v[e]); });
    return sum([](std::size_t) { return 1.0; });
  }
  template <class X>
  double dense_score(const X* x, const T* w) const {
    constexpr std::size_t kLanes = 8;
    double s[kLanes] = {};
    std::size_t j = 0;
    for (; j + kLanes <= data_.n_dense; j += kLanes) {
      for (std::size_t k = 0; k < kLanes; ++k) s[k] += double(x[j + k]) * double(w[j + k]);
    }
    for (; j < data_.n_dense; ++j) s[0] += double(x[j]) * double(w[j]);
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
  }

  RowData data_;
  bool signed_ = false;
  mutable std::once_flag once_;
  mutable std::vector<double> norms_;
};

}  // namespace mm
