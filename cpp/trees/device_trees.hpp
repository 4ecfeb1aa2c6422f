// Trees from nodes that were grown on another device.
#pragma once

#include <cstdint>
#include <span>

#include "trees/tree_arrays.hpp"

namespace hedgerow {

// A node in the layout of hedgerow/cuda/kernels/tree_nodes.cuh.
struct DeviceNode {
  int32_t column;  // -1: a leaf
  int32_t offset;
  uint32_t ways;  // the last bin that goes left, and flags
  int32_t left;   // the left child, before the right one, counted from the tree's first; -1: a leaf
  double gain;
  float value;
  float weight;
  uint32_t set[8];  // a bit for each bin that goes left, for categories

  static constexpr uint32_t kMissingLeft = 0x100, kOutsideLeft = 0x200, kBySet = 0x400;
};
static_assert(sizeof(DeviceNode) == 64);

// Trees of max_nodes each, one for each output; only the root and the nodes below it count. Nodes
// are numbered as by a Grower: best first, or the youngest first. Throws std::invalid_argument if
// children do not come after their parent.
TreeArrays read_device_trees(std::span<const DeviceNode> nodes, int64_t max_nodes, bool best_first);

}  // namespace hedgerow
