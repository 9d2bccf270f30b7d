// Probabilities of a chain at a temperature: p(y) = e^{β w.f(x, y)} / Z with β = 1 / temperature.
//
// Forward-backward, in two forms. The fast one keeps, of each token, numbers in proportion to e^{β prefix score},
// the largest of them 1, and the logarithm of what was divided off:
//
//   a_t(l) ~ e_t(l) Σ_p a_{t-1}(p) E(p, l),   b_{t-1}(p) ~ Σ_l E(p, l) e_t(l) b_t(l),   p_t(l) ~ a_t(l) b_t(l)
//
// with e_t = e^{β (S_t - max)} and E = e^{β (A - max)}. These are sums of products that are not negative, so each is
// as precise as its terms, unless a term gets lost below the smallest number of the machine. So long as every
// factor is zero (a forbidden edge) or at least kLeast, no product of three is below 10^-300. Where one is,
// which takes differences of scores above 230 temperatures, the sequence is done again in logarithms: slower, and
// right for all scores.
//
// Known labels take all others of their tokens away (their S is -inf): the sums are then over the labellings that
// have them, and p is conditional on them.
#pragma once

#include "chain_decode.hpp"

namespace mm {

template <class T>
class ChainMarginals : ChainDecoder<T> {
 public:
  using Decoder = ChainDecoder<T>;
  using typename Decoder::Scratch;

  template <class Weights>
  ChainMarginals(const Chain<T>& chain, const Weights& weights, const AllowedEdges& allowed, double beta,
                 std::size_t table_bytes = Decoder::kTableBytes, KnownLabels known = {})
      : Decoder(chain, weights, allowed, table_bytes, known), beta_(beta), L_(chain.n_labels()), Lp_(chain.row_size()),
        Ld_(padded_labels<double>(L_)) {
    if (!chain.has_pairs()) common_ = Edge(*this, edge_.A, true);
    start_.reset(Ld_), end_.reset(Ld_);
    tops_ = {factors(edge_.start, start_.data()), factors(edge_.end, end_.data())};
    precise_ = common_.precise && all_precise(start_.data(), edge_.start) && all_precise(end_.data(), edge_.end);
  }

  // log Z of every sequence.
  void log_partition(int threads, double* log_z) const { run(threads, log_z, nullptr); }

  // The same, and out[token][label]: the probability of that label there.
  void marginals(int threads, double* log_z, double* out) const { run(threads, log_z, out); }

 private:
  using Decoder::chain_;
  using Decoder::edge_;
  using typename Decoder::Windows;

  static constexpr double kLeast = 1e-100;

  // Row r of `out` = e^{β (row - max)}, zero in the padding; returns the maximum. Entries of -inf give zero.
  double factors(const T* row, double* out) const {
    T top = row[0];
    for (std::size_t l = 1; l < L_; ++l) top = std::max(top, row[l]);
    if (!(top > -std::numeric_limits<T>::infinity())) {  // nothing is allowed
      std::fill_n(out, Ld_, 0.0);
      return 0.0;
    }
    for (std::size_t l = 0; l < L_; ++l) out[l] = beta_ * (double(row[l]) - double(top));
    std::fill(out + L_, out + Ld_, -std::numeric_limits<double>::infinity());
    vector_code<double>().exponentials(out, Ld_);
    return beta_ * double(top);
  }
  // Is each factor that is not forbidden large enough?
  bool all_precise(const double* factor, const T* row) const {
    for (std::size_t l = 0; l < L_; ++l) {
      if (factor[l] < kLeast && row[l] > -std::numeric_limits<T>::infinity()) return false;
    }
    return true;
  }

  // Transitions as factors, and the other way round.
  struct Edge {
    AlignedArray<double> E, turned;  // [L][Ld]
    double top = 0.0;
    bool precise = true;

    Edge() = default;
    Edge(const ChainMarginals& of, const T* A, bool turn) { set(of, A, turn); }
    void set(const ChainMarginals& of, const T* A, bool turn) {
      const std::size_t L = of.L_, Lp = of.Lp_, Ld = of.Ld_;
      constexpr T kNever = -std::numeric_limits<T>::infinity();
      if (E.size() == 0) E.reset(L * Ld);
      T most = kNever;
      for (std::size_t p = 0; p < L; ++p) most = std::max(most, *std::max_element(A + p * Lp, A + p * Lp + L));
      const double shift = most > kNever ? double(most) : 0.0;
      top = of.beta_ * shift;
      for (std::size_t p = 0; p < L; ++p) {
        double* row = E.data() + p * Ld;
        for (std::size_t l = 0; l < L; ++l) row[l] = of.beta_ * (double(A[p * Lp + l]) - shift);
        std::fill(row + L, row + Ld, -std::numeric_limits<double>::infinity());
      }
      vector_code<double>().exponentials(E.data(), L * Ld);
      precise = true;
      for (std::size_t p = 0; p < L && precise; ++p) precise = of.all_precise(E.data() + p * Ld, A + p * Lp);
      if (!turn) return;
      if (turned.size() == 0) turned.reset(L * Ld);  // its padding is zero
      for (std::size_t p = 0; p < L; ++p) {
        for (std::size_t l = 0; l < L; ++l) turned[l * Ld + p] = E[p * Ld + l];
      }
    }
  };

  struct Room {
    AlignedArray<double> factor;      // [rows][Ld] e of the tokens of a window
    std::vector<double> top;          // and the maxima that were taken off
    AlignedArray<double> here, next;  // [Ld]
    Edge edge;                        // with pair features: those into the token at hand
    std::vector<double> a, b;         // [L] logarithms
  };

  void run(int threads, double* log_z, double* out) const {
    const std::size_t n = chain_.n_examples();
    const std::size_t shares = n_shares(threads, n);
    run_shares(shares, [&](std::size_t share) {
      auto base = chain_.workspace();
      Scratch& ws = static_cast<Scratch&>(*base);
      Room room;
      room.here.reset(Ld_), room.next.reset(Ld_);
      for (std::size_t i = n * share / shares; i < n * (share + 1) / shares; ++i) {
        const Windows windows = this->windows_of(i);
        double* own = out == nullptr ? nullptr : out + std::size_t(chain_.data().offsets[i]) * L_;
        if (!precise_ || !scaled(ws, room, i, windows, log_z[i], own)) logarithms(ws, room, i, windows, log_z[i], own);
        Decoder::require_possible(i, log_z[i]);
      }
    });
  }

  // ---- products ----------------------------------------------------------------------------------

  void load_factors(Scratch& ws, Room& room, std::size_t i, const Windows& windows, std::size_t k) const {
    this->load(ws, i, windows, k);
    const std::size_t rows = windows.rows(k) + 1;
    if (room.factor.size() < rows * Ld_) room.factor.reset((rows + rows / 4) * Ld_);
    room.top.resize(rows);
    for (std::size_t row = 1; row < rows; ++row) room.top[row] = factors(ws.S.data() + row * Lp_, room.factor.data() + row * Ld_);
  }

  // The transitions into the token of a row, as factors.
  const Edge& edges_into(Scratch& ws, Room& room, std::size_t row, bool turn) const {
    if (!chain_.has_pairs()) return common_;
    room.edge.set(*this, chain_.into(ws, edge_, row), turn);
    return room.edge;
  }

  // Divide a row by its largest entry; false where an entry would be too small.
  bool normalise(double* row, const RowRange& range) const {
    if (range.most == 0.0) return true;  // nothing is possible, which is exact
    if (range.least < kLeast * range.most) return false;
    const double factor = 1.0 / range.most;
    for (std::size_t l = 0; l < Ld_; ++l) row[l] *= factor;
    return true;
  }
  RowRange range_of(const double* row) const {
    RowRange range{std::numeric_limits<double>::infinity(), 0.0};
    for (std::size_t l = 0; l < L_; ++l) {
      if (row[l] > 0.0) range = {std::min(range.least, row[l]), std::max(range.most, row[l])};
    }
    return range;
  }

  // False: the numbers of this sequence are too far apart.
  bool scaled(Scratch& ws, Room& room, std::size_t i, const Windows& windows, double& log_z, double* out) const {
    const auto& vector = vector_code<double>();
    double sum = 0.0;  // of the logarithms of what was divided off
    for (std::size_t k = 0; k < windows.count; ++k) {
      load_factors(ws, room, i, windows, k);
      for (std::size_t row = 1; row <= windows.rows(k); ++row) {
        const std::size_t t = windows.begin(k) + row - 1;
        const double* e = room.factor.data() + row * Ld_;
        if (!all_precise(e, ws.S.data() + row * Lp_)) return false;  // labels that are ruled out are exactly zero
        double* a = room.next.data();
        RowRange range;
        if (t == 0) {
          for (std::size_t l = 0; l < Ld_; ++l) a[l] = e[l] * start_[l];
          range = range_of(a);
          sum = tops_.start;
        } else {
          const Edge& edge = edges_into(ws, room, row, false);
          if (!edge.precise) return false;
          range = vector.row_product(room.here.data(), edge.E.data(), e, L_, Ld_, a);
          sum += edge.top;
        }
        if (!normalise(a, range)) return false;
        sum += room.top[row] + std::log(range.most);
        std::swap(room.here, room.next);
        if (out != nullptr) std::copy_n(room.here.data(), L_, out + t * L_);
      }
    }
    double last = 0.0;
    for (std::size_t l = 0; l < L_; ++l) last += room.here[l] * end_[l];
    log_z = sum + tops_.end + std::log(last);
    if (out == nullptr || last == 0.0) return true;
    std::copy_n(end_.data(), Ld_, room.here.data());
    for (std::size_t k = windows.count; k-- > 0;) {
      if (k + 1 < windows.count) load_factors(ws, room, i, windows, k);
      for (std::size_t row = windows.rows(k); row > 0; --row) {
        const std::size_t t = windows.begin(k) + row - 1;
        double* p = out + t * L_;
        double* b = room.here.data();
        double whole = 0.0;
        for (std::size_t l = 0; l < L_; ++l) whole += p[l] *= b[l];
        for (std::size_t l = 0; l < L_; ++l) p[l] /= whole;
        if (t == 0) continue;
        const double* e = room.factor.data() + row * Ld_;
        for (std::size_t l = 0; l < Ld_; ++l) b[l] *= e[l];
        const Edge& edge = edges_into(ws, room, row, true);
        if (!normalise(room.next.data(), vector.row_product(b, edge.turned.data(), nullptr, L_, Ld_, room.next.data()))) return false;
        std::swap(room.here, room.next);
      }
    }
    return true;
  }

  // ---- logarithms --------------------------------------------------------------------------------

  // log Σ_k e^{x(k)}; -inf where all x are.
  template <class X>
  double log_sum(X&& x) const {
    double top = -std::numeric_limits<double>::infinity(), sum = 0.0;
    for (std::size_t k = 0; k < L_; ++k) top = std::max(top, x(k));
    if (std::isinf(top)) return top;
    for (std::size_t k = 0; k < L_; ++k) sum += std::exp(x(k) - top);
    return top + std::log(sum);
  }

  void logarithms(Scratch& ws, Room& room, std::size_t i, const Windows& windows, double& log_z, double* out) const {
    std::vector<double>&a = room.a, &b = room.b;
    a.resize(L_), b.resize(L_);
    for (std::size_t k = 0; k < windows.count; ++k) {
      this->load(ws, i, windows, k);
      for (std::size_t row = 1; row <= windows.rows(k); ++row) {
        const std::size_t t = windows.begin(k) + row - 1;
        const T* S = ws.S.data() + row * Lp_;
        const T* A = t == 0 ? nullptr : chain_.into(ws, edge_, row);
        for (std::size_t l = 0; l < L_; ++l) {
          const double before = t == 0 ? beta_ * double(edge_.start[l])
                                       : log_sum([&](std::size_t p) { return a[p] + beta_ * double(A[p * Lp_ + l]); });
          b[l] = before + beta_ * double(S[l]);
        }
        a.swap(b);
        if (out != nullptr) std::copy_n(a.data(), L_, out + t * L_);
      }
    }
    log_z = log_sum([&](std::size_t l) { return a[l] + beta_ * double(edge_.end[l]); });
    if (out == nullptr || std::isinf(log_z)) return;
    for (std::size_t l = 0; l < L_; ++l) b[l] = beta_ * double(edge_.end[l]);
    for (std::size_t k = windows.count; k-- > 0;) {
      if (k + 1 < windows.count) this->load(ws, i, windows, k);
      for (std::size_t row = windows.rows(k); row > 0; --row) {
        const std::size_t t = windows.begin(k) + row - 1;
        double* p = out + t * L_;
        // Divided by their own sum, so that rounding of large logarithms does not show.
        for (std::size_t l = 0; l < L_; ++l) p[l] += b[l];
        const double whole = log_sum([&](std::size_t l) { return p[l]; });
        for (std::size_t l = 0; l < L_; ++l) p[l] = std::exp(p[l] - whole);
        if (t == 0) continue;
        const T* S = ws.S.data() + row * Lp_;
        const T* A = chain_.into(ws, edge_, row);
        for (std::size_t q = 0; q < L_; ++q) {
          a[q] = log_sum([&](std::size_t l) { return beta_ * (double(A[q * Lp_ + l]) + double(S[l])) + b[l]; });
        }
        a.swap(b);
      }
    }
  }

  double beta_;
  std::size_t L_, Lp_, Ld_;
  Edge common_;  // without pair features, of all tokens
  AlignedArray<double> start_, end_;
  struct {
    double start, end;
  } tops_{};
  bool precise_ = false;
};

}  // namespace mm
