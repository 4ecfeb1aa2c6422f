// Posteriors of label patterns: sums over the arcs that end in each of them.
//
// They are written position by position, so that no table of all arcs at all positions is needed,
// which may be far larger.
#pragma once

#include <cstdint>
#include <numeric>

namespace hedgerow {

struct PatternMarginals {
  int64_t n_patterns;
  const int64_t* offsets;  // (P+1,) where the arcs of each pattern begin and end
  const int32_t* arcs;     // (M,) of an automaton, or label pairs j * K + k
  double* marginals;       // (N, P) probability that each pattern ends at each position

  // Fills marginals at a position. probs: (A,) or (K, K) probabilities of all arcs there
  void write(int64_t position, const double* probs) const {
    double* row = marginals + position * n_patterns;
    for (int64_t p = 0; p < n_patterns; ++p)
      row[p] = std::accumulate(arcs + offsets[p], arcs + offsets[p + 1], 0.0,
                               [&](double sum, int32_t arc) { return sum + probs[arc]; });
  }
};

}  // namespace hedgerow
