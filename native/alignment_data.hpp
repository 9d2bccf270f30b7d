// Pairs of sequences and what an alignment of them is scored by.
//
// An alignment is the list of its matches (i, j), both ascending. Between two neighbouring matches lie a run
// of residues of the first sequence and one of the second, each possibly empty: every run that is not empty is
// a gap, which costs `open` for its first residue and `extend` for each further one. (With linear gaps both
// are the same weight.) So an alignment has exactly one score, whatever the signs of the weights:
//
//   w.f = Σ over matches  w[table[x_i][z_j]] + position score of (i, j)  +  Σ over gaps  open + (length - 1) extend.
//
// Residues before the first match and behind the last one (a of the first sequence, b of the second) are paid
// by the mode:
//   global      two gaps of a and b residues;
//   local       nothing;
//   semiglobal  an end of a sequence may be free. If one of two is, the other is paid; if both are, the
//               longer one is free and the shorter one is a gap, as in overlap alignments.
// Where nothing is matched at all: global, gaps of all residues; local, 0; semiglobal, either end sets one
// sequence free, if it may, and the longer one where it has a choice.
//
// The loss of an alignment of the first candidate counts matches or residues:
//   matches   the share of the true matches that it does not have;
//   residues  the number of residues of both sequences whose partner (or having none) is wrong, divided by
//             the number of those that have a partner in truth.
// Both are (base + Σ over matches c(i, j)) / size with integers c: -1 at true matches and 0 elsewhere, or -2
// at true matches and elsewhere 1 for each of the two residues that has no partner in truth.
#pragma once

#include "data_hash.hpp"
#include "structure.hpp"

namespace mm {

enum class AlignmentMode : int { kGlobal, kLocal, kSemiglobal };
enum class AlignmentLoss : int { kMatches, kResidues };
enum class PositionScore : int { kNone, kProduct, kDifference, kBilinear };

// The ends that are free, in a semiglobal alignment.
struct FreeEnds {
  bool start1 = false, start2 = false, end1 = false, end2 = false;
};

struct AlignmentModel {
  AlignmentMode mode = AlignmentMode::kGlobal;
  FreeEnds free;
  AlignmentLoss loss = AlignmentLoss::kMatches;
  bool fixed_homolog = true;            // with decoys: other alignments of the first candidate are no outputs
  std::size_t n_letters = 0;
  const std::uint32_t* table = nullptr;  // [n_letters][n_letters] the weight of a match
  std::uint32_t open = 0, extend = 0;    // weights of gaps; the same where they are linear
  PositionScore position = PositionScore::kNone;
  std::uint32_t position_from = 0;       // first of their weights: d, or d x d
  std::size_t n_position = 0;            // d
  std::size_t n_weights = 0;
};

struct AlignmentData {
  AlignmentModel model;
  std::span<const std::uint8_t> letters;           // of all sequences
  std::span<const std::int64_t> sequences;         // [sequences + 1] into letters
  const double* position = nullptr;                // [letters][n_position]
  std::span<const std::int64_t> native;            // [n] the first sequence of each example
  std::span<const std::int64_t> candidates_from;   // [n + 1] into candidates
  std::span<const std::int64_t> candidates;        // second sequences; the first one is the homolog, the others are decoys
  std::span<const std::int64_t> matches_from;      // [n + 1] into matches
  const std::int32_t* matches = nullptr;           // [matches][2] of the native sequence with the homolog
  const double* example_weight = nullptr;          // [n] factor of C, nullptr: ones

  std::size_t size() const { return native.size(); }
  std::size_t length(std::size_t s) const { return std::size_t(sequences[s + 1] - sequences[s]); }
  const std::uint8_t* letters_of(std::size_t s) const { return letters.data() + sequences[s]; }
  const double* positions_of(std::size_t s) const { return position + std::size_t(sequences[s]) * model.n_position; }
  std::size_t n_candidates(std::size_t i) const { return std::size_t(candidates_from[i + 1] - candidates_from[i]); }
  std::size_t candidate(std::size_t i, std::size_t c) const { return std::size_t(candidates[std::size_t(candidates_from[i]) + c]); }
  std::size_t n_matches(std::size_t i) const { return std::size_t(matches_from[i + 1] - matches_from[i]); }
  const std::int32_t* matches_of(std::size_t i) const { return matches + 2 * matches_from[i]; }

  std::uint64_t data_hash() const {
    DataHash hash(model.n_weights);
    for (const int number : {int(model.mode), int(model.loss), int(model.position), int(model.fixed_homolog), int(model.free.start1),
                             int(model.free.start2), int(model.free.end1), int(model.free.end2)}) {
      hash.mix_number(number);
    }
    hash.mix(model.table, model.n_letters * model.n_letters * sizeof(std::uint32_t));
    hash.mix(letters.data(), letters.size_bytes());
    hash.mix(sequences.data(), sequences.size_bytes());
    hash.mix(position, position == nullptr ? 0 : letters.size() * model.n_position * sizeof(double));
    hash.mix(native.data(), native.size_bytes());
    hash.mix(candidates_from.data(), candidates_from.size_bytes());
    hash.mix(candidates.data(), candidates.size_bytes());
    hash.mix(matches_from.data(), matches_from.size_bytes());
    hash.mix(matches, std::size_t(matches_from.back()) * 2 * sizeof(std::int32_t));
    hash.mix(example_weight, example_weight == nullptr ? 0 : size() * sizeof(double));
    return hash.value();
  }
};

// What is paid for residues outside of the matches, in gaps: of each length, as many numbers as calls of
// `gap(length)`.
template <class Gap>
void for_outside(AlignmentMode mode, bool free1, bool free2, std::size_t a, std::size_t b, Gap&& gap) {
  if (mode == AlignmentMode::kLocal) return;
  if (mode == AlignmentMode::kGlobal) free1 = free2 = false;
  if (free1 && free2) {
    gap(std::min(a, b));
  } else {
    if (!free1) gap(a);
    if (!free2) gap(b);
  }
}

// The same where nothing is matched.
template <class Gap>
void for_unmatched(AlignmentMode mode, const FreeEnds& free, std::size_t n, std::size_t m, Gap&& gap) {
  if (mode == AlignmentMode::kSemiglobal && ((free.start1 && free.end2) || (free.start2 && free.end1))) return;
  for_outside(mode, free.start1 || free.end1, free.start2 || free.end2, n, m, gap);
}

}  // namespace mm
