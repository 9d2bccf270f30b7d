// Planes that are sums over many examples: sparse vectors a_p with their Gram matrix.
//
// Planes that came at about the same time lie together in a bundle, column by column, so that they
// share the walk over memory:
//
//   column [n]          the weights that any plane of the bundle touches, ascending
//   begin  [n + 1]      where the entries of a column begin
//   owner, value [nnz]  which plane of the bundle, ascending, and a_p there
//
// What comes in is a bundle of its own; the last two become one while the last is not much smaller
// than the one before it. So there are few bundles, and an entry is moved a logarithmic number of
// times.
//
// gram [size][size] = a_p·a_q in 8-byte arithmetic, made when planes come in: their columns are
// marked in a set of bits over all weights (`Marks`), and each bundle is walked once. Planes are
// numbered in the order in which they came; dropping some renumbers the rest. No result depends on
// how planes are bundled: sums go over columns or over planes in ascending order.
//
// Nor does any depend on the number of threads. The weights are cut into ranges, by their number alone; threads
// take range after range, products are summed within a range, and the sums of the ranges are added in order.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <numeric>

#include "chunks.hpp"

namespace mm {

// A set of columns that knows how many of them lie before each: an eighth of the memory of an array
// of places, and walked in ascending order it is read in order too.
class Marks {
 public:
  explicit Marks(std::size_t n) : n_(n), words_((n + 63) / 64), before_(words_.size()) {}

  std::size_t size() const { return n_; }
  void mark(std::uint32_t j) { words_[j / 64] |= std::uint64_t{1} << (j % 64); }
  // All that are marked, ascending; from now on place() can be asked.
  void list(std::vector<std::uint32_t>& columns) {
    for (std::size_t word = 0; word < words_.size(); ++word) {
      before_[word] = std::uint32_t(columns.size());
      for (std::uint64_t bits = words_[word]; bits != 0; bits &= bits - 1) {
        columns.push_back(std::uint32_t(word * 64 + std::size_t(std::countr_zero(bits))));
      }
    }
  }
  bool has(std::uint32_t j) const { return (words_[j / 64] >> (j % 64) & 1) != 0; }
  // Which of those that are marked it is.
  std::uint32_t place(std::uint32_t j) const {
    const std::uint64_t below = words_[j / 64] & ((std::uint64_t{1} << (j % 64)) - 1);
    return before_[j / 64] + count(below);
  }
  void clear() { std::fill(words_.begin(), words_.end(), 0); }
  std::size_t bytes() const { return words_.size() * 12; }

 private:
  // std::popcount is a function call where the baseline has no instruction for it (x86-64).
  static std::uint32_t count(std::uint64_t x) {
    x -= x >> 1 & 0x5555555555555555;
    x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return std::uint32_t(x * 0x0101010101010101 >> 56);
  }

  std::size_t n_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> before_;
};

// |w|²
template <class T>
double square(const T* w, std::size_t n, int threads) {
  return sum_each(n, threads, [&](std::size_t j) { return double(w[j]) * double(w[j]); });
}

// out = a + share (b - a), where share 1 gives b itself; |out|².
template <class T>
double blend(const T* a, const T* b, double share, T* out, std::size_t n, int threads) {
  const T s = T(share), rest = T(1.0 - share);
  return sum_each(n, threads, [&](std::size_t j) {
    out[j] = rest * a[j] + s * b[j];
    return double(out[j]) * double(out[j]);
  });
}

template <class T>
class PlaneStore {
 public:
  explicit PlaneStore(std::size_t n_weights) : marks_(n_weights) {}

  std::size_t size() const { return size_; }
  std::size_t n_weights() const { return marks_.size(); }
  std::size_t stride() const { return stride_; }
  const double* gram() const { return gram_.data(); }

  // Sparse rows, their columns distinct and in any order.
  struct Rows {
    std::span<const std::int64_t> indptr;
    std::span<const std::uint32_t> indices;
    std::span<const T> values;
  };
  void add(const Rows& rows, int threads) {
    Bundle fresh = bundle(rows, threads);
    resize(size_ + fresh.number.size());
    for (const Bundle& old : bundles_) cross(old, fresh, threads);
    cross(fresh, fresh, threads);
    marks_.clear();
    bundles_.push_back(std::move(fresh));
    while (bundles_.size() > 1 && 2 * bundles_.back().owner.size() >= bundles_.end()[-2].owner.size()) {
      bundles_.end()[-2] = merged(bundles_.end()[-2], bundles_.back(), threads);
      bundles_.pop_back();
    }
  }

  // out = Σ_p alpha_p a_p
  void combine(const double* alpha, T* out, int threads) const {
    std::vector<std::vector<T>> coefs;  // of the planes of each bundle; none where all are zero
    std::size_t entries = 0;
    for (const Bundle& b : bundles_) {
      std::vector<T>& coef = coefs.emplace_back(b.number.size());
      for (std::size_t k = 0; k < coef.size(); ++k) coef[k] = b.number[k] == kGone ? T(0) : T(alpha[b.number[k]]);
      if (std::all_of(coef.begin(), coef.end(), [](T c) { return c == T(0); })) coef.clear();
      if (!coef.empty()) entries += b.owner.size();
    }
    over_ranges(entries + n_weights() / 8, threads, [&](std::size_t range) {
      std::fill(out + edge(range), out + edge(range + 1), T(0));
      for (std::size_t k = 0; k < bundles_.size(); ++k) {
        const Bundle& b = bundles_[k];
        if (coefs[k].empty()) continue;
        const auto [first, last] = columns(b, range);
        for (std::size_t c = first; c < last; ++c) {
          T sum = out[b.column[c]];
          for (std::uint32_t e = b.begin[c]; e < b.begin[c + 1]; ++e) sum += coefs[k][b.owner[e]] * b.value[e];
          out[b.column[c]] = sum;
        }
      }
    });
  }

  // |Σ_p alpha_p a_p|²
  double square(const double* alpha) const {
    double sum = 0.0;
    for (std::size_t p = 0; p < size_; ++p) {
      if (alpha[p] == 0.0) continue;
      const double* row = gram_.data() + p * stride_;
      for (std::size_t q = 0; q < size_; ++q) sum += alpha[p] * alpha[q] * row[q];
    }
    return sum;
  }

  // products[p] = a_p·w
  void multiply(const T* w, double* products, int threads) const {
    std::fill(products, products + size_, 0.0);
    for (const Bundle& b : bundles_) {
      const std::vector<double> sums = sum_ranges(b, b.number.size(), b.owner.size(), threads, [&](std::size_t c, double* sum) {
        const double x = double(w[b.column[c]]);
        for (std::uint32_t e = b.begin[c]; e < b.begin[c + 1]; ++e) sum[b.owner[e]] += x * double(b.value[e]);
      });
      for (std::size_t k = 0; k < sums.size(); ++k) {
        if (b.number[k] != kGone) products[b.number[k]] = sums[k];
      }
    }
  }

  // Drop the planes whose entry is zero.
  void keep(const std::uint8_t* kept) {
    std::vector<std::uint32_t> renumbered(size_, kGone);
    std::size_t n = 0;
    for (std::size_t p = 0; p < size_; ++p) {
      if (kept[p] != 0) renumbered[p] = std::uint32_t(n++);
    }
    for (std::size_t p = 0; p < size_; ++p) {
      if (kept[p] == 0) continue;
      const double* from = gram_.data() + p * stride_;
      double* to = gram_.data() + renumbered[p] * stride_;
      for (std::size_t q = 0; q < size_; ++q) {
        if (kept[q] != 0) to[renumbered[q]] = from[q];
      }
    }
    size_ = n;
    for (Bundle& b : bundles_) {
      for (std::uint32_t& p : b.number) p = p == kGone ? kGone : renumbered[p];
      b.compact();
    }
    std::erase_if(bundles_, [](const Bundle& b) { return b.number.empty(); });
  }

  // All planes, as add() takes them; columns ascending.
  struct Copy {
    std::vector<std::int64_t> indptr;
    std::vector<std::uint32_t> indices;
    std::vector<T> values;
  };
  Copy planes() const {
    Copy copy;
    copy.indptr.assign(size_ + 1, 0);
    each([&](std::uint32_t p, std::uint32_t, T) { ++copy.indptr[p + 1]; });
    std::partial_sum(copy.indptr.begin(), copy.indptr.end(), copy.indptr.begin());
    copy.indices.resize(std::size_t(copy.indptr.back()));
    copy.values.resize(copy.indices.size());
    std::vector<std::int64_t> next(copy.indptr.begin(), copy.indptr.end() - 1);
    each([&](std::uint32_t p, std::uint32_t column, T value) {
      copy.indices[std::size_t(next[p])] = column;
      copy.values[std::size_t(next[p]++)] = value;
    });
    return copy;
  }

  std::size_t bytes() const {
    std::size_t total = marks_.bytes() + gram_.capacity() * sizeof(double);
    for (const Bundle& b : bundles_) total += b.column.size() * 8 + b.owner.size() * (sizeof(T) + 4);
    return total;
  }

 private:
  static constexpr std::uint32_t kGone = ~std::uint32_t{0};

  struct Bundle {
    std::vector<std::uint32_t> column, begin, owner;
    std::vector<T> value;
    std::vector<std::uint32_t> number;  // of each plane of the bundle, kGone if it was dropped

    // Take the entries of dropped planes out once they are half of the planes.
    void compact() {
      const std::size_t gone = std::size_t(std::count(number.begin(), number.end(), kGone));
      if (gone == 0 || 2 * gone < number.size()) return;
      std::vector<std::uint32_t> place(number.size(), kGone), left;
      for (std::size_t k = 0; k < number.size(); ++k) {
        if (number[k] == kGone) continue;
        place[k] = std::uint32_t(left.size());
        left.push_back(number[k]);
      }
      std::size_t columns = 0, entries = 0;
      for (std::size_t c = 0; c < column.size(); ++c) {
        const std::uint32_t from = begin[c], to = begin[c + 1];
        const std::size_t first = entries;
        for (std::uint32_t e = from; e < to; ++e) {
          if (place[owner[e]] == kGone) continue;
          owner[entries] = place[owner[e]];
          value[entries++] = value[e];
        }
        if (entries == first) continue;
        column[columns] = column[c];
        begin[columns++] = std::uint32_t(first);
      }
      column.resize(columns);
      begin.resize(columns + 1);
      begin[columns] = std::uint32_t(entries);
      owner.resize(entries);
      value.resize(entries);
      for (auto* array : {&column, &begin, &owner}) array->shrink_to_fit();
      value.shrink_to_fit();
      number = std::move(left);
    }
  };

  // ---- ranges of weights ----

  // Of enough weights for a range to be worth its sums; features that come first are met most, so that ranges hold
  // very different numbers of entries and there must be many of them.
  static constexpr std::size_t kRanges = 64, kRangeWeights = 4096;
  // Entries for which another thread is not worth its start.
  static constexpr std::size_t kFewEntries = std::size_t{1} << 16;

  std::size_t n_ranges() const { return std::clamp<std::size_t>(n_weights() / kRangeWeights, 1, kRanges); }
  // Where a range begins.
  std::size_t edge(std::size_t range) const { return n_weights() * range / n_ranges(); }
  // The columns of a bundle that lie in a range.
  std::pair<std::size_t, std::size_t> columns(const Bundle& b, std::size_t range) const {
    const auto at = [&](std::size_t weight) {
      return std::size_t(std::lower_bound(b.column.begin(), b.column.end(), weight) - b.column.begin());
    };
    return {at(edge(range)), at(edge(range + 1))};
  }

  // f(range) for all of them, each by whichever thread is free.
  template <class F>
  void over_ranges(std::size_t entries, int threads, F&& f) const {
    std::atomic<std::size_t> next{0};
    run_shares(n_shares(threads, std::min(n_ranges(), entries / kFewEntries)), [&](std::size_t) {
      for (std::size_t range; (range = next.fetch_add(1, std::memory_order_relaxed)) < n_ranges();) f(range);
    });
  }

  // Sums of `size` numbers over the columns of a bundle: f(c, sums) adds those of column c.
  template <class F>
  std::vector<double> sum_ranges(const Bundle& b, std::size_t size, std::size_t entries, int threads, F&& f) const {
    std::vector<std::vector<double>> parts(n_ranges());
    over_ranges(entries, threads, [&](std::size_t range) {
      const auto [first, last] = columns(b, range);
      if (first == last) return;
      parts[range].resize(size);
      for (std::size_t c = first; c < last; ++c) f(c, parts[range].data());
    });
    std::vector<double> sums(size);
    for (const std::vector<double>& part : parts) {
      for (std::size_t k = 0; k < part.size(); ++k) sums[k] += part[k];
    }
    return sums;
  }

  // f(plane, column, value) for all entries of planes that are there.
  template <class F>
  void each(F&& f) const {
    for (const Bundle& b : bundles_) {
      for (std::size_t c = 0; c < b.column.size(); ++c) {
        for (std::uint32_t e = b.begin[c]; e < b.begin[c + 1]; ++e) {
          if (b.number[b.owner[e]] != kGone) f(b.number[b.owner[e]], b.column[c], b.value[e]);
        }
      }
    }
  }

  // Two bundles become one. What a range of weights has in both:
  struct Stretch {
    std::size_t a, a_end, b, b_end;  // columns of a range
    std::size_t first;               // how many there are in both together, and then where they begin
    // f(i, j, whether it is column i of a, whether it is column j of b) for each column, ascending
    template <class F>
    void walk(const Bundle& of_a, const Bundle& of_b, F&& f) const {
      for (std::size_t i = a, j = b; i < a_end || j < b_end;) {
        const std::uint32_t x = i < a_end ? of_a.column[i] : kGone, y = j < b_end ? of_b.column[j] : kGone;
        f(i, j, x <= y, y <= x);
        i += x <= y, j += y <= x;
      }
    }
  };
  Bundle merged(const Bundle& a, const Bundle& b, int threads) const {
    Bundle both;
    both.number = a.number;
    both.number.insert(both.number.end(), b.number.begin(), b.number.end());
    const std::size_t entries = a.owner.size() + b.owner.size();
    std::vector<Stretch> parts(n_ranges());
    over_ranges(entries, threads, [&](std::size_t range) {
      const auto [i, i_end] = columns(a, range);
      const auto [j, j_end] = columns(b, range);
      std::size_t n = 0;
      parts[range] = {i, i_end, j, j_end, 0};
      parts[range].walk(a, b, [&](std::size_t, std::size_t, bool, bool) { ++n; });
      parts[range].first = n;
    });
    std::size_t columns_of_both = 0;
    for (Stretch& part : parts) columns_of_both += std::exchange(part.first, columns_of_both);
    both.column.resize(columns_of_both);
    both.begin.resize(columns_of_both + 1);
    both.begin.back() = std::uint32_t(entries);
    both.owner.resize(entries);
    both.value.resize(entries);
    over_ranges(entries, threads, [&](std::size_t range) {
      const Stretch& part = parts[range];
      std::size_t c = part.first;
      std::uint32_t to = a.begin[part.a] + b.begin[part.b];
      const auto take = [&](const Bundle& from, std::size_t column, std::size_t shift) {
        both.column[c] = from.column[column];
        for (std::uint32_t e = from.begin[column]; e < from.begin[column + 1]; ++e, ++to) {
          both.owner[to] = from.owner[e] + std::uint32_t(shift);
          both.value[to] = from.value[e];
        }
      };
      part.walk(a, b, [&](std::size_t i, std::size_t j, bool of_a, bool of_b) {
        both.begin[c] = to;
        if (of_a) take(a, i, 0);
        if (of_b) take(b, j, a.number.size());
        ++c;
      });
    });
    return both;
  }

  // Sort the entries by column; its columns stay marked.
  Bundle bundle(const Rows& rows, int threads) {
    Bundle b;
    const std::size_t n = rows.indices.size(), m = rows.indptr.size() - 1;
    for (const std::uint32_t j : rows.indices) marks_.mark(j);
    marks_.list(b.column);
    b.begin.assign(b.column.size() + 1, 0);
    std::vector<std::uint32_t> places(n);
    for_chunks(n, threads, [&](std::size_t, std::size_t begin, std::size_t end) {
      for (std::size_t e = begin; e < end; ++e) places[e] = marks_.place(rows.indices[e]);
    });
    for (const std::uint32_t place : places) ++b.begin[place + 1];
    std::partial_sum(b.begin.begin(), b.begin.end(), b.begin.begin());
    b.owner.resize(n);
    b.value.resize(n);
    std::vector<std::uint32_t> next(b.begin.begin(), b.begin.end() - 1);
    for (std::size_t k = 0; k < m; ++k) {
      for (std::int64_t e = rows.indptr[k]; e < rows.indptr[k + 1]; ++e) {
        const std::uint32_t place = next[places[std::size_t(e)]]++;
        b.owner[place] = std::uint32_t(k);
        b.value[place] = rows.values[e];
      }
    }
    b.number.resize(m);
    std::iota(b.number.begin(), b.number.end(), std::uint32_t(size_));
    return b;
  }

  // Products of all planes of a kept bundle with all of the fresh one, whose columns are marked.
  void cross(const Bundle& old, const Bundle& fresh, int threads) {
    const std::size_t m = fresh.number.size(), n = old.number.size();
    const std::vector<double> sums = sum_ranges(old, n * m, old.owner.size() + fresh.owner.size(), threads, [&](std::size_t c, double* sum) {
      if (!marks_.has(old.column[c])) return;
      const std::uint32_t place = marks_.place(old.column[c]);
      const std::uint32_t first = fresh.begin[place], last = fresh.begin[place + 1];
      for (std::uint32_t f = first; f < last; ++f) {
        double* row = sum + fresh.owner[f] * n;
        const double x = double(fresh.value[f]);
        for (std::uint32_t e = old.begin[c]; e < old.begin[c + 1]; ++e) row[old.owner[e]] += x * double(old.value[e]);
      }
    });
    for (std::size_t k = 0; k < n; ++k) {
      if (old.number[k] == kGone) continue;
      for (std::size_t l = 0; l < m; ++l) {
        gram_[old.number[k] * stride_ + fresh.number[l]] = sums[l * n + k];
        gram_[fresh.number[l] * stride_ + old.number[k]] = sums[l * n + k];
      }
    }
  }

  void resize(std::size_t n) {
    if (n > stride_) {
      const std::size_t wider = std::max(n, stride_ + stride_ / 2 + 16);
      std::vector<double> larger(wider * wider);
      for (std::size_t p = 0; p < size_; ++p) {
        std::copy_n(gram_.data() + p * stride_, size_, larger.data() + p * wider);
      }
      gram_ = std::move(larger);
      stride_ = wider;
    }
    size_ = n;
  }

  Marks marks_;  // the columns of the bundle that comes in
  std::vector<Bundle> bundles_;
  std::vector<double> gram_;
  std::size_t size_ = 0, stride_ = 0;
};

}  // namespace mm
