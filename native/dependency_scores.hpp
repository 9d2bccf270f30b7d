// Scores of all arcs of a sentence: the hot path of training and prediction.
//
// An arc's score is the sum of its weights of arcs and the best relation's sum over the rows of label templates.
// What depends on one token and a bucket of the distance is summed once; pairs are one addition, one
// shift and one read each. Rows of relations are summed as vectors.
#pragma once

#include <array>

#include "dependency_data.hpp"

namespace mm {

// Scores of the arcs of one sentence of n words; entry h (n + 1) + d.
template <class T>
struct ArcTable {
  std::size_t n = 0;
  std::vector<T> arc;                // without a relation
  std::vector<T> best;               // with the best relation
  std::vector<std::uint16_t> label;  // that relation
  std::vector<T> own, other;         // [n + 1] of the true head: with the true relation, with the best other one
  std::vector<std::uint16_t> other_label;
};

template <class T>
class ArcScorer {
 public:
  static constexpr std::size_t kAhead = 4;

  // Memory of one thread.
  struct Scratch {
    std::vector<T> heads, dependents;            // [n + 1][kBuckets] of one side
    std::vector<T> rows_heads, rows_dependents;  // [2][n + 1][width] of one side, for each direction
    std::vector<T> row;                          // [width] of one arc
    std::vector<std::vector<std::uint32_t>> seen;  // different values between, for each template
    std::array<std::vector<std::uint32_t>, kAhead> lists;  // weights of the arcs to come
    std::array<std::size_t, kAhead> sizes;
    std::vector<std::uint32_t> next;             // rows of the arc to come
  };

  explicit ArcScorer(const DependencyData& data)
      : data_(data), arc_shift_(32 - data.arc_bits), row_shift_(32 - data.row_bits), width_(data.row_width()) {}

  void fill(std::size_t i, const T* w, bool truth, Scratch& ws, ArcTable<T>& table) const {
    const std::size_t n = data_.length(i), m = n + 1;
    table.n = n;
    table.arc.resize(m * m);
    sum_arcs(i, w, ws, table);
    if (!data_.labelled()) {
      table.best = table.arc;
      if (!truth) return;
      table.own.resize(m), table.other.assign(m, -std::numeric_limits<T>::infinity()), table.other_label.assign(m, 0);
      for (std::size_t d = 1; d <= n; ++d) table.own[d] = table.arc[data_.head(i, d) * m + d];
      return;
    }
    table.best.resize(m * m);
    table.label.resize(m * m);
    sum_rows(i, w, ws, table);
    if (!truth) return;
    table.own.resize(m), table.other.resize(m), table.other_label.resize(m);
    for (std::size_t d = 1; d <= n; ++d) {
      const std::size_t h = data_.head(i, d), y = data_.label(i, d);
      row_of(i, h, d, w, ws);
      table.own[d] = table.arc[h * m + d] + ws.row[y];
      T top = -std::numeric_limits<T>::infinity();
      std::size_t best = 0;
      for (std::size_t l = 0; l < data_.n_labels; ++l) {
        if (l != y && ws.row[l] > top) top = ws.row[l], best = l;
      }
      table.other[d] = table.arc[h * m + d] + top;
      table.other_label[d] = static_cast<std::uint16_t>(best);
    }
  }

  // visit(index of a weight) for the features of an arc.
  template <class Visit>
  void for_arc(std::size_t i, std::size_t h, std::size_t d, Visit&& visit) const {
    data_.arcs->for_arc(data_.base(i), h, d, [&](std::uint32_t x) { visit(std::size_t(x >> arc_shift_)); });
  }
  // And of its relation.
  template <class Visit>
  void for_label(std::size_t i, std::size_t h, std::size_t d, std::size_t l, Visit&& visit) const {
    if (!data_.labelled()) return;
    data_.rows->for_arc(data_.base(i), h, d, [&](std::uint32_t x) { visit(data_.n_arc_weights() + std::size_t(x >> row_shift_) * width_ + l); });
  }

  double score(std::size_t i, std::size_t h, std::size_t d, std::size_t l, const T* w) const {
    double sum = 0.0;
    for_arc(i, h, d, [&](std::size_t j) { sum += double(w[j]); });
    for_label(i, h, d, l, [&](std::size_t j) { sum += double(w[j]); });
    return sum;
  }

  // No arc of a sentence of n words has more features, with its relation.
  std::size_t most_features(std::size_t n) const {
    const ArcHashes& a = *data_.arcs;
    std::size_t sum = a.n_pairs() + a.n_heads() + a.n_dependents() + n * a.n_between();
    if (data_.labelled()) sum += data_.rows->n_pairs() + data_.rows->n_heads() + data_.rows->n_dependents();
    return sum;
  }
  // About how many features an arc and its relation have.
  double features_of_arc() const {
    const ArcHashes& a = *data_.arcs;
    double sum = double(a.n_pairs() + a.n_heads() + a.n_dependents() + 4 * a.n_between());
    if (data_.labelled()) sum += double(data_.rows->n_pairs() + data_.rows->n_heads() + data_.rows->n_dependents());
    return sum;
  }
  // Processor cycles of fill(), as measured.
  double work(std::size_t i) const {
    const double n = double(data_.length(i));
    const ArcHashes& a = *data_.arcs;
    double cycles = n * n * (40.0 + 8.0 * double(a.n_pairs()) + 40.0 * double(a.n_between())) + 60.0 * n * double(a.n_heads() + a.n_dependents());
    if (data_.labelled()) {
      const double vectors = double(width_) / 4.0;
      cycles += n * n * (vectors * (6.0 + 3.0 * double(data_.rows->n_pairs())) + 20.0 * double(data_.rows->n_pairs())) +
                5.0 * n * vectors * double(data_.rows->n_heads() + data_.rows->n_dependents());
    }
    return cycles;
  }

 private:
  void sum_arcs(std::size_t i, const T* w, Scratch& ws, ArcTable<T>& table) const {
    const ArcHashes& hashes = *data_.arcs;
    const std::size_t n = table.n, m = n + 1, base = data_.base(i), P = hashes.n_pairs();
    const std::size_t nh = hashes.n_heads(), nd = hashes.n_dependents(), nb = hashes.n_between();
    // What one side gives, for the buckets that occur.
    static constexpr std::size_t kLeast[kBuckets / 2] = {1, 2, 3, 4, 5, 6, 11};
    ws.heads.resize(m * kBuckets);
    ws.dependents.resize(m * kBuckets);
    const auto side = [&](const std::uint32_t* part, const std::uint32_t* place, std::size_t count) {
      T sum = 0;
      for (std::size_t t = 0; t < count; ++t) sum += w[(part[t] + place[t]) >> arc_shift_];
      return sum;
    };
    for (std::size_t p = 0; p <= n; ++p) {
      for (std::size_t b = 0; b < kBuckets; ++b) {
        const std::size_t least = kLeast[b % (kBuckets / 2)];
        const bool right = b < kBuckets / 2;
        const std::size_t room_head = right ? n - p : p == 0 ? 0 : p - 1;  // words on that side
        const std::size_t room_dependent = p == 0 ? 0 : right ? p : n - p;  // heads on the other
        if (room_head >= least) ws.heads[p * kBuckets + b] = side(hashes.head(base + p) + P, hashes.place_heads(b), nh);
        if (room_dependent >= least) ws.dependents[p * kBuckets + b] = side(hashes.dependent(base + p) + P, hashes.place_dependents(b), nd);
      }
    }
    // All features of an arc are listed, and their weights fetched, some arcs before they are summed: the weights
    // are read at random, and a miss takes as long as listing an arc.
    for (auto& list : ws.lists) list.resize(P + nb * n);
    for (std::size_t h = 0; h <= n; ++h) {
      const std::uint32_t* H = hashes.head(base + h);
      const T* from = ws.heads.data() + h * kBuckets;
      T* out = table.arc.data() + h * m;
      ws.seen.resize(nb);
      // The arcs from h, outwards to the right and then to the left.
      const std::size_t right = n - h, left = h == 0 ? 0 : h - 1, arcs = right + left;
      const auto dependent = [&](std::size_t k) { return k < right ? h + 1 + k : h - 1 - (k - right); };
      const auto list = [&](std::size_t k) {
        const std::size_t d = dependent(k), bucket = arc_bucket(h, d);
        const std::uint32_t *D = hashes.dependent(base + d), *Q = hashes.place_pairs(bucket);
        std::uint32_t* ids = ws.lists[k % kAhead].data();
        for (std::size_t t = 0; t < P; ++t) ids[t] = (H[t] + D[t] + Q[t]) >> arc_shift_;
        std::size_t size = P;
        for (std::size_t t = 0; t < nb; ++t) {
          std::vector<std::uint32_t>& seen = ws.seen[t];
          if (k == 0 || k == right) {
            seen.clear();
          } else {  // one more token lies between
            const std::uint32_t value = hashes.inner(base + (h < d ? d - 1 : d + 1))[t];
            if (std::find(seen.begin(), seen.end(), value) == seen.end()) seen.push_back(value);
          }
          const std::uint32_t ends = H[P + nh + t] + D[P + nd + t] + hashes.place_between(bucket)[t];
          for (const std::uint32_t value : seen) ids[size++] = (ends + value) >> arc_shift_;
        }
        for (std::size_t t = 0; t < size; ++t) mm::prefetch(w + ids[t]);
        ws.sizes[k % kAhead] = size;
      };
      for (std::size_t k = 0; k < std::min(kAhead - 1, arcs); ++k) list(k);
      for (std::size_t k = 0; k < arcs; ++k) {
        if (k + kAhead - 1 < arcs) list(k + kAhead - 1);
        const std::size_t d = dependent(k), bucket = arc_bucket(h, d), size = ws.sizes[k % kAhead];
        const std::uint32_t* ids = ws.lists[k % kAhead].data();
        T sums[4] = {from[bucket], ws.dependents[d * kBuckets + bucket], 0, 0};
        std::size_t t = 0;
        for (; t + 4 <= size; t += 4) {
          for (std::size_t j = 0; j < 4; ++j) sums[j] += w[ids[t + j]];
        }
        for (; t < size; ++t) sums[0] += w[ids[t]];
        out[d] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
      }
    }
  }

  void sum_rows(std::size_t i, const T* w, Scratch& ws, ArcTable<T>& table) const {
    const ArcHashes& hashes = *data_.rows;
    const std::size_t n = table.n, m = n + 1, base = data_.base(i), P = hashes.n_pairs();
    const T* rows = w + data_.n_arc_weights();
    ws.rows_heads.assign(2 * m * width_, T(0));
    ws.rows_dependents.assign(2 * m * width_, T(0));
    ws.row.resize(width_);
    ws.next.resize(P + 1);
    for (std::size_t direction = 0; direction < 2; ++direction) {
      const std::size_t bucket = direction * (kBuckets / 2);
      for (std::size_t p = 0; p <= n; ++p) {
        T* to = ws.rows_heads.data() + (direction * m + p) * width_;
        for (std::size_t t = 0; t < hashes.n_heads(); ++t) add_row(rows, hashes.head(base + p)[P + t] + hashes.place_heads(bucket)[t], to);
        if (p == 0) continue;
        to = ws.rows_dependents.data() + (direction * m + p) * width_;
        for (std::size_t t = 0; t < hashes.n_dependents(); ++t) add_row(rows, hashes.dependent(base + p)[P + t] + hashes.place_dependents(bucket)[t], to);
      }
    }
    for (std::size_t h = 0; h <= n; ++h) {
      const std::uint32_t* H = hashes.head(base + h);
      const auto prepare = [&](std::size_t d) {
        const std::uint32_t *D = hashes.dependent(base + d), *Q = hashes.place_pairs(arc_bucket(h, d));
        for (std::size_t t = 0; t < P; ++t) {
          ws.next[t] = (H[t] + D[t] + Q[t]) >> row_shift_;
          prefetch_range(rows + std::size_t(ws.next[t]) * width_, width_ * sizeof(T));
        }
      };
      std::size_t d = h == 1 ? 2 : 1;
      if (d <= n) prepare(d);
      while (d <= n) {
        const std::size_t direction = h < d ? 0 : 1;
        T* row = ws.row.data();
        const T* a = ws.rows_heads.data() + (direction * m + h) * width_;
        const T* b = ws.rows_dependents.data() + (direction * m + d) * width_;
        for (std::size_t l = 0; l < width_; ++l) row[l] = a[l] + b[l];
        for (std::size_t t = 0; t < P; ++t) {
          const T* from = rows + std::size_t(ws.next[t]) * width_;
          for (std::size_t l = 0; l < width_; ++l) row[l] += from[l];
        }
        const std::size_t done = d;
        d += d + 1 == h ? 2 : 1;
        if (d <= n) prepare(d);
        const std::size_t best = greatest(row);
        table.label[h * m + done] = static_cast<std::uint16_t>(best);
        table.best[h * m + done] = table.arc[h * m + done] + row[best];
      }
    }
  }

  void add_row(const T* rows, std::uint32_t number, T* to) const {
    const T* from = rows + std::size_t(number >> row_shift_) * width_;
    for (std::size_t l = 0; l < width_; ++l) to[l] += from[l];
  }

  // The first of the greatest: its value in four lanes, then its place.
  std::size_t greatest(const T* row) const {
    const std::size_t L = data_.n_labels;
    T lane[4] = {row[0], row[0], row[0], row[0]};
    std::size_t l = 0;
    for (; l + 4 <= L; l += 4) {
      for (std::size_t j = 0; j < 4; ++j) lane[j] = lane[j] < row[l + j] ? row[l + j] : lane[j];
    }
    T top = std::max(std::max(lane[0], lane[1]), std::max(lane[2], lane[3]));
    for (; l < L; ++l) top = std::max(top, row[l]);
    std::size_t best = 0;
    while (best + 1 < L && row[best] != top) ++best;
    return best;
  }

  // All relations of one arc, into ws.row, summed in the order of sum_rows.
  void row_of(std::size_t i, std::size_t h, std::size_t d, const T* w, Scratch& ws) const {
    const ArcHashes& hashes = *data_.rows;
    const std::size_t m = data_.length(i) + 1, base = data_.base(i), P = hashes.n_pairs();
    const T* rows = w + data_.n_arc_weights();
    const std::size_t direction = h < d ? 0 : 1;
    const T* a = ws.rows_heads.data() + (direction * m + h) * width_;
    const T* b = ws.rows_dependents.data() + (direction * m + d) * width_;
    for (std::size_t l = 0; l < width_; ++l) ws.row[l] = a[l] + b[l];
    const std::uint32_t *H = hashes.head(base + h), *D = hashes.dependent(base + d), *Q = hashes.place_pairs(arc_bucket(h, d));
    for (std::size_t t = 0; t < P; ++t) add_row(rows, H[t] + D[t] + Q[t], ws.row.data());
  }

  const DependencyData& data_;
  unsigned arc_shift_, row_shift_;
  std::size_t width_;
};

}  // namespace mm
