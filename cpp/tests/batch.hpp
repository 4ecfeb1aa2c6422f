// Random batches of sequences, the results of the kernels, and the same by enumeration of all
// labellings.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "tests/check.hpp"
#include "trellis/automaton_chain.hpp"
#include "trellis/chain.hpp"

namespace hedgerow::tests {
namespace {

using String = std::vector<int32_t>;

struct ByLength {
  bool operator()(const String& a, const String& b) const {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  }
};

using Numbered = std::map<String, int32_t, ByLength>;

inline String without_first(const String& s) { return String(s.begin() + 1, s.end()); }
inline String without_last(const String& s) { return String(s.begin(), s.end() - 1); }

// The longest suffix that has a number; -1 if there is none.
inline int32_t longest_suffix(String s, const Numbered& numbered) {
  for (;; s = without_first(s)) {
    const auto found = numbered.find(s);
    if (found != numbered.end()) return found->second;
    if (s.empty()) return -1;
  }
}

// The automaton of some patterns, by its definition.
struct Grammar {
  int n_labels = 0;
  std::map<String, double, ByLength> patterns;  // and their scores
  Numbered states, arcs;
  std::vector<int32_t> failures, last_labels, sources, labels, targets, links;
  std::vector<double> arc_scores;

  Grammar(int n, const std::map<String, double, ByLength>& scored) : n_labels(n), patterns(scored) {
    states[{}] = 0;
    for (int32_t k = 0; k < n_labels; ++k) states[{k}] = arcs[{k}] = 0;
    for (const auto& [pattern, score] : patterns)
      for (String s = pattern; !s.empty(); s = without_last(s)) {
        arcs[s] = 0;
        if (s != pattern) states[s] = 0;
      }
    int32_t number = 0;
    for (auto& [s, state] : states) state = number++;
    number = 0;
    for (auto& [s, arc] : arcs) arc = number++;
    for (const auto& [s, state] : states) {
      failures.push_back(s.empty() ? -1 : longest_suffix(without_first(s), states));
      last_labels.push_back(s.empty() ? -1 : s.back());
    }
    for (const auto& [s, arc] : arcs) {
      sources.push_back(states.at(without_last(s)));
      labels.push_back(s.back());
      targets.push_back(longest_suffix(s, states));
      links.push_back(longest_suffix(without_first(s), arcs));
      arc_scores.push_back(score_at_end(s));
    }
  }
  // Sum of the scores of all patterns that a string ends in.
  double score_at_end(String s) const {
    double sum = 0.0;
    for (; !s.empty(); s = without_first(s)) {
      const auto found = patterns.find(s);
      if (found != patterns.end()) sum += found->second;
    }
    return sum;
  }
  AutomatonTables tables() const {
    return {n_labels,
            static_cast<int>(states.size()),
            static_cast<int>(arcs.size()),
            failures.data(),
            last_labels.data(),
            sources.data(),
            labels.data(),
            targets.data(),
            links.data()};
  }
};

struct Kind {
  double spread;  // scores lie within +- spread
  double holes;   // share of nodes, and of patterns of two labels, that are -inf
  bool edges;
};

inline constexpr Kind kKinds[] = {{2, 0, false},     {2, 0.3, false},   {2, 0, true},
                                  {2, 0.3, true},    {100, 0, false},   {400, 0, false},
                                  {400, 0.3, false}, {1e5, 0.2, false}, {1e5, 0.2, true}};

// All kinds; for many labels, which take longer, a third of them.
inline std::vector<Kind> kinds_for(int n_labels) {
  std::vector<Kind> kinds;
  for (size_t i = 0; i < std::size(kKinds); ++i)
    if (n_labels <= 8 || i % 3 == n_labels % size_t{3}) kinds.push_back(kKinds[i]);
  return kinds;
}

inline std::string describe(int n_labels, const Kind& kind) {
  return "K=" + std::to_string(n_labels) + " spread=" + std::to_string(kind.spread) +
         " holes=" + std::to_string(kind.holes) + " edges=" + std::to_string(kind.edges);
}

// all_pairs: whether every pair of labels is a pattern too, as edges need it
inline Grammar random_grammar(int n_labels, int longest, int n_patterns, const Kind& kind,
                              bool all_pairs) {
  std::map<String, double, ByLength> patterns;
  const auto add = [&](const String& s) {
    const bool hole = s.size() == 2 && uniform(0, 1) < kind.holes;
    patterns[s] = hole ? -kInfinity : uniform(-kind.spread, kind.spread);
  };
  for (int i = 0; i < n_patterns; ++i) {
    String s(1 + below(longest));
    for (int32_t& label : s) label = static_cast<int32_t>(below(n_labels));
    add(s);
  }
  if (all_pairs)
    for (int32_t j = 0; j < n_labels; ++j)
      for (int32_t k = 0; k < n_labels; ++k) add({j, k});
  return {n_labels, patterns};
}

struct Batch {
  Grammar grammar;
  Automaton automaton;
  std::vector<int64_t> offsets{0};
  std::vector<double> nodes, arcs, edges;
  std::vector<int32_t> labels;           // all 0
  std::vector<double> weights;           // (S,)
  std::vector<double> position_weights;  // (N,)

  // Random sequences; label 0 is never forbidden, so that there is always a labelling.
  Batch(Grammar given, const std::vector<int64_t>& lengths, const Kind& kind)
      : grammar(std::move(given)), automaton(grammar.tables()), arcs(grammar.arc_scores) {
    for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
    const int64_t n = n_labels();
    for (int64_t i = 0; i < n_positions() * n; ++i)
      nodes.push_back(i % n > 0 && uniform(0, 1) < kind.holes ? -kInfinity
                                                              : uniform(-kind.spread, kind.spread));
    if (kind.edges) edges = random_numbers(n_positions() * n * n, -kind.spread, kind.spread);
    labels.assign(n_positions(), 0);
    position_weights = random_numbers(n_positions(), 0.1, 3);
    weights = random_numbers(n_sequences(), 0.1, 3);
    for (const auto& [s, arc] : grammar.arcs)
      if (std::count(s.begin(), s.end(), 0) == static_cast<int64_t>(s.size()) &&
          arcs[arc] == -kInfinity)
        arcs[arc] = uniform(-kind.spread, kind.spread);
  }

  int n_labels() const { return grammar.n_labels; }
  int64_t n_sequences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t n_positions() const { return offsets.back(); }
  int64_t n_arcs() const { return static_cast<int64_t>(arcs.size()); }
  int64_t length(int64_t s) const { return offsets[s + 1] - offsets[s]; }
  AutomatonScores scores() const {
    return {automaton,    n_sequences(), offsets.data(),
            nodes.data(), arcs.data(),   edges.empty() ? nullptr : edges.data()};
  }
  // Of a batch of first order: its arcs are the labels, which score 0, and then all pairs in order.
  ChainScores chain() const {
    return {n_sequences(), offsets.data(),           n_labels(),
            nodes.data(),  arcs.data() + n_labels(), edges.empty() ? nullptr : edges.data()};
  }
  int32_t arc_taken(const int32_t* path, int64_t t) const {
    const auto longest = static_cast<int64_t>(grammar.arcs.rbegin()->first.size());
    const int32_t* end = path + t + 1;
    return longest_suffix(String(end - std::min(longest, t + 1), end), grammar.arcs);
  }
  double score(int64_t s, const int32_t* path) const {
    const int64_t n = n_labels();
    double sum = 0.0;
    for (int64_t t = 0; t < length(s); ++t) {
      const int64_t position = offsets[s] + t;
      sum += nodes[position * n + path[t]] + arcs[arc_taken(path, t)];
      if (t > 0 && !edges.empty()) sum += edges[(position * n + path[t - 1]) * n + path[t]];
    }
    return sum;
  }
};

inline Batch first_order(int n_labels, const std::vector<int64_t>& lengths, const Kind& kind) {
  return Batch(random_grammar(n_labels, 1, 0, kind, true), lengths, kind);
}

// A number for each event of a batch: its probability, or its derivative.
struct Events {
  std::vector<double> marginals, arc_sums, arc_marginals, pairs;  // (N, K), (A,), (N, A), (N, K, K)

  explicit Events(const Batch& batch, double number = NAN)
      : marginals(batch.nodes.size(), number),
        arc_sums(batch.arcs.size(), number),
        arc_marginals(batch.n_positions() * batch.n_arcs(), number),
        pairs(batch.automaton.has_all_pairs() ? marginals.size() * batch.n_labels() : 0, number) {}

  auto fields() { return std::array{&marginals, &arc_sums, &arc_marginals, &pairs}; }
  bool operator==(const Events&) const = default;

  // Adds to the number of every event along a labelling of a sequence; weight: in arc_sums
  void add(const Batch& batch, int64_t s, const String& path, double number, double weight = 1.0) {
    const int64_t n = batch.n_labels();
    for (int64_t t = 0; t < batch.length(s); ++t) {
      const int64_t position = batch.offsets[s] + t, arc = batch.arc_taken(path.data(), t);
      marginals[position * n + path[t]] += number;
      arc_marginals[position * batch.n_arcs() + arc] += number;
      arc_sums[arc] += weight * number;
      if (t > 0 && !pairs.empty()) pairs[(position * n + path[t - 1]) * n + path[t]] += number;
    }
  }
};

struct Posteriors : Events {
  std::vector<double> log_z, log_likelihoods;  // (S,)

  explicit Posteriors(const Batch& batch, double number = NAN)
      : Events(batch, number),
        log_z(batch.n_sequences(), number),
        log_likelihoods(batch.n_sequences(), number) {}

  auto fields() {
    return std::array{&marginals, &arc_sums, &arc_marginals, &pairs, &log_z, &log_likelihoods};
  }
  bool operator==(const Posteriors&) const = default;
};

// Those that the kernels of first order give: sums over pairs, and no marginals of arcs.
template <class Outputs>
Outputs of_first_order(Outputs outputs, const Batch& batch) {
  outputs.arc_sums.erase(outputs.arc_sums.begin(), outputs.arc_sums.begin() + batch.n_labels());
  outputs.arc_marginals.clear();
  return outputs;
}

template <class Outputs>
void check_close(Outputs found, Outputs expected, double tolerance) {
  for (size_t i = 0; i < found.fields().size(); ++i) {
    const double factor = found.fields()[i] == &found.arc_sums ? 20.0 : 1.0;
    CHECK_NEAR(largest_difference(*found.fields()[i], *expected.fields()[i]), 0.0,
               factor * tolerance);
  }
}

// Any subset of the outputs may be requested; inputs are not changed. fill(outputs) fills those
// that are not empty.
template <class Outputs, class Fill>
void check_subsets(const Outputs& unfilled, Fill fill) {
  Outputs all = unfilled;
  fill(all);
  const size_t n_fields = all.fields().size();
  for (size_t wanted = 0; wanted < size_t{1} << n_fields; ++wanted) {
    Outputs expected = all, found = unfilled;
    for (size_t i = 0; i < n_fields; ++i) {
      if (wanted >> i & 1) continue;
      expected.fields()[i]->clear();
      found.fields()[i]->clear();
    }
    fill(found);
    CHECK(found == expected);
  }
}

// The labellings of a sequence of a finite score, best first.
struct Exact {
  struct Labelling {
    double score;
    String labels;
  };
  std::vector<Labelling> all;
  double log_z;

  Exact(const Batch& batch, int64_t s) {
    String path(batch.length(s), 0);
    for (int64_t t = 0; t >= 0;) {
      const double score = batch.score(s, path.data());
      if (score > -kInfinity) all.push_back({score, path});
      for (t = batch.length(s) - 1; t >= 0 && ++path[t] == batch.n_labels(); --t) path[t] = 0;
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Labelling& a, const Labelling& b) { return a.score > b.score; });
    log_z = log_sum(nullptr, 0);
  }
  double prob(const Labelling& one) const { return std::exp(one.score - log_z); }
  // Log of the sum over the labellings that begin with some labels.
  double log_sum(const int32_t* labels, int64_t n) const {
    double best = -kInfinity, sum = 0.0;
    for (const Labelling& one : all) {
      if (!std::equal(labels, labels + n, one.labels.begin())) continue;
      best = std::max(best, one.score);  // that of the first
      sum += std::exp(one.score - best);
    }
    return best + std::log(sum);
  }
};

inline double* data_or_null(std::vector<double>& numbers) {
  return numbers.empty() ? nullptr : numbers.data();
}
inline AutomatonPosteriors pointers_to(Posteriors& out, const AutomatonScores&) {
  return {data_or_null(out.log_z),
          data_or_null(out.log_likelihoods),
          data_or_null(out.marginals),
          data_or_null(out.arc_sums),
          data_or_null(out.arc_marginals),
          data_or_null(out.pairs),
          nullptr};
}
inline ChainPosteriors pointers_to(Posteriors& out, const ChainScores&) {
  return {data_or_null(out.log_z),     data_or_null(out.log_likelihoods),
          data_or_null(out.marginals), data_or_null(out.arc_sums),
          data_or_null(out.pairs),     nullptr};
}

// Where the kernels of these scores write. Scores are those of batch.scores() or batch.chain(),
// here and in what follows.
template <class Scores>
Posteriors unfilled(const Batch& batch, const Scores&) {
  const Posteriors posteriors(batch);
  return std::same_as<Scores, ChainScores> ? of_first_order(posteriors, batch) : posteriors;
}

template <class Scores>
void fill(const Batch& batch, const Scores& scores, Posteriors& found, int n_threads = 1) {
  Stop stop(nullptr);
  auto out = pointers_to(found, scores);
  out.weights = batch.weights.data();
  fill_posteriors(scores, batch.labels.data(), out, n_threads, stop);
}

template <class Scores>
Posteriors posteriors_of(const Batch& batch, const Scores& scores, int n_threads = 1) {
  Posteriors found = unfilled(batch, scores);
  fill(batch, scores, found, n_threads);
  return found;
}

template <class Scores>
Posteriors weighted_of(const Batch& batch, const Scores& scores, const std::vector<double>& weights,
                       int n_threads = 1) {
  Stop stop(nullptr);
  Posteriors found = unfilled(batch, scores);
  found.log_z.clear();
  found.arc_marginals.clear();
  fill_weighted_posteriors(scores, batch.labels.data(), weights.data(), pointers_to(found, scores),
                           n_threads, stop);
  return found;
}

template <class Scores>
std::vector<int32_t> viterbi_of(const Batch& batch, const Scores& scores, int n_threads = 1) {
  Stop stop(nullptr);
  std::vector<int32_t> found(batch.n_positions(), -1);
  fill_viterbi(scores, found.data(), n_threads, stop);
  return found;
}

// Labellings, and further results: (n, N), (S,), (n, S).
struct Paths {
  std::vector<int32_t> labels;
  std::vector<int64_t> counts;
  std::vector<double> losses;
  bool operator==(const Paths&) const = default;
};

inline Paths best_of(const Batch& batch, int64_t n_best, int n_threads = 1) {
  Stop stop(nullptr);
  Paths found{std::vector<int32_t>(n_best * batch.n_positions(), -1),
              std::vector<int64_t>(batch.n_sequences(), -1),
              std::vector<double>(n_best * batch.n_sequences(), kInfinity)};
  fill_k_best(batch.scores(), n_best, found.labels.data(), found.counts.data(), found.losses.data(),
              n_threads, stop);
  return found;
}

inline std::vector<int32_t> samples_of(const Batch& batch, const std::vector<double>& uniforms,
                                       int n_threads = 1) {
  Stop stop(nullptr);
  std::vector<int32_t> found(uniforms.size(), -1);
  const int64_t n =
      static_cast<int64_t>(uniforms.size()) / std::max<int64_t>(batch.n_positions(), 1);
  fill_samples(batch.scores(), n, uniforms.data(), found.data(), n_threads, stop);
  return found;
}

}  // namespace
}  // namespace hedgerow::tests
