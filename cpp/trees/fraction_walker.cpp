#include "trees/fraction_walker.hpp"

#include <algorithm>
#include <numeric>

namespace hedgerow {

// What a split asks. A bin goes left if bin + shift, unsigned, is at most `limit`: with a shift of
// 1 what is outside does too.
struct FractionMethod::Question {
  const int16_t* bins;
  uint16_t shift, limit;
  double of_missing;  // share that goes left

  bool is_missing(int64_t i) const { return bins[i] == 0; }
  // Also where it is missing.
  bool goes_left(int64_t i) const { return static_cast<uint16_t>(bins[i] + shift) <= limit; }
  double mix(double left, double right) const {
    return of_missing * left + (1.0 - of_missing) * right;
  }
};

FractionMethod::FractionMethod(const TreeArrays& trees, NumberedFeatures& features)
    : arrays_(trees), is_dense_(trees.n_nodes()) {
  // Larger trees are walked faster by lists.
  constexpr int64_t kMostNodes = kLowLimits ? 15 : 255;
  for (int64_t i = 0; i < trees.n_trees(); ++i) {
    const int64_t first = trees.tree_offsets[i];
    is_dense_[first] = adds_eight_at_once() && trees.tree_offsets[i + 1] - first <= kMostNodes;
  }
  for (int64_t n = 0; n < trees.n_nodes(); ++n)
    features_.push_back(trees.columns[n] < 0 ? -1
                                             : features.number(trees.columns[n], trees.offsets[n]));
}

FractionMethod::Question FractionMethod::Walk::ask(int64_t node, BlockBins<kBlock>& bins) const {
  const TreeArrays& arrays = method_.arrays_;
  const int32_t feature = method_.features_[node];
  const bool has_set = arrays.sets[node] >= 0;
  const auto is_left = [&](uint8_t bin) { return hedgerow::goes_left(arrays, node, bin); };
  const auto shift = static_cast<uint16_t>(arrays.outside_left[node] != 0);
  return {has_set ? bins.by_set(feature, is_left) : bins.of(feature), shift,
          static_cast<uint16_t>((has_set ? 1 : arrays.cuts[node]) + shift),
          static_cast<double>(arrays.fractions[node])};
}

void FractionMethod::Walk::run(int64_t first, int64_t n, BlockBins<kBlock>& bins) {
  if (method_.is_dense_[first])
    fill_values(first, first, 0, bins);
  else
    add_lists(first, n, bins);
}

// The values of the left child of a split become those of the split.
HEDGEROW_CLONES void FractionMethod::choose(const Question& question,
                                            const double* HEDGEROW_RESTRICT right,
                                            double* HEDGEROW_RESTRICT left) {
  const Question own = question;
  for (int64_t i = 0; i < kBlock; ++i) {
    const double if_left = left[i], if_right = right[i];
    const double if_known = own.goes_left(i) ? if_left : if_right;
    left[i] = own.is_missing(i) ? own.mix(if_left, if_right) : if_known;
  }
}

// The same where both children are leaves.
HEDGEROW_CLONES void FractionMethod::choose_leaves(const Question& question, const float* values,
                                                   double* HEDGEROW_RESTRICT out) {
  const Question own = question;
  const auto if_left = static_cast<double>(values[0]), if_right = static_cast<double>(values[1]);
  const double mixed = own.mix(if_left, if_right);
  for (int64_t i = 0; i < kBlock; ++i) {
    const double if_known = own.goes_left(i) ? if_left : if_right;
    out[i] = own.is_missing(i) ? mixed : if_known;
  }
}

// What a node of the tree that begins with node `first` adds at all positions, whether they come to
// it or not; rows before this one are in use.
void FractionMethod::Walk::fill_values(int64_t first, int64_t node, size_t row,
                                       BlockBins<kBlock>& bins) {
  const TreeArrays& arrays = method_.arrays_;
  if (row == rows_.size()) rows_.emplace_back();
  if (arrays.columns[node] < 0) return rows_[row].fill(static_cast<double>(arrays.values[node]));
  const int64_t child = first + arrays.lefts[node];
  if (arrays.columns[child] < 0 && arrays.columns[child + 1] < 0)
    return choose_leaves(ask(node, bins), &arrays.values[child], rows_[row].data());
  fill_values(first, child, row, bins);
  fill_values(first, child + 1, row + 1, bins);
  choose(ask(node, bins), rows_[row + 1].data(), rows_[row].data());
}

void FractionMethod::Walk::add_lists(int64_t first, int64_t n, BlockBins<kBlock>& bins) {
  const TreeArrays& arrays = method_.arrays_;
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
    } else if (arrays.columns[node] < 0) {
      add_leaf(here, static_cast<double>(arrays.values[node]));
      --n_open;
    } else {
      const int64_t child = first + arrays.lefts[node];
      const Question question = ask(node, bins);
      if (arrays.columns[child] < 0 && arrays.columns[child + 1] < 0) {
        add_leaves(question, here, &arrays.values[child]);
        --n_open;
      } else {
        // The left child is next, and the right one takes the place of their parent.
        divide(question, here, open_[n_open]);
        open_[n_open].node = child;
        here.node = child + 1;
        ++n_open;
      }
    }
  }
}

// Each position is written to both sides and kept where it should be, without a branch that would
// be mispredicted.
void FractionMethod::Walk::divide(Question question, List& here, List& left) {
  const double to_left[] = {1.0, question.of_missing};
  const double to_right[] = {1.0, 1.0 - question.of_missing};
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

// Adds a split of two leaves with these values.
void FractionMethod::Walk::add_leaves(Question question, const List& here, const float* values) {
  const auto left_value = static_cast<double>(values[0]);
  const auto right_value = static_cast<double>(values[1]);
  // Known ones that go right, known ones that go left, missing ones.
  const double to_left[] = {0.0, 1.0, question.of_missing};
  const double to_right[] = {1.0, 0.0, 1.0 - question.of_missing};
  for (int64_t j = 0; j < here.n; ++j) {
    const uint16_t i = here.positions[j];
    const int kind = question.goes_left(i) + question.is_missing(i);
    const double share = here.shares[j];
    rows_[0][i] =
        (rows_[0][i] + share * to_left[kind] * left_value) + share * to_right[kind] * right_value;
  }
}

}  // namespace hedgerow
