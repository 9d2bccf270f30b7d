// Definitions of the vector code; included once per instruction set with MM_ISA set to the name
// of its namespace. Written with the compiler's generic vectors, so the same source serves AVX2,
// SSE2 and NEON.
#include <cstdint>
#include <limits>

#include "vector_code.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace mm::MM_ISA {

template <class T>
struct VecOf;
template <>
struct VecOf<float> {
  typedef float type __attribute__((vector_size(32), aligned(32), may_alias));
};
template <>
struct VecOf<double> {
  typedef double type __attribute__((vector_size(32), aligned(32), may_alias));
};
template <class T>
using Vec = typename VecOf<T>::type;

template <class T>
inline constexpr std::size_t kLanes = 32 / sizeof(T);

// A prefix of this many entries is prefetched ahead of the entry being added.
inline constexpr std::int64_t kAhead = 24;
// Vectors kept in registers at once; longer rows are done in slices.
inline constexpr int kSlice = 8;

template <class T>
inline Vec<T> vmax(Vec<T> a, Vec<T> b) {
#if defined(__AVX2__)
  if constexpr (sizeof(T) == 4) {
    return _mm256_max_ps(a, b);
  } else {
    return _mm256_max_pd(a, b);
  }
#else
  return a > b ? a : b;
#endif
}

// Bit k is set when a[k] >= b[k].
template <class T>
inline unsigned mask_ge(Vec<T> a, Vec<T> b) {
#if defined(__AVX2__)
  if constexpr (sizeof(T) == 4) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GE_OQ)));
  } else {
    return static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_GE_OQ)));
  }
#else
  unsigned bits = 0;
  for (std::size_t k = 0; k < kLanes<T>; ++k) bits |= static_cast<unsigned>(a[k] >= b[k]) << k;
  return bits;
#endif
}

template <class T>
inline T horizontal_max(Vec<T> a) {
  T best = a[0];
  for (std::size_t k = 1; k < kLanes<T>; ++k) best = a[k] > best ? a[k] : best;
  return best;
}

template <class T>
inline const Vec<T>* as_vec(const T* p) {
  return reinterpret_cast<const Vec<T>*>(p);
}
template <class T>
inline Vec<T>* as_vec(T* p) {
  return reinterpret_cast<Vec<T>*>(p);
}

// Call f with std::integral_constant-like ints covering `n_vec` vectors in slices of kSlice.
template <int NV, class F>
inline void slice_tail(std::size_t n_vec, std::size_t at, F&& f) {
  if constexpr (NV > 0) {
    if (n_vec == NV) {
      f.template operator()<NV>(at);
    } else {
      slice_tail<NV - 1>(n_vec, at, f);
    }
  }
}
template <class F>
inline void for_slices(std::size_t n_vec, F&& f) {
  std::size_t at = 0;
  for (; n_vec - at > kSlice; at += kSlice) f.template operator()<kSlice>(at);
  slice_tail<kSlice>(n_vec - at, at, f);
}

template <class T, class X, int NV, bool kOnes>
void emissions_slice(const T* W, std::size_t Lp, const std::int64_t* indptr,
                     const std::uint32_t* indices, const X* values, std::size_t n_tokens,
                     std::int64_t limit, T* S) {
  for (std::size_t t = 0; t < n_tokens; ++t) {
    Vec<T> acc[NV];
    for (int v = 0; v < NV; ++v) acc[v] = Vec<T>{};
    for (std::int64_t e = indptr[t]; e < indptr[t + 1]; ++e) {
      if (e + kAhead < limit) {
        const char* next = reinterpret_cast<const char*>(W + indices[e + kAhead] * Lp);
        for (int line = 0; line < NV * 32; line += 64) __builtin_prefetch(next + line);
        __builtin_prefetch(next + NV * 32 - 1);
      }
      const Vec<T>* row = as_vec<T>(W + indices[e] * Lp);
      if constexpr (kOnes) {
        for (int v = 0; v < NV; ++v) acc[v] += row[v];
      } else {
        const T x = static_cast<T>(values[e]);
        for (int v = 0; v < NV; ++v) acc[v] += x * row[v];
      }
    }
    Vec<T>* out = as_vec<T>(S + t * Lp);
    for (int v = 0; v < NV; ++v) out[v] = acc[v];
  }
}

template <class T, class X>
void emissions(const T* W, std::size_t Lp, const std::int64_t* indptr,
               const std::uint32_t* indices, const X* values, std::size_t n_tokens,
               std::int64_t limit, T* S) {
  for_slices(Lp / kLanes<T>, [&]<int NV>(std::size_t at) {
    const std::size_t shift = at * kLanes<T>;
    if (values == nullptr) {
      emissions_slice<T, X, NV, true>(W + shift, Lp, indptr, indices, values, n_tokens, limit,
                                   S + shift);
    } else {
      emissions_slice<T, X, NV, false>(W + shift, Lp, indptr, indices, values, n_tokens, limit,
                                    S + shift);
    }
  });
}

template <class T, class X, int NV>
void dense_slice(const T* W, std::size_t Lp, const X* x, std::size_t d, std::size_t n_tokens,
                 T* S) {
  std::size_t t = 0;
  // Two tokens at a time share each load of a weight row.
  for (; t + 1 < n_tokens; t += 2) {
    Vec<T>* out0 = as_vec<T>(S + t * Lp);
    Vec<T>* out1 = as_vec<T>(S + (t + 1) * Lp);
    Vec<T> acc0[NV], acc1[NV];
    for (int v = 0; v < NV; ++v) acc0[v] = out0[v], acc1[v] = out1[v];
    const X* x0 = x + t * d;
    const X* x1 = x0 + d;
    for (std::size_t j = 0; j < d; ++j) {
      const Vec<T>* row = as_vec<T>(W + j * Lp);
      const T a = static_cast<T>(x0[j]), b = static_cast<T>(x1[j]);
      for (int v = 0; v < NV; ++v) {
        acc0[v] += a * row[v];
        acc1[v] += b * row[v];
      }
    }
    for (int v = 0; v < NV; ++v) out0[v] = acc0[v], out1[v] = acc1[v];
  }
  for (; t < n_tokens; ++t) {
    Vec<T>* out = as_vec<T>(S + t * Lp);
    Vec<T> acc[NV];
    for (int v = 0; v < NV; ++v) acc[v] = out[v];
    for (std::size_t j = 0; j < d; ++j) {
      const Vec<T>* row = as_vec<T>(W + j * Lp);
      const T a = static_cast<T>(x[t * d + j]);
      for (int v = 0; v < NV; ++v) acc[v] += a * row[v];
    }
    for (int v = 0; v < NV; ++v) out[v] = acc[v];
  }
}

template <class T, class X>
void dense_emissions(const T* W, std::size_t Lp, const X* x, std::size_t d, std::size_t n_tokens,
                     T* S) {
  for_slices(Lp / kLanes<T>, [&]<int NV>(std::size_t at) {
    const std::size_t shift = at * kLanes<T>;
    dense_slice<T, X, NV>(W + shift, Lp, x, d, n_tokens, S + shift);
  });
}

template <class T>
void transition_bounds(const T* A, std::size_t L, std::size_t Lp, T* lower, T* upper) {
  constexpr T inf = std::numeric_limits<T>::infinity();
  const std::size_t whole = L / kLanes<T>;
  for (std::size_t p = 0; p < L; ++p) {
    const T* row = A + p * Lp;
    T lo = inf, hi = -inf;
    if (whole > 0) {
      Vec<T> low = -as_vec<T>(row)[0], high = as_vec<T>(row)[0];
      for (std::size_t v = 1; v < whole; ++v) {
        low = vmax<T>(low, -as_vec<T>(row)[v]);
        high = vmax<T>(high, as_vec<T>(row)[v]);
      }
      lo = -horizontal_max<T>(low);
      hi = horizontal_max<T>(high);
    }
    for (std::size_t l = whole * kLanes<T>; l < L; ++l) {
      lo = row[l] < lo ? row[l] : lo;
      hi = row[l] > hi ? row[l] : hi;
    }
    lower[p] = lo;
    upper[p] = hi;
  }
  for (std::size_t p = L; p < Lp; ++p) lower[p] = upper[p] = -inf;
}

// Rows of up to this many labels take every predecessor: finding those that matter would cost more.
inline constexpr std::size_t kSmall = 24;

// best = max over the given predecessors p of prev[p] + A[p], for rows of NV vectors; two chains
// of maxima run side by side to hide their latency.
template <class T, int NV>
inline void step_all(const T* prev, const T* A, std::size_t L, std::size_t Lp, Vec<T>* best) {
  Vec<T> other[NV];
  const Vec<T>* row = as_vec<T>(A);
  for (int v = 0; v < NV; ++v) best[v] = other[v] = prev[0] + row[v];
  std::size_t p = 1;
  for (; p + 1 < L; p += 2) {
    const Vec<T>* row0 = as_vec<T>(A + p * Lp);
    const Vec<T>* row1 = as_vec<T>(A + (p + 1) * Lp);
    const T d0 = prev[p], d1 = prev[p + 1];
    for (int v = 0; v < NV; ++v) {
      best[v] = vmax<T>(best[v], d0 + row0[v]);
      other[v] = vmax<T>(other[v], d1 + row1[v]);
    }
  }
  if (p < L) {
    const Vec<T>* last = as_vec<T>(A + p * Lp);
    const T d = prev[p];
    for (int v = 0; v < NV; ++v) best[v] = vmax<T>(best[v], d + last[v]);
  }
  for (int v = 0; v < NV; ++v) best[v] = vmax<T>(best[v], other[v]);
}

template <class T, int NV>
inline void step_masked(const T* prev, const T* A, std::size_t Lp, std::uint64_t mask,
                        Vec<T>* best) {
  {
    const int p = __builtin_ctzll(mask);
    const Vec<T>* row = as_vec<T>(A + std::size_t(p) * Lp);
    const T d = prev[p];
    for (int v = 0; v < NV; ++v) best[v] = d + row[v];
  }
  for (mask &= mask - 1; mask != 0; mask &= mask - 1) {
    const int p = __builtin_ctzll(mask);
    const Vec<T>* row = as_vec<T>(A + std::size_t(p) * Lp);
    const T d = prev[p];
    for (int v = 0; v < NV; ++v) best[v] = vmax<T>(best[v], d + row[v]);
  }
}

// Rows that fit the registers.
template <class T, int NV>
void forward_short(const T* S, const T* A, const T* lower, const T* upper, std::size_t L,
                   std::size_t Lp, std::size_t n_tokens, T* D) {
  Vec<T> best[NV];
  for (std::size_t t = 1; t < n_tokens; ++t) {
    const T* prev = D + (t - 1) * Lp;
    std::uint64_t mask = 0;
    if (L > kSmall) {
      const Vec<T>* pv = as_vec<T>(prev);
      Vec<T> top = pv[0] + as_vec<T>(lower)[0];
      for (int v = 1; v < NV; ++v) top = vmax<T>(top, pv[v] + as_vec<T>(lower)[v]);
      const Vec<T> bound = horizontal_max<T>(top) - Vec<T>{};
      for (int v = 0; v < NV; ++v) {
        mask |= std::uint64_t(mask_ge<T>(pv[v] + as_vec<T>(upper)[v], bound)) << (v * kLanes<T>);
      }
      // Infinite scores (forbidden transitions) can let nobody or the padding through.
      if ((mask & (~std::uint64_t{0} >> (64 - L))) != mask) mask = 0;
    }
    if (mask == 0) {
      step_all<T, NV>(prev, A, L, Lp, best);
    } else {
      step_masked<T, NV>(prev, A, Lp, mask, best);
    }
    const Vec<T>* score = as_vec<T>(S + t * Lp);
    Vec<T>* out = as_vec<T>(D + t * Lp);
    for (int v = 0; v < NV; ++v) out[v] = best[v] + score[v];
  }
}

// Longer rows: in slices, with a list of the predecessors that matter.
template <class T>
void forward_long(const T* S, const T* A, const T* lower, const T* upper, std::size_t L,
                  std::size_t Lp, std::size_t n_tokens, T* D) {
  const std::size_t n_vec = Lp / kLanes<T>;
  constexpr std::size_t kList = 2048;
  std::uint32_t kept[kList];
  for (std::size_t t = 1; t < n_tokens; ++t) {
    const T* prev = D + (t - 1) * Lp;
    const Vec<T>* pv = as_vec<T>(prev);
    Vec<T> top = pv[0] + as_vec<T>(lower)[0];
    for (std::size_t v = 1; v < n_vec; ++v) top = vmax<T>(top, pv[v] + as_vec<T>(lower)[v]);
    const Vec<T> bound = horizontal_max<T>(top) - Vec<T>{};
    std::size_t n_kept = 0;
    for (std::size_t v = 0; v < n_vec && n_kept + kLanes<T> <= kList; ++v) {
      unsigned bits = mask_ge<T>(pv[v] + as_vec<T>(upper)[v], bound);
      for (; bits != 0; bits &= bits - 1) {
        kept[n_kept++] = static_cast<std::uint32_t>(v * kLanes<T>) +
                         static_cast<std::uint32_t>(__builtin_ctz(bits));
      }
    }
    const bool all = n_kept == 0 || kept[n_kept - 1] >= L || n_kept + kLanes<T> > kList;
    for_slices(n_vec, [&]<int NV>(std::size_t at) {
      const std::size_t shift = at * kLanes<T>;
      Vec<T> best[NV];
      if (all) {
        step_all<T, NV>(prev, A + shift, L, Lp, best);
      } else {
        const Vec<T>* row = as_vec<T>(A + kept[0] * Lp + shift);
        for (int v = 0; v < NV; ++v) best[v] = prev[kept[0]] + row[v];
        for (std::size_t k = 1; k < n_kept; ++k) {
          row = as_vec<T>(A + kept[k] * Lp + shift);
          const T d = prev[kept[k]];
          for (int v = 0; v < NV; ++v) best[v] = vmax<T>(best[v], d + row[v]);
        }
      }
      const Vec<T>* score = as_vec<T>(S + t * Lp + shift);
      Vec<T>* out = as_vec<T>(D + t * Lp + shift);
      for (int v = 0; v < NV; ++v) out[v] = best[v] + score[v];
    });
  }
}

template <class T>
void forward(const T* S, const T* first, const T* A, const T* lower, const T* upper,
             std::size_t L, std::size_t Lp, std::size_t n_tokens, T* D) {
  const std::size_t n_vec = Lp / kLanes<T>;
  for (std::size_t v = 0; v < n_vec; ++v) {
    as_vec<T>(D)[v] = as_vec<T>(S)[v] + as_vec<T>(first)[v];
  }
  if (n_vec > kSlice) {
    forward_long<T>(S, A, lower, upper, L, Lp, n_tokens, D);
    return;
  }
  for_slices(n_vec, [&]<int NV>(std::size_t) {
    forward_short<T, NV>(S, A, lower, upper, L, Lp, n_tokens, D);
  });
}

template <class T>
void spread(const T* k, std::size_t n, const T* amount, std::size_t Lp, T* W) {
  constexpr std::size_t kTile = 256;  // rows that stay in the cache over all vectors
  for (std::size_t begin = 0; begin < n; begin += kTile) {
    const std::size_t end = begin + kTile < n ? begin + kTile : n;
    for (std::size_t at = 0; at < Lp; at += kLanes<T>) {
      bool any = false;
      for (std::size_t l = at; l < at + kLanes<T>; ++l) any |= amount[l] != T(0);
      if (!any) continue;
      const Vec<T> a = *as_vec<T>(amount + at);
      for (std::size_t t = begin; t < end; ++t) *as_vec<T>(W + t * Lp + at) += k[t] * a;
    }
  }
}

#include "agreement_impl.hpp"
#include "alignment_row_impl.hpp"
#include "forward_backward_impl.hpp"
#include "rank_update_impl.hpp"

template <class T>
constexpr VectorCode<T> table(const char* name) {
  return {name,
          &emissions<T, float>,
          &emissions<T, double>,
          &dense_emissions<T, float>,
          &dense_emissions<T, double>,
          &transition_bounds<T>,
          &forward<T>,
          &spread<T>,
          &rank_update<T>,
          &exponentials,
          &row_product,
          &alignment_row<T>,
          &agree<T>};
}

}  // namespace mm::MM_ISA
