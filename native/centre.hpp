// What a share keeps in rounds of consensus, and the sweeps over it (maxmargin.distributed.consensus has the mathematics).
//
// In a round the w of the share's engine is a line of its own u_k for each weight (Weights::set_lines),
//
//   w = m + u_k / ρ,    m = 2z - v,
//
// and z where the share takes no part. So u stays what the multipliers give it from round to round, and a round changes
// m alone: no work is done for weights that neither the share nor its examples know. With m beside u_k in one sum, the
// 4-byte rounding of each step would be that of m, and add up.
//
// Lists of weights only grow. Who joins comes at the end, on both sides in the same order, so that messages need no
// places.
#pragma once

#include "engine.hpp"
#include "short_floats.hpp"

namespace mm {

// Adds h = C Σ α Δf² of the planes that are kept to add(j, h).
template <class T, class Add>
void add_curvature(const Engine<T>& engine, const Structure<T>& structure, Add&& add) {
  auto ws = structure.workspace();
  auto delta = Weights<T>::recorder(structure.n_weights());
  std::vector<std::uint32_t> places;
  std::vector<T> values;
  const double one = 1.0;
  const Blocks<T>& blocks = engine.blocks();
  for (std::size_t i = 0; i < blocks.n_examples(); ++i) {
    for (const Part<T>& part : blocks[i]) {
      for (std::size_t k = 1; k < part.set.size(); ++k) {
        const double mass = blocks.C_of(i) * part.set.alpha()[k];
        if (mass == 0.0) continue;
        const CodeView code = part.set.code(k);
        structure.accumulate(*ws, i, part.index, {&code, 1}, &one, delta);
        places.clear(), values.clear();
        delta.drain(places, values);
        for (std::size_t n = 0; n < places.size(); ++n) add(places[n], mass * double(values[n]) * double(values[n]));
      }
    }
  }
}

// Which rows of weights the examples read.
template <class T>
std::vector<std::uint8_t> rows_read(const Structure<T>& structure) {
  std::vector<std::uint8_t> read(structure.n_weights() / std::max<std::size_t>(structure.row_size(), 1) + 1);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < structure.n_examples(); ++i) {
    structure.rows_read(i, rows);
    for (const std::size_t row : rows) read.at(row) = 1;
  }
  return read;
}

template <class T>
class Centre {
 public:
  struct Told {
    std::vector<std::uint16_t> codes;
    ShortFloats scale;
    std::vector<std::uint32_t> joined;
    double residual = 0.0;  // ‖v' - v‖², weighted by ρ
  };

  Centre(Engine<T>& engine, const Structure<T>& structure) : engine_(engine), structure_(structure), held_(structure.n_weights()) {}

  // Begin with the multipliers that there are, at the z that there is or (`placed`) at the engine's w. ρ is 1 at least, and
  // `steepness` √h where that is more.
  void open(bool placed, double C, double steepness) {
    const std::size_t n = structure_.n_weights();
    if (!placed) write_z(engine_.weights_to_change().data());
    if (engine_.weights_to_change().lines() == nullptr) {
      engine_.set_lines(C);
    } else {
      for (const std::uint32_t j : members_) engine_.weights_to_change().lines()[j] = {T(1), engine_.weights().data()[j]};
    }
    Weights<T>& weights = engine_.weights_to_change();
    const T* u = weights.sums();
    T* w = weights.data();
    auto* lines = weights.lines();
    // While h is summed up, the scales of members have it; others get theirs back.
    for (std::size_t j = 0; j < n; ++j) {
      if (u[j] != T(0)) lines[j].scale = T(0);
    }
    add_curvature(std::as_const(engine_), structure_, [&](std::size_t j, double h) { lines[j].scale += T(h); });
    members_.clear(), rho_.clear(), pull_.clear(), member_z_.clear(), near_.clear(), near_z_.clear();
    weights.fresh().clear();
    held_.assign(n, false);
    for (std::size_t j = 0; j < n; ++j) {
      if (u[j] == T(0)) {
        if (lines[j].scale != T(1)) lines[j].scale = T(1);
        continue;
      }
      const double h = double(lines[j].scale), z = double(lines[j].offset);
      w[j] = lines[j].offset;
      join(j, float(std::max(1.0, steepness * std::sqrt(h))), w[j]);
      lines[j].scale = T(1 / double(rho_.back()));
      pull_.back() = float(double(rho_.back()) * z + double(u[j]));  // it is told in 4 bytes
    }
  }

  const std::vector<std::uint32_t>& members() const { return members_; }
  const std::vector<float>& rho() const { return rho_; }
  const std::vector<double>& pull() const { return pull_; }
  // z, which is old where no example reads it.
  std::vector<T> z() const {
    const T* w = engine_.weights().data();
    std::vector<T> z(w, w + structure_.n_weights());
    write_z(z.data());
    return z;
  }

  // Take the change of z at all weights near by, of which some are new; w is z then.
  void follow(std::span<const std::uint32_t> joined, std::span<const std::uint16_t> codes, ShortFloats scale) {
    for (const std::uint32_t j : joined) {
      if (j >= structure_.n_weights()) throw BadInput("a weight that is none joins");
    }
    if (codes.size() != near_.size() + joined.size()) throw BadInput("the change of z is not that of the weights near by");
    Weights<T>& weights = engine_.weights_to_change();
    T* w = weights.data();
    auto* lines = weights.lines();
    if (lines == nullptr) throw BadInput("z changes before rounds of consensus begin");
    // Nothing aimed at them yet, so that their lines begin at z.
    for (const std::uint32_t j : joined) near_.push_back(j), near_z_.push_back(lines[j].offset);
    for (std::size_t k = 0; k < near_.size(); ++k) {
      if (k + kAhead < near_.size()) fetch(w, lines, near_[k + kAhead]);
      const std::size_t j = near_[k];
      w[j] = lines[j].offset = near_z_[k] += T(scale.value(codes[k]));
    }
  }

  // z itself at all weights near by.
  void take_z(std::span<const T> values) {
    if (values.size() != near_.size()) throw BadInput("expected z at all weights near by");
    std::copy(values.begin(), values.end(), near_z_.begin());
  }

  // w = 2z - v + u_k / ρ, from which the share's problem is solved.
  void aim() {
    Weights<T>& weights = engine_.weights_to_change();
    T* w = weights.data();
    const T* u = weights.sums();
    auto* lines = weights.lines();
    for (std::size_t k = 0; k < members_.size(); ++k) {
      if (k + kAhead < members_.size()) fetch(w, lines, members_[k + kAhead]), prefetch(u + members_[k + kAhead]);
      const std::size_t j = members_[k];
      member_z_[k] = lines[j].offset;  // which `follow` wrote there
      lines[j].offset = T(2 * double(member_z_[k]) - pull_[k] / double(rho_[k]));
      w[j] = lines[j].at(u[j]);
    }
  }

  // Take u_k after a round: ρ v ← (1 - λ) ρ v + λ (ρ z + u_k).
  Told take(double relaxation) {
    Told out;
    Weights<T>& weights = engine_.weights_to_change();
    const T* u = weights.sums();
    for (const std::uint32_t j : weights.fresh()) {
      if (held_[j] || u[j] == T(0)) continue;
      join(j, 1.0f, weights.lines()[j].offset);
      pull_.back() = double(member_z_.back());
      out.joined.push_back(j);
    }
    weights.fresh().clear();
    const std::size_t n = members_.size();
    told_.resize(n);
    for (std::size_t k = 0; k < n; ++k) {
      if (k + kAhead < n) prefetch(u + members_[k + kAhead]);
      const double rho = rho_[k], apart = rho * double(member_z_[k]) + double(u[members_[k]]) - pull_[k];
      told_[k] = float(relaxation * apart);
      out.residual += apart * apart / rho;
    }
    out.scale = ShortFloats::up_to(told_);
    out.codes.resize(n);
    for (std::size_t k = 0; k < n; ++k) {
      out.codes[k] = out.scale.code(told_[k]);
      pull_[k] += double(out.scale.value(out.codes[k]));
    }
    return out;
  }

 private:
  static constexpr std::size_t kAhead = 16;

  template <class Line>
  static void fetch(const T* w, const Line* lines, std::size_t j) {
    prefetch_to_write(w + j);
    prefetch_to_write(lines + j);
  }
  void join(std::size_t j, float rho, T z) {
    held_[j] = true;
    members_.push_back(std::uint32_t(j));
    rho_.push_back(rho);
    pull_.push_back(0.0);
    member_z_.push_back(z);
  }
  void write_z(T* z) const {
    for (std::size_t k = 0; k < near_.size(); ++k) z[near_[k]] = near_z_[k];
  }

  Engine<T>& engine_;
  const Structure<T>& structure_;
  std::vector<bool> held_;
  std::vector<std::uint32_t> members_, near_;  // where it takes part, and where its examples read and some share takes part
  std::vector<float> rho_, told_;
  std::vector<double> pull_;            // ρ v, as the coordinator has it
  std::vector<T> near_z_, member_z_;    // z there; of members, as it was when the engine was aimed
};

}  // namespace mm
