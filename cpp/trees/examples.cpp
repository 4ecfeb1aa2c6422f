#include "trees/examples.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "random.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kChunk = 4096;  // positions to a task

using ByLabel = std::vector<std::vector<Derivatives>>;

class Harvester {
 public:
  Harvester(const MarginalTable& table, const Sampling& sampling)
      : table_(table), sampling_(sampling) {}

  void add(int64_t begin, int64_t end, ByLabel& out) const {
    const int n_labels = table_.n_labels;
    const int64_t* partial = std::lower_bound(table_.partial_positions,
                                              table_.partial_positions + table_.n_partial, begin);
    for (int64_t t = begin; t < end; ++t) {
      const double* p = table_.probabilities + t * n_labels;
      const int32_t code = table_.codes[t];
      const double* observed = nullptr;
      if (partial != table_.partial_positions + table_.n_partial && *partial == t)
        observed = table_.partial_observed + (partial++ - table_.partial_positions) * n_labels;
      if (sampling_.selected != nullptr && !sampling_.selected[t]) continue;
      const double weight = table_.weights == nullptr ? 1.0 : table_.weights[t];
      const double scale = table_.scales == nullptr ? 1.0 : table_.scales[t];
      if (scale == 0.0) continue;
      const double* expected = table_.expected + t * n_labels;
      const double expected_weight = table_.expected_is_weighted ? 1.0 : weight;
      const double* gradients =
          table_.gradients == nullptr ? nullptr : table_.gradients + t * n_labels;
      for (int k = 0; k < n_labels; ++k) {
        const double seen = observed != nullptr ? observed[k] : (k == code ? 1.0 : 0.0);
        const double gradient =
            gradients != nullptr ? gradients[k] : expected_weight * expected[k] - weight * seen;
        if (std::abs(gradient) <= sampling_.trim * scale) continue;
        out[k].push_back({static_cast<int32_t>(t), static_cast<float>(gradient),
                          static_cast<float>(scale * curvature(t, k, p[k]))});
      }
    }
  }

 private:
  double curvature(int64_t t, int k, double p) const {
    if (table_.gammas == nullptr) return 1.0;
    const float gamma =
        table_.gammas_by_label ? table_.gammas[t * table_.n_labels + k] : table_.gammas[t];
    return std::max(static_cast<double>(gamma) * p * (1.0 - p), kSmallestCurvature);
  }

  static constexpr double kSmallestCurvature = 1e-16;

  MarginalTable table_;
  Sampling sampling_;
};

// Keeps all examples of a label where it was observed, and a share of the others, which count for
// as much as all of them in the mean.
void stratify(std::vector<Derivatives>& examples, const int32_t* codes, int label,
              const Sampling& sampling) {
  int64_t n_positive = 0;
  for (const Derivatives& example : examples) n_positive += codes[example.position] == label;
  const int64_t n_negative = static_cast<int64_t>(examples.size()) - n_positive;
  const double share = sampling.negative_ratio *
                       static_cast<double>(std::max<int64_t>(n_positive, 1)) /
                       static_cast<double>(std::max<int64_t>(n_negative, 1));
  if (share >= 1.0) return;
  const uint64_t key = derive_key(sampling.key, static_cast<uint64_t>(label));
  const auto upscale = static_cast<float>(1.0 / share);
  size_t n_kept = 0;
  for (Derivatives example : examples) {
    if (codes[example.position] != label) {
      if (draw_uniform(key, static_cast<uint64_t>(example.position)) >= share) continue;
      example.gradient *= upscale;
      example.curvature *= upscale;
    }
    examples[n_kept++] = example;
  }
  examples.resize(n_kept);
}

}  // namespace

Examples::Examples(const MarginalTable& table, const Sampling& sampling, int n_threads,
                   Stop& stop) {
  const Harvester harvester(table, sampling);
  const int64_t n_chunks = (table.n_positions + kChunk - 1) / kChunk;
  std::vector<ByLabel> harvests(n_chunks);
  parallel_for_each_thread(n_chunks, n_threads, stop, [&] {
    // Grows once; what is kept of a chunk is as long as it has to be.
    return [&, scratch = ByLabel(table.n_labels)](int64_t chunk) mutable {
      stop.check();
      for (std::vector<Derivatives>& part : scratch) part.clear();
      const int64_t begin = chunk * kChunk;
      harvester.add(begin, std::min(begin + kChunk, table.n_positions), scratch);
      harvests[chunk] = scratch;
    };
  });
  by_label_.resize(table.n_labels);
  parallel_for(table.n_labels, n_threads, stop, [&](int64_t label) {
    stop.check();
    size_t n_examples = 0;
    for (const ByLabel& harvest : harvests) n_examples += harvest[label].size();
    std::vector<Derivatives>& examples = by_label_[label];
    examples.reserve(n_examples);
    for (ByLabel& harvest : harvests) {
      std::vector<Derivatives>& part = harvest[label];
      examples.insert(examples.end(), part.begin(), part.end());
      std::vector<Derivatives>().swap(part);
    }
    if (sampling.negative_ratio > 0.0)
      stratify(examples, table.codes, static_cast<int>(label), sampling);
  });
}

Examples::Examples(std::vector<std::vector<Derivatives>> by_label)
    : by_label_(std::move(by_label)) {}

int64_t count_right(const double* probabilities, const int32_t* codes, int64_t n_positions,
                    int n_labels, int n_threads, Stop& stop) {
  const int64_t n_chunks = (n_positions + kChunk - 1) / kChunk;
  std::vector<int64_t> counts(n_chunks);
  parallel_for(n_chunks, n_threads, stop, [&](int64_t chunk) {
    stop.check();
    const int64_t end = std::min((chunk + 1) * kChunk, n_positions);
    for (int64_t t = chunk * kChunk; t < end; ++t) {
      if (codes[t] < 0) continue;
      const double* p = probabilities + t * n_labels;
      counts[chunk] += std::max_element(p, p + n_labels) - p == codes[t];
    }
  });
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

FixedPoint to_fixed_point(std::span<const Derivatives> derivatives) {
  double gradient_sum = 0.0, curvature_sum = 0.0;
  for (const Derivatives& d : derivatives) {
    gradient_sum += std::abs(d.gradient);
    curvature_sum += d.curvature;
  }
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
