#include "trees/grow.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "random.hpp"
#include "require.hpp"

namespace hedgerow {
namespace {

constexpr uint64_t kTreeColumns = 1, kNodeColumns = 2;  // purposes of random numbers

// A node that may still be split.
struct OpenNode {
  int32_t node;
  int depth;
  int64_t begin, end;  // its examples
  Sum total;
  StepBounds bounds{};
  std::vector<int32_t> branch{};  // columns split on above it, if that limits what it may use
  Split split{};
  std::unique_ptr<Histogram> histogram{};

  int64_t n_examples() const { return end - begin; }
};

// The nodes whose splits are known, and which of them is split next. Best first, that of the
// largest gain, among equals the oldest. If all will be split in the end, the youngest: then few
// histograms are open at a time.
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

struct GrowingTree {
  uint64_t key;
  SplitRules rules;
  std::vector<Example> examples;  // those of a node stand together, by position
  std::vector<uint8_t> features;  // by column and offset, 0 if it may not be used; empty: all may
  const int8_t* directions;       // by column, of type ColumnDirection; null: any way
  GrownTree nodes{};
  int n_leaves = 1;
};

// The nodes whose splits are wanted next: a root, or two siblings.
struct Pending {
  OpenNode counted;                        // its histogram is made from its examples,
  std::optional<OpenNode> sibling{};       // that of its sibling, which has as many or more, from
  std::unique_ptr<Histogram> of_parent{};  // their parent's by subtraction
};

// Marks a share of the n features, or of those that are marked already; at least one.
std::vector<uint8_t> choose_features(int64_t n, const std::vector<uint8_t>& among, double share,
                                     uint64_t key) {
  std::vector<std::pair<uint64_t, int64_t>> draws;
  for (int64_t f = 0; f < n; ++f)
    if (among.empty() || among[f]) draws.emplace_back(derive_key(key, static_cast<uint64_t>(f)), f);
  const auto n_chosen =
      std::max<int64_t>(1, std::llround(share * static_cast<double>(draws.size())));
  std::vector<uint8_t> chosen(n);
  if (draws.empty()) return chosen;
  std::nth_element(draws.begin(), draws.begin() + (n_chosen - 1), draws.end());
  for (int64_t i = 0; i < n_chosen; ++i) chosen[draws[i].second] = 1;
  return chosen;
}

// Grows trees one after the other; each thread has its own. The frontier decides which node is
// split next; each step counts examples, finds the splits of the nodes that are new, and partitions
// one node.
class Grower {
 public:
  Grower(const TreeData& data, const GrowthRules& rules, const ColumnRules* column_rules,
         Stop& stop)
      : data_(data),
        rules_(rules),
        column_rules_(column_rules),
        stop_(stop),
        builder_(data, stop) {}

  GrownTree grow(std::span<const Derivatives> derivatives, int output, uint64_t key) {
    GrowingTree tree = plant(derivatives, output, key);
    Frontier frontier(rules_.max_depth >= 31 || rules_.max_leaves < 1 << rules_.max_depth);
    Pending pending = open_root(tree);
    for (;;) {
      stop_.check();
      count(tree, pending);
      // If each machine had some of the examples, they would add up what they counted here, and
      // find the same splits. (In `plant` they would agree on units and on the root's sum, in
      // `split` on how many examples go each way.)
      subtract_sibling(pending);
      find_split_of(tree, pending.counted, frontier);
      if (pending.sibling) find_split_of(tree, *pending.sibling, frontier);
      if (frontier.empty() || tree.n_leaves >= rules_.max_leaves) break;
      pending = split(tree, frontier.pop());
    }
    while (!frontier.empty()) give_back(frontier.pop().histogram);
    return std::move(tree.nodes);
  }

 private:
  GrowingTree plant(std::span<const Derivatives> derivatives, int output, uint64_t key) const {
    FixedPoint fixed = to_fixed_point(derivatives);
    const SplitRules rules{rules_.reg_lambda, rules_.min_child_weight, rules_.min_split_gain,
                           fixed.gradient_unit, fixed.curvature_unit};
    GrowingTree tree{key, rules, std::move(fixed.examples), {}, nullptr};
    if (column_rules_ != nullptr && column_rules_->has_monotone(output))
      tree.directions = column_rules_->directions(output);
    if (column_rules_ != nullptr && column_rules_->has_unused(output))
      tree.features = used_features(column_rules_->directions(output));
    if (rules_.colsample_bytree < 1.0)
      tree.features = choose_features(data_.n_features(), tree.features, rules_.colsample_bytree,
                                      derive_key(key, kTreeColumns));
    return tree;
  }

  std::vector<uint8_t> used_features(const int8_t* directions) const {
    std::vector<uint8_t> features(data_.n_features());
    for (size_t f = 0; f < features.size(); ++f)
      features[f] = directions[f / data_.n_offsets()] != kUnused;
    return features;
  }

  Pending open_root(GrowingTree& tree) const {
    Sum total;
    for (const Example& example : tree.examples) total += Sum(example);
    return {add_node(tree, 0, 0, static_cast<int64_t>(tree.examples.size()), total, {})};
  }

  void count(const GrowingTree& tree, Pending& pending) {
    OpenNode& node = pending.counted;
    if (!may_split(tree, node) && !(pending.sibling && may_split(tree, *pending.sibling))) return;
    node.histogram = take_histogram();
    builder_.fill(std::span(tree.examples).subspan(node.begin, node.n_examples()),
                  pending.of_parent.get(), *node.histogram);
  }

  void subtract_sibling(Pending& pending) {
    if (!pending.sibling) return;
    if (pending.counted.histogram) subtract(*pending.of_parent, *pending.counted.histogram);
    pending.sibling->histogram = std::move(pending.of_parent);
  }

  // Puts the node on the frontier if it has a split.
  void find_split_of(const GrowingTree& tree, OpenNode& node, Frontier& frontier) {
    if (may_split(tree, node)) {
      const uint8_t* features = choose_node_features(tree, node);
      const MonotoneRules monotone{tree.directions, node.bounds};
      node.split = find_split(data_, *node.histogram, node.total, tree.rules, features,
                              tree.directions == nullptr ? nullptr : &monotone);
    }
    if (node.split.exists())
      frontier.push(std::move(node));
    else
      give_back(std::move(node.histogram));
  }

  Pending split(GrowingTree& tree, OpenNode parent) {
    const Split& split = parent.split;
    const int64_t middle = partition(tree, parent);
    TreeNode& node = tree.nodes[parent.node];
    node.column = split.column;
    node.offset = split.offset;
    node.categorical = split.categorical;
    node.left_bins = split.left_bins;
    node.left = static_cast<int32_t>(tree.nodes.size());
    node.gain = static_cast<float>(split.gain);
    ++tree.n_leaves;
    const int depth = parent.depth + 1;
    const auto [bounds_left, bounds_right] = bounds_of_children(tree, parent);
    OpenNode left = add_node(tree, depth, parent.begin, middle, split.left, bounds_left);
    OpenNode right =
        add_node(tree, depth, middle, parent.end, parent.total - split.left, bounds_right);
    if (column_rules_ != nullptr && column_rules_->limits_interactions())
      left.branch = right.branch = extend(std::move(parent.branch), split.column);
    if (left.n_examples() > right.n_examples()) std::swap(left, right);
    return {std::move(left), std::move(right), std::move(parent.histogram)};
  }

  // What is on one side of a split on a monotone column must stay there, however it is split again:
  // no leaf goes beyond the middle between the steps that the two children would take as leaves.
  std::pair<StepBounds, StepBounds> bounds_of_children(const GrowingTree& tree,
                                                       const OpenNode& parent) const {
    StepBounds left = parent.bounds, right = parent.bounds;
    const Split& split = parent.split;
    if (tree.directions == nullptr) return {left, right};
    const int8_t direction = tree.directions[split.column];
    if (direction == kAnyWay) return {left, right};
    const double middle = std::midpoint(step(tree, split.left, parent.bounds),
                                        step(tree, parent.total - split.left, parent.bounds));
    (direction == kRising ? left.upper : left.lower) = middle;
    (direction == kRising ? right.lower : right.upper) = middle;
    return {left, right};
  }

  bool may_split(const GrowingTree& tree, const OpenNode& node) const {
    const double weight = static_cast<double>(node.total.curvature()) * tree.rules.curvature_unit;
    return tree.n_leaves < rules_.max_leaves && node.depth < rules_.max_depth &&
           node.n_examples() >= 2 && weight >= 2.0 * rules_.min_child_weight;
  }

  // Null if the node may use all features.
  const uint8_t* choose_node_features(const GrowingTree& tree, const OpenNode& node) {
    const std::vector<uint8_t>* among = &tree.features;
    if (!node.branch.empty()) {
      fill_branch_features(tree, node);
      among = &branch_features_;
    }
    if (rules_.colsample_bynode >= 1.0) return among->empty() ? nullptr : among->data();
    node_features_ = choose_features(data_.n_features(), *among, rules_.colsample_bynode,
                                     derive_key(derive_key(tree.key, kNodeColumns), node.node));
    return node_features_.data();
  }

  // Features of the tree whose columns may be used below those of the node's branch.
  void fill_branch_features(const GrowingTree& tree, const OpenNode& node) {
    const std::vector<uint8_t> columns = column_rules_->allowed_below(node.branch);
    branch_features_.resize(data_.n_features());
    for (size_t f = 0; f < branch_features_.size(); ++f)
      branch_features_[f] =
          columns[f / data_.n_offsets()] && (tree.features.empty() || tree.features[f]);
  }

  // Examples that go left come first, both sides by position; returns where the right ones begin.
  int64_t partition(GrowingTree& tree, const OpenNode& parent) {
    const Split& split = parent.split;
    const auto size = static_cast<size_t>(parent.n_examples());
    if (aside_.size() < size) aside_.resize(size);
    std::vector<Example>& examples = tree.examples;
    Example* left = examples.data() + parent.begin;
    Example* right = aside_.data();
    const auto place = [&](const Example& example, bool goes_left) {
      *left = *right = example;
      left += goes_left;
      right += !goes_left;
    };
    if (split.column < data_.bins().n_dense) {
      const uint8_t* column = data_.column(split.column);
      for (int64_t i = parent.begin; i < parent.end; ++i) {
        const Example example = examples[i];
        const uint8_t bin = data_.room().holds(example.position, split.offset)
                                ? column[example.position + split.offset]
                                : uint8_t{0};
        place(example, contains(split.left_bins, bin));
      }
    } else {
      for (int64_t i = parent.begin; i < parent.end; ++i) {
        const Example example = examples[i];
        const uint8_t bin = data_.bin_at(example.position, split.column, split.offset);
        place(example, contains(split.left_bins, bin));
      }
    }
    std::copy(aside_.data(), right, left);
    return left - examples.data();
  }

  // A leaf, which may be split later.
  OpenNode add_node(GrowingTree& tree, int depth, int64_t begin, int64_t end, Sum total,
                    const StepBounds& bounds) const {
    TreeNode node;
    node.value = static_cast<float>(step(tree, total, bounds) * rules_.learning_rate);
    node.weight =
        static_cast<float>(static_cast<double>(total.curvature()) * tree.rules.curvature_unit);
    tree.nodes.push_back(node);
    return {static_cast<int32_t>(tree.nodes.size()) - 1, depth, begin, end, total, bounds};
  }

  // How far a leaf with these examples moves a score, before the learning rate.
  double step(const GrowingTree& tree, const Sum& total, const StepBounds& bounds) const {
    const double gradient = static_cast<double>(total.gradient()) * tree.rules.gradient_unit;
    const double weight = static_cast<double>(total.curvature()) * tree.rules.curvature_unit;
    const double divisor = weight + rules_.reg_lambda;
    const double step = bounds.clamp(divisor > 0.0 ? -gradient / divisor : 0.0);
    return std::clamp(step, -rules_.max_step, rules_.max_step);
  }

  std::unique_ptr<Histogram> take_histogram() {
    if (idle_.empty()) return std::make_unique<Histogram>();
    auto histogram = std::move(idle_.back());
    idle_.pop_back();
    return histogram;
  }
  void give_back(std::unique_ptr<Histogram> histogram) {
    if (histogram != nullptr) idle_.push_back(std::move(histogram));
  }

  const TreeData& data_;
  GrowthRules rules_;
  const ColumnRules* column_rules_;
  Stop& stop_;
  HistogramBuilder builder_;
  std::vector<Example> aside_;  // those that go right, while a node is partitioned
  std::vector<uint8_t> branch_features_;
  std::vector<uint8_t> node_features_;
  std::vector<std::unique_ptr<Histogram>> idle_;
};

// The last bin that a split of values has on its left.
uint8_t last_bin(const BinSet& set) {
  for (int bin = 255; bin > 0; --bin)
    if (contains(set, static_cast<uint8_t>(bin))) return static_cast<uint8_t>(bin);
  return 0;
}

void append_node(const TreeNode& node, TreeArrays& out) {
  const bool has_set = node.column >= 0 && node.categorical;
  out.columns.push_back(node.column);
  out.offsets.push_back(node.offset);
  out.cuts.push_back(has_set ? uint8_t{0} : last_bin(node.left_bins));
  out.missing_left.push_back(contains(node.left_bins, 0));
  out.sets.push_back(has_set ? static_cast<int32_t>(out.n_sets()) : -1);
  out.lefts.push_back(node.left);
  out.values.push_back(node.value);
  out.gains.push_back(node.gain);
  out.weights.push_back(node.weight);
  if (!has_set) return;
  for (const uint64_t word : node.left_bins)
    for (int byte = 0; byte < 8; ++byte)
      out.left_sets.push_back(static_cast<uint8_t>(word >> (8 * byte)));
}

void check_column_rules(const TreeData& data, const ColumnRules& rules, int n_outputs) {
  require(rules.n_columns() == data.bins().n_columns(),
          "column rules are for another number of columns");
  if (rules.n_outputs() < 0) return;
  require(rules.n_outputs() == n_outputs, "column rules are for another number of outputs");
  for (int output = 0; output < n_outputs; ++output)
    for (int32_t c = 0; c < rules.n_columns(); ++c) {
      const int8_t direction = rules.directions(output)[c];
      require(!data.bins().categorical[c] || direction == kAnyWay || direction == kUnused,
              "a column of categories has no direction");
    }
}

}  // namespace

Forest build_forest(const std::vector<GrownTree>& trees) {
  TreeArrays arrays;
  for (const GrownTree& tree : trees) {
    for (const TreeNode& node : tree) append_node(node, arrays);
    arrays.outputs.push_back(static_cast<int32_t>(arrays.outputs.size()));
    arrays.tree_offsets.push_back(arrays.n_nodes());
  }
  arrays.round_offsets.push_back(arrays.n_trees());
  return Forest(static_cast<int>(trees.size()), std::move(arrays),
                std::vector<double>(trees.size(), 1.0));
}

std::vector<GrownTree> grow_trees(const TreeData& data, const Examples& examples,
                                  const GrowthRules& rules, const ColumnRules* column_rules,
                                  uint64_t key, int n_threads, Stop& stop) {
  if (column_rules != nullptr) check_column_rules(data, *column_rules, examples.n_outputs());
  // The largest first, so that no thread is left with a long one at the end.
  std::vector<int> order(examples.n_outputs());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return examples.of_output(a).size() > examples.of_output(b).size();
  });
  std::vector<GrownTree> trees(examples.n_outputs());
  parallel_for_each_thread(examples.n_outputs(), n_threads, stop, [&] {
    return [&, grower = std::make_unique<Grower>(data, rules, column_rules, stop)](int64_t i) {
      const int output = order[i];
      trees[output] = grower->grow(examples.of_output(output), output,
                                   derive_key(key, static_cast<uint64_t>(output)));
    };
  });
  return trees;
}

}  // namespace hedgerow
