#include "trees/context_examples.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

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

void ContextExamples::write_rows(const EdgeDerivatives& derivatives, int64_t begin, int64_t end,
                                 int64_t* next) {
  const int n_outputs = contexts_.n_outputs();
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
                                 derivatives.curvatures[t]};
      const int last = n_contexts - 1;
      if (is_first)
        std::fill_n(entries, last, ContextEntry{});
      else
        for (int c = 0; c < last; ++c) entries[c] = entry_of(edges[c]);
      entries[last] = is_first ? entry_of(edges[last]) : ContextEntry{};
    }
  });
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
  }
  parallel_for_pieces(
      derivatives.n_positions, kRowsPerTask, n_threads, stop, [&](int64_t begin, int64_t end) {
        write_rows(derivatives, begin, end, firsts.data() + begin / kRowsPerTask * n_outputs);
      });
}

void ContextExamples::stratify(const Sampling& sampling, int n_threads, Stop& stop) {
  parallel_for(n_outputs(), n_threads, stop, [&](int64_t k) {
    stop.check();
    const int output = static_cast<int>(k), n_contexts = contexts_.n_contexts(output);
    auto& [rows, entries] = by_output_[k];
    int64_t n_positive = 0, n_kept = 0;
    for (const ContextRow& row : rows) n_positive += sampling.codes[row.position] == output;
    const Negatives negatives(sampling, output, n_positive, std::ssize(rows));
    for (int64_t i = 0; i < std::ssize(rows); ++i) {
      const float weight = negatives.weigh(rows[i].position);
      if (weight == 0.0f) continue;
      rows[n_kept] = {rows[i].position, rows[i].curvature * weight};
      for (int c = 0; c < n_contexts; ++c) {
        const ContextEntry entry = entries[i * n_contexts + c];
        entries[n_kept * n_contexts + c] = {entry.gradient * weight, entry.probability};
      }
      ++n_kept;
    }
    rows.resize(n_kept);
    entries.resize(n_kept * n_contexts);
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
      units_(choose(crew)),
      sums_(pool, entries_.size()) {
  crew.share_pieces(n_rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      row_of_[position(row)] = static_cast<int32_t>(row);
      const ContextEntry* entries = entries_.data() + row * n_contexts_;
      Sum* sums = sums_.data() + row * n_contexts_;
      for (int c = 0; c < n_contexts_; ++c) {
        const auto [gradient, p] = entries[c];
        const Sum sum = units_.round({0, gradient, curvature(row, p)});
        sums[c] = gradient == 0.0f ? Sum{} : sum;
      }
    }
  });
}

Units ContextRows::choose(Crew& crew) const {
  std::vector<Magnitudes> by_piece((n_rows() + kRowsPerTask - 1) / kRowsPerTask);
  crew.share_pieces(n_rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    Magnitudes sums;
    for (int64_t row = begin; row < end; ++row)
      for (int c = 0; c < n_contexts_; ++c) {
        const ContextEntry& entry = entries_[row * n_contexts_ + c];
        if (entry.gradient != 0.0f) sums.add(entry.gradient, curvature(row, entry.probability));
      }
    by_piece[begin / kRowsPerTask] = sums;
  });
  return choose_units(by_piece);
}

void ContextRows::add_to(std::span<const int32_t> positions, std::span<const int32_t> contexts,
                         Sum* by_context) const {
  const auto add = [&](auto for_contexts) {
    for (const int32_t position : positions) {
      const Sum* sums = sums_.data() + static_cast<int64_t>(row_of_[position]) * n_contexts_;
      for_contexts([&](int c) { by_context[c] += sums[c]; });
    }
  };
  if (std::ssize(contexts) == n_contexts_)
    add([this](auto visit) {
      for (int c = 0; c < n_contexts_; ++c) visit(c);
    });
  else
    add([contexts](auto visit) {
      for (const int32_t c : contexts) visit(c);
    });
}

float ContextRows::joint_curvature(int32_t position, std::span<const int32_t> contexts) const {
  const int64_t row = row_of_[position];
  const ContextEntry* entries = entries_.data() + row * n_contexts_;
  float p = 0.0f;
  for (const int32_t c : contexts) p += entries[c].probability;
  p = std::min(p, 1.0f);
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
