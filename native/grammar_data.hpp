// Sentences and their trees, as a grammar's oracles read them.
//
// A tree is written as a code: for each node from the top, children from the left, two words: its rule, and
// its span as (first << 16 | end). Nodes that binarisation brought in are nodes here. A tree has one code.
#pragma once

#include "grammar_rules.hpp"
#include "structure.hpp"

namespace mm {

enum class TreeLoss { kF1, kBrackets, kZeroOne };

// Rows of a sparse matrix of ones.
struct AttributeRows {
  std::span<const std::int64_t> ptr;
  std::span<const std::uint32_t> ids;
  std::span<const std::uint32_t> operator[](std::size_t k) const {
    if (ptr.empty()) return {};
    return ids.subspan(std::size_t(ptr[k]), std::size_t(ptr[k + 1] - ptr[k]));
  }
};

struct GrammarData {
  const GrammarRules* rules = nullptr;
  std::span<const std::int64_t> offsets;        // [n + 1] first token of each sentence
  std::span<const std::int32_t> terminals;      // [tokens] -1: not known
  // Features of nodes: each attribute has entries with labels, ascending; the entry's place is its weight.
  std::span<const std::int64_t> entry_ptr;      // [attributes + 1]
  std::span<const std::uint32_t> entry_label;
  AttributeRows first, last;                    // of a span that begins, that ends with a token: [tokens]
  AttributeRows length;                         // of spans of a length: [longest + 1]
  AttributeRows span;                           // of other attributes: [spans of all sentences]
  std::span<const std::int64_t> span_offsets;   // [n + 1], empty without such
  // The truth.
  std::span<const std::int64_t> code_ptr;       // [n + 1], empty without
  std::span<const std::uint32_t> codes;
  const double* example_weight = nullptr;
  TreeLoss loss = TreeLoss::kF1;
  bool count_root = true, count_lexical = true;
  std::size_t search_limit = 20'000'000;  // triples at which the search by counts gives up (cky_search.hpp)

  std::size_t size() const { return offsets.size() - 1; }
  std::size_t n_tokens(std::size_t i) const { return std::size_t(offsets[i + 1] - offsets[i]); }
  std::size_t first_entry() const { return rules->n_weighted + rules->n_roots; }
  std::size_t n_weights() const { return first_entry() + entry_label.size(); }
  CodeView truth(std::size_t i) const { return codes.subspan(std::size_t(code_ptr[i]), std::size_t(code_ptr[i + 1] - code_ptr[i])); }
  // Spans of a sentence of n tokens are numbered by their beginning, then by their end.
  static std::size_t span_number(std::size_t n, std::size_t i, std::size_t j) { return i * n - i * (i - 1) / 2 + (j - i - 1); }

  // Calls visit(attribute) for all attributes of a span.
  template <class Visit>
  void for_attributes(std::size_t s, std::size_t i, std::size_t j, Visit&& visit) const {
    const std::size_t begin = std::size_t(offsets[s]);
    for (const std::uint32_t a : first[begin + i]) visit(a);
    for (const std::uint32_t a : last[begin + j - 1]) visit(a);
    for (const std::uint32_t a : length[j - i]) visit(a);
    if (span_offsets.empty()) return;
    for (const std::uint32_t a : span[std::size_t(span_offsets[s]) + span_number(n_tokens(s), i, j)]) visit(a);
  }

  std::uint64_t data_hash() const {
    DataHash hash(rules->data_hash());
    const auto mix = [&](const auto& v) { hash.mix(v.data(), v.size_bytes()); };
    mix(offsets), mix(terminals), mix(entry_ptr), mix(entry_label), mix(span_offsets), mix(code_ptr), mix(codes);
    for (const AttributeRows* rows : {&first, &last, &length, &span}) mix(rows->ptr), mix(rows->ids);
    hash.mix(example_weight, example_weight == nullptr ? 0 : size() * sizeof(double));
    hash.mix_number(loss), hash.mix_number(count_root), hash.mix_number(count_lexical);
    return hash.value();
  }
};

}  // namespace mm
