#include "trellis/edge_pairs.hpp"

#include <algorithm>

#include "simd.hpp"

namespace hedgerow {

void PairsByLabel::write(int64_t position, const double* pairs, int64_t n_labels) const {
  for (int64_t k = 0; k < n_labels; ++k) {
    float* out = at(position, k, n_labels);
    for (int64_t j = 0; j < n_labels; ++j)
      out[j] = static_cast<float>(min_of(pairs[j * n_labels + k], 1.0));
    out[n_labels] = 0.0f;
  }
  observed[position] = pairs[int64_t{labels[position - 1]} * n_labels + labels[position]];
}

void PairsByLabel::write_first(int64_t position, const double* marginals, int64_t n_labels) const {
  for (int64_t k = 0; k < n_labels; ++k) {
    float* out = at(position, k, n_labels);
    std::fill_n(out, n_labels, 0.0f);
    out[n_labels] = static_cast<float>(min_of(marginals[k], 1.0));
  }
}

void WaitingPairs::add(const double* before, const double* arcs, const double* after, double gamma,
                       int64_t label_before, int64_t label, const double* marginals) {
  double* rows = rows_.data() + int64_t{2} * n_ * stride_;
  std::copy_n(before, stride_, rows);
  std::copy_n(after, stride_, rows + stride_);
  Position& position = positions_[n_++];
  position = {arcs, gamma, -1, 0.0};
  if (label_before < 0 || label < 0) return;
  position.likely = label_before * stride_ + label;
  const double* row = arcs + label_before * stride_;
  for (int j = 0; j < n_labels_; ++j) position.others += j == label_before ? 0.0 : marginals[j];
  double same_before = 0.0;
  for (int k = 0; k < n_labels_; ++k) same_before += k == label ? 0.0 : row[k] * after[k];
  position.others += before[label_before] * same_before;
}

double WaitingPairs::curvature_of(int64_t pair) const {
  double sum = 0.0;
  for (int w = 0; w < n_; ++w) {
    const double p = prob(w, pair), others = positions_[w].others;
    sum += positions_[w].gamma * p * (pair == positions_[w].likely ? others : max_of(1.0 - p, 0.0));
  }
  return sum;
}

// Tiles of four labels before and four labels, whose sums stay in registers.
template <bool kCurvature>
HEDGEROW_INLINE void WaitingPairs::add_tiles(const PairTables& out) const {
  constexpr int kSize = kLanes;
  const PairTables tables = out;
  const int64_t n_labels = n_labels_, stride = stride_;
  const Lanes zero = broadcast(0.0), one = broadcast(1.0);
  for (int64_t j = 0; j < n_labels; j += kSize)
    for (int64_t k = 0; k < stride; k += kLanes) {
      Lanes sums[kSize] = {zero, zero, zero, zero}, curvature[kSize] = {zero, zero, zero, zero};
      for (int w = 0; w < n_; ++w) {
        const Position& position = positions_[w];
        const double* arcs = position.arcs + j * stride + k;
        const double* befores = before(w) + j;
        const Lanes afters = load(after(w) + k), gamma = broadcast(position.gamma);
        for (int i = 0; i < kSize; ++i) {
          const Lanes probs = broadcast(befores[i]) * load(arcs + i * stride) * afters;
          sums[i] += probs;
          if constexpr (kCurvature) curvature[i] += gamma * (probs * maximum(one - probs, zero));
        }
      }
      const int64_t place = j * stride + k;
      for (int i = 0; tables.sums != nullptr && i < kSize; ++i) {
        double* to = tables.sums + place + i * stride;
        store(to, load(to) + tables.sum_grid.round(broadcast(tables.weight) * sums[i]));
      }
      for (int i = 0; kCurvature && i < kSize; ++i) {
        double* to = tables.curvature + place + i * stride;
        store(to, load(to) + tables.curvature_grid.round(curvature[i]));
      }
    }
}

HEDGEROW_CLONES void WaitingPairs::add_all(const PairTables& out) const {
  if (out.curvature != nullptr)
    add_tiles<true>(out);
  else
    add_tiles<false>(out);
}

void WaitingPairs::flush(const PairTables& out) {
  // Entries of the table for which add_all would lose digits.
  double likely[kMost];
  for (int w = 0; w < n_ && out.curvature != nullptr; ++w) {
    const int64_t pair = positions_[w].likely;
    if (pair >= 0) likely[w] = out.curvature[pair] + out.curvature_grid.round(curvature_of(pair));
  }
  add_all(out);
  for (int w = 0; w < n_ && out.curvature != nullptr; ++w)
    if (positions_[w].likely >= 0) out.curvature[positions_[w].likely] = likely[w];
  n_ = 0;
}

}  // namespace hedgerow
