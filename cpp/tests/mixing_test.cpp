// Mixing rates against the conditional probabilities that they are made of.
#include "trellis/mixing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "tests/check.hpp"
#include "trellis/chain.hpp"

namespace hedgerow::tests {
namespace {

struct Batch {
  int n_labels;
  std::vector<int64_t> offsets{0};
  std::vector<double> nodes, arcs, weights;

  Batch(int n_labels_, const std::vector<int64_t>& lengths, double spread, double holes)
      : n_labels(n_labels_) {
    for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
    const auto score = [&](bool hole) { return hole ? -kInfinity : uniform(-spread, spread); };
    // Label 0 is always possible.
    for (int64_t i = 0; i < offsets.back() * n_labels; ++i)
      nodes.push_back(score(i % n_labels > 0 && uniform(0, 1) < holes));
    for (int64_t i = 0; i < int64_t{n_labels} * n_labels; ++i)
      arcs.push_back(score(i > 0 && uniform(0, 1) < holes));
    for (size_t s = 0; s < lengths.size(); ++s) weights.push_back(uniform(0.1, 3));
  }
  int64_t n_sequences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  ChainScores scores() const {
    return {n_sequences(), offsets.data(), n_labels, nodes.data(), arcs.data(), nullptr};
  }
};

struct Found {
  std::vector<float> nodes, edges;
  std::vector<double> pairs;
  bool operator==(const Found&) const = default;
};

Found mixing_of(const Batch& batch, int n_threads = 1) {
  Found found;
  found.nodes.assign(batch.offsets.back(), NAN);
  found.edges.assign(batch.offsets.back(), NAN);
  found.pairs.assign(batch.arcs.size(), NAN);
  Stop stop(nullptr);
  fill_mixing(batch.scores(),
              {found.nodes.data(), found.edges.data(), found.pairs.data(), batch.weights.data()},
              n_threads, stop);
  return found;
}

// The scores of one sequence, last position first.
Batch mirrored(const Batch& batch, int64_t s) {
  Batch mirror(batch.n_labels, {batch.offsets[s + 1] - batch.offsets[s]}, 0, 0);
  const int64_t n_labels = batch.n_labels, length = mirror.offsets[1];
  for (int64_t i = 0; i < length * n_labels; ++i)
    mirror.nodes[i] =
        batch.nodes[(batch.offsets[s + 1] - 1 - i / n_labels) * n_labels + i % n_labels];
  for (int64_t i = 0; i < n_labels * n_labels; ++i)
    mirror.arcs[i] = batch.arcs[i % n_labels * n_labels + i / n_labels];
  return mirror;
}

// alpha_{t,t+1} of a sequence: P(y_{t+1} = j | y_t = i) is the first marginal of the chain that
// begins at t + 1, with the arcs from i added to its first nodes.
std::vector<double> rates_to_next(const Batch& batch, int64_t s) {
  const int64_t n_labels = batch.n_labels;
  std::vector<double> rates;
  for (int64_t t = batch.offsets[s]; t + 1 < batch.offsets[s + 1]; ++t) {
    const int64_t rest = batch.offsets[s + 1] - t - 1;
    std::vector<double> smallest(n_labels, 1.0), marginals(rest * n_labels);
    for (int64_t i = 0; i < n_labels; ++i) {
      if (batch.nodes[t * n_labels + i] == -kInfinity) continue;
      std::vector<double> nodes(batch.nodes.begin() + (t + 1) * n_labels,
                                batch.nodes.begin() + batch.offsets[s + 1] * n_labels);
      for (int64_t j = 0; j < n_labels; ++j) nodes[j] += batch.arcs[i * n_labels + j];
      const int64_t offsets[] = {0, rest};
      double log_z = 0.0;
      Stop stop(nullptr);
      try {
        fill_posteriors({1, offsets, batch.n_labels, nodes.data(), batch.arcs.data(), nullptr},
                        nullptr, {&log_z, nullptr, marginals.data(), nullptr, nullptr, nullptr}, 1,
                        stop);
      } catch (const std::invalid_argument&) {
        continue;  // nothing can follow label i
      }
      for (int64_t j = 0; j < n_labels; ++j) smallest[j] = std::min(smallest[j], marginals[j]);
    }
    double overlap = 0.0;
    for (const double x : smallest) overlap += x;
    rates.push_back(1.0 - overlap);
  }
  return rates;
}

// sum over s > t of alpha_{t,t+1} ... alpha_{s-1,s}
double reach(const std::vector<double>& rates, int64_t t) {
  double sum = 0.0, product = 1.0;
  for (size_t i = t; i < rates.size(); ++i) sum += product *= rates[i];
  return sum;
}

void check_against_definition(const Batch& batch) {
  const Found found = mixing_of(batch);
  const int64_t n_pairs = static_cast<int64_t>(batch.arcs.size());
  std::vector<double> log_z(batch.n_sequences()), probs(batch.offsets.back() * n_pairs);
  std::vector<double> curvature(n_pairs, 0.0);
  Stop stop(nullptr);
  fill_posteriors(batch.scores(), nullptr,
                  {log_z.data(), nullptr, nullptr, nullptr, probs.data(), nullptr}, 1, stop);
  for (int64_t s = 0; s < batch.n_sequences(); ++s) {
    const int64_t begin = batch.offsets[s], length = batch.offsets[s + 1] - begin;
    const auto ahead = rates_to_next(batch, s), behind = rates_to_next(mirrored(batch, s), 0);
    for (int64_t t = 0; t < length; ++t) {
      const double node = 2 * (1 + reach(ahead, t) + reach(behind, length - 1 - t));
      CHECK_NEAR(found.nodes[begin + t], node, 1e-4 * node);
      const double edge = t == 0 ? 0.0
                                 : std::min(2.0 * (static_cast<double>(length) - 1),
                                            2 * (3 + reach(ahead, t) + reach(behind, length - t)));
      CHECK_NEAR(found.edges[begin + t], edge, 1e-4 * edge);
      for (int64_t i = 0; i < n_pairs; ++i) {
        const double prob = probs[(begin + t) * n_pairs + i];
        curvature[i] += batch.weights[s] * edge * prob * (1 - prob);
      }
    }
  }
  CHECK_NEAR(largest_difference(found.pairs, curvature), 0.0, 1e-3);
}

TEST(definition) {
  for (const int n_labels : {1, 2, 3, 8, 9, 17, 26, 33})
    for (const double spread : {0.0, 2.0, 12.0, 40.0, 1e4})
      for (const double holes : {0.0, 0.3}) {
        context = "K=" + std::to_string(n_labels) + " spread=" + std::to_string(spread) +
                  " holes=" + std::to_string(holes);
        check_against_definition(Batch(n_labels, {6, 1, 0, 11, 2}, spread, holes));
      }
}

TEST(subsets) {
  const Batch batch(5, {7, 3}, 2, 0);
  const Found all = mixing_of(batch);
  std::vector<float> nodes(10);
  std::vector<double> pairs(25);
  Stop stop(nullptr);
  fill_mixing(batch.scores(), {nodes.data(), nullptr, nullptr, nullptr}, 1, stop);
  CHECK(nodes == all.nodes);
  fill_mixing(batch.scores(), {nodes.data(), nullptr, pairs.data(), batch.weights.data()}, 1, stop);
  CHECK(pairs == all.pairs);
  CHECK(mixing_of(Batch(3, {}, 1, 0)).pairs == std::vector<double>(9, 0.0));
}

TEST(mixing_threads) {
  for (const double spread : {2.0, 50.0}) {
    context = "threads, spread=" + std::to_string(spread);
    const Batch batch(20, std::vector<int64_t>(300, 13), spread, 0.1);
    const Found one = mixing_of(batch, 1);
    for (const int n_threads : {2, 5}) CHECK(mixing_of(batch, n_threads) == one);
  }
}

TEST(mixing_refusals) {
  for (const double wrong : {std::nan(""), kInfinity}) {
    Batch batch(3, {2, 4}, 1, 0);
    batch.nodes[3 * 3] = wrong;
    CHECK_THROWS(std::invalid_argument, mixing_of(batch),
                 "node score is NaN or +inf at position 1 of sequence 1");
    batch.arcs[5] = wrong;
    CHECK_THROWS(std::invalid_argument, mixing_of(batch), "from label 1 to label 2");
  }
  Batch batch(3, {2, 4}, 1, 0);
  std::fill_n(batch.nodes.begin() + 4 * 3, 3, -kInfinity);
  CHECK_THROWS(std::invalid_argument, mixing_of(batch), "sequence 1 has no labelling");
}

TEST(mixing_interrupts) {
  for (const double spread : {1.0, 100.0}) {
    const Batch batch(2, {1 << 12}, spread, 0);
    std::vector<float> nodes(1 << 12);
    Stop stop([] { return true; });
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    CHECK_THROWS(Interrupted,
                 fill_mixing(batch.scores(), {nodes.data(), nullptr, nullptr, nullptr}, 1, stop),
                 "interrupted");
  }
}

}  // namespace

}  // namespace hedgerow::tests
