// Chains over label automata the slow way: strings of labels, and all labellings of small chains;
// and the kernels' answers in the same form.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "tests/check.hpp"
#include "trellis/automaton_chain.hpp"

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
  // Of all patterns that a string ends in.
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

inline Grammar random_grammar(int n_labels, int longest, int n_patterns, const Kind& kind) {
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
  if (kind.edges)
    for (int32_t j = 0; j < n_labels; ++j)
      for (int32_t k = 0; k < n_labels; ++k) add({j, k});
  return {n_labels, patterns};
}

struct Batch {
  Grammar grammar;
  Automaton automaton;
  std::vector<int64_t> offsets{0};
  std::vector<double> nodes, arcs, edges;
  std::vector<int32_t> labels;
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
    for (int64_t i = 0; kind.edges && i < n_positions() * n * n; ++i)
      edges.push_back(uniform(-kind.spread, kind.spread));
    for (int64_t i = 0; i < n_positions(); ++i) {
      labels.push_back(0);
      position_weights.push_back(uniform(0.1, 3));
    }
    for (size_t s = 0; s < lengths.size(); ++s) weights.push_back(uniform(0.1, 3));
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
  int32_t arc_taken(const int32_t* path, int64_t t) const {
    return longest_suffix(String(path, path + t + 1), grammar.arcs);
  }
  // What a path has gained at position t.
  double gain(int64_t s, const int32_t* path, int64_t t) const {
    const int64_t n = n_labels(), position = offsets[s] + t;
    double sum = nodes[position * n + path[t]] + arcs[arc_taken(path, t)];
    if (t > 0 && !edges.empty()) sum += edges[(position * n + path[t - 1]) * n + path[t]];
    return sum;
  }
  double score(int64_t s, const int32_t* path) const {
    double sum = 0.0;
    for (int64_t t = 0; t < length(s); ++t) sum += gain(s, path, t);
    return sum;
  }
};

// All that can be known about one sequence, by enumeration.
struct Exact {
  struct Labelling {
    double score;
    String labels;
  };
  std::vector<Labelling> all;  // those of a finite score, best first
  double log_z = 0.0;
  std::vector<double> marginals, arc_marginals, pairs;  // (T, K), (T, A), (T, K, K)

  Exact(const Batch& batch, int64_t s) {
    const int64_t length = batch.length(s), n = batch.n_labels(), n_arcs = batch.n_arcs();
    String path(length, 0);
    for (int64_t t = 0; t >= 0;) {
      const double score = batch.score(s, path.data());
      if (score > -kInfinity) all.push_back({score, path});
      for (t = length - 1; t >= 0 && ++path[t] == n; --t) path[t] = 0;
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Labelling& a, const Labelling& b) { return a.score > b.score; });
    double z = 0.0;
    for (const Labelling& one : all) z += std::exp(one.score - all[0].score);
    log_z = all[0].score + std::log(z);
    marginals.assign(length * n, 0.0);
    arc_marginals.assign(length * n_arcs, 0.0);
    pairs.assign(length * n * n, 0.0);
    for (const Labelling& one : all) {
      const double prob = std::exp(one.score - all[0].score) / z;
      for (int64_t t = 0; t < length; ++t) {
        marginals[t * n + one.labels[t]] += prob;
        arc_marginals[t * n_arcs + batch.arc_taken(one.labels.data(), t)] += prob;
        if (t > 0) pairs[(t * n + one.labels[t - 1]) * n + one.labels[t]] += prob;
      }
    }
  }
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

struct Posteriors {
  std::vector<double> log_z, log_likelihoods, marginals, arc_sums, arc_marginals, pairs;

  explicit Posteriors(const Batch& batch)
      : log_z(batch.n_sequences(), NAN),
        log_likelihoods(batch.n_sequences(), NAN),
        marginals(batch.nodes.size(), NAN),
        arc_sums(batch.arcs.size(), NAN),
        arc_marginals(batch.n_positions() * batch.n_arcs(), NAN),
        pairs(batch.edges.size(), NAN) {}
  AutomatonPosteriors out(const double* weights) {
    return {log_z.data(),    log_likelihoods.data(), marginals.data(),
            arc_sums.data(), arc_marginals.data(),   pairs.empty() ? nullptr : pairs.data(),
            weights};
  }
  bool operator==(const Posteriors&) const = default;
};

inline Posteriors posteriors_of(const Batch& batch, int n_threads = 1) {
  Stop stop(nullptr);
  Posteriors found(batch);
  fill_posteriors(batch.scores(), batch.labels.data(), found.out(batch.weights.data()), n_threads,
                  stop);
  return found;
}

inline Posteriors weighted_of(const Batch& batch, const std::vector<double>& weights,
                              int n_threads = 1) {
  Stop stop(nullptr);
  Posteriors found(batch);
  AutomatonPosteriors out = found.out(nullptr);
  out.log_z = out.arc_marginals = nullptr;
  fill_weighted_posteriors(batch.scores(), batch.labels.data(), weights.data(), out, n_threads,
                           stop);
  found.log_z.clear();
  found.arc_marginals.clear();
  return found;
}

// Labellings, and what comes with them: (n, N), (S,), (n, S).
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

inline std::vector<int32_t> viterbi_of(const Batch& batch, int n_threads = 1) {
  Stop stop(nullptr);
  std::vector<int32_t> found(batch.n_positions(), -1);
  fill_viterbi(batch.scores(), found.data(), n_threads, stop);
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

inline std::vector<double> random_uniforms(int64_t n) {
  std::vector<double> uniforms;
  for (int64_t i = 0; i < n; ++i) uniforms.push_back(uniform(0, 1));
  return uniforms;
}

}  // namespace
}  // namespace hedgerow::tests
