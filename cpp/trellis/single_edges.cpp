#include "trellis/single_edges.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trellis/backward_mixing.hpp"
#include "trellis/node_factors.hpp"
#include "trellis/scaled_loops.hpp"
#include "trellis/single_loops.hpp"
#include "trellis/sums.hpp"

namespace hedgerow {
namespace {

// Bytes of the matrices of a sequence at most.
constexpr int64_t kMatrixBytes = kLowLimits ? 1 << 16 : 1 << 23;

// Arcs lie at most this far below the largest one, and edges between these bounds, or at least no
// further apart than these. Factors and their quotients are then far from the limits of a float.
constexpr float kArcDepth = 30.0f, kLargestEdge = 20.0f, kSmallestEdge = -30.0f;

// Times any factor, it is never the minimum.
constexpr float kNever = std::numeric_limits<float>::infinity();

// The smallest or largest of the lanes.
template <class Fold, class Vector>
HEDGEROW_INLINE float fold_all(const Vector& a) {
  Floats folded = eight_of(a, 0);
  if constexpr (kFloatsIn<Vector> > kFloats) folded = Fold::add(eight_of(a, 1), folded);
  return fold_lanes<Fold>(folded);
}

// factors = exp(edges - shift) * arcs, (n,) each, n at least that of a vector. Returns the smallest
// and the largest edge.
template <class Vector>
HEDGEROW_INLINE std::pair<float, float> exponentiate_edges(const float* edges, const float* arcs,
                                                           int64_t n, float shift, float* factors) {
  constexpr int kSize = kFloatsIn<Vector>;
  Vector least = broadcast_floats<Vector>(std::numeric_limits<float>::max());
  Vector most = broadcast_floats<Vector>(0.0f) - least;
  const Vector by = broadcast_floats<Vector>(shift);
  const auto take = [&](int64_t i) HEDGEROW_INLINE_LAMBDA {
    const auto edge = load_floats<Vector>(edges + i);
    least = minimum(edge, least);
    most = maximum(edge, most);
    store_floats(factors + i, exp_moderate(edge - by) * load_floats<Vector>(arcs + i));
  };
  for (int64_t i = 0; i + kSize <= n; i += kSize) {
    HEDGEROW_PREFETCH(edges + n + i);  // those of the next position
    take(i);
  }
  take(n - kSize);
  return {fold_all<Smallest>(least), fold_all<Largest>(most)};
}

// out (n, stride) is the transpose of a matrix (n, n), 0 in the padding. Enough numbers follow the
// matrix that whole vectors may be read.
HEDGEROW_INLINE void transpose_all(const float* matrix, int64_t n, int64_t stride, float* out) {
  for (int64_t j = 0; j < n; j += kFloats)
    for (int64_t k = 0; k < n; k += kFloats) {
      Floats tile[kFloats];
      for (int64_t i = 0; i < kFloats; ++i)
        tile[i] = j + i < n ? load(matrix + (j + i) * n + k) : broadcast(0.0f);
      transpose(tile);
      for (int64_t i = 0; i < kFloats && k + i < n; ++i) store(out + (k + i) * stride + j, tile[i]);
    }
}

// The mixing rate 1 - sum_i message[i] min_r matrix[r, i] inverses[r], see fill_rates.
template <class AnyVector>
HEDGEROW_INLINE float rate_by_columns(const float* matrix, const float* inverses,
                                      const float* message, int n_rows, int stride) {
  Floats overlap = broadcast(0.0f);
  for_each_block<AnyVector>(stride, [&]<class Vector, int kVectors>(int c) HEDGEROW_INLINE_LAMBDA {
    constexpr int kSize = kFloatsIn<Vector>;
    Vector least[kVectors];
    for (Vector& fold : least) fold = broadcast_floats<Vector>(std::numeric_limits<float>::max());
    const float* row = matrix + c;
    for (int r = 0; r < n_rows; ++r, row += stride)
      for (int v = 0; v < kVectors; ++v)
        least[v] = minimum(
            broadcast_floats<Vector>(inverses[r]) * load_floats<Vector>(row + v * kSize), least[v]);
    for (int i = 0; i < kVectors * kSize; i += kFloats)
      overlap += eight_of(least[i / kSize], i % kSize / kFloats) * load(message + c + i);
  });
  return std::clamp(1.0f - fold_lanes<Total>(overlap), 0.0f, 1.0f);
}

// The same of the transpose, 1 - sum_r message[r] min_i matrix[r, i] inverses[i].
template <class Vector>
HEDGEROW_INLINE float rate_by_rows(const float* matrix, const float* inverses, const float* message,
                                   int n_rows, int stride) {
  constexpr int kSize = kFloatsIn<Vector>;
  float overlap = 0.0f;
  for (int r = 0; r < n_rows; ++r, matrix += stride) {
    auto least = broadcast_floats<Vector>(std::numeric_limits<float>::max());
    int i = 0;
    for (; i + kSize <= stride; i += kSize)
      least = minimum(load_floats<Vector>(inverses + i) * load_floats<Vector>(matrix + i), least);
    Floats folded = eight_of(least, 0);
    if constexpr (kSize > kFloats) {
      folded = minimum(eight_of(least, 1), folded);
      if (i < stride) folded = minimum(load(inverses + i) * load(matrix + i), folded);
    }
    overlap += fold_lanes<Smallest>(folded) * message[r];
  }
  return std::clamp(1.0f - overlap, 0.0f, 1.0f);
}

// Stores the first n numbers of some vectors. again(i) computes the vector from column i on; i may
// be negative, since `before` columns precede the first one.
template <class Vector, int kVectors, class Again>
HEDGEROW_INLINE void store_first(const Vector* numbers, int n, int before, float* out,
                                 Again again) {
  constexpr int kSize = kFloatsIn<Vector>;
  for (int v = 0; v < kVectors && (v + 1) * kSize <= n; ++v)
    store_floats(out + v * kSize, numbers[v]);
  if (n >= kVectors * kSize) return;
  // The last columns, some of them once more.
  if (n + before >= kSize) {
    store_floats(out + n - kSize, again.template operator()<Vector>(n - kSize));
  } else {
    store(out, eight_of(numbers[0], 0));
    store(out + n - kFloats, again.template operator()<Floats>(n - kFloats));
  }
}

}  // namespace

SingleEdges::SingleEdges(const ChainScores& scores, const ChainPosteriors& out,
                         bool sixteen_at_once)
    : scores_(scores),
      out_(out),
      sixteen_at_once_(sixteen_at_once),
      n_labels_(scores.n_labels),
      stride_(padded(scores.n_labels)),
      floats_(padded_floats(scores.n_labels)) {
  if (scores.single_edges == nullptr || !out.by_label || !out.mixing || !out.marginals ||
      out.pairs || out.patterns)
    return;
  const int64_t n_arcs = int64_t{n_labels_} * n_labels_;
  arc_shift_ = *std::max_element(scores.arcs, scores.arcs + n_arcs);
  const double depth = arc_shift_ - *std::min_element(scores.arcs, scores.arcs + n_arcs);
  usable_ = std::isfinite(arc_shift_) && depth <= kArcDepth;
  if (!usable_) return;
  arcs_.resize(n_arcs);
  for (int64_t i = 0; i < n_arcs; ++i)
    arcs_[i] = static_cast<float>(std::exp(scores.arcs[i] - arc_shift_));
  factors_.resize(n_arcs + kFloats);
  rows_.resize(2 * stride_);
  single_rows_.resize(3 * floats_);
  sums_.resize(row(n_labels_));
  curvature_.resize(row(n_labels_));
}

bool SingleEdges::fill(int64_t sequence, const int32_t* labels) {
  const int64_t length = scores_.length(sequence), size = row(n_labels_);
  const auto n_bytes = static_cast<int64_t>(length * size * sizeof(float));
  if (!usable_ || length == 0 || n_bytes > kMatrixBytes) return false;
  if (length > std::ssize(maxima_)) {
    matrices_.resize(length * size);
    nodes_.resize(length * stride_ + kFactorSlack);
    maxima_.resize(length);
    alphas_.resize(length * stride_);
    before_.resize(row(length));
    after_.resize(row(length));
    gammas_.resize(length);
    likely_.resize(length);
  }
  const bool wide = sixteen_at_once_;
  if (!(wide ? forward_by_sixteen(sequence, labels) : forward_by_eight(sequence, labels)))
    return false;
  wide ? backward_by_sixteen(sequence) : backward_by_eight(sequence);
  out_.by_label->write_first(scores_.offsets[sequence],
                             out_.marginals + scores_.offsets[sequence] * n_labels_, n_labels_);
  const double weight = out_.weight(sequence), curved = out_.mixing->weight(sequence);
  const int64_t begin = scores_.offsets[sequence];
  for (int64_t t = 1; t < length; t += kBlock) {
    const int64_t end = std::min(t + kBlock, length);
    wide ? add_pairs_by_sixteen(begin, t, end, weight, curved)
         : add_pairs_by_eight(begin, t, end, weight, curved);
  }
  return true;
}

template <class Vector>
HEDGEROW_INLINE bool SingleEdges::exponentiate(int64_t position, float* matrix, double& shift) {
  const int64_t n_arcs = int64_t{n_labels_} * n_labels_;
  const float* edges = scores_.single_edges + position * n_arcs;
  shift = 0.0;
  const auto [least, most] =
      exponentiate_edges<Vector>(edges, arcs_.data(), n_arcs, 0.0f, factors_.data());
  if (!(least >= kSmallestEdge && most <= kLargestEdge)) {
    if (!(most - least <= kLargestEdge - kSmallestEdge)) return false;
    shift = most;
    exponentiate_edges<Vector>(edges, arcs_.data(), n_arcs, most, factors_.data());
  }
  transpose_all(factors_.data(), n_labels_, floats_, matrix);
  return true;
}

// As ScaledChain::forward, with the same letters.
template <class Vector>
HEDGEROW_INLINE bool SingleEdges::forward(int64_t sequence, const int32_t* labels) {
  const int64_t begin = scores_.offsets[sequence], length = scores_.length(sequence);
  const double* nodes = scores_.nodes + begin * n_labels_;
  float* messages = out_.mixing->node_gammas + begin;
  double* sums = rows_.data();
  float* inverses = single_rows_.data();
  float* message = inverses + 2 * floats_;  // whose padding is always 0
  const Lanes padding = padding_ones(n_labels_);
  LogProduct scale;
  ExactSum shifts, path;
  double per_sum = 1.0;
  // No position before prefetches the first edges.
  const int64_t n_edges = int64_t{n_labels_} * n_labels_;
  if (length > 1) prefetch_row(scores_.single_edges + (begin + 1) * n_edges, n_edges);
  fill_node_factors(nodes, length, n_labels_, nodes_.data(), maxima_.data());
  for (int64_t t = 0; t < length; ++t, nodes += n_labels_) {
    const double* factors = nodes_.data() + t * stride_;
    double* alpha = alphas_.data() + t * stride_;
    double shift = 0.0;
    if (!(maxima_[t] > -kInfinity)) return false;
    if (t == 0) {
      std::fill_n(sums, stride_, 1.0);
      messages[0] = 0.0f;
    } else {
      if (!exponentiate<Vector>(begin + t, matrix(t), shift)) return false;
      multiply<DoublesAs<Vector>>(alpha - stride_, factors_.data(), n_labels_, n_labels_, stride_,
                                  sums);
      // beta_{t-1->t} of Eq. 17
      const Lanes scales = broadcast(per_sum);
      for (int k = 0; k < stride_; k += kLanes) {
        store_inverses_as_floats(inverses + k,
                                 where_positive(load(factors + k), load(sums + k) * scales));
        store_normal(message + k, load(alpha - stride_ + k) * scales);
      }
      const float rate = rate_by_columns<Vector>(matrix(t), inverses, message, n_labels_, floats_);
      messages[t] = rate * (1.0f + messages[t - 1]);
      shift += arc_shift_;
    }
    const Lanes inverse = broadcast(per_sum);
    Lanes totals = broadcast(0.0), smallest = broadcast(1.0);
    for (int k = 0; k < stride_; k += kLanes) {
      const Lanes entries = load(sums + k) * load(factors + k) * inverse;
      store(alpha + k, entries);
      totals += entries;
      smallest = minimum(k + kLanes == stride_ ? entries + padding : entries, smallest);
    }
    const double total = sum_lanes(totals);
    if (!(total > 0.0)) return false;
    if (min_lane(smallest) < kSmallest && lost_path(alpha, n_labels_, nullptr, {}, nodes))
      return false;
    per_sum = 1.0 / total;
    scale.multiply(total);
    shifts.add(maxima_[t]);
    shifts.add(shift);
    path.add(nodes[labels[t]] - maxima_[t]);
    if (t > 0) path.add(scores_.arc_score(begin + t, labels[t - 1], labels[t]) - shift);
  }
  log_z_ = shifts.value() + scale.log();
  log_likelihood_ = path.value() - scale.log();
  return true;
}

// As ScaledChain::backward, with the same letters.
template <class Vector>
HEDGEROW_INLINE void SingleEdges::backward(int64_t sequence) {
  const int64_t begin = scores_.offsets[sequence], length = scores_.length(sequence);
  BackwardMixing mixing(out_.mixing, sequence, begin, length);
  const Row row_of_labels(n_labels_);
  double* marginals = rows_.data();
  float* beta = single_rows_.data();
  float* inverses = beta + floats_;
  std::fill_n(beta, floats_, 0.0f);
  std::fill_n(beta, n_labels_, 1.0f);
  std::fill_n(inverses, floats_, kNever);
  for (int64_t t = length - 1; t >= 0; --t) {
    const double *alpha = alphas_.data() + t * stride_, *factors = nodes_.data() + t * stride_;
    Lanes norms = broadcast(0.0);
    for (int k = 0; k < stride_; k += kLanes) {
      const Lanes products = load(alpha + k) * load_from_floats(beta + k);
      store(marginals + k, products);
      norms += products;
    }
    const Lanes per_norm = broadcast(1.0 / sum_lanes(norms));
    float* before = before_.data() + row(t);
    for (int k = 0; k < stride_; k += kLanes) {
      store(marginals + k, load(marginals + k) * per_norm);
      store_normal(before + k, load(alpha + k) * per_norm);
    }
    row_of_labels.copy_from_padded(marginals, false, out_.marginals + (begin + t) * n_labels_);
    mixing.arrive(t, find_likely(marginals, stride_));
    if (t + 1 < length) {
      gammas_[t + 1] = mixing.pair_gamma();
      likely_[t + 1] = find_pair(t + 1, mixing.likely().label, mixing.likely().others,
                                 mixing.likely_after().label);
      for (int k = 0; k < stride_; k += kLanes)
        store_inverses_as_floats(inverses + k,
                                 where_positive(load(factors + k), load_from_floats(beta + k)));
      mixing.leave(rate_by_rows<Vector>(matrix(t + 1), inverses, after_.data() + row(t + 1),
                                        n_labels_, floats_));
    }
    mixing.write();
    if (t == 0) break;
    float* after = after_.data() + row(t);
    const double per_sum = 1.0 / [&] {
      Lanes sums = broadcast(0.0);
      for (int k = 0; k < stride_; k += kLanes)
        sums += load(factors + k) * load_from_floats(beta + k);
      return sum_lanes(sums);
    }();
    for (int k = 0; k < stride_; k += kLanes)
      store_normal(after + k, load(factors + k) * load_from_floats(beta + k) * broadcast(per_sum));
    multiply<Vector>(after, matrix(t), n_labels_, floats_, 1.0f, beta);
  }
}

double SingleEdges::prob(int64_t t, int64_t before, int64_t label) const {
  return double{before_[row(t - 1) + before]} * matrix(t)[row(label) + before] *
         after_[row(t) + label];
}

// The pair of two labels that are nearly certain: 1 - P would lose digits.
SingleEdges::LikelyPair SingleEdges::find_pair(int64_t t, int64_t before, double others,
                                               int64_t label) const {
  if (before < 0 || label < 0) return {-1, -1, 0.0};
  for (int64_t k = 0; k < n_labels_; ++k) others += k == label ? 0.0 : prob(t, before, k);
  return {before, label, others};
}

double SingleEdges::curvature_of(int64_t first, int64_t end, int64_t before, int64_t label) const {
  double sum = 0.0;
  for (int64_t t = first; t < end; ++t) {
    const double p = prob(t, before, label);
    const bool is_likely = likely_[t].before == before && likely_[t].label == label;
    sum += gammas_[t] * p * (is_likely ? likely_[t].others : max_of(1.0 - p, 0.0));
  }
  return sum;
}

// Label by label, so that sums over positions stay in registers.
template <class AnyVector>
HEDGEROW_INLINE void SingleEdges::add_pairs(int64_t begin, int64_t first, int64_t end,
                                            double weight, double curved) {
  const PairsByLabel& by_label = *out_.by_label;
  const SumGrid sum_grid(out_.bound), curvature_grid_of_pairs = curvature_grid(out_.mixing->bound);
  const int n_labels = n_labels_, floats = floats_;
  double likely[kBlock];
  for (int64_t t = first; t < end; ++t) {
    const int32_t* label = by_label.labels + begin + t;
    by_label.observed[begin + t] = prob(t, label[-1], label[0]);
    if (likely_[t].label >= 0)
      likely[t - first] =
          curvature_[row(likely_[t].label) + likely_[t].before] +
          curvature_grid_of_pairs.round(
              curved * curvature_of(first, end, likely_[t].before, likely_[t].label));
  }
  for (int64_t k = 0; k < n_labels; ++k)
    for_each_block<AnyVector>(floats, [&]<class Vector, int kVectors>(
                                          int c) HEDGEROW_INLINE_LAMBDA {
      constexpr int kSize = kFloatsIn<Vector>;
      const auto one = broadcast_floats<Vector>(1.0f), zero = broadcast_floats<Vector>(0.0f);
      Vector sums[kVectors], curvatures[kVectors];
      for (int v = 0; v < kVectors; ++v) sums[v] = curvatures[v] = zero;
      const int64_t size = int64_t{n_labels} * floats;
      const float* factors = matrices_.data() + first * size + k * floats + c;
      const float* before = before_.data() + (first - 1) * floats + c;
      const float* after = after_.data() + first * floats + k;
      for (int64_t t = first; t < end; ++t, factors += size, before += floats, after += floats) {
        const auto prob_at = [&]<class Part>(int i) HEDGEROW_INLINE_LAMBDA {
          return minimum(load_floats<Part>(factors + i) * broadcast_floats<Part>(*after) *
                             load_floats<Part>(before + i),
                         broadcast_floats<Part>(1.0f));
        };
        const auto gamma = broadcast_floats<Vector>(gammas_[t]);
        Vector probs[kVectors];
        for (int v = 0; v < kVectors; ++v) {
          const Vector p = prob_at.template operator()<Vector>(v * kSize);
          sums[v] += p;
          curvatures[v] += gamma * (p * (one - p));
          probs[v] = p;
        }
        if (!by_label.wants(begin + t, k, out_.marginals[(begin + t) * n_labels + k])) continue;
        float* out = by_label.at(begin + t, k, n_labels) + c;
        const int left = n_labels - c;
        store_first<Vector, kVectors>(probs, left, c, out, prob_at);
        if (left <= kVectors * kSize) out[left] = 0.0f;
      }
      if (out_.pair_sums != nullptr)
        add_rounded<Vector, kVectors>(sums, weight, sum_grid, sums_.data() + k * floats + c);
      if (out_.mixing->pair_curvature != nullptr)
        add_rounded<Vector, kVectors>(curvatures, curved, curvature_grid_of_pairs,
                                      curvature_.data() + k * floats + c);
    });
  for (int64_t t = first; t < end; ++t)
    if (likely_[t].label >= 0)
      curvature_[row(likely_[t].label) + likely_[t].before] = likely[t - first];
}

// After the templates, which would not be inlined otherwise.
HEDGEROW_CLONES bool SingleEdges::forward_by_eight(int64_t sequence, const int32_t* labels) {
  return forward<Floats>(sequence, labels);
}
HEDGEROW_EIGHT_WIDE bool SingleEdges::forward_by_sixteen(int64_t sequence, const int32_t* labels) {
  return forward<SixteenFloats>(sequence, labels);
}
HEDGEROW_CLONES void SingleEdges::backward_by_eight(int64_t sequence) {
  backward<Floats>(sequence);
}
HEDGEROW_EIGHT_WIDE void SingleEdges::backward_by_sixteen(int64_t sequence) {
  backward<SixteenFloats>(sequence);
}
HEDGEROW_CLONES void SingleEdges::add_pairs_by_eight(int64_t begin, int64_t first, int64_t end,
                                                     double weight, double curved) {
  add_pairs<Floats>(begin, first, end, weight, curved);
}
HEDGEROW_EIGHT_WIDE void SingleEdges::add_pairs_by_sixteen(int64_t begin, int64_t first,
                                                           int64_t end, double weight,
                                                           double curved) {
  add_pairs<SixteenFloats>(begin, first, end, weight, curved);
}

void SingleEdges::add_tables(double* pair_sums, double* pair_curvature) {
  const auto add = [&](PaddedVector& table, double* out) {
    for (int64_t k = 0; out != nullptr && k < n_labels_; ++k)
      for (int64_t j = 0; j < n_labels_; ++j) out[j * n_labels_ + k] += table[row(k) + j];
    std::fill(table.begin(), table.end(), 0.0);
  };
  if (!usable_) return;
  add(sums_, pair_sums);
  add(curvature_, pair_curvature);
}

}  // namespace hedgerow
