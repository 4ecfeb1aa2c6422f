#include "trellis/tangent_scaled.hpp"

#include <algorithm>

#include "large_pages.hpp"
#include "simd.hpp"
#include "trellis/node_factors.hpp"
#include "trellis/scaled_loops.hpp"

namespace hedgerow {
namespace {

// pairs[j, k] = alpha[j] psi[j, k] (slopes[j] ratio[k] + moved[k] + moves[j, k] ratio[k]), without
// padding. moves: (K, K) or null
HEDGEROW_INLINE void fill_pair_slopes(const double* alpha, const double* slopes,
                                      const double* ratio, const double* moved, const double* arcs,
                                      const double* moves, int n_labels, int stride,
                                      double* pairs) {
  for (int j = 0; j < n_labels; ++j, arcs += stride, pairs += n_labels) {
    for (int k = 0; k < n_labels; ++k) {
      const double slope = moves == nullptr ? slopes[j] : slopes[j] + moves[j * n_labels + k];
      pairs[k] = alpha[j] * arcs[k] * (slope * ratio[k] + moved[k]);
    }
  }
}

// sums[j, k] += what fill_pair_slopes gives, over padded rows. moved: (K, stride) psi * moves or
// null
HEDGEROW_INLINE void add_pair_slopes(const double* alpha, const double* slopes, const double* ratio,
                                     const double* centred, const double* arcs, const double* moved,
                                     int n_labels, int stride, const SumGrid& grid, double* sums) {
  for (int j = 0; j < n_labels; ++j, arcs += stride, sums += stride) {
    const Lanes prob = broadcast(alpha[j]), carried = broadcast(alpha[j] * slopes[j]);
    for (int k = 0; k < stride; k += kLanes) {
      // The factor first: where it is 0 the others may be of any size.
      const Lanes factor = load(arcs + k);
      Lanes sum = factor * carried * load(ratio + k) + factor * prob * load(centred + k);
      if (moved != nullptr) sum += load(moved + j * stride + k) * prob * load(ratio + k);
      store(sums + k, load(sums + k) + grid.round(sum));
    }
  }
}

// sums += psi ((alpha_{t-1} a_{t-1}) r_t^T + alpha_{t-1} (r_t (v_t + b_t - means))^T) over n_rows
// positions, plus psi u alpha_{t-1} r_t^T where `moved` is given. Where psi is 0 the outer products
// are meaningless, and may be of any size. waiting: (4, kWaitingRows, stride), the rows alpha_{t-1}
// a_{t-1}, r_t, alpha_{t-1}, r_t (v_t + b_t - means); psi, moved: (stride, stride) psi and psi u
HEDGEROW_INLINE void add_waiting(const double* waiting, int n_rows, int stride, const double* psi,
                                 const double* moved, const SumGrid& grid, double* sums) {
  const int64_t size = static_cast<int64_t>(kWaitingRows) * stride;
  const double *carried = waiting, *ratios = waiting + size, *alphas = waiting + 2 * size,
               *centred = waiting + 3 * size;
  const auto add_to_sums = [&](const double* factors) {
    return [=, &grid](int64_t place, Lanes outer) {
      const Lanes sum = where_positive(load(psi + place), load(factors + place) * outer);
      store(sums + place, load(sums + place) + grid.round(sum));
    };
  };
  sum_outer(carried, ratios, n_rows, stride, add_to_sums(psi));
  sum_outer(alphas, centred, n_rows, stride, add_to_sums(psi));
  if (moved != nullptr) sum_outer(alphas, ratios, n_rows, stride, add_to_sums(moved));
}

}  // namespace

MovedArcs::MovedArcs(const ChainScores& scores, const double* given)
    : scaled(scores), moves(given) {
  if (!scaled.usable || moves == nullptr || scores.has_edges()) return;
  const int64_t n_labels = scores.n_labels, stride = scaled.stride;
  to_next.assign(stride * stride, 0.0);
  to_previous.assign(n_labels * stride, 0.0);
  for (int64_t j = 0; j < n_labels; ++j)
    for (int64_t k = 0; k < n_labels; ++k)
      to_next[j * stride + k] = to_previous[k * stride + j] =
          scaled.to_next[j * stride + k] * moves[j * n_labels + k];
}

ScaledTangent::ScaledTangent(const ChainScores& scores, const MovedArcs& arcs, EdgeFactors& edges,
                             const Direction& direction, int64_t longest, const SumTable& pair_sums)
    : scores_(scores),
      arcs_(arcs),
      edges_(edges),
      direction_(direction),
      grid_(pair_sums.grid),
      block_rows_(block_rows(arcs.scaled.stride)) {
  if (!arcs.scaled.usable) return;
  const size_t stride = arcs.scaled.stride;
  block_.resize(block_rows_ * stride + kFactorSlack);
  maxima_.resize(block_rows_);
  // Left uninitialised: pages that are never written take no memory.
  constexpr size_t kLine = LineAllocator<double>::kCacheLine / sizeof(double);
  const size_t n_numbers = 2 * longest * stride + kLine;
  kept_ = std::make_unique_for_overwrite<double[]>(n_numbers);
  prefer_large_pages(kept_.get(), n_numbers * sizeof(double));
  const auto address = reinterpret_cast<uintptr_t>(kept_.get()) / sizeof(double);
  alphas_ = kept_.get() + (kLine - address % kLine) % kLine;
  ratios_ = alphas_ + longest * stride;
  means_.resize(longest);
  rows_.resize(4 * stride);
  if (edges.given() && arcs.moves != nullptr) moved_.resize(stride * stride);
  if (!pair_sums) return;
  waiting_.resize(4 * kWaitingRows * stride);
  sums_.resize(stride * stride);
}

struct ScaledTangent::Rows {
  int64_t length;
  const double* nodes;      // (T, K)
  const double* marginals;  // (T, K)
  const double* moves;      // (T, K)
};

ScaledTangent::Rows ScaledTangent::rows_of(int64_t sequence) const {
  const int64_t begin = scores_.offsets[sequence] * scores_.n_labels;
  return {scores_.length(sequence), scores_.nodes + begin, direction_.marginals + begin,
          direction_.nodes + begin};
}

// The factors psi of the arcs into a position of the sequence, and their products with the moves.
struct ScaledTangent::Arcs {
  const double* to_next;      // (K, stride) psi
  const double* to_previous;  // (K, stride) its transpose; null with edges
  const double* moved;        // (K, stride) psi * moves, null if the arcs do not move
  const double* moved_back;   // (K, stride) its transpose; null with edges

  // out[j] = sum_k psi[j, k] x[k], or with psi * moves
  HEDGEROW_INLINE void multiply_back(const double* x, bool moves, int n_labels, int stride,
                                     double* out) const {
    if (to_previous == nullptr) return multiply_by_rows(moves ? moved : to_next, x, stride, out);
    multiply(x, moves ? moved_back : to_previous, n_labels, stride, out);
  }
};

ScaledTangent::Arcs ScaledTangent::arcs_into(int64_t t) {
  if (!edges_.given()) {
    const bool move = arcs_.moves != nullptr;
    return {arcs_.scaled.to_next.data(), arcs_.scaled.to_previous.data(),
            move ? arcs_.to_next.data() : nullptr, move ? arcs_.to_previous.data() : nullptr};
  }
  const double* factors = edges_.at(t);
  const int64_t n_labels = scores_.n_labels, stride = arcs_.scaled.stride;
  for (int64_t j = 0; j < n_labels && !moved_.empty(); ++j)
    for (int64_t k = 0; k < n_labels; ++k)
      moved_[j * stride + k] = factors[j * stride + k] * arcs_.moves[j * n_labels + k];
  return {factors, nullptr, moved_.empty() ? nullptr : moved_.data(), nullptr};
}

// alpha as in ScaledChain::forward, and, with m_t[k] = sum_j alpha_{t-1}[j] psi[j, k],
//   a_t[k] = v_t[k] + sum_j alpha_{t-1}[j] (a_{t-1}[j] + u[j, k]) psi[j, k] / m_t[k] - mean_{t-1},
// where the mean is that of v and u at t-1: it is subtracted one position later, so that the
// computation of a_t does not depend on the sum over its own row.
HEDGEROW_CLONES
bool ScaledTangent::forward(int64_t sequence, double* slopes, Stop& stop) {
  const int n_labels = scores_.n_labels, stride = arcs_.scaled.stride;
  const Row row(n_labels);
  const Lanes padding = padding_ones(n_labels);
  const auto [length, nodes, marginals, moves] = rows_of(sequence);
  const int64_t n_inner = length - row.n_outer_rows();
  const bool arcs_move = arcs_.moves != nullptr;
  double* reached = rows_.data();       // m_t
  double* carried = reached + stride;   // alpha_t a_t
  double* weighted = carried + stride;  // sum_j alpha_{t-1} a_{t-1} psi
  double* moved = weighted + stride;    // sum_j alpha_{t-1} u psi
  double per_sum = 1.0, mean = 0.0;
  Arcs arcs{};
  edges_.open(sequence, true);

  for (int64_t t = 0; t < length; ++t) {
    const int64_t in_block = t & (block_rows_ - 1), at = t * n_labels;
    const bool inner = t < n_inner;
    if (t % kCheckEvery == 0) stop.check();
    if (in_block == 0)
      fill_node_factors(nodes + at, std::min(block_rows_, length - t), n_labels, block_.data(),
                        maxima_.data());
    if (!(maxima_[in_block] > -kInfinity)) return false;
    const double* factors = block_.data() + in_block * stride;
    double* alpha = alphas_ + t * stride;
    double* ratio = ratios_ + t * stride;
    if (t > 0) {
      const double* before = alpha - stride;
      if (edges_.given() && !edges_.fill(t)) return false;
      arcs = arcs_into(t);
      multiply_two(before, carried, arcs.to_next, n_labels, stride, reached, weighted);
      if (arcs_move) multiply(before, arcs.moved, n_labels, stride, moved);
    } else {
      std::fill(reached, reached + stride, 1.0);
      std::fill(weighted, weighted + stride, 0.0);
      std::fill(moved, moved + stride, 0.0);
    }
    const Lanes inverse = broadcast(per_sum), mean_before = broadcast(mean);
    Lanes sums = broadcast(0.0), means = broadcast(0.0), smallest = broadcast(1.0);
    Lanes smallest_marginal = broadcast(1.0);
    for (int k = 0; k < stride; k += kLanes) {
      const Lanes marginal = row.load_at(marginals + at, k, inner);
      const Lanes move = row.load_at(moves + at, k, inner);
      const Lanes entries = load(reached + k) * load(factors + k) * inverse;
      const Lanes per_reached = broadcast(1.0) / one_if_zero(load(reached + k));
      const Lanes share = marginal * per_reached;
      Lanes gain = load(weighted + k);
      means += where_positive(marginal, marginal * move);
      if (arcs_move) {
        gain += load(moved + k);
        means += share * load(moved + k);
      }
      const Lanes slope = where_positive(marginal, move - mean_before + gain * per_reached);
      store(alpha + k, entries);
      store(ratio + k, share);
      store(carried + k, entries * slope);
      row.store_at(slopes + at, k, inner, slope);
      sums += entries;
      smallest = minimum(k + kLanes == stride ? entries + padding : entries, smallest);
      smallest_marginal = minimum(one_if_zero(marginal), smallest_marginal);
    }
    const double sum = sum_lanes(sums);
    if (!(sum > 0.0) || min_lane(smallest_marginal) < kSmallestMarginal) return false;
    if (min_lane(smallest) < kSmallest &&
        lost_path(alpha, n_labels, t > 0 ? alpha - stride : nullptr, {arcs.to_next, stride, 1},
                  nodes + at))
      return false;
    per_sum = 1.0 / sum;
    mean = means_[t] = sum_lanes(means);
  }
  return true;
}

// With r_t[k] = p_t[k] / m_t[k], so that P(y_{t-1} = j, y_t = k) = alpha_{t-1}[j] psi[j, k] r_t[k]:
//   b_{t-1}[j] = alpha_{t-1}[j] / p_{t-1}[j] sum_k psi[j, k] r_t[k] (v_t[k] + u[j, k] + b_t[k])
// less the mean of v and u at t. With d_t = sum_k p_t[k] (a_t[k] + b_t[k]):
//   dP(y_t = k) = p_t[k] (a_t[k] + b_t[k] - d_t)
//   dP(y_{t-1} = j, y_t = k) = alpha_{t-1}[j] psi[j, k] r_t[k]
//                              (a_{t-1}[j] + u[j, k] + v_t[k] + b_t[k] - d_t - mean_{t-1}),
// where mean_{t-1} has been subtracted from a_t, and so from d_t, but not from a_{t-1}.
HEDGEROW_CLONES
void ScaledTangent::backward(int64_t sequence, double* slopes, double* pairs, Stop& stop) {
  const int n_labels = scores_.n_labels, stride = arcs_.scaled.stride;
  const int64_t n_pairs = static_cast<int64_t>(n_labels) * n_labels;
  const int64_t size = static_cast<int64_t>(kWaitingRows) * stride;  // of the rows of one kind
  const Row row(n_labels);
  const auto [length, nodes, marginals, moves] = rows_of(sequence);
  const int64_t n_inner = length - row.n_outer_rows();
  const bool pair_sums = !sums_.empty(), arcs_move = arcs_.moves != nullptr;
  double* after = rows_.data();      // b_t
  double* gains = after + stride;    // r_t (v_t + b_t)
  double* centred = gains + stride;  // r_t (v_t + b_t - d_t - mean_{t-1})
  double* moved = centred + stride;  // sum_k psi u r_t
  int n_waiting = 0;
  std::fill(after, after + stride, 0.0);
  for (int64_t t = length - 1; t >= 0; --t) {
    const int64_t at = t * n_labels;
    const bool inner = t < n_inner;
    if (t % kCheckEvery == 0) stop.check();
    Lanes means = broadcast(0.0);
    for (int k = 0; k < stride; k += kLanes)
      means += row.load_at(marginals + at, k, inner) *
               (row.load_at(slopes + at, k, inner) + load(after + k));
    const Lanes mean = broadcast(sum_lanes(means));
    const Lanes pair_mean = mean + broadcast(t > 0 ? means_[t - 1] : 0.0);
    const double* ratio = ratios_ + t * stride;
    for (int k = 0; k < stride; k += kLanes) {
      const Lanes marginal = row.load_at(marginals + at, k, inner);
      const Lanes slope = row.load_at(slopes + at, k, inner), later = load(after + k);
      row.store_at(slopes + at, k, false, marginal * ((slope + later) - mean));
      if (t == 0) continue;
      const Lanes share = load(ratio + k);
      const Lanes gain = row.load_at(moves + at, k, inner) + later;
      store(gains + k, share * gain);
      store(centred + k, share * (gain - pair_mean));
    }
    if (t == 0) break;

    const double* alpha = alphas_ + (t - 1) * stride;
    const double* slopes_before = slopes + at - n_labels;  // still a_{t-1}
    const double* marginals_before = marginals + at - n_labels;
    const bool inner_before = t - 1 < n_inner;
    const Arcs arcs = arcs_into(t);
    if (pairs != nullptr)
      fill_pair_slopes(alpha, slopes_before, ratio, centred, arcs.to_next, arcs_.moves, n_labels,
                       stride, pairs + t * n_pairs);
    if (pair_sums && edges_.given()) {
      add_pair_slopes(alpha, slopes_before, ratio, centred, arcs.to_next, arcs.moved, n_labels,
                      stride, grid_, sums_.data());
    } else if (pair_sums) {
      double* waiting = waiting_.data() + static_cast<int64_t>(n_waiting) * stride;
      for (int k = 0; k < stride; k += kLanes) {
        const Lanes entries = load(alpha + k);
        store(waiting + k, entries * row.load_at(slopes_before, k, inner_before));
        store(waiting + size + k, load(ratio + k));
        store(waiting + 2 * size + k, entries);
        store(waiting + 3 * size + k, load(centred + k));
      }
      if (++n_waiting == kWaitingRows || t == 1) {
        add_waiting(waiting_.data(), n_waiting, stride, arcs_.scaled.to_next.data(),
                    arcs_move ? arcs_.to_next.data() : nullptr, grid_, sums_.data());
        n_waiting = 0;
      }
    }
    arcs.multiply_back(gains, false, n_labels, stride, after);
    if (arcs_move) arcs.multiply_back(ratio, true, n_labels, stride, moved);
    const Lanes mean_moves = broadcast(means_[t]);
    for (int k = 0; k < stride; k += kLanes) {
      const Lanes marginal = row.load_at(marginals_before, k, inner_before);
      Lanes sums = load(after + k);
      if (arcs_move) sums += load(moved + k);
      const Lanes later = sums * (load(alpha + k) / one_if_zero(marginal)) - mean_moves;
      store(after + k, where_positive(marginal, later));
    }
  }
  if (pairs != nullptr && length > 0) std::fill(pairs, pairs + n_pairs, 0.0);
}

void ScaledTangent::add_pair_sums(double* pair_sums) const {
  if (sums_.empty()) return;
  const int64_t n_labels = scores_.n_labels, stride = arcs_.scaled.stride;
  for (int64_t j = 0; j < n_labels; ++j)
    for (int64_t k = 0; k < n_labels; ++k) pair_sums[j * n_labels + k] += sums_[j * stride + k];
}

}  // namespace hedgerow
