// Emissions: scores x.W[:, l] of the labels of tokens, from sparse and dense features, and steps of W
// along them. W has a row for each feature and the labels along the row, padded to Lp.
//
// Whole rows of scores go through the vector code; a few labels of one token are summed in registers.
#pragma once

#include "vector_code.hpp"
#include "token_data.hpp"
#include "weights.hpp"

namespace mm {

// The sparse features of one token, straight from the data.
struct TokenRow {
  TokenRow(const TokenData& data, std::size_t token) {
    if (data.indptr.empty()) return;
    const std::size_t begin = std::size_t(data.indptr[token]);
    features = data.indices.subspan(begin, std::size_t(data.indptr[token + 1]) - begin);
    if (data.values != nullptr) narrow = data.values + begin;
    if (data.values64 != nullptr) wide = data.values64 + begin;
  }
  bool ones() const { return narrow == nullptr && wide == nullptr; }
  // f(function that gives the k-th value), for loops over features that are not all ones.
  template <class F>
  void with_values(F&& f) const {
    if (wide != nullptr) {
      f([v = wide](std::size_t k) { return v[k]; });
    } else {
      f([v = narrow](std::size_t k) { return v[k]; });
    }
  }
  std::span<const std::uint32_t> features;
  const float* narrow = nullptr;
  const double* wide = nullptr;
};

template <class T>
class Emissions {
 public:
  Emissions(const TokenData& data, std::size_t Lp) : data_(data), Lp_(Lp) {}

  // S[t][l] of n tokens, the first of which is `token`; W begins at w.
  void load(std::size_t token, std::size_t n, const T* w, T* S) const {
    const auto& vector = vector_code<T>();
    if (!data_.indptr.empty()) {
      const auto sum = [&](const auto emissions, const auto* values) {
        emissions(w, Lp_, data_.indptr.data() + token, data_.indices.data(), values, n, data_.indptr[token + n], S);
      };
      if (data_.values64 == nullptr) sum(vector.emissions, data_.values); else sum(vector.emissions_f64, data_.values64);
    } else {
      std::fill(S, S + n * Lp_, T(0));
    }
    add_dense(token, n, w + data_.row_dense() * Lp_, S);
  }

  // S += scores of the dense features of n tokens, whose weights are the given rows.
  void add_dense(std::size_t token, std::size_t n, const T* rows, T* S) const {
    const std::size_t d = data_.n_dense;
    const auto& vector = vector_code<T>();
    if (data_.dense32 != nullptr) vector.dense_emissions_f32(rows, Lp_, data_.dense32 + token * d, d, n, S);
    if (data_.dense64 != nullptr) vector.dense_emissions_f64(rows, Lp_, data_.dense64 + token * d, d, n, S);
  }

  // Labels of one token that are done together, their sums in registers.
  static constexpr std::size_t kTogether = 4;

  // score[k] = x.W[:, label[k]] of up to kTogether labels at a token, whose sparse features are in `row`
  // (a TokenRow, or a copy of one in an index).
  template <class Row>
  void score(std::size_t token, const Row& row, const T* w, const std::uint32_t* label, std::size_t n, T* score) const {
    switch (n) {
      case 1: return score_some<1>(token, row, w, label, score);
      case 2: return score_some<2>(token, row, w, label, score);
      case 3: return score_some<3>(token, row, w, label, score);
      default: return score_some<4>(token, row, w, label, score);
    }
  }

  // u[f][label[k]] += amount[k] * x[f] over the features f of a token, for up to kTogether labels.
  template <class Row>
  void add(std::size_t token, const Row& row, const std::uint32_t* label, const T* amount, std::size_t n, Weights<T>& weights) const {
    switch (n) {
      case 0: return;
      case 1: return add_some<1>(token, row, label, amount, weights);
      case 2: return add_some<2>(token, row, label, amount, weights);
      case 3: return add_some<3>(token, row, label, amount, weights);
      default: return add_some<4>(token, row, label, amount, weights);
    }
  }

  // About how many processor cycles load() takes for tokens with so many sparse entries in all.
  double load_work(double tokens, double entries) const {
    return double(Lp_ * sizeof(T)) / 32.0 * (2.0 * entries + tokens * double(data_.n_dense));
  }

 private:
  template <int N, class Row>
  void score_some(std::size_t token, const Row& sparse, const T* w, const std::uint32_t* label, T* score) const {
    T sum[N] = {}, other[N] = {};  // two chains of additions, to hide their latency
    std::uint32_t l[N];
    for (int k = 0; k < N; ++k) l[k] = label[k];
    const std::size_t n = sparse.features.size();
    const std::uint32_t* f = sparse.features.data();
    if (sparse.ones()) {
      std::size_t e = 0;
      for (; e + 1 < n; e += 2) {
        const T* row0 = w + std::size_t(f[e]) * Lp_;
        const T* row1 = w + std::size_t(f[e + 1]) * Lp_;
        for (int k = 0; k < N; ++k) sum[k] += row0[l[k]], other[k] += row1[l[k]];
      }
      if (e < n) {
        const T* row = w + std::size_t(f[e]) * Lp_;
        for (int k = 0; k < N; ++k) sum[k] += row[l[k]];
      }
    } else {
      sparse.with_values([&](auto value) {
        for (std::size_t e = 0; e < n; ++e) {
          const T* row = w + std::size_t(f[e]) * Lp_;
          const T x = static_cast<T>(value(e));
          for (int k = 0; k < N; ++k) sum[k] += x * row[l[k]];
        }
      });
    }
    data_.for_dense(token, [&](std::size_t j, auto value) {
      const T* row = w + (data_.row_dense() + j) * Lp_;
      const T x = static_cast<T>(value);
      for (int k = 0; k < N; ++k) sum[k] += x * row[l[k]];
    });
    for (int k = 0; k < N; ++k) score[k] = sum[k] + other[k];
  }

  template <int N, class Row>
  void add_some(std::size_t token, const Row& sparse, const std::uint32_t* label, const T* amount, Weights<T>& weights) const {
    std::uint32_t l[N];
    T a[N];
    for (int k = 0; k < N; ++k) l[k] = label[k], a[k] = amount[k];
    const std::size_t n = sparse.features.size();
    if (sparse.ones()) weights.template add_rows<N>(sparse.features, Lp_, l, a);
    if (sparse.ones() && data_.n_dense == 0) return;
    weights.adding([&](auto&& add) {
      constexpr bool linked = std::remove_cvref_t<decltype(add)>::linked;
      if (!sparse.ones()) {
        for (std::size_t e = 0; linked && e < n; ++e) {
          for (int k = 0; k < N; ++k) add.fetch(std::size_t(sparse.features[e]) * Lp_ + l[k]);
        }
        sparse.with_values([&](auto value) {
          for (std::size_t e = 0; e < n; ++e) {
            const std::size_t row = std::size_t(sparse.features[e]) * Lp_;
            const T x = static_cast<T>(value(e));
            for (int k = 0; k < N; ++k) add(row + l[k], a[k] * x);
          }
        });
      }
      data_.for_dense(token, [&](std::size_t j, auto value) {
        const std::size_t row = (data_.row_dense() + j) * Lp_;
        const T x = static_cast<T>(value);
        if (linked && x == T(0)) return;  // dear, and common among dense features
        for (int k = 0; k < N; ++k) add(row + l[k], a[k] * x);
      });
    });
  }

  const TokenData& data_;
  std::size_t Lp_;
};

}  // namespace mm
