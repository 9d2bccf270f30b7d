// A context-free grammar as CKY reads it: binary rules, chains of unary rules, rules over terminals.
//
// Symbols are numbered: labels of nodes, then symbols that binarisation brought in, then terminals.
// Rules are numbered in four groups; a rule of the first three has the weight of its own number:
//   [binary, with weights][unary: label -> label][lexical: label -> terminal][binary, without weights]
// The last are the inner rules of a rule with more than two children, whose weight is at its top.
//
// Unary rules are applied as whole chains, each of which has no label (to be exact: no class of labels)
// twice. They form a forest: entry a < n_labels is the chain of the label a alone, and every other entry is
// a chain with one more label on top. So the best chain of a cell is found exactly, in one sweep, however
// the weights along a cycle of rules add up.
//
// Binary rules are found by their pair of children: every left child has a bit mask of the symbols that it
// has rules with, and the number of a pair is the rank of a bit in it.
#pragma once

#include <bit>

#include "common.hpp"
#include "data_hash.hpp"

namespace mm {

struct GrammarArrays {
  std::size_t n_labels = 0, n_inner = 0, n_terminals = 0;
  std::span<const std::uint32_t> left, right, lhs;                    // binary rules, by (left, right, lhs): with weights ...
  std::span<const std::uint32_t> inner_left, inner_right, inner_lhs;  // ... and without
  std::span<const std::uint32_t> unary_lhs, unary_child;
  std::span<const std::uint32_t> lexical_lhs, lexical_terminal;  // by (terminal, lhs)
  std::span<const std::int32_t> label_class;                     // [n_labels] -1: no bracket
  std::span<const std::int32_t> root;                            // [n_labels] place among the roots, or -1
  std::span<const std::uint32_t> chain_label, chain_parent, chain_rule;
};

class GrammarRules {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  explicit GrammarRules(const GrammarArrays& a) {
    n_labels = a.n_labels, n_inner = a.n_inner, n_terminals = a.n_terminals;
    n_symbols = n_labels + n_inner + n_terminals;
    words = (n_symbols + 63) / 64;
    n_binary = a.left.size();
    n_unary = a.unary_lhs.size();
    n_lexical = a.lexical_lhs.size();
    n_weighted = n_binary + n_unary + n_lexical;
    n_rules = n_weighted + a.inner_left.size();
    for (const auto& part : {a.lhs, a.unary_lhs, a.lexical_lhs, a.inner_lhs}) lhs.insert(lhs.end(), part.begin(), part.end());
    left.assign(n_rules, kNone), right.assign(n_rules, kNone);
    std::copy(a.left.begin(), a.left.end(), left.begin());
    std::copy(a.right.begin(), a.right.end(), right.begin());
    std::copy(a.unary_child.begin(), a.unary_child.end(), left.begin() + std::ptrdiff_t(n_binary));
    for (std::size_t r = 0; r < n_lexical; ++r) left[n_binary + n_unary + r] = std::uint32_t(n_labels + n_inner) + a.lexical_terminal[r];
    std::copy(a.inner_left.begin(), a.inner_left.end(), left.begin() + std::ptrdiff_t(n_weighted));
    std::copy(a.inner_right.begin(), a.inner_right.end(), right.begin() + std::ptrdiff_t(n_weighted));
    label_class.assign(a.label_class.begin(), a.label_class.end());
    root.assign(a.root.begin(), a.root.end());
    for (const std::int32_t r : root) n_roots += r >= 0;
    chain_label.assign(a.chain_label.begin(), a.chain_label.end());
    chain_parent.assign(a.chain_parent.begin(), a.chain_parent.end());
    chain_rule.assign(a.chain_rule.begin(), a.chain_rule.end());
    index_pairs();
    index_lexical(a);
    index_lhs();
    index_chains();
    hash_ = hashed();
  }

  bool is_label(std::uint32_t symbol) const { return symbol < n_labels; }
  bool is_terminal(std::uint32_t symbol) const { return symbol >= n_labels + n_inner; }
  bool is_binary(std::uint32_t rule) const { return rule < n_binary || rule >= n_weighted; }
  bool is_unary(std::uint32_t rule) const { return rule >= n_binary && rule < n_binary + n_unary; }
  bool is_lexical(std::uint32_t rule) const { return rule >= n_binary + n_unary && rule < n_weighted; }
  std::size_t n_chains() const { return chain_label.size(); }
  std::uint64_t data_hash() const { return hash_; }

  // The forest's entry of the label `top` over the chain `below`; kNone if there is none.
  std::uint32_t chain_above(std::uint32_t below, std::uint32_t rule) const {
    for (std::uint32_t k = above_ptr[below]; k < above_ptr[below + 1]; ++k) {
      if (chain_rule[above[k]] == rule) return above[k];
    }
    return kNone;
  }

  std::size_t n_labels = 0, n_inner = 0, n_terminals = 0, n_symbols = 0, words = 0;
  std::size_t n_binary = 0, n_unary = 0, n_lexical = 0, n_weighted = 0, n_rules = 0, n_roots = 0;
  std::size_t longest_chain = 1;  // in nodes
  std::vector<std::uint32_t> lhs, left, right;  // [n_rules] a unary or lexical rule has its child in `left`
  std::vector<std::int32_t> label_class, root;
  std::vector<std::uint32_t> chain_label, chain_parent, chain_rule;
  std::vector<std::uint32_t> above_ptr, above;  // entries right above each
  // Left children: their rows, masks of right children, and the number of the first pair of each word.
  std::vector<std::uint32_t> row;  // [n_symbols] kNone: no left child
  std::vector<std::uint64_t> partners;    // [rows][words]
  std::vector<std::uint32_t> pair_rank;   // [rows][words]
  std::vector<std::uint32_t> pair_first, pair_inner;  // [pairs + 1] first rule with weights, and without
  std::vector<std::uint32_t> lexical_ptr, lexical_rule;  // by terminal
  std::vector<std::uint32_t> lhs_ptr, lhs_rule;          // binary rules by their lhs

 private:
  void index_pairs() {
    std::vector<std::uint64_t> pairs;
    const auto key = [&](std::size_t r) { return std::uint64_t(left[r]) << 32 | right[r]; };
    for (std::size_t r = 0; r < n_rules; ++r) {
      if (is_binary(std::uint32_t(r))) pairs.push_back(key(r));
    }
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    row.assign(n_symbols, kNone);
    std::uint32_t rows = 0;
    for (const std::uint64_t p : pairs) {
      if (row[p >> 32] == kNone) row[p >> 32] = rows++;
    }
    partners.assign(rows * words, 0);
    pair_rank.assign(rows * words, 0);
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      const std::size_t at = row[pairs[k] >> 32] * words + (pairs[k] & 0xffffffffu) / 64;
      if (partners[at] == 0) pair_rank[at] = std::uint32_t(k);
      partners[at] |= std::uint64_t{1} << (pairs[k] & 63);
    }
    std::size_t r = 0, q = n_weighted;
    for (const std::uint64_t p : pairs) {
      while (r < n_binary && key(r) < p) ++r;
      while (q < n_rules && key(q) < p) ++q;
      pair_first.push_back(std::uint32_t(r)), pair_inner.push_back(std::uint32_t(q));
    }
    pair_first.push_back(std::uint32_t(n_binary)), pair_inner.push_back(std::uint32_t(n_rules));
  }
  void index_lexical(const GrammarArrays& a) {
    lexical_ptr.assign(n_terminals + 1, 0);
    for (const std::uint32_t t : a.lexical_terminal) ++lexical_ptr[t + 1];
    for (std::size_t t = 0; t < n_terminals; ++t) lexical_ptr[t + 1] += lexical_ptr[t];
    lexical_rule.resize(n_lexical);
    std::vector<std::uint32_t> at(lexical_ptr.begin(), lexical_ptr.end() - 1);
    for (std::size_t r = 0; r < n_lexical; ++r) lexical_rule[at[a.lexical_terminal[r]]++] = std::uint32_t(n_binary + n_unary + r);
  }
  void index_lhs() {
    lhs_ptr.assign(n_symbols + 1, 0);
    for (std::size_t r = 0; r < n_rules; ++r) lhs_ptr[lhs[r] + 1] += is_binary(std::uint32_t(r));
    for (std::size_t s = 0; s < n_symbols; ++s) lhs_ptr[s + 1] += lhs_ptr[s];
    lhs_rule.resize(lhs_ptr.back());
    std::vector<std::uint32_t> at(lhs_ptr.begin(), lhs_ptr.end() - 1);
    for (std::size_t r = 0; r < n_rules; ++r) {
      if (is_binary(std::uint32_t(r))) lhs_rule[at[lhs[r]]++] = std::uint32_t(r);
    }
  }
  void index_chains() {
    above_ptr.assign(n_chains() + 1, 0);
    std::vector<std::size_t> nodes(n_chains(), 1);
    for (std::size_t v = n_labels; v < n_chains(); ++v) {
      ++above_ptr[chain_parent[v] + 1];
      longest_chain = std::max(longest_chain, nodes[v] = nodes[chain_parent[v]] + 1);
    }
    for (std::size_t v = 0; v < n_chains(); ++v) above_ptr[v + 1] += above_ptr[v];
    above.resize(above_ptr.back());
    std::vector<std::uint32_t> at(above_ptr.begin(), above_ptr.end() - 1);
    for (std::size_t v = n_labels; v < n_chains(); ++v) above[at[chain_parent[v]]++] = std::uint32_t(v);
  }
  std::uint64_t hashed() const {
    DataHash hash(n_labels * 1000003 + n_symbols);
    const auto mix = [&](const auto& v) { hash.mix(v.data(), v.size() * sizeof(v[0])); };
    mix(lhs), mix(left), mix(right), mix(label_class), mix(root), mix(chain_label), mix(chain_parent), mix(chain_rule);
    return hash.value();
  }
  std::uint64_t hash_ = 0;
};

}  // namespace mm
