// The block walker: walks blocks of positions down trees together, if values are missing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "trees/asked_attributes.hpp"
#include "trees/data.hpp"
#include "trees/feature_rows.hpp"
#include "trees/score_table.hpp"
#include "trees/tree_arrays.hpp"

namespace hedgerow {

// Whether any part of a block goes left at a split, and right.
struct Flow {
  bool left, right;
};

// Features that trees split on, by number.
class NumberedFeatures {
 public:
  struct Feature {
    int32_t place;  // in a row
    int32_t offset;
  };

  NumberedFeatures(const AskedAttributes& asked, int32_t n_dense)
      : asked_(asked), n_dense_(n_dense) {}

  // The number of a column at an offset, a new one if it has none.
  int32_t number(int32_t column, int32_t offset) {
    const auto [found, is_new] =
        numbers_.try_emplace({column, offset}, static_cast<int32_t>(features_.size()));
    if (is_new) features_.push_back({FeatureRows::place(asked_, n_dense_, column, offset), offset});
    return found->second;
  }
  const std::vector<Feature>& all() const { return features_; }

 private:
  const AskedAttributes& asked_;
  int32_t n_dense_;
  std::map<std::pair<int32_t, int32_t>, int32_t> numbers_;
  std::vector<Feature> features_;
};

// Bins of numbered features at a block of positions, kOutside beyond the ends of a sequence.
template <class Lane>
class BlockBins {
 public:
  static constexpr Lane kOutside = -1;

  BlockBins(const NumberedFeatures& features, const AskedAttributes& asked, const BinTable& bins,
            const Room& room)
      : features_(features),
        room_(room),
        rows_(asked, bins, room),
        copy_(rows_.width()),
        lanes_(features.all().size() * kWalkBlock) {}

  void read(int64_t begin, int64_t end) {
    edges_.clear();
    for (int64_t t = begin; t < end; ++t) {
      const bool is_edge = !room_.holds_all(t);
      if (is_edge) edges_.push_back(t - begin);
      const uint8_t* row = rows_.find(t, copy_.data());
      Lane* lane = lanes_.data() + t - begin;
      for (const NumberedFeatures::Feature& feature : features_.all()) {
        const bool is_outside = is_edge && !room_.holds(t, feature.offset);
        *lane = is_outside ? kOutside : static_cast<Lane>(row[feature.place]);
        lane += kWalkBlock;
      }
    }
  }

  // (kWalkBlock,)
  const Lane* of(int32_t feature) const { return lanes_.data() + int64_t{feature} * kWalkBlock; }
  // Those that cut(bins, 1) asks as `is_left` asks bins: 1 goes left and 2 right.
  template <class IsLeft>
  const Lane* by_set(int32_t feature, const IsLeft& is_left) {
    const Lane* bins = of(feature);
    for (int64_t i = 0; i < kWalkBlock; ++i)
      by_set_[i] = bins[i] <= 0 ? bins[i]
                                : static_cast<Lane>(is_left(static_cast<uint8_t>(bins[i])) ? 1 : 2);
    return by_set_;
  }
  // Indices in the block of positions whose windows are truncated.
  const std::vector<int64_t>& edges() const { return edges_; }

 private:
  const NumberedFeatures& features_;
  const Room& room_;
  FeatureRows rows_;
  std::vector<uint8_t> copy_;  // a row
  std::vector<Lane> lanes_;    // (n_features, kWalkBlock)
  std::vector<int64_t> edges_;
  Lane by_set_[kWalkBlock];
};

// A block of positions goes down a tree together, with how much of each is at a node: a Lane, which
// is 0 where there is nothing of it. The Method says which way missing values go:
//
//   Method(trees, features)              numbers the features that it needs
//   kAll                                 a position as a whole
//   Values                               where a block has come to, all nothing at first
//   divide(node, bins, here, left)       moves what goes left, and says where anything is; what is
//                                        outside goes left
//   add_leaf(first, node, here, values)
//   divide_into_leaves(first, node, bins, here, values)   both, for a split of two leaves
//   value(values, first, i)              what a tree adds at the i-th position
//
// `first` is the first node of a tree.
//
// Scores are the same bits as those of any other walk where nothing is missing.
//
// Immutable; any number of threads may walk it.
template <class Method>
class BlockWalker {
 public:
  // `trees` and `asked` outlive this; columns below n_dense are dense.
  BlockWalker(const TreeArrays& trees, const AskedAttributes& asked, int32_t n_dense)
      : arrays_(trees), asked_(asked), features_(asked, n_dense), method_(trees, features_) {}

  // See Walker::add_scores.
  void add_scores(const BinTable& bins, const Room& room, const ScoreTable& table, int n_threads,
                  Stop& stop) const {
    walk_blocks(bins.n_positions, table, n_threads, stop,
                [&] { return Walk(*this, bins, room, table); });
  }

 private:
  using Lane = typename Method::Lane;

  // Each thread has its own.
  class Walk {
   public:
    Walk(const BlockWalker& walker, const BinTable& bins, const Room& room, const ScoreTable& table)
        : arrays_(walker.arrays_),
          method_(walker.method_),
          table_(table),
          bins_(walker.features_, walker.asked_, bins, room) {}

    void operator()(int64_t begin, int64_t end) {
      bins_.read(begin, end);
      for (int64_t i = 0; i < arrays_.n_trees(); ++i) {
        const int64_t first = arrays_.tree_offsets[i];
        values_ = {};
        walk(first, end - begin);
        double* out = table_.out + begin * table_.n_outputs + arrays_.outputs[i];
        for (int64_t t = begin; t < end; ++t, out += table_.n_outputs)
          *out += table_.tree_weights[i] * method_.value(values_, first, t - begin);
      }
    }

   private:
    // The first n positions of the block go down a tree that begins at node `first`.
    void walk(int64_t first, int64_t n) {
      open_.assign(1, first);
      lanes_.resize(std::max<size_t>(lanes_.size(), kWalkBlock));
      std::fill_n(lanes_.data(), kWalkBlock, Lane{});
      std::fill_n(lanes_.data(), n, Method::kAll);
      while (!open_.empty()) {
        const int64_t node = open_.back();
        const size_t place = (open_.size() - 1) * kWalkBlock;
        open_.pop_back();
        lanes_.resize(std::max(lanes_.size(), place + 2 * kWalkBlock));
        Lane* here = lanes_.data() + place;
        if (arrays_.columns[node] < 0)
          method_.add_leaf(first, node, here, values_);
        else
          split(first, node, here, here + kWalkBlock);
      }
    }

    void split(int64_t first, int64_t node, Lane* here, Lane* left) {
      const int64_t child = first + arrays_.lefts[node];
      const bool has_edges = arrays_.offsets[node] != 0 && !bins_.edges().empty();
      if (!has_edges && arrays_.columns[child] < 0 && arrays_.columns[child + 1] < 0)
        return method_.divide_into_leaves(first, node, bins_, here, values_);
      Flow flow = method_.divide(node, bins_, here, left);
      if (has_edges && !arrays_.outside_left[node]) move_outside(node, here, left, flow);
      // The left child is next, and the right one takes the place of their parent.
      if (!flow.right && flow.left) std::copy_n(left, kWalkBlock, here);
      if (flow.right) open_.push_back(child + 1);
      if (flow.left) open_.push_back(child);
    }

    void move_outside(int64_t node, Lane* here, Lane* left, Flow& flow) {
      const Lane* bins = bins_.of(method_.feature(node));
      for (const int64_t i : bins_.edges()) {
        if (bins[i] != BlockBins<Lane>::kOutside) continue;
        here[i] = left[i];
        left[i] = Lane{};
        flow.right = true;
      }
    }

    const TreeArrays& arrays_;
    const Method& method_;
    ScoreTable table_;
    BlockBins<Lane> bins_;
    std::vector<int64_t> open_;  // nodes still to be walked
    std::vector<Lane> lanes_;    // (n_open, kWalkBlock)
    typename Method::Values values_;
  };

  const TreeArrays& arrays_;
  const AskedAttributes& asked_;
  NumberedFeatures features_;
  Method method_;
};

}  // namespace hedgerow
