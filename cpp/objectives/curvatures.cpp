#include "objectives/curvatures.hpp"

#include <algorithm>

namespace hedgerow {
namespace {

constexpr double kSmallestCurvature = 1e-16;

}  // namespace

void fill_curvatures(const CurvatureTable& table, float* out, int n_threads, Stop& stop) {
  const int n_labels = table.n_labels;
  parallel_for_pieces(
      table.n_positions, kPositionsPerTask, n_threads, stop, [&](int64_t first, int64_t end) {
        for (int64_t t = first; t < end; ++t) {
          const double* p = table.probabilities + t * n_labels;
          const float* gammas = table.gammas + (table.gammas_by_label ? t * n_labels : t);
          const double scale = table.scales == nullptr ? 1.0 : table.scales[t];
          for (int k = 0; k < n_labels; ++k) {
            const float full = gammas[table.gammas_by_label ? k : 0];
            const auto gamma =
                static_cast<double>(std::min(std::max(table.rate * full, table.modest), full));
            out[t * n_labels + k] = static_cast<float>(
                scale * std::max(gamma * p[k] * (1.0 - p[k]), kSmallestCurvature));
          }
        }
      });
}

}  // namespace hedgerow
