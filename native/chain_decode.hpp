// What a trained chain is asked: best labellings, k-best, scores, max-marginals.
//
// A sequence whose tables would take more than `table_bytes` is worked on in windows of tokens. Of each
// window only the forward scores of its last token are kept; going back, a window is computed again
// from those of the one before it. The numbers are the same, for at most twice the work.
#pragma once

#include <cmath>
#include <numeric>

#include "chain.hpp"
#include "parallel.hpp"
#include "sparse_weights.hpp"

namespace mm {

// Which edges a labelling may use; empty means all of them. [L][L], [L], [L], non-zero = allowed.
struct AllowedEdges {
  std::span<const std::uint8_t> transition, start, end;
  bool any() const { return !transition.empty() || !start.empty() || !end.empty(); }
};

// Labels that are known before decoding, [tokens]: a code, or -1 where any label may be. Empty: none is known.
using KnownLabels = std::span<const std::int32_t>;

// One labelling of a sequence.
struct Labelling {
  double score;
  std::vector<std::int32_t> labels;
};

template <class T>
class ChainDecoder {
 public:
  using Scratch = typename Chain<T>::Scratch;

  static constexpr std::size_t kTableBytes = std::size_t{1} << 26;

  ChainDecoder(const Chain<T>& chain, const T* w, const AllowedEdges& allowed, std::size_t table_bytes = kTableBytes,
               KnownLabels known = {})
      : chain_(chain), table_bytes_(table_bytes), known_(known), w_(w), edge_(chain.edges(w)),
        pair_rows_(w + chain.data().row_pair() * chain.row_size()) {
    mask(allowed);
  }
  ChainDecoder(const Chain<T>& chain, const SparseWeights& weights, const AllowedEdges& allowed,
               std::size_t table_bytes = kTableBytes, KnownLabels known = {})
    requires std::is_same_v<T, float>
      : chain_(chain), table_bytes_(table_bytes), known_(known), sparse_(&weights),
        edge_(chain.edges_of(weights.tail().data() + chain.data().n_dense * chain.row_size())) {
    // Transitions, start, end and pair features stand together.
    pair_rows_ = edge_.A + (chain.n_labels() + 2) * chain.row_size();
    mask(allowed);
  }

  // Scores of all labels at all tokens: fills ws.S.
  void load(Scratch& ws, std::size_t i) const {
    ws.reserve(chain_.data().length(i), chain_.row_size());
    load_tokens(std::size_t(chain_.data().offsets[i]), chain_.data().length(i), ws.S.data());
    chain_.load_steps(ws, i, edge_, pair_rows_);
  }
  // The edges that load() and into() go with, those that are not allowed at minus infinity.
  const Edges<T>& edges() const { return edge_; }

  // Best labelling of every sequence into labels[tokens], its score into scores[n].
  void best(int threads, std::int32_t* labels, double* scores) const {
    const std::size_t Lp = chain_.row_size();
    over_sequences(threads, [&](Scratch& ws, std::size_t i) {
      const Windows windows = windows_of(i);
      const AlignedArray<T> kept = forward(ws, i, windows);
      const T* last = ws.D.data() + windows.rows(windows.count - 1) * Lp;
      std::size_t label = chain_.best_end(last, edge_);
      scores[i] = double(last[label] + edge_.end[label]);
      require_possible(i, scores[i]);
      std::int32_t* out = labels + chain_.data().offsets[i];
      out[windows.tokens - 1] = std::int32_t(label);
      backward(ws, i, windows, kept, [&](std::size_t t, std::size_t row) {
        if (t == 0) return;
        label = chain_.best_before(ws.D.data() + (row - 1) * Lp, chain_.into(ws, edge_, row) + label);
        out[t - 1] = std::int32_t(label);
      });
    });
  }

  // Σ_i max_y [l_i(y) - w.Δf_i(y)], added up in the order of the sequences.
  double hinge(int threads) const {
    std::vector<double> slack(chain_.n_examples());
    over_sequences(threads, [&](Scratch& ws, std::size_t i) {
      load(ws, i);
      slack[i] = chain_.example_weight(i) * std::max(chain_.oracle_loaded(ws, i, edge_).F, 0.0);
    });
    double sum = 0.0;
    for (const double x : slack) sum += x;
    return sum;
  }

  // w.f(x, y) of given labellings.
  void score(int threads, const std::int32_t* labels, double* scores) const {
    const std::size_t Lp = chain_.row_size();
    over_sequences(threads, [&](Scratch& ws, std::size_t i) {
      const Windows windows = windows_of(i);
      const std::int32_t* y = labels + chain_.data().offsets[i];
      double sum = double(edge_.start[y[0]]) + double(edge_.end[y[windows.tokens - 1]]);
      for (std::size_t k = 0; k < windows.count; ++k) {
        load(ws, i, windows, k);
        for (std::size_t row = 1; row <= windows.rows(k); ++row) {
          const std::size_t t = windows.begin(k) + row - 1, l = std::size_t(y[t]);
          sum += double(ws.S[row * Lp + l]);
          if (t > 0) sum += double(chain_.into(ws, edge_, row)[std::size_t(y[t - 1]) * Lp + l]);
        }
      }
      scores[i] = sum;
    });
  }

  // out[token][label]: score of the best labelling with that label at that token.
  void max_marginals(int threads, double* out) const {
    const std::size_t L = chain_.n_labels(), Lp = chain_.row_size();
    over_sequences(threads, [&](Scratch& ws, std::size_t i) {
      const Windows windows = windows_of(i);
      const AlignedArray<T> kept = forward(ws, i, windows);
      std::vector<double> after(edge_.end, edge_.end + L), next(L);  // best completion
      backward(ws, i, windows, kept, [&](std::size_t t, std::size_t row) {
        double* scores = out + (std::size_t(chain_.data().offsets[i]) + t) * L;
        for (std::size_t l = 0; l < L; ++l) scores[l] = double(ws.D[row * Lp + l]) + after[l];
        if (t == 0) return;
        next.assign(L, -std::numeric_limits<double>::infinity());
        const T* A = chain_.into(ws, edge_, row);
        for (std::size_t p = 0; p < L; ++p) {
          for (std::size_t l = 0; l < L; ++l) {
            next[p] = std::max(next[p], double(A[p * Lp + l]) + double(ws.S[row * Lp + l]) + after[l]);
          }
        }
        after.swap(next);
      });
    });
  }

  // The k best labellings of every sequence, best first; fewer where fewer exist.
  std::vector<std::vector<Labelling>> kbest(int threads, std::size_t k) const {
    std::vector<std::vector<Labelling>> result(chain_.n_examples());
    over_sequences(threads, [&](Scratch& ws, std::size_t i) {
      result[i] = kbest_of(ws, i, k);
      require_possible(i, result[i].empty() ? -std::numeric_limits<double>::infinity() : result[i][0].score);
    });
    return result;
  }

  // Only reads and sums the weight rows that the oracle reads: the memory limit of an exact pass.
  double gather() const {
    auto ws = chain_.workspace();
    double sum = 0.0;
    for (std::size_t i = 0; i < chain_.n_examples(); ++i) {
      Scratch& scratch = static_cast<Scratch&>(*ws);
      load(scratch, i);
      sum += double(scratch.S[0]);
    }
    return sum;
  }

 protected:
  void mask(const AllowedEdges& allowed) {
    if (!allowed.any()) return;
    const std::size_t L = chain_.n_labels(), Lp = chain_.row_size();
    constexpr T kNever = -std::numeric_limits<T>::infinity();
    masked_.reset((L + 2) * Lp);
    T* A = masked_.data();
    std::copy(edge_.A, edge_.A + (L + 2) * Lp, A);  // transitions, start and end stand together
    const auto forbid = [&](T* row, std::span<const std::uint8_t> mask) {
      for (std::size_t l = 0; l < mask.size(); ++l) {
        if (mask[l] == 0) row[l] = kNever;
      }
    };
    for (std::size_t p = 0; p < L && !allowed.transition.empty(); ++p) {
      forbid(A + p * Lp, allowed.transition.subspan(p * L, L));
    }
    forbid(A + L * Lp, allowed.start);
    forbid(A + (L + 1) * Lp, allowed.end);
    edge_ = {A, A + L * Lp, A + (L + 1) * Lp};
  }

  void load_tokens(std::size_t token, std::size_t n, T* S) const {
    add_emissions(token, n, S);
    if (!known_.empty()) keep_known(token, n, S);
  }
  void add_emissions(std::size_t token, std::size_t n, T* S) const {
    if constexpr (std::is_same_v<T, float>) {
      if (sparse_ != nullptr) {
        sparse_->emissions(chain_.data(), token, n, S);
        chain_.emissions().add_dense(token, n, sparse_->tail().data(), S);
        return;
      }
    }
    chain_.emissions().load(token, n, w_, S);
  }
  // Where a label is known, no other one has a finite score: the recursions over paths then look at the
  // paths through the known labels only, and are as exact as without.
  void keep_known(std::size_t token, std::size_t n, T* S) const {
    const std::size_t L = chain_.n_labels(), Lp = chain_.row_size();
    constexpr T kNever = -std::numeric_limits<T>::infinity();
    for (std::size_t t = 0; t < n; ++t) {
      const std::int32_t label = known_[token + t];
      if (label < 0) continue;
      T* row = S + t * Lp;
      const T score = row[label];
      std::fill_n(row, L, kNever);
      row[label] = score;
    }
  }

  // ---- windows of a sequence: one, unless its tables would be too large ------------------------

  struct Windows {
    std::size_t tokens, size, count;  // of the sequence, of a window; number of windows
    std::size_t begin(std::size_t k) const { return k * size; }
    std::size_t rows(std::size_t k) const { return std::min(size, tokens - begin(k)); }
  };

  Windows windows_of(std::size_t i) const {
    constexpr std::size_t kLeast = 16;
    const std::size_t n = chain_.data().length(i);
    const std::size_t rows = 2 + (chain_.has_pairs() ? chain_.n_labels() : 0);
    const std::size_t bytes = rows * chain_.row_size() * sizeof(T);  // a token
    if (n <= table_bytes_ / bytes) return {n, n, 1};
    const std::size_t size = std::max(kLeast, table_bytes_ / 4 / bytes);
    return {n, size, (n + size - 1) / size};
  }

  // The scores of window k, from row 1 of ws.S on. Row 0 belongs to the token before it: no scores.
  void load(Scratch& ws, std::size_t i, const Windows& windows, std::size_t k) const {
    const std::size_t n = windows.rows(k), Lp = chain_.row_size();
    const std::size_t token = std::size_t(chain_.data().offsets[i]) + windows.begin(k);
    ws.reserve(n + 1, Lp);
    std::fill_n(ws.S.data(), Lp, T(0));
    load_tokens(token, n, ws.S.data() + Lp);
    chain_.load_step_rows(ws, token - 1, k > 0 ? 1 : 2, n + 1, edge_, pair_rows_);
  }

  // Forward scores of window k into ws.D, where row 0 is the last token of the window before it.
  void forward(Scratch& ws, std::size_t i, const Windows& windows, std::size_t k, const AlignedArray<T>& kept) const {
    load(ws, i, windows, k);
    const T* before = k > 0 ? kept.data() + (k - 1) * chain_.row_size() : edge_.start;
    chain_.forward_rows(ws, edge_, before, k > 0 ? 0 : 1, windows.rows(k) + 1);
  }

  // Forward scores of all windows: those of the last one stay in ws.D; of the others the last row is
  // returned.
  AlignedArray<T> forward(Scratch& ws, std::size_t i, const Windows& windows) const {
    const std::size_t Lp = chain_.row_size();
    AlignedArray<T> kept((windows.count - 1) * Lp);
    for (std::size_t k = 0; k < windows.count; ++k) {
      forward(ws, i, windows, k, kept);
      if (k + 1 < windows.count) std::copy_n(ws.D.data() + windows.rows(k) * Lp, Lp, kept.data() + k * Lp);
    }
    return kept;
  }

  // take(t, row) for all tokens from the last to the first, with the rows of the token and of the one
  // before it in ws.S and ws.D.
  template <class Take>
  void backward(Scratch& ws, std::size_t i, const Windows& windows, const AlignedArray<T>& kept, Take&& take) const {
    for (std::size_t k = windows.count; k-- > 0;) {
      if (k + 1 < windows.count) forward(ws, i, windows, k, kept);
      for (std::size_t row = windows.rows(k); row > 0; --row) take(windows.begin(k) + row - 1, row);
    }
  }

  struct Candidate {
    double score;
    std::uint32_t label, rank;  // of the predecessor
  };

  // Where a prefix came from: which of the prefixes that end with the label before.
  struct Origin {
    std::uint32_t label, rank;
  };

  std::vector<Labelling> kbest_of(Scratch& ws, std::size_t i, std::size_t k) const {
    const Windows windows = windows_of(i);
    const std::size_t n = windows.tokens, L = chain_.n_labels(), Lp = chain_.row_size();
    // Up to k best prefixes that end with each label at each token, best first. Scores are kept of two
    // tokens, origins of all: those of token t begin at first[t], and count[t * L + l] are of label l.
    std::vector<std::vector<double>> before(L), here(L);
    std::vector<Origin> origins;
    std::vector<std::size_t> first(n);
    std::vector<std::uint32_t> count(n * L);
    std::vector<Candidate> pool, best;
    const auto keep_best = [&] {
      std::erase_if(pool, [](const Candidate& c) { return std::isinf(c.score); });
      const std::size_t m = std::min(k, pool.size());
      // Ties go to the smaller label, so that the order does not depend on the library.
      std::partial_sort(pool.begin(), pool.begin() + std::ptrdiff_t(m), pool.end(), [](const Candidate& a, const Candidate& b) {
        return a.score != b.score ? a.score > b.score
                                  : (a.label != b.label ? a.label < b.label : a.rank < b.rank);
      });
      best.assign(pool.begin(), pool.begin() + std::ptrdiff_t(m));
    };
    for (std::size_t window = 0; window < windows.count; ++window) {
      load(ws, i, windows, window);
      for (std::size_t row = 1; row <= windows.rows(window); ++row) {
        const std::size_t t = windows.begin(window) + row - 1;
        first[t] = origins.size();
        for (std::size_t l = 0; l < L; ++l) {
          const double score = double(ws.S[row * Lp + l]);
          pool.clear();
          if (t == 0) {
            pool.push_back({score + double(edge_.start[l]), 0, 0});
          } else {
            const T* A = chain_.into(ws, edge_, row);
            for (std::size_t p = 0; p < L; ++p) {
              for (std::size_t r = 0; r < before[p].size(); ++r) {
                pool.push_back({before[p][r] + double(A[p * Lp + l]) + score, std::uint32_t(p), std::uint32_t(r)});
              }
            }
          }
          keep_best();
          here[l].clear();
          for (const Candidate& c : best) {
            here[l].push_back(c.score);
            origins.push_back({c.label, c.rank});
          }
          count[t * L + l] = std::uint32_t(best.size());
        }
        before.swap(here);
      }
    }
    pool.clear();
    for (std::size_t l = 0; l < L; ++l) {
      for (std::size_t r = 0; r < before[l].size(); ++r) {
        pool.push_back({before[l][r] + double(edge_.end[l]), std::uint32_t(l), std::uint32_t(r)});
      }
    }
    keep_best();
    std::vector<Labelling> result;
    for (const Candidate& c : best) {
      Labelling path{c.score, std::vector<std::int32_t>(n)};
      Origin at{c.label, c.rank};
      for (std::size_t t = n; t-- > 0;) {
        path.labels[t] = std::int32_t(at.label);
        const std::uint32_t* counts = count.data() + t * L;
        at = origins[std::accumulate(counts, counts + at.label, first[t]) + at.rank];
      }
      result.push_back(std::move(path));
    }
    return result;
  }

  void require_possible(std::size_t i, double score) const {
    if (std::isinf(score) && score < 0) {
      throw BadInput("no labelling of sequence " + std::to_string(i) +
                     " uses only allowed transitions, starts and ends" + (known_.empty() ? "" : " and has the known labels"));
    }
  }

  template <class F>
  void over_sequences(int threads, F&& f) const {
    const std::size_t n = chain_.n_examples();
    const std::size_t shares = n_shares(threads, n);
    run_shares(shares, [&](std::size_t share) {
      auto ws = chain_.workspace();
      for (std::size_t i = n * share / shares; i < n * (share + 1) / shares; ++i) {
        f(static_cast<Scratch&>(*ws), i);
      }
    });
  }

  const Chain<T>& chain_;
  std::size_t table_bytes_;
  KnownLabels known_;
  const T* w_ = nullptr;
  const SparseWeights* sparse_ = nullptr;
  Edges<T> edge_;
  const T* pair_rows_ = nullptr;
  AlignedArray<T> masked_;
};

}  // namespace mm
