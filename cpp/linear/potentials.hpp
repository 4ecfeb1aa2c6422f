// Linear potentials: a position's scores are the sum of its attributes' weights.
//
// An attribute has a weight for some of the outputs (labels, or label pairs). Weights lie in one
// array, those of attribute a at weight_offsets[a] .. weight_offsets[a + 1], outputs ascending.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"

namespace hedgerow {

// A sparse matrix by rows: positions x attributes, or transposed attributes x positions.
struct SparseMatrix {
  int64_t n_rows;
  int64_t n_columns;
  const int64_t* offsets;  // (n_rows + 1,)
  const int32_t* columns;  // (n entries,)
  const double* values;    // (n entries,) or null: all ones

  double value(int64_t entry) const { return values == nullptr ? 1.0 : values[entry]; }
};

// Which (attribute, output) pairs have a weight.
struct WeightLayout {
  int64_t n_attributes;
  int n_outputs;
  const int64_t* offsets;  // (n_attributes + 1,)
  const int32_t* outputs;  // (n weights,)
};

// scores[t, o] = biases[o] + sum over attributes a of position t of value * weight[a, o].
// positions: rows are positions. biases: (n_outputs,) or null. scores: (N, n_outputs)
void fill_scores(const SparseMatrix& positions, const WeightLayout& layout, const double* weights,
                 const double* biases, double* scores, int n_threads, Stop& stop);

// gradient[a, o] = sum over positions t with attribute a of value * residuals[t, o].
// attributes: rows are attributes. residuals: (N, n_outputs); gradient: (n weights,)
void fill_gradient(const SparseMatrix& attributes, const WeightLayout& layout,
                   const double* residuals, double* gradient, int n_threads, Stop& stop);

// The transpose of a matrix whose columns are all within range; entries of a row stay in order.
struct Transpose {
  std::vector<int64_t> offsets;
  std::vector<int32_t> columns;
  std::vector<double> values;  // empty: all ones
};
Transpose build_transpose(const SparseMatrix& matrix);

// The pairs (attribute, outputs[t]) that occur; an output of -1 marks a position that has none.
struct SeenPairs {
  std::vector<int64_t> offsets;
  std::vector<int32_t> outputs;
};
SeenPairs build_seen_pairs(const SparseMatrix& attributes, const int32_t* outputs, int n_outputs);

}  // namespace hedgerow
