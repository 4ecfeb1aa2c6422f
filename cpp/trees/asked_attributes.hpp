// Attributes that trees split on and their offsets in the window, numbered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trees/data.hpp"
#include "trees/tree_arrays.hpp"

namespace hedgerow {

class AskedAttributes {
 public:
  // An attribute in use, and its offset in the window.
  struct Feature {
    int32_t attribute;
    int32_t offset;
  };

  // Columns of the trees from n_dense on are attributes.
  AskedAttributes(const TreeArrays& trees, int32_t n_dense);

  // The window of the trees, including dense columns.
  const Reach& reach() const { return reach_; }
  int n_offsets() const { return reach_.n_offsets(); }

  int32_t size() const { return static_cast<int32_t>(features_.size()); }
  const std::vector<Feature>& features() const { return features_; }
  // The number of a feature, -1 if it is not used.
  int32_t find(int32_t attribute, int offset) const {
    return numbers_[reach_.number(offset)].find(attribute);
  }
  // Calls found(number of the feature, bin) for the entries in a position's window that are in use.
  template <class Found>
  void for_each_entry(const BinTable& bins, const Room& room, int64_t position,
                      const Found& found) const {
    for (int o = 0; o < n_offsets(); ++o) {
      const Numbers& numbers = numbers_[o];
      const int offset = reach_.offset(o);
      if (numbers.empty() || !room.holds(position, offset)) continue;
      const int64_t row = room.row(position, offset), last = bins.entry_offsets[row + 1];
      for (int64_t e = bins.entry_offsets[row]; e < last; ++e) {
        const int32_t number = numbers.find(bins.attributes[e]);
        if (number >= 0) found(number, bins.attribute_bins[e]);
      }
    }
  }
  // The bin of each feature at a position without entries, (size(),).
  std::vector<uint8_t> default_bins(const BinTable& bins) const;

 private:
  // The numbers of the features at one offset by their attributes: a hash table with linear
  // probing, since most attributes of a large vocabulary are not in use.
  class Numbers {
   public:
    int32_t find(int32_t attribute) const {
      if (slots_.empty()) return -1;
      for (size_t place = home(attribute);; place = (place + 1) & (slots_.size() - 1)) {
        const Slot& slot = slots_[place];
        if (slot.attribute == attribute || slot.attribute < 0) return slot.number;
      }
    }
    // `attribute` has no number yet.
    void add(int32_t attribute, int32_t number);
    bool empty() const { return slots_.empty(); }

   private:
    struct Slot {
      int32_t attribute = -1;
      int32_t number = -1;
    };
    size_t home(int32_t attribute) const {
      return (static_cast<uint32_t>(attribute) * 2654435769u) >> shift_;
    }
    std::vector<Slot> slots_;  // a power of two of them, at most a quarter in use
    size_t n_used_ = 0;
    int shift_ = 32;
  };

  Reach reach_;
  std::vector<Feature> features_;
  std::vector<Numbers> numbers_;  // (n_offsets,)
};

}  // namespace hedgerow
