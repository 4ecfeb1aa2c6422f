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
    const std::vector<GrownTree> trees = read_device_trees(nodes, 7, best_first);
    CHECK(trees.size() == 1 && trees[0].size() == 7);
    const GrownTree& tree = trees[0];
    CHECK(tree[0].left == 1 && contains(tree[0].left_bins, 0) && contains(tree[0].left_bins, 3));
    CHECK(!contains(tree[0].left_bins, 4) && !tree[0].outside_left && tree[0].gain == 9.0f);
    // Both orders split the right child first.
    CHECK(tree[2].left == 3 && tree[1].left == 5 && tree[3].value == 3.0f);
    CHECK(tree[2].categorical && contains(tree[2].left_bins, 255));
    CHECK(!contains(tree[1].left_bins, 0) && tree[1].outside_left);
  }
  nodes[1].gain = 3.0;
  CHECK(read_device_trees(nodes, 7, true)[0][1].left == 3);
  CHECK(read_device_trees(nodes, 7, false)[0][1].left == 5);
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
