#include "trees/context_examples.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "require.hpp"
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

// Sums over the contexts of a row.
struct ContextSums {
  float probability = 0.0f;
  float spread = 0.0f;  // of p (1 - p) where there is a gradient, or of 1
};

// gradients: null if they are 0 only where p (1 - p) is 0 too; probabilities: null where there are
// none
HEDGEROW_CLONES ContextSums sum_long_row(const float* gradients, const float* probabilities,
                                         int n) {
  if (probabilities == nullptr)
    return {0.0f, static_cast<float>(n - std::count(gradients, gradients + n, 0.0f))};
  if (gradients == nullptr) gradients = probabilities;
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

HEDGEROW_INLINE ContextSums sum_row(const float* gradients, const float* probabilities, int n) {
  if (n >= kFloats || probabilities == nullptr) return sum_long_row(gradients, probabilities, n);
  ContextSums total;
  for (int c = 0; c < n; ++c) {
    const float p = probabilities[c], spread = p * (1.0f - p);
    total.probability += p;
    total.spread += gradients == nullptr || gradients[c] != 0.0f ? spread : 0.0f;
  }
  return total;
}

// Bounds for n possible contexts of total probability p, without reading the probability of each:
// the sum of their p (1 - p) is largest where all are the same, and no more is needed to choose
// units.
ContextSums bound_sums(double p, int n) {
  return {static_cast<float>(p), static_cast<float>(p * (1.0 - p / n))};
}

}  // namespace

ContextExamples::ContextExamples(Contexts contexts, int64_t n_positions, const UnitBits& unit_bits)
    : contexts_(std::move(contexts)), by_output_(contexts_.n_outputs()), unit_bits_(unit_bits) {
  for (int k = 0; k < n_outputs(); ++k) {
    by_output_[k].rows.reserve(n_positions);
    for (auto* numbers : {&by_output_[k].gradients, &by_output_[k].probabilities})
      numbers->reserve(n_positions * contexts_.n_contexts(k));
  }
}

void ContextExamples::resize(int output, int64_t n_rows) {
  const int n_contexts = contexts_.n_contexts(output);
  OfOutput& own = by_output_[output];
  own.rows.resize(n_rows);
  own.gradients.resize(shared_ ? 0 : n_rows * n_contexts);
  own.probabilities.resize(has_probabilities_ && !are_by_position() ? n_rows * n_contexts : 0);
}

std::span<const float> ContextExamples::probabilities(int output) const {
  if (!are_by_position()) return by_output_[output].probabilities;
  const int64_t size = n_by_label_ * contexts_.n_contexts(output);
  return {by_label_ + output * size, static_cast<size_t>(size)};
}

void ContextExamples::clear() {
  for (int k = 0; k < n_outputs(); ++k) {
    resize(k, 0);
    by_output_[k].magnitudes.clear();
  }
  n_positions_ = 0;
  by_label_ = nullptr;
}

void ContextExamples::size_up(const EdgeDerivatives& derivatives, const Sampling& sampling,
                              int n_threads, Stop& stop, int64_t* n_rows) {
  const int n_outputs = contexts_.n_outputs();
  const int64_t n_edges = contexts_.n_edges();
  sizes_.assign(derivatives.n_positions * n_outputs, -1.0f);
  parallel_for_pieces(
      derivatives.n_positions, kRowsPerTask, n_threads, stop, [&](int64_t begin, int64_t end) {
        std::vector<double> sums(n_outputs);
        int64_t* counts = n_rows + (begin / kRowsPerTask + 1) * n_outputs;
        for_positions(derivatives, begin, end, [&](int64_t t, bool is_first) {
          const int64_t position = derivatives.first_position + t;
          if (sampling.selected != nullptr && !sampling.selected[position]) return;
          const double scale = sampling.scales == nullptr ? 1.0 : sampling.scales[position];
          if (scale == 0.0) return;
          if (derivatives.totals != nullptr)
            std::copy_n(derivatives.totals + t * n_outputs, n_outputs, sums.begin());
          else if (is_first)
            for (int k = 0; k < n_outputs; ++k)
              sums[k] = std::abs(derivatives.gradients[t * n_edges + k]);
          else
            contexts_.sum_sizes(derivatives.gradients + t * n_edges, sums);
          if (derivatives.observed != nullptr) {
            const int64_t edge = derivatives.observed[t];
            const int64_t output = edge < 0 || is_first ? edge : contexts_.output(edge);
            if (output >= 0 && output < n_outputs) {
              const double count = derivatives.observed_count(t, is_first, contexts_);
              sums[output] = std::max(sums[output] - std::abs(count), 0.0) + std::abs(count - 1.0);
            }
            for (double& sum : sums) sum *= derivatives.weight(t);
          }
          float* sizes = sizes_.data() + t * n_outputs;
          for (int k = 0; k < n_outputs; ++k) {
            if (sums[k] <= sampling.trim * scale) continue;  // but not NaN, which is refused
            sizes[k] = static_cast<float>(sums[k]);
            ++counts[k];
          }
        });
      });
}

HEDGEROW_INLINE void ContextExamples::write_row(const EdgeDerivatives& derivatives,
                                                const ContextBlock& block, int64_t t, bool is_first,
                                                int output, int n_contexts, int64_t row,
                                                Magnitudes& magnitudes) {
  OfOutput& own = by_output_[output];
  const int64_t at = row * n_contexts;
  ContextSums sums;
  if (derivatives.by_label != nullptr) {
    sums = bound_sums(derivatives.totals[t * n_outputs() + output], is_first ? 1 : n_outputs());
  } else {
    int n = n_contexts;  // contexts that may differ from 0
    const float *gradients = nullptr, *probabilities = nullptr;
    if (!shared_)
      gradients =
          block.copy_gradients(t, is_first, output, n_contexts, own.gradients.data() + at, n);
    if (has_probabilities_)
      probabilities = block.copy_probabilities(t, is_first, output, n_contexts,
                                               own.probabilities.data() + at, n);
    sums = sum_row(gradients, probabilities, n);
  }
  const float curvature = derivatives.curvatures[t];
  ContextRow found{static_cast<int32_t>(derivatives.first_position + t), curvature,
                   std::min(sums.probability, 1.0f), -1, 0.0f};
  if (shared_ && derivatives.observed[t] >= 0) {
    const int32_t edge = derivatives.observed[t];
    if ((is_first ? edge : contexts_.output(edge)) == output) {
      found.observed = is_first ? n_contexts - 1 : contexts_.context(edge);
      found.observed_gradient = derivatives.observed_gradient(t, is_first, contexts_);
    }
  }
  own.rows[row] = found;
  magnitudes.add(sizes_[t * n_outputs() + output], double{curvature} * sums.spread, grid_);
}

void ContextExamples::write_rows(const EdgeDerivatives& derivatives, int64_t begin, int64_t end,
                                 int64_t* next) {
  std::vector<Magnitudes> magnitudes(n_outputs());
  ContextBlock block(contexts_);
  std::vector<uint8_t> is_first(end - begin);
  for_positions(derivatives, begin, end,
                [&](int64_t t, bool first) { is_first[t - begin] = first; });
  const bool are_there = derivatives.by_label != nullptr;
  for (int64_t t = begin; are_there && t < end; ++t)
    for (int k = 0; k < n_outputs(); ++k)
      if (is_row(t, k))
        write_row(derivatives, block, t, is_first[t - begin], k, contexts_.n_contexts(k), next[k]++,
                  magnitudes[k]);
  std::vector<int32_t> outputs;  // that have a row
  for (int64_t t = are_there ? end : begin; t < end;) {
    outputs.clear();
    for (int k = 0; k < n_outputs(); ++k)
      if (is_row(t, k)) outputs.push_back(k);
    if (outputs.empty()) {
      ++t;
      continue;
    }
    block.read(derivatives, t, end, outputs);
    for (int k = 0; k < n_outputs(); ++k) {
      const auto write = [&](auto n_contexts) {
        Magnitudes total = magnitudes[k];
        int64_t row = next[k];
        for (int64_t u = t; u < block.end(); ++u)
          if (is_row(u, k))
            write_row(derivatives, block, u, is_first[u - begin], k, n_contexts, row++, total);
        magnitudes[k] = total;
        next[k] = row;
      };
      // Loops over the contexts of two or three labels are too short unless they are unrolled.
      switch (contexts_.n_contexts(k)) {
        case 3: write(std::integral_constant<int, 3>()); break;
        case 4: write(std::integral_constant<int, 4>()); break;
        default: write(contexts_.n_contexts(k));
      }
    }
    t = block.end();
  }
  const int64_t n_chunks = (derivatives.n_positions + kRowsPerTask - 1) / kRowsPerTask;
  for (int k = 0; k < n_outputs(); ++k)
    *(by_output_[k].magnitudes.end() - n_chunks + begin / kRowsPerTask) = magnitudes[k];
}

// Threads first find the rows of their positions, then write them where they belong.
void ContextExamples::add(const EdgeDerivatives& derivatives, const Sampling& sampling,
                          int n_threads, Stop& stop) {
  const int n_outputs = contexts_.n_outputs();
  const bool shared = derivatives.are_shared();
  require(n_positions_ == 0 || shared == shared_, "all parts must have gradients of the same kind");
  shared_ = shared;
  grid_ = MagnitudeGrid(sampling.bound);
  has_probabilities_ = derivatives.has_probabilities();
  by_label_ = derivatives.by_label;
  n_by_label_ = derivatives.n_by_label;
  n_positions_ = derivatives.first_position + derivatives.n_positions;
  const int64_t n_chunks = (derivatives.n_positions + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<int64_t> firsts((n_chunks + 1) * n_outputs);  // of a chunk, by output
  for (int k = 0; k < n_outputs; ++k) firsts[k] = n_rows(k);
  size_up(derivatives, sampling, n_threads, stop, firsts.data());
  for (size_t i = n_outputs; i < firsts.size(); ++i) firsts[i] += firsts[i - n_outputs];
  for (int k = 0; k < n_outputs; ++k) {
    resize(k, firsts[n_chunks * n_outputs + k]);
    by_output_[k].magnitudes.resize(by_output_[k].magnitudes.size() + n_chunks);
  }
  parallel_for_pieces(
      derivatives.n_positions, kRowsPerTask, n_threads, stop, [&](int64_t begin, int64_t end) {
        write_rows(derivatives, begin, end, firsts.data() + begin / kRowsPerTask * n_outputs);
      });
}

void ContextExamples::write_gradients(int output) {
  const int n_contexts = contexts_.n_contexts(output);
  auto& [rows, gradients, probabilities, _] = by_output_[output];
  if (are_by_position()) {
    probabilities.resize(std::ssize(rows) * n_contexts);
    const float* from = this->probabilities(output).data();
    for (int64_t i = 0; i < std::ssize(rows); ++i)
      std::copy_n(from + int64_t{rows[i].position} * n_contexts, n_contexts,
                  probabilities.data() + i * n_contexts);
  }
  gradients = probabilities;
  for (int64_t i = 0; i < std::ssize(rows); ++i)
    if (rows[i].observed >= 0)
      gradients[i * n_contexts + rows[i].observed] = rows[i].observed_gradient;
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
    rows[n_kept++] = {rows[i].position, curvature, std::min(sums.probability, 1.0f), -1, 0.0f};
    magnitudes[0].add(size, double{curvature} * sums.spread, grid_);
  }
  resize(output, n_kept);
}

void ContextExamples::draw_by_size(int output, const Sampling& sampling, Stop& stop) {
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
  const double rate = find_rates({&sizes, 1}, sampling.share, Workers(), 1, stop)[0];
  const DrawnBySize drawn(rate, sampling, output);
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
  if (shared_)
    parallel_for(n_outputs(), n_threads, stop,
                 [&](int64_t k) { write_gradients(static_cast<int>(k)); });
  shared_ = false;
  by_label_ = nullptr;
  parallel_for(n_outputs(), n_threads, stop, [&](int64_t k) {
    stop.check();
    const int output = static_cast<int>(k);
    if (sampling.share < 1.0) draw_by_size(output, sampling, stop);
    if (sampling.negative_ratio > 0.0) stratify(output, sampling);
  });
}

}  // namespace hedgerow
