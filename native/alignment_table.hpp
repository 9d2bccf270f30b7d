// The best alignment of two sequences: Needleman and Wunsch, Smith and Waterman, with Gotoh's affine gaps.
//
// Three states end at cell (i, j): M, a match of residues i and j; X, residue i of the first sequence in a gap;
// Y, residue j of the second in a gap. Of a run of both kinds between two matches the X come first, so that an
// alignment is one path (alignment_data.hpp):
//
//   M[i][j] = s(i, j) + max(M, X, Y)[i-1][j-1], or the start of the alignment
//   X[i][j] = max(M[i-1][j] + open, X[i-1][j] + extend)
//   Y[i][j] = max(M[i][j-1] + open, X[i][j-1] + open, Y[i][j-1] + extend)
//
// A row of values is kept and one byte a cell of where they came from. Time and memory are n m. A row is
// computed by vector code (alignment_row_impl.hpp).
//
// The scores s of a row come from the caller (score profiles and losses, alignment.hpp).
#pragma once

#include "alignment_data.hpp"
#include "vector_code.hpp"

namespace mm {

template <class T>
class AlignmentTable {
 public:
  struct Gaps {
    T open, extend;
    T of(std::size_t length) const { return length == 0 ? T(0) : open + T(length - 1) * extend; }
  };
  // Scores of the matches of one residue of the first sequence: scores[j] + add. The array has kAlignmentSlack
  // more entries than there are residues.
  struct Row {
    const T* scores;
    T add;
  };

  // The value of the best alignment of n by m residues; row(i) gives the scores of residue i.
  template <class Rows>
  double fill(AlignmentMode mode, const FreeEnds& free, std::size_t n, std::size_t m, const Gaps& gaps, Rows&& row) {
    n_ = n, m_ = m;
    if (trace_.size() < n * m) trace_.clear(), trace_.resize(n * m + std::min(n * m / 4, std::size_t{1} << 20));
    if (M_.size() < m + 1 + kAlignmentSlack) {
      for (auto* values : {&M_, &M_new_, &X_, &Y_, &Q_, &H_, &start_, &end_}) values->resize(m + 1 + kAlignmentSlack);
      for (auto* values : {&from_, &bits_, &is_x_}) values->resize(m + 1 + kAlignmentSlack);
    }
    switch (mode) {
      case AlignmentMode::kGlobal: return rows<AlignmentMode::kGlobal>(free, gaps, row);
      case AlignmentMode::kLocal: return rows<AlignmentMode::kLocal>(free, gaps, row);
      default: return rows<AlignmentMode::kSemiglobal>(free, gaps, row);
    }
  }

  // Append the matches of the best alignment to `out`, as pairs i, j.
  void matches(std::vector<Code>& out) const {
    const std::size_t first = out.size();
    std::size_t i = last_i_, j = last_j_;
    std::uint8_t state = last_;
    while (i > 0 && j > 0 && state != kStart) {
      const std::uint8_t cell = trace_[(i - 1) * m_ + (j - 1)];
      if (state == kM) {
        out.push_back(Code(j - 1)), out.push_back(Code(i - 1));  // turned around below
        state = cell & 3, --i, --j;
      } else if (state == kX) {
        state = (cell & 4) != 0 ? kX : kM, --i;
      } else {
        state = std::uint8_t(1 + (cell >> 3)), --j;
      }
    }
    std::reverse(out.begin() + std::ptrdiff_t(first), out.end());
  }

 private:
  enum : std::uint8_t { kStart, kM, kX, kY };
  using Wide = typename AlignmentRow<T>::Wide;
  static constexpr T kLow = T(-1e30);  // far below every score, but sums with it are finite

  template <AlignmentMode kMode, class Rows>
  double rows(const FreeEnds& free, const Gaps& gaps, Rows&& row) {
    constexpr bool kGlobal = kMode == AlignmentMode::kGlobal, kSemi = kMode == AlignmentMode::kSemiglobal;
    const std::size_t n = n_, m = m_;
    const auto one_row = vector_code<T>().alignment_row;
    T *M = M_.data(), *M_new = M_new_.data(), *H = H_.data(), *start = start_.data(), *end = end_.data();
    Wide* from = from_.data();
    if constexpr (kSemi) {
      gap_.resize(std::max(n, m) + 1);
      for (std::size_t k = 0; k < gap_.size(); ++k) gap_[k] = gaps.of(k);
    }
    for (std::size_t j = 0; j <= m; ++j) {
      M[j] = X_[j] = H[j] = kLow;
      if (kGlobal) H[j] = gaps.of(j);  // Y
      from[j] = kY;
    }
    if (kGlobal) M[0] = 0, from[0] = kM;
    last_ = kStart, last_i_ = last_j_ = 0;
    T best = 0;
    if constexpr (!kGlobal) {
      for_unmatched(kMode, free, n, m, [&](std::size_t length) { best += gaps.of(length); });
    }
    is_x_[0] = 1, Y_[0] = kLow;
    if constexpr (kMode == AlignmentMode::kLocal) std::fill(start, start + m + 1, T(0));
    for (std::size_t i = 1; i <= n; ++i) {
      const Row r = row(i - 1);
      if constexpr (kSemi) {
        put_outside(free.start1, free.start2, i - 1, start + 1);
        put_outside(free.end1, free.end2, n - i, end + 1);
        std::reverse(end + 1, end + m + 1);
      }
      Q_[0] = kGlobal ? gaps.of(i) : kLow;  // X
      const T top = one_row({m, gaps.open, gaps.extend, r.add, kLow, !kGlobal, r.scores, kGlobal ? nullptr : start, kSemi ? end : nullptr,
                             H, X_.data(), from, M, M_new, Q_.data(), Y_.data(), bits_.data(), is_x_.data(), &trace_[(i - 1) * m]});
      M_new[0] = kLow, H[0] = Q_[0], from[0] = kX;
      std::swap(M, M_new);
      if (kGlobal || !(top > best)) continue;
      best = top, last_ = kM, last_i_ = i;
      for (last_j_ = 1; last_j_ < m && M[last_j_] + (kSemi ? end[last_j_] : T(0)) != top;) ++last_j_;
    }
    if constexpr (kGlobal) last_ = std::uint8_t(from[m]), last_i_ = n, last_j_ = m, best = H[m];
    return double(best);
  }

  // out[b] for b < m: what for_outside() makes of a residues of the first sequence and b of the second.
  void put_outside(bool free1, bool free2, std::size_t a, T* out) const {
    const T* gap = gap_.data();
    if (free1 && free2) {
      const std::size_t shorter = std::min(a, m_);
      std::copy(gap, gap + shorter, out);
      std::fill(out + shorter, out + m_, gap[a]);
    } else if (free1) {
      std::copy(gap, gap + m_, out);
    } else {
      const T own = gap[a];
      for (std::size_t b = 0; b < m_; ++b) out[b] = own + (free2 ? T(0) : gap[b]);
    }
  }

  std::size_t n_ = 0, m_ = 0, last_i_ = 0, last_j_ = 0;
  std::uint8_t last_ = kStart;
  std::vector<std::uint8_t> trace_;  // [n][m] origin of M (2 bits), of X (1) and of Y (2)
  std::vector<T> M_, M_new_, X_, Y_, Q_, H_, start_, end_, gap_;
  std::vector<Wide> from_, bits_, is_x_;
};

}  // namespace mm
