// Tree-shaped graphs: every kernel, against sums over all labellings of small forests.
#include "trellis/tree_graph.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "tests/batch.hpp"
#include "tests/check.hpp"
#include "trellis/tree_graph_order.hpp"

namespace hedgerow::tests {
namespace {

// Random forests over the automaton of some patterns, or of first order.
struct Forests {
  int n_labels;
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> parents;
  std::vector<double> nodes, arcs, edges;
  const Automaton* automaton = nullptr;
  bool by_arc = false;

  Forests(int n_labels, int64_t n_sequences, int64_t longest, double scale, const Automaton* own,
          bool has_edges)
      : n_labels(n_labels), automaton(own), by_arc(own != nullptr) {
    for (int64_t s = 0; s < n_sequences; ++s) {
      const int64_t length = s % (longest + 1);
      for (int64_t t = 0; t < length; ++t)
        parents.push_back(static_cast<int32_t>(below(t + 1) - 1));
      offsets.push_back(offsets.back() + length);
    }
    nodes = random_numbers(offsets.back() * n_labels, -scale, scale);
    arcs = random_numbers(scores().n_arcs(), -scale, scale);
    if (has_edges) edges = random_numbers(offsets.back() * scores().n_edges(), -scale, scale);
  }
  GraphScores scores() const {
    return {static_cast<int64_t>(offsets.size()) - 1,
            offsets.data(),
            parents.data(),
            n_labels,
            nodes.data(),
            arcs.data(),
            edges.empty() ? nullptr : edges.data(),
            automaton,
            by_arc};
  }
  int64_t n_positions() const { return offsets.back(); }
};

// Calls use(labels, score) for all labellings of a sequence.
void for_each_labelling(const Forests& forests, int64_t s,
                        const std::function<void(const std::vector<int32_t>&, double)>& use) {
  const int64_t begin = forests.offsets[s], length = forests.offsets[s + 1] - begin;
  const GraphScores scores = forests.scores();
  const GraphOrder order(scores.offsets, scores.parents, s);
  std::vector<int32_t> labels(length, 0), states(length);
  while (true) {
    double score = 0.0;
    for (int64_t i = 0; i < order.size(); ++i) {
      const int64_t t = order.positions[i];
      const int32_t label = labels[t - begin], parent = forests.parents[t];
      const int32_t before = parent < 0 ? 0 : states[parent];
      const int32_t arc = forests.automaton ? forests.automaton->find_arc(before, label)
                                            : before * forests.n_labels + label;
      score += forests.nodes[t * forests.n_labels + label];
      if (parent >= 0 || forests.automaton) score += forests.arcs[arc];
      if (parent >= 0 && scores.edges) score += forests.edges[t * scores.n_edges() + arc];
      states[t - begin] = forests.automaton ? forests.automaton->target(arc) : label;
    }
    use(labels, score);
    int64_t t = 0;
    for (; t < length && ++labels[t] == forests.n_labels; ++t) labels[t] = 0;
    if (t == length) return;
  }
}

struct Found {
  std::vector<double> log_z, log_likelihoods, marginals, arc_sums, pairs, curvature;
  std::vector<float> node_gammas, edge_gammas;
  bool operator==(const Found&) const = default;
};

Found posteriors_of_forests(const Forests& forests, int n_threads = 1) {
  const GraphScores scores = forests.scores();
  const int64_t n = forests.n_positions(), n_labels = forests.n_labels;
  Found found{std::vector<double>(scores.n_sequences),
              std::vector<double>(scores.n_sequences),
              std::vector<double>(n * n_labels),
              std::vector<double>(scores.n_arcs()),
              std::vector<double>(n * scores.n_edges()),
              std::vector<double>(n_labels * n_labels),
              std::vector<float>(n),
              std::vector<float>(n)};
  const MixingBounds bounds{found.node_gammas.data(), found.edge_gammas.data(),
                            found.curvature.data(), nullptr};
  const std::vector<int32_t> labels(n, 1);
  Stop stop(nullptr);
  fill_graph_posteriors(scores, labels.data(),
                        {found.log_z.data(), found.log_likelihoods.data(), found.marginals.data(),
                         found.arc_sums.data(), found.pairs.data(), nullptr, nullptr,
                         forests.automaton ? nullptr : &bounds},
                        n_threads, stop);
  return found;
}

void check_forests(const Forests& forests) {
  const int64_t n_labels = forests.n_labels, n = forests.n_positions();
  const GraphScores scores = forests.scores();
  const Found found = posteriors_of_forests(forests);
  CHECK(found == posteriors_of_forests(forests, 3));
  Stop stop(nullptr);
  std::vector<int32_t> best(n), ranked(2 * n), drawn(3 * n);
  std::vector<int64_t> counts(scores.n_sequences);
  std::vector<double> losses(2 * scores.n_sequences, kInfinity);
  const std::vector<double> uniforms(3 * n, 0.5);
  fill_graph_viterbi(scores, best.data(), 2, stop);
  fill_graph_k_best(scores, 2, ranked.data(), counts.data(), losses.data(), 2, stop);
  fill_graph_samples(scores, 3, uniforms.data(), drawn.data(), 2, stop);
  std::vector<double> slopes(n * n_labels), arc_slopes(scores.n_arcs()), moves(n * n_labels, 0.0);
  for (int64_t t = 0; t < n; ++t) moves[t * n_labels] = 1.0;
  fill_graph_tangents(scores, {found.marginals.data(), moves.data(), nullptr},
                      {slopes.data(), arc_slopes.data(), nullptr, nullptr}, 2, stop);
  const std::vector<int32_t> ones(n, 1);
  const std::vector<double> twos(n, 2.0);
  std::vector<double> weighted(scores.n_sequences), counted(n * n_labels);
  fill_graph_weighted_posteriors(
      scores, ones.data(), twos.data(),
      {nullptr, weighted.data(), counted.data(), nullptr, nullptr, nullptr, nullptr, nullptr}, 2,
      stop);
  for (int64_t s = 0; s < scores.n_sequences; ++s) {
    const int64_t begin = forests.offsets[s], length = forests.offsets[s + 1] - begin;
    double top = -kInfinity, second = -kInfinity, total = 0.0, mean = 0.0;
    for_each_labelling(forests, s, [&](const auto&, double score) {
      second = std::max(second, std::min(top, score));
      top = std::max(top, score);
    });
    std::vector<double> marginals(length * n_labels), covariances(length * n_labels);
    for (int pass = 0; pass < 2; ++pass)
      for_each_labelling(forests, s, [&](const std::vector<int32_t>& labels, double score) {
        const double prob = std::exp(score - top);
        double gain = 0.0;
        for (const int32_t label : labels) gain += label == 0;
        if (pass == 0) total += prob, mean += prob * gain;
        if (pass == 0) return;
        for (int64_t t = 0; t < length; ++t) {
          marginals[t * n_labels + labels[t]] += prob / total;
          covariances[t * n_labels + labels[t]] += prob / total * (gain - mean / total);
        }
        bool is_best = true;
        for (int64_t t = 0; t < length; ++t) is_best = is_best && best[begin + t] == labels[t];
        if (is_best) CHECK_NEAR(score, top, 1e-9 * (1 + std::fabs(top)));
      });
    CHECK_NEAR(found.log_z[s], top + std::log(total), 1e-9 * (1 + std::fabs(top)));
    CHECK_NEAR(weighted[s], 2 * found.log_likelihoods[s], 1e-8 * (1 + std::fabs(weighted[s])));
    CHECK(counts[s] == (length > 0 ? 2 : 1));
    if (length > 0)
      CHECK_NEAR(losses[scores.n_sequences + s], top - second, 1e-9 * (1 + std::fabs(top)));
    for (int64_t i = 0; i < length * n_labels; ++i) {
      CHECK_NEAR(found.marginals[begin * n_labels + i], marginals[i], 1e-9);
      CHECK_NEAR(counted[begin * n_labels + i], 2 * marginals[i], 1e-9);
      CHECK_NEAR(slopes[begin * n_labels + i], covariances[i], 1e-8);
    }
  }
}

TEST(tree_graphs_equal_enumeration) {
  for (const auto& [n_labels, longest] : {std::pair(3, 5), std::pair(2, 7)}) {
    const Grammar grammar = random_grammar(n_labels, 4, 8, {1, 0, false}, false);
    const Automaton automaton(grammar.tables());
    for (const double scale : {1.0, 300.0, 1e5})
      for (const bool edges : {false, true}) {
        context = std::to_string(n_labels) + " labels, scale " + std::to_string(scale) +
                  (edges ? ", edges" : "");
        check_forests(Forests(n_labels, 18, longest, scale, nullptr, edges));
        check_forests(Forests(n_labels, 18, longest, scale, &automaton, edges));
      }
  }
}

// Without posteriors of pairs, few labels are computed in lanes: in double precision, and mixing
// rates alone in single precision.
TEST(lanes_of_tree_graphs_equal_rows) {
  for (const double scale : {1.0, 20.0, 300.0, 1e5}) {
    context = "scale " + std::to_string(scale);
    const Forests forests(3, 30, 7, scale, nullptr, false);
    const Found expected = posteriors_of_forests(forests);
    for (const bool alone : {false, true}) {
      Found found = expected;
      std::fill(found.marginals.begin(), found.marginals.end(), 0.0);
      std::fill(found.curvature.begin(), found.curvature.end(), 0.0);
      const MixingBounds bounds{found.node_gammas.data(), found.edge_gammas.data(),
                                found.curvature.data(), nullptr};
      GraphPosteriors out{};
      out.mixing = &bounds;
      if (!alone) out.marginals = found.marginals.data();
      Stop stop(nullptr);
      fill_graph_posteriors(forests.scores(), nullptr, out, 2, stop);
      for (size_t i = 0; i < expected.marginals.size() && !alone; ++i)
        CHECK_NEAR(found.marginals[i], expected.marginals[i], 1e-9);
      for (size_t t = 0; t < expected.node_gammas.size(); ++t) {
        CHECK_NEAR(found.node_gammas[t], expected.node_gammas[t], 1e-4);
        CHECK_NEAR(found.edge_gammas[t], expected.edge_gammas[t], 1e-4);
      }
      for (size_t i = 0; i < expected.curvature.size(); ++i)
        CHECK_NEAR(found.curvature[i], expected.curvature[i], 1e-3);
    }
  }
}

TEST(long_paths_and_large_stars) {
  for (const bool star : {false, true}) {
    Forests forests(3, 0, 0, 0.1, nullptr, false);
    const int64_t n = 5000;
    for (int64_t t = 0; t < n; ++t)
      forests.parents.push_back(static_cast<int32_t>(t == 0 ? -1 : star ? 0 : t - 1));
    forests.offsets.push_back(n);
    forests.nodes = random_numbers(n * 3, -0.1, 0.1);
    const Found found = posteriors_of_forests(forests);
    double sum = 0.0;
    for (const double each : found.arc_sums) sum += each;
    CHECK_NEAR(sum, static_cast<double>(n - 1), 1e-6);
  }
}

}  // namespace
}  // namespace hedgerow::tests
