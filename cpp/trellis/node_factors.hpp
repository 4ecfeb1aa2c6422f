// Exponentials of node scores.
#pragma once

#include <cstdint>

namespace hedgerow {

// This many numbers past the end of the factors may be overwritten.
inline constexpr int kFactorSlack = 8;

// factors = exp(nodes - max nodes), within 2 ulp, or 0 below exp(-700) and in the padding; maxima:
// (T,) what was subtracted. nodes: (T, K); factors: (T, padded(K))
void fill_node_factors(const double* nodes, int64_t n_rows, int n_labels, double* factors,
                       double* maxima);

}  // namespace hedgerow
