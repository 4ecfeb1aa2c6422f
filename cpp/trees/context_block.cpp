#include "trees/context_block.hpp"

#include <algorithm>

#include "simd_float.hpp"

namespace hedgerow {
namespace {

// out = weight * in, (n,). Loops here and below have no branch, so that the compiler can work on
// several numbers at a time.
HEDGEROW_CLONES void scale_numbers(const double* in, int64_t n, double weight,
                                   float* HEDGEROW_RESTRICT out) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(weight * in[i]);
}

// out[k, j] = weight * in[j, k], (n, n) both.
HEDGEROW_CLONES void scale_transposed(const double* in, int n, double weight, float* out) {
  const int whole = n / kLanes * kLanes;
  for (int j = 0; j < whole; j += kLanes)
    for (int k = 0; k < whole; k += kLanes) {
      Lanes tile[kLanes];
      for (int i = 0; i < kLanes; ++i) tile[i] = load(in + (j + i) * n + k) * broadcast(weight);
      transpose(tile);
      for (int i = 0; i < kLanes; ++i) store_as_floats(out + (k + i) * n + j, tile[i]);
    }
  for (int j = 0; j < n; ++j)
    for (int k = j < whole ? whole : 0; k < n; ++k)
      out[k * n + j] = static_cast<float>(weight * in[j * n + k]);
}

// The same for some k only.
void scale_columns(const double* in, int n, double weight, std::span<const int32_t> columns,
                   float* out) {
  for (const int32_t k : columns)
    for (int j = 0; j < n; ++j) out[k * n + j] = static_cast<float>(weight * in[j * n + k]);
}

// Clips numbers to between 0 and 1.
HEDGEROW_CLONES void clip_probabilities(int64_t n, float* numbers) {
  for (int64_t i = 0; i < n; ++i) {
    const float p = numbers[i];
    numbers[i] = p < 0.0f ? 0.0f : (p > 1.0f ? 1.0f : p);
  }
}

}  // namespace

ContextBlock::ContextBlock(const Contexts& contexts)
    : contexts_(contexts),
      transposed_(contexts.are_pairs() && contexts.n_outputs() >= kManyLabels),
      size_(transposed_ ? 1 : std::max<int64_t>(1, kNumbers / contexts.n_edges())),
      gradients_(size_ * contexts.n_edges()),
      probabilities_(size_ * contexts.n_edges()) {}

void ContextBlock::scale(const double* in, double weight, std::span<const int32_t> outputs,
                         float* out) const {
  const int n = contexts_.n_outputs();
  if (!transposed_)
    scale_numbers(in, contexts_.n_edges(), weight, out);
  else if (2 * std::ssize(outputs) > n)
    scale_transposed(in, n, weight, out);
  else
    scale_columns(in, n, weight, outputs, out);
}

void ContextBlock::read(const EdgeDerivatives& derivatives, int64_t t, int64_t end,
                        std::span<const int32_t> outputs) {
  const int64_t n_edges = contexts_.n_edges();
  const int n = contexts_.n_outputs();
  const bool shared = derivatives.are_shared();
  begin_ = t;
  end_ = std::min(end, t + size_);
  for (; t < end_; ++t) {
    const int64_t at = (t - begin_) * n_edges;
    if (derivatives.probabilities != nullptr)
      scale(derivatives.probabilities + t * n_edges, 1.0, outputs, probabilities_.data() + at);
    if (shared) continue;
    scale(derivatives.gradients + t * n_edges, derivatives.weight(t), outputs,
          gradients_.data() + at);
    if (derivatives.observed == nullptr || derivatives.observed[t] < 0) continue;
    const int64_t edge = derivatives.observed[t];
    gradients_[at + (transposed_ ? edge % n * n + edge / n : edge)] =
        derivatives.observed_gradient(t, false, contexts_);
  }
  if (derivatives.probabilities != nullptr)
    clip_probabilities((end_ - begin_) * n_edges, probabilities_.data());
}

}  // namespace hedgerow
