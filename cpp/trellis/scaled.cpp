#include "trellis/scaled.hpp"

#include <algorithm>
#include <cmath>

#include "simd.hpp"
#include "trellis/backward_mixing.hpp"
#include "trellis/node_factors.hpp"
#include "trellis/scaled_loops.hpp"
#include "trellis/single_loops.hpp"
#include "trellis/sums.hpp"

namespace hedgerow {
namespace {

// The messages beta_{t-1->t} of Eq. 17, from rates that are computed for several positions at once.
// Wide: the largest vectors of doubles
template <class Wide>
class RatesToPrevious {
 public:
  // messages: (T,), where they are written; rows: see SingleRows, not used without tables of floats
  RatesToPrevious(const ScaledArcs& arcs, float* rows, int n_labels, float* messages)
      : arcs_(arcs), rows_(rows, arcs.floats), n_labels_(n_labels), messages_(messages) {}

  bool full() const { return n_ == SingleRows::kMost; }
  // Adds the next position. sums: for each of its labels, over the labels before; message: that of
  // the labels before. Both are multiplied by `scale`, so that the message sums to 1. False if a
  // sum is too small for a float. All arrays: (stride,)
  HEDGEROW_INLINE bool add(const double* factors, const double* sums, const double* message,
                           double scale, int stride) {
    const int64_t at = int64_t{n_} * arcs_.floats;
    Lanes smallest = broadcast(1.0);
    for_each_vector<Wide>(stride, [&]<class Vector>(int k) HEDGEROW_INLINE_LAMBDA {
      const Vector scales = broadcast_to<Vector>(scale);
      const Vector sum =
          where_positive(load_as<Vector>(factors + k), load_as<Vector>(sums + k) * scales);
      for_each_part(one_if_zero(sum), [&](Lanes part, int) HEDGEROW_INLINE_LAMBDA {
        smallest = minimum(part, smallest);
      });
      store_inverses_as_floats(rows_.inverses() + at + k, sum);
      store_normal(rows_.after() + at + k, load_as<Vector>(message + k) * scales);
    });
    if (min_lane(smallest) < kSmallestFloat) return false;
    known_[n_++] = -1.0f;
    return true;
  }
  // Adds the next position, whose rate is known.
  void add(float rate) { known_[n_++] = rate; }
  // Writes the messages to the positions up to t.
  HEDGEROW_INLINE void write(int64_t t) {
    float rates[SingleRows::kMost];
    if (arcs_.single)
      fill_rates<FloatsAs<Wide>>(n_, rows_.inverses(), rows_.after(),
                                 arcs_.single_to_previous.data(), n_labels_, arcs_.floats, rates);
    float* message = messages_ + t + 1 - n_;
    for (int i = 0; i < n_; ++i, ++message)
      *message = (known_[i] < 0.0f ? rates[i] : known_[i]) * (1.0f + message[-1]);
    n_ = 0;
  }

 private:
  const ScaledArcs& arcs_;
  SingleRows rows_;
  int n_labels_, n_ = 0;
  float* messages_;
  float known_[SingleRows::kMost];  // rates that are not computed from rows, -1 for others
};

}  // namespace

ScaledArcs::ScaledArcs(const ChainScores& scores) : stride(padded(scores.n_labels)) {
  const int n_labels = scores.n_labels;
  const int64_t n_arcs = static_cast<int64_t>(n_labels) * n_labels;
  shift = *std::max_element(scores.arcs, scores.arcs + n_arcs);
  usable = std::isfinite(shift);
  holes = std::count(scores.arcs, scores.arcs + n_arcs, -kInfinity) > 0;
  if (!usable || scores.has_edges()) return;
  to_next.assign(static_cast<size_t>(stride) * stride, 0.0);
  to_previous.assign(static_cast<size_t>(n_labels) * stride, 0.0);
  for (int j = 0; j < n_labels; ++j)
    for (int k = 0; k < n_labels; ++k) {
      const double arc = scores.arcs[static_cast<int64_t>(j) * n_labels + k];
      const double factor = std::exp(arc - shift);
      // Twice the minimum, so that without holes beta never falls below it.
      if (arc > -kInfinity && !(factor >= 2 * kSmallest)) usable = false;
      to_next[static_cast<size_t>(j) * stride + k] = factor;
      to_previous[static_cast<size_t>(k) * stride + j] = factor;
    }
}

void ScaledArcs::fill_single() {
  if (to_next.empty()) return;
  const int64_t n_labels = static_cast<int64_t>(to_previous.size()) / stride;
  floats = padded_floats(static_cast<int>(n_labels));
  single = true;
  single_to_next.assign(n_labels * floats, 0.0f);
  single_to_previous.assign(n_labels * floats, 0.0f);
  for (int64_t j = 0; j < n_labels; ++j)
    for (int64_t k = 0; k < n_labels; ++k) {
      const double factor = to_next[j * stride + k];
      // Twice the minimum, so that without holes beta never falls below it.
      if (factor > 0.0 && factor < 2 * kSmallestFloat) single = false;
      single_to_next[j * floats + k] = single_to_previous[k * floats + j] =
          static_cast<float>(factor);
    }
}

ScaledChain::ScaledChain(const ChainScores& scores, const ScaledArcs& arcs, EdgeFactors& edges,
                         const ChainPosteriors& out)
    : scores_(scores),
      arcs_(arcs),
      edges_(edges),
      mixing_(out.mixing),
      single_(arcs.single && !out.pairs && !out.patterns && !out.by_label),
      sum_grid_(out.bound),
      curvature_grid_(curvature_grid(out.mixing ? out.mixing->bound : 0.0)),
      block_rows_(block_rows(arcs.stride)),
      rows_(static_cast<size_t>(arcs.stride) * 6),
      waiting_pairs_(scores.n_labels),
      totals_(scores.n_labels, arcs.stride, arcs.usable && out.pair_sums,
              arcs.usable && out.mixing && out.mixing->pair_curvature),
      single_totals_(scores.n_labels, arcs.floats, single_ && out.pair_sums,
                     single_ && out.mixing && out.mixing->pair_curvature) {
  if (!arcs.usable) return;
  const size_t stride = arcs.stride;
  block_.resize(block_rows_ * stride + kFactorSlack);
  maxima_.resize(block_rows_);
  if (arcs.single) single_rows_.resize(SingleRows::size(arcs.floats) + 2 * arcs.floats);
  if (out.pair_sums == nullptr) return;
  waiting_.resize(2 * kWaitingRows * stride);
}

void ScaledChain::fill_block(int64_t sequence, int64_t first) {
  const int n_labels = scores_.n_labels;
  const double* nodes = scores_.nodes + (scores_.offsets[sequence] + first) * n_labels;
  const int64_t n_rows = std::min(block_rows_, scores_.length(sequence) - first);
  fill_node_factors(nodes, n_rows, n_labels, block_.data(), maxima_.data());
}

PairTotals::PairTotals(int n_labels, int stride, bool sums, bool curvature)
    : n_labels_(n_labels), stride_(stride) {
  const size_t size = static_cast<size_t>(padded(n_labels)) * stride;
  if (sums) sums_.resize(size);
  if (curvature) curvature_.resize(size);
}

PairTables PairTotals::tables(double weight, SumGrid sum_grid, SumGrid curvature_grid) {
  return {sums_.empty() ? nullptr : sums_.data(), weight, sum_grid,
          curvature_.empty() ? nullptr : curvature_.data(), curvature_grid};
}

void PairTotals::keep() {
  sums_before_ = sums_;
  curvature_before_ = curvature_;
}

void PairTotals::restore() {
  std::swap(sums_, sums_before_);
  std::swap(curvature_, curvature_before_);
}

void PairTotals::add(const PaddedVector& table, double* out) const {
  if (table.empty()) return;
  const int64_t n_labels = n_labels_, stride = stride_;
  for (int64_t j = 0; j < n_labels; ++j)
    for (int64_t k = 0; k < n_labels; ++k) out[j * n_labels + k] += table[j * stride + k];
}

void ScaledChain::add_pair_sums(double* pair_sums) const {
  totals_.add_sums(pair_sums);
  single_totals_.add_sums(pair_sums);
}

void ScaledChain::add_pair_curvature(double* pair_curvature) const {
  totals_.add_curvature(pair_curvature);
  single_totals_.add_curvature(pair_curvature);
}

// alpha_t[k] = exp(nodes[t, k]) sum_j alpha_{t-1}[j] exp(arcs[j, k]), each row divided by the sum
// of the row before; log Z is the sum of the logs of all that was divided out. Where there are
// edges, here and below, arcs + edges[t] replace the arcs.
template <class Wide>
HEDGEROW_INLINE void ScaledChain::run_forward(int64_t sequence, const int32_t* labels,
                                              double* alphas, Stop& stop, bool& done) {
  done = false;
  const int n_labels = scores_.n_labels, stride = arcs_.stride;
  double* alpha = rows_.data();
  double* next = alpha + stride;
  double* scratch = next + stride;
  const Row row(n_labels);
  const Lanes padding = padding_ones(n_labels);
  float* messages = mixing_ ? mixing_->node_gammas + scores_.offsets[sequence] : nullptr;
  const double* all_nodes = scores_.nodes + scores_.offsets[sequence] * n_labels;
  const int64_t length = scores_.length(sequence);
  const int64_t n_inner = length - row.n_outer_rows();
  LogProduct scale;
  ExactSum shifts, path;
  double per_sum = 1.0;
  const double* matrix = arcs_.to_next.data();
  double arc_shift = arcs_.shift;
  const bool edges = edges_.given();
  RatesToPrevious<Wide> rates(arcs_, single_rows_.data(), n_labels, messages);
  edges_.open(sequence, alphas != nullptr);

  for (int64_t t = 0; t < length; ++t) {
    const double* nodes = all_nodes + t * n_labels;
    const int64_t in_block = t & (block_rows_ - 1);
    if (t % kCheckEvery == 0) stop.check();
    if (in_block == 0) fill_block(sequence, t);
    const double* factors = block_.data() + in_block * stride;
    const double maximum_node = maxima_[in_block];
    if (!(maximum_node > -kInfinity)) return;
    if (edges && t > 0) {
      if (!edges_.fill(t)) return;
      matrix = edges_.at(t);
      arc_shift = edges_.shift(t);
    }
    if (t > 0) {
      multiply<Wide>(alpha, matrix, n_labels, stride, next);
    } else {
      std::fill(next, next + stride, 1.0);
    }
    // beta_{t-1->t} of Eq. 17, kept where the gammas will be.
    if (messages != nullptr && t == 0) messages[t] = 0.0f;
    if (messages != nullptr && t > 0) {
      const bool in_single = arcs_.single && rates.add(factors, next, alpha, per_sum, stride);
      if (!in_single)
        rates.add(rate_to_previous(factors, next, matrix, alpha, n_labels, stride, scratch));
      if (rates.full() || t + 1 == length) rates.write(t);
    }
    Lanes sums = broadcast(0.0), smallest = broadcast(1.0);
    for_each_vector<Wide>(stride, [&]<class Vector>(int k) HEDGEROW_INLINE_LAMBDA {
      const Vector entries =
          load_as<Vector>(next + k) * load_as<Vector>(factors + k) * broadcast_to<Vector>(per_sum);
      store_all(next + k, entries);
      for_each_part(entries, [&](Lanes part, int i) HEDGEROW_INLINE_LAMBDA {
        sums += part;
        smallest = minimum(k + i + kLanes == stride ? part + padding : part, smallest);
      });
    });
    const double sum = sum_lanes(sums);
    if (!(sum > 0.0)) return;
    if (min_lane(smallest) < kSmallest &&
        lost_path(next, n_labels, t > 0 ? alpha : nullptr, {matrix, stride, 1}, nodes))
      return;
    std::swap(alpha, next);
    if (alphas != nullptr) row.copy_from_padded(alpha, t < n_inner, alphas + t * n_labels);
    per_sum = 1.0 / sum;
    scale.multiply(sum);
    shifts.add(maximum_node);
    if (t > 0) shifts.add(arc_shift);
    if (labels != nullptr) {
      path.add(nodes[labels[t]] - maximum_node);
      if (t > 0)
        path.add(scores_.arc_score(scores_.offsets[sequence] + t, labels[t - 1], labels[t]) -
                 arc_shift);
    }
  }
  log_z_ = shifts.value() + scale.log();
  log_likelihood_ = path.value() - scale.log();
  done = true;
}

bool ScaledChain::forward(int64_t sequence, const int32_t* labels, double* alphas, Stop& stop) {
  static const auto kernel = eight_wide_clone<forward_with<EightLanes>, forward_with<Lanes>>();
  bool done;
  kernel(*this, sequence, labels, alphas, stop, done);
  return done;
}

// beta_{t-1}[j] = sum_k exp(arcs[j, k]) v_t[k], where v_t[k] = exp(nodes[t, k]) beta_t[k] divided
// by its sum. With n_t = sum_k alpha_t[k] beta_t[k]:
//   P(y_t = k) = alpha_t[k] beta_t[k] / n_t
//   P(y_{t-1} = j, y_t = k) = alpha_{t-1}[j] exp(arcs[j, k]) v_t[k] / n_{t-1}.
template <class Wide>
HEDGEROW_INLINE void ScaledChain::run_backward(int64_t sequence, double* alphas, double weight,
                                               PairRows& pairs, Stop& stop, bool& done) {
  done = false;
  const int n_labels = scores_.n_labels, stride = arcs_.stride;
  double* alpha = rows_.data();
  double* beta = alpha + stride;
  double* product = beta + stride;
  double* after = product + stride;  // v_{t+1}
  double* scratch = after + stride;  // two rows
  double* waiting = waiting_.data();
  double* waiting_after = waiting + kWaitingRows * static_cast<int64_t>(stride);
  const Row row(n_labels);
  const Lanes padding = padding_ones(n_labels);
  const int64_t length = scores_.length(sequence);
  const int64_t n_inner = length - row.n_outer_rows();
  const bool edges = edges_.given();
  const bool each_pair = edges || mixing_ != nullptr;  // not by outer products
  const double* matrix = arcs_.to_next.data();         // of the arcs into t + 1
  BackwardMixing mixing(mixing_, sequence, scores_.offsets[sequence], length);
  const PairTables tables = totals_.tables(weight, sum_grid_, curvature_grid_);
  if (arcs_.holes) totals_.keep();  // without holes, the backward pass is never refused
  waiting_pairs_.clear();
  int n_waiting = 0;

  std::fill(alpha, alpha + stride, 0.0);
  std::fill(beta, beta + stride, 0.0);
  std::fill(beta, beta + n_labels, 1.0);
  for (int64_t t = length - 1; t >= 0; --t) {
    if (t % kCheckEvery == 0) stop.check();
    double* marginals = alphas + t * n_labels;  // still alpha_t
    row.copy_to_padded(marginals, t < n_inner, alpha);
    const double per_norm = 1.0 / multiply_rows<Wide>(alpha, beta, stride, product);
    scale_row<Wide>(per_norm, product, stride, product);
    row.copy_from_padded(product, false, marginals);
    const LikelyLabel likely =
        tables.curvature == nullptr ? LikelyLabel() : find_likely(product, stride);
    mixing.arrive(t, likely);

    // forward() has left the factors of the last block; those of other blocks are recomputed.
    const int64_t in_block = t & (block_rows_ - 1);
    if (in_block == block_rows_ - 1 && t + 1 < length) fill_block(sequence, t - in_block);
    const double* factors = block_.data() + in_block * stride;
    if (t + 1 < length) scale_row<Wide>(per_norm, alpha, stride, alpha);
    if (t + 1 < length && pairs.wanted()) {
      fill_pairs(alpha, matrix, after, n_labels, stride, pairs.row(t + 1));
      pairs.close(t + 1);
    }
    if (t + 1 < length && each_pair) {
      waiting_pairs_.add(alpha, matrix, after, mixing.weight() * mixing.pair_gamma(),
                         mixing.likely().label, mixing.likely_after().label, product);
    } else if (t + 1 < length && tables.sums != nullptr) {
      scale_row<Wide>(weight, alpha, stride, waiting + n_waiting * stride);
      scale_row<Wide>(1.0, after, stride, waiting_after + n_waiting * stride);
      ++n_waiting;
    }
    if (mixing_ != nullptr && t + 1 < length)
      mixing.leave(rate_to_next(factors, beta, matrix, after, n_labels, stride, scratch));
    mixing.write();
    if (each_pair && (waiting_pairs_.full() || t == 0 || (edges && !edges_.keeps(t))))
      waiting_pairs_.flush(tables);
    if (n_waiting == kWaitingRows || (n_waiting > 0 && t == 0)) {
      add_outer<Wide>(waiting, waiting_after, n_waiting, stride, matrix, sum_grid_, tables.sums);
      n_waiting = 0;
    }
    if (t == 0) break;

    const double per_sum = 1.0 / multiply_rows<Wide>(factors, beta, stride, product);
    if (edges) {
      matrix = edges_.at(t);
      multiply_by_rows(matrix, product, stride, beta);
    } else {
      multiply<Wide>(product, arcs_.to_previous.data(), n_labels, stride, beta);
    }
    Lanes smallest = broadcast(1.0);
    for_each_vector<Wide>(stride, [&]<class Vector>(int k) HEDGEROW_INLINE_LAMBDA {
      const Vector scale = broadcast_to<Vector>(per_sum);
      const Vector entries = load_as<Vector>(beta + k) * scale;
      store_all(beta + k, entries);
      store_all(after + k, load_as<Vector>(product + k) * scale);
      for_each_part(entries, [&](Lanes part, int i) HEDGEROW_INLINE_LAMBDA {
        smallest = minimum(k + i + kLanes == stride ? part + padding : part, smallest);
      });
    });
    if (min_lane(smallest) < kSmallest &&
        lost_path(beta, n_labels, after, {matrix, 1, stride}, nullptr)) {
      totals_.restore();
      return;
    }
  }
  if (pairs.wanted() && length > 0) pairs.close_first();
  done = true;
}

bool ScaledChain::backward(int64_t sequence, double* alphas, double weight, PairRows& pairs,
                           Stop& stop) {
  static const auto kernel = eight_wide_clone<backward_with<EightLanes>, backward_with<Lanes>>();
  bool done;
  kernel(*this, sequence, alphas, weight, pairs, stop, done);
  return done;
}

}  // namespace hedgerow
