// What a trained chain is asked: best labellings, k-best, scores, max-marginals.
#pragma once

#include <cmath>

#include "chain.hpp"
#include "parallel.hpp"
#include "sparse_weights.hpp"

namespace mm {

// Which edges a labelling may use; empty means all of them. [L][L], [L], [L], non-zero = allowed.
struct AllowedEdges {
  std::span<const std::uint8_t> transition, start, end;
  bool any() const { return !transition.empty() || !start.empty() || !end.empty(); }
};

// One labelling of a sequence.
struct Labelling {
  double score;
  std::vector<std::int32_t> labels;
};

template <class T>
class ChainDecoder {
 public:
  using Scratch = typename Chain<T>::Scratch;

  ChainDecoder(const Chain<T>& chain, const T* w, const AllowedEdges& allowed)
      : chain_(chain), w_(w), edge_(chain.edges(w)),
        pair_rows_(w + chain.data().row_pair() * chain.row_size()) {
    mask(allowed);
  }
  ChainDecoder(const Chain<T>& chain, const SparseWeights& weights, const AllowedEdges& allowed)
    requires std::is_same_v<T, float>
      : chain_(chain), sparse_(&weights),
        edge_(chain.edges_of(weights.tail().data() + chain.data().n_dense * chain.row_size())) {
    // Transitions, start, end and pair features stand together.
    pair_rows_ = edge_.A + (chain.n_labels() + 2) * chain.row_size();
    mask(allowed);
  }

  // Best labelling of every sequence into labels[tokens], its score into scores[n].
  void best(int threads, std::int32_t* labels, double* scores) const {
    over_sequences(threads, [&](Scratch& ws, std::size_t i) {
      load(ws, i);
      scores[i] = chain_.decode(ws, i, edge_, nullptr);
      require_possible(i, scores[i]);
      std::int32_t* out = labels + chain_.data().offsets[i];
      for (std::size_t t = 0; t < chain_.data().length(i); ++t) out[t] = std::int32_t(ws.y[t]);
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
      const std::size_t n = chain_.data().length(i);
      const std::int32_t* y = labels + chain_.data().offsets[i];
      load(ws, i);
      double sum = double(edge_.start[y[0]]) + double(edge_.end[y[n - 1]]);
      for (std::size_t t = 0; t < n; ++t) {
        sum += double(ws.S[t * Lp + std::size_t(y[t])]);
        if (t > 0) sum += double(chain_.into(ws, edge_, t)[std::size_t(y[t - 1]) * Lp + std::size_t(y[t])]);
      }
      scores[i] = sum;
    });
  }

  // out[token][label]: score of the best labelling with that label at that token.
  void max_marginals(int threads, double* out) const {
    const std::size_t L = chain_.n_labels(), Lp = chain_.row_size();
    over_sequences(threads, [&](Scratch& ws, std::size_t i) {
      const std::size_t n = chain_.data().length(i);
      load(ws, i);
      chain_.forward(ws, i, edge_);
      std::vector<double> after(edge_.end, edge_.end + L), next(L);  // best completion
      for (std::size_t t = n; t-- > 0;) {
        double* row = out + (std::size_t(chain_.data().offsets[i]) + t) * L;
        for (std::size_t l = 0; l < L; ++l) row[l] = double(ws.D[t * Lp + l]) + after[l];
        if (t == 0) break;
        next.assign(L, -std::numeric_limits<double>::infinity());
        const T* A = chain_.into(ws, edge_, t);
        for (std::size_t p = 0; p < L; ++p) {
          for (std::size_t l = 0; l < L; ++l) {
            next[p] = std::max(next[p], double(A[p * Lp + l]) + double(ws.S[t * Lp + l]) + after[l]);
          }
        }
        after.swap(next);
      }
    });
  }

  // The k best labellings of every sequence, best first; fewer where fewer exist.
  std::vector<std::vector<Labelling>> kbest(int threads, std::size_t k) const {
    std::vector<std::vector<Labelling>> result(chain_.n_examples());
    over_sequences(threads, [&](Scratch& ws, std::size_t i) {
      load(ws, i);
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

 private:
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

  // Scores of all labels at all tokens: fills ws.S.
  void load(Scratch& ws, std::size_t i) const {
    if constexpr (std::is_same_v<T, float>) {
      if (sparse_ != nullptr) {
        const std::size_t first = std::size_t(chain_.data().offsets[i]), n = chain_.data().length(i);
        ws.reserve(n, chain_.row_size());
        sparse_->emissions(chain_.data(), first, n, ws.S.data());
        chain_.add_dense(i, sparse_->tail().data(), ws.S.data());
        chain_.load_steps(ws, i, edge_, pair_rows_);
        return;
      }
    }
    chain_.load_all(ws, i, w_);
    chain_.load_steps(ws, i, edge_, pair_rows_);
  }

  struct Candidate {
    double score;
    std::uint32_t label, rank;  // of the predecessor
  };

  std::vector<Labelling> kbest_of(const Scratch& ws, std::size_t i, std::size_t k) const {
    const std::size_t n = chain_.data().length(i), L = chain_.n_labels(), Lp = chain_.row_size();
    // heads[t][l]: up to k best prefixes that end with label l at token t, best first
    std::vector<std::vector<std::vector<Candidate>>> heads(n, std::vector<std::vector<Candidate>>(L));
    std::vector<Candidate> pool;
    const auto keep_best = [&](std::vector<Candidate>& out) {
      const std::size_t m = std::min(k, pool.size());
      // Ties go to the smaller label, so that the order does not depend on the library.
      std::partial_sort(pool.begin(), pool.begin() + std::ptrdiff_t(m), pool.end(), [](const Candidate& a, const Candidate& b) {
        return a.score != b.score ? a.score > b.score
                                  : (a.label != b.label ? a.label < b.label : a.rank < b.rank);
      });
      out.assign(pool.begin(), pool.begin() + std::ptrdiff_t(m));
    };
    for (std::size_t t = 0; t < n; ++t) {
      for (std::size_t l = 0; l < L; ++l) {
        const double here = double(ws.S[t * Lp + l]);
        pool.clear();
        if (t == 0) {
          pool.push_back({here + double(edge_.start[l]), 0, 0});
        } else {
          for (std::size_t p = 0; p < L; ++p) {
            const auto& from = heads[t - 1][p];
            for (std::size_t r = 0; r < from.size(); ++r) {
              pool.push_back({from[r].score + double(chain_.into(ws, edge_, t)[p * Lp + l]) + here, std::uint32_t(p), std::uint32_t(r)});
            }
          }
        }
        std::erase_if(pool, [](const Candidate& c) { return std::isinf(c.score); });
        keep_best(heads[t][l]);
      }
    }
    pool.clear();
    for (std::size_t l = 0; l < L; ++l) {
      for (std::size_t r = 0; r < heads[n - 1][l].size(); ++r) {
        pool.push_back({heads[n - 1][l][r].score + double(edge_.end[l]), std::uint32_t(l), std::uint32_t(r)});
      }
    }
    std::erase_if(pool, [](const Candidate& c) { return std::isinf(c.score); });
    std::vector<Candidate> finals;
    keep_best(finals);
    std::vector<Labelling> result;
    for (const Candidate& c : finals) {
      Labelling path{c.score, std::vector<std::int32_t>(n)};
      std::uint32_t label = c.label, rank = c.rank;
      for (std::size_t t = n; t-- > 0;) {
        path.labels[t] = std::int32_t(label);
        const Candidate& head = heads[t][label][rank];
        label = head.label;
        rank = head.rank;
      }
      result.push_back(std::move(path));
    }
    return result;
  }

  static void require_possible(std::size_t i, double score) {
    if (std::isinf(score) && score < 0) {
      throw BadInput("no labelling of sequence " + std::to_string(i) +
                     " uses only allowed transitions, starts and ends");
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
  const T* w_ = nullptr;
  const SparseWeights* sparse_ = nullptr;
  Edges<T> edge_;
  const T* pair_rows_ = nullptr;
  AlignedArray<T> masked_;
};

}  // namespace mm
