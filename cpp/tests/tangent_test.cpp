// Tangents against their definition, covariances over all labellings of small chains.
#include "trellis/tangent.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "tests/automaton_naive.hpp"
#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

struct Tangents {
  std::vector<double> marginals, arc_sums, arc_marginals, pairs;

  explicit Tangents(const Batch& batch)
      : marginals(batch.nodes.size(), NAN),
        arc_sums(batch.arcs.size(), NAN),
        arc_marginals(batch.n_positions() * batch.n_arcs(), NAN),
        pairs(batch.automaton.has_all_pairs() ? batch.nodes.size() * batch.n_labels() : 0, NAN) {}
  AutomatonTangents out() {
    return {marginals.data(), arc_sums.data(), arc_marginals.data(),
            pairs.empty() ? nullptr : pairs.data()};
  }
  bool operator==(const Tangents&) const = default;
};

// Moves of all scores, huge where a node is forbidden.
struct Moves {
  std::vector<double> marginals, nodes, arcs;

  Moves(const Batch& batch, bool arcs_move) : marginals(posteriors_of(batch).marginals) {
    for (const double node : batch.nodes)
      nodes.push_back(node == -kInfinity ? 1e300 : uniform(-1, 1));
    for (int64_t a = 0; arcs_move && a < batch.n_arcs(); ++a) arcs.push_back(uniform(-1, 1));
  }
  Direction direction() const {
    return {marginals.data(), nodes.data(), arcs.empty() ? nullptr : arcs.data()};
  }
};

Tangents tangents_of(const Batch& batch, const Moves& moves, int n_threads = 1) {
  Stop stop(nullptr);
  Tangents found(batch);
  fill_tangents(batch.scores(), moves.direction(), nullptr, found.out(), n_threads, stop);
  return found;
}

// Cov(event, V) = sum over the labellings of the event of P (V - E[V]).
Tangents enumerate(const Batch& batch, const Moves& moves) {
  const int64_t n = batch.n_labels(), n_arcs = batch.n_arcs();
  Tangents exact(batch);
  for (auto* slopes : {&exact.marginals, &exact.arc_sums, &exact.arc_marginals, &exact.pairs})
    std::fill(slopes->begin(), slopes->end(), 0.0);
  for (int64_t s = 0; s < batch.n_sequences(); ++s) {
    const Exact one(batch, s);
    std::vector<double> gains, probs;
    double mean = 0.0;
    for (const Exact::Labelling& labelling : one.all) {
      const int32_t* path = labelling.labels.data();
      double gain = 0.0;
      for (int64_t t = 0; t < batch.length(s); ++t) {
        gain += moves.nodes[(batch.offsets[s] + t) * n + path[t]];
        if (!moves.arcs.empty()) gain += moves.arcs[batch.arc_taken(path, t)];
      }
      gains.push_back(gain);
      probs.push_back(std::exp(labelling.score - one.log_z));
      mean += probs.back() * gain;
    }
    for (size_t i = 0; i < one.all.size(); ++i) {
      const int32_t* path = one.all[i].labels.data();
      const double slope = probs[i] * (gains[i] - mean);
      for (int64_t t = 0; t < batch.length(s); ++t) {
        const int64_t position = batch.offsets[s] + t;
        const int32_t arc = batch.arc_taken(path, t);
        exact.marginals[position * n + path[t]] += slope;
        exact.arc_marginals[position * n_arcs + arc] += slope;
        exact.arc_sums[arc] += slope;
        if (t > 0 && !exact.pairs.empty())
          exact.pairs[(position * n + path[t - 1]) * n + path[t]] += slope;
      }
    }
  }
  return exact;
}

void check_near_all(const Tangents& found, const Tangents& exact, double tolerance) {
  CHECK_NEAR(largest_difference(found.marginals, exact.marginals), 0.0, tolerance);
  CHECK_NEAR(largest_difference(found.arc_marginals, exact.arc_marginals), 0.0, tolerance);
  CHECK_NEAR(largest_difference(found.pairs, exact.pairs), 0.0, tolerance);
  CHECK_NEAR(largest_difference(found.arc_sums, exact.arc_sums), 0.0, 20 * tolerance);
}

// Any subset of the outputs may be asked for.
void check_subsets(const Batch& batch, const Moves& moves) {
  const Tangents all = tangents_of(batch, moves);
  for (int wanted = 0; wanted < 8; ++wanted) {
    Stop stop(nullptr);
    Tangents found(batch);
    AutomatonTangents out = found.out();
    if (!(wanted & 1)) out.arc_sums = nullptr;
    if (!(wanted & 2)) out.arc_marginals = nullptr;
    if (!(wanted & 4)) out.pairs = nullptr;
    fill_tangents(batch.scores(), moves.direction(), nullptr, out, 1, stop);
    CHECK(found.marginals == all.marginals);
    if (wanted & 1) CHECK(found.arc_sums == all.arc_sums);
    if (wanted & 2) CHECK(found.arc_marginals == all.arc_marginals);
    if (wanted & 4) CHECK(found.pairs == all.pairs);
  }
}

const Kind kKinds[] = {{2, 0, false},   {2, 0.3, false},   {2, 0, true},      {2, 0.3, true},
                       {400, 0, false}, {400, 0.3, false}, {1e5, 0.2, false}, {1e5, 0.2, true}};

TEST(small_automata) {
  for (const int n_labels : {1, 2, 3})
    for (const Kind& kind : kKinds)
      for (const bool arcs_move : {false, true}) {
        context = "labels " + std::to_string(n_labels) + ", spread " + std::to_string(kind.spread);
        const Batch batch(random_grammar(n_labels, 4, 6, kind), {5, 1, 0, 4, 2, 3}, kind);
        const Moves moves(batch, arcs_move);
        check_near_all(tangents_of(batch, moves), enumerate(batch, moves),
                       1e-11 + 1e-13 * kind.spread);
        check_subsets(batch, moves);
      }
}

// A chain of first order as a batch over the automaton of all label pairs.
struct PairBatch : Batch {
  PairBatch(int n_labels, const std::vector<int64_t>& lengths, const Kind& kind)
      : Batch(random_grammar(n_labels, 1, 0, {kind.spread, kind.holes, true}), lengths,
              {kind.spread, kind.holes, false}) {}

  std::vector<double> square(const std::vector<double>& by_arc) const {
    std::vector<double> by_pair;
    for (const auto& [s, arc] : grammar.arcs)
      if (s.size() == 2) by_pair.push_back(by_arc[arc]);
    return by_pair;
  }
};

// The dense kernel, and the sequences that it refuses over the automaton.
void check_chain(const PairBatch& batch, bool arcs_move, double tolerance) {
  Stop stop(nullptr);
  Moves moves(batch, arcs_move);
  for (int64_t k = 0; arcs_move && k < batch.n_labels(); ++k) moves.arcs[k] = 0.0;  // no pairs
  const std::vector<double> arcs = batch.square(batch.arcs);
  const std::vector<double> arc_moves = arcs_move ? batch.square(moves.arcs) : moves.arcs;
  const ChainScores scores{batch.n_sequences(), batch.offsets.data(), batch.n_labels(),
                           batch.nodes.data(),  arcs.data(),          nullptr};
  const Direction direction{moves.marginals.data(), moves.nodes.data(),
                            arcs_move ? arc_moves.data() : nullptr};
  const Tangents expected = tangents_of(batch, moves);
  for (const int n_threads : {1, 3}) {
    Tangents found(batch), rest(batch);
    std::vector<double> sums(arcs.size(), NAN);
    std::vector<uint8_t> refused(batch.n_sequences(), 7);
    fill_tangents(scores, direction, {found.marginals.data(), sums.data(), found.pairs.data()},
                  refused.data(), n_threads, stop);
    AutomatonTangents out = found.out();
    out.arc_sums = rest.arc_sums.data();
    fill_tangents(batch.scores(), moves.direction(), refused.data(), out, n_threads, stop);
    const std::vector<double> rest_sums = batch.square(rest.arc_sums);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += rest_sums[i];
    CHECK_NEAR(largest_difference(found.marginals, expected.marginals), 0.0, tolerance);
    CHECK_NEAR(largest_difference(found.pairs, expected.pairs), 0.0, tolerance);
    CHECK_NEAR(largest_difference(sums, batch.square(expected.arc_sums)), 0.0, 20 * tolerance);
    if (tolerance < 1e-10) CHECK(refused == std::vector<uint8_t>(batch.n_sequences(), 0));
  }
}

TEST(chains) {
  for (const int n_labels : {1, 2, 3, 4, 5, 8, 9, 13, 17, 31})
    for (const Kind& kind : kKinds) {
      if (kind.edges) continue;
      context = "labels " + std::to_string(n_labels) + ", spread " + std::to_string(kind.spread);
      const PairBatch batch(n_labels, {20, 1, 0, 7, 2, 40}, kind);
      for (const bool arcs_move : {false, true})
        check_chain(batch, arcs_move, 1e-11 + 1e-12 * (kind.spread > 2 ? kind.spread : 0.0));
    }
}

TEST(long_groups_and_threads) {
  // Rows of so many states do not all stay: blocks of positions are made again.
  const Kind kind{1, 0, false};
  const Batch batch(random_grammar(3, 5, 60, kind), {1 << 15, 300, 1 << 14, 5, 0, 77}, kind);
  CHECK(batch.automaton.n_states() * int64_t{2} * (1 << 15) > (1 << 21));
  const Moves moves(batch, true);
  const Tangents found = tangents_of(batch, moves);
  CHECK(tangents_of(batch, moves, 3) == found);
  const int64_t n = batch.n_labels();
  for (int64_t i = 0; i < batch.n_positions(); i += 97) {
    double total = 0.0;
    for (int64_t k = 0; k < n; ++k) total += found.marginals[i * n + k];
    CHECK_NEAR(total, 0.0, 1e-12);
    const double* slopes = &found.arc_marginals[i * batch.n_arcs()];
    for (int64_t k = 0; k < n; ++k) {
      double sum = 0.0;
      for (const auto& [s, arc] : batch.grammar.arcs)
        if (s.back() == k) sum += slopes[arc];
      CHECK_NEAR(sum, found.marginals[i * n + k], 1e-11);
    }
  }
}

TEST(interrupts) {
  const PairBatch batch(2, {1 << 16}, {1, 0, false});
  const Moves moves(batch, false);
  const std::vector<double> arcs = batch.square(batch.arcs);
  const ChainScores scores{1, batch.offsets.data(), 2, batch.nodes.data(), arcs.data(), nullptr};
  Tangents found(batch);
  const ChainTangents out{found.marginals.data(), nullptr, nullptr};
  uint8_t refused = 0;
  Stop stop([] { return true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  CHECK_THROWS(Interrupted, fill_tangents(scores, moves.direction(), out, &refused, 1, stop),
               "interrupted");
  CHECK_THROWS(Interrupted,
               fill_tangents(batch.scores(), moves.direction(), nullptr, found.out(), 2, stop),
               "interrupted");
}

}  // namespace

}  // namespace hedgerow::tests
