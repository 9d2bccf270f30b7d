// The kept planes of an engine's blocks as a program of the interior point, and its answer given back.
//
// Columns are the weights that some kept plane touches and that can move; the others stay at link(u₀) or
// where they are held, and what planes have there goes into their losses. All of it is in 8-byte
// numbers, whatever the weights of the engine are.
#pragma once

#include "blocks.hpp"
#include "interior_point.hpp"

namespace mm {

// How large the interior point over the kept planes is, by a sample of them.
struct InteriorSize {
  double columns = 0.0, planes = 0.0, row = 0.0;
  double work = kInfinity;   // cycles, of a whole solve; infinite where it is not offered
  double bytes = 0.0;
};

template <class T>
class InteriorPass {
 public:
  // The side of the largest matrix that is factored.
  static constexpr double kMostUnknowns = 8192.0;

  InteriorPass(const Structure<T>& structure, Blocks<T>& blocks, const Weights<T>& weights)
      : structure_(structure), blocks_(blocks), weights_(weights) {}

  static InteriorSize size(const Structure<T>& structure, const Blocks<T>& blocks, const Weights<T>& weights) {
    InteriorSize size;
    std::vector<std::pair<std::size_t, const Part<T>*>> parts;
    for (std::size_t i = 0; i < blocks.n_examples(); ++i) {
      for (const Part<T>& part : blocks[i]) {
        if (part.set.size() < 2 || !(blocks.C_of(i) > 0.0)) continue;
        size.planes += double(part.set.size() - 1);
        parts.push_back({i, &part});
      }
    }
    if (parts.empty() || weights.mapped() || weights.lagging()) return size;
    auto ws = structure.workspace();
    auto plane = Weights<T>::recorder(structure.n_weights());
    std::vector<std::size_t> places;
    const std::size_t samples = std::min<std::size_t>(kSamples, parts.size());
    const double one = 1.0;
    for (std::size_t a = 0; a < samples; ++a) {
      const auto& [i, part] = parts[a * parts.size() / samples];
      const CodeView code = part->set.code(1 + a % (part->set.size() - 1));
      structure.accumulate(*ws, i, part->index, {&code, 1}, &one, plane);
      plane.places(places);
      size.row += double(places.size()) / double(samples);
      plane.wipe();
    }
    size.columns = std::min(double(structure.n_weights()), size.planes * std::max(size.row, 1.0));
    const Link& link = weights.link();
    const bool quadratic = link.lower.is(0.0) && link.upper.is(0.0) && link.least.is(-kInfinity) && link.most.is(kInfinity);
    size.bytes = interior_bytes(size.columns, size.planes, size.row, quadratic);
    if (std::min(size.columns, size.planes) <= kMostUnknowns) size.work = interior_work(size.columns, size.planes, size.row, quadratic);
    return size;
  }

  // Solve over the kept planes; the multipliers are not given back yet.
  // `own`: the weights are not those of the multipliers.
  InteriorResult solve(const InteriorOptions& options, const std::function<bool()>& halt, bool own) {
    gather();
    if (program_.planes.size() == 0 || program_.columns.empty()) return {};
    if (double(std::min(program_.planes.size(), program_.columns.size())) > kMostUnknowns) {
      throw BadInput("an interior point over " + std::to_string(program_.planes.size()) + " planes and " +
                     std::to_string(program_.columns.size()) + " weights is too large: of one of them there may be " +
                     std::to_string(std::size_t(kMostUnknowns)));
    }
    std::vector<double> w(own ? columns_.size() : 0);
    for (std::size_t c = 0; c < w.size(); ++c) w[c] = double(weights_.data()[columns_[c]]);
    return interior_point(program_, start_, options, halt, own ? &w : nullptr);
  }

  // Write the multipliers of a solution into the blocks. take_back() undoes that.
  void give(const std::vector<double>& z) {
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const auto& [i, part] = parts_[p];
      double* alpha = part->set.alpha();
      double rest = 1.0;
      for (std::size_t k = 1; k < part->set.size(); ++k) {
        alpha[k] = z[program_.first[p] + k - 1] / program_.C[p];
        rest -= alpha[k];
      }
      if (blocks_.unconstrained()) continue;
      // What rounding left beyond one is taken from the largest, so that the sum is exact.
      if (rest < 0.0) {
        double* top = std::max_element(alpha + 1, alpha + part->set.size());
        *top = std::max(0.0, *top + rest);
      }
      alpha[0] = rest < kNothing ? 0.0 : rest;
    }
  }
  void take_back() {
    for (std::size_t p = 0, at = 0; p < parts_.size(); ++p) {
      Part<T>& part = *parts_[p].second;
      std::copy_n(before_.begin() + std::ptrdiff_t(at), part.set.size(), part.set.alpha());
      at += part.set.size();
    }
  }

  // Write weights of the solution's own into those of the engine, in the place of link(u).
  void show(const std::vector<double>& w, Weights<T>& weights) const {
    for (std::size_t c = 0; c < columns_.size(); ++c) weights.data()[columns_[c]] = T(w[c]);
  }

  // Note what each part is short of at the w of the solution.
  void note(const std::vector<double>& F) {
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const auto& [i, part] = parts_[p];
      double top = 0.0, mean = 0.0;
      for (std::size_t k = 1; k < part->set.size(); ++k) {
        const double f = F[program_.first[p] + k - 1];
        top = std::max(top, f);
        mean += part->set.alpha()[k] * f;
      }
      const double gap = std::max(0.0, blocks_.block_gap(i, top, mean, Blocks<T>::mass(*part)));
      part->violation = static_cast<float>(gap / blocks_.C());
    }
  }

  std::vector<std::pair<std::size_t, Part<T>*>>& parts() { return parts_; }

 private:
  static constexpr std::size_t kSamples = 32;
  static constexpr double kNothing = 1e-15;  // a share of the truth that is rounding

  void gather() {
    std::vector<std::size_t>& columns = columns_;
    std::vector<std::size_t> places;
    auto ws = structure_.workspace();
    auto plane = Weights<T>::recorder(structure_.n_weights());
    const double one = 1.0;
    program_.slack = blocks_.slack();
    // Columns by their place in the weights first, then renumbered.
    SparseRows& rows = program_.planes;
    std::vector<std::uint32_t> number(structure_.n_weights(), 0);
    std::vector<double> mass;
    for (std::size_t i = 0; i < blocks_.n_examples(); ++i) {
      if (!(blocks_.C_of(i) > 0.0)) continue;
      for (Part<T>& part : blocks_[i]) {
        if (part.set.size() < 2) continue;
        parts_.push_back({i, &part});
        program_.C.push_back(blocks_.C_of(i));
        before_.insert(before_.end(), part.set.alpha(), part.set.alpha() + part.set.size());
        for (std::size_t k = 1; k < part.set.size(); ++k) {
          const CodeView code = part.set.code(k);
          structure_.accumulate(*ws, i, part.index, {&code, 1}, &one, plane);
          plane.places(places);
          double loss = part.set.loss()[k];
          for (const std::size_t j : places) {
            const double value = double(plane.data()[j]);
            if (held(j)) {
              loss -= value * weights_.link().weight(j, 0.0);
              continue;
            }
            if (number[j] == 0) columns.push_back(j), number[j] = 1;
            rows.column.push_back(std::uint32_t(j));
            rows.value.push_back(value);
          }
          plane.wipe();
          rows.begin.push_back(rows.column.size());
          program_.loss.push_back(loss);
          start_.push_back(part.set.alpha()[k] * blocks_.C_of(i));
        }
        program_.first.push_back(rows.size());
      }
    }
    // Those of one label side by side: rows of weights have the labels along the row.
    const std::size_t row = structure_.row_size();
    std::sort(columns.begin(), columns.end(), [row](std::size_t a, std::size_t b) {
      return a % row != b % row ? a % row < b % row : a < b;
    });
    for (std::size_t c = 0; c < columns.size(); ++c) {
      number[columns[c]] = std::uint32_t(c);
      program_.columns.push_back(column(columns[c]));
    }
    std::vector<std::pair<std::uint32_t, double>> sorted;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      sorted.clear();
      for (std::size_t e = rows.begin[k]; e < rows.begin[k + 1]; ++e) sorted.push_back({number[rows.column[e]], rows.value[e]});
      std::sort(sorted.begin(), sorted.end());
      for (std::size_t e = 0; e < sorted.size(); ++e) rows.column[rows.begin[k] + e] = sorted[e].first, rows.value[rows.begin[k] + e] = sorted[e].second;
    }
  }

  bool held(std::size_t j) const {
    const Link& link = weights_.link();
    return link.scale.at(j) == 0.0 || link.least.at(j) == link.most.at(j);
  }
  PlaneColumn column(std::size_t j) const {
    const Link& link = weights_.link();
    PlaneColumn c;
    c.scale = link.scale.at(j), c.offset = link.offset.at(j);
    c.lower = link.lower.at(j), c.upper = link.upper.at(j);
    c.least = link.least.at(j), c.most = link.most.at(j);
    // A threshold without end is a bound.
    if (c.lower == -kInfinity) c.lower = 0.0, c.least = std::max(c.least, c.offset);
    if (c.upper == kInfinity) c.upper = 0.0, c.most = std::min(c.most, c.offset);
    if (const T* fixed = weights_.fixed()) c.fixed = double(fixed[j]);
    return c;
  }

  const Structure<T>& structure_;
  Blocks<T>& blocks_;
  const Weights<T>& weights_;
  PlaneProgram program_;
  std::vector<std::pair<std::size_t, Part<T>*>> parts_;  // with the example of each
  std::vector<std::size_t> columns_;  // their places in the weights
  std::vector<double> start_, before_;
};

}  // namespace mm
