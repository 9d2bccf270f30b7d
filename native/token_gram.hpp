// Inner products between the tokens of one sequence, kept as a lower triangle.
//
// Every Gram entry of a chain's planes is a sum of these, so a plane need not store its features.
// Planes of one part meet in few pairs of tokens, mostly neighbours. So an entry is computed when it is
// first asked for, by walking along the sorted features of both tokens. Where a long plane asks for
// many, all are made at once: sparse features are joined through a small hash table, and the work is
// the number of features that two tokens really share, not the number of pairs. Both ways give the
// same number, bit for bit: products are added up in 4-byte numbers in the order of the features.
#pragma once

#include <atomic>
#include <cmath>
#include <limits>

#include "token_data.hpp"

namespace mm {

class TokenGramBuilder {
 public:
  // out[t (t + 1) / 2 + s] for s <= t
  void build(const TokenData& data, std::size_t first, std::size_t n_tokens, float* out) {
    if (data.kernel != nullptr) return through_kernel(data, first, n_tokens, out);
    std::fill(out, out + n_tokens * (n_tokens + 1) / 2, 0.0f);
    if (!data.indptr.empty()) sparse(data, first, n_tokens, out);
    if (data.n_dense > 0) dense(data, first, n_tokens, out);
  }

 private:
  void through_kernel(const TokenData& data, std::size_t first, std::size_t n_tokens, float* out) {
    const TokenKernel::Tokens tokens = data.indices.subspan(first, n_tokens);
    block_.resize(n_tokens * n_tokens);
    data.kernel->block(tokens, tokens, block_.data());
    for (std::size_t t = 0; t < n_tokens; ++t) {
      for (std::size_t s = 0; s <= t; ++s) *out++ = static_cast<float>(block_[t * n_tokens + s]);
    }
  }

  struct Entry {
    std::uint32_t token;
    std::int32_t next;  // the entry of an earlier token with the same feature
    float value;
  };

  void sparse(const TokenData& data, std::size_t first, std::size_t n_tokens, float* out) {
    const std::size_t n = std::size_t(data.indptr[first + n_tokens] - data.indptr[first]);
    std::size_t slots = 64;
    int shift = 32 - 6;
    while (slots < 2 * n) slots *= 2, --shift;
    keys_.assign(slots, 0);
    heads_.assign(slots, -1);
    entries_.clear();
    for (std::size_t t = 0; t < n_tokens; ++t) {
      float* row = out + t * (t + 1) / 2;
      for (std::int64_t e = data.indptr[first + t]; e < data.indptr[first + t + 1]; ++e) {
        const std::uint32_t f = data.indices[e];
        const float value = data.ones() ? 1.0f : static_cast<float>(data.value(std::size_t(e)));
        std::size_t at = (f * 2654435769u) >> shift;
        while (heads_[at] >= 0 && keys_[at] != f) at = (at + 1) & (slots - 1);
        for (std::int32_t k = heads_[at]; k >= 0; k = entries_[k].next) {
          row[entries_[k].token] += value * entries_[k].value;
        }
        row[t] += value * value;
        entries_.push_back({static_cast<std::uint32_t>(t), heads_[at], value});
        keys_[at] = f;
        heads_[at] = static_cast<std::int32_t>(entries_.size()) - 1;
      }
    }
  }

  static void dense(const TokenData& data, std::size_t first, std::size_t n_tokens, float* out) {
    for (std::size_t t = 0; t < n_tokens; ++t) {
      for (std::size_t s = 0; s <= t; ++s) *out++ += dense_product(data, first + t, first + s);
    }
  }

 public:
  // The inner product of two tokens by their features (there is no kernel).
  static float product(const TokenData& data, std::size_t a, std::size_t b) {
    float sum = data.indptr.empty() ? 0.0f : sparse_product(data, a, b);
    if (data.n_dense > 0) sum += dense_product(data, a, b);
    return sum;
  }

 private:
  static float sparse_product(const TokenData& data, std::size_t a, std::size_t b) {
    const std::uint32_t* f = data.indices.data();
    std::size_t p = std::size_t(data.indptr[a]), q = std::size_t(data.indptr[b]);
    const std::size_t p_end = std::size_t(data.indptr[a + 1]), q_end = std::size_t(data.indptr[b + 1]);
    if (data.ones()) {
      if (a == b) return static_cast<float>(p_end - p);
      std::uint32_t shared = 0;
      while (p < p_end && q < q_end) {  // without branches that depend on the features
        const std::uint32_t fp = f[p], fq = f[q];
        shared += fp == fq;
        p += fp <= fq;
        q += fq <= fp;
      }
      return static_cast<float>(shared);
    }
    float sum = 0.0f;
    while (p < p_end && q < q_end) {
      const std::uint32_t fp = f[p], fq = f[q];
      if (fp == fq) sum += static_cast<float>(data.value(p)) * static_cast<float>(data.value(q));
      p += fp <= fq;
      q += fq <= fp;
    }
    return sum;
  }
  static float dense_product(const TokenData& data, std::size_t a, std::size_t b) {
    const std::size_t d = data.n_dense;
    const auto dot = [d](const auto* x, const auto* y) {
      double sum = 0.0;
      for (std::size_t j = 0; j < d; ++j) sum += double(x[j]) * double(y[j]);
      return static_cast<float>(sum);
    };
    if (data.dense32 != nullptr) return dot(data.dense32 + a * d, data.dense32 + b * d);
    return dot(data.dense64 + a * d, data.dense64 + b * d);
  }

  std::vector<std::uint32_t> keys_;
  std::vector<std::int32_t> heads_;
  std::vector<Entry> entries_;
  std::vector<double> block_;
};

// The triangle of one sequence, filled as it is asked for. Engines of several threads may share it:
// whoever misses an entry computes it, and all come to the same number.
class LazyTokenGram {
 public:
  // A triangle and, behind it, whether it is complete.
  static std::size_t floats(std::size_t n_tokens) { return n_tokens * (n_tokens + 1) / 2 + 1; }
  static void start(float* memory, std::size_t n_tokens) {
    std::fill(memory, memory + floats(n_tokens), std::numeric_limits<float>::quiet_NaN());
  }

  LazyTokenGram(const TokenData& data, std::size_t first, std::size_t n_tokens, float* memory)
      : data_(data), first_(first), n_(n_tokens), G_(memory) {}

  // The inner product of tokens s and t.
  float operator()(std::size_t s, std::size_t t) const {
    const std::size_t hi = s > t ? s : t, lo = s > t ? t : s;
    const std::atomic_ref<float> entry(G_[hi * (hi + 1) / 2 + lo]);
    float known = entry.load(std::memory_order_relaxed);
    if (std::isnan(known)) [[unlikely]] {
      known = TokenGramBuilder::product(data_, first_ + hi, first_ + lo);
      entry.store(known, std::memory_order_relaxed);
    }
    return known;
  }

  // Make all entries at once, unless that was done.
  void complete(TokenGramBuilder& builder, std::vector<float>& scratch) const {
    const std::size_t size = floats(n_) - 1;
    const std::atomic_ref<float> mark(G_[size]);
    if (!std::isnan(mark.load(std::memory_order_acquire))) return;
    scratch.resize(size);
    builder.build(data_, first_, n_, scratch.data());
    for (std::size_t k = 0; k < size; ++k) std::atomic_ref<float>(G_[k]).store(scratch[k], std::memory_order_relaxed);
    mark.store(1.0f, std::memory_order_release);
  }

 private:
  const TokenData& data_;
  std::size_t first_, n_;
  float* G_;
};

}  // namespace mm
