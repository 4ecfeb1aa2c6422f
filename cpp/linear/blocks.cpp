#include "linear/blocks.hpp"

#include <algorithm>
#include <utility>

#include "linear/rows.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kBlockPositions = kLowLimits ? 1 << 8 : 1 << 12;
constexpr int kRanges = 32;    // of attributes: tasks of the gradient
constexpr int kRowsAhead = 8;  // attributes and entries whose rows are fetched ahead of their turn

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

// What goes over a block, compiled for rows of N lanes; see with_lanes.
struct AttributeBlocks::ScoreBlock {
  const Block& block;
  const WeightLayout& layout;
  const double* weights;
  double* row;     // (n_outputs,) scratch
  double* scores;  // of the block's first position

  HEDGEROW_INLINE double* sums(int32_t entry) const {
    return scores + block.positions[entry] * int64_t{layout.n_outputs};
  }

  // Adds a row of all outputs to the scores of an attribute's entries, weights in registers.
  template <int N>
  HEDGEROW_INLINE void add(const double* from, int32_t begin, int32_t end) const {
    const int n_outputs = layout.n_outputs, n_entries = block.offsets.back();
    constexpr int kWhole = N > 0 ? N - 1 : 0;  // lanes that are surely filled
    Lanes lanes[N > 0 ? N : 1];
    for (int n = 0; n < kWhole; ++n) lanes[n] = load(from + n * kLanes);
    for (int32_t e = begin; e < end; ++e) {
      prefetch_row(sums(std::min(e + kRowsAhead, n_entries - 1)), n_outputs);
      const double value = block.value(e);
      const Lanes values = broadcast(value);
      double* to = sums(e);
      for (int n = 0; n < kWhole; ++n)
        store(to + n * kLanes, load(to + n * kLanes) + values * lanes[n]);
      const int done = kWhole * kLanes;
      add_any_row(value, from + done, n_outputs - done, to + done);
    }
  }

  template <int N>
  HEDGEROW_INLINE void run() const {
    const int n_outputs = layout.n_outputs;
    const size_t n_attributes = block.attributes.size();
    for (size_t i = 0; i < n_attributes; ++i) {
      const int64_t attribute = block.attributes[i];
      const int64_t w_begin = layout.offsets[attribute], n_weights = layout.n_weights(attribute);
      const int64_t soon = block.attributes[std::min(i + kRowsAhead, n_attributes - 1)];
      prefetch_row(weights + layout.offsets[soon], static_cast<int>(layout.n_weights(soon)));
      const int32_t begin = block.offsets[i], end = block.offsets[i + 1];
      if (layout.is_full(attribute)) {
        add<N>(weights + w_begin, begin, end);
        continue;
      }
      const int32_t* outputs = layout.outputs + w_begin;
      if (layout.is_wide(attribute) && end - begin > 1) {
        std::fill(row, row + n_outputs, 0.0);
        for (int64_t w = 0; w < n_weights; ++w) row[outputs[w]] = weights[w_begin + w];
        add<N>(row, begin, end);
      } else {
        for (int32_t e = begin; e < end; ++e) {
          double* to = sums(e);
          const double value = block.value(e);
          for (int64_t w = 0; w < n_weights; ++w) to[outputs[w]] += value * weights[w_begin + w];
        }
      }
    }
  }
};

HEDGEROW_CLONES
void AttributeBlocks::add_scores(const Block& block, const WeightLayout& layout,
                                 const double* weights, double* row, double* scores) {
  with_lanes(layout.n_outputs,
             ScoreBlock{block, layout, weights, row, scores + block.first * layout.n_outputs});
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

struct AttributeBlocks::SumRange {
  const Block& block;
  int range;
  const WeightLayout& layout;
  const double* residuals;  // of the block's first position
  int64_t n_inner;          // positions of the block whose rows are inner, see Row
  double* sums;             // (padded n_outputs,) scratch
  double* gradient;

  HEDGEROW_INLINE const double* residual(int32_t entry) const {
    return residuals + block.positions[entry] * int64_t{layout.n_outputs};
  }

  // sums = sum over an attribute's entries of value * residual, in registers.
  template <int N>
  HEDGEROW_INLINE void add_up(int32_t begin, int32_t end) const {
    const Row row(layout.n_outputs);
    if constexpr (N == 0) {
      std::fill(sums, sums + row.size, 0.0);
      for (int32_t e = begin; e < end; ++e)
        add_any_row(block.value(e), residual(e), row.size, sums);
    } else {
      Lanes lanes[N];
      for (int n = 0; n < N; ++n) lanes[n] = broadcast(0.0);
      for (int32_t e = begin; e < end; ++e) {
        const double* from = residual(e);
        const Lanes values = broadcast(block.value(e));
        const bool inner = block.positions[e] < n_inner;
        for (int n = 0; n < N - 1; ++n) lanes[n] += values * load(from + n * kLanes);
        lanes[N - 1] += values * row.load_at(from, (N - 1) * kLanes, inner);
      }
      for (int n = 0; n < N; ++n) store(sums + n * kLanes, lanes[n]);
    }
  }

  template <int N>
  HEDGEROW_INLINE void run() const {
    const int n_outputs = layout.n_outputs;
    const int32_t last = block.bounds[range + 1] - 1;
    for (int32_t i = block.bounds[range]; i <= last; ++i) {
      const int64_t attribute = block.attributes[i];
      const int64_t n_weights = layout.n_weights(attribute);
      const int64_t soon = block.attributes[std::min(i + kRowsAhead, last)];
      prefetch_row(gradient + layout.offsets[soon], static_cast<int>(layout.n_weights(soon)));
      double* out = gradient + layout.offsets[attribute];
      const int32_t begin = block.offsets[i], end = block.offsets[i + 1];
      if (layout.is_full(attribute)) {
        add_up<N>(begin, end);
        add_any_row(1.0, sums, n_outputs, out);
        continue;
      }
      const int32_t* outputs = layout.outputs + layout.offsets[attribute];
      if (layout.is_wide(attribute) && end - begin > 1) {
        add_up<N>(begin, end);
        for (int64_t w = 0; w < n_weights; ++w) out[w] += sums[outputs[w]];
      } else {
        for (int32_t e = begin; e < end; ++e) {
          const double* from = residual(e);
          const double value = block.value(e);
          for (int64_t w = 0; w < n_weights; ++w) out[w] += value * from[outputs[w]];
        }
      }
    }
  }
};

HEDGEROW_CLONES
void AttributeBlocks::add_range(const Block& block, int range, const WeightLayout& layout,
                                const double* residuals, int64_t n_inner, double* sums,
                                double* gradient) {
  with_lanes(layout.n_outputs,
             SumRange{block, range, layout, residuals + block.first * layout.n_outputs,
                      n_inner - block.first, sums, gradient});
}

void AttributeBlocks::add_gradient(const WeightLayout& layout, const double* residuals,
                                   double* gradient, int n_threads, Stop& stop) const {
  // A task owns the weights of its attributes and goes through the blocks in order.
  parallel_for(kRanges, n_threads, stop, [&](int64_t range) {
    PaddedVector sums(padded(layout.n_outputs));
    const int64_t n_inner = n_positions_ - Row(layout.n_outputs).n_outer_rows();
    for (const Block& block : blocks_) {
      stop.check();
      add_range(block, static_cast<int>(range), layout, residuals, n_inner, sums.data(), gradient);
    }
  });
}

}  // namespace hedgerow
