// The tangent of forward-backward over a label automaton.
#include <algorithm>
#include <vector>

#include "trellis/chunk_sums.hpp"
#include "trellis/groups.hpp"
#include "trellis/passes.hpp"
#include "trellis/semiring.hpp"
#include "trellis/slopes.hpp"
#include "trellis/tangent.hpp"

namespace hedgerow {
namespace {

// probs[k] = prob_rows[lane][k], moves[k] = move_rows[lane][k] - mean of the lane's moves under its
// probs, 0 where a label is impossible; k = 0 .. n-1, one row of n numbers per lane.
HEDGEROW_CLONES
void centre_moves(const double* const* prob_rows, const double* const* move_rows, int64_t n,
                  Packed* probs, Packed* moves) {
  Lanes mean = broadcast(0.0);
  for (int64_t k = 0; k < n; ++k) {
    const double prob[] = {prob_rows[0][k], prob_rows[1][k], prob_rows[2][k], prob_rows[3][k]};
    const double move[] = {move_rows[0][k], move_rows[1][k], move_rows[2][k], move_rows[3][k]};
    probs[k] = load(prob);
    moves[k] = load(move);
    mean += where_positive(load(prob), load(prob) * load(move));
  }
  for (int64_t k = 0; k < n; ++k)
    moves[k] = where_positive(probs[k], static_cast<Lanes>(moves[k]) - mean);
}

// The tangent of forward-backward of one group after the other.
template <class Semiring>
class TangentPass {
 public:
  TangentPass(const AutomatonScores& scores, const TermWeights& weights, const Direction& direction,
              const AutomatonTangents& out, Stop& stop)
      : scores_(scores),
        direction_(direction),
        out_(out),
        stop_(stop),
        steps_(scores, weights, direction.arcs, out.arc_sums != nullptr),
        rows_(2 * scores.automaton.n_states() + 1, scores.automaton.n_labels()),
        nothing_(scores.automaton.n_labels()),
        probs_(scores.automaton.n_labels()),
        moves_(scores.automaton.n_labels()),
        marginals_(scores.automaton.n_labels()),
        marginal_slopes_(scores.automaton.n_labels()),
        term_slopes_(out.arc_marginals || out.pairs ? scores.automaton.n_terms() : 0) {}

  // Writes the results of a group. False if a lane is refused: what was written is then
  // meaningless.
  bool run(const Group& group, const SumTable& arc_sums) {
    steps_.open(group);
    rows_.open(group.longest, Semiring::kOne);
    if (!forward() || !backward()) return false;
    if (arc_sums) steps_.add_arc_sums(arc_sums);
    return true;
  }
  bool refused(int lane) const { return steps_.refused(lane); }

 private:
  bool forward() {
    steps_.fill_begin(rows_.boundary(0));
    for (int64_t block = 0; block < rows_.n_blocks(); ++block)
      if (!fill_block(block, true)) return false;
    return true;
  }

  // Computes the alphas of a block and their slopes; the first time also the norms.
  bool fill_block(int64_t block, bool first) {
    steps_.load_row(rows_.boundary(block));
    return rows_.fill_block(block, first, [&](int64_t t) {
      stop_.check();
      fill_moves(t);
      steps_.fill_factors(t, rows_.factors(t));
      rows_.norm(t) = steps_.forward(t, rows_.factors(t), rows_.norm(t - 1), moves_.data(),
                                     probs_.data(), rows_.row(t));
      return !first || !steps_.any_refused();
    });
  }

  // Fills moves_ with the direction of the nodes at t minus its mean under the labels' marginals, 0
  // where a label is impossible, and probs_ with these marginals.
  void fill_moves(int64_t t) {
    const int64_t n_labels = scores_.automaton.n_labels();
    const double *probs[kLanes], *moves[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      const bool live = steps_.is_live(l, t);
      const int64_t at = live ? (scores_.offsets[steps_.group().sequences[l]] + t) * n_labels : 0;
      probs[l] = live ? direction_.marginals + at : nothing_.data();
      moves[l] = live ? direction_.nodes + at : nothing_.data();
    }
    centre_moves(probs, moves, n_labels, probs_.data(), moves_.data());
  }

  bool backward() {
    const bool need_terms = out_.arc_sums || !term_slopes_.empty();
    for (int64_t t = steps_.group().longest - 1; t >= 0; --t) {
      stop_.check();
      if (rows_.block_of(t) != rows_.current()) fill_block(rows_.block_of(t), false);
      fill_moves(t);
      // The factors of the edges are not kept.
      if (scores_.edges) steps_.fill_factors(t, rows_.factors(t));
      steps_.begin_beta(t, rows_.norm(t));
      steps_.reach_with_marginals(t, rows_.factors(t), rows_.norm(t - 1), rows_.norm(t),
                                  rows_.row(t), moves_.data(), marginals_.data(),
                                  marginal_slopes_.data());
      if (steps_.any_refused()) return false;
      copy_lanes(scores_, steps_.group(), t, marginal_slopes_, out_.marginals);
      if (need_terms) steps_.load_row(rows_.row_before(t));
      if (!term_slopes_.empty()) {
        steps_.fill_term_slopes(term_slopes_.data());
        copy_terms(scores_, steps_.group(), t, term_slopes_, sums_, out_.arc_marginals, out_.pairs);
      }
      steps_.backward();
    }
    return true;
  }

  const AutomatonScores& scores_;
  const Direction& direction_;
  const AutomatonTangents& out_;
  Stop& stop_;
  LockstepSlopes<Semiring> steps_;
  ForwardRows rows_;             // (2S+1,) per position: the rows of LockstepSlopes
  std::vector<double> nothing_;  // (K,) zeros, for lanes that have ended
  Numbers probs_, moves_, marginals_, marginal_slopes_;  // (K,)
  Numbers term_slopes_;                                  // (E,) of one position
  Numbers sums_;                                         // of these, scratch of copy_terms
};

}  // namespace

void fill_tangents(const AutomatonScores& scores, const Direction& direction, const uint8_t* wanted,
                   const AutomatonTangents& out, int n_threads, Stop& stop) {
  const Groups groups(scores, wanted);
  ChunkSums arc_sums(out.arc_sums, scores.automaton.n_arcs(), groups.n_chunks(),
                     SumGrid(out.bound));
  for_each_group<TangentPass>(
      scores, groups, n_threads, stop,
      [&](int64_t chunk, auto& pass, const Group& group) {
        return pass.run(group, arc_sums.open(chunk));
      },
      direction, out);
  arc_sums.finish();
}

}  // namespace hedgerow
