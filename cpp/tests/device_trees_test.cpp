#include "trees/device_trees.hpp"

#include <stdexcept>
#include <vector>

#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

DeviceNode device_leaf(float value) {
  return {.column = -1,
          .offset = 0,
          .ways = 0,
          .left = -1,
          .gain = 0,
          .value = value,
          .weight = 1,
          .set = {}};
}

DeviceNode device_split(int32_t left, double gain, uint32_t ways) {
  return {.column = 2,
          .offset = 1,
          .ways = ways,
          .left = left,
          .gain = gain,
          .value = 0,
          .weight = 2,
          .set = {}};
}

// The right child of the root gains more than the left one.
std::vector<DeviceNode> device_tree() {
  return {device_split(1, 9.0, 3 | DeviceNode::kMissingLeft),
          device_split(3, 1.0, 7 | DeviceNode::kOutsideLeft),
          device_split(5, 2.0, DeviceNode::kBySet),
          device_leaf(1.0f),
          device_leaf(2.0f),
          device_leaf(3.0f),
          device_leaf(4.0f)};
}

TEST(device_trees_are_numbered_as_they_grow) {
  std::vector<DeviceNode> nodes = device_tree();
  nodes[2].set[7] = 1u << 31;
  for (const bool best_first : {true, false}) {
    const TreeArrays trees = read_device_trees(nodes, 7, best_first);
    CHECK(trees.n_trees() == 1 && trees.n_nodes() == 7 && trees.tree_offsets[1] == 7);
    CHECK(trees.lefts[0] == 1 && trees.missing_left[0] && trees.cuts[0] == 3);
    CHECK(!trees.outside_left[0] && trees.gains[0] == 9.0f && trees.sets[0] == -1);
    // Both orders split the right child first.
    CHECK(trees.lefts[2] == 3 && trees.lefts[1] == 5 && trees.values[3] == 3.0f);
    CHECK(trees.sets[2] == 0 && contains(trees, 0, 255) && !contains(trees, 0, 254));
    CHECK(!trees.missing_left[1] && trees.outside_left[1] && trees.columns[3] == -1);
  }
  nodes[1].gain = 3.0;
  CHECK(read_device_trees(nodes, 7, true).lefts[1] == 3);
  CHECK(read_device_trees(nodes, 7, false).lefts[1] == 5);
}

TEST(device_trees_that_are_none) {
  std::vector<DeviceNode> nodes = device_tree();
  for (const int32_t left : {0, 6, 7}) {
    nodes[0].left = left;
    CHECK_THROWS(std::invalid_argument, read_device_trees(nodes, 7, true),
                 "children must come after their parent");
  }
}

}  // namespace
}  // namespace hedgerow::tests
