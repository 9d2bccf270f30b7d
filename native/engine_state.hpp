// The state of an engine as flat arrays, for checkpoints: restoring it and going on gives, with one
// thread, bit for bit what going on without the interruption would have given.
#pragma once

#include "engine.hpp"

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

template <class T>
EngineState<T> save_state(const Engine<T>& engine) {
  EngineState<T> s;
  for (std::size_t i = 0; i < engine.blocks().n_examples(); ++i) {
    for (const Part<T>& part : engine.blocks()[i]) {
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

// Rebuild the parts from a state that may come from a damaged or foreign file.
template <class T>
std::vector<Parts<T>> restore_parts(const EngineState<T>& s, const Structure<T>& structure,
                                    bool factored, bool free) {
  const auto check = [](bool ok, const char* what) {
    if (!ok) throw BadInput(std::string("the checkpoint does not fit this problem: ") + what);
  };
  const std::size_t n = s.example.size();
  check(s.lo.size() == n && s.hi.size() == n && s.violation.size() == n && s.stiffness.size() == n && s.n_planes.size() == n,
        "part arrays differ in length");
  std::vector<Parts<T>> parts(structure.n_examples());
  std::size_t plane = 0, entry = 0, word = 0;
  auto ws = structure.workspace();
  std::vector<CodeView> views;
  std::vector<double> row;
  for (std::size_t p = 0; p < n; ++p) {
    const std::size_t i = s.example[p], m = s.n_planes[p];
    check(i < parts.size() && m >= 1 && s.lo[p] <= s.hi[p], "a part is out of range");
    check(m <= s.alpha.size() - plane && s.loss.size() == s.alpha.size() && s.code_size.size() == s.alpha.size(), "planes are missing");
    check(m * m <= s.gram.size() - entry, "Gram entries are missing");
    check(parts[i].empty() || parts[i].back().extent.hi < s.lo[p], "parts overlap");
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
    parts[i].push_back(std::move(part));
  }
  check(plane == s.alpha.size() && entry == s.gram.size() && word == s.codes.size(), "there is more than its parts need");
  return parts;
}

}  // namespace mm
