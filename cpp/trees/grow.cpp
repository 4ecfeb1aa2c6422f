#include "trees/grow.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "random.hpp"
#include "require.hpp"
#include "trees/fractions.hpp"
#include "trees/growing_tree.hpp"
#include "trees/sides.hpp"
#include "trees/surrogates.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kPieceSize = 1 << 13;  // examples that a thread partitions in one go
constexpr uint64_t kTreeColumns = 1, kNodeColumns = 2;  // purposes of random numbers

// Memory for the histograms of nodes whose branches are grown side by side.
constexpr int64_t kBytesOfBranches = 1 << 24;

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

// Copies positions to the left, to the right or to both, all in order: is_left(i) and is_right(i)
// say where the i-th goes.
template <class IsLeft, class IsRight>
void copy_sides(std::span<const int32_t> positions, const IsLeft& is_left, const IsRight& is_right,
                int32_t* left, int32_t* right) {
  constexpr int64_t kTogether = 1024;
  int32_t lefts[kTogether], rights[kTogether];
  const int64_t n = std::ssize(positions);
  for (int64_t begin = 0; begin < n; begin += kTogether) {
    const int64_t end = std::min(begin + kTogether, n);
    // Each goes to both sides and is kept where it should: there is no branch to be guessed wrong.
    int64_t n_left = 0, n_right = 0;
    for (int64_t i = begin; i < end; ++i) {
      lefts[n_left] = rights[n_right] = positions[i];
      n_left += is_left(i);
      n_right += is_right(i);
    }
    left = std::copy_n(lefts, n_left, left);
    right = std::copy_n(rights, n_right, right);
  }
}

class Grower;

// Growers that wait for their next use. Threads share it.
class GrowerPool {
 public:
  explicit GrowerPool(std::function<std::unique_ptr<Grower>()> make) : make_(std::move(make)) {}

  std::unique_ptr<Grower> take();
  void give_back(std::unique_ptr<Grower> grower);

 private:
  std::function<std::unique_ptr<Grower>()> make_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Grower>> idle_;
};

// Grows trees one after the other; each thread has its own. The frontier decides which node is
// split next; each step partitions one node, counts examples, and finds the splits of the nodes
// that are new. Large nodes are the work of all threads that are idle, small ones with all that is
// below them of one thread each.
class Grower {
 public:
  Grower(const TreeData& data, const GrowthRules& rules, const ColumnRules* column_rules,
         const std::shared_ptr<MemoryPool>& pool, GrowerPool& growers, Crew& crew, Stop& stop)
      : data_(data),
        rules_(rules),
        column_rules_(column_rules),
        pool_(pool),
        growers_(growers),
        crew_(crew),
        stop_(stop),
        builder_(data, crew, stop) {}

  GrownTree grow(const Examples& examples, int output, uint64_t key) {
    const std::span<const Derivatives> derivatives = examples.of_output(output);
    const Units units = choose_units(derivatives, crew_);
    GrowingTree tree = plant(units, output, key);
    return complete(tree, open_root(tree, std::ssize(derivatives), [&](int64_t i) {
                      return std::pair(derivatives[i].position, units.round(derivatives[i]));
                    }));
  }

  GrownTree grow(const ContextExamples& examples, int output, uint64_t key) {
    const auto rows = std::make_shared<const ContextRows>(examples, output, pool_,
                                                          data_.bins().n_positions, crew_);
    GrowingTree tree = plant(rows->units(), output, key);
    tree.rows = rows;
    std::vector<int32_t> all(rows->n_contexts());
    std::iota(all.begin(), all.end(), 0);
    return complete(tree, open_root(tree, rows->n_rows(), [&](int64_t row) {
                      const int32_t position = rows->position(row);
                      return std::pair(position, rows->sum(position, all));
                    }));
  }

 private:
  GrownTree complete(GrowingTree& tree, Pending root) {
    Frontier frontier(is_best_first());
    const int64_t n_examples = root.counted.n_examples();
    open(tree, std::move(root), frontier);
    const bool has_branches = grow_from(tree, n_examples, frontier);
    return has_branches ? renumber(tree.nodes) : std::move(tree.nodes);
  }

  bool is_best_first() const {
    return rules_.max_depth >= 31 || rules_.max_leaves < 1 << rules_.max_depth;
  }

  // Splits nodes of a tree with so many examples until it is complete; returns whether branches
  // grew apart, which leaves the nodes in any order.
  bool grow_from(GrowingTree& tree, int64_t n_examples, Frontier& frontier) {
    std::vector<OpenNode> branches;
    while (!frontier.empty() && tree.n_leaves < rules_.max_leaves) {
      stop_.check();
      OpenNode node = frontier.pop();
      if (may_grow_apart(node, n_examples, std::ssize(branches)))
        branches.push_back(std::move(node));
      else
        open(tree, split(tree, std::move(node)), frontier);
    }
    while (!frontier.empty()) give_back(frontier.pop().histogram);
    grow_apart(tree, branches);
    return !branches.empty();
  }

  // Finds the splits of nodes that are new.
  void open(const GrowingTree& tree, Pending pending, Frontier& frontier) {
    count(tree, pending);
    // If each machine had some of the examples, they would add up what they counted here, and find
    // the same splits. (In `plant` they would agree on units, in `open_root` on the root's sum, in
    // `split` on how many examples go each way.)
    subtract_sibling(pending);
    find_split_of(tree, pending.counted, frontier);
    if (pending.sibling) find_split_of(tree, *pending.sibling, frontier);
  }

  // Whether a node is small enough to make, with others like it, equal work for all idle threads.
  // What comes of it may depend neither on other branches nor on the numbers of nodes. Attributes
  // would need much memory for every branch.
  bool may_grow_apart(const OpenNode& node, int64_t n_examples, int64_t n_branches) const {
    constexpr int64_t kLeastAdditions = 1 << 16;
    const int64_t n_parts = 2 * crew_.n_pieces(n_examples);
    return n_parts > 2 && node.n_examples() <= n_examples / n_parts &&
           node.n_examples() * data_.n_full_additions() >= kLeastAdditions && !is_best_first() &&
           rules_.colsample_bynode >= 1.0 && !data_.has_sparse() &&
           (n_branches + 1) * data_.n_full_bins() * static_cast<int64_t>(sizeof(Sum)) <=
               kBytesOfBranches;
  }

  void grow_apart(GrowingTree& tree, std::vector<OpenNode>& branches) {
    std::vector<GrownTree> grown(branches.size());
    crew_.share(std::ssize(branches), [&](int64_t i) {
      const Crew::AtWork at_work(crew_);
      OpenNode& node = branches[i];
      GrowingTree branch{tree.key,      tree.rules,      tree.rows,
                         tree.features, tree.directions, tree.root_curvatures};
      branch.nodes = {tree.nodes[node.node]};
      const int64_t n_examples = node.n_examples();
      Frontier frontier(false);
      OpenNode root = std::move(node);
      root.node = 0;
      frontier.push(std::move(root));
      std::unique_ptr<Grower> grower = growers_.take();
      grower->grow_from(branch, n_examples, frontier);
      growers_.give_back(std::move(grower));
      grown[i] = std::move(branch.nodes);
    });
    for (size_t i = 0; i < branches.size(); ++i) graft(grown[i], branches[i].node, tree.nodes);
  }

  GrowingTree plant(const Units& units, int output, uint64_t key) const {
    const SplitRules rules{rules_.reg_lambda, rules_.min_child_weight, rules_.min_split_gain,
                           units.gradient,    units.curvature,         &rules_.missing};
    GrowingTree tree{key, rules, nullptr, {}, nullptr, nullptr};
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

  // example(i) is the position of an example and its sum.
  template <class Example>
  Pending open_root(GrowingTree& tree, int64_t n, Example example) {
    const auto space = std::make_shared<Space>(pool_, n, data_.bins().n_positions, is_joint(tree));
    std::vector<Sum> totals((n + kPieceSize - 1) / kPieceSize);
    crew_.share_pieces(n, kPieceSize, [&](int64_t begin, int64_t end) {
      Sum total;
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
                  .total = std::accumulate(totals.begin(), totals.end(), Sum{}),
                  .space = space};
    if (tree.rows != nullptr) {
      root.contexts.resize(tree.rows->n_contexts());
      std::iota(root.contexts.begin(), root.contexts.end(), 0);
    }
    if (is_joint(tree)) fill_joint(*tree.rows, root);
    if (rules_.missing.method == MissingMethod::kFractional && data_.may_miss_any())
      tree.root_curvatures = copy_curvatures(root);
    add_leaf(tree, root);
    return {std::move(root)};
  }

  std::shared_ptr<const PooledArray<int32_t>> copy_curvatures(const OpenNode& node) const {
    const auto copies = std::make_shared<PooledArray<int32_t>>(pool_, data_.bins().n_positions);
    for (const int32_t t : node.positions)
      (*copies)[t] = static_cast<int32_t>(node.space->sums[t].curvature());
    return copies;
  }

  void count(const GrowingTree& tree, Pending& pending) {
    OpenNode& node = pending.counted;
    if (!may_split(tree, node) && !(pending.sibling && may_split(tree, *pending.sibling))) return;
    if (node.histogram == nullptr)
      node.histogram = count_examples(node.positions, *node.space, pending.of_parent.get());
    if (tree.rows != nullptr) count_contexts(*tree.rows, node);
  }

  std::unique_ptr<Histogram> count_examples(std::span<const int32_t> positions, const Space& space,
                                            const Histogram* of_parent) {
    std::unique_ptr<Histogram> histogram = take_histogram();
    builder_.fill({positions, space.sums.data()}, of_parent, *histogram);
    histogram->contexts.clear();  // of its last use
    return histogram;
  }

  void count_contexts(const ContextRows& rows, OpenNode& node) {
    const int64_t n_pieces = crew_.n_pieces(node.n_examples() / kPieceSize);
    std::vector<std::vector<Sum>> by_piece(n_pieces, std::vector<Sum>(rows.n_contexts()));
    crew_.share(n_pieces, [&](int64_t piece) {
      const int64_t begin = node.n_examples() * piece / n_pieces;
      const int64_t end = node.n_examples() * (piece + 1) / n_pieces;
      rows.add_to(node.positions.subspan(begin, end - begin), node.contexts,
                  by_piece[piece].data());
    });
    for (int64_t piece = 1; piece < n_pieces; ++piece)
      for (int c = 0; c < rows.n_contexts(); ++c) by_piece[0][c] += by_piece[piece][c];
    node.histogram->contexts = std::move(by_piece[0]);
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
      const MonotoneRules monotone{tree.directions, data_.bins().n_columns(), node.bounds};
      const NodeContexts contexts{tree.rows.get(), node.contexts, rules_.label_lambda};
      node.split = find_split(data_, *node.histogram, node.total, tree.rules, features,
                              tree.directions == nullptr ? nullptr : &monotone,
                              tree.rows == nullptr ? nullptr : &contexts, crew_);
    }
    if (node.split.exists())
      frontier.push(std::move(node));
    else
      give_back(std::move(node.histogram));
  }

  Pending split(GrowingTree& tree, OpenNode parent) {
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
    auto [left, right] = part(tree, parent);
    left.depth = right.depth = parent.depth + 1;
    right.total = parent.total - left.total;
    std::tie(left.bounds, right.bounds) = bounds_of_children(tree, parent, left.total);
    if (column_rules_ != nullptr && column_rules_->limits_interactions())
      left.branch = right.branch = asks_labels(split)
                                       ? std::move(parent.branch)
                                       : extend(std::move(parent.branch), split.column);
    add_leaf(tree, left);
    add_leaf(tree, right);
    const bool counts_left = left.histogram != nullptr || (right.histogram == nullptr &&
                                                           left.n_examples() <= right.n_examples());
    if (!counts_left) std::swap(left, right);
    return {std::move(left), std::move(right), std::move(parent.histogram)};
  }

  // A step of all contexts of a leaf is less of a risk than their curvatures add up to.
  static bool is_joint(const GrowingTree& tree) {
    return tree.rows != nullptr && tree.rows->has_probabilities();
  }

  void fill_joint(const ContextRows& rows, const OpenNode& node) {
    float* joint = node.space->joint.data();
    crew_.share_pieces(node.n_examples(), kPieceSize, [&](int64_t begin, int64_t end) {
      const bool has_all = std::ssize(node.contexts) == rows.n_contexts();
      for (const int32_t t : node.positions.subspan(begin, end - begin))
        joint[t] = has_all ? rows.joint_curvature(t) : rows.joint_curvature(t, node.contexts);
    });
  }

  // Columns behind those of X are the labels before a position.
  bool asks_labels(const Split& split) const { return split.column >= data_.bins().n_columns(); }

  // The children of a node, and what those on the left add up to.
  std::pair<OpenNode, OpenNode> part(GrowingTree& tree, const OpenNode& parent) {
    const Split& split = parent.split;
    if (asks_labels(split)) return part_contexts(tree, parent);
    if (rules_.missing.method == MissingMethod::kSurrogate) return part_by_surrogates(tree, parent);
    if (rules_.missing.method == MissingMethod::kFractional) {
      float& fraction = tree.nodes[parent.node].fraction;
      fraction = static_cast<float>(static_cast<double>(split.left.curvature()) /
                                    static_cast<double>(split.known.curvature()));
      if (split.known != parent.total) return part_fractions(tree, parent, fraction);
    }
    return part_positions(parent, mark_sides(parent, false), split.left);
  }

  // Marks the sides of a node's examples, and returns how many go left in each piece of them.
  std::vector<int64_t> mark_sides(const OpenNode& parent, bool leaves_out) {
    const int64_t n = parent.n_examples();
    uint8_t* marks = parent.space->goes_left.data() + parent.first;
    const Sides sides(data_, parent.split, leaves_out);
    std::vector<int64_t> n_left((n + kPieceSize - 1) / kPieceSize);
    crew_.share_pieces(n, kPieceSize, [&](int64_t begin, int64_t end) {
      stop_.check();
      n_left[begin / kPieceSize] =
          sides.fill(parent.positions.subspan(begin, end - begin), marks + begin);
    });
    return n_left;
  }

  // The children of a node whose examples are marked, with so many on the left in each piece of
  // them. Partitioned examples are where there was room.
  std::pair<OpenNode, OpenNode> part_positions(const OpenNode& parent,
                                               const std::vector<int64_t>& n_left_of_pieces,
                                               const Sum& left_total) {
    const size_t n_left = partition(parent, n_left_of_pieces);
    OpenNode left{.first = parent.first,
                  .positions = parent.spare.first(n_left),
                  .spare = parent.positions.first(n_left),
                  .total = left_total,
                  .space = parent.space,
                  .contexts = parent.contexts};
    OpenNode right{.first = parent.first + static_cast<int64_t>(n_left),
                   .positions = parent.spare.subspan(n_left),
                   .spare = parent.positions.subspan(n_left),
                   .space = parent.space,
                   .contexts = parent.contexts};
    return {std::move(left), std::move(right)};
  }

  // The children of a node by a question about a label before. Both may have examples at a
  // position, of different contexts.
  std::pair<OpenNode, OpenNode> part_contexts(const GrowingTree& tree, const OpenNode& parent) {
    const ContextRows& rows = *tree.rows;
    std::array<uint8_t, 256> is_left;
    for (int bin = 0; bin < 256; ++bin)
      is_left[bin] = contains(parent.split.left_bins, static_cast<uint8_t>(bin));
    const int lag = parent.split.column - data_.bins().n_columns();
    const auto select = [&](bool on_left) {
      return rows.select(parent.contexts, lag, is_left.data(), on_left);
    };
    const std::vector<int32_t> on_left = select(true);
    auto [left, right] = part_sums(
        tree, parent, [&](int64_t, int32_t t, const Sum&) { return rows.sum(t, on_left); });
    left.contexts = on_left;
    right.contexts = select(false);
    if (is_joint(tree))
      for (const OpenNode* child : {&left, &right}) fill_joint(rows, *child);
    return {std::move(left), std::move(right)};
  }

  // The children of a node by a question about a column that misses values: these go both ways,
  // this share of them to the left.
  std::pair<OpenNode, OpenNode> part_fractions(const GrowingTree& tree, const OpenNode& parent,
                                               double share) {
    mark_sides(parent, true);
    const uint8_t* marks = parent.space->goes_left.data() + parent.first;
    const PooledArray<int32_t>& at_root = *tree.root_curvatures;
    return part_sums(tree, parent, [&](int64_t i, int32_t t, const Sum& own) {
      if (marks[i] == kNoSide) return left_fraction(own, share, at_root[t]);
      return own.only_if(marks[i] == kLeftSide);
    });
  }

  // The children of a node that may both have examples at a position: left_of(i, t, sum) is what
  // goes left of the sum of the i-th example, which is at position t. Those on the left get arrays
  // of their own.
  template <class LeftOf>
  std::pair<OpenNode, OpenNode> part_sums(const GrowingTree& tree, const OpenNode& parent,
                                          const LeftOf& left_of) {
    const auto n = static_cast<size_t>(parent.n_examples());
    const auto space = std::make_shared<Space>(pool_, parent.n_examples(), data_.bins().n_positions,
                                               is_joint(tree));
    struct Counts {
      int64_t left = 0, right = 0;
      Sum left_total{};
    };
    std::vector<Counts> before((n + kPieceSize - 1) / kPieceSize + 1);
    Sum* sums = parent.space->sums.data();
    crew_.share_pieces(parent.n_examples(), kPieceSize, [&](int64_t begin, int64_t end) {
      stop_.check();
      Counts& counts = before[begin / kPieceSize + 1];
      for (int64_t i = begin; i < end; ++i) {
        const int32_t t = parent.positions[i];
        const Sum left = left_of(i, t, sums[t]);
        space->sums[t] = left;
        sums[t] -= left;
        counts.left_total += left;
        counts.left += !left.is_empty();
        counts.right += !sums[t].is_empty();
      }
    });
    for (size_t i = 1; i < before.size(); ++i) {
      before[i].left += before[i - 1].left;
      before[i].right += before[i - 1].right;
      before[i].left_total += before[i - 1].left_total;
    }
    crew_.share_pieces(parent.n_examples(), kPieceSize, [&](int64_t begin, int64_t end) {
      const Counts& first = before[begin / kPieceSize];
      const std::span some = parent.positions.subspan(begin, end - begin);
      copy_sides(
          some, [&](int64_t i) { return !space->sums[some[i]].is_empty(); },
          [&](int64_t i) { return !sums[some[i]].is_empty(); },
          space->positions.data() + first.left, parent.spare.data() + first.right);
    });
    const auto n_left = static_cast<size_t>(before.back().left);
    const auto n_right = static_cast<size_t>(before.back().right);
    OpenNode left{.first = 0,
                  .positions = {space->positions.data(), n_left},
                  .spare = {space->spare.data(), n_left},
                  .total = before.back().left_total,
                  .space = space};
    OpenNode right{.first = parent.first,
                   .positions = parent.spare.first(n_right),
                   .spare = parent.positions.first(n_right),
                   .space = parent.space};
    return {std::move(left), std::move(right)};
  }

  // The children of a node by a question about a column: where it is missing, surrogates answer.
  // The child with fewer known values has a histogram.
  std::pair<OpenNode, OpenNode> part_by_surrogates(GrowingTree& tree, const OpenNode& parent) {
    std::vector<int64_t> n_left = mark_sides(parent, true);
    uint8_t* marks = parent.space->goes_left.data() + parent.first;
    const Split& split = parent.split;
    std::array<std::vector<int32_t>, 3> by_side;  // positions
    for (int64_t i = 0; i < parent.n_examples(); ++i)
      by_side[marks[i]].push_back(parent.positions[i]);
    const bool is_left = by_side[kLeftSide].size() <= by_side[kRightSide].size();
    const auto count_side = [&](const std::vector<int32_t>& positions) {
      return count_examples(positions, *parent.space, parent.histogram.get());
    };
    std::unique_ptr<Histogram> fewer = count_side(by_side[is_left ? kLeftSide : kRightSide]);
    std::unique_ptr<Histogram> missing;
    if (!by_side[kNoSide].empty()) missing = count_side(by_side[kNoSide]);
    std::vector<Surrogate>& surrogates = tree.nodes[parent.node].surrogates;
    surrogates = find_surrogates(data_,
                                 {{parent.histogram.get(), parent.total},
                                  {missing.get(), parent.total - split.known},
                                  {fewer.get(), is_left ? split.left : split.known - split.left},
                                  is_left},
                                 split, choose_surrogate_features(tree, parent), tree.directions);
    give_back(std::move(missing));
    Sum left_total = split.left;
    std::vector<int32_t> joining;  // positions that join those with a histogram
    for (int64_t i = 0; i < parent.n_examples(); ++i) {
      if (marks[i] != kNoSide) continue;
      const int32_t t = parent.positions[i];
      const bool goes_left = goes_left_by(surrogates, split, data_, t);
      marks[i] = goes_left ? kLeftSide : kRightSide;
      n_left[i / kPieceSize] += goes_left;
      if (goes_left) left_total += parent.space->sums[t];
      if (goes_left == is_left) joining.push_back(t);
    }
    if (!joining.empty()) {
      std::unique_ptr<Histogram> more = count_side(joining);
      add(*fewer, *more);
      give_back(std::move(more));
    }
    auto children = part_positions(parent, n_left, left_total);
    (is_left ? children.first : children.second).histogram = std::move(fewer);
    return children;
  }

  // What may stand in for a split, see choose_node_features: its own column may be in the branch.
  const uint8_t* choose_surrogate_features(const GrowingTree& tree, const OpenNode& parent) {
    if (column_rules_ == nullptr || !column_rules_->limits_interactions())
      return tree.features.empty() ? nullptr : tree.features.data();
    fill_branch_features(tree, extend(parent.branch, parent.split.column));
    return branch_features_.data();
  }

  // What is on one side of a split on a monotone column must stay there, however it is split again:
  // no leaf goes beyond the middle between the steps that the two children would take as leaves.
  std::pair<StepBounds, StepBounds> bounds_of_children(const GrowingTree& tree,
                                                       const OpenNode& parent,
                                                       const Sum& left_total) const {
    StepBounds left = parent.bounds, right = parent.bounds;
    const Split& split = parent.split;
    if (tree.directions == nullptr || asks_labels(split)) return {left, right};
    const int8_t direction = tree.directions[split.column];
    if (direction == kAnyWay) return {left, right};
    const auto step_of = [&](const Sum& sum) {
      return step(tree, sum, curvature(tree, sum), parent.bounds);
    };
    const double middle = std::midpoint(step_of(left_total), step_of(parent.total - left_total));
    (direction == kRising ? left.upper : left.lower) = middle;
    (direction == kRising ? right.lower : right.upper) = middle;
    return {left, right};
  }

  bool may_split(const GrowingTree& tree, const OpenNode& node) const {
    return tree.n_leaves < rules_.max_leaves && node.depth < rules_.max_depth &&
           node.n_examples() * std::max<int64_t>(std::ssize(node.contexts), 1) >= 2 &&
           curvature(tree, node.total) >= 2.0 * rules_.min_child_weight;
  }

  // Null if the node may use all features.
  const uint8_t* choose_node_features(const GrowingTree& tree, const OpenNode& node) {
    const std::vector<uint8_t>* among = &tree.features;
    if (!node.branch.empty()) {
      fill_branch_features(tree, node.branch);
      among = &branch_features_;
    }
    if (rules_.colsample_bynode >= 1.0) return among->empty() ? nullptr : among->data();
    node_features_ = choose_features(data_.n_features(), *among, rules_.colsample_bynode,
                                     derive_key(derive_key(tree.key, kNodeColumns), node.node));
    return node_features_.data();
  }

  // Features of the tree whose columns may be used below those of a branch.
  void fill_branch_features(const GrowingTree& tree, const std::vector<int32_t>& branch) {
    const std::vector<uint8_t> columns = column_rules_->allowed_below(branch);
    branch_features_.resize(data_.n_features());
    for (size_t f = 0; f < branch_features_.size(); ++f)
      branch_features_[f] =
          columns[f / data_.n_offsets()] && (tree.features.empty() || tree.features[f]);
  }

  // Copies a node's positions to its spare room, those that go left first, both sides in order;
  // returns how many go left. So many do in each piece of them.
  size_t partition(const OpenNode& parent, const std::vector<int64_t>& n_left_of_pieces) {
    const uint8_t* goes_left = parent.space->goes_left.data() + parent.first;
    std::vector<int64_t> n_left(n_left_of_pieces.size() + 1);  // before each piece
    std::partial_sum(n_left_of_pieces.begin(), n_left_of_pieces.end(), n_left.begin() + 1);
    crew_.share_pieces(parent.n_examples(), kPieceSize, [&](int64_t begin, int64_t end) {
      const int64_t left = n_left[begin / kPieceSize];
      const int64_t right = n_left.back() + begin - left;
      copy_sides(
          parent.positions.subspan(begin, end - begin),
          [&](int64_t i) { return goes_left[begin + i]; },
          [&](int64_t i) { return 1 - goes_left[begin + i]; }, parent.spare.data() + left,
          parent.spare.data() + right);
    });
    return static_cast<size_t>(n_left.back());
  }

  // Adds a node to the tree: a leaf, which may be split later.
  void add_leaf(GrowingTree& tree, OpenNode& node) const {
    double weight = curvature(tree, node.total);
    if (is_joint(tree)) {
      const float* joint = node.space->joint.data();
      weight = 0.0;
      for (const int32_t t : node.positions) weight += joint[t];
    }
    TreeNode leaf;
    leaf.value =
        static_cast<float>(step(tree, node.total, weight, node.bounds) * rules_.learning_rate);
    leaf.weight = static_cast<float>(weight);
    node.node = static_cast<int32_t>(tree.nodes.size());
    tree.nodes.push_back(leaf);
  }

  double curvature(const GrowingTree& tree, const Sum& sum) const {
    return static_cast<double>(sum.curvature()) * tree.rules.curvature_unit;
  }

  // How far a leaf with these examples moves a score, before the learning rate.
  double step(const GrowingTree& tree, const Sum& total, double weight,
              const StepBounds& bounds) const {
    const double gradient = static_cast<double>(total.gradient()) * tree.rules.gradient_unit;
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
  std::shared_ptr<MemoryPool> pool_;
  GrowerPool& growers_;
  Crew& crew_;
  Stop& stop_;
  HistogramBuilder builder_;
  std::vector<uint8_t> branch_features_;
  std::vector<uint8_t> node_features_;
  std::vector<std::unique_ptr<Histogram>> idle_;
};

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

void check_fills(const TreeData& data, const std::vector<uint8_t>& fills) {
  if (fills.empty()) return;
  const BinTable& bins = data.bins();
  require(std::ssize(fills) == bins.n_columns(), "fills are for another number of columns");
  for (int32_t c = 0; c < bins.n_columns(); ++c)
    require(fills[c] >= 1 && fills[c] <= bins.n_bins[c], "a fill is not a bin of its column");
}

int64_t n_rows(const Examples& examples, int output) {
  return std::ssize(examples.of_output(output));
}
int64_t n_rows(const ContextExamples& examples, int output) { return examples.n_rows(output); }

// As many threads as have something to do: to start one takes as long as some additions.
template <class AnyExamples>
int limit_threads(const TreeData& data, const AnyExamples& examples, int n_threads) {
  constexpr int64_t kAdditions = 1 << 15;
  int64_t n_examples = 0;
  for (int k = 0; k < examples.n_outputs(); ++k) n_examples += n_rows(examples, k);
  const int64_t per_example = 1 + data.n_full_additions() + data.n_sparse_additions();
  return static_cast<int>(std::min<int64_t>(n_threads, 1 + n_examples * per_example / kAdditions));
}

// Trees of the outputs from `first` on.
template <class AnyExamples>
std::vector<GrownTree> grow_all(const TreeData& data, const AnyExamples& examples, int first,
                                const GrowthRules& rules, const ColumnRules* column_rules,
                                uint64_t key, const std::shared_ptr<MemoryPool>& pool,
                                int n_threads, Stop& stop) {
  if (column_rules != nullptr) check_column_rules(data, *column_rules, examples.n_outputs());
  check_fills(data, rules.missing.fills);
  // The largest first, so that no thread is left with a long one at the end.
  std::vector<int> order(examples.n_outputs() - first);
  std::iota(order.begin(), order.end(), first);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return n_rows(examples, a) > n_rows(examples, b); });
  std::vector<GrownTree> trees(examples.n_outputs());
  Crew crew(limit_threads(data, examples, n_threads), stop);
  GrowerPool growers([&] {
    return std::make_unique<Grower>(data, rules, column_rules, pool, growers, crew, stop);
  });
  crew.run(std::ssize(order), [&] {
    return [&](int64_t i) {
      const int output = order[i];
      std::unique_ptr<Grower> grower = growers.take();
      trees[output] =
          grower->grow(examples, output, derive_key(key, static_cast<uint64_t>(output)));
      growers.give_back(std::move(grower));
    };
  });
  return trees;
}

}  // namespace

std::vector<GrownTree> grow_trees(const TreeData& data, const Examples& examples,
                                  const GrowthRules& rules, const ColumnRules* column_rules,
                                  uint64_t key, const std::shared_ptr<MemoryPool>& pool,
                                  int n_threads, Stop& stop) {
  const int first = examples.is_opposite() ? 1 : 0;
  std::vector<GrownTree> trees =
      grow_all(data, examples, first, rules, column_rules, key, pool, n_threads, stop);
  if (examples.is_opposite()) trees[0] = negate(trees[1]);
  return trees;
}

std::vector<GrownTree> grow_trees(const TreeData& data, const ContextExamples& examples,
                                  const GrowthRules& rules, const ColumnRules* column_rules,
                                  uint64_t key, const std::shared_ptr<MemoryPool>& pool,
                                  int n_threads, Stop& stop) {
  return grow_all(data, examples, 0, rules, column_rules, key, pool, n_threads, stop);
}

}  // namespace hedgerow
