// Scores of positions and gradients of weights, for training.
#pragma once

#include <cstdint>
#include <vector>

#include "linear/layout.hpp"
#include "parallel.hpp"

namespace hedgerow {

// The attributes of a training set's positions, kept by attribute within blocks of positions: what
// training goes over again and again. An attribute's weights are fetched once a block, its
// positions lie close together, and an entry takes two bytes.
class AttributeBlocks {
 public:
  AttributeBlocks(const AttributeRows& rows, int64_t n_attributes, Stop& stop);

  int64_t n_positions() const { return n_positions_; }

  // As Scorer::add_scores, to nothing.
  void fill_scores(const WeightLayout& layout, const double* weights, const double* biases,
                   double* scores, int n_threads, Stop& stop) const;

  // gradient[a, o] += sum over positions t with attribute a of value * residuals[t, o].
  // residuals: (n_positions, n_outputs); gradient: (n weights,)
  void add_gradient(const WeightLayout& layout, const double* residuals, double* gradient,
                    int n_threads, Stop& stop) const;

 private:
  struct Block {
    int64_t first;                    // its first position
    std::vector<int32_t> attributes;  // that occur in the block, ascending
    std::vector<int32_t> offsets;     // entries of each of them
    std::vector<uint16_t> positions;  // of each entry, counted from the first
    std::vector<double> values;       // of each entry; empty: all ones
    std::vector<int32_t> bounds;      // (ranges + 1,) where each range of attributes begins

    double value(int64_t entry) const { return values.empty() ? 1.0 : values[entry]; }
  };
  struct ScoreBlock;
  struct SumRange;
  static Block build_block(const AttributeRows& rows, int64_t first, int64_t end,
                           std::vector<int32_t>& counts);
  static void add_scores(const Block& block, const WeightLayout& layout, const double* weights,
                         double* row, double* scores);
  static void add_range(const Block& block, int range, const WeightLayout& layout,
                        const double* residuals, int64_t n_inner, double* sums, double* gradient);

  int64_t n_positions_;
  std::vector<Block> blocks_;
};

}  // namespace hedgerow
