#include "trees/fraction_walker.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hedgerow {

// The test of a split. A bin goes left if bin + shift, unsigned, is at most `limit`: with a shift
// of 1, positions outside go left too.
struct FractionMethod::Question {
  const int16_t* bins;
  uint16_t shift, limit;
  double to_left, to_right;

  bool is_missing(int64_t i) const { return bins[i] == 0; }
  // Also defined where the value is missing.
  bool goes_left(int64_t i) const { return static_cast<uint16_t>(bins[i] + shift) <= limit; }
  // Fused explicitly, so that the bits do not depend on what a compiler fuses.
  double mix(double left, double right) const { return std::fma(to_left, left, to_right * right); }
  double choose(int64_t i, double left, double right, double mixed) const {
    const double if_known = goes_left(i) ? left : right;
    return is_missing(i) ? mixed : if_known;
  }
};

// A split whose children are both leaves.
struct FractionMethod::Pair {
  Question question;
  double left, right;  // what they add
};

FractionMethod::FractionMethod(const TreeArrays& trees, NumberedFeatures& features)
    : arrays_(trees), steps_of_(trees.n_nodes()) {
  // Larger trees are walked faster by lists.
  constexpr int64_t kMostNodes = kLowLimits ? 15 : 255;
  for (int64_t i = 0; i < trees.n_trees(); ++i) {
    const int64_t first = trees.tree_offsets[i], end = trees.tree_offsets[i + 1];
    for (int64_t n = first; n < end; ++n) {
      const auto value = static_cast<double>(trees.values[n]);
      if (trees.columns[n] < 0) {
        nodes_.push_back({-1, false, 0, 0, 0, 0.0, 0.0, value});
        continue;
      }
      const bool has_set = trees.sets[n] >= 0;
      const auto shift = static_cast<uint16_t>(trees.outside_left[n] != 0);
      const auto to_left = static_cast<double>(trees.fractions[n]);
      nodes_.push_back({features.number(trees.columns[n], trees.offsets[n]), has_set, shift,
                        static_cast<uint16_t>((has_set ? 1 : trees.cuts[n]) + shift),
                        first + trees.lefts[n], to_left, 1.0 - to_left, value});
    }
    if (!adds_eight_at_once() || end - first > kMostNodes) continue;
    const int64_t n_before = std::ssize(steps_);
    plan(first, 0);
    steps_of_[first] = {n_before, std::ssize(steps_)};
  }
}

bool FractionMethod::is_pair(int64_t node) const {
  return !is_leaf(node) && is_leaf(nodes_[node].left) && is_leaf(nodes_[node].left + 1);
}

// Adds the steps that evaluate a node; rows before this one are in use.
void FractionMethod::plan(int64_t node, int32_t row) {
  n_rows_ = std::max(n_rows_, row + 1);
  if (is_leaf(node)) return steps_.push_back({Kind::kLeaf, row, node});
  if (is_pair(node)) return steps_.push_back({Kind::kPair, row, node});
  const int64_t left = nodes_[node].left;
  // BlockBins holds the answers of only one set at a time.
  const bool has_set = nodes_[node].has_set || nodes_[left].has_set || nodes_[left + 1].has_set;
  if (is_pair(left) && is_pair(left + 1) && !has_set)
    return steps_.push_back({Kind::kTwoPairs, row, node});
  plan(left, row);
  plan(left + 1, row + 1);
  steps_.push_back({Kind::kSplit, row, node});
}

FractionMethod::Question FractionMethod::Walk::ask(int64_t node, BlockBins<kBlock>& bins) const {
  const Node& asked = method_.nodes_[node];
  const auto is_left = [&](uint8_t bin) { return goes_left(method_.arrays_, node, bin); };
  return {asked.has_set ? bins.by_set(asked.feature, is_left) : bins.of(asked.feature), asked.shift,
          asked.limit, asked.to_left, asked.to_right};
}

FractionMethod::Pair FractionMethod::Walk::ask_pair(int64_t node, BlockBins<kBlock>& bins) const {
  const Node* leaves = &method_.nodes_[method_.nodes_[node].left];
  return {ask(node, bins), leaves[0].value, leaves[1].value};
}

void FractionMethod::Walk::run(int64_t first, int64_t n, BlockBins<kBlock>& bins) {
  const auto [begin, end] = method_.steps_of_[first];
  if (begin == end) return add_lists(first, n, bins);
  for (int64_t s = begin; s < end; ++s) take(method_.steps_[s], bins);
}

// Evaluates nodes at all positions, whether they come to them or not.
void FractionMethod::Walk::take(const Step& step, BlockBins<kBlock>& bins) {
  const Node& node = method_.nodes_[step.node];
  double* out = rows_[step.row].data();
  switch (step.kind) {
    case Kind::kLeaf: return rows_[step.row].fill(node.value);
    case Kind::kPair: return choose_leaves(ask_pair(step.node, bins), out);
    case Kind::kTwoPairs:
      return choose_pairs(ask(step.node, bins), ask_pair(node.left, bins),
                          ask_pair(node.left + 1, bins), out);
    case Kind::kSplit: return choose(ask(step.node, bins), rows_[step.row + 1].data(), out);
  }
}

// The values of the left child of a split become those of the split.
HEDGEROW_CLONES void FractionMethod::choose(const Question& question,
                                            const double* HEDGEROW_RESTRICT right,
                                            double* HEDGEROW_RESTRICT left) {
  const Question own = question;
  for (int64_t i = 0; i < kBlock; ++i) {
    const double if_left = left[i], if_right = right[i];
    left[i] = own.choose(i, if_left, if_right, own.mix(if_left, if_right));
  }
}

// The same for a split whose children are leaves, and for a split with two such splits below it.
HEDGEROW_CLONES void FractionMethod::choose_leaves(const Pair& leaves,
                                                   double* HEDGEROW_RESTRICT out) {
  const auto [own, left, right] = leaves;
  const double mixed = own.mix(left, right);
  for (int64_t i = 0; i < kBlock; ++i) out[i] = own.choose(i, left, right, mixed);
}
HEDGEROW_CLONES void FractionMethod::choose_pairs(const Question& question, const Pair& on_left,
                                                  const Pair& on_right,
                                                  double* HEDGEROW_RESTRICT out) {
  const Question own = question;
  const Pair a = on_left, b = on_right;
  const double mixed_a = a.question.mix(a.left, a.right), mixed_b = b.question.mix(b.left, b.right);
  for (int64_t i = 0; i < kBlock; ++i) {
    const double left = a.question.choose(i, a.left, a.right, mixed_a);
    const double right = b.question.choose(i, b.left, b.right, mixed_b);
    out[i] = own.choose(i, left, right, own.mix(left, right));
  }
}

void FractionMethod::Walk::add_lists(int64_t first, int64_t n, BlockBins<kBlock>& bins) {
  rows_[0].fill(0.0);
  open_.resize(std::max<size_t>(open_.size(), 1));
  open_[0].node = first;
  open_[0].n = n;
  std::iota(open_[0].positions.begin(), open_[0].positions.begin() + n, uint16_t{0});
  std::fill_n(open_[0].shares.begin(), n, 1.0);
  for (size_t n_open = 1; n_open > 0;) {
    if (open_.size() == n_open) open_.emplace_back();
    List& here = open_[n_open - 1];
    const int64_t node = here.node;
    if (here.n == 0) {
      --n_open;
    } else if (method_.is_leaf(node)) {
      add_leaf(here, method_.nodes_[node].value);
      --n_open;
    } else if (method_.is_pair(node)) {
      add_leaves(ask_pair(node, bins), here);
      --n_open;
    } else {
      // The left child is next, and the right one takes the place of their parent.
      divide(ask(node, bins), here, open_[n_open]);
      open_[n_open].node = method_.nodes_[node].left;
      here.node = method_.nodes_[node].left + 1;
      ++n_open;
    }
  }
}

// Each position is written to both sides and kept where it should be, without a branch that would
// be mispredicted.
void FractionMethod::Walk::divide(Question question, List& here, List& left) {
  const double to_left[] = {1.0, question.to_left};
  const double to_right[] = {1.0, question.to_right};
  int64_t n_left = 0, n_right = 0;
  for (int64_t j = 0; j < here.n; ++j) {
    const uint16_t i = here.positions[j];
    const double share = here.shares[j];
    const bool is_missing = question.is_missing(i), goes_left = question.goes_left(i);
    left.positions[n_left] = here.positions[n_right] = i;
    left.shares[n_left] = share * to_left[is_missing];
    here.shares[n_right] = share * to_right[is_missing];
    n_left += goes_left;
    n_right += is_missing || !goes_left;
  }
  left.n = n_left;
  here.n = n_right;
}

void FractionMethod::Walk::add_leaf(const List& here, double value) {
  for (int64_t j = 0; j < here.n; ++j) rows_[0][here.positions[j]] += here.shares[j] * value;
}

void FractionMethod::Walk::add_leaves(const Pair& leaves, const List& here) {
  const auto [question, left, right] = leaves;
  // For known values that go right, known values that go left, and missing ones.
  const double to_left[] = {0.0, 1.0, question.to_left};
  const double to_right[] = {1.0, 0.0, question.to_right};
  for (int64_t j = 0; j < here.n; ++j) {
    const uint16_t i = here.positions[j];
    const int kind = question.goes_left(i) + question.is_missing(i);
    const double share = here.shares[j];
    rows_[0][i] = (rows_[0][i] + share * to_left[kind] * left) + share * to_right[kind] * right;
  }
}

}  // namespace hedgerow
