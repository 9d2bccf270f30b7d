// A chain under other formulations of the margin than the plain one: corners of its hull, its losses, the
// best labels by their merit, and the best labels at each number of errors.
//
// The scores of an example are gathered once for a w (`plain`); each further call under the same w
// (Workspace::same) starts from them.
#pragma once

#include "chain_viterbi.hpp"
#include "common_step.hpp"

namespace mm {

template <class T>
class ChainGrades : public ChainViterbi<T> {
 public:
  using Frame = ChainFrame<T>;
  using Base = Structure<T>;
  using typename Frame::Scratch;
  using Grade = typename Base::Grade;
  using Outcome = typename Base::Outcome;
  using Frame::edges;
  using Frame::has_pairs;

  explicit ChainGrades(const ChainData& data) : ChainViterbi<T>(data) {
    if (data_.labels == nullptr) return;
    const std::size_t tokens = std::size_t(data_.offsets.back());
    least_.assign(L_, 1.0);
    most_.assign(L_, L_ > 1 ? 1.0 : 0.0);
    CommonStep costs, weights;
    if (data_.cost == nullptr) {
      costs.add(1.0);
    } else {
      for (std::size_t y = 0; y < L_; ++y) {
        least_[y] = std::numeric_limits<double>::infinity();
        most_[y] = 0.0;
        for (std::size_t l = 0; l < L_; ++l) {
          const double cost = data_.cost[y * L_ + l];
          costs.add(cost);
          if (l != y) least_[y] = std::min(least_[y], cost), most_[y] = std::max(most_[y], cost);
        }
      }
    }
    if (!data_.weighs_tokens()) {
      weights.add(1.0);
    } else {
      for (std::size_t t = 0; t < tokens && weights.step() > 0.0; ++t) weights.add(data_.weight_of(t));
    }
    step_ = costs.step() * weights.step();
  }

  // ---- corners of the hull ----

  Grade corner(typename Base::Workspace& base, std::size_t i, const T* w, double lambda) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    load_plain(ws, i, w);
    const std::size_t n = data_.length(i);
    std::copy_n(ws.plain.data(), n * Lp_, ws.S.data());
    augment(ws, i, lambda);
    const Edges<T> edge = edges(w);
    const std::int32_t* truth = data_.labels + data_.offsets[i];
    this->decode(ws, i, edge, truth);
    const Found found = this->code_of_path(ws, i, edge, truth, ws.plain.data());
    return found.truth ? Grade{0.0, 0.0} : Grade{this->loss(i, ws.code), -found.F};
  }
  double corner_work(std::size_t i) const override { return viterbi_work(i); }

  LossRange losses(std::size_t i) const override {
    const std::size_t n = data_.length(i), first = std::size_t(data_.offsets[i]);
    if (data_.cost == nullptr && !data_.weighs_tokens()) return {1.0, L_ > 1 ? double(n) : 0.0, 1.0};
    LossRange range{std::numeric_limits<double>::infinity(), 0.0, step_};
    for (std::size_t t = first; t < first + n; ++t) {
      const std::size_t y = std::size_t(data_.labels[t]);
      const double weight = data_.weight_of(t);
      range.least = std::min(range.least, weight * least_[y]);
      range.most += weight * most_[y];
    }
    if (!std::isfinite(range.least)) range.least = 0.0;  // one label
    return range;
  }

  // ---- the best labels by their merit ----

  bool one_error(typename Base::Workspace& base, std::size_t i, const T* w, const Merit& merit, Grade& found) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    load_plain(ws, i, w);
    ws.code.clear();
    const std::size_t n = data_.length(i), first = std::size_t(data_.offsets[i]);
    if (L_ == 1) return false;
    const Edges<T> edge = edges(w);
    const std::int32_t* truth = data_.labels + first;
    const bool hamming = data_.cost == nullptr && !data_.weighs_tokens();
    double top = -std::numeric_limits<double>::infinity();
    std::size_t token = 0, label = 0;
    for (std::size_t t = 0; t < n; ++t) {
      // What a label here scores with the true labels around it.
      const T* own = ws.plain.data() + t * Lp_;
      const T* before = t == 0 ? edge.start : this->into(ws, edge, t) + std::size_t(truth[t - 1]) * Lp_;
      const T* after = t + 1 == n ? edge.end : this->into(ws, edge, t + 1) + std::size_t(truth[t + 1]);
      const std::size_t stride = t + 1 == n ? 1 : Lp_, y = std::size_t(truth[t]);
      const auto score = [&](std::size_t l) { return own[l] + before[l] + after[l * stride]; };
      const double mine = double(score(y));
      if (hamming) {  // the highest score will do
        T high = std::numeric_limits<T>::lowest();
        std::size_t best = y;
        for (std::size_t l = 0; l < L_; ++l) {
          const T x = score(l);
          if (x > high && l != y) high = x, best = l;
        }
        if (double(high) - mine > top) top = double(high) - mine, token = t, label = best;
        continue;
      }
      for (std::size_t l = 0; l < L_; ++l) {
        if (l == y) continue;
        const double value = merit.value(data_.token_loss(first + t, y, l), mine - double(score(l)));
        if (value > top) top = value, token = t, label = l;
      }
    }
    ws.code.push_back(static_cast<Code>(token << this->label_bits_) | Code(label));
    std::copy_n(truth, n, ws.y.begin());
    ws.y[token] = static_cast<std::uint32_t>(label);
    found.loss = this->loss(i, ws.code);
    found.margin = -this->code_of_path(ws, i, edge, truth, ws.plain.data()).F;
    ws.more_work = kOneWork * double(n * L_);
    return true;
  }

  bool offers_search() const override { return true; }

  Outcome undecided(typename Base::Workspace& base, std::size_t i, const T* w, const Merit& merit, const Undecided& open,
                    Grade& found) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    load_plain(ws, i, w);
    const std::size_t n = data_.length(i), first = std::size_t(data_.offsets[i]);
    const Edges<T> edge = edges(w);
    const std::int32_t* truth = data_.labels + first;
    double own = double(edge.start[truth[0]]) + double(edge.end[truth[n - 1]]);
    for (std::size_t t = 0; t < n; ++t) {
      own += double(ws.plain[t * Lp_ + std::size_t(truth[t])]);
      if (t > 0) own += double(this->into(ws, edge, t)[std::size_t(truth[t - 1]) * Lp_ + std::size_t(truth[t])]);
    }
    const Outcome outcome = ws.search.run(
        merit, open, ws.plain.data(), n, L_, Lp_, [&](std::size_t t) { return this->into(ws, edge, t); }, !has_pairs(), edge.start, edge.end,
        [&](std::size_t t, std::size_t l) { return data_.token_loss(first + t, std::size_t(truth[t]), l); }, own, kMostPairs, ws.y.data());
    ws.more_work = 2.0 * viterbi_work(i) + kPairWork * double(L_) * double(ws.search.kept());
    if (outcome == Outcome::kFound) {
      const double F = this->code_of_path(ws, i, edge, truth, ws.plain.data()).F;
      found = {this->loss(i, ws.code), -F};
    }
    return outcome;
  }

  // ---- the best labels at each number of errors ----

  bool offers_grades(bool any) const override { return any || (data_.cost == nullptr && !data_.weighs_tokens()); }
  bool slow_grades(std::size_t) const override { return true; }

  bool grades(typename Base::Workspace& base, std::size_t i, const T* w, bool any, std::vector<Grade>& out) const override {
    if (!offers_grades(any)) return false;
    Scratch& ws = static_cast<Scratch&>(base);
    const std::size_t n = data_.length(i), most = any ? std::min<std::size_t>(n, 1) : n;
    if (double(n) * (double(most) + 1.0) * double(Lp_) * sizeof(T) > kMostGrades) return false;
    load_plain(ws, i, w);
    const Edges<T> edge = edges(w);
    ws.table.fill(ws.plain.data(), n, L_, Lp_, data_.labels + data_.offsets[i], [&](std::size_t t) { return this->into(ws, edge, t); },
                  edge.start, edge.end, most);
    ws.more_work = kTableWork * viterbi_work(i) * double(most);
    out.clear();
    ws.errors.clear();
    for (std::size_t c = 1; c <= most; ++c) {
      if (!ws.table.reachable(c)) continue;
      out.push_back({double(c), double(ws.table.score(0)) - double(ws.table.score(c))});
      ws.errors.push_back(c);
    }
    return true;
  }

  double take_grade(typename Base::Workspace& base, std::size_t i, const T* w, std::size_t k) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const Edges<T> edge = edges(w);
    const std::int32_t* truth = data_.labels + data_.offsets[i];
    ws.table.trace(ws.errors[k], truth, [&](std::size_t t) { return this->into(ws, edge, t); }, ws.y.data());
    return -this->code_of_path(ws, i, edge, truth, ws.plain.data()).F;
  }

 protected:
  using Frame::data_;
  using Frame::L_;
  using Frame::Lp_;
  using Frame::emissions_;

 private:
  using ChainViterbi<T>::augment;

  // Scores without losses, and with pair features the transitions into each token.
  void load_plain(Scratch& ws, std::size_t i, const T* w) const {
    if (ws.same) return;
    ws.reserve(data_.length(i), Lp_);
    if (ws.plain.size() < ws.S.size()) ws.plain.reset(ws.S.size());
    emissions_.load(std::size_t(data_.offsets[i]), data_.length(i), w, ws.plain.data());
    this->load_steps(ws, i, edges(w), w + data_.row_pair() * Lp_);
  }

  double viterbi_work(std::size_t i) const {
    const double n = double(data_.length(i)), vectors = double(Lp_ * sizeof(T)) / 32.0;
    return vectors * n * double(std::min<std::size_t>(L_, 24)) + 40.0 * n;
  }

  static constexpr double kMostGrades = 8e9;  // bytes of the table of grades()
  static constexpr std::size_t kMostPairs = 1 << 17;  // that undecided() may keep
  // Cycles for each label of a pair, for one error, and of a row of the table over those of Viterbi in vector code.
  static constexpr double kPairWork = 3.0, kOneWork = 2.0, kTableWork = 2.5;

  std::vector<double> least_, most_;  // [L] least and most that an error costs, by the truth
  double step_ = 0.0;
};

}  // namespace mm
