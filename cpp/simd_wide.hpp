// Vectors of either size, four or eight doubles and eight or sixteen floats, for kernels of
// eight_wide_clone, which take the vectors that they work with as parameters.
#pragma once

#include <cstring>
#include <type_traits>

#include "simd_float.hpp"

namespace hedgerow {

template <class Vector>
HEDGEROW_INLINE Vector load_as(const double* p) {
  Vector out;
  std::memcpy(&out, p, sizeof(out));
  return out;
}
// From the same number of floats. By way of an array, for which GCC generates one conversion.
template <class Vector>
HEDGEROW_INLINE Vector load_as(const float* p) {
  constexpr int kSize = sizeof(Vector) / sizeof(double);
  double wide[kSize];
  for (int i = 0; i < kSize; ++i) wide[i] = p[i];
  return load_as<Vector>(wide);
}
template <class Vector>
HEDGEROW_INLINE void store_all(double* p, Vector a) {
  std::memcpy(p, &a, sizeof(a));
}

#if defined(__GNUC__)

using EightLanes = double __attribute__((vector_size(64)));
using SixteenFloats = float __attribute__((vector_size(64)));

template <class Vector>
HEDGEROW_INLINE Vector broadcast_to(double x) {
#if defined(__clang__) || __GNUC__ >= 12
  const Vector first{x};
  if constexpr (sizeof(Vector) == sizeof(EightLanes))
    return __builtin_shufflevector(first, first, 0, 0, 0, 0, 0, 0, 0, 0);
  else
    return __builtin_shufflevector(first, first, 0, 0, 0, 0);
#else
  return x - Vector{};
#endif
}

HEDGEROW_INLINE SixteenFloats maximum(SixteenFloats a, SixteenFloats b) { return a > b ? a : b; }
HEDGEROW_INLINE SixteenFloats minimum(SixteenFloats a, SixteenFloats b) { return a < b ? a : b; }
HEDGEROW_INLINE SixteenFloats exp_moderate(SixteenFloats x) {
  return exp_of_floats<int32_t __attribute__((vector_size(64)))>(x);
}

HEDGEROW_INLINE EightLanes maximum(EightLanes a, EightLanes b) { return a > b ? a : b; }
HEDGEROW_INLINE EightLanes minimum(EightLanes a, EightLanes b) { return a < b ? a : b; }
HEDGEROW_INLINE EightLanes one_if_zero(EightLanes a) {
  return a == 0.0 ? broadcast_to<EightLanes>(1.0) : a;
}
// a, or 0 where b is not positive.
HEDGEROW_INLINE EightLanes where_positive(EightLanes b, EightLanes a) {
  return b > 0.0 ? a : EightLanes{};
}
// a, or 0 where b is less than `least`.
HEDGEROW_INLINE EightLanes where_at_least(EightLanes b, double least, EightLanes a) {
  return b >= least ? a : EightLanes{};
}
HEDGEROW_INLINE Floats narrowed(EightLanes a) { return __builtin_convertvector(a, Floats); }
HEDGEROW_INLINE void store_as_floats(float* p, EightLanes a) {
  const Floats narrow = narrowed(a);
  std::memcpy(p, &narrow, sizeof(narrow));
}
// 1 / a
HEDGEROW_INLINE void store_inverses_as_floats(float* p, EightLanes a) {
  const Floats inverses = 1.0f / narrowed(a);
  std::memcpy(p, &inverses, sizeof(inverses));
}

#else

using EightLanes = Lanes;
using SixteenFloats = Floats;

template <class Vector>
HEDGEROW_INLINE Vector broadcast_to(double x) {
  return broadcast(x);
}
#endif

template <class Vector>
inline constexpr int kFloatsIn = sizeof(Vector) / sizeof(float);
template <class Vector>
HEDGEROW_INLINE Vector load_floats(const float* p) {
  Vector out;
  std::memcpy(&out, p, sizeof(out));
  return out;
}
template <class Vector>
HEDGEROW_INLINE void store_floats(float* p, Vector a) {
  std::memcpy(p, &a, sizeof(a));
}
// By way of an array, as for Floats.
template <class Vector>
HEDGEROW_INLINE Vector broadcast_floats(float x) {
  float lanes[kFloatsIn<Vector>];
  for (float& lane : lanes) lane = x;
  return load_floats<Vector>(lanes);
}
// The i-th eight floats.
template <class Vector>
HEDGEROW_INLINE Floats eight_of(const Vector& a, int i) {
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
  if constexpr (kFloatsIn<Vector> > kFloats)
    return i == 0 ? __builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7)
                  : __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15);
  else
    return a;
#else
  float lanes[kFloatsIn<Vector>];
  store_floats(lanes, a);
  return load(lanes + i * kFloats);
#endif
}

// take(part, i) for every four lanes of a vector, of which the first is lane i, in ascending order:
// sums of the parts do not depend on the size of vectors.
template <class Vector, class Take>
HEDGEROW_INLINE void for_each_part(Vector a, Take take) {
  double lanes[sizeof(Vector) / sizeof(double)];
  store_all(lanes, a);
  for (int i = 0; i < static_cast<int>(sizeof(Vector) / sizeof(double)); i += kLanes)
    take(load(lanes + i), i);
}
// sum += a
template <class Vector>
HEDGEROW_INLINE void add_parts(Vector a, Lanes& sum) {
  for_each_part(a, [&](Lanes part, int) HEDGEROW_INLINE_LAMBDA { sum += part; });
}
// step(k) for the vectors from lane k on of a row of n lanes, a multiple of kLanes, with the type
// of the vector as a parameter: Wide, then what is left in Lanes.
template <class Wide, class Step>
HEDGEROW_INLINE void for_each_vector(int n, Step step) {
  constexpr int kSize = sizeof(Wide) / sizeof(double);
  int k = 0;
  for (; k + kSize <= n; k += kSize) step.template operator()<Wide>(k);
  for (; k < n; k += kLanes) step.template operator()<Lanes>(k);
}

// Vectors of the same size in bytes.
template <class Vector>
using DoublesAs = std::conditional_t<sizeof(Vector) == sizeof(Lanes), Lanes, EightLanes>;
template <class Vector>
using FloatsAs = std::conditional_t<sizeof(Vector) == sizeof(Floats), Floats, SixteenFloats>;

}  // namespace hedgerow
