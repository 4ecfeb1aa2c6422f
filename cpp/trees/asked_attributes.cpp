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
  // Calls ask(column, offset) for all splits and surrogates.
  const auto for_each_question = [&](auto ask) {
    for (int64_t n = 0; n < trees.n_nodes(); ++n)
      if (trees.columns[n] >= 0) ask(trees.columns[n], trees.offsets[n]);
    for (int64_t i = 0; i < trees.n_surrogates(); ++i)
      ask(trees.surrogate_columns[i], trees.surrogate_offsets[i]);
  };
  for_each_question([&](int32_t, int32_t offset) { reach_.include(offset); });
  numbers_.resize(n_offsets());
  for_each_question([&](int32_t column, int32_t offset) {
    if (column < n_dense || find(column - n_dense, offset) >= 0) return;
    numbers_[reach_.number(offset)].add(column - n_dense, size());
    features_.push_back({column - n_dense, offset});
  });
}

std::vector<uint8_t> AskedAttributes::default_bins(const BinTable& bins) const {
  std::vector<uint8_t> defaults;
  defaults.reserve(features_.size());
  for (const Feature& feature : features_) defaults.push_back(bins.default_bins[feature.attribute]);
  return defaults;
}

}  // namespace hedgerow
