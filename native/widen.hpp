// From 4-byte to 8-byte weights in the middle of a training.
//
// 4-byte weights round each margin by about 6e-8 of the sizes that are added up in it. The gap counts
// that C times for each example, so that with a large C it can be all that is left of the gap: then
// no number of passes helps. What the engine has learned is in its planes and multipliers, which do not
// depend on the size of the weights. So an engine of 8-byte weights takes them over; Gram matrices, u and
// w are computed anew in 8 bytes, since those of 4 bytes carry the rounding that is to be left behind.
//
// Rows of weights are padded to whole vectors, of which 8-byte weights need other numbers: what is kept
// for each weight (thresholds, the fixed linear term, averages) moves to the new layout.
#pragma once

#include <memory>

#include "engine.hpp"

namespace mm {

// An array with an entry for each 4-byte weight, in the layout of the 8-byte ones. Padding is zero.
template <class X>
std::vector<double> widened(const X* from, const Structure<float>& narrow, const Structure<double>& wide) {
  std::vector<double> to(wide.n_weights());
  const std::size_t old = narrow.row_size(), fresh = wide.row_size(), width = std::min(old, fresh);
  for (std::size_t row = 0; row < narrow.n_weights() / old; ++row) {
    for (std::size_t k = 0; k < width; ++k) to[row * fresh + k] = double(from[row * old + k]);
  }
  return to;
}

// A link whose arrays are in the layout of the 4-byte weights, for the 8-byte ones. Arrays that have
// their length already stay as they are.
inline Link widened(Link link, const Structure<float>& narrow, const Structure<double>& wide) {
  link.for_fields([&](LinkField& field) {
    if (!field.each || field.each->size() != narrow.n_weights() || field.each->size() == wide.n_weights()) return;
    field.each = std::make_shared<const std::vector<double>>(widened(field.each->data(), narrow, wide));
  });
  return link;
}

// An engine of 8-byte weights with the planes and multipliers of one of 4-byte weights.
inline std::unique_ptr<Engine<double>> widened(const Engine<float>& from, const Structure<float>& narrow,
                                               const Structure<double>& wide) {
  const Blocks<float>& old = from.blocks();
  auto engine = std::make_unique<Engine<double>>(wide, old.C(), old.factored(), widened(from.weights().link(), narrow, wide), old.slack());
  Blocks<double>& blocks = engine->blocks();
  auto ws = wide.workspace();
  std::vector<CodeView> views;
  std::vector<double> row;
  for (std::size_t i = 0; i < old.n_examples(); ++i) {
    for (const Part<float>& part : old[i]) {
      Part<double> fresh;
      fresh.extent = part.extent;
      fresh.violation = part.violation;
      fresh.stiffness = part.stiffness;
      fresh.set.start();
      for (std::size_t k = 1; k < part.set.size(); ++k) add_plane(wide, *ws, i, fresh, part.set.code(k), views, row);
      std::copy(part.set.alpha(), part.set.alpha() + part.set.size(), fresh.set.alpha());
      blocks[i].push_back(std::move(fresh));
    }
  }
  blocks.gaps() = old.gaps();
  if (old.unbounded()) blocks.set_unbounded();
  Weights<double>& weights = engine->weights_to_change();
  if (const float* fixed = from.weights().fixed()) weights.set_fixed(widened(fixed, narrow, wide).data());
  blocks.rebuild(wide, weights);
  weights.relink();
  if (from.weights().lagging()) weights.follow(widened(from.weights().beta(), narrow, wide).data());
  engine->recount();
  std::vector<double> lag;
  if (const Weights<float>* kept = from.average().lag()) lag = widened(kept->data(), narrow, wide);
  engine->average().restore(lag, from.average().visits());
  return engine;
}

}  // namespace mm
