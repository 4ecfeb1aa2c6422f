#include "trees/grow.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <queue>
#include <utility>

#include "random.hpp"

namespace hedgerow {
namespace {

constexpr uint64_t kTreeColumns = 1, kNodeColumns = 2;  // purposes of random numbers

// A node that may still be split.
struct Candidate {
  int32_t node;
  int depth;
  int64_t begin, end;  // its examples
  Sum total;
  Split split;
  std::unique_ptr<Histogram> histogram;
};

// Which node is split next. Best first, that of the largest gain, among equals the oldest. If all
// will be split in the end, the youngest: then few histograms are open at a time.
struct NextSplit {
  bool best_first;

  bool operator()(const std::unique_ptr<Candidate>& a, const std::unique_ptr<Candidate>& b) const {
    if (!best_first) return a->node < b->node;
    if (a->split.gain != b->split.gain) return a->split.gain < b->split.gain;
    return a->node > b->node;
  }
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

// Grows trees one after the other; one to a thread.
class Grower {
 public:
  Grower(const TreeData& data, const GrowthRules& rules, Stop& stop)
      : data_(data),
        rules_(rules),
        stop_(stop),
        builder_(data, stop),
        open_(NextSplit{rules.max_depth >= 31 || rules.max_leaves < 1 << rules.max_depth}) {}

  GrownTree grow(const std::vector<Derivatives>& derivatives, uint64_t key) {
    start(derivatives, key);
    while (!open_.empty() && n_leaves_ < rules_.max_leaves) {
      stop_.check();
      // A queue hands out only const references; the top is taken out at once.
      auto candidate = std::move(const_cast<std::unique_ptr<Candidate>&>(open_.top()));
      open_.pop();
      expand(*candidate);
    }
    while (!open_.empty()) open_.pop();
    return std::move(tree_);
  }

 private:
  void start(const std::vector<Derivatives>& derivatives, uint64_t key) {
    FixedPoint fixed = to_fixed_point(derivatives);
    examples_ = std::move(fixed.examples);
    split_rules_ = {rules_.reg_lambda, rules_.min_child_weight, rules_.min_split_gain,
                    fixed.gradient_unit, fixed.curvature_unit};
    key_ = key;
    tree_features_.clear();
    if (rules_.colsample_bytree < 1.0)
      tree_features_ = choose_features(data_.n_features(), {}, rules_.colsample_bytree,
                                       derive_key(key, kTreeColumns));
    Sum total;
    for (const Example& example : examples_) total += Sum(example);
    n_leaves_ = 1;
    tree_.clear();
    add_node(total);
    auto root = std::make_unique<Candidate>();
    root->node = 0;
    root->depth = 0;
    root->begin = 0;
    root->end = static_cast<int64_t>(examples_.size());
    root->total = total;
    if (!may_split(*root)) return;
    root->histogram = take_histogram();
    builder_.fill(examples_, *root->histogram);
    consider(std::move(root));
  }

  void expand(Candidate& parent) {
    const Split& split = parent.split;
    const int64_t middle = partition(parent);
    const auto left_node = static_cast<int32_t>(tree_.size());
    TreeNode& node = tree_[parent.node];
    node.column = split.column;
    node.offset = split.offset;
    node.categorical = split.categorical;
    node.left_bins = split.left_bins;
    node.left = left_node;
    node.gain = static_cast<float>(split.gain);
    add_node(split.left);
    add_node(parent.total - split.left);
    ++n_leaves_;

    auto left = std::make_unique<Candidate>(), right = std::make_unique<Candidate>();
    left->node = left_node;
    right->node = left_node + 1;
    left->depth = right->depth = parent.depth + 1;
    left->begin = parent.begin;
    left->end = right->begin = middle;
    right->end = parent.end;
    left->total = split.left;
    right->total = parent.total - split.left;
    fill_histograms(parent, *left, *right);
    consider(std::move(left));
    consider(std::move(right));
  }

  // Histograms of those children that may be split: of the smaller by counting, of the larger by
  // subtraction.
  void fill_histograms(Candidate& parent, Candidate& left, Candidate& right) {
    if (n_leaves_ >= rules_.max_leaves || (!may_split(left) && !may_split(right))) {
      give_back(std::move(parent.histogram));
      return;
    }
    Candidate& smaller = left.end - left.begin <= right.end - right.begin ? left : right;
    Candidate& larger = &smaller == &left ? right : left;
    smaller.histogram = take_histogram();
    if (may_split(larger)) {
      builder_.split(*parent.histogram, examples_of(smaller), *smaller.histogram);
      larger.histogram = std::move(parent.histogram);
    } else {
      builder_.fill(examples_of(smaller), *smaller.histogram);
      give_back(std::move(parent.histogram));
    }
    if (!may_split(smaller)) give_back(std::move(smaller.histogram));
  }

  bool may_split(const Candidate& candidate) const {
    const double weight =
        static_cast<double>(candidate.total.curvature()) * split_rules_.curvature_unit;
    return candidate.depth < rules_.max_depth && candidate.end - candidate.begin >= 2 &&
           weight >= 2.0 * rules_.min_child_weight && rules_.max_leaves > 1;
  }

  void consider(std::unique_ptr<Candidate> candidate) {
    if (candidate->histogram == nullptr) return;
    const uint8_t* features = tree_features_.empty() ? nullptr : tree_features_.data();
    if (rules_.colsample_bynode < 1.0) {
      const uint64_t key = derive_key(derive_key(key_, kNodeColumns), candidate->node);
      node_features_ =
          choose_features(data_.n_features(), tree_features_, rules_.colsample_bynode, key);
      features = node_features_.data();
    }
    candidate->split =
        find_split(data_, *candidate->histogram, candidate->total, split_rules_, features);
    if (candidate->split.exists())
      open_.push(std::move(candidate));
    else
      give_back(std::move(candidate->histogram));
  }

  // Examples that go left come first, both sides by position; returns where the right ones begin.
  int64_t partition(const Candidate& parent) {
    const Split& split = parent.split;
    const auto size = static_cast<size_t>(parent.end - parent.begin);
    if (aside_.size() < size) aside_.resize(size);
    Example* left = examples_.data() + parent.begin;
    Example* right = aside_.data();
    const auto place = [&](const Example& example, bool goes_left) {
      *left = *right = example;
      left += goes_left;
      right += !goes_left;
    };
    if (split.column < data_.bins().n_dense) {
      const uint8_t* column = data_.column(split.column);
      for (int64_t i = parent.begin; i < parent.end; ++i) {
        const Example example = examples_[i];
        const uint8_t bin = data_.room().holds(example.position, split.offset)
                                ? column[example.position + split.offset]
                                : uint8_t{0};
        place(example, contains(split.left_bins, bin));
      }
    } else {
      for (int64_t i = parent.begin; i < parent.end; ++i) {
        const Example example = examples_[i];
        const uint8_t bin = data_.bin_at(example.position, split.column, split.offset);
        place(example, contains(split.left_bins, bin));
      }
    }
    std::copy(aside_.data(), right, left);
    return left - examples_.data();
  }

  void add_node(const Sum& total) {
    const double gradient = static_cast<double>(total.gradient()) * split_rules_.gradient_unit;
    const double weight = static_cast<double>(total.curvature()) * split_rules_.curvature_unit;
    const double divisor = weight + rules_.reg_lambda;
    const double step = divisor > 0.0 ? -gradient / divisor : 0.0;
    TreeNode node;
    node.value = static_cast<float>(std::clamp(step, -rules_.max_step, rules_.max_step) *
                                    rules_.learning_rate);
    node.weight = static_cast<float>(weight);
    tree_.push_back(node);
  }

  std::span<const Example> examples_of(const Candidate& candidate) const {
    return std::span(examples_).subspan(candidate.begin, candidate.end - candidate.begin);
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
  Stop& stop_;
  HistogramBuilder builder_;
  SplitRules split_rules_{};
  uint64_t key_ = 0;
  GrownTree tree_;
  int n_leaves_ = 0;
  std::vector<Example> examples_;
  std::vector<Example> aside_;
  std::vector<uint8_t> tree_features_;
  std::vector<uint8_t> node_features_;
  std::priority_queue<std::unique_ptr<Candidate>, std::vector<std::unique_ptr<Candidate>>,
                      NextSplit>
      open_;
  std::vector<std::unique_ptr<Histogram>> idle_;
};

}  // namespace

std::vector<GrownTree> grow_trees(const TreeData& data, const Examples& examples,
                                  const GrowthRules& rules, uint64_t key, int n_threads,
                                  Stop& stop) {
  // The largest first, so that no thread is left with a long one at the end.
  std::vector<int> order(examples.n_labels());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return examples.of_label(a).size() > examples.of_label(b).size();
  });
  std::vector<GrownTree> trees(examples.n_labels());
  parallel_for_each_thread(examples.n_labels(), n_threads, stop, [&] {
    return [&, grower = std::make_unique<Grower>(data, rules, stop)](int64_t i) {
      const int label = order[i];
      trees[label] =
          grower->grow(examples.of_label(label), derive_key(key, static_cast<uint64_t>(label)));
    };
  });
  return trees;
}

}  // namespace hedgerow
