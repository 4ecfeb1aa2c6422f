// Chains over label automata against their definition: strings, and all labellings of small ones.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "tests/batch.hpp"
#include "tests/check.hpp"
#include "trellis/automaton_chain.hpp"
#include "trellis/groups.hpp"
#include "trellis/lockstep.hpp"
#include "trellis/row_sums.hpp"
#include "trellis/semiring.hpp"

namespace hedgerow::tests {
namespace {

void check_arcs(const Batch& batch) {
  const Automaton& automaton = batch.automaton;
  const Grammar& grammar = batch.grammar;
  CHECK(automaton.n_states() == static_cast<int>(grammar.states.size()));
  CHECK(automaton.n_arcs() == batch.n_arcs());
  size_t n_pairs = 0;
  for (const auto& [s, arc] : grammar.arcs) n_pairs += s.size() == 2;
  CHECK(automaton.has_all_pairs() ==
        (n_pairs == static_cast<size_t>(batch.n_labels()) * batch.n_labels()));
  std::vector<int32_t> arcs(batch.n_labels());
  for (int i = 0; i < 20; ++i) {
    String s;
    int32_t state = Automaton::kBegin;
    for (int64_t t = 0; t < 8; ++t) {
      automaton.fill_arcs(state, arcs.data());
      for (int32_t k = 0; k < batch.n_labels(); ++k) {
        String longer = s;
        longer.push_back(k);
        CHECK(arcs[k] == longest_suffix(longer, grammar.arcs));
        CHECK(automaton.find_arc(state, k) == arcs[k]);
      }
      s.push_back(static_cast<int32_t>(below(batch.n_labels())));
      state = automaton.target(arcs[s.back()]);
    }
  }
}

Posteriors enumerate(const Batch& batch, const std::vector<Exact>& exact) {
  Posteriors expected(batch, 0.0);
  for (int64_t s = 0; s < batch.n_sequences(); ++s) {
    expected.log_z[s] = exact[s].log_z;
    expected.log_likelihoods[s] =
        batch.score(s, batch.labels.data() + batch.offsets[s]) - exact[s].log_z;
    for (const Exact::Labelling& one : exact[s].all)
      expected.add(batch, s, one.labels, exact[s].prob(one), batch.weights[s]);
  }
  return expected;
}

void check_best(const Batch& batch, const std::vector<Exact>& exact, double tolerance) {
  const std::vector<int32_t> best = viterbi_of(batch, batch.scores());
  for (const int64_t n_best : {1, 7, 100}) {
    const Paths found = best_of(batch, n_best);
    CHECK(std::equal(best.begin(), best.end(), found.labels.begin()));
    for (int64_t s = 0; s < batch.n_sequences(); ++s) {
      const auto& all = exact[s].all;
      const int64_t n_found = std::min<int64_t>(n_best, static_cast<int64_t>(all.size()));
      CHECK(found.counts[s] == n_found);
      std::set<String> distinct;
      for (int64_t rank = 0; rank < n_found; ++rank) {
        const int32_t* labels = &found.labels[rank * batch.n_positions()] + batch.offsets[s];
        CHECK(distinct.emplace(labels, labels + batch.length(s)).second);
        CHECK_NEAR(batch.score(s, labels), all[rank].score, tolerance);
        CHECK_NEAR(all[0].score - found.losses[rank * batch.n_sequences() + s], all[rank].score,
                   tolerance);
      }
    }
  }
}

// Whatever the random numbers, a labelling that is drawn is possible.
void check_samples(const Batch& batch) {
  const int64_t n_samples = 3, n_positions = batch.n_positions();
  std::vector<double> uniforms = random_numbers(n_samples * n_positions, 0, 1);
  std::fill_n(uniforms.begin(), n_positions, 0.0);
  std::fill_n(uniforms.begin() + n_positions, n_positions, std::nextafter(1.0, 0.0));
  const std::vector<int32_t> found = samples_of(batch, uniforms);
  for (int64_t i = 0; i < n_samples; ++i)
    for (int64_t s = 0; s < batch.n_sequences(); ++s)
      CHECK(batch.score(s, found.data() + i * n_positions + batch.offsets[s]) > -kInfinity);
}

void check_weighted(const Batch& batch, const std::vector<Exact>& exact, double tolerance) {
  const Posteriors found = weighted_of(batch, batch.scores(), batch.position_weights);
  for (int64_t s = 0; s < batch.n_sequences(); ++s) {
    const int32_t* labels = batch.labels.data() + batch.offsets[s];
    double sum = 0.0;
    for (int64_t t = 0; t < batch.length(s); ++t)
      sum += batch.position_weights[batch.offsets[s] + t] *
             (exact[s].log_sum(labels, t + 1) - exact[s].log_sum(labels, t));
    CHECK_NEAR(found.log_likelihoods[s], sum, 100 * tolerance);
  }
}

void check_against_enumeration(const Batch& batch, double spread) {
  const double tolerance = 1e-12 + 2e-14 * spread;
  std::vector<Exact> exact;
  for (int64_t s = 0; s < batch.n_sequences(); ++s) exact.emplace_back(batch, s);
  check_close(posteriors_of(batch, batch.scores()), enumerate(batch, exact), tolerance);
  check_best(batch, exact, tolerance);
  check_samples(batch);
  check_weighted(batch, exact, tolerance);
}

TEST(row_sums) {
  const std::vector<int64_t> offsets{0, 2, 2, 3};
  const std::vector<int32_t> places{0, 3, 1};
  constexpr int64_t kRows = 50000;
  std::vector<double> values(4 * kRows), expected;
  for (int64_t n = 0; n < 4 * kRows; ++n) values[n] = static_cast<double>(n % 11);
  for (int64_t n = 0; n < kRows; ++n) {
    const double* row = values.data() + 4 * n;
    expected.insert(expected.end(), {row[0] + row[3], 0.0, row[1]});
  }
  Stop stop(nullptr);
  for (const int n_threads : {1, 3}) {
    std::vector<double> sums(3 * kRows, -1.0);
    fill_row_sums({4, 3, offsets.data(), places.data()}, kRows, values.data(), sums.data(),
                  n_threads, stop);
    CHECK(sums == expected);
  }
  const std::vector<double> weights{0.5, 2.0, 4.0};
  std::vector<double> sums(3), row{2.0, 3.0, 5.0, 7.0};
  fill_row_sums({4, 3, offsets.data(), places.data(), weights.data()}, 1, row.data(), sums.data(),
                1, stop);
  CHECK((sums == std::vector{15.0, 0.0, 12.0}));
}

TEST(small_automata) {
  for (const int n_labels : {1, 2, 3, 4})
    for (const Kind& kind : kKinds)
      for (const int n_patterns : {0, 4, 15}) {
        context = describe(n_labels, kind) + " patterns=" + std::to_string(n_patterns);
        const int64_t length = n_labels <= 2 ? 6 : 4;
        Batch batch(random_grammar(n_labels, 5, n_patterns, kind, kind.edges),
                    {length, 1, 0, length, 2, 3}, kind);
        check_arcs(batch);
        check_against_enumeration(batch, kind.spread);
        if (kind.spread > 2) continue;
        // One sequence goes to log space, and leaves the others of its group behind.
        for (int64_t i = batch.offsets[3] * n_labels; i < batch.offsets[4] * n_labels; ++i)
          batch.nodes[i] *= 500;
        check_against_enumeration(batch, 1000);
      }
  context = "no sequences";
  const Batch none(random_grammar(2, 3, 4, kKinds[0], false), {}, kKinds[0]);
  CHECK(best_of(none, 2).counts.empty() && samples_of(none, {}).empty());
}

// Forward stays in scaled space, while backward runs out of range at position 2, after it has added
// arcs of later positions to the sums: they must not count twice.
TEST(late_fallback_of_automata) {
  const Kind kind{1, 0, false};
  Batch batch(random_grammar(3, 3, 5, kind, true), {7, 5}, kind);
  for (const auto& [s, arc] : batch.grammar.arcs) {
    batch.arcs[arc] = 0.0;
    if (s.size() > 1 && s[s.size() - 2] == 0) batch.arcs[arc] = s.back() == 2 ? -200.0 : -kInfinity;
  }
  batch.nodes[2 * 3 + 2] = -200.0;
  batch.labels.assign(batch.n_positions(), 1);
  check_against_enumeration(batch, 400);
}

TEST(block_rows) {
  for (const bool keep_all : {false, true}) {
    const int row_size = BlockRows::kMaxNumbers / 700;
    BlockRows rows(row_size);
    for (const int64_t n_positions : {0, 1, 500, 1000, 1001}) {
      rows.open(n_positions, keep_all);
      const bool small = keep_all || n_positions <= 500;
      CHECK(n_positions == 0 || (rows.n_blocks() == 1) == small);
      int64_t next = 0;
      for (int64_t block = 0; block < rows.n_blocks(); ++block) {
        CHECK(rows.begin(block) == next && rows.end(block) > next);
        for (; next < rows.end(block); ++next) {
          CHECK(rows.block_of(next) == block);
          rows.row(next)[row_size - 1] = broadcast(1.0);
        }
        rows.boundary(block)[row_size - 1] = broadcast(1.0);
        rows.boundary(block + 1)[row_size - 1] = broadcast(1.0);
      }
      CHECK(next == n_positions);
    }
  }
}

// Without the arcs of each position, of which there are too many.
Posteriors summed_posteriors_of(const Batch& batch) {
  Posteriors found(batch);
  found.arc_marginals.clear();
  fill(batch, batch.scores(), found);
  return found;
}

// More states times positions than are kept at a time.
TEST(blocks) {
  std::map<String, double, ByLength> patterns;
  for (int32_t bits = 0; bits < 1024; ++bits) {
    String s;
    for (int t = 0; t < 10; ++t) s.push_back(bits >> t & 1);
    patterns[s] = uniform(-1, 1);
  }
  const Kind kind{1, 0, false};
  Batch batch({2, patterns}, {140, 3, 70}, kind);
  batch.weights.assign(3, 1.0);
  CHECK(batch.length(0) * batch.automaton.n_states() > BlockRows::kMaxNumbers);
  const Posteriors found = summed_posteriors_of(batch);
  // Weighted and plain likelihoods go different ways, from either end.
  Posteriors weighted =
      weighted_of(batch, batch.scores(), std::vector<double>(batch.n_positions(), 1.0));
  for (int64_t s = 0; s < 3; ++s)
    weighted.log_z.push_back(batch.score(s, batch.labels.data() + batch.offsets[s]) -
                             weighted.log_likelihoods[s]);
  check_close(weighted, found, 1e-9);

  const std::vector<int32_t> best = viterbi_of(batch, batch.scores());
  const Paths two = best_of(batch, 2);  // which keeps all rows
  CHECK(std::equal(best.begin(), best.end(), two.labels.begin()));
  CHECK(two.losses[3] > 0.0 && two.losses[5] > 0.0);
  const std::vector<int32_t> drawn = samples_of(batch, random_numbers(batch.n_positions(), 0, 1));
  CHECK(std::all_of(drawn.begin(), drawn.end(), [](int32_t k) { return k == 0 || k == 1; }));

  // A label that is as good as forbidden takes its sequence to log space, one that is does not.
  Batch slow = batch, fast = batch;
  slow.nodes[1] = -1000.0;
  fast.nodes[1] = -kInfinity;
  check_close(summed_posteriors_of(slow), summed_posteriors_of(fast), 1e-9);
}

TEST(threads_do_not_matter_to_automata) {
  const Kind kind{3, 0.1, true};
  Batch batch(random_grammar(5, 4, 30, kind, true), std::vector<int64_t>(150, 11), kind);
  for (int64_t i = 300; i < 400; ++i) batch.nodes[i] *= 500;  // some go to log space
  const std::vector<double> uniforms = random_numbers(2 * batch.n_positions(), 0, 1);
  for (const int n_threads : {2, 5}) {
    CHECK(best_of(batch, 3, n_threads) == best_of(batch, 3));
    CHECK(samples_of(batch, uniforms, n_threads) == samples_of(batch, uniforms));
  }
}

void check_table(const TermTable& table, const std::vector<int32_t>& rows,
                 const std::vector<int>& terms_per_run, const std::vector<int32_t>& columns,
                 const std::vector<int32_t>& arcs) {
  CHECK(table.rows == rows);
  CHECK(table.columns == columns);
  CHECK(table.arcs == arcs);
  std::vector<int> n_terms;
  for (const TermTable::Run& run : table.runs) n_terms.push_back(run.n_terms);
  CHECK(n_terms == terms_per_run);
}

// The numbers of the comment at the top of automaton.cpp.
TEST(worked_example) {
  const std::vector<int32_t> failures{-1, 0, 0, 1}, last_labels{-1, 0, 1, 0};
  const std::vector<int32_t> sources{0, 0, 1, 2, 3}, labels{0, 1, 1, 0, 1};
  const std::vector<int32_t> targets{1, 2, 2, 3, 2}, links{-1, -1, 1, 0, 2};
  const Grammar grammar(2, {{{0, 1}, 0.0}, {{1, 0, 1}, 0.0}});
  CHECK(grammar.failures == failures && grammar.last_labels == last_labels);
  CHECK(grammar.sources == sources && grammar.labels == labels);
  CHECK(grammar.targets == targets && grammar.links == links);

  const Automaton automaton(grammar.tables());
  const std::vector<int32_t> numbers{0, 1, 3, 2};  // in preorder
  for (int32_t arc = 0; arc < 5; ++arc) CHECK(automaton.target(arc) == numbers[targets[arc]]);
  CHECK(automaton.label_bounds == (std::vector<int32_t>{1, 3, 4}));
  const std::vector<std::pair<int32_t, int32_t>> arcs_taken{{0, 1}, {0, 2}, {0, 4}, {3, 1}};
  for (int32_t state = 0; state < 4; ++state) {
    CHECK(automaton.find_arc(state, 0) == arcs_taken[state].first);
    CHECK(automaton.find_arc(state, 1) == arcs_taken[state].second);
  }
  CHECK(automaton.n_cells() == 6 && automaton.sums.size() == 2);
  CHECK(automaton.sums[0].sum == 4 && automaton.sums[0].left == 1 && automaton.sums[0].right == 2);
  CHECK(automaton.sums[1].sum == 5 && automaton.sums[1].left == 0 && automaton.sums[1].right == 4);
  check_table(automaton.to_states, {0, 1, 2, 3}, {0, 1, 4}, {5, 3, 0, 3, 1, 2}, {0, 3, 1, 1, 2, 4});
  check_table(automaton.to_cells, {4, 0, 1, 2, 5, 3}, {0, 1, 2}, {3, 3, 3, 1, 3, 2},
              {1, 2, 4, 0, 1, 3});

  const int64_t offsets[] = {0, 1};
  const double nodes[] = {std::log(0.4), 0.0};
  const double arcs[] = {0.0, 0.0, std::log(0.5), 0.0, std::log(0.25)};
  const AutomatonScores scores{automaton, 1, offsets, nodes, arcs, nullptr};
  const TermWeights weights(scores, false);
  Lockstep<SumProduct> steps(scores, weights);
  steps.open({{0}, {1}, {true}, 1});
  const Packed one(broadcast(1.0));
  Numbers alpha_before, factors(2), alpha(4), marginals(2);
  for (const double x : {0.0, 0.5, 0.2, 0.3}) alpha_before.push_back(broadcast(x));
  const auto check_first_lane = [](const Packed* found, const std::vector<double>& expected) {
    for (size_t i = 0; i < expected.size(); ++i) CHECK_NEAR(found[i].values[0], expected[i], 1e-15);
  };
  steps.load_alpha(alpha_before.data());
  steps.fill_factors(0, factors.data());
  const Packed norm = steps.forward(0, factors.data(), one, alpha.data());
  check_first_lane(factors.data(), {0.4, 1.0});
  check_first_lane(alpha.data(), {0.0, 0.28, 0.12, 0.6});
  check_first_lane(&norm, {1.0});
  steps.begin_beta(0, one);
  steps.reach_with_marginals(0, factors.data(), one, one, alpha.data(), marginals.data());
  check_first_lane(marginals.data(), {0.4, 0.6});
  steps.backward();
  check_first_lane(steps.beta(), {1.4, 0.9, 0.65, 1.4});
  CHECK(!steps.refused(0));
}

TEST(wrong_tables) {
  const Grammar good(2, {{{0, 1}, 1.0}, {{1, 0, 1}, 1.0}});
  const auto check_wrong = [&](std::vector<int32_t> Grammar::* table, int place, int32_t value,
                               const std::string& message) {
    Grammar grammar = good;
    (grammar.*table)[place] = value;
    CHECK_THROWS(std::invalid_argument, Automaton(grammar.tables()), message);
  };
  CHECK(Automaton(good.tables()).n_states() == 4);
  check_wrong(&Grammar::failures, 0, 0, "state 0 must not have a failure state");
  check_wrong(&Grammar::failures, 2, 2, "a failure state must come before its state");
  check_wrong(&Grammar::targets, 3, 1 << 30, "an arc leads out of range");
  check_wrong(&Grammar::labels, 3, -1, "an arc leads out of range");
  check_wrong(&Grammar::sources, 4, 1, "arcs must be sorted");
  check_wrong(&Grammar::links, 4, 1 << 30, "every other arc must link to an arc before it");
}

}  // namespace
}  // namespace hedgerow::tests
