#include "trellis/lane_mixing.hpp"

#include <algorithm>
#include <cmath>

namespace hedgerow {
namespace {

constexpr int64_t kSinglePositions = 32;  // curvatures added in single precision

// factors = exp(nodes - maximum), at least kFloor, and 0 where a node is -inf. A lane with a node
// that is NaN or +inf, or a position without any label, gets a `smallest` of 0, other lanes 1.
template <int kLabels>
HEDGEROW_INLINE void fill_factors(MixingScratch& scratch) {
  PackedFloats* factors = scratch.factors.data();
  const int64_t size = scratch.longest * kLabels;
  for (int half = 0; half < 2; ++half) {
    Lanes bad = broadcast(0.0);
    for (int64_t i = 0; i < size; i += kLabels) {
      const Packed* nodes = scratch.nodes[half].data() + i;
      Lanes largest = nodes[0];
      for (int k = 1; k < kLabels; ++k) largest = maximum(nodes[k], largest);
      bad += one_if_bad(broadcast(0.0) - largest);
      for (int k = 0; k < kLabels; ++k) {
        const Lanes node = nodes[k];
        bad += one_if_bad(node);
        store_as_floats(factors[i + k].values + half * kLanes,
                        raise_finite(node - largest, kLogFloor));
      }
    }
    store_as_floats(scratch.smallest.values + half * kLanes,
                    if_positive(bad, broadcast(0.0), broadcast(1.0)));
  }
  for (int64_t i = 0; i < size; ++i) factors[i] = exp_nonpositive(factors[i]);
}

// A step from a neighbour to a position, in either direction:
//   sum[i] = sum_j arcs[i, j] message[j], 1 where there is no neighbour (`linked` is not positive),
//   message[i] = factor[i] sum[i], divided by a power of two near the largest.
// Returns the mixing rate 1 - sum_j min_i P(j | i), where P(j | i) = arcs[i, j] message[j] /
// sum[i]. Where i is impossible, 1 / sum is infinite, and neither infinity nor infinity * 0 = NaN
// is ever the minimum. smallest: becomes at most the smallest sum, and 0 where no label is
// possible.
template <int kLabels>
HEDGEROW_INLINE Floats step(const float* arcs, const PackedFloats* factors, Floats linked,
                            Floats* message, Floats& smallest) {
  const Floats zero = broadcast(0.0f), one = broadcast(1.0f);
  Floats products[kLabels], per_sum[kLabels];
  Floats largest = zero;
  for (int i = 0; i < kLabels; ++i) {
    Floats sum = broadcast(arcs[i * kLabels]) * message[0];
    for (int j = 1; j < kLabels; ++j) sum += broadcast(arcs[i * kLabels + j]) * message[j];
    const Floats factor = factors[i];
    sum = if_positive(factor, if_positive(linked, sum, one), zero);
    products[i] = factor * sum;
    per_sum[i] = one / sum;
    largest = maximum(products[i], largest);
    smallest = minimum(if_positive(sum, sum, one), smallest);
  }
  smallest = minimum(if_positive(largest, one, zero), smallest);
  Floats overlap = zero;
  for (int j = 0; j < kLabels; ++j) {
    Floats least = Smallest::start();
    for (int i = 0; i < kLabels; ++i)
      least = minimum(per_sum[i] * broadcast(arcs[i * kLabels + j]), least);
    overlap += least * message[j];
  }
  const Floats scale = inverse_power(largest), floor = broadcast(kFloor);
  for (int i = 0; i < kLabels; ++i)
    message[i] = if_positive(products[i], maximum(products[i] * scale, floor), zero);
  return if_positive(linked, minimum(maximum(one - overlap, zero), one), zero);
}

// after_t[i] = exp(nodes[t, i]) sum_j to_next[i, j] after_{t+1}[j], and the messages of Eq. 17,
//   beta_{t+1->t} = alpha_{t,t+1} (1 + beta_{t+2->t+1}).
template <int kLabels>
HEDGEROW_INLINE void fill_afters(MixingScratch& scratch, Stop& stop) {
  Floats after[kLabels];
  for (Floats& entry : after) entry = broadcast(0.0f);
  const Floats lengths = scratch.lengths;
  Floats smallest = scratch.smallest, beta = broadcast(0.0f);
  for (int64_t t = scratch.longest - 1; t >= 0; --t) {
    if (t % kCheckEvery == 0) stop.check();
    const Floats follows = lengths - broadcast(static_cast<float>(t + 1));
    const Floats rate = step<kLabels>(scratch.to_next, scratch.factors.data() + t * kLabels,
                                      follows, after, smallest);
    beta = rate * (broadcast(1.0f) + beta);
    scratch.node_gammas[t] = beta;
    for (int k = 0; k < kLabels; ++k) scratch.afters[t * kLabels + k] = after[k];
  }
  scratch.smallest = smallest;
}

// curvature += gamma P (1 - P) of all pairs, where P = before[i] to_next[i, j] after[j] / norm, and
// 1 - P is computed as the sum of all other pairs, without a difference that loses digits. Returns
// the norm. Nothing is added where gamma is 0.
template <int kLabels>
HEDGEROW_INLINE Floats add_curvature(const float* to_next, const Floats* before,
                                     const PackedFloats* after, Floats gamma, Floats* curvature) {
  constexpr int kPairs = kLabels * kLabels;
  Floats pairs[kPairs], from[kPairs + 1];  // from[i]: sum of the pairs from i on
  for (int j = 0; j < kLabels; ++j) {
    const Floats right = after[j];
    for (int i = 0; i < kPairs; i += kLabels)
      pairs[i + j] = before[i / kLabels] * broadcast(to_next[i + j]) * right;
  }
  from[kPairs] = broadcast(0.0f);
  for (int i = kPairs - 1; i >= 0; --i) from[i] = pairs[i] + from[i + 1];
  const Floats norm = from[0];
  const Floats per_norm = if_positive(gamma, broadcast(1.0f) / norm, broadcast(0.0f));
  Floats up_to = broadcast(0.0f);
  for (int i = 0; i < kPairs; ++i) {
    const Floats others = up_to + from[i + 1];
    curvature[i] += gamma * (pairs[i] * per_norm) * (others * per_norm);
    up_to += pairs[i];
  }
  return norm;
}

// Adds single precision sums to those in double precision, and sets them to 0.
template <int kLabels>
HEDGEROW_INLINE void add_singles(Floats* singles, MixingScratch& scratch) {
  for (int i = 0; i < kLabels * kLabels; ++i) {
    const PackedFloats row = singles[i];
    for (int half = 0; half < 2; ++half)
      scratch.curvature[half][i] += load_from_floats(row.values + half * kLanes);
    singles[i] = broadcast(0.0f);
  }
}

// before_t[j] = exp(nodes[t, j]) sum_i before_{t-1}[i] to_next[i, j], the messages of Eq. 17,
//   beta_{t-1->t} = alpha_{t,t-1} (1 + beta_{t-2->t-1}),
// and with those of fill_afters() the gammas of Theorems 4.1 and 4.2; see mixing_bounds.hpp.
template <int kLabels>
HEDGEROW_INLINE void fill_gammas(MixingScratch& scratch, Stop& stop) {
  const Floats zero = broadcast(0.0f), one = broadcast(1.0f), two = broadcast(2.0f);
  const Floats lengths = scratch.lengths, most = two * (lengths - one);
  Floats before[kLabels], previous[kLabels], singles[kLabels * kLabels];
  for (Floats& entry : before) entry = zero;
  for (Floats& entry : singles) entry = zero;
  std::fill_n(scratch.curvature[0], kLabels * kLabels, broadcast(0.0));
  std::fill_n(scratch.curvature[1], kLabels * kLabels, broadcast(0.0));
  Floats smallest = scratch.smallest, beta = zero;
  for (int64_t t = 0; t < scratch.longest; ++t) {
    if (t % kCheckEvery == 0) stop.check();
    const Floats linked = broadcast(static_cast<float>(t)), left = lengths - linked;
    const Floats beta_before = beta, beta_after = scratch.node_gammas[t];
    Floats least = one;
    for (int k = 0; k < kLabels; ++k) previous[k] = before[k];
    const Floats rate = step<kLabels>(scratch.to_previous, scratch.factors.data() + t * kLabels,
                                      linked, before, least);
    beta = rate * (one + beta);
    scratch.node_gammas[t] = two * (one + (beta + beta_after));
    const Floats gamma = if_positive(
        linked, minimum(two * (broadcast(3.0f) + (beta_before + beta_after)), most), zero);
    scratch.edge_gammas[t] = gamma;
    if (scratch.pairs && t > 0) {
      const Floats norm =
          add_curvature<kLabels>(scratch.to_next, previous, scratch.afters.data() + t * kLabels,
                                 if_positive(left, gamma, zero), singles);
      least = minimum(norm, least);
      if (t % kSinglePositions == 0) add_singles<kLabels>(singles, scratch);
    }
    smallest = minimum(if_positive(left, least, one), smallest);
  }
  if (scratch.pairs) add_singles<kLabels>(singles, scratch);
  scratch.smallest = smallest;
}

// The kernels for one number of labels.
struct MixingKernels {
  void (*fill_factors)(MixingScratch&);
  void (*fill_afters)(MixingScratch&, Stop&);
  void (*fill_gammas)(MixingScratch&, Stop&);
};
const MixingKernels& mixing_kernels(int n_labels) {
  return kernels_for(n_labels, [](auto n) {
    return MixingKernels{wide_clone<fill_factors<n()>>(), wide_clone<fill_afters<n()>>(),
                         wide_clone<fill_gammas<n()>>()};
  });
}

void copy_lane(const std::vector<PackedFloats>& rows, int lane, int64_t length, float* out) {
  for (int64_t t = 0; t < length; ++t) out[t] = rows[t].values[lane];
}

}  // namespace

MixingArcs::MixingArcs(const ChainScores& scores) {
  constexpr double kSmallestArc = 0x1p-40;  // times kFloor it is still a normal float
  const int64_t n_labels = scores.n_labels;
  const double shift = *std::max_element(scores.arcs, scores.arcs + n_labels * n_labels);
  usable = shift > -kInfinity;
  if (!usable) return;
  to_next.resize(n_labels * n_labels);
  to_previous.resize(n_labels * n_labels);
  for (int64_t j = 0; j < n_labels; ++j)
    for (int64_t k = 0; k < n_labels; ++k) {
      const double arc = scores.arcs[j * n_labels + k];
      const double factor = std::exp(arc - shift);
      if (arc > -kInfinity && factor < kSmallestArc) usable = false;
      to_next[j * n_labels + k] = to_previous[k * n_labels + j] = static_cast<float>(factor);
    }
}

LaneMixing::LaneMixing(const ChainScores& scores, const MixingArcs& arcs, const MixingBounds& out)
    : scores_(scores), out_(out) {
  scratch_.to_next = arcs.to_next.data();
  scratch_.to_previous = arcs.to_previous.data();
  scratch_.pairs = out.pair_curvature != nullptr;
}

void LaneMixing::load(const StrandGroup<kFloats>& group) {
  const int64_t n_labels = scores_.n_labels;
  const size_t longest = group.longest;
  scratch_.longest = group.longest;
  if (scratch_.node_gammas.size() < longest) {
    for (auto* rows : {&scratch_.factors, &scratch_.afters}) rows->resize(longest * n_labels);
    for (auto* rows : {&scratch_.node_gammas, &scratch_.edge_gammas}) rows->resize(longest);
    for (auto& nodes : scratch_.nodes) nodes.resize(longest * n_labels);
  }
  for (int l = 0; l < kFloats; ++l)
    scratch_.lengths.values[l] = static_cast<float>(group.lengths[l]);
  for (int half = 0; half < 2; ++half)
    rows_to_lanes(lane_rows(group, half * kLanes, scores_.nodes, n_labels),
                  scratch_.nodes[half].data(), group.longest * n_labels);
}

void LaneMixing::run(const StrandGroup<kFloats>& group, Stop& stop) {
  const MixingKernels& kernels = mixing_kernels(scores_.n_labels);
  load(group);
  kernels.fill_factors(scratch_);
  kernels.fill_afters(scratch_, stop);
  kernels.fill_gammas(scratch_, stop);
  for (int l = 0; l < group.n_strands; ++l) {
    copy_lane(scratch_.node_gammas, l, group.lengths[l], out_.node_gammas + group.begins[l]);
    if (out_.edge_gammas)
      copy_lane(scratch_.edge_gammas, l, group.lengths[l], out_.edge_gammas + group.begins[l]);
  }
}

void LaneMixing::add_pair_curvature(int lane, double weight, const SumTable& sums) const {
  const Packed* curvature = scratch_.curvature[lane / kLanes];
  for (int64_t i = 0; i < int64_t{scores_.n_labels} * scores_.n_labels; ++i)
    sums.add(i, weight * curvature[i].values[lane % kLanes]);
}

}  // namespace hedgerow
