// The loops of tree_graph_lanes.hpp over the nodes of a group, for one number of labels each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

#include "simd_float.hpp"
#include "trellis/lane_loops.hpp"
#include "trellis/tree_graph_lanes.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kSingleNodes = 32;  // curvatures that are added in single precision

// Number k of a row of a table (., K), which is a different row for each lane.
template <class Kind, int kLabels>
HEDGEROW_INLINE Kind::Vector gather_lanes(const typename Kind::Stored* table, const int32_t* rows,
                                          int k) {
  typename Kind::Number numbers[Kind::kWidth];
  for (int l = 0; l < Kind::kWidth; ++l)
    numbers[l] = table[static_cast<int64_t>(rows[l]) * kLabels + k].values[l];
  return load(numbers);
}
template <class Kind, int kLabels>
HEDGEROW_INLINE void scatter_lanes(const typename Kind::Vector& numbers, const int32_t* rows, int k,
                                   typename Kind::Stored* table) {
  for (int l = 0; l < Kind::kWidth; ++l)
    table[static_cast<int64_t>(rows[l]) * kLabels + k].values[l] = lane(numbers, l);
}

// Positive where a node has a parent. above: see GraphLaneScratch
template <class Kind>
HEDGEROW_INLINE Kind::Vector links_of(const GraphLaneScratch<Kind>& scratch, const int32_t* above) {
  typename Kind::Number links[Kind::kWidth];
  for (int l = 0; l < Kind::kWidth; ++l)
    links[l] = static_cast<Kind::Number>(static_cast<int32_t>(scratch.longest) - above[l]);
  return load(links);
}

// Positive where the parent of node i is node i - 1.
template <class Kind>
HEDGEROW_INLINE Kind::Vector follows_parent(const int32_t* above, int64_t i,
                                            typename Kind::Vector linked) {
  typename Kind::Number after[Kind::kWidth];
  for (int l = 0; l < Kind::kWidth; ++l)
    after[l] = static_cast<Kind::Number>(above[l] - static_cast<int32_t>(i - 2));
  return if_positive(linked, load(after), broadcast(typename Kind::Number(0)));
}

// The smallest number of a row that is not 0, at most 1.
template <int kLabels, class Vector>
HEDGEROW_INLINE Vector least_positive(const Vector* row, Vector one) {
  Vector least = one;
  for (int k = 0; k < kLabels; ++k) least = minimum(if_positive(row[k], row[k], one), least);
  return least;
}

// row = row times a power of two, so that its sum is in [1, 2). Returns the smallest number that is
// not 0, at most 1, or 0 where there is none. sum: of the row before it is scaled
template <class Kind, int kLabels, class Vector>
HEDGEROW_INLINE Vector scale_lanes(Vector* row, Vector& sum) {
  using Number = Kind::Number;
  sum = total<kLabels>(row);
  const Vector scale = inverse_power(sum);
  for (int k = 0; k < kLabels; ++k) row[k] = row[k] * scale;
  return if_positive(sum, least_positive<kLabels>(row, broadcast(Number(1))), broadcast(Number(0)));
}

// Fills a lane of the beliefs with nodes in the order of `places`, zeros past its end; in single
// precision, their maximum is subtracted. nodes: of the sequence; places: (length,)
template <class Kind, int kLabels>
HEDGEROW_INLINE void load_lane_nodes(const double* nodes, const int32_t* places, int64_t length,
                                     int lane, GraphLaneScratch<Kind>& scratch) {
  auto* out = scratch.beliefs.data();
  for (int64_t i = 0; i < length; ++i, out += kLabels) {
    const double* row = nodes + int64_t{places[i]} * kLabels;
    double top = 0.0;
    if constexpr (Kind::kSingle) top = row[0];
    for (int k = 1; k < kLabels && Kind::kSingle; ++k) top = max_of(row[k], top);
    for (int k = 0; k < kLabels; ++k) out[k].values[lane] = static_cast<Kind::Number>(row[k] - top);
  }
  for (; out < scratch.beliefs.data() + scratch.longest * kLabels; ++out) out->values[lane] = 0;
}

// beliefs = exp(nodes - maximum). In single precision the maximum was subtracted before, and a lane
// is refused where a node that is not -inf is too small, or is NaN.
template <class Kind, int kLabels>
HEDGEROW_INLINE void fill_lane_factors(GraphLaneScratch<Kind>& scratch) {
  if constexpr (Kind::kSingle) {
    const Floats zero = broadcast(0.0f), one = broadcast(1.0f);
    const Floats lowest = broadcast(std::numeric_limits<float>::lowest());
    Floats smallest = one;
    for (int64_t i = 0; i < scratch.longest * kLabels; ++i) {
      const Floats node = scratch.beliefs[i], forbidden = if_positive(lowest - node, one, zero);
      smallest = minimum(if_positive(node - broadcast(Kind::kLogLeast), one, forbidden), smallest);
      scratch.beliefs[i] = exp_nonpositive(node);
    }
    scratch.smallest = smallest;
  } else {
    Lanes smallest = broadcast(1.0);
    LaneSums shifts;
    for (int64_t i = 0; i < scratch.longest; ++i) {
      Packed* row = scratch.beliefs.data() + i * kLabels;
      shifts.add(exponentiate<kLabels>(row));
      for (int k = 0; k < kLabels; ++k) smallest = minimum(one_if_zero(row[k]), smallest);
    }
    scratch.smallest = smallest;
    scratch.shifts = shifts;
  }
}

// A node is often the last child of the node before it. Numbers that were just written lane by lane
// are slow to be read as a row, so they are passed on in registers.
template <class Kind, int kLabels>
HEDGEROW_INLINE void graph_lanes_up(GraphLaneScratch<Kind>& scratch, Stop& stop) {
  using Vector = Kind::Vector;
  using Number = Kind::Number;
  fill_lane_factors<Kind, kLabels>(scratch);
  const Vector zero = broadcast(Number(0)), one = broadcast(Number(1));
  const Vector lengths = scratch.lengths;
  Vector smallest = scratch.smallest, exponents = zero, roots = one;
  Vector belief[kLabels], next[kLabels];
  const auto* row = scratch.beliefs.data() + std::max<int64_t>(scratch.longest - 1, 0) * kLabels;
  for (int k = 0; k < kLabels; ++k) belief[k] = row[k];
  for (int64_t i = scratch.longest - 1; i >= 0; --i) {
    if (i % kCheckEvery == 0) stop.check();
    const int32_t* above = scratch.above.data() + i * Kind::kWidth;
    const Vector linked = links_of(scratch, above);
    Vector message[kLabels], sum;
    if (i > 0) row -= kLabels;
    for (int k = 0; k < kLabels; ++k) next[k] = row[k];
    multiply<kLabels, true>(belief, scratch.weights, message);
    if constexpr (Kind::kSingle)
      smallest = minimum(least_positive<kLabels>(message, one), smallest);
    for (int k = 0; k < kLabels; ++k) {
      const Vector earlier = gather_lanes<Kind, kLabels>(scratch.beliefs.data(), above, k);
      scratch.messages[i * kLabels + k] = message[k];
      scratch.earlier[i * kLabels + k] = earlier;
      message[k] = earlier * message[k];
    }
    const Vector least = scale_lanes<Kind, kLabels>(message, sum);
    smallest = minimum(if_positive(linked, least, one), smallest);
    for (int k = 0; k < kLabels; ++k)
      scatter_lanes<Kind, kLabels>(message[k], above, k, scratch.beliefs.data());
    if constexpr (!Kind::kSingle) {
      const Vector left = lengths - broadcast(static_cast<Number>(i));
      const Vector rooted = if_positive(linked, zero, left);
      exponents += if_positive(linked, exponent_of(sum), zero);
      roots = if_positive(rooted, roots * total<kLabels>(belief), roots);
      exponents += exponent_of(roots);
      roots = roots * inverse_power(roots);
    }
    const Vector follows = follows_parent<Kind>(above, i, linked);
    for (int k = 0; k < kLabels; ++k) belief[k] = if_positive(follows, message[k], next[k]);
  }
  scratch.smallest = smallest;
  if constexpr (!Kind::kSingle) scratch.exponents = exponents, scratch.roots = roots;
}

// Rates between a node and its parent, as in tree_graph_rates.hpp.
template <class Kind, int kLabels, class Vector = Kind::Vector>
HEDGEROW_INLINE void fill_lane_rates(const typename Kind::Number* weights, const Vector* belief,
                                     const typename Kind::Stored* message, const Vector* outside,
                                     const Vector* reach, Vector linked,
                                     typename Kind::Stored& down, typename Kind::Stored& up) {
  using Number = Kind::Number;
  const Vector zero = broadcast(Number(0)), one = broadcast(Number(1)),
               infinity = broadcast(std::numeric_limits<Number>::infinity());
  Vector per_message[kLabels], per_reach[kLabels], overlap_down = zero, overlap_up = zero;
  for (int k = 0; k < kLabels; ++k) {
    const Vector from = message[k];
    per_message[k] = if_positive(outside[k] * from, one / from, infinity);
    per_reach[k] = if_positive(reach[k] * belief[k], one / reach[k], infinity);
  }
  for (int j = 0; j < kLabels; ++j) {
    Vector least_down = infinity, least_up = infinity;
    for (int i = 0; i < kLabels; ++i) {
      least_down = minimum(per_message[i] * broadcast(weights[i * kLabels + j]), least_down);
      least_up = minimum(per_reach[i] * broadcast(weights[j * kLabels + i]), least_up);
    }
    overlap_down += if_positive(belief[j], belief[j] * least_down, zero);
    overlap_up += if_positive(outside[j], outside[j] * least_up, zero);
  }
  down = if_positive(linked, minimum(maximum(one - overlap_down, zero), one), zero);
  up = if_positive(linked, minimum(maximum(one - overlap_up, zero), one), zero);
}

template <class Kind, int kLabels>
HEDGEROW_INLINE void graph_lanes_down(GraphLaneScratch<Kind>& scratch, Stop& stop) {
  using Vector = Kind::Vector;
  using Number = Kind::Number;
  const Vector zero = broadcast(Number(0)), one = broadcast(Number(1));
  Vector smallest = scratch.smallest, sum, sums[kLabels * kLabels];
  for (Vector& each : sums) each = zero;
  for (int k = 0; k < kLabels; ++k) scratch.later[scratch.longest * kLabels + k] = one;
  for (int64_t i = 0; i < scratch.longest; ++i) {
    if (i % kCheckEvery == 0) stop.check();
    const int32_t* above = scratch.above.data() + i * Kind::kWidth;
    const Vector linked = links_of(scratch, above);
    auto *messages = scratch.messages.data() + i * kLabels,
         *earlier = scratch.earlier.data() + i * kLabels;
    Vector belief[kLabels], outside[kLabels], rest[kLabels], reach[kLabels];
    for (int k = 0; k < kLabels; ++k) {
      const Vector later = gather_lanes<Kind, kLabels>(scratch.later.data(), above, k);
      belief[k] = scratch.beliefs[i * kLabels + k];
      outside[k] = earlier[k], rest[k] = messages[k];
      outside[k] = outside[k] * later, rest[k] = rest[k] * later;
    }
    Vector least =
        minimum(scale_lanes<Kind, kLabels>(outside, sum), scale_lanes<Kind, kLabels>(rest, sum));
    multiply<kLabels, false>(outside, scratch.weights, reach);
    if constexpr (Kind::kSingle) least = minimum(least_positive<kLabels>(reach, one), least);
    smallest = minimum(if_positive(linked, least, one), smallest);
    Vector norm = zero;
    for (int k = 0; k < kLabels; ++k) {
      scatter_lanes<Kind, kLabels>(rest[k], above, k, scratch.later.data());
      reach[k] = if_positive(linked, reach[k], one);
      scratch.later[i * kLabels + k] = reach[k];
      norm += reach[k] * belief[k];
    }
    if (scratch.mixing)
      fill_lane_rates<Kind, kLabels>(scratch.weights, belief, messages, outside, reach, linked,
                                     scratch.down[i], scratch.up[i]);
    for (int k = 0; k < kLabels && !Kind::kSingle && scratch.marginals; ++k)
      earlier[k] = reach[k] * belief[k] / norm;  // exactly 1 where no other label is possible
    const Vector per_norm = if_positive(linked, one / norm, zero);
    for (int k = 0; k < kLabels; ++k) outside[k] = outside[k] * per_norm;
    for (int k = 0; k < kLabels && scratch.curvature; ++k)
      scratch.outsides[i * kLabels + k] = outside[k];
    for (int j = 0; j < kLabels && !Kind::kSingle && scratch.arc_sums; ++j)
      for (int k = 0; k < kLabels; ++k) sums[j * kLabels + k] += outside[j] * belief[k];
  }
  scratch.smallest = smallest;
  if constexpr (!Kind::kSingle) std::copy(std::begin(sums), std::end(sums), scratch.sums);
}

// Adds a table (K, K) to the curvature of pairs, and sets it to 0.
template <class Kind, int kLabels>
HEDGEROW_INLINE void add_bends(typename Kind::Vector* bends, GraphLaneScratch<Kind>& scratch) {
  for (int p = 0; p < kLabels * kLabels; ++p) {
    Kind::add_to(scratch.bends[p], bends[p]);
    bends[p] = broadcast(typename Kind::Number(0));
  }
}

// Sums of gamma P (1 - P) over the edges, where 1 - P is computed as the sum of all other pairs,
// without a difference that loses digits: of other labels of the parent, P(i) = outside[i]
// message[i], and of the same one.
template <class Kind, int kLabels>
HEDGEROW_INLINE void graph_lanes_bend(GraphLaneScratch<Kind>& scratch, Stop& stop) {
  using Vector = Kind::Vector;
  const Vector zero = broadcast(typename Kind::Number(0));
  Vector bends[kLabels * kLabels];
  for (Vector& bend : bends) bend = zero;
  for (auto& row : scratch.bends) std::fill(std::begin(row), std::end(row), 0.0);
  for (int64_t e = 0; e < scratch.longest; ++e) {
    if (e % kCheckEvery == 0) stop.check();
    const auto *outside = scratch.outsides.data() + e * kLabels,
               *message = scratch.messages.data() + e * kLabels,
               *belief = scratch.beliefs.data() + e * kLabels;
    const Vector gamma = Kind::load_gammas(scratch.edge_gammas.data() + e * Kind::kWidth);
    Vector parent[kLabels], parents_after[kLabels], before = zero, after = zero;
    for (int j = kLabels - 1; j >= 0; --j) {
      const Vector from = outside[j], sent = message[j];
      parent[j] = from * sent;
      parents_after[j] = after;
      after += parent[j];
    }
    for (int j = 0; j < kLabels; ++j) {
      const Vector from = outside[j], others = before + parents_after[j];
      Vector pairs[kLabels], rest[kLabels];
      for (int k = kLabels - 1; k >= 0; --k) {
        const Vector to = belief[k];
        pairs[k] = from * (broadcast(scratch.weights[j * kLabels + k]) * to);
        rest[k] = k + 1 < kLabels ? rest[k + 1] + pairs[k + 1] : others;
      }
      Vector up_to = zero;
      for (int k = 0; k < kLabels; ++k) {
        bends[j * kLabels + k] += gamma * pairs[k] * (up_to + rest[k]);
        up_to += pairs[k];
      }
      before += parent[j];
    }
    if (Kind::kSingle && e % kSingleNodes == 0) add_bends<Kind, kLabels>(bends, scratch);
  }
  add_bends<Kind, kLabels>(bends, scratch);
}

// Turns rates into gammas, see tree_graph_mixing.hpp.
template <class Kind>
HEDGEROW_INLINE void graph_lanes_gammas(GraphLaneScratch<Kind>& scratch, Stop& stop) {
  using Vector = Kind::Vector;
  using Number = Kind::Number;
  const Vector zero = broadcast(Number(0)), one = broadcast(Number(1)), two = broadcast(Number(2));
  auto *betas = scratch.betas.data(), *epsilons = scratch.epsilons.data();
  std::fill_n(betas, scratch.longest + 1, typename Kind::Stored(zero));
  std::fill_n(epsilons, scratch.longest + 1, typename Kind::Stored(zero));
  Vector beta_below = zero, epsilon_below = zero;  // of the children of node i
  for (int64_t i = scratch.longest - 1; i >= 0; --i) {
    if (i % kCheckEvery == 0) stop.check();
    const int32_t* above = scratch.above.data() + i * Kind::kWidth;
    const Vector linked = links_of(scratch, above), rate = scratch.down[i];
    const int64_t before = i > 0 ? i - 1 : 0;
    const Vector next_beta = betas[before], next_epsilon = epsilons[before];
    const Vector beta = gather_lanes<Kind, 1>(betas, above, 0) + rate * (one + beta_below);
    const Vector epsilon = gather_lanes<Kind, 1>(epsilons, above, 0) +
                           if_positive(linked, one + rate * epsilon_below, zero);
    scatter_lanes<Kind, 1>(beta, above, 0, betas);
    scatter_lanes<Kind, 1>(epsilon, above, 0, epsilons);
    const Vector follows = follows_parent<Kind>(above, i, linked);
    beta_below = if_positive(follows, beta, next_beta);
    epsilon_below = if_positive(follows, epsilon, next_epsilon);
  }
  for (int64_t i = 0; i < scratch.longest; ++i) {
    if (i % kCheckEvery == 0) stop.check();
    const int32_t* above = scratch.above.data() + i * Kind::kWidth;
    const Vector linked = links_of(scratch, above), down = scratch.down[i], up = scratch.up[i];
    const Vector beta = betas[i], epsilon = epsilons[i];
    const Vector others = gather_lanes<Kind, 1>(betas, above, 0) - down * (one + beta);
    const Vector edges = gather_lanes<Kind, 1>(epsilons, above, 0) - (one + down * epsilon);
    const Vector around = beta + if_positive(linked, up * (one + others), zero);
    betas[i] = around;
    epsilons[i] = epsilon + if_positive(linked, one + up * edges, zero);
    Kind::store_gammas(scratch.node_gammas.data() + i * Kind::kWidth, two * (one + around));
    Kind::store_gammas(scratch.edge_gammas.data() + i * Kind::kWidth,
                       if_positive(linked, two * (one + edges + epsilon), zero));
  }
}

}  // namespace
}  // namespace hedgerow
