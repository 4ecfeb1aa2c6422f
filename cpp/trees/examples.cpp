#include "trees/examples.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "random.hpp"

namespace hedgerow {
namespace {

using ByOutput = std::vector<std::vector<Derivatives>>;

// Adds the examples of some positions to `out`.
void collect(const DerivativeTable& table, const Sampling& sampling, int64_t begin, int64_t end,
             ByOutput& out) {
  const int n_outputs = table.n_outputs;
  for (int64_t t = begin; t < end; ++t) {
    if (sampling.selected != nullptr && !sampling.selected[t]) continue;
    const double scale = sampling.scales == nullptr ? 1.0 : sampling.scales[t];
    if (scale == 0.0) continue;
    const double* gradients = table.gradients + t * n_outputs;
    const float* curvatures = table.curvatures + (table.curvatures_by_output ? t * n_outputs : t);
    for (int k = 0; k < n_outputs; ++k) {
      if (std::abs(gradients[k]) <= sampling.trim * scale) continue;
      out[k].push_back({static_cast<int32_t>(t), static_cast<float>(gradients[k]),
                        curvatures[table.curvatures_by_output ? k : 0]});
    }
  }
}

// Keeps all examples of an output where its label was observed, and a share of the others, which
// count for as much as all of them in the mean.
void stratify(std::vector<Derivatives>& examples, int output, const Sampling& sampling) {
  const int32_t* codes = sampling.codes;
  int64_t n_positive = 0;
  for (const Derivatives& example : examples) n_positive += codes[example.position] == output;
  const int64_t n_negative = static_cast<int64_t>(examples.size()) - n_positive;
  const double share = sampling.negative_ratio *
                       static_cast<double>(std::max<int64_t>(n_positive, 1)) /
                       static_cast<double>(std::max<int64_t>(n_negative, 1));
  if (share >= 1.0) return;
  const uint64_t key = derive_key(sampling.key, static_cast<uint64_t>(output));
  const auto upscale = static_cast<float>(1.0 / share);
  size_t n_kept = 0;
  for (Derivatives example : examples) {
    if (codes[example.position] != output) {
      if (draw_uniform(key, static_cast<uint64_t>(example.position)) >= share) continue;
      example.gradient *= upscale;
      example.curvature *= upscale;
    }
    examples[n_kept++] = example;
  }
  examples.resize(n_kept);
}

}  // namespace

Examples::Examples(const DerivativeTable& table, const Sampling& sampling, int n_threads,
                   Stop& stop) {
  const int64_t n_chunks = (table.n_positions + kPositionsPerTask - 1) / kPositionsPerTask;
  std::vector<ByOutput> parts(n_chunks);
  parallel_for_each_thread(n_chunks, n_threads, stop, [&] {
    // Grows once; what is kept of a chunk is as long as it has to be.
    return [&, scratch = ByOutput(table.n_outputs)](int64_t chunk) mutable {
      stop.check();
      for (std::vector<Derivatives>& examples : scratch) examples.clear();
      const int64_t begin = chunk * kPositionsPerTask;
      collect(table, sampling, begin, std::min(begin + kPositionsPerTask, table.n_positions),
              scratch);
      parts[chunk] = scratch;
    };
  });
  by_output_.resize(table.n_outputs);
  parallel_for(table.n_outputs, n_threads, stop, [&](int64_t output) {
    stop.check();
    size_t n_examples = 0;
    for (const ByOutput& part : parts) n_examples += part[output].size();
    std::vector<Derivatives>& examples = by_output_[output];
    examples.reserve(n_examples);
    for (ByOutput& part : parts) {
      examples.insert(examples.end(), part[output].begin(), part[output].end());
      std::vector<Derivatives>().swap(part[output]);
    }
    if (sampling.negative_ratio > 0.0) stratify(examples, static_cast<int>(output), sampling);
  });
}

Examples::Examples(std::vector<std::vector<Derivatives>> by_output)
    : by_output_(std::move(by_output)) {}

FixedPoint to_fixed_point(std::span<const Derivatives> derivatives) {
  double gradient_sum = 0.0, curvature_sum = 0.0;
  bool has_negative = false;
  for (const Derivatives& d : derivatives) {
    gradient_sum += std::abs(d.gradient);
    curvature_sum += d.curvature;
    has_negative |= d.curvature < 0.0f;
  }
  if (has_negative || !std::isfinite(gradient_sum) || !std::isfinite(curvature_sum))
    throw std::invalid_argument("derivatives must be finite, and curvatures not negative");
  // A power of two, so that it is exact to go from one to the other.
  const auto unit_for = [](double sum, int n_bits) {
    return std::ldexp(1.0, (sum > 0.0 ? std::ilogb(sum) + 1 : 0) - n_bits);
  };
  FixedPoint out{{}, unit_for(gradient_sum, 30), unit_for(curvature_sum, 31)};
  const double gradients = 1.0 / out.gradient_unit, curvatures = 1.0 / out.curvature_unit;
  out.examples.reserve(derivatives.size());
  for (const Derivatives& d : derivatives) {
    const auto gradient = static_cast<int32_t>(std::nearbyint(d.gradient * gradients));
    const auto curvature = static_cast<int32_t>(std::nearbyint(d.curvature * curvatures));
    out.examples.push_back({d.position, gradient, std::max(curvature, 1)});
  }
  return out;
}

}  // namespace hedgerow
