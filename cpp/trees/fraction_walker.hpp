// The fraction walker: trees whose splits send missing values both ways.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "simd.hpp"
#include "trees/block_walker.hpp"

namespace hedgerow {

// A node adds what its left or its right child adds, or a mixture of both where the value is
// missing. Trees with few leaves are evaluated like that from their leaves to the root, for all
// positions of a block at once: one node at a time, or a split together with two splits below it
// whose children are leaves. In other trees every node has a list of the positions that come to it,
// together with the share of each position that comes to it; such trees add the values of all
// leaves that a position reaches, each times its share, from left to right.
class FractionMethod {
 public:
  static constexpr int64_t kBlock = kLowLimits ? 64 : 128;
  class Walk;

  FractionMethod(const TreeArrays& trees, NumberedFeatures& features);

 private:
  // A node; only the value of a leaf is read.
  struct Node {
    int32_t feature;  // -1: a leaf
    bool has_set;
    uint16_t shift, limit;     // see Question
    int64_t left;              // child
    double to_left, to_right;  // shares of missing values
    double value;
  };
  struct Question;
  struct Pair;
  // Nodes that are evaluated together, into a row of values; `node` is the topmost.
  enum class Kind : uint8_t { kLeaf, kPair, kTwoPairs, kSplit };
  struct Step {
    Kind kind;
    int32_t row;
    int64_t node;
  };

  void plan(int64_t node, int32_t row);
  bool is_leaf(int64_t node) const { return nodes_[node].feature < 0; }
  bool is_pair(int64_t node) const;
  static void choose(const Question& question, const double* right, double* left);
  static void choose_leaves(const Pair& leaves, double* out);
  static void choose_pairs(const Question& question, const Pair& on_left, const Pair& on_right,
                           double* out);

  const TreeArrays& arrays_;  // of the trees
  std::vector<Node> nodes_;
  std::vector<Step> steps_;  // of trees that are evaluated whole, children first
  // By node: [begin, end) of the steps of the tree that begins there, empty if it is walked by
  // lists.
  std::vector<std::pair<int64_t, int64_t>> steps_of_;
  int32_t n_rows_ = 1;  // rows that steps need
};

class FractionMethod::Walk {
 public:
  explicit Walk(const FractionMethod& method) : method_(method), rows_(method.n_rows_) {}

  void run(int64_t first, int64_t n, BlockBins<kBlock>& bins);
  double value(int64_t i) const { return rows_[0][i]; }

 private:
  // A node, the positions of the block that come to it, and the share of each that does.
  struct List {
    int64_t node, n;
    std::array<uint16_t, kBlock> positions;
    std::array<double, kBlock> shares;
  };
  struct alignas(64) Row : std::array<double, kBlock> {};

  Question ask(int64_t node, BlockBins<kBlock>& bins) const;
  Pair ask_pair(int64_t node, BlockBins<kBlock>& bins) const;
  void take(const Step& step, BlockBins<kBlock>& bins);
  static void divide(Question question, List& here, List& left);
  void add_lists(int64_t first, int64_t n, BlockBins<kBlock>& bins);
  void add_leaf(const List& here, double value);
  void add_leaves(const Pair& leaves, const List& here);

  const FractionMethod& method_;
  std::vector<List> open_;  // nodes still to be walked, the next one last
  // What nodes add, by position; the first row ends up with what the tree adds.
  std::vector<Row> rows_;
};

using FractionWalker = BlockWalker<FractionMethod>;

}  // namespace hedgerow
