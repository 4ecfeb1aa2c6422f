#include "objectives/curvatures.hpp"

#include <algorithm>

namespace hedgerow {
namespace {

constexpr int64_t kChunk = 4096;  // positions to a task
constexpr double kSmallestCurvature = 1e-16;

}  // namespace

void fill_curvatures(const CurvatureTable& table, float* out, int n_threads, Stop& stop) {
  const int n_labels = table.n_labels;
  const int64_t n_chunks = (table.n_positions + kChunk - 1) / kChunk;
  parallel_for(n_chunks, n_threads, stop, [&](int64_t chunk) {
    stop.check();
    const int64_t end = std::min((chunk + 1) * kChunk, table.n_positions);
    for (int64_t t = chunk * kChunk; t < end; ++t) {
      const double* p = table.probabilities + t * n_labels;
      const float* gammas = table.gammas + (table.gammas_by_label ? t * n_labels : t);
      const double scale = table.scales == nullptr ? 1.0 : table.scales[t];
      for (int k = 0; k < n_labels; ++k) {
        const auto gamma = static_cast<double>(gammas[table.gammas_by_label ? k : 0]);
        out[t * n_labels + k] =
            static_cast<float>(scale * std::max(gamma * p[k] * (1.0 - p[k]), kSmallestCurvature));
      }
    }
  });
}

}  // namespace hedgerow
