#include "trees/grower.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>
#include <variant>

#include "trees/shared_counts.hpp"

namespace hedgerow {
namespace {

// Memory for the histograms of nodes whose branches are grown in parallel.
constexpr int64_t kBytesOfBranches = 1 << 24;

// Sum of the numbers of some positions, rounded to a grid: four interleaved sums, so that no
// addition waits for the one before.
double sum_at(std::span<const int32_t> positions, const float* numbers, const SumGrid& grid) {
  const auto n = static_cast<int64_t>(positions.size());
  double sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int part = 0; part < 4; ++part) sums[part] += grid.round(numbers[positions[i + part]]);
  for (; i < n; ++i) sums[0] += grid.round(numbers[positions[i]]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void subtract_sibling(Pending& pending) {
  if (!pending.sibling) return;
  if (pending.counted.histogram) subtract(*pending.of_parent, *pending.counted.histogram);
  pending.sibling->histogram = std::move(pending.of_parent);
}

}  // namespace

Grower::Grower(const TreeData& data, const GrowthRules& rules, const ColumnRules* column_rules,
               const UnitBits& unit_bits, const std::shared_ptr<MemoryPool>& pool,
               GrowerPool& growers, Crew& crew, Stop& stop)
    : data_(data),
      rules_(rules),
      column_rules_(column_rules),
      unit_bits_(unit_bits),
      pool_(pool),
      growers_(growers),
      crew_(crew),
      stop_(stop),
      builder_(data, crew, stop, unit_bits.are_wide()),
      choice_(data, column_rules, rules.colsample_bytree, rules.colsample_bynode),
      partitioner_(data, rules.missing, pool, builder_, choice_, crew, stop) {}

GrownTree Grower::grow(const Examples& examples, int output, uint64_t key) {
  const std::span<const Derivatives> derivatives = examples.of_output(output);
  const Magnitudes magnitudes = measure(derivatives, MagnitudeGrid(examples.bound()), crew_);
  const Units units = choose_units({&magnitudes, 1}, unit_bits_);
  GrowingTree tree = plant(units, output, key);
  return complete(tree, open_root(tree, std::ssize(derivatives), [&](int64_t i) {
                    return std::pair(derivatives[i].position, units.round(derivatives[i]));
                  }));
}

GrownTree Grower::grow(const ContextExamples& examples, int output, uint64_t key) {
  const auto rows =
      std::make_shared<const ContextRows>(examples, output, pool_, data_.bins().n_positions, crew_);
  GrowingTree tree = plant(rows->units(), output, key);
  tree.rows = rows;
  std::vector<int32_t> all(rows->n_contexts());
  std::iota(all.begin(), all.end(), 0);
  return complete(tree, open_root(tree, rows->n_rows(), [&](int64_t row) {
                    const int32_t position = rows->position(row);
                    return std::pair(position, rows->sum(position, all));
                  }));
}

GrowingTree Grower::plant(const Units& units, int output, uint64_t key) const {
  const SplitRules rules{rules_.reg_lambda, rules_.min_child_weight, rules_.min_split_gain,
                         units.gradient,    units.curvature,         &rules_.missing};
  GrowingTree tree{key, rules, nullptr, {}, nullptr};
  if (column_rules_ != nullptr && column_rules_->has_monotone(output))
    tree.directions = column_rules_->directions(output);
  tree.features = choice_.of_tree(output, key);
  return tree;
}

// example(i) is the position of an example and its sum.
template <class Example>
Pending Grower::open_root(GrowingTree& tree, int64_t n, Example example) {
  const auto space = std::make_shared<Space>(pool_, n, data_.bins().n_positions, tree.is_joint());
  std::vector<WideSum> totals((n + kPieceSize - 1) / kPieceSize);
  crew_.share_pieces(n, kPieceSize, [&](int64_t begin, int64_t end) {
    WideSum total;
    for (int64_t i = begin; i < end; ++i) {
      const auto [position, sum] = example(i);
      space->positions[i] = position;
      total += space->sums[position] = sum;
    }
    totals[begin / kPieceSize] = total;
  });
  OpenNode root{.node = 0,
                .depth = 0,
                .first = 0,
                .positions = {space->positions.data(), static_cast<size_t>(n)},
                .spare = {space->spare.data(), static_cast<size_t>(n)},
                .total = std::accumulate(totals.begin(), totals.end(), WideSum{}),
                .space = space};
  if (tree.rows != nullptr) {
    root.contexts.resize(tree.rows->n_contexts());
    std::iota(root.contexts.begin(), root.contexts.end(), 0);
  }
  if (tree.is_joint()) fill_joint(*tree.rows, root.positions, {&root}, crew_);
  add_leaf(tree, root);
  return {std::move(root)};
}

GrownTree Grower::complete(GrowingTree& tree, Pending root) {
  Frontier frontier(is_best_first());
  const int64_t n_examples = root.counted.n_examples();
  open(tree, std::move(root), frontier);
  const bool has_branches = grow_from(tree, n_examples, frontier);
  return has_branches ? renumber(tree.nodes) : std::move(tree.nodes);
}

bool Grower::is_best_first(const GrowthRules& rules) {
  return rules.max_depth >= 31 || rules.max_leaves < 1 << rules.max_depth;
}

bool Grower::grows_by_level(const GrowthRules& rules) {
  return !is_best_first(rules) && rules.colsample_bynode >= 1.0;
}

// Splits nodes of a tree with this many examples until it is complete; returns whether branches
// were grown separately, which leaves the nodes in an arbitrary order.
bool Grower::grow_from(GrowingTree& tree, int64_t n_examples, Frontier& frontier) {
  std::vector<OpenNode> branches;
  while (!frontier.empty() && tree.n_leaves < rules_.max_leaves) {
    stop_.check();
    OpenNode node = frontier.pop();
    if (may_grow_apart(node, n_examples, std::ssize(branches)))
      branches.push_back(std::move(node));
    else
      open(tree, split(tree, std::move(node)), frontier);
  }
  while (!frontier.empty()) builder_.give_back(frontier.pop().histogram);
  grow_apart(tree, branches);
  return !branches.empty();
}

// Finds the splits of new nodes.
void Grower::open(const GrowingTree& tree, Pending pending, Frontier& frontier) {
  count(tree, pending);
  find_splits(tree, pending, frontier);
}

void Grower::find_splits(const GrowingTree& tree, Pending& pending, Frontier& frontier) {
  subtract_sibling(pending);
  const int n_nodes = pending.sibling ? 2 : 1;
  const auto find = [&](int64_t i) {
    find_split_of(tree, i == 0 ? pending.counted : *pending.sibling);
  };
  if (choice_.is_of_tree())
    crew_.share(n_nodes, find);
  else
    for (int i = 0; i < n_nodes; ++i) find(i);
  push_if_split(std::move(pending.counted), frontier);
  if (pending.sibling) push_if_split(std::move(*pending.sibling), frontier);
}

// Whether the branch below a node is grown separately: the node must be small enough for branches
// like it to keep all idle threads equally busy, and the result must depend neither on other
// branches nor on the numbers of nodes. With attributes, every branch would need much memory.
bool Grower::may_grow_apart(const OpenNode& node, int64_t n_examples, int64_t n_branches) const {
  constexpr int64_t kLeastAdditions = 1 << 16;
  const int64_t n_parts = 2 * crew_.n_pieces(n_examples);
  return n_parts > 2 && node.n_examples() <= n_examples / n_parts &&
         node.n_examples() * data_.n_full_additions() >= kLeastAdditions && !is_best_first() &&
         rules_.colsample_bynode >= 1.0 && !data_.has_sparse() &&
         (n_branches + 1) * data_.n_full_bins() * static_cast<int64_t>(sizeof(Sum)) <=
             kBytesOfBranches;
}

void Grower::grow_apart(GrowingTree& tree, std::vector<OpenNode>& branches) {
  std::vector<GrownTree> grown(branches.size());
  // The largest first, so that no thread starts a long one at the end.
  std::vector<size_t> order(branches.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return branches[a].n_examples() > branches[b].n_examples();
  });
  crew_.share(std::ssize(branches), [&](int64_t i) {
    const Crew::AtWork at_work(crew_);
    const size_t number = order[i];
    OpenNode& node = branches[number];
    GrowingTree branch{tree.key, tree.rules, tree.rows, tree.features, tree.directions};
    branch.nodes = {tree.nodes[node.node]};
    const int64_t n_examples = node.n_examples();
    Frontier frontier(false);
    OpenNode root = std::move(node);
    root.node = 0;
    frontier.push(std::move(root));
    std::unique_ptr<Grower> grower = growers_.take();
    grower->grow_from(branch, n_examples, frontier);
    growers_.give_back(std::move(grower));
    grown[number] = std::move(branch.nodes);
  });
  for (size_t i = 0; i < branches.size(); ++i) graft(grown[i], branches[i].node, tree.nodes);
}

bool Grower::is_wanted(const GrowingTree& tree, const Pending& pending) const {
  return may_split(tree, pending.counted) || (pending.sibling && may_split(tree, *pending.sibling));
}

void Grower::count(const GrowingTree& tree, Pending& pending) {
  OpenNode& node = pending.counted;
  if (!is_wanted(tree, pending)) return;
  if (node.histogram == nullptr)
    node.histogram = builder_.count(examples_of(node), pending.of_parent.get());
  if (tree.rows != nullptr) count_contexts(*tree.rows, node);
}

NodeExamples Grower::examples_of(const OpenNode& node) {
  if (node.parts == nullptr) return {node.positions, node.space->sums.data()};
  const Sum* sums = node.parts->arrays().sums;
  if (data_.n_offsets() == 1) return {node.positions, sums, true};
  if (by_position_.data() == nullptr)
    by_position_ = PooledArray<Sum>(pool_, data_.bins().n_positions);
  crew_.share_pieces(node.n_examples(), kPieceSize, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) by_position_[node.positions[i]] = sums[i];
  });
  return {node.positions, by_position_.data()};
}

void Grower::count_contexts(const ContextRows& rows, OpenNode& node) {
  const int64_t n_pieces = crew_.n_pieces(node.n_examples() / kPieceSize);
  const auto count = [&]<class AnySum>(BinSums<AnySum>& histogram) {
    std::vector<std::vector<AnySum>> by_piece(n_pieces, std::vector<AnySum>(rows.n_contexts()));
    crew_.share(n_pieces, [&](int64_t piece) {
      const int64_t begin = node.n_examples() * piece / n_pieces;
      const int64_t end = node.n_examples() * (piece + 1) / n_pieces;
      const std::span positions = node.positions.subspan(begin, end - begin);
      if (node.divided != nullptr)
        node.divided->add_to(positions, node.contexts, by_piece[piece].data());
      else
        rows.add_to(positions, node.contexts, by_piece[piece].data());
    });
    for (int64_t piece = 1; piece < n_pieces; ++piece)
      for (int c = 0; c < rows.n_contexts(); ++c) by_piece[0][c] += by_piece[piece][c];
    histogram.contexts = std::move(by_piece[0]);
  };
  std::visit(count, *node.histogram);
}

void Grower::find_split_of(const GrowingTree& tree, OpenNode& node) {
  if (!may_split(tree, node)) return;
  const uint8_t* features = choice_.of_node(tree, node);
  const MonotoneRules monotone{tree.directions, data_.bins().n_columns(), node.bounds};
  const NodeContexts contexts{tree.rows.get(), node.contexts, rules_.label_lambda};
  node.split = find_split(data_, *node.histogram, node.total, tree.rules, features,
                          tree.directions == nullptr ? nullptr : &monotone,
                          tree.rows == nullptr ? nullptr : &contexts, crew_);
}

// Puts the node on the frontier if it has a split.
void Grower::push_if_split(OpenNode node, Frontier& frontier) {
  if (node.split.exists())
    frontier.push(std::move(node));
  else
    builder_.give_back(std::move(node.histogram));
}

Pending Grower::split(GrowingTree& tree, OpenNode parent) {
  const Split& split = parent.split;
  TreeNode& node = tree.nodes[parent.node];
  node.column = split.column;
  node.offset = split.offset;
  node.categorical = split.categorical;
  node.left_bins = split.left_bins;
  node.outside_left = split.outside_left;
  node.left = static_cast<int32_t>(tree.nodes.size());
  node.gain = static_cast<float>(split.gain);
  ++tree.n_leaves;
  // Leaves need no positions, except to compute joint curvatures.
  const bool are_leaves = parent.depth + 1 >= rules_.max_depth && !tree.is_joint();
  auto [left, right] =
      are_leaves ? partitioner_.make_leaves(tree, parent) : partitioner_.part(tree, parent);
  left.depth = right.depth = parent.depth + 1;
  right.total = parent.total - left.total;
  std::tie(left.bounds, right.bounds) = bounds_of_children(tree, parent, left.total);
  left.branch = right.branch =
      data_.is_label(split.column) ? std::move(parent.branch) : choice_.branch_below(parent);
  add_leaf(tree, left);
  add_leaf(tree, right);
  // All workers count the same child, even if it has more examples here.
  const bool left_is_smaller = tree.is_shared ? left.total.curvature() <= right.total.curvature()
                                              : left.n_examples() <= right.n_examples();
  const bool counts_left =
      left.histogram != nullptr || (right.histogram == nullptr && left_is_smaller);
  if (!counts_left) std::swap(left, right);
  return {std::move(left), std::move(right), std::move(parent.histogram)};
}

// Values on one side of a split on a monotone column must stay on that side, however the children
// are split again: no leaf goes beyond the midpoint between the steps that the two children would
// take as leaves.
std::pair<StepBounds, StepBounds> Grower::bounds_of_children(const GrowingTree& tree,
                                                             const OpenNode& parent,
                                                             const WideSum& left_total) const {
  StepBounds left = parent.bounds, right = parent.bounds;
  const Split& split = parent.split;
  if (tree.directions == nullptr || data_.is_label(split.column)) return {left, right};
  const int8_t direction = tree.directions[split.column];
  if (direction == kAnyWay) return {left, right};
  const auto step_of = [&](const WideSum& total) {
    return step(tree, total, curvature(tree, total), parent.bounds);
  };
  const double middle = std::midpoint(step_of(left_total), step_of(parent.total - left_total));
  (direction == kRising ? left.upper : left.lower) = middle;
  (direction == kRising ? right.lower : right.upper) = middle;
  return {left, right};
}

bool Grower::may_split(const GrowingTree& tree, const OpenNode& node) const {
  const int64_t n_examples = tree.is_shared ? node.total.curvature() : node.n_examples();
  return tree.n_leaves < rules_.max_leaves && node.depth < rules_.max_depth &&
         n_examples * std::max<int64_t>(std::ssize(node.contexts), 1) >= 2 &&
         curvature(tree, node.total) >= 2.0 * rules_.min_child_weight;
}

// Adds a node to the tree: a leaf, which may be split later.
void Grower::add_leaf(GrowingTree& tree, OpenNode& node) const {
  double weight = curvature(tree, node.total);
  if (tree.is_joint())
    weight = sum_at(node.positions, node.space->joint.data(), SumGrid(4.0 * weight));
  TreeNode leaf;
  leaf.value =
      static_cast<float>(step(tree, node.total, weight, node.bounds) * rules_.learning_rate);
  leaf.weight = static_cast<float>(weight);
  node.node = static_cast<int32_t>(tree.nodes.size());
  tree.nodes.push_back(leaf);
}

double Grower::curvature(const GrowingTree& tree, const WideSum& total) const {
  return static_cast<double>(total.curvature()) * tree.rules.curvature_unit;
}

// The value of a leaf with these examples, before the learning rate.
double Grower::step(const GrowingTree& tree, const WideSum& total, double weight,
                    const StepBounds& bounds) const {
  const double gradient = static_cast<double>(total.gradient()) * tree.rules.gradient_unit;
  const double divisor = weight + rules_.reg_lambda;
  const double step = bounds.clamp(divisor > 0.0 ? -gradient / divisor : 0.0);
  return std::clamp(step, -rules_.max_step, rules_.max_step);
}

SharedTree Grower::plant_shared(const Examples& examples, int output, uint64_t key,
                                const Units& units) {
  const std::span<const Derivatives> derivatives = examples.of_output(output);
  SharedTree shared{plant(units, output, key), Frontier(is_best_first())};
  shared.tree.is_shared = true;
  shared.pending.push_back(open_root(shared.tree, std::ssize(derivatives), [&](int64_t i) {
    return std::pair(derivatives[i].position, units.round(derivatives[i]));
  }));
  return shared;
}

// Splits all open nodes at once if all will be split in the end. Otherwise, and if the features
// that are drawn depend on the order of the nodes, splits only the next one, as in `grow`.
void Grower::advance(SharedTree& shared) {
  GrowingTree& tree = shared.tree;
  Frontier& frontier = shared.frontier;
  const bool by_level = grows_by_level(rules_);
  shared.counted.clear();
  if (shared.is_root) {
    Pending& root = shared.pending[0];
    root.counted.histogram =
        builder_.count({root.counted.positions, root.counted.space->sums.data()}, nullptr);
    return add_counts(data_, root.counted, true, shared.counted);
  }
  while (shared.counted.empty() && !frontier.empty() && tree.n_leaves < rules_.max_leaves) {
    stop_.check();
    std::vector<OpenNode> nodes;
    do nodes.push_back(frontier.pop());
    while (by_level && !frontier.empty());
    shared.pending.clear();
    for (OpenNode& node : nodes) shared.pending.push_back(split(tree, std::move(node)));
    for (Pending& pending : shared.pending) {
      count(tree, pending);
      if (pending.counted.histogram != nullptr)
        add_counts(data_, pending.counted, false, shared.counted);
    }
  }
}

void Grower::accept(SharedTree& shared) {
  if (shared.counted.empty()) return;
  const bool is_root = std::exchange(shared.is_root, false);
  const int64_t* counts = shared.counted.data();
  for (Pending& pending : shared.pending) {
    if (pending.counted.histogram != nullptr)
      counts = read_counts(data_, counts, is_root, pending.counted);
    if (is_root) {
      shared.tree.nodes.clear();
      add_leaf(shared.tree, pending.counted);
    }
    find_splits(shared.tree, pending, shared.frontier);
  }
  shared.pending.clear();
}

GrowerPool::~GrowerPool() = default;

std::unique_ptr<Grower> GrowerPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Grower> grower = std::move(idle_.back());
      idle_.pop_back();
      return grower;
    }
  }
  return make_();
}

void GrowerPool::give_back(std::unique_ptr<Grower> grower) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(grower));
}

}  // namespace hedgerow
