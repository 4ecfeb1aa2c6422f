// Examples of trees: derivatives, their selection, and their integer units.
#include "trees/examples.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "parallel.hpp"
#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

const auto kExamplesPool = std::make_shared<MemoryPool>();

Units units_of(const std::vector<Derivatives>& derivatives) {
  Stop stop(nullptr);
  Crew crew(1, stop);
  const Magnitudes all = measure(derivatives, MagnitudeGrid(0.0), crew);
  return choose_units({&all, 1});
}

TEST(whole_units) {
  for (const float scale : {1e-44f, 1e-20f, 0.01f, 1.0f, 1e30f}) {
    context = "scale " + std::to_string(scale);
    std::vector<Derivatives> derivatives;
    for (int i = 0; i < 100; ++i)
      derivatives.push_back({i, scale * static_cast<float>(uniform(-1, 1)),
                             scale * static_cast<float>(uniform(0, 1)) * (i % 3 == 0 ? 0 : 1)});
    const Units units = units_of(derivatives);
    int exponent;
    CHECK(std::frexp(units.gradient, &exponent) == 0.5);
    CHECK(std::frexp(units.curvature, &exponent) == 0.5);
    int64_t gradients = 0, curvatures = 0;
    for (const Derivatives& d : derivatives) {
      const Sum rounded = units.round(d);
      CHECK(rounded.curvature() >= 1);
      gradients += std::abs(rounded.gradient());
      curvatures += rounded.curvature();
      CHECK_NEAR(static_cast<double>(rounded.gradient()) * units.gradient, d.gradient,
                 0.5 * units.gradient);
      CHECK_NEAR(static_cast<double>(rounded.curvature()) * units.curvature, d.curvature,
                 (rounded.curvature() == 1 ? 1.0 : 0.5) * units.curvature);
    }
    CHECK(gradients >= int64_t{1} << 28 && gradients <= int64_t{1} << 31);
    CHECK(curvatures >= int64_t{1} << 29 && curvatures <= int64_t{1} << 32);
  }
  context = "nothing to scale";
  CHECK(units_of({}).gradient > 0.0);
  const Derivatives zero{3, 0.0f, 0.0f};
  CHECK(units_of({zero}).round(zero) == Sum(0, 1));
  // The largest float that is less than a power of two does not pass the range of an int32.
  const Derivatives edge{0, -std::nextafter(2.0f, 0.0f), std::nextafter(2.0f, 0.0f)};
  const Sum largest = units_of({edge}).round(edge);
  CHECK(largest.gradient() == -((int64_t{1} << 30) - 64));
  CHECK(largest.curvature() == (int64_t{1} << 31) - 128);
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
  const Examples all(table, sampling, kExamplesPool, 2, stop);
  const std::span<const Derivatives> first = all.of_output(0);
  CHECK(all.n_outputs() == 2 && first.size() == 3 && all.of_output(1).size() == 3);
  CHECK(is(first[0], 0, 0.5f, 1.0f) && is(first[1], 1, 0.25f, 3.0f) && is(first[2], 3, 0.0f, 7.0f));
  CHECK(is(all.of_output(1)[1], 1, -0.25f, 4.0f));
  Sampling trimmed = sampling;
  trimmed.trim = 0.25;  // on the edge at position 1, and half of it at position 0
  CHECK(Examples(table, trimmed, kExamplesPool, 1, stop).of_output(0).empty());
  table.is_opposite = true;
  const Examples one(table, sampling, kExamplesPool, 2, stop);
  CHECK(one.is_opposite() && !all.is_opposite() && one.of_output(0).empty());
  CHECK(std::ranges::equal(one.of_output(1), all.of_output(1), [&](const auto& a, const auto& b) {
    return is(a, b.position, b.gradient, b.curvature);
  }));
  table.is_opposite = false;
  table.curvatures_by_output = false;
  const Examples alike(table, {0.25, nullptr, nullptr, 0.0, nullptr, 0}, kExamplesPool, 1, stop);
  CHECK(alike.of_output(0).size() == 3 && is(alike.of_output(0)[2], 4, 3.0f, 5.0f));
}

// Of probabilities and observed outputs, the second of which is unknown.
TEST(counts) {
  const std::vector<double> probabilities{0.75, 0.25, 0.5, 0.5, 0.125, 0.875};
  const std::vector<float> gammas{8, 2, 10};
  const std::vector<int32_t> observed{0, -1, 0};
  const DerivativeTable table{3,     2,     probabilities.data(), gammas.data(),
                              false, false, observed.data(),      {0.5f, 3.0f}};
  Stop stop(nullptr);
  const Examples examples(table, {0.25, nullptr, nullptr, 0.0, nullptr, 0}, kExamplesPool, 2, stop);
  const std::span<const Derivatives> first = examples.of_output(0), second = examples.of_output(1);
  CHECK(first.size() == 2 && first[0].position == 1 && first[1].position == 2);
  CHECK(first[0].gradient == 0.5f && first[1].gradient == -0.875f);
  CHECK(first[0].curvature == 0.5f && first[1].curvature == 5 * 0.109375f);
  CHECK(second.size() == 2 && second[1].position == 2 && second[1].gradient == 0.875f);
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
    const Examples examples(table, {-1.0, nullptr, nullptr, ratio, codes.data(), 3}, kExamplesPool,
                            2, stop);
    const std::span<const Derivatives> first = examples.of_output(0);
    return std::vector<Derivatives>(first.begin(), first.end());
  };
  const std::vector<Derivatives> found = sampled(2.0);
  CHECK_NEAR(static_cast<double>(found.size()), 3000.0, 200.0);
  for (const Derivatives& d : found)
    CHECK_NEAR(d.gradient / 0.5, codes[d.position] == 0 ? 1.0 : 4.5, 1e-6);
  CHECK(sampled(9.0).size() == kPositions);
}

// Weights of the negative examples that are drawn.
TEST(weights_of_negatives) {
  constexpr int64_t kPositions = 1000;
  const std::vector<double> gradients(kPositions, 0.5);
  const std::vector<float> curvatures(kPositions, 0.25f);
  std::vector<int32_t> codes(kPositions, -1);
  std::fill_n(codes.begin(), 100, 0);
  const DerivativeTable table{kPositions, 1, gradients.data(), curvatures.data(), true};
  Stop stop(nullptr);
  const auto check = [&](double ratio, NegativeWeight weight, double expected) {
    Sampling sampling{-1.0, nullptr, nullptr, ratio, codes.data(), 3};
    sampling.negative_weight = weight;
    const Examples examples(table, sampling, kExamplesPool, 1, stop);
    for (const Derivatives& d : examples.of_output(0)) {
      CHECK_NEAR(d.gradient / 0.5, codes[d.position] == 0 ? 1.0 : expected, 1e-6);
      CHECK_NEAR(d.curvature / 0.25, codes[d.position] == 0 ? 1.0 : expected, 1e-6);
    }
  };
  check(3.0, NegativeWeight::kUnbiased, 3.0);
  check(3.0, NegativeWeight::kNone, 1.0);
  check(3.0, NegativeWeight::kBalanced, 1.0 / 3.0);
  check(100.0, NegativeWeight::kUnbiased, 1.0);
  check(100.0, NegativeWeight::kBalanced, 1.0 / 9.0);
}

// About the requested share, large ones with certainty, and sums that stay nearly the same.
TEST(drawn_by_size) {
  constexpr int64_t kPositions = 10000;
  std::vector<double> gradients(kPositions);
  for (double& gradient : gradients) gradient = uniform(-1, 1) * uniform(0, 1) * uniform(0, 1);
  const std::vector<float> curvatures(kPositions, 0.0f);
  const DerivativeTable table{kPositions, 1, gradients.data(), curvatures.data(), true};
  Stop stop(nullptr);
  double total = 0.0;
  for (const double gradient : gradients) total += std::abs(gradient);
  for (const double share : {0.8, 0.3, 0.05}) {
    context = "share " + std::to_string(share);
    Sampling sampling{-1.0, nullptr, nullptr, 0.0, nullptr, 3};
    sampling.share = share;
    const Examples examples(table, sampling, kExamplesPool, 2, stop);
    const std::span<const Derivatives> found = examples.of_output(0);
    CHECK_NEAR(static_cast<double>(found.size()), share * kPositions, 5 * std::sqrt(kPositions));
    double sum = 0.0;
    for (const Derivatives& d : found) {
      sum += std::abs(d.gradient);
      CHECK(std::abs(d.gradient) >= 0.999 * std::abs(gradients[d.position]));
    }
    CHECK_NEAR(sum / total, 1.0, 0.1);
  }
}

TEST(derivatives_that_make_no_sense) {
  for (const Derivatives& d : {Derivatives{0, NAN, 1.0f}, {0, 1.0f, INFINITY}, {0, 1.0f, -1.0f}})
    CHECK_THROWS(std::invalid_argument, units_of({d}), "derivatives must be finite");
}

}  // namespace
}  // namespace hedgerow::tests
