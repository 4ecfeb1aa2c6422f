// Linear potentials: a position's scores are the sum of its attributes' weights.
//
// An attribute has a weight for some of the outputs (labels, or label pairs). Weights lie in one
// array, those of attribute a at offsets[a] .. offsets[a + 1] of the layout, outputs ascending.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"

namespace hedgerow {

// Attributes by position: those of position t are at offsets[t] .. offsets[t + 1].
struct AttributeRows {
  int64_t n_positions;
  const int64_t* offsets;     // (n_positions + 1,)
  const int32_t* attributes;  // (n entries,)
  const double* values;       // (n entries,) or null: all ones

  double value(int64_t entry) const { return values == nullptr ? 1.0 : values[entry]; }
};

// Which (attribute, output) pairs have a weight.
struct WeightLayout {
  int64_t n_attributes;
  int n_outputs;
  const int64_t* offsets;  // (n_attributes + 1,)
  const int32_t* outputs;  // (n weights,)

  int64_t n_weights(int64_t attribute) const { return offsets[attribute + 1] - offsets[attribute]; }
  // Whether an attribute has weights for so many outputs that it pays to treat it as having all.
  bool is_wide(int64_t attribute) const { return n_weights(attribute) * 4 > n_outputs; }
};

// Scores of positions under given weights; made once for many calls with the same weights.
class Scorer {
 public:
  // weights: (n weights,), not copied, as is the layout; biases: (n_outputs,) or null.
  Scorer(const WeightLayout& layout, const double* weights, const double* biases);

  int n_outputs() const { return layout_.n_outputs; }

  // scores[t, o] = biases[o] + sum over attributes a of position t of value * weight[a, o].
  // scores: (n_positions, n_outputs)
  void fill_scores(const AttributeRows& rows, double* scores, int n_threads, Stop& stop) const;

 private:
  void fill_rows(const AttributeRows& rows, int64_t first, int64_t end, double* sums,
                 double* scores) const;

  WeightLayout layout_;
  const double* weights_;
  int stride_;
  std::vector<double> biases_;     // (stride,)
  std::vector<int32_t> wide_row_;  // (n_attributes,) row in wide_ of a wide attribute, else -1
  std::vector<double> wide_;       // (wide attributes, stride), 0 where there is no weight
};

// The attributes of a training set's positions, kept by attribute within blocks of positions: what
// training goes over again and again. An attribute's weights are fetched once a block, its
// positions lie close together, and an entry takes two bytes.
class AttributeBlocks {
 public:
  AttributeBlocks(const AttributeRows& rows, int64_t n_attributes);

  int64_t n_positions() const { return n_positions_; }

  // As Scorer::fill_scores.
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
  static Block build_block(const AttributeRows& rows, int64_t first, int64_t end,
                           std::vector<int32_t>& counts);
  static void add_scores(const Block& block, const WeightLayout& layout, const double* weights,
                         double* row, double* scores);
  static void add_range(const Block& block, int range, const WeightLayout& layout,
                        const double* residuals, double* sums, double* gradient);

  int64_t n_positions_;
  std::vector<Block> blocks_;
};

// The pairs (attribute, outputs[t]) that occur; an output of -1 marks a position that has none.
struct SeenPairs {
  std::vector<int64_t> offsets;
  std::vector<int32_t> outputs;
};
SeenPairs build_seen_pairs(const AttributeRows& rows, int64_t n_attributes, const int32_t* outputs,
                           int n_outputs);

}  // namespace hedgerow
