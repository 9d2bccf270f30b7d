// Prior-knowledge constraints of labellings, as numbers: φ(x, y) of each sequence, coordinate by coordinate.
//
// A coordinate of φ is of one of three sorts.
//   * at a token:  φ_k = table[y_t], one number a label (words that take certain labels; first and last labels).
//   * at an edge:  φ_k = table[y_{t-1}][y_t], at the token t (transitions only at certain tokens).
//   * of an automaton that reads the labelling from the left (counts, segments, orders, long n-grams). It has
//     one coordinate a sequence, or one for each token, or one for each token and n-gram.
// The first two sorts stand at one place each, so that c φ_k + q φ_k² is one more term of the emissions or
// transitions there, whatever c and q: Viterbi finds the best labelling exactly. The third sort needs states
// beside the labels (constraint_automata.hpp, constrained_search.hpp).
//
// Coordinates of all sequences are numbered one after the other. A coordinate may belong to a group; the sum
// of φ over a group is a feature of the model ("constraint features").
#pragma once

#include "common.hpp"
#include "data_hash.hpp"

namespace mm {

// Coordinates that stand at tokens, or at the edges into tokens.
struct Sites {
  std::span<const std::int64_t> indptr;        // [tokens + 1] into the two lists; empty: none anywhere
  std::span<const std::int64_t> coordinates;   // each of the sequence of its token
  std::span<const std::uint32_t> tables;       // which table
  const double* values = nullptr;              // [tables][size]
  std::size_t size = 0;                        // L, or L * L by the label before

  // visit(coordinate, its table) at a token
  template <class Visit>
  void at(std::size_t token, Visit&& visit) const {
    if (indptr.empty()) return;
    for (std::int64_t e = indptr[token]; e < indptr[token + 1]; ++e) {
      visit(std::size_t(coordinates[std::size_t(e)]), values + std::size_t(tables[std::size_t(e)]) * size);
    }
  }
  bool any(std::size_t token) const { return !indptr.empty() && indptr[token + 1] > indptr[token]; }
  void mix_into(DataHash& hash) const {
    hash.mix(indptr.data(), indptr.size_bytes());
    hash.mix(coordinates.data(), coordinates.size_bytes());
    hash.mix(tables.data(), tables.size_bytes());
  }
};

enum class AutomatonKind : std::uint8_t {
  kSegments,  // a label does not come back after another one
  kOrder,     // no label of a lower rank comes after one of a higher rank
  kLength,    // a segment has at least so many tokens
  kCount,     // how often something occurs: φ = 1 where the count is from low to high
  kTotal,     // φ = the count itself
  kNgrams,    // φ = 1 at a token and an n-gram of labels that ends there, n >= 3
};

struct AutomatonData {
  AutomatonKind kind = AutomatonKind::kSegments;
  bool per_token = false;                 // of the first three: a coordinate for each token after the first
                                          // (kLength: and one behind the last), not one for the sequence
  std::vector<std::int32_t> labels;       // [L] kSegments: 1 or 0; kOrder: rank or -1; kLength: least length
  std::int64_t low = 0, high = 0;         // kCount; high < 0: no upper bound
  std::vector<std::uint8_t> increments;   // [L + 1][L] kCount, kTotal: 1 counts; row L is before the first token
  std::span<const std::uint8_t> active;   // [tokens] of counts: where they count; empty: everywhere
  std::size_t order = 0;                  // kNgrams: n
  std::vector<std::uint32_t> grams;       // [n-grams][n]
  std::span<const std::int64_t> first;    // [sequences] its first coordinate
};

struct ConstraintData {
  std::size_t n_labels = 0;
  std::span<const std::int64_t> offsets;   // [sequences + 1] first coordinate of each sequence
  Sites tokens, edges;
  std::vector<AutomatonData> automata;
  std::span<const std::int32_t> groups;    // [coordinates] or -1; empty: none is in a group
  std::size_t n_groups = 0;

  std::size_t size() const { return offsets.size() - 1; }
  std::size_t n_coordinates() const { return std::size_t(offsets.back()); }
  std::int32_t group(std::size_t k) const { return groups.empty() ? -1 : groups[k]; }

  void mix_into(DataHash& hash) const {
    hash.mix(offsets.data(), offsets.size_bytes());
    tokens.mix_into(hash);
    edges.mix_into(hash);
    hash.mix(groups.data(), groups.size_bytes());
    for (const AutomatonData& a : automata) {
      hash.mix(a.labels.data(), a.labels.size() * sizeof(std::int32_t));
      hash.mix(a.increments.data(), a.increments.size());
      hash.mix(a.grams.data(), a.grams.size() * sizeof(std::uint32_t));
      hash.mix(a.active.data(), a.active.size_bytes());
      hash.mix(a.first.data(), a.first.size_bytes());
    }
  }
};

// What φ is worth to a search: Σ_k c_k φ_k + q ‖φ‖², by coordinate. An infinite c_k makes coordinate k hard:
// labellings with φ_k = 0 are out of the question, and φ_k = 1 is worth nothing.
class Worths {
 public:
  // Of the coordinates [first, first + n); c has n entries.
  void reset(std::size_t first, std::size_t n, double q) { first_ = first, q_ = q, c_.assign(n, 0.0); }
  double& c(std::size_t k) { return c_[k - first_]; }
  double c(std::size_t k) const { return c_[k - first_]; }
  double q() const { return q_; }
  bool hard(std::size_t k) const { return c(k) == kInfinity; }
  double of(std::size_t k, double phi) const {
    const double c = this->c(k);
    if (c == kInfinity) return phi > 0.0 ? 0.0 : -kInfinity;
    return c * phi + q_ * phi * phi;
  }
  double most(std::size_t k) const { return std::max(of(k, 0.0), of(k, 1.0)); }

 private:
  std::size_t first_ = 0;
  double q_ = 0.0;
  std::vector<double> c_;
};

}  // namespace mm
