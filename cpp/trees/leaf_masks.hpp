// Leaf masks: a walk through trees that split only on attributes, without reading absent ones.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "trees/asked_attributes.hpp"
#include "trees/data.hpp"
#include "trees/score_table.hpp"
#include "trees/tree_arrays.hpp"

namespace hedgerow {

// Leaves of a tree are numbered from left to right, where the left child of every split is the one
// for the default bin of its attribute. A position whose attributes are all absent comes to leaf 0.
// A bin that goes the other way rules out the leaves below the left child; of the leaves that
// remain, the first one is the position's, as in Lucchese et al. (2015), "QuickScorer". So the time
// is proportional to the attributes that are present, however many attributes the trees split on.
//
// Immutable; any number of threads may walk it.
class LeafMasks {
 public:
  // Whether trees can be walked in this way: attributes only, no sets, at most 64 leaves.
  static bool suits(const TreeArrays& trees, int32_t n_dense);

  // `trees` and `asked` outlive this; default bins are those of `bins`.
  LeafMasks(const TreeArrays& trees, const AskedAttributes& asked, const BinTable& bins);

  // Whether the attributes in use have the same default and other bins in `bins`.
  bool fits(const BinTable& bins) const;

  // See Walker::add_scores.
  void add_scores(const BinTable& bins, const Room& room, const ScoreTable& table, int n_threads,
                  Stop& stop) const;

 private:
  // The leaves of a tree that remain if a bin does not go where the default bin goes.
  struct Hit {
    uint64_t leaves;
    uint32_t tree;  // counted from the first of the group
    BinTest test;
    bool default_left;

    bool deviates(uint8_t bin) const { return test.goes_left(bin) != default_left; }
  };
  // The hits of a feature, or of an offset, in a group of trees: for the feature's other bin, the
  // first n_certain of them apply without a test.
  struct Hits {
    const Hit* first;
    int64_t n_certain;
    int64_t n;
  };
  // All hits, list after list.
  struct HitLists {
    std::vector<Hit> hits;
    std::vector<int64_t> offsets;   // (n_lists + 1,)
    std::vector<int64_t> certains;  // (n_lists,)

    Hits operator[](int64_t list) const {
      return {hits.data() + offsets[list], certains[list], offsets[list + 1] - offsets[list]};
    }
  };
  // Number of consecutive trees in a group, whose masks fit into the cache together.
  static constexpr int64_t kGroup = 2048;
  class Walk;
  class Builder;

  int64_t n_groups() const { return (arrays_.n_trees() + kGroup - 1) / kGroup; }
  // The bin of a feature with two bins that is not its default; for other features, the default.
  uint8_t other_bin(const BinTable& bins, int32_t feature) const;

  const TreeArrays& arrays_;
  const AskedAttributes& asked_;
  std::vector<uint8_t> default_bins_, other_bins_;  // by feature
  HitLists hits_;                                   // (n_groups, n_features)
  HitLists outside_;                   // (n_groups, n_offsets) if an offset lies outside
  std::vector<float> values_;          // of all leaves, tree by tree
  std::vector<int64_t> first_leaves_;  // (T,)
  // (T,) mask of a tree, counted from the first of the group: that of the tree before if the splits
  // are the same.
  std::vector<int32_t> mask_numbers_;
};

}  // namespace hedgerow
