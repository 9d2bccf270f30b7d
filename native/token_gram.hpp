// Inner products between the tokens of one sequence, kept as a lower triangle.
//
// Every Gram entry of a chain's planes is a sum of these, so a plane need not store its features.
// Sparse features are joined through a small hash table: the work is the number of features that
// two tokens really share, not the number of pairs.
#pragma once

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
    const std::size_t d = data.n_dense;
    const auto add = [&](const auto* x) {
      for (std::size_t t = 0; t < n_tokens; ++t) {
        const auto* a = x + (first + t) * d;
        for (std::size_t s = 0; s <= t; ++s) {
          const auto* b = x + (first + s) * d;
          double sum = 0.0;
          for (std::size_t j = 0; j < d; ++j) sum += double(a[j]) * double(b[j]);
          out[t * (t + 1) / 2 + s] += static_cast<float>(sum);
        }
      }
    };
    if (data.dense32 != nullptr) add(data.dense32);
    if (data.dense64 != nullptr) add(data.dense64);
  }

  std::vector<std::uint32_t> keys_;
  std::vector<std::int32_t> heads_;
  std::vector<Entry> entries_;
  std::vector<double> block_;
};

}  // namespace mm
