#include "trees/surrogate_walker.hpp"

#include <algorithm>
#include <utility>

#include "simd.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kBlock = SurrogateMethod::kBlock;
using SurrogateLane = int16_t;

// Finds the positions `here` whose bins go left, and those whose value is missing, which stay;
// returns whether there are any of the latter.
HEDGEROW_CLONES bool ask_bins(const SurrogateLane* HEDGEROW_RESTRICT bins, SurrogateLane cut,
                              const SurrogateLane* HEDGEROW_RESTRICT here,
                              SurrogateLane* HEDGEROW_RESTRICT left,
                              SurrogateLane* HEDGEROW_RESTRICT missing) {
  SurrogateLane any = 0;
  for (int64_t i = 0; i < kBlock; ++i) {
    const SurrogateLane if_left = bins[i] <= cut ? here[i] : SurrogateLane{0};
    left[i] = bins[i] == 0 ? SurrogateLane{0} : if_left;
    missing[i] = bins[i] == 0 ? here[i] : SurrogateLane{0};
    any |= missing[i];
  }
  return any != 0;
}

// Applies a surrogate to the positions whose side is still unknown; returns whether any remain.
HEDGEROW_CLONES bool ask_surrogate(const SurrogateLane* HEDGEROW_RESTRICT bins, SurrogateLane cut,
                                   SurrogateLane if_reversed, SurrogateLane* HEDGEROW_RESTRICT left,
                                   SurrogateLane* HEDGEROW_RESTRICT missing) {
  SurrogateLane any = 0;
  for (int64_t i = 0; i < kBlock; ++i) {
    const SurrogateLane is_known = bins[i] > 0 ? missing[i] : SurrogateLane{0};
    const SurrogateLane is_left = bins[i] <= cut ? SurrogateLane{-1} : SurrogateLane{0};
    left[i] |= is_known & (is_left ^ if_reversed);
    missing[i] ^= is_known;
    any |= missing[i];
  }
  return any != 0;
}

// Removes from `here` the positions that go left; returns whether any go left, and whether any
// remain.
HEDGEROW_CLONES std::pair<bool, bool> take_left(const SurrogateLane* HEDGEROW_RESTRICT left,
                                                SurrogateLane* HEDGEROW_RESTRICT here) {
  SurrogateLane any_left = 0, any_right = 0;
  for (int64_t i = 0; i < kBlock; ++i) {
    here[i] ^= left[i];
    any_left |= left[i];
    any_right |= here[i];
  }
  return {any_left != 0, any_right != 0};
}

HEDGEROW_CLONES void mark_leaf(const SurrogateLane* HEDGEROW_RESTRICT here, SurrogateLane leaf,
                               SurrogateLane* HEDGEROW_RESTRICT leaves) {
  for (int64_t i = 0; i < kBlock; ++i) leaves[i] |= here[i] & leaf;
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

void SurrogateMethod::Walk::run(int64_t first, int64_t n, BlockBins<kBlock>& bins) {
  first_ = first;
  leaves_.fill(0);
  open_.assign(1, first);
  lanes_.resize(std::max<size_t>(lanes_.size(), kBlock));
  std::fill_n(lanes_.data(), kBlock, Lane{0});
  std::fill_n(lanes_.data(), n, Lane{-1});
  while (!open_.empty()) {
    const int64_t node = open_.back();
    const size_t place = (open_.size() - 1) * kBlock;
    open_.pop_back();
    lanes_.resize(std::max<size_t>(lanes_.size(), place + 2 * kBlock));
    Lane* here = lanes_.data() + place;
    if (method_.arrays_.columns[node] < 0)
      mark_leaf(here, static_cast<Lane>(node - first), leaves_.data());
    else
      split(node, bins, here, here + kBlock);
  }
}

void SurrogateMethod::Walk::split(int64_t node, BlockBins<kBlock>& bins, Lane* here, Lane* left) {
  const TreeArrays& arrays = method_.arrays_;
  Flow flow = divide(node, bins, here, left);
  if (arrays.offsets[node] != 0 && !arrays.outside_left[node])
    move_outside(node, bins, here, left, flow);
  // The left child is next, and the right one takes the place of their parent.
  const int64_t child = first_ + arrays.lefts[node];
  if (!flow.right && flow.left) std::copy_n(left, kBlock, here);
  if (flow.right) open_.push_back(child + 1);
  if (flow.left) open_.push_back(child);
}

// Moves the positions that go left. Those outside always do here; move_outside corrects that.
SurrogateMethod::Walk::Flow SurrogateMethod::Walk::divide(int64_t node, BlockBins<kBlock>& bins,
                                                          Lane* here, Lane* left) const {
  const TreeArrays& arrays = method_.arrays_;
  const int32_t feature = method_.features_[node];
  const auto is_left = [&](uint8_t bin) { return goes_left(arrays, node, bin); };
  const bool has_set = arrays.sets[node] >= 0;
  const Lane* asked = has_set ? bins.by_set(feature, is_left) : bins.of(feature);
  const auto cut = static_cast<Lane>(has_set ? 1 : arrays.cuts[node]);
  Lane missing[kBlock];
  if (ask_bins(asked, cut, here, left, missing)) answer_missing(node, bins, missing, left);
  const auto [any_left, any_right] = take_left(left, here);
  return {any_left, any_right};
}

// Decides by the first surrogate whose value is known; if there is none, as the split does.
void SurrogateMethod::Walk::answer_missing(int64_t node, BlockBins<kBlock>& bins, Lane* missing,
                                           Lane* left) const {
  const TreeArrays& arrays = method_.arrays_;
  const int64_t end = arrays.surrogate_starts[node + 1];
  for (int64_t i = arrays.surrogate_starts[node]; i < end; ++i) {
    const int32_t feature = method_.surrogate_features_[i];
    const auto is_left = [&](uint8_t bin) { return surrogate_goes_left(arrays, i, bin); };
    const bool has_set = arrays.surrogate_sets[i] >= 0;
    const Lane* asked = has_set ? bins.by_set(feature, is_left) : bins.of(feature);
    const auto cut = static_cast<Lane>(has_set ? 1 : arrays.surrogate_cuts[i]);
    const auto if_reversed = static_cast<Lane>(has_set || !arrays.surrogate_reversed[i] ? 0 : -1);
    if (!ask_surrogate(asked, cut, if_reversed, left, missing)) return;
  }
  if (goes_left(arrays, node, 0))
    for (int64_t i = 0; i < kBlock; ++i) left[i] |= missing[i];
}

void SurrogateMethod::Walk::move_outside(int64_t node, const BlockBins<kBlock>& bins, Lane* here,
                                         Lane* left, Flow& flow) const {
  const Lane* asked = bins.of(method_.features_[node]);
  for (const int64_t i : bins.edges()) {
    if (asked[i] != BlockBins<kBlock>::kOutside) continue;
    here[i] = left[i];
    left[i] = 0;
    flow.right = true;
  }
}

}  // namespace hedgerow
