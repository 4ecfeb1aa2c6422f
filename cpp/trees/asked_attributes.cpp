#include "trees/asked_attributes.hpp"

#include <algorithm>
#include <bit>

namespace hedgerow {

void AskedAttributes::Numbers::add(int32_t attribute, int32_t number) {
  if (4 * ++n_used_ > slots_.size()) {
    std::vector<Slot> old(std::max<size_t>(8, 2 * slots_.size()));
    old.swap(slots_);
    shift_ = 32 - std::countr_zero(slots_.size());
    n_used_ = 1;
    for (const Slot& slot : old)
      if (slot.attribute >= 0) add(slot.attribute, slot.number);
  }
  size_t place = home(attribute);
  while (slots_[place].attribute >= 0) place = (place + 1) & (slots_.size() - 1);
  slots_[place] = {attribute, number};
}

AskedAttributes::AskedAttributes(const TreeArrays& trees, int32_t n_dense) {
  for (int64_t n = 0; n < trees.n_nodes(); ++n) {
    if (trees.columns[n] < 0) continue;
    before_ = std::max(before_, -trees.offsets[n]);
    after_ = std::max(after_, trees.offsets[n]);
  }
  numbers_.resize(n_offsets());
  for (int64_t n = 0; n < trees.n_nodes(); ++n) {
    if (trees.columns[n] < n_dense || trees.columns[n] < 0) continue;
    const Feature feature{trees.columns[n] - n_dense, trees.offsets[n]};
    if (find(feature.attribute, feature.offset) >= 0) continue;
    numbers_[feature.offset + before_].add(feature.attribute, size());
    features_.push_back(feature);
  }
}

std::vector<uint8_t> AskedAttributes::default_bins(const BinTable& bins) const {
  std::vector<uint8_t> defaults;
  defaults.reserve(features_.size());
  for (const Feature& feature : features_) defaults.push_back(bins.default_bins[feature.attribute]);
  return defaults;
}

}  // namespace hedgerow
