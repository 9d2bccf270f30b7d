// What a node of one sentence scores beside its rule, and what the loss of one bracket adds to that.
//
// Attributes of a span depend on its beginning, its end or its length, so that three small tables have the
// scores of all (label, span); other attributes, which depend on both ends, are looked up span by span.
#pragma once

#include "grammar_data.hpp"

namespace mm {

// A bracket: span and class of labels.
struct Bracket {
  std::uint32_t span;
  std::int32_t label_class;
  auto operator<=>(const Bracket&) const = default;
};

// What a node adds that counts as a bracket: if it is one of the truth, and if not.
struct BracketGain {
  double right = 0.0, wrong = 0.0;
  bool none() const { return right == 0.0 && wrong == 0.0; }
};

template <class T>
class NodeScores {
 public:
  // `gold`: brackets of the truth, ascending.
  void start(const GrammarData& data, std::size_t s, const T* w, std::span<const Bracket> gold) {
    data_ = &data, rules_ = data.rules, s_ = s, w_ = w, gold_ = gold;
    n_ = data.n_tokens(s);
    plain_ = data.entry_label.empty();
    if (plain_) return;
    const std::size_t L = rules_->n_labels, begin = std::size_t(data.offsets[s]);
    for (auto* table : {&first_, &last_, &length_}) table->assign((n_ + 1) * L, T(0));
    for (std::size_t t = 0; t < n_; ++t) {
      for (const std::uint32_t a : data.first[begin + t]) add(a, first_.data() + t * L);
      for (const std::uint32_t a : data.last[begin + t]) add(a, last_.data() + (t + 1) * L);
      for (const std::uint32_t a : data.length[t + 1]) add(a, length_.data() + (t + 1) * L);
    }
  }

  // Scores of all labels as nodes over [i, j), without gains.
  void scores(std::size_t i, std::size_t j, T* out) const {
    const std::size_t L = rules_->n_labels;
    if (plain_) {
      std::fill(out, out + L, T(0));
      return;
    }
    const T *f = first_.data() + i * L, *l = last_.data() + j * L, *d = length_.data() + (j - i) * L;
    for (std::size_t a = 0; a < L; ++a) out[a] = f[a] + l[a] + d[a];
    if (data_->span_offsets.empty()) return;
    for (const std::uint32_t a : data_->span[std::size_t(data_->span_offsets[s_]) + GrammarData::span_number(n_, i, j)]) add(a, out);
  }

  // Is a label over [i, j) a bracket (of the truth)?
  bool counts(std::uint32_t label) const { return rules_->label_class[label] >= 0; }
  bool is_gold(std::uint32_t label, std::size_t i, std::size_t j) const {
    return std::binary_search(gold_.begin(), gold_.end(), Bracket{std::uint32_t(i << 16 | j), rules_->label_class[label]});
  }
  double gain(std::uint32_t label, std::size_t i, std::size_t j, const BracketGain& g) const {
    return !counts(label) ? 0.0 : is_gold(label, i, j) ? g.right : g.wrong;
  }
  // Does a node count that has this rule?
  bool rule_counts(std::uint32_t rule) const {
    return rules_->is_label(rules_->lhs[rule]) && counts(rules_->lhs[rule]) && (data_->count_lexical || !rules_->is_lexical(rule));
  }

  // Add the gains of all labels.
  void add_gains(std::size_t i, std::size_t j, const BracketGain& g, T* out) const {
    if (g.none()) return;
    const std::size_t L = rules_->n_labels;
    for (std::uint32_t a = 0; a < L; ++a) out[a] += counts(a) ? T(g.wrong) : T(0);
    const Bracket at{std::uint32_t(i << 16 | j), std::numeric_limits<std::int32_t>::min()};
    for (auto b = std::lower_bound(gold_.begin(), gold_.end(), at); b != gold_.end() && b->span == at.span; ++b) {
      for (std::uint32_t a = 0; a < L; ++a) {
        if (rules_->label_class[a] == b->label_class) out[a] += T(g.right - g.wrong);
      }
    }
  }

  const GrammarData& data() const { return *data_; }
  const GrammarRules& rules() const { return *rules_; }
  std::size_t example() const { return s_; }
  std::size_t n() const { return n_; }
  const T* w() const { return w_; }
  double rule_weight(std::uint32_t rule) const { return rule < rules_->n_weighted ? double(w_[rule]) : 0.0; }
  double root_weight(std::uint32_t label) const { return double(w_[rules_->n_weighted + std::size_t(rules_->root[label])]); }

 private:
  void add(std::uint32_t attribute, T* row) const {
    const T* weight = w_ + data_->first_entry();
    for (std::int64_t e = data_->entry_ptr[attribute]; e < data_->entry_ptr[attribute + 1]; ++e) row[data_->entry_label[std::size_t(e)]] += weight[e];
  }

  const GrammarData* data_ = nullptr;
  const GrammarRules* rules_ = nullptr;
  std::size_t s_ = 0, n_ = 0;
  const T* w_ = nullptr;
  std::span<const Bracket> gold_;
  bool plain_ = true;
  std::vector<T> first_, last_, length_;
};

}  // namespace mm
