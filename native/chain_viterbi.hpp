// The oracle of a chain: scores and Viterbi.
#pragma once

#include "chain_frame.hpp"

namespace mm {

template <class T>
class ChainViterbi : public ChainFrame<T> {
 public:
  using Frame = ChainFrame<T>;
  using Base = Structure<T>;
  using typename Frame::Scratch;
  using Frame::Frame;
  using Frame::edges;
  using Frame::has_pairs;

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
    return code_of_path(ws, i, edge, truth, ws.S.data());
  }
  // The same by these scores.
  Found code_of_path(Scratch& ws, std::size_t i, const Edges<T>& edge, const std::int32_t* truth, const T* S) const {
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
      const T* row = S + (c >> label_bits_) * Lp_;
      found.F += double(row[label_of(c)]) - double(row[truth[c >> label_bits_]]);
    }
    // Transitions, start, end and pair features stand together, and so edge.A has them all.
    const std::size_t first = data_.row_transition() * Lp_;
    for_edges(i, ws.code, [&](std::size_t j, double sign) { found.F -= sign * double(edge.A[j - first]); });
    return found;
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

 protected:
  using Frame::data_;
  using Frame::L_;
  using Frame::Lp_;
  using Frame::emissions_;
  using Frame::transitions_;
  using Frame::pairs_;
  using Frame::label_bits_;
  using Frame::label_of;
  using Frame::for_pairs;
  using Frame::for_edges;

  // S[t][l] += loss of label l at token t, so many times as the workspace says.
  void augment(Scratch& ws, std::size_t i) const { augment(ws, i, ws.loss_scale); }
  void augment(Scratch& ws, std::size_t i, double times) const {
    const std::size_t first = std::size_t(data_.offsets[i]);
    const T scale = T(times);
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
};

}  // namespace mm
