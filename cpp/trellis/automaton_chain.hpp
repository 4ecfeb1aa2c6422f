// Chains over a label automaton: which labellings are likely, and how likely.
//
// With q_t the state of the automaton after the labels y_0 .. y_t, the score of a labelling is
//   sum_t nodes[t, y_t] + arcs[arc(q_{t-1}, y_t)] + sum_{t>0} edges[t, y_{t-1}, y_t],
// and its probability is exp(score) / Z. Scores may be any finite number; arcs and nodes may also
// be -inf (forbidden). Edges of label pairs need an automaton that has an arc for every pair of
// labels. There may be edges of arcs instead, edges[t, arc(q_{t-1}, y_t)].
#pragma once

#include <cstdint>

#include "parallel.hpp"
#include "trellis/automaton.hpp"
#include "trellis/pattern_marginals.hpp"
#include "trellis/score_errors.hpp"

namespace hedgerow {

// The scores of a batch of sequences, concatenated. N positions, S sequences (not states), K
// labels, A arcs.
struct AutomatonScores {
  const Automaton& automaton;
  int64_t n_sequences;
  const int64_t* offsets;  // (S+1,) first position of each sequence; the last entry is N
  const double* nodes;     // (N, K)
  const double* arcs;      // (A,)
  const double* edges;     // (N, M) or null; a sequence's first position is not read
  bool by_arc = false;     // M is A, edges of arcs; otherwise K * K, edges of label pairs

  int64_t length(int64_t sequence) const { return offsets[sequence + 1] - offsets[sequence]; }
  const double* nodes_at(int64_t position) const { return nodes + position * automaton.n_labels(); }
  // M, and the index of an arc's edge among these, which is M for an arc that has none.
  int64_t n_edges() const {
    return by_arc ? automaton.n_arcs() : int64_t{automaton.n_labels()} * automaton.n_labels();
  }
  int32_t edge(int32_t arc) const { return by_arc ? arc : automaton.pair(arc); }
  const double* edges_at(int64_t position) const { return edges + position * n_edges(); }
};

// Where forward-backward writes. fill_posteriors: every pointer may be null, which leaves out that
// result; log_likelihoods need labels. fill_weighted_posteriors: log_likelihoods and marginals must
// be given, arc_sums and pairs may be null, and the others are not used.
struct AutomatonPosteriors {
  double* log_z;            // (S,) log of the sum over all labellings of exp(score)
  double* log_likelihoods;  // (S,) log P(labels)
  double* marginals;        // (N, K) P(y_t = k)
  double* arc_sums;         // (A,) expected number of times each arc is taken
  double* arc_marginals;    // (N, A) P(arc is taken at t)
  double* pairs;            // (N, K, K) P(y_{t-1} = j, y_t = k); 0 at a first position. Like edges,
                            // they need an automaton that has an arc for every pair of labels.
                            // With edges of arcs: (N, A), those of the arcs
  const double* weights;    // (S,) weight of each sequence in arc_sums; null: 1
  const PatternMarginals* patterns = nullptr;
  double bound = 0.0;  // upper bound on the sum of the sizes of all terms, see SumGrid

  // Whether the posteriors of the automaton's terms are needed at each position.
  bool need_terms() const { return arc_marginals || pairs || patterns; }
  bool need_backward() const { return marginals || arc_sums || need_terms(); }
  double weight(int64_t sequence) const { return weights == nullptr ? 1.0 : weights[sequence]; }
};

// labels: (N,) codes, or null if out.log_likelihoods is null.
void fill_posteriors(const AutomatonScores& scores, const int32_t* labels,
                     const AutomatonPosteriors& out, int n_threads, Stop& stop);

// A likelihood with a weight for each position, sum_t w_t log P(y_t | q_{t-1}): writes it to
// out.log_likelihoods, and to out's marginals, arc_sums and pairs the expected counts whose
// difference from the observed ones (w_t at y_t) is its gradient. weights: (N,)
void fill_weighted_posteriors(const AutomatonScores& scores, const int32_t* labels,
                              const double* weights, const AutomatonPosteriors& out, int n_threads,
                              Stop& stop);

// The best labelling of each sequence; of equally good ones the first in the order of codes.
// labels: (N,)
void fill_viterbi(const AutomatonScores& scores, int32_t* labels, int n_threads, Stop& stop);

// The n_best best labellings of each sequence, best first.
// labels: (n_best, N); counts: (S,) number of labellings found, n_best or fewer if there are no
// more; losses: (n_best, S) score of the best labelling minus the score of each
void fill_k_best(const AutomatonScores& scores, int64_t n_best, int32_t* labels, int64_t* counts,
                 double* losses, int n_threads, Stop& stop);

// Labellings drawn from their distribution. uniforms: (n_samples, N) numbers in [0, 1), one for
// each choice. labels: (n_samples, N)
void fill_samples(const AutomatonScores& scores, int64_t n_samples, const double* uniforms,
                  int32_t* labels, int n_threads, Stop& stop);

}  // namespace hedgerow
