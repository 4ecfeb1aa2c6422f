#include "trees/column_rules.hpp"

#include <algorithm>
#include <utility>

#include "require.hpp"

namespace hedgerow {

ColumnRules::ColumnRules(int32_t n_columns, std::vector<int8_t> directions,
                         std::vector<std::vector<int32_t>> groups, int max_columns)
    : n_columns_(n_columns),
      directions_(std::move(directions)),
      groups_(std::move(groups)),
      max_columns_(max_columns) {
  require(n_columns >= 0 && max_columns >= 0, "a number of columns is negative");
  require(directions_.empty() || (n_columns > 0 && directions_.size() % n_columns == 0),
          "directions must have an entry for each output and column");
  for (const int8_t direction : directions_)
    require(direction >= kFalling && direction <= kUnused, "a direction is out of range");
  for (const std::vector<int32_t>& group : groups_)
    for (size_t i = 0; i < group.size(); ++i) {
      require(group[i] >= 0 && group[i] < n_columns, "a column of a group is out of range");
      require(i == 0 || group[i - 1] < group[i],
              "the columns of a group must be in ascending order");
    }
}

int ColumnRules::n_outputs() const {
  return directions_.empty() ? -1 : static_cast<int>(directions_.size() / n_columns_);
}

bool ColumnRules::has(int output, bool (*is_wanted)(int8_t)) const {
  if (directions_.empty()) return false;
  const int8_t* own = directions(output);
  return std::any_of(own, own + n_columns_, is_wanted);
}

bool ColumnRules::has_monotone(int output) const {
  return has(output,
             [](int8_t direction) { return direction == kFalling || direction == kRising; });
}

bool ColumnRules::has_unused(int output) const {
  return has(output, [](int8_t direction) { return direction == kUnused; });
}

std::vector<uint8_t> ColumnRules::allowed_below(const std::vector<int32_t>& branch) const {
  std::vector<uint8_t> allowed(n_columns_);
  const auto allow = [&](const std::vector<int32_t>& columns) {
    for (const int32_t column : columns) allowed[column] = 1;
  };
  if (groups_.empty()) std::fill(allowed.begin(), allowed.end(), uint8_t{1});
  for (const std::vector<int32_t>& group : groups_)
    if (std::includes(group.begin(), group.end(), branch.begin(), branch.end())) allow(group);
  if (max_columns_ == 0 || branch.size() < static_cast<size_t>(max_columns_)) return allowed;
  std::fill(allowed.begin(), allowed.end(), uint8_t{0});
  allow(branch);
  return allowed;
}

bool ColumnRules::are_kept(const TreeArrays& trees) const {
  for (int64_t tree = 0; tree < trees.n_trees(); ++tree)
    if (!allow_columns(trees, tree) || !allow_values(trees, tree)) return false;
  return true;
}

bool ColumnRules::allow_columns(const TreeArrays& trees, int64_t tree) const {
  const int64_t first = trees.tree_offsets[tree], end = trees.tree_offsets[tree + 1];
  std::vector<std::vector<int32_t>> branches(end - first);
  for (int64_t n = first; n < end; ++n) {
    const int32_t column = trees.columns[n];
    if (column < 0) continue;
    const std::vector<int32_t>& branch = branches[n - first];
    const int32_t left = trees.lefts[n];
    if (column >= n_columns_) {  // previous labels
      branches[left + 1] = branches[left] = std::vector<int32_t>(branch);
      continue;
    }
    if (!directions_.empty() && directions(trees.outputs[tree])[column] == kUnused) return false;
    if (!branch.empty() && limits_interactions() && !allowed_below(branch)[column]) return false;
    branches[left] = branches[left + 1] = extend(branch, column);
  }
  return true;
}

// Whether below every split on a monotone column, no leaf of one side exceeds a leaf of the other.
bool ColumnRules::allow_values(const TreeArrays& trees, int64_t tree) const {
  const int output = trees.outputs[tree];
  if (!has_monotone(output)) return true;
  const int64_t first = trees.tree_offsets[tree], end = trees.tree_offsets[tree + 1];
  std::vector<float> least(trees.values.begin() + first, trees.values.begin() + end);
  std::vector<float> most = least;
  for (int64_t n = end - 1 - first; n >= 0; --n) {  // children come after their parent
    const int32_t column = trees.columns[first + n];
    if (column < 0) continue;
    const int32_t left = trees.lefts[first + n], right = left + 1;
    const int8_t direction = column < n_columns_ ? directions(output)[column] : int8_t{kAnyWay};
    if (direction == kRising && most[left] > least[right]) return false;
    if (direction == kFalling && least[left] < most[right]) return false;
    least[n] = std::min(least[left], least[right]);
    most[n] = std::max(most[left], most[right]);
  }
  return true;
}

std::vector<int32_t> extend(std::vector<int32_t> branch, int32_t column) {
  const auto place = std::lower_bound(branch.begin(), branch.end(), column);
  if (place == branch.end() || *place != column) branch.insert(place, column);
  return branch;
}

}  // namespace hedgerow
