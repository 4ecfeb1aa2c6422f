#include "trees/fraction_walker.hpp"

#include <algorithm>
#include <map>

#include "simd.hpp"
#include "trees/feature_rows.hpp"

namespace hedgerow {
namespace {

// The shares of positions that go left at a split, by their bins.
HEDGEROW_CLONES void fill_left_shares(const uint8_t* bins, uint8_t cut, double of_missing,
                                      double* shares) {
  for (int64_t i = 0; i < kWalkBlock; ++i) {
    const double of_known = bins[i] <= cut ? 1.0 : 0.0;
    shares[i] = bins[i] == 0 ? of_missing : of_known;
  }
}

// Moves the shares of positions that go left at a split to another node.
HEDGEROW_CLONES void divide(const double* left_shares, double* here, double* left) {
  for (int64_t i = 0; i < kWalkBlock; ++i) {
    left[i] = here[i] * left_shares[i];
    here[i] = here[i] * (1.0 - left_shares[i]);
  }
}

// Not cloned: products and sums would be joined where the processor can.
void add_value(const double* shares, double value, double* values) {
  for (int64_t i = 0; i < kWalkBlock; ++i) values[i] += shares[i] * value;
}

bool has_any(const double* shares) {
  return std::any_of(shares, shares + kWalkBlock, [](double share) { return share > 0.0; });
}

}  // namespace

FractionWalker::FractionWalker(const TreeArrays& trees, const AskedAttributes& asked,
                               int32_t n_dense)
    : arrays_(trees), asked_(asked) {
  std::map<std::pair<int32_t, int32_t>, int32_t> numbers;
  for (int64_t n = 0; n < trees.n_nodes(); ++n) {
    const int32_t column = trees.columns[n], offset = trees.offsets[n];
    if (column < 0) {
      feature_numbers_.push_back(-1);
      continue;
    }
    const auto [found, is_new] =
        numbers.try_emplace({column, offset}, static_cast<int32_t>(features_.size()));
    if (is_new) features_.push_back({FeatureRows::place(asked, n_dense, column, offset), offset});
    feature_numbers_.push_back(found->second);
  }
}

// Each thread has its own.
class FractionWalker::Walk {
 public:
  Walk(const FractionWalker& walker, const BinTable& bins, const Room& room,
       const ScoreTable& table)
      : walker_(walker),
        arrays_(walker.arrays_),
        room_(room),
        table_(table),
        rows_(walker.asked_, bins, room),
        copy_(rows_.width()),
        bins_(walker.features_.size() * kWalkBlock) {}

  void operator()(int64_t begin, int64_t end) {
    read_bins(begin, end);
    for (int64_t i = 0; i < arrays_.n_trees(); ++i) {
      std::fill_n(values_, kWalkBlock, 0.0);
      walk(arrays_.tree_offsets[i], begin, end);
      double* out = table_.out + begin * table_.n_outputs + arrays_.outputs[i];
      for (int64_t t = begin; t < end; ++t, out += table_.n_outputs)
        *out += table_.tree_weights[i] * values_[t - begin];
    }
  }

 private:
  void read_bins(int64_t begin, int64_t end) {
    edges_.clear();
    for (int64_t t = begin; t < end; ++t) {
      if (!room_.holds_all(t)) edges_.push_back(t);
      const uint8_t* row = rows_.find(t, copy_.data());
      uint8_t* lane = bins_.data() + t - begin;
      for (const Feature& feature : walker_.features_) {
        *lane = row[feature.place];
        lane += kWalkBlock;
      }
    }
  }

  // Adds up what a tree that begins at node `first` adds.
  void walk(int64_t first, int64_t begin, int64_t end) {
    open_.assign(1, first);
    shares_.resize(std::max<size_t>(shares_.size(), kWalkBlock));
    std::fill_n(shares_.data(), kWalkBlock, 0.0);
    std::fill_n(shares_.data(), end - begin, 1.0);
    while (!open_.empty()) {
      const int64_t n = open_.back();
      const size_t place = (open_.size() - 1) * kWalkBlock;
      if (arrays_.columns[n] < 0) {
        add_value(shares_.data() + place, static_cast<double>(arrays_.values[n]), values_);
        open_.pop_back();
        continue;
      }
      shares_.resize(std::max(shares_.size(), place + 2 * kWalkBlock));
      ask(n, begin);
      double* here = shares_.data() + place;
      divide(left_shares_, here, here + kWalkBlock);
      // The left child is next, and the right one takes the place of their parent.
      open_.back() = first + arrays_.lefts[n] + 1;
      if (has_any(here + kWalkBlock))
        open_.push_back(first + arrays_.lefts[n]);
      else if (!has_any(here))
        open_.pop_back();
    }
  }

  // Fills the shares that go left at a split.
  void ask(int64_t n, int64_t begin) {
    const int64_t feature = walker_.feature_numbers_[n];
    const uint8_t* bins = bins_.data() + feature * kWalkBlock;
    const auto of_missing = static_cast<double>(arrays_.fractions[n]);
    if (arrays_.sets[n] < 0) {
      fill_left_shares(bins, arrays_.cuts[n], of_missing, left_shares_);
    } else {
      for (int64_t i = 0; i < kWalkBlock; ++i)
        left_shares_[i] = bins[i] == 0 ? of_missing : goes_left(arrays_, n, bins[i]) ? 1.0 : 0.0;
    }
    const int offset = walker_.features_[feature].offset;
    for (const int64_t t : edges_)
      if (!room_.holds(t, offset)) left_shares_[t - begin] = arrays_.outside_left[n] ? 1.0 : 0.0;
  }

  const FractionWalker& walker_;
  const TreeArrays& arrays_;
  const Room& room_;
  ScoreTable table_;
  FeatureRows rows_;
  std::vector<uint8_t> copy_;   // a row
  std::vector<uint8_t> bins_;   // (n_features, kWalkBlock)
  std::vector<int64_t> edges_;  // positions of the block whose windows end early
  std::vector<int64_t> open_;   // nodes still to be walked
  std::vector<double> shares_;  // (n_open, kWalkBlock)
  double left_shares_[kWalkBlock];
  double values_[kWalkBlock];
};

void FractionWalker::add_scores(const BinTable& bins, const Room& room, const ScoreTable& table,
                                int n_threads, Stop& stop) const {
  walk_blocks(bins.n_positions, table, n_threads, stop,
              [&] { return Walk(*this, bins, room, table); });
}

}  // namespace hedgerow
