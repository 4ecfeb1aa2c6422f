#include "trees/leaf_masks.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace hedgerow {
namespace {

constexpr int64_t kMaskBits = 64;

}  // namespace

bool LeafMasks::suits(const TreeArrays& trees, int32_t n_dense) {
  if (!trees.have_at_most(kMaskBits)) return false;
  bool asks = false;
  for (int64_t n = 0; n < trees.n_nodes(); ++n) {
    if (trees.columns[n] < 0) continue;
    if (trees.columns[n] < n_dense || trees.sets[n] >= 0) return false;
    asks = true;
  }
  return asks;
}

// Lists what every split rules out, and sorts the lists.
class LeafMasks::Builder {
 public:
  Builder(LeafMasks& masks, int32_t n_dense)
      : masks_(masks), arrays_(masks.arrays_), n_dense_(n_dense) {}

  void build() {
    const int64_t n_trees = arrays_.n_trees();
    for (int64_t i = 0; i < n_trees; ++i) add_tree(i);
    fill(of_features_, masks_.n_groups() * masks_.asked_.size(), masks_.hits_);
    fill(of_offsets_, masks_.n_groups() * masks_.asked_.n_offsets(), masks_.outside_);
  }

 private:
  struct Listed {
    int64_t list;
    bool is_certain;
    Hit hit;

    // Hits that always apply together compare equal, and are merged; certain ones come first.
    auto order() const {
      return std::tuple(list, !is_certain, hit.tree, hit.test.limit, hit.test.shift,
                        hit.default_left);
    }
  };

  // Leaves [first, end) below a node.
  struct Leaves {
    int64_t first;
    int64_t end;

    uint64_t others() const {
      const int64_t n = end - first;
      const uint64_t own = n == kMaskBits ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
      return ~(own << first);
    }
  };

  void add_tree(int64_t tree) {
    masks_.first_leaves_.push_back(static_cast<int64_t>(masks_.values_.size()));
    const bool repeats = tree % kGroup > 0 && repeats_splits(arrays_, tree);
    masks_.mask_numbers_.push_back(repeats ? masks_.mask_numbers_.back()
                                           : static_cast<int32_t>(tree % kGroup));
    const size_t n_of_features = of_features_.size(), n_of_offsets = of_offsets_.size();
    add_node(tree, 0, 0);
    if (!repeats) return;
    of_features_.erase(of_features_.begin() + n_of_features, of_features_.end());
    of_offsets_.erase(of_offsets_.begin() + n_of_offsets, of_offsets_.end());
  }

  // Numbers the leaves below a node, from n_leaves on.
  Leaves add_node(int64_t tree, int64_t node, int64_t n_leaves) {
    const int64_t at = arrays_.tree_offsets[tree] + node;
    if (arrays_.columns[at] < 0) {
      masks_.values_.push_back(arrays_.values[at]);
      return {n_leaves, n_leaves + 1};
    }
    const int32_t offset = arrays_.offsets[at];
    const int32_t feature = masks_.asked_.find(arrays_.columns[at] - n_dense_, offset);
    const BinTest test = bin_test(arrays_, at);
    const bool default_left = test.goes_left(masks_.default_bins_[feature]);
    const int64_t left = arrays_.lefts[at];
    const Leaves usual = add_node(tree, default_left ? left : left + 1, n_leaves);
    const Leaves other = add_node(tree, default_left ? left + 1 : left, usual.end);
    const int64_t group = tree / kGroup;
    const Hit hit{usual.others(), static_cast<uint32_t>(tree % kGroup), test, default_left};
    of_features_.push_back(
        {group * masks_.asked_.size() + feature, hit.deviates(masks_.other_bins_[feature]), hit});
    const int64_t place = masks_.asked_.reach().number(offset);
    if ((arrays_.outside_left[at] != 0) != default_left)
      of_offsets_.push_back({group * masks_.asked_.n_offsets() + place,
                             true,
                             {hit.leaves, hit.tree, BinTest{0, 0}, false}});
    return {n_leaves, other.end};
  }

  static void fill(std::vector<Listed>& listed, int64_t n_lists, HitLists& lists) {
    std::sort(listed.begin(), listed.end(),
              [](const Listed& a, const Listed& b) { return a.order() < b.order(); });
    lists.offsets.assign(n_lists + 1, 0);
    lists.certains.assign(n_lists, 0);
    for (size_t i = 0; i < listed.size(); ++i) {
      const Listed& one = listed[i];
      if (i > 0 && one.order() == listed[i - 1].order()) {
        lists.hits.back().leaves &= one.hit.leaves;
        continue;
      }
      lists.hits.push_back(one.hit);
      ++lists.offsets[one.list + 1];
      lists.certains[one.list] += one.is_certain;
    }
    for (int64_t i = 0; i < n_lists; ++i) lists.offsets[i + 1] += lists.offsets[i];
  }

  LeafMasks& masks_;
  const TreeArrays& arrays_;
  int32_t n_dense_;
  std::vector<Listed> of_features_, of_offsets_;
};

LeafMasks::LeafMasks(const TreeArrays& trees, const AskedAttributes& asked, const BinTable& bins)
    : arrays_(trees), asked_(asked), default_bins_(asked.default_bins(bins)) {
  for (int32_t f = 0; f < asked.size(); ++f) other_bins_.push_back(other_bin(bins, f));
  Builder(*this, bins.n_dense).build();
}

uint8_t LeafMasks::other_bin(const BinTable& bins, int32_t feature) const {
  const int32_t attribute = asked_.features()[feature].attribute;
  const uint8_t usual = bins.default_bins[attribute];
  return bins.n_bins[bins.n_dense + attribute] == 2 ? static_cast<uint8_t>(3 - usual) : usual;
}

bool LeafMasks::fits(const BinTable& bins) const {
  for (int32_t f = 0; f < asked_.size(); ++f)
    if (bins.default_bins[asked_.features()[f].attribute] != default_bins_[f] ||
        other_bin(bins, f) != other_bins_[f])
      return false;
  return true;
}

// Walks blocks of positions through all trees; each thread has its own.
class LeafMasks::Walk {
 public:
  Walk(const LeafMasks& trees, const BinTable& bins, const Room& room, const ScoreTable& table)
      : trees_(trees), bins_(bins), room_(room), table_(table) {
    const int64_t n_trees = std::min(kGroup, trees.arrays_.n_trees());
    masks_.resize(n_trees);
  }

  void operator()(int64_t begin, int64_t end) {
    find_entries(begin, end);
    for (int64_t group = 0; group < trees_.n_groups(); ++group)
      for (int64_t t = begin; t < end; ++t) {
        rule_out(group, t, t - begin);
        add_leaves(group, table_.out + t * table_.n_outputs);
      }
  }

 private:
  struct Entry {
    int32_t feature;
    uint8_t bin;
  };

  void find_entries(int64_t begin, int64_t end) {
    entries_.clear();
    for (int64_t t = begin; t < end; ++t) {
      entry_offsets_[t - begin] = entries_.size();
      trees_.asked_.for_each_entry(bins_, room_, t, [&](int32_t feature, uint8_t bin) {
        entries_.push_back({feature, bin});
      });
    }
    entry_offsets_[end - begin] = entries_.size();
  }

  // Masks of the trees of a group at a position, number `place` of the block.
  void rule_out(int64_t group, int64_t t, int64_t place) {
    std::fill(masks_.begin(), masks_.end(), ~uint64_t{0});
    const AskedAttributes& asked = trees_.asked_;
    if (!room_.holds_all(t)) {
      const int64_t first = group * asked.n_offsets();
      for (int o = 0; o < asked.n_offsets(); ++o)
        if (!room_.holds(t, asked.reach().offset(o))) hit_certain(trees_.outside_[first + o]);
    }
    for (size_t e = entry_offsets_[place]; e < entry_offsets_[place + 1]; ++e) {
      const auto [feature, bin] = entries_[e];
      const Hits hits = trees_.hits_[group * asked.size() + feature];
      if (bin == trees_.other_bins_[feature])
        hit_certain(hits);
      else
        hit_deviating(hits, bin);
    }
  }

  void hit_certain(const Hits& hits) {
    uint64_t* masks = masks_.data();
    for (int64_t i = 0; i < hits.n_certain; ++i) masks[hits.first[i].tree] &= hits.first[i].leaves;
  }

  void hit_deviating(const Hits& hits, uint8_t bin) {
    for (int64_t i = 0; i < hits.n; ++i)
      if (hits.first[i].deviates(bin)) masks_[hits.first[i].tree] &= hits.first[i].leaves;
  }

  void add_leaves(int64_t group, double* out) const {
    const int64_t first = group * kGroup;
    const int64_t n = std::min(kGroup, trees_.arrays_.n_trees() - first);
    const int32_t* outputs = trees_.arrays_.outputs.data() + first;
    const int64_t* first_leaves = trees_.first_leaves_.data() + first;
    const int32_t* numbers = trees_.mask_numbers_.data() + first;
    const double* weights = table_.tree_weights + first;
    const float* values = trees_.values_.data();
    for (int64_t i = 0; i < n; ++i)
      out[outputs[i]] +=
          weights[i] *
          static_cast<double>(values[first_leaves[i] + std::countr_zero(masks_[numbers[i]])]);
  }

  const LeafMasks& trees_;
  const BinTable& bins_;
  const Room& room_;
  ScoreTable table_;
  std::vector<uint64_t> masks_;  // leaves that remain, by tree of the group
  std::vector<Entry> entries_;   // of the positions of a block, one after another
  size_t entry_offsets_[kWalkBlock + 1];
};

void LeafMasks::add_scores(const BinTable& bins, const Room& room, const ScoreTable& table,
                           int n_threads, Stop& stop) const {
  walk_blocks(bins.n_positions, table, n_threads, stop,
              [&] { return Walk(*this, bins, room, table); });
}

}  // namespace hedgerow
