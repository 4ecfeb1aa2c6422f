#include "trees/context_examples.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "simd.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kRowsPerTask = 256;  // each of many numbers

// Calls visit(t, is_first) for some of the positions of a part.
template <class Visit>
void for_positions(const EdgeDerivatives& derivatives, int64_t begin, int64_t end, Visit visit) {
  const int64_t* offsets = derivatives.offsets;
  const int64_t* next = std::lower_bound(offsets, offsets + derivatives.n_sequences, begin);
  for (int64_t t = begin; t < end; ++t) {
    const bool is_first = next < offsets + derivatives.n_sequences && *next == t;
    visit(t, is_first);
    while (next < offsets + derivatives.n_sequences && *next <= t) ++next;
  }
}

// Whole units of some examples of a position; empty where there is no gradient.
HEDGEROW_CLONES void round_entries(const ContextEntry* entries, int n, float curvature,
                                   bool has_probabilities, Units units, Sum* sums) {
  for (int c = 0; c < n; ++c) {
    const auto [gradient, p] = entries[c];
    const float own = has_probabilities ? curvature * (p * (1.0f - p)) : curvature;
    const Sum sum = units.round({0, gradient, own});
    sums[c] = gradient == 0.0f ? Sum{} : sum;
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
    by_output_[k].entries.reserve(n_positions * contexts_.n_contexts(k));
  }
}

void ContextExamples::clear() {
  for (OfOutput& examples : by_output_) {
    examples.rows.clear();
    examples.entries.clear();
    examples.magnitudes.clear();
  }
  n_positions_ = 0;
}

void ContextExamples::mark_rows(const EdgeDerivatives& derivatives, const Sampling& sampling,
                                int n_threads, Stop& stop) {
  const int n_outputs = contexts_.n_outputs();
  const int64_t n_edges = contexts_.n_edges();
  is_row_.assign(derivatives.n_positions * n_outputs, 0);
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
          uint8_t* marks = is_row_.data() + t * n_outputs;
          for (int k = 0; k < n_outputs; ++k)
            marks[k] = !(sums[k] <= sampling.trim * scale);  // NaN too, which is refused
        });
      });
}

void ContextExamples::sum_up(int output, int64_t row, Magnitudes& magnitudes) {
  const int n_contexts = contexts_.n_contexts(output);
  ContextRow& own = by_output_[output].rows[row];
  const ContextEntry* entries = by_output_[output].entries.data() + row * n_contexts;
  // Side by side, so that no sum waits for the last one.
  std::array<double, 4> gradients{}, spreads{};
  std::array<float, 4> probabilities{};
  int n_examples = 0;
  for (int c = 0; c < n_contexts; ++c) {
    const auto [gradient, p] = entries[c];
    const bool is_example = gradient != 0.0f;
    gradients[c & 3] += std::abs(gradient);
    spreads[c & 3] += is_example ? p * (1.0f - p) : 0.0f;
    probabilities[c & 3] += p;
    n_examples += is_example;
  }
  const auto total = [](const auto& parts) {
    return (parts[0] + parts[1]) + (parts[2] + parts[3]);
  };
  own.probability = std::min(total(probabilities), 1.0f);
  const double spread = has_probabilities_ ? total(spreads) : n_examples;
  magnitudes.add({total(gradients), own.curvature * spread, own.curvature < 0.0f});
}

void ContextExamples::write_rows(const EdgeDerivatives& derivatives, int64_t begin, int64_t end,
                                 int64_t* next) {
  const int n_outputs = contexts_.n_outputs();
  std::vector<Magnitudes> magnitudes(n_outputs);
  for_positions(derivatives, begin, end, [&](int64_t t, bool is_first) {
    const double* gradients = derivatives.gradients + t * contexts_.n_edges();
    const float* probabilities =
        has_probabilities_ ? derivatives.probabilities + t * contexts_.n_edges() : nullptr;
    const auto entry_of = [&](int32_t edge) -> ContextEntry {
      return {static_cast<float>(gradients[edge]),
              probabilities == nullptr ? 0.0f : std::clamp(probabilities[edge], 0.0f, 1.0f)};
    };
    for (int k = 0; k < n_outputs; ++k) {
      if (!is_row_[t * n_outputs + k]) continue;
      const int64_t row = next[k]++;
      const int n_contexts = contexts_.n_contexts(k);
      const int32_t* edges = contexts_.edges(k).data();
      ContextEntry* entries = by_output_[k].entries.data() + row * n_contexts;
      by_output_[k].rows[row] = {static_cast<int32_t>(derivatives.first_position + t),
                                 derivatives.curvatures[t], 0.0f};
      const int last = n_contexts - 1;
      if (is_first)
        std::fill_n(entries, last, ContextEntry{});
      else
        for (int c = 0; c < last; ++c) entries[c] = entry_of(edges[c]);
      entries[last] = is_first ? entry_of(edges[last]) : ContextEntry{};
      sum_up(k, row, magnitudes[k]);
    }
  });
  const int64_t n_chunks = (derivatives.n_positions + kRowsPerTask - 1) / kRowsPerTask;
  for (int k = 0; k < n_outputs; ++k)
    *(by_output_[k].magnitudes.end() - n_chunks + begin / kRowsPerTask) = magnitudes[k];
}

// Threads first mark the rows of their positions, then write them where they belong.
void ContextExamples::add(const EdgeDerivatives& derivatives, const Sampling& sampling,
                          int n_threads, Stop& stop) {
  const int n_outputs = contexts_.n_outputs();
  has_probabilities_ = derivatives.probabilities != nullptr;
  n_positions_ = derivatives.first_position + derivatives.n_positions;
  mark_rows(derivatives, sampling, n_threads, stop);
  const int64_t n_chunks = (derivatives.n_positions + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<int64_t> firsts((n_chunks + 1) * n_outputs);  // of a chunk, by output
  for (int k = 0; k < n_outputs; ++k) firsts[k] = n_rows(k);
  for (int64_t t = 0; t < derivatives.n_positions; ++t)
    for (int k = 0; k < n_outputs; ++k)
      firsts[(t / kRowsPerTask + 1) * n_outputs + k] += is_row_[t * n_outputs + k];
  for (size_t i = n_outputs; i < firsts.size(); ++i) firsts[i] += firsts[i - n_outputs];
  for (int k = 0; k < n_outputs; ++k) {
    const int64_t n = firsts[n_chunks * n_outputs + k];
    by_output_[k].rows.resize(n);
    by_output_[k].entries.resize(n * contexts_.n_contexts(k));
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
  auto& [rows, entries, magnitudes] = by_output_[output];
  magnitudes.assign(1, {});
  int64_t n_kept = 0;
  for (int64_t i = 0; i < std::ssize(rows); ++i) {
    const float weight = weigh(i);
    if (weight == 0.0f) continue;
    rows[n_kept] = {rows[i].position, rows[i].curvature * weight, 0.0f};
    for (int c = 0; c < n_contexts; ++c) {
      const ContextEntry entry = entries[i * n_contexts + c];
      entries[n_kept * n_contexts + c] = {entry.gradient * weight, entry.probability};
    }
    sum_up(output, n_kept++, magnitudes[0]);
  }
  rows.resize(n_kept);
  entries.resize(n_kept * n_contexts);
}

void ContextExamples::draw_by_size(int output, const Sampling& sampling) {
  const int n_contexts = contexts_.n_contexts(output);
  const auto& [rows, entries, _] = by_output_[output];
  std::vector<float> sizes;
  sizes.reserve(rows.size());
  for (int64_t i = 0; i < std::ssize(rows); ++i) {
    float gradients = 0.0f;
    for (int c = 0; c < n_contexts; ++c)
      gradients += std::abs(entries[i * n_contexts + c].gradient);
    const float p = rows[i].probability;
    sizes.push_back(
        example_size(gradients, rows[i].curvature * (has_probabilities_ ? p * (1.0f - p) : 1.0f)));
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
      entries_(examples.entries(output)),
      row_of_(pool, n_positions),
      units_(choose_units(examples.magnitudes(output))),
      sums_(pool, entries_.size()) {
  crew.share_pieces(n_rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      row_of_[position(row)] = static_cast<int32_t>(row);
      round_entries(entries_.data() + row * n_contexts_, n_contexts_, rows_[row].curvature,
                    has_probabilities_, units_, sums_.data() + row * n_contexts_);
    }
  });
}

void ContextRows::add_to(std::span<const int32_t> positions, std::span<const int32_t> contexts,
                         Sum* by_context) const {
  if (std::ssize(contexts) == n_contexts_)
    return add_rows(positions, row_of_.data(), sums_.data(), n_contexts_, by_context);
  for (const int32_t position : positions) {
    const Sum* sums = sums_.data() + static_cast<int64_t>(row_of_[position]) * n_contexts_;
    for (const int32_t c : contexts) by_context[c] += sums[c];
  }
}

float ContextRows::joint_curvature(int32_t position, std::span<const int32_t> contexts) const {
  const int64_t row = row_of_[position];
  const ContextEntry* entries = entries_.data() + row * n_contexts_;
  std::array<float, 4> parts{};  // side by side, so that no sum waits for the last one
  for (size_t i = 0; i < contexts.size(); ++i) parts[i & 3] += entries[contexts[i]].probability;
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
