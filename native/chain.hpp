// Label sequences: emissions, first-order transitions, start and end weights.
//
//   f(x, y) = Σ_t  x_t ⊗ e(y_t)  +  Σ_t e(y_{t-1}) ⊗ e(y_t)  +  start(y_1)  +  end(y_T)
//   l(y)    = Σ_t  weight_t * cost[truth_t][y_t]          (Hamming: cost = [truth != label])
//
// A plane is the list of the tokens at which an output differs from the truth, each as
// (token << label_bits) | label, ascending. Everything else follows from it and the data.
#pragma once

#include <bit>
#include <limits>

#include "kernels.hpp"
#include "structure.hpp"
#include "token_gram.hpp"

namespace mm {

template <class T>
class Chain final : public Structure<T> {
 public:
  using Base = Structure<T>;

  struct Scratch final : Base::Workspace {
    AlignedArray<T> S, D, lower, upper;
    std::vector<std::uint32_t> y;            // labels of the best path
    std::vector<std::uint32_t> token_stamp;  // S[t] holds token t of the visit `stamp`
    std::uint32_t stamp = 0;
    bool bounds_valid = false;
    std::vector<double> edge;                // [(L + 2) * Lp] scratch of gram, always left zero
    std::vector<double> cell;                // [T * L] scratch of accumulate, always left zero
    std::vector<Code> cells;
    TokenGramBuilder gram_builder;

    void reserve(std::size_t tokens, std::size_t Lp) {
      if (S.size() >= tokens * Lp) return;
      const std::size_t room = tokens + tokens / 4;
      S.reset(room * Lp);
      D.reset(room * Lp);
      y.resize(room);
      token_stamp.assign(room, 0);
      stamp = 0;
    }
  };

  explicit Chain(const ChainData& data)
      : data_(data), L_(data.n_labels), Lp_(padded_labels<T>(data.n_labels)), grams_(data.size()) {
    label_bits_ = static_cast<int>(std::bit_width(L_ - 1));
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (data.length(i) > (std::uint64_t{1} << (32 - label_bits_))) {
        throw BadInput("sequence " + std::to_string(i) + " has " + std::to_string(data.length(i)) +
                       " tokens; with " + std::to_string(L_) + " labels at most " +
                       std::to_string(std::uint64_t{1} << (32 - label_bits_)) + " fit");
      }
    }
  }

  const ChainData& data() const { return data_; }
  std::size_t n_labels() const { return L_; }
  std::size_t row_size() const { return Lp_; }
  std::size_t n_examples() const override { return data_.size(); }
  std::size_t n_weights() const override { return data_.n_rows() * Lp_; }

  std::unique_ptr<typename Base::Workspace> workspace() const override {
    auto ws = std::make_unique<Scratch>();
    ws->lower.reset(Lp_);
    ws->upper.reset(Lp_);
    return ws;
  }

  void weights_changed(typename Base::Workspace& base) const override {
    static_cast<Scratch&>(base).bounds_valid = false;
  }

  double oracle_cost(std::size_t i) const override {
    const std::size_t n = data_.length(i);
    const double entries = data_.indptr.empty()
                               ? 0.0
                               : double(data_.indptr[data_.offsets[i + 1]] - data_.indptr[data_.offsets[i]]);
    return double(Lp_) * (entries + double(n) * double(data_.n_dense) + 0.25 * double(n) * double(L_));
  }

  Found oracle(typename Base::Workspace& base, std::size_t i, const T* w) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    load_all(ws, i, w);
    augment(ws, i);
    decode(ws, i, w);
    // The code and, in double precision along the few tokens that differ, F and the loss.
    const std::size_t first = std::size_t(data_.offsets[i]), n = data_.length(i);
    Found found;
    ws.code.clear();
    for (std::size_t t = 0; t < n; ++t) {
      const std::uint32_t truth = std::uint32_t(data_.labels[first + t]);
      if (ws.y[t] == truth) continue;
      ws.code.push_back(static_cast<Code>(t << label_bits_) | ws.y[t]);
      found.loss += data_.token_loss(first + t, truth, ws.y[t]);
    }
    found.truth = ws.code.empty();
    if (!found.truth) found.F = augmented_margin(ws, i, w, ws.code);
    return found;
  }

  void margins(typename Base::Workspace& base, std::size_t i, const T* w,
               std::span<const CodeView> planes, std::span<const double> /*losses*/, bool fresh,
               double* F) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    if (!fresh) load_differing(ws, i, w, planes);
    for (std::size_t k = 0; k < planes.size(); ++k) {
      F[k] = planes[k].empty() ? 0.0 : augmented_margin(ws, i, w, planes[k]);
    }
  }

  void gram(typename Base::Workspace& base, std::size_t i, CodeView a,
            std::span<const CodeView> planes, double* row) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const std::size_t first = std::size_t(data_.offsets[i]);
    const std::int32_t* truth = data_.labels + first;
    const float* G = token_gram(ws, i);
    ws.edge.resize((L_ + 2) * Lp_);
    const std::size_t base_edge = data_.row_transition() * Lp_;
    for_edges(i, a, [&](std::size_t j, double sign) { ws.edge[j - base_edge] += sign; });
    for (std::size_t k = 0; k < planes.size(); ++k) {
      double sum = 0.0;
      for (const Code cb : planes[k]) {
        const std::size_t s = cb >> label_bits_;
        const std::int32_t lb = label_of(cb), ys = truth[s];
        for (const Code ca : a) {
          const std::size_t t = ca >> label_bits_;
          const std::int32_t la = label_of(ca), yt = truth[t];
          const int shared = (yt == ys) - (yt == lb) - (la == ys) + (la == lb);
          if (shared == 0) continue;
          const double dot = G != nullptr
                                 ? double(t >= s ? G[t * (t + 1) / 2 + s] : G[s * (s + 1) / 2 + t])
                                 : data_.token_dot(first + s, first + t);
          sum += shared * dot;
        }
      }
      for_edges(i, planes[k], [&](std::size_t j, double sign) { sum += sign * ws.edge[j - base_edge]; });
      row[k] = sum;
    }
    for_edges(i, a, [&](std::size_t j, double) { ws.edge[j - base_edge] = 0.0; });
  }

  void accumulate(typename Base::Workspace& base, std::size_t i, std::span<const CodeView> planes,
                  const double* coef, Weights<T>& weights) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const std::size_t first = std::size_t(data_.offsets[i]), n = data_.length(i);
    if (ws.cell.size() < n * L_) ws.cell.resize(n * L_);
    ws.cells.clear();
    for (std::size_t k = 0; k < planes.size(); ++k) {
      if (coef[k] == 0.0) continue;
      for (const Code c : planes[k]) {
        const std::size_t t = c >> label_bits_;
        add_cell(ws, t, std::size_t(label_of(c)), -coef[k]);
        add_cell(ws, t, std::size_t(data_.labels[first + t]), coef[k]);
      }
      for_edges(i, planes[k], [&](std::size_t j, double sign) {
        weights.add(j, static_cast<T>(sign * coef[k]));
      });
      ws.bounds_valid = false;
    }
    for (const Code c : ws.cells) {
      const std::size_t t = c / L_, l = c % L_;
      const double amount = ws.cell[c];
      ws.cell[c] = 0.0;
      if (amount != 0.0) add_token(first + t, l, amount, weights);
    }
  }

  void prefetch(std::size_t i, std::span<const Code> codes, const T* w) const override {
    const std::size_t first = std::size_t(data_.offsets[i]);
    if (data_.indptr.empty()) return;
    std::size_t last = std::numeric_limits<std::size_t>::max();
    for (const Code c : codes) {
      const std::size_t t = c >> label_bits_;
      if (t == last) continue;
      last = t;
      for (std::int64_t e = data_.indptr[first + t]; e < data_.indptr[first + t + 1]; ++e) {
        prefetch_range(w + std::size_t(data_.indices[e]) * Lp_, Lp_ * sizeof(T));
      }
    }
  }

  // Scores of every label at every token of example i, without loss: fills ws.S.
  void load_all(Scratch& ws, std::size_t i, const T* w) const {
    const std::size_t first = std::size_t(data_.offsets[i]), n = data_.length(i);
    ws.reserve(n, Lp_);
    load_tokens(w, first, n, ws.S.data());
  }

  // Best path under ws.S, transitions, start and end: fills ws.y; returns its score.
  double decode(Scratch& ws, std::size_t i, const T* w) const {
    const std::size_t n = data_.length(i);
    const T* A = w + data_.row_transition() * Lp_;
    const T* start = w + data_.row_start() * Lp_;
    const T* end = w + data_.row_end() * Lp_;
    const auto& kernel = kernels<T>();
    if (!ws.bounds_valid) {
      kernel.transition_bounds(A, L_, Lp_, ws.lower.data(), ws.upper.data());
      ws.bounds_valid = true;
    }
    T* D = ws.D.data();
    kernel.forward(ws.S.data(), start, A, ws.lower.data(), ws.upper.data(), L_, Lp_, n, D);
    // Back-pointers are found again along the one best path only.
    const T* final_row = D + (n - 1) * Lp_;
    std::size_t best = 0;
    for (std::size_t l = 1; l < L_; ++l) {
      if (final_row[l] + end[l] > final_row[best] + end[best]) best = l;
    }
    const double score = double(final_row[best] + end[best]);
    ws.y[n - 1] = static_cast<std::uint32_t>(best);
    for (std::size_t t = n - 1; t > 0; --t) {
      const T* prev = D + (t - 1) * Lp_;
      const T* column = A + best;
      std::size_t arg = 0;
      T top = prev[0] + column[0];
      for (std::size_t p = 1; p < L_; ++p) {
        const T x = prev[p] + column[p * Lp_];
        if (x > top) top = x, arg = p;
      }
      best = arg;
      ws.y[t - 1] = static_cast<std::uint32_t>(best);
    }
    return score;
  }

 private:
  std::int32_t label_of(Code c) const { return std::int32_t(c & ((Code{1} << label_bits_) - 1)); }

  void load_tokens(const T* w, std::size_t token, std::size_t n, T* S) const {
    const auto& kernel = kernels<T>();
    if (!data_.indptr.empty()) {
      kernel.emissions(w, Lp_, data_.indptr.data() + token, data_.indices.data(), data_.values, n,
                       std::int64_t(data_.indices.size()), S);
    } else {
      std::fill(S, S + n * Lp_, T(0));
    }
    const T* wd = w + data_.row_dense() * Lp_;
    if (data_.dense32 != nullptr) {
      kernel.dense_emissions_f32(wd, Lp_, data_.dense32 + token * data_.n_dense, data_.n_dense, n, S);
    }
    if (data_.dense64 != nullptr) {
      kernel.dense_emissions_f64(wd, Lp_, data_.dense64 + token * data_.n_dense, data_.n_dense, n, S);
    }
  }

  // S[t][l] += loss of label l at token t.
  void augment(Scratch& ws, std::size_t i) const {
    const std::size_t first = std::size_t(data_.offsets[i]), n = data_.length(i);
    for (std::size_t t = 0; t < n; ++t) augment_token(ws, first, t);
  }
  void augment_token(Scratch& ws, std::size_t first, std::size_t t) const {
    T* row = ws.S.data() + t * Lp_;
    const std::size_t truth = std::size_t(data_.labels[first + t]);
    const T weight = data_.token_weight != nullptr ? T(data_.token_weight[first + t]) : T(1);
    if (data_.cost == nullptr) {
      for (std::size_t l = 0; l < Lp_; ++l) row[l] += weight;
      row[truth] -= weight;
    } else {
      const double* cost = data_.cost + truth * L_;
      for (std::size_t l = 0; l < L_; ++l) row[l] += weight * T(cost[l]);
    }
  }

  // The augmented scores of the tokens at which some plane differs from the truth.
  void load_differing(Scratch& ws, std::size_t i, const T* w,
                      std::span<const CodeView> planes) const {
    const std::size_t first = std::size_t(data_.offsets[i]), n = data_.length(i);
    ws.reserve(n, Lp_);
    if (++ws.stamp == 0) {
      std::fill(ws.token_stamp.begin(), ws.token_stamp.end(), 0);
      ws.stamp = 1;
    }
    for (const CodeView plane : planes) {
      for (const Code c : plane) {
        const std::size_t t = c >> label_bits_;
        if (ws.token_stamp[t] == ws.stamp) continue;
        ws.token_stamp[t] = ws.stamp;
        load_tokens(w, first + t, 1, ws.S.data() + t * Lp_);
        augment_token(ws, first, t);
      }
    }
  }

  // F = l - w.Δf from the augmented scores: only tokens and edges that differ from the truth.
  double augmented_margin(const Scratch& ws, std::size_t i, const T* w, CodeView plane) const {
    const std::size_t first = std::size_t(data_.offsets[i]);
    double sum = 0.0;
    for (const Code c : plane) {
      const std::size_t t = c >> label_bits_;
      const T* row = ws.S.data() + t * Lp_;
      sum += double(row[label_of(c)]) - double(row[data_.labels[first + t]]);
    }
    for_edges(i, plane, [&](std::size_t j, double sign) { sum -= sign * double(w[j]); });
    return sum;
  }

  // visit(weight index, sign) for each edge of the truth (+1) and of the plane's output (-1) that
  // they do not share in place.
  template <class Visit>
  void for_edges(std::size_t i, CodeView plane, Visit&& visit) const {
    const std::size_t n = data_.length(i);
    const std::int32_t* truth = data_.labels + data_.offsets[i];
    const std::size_t A = data_.row_transition() * Lp_;
    const std::size_t start = data_.row_start() * Lp_, end = data_.row_end() * Lp_;
    std::size_t previous = n;  // token of the difference before this one
    std::size_t previous_label = 0;
    for (std::size_t k = 0; k < plane.size(); ++k) {
      const std::size_t t = plane[k] >> label_bits_;
      const std::size_t label = std::size_t(label_of(plane[k])), y = std::size_t(truth[t]);
      if (t == 0) {
        visit(start + y, 1.0);
        visit(start + label, -1.0);
      } else {
        const std::size_t before = std::size_t(truth[t - 1]);
        visit(A + before * Lp_ + y, 1.0);
        visit(A + (previous == t - 1 ? previous_label : before) * Lp_ + label, -1.0);
      }
      if (t + 1 == n) {
        visit(end + y, 1.0);
        visit(end + label, -1.0);
      } else if (k + 1 == plane.size() || (plane[k + 1] >> label_bits_) != t + 1) {
        const std::size_t after = std::size_t(truth[t + 1]);
        visit(A + y * Lp_ + after, 1.0);
        visit(A + label * Lp_ + after, -1.0);
      }
      previous = t;
      previous_label = label;
    }
  }

  void add_cell(Scratch& ws, std::size_t t, std::size_t l, double amount) const {
    const std::size_t c = t * L_ + l;
    if (ws.cell[c] == 0.0) ws.cells.push_back(static_cast<Code>(c));
    ws.cell[c] += amount;
  }

  void add_token(std::size_t token, std::size_t label, double amount, Weights<T>& weights) const {
    if (!data_.indptr.empty()) {
      const std::int64_t begin = data_.indptr[token], stop = data_.indptr[token + 1];
      if (data_.values == nullptr) {
        const T a = static_cast<T>(amount);
        for (std::int64_t e = begin; e < stop; ++e) weights.add(std::size_t(data_.indices[e]) * Lp_ + label, a);
      } else {
        for (std::int64_t e = begin; e < stop; ++e) {
          weights.add(std::size_t(data_.indices[e]) * Lp_ + label, static_cast<T>(amount * double(data_.values[e])));
        }
      }
    }
    const auto dense = [&](const auto* x) {
      const std::size_t base = data_.row_dense() * Lp_ + label;
      for (std::size_t j = 0; j < data_.n_dense; ++j) {
        weights.add(base + j * Lp_, static_cast<T>(amount * double(x[token * data_.n_dense + j])));
      }
    };
    if (data_.dense32 != nullptr) dense(data_.dense32);
    if (data_.dense64 != nullptr) dense(data_.dense64);
  }

  // Cached inner products of the tokens of i; nullptr for long sequences, where they would not fit.
  const float* token_gram(Scratch& ws, std::size_t i) const {
    const std::size_t n = data_.length(i);
    if (n > kLongestGram) return nullptr;
    if (grams_[i] == nullptr) {
      grams_[i] = std::make_unique<float[]>(n * (n + 1) / 2);
      ws.gram_builder.build(data_, std::size_t(data_.offsets[i]), n, grams_[i].get());
    }
    return grams_[i].get();
  }

  static constexpr std::size_t kLongestGram = 256;

  ChainData data_;
  std::size_t L_, Lp_;
  int label_bits_ = 0;
  mutable std::vector<std::unique_ptr<float[]>> grams_;  // each written by the owner of its block
};

}  // namespace mm
