// Trees while they grow: their nodes, and the places of their examples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "memory_pool.hpp"
#include "trees/context_rows.hpp"
#include "trees/divided_examples.hpp"
#include "trees/divided_rows.hpp"
#include "trees/grown_tree.hpp"
#include "trees/histogram.hpp"
#include "trees/split.hpp"

namespace hedgerow {

// Arrays for examples of a tree: for all of them, or for those of the nodes below a split on
// contexts, which share positions with other nodes.
struct Space {
  // The positions of a node are contiguous in one of the two arrays, in order; the same number of
  // places in the other is its spare room.
  PooledArray<int32_t> positions, spare;
  PooledArray<uint8_t> goes_left;  // by example, for the node that is partitioned
  PooledArray<Sum> sums;           // (N,) by position
  PooledArray<float> joint;        // (N,) by position: ContextRows::fill_joint, where needed

  Space(const std::shared_ptr<MemoryPool>& pool, int64_t n_examples, int64_t n_positions,
        bool has_joint)
      : positions(pool, n_examples),
        spare(pool, n_examples),
        goes_left(pool, n_examples),
        sums(pool, n_positions),
        joint(pool, has_joint ? n_positions : 0) {}
};

// A node that may still be split.
struct OpenNode {
  int32_t node = 0;
  int depth = 0;
  int64_t first = 0;               // place of its first example in the arrays of the space
  std::span<int32_t> positions{};  // of its examples
  std::span<int32_t> spare{};      // room for as many
  WideSum total{};
  std::shared_ptr<Space> space{};                // where its examples are
  std::shared_ptr<DividedExamples> parts{};      // its examples; null: they are whole
  std::vector<int32_t> contexts{};               // of its examples, if the tree splits on them
  std::shared_ptr<const DividedRows> divided{};  // their sums there; null: as at the root
  StepBounds bounds{};
  std::vector<int32_t> branch{};  // columns split on above it, if these limit its splits
  Split split{};
  std::unique_ptr<Histogram> histogram{};

  int64_t n_examples() const { return std::ssize(positions); }
};

// The nodes whose splits are known, in the order in which they are split. Best first: the one with
// the largest gain is next, among equals the oldest. If all will be split in the end, the youngest
// is next, so that few histograms exist at a time.
class Frontier {
 public:
  explicit Frontier(bool best_first) : comes_later_{best_first} {}

  bool empty() const { return nodes_.empty(); }
  void push(OpenNode node) {
    nodes_.push_back(std::move(node));
    std::push_heap(nodes_.begin(), nodes_.end(), comes_later_);
  }
  OpenNode pop() {
    std::pop_heap(nodes_.begin(), nodes_.end(), comes_later_);
    OpenNode node = std::move(nodes_.back());
    nodes_.pop_back();
    return node;
  }

 private:
  struct ComesLater {
    bool best_first;

    bool operator()(const OpenNode& a, const OpenNode& b) const {
      if (!best_first) return a.node < b.node;
      if (a.split.gain != b.split.gain) return a.split.gain < b.split.gain;
      return a.node > b.node;
    }
  };
  ComesLater comes_later_;
  std::vector<OpenNode> nodes_;  // a heap
};

// A tree, or a branch of it that is grown separately.
struct GrowingTree {
  uint64_t key;
  SplitRules rules;
  std::shared_ptr<const ContextRows> rows;  // null: it does not split on contexts
  std::vector<uint8_t> features;  // by column and offset, 0 if it may not be used; empty: all may
  const int8_t* directions;       // by column, of type ColumnDirection; null: any way
  GrownTree nodes{};
  int n_leaves = 1;
  bool is_shared = false;  // whether other workers have examples too

  // The joint curvature of all contexts of a leaf is less than the sum of their curvatures.
  bool is_joint() const { return rows != nullptr && rows->has_probabilities(); }
};

// The nodes whose splits are found next: a root, or two siblings.
struct Pending {
  // The histogram of `counted` is made from its examples, unless it exists already; that of its
  // sibling by subtraction from their parent's.
  OpenNode counted;
  std::optional<OpenNode> sibling{};
  std::unique_ptr<Histogram> of_parent{};
};

// A tree whose examples are divided among several workers, between two joint counts.
struct SharedTree {
  GrowingTree tree;
  Frontier frontier{false};
  std::vector<Pending> pending{};
  std::vector<int64_t> counted{};  // sums of this worker, then of all workers
  bool is_root = true;             // whether the root is pending
};

}  // namespace hedgerow
