// Dependency trees, first order: the score of a tree is the sum of those of its arcs (McDonald, Crammer and
// Pereira 2005; McDonald et al. 2005), with a relation on each arc if asked.
//
// The loss counts the words with a wrong head or relation. It is a sum over arcs too, so that the margin-rescaled
// oracle is a decoder (eisner.hpp for projective trees, arborescence.hpp for all) on scores with a loss added. The
// true relation of a word is the best one at its true head or not; all other arcs take their best one.
//
// A plane is the list of words that differ from the truth, two words of code each: [word][head | relation << 16].
// Features are computed from it when they are needed (arc_features.hpp): a sparse vector of a plane would have
// some hundred entries for each wrong word.
//
// The truth need not be a tree of the space: a truth with crossing arcs has score and margin as any other, and
// the projective oracle answers with the best projective tree. If that scores below the truth, there is no
// slack, and the answer is "the truth".
//
// Other formulations. Corners of the hull come from the same scores, decoded again. Exact grades (the best tree at
// each loss): of projective trees up to kGraded words (dependency_grades.hpp), and with 0/1 loss; else the answer is
// bounded (hull.hpp). The best tree other than the truth lacks the true arc of some word: it is the best of n trees, in
// each of which one true arc is forbidden.
#pragma once

#include "arborescence.hpp"
#include "dependency_grades.hpp"
#include "dependency_scores.hpp"
#include "eisner.hpp"
#include "sparse_scratch.hpp"
#include "structure.hpp"

namespace mm {

template <class T>
class Dependency final : public Structure<T> {
 public:
  using Base = Structure<T>;
  using Workspace = typename Base::Workspace;
  using Fresh = typename Base::Fresh;
  using Grade = typename Base::Grade;

  static constexpr std::size_t kGraded = 32;  // the longest sentence whose trees are graded by their loss

  // What is known of one arc during a call.
  struct Memo {
    std::uint32_t epoch = 0, label = 0;
    double value = 0.0;
  };
  struct Change {
    std::uint32_t head, dependent, label;
    double amount;
  };
  struct Scratch final : Workspace {
    typename ArcScorer<T>::Scratch scorer;
    ArcTable<T> table;
    std::vector<T> scores;                      // as the decoder reads them
    std::vector<std::uint32_t> heads, labels;   // [n + 1] of the tree found
    std::vector<std::uint32_t> top_heads, top_labels;
    Eisner<T> eisner;
    Arborescence<T> arborescence;
    CountedTrees counted;
    std::vector<double> right, wrong;
    std::vector<char> is_wrong;
    std::vector<std::size_t> errors;            // of the grades found last
    std::vector<Memo> memo;
    std::uint32_t epoch = 0;
    SparseScratch sum;
    std::vector<Change> changes;
  };

  explicit Dependency(const DependencyData& data) : data_(data), scorer_(data_) {}
  Dependency(const Dependency&) = delete;
  Dependency& operator=(const Dependency&) = delete;

  const ArcScorer<T>& scorer() const { return scorer_; }
  const DependencyData& data() const { return data_; }

  std::size_t n_examples() const override { return data_.size(); }
  std::size_t n_weights() const override { return data_.n_weights(); }
  std::unique_ptr<Workspace> workspace() const override { return std::make_unique<Scratch>(); }
  double example_weight(std::size_t i) const override { return data_.example_weight != nullptr ? data_.example_weight[i] : 1.0; }
  void require_truth() const override {
    if (data_.heads == nullptr) throw BadInput("training needs the heads of the words");
  }
  std::size_t cache_bytes() const override { return data_.arcs->bytes() + (data_.labelled() ? data_.rows->bytes() : 0); }

  std::size_t row_size() const override { return 8; }
  void rows_read(std::size_t i, std::vector<std::size_t>& rows) const override {
    rows.clear();
    const std::size_t n = data_.length(i);
    for (std::size_t h = 0; h <= n; ++h) {
      for (std::size_t d = 1; d <= n; ++d) {
        if (h == d) continue;
        scorer_.for_arc(i, h, d, [&](std::size_t j) { rows.push_back(j / 8); });
        scorer_.for_label(i, h, d, 0, [&](std::size_t j) {
          for (std::size_t l = 0; l < data_.row_width(); l += 8) rows.push_back(j / 8 + l / 8);
        });
      }
    }
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  }

  // ---- the oracle ----

  Found oracle(Workspace& base, std::size_t i, const T* w) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    scorer_.fill(i, w, true, ws.scorer, ws.table);
    return decide(ws, i, ws.loss_scale);
  }
  Grade corner(Workspace& base, std::size_t i, const T* w, double lambda) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    load(ws, i, w);
    const Found found = decide(ws, i, lambda);
    if (found.truth) return {0.0, 0.0};
    const double l = loss(i, ws.code);
    return {l, lambda * l - found.F};
  }
  double oracle_work(std::size_t i) const override { return 300.0 + scorer_.work(i) + decode_work(i) * (data_.zero_one ? 2.0 : 1.0); }
  double corner_work(std::size_t i) const override { return decode_work(i); }
  double gram_work(CodeView added, CodeView kept) const override {
    return scorer_.features_of_arc() * (30.0 * double(added.size()) + 8.0 * double(kept.size()));
  }
  // Two words of code stand for two arcs, whose weights are found anew at each visit.
  double word_work() const override { return 12.0 * scorer_.features_of_arc(); }
  LossRange losses(std::size_t i) const override {
    if (data_.zero_one) return {1.0, 1.0, 1.0};
    return {1.0, double(data_.length(i)), 1.0};
  }

  // ---- grades ----

  bool offers_grades(bool any) const override { return any || data_.projective || data_.zero_one; }
  bool slow_grades(std::size_t i) const override { return data_.zero_one || data_.length(i) > 6; }
  bool grades(Workspace& base, std::size_t i, const T* w, bool any, std::vector<Grade>& out) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    out.clear();
    ws.errors.clear();
    const std::size_t n = data_.length(i);
    if (any || data_.zero_one) {
      load(ws, i, w);
      double value = 0.0;
      if (!runner_up(ws, i, value)) return true;
      keep_tree(ws, i);
      out.push_back({loss(i, ws.code), -value});
      ws.more_work += double(n) * decode_work(i);
      return true;
    }
    if (!data_.projective || n > kGraded) return false;
    load(ws, i, w);
    const double own = count(ws, i);
    for (std::size_t k = 1; k <= n; ++k) {
      if (ws.counted.total(k) == -kInfinity) continue;
      out.push_back({double(k), own - ws.counted.total(k)});
      ws.errors.push_back(k);
    }
    ws.more_work += 0.5 * double(n * n) * double(n * n * n);
    return true;
  }
  double take_grade(Workspace& base, std::size_t i, const T*, std::size_t k) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    if (ws.errors.empty()) return tree_margin(ws, i);  // the runner-up, which is there
    ws.counted.read(ws.errors[k], ws.heads.data(), ws.is_wrong);
    const std::size_t m = data_.length(i) + 1;
    for (std::size_t d = 1; d < m; ++d) {
      const bool at_home = ws.heads[d] == data_.head(i, d);
      ws.labels[d] = !data_.labelled() ? 0 : at_home ? (ws.is_wrong[d] ? ws.table.other_label[d] : data_.label(i, d)) : ws.table.label[ws.heads[d] * m + d];
    }
    keep_tree(ws, i);
    return tree_margin(ws, i);
  }

  // ---- planes ----

  double loss(std::size_t, CodeView plane) const override {
    return data_.zero_one ? (plane.empty() ? 0.0 : 1.0) : double(plane.size() / 2);
  }
  bool valid(std::size_t i, CodeView code) const override {
    const std::size_t n = data_.length(i);
    if (code.empty() || code.size() % 2 != 0 || code.size() > 2 * n) return false;
    std::vector<std::uint32_t> heads(n + 1);
    for (std::size_t d = 1; d <= n; ++d) heads[d] = data_.head(i, d);
    std::size_t last = 0;
    for (std::size_t k = 0; k < code.size(); k += 2) {
      const std::size_t d = code[k], h = code[k + 1] & 0xFFFFu, l = code[k + 1] >> 16;
      if (d <= last || d > n || h > n || h == d || l >= std::max<std::size_t>(data_.n_labels, 1)) return false;
      if (h == data_.head(i, d) && l == data_.label(i, d)) return false;
      heads[d] = static_cast<std::uint32_t>(h);
      last = d;
    }
    for (std::size_t d = 1; d <= n; ++d) {
      std::size_t at = d, steps = 0;
      while (at != 0 && steps <= n) at = heads[at], ++steps;
      if (at != 0) return false;
    }
    return !data_.one_root || std::count(heads.begin() + 1, heads.end(), 0u) == 1;
  }

  void gram(Workspace& base, std::size_t i, CodeView a, std::span<const CodeView> planes, double* row) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    ws.sum.clear(a.size() * scorer_.most_features(data_.length(i)));
    for_words(i, a, [&](std::size_t h, std::size_t d, std::size_t l, double sign) {
      scorer_.for_arc(i, h, d, [&](std::size_t j) { ws.sum.add(j, sign); });
      scorer_.for_label(i, h, d, l, [&](std::size_t j) { ws.sum.add(j, sign); });
    });
    forget(ws, i);
    for (std::size_t k = 0; k < planes.size(); ++k) {
      row[k] = sum_words(ws, i, planes[k], [&](std::size_t h, std::size_t d, std::size_t l) {
        double value = 0.0;
        scorer_.for_arc(i, h, d, [&](std::size_t j) { value += ws.sum.get(j); });
        scorer_.for_label(i, h, d, l, [&](std::size_t j) { value += ws.sum.get(j); });
        return value;
      });
    }
  }

  void margins(Workspace& base, std::size_t i, const T* w, CodeView, std::span<const CodeView> planes, std::span<const double> losses,
               Fresh fresh, double* F) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    forget(ws, i);
    const std::size_t m = data_.length(i) + 1;
    for (std::size_t k = 0; k < planes.size(); ++k) {
      if (planes[k].empty()) {
        F[k] = 0.0;
        continue;
      }
      F[k] = losses[k] - sum_words(ws, i, planes[k], [&](std::size_t h, std::size_t d, std::size_t l) {
        if (fresh != Fresh::kOracle) return scorer_.score(i, h, d, l, w);
        double value = double(ws.table.arc[h * m + d]);
        scorer_.for_label(i, h, d, l, [&](std::size_t j) { value += double(w[j]); });
        return value;
      });
    }
  }

  void accumulate(Workspace& base, std::size_t i, CodeView, std::span<const CodeView> planes, const double* coef,
                  Weights<T>& weights) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    forget(ws, i);
    ws.changes.clear();
    const std::size_t m = data_.length(i) + 1;
    for (std::size_t k = 0; k < planes.size(); ++k) {
      if (coef[k] == 0.0) continue;
      for_words(i, planes[k], [&](std::size_t h, std::size_t d, std::size_t l, double sign) {
        Memo& memo = ws.memo[h * m + d];
        if (memo.epoch == ws.epoch && memo.label == l) {
          ws.changes[std::size_t(memo.value)].amount += sign * coef[k];
          return;
        }
        memo = {ws.epoch, static_cast<std::uint32_t>(l), double(ws.changes.size())};
        ws.changes.push_back({static_cast<std::uint32_t>(h), static_cast<std::uint32_t>(d), static_cast<std::uint32_t>(l), sign * coef[k]});
      });
    }
    for (const Change& change : ws.changes) {
      if (change.amount == 0.0) continue;
      const T amount = static_cast<T>(change.amount);
      scorer_.for_arc(i, change.head, change.dependent, [&](std::size_t j) { weights.add(j, amount); });
      scorer_.for_label(i, change.head, change.dependent, change.label, [&](std::size_t j) { weights.add(j, amount); });
    }
  }

  // ---- prediction ----

  // The best tree of sentence i under w, into ws.heads and ws.labels.
  void predict(Scratch& ws, std::size_t i, const T* w) const {
    scorer_.fill(i, w, false, ws.scorer, ws.table);
    const std::size_t n = data_.length(i), m = n + 1;
    ws.heads.assign(m, 0), ws.labels.assign(m, 0);
    decode(ws, n, ws.table.best.data());
    if (!data_.labelled()) return;
    for (std::size_t d = 1; d <= n; ++d) ws.labels[d] = ws.table.label[ws.heads[d] * m + d];
  }

 private:
  void load(Scratch& ws, std::size_t i, const T* w) const {
    if (!ws.same) scorer_.fill(i, w, true, ws.scorer, ws.table);
    ws.heads.resize(data_.length(i) + 1), ws.labels.resize(data_.length(i) + 1);
  }
  double decode_work(std::size_t i) const {
    const double n = double(data_.length(i));
    return data_.projective ? n * n * (20.0 + 0.6 * n) : n * n * 40.0;
  }
  void decode(Scratch& ws, std::size_t n, const T* scores) const {
    if (data_.projective) {
      ws.eisner.decode(n, scores, data_.one_root, ws.heads.data());
    } else {
      ws.arborescence.decode(n, scores, data_.one_root, ws.heads.data());
    }
  }

  // The scores with `extra` for every error, as the decoder reads them.
  void augment(Scratch& ws, std::size_t i, double extra) const {
    const ArcTable<T>& table = ws.table;
    const std::size_t n = table.n, m = n + 1;
    ws.scores.resize(m * m);
    const T more = static_cast<T>(extra);
    for (std::size_t k = 0; k < m * m; ++k) ws.scores[k] = table.best[k] + more;
    for (std::size_t d = 1; d <= n; ++d) ws.scores[data_.head(i, d) * m + d] = std::max(table.own[d], table.other[d] + more);
  }
  // The relations that go with ws.heads under these scores.
  void label(Scratch& ws, std::size_t i, double extra) const {
    const ArcTable<T>& table = ws.table;
    const std::size_t n = table.n, m = n + 1;
    for (std::size_t d = 1; d <= n; ++d) {
      if (!data_.labelled()) {
        ws.labels[d] = 0;
      } else if (ws.heads[d] != data_.head(i, d)) {
        ws.labels[d] = table.label[ws.heads[d] * m + d];
      } else {
        ws.labels[d] = table.own[d] >= table.other[d] + static_cast<T>(extra) ? data_.label(i, d) : table.other_label[d];
      }
    }
  }

  // argmax over trees of scale * loss + score; the scores are in the table.
  Found decide(Scratch& ws, std::size_t i, double scale) const {
    const std::size_t n = ws.table.n;
    ws.heads.resize(n + 1), ws.labels.resize(n + 1);
    Found found;
    if (n == 0) {
      ws.code.clear();
      return found;
    }
    augment(ws, i, data_.zero_one ? 0.0 : scale);
    decode(ws, n, ws.scores.data());
    label(ws, i, data_.zero_one ? 0.0 : scale);
    keep_tree(ws, i);
    if (data_.zero_one && ws.code.empty() && scale > 0.0) {
      double value = 0.0;
      if (!runner_up(ws, i, value)) return found;
      keep_tree(ws, i);
    }
    if (ws.code.empty()) return found;
    found.F = scale * loss(i, ws.code) - tree_margin(ws, i);
    if (found.F <= 0.0 && scale > 0.0) {  // a truth that no tree of the space beats
      found.F = 0.0;
      ws.code.clear();
      return found;
    }
    found.truth = false;
    return found;
  }

  // The best tree other than the truth, into ws.heads and ws.labels; its score less the truth's.
  bool runner_up(Scratch& ws, std::size_t i, double& value) const {
    const ArcTable<T>& table = ws.table;
    const std::size_t n = table.n, m = n + 1;
    bool any = false;
    value = -kInfinity;
    for (std::size_t forbidden = 1; forbidden <= n; ++forbidden) {
      augment(ws, i, 0.0);
      ws.scores[data_.head(i, forbidden) * m + forbidden] = table.other[forbidden];
      decode(ws, n, ws.scores.data());
      label(ws, i, 0.0);
      if (ws.heads[forbidden] == data_.head(i, forbidden)) {
        if (data_.n_labels < 2) continue;  // there is no tree without the true arc
        ws.labels[forbidden] = table.other_label[forbidden];
      }
      const double own = -tree_margin(ws, i);
      if (any && own <= value) continue;
      any = true, value = own;
      ws.top_heads = ws.heads, ws.top_labels = ws.labels;
    }
    if (any) ws.heads = ws.top_heads, ws.labels = ws.top_labels;
    return any;
  }

  // The tree in the workspace as a code.
  void keep_tree(Scratch& ws, std::size_t i) const {
    ws.code.clear();
    for (std::size_t d = 1; d <= data_.length(i); ++d) {
      if (ws.heads[d] == data_.head(i, d) && ws.labels[d] == data_.label(i, d)) continue;
      ws.code.push_back(static_cast<Code>(d));
      ws.code.push_back(ws.heads[d] | ws.labels[d] << 16);
    }
  }
  // w.Δf of the tree in the workspace, from the table.
  double tree_margin(const Scratch& ws, std::size_t i) const {
    const ArcTable<T>& table = ws.table;
    const std::size_t m = table.n + 1;
    double sum = 0.0;
    for (std::size_t d = 1; d <= table.n; ++d) {
      const bool at_home = ws.heads[d] == data_.head(i, d);
      if (at_home && ws.labels[d] == data_.label(i, d)) continue;
      sum += double(table.own[d]) - double(at_home ? table.other[d] : table.best[ws.heads[d] * m + d]);
    }
    return sum;
  }

  // The chart by errors; returns the score of the truth.
  double count(Scratch& ws, std::size_t i) const {
    const ArcTable<T>& table = ws.table;
    const std::size_t n = table.n, m = n + 1;
    ws.right.assign(m * m, -kInfinity);
    ws.wrong.resize(m * m);
    for (std::size_t k = 0; k < m * m; ++k) ws.wrong[k] = double(table.best[k]);
    double own = 0.0;
    for (std::size_t d = 1; d <= n; ++d) {
      const std::size_t at = data_.head(i, d) * m + d;
      ws.right[at] = double(table.own[d]);
      ws.wrong[at] = double(table.other[d]);
      own += ws.right[at];
    }
    ws.counted.fill(n, ws.right.data(), ws.wrong.data(), data_.one_root);
    return own;
  }

  // visit(head, dependent, label, sign) for the arcs of the truth (+1) and of the plane (-1) that they do not share.
  template <class Visit>
  void for_words(std::size_t i, CodeView plane, Visit&& visit) const {
    for (std::size_t k = 0; k < plane.size(); k += 2) {
      const std::size_t d = plane[k];
      visit(std::size_t(data_.head(i, d)), d, std::size_t(data_.label(i, d)), 1.0);
      visit(std::size_t(plane[k + 1] & 0xFFFFu), d, std::size_t(plane[k + 1] >> 16), -1.0);
    }
  }
  // Σ of sign * value over these arcs, each of which is asked for once.
  template <class Value>
  double sum_words(Scratch& ws, std::size_t i, CodeView plane, Value&& value) const {
    const std::size_t m = data_.length(i) + 1;
    double sum = 0.0;
    for_words(i, plane, [&](std::size_t h, std::size_t d, std::size_t l, double sign) {
      Memo& memo = ws.memo[h * m + d];
      if (memo.epoch != ws.epoch || memo.label != l) memo = {ws.epoch, static_cast<std::uint32_t>(l), value(h, d, l)};
      sum += sign * memo.value;
    });
    return sum;
  }
  void forget(Scratch& ws, std::size_t i) const {
    const std::size_t m = data_.length(i) + 1;
    if (ws.memo.size() < m * m) ws.memo.resize(m * m);
    if (++ws.epoch == 0) {
      std::fill(ws.memo.begin(), ws.memo.end(), Memo{});
      ws.epoch = 1;
    }
  }

  DependencyData data_;
  ArcScorer<T> scorer_;
};

}  // namespace mm
