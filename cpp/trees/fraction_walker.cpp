#include "trees/fraction_walker.hpp"

#include "simd.hpp"

namespace hedgerow {
namespace {

// A question about bins. What is outside, below 0, goes left.
struct LaneQuestion {
  HEDGEROW_INLINE LaneQuestion(double cut, double of_missing)
      : cut(broadcast(cut)), of_missing(broadcast(of_missing)) {}

  // The shares of positions that go left.
  HEDGEROW_INLINE Lanes ask(Lanes bins) const {
    const Lanes of_known = where_at_least(cut - bins, 0.0, broadcast(1.0));
    return if_positive(bins * bins, of_known, of_missing);
  }

  Lanes cut, of_missing;
};

// No fused multiply-add on any processor: without missing values, scores equal those of other
// walks.
HEDGEROW_CLONES_WITHOUT_FMA Flow divide_shares(const double* bins, double cut, double of_missing,
                                               double* here, double* left) {
  const LaneQuestion question(cut, of_missing);
  Lanes most_left = broadcast(0.0), most_right = broadcast(0.0);
  for (int64_t i = 0; i < kWalkBlock; i += kLanes) {
    const Lanes share = question.ask(load(bins + i)), all = load(here + i);
    const Lanes to_left = all * share, to_right = all * (broadcast(1.0) - share);
    store(left + i, to_left);
    store(here + i, to_right);
    most_left = maximum(to_left, most_left);
    most_right = maximum(to_right, most_right);
  }
  return {max_lane(most_left) > 0.0, max_lane(most_right) > 0.0};
}

HEDGEROW_CLONES_WITHOUT_FMA void add_value(const double* shares, double value, double* values) {
  const Lanes all = broadcast(value);
  for (int64_t i = 0; i < kWalkBlock; i += kLanes)
    store(values + i, load(values + i) + load(shares + i) * all);
}

HEDGEROW_CLONES_WITHOUT_FMA void add_two_values(const double* bins, double cut, double of_missing,
                                                const double* here, double left_value,
                                                double right_value, double* values) {
  const LaneQuestion question(cut, of_missing);
  for (int64_t i = 0; i < kWalkBlock; i += kLanes) {
    const Lanes share = question.ask(load(bins + i)), all = load(here + i);
    const Lanes to_left = all * share, to_right = all * (broadcast(1.0) - share);
    store(values + i,
          (load(values + i) + to_left * broadcast(left_value)) + to_right * broadcast(right_value));
  }
}

}  // namespace

FractionMethod::FractionMethod(const TreeArrays& trees, NumberedFeatures& features)
    : arrays_(trees) {
  for (int64_t n = 0; n < trees.n_nodes(); ++n)
    features_.push_back(trees.columns[n] < 0 ? -1
                                             : features.number(trees.columns[n], trees.offsets[n]));
}

FractionMethod::Question FractionMethod::ask(int64_t node, BlockBins<Lane>& bins) const {
  const int32_t feature = features_[node];
  const auto of_missing = static_cast<double>(arrays_.fractions[node]);
  if (arrays_.sets[node] < 0)
    return {bins.of(feature), static_cast<double>(arrays_.cuts[node]), of_missing};
  const auto is_left = [&](uint8_t bin) { return goes_left(arrays_, node, bin); };
  return {bins.by_set(feature, is_left), 1.0, of_missing};
}

Flow FractionMethod::divide(int64_t node, BlockBins<Lane>& bins, Lane* here, Lane* left) const {
  const auto [values, cut, of_missing] = ask(node, bins);
  return divide_shares(values, cut, of_missing, here, left);
}

void FractionMethod::add_leaf(int64_t, int64_t node, const Lane* here, Values& values) const {
  add_value(here, static_cast<double>(arrays_.values[node]), values.data());
}

void FractionMethod::divide_into_leaves(int64_t first, int64_t node, BlockBins<Lane>& bins,
                                        const Lane* here, Values& values) const {
  const auto [asked, cut, of_missing] = ask(node, bins);
  const float* leaves = arrays_.values.data() + first + arrays_.lefts[node];
  add_two_values(asked, cut, of_missing, here, static_cast<double>(leaves[0]),
                 static_cast<double>(leaves[1]), values.data());
}

}  // namespace hedgerow
