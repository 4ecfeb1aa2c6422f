// Eight floats at a time, where single precision is enough. See simd.hpp.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "simd.hpp"

namespace hedgerow {

inline constexpr int kFloats = 8;

// Smallest multiple of kFloats that holds n floats.
HEDGEROW_INLINE constexpr int padded_floats(int n) { return (n + kFloats - 1) / kFloats * kFloats; }

// Floats in padded rows.
using PaddedFloats = std::vector<float, LineAllocator<float>>;

#if defined(__GNUC__)

using Floats = float __attribute__((vector_size(32)));

// By way of an array, which is optimised away: GCC would build Floats{x, x, ...} lane by lane.
HEDGEROW_INLINE Floats broadcast(float x) {
  const float lanes[kFloats] = {x, x, x, x, x, x, x, x};
  Floats out;
  std::memcpy(&out, lanes, sizeof(out));
  return out;
}
HEDGEROW_INLINE Floats maximum(Floats a, Floats b) { return a > b ? a : b; }
// b where a is NaN.
HEDGEROW_INLINE Floats minimum(Floats a, Floats b) { return a < b ? a : b; }
// a where x > 0, b elsewhere.
HEDGEROW_INLINE Floats if_positive(Floats x, Floats a, Floats b) {
  return x > broadcast(0.0f) ? a : b;
}
HEDGEROW_INLINE float lane(const Floats& a, int i) { return a[i]; }

// Lanes kept as four floats.
using HalfFloats = float __attribute__((vector_size(16)));
HEDGEROW_INLINE void store_as_floats(float* p, Lanes a) {
  const HalfFloats half = __builtin_convertvector(a, HalfFloats);
  std::memcpy(p, &half, sizeof(half));
}
HEDGEROW_INLINE Floats join_as_floats(Lanes a, Lanes b) {
  const HalfFloats first = __builtin_convertvector(a, HalfFloats);
  const HalfFloats second = __builtin_convertvector(b, HalfFloats);
#if defined(__clang__) || __GNUC__ >= 12
  return __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7);
#else
  return Floats{first[0], first[1], first[2], first[3], second[0], second[1], second[2], second[3]};
#endif
}
// 1 / a
HEDGEROW_INLINE void store_inverses_as_floats(float* p, Lanes a) {
  const HalfFloats half = 1.0f / __builtin_convertvector(a, HalfFloats);
  std::memcpy(p, &half, sizeof(half));
}
// Not by __builtin_convertvector, for which GCC generates two conversions.
HEDGEROW_INLINE Lanes load_from_floats(const float* p) { return Lanes{p[0], p[1], p[2], p[3]}; }

// The power of two that brings a positive normal number to [1, 2).
HEDGEROW_INLINE Floats inverse_power(Floats a) {
  using Bits = int32_t __attribute__((vector_size(32)));
  return std::bit_cast<Floats>(0x7F000000 - (std::bit_cast<Bits>(a) & 0x7F800000));
}

// exp(x) for |x| <= 87 within 2 ulp, the same for any number of lanes; NaN where x is NaN. Computed
// as for Lanes. Bits: the same number of integers
template <class Bits, class Vector>
HEDGEROW_INLINE Vector exp_of_floats(Vector x) {
  const float round_bits = 0x1.8p23f;
  const Vector shifted = x * 1.44269504f + round_bits;
  const Vector n = shifted - round_bits;
  const Vector r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  // exp(r) by its Taylor polynomial of degree 7 (remainder < 6e-9), summed pairwise.
  const Vector r2 = r * r;
  const Vector a = (1.0f + r) + r2 * (1.0f / 2 + r * (1.0f / 6));
  const Vector b = (1.0f / 24 + r * (1.0f / 120)) + r2 * (1.0f / 720 + r * (1.0f / 5040));
  const Vector polynomial = a + r2 * r2 * b;
  const Bits exponent = (std::bit_cast<Bits>(shifted) << 23) + 0x3F800000;
  return polynomial * std::bit_cast<Vector>(exponent);
}
HEDGEROW_INLINE Floats exp_moderate(Floats x) {
  return exp_of_floats<int32_t __attribute__((vector_size(32)))>(x);
}
// The same for x <= 0, but 0 below -87, where a normal float ends.
HEDGEROW_INLINE Floats exp_nonpositive(Floats x) {
  const Floats limit = broadcast(-87.0f), result = exp_moderate(maximum(x, limit));
  return x < limit ? broadcast(0.0f) : result;
}

#else

struct Floats {
  float v[kFloats];
};
HEDGEROW_INLINE float lane(const Floats& a, int i) { return a.v[i]; }
template <class Op>
HEDGEROW_INLINE Floats each(Floats a, Floats b, Op op) {
  Floats out;
  for (int i = 0; i < kFloats; ++i) out.v[i] = op(a.v[i], b.v[i]);
  return out;
}
HEDGEROW_INLINE Floats broadcast(float x) { return Floats{{x, x, x, x, x, x, x, x}}; }
HEDGEROW_INLINE Floats operator+(Floats a, Floats b) {
  return each(a, b, [](float x, float y) { return x + y; });
}
HEDGEROW_INLINE Floats operator-(Floats a, Floats b) {
  return each(a, b, [](float x, float y) { return x - y; });
}
HEDGEROW_INLINE Floats operator*(Floats a, Floats b) {
  return each(a, b, [](float x, float y) { return x * y; });
}
HEDGEROW_INLINE Floats operator/(Floats a, Floats b) {
  return each(a, b, [](float x, float y) { return x / y; });
}
HEDGEROW_INLINE Floats& operator+=(Floats& a, Floats b) { return a = a + b; }
HEDGEROW_INLINE Floats maximum(Floats a, Floats b) {
  return each(a, b, [](float x, float y) { return x > y ? x : y; });
}
HEDGEROW_INLINE Floats minimum(Floats a, Floats b) {
  return each(a, b, [](float x, float y) { return x < y ? x : y; });
}
HEDGEROW_INLINE Floats if_positive(Floats x, Floats a, Floats b) {
  for (int i = 0; i < kFloats; ++i) a.v[i] = x.v[i] > 0.0f ? a.v[i] : b.v[i];
  return a;
}
HEDGEROW_INLINE Floats inverse_power(Floats a) {
  for (int i = 0; i < kFloats; ++i) a.v[i] = std::ldexp(1.0f, -std::ilogb(a.v[i]));
  return a;
}
HEDGEROW_INLINE void store_as_floats(float* p, Lanes a) {
  for (int i = 0; i < kLanes; ++i) p[i] = static_cast<float>(a.v[i]);
}
HEDGEROW_INLINE Floats join_as_floats(Lanes a, Lanes b) {
  Floats out;
  store_as_floats(out.v, a);
  store_as_floats(out.v + kLanes, b);
  return out;
}
HEDGEROW_INLINE void store_inverses_as_floats(float* p, Lanes a) {
  for (int i = 0; i < kLanes; ++i) p[i] = 1.0f / static_cast<float>(a.v[i]);
}
HEDGEROW_INLINE Lanes load_from_floats(const float* p) { return Lanes{{p[0], p[1], p[2], p[3]}}; }
HEDGEROW_INLINE Floats exp_moderate(Floats x) {
  for (int i = 0; i < kFloats; ++i) x.v[i] = std::exp(x.v[i]);
  return x;
}
HEDGEROW_INLINE Floats exp_nonpositive(Floats x) {
  for (int i = 0; i < kFloats; ++i) x.v[i] = x.v[i] < -87.0f ? 0.0f : std::exp(x.v[i]);
  return x;
}

#endif

HEDGEROW_INLINE Floats load(const float* p) {
  Floats out;
  std::memcpy(&out, p, sizeof(out));
  return out;
}
HEDGEROW_INLINE void store(float* p, Floats a) { std::memcpy(p, &a, sizeof(a)); }

// Floats in memory, as Packed for Lanes.
struct alignas(kFloats * sizeof(float)) PackedFloats {
  PackedFloats() = default;
  HEDGEROW_INLINE PackedFloats(Floats a) { store(values, a); }
  HEDGEROW_INLINE operator Floats() const { return load(values); }
  float values[kFloats];
};
// 0, 1, 2 and so on.
HEDGEROW_INLINE Floats count_up() {
  constexpr float kNumbers[kFloats] = {0, 1, 2, 3, 4, 5, 6, 7};
  return load(kNumbers);
}

// Ways to reduce many numbers to one.
struct Total {
  static HEDGEROW_INLINE Floats start() { return broadcast(0.0f); }
  static HEDGEROW_INLINE Floats add(Floats term, Floats so_far) { return so_far + term; }
};
struct Largest {
  static HEDGEROW_INLINE Floats add(Floats term, Floats so_far) { return maximum(term, so_far); }
};
// Terms that are NaN are skipped.
struct Smallest {
  static HEDGEROW_INLINE Floats start() { return broadcast(std::numeric_limits<float>::max()); }
  static HEDGEROW_INLINE Floats add(Floats term, Floats so_far) { return minimum(term, so_far); }
};

template <class Fold>
HEDGEROW_INLINE float fold_lanes(Floats a) {
  Floats folded = a;
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
  folded = Fold::add(folded, __builtin_shufflevector(folded, folded, 4, 5, 6, 7, 0, 1, 2, 3));
  folded = Fold::add(folded, __builtin_shufflevector(folded, folded, 2, 3, 0, 1, 6, 7, 4, 5));
  folded = Fold::add(folded, __builtin_shufflevector(folded, folded, 1, 0, 3, 2, 5, 4, 7, 6));
#else
  for (int i = 1; i < kFloats; ++i) folded = Fold::add(broadcast(lane(a, i)), folded);
#endif
  return lane(folded, 0);
}

// Rows become columns.
HEDGEROW_INLINE void transpose(Floats (&a)[kFloats]) {
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
  Floats b[kFloats];
  for (int i = 0; i < kFloats; i += 2) {
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < kFloats; i += 4)
    for (int j = 0; j < 2; ++j) {
      a[i + 2 * j] = __builtin_shufflevector(b[i + j], b[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      a[i + 2 * j + 1] =
          __builtin_shufflevector(b[i + j], b[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < 4; ++i) {
    b[i] = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    b[i + 4] = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
  for (int i = 0; i < kFloats; ++i) a[i] = b[i];
#else
  float rows[kFloats][kFloats], columns[kFloats][kFloats];
  for (int i = 0; i < kFloats; ++i) store(rows[i], a[i]);
  for (int i = 0; i < kFloats; ++i)
    for (int j = 0; j < kFloats; ++j) columns[j][i] = rows[i][j];
  for (int i = 0; i < kFloats; ++i) a[i] = load(columns[i]);
#endif
}

}  // namespace hedgerow
