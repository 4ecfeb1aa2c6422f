#include "trellis/viterbi.hpp"

#include <algorithm>

#include "simd.hpp"
#include "trellis/score_errors.hpp"

namespace hedgerow {
namespace {

// out[k] = max_j (x[j] + arcs[j, k]) for kVectors vectors of columns.
template <int kVectors>
HEDGEROW_INLINE void maximize_columns(const double* x, const double* arcs, int n_labels, int stride,
                                      double* out) {
  Lanes best[kVectors];
  for (int v = 0; v < kVectors; ++v) best[v] = broadcast(-kInfinity);
  for (int j = 0; j < n_labels; ++j) {
    const Lanes from = broadcast(x[j]);
    const double* row = arcs + static_cast<int64_t>(j) * stride;
    for (int v = 0; v < kVectors; ++v) best[v] = maximum(from + load(row + v * kLanes), best[v]);
  }
  for (int v = 0; v < kVectors; ++v) store(out + v * kLanes, best[v]);
}

// next[k] = max_j (x[j] + arcs[j, k]) + nodes[k] - shift; returns the maximum over k.
HEDGEROW_CLONES
double viterbi_step(const double* x, const double* arcs, const double* nodes, double shift,
                    int n_labels, int stride, double* next) {
  int k = 0;
  for (; k + 4 * kLanes <= stride; k += 4 * kLanes)
    maximize_columns<4>(x, arcs + k, n_labels, stride, next + k);
  switch ((stride - k) / kLanes) {
    case 1: maximize_columns<1>(x, arcs + k, n_labels, stride, next + k); break;
    case 2: maximize_columns<2>(x, arcs + k, n_labels, stride, next + k); break;
    case 3: maximize_columns<3>(x, arcs + k, n_labels, stride, next + k); break;
    default: break;
  }
  double largest = -kInfinity;
  for (k = 0; k < n_labels; ++k) {
    next[k] = next[k] + (nodes[k] - shift);
    largest = max_of(next[k], largest);
  }
  return largest;
}

}  // namespace

ViterbiChain::ViterbiChain(const ChainScores& scores, Stop& stop)
    : scores_(scores), stop_(stop), rows_(static_cast<size_t>(scores_.stride()) * 2, -kInfinity) {}

// best_t[k] = nodes[t, k] + max_j (best_{t-1}[j] + arcs[j, k]), less the maximum of the row before,
// so that long sequences lose no digits. Going back, labels[t] is the j that gave the maximum.
void ViterbiChain::decode(int64_t sequence, int32_t* labels) {
  const int n_labels = scores_.n_labels(), stride = scores_.stride();
  const int64_t begin = scores_.begin(sequence), length = scores_.length(sequence);
  scores_.check(sequence, stop_);
  if (static_cast<int64_t>(best_.size()) < length * n_labels) best_.resize(length * n_labels);
  double* row = rows_.data();
  double* next = row + stride;
  double largest = 0.0;
  for (int64_t t = 0; t < length; ++t) {
    if (t % kCheckEvery == 0) stop_.check();
    const double* nodes = scores_.nodes_at(begin + t);
    if (t == 0) {
      std::copy(nodes, nodes + n_labels, next);
      largest = *std::max_element(nodes, nodes + n_labels);
    } else {
      largest =
          viterbi_step(row, scores_.arcs_at(begin + t), nodes, largest, n_labels, stride, next);
    }
    if (largest == -kInfinity) throw_no_path(t, sequence);
    std::swap(row, next);
    std::copy(row, row + n_labels, best_.begin() + t * n_labels);
  }
  for (int64_t t = length - 1; t >= 0; --t) {
    if (t % kCheckEvery == 0) stop_.check();
    const double* best = best_.data() + t * n_labels;
    int32_t chosen = 0;
    if (t == length - 1) {
      chosen = static_cast<int32_t>(std::max_element(best, best + n_labels) - best);
    } else {
      double highest = -kInfinity;
      for (int32_t j = 0; j < n_labels; ++j) {
        const double score = best[j] + scores_.arc_at(begin + t + 1, j, labels[t + 1]);
        if (score > highest) highest = score, chosen = j;
      }
    }
    labels[t] = chosen;
  }
}

}  // namespace hedgerow
