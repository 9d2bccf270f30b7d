// The vector code of a chain, behind a table of function pointers chosen at run time.
//
// Shapes. Lp is the number of labels L rounded up so that a row is a whole number of 32-byte
// vectors; the padding of a weight row is always zero. All rows are Lp long and contiguous:
//   W  [rows][Lp]   weights, one row per feature
//   S  [T][Lp]      scores of each label at each token
//   D  [T][Lp]      best score of a prefix that ends with the label at the token
//   A  [L][Lp]      transition weights, A[p][l] for label p followed by label l
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mm {

// Labels of one row, rounded up to whole vectors of 32 bytes.
template <class T>
constexpr std::size_t padded_labels(std::size_t n_labels) {
  constexpr std::size_t lanes = 32 / sizeof(T);
  return (n_labels + lanes - 1) / lanes * lanes;
}

// A row of the table of alignments, for `alignment_row`; entry 0 of each array is the border. Integers are
// as wide as T. Every array but `trace` has room for kAlignmentSlack more entries than is said here.
inline constexpr std::size_t kAlignmentSlack = 8;
template <class T>
struct AlignmentRow {
  using Wide = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  std::size_t m;
  T open, extend, add, low;
  bool local;            // an alignment may begin at every cell, for start[j], and end there, for end[j] or 0
  const T* scores;       // [m] of the matches, to which `add` is added
  const T *start, *end;  // [m + 1] or nullptr, where there are none
  T *H, *X;              // [m + 1] the best of the row above, then of this row
  Wide* from;            // [m + 1] which state is the best
  const T* M;            // [m + 1] the row above
  T *M_new, *Q, *Y;      // [m + 1] this row; Q is the better one of M and X
  Wide *bits, *is_x;     // [m + 1]
  std::uint8_t* trace;   // [m]
};

// A chunk of a row on which K members agree, for L2 (consensus.hpp). All arrays are whole vectors.
template <class T>
struct Agreement {
  std::size_t n, members;
  T over;            // λ
  const T* fixed;    // u₀, or nullptr
  T* z;
  T* const* w;       // of each member
  T* const* v;       // zero where a member takes no part
  const T* rho;
  // The answer: Ω*(Σ u_k), Σ ½ |w_k|²_ρk before and after, and ½ |z|²
  double conjugate = 0.0, ended = 0.0, begins = 0.0, penalty = 0.0;
};

// The smallest entry above zero (infinity: there is none) and the largest one of a row without negative ones.
struct RowRange {
  double least, most;
};

template <class T>
struct VectorCode {
  const char* name;

  // S[t] = sum over entries e in [indptr[t], indptr[t+1]) of values[e] * W[indices[e]].
  // values == nullptr means that all of them are one. `limit` is the number of entries that may
  // be looked at ahead of time for prefetching (the length of `indices`).
  void (*emissions)(const T* W, std::size_t Lp, const std::int64_t* indptr,
                    const std::uint32_t* indices, const float* values, std::size_t n_tokens,
                    std::int64_t limit, T* S);
  void (*emissions_f64)(const T* W, std::size_t Lp, const std::int64_t* indptr,
                        const std::uint32_t* indices, const double* values, std::size_t n_tokens,
                        std::int64_t limit, T* S);

  // S[t] += sum over j of X[t][j] * W[j]; X is [n_tokens][d], row-major.
  void (*dense_emissions_f32)(const T* W, std::size_t Lp, const float* X, std::size_t d,
                              std::size_t n_tokens, T* S);
  void (*dense_emissions_f64)(const T* W, std::size_t Lp, const double* X, std::size_t d,
                              std::size_t n_tokens, T* S);

  // lower[p], upper[p] = min and max over labels l of A[p][l]; -inf in the padding.
  void (*transition_bounds)(const T* A, std::size_t L, std::size_t Lp, T* lower, T* upper);

  // D[0] = S[0] + first; D[t][l] = S[t][l] + max_p (D[t-1][p] + A[p][l]).
  // A predecessor p that cannot be best for any label, because D[t-1][p] + upper[p] is below
  // max_q D[t-1][q] + lower[q], is skipped: with many labels only a few are left.
  void (*forward)(const T* S, const T* first, const T* A, const T* lower, const T* upper,
                  std::size_t L, std::size_t Lp, std::size_t n_tokens, T* D);

  // W[t] += k[t] * amount over the first n rows; amount is a row, most of it zero.
  void (*spread)(const T* k, std::size_t n, const T* amount, std::size_t Lp, T* W);

  // C += Y'X over the upper triangle from row `begin` (a multiple of 8) on; shapes in
  // rank_update_impl.hpp. It serves the interior point and has nothing to do with chains.
  void (*rank_update)(const T* Y, const T* X, std::size_t ld, std::size_t k, std::size_t begin, T* C,
                      std::size_t ldc);

  // x[k] = e^x[k] for x[k] <= 0; n is a whole number of vectors.
  void (*exponentials)(double* x, std::size_t n);

  // out[l] = e[l] * sum over p < L of a[p] * E[p][l], for rows of Lp numbers that are not negative; e may be
  // nullptr, for ones. They are 8-byte, and Lp is padded_labels<double>, also where T is not.
  RowRange (*row_product)(const double* a, const double* E, const double* e, std::size_t L, std::size_t Lp, double* out);

  // A row of the table of alignments; the greatest M + end, where an alignment may end at every cell.
  T (*alignment_row)(const AlignmentRow<T>& row);

  void (*agree)(Agreement<T>& row);
};

template <class T>
const VectorCode<T>& baseline_vector_code();
template <class T>
const VectorCode<T>& avx2_vector_code();

// The best code that this machine can run.
template <class T>
const VectorCode<T>& vector_code();
// "avx2" or "baseline": what vector_code() answers from now on ("auto" for the best).
void select_vector_code(const char* name);

}  // namespace mm
