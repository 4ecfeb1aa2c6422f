#include "linear/scorer.hpp"

#include <algorithm>

#include "linear/rows.hpp"
#include "simd.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kTaskPositions = 512;

}  // namespace

Scorer::Scorer(const WeightLayout& layout, const double* weights, const double* biases)
    : layout_(layout),
      weights_(weights),
      stride_(padded(layout.n_outputs)),
      biases_(stride_, 0.0),
      wide_row_(layout.n_attributes, -1) {
  if (biases != nullptr) std::copy(biases, biases + layout.n_outputs, biases_.begin());
  int32_t n_wide = 0;
  for (int64_t a = 0; a < layout.n_attributes; ++a)
    if (layout.is_wide(a)) wide_row_[a] = n_wide++;
  wide_.resize(static_cast<size_t>(n_wide) * stride_);
  for (int64_t a = 0; a < layout.n_attributes; ++a) {
    if (wide_row_[a] < 0) continue;
    double* row = wide_.data() + static_cast<int64_t>(wide_row_[a]) * stride_;
    for (int64_t w = layout.offsets[a]; w < layout.offsets[a + 1]; ++w)
      row[layout.outputs[w]] = weights[w];
  }
}

HEDGEROW_CLONES
void Scorer::add_rows(const AttributeRows& rows, int64_t first, int64_t end, double* sums,
                      double* scores) const {
  const int n_outputs = layout_.n_outputs;
  const Row row(n_outputs);
  for (int64_t t = first; t < end; ++t) {
    std::copy(biases_.begin(), biases_.end(), sums);
    for (int k = 0; k < n_outputs; ++k) sums[k] += scores[t * n_outputs + k];
    for (int64_t e = rows.offsets[t]; e < rows.offsets[t + 1]; ++e) {
      const int64_t attribute = rows.attributes[e];
      const int64_t wide = wide_row_[attribute];
      const double value = rows.value(e);
      if (wide >= 0) {
        add_row(value, wide_.data() + wide * stride_, stride_, sums);
      } else {
        for (int64_t w = layout_.offsets[attribute]; w < layout_.offsets[attribute + 1]; ++w)
          sums[layout_.outputs[w]] += value * weights_[w];
      }
    }
    row.copy_from_padded(sums, false, scores + t * n_outputs);
  }
}

void Scorer::add_scores(const AttributeRows& rows, double* scores, int n_threads,
                        Stop& stop) const {
  parallel_for_pieces(rows.n_positions, kTaskPositions, n_threads, stop,
                      [&](int64_t first, int64_t end) {
                        std::vector<double> sums(stride_);
                        add_rows(rows, first, end, sums.data(), scores);
                      });
}

}  // namespace hedgerow
