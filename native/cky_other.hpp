// The best tree other than a given one.
//
// Every item (symbol over a span) of the given tree gets the value of its best derivation that is not the
// tree's own: another rule or split, or the tree's own rule with a child that is different. All other items
// have only derivations that are different, and their values are in the chart. So after CKY the O(n) items of
// one tree are looked at again, from the leaves up.
#pragma once

#include "cky.hpp"

namespace mm {

template <class T>
class OtherTree {
 public:
  // The best tree that is not `truth`, appended to `code`; its value. -inf: there is none.
  double find(Chart<T>& chart, CodeView truth, std::vector<Code>& code) {
    chart_ = &chart, rules_ = &chart.rules(), truth_ = truth;
    const std::size_t n = truth.size() / 2;
    next_.assign(n, 0), child_.assign(n, kNone), chain_.assign(n, kNone);
    inner_.assign(n, {}), outer_.assign(n, {});
    link();
    for (std::size_t e = n; e-- > 0;) {
      if (rules_->is_binary(rule(e))) differ_below(e);
      if (rules_->is_label(rules_->lhs[rule(e)]) && (e == 0 || !rules_->is_unary(rule(e - 1)))) differ_chain(e);
    }
    if (outer_[0].value == -kInfinity) return -kInfinity;
    pending_.assign(1, {0, 0, 0, 0});
    while (!pending_.empty()) {
      const Pending p = pending_.back();
      pending_.pop_back();
      p.entry == kNone ? plain(p, code) : different(p.entry, code);
    }
    return outer_[0].value;
  }

 private:
  static constexpr std::uint32_t kNone = GrammarRules::kNone;
  enum class Where { kHere, kLeft, kRight };
  struct Choice {
    double value = -kInfinity;
    Where where = Where::kHere;
    std::uint32_t how = kNone, split = 0;  // rule or chain
  };
  struct Pending {
    std::uint32_t entry;  // of the truth, to be different from; or kNone and an item of the chart
    std::uint32_t symbol, i, j;
  };

  std::uint32_t rule(std::size_t e) const { return truth_[2 * e]; }
  std::size_t i(std::size_t e) const { return truth_[2 * e + 1] >> 16; }
  std::size_t j(std::size_t e) const { return truth_[2 * e + 1] & 0xffffu; }

  // next_[e]: the node behind the subtree of e; child_: the second child that is a node; chain_[e]: the chain of
  // the unary rules from e on.
  void link() {
    for (std::size_t e = next_.size(); e-- > 0;) {
      const std::uint32_t r = rule(e);
      if (rules_->is_lexical(r)) {
        next_[e] = std::uint32_t(e + 1);
        chain_[e] = rules_->lhs[r];
      } else if (rules_->is_unary(r)) {
        next_[e] = next_[e + 1];
        chain_[e] = rules_->chain_above(chain_[e + 1], r);
      } else {
        const bool left = !rules_->is_terminal(rules_->left[r]), right = !rules_->is_terminal(rules_->right[r]);
        std::size_t at = left ? next_[e + 1] : e + 1;
        child_[e] = std::uint32_t(at);
        next_[e] = right ? next_[at] : std::uint32_t(at);
        chain_[e] = rules_->is_label(rules_->lhs[r]) ? rules_->lhs[r] : kNone;
      }
    }
  }
  std::size_t split(std::size_t e) const {
    const std::uint32_t r = rule(e);
    if (rules_->is_terminal(rules_->left[r])) return i(e) + 1;
    return j(e + 1);
  }
  double value(std::size_t i, std::size_t j, std::uint32_t symbol) const {
    const std::uint32_t item = chart_->find(chart_->cell(i, j), symbol);
    return item == kNone ? -kInfinity : double(chart_->items()[item].value);
  }
  double different_value(std::size_t e) const { return rules_->is_label(rules_->lhs[rule(e)]) ? outer_[e].value : inner_[e].value; }

  // Of a binary rule of the truth, without the score of its node.
  void differ_below(std::size_t e) {
    const std::uint32_t r = rule(e), B = rules_->left[r], C = rules_->right[r];
    const std::size_t k = split(e);
    Choice best;
    const double w = chart_->scores().rule_weight(r);
    if (!rules_->is_terminal(B)) {
      const double v = different_value(e + 1) + value(k, j(e), C) + w;
      if (v > best.value) best = {v, Where::kLeft, r, std::uint32_t(k)};
    }
    if (!rules_->is_terminal(C)) {
      const double v = value(i(e), k, B) + different_value(child_[e]) + w;
      if (v > best.value) best = {v, Where::kRight, r, std::uint32_t(k)};
    }
    const std::uint32_t A = rules_->lhs[r];
    for (std::size_t m = i(e) + 1; m < j(e); ++m) {
      const std::size_t left = chart_->cell(i(e), m), right = chart_->cell(m, j(e));
      for (std::uint32_t q = rules_->lhs_ptr[A]; q < rules_->lhs_ptr[A + 1]; ++q) {
        const std::uint32_t other = rules_->lhs_rule[q];
        if (other == r && m == k) continue;
        const std::uint32_t a = chart_->find(left, rules_->left[other]);
        if (a == kNone) continue;
        const std::uint32_t b = chart_->find(right, rules_->right[other]);
        if (b == kNone) continue;
        const double v = double(chart_->items()[a].value) + double(chart_->items()[b].value) + chart_->scores().rule_weight(other);
        if (v > best.value) best = {v, Where::kHere, other, std::uint32_t(m)};
      }
    }
    inner_[e] = best;
  }

  // Of a label of the truth with its chain, e being the top; at e = 0 the root.
  void differ_chain(std::size_t e) {
    const std::uint32_t own = chain_[e];
    std::size_t bottom = e;
    while (rules_->is_unary(rule(bottom))) ++bottom;
    node_.resize(rules_->n_labels), values_.resize(rules_->n_chains());
    chart_->cell_scores(i(e), j(e), node_.data());
    const auto* built = chart_->built(chart_->cell(i(e), j(e)));
    chart_->chain_values(built, node_.data(), values_.data());
    Choice best;
    for (std::uint32_t v = 0; v < rules_->n_chains(); ++v) {
      const std::uint32_t label = rules_->chain_label[v];
      if (e == 0 ? rules_->root[label] < 0 : label != rules_->chain_label[own]) continue;
      if (values_[v] == Chart<T>::kLow) continue;
      double value = double(values_[v]);
      if (v == own) {  // with another derivation of its lowest label
        if (inner_[bottom].value == -kInfinity) continue;
        value += inner_[bottom].value + double(node_[rules_->lhs[rule(bottom)]]) - double(built[rules_->lhs[rule(bottom)]].value);
      }
      if (e == 0) value += chart_->root_gain(v);
      if (value > best.value) best = {value, v == own ? Where::kLeft : Where::kHere, v, 0};
    }
    outer_[e] = best;
  }

  void plain(const Pending& p, std::vector<Code>& code) {
    chart_->write_item(p.symbol, p.i, p.j, code);
    chart_->write_stack(code);
  }
  void different(std::uint32_t e, std::vector<Code>& code) {
    if (rules_->is_label(rules_->lhs[rule(e)])) {
      const Choice& c = outer_[e];
      if (c.where == Where::kHere) {
        chart_->write_top(c.how, i(e), j(e), code);
        chart_->write_stack(code);
        return;
      }
      chart_->write_chain(c.how, i(e), j(e), code);
      while (rules_->is_unary(rule(e))) ++e;
    }
    const Choice& c = inner_[e];
    const std::uint32_t I = std::uint32_t(i(e)), J = std::uint32_t(j(e));
    Chart<T>::put(c.how, I, J, code);
    const std::uint32_t left = rules_->left[c.how], right = rules_->right[c.how];
    pending_.push_back({c.where == Where::kRight ? child_[e] : kNone, right, c.split, J});
    pending_.push_back({c.where == Where::kLeft ? e + 1 : kNone, left, I, c.split});
  }

  Chart<T>* chart_ = nullptr;
  const GrammarRules* rules_ = nullptr;
  CodeView truth_;
  std::vector<std::uint32_t> next_, child_, chain_;
  std::vector<Choice> inner_, outer_;
  std::vector<T> node_, values_;
  std::vector<Pending> pending_;
};

}  // namespace mm
