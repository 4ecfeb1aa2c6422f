#include "trees/walker.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

namespace hedgerow {
namespace {

constexpr int64_t kBlock = 32;  // positions that walk a tree together
constexpr int kTogether = 8;    // walks in flight

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

}  // namespace

void Walker::FeatureNumbers::add(int32_t attribute, int32_t number) {
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

Walker::Walker(const TreeArrays& trees, int32_t n_dense) : arrays_(trees), n_dense_(n_dense) {
  measure_window();
  number_attributes();
  nodes_.reserve(trees.n_nodes());
  std::vector<int32_t> depths;
  for (int64_t i = 0; i < trees.n_trees(); ++i) {
    const int64_t first = trees.tree_offsets[i];
    trees_.push_back({first, measure_depth(trees, i, depths), trees.outputs[i]});
    for (int64_t n = first; n < trees.tree_offsets[i + 1]; ++n)
      nodes_.push_back(pack_node(n, first));
  }
}

void Walker::measure_window() {
  for (int64_t n = 0; n < arrays_.n_nodes(); ++n) {
    if (arrays_.columns[n] < 0) continue;
    before_ = std::max(before_, -arrays_.offsets[n]);
    after_ = std::max(after_, arrays_.offsets[n]);
    has_sets_ |= arrays_.sets[n] >= 0;
  }
}

void Walker::number_attributes() {
  const int64_t n_bytes = static_cast<int64_t>(n_offsets()) * n_dense_;
  if (n_bytes + arrays_.n_nodes() > std::numeric_limits<int32_t>::max())
    throw std::invalid_argument("too many columns in the window of the trees");
  numbers_.resize(n_offsets());
  for (int64_t n = 0; n < arrays_.n_nodes(); ++n) {
    if (arrays_.columns[n] < n_dense_) continue;
    const Feature feature{arrays_.columns[n] - n_dense_, arrays_.offsets[n]};
    FeatureNumbers& numbers = numbers_[feature.offset + before_];
    if (numbers.find(feature.attribute) >= 0) continue;
    numbers.add(feature.attribute, static_cast<int32_t>(n_bytes + attributes_.size()));
    attributes_.push_back(feature);
  }
}

Walker::Node Walker::pack_node(int64_t n, int64_t first) const {
  const int32_t column = arrays_.columns[n], offset = arrays_.offsets[n];
  if (column < 0) return {0, 255, 0, static_cast<uint16_t>(n - first)};
  const int32_t feature = column < n_dense_ ? (offset + before_) * n_dense_ + column
                                            : numbers_at(offset).find(column - n_dense_);
  Node node{static_cast<uint32_t>(feature), arrays_.cuts[n], 0,
            static_cast<uint16_t>(arrays_.lefts[n])};
  if (arrays_.sets[n] >= 0) {
    node.shift = 2;
  } else if (!arrays_.missing_left[n]) {
    node.shift = 1;
    --node.limit;
  }
  return node;
}

// Walks blocks of positions through all trees; each thread has its own.
class Walker::Walk {
 public:
  Walk(const Walker& walker, const BinTable& bins, const Room& room, const ScoreTable& table)
      : walker_(walker), bins_(bins), room_(room), table_(table) {
    const size_t dense_width = static_cast<size_t>(walker.n_offsets()) * bins.n_dense;
    // A tree that is a single leaf reads a byte too.
    width_ = std::max<size_t>(dense_width + walker.attributes_.size(), 1);
    copies_.resize(kBlock * width_);
    for (const Feature& feature : walker.attributes_)
      usual_.push_back(bins.default_bins[feature.attribute]);
  }

  void operator()(int64_t begin, int64_t end) {
    const int64_t n_outputs = table_.n_outputs;
    if (table_.out != table_.scores)
      std::copy(table_.scores + begin * n_outputs, table_.scores + end * n_outputs,
                table_.out + begin * n_outputs);
    for (int64_t t = begin; t < end; ++t)
      rows_[t - begin] = find_row(t, copies_.data() + (t - begin) * width_);
    if (walker_.has_sets_)
      walk<true>(begin, end);
    else
      walk<false>(begin, end);
  }

 private:
  // The bins of all features at a position, where they lie if possible, else put together in `row`.
  const uint8_t* find_row(int64_t t, uint8_t* row) const {
    if (usual_.empty() && bins_.n_dense > 0) return room_.window(bins_, t, row);
    room_.fill_window(bins_, t, row);
    if (!usual_.empty()) fill_attributes(t, row);
    return row;
  }

  // Bins of the attributes in use, behind those of the dense columns.
  void fill_attributes(int64_t t, uint8_t* row) const {
    uint8_t* attributes = row + walker_.n_offsets() * static_cast<int64_t>(bins_.n_dense);
    std::copy(usual_.begin(), usual_.end(), attributes);
    for (int offset = -walker_.before_; offset <= walker_.after_; ++offset) {
      const FeatureNumbers& numbers = walker_.numbers_at(offset);
      if (numbers.empty() || !room_.holds(t, offset)) continue;
      const int64_t last = bins_.entry_offsets[t + offset + 1];
      for (int64_t e = bins_.entry_offsets[t + offset]; e < last; ++e) {
        const int32_t number = numbers.find(bins_.attributes[e]);
        if (number >= 0) row[number] = bins_.attribute_bins[e];
      }
    }
    if (room_.holds_all(t)) return;
    for (size_t f = 0; f < usual_.size(); ++f)
      if (!room_.holds(t, walker_.attributes_[f].offset)) attributes[f] = 0;
  }

  template <bool kSets>
  void walk(int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    int64_t r = 0;
    for (; r + kTogether <= n; r += kTogether) walk_rows<kSets>(begin + r, rows_ + r);
    for (; r < n; ++r) walk_row<kSets>(begin + r, rows_[r]);
  }

  // Some positions, one tree after the other.
  template <bool kSets>
  void walk_rows(int64_t t, const uint8_t* const* rows) {
    const int n_outputs = table_.n_outputs;
    double* out = table_.out + t * n_outputs;
    const double* next_weight = table_.tree_weights;
    for (const Tree& tree : walker_.trees_) {
      const Node* nodes = walker_.nodes_.data() + tree.first;
      uint32_t at[kTogether] = {};
      for (int32_t d = 0; d < tree.depth; ++d)
        for (int i = 0; i < kTogether; ++i) at[i] = step<kSets>(nodes, tree.first, at[i], rows[i]);
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
  template <bool kSets>
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
          at[i] = step<kSets>(walker_.nodes_.data() + trees[i].first, trees[i].first, at[i], row);
      for (int i = 0; i < n; ++i) {
        const float value = walker_.arrays_.values[trees[i].first + at[i]];
        out[trees[i].output] += weights[i] * static_cast<double>(value);
      }
    }
  }

  template <bool kSets>
  uint32_t step(const Node* nodes, int64_t first, uint32_t at, const uint8_t* row) const {
    const Node& node = nodes[at];
    const uint8_t bin = row[node.feature];
    if constexpr (kSets) {
      if (node.shift == 2) {
        const TreeArrays& arrays = walker_.arrays_;
        const uint8_t* set = arrays.left_sets.data() + arrays.sets[first + at] * int64_t{kSetBytes};
        return node.left + !((set[bin >> 3] >> (bin & 7)) & 1);
      }
    }
    return node.left + (static_cast<uint8_t>(bin - node.shift) > node.limit);
  }

  const Walker& walker_;
  const BinTable& bins_;
  const Room& room_;
  ScoreTable table_;
  size_t width_;
  std::vector<uint8_t> usual_;   // bins of the attributes in use at a position without entries
  std::vector<uint8_t> copies_;  // (kBlock, width_)
  const uint8_t* rows_[kBlock];
};

void Walker::add_scores(const BinTable& bins, const Windows& sequences, const ScoreTable& table,
                        int n_threads, Stop& stop) const {
  const Room room({sequences.n_sequences, sequences.offsets, before_, after_}, bins.n_positions);
  const int64_t n_blocks = (bins.n_positions + kBlock - 1) / kBlock;
  constexpr int64_t kBlocksToTask = 16;
  parallel_for_each_thread((n_blocks + kBlocksToTask - 1) / kBlocksToTask, n_threads, stop, [&] {
    return [&, walk = Walk(*this, bins, room, table)](int64_t task) mutable {
      const int64_t last = std::min((task + 1) * kBlocksToTask, n_blocks);
      for (int64_t block = task * kBlocksToTask; block < last; ++block) {
        stop.check();
        walk(block * kBlock, std::min((block + 1) * kBlock, bins.n_positions));
      }
    };
  });
}

}  // namespace hedgerow
