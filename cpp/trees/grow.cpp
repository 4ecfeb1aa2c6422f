#include "trees/grow.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "random.hpp"
#include "require.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kPieceSize = 1 << 13;  // examples that a thread partitions in one go
constexpr uint64_t kTreeColumns = 1, kNodeColumns = 2;  // purposes of random numbers

// Memory for the histograms of nodes whose branches are grown side by side.
constexpr int64_t kBytesOfBranches = 1 << 24;

// A node that may still be split.
struct OpenNode {
  int32_t node;
  int depth;
  int64_t first;                 // place of its examples among those of the tree
  std::span<int32_t> positions;  // of its examples
  std::span<int32_t> spare;      // room for as many
  Sum total;
  StepBounds bounds{};
  std::vector<int32_t> branch{};  // columns split on above it, if that limits what it may use
  Split split{};
  std::unique_ptr<Histogram> histogram{};

  int64_t n_examples() const { return std::ssize(positions); }
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

// Arrays for the examples of a tree.
struct Space {
  // Those of a node stand together in one of the two, in order, and it has the same places in the
  // other.
  PooledArray<int32_t> positions, spare;
  PooledArray<uint8_t> goes_left;  // by example of the nodes that are partitioned
  PooledArray<Sum> sums;           // (N,) by position

  Space(const std::shared_ptr<MemoryPool>& pool, int64_t n_examples, int64_t n_positions)
      : positions(pool, n_examples),
        spare(pool, n_examples),
        goes_left(pool, n_examples),
        sums(pool, n_positions) {}
};

// A tree, or a branch of it that grows apart.
struct GrowingTree {
  uint64_t key;
  SplitRules rules;
  std::shared_ptr<Space> space;
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

// Copies positions to the left or to the right, as the marks say, both in order.
void copy_sides(std::span<const int32_t> positions, const uint8_t* goes_left, int32_t* left,
                int32_t* right) {
  constexpr int64_t kTogether = 1024;
  int32_t lefts[kTogether], rights[kTogether];
  const int64_t n = std::ssize(positions);
  for (int64_t begin = 0; begin < n; begin += kTogether) {
    const int64_t n_some = std::min(kTogether, n - begin);
    // Each goes to both sides and is kept on one of them: there is no branch to be guessed wrong.
    int64_t n_left = 0;
    for (int64_t i = 0; i < n_some; ++i) {
      lefts[n_left] = rights[i - n_left] = positions[begin + i];
      n_left += goes_left[begin + i];
    }
    left = std::copy_n(lefts, n_left, left);
    right = std::copy_n(rights, n_some - n_left, right);
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

  GrownTree grow(std::span<const Derivatives> derivatives, int output, uint64_t key) {
    GrowingTree tree = plant(derivatives, output, key);
    Frontier frontier(is_best_first());
    open(tree, open_root(tree, derivatives), frontier);
    const bool has_branches = grow_from(tree, std::ssize(derivatives), frontier);
    return has_branches ? renumber(tree.nodes) : std::move(tree.nodes);
  }

 private:
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
      GrowingTree branch{tree.key, tree.rules, tree.space, tree.features, tree.directions};
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

  GrowingTree plant(std::span<const Derivatives> derivatives, int output, uint64_t key) const {
    const Units units = choose_units(derivatives, crew_);
    const SplitRules rules{rules_.reg_lambda, rules_.min_child_weight, rules_.min_split_gain,
                           units.gradient, units.curvature};
    GrowingTree tree{
        key,
        rules,
        std::make_shared<Space>(pool_, std::ssize(derivatives), data_.bins().n_positions),
        {},
        nullptr};
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

  Pending open_root(GrowingTree& tree, std::span<const Derivatives> derivatives) {
    const auto n = static_cast<int64_t>(derivatives.size());
    const Units units{tree.rules.gradient_unit, tree.rules.curvature_unit};
    Space& space = *tree.space;
    std::vector<Sum> totals((n + kPieceSize - 1) / kPieceSize);
    crew_.share_pieces(n, kPieceSize, [&](int64_t begin, int64_t end) {
      Sum total;
      for (int64_t i = begin; i < end; ++i) {
        const int32_t position = derivatives[i].position;
        space.positions[i] = position;
        total += space.sums[position] = units.round(derivatives[i]);
      }
      totals[begin / kPieceSize] = total;
    });
    const Sum total = std::accumulate(totals.begin(), totals.end(), Sum{});
    const std::span positions(space.positions.data(), n), spare(space.spare.data(), n);
    return {add_node(tree, 0, 0, positions, spare, total, {})};
  }

  void count(const GrowingTree& tree, Pending& pending) {
    OpenNode& node = pending.counted;
    if (!may_split(tree, node) && !(pending.sibling && may_split(tree, *pending.sibling))) return;
    node.histogram = take_histogram();
    builder_.fill({node.positions, tree.space->sums.data()}, pending.of_parent.get(),
                  *node.histogram);
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
                              tree.directions == nullptr ? nullptr : &monotone, crew_);
    }
    if (node.split.exists())
      frontier.push(std::move(node));
    else
      give_back(std::move(node.histogram));
  }

  Pending split(GrowingTree& tree, OpenNode parent) {
    const Split& split = parent.split;
    const size_t n_left = partition(*tree.space, parent);
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
    // Partitioned examples are where there was room.
    OpenNode left = add_node(tree, depth, parent.first, parent.spare.first(n_left),
                             parent.positions.first(n_left), split.left, bounds_left);
    OpenNode right = add_node(tree, depth, parent.first + static_cast<int64_t>(n_left),
                              parent.spare.subspan(n_left), parent.positions.subspan(n_left),
                              parent.total - split.left, bounds_right);
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

  // Copies a node's positions to its spare room, those that go left first, both sides in order;
  // returns how many go left.
  size_t partition(Space& space, const OpenNode& parent) {
    const int64_t n = parent.n_examples();
    uint8_t* goes_left = space.goes_left.data() + parent.first;
    std::vector<int64_t> n_left((n + kPieceSize - 1) / kPieceSize + 1);  // before each piece
    crew_.share_pieces(n, kPieceSize, [&](int64_t begin, int64_t end) {
      stop_.check();
      n_left[begin / kPieceSize + 1] = mark_left(parent, begin, end, goes_left);
    });
    std::partial_sum(n_left.begin(), n_left.end(), n_left.begin());
    crew_.share_pieces(n, kPieceSize, [&](int64_t begin, int64_t end) {
      const int64_t left = n_left[begin / kPieceSize];
      const int64_t right = n_left.back() + begin - left;
      copy_sides(parent.positions.subspan(begin, end - begin), goes_left + begin,
                 parent.spare.data() + left, parent.spare.data() + right);
    });
    return static_cast<size_t>(n_left.back());
  }

  // Returns how many of these examples go left.
  int64_t mark_left(const OpenNode& parent, int64_t begin, int64_t end, uint8_t* marks) const {
    const Split& split = parent.split;
    std::array<uint8_t, 256> is_left;
    for (int bin = 0; bin < 256; ++bin)
      is_left[bin] = contains(split.left_bins, static_cast<uint8_t>(bin));
    const auto mark = [&](auto bin_of) {
      const int32_t* positions = parent.positions.data();
      int64_t n_left = 0;
      for (int64_t i = begin; i < end; ++i) n_left += marks[i] = is_left[bin_of(positions[i])];
      return n_left;
    };
    const int offset = split.offset;
    if (split.column >= data_.bins().n_dense)
      return mark([&](int32_t t) { return data_.bin_at(t, split.column, offset); });
    const uint8_t* column = data_.column(split.column);
    if (offset == 0) return mark([&](int32_t t) { return column[t]; });
    return mark(
        [&](int32_t t) { return data_.room().holds(t, offset) ? column[t + offset] : uint8_t{0}; });
  }

  // A leaf, which may be split later.
  OpenNode add_node(GrowingTree& tree, int depth, int64_t first, std::span<int32_t> positions,
                    std::span<int32_t> spare, Sum total, const StepBounds& bounds) const {
    TreeNode node;
    node.value = static_cast<float>(step(tree, total, bounds) * rules_.learning_rate);
    node.weight =
        static_cast<float>(static_cast<double>(total.curvature()) * tree.rules.curvature_unit);
    tree.nodes.push_back(node);
    const auto number = static_cast<int32_t>(tree.nodes.size()) - 1;
    return {number, depth, first, positions, spare, total, bounds};
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

// As many threads as have something to do: to start one takes as long as some additions.
int limit_threads(const TreeData& data, const Examples& examples, int n_threads) {
  constexpr int64_t kAdditions = 1 << 15;
  int64_t n_examples = 0;
  for (int k = 0; k < examples.n_outputs(); ++k) n_examples += std::ssize(examples.of_output(k));
  const int64_t per_example = 1 + data.n_full_additions() + data.n_sparse_additions();
  return static_cast<int>(std::min<int64_t>(n_threads, 1 + n_examples * per_example / kAdditions));
}

}  // namespace

std::vector<GrownTree> grow_trees(const TreeData& data, const Examples& examples,
                                  const GrowthRules& rules, const ColumnRules* column_rules,
                                  uint64_t key, const std::shared_ptr<MemoryPool>& pool,
                                  int n_threads, Stop& stop) {
  if (column_rules != nullptr) check_column_rules(data, *column_rules, examples.n_outputs());
  // The largest first, so that no thread is left with a long one at the end.
  const int first = examples.is_opposite() ? 1 : 0;
  std::vector<int> order(examples.n_outputs() - first);
  std::iota(order.begin(), order.end(), first);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return examples.of_output(a).size() > examples.of_output(b).size();
  });
  std::vector<GrownTree> trees(examples.n_outputs());
  Crew crew(limit_threads(data, examples, n_threads), stop);
  GrowerPool growers([&] {
    return std::make_unique<Grower>(data, rules, column_rules, pool, growers, crew, stop);
  });
  crew.run(std::ssize(order), [&] {
    return [&](int64_t i) {
      const int output = order[i];
      std::unique_ptr<Grower> grower = growers.take();
      trees[output] = grower->grow(examples.of_output(output), output,
                                   derive_key(key, static_cast<uint64_t>(output)));
      growers.give_back(std::move(grower));
    };
  });
  if (examples.is_opposite()) trees[0] = negate(trees[1]);
  return trees;
}

}  // namespace hedgerow
