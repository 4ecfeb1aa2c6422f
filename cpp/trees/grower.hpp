// The grower: from the examples of an output to its tree.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "crew.hpp"
#include "trees/feature_choice.hpp"
#include "trees/grow.hpp"
#include "trees/growing_tree.hpp"
#include "trees/histogram_builder.hpp"
#include "trees/partitioner.hpp"

namespace hedgerow {

class Grower;

// A pool of growers for reuse, shared by threads.
class GrowerPool {
 public:
  explicit GrowerPool(std::function<std::unique_ptr<Grower>()> make) : make_(std::move(make)) {}
  ~GrowerPool();

  std::unique_ptr<Grower> take();
  void give_back(std::unique_ptr<Grower> grower);

 private:
  std::function<std::unique_ptr<Grower>()> make_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Grower>> idle_;
};

// Grows trees one after another; each thread has its own grower. The frontier decides which node is
// split next; each step partitions one node, counts examples, and finds the splits of the new
// nodes. Idle threads share the work of large nodes; a small node and its whole branch are grown by
// one thread.
class Grower {
 public:
  // All arguments except for the memory pool outlive this.
  Grower(const TreeData& data, const GrowthRules& rules, const ColumnRules* column_rules,
         const UnitBits& unit_bits, const std::shared_ptr<MemoryPool>& pool, GrowerPool& growers,
         Crew& crew, Stop& stop);

  GrownTree grow(const Examples& examples, int output, uint64_t key);
  GrownTree grow(const ContextExamples& examples, int output, uint64_t key);

  // The same in steps, for examples that are divided among several workers. `plant_shared` makes a
  // tree with a root; `advance` splits nodes and counts the examples of their children, `accept`
  // finds the splits of these. A tree without counts after `advance` is complete.
  // Whether all nodes of a level are counted together, which numbers them in another order than
  // `grow` does.
  static bool grows_by_level(const GrowthRules& rules);
  SharedTree plant_shared(const Examples& examples, int output, uint64_t key, const Units& units);
  void advance(SharedTree& tree);
  void accept(SharedTree& tree);

 private:
  GrowingTree plant(const Units& units, int output, uint64_t key) const;
  template <class Example>
  Pending open_root(GrowingTree& tree, int64_t n, Example example);
  GrownTree complete(GrowingTree& tree, Pending root);
  bool grow_from(GrowingTree& tree, int64_t n_examples, Frontier& frontier);

  bool is_best_first() const { return is_best_first(rules_); }
  static bool is_best_first(const GrowthRules& rules);
  bool may_grow_apart(const OpenNode& node, int64_t n_examples, int64_t n_branches) const;
  void grow_apart(GrowingTree& tree, std::vector<OpenNode>& branches);

  void open(const GrowingTree& tree, Pending pending, Frontier& frontier);
  void find_splits(const GrowingTree& tree, Pending& pending, Frontier& frontier);
  bool is_wanted(const GrowingTree& tree, const Pending& pending) const;
  void count(const GrowingTree& tree, Pending& pending);
  NodeExamples examples_of(const OpenNode& node);
  void count_contexts(const ContextRows& rows, OpenNode& node);
  void find_split_of(const GrowingTree& tree, OpenNode& node);
  void push_if_split(OpenNode node, Frontier& frontier);
  bool may_split(const GrowingTree& tree, const OpenNode& node) const;

  Pending split(GrowingTree& tree, OpenNode parent);
  std::pair<StepBounds, StepBounds> bounds_of_children(const GrowingTree& tree,
                                                       const OpenNode& parent,
                                                       const WideSum& left_total) const;
  void add_leaf(GrowingTree& tree, OpenNode& node) const;
  double curvature(const GrowingTree& tree, const WideSum& total) const;
  double step(const GrowingTree& tree, const WideSum& total, double weight,
              const StepBounds& bounds) const;

  const TreeData& data_;
  const GrowthRules& rules_;
  const ColumnRules* column_rules_;
  UnitBits unit_bits_;
  std::shared_ptr<MemoryPool> pool_;
  GrowerPool& growers_;
  Crew& crew_;
  Stop& stop_;
  HistogramBuilder builder_;
  FeatureChoice choice_;
  Partitioner partitioner_;
  PooledArray<Sum> by_position_;  // (N,) of a node whose examples are divided, for windows
};

}  // namespace hedgerow
