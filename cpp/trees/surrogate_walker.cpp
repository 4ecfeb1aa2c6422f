#include "trees/surrogate_walker.hpp"

#include "simd.hpp"

namespace hedgerow {
namespace {

using SurrogateLane = SurrogateMethod::Lane;

// Finds those `here` whose bins go left, and those that miss theirs, which stay; returns whether
// there are any of these.
HEDGEROW_CLONES bool ask_bins(const SurrogateLane* HEDGEROW_RESTRICT bins, SurrogateLane cut,
                              const SurrogateLane* HEDGEROW_RESTRICT here,
                              SurrogateLane* HEDGEROW_RESTRICT left,
                              SurrogateLane* HEDGEROW_RESTRICT missing) {
  SurrogateLane any = 0;
  for (int64_t i = 0; i < kWalkBlock; ++i) {
    const SurrogateLane if_left = bins[i] <= cut ? here[i] : SurrogateLane{0};
    left[i] = bins[i] == 0 ? SurrogateLane{0} : if_left;
    missing[i] = bins[i] == 0 ? here[i] : SurrogateLane{0};
    any |= missing[i];
  }
  return any != 0;
}

// Asks a surrogate for the positions that are missing still; returns whether there are any left.
HEDGEROW_CLONES bool ask_surrogate(const SurrogateLane* HEDGEROW_RESTRICT bins, SurrogateLane cut,
                                   SurrogateLane if_reversed, SurrogateLane* HEDGEROW_RESTRICT left,
                                   SurrogateLane* HEDGEROW_RESTRICT missing) {
  SurrogateLane any = 0;
  for (int64_t i = 0; i < kWalkBlock; ++i) {
    const SurrogateLane is_known = bins[i] > 0 ? missing[i] : SurrogateLane{0};
    const SurrogateLane is_left = bins[i] <= cut ? SurrogateLane{-1} : SurrogateLane{0};
    left[i] |= is_known & (is_left ^ if_reversed);
    missing[i] ^= is_known;
    any |= missing[i];
  }
  return any != 0;
}

HEDGEROW_CLONES Flow take_left(const SurrogateLane* HEDGEROW_RESTRICT left,
                               SurrogateLane* HEDGEROW_RESTRICT here) {
  SurrogateLane any_left = 0, any_right = 0;
  for (int64_t i = 0; i < kWalkBlock; ++i) {
    here[i] ^= left[i];
    any_left |= left[i];
    any_right |= here[i];
  }
  return {any_left != 0, any_right != 0};
}

HEDGEROW_CLONES void mark_leaf(const SurrogateLane* HEDGEROW_RESTRICT here, SurrogateLane leaf,
                               SurrogateLane* HEDGEROW_RESTRICT leaves) {
  for (int64_t i = 0; i < kWalkBlock; ++i) leaves[i] |= here[i] & leaf;
}

}  // namespace

SurrogateMethod::SurrogateMethod(const TreeArrays& trees, NumberedFeatures& features)
    : arrays_(trees) {
  for (int64_t n = 0; n < trees.n_nodes(); ++n)
    features_.push_back(trees.columns[n] < 0 ? -1
                                             : features.number(trees.columns[n], trees.offsets[n]));
  for (int64_t i = 0; i < trees.n_surrogates(); ++i)
    surrogate_features_.push_back(
        features.number(trees.surrogate_columns[i], trees.surrogate_offsets[i]));
}

Flow SurrogateMethod::divide(int64_t node, BlockBins<Lane>& bins, Lane* here, Lane* left) const {
  const auto is_left = [&](uint8_t bin) { return goes_left(arrays_, node, bin); };
  const bool has_set = arrays_.sets[node] >= 0;
  const Lane* asked = has_set ? bins.by_set(features_[node], is_left) : bins.of(features_[node]);
  const auto cut = static_cast<Lane>(has_set ? 1 : arrays_.cuts[node]);
  Lane missing[kWalkBlock];
  if (ask_bins(asked, cut, here, left, missing)) answer_missing(node, bins, missing, left);
  return take_left(left, here);
}

// By the first surrogate that is known; without any, as the split does.
void SurrogateMethod::answer_missing(int64_t node, BlockBins<Lane>& bins, Lane* missing,
                                     Lane* left) const {
  const int64_t end = arrays_.surrogate_starts[node + 1];
  for (int64_t i = arrays_.surrogate_starts[node]; i < end; ++i) {
    const auto is_left = [&](uint8_t bin) { return surrogate_goes_left(arrays_, i, bin); };
    const bool has_set = arrays_.surrogate_sets[i] >= 0;
    const Lane* asked =
        has_set ? bins.by_set(surrogate_features_[i], is_left) : bins.of(surrogate_features_[i]);
    const auto cut = static_cast<Lane>(has_set ? 1 : arrays_.surrogate_cuts[i]);
    const auto if_reversed = static_cast<Lane>(has_set || !arrays_.surrogate_reversed[i] ? 0 : -1);
    if (!ask_surrogate(asked, cut, if_reversed, left, missing)) return;
  }
  if (goes_left(arrays_, node, 0))
    for (int64_t i = 0; i < kWalkBlock; ++i) left[i] |= missing[i];
}

void SurrogateMethod::add_leaf(int64_t first, int64_t node, const Lane* here,
                               Values& values) const {
  mark_leaf(here, static_cast<Lane>(node - first), values.data());
}

void SurrogateMethod::divide_into_leaves(int64_t first, int64_t node, BlockBins<Lane>& bins,
                                         Lane* here, Values& values) const {
  Lane left[kWalkBlock];
  divide(node, bins, here, left);
  const int64_t child = first + arrays_.lefts[node];
  add_leaf(first, child, left, values);
  add_leaf(first, child + 1, here, values);
}

}  // namespace hedgerow
