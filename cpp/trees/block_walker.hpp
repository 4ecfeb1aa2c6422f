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

// Features that trees split on, by number.
class NumberedFeatures {
 public:
  struct Feature {
    int32_t column, offset;
    int32_t place;  // in a row
  };

  NumberedFeatures(const AskedAttributes& asked, int32_t n_dense)
      : asked_(asked), n_dense_(n_dense) {}

  // The number of a column at an offset, a new one if it has none.
  int32_t number(int32_t column, int32_t offset) {
    const auto [found, is_new] =
        numbers_.try_emplace({column, offset}, static_cast<int32_t>(features_.size()));
    if (is_new)
      features_.push_back({column, offset, FeatureRows::place(asked_, n_dense_, column, offset)});
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
template <int64_t kBlock>
class BlockBins {
 public:
  using Lane = int16_t;
  static constexpr Lane kOutside = -1;

  BlockBins(const NumberedFeatures& features, const AskedAttributes& asked, const BinTable& bins,
            const Room& room)
      : features_(features.all()),
        bins_(bins),
        room_(room),
        rows_(asked, bins, room),
        copy_(rows_.width()),
        lanes_(features_.size() * kBlock) {}

  void read(int64_t begin, int64_t end) {
    edges_.clear();
    for (int64_t t = begin; t < end; ++t)
      if (!room_.holds_all(t)) edges_.push_back(t - begin);
    in_rows_.clear();
    for (size_t f = 0; f < features_.size(); ++f)
      if (!copy_column(f, begin, end)) in_rows_.push_back(f);
    if (!in_rows_.empty()) read_rows(begin, end);
    for (const int64_t i : edges_)
      for (size_t f = 0; f < features_.size(); ++f)
        if (!room_.holds(begin + i, features_[f].offset)) lanes_[f * kBlock + i] = kOutside;
  }

  // (kBlock,)
  const Lane* of(int32_t feature) const { return lanes_.data() + int64_t{feature} * kBlock; }
  // The same, with 1 instead of bins that go left by `is_left`, and 2 instead of those that go
  // right.
  template <class IsLeft>
  const Lane* by_set(int32_t feature, const IsLeft& is_left) {
    const Lane* bins = of(feature);
    for (int64_t i = 0; i < kBlock; ++i)
      by_set_[i] = bins[i] <= 0 ? bins[i]
                                : static_cast<Lane>(is_left(static_cast<uint8_t>(bins[i])) ? 1 : 2);
    return by_set_;
  }
  // Indices in the block of positions whose windows are truncated.
  const std::vector<int64_t>& edges() const { return edges_; }

 private:
  // Whether the bins of a feature are contiguous; if so, they are copied.
  bool copy_column(size_t f, int64_t begin, int64_t end) {
    const auto [column, offset, place] = features_[f];
    if (bins_.columns == nullptr || column >= bins_.n_dense || offset >= kParent ||
        begin + offset < 0 || end + offset > bins_.n_positions)
      return false;
    const uint8_t* from = bins_.columns + column * bins_.n_positions + offset;
    std::copy(from + begin, from + end, lanes_.data() + f * kBlock);
    return true;
  }

  void read_rows(int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const uint8_t* row = rows_.find(t, copy_.data());
      for (const size_t f : in_rows_) lanes_[f * kBlock + t - begin] = row[features_[f].place];
    }
  }

  const std::vector<NumberedFeatures::Feature>& features_;
  const BinTable& bins_;
  const Room& room_;
  FeatureRows rows_;
  std::vector<uint8_t> copy_;    // a row
  std::vector<Lane> lanes_;      // (n_features, kBlock)
  std::vector<size_t> in_rows_;  // features that are read row by row
  std::vector<int64_t> edges_;
  Lane by_set_[kBlock];
};

// Blocks of positions go down trees together. The Method determines where missing values go:
//
//   Method(trees, features)   numbers the features that it needs
//   kBlock                    positions that go together
//   Walk(method)              each thread has its own
//   walk.run(first, n, bins)  the first n positions of a block go down the tree whose root is the
//                             node `first`
//   walk.value(i)             what that tree adds at the i-th position
//
// Where nothing is missing, scores have the same bits as those of any other walk.
//
// Immutable; any number of threads may walk it.
template <class Method>
class BlockWalker {
 public:
  // `trees` and `asked` outlive this; columns below n_dense are dense.
  BlockWalker(const TreeArrays& trees, const AskedAttributes& asked, int32_t n_dense)
      : arrays_(trees), asked_(asked), features_(asked, n_dense), method_(trees, features_) {
    for (int64_t i = 0; i < trees.n_trees(); ++i) is_opposite_.push_back(is_opposite(trees, i));
  }

  // See Walker::add_scores.
  void add_scores(const BinTable& bins, const Room& room, const ScoreTable& table, int n_threads,
                  Stop& stop) const {
    walk_blocks<Method::kBlock>(bins.n_positions, table, n_threads, stop, [&] {
      return [&, read = BlockBins<Method::kBlock>(features_, asked_, bins, room),
              walk = typename Method::Walk(method_)](int64_t begin, int64_t end) mutable {
        read.read(begin, end);
        double sign = 1.0;
        for (int64_t i = 0; i < arrays_.n_trees(); ++i) {
          sign = is_opposite_[i] ? -sign : 1.0;
          if (!is_opposite_[i]) walk.run(arrays_.tree_offsets[i], end - begin, read);
          const double weight = sign * table.tree_weights[i];
          double* out = table.out + begin * table.n_outputs + arrays_.outputs[i];
          for (int64_t t = begin; t < end; ++t, out += table.n_outputs)
            *out += weight * walk.value(t - begin);
        }
      };
    });
  }

 private:
  const TreeArrays& arrays_;
  const AskedAttributes& asked_;
  NumberedFeatures features_;
  Method method_;
  std::vector<uint8_t> is_opposite_;  // (T,) trees that add the opposite of the tree before
};

}  // namespace hedgerow
