// Cuts against values that are sorted and counted in a map.
#include "trees/cuts.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

double random_number() {
  switch (below(8)) {
    case 0: return NAN;
    case 1: return below(2) == 0 ? INFINITY : -INFINITY;
    case 2: return below(2) == 0 ? 0.0 : -0.0;
    case 3: return 1.0 + static_cast<double>(below(5000)) * 0x1p-52;  // alike in the upper bits
    case 4: return static_cast<double>(below(9)) - 4.0;
    default: return uniform(-2, 2);
  }
}

// Checks what cuts of m ascending values must be: as many as there may be, each between neighbours,
// and for few values one between any two.
void check_cuts(const std::map<double, int64_t>& counts, const double* cuts, int64_t n_cuts,
                int max_bins) {
  const auto m = static_cast<int64_t>(counts.size());
  CHECK(n_cuts == std::max<int64_t>(std::min<int64_t>(m, max_bins) - 1, 0));
  for (int64_t i = 0; i < n_cuts; ++i) {
    const auto above = counts.lower_bound(cuts[i]);
    CHECK(above != counts.begin() && above != counts.end());
    const double low = std::prev(above)->first, high = above->first;
    CHECK(cuts[i] == low / 2 + high / 2 || cuts[i] == high);
    CHECK(i == 0 || cuts[i - 1] < cuts[i]);
  }
}

template <class Value>
void check_columns(int64_t n_rows, int64_t n_columns, int max_bins) {
  std::vector<Value> values(n_rows * n_columns);
  for (Value& value : values) {
    const double number = random_number();
    value = static_cast<Value>(sizeof(Value) > 1 ? number : static_cast<double>(below(200)));
  }
  std::vector<int64_t> some;
  for (int64_t r = 0; r < n_rows; ++r)
    if (below(3) > 0) some.push_back(r);
  for (const bool all : {true, false}) {
    Stop stop(nullptr);
    const int64_t* rows = all ? nullptr : some.data();
    const int64_t n = all ? n_rows : std::ssize(some);
    const auto cut = [&](int n_threads) {
      return cut_columns(values.data(), n_columns, rows, n, max_bins, n_threads, stop);
    };
    const ColumnCuts cuts = cut(1), again = cut(3);
    CHECK(cuts.counts == again.counts && cuts.values == again.values);
    CHECK(std::ssize(cuts.counts) == n_columns);
    const double* first = cuts.values.data();
    for (int64_t c = 0; c < n_columns; first += cuts.counts[c++]) {
      std::map<double, int64_t> counts;
      for (int64_t i = 0; i < n; ++i) {
        const auto value = static_cast<double>(values[(all ? i : some[i]) * n_columns + c]);
        if (std::isfinite(value)) ++counts[value];
      }
      check_cuts(counts, first, cuts.counts[c], max_bins);
    }
  }
}

TEST(cuts_of_columns) {
  for (const int64_t n_rows : {0, 1, 2, 300, 2500})
    for (const int max_bins : {2, 7, 255}) {
      context = std::to_string(n_rows) + " rows, " + std::to_string(max_bins) + " bins";
      check_columns<float>(n_rows, 3, max_bins);
      check_columns<double>(n_rows, 3, max_bins);
      check_columns<uint8_t>(n_rows, 3, max_bins);
    }
}

TEST(cuts_of_attributes) {
  constexpr int64_t kPositions = 2500, kAttributes = 4;  // the last has no values but 1
  std::vector<int32_t> attributes;
  std::vector<double> values;
  std::vector<std::map<double, int64_t>> counts(kAttributes, {{0.0, kPositions}});
  for (int64_t t = 0; t < kPositions; ++t)
    for (int64_t a = 0; a < kAttributes; ++a) {
      if (below(10) < a) continue;
      attributes.push_back(static_cast<int32_t>(a));
      values.push_back(a + 1 < kAttributes ? random_number() : 1.0);
      if (values.back() != 0) --counts[a][0.0];
      if (values.back() != 0 && std::isfinite(values.back())) ++counts[a][values.back()];
    }
  for (const int max_bins : {2, 30, 255}) {
    Stop stop(nullptr);
    const AttributeValues entries{kPositions, kAttributes, std::ssize(values), attributes.data(),
                                  values.data()};
    const ColumnCuts cuts = cut_attributes(entries, max_bins, 1, stop);
    const ColumnCuts again = cut_attributes(entries, max_bins, 3, stop);
    CHECK(cuts.counts == again.counts && cuts.values == again.values);
    CHECK(cuts.counts.back() == 0);
    const double* first = cuts.values.data();
    for (int64_t a = 0; a + 1 < kAttributes; first += cuts.counts[a++])
      check_cuts(counts[a], first, cuts.counts[a], max_bins);
  }
}

// Values that occur often have bins of their own, and others share what is left evenly.
TEST(cuts_by_hand) {
  std::vector<double> values(1000, 5.0);
  for (int i = 0; i < 80; ++i) values.push_back(i < 40 ? i / 10.0 : 6.0 + i / 10.0);
  Stop stop(nullptr);
  const ColumnCuts cuts = cut_columns(values.data(), 1, nullptr, std::ssize(values), 5, 2, stop);
  CHECK((cuts.values == std::vector<double>{1.95, 4.45, 7.5, 11.95}));
}

}  // namespace
}  // namespace hedgerow::tests
