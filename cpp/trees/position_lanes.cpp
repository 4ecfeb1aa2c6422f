#include "trees/position_lanes.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "simd.hpp"
#include "trees/tiles.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kMaxLaneLeaves = 256;

}  // namespace

bool PositionLanes::suits(const TreeArrays& trees, int32_t n_dense) {
  if (!trees.have_at_most(kMaxLaneLeaves)) return false;
  for (int64_t n = 0; n < trees.n_nodes(); ++n)
    if (trees.columns[n] >= n_dense ||
        (trees.columns[n] >= 0 && (trees.sets[n] >= 0 || trees.offsets[n] >= kParent)))
      return false;
  return true;
}

class PositionLanes::Builder {
 public:
  Builder(PositionLanes& lanes, const TreeArrays& trees) : lanes_(lanes), arrays_(trees) {}

  void build() {
    for (int64_t i = 0; i < arrays_.n_trees(); ++i) {
      Tree tree{};
      tree.first_split = static_cast<int64_t>(lanes_.splits_.size());
      tree.first_value = static_cast<int64_t>(lanes_.values_.size());
      tree.output = arrays_.outputs[i];
      add_nodes(arrays_.tree_offsets[i], arrays_.tree_offsets[i + 1], tree);
      // The rows of the tree before are still valid.
      if (repeats_splits(arrays_, i)) {
        lanes_.splits_.resize(tree.first_split);
        tree.end_of_leaves = tree.end_split = tree.first_split;
      }
      lanes_.trees_.push_back(tree);
    }
  }

 private:
  // Splits whose children are both leaves come first. Children come after their parent, so nodes
  // are added from the last to the first.
  void add_nodes(int64_t first, int64_t end, Tree& tree) {
    rows_.resize(end - first);
    for (int64_t n = end - 1; n >= first; --n) {
      if (arrays_.columns[n] >= 0) continue;
      rows_[n - first] = static_cast<uint16_t>(tree.n_leaves++);
      lanes_.values_.push_back(arrays_.values[n]);
    }
    const auto is_leaf = [&](int64_t n) { return arrays_.columns[n] < 0; };
    const auto has_leaves = [&](int64_t n) {
      const int64_t left = first + arrays_.lefts[n];
      return is_leaf(left) && is_leaf(left + 1);
    };
    for (const bool of_leaves : {true, false}) {
      for (int64_t n = end - 1; n >= first; --n) {
        if (is_leaf(n) || has_leaves(n) != of_leaves) continue;
        const auto n_before = static_cast<int64_t>(lanes_.splits_.size()) - tree.first_split;
        rows_[n - first] = static_cast<uint16_t>(kMaxLaneLeaves + n_before);
        const uint16_t* children = rows_.data() + arrays_.lefts[n];
        const Asked asked = ask(n);
        lanes_.splits_.push_back(
            {number_feature(asked.feature), children[0], children[1], asked.shift, asked.limit});
      }
      if (of_leaves) tree.end_of_leaves = static_cast<int64_t>(lanes_.splits_.size());
    }
    tree.root = rows_[0];
    tree.end_split = static_cast<int64_t>(lanes_.splits_.size());
    lanes_.max_splits_ =
        std::max(lanes_.max_splits_, static_cast<int32_t>(tree.end_split - tree.first_split));
  }

  struct Asked {
    Feature feature;  // of a column, not of its place
    uint8_t shift, limit;
  };

  Asked ask(int64_t node) const {
    const int32_t column = arrays_.columns[node], offset = arrays_.offsets[node];
    const bool outside_left = arrays_.outside_left[node] != 0;
    const BinTest test = bin_test(arrays_, node);
    // All bins go left, so there is no byte for positions outside that go right.
    if (test.limit == 255 && !outside_left) return {{-1, offset, 1}, 0, 0};
    const int outside = offset == 0 ? 0 : test.shift - (outside_left ? 0 : 1);
    return {{column, offset, static_cast<uint8_t>(outside)}, test.shift, test.limit};
  }

  uint32_t number_feature(const Feature& asked) {
    const int32_t place = asked.column < 0 ? -1 : number_column(asked.column);
    const auto key = std::tuple(place, asked.offset, asked.outside);
    const auto [number, is_unknown] =
        features_.try_emplace(key, static_cast<uint32_t>(lanes_.features_.size()));
    if (is_unknown) lanes_.features_.push_back({place, asked.offset, asked.outside});
    return number->second;
  }

  int32_t number_column(int32_t column) {
    const auto [place, is_new] =
        columns_.try_emplace(column, static_cast<int32_t>(lanes_.columns_.size()));
    if (is_new) lanes_.columns_.push_back(column);
    return place->second;
  }

  PositionLanes& lanes_;
  const TreeArrays& arrays_;
  std::vector<uint16_t> rows_;  // of the nodes of a tree
  std::unordered_map<int32_t, int32_t> columns_;
  std::map<std::tuple<int32_t, int32_t, uint8_t>, uint32_t> features_;
};

PositionLanes::PositionLanes(const TreeArrays& trees, int before, int after)
    : before_(before), after_(after) {
  Builder(*this, trees).build();
  places_.resize(columns_.size());
  std::iota(places_.begin(), places_.end(), size_t{0});
  std::sort(places_.begin(), places_.end(),
            [&](size_t a, size_t b) { return columns_[a] < columns_[b]; });
}

PositionLanes::Block::Block(const PositionLanes& lanes)
    : lanes_(lanes),
      width_(kWalkBlock + lanes.before_ + lanes.after_),
      columns_(lanes.columns_.size() * width_),
      sources_(lanes.columns_.size()),
      tile_(kTileColumns * width_),
      features_(lanes.features_.size()),
      leaves_(kMaxLaneLeaves + lanes.max_splits_) {
  for (int64_t leaf = 0; leaf < kMaxLaneLeaves; ++leaf)
    std::fill_n(leaves_[leaf].bytes, kWalkBlock, static_cast<uint8_t>(leaf));
  for (size_t place = 0; place < sources_.size(); ++place)
    sources_[place] = columns_.data() + static_cast<int64_t>(place) * width_ + lanes.before_;
}

void PositionLanes::Block::read_bins(const BinTable& bins, int64_t begin, int64_t end) {
  const bool lies_inside =
      begin >= lanes_.before_ && begin + kWalkBlock + lanes_.after_ <= bins.n_positions;
  const bool reads_there = bins.columns != nullptr && lies_inside;
  for (size_t place = 0; place < sources_.size(); ++place)
    sources_[place] = reads_there
                          ? bins.columns + lanes_.columns_[place] * bins.column_stride + begin
                          : columns_.data() + static_cast<int64_t>(place) * width_ + lanes_.before_;
  if (!reads_there) copy_bins(bins, begin, end);
}

void PositionLanes::Block::copy_bins(const BinTable& bins, int64_t begin, int64_t end) {
  const int64_t first = lanes_.first_around(begin);
  const int64_t last = lanes_.end_around(end, bins.n_positions);
  const int64_t n = last - first, n_dense = bins.n_dense;
  const uint8_t* rows = bins.dense + first * n_dense;
  const auto& places = lanes_.places_;
  for (size_t i = 0, next = 0; i < places.size(); i = next) {
    // Columns in use that are close together are copied in one tile, with those between them.
    const int64_t tile = first_of_tile(lanes_.columns_[places[i]], n_dense);
    const int64_t end_tile = std::min(tile + kTileColumns, n_dense);
    while (next < places.size() && lanes_.columns_[places[next]] < end_tile) ++next;
    const bool is_tile = next - i > 1;
    if (is_tile) copy_bytes(rows + tile, n_dense, n, end_tile - tile, tile_.data(), width_);
    for (size_t place = i; place < next; ++place) {
      const int64_t column = lanes_.columns_[places[place]];
      uint8_t* out = bins_around(places[place], begin);
      if (is_tile)
        std::copy_n(tile_.data() + (column - tile) * width_, n, out);
      else
        for (int64_t t = 0; t < n; ++t) out[t] = rows[t * n_dense + column];
    }
  }
}

// Fills in the bytes that splits test, feature by feature. Lanes from `end` on may hold anything.
void PositionLanes::Block::fill_features(const Room& room, int64_t begin, int64_t end) {
  Row* next = features_.data();
  for (const Feature& feature : lanes_.features_) {
    uint8_t* out = next++->bytes;
    if (feature.column < 0) {
      std::fill_n(out, kWalkBlock, uint8_t{0});
    } else {
      const uint8_t* column = sources_[feature.column] + feature.offset;
      HEDGEROW_PREFETCH(column + 3 * kWalkBlock / 2 - 1);  // for the next block
      HEDGEROW_PREFETCH(column + 2 * kWalkBlock - 1);
      std::memcpy(out, column, kWalkBlock);
    }
  }
  for (int64_t t = begin; t < end; ++t) {
    if (room.holds_all(t)) continue;
    Row* row = features_.data();
    for (const Feature& feature : lanes_.features_) {
      if (!room.holds(t, feature.offset)) row->bytes[t - begin] = feature.outside;
      ++row;
    }
  }
}

HEDGEROW_CLONES
void PositionLanes::find_leaves(const Split* splits, int64_t n_of_leaves, int64_t n_splits,
                                const Row* features, Row* rows) {
  const auto fill = [&](int64_t s, auto left, auto right) HEDGEROW_INLINE_LAMBDA {
    uint8_t* HEDGEROW_RESTRICT out = rows[kMaxLaneLeaves + s].bytes;
    const uint8_t shift = splits[s].shift, limit = splits[s].limit;
    const uint8_t* HEDGEROW_RESTRICT bins = features[splits[s].feature].bytes;
    for (int64_t i = 0; i < kWalkBlock; ++i) {
      const uint8_t if_left = left(i), if_right = right(i);
      out[i] = static_cast<uint8_t>(bins[i] - shift) <= limit ? if_left : if_right;
    }
  };
  const auto same = [](uint16_t leaf) HEDGEROW_INLINE_LAMBDA {
    return [leaf](int64_t) { return static_cast<uint8_t>(leaf); };
  };
  const auto read = [rows](uint16_t row) HEDGEROW_INLINE_LAMBDA {
    return [bytes = rows[row].bytes](int64_t i) { return bytes[i]; };
  };
  int64_t s = 0;
  for (; s < n_of_leaves; ++s) fill(s, same(splits[s].left), same(splits[s].right));
  for (; s < n_splits; ++s) fill(s, read(splits[s].left), read(splits[s].right));
}

void PositionLanes::Block::add_scores(const Room& room, const ScoreTable& table, int64_t begin,
                                      int64_t end) {
  const int64_t n = end - begin, n_outputs = table.n_outputs;
  fill_features(room, begin, end);
  // The scores of the next block are read into the cache, some of them with every tree.
  const double* next = table.out + end * n_outputs;
  const double* last = next + kWalkBlock * n_outputs;
  double products[kMaxLaneLeaves];
  const double* next_weight = table.tree_weights;
  for (const Tree& tree : lanes_.trees_) {
    find_leaves(lanes_.splits_.data() + tree.first_split, tree.end_of_leaves - tree.first_split,
                tree.end_split - tree.first_split, features_.data(), leaves_.data());
    const float* values = lanes_.values_.data() + tree.first_value;
    const double weight = *next_weight++;
    for (int64_t i = 0; i < kWalkBlock && next < last; i += 8, next += 8)
      HEDGEROW_PREFETCH_FAR(next);
    for (int32_t leaf = 0; leaf < tree.n_leaves; ++leaf)
      products[leaf] = weight * static_cast<double>(values[leaf]);
    const uint8_t* leaves = leaves_[tree.root].bytes;
    double* scores = table.out + begin * n_outputs + tree.output;
    for (int64_t i = 0; i < n; ++i) scores[i * n_outputs] += products[leaves[i]];
  }
}

}  // namespace hedgerow
