// The bare loop: spans, splits and all binary rules, with nothing left out and nothing but the greatest value
// kept. What CKY (cky.hpp) is measured against.
#pragma once

#include "cky_scores.hpp"

namespace mm {

template <class T>
double bare_cky(const NodeScores<T>& scores) {
  const GrammarRules& G = scores.rules();
  const GrammarData& data = scores.data();
  const std::size_t n = scores.n(), S = G.n_symbols, L = G.n_labels;
  const T low = -std::numeric_limits<T>::infinity(), *w = scores.w();
  std::vector<T> values(n * (n + 1) / 2 * S, low), node(L), chain(G.n_chains());
  double best = -kInfinity;
  for (std::size_t length = 1; length <= n; ++length) {
    for (std::size_t i = 0; i + length <= n; ++i) {
      const std::size_t j = i + length;
      T* out = &values[GrammarData::span_number(n, i, j) * S];
      if (length == 1) {
        const std::int32_t t = data.terminals[std::size_t(data.offsets[scores.example()]) + i];
        if (t >= 0) {
          out[L + G.n_inner + std::size_t(t)] = 0;
          for (std::uint32_t k = G.lexical_ptr[std::size_t(t)]; k < G.lexical_ptr[std::size_t(t) + 1]; ++k) out[G.lhs[G.lexical_rule[k]]] = w[G.lexical_rule[k]];
        }
      }
      for (std::size_t k = i + 1; k < j; ++k) {
        const T *left = &values[GrammarData::span_number(n, i, k) * S], *right = &values[GrammarData::span_number(n, k, j) * S];
        for (std::size_t r = 0; r < G.n_binary; ++r) out[G.lhs[r]] = std::max(out[G.lhs[r]], left[G.left[r]] + right[G.right[r]] + w[r]);
        for (std::size_t r = G.n_weighted; r < G.n_rules; ++r) out[G.lhs[r]] = std::max(out[G.lhs[r]], left[G.left[r]] + right[G.right[r]]);
      }
      scores.scores(i, j, node.data());
      for (std::size_t a = 0; a < L; ++a) chain[a] = out[a] += node[a];
      for (std::size_t v = L; v < G.n_chains(); ++v) {
        const std::uint32_t label = G.chain_label[v];
        chain[v] = chain[G.chain_parent[v]] + w[G.chain_rule[v]] + node[label];
        out[label] = std::max(out[label], chain[v]);
      }
      if (length < n) continue;
      for (std::uint32_t a = 0; a < L; ++a) {
        if (G.root[a] >= 0) best = std::max(best, double(out[a]) + scores.root_weight(a));
      }
    }
  }
  return best;
}

}  // namespace mm
