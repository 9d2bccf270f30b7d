// Rows of features whose numbers change: rare ones dropped, or all of them hashed.
#pragma once

#include <cmath>

#include "common.hpp"

namespace mm {

template <class X>
struct Rows {
  std::vector<std::int64_t> indptr{0};
  std::vector<std::uint32_t> indices;
  std::vector<X> values;  // empty: all ones
};

// number[old] is the new number, 0xFFFFFFFF: drop it. Where two features of a token become one, the
// one with the value farther from zero stands for both: two that are simply there are there once,
// whether or not others in the data have values.
template <class X>
Rows<X> renumber(std::span<const std::int64_t> indptr, std::span<const std::uint32_t> indices, const X* values,
                 std::span<const std::uint32_t> number) {
  constexpr std::uint32_t kDrop = 0xFFFFFFFFu;
  Rows<X> out;
  out.indptr.reserve(indptr.size());
  out.indices.reserve(indices.size());
  if (values != nullptr) out.values.reserve(indices.size());
  std::vector<std::pair<std::uint32_t, X>> row;
  for (std::size_t t = 0; t + 1 < indptr.size(); ++t) {
    row.clear();
    for (std::int64_t e = indptr[t]; e < indptr[t + 1]; ++e) {
      const std::uint32_t old = indices[std::size_t(e)];
      if (old >= number.size()) throw BadInput("a feature has no number");
      if (number[old] != kDrop) row.emplace_back(number[old], values != nullptr ? values[e] : X(1));
    }
    std::sort(row.begin(), row.end());
    const std::size_t begin = out.indices.size();
    for (const auto& [id, value] : row) {
      if (out.indices.size() > begin && out.indices.back() == id) {
        if (values != nullptr && std::abs(value) > std::abs(out.values.back())) out.values.back() = value;
        continue;
      }
      out.indices.push_back(id);
      if (values != nullptr) out.values.push_back(value);
    }
    out.indptr.push_back(std::int64_t(out.indices.size()));
  }
  return out;
}

}  // namespace mm
