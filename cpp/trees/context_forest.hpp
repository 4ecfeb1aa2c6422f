// Trees that split on previous labels, prepared for scoring all contexts of a position.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "large_vector.hpp"
#include "parallel.hpp"
#include "trees/contexts.hpp"
#include "trees/forest.hpp"

namespace hedgerow {

// Contexts with the same answers to all label splits of a tree form a class. With these splits
// resolved, the rest of the tree splits only on columns, and is walked like any other. A tree that
// does not ask about labels has one class, and adds to its label's node.
//
// Immutable; any number of threads may use it.
class ContextForest {
 public:
  // Splits on columns from `first_label_column` on ask about previous labels: see grow_trees. The
  // contexts are for as many outputs as the forest has.
  ContextForest(const Forest& forest, const Contexts& contexts, int32_t first_label_column);

  // Scores of labels (N, K), and of labels in their contexts (N, E).
  struct Scores {
    const double* nodes;
    const float* edges;
    // Receive these and what is added; they may be the same arrays. The edges of first positions
    // may hold anything.
    double* out_nodes;
    float* out_edges;

    // Those of positions from `first` on.
    Scores from(int64_t first, int n_outputs, int64_t n_edges) const {
      return {nodes + first * n_outputs, edges + first * n_edges, out_nodes + first * n_outputs,
              out_edges + first * n_edges};
    }
  };
  // Adds the values of all trees, layer by layer. Where sequences have parents, roots take the
  // place of first positions.
  void add_scores(const BinTable& bins, const Sequences& sequences, const Scores& scores,
                  int n_threads, Stop& stop) const;

  int64_t n_edges() const { return n_edges_; }
  int n_outputs() const { return n_outputs_; }
  // Walks use columns below this only.
  int32_t n_columns() const { return n_columns_; }

 private:
  static constexpr int32_t kNone = -1;

  // Trees of different outputs.
  struct Layer {
    Forest classes;                  // a tree for each class, with an output of its own
    std::vector<int32_t> of_edges;   // (E,) class of an edge; the one after the last adds nothing
    std::vector<int32_t> of_nodes;   // (K,) class of a tree that has only one, otherwise kNone
    std::vector<int32_t> of_firsts;  // (K,) class of the beginning where there are more, or kNone
    bool has_edges;
  };
  class LayerBuilder;

  // To the sequences from `begin` to `end`; values: scratch memory
  void add_to_run(const BinTable& bins, const Sequences& sequences, int64_t begin, int64_t end,
                  const Scores& scores, LargeVector<double>& values, int n_threads,
                  Stop& stop) const;
  void add_layer(const Layer& layer, const double* values, int64_t begin, int64_t end,
                 const uint8_t* is_first, const Scores& scores) const;

  int n_outputs_;
  int64_t n_edges_;
  int32_t n_columns_ = 0;
  std::vector<Layer> layers_;
};

// out = edges, in double precision, plus those of other potentials, unless they are null; (N, E)
// all.
void fill_edges(const float* edges, const double* others, int64_t n_positions, int64_t n_edges,
                double* out, int n_threads, Stop& stop);

}  // namespace hedgerow
