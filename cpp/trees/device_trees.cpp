#include "trees/device_trees.hpp"

#include <algorithm>
#include <utility>

#include "require.hpp"

namespace hedgerow {
namespace {

TreeNode read_device_node(const DeviceNode& from) {
  TreeNode node;
  node.value = from.value;
  node.weight = from.weight;
  if (from.left < 0) return node;
  node.column = from.column;
  node.offset = from.offset;
  node.gain = static_cast<float>(from.gain);
  node.outside_left = (from.ways & DeviceNode::kOutsideLeft) != 0;
  node.categorical = (from.ways & DeviceNode::kBySet) != 0;
  if (node.categorical) {
    for (int word = 0; word < 8; ++word)
      node.left_bins[word / 2] |= static_cast<uint64_t>(from.set[word]) << (32 * (word % 2));
  } else {
    const int last = static_cast<int>(from.ways & 255);
    for (int word = 0; word <= last / 64; ++word)
      node.left_bins[word] = ~uint64_t{0} >> (word < last / 64 ? 0 : 63 - last % 64);
    if ((from.ways & DeviceNode::kMissingLeft) == 0) erase(node.left_bins, 0);
  }
  return node;
}

// Which of two nodes of the new tree is split later: `places` say where their nodes come from.
struct SplitLater {
  std::span<const DeviceNode> nodes;
  const std::vector<int32_t>& places;
  bool best_first;

  bool operator()(int32_t a, int32_t b) const {
    if (!best_first) return a < b;
    const double gain_a = nodes[places[a]].gain, gain_b = nodes[places[b]].gain;
    return gain_a != gain_b ? gain_a < gain_b : a > b;
  }
};

GrownTree read_device_tree(std::span<const DeviceNode> nodes, bool best_first) {
  GrownTree tree;
  tree.reserve(nodes.size());
  tree.push_back(read_device_node(nodes[0]));
  std::vector<int32_t> places{0};  // of the nodes of the tree
  std::vector<int32_t> open;       // a heap
  const SplitLater later{nodes, places, best_first};
  const auto add_open = [&](int32_t node) {
    if (nodes[places[node]].left < 0) return;
    open.push_back(node);
    std::push_heap(open.begin(), open.end(), later);
  };
  add_open(0);
  while (!open.empty()) {
    std::pop_heap(open.begin(), open.end(), later);
    const int32_t node = open.back();
    open.pop_back();
    const int32_t place = places[node], left = nodes[place].left;
    require(left > place && left + 1 < std::ssize(nodes), "children must come after their parent");
    tree[node].left = static_cast<int32_t>(tree.size());
    for (const int32_t child : {left, left + 1}) {
      tree.push_back(read_device_node(nodes[child]));
      places.push_back(child);
    }
    for (const int32_t child : {tree[node].left, tree[node].left + 1}) add_open(child);
  }
  return tree;
}

}  // namespace

std::vector<GrownTree> read_device_trees(std::span<const DeviceNode> nodes, int64_t max_nodes,
                                         bool best_first) {
  std::vector<GrownTree> trees;
  for (size_t first = 0; first < nodes.size(); first += max_nodes)
    trees.push_back(read_device_tree(nodes.subspan(first, max_nodes), best_first));
  return trees;
}

}  // namespace hedgerow
