// A chain whose emissions go through a kernel k between tokens.
//
// Inside is an ordinary chain in which each distinct token is a sparse feature of its own. With
//   u[s][l] = C Σ α (label l of the truth - label l of the output, at the tokens that are s),
// the weights that it reads are the emission scores of the training tokens themselves,
//   w[t][l] = Σ_s k(t, s) u[s][l],
// while transitions, start and end have weights as ever (w = u). Oracle, margins, cells and
// recombination are those of the chain. What is different: a step that changes u at a token changes
// w at all of them, by a row of k; inner products of planes go through k (ChainData::kernel); and
// Ω(w) = Ω*(u) = ½ u.w.
#pragma once

#include <atomic>
#include <memory>

#include "chain.hpp"
#include "forwarding.hpp"
#include "row_cache.hpp"

namespace mm {

template <class T>
class KernelChain final : public Forwarding<T> {
 public:
  using Base = Structure<T>;
  using Workspace = typename Base::Workspace;

  // Scratch of the chain, and what a step needs to be brought into w.
  struct Scratch final : Chain<T>::Scratch {
    std::unique_ptr<Weights<T>> change;  // of u, in one step
    std::vector<std::size_t> places;     // where it is not zero
    std::vector<std::uint32_t> tokens;   // the distinct tokens among them
    AlignedArray<T> amount;              // [Lp], of one of them
    std::vector<const T*> rows;
    std::vector<std::uint32_t> missing;
    std::vector<double> fresh;           // rows of k that were not in the cache
    std::vector<T> narrow;
  };

  KernelChain(const ChainData& data, std::size_t cache_bytes)
      : chain_(data), kernel_(*data.kernel), cache_(kernel_.size(), kernel_.size(), cache_bytes) {}

  const Chain<T>& chain() const { return chain_; }

  bool thread_safe() const override { return kernel_.thread_safe(); }
  std::size_t cache_bytes() const override { return chain_.cache_bytes() + held_.load(std::memory_order_relaxed); }

  std::unique_ptr<Workspace> workspace() const override {
    auto ws = std::make_unique<Scratch>();
    chain_.prepare(*ws);
    return ws;
  }

  // ---- u into w --------------------------------------------------------------------------------

  bool maps_weights() const override { return true; }

  void accumulate(Workspace& base, std::size_t i, CodeView index, std::span<const CodeView> planes,
                  const double* coef, Weights<T>& weights) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    if (ws.change == nullptr) ws.change = std::make_unique<Weights<T>>(Weights<T>::recorder(this->n_weights()));
    ws.change->wipe();  // a step that failed may have left something
    chain_.accumulate(ws, i, index, planes, coef, *ws.change);
    ws.change->places(ws.places);
    const std::size_t Lp = this->row_size(), head = kernel_.size() * Lp;
    const T* change = ws.change->data();
    ws.tokens.clear();
    for (const std::size_t j : ws.places) {
      weights.sums()[j] += change[j];
      if (j >= head) {
        weights.data()[j] += change[j];
      } else if (ws.tokens.empty() || ws.tokens.back() != j / Lp) {
        ws.tokens.push_back(static_cast<std::uint32_t>(j / Lp));
      }
    }
    if (!weights.sums_only()) spread(ws, change, weights.data(), true);
  }

  // A step changes whole rows of w for each token of the part. (Rows of k that were not in the cache
  // are not counted: the schedule, and with it the result, would depend on the size of the cache.)
  double update_work(CodeView index) const override {
    double tokens = 0.0;
    CellReader reader(index, 0);
    for (CellToken t; reader.next(t);) ++tokens;
    const double vectors = double(this->row_size() * sizeof(T)) / 32.0;
    return tokens * 2.0 * vectors * double(kernel_.size());
  }

  void map_weights(Weights<T>& weights) const override {
    const std::size_t Lp = this->row_size(), head = kernel_.size() * Lp;
    const T* u = weights.sums();
    T* w = weights.data();
    std::fill(w, w + head, T(0));
    std::copy(u + head, u + weights.size(), w + head);
    Scratch ws;
    for (std::size_t s = 0; s < kernel_.size(); ++s) {
      if (std::any_of(u + s * Lp, u + (s + 1) * Lp, [](T x) { return x != T(0); })) ws.tokens.push_back(static_cast<std::uint32_t>(s));
    }
    spread(ws, u, w, false);
  }

 protected:
  const Base& base() const override { return chain_; }

 private:
  // Rows of k that are needed, or computed, at once.
  static constexpr std::size_t kTogether = 16;

  // w[t] += k(t, s) u[s] over all t, for each s of ws.tokens. One token after the other, so that
  // the sums do not depend on how many rows the cache can hold. Rows that are not in the cache come
  // into it if they may: where everything is computed anew they would only drive out the others.
  // While another engine of this problem has the cache, all rows are computed: nobody waits for
  // whoever may be asking a user's kernel.
  void spread(Scratch& ws, const T* u, T* w, bool keep) const {
    const CacheHold hold(*this);
    spread_with(ws, u, w, keep && hold.mine, hold.mine);
    if (hold.mine) held_.store(cache_.bytes(), std::memory_order_relaxed);
  }

  struct CacheHold {
    explicit CacheHold(const KernelChain& chain) : flag(chain.cache_taken_), mine(!flag.test_and_set(std::memory_order_acquire)) {}
    CacheHold(const CacheHold&) = delete;
    CacheHold& operator=(const CacheHold&) = delete;
    ~CacheHold() {
      if (mine) flag.clear(std::memory_order_release);
    }
    std::atomic_flag& flag;
    const bool mine;
  };

  void spread_with(Scratch& ws, const T* u, T* w, bool keep, bool look) const {
    const std::size_t m = kernel_.size(), Lp = this->row_size();
    const std::size_t together = keep ? std::min(kTogether, cache_.capacity()) : kTogether;
    const auto& vector = vector_code<T>();
    if (ws.amount.size() == 0) ws.amount.reset(Lp);
    for (std::size_t at = 0; at < ws.tokens.size(); at += together) {
      const TokenKernel::Tokens group = TokenKernel::Tokens(ws.tokens).subspan(at, std::min(together, ws.tokens.size() - at));
      ws.rows.assign(group.size(), nullptr);
      ws.missing.clear();
      for (std::size_t a = 0; a < group.size(); ++a) {
        if (look) ws.rows[a] = cache_.find(group[a]);
        if (ws.rows[a] == nullptr) ws.missing.push_back(group[a]);
      }
      ws.fresh.resize(ws.missing.size() * m);
      if (!ws.missing.empty()) kernel_.rows(ws.missing, ws.fresh.data());
      if (!keep) ws.narrow.resize(ws.missing.size() * m);
      for (std::size_t a = 0, fresh = 0; a < group.size(); ++a) {
        if (ws.rows[a] != nullptr) continue;
        const double* from = ws.fresh.data() + fresh * m;
        T* to = keep ? cache_.insert(group[a]) : ws.narrow.data() + fresh * m;
        for (std::size_t t = 0; t < m; ++t) to[t] = static_cast<T>(from[t]);
        ws.rows[a] = to;
        ++fresh;
      }
      for (std::size_t a = 0; a < group.size(); ++a) {
        std::copy_n(u + group[a] * Lp, Lp, ws.amount.data());
        vector.spread(ws.rows[a], m, ws.amount.data(), Lp, w);
      }
    }
  }

  Chain<T> chain_;
  const TokenKernel& kernel_;
  mutable RowCache<T> cache_;  // used by the one thread that moves w and holds the flag
  mutable std::atomic_flag cache_taken_;
  mutable std::atomic<std::size_t> held_{0};  // bytes of the cache
};

}  // namespace mm
