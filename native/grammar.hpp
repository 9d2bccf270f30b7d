// Parse trees of a weighted context-free grammar: a structure of the family of sparse planes.
//
// Oracles, by loss:
//   brackets   a sum over nodes: one CKY with the loss in the scores of nodes
//   zero_one   the best tree, or the best one but the truth (cky_other.hpp)
//   f1         CKY with linear bounds, then a dynamic programme over counts where they do not decide
//              (cky_search.hpp)
// Other formulations of the margin: zero_one has one grade; f1 and brackets search by counts with the merit of
// the formulation. The best tree other than the truth serves the formulation without losses.
#pragma once

#include "cky_other.hpp"
#include "cky_search.hpp"
#include "sparse_planes.hpp"

namespace mm {

template <class T>
class GrammarStructure final : public Outputs<T> {
 public:
  using Base = Structure<T>;
  using Workspace = typename Base::Workspace;
  using Grade = typename Base::Grade;
  using Outcome = typename Base::Outcome;

  struct Scratch final : Outputs<T>::Scratch {
    NodeScores<T> scores;
    Chart<T> chart;
    OtherTree<T> other;
    CountSearch<T> search;
    std::vector<Code> candidate;
    std::vector<Bracket> brackets;
    double bound = 0.0;       // of the last best(), if it gave up
    double searched = 0.0;    // work of searches of the last call, in cycles
    std::size_t rounds = 0;   // CKY runs of the last call
    std::size_t kept = 0;
  };
  std::unique_ptr<Workspace> workspace() const override { return std::make_unique<Scratch>(); }

  explicit GrammarStructure(const GrammarData& data) : data_(data), rules_(*data.rules) {
    if (data.code_ptr.empty()) return;
    gold_ptr_.push_back(0);
    for (std::size_t i = 0; i < data.size(); ++i) {
      brackets_of(data.truth(i), gold_);
      std::sort(gold_.begin() + std::ptrdiff_t(gold_ptr_.back()), gold_.end());
      gold_ptr_.push_back(gold_.size());
    }
  }

  std::size_t n_examples() const override { return data_.size(); }
  std::size_t n_weights() const override { return data_.n_weights(); }
  double example_weight(std::size_t i) const override { return data_.example_weight != nullptr ? data_.example_weight[i] : 1.0; }
  void require_truth() const override {
    if (data_.code_ptr.empty()) throw BadInput("the sentences have no trees to learn from");
  }

  // ---- outputs ----

  CodeView reference(std::size_t i) const override { return data_.truth(i); }
  void features(std::size_t i, CodeView output, SparseSum& f) const override {
    for_features(i, output, [&](std::size_t j) { f.add(j, 1.0); });
  }
  template <class Visit>
  void for_features(std::size_t i, CodeView output, Visit&& visit) const {
    if (output.empty()) return;
    visit(rules_.n_weighted + std::size_t(rules_.root[rules_.lhs[output[0]]]));
    for (std::size_t e = 0; e < output.size(); e += 2) {
      const std::uint32_t rule = output[e], label = rules_.lhs[rule];
      if (rule < rules_.n_weighted) visit(rule);
      if (!rules_.is_label(label) || data_.entry_label.empty()) continue;
      data_.for_attributes(i, output[e + 1] >> 16, output[e + 1] & 0xffffu, [&](std::uint32_t a) {
        const auto first = data_.entry_label.begin() + data_.entry_ptr[a], last = data_.entry_label.begin() + data_.entry_ptr[a + 1];
        const auto at = std::lower_bound(first, last, label);
        if (at != last && *at == label) visit(data_.first_entry() + std::size_t(at - data_.entry_label.begin()));
      });
    }
  }
  double score(std::size_t i, CodeView output, const T* w) const {
    double sum = 0.0;
    for_features(i, output, [&](std::size_t j) { sum += double(w[j]); });
    return sum;
  }
  double output_loss(std::size_t i, CodeView output) const override {
    if (data_.loss == TreeLoss::kZeroOne) return std::ranges::equal(output, data_.truth(i)) ? 0.0 : 1.0;
    std::vector<Bracket> brackets;
    const Counts counts = count(i, output, brackets);
    return count_loss(i).value(counts.c, counts.p);
  }

  // ---- oracles ----

  void best(typename Outputs<T>::Scratch& base, std::size_t i, const T* w, double scale) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    ws.bound = 0.0, ws.searched = 0.0, ws.rounds = 0, ws.kept = 0;
    ws.output.clear();
    if (data_.loss == TreeLoss::kF1 && scale > 0.0) return best_f1(ws, i, w, scale);
    ws.scores.start(data_, i, w, gold(i));
    const bool by_node = data_.loss == TreeLoss::kBrackets;
    if (!ws.chart.inside(ws.scores, by_node ? BracketGain{-scale, scale} : BracketGain{})) return take_truth(ws, i);
    ws.chart.best_tree(ws.output);
    if (data_.loss == TreeLoss::kZeroOne && scale > 0.0 && is_truth(i, ws.output)) {
      ws.candidate.clear();
      const double value = ws.other.find(ws.chart, data_.truth(i), ws.candidate);
      if (value + scale > score(i, data_.truth(i), w)) ws.output.swap(ws.candidate);
    }
  }

  Found oracle(Workspace& base, std::size_t i, const T* w) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    Found found = Outputs<T>::oracle(base, i, w);
    found.bound = ws.bound;
    ws.more_work = ws.searched;
    return found;
  }

  LossRange losses(std::size_t) const override {
    if (data_.loss == TreeLoss::kZeroOne) return {1.0, 1.0, 1.0};
    if (data_.loss == TreeLoss::kF1) return {0.0, 1.0, 0.0};
    return {0.0, kInfinity, 1.0};
  }

  // The best tree other than the truth; it is the only grade that there is with the 0/1 loss.
  bool offers_grades(bool any) const override { return any || data_.loss == TreeLoss::kZeroOne; }
  bool grades(Workspace& base, std::size_t i, const T* w, bool any, std::vector<Grade>& out) const override {
    if (!offers_grades(any)) return false;
    Scratch& ws = static_cast<Scratch&>(base);
    ws.scores.start(data_, i, w, gold(i));
    ws.output.clear();
    out.clear();
    if (!ws.chart.inside(ws.scores, {})) return true;
    ws.chart.best_tree(ws.output);
    if (is_truth(i, ws.output)) {
      ws.output.clear();
      if (ws.other.find(ws.chart, data_.truth(i), ws.output) == -kInfinity) return true;
    }
    out.push_back({output_loss(i, ws.output), score(i, data_.truth(i), w) - score(i, ws.output, w)});
    return true;
  }
  double take_grade(Workspace& base, std::size_t i, const T* w, std::size_t) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    this->write_plane(ws, i, ws.output);
    return SparsePlane(ws.code).dot(w);
  }

  // Of all formulations with losses: the same search, with the merit of each.
  Outcome greatest(Workspace& base, std::size_t i, const T* w, const Merit& merit, Grade& found) const override {
    if (data_.loss == TreeLoss::kZeroOne) return Outcome::kGaveUp;
    Scratch& ws = static_cast<Scratch&>(base);
    ws.searched = 0.0, ws.rounds = 0, ws.kept = 0;
    const typename CountSearch<T>::Question question{&merit, score(i, data_.truth(i), w), 0.0, 0.0, kInfinity};
    const auto outcome = search(ws, i, w, question, merit.one(), true);
    ws.more_work = ws.searched;
    if (outcome == CountSearch<T>::Outcome::kGaveUp) return Outcome::kGaveUp;
    if (outcome == CountSearch<T>::Outcome::kNothing) return Outcome::kNothing;
    this->write_plane(ws, i, ws.output);
    const SparsePlane plane(ws.code);
    found = {plane.loss(), plane.dot(w)};
    return Outcome::kFound;
  }

  double oracle_work(std::size_t i) const override { return cky_work(data_.n_tokens(i)); }

  // ---- prediction ----

  // The best tree; false if there is none.
  bool parse(Scratch& ws, std::size_t i, const T* w) const {
    ws.output.clear();
    ws.scores.start(data_, i, w, {});
    if (!ws.chart.inside(ws.scores, {})) return false;
    ws.chart.best_tree(ws.output);
    return true;
  }

 private:
  std::span<const Bracket> gold(std::size_t i) const {
    return std::span(gold_).subspan(gold_ptr_[i], gold_ptr_[i + 1] - gold_ptr_[i]);
  }
  CountLoss count_loss(std::size_t i) const { return {data_.loss, gold_ptr_[i + 1] - gold_ptr_[i]}; }
  void take_truth(Scratch& ws, std::size_t i) const {
    const CodeView truth = data_.truth(i);
    ws.output.assign(truth.begin(), truth.end());
  }
  bool is_truth(std::size_t i, CodeView output) const { return std::ranges::equal(output, data_.truth(i)); }

  // The brackets of a tree, appended. (Python's Grammar.brackets says the same.)
  void brackets_of(CodeView output, std::vector<Bracket>& out) const {
    for (std::size_t e = 0; e < output.size(); e += 2) {
      const std::uint32_t rule = output[e], label = rules_.lhs[rule];
      if (!rules_.is_label(label) || rules_.label_class[label] < 0) continue;
      if (rules_.is_lexical(rule) && !data_.count_lexical) continue;
      if (e == 0 && !data_.count_root) continue;
      out.push_back({output[e + 1], rules_.label_class[label]});
    }
  }
  Counts count(std::size_t i, CodeView output, std::vector<Bracket>& brackets) const {
    brackets.clear();
    brackets_of(output, brackets);
    const CountLoss loss = count_loss(i);
    Counts sum;
    for (const Bracket& b : brackets) {
      const Counts one = loss.of(std::binary_search(gold(i).begin(), gold(i).end(), b));
      sum.c += one.c, sum.p += one.p;
    }
    return sum;
  }

  void best_f1(Scratch& ws, std::size_t i, const T* w, double scale) const {
    const Merit merit(Rescale::kMargin, false, scale);
    const double own = score(i, data_.truth(i), w);
    const typename CountSearch<T>::Question question{&merit, own, 0.0, 0.0, kInfinity};
    if (search(ws, i, w, question, scale, false) == CountSearch<T>::Outcome::kNothing || ws.output.empty()) take_truth(ws, i);
  }

  // A tree that answers the question, in ws.output. If it gives up: the best one that was met, and ws.bound.
  // `curved`: the merit is not linear in the loss, and λ is the slope to begin with.
  typename CountSearch<T>::Outcome search(Scratch& ws, std::size_t i, const T* w, typename CountSearch<T>::Question q, double lambda,
                                          bool curved) const {
    using Found = typename CountSearch<T>::Outcome;
    const std::size_t n = data_.n_tokens(i);
    const CountLoss loss = count_loss(i);
    const int most = int(std::min<std::size_t>((2 * n - 1) * rules_.longest_chain, std::size_t{1} << 30));
    // The search has a table of all counts; where that is too large, one linear bound must do.
    const bool searched = double(loss.f1() ? loss.gold() + 1 : 1) * (double(most) + double(loss.gold()) + 1.0) <= kMostCounts;
    ws.scores.start(data_, i, w, gold(i));
    ws.output.clear();
    BracketGain gain = loss.gains(lambda, {loss.gold(), loss.gold()}), narrow = gain;
    double room = kInfinity;
    bool any = false;
    for (int round = 0; round < kRounds; ++round) {
      if (!ws.chart.inside(ws.scores, gain)) return Found::kNothing;  // scores have overflown
      ++ws.rounds;
      ws.candidate.clear();
      ws.chart.best_tree(ws.candidate);
      const Counts at = count(i, ws.candidate, ws.brackets);
      const double delta = loss.value(at.c, at.p), value = q.merit->value(delta, q.own - score(i, ws.candidate, w));
      if (value > q.top && !is_truth(i, ws.candidate)) {
        q.top = value, any = true;
        ws.output = ws.candidate;
      }
      if (!searched) break;
      ws.search.set_floor(loss, q, gain, most);
      const double left = ws.chart.value() - ws.search.floor();
      if (left < room) room = left, narrow = gain;
      if (left <= tolerance(q.own, ws.chart.value())) break;
      if (curved && delta > 0.0) {  // the slope of the merit's own curve there
        const double slope = q.merit->slope(delta, q.own - score(i, ws.candidate, w));
        if (slope > 0.0) lambda = slope;
      }
      const BracketGain next = loss.gains(lambda, at);
      if (next.right == gain.right && next.wrong == gain.wrong) break;
      gain = next;
    }
    ws.searched = double(ws.rounds - 1) * cky_work(n);
    if (room <= tolerance(q.own, ws.chart.value())) return any ? Found::kFound : Found::kNothing;
    if (narrow.right != ws.chart.gain().right || narrow.wrong != ws.chart.gain().wrong) ws.chart.inside(ws.scores, narrow);
    Found outcome = Found::kGaveUp;
    if (searched) {
      ws.search.set_floor(loss, q, narrow, most);
      ws.candidate.clear();
      outcome = ws.search.run(ws.chart, loss, q, data_.search_limit, tolerance(q.own, ws.chart.value()), ws.candidate);
      ws.kept = ws.search.kept();
      ws.searched += 3.0 * cky_work(n) + 100.0 * double(ws.search.kept());
    }
    if (outcome == Found::kFound) {
      if (is_truth(i, ws.candidate)) return any ? Found::kFound : Found::kNothing;
      ws.output.swap(ws.candidate);
      return Found::kFound;
    }
    if (outcome == Found::kNothing) return any ? Found::kFound : Found::kNothing;
    if (curved) return Found::kGaveUp;
    // No tree has more than its linear bound. The difference is linear in c: it is greatest at an end of its range.
    double most_above = 0.0;
    for (int p = loss.f1() ? 0 : -loss.gold(); p <= most; ++p) {
      for (const int c : {0, loss.f1() ? std::min(p, loss.gold()) : 0}) {
        most_above = std::max(most_above, lambda * loss.value(c, p) - narrow.wrong * p - (loss.f1() ? (narrow.right - narrow.wrong) * c : 0.0));
      }
    }
    ws.bound = ws.chart.value() + most_above - q.own;
    return Found::kGaveUp;
  }

  // What 4-byte sums may be wrong by.
  static double tolerance(double own, double value) { return (sizeof(T) == 4 ? 1e-5 : 1e-12) * (1.0 + std::abs(own) + std::abs(value)); }
  double cky_work(std::size_t n) const {
    const double cells = 0.5 * double(n) * double(n + 1), splits = cells * double(n) / 3.0;
    // Measured: of all rules about one in ten has both children there, at some ten cycles each.
    return 2000.0 + cells * (200.0 + 6.0 * double(rules_.n_chains() + rules_.words)) + splits * 1.1 * double(rules_.n_rules);
  }

  static constexpr int kRounds = 5;
  static constexpr double kMostCounts = 1 << 24;

  GrammarData data_;
  const GrammarRules& rules_;
  std::vector<Bracket> gold_;
  std::vector<std::size_t> gold_ptr_;
};

}  // namespace mm
