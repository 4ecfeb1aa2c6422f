// Tangents against their definition, covariances over all labellings of small chains.
#include "trellis/tangent.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "tests/batch.hpp"
#include "tests/check.hpp"
#include "trellis/groups.hpp"

namespace hedgerow::tests {
namespace {

// Moves of all scores, huge where a node is forbidden.
struct Moves {
  std::vector<double> marginals, nodes, arcs;

  Moves(const Batch& batch, bool arcs_move)
      : marginals(posteriors_of(batch, batch.scores()).marginals) {
    for (const double node : batch.nodes)
      nodes.push_back(node == -kInfinity ? 1e300 : uniform(-1, 1));
    if (arcs_move) arcs = random_numbers(batch.n_arcs(), -1, 1);
  }
  Direction direction() const {
    return {marginals.data(), nodes.data(), arcs.empty() ? nullptr : arcs.data()};
  }
};

// The marginals are always filled, the others if they are requested.
struct SlopesOfEvents : Events {
  auto fields() { return std::array{&arc_sums, &arc_marginals, &pairs}; }
  bool operator==(const SlopesOfEvents&) const = default;
};

AutomatonTangents pointers_to(Events& out) {
  return {out.marginals.data(), data_or_null(out.arc_sums), data_or_null(out.arc_marginals),
          data_or_null(out.pairs)};
}

Events tangents_of(const Batch& batch, const Moves& moves, int n_threads = 1) {
  Stop stop(nullptr);
  Events found(batch);
  fill_tangents(batch.scores(), moves.direction(), nullptr, pointers_to(found), n_threads, stop);
  return found;
}

// Cov(event, V) = sum over the labellings of the event of P (V - E[V]).
Events enumerate(const Batch& batch, const Moves& moves) {
  Events exact(batch, 0.0);
  for (int64_t s = 0; s < batch.n_sequences(); ++s) {
    const Exact one(batch, s);
    std::vector<double> gains;
    double mean = 0.0;
    for (const Exact::Labelling& labelling : one.all) {
      const int32_t* path = labelling.labels.data();
      double gain = 0.0;
      for (int64_t t = 0; t < batch.length(s); ++t) {
        gain += moves.nodes[(batch.offsets[s] + t) * batch.n_labels() + path[t]];
        if (!moves.arcs.empty()) gain += moves.arcs[batch.arc_taken(path, t)];
      }
      gains.push_back(gain);
      mean += one.prob(labelling) * gain;
    }
    for (size_t i = 0; i < one.all.size(); ++i)
      exact.add(batch, s, one.all[i].labels, one.prob(one.all[i]) * (gains[i] - mean));
  }
  return exact;
}

TEST(tangents_of_small_automata) {
  for (const int n_labels : {1, 2, 3})
    for (const Kind& kind : kKinds)
      for (const bool arcs_move : {false, true}) {
        context = describe(n_labels, kind);
        const Batch batch(random_grammar(n_labels, 4, 6, kind, kind.edges), {5, 1, 0, 4, 2, 3},
                          kind);
        const Moves moves(batch, arcs_move);
        check_close(tangents_of(batch, moves), enumerate(batch, moves),
                    1e-11 + 1e-13 * kind.spread);
        check_subsets(SlopesOfEvents{Events(batch)}, [&](SlopesOfEvents& out) {
          Stop stop(nullptr);
          fill_tangents(batch.scores(), moves.direction(), nullptr, pointers_to(out), 1, stop);
        });
      }
}

// The dense kernel, and the sequences that it refuses over the automaton.
void check_chain(const Batch& batch, bool arcs_move, double tolerance) {
  Stop stop(nullptr);
  Moves moves(batch, arcs_move);
  if (arcs_move) std::fill_n(moves.arcs.begin(), batch.n_labels(), 0.0);  // of no pairs
  const Direction direction{moves.marginals.data(), moves.nodes.data(),
                            arcs_move ? moves.arcs.data() + batch.n_labels() : nullptr};
  const Events expected = of_first_order(tangents_of(batch, moves), batch);
  for (const int n_threads : {1, 3}) {
    Events found = of_first_order(Events(batch), batch), rest(batch);
    rest.arc_marginals.clear();
    std::vector<uint8_t> refused(batch.n_sequences(), 7);
    fill_tangents(batch.chain(), direction,
                  {found.marginals.data(), found.arc_sums.data(), found.pairs.data()},
                  refused.data(), n_threads, stop);
    AutomatonTangents out = pointers_to(found);
    out.arc_sums = rest.arc_sums.data();
    fill_tangents(batch.scores(), moves.direction(), refused.data(), out, n_threads, stop);
    for (size_t i = 0; i < found.arc_sums.size(); ++i)
      found.arc_sums[i] += rest.arc_sums[batch.n_labels() + i];
    check_close(found, expected, tolerance);
    if (tolerance < 1e-10) CHECK(refused == std::vector<uint8_t>(batch.n_sequences(), 0));
  }
}

TEST(chains) {
  for (const int n_labels : {1, 2, 3, 4, 5, 8, 9, 13, 17, 31})
    for (const Kind& kind : kinds_for(n_labels)) {
      context = describe(n_labels, kind);
      const Batch batch = first_order(n_labels, {20, 1, 0, 7, 2, 40}, kind);
      for (const bool arcs_move : {false, true})
        check_chain(batch, arcs_move, 1e-11 + 1e-12 * (kind.spread > 2 ? kind.spread : 0.0));
    }
}

TEST(long_groups_and_threads) {
  // Rows of this many states do not all stay: blocks of positions are made again.
  const Kind kind{1, 0, false};
  const Batch batch(random_grammar(3, 5, 60, kind, false), {1 << 11, 300, 5, 0, 77}, kind);
  CHECK(batch.automaton.n_states() * 2 * batch.length(0) > BlockRows::kMaxNumbers);
  const Moves moves(batch, true);
  const Events found = tangents_of(batch, moves);
  CHECK(tangents_of(batch, moves, 3) == found);
  const int64_t n = batch.n_labels();
  for (int64_t i = 0; i < batch.n_positions(); i += 97) {
    double total = 0.0;
    for (int64_t k = 0; k < n; ++k) total += found.marginals[i * n + k];
    CHECK_NEAR(total, 0.0, 1e-12);
  }
}

TEST(interrupts_of_tangents) {
  for (const bool edges : {false, true}) {
    const Batch batch = first_order(2, {1 << 14}, {1, 0, edges});
    const Moves moves(batch, false);
    Events found(batch);
    const ChainTangents out{found.marginals.data(), nullptr, nullptr};
    uint8_t refused = 0;
    Stop stop([] { return true; });
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    CHECK_THROWS(Interrupted,
                 fill_tangents(batch.chain(), moves.direction(), out, &refused, 1, stop),
                 "interrupted");
    CHECK_THROWS(
        Interrupted,
        fill_tangents(batch.scores(), moves.direction(), nullptr, pointers_to(found), 2, stop),
        "interrupted");
  }
}

}  // namespace
}  // namespace hedgerow::tests
