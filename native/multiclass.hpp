// Classes (Crammer and Singer): f(x, y) = x ⊗ e(y), one column of weights for each class.
//
// Crammer and Singer, "On the algorithmic implementation of multiclass kernel-based vector machines",
// JMLR 2 (2001), with any loss in the place of 0/1: the planes of example i are the other classes c, with
//
//   Δf(c) = x_i ⊗ (e(y_i) - e(c)),   Δf(a).Δf(b) = |x_i|² (1 + [a = b]),   F(c) = l(y_i, c) + s_c - s_{y_i},   s = W'x_i.
//
// The oracle is a maximum over the classes: nnz(x_i) rows of K weights are added up, vector by vector, and
// read once more for the maximum. A cached visit reads the columns of the kept classes and the truth only,
// as the sequential dual method of Keerthi et al. (KDD 2008), which LIBLINEAR has, does with all classes
// that are not shrunk.
#pragma once

#include "outer_planes.hpp"

namespace mm {

template <class T>
class Multiclass final : public OuterPlanes<T> {
 public:
  using Base = OuterPlanes<T>;
  using Entry = typename Base::LambdaEntry;
  using Workspace = typename Base::Workspace;
  using Scratch = typename Base::Scratch;
  using Fresh = typename Base::Fresh;

  explicit Multiclass(const ClassData& data) : Base(data, data.n_classes), unit_(data.n_classes) {
    for (std::size_t c = 0; c < unit_.size(); ++c) unit_[c] = {static_cast<std::uint32_t>(c), 1.0};
  }

  std::span<const Entry> lambda(std::size_t c) const override { return {&unit_[c], 1}; }
  double overlap(std::size_t a, std::size_t b) const override { return a == b ? 1.0 : 0.0; }

  // What follows is OuterPlanes again, where a class is a column: no sums over λ, no sorting of columns.

  Found oracle(Workspace& base, std::size_t i, const T* w) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const ClassData& data = this->data();
    this->load(ws, i, w);
    const std::size_t truth = std::size_t(data.labels[i]), K = data.n_classes;
    const T* S = ws.S.data();
    ws.code.clear();
    Found found;
    std::size_t best = truth;
    double top = S[truth];
    if (data.cost == nullptr) {
      // All other classes cost the same: the best is the one with the highest score.
      const double bar = top - ws.loss_scale;
      const std::size_t c = largest_but(S, K, truth);
      if (c != truth && double(S[c]) > bar) best = c, top = double(S[c]) + ws.loss_scale;
    } else {
      const double* cost = data.cost + truth * K;
      for (std::size_t c = 0; c < K; ++c) {
        const double x = double(S[c]) + ws.loss_scale * cost[c];
        best = x > top ? c : best;
        top = x > top ? x : top;
      }
    }
    found.truth = best == truth;
    if (found.truth) return found;
    ws.code.push_back(static_cast<Code>(best));
    found.F = top - double(S[truth]);
    return found;
  }

  void gram(Workspace&, std::size_t i, CodeView a, std::span<const CodeView> planes, double* row) const override {
    const double square = this->norm(i);
    for (std::size_t k = 0; k < planes.size(); ++k) {
      row[k] = planes[k].empty() || a.empty() ? 0.0 : planes[k][0] == a[0] ? 2.0 * square : square;
    }
  }

  void margins(Workspace& base, std::size_t i, const T* w, CodeView, std::span<const CodeView> planes,
               std::span<const double> losses, Fresh fresh, double* F) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const std::size_t truth = std::size_t(this->data().labels[i]), m = planes.size();
    // Many columns: whole rows are faster.
    if (fresh != Fresh::kOracle && this->many(m)) {
      this->load(ws, i, w);
      fresh = Fresh::kOracle;
    }
    if (fresh == Fresh::kOracle) {
      const double own = ws.S[truth];
      for (std::size_t k = 0; k < m; ++k) F[k] = planes[k].empty() ? 0.0 : losses[k] - (own - double(ws.S[planes[k][0]]));
      return;
    }
    columns(ws, truth, planes);
    ws.value.resize(m + 1);
    this->score_columns(ws, i, w);
    const double own = ws.value[0];
    std::size_t at = 0;
    for (std::size_t k = 0; k < m; ++k) F[k] = planes[k].empty() ? 0.0 : losses[k] - (own - double(ws.value[++at]));
  }

  void accumulate(Workspace& base, std::size_t i, CodeView, std::span<const CodeView> planes, const double* coef,
                  Weights<T>& weights) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    ws.columns.assign(1, static_cast<std::uint32_t>(this->data().labels[i]));
    ws.amount.assign(1, T(0));
    double own = 0.0;
    for (std::size_t k = 0; k < planes.size(); ++k) {
      if (coef[k] == 0.0 || planes[k].empty()) continue;
      own += coef[k];
      ws.columns.push_back(planes[k][0]);
      ws.amount.push_back(-T(coef[k]));
    }
    ws.amount[0] = T(own);
    if (ws.columns.size() > 1) this->add_columns(ws, i, weights);
  }

 protected:
  void classes_of(Scratch& ws) const override {
    std::copy(ws.S.data(), ws.S.data() + this->data().n_classes, ws.classes.begin());
  }

 private:
  static void columns(Scratch& ws, std::size_t truth, std::span<const CodeView> planes) {
    ws.columns.assign(1, static_cast<std::uint32_t>(truth));
    for (const CodeView plane : planes) {
      if (!plane.empty()) ws.columns.push_back(plane[0]);
    }
  }

  // The first place other than `but` with the largest of the K numbers, or `but` where there is no other.
  static std::size_t largest_but(const T* S, std::size_t K, std::size_t but) {
    constexpr std::size_t kLanes = 8;
    T top[kLanes];
    std::fill(top, top + kLanes, -std::numeric_limits<T>::infinity());
    const auto look = [&](std::size_t begin, std::size_t end) {
      std::size_t c = begin;
      for (; c + kLanes <= end; c += kLanes) {
        for (std::size_t k = 0; k < kLanes; ++k) top[k] = S[c + k] > top[k] ? S[c + k] : top[k];
      }
      for (; c < end; ++c) top[0] = S[c] > top[0] ? S[c] : top[0];
    };
    look(0, but);
    look(but + 1, K);
    const T best = *std::max_element(top, top + kLanes);
    for (std::size_t c = 0; c < K; ++c) {
      if (S[c] == best && c != but) return c;
    }
    return but;
  }

  std::vector<Entry> unit_;  // λ(c) = e(c)
};

}  // namespace mm
