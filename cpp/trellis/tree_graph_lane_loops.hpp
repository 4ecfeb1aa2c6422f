// The loops of tree_graph_lanes.hpp over the nodes of a group, for one number of labels each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "simd_float.hpp"
#include "trellis/lane_loops.hpp"
#include "trellis/tree_graph_lanes.hpp"

namespace hedgerow {
namespace {

// Number k of a row in each lane's own row of a table (., K).
template <int kLabels>
HEDGEROW_INLINE Lanes gather_lanes(const Packed* table, const int32_t* rows, int k) {
  double numbers[kLanes];
  for (int l = 0; l < kLanes; ++l)
    numbers[l] = table[static_cast<int64_t>(rows[l]) * kLabels + k].values[l];
  return load(numbers);
}
template <int kLabels>
HEDGEROW_INLINE void scatter_lanes(Lanes numbers, const int32_t* rows, int k, Packed* table) {
  for (int l = 0; l < kLanes; ++l)
    table[static_cast<int64_t>(rows[l]) * kLabels + k].values[l] = lane(numbers, l);
}

// Positive where a node has a parent. above: see GraphLaneScratch
HEDGEROW_INLINE Lanes links_of(const GraphLaneScratch& scratch, const int32_t* above) {
  double links[kLanes];
  for (int l = 0; l < kLanes; ++l)
    links[l] = static_cast<double>(static_cast<int32_t>(scratch.longest) - above[l]);
  return load(links);
}

// Positive where the parent of node i is node i - 1.
HEDGEROW_INLINE Lanes follows_parent(const int32_t* above, int64_t i, Lanes linked) {
  double after[kLanes];
  for (int l = 0; l < kLanes; ++l)
    after[l] = static_cast<double>(above[l] - static_cast<int32_t>(i - 2));
  return where_positive(linked, load(after));
}

// row = row times a power of two, so that its sum is in [1, 2). Returns the smallest number that is
// not 0, at most 1, or 0 where there is none. sum: of the row before
template <int kLabels>
HEDGEROW_INLINE Lanes scale_lanes(Lanes* row, Lanes& sum) {
  const Lanes one = broadcast(1.0);
  sum = total<kLabels>(row);
  const Lanes scale = inverse_power(sum);
  Lanes least = one;
  for (int k = 0; k < kLabels; ++k) {
    row[k] = row[k] * scale;
    least = minimum(if_positive(row[k], row[k], one), least);
  }
  return if_positive(sum, least, broadcast(0.0));
}

// A node is often the last child of the node before it. So as not to wait until numbers that were
// just written lane by lane can be read as a row, these are passed on in registers.
template <int kLabels>
HEDGEROW_INLINE void graph_lanes_up(GraphLaneScratch& scratch, Stop& stop) {
  const Lanes zero = broadcast(0.0), one = broadcast(1.0);
  const Lanes lengths = scratch.lengths;
  Lanes smallest = one, exponents = zero, roots = one;
  LaneSums shifts;
  for (int64_t i = 0; i < scratch.longest; ++i) {
    Packed* row = scratch.beliefs.data() + i * kLabels;
    shifts.add(exponentiate<kLabels>(row));
    for (int k = 0; k < kLabels; ++k) smallest = minimum(one_if_zero(row[k]), smallest);
  }
  Lanes belief[kLabels], next[kLabels];
  const Packed* row = scratch.beliefs.data() + std::max<int64_t>(scratch.longest - 1, 0) * kLabels;
  for (int k = 0; k < kLabels; ++k) belief[k] = row[k];
  for (int64_t i = scratch.longest - 1; i >= 0; --i) {
    if (i % kCheckEvery == 0) stop.check();
    const int32_t* above = scratch.above.data() + i * kLanes;
    const Lanes linked = links_of(scratch, above);
    const Lanes left = lengths - broadcast(static_cast<double>(i));
    Lanes message[kLabels], sum;
    if (i > 0) row -= kLabels;
    for (int k = 0; k < kLabels; ++k) next[k] = row[k];
    multiply<kLabels, true>(belief, scratch.weights, message);
    for (int k = 0; k < kLabels; ++k) {
      const Lanes earlier = gather_lanes<kLabels>(scratch.beliefs.data(), above, k);
      scratch.messages[i * kLabels + k] = message[k];
      scratch.earlier[i * kLabels + k] = earlier;
      message[k] = earlier * message[k];
    }
    const Lanes least = scale_lanes<kLabels>(message, sum);
    smallest = minimum(if_positive(linked, least, one), smallest);
    exponents += if_positive(linked, exponent_of(sum), zero);
    for (int k = 0; k < kLabels; ++k)
      scatter_lanes<kLabels>(message[k], above, k, scratch.beliefs.data());
    const Lanes rooted = if_positive(linked, zero, left);
    roots = if_positive(rooted, roots * total<kLabels>(belief), roots);
    exponents += exponent_of(roots);
    roots = roots * inverse_power(roots);
    const Lanes follows = follows_parent(above, i, linked);
    for (int k = 0; k < kLabels; ++k) belief[k] = if_positive(follows, message[k], next[k]);
  }
  scratch.smallest = smallest;
  scratch.shifts = shifts;
  scratch.exponents = exponents;
  scratch.roots = roots;
}

// Rates between a node and its parent, as tree_graph_rates.hpp has them.
template <int kLabels>
HEDGEROW_INLINE void fill_lane_rates(const double* weights, const Lanes* belief,
                                     const Packed* message, const Lanes* outside,
                                     const Lanes* reach, Lanes linked, Packed& down, Packed& up) {
  const Lanes zero = broadcast(0.0), one = broadcast(1.0), infinity = broadcast(kInfinity);
  Lanes per_message[kLabels], per_reach[kLabels], overlap_down = zero, overlap_up = zero;
  for (int k = 0; k < kLabels; ++k) {
    const Lanes from = message[k];
    per_message[k] = if_positive(outside[k] * from, one / from, infinity);
    per_reach[k] = if_positive(reach[k] * belief[k], one / reach[k], infinity);
  }
  for (int j = 0; j < kLabels; ++j) {
    Lanes least_down = infinity, least_up = infinity;
    for (int i = 0; i < kLabels; ++i) {
      least_down = minimum(per_message[i] * broadcast(weights[i * kLabels + j]), least_down);
      least_up = minimum(per_reach[i] * broadcast(weights[j * kLabels + i]), least_up);
    }
    overlap_down += where_positive(belief[j], belief[j] * least_down);
    overlap_up += where_positive(outside[j], outside[j] * least_up);
  }
  down = if_positive(linked, minimum(maximum(one - overlap_down, zero), one), zero);
  up = if_positive(linked, minimum(maximum(one - overlap_up, zero), one), zero);
}

template <int kLabels>
HEDGEROW_INLINE void graph_lanes_down(GraphLaneScratch& scratch, Stop& stop) {
  const Lanes zero = broadcast(0.0), one = broadcast(1.0);
  Lanes smallest = scratch.smallest, sum, sums[kLabels * kLabels];
  for (Lanes& each : sums) each = zero;
  for (int k = 0; k < kLabels; ++k) scratch.later[scratch.longest * kLabels + k] = one;
  for (int64_t i = 0; i < scratch.longest; ++i) {
    if (i % kCheckEvery == 0) stop.check();
    const int32_t* above = scratch.above.data() + i * kLanes;
    const Lanes linked = links_of(scratch, above);
    Packed *messages = scratch.messages.data() + i * kLabels,
           *earlier = scratch.earlier.data() + i * kLabels;
    Lanes belief[kLabels], outside[kLabels], rest[kLabels], reach[kLabels];
    for (int k = 0; k < kLabels; ++k) {
      const Lanes later = gather_lanes<kLabels>(scratch.later.data(), above, k);
      belief[k] = scratch.beliefs[i * kLabels + k];
      outside[k] = earlier[k], rest[k] = messages[k];
      outside[k] = outside[k] * later, rest[k] = rest[k] * later;
    }
    const Lanes least =
        minimum(scale_lanes<kLabels>(outside, sum), scale_lanes<kLabels>(rest, sum));
    smallest = minimum(if_positive(linked, least, one), smallest);
    multiply<kLabels, false>(outside, scratch.weights, reach);
    Lanes norm = zero;
    for (int k = 0; k < kLabels; ++k) {
      scatter_lanes<kLabels>(rest[k], above, k, scratch.later.data());
      reach[k] = if_positive(linked, reach[k], one);
      scratch.later[i * kLabels + k] = reach[k];
      norm += reach[k] * belief[k];
    }
    if (scratch.mixing)
      fill_lane_rates<kLabels>(scratch.weights, belief, messages, outside, reach, linked,
                               scratch.down[i], scratch.up[i]);
    for (int k = 0; k < kLabels && scratch.marginals; ++k)
      earlier[k] = reach[k] * belief[k] / norm;  // exactly 1 where no other label is possible
    const Lanes per_norm = if_positive(linked, one / norm, zero);
    for (int k = 0; k < kLabels; ++k) outside[k] = outside[k] * per_norm;
    for (int k = 0; k < kLabels && scratch.curvature; ++k)
      scratch.outsides[i * kLabels + k] = outside[k];
    for (int j = 0; j < kLabels && scratch.arc_sums; ++j)
      for (int k = 0; k < kLabels; ++k) sums[j * kLabels + k] += outside[j] * belief[k];
  }
  scratch.smallest = smallest;
  std::copy(std::begin(sums), std::end(sums), scratch.sums);
}

// Sums of gamma P (1 - P) over the edges, where 1 - P is computed as the sum of all other pairs,
// without a difference that loses digits: of other labels of the parent, P(i) = outside[i]
// message[i], and of the same one.
template <int kLabels>
HEDGEROW_INLINE void graph_lanes_bend(GraphLaneScratch& scratch, Stop& stop) {
  const Lanes zero = broadcast(0.0);
  Lanes bends[kLabels * kLabels];
  for (Lanes& bend : bends) bend = zero;
  for (int64_t e = 0; e < scratch.longest; ++e) {
    if (e % kCheckEvery == 0) stop.check();
    const Packed *outside = scratch.outsides.data() + e * kLabels,
                 *message = scratch.messages.data() + e * kLabels,
                 *belief = scratch.beliefs.data() + e * kLabels;
    const Lanes gamma = load_from_floats(scratch.edge_gammas.data() + e * kLanes);
    Lanes parent[kLabels], parents_after[kLabels], before = zero, after = zero;
    for (int j = kLabels - 1; j >= 0; --j) {
      const Lanes from = outside[j], sent = message[j];
      parent[j] = from * sent;
      parents_after[j] = after;
      after += parent[j];
    }
    for (int j = 0; j < kLabels; ++j) {
      const Lanes from = outside[j], others = before + parents_after[j];
      Lanes pairs[kLabels], rest[kLabels];
      for (int k = kLabels - 1; k >= 0; --k) {
        const Lanes to = belief[k];
        pairs[k] = from * (broadcast(scratch.weights[j * kLabels + k]) * to);
        rest[k] = k + 1 < kLabels ? rest[k + 1] + pairs[k + 1] : others;
      }
      Lanes up_to = zero;
      for (int k = 0; k < kLabels; ++k) {
        bends[j * kLabels + k] += gamma * pairs[k] * (up_to + rest[k]);
        up_to += pairs[k];
      }
      before += parent[j];
    }
  }
  std::copy(std::begin(bends), std::end(bends), scratch.bends);
}

}  // namespace
}  // namespace hedgerow
