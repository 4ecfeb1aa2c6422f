// The partitioner: from the examples of a node to those of its children.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "crew.hpp"
#include "memory_pool.hpp"
#include "parallel.hpp"
#include "trees/data.hpp"
#include "trees/feature_choice.hpp"
#include "trees/growing_tree.hpp"
#include "trees/histogram_builder.hpp"
#include "trees/missing.hpp"

namespace hedgerow {

inline constexpr int64_t kPieceSize = 1 << 13;  // examples that a thread partitions at a time

// Fills Space::joint of some nodes at these positions, which include their examples.
void fill_joint(const ContextRows& rows, std::span<const int32_t> positions,
                std::initializer_list<const OpenNode*> nodes, Crew& crew);

// Left and right.
using Children = std::pair<OpenNode, OpenNode>;

// Each thread has its own partitioner; idle threads help.
class Partitioner {
 public:
  // All arguments outlive this.
  Partitioner(const TreeData& data, const MissingRules& missing,
              const std::shared_ptr<MemoryPool>& pool, HistogramBuilder& builder,
              FeatureChoice& choice, Crew& crew, Stop& stop)
      : data_(data),
        missing_(missing),
        pool_(pool),
        builder_(builder),
        choice_(choice),
        crew_(crew),
        stop_(stop) {}

  // The children of a node by its split, with the places of their examples, and the sum of those on
  // the left. Where missing values go is recorded in the tree.
  Children part(GrowingTree& tree, const OpenNode& parent);
  // The same, without the examples of the children.
  Children make_leaves(GrowingTree& tree, const OpenNode& parent);

 private:
  struct Counts;
  class SharedParts;

  static double note_fraction(GrowingTree& tree, const OpenNode& parent);
  Children part_alone(const OpenNode& parent);
  Children part_by_contexts(const GrowingTree& tree, const OpenNode& parent);
  Children part_by_fractions(const GrowingTree& tree, const OpenNode& parent, double share);
  Children divide_rows(const GrowingTree& tree, const OpenNode& parent, double share);
  std::shared_ptr<DividedExamples> parts_of(const OpenNode& node);
  Children part_by_surrogates(GrowingTree& tree, const OpenNode& parent, bool are_leaves);

  std::vector<int64_t> mark_sides(const OpenNode& parent, bool leaves_out);
  Children part_marked(const OpenNode& parent, const std::vector<int64_t>& n_left_of_pieces,
                       const WideSum& left_total);
  size_t partition(const OpenNode& parent, const std::vector<int64_t>& n_left_of_pieces);
  template <class LeftOf>
  Children part_sums(const GrowingTree& tree, const OpenNode& parent, const LeftOf& left_of);

  const TreeData& data_;
  const MissingRules& missing_;
  std::shared_ptr<MemoryPool> pool_;
  HistogramBuilder& builder_;
  FeatureChoice& choice_;
  Crew& crew_;
  Stop& stop_;
};

}  // namespace hedgerow
