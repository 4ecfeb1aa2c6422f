// Bins against a count of the cuts, one by one.
#include "trees/bins.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/check.hpp"
#include "trees/tiles.hpp"

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

// Values of another type have the bins of the doubles that equal them.
template <class Value>
void check_type(const Cuts& cuts, const std::vector<double>& doubles, int64_t n_rows,
                int64_t n_columns, int n_threads) {
  std::vector<Value> values;
  for (const double value : doubles)
    values.push_back(std::is_same_v<Value, uint8_t> ? static_cast<Value>(below(3))
                                                    : static_cast<Value>(value));
  const std::vector<double> equal(values.begin(), values.end());
  std::vector<uint8_t> bins(values.size()), expected(values.size());
  Stop stop(nullptr);
  fill_bins(cuts, values.data(), n_rows, n_columns, bins.data(), n_columns, n_threads, stop);
  fill_bins(cuts, equal.data(), n_rows, n_columns, expected.data(), n_columns, 1, stop);
  CHECK(bins == expected);
}

void check_random_columns(int64_t n_rows, int64_t n_columns) {
  std::vector<int64_t> offsets{0};
  std::vector<double> values, cuts;
  for (int64_t c = 0; c < n_columns; ++c) {
    // Many in equal distances, many that are close together at one end, or few.
    const int64_t n_cuts = c == 0 ? kMaxCuts : c == 1 ? 100 : below(9);
    const double power = c == 1 ? 1.0 + static_cast<double>(below(4)) : 1.0;
    for (int64_t i = 0; i < n_cuts; ++i)
      cuts.push_back(std::pow(static_cast<double>(i) / 100.0, power) - 1.5);
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
    check_type<float>(all, values, n_rows, n_columns, n_threads);
    check_type<uint8_t>(all, values, n_rows, n_columns, n_threads);
  }
}

TEST(cuts_rounded_up) {
  for (const double cut : {0.1, -0.1, 0.5, 1e300, -1e300, 1e-300, 3.4028235677973366e38}) {
    const float rounded = round_up<float>(cut);
    CHECK(static_cast<double>(rounded) >= cut);
    CHECK(static_cast<double>(std::nextafter(rounded, -INFINITY)) < cut || cut < -1e38);
    CHECK(round_up<double>(cut) == cut);
  }
  CHECK(round_up<float>(1e300) == INFINITY);
  CHECK(round_up<float>(-1e300) == std::numeric_limits<float>::lowest());
}

TEST(columns_of_bytes) {
  for (const int64_t n_rows : {0, 1, 7, 8, 21})
    for (const int64_t n_columns : {1, 7, 8, 9, 20}) {
      context = std::to_string(n_rows) + " rows, " + std::to_string(n_columns) + " columns";
      const int64_t stride = n_columns + below(3), width = n_rows + below(3);
      std::vector<uint8_t> rows(n_rows * stride), columns(n_columns * width, 7);  // 7: not written
      for (uint8_t& value : rows) value = static_cast<uint8_t>(below(256));
      std::vector<uint8_t> expected = columns;
      for (int64_t r = 0; r < n_rows; ++r)
        for (int64_t c = 0; c < n_columns; ++c) expected[c * width + r] = rows[r * stride + c];
      copy_bytes(rows.data(), stride, n_rows, n_columns, columns.data(), width);
      CHECK(columns == expected);
    }
}

TEST(bins) {
  for (const int64_t n_rows : {0, 1, 255, 256, 257, 1000, 20000}) {
    for (const int64_t n_columns : {1, 2, 5, 11}) {
      context = std::to_string(n_rows) + " rows, " + std::to_string(n_columns) + " columns";
      check_random_columns(n_rows, n_columns);
    }
  }
}

}  // namespace
}  // namespace hedgerow::tests
