// Bins against a count of the cuts, one by one.
#include "trees/bins.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

uint8_t count_bin(double value, const double* first, const double* end) {
  if (std::isnan(value)) return 0;
  return static_cast<uint8_t>(1 + std::count_if(first, end, [&](double c) { return c <= value; }));
}

double random_value() {
  switch (below(8)) {
    case 0: return NAN;
    case 1: return below(2) == 0 ? INFINITY : -INFINITY;
    case 2: return uniform(-2, 2);
    default: return static_cast<double>(below(300)) / 100.0 - 1.5;  // often a cut
  }
}

void check_random_columns(int64_t n_rows, int64_t n_columns) {
  std::vector<int64_t> offsets{0};
  std::vector<double> values, cuts;
  for (int64_t c = 0; c < n_columns; ++c) {
    const int64_t n_cuts = c == 0 ? kMaxCuts : below(9);
    for (int64_t i = 0; i < n_cuts; ++i) cuts.push_back(static_cast<double>(i) / 100.0 - 1.5);
    offsets.push_back(static_cast<int64_t>(cuts.size()));
  }
  for (int64_t i = 0; i < n_rows * n_columns; ++i) values.push_back(random_value());
  const Cuts all{offsets.data(), cuts.data()};
  const int64_t stride = n_columns + below(3);
  std::vector<uint8_t> expected(n_rows * stride, 7), of_entries;  // 7: not written
  std::vector<int32_t> columns;
  for (int64_t r = 0; r < n_rows; ++r)
    for (int64_t c = 0; c < n_columns; ++c) {
      columns.push_back(static_cast<int32_t>(c));
      of_entries.push_back(count_bin(values[r * n_columns + c], cuts.data() + offsets[c],
                                     cuts.data() + offsets[c + 1]));
      expected[r * stride + c] = of_entries.back();
    }
  for (const int n_threads : {1, 3}) {
    Stop stop(nullptr);
    std::vector<uint8_t> bins(n_rows * stride, 7), entries(n_rows * n_columns);
    fill_bins(all, values.data(), n_rows, n_columns, bins.data(), stride, n_threads, stop);
    fill_entry_bins(all, values.data(), columns.data(), n_rows * n_columns, entries.data(),
                    n_threads, stop);
    CHECK(bins == expected);
    CHECK(entries == of_entries);
  }
}

TEST(bins) {
  for (const int64_t n_rows : {0, 1, 255, 256, 257, 1000, 20000}) {
    for (const int64_t n_columns : {1, 2, 5}) {
      context = std::to_string(n_rows) + " rows, " + std::to_string(n_columns) + " columns";
      check_random_columns(n_rows, n_columns);
    }
  }
}

}  // namespace
}  // namespace hedgerow::tests
