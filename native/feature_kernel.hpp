// Kernels that are functions of the inner product of two tokens' features:
//   linear  x.x'        poly  (γ x.x' + c)^d        rbf  exp(-γ |x - x'|²)
//
// A row of inner products goes through an inverted index: for each sparse feature of a token, the
// tokens that have it too. All sums run over the features in ascending order, sparse ones first,
// whichever way they are computed; so a pair of tokens always has the very same inner product.
#pragma once

#include <cmath>

#include "token_kernel.hpp"

namespace mm {

// The features of some tokens: compressed rows, dense columns, or both.
struct TokenFeatures {
  std::span<const std::int64_t> indptr;    // [n + 1], empty without sparse features
  std::span<const std::uint32_t> indices;  // ascending within a token
  const float* values = nullptr;           // at most one of the two; neither: all ones
  const double* values64 = nullptr;
  const double* dense = nullptr;           // [n][n_dense]
  std::size_t n = 0, n_sparse = 0, n_dense = 0;

  double value(std::size_t e) const {
    return values != nullptr ? double(values[e]) : values64 != nullptr ? values64[e] : 1.0;
  }
};

struct KernelFunction {
  enum class Kind { kLinear, kPoly, kRbf };
  Kind kind = Kind::kLinear;
  double gamma = 1.0, coef0 = 0.0;
  int degree = 1;

  // k of two tokens with this inner product and these squared lengths.
  double operator()(double dot, double square_a, double square_b) const {
    switch (kind) {
      case Kind::kLinear: return dot;
      case Kind::kPoly: return power(gamma * dot + coef0);
      default: return std::exp(-gamma * std::max(0.0, square_a + square_b - 2.0 * dot));
    }
  }

  // Inner products into values, a row at a time: no switch in the loop.
  void apply(double square, const double* squares, std::size_t n, double* row) const {
    if (kind == Kind::kLinear) return;
    if (kind == Kind::kPoly) {
      for (std::size_t t = 0; t < n; ++t) row[t] = power(gamma * row[t] + coef0);
      return;
    }
    for (std::size_t t = 0; t < n; ++t) row[t] = (*this)(row[t], square, squares[t]);
  }

 private:
  double power(double base) const {
    double result = base;
    for (int k = 1; k < degree; ++k) result *= base;
    return result;
  }
};

class FeatureKernel final : public TokenKernel {
 public:
  // The arrays of `tokens` must outlive the kernel.
  FeatureKernel(const KernelFunction& function, const TokenFeatures& tokens, std::uint64_t data_hash)
      : function_(function), tokens_(tokens), data_hash_(data_hash), squares_(tokens.n),
        columns_(tokens.n_dense * tokens.n) {
    invert();
    for (std::size_t t = 0; t < tokens_.n; ++t) {
      for (std::size_t j = 0; j < tokens_.n_dense; ++j) {
        columns_[j * tokens_.n + t] = tokens_.dense[t * tokens_.n_dense + j];
      }
      squares_[t] = dot(tokens_, t, tokens_, t);
    }
  }

  std::size_t size() const override { return tokens_.n; }
  std::uint64_t data_hash() const override { return data_hash_; }

  void rows(Tokens which, double* out) const override {
    for (std::size_t a = 0; a < which.size(); ++a) row(tokens_, which[a], squares_[which[a]], out + a * size());
  }

  void block(Tokens first, Tokens second, double* out) const override {
    for (const std::uint32_t a : first) {
      for (const std::uint32_t b : second) {
        *out++ = function_(dot(tokens_, a, tokens_, b), squares_[a], squares_[b]);
      }
    }
  }

  // The same between other tokens, with the same features, and these: out[other][t].
  void rows_of(const TokenFeatures& others, double* out) const {
    for (std::size_t a = 0; a < others.n; ++a) row(others, a, dot(others, a, others, a), out + a * size());
  }

 private:
  struct Posting {
    std::uint32_t token;
    float value;
  };

  void invert() {
    if (tokens_.indptr.empty()) return;
    starts_.assign(tokens_.n_sparse + 1, 0);
    for (const std::uint32_t f : tokens_.indices) ++starts_[f + 1];
    for (std::size_t f = 0; f < tokens_.n_sparse; ++f) starts_[f + 1] += starts_[f];
    postings_.resize(tokens_.indices.size());
    if (tokens_.values64 != nullptr) wide_.resize(postings_.size());
    std::vector<std::size_t> at(starts_.begin(), starts_.end());
    for (std::size_t t = 0; t < tokens_.n; ++t) {
      for (std::size_t e = std::size_t(tokens_.indptr[t]); e < std::size_t(tokens_.indptr[t + 1]); ++e) {
        const std::size_t place = at[tokens_.indices[e]]++;
        postings_[place] = {static_cast<std::uint32_t>(t), static_cast<float>(tokens_.value(e))};
        if (!wide_.empty()) wide_[place] = tokens_.value(e);
      }
    }
  }

  void row(const TokenFeatures& of, std::size_t a, double square, double* out) const {
    const std::size_t n = size(), d = tokens_.n_dense;
    std::fill(out, out + n, 0.0);
    if (!of.indptr.empty()) {
      for (std::size_t e = std::size_t(of.indptr[a]); e < std::size_t(of.indptr[a + 1]); ++e) {
        const double x = of.value(e);
        const Posting* end = postings_.data() + starts_[of.indices[e] + 1];
        const Posting* p = postings_.data() + starts_[of.indices[e]];
        if (wide_.empty()) {
          for (; p < end; ++p) out[p->token] += x * double(p->value);
        } else {
          for (const double* v = wide_.data() + starts_[of.indices[e]]; p < end; ++p) out[p->token] += x * *v++;
        }
      }
    }
    constexpr std::size_t kTile = 2048;  // of the row, which stays in the cache over all columns
    for (std::size_t begin = 0; begin < n && d > 0; begin += kTile) {
      const std::size_t end = std::min(begin + kTile, n);
      for (std::size_t j = 0; j < d; ++j) {
        const double x = of.dense[a * d + j];
        const double* column = columns_.data() + j * n;
        for (std::size_t t = begin; t < end; ++t) out[t] += x * column[t];
      }
    }
    function_.apply(square, squares_.data(), n, out);
  }

  static double dot(const TokenFeatures& x, std::size_t a, const TokenFeatures& y, std::size_t b) {
    double sum = 0.0;
    if (!x.indptr.empty()) {
      std::size_t e = std::size_t(x.indptr[a]), f = std::size_t(y.indptr[b]);
      const std::size_t e_end = std::size_t(x.indptr[a + 1]), f_end = std::size_t(y.indptr[b + 1]);
      while (e < e_end && f < f_end) {
        if (x.indices[e] == y.indices[f]) {
          sum += x.value(e++) * y.value(f++);
        } else {
          x.indices[e] < y.indices[f] ? ++e : ++f;
        }
      }
    }
    for (std::size_t j = 0; j < x.n_dense; ++j) sum += x.dense[a * x.n_dense + j] * y.dense[b * x.n_dense + j];
    return sum;
  }

  KernelFunction function_;
  TokenFeatures tokens_;
  std::uint64_t data_hash_;
  std::vector<double> squares_;         // squared length of each token
  std::vector<double> columns_;         // dense features, [n_dense][n]
  std::vector<std::size_t> starts_;     // of each sparse feature in postings_
  std::vector<Posting> postings_;
  std::vector<double> wide_;            // their values, where these have 8 bytes
};

// Entries of a matrix that somebody else computed.
class MatrixKernel final : public TokenKernel {
 public:
  // Distinct token t is row and column place[t] of the matrix, [side][side].
  MatrixKernel(const double* matrix, std::size_t side, std::vector<std::uint32_t> place, std::uint64_t data_hash)
      : matrix_(matrix), side_(side), place_(std::move(place)), data_hash_(data_hash) {}

  std::size_t size() const override { return place_.size(); }
  std::uint64_t data_hash() const override { return data_hash_; }

  void rows(Tokens which, double* out) const override {
    for (const std::uint32_t a : which) {
      const double* row = matrix_ + place_[a] * side_;
      for (const std::uint32_t t : place_) *out++ = row[t];
    }
  }
  void block(Tokens first, Tokens second, double* out) const override {
    for (const std::uint32_t a : first) {
      for (const std::uint32_t b : second) *out++ = matrix_[place_[a] * side_ + place_[b]];
    }
  }

 private:
  const double* matrix_;
  std::size_t side_;
  std::vector<std::uint32_t> place_;
  std::uint64_t data_hash_;
};

}  // namespace mm
