#include "objectives/curvatures.hpp"

#include "simd.hpp"

namespace hedgerow {
namespace {

// Fills the curvatures of n labels, of one position or of several. gammas: one for each label, or
// one for all
template <bool by_label>
HEDGEROW_INLINE void fill_row(const double* HEDGEROW_RESTRICT p,
                              const float* HEDGEROW_RESTRICT gammas, int64_t n, double scale,
                              CurvatureRule rule, float* HEDGEROW_RESTRICT out) {
  for (int64_t k = 0; k < n; ++k) out[k] = rule.curvature(p[k], gammas[by_label ? k : 0], scale);
}

HEDGEROW_CLONES void fill_rows(const CurvatureTable& table, int64_t first, int64_t end,
                               float* out) {
  const int64_t n_labels = table.n_labels;
  if (table.gammas_by_label && table.scales == nullptr) {
    const int64_t begin = first * n_labels;
    fill_row<true>(table.probabilities + begin, table.gammas + begin, (end - first) * n_labels, 1.0,
                   table.rule, out + begin);
    return;
  }
  for (int64_t t = first; t < end; ++t) {
    const double* p = table.probabilities + t * n_labels;
    const double scale = table.scales == nullptr ? 1.0 : table.scales[t];
    float* row = out + t * n_labels;
    if (table.gammas_by_label)
      fill_row<true>(p, table.gammas + t * n_labels, n_labels, scale, table.rule, row);
    else
      fill_row<false>(p, table.gammas + t, n_labels, scale, table.rule, row);
  }
}

}  // namespace

void fill_curvatures(const CurvatureTable& table, float* out, int n_threads, Stop& stop) {
  parallel_for_pieces(table.n_positions, kPositionsPerTask, n_threads, stop,
                      [&](int64_t first, int64_t end) { fill_rows(table, first, end, out); });
}

}  // namespace hedgerow
