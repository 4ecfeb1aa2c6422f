// Linear potentials and L-BFGS against plain loops.
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "linear/blocks.hpp"
#include "linear/inverse_hessian.hpp"
#include "linear/layout.hpp"
#include "linear/leading.hpp"
#include "linear/scorer.hpp"
#include "linear/vectors.hpp"
#include "parallel.hpp"
#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

// Positions with random attributes, and a random layout: an attribute has weights for none, some or
// all of the outputs.
struct Linear {
  int64_t n_attributes;
  int n_outputs;
  std::vector<int64_t> row_offsets{0}, weight_offsets{0};
  std::vector<int32_t> attributes, weight_outputs;
  std::vector<double> values, weights, biases;

  // all: every attribute has all outputs, which then are not listed.
  Linear(int64_t n_positions, int64_t n_attributes, int n_outputs, bool with_values, bool all)
      : n_attributes(n_attributes), n_outputs(n_outputs) {
    for (int64_t t = 0; t < n_positions; ++t) {
      for (int64_t n = n_attributes == 0 ? 0 : below(6); n > 0; --n) {
        attributes.push_back(static_cast<int32_t>(below(n_attributes)));
        if (with_values) values.push_back(uniform(-2, 2));
      }
      row_offsets.push_back(static_cast<int64_t>(attributes.size()));
    }
    for (int64_t a = 0; a < n_attributes; ++a) {
      const double share = all ? 1.0 : 0.25 * static_cast<double>(a % 5);
      for (int32_t o = 0; o < n_outputs; ++o)
        if (uniform(0, 1) < share) weight_outputs.push_back(o);
      weight_offsets.push_back(static_cast<int64_t>(weight_outputs.size()));
    }
    weights = random_numbers(weight_offsets.back(), -1, 1);
    biases = random_numbers(n_outputs, -1, 1);
  }

  int64_t n_positions() const { return static_cast<int64_t>(row_offsets.size()) - 1; }
  AttributeRows rows() const {
    return {n_positions(), row_offsets.data(), attributes.data(),
            values.empty() ? nullptr : values.data()};
  }
  WeightLayout layout() const {
    const bool all = weight_offsets.back() == n_attributes * n_outputs;
    return {n_attributes, n_outputs, weight_offsets.data(), all ? nullptr : weight_outputs.data()};
  }
  // visit(position, output, value, weight number) for all contributions of weights.
  template <class Visit>
  void for_each(Visit visit) const {
    for (int64_t t = 0; t < n_positions(); ++t)
      for (int64_t e = row_offsets[t]; e < row_offsets[t + 1]; ++e)
        for (int64_t w = weight_offsets[attributes[e]]; w < weight_offsets[attributes[e] + 1]; ++w)
          visit(t, weight_outputs[w], rows().value(e), w);
  }
};

void check_scores(const Linear& linear, int64_t n_leading) {
  const int64_t n_outputs = linear.n_outputs, n_scores = linear.n_positions() * n_outputs;
  Stop never(nullptr);
  const AttributeBlocks blocks(linear.rows(), linear.layout(), n_leading, never);
  CHECK(blocks.n_positions() == linear.n_positions());
  for (const bool biased : {false, true}) {
    const double* biases = biased ? linear.biases.data() : nullptr;
    std::vector<double> expected(n_scores, 0.0);
    for (int64_t i = 0; biased && i < n_scores; ++i) expected[i] = biases[i % n_outputs];
    linear.for_each([&](int64_t t, int64_t o, double value, int64_t w) {
      expected[t * n_outputs + o] += value * linear.weights[w];
    });
    const Scorer scorer(linear.layout(), linear.weights.data(), biases);
    CHECK(scorer.n_outputs() == linear.n_outputs);
    const auto score = [&](bool by_blocks, int n_threads) {
      Stop stop(nullptr);
      std::vector<double> scores(n_scores, NAN);
      if (by_blocks) {
        const LeadingWeights weights(linear.layout(), linear.weights.data(), n_leading, n_threads,
                                     stop);
        blocks.fill_scores(weights, biases, scores.data(), n_threads, stop);
      } else {
        std::fill(scores.begin(), scores.end(), 0.0);
        scorer.add_scores(linear.rows(), scores.data(), n_threads, stop);
      }
      return scores;
    };
    for (const bool by_blocks : {false, true}) {
      const std::vector<double> found = score(by_blocks, 1);
      CHECK_NEAR(largest_difference(found, expected), 0.0, 1e-13);
      CHECK(score(by_blocks, 3) == found);
    }
  }
}

void check_gradient(const Linear& linear, int64_t n_leading) {
  const auto residuals = random_numbers(linear.n_positions() * linear.n_outputs, -1, 1);
  auto start = random_numbers(linear.weight_offsets.back() + linear.n_outputs, -1, 1);
  // Results are added to the arrays; the gradient of the biases is last.
  std::vector<double> expected = start;
  const auto n_weights = static_cast<size_t>(linear.weight_offsets.back());
  linear.for_each([&](int64_t t, int64_t o, double value, int64_t w) {
    expected[w] += value * residuals[t * linear.n_outputs + o];
  });
  for (size_t i = 0; i < residuals.size(); ++i)
    expected[n_weights + i % linear.n_outputs] += residuals[i];
  Stop never(nullptr);
  const AttributeBlocks blocks(linear.rows(), linear.layout(), n_leading, never);
  const auto add = [&](double bound, int max_parts, int n_threads) {
    Stop stop(nullptr);
    std::vector<double> gradient = start;
    LeadingSums sums(linear.layout(), gradient.data(), n_leading, max_parts, n_threads, stop);
    blocks.add_gradient(residuals.data(), sums, gradient.data(), gradient.data() + n_weights,
                        {SumGrid(bound), nullptr}, n_threads, stop);
    sums.write(gradient.data(), n_threads, stop);
    return gradient;
  };
  const std::vector<double> found = add(0.0, 1, 1);
  CHECK_NEAR(largest_difference(found, expected), 0.0, 1e-10);
  CHECK(add(0.0, 1, 3) == found);
  CHECK(add(0.0, 4, 3) == found);
  // On a grid, sums do not depend on the order, and positions may be divided into parts.
  const double bound = 0x1p14;
  for (double& number : start) number = SumGrid(bound).round(number);
  const std::vector<double> exact = add(bound, 1, 1);
  CHECK_NEAR(largest_difference(exact, expected), 0.0, 1e-6);
  for (const int max_parts : {1, 2, 7})
    for (const int n_threads : {2, 3, 20}) CHECK(add(bound, max_parts, n_threads) == exact);
}

void check_seen_pairs(const Linear& linear) {
  std::vector<int32_t> outputs;  // -1: none
  std::vector<std::set<int32_t>> seen(linear.n_attributes);
  for (int64_t t = 0; t < linear.n_positions(); ++t) {
    outputs.push_back(static_cast<int32_t>(below(linear.n_outputs + 1)) - 1);
    for (int64_t e = linear.row_offsets[t]; e < linear.row_offsets[t + 1]; ++e)
      if (outputs[t] >= 0) seen[linear.attributes[e]].insert(outputs[t]);
  }
  SeenPairs expected{{0}, {}};
  for (const auto& of_attribute : seen) {
    expected.outputs.insert(expected.outputs.end(), of_attribute.begin(), of_attribute.end());
    expected.offsets.push_back(static_cast<int64_t>(expected.outputs.size()));
  }
  Stop never(nullptr);
  const SeenPairs found =
      build_seen_pairs(linear.rows(), linear.n_attributes, outputs.data(), linear.n_outputs, never);
  CHECK(found.offsets == expected.offsets && found.outputs == expected.outputs);
}

TEST(linear_potentials) {
  for (const bool with_values : {false, true})
    for (const int n_outputs : {0, 1, 3, 4, 6, 26, 32, 37})
      for (const int64_t n_positions : {0, 1, 40, 900}) {
        const bool all = (n_outputs + n_positions + with_values) % 2 == 0;
        context = std::to_string(n_positions) + " positions, " + std::to_string(n_outputs) +
                  " outputs, values=" + std::to_string(with_values) +
                  ", all=" + std::to_string(all);
        const Linear linear(n_positions, n_positions == 0 ? 0 : 100, n_outputs, with_values, all);
        for (const int64_t n_leading : {0, 30, 1000}) {
          check_scores(linear, n_leading);
          check_gradient(linear, n_leading);
        }
        check_seen_pairs(linear);
      }
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// The two-loop recursion as it is printed in textbooks. pairs: (step, change), the oldest first.
using StepPairs = std::vector<std::pair<std::vector<double>, std::vector<double>>>;
std::vector<double> two_loops(const StepPairs& pairs, std::vector<double> q) {
  const auto add = [&](double factor, const std::vector<double>& x) {
    for (size_t i = 0; i < q.size(); ++i) q[i] += factor * x[i];
  };
  std::vector<double> factors(pairs.size());
  for (size_t i = pairs.size(); i-- > 0;) {
    const auto& [step, change] = pairs[i];
    factors[i] = dot(step, q) / dot(step, change);
    add(-factors[i], change);
  }
  if (!pairs.empty()) {
    const auto& [step, change] = pairs.back();
    const double scale = dot(step, change) / dot(change, change);
    for (double& x : q) x *= scale;
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto& [step, change] = pairs[i];
    add(factors[i] - dot(change, q) / dot(step, change), step);
  }
  for (double& x : q) x = -x;
  return q;
}

// Restored pairs give the same direction, bit for bit; invalid pairs are refused.
void check_restored(const InverseHessian& hessian, const std::vector<double>& gradient) {
  const auto pairs = hessian.pairs();
  const int64_t n_weights = hessian.n_weights();
  const int memory = static_cast<int>(pairs.size());
  Stop stop(nullptr);
  std::vector<double> expected(n_weights, NAN), found(n_weights, NAN);
  hessian.fill_direction(gradient.data(), expected.data(), 1, stop);
  InverseHessian restored(n_weights, memory);
  restored.restore(pairs);
  restored.fill_direction(gradient.data(), found.data(), 1, stop);
  CHECK(found == expected);
  const auto check_refused = [](int64_t n_weights, int memory, const auto& pairs) {
    CHECK_THROWS(std::invalid_argument, InverseHessian(n_weights, memory).restore(pairs),
                 "cannot come from L-BFGS");
  };
  check_refused(n_weights + 1, memory, pairs);
  check_refused(n_weights, memory - 1, pairs);
  auto falling = pairs;
  falling.front().curvature = -1.0;
  check_refused(n_weights, memory, falling);
}

TEST(multiples_of_vectors) {
  const int64_t n = 70000;
  const std::vector<double> x = random_numbers(n, -1, 1), plus = random_numbers(n, -1, 1);
  for (const bool with_plus : {false, true})
    for (const int n_threads : {1, 3}) {
      Stop stop(nullptr);
      std::vector<double> expected(n), found(n, NAN);
      for (int64_t i = 0; i < n; ++i) expected[i] = 3.0 * x[i] + (with_plus ? plus[i] : 0.0);
      fill_multiple(3.0, x.data(), with_plus ? plus.data() : nullptr, n, found.data(), n_threads,
                    stop);
      CHECK(found == expected);
    }
}

TEST(inverse_hessian) {
  constexpr int kMemory = 4;
  for (const int64_t n_weights : {1, 7, 70000}) {
    InverseHessian hessian(n_weights, kMemory);
    CHECK(hessian.n_weights() == n_weights);
    const std::vector<double> gradient = random_numbers(n_weights, -1, 1);
    Stop stop(nullptr);
    StepPairs pairs;
    const auto check_direction = [&] {
      const std::vector<double> expected = two_loops(pairs, gradient);
      std::vector<double> found(n_weights, NAN), again(n_weights, NAN);
      hessian.fill_direction(gradient.data(), found.data(), 1, stop);
      hessian.fill_direction(gradient.data(), again.data(), 3, stop);
      const double size = std::sqrt(dot(expected, expected));
      CHECK_NEAR(largest_difference(found, expected), 0.0, 1e-5 * size);  // pairs are floats
      CHECK(again == found);
    };
    for (int push = 0; push < 7; ++push) {
      context = std::to_string(n_weights) + " weights, push " + std::to_string(push);
      check_direction();
      if (push == 5) {  // it makes no difference when the oldest is forgotten
        hessian.make_room();
        pairs.erase(pairs.begin());
        check_direction();
      }
      const std::vector<double> step = random_numbers(n_weights, -1, 1);
      std::vector<double> change(n_weights);
      for (int64_t i = 0; i < n_weights; ++i) {
        change[i] = step[i] * (1.0 + static_cast<double>(i % 5)) + 0.1 * uniform(-1, 1) * step[i];
        if (push == 3) change[i] = -change[i];  // the gradient falls: to be left out
      }
      std::vector<double> direction(n_weights), after(n_weights);
      for (int64_t i = 0; i < n_weights; ++i) {
        direction[i] = 0.5 * step[i];
        after[i] = gradient[i] + change[i];
      }
      hessian.push({direction.data(), 2.0, gradient.data(), after.data()}, 1 + push % 3, stop);
      if (push != 3) pairs.emplace_back(step, change);
      if (pairs.size() > kMemory) pairs.erase(pairs.begin());
    }
    check_direction();
    check_restored(hessian, gradient);
    hessian.clear();
    pairs.clear();
    check_direction();
  }
}

}  // namespace
}  // namespace hedgerow::tests
