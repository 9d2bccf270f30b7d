// z of all shares (maxmargin.distributed.meeting has the mathematics): sweeps over the weights that some share takes part in.
#pragma once

#include <span>

#include "link.hpp"
#include "short_floats.hpp"

namespace mm {

// total[places] += what was told.
inline void add_told(std::span<double> total, std::span<const std::uint32_t> places, std::span<const std::uint16_t> codes, ShortFloats scale) {
  if (places.size() != codes.size()) throw BadInput("a share told of other weights than it takes part in");
  for (std::size_t k = 0; k < places.size(); ++k) {
    if (places[k] >= total.size()) throw BadInput("a weight of a share is none of all shares");
    total[places[k]] += double(scale.value(codes[k]));
  }
}

struct Held {
  double penalty = 0.0;    // Ω(z), of the z that shares have then
  double conjugate = 0.0;  // Ω*(Σ u_k)
  ShortFloats scale;       // of the codes
};

// After a round: Σ u_k = Y + total / λ - R z with the old Y and z, because ρ v' = (1 - λ) ρ v + λ (ρ z + u). Then Y is the
// new one, z moves by what is told, and `total` is zero again. (Before the first round total is zero, and what is called
// Σ u_k has no meaning.)
template <class T>
Held hold(const Link& link, std::span<double> pull, std::span<double> total, std::span<const double> stiffness, double relaxation, T* z,
          std::uint16_t* codes) {
  Held held;
  const std::size_t n = pull.size();
  const auto sum_of_u = [&](std::size_t k) { return pull[k] + total[k] / relaxation - stiffness[k] * double(z[k]); };
  const bool plain = link.identity();
  held.conjugate = sum_each(n, 1, [&](std::size_t k) {
    const double u = sum_of_u(k);
    return plain ? 0.5 * u * u : link.conjugate(k, u, link.weight(k, u));
  });
  std::vector<float> told(n);
  const auto tell = [&](auto&& weight) {
    for (std::size_t k = 0; k < n; ++k) {
      pull[k] += total[k];
      total[k] = 0.0;
      told[k] = float(weight(k) - double(z[k]));
    }
  };
  if (plain) {
    tell([&](std::size_t k) { return pull[k] / (1.0 + stiffness[k]); });
  } else {
    tell([&](std::size_t k) { return link.held(k, pull[k], stiffness[k]); });
  }
  held.scale = ShortFloats::up_to(told);
  for (std::size_t k = 0; k < n; ++k) {
    codes[k] = held.scale.code(told[k]);
    z[k] += T(held.scale.value(codes[k]));
  }
  held.penalty = sum_each(n, 1, [&](std::size_t k) {
    // Rounding to two bytes may leave the bounds of a weight.
    return plain ? 0.5 * double(z[k]) * double(z[k]) : link.penalty(k, std::clamp(double(z[k]), link.least.at(k), link.most.at(k)));
  });
  return held;
}

}  // namespace mm
