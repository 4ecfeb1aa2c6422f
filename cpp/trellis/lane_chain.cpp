#include "trellis/lane_chain.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "trellis/lane_loops.hpp"

namespace hedgerow {
namespace {

// alpha_t[k] = factor_t[k] reached_t[k], each row divided by a power of two near the sum of the row
// before, where factor_t[k] = exp(nodes[t, k] - maximum) and
//   reached_t[k] = sum_j alpha_{t-1}[j] exp(arcs[j, k]).
// As alpha and exp(arcs) are 0 or at least kSmallest, reached is 0 only where no path leads there.
template <int kLabels>
HEDGEROW_INLINE void forward_chain(LaneScratch& scratch, Stop& stop) {
  const Lanes zero = broadcast(0.0), one = broadcast(1.0);
  Packed* factors = scratch.factors.data();
  Packed* alphas = scratch.alphas.empty() ? nullptr : scratch.alphas.data();
  Lanes alpha[kLabels], reached[kLabels];
  if (scratch.pieces) {
    for (int k = 0; k < kLabels; ++k) alpha[k] = scratch.starts[k];
    multiply<kLabels, false>(alpha, scratch.arcs, reached);
    const Lanes before = total<kLabels>(alpha);
    for (int k = 0; k < kLabels; ++k) reached[k] = if_positive(before, reached[k], one);
  } else {
    for (int k = 0; k < kLabels; ++k) reached[k] = one;
  }
  Lanes left = scratch.lengths, smallest = one, exponents = zero, sum = one, last_sum = one;
  LaneSums shifts;
  for (int64_t t = 0; t < scratch.longest; ++t, factors += kLabels) {
    if (t % kCheckEvery == 0) stop.check();
    shifts.add(exponentiate<kLabels>(factors));
    exponents += if_positive(left, exponent_of(sum), zero);
    const Lanes least = arrive<kLabels>(reached, factors, inverse_power(sum), alpha);
    sum = total<kLabels>(alpha);
    smallest = minimum(if_positive(left, minimum(sum, least), one), smallest);
    last_sum = if_positive(left, sum, last_sum);
    if (alphas != nullptr) {
      for (int k = 0; k < kLabels; ++k) alphas[k] = alpha[k];
      alphas += kLabels;
    }
    multiply<kLabels, false>(alpha, scratch.arcs, reached);
    left = left - one;
  }
  scratch.smallest = smallest;
  scratch.shifts = shifts;
  scratch.exponents = exponents;
  scratch.last_sum = last_sum;
}

// The pairs of t - 1 and t. before: (K,) alpha_{t-1} / n_{t-1}, 0 where there are none; after: (K,)
// v_t; sums: (K, K), to which before[j] after[k] is added with kSums
template <int kLabels, bool kSums>
HEDGEROW_INLINE void add_pairs(const Lanes* before, const Lanes* after, int64_t t,
                               LaneScratch& scratch, const PairLanes& pairs, Lanes* sums) {
  if constexpr (kSums)
    for (int j = 0; j < kLabels; ++j)
      for (int k = 0; k < kLabels; ++k) sums[j * kLabels + k] += before[j] * after[k];
  if (!pairs.wanted()) return;
  for (int j = 0; j < kLabels; ++j)
    for (int k = 0; k < kLabels; ++k) {
      const int i = j * kLabels + k;
      scratch.pairs[i] = before[j] * broadcast(scratch.arcs[i]) * after[k];
    }
  pairs.write(t, scratch.pairs, kLabels * kLabels);
}

// beta_{t-1}[j] = sum_k exp(arcs[j, k]) v_t[k], where v_t[k] = factor_t[k] beta_t[k], divided by a
// power of two near its sum. With n_t = sum_k alpha_t[k] beta_t[k]:
//   P(y_t = k) = alpha_t[k] beta_t[k] / n_t
//   P(y_{t-1} = j, y_t = k) = alpha_{t-1}[j] exp(arcs[j, k]) v_t[k] / n_{t-1}.
// If no arc is forbidden, beta is never less than the smallest exp(arcs).
template <int kLabels, bool kSums>
HEDGEROW_INLINE void backward_chain(LaneScratch& scratch, const PairLanes& pairs, Stop& stop) {
  const Lanes zero = broadcast(0.0), one = broadcast(1.0), lengths = scratch.lengths;
  Lanes alpha[kLabels], beta[kLabels], after[kLabels];  // alpha_t, beta_t, v_{t+1}
  Lanes sums[kSums ? kLabels * kLabels : 1];
  for (Lanes& sum : sums) sum = zero;
  for (int k = 0; k < kLabels; ++k) beta[k] = after[k] = one;
  Lanes smallest = scratch.smallest;
  for (int64_t t = scratch.longest - 1; t >= 0; --t) {
    if (t % kCheckEvery == 0) stop.check();
    const Packed* factors = scratch.factors.data() + t * kLabels;
    Packed* alphas = scratch.alphas.data() + t * kLabels;
    // Positive where the sequence of the lane continues after t.
    const Lanes follows = lengths - broadcast(static_cast<double>(t + 1));
    Lanes product[kLabels];
    for (int k = 0; k < kLabels; ++k) {
      beta[k] = if_positive(follows, beta[k], scratch.ends[k]);
      alpha[k] = alphas[k];
      product[k] = alpha[k] * beta[k];
    }
    const Lanes norm = total<kLabels>(product), per_norm = one / norm;
    for (int k = 0; k < kLabels; ++k) {
      alphas[k] = product[k] / norm;  // exactly 1 where no other label is possible
      product[k] = if_positive(follows, alpha[k] * per_norm, zero);
    }
    add_pairs<kLabels, kSums>(product, after, t + 1, scratch, pairs, sums);
    if (t == 0 && !scratch.pieces) break;

    for (int k = 0; k < kLabels; ++k) {
      const Lanes factor = factors[k];
      product[k] = factor * beta[k];
    }
    const Lanes scale = inverse_power(total<kLabels>(product));
    for (int k = 0; k < kLabels; ++k) after[k] = product[k] * scale;
    multiply<kLabels, true>(after, scratch.arcs, beta);
    if (!scratch.holes) continue;
    Lanes least = one;
    for (int k = 0; k < kLabels; ++k) {
      least = minimum(if_positive(alpha[k], if_positive(product[k], after[k], one), one), least);
      least = minimum(if_positive(beta[k], beta[k], one), least);
    }
    smallest = minimum(if_positive(follows + one, least, one), smallest);
  }
  if (scratch.pieces) {
    // The pairs of the first position and the one before.
    for (int k = 0; k < kLabels; ++k) alpha[k] = scratch.starts[k], beta[k] = alpha[k] * beta[k];
    const Lanes per_norm = one / one_if_zero(total<kLabels>(beta));
    for (int k = 0; k < kLabels; ++k) alpha[k] = alpha[k] * per_norm;
    add_pairs<kLabels, kSums>(alpha, after, 0, scratch, pairs, sums);
  }
  scratch.smallest = smallest;
  if constexpr (kSums) std::copy(std::begin(sums), std::end(sums), scratch.pairs);
}

// The kernels for one number of labels.
struct ChainKernels {
  void (*forward)(LaneScratch&, Stop&);
  void (*backward)(LaneScratch&, const PairLanes&, Stop&);
  void (*backward_with_sums)(LaneScratch&, const PairLanes&, Stop&);
};
const ChainKernels& chain_kernels(int n_labels) {
  return kernels_for(n_labels, [](auto n) {
    return ChainKernels{wide_clone<forward_chain<n()>>(), wide_clone<backward_chain<n(), false>>(),
                        wide_clone<backward_chain<n(), true>>()};
  });
}

}  // namespace

LaneArcs::LaneArcs(const ScaledArcs& arcs) : shift(arcs.shift), holes(arcs.holes) {
  const auto n_labels = static_cast<int64_t>(arcs.to_previous.size()) / arcs.stride;
  for (int64_t j = 0; j < n_labels; ++j) {
    const double* row = arcs.to_next.data() + j * arcs.stride;
    factors.insert(factors.end(), row, row + n_labels);
  }
}

LaneChain::LaneChain(const ChainScores& scores, const LaneArcs& arcs, const ChainPosteriors& out)
    : LaneDriver(scores, out, scratch_), arcs_(arcs) {
  scratch_.arcs = arcs.factors.data();
  scratch_.holes = arcs.holes;
}

void LaneChain::load() {
  scratch_.pieces = std::any_of(group_.starts, group_.starts + kLanes, std::identity{});
  for (int l = 0; l < kLanes; ++l)
    for (int k = 0; k < scores_.n_labels; ++k) {
      scratch_.starts[k].values[l] = group_.starts[l] ? group_.starts[l][k] : 0.0;
      scratch_.ends[k].values[l] = group_.ends[l] ? group_.ends[l][k] : 1.0;
    }
}

void LaneChain::forward(Stop& stop) { chain_kernels(scores_.n_labels).forward(scratch_, stop); }

void LaneChain::backward(Stop& stop) {
  const ChainKernels& kernels = chain_kernels(scores_.n_labels);
  const PairLanes pairs(group_, pair_rows_);
  (out_.pair_sums ? kernels.backward_with_sums : kernels.backward)(scratch_, pairs, stop);
  if (pairs.wanted()) pairs.close_first();
}

void LaneChain::add_arc_shifts(int lane, ExactSum& shifts) const {
  const int64_t n_arcs = group_.lengths[lane] - (group_.starts[lane] == nullptr ? 1 : 0);
  const auto times = static_cast<double>(std::max<int64_t>(n_arcs, 0));
  const double product = times * arcs_.shift;
  shifts.add(product);
  shifts.add(std::fma(times, arcs_.shift, -product));  // what the product lost
}

void LaneChain::add_pair_sums(int lane, double weight, const SumTable& pair_sums) const {
  for (size_t i = 0; i < arcs_.factors.size(); ++i)
    pair_sums.add(static_cast<int64_t>(i),
                  weight * (arcs_.factors[i] * scratch_.pairs[i].values[lane]));
}

}  // namespace hedgerow
