// First-order chains: which labellings are likely, and how likely.
//
// The score of a labelling y of positions 0 .. T-1 is
//   sum_t nodes[t, y_t] + sum_{t>0} (arcs[y_{t-1}, y_t] + edges[t, y_{t-1}, y_t]),
// and its probability is exp(score) / Z. Scores may be any finite number; arcs and nodes may also
// be -inf (forbidden).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "sum_grid.hpp"
#include "trellis/edge_pairs.hpp"
#include "trellis/mixing_bounds.hpp"
#include "trellis/pattern_marginals.hpp"

namespace hedgerow {

// Number of positions between two checks of Stop.
inline constexpr int64_t kCheckEvery = 256;

// The scores of a batch of sequences, concatenated. N positions, S sequences, K labels.
struct ChainScores {
  int64_t n_sequences;
  const int64_t* offsets;  // (S+1,) first position of each sequence; the last entry is N
  int n_labels;
  const double* nodes;  // (N, K)
  const double* arcs;   // (K, K) [label before, label]
  const double* edges;  // (N, K, K) or null; a sequence's first position is not read
  const float* single_edges = nullptr;  // or these: see takes_single_edges

  bool has_edges() const { return edges != nullptr || single_edges != nullptr; }
  int64_t length(int64_t sequence) const { return offsets[sequence + 1] - offsets[sequence]; }
  // The score of the arc (before, label) into a position of the batch.
  double arc_score(int64_t position, int64_t before, int64_t label) const {
    const int64_t arc = before * n_labels + label;
    const int64_t n_arcs = int64_t{n_labels} * n_labels;
    if (!has_edges()) return arcs[arc];
    const int64_t edge = position * n_arcs + arc;
    return arcs[arc] + (edges != nullptr ? edges[edge] : double{single_edges[edge]});
  }
};

// Where forward-backward writes. fill_posteriors: every pointer may be null, which leaves out that
// result; log_likelihoods need labels. fill_weighted_posteriors: log_likelihoods and marginals must
// be given, pair_sums and pairs may be null, and the others are not used.
struct ChainPosteriors {
  double* log_z;            // (S,) log of the sum over all labellings of exp(score)
  double* log_likelihoods;  // (S,) log P(labels)
  double* marginals;        // (N, K) P(y_t = k)
  double* pair_sums;        // (K, K) sum over t > 0 of P(y_{t-1} = j, y_t = k)
  double* pairs;            // (N, K, K) P(y_{t-1} = j, y_t = k); 0 at a sequence's first position
  const double* weights;    // (S,) weight of each sequence in pair_sums; null: 1
  const PatternMarginals* patterns = nullptr;
  const MixingBounds* mixing = nullptr;  // see posteriors_give_mixing and mixing.hpp
  double bound = 0.0;  // upper bound on the sum of the sizes of all terms, see SumGrid
  const PairsByLabel* by_label = nullptr;  // needs marginals

  bool need_backward() const {
    return marginals || pair_sums || pairs || patterns || mixing || by_label;
  }
  double weight(int64_t sequence) const { return weights == nullptr ? 1.0 : weights[sequence]; }
};

// Where kernels write the pair posteriors of a sequence, one position at a time: to out.pairs, or
// to scratch memory if only the pattern marginals, which are computed from them, or PairsByLabel
// are wanted.
class PairRows {
 public:
  PairRows(const ChainPosteriors& out, int n_labels)
      : out_(out),
        n_labels_(n_labels),
        n_pairs_(int64_t{n_labels} * n_labels),
        scratch_(out.patterns || out.by_label ? n_pairs_ : 0) {}

  bool wanted() const { return out_.pairs || out_.patterns || out_.by_label; }
  void open(int64_t first_position) { begin_ = first_position; }
  // (K, K) table of position t of the sequence. Call close(t) after filling it.
  double* row(int64_t t) {
    return out_.pairs ? out_.pairs + (begin_ + t) * n_pairs_ : scratch_.data();
  }
  void close(int64_t t) {
    if (out_.patterns) out_.patterns->write(begin_ + t, row(t));
    if (out_.by_label) out_.by_label->write(begin_ + t, row(t), n_labels_);
  }
  // Fills the first position, where no pair ends, with zeros. Its marginals must have been
  // computed.
  void close_first() {
    std::fill(row(0), row(0) + n_pairs_, 0.0);
    if (out_.patterns) out_.patterns->write(begin_, row(0));
    if (out_.by_label)
      out_.by_label->write_first(begin_, out_.marginals + begin_ * n_labels_, n_labels_);
  }

 private:
  const ChainPosteriors& out_;
  int n_labels_;
  int64_t n_pairs_;
  int64_t begin_ = 0;
  std::vector<double> scratch_;  // (K, K) instead of out.pairs; empty if they are not needed
};

// labels: (N,) codes, or null if out.log_likelihoods is null.
void fill_posteriors(const ChainScores& scores, const int32_t* labels, const ChainPosteriors& out,
                     int n_threads, Stop& stop);

// Whether edges may be in single precision: not if labels fit lanes.
bool takes_single_edges(int n_labels);

// Whether fill_posteriors computes mixing rates: not if labels fit lanes and there are no edges,
// since mixing rates then have their own kernel.
bool posteriors_give_mixing(int n_labels, bool edges);
// The same as fill_posteriors, with mixing rates, but one sequence after the other even if labels
// fit lanes.
void fill_posteriors_in_turn(const ChainScores& scores, const int32_t* labels,
                             const ChainPosteriors& out, int n_threads, Stop& stop);
// Mixing rates of one sequence. curvature: (K, K), to which the curvature of its pairs is added, or
// null
void fill_mixing_of(const ChainScores& scores, int64_t sequence, const MixingBounds& out,
                    const SumTable& curvature, Stop& stop);

// Posteriors for a likelihood with a weight for each position, sum_t w_t log P(y_t | y_{t-1}):
// writes it to out.log_likelihoods, and to out's marginals and pairs the expected counts whose
// difference from the observed ones (w_t at y_t) is its gradient. See LogChain::weighted. weights:
// (N,)
void fill_weighted_posteriors(const ChainScores& scores, const int32_t* labels,
                              const double* weights, const ChainPosteriors& out, int n_threads,
                              Stop& stop);

// The best labelling of each sequence; of equally good labels the lowest code. labels: (N,)
void fill_viterbi(const ChainScores& scores, int32_t* labels, int n_threads, Stop& stop);

}  // namespace hedgerow
