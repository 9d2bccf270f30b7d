// CKY: the best tree of a sentence under a weighted grammar (Kasami; Younger; Cocke), in O(n³ rules).
//
// A cell [i, j) has a bit mask of the symbols that derive it. A pair of cells is joined by intersecting, for
// each left symbol, the mask of its partners (grammar_rules.hpp) with that of the right cell: only rules
// whose children are both there are looked at. Then the scores of nodes are added and whole chains of unary
// rules applied. The values of a cell are kept packed, in the order of the bits.
#pragma once

#include <functional>

#include "cky_scores.hpp"

namespace mm {

template <class T>
class Chart {
 public:
  static constexpr T kLow = -std::numeric_limits<T>::infinity();
  static constexpr std::uint32_t kNone = GrammarRules::kNone;

  // A symbol over a cell: of a label the whole chain, whose number is `how`; else its rule is.
  struct Item {
    T value;
    std::uint32_t how, split;
  };
  // A label over a cell as the bottom of a chain.
  struct Built {
    T value = kLow;
    std::uint32_t rule = kNone, split = 0;
  };
  struct Left {
    std::uint32_t row, item;
  };
  // The root: a chain over the whole sentence.
  struct Root {
    double value = -kInfinity;
    std::uint32_t chain = kNone;
  };

  // Asked now and then while a long sentence is parsed; true ends it, without a parse.
  std::function<bool()> halted;

  // Fill the chart. False if the sentence has no parse (of a finite score).
  bool inside(const NodeScores<T>& scores, const BracketGain& gain) {
    scores_ = &scores, rules_ = &scores.rules(), gain_ = gain, n_ = scores.n();
    const GrammarRules& G = *rules_;
    const std::size_t cells = n_ * (n_ + 1) / 2, W = G.words;
    bits_.assign(cells * W, 0);
    rank_.resize(cells * W);
    built_.assign(cells * G.n_labels, Built{});
    left_ptr_.assign(cells + 1, {0, 0});
    items_.clear(), lefts_.clear();
    best_.assign(G.n_symbols, Built{});
    node_.resize(G.n_labels), chain_value_.resize(G.n_chains()), top_.resize(G.n_labels);
    for (std::size_t length = 1; length <= n_; ++length) {
      for (std::size_t i = 0; i + length <= n_; ++i) {
        if (length >= 32 && halted && halted()) return root_ = Root{}, false;
        fill(i, i + length);
      }
    }
    return find_root();
  }

  // The code of the best tree, appended.
  void best_tree(std::vector<Code>& code) { write_top(root_.chain, 0, n_, code), write_stack(code); }
  double value() const { return root_.value; }

  // ---- what other passes over the chart read ----

  std::size_t n() const { return n_; }
  const GrammarRules& rules() const { return *rules_; }
  const NodeScores<T>& scores() const { return *scores_; }
  const BracketGain& gain() const { return gain_; }
  std::size_t cell(std::size_t i, std::size_t j) const { return GrammarData::span_number(n_, i, j); }
  const std::vector<Item>& items() const { return items_; }
  const Built* built(std::size_t cell) const { return &built_[cell * rules_->n_labels]; }
  std::span<const Left> lefts(std::size_t cell) const { return {lefts_.data() + left_ptr_[cell].first, left_ptr_[cell].second}; }
  // Number of the item of a symbol, or kNone.
  std::uint32_t find(std::size_t cell, std::uint32_t symbol) const {
    const std::size_t at = cell * rules_->words + symbol / 64;
    const std::uint64_t bit = std::uint64_t{1} << (symbol % 64);
    if ((bits_[at] & bit) == 0) return kNone;
    return rank_[at] + std::uint32_t(std::popcount(bits_[at] & (bit - 1)));
  }
  template <class Visit>
  void for_symbols(std::size_t cell, Visit&& visit) const {
    for (std::size_t q = 0; q < rules_->words; ++q) {
      std::uint32_t item = rank_[cell * rules_->words + q];
      for (std::uint64_t m = bits_[cell * rules_->words + q]; m != 0; m &= m - 1) visit(std::uint32_t(q * 64 + std::size_t(std::countr_zero(m))), item++);
    }
  }
  // visit(rule, split, left item, right item) for all binary rules over a cell.
  template <class Visit>
  void for_rules(std::size_t i, std::size_t j, Visit&& visit) const {
    const GrammarRules& G = *rules_;
    const std::size_t W = G.words;
    for (std::size_t k = i + 1; k < j; ++k) {
      const std::size_t right_cell = cell(k, j);
      const std::uint64_t* right_bits = &bits_[right_cell * W];
      const std::uint32_t* right_rank = &rank_[right_cell * W];
      for (const Left& left : lefts(cell(i, k))) {
        const std::uint64_t* partners = &G.partners[left.row * W];
        const std::uint32_t* ranks = &G.pair_rank[left.row * W];
        for (std::size_t q = 0; q < W; ++q) {
          for (std::uint64_t m = partners[q] & right_bits[q]; m != 0; m &= m - 1) {
            const std::uint64_t below = (m & -m) - 1;
            const std::uint32_t item = right_rank[q] + std::uint32_t(std::popcount(right_bits[q] & below));
            const std::uint32_t pair = ranks[q] + std::uint32_t(std::popcount(partners[q] & below));
            for (std::uint32_t r = G.pair_first[pair]; r < G.pair_first[pair + 1]; ++r) visit(r, k, left.item, item);
            for (std::uint32_t r = G.pair_inner[pair]; r < G.pair_inner[pair + 1]; ++r) visit(r, k, left.item, item);
          }
        }
      }
    }
  }
  // Scores with gains of labels over a cell as nodes of chains, and the values of all chains there.
  void cell_scores(std::size_t i, std::size_t j, T* node) const {
    scores_->scores(i, j, node);
    scores_->add_gains(i, j, gain_, node);
  }
  void chain_values(const Built* built, const T* node, T* value) const {
    const GrammarRules& G = *rules_;
    const T* w = scores_->w();
    for (std::size_t a = 0; a < G.n_labels; ++a) value[a] = built[a].value;
    for (std::size_t v = G.n_labels; v < G.n_chains(); ++v) value[v] = value[G.chain_parent[v]] + w[G.chain_rule[v]] + node[G.chain_label[v]];
  }
  // What is added to a chain over the whole sentence where it is the root.
  double root_gain(std::uint32_t chain) const {
    const std::uint32_t label = rules_->chain_label[chain];
    double added = scores_->root_weight(label);
    if (scores_->data().count_root) return added;
    if (chain >= rules_->n_labels || scores_->rule_counts(built(cell(0, n_))[label].rule)) added -= scores_->gain(label, 0, n_, gain_);
    return added;
  }

  // ---- codes ----

  // Put down a tree from an item downwards; the rest of it is on the stack.
  void write_item(std::uint32_t symbol, std::size_t i, std::size_t j, std::vector<Code>& code) {
    if (rules_->is_terminal(symbol)) return;
    const Item& item = items_[find(cell(i, j), symbol)];
    if (rules_->is_label(symbol)) return write_top(item.how, i, j, code);
    write_rule(item.how, item.split, i, j, code);
  }
  void write_top(std::uint32_t chain, std::size_t i, std::size_t j, std::vector<Code>& code) {
    const std::uint32_t bottom = write_chain(chain, i, j, code);
    const Built& b = built(cell(i, j))[bottom];
    write_rule(b.rule, b.split, i, j, code);
  }
  // The unary rules of a chain; returns its lowest label.
  std::uint32_t write_chain(std::uint32_t chain, std::size_t i, std::size_t j, std::vector<Code>& code) const {
    for (; chain >= rules_->n_labels; chain = rules_->chain_parent[chain]) put(rules_->chain_rule[chain], i, j, code);
    return chain;
  }
  void write_rule(std::uint32_t rule, std::size_t split, std::size_t i, std::size_t j, std::vector<Code>& code) {
    put(rule, i, j, code);
    if (!rules_->is_binary(rule)) return;
    stack_.push_back({rules_->right[rule], std::uint32_t(split), std::uint32_t(j)});
    stack_.push_back({rules_->left[rule], std::uint32_t(i), std::uint32_t(split)});
  }
  void write_stack(std::vector<Code>& code) {
    while (!stack_.empty()) {
      const Pending p = stack_.back();
      stack_.pop_back();
      write_item(p.symbol, p.i, p.j, code);
    }
  }
  static void put(std::uint32_t rule, std::size_t i, std::size_t j, std::vector<Code>& code) {
    code.push_back(rule), code.push_back(std::uint32_t(i << 16 | j));
  }

 private:
  struct Pending {
    std::uint32_t symbol, i, j;
  };

  void fill(std::size_t i, std::size_t j) {
    const GrammarRules& G = *rules_;
    const T* w = scores_->w();
    const std::size_t at = cell(i, j);
    touched_.clear();
    Built* best = best_.data();
    const auto offer = [&](std::uint32_t symbol, T value, std::uint32_t rule, std::size_t split) {
      Built& b = best[symbol];
      if (!(value > b.value)) return;
      if (b.rule == kNone) touched_.push_back(symbol);
      b = {value, rule, std::uint32_t(split)};
    };
    std::int32_t terminal = -1;
    if (j == i + 1) {
      terminal = scores_->data().terminals[std::size_t(scores_->data().offsets[scores_->example()]) + i];
      if (terminal >= 0) {
        for (std::uint32_t k = G.lexical_ptr[std::size_t(terminal)]; k < G.lexical_ptr[std::size_t(terminal) + 1]; ++k) {
          offer(G.lhs[G.lexical_rule[k]], w[G.lexical_rule[k]], G.lexical_rule[k], 0);
        }
      }
    } else {
      join(i, j, offer);
    }
    if (touched_.empty() && terminal < 0) {
      left_ptr_[at] = {std::uint32_t(lefts_.size()), 0};
      return;
    }
    finish(i, j, at, terminal);
  }

  template <class Offer>
  void join(std::size_t i, std::size_t j, Offer&& offer) const {
    const GrammarRules& G = *rules_;
    const T* w = scores_->w();
    const std::size_t W = G.words;
    const std::uint32_t* lhs = G.lhs.data();
    for (std::size_t k = i + 1; k < j; ++k) {
      const std::span<const Left> left_items = lefts(cell(i, k));
      if (left_items.empty()) continue;
      const std::size_t right_cell = cell(k, j);
      const std::uint64_t* right_bits = &bits_[right_cell * W];
      const std::uint32_t* right_rank = &rank_[right_cell * W];
      for (const Left& left : left_items) {
        const T l = items_[left.item].value;
        const std::uint64_t* partners = &G.partners[left.row * W];
        const std::uint32_t* ranks = &G.pair_rank[left.row * W];
        for (std::size_t q = 0; q < W; ++q) {
          for (std::uint64_t m = partners[q] & right_bits[q]; m != 0; m &= m - 1) {
            const std::uint64_t below = (m & -m) - 1;
            const std::uint32_t pair = ranks[q] + std::uint32_t(std::popcount(partners[q] & below));
            const T value = l + items_[right_rank[q] + std::uint32_t(std::popcount(right_bits[q] & below))].value;
            for (std::uint32_t r = G.pair_first[pair]; r < G.pair_first[pair + 1]; ++r) offer(lhs[r], value + w[r], r, k);
            for (std::uint32_t r = G.pair_inner[pair]; r < G.pair_inner[pair + 1]; ++r) offer(lhs[r], value, r, k);
          }
        }
      }
    }
  }

  // Scores of nodes, chains, and the packed items.
  void finish(std::size_t i, std::size_t j, std::size_t at, std::int32_t terminal) {
    const GrammarRules& G = *rules_;
    Built* built = &built_[at * G.n_labels];
    std::uint64_t* bits = &bits_[at * G.words];
    const auto set = [&](std::uint32_t symbol) { bits[symbol / 64] |= std::uint64_t{1} << (symbol % 64); };
    bool labels = false;
    for (const std::uint32_t symbol : touched_) {
      if (G.is_label(symbol)) {
        built[symbol] = best_[symbol], labels = true;
      } else {
        set(symbol);
      }
    }
    if (labels) {
      cell_scores(i, j, node_.data());
      for (const std::uint32_t a : touched_) {
        if (!G.is_label(a)) continue;
        built[a].value += node_[a];
        if (G.is_lexical(built[a].rule) && !scores_->rule_counts(built[a].rule)) built[a].value -= T(scores_->gain(a, i, j, gain_));
      }
      chain_values(built, node_.data(), chain_value_.data());
      std::fill(top_.begin(), top_.end(), kNone);
      for (std::uint32_t v = 0; v < G.n_chains(); ++v) {
        std::uint32_t& top = top_[G.chain_label[v]];
        if (chain_value_[v] > (top == kNone ? kLow : chain_value_[top])) top = v;
      }
      // A label whose every chain has overflown is as if it were not there.
      for (std::uint32_t a = 0; a < G.n_labels; ++a) {
        if (top_[a] != kNone) set(a);
      }
    }
    if (terminal >= 0) set(std::uint32_t(G.n_labels + G.n_inner) + std::uint32_t(terminal));
    left_ptr_[at].first = std::uint32_t(lefts_.size());
    for (std::size_t q = 0; q < G.words; ++q) {
      rank_[at * G.words + q] = std::uint32_t(items_.size());
      for (std::uint64_t m = bits[q]; m != 0; m &= m - 1) {
        const std::uint32_t symbol = std::uint32_t(q * 64 + std::size_t(std::countr_zero(m)));
        if (G.row[symbol] != kNone) lefts_.push_back({G.row[symbol], std::uint32_t(items_.size())});
        if (G.is_label(symbol)) {
          items_.push_back({chain_value_[top_[symbol]], top_[symbol], 0});
        } else if (G.is_terminal(symbol)) {
          items_.push_back({T(0), kNone, 0});
        } else {
          items_.push_back({best_[symbol].value, best_[symbol].rule, best_[symbol].split});
        }
      }
    }
    left_ptr_[at].second = std::uint32_t(lefts_.size()) - left_ptr_[at].first;
    for (const std::uint32_t symbol : touched_) best_[symbol] = Built{};
  }

  bool find_root() {
    root_ = Root{};
    if (n_ == 0) return false;
    const GrammarRules& G = *rules_;
    cell_scores(0, n_, node_.data());
    chain_values(built(cell(0, n_)), node_.data(), chain_value_.data());
    for (std::uint32_t v = 0; v < G.n_chains(); ++v) {
      if (G.root[G.chain_label[v]] < 0 || chain_value_[v] == kLow) continue;
      const double value = double(chain_value_[v]) + root_gain(v);
      if (value > root_.value) root_ = {value, v};
    }
    return root_.chain != kNone;
  }

  const NodeScores<T>* scores_ = nullptr;
  const GrammarRules* rules_ = nullptr;
  BracketGain gain_;
  std::size_t n_ = 0;
  std::vector<std::uint64_t> bits_;   // [cells][words]
  std::vector<std::uint32_t> rank_;   // [cells][words] the item of a word's first bit
  std::vector<Item> items_;
  std::vector<Built> built_;          // [cells][labels]
  std::vector<Left> lefts_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> left_ptr_;  // [cells] first and number
  std::vector<Built> best_;           // [symbols] of the cell at hand
  std::vector<std::uint32_t> touched_, top_;
  std::vector<T> node_, chain_value_;
  std::vector<Pending> stack_;
  Root root_;
};

}  // namespace mm
