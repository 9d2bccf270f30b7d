// One row of the table of alignments (alignment_table.hpp), as vector code; part of vector_code_impl.hpp.
//
// Of the three states only Y depends on the cell before in the same row. So a row is done in three loops: M and
// X of all cells, which need the row above alone; Y, a running maximum with decay; and the best of the three.
// Y[j] = max over k >= 0 of q[j-1-k] + open + k extend is computed in blocks: within one by maxima over 1, 2, 4, ...
// cells, and from one to the next by its last value.

// Rows are done in whole vectors, a few cells beyond their end, which nothing else reads.

// Integers as wide as T, which comparisons of T give.
template <class T>
struct WidesOf;
template <>
struct WidesOf<float> {
  typedef std::int32_t type __attribute__((vector_size(32)));
};
template <>
struct WidesOf<double> {
  typedef std::int64_t type __attribute__((vector_size(32)));
};
template <class T>
using Wides = typename WidesOf<T>::type;

template <class T>
inline Vec<T> load(const T* p) {
  Vec<T> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
inline Wides<T> load_wide(const typename AlignmentRow<T>::Wide* p) {
  Wides<T> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline void store(const Vec<float>& v, float* p) { __builtin_memcpy(p, &v, sizeof v); }
inline void store(const Vec<double>& v, double* p) { __builtin_memcpy(p, &v, sizeof v); }
template <class T>
inline void store_wide(const Wides<T>& v, typename AlignmentRow<T>::Wide* p) {
  __builtin_memcpy(p, &v, sizeof v);
}

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define MM_HAS_SHUFFLE 1
#endif
#endif

// Y[1..m] from Q[0..m-1].
template <class T>
void alignment_gaps(const T* Q, std::size_t m, T open, T extend, T low, T* Y) {
  T y = low;
  std::size_t j = 1;
#if defined(MM_HAS_SHUFFLE)
  if constexpr (sizeof(T) == 4) {
    const Vec<T> lows = Vec<T>{} + low;
    const Vec<T> decay = {extend, 2 * extend, 3 * extend, 4 * extend, 5 * extend, 6 * extend, 7 * extend, 8 * extend};
    for (; j + 8 <= m + 1; j += 8) {
      Vec<T> v = load(Q + j - 1) + open;
      v = vmax<T>(v, __builtin_shufflevector(lows, v, 0, 8, 9, 10, 11, 12, 13, 14) + extend);
      v = vmax<T>(v, __builtin_shufflevector(lows, v, 0, 0, 8, 9, 10, 11, 12, 13) + 2 * extend);
      v = vmax<T>(v, __builtin_shufflevector(lows, v, 0, 0, 0, 0, 8, 9, 10, 11) + 4 * extend);
      v = vmax<T>(v, y + decay);
      store(v, Y + j);
      y = v[7];
    }
  } else {
    const Vec<T> lows = Vec<T>{} + low;
    const Vec<T> decay = {extend, 2 * extend, 3 * extend, 4 * extend};
    for (; j + 4 <= m + 1; j += 4) {
      Vec<T> v = load(Q + j - 1) + open;
      v = vmax<T>(v, __builtin_shufflevector(lows, v, 0, 4, 5, 6) + extend);
      v = vmax<T>(v, __builtin_shufflevector(lows, v, 0, 0, 4, 5) + 2 * extend);
      v = vmax<T>(v, y + decay);
      store(v, Y + j);
      y = v[3];
    }
  }
#endif
  for (; j <= m; ++j) {
    const T opened = Q[j - 1] + open, extended = y + extend;
    y = extended > opened ? extended : opened;
    Y[j] = y;
  }
}

template <class T, bool kStart>
void alignment_cells(const AlignmentRow<T>& r) {
  const T open = r.open, extend = r.extend, add = r.add;
  for (std::size_t j = 1; j <= r.m; j += kLanes<T>) {
    Vec<T> d = load(r.H + j - 1);
    Wides<T> origin = load_wide<T>(r.from + j - 1);
    if constexpr (kStart) {
      const Vec<T> begin = load(r.start + j);
      origin &= Wides<T>(d > begin);
      d = vmax<T>(d, begin);
    }
    const Vec<T> match = d + (load(r.scores + j - 1) + add);
    const Vec<T> x_open = load(r.M + j) + open, x_extend = load(r.X + j) + extend;
    const Vec<T> x = vmax<T>(x_extend, x_open);
    store(match, r.M_new + j);
    store(x, r.X + j);
    store(vmax<T>(x, match), r.Q + j);
    store_wide<T>(Wides<T>(x > match) & 1, r.is_x + j);
    store_wide<T>(origin | (Wides<T>(x_extend > x_open) & 4), r.bits + j);
  }
}

template <class T>
void alignment_best(const AlignmentRow<T>& r) {
  const T open = r.open, extend = r.extend;
  for (std::size_t j = 1; j <= r.m; j += kLanes<T>) {
    const Vec<T> q = load(r.Q + j), y = load(r.Y + j);
    const Wides<T> is_y = Wides<T>(y > q), is_x = load_wide<T>(r.is_x + j);
    store(vmax<T>(y, q), r.H + j);
    store_wide<T>((is_y & 3) | (~is_y & (is_x + 1)), r.from + j);
    const Wides<T> extends = Wides<T>(load(r.Y + j - 1) + extend > load(r.Q + j - 1) + open);
    const Wides<T> y_from = (extends & 16) | (~extends & (load_wide<T>(r.is_x + j - 1) << 3));
    store_wide<T>(load_wide<T>(r.bits + j) | y_from, r.bits + j);
  }
  std::uint8_t* __restrict trace = r.trace;
  const auto* __restrict bits = r.bits;
  for (std::size_t j = 1; j <= r.m; ++j) trace[j - 1] = static_cast<std::uint8_t>(bits[j]);
}

// The greatest M + end of the row; `end` may be missing.
template <class T>
T alignment_top(const T* M, const T* end, std::size_t m) {
  std::size_t j = 1;
  T top = M[1] + (end != nullptr ? end[1] : T(0));
  if (m >= kLanes<T>) {
    Vec<T> most = load(M + 1) + (end != nullptr ? load(end + 1) : Vec<T>{});
    for (j += kLanes<T>; j + kLanes<T> <= m + 1; j += kLanes<T>) {
      most = vmax<T>(most, load(M + j) + (end != nullptr ? load(end + j) : Vec<T>{}));
    }
    top = horizontal_max<T>(most);
  }
  for (; j <= m; ++j) {
    const T value = M[j] + (end != nullptr ? end[j] : T(0));
    top = value > top ? value : top;
  }
  return top;
}

template <class T>
T alignment_row(const AlignmentRow<T>& r) {
  r.local ? alignment_cells<T, true>(r) : alignment_cells<T, false>(r);
  alignment_gaps<T>(r.Q, r.m, r.open, r.extend, r.low, r.Y);
  alignment_best<T>(r);
  return r.local ? alignment_top<T>(r.M_new, r.end, r.m) : T(0);
}
