// Features of dependency arcs, computed from templates on the fly.
//
// A template is a list of atoms, each a column of the head, of the dependent or of a token between them, at
// some distance from it. What an arc (h, d) has for a template t is known by the 32-bit number
//
//   H_t(h) + D_t(d) [+ B_t(b)] + Q_t(direction, distance)      (mod 2^32)
//
// where H, D and B are hashes of all atoms of one side, made once for each token, and Q is one of a few
// constants. Its top bits are the index of a weight. So a feature of an arc costs two additions and a shift, and
// nothing is stored for pairs of tokens. H, D, B and Q are well-mixed hashes of different seeds: two features
// share a number with the chance of any two hashes. (Shi et al. 2009 on hashed features; the tagger's fingerprints,
// expand.hpp, have 64 bits because they are the names of weights there.)
//
// Templates without a dependent's atoms, or without a head's, do not have to be computed for each pair, and are kept apart.
// "Between" is a set: a value that occurs twice between two tokens counts once.
//
// Labels. A label template has a row of weights, one for each relation, in the place of one weight.
#pragma once

#include <algorithm>

#include "common.hpp"
#include "data_hash.hpp"

namespace mm {

// One atom of a template.
struct ArcAtom {
  std::uint32_t side = 0;  // 0: head, 1: dependent, 2: between
  std::uint32_t column = 0;
  std::int32_t offset = 0;
};

struct ArcTemplate {
  bool label = false;     // a row for the relations
  bool distance = false;  // with the distance, not only the direction
  std::uint64_t seed = 0;
  std::vector<ArcAtom> atoms;
  bool has(std::uint32_t side) const {
    return std::any_of(atoms.begin(), atoms.end(), [&](const ArcAtom& a) { return a.side == side; });
  }
};

// The distance from h to d: 1, 2, 3, 4, 5, 6 to 10, more; behind these the same to the left.
inline constexpr std::size_t kBuckets = 14;
inline std::size_t arc_bucket(std::size_t h, std::size_t d) {
  const std::size_t apart = h < d ? d - h : h - d;
  const std::size_t size = apart <= 5 ? apart - 1 : apart <= 10 ? 5 : 6;
  return h < d ? size : size + kBuckets / 2;
}

namespace arc_hash {
inline constexpr std::uint64_t kSide[4] = {0x9ae16a3b2f90404fu, 0xc949c7defa5ed1a3u, 0xb492b66fbe98f273u, 0xd6e8feb86659fd93u};
inline std::uint64_t step(std::uint64_t state, std::uint64_t value) { return detail::fold_multiply(state ^ value, 0xa0761d6478bd642fu); }
inline std::uint32_t top(std::uint64_t state) { return static_cast<std::uint32_t>(detail::fold_multiply(state, 0xe7037ed1a0b428dbu) >> 32); }
// Of a direction and distance.
inline std::uint32_t place(std::uint64_t seed, std::size_t bucket) { return top(step(seed ^ kSide[3], bucket + 1)); }
}  // namespace arc_hash

// The hashes of all tokens for the templates of one kind: those of one side only, of pairs, and with what lies between.
class ArcHashes {
 public:
  // value(sentence position, column) of positions -1 (before the root), 0 (the root), 1..n, n + 1 (the end).
  struct Source {
    const std::uint64_t* atoms = nullptr;     // [tokens][columns]
    const std::uint64_t* specials = nullptr;  // [3][columns]: the root, before it, behind the end
    std::size_t columns = 0;
  };

  ArcHashes() = default;
  ArcHashes(const std::vector<ArcTemplate>& all, bool labels, Source source, std::span<const std::int64_t> offsets) {
    for (const ArcTemplate& t : all) {
      if (t.label != labels) continue;
      const bool h = t.has(0), d = t.has(1), b = t.has(2);
      // Rows of labels are summed for a token and a direction; with a distance they go with the pairs.
      const bool alone = !(labels && t.distance);
      (b ? between_ : (h && d) || !alone ? pairs_ : h ? heads_ : dependents_).push_back(t);
    }
    // Templates of pairs first, of one side behind them, of what lies between last.
    width_h_ = pairs_.size() + heads_.size() + between_.size();
    width_d_ = pairs_.size() + dependents_.size() + between_.size();
    const std::size_t sentences = offsets.size() - 1, positions = std::size_t(offsets.back()) + sentences;
    H_.resize(positions * width_h_);
    D_.resize(positions * width_d_);
    B_.resize(positions * between_.size());
    for (std::size_t i = 0; i < sentences; ++i) {
      const std::size_t first = std::size_t(offsets[i]), n = std::size_t(offsets[i + 1] - offsets[i]);
      for (std::size_t p = 0; p <= n; ++p) {
        const auto part = [&](const ArcTemplate& t, std::uint32_t side) -> std::uint32_t {
          std::uint64_t state = t.seed ^ arc_hash::kSide[side];
          bool any = false;
          for (const ArcAtom& atom : t.atoms) {
            if (atom.side != side) continue;
            any = true;
            const std::int64_t at = std::int64_t(p) + atom.offset;
            const std::uint64_t* row = at == 0                 ? source.specials
                                       : at < 0                ? source.specials + source.columns
                                       : at > std::int64_t(n) ? source.specials + 2 * source.columns
                                                               : source.atoms + (first + std::size_t(at) - 1) * source.columns;
            state = arc_hash::step(state, row[atom.column]);
          }
          return any ? arc_hash::top(state) : 0;
        };
        std::uint32_t* h = H_.data() + (first + i + p) * width_h_;
        std::uint32_t* d = D_.data() + (first + i + p) * width_d_;
        for (const ArcTemplate& t : pairs_) *h++ = part(t, 0), *d++ = part(t, 1);
        for (const ArcTemplate& t : heads_) *h++ = part(t, 0);
        for (const ArcTemplate& t : dependents_) *d++ = part(t, 1);
        std::uint32_t* b = B_.data() + (first + i + p) * between_.size();
        for (const ArcTemplate& t : between_) *h++ = part(t, 0), *d++ = part(t, 1), *b++ = part(t, 2);
      }
    }
    const auto places = [](const std::vector<ArcTemplate>& these, std::vector<std::uint32_t>& Q) {
      Q.resize(kBuckets * these.size());
      for (std::size_t b = 0; b < kBuckets; ++b) {
        for (std::size_t t = 0; t < these.size(); ++t) {
          // Without a distance: one number for each direction.
          const std::size_t bucket = these[t].distance ? b : kBuckets + (b >= kBuckets / 2);
          Q[b * these.size() + t] = arc_hash::place(these[t].seed, bucket);
        }
      }
    };
    places(pairs_, Q_pairs_), places(heads_, Q_heads_), places(dependents_, Q_dependents_), places(between_, Q_between_);
  }

  std::size_t n_pairs() const { return pairs_.size(); }
  std::size_t n_heads() const { return heads_.size(); }
  std::size_t n_dependents() const { return dependents_.size(); }
  std::size_t n_between() const { return between_.size(); }
  std::size_t bytes() const { return (H_.size() + D_.size() + B_.size()) * sizeof(std::uint32_t); }

  // Of a position, counted over all sentences with their roots.
  const std::uint32_t* head(std::size_t p) const { return H_.data() + p * width_h_; }
  const std::uint32_t* dependent(std::size_t p) const { return D_.data() + p * width_d_; }
  const std::uint32_t* inner(std::size_t p) const { return B_.data() + p * between_.size(); }
  const std::uint32_t* place_pairs(std::size_t bucket) const { return Q_pairs_.data() + bucket * pairs_.size(); }
  const std::uint32_t* place_heads(std::size_t bucket) const { return Q_heads_.data() + bucket * heads_.size(); }
  const std::uint32_t* place_dependents(std::size_t bucket) const { return Q_dependents_.data() + bucket * dependents_.size(); }
  const std::uint32_t* place_between(std::size_t bucket) const { return Q_between_.data() + bucket * between_.size(); }

  // visit(number) for all features of the arc from position h to d of the sentence that begins at `base`.
  template <class Visit>
  void for_arc(std::size_t base, std::size_t h, std::size_t d, Visit&& visit) const {
    const std::size_t bucket = arc_bucket(h, d), P = pairs_.size();
    const std::uint32_t *H = head(base + h), *D = dependent(base + d), *Q = place_pairs(bucket);
    for (std::size_t t = 0; t < P; ++t) visit(H[t] + D[t] + Q[t]);
    Q = place_heads(bucket);
    for (std::size_t t = 0; t < heads_.size(); ++t) visit(H[P + t] + Q[t]);
    Q = place_dependents(bucket);
    for (std::size_t t = 0; t < dependents_.size(); ++t) visit(D[P + t] + Q[t]);
    Q = place_between(bucket);
    for (std::size_t t = 0; t < between_.size(); ++t) {
      const std::uint32_t ends = H[P + heads_.size() + t] + D[P + dependents_.size() + t] + Q[t];
      const std::size_t lo = std::min(h, d) + 1, hi = std::max(h, d);
      for (std::size_t b = lo; b < hi; ++b) {
        const std::uint32_t value = inner(base + b)[t];
        bool seen = false;
        for (std::size_t c = lo; c < b && !seen; ++c) seen = inner(base + c)[t] == value;
        if (!seen) visit(ends + value);
      }
    }
  }

 private:
  std::vector<ArcTemplate> pairs_, heads_, dependents_, between_;
  std::size_t width_h_ = 0, width_d_ = 0;
  std::vector<std::uint32_t> H_, D_, B_;
  std::vector<std::uint32_t> Q_pairs_, Q_heads_, Q_dependents_, Q_between_;
};

}  // namespace mm
