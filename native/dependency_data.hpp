// Sentences with their dependency trees, as training and prediction see them.
#pragma once

#include <memory>

#include "arc_features.hpp"

namespace mm {

struct DependencyData {
  std::span<const std::int64_t> offsets;  // [n + 1] first token of each sentence
  ArcHashes::Source source;
  std::vector<ArcTemplate> templates;
  unsigned arc_bits = 3;     // 2^arc_bits weights of arcs
  unsigned row_bits = 3;     // 2^row_bits rows of weights of relations
  std::size_t n_labels = 0;  // relations, 0: unlabelled
  const std::int32_t* heads = nullptr;     // [tokens] of the truth; 0 is the root; nullptr: no truth
  const std::int32_t* labels = nullptr;    // [tokens]
  const double* example_weight = nullptr;  // [n] factor of C, nullptr: ones
  bool projective = true;
  bool one_root = true;
  bool zero_one = false;  // the loss of any wrong tree is 1
  std::shared_ptr<const ArcHashes> arcs, rows;

  // Hash all tokens; everything else is there.
  void make_hashes() {
    arcs = std::make_shared<const ArcHashes>(templates, false, source, offsets);
    if (labelled()) rows = std::make_shared<const ArcHashes>(templates, true, source, offsets);
  }

  std::size_t size() const { return offsets.size() - 1; }
  std::size_t length(std::size_t i) const { return std::size_t(offsets[i + 1] - offsets[i]); }
  bool labelled() const { return n_labels > 0; }
  // Relations, rounded up to whole vectors in either precision.
  std::size_t row_width() const { return (n_labels + 7) / 8 * 8; }
  std::size_t n_arc_weights() const { return std::size_t{1} << arc_bits; }
  std::size_t n_weights() const { return n_arc_weights() + (labelled() ? (std::size_t{1} << row_bits) * row_width() : 0); }
  // The root of sentence i, counted over all sentences with their roots.
  std::size_t base(std::size_t i) const { return std::size_t(offsets[i]) + i; }
  std::uint32_t head(std::size_t i, std::size_t d) const { return static_cast<std::uint32_t>(heads[std::size_t(offsets[i]) + d - 1]); }
  std::uint32_t label(std::size_t i, std::size_t d) const {
    return labels == nullptr ? 0 : static_cast<std::uint32_t>(labels[std::size_t(offsets[i]) + d - 1]);
  }

  std::uint64_t data_hash() const {
    DataHash hash(arc_bits * 64 + row_bits);
    const std::size_t tokens = std::size_t(offsets.back());
    hash.mix(offsets.data(), offsets.size_bytes());
    hash.mix(source.atoms, tokens * source.columns * sizeof(std::uint64_t));
    for (const ArcTemplate& t : templates) {
      hash.mix_number(t.seed);
      hash.mix_number(std::uint32_t(t.label * 2 + t.distance));
    }
    hash.mix_number(n_labels);
    hash.mix(heads, tokens * sizeof(std::int32_t));
    hash.mix(labels, tokens * sizeof(std::int32_t));
    hash.mix(example_weight, example_weight == nullptr ? 0 : size() * sizeof(double));
    hash.mix_number(std::uint32_t(projective * 4 + one_root * 2 + zero_one));
    return hash.value();
  }
};

}  // namespace mm
