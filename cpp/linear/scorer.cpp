#include "linear/scorer.hpp"

#include <algorithm>

#include "linear/rows.hpp"
#include "simd.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kTaskPositions = 512;
// How many entries ahead attributes, and weights, are prefetched.
constexpr int64_t kAttributesAhead = 32;
constexpr int64_t kScorerWeightsAhead = 16;

}  // namespace

Scorer::Scorer(const WeightLayout& layout, const double* weights, const double* biases)
    : layout_(layout),
      weights_(weights),
      stride_(padded(layout.n_outputs)),
      biases_(stride_, 0.0),
      found_(layout.n_attributes) {
  if (biases != nullptr) std::copy(biases, biases + layout.n_outputs, biases_.begin());
  // Weights of all outputs are used in place, unless they are the last; those of many outputs are
  // copied to a dense row.
  const int64_t n_weights = layout.offsets[layout.n_attributes];
  const auto is_row = [&](int64_t a) {
    return layout.is_full(a) && layout.offsets[a] + stride_ <= n_weights;
  };
  size_t n_wide = 0;
  for (int64_t a = 0; a < layout.n_attributes; ++a) n_wide += layout.is_wide(a) && !is_row(a);
  wide_.resize(n_wide * stride_);
  double* row = wide_.data();
  for (int64_t a = 0; a < layout.n_attributes; ++a) {
    const double* own = weights + layout.offsets[a];
    if (is_row(a)) {
      found_[a] = {own, kRow};
    } else if (layout.is_wide(a)) {
      for (int64_t w = 0; w < layout.n_weights(a); ++w)
        row[layout.is_full(a) ? w : layout.outputs[layout.offsets[a] + w]] = own[w];
      found_[a] = {row, kRow};
      row += stride_;
    } else {
      found_[a] = {own, static_cast<int32_t>(layout.n_weights(a))};
    }
  }
}

HEDGEROW_CLONES
void Scorer::add_rows(const AttributeRows& rows, int64_t first, int64_t end, double* sums,
                      double* scores) const {
  const int n_outputs = layout_.n_outputs;
  const Row row(n_outputs);
  const int32_t* attributes = rows.attributes;
  const int64_t last = rows.offsets[end] - 1;
  for (int64_t t = first; t < end; ++t) {
    std::copy(biases_.begin(), biases_.end(), sums);
    for (int k = 0; k < n_outputs; ++k) sums[k] += scores[t * n_outputs + k];
    for (int64_t e = rows.offsets[t]; e < rows.offsets[t + 1]; ++e) {
      HEDGEROW_PREFETCH(&found_[attributes[std::min(e + kAttributesAhead, last)]]);
      const Found& soon = found_[attributes[std::min(e + kScorerWeightsAhead, last)]];
      prefetch_row(soon.weights, soon.n_weights == kRow ? stride_ : 1);
      const auto [weights, n_weights] = found_[attributes[e]];
      const double value = rows.value(e);
      if (n_weights == kRow) {
        add_row(value, weights, stride_, sums);
      } else {
        const int32_t* outputs = layout_.outputs + (weights - weights_);
        for (int32_t w = 0; w < n_weights; ++w) sums[outputs[w]] += value * weights[w];
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
