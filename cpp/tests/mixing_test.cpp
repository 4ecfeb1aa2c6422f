// Mixing rates: those of all kernels compared with log space, and what holds for any chain.
#include "trellis/mixing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "tests/batch.hpp"
#include "tests/check.hpp"
#include "trellis/mixing_log.hpp"
#include "trellis/strands.hpp"

namespace hedgerow::tests {
namespace {

struct Bounds {
  std::vector<float> nodes, edges;
  std::vector<double> pairs;
  bool operator==(const Bounds&) const = default;
};

// in_turn: one sequence after the other, even where labels fit lanes
Bounds mixing_of(const Batch& batch, int n_threads = 1, bool in_turn = false) {
  Bounds found{std::vector<float>(batch.n_positions(), NAN),
               std::vector<float>(batch.n_positions(), NAN),
               std::vector<double>(batch.n_arcs() - batch.n_labels(), NAN)};
  Stop stop(nullptr);
  const MixingBounds out{found.nodes.data(), found.edges.data(), found.pairs.data(),
                         batch.weights.data()};
  if (in_turn) {
    ChainPosteriors wanted{};
    wanted.mixing = &out;
    fill_posteriors_in_turn(batch.chain(), nullptr, wanted, n_threads, stop);
  } else {
    fill_mixing(batch.chain(), out, n_threads, stop);
  }
  return found;
}

// gamma is at least that of an independent position, and at most that of complete dependence.
void check_limits(const Batch& batch, const Bounds& found) {
  for (int64_t s = 0; s < batch.n_sequences(); ++s) {
    const auto length = static_cast<float>(batch.length(s));
    for (int64_t t = batch.offsets[s]; t < batch.offsets[s + 1]; ++t) {
      CHECK(found.nodes[t] >= 2.0f && found.nodes[t] <= 2.0f * length);
      CHECK(found.edges[t] >= 0.0f && found.edges[t] <= 2.0f * (length - 1.0f));
    }
  }
  for (const double curvature : found.pairs) CHECK(curvature >= 0.0);
}

// The gammas and the curvature of pairs, from the rates in log space.
void check_bounds(const Batch& batch, const Bounds& found) {
  const int64_t longest = batch.n_positions();
  const ChainScores scores = batch.chain();
  Stop stop(nullptr);
  LogMixing slow(scores, longest);
  std::vector<double> expected(found.pairs.size(), 0.0);
  for (int64_t s = 0; s < batch.n_sequences(); ++s) {
    const int64_t begin = batch.offsets[s], length = batch.length(s);
    std::vector<float> next(longest + 1), previous(longest + 1);
    slow.fill_rates(s, {next.data(), previous.data()}, stop);
    for (int64_t t = length - 2; t >= 0; --t) next[t] *= 1.0f + next[t + 1];
    for (int64_t t = 1; t < length; ++t) previous[t] *= 1.0f + previous[t - 1];
    for (int64_t t = 0; t < length; ++t) {
      const double node = 2.0 + 2.0 * (previous[t] + next[t]);
      CHECK_NEAR(found.nodes[begin + t] / node, 1.0, 1e-3);
      if (t == 0) continue;
      const double edge = std::min(2.0 * (length - 1), 6.0 + 2.0 * (previous[t - 1] + next[t]));
      CHECK_NEAR(found.edges[begin + t] / edge, 1.0, 1e-3);
    }
    slow.add_pairs(s, found.edges.data() + begin, batch.weights[s], {expected.data(), SumGrid(0.0)},
                   stop);
  }
  for (size_t i = 0; i < expected.size(); ++i)
    CHECK_NEAR(found.pairs[i], expected[i], 1e-3 * expected[i] + 1e-30);
}

// The posteriors that come with mixing rates, pairs only as sums; curvature: (K, K)
Posteriors posteriors_with_mixing(const Batch& batch, double bound,
                                  std::vector<double>& curvature) {
  Posteriors found = of_first_order(Posteriors(batch), batch);
  found.pairs.clear();
  std::vector<float> nodes(batch.n_positions());
  const MixingBounds bounds{nodes.data(), nullptr, curvature.data(), batch.weights.data(), bound};
  ChainPosteriors out = pointers_to(found, batch.chain());
  out.weights = batch.weights.data();
  out.mixing = &bounds;
  out.bound = bound;
  Stop stop(nullptr);
  fill_posteriors(batch.chain(), batch.labels.data(), out, 2, stop);
  return found;
}

void check_single(const std::vector<double>& found, const std::vector<double>& expected) {
  CHECK(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    CHECK_NEAR(found[i], expected[i], 2e-6 * expected[i] + 1e-12);
}

void check_double(const std::vector<double>& found, const std::vector<double>& expected) {
  CHECK(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != expected[i])  // they may be infinite
      CHECK_NEAR(found[i], expected[i], 1e-14 * (1.0 + std::abs(expected[i])));
}

// With mixing rates, marginals and sums of pairs are in single precision, log Z and log-likelihoods
// are not; exponentials are rounded differently.
TEST(posteriors_with_mixing) {
  for (const int n_labels : {9, 17, 26, 33})
    for (const double spread : {0.0, 2.0, 12.0, 40.0, 400.0})
      for (const double holes : {0.0, 0.3}) {
        const Kind kind{spread, holes, false};
        context = describe(n_labels, kind);
        const Batch batch = first_order(n_labels, {6, 1, 0, 40, 2}, kind);
        std::vector<double> curvature(n_labels * n_labels);
        const Posteriors found = posteriors_with_mixing(batch, 0.0, curvature);
        const Posteriors expected = posteriors_of(batch, batch.chain());
        check_double(found.log_z, expected.log_z);
        check_double(found.log_likelihoods, expected.log_likelihoods);
        check_single(found.marginals, expected.marginals);
        check_single(found.arc_sums, expected.arc_sums);
      }
  for (const double spread : {3.0, 30.0}) {
    const Batch batch = first_order(9, {4}, {spread, 0.1, false});
    const Exact exact(batch, 0);
    Posteriors expected(batch, 0.0);
    for (const auto& one : exact.all)
      expected.add(batch, 0, one.labels, exact.prob(one), batch.weights[0]);
    expected = of_first_order(expected, batch);
    std::vector<double> curvature(9 * 9);
    const Posteriors found = posteriors_with_mixing(batch, 0.0, curvature);
    check_single(found.marginals, expected.marginals);
    check_single(found.arc_sums, expected.arc_sums);
  }
}

// Sums do not depend on the order of sequences, to the last bit.
TEST(order_with_mixing) {
  for (const double spread : {0.0, 3.0, 15.0}) {
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < 70; ++i) lengths.push_back(i % 23);
    const Batch batch = first_order(11, lengths, {spread, 0, false});
    Batch reversed = batch;
    reversed.offsets = {0};
    reversed.nodes.clear();
    std::reverse(reversed.weights.begin(), reversed.weights.end());
    for (int64_t s = batch.n_sequences() - 1; s >= 0; --s) {
      reversed.offsets.push_back(reversed.offsets.back() + batch.length(s));
      reversed.nodes.insert(reversed.nodes.end(), batch.nodes.begin() + 11 * batch.offsets[s],
                            batch.nodes.begin() + 11 * batch.offsets[s + 1]);
    }
    const double bound = 3.0 * static_cast<double>(batch.n_positions());
    std::vector<double> curvature(11 * 11), other(11 * 11);
    const Posteriors one = posteriors_with_mixing(batch, bound, curvature);
    CHECK(posteriors_with_mixing(reversed, bound, other).arc_sums == one.arc_sums);
    CHECK(other == curvature);
  }
}

// Nor if terms are powers of two, and others odd multiples of the grid's unit, 2^-47: each pair of
// two positions has a probability of 2^-8.
TEST(order_of_even_terms_with_mixing) {
  Batch batch = first_order(16, {2, 2, 2}, {0.0, 0, false});
  batch.weights = {1.0, 3 * 0x1p-39, 0x1p-40};
  std::vector<double> curvature(16 * 16);
  const std::vector<double> sums = posteriors_with_mixing(batch, 8.0, curvature).arc_sums;
  std::sort(batch.weights.begin(), batch.weights.end());
  do {
    std::vector<double> other(16 * 16);
    CHECK(posteriors_with_mixing(batch, 8.0, other).arc_sums == sums);
    CHECK(other == curvature);
  } while (std::next_permutation(batch.weights.begin(), batch.weights.end()));
}

TEST(mixing) {
  for (const int n_labels : {1, 2, 3, 4, 5, 8, 9, 17, 26, 33})
    for (const double spread : {0.0, 2.0, 12.0, 40.0, 1e4})
      for (const auto& [holes, edges] : {std::pair(0.0, false), {0.3, false}, {0.1, true}}) {
        const Kind kind{spread, holes, edges};
        context = describe(n_labels, kind);
        const Batch batch = first_order(n_labels, {6, 1, 0, 40, 2}, kind);
        for (const bool in_turn : {false, true}) {
          const Bounds found = mixing_of(batch, 1, in_turn);
          check_limits(batch, found);
          check_bounds(batch, found);
        }
      }
}

// The results of a sequence do not depend on the other sequences in its lanes.
TEST(neighbours_in_lanes_of_mixing) {
  for (const double spread : {2.0, 60.0}) {
    const Batch batch =
        first_order(3, {4, 9, 1, 70, 0, 9, 8, 9, 2, 3, 5, 20}, {spread, 0.2, false});
    const Bounds all = mixing_of(batch);
    for (int64_t s = 0; s < batch.n_sequences(); ++s) {
      Batch alone = batch;
      alone.offsets = {0, batch.length(s)};
      alone.nodes.erase(alone.nodes.begin(), alone.nodes.begin() + 3 * batch.offsets[s]);
      const Bounds one = mixing_of(alone);
      const auto begin = batch.offsets[s];
      CHECK(std::equal(one.nodes.begin(), one.nodes.end(), all.nodes.begin() + begin));
      CHECK(std::equal(one.edges.begin(), one.edges.end(), all.edges.begin() + begin));
    }
  }
}

TEST(subsets_of_mixing) {
  const Batch batch = first_order(5, {7, 3}, {2, 0, false});
  const Bounds all = mixing_of(batch);
  std::vector<float> nodes(10);
  std::vector<double> pairs(25);
  Stop stop(nullptr);
  fill_mixing(batch.chain(), {nodes.data(), nullptr, nullptr, nullptr}, 1, stop);
  CHECK(nodes == all.nodes);
  fill_mixing(batch.chain(), {nodes.data(), nullptr, pairs.data(), batch.weights.data()}, 1, stop);
  CHECK(pairs == all.pairs);
  CHECK(mixing_of(first_order(3, {}, {1, 0, false})).pairs == std::vector<double>(9, 0.0));
}

TEST(mixing_by_threads) {
  for (const int n_labels : {3, 20})
    for (const double spread : {2.0, 50.0}) {
      const Kind kind{spread, 0.1, n_labels == 3 && spread == 2.0};
      context = describe(n_labels, kind);
      const Batch batch = first_order(n_labels, std::vector<int64_t>(60, 13), kind);
      const Bounds one = mixing_of(batch);
      for (const int n_threads : {2, 5}) CHECK(mixing_of(batch, n_threads) == one);
    }
}

TEST(refusals_of_mixing) {
  const Batch good = first_order(3, {2, 4}, {1, 0, false});
  for (const double wrong : {std::nan(""), kInfinity}) {
    Batch batch = good;
    batch.nodes[3 * 3] = wrong;
    CHECK_THROWS(std::invalid_argument, mixing_of(batch),
                 "node score is NaN or +inf at position 1 of sequence 1");
    batch.arcs[3 + 5] = wrong;
    CHECK_THROWS(std::invalid_argument, mixing_of(batch), "from label 1 to label 2");
    batch = first_order(3, {2, 4}, {1, 0, true});
    batch.edges[4 * 9 + 2] = wrong;
    CHECK_THROWS(std::invalid_argument, mixing_of(batch),
                 "edge score is NaN or +inf at position 2 of sequence 1");
  }
  Batch batch = good;
  std::fill_n(batch.nodes.begin() + 4 * 3, 3, -kInfinity);
  CHECK_THROWS(std::invalid_argument, mixing_of(batch), "sequence 1 has no labelling");
}

TEST(interrupts_of_mixing) {
  for (const double spread : {1.0, 100.0}) {
    const Batch batch = first_order(2, {kLongestStrand}, {spread, 0, spread == 1.0});
    std::vector<float> nodes(kLongestStrand);
    Stop stop([] { return true; });
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    CHECK_THROWS(Interrupted,
                 fill_mixing(batch.chain(), {nodes.data(), nullptr, nullptr, nullptr}, 1, stop),
                 "interrupted");
  }
}

}  // namespace
}  // namespace hedgerow::tests
