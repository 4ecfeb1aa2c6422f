// Linear potentials: a position's scores are the sum of its attributes' weights.
//
// An attribute has a weight for some of the outputs (labels, or label pairs). Weights are stored in
// one array, those of attribute a at offsets[a] .. offsets[a + 1] of the layout, outputs ascending.
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
  const int32_t* outputs;  // (n weights,); may be null if every attribute has all outputs

  int64_t n_weights(int64_t attribute) const { return offsets[attribute + 1] - offsets[attribute]; }
  // Whether it has one for every output: then its weights are a contiguous row.
  bool is_full(int64_t attribute) const { return n_weights(attribute) == n_outputs; }
  // The output of one of its weights.
  int32_t output(int64_t attribute, int64_t weight) const {
    return outputs == nullptr ? static_cast<int32_t>(weight - offsets[attribute]) : outputs[weight];
  }
  // Whether an attribute has weights for so many outputs that treating it as dense is faster.
  bool is_wide(int64_t attribute) const { return n_weights(attribute) * 4 > n_outputs; }
};

// Number of positions at which each attribute occurs; repetitions at a position count once.
std::vector<int64_t> count_positions(const AttributeRows& rows, int64_t n_attributes, Stop& stop);

// The first place of each attribute, the same in any order of the sequences: in the upper bits a
// digest of the contents of its sequence, in the lower bits the position within it. Of several
// sequences, the one with the lowest digest counts; an attribute that does not occur gets the
// highest number. digests: (n_attributes,) of the attributes; offsets: (n_sequences + 1,) of
// positions
std::vector<uint64_t> find_places(const AttributeRows& rows, const std::vector<uint64_t>& digests,
                                  const int64_t* offsets, int64_t n_sequences, Stop& stop);

// The pairs (attribute, outputs[t]) that occur; an output of -1 marks a position that has none.
struct SeenPairs {
  std::vector<int64_t> offsets;
  std::vector<int32_t> outputs;
};
SeenPairs build_seen_pairs(const AttributeRows& rows, int64_t n_attributes, const int32_t* outputs,
                           int n_outputs, Stop& stop);

}  // namespace hedgerow
