// The forest: all trees of a model, and their weights.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "parallel.hpp"
#include "trees/data.hpp"
#include "trees/tree_arrays.hpp"
#include "trees/value_walker.hpp"
#include "trees/walker.hpp"

namespace hedgerow {

// Immutable; any number of threads may use it. Copies share their arrays.
class Forest {
 public:
  // `trees` have been checked, or were grown. `tree_weights` (T,): what the values of a tree are
  // multiplied by.
  Forest(int n_outputs, TreeArrays trees, std::vector<double> tree_weights);

  // The rounds of some forests of n_outputs, one after another.
  static Forest join(int n_outputs, const std::vector<const Forest*>& parts);

  // The same trees, all weights multiplied by a factor.
  Forest scaled(double factor) const;

  int n_outputs() const { return n_outputs_; }
  const TreeArrays& trees() const { return shared_->trees; }
  const std::vector<double>& tree_weights() const { return tree_weights_; }
  // Splits use only columns below this number.
  int32_t n_columns() const { return shared_->n_columns; }

  // out[t, k] = scores[t, k] + weight * value of the leaf of each tree of output k at position t,
  // added one after another in order. scores and out: (N, n_outputs), and may be the same. `bins`
  // must have at least n_columns columns.
  void add_scores(const BinTable& bins, const Sequences& sequences, const double* scores,
                  double* out, int n_threads, Stop& stop) const;

  // Whether the trees can be walked with values.
  bool asks_numbers() const { return shared_->asks_numbers; }
  // Whether walking this many positions with values is faster than binning them first.
  bool walks_values(int64_t n_positions) const {
    return asks_numbers() && n_positions >= ValueWalker::kFewest;
  }
  // The same scores from values, for trees that split only on numbers.
  template <class Value>
  void add_scores(const ValueTable<Value>& values, const Sequences& sequences, const double* scores,
                  double* out, int n_threads, Stop& stop) const {
    value_walker().add_scores(values, sequences, {n_outputs_, tree_weights_.data(), scores, out},
                              n_threads, stop);
  }

 private:
  struct Shared {
    explicit Shared(TreeArrays trees);
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    ~Shared() {
      delete walker.load();
      delete value_walker.load();
    }

    TreeArrays trees;
    int32_t n_columns = 0;
    bool asks_numbers;
    // Null before the first walk, which creates one for bins like its own.
    std::atomic<const Walker*> walker{nullptr};
    std::atomic<const ValueWalker*> value_walker{nullptr};
  };

  Forest(int n_outputs, std::shared_ptr<Shared> shared, std::vector<double> tree_weights);
  const Walker& walker(const BinTable& bins, std::unique_ptr<const Walker>& own) const;
  const ValueWalker& value_walker() const;

  int n_outputs_;
  std::shared_ptr<Shared> shared_;
  std::vector<double> tree_weights_;
};

}  // namespace hedgerow
