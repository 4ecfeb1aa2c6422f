#include "linear/potentials.hpp"

#include <algorithm>
#include <utility>

#include "simd.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kTaskPositions = 512;
constexpr int64_t kBlockPositions = 1 << 12;
constexpr int kRanges = 32;  // of attributes: tasks of the gradient

// sums[0 .. n) += factor * row[0 .. n), n a multiple of kLanes.
HEDGEROW_INLINE void add_row(double factor, const double* row, int n, double* sums) {
  const Lanes factors = broadcast(factor);
  for (int i = 0; i < n; i += kLanes) store(sums + i, load(sums + i) + factors * load(row + i));
}

// The same for any n.
HEDGEROW_INLINE void add_any_row(double factor, const double* row, int n, double* sums) {
  const int whole = n / kLanes * kLanes;
  add_row(factor, row, whole, sums);
  for (int i = whole; i < n; ++i) sums[i] += factor * row[i];
}

}  // namespace

Scorer::Scorer(const WeightLayout& layout, const double* weights, const double* biases)
    : layout_(layout),
      weights_(weights),
      stride_(padded(layout.n_outputs)),
      biases_(stride_, 0.0),
      wide_row_(layout.n_attributes, -1) {
  if (biases != nullptr) std::copy(biases, biases + layout.n_outputs, biases_.begin());
  int32_t n_wide = 0;
  for (int64_t a = 0; a < layout.n_attributes; ++a)
    if (layout.is_wide(a)) wide_row_[a] = n_wide++;
  wide_.resize(static_cast<size_t>(n_wide) * stride_);
  for (int64_t a = 0; a < layout.n_attributes; ++a) {
    if (wide_row_[a] < 0) continue;
    double* row = wide_.data() + static_cast<int64_t>(wide_row_[a]) * stride_;
    for (int64_t w = layout.offsets[a]; w < layout.offsets[a + 1]; ++w)
      row[layout.outputs[w]] = weights[w];
  }
}

HEDGEROW_CLONES
void Scorer::fill_rows(const AttributeRows& rows, int64_t first, int64_t end, double* sums,
                       double* scores) const {
  const int n_outputs = layout_.n_outputs;
  const Row row(n_outputs);
  for (int64_t t = first; t < end; ++t) {
    std::copy(biases_.begin(), biases_.end(), sums);
    for (int64_t e = rows.offsets[t]; e < rows.offsets[t + 1]; ++e) {
      const int64_t attribute = rows.attributes[e];
      const int64_t wide = wide_row_[attribute];
      const double value = rows.value(e);
      if (wide >= 0) {
        add_row(value, wide_.data() + wide * stride_, stride_, sums);
      } else {
        for (int64_t w = layout_.offsets[attribute]; w < layout_.offsets[attribute + 1]; ++w)
          sums[layout_.outputs[w]] += value * weights_[w];
      }
    }
    row.copy_from_padded(sums, false, scores + t * n_outputs);
  }
}

void Scorer::fill_scores(const AttributeRows& rows, double* scores, int n_threads,
                         Stop& stop) const {
  const int64_t n_tasks = (rows.n_positions + kTaskPositions - 1) / kTaskPositions;
  parallel_for(n_tasks, n_threads, stop, [&](int64_t task) {
    stop.check();
    std::vector<double> sums(stride_);
    const int64_t first = task * kTaskPositions;
    fill_rows(rows, first, std::min(first + kTaskPositions, rows.n_positions), sums.data(), scores);
  });
}

AttributeBlocks::AttributeBlocks(const AttributeRows& rows, int64_t n_attributes)
    : n_positions_(rows.n_positions) {
  std::vector<int32_t> counts(n_attributes, 0);
  std::vector<int64_t> totals(n_attributes, 0);
  for (int64_t e = 0; e < rows.offsets[rows.n_positions]; ++e) ++totals[rows.attributes[e]];
  for (int64_t first = 0; first < rows.n_positions; first += kBlockPositions) {
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

SeenPairs build_seen_pairs(const AttributeRows& rows, int64_t n_attributes, const int32_t* outputs,
                           int n_outputs) {
  // A first pass sorts the outputs by attribute, a second keeps each of them once.
  std::vector<int64_t> begin(n_attributes + 1, 0);
  for (int64_t t = 0; t < rows.n_positions; ++t)
    for (int64_t e = rows.offsets[t]; e < rows.offsets[t + 1]; ++e)
      if (outputs[t] >= 0) ++begin[rows.attributes[e] + 1];
  for (int64_t a = 0; a < n_attributes; ++a) begin[a + 1] += begin[a];
  std::vector<int32_t> sorted(begin[n_attributes]);
  std::vector<int64_t> next(begin.begin(), begin.end() - 1);
  for (int64_t t = 0; t < rows.n_positions; ++t)
    for (int64_t e = rows.offsets[t]; e < rows.offsets[t + 1]; ++e)
      if (outputs[t] >= 0) sorted[next[rows.attributes[e]]++] = outputs[t];

  SeenPairs out;
  out.offsets.reserve(n_attributes + 1);
  out.offsets.push_back(0);
  std::vector<int64_t> seen_by(n_outputs, -1);  // the last attribute that had this output
  for (int64_t a = 0; a < n_attributes; ++a) {
    const size_t first = out.outputs.size();
    for (int64_t i = begin[a]; i < begin[a + 1]; ++i) {
      if (seen_by[sorted[i]] == a) continue;
      seen_by[sorted[i]] = a;
      out.outputs.push_back(sorted[i]);
    }
    std::sort(out.outputs.begin() + first, out.outputs.end());
    out.offsets.push_back(static_cast<int64_t>(out.outputs.size()));
  }
  return out;
}

}  // namespace hedgerow
