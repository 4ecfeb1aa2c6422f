// Chains against their definition: all labellings of small ones are enumerated.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
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

struct Chains {
  int n_labels = 0;
  std::vector<int64_t> offsets{0};
  std::vector<double> nodes, arcs, edges;
  std::vector<int32_t> labels;
  std::vector<double> weights;           // (S,)
  std::vector<double> position_weights;  // (N,)

  int64_t n_sequences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t n_positions() const { return offsets.back(); }
  int64_t length(int64_t s) const { return offsets[s + 1] - offsets[s]; }
  ChainScores scores() const {
    return {n_sequences(), offsets.data(), n_labels,
            nodes.data(),  arcs.data(),    edges.empty() ? nullptr : edges.data()};
  }
  // What the pair (j, k) adds to a score at a position that is not a sequence's first.
  double pair(int64_t position, int64_t j, int64_t k) const {
    const int64_t at = j * n_labels + k;
    return arcs[at] + (edges.empty() ? 0.0 : edges[position * n_labels * n_labels + at]);
  }
  double score(int64_t s, const int32_t* path) const {
    double sum = 0.0;
    for (int64_t t = 0; t < length(s); ++t) {
      const int64_t position = offsets[s] + t;
      sum += nodes[position * n_labels + path[t]];
      if (t > 0) sum += pair(position, path[t - 1], path[t]);
    }
    return sum;
  }
};

struct Kind {
  double spread;  // scores lie within +- spread
  double holes;   // share of arcs and nodes that are -inf
  bool edges;
};

// Random chains; the labels are always a path of finite score.
Chains random_chains(int n_labels, const std::vector<int64_t>& lengths, const Kind& kind) {
  Chains chains;
  chains.n_labels = n_labels;
  for (const int64_t length : lengths) chains.offsets.push_back(chains.offsets.back() + length);
  const int64_t n_positions = chains.n_positions(), n_pairs = int64_t{n_labels} * n_labels;
  const auto fill = [&](std::vector<double>& scores, int64_t n, double holes) {
    for (int64_t i = 0; i < n; ++i)
      scores.push_back(uniform(0, 1) < holes ? -kInfinity : uniform(-kind.spread, kind.spread));
  };
  fill(chains.nodes, n_positions * n_labels, kind.holes);
  fill(chains.arcs, n_pairs, kind.holes);
  if (kind.edges) fill(chains.edges, n_positions * n_pairs, 0.0);
  for (int64_t i = 0; i < n_positions; ++i) {
    chains.labels.push_back(static_cast<int32_t>(below(n_labels)));
    chains.position_weights.push_back(uniform(0.1, 3));
  }
  for (int64_t s = 0; s < chains.n_sequences(); ++s) {
    chains.weights.push_back(uniform(0.1, 3));
    for (int64_t i = chains.offsets[s]; i < chains.offsets[s + 1]; ++i) {
      double& node = chains.nodes[i * n_labels + chains.labels[i]];
      if (node == -kInfinity) node = uniform(-kind.spread, kind.spread);
      if (i == chains.offsets[s]) continue;
      double& arc = chains.arcs[chains.labels[i - 1] * n_labels + chains.labels[i]];
      if (arc == -kInfinity) arc = uniform(-kind.spread, kind.spread);
    }
  }
  return chains;
}

// As many positions as can be enumerated in a few thousand labellings.
int64_t enumerable_length(int n_labels) {
  int64_t length = 1;
  for (double n = n_labels; n * n_labels <= 2000 && length < 6; n *= n_labels) ++length;
  return length;
}

void for_each_path(int n_labels, int64_t length, const std::function<void(const int32_t*)>& visit) {
  std::vector<int32_t> path(length, 0);
  for (;;) {
    visit(path.data());
    int64_t t = 0;
    while (t < length && ++path[t] == n_labels) path[t++] = 0;
    if (t == length) return;
  }
}

// All that can be known about one sequence, by enumeration.
struct Exact {
  double log_z = 0.0, best = -kInfinity;
  std::vector<double> marginals, pairs;  // (T, K), (T, K, K)
};

Exact enumerate(const Chains& chains, int64_t s) {
  const int64_t length = chains.length(s), n_labels = chains.n_labels;
  Exact exact;
  for_each_path(chains.n_labels, length, [&](const int32_t* path) {
    exact.best = std::max(exact.best, chains.score(s, path));
  });
  exact.marginals.assign(length * n_labels, 0.0);
  exact.pairs.assign(length * n_labels * n_labels, 0.0);
  double z = 0.0;
  for_each_path(chains.n_labels, length, [&](const int32_t* path) {
    const double mass = std::exp(chains.score(s, path) - exact.best);
    z += mass;
    for (int64_t t = 0; t < length; ++t) {
      exact.marginals[t * n_labels + path[t]] += mass;
      if (t > 0) exact.pairs[(t * n_labels + path[t - 1]) * n_labels + path[t]] += mass;
    }
  });
  for (double& x : exact.marginals) x /= z;
  for (double& x : exact.pairs) x /= z;
  exact.log_z = exact.best + std::log(z);
  return exact;
}

struct Posteriors {
  std::vector<double> log_z, log_likelihoods, marginals, pair_sums, pairs;

  explicit Posteriors(const Chains& chains)
      : log_z(chains.n_sequences(), NAN),
        log_likelihoods(chains.n_sequences(), NAN),
        marginals(chains.nodes.size(), NAN),
        pair_sums(chains.arcs.size(), NAN),
        pairs(chains.nodes.size() * chains.n_labels, NAN) {}
  ChainPosteriors out(const double* weights) {
    return {log_z.data(),     log_likelihoods.data(), marginals.data(),
            pair_sums.data(), pairs.data(),           weights};
  }
  bool operator==(const Posteriors&) const = default;
};

Posteriors posteriors_of(const Chains& chains, int n_threads = 1) {
  Stop stop(nullptr);
  Posteriors found(chains);
  fill_posteriors(chains.scores(), chains.labels.data(), found.out(chains.weights.data()),
                  n_threads, stop);
  return found;
}

Posteriors weighted_of(const Chains& chains, const std::vector<double>& weights) {
  Stop stop(nullptr);
  Posteriors found(chains);
  fill_weighted_posteriors(chains.scores(), chains.labels.data(), weights.data(),
                           found.out(nullptr), 1, stop);
  return found;
}

void check_against_enumeration(const Chains& chains, double spread) {
  const int64_t n_labels = chains.n_labels, n_pairs = n_labels * n_labels;
  const double tolerance = 1e-12 + 1e-14 * spread;
  const Posteriors found = posteriors_of(chains);
  std::vector<int32_t> best(chains.n_positions(), -1);
  Stop stop(nullptr);
  fill_viterbi(chains.scores(), best.data(), 1, stop);
  Posteriors exact(chains);
  std::fill(exact.pair_sums.begin(), exact.pair_sums.end(), 0.0);
  for (int64_t s = 0; s < chains.n_sequences(); ++s) {
    const int64_t begin = chains.offsets[s];
    const Exact one = enumerate(chains, s);
    CHECK_NEAR(found.log_z[s], one.log_z, tolerance);
    CHECK_NEAR(found.log_likelihoods[s], chains.score(s, &chains.labels[begin]) - one.log_z,
               tolerance);
    CHECK_NEAR(chains.score(s, best.data() + begin), one.best, tolerance);
    std::copy(one.marginals.begin(), one.marginals.end(),
              exact.marginals.begin() + begin * n_labels);
    std::copy(one.pairs.begin(), one.pairs.end(), exact.pairs.begin() + begin * n_pairs);
    for (size_t i = 0; i < one.pairs.size(); ++i)
      exact.pair_sums[i % n_pairs] += chains.weights[s] * one.pairs[i];
  }
  CHECK_NEAR(largest_difference(found.marginals, exact.marginals), 0.0, tolerance);
  CHECK_NEAR(largest_difference(found.pairs, exact.pairs), 0.0, tolerance);
  CHECK_NEAR(largest_difference(found.pair_sums, exact.pair_sums), 0.0, 20 * tolerance);
}

// Any subset of the outputs may be asked for; what is given does not change.
void check_subsets(const Chains& chains) {
  const Posteriors all = posteriors_of(chains);
  for (int wanted = 0; wanted < 16; ++wanted) {
    Stop stop(nullptr);
    Posteriors found(chains);
    ChainPosteriors out = found.out(chains.weights.data());
    if (!(wanted & 1)) out.log_likelihoods = nullptr;
    if (!(wanted & 2)) out.marginals = nullptr;
    if (!(wanted & 4)) out.pair_sums = nullptr;
    if (!(wanted & 8)) out.pairs = nullptr;
    if (chains.n_positions() > 0) CHECK(out.need_backward() == (wanted >= 2));
    fill_posteriors(chains.scores(), wanted & 1 ? chains.labels.data() : nullptr, out, 1, stop);
    CHECK(found.log_z == all.log_z);
    if (wanted & 1) CHECK(found.log_likelihoods == all.log_likelihoods);
    if (wanted & 2) CHECK(found.marginals == all.marginals);
    if (wanted & 4) CHECK(found.pair_sums == all.pair_sums);
    if (wanted & 8) CHECK(found.pairs == all.pairs);
  }
}

// Sums over label pairs, with a table of all pairs or without, and without any other output.
void check_patterns(const Chains& chains) {
  const auto n_pairs = static_cast<int64_t>(chains.arcs.size());
  const Posteriors all = posteriors_of(chains);
  const std::vector<int64_t> offsets{0, 1, 1, n_pairs + 1};  // the last pair, nothing, all pairs
  std::vector<int32_t> pairs{static_cast<int32_t>(n_pairs - 1)};
  for (int64_t i = 0; i < n_pairs; ++i) pairs.push_back(static_cast<int32_t>(i));
  for (const bool table : {false, true}) {
    Stop stop(nullptr);
    Posteriors found(chains);
    std::vector<double> marginals(chains.n_positions() * 3, NAN);
    const PatternMarginals patterns{3, offsets.data(), pairs.data(), marginals.data()};
    ChainPosteriors out{};
    if (table) out.pairs = found.pairs.data();
    out.patterns = &patterns;
    fill_posteriors(chains.scores(), nullptr, out, 1, stop);
    if (table) CHECK(found.pairs == all.pairs);
    for (int64_t t = 0; t < chains.n_positions(); ++t) {
      const double* row = all.pairs.data() + t * n_pairs;
      CHECK(marginals[3 * t] == row[n_pairs - 1]);
      CHECK(marginals[3 * t + 1] == 0.0);
      CHECK_NEAR(marginals[3 * t + 2], std::accumulate(row, row + n_pairs, 0.0), 1e-12);
    }
  }
}

TEST(small_chains) {
  const Kind kinds[] = {{2, 0, false},   {2, 0.3, false},   {2, 0, true},      {2, 0.3, true},
                        {400, 0, false}, {400, 0.3, false}, {1e5, 0.2, false}, {1e5, 0.2, true}};
  for (const int n_labels : {1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 26, 31, 33, 40})
    for (const Kind& kind : kinds) {
      context = "K=" + std::to_string(n_labels) + " spread=" + std::to_string(kind.spread) +
                " holes=" + std::to_string(kind.holes) + " edges=" + std::to_string(kind.edges);
      const int64_t length = enumerable_length(n_labels);
      const Chains chains = random_chains(n_labels, {length, 1, 0, length, 2 % (length + 1)}, kind);
      check_against_enumeration(chains, kind.spread);
      if (n_labels == 3) check_subsets(chains);
      check_patterns(chains);
    }
  context = "no sequences";
  check_subsets(random_chains(2, {}, {1, 0, false}));
}

// Forward stays in scaled space, while backward runs out of range at position 2, after it has added
// pairs of later positions to the sums: they must not count twice.
TEST(late_fallback) {
  Chains chains = random_chains(3, {11, 5}, {1, 0, false});
  chains.arcs = {-kInfinity, -kInfinity, -200.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
  chains.nodes[2 * 3 + 2] = -200.0;
  chains.labels.assign(chains.n_positions(), 1);
  check_against_enumeration(chains, 400);
}

// sum_t w_t log P(y_t | y_{t-1}) by enumeration.
double weighted_likelihood(const Chains& chains, int64_t s) {
  const Exact exact = enumerate(chains, s);
  const int64_t n_labels = chains.n_labels, begin = chains.offsets[s];
  double sum = 0.0;
  for (int64_t t = 0; t < chains.length(s); ++t) {
    const int64_t k = chains.labels[begin + t];
    double prob = exact.marginals[t * n_labels + k];
    if (t > 0) {
      const int64_t j = chains.labels[begin + t - 1];
      prob =
          exact.pairs[(t * n_labels + j) * n_labels + k] / exact.marginals[(t - 1) * n_labels + j];
    }
    sum += chains.position_weights[begin + t] * std::log(prob);
  }
  return sum;
}

// Derivative of all weighted likelihoods with respect to one score.
double slope(Chains& chains, double& score) {
  const double before = score, step = 1e-5;
  double difference = 0.0;
  for (const double sign : {1.0, -1.0}) {
    score = before + sign * step;
    for (int64_t s = 0; s < chains.n_sequences(); ++s)
      difference += sign * weighted_likelihood(chains, s);
  }
  score = before;
  return difference / (2 * step);
}

TEST(weighted_gradient) {
  for (const int n_labels : {1, 2, 3, 5})
    for (const double holes : {0.0, 0.3}) {
      context = "K=" + std::to_string(n_labels) + " holes=" + std::to_string(holes);
      Chains chains = random_chains(n_labels, {4, 0, 1, 3}, {2, holes, true});
      const int64_t n_pairs = int64_t{n_labels} * n_labels;
      const Posteriors found = weighted_of(chains, chains.position_weights);
      for (int64_t s = 0; s < chains.n_sequences(); ++s) {
        CHECK_NEAR(found.log_likelihoods[s], weighted_likelihood(chains, s), 1e-12);
        for (int64_t i = chains.offsets[s]; i < chains.offsets[s + 1]; ++i)
          for (int64_t k = 0; k < n_labels; ++k) {
            const double weight = chains.position_weights[i];
            const double observed = k == chains.labels[i] ? weight : 0.0;
            CHECK_NEAR(observed - found.marginals[i * n_labels + k],
                       slope(chains, chains.nodes[i * n_labels + k]), 1e-7);
            for (int64_t j = 0; j < n_labels && i > chains.offsets[s]; ++j) {
              const int64_t at = i * n_pairs + j * n_labels + k;
              const double seen = j == chains.labels[i - 1] ? observed : 0.0;
              CHECK_NEAR(seen - found.pairs[at], slope(chains, chains.edges[at]), 1e-7);
            }
          }
      }
      std::vector<double> sums(n_pairs, 0.0);
      for (size_t i = 0; i < found.pairs.size(); ++i) sums[i % n_pairs] += found.pairs[i];
      CHECK_NEAR(largest_difference(found.pair_sums, sums), 0.0, 1e-12);
    }
}

// With the same weight w at every position the counts are w times the marginals.
TEST(weighted_equal) {
  for (const Kind& kind : {Kind{2, 0, false}, Kind{2, 0.3, true}, Kind{1e5, 0.2, false}}) {
    context = "spread=" + std::to_string(kind.spread);
    Chains chains = random_chains(6, {30, 0, 1, 17}, kind);
    std::fill(chains.weights.begin(), chains.weights.end(), 1.5);
    Posteriors plain = posteriors_of(chains);
    const Posteriors found = weighted_of(chains, std::vector<double>(chains.n_positions(), 1.5));
    for (auto* values : {&plain.log_likelihoods, &plain.marginals, &plain.pairs})
      for (double& x : *values) x *= 1.5;
    const double tolerance = 1e-11 + 1e-13 * kind.spread;
    CHECK_NEAR(largest_difference(found.log_likelihoods, plain.log_likelihoods), 0.0,
               tolerance * 100);
    CHECK_NEAR(largest_difference(found.marginals, plain.marginals), 0.0, tolerance);
    CHECK_NEAR(largest_difference(found.pairs, plain.pairs), 0.0, tolerance);
    CHECK_NEAR(largest_difference(found.pair_sums, plain.pair_sums), 0.0, tolerance * 10);
  }
}

// Edges of zero change nothing, but make the kernels go through log space.
TEST(scaled_equals_log_space) {
  for (const int n_labels : {2, 9, 26}) {
    context = "K=" + std::to_string(n_labels);
    Chains chains = random_chains(n_labels, {3000, 1, 200, 0}, {3, 0.05, false});
    const Posteriors scaled = posteriors_of(chains);
    chains.edges.assign(chains.n_positions() * n_labels * n_labels, 0.0);
    const Posteriors slow = posteriors_of(chains);
    CHECK_NEAR(largest_difference(scaled.log_z, slow.log_z), 0.0, 1e-9);
    CHECK_NEAR(largest_difference(scaled.log_likelihoods, slow.log_likelihoods), 0.0, 1e-9);
    CHECK_NEAR(largest_difference(scaled.marginals, slow.marginals), 0.0, 1e-11);
    CHECK_NEAR(largest_difference(scaled.pairs, slow.pairs), 0.0, 1e-11);
    CHECK_NEAR(largest_difference(scaled.pair_sums, slow.pair_sums), 0.0, 1e-8);
  }
}

TEST(threads_do_not_matter) {
  const std::vector<int64_t> lengths(500, 21);
  for (const bool edges : {false, true}) {
    context = edges ? "edges" : "no edges";
    const Chains chains = random_chains(edges ? 10 : 30, lengths, {3, 0.1, edges});
    const Posteriors one = posteriors_of(chains, 1);
    std::vector<int32_t> best(chains.n_positions()), again(chains.n_positions());
    Stop stop(nullptr);
    fill_viterbi(chains.scores(), best.data(), 1, stop);
    for (const int n_threads : {2, 5}) {
      CHECK(posteriors_of(chains, n_threads) == one);
      fill_viterbi(chains.scores(), again.data(), n_threads, stop);
      CHECK(again == best);
    }
  }
}

TEST(viterbi_ties) {
  Chains chains = random_chains(5, {4, 1}, {0, 0, false});
  std::vector<int32_t> best(chains.n_positions(), -1);
  Stop stop(nullptr);
  fill_viterbi(chains.scores(), best.data(), 1, stop);
  CHECK(best == std::vector<int32_t>(chains.n_positions(), 0));
}

TEST(impossible_labels) {
  for (const bool edges : {false, true}) {
    Chains chains = random_chains(2, {3}, {1, 0, edges});
    chains.labels = {0, 1, 1};
    chains.arcs[1] = -kInfinity;
    CHECK(posteriors_of(chains).log_likelihoods[0] == -kInfinity);
  }
}

void check_refused(const Chains& chains, const std::string& message) {
  Stop stop(nullptr);
  std::vector<int32_t> best(chains.n_positions());
  CHECK_THROWS(std::invalid_argument, posteriors_of(chains, 2), message);
  CHECK_THROWS(std::invalid_argument, weighted_of(chains, chains.position_weights), message);
  CHECK_THROWS(std::invalid_argument, fill_viterbi(chains.scores(), best.data(), 2, stop), message);
}

TEST(refusals) {
  for (const bool edges : {false, true}) {
    context = edges ? "edges" : "no edges";
    const Chains good = random_chains(3, {2, 4}, {1, 0, edges});
    for (const double wrong : {std::nan(""), kInfinity}) {
      Chains chains = good;
      chains.arcs[5] = wrong;
      check_refused(chains, "from label 1 to label 2");
      chains = good;
      chains.nodes[3 * 3] = wrong;
      check_refused(chains, "node score is NaN or +inf at position 1 of sequence 1");
      if (!edges) continue;
      chains = good;
      chains.edges[4 * 9 + 2] = wrong;
      check_refused(chains, "edge score is NaN or +inf at position 2 of sequence 1");
    }
    Chains chains = good;
    std::fill_n(chains.nodes.begin() + 4 * 3, 3, -kInfinity);
    check_refused(chains, "sequence 1 has no labelling with a finite score");
    chains = good;
    std::fill(chains.arcs.begin(), chains.arcs.end(), -kInfinity);
    check_refused(chains, "sequence 0 has no labelling with a finite score");
  }
}

TEST(interrupts) {
  const Chains chains = random_chains(2, {1 << 16}, {1, 0, false});
  Posteriors found(chains);
  std::vector<int32_t> best(chains.n_positions());
  Stop stop([] { return true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  CHECK_THROWS(Interrupted, fill_viterbi(chains.scores(), best.data(), 1, stop), "interrupted");
  CHECK_THROWS(Interrupted, fill_posteriors(chains.scores(), nullptr, found.out(nullptr), 2, stop),
               "interrupted");
}

}  // namespace

}  // namespace hedgerow::tests
