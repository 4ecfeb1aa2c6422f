// Scores of positions and gradients of weights, for training.
#pragma once

#include <cstdint>
#include <vector>

#include "linear/layout.hpp"
#include "linear/leading.hpp"
#include "parallel.hpp"
#include "sum_grid.hpp"

namespace hedgerow {

// Grids of the residuals, and of their products with values, one for each attribute.
struct ResidualGrid {
  SumGrid residuals;
  const double* powers;  // (n_attributes,) powers of two, none below a value of its
                         // attribute; null: all are 1

  HEDGEROW_INLINE SumGrid products(int64_t attribute) const {
    return powers == nullptr ? residuals : residuals.times(powers[attribute]);
  }
};

// The attributes of the positions of a training set, laid out for repeated passes: leading
// attributes, see LeadingWeights, by position, and the others by position within blocks of
// positions and ranges of attributes, so that threads can share the work. Most of the others have
// few weights. If they also have no values, each occurrence is divided into terms, one for each
// weight, which are added without looking up the layout of the weights.
class AttributeBlocks {
 public:
  // layout: of all weights that are passed later; n_leading: number of leading attributes, at most
  // kMostLeading.
  AttributeBlocks(const AttributeRows& rows, const WeightLayout& layout, int64_t n_leading,
                  Stop& stop);

  int64_t n_positions() const { return n_positions_; }
  int64_t n_weights() const { return n_weights_; }
  int n_outputs() const { return n_outputs_; }
  int64_t n_leading() const { return n_leading_; }

  // As Scorer::add_scores, but overwrites the scores; biases may be null.
  void fill_scores(const LeadingWeights& weights, const double* biases, double* scores,
                   int n_threads, Stop& stop) const;

  // gradient[a, o] += sum over positions t with attribute a of value * residuals[t, o], added to
  // `sums` instead for leading attributes; bias_gradient[o] += sum over all t of residuals[t, o].
  // residuals: (n_positions, n_outputs); gradient: (n weights,); bias_gradient: (n_outputs,) or
  // null. Residuals, and their products with values, are rounded to a grid first, so that sums do
  // not depend on the order of the positions.
  void add_gradient(const double* residuals, LeadingSums& sums, double* gradient,
                    double* bias_gradient, const ResidualGrid& grid, int n_threads,
                    Stop& stop) const;

 private:
  template <class Wide>
  struct ScoreBlock;
  template <class Wide, bool kRounded>
  struct SumGroup;
  // Kernels of eight_wide_clone for the two passes over leading attributes.
  template <class Wide>
  HEDGEROW_INLINE static void score_with(const AttributeBlocks& blocks,
                                         const LeadingWeights& weights, const double* biases,
                                         double* sums, double* scores, int64_t first, int64_t end) {
    with_lanes(weights.layout().n_outputs,
               ScoreBlock<Wide>{blocks, weights, biases, scores, first, end, sums});
  }
  template <class Wide>
  HEDGEROW_INLINE static void sum_with(const AttributeBlocks& blocks, const double* residuals,
                                       LeadingSums& sums, int part, int group, int64_t first,
                                       int64_t end, const ResidualGrid& grid, double* bias_sums) {
    const int n_outputs = sums.n_outputs(group);
    if (blocks.leading_values_.empty())
      with_lanes(n_outputs, SumGroup<Wide, false>{blocks, residuals, sums, part, group, first, end,
                                                  bias_sums, grid});
    else
      with_lanes(n_outputs, SumGroup<Wide, true>{blocks, residuals, sums, part, group, first, end,
                                                 bias_sums, grid});
  }
  bool has_terms(const WeightLayout& layout, int64_t attribute) const;
  void add_block(const AttributeRows& rows, const WeightLayout& layout, int64_t first, int64_t end,
                 const std::vector<int32_t>& range_ends);
  void score_leading(const LeadingWeights& weights, const double* biases, double* sums,
                     double* scores, int64_t first, int64_t end) const;
  void score_others(const LeadingWeights& weights, double* scores, int64_t block) const;
  void score_terms(const double* weights, double* scores, int64_t block) const;
  void sum_leading(const double* residuals, LeadingSums& sums, int part, int group, int64_t first,
                   int64_t end, const ResidualGrid& grid, double* bias_sums) const;
  void sum_others(const WeightLayout& layout, const double* residuals, double* gradient,
                  int64_t block, int first_range, int end_range, const ResidualGrid& grid) const;
  void sum_terms(const double* residuals, double* gradient, int64_t block, int first_range,
                 int end_range, const SumGrid& grid) const;

  // The entries of a block that are of leading attributes.
  struct LeadingEntries {
    const int32_t* offsets;  // of its positions
    const uint16_t* attributes;
    const double* values;  // or null

    HEDGEROW_INLINE double value(int64_t entry) const { return values ? values[entry] : 1.0; }
  };
  LeadingEntries leading_entries(int64_t block) const;

  int64_t n_positions_;
  int64_t n_weights_;
  int n_outputs_;
  int64_t n_leading_;
  int64_t block_positions_;  // positions of a block, a power of two
  int64_t most_terms_;       // attributes with more weights are not divided into terms
  // Entries of leading attributes, ascending within a position.
  std::vector<int64_t> leading_starts_;   // (n_blocks,) first entry of each block
  std::vector<int32_t> leading_offsets_;  // (n_blocks, block positions + 1) counted from there
  std::vector<uint16_t> leading_;         // attributes
  std::vector<double> leading_values_;    // empty: all ones
  // Terms: by block, range, position and attribute, ascending.
  std::vector<int64_t> term_bounds_;   // (n_blocks * n_ranges + 1,)
  std::vector<int32_t> term_weights_;  // number of the weight
  std::vector<uint16_t> term_scores_;  // place of the score in the rows of the block
  // All others: in the same order.
  std::vector<int64_t> other_bounds_;      // (n_blocks * n_ranges + 1,)
  std::vector<uint16_t> other_positions_;  // counted from the first of the block
  std::vector<int32_t> others_;            // attributes
  std::vector<double> other_values_;       // empty: all ones
};

}  // namespace hedgerow
