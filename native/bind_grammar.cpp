// Python bindings of grammars: their rules, sentences with trees, and parsing.
#include "bind_tokens.hpp"
#include "cky_bare.hpp"
#include "grammar.hpp"
#include "prediction_loop.hpp"
#include "problem_of.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

using Numbers = Array<std::uint32_t>;
using Signed = Array<std::int32_t>;
using Places = Array<std::int64_t>;

template <class A>
auto view(const A& array) {
  return std::span(array.data(), array.shape(0));
}

// Everything that native code relies on later.
GrammarArrays checked(GrammarArrays a) {
  const std::size_t limit = std::size_t{1} << 28;
  require(a.n_labels >= 1 && a.n_labels < limit && a.n_inner < limit && a.n_terminals < limit, "expected at least one label and fewer than 2^28 symbols");
  const std::size_t nodes = a.n_labels + a.n_inner, all = nodes + a.n_terminals;
  const auto below = [](std::span<const std::uint32_t> v, std::size_t end) { return std::ranges::all_of(v, [&](std::uint32_t x) { return x < end; }); };
  const auto binary = [&](auto left, auto right, auto lhs, bool inner) {
    require(left.size() == lhs.size() && right.size() == lhs.size(), "a rule has a lhs and two children");
    require(below(left, all) && below(right, all) && below(lhs, nodes), "a symbol of a binary rule is out of range");
    for (std::size_t r = 0; r < lhs.size(); ++r) {
      require(!inner || lhs[r] >= a.n_labels, "a rule without a weight must have an inner symbol on its left");
      if (r == 0) continue;
      require(std::tuple(left[r - 1], right[r - 1], lhs[r - 1]) < std::tuple(left[r], right[r], lhs[r]), "binary rules must be sorted by left, right and lhs, and differ");
    }
  };
  binary(a.left, a.right, a.lhs, false);
  binary(a.inner_left, a.inner_right, a.inner_lhs, true);
  require(a.unary_lhs.size() == a.unary_child.size() && below(a.unary_lhs, a.n_labels) && below(a.unary_child, a.n_labels), "a unary rule is out of range");
  require(a.lexical_lhs.size() == a.lexical_terminal.size() && below(a.lexical_lhs, a.n_labels) && below(a.lexical_terminal, a.n_terminals), "a lexical rule is out of range");
  for (std::size_t r = 1; r < a.lexical_lhs.size(); ++r) {
    require(std::pair(a.lexical_terminal[r - 1], a.lexical_lhs[r - 1]) < std::pair(a.lexical_terminal[r], a.lexical_lhs[r]), "lexical rules must be sorted by terminal and lhs, and differ");
  }
  require(a.label_class.size() == a.n_labels && a.root.size() == a.n_labels, "expected a class and a root for each label");
  for (const std::int32_t c : a.label_class) require(c >= -1, "a class is out of range");
  std::int32_t roots = 0;
  for (const std::int32_t r : a.root) {
    require(r == -1 || r == roots, "roots must be numbered in the order of the labels");
    roots += r >= 0;
  }
  require(roots > 0, "there is no root");
  const std::size_t chains = a.chain_label.size();
  require(a.chain_parent.size() == chains && a.chain_rule.size() == chains && chains >= a.n_labels && chains < limit, "the chains differ in length");
  for (std::size_t v = 0; v < chains; ++v) {
    if (v < a.n_labels) {
      require(a.chain_label[v] == v, "the first chains are the labels");
      continue;
    }
    require(a.chain_parent[v] < v, "a chain comes before the one that it is on");
    const std::size_t r = std::size_t(a.chain_rule[v]) - a.left.size();
    require(a.chain_rule[v] >= a.left.size() && r < a.unary_lhs.size(), "a chain has a rule that is not unary");
    require(a.unary_lhs[r] == a.chain_label[v] && a.unary_child[r] == a.chain_label[a.chain_parent[v]], "a chain has a rule of other labels");
  }
  require(a.left.size() + a.unary_lhs.size() + a.lexical_lhs.size() + a.inner_left.size() < limit, "there are too many rules");
  return a;
}

// Is this a tree of the grammar over these terminals?
bool valid_tree(const GrammarRules& G, std::span<const std::int32_t> terminals, CodeView code, std::vector<std::array<std::uint32_t, 3>>& stack) {
  const std::uint32_t n = std::uint32_t(terminals.size()), first_terminal = std::uint32_t(G.n_labels + G.n_inner);
  if (code.size() < 2 || code.size() % 2 != 0 || code[0] >= G.n_rules) return false;
  const std::uint32_t top = G.lhs[code[0]];
  if (!G.is_label(top) || G.root[top] < 0) return false;
  std::size_t at = 0;
  stack.assign(1, {top, 0, n});
  std::vector<std::uint32_t> chain;
  while (!stack.empty()) {
    const auto [symbol, i, j] = stack.back();
    stack.pop_back();
    if (G.is_terminal(symbol)) {
      if (j != i + 1 || terminals[i] < 0 || std::uint32_t(terminals[i]) != symbol - first_terminal) return false;
      continue;
    }
    chain.clear();
    std::uint32_t wanted = symbol;
    for (;; at += 2) {
      if (at >= code.size()) return false;
      const std::uint32_t r = code[at];
      if (r >= G.n_rules || G.lhs[r] != wanted || code[at + 1] != (i << 16 | j)) return false;
      if (!G.is_unary(r)) break;
      chain.push_back(r);
      wanted = G.left[r];
    }
    std::uint32_t v = wanted;
    for (std::size_t k = chain.size(); k-- > 0;) {
      v = G.chain_above(v, chain[k]);
      if (v == GrammarRules::kNone) return false;
    }
    const std::uint32_t r = code[at];
    at += 2;
    if (G.is_lexical(r)) {
      stack.push_back({G.left[r], i, j});
      continue;
    }
    if (j < i + 2) return false;
    std::uint32_t k = i + 1;
    if (!G.is_terminal(G.left[r])) {
      if (at + 1 >= code.size()) return false;
      k = code[at + 1] & 0xffffu;
    }
    if (k <= i || k >= j) return false;
    stack.push_back({G.right[r], k, j});
    stack.push_back({G.left[r], i, k});
  }
  return at == code.size();
}

class Rules {
 public:
  Rules(std::size_t n_labels, std::size_t n_inner, std::size_t n_terminals, Numbers left, Numbers right, Numbers lhs, Numbers inner_left,
        Numbers inner_right, Numbers inner_lhs, Numbers unary_lhs, Numbers unary_child, Numbers lexical_lhs, Numbers lexical_terminal,
        Signed label_class, Signed root, Numbers chain_label, Numbers chain_parent, Numbers chain_rule)
      : rules(checked({n_labels, n_inner, n_terminals, view(left), view(right), view(lhs), view(inner_left), view(inner_right),
                       view(inner_lhs), view(unary_lhs), view(unary_child), view(lexical_lhs), view(lexical_terminal),
                       view(label_class), view(root), view(chain_label), view(chain_parent), view(chain_rule)})) {}
  GrammarRules rules;
};

class GrammarProblem final : public ProblemOf<GrammarStructure, GrammarData> {
 public:
  using OptPlaces = std::optional<Places>;
  using OptNumbers = std::optional<Numbers>;

  GrammarProblem(nb::object rules, Places offsets, Signed terminals, Places entry_ptr, Numbers entry_label, OptPlaces first_ptr,
                 OptNumbers first_ids, OptPlaces last_ptr, OptNumbers last_ids, OptPlaces length_ptr, OptNumbers length_ids,
                 OptPlaces span_ptr, OptNumbers span_ids, OptPlaces code_ptr, OptNumbers codes, std::optional<Array<double>> example_weight,
                 const std::string& loss, bool count_root, bool count_preterminals, std::size_t search_limit) {
    data_.search_limit = std::min<std::size_t>(search_limit, 20'000'000);
    data_.rules = &nb::cast<const Rules&>(rules).rules;
    keep(rules), keep(offsets), keep(terminals), keep(entry_ptr), keep(entry_label);
    data_.offsets = view(offsets);
    require(data_.offsets.size() >= 2 && data_.offsets.front() == 0 && data_.offsets.back() == std::int64_t(terminals.shape(0)),
            "offsets must begin with 0 and end with the number of tokens");
    std::size_t longest = 0;
    for (std::size_t i = 0; i + 1 < data_.offsets.size(); ++i) {
      if (data_.offsets[i + 1] <= data_.offsets[i]) throw BadInput("sentence " + std::to_string(i) + " is empty");
      longest = std::max(longest, data_.n_tokens(i));
    }
    require(longest < 65536, "a sentence has more than 65535 tokens");
    data_.terminals = view(terminals);
    for (const std::int32_t t : data_.terminals) require(t >= -1 && t < std::int64_t(data_.rules->n_terminals), "a terminal is out of range");
    data_.entry_ptr = view(entry_ptr), data_.entry_label = view(entry_label);
    check_rows(data_.entry_ptr, data_.entry_ptr.size(), data_.entry_label.size());
    for (std::size_t a = 0; a + 1 < data_.entry_ptr.size(); ++a) {
      for (std::int64_t e = data_.entry_ptr[a]; e < data_.entry_ptr[a + 1]; ++e) {
        require(data_.entry_label[std::size_t(e)] < data_.rules->n_labels, "a label of an attribute is out of range");
        require(e == data_.entry_ptr[a] || data_.entry_label[std::size_t(e - 1)] < data_.entry_label[std::size_t(e)], "labels of an attribute must ascend");
      }
    }
    require(data_.n_weights() < (std::size_t{1} << 32), "more weights than the index type holds");
    const std::size_t tokens = data_.terminals.size();
    take_attributes(data_.first, first_ptr, first_ids, tokens);
    take_attributes(data_.last, last_ptr, last_ids, tokens);
    take_attributes(data_.length, length_ptr, length_ids, longest + 1);
    if (span_ptr) {
      span_offsets_.push_back(0);
      for (std::size_t i = 0; i < data_.size(); ++i) span_offsets_.push_back(span_offsets_.back() + std::int64_t(data_.n_tokens(i) * (data_.n_tokens(i) + 1) / 2));
      data_.span_offsets = span_offsets_;
      take_attributes(data_.span, span_ptr, span_ids, std::size_t(span_offsets_.back()));
    }
    data_.loss = loss == "f1" ? TreeLoss::kF1 : loss == "brackets" ? TreeLoss::kBrackets : TreeLoss::kZeroOne;
    require(loss == "f1" || loss == "brackets" || loss == "zero_one", "loss must be \"f1\", \"brackets\" or \"zero_one\"");
    data_.count_root = count_root, data_.count_lexical = count_preterminals;
    if (code_ptr) {
      require(codes.has_value(), "code_ptr and codes go together");
      keep(*code_ptr), keep(*codes);
      check_codes(view(*code_ptr), view(*codes));
      data_.code_ptr = view(*code_ptr), data_.codes = view(*codes);
    }
    take_example_weights(example_weight, data_.size(), "sentence", data_.example_weight, [this](const auto& array) { this->keep(array); });
  }

  template <class T>
  nb::object parse(Array<T> weights, int threads) {
    const GrammarStructure<T>& structure = checked_structure(weights);
    const std::size_t n = data_.size(), shares = n_shares(threads, n);
    std::vector<std::vector<Code>> found(shares);
    std::vector<std::int64_t> ptr(n + 1, 0);
    for_predictions(threads, n, [&](std::size_t share, auto ask) {
      auto ws = std::make_unique<typename GrammarStructure<T>::Scratch>();
      ws->chart.halted = ask;
      return [&, share, ws = std::move(ws)](std::size_t i) {
        structure.parse(*ws, i, weights.data());
        found[share].insert(found[share].end(), ws->output.begin(), ws->output.end());
        ptr[i + 1] = std::int64_t(ws->output.size());
      };
    });
    for (std::size_t i = 0; i < n; ++i) ptr[i + 1] += ptr[i];
    for (std::size_t share = 1; share < shares; ++share) found[0].insert(found[0].end(), found[share].begin(), found[share].end());
    return nb::make_tuple(to_numpy(std::move(ptr)), to_numpy(std::move(found[0])));
  }

  template <class T>
  nb::object score(Array<T> weights, Places code_ptr, Numbers codes, int threads) {
    const GrammarStructure<T>& structure = checked_structure(weights);
    check_codes(view(code_ptr), view(codes));
    std::vector<double> out(data_.size());
    {
      nb::gil_scoped_release release;
      const std::size_t n = data_.size(), shares = n_shares(threads, n);
      run_shares(shares, [&](std::size_t share) {
        for (std::size_t i = n * share / shares; i < n * (share + 1) / shares; ++i) {
          out[i] = structure.score(i, view(codes).subspan(std::size_t(code_ptr.data()[i]), std::size_t(code_ptr.data()[i + 1] - code_ptr.data()[i])), weights.data());
        }
      });
    }
    return to_numpy(std::move(out));
  }

  // The oracle of one sentence: the code, a bound on the value (0: it is exact), CKY runs, triples of the search.
  template <class T>
  nb::object oracle(Array<T> weights, std::size_t i, double scale) {
    const GrammarStructure<T>& structure = checked_structure(weights);
    structure.require_truth();
    require(i < data_.size(), "there is no such sentence");
    const auto ws = structure.workspace();
    auto& scratch = static_cast<typename GrammarStructure<T>::Scratch&>(*ws);
    structure.best(scratch, i, weights.data(), scale);
    return nb::make_tuple(to_numpy(std::vector<Code>(scratch.output)), scratch.bound, scratch.rounds, scratch.kept);
  }

  // The value of the best tree of one sentence, by the bare loop.
  template <class T>
  double bare(Array<T> weights, std::size_t i) {
    checked_structure(weights);
    require(i < data_.size(), "there is no such sentence");
    NodeScores<T> scores;
    scores.start(data_, i, weights.data(), {});
    nb::gil_scoped_release release;
    return bare_cky(scores);
  }

 private:
  template <class T>
  const GrammarStructure<T>& checked_structure(const Array<T>& weights) {
    const GrammarStructure<T>& structure = *this->template built<T>();
    require(weights.shape(0) == structure.n_weights(), "expected " + std::to_string(structure.n_weights()) + " weights, got " + std::to_string(weights.shape(0)));
    return structure;
  }
  void check_codes(std::span<const std::int64_t> ptr, CodeView codes) const {
    require(ptr.size() == data_.size() + 1, "expected one tree for each sentence");
    check_rows(ptr, data_.size() + 1, codes.size());
    std::vector<std::array<std::uint32_t, 3>> stack;
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const auto own = data_.terminals.subspan(std::size_t(data_.offsets[i]), data_.n_tokens(i));
      if (!valid_tree(*data_.rules, own, codes.subspan(std::size_t(ptr[i]), std::size_t(ptr[i + 1] - ptr[i])), stack)) {
        throw BadInput("the tree of sentence " + std::to_string(i) + " is no tree of the grammar over its terminals");
      }
    }
  }
  static void check_rows(std::span<const std::int64_t> ptr, std::size_t size, std::size_t end) {
    require(ptr.size() == size && size >= 1 && ptr.front() == 0 && ptr.back() == std::int64_t(end), "a list of places has the wrong size or end");
    for (std::size_t k = 1; k < ptr.size(); ++k) require(ptr[k - 1] <= ptr[k], "places must not decrease");
  }
  void take_attributes(AttributeRows& rows, const OptPlaces& ptr, const OptNumbers& ids, std::size_t size) {
    if (!ptr) return;
    require(ids.has_value(), "attributes have places and numbers");
    keep(*ptr), keep(*ids);
    rows = {view(*ptr), view(*ids)};
    check_rows(rows.ptr, size + 1, rows.ids.size());
    for (const std::uint32_t a : rows.ids) require(std::size_t(a) + 1 < data_.entry_ptr.size(), "an attribute is out of range");
  }

  std::vector<std::int64_t> span_offsets_;
};

}  // namespace

void bind_grammar(nb::module_& m) {
  nb::class_<Rules>(m, "GrammarRules", "The rules of a grammar, binarised and indexed.")
      .def(nb::init<std::size_t, std::size_t, std::size_t, Numbers, Numbers, Numbers, Numbers, Numbers, Numbers, Numbers, Numbers, Numbers,
                    Numbers, Signed, Signed, Numbers, Numbers, Numbers>(),
           "n_labels"_a, "n_inner"_a, "n_terminals"_a, "left"_a, "right"_a, "lhs"_a, "inner_left"_a, "inner_right"_a, "inner_lhs"_a,
           "unary_lhs"_a, "unary_child"_a, "lexical_lhs"_a, "lexical_terminal"_a, "label_class"_a, "root"_a, "chain_label"_a,
           "chain_parent"_a, "chain_rule"_a);
  using P = GrammarProblem;
  nb::class_<P, Problem>(m, "GrammarProblem", "Sentences, with trees or without, under the rules of a grammar.")
      .def(nb::init<nb::object, Places, Signed, Places, Numbers, P::OptPlaces, P::OptNumbers, P::OptPlaces, P::OptNumbers, P::OptPlaces,
                    P::OptNumbers, P::OptPlaces, P::OptNumbers, P::OptPlaces, P::OptNumbers, std::optional<Array<double>>,
                    const std::string&, bool, bool, std::size_t>(),
           "rules"_a, "offsets"_a, "terminals"_a, "entry_ptr"_a, "entry_label"_a, "first_ptr"_a = nb::none(), "first_ids"_a = nb::none(),
           "last_ptr"_a = nb::none(), "last_ids"_a = nb::none(), "length_ptr"_a = nb::none(), "length_ids"_a = nb::none(),
           "span_ptr"_a = nb::none(), "span_ids"_a = nb::none(), "code_ptr"_a = nb::none(), "codes"_a = nb::none(),
           "example_weight"_a = nb::none(), "loss"_a = "f1", "count_root"_a = true, "count_preterminals"_a = true,
           "search_limit"_a = 20'000'000)
      .def("parse", &P::parse<float>, "weights"_a, "threads"_a = 1, "The best trees: places and codes; an empty code where there is no parse.")
      .def("parse", &P::parse<double>, "weights"_a, "threads"_a = 1)
      .def("score", &P::score<float>, "weights"_a, "code_ptr"_a, "codes"_a, "threads"_a = 1, "Scores of given trees.")
      .def("score", &P::score<double>, "weights"_a, "code_ptr"_a, "codes"_a, "threads"_a = 1)
      .def("oracle", &P::oracle<float>, "weights"_a, "sentence"_a, "scale"_a = 1.0,
           "The tree that maximises scale times the loss plus the score: its code, a bound where the search gave up (else 0), "
           "the runs of CKY and the triples of the search.")
      .def("oracle", &P::oracle<double>, "weights"_a, "sentence"_a, "scale"_a = 1.0)
      .def("bare", &P::bare<float>, "weights"_a, "sentence"_a, "Score of the best tree by the bare loop over spans, splits and rules.")
      .def("bare", &P::bare<double>, "weights"_a, "sentence"_a);
}

}  // namespace mm
