// A symmetric update of some rows: C += Y'X over the upper triangle, the one dense operation of the
// interior point (dense_cholesky.hpp). Included by vector_code_impl.hpp, once per instruction set.
//
// Y and X are [k][ld], C is [ld][ldc]; ld is a multiple of 8 and all rows begin at whole vectors.
// Tiles of 4 by 8 numbers of C stay in registers over all of k. Tiles that the diagonal cuts are
// written whole; what lies below the diagonal means nothing.

template <class T>
void rank_update(const T* Y, const T* X, std::size_t ld, std::size_t k, std::size_t begin, T* C, std::size_t ldc) {
  constexpr std::size_t kWide = 8 / kLanes<T>;  // vectors of a tile's row
  for (std::size_t i = begin; i < ld; i += 4) {
    for (std::size_t j = i / 8 * 8; j < ld; j += 8) {
      Vec<T> sum[4][kWide];
      for (std::size_t a = 0; a < 4; ++a) {
        for (std::size_t b = 0; b < kWide; ++b) sum[a][b] = *as_vec<T>(C + (i + a) * ldc + j + b * kLanes<T>);
      }
      const T* y = Y + i;
      const T* x = X + j;
      for (std::size_t r = 0; r < k; ++r, y += ld, x += ld) {
        Vec<T> row[kWide];
        for (std::size_t b = 0; b < kWide; ++b) row[b] = *as_vec<T>(x + b * kLanes<T>);
        for (std::size_t a = 0; a < 4; ++a) {
          for (std::size_t b = 0; b < kWide; ++b) sum[a][b] += y[a] * row[b];
        }
      }
      for (std::size_t a = 0; a < 4; ++a) {
        for (std::size_t b = 0; b < kWide; ++b) *as_vec<T>(C + (i + a) * ldc + j + b * kLanes<T>) = sum[a][b];
      }
    }
  }
}
