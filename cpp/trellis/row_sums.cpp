#include "trellis/row_sums.hpp"

#include <algorithm>

namespace hedgerow {
namespace {

constexpr int64_t kTermsPerTask = 1 << 16;

template <bool kWeighted>
void fill_row(const RowSums& wanted, const double* row, double* sums) {
  int64_t n = 0;
  for (int64_t i = 0; i < wanted.n_sums; ++i) {
    double sum = 0.0;
    for (; n < wanted.offsets[i + 1]; ++n) {
      const double value = row[wanted.places[n]];
      sum += kWeighted ? value * wanted.weights[n] : value;
    }
    sums[i] = sum;
  }
}

}  // namespace

void fill_row_sums(const RowSums& wanted, int64_t n_rows, const double* values, double* sums,
                   int n_threads, Stop& stop) {
  const int64_t n_terms = wanted.offsets[wanted.n_sums] + wanted.n_sums;
  const int64_t n_rows_per_task = kTermsPerTask / std::clamp<int64_t>(n_terms, 1, kTermsPerTask);
  parallel_for_pieces(n_rows, n_rows_per_task, n_threads, stop, [&](int64_t first, int64_t end) {
    const auto fill = wanted.weights == nullptr ? fill_row<false> : fill_row<true>;
    for (int64_t row = first; row < end; ++row)
      fill(wanted, values + row * wanted.n_values, sums + row * wanted.n_sums);
  });
}

}  // namespace hedgerow
