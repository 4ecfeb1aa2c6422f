#include "linear/blocks.hpp"

#include <algorithm>
#include <utility>

#include "linear/rows.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kBlockPositions = 1 << 12;
constexpr int kRanges = 32;  // of attributes: tasks of the gradient

}  // namespace

AttributeBlocks::AttributeBlocks(const AttributeRows& rows, int64_t n_attributes, Stop& stop)
    : n_positions_(rows.n_positions) {
  std::vector<int32_t> counts(n_attributes, 0);
  std::vector<int64_t> totals(n_attributes, 0);
  for (int64_t e = 0; e < rows.offsets[rows.n_positions]; ++e) ++totals[rows.attributes[e]];
  for (int64_t first = 0; first < rows.n_positions; first += kBlockPositions) {
    stop.check();
    const int64_t end = std::min(first + kBlockPositions, rows.n_positions);
    blocks_.push_back(build_block(rows, first, end, counts));
  }
  // Ranges of attributes with about as many entries each, over all blocks.
  int64_t seen = 0, attribute = 0;
  for (int range = 0; range <= kRanges; ++range) {
    const int64_t target = rows.offsets[rows.n_positions] * range / kRanges;
    while (attribute < n_attributes && (seen < target || range == kRanges))
      seen += totals[attribute++];
    for (Block& block : blocks_) {
      const auto& listed = block.attributes;
      const auto place = std::lower_bound(listed.begin(), listed.end(), attribute);
      block.bounds.push_back(static_cast<int32_t>(place - listed.begin()));
    }
  }
}

// counts: (n_attributes,) scratch, zero before and after.
AttributeBlocks::Block AttributeBlocks::build_block(const AttributeRows& rows, int64_t first,
                                                    int64_t end, std::vector<int32_t>& counts) {
  Block block;
  block.first = first;
  const int64_t begin = rows.offsets[first], n_entries = rows.offsets[end] - begin;
  const int32_t* attributes = rows.attributes + begin;
  for (int64_t e = 0; e < n_entries; ++e)
    if (counts[attributes[e]]++ == 0) block.attributes.push_back(attributes[e]);
  std::sort(block.attributes.begin(), block.attributes.end());
  block.attributes.shrink_to_fit();
  block.offsets.reserve(block.attributes.size() + 1);
  int32_t next = 0;
  for (const int32_t attribute : block.attributes) {
    block.offsets.push_back(next);
    next += std::exchange(counts[attribute], next);
  }
  block.offsets.push_back(next);
  block.positions.resize(n_entries);
  if (rows.values != nullptr) block.values.resize(n_entries);
  for (int64_t t = first; t < end; ++t)
    for (int64_t e = rows.offsets[t]; e < rows.offsets[t + 1]; ++e) {
      const int32_t to = counts[rows.attributes[e]]++;
      block.positions[to] = static_cast<uint16_t>(t - first);
      if (rows.values != nullptr) block.values[to] = rows.values[e];
    }
  for (const int32_t attribute : block.attributes) counts[attribute] = 0;
  return block;
}

// A wide attribute that occurs several times is spread out as a full row first.
HEDGEROW_CLONES
void AttributeBlocks::add_scores(const Block& block, const WeightLayout& layout,
                                 const double* weights, double* row, double* scores) {
  const int n_outputs = layout.n_outputs;
  double* first = scores + block.first * n_outputs;
  for (size_t i = 0; i < block.attributes.size(); ++i) {
    const int64_t attribute = block.attributes[i];
    const int64_t w_begin = layout.offsets[attribute], n_weights = layout.n_weights(attribute);
    const int32_t* outputs = layout.outputs + w_begin;
    const int32_t begin = block.offsets[i], end = block.offsets[i + 1];
    if (layout.is_wide(attribute) && end - begin > 1) {
      std::fill(row, row + n_outputs, 0.0);
      for (int64_t w = 0; w < n_weights; ++w) row[outputs[w]] = weights[w_begin + w];
      for (int32_t e = begin; e < end; ++e)
        add_any_row(block.value(e), row, n_outputs,
                    first + block.positions[e] * int64_t{n_outputs});
    } else {
      for (int32_t e = begin; e < end; ++e) {
        double* sums = first + block.positions[e] * int64_t{n_outputs};
        const double value = block.value(e);
        for (int64_t w = 0; w < n_weights; ++w) sums[outputs[w]] += value * weights[w_begin + w];
      }
    }
  }
}

void AttributeBlocks::fill_scores(const WeightLayout& layout, const double* weights,
                                  const double* biases, double* scores, int n_threads,
                                  Stop& stop) const {
  const int n_outputs = layout.n_outputs;
  parallel_for(static_cast<int64_t>(blocks_.size()), n_threads, stop, [&](int64_t b) {
    stop.check();
    const int64_t first = blocks_[b].first;
    const int64_t end = std::min(first + kBlockPositions, n_positions_);
    for (int64_t t = first; t < end; ++t) {
      double* row = scores + t * n_outputs;
      for (int o = 0; o < n_outputs; ++o) row[o] = biases == nullptr ? 0.0 : biases[o];
    }
    std::vector<double> row(n_outputs);
    add_scores(blocks_[b], layout, weights, row.data(), scores);
  });
}

HEDGEROW_CLONES
void AttributeBlocks::add_range(const Block& block, int range, const WeightLayout& layout,
                                const double* residuals, double* sums, double* gradient) {
  const int n_outputs = layout.n_outputs;
  const double* first = residuals + block.first * n_outputs;
  for (int32_t i = block.bounds[range]; i < block.bounds[range + 1]; ++i) {
    const int64_t attribute = block.attributes[i];
    const int64_t n_weights = layout.n_weights(attribute);
    const int32_t* outputs = layout.outputs + layout.offsets[attribute];
    double* out = gradient + layout.offsets[attribute];
    const int32_t begin = block.offsets[i], end = block.offsets[i + 1];
    if (layout.is_wide(attribute) && end - begin > 1) {
      std::fill(sums, sums + n_outputs, 0.0);
      for (int32_t e = begin; e < end; ++e)
        add_any_row(block.value(e), first + block.positions[e] * int64_t{n_outputs}, n_outputs,
                    sums);
      for (int64_t w = 0; w < n_weights; ++w) out[w] += sums[outputs[w]];
    } else {
      for (int32_t e = begin; e < end; ++e) {
        const double* row = first + block.positions[e] * int64_t{n_outputs};
        const double value = block.value(e);
        for (int64_t w = 0; w < n_weights; ++w) out[w] += value * row[outputs[w]];
      }
    }
  }
}

void AttributeBlocks::add_gradient(const WeightLayout& layout, const double* residuals,
                                   double* gradient, int n_threads, Stop& stop) const {
  // A task owns the weights of its attributes and goes through the blocks in order.
  parallel_for(kRanges, n_threads, stop, [&](int64_t range) {
    std::vector<double> sums(layout.n_outputs);
    for (const Block& block : blocks_) {
      stop.check();
      add_range(block, static_cast<int>(range), layout, residuals, sums.data(), gradient);
    }
  });
}

}  // namespace hedgerow
