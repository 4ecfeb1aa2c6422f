// The backward pass of ScaledChain in single precision.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "simd.hpp"
#include "trellis/backward_mixing.hpp"
#include "trellis/scaled.hpp"
#include "trellis/single_loops.hpp"

namespace hedgerow {
namespace {

// Is some row[i] too small for a float although a path leads to it? See lost_path for doubles.
// arcs: (K, stride) [r, i]
inline bool lost_path(const float* row, int n_labels, const float* before, const float* arcs,
                      int stride) {
  for (int i = 0; i < n_labels; ++i)
    for (int r = 0; row[i] < kSmallestFloat && r < n_labels; ++r)
      if (before[r] > 0.0f && arcs[int64_t{r} * stride + i] > 0.0f) return true;
  return false;
}

// Is the product of a positive factor and beta too small for a float?
HEDGEROW_INLINE bool lost_label(const double* factors, const float* beta, int stride) {
  Lanes smallest = broadcast(1.0);
  for (int k = 0; k < stride; k += kLanes) {
    const Lanes factor = load(factors + k), product = factor * load_from_floats(beta + k);
    smallest = minimum(one_if_zero(product), minimum(one_if_zero(factor), smallest));
  }
  return min_lane(smallest) < kSmallestFloat;
}

// The positions whose pairs are still to be added. Wide: the largest vectors, as in
// single_loops.hpp
template <class Wide>
class SinglePairs {
 public:
  // reach: (floats,) scratch
  SinglePairs(const ScaledArcs& arcs, int n_labels, const SingleRows& rows, float* reach,
              const PairTables& out)
      : arcs_(arcs), n_labels_(n_labels), rows_(rows), reach_(reach), out_(out) {}

  bool full() const { return n_ == SingleRows::kMost; }
  // The row of the next position.
  HEDGEROW_INLINE int64_t at() const { return row(n_); }
  void add(const LikelyLabel& likely) { likely_[n_++] = likely; }

  // Adds the pairs of all positions, of which the first is t. What is known of the next position
  // becomes the first row.
  HEDGEROW_INLINE void flush(int64_t t, BackwardMixing& mixing) {
    float rates[SingleRows::kMost];
    fill_rates<Wide>(n_, rows_.inverses(), rows_.after(), arcs_.single_to_next.data(), n_labels_,
                     arcs_.floats, rates);
    for (int w = 0; w < n_; ++w) {
      mixing.arrive(t + n_ - 1 - w, likely_[w]);
      const float gamma = mixing.pair_gamma();
      if (out_.curvature != nullptr) weigh(w, gamma, mixing);
      mixing.leave(rates[w]);
      mixing.write();
    }
    add_rows(mixing.weight());
    for (float* rows : {rows_.after(), rows_.beta()}) std::copy_n(rows + at(), arcs_.floats, rows);
    n_ = 0;
  }

 private:
  HEDGEROW_INLINE int64_t row(int64_t i) const { return i * arcs_.floats; }
  double least() const { return 0.499 * out_.curvature_grid.unit(); }

  // Computes the row of outer products w, without those pairs that are added here.
  HEDGEROW_INLINE void weigh(int w, float gamma, const BackwardMixing& mixing) {
    rows_.template weigh<Wide>(w, gamma, reach_);
    const LikelyLabel &likely = mixing.likely(), &likely_after = mixing.likely_after();
    if (likely.label < 0 || likely_after.label < 0) return;
    const int64_t j = likely.label, k = likely_after.label;
    rows_.weighted()[row(w) + j] = rows_.squares()[row(w) + j] = 0.0f;
    // All would be rounded to 0: the probability of other pairs, and 1 - P of this one, is at most
    // this sum.
    if (mixing.weight() * gamma * (likely.others + likely_after.others) < least()) return;
    const float* before = rows_.before() + row(w);
    const float* after = rows_.after() + row(w);
    const float* arcs = arcs_.single_to_previous.data() + row(k);
    Floats sums = broadcast(0.0f);
    for (int i = 0; i < arcs_.floats; i += kFloats) {
      const Floats distance = count_up() + broadcast(static_cast<float>(i - j));
      sums += if_positive(distance * distance, load(before + i) * load(arcs + i), broadcast(0.0f));
    }
    const double others = double{fold_lanes<Total>(sums)} * after[k];
    add_likely_row(before[j], arcs_.single_to_next.data() + row(j), after, gamma, mixing.weight(),
                   arcs_.floats, k, likely_after.others + others, out_.curvature_grid,
                   out_.curvature + row(j));
  }

  // Adds all rows of outer products. Curvatures that would be rounded to 0, since the label before
  // is too unlikely, are left out. weight: of the curvature
  HEDGEROW_INLINE void add_rows(double weight) const {
    const SingleRows rows = rows_;
    const double least = this->least();
    const int n = n_, n_labels = out_.wanted() ? n_labels_ : 0;
    const float* reach = reach_;
    for_each_block<Wide>(
        rows.stride, [&]<class Vector, int kVectors>(int c) HEDGEROW_INLINE_LAMBDA {
          PairTables out = out_;
          if (out.sums != nullptr) out.sums += c;
          if (out.curvature != nullptr) out.curvature += c;
          const float* arcs = arcs_.single_to_next.data() + c;
          for (int64_t j = 0; j < n_labels; ++j, arcs += rows.stride) {
            if (out.curvature != nullptr && weight * reach[j] >= least)
              add_pair_block<Vector, kVectors, true>(rows, n, j, c, arcs, out, weight);
            else if (out.sums != nullptr)
              add_pair_block<Vector, kVectors, false>(rows, n, j, c, arcs, out, weight);
            if (out.sums != nullptr) out.sums += rows.stride;
            if (out.curvature != nullptr) out.curvature += rows.stride;
          }
        });
  }

  const ScaledArcs& arcs_;
  int n_labels_, n_ = 0;
  SingleRows rows_;
  float* reach_;
  PairTables out_;
  LikelyLabel likely_[SingleRows::kMost];
};

}  // namespace

// As ScaledChain::backward, with the same letters. Alpha and marginals are doubles. A positive
// factor that is too small for a float is replaced by the smallest one: its label then has a
// probability below kLargestSingle^2 * kSmallestFloat. Where arcs are forbidden it might be the
// only label that another one leads to, and the sequence is refused.
template <class Wide>
HEDGEROW_INLINE void ScaledChain::run_backward_in_single(int64_t sequence, double* alphas,
                                                         double weight, Stop& stop, bool& done) {
  using Doubles = DoublesAs<Wide>;
  done = false;
  const int n_labels = scores_.n_labels, stride = arcs_.stride, floats = arcs_.floats;
  double* alpha = rows_.data();
  double* product = alpha + stride;
  const SingleRows rows(single_rows_.data(), floats);
  float* ones = single_rows_.data() + SingleRows::size(floats);  // beta of the last position
  const Row row(n_labels);
  const int64_t length = scores_.length(sequence);
  const int64_t n_inner = length - row.n_outer_rows();
  BackwardMixing mixing(mixing_, sequence, scores_.offsets[sequence], length);
  const PairTables tables = single_totals_.tables(weight, sum_grid_, curvature_grid_);
  SinglePairs<Wide> pairs(arcs_, n_labels, rows, ones + floats, tables);
  bool added = false;
  const auto refuse = [&] {
    if (added) single_totals_.restore();
  };

  std::fill(ones, ones + n_labels, 1.0f);
  for (int64_t t = length - 1; t >= 0; --t) {
    if (t % kCheckEvery == 0) stop.check();
    const int64_t in_block = t & (block_rows_ - 1);
    if (in_block == block_rows_ - 1 && t + 1 < length) fill_block(sequence, t - in_block);
    const double* factors = block_.data() + in_block * stride;
    const bool last = t + 1 == length;
    const int64_t at = pairs.at(), next = last ? at : at + floats;
    const float* beta = last ? ones : rows.beta() + at;

    // The next step comes first, as the one after it waits for its result.
    float* after = rows.after() + next;
    Floats sums = broadcast(0.0f);
    for (int k = 0; k < floats; k += kFloats) {
      const Floats possible = load_as_floats<Doubles>(factors, k, stride);
      const Floats entries = possible * load(beta + k);
      store(after + k, entries);
      sums += entries;
      store(rows.inverses() + at + k,
            if_positive(possible, broadcast(1.0f) / load(beta + k),
                        broadcast(std::numeric_limits<float>::infinity())));
    }
    const float sum = fold_lanes<Total>(sums), per_sum = 1.0f / sum;
    if (!(sum * kLargestSingle >= 1.0)) return refuse();
    if (arcs_.holes && lost_label(factors, beta, stride)) return refuse();
    if (t > 0)
      multiply<Wide>(after, arcs_.single_to_previous.data(), n_labels, floats, per_sum,
                     rows.beta() + next);
    for_each_block<Wide>(floats, [&]<class Vector, int kVectors>(int c) HEDGEROW_INLINE_LAMBDA {
      for (int k = c; k < c + kVectors * kFloatsIn<Vector>; k += kFloatsIn<Vector>)
        store_floats(after + k, load_floats<Vector>(after + k) * broadcast_floats<Vector>(per_sum));
    });
    if (t > 0 && arcs_.holes &&
        lost_path(rows.beta() + next, n_labels, after, arcs_.single_to_previous.data(), floats))
      return refuse();

    double* marginals = alphas + t * n_labels;  // still alpha_t
    Lanes norms = broadcast(0.0), totals = broadcast(0.0), largest = broadcast(0.0);
    row.copy_to_padded(marginals, t < n_inner, alpha);
    for_each_vector<Doubles>(stride, [&]<class Vector>(int k) HEDGEROW_INLINE_LAMBDA {
      const Vector entries = load_as<Vector>(alpha + k);
      const Vector products = entries * load_as<Vector>(beta + k);
      store_all(product + k, products);
      add_parts(entries, totals);
      for_each_part(products, [&](Lanes part, int) HEDGEROW_INLINE_LAMBDA {
        norms += part;
        largest = maximum(part, largest);
      });
    });
    const double norm = sum_lanes(norms);
    if (!(sum_lanes(totals) <= norm * kLargestSingle)) return refuse();
    const double per_norm = 1.0 / norm;
    float* before = rows.before() + at;
    for_each_vector<Doubles>(stride, [&]<class Vector>(int k) HEDGEROW_INLINE_LAMBDA {
      const Vector scale = broadcast_to<Vector>(per_norm);
      store_all(product + k, load_as<Vector>(product + k) * scale);
      store_normal(before + k, load_as<Vector>(alpha + k) * scale);
    });
    row.copy_from_padded(product, false, marginals);
    const LikelyLabel likely =
        tables.curvature == nullptr
            ? LikelyLabel()
            : find_likely<Doubles>(product, stride, max_lane(largest) * per_norm);
    if (last) {
      mixing.arrive(t, likely);
      mixing.write();
      continue;
    }
    pairs.add(likely);
    if (!pairs.full() && t > 0) continue;
    if (!added && t > 0) single_totals_.keep();
    added = true;
    pairs.flush(t, mixing);
  }
  done = true;
}

bool ScaledChain::backward_in_single(int64_t sequence, double* alphas, double weight, Stop& stop) {
  static const auto kernel =
      eight_wide_clone<backward_in_single_with<SixteenFloats>, backward_in_single_with<Floats>>();
  bool done;
  kernel(*this, sequence, alphas, weight, stop, done);
  return done;
}

}  // namespace hedgerow
