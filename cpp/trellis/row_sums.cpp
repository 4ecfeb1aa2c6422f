#include "trellis/row_sums.hpp"

#include <algorithm>

namespace hedgerow {
namespace {

constexpr int64_t kTermsPerTask = 1 << 16;

void fill_row(const RowSums& wanted, const double* row, double* sums) {
  const int32_t* place = wanted.places;
  for (int64_t i = 0; i < wanted.n_sums; ++i) {
    const int32_t* end = wanted.places + wanted.offsets[i + 1];
    double sum = 0.0;
    for (; place != end; ++place) sum += row[*place];
    sums[i] = sum;
  }
}

}  // namespace

void fill_row_sums(const RowSums& wanted, int64_t n_rows, const double* values, double* sums,
                   int n_threads, Stop& stop) {
  const int64_t n_terms = wanted.offsets[wanted.n_sums] + wanted.n_sums;
  const int64_t n_rows_per_task = kTermsPerTask / std::clamp<int64_t>(n_terms, 1, kTermsPerTask);
  parallel_for_pieces(n_rows, n_rows_per_task, n_threads, stop, [&](int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row)
      fill_row(wanted, values + row * wanted.n_values, sums + row * wanted.n_sums);
  });
}

}  // namespace hedgerow
