// The state of an engine as flat arrays, for checkpoints: restoring it and going on gives, with one
// thread, bit for bit what going on without the interruption would have given.
#pragma once

#include "blocks.hpp"

namespace mm {

template <class T>
struct EngineState {
  std::vector<std::uint32_t> example, lo, hi;  // per part
  std::vector<float> violation, stiffness;
  std::vector<std::uint32_t> n_planes;
  std::vector<double> alpha, loss;             // per plane, the truth first
  std::vector<T> gram;                         // per part, n_planes x n_planes
  std::vector<std::uint32_t> code_size;        // per plane
  std::vector<Code> codes;
};

// Of the examples from begin to end - 1.
template <class T>
EngineState<T> save_state(const Blocks<T>& blocks, std::size_t begin, std::size_t end) {
  EngineState<T> s;
  for (std::size_t i = begin; i < end; ++i) {
    for (const Part<T>& part : blocks[i]) {
      const std::size_t m = part.set.size();
      s.example.push_back(static_cast<std::uint32_t>(i));
      s.lo.push_back(part.extent.lo);
      s.hi.push_back(part.extent.hi);
      s.violation.push_back(part.violation);
      s.stiffness.push_back(part.stiffness);
      s.n_planes.push_back(static_cast<std::uint32_t>(m));
      s.alpha.insert(s.alpha.end(), part.set.alpha(), part.set.alpha() + m);
      s.loss.insert(s.loss.end(), part.set.loss(), part.set.loss() + m);
      for (std::size_t k = 0; k < m; ++k) {
        const T* row = part.set.gram() + k * part.set.stride();
        s.gram.insert(s.gram.end(), row, row + m);
        const CodeView code = part.set.code(k);
        s.code_size.push_back(static_cast<std::uint32_t>(code.size()));
        s.codes.insert(s.codes.end(), code.begin(), code.end());
      }
    }
  }
  return s;
}

// A state as bytes: the length of each array, then the arrays.
template <class State, class F>
void for_arrays(State& s, F&& f) {
  f(s.example), f(s.lo), f(s.hi), f(s.violation), f(s.stiffness), f(s.n_planes);
  f(s.alpha), f(s.loss), f(s.gram), f(s.code_size), f(s.codes);
}

template <class T>
std::vector<std::byte> packed(const EngineState<T>& s) {
  std::size_t size = 0;
  for_arrays(s, [&](const auto& array) { size += sizeof(std::uint64_t) + array.size() * sizeof(array[0]); });
  std::vector<std::byte> out(size);
  std::byte* at = out.data();
  for_arrays(s, [&](const auto& array) {
    const std::uint64_t n = array.size();
    std::memcpy(at, &n, sizeof n);
    at += sizeof n;
    if (n > 0) std::memcpy(at, array.data(), n * sizeof(array[0]));
    at += n * sizeof(array[0]);
  });
  return out;
}

// The bytes may be anything.
template <class T>
EngineState<T> unpacked(std::span<const std::byte> bytes) {
  EngineState<T> s;
  std::size_t at = 0;
  for_arrays(s, [&](auto& array) {
    using X = typename std::decay_t<decltype(array)>::value_type;
    std::uint64_t n = 0;
    if (bytes.size() - at < sizeof n) throw BadInput("the planes of a window are cut short");
    std::memcpy(&n, bytes.data() + at, sizeof n);
    at += sizeof n;
    if (n > (bytes.size() - at) / sizeof(X)) throw BadInput("the planes of a window are cut short");
    array.resize(n);
    if (n > 0) std::memcpy(array.data(), bytes.data() + at, n * sizeof(X));
    at += n * sizeof(X);
  });
  if (at != bytes.size()) throw BadInput("there are more bytes than the planes of a window need");
  return s;
}

// Rebuild the parts of the examples from begin to end - 1 from a state that may come from a damaged or
// foreign file.
template <class T>
std::vector<Parts<T>> restore_parts(const EngineState<T>& s, const Structure<T>& structure,
                                    bool factored, bool free, std::size_t begin, std::size_t end) {
  const auto check = [](bool ok, const char* what) {
    if (!ok) throw BadInput(std::string("the checkpoint does not fit this problem: ") + what);
  };
  const std::size_t n = s.example.size();
  check(s.lo.size() == n && s.hi.size() == n && s.violation.size() == n && s.stiffness.size() == n && s.n_planes.size() == n,
        "part arrays differ in length");
  std::vector<Parts<T>> parts(end - begin);
  std::size_t plane = 0, entry = 0, word = 0;
  auto ws = structure.workspace();
  std::vector<CodeView> views;
  std::vector<double> row;
  for (std::size_t p = 0; p < n; ++p) {
    const std::size_t i = s.example[p], m = s.n_planes[p];
    check(i >= begin && i < end && m >= 1 && s.lo[p] <= s.hi[p], "a part is out of range");
    Parts<T>& own = parts[i - begin];
    check(m <= s.alpha.size() - plane && s.loss.size() == s.alpha.size() && s.code_size.size() == s.alpha.size(), "planes are missing");
    check(m * m <= s.gram.size() - entry, "Gram entries are missing");
    check(own.empty() || own.back().extent.hi < s.lo[p], "parts overlap");
    Part<T> part;
    part.extent = {s.lo[p], s.hi[p]};
    part.violation = s.violation[p];
    check(std::isfinite(part.violation), "a violation is not finite");
    part.stiffness = s.stiffness[p];
    check(part.stiffness > 0.0f && part.stiffness <= 1.0f, "a stiffness is out of range");
    part.set.start();
    double sum = 0.0;
    for (std::size_t k = 0; k < m; ++k) {
      const double alpha = s.alpha[plane + k];
      check(alpha >= 0.0 && (free ? k == 0 || alpha < kInfinity : alpha <= 1.0 + 1e-6), "a multiplier is out of range");
      sum += alpha;
      const std::size_t size = s.code_size[plane + k];
      check(size <= s.codes.size() - word, "codes are missing");
      const CodeView code{s.codes.data() + word, size};
      word += size;
      check((k == 0) == code.empty() && (k == 0 || structure.valid(i, code)), "a code is damaged");
      if (k > 0) {
        row.resize(k + 1);
        for (std::size_t j = 0; j <= k; ++j) {
          row[j] = double(s.gram[entry + k * m + j]);
          check(std::isfinite(row[j]), "a Gram entry is not finite");
        }
        const Extent extent = structure.extent(i, code);
        check(!factored || (part.extent.lo <= extent.lo && extent.hi <= part.extent.hi), "a plane lies outside of its part");
        check(row[k] >= 0.0, "a Gram matrix is not positive");
        const double loss = structure.loss(i, code);
        check(std::abs(loss - s.loss[plane + k]) <= 1e-9 * (1.0 + std::abs(loss)), "a loss is wrong");
        part.set.add(code, loss, row.data());
      }
      part.set.alpha()[k] = alpha;
    }
    check(free || std::abs(sum - 1.0) < 1e-6, "multipliers do not sum to one");
    part.set.views(views);
    structure.reindex(*ws, i, views, part.index);
    plane += m;
    entry += m * m;
    own.push_back(std::move(part));
  }
  check(plane == s.alpha.size() && entry == s.gram.size() && word == s.codes.size(), "there is more than its parts need");
  return parts;
}

}  // namespace mm
