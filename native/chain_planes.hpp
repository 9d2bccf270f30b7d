// The planes of a chain: losses, places, and Gram entries.
#pragma once

#include <atomic>

#include "chain_grades.hpp"

namespace mm {

template <class T>
class ChainPlanes : public ChainGrades<T> {
 public:
  using Frame = ChainFrame<T>;
  using Base = Structure<T>;
  using typename Frame::Scratch;
  using Frame::edges;
  using Frame::has_pairs;
  using Frame::n_weights;

  explicit ChainPlanes(const ChainData& data)
      : ChainGrades<T>(data),
        features_per_token_(double(data.indices.size()) / double(std::max<std::int64_t>(data.offsets.back(), 1))), grams_(data.size()) {}
  ~ChainPlanes() override {
    for (const auto& gram : grams_) delete[] gram.load();
  }

  std::size_t cache_bytes() const override {
    return grams_.capacity() * sizeof(grams_[0]) + cache_bytes(0, grams_.size());
  }
  std::size_t cache_bytes(std::size_t begin, std::size_t end) const override {
    std::size_t bytes = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (grams_[i].load(std::memory_order_acquire) != nullptr) bytes += LazyTokenGram::floats(data_.length(i)) * sizeof(float);
    }
    return bytes;
  }

  // (Nobody else may use the inner products of these sequences now: an engine that keeps windows has its
  // problem to itself.)
  void release(std::size_t begin, std::size_t end, bool all) const override {
    for (std::size_t i = begin; all && i < end; ++i) delete[] grams_[i].exchange(nullptr);
    data_.release(begin, end);
  }

  // ---- planes ----------------------------------------------------------------------------------

  double loss(std::size_t i, CodeView plane) const override {
    const std::size_t first = std::size_t(data_.offsets[i]);
    double sum = 0.0;
    for (const Code c : plane) {
      const std::size_t token = first + (c >> label_bits_);
      sum += data_.token_loss(token, std::size_t(data_.labels[token]), label_of(c));
    }
    return sum;
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

  bool valid(std::size_t i, CodeView code) const override {
    const std::int32_t* truth = data_.labels + data_.offsets[i];
    for (std::size_t k = 0; k < code.size(); ++k) {
      const std::size_t t = code[k] >> label_bits_, l = label_of(code[k]);
      if (t >= data_.length(i) || l >= L_ || l == std::size_t(truth[t])) return false;
      if (k > 0 && (code[k - 1] >> label_bits_) >= t) return false;
    }
    return !code.empty();
  }

  // Two ways to the same numbers. Short planes: pairs of differing tokens through their inner
  // products, which are cached per sequence. Long planes: the features themselves, whose number
  // grows with the length and not with its square.
  void gram(typename Base::Workspace& base, std::size_t i, CodeView a,
            std::span<const CodeView> planes, double* row) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    if (data_.length(i) == 1) return gram_of_one(ws, i, a, planes, row);
    std::size_t kept = 0;
    for (const CodeView plane : planes) kept += plane.size();
    if (data_.kernel != nullptr) {
      data_.length(i) <= kLongestGram ? gram_by_pairs(ws, i, a, planes, row) : gram_by_kernel(ws, i, a, planes, row);
    } else if (!has_pairs() && data_.length(i) <= kLongestGram && pair_work(a.size(), kept) <= feature_work(a.size(), kept)) {
      gram_by_pairs(ws, i, a, planes, row);
    } else {
      gram_by_features(ws, i, a, planes, row);
    }
  }

  double gram_work(CodeView added, CodeView kept) const override {
    if (data_.kernel != nullptr) return pair_work(added.size(), kept.size());
    return std::min(pair_work(added.size(), kept.size()), feature_work(added.size(), kept.size()));
  }

 protected:
  using Frame::data_;
  using Frame::L_;
  using Frame::Lp_;
  using Frame::emissions_;
  using Frame::transitions_;
  using Frame::pairs_;
  using Frame::label_bits_;
  using Frame::label_of;
  using Frame::for_pairs;
  using Frame::for_edge;
  using Frame::for_edges;

 private:
  // About how many cycles the two ways of gram() take.
  static double pair_work(std::size_t added, std::size_t kept) {
    return 3.0 * double(added) * double(added + kept);
  }
  double feature_work(std::size_t added, std::size_t kept) const {
    return 10.0 * (features_per_token_ + double(data_.n_dense)) * double(2 * added + kept);
  }

  // Planes of one token share the truth, and its label if that is the same too: each time with the
  // token's features, a start and an end.
  void gram_of_one(Scratch& ws, std::size_t i, CodeView a, std::span<const CodeView> planes,
                   double* row) const {
    const double own = double(token_gram(ws, i, a.size())(0, 0)) + 2.0;
    for (std::size_t k = 0; k < planes.size(); ++k) {
      row[k] = planes[k].empty() || a.empty() ? 0.0 : planes[k][0] == a[0] ? 2.0 * own : own;
    }
  }

  void gram_by_pairs(Scratch& ws, std::size_t i, CodeView a, std::span<const CodeView> planes,
                     double* row) const {
    const std::int32_t* truth = data_.labels + data_.offsets[i];
    const LazyTokenGram G = token_gram(ws, i, a.size());
    load_edges(ws, i, a);
    for (std::size_t k = 0; k < planes.size(); ++k) {
      double sum = 0.0;
      for (const Code cb : planes[k]) {
        const std::size_t s = cb >> label_bits_;
        const std::uint32_t lb = label_of(cb), ys = std::uint32_t(truth[s]);
        for (const Code ca : a) {
          const std::size_t t = ca >> label_bits_;
          const int shared = shared_labels(std::uint32_t(truth[t]), label_of(ca), ys, lb);
          if (shared != 0) sum += shared * double(G(s, t));
        }
      }
      row[k] = sum + shared_edges(ws, i, planes[k]);
    }
    clear_edges(ws, i, a);
  }

  // The same for sequences that keep no inner products: those of each pair of planes anew.
  void gram_by_kernel(Scratch& ws, std::size_t i, CodeView a, std::span<const CodeView> planes,
                      double* row) const {
    const std::int32_t* truth = data_.labels + data_.offsets[i];
    const auto name = [&](CodeView plane, std::vector<std::uint32_t>& tokens) {
      tokens.clear();
      for (const Code c : plane) tokens.push_back(data_.indices[std::size_t(data_.offsets[i]) + (c >> label_bits_)]);
    };
    name(a, ws.first);
    load_edges(ws, i, a);
    for (std::size_t k = 0; k < planes.size(); ++k) {
      name(planes[k], ws.second);
      ws.block.resize(a.size() * planes[k].size());
      data_.kernel->block(ws.second, ws.first, ws.block.data());
      double sum = 0.0;
      const double* product = ws.block.data();
      for (const Code cb : planes[k]) {
        const std::uint32_t lb = label_of(cb), ys = std::uint32_t(truth[cb >> label_bits_]);
        for (const Code ca : a) sum += shared_labels(std::uint32_t(truth[ca >> label_bits_]), label_of(ca), ys, lb) * *product++;
      }
      row[k] = sum + shared_edges(ws, i, planes[k]);
    }
    clear_edges(ws, i, a);
  }

  // How often two differing tokens meet in a label: y the truths, l the labels of the planes.
  static int shared_labels(std::uint32_t ya, std::uint32_t la, std::uint32_t yb, std::uint32_t lb) {
    return (ya == yb) - (ya == lb) - (la == yb) + (la == lb);
  }

  // Edges of a plane into ws.edge, its inner product with those of others, and out again.
  void load_edges(Scratch& ws, std::size_t i, CodeView a) const {
    ws.edge.resize((L_ + 2) * Lp_);
    for_edges(i, a, [&](std::size_t j, double sign) { ws.edge[j - transitions_] += sign; });
  }
  double shared_edges(const Scratch& ws, std::size_t i, CodeView b) const {
    double sum = 0.0;
    for_edges(i, b, [&](std::size_t j, double sign) { sum += sign * ws.edge[j - transitions_]; });
    return sum;
  }
  void clear_edges(Scratch& ws, std::size_t i, CodeView a) const {
    for_edges(i, a, [&](std::size_t j, double) { ws.edge[j - transitions_] = 0.0; });
  }

  // Δf(a) as a sparse vector, then its inner product with each plane.
  void gram_by_features(Scratch& ws, std::size_t i, CodeView a, std::span<const CodeView> planes,
                        double* row) const {
    std::size_t room = 4 * a.size();
    const std::size_t first = std::size_t(data_.offsets[i]);
    for (const Code c : a) room += 2 * data_.n_features(first + (c >> label_bits_));
    if (has_pairs()) for_edges(i, a, [&](std::size_t, double) { ++room; });
    if (room > n_weights() / kSlotsPerWeight) return gram_by_all_features(ws, i, a, planes, row);
    ws.sparse.clear(room);
    for_plane(i, a, [&](std::uint64_t j, double x) { ws.sparse.add(j, x); });
    for (std::size_t k = 0; k < planes.size(); ++k) {
      double sum = 0.0;
      for_plane(i, planes[k], [&](std::uint64_t j, double x) { sum += x * ws.sparse.get(j); });
      row[k] = sum;
    }
  }

  // The same where a hash table of the plane's entries would be larger than an array of all weights:
  // the planes of very long sequences.
  void gram_by_all_features(Scratch& ws, std::size_t i, CodeView a, std::span<const CodeView> planes, double* row) const {
    ws.all.resize(n_weights());
    for_plane(i, a, [&](std::uint64_t j, double x) { ws.all[j] += x; });
    for (std::size_t k = 0; k < planes.size(); ++k) {
      double sum = 0.0;
      for_plane(i, planes[k], [&](std::uint64_t j, double x) { sum += x * ws.all[j]; });
      row[k] = sum;
    }
    for_plane(i, a, [&](std::uint64_t j, double) { ws.all[j] = 0.0; });
  }

  // visit(weight index, value) for the entries of Δf(plane); an index may come several times.
  template <class Visit>
  void for_plane(std::size_t i, CodeView plane, Visit&& visit) const {
    const std::size_t first = std::size_t(data_.offsets[i]);
    for (const Code c : plane) {
      const std::size_t token = first + (c >> label_bits_), l = label_of(c);
      const std::size_t y = std::size_t(data_.labels[token]);
      data_.for_features(token, [&](std::size_t f, double x) {
        visit(f * Lp_ + y, x);
        visit(f * Lp_ + l, -x);
      });
    }
    for_edges(i, plane, visit);
  }

  // Cached inner products of the tokens of i, for a plane that differs in so many of them.
  LazyTokenGram token_gram(Scratch& ws, std::size_t i, std::size_t differing) const {
    const std::size_t n = data_.length(i);
    float* memory = grams_[i].load(std::memory_order_acquire);
    if (memory == nullptr) {
      auto made = std::make_unique<float[]>(LazyTokenGram::floats(n));
      LazyTokenGram::start(made.get(), n);
      // Engines of two threads may both have made it: the first stays.
      if (grams_[i].compare_exchange_strong(memory, made.get(), std::memory_order_acq_rel)) memory = made.release();
    }
    const LazyTokenGram gram(data_, std::size_t(data_.offsets[i]), n, memory);
    if (differing > kFewTokens || data_.kernel != nullptr) gram.complete(ws.gram_builder, ws.products);
    return gram;
  }

  // Planes that differ in more tokens ask for so many pairs that all are made at once.
  static constexpr std::size_t kFewTokens = 6;

  // An entry of a sparse plane takes up to 4 slots of 24 bytes, a weight of an array 8 bytes.
  static constexpr std::size_t kSlotsPerWeight = 12;

  // Longer sequences keep no inner products: they grow with the square of the length.
  static constexpr std::size_t kLongestGram = 256;

  double features_per_token_ = 0.0;
  mutable std::vector<std::atomic<float*>> grams_;  // owned; each is made once, and filled as asked for
};

}  // namespace mm
