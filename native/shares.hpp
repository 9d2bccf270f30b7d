// What a share of the examples hands to others and takes from them (docs/architecture.md, "Many machines").
//
// The shares of a training have one u = C Σ_k Σ_{i in share k} α_i Δf_i in common. An engine with the examples
// of share k runs its passes with σC in the place of C: a step moves its u by σ times what the step adds to the
// u of all shares, so that within a round its passes see u + σ Δu_k. At the end of a round it gives Δu_k, and
// all engines are set to the next u (Engine::settle).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "certify.hpp"

namespace mm {

struct SparseChange {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

// (u - base) scale, where it is not zero.
template <class T>
SparseChange changes(const Weights<T>& weights, const T* base, double scale) {
  SparseChange out;
  const T* u = weights.sums();
  for (std::size_t j = 0; j < weights.size(); ++j) {
    if (u[j] == base[j]) continue;
    const float change = static_cast<float>((double(u[j]) - double(base[j])) * scale);
    if (change == 0.0f) continue;  // too small for four bytes
    out.indices.push_back(static_cast<std::uint32_t>(j));
    out.values.push_back(change);
  }
  return out;
}

// C Σ α Δf of the engine's own blocks, in 8-byte arithmetic and the layout of 8-byte weights.
template <class T>
std::vector<double> own_sums(const Engine<T>& engine, const Structure<double>& exact) {
  Weights<double> sums(exact.n_weights());
  engine.blocks().add_all(exact, sums, 1);
  return {sums.data(), sums.data() + sums.size()};
}

}  // namespace mm
