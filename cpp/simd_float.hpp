// Eight floats at a time, where single precision is enough. See simd.hpp.
#pragma once

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

// By way of memory that never comes to be: GCC would build Floats{x, x, ...} lane by lane.
HEDGEROW_INLINE Floats broadcast(float x) {
  const float lanes[kFloats] = {x, x, x, x, x, x, x, x};
  Floats out;
  std::memcpy(&out, lanes, sizeof(out));
  return out;
}
HEDGEROW_INLINE Floats maximum(Floats a, Floats b) { return a > b ? a : b; }
// b where a is no number.
HEDGEROW_INLINE Floats minimum(Floats a, Floats b) { return a < b ? a : b; }
// a where x > 0, b elsewhere.
HEDGEROW_INLINE Floats if_positive(Floats x, Floats a, Floats b) {
  return x > broadcast(0.0f) ? a : b;
}
HEDGEROW_INLINE float lane(const Floats& a, int i) { return a[i]; }
HEDGEROW_INLINE void store_as_floats(float* p, Lanes a) {
  using Half = float __attribute__((vector_size(16)));
  const Half half = __builtin_convertvector(a, Half);
  std::memcpy(p, &half, sizeof(half));
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
HEDGEROW_INLINE void store_as_floats(float* p, Lanes a) {
  for (int i = 0; i < kLanes; ++i) p[i] = static_cast<float>(a.v[i]);
}

#endif

HEDGEROW_INLINE Floats load(const float* p) {
  Floats out;
  std::memcpy(&out, p, sizeof(out));
  return out;
}
HEDGEROW_INLINE void store(float* p, Floats a) { std::memcpy(p, &a, sizeof(a)); }

// Ways to make one number of many.
struct Sum {
  static HEDGEROW_INLINE Floats start() { return broadcast(0.0f); }
  static HEDGEROW_INLINE Floats add(Floats term, Floats so_far) { return so_far + term; }
};
struct Largest {
  static HEDGEROW_INLINE Floats add(Floats term, Floats so_far) { return maximum(term, so_far); }
};
// A term that is no number is passed over.
struct Smallest {
  static HEDGEROW_INLINE Floats start() { return broadcast(std::numeric_limits<float>::max()); }
  static HEDGEROW_INLINE Floats add(Floats term, Floats so_far) { return minimum(term, so_far); }
};

template <class Fold>
HEDGEROW_INLINE float fold_lanes(Floats a) {
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
  a = Fold::add(a, __builtin_shufflevector(a, a, 4, 5, 6, 7, 0, 1, 2, 3));
  a = Fold::add(a, __builtin_shufflevector(a, a, 2, 3, 0, 1, 6, 7, 4, 5));
  a = Fold::add(a, __builtin_shufflevector(a, a, 1, 0, 3, 2, 5, 4, 7, 6));
#else
  for (int i = 1; i < kFloats; ++i) a = Fold::add(broadcast(lane(a, i)), a);
#endif
  return lane(a, 0);
}

}  // namespace hedgerow
