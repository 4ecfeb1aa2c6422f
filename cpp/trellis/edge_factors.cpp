#include "trellis/edge_factors.hpp"

#include <algorithm>
#include <cmath>

namespace hedgerow {
namespace {

// Bytes of the matrices that are kept at most.
constexpr int64_t kKeptBytes = kLowLimits ? 1 << 19 : 1 << 23;

// sums[j, k] = edges[j, k] + arcs[j, k], and the largest and the smallest of them, NaN not counted.
// The padding repeats column 0. edges: (K, K); arcs, sums: (K, stride); n_inner: rows of the edges
// past whose end may be read, see Row
HEDGEROW_INLINE void add_edges(const double* edges, const double* arcs, const Row& row,
                               int64_t n_inner, int stride, double* sums, double& largest,
                               double& smallest) {
  Lanes most = broadcast(-kInfinity), least = broadcast(kInfinity);
  for (int j = 0; j < row.size; ++j, edges += row.size, arcs += stride, sums += stride)
    for (int k = 0; k < row.size; k += kLanes) {
      const Lanes edge =
          k < row.whole ? load(edges + k) : row.load_rest(edges, j < n_inner, edges[0]);
      const Lanes sum = edge + load(arcs + k);
      store(sums + k, sum);
      most = maximum(sum, most);
      least = minimum(sum, least);
    }
  largest = max_lane(most);
  smallest = min_lane(least);
}

// factors = exp(edges + arcs - shift), where shift is 0, or the largest score if that is far from
// 0. False where scores lie too far apart, or are not finite. sums: (K, stride) scratch
HEDGEROW_CLONES
bool fill_edge_factors(const double* edges, const double* arcs, int n_labels, int64_t n_inner,
                       int stride, double* sums, double* factors, double& shift) {
  constexpr double kLargestDepth = 321.0;  // exp(-321) > 2 kSmallest, see ScaledArcs
  constexpr double kModest = 30.0;         // nothing has to be subtracted
  double largest, smallest;
  add_edges(edges, arcs, Row(n_labels), n_inner, stride, sums, largest, smallest);
  const bool modest = std::fabs(largest) <= kModest && smallest >= -kLargestDepth;
  if (!modest && !(largest - smallest <= kLargestDepth)) return false;
  shift = modest ? 0.0 : largest;
  const Lanes by = broadcast(shift);
  Lanes total = broadcast(0.0);
  const int64_t n_numbers = static_cast<int64_t>(n_labels) * stride;
  for (int64_t i = 0; i < n_numbers; i += kLanes) {
    const Lanes factor = exp_moderate(load(sums + i) - by);
    total += factor;
    store(factors + i, factor);
  }
  return sum_lanes(total) < kInfinity;  // and not NaN
}

}  // namespace

EdgeFactors::EdgeFactors(const ChainScores& scores)
    : scores_(scores),
      stride_(padded(scores.n_labels)),
      size_(static_cast<int64_t>(stride_) * stride_) {
  if (!given()) return;
  const int64_t n_labels = scores.n_labels;
  const double largest = *std::max_element(scores.arcs, scores.arcs + n_labels * n_labels);
  if (std::isfinite(largest)) arc_shift_ = largest;
  arcs_.resize(n_labels * stride_);
  sums_.resize(n_labels * stride_);
  for (int64_t i = 0; i < n_labels * stride_; ++i) {
    const int64_t j = i / stride_, k = i % stride_;
    const double arc = scores.arcs[j * n_labels + (k < n_labels ? k : 0)];
    const bool forbidden = arc == -kInfinity;
    arcs_[i] = forbidden ? 0.0 : arc - arc_shift_;
    if (forbidden || k >= n_labels) zeros_.push_back(i);
  }
}

void EdgeFactors::open(int64_t sequence, bool keep) {
  if (!given()) return;
  const int64_t n_kept = kKeptBytes / (size_ * static_cast<int64_t>(sizeof(double)));
  sequence_ = sequence;
  block_ = 0;
  block_size_ =
      keep ? std::clamp<int64_t>(scores_.length(sequence), 1, std::max<int64_t>(n_kept, 1)) : 1;
  // New numbers are 0, and the rows of the padding stay so.
  if (static_cast<int64_t>(shifts_.size()) >= block_size_) return;
  matrices_.resize(block_size_ * size_);
  shifts_.resize(block_size_);
}

bool EdgeFactors::compute(int64_t t) {
  const int64_t n_labels = scores_.n_labels;
  const double* edges = scores_.edges + (scores_.offsets[sequence_] + t) * n_labels * n_labels;
  const int64_t n_rows = (scores_.length(sequence_) - t) * n_labels;
  const int64_t n_inner = n_rows - Row(scores_.n_labels).n_outer_rows();
  double* factors = matrix(t);
  double& shift = shifts_[t - begin(block_)];
  if (!fill_edge_factors(edges, arcs_.data(), scores_.n_labels, n_inner, stride_, sums_.data(),
                         factors, shift))
    return false;
  for (const int64_t i : zeros_) factors[i] = 0;
  shift += arc_shift_;
  return true;
}

bool EdgeFactors::fill(int64_t t) {
  block_ = block_of(t);
  return compute(t);
}

const double* EdgeFactors::at(int64_t t) {
  if (block_of(t) != block_) {
    block_ = block_of(t);
    const int64_t end = std::min(begin(block_ + 1), scores_.length(sequence_));
    for (int64_t u = std::max<int64_t>(begin(block_), 1); u < end; ++u) compute(u);
  }
  return matrix(t);
}

}  // namespace hedgerow
