// The loops over the labels of a position with a sequence in each lane, inlined into the kernels
// that are compiled for several x86-64 levels.
#pragma once

#include "simd.hpp"
#include "simd_float.hpp"

namespace hedgerow {
namespace {

// A finite node has a factor above 0: at least exp of this.
constexpr double kLeastNode = -700.0;

// row = exp(row - maximum), which is 0 only where it was -inf; returns the maximum.
template <int kLabels>
HEDGEROW_INLINE Lanes exponentiate(Packed* row) {
  Lanes largest = row[0];
  for (int k = 1; k < kLabels; ++k) largest = maximum(row[k], largest);
  for (int k = 0; k < kLabels; ++k) {
    const Lanes node = row[k];
    row[k] = exp_nonpositive(raise_finite(node - largest, kLeastNode));
  }
  return largest;
}

// out[k] = sum_j x[j] matrix[j, k], or with kTransposed out[j] = sum_k matrix[j, k] x[k].
template <int kLabels, bool kTransposed, class Vector, class Number>
HEDGEROW_INLINE void multiply(const Vector* x, const Number* matrix, Vector* out) {
  constexpr int kStep = kTransposed ? 1 : kLabels;  // from an entry of a sum to the next
  for (int k = 0; k < kLabels; ++k, matrix += kTransposed ? kLabels : 1) {
    out[k] = x[0] * broadcast(matrix[0]);
    for (int j = 1; j < kLabels; ++j) out[k] += x[j] * broadcast(matrix[j * kStep]);
  }
}

template <int kLabels, class Vector>
HEDGEROW_INLINE Vector total(const Vector* row) {
  Vector sum = row[0];
  for (int k = 1; k < kLabels; ++k) sum += row[k];
  return sum;
}

// alpha[k] = reached[k] factors[k] scale. Returns the smallest of them, at most 1; labels that no
// path leads to are ignored.
template <int kLabels>
HEDGEROW_INLINE Lanes arrive(const Lanes* reached, const Packed* factors, Lanes scale,
                             Lanes* alpha) {
  const Lanes one = broadcast(1.0);
  Lanes least = one;
  for (int k = 0; k < kLabels; ++k) {
    const Lanes factor = factors[k];
    alpha[k] = reached[k] * factor * scale;
    least = minimum(if_positive(reached[k], if_positive(factor, alpha[k], one), one), least);
  }
  return least;
}

}  // namespace
}  // namespace hedgerow
