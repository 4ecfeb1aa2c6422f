#include "trees/feature_choice.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "random.hpp"

namespace hedgerow {
namespace {

constexpr uint64_t kTreeColumns = 1, kNodeColumns = 2;  // purposes of random numbers

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

const uint8_t* or_null(const std::vector<uint8_t>& features) {
  return features.empty() ? nullptr : features.data();
}

}  // namespace

std::vector<uint8_t> FeatureChoice::of_tree(int output, uint64_t key) const {
  std::vector<uint8_t> features;
  if (rules_ != nullptr && rules_->has_unused(output)) {
    const int8_t* directions = rules_->directions(output);
    features.resize(data_.n_features());
    for (size_t f = 0; f < features.size(); ++f)
      features[f] = directions[f / data_.n_offsets()] != kUnused;
  }
  if (share_of_tree_ >= 1.0) return features;
  return choose_features(data_.n_features(), features, share_of_tree_,
                         derive_key(key, kTreeColumns));
}

bool FeatureChoice::is_of_tree() const {
  return share_of_node_ >= 1.0 && (rules_ == nullptr || !rules_->limits_interactions());
}

const uint8_t* FeatureChoice::of_node(const GrowingTree& tree, const OpenNode& node) {
  const std::vector<uint8_t>* among = &tree.features;
  if (!node.branch.empty()) {
    fill_branch_features(tree, node.branch);
    among = &branch_features_;
  }
  if (share_of_node_ >= 1.0) return or_null(*among);
  node_features_ = choose_features(data_.n_features(), *among, share_of_node_,
                                   derive_key(derive_key(tree.key, kNodeColumns), node.node));
  return node_features_.data();
}

const uint8_t* FeatureChoice::of_surrogates(const GrowingTree& tree, const OpenNode& parent) {
  if (rules_ == nullptr || !rules_->limits_interactions()) return or_null(tree.features);
  fill_branch_features(tree, branch_below(parent));
  return branch_features_.data();
}

std::vector<int32_t> FeatureChoice::branch_below(const OpenNode& parent) const {
  if (rules_ == nullptr || !rules_->limits_interactions()) return {};
  return extend(parent.branch, parent.split.column);
}

// Features of the tree whose columns may be used below those of a branch.
void FeatureChoice::fill_branch_features(const GrowingTree& tree,
                                         const std::vector<int32_t>& branch) {
  const std::vector<uint8_t> columns = rules_->allowed_below(branch);
  branch_features_.resize(data_.n_features());
  for (size_t f = 0; f < branch_features_.size(); ++f)
    branch_features_[f] =
        columns[f / data_.n_offsets()] && (tree.features.empty() || tree.features[f]);
}

}  // namespace hedgerow
