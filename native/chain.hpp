// Label sequences: emissions, first-order transitions, start and end weights.
//
//   f(x, y) = Σ_t  x_t ⊗ e(y_t)  +  Σ_t e(y_{t-1}) ⊗ e(y_t)  +  start(y_1)  +  end(y_T)
//             [ +  Σ_t z_t ⊗ e(y_{t-1}) ⊗ e(y_t),  pair features, where there are any ]
//   l(y)    = Σ_t  weight_t * cost[truth_t][y_t]          (Hamming: cost = [truth != label])
//
// A plane is the list of the tokens at which an output differs from the truth, each as
// (token << label_bits) | label, ascending. Everything else follows from it and the data.
#pragma once

#include <atomic>
#include <bit>
#include <limits>

#include "chain_cells.hpp"
#include "chain_losses.hpp"
#include "emissions.hpp"
#include "sparse_scratch.hpp"
#include "token_gram.hpp"

namespace mm {

// The weights of a chain's edges; masked decoding points these at a copy with -inf in it.
template <class T>
struct Edges {
  const T* A;      // [L][Lp] transitions, A[p][l] for label p followed by label l
  const T* start;  // [Lp]
  const T* end;    // [Lp]
};

template <class T>
class Chain final : public Structure<T> {
 public:
  using Base = Structure<T>;
  using Fresh = typename Base::Fresh;

  // A cell of the part being visited.
  struct Cell {
    double gain;  // F of differing from the truth here and nowhere else
    double best;  // F of the best output that ends with this cell (recombine)
    std::uint32_t token, label, truth;
    std::int32_t from;  // the cell chosen before this one, -1: none
  };

  struct Scratch : Base::Workspace {
    AlignedArray<T> S, D;          // [T][Lp] scores, forward scores
    AlignedArray<T> lower, upper;  // [Lp] bounds on the transitions of each label
    AlignedArray<T> steps;         // [T][L][Lp] transitions into each token, with pair features
    AlignedArray<T> two;           // [4][Lp] two tokens, for one step of the forward pass
    std::vector<std::uint32_t> y;  // labels of the best path
    LossTable<T> table;            // best labels by their errors
    std::vector<std::size_t> errors;  // of the grades found last
    bool bounds_valid = false;
    std::vector<double> edge;      // [(L + 2) * Lp] scratch of gram, always left zero
    std::vector<Cell> cell;        // the cells of the index, with their gains
    std::vector<double> amount;    // per cell, accumulate
    std::vector<Code> cells;       // index
    TokenGramBuilder gram_builder;
    SparseScratch sparse;          // gram of long planes
    std::vector<double> all;       // and of those of very long ones, always left zero
    std::vector<std::uint32_t> first, second;  // tokens of two planes, as the kernel knows them
    std::vector<double> block;     // and their inner products

    void reserve(std::size_t tokens, std::size_t Lp) {
      if (S.size() >= tokens * Lp) return;
      const std::size_t room = tokens + tokens / 4;
      S.reset(room * Lp);
      D.reset(room * Lp);
      y.resize(room);
    }
  };

  explicit Chain(const ChainData& data)
      : data_(data), L_(data.n_labels), Lp_(padded_labels<T>(data.n_labels)), emissions_(data_, Lp_),
        transitions_(data.row_transition() * Lp_), pairs_(!data.pair_indptr.empty()), grams_(data.size()) {
    label_bits_ = static_cast<int>(std::bit_width(L_ - 1));
    features_per_token_ = double(data.indices.size()) / double(std::max<std::int64_t>(data.offsets.back(), 1));
    const std::uint64_t longest = std::uint64_t{1} << (32 - label_bits_);
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (data.length(i) > longest) {
        throw BadInput("sequence " + std::to_string(i) + " has " + std::to_string(data.length(i)) +
                       " tokens; with " + std::to_string(L_) + " labels at most " +
                       std::to_string(longest) + " fit");
      }
    }
  }

  ~Chain() override {
    for (const auto& gram : grams_) delete[] gram.load();
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  const ChainData& data() const { return data_; }
  std::size_t n_labels() const { return L_; }
  std::size_t row_size() const override { return Lp_; }
  void rows_read(std::size_t i, std::vector<std::size_t>& rows) const override {
    rows.clear();
    const std::size_t first = std::size_t(data_.offsets[i]), end = std::size_t(data_.offsets[i + 1]);
    if (!data_.indptr.empty()) {
      const std::size_t from = std::size_t(data_.indptr[first]), to = std::size_t(data_.indptr[end]);
      rows.assign(data_.indices.begin() + std::ptrdiff_t(from), data_.indices.begin() + std::ptrdiff_t(to));
    }
    for (std::size_t row = data_.n_sparse; row < data_.row_pair(); ++row) rows.push_back(row);
    if (!pairs_) return;
    for (std::size_t k = std::size_t(data_.pair_indptr[first]); k < std::size_t(data_.pair_indptr[end]); ++k) {
      for (std::size_t l = 0; l < L_; ++l) rows.push_back(data_.row_pair() + data_.pair_indices[k] * L_ + l);
    }
  }
  std::size_t n_examples() const override { return data_.size(); }
  std::size_t n_weights() const override { return data_.n_rows() * Lp_; }

  double example_weight(std::size_t i) const override {
    return data_.example_weight != nullptr ? data_.example_weight[i] : 1.0;
  }

  void require_truth() const override {
    if (data_.labels == nullptr) throw BadInput("training needs the labels of the sequences");
  }

  std::unique_ptr<typename Base::Workspace> workspace() const override {
    auto ws = std::make_unique<Scratch>();
    prepare(*ws);
    return ws;
  }
  void prepare(Scratch& ws) const {
    ws.lower.reset(Lp_);
    ws.upper.reset(Lp_);
  }

  void weights_changed(typename Base::Workspace& base) const override {
    static_cast<Scratch&>(base).bounds_valid = false;
  }

  std::size_t cache_bytes() const override {
    std::size_t bytes = grams_.capacity() * sizeof(grams_[0]);
    for (std::size_t i = 0; i < grams_.size(); ++i) {
      if (grams_[i].load(std::memory_order_acquire) != nullptr) bytes += triangle(data_.length(i)) * sizeof(float);
    }
    return bytes;
  }

  // ---- the oracle ------------------------------------------------------------------------------

  Found oracle(typename Base::Workspace& base, std::size_t i, const T* w) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    load_all(ws, i, w);
    if (data_.length(i) == 1) return oracle_of_one(ws, i, edges(w));
    load_steps(ws, i, edges(w), w + data_.row_pair() * Lp_);
    return oracle_loaded(ws, i, edges(w));
  }

  // One token has no transitions: this is a choice among classes, without bounds or Viterbi.
  Found oracle_of_one(Scratch& ws, std::size_t i, const Edges<T>& edge) const {
    augment(ws, i);
    const T* S = ws.S.data();
    const auto score = [&](std::size_t l) { return (S[l] + edge.start[l]) + edge.end[l]; };
    const std::size_t truth = std::size_t(data_.labels[data_.offsets[i]]);
    std::size_t best = 0;
    T top = score(0);
    for (std::size_t l = 1; l < L_; ++l) {
      const T x = score(l);
      if (x > top) top = x, best = l;
    }
    ws.code.clear();
    Found found;
    found.truth = best == truth;
    if (found.truth) return found;
    ws.code.push_back(static_cast<Code>(best));
    const auto gained = [&](const T* row) { return double(row[best]) - double(row[truth]); };
    found.F = gained(S) + gained(edge.start) + gained(edge.end);
    return found;
  }

  // The oracle, with the scores of all labels in ws.S.
  Found oracle_loaded(Scratch& ws, std::size_t i, const Edges<T>& edge) const {
    augment(ws, i);
    const std::int32_t* truth = data_.labels + data_.offsets[i];
    decode(ws, i, edge, truth);
    return code_of_path(ws, i, edge, truth);
  }

  // The code of the labels in ws.y, and its F by the scores in ws.S.
  Found code_of_path(Scratch& ws, std::size_t i, const Edges<T>& edge, const std::int32_t* truth) const {
    ws.code.clear();
    for (std::size_t t = 0; t < data_.length(i); ++t) {
      if (ws.y[t] == std::uint32_t(truth[t])) continue;
      ws.code.push_back(static_cast<Code>(t << label_bits_) | ws.y[t]);
    }
    Found found;
    found.truth = ws.code.empty();
    if (found.truth) return found;
    // F in double precision, along the few tokens and edges that differ.
    for (const Code c : ws.code) {
      const T* row = ws.S.data() + (c >> label_bits_) * Lp_;
      found.F += double(row[label_of(c)]) - double(row[truth[c >> label_bits_]]);
    }
    // Transitions, start, end and pair features stand together, and so edge.A has them all.
    const std::size_t first = data_.row_transition() * Lp_;
    for_edges(i, ws.code, [&](std::size_t j, double sign) { found.F -= sign * double(edge.A[j - first]); });
    return found;
  }

  // ---- the best labels at each number of errors ----

  bool offers_grades(bool any) const override { return any || (data_.cost == nullptr && !data_.weighs_tokens()); }

  bool grades(typename Base::Workspace& base, std::size_t i, const T* w, bool any, std::vector<typename Base::Grade>& out) const override {
    if (!offers_grades(any)) return false;
    Scratch& ws = static_cast<Scratch&>(base);
    const std::size_t n = data_.length(i);
    const double table = double(n) * (any ? 2.0 : double(n) + 1.0) * double(Lp_) * sizeof(T);
    if (table > kMostGrades) {
      throw BadInput("sequence " + std::to_string(i) + " has " + std::to_string(n) +
                     " tokens: slack rescaling needs a table of tokens x tokens x labels, which would take " +
                     std::to_string(std::size_t(table / 1e9)) +
                     " GB; expected at most 8 GB. Cut it into shorter sequences, or rescale margins");
    }
    load_all(ws, i, w);
    const Edges<T> edge = edges(w);
    load_steps(ws, i, edge, w + data_.row_pair() * Lp_);
    ws.table.fill(ws.S.data(), n, L_, Lp_, data_.labels + data_.offsets[i], [&](std::size_t t) { return into(ws, edge, t); },
                  edge.start, edge.end, any ? std::min<std::size_t>(n, 1) : n);
    out.clear();
    ws.errors.clear();
    for (std::size_t c = 1; c <= (any ? std::min<std::size_t>(n, 1) : n); ++c) {
      if (!ws.table.reachable(c)) continue;
      out.push_back({double(c), double(ws.table.score(0)) - double(ws.table.score(c))});
      ws.errors.push_back(c);
    }
    return true;
  }

  double take_grade(typename Base::Workspace& base, std::size_t i, const T* w, std::size_t k) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const Edges<T> edge = edges(w);
    const std::int32_t* truth = data_.labels + data_.offsets[i];
    ws.table.trace(ws.errors[k], truth, [&](std::size_t t) { return into(ws, edge, t); }, ws.y.data());
    return -code_of_path(ws, i, edge, truth).F;
  }

  double oracle_work(std::size_t i) const override {
    const double n = double(data_.length(i)), vectors = double(Lp_ * sizeof(T)) / 32.0;
    const std::size_t first = std::size_t(data_.offsets[i]), last = std::size_t(data_.offsets[i + 1]);
    const double entries = data_.indptr.empty() ? 0.0 : double(data_.indptr[last] - data_.indptr[first]);
    return emissions_.load_work(n, entries) + vectors * n * double(std::min<std::size_t>(L_, 24)) + 40.0 * n;
  }
  // Scores of every label at every token of example i, without loss: fills ws.S.
  void load_all(Scratch& ws, std::size_t i, const T* w) const {
    ws.reserve(data_.length(i), Lp_);
    emissions_.load(std::size_t(data_.offsets[i]), data_.length(i), w, ws.S.data());
  }
  const Emissions<T>& emissions() const { return emissions_; }

  Edges<T> edges(const T* w) const { return edges_of(w + data_.row_transition() * Lp_); }
  // From the rows of transitions, start and end, which stand together.
  Edges<T> edges_of(const T* rows) const { return {rows, rows + L_ * Lp_, rows + (L_ + 1) * Lp_}; }

  bool has_pairs() const { return pairs_; }

  // With pair features, the transitions into each token: fills ws.steps.
  void load_steps(Scratch& ws, std::size_t i, const Edges<T>& edge, const T* pair_rows) const {
    load_step_rows(ws, std::size_t(data_.offsets[i]), 1, data_.length(i), edge, pair_rows);
  }
  // The same of rows [from, to) of ws.steps, where row r is of the token `token` + r.
  void load_step_rows(Scratch& ws, std::size_t token, std::size_t from, std::size_t to, const Edges<T>& edge,
                      const T* pair_rows) const {
    if (!has_pairs()) return;
    const std::size_t size = L_ * Lp_;
    if (ws.steps.size() < to * size) ws.steps.reset(to * size);
    for (std::size_t t = from; t < to; ++t) {
      T* M = ws.steps.data() + t * size;
      std::copy(edge.A, edge.A + size, M);
      for_pairs(token + t, [&](std::size_t g) {
        const T* rows = pair_rows + g * size;
        for (std::size_t k = 0; k < size; ++k) M[k] += rows[k];
      });
    }
  }

  // The transitions into token t: those of load_steps, or the same for all tokens.
  const T* into(const Scratch& ws, const Edges<T>& edge, std::size_t t) const {
    return has_pairs() ? ws.steps.data() + t * L_ * Lp_ : edge.A;
  }

  // Forward pass over ws.S: fills ws.D.
  void forward(Scratch& ws, std::size_t i, const Edges<T>& edge) const {
    forward_rows(ws, edge, edge.start, 0, data_.length(i));
  }
  // The same of the rows [from, to), where `first` [Lp] is added to the scores of the first one.
  void forward_rows(Scratch& ws, const Edges<T>& edge, const T* first, std::size_t from, std::size_t to) const {
    const auto& vector = vector_code<T>();
    if (has_pairs()) {
      if (ws.two.size() == 0) ws.two.reset(4 * Lp_);
      T* S = ws.two.data();  // no scores, and those of the token at hand
      T* D = S + 2 * Lp_;
      T* out = ws.D.data();
      for (std::size_t l = 0; l < Lp_; ++l) out[from * Lp_ + l] = ws.S[from * Lp_ + l] + first[l];
      for (std::size_t t = from + 1; t < to; ++t) {
        std::copy_n(ws.S.data() + t * Lp_, Lp_, S + Lp_);
        const T* M = into(ws, edge, t);
        vector.transition_bounds(M, L_, Lp_, ws.lower.data(), ws.upper.data());
        vector.forward(S, out + (t - 1) * Lp_, M, ws.lower.data(), ws.upper.data(), L_, Lp_, 2, D);
        std::copy_n(D + Lp_, Lp_, out + t * Lp_);
      }
      return;
    }
    if (!ws.bounds_valid) {
      vector.transition_bounds(edge.A, L_, Lp_, ws.lower.data(), ws.upper.data());
      ws.bounds_valid = true;
    }
    vector.forward(ws.S.data() + from * Lp_, first, edge.A, ws.lower.data(), ws.upper.data(), L_, Lp_, to - from,
                   ws.D.data() + from * Lp_);
  }

  // The best last label, by the forward scores of the last token.
  std::size_t best_end(const T* last, const Edges<T>& edge) const {
    std::size_t best = 0;
    for (std::size_t l = 1; l < L_; ++l) {
      if (last[l] + edge.end[l] > last[best] + edge.end[best]) best = l;
    }
    return best;
  }

  // The best label before a label, by the forward scores there and a column of transitions.
  std::size_t best_before(const T* prev, const T* column) const {
    std::size_t p = 0;
    T top = prev[0] + column[0];
    for (std::size_t q = 1; q < L_; ++q) {
      const T x = prev[q] + column[q * Lp_];
      if (x > top) top = x, p = q;
    }
    return p;
  }

  // Best path under ws.S and the edges: fills ws.y; returns its score. `guess`, if given, is a path
  // that is likely to be the best; among equals it wins.
  double decode(Scratch& ws, std::size_t i, const Edges<T>& edge, const std::int32_t* guess) const {
    forward(ws, i, edge);
    const std::size_t n = data_.length(i);
    const T* D = ws.D.data();
    const T* last = D + (n - 1) * Lp_;
    std::size_t best = best_end(last, edge);
    const double score = double(last[best] + edge.end[best]);
    ws.y[n - 1] = static_cast<std::uint32_t>(best);
    // Back-pointers are found again along the one best path only. A predecessor that gives back
    // the very number which the maximum gave is a maximiser; in training the truth nearly always
    // does, and that costs one comparison which the processor can foresee.
    for (std::size_t t = n - 1; t > 0; --t) {
      const T* prev = D + (t - 1) * Lp_;
      const T* column = into(ws, edge, t) + best;
      std::size_t p = guess != nullptr ? std::size_t(guess[t - 1]) : 0;
      if (guess == nullptr ||
          (prev[p] + column[p * Lp_]) + ws.S[t * Lp_ + best] != D[t * Lp_ + best]) {
        p = best_before(prev, column);
      }
      best = p;
      ws.y[t - 1] = static_cast<std::uint32_t>(p);
    }
    return score;
  }

  // ---- planes ----------------------------------------------------------------------------------

  double loss(std::size_t i, CodeView plane) const override {
    const std::size_t first = std::size_t(data_.offsets[i]);
    double sum = 0.0;
    for (const Code c : plane) {
      const std::size_t token = first + (c >> label_bits_);
      sum += data_.token_loss(token, std::size_t(data_.labels[token]), label_of(c));
    }
    return sum;
  }

  // In edges: edge t joins token t - 1 to token t.
  Extent extent(std::size_t, CodeView plane) const override {
    return {plane.front() >> label_bits_, (plane.back() >> label_bits_) + 1};
  }

  std::size_t first_piece(CodeView code) const override {
    std::size_t k = 1;
    while (k < code.size() && (code[k] >> label_bits_) == (code[k - 1] >> label_bits_) + 1) ++k;
    return k;
  }

  bool valid(std::size_t i, CodeView code) const override {
    const std::int32_t* truth = data_.labels + data_.offsets[i];
    for (std::size_t k = 0; k < code.size(); ++k) {
      const std::size_t t = code[k] >> label_bits_, l = label_of(code[k]);
      if (t >= data_.length(i) || l >= L_ || l == std::size_t(truth[t])) return false;
      if (k > 0 && (code[k - 1] >> label_bits_) >= t) return false;
    }
    return !code.empty();
  }

  // Two ways to the same numbers. Short planes: pairs of differing tokens through their inner
  // products, which are cached per sequence. Long planes: the features themselves, whose number
  // grows with the length and not with its square.
  void gram(typename Base::Workspace& base, std::size_t i, CodeView a,
            std::span<const CodeView> planes, double* row) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    if (data_.length(i) == 1) return gram_of_one(ws, i, a, planes, row);
    std::size_t kept = 0;
    for (const CodeView plane : planes) kept += plane.size();
    if (data_.kernel != nullptr) {
      data_.length(i) <= kLongestGram ? gram_by_pairs(ws, i, a, planes, row) : gram_by_kernel(ws, i, a, planes, row);
    } else if (!has_pairs() && data_.length(i) <= kLongestGram && pair_work(a.size(), kept) <= feature_work(a.size(), kept)) {
      gram_by_pairs(ws, i, a, planes, row);
    } else {
      gram_by_features(ws, i, a, planes, row);
    }
  }

  double gram_work(CodeView added, CodeView kept) const override {
    if (data_.kernel != nullptr) return pair_work(added.size(), kept.size());
    return std::min(pair_work(added.size(), kept.size()), feature_work(added.size(), kept.size()));
  }

  // ---- cached visits: everything through the cells of the index --------------------------------

  void index(typename Base::Workspace& base, std::size_t i, CodeView plane,
             std::vector<Code>& index) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    read_cells(index, data_.value_words(), label_bits_, ws.cells);
    const std::size_t old = ws.cells.size();
    ws.cells.insert(ws.cells.end(), plane.begin(), plane.end());
    std::inplace_merge(ws.cells.begin(), ws.cells.begin() + std::ptrdiff_t(old), ws.cells.end());
    ws.cells.erase(std::unique(ws.cells.begin(), ws.cells.end()), ws.cells.end());
    if (ws.cells.size() != old) write_cells(data_, label_bits_, i, ws.cells, index);
  }

  void reindex(typename Base::Workspace& base, std::size_t i, std::span<const CodeView> planes,
               std::vector<Code>& index) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    ws.cells.clear();
    for (const CodeView plane : planes) ws.cells.insert(ws.cells.end(), plane.begin(), plane.end());
    std::sort(ws.cells.begin(), ws.cells.end());
    ws.cells.erase(std::unique(ws.cells.begin(), ws.cells.end()), ws.cells.end());
    if (ws.cells.size() != CellReader::n_cells(index)) write_cells(data_, label_bits_, i, ws.cells, index);
  }

  // The best output made of cells and the truth elsewhere, by Viterbi over the cells. F of an
  // output is the sum of its cells' gains and a correction for each pair of neighbouring cells.
  Found recombine(typename Base::Workspace& base, std::size_t i, const T* w,
                  CodeView index) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    load_cells(ws, i, w, index);
    std::vector<Cell>& cell = ws.cell;
    double truth = 0.0, any = 0.0;                  // best with the truth at this token; best of all
    std::int32_t truth_last = -1, any_last = -1;    // and the last cell of each
    std::size_t previous = 0;                       // first cell of the token before
    for (std::size_t begin = 0, end = 0; begin < cell.size(); previous = begin, begin = end) {
      const bool adjacent = begin > 0 && cell[previous].token + 1 == cell[begin].token;
      for (end = begin; end < cell.size() && cell[end].token == cell[begin].token; ++end) {
        double best = adjacent ? truth : any;
        std::int32_t from = adjacent ? truth_last : any_last;
        for (std::size_t p = previous; adjacent && p < begin; ++p) {
          const double x = cell[p].best + pair(i, w, cell[p], cell[end]);
          if (x > best) best = x, from = static_cast<std::int32_t>(p);
        }
        cell[end].best = best + cell[end].gain;
        cell[end].from = from;
      }
      truth = any;
      truth_last = any_last;
      for (std::size_t k = begin; k < end; ++k) {
        if (cell[k].best > any) any = cell[k].best, any_last = static_cast<std::int32_t>(k);
      }
    }
    Found found;
    found.F = any;
    ws.code.clear();
    for (std::int32_t k = any_last; k >= 0; k = cell[std::size_t(k)].from) {
      ws.code.push_back((cell[std::size_t(k)].token << label_bits_) | cell[std::size_t(k)].label);
    }
    std::reverse(ws.code.begin(), ws.code.end());
    found.truth = ws.code.empty();
    return found;
  }

  void margins(typename Base::Workspace& base, std::size_t i, const T* w, CodeView index,
               std::span<const CodeView> planes, std::span<const double> /*losses*/, Fresh fresh,
               double* F) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    if (fresh == Fresh::kNo) load_cells(ws, i, w, index);
    if (fresh == Fresh::kOracle) read_table(ws, i, w, index);
    for (std::size_t k = 0; k < planes.size(); ++k) {
      double sum = 0.0;
      const Cell* before = nullptr;
      for_cells(ws, planes[k], [&](std::size_t at) {
        const Cell& cell = ws.cell[at];
        sum += cell.gain;
        if (before != nullptr && before->token + 1 == cell.token) sum += pair(i, w, *before, cell);
        before = &cell;
      });
      F[k] = sum;
    }
  }

  void accumulate(typename Base::Workspace& base, std::size_t i, CodeView index,
                  std::span<const CodeView> planes, const double* coef,
                  Weights<T>& weights) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const std::size_t first = std::size_t(data_.offsets[i]);
    const auto add_edge = [&](std::size_t token, std::size_t p, std::size_t l, T a) {
      for_edge(token, p, l, [&](std::size_t j) { weights.add(j, a); });
    };
    name_cells(ws, index);
    ws.amount.assign(ws.cell.size(), 0.0);
    for (std::size_t k = 0; k < planes.size(); ++k) {
      if (coef[k] == 0.0) continue;
      const T a = static_cast<T>(coef[k]);
      const Cell* before = nullptr;
      for_cells(ws, planes[k], [&](std::size_t at) {
        const Cell& cell = ws.cell[at];
        ws.amount[at] += coef[k];
        if (before != nullptr && before->token + 1 == cell.token) {
          const std::size_t token = first + cell.token;
          add_edge(token, before->label, cell.label, -a);
          add_edge(token, before->label, cell.truth, a);
          add_edge(token, before->truth, cell.label, a);
          add_edge(token, before->truth, cell.truth, -a);
        }
        before = &cell;
      });
    }
    ws.bounds_valid = false;
    const std::size_t start = data_.row_start() * Lp_, end = data_.row_end() * Lp_;
    CellReader reader(index, data_.value_words());
    std::size_t at = 0;
    for (CellToken t; reader.next(t);) {
      std::uint32_t label[Emissions<T>::kTogether];
      T amount[Emissions<T>::kTogether];
      std::size_t n = 0;
      double truth = 0.0;
      for (const Code l : t.labels) {
        const double a = ws.amount[at++];
        if (a == 0.0) continue;
        truth += a;
        if (n == Emissions<T>::kTogether) emissions_.add(first + t.token, t, label, amount, std::exchange(n, 0), weights);
        label[n] = l;
        amount[n++] = static_cast<T>(-a);
      }
      if (n == 0) continue;
      if (n == Emissions<T>::kTogether) emissions_.add(first + t.token, t, label, amount, std::exchange(n, 0), weights);
      label[n] = t.truth;
      amount[n++] = static_cast<T>(truth);
      emissions_.add(first + t.token, t, label, amount, n, weights);
      // Edges to the true neighbours; cells that are neighbours were put right above.
      at -= t.labels.size();
      const auto add_label = [&](std::size_t l, T a) {
        const std::size_t token = first + t.token;
        if (t.before == kNone) weights.add(start + l, a); else add_edge(token, t.before, l, a);
        if (t.after == kNone) weights.add(end + l, a); else add_edge(token + 1, l, t.after, a);
      };
      add_label(t.truth, static_cast<T>(truth));
      for (const Code l : t.labels) {
        const T a = static_cast<T>(ws.amount[at++]);
        if (a != T(0)) add_label(l, -a);
      }
    }
  }

  void prefetch_part(std::size_t, CodeView index, const T* w) const override {
    CellReader reader(index, data_.value_words());
    for (CellToken t; reader.next(t);) {
      for (const std::uint32_t f : t.features) {
        const T* row = w + std::size_t(f) * Lp_;
        mm::prefetch(row + t.truth);
        mm::prefetch(row + t.labels[0]);
      }
    }
  }

 private:
  static std::size_t triangle(std::size_t n) { return n * (n + 1) / 2; }
  std::uint32_t label_of(Code c) const { return c & ((Code{1} << label_bits_) - 1); }

  // About how many cycles the two ways of gram() take.
  static double pair_work(std::size_t added, std::size_t kept) {
    return 3.0 * double(added) * double(added + kept);
  }
  double feature_work(std::size_t added, std::size_t kept) const {
    return 10.0 * (features_per_token_ + double(data_.n_dense)) * double(2 * added + kept);
  }

  // Planes of one token share the truth, and its label if that is the same too: each time with the
  // token's features, a start and an end.
  void gram_of_one(Scratch& ws, std::size_t i, CodeView a, std::span<const CodeView> planes,
                   double* row) const {
    const double own = double(*token_gram(ws, i)) + 2.0;
    for (std::size_t k = 0; k < planes.size(); ++k) {
      row[k] = planes[k].empty() || a.empty() ? 0.0 : planes[k][0] == a[0] ? 2.0 * own : own;
    }
  }

  void gram_by_pairs(Scratch& ws, std::size_t i, CodeView a, std::span<const CodeView> planes,
                     double* row) const {
    const std::int32_t* truth = data_.labels + data_.offsets[i];
    const float* G = token_gram(ws, i);
    load_edges(ws, i, a);
    for (std::size_t k = 0; k < planes.size(); ++k) {
      double sum = 0.0;
      for (const Code cb : planes[k]) {
        const std::size_t s = cb >> label_bits_;
        const std::uint32_t lb = label_of(cb), ys = std::uint32_t(truth[s]);
        for (const Code ca : a) {
          const std::size_t t = ca >> label_bits_;
          const int shared = shared_labels(std::uint32_t(truth[t]), label_of(ca), ys, lb);
          if (shared != 0) sum += shared * double(G[triangle(std::max(s, t)) + std::min(s, t)]);
        }
      }
      row[k] = sum + shared_edges(ws, i, planes[k]);
    }
    clear_edges(ws, i, a);
  }

  // The same for sequences that keep no inner products: those of each pair of planes anew.
  void gram_by_kernel(Scratch& ws, std::size_t i, CodeView a, std::span<const CodeView> planes,
                      double* row) const {
    const std::int32_t* truth = data_.labels + data_.offsets[i];
    const auto name = [&](CodeView plane, std::vector<std::uint32_t>& tokens) {
      tokens.clear();
      for (const Code c : plane) tokens.push_back(data_.indices[std::size_t(data_.offsets[i]) + (c >> label_bits_)]);
    };
    name(a, ws.first);
    load_edges(ws, i, a);
    for (std::size_t k = 0; k < planes.size(); ++k) {
      name(planes[k], ws.second);
      ws.block.resize(a.size() * planes[k].size());
      data_.kernel->block(ws.second, ws.first, ws.block.data());
      double sum = 0.0;
      const double* product = ws.block.data();
      for (const Code cb : planes[k]) {
        const std::uint32_t lb = label_of(cb), ys = std::uint32_t(truth[cb >> label_bits_]);
        for (const Code ca : a) sum += shared_labels(std::uint32_t(truth[ca >> label_bits_]), label_of(ca), ys, lb) * *product++;
      }
      row[k] = sum + shared_edges(ws, i, planes[k]);
    }
    clear_edges(ws, i, a);
  }

  // How often two differing tokens meet in a label: y the truths, l the labels of the planes.
  static int shared_labels(std::uint32_t ya, std::uint32_t la, std::uint32_t yb, std::uint32_t lb) {
    return (ya == yb) - (ya == lb) - (la == yb) + (la == lb);
  }

  // Edges of a plane into ws.edge, its inner product with those of others, and out again.
  void load_edges(Scratch& ws, std::size_t i, CodeView a) const {
    ws.edge.resize((L_ + 2) * Lp_);
    for_edges(i, a, [&](std::size_t j, double sign) { ws.edge[j - transitions_] += sign; });
  }
  double shared_edges(const Scratch& ws, std::size_t i, CodeView b) const {
    double sum = 0.0;
    for_edges(i, b, [&](std::size_t j, double sign) { sum += sign * ws.edge[j - transitions_]; });
    return sum;
  }
  void clear_edges(Scratch& ws, std::size_t i, CodeView a) const {
    for_edges(i, a, [&](std::size_t j, double) { ws.edge[j - transitions_] = 0.0; });
  }

  // Δf(a) as a sparse vector, then its inner product with each plane.
  void gram_by_features(Scratch& ws, std::size_t i, CodeView a, std::span<const CodeView> planes,
                        double* row) const {
    std::size_t room = 4 * a.size();
    const std::size_t first = std::size_t(data_.offsets[i]);
    for (const Code c : a) room += 2 * data_.n_features(first + (c >> label_bits_));
    if (has_pairs()) for_edges(i, a, [&](std::size_t, double) { ++room; });
    if (room > n_weights() / kSlotsPerWeight) return gram_by_all_features(ws, i, a, planes, row);
    ws.sparse.clear(room);
    for_plane(i, a, [&](std::uint64_t j, double x) { ws.sparse.add(j, x); });
    for (std::size_t k = 0; k < planes.size(); ++k) {
      double sum = 0.0;
      for_plane(i, planes[k], [&](std::uint64_t j, double x) { sum += x * ws.sparse.get(j); });
      row[k] = sum;
    }
  }

  // The same where a hash table of the plane's entries would be larger than an array of all weights:
  // the planes of very long sequences.
  void gram_by_all_features(Scratch& ws, std::size_t i, CodeView a, std::span<const CodeView> planes, double* row) const {
    ws.all.resize(n_weights());
    for_plane(i, a, [&](std::uint64_t j, double x) { ws.all[j] += x; });
    for (std::size_t k = 0; k < planes.size(); ++k) {
      double sum = 0.0;
      for_plane(i, planes[k], [&](std::uint64_t j, double x) { sum += x * ws.all[j]; });
      row[k] = sum;
    }
    for_plane(i, a, [&](std::uint64_t j, double) { ws.all[j] = 0.0; });
  }

  // visit(weight index, value) for the entries of Δf(plane); an index may come several times.
  template <class Visit>
  void for_plane(std::size_t i, CodeView plane, Visit&& visit) const {
    const std::size_t first = std::size_t(data_.offsets[i]);
    for (const Code c : plane) {
      const std::size_t token = first + (c >> label_bits_), l = label_of(c);
      const std::size_t y = std::size_t(data_.labels[token]);
      data_.for_features(token, [&](std::size_t f, double x) {
        visit(f * Lp_ + y, x);
        visit(f * Lp_ + l, -x);
      });
    }
    for_edges(i, plane, visit);
  }

  // S[t][l] += loss of label l at token t.
  void augment(Scratch& ws, std::size_t i) const {
    const std::size_t first = std::size_t(data_.offsets[i]);
    const T scale = T(ws.loss_scale);
    for (std::size_t t = 0; t < data_.length(i); ++t) {
      T* row = ws.S.data() + t * Lp_;
      const std::size_t truth = std::size_t(data_.labels[first + t]);
      const T weight = data_.weighs_tokens() ? scale * T(data_.weight_of(first + t)) : scale;
      if (data_.cost == nullptr) {
        row[truth] -= weight;  // one less for the truth is one more for the others
      } else {
        const double* cost = data_.cost + truth * L_;
        for (std::size_t l = 0; l < L_; ++l) row[l] += weight * T(cost[l]);
      }
    }
  }

  // visit(pair feature) for those of a token.
  template <class Visit>
  void for_pairs(std::size_t token, Visit&& visit) const {
    for (std::int64_t e = data_.pair_indptr[token]; e < data_.pair_indptr[token + 1]; ++e) {
      visit(std::size_t(data_.pair_indices[std::size_t(e)]));
    }
  }

  // visit(weight index) for the weights of label p followed by label l at a token.
  template <class Visit>
  void for_edge(std::size_t token, std::size_t p, std::size_t l, Visit&& visit) const {
    visit(transitions_ + p * Lp_ + l);
    if (has_pairs()) [[unlikely]] {
      for_pairs(token, [&](std::size_t g) { visit((data_.row_pair() + g * L_ + p) * Lp_ + l); });
    }
  }

  // visit(weight index, sign) for each edge of the truth (+1) and of the plane's output (-1) that
  // they do not share in place.
  template <class Visit>
  void for_edges(std::size_t i, CodeView plane, Visit&& visit) const {
    const std::size_t n = data_.length(i);
    const std::int32_t* truth = data_.labels + data_.offsets[i];
    const std::size_t first = std::size_t(data_.offsets[i]);
    const auto edge = [&](std::size_t t, std::size_t p, std::size_t l, double sign) {
      for_edge(first + t, p, l, [&](std::size_t j) { visit(j, sign); });
    };
    const std::size_t start = data_.row_start() * Lp_, end = data_.row_end() * Lp_;
    for (std::size_t k = 0; k < plane.size(); ++k) {
      const std::size_t t = plane[k] >> label_bits_, y = std::size_t(truth[t]), l = label_of(plane[k]);
      if (t == 0) {
        visit(start + y, 1.0);
        visit(start + l, -1.0);
      } else {
        const std::size_t before = std::size_t(truth[t - 1]);
        const bool adjacent = k > 0 && (plane[k - 1] >> label_bits_) == t - 1;
        edge(t, before, y, 1.0);
        edge(t, adjacent ? label_of(plane[k - 1]) : before, l, -1.0);
      }
      if (t + 1 == n) {
        visit(end + y, 1.0);
        visit(end + l, -1.0);
      } else if (k + 1 == plane.size() || (plane[k + 1] >> label_bits_) != t + 1) {
        const std::size_t after = std::size_t(truth[t + 1]);
        edge(t + 1, y, after, 1.0);
        edge(t + 1, l, after, -1.0);
      }
    }
  }

  // What two neighbouring cells are worth beyond the sum of their gains.
  double pair(std::size_t i, const T* w, const Cell& a, const Cell& b) const {
    const auto worth = [&](const T* rows) {
      const T* la = rows + a.label * Lp_;
      const T* ya = rows + a.truth * Lp_;
      return (double(la[b.label]) - double(la[b.truth])) - (double(ya[b.label]) - double(ya[b.truth]));
    };
    double sum = worth(w + transitions_);
    if (has_pairs()) [[unlikely]] {
      for_pairs(std::size_t(data_.offsets[i]) + b.token, [&](std::size_t g) {
        sum += worth(w + (data_.row_pair() + g * L_) * Lp_);
      });
    }
    return sum;
  }

  // Pair features of label l between its true neighbours.
  double between(std::size_t i, const T* w, const CellToken& t, std::size_t l) const {
    const std::size_t token = std::size_t(data_.offsets[i]) + t.token;
    const T* rows = w + data_.row_pair() * Lp_;
    double sum = 0.0;
    if (t.before != kNone) {
      for_pairs(token, [&](std::size_t g) { sum += double(rows[(g * L_ + t.before) * Lp_ + l]); });
    }
    if (t.after != kNone) {
      for_pairs(token + 1, [&](std::size_t g) { sum += double(rows[(g * L_ + l) * Lp_ + t.after]); });
    }
    return sum;
  }

  // visit(position in ws.cell) for each cell of a plane.
  template <class Visit>
  void for_cells(const Scratch& ws, CodeView plane, Visit&& visit) const {
    std::size_t at = 0;
    for (const Code c : plane) {
      const std::uint32_t token = c >> label_bits_, label = label_of(c);
      while (ws.cell[at].token != token || ws.cell[at].label != label) ++at;
      visit(at);
    }
  }

  void name_cells(Scratch& ws, CodeView index) const {
    ws.cell.resize(CellReader::n_cells(index));
    CellReader reader(index, data_.value_words());
    std::size_t at = 0;
    for (CellToken t; reader.next(t);) {
      for (const Code l : t.labels) {
        Cell& cell = ws.cell[at++];
        cell.token = t.token;
        cell.label = l;
        cell.truth = t.truth;
      }
    }
  }

  // Gains of the cells: emission and loss from score(token, labels), edges to the true neighbours.
  template <class Score>
  void gains(Scratch& ws, std::size_t i, const T* w, CodeView index, Score&& score) const {
    const Edges<T> edge = edges(w);
    ws.cell.resize(CellReader::n_cells(index));
    CellReader reader(index, data_.value_words());
    Cell* cell = ws.cell.data();
    for (CellToken t; reader.next(t);) {
      score(t, cell);
      const T* into = t.before == kNone ? edge.start : edge.A + t.before * Lp_;
      const T* out = t.after == kNone ? edge.end : edge.A + t.after;
      const std::size_t stride = t.after == kNone ? 1 : Lp_;
      double truth = double(into[t.truth]) + double(out[t.truth * stride]);
      if (has_pairs()) [[unlikely]] truth += between(i, w, t, t.truth);
      for (const Code l : t.labels) {
        cell->gain += double(into[l]) + double(out[l * stride]) - truth;
        if (has_pairs()) [[unlikely]] cell->gain += between(i, w, t, l);
        cell->token = t.token;
        cell->label = l;
        cell->truth = t.truth;
        ++cell;
      }
    }
  }

  // From the augmented scores that the oracle left in ws.S.
  void read_table(Scratch& ws, std::size_t i, const T* w, CodeView index) const {
    gains(ws, i, w, index, [&](const CellToken& t, Cell* cell) {
      const T* row = ws.S.data() + std::size_t(t.token) * Lp_;
      for (const Code l : t.labels) (cell++)->gain = double(row[l]) - double(row[t.truth]);
    });
  }

  // From the weights. Reads only the labels asked for: with the frequent labels first, they
  // mostly share one cache line of each weight row.
  void load_cells(Scratch& ws, std::size_t i, const T* w, CodeView index) const {
    const std::size_t first = std::size_t(data_.offsets[i]);
    gains(ws, i, w, index, [&](const CellToken& t, Cell* cell) {
      std::uint32_t label[Emissions<T>::kTogether];
      T score[Emissions<T>::kTogether];
      label[0] = t.truth;
      T truth = T(0);
      for (std::size_t at = 0; at < t.labels.size();) {
        const bool with_truth = at == 0;
        std::size_t n = with_truth ? 1 : 0;
        const std::size_t mark = at;
        while (n < Emissions<T>::kTogether && at < t.labels.size()) label[n++] = t.labels[at++];
        emissions_.score(first + t.token, t, w, label, n, score);
        if (with_truth) truth = score[0];
        for (std::size_t k = mark; k < at; ++k) {
          const double loss = data_.token_loss(first + t.token, t.truth, t.labels[k]);
          cell[k].gain = double(score[k - mark + (with_truth ? 1 : 0)]) - double(truth) + loss;
        }
      }
    });
  }

  // Cached inner products of the tokens of i.
  const float* token_gram(Scratch& ws, std::size_t i) const {
    const std::size_t n = data_.length(i);
    const float* known = grams_[i].load(std::memory_order_acquire);
    if (known != nullptr) return known;
    auto made = std::make_unique<float[]>(triangle(n));
    ws.gram_builder.build(data_, std::size_t(data_.offsets[i]), n, made.get());
    // Engines of two threads may both have made them: the first stay.
    if (grams_[i].compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) return made.release();
    return known;
  }

  static constexpr double kMostGrades = 8e9;  // bytes of the table of grades()

  // An entry of a sparse plane takes up to 4 slots of 24 bytes, a weight of an array 8 bytes.
  static constexpr std::size_t kSlotsPerWeight = 12;

  // Longer sequences keep no inner products: they grow with the square of the length.
  static constexpr std::size_t kLongestGram = 256;

  ChainData data_;
  std::size_t L_, Lp_;
  Emissions<T> emissions_;
  std::size_t transitions_;  // where their weights begin
  bool pairs_;               // whether there are pair features
  int label_bits_ = 0;
  double features_per_token_ = 0.0;
  mutable std::vector<std::atomic<const float*>> grams_;  // owned; each is written once
};

}  // namespace mm
