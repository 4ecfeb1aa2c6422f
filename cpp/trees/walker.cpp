#include "trees/walker.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>

#include "trees/feature_rows.hpp"

namespace hedgerow {
namespace {

constexpr int kTogether = 8;       // walks in flight
constexpr uint8_t kHardShift = 2;  // of a split that needs more than a BinTest

// Longest path from the root, in splits.
int32_t measure_depth(const TreeArrays& trees, int64_t tree, std::vector<int32_t>& depths) {
  const int64_t first = trees.tree_offsets[tree];
  const int64_t n_nodes = trees.tree_offsets[tree + 1] - first;
  depths.assign(n_nodes, 0);
  int32_t deepest = 0;
  for (int64_t n = 0; n < n_nodes; ++n) {
    deepest = std::max(deepest, depths[n]);
    if (trees.columns[first + n] < 0) continue;
    const int32_t left = trees.lefts[first + n];
    depths[left] = depths[left + 1] = depths[n] + 1;
  }
  return deepest;
}

bool has_missing(const BinTable& bins) {
  const auto has_zero = [](const uint8_t* begin, int64_t n) {
    return n > 0 && std::memchr(begin, 0, static_cast<size_t>(n)) != nullptr;
  };
  return has_zero(bins.dense, bins.n_positions * bins.n_dense) ||
         has_zero(bins.default_bins, bins.n_attributes) ||
         (bins.entry_offsets != nullptr &&
          has_zero(bins.attribute_bins + bins.entry_offsets[0],
                   bins.entry_offsets[bins.n_positions] - bins.entry_offsets[0]));
}

}  // namespace

Walker::Walker(const TreeArrays& trees, const BinTable& bins)
    : arrays_(trees), n_dense_(bins.n_dense), asked_(trees, bins.n_dense) {
  if (!trees.fractions.empty())
    fractions_ = std::make_unique<const FractionWalker>(trees, asked_, n_dense_);
  else if (!trees.surrogate_starts.empty())
    surrogates_ = std::make_unique<const SurrogateWalker>(trees, asked_, n_dense_);
  if (LeafMasks::suits(trees, n_dense_)) {
    masks_ = std::make_unique<const LeafMasks>(trees, asked_, bins);
    return;
  }
  if (PositionLanes::suits(trees, n_dense_))
    lanes_ =
        std::make_unique<const PositionLanes>(trees, asked_.reach().before, asked_.reach().after);
  lay_out();
}

void Walker::lay_out() {
  const int64_t n_bytes = static_cast<int64_t>(asked_.n_offsets()) * n_dense_;
  if (n_bytes + arrays_.n_nodes() > std::numeric_limits<int32_t>::max())
    throw std::invalid_argument("too many columns in the window of the trees");
  nodes_.reserve(arrays_.n_nodes());
  std::vector<int32_t> depths;
  for (int64_t i = 0; i < arrays_.n_trees(); ++i) {
    const int64_t first = arrays_.tree_offsets[i];
    trees_.push_back(
        {first, measure_depth(arrays_, i, depths), arrays_.outputs[i], repeats_splits(arrays_, i)});
    for (int64_t n = first; n < arrays_.tree_offsets[i + 1]; ++n) {
      nodes_.push_back(pack_node(n, first));
      has_hard_ |= nodes_.back().test.shift == kHardShift;
    }
  }
}

Walker::Node Walker::pack_node(int64_t n, int64_t first) const {
  const int32_t column = arrays_.columns[n], offset = arrays_.offsets[n];
  if (column < 0) return {0, {255, 0}, static_cast<uint16_t>(n - first)};
  const int32_t feature = FeatureRows::place(asked_, n_dense_, column, offset);
  const bool is_hard =
      arrays_.sets[n] >= 0 || (offset != 0 && !treats_outside_as_missing(arrays_, n));
  const BinTest test = is_hard ? BinTest{0, kHardShift} : bin_test(arrays_, n);
  return {static_cast<uint32_t>(feature), test, static_cast<uint16_t>(arrays_.lefts[n])};
}

// Walks blocks of positions through all trees; each thread has its own.
class Walker::Walk {
 public:
  Walk(const Walker& walker, const BinTable& bins, const Room& room, const ScoreTable& table)
      : walker_(walker),
        bins_(bins),
        room_(room),
        table_(table),
        features_(walker.asked_, bins, room),
        copies_(kWalkBlock * features_.width()) {
    if (walker.lanes_) lanes_.emplace(*walker.lanes_);
  }

  void operator()(int64_t begin, int64_t end) {
    if (lanes_ && end - begin >= PositionLanes::kFewest) {
      lanes_->read_bins(bins_, begin, end);
      lanes_->add_scores(room_, table_, begin, end);
      return;
    }
    for (int64_t t = begin; t < end; ++t)
      rows_[t - begin] = features_.find(t, copies_.data() + (t - begin) * features_.width());
    if (walker_.has_hard_)
      walk<true>(begin, end);
    else
      walk<false>(begin, end);
  }

 private:
  template <bool kHard>
  void walk(int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    int64_t r = 0;
    for (; r + kTogether <= n; r += kTogether) walk_rows<kHard>(begin + r, rows_ + r);
    for (; r < n; ++r) walk_row<kHard>(begin + r, rows_[r]);
  }

  // Some positions, one tree after the other.
  template <bool kHard>
  void walk_rows(int64_t t, const uint8_t* const* rows) {
    const int n_outputs = table_.n_outputs;
    double* out = table_.out + t * n_outputs;
    const double* next_weight = table_.tree_weights;
    uint32_t at[kTogether] = {};
    for (const Tree& tree : walker_.trees_) {
      if (!tree.repeats) {
        const Node* nodes = walker_.nodes_.data() + tree.first;
        std::fill_n(at, kTogether, 0u);
        for (int32_t d = 0; d < tree.depth; ++d)
          for (int i = 0; i < kTogether; ++i)
            at[i] = step<kHard>(nodes, tree.first, at[i], t + i, rows[i]);
      }
      const float* values = walker_.arrays_.values.data() + tree.first;
      double* of_tree = out + tree.output;
      const double weight = *next_weight++;
      if (weight == 1.0) {  // the usual case; a product takes some 4 % more time
        for (int i = 0; i < kTogether; ++i)
          of_tree[i * n_outputs] += static_cast<double>(values[at[i]]);
      } else {
        for (int i = 0; i < kTogether; ++i)
          of_tree[i * n_outputs] += weight * static_cast<double>(values[at[i]]);
      }
    }
  }

  // One position, some trees at a time.
  template <bool kHard>
  void walk_row(int64_t t, const uint8_t* row) {
    double* out = table_.out + t * table_.n_outputs;
    const auto n_trees = static_cast<int64_t>(walker_.trees_.size());
    for (int64_t first = 0; first < n_trees; first += kTogether) {
      const int n = static_cast<int>(std::min<int64_t>(kTogether, n_trees - first));
      const Tree* trees = walker_.trees_.data() + first;
      const double* weights = table_.tree_weights + first;
      int32_t depth = 0;
      for (int i = 0; i < n; ++i) depth = std::max(depth, trees[i].depth);
      uint32_t at[kTogether] = {};
      for (int32_t d = 0; d < depth; ++d)
        for (int i = 0; i < n; ++i)
          at[i] =
              step<kHard>(walker_.nodes_.data() + trees[i].first, trees[i].first, at[i], t, row);
      for (int i = 0; i < n; ++i) {
        const float value = walker_.arrays_.values[trees[i].first + at[i]];
        out[trees[i].output] += weights[i] * static_cast<double>(value);
      }
    }
  }

  template <bool kHard>
  uint32_t step(const Node* nodes, int64_t first, uint32_t at, int64_t t,
                const uint8_t* row) const {
    const Node& node = nodes[at];
    const uint8_t bin = row[node.feature];
    if constexpr (kHard)
      if (node.test.shift == kHardShift) return node.left + !answer(first + at, t, bin);
    return node.left + !node.test.goes_left(bin);
  }

  // Whether a position goes left at a split.
  bool answer(int64_t node, int64_t t, uint8_t bin) const {
    const TreeArrays& arrays = walker_.arrays_;
    if (!room_.holds(t, arrays.offsets[node])) return arrays.outside_left[node] != 0;
    return goes_left(arrays, node, bin);
  }

  const Walker& walker_;
  const BinTable& bins_;
  const Room& room_;
  ScoreTable table_;
  FeatureRows features_;
  std::vector<uint8_t> copies_;  // (kWalkBlock, width of a row)
  const uint8_t* rows_[kWalkBlock];
  std::optional<PositionLanes::Block> lanes_;
};

void Walker::add_scores(const BinTable& bins, const Sequences& sequences, const ScoreTable& table,
                        int n_threads, Stop& stop) const {
  const Room room({sequences, asked_.reach()}, bins.n_positions);
  if ((fractions_ || surrogates_) && has_missing(bins)) {
    if (fractions_) return fractions_->add_scores(bins, room, table, n_threads, stop);
    return surrogates_->add_scores(bins, room, table, n_threads, stop);
  }
  if (masks_) return masks_->add_scores(bins, room, table, n_threads, stop);
  walk_blocks(bins.n_positions, table, n_threads, stop,
              [&] { return Walk(*this, bins, room, table); });
}

}  // namespace hedgerow
