// Classes (Crammer and Singer): f(x, y) = x ⊗ e(y), one column of weights for each class.
#pragma once

#include "outer_planes.hpp"

namespace mm {

template <class T>
class Multiclass final : public OuterPlanes<T> {
 public:
  using Entry = typename OuterPlanes<T>::LambdaEntry;

  explicit Multiclass(const ClassData& data) : OuterPlanes<T>(data, data.n_classes), unit_(data.n_classes) {
    for (std::size_t c = 0; c < unit_.size(); ++c) unit_[c] = {static_cast<std::uint32_t>(c), 1.0};
  }

  std::span<const Entry> lambda(std::size_t c) const override { return {&unit_[c], 1}; }
  double overlap(std::size_t a, std::size_t b) const override { return a == b ? 1.0 : 0.0; }

 private:
  std::vector<Entry> unit_;  // λ(c) = e(c)
};

}  // namespace mm
