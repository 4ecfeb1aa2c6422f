// Chains over label automata against their definition: strings, and all labellings of small ones.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "tests/automaton_naive.hpp"
#include "tests/check.hpp"
#include "trellis/automaton_chain.hpp"
#include "trellis/groups.hpp"
#include "trellis/lockstep.hpp"
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

void check_posteriors(const Batch& batch, const std::vector<Exact>& exact, double tolerance) {
  const Posteriors found = posteriors_of(batch);
  Posteriors expected(batch);
  expected.arc_sums.assign(batch.n_arcs(), 0.0);
  for (int64_t s = 0; s < batch.n_sequences(); ++s) {
    const Exact& one = exact[s];
    const int64_t begin = batch.offsets[s];
    CHECK_NEAR(found.log_z[s], one.log_z, tolerance);
    CHECK_NEAR(found.log_likelihoods[s], batch.score(s, &batch.labels[begin]) - one.log_z,
               tolerance);
    const auto put = [&](const std::vector<double>& part, int64_t width,
                         std::vector<double>& whole) {
      std::copy(part.begin(), part.end(), whole.begin() + begin * width);
    };
    const int64_t n = batch.n_labels();
    put(one.marginals, n, expected.marginals);
    put(one.arc_marginals, batch.n_arcs(), expected.arc_marginals);
    if (!batch.edges.empty()) put(one.pairs, n * n, expected.pairs);
    for (size_t i = 0; i < one.arc_marginals.size(); ++i)
      expected.arc_sums[i % batch.n_arcs()] += batch.weights[s] * one.arc_marginals[i];
  }
  CHECK_NEAR(largest_difference(found.marginals, expected.marginals), 0.0, tolerance);
  CHECK_NEAR(largest_difference(found.arc_marginals, expected.arc_marginals), 0.0, tolerance);
  CHECK_NEAR(largest_difference(found.pairs, expected.pairs), 0.0, tolerance);
  CHECK_NEAR(largest_difference(found.arc_sums, expected.arc_sums), 0.0, 20 * tolerance);
}

void check_best(const Batch& batch, const std::vector<Exact>& exact, double tolerance) {
  const std::vector<int32_t> best = viterbi_of(batch);
  for (const int64_t n_best : {1, 7, 100}) {
    const Paths found = best_of(batch, n_best);
    CHECK(std::equal(best.begin(), best.end(), found.labels.begin()));
    for (int64_t s = 0; s < batch.n_sequences(); ++s) {
      const auto& all = exact[s].all;
      const int64_t n_found = std::min<int64_t>(n_best, static_cast<int64_t>(all.size()));
      CHECK(found.counts[s] == n_found);
      std::vector<String> distinct;
      for (int64_t rank = 0; rank < n_found; ++rank) {
        const int32_t* labels = &found.labels[rank * batch.n_positions()] + batch.offsets[s];
        distinct.emplace_back(labels, labels + batch.length(s));
        CHECK_NEAR(batch.score(s, labels), all[rank].score, tolerance);
        CHECK_NEAR(all[0].score - found.losses[rank * batch.n_sequences() + s], all[rank].score,
                   tolerance);
      }
      std::sort(distinct.begin(), distinct.end());
      CHECK(std::adjacent_find(distinct.begin(), distinct.end()) == distinct.end());
    }
  }
}

// Every label is the first whose cumulated probability exceeds the random number.
void check_samples(const Batch& batch, const std::vector<Exact>& exact) {
  const int64_t n_samples = 3, n_positions = batch.n_positions();
  std::vector<double> uniforms = random_uniforms(n_samples * n_positions);
  std::fill_n(uniforms.begin(), n_positions, 0.0);
  std::fill_n(uniforms.begin() + n_positions, n_positions, std::nextafter(1.0, 0.0));
  const std::vector<int32_t> found = samples_of(batch, uniforms);
  for (int64_t i = 0; i < n_samples; ++i)
    for (int64_t s = 0; s < batch.n_sequences(); ++s) {
      String labels(&found[i * n_positions] + batch.offsets[s],
                    &found[i * n_positions] + batch.offsets[s + 1]);
      CHECK(batch.score(s, labels.data()) > -kInfinity);
      for (int64_t t = 0; t < batch.length(s); ++t) {
        const double u = uniforms[i * n_positions + batch.offsets[s] + t];
        String other = labels;
        double below_it = 0.0, up_to_it = 0.0;
        for (int32_t k = 0; k <= labels[t]; ++k) {
          other[t] = k;
          below_it = up_to_it;
          up_to_it +=
              std::exp(exact[s].log_sum(other.data(), t + 1) - exact[s].log_sum(labels.data(), t));
        }
        CHECK(below_it <= u + 1e-9 && u <= up_to_it + 1e-9);
      }
    }
}

void check_weighted(const Batch& batch, const std::vector<Exact>& exact, double tolerance) {
  const Posteriors found = weighted_of(batch, batch.position_weights);
  for (int64_t s = 0; s < batch.n_sequences(); ++s) {
    const int32_t* labels = batch.labels.data() + batch.offsets[s];
    double sum = 0.0;
    for (int64_t t = 0; t < batch.length(s); ++t)
      sum += batch.position_weights[batch.offsets[s] + t] *
             (exact[s].log_sum(labels, t + 1) - exact[s].log_sum(labels, t));
    CHECK_NEAR(found.log_likelihoods[s], sum, 100 * tolerance);
  }
  // With the same weight w at every position the counts are w times the marginals.
  Posteriors plain = posteriors_of(batch);
  const Posteriors equal = weighted_of(batch, std::vector<double>(batch.n_positions(), 1.5));
  for (auto* values : {&plain.log_likelihoods, &plain.marginals, &plain.pairs})
    for (double& x : *values) x *= 1.5;
  CHECK_NEAR(largest_difference(equal.log_likelihoods, plain.log_likelihoods), 0.0,
             100 * tolerance);
  CHECK_NEAR(largest_difference(equal.marginals, plain.marginals), 0.0, 10 * tolerance);
  CHECK_NEAR(largest_difference(equal.pairs, plain.pairs), 0.0, 10 * tolerance);
}

void check_against_enumeration(const Batch& batch, double spread) {
  const double tolerance = 1e-12 + 2e-14 * spread;
  std::vector<Exact> exact;
  for (int64_t s = 0; s < batch.n_sequences(); ++s) exact.emplace_back(batch, s);
  check_posteriors(batch, exact, tolerance);
  check_best(batch, exact, tolerance);
  check_samples(batch, exact);
  check_weighted(batch, exact, tolerance);
}

// Any subset of the outputs may be asked for; what is given does not change.
void check_subsets(const Batch& batch) {
  const Posteriors all = posteriors_of(batch);
  for (int wanted = 0; wanted < 32; ++wanted) {
    Stop stop(nullptr);
    Posteriors found(batch);
    AutomatonPosteriors out = found.out(batch.weights.data());
    if (!(wanted & 1)) out.log_likelihoods = nullptr;
    if (!(wanted & 2)) out.marginals = nullptr;
    if (!(wanted & 4)) out.arc_sums = nullptr;
    if (!(wanted & 8)) out.arc_marginals = nullptr;
    if (!(wanted & 16)) out.pairs = nullptr;
    fill_posteriors(batch.scores(), wanted & 1 ? batch.labels.data() : nullptr, out, 1, stop);
    CHECK(found.log_z == all.log_z);
    if (wanted & 1) CHECK(found.log_likelihoods == all.log_likelihoods);
    if (wanted & 2) CHECK(found.marginals == all.marginals);
    if (wanted & 4) CHECK(found.arc_sums == all.arc_sums);
    if (wanted & 8) CHECK(found.arc_marginals == all.arc_marginals);
    if (wanted & 16) CHECK(found.pairs == all.pairs);
  }
}

// Sums over arcs, without any other output.
void check_patterns(const Batch& batch) {
  const auto n_arcs = static_cast<int64_t>(batch.arcs.size());
  const Posteriors all = posteriors_of(batch);
  const std::vector<int64_t> offsets{0, 1, 1, n_arcs + 1};  // the last arc, nothing, all arcs
  std::vector<int32_t> arcs{static_cast<int32_t>(n_arcs - 1)};
  for (int64_t a = 0; a < n_arcs; ++a) arcs.push_back(static_cast<int32_t>(a));
  Stop stop(nullptr);
  std::vector<double> marginals(batch.n_positions() * 3, NAN);
  const PatternMarginals patterns{3, offsets.data(), arcs.data(), marginals.data()};
  AutomatonPosteriors out{};
  out.patterns = &patterns;
  fill_posteriors(batch.scores(), nullptr, out, 1, stop);
  for (int64_t t = 0; t < batch.n_positions(); ++t) {
    CHECK(marginals[3 * t] == all.arc_marginals[(t + 1) * n_arcs - 1]);
    CHECK(marginals[3 * t + 1] == 0.0);
    CHECK_NEAR(marginals[3 * t + 2], 1.0, 1e-9);
  }
}

const Kind kKinds[] = {{2, 0, false},   {2, 0.3, false},   {2, 0, true},      {2, 0.3, true},
                       {100, 0, false}, {400, 0.3, false}, {1e5, 0.2, false}, {1e5, 0.2, true}};

std::string describe(int n_labels, const Kind& kind) {
  return "automaton K=" + std::to_string(n_labels) + " spread=" + std::to_string(kind.spread) +
         " holes=" + std::to_string(kind.holes) + " edges=" + std::to_string(kind.edges);
}

TEST(small_automata) {
  for (const int n_labels : {1, 2, 3, 4})
    for (const Kind& kind : kKinds)
      for (const int n_patterns : {0, 4, 15}) {
        context = describe(n_labels, kind) + " patterns=" + std::to_string(n_patterns);
        const int64_t length = n_labels <= 2 ? 6 : 4;
        Batch batch(random_grammar(n_labels, 5, n_patterns, kind), {length, 1, 0, length, 2, 3},
                    kind);
        check_arcs(batch);
        check_against_enumeration(batch, kind.spread);
        if (n_labels == 3) check_subsets(batch);
        check_patterns(batch);
        if (kind.spread > 2) continue;
        // One sequence goes to log space, and leaves the others of its group behind.
        for (int64_t i = batch.offsets[3] * n_labels; i < batch.offsets[4] * n_labels; ++i)
          batch.nodes[i] *= 500;
        check_against_enumeration(batch, 1000);
      }
  context = "no sequences";
  const Batch none(random_grammar(2, 3, 4, kKinds[2]), {}, kKinds[2]);
  check_subsets(none);
  CHECK(viterbi_of(none).empty() && best_of(none, 2).counts.empty());
  CHECK(samples_of(none, {}).empty());
}

// Forward stays in scaled space, while backward runs out of range at position 2, after it has added
// arcs of later positions to the sums: they must not count twice.
TEST(late_fallback) {
  const Kind kind{1, 0, false};
  Batch batch(random_grammar(3, 3, 5, {1, 0, true}), {7, 5}, kind);
  for (const auto& [s, arc] : batch.grammar.arcs) {
    batch.arcs[arc] = 0.0;
    if (s.size() > 1 && s[s.size() - 2] == 0) batch.arcs[arc] = s.back() == 2 ? -200.0 : -kInfinity;
  }
  batch.nodes[2 * 3 + 2] = -200.0;
  batch.labels.assign(batch.n_positions(), 1);
  check_against_enumeration(batch, 400);
}

// Derivative of all weighted likelihoods with respect to one score.
double slope(Batch& batch, double& score) {
  const double before = score, step = 1e-5;
  double difference = 0.0;
  for (const double sign : {1.0, -1.0}) {
    score = before + sign * step;
    for (int64_t s = 0; s < batch.n_sequences(); ++s) {
      const Exact exact(batch, s);
      const int32_t* labels = batch.labels.data() + batch.offsets[s];
      for (int64_t t = 0; t < batch.length(s); ++t)
        difference += sign * batch.position_weights[batch.offsets[s] + t] *
                      (exact.log_sum(labels, t + 1) - exact.log_sum(labels, t));
    }
  }
  score = before;
  return difference / (2 * step);
}

TEST(weighted_gradient) {
  for (const bool edges : {false, true}) {
    const Kind kind{2, 0.2, edges};
    context = describe(2, kind);
    Batch batch(random_grammar(2, 4, 5, kind), {4, 0, 1, 3}, kind);
    const Posteriors found = weighted_of(batch, batch.position_weights);
    std::vector<double> observed(batch.n_arcs(), 0.0);
    for (int64_t s = 0; s < batch.n_sequences(); ++s)
      for (int64_t t = 0; t < batch.length(s); ++t) {
        const int64_t i = batch.offsets[s] + t;
        const double weight = batch.position_weights[i];
        observed[batch.arc_taken(&batch.labels[batch.offsets[s]], t)] += weight;
        for (int32_t k = 0; k < 2; ++k) {
          const double seen = k == batch.labels[i] ? weight : 0.0;
          CHECK_NEAR(seen - found.marginals[i * 2 + k], slope(batch, batch.nodes[i * 2 + k]), 1e-7);
          for (int32_t j = 0; edges && t > 0 && j < 2; ++j) {
            const int64_t at = (i * 2 + j) * 2 + k;
            CHECK_NEAR((j == batch.labels[i - 1] ? seen : 0.0) - found.pairs[at],
                       slope(batch, batch.edges[at]), 1e-7);
          }
        }
      }
    for (int64_t a = 0; a < batch.n_arcs(); ++a)
      CHECK_NEAR(observed[a] - found.arc_sums[a], slope(batch, batch.arcs[a]), 1e-7);
  }
}

TEST(block_rows) {
  for (const bool keep_all : {false, true}) {
    BlockRows rows(3000);
    for (const int64_t n_positions : {0, 1, 500, 1000, 1001}) {
      rows.open(n_positions, keep_all);
      const bool small = keep_all || n_positions <= 500;
      CHECK(n_positions == 0 || (rows.n_blocks() == 1) == small);
      int64_t next = 0;
      for (int64_t block = 0; block < rows.n_blocks(); ++block) {
        CHECK(rows.begin(block) == next && rows.end(block) > next);
        for (; next < rows.end(block); ++next) {
          CHECK(rows.block_of(next) == block);
          rows.row(next)[2999] = broadcast(1.0);
        }
        rows.boundary(block)[2999] = rows.boundary(block + 1)[2999] = broadcast(1.0);
      }
      CHECK(next == n_positions);
    }
  }
}

// Log Z over all pairs of a state and a label, one after the other.
double plain_log_z(const Batch& batch, int64_t s) {
  const Automaton& automaton = batch.automaton;
  std::vector<double> alpha(automaton.n_states(), 0.0), next(alpha);
  alpha[Automaton::kBegin] = 1.0;
  double log_z = 0.0;
  std::vector<int32_t> arcs(automaton.n_states() * batch.n_labels());
  for (int32_t q = 0; q < automaton.n_states(); ++q)
    automaton.fill_arcs(q, &arcs[q * batch.n_labels()]);
  for (int64_t i = batch.offsets[s]; i < batch.offsets[s + 1]; ++i) {
    std::fill(next.begin(), next.end(), 0.0);
    double total = 0.0;
    for (int32_t q = 0; q < automaton.n_states(); ++q)
      for (int32_t k = 0; k < batch.n_labels(); ++k) {
        const int32_t arc = arcs[q * batch.n_labels() + k];
        const double mass =
            alpha[q] * std::exp(batch.nodes[i * batch.n_labels() + k] + batch.arcs[arc]);
        next[automaton.target(arc)] += mass;
        total += mass;
      }
    for (size_t q = 0; q < alpha.size(); ++q) alpha[q] = next[q] / total;
    log_z += std::log(total);
  }
  return log_z;
}

// Without the arcs of each position, of which there are too many.
Posteriors summed_posteriors_of(const Batch& batch) {
  Stop stop(nullptr);
  Posteriors found(batch);
  AutomatonPosteriors out = found.out(nullptr);
  out.arc_marginals = nullptr;
  fill_posteriors(batch.scores(), batch.labels.data(), out, 1, stop);
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
  const Batch batch({2, patterns}, {2100, 3, 1400}, kind);
  CHECK(batch.length(0) * batch.automaton.n_states() > 1 << 21);
  const Posteriors found = summed_posteriors_of(batch);
  for (int64_t s = 0; s < 3; ++s) CHECK_NEAR(found.log_z[s], plain_log_z(batch, s), 1e-9);
  // Weighted and plain likelihoods go different ways, from either end.
  const Posteriors weighted = weighted_of(batch, std::vector<double>(batch.n_positions(), 1.0));
  CHECK_NEAR(largest_difference(weighted.log_likelihoods, found.log_likelihoods), 0.0, 1e-9);
  CHECK_NEAR(largest_difference(weighted.marginals, found.marginals), 0.0, 1e-11);
  CHECK_NEAR(largest_difference(weighted.arc_sums, found.arc_sums), 0.0, 1e-9);

  const std::vector<int32_t> best = viterbi_of(batch);
  const Paths two = best_of(batch, 2);  // which keeps all rows
  CHECK(std::equal(best.begin(), best.end(), two.labels.begin()));
  CHECK(two.losses[3] > 0.0 && two.losses[5] > 0.0);
  const std::vector<int32_t> drawn = samples_of(batch, random_uniforms(batch.n_positions()));
  CHECK(std::all_of(drawn.begin(), drawn.end(), [](int32_t k) { return k == 0 || k == 1; }));

  // A label that is as good as forbidden takes its sequence to log space, one that is does not.
  Batch slow = batch, fast = batch;
  slow.nodes[1] = -1000.0;
  fast.nodes[1] = -kInfinity;
  const Posteriors one = summed_posteriors_of(slow), other = summed_posteriors_of(fast);
  CHECK_NEAR(largest_difference(one.log_z, other.log_z), 0.0, 1e-9);
  CHECK_NEAR(largest_difference(one.marginals, other.marginals), 0.0, 1e-11);
  CHECK_NEAR(largest_difference(one.arc_sums, other.arc_sums), 0.0, 1e-9);
}

TEST(threads_do_not_matter) {
  const std::vector<int64_t> lengths(150, 11);
  for (const bool edges : {false, true}) {
    const Kind kind{3, 0.1, edges};
    context = describe(5, kind);
    Batch batch(random_grammar(5, 4, 30, kind), lengths, kind);
    for (int64_t i = 300; i < 400; ++i) batch.nodes[i] *= 500;  // some go to log space
    const Posteriors one = posteriors_of(batch);
    const Posteriors weighted = weighted_of(batch, batch.position_weights);
    const std::vector<double> uniforms = random_uniforms(2 * batch.n_positions());
    for (const int n_threads : {2, 5}) {
      CHECK(posteriors_of(batch, n_threads) == one);
      CHECK(weighted_of(batch, batch.position_weights, n_threads) == weighted);
      CHECK(viterbi_of(batch, n_threads) == viterbi_of(batch));
      CHECK(best_of(batch, 3, n_threads) == best_of(batch, 3));
      CHECK(samples_of(batch, uniforms, n_threads) == samples_of(batch, uniforms));
    }
  }
}

TEST(viterbi_ties) {
  const Kind kind{0, 0, false};
  const Batch batch(random_grammar(4, 4, 10, kind), {4, 1}, kind);
  CHECK(viterbi_of(batch) == std::vector<int32_t>(batch.n_positions(), 0));
}

TEST(impossible_labels) {
  for (const bool edges : {false, true}) {
    const Kind kind{1, 0, edges};
    Batch batch({2, {{{0, 0}, 0.0}, {{0, 1}, -kInfinity}, {{1, 0}, 0.0}, {{1, 1}, 0.0}}}, {3},
                kind);
    batch.labels = {0, 1, 1};
    CHECK(posteriors_of(batch).log_likelihoods[0] == -kInfinity);
  }
}

void check_refused(const Batch& batch, const std::string& message) {
  const std::vector<double> uniforms(batch.n_positions(), 0.5);
  CHECK_THROWS(std::invalid_argument, posteriors_of(batch, 2), message);
  CHECK_THROWS(std::invalid_argument, weighted_of(batch, batch.position_weights, 2), message);
  CHECK_THROWS(std::invalid_argument, viterbi_of(batch, 2), message);
  CHECK_THROWS(std::invalid_argument, best_of(batch, 2, 2), message);
  CHECK_THROWS(std::invalid_argument, samples_of(batch, uniforms, 2), message);
}

TEST(refusals) {
  for (const bool edges : {false, true}) {
    const Kind kind{1, 0, edges};
    context = describe(3, kind);
    const Batch good(random_grammar(3, 3, 6, kind), {2, 4}, kind);
    for (const double wrong : {std::nan(""), kInfinity}) {
      Batch batch = good;
      batch.arcs[2] = wrong;
      check_refused(batch, "the score of arc 2 is NaN or +inf");
      batch = good;
      batch.nodes[3 * 3] = wrong;
      check_refused(batch, "node score is NaN or +inf at position 1 of sequence 1");
      if (!edges) continue;
      batch = good;
      batch.edges[4 * 9 + 2] = wrong;
      check_refused(batch, "edge score is NaN or +inf at position 2 of sequence 1");
    }
    Batch batch = good;
    std::fill_n(batch.nodes.begin() + 4 * 3, 3, -kInfinity);
    check_refused(batch, "sequence 1 has no labelling with a finite score");
    batch = good;
    std::fill(batch.arcs.begin(), batch.arcs.end(), -kInfinity);
    check_refused(batch, "has no labelling with a finite score");
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
  check_wrong(&Grammar::failures, 0, 0, "state 0 has no failure state");
  check_wrong(&Grammar::failures, 2, 2, "a failure state must come before its state");
  check_wrong(&Grammar::targets, 3, 1 << 30, "an arc leads out of range");
  check_wrong(&Grammar::labels, 3, -1, "an arc leads out of range");
  check_wrong(&Grammar::sources, 4, 1, "arcs must be sorted");
  check_wrong(&Grammar::links, 4, 1 << 30, "a link to one before them");
}

TEST(interrupts) {
  const Kind kind{1, 0, false};
  const Batch batch(random_grammar(2, 3, 3, kind), {1 << 16}, kind);
  Posteriors found(batch);
  std::vector<int32_t> best(batch.n_positions());
  Stop stop([] { return true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  CHECK_THROWS(Interrupted, fill_viterbi(batch.scores(), best.data(), 1, stop), "interrupted");
  CHECK_THROWS(Interrupted, fill_posteriors(batch.scores(), nullptr, found.out(nullptr), 2, stop),
               "interrupted");
}

}  // namespace

}  // namespace hedgerow::tests
