// Tree-shaped graphs: which labellings are likely, and how likely.
//
// Every position has a parent within its sequence, or is a root. With q_t the state of a node, the
// score of a labelling is
//   sum_t nodes[t, y_t] + arcs[arc(q_parent(t), y_t)] + sum over t not a root of edges[t, ...],
// and its probability is exp(score) / Z. Without an automaton states are labels, the arcs are label
// pairs [label of the parent, label], and roots take none. With one, q_t is the state to which the
// labels on the path from the root to t lead, as along a chain. Scores may be any finite number;
// arcs and nodes may also be -inf (forbidden).
#pragma once

#include <cstdint>

#include "parallel.hpp"
#include "trellis/automaton.hpp"
#include "trellis/mixing_bounds.hpp"
#include "trellis/pattern_marginals.hpp"
#include "trellis/tangent.hpp"

namespace hedgerow {

// N positions, S sequences, K labels, A arcs.
struct GraphScores {
  int64_t n_sequences;
  const int64_t* offsets;  // (S+1,)
  const int32_t* parents;  // (N,) place of the parent within the sequence, -1 for a root
  int n_labels;
  const double* nodes;         // (N, K)
  const double* arcs;          // (K, K), or (A,) with an automaton
  const double* edges;         // (N, K, K), or (N, A) of arcs, or null; not read at roots
  const Automaton* automaton;  // null: first order
  bool by_arc;                 // whether edges are those of an automaton's arcs

  int64_t length(int64_t sequence) const { return offsets[sequence + 1] - offsets[sequence]; }
  int64_t n_arcs() const { return automaton ? automaton->n_arcs() : int64_t{n_labels} * n_labels; }
  int64_t n_edges() const { return by_arc ? n_arcs() : int64_t{n_labels} * n_labels; }
};

// Where the passes write; every pointer may be null, which leaves out that result.
// fill_graph_weighted_posteriors: log_likelihoods and marginals must be given; log_z, patterns and
// mixing are not used.
struct GraphPosteriors {
  double* log_z;            // (S,)
  double* log_likelihoods;  // (S,) log P(labels)
  double* marginals;        // (N, K) P(y_t = k)
  double* arc_sums;         // (A,) expected number of times each arc is taken
  double* pairs;            // (N, M) P(edge), 0 at roots
  const double* weights;    // (S,) weight of each sequence in arc_sums; null: 1
  const PatternMarginals* patterns;
  const MixingBounds* mixing;  // first order only
  double bound = 0.0;          // upper bound on the sum of the sizes of all terms, see SumGrid

  bool need_pairs() const { return arc_sums || pairs || patterns; }
  bool mixing_alone() const {
    return mixing && !log_z && !log_likelihoods && !marginals && !need_pairs();
  }
  bool need_down() const { return marginals || mixing || need_pairs(); }
  double weight(int64_t sequence) const { return weights == nullptr ? 1.0 : weights[sequence]; }
};

// labels: (N,) codes, or null if out.log_likelihoods is null.
void fill_graph_posteriors(const GraphScores& scores, const int32_t* labels,
                           const GraphPosteriors& out, int n_threads, Stop& stop);

// A likelihood with a weight for each position, sum_t w_t log P(y_t | q_parent(t)), and the
// expected counts whose difference from the observed ones is its gradient. weights: (N,)
void fill_graph_weighted_posteriors(const GraphScores& scores, const int32_t* labels,
                                    const double* weights, const GraphPosteriors& out,
                                    int n_threads, Stop& stop);

// Derivatives along a direction. out.pairs: (N, M)
void fill_graph_tangents(const GraphScores& scores, const Direction& direction,
                         const AutomatonTangents& out, int n_threads, Stop& stop);

// The best labelling of each sequence. Labels are chosen from the roots down; of equally good
// labels the lowest code. labels: (N,)
void fill_graph_viterbi(const GraphScores& scores, int32_t* labels, int n_threads, Stop& stop);

// The n_best best labellings of each sequence, best first: see fill_k_best of automaton_chain.hpp.
void fill_graph_k_best(const GraphScores& scores, int64_t n_best, int32_t* labels, int64_t* counts,
                       double* losses, int n_threads, Stop& stop);

// Labellings drawn from their distribution, roots first. uniforms, labels: (n_samples, N)
void fill_graph_samples(const GraphScores& scores, int64_t n_samples, const double* uniforms,
                        int32_t* labels, int n_threads, Stop& stop);

}  // namespace hedgerow
