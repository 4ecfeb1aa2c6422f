#include "linear/potentials.hpp"

#include <algorithm>

#include "simd.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kBlockPositions = 512;
constexpr int64_t kBlockEntries = 1 << 14;

// sums[0 .. n) += factor * row[0 .. n)
HEDGEROW_INLINE void add_row(double factor, const double* row, int n, double* sums) {
  const Lanes factors = broadcast(factor);
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) store(sums + i, load(sums + i) + factors * load(row + i));
  for (; i < n; ++i) sums[i] += factor * row[i];
}

HEDGEROW_CLONES
void fill_scores_block(const SparseMatrix& positions, const WeightLayout& layout,
                       const double* weights, const double* biases, int64_t first, int64_t end,
                       double* scores) {
  const int n_outputs = layout.n_outputs;
  for (int64_t t = first; t < end; ++t) {
    double* row = scores + t * n_outputs;
    if (biases != nullptr) {
      std::copy(biases, biases + n_outputs, row);
    } else {
      std::fill(row, row + n_outputs, 0.0);
    }
    for (int64_t e = positions.offsets[t]; e < positions.offsets[t + 1]; ++e) {
      const int64_t attribute = positions.columns[e];
      const int64_t begin = layout.offsets[attribute], stop = layout.offsets[attribute + 1];
      const double value = positions.value(e);
      if (stop - begin == n_outputs) {
        add_row(value, weights + begin, n_outputs, row);
      } else {
        for (int64_t w = begin; w < stop; ++w) row[layout.outputs[w]] += value * weights[w];
      }
    }
  }
}

// Few outputs are picked one by one; many are summed as whole rows and picked at the end.
HEDGEROW_CLONES
void fill_gradient_block(const SparseMatrix& attributes, const WeightLayout& layout,
                         const double* residuals, int64_t first, int64_t end, double* sums,
                         double* gradient) {
  const int64_t n_outputs = layout.n_outputs;
  for (int64_t a = first; a < end; ++a) {
    const int64_t w_begin = layout.offsets[a], n_weights = layout.offsets[a + 1] - w_begin;
    const int64_t e_begin = attributes.offsets[a], e_end = attributes.offsets[a + 1];
    const int32_t* outputs = layout.outputs + w_begin;
    double* out = gradient + w_begin;
    if (n_weights * 4 <= n_outputs) {
      std::fill(out, out + n_weights, 0.0);
      for (int64_t e = e_begin; e < e_end; ++e) {
        const double* row = residuals + attributes.columns[e] * n_outputs;
        const double value = attributes.value(e);
        for (int64_t w = 0; w < n_weights; ++w) out[w] += value * row[outputs[w]];
      }
    } else {
      std::fill(sums, sums + n_outputs, 0.0);
      for (int64_t e = e_begin; e < e_end; ++e)
        add_row(attributes.value(e), residuals + attributes.columns[e] * n_outputs,
                static_cast<int>(n_outputs), sums);
      for (int64_t w = 0; w < n_weights; ++w) out[w] = sums[outputs[w]];
    }
  }
}

}  // namespace

void fill_scores(const SparseMatrix& positions, const WeightLayout& layout, const double* weights,
                 const double* biases, double* scores, int n_threads, Stop& stop) {
  const int64_t n_blocks = (positions.n_rows + kBlockPositions - 1) / kBlockPositions;
  parallel_for(n_blocks, n_threads, stop, [&](int64_t block) {
    stop.check();
    const int64_t first = block * kBlockPositions;
    const int64_t end = std::min(first + kBlockPositions, positions.n_rows);
    fill_scores_block(positions, layout, weights, biases, first, end, scores);
  });
}

void fill_gradient(const SparseMatrix& attributes, const WeightLayout& layout,
                   const double* residuals, double* gradient, int n_threads, Stop& stop) {
  // Blocks of attributes with about as many entries each.
  std::vector<int64_t> bounds{0};
  for (int64_t a = 0; a < attributes.n_rows; ++a)
    if (a + 1 == attributes.n_rows ||
        attributes.offsets[a + 1] - attributes.offsets[bounds.back()] >= kBlockEntries)
      bounds.push_back(a + 1);
  parallel_for(static_cast<int64_t>(bounds.size()) - 1, n_threads, stop, [&](int64_t block) {
    stop.check();
    std::vector<double> sums(layout.n_outputs);
    fill_gradient_block(attributes, layout, residuals, bounds[block], bounds[block + 1],
                        sums.data(), gradient);
  });
}

Transpose build_transpose(const SparseMatrix& matrix) {
  const int64_t n_entries = matrix.offsets[matrix.n_rows];
  Transpose out;
  out.offsets.assign(matrix.n_columns + 1, 0);
  for (int64_t e = 0; e < n_entries; ++e) ++out.offsets[matrix.columns[e] + 1];
  for (int64_t c = 0; c < matrix.n_columns; ++c) out.offsets[c + 1] += out.offsets[c];
  out.columns.resize(n_entries);
  if (matrix.values != nullptr) out.values.resize(n_entries);
  std::vector<int64_t> next(out.offsets.begin(), out.offsets.end() - 1);
  for (int64_t r = 0; r < matrix.n_rows; ++r)
    for (int64_t e = matrix.offsets[r]; e < matrix.offsets[r + 1]; ++e) {
      const int64_t to = next[matrix.columns[e]]++;
      out.columns[to] = static_cast<int32_t>(r);
      if (matrix.values != nullptr) out.values[to] = matrix.values[e];
    }
  return out;
}

SeenPairs build_seen_pairs(const SparseMatrix& attributes, const int32_t* outputs, int n_outputs) {
  SeenPairs out;
  out.offsets.reserve(attributes.n_rows + 1);
  out.offsets.push_back(0);
  std::vector<int64_t> seen_by(n_outputs, -1);  // the last attribute that had this output
  for (int64_t a = 0; a < attributes.n_rows; ++a) {
    const size_t begin = out.outputs.size();
    for (int64_t e = attributes.offsets[a]; e < attributes.offsets[a + 1]; ++e) {
      const int32_t output = outputs[attributes.columns[e]];
      if (output < 0 || seen_by[output] == a) continue;
      seen_by[output] = a;
      out.outputs.push_back(output);
    }
    std::sort(out.outputs.begin() + begin, out.outputs.end());
    out.offsets.push_back(static_cast<int64_t>(out.outputs.size()));
  }
  return out;
}

}  // namespace hedgerow
