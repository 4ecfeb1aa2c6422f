// What trees learn from: derivatives, their whole units, and which positions are right.
#include "trees/examples.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "parallel.hpp"
#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

void test_fixed_point() {
  for (const float scale : {1e-44f, 1e-20f, 0.01f, 1.0f, 1e30f}) {
    context = "scale " + std::to_string(scale);
    std::vector<Derivatives> derivatives;
    for (int i = 0; i < 100; ++i)
      derivatives.push_back({i, scale * static_cast<float>(uniform(-1, 1)),
                             scale * static_cast<float>(uniform(0, 1)) * (i % 3 == 0 ? 0 : 1)});
    const FixedPoint fixed = to_fixed_point(derivatives);
    int exponent;
    CHECK(std::frexp(fixed.gradient_unit, &exponent) == 0.5);
    CHECK(std::frexp(fixed.curvature_unit, &exponent) == 0.5);
    CHECK(fixed.examples.size() == derivatives.size());
    int64_t gradients = 0, curvatures = 0;
    for (size_t i = 0; i < derivatives.size(); ++i) {
      const Example& e = fixed.examples[i];
      CHECK(e.position == static_cast<int>(i) && e.curvature >= 1);
      gradients += std::abs(int64_t{e.gradient});
      curvatures += e.curvature;
      CHECK_NEAR(e.gradient * fixed.gradient_unit, derivatives[i].gradient,
                 0.5 * fixed.gradient_unit);
      CHECK_NEAR(e.curvature * fixed.curvature_unit, derivatives[i].curvature,
                 (e.curvature == 1 ? 1.0 : 0.5) * fixed.curvature_unit);
    }
    CHECK(gradients >= int64_t{1} << 28 && gradients <= int64_t{1} << 31);
    CHECK(curvatures >= int64_t{1} << 29 && curvatures <= int64_t{1} << 32);
  }
  context = "nothing to scale";
  CHECK(to_fixed_point({}).examples.empty());
  const Derivatives zero{3, 0.0f, 0.0f};
  const FixedPoint fixed = to_fixed_point({&zero, 1});
  CHECK(fixed.examples[0].gradient == 0 && fixed.examples[0].curvature == 1);
  // The largest float that is less than a power of two does not pass the range of an int32.
  const Derivatives edge{0, -std::nextafter(2.0f, 0.0f), std::nextafter(2.0f, 0.0f)};
  const Example largest = to_fixed_point({&edge, 1}).examples[0];
  CHECK(largest.gradient == -((int64_t{1} << 30) - 64));
  CHECK(largest.curvature == (int64_t{1} << 31) - 128);
}

void test_count_right() {
  context = "count right";
  const std::vector<double> p{0.5, 0.5, 0.2, 0.8, 0.9, 0.1, 0.3, 0.7};
  const std::vector<int32_t> codes{1, 0, 0, -1};
  Stop stop(nullptr);
  CHECK(count_right(p.data(), codes.data(), 4, 2, 1, stop) == 1);
  CHECK(count_right(p.data(), codes.data(), 0, 2, 3, stop) == 0);
  constexpr int64_t kMany = 10000;
  std::vector<double> many;
  std::vector<int32_t> labels;
  int64_t expected = 0;
  for (int64_t t = 0; t < kMany; ++t) {
    labels.push_back(static_cast<int32_t>(below(3)));
    for (int k = 0; k < 3; ++k) many.push_back(uniform(0, 1));
    const auto first = many.end() - 3;
    expected += std::max_element(first, many.end()) - first == labels.back();
  }
  for (const int n_threads : {1, 3})
    CHECK(count_right(many.data(), labels.data(), kMany, 3, n_threads, stop) == expected);
}

// Two labels; positions 1 and 3 are known in part, position 2 is left out, position 4 weighs none.
void test_examples_with_partial_positions() {
  context = "partial positions";
  const std::vector<double> p{0.25, 0.75, 0.5, 0.5, 0.5, 0.5, 0.125, 0.875, 0.5, 0.5};
  const std::vector<int32_t> codes{1, -1, 0, -1, 0};
  const std::vector<double> weights{2, 1, 1, 4, 0};
  const std::vector<int64_t> partial{1, 3};
  const std::vector<double> observed{0.25, 0.75, 0.125, 0.875};
  const std::vector<float> gammas{1, 2, 1, 1, 1};
  const std::vector<uint8_t> selected{1, 1, 0, 1, 1};
  MarginalTable table{.n_positions = 5,
                      .n_labels = 2,
                      .expected = p.data(),
                      .probabilities = p.data(),
                      .expected_is_weighted = false,
                      .codes = codes.data(),
                      .weights = weights.data(),
                      .scales = weights.data(),
                      .n_partial = 2,
                      .partial_positions = partial.data(),
                      .partial_observed = observed.data(),
                      .gammas = gammas.data(),
                      .gammas_by_label = false,
                      .gradients = nullptr};
  Stop stop(nullptr);
  const Examples all(table, {-1.0, selected.data(), 0.0, 0}, 2, stop);
  const std::vector<Derivatives>& first = all.of_label(0);
  CHECK(all.n_labels() == 2 && first.size() == 3 && all.of_label(1).size() == 3);
  const auto is = [](const Derivatives& d, int32_t position, float gradient, float curvature) {
    return d.position == position && d.gradient == gradient && d.curvature == curvature;
  };
  CHECK(is(first[0], 0, 0.5f, 2.0f * 0.25f * 0.75f));
  CHECK(is(first[1], 1, 0.25f, 2.0f * 0.5f * 0.5f));
  CHECK(is(first[2], 3, 0.0f, 4.0f * 0.125f * 0.875f));
  CHECK(is(all.of_label(1)[0], 0, -0.5f, 2.0f * 0.25f * 0.75f));
  const Examples moved(table, {0.0, selected.data(), 0.0, 0}, 1, stop);
  CHECK(moved.of_label(0).size() == 2 && moved.of_label(1).size() == 2);
  table.gammas = nullptr;  // first order
  const Examples plain(table, {0.0, nullptr, 0.0, 0}, 1, stop);
  CHECK(plain.of_label(0).size() == 3 && is(plain.of_label(0)[2], 2, -0.5f, 1.0f));
}

}  // namespace

void test_examples() {
  test_fixed_point();
  test_count_right();
  test_examples_with_partial_positions();
}

}  // namespace hedgerow::tests
