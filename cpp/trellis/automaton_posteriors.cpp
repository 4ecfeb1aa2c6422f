// Forward-backward over a label automaton.
#include <cmath>

#include "trellis/chunk_sums.hpp"
#include "trellis/groups.hpp"
#include "trellis/passes.hpp"
#include "trellis/semiring.hpp"
#include "trellis/sums.hpp"

namespace hedgerow {
namespace {

// Forward-backward of one group after the other.
template <class Semiring>
class ForwardBackward {
 public:
  ForwardBackward(const AutomatonScores& scores, const TermWeights& weights, const int32_t* labels,
                  const AutomatonPosteriors& out, Stop& stop)
      : scores_(scores),
        weights_(weights),
        labels_(labels),
        out_(out),
        stop_(stop),
        steps_(scores, weights),
        alphas_(scores.automaton.n_states(),
                scores.automaton.n_labels() + (out.need_backward() ? steps_.n_edge_factors() : 0)),
        marginals_(scores.automaton.n_labels()),
        need_terms_(out.arc_sums || out.need_terms()),
        term_sums_(need_terms_ ? scores.automaton.n_terms() : 0),
        term_probs_(out.need_terms() ? scores.automaton.n_terms() : 0),
        arc_probs_(out.patterns ? scores.automaton.n_arcs() : 0) {}

  // Writes the results of a group. False if a lane is refused: what was written is then
  // meaningless.
  bool run(const Group& group, const SumTable& arc_sums) {
    steps_.open(group);
    alphas_.open(group.longest, Semiring::kOne);
    if (!forward()) return false;
    if (out_.need_backward() && !backward()) return false;
    if (arc_sums) add_arc_sums(arc_sums);
    return true;
  }
  bool refused(int lane) const { return steps_.refused(lane); }

 private:
  // Sums over the positions of a lane's sequence.
  struct Path {
    int32_t state = Automaton::kBegin;  // after the given labels so far
    ExactSum shifts;                    // what was subtracted from the scores
    ExactSum score;                     // of the given labels, minus the shifts
    ExactSum log_norms;                 // log norm_t, with logarithms
    LogProduct norms;                   // norm_t, without

    void add_norm(double norm) {
      if constexpr (Semiring::kLogarithms)
        log_norms.add(norm);
      else
        norms.multiply(norm);
    }
    double log_norm() const { return log_norms.value() + norms.log(); }
  };

  bool forward() {
    for (Path& path : paths_) path = Path();
    steps_.fill_begin(alphas_.boundary(0));
    for (int64_t block = 0; block < alphas_.n_blocks(); ++block)
      if (!fill_block(block, true)) return false;
    for (int l = 0; l < kLanes; ++l) {
      if (!steps_.group().live[l]) continue;
      const int64_t s = steps_.group().sequences[l];
      const double log_norm = paths_[l].log_norm();
      if (out_.log_z) out_.log_z[s] = paths_[l].shifts.value() + log_norm;
      if (out_.log_likelihoods) out_.log_likelihoods[s] = paths_[l].score.value() - log_norm;
    }
    return true;
  }

  // The factors of edges that are kept for the backward pass, after those of the labels.
  Packed* edge_factors(int64_t t) { return alphas_.factors(t) + scores_.automaton.n_labels(); }

  // Computes the alphas of a block; the first time also the norms and the sums of the paths.
  bool fill_block(int64_t block, bool first) {
    steps_.load_alpha(alphas_.boundary(block));
    return alphas_.fill_block(block, first, [&](int64_t t) {
      stop_.check();
      if (out_.need_backward()) steps_.use_edge_factors(edge_factors(t));
      steps_.fill_factors(t, alphas_.factors(t));
      alphas_.norm(t) = steps_.forward(t, alphas_.factors(t), alphas_.norm(t - 1), alphas_.row(t));
      return !first || follow(t, alphas_.norm(t));
    });
  }

  // Adds a position to the sums of the paths; false if a lane is refused. norm: norm_t
  bool follow(int64_t t, const Packed& norm) {
    if (steps_.any_refused()) return false;
    for (int l = 0; l < kLanes; ++l) {
      if (!steps_.is_live(l, t)) continue;
      Path& path = paths_[l];
      const double shift = lane(steps_.shifts(), l);
      path.shifts.add(shift);
      path.add_norm(lane(norm, l));
      if (labels_ == nullptr) continue;
      const int64_t position = scores_.offsets[steps_.group().sequences[l]] + t;
      const int32_t label = labels_[position];
      const int32_t arc = scores_.automaton.find_arc(path.state, label);
      path.score.add(scores_.nodes_at(position)[label]);
      path.score.add(scores_.arcs[arc]);
      if (scores_.edges && t > 0) path.score.add(scores_.edges_at(position)[scores_.edge(arc)]);
      path.score.add(-shift);
      path.state = scores_.automaton.target(arc);
    }
    return true;
  }

  bool backward() {
    std::fill(term_sums_.begin(), term_sums_.end(), Packed(broadcast(0.0)));
    Packed shares(broadcast(0.0));
    for (int l = 0; l < kLanes; ++l)
      if (steps_.group().live[l]) shares.values[l] = out_.weight(steps_.group().sequences[l]);
    for (int64_t t = steps_.group().longest - 1; t >= 0; --t) {
      stop_.check();
      if (alphas_.block_of(t) != alphas_.current()) fill_block(alphas_.block_of(t), false);
      steps_.use_edge_factors(edge_factors(t));
      steps_.begin_beta(t, alphas_.norm(t));
      steps_.reach_with_marginals(t, alphas_.factors(t), alphas_.norm(t - 1), alphas_.norm(t),
                                  alphas_.row(t), marginals_.data());
      if (steps_.any_refused()) return false;
      if (out_.marginals) copy_lanes(scores_, steps_.group(), t, marginals_, out_.marginals);
      if (!need_terms_) {
        steps_.backward();
        continue;
      }
      steps_.load_alpha(alphas_.row_before(t));
      steps_.backward(shares, term_sums_.data());
      if (term_probs_.empty()) continue;
      steps_.fill_term_probs(term_probs_.data());
      if (out_.arc_marginals || out_.pairs)
        copy_terms(scores_, steps_.group(), t, term_probs_, sums_, out_.arc_marginals, out_.pairs);
      if (out_.patterns) write_patterns(t);
    }
    return true;
  }

  void write_patterns(int64_t t) {
    const std::vector<int32_t>& arcs = scores_.automaton.to_cells.arcs;
    for (int l = 0; l < kLanes; ++l) {
      if (!steps_.is_live(l, t)) continue;
      std::fill(arc_probs_.begin(), arc_probs_.end(), 0.0);
      for (size_t e = 0; e < arcs.size(); ++e) arc_probs_[arcs[e]] += term_probs_[e].values[l];
      out_.patterns->write(scores_.offsets[steps_.group().sequences[l]] + t, arc_probs_.data());
    }
  }

  HEDGEROW_CLONES void add_arc_sums(const SumTable& arc_sums) const {
    const std::vector<int32_t>& arcs = scores_.automaton.to_cells.arcs;
    for (size_t e = 0; e < arcs.size(); ++e) {
      const Lanes sums = broadcast(Semiring::kLogarithms ? 1.0 : weights_.to_cells[e]) *
                         static_cast<Lanes>(term_sums_[e]);
      arc_sums.sums[arcs[e]] += sum_lanes(arc_sums.grid.round(sums));
    }
  }

  const AutomatonScores& scores_;
  const TermWeights& weights_;
  const int32_t* labels_;
  const AutomatonPosteriors& out_;
  Stop& stop_;
  Lockstep<Semiring> steps_;
  ForwardRows alphas_;  // (S,) per position
  Numbers marginals_;   // (K,) of one position
  bool need_terms_;     // whether posteriors of terms are needed, summed or at each position
  Numbers term_sums_;   // (E,) posteriors, summed over the positions of a sequence
  Numbers term_probs_;  // (E,) posteriors of one position
  Numbers sums_;        // of these, scratch of copy_terms
  std::vector<double> arc_probs_;  // (A,) those of the arcs, of one lane
  Path paths_[kLanes];
};

}  // namespace

void fill_posteriors(const AutomatonScores& scores, const int32_t* labels,
                     const AutomatonPosteriors& out, int n_threads, Stop& stop) {
  const Groups groups(scores);
  ChunkSums arc_sums(out.arc_sums, scores.automaton.n_arcs(), groups.n_chunks(),
                     SumGrid(out.bound));
  for_each_group<ForwardBackward>(
      scores, groups, n_threads, stop,
      [&](int64_t chunk, auto& pass, const Group& group) {
        return pass.run(group, arc_sums.open(chunk));
      },
      labels, out);
  arc_sums.finish();
}

}  // namespace hedgerow
