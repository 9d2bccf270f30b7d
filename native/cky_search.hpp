// The tree of the greatest merit (merit.hpp), where the loss is not a sum over brackets: F₁, or any loss of
// brackets with slack rescaling. A dynamic programme over counts, cut down by a bound.
//
// The loss depends on two counts of a tree: c, its brackets that are right, and p, all its brackets. It falls
// with c and grows with p (for the loss "brackets", c = 0 and p = wrong - right). Merit grows with the loss
// and with the score s. So of the derivations of a symbol over a span only those matter that no other beats
// in c, p and s: a front of triples (c, p, s). A front has at most as many triples as there are pairs of
// counts, so that the work is that of the table [symbol][span][c][p], filled where it can matter.
//
// Which can matter: CKY with the gains b for each bracket and b - a for each right one maximises
// U = s + b p - a c. Inside and outside values of U bound the U of every tree that a derivation is part of. A
// tree with a merit above `top` has, for its counts, at least the score that Merit::margin_of says, hence at
// least
//
//   need(c, p) = own - margin_of(loss(c, p), top) + b p - a c,      own = score of the truth,
//
// and a derivation with the counts (c, p) so far is kept only if it can reach min need(c', p') over c' >= c,
// p' >= p. (a, b) is the gradient of λ times the loss at the counts of a good tree, found in a few rounds: the
// loss 1 - 2c / (g + p) is linear in c and has a small curvature, so the bound is close.
#pragma once

#include "cky.hpp"
#include "merit.hpp"

namespace mm {

struct Counts {
  int c = 0, p = 0;
};

// The loss as a function of the counts.
class CountLoss {
 public:
  CountLoss(TreeLoss kind, std::size_t gold) : f1_(kind == TreeLoss::kF1), g_(double(gold)) {}
  bool f1() const { return f1_; }
  double value(int c, int p) const { return !f1_ ? g_ + p : g_ + p > 0.0 ? 1.0 - 2.0 * c / (g_ + p) : 0.0; }
  Counts of(bool right) const { return f1_ ? Counts{right, 1} : Counts{0, right ? -1 : 1}; }
  // Gains of brackets by a linear bound at these counts.
  BracketGain gains(double lambda, Counts at) const {
    if (!f1_) return {-lambda, lambda};
    const double sum = std::max(1.0, g_ + at.p), a = 2.0 * lambda / sum, b = 2.0 * lambda * at.c / (sum * sum);
    return {b - a, b};
  }
  int gold() const { return int(g_); }

 private:
  bool f1_;
  double g_;
};

template <class T>
class CountSearch {
 public:
  enum class Outcome { kNothing, kFound, kGaveUp };

  // What is asked for: a merit above `top` with a loss in [from, to].
  struct Question {
    const Merit* merit;
    double own;  // score of the truth
    double top, from, to;
  };

  // The least U of a tree that answers the question, by its counts so far.
  void set_floor(const CountLoss& loss, const Question& q, const BracketGain& gain, int most) {
    low_ = loss.f1() ? 0 : -loss.gold();
    width_ = most - low_ + 1;
    const int rows = loss.f1() ? loss.gold() + 1 : 1;
    floor_.assign(std::size_t(rows) * std::size_t(width_), kInfinity);
    rows_ = rows;
    for (int c = rows; c-- > 0;) {
      for (int p = most; p >= low_; --p) {
        const double delta = loss.value(c, p);
        double& need = floor_[at(c, p)];
        if (delta >= q.from - 1e-9 && delta <= q.to + 1e-9 && c <= p + (loss.f1() ? 0 : loss.gold())) {
          const double margin = q.merit->margin_of(delta, q.top);
          if (margin > -kInfinity) need = q.own - margin + (loss.f1() ? gain.wrong * p + (gain.right - gain.wrong) * c : gain.wrong * p);
        }
        if (c + 1 < rows) need = std::min(need, floor_[at(c + 1, p)]);
        if (p < most) need = std::min(need, floor_[at(c, p + 1)]);
      }
    }
    if (loss.f1()) return;
    std::fill(floor_.begin(), floor_.end(), floor_[0]);  // p may still fall
  }
  double floor() const { return floor_[0]; }

  // Search the chart, which was filled with `gain`. The code of the tree is appended.
  Outcome run(Chart<T>& chart, const CountLoss& loss, const Question& q, std::size_t most, double tolerance, std::vector<Code>& code) {
    chart_ = &chart, rules_ = &chart.rules(), loss_ = &loss, tolerance_ = tolerance;
    outside();
    return forward(q, most, code);
  }
  std::size_t kept() const { return pool_.size(); }

 private:
  static constexpr std::uint32_t kNone = GrammarRules::kNone;
  struct Triple {
    double s;
    std::int32_t c, p;
    std::uint32_t how, split;      // rule or chain
    std::uint32_t left, right;     // triples of the children; of a chain: that of its lowest label
  };
  struct Front {
    std::uint32_t first = 0, size = 0;
  };

  std::size_t at(int c, int p) const { return std::size_t(c) * std::size_t(width_) + std::size_t(p - low_); }

  // Greatest U of what is around each item, and around each lowest label of a chain.
  void outside() {
    const GrammarRules& G = *rules_;
    const std::size_t n = chart_->n(), L = G.n_labels, C = G.n_chains();
    out_.assign(chart_->items().size(), -kInfinity);
    out_built_.assign(n * (n + 1) / 2 * L, -kInfinity);
    symbol_out_.resize(G.n_symbols);
    chain_out_.resize(C), node_.resize(L), values_.resize(C);
    const auto& items = chart_->items();
    for (std::size_t length = n; length >= 1; --length) {
      for (std::size_t i = 0; i + length <= n; ++i) {
        const std::size_t j = i + length, cell = chart_->cell(i, j);
        std::fill(symbol_out_.begin(), symbol_out_.end(), -kInfinity);
        bool any = length == n;
        chart_->for_symbols(cell, [&](std::uint32_t symbol, std::uint32_t item) {
          symbol_out_[symbol] = out_[item];
          any = any || out_[item] > -kInfinity;
        });
        if (!any) continue;
        chart_->cell_scores(i, j, node_.data());
        if (length == n) chart_->chain_values(chart_->built(cell), node_.data(), values_.data());
        for (std::uint32_t v = std::uint32_t(C); v-- > 0;) {
          const std::uint32_t label = G.chain_label[v];
          double out = symbol_out_[label];
          if (length == n && G.root[label] >= 0 && values_[v] != Chart<T>::kLow) out = std::max(out, chart_->root_gain(v));
          for (std::uint32_t k = G.above_ptr[v]; k < G.above_ptr[v + 1]; ++k) {
            const std::uint32_t u = G.above[k];
            out = std::max(out, chain_out_[u] + double(chart_->scores().w()[G.chain_rule[u]]) + double(node_[G.chain_label[u]]));
          }
          chain_out_[v] = out;
        }
        for (std::uint32_t a = 0; a < L; ++a) {
          out_built_[cell * L + a] = chain_out_[a];
          symbol_out_[a] = chain_out_[a] + double(node_[a]);
        }
        chart_->for_rules(i, j, [&](std::uint32_t r, std::size_t, std::uint32_t left, std::uint32_t right) {
          const double out = symbol_out_[G.lhs[r]];
          if (out == -kInfinity) return;
          const double with = out + chart_->scores().rule_weight(r);
          out_[left] = std::max(out_[left], with + double(items[right].value));
          out_[right] = std::max(out_[right], with + double(items[left].value));
        });
      }
    }
  }

  bool reaches(double u, int c, int p) const { return u >= floor_[at(std::min(c, rows_ - 1), p)] - tolerance_; }
  double u_of(const Triple& t) const {
    const BracketGain& g = chart_->gain();
    return t.s + g.wrong * t.p + (loss_->f1() ? (g.right - g.wrong) * t.c : 0.0);
  }

  Outcome forward(const Question& q, std::size_t most, std::vector<Code>& code) {
    const GrammarRules& G = *rules_;
    const std::size_t n = chart_->n(), L = G.n_labels;
    pool_.clear();
    fronts_.assign(chart_->items().size(), {});
    candidates_.resize(G.n_symbols), chains_.resize(G.n_chains());
    const auto& items = chart_->items();
    const double least = floor() - tolerance_;
    Triple found;
    double top = q.top;
    bool any = false;
    for (std::size_t length = 1; length <= n; ++length) {
      for (std::size_t i = 0; i + length <= n; ++i) {
        const std::size_t j = i + length, cell = chart_->cell(i, j);
        const auto* built = chart_->built(cell);
        touched_.clear();
        std::size_t pushed = 0;
        const auto push = [&](std::uint32_t symbol, const Triple& t) {
          ++pushed;
          if (candidates_[symbol].empty()) touched_.push_back(symbol);
          candidates_[symbol].push_back(t);
        };
        chart_->cell_scores(i, j, node_.data());
        for (std::uint32_t a = 0; a < L; ++a) symbol_out_[a] = out_built_[cell * L + a] + double(node_[a]);
        chart_->scores().scores(i, j, node_.data());
        chart_->for_symbols(cell, [&](std::uint32_t symbol, std::uint32_t item) {
          if (!G.is_label(symbol)) symbol_out_[symbol] = out_[item];
          if (!G.is_terminal(symbol)) return;
          fronts_[item] = {std::uint32_t(pool_.size()), 1};
          pool_.push_back({0.0, 0, 0, kNone, 0, 0, 0});
        });
        if (length == 1) {
          // Of a label and a terminal there is one rule.
          for (std::uint32_t a = 0; a < L; ++a) {
            if (built[a].rule != kNone) push(a, {double(chart_->scores().w()[built[a].rule]), 0, 0, built[a].rule, 0, 0, 0});
          }
        } else {
          chart_->for_rules(i, j, [&](std::uint32_t r, std::size_t k, std::uint32_t left, std::uint32_t right) {
            const std::uint32_t symbol = G.lhs[r];
            const double w = chart_->scores().rule_weight(r), out = symbol_out_[symbol] + w;
            if (!(out + double(items[left].value) + double(items[right].value) >= least)) return;
            const Front x = fronts_[left], y = fronts_[right];
            for (std::uint32_t a = x.first; a < x.first + x.size && pushed <= most; ++a) {
              const double u = out + u_of(pool_[a]);
              for (std::uint32_t b = y.first; b < y.first + y.size; ++b) {
                const Triple &ta = pool_[a], &tb = pool_[b];
                if (!reaches(u + u_of(tb), ta.c + tb.c, ta.p + tb.p)) continue;
                push(symbol, {ta.s + tb.s + w, ta.c + tb.c, ta.p + tb.p, r, std::uint32_t(k), a, b});
              }
            }
          });
        }
        if (pushed > most) return clear(), Outcome::kGaveUp;
        // Nodes: their scores and counts.
        bool labels = false;
        for (const std::uint32_t symbol : touched_) {
          std::vector<Triple>& these = candidates_[symbol];
          if (!G.is_label(symbol)) {
            const std::uint32_t item = chart_->find(cell, symbol);
            if (item != kNone) fronts_[item] = keep(these);  // none: an overflow
            these.clear();
            continue;
          }
          labels = true;
          const bool counts = chart_->scores().rule_counts(these[0].how);
          const Counts more = counts ? loss_->of(chart_->scores().is_gold(symbol, i, j)) : Counts{};
          for (Triple& t : these) t.s += double(node_[symbol]), t.c += more.c, t.p += more.p;
          const Front front = keep(these);
          chains_[symbol].clear();
          for (std::uint32_t k = front.first; k < front.first + front.size; ++k) {
            Triple t = pool_[k];
            t.how = symbol, t.left = k;
            chains_[symbol].push_back(t);
          }
          these.clear();
        }
        if (!labels) continue;
        // Chains; over the whole sentence only roots, elsewhere what is on top.
        std::fill(has_.begin(), has_.end(), 0), has_.resize(L, 0);
        for (const std::uint32_t a : touched_) {
          if (a < L) has_[a] = 1;
        }
        for (std::uint32_t v = 0; v < G.n_chains(); ++v) {
          const std::uint32_t label = G.chain_label[v];
          if (v < L) {
            if (!has_[v]) chains_[v].clear();
          } else {
            chains_[v].clear();
            const double w = double(chart_->scores().w()[G.chain_rule[v]]) + double(node_[label]);
            if (chains_[G.chain_parent[v]].empty()) continue;
            const Counts more = chart_->scores().counts(label) ? loss_->of(chart_->scores().is_gold(label, i, j)) : Counts{};
            for (Triple t : chains_[G.chain_parent[v]]) {
              t.s += w, t.c += more.c, t.p += more.p, t.how = v;
              chains_[v].push_back(t);
            }
          }
          if (length < n) continue;
          if (G.root[label] < 0) continue;
          for (const Triple& t : chains_[v]) {
            Triple r = t;
            r.s += chart_->scores().root_weight(label);
            if (!chart_->scores().data().count_root && (v >= L ? chart_->scores().counts(label) : chart_->scores().rule_counts(built[v].rule))) {
              const Counts less = loss_->of(chart_->scores().is_gold(label, i, j));
              r.c -= less.c, r.p -= less.p;
            }
            const double delta = loss_->value(r.c, r.p);
            if (delta < q.from - 1e-9 || delta > q.to + 1e-9) continue;
            const double value = q.merit->value(delta, q.own - r.s);
            if (value > top) top = value, found = r, any = true;
          }
        }
        if (length < n) {
          for (auto& c : candidates_) c.clear();
          for (std::uint32_t v = 0; v < G.n_chains(); ++v) {
            const std::uint32_t label = G.chain_label[v], item = chart_->find(cell, label);
            if (item == kNone || out_[item] == -kInfinity) continue;
            for (const Triple& t : chains_[v]) {
              if (reaches(out_[item] + u_of(t), t.c, t.p)) candidates_[label].push_back(t);
            }
          }
          for (std::uint32_t a = 0; a < L; ++a) {
            if (candidates_[a].empty()) continue;
            fronts_[chart_->find(cell, a)] = keep(candidates_[a]);
            candidates_[a].clear();
          }
        }
        if (pool_.size() > most) return clear(), Outcome::kGaveUp;
      }
    }
    if (!any) return Outcome::kNothing;
    write(found, 0, n, true, code);
    return Outcome::kFound;
  }
  void clear() {
    for (auto& c : candidates_) c.clear();
  }

  // Those of the triples that no other beats, to the pool.
  Front keep(std::vector<Triple>& these) {
    const Front front{std::uint32_t(pool_.size()), 0};
    if (these.size() == 1) {
      pool_.push_back(these[0]);
      return {front.first, 1};
    }
    std::stable_sort(these.begin(), these.end(), [](const Triple& a, const Triple& b) {
      if (a.c != b.c) return a.c < b.c;
      return a.p != b.p ? a.p > b.p : a.s > b.s;
    });
    best_.assign(std::size_t(width_), -kInfinity);  // [p] greatest score of those with at least as many
    for (const Triple& t : these) {
      int p = std::clamp(t.p - low_, 0, width_ - 1);
      if (t.s <= best_[std::size_t(p)]) continue;
      pool_.push_back(t);
      for (; p >= 0 && best_[std::size_t(p)] < t.s; --p) best_[std::size_t(p)] = t.s;
    }
    return {front.first, std::uint32_t(pool_.size()) - front.first};
  }

  // From a triple of a chain (top) or of a rule.
  void write(const Triple& root, std::size_t i0, std::size_t j0, bool top0, std::vector<Code>& code) {
    struct Pending {
      Triple t;
      std::size_t i, j;
      bool top;
    };
    std::vector<Pending> stack{{root, i0, j0, top0}};
    while (!stack.empty()) {
      Pending p = stack.back();
      stack.pop_back();
      if (p.t.how == kNone) continue;  // a terminal
      if (p.top) {
        chart_->write_chain(p.t.how, p.i, p.j, code);
        p.t = pool_[p.t.left];
      }
      Chart<T>::put(p.t.how, p.i, p.j, code);
      if (!rules_->is_binary(p.t.how)) continue;
      const std::size_t k = p.t.split;
      stack.push_back({pool_[p.t.right], k, p.j, rules_->is_label(rules_->right[p.t.how])});
      stack.push_back({pool_[p.t.left], p.i, k, rules_->is_label(rules_->left[p.t.how])});
    }
  }

  Chart<T>* chart_ = nullptr;
  const GrammarRules* rules_ = nullptr;
  const CountLoss* loss_ = nullptr;
  double tolerance_ = 0.0;
  int low_ = 0, width_ = 0, rows_ = 0;
  std::vector<double> floor_, out_, out_built_, symbol_out_, chain_out_, best_;
  std::vector<T> node_, values_;
  std::vector<Triple> pool_;
  std::vector<Front> fronts_;
  std::vector<std::vector<Triple>> candidates_, chains_;
  std::vector<std::uint32_t> touched_;
  std::vector<std::uint8_t> has_;
};

}  // namespace mm
