#include "trellis/edge_factors.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "simd_exp.hpp"

namespace hedgerow {
namespace {

// Maximum number of bytes of the matrices that are kept.
constexpr int64_t kKeptBytes = kLowLimits ? 1 << 19 : 1 << 23;

// The largest and the smallest number whose exponential was taken, ignoring NaN, and the sum of the
// exponentials.
struct ArcExtent {
  double largest, smallest, total;
};

// factors = exp(edges + arcs - shift), (n,) each. Numbers after the edges are prefetched, since
// they are needed next.
template <class Vector, class Number>
HEDGEROW_INLINE void exponentiate_arcs(const Number* edges, const double* arcs, int64_t n,
                                       double shift, double* factors, ArcExtent& extent) {
  constexpr int kSize = sizeof(Vector) / sizeof(double);
  Vector most = broadcast_to<Vector>(-kInfinity), least = broadcast_to<Vector>(kInfinity);
  Vector total = broadcast_to<Vector>(0.0);
  const Vector by = broadcast_to<Vector>(shift);
  const auto take = [&](const auto* edge, const double* arc, double* out) {
    const Vector score = load_as<Vector>(edge) + load_as<Vector>(arc);
    most = maximum(score, most);
    least = minimum(score, least);
    const Vector factor = exp_moderate(score - by);
    total += factor;
    store_all(out, factor);
  };
  int64_t i = 0;
  for (; i + kSize <= n; i += kSize) {
    HEDGEROW_PREFETCH(edges + n + i);
    take(edges + i, arcs + i, factors + i);
  }
  if (i < n) {
    double rest[3][kSize];
    for (int64_t c = 0; c < kSize; ++c) {
      rest[0][c] = edges[std::min(i + c, n - 1)];
      rest[1][c] = arcs[std::min(i + c, n - 1)];
    }
    take(rest[0], rest[1], rest[2]);
    std::copy_n(rest[2], n - i, factors + i);
  }
  double lanes[3][kSize];
  store_all(lanes[0], most);
  store_all(lanes[1], least);
  store_all(lanes[2], total);
  extent = {*std::max_element(lanes[0], lanes[1]), *std::min_element(lanes[1], lanes[2]),
            std::accumulate(lanes[2], lanes[2] + kSize, 0.0)};
}

// The same for all arcs of a position, where shift is 0, or the largest score if that is far from
// 0. False if scores are too far apart, or not finite.
template <class Number>
bool fill_arc_factors(const Number* edges, const double* arcs, int64_t n, double* factors,
                      double& shift) {
  constexpr double kLargestDepth = 321.0;  // exp(-321) > 2 kSmallest, see ScaledArcs
  constexpr double kModest = 30.0;         // up to this, nothing has to be subtracted
  static const auto kernel =
      eight_wide_clone<exponentiate_arcs<EightLanes, Number>, exponentiate_arcs<Lanes, Number>>();
  ArcExtent extent;
  shift = 0.0;
  kernel(edges, arcs, n, shift, factors, extent);
  const double largest = extent.largest, smallest = extent.smallest;
  if (!(std::fabs(largest) <= kModest && smallest >= -kLargestDepth)) {
    if (!(largest - smallest <= kLargestDepth)) return false;
    shift = largest;
    kernel(edges, arcs, n, shift, factors, extent);
  }
  return extent.total < kInfinity;  // and not NaN
}

// Copies contiguous rows to padded ones. Enough numbers must follow the last row for whole lanes to
// be read.
HEDGEROW_CLONES void pad_rows(const double* rows, int n_rows, int stride, double* out) {
  const Row row(n_rows);
  for (int j = 0; j < n_rows; ++j, rows += n_rows, out += stride)
    row.copy_to_padded(rows, true, out);
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
  arcs_.assign(scores.arcs, scores.arcs + n_labels * n_labels);
  if (n_labels < stride_) unpadded_.resize(n_labels * n_labels + kLanes);
  for (int64_t i = 0; i < n_labels * n_labels; ++i) {
    const bool forbidden = arcs_[i] == -kInfinity;
    arcs_[i] = forbidden ? 0.0 : arcs_[i] - arc_shift_;
    if (forbidden) zeros_.push_back(i / n_labels * stride_ + i % n_labels);
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
  const int n_labels = scores_.n_labels;
  const int64_t n_arcs = int64_t{n_labels} * n_labels;
  const int64_t at = (scores_.offsets[sequence_] + t) * n_arcs;
  double* factors = matrix(t);
  double* numbers = unpadded_.empty() ? factors : unpadded_.data();
  double& shift = shifts_[t - begin(block_)];
  const double* arcs = arcs_.data();
  if (!(scores_.edges != nullptr
            ? fill_arc_factors(scores_.edges + at, arcs, n_arcs, numbers, shift)
            : fill_arc_factors(scores_.single_edges + at, arcs, n_arcs, numbers, shift)))
    return false;
  if (!unpadded_.empty()) pad_rows(numbers, n_labels, stride_, factors);
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
