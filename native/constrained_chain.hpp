// Chains with prior-knowledge constraints (Yu, "Transductive Learning of Structural SVMs via Prior Knowledge
// Constraints"), as a structure of the dual engine.
//
//   f(x_j, y) = (Φ(x_j, y),  Σ_{k in group g} φ_k(y) for each group g,  κ φ_j(y) at the place of v_j)
//   l_j(y)    = Hamming loss of the chain, or none,  +  τ ‖φ_j(y)‖²  +  Σ_k b_k φ_k(y)
//
// The weights are those of the chain, then one for each group of coordinates (constraint features, "I" in the
// paper), then, with auxiliary vectors, v: one for each coordinate of φ of all sequences, or for those that are
// free. (Where an entry of v is known, its term κ v_k φ_k is a loss: b_k = κ v_k.) What the paper needs:
//
//   a labelled example with constraint features     κ = 0, τ = 0, Hamming loss, the truth as reference
//   an unlabelled example j, as a block of (13)     κ = -μ/2, τ = μ/4, no other loss; its oracle is (14)
//
// Losses are less that of the reference, a labelling that the chain's data have as their labels.
#pragma once

#include "chain.hpp"
#include "constrained_search.hpp"
#include "sparse_planes.hpp"

namespace mm {

struct ConstrainedData {
  ChainData chain;
  ConstraintData constraints;
  bool group_weights = false;  // are sums over groups features?
  bool auxiliary = false;      // are there weights v?
  std::span<const std::int32_t> free = {};  // [coordinates] which of the weights v it has, or -1; empty: its own number
  std::size_t n_free = 0;
  const double* b = nullptr;   // [coordinates], nullptr: zeros
  bool chain_loss = true;
  double kappa = 0.0, tau = 0.0;
  std::size_t width = 1000;    // states a token that the search may keep

  std::size_t size() const { return chain.size(); }
  std::size_t longest() const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < size(); ++i) n = std::max(n, chain.length(i));
    return n;
  }
  std::uint64_t data_hash() const {
    DataHash hash(chain.data_hash());
    constraints.mix_into(hash);
    hash.mix_number(kappa), hash.mix_number(tau);
    hash.mix(free.data(), free.size_bytes());
    hash.mix(b, b == nullptr ? 0 : constraints.n_coordinates() * sizeof(double));
    hash.mix_number(std::uint64_t(group_weights) + 2 * std::uint64_t(auxiliary) + 4 * std::uint64_t(chain_loss));
    return hash.value();
  }
};

// Where weights beyond the chain's stand: in rows like those of the chain, L of them a row, so that both
// precisions can be padded in the same way.
struct ExtraWeights {
  std::size_t first_row, count, L, Lp;
  std::size_t rows() const { return (count + L - 1) / L; }
  std::size_t place(std::size_t k) const { return (first_row + k / L) * Lp + k % L; }
  std::size_t row(std::size_t k) const { return first_row + k / L; }
  std::size_t column(std::size_t k) const { return k % L; }
};

// Those of the constraint features, behind the chain's weights, and v behind them.
template <class T>
ExtraWeights group_weights(const ConstrainedData& data) {
  return {data.chain.n_rows(), data.group_weights ? data.constraints.n_groups : 0, data.chain.n_labels, padded_labels<T>(data.chain.n_labels)};
}
template <class T>
ExtraWeights auxiliary_weights(const ConstrainedData& data) {
  const ExtraWeights groups = group_weights<T>(data);
  return {groups.first_row + groups.rows(), data.auxiliary ? (data.free.empty() ? data.constraints.n_coordinates() : data.n_free) : 0, groups.L, groups.Lp};
}

template <class T>
class ConstrainedChain final : public SparsePlanes<T, RowPlaces> {
 public:
  using Workspace = typename Structure<T>::Workspace;
  using Place = ConstraintAutomata::Place;

  explicit ConstrainedChain(const ConstrainedData& data)
      : SparsePlanes<T, RowPlaces>(RowPlaces(data.chain.n_labels, padded_labels<T>(data.chain.n_labels))), data_(data), chain_(data_.chain), automata_(data_.constraints, data_.longest()),
        groups_(group_weights<T>(data)), v_(auxiliary_weights<T>(data)) {}

  struct Scratch final : Workspace {
    Scratch(const ConstrainedChain& chain) : search(chain.data_.constraints, chain.automata_) { chain.chain_.prepare(scores); }
    typename Chain<T>::Scratch scores;
    ConstrainedSearch search;
    Worths worths;
    SparseSum sum;
    std::vector<double> phi, other;
    std::vector<std::uint32_t> reference;
  };
  std::unique_ptr<Workspace> workspace() const override { return std::make_unique<Scratch>(*this); }

  const Chain<T>& chain() const { return chain_; }
  const ConstraintAutomata& automata() const { return automata_; }
  const ExtraWeights& groups() const { return groups_; }
  const ExtraWeights& auxiliary() const { return v_; }

  std::size_t n_examples() const override { return data_.size(); }
  std::size_t n_weights() const override { return (v_.first_row + v_.rows()) * v_.Lp; }
  std::size_t row_size() const override { return v_.Lp; }
  void rows_read(std::size_t i, std::vector<std::size_t>& rows) const override {
    chain_.rows_read(i, rows);
    for (std::size_t r = 0; r < groups_.rows(); ++r) rows.push_back(groups_.first_row + r);
    for (std::size_t k = first(i); v_.count > 0 && k < first(i) + count(i); ++k) {
      if (auxiliary_of(k) < 0) continue;
      const std::size_t row = v_.row(std::size_t(auxiliary_of(k)));
      if (rows.empty() || rows.back() != row) rows.push_back(row);
    }
  }
  double example_weight(std::size_t i) const override { return chain_.example_weight(i); }
  bool signed_losses() const override { return data_.tau != 0.0 || data_.b != nullptr; }
  void require_truth() const override {
    if (data_.chain.labels == nullptr) throw BadInput("training needs a labelling of each sequence: the truth, or a reference");
  }
  double oracle_work(std::size_t i) const override {
    const double n = double(data_.chain.length(i)), L = double(chain_.n_labels());
    return chain_.oracle_work(i) + n * L * L * (automata_.empty() ? 2.0 : 8.0);
  }

  Place place(std::size_t i) const { return {i, std::size_t(data_.chain.offsets[i]), data_.chain.length(i)}; }

  // ---- the oracle: (14) with κ and τ of the paper ----

  Found oracle(Workspace& base, std::size_t i, const T* w) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    const Edges<T> edge = chain_.edges(w);
    chain_.load_all(ws.scores, i, w);
    chain_.load_steps(ws.scores, i, edge, w + data_.chain.row_pair() * v_.Lp);
    if (data_.chain_loss) add_losses(ws, i);
    ws.worths.reset(first(i), count(i), ws.loss_scale * data_.tau);
    for (std::size_t k = first(i); k < first(i) + count(i); ++k) ws.worths.c(k) = coefficient(k, w) + ws.loss_scale * loss_of(k);
    const auto found = ws.search.best(place(i), LabelScores<T>{ws.scores.S.data(), edge.start, edge.end, v_.Lp},
                                      [&](std::size_t t) { return chain_.into(ws.scores, edge, t); }, ws.worths, data_.width);
    const std::int32_t* truth = data_.chain.labels + data_.chain.offsets[i];
    ws.code.clear();
    Found result;
    if (std::equal(ws.search.y().begin(), ws.search.y().end(), truth, [](std::uint32_t a, std::int32_t b) { return a == std::uint32_t(b); })) {
      result.bound = std::max(found.bound - found.score, 0.0);
      return result;
    }
    write_plane(ws, i, ws.search.y().data());
    const SparsePlane plane(ws.code);
    result.truth = false;
    result.F = ws.loss_scale * plane.loss() - plane.dot(w, this->places());
    result.bound = result.F + std::max(found.bound - found.score, 0.0);
    return result;
  }

  // ---- features ----

  // add(row, column, value) for f(x_i, y), with another κ if need be.
  template <class Add>
  void features(Scratch& ws, std::size_t i, const std::uint32_t* y, double kappa, Add&& add) const {
    const std::size_t n = data_.chain.length(i), begin = std::size_t(data_.chain.offsets[i]);
    for (std::size_t t = 0; t < n; ++t) add_token(begin + t, y[t], 1.0, add);
    for (std::size_t t = 0; t <= n; ++t) add_edge(i, t, t == 0 ? 0 : y[t - 1], t == n ? 0 : y[t], 1.0, add);
    read_phi(ws, i, y, ws.phi);
    for (std::size_t k = 0; k < ws.phi.size(); ++k) add_phi(first(i) + k, ws.phi[k], kappa, add);
  }

  // φ of a labelling of sequence i, in order.
  void read_phi(Scratch& ws, std::size_t i, const std::uint32_t* y, std::vector<double>& phi) const {
    phi.assign(count(i), 0.0);
    ws.search.phi(place(i), y, [&](std::size_t k, double value) { phi[k - first(i)] = value; });
  }

 private:
  std::size_t first(std::size_t i) const { return std::size_t(data_.constraints.offsets[i]); }
  std::size_t count(std::size_t i) const { return std::size_t(data_.constraints.offsets[i + 1] - data_.constraints.offsets[i]); }

  double coefficient(std::size_t k, const T* w) const {
    double c = 0.0;
    if (groups_.count > 0 && data_.constraints.group(k) >= 0) c += double(w[groups_.place(std::size_t(data_.constraints.group(k)))]);
    if (auxiliary_of(k) >= 0) c += data_.kappa * double(w[v_.place(std::size_t(auxiliary_of(k)))]);
    return c;
  }
  // The weight v of a coordinate, or -1.
  std::int64_t auxiliary_of(std::size_t k) const {
    if (v_.count == 0) return -1;
    return data_.free.empty() ? std::int64_t(k) : data_.free[k];
  }
  double loss_of(std::size_t k) const { return data_.b != nullptr ? data_.b[k] : 0.0; }

  void add_losses(Scratch& ws, std::size_t i) const {
    const std::size_t begin = std::size_t(data_.chain.offsets[i]);
    for (std::size_t t = 0; t < data_.chain.length(i); ++t) {
      T* row = ws.scores.S.data() + t * v_.Lp;
      const std::size_t truth = std::size_t(data_.chain.labels[begin + t]);
      for (std::size_t l = 0; l < chain_.n_labels(); ++l) row[l] += T(ws.loss_scale * data_.chain.token_loss(begin + t, truth, l));
    }
  }

  // Δf = f(reference) - f(y), where they differ, and the loss of y less that of the reference.
  void write_plane(Scratch& ws, std::size_t i, const std::uint32_t* y) const {
    const std::size_t n = data_.chain.length(i), begin = std::size_t(data_.chain.offsets[i]);
    ws.reference.assign(data_.chain.labels + begin, data_.chain.labels + begin + n);
    const std::uint32_t* r = ws.reference.data();
    const auto add = [&](std::size_t row, std::size_t column, double value) { ws.sum.add(this->places().index(row, column), value); };
    double loss = 0.0;
    ws.sum.clear();
    for (std::size_t t = 0; t < n; ++t) {
      if (y[t] == r[t]) continue;
      add_token(begin + t, r[t], 1.0, add);
      add_token(begin + t, y[t], -1.0, add);
      if (data_.chain_loss) loss += data_.chain.token_loss(begin + t, r[t], y[t]);
    }
    for (std::size_t t = 0; t <= n; ++t) {
      const bool same = (t == 0 || y[t - 1] == r[t - 1]) && (t == n || y[t] == r[t]);
      if (same) continue;
      add_edge(i, t, t == 0 ? 0 : r[t - 1], t == n ? 0 : r[t], 1.0, add);
      add_edge(i, t, t == 0 ? 0 : y[t - 1], t == n ? 0 : y[t], -1.0, add);
    }
    read_phi(ws, i, r, ws.phi);
    read_phi(ws, i, y, ws.other);
    for (std::size_t k = 0; k < ws.phi.size(); ++k) {
      if (ws.phi[k] == ws.other[k]) continue;
      loss += data_.tau * (ws.other[k] * ws.other[k] - ws.phi[k] * ws.phi[k]) + loss_of(first(i) + k) * (ws.other[k] - ws.phi[k]);
      add_phi(first(i) + k, ws.phi[k] - ws.other[k], data_.kappa, add);
    }
    ws.sum.write(loss, ws.code);
  }

  template <class Add>
  void add_token(std::size_t token, std::size_t l, double amount, Add&& add) const {
    data_.chain.for_features(token, [&](std::size_t row, double x) { add(row, l, amount * x); });
  }
  // The edge from token t - 1 to t; before the first and behind the last token it is that of the start or end.
  template <class Add>
  void add_edge(std::size_t i, std::size_t t, std::size_t p, std::size_t l, double amount, Add&& add) const {
    if (t == 0) {
      add(data_.chain.row_start(), l, amount);
    } else if (t == data_.chain.length(i)) {
      add(data_.chain.row_end(), p, amount);
    } else {
      const ChainFrame<T>& frame = chain_;
      frame.for_edge(std::size_t(data_.chain.offsets[i]) + t, p, l, [&](std::size_t place) { add(place / v_.Lp, place % v_.Lp, amount); });
    }
  }
  template <class Add>
  void add_phi(std::size_t k, double phi, double kappa, Add&& add) const {
    if (phi == 0.0) return;
    if (groups_.count > 0 && data_.constraints.group(k) >= 0) {
      const std::size_t g = std::size_t(data_.constraints.group(k));
      add(groups_.row(g), groups_.column(g), phi);
    }
    if (const std::int64_t v = auxiliary_of(k); v >= 0) add(v_.row(std::size_t(v)), v_.column(std::size_t(v)), kappa * phi);
  }

  ConstrainedData data_;
  Chain<T> chain_;
  ConstraintAutomata automata_;
  ExtraWeights groups_, v_;
};

}  // namespace mm
