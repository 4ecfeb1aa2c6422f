// Everything that chooses labels one by one over a label automaton: the best labelling, the k best,
// random ones, and the likelihood with a weight for each position. All of them first go backward,
// to compute the beta of every state, and then forward, label by label.
#include <cmath>
#include <memory>
#include <numeric>
#include <string>

#include "trellis/chunk_sums.hpp"
#include "trellis/draw.hpp"
#include "trellis/groups.hpp"
#include "trellis/k_best_search.hpp"
#include "trellis/passes.hpp"
#include "trellis/semiring.hpp"
#include "trellis/sums.hpp"

namespace hedgerow {
namespace {

// One group's betas, and from them the weights of the next label in any state at any position.
template <class Semiring>
class Walk {
 public:
  Walk(const AutomatonScores& scores, const TermWeights& weights, Stop& stop)
      : scores_(scores),
        weights_(weights),
        stop_(stop),
        steps_(scores, weights),
        betas_(scores.automaton.n_states()),
        factors_(scores.automaton.n_labels()),
        arcs_(scores.automaton.n_labels()),
        values_(scores.automaton.n_labels()) {}

  // Computes the betas; false if a lane is refused. Without keep_all positions must then be visited
  // in ascending order.
  bool open(const Group& group, bool keep_all = false) {
    steps_.open(group);
    betas_.open(group.longest, keep_all);
    const size_t last = betas_.n_blocks();
    std::fill(betas_.boundary(last), betas_.boundary(last) + scores_.automaton.n_states(),
              broadcast(Semiring::kZero));
    for (int64_t block = betas_.n_blocks() - 1; block >= 0; --block)
      if (!fill_block(block)) return false;
    return true;
  }
  const Group& group() const { return steps_.group(); }
  bool is_live(int lane, int64_t t) const { return steps_.is_live(lane, t); }
  bool refused(int lane) const { return steps_.refused(lane); }

  // Makes t the visited position.
  void visit(int64_t t) {
    stop_.check();
    if (betas_.block_of(t) != betas_.current()) fill_block(betas_.block_of(t));
    steps_.fill_factors(t, factors_.data());
    beta_ = betas_.row(t);
  }
  // For every label k, the weight of all labellings that go on with k from a state before the
  // visited position t: values()[k] = weight of the arc (* edge factor) * factor[k] *
  // beta_t[target]. Throws NoPath if all are 0.
  void fill_values(int lane_index, int32_t state) {
    const Automaton& automaton = scores_.automaton;
    automaton.fill_arcs(state, arcs_.data());
    bool any = false;
    for (size_t k = 0; k < arcs_.size(); ++k) {
      const Lanes value = Semiring::multiply(
          Semiring::multiply(broadcast(weights_.by_arc[arcs_[k]]), steps_.edge_factor(arcs_[k])),
          Semiring::multiply(factors_[k], beta_[automaton.target(arcs_[k])]));
      values_[k] = lane(value, lane_index);
      any = any || values_[k] > Semiring::kZero;
    }
    if (!any)
      throw NoPath("sequence " + std::to_string(group().sequences[lane_index]) +
                   " has no labelling with a finite score; allow more labels or arcs");
  }
  const std::vector<double>& values() const { return values_; }
  int32_t arc(int32_t label) const { return arcs_[label]; }
  int32_t target(int32_t label) const { return scores_.automaton.target(arcs_[label]); }
  // Log probability of the next label, from the values.
  double log_prob(int32_t label) const {
    if constexpr (!Semiring::kLogarithms) {
      return std::log(values_[label] / std::accumulate(values_.begin(), values_.end(), 0.0));
    } else {
      const double largest = *std::max_element(values_.begin(), values_.end());
      double total = 0.0;
      for (const double value : values_) total += std::exp(value - largest);
      return values_[label] - largest - std::log(total);
    }
  }
  // Turns the values into probabilities of the next label.
  void normalize() {
    double total = 0.0;
    if constexpr (Semiring::kLogarithms) {
      const double largest = *std::max_element(values_.begin(), values_.end());
      for (double& value : values_) value = std::exp(value - largest);
    }
    for (const double value : values_) total += value;
    for (double& value : values_) value /= total;
  }

 private:
  bool fill_block(int64_t block) {
    const int n_states = scores_.automaton.n_states();
    const int64_t begin = betas_.begin(block), end = betas_.end(block);
    betas_.set_current(block);
    steps_.set_beta(betas_.boundary(block + 1));
    for (int64_t t = end - 1; t >= begin; --t) {
      stop_.check();
      steps_.begin_beta(t, broadcast(Semiring::kOne));
      steps_.fill_factors(t, factors_.data());
      steps_.reach_by_largest(t, factors_.data());
      steps_.copy_beta(betas_.row(t));
      steps_.backward();
      if (steps_.any_refused()) return false;
    }
    std::copy(steps_.beta(), steps_.beta() + n_states, betas_.boundary(block));
    return true;
  }

  const AutomatonScores& scores_;
  const TermWeights& weights_;
  Stop& stop_;
  Lockstep<Semiring> steps_;
  BlockRows betas_;               // (S,) per position
  const Packed* beta_ = nullptr;  // (S,) of the visited position
  Numbers factors_;               // (K,) of the visited position
  std::vector<int32_t> arcs_;     // (K,) taken on each label, of the last fill_values
  std::vector<double> values_;    // (K,) see fill_values
};

// Calls task(chunk, walk) for every group of a batch, after walk.open(group).
template <class Task>
void for_each_walk(const AutomatonScores& scores, int n_threads, Stop& stop, const Groups& groups,
                   Task task) {
  for_each_group<Walk>(scores, groups, n_threads, stop,
                       [&](int64_t chunk, auto& walk, const Group& group) {
                         if (!walk.open(group)) return false;
                         task(chunk, walk);
                         return true;
                       });
}

// The labels of one lane, chosen one by one: see KBestSearch.
class LaneWalk {
 public:
  LaneWalk(const Automaton& automaton, Walk<MaxPlus>& walk, int lane)
      : automaton_(automaton), walk_(walk), lane_(lane) {}

  const std::vector<double>& values(int64_t t) {
    walk_.visit(t);
    walk_.fill_values(lane_, t == 0 ? Automaton::kBegin : state_);
    return walk_.values();
  }
  void choose(int64_t t, int32_t label) {
    const int32_t before = t == 0 ? Automaton::kBegin : state_;
    state_ = automaton_.target(automaton_.find_arc(before, label));
  }

 private:
  const Automaton& automaton_;
  Walk<MaxPlus>& walk_;
  int lane_;
  int32_t state_ = Automaton::kBegin;
};

}  // namespace

void fill_viterbi(const AutomatonScores& scores, int32_t* labels, int n_threads, Stop& stop) {
  const TermWeights weights(scores, MaxPlus::kLogarithms);
  const Groups groups(scores);
  const auto make_walk = [&] { return std::make_unique<Walk<MaxPlus>>(scores, weights, stop); };
  const auto decode = [&](Walk<MaxPlus>& walk, int64_t, const Group& group) {
    walk.open(group);
    int32_t states[kLanes] = {};
    for (int64_t t = 0; t < group.longest; ++t) {
      walk.visit(t);
      for (int l = 0; l < kLanes; ++l) {
        if (!walk.is_live(l, t)) continue;
        walk.fill_values(l, states[l]);
        const std::vector<double>& values = walk.values();
        const auto best = std::max_element(values.begin(), values.end()) - values.begin();
        labels[scores.offsets[group.sequences[l]] + t] = static_cast<int32_t>(best);
        states[l] = walk.target(static_cast<int32_t>(best));
      }
    }
  };
  groups.for_each(n_threads, stop, make_walk, decode);
}

void fill_k_best(const AutomatonScores& scores, int64_t n_best, int32_t* labels, int64_t* counts,
                 double* losses, int n_threads, Stop& stop) {
  const int64_t n_positions = scores.offsets[scores.n_sequences];
  const TermWeights weights(scores, MaxPlus::kLogarithms);
  const Groups groups(scores);
  const auto make_walk = [&] { return std::make_unique<Walk<MaxPlus>>(scores, weights, stop); };
  const auto find_best = [&](Walk<MaxPlus>& walk, int64_t, const Group& group) {
    KBestSearch search;
    walk.open(group, true);
    for (int l = 0; l < kLanes; ++l) {
      if (!group.live[l]) continue;
      const int64_t s = group.sequences[l], length = group.lengths[l];
      LaneWalk lane(scores.automaton, walk, l);
      const auto write = [&](int64_t rank, const int32_t* found, double loss) {
        std::copy(found, found + length, labels + rank * n_positions + scores.offsets[s]);
        losses[rank * scores.n_sequences + s] = loss;
      };
      counts[s] = search.run(lane, length, n_best, write);
    }
  };
  groups.for_each(n_threads, stop, make_walk, find_best);
}

void fill_samples(const AutomatonScores& scores, int64_t n_samples, const double* uniforms,
                  int32_t* labels, int n_threads, Stop& stop) {
  const int64_t n_positions = scores.offsets[scores.n_sequences];
  const Groups groups(scores);
  for_each_walk(scores, n_threads, stop, groups, [&](int64_t, auto& walk) {
    std::vector<int32_t> states(n_samples * kLanes, Automaton::kBegin);
    for (int64_t t = 0; t < walk.group().longest; ++t) {
      walk.visit(t);
      for (int l = 0; l < kLanes; ++l) {
        if (!walk.is_live(l, t)) continue;
        int32_t seen = -1;
        for (int64_t i = 0; i < n_samples; ++i) {
          int32_t& state = states[l * n_samples + i];
          if (state != seen) {
            walk.fill_values(l, state);
            walk.normalize();
            seen = state;
          }
          const int64_t place = i * n_positions + scores.offsets[walk.group().sequences[l]] + t;
          labels[place] = draw(walk.values(), uniforms[place]);
          state = walk.target(labels[place]);
        }
      }
    }
  });
}

// By the chain rule log P(y) = sum_t log P(y_t | q_{t-1}); here each term has its own weight w_t.
// The gradient is observed minus expected counts, where the expected counts at t are a measure m_t
// over the states, of total w_t, that the conditional probabilities carry forward:
//   m_t(q') = sum over (q, k) that lead to q' of
//             (m_{t-1}(q) - (w_{t-1} - w_t) [q is the observed state]) P(y_t = k | q),
// from m_{-1} = w_0 at the beginning. With equal weights m_t is w times the posterior.
void fill_weighted_posteriors(const AutomatonScores& scores, const int32_t* labels,
                              const double* weights, const AutomatonPosteriors& out, int n_threads,
                              Stop& stop) {
  const Automaton& automaton = scores.automaton;
  const int64_t n_labels = automaton.n_labels(), n_pairs = scores.n_edges();
  const Groups groups(scores);
  ChunkSums arc_sums(out.arc_sums, automaton.n_arcs(), groups.n_chunks(), SumGrid(out.bound));
  for_each_walk(scores, n_threads, stop, groups, [&](int64_t chunk, auto& walk) {
    struct Measure {
      std::vector<double> mass, next;        // (S,) m_{t-1} and m_t
      int32_t observed = Automaton::kBegin;  // state after the labels y_0 .. y_{t-1}
      ExactSum log_likelihood;
    } measures[kLanes];
    const SumTable sums = arc_sums.open(chunk);
    const Group& group = walk.group();
    for (Measure& measure : measures) {
      measure.mass.assign(automaton.n_states(), 0.0);
      measure.next = measure.mass;
    }
    for (int64_t t = 0; t < group.longest; ++t) {
      walk.visit(t);
      for (int l = 0; l < kLanes; ++l) {
        if (!walk.is_live(l, t)) continue;
        Measure& measure = measures[l];
        const int64_t position = scores.offsets[group.sequences[l]] + t;
        double* counts = out.marginals + position * n_labels;
        double* pairs = out.pairs ? out.pairs + position * n_pairs : nullptr;
        std::fill(counts, counts + n_labels, 0.0);
        if (pairs) std::fill(pairs, pairs + n_pairs, 0.0);
        measure.mass[measure.observed] +=
            weights[position] - (t == 0 ? 0.0 : weights[position - 1]);
        std::fill(measure.next.begin(), measure.next.end(), 0.0);
        int32_t observed_next = 0;
        for (int32_t q = 0; q < automaton.n_states(); ++q) {
          const double mass = measure.mass[q];
          if (mass == 0.0 && q != measure.observed) continue;
          walk.fill_values(l, q);
          if (q == measure.observed) {
            const int32_t label = labels[position];
            if (weights[position] != 0.0)
              measure.log_likelihood.add(weights[position] * walk.log_prob(label));
            observed_next = walk.target(label);
          }
          walk.normalize();
          for (int32_t k = 0; k < n_labels; ++k) {
            const double count = mass * walk.values()[k];
            const int32_t arc = walk.arc(k);
            counts[k] += count;
            measure.next[automaton.target(arc)] += count;
            if (sums) sums.add(arc, count);
            if (pairs && t > 0) pairs[scores.edge(arc)] += count;
          }
        }
        measure.observed = observed_next;
        std::swap(measure.mass, measure.next);
      }
    }
    for (int l = 0; l < kLanes; ++l)
      if (group.live[l])
        out.log_likelihoods[group.sequences[l]] = measures[l].log_likelihood.value();
  });
  arc_sums.finish();
}

}  // namespace hedgerow
