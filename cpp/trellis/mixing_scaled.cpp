#include "trellis/mixing_scaled.hpp"

#include <algorithm>
#include <cmath>

namespace hedgerow {
namespace {

constexpr double kSmallestArc = 0x1p-40;  // times kFloor it is still a normal float
constexpr float kLikely = 0.99f;          // nearly certain: 1 - p loses digits if p is larger
constexpr int kMixingRows = 32;           // outer products added at a time

// folds[v] = Fold of folds[v] and factor * row, for kVectors * kFloats columns.
template <class Fold, int kVectors>
HEDGEROW_INLINE void fold_row(float factor, const float* row, Floats* folds) {
  const Floats factors = broadcast(factor);
  for (int v = 0; v < kVectors; ++v)
    folds[v] = Fold::add(factors * load(row + v * kFloats), folds[v]);
}

// out[c] = sum_r or min_r x[r] * matrix[r, c], for kVectors * kFloats columns. The rows are
// divided among several parts, so that consecutive additions do not depend on each other.
template <class Fold, int kVectors, int kParts>
HEDGEROW_INLINE void fold_columns(const float* x, const float* matrix, int n_rows, int stride,
                                  float* out) {
  Floats folds[kParts][kVectors];
  for (int p = 0; p < kParts; ++p)
    for (int v = 0; v < kVectors; ++v) folds[p][v] = Fold::start();
  int r = 0;
  for (; r + kParts <= n_rows; r += kParts)
    for (int p = 0; p < kParts; ++p)
      fold_row<Fold, kVectors>(x[r + p], matrix + static_cast<int64_t>(r + p) * stride, folds[p]);
  for (; r < n_rows; ++r)
    fold_row<Fold, kVectors>(x[r], matrix + static_cast<int64_t>(r) * stride, folds[0]);
  for (int v = 0; v < kVectors; ++v) {
    Floats total = folds[0][v];
    for (int p = 1; p < kParts; ++p) total = Fold::add(folds[p][v], total);
    store(out + v * kFloats, total);
  }
}

// The same for all columns of a padded matrix.
template <class Fold>
HEDGEROW_INLINE void fold(const float* x, const float* matrix, int n_rows, int stride, float* out) {
  for (int c = 0; c < stride; c += 4 * kFloats) {
    switch (std::min(4, (stride - c) / kFloats)) {
      case 1: fold_columns<Fold, 1, 4>(x, matrix + c, n_rows, stride, out + c); break;
      case 2: fold_columns<Fold, 2, 4>(x, matrix + c, n_rows, stride, out + c); break;
      case 3: fold_columns<Fold, 3, 2>(x, matrix + c, n_rows, stride, out + c); break;
      default: fold_columns<Fold, 4, 2>(x, matrix + c, n_rows, stride, out + c); break;
    }
  }
}

// What is folded: x[r] * matrix[r, c] over all rows r.
struct FoldTerms {
  const float* x;
  const float* matrix;
};

// fold<Total> of some terms and fold<Smallest> of others at once: neither waits for the other.
template <int kVectors, int kParts>
HEDGEROW_INLINE void fold_both_columns(const FoldTerms& added, const FoldTerms& compared,
                                       int n_rows, int stride, float* sums, float* smallest) {
  Floats totals[kParts][kVectors], minima[kVectors];
  for (int v = 0; v < kVectors; ++v) minima[v] = Smallest::start();
  for (int p = 0; p < kParts; ++p)
    for (int v = 0; v < kVectors; ++v) totals[p][v] = Total::start();
  const auto fold_rows = [&](int64_t r, int p) {
    fold_row<Total, kVectors>(added.x[r], added.matrix + r * stride, totals[p]);
    fold_row<Smallest, kVectors>(compared.x[r], compared.matrix + r * stride, minima);
  };
  int r = 0;
  for (; r + kParts <= n_rows; r += kParts)
    for (int p = 0; p < kParts; ++p) fold_rows(r + p, p);
  for (; r < n_rows; ++r) fold_rows(r, 0);
  for (int v = 0; v < kVectors; ++v) {
    Floats total = totals[0][v];
    for (int p = 1; p < kParts; ++p) total = Total::add(totals[p][v], total);
    store(sums + v * kFloats, total);
    store(smallest + v * kFloats, minima[v]);
  }
}

// The same for all columns of padded matrices.
HEDGEROW_INLINE void fold_both(const FoldTerms& added, const FoldTerms& compared, int n_rows,
                               int stride, float* sums, float* smallest) {
  for (int c = 0; c < stride; c += 4 * kFloats) {
    const FoldTerms a{added.x, added.matrix + c}, b{compared.x, compared.matrix + c};
    switch (std::min(4, (stride - c) / kFloats)) {
      case 1: fold_both_columns<1, 4>(a, b, n_rows, stride, sums + c, smallest + c); break;
      case 2: fold_both_columns<2, 4>(a, b, n_rows, stride, sums + c, smallest + c); break;
      case 3: fold_both_columns<3, 2>(a, b, n_rows, stride, sums + c, smallest + c); break;
      default: fold_both_columns<4, 2>(a, b, n_rows, stride, sums + c, smallest + c); break;
    }
  }
}

// sum_c a[c] * b[c], over padded rows.
HEDGEROW_INLINE float dot(const float* a, const float* b, int stride) {
  Floats sums = broadcast(0.0f);
  for (int c = 0; c < stride; c += kFloats) sums += load(a + c) * load(b + c);
  return fold_lanes<Total>(sums);
}

// out = nodes - max nodes, at least kLogFloor, -inf for -inf and in the padding; false where a node
// is NaN or +inf, or all are -inf.
HEDGEROW_INLINE bool shift_nodes(const double* nodes, const Row& row, bool inner, int stride,
                                 float* out) {
  const Lanes nothing = broadcast(-kInfinity);
  const Lanes rest = row.rest > 0 ? row.load_rest(nodes, inner, -kInfinity) : nothing;
  Lanes largest = rest, bad = one_if_bad(rest);
  for (int k = 0; k < row.whole; k += kLanes) {
    largest = maximum(load(nodes + k), largest);
    bad += one_if_bad(load(nodes + k));
  }
  const double shift = max_lane(largest);
  if (max_lane(bad) > 0.0 || shift == -kInfinity) return false;
  store_as_floats(out + stride - kLanes, nothing);
  for (int k = 0; k < row.whole; k += kLanes)
    store_as_floats(out + k, raise_finite(load(nodes + k) - broadcast(shift), kLogFloor));
  if (row.rest > 0)
    store_as_floats(out + row.whole, raise_finite(rest - broadcast(shift), kLogFloor));
  return true;
}

// message = factors * sums, largest entry 1, and per_sum = 1 / sums, infinite for what is
// impossible. `message` may be `factors`. False where no label is possible or a sum not reliable.
HEDGEROW_INLINE bool fill_message(const float* factors, const float* sums, int stride,
                                  float* message, float* per_sum) {
  const Floats zero = broadcast(0.0f), one = broadcast(1.0f);
  Floats largest = zero, smallest = one;
  for (int c = 0; c < stride; c += kFloats) {
    const Floats factor = load(factors + c);
    const Floats sum = if_positive(factor, load(sums + c), zero);
    const Floats product = factor * sum;
    largest = maximum(product, largest);
    smallest = minimum(if_positive(sum, sum, one), smallest);
    store(message + c, product);
    store(per_sum + c, one / sum);
  }
  const float norm = fold_lanes<Largest>(largest);
  if (!(norm > 0.0f) || fold_lanes<Smallest>(smallest) < kReliable) return false;
  const Floats per_norm = broadcast(1.0f / norm), floor = broadcast(kFloor);
  for (int c = 0; c < stride; c += kFloats) {
    const Floats entry = load(message + c);
    store(message + c, if_positive(entry, maximum(entry * per_norm, floor), zero));
  }
  return true;
}

// 1 - sum_j min_i P(j | i), where P(j | i) = matrix[i, j] message[j] / sum[i], from smallest[j] =
// min_i matrix[i, j] / sum[i]. Where i is impossible, 1 / sum is infinite, and neither infinity nor
// infinity * 0 = NaN is ever the minimum.
HEDGEROW_INLINE float mixing_rate(const float* smallest, const float* message, int stride) {
  return std::clamp(1.0f - dot(smallest, message, stride), 0.0f, 1.0f);
}

// product = a * b entry by entry. Returns the sum, and, if one entry has more than kLikely of it,
// the label of that entry and the sum of all others.
HEDGEROW_INLINE LabelShare find_share(const float* a, const float* b, int stride, float* product) {
  Floats sums = broadcast(0.0f), entries = broadcast(0.0f);
  for (int c = 0; c < stride; c += kFloats) {
    const Floats entry = load(a + c) * load(b + c);
    store(product + c, entry);
    sums += entry;
    entries = maximum(entry, entries);
  }
  LabelShare share{fold_lanes<Total>(sums)};
  const float largest = fold_lanes<Largest>(entries);
  if (!(largest > kLikely * share.sum)) return share;
  Floats places = broadcast(0.0f), others = broadcast(0.0f), place = count_up();
  for (int c = 0; c < stride; c += kFloats, place += broadcast(float{kFloats})) {
    const Floats below = broadcast(largest) - load(product + c);
    places += if_positive(below, broadcast(0.0f), place);
    others += if_positive(below, load(product + c), broadcast(0.0f));
  }
  share.likely = static_cast<int>(fold_lanes<Total>(places));
  share.others = fold_lanes<Total>(others);
  return share;
}

// Rows of outer products, (n_rows, stride) each.
struct OuterRows {
  const float *left, *right, *left_squares, *right_squares;
};

// curvature += arcs * linear - arcs^2 * square, rounded to a grid, for 4 labels before and kFloats
// labels: linear and square are sums of outer products, in single precision.
HEDGEROW_INLINE void add_outer_block(const OuterRows& rows, int n_rows, int stride,
                                     const float* arcs, SumGrid grid,
                                     double* HEDGEROW_RESTRICT curvature) {
  Floats linear[4][1], square[4][1];
  for (int j = 0; j < 4; ++j) linear[j][0] = square[j][0] = broadcast(0.0f);
  for (int64_t w = 0; w < n_rows * int64_t{stride}; w += stride)
    for (int j = 0; j < 4; ++j) {
      fold_row<Total, 1>(rows.left[w + j], rows.right + w, linear[j]);
      fold_row<Total, 1>(rows.left_squares[w + j], rows.right_squares + w, square[j]);
    }
  for (int j = 0; j < 4; ++j, arcs += stride, curvature += stride) {
    float of_pairs[kFloats];
    const Floats arc = load(arcs);
    store(of_pairs, maximum(arc * (linear[j][0] - arc * square[j][0]), broadcast(0.0f)));
    for (int c = 0; c < kFloats; ++c) curvature[c] += grid.round(of_pairs[c]);
  }
}

// curvature[j] += factor P_j (1 - P_j), where P_j = scale arcs[j] right[j]; for j = label, where
// 1 - P_j would lose digits, `likely` is added instead. All are padded rows.
HEDGEROW_INLINE void add_row(double scale, const float* arcs, const float* right, double factor,
                             int stride, int64_t label, double likely, const SumGrid& grid,
                             double* curvature) {
  const double sum = curvature[label] + grid.round(likely);
  for (int c = 0; c < stride; c += kLanes) {
    const Lanes probs = broadcast(scale) * load_from_floats(arcs + c) * load_from_floats(right + c);
    store(curvature + c,
          load(curvature + c) + grid.round(broadcast(factor) * probs * (broadcast(1.0) - probs)));
  }
  curvature[label] = sum;
}

}  // namespace

MixingArcs::MixingArcs(const ChainScores& scores) : stride(padded_floats(scores.n_labels)) {
  const int64_t n_labels = scores.n_labels;
  const double shift = *std::max_element(scores.arcs, scores.arcs + n_labels * n_labels);
  usable = shift > -kInfinity;
  if (!usable) return;
  to_next.assign((n_labels + 3) / 4 * 4 * stride, 0.0f);
  to_previous.assign(n_labels * stride, 0.0f);
  for (int64_t j = 0; j < n_labels; ++j)
    for (int64_t k = 0; k < n_labels; ++k) {
      const double arc = scores.arcs[j * n_labels + k];
      const double factor = std::exp(arc - shift);
      if (arc > -kInfinity && factor < kSmallestArc) usable = false;
      to_next[j * stride + k] = to_previous[k * stride + j] = static_cast<float>(factor);
    }
}

ScaledMixing::ScaledMixing(const ChainScores& scores, const MixingArcs& arcs, int64_t longest,
                           bool pairs, const SumGrid& grid)
    : scores_(scores), arcs_(arcs), pairs_(pairs), grid_(grid) {
  if (!arcs.usable) return;
  const size_t stride = arcs.stride;
  befores_.resize(longest * stride);
  afters_.resize(longest * stride);
  rows_.resize(3 * stride);
  if (!pairs) return;
  shares_.resize(longest);
  waiting_.resize(4 * kMixingRows * stride);
  curvature_.resize(arcs.to_next.size());
}

bool ScaledMixing::fill_rates(int64_t sequence, const MixingRates& rates, Stop& stop) {
  const double* nodes = scores_.nodes + scores_.offsets[sequence] * scores_.n_labels;
  const int64_t length = scores_.length(sequence);
  return fill_factors(nodes, length) && backward(length, rates.to_next, stop) &&
         forward(length, rates.to_previous, stop);
}

HEDGEROW_CLONES
bool ScaledMixing::fill_factors(const double* nodes, int64_t length) {
  const Row row(scores_.n_labels);
  const int stride = arcs_.stride;
  const int64_t n_inner = length - row.n_outer_rows();
  float* factors = befores_.data();
  for (int64_t t = 0; t < length; ++t)
    if (!shift_nodes(nodes + t * row.size, row, t < n_inner, stride, factors + t * stride))
      return false;
  for (int64_t i = 0; i < length * stride; i += kFloats)
    store(factors + i, exp_nonpositive(load(factors + i)));
  return true;
}

// sum_t[i] = sum_j to_next[i, j] after_{t+1}[j], after_t[i] = exp(nodes[t, i]) sum_t[i]:
//   P(y_{t+1} = j | y_t = i) = to_next[i, j] after_{t+1}[j] / sum_t[i].
// The sums of t - 1 come with the rate at t.
HEDGEROW_CLONES
bool ScaledMixing::backward(int64_t length, float* to_next, Stop& stop) {
  const int n_labels = scores_.n_labels, stride = arcs_.stride;
  float* sums = rows_.data();
  float* per_sum = sums + stride;
  float* smallest = per_sum + stride;
  std::fill(sums, sums + stride, 1.0f);
  for (int64_t t = length - 1; t >= 0; --t) {
    if (t % kCheckEvery == 0) stop.check();
    const float* factors = befores_.data() + t * stride;
    float* after = afters_.data() + t * stride;
    const float* next = after + stride;
    const bool is_last = t + 1 == length;
    if (!fill_message(factors, sums, stride, after, per_sum)) return false;
    if (is_last)
      fold<Total>(after, arcs_.to_previous.data(), n_labels, stride, sums);
    else if (t == 0)
      fold<Smallest>(per_sum, arcs_.to_next.data(), n_labels, stride, smallest);
    else
      fold_both({after, arcs_.to_previous.data()}, {per_sum, arcs_.to_next.data()}, n_labels,
                stride, sums, smallest);
    to_next[t] = is_last ? 0.0f : mixing_rate(smallest, next, stride);
  }
  return true;
}

// sum_t[j] = sum_i before_{t-1}[i] to_next[i, j], before_t[j] = exp(nodes[t, j]) sum_t[j]:
//   P(y_{t-1} = i | y_t = j) = before_{t-1}[i] to_next[i, j] / sum_t[j].
// The sums of t + 1 come with the rate at t.
HEDGEROW_CLONES
bool ScaledMixing::forward(int64_t length, float* to_previous, Stop& stop) {
  const int n_labels = scores_.n_labels, stride = arcs_.stride;
  float* sums = rows_.data();
  float* per_sum = sums + stride;
  float* smallest = per_sum + stride;
  if (length > 0) to_previous[0] = 0.0f;
  if (length > 0 && pairs_) {
    std::fill(sums, sums + stride, 1.0f);
    shares_[0] = find_share(sums, afters_.data(), stride, smallest);
  }
  if (length > 1) fold<Total>(befores_.data(), arcs_.to_next.data(), n_labels, stride, sums);
  for (int64_t t = 1; t < length; ++t) {
    if (t % kCheckEvery == 0) stop.check();
    float* before = befores_.data() + t * stride;
    const float* previous = before - stride;
    if (pairs_) {
      shares_[t] = find_share(sums, afters_.data() + t * stride, stride, smallest);
      if (!(shares_[t].sum >= kReliable)) return false;
    }
    if (!fill_message(before, sums, stride, before, per_sum)) return false;
    if (t + 1 == length)
      fold<Smallest>(per_sum, arcs_.to_previous.data(), n_labels, stride, smallest);
    else
      fold_both({before, arcs_.to_next.data()}, {per_sum, arcs_.to_previous.data()}, n_labels,
                stride, sums, smallest);
    to_previous[t] = mixing_rate(smallest, previous, stride);
  }
  return true;
}

HEDGEROW_CLONES
void ScaledMixing::add_pairs(int64_t length, const float* edge_gammas, double weight) {
  const int stride = arcs_.stride;
  const int64_t n_waiting = static_cast<int64_t>(kMixingRows) * stride;
  for (int64_t t = 1; t < length; ++t) {
    const float* before = befores_.data() + (t - 1) * stride;
    const float* after = afters_.data() + t * stride;
    float* lefts = waiting_.data() + static_cast<int64_t>(n_waiting_) * stride;
    float* rights = lefts + n_waiting;
    const auto factor = static_cast<float>(weight * edge_gammas[t]);
    const float per_norm = 1.0f / shares_[t].sum;
    for (int c = 0; c < stride; c += kFloats) {
      const Floats left = load(before + c), right = load(after + c) * broadcast(per_norm);
      store(lefts + c, broadcast(factor) * left);
      store(rights + c, right);
      store(lefts + 2 * n_waiting + c, broadcast(factor) * left * left);
      store(rights + 2 * n_waiting + c, right * right);
    }
    // The only pair that may be nearly certain is the one of two labels that are.
    const int64_t j = shares_[t - 1].likely, k = shares_[t].likely;
    if (j >= 0 && k >= 0) {
      const float* arcs = arcs_.to_next.data() + j * stride;
      const float* column = arcs_.to_previous.data() + k * stride;
      const double scale = before[j];
      lefts[j] = lefts[2 * n_waiting + j] = 0.0f;
      const double others =
          factor * per_norm * shares_[t].others + dot(lefts, column, stride) * rights[k];
      add_row(scale, arcs, rights, factor, stride, k, scale * arcs[k] * rights[k] * others, grid_,
              curvature_.data() + j * stride);
    }
    if (++n_waiting_ == kMixingRows || t + 1 == length) add_waiting();
  }
}

HEDGEROW_CLONES
void ScaledMixing::add_waiting() {
  const int stride = arcs_.stride;
  const int64_t size = static_cast<int64_t>(kMixingRows) * stride;
  const float* lefts = waiting_.data();
  const float* rights = lefts + size;
  for (int64_t j = 0; j < scores_.n_labels; j += 4)
    for (int64_t c = 0; c < stride; c += kFloats)
      add_outer_block({lefts + j, rights + c, lefts + 2 * size + j, rights + 2 * size + c},
                      n_waiting_, stride, arcs_.to_next.data() + j * stride + c, grid_,
                      curvature_.data() + j * stride + c);
  n_waiting_ = 0;
}

void ScaledMixing::add_pair_curvature(double* sums) const {
  if (curvature_.empty()) return;
  const int64_t n_labels = scores_.n_labels, stride = arcs_.stride;
  for (int64_t j = 0; j < n_labels; ++j)
    for (int64_t k = 0; k < n_labels; ++k) sums[j * n_labels + k] += curvature_[j * stride + k];
}

}  // namespace hedgerow
