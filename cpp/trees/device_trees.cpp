#include "trees/device_trees.hpp"

#include <algorithm>

#include "require.hpp"

namespace hedgerow {
namespace {

// The nodes of a tree in the order of their new numbers, each by its old one.
class DeviceTreeOrder {
 public:
  DeviceTreeOrder(std::span<const DeviceNode> nodes, bool best_first)
      : nodes_(nodes), best_first_(best_first) {
    places_.reserve(nodes.size());
    lefts_.reserve(nodes.size());
    add(0);
    while (!open_.empty()) {
      const int32_t node = take_open(), left = nodes[places_[node]].left;
      require(left > places_[node] && left + 1 < std::ssize(nodes),
              "children must come after their parent");
      lefts_[node] = static_cast<int32_t>(places_.size());
      add(left);
      add(left + 1);
    }
  }

  const std::vector<int32_t>& places() const { return places_; }
  const std::vector<int32_t>& lefts() const { return lefts_; }  // new numbers; -1: a leaf

 private:
  auto later() const {
    return [this](int32_t a, int32_t b) {
      const double gain_a = nodes_[places_[a]].gain, gain_b = nodes_[places_[b]].gain;
      return gain_a != gain_b ? gain_a < gain_b : a > b;
    };
  }

  void add(int32_t place) {
    const auto node = static_cast<int32_t>(places_.size());
    places_.push_back(place);
    lefts_.push_back(-1);
    if (nodes_[place].left < 0) return;
    open_.push_back(node);
    if (best_first_) std::ranges::push_heap(open_, later());
  }

  // The node that is split next: that of the largest gain, or the youngest, which is the last.
  int32_t take_open() {
    if (best_first_) std::ranges::pop_heap(open_, later());
    const int32_t node = open_.back();
    open_.pop_back();
    return node;
  }

  std::span<const DeviceNode> nodes_;
  bool best_first_;
  std::vector<int32_t> places_, lefts_, open_;
};

void append_device_node(const DeviceNode& node, int32_t left, TreeArrays& out) {
  const bool is_split = left >= 0;
  const auto has = [&](uint32_t flag) { return is_split && (node.ways & flag) != 0; };
  const bool has_set = has(DeviceNode::kBySet);
  out.columns.push_back(is_split ? node.column : -1);
  out.offsets.push_back(is_split ? node.offset : 0);
  out.cuts.push_back(is_split && !has_set ? static_cast<uint8_t>(node.ways) : uint8_t{0});
  out.missing_left.push_back(has_set ? node.set[0] & 1 : has(DeviceNode::kMissingLeft));
  out.outside_left.push_back(has(DeviceNode::kOutsideLeft));
  if (has_set)
    for (const uint32_t word : node.set)
      for (int byte = 0; byte < 4; ++byte)
        out.left_sets.push_back(static_cast<uint8_t>(word >> (8 * byte)));
  out.sets.push_back(has_set ? static_cast<int32_t>(out.n_sets()) - 1 : -1);
  out.lefts.push_back(left);
  out.values.push_back(node.value);
  out.gains.push_back(is_split ? static_cast<float>(node.gain) : 0.0f);
  out.weights.push_back(node.weight);
}

}  // namespace

TreeArrays read_device_trees(std::span<const DeviceNode> nodes, int64_t max_nodes,
                             bool best_first) {
  TreeArrays arrays;
  arrays.reserve_nodes(nodes.size());
  for (size_t first = 0; first < nodes.size(); first += max_nodes) {
    const auto of_tree = nodes.subspan(first, max_nodes);
    const DeviceTreeOrder order(of_tree, best_first);
    for (size_t i = 0; i < order.places().size(); ++i)
      append_device_node(of_tree[order.places()[i]], order.lefts()[i], arrays);
    arrays.outputs.push_back(static_cast<int32_t>(arrays.outputs.size()));
    arrays.tree_offsets.push_back(arrays.n_nodes());
  }
  arrays.round_offsets.push_back(arrays.n_trees());
  return arrays;
}

}  // namespace hedgerow
