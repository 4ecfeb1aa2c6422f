// What trees learn from: derivatives, which of them, and their whole units.
#include "trees/examples.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "parallel.hpp"
#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

TEST(fixed_point) {
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

// Two outputs; position 2 is left out, position 4 weighs nothing.
TEST(which_take_part) {
  const std::vector<double> gradients{0.5, -0.5, 0.25, -0.25, 1, 1, 0, 0, 3, 3};
  const std::vector<float> curvatures{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const std::vector<double> scales{2, 1, 1, 4, 0};
  const std::vector<uint8_t> selected{1, 1, 0, 1, 1};
  DerivativeTable table{5, 2, gradients.data(), curvatures.data(), true};
  const Sampling sampling{-1.0, scales.data(), selected.data(), 0.0, nullptr, 0};
  Stop stop(nullptr);
  const auto is = [](const Derivatives& d, int32_t position, float gradient, float curvature) {
    return d.position == position && d.gradient == gradient && d.curvature == curvature;
  };
  const Examples all(table, sampling, 2, stop);
  const std::vector<Derivatives>& first = all.of_output(0);
  CHECK(all.n_outputs() == 2 && first.size() == 3 && all.of_output(1).size() == 3);
  CHECK(is(first[0], 0, 0.5f, 1.0f) && is(first[1], 1, 0.25f, 3.0f) && is(first[2], 3, 0.0f, 7.0f));
  CHECK(is(all.of_output(1)[1], 1, -0.25f, 4.0f));
  Sampling trimmed = sampling;
  trimmed.trim = 0.25;  // on the edge at position 1, and half of it at position 0
  CHECK(Examples(table, trimmed, 1, stop).of_output(0).empty());
  table.curvatures_by_output = false;
  const Examples alike(table, {0.25, nullptr, nullptr, 0.0, nullptr, 0}, 1, stop);
  CHECK(alike.of_output(0).size() == 3 && is(alike.of_output(0)[2], 4, 3.0f, 5.0f));
}

// All examples of the observed label, and about as many others as the ratio says, which count for
// more.
TEST(stratified) {
  constexpr int64_t kPositions = 10000;
  const std::vector<double> gradients(kPositions, 0.5);
  const std::vector<float> curvatures(kPositions, 0.25f);
  std::vector<int32_t> codes(kPositions, -1);
  std::fill_n(codes.begin(), 1000, 0);
  const DerivativeTable table{kPositions, 1, gradients.data(), curvatures.data(), true};
  Stop stop(nullptr);
  const auto sampled = [&](double ratio) {
    return Examples(table, {-1.0, nullptr, nullptr, ratio, codes.data(), 3}, 2, stop).of_output(0);
  };
  const std::vector<Derivatives> found = sampled(2.0);
  CHECK_NEAR(static_cast<double>(found.size()), 3000.0, 200.0);
  for (const Derivatives& d : found)
    CHECK_NEAR(d.gradient / 0.5, codes[d.position] == 0 ? 1.0 : 4.5, 1e-6);
  CHECK(sampled(9.0).size() == kPositions);
}

TEST(derivatives_that_make_no_sense) {
  for (const Derivatives& d : {Derivatives{0, NAN, 1.0f}, {0, 1.0f, INFINITY}, {0, 1.0f, -1.0f}})
    CHECK_THROWS(std::invalid_argument, to_fixed_point({&d, 1}), "derivatives must be finite");
}

}  // namespace
}  // namespace hedgerow::tests
