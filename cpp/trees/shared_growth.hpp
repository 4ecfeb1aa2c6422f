// Trees whose examples are divided among several workers. Each counts its own; the sums over all
// workers determine the splits, so that all grow the same trees.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trees/grower.hpp"

namespace hedgerow {

class SharedGrowth {
 public:
  // The data and the column rules outlive this. magnitudes: (K,) of the examples of all workers
  SharedGrowth(const TreeData& data, const Examples& examples, const GrowthRules& rules,
               const ColumnRules* column_rules, uint64_t key,
               std::span<const Magnitudes> magnitudes, const std::shared_ptr<MemoryPool>& pool,
               int n_threads, Stop& stop);
  SharedGrowth(const SharedGrowth&) = delete;

  // The counts of this worker for all nodes of all trees whose splits are found next; empty if the
  // trees are complete.
  std::vector<int64_t> propose(int n_threads, Stop& stop);
  // Takes the sums over all workers of the output of propose(), and finds the splits.
  void accept(std::span<const int64_t> sums, int n_threads, Stop& stop);
  // The trees, once they are complete.
  std::vector<GrownTree> take();

 private:
  template <class Task>
  void for_each_tree(int n_threads, Stop& stop, const Task& task);

  const TreeData& data_;
  GrowthRules rules_;
  const ColumnRules* column_rules_;
  UnitBits unit_bits_;
  std::shared_ptr<MemoryPool> pool_;
  bool is_opposite_;
  std::vector<SharedTree> trees_;  // by output, without the first if it is the opposite
};

}  // namespace hedgerow
