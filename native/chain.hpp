// Label sequences: emissions, first-order transitions, start and end weights.
//
//   f(x, y) = Σ_t  x_t ⊗ e(y_t)  +  Σ_t e(y_{t-1}) ⊗ e(y_t)  +  start(y_1)  +  end(y_T)
//             [ +  Σ_t z_t ⊗ e(y_{t-1}) ⊗ e(y_t),  pair features, where there are any ]
//   l(y)    = Σ_t  weight_t * cost[truth_t][y_t]          (Hamming: cost = [truth != label])
//
// A plane is the list of the tokens at which an output differs from the truth, each as
// (token << label_bits) | label, ascending. Everything else follows from it and the data.
//
// chain_frame.hpp has what all parts share, chain_viterbi.hpp the oracle, chain_planes.hpp losses and
// Gram entries; here are the visits of the engine to what it keeps.
#pragma once

#include "chain_planes.hpp"

namespace mm {

template <class T>
class Chain final : public ChainPlanes<T> {
 public:
  using Frame = ChainFrame<T>;
  using Base = Structure<T>;
  using Fresh = typename Base::Fresh;
  using typename Frame::Cell;
  using typename Frame::Scratch;
  using ChainPlanes<T>::ChainPlanes;
  using Frame::edges;
  using Frame::has_pairs;

  // ---- cached visits: everything through the cells of the index --------------------------------

  void index(typename Base::Workspace& base, std::size_t i, CodeView plane,
             std::vector<Code>& index) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    read_cells(index, data_.value_words(), label_bits_, ws.cells);
    const std::size_t old = ws.cells.size();
    ws.joined.resize(old + plane.size());
    const auto end = std::set_union(ws.cells.begin(), ws.cells.end(), plane.begin(), plane.end(), ws.joined.begin());
    ws.joined.resize(std::size_t(end - ws.joined.begin()));
    if (ws.joined.size() != old) write_cells(data_, label_bits_, i, ws.joined, index);
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
  using Frame::data_;
  using Frame::L_;
  using Frame::Lp_;
  using Frame::emissions_;
  using Frame::transitions_;
  using Frame::pairs_;
  using Frame::label_bits_;
  using Frame::label_of;
  using Frame::for_pairs;
  using Frame::for_edge;
  using Frame::for_edges;

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
};

}  // namespace mm
