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

  struct Scratch final : Base::Workspace {
    AlignedArray<T> S, D, lower, upper;
    std::vector<std::uint32_t> y;            // labels of the best path
    std::vector<Code> all_cells;
    struct Node {
      double score;
      std::int32_t label, from;
      std::uint32_t token;
    };
    std::vector<Node> nodes;                 // recombine
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

  Found oracle(typename Base::Workspace& base, std::size_t i, const T* w) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    load_all(ws, i, w);
    augment(ws, i);
    decode(ws, i, edges(w));
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

  // In edges: edge t joins token t - 1 to token t.
  Extent extent(std::size_t, CodeView plane) const override {
    return {plane.front() >> label_bits_, (plane.back() >> label_bits_) + 1};
  }
  std::size_t first_piece(CodeView code) const override {
    std::size_t k = 1;
    while (k < code.size() && (code[k] >> label_bits_) == (code[k - 1] >> label_bits_) + 1) ++k;
    return k;
  }

  void index(CodeView plane, std::vector<Code>& cells) const override {
    const std::size_t old = cells.size();
    cells.insert(cells.end(), plane.begin(), plane.end());
    std::inplace_merge(cells.begin(), cells.begin() + std::ptrdiff_t(old), cells.end());
    cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  }

  void join_index(CodeView a, CodeView b, std::vector<Code>& cells) const override {
    cells.assign(a.begin(), a.end());
    cells.insert(cells.end(), b.begin(), b.end());
  }

  bool valid(std::size_t i, CodeView code) const override {
    for (std::size_t k = 1; k < code.size(); ++k) {
      if ((code[k - 1] >> label_bits_) >= (code[k] >> label_bits_)) return false;
    }
    return !code.empty() && valid_index(i, code);
  }
  bool valid_index(std::size_t i, CodeView cells) const override {
    const std::size_t n = data_.length(i);
    for (std::size_t k = 0; k < cells.size(); ++k) {
      const std::size_t t = cells[k] >> label_bits_, l = std::size_t(label_of(cells[k]));
      if (t >= n || l >= L_) return false;
      if (l == std::size_t(data_.labels[std::size_t(data_.offsets[i]) + t])) return false;
      if (k > 0 && cells[k - 1] >= cells[k]) return false;
    }
    return true;
  }

  std::size_t cache_bytes() const override {
    std::size_t bytes = grams_.capacity() * sizeof(grams_[0]);
    for (std::size_t i = 0; i < grams_.size(); ++i) {
      if (grams_[i] != nullptr) bytes += data_.length(i) * (data_.length(i) + 1) / 2 * sizeof(float);
    }
    return bytes;
  }

  // Viterbi over the tokens at which some plane differs from the truth and the labels seen there;
  // everything else stays at the truth, so runs of such tokens are independent of each other.
  Found recombine(typename Base::Workspace& base, std::size_t i, const T* w,
                  CodeView cells) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const std::size_t first = std::size_t(data_.offsets[i]), n = data_.length(i);
    const std::int32_t* truth = data_.labels + first;
    const T* A = w + data_.row_transition() * Lp_;
    const T* start = w + data_.row_start() * Lp_;
    const T* end = w + data_.row_end() * Lp_;
    load_cells(ws, i, w, cells);
    Found found;
    found.fresh = true;
    ws.code.clear();
    auto& node = ws.nodes;
    node.clear();
    std::size_t at = 0;
    while (at < cells.size()) {
      // One run of consecutive tokens. Scores are relative to the truth's.
      const std::size_t run = node.size();
      std::size_t previous = run, current = run;
      std::size_t t = cells[at] >> label_bits_;
      const std::size_t begin = t;
      for (;;) {
        const std::int32_t y = truth[t];
        const T* row = ws.S.data() + t * Lp_;
        const double edge = t == begin ? 0.0 : double(A[std::size_t(truth[t - 1]) * Lp_ + std::size_t(y)]);
        current = node.size();
        const auto push = [&](std::int32_t label) {
          double best;
          std::int32_t from = -1;
          const double gain = double(row[label]) - double(row[y]);
          if (t == begin) {
            best = t == 0 ? double(start[label]) - double(start[y])
                          : double(A[std::size_t(truth[t - 1]) * Lp_ + std::size_t(label)]) -
                                double(A[std::size_t(truth[t - 1]) * Lp_ + std::size_t(y)]);
          } else {
            best = -std::numeric_limits<double>::infinity();
            for (std::size_t k = previous; k < current; ++k) {
              const double x = node[k].score + double(A[std::size_t(node[k].label) * Lp_ + std::size_t(label)]);
              if (x > best) best = x, from = static_cast<std::int32_t>(k);
            }
            best -= edge;
          }
          node.push_back({best + gain, label, from, static_cast<std::uint32_t>(t)});
        };
        push(y);
        for (; at < cells.size() && (cells[at] >> label_bits_) == t; ++at) push(label_of(cells[at]));
        previous = current;
        if (at < cells.size() && (cells[at] >> label_bits_) == t + 1) {
          ++t;
        } else {
          break;
        }
      }
      // Leave the run.
      std::size_t arg = current;
      double top = 0.0;
      const std::int32_t y = truth[t];
      for (std::size_t k = current; k < node.size(); ++k) {
        const std::int32_t l = node[k].label;
        const double out = t + 1 == n ? double(end[l]) - double(end[y])
                                      : double(A[std::size_t(l) * Lp_ + std::size_t(truth[t + 1])]) -
                                            double(A[std::size_t(y) * Lp_ + std::size_t(truth[t + 1])]);
        const double x = node[k].score + out;
        if (k == current || x > top) top = x, arg = k;
      }
      const std::size_t mark = ws.code.size();
      for (std::int32_t k = static_cast<std::int32_t>(arg); k >= 0; k = node[std::size_t(k)].from) {
        const auto& v = node[std::size_t(k)];
        if (v.label == truth[v.token]) continue;
        ws.code.push_back(static_cast<Code>(v.token << label_bits_) | static_cast<Code>(v.label));
        found.loss += data_.token_loss(first + v.token, std::size_t(truth[v.token]), std::size_t(v.label));
      }
      std::reverse(ws.code.begin() + std::ptrdiff_t(mark), ws.code.end());
      found.F += top;
    }
    found.truth = ws.code.empty();
    return found;
  }

  void margins(typename Base::Workspace& base, std::size_t i, const T* w,
               std::span<const CodeView> planes, std::span<const double> /*losses*/, bool fresh,
               double* F) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    if (!fresh) {
      ws.all_cells.clear();
      for (const CodeView plane : planes) index(plane, ws.all_cells);
      load_cells(ws, i, w, ws.all_cells);
    }
    for (std::size_t k = 0; k < planes.size(); ++k) {
      F[k] = planes[k].empty() ? 0.0 : augmented_margin(ws, i, w, planes[k]);
    }
  }

  double loss(std::size_t i, CodeView plane) const override {
    const std::size_t first = std::size_t(data_.offsets[i]);
    double sum = 0.0;
    for (const Code c : plane) {
      const std::size_t token = first + (c >> label_bits_);
      sum += data_.token_loss(token, std::size_t(data_.labels[token]), std::size_t(label_of(c)));
    }
    return sum;
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
    // Cells of one token stand together only within a plane; sorting brings them together over
    // all planes, so that each weight row is visited once.
    std::sort(ws.cells.begin(), ws.cells.end());
    for (std::size_t at = 0; at < ws.cells.size();) {
      const std::size_t t = ws.cells[at] / L_;
      std::uint32_t label[kTogether];
      T amount[kTogether];
      std::size_t n_labels = 0;
      for (; at < ws.cells.size() && ws.cells[at] / L_ == t; ++at) {
        const Code c = ws.cells[at];
        const double a = ws.cell[c];
        ws.cell[c] = 0.0;
        if (a == 0.0) continue;
        label[n_labels] = static_cast<std::uint32_t>(c - t * L_);
        amount[n_labels++] = static_cast<T>(a);
        if (n_labels == kTogether) {
          add_token(first + t, label, amount, n_labels, weights);
          n_labels = 0;
        }
      }
      add_token(first + t, label, amount, n_labels, weights);
    }
  }

  void prefetch_example(std::size_t i, int stage) const override {
    if (stage == 0) {
      mm::prefetch(&data_.offsets[i]);
    } else {
      const std::size_t first = std::size_t(data_.offsets[i]), n = data_.length(i);
      prefetch_range(data_.labels + first, std::min<std::size_t>(n * 4, 512));
      if (!data_.indptr.empty()) prefetch_range(&data_.indptr[first], std::min<std::size_t>(n * 8, 512));
    }
  }
  void prefetch_part(std::size_t i, CodeView cells, const T* w, int stage) const override {
    if (data_.indptr.empty()) return;
    const std::size_t first = std::size_t(data_.offsets[i]);
    for (std::size_t at = 0; at < cells.size();) {
      const std::size_t t = cells[at] >> label_bits_;
      const std::int64_t begin = data_.indptr[first + t], end = data_.indptr[first + t + 1];
      if (stage == 0) {
        prefetch_range(&data_.indices[std::size_t(begin)], std::size_t(end - begin) * 4);
        while (at < cells.size() && (cells[at] >> label_bits_) == t) ++at;
        continue;
      }
      const std::size_t truth = std::size_t(data_.labels[first + t]);
      const std::size_t mark = at;
      for (std::int64_t e = begin; e < end; ++e) {
        const T* row = w + std::size_t(data_.indices[e]) * Lp_;
        mm::prefetch(row + truth);
        for (at = mark; at < cells.size() && (cells[at] >> label_bits_) == t; ++at) {
          mm::prefetch(row + label_of(cells[at]));
        }
      }
      while (at < cells.size() && (cells[at] >> label_bits_) == t) ++at;
    }
  }

  // Scores of every label at every token of example i, without loss: fills ws.S.
  void load_all(Scratch& ws, std::size_t i, const T* w) const {
    const std::size_t first = std::size_t(data_.offsets[i]), n = data_.length(i);
    ws.reserve(n, Lp_);
    load_tokens(w, first, n, ws.S.data());
  }

  Edges<T> edges(const T* w) const {
    return {w + data_.row_transition() * Lp_, w + data_.row_start() * Lp_,
            w + data_.row_end() * Lp_};
  }

  // Forward pass over ws.S: fills ws.D.
  void forward(Scratch& ws, std::size_t i, const Edges<T>& edge) const {
    const auto& kernel = kernels<T>();
    if (!ws.bounds_valid) {
      kernel.transition_bounds(edge.A, L_, Lp_, ws.lower.data(), ws.upper.data());
      ws.bounds_valid = true;
    }
    kernel.forward(ws.S.data(), edge.start, edge.A, ws.lower.data(), ws.upper.data(), L_, Lp_,
                   data_.length(i), ws.D.data());
  }

  // Best path under ws.S and the edges: fills ws.y; returns its score.
  double decode(Scratch& ws, std::size_t i, const Edges<T>& edge) const {
    const std::size_t n = data_.length(i);
    const T* A = edge.A;
    const T* end = edge.end;
    forward(ws, i, edge);
    const T* D = ws.D.data();
    // Back-pointers are found again along the one best path only.
    const T* final_row = D + (n - 1) * Lp_;
    std::size_t best = 0;
    for (std::size_t l = 1; l < L_; ++l) {
      if (final_row[l] + end[l] > final_row[best] + end[best]) best = l;
    }
    const double score = double(final_row[best] + end[best]);
    ws.y[n - 1] = static_cast<std::uint32_t>(best);
    const std::int32_t* guess = data_.labels != nullptr ? data_.labels + data_.offsets[i] : nullptr;
    for (std::size_t t = n - 1; t > 0; --t) {
      const T* prev = D + (t - 1) * Lp_;
      const T* column = A + best;
      // A predecessor that gives back the very number which the maximum gave is a maximiser. The
      // truth nearly always does, and costs one comparison that the processor can foresee.
      if (guess != nullptr) {
        const std::size_t p = std::size_t(guess[t - 1]);
        if ((prev[p] + column[p * Lp_]) + ws.S[t * Lp_ + best] == D[t * Lp_ + best]) {
          best = p;
          ws.y[t - 1] = static_cast<std::uint32_t>(p);
          continue;
        }
      }
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
                       data_.indptr[token + n], S);
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
      row[truth] -= weight;  // one less for the truth is one more for the others
    } else {
      const double* cost = data_.cost + truth * L_;
      for (std::size_t l = 0; l < L_; ++l) row[l] += weight * T(cost[l]);
    }
  }

  // The augmented scores of these cells and of the truth at their tokens; other labels of the
  // row are left undefined. Reads only the labels asked for: with the frequent labels first, they
  // mostly share one cache line of each weight row.
  void load_cells(Scratch& ws, std::size_t i, const T* w, CodeView cells) const {
    const std::size_t first = std::size_t(data_.offsets[i]);
    ws.reserve(data_.length(i), Lp_);
    for (std::size_t at = 0; at < cells.size();) {
      const std::size_t t = cells[at] >> label_bits_, token = first + t;
      const std::size_t truth = std::size_t(data_.labels[token]);
      std::uint32_t label[kTogether];
      T* row = ws.S.data() + t * Lp_;
      bool more = true;
      std::size_t n = 0;
      label[n++] = std::uint32_t(truth);
      while (more) {
        while (n < kTogether && at < cells.size() && (cells[at] >> label_bits_) == t) {
          label[n++] = std::uint32_t(label_of(cells[at++]));
        }
        more = at < cells.size() && (cells[at] >> label_bits_) == t;
        score_labels(w, token, label, n, row);
        for (std::size_t k = 0; k < n; ++k) {
          row[label[k]] += static_cast<T>(data_.token_loss(token, truth, label[k]));
        }
        n = 0;
      }
    }
  }
  static constexpr std::size_t kTogether = 4;

  // row[label[k]] = score of label[k] at a token, for up to kTogether labels.
  void score_labels(const T* w, std::size_t token, const std::uint32_t* label, std::size_t n, T* row) const {
    switch (n) {
      case 1: return score_some<1>(w, token, label, row);
      case 2: return score_some<2>(w, token, label, row);
      case 3: return score_some<3>(w, token, label, row);
      default: return score_some<4>(w, token, label, row);
    }
  }
  template <int N>
  void score_some(const T* w, std::size_t token, const std::uint32_t* label, T* out) const {
    T sum[N] = {};
    if (!data_.indptr.empty()) {
      const std::int64_t begin = data_.indptr[token], end = data_.indptr[token + 1];
      const std::uint32_t* indices = data_.indices.data();
      if (data_.values == nullptr) {
        for (std::int64_t e = begin; e < end; ++e) {
          const T* row = w + std::size_t(indices[e]) * Lp_;
          for (int k = 0; k < N; ++k) sum[k] += row[label[k]];
        }
      } else {
        for (std::int64_t e = begin; e < end; ++e) {
          const T* row = w + std::size_t(indices[e]) * Lp_;
          for (int k = 0; k < N; ++k) sum[k] += T(data_.values[e]) * row[label[k]];
        }
      }
    }
    const auto dense = [&](const auto* x) {
      const T* rows = w + data_.row_dense() * Lp_;
      for (std::size_t j = 0; j < data_.n_dense; ++j) {
        for (int k = 0; k < N; ++k) sum[k] += T(x[token * data_.n_dense + j]) * rows[j * Lp_ + label[k]];
      }
    };
    if (data_.dense32 != nullptr) dense(data_.dense32);
    if (data_.dense64 != nullptr) dense(data_.dense64);
    for (int k = 0; k < N; ++k) out[label[k]] = sum[k];
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

  // u[f][label[k]] += amount[k] * x[f] over the features f of a token.
  void add_token(std::size_t token, const std::uint32_t* label, const T* amount, std::size_t n,
                 Weights<T>& weights) const {
    switch (n) {
      case 0: return;
      case 1: return add_some<1>(token, label, amount, weights);
      case 2: return add_some<2>(token, label, amount, weights);
      case 3: return add_some<3>(token, label, amount, weights);
      default: return add_some<4>(token, label, amount, weights);
    }
  }
  template <int N>
  void add_some(std::size_t token, const std::uint32_t* label, const T* amount,
                Weights<T>& weights) const {
    std::uint32_t l[N];
    T a[N];
    for (int k = 0; k < N; ++k) l[k] = label[k], a[k] = amount[k];
    if (!data_.indptr.empty()) {
      const std::int64_t begin = data_.indptr[token], end = data_.indptr[token + 1];
      const std::uint32_t* indices = data_.indices.data();
      if (data_.values == nullptr) {
        for (std::int64_t e = begin; e < end; ++e) {
          const std::size_t row = std::size_t(indices[e]) * Lp_;
          for (int k = 0; k < N; ++k) weights.add(row + l[k], a[k]);
        }
      } else {
        for (std::int64_t e = begin; e < end; ++e) {
          const std::size_t row = std::size_t(indices[e]) * Lp_;
          for (int k = 0; k < N; ++k) weights.add(row + l[k], a[k] * T(data_.values[e]));
        }
      }
    }
    const auto dense = [&](const auto* x) {
      const std::size_t base = data_.row_dense() * Lp_;
      for (std::size_t j = 0; j < data_.n_dense; ++j) {
        const T xj = static_cast<T>(x[token * data_.n_dense + j]);
        for (int k = 0; k < N; ++k) weights.add(base + j * Lp_ + l[k], a[k] * xj);
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
