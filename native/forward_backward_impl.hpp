// Steps of the forward-backward recursion of a chain (chain_marginals.hpp), as vector code; part of
// vector_code_impl.hpp. Numbers are 8-byte whatever the weights are.

// e^x for x <= 0, by e^x = 2^n e^r with n the whole number next to x / ln 2, and e^r for |r| <= ln 2 / 2 as a
// rational function: e^r = 1 + 2 P / (Q - P), P odd and Q even in r. What is below 2^-1000 or so is zero.
inline Vec<double> exponential(Vec<double> x) {
  typedef std::uint64_t Bits __attribute__((vector_size(32)));
  // Added to a number below 2^51, this leaves its whole part in the last bits.
  constexpr double kRound = 6755399441055744.0;
  const Vec<double> kept = x < -690.0 ? Vec<double>{} - 690.0 : x;
  const Vec<double> shifted = kept * 1.4426950408889634074 + kRound;
  const Vec<double> n = shifted - kRound;
  const Vec<double> r = (kept - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;  // ln 2 in two parts
  const Vec<double> r2 = r * r;
  const Vec<double> P = r * ((1.26177193074810590878e-4 * r2 + 3.02994407707441961300e-2) * r2 + 9.99999999999999999910e-1);
  const Vec<double> Q = ((3.00198505138664455042e-6 * r2 + 2.52448340349684104192e-3) * r2 + 2.27265548208155028766e-1) * r2 + 2.0;
  const Vec<double> y = 1.0 + 2.0 * P / (Q - P);
  Bits power;
  __builtin_memcpy(&power, &shifted, sizeof power);
  power = (power + 1023) << 52;  // 2^n
  Vec<double> scale;
  __builtin_memcpy(&scale, &power, sizeof scale);
  return x < -690.0 ? Vec<double>{} : y * scale;
}

inline void exponentials(double* x, std::size_t n) {
  for (std::size_t v = 0; v < n / kLanes<double>; ++v) as_vec<double>(x)[v] = exponential(as_vec<double>(x)[v]);
}

inline RowRange row_product(const double* a, const double* E, const double* e, std::size_t L, std::size_t Lp, double* out) {
  Vec<double> most{}, least = Vec<double>{} + std::numeric_limits<double>::infinity();
  for_slices(Lp / kLanes<double>, [&]<int NV>(std::size_t at) {
    const std::size_t shift = at * kLanes<double>;
    Vec<double> sum[NV], other[NV];
    for (int v = 0; v < NV; ++v) sum[v] = other[v] = Vec<double>{};
    std::size_t p = 0;
    for (; p + 1 < L; p += 2) {
      const Vec<double>* row0 = as_vec<double>(E + p * Lp + shift);
      const Vec<double>* row1 = as_vec<double>(E + (p + 1) * Lp + shift);
      const double a0 = a[p], a1 = a[p + 1];
      for (int v = 0; v < NV; ++v) sum[v] += a0 * row0[v], other[v] += a1 * row1[v];
    }
    if (p < L) {
      const Vec<double>* row = as_vec<double>(E + p * Lp + shift);
      for (int v = 0; v < NV; ++v) sum[v] += a[p] * row[v];
    }
    for (int v = 0; v < NV; ++v) {
      Vec<double> x = sum[v] + other[v];
      if (e != nullptr) x *= as_vec<double>(e + shift)[v];
      as_vec<double>(out + shift)[v] = x;
      most = vmax<double>(most, x);
      const Vec<double> there = x > 0.0 ? x : Vec<double>{} + std::numeric_limits<double>::infinity();
      least = -vmax<double>(-least, -there);
    }
  });
  return {-horizontal_max<double>(-least), horizontal_max<double>(most)};
}
