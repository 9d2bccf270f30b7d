// What all parts of a chain share: the data, the layout of the weights, and walks over the edges in
// which an output differs from the truth. See chain.hpp for the structure itself.
#pragma once

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
class ChainFrame : public Structure<T> {
 public:
  using Base = Structure<T>;

  // A cell of the part being visited.
  struct Cell {
    double gain;  // F of differing from the truth here and nowhere else
    double best;  // F of the best output that ends with this cell (recombine)
    std::uint32_t token, label, truth;
    std::int32_t from;  // the cell chosen before this one, -1: none
  };

  struct Scratch : Base::Workspace {
    AlignedArray<T> S, D;          // [T][Lp] scores, forward scores
    AlignedArray<T> plain;         // [T][Lp] scores without losses, where the oracle is asked several times
    AlignedArray<T> lower, upper;  // [Lp] bounds on the transitions of each label
    AlignedArray<T> steps;         // [T][L][Lp] transitions into each token, with pair features
    AlignedArray<T> two;           // [4][Lp] two tokens, for one step of the forward pass
    std::vector<std::uint32_t> y;  // labels of the best path
    LossTable<T> table;            // best labels by their errors
    ParetoSearch<T> search;        // best labels by their merit
    std::vector<std::size_t> errors;  // of the grades found last
    bool bounds_valid = false;
    std::vector<double> edge;      // [(L + 2) * Lp] scratch of gram, always left zero
    std::vector<Cell> cell;        // the cells of the index, with their gains
    std::vector<double> amount;    // per cell, accumulate
    std::vector<Code> cells, joined;  // index
    TokenGramBuilder gram_builder;
    std::vector<float> products;   // of all tokens of a sequence
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

  explicit ChainFrame(const ChainData& data)
      : data_(data), L_(data.n_labels), Lp_(padded_labels<T>(data.n_labels)), emissions_(data_, Lp_),
        transitions_(data.row_transition() * Lp_), pairs_(!data.pair_indptr.empty()) {
    label_bits_ = static_cast<int>(std::bit_width(L_ - 1));
    const std::uint64_t longest = std::uint64_t{1} << (32 - label_bits_);
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (data.length(i) > longest) {
        throw BadInput("sequence " + std::to_string(i) + " has " + std::to_string(data.length(i)) +
                       " tokens; with " + std::to_string(L_) + " labels at most " +
                       std::to_string(longest) + " fit");
      }
    }
  }

  ChainFrame(const ChainFrame&) = delete;
  ChainFrame& operator=(const ChainFrame&) = delete;

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

  const Emissions<T>& emissions() const { return emissions_; }

  Edges<T> edges(const T* w) const { return edges_of(w + data_.row_transition() * Lp_); }
  // From the rows of transitions, start and end, which stand together.
  Edges<T> edges_of(const T* rows) const { return {rows, rows + L_ * Lp_, rows + (L_ + 1) * Lp_}; }

  bool has_pairs() const { return pairs_; }

  bool shares_steps() const override { return true; }

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

 protected:
  std::uint32_t label_of(Code c) const { return c & ((Code{1} << label_bits_) - 1); }

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

  ChainData data_;
  std::size_t L_, Lp_;
  Emissions<T> emissions_;
  std::size_t transitions_;  // where their weights begin
  bool pairs_;               // whether there are pair features
  int label_bits_ = 0;
};

}  // namespace mm
