#include "trees/forest.hpp"

#include <algorithm>
#include <utility>

namespace hedgerow {

Forest::Shared::Shared(TreeArrays arrays)
    : trees(std::move(arrays)),
      asks_numbers(!trees.asks_more_of_missing() && ValueWalker::suits(trees)) {
  for (const auto* columns : {&trees.columns, &trees.surrogate_columns})
    for (const int32_t column : *columns) n_columns = std::max(n_columns, column + 1);
}

Forest::Forest(int n_outputs, TreeArrays trees, std::vector<double> tree_weights)
    : Forest(n_outputs, std::make_shared<Shared>(std::move(trees)), std::move(tree_weights)) {}

Forest::Forest(int n_outputs, std::shared_ptr<Shared> shared, std::vector<double> tree_weights)
    : n_outputs_(n_outputs), shared_(std::move(shared)), tree_weights_(std::move(tree_weights)) {}

Forest Forest::join(int n_outputs, const std::vector<const Forest*>& parts) {
  TreeArrays trees;
  std::vector<double> weights;
  for (const Forest* part : parts) {
    append(trees, part->trees());
    weights.insert(weights.end(), part->tree_weights_.begin(), part->tree_weights_.end());
  }
  return Forest(n_outputs, std::move(trees), std::move(weights));
}

Forest Forest::scaled(double factor) const {
  std::vector<double> weights = tree_weights_;
  for (double& weight : weights) weight *= factor;
  return Forest(n_outputs_, shared_, std::move(weights));
}

// There is no lock, since it could stay locked after a fork: if two walkers are made at once, one
// is discarded. Bins that the shared walker does not fit have a walker of their `own`.
const Walker& Forest::walker(const BinTable& bins, std::unique_ptr<const Walker>& own) const {
  const Walker* found = shared_->walker.load();
  if (found == nullptr) {
    own = std::make_unique<const Walker>(shared_->trees, bins);
    if (shared_->walker.compare_exchange_strong(found, own.get())) return *own.release();
  }
  if (found->fits(bins)) return *found;
  if (own == nullptr) own = std::make_unique<const Walker>(shared_->trees, bins);
  return *own;
}

const ValueWalker& Forest::value_walker() const {
  const ValueWalker* found = shared_->value_walker.load();
  if (found != nullptr) return *found;
  auto own = std::make_unique<const ValueWalker>(shared_->trees);
  if (shared_->value_walker.compare_exchange_strong(found, own.get())) return *own.release();
  return *found;
}

void Forest::add_scores(const BinTable& bins, const Sequences& sequences, const double* scores,
                        double* out, int n_threads, Stop& stop) const {
  std::unique_ptr<const Walker> own;
  walker(bins, own).add_scores(bins, sequences, {n_outputs_, tree_weights_.data(), scores, out},
                               n_threads, stop);
}

}  // namespace hedgerow
