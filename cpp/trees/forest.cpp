#include "trees/forest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace hedgerow {
namespace {

constexpr int64_t kBlock = 32;  // positions that walk a tree together
constexpr int kTogether = 8;    // walks in flight

void require(bool holds, int64_t tree, const char* what) {
  if (!holds) throw std::invalid_argument("tree " + std::to_string(tree) + ": " + what);
}

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

void check_trees(const TreeArrays& trees, int64_t n_nodes, int32_t n_columns, int n_labels) {
  if (trees.tree_offsets[0] != 0 || trees.tree_offsets[trees.n_trees] != n_nodes)
    throw std::invalid_argument("trees do not begin at 0 and end at the number of nodes");
  for (int64_t i = 0; i < trees.n_trees; ++i) {
    const int64_t first = trees.tree_offsets[i], end = trees.tree_offsets[i + 1];
    require(first >= 0 && first < end && end <= n_nodes, i, "it has no nodes");
    require(end - first <= kMaxTreeNodes, i, "it has too many nodes");
    require(trees.tree_labels[i] >= 0 && trees.tree_labels[i] < n_labels, i,
            "its label is out of range");
    int64_t next = 1;  // children are numbered as they come
    std::vector<uint8_t> is_child(end - first, 0);
    for (int64_t n = 0; n < end - first; ++n) {
      const int64_t at = first + n;
      require(std::isfinite(trees.values[at]), i, "a value is not finite");
      require(n == 0 || is_child[n], i, "a node has no parent");
      if (trees.columns[at] < 0) continue;
      require(trees.columns[at] < n_columns, i, "a column is out of range");
      require(trees.offsets[at] >= -255 && trees.offsets[at] <= 255, i,
              "an offset is out of range");
      require(trees.sets[at] >= -1 && trees.sets[at] < trees.n_sets, i,
              "a set of bins is out of range");
      require(trees.sets[at] >= 0 || trees.cuts[at] >= 1 || trees.missing_left[at], i,
              "a split has nothing on its left");
      const int64_t left = trees.lefts[at];
      require(left > n && left + 1 < end - first, i, "children do not come after their parent");
      require(!is_child[left] && !is_child[left + 1], i, "a node has two parents");
      is_child[left] = is_child[left + 1] = 1;
      next += 2;
    }
    require(next == end - first, i, "a node has no parent");
  }
}

Forest::Forest(const TreeArrays& trees, int32_t n_dense, int32_t n_attributes, int n_labels)
    : n_labels_(n_labels), n_dense_(n_dense), n_attributes_(n_attributes) {
  const int64_t n_nodes = trees.tree_offsets[trees.n_trees];
  for (int64_t n = 0; n < n_nodes; ++n) {
    if (trees.columns[n] < 0) continue;
    before_ = std::max(before_, -trees.offsets[n]);
    after_ = std::max(after_, trees.offsets[n]);
    has_sets_ |= trees.sets[n] >= 0;
  }
  if (static_cast<int64_t>(n_offsets()) * n_dense + n_attributes >
      std::numeric_limits<int32_t>::max())
    throw std::invalid_argument("too many columns in the window of the trees");
  const auto number_of = [&](int32_t column, int32_t offset) -> int32_t& {
    return numbers_[static_cast<int64_t>(offset + before_) * n_attributes + column - n_dense];
  };
  for (int64_t n = 0; n < n_nodes; ++n) {
    if (trees.columns[n] < n_dense) continue;
    if (numbers_.empty()) numbers_.assign(static_cast<int64_t>(n_offsets()) * n_attributes, -1);
    int32_t& number = number_of(trees.columns[n], trees.offsets[n]);
    if (number >= 0) continue;
    number = static_cast<int32_t>(n_offsets() * n_dense + attributes_.size());
    attributes_.push_back({trees.columns[n] - n_dense, trees.offsets[n]});
  }
  nodes_.reserve(n_nodes);
  std::vector<int32_t> depths;
  for (int64_t i = 0; i < trees.n_trees; ++i) {
    const int64_t first = trees.tree_offsets[i];
    trees_.push_back({first, measure_depth(trees, i, depths), trees.tree_labels[i]});
    for (int64_t n = first; n < trees.tree_offsets[i + 1]; ++n) {
      if (trees.columns[n] < 0) {
        nodes_.push_back({0, 255, 0, static_cast<uint16_t>(n - first)});
        continue;
      }
      const int32_t column = trees.columns[n], offset = trees.offsets[n];
      const uint32_t feature = column < n_dense ? window_place(column, offset)
                                                : static_cast<uint32_t>(number_of(column, offset));
      Node node{feature, trees.cuts[n], 0, static_cast<uint16_t>(trees.lefts[n])};
      if (trees.sets[n] >= 0) {
        node.shift = 2;
      } else if (!trees.missing_left[n]) {
        node.shift = 1;
        --node.limit;
      }
      nodes_.push_back(node);
    }
  }
  values_.assign(trees.values, trees.values + n_nodes);
  if (has_sets_) {
    sets_.assign(trees.sets, trees.sets + n_nodes);
    left_sets_.assign(trees.left_sets, trees.left_sets + trees.n_sets * 32);
  }
}

// Walks blocks of positions through all trees; one to a thread.
class Forest::Walk {
 public:
  Walk(const Forest& forest, const BinTable& bins, const Room& room, const double* scores,
       double* out)
      : forest_(forest), bins_(bins), room_(room), scores_(scores), out_(out) {
    const size_t dense_width = static_cast<size_t>(forest.n_offsets()) * bins.n_dense;
    // A tree that is a single leaf reads a byte too.
    width_ = std::max<size_t>(dense_width + forest.attributes_.size(), 1);
    copies_.resize(kBlock * width_);
    for (const Feature& feature : forest.attributes_)
      usual_.push_back(bins.default_bins[feature.attribute]);
  }

  void operator()(int64_t begin, int64_t end) {
    const int n_labels = forest_.n_labels_;
    if (out_ != scores_)
      std::copy(scores_ + begin * n_labels, scores_ + end * n_labels, out_ + begin * n_labels);
    for (int64_t t = begin; t < end; ++t)
      rows_[t - begin] = find_row(t, copies_.data() + (t - begin) * width_);
    if (forest_.has_sets_)
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

  void fill_attributes(int64_t t, uint8_t* row) const {
    uint8_t* attributes = row + forest_.n_offsets() * static_cast<int64_t>(bins_.n_dense);
    std::copy(usual_.begin(), usual_.end(), attributes);
    for (int offset = -forest_.before_; offset <= forest_.after_; ++offset) {
      if (!room_.holds(t, offset)) continue;
      const int32_t* numbers =
          forest_.numbers_.data() +
          (offset + forest_.before_) * static_cast<int64_t>(bins_.n_attributes);
      const int64_t last = bins_.entry_offsets[t + offset + 1];
      for (int64_t e = bins_.entry_offsets[t + offset]; e < last; ++e) {
        const int32_t number = numbers[bins_.attributes[e]];
        if (number >= 0) row[number] = bins_.attribute_bins[e];
      }
    }
    if (room_.holds_all(t)) return;
    for (size_t f = 0; f < usual_.size(); ++f)
      if (!room_.holds(t, forest_.attributes_[f].offset)) attributes[f] = 0;
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
    double* out = out_ + t * forest_.n_labels_;
    for (const Tree& tree : forest_.trees_) {
      const Node* nodes = forest_.nodes_.data() + tree.first;
      uint32_t at[kTogether] = {};
      for (int32_t d = 0; d < tree.depth; ++d)
        for (int i = 0; i < kTogether; ++i) at[i] = step<kSets>(nodes, tree.first, at[i], rows[i]);
      const float* values = forest_.values_.data() + tree.first;
      for (int i = 0; i < kTogether; ++i)
        out[i * forest_.n_labels_ + tree.label] += static_cast<double>(values[at[i]]);
    }
  }

  // One position, some trees at a time.
  template <bool kSets>
  void walk_row(int64_t t, const uint8_t* row) {
    double* out = out_ + t * forest_.n_labels_;
    const auto n_trees = static_cast<int64_t>(forest_.trees_.size());
    for (int64_t first = 0; first < n_trees; first += kTogether) {
      const int n = static_cast<int>(std::min<int64_t>(kTogether, n_trees - first));
      const Tree* trees = forest_.trees_.data() + first;
      int32_t depth = 0;
      for (int i = 0; i < n; ++i) depth = std::max(depth, trees[i].depth);
      uint32_t at[kTogether] = {};
      for (int32_t d = 0; d < depth; ++d)
        for (int i = 0; i < n; ++i)
          at[i] = step<kSets>(forest_.nodes_.data() + trees[i].first, trees[i].first, at[i], row);
      for (int i = 0; i < n; ++i)
        out[trees[i].label] += static_cast<double>(forest_.values_[trees[i].first + at[i]]);
    }
  }

  template <bool kSets>
  uint32_t step(const Node* nodes, int64_t first, uint32_t at, const uint8_t* row) const {
    const Node& node = nodes[at];
    const uint8_t bin = row[node.feature];
    if constexpr (kSets) {
      if (node.shift == 2) {
        const uint8_t* set = forest_.left_sets_.data() + forest_.sets_[first + at] * int64_t{32};
        return node.left + !((set[bin >> 3] >> (bin & 7)) & 1);
      }
    }
    return node.left + (static_cast<uint8_t>(bin - node.shift) > node.limit);
  }

  const Forest& forest_;
  const BinTable& bins_;
  const Room& room_;
  const double* scores_;
  double* out_;
  size_t width_;
  std::vector<uint8_t> usual_;   // bins of the attributes in use at a position without entries
  std::vector<uint8_t> copies_;  // (kBlock, width_)
  const uint8_t* rows_[kBlock];
};

void Forest::add_scores(const BinTable& bins, int64_t n_sequences, const int64_t* sequence_offsets,
                        const double* scores, double* out, int n_threads, Stop& stop) const {
  const Room room({n_sequences, sequence_offsets, before_, after_}, bins.n_positions);
  const int64_t n_blocks = (bins.n_positions + kBlock - 1) / kBlock;
  constexpr int64_t kBlocksToTask = 16;
  parallel_for_each_thread((n_blocks + kBlocksToTask - 1) / kBlocksToTask, n_threads, stop, [&] {
    return [&, walk = Walk(*this, bins, room, scores, out)](int64_t task) mutable {
      const int64_t last = std::min((task + 1) * kBlocksToTask, n_blocks);
      for (int64_t block = task * kBlocksToTask; block < last; ++block) {
        stop.check();
        walk(block * kBlock, std::min((block + 1) * kBlock, bins.n_positions));
      }
    };
  });
}

}  // namespace hedgerow
