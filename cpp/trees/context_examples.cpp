#include "trees/context_examples.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "simd_float.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kRowsPerTask = 256;  // each of many numbers

// Calls visit(t, is_first) for some of the positions of a part.
template <class Visit>
void for_positions(const EdgeDerivatives& derivatives, int64_t begin, int64_t end, Visit visit) {
  if (derivatives.parents != nullptr) {
    for (int64_t t = begin; t < end; ++t) visit(t, derivatives.parents[t] < 0);
    return;
  }
  const int64_t* offsets = derivatives.offsets;
  const int64_t* next = std::lower_bound(offsets, offsets + derivatives.n_sequences, begin);
  for (int64_t t = begin; t < end; ++t) {
    const bool is_first = next < offsets + derivatives.n_sequences && *next == t;
    visit(t, is_first);
    while (next < offsets + derivatives.n_sequences && *next <= t) ++next;
  }
}

// out = weight * in, (n,). Loops here and below have no branch, so that the compiler can work on
// several numbers at a time.
HEDGEROW_CLONES void scale_numbers(const double* in, int64_t n, double weight,
                                   float* HEDGEROW_RESTRICT out) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(weight * in[i]);
}

// out[k, j] = weight * in[j, k], (n, n) both.
HEDGEROW_CLONES void scale_transposed(const double* in, int n, double weight, float* out) {
  const int whole = n / kLanes * kLanes;
  for (int j = 0; j < whole; j += kLanes)
    for (int k = 0; k < whole; k += kLanes) {
      Lanes tile[kLanes];
      for (int i = 0; i < kLanes; ++i) tile[i] = load(in + (j + i) * n + k) * broadcast(weight);
      transpose(tile);
      for (int i = 0; i < kLanes; ++i) store_as_floats(out + (k + i) * n + j, tile[i]);
    }
  for (int j = 0; j < n; ++j)
    for (int k = j < whole ? whole : 0; k < n; ++k)
      out[k * n + j] = static_cast<float>(weight * in[j * n + k]);
}

// numbers, between 0 and 1.
HEDGEROW_CLONES void clip_probabilities(int64_t n, float* numbers) {
  for (int64_t i = 0; i < n; ++i) {
    const float p = numbers[i];
    numbers[i] = p < 0.0f ? 0.0f : (p > 1.0f ? 1.0f : p);
  }
}

// What the contexts of a row have together.
struct ContextSums {
  float probability = 0.0f;
  float spread = 0.0f;  // of p (1 - p) where there is a gradient, or of 1
};

// Whether blocks of positions have the labels before last: where there are few labels that does not
// pay.
bool are_transposed(const Contexts& contexts) {
  return contexts.are_pairs() && contexts.n_outputs() >= kFloats;
}

// probabilities: null where there are none.
HEDGEROW_CLONES ContextSums sum_long_row(const float* gradients, const float* probabilities,
                                         int n) {
  if (probabilities == nullptr)
    return {0.0f, static_cast<float>(n - std::count(gradients, gradients + n, 0.0f))};
  const Floats zero = broadcast(0.0f), one = broadcast(1.0f);
  Floats sums = zero, spreads = zero;
  int c = 0;
  for (; c + kFloats <= n; c += kFloats) {
    const Floats gradient = load(gradients + c), p = load(probabilities + c);
    sums += p;
    spreads += if_positive(maximum(gradient, zero - gradient), p * (one - p), zero);
  }
  ContextSums total{fold_lanes<Total>(sums), fold_lanes<Total>(spreads)};
  for (; c < n; ++c) {
    const float p = probabilities[c], spread = p * (1.0f - p);
    total.probability += p;
    total.spread += gradients[c] != 0.0f ? spread : 0.0f;
  }
  return total;
}

ContextSums sum_row(const float* gradients, const float* probabilities, int n) {
  if (n >= kFloats || probabilities == nullptr) return sum_long_row(gradients, probabilities, n);
  ContextSums total;
  for (int c = 0; c < n; ++c) {
    const float p = probabilities[c], spread = p * (1.0f - p);
    total.probability += p;
    total.spread += gradients[c] != 0.0f ? spread : 0.0f;
  }
  return total;
}

// Whole units of the gradients and curvatures of n_rows rows, empty where there is no gradient; and
// their sum, row by row. probabilities: null where a row's curvature is that of each context.
HEDGEROW_CLONES void round_rows(const ContextRow* rows, const float* gradients,
                                const float* probabilities, int64_t n_rows, int n_contexts,
                                Units units, Sum* HEDGEROW_RESTRICT sums,
                                Sum* HEDGEROW_RESTRICT totals) {
  for (int64_t row = 0; row < n_rows; ++row, gradients += n_contexts, sums += n_contexts) {
    const float curvature = rows[row].curvature;
    uint64_t total = 0;  // of sums, which are words
    const auto round = [&](int c, float own) {
      const uint64_t kept = gradients[c] != 0.0f ? ~uint64_t{0} : 0;
      const uint64_t sum = kept & std::bit_cast<uint64_t>(units.round({0, gradients[c], own}));
      sums[c] = std::bit_cast<Sum>(sum);
      total += sum;
    };
    if (probabilities == nullptr) {
      for (int c = 0; c < n_contexts; ++c) round(c, curvature);
    } else {
      for (int c = 0; c < n_contexts; ++c)
        round(c, curvature * (probabilities[c] * (1.0f - probabilities[c])));
      probabilities += n_contexts;
    }
    totals[row] = std::bit_cast<Sum>(total);
  }
}

// by_context[c] += sums[row_of[t] * n + c] for all positions t.
HEDGEROW_CLONES void add_rows(std::span<const int32_t> positions, const int32_t* row_of,
                              const Sum* sums, int n, Sum* by_context) {
  for (const int32_t t : positions) {
    const Sum* row = sums + static_cast<int64_t>(row_of[t]) * n;
    for (int c = 0; c < n; ++c) by_context[c] += row[c];
  }
}

}  // namespace

ContextExamples::ContextExamples(Contexts contexts, int64_t n_positions)
    : contexts_(std::move(contexts)), by_output_(contexts_.n_outputs()) {
  for (int k = 0; k < n_outputs(); ++k) {
    by_output_[k].rows.reserve(n_positions);
    for (auto* numbers : {&by_output_[k].gradients, &by_output_[k].probabilities})
      numbers->reserve(n_positions * contexts_.n_contexts(k));
  }
}

void ContextExamples::OfOutput::resize(int64_t n_rows, int n_contexts, bool has_probabilities) {
  rows.resize(n_rows);
  gradients.resize(n_rows * n_contexts);
  probabilities.resize(has_probabilities ? n_rows * n_contexts : 0);
}

void ContextExamples::clear() {
  for (int k = 0; k < n_outputs(); ++k) {
    by_output_[k].resize(0, 0, false);
    by_output_[k].magnitudes.clear();
  }
  n_positions_ = 0;
}

void ContextExamples::size_up(const EdgeDerivatives& derivatives, const Sampling& sampling,
                              int n_threads, Stop& stop) {
  const int n_outputs = contexts_.n_outputs();
  const int64_t n_edges = contexts_.n_edges();
  sizes_.assign(derivatives.n_positions * n_outputs, -1.0f);
  parallel_for_pieces(
      derivatives.n_positions, kRowsPerTask, n_threads, stop, [&](int64_t begin, int64_t end) {
        std::vector<double> sums(n_outputs);
        for_positions(derivatives, begin, end, [&](int64_t t, bool is_first) {
          const int64_t position = derivatives.first_position + t;
          if (sampling.selected != nullptr && !sampling.selected[position]) return;
          const double scale = sampling.scales == nullptr ? 1.0 : sampling.scales[position];
          if (scale == 0.0) return;
          const double* gradients = derivatives.gradients + t * n_edges;
          if (is_first)
            for (int k = 0; k < n_outputs; ++k) sums[k] = std::abs(gradients[k]);
          else
            contexts_.sum_sizes(gradients, sums);
          if (derivatives.observed != nullptr) {
            const int64_t edge = derivatives.observed[t];
            const int64_t output = edge < 0 || is_first ? edge : contexts_.output(edge);
            if (output >= 0 && output < n_outputs)
              sums[output] = std::max(sums[output] - std::abs(gradients[edge]), 0.0) +
                             std::abs(gradients[edge] - 1.0);
            for (double& sum : sums) sum *= derivatives.weight(t);
          }
          float* sizes = sizes_.data() + t * n_outputs;
          for (int k = 0; k < n_outputs; ++k)
            if (!(sums[k] <= sampling.trim * scale))  // NaN too, which is refused
              sizes[k] = static_cast<float>(sums[k]);
        });
      });
}

// Some positions, in single precision. Of pairs of many labels the labels before come last, so that
// the contexts of an output lie side by side.
struct ContextExamples::Block {
  static constexpr int64_t kNumbers = 1 << 12;  // they stay in the cache

  explicit Block(const Contexts& contexts)
      : size(std::max<int64_t>(1, kNumbers / contexts.n_edges())),
        gradients(size * contexts.n_edges()),
        probabilities(size * contexts.n_edges()) {}

  int64_t size;                      // how many there are at most
  int64_t begin = 0, end = 0;        // of the part that is being added
  std::vector<float> gradients;      // (size, E)
  std::vector<float> probabilities;  // (size, E)
};

void ContextExamples::read_block(const EdgeDerivatives& derivatives, int64_t begin, int64_t end,
                                 Block& block) const {
  const int64_t n_edges = contexts_.n_edges();
  const int n = n_outputs();
  const bool transposed = are_transposed(contexts_);
  const auto scale = [&](const double* in, double weight, float* out) {
    if (transposed)
      scale_transposed(in, n, weight, out);
    else
      scale_numbers(in, n_edges, weight, out);
  };
  block.begin = begin;
  block.end = end;
  for (int64_t t = begin; t < end; ++t) {
    const double* gradients = derivatives.gradients + t * n_edges;
    const double weight = derivatives.weight(t);
    float* out = block.gradients.data() + (t - begin) * n_edges;
    scale(gradients, weight, out);
    if (has_probabilities_)
      scale(derivatives.probabilities + t * n_edges, 1.0,
            block.probabilities.data() + (t - begin) * n_edges);
    if (derivatives.observed == nullptr || derivatives.observed[t] < 0) continue;
    const int64_t edge = derivatives.observed[t];
    out[transposed ? edge % n * n + edge / n : edge] =
        static_cast<float>(weight * (gradients[edge] - 1.0));
  }
  if (has_probabilities_) clip_probabilities((end - begin) * n_edges, block.probabilities.data());
}

void ContextExamples::write_row(const EdgeDerivatives& derivatives, const Block& block, int64_t t,
                                bool is_first, int output, int64_t row, Magnitudes& magnitudes) {
  OfOutput& own = by_output_[output];
  const int n_contexts = contexts_.n_contexts(output), last = n_contexts - 1;
  const int32_t* edges = contexts_.edges(output).data();
  const int64_t at = (t - block.begin) * contexts_.n_edges();
  const bool transposed = are_transposed(contexts_);
  const auto copy = [&](const std::vector<float>& numbers, LargeVector<float>& to) {
    float* out = to.data() + row * n_contexts;
    const float* from = numbers.data() + at + (transposed ? int64_t{output} * n_outputs() : 0);
    if (is_first)
      std::fill_n(out, last, 0.0f);
    else if (transposed)
      std::copy_n(from, last, out);
    else
      for (int c = 0; c < last; ++c) out[c] = from[edges[c]];
    // The beginning is in the place of the edge of the output's number.
    out[last] = !is_first ? 0.0f : transposed ? from[0] : from[edges[last]];
    // What was written a moment ago is slow to read again.
    return transposed && !is_first ? from : out;
  };
  const float* gradients = copy(block.gradients, own.gradients);
  const float* probabilities =
      has_probabilities_ ? copy(block.probabilities, own.probabilities) : nullptr;
  const ContextSums sums =
      sum_row(gradients, probabilities, transposed && !is_first ? last : n_contexts);
  const float curvature = derivatives.curvatures[t];
  own.rows[row] = {static_cast<int32_t>(derivatives.first_position + t), curvature,
                   std::min(sums.probability, 1.0f)};
  magnitudes.add(
      {sizes_[t * n_outputs() + output], double{curvature} * sums.spread, curvature < 0.0f});
}

void ContextExamples::write_rows(const EdgeDerivatives& derivatives, int64_t begin, int64_t end,
                                 int64_t* next) {
  std::vector<Magnitudes> magnitudes(n_outputs());
  Block block(contexts_);
  for_positions(derivatives, begin, end, [&](int64_t t, bool is_first) {
    for (int k = 0; k < n_outputs(); ++k) {
      if (!is_row(t, k)) continue;
      if (t >= block.end) read_block(derivatives, t, std::min(end, t + block.size), block);
      write_row(derivatives, block, t, is_first, k, next[k]++, magnitudes[k]);
    }
  });
  const int64_t n_chunks = (derivatives.n_positions + kRowsPerTask - 1) / kRowsPerTask;
  for (int k = 0; k < n_outputs(); ++k)
    *(by_output_[k].magnitudes.end() - n_chunks + begin / kRowsPerTask) = magnitudes[k];
}

// Threads first find the rows of their positions, then write them where they belong.
void ContextExamples::add(const EdgeDerivatives& derivatives, const Sampling& sampling,
                          int n_threads, Stop& stop) {
  const int n_outputs = contexts_.n_outputs();
  has_probabilities_ = derivatives.probabilities != nullptr;
  n_positions_ = derivatives.first_position + derivatives.n_positions;
  size_up(derivatives, sampling, n_threads, stop);
  const int64_t n_chunks = (derivatives.n_positions + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<int64_t> firsts((n_chunks + 1) * n_outputs);  // of a chunk, by output
  for (int k = 0; k < n_outputs; ++k) firsts[k] = n_rows(k);
  for (int64_t t = 0; t < derivatives.n_positions; ++t)
    for (int k = 0; k < n_outputs; ++k)
      firsts[(t / kRowsPerTask + 1) * n_outputs + k] += is_row(t, k);
  for (size_t i = n_outputs; i < firsts.size(); ++i) firsts[i] += firsts[i - n_outputs];
  for (int k = 0; k < n_outputs; ++k) {
    const int64_t n = firsts[n_chunks * n_outputs + k];
    by_output_[k].resize(n, contexts_.n_contexts(k), has_probabilities_);
    by_output_[k].magnitudes.resize(by_output_[k].magnitudes.size() + n_chunks);
  }
  parallel_for_pieces(
      derivatives.n_positions, kRowsPerTask, n_threads, stop, [&](int64_t begin, int64_t end) {
        write_rows(derivatives, begin, end, firsts.data() + begin / kRowsPerTask * n_outputs);
      });
}

template <class Weigh>
void ContextExamples::keep(int output, Weigh weigh) {
  const int n_contexts = contexts_.n_contexts(output);
  auto& [rows, gradients, probabilities, magnitudes] = by_output_[output];
  magnitudes.assign(1, {});
  int64_t n_kept = 0;
  for (int64_t i = 0; i < std::ssize(rows); ++i) {
    const float weight = weigh(i);
    if (weight == 0.0f) continue;
    float* of_row = gradients.data() + n_kept * n_contexts;
    const float* probabilities_of_row = nullptr;
    double size = 0.0;
    for (int c = 0; c < n_contexts; ++c) {
      of_row[c] = gradients[i * n_contexts + c] * weight;
      size += std::abs(of_row[c]);
    }
    if (has_probabilities_)
      probabilities_of_row = std::copy_n(probabilities.data() + i * n_contexts, n_contexts,
                                         probabilities.data() + n_kept * n_contexts) -
                             n_contexts;
    const ContextSums sums = sum_row(of_row, probabilities_of_row, n_contexts);
    const float curvature = rows[i].curvature * weight;
    rows[n_kept++] = {rows[i].position, curvature, std::min(sums.probability, 1.0f)};
    magnitudes[0].add({size, double{curvature} * sums.spread, curvature < 0.0f});
  }
  by_output_[output].resize(n_kept, n_contexts, has_probabilities_);
}

void ContextExamples::draw_by_size(int output, const Sampling& sampling) {
  const int n_contexts = contexts_.n_contexts(output);
  const auto& [rows, gradients, _, __] = by_output_[output];
  std::vector<float> sizes;
  sizes.reserve(rows.size());
  for (int64_t i = 0; i < std::ssize(rows); ++i) {
    float sum = 0.0f;
    for (int c = 0; c < n_contexts; ++c) sum += std::abs(gradients[i * n_contexts + c]);
    const float p = rows[i].probability;
    sizes.push_back(
        example_size(sum, rows[i].curvature * (has_probabilities_ ? p * (1.0f - p) : 1.0f)));
  }
  const DrawnBySize drawn(sizes, sampling, output);
  keep(output, [&](int64_t i) { return drawn.weigh(rows[i].position, sizes[i]); });
}

void ContextExamples::stratify(int output, const Sampling& sampling) {
  const LargeVector<ContextRow>& rows = by_output_[output].rows;
  int64_t n_positive = 0;
  for (const ContextRow& row : rows) n_positive += sampling.codes[row.position] == output;
  const Negatives negatives(sampling, output, n_positive, std::ssize(rows));
  keep(output, [&](int64_t i) { return negatives.weigh(rows[i].position); });
}

void ContextExamples::draw(const Sampling& sampling, int n_threads, Stop& stop) {
  parallel_for(n_outputs(), n_threads, stop, [&](int64_t k) {
    stop.check();
    const int output = static_cast<int>(k);
    if (sampling.share < 1.0) draw_by_size(output, sampling);
    if (sampling.negative_ratio > 0.0) stratify(output, sampling);
  });
}

ContextRows::ContextRows(const ContextExamples& examples, int output,
                         const std::shared_ptr<MemoryPool>& pool, int64_t n_positions, Crew& crew)
    : contexts_(examples.contexts()),
      output_(output),
      n_contexts_(contexts_.n_contexts(output)),
      has_probabilities_(examples.has_probabilities()),
      rows_(examples.rows(output)),
      probabilities_(examples.probabilities(output)),
      row_of_(pool, n_positions),
      units_(choose_units(examples.magnitudes(output))),
      sums_(pool, examples.gradients(output).size()),
      totals_(pool, rows_.size()) {
  const float* gradients = examples.gradients(output).data();
  crew.share_pieces(n_rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) row_of_[position(row)] = static_cast<int32_t>(row);
    const int64_t at = begin * n_contexts_;
    round_rows(rows_.data() + begin, gradients + at,
               has_probabilities_ ? probabilities_.data() + at : nullptr, end - begin, n_contexts_,
               units_, sums_.data() + at, totals_.data() + begin);
  });
}

void ContextRows::add_to(std::span<const int32_t> positions, std::span<const int32_t> contexts,
                         Sum* by_context) const {
  if (std::ssize(contexts) == n_contexts_)
    return add_rows(positions, row_of_.data(), sums_.data(), n_contexts_, by_context);
  // Several at a time are added about as fast as one: where there are many, all are.
  constexpr int kAtATime = 4;
  if (std::ssize(contexts) * kAtATime > n_contexts_) {
    std::vector<Sum> all(n_contexts_);
    add_rows(positions, row_of_.data(), sums_.data(), n_contexts_, all.data());
    for (const int32_t c : contexts) by_context[c] += all[c];
    return;
  }
  for (const int32_t position : positions) {
    const Sum* sums = sums_.data() + static_cast<int64_t>(row_of_[position]) * n_contexts_;
    for (const int32_t c : contexts) by_context[c] += sums[c];
  }
}

float ContextRows::joint_curvature(int32_t position, std::span<const int32_t> contexts) const {
  const int64_t row = row_of_[position];
  const float* probabilities = probabilities_.data() + row * n_contexts_;
  std::array<float, 4> parts{};  // side by side, so that no sum waits for the last one
  for (size_t i = 0; i < contexts.size(); ++i) parts[i & 3] += probabilities[contexts[i]];
  const float p = std::min((parts[0] + parts[1]) + (parts[2] + parts[3]), 1.0f);
  return rows_[row].curvature * (p * (1.0f - p));
}

void ContextRows::fill_bins(std::span<const int32_t> contexts, const Sum* by_context, int lag,
                            std::span<Sum> bins) const {
  std::fill(bins.begin(), bins.end(), Sum{});
  for (const int32_t c : contexts) bins[contexts_.label(output_, c, lag)] += by_context[c];
}

std::vector<int32_t> ContextRows::select(std::span<const int32_t> contexts, int lag,
                                         const uint8_t* is_left, bool wanted) const {
  std::vector<int32_t> chosen;
  for (const int32_t c : contexts)
    if ((is_left[contexts_.label(output_, c, lag)] != 0) == wanted) chosen.push_back(c);
  return chosen;
}

}  // namespace hedgerow
