#include "trellis/lane_edges.hpp"

#include <algorithm>

#include "trellis/lane_loops.hpp"

namespace hedgerow {
namespace {

// In scaled space, scores may be less than the largest one of a position by at most this, see
// ScaledArcs: exp(-321) > 2 kSmallest.
constexpr double kDeepestEdge = 321.0;

// edges = exp(arcs + edges - maximum), which is 0 only where an arc is -inf; returns the maximum.
// fits: not positive where scores are too far apart, or not finite
template <int kLabels>
HEDGEROW_INLINE Lanes exponentiate_edges(Packed* edges, const double* arcs, Lanes& fits) {
  constexpr int kPairs = kLabels * kLabels;
  const Lanes zero = broadcast(0.0);
  Lanes largest = broadcast(-kInfinity), least = zero, bad = zero;
  for (int i = 0; i < kPairs; ++i) {
    const Lanes edge = edges[i], score = broadcast(arcs[i]) + edge;
    edges[i] = score;
    largest = maximum(score, largest);
  }
  for (int i = 0; i < kPairs; ++i) {
    const Lanes score = edges[i], depth = score - largest;
    bad += one_if_bad(depth);
    least = minimum(replace_minus_infinity(depth, zero), least);
    edges[i] = exp_nonpositive(raise_finite(depth, kLeastNode));
  }
  fits = if_positive(bad, zero, least + broadcast(kDeepestEdge));
  return largest;
}

// A row of a position's matrix of arcs, or with kTransposed a column.
template <int kLabels, bool kTransposed>
HEDGEROW_INLINE Lanes arc_at(const Packed* matrix, int row, int column) {
  return kTransposed ? matrix[column * kLabels + row] : matrix[row * kLabels + column];
}

// out[k] = sum_j x[j] matrix[j, k], or with kTransposed out[j] = sum_k matrix[j, k] x[k].
template <int kLabels, bool kTransposed>
HEDGEROW_INLINE void multiply_edges(const Lanes* x, const Packed* matrix, Lanes* out) {
  for (int k = 0; k < kLabels; ++k) {
    out[k] = x[0] * arc_at<kLabels, kTransposed>(matrix, 0, k);
    for (int j = 1; j < kLabels; ++j) out[k] += x[j] * arc_at<kLabels, kTransposed>(matrix, j, k);
  }
}

// A mixing rate 1 - sum_j min_k P(j | k), where P(j | k) = x[j] matrix[j, k] / sums[k] is the
// probability of the previous label; with kTransposed that of the next one, x[j] matrix[k, j] /
// sums[k]. Where k is impossible, because its factor or sum is 0, 1 / sum is infinite, and neither
// infinity nor infinity * 0 = NaN is ever the minimum.
template <int kLabels, bool kTransposed>
HEDGEROW_INLINE Lanes edge_rate(const Lanes* x, const Packed* matrix, const Packed* factors,
                                const Lanes* sums) {
  const Lanes zero = broadcast(0.0), one = broadcast(1.0), infinity = broadcast(kInfinity);
  Lanes per_sum[kLabels], overlap = zero;
  for (int k = 0; k < kLabels; ++k) per_sum[k] = if_positive(factors[k], one / sums[k], infinity);
  for (int j = 0; j < kLabels; ++j) {
    Lanes least = infinity;
    for (int k = 0; k < kLabels; ++k)
      least = minimum(arc_at<kLabels, kTransposed>(matrix, j, k) * per_sum[k], least);
    overlap += if_positive(x[j], least * x[j], zero);
  }
  return minimum(maximum(one - overlap, zero), one);
}

// As in lane_chain.cpp, which has the recurrence; and the messages of Eq. 17,
//   beta_{t-1->t} = alpha_{t,t-1} (1 + beta_{t-2->t-1}).
template <int kLabels>
HEDGEROW_INLINE void forward_edges(LaneEdgeScratch& scratch, Stop& stop) {
  const Lanes zero = broadcast(0.0), one = broadcast(1.0);
  Packed* alphas = scratch.alphas.empty() ? nullptr : scratch.alphas.data();
  Lanes alpha[kLabels], reached[kLabels];
  for (int k = 0; k < kLabels; ++k) alpha[k] = zero, reached[k] = one;
  Lanes left = scratch.lengths, smallest = one, exponents = zero, sum = one, last_sum = one;
  Lanes message = zero;
  LaneSums shifts;
  for (int64_t t = 0; t < scratch.longest; ++t) {
    if (t % kCheckEvery == 0) stop.check();
    Packed* factors = scratch.factors.data() + t * kLabels;
    shifts.add(exponentiate<kLabels>(factors));
    if (t > 0) {
      Packed* matrix = scratch.edges.data() + t * kLabels * kLabels;
      Lanes fits;
      const Lanes shift = exponentiate_edges<kLabels>(matrix, scratch.arcs, fits);
      shifts.add(if_positive(left, shift, zero));
      smallest = minimum(if_positive(left, if_positive(fits, one, zero), one), smallest);
      multiply_edges<kLabels, false>(alpha, matrix, reached);
      if (scratch.need_mixing)
        message = edge_rate<kLabels, false>(alpha, matrix, factors, reached) * (one + message);
    }
    if (scratch.need_mixing) scratch.node_gammas[t] = message;
    exponents += if_positive(left, exponent_of(sum), zero);
    const Lanes least = arrive<kLabels>(reached, factors, inverse_power(sum), alpha);
    sum = total<kLabels>(alpha);
    smallest = minimum(if_positive(left, minimum(sum, least), one), smallest);
    last_sum = if_positive(left, sum, last_sum);
    for (int k = 0; alphas != nullptr && k < kLabels; ++k) alphas[t * kLabels + k] = alpha[k];
    left = left - one;
  }
  scratch.smallest = smallest;
  scratch.shifts = shifts;
  scratch.exponents = exponents;
  scratch.last_sum = last_sum;
}

// matrix = P, where P[j, k] = before[j] matrix[j, k] after[k], and sums += P, curvature += gamma P
// (1 - P). In the latter, 1 - P is computed as the sum of all other pairs, without a difference
// that loses digits.
template <int kLabels>
HEDGEROW_INLINE void add_edge_pairs(const Lanes* before, const Lanes* after, Lanes gamma,
                                    LaneEdgeScratch& scratch, Packed* matrix) {
  constexpr int kPairs = kLabels * kLabels;
  for (int i = 0; i < kPairs; ++i) {
    const Lanes factor = matrix[i];
    matrix[i] = before[i / kLabels] * factor * after[i % kLabels];
  }
  for (int i = 0; scratch.need_sums && i < kPairs; ++i) scratch.pairs[i] += matrix[i];
  if (!scratch.need_mixing) return;
  Lanes from[kPairs + 1];  // sum of the pairs from i on
  from[kPairs] = broadcast(0.0);
  for (int i = kPairs - 1; i >= 0; --i) {
    const Lanes prob = matrix[i];
    from[i] = prob + from[i + 1];
  }
  Lanes up_to = broadcast(0.0);
  for (int i = 0; i < kPairs; ++i) {
    const Lanes prob = matrix[i];
    scratch.curvature[i] += gamma * prob * (up_to + from[i + 1]);
    up_to += prob;
  }
}

// As in lane_chain.cpp; and with the messages of forward_edges() and
//   beta_{t+1->t} = alpha_{t,t+1} (1 + beta_{t+2->t+1})
// the gammas of Theorems 4.1 and 4.2, see mixing_bounds.hpp.
template <int kLabels>
HEDGEROW_INLINE void backward_edges(LaneEdgeScratch& scratch, Stop& stop) {
  constexpr int kPairs = kLabels * kLabels;
  const Lanes zero = broadcast(0.0), one = broadcast(1.0), two = broadcast(2.0);
  const Lanes lengths = scratch.lengths, most = two * (lengths - one);
  Lanes alpha[kLabels], beta[kLabels], after[kLabels];  // alpha_t, beta_t, v_{t+1}
  for (int k = 0; k < kLabels; ++k) beta[k] = one, after[k] = zero;
  for (int i = 0; i < kPairs; ++i) scratch.pairs[i] = scratch.curvature[i] = zero;
  Lanes smallest = scratch.smallest, from_next = zero;
  for (int64_t t = scratch.longest - 1; t >= 0; --t) {
    if (t % kCheckEvery == 0) stop.check();
    const Packed* factors = scratch.factors.data() + t * kLabels;
    Packed* alphas = scratch.alphas.data() + t * kLabels;
    Packed* matrix = scratch.edges.data() + t * kPairs;  // of the arcs into t
    // Positive where the sequence of the lane continues after t.
    const Lanes follows = lengths - broadcast(static_cast<double>(t + 1));
    Lanes product[kLabels];
    for (int k = 0; k < kLabels; ++k) {
      beta[k] = if_positive(follows, beta[k], one);
      alpha[k] = alphas[k];
      product[k] = alpha[k] * beta[k];
    }
    const Lanes norm = total<kLabels>(product), per_norm = one / norm;
    for (int k = 0; k < kLabels; ++k) {
      alphas[k] = product[k] / norm;  // exactly 1 where no other label is possible
      product[k] = if_positive(follows, alpha[k] * per_norm, zero);
    }
    Lanes from_previous = zero;
    if (scratch.need_mixing) from_previous = scratch.node_gammas[t];
    if (t + 1 < scratch.longest) {
      Lanes gamma = zero, rate = zero;
      if (scratch.need_mixing) {
        gamma = two * (broadcast(3.0) + (from_previous + from_next));
        gamma = if_positive(follows, minimum(gamma, most), zero);
        scratch.edge_gammas[t + 1] = gamma;
        rate = edge_rate<kLabels, true>(after, matrix + kPairs, factors, beta);
      }
      add_edge_pairs<kLabels>(product, after, gamma, scratch, matrix + kPairs);
      from_next = if_positive(follows, rate * (one + from_next), zero);
    }
    if (scratch.need_mixing) scratch.node_gammas[t] = two * (one + (from_previous + from_next));
    if (t == 0) break;

    for (int k = 0; k < kLabels; ++k) {
      const Lanes factor = factors[k];
      product[k] = factor * beta[k];
    }
    const Lanes scale = inverse_power(total<kLabels>(product));
    for (int k = 0; k < kLabels; ++k) after[k] = product[k] * scale;
    multiply_edges<kLabels, true>(after, matrix, beta);
    if (!scratch.holes) continue;
    Lanes least = one;
    for (int k = 0; k < kLabels; ++k) {
      least = minimum(if_positive(alpha[k], if_positive(product[k], after[k], one), one), least);
      least = minimum(if_positive(beta[k], beta[k], one), least);
    }
    smallest = minimum(if_positive(follows + one, least, one), smallest);
  }
  scratch.smallest = smallest;
}

// The kernels for one number of labels.
struct EdgeKernels {
  void (*forward)(LaneEdgeScratch&, Stop&);
  void (*backward)(LaneEdgeScratch&, Stop&);
};
const EdgeKernels& edge_kernels(int n_labels) {
  return kernels_for(n_labels, [](auto n) {
    return EdgeKernels{wide_clone<forward_edges<n()>>(), wide_clone<backward_edges<n()>>()};
  });
}

}  // namespace

LaneEdges::LaneEdges(const ChainScores& scores, const ScaledArcs& arcs, const ChainPosteriors& out)
    : LaneDriver(scores, out, scratch_) {
  scratch_.arcs = scores.arcs;
  scratch_.holes = arcs.holes;
  scratch_.need_sums = out.pair_sums != nullptr;
  scratch_.need_mixing = out.mixing != nullptr;
}

void LaneEdges::load() {
  const int64_t size = group_.longest * n_pairs();
  ensure_size(scratch_.edges, size);
  rows_to_lanes(lane_rows(group_, 0, scores_.edges, n_pairs()), scratch_.edges.data(), size);
  if (out_.mixing)
    for (auto* gammas : {&scratch_.node_gammas, &scratch_.edge_gammas})
      ensure_size(*gammas, group_.longest);
}

void LaneEdges::forward(Stop& stop) { edge_kernels(scores_.n_labels).forward(scratch_, stop); }

void LaneEdges::backward(Stop& stop) {
  edge_kernels(scores_.n_labels).backward(scratch_, stop);
  if (pair_rows_.wanted()) write_pairs();
  if (out_.mixing) write_gammas();
}

void LaneEdges::write_pairs() {
  const int64_t n_pairs = this->n_pairs();
  if (group_.longest > 0) std::fill_n(scratch_.edges.begin(), n_pairs, broadcast(0.0));
  if (out_.pairs) lanes_to_rows(scratch_.edges.data(), lane_rows(group_, 0, out_.pairs, n_pairs));
  if (!out_.patterns && !out_.by_label) return;
  for (int l = 0; l < group_.n_strands; ++l) {
    pair_rows_.open(group_.begins[l]);
    if (group_.lengths[l] > 0) pair_rows_.close_first();
    for (int64_t t = 1; t < group_.lengths[l]; ++t) {
      for (int64_t i = 0; i < n_pairs; ++i)
        pair_rows_.row(t)[i] = scratch_.edges[t * n_pairs + i].values[l];
      pair_rows_.close(t);
    }
  }
}

void LaneEdges::write_gammas() {
  const auto write = [&](const std::vector<Packed>& gammas, float* out) {
    for (int l = 0; l < group_.n_strands; ++l)
      for (int64_t t = 0; t < group_.lengths[l]; ++t)
        out[group_.begins[l] + t] = static_cast<float>(gammas[t].values[l]);
  };
  if (group_.longest > 0) scratch_.edge_gammas[0] = broadcast(0.0);
  write(scratch_.node_gammas, out_.mixing->node_gammas);
  if (out_.mixing->edge_gammas) write(scratch_.edge_gammas, out_.mixing->edge_gammas);
}

void LaneEdges::add_pair_sums(int lane, double weight, const SumTable& pair_sums) const {
  for (int i = 0; i < n_pairs(); ++i) pair_sums.add(i, weight * scratch_.pairs[i].values[lane]);
}

void LaneEdges::add_pair_curvature(int lane, double weight, const SumTable& pair_curvature) const {
  for (int i = 0; i < n_pairs(); ++i)
    pair_curvature.add(i, weight * scratch_.curvature[i].values[lane]);
}

}  // namespace hedgerow
