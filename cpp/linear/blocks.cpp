#include "linear/blocks.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "linear/rows.hpp"

namespace hedgerow {
namespace {

// Positions of a block: at most this many, and fewer if their scores would be more than two bytes
// can number.
constexpr int64_t kBlockPositions = kLowLimits ? 1 << 5 : 1 << 9;
constexpr int64_t kBlockScores = 1 << 16;
constexpr int64_t kLeastPositions = 1 << 5;
// After this many blocks the sums of wide attributes are added to their totals.
constexpr int64_t kSumBlocks = 8;
constexpr int64_t kMostTerms = 8;  // of an attribute
constexpr int kRanges = 16;        // of attributes: tasks of the gradient
// How many entries ahead the layout, and the weights, are prefetched.
constexpr int64_t kPlacesAhead = 24;
constexpr int64_t kWeightsAhead = 12;

int64_t count_block_positions(int n_outputs) {
  const int64_t fitting = std::bit_floor<uint64_t>(kBlockScores / std::max(1, n_outputs));
  return std::clamp(fitting, kLeastPositions, kBlockPositions);
}

// Ends of ranges of the attributes from n_leading on, with about the same number of entries.
std::vector<int32_t> cut_ranges(const AttributeRows& rows, int64_t n_attributes,
                                int64_t n_leading) {
  std::vector<int32_t> counts(n_attributes, 0);
  for (int64_t e = 0; e < rows.offsets[rows.n_positions]; ++e) ++counts[rows.attributes[e]];
  int64_t n_entries = 0, seen = 0, attribute = std::min(n_leading, n_attributes);
  for (int64_t a = attribute; a < n_attributes; ++a) n_entries += counts[a];
  std::vector<int32_t> ends;
  for (int range = 1; range < kRanges; ++range) {
    while (attribute < n_attributes && seen < n_entries * range / kRanges)
      seen += counts[attribute++];
    ends.push_back(static_cast<int32_t>(attribute));
  }
  return ends;
}

}  // namespace

AttributeBlocks::AttributeBlocks(const AttributeRows& rows, const WeightLayout& layout,
                                 int64_t n_leading, Stop& stop)
    : n_positions_(rows.n_positions),
      n_weights_(layout.offsets[layout.n_attributes]),
      n_outputs_(layout.n_outputs),
      n_leading_(std::min({n_leading, kMostLeading, layout.n_attributes})),
      block_positions_(count_block_positions(layout.n_outputs)),
      most_terms_(kMostTerms) {
  if (rows.values != nullptr || n_weights_ > std::numeric_limits<int32_t>::max() ||
      block_positions_ * layout.n_outputs > kBlockScores)
    most_terms_ = 0;
  const int64_t n_entries = rows.offsets[n_positions_];
  int64_t n_led = 0, n_terms = 0, n_others = 0;
  for (int64_t e = 0; e < n_entries; ++e) {
    const int32_t attribute = rows.attributes[e];
    if (attribute < n_leading_)
      ++n_led;
    else if (has_terms(layout, attribute))
      n_terms += layout.n_weights(attribute);
    else
      ++n_others;
  }
  const int64_t n_blocks = (n_positions_ + block_positions_ - 1) / block_positions_;
  leading_starts_.reserve(n_blocks);
  leading_offsets_.reserve(n_positions_ + n_blocks);
  leading_.reserve(n_led);
  other_bounds_.reserve(n_blocks * kRanges + 1);
  other_bounds_.push_back(0);
  other_positions_.resize(n_others);
  others_.resize(n_others);
  term_bounds_.reserve(n_blocks * kRanges + 1);
  term_bounds_.push_back(0);
  term_weights_.resize(n_terms);
  term_scores_.resize(n_terms);
  if (rows.values != nullptr) {
    leading_values_.reserve(n_led);
    other_values_.resize(n_others);
  }
  const std::vector<int32_t> range_ends = cut_ranges(rows, layout.n_attributes, n_leading_);
  for (int64_t first = 0; first < n_positions_; first += block_positions_) {
    stop.check();
    add_block(rows, layout, first, std::min(first + block_positions_, n_positions_), range_ends);
  }
}

bool AttributeBlocks::has_terms(const WeightLayout& layout, int64_t attribute) const {
  return layout.n_weights(attribute) <= most_terms_ && !layout.is_full(attribute);
}

void AttributeBlocks::add_block(const AttributeRows& rows, const WeightLayout& layout,
                                int64_t first, int64_t end,
                                const std::vector<int32_t>& range_ends) {
  struct Entry {
    int32_t attribute;
    int64_t number;
    bool operator<(const Entry& other) const {
      return attribute != other.attribute ? attribute < other.attribute : number < other.number;
    }
  };
  struct Other {
    Entry entry;
    uint16_t position;
    uint8_t range;
  };
  std::vector<Entry> entries;  // of a position
  std::vector<Other> others;
  int64_t counts[kRanges] = {}, term_counts[kRanges] = {};
  const auto start = static_cast<int64_t>(leading_.size());
  leading_starts_.push_back(start);
  leading_offsets_.push_back(0);
  for (int64_t t = first; t < end; ++t) {
    entries.clear();
    for (int64_t e = rows.offsets[t]; e < rows.offsets[t + 1]; ++e)
      entries.push_back({rows.attributes[e], e});
    std::sort(entries.begin(), entries.end());
    for (const Entry& entry : entries) {
      if (entry.attribute < n_leading_) {
        leading_.push_back(static_cast<uint16_t>(entry.attribute));
        if (rows.values != nullptr) leading_values_.push_back(rows.values[entry.number]);
        continue;
      }
      const auto place = std::upper_bound(range_ends.begin(), range_ends.end(), entry.attribute);
      const auto range = static_cast<uint8_t>(place - range_ends.begin());
      others.push_back({entry, static_cast<uint16_t>(t - first), range});
      if (has_terms(layout, entry.attribute))
        term_counts[range] += layout.n_weights(entry.attribute);
      else
        ++counts[range];
    }
    leading_offsets_.push_back(static_cast<int32_t>(leading_.size() - start));
  }
  int64_t next[kRanges], next_term[kRanges];
  for (int range = 0; range < kRanges; ++range) {
    next[range] = other_bounds_.back();
    other_bounds_.push_back(next[range] + counts[range]);
    next_term[range] = term_bounds_.back();
    term_bounds_.push_back(next_term[range] + term_counts[range]);
  }
  for (const Other& other : others) {
    const int64_t attribute = other.entry.attribute;
    if (has_terms(layout, attribute)) {
      for (int64_t w = layout.offsets[attribute]; w < layout.offsets[attribute + 1]; ++w) {
        const int64_t to = next_term[other.range]++;
        term_weights_[to] = static_cast<int32_t>(w);
        term_scores_[to] =
            static_cast<uint16_t>(other.position * layout.n_outputs + layout.output(attribute, w));
      }
      continue;
    }
    const int64_t to = next[other.range]++;
    other_positions_[to] = other.position;
    others_[to] = other.entry.attribute;
    if (rows.values != nullptr) other_values_[to] = rows.values[other.entry.number];
  }
}

AttributeBlocks::LeadingEntries AttributeBlocks::leading_entries(int64_t block) const {
  const int64_t start = leading_starts_[block];
  return {leading_offsets_.data() + block * (block_positions_ + 1), leading_.data() + start,
          leading_values_.empty() ? nullptr : leading_values_.data() + start};
}

// A loop over the positions of a block, compiled for rows of N vectors; see with_lanes. Wide: the
// largest vectors
template <class Wide>
struct AttributeBlocks::ScoreBlock {
  const AttributeBlocks& blocks;
  const LeadingWeights& weights;
  const double* biases;  // (padded n_outputs,)
  double* scores;        // of all positions
  int64_t first, end;    // positions
  double* sums;          // (padded n_outputs,) scratch

  template <int N>
  HEDGEROW_INLINE void run() const {
    const Row row(weights.layout().n_outputs);
    const int stride = padded(row.size);
    const LeadingEntries entries = blocks.leading_entries(first / blocks.block_positions_);
    const int64_t n_positions = end - first, n_inner = n_positions - row.n_outer_rows();
    for (int64_t t = 0; t < n_positions; ++t) {
      double* to = scores + (first + t) * row.size;
      const int32_t e_end = entries.offsets[t + 1];
      if constexpr (N == 0) {
        std::copy(biases, biases + stride, sums);
        for (int32_t e = entries.offsets[t]; e < e_end; ++e)
          add_row(entries.value(e), weights.row(entries.attributes[e]), stride, sums);
        row.copy_from_padded(sums, t < n_inner, to);
      } else {
        RowVectors<Wide, N> totals;
        totals.for_each([&]<class Vector>(Vector& total, int k)
                            HEDGEROW_INLINE_LAMBDA { total = load_as<Vector>(biases + k); });
        for (int32_t e = entries.offsets[t]; e < e_end; ++e) {
          const double* from = weights.row(entries.attributes[e]);
          const double value = entries.value(e);
          totals.for_each([&]<class Vector>(Vector& total, int k) HEDGEROW_INLINE_LAMBDA {
            total += broadcast_to<Vector>(value) * load_as<Vector>(from + k);
          });
        }
        totals.for_each([&]<class Vector>(Vector& total, int k) HEDGEROW_INLINE_LAMBDA {
          if (t < n_inner) return store_all(to + k, total);
          for_each_part(total, [&](Lanes part, int i) { row.store_at(to, k + i, false, part); });
        });
      }
    }
  }
};

void AttributeBlocks::score_leading(const LeadingWeights& weights, const double* biases,
                                    double* sums, double* scores, int64_t first,
                                    int64_t end) const {
  static const auto kernel = eight_wide_clone<score_with<EightLanes>, score_with<Lanes>>();
  kernel(*this, weights, biases, sums, scores, first, end);
}

HEDGEROW_CLONES
void AttributeBlocks::score_others(const LeadingWeights& leading, double* scores,
                                   int64_t block) const {
  const WeightLayout& layout = leading.layout();
  const double* weights = leading.weights();
  const int n_outputs = layout.n_outputs;
  const uint16_t* positions = other_positions_.data();
  const int32_t* attributes = others_.data();
  const double* values = other_values_.empty() ? nullptr : other_values_.data();
  const int64_t end = other_bounds_[(block + 1) * kRanges];
  scores += block * block_positions_ * n_outputs;
  for (int64_t e = other_bounds_[block * kRanges]; e < end; ++e) {
    HEDGEROW_PREFETCH(layout.offsets + attributes[std::min(e + kPlacesAhead, end - 1)]);
    const int64_t soon = layout.offsets[attributes[std::min(e + kWeightsAhead, end - 1)]];
    HEDGEROW_PREFETCH(weights + soon);
    if (layout.outputs != nullptr) HEDGEROW_PREFETCH(layout.outputs + soon);
    const int64_t attribute = attributes[e];
    double* to = scores + positions[e] * int64_t{n_outputs};
    const int64_t w_begin = layout.offsets[attribute], w_end = layout.offsets[attribute + 1];
    const double value = values ? values[e] : 1.0;
    if (layout.is_full(attribute)) {
      add_any_row(value, weights + w_begin, n_outputs, to);
    } else {
      for (int64_t w = w_begin; w < w_end; ++w) to[layout.outputs[w]] += value * weights[w];
    }
  }
}

HEDGEROW_CLONES
void AttributeBlocks::score_terms(const double* weights, double* scores, int64_t block) const {
  const int32_t* numbers = term_weights_.data();
  const uint16_t* places = term_scores_.data();
  const int64_t end = term_bounds_[(block + 1) * kRanges];
  scores += block * block_positions_ * n_outputs_;
  for (int64_t i = term_bounds_[block * kRanges]; i < end; ++i)
    scores[places[i]] += weights[numbers[i]];
}

void AttributeBlocks::fill_scores(const LeadingWeights& weights, const double* biases,
                                  double* scores, int n_threads, Stop& stop) const {
  const int n_outputs = weights.layout().n_outputs;
  PaddedVector padded_biases(padded(n_outputs), 0.0);
  if (biases != nullptr) std::copy(biases, biases + n_outputs, padded_biases.begin());
  parallel_for_pieces(
      n_positions_, block_positions_, n_threads, stop, [&](int64_t first, int64_t end) {
        PaddedVector sums(padded(n_outputs));
        score_leading(weights, padded_biases.data(), sums.data(), scores, first, end);
        score_terms(weights.weights(), scores, first / block_positions_);
        score_others(weights, scores, first / block_positions_);
      });
}

// Adds the residuals of some positions to the sums of a group of outputs. Wide: the largest
// vectors; kRounded: whether products with values are rounded to the grid
template <class Wide, bool kRounded>
struct AttributeBlocks::SumGroup {
  const AttributeBlocks& blocks;
  const double* residuals;  // of all positions
  LeadingSums& sums;
  int part, group;
  int64_t first, end;  // positions, of whole blocks
  double* bias_sums;   // (width,)
  ResidualGrid grid;

  template <int N>
  HEDGEROW_INLINE void run() const {
    if constexpr (N > 0) {
      const Row row(sums.layout().n_outputs);
      const int column = sums.first_output(group);
      const int64_t width = sums.width(), n_inner = blocks.n_positions_ - row.n_outer_rows();
      const int64_t block_positions = blocks.block_positions_;
      double* const rows = sums.rows(part, group);
      for (int64_t begin = first; begin < end; begin += block_positions) {
        const LeadingEntries entries = blocks.leading_entries(begin / block_positions);
        const int64_t n_positions = std::min(block_positions, end - begin);
        for (int64_t t = 0; t < n_positions; ++t) {
          const double* from = residuals + (begin + t) * row.size + column;
          double last_row[kRegisterLanes * kLanes];
          if (begin + t >= n_inner) {
            for (int n = 0; n < N; ++n)
              store(last_row + n * kLanes, row.load_at(from - column, column + n * kLanes, false));
            from = last_row;
          }
          // What is read past the end of a row reaches only sums that are not used.
          RowVectors<Wide, N> rounded;
          rounded.for_each([&]<class Vector>(Vector& vector, int k) HEDGEROW_INLINE_LAMBDA {
            vector = grid.residuals.round(load_as<Vector>(from + k));
            store_all(bias_sums + k, load_as<Vector>(bias_sums + k) + vector);
          });
          const int32_t e_end = entries.offsets[t + 1];
          for (int32_t e = entries.offsets[t]; e < e_end; ++e) {
            double* to = rows + entries.attributes[e] * width;
            const double value = entries.value(e);
            const SumGrid own = grid.products(kRounded ? entries.attributes[e] : 0);
            rounded.for_each([&]<class Vector>(Vector& vector, int k) HEDGEROW_INLINE_LAMBDA {
              const Vector product = broadcast_to<Vector>(value) * vector;
              store_all(to + k,
                        load_as<Vector>(to + k) + (kRounded ? own.round(product) : product));
            });
          }
        }
      }
    }
  }
};

void AttributeBlocks::sum_leading(const double* residuals, LeadingSums& sums, int part, int group,
                                  int64_t first, int64_t end, const ResidualGrid& grid,
                                  double* bias_sums) const {
  static const auto kernel = eight_wide_clone<sum_with<EightLanes>, sum_with<Lanes>>();
  kernel(*this, residuals, sums, part, group, first, end, grid, bias_sums);
}

HEDGEROW_CLONES
void AttributeBlocks::sum_others(const WeightLayout& layout, const double* residuals,
                                 double* gradient, int64_t block, int first_range, int end_range,
                                 const ResidualGrid& grid) const {
  const int n_outputs = layout.n_outputs;
  const uint16_t* positions = other_positions_.data();
  const int32_t* attributes = others_.data();
  const double* values = other_values_.empty() ? nullptr : other_values_.data();
  const int64_t end = other_bounds_[block * kRanges + end_range];
  residuals += block * block_positions_ * n_outputs;
  for (int64_t e = other_bounds_[block * kRanges + first_range]; e < end; ++e) {
    HEDGEROW_PREFETCH(layout.offsets + attributes[std::min(e + kPlacesAhead, end - 1)]);
    const int64_t soon = layout.offsets[attributes[std::min(e + kWeightsAhead, end - 1)]];
    HEDGEROW_PREFETCH(gradient + soon);
    if (layout.outputs != nullptr) HEDGEROW_PREFETCH(layout.outputs + soon);
    const int64_t attribute = attributes[e];
    const double* from = residuals + positions[e] * int64_t{n_outputs};
    const int64_t w_begin = layout.offsets[attribute], w_end = layout.offsets[attribute + 1];
    const auto add_all = [&](auto rounded) {
      if (layout.is_full(attribute))
        for (int o = 0; o < n_outputs; ++o) gradient[w_begin + o] += rounded(from[o]);
      else
        for (int64_t w = w_begin; w < w_end; ++w) gradient[w] += rounded(from[layout.outputs[w]]);
    };
    const SumGrid& residuals_grid = grid.residuals;
    if (values == nullptr) {
      add_all([&](double residual) { return residuals_grid.round(residual); });
    } else {
      const SumGrid products = grid.products(attribute);
      add_all([&](double residual) {
        return products.round(values[e] * residuals_grid.round(residual));
      });
    }
  }
}

HEDGEROW_CLONES
void AttributeBlocks::sum_terms(const double* residuals, double* gradient, int64_t block,
                                int first_range, int end_range, const SumGrid& grid) const {
  const int32_t* numbers = term_weights_.data();
  const uint16_t* places = term_scores_.data();
  const int64_t end = term_bounds_[block * kRanges + end_range];
  residuals += block * block_positions_ * n_outputs_;
  const SumGrid own = grid;  // otherwise read again after every store
  for (int64_t i = term_bounds_[block * kRanges + first_range]; i < end; ++i)
    gradient[numbers[i]] += own.round(residuals[places[i]]);
}

void AttributeBlocks::add_gradient(const double* residuals, LeadingSums& sums, double* gradient,
                                   double* bias_gradient, const ResidualGrid& grid, int n_threads,
                                   Stop& stop) const {
  const int64_t n_blocks = std::ssize(leading_starts_);
  const int n_groups = sums.n_groups(), n_shares = std::clamp(n_threads, 1, kRanges);
  const int n_parts = grid.residuals.unit() > 0.0 ? sums.n_parts() : 1;
  PaddedVector bias_sums(n_parts * n_groups * sums.width(), 0.0);
  // A task owns a group of outputs of the leading attributes, for a part of the positions, or the
  // weights of some ranges of others, and processes the positions in order.
  const auto sum_group = [&](int part, int group) {
    const int64_t end = std::min(n_blocks * (part + 1) / n_parts * block_positions_, n_positions_);
    int64_t first = n_blocks * part / n_parts * block_positions_, next = first;
    for (; first < end; first = next) {
      stop.check();
      next = std::min(first + kSumBlocks * block_positions_, end);
      sum_leading(residuals, sums, part, group, first, next, grid,
                  bias_sums.data() + (part * n_groups + group) * sums.width());
      sums.add_up(part, group);
    }
  };
  const auto sum_ranges = [&](int first, int end) {
    for (int64_t block = 0; block < n_blocks; ++block) {
      stop.check();
      sum_terms(residuals, gradient, block, first, end, grid.residuals);
      sum_others(sums.layout(), residuals, gradient, block, first, end, grid);
    }
  };
  parallel_for(n_parts * n_groups + n_shares, n_threads, stop, [&](int64_t task) {
    const int number = static_cast<int>(task), share = number - n_parts * n_groups;
    if (share < 0)
      sum_group(number / n_groups, number % n_groups);
    else
      sum_ranges(kRanges * share / n_shares, kRanges * (share + 1) / n_shares);
  });
  if (bias_gradient == nullptr) return;
  for (int part = 0; part < n_parts; ++part)
    for (int o = 0; o < sums.layout().n_outputs; ++o)
      bias_gradient[o] += bias_sums[part * n_groups * sums.width() + o];
}

}  // namespace hedgerow
