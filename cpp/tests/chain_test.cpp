// Chains of first order against the same chains over the automaton of all label pairs; and what
// holds for both kinds of kernels.
#include "trellis/chain.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "tests/batch.hpp"
#include "tests/by_label.hpp"
#include "tests/check.hpp"
#include "trellis/strands.hpp"

namespace hedgerow::tests {
namespace {

// Calls use(scores) with both kinds of scores of a batch of first order.
template <class Use>
void for_both(const Batch& batch, Use use) {
  use(batch.scores());
  use(batch.chain());
}

void check_against_automaton(const Batch& batch, double tolerance) {
  const AutomatonScores scores = batch.scores();
  const ChainScores chain = batch.chain();
  check_close(posteriors_of(batch, chain), of_first_order(posteriors_of(batch, scores), batch),
              tolerance);
  const std::vector<double>& weights = batch.position_weights;
  check_close(weighted_of(batch, chain, weights),
              of_first_order(weighted_of(batch, scores, weights), batch), 100 * tolerance);
  const std::vector<int32_t> best = viterbi_of(batch, chain), other = viterbi_of(batch, scores);
  for (int64_t s = 0; s < batch.n_sequences(); ++s) {
    const int64_t begin = batch.offsets[s];
    CHECK_NEAR(batch.score(s, best.data() + begin), batch.score(s, other.data() + begin),
               tolerance);
  }
}

// Sums over arcs, or over label pairs: with the pairs of each position, or without any other
// output.
void check_patterns(const Batch& batch) {
  for_both(batch, [&]<class Scores>(const Scores& scores) {
    const Posteriors all = posteriors_of(batch, scores);
    const bool is_chain = std::same_as<Scores, ChainScores>;
    const std::vector<double>& probs = is_chain ? all.pairs : all.arc_marginals;
    const auto n_arcs = static_cast<int32_t>(all.arc_sums.size());
    const std::vector<int64_t> offsets{0, 1, 1, n_arcs + 1};  // the last arc, nothing, all arcs
    std::vector<int32_t> arcs(n_arcs + 1, n_arcs - 1);
    std::iota(arcs.begin() + 1, arcs.end(), 0);
    for (const bool with_pairs : {false, true}) {
      Stop stop(nullptr);
      std::vector<double> marginals(batch.n_positions() * 3, NAN), pairs(all.pairs.size(), NAN);
      const PatternMarginals patterns{3, offsets.data(), arcs.data(), marginals.data()};
      Posteriors nothing(batch);
      for (auto* field : nothing.fields()) field->clear();
      auto out = pointers_to(nothing, scores);
      out.patterns = &patterns;
      if (with_pairs) out.pairs = pairs.data();
      fill_posteriors(scores, nullptr, out, 1, stop);
      if (with_pairs) CHECK(pairs == all.pairs);
      for (int64_t t = 0; t < batch.n_positions(); ++t) {
        const double* row = probs.data() + t * n_arcs;
        CHECK(marginals[3 * t] == row[n_arcs - 1]);
        CHECK(marginals[3 * t + 1] == 0.0);
        CHECK_NEAR(marginals[3 * t + 2], std::accumulate(row, row + n_arcs, 0.0), 1e-12);
      }
    }
  });
}

// Pairs by label are those of each position, in single precision.
void check_by_label(const Batch& batch) {
  const ChainScores scores = batch.chain();
  const int64_t n = batch.n_labels();
  const Posteriors each = posteriors_of(batch, scores);
  ByLabel by_label(batch);
  Posteriors found(batch);
  found.pairs.clear();
  auto out = pointers_to(found, scores);
  out.by_label = &by_label.out;
  Stop stop(nullptr);
  fill_posteriors(scores, by_label.labels.data(), out, 2, stop);
  for (int64_t s = 0; s < batch.n_sequences(); ++s)
    for (int64_t t = batch.offsets[s]; t < batch.offsets[s + 1]; ++t) {
      const bool is_first = t == batch.offsets[s];
      const int32_t* label = by_label.labels.data() + t;
      const auto pair = [&](int64_t j, int64_t k) { return each.pairs[(t * n + j) * n + k]; };
      if (!is_first) CHECK(by_label.observed[t] == pair(label[-1], label[0]));
      for (int64_t k = 0; k < n; ++k) {
        const float* row = by_label.out.at(t, k, n);
        CHECK(row[n] ==
              (is_first ? static_cast<float>(std::min(each.marginals[t * n + k], 1.0)) : 0.0f));
        for (int64_t j = 0; j < n; ++j)
          CHECK(row[j] == static_cast<float>(is_first ? 0.0 : std::min(pair(j, k), 1.0)));
      }
    }
}

TEST(first_order) {
  for (const int n_labels : {1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 22, 26, 31, 33, 40})
    for (const Kind& kind : kinds_for(n_labels)) {
      context = describe(n_labels, kind);
      const Batch batch = first_order(n_labels, {6, 1, 0, 20, 2}, kind);
      check_against_automaton(batch, 1e-12 + 1e-13 * kind.spread);
      check_patterns(batch);
      if (n_labels >= static_cast<int>(PairsByLabel::kFewestLabels)) check_by_label(batch);
    }
  for (const int n_labels : {2, 9, 26}) {
    context = "long, K=" + std::to_string(n_labels);
    check_against_automaton(first_order(n_labels, {600, 1, 200, 0}, {3, 0.05, false}), 1e-10);
    check_against_automaton(first_order(n_labels, {300, 1, 70, 0}, {3, 0.05, true}), 1e-10);
  }
  // More matrices than are stored for the backward pass.
  context = "blocks";
  check_against_automaton(first_order(41, {90, 3, 70}, {3, 0, true}), 1e-10);
}

// The results of a sequence do not depend on the other sequences in its lanes.
TEST(neighbours_in_lanes) {
  for (const int n_labels : {2, 3, 5, 8})
    for (const Kind& kind : kKinds) {
      context = describe(n_labels, kind);
      const Batch batch = first_order(n_labels, {4, 9, 1, 30, 0, 9, 8, 9, 2}, kind);
      const Posteriors all = posteriors_of(batch, batch.chain());
      for (int64_t s = 0; s < batch.n_sequences(); ++s) {
        Batch alone = batch;
        const int64_t begin = batch.offsets[s], n = n_labels;
        alone.offsets = {0, batch.length(s)};
        alone.nodes.assign(batch.nodes.begin() + begin * n,
                           batch.nodes.begin() + batch.offsets[s + 1] * n);
        if (kind.edges) alone.edges.erase(alone.edges.begin(), alone.edges.begin() + begin * n * n);
        const Posteriors one = posteriors_of(alone, alone.chain());
        CHECK(one.log_z[0] == all.log_z[s] && one.log_likelihoods[0] == all.log_likelihoods[s]);
        CHECK(std::equal(one.marginals.begin(), one.marginals.end(),
                         all.marginals.begin() + begin * n));
        CHECK(std::equal(one.pairs.begin(), one.pairs.begin() + batch.length(s) * n * n,
                         all.pairs.begin() + begin * n * n));
      }
    }
}

// Sequences that are divided into pieces. The last kind has one that needs log space.
TEST(pieces) {
  for (const int n_labels : {2, 3, 8})
    for (const Kind& kind : {Kind{2, 0, false}, Kind{20, 0.2, false}, Kind{150, 0.1, false}}) {
      context = "pieces, " + describe(n_labels, kind);
      const Batch batch = first_order(n_labels, {1100, 3, 700}, kind);
      CHECK(batch.length(0) > kLongestStrand);
      check_against_automaton(batch, 1e-10 + 1e-11 * kind.spread);
      const Posteriors one = posteriors_of(batch, batch.chain());
      CHECK(posteriors_of(batch, batch.chain(), 3) == one);
      Posteriors some = unfilled(batch, batch.chain());
      for (auto* field : some.fields())
        if (field != &some.log_likelihoods && field != &some.arc_sums) field->clear();
      fill(batch, batch.chain(), some);
      CHECK(some.log_likelihoods == one.log_likelihoods && some.arc_sums == one.arc_sums);
    }
}

TEST(subsets_of_posteriors) {
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{5, 1, 0, 3}, {}})
    for (const Kind& kind : kKinds) {
      const Batch batch = first_order(3, lengths, kind);
      for_both(batch, [&](const auto& scores) {
        check_subsets(unfilled(batch, scores), [&](Posteriors& out) { fill(batch, scores, out); });
      });
    }
}

// Forward stays in scaled space, while backward runs out of range at position 2, after it has added
// pairs of later positions to the sums: they must not count twice.
TEST(late_fallback_of_chains) {
  for (const bool edges : {false, true}) {
    Batch batch = first_order(3, {11, 5}, {1, 0, edges});
    batch.arcs = {0, 0, 0, -kInfinity, -kInfinity, -200.0, 0, 0, 0, 0, 0, 0};
    batch.nodes[2 * 3 + 2] = -200.0;
    batch.labels.assign(batch.n_positions(), 1);
    check_against_automaton(batch, 1e-11);
  }
}

TEST(threads_do_not_matter_to_chains) {
  const std::vector<int64_t> lengths(30, 21);
  for (const int n_labels : {3, 6, 20}) {
    const Kind kind{3, 0.1, n_labels == 6};
    context = describe(n_labels, kind);
    Batch batch = first_order(n_labels, lengths, kind);
    for (int64_t i = 300; i < 400; ++i) batch.nodes[i] *= 500;  // some go to log space
    for_both(batch, [&](const auto& scores) {
      const Posteriors one = posteriors_of(batch, scores);
      const Posteriors weighted = weighted_of(batch, scores, batch.position_weights);
      for (const int n_threads : {2, 5}) {
        CHECK(posteriors_of(batch, scores, n_threads) == one);
        CHECK(weighted_of(batch, scores, batch.position_weights, n_threads) == weighted);
        CHECK(viterbi_of(batch, scores, n_threads) == viterbi_of(batch, scores));
      }
    });
  }
}

TEST(viterbi_ties) {
  const Batch batch = first_order(5, {4, 1}, {0, 0, false});
  for_both(batch, [&](const auto& scores) { CHECK(viterbi_of(batch, scores) == batch.labels); });
}

TEST(impossible_labels) {
  for (const bool edges : {false, true}) {
    Batch batch = first_order(2, {3}, {1, 0, edges});
    batch.labels = {0, 1, 1};
    batch.arcs[2 + 1] = -kInfinity;  // from label 0 to label 1
    for_both(batch, [&](const auto& scores) {
      CHECK(posteriors_of(batch, scores).log_likelihoods[0] == -kInfinity);
    });
  }
}

template <class Scores>
void check_refused(const Batch& batch, const Scores& scores, const std::string& message) {
  CHECK_THROWS(std::invalid_argument, posteriors_of(batch, scores, 2), message);
  CHECK_THROWS(std::invalid_argument, weighted_of(batch, scores, batch.position_weights, 2),
               message);
  CHECK_THROWS(std::invalid_argument, viterbi_of(batch, scores, 2), message);
  if constexpr (std::same_as<Scores, AutomatonScores>) {
    CHECK_THROWS(std::invalid_argument, best_of(batch, 2, 2), message);
    CHECK_THROWS(std::invalid_argument, samples_of(batch, batch.position_weights, 2), message);
  }
}

TEST(refusals) {
  for (const bool edges : {false, true}) {
    context = edges ? "edges" : "no edges";
    const Batch good = first_order(3, {2, 4}, {1, 0, edges});
    const auto check_both = [](const Batch& batch, const std::string& message) {
      for_both(batch, [&](const auto& scores) { check_refused(batch, scores, message); });
    };
    for (const double wrong : {std::nan(""), kInfinity}) {
      Batch batch = good;
      batch.arcs[3 + 5] = wrong;
      check_refused(batch, batch.scores(), "the score of arc 8 is NaN or +inf");
      check_refused(batch, batch.chain(), "from label 1 to label 2");
      batch = good;
      batch.nodes[3 * 3] = wrong;
      check_both(batch, "node score is NaN or +inf at position 1 of sequence 1");
      if (!edges) continue;
      batch = good;
      batch.edges[4 * 9 + 2] = wrong;
      check_both(batch, "edge score is NaN or +inf at position 2 of sequence 1");
    }
    Batch batch = good;
    std::fill_n(batch.nodes.begin() + 4 * 3, 3, -kInfinity);
    check_both(batch, "sequence 1 has no labelling with a finite score");
    batch = good;
    std::fill(batch.arcs.begin(), batch.arcs.end(), -kInfinity);
    check_both(batch, "has no labelling with a finite score");
  }
}

// Edges that are the same everywhere are arcs; a sequence of huge ones beside others is right too.
TEST(constant_edges) {
  for (const int n_labels : {1, 3, 8, 26}) {
    context = "K=" + std::to_string(n_labels);
    Batch batch = first_order(n_labels, {30, 1, 12}, {3, 0.1, false});
    const Posteriors expected = posteriors_of(batch, batch.chain());
    const int64_t n_pairs = batch.n_arcs() - n_labels;
    for (const double shift : {0.0, 40.0, -1e5}) {
      Batch moved = batch;
      for (int64_t t = 0; t < batch.n_positions(); ++t)
        for (int64_t i = 0; i < n_pairs; ++i) {
          const double arc = batch.arcs[n_labels + i];
          moved.edges.push_back(arc == -kInfinity ? 7.0 : 0.5 * arc + shift);
        }
      for (int64_t i = 0; i < n_pairs; ++i) moved.arcs[n_labels + i] *= 0.5;
      Posteriors found = posteriors_of(moved, moved.chain());
      for (int64_t s = 0; s < batch.n_sequences(); ++s)
        found.log_z[s] -= shift * static_cast<double>(batch.length(s) - 1);
      check_close(found, expected, 1e-8);
    }
  }
}

TEST(interrupts_of_chains) {
  for (const bool edges : {false, true}) {
    const Batch batch = first_order(2, {kLongestStrand}, {1, 0, edges});
    for_both(batch, [&](const auto& scores) {
      Posteriors found = unfilled(batch, scores);
      std::vector<int32_t> best(batch.n_positions());
      Stop stop([] { return true; });
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      CHECK_THROWS(Interrupted, fill_viterbi(scores, best.data(), 1, stop), "interrupted");
      CHECK_THROWS(Interrupted,
                   fill_posteriors(scores, nullptr, pointers_to(found, scores), 2, stop),
                   "interrupted");
    });
  }
}

}  // namespace
}  // namespace hedgerow::tests
