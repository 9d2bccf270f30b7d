// The family of planes of f(x, y) = x ⊗ λ(y): classes, taxonomies.
//
// y is one of K classes and λ(y) a short vector of columns; w is a matrix with a row for each feature
// of x and the columns along the row. A plane is a class, its code is [class], and with
// o(a, b) = λ(a).λ(b) the Gram entry of two planes of example i is
//
//   Δf(a).Δf(b) = |x_i|² (λ(y_i) - λ(a)).(λ(y_i) - λ(b)) = |x_i|² (o(y_i, y_i) - o(y_i, a) - o(y_i, b) + o(a, b)).
//
// A structure of this family writes λ, o and the loss; all outputs can be listed, so that every
// formulation of the margin is exact for any loss.
#pragma once

#include <atomic>

#include "emissions.hpp"
#include "structure.hpp"

namespace mm {

// Examples of one token each, with the class that is true and what others cost.
struct ClassData : TokenData {
  std::size_t n_classes = 0;
  std::span<const std::int32_t> labels;    // [n] true class
  const double* cost = nullptr;            // [K][K] cost[truth][class], nullptr: 0 or 1
  const double* example_weight = nullptr;  // [n] factor of C, nullptr: ones

  std::size_t size() const { return labels.size(); }
  double loss(std::size_t i, std::size_t c) const {
    const std::size_t truth = std::size_t(labels[i]);
    return cost != nullptr ? cost[truth * n_classes + c] : truth != c ? 1.0 : 0.0;
  }
  std::uint64_t data_hash() const {
    DataHash hash(n_classes);
    mix_into(hash, size());
    hash.mix(labels.data(), labels.size_bytes());
    hash.mix(cost, n_classes * n_classes * sizeof(double));
    hash.mix(example_weight, size() * sizeof(double));
    return hash.value();
  }
};

template <class T>
class OuterPlanes : public Structure<T> {
 public:
  using Base = Structure<T>;
  using Workspace = typename Base::Workspace;
  using Fresh = typename Base::Fresh;
  using Grade = typename Base::Grade;

  // ---- a structure writes these ----

  // The entries of λ(c) that are not zero; at least one.
  struct LambdaEntry {
    std::uint32_t column;
    double value;
  };
  virtual std::span<const LambdaEntry> lambda(std::size_t c) const = 0;
  // o(a, b)
  virtual double overlap(std::size_t a, std::size_t b) const = 0;

  // ---- and gets the rest ----

  struct Scratch : Workspace {
    AlignedArray<T> S;                     // [Kp] scores of the columns, of the last oracle
    std::vector<std::uint32_t> columns;    // those that a visit needs, each once
    std::vector<T> value, amount;          // of these columns
    std::vector<double> classes;           // [K] scores of the classes
  };

  OuterPlanes(const ClassData& data, std::size_t n_columns)
      : data_(data), Kp_(padded_labels<T>(n_columns)), emissions_(data_, Kp_), norms_(data.size()) {
    for (auto& norm : norms_) norm.store(-1.0, std::memory_order_relaxed);
  }

  std::size_t n_examples() const override { return data_.size(); }
  std::size_t n_weights() const override { return data_.n_token_rows() * Kp_; }
  std::size_t row_size() const override { return Kp_; }
  void rows_read(std::size_t i, std::vector<std::size_t>& rows) const override {
    rows.clear();
    data_.for_features(i, [&](std::size_t row, double) { rows.push_back(row); });
  }
  double example_weight(std::size_t i) const override { return data_.example_weight != nullptr ? data_.example_weight[i] : 1.0; }
  std::unique_ptr<Workspace> workspace() const override {
    auto ws = std::make_unique<Scratch>();
    ws->S.reset(Kp_);
    ws->classes.resize(data_.n_classes);
    return ws;
  }
  std::size_t cache_bytes() const override { return norms_.size() * sizeof(double); }

  Found oracle(Workspace& base, std::size_t i, const T* w) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    score_classes(ws, i, w);
    const std::size_t truth = std::size_t(data_.labels[i]);
    std::size_t best = truth;
    double top = ws.classes[truth];
    for (std::size_t c = 0; c < data_.n_classes; ++c) {
      const double x = ws.classes[c] + ws.loss_scale * data_.loss(i, c);
      if (x > top) top = x, best = c;
    }
    ws.code.clear();
    Found found;
    found.truth = best == truth;
    if (found.truth) return found;
    ws.code.push_back(static_cast<Code>(best));
    found.F = top - ws.classes[truth];
    return found;
  }
  double oracle_work(std::size_t i) const override {
    return emissions_.load_work(1.0, double(data_.n_features(i) - data_.n_dense)) + 2.0 * double(data_.n_classes) + 40.0;
  }

  // All classes are looked at anyway: the best of each loss, or of all, costs one oracle call.
  bool offers_grades(bool) const override { return true; }
  bool grades(Workspace& base, std::size_t i, const T* w, bool, std::vector<Grade>& out) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    score_classes(ws, i, w);
    const std::size_t truth = std::size_t(data_.labels[i]);
    out.clear();
    out.reserve(data_.n_classes);
    for (std::size_t c = 0; c < data_.n_classes; ++c) {
      if (c != truth) out.push_back({data_.loss(i, c), ws.classes[truth] - ws.classes[c]});
    }
    return true;
  }
  double take_grade(Workspace& base, std::size_t i, const T*, std::size_t k) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const std::size_t truth = std::size_t(data_.labels[i]), c = k < truth ? k : k + 1;
    ws.code.assign(1, static_cast<Code>(c));
    return ws.classes[truth] - ws.classes[c];
  }

  double loss(std::size_t i, CodeView plane) const override { return plane.empty() ? 0.0 : data_.loss(i, plane[0]); }
  bool valid(std::size_t i, CodeView code) const override {
    return code.size() == 1 && code[0] < data_.n_classes && code[0] != Code(data_.labels[i]);
  }
  void gram(Workspace&, std::size_t i, CodeView a, std::span<const CodeView> planes, double* row) const override {
    const std::size_t y = std::size_t(data_.labels[i]);
    const double square = norm(i);
    for (std::size_t k = 0; k < planes.size(); ++k) {
      if (planes[k].empty() || a.empty()) {
        row[k] = 0.0;
      } else {
        row[k] = square * (overlap(y, y) - overlap(y, a[0]) - overlap(y, planes[k][0]) + overlap(a[0], planes[k][0]));
      }
    }
  }
  double gram_work(CodeView, CodeView kept) const override { return 50.0 + 5.0 * double(kept.size()); }

  // The index lists the classes of the kept planes, for prefetching.
  void index(Workspace&, std::size_t, CodeView plane, std::vector<Code>& index) const override {
    if (std::find(index.begin(), index.end(), plane[0]) == index.end()) index.push_back(plane[0]);
  }
  void reindex(Workspace&, std::size_t, std::span<const CodeView> planes, std::vector<Code>& index) const override {
    index.clear();
    for (const CodeView plane : planes) {
      if (!plane.empty()) index.push_back(plane[0]);
    }
  }
  void prefetch_part(std::size_t i, CodeView index, const T* w) const override {
    const TokenRow row(data_, i);
    // Rows of up to two cache lines are fetched whole; of longer ones the columns that are needed.
    if (Kp_ * sizeof(T) <= 128) {
      for (const std::uint32_t f : row.features) prefetch_range(w + std::size_t(f) * Kp_, Kp_ * sizeof(T));
      return;
    }
    const std::size_t own = lambda(std::size_t(data_.labels[i])).back().column;
    for (const std::uint32_t f : row.features) mm::prefetch(w + std::size_t(f) * Kp_ + own);
    for (const Code c : index) {
      const std::size_t column = lambda(c).back().column;
      for (const std::uint32_t f : row.features) mm::prefetch(w + std::size_t(f) * Kp_ + column);
    }
  }
  // Examples are short and visited in any order, so that what they read is seldom in the cache.
  void prefetch_ends(std::size_t i) const override {
    mm::prefetch(&data_.labels[i]);
    if (!data_.indptr.empty()) mm::prefetch(&data_.indptr[i]);
  }
  void prefetch_example(std::size_t i) const override {
    if (data_.indptr.empty()) return;
    const std::size_t begin = std::size_t(data_.indptr[i]), n = std::size_t(data_.indptr[i + 1]) - begin;
    prefetch_range(data_.indices.data() + begin, n * sizeof(std::uint32_t));
    if (data_.values != nullptr) prefetch_range(data_.values + begin, n * sizeof(float));
    if (data_.values64 != nullptr) prefetch_range(data_.values64 + begin, n * sizeof(double));
  }
  void prefetch_oracle(std::size_t i, const T* w) const override {
    constexpr std::size_t kRows = 32, kBytes = 256;  // what a core can have under way, and more
    const TokenRow row(data_, i);
    for (const std::uint32_t f : row.features.first(std::min(row.features.size(), kRows))) {
      prefetch_range(w + std::size_t(f) * Kp_, std::min(Kp_ * sizeof(T), kBytes));
    }
  }

  void margins(Workspace& base, std::size_t i, const T* w, CodeView, std::span<const CodeView> planes,
               std::span<const double> losses, Fresh fresh, double* F) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const std::size_t truth = std::size_t(data_.labels[i]);
    if (fresh != Fresh::kOracle) {
      need_columns(ws, truth, planes);
      score_columns(ws, i, w);
    }
    const auto score = [&](std::size_t c) {
      if (fresh == Fresh::kOracle) return ws.classes[c];
      double sum = 0.0;
      for (const auto& [column, value] : lambda(c)) sum += value * double(ws.value[place(ws, column)]);
      return sum;
    };
    const double own = score(truth);
    for (std::size_t k = 0; k < planes.size(); ++k) F[k] = planes[k].empty() ? 0.0 : losses[k] - (own - score(planes[k][0]));
  }

  void accumulate(Workspace& base, std::size_t i, CodeView, std::span<const CodeView> planes, const double* coef,
                  Weights<T>& weights) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const std::size_t truth = std::size_t(data_.labels[i]);
    need_columns(ws, truth, planes);
    ws.amount.assign(ws.columns.size(), T(0));
    double own = 0.0;
    for (std::size_t k = 0; k < planes.size(); ++k) {
      if (coef[k] == 0.0 || planes[k].empty()) continue;
      own += coef[k];
      for (const auto& [column, value] : lambda(planes[k][0])) ws.amount[place(ws, column)] -= T(coef[k] * value);
    }
    if (own == 0.0 && std::all_of(ws.amount.begin(), ws.amount.end(), [](T a) { return a == T(0); })) return;
    for (const auto& [column, value] : lambda(truth)) ws.amount[place(ws, column)] += T(own * value);
    add_columns(ws, i, weights);
  }

  // Scores of all classes at example i, without loss: fills ws.classes.
  void score_classes(Scratch& ws, std::size_t i, const T* w) const {
    load(ws, i, w);
    classes_of(ws);
  }

 protected:
  const ClassData& data() const { return data_; }

  // ws.S = scores of all columns at example i.
  void load(Scratch& ws, std::size_t i, const T* w) const { emissions_.load(i, 1, w, ws.S.data()); }
  // Are so many columns better read with whole rows? A column of a row costs about as much as a vector.
  bool many(std::size_t n_columns) const { return n_columns >= 4 && n_columns * 32 > 2 * Kp_ * sizeof(T); }
  // ws.classes from ws.S
  virtual void classes_of(Scratch& ws) const {
    for (std::size_t c = 0; c < data_.n_classes; ++c) {
      double sum = 0.0;
      for (const auto& [column, value] : lambda(c)) sum += value * double(ws.S[column]);
      ws.classes[c] = sum;
    }
  }
  // ws.value = scores of ws.columns at example i
  void score_columns(Scratch& ws, std::size_t i, const T* w) const {
    ws.value.resize(ws.columns.size());
    const TokenRow row(data_, i);
    for_groups(ws, [&](std::size_t at, std::size_t n) { emissions_.score(i, row, w, ws.columns.data() + at, n, ws.value.data() + at); });
  }
  // u += x_i ⊗ (ws.amount at ws.columns)
  void add_columns(const Scratch& ws, std::size_t i, Weights<T>& weights) const {
    const TokenRow row(data_, i);
    for_groups(ws, [&](std::size_t at, std::size_t n) { emissions_.add(i, row, ws.columns.data() + at, ws.amount.data() + at, n, weights); });
  }

  // |x_i|², computed once.
  double norm(std::size_t i) const {
    double known = norms_[i].load(std::memory_order_relaxed);
    if (known >= 0.0) return known;
    known = 0.0;
    data_.for_features(i, [&](std::size_t, double x) { known += x * x; });
    norms_[i].store(known, std::memory_order_relaxed);
    return known;
  }

 private:
  void need_columns(Scratch& ws, std::size_t truth, std::span<const CodeView> planes) const {
    ws.columns.clear();
    const auto need = [&](std::size_t c) {
      for (const auto& entry : lambda(c)) ws.columns.push_back(entry.column);
    };
    need(truth);
    for (const CodeView plane : planes) {
      if (!plane.empty()) need(plane[0]);
    }
    std::sort(ws.columns.begin(), ws.columns.end());
    ws.columns.erase(std::unique(ws.columns.begin(), ws.columns.end()), ws.columns.end());
  }
  static std::size_t place(const Scratch& ws, std::uint32_t column) {
    return std::size_t(std::lower_bound(ws.columns.begin(), ws.columns.end(), column) - ws.columns.begin());
  }
  template <class F>
  static void for_groups(const Scratch& ws, F&& f) {
    for (std::size_t at = 0; at < ws.columns.size(); at += Emissions<T>::kTogether) {
      f(at, std::min(Emissions<T>::kTogether, ws.columns.size() - at));
    }
  }

  ClassData data_;
  std::size_t Kp_;
  Emissions<T> emissions_;
  mutable std::vector<std::atomic<double>> norms_;
};

}  // namespace mm
