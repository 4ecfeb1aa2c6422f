#include "trees/fraction_walker.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include "simd.hpp"
#include "trees/feature_rows.hpp"

namespace hedgerow {
namespace {

constexpr double kOutside = -1.0;  // in the place of a bin, beyond the ends of a sequence

// Whether some of a block goes left, and right.
struct Flow {
  bool left, right;
};

// Divides the shares of positions at a split: those that go left are written to `left`, and the
// others stay. What is outside goes left.
HEDGEROW_CLONES Flow divide(const double* HEDGEROW_RESTRICT bins, double cut, double of_missing,
                            double* HEDGEROW_RESTRICT here, double* HEDGEROW_RESTRICT left) {
  uint64_t any_left = 0, any_right = 0;
  for (int64_t i = 0; i < kWalkBlock; ++i) {
    const double of_known = bins[i] <= cut ? 1.0 : 0.0;
    const double share = bins[i] == 0.0 ? of_missing : of_known;
    const double to_left = here[i] * share, to_right = here[i] * (1.0 - share);
    left[i] = to_left;
    here[i] = to_right;
    any_left |= std::bit_cast<uint64_t>(to_left);
    any_right |= std::bit_cast<uint64_t>(to_right);
  }
  return {any_left != 0, any_right != 0};
}

// Not cloned: products and sums would be joined where the processor can.
void add_value(const double* shares, double value, double* values) {
  for (int64_t i = 0; i < kWalkBlock; ++i) values[i] += shares[i] * value;
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
      const bool is_edge = !room_.holds_all(t);
      if (is_edge) edges_.push_back(t);
      const uint8_t* row = rows_.find(t, copy_.data());
      double* lane = bins_.data() + t - begin;
      for (const Feature& feature : walker_.features_) {
        const bool is_outside = is_edge && !room_.holds(t, feature.offset);
        *lane = is_outside ? kOutside : static_cast<double>(row[feature.place]);
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
      double* here = shares_.data() + place;
      const Flow flow = divide_at(n, begin, here, here + kWalkBlock);
      // The left child is next, and the right one takes the place of their parent.
      open_.pop_back();
      if (!flow.right && flow.left) std::copy_n(here + kWalkBlock, kWalkBlock, here);
      if (flow.right) open_.push_back(first + arrays_.lefts[n] + 1);
      if (flow.left) open_.push_back(first + arrays_.lefts[n]);
    }
  }

  Flow divide_at(int64_t n, int64_t begin, double* here, double* left) {
    const int64_t feature = walker_.feature_numbers_[n];
    const double* bins = bins_.data() + feature * kWalkBlock;
    const auto of_missing = static_cast<double>(arrays_.fractions[n]);
    Flow flow;
    if (arrays_.sets[n] < 0) {
      flow = divide(bins, static_cast<double>(arrays_.cuts[n]), of_missing, here, left);
    } else {
      // As if bin 1 were left and bin 2 right.
      for (int64_t i = 0; i < kWalkBlock; ++i)
        by_set_[i] = bins[i] <= 0.0 || goes_left(arrays_, n, static_cast<uint8_t>(bins[i]))
                         ? std::min(bins[i], 1.0)
                         : 2.0;
      flow = divide(by_set_, 1.0, of_missing, here, left);
    }
    if (arrays_.outside_left[n]) return flow;
    for (const int64_t t : edges_) {
      const int64_t i = t - begin;
      if (bins[i] != kOutside) continue;
      here[i] = left[i];
      left[i] = 0.0;
      flow.right = true;
    }
    return flow;
  }

  const FractionWalker& walker_;
  const TreeArrays& arrays_;
  const Room& room_;
  ScoreTable table_;
  FeatureRows rows_;
  std::vector<uint8_t> copy_;   // a row
  std::vector<double> bins_;    // (n_features, kWalkBlock), or kOutside
  std::vector<int64_t> edges_;  // positions of the block whose windows end early
  std::vector<int64_t> open_;   // nodes still to be walked
  std::vector<double> shares_;  // (n_open, kWalkBlock)
  double by_set_[kWalkBlock];
  double values_[kWalkBlock];
};

void FractionWalker::add_scores(const BinTable& bins, const Room& room, const ScoreTable& table,
                                int n_threads, Stop& stop) const {
  walk_blocks(bins.n_positions, table, n_threads, stop,
              [&] { return Walk(*this, bins, room, table); });
}

}  // namespace hedgerow
