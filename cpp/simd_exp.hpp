// Exponentials of four or eight doubles at a time, which take most of the time of chains whose pair
// scores differ from position to position.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "simd_wide.hpp"

namespace hedgerow {

#if defined(__GNUC__)

namespace exp_detail {

// 2^(i / 16)
alignas(64) inline constexpr double kRoots[16] = {
    0x1.0000000000000p+0, 0x1.0b5586cf9890fp+0, 0x1.172b83c7d517bp+0, 0x1.2387a6e756238p+0,
    0x1.306fe0a31b715p+0, 0x1.3dea64c123422p+0, 0x1.4bfdad5362a27p+0, 0x1.5ab07dd485429p+0,
    0x1.6a09e667f3bcdp+0, 0x1.7a11473eb0187p+0, 0x1.8ace5422aa0dbp+0, 0x1.9c49182a3f090p+0,
    0x1.ae89f995ad3adp+0, 0x1.c199bdd85529cp+0, 0x1.d5818dcfba487p+0, 0x1.ea4afa2a490dap+0};

// Unsigned, so that numbers beyond the limits of exp_moderate wrap around.
template <class Vector>
struct WordsOf;
template <>
struct WordsOf<Lanes> {
  using Type = uint64_t __attribute__((vector_size(32)));
};
template <>
struct WordsOf<EightLanes> {
  using Type = uint64_t __attribute__((vector_size(64)));
};

// kRoots[index & 15]
HEDGEROW_INLINE Lanes look_up(WordsOf<Lanes>::Type index) {
  return Lanes{kRoots[index[0] & 15], kRoots[index[1] & 15], kRoots[index[2] & 15],
               kRoots[index[3] & 15]};
}
// The same without reading memory for each lane.
HEDGEROW_INLINE EightLanes look_up(WordsOf<EightLanes>::Type index) {
#if defined(__clang__)
  EightLanes out;
  for (int i = 0; i < 8; ++i) out[i] = kRoots[index[i] & 15];
  return out;
#else
  return __builtin_shuffle(load_as<EightLanes>(kRoots), load_as<EightLanes>(kRoots + 8),
                           index & 15);
#endif
}

}  // namespace exp_detail

// exp(x) for |x| <= 700 within 2 ulp, the same for any number of lanes. NaN where x is NaN; beyond
// the limits, the result may be any number.
template <class Vector>
HEDGEROW_INLINE Vector exp_moderate(Vector x) {
  using Words = typename exp_detail::WordsOf<Vector>::Type;
  const double round_bits = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  // x = n ln 2 / 16 + r, |r| <= ln 2 / 32; ln 2 in two parts, the first exact when multiplied by n.
  const Vector shifted = x * (16 * 1.4426950408889634) + round_bits;
  const Vector n = shifted - round_bits;
  const Vector r =
      (x - n * (6.93147180369123816490e-01 / 16)) - n * (1.90821492927058770002e-10 / 16);
  // 2^(n / 16), from the last four bits of n and the others, which are added to an exponent.
  const Words index = std::bit_cast<Words>(shifted);
  const Vector power = std::bit_cast<Vector>(std::bit_cast<Words>(exp_detail::look_up(index)) +
                                             ((index >> 4) << 52));
  // (exp(r) - 1 - r) / r^2 is interpolated at Chebyshev points (error of exp < 3e-17).
  const Vector r2 = r * r;
  const Vector rest =
      (0x1.0000000000000p-1 + r * 0x1.55555554dd44dp-3) +
      r2 * ((0x1.55555555194d1p-5 + r * 0x1.11120af705254p-7) + r2 * 0x1.6c17bb51f57d5p-10);
  return power + power * (r + r2 * rest);
}
// The same for x <= 0, but 0 below -700.
template <class Vector>
HEDGEROW_INLINE Vector exp_below_zero(Vector x) {
  return x < -700.0 ? Vector{} : exp_moderate(x);
}

#else

HEDGEROW_INLINE Lanes exp_moderate(Lanes x) {
  for (int i = 0; i < kLanes; ++i) x.v[i] = std::exp(x.v[i]);
  return x;
}
HEDGEROW_INLINE Lanes exp_below_zero(Lanes x) { return exp_moderate(x); }

#endif

}  // namespace hedgerow
