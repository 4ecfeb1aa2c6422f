// The counts of a worker, as numbers that can be added to those of other workers.
#pragma once

#include <cstdint>
#include <vector>

#include "trees/data.hpp"
#include "trees/growing_tree.hpp"

namespace hedgerow {

// Appends the sums of a node's histogram: one number for a Sum, two for a WideSum. Those of a root
// include every slot, since workers see different ones, and are followed by the node's total. Those
// of other nodes include the slots of the parent.
void add_counts(const TreeData& data, const OpenNode& node, bool is_root,
                std::vector<int64_t>& counts);

// Replaces the sums of a node by those of all workers, and returns where the next ones begin.
const int64_t* read_counts(const TreeData& data, const int64_t* counts, bool is_root,
                           OpenNode& node);

}  // namespace hedgerow
