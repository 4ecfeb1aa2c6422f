// Everything that chooses the labels of tree-shaped graphs one by one, parents before children: the
// best labelling, the k best, random ones, and the likelihood with a weight for each position.
#include <cmath>
#include <vector>

#include "trellis/chunk_sums.hpp"
#include "trellis/draw.hpp"
#include "trellis/k_best_search.hpp"
#include "trellis/tree_graph_chunks.hpp"
#include "trellis/tree_graph_pass.hpp"

namespace hedgerow {
namespace {

// The beliefs of some sequences, and from them the weights of a node's labels, given its parent's
// state.
template <class Algebra>
class GraphWalk : public GraphPass<Algebra> {
 public:
  GraphWalk(const GraphScores& scores, const GraphStates& states, Stop& stop)
      : GraphPass<Algebra>(scores, states, stop, false),
        raw_(scores.n_labels),
        values_(scores.n_labels) {}

  // False if a sequence is refused.
  bool open(std::span<const int64_t> chosen) {
    this->up(chosen);
    return !this->any_refused();
  }
  const GraphStates& states() const { return states_; }
  bool is_root(int64_t node) const { return this->order_.parents[node] < 0; }
  int64_t sequence_of(int64_t node) const { return this->chosen_[this->order_.sequences[node]]; }
  void check_stop() { this->stop_.check(); }

  // Computes values(): with Best, the scores of the labels, up to a constant; otherwise their
  // probabilities before division by total(). state: of the parent, 0 at a root
  void fill_values(int64_t node, int32_t state) {
    const double* belief = this->belief(node);
    const bool root = is_root(node), edges = this->scores_.edges != nullptr && !root;
    const double* weights = states_.matrix() + state * int64_t{states_.label_stride()};
    const int n_labels = this->scores_.n_labels;
    if (edges) fill_row(this->edges_of(node), state);
    for (int32_t k = 0; k < n_labels; ++k) {
      const int32_t target = states_.target(state, k);
      const double weight = root ? states_.begin()[target] : edges ? row_[k] : weights[k];
      raw_[k] = product<Algebra>(weight, belief[target]);
    }
    top_ = *std::max_element(raw_.begin(), raw_.end());
    values_ = raw_;
    if constexpr (!Algebra::kSums) return;
    total_ = 0.0;
    for (double& value : values_) {
      if constexpr (Algebra::kLogs) value = top_ == -kInfinity ? 0.0 : std::exp(value - top_);
      total_ += value;
    }
  }
  // The best label, of equally good ones the lowest code; only with Best.
  int32_t best_label(int64_t node, int32_t state) {
    if (is_root(node) || this->scores_.edges || !states_.first_order()) {
      fill_values(node, state);
      return static_cast<int32_t>(std::max_element(raw_.begin(), raw_.end()) - raw_.begin());
    }
    const double* weights = states_.matrix() + state * int64_t{states_.label_stride()};
    const double* belief = this->belief(node);
    int32_t best = 0;
    double highest = weights[0] + belief[0];
    for (int32_t k = 1; k < this->scores_.n_labels; ++k) {
      const double score = weights[k] + belief[k];
      if (score > highest) highest = score, best = k;
    }
    return best;
  }
  const std::vector<double>& values() const { return values_; }
  double total() const { return total_; }
  // Divides the values by their total.
  void normalize() {
    for (double& value : values_) value /= total_;
  }
  // Log probability of a label, before normalize().
  double log_prob(int32_t label) const {
    if (total_ == 0.0) return -kInfinity;
    return (Algebra::kLogs ? raw_[label] - top_ : std::log(raw_[label])) - std::log(total_);
  }

 private:
  using GraphPass<Algebra>::states_;

  // Weights of the arcs from a state, edges included, up to a common factor.
  void fill_row(const double* edges, int32_t state) {
    const int n_labels = this->scores_.n_labels;
    row_.resize(n_labels);
    for (int32_t k = 0; k < n_labels; ++k)
      row_[k] = this->scores_.arcs[states_.arc(state, k)] + edges[states_.edge(state, k)];
    if constexpr (Algebra::kLogs) return;
    const double top = *std::max_element(row_.begin(), row_.end());
    for (double& each : row_) each = top == -kInfinity ? 0.0 : std::exp(each - top);
  }

  std::vector<double> raw_, values_, row_;
  double top_ = 0.0, total_ = 0.0;
};

// Labels of the nodes of one sequence, chosen in their order: see KBestSearch.
class NodeWalk {
 public:
  explicit NodeWalk(GraphWalk<Best>& walk) : walk_(walk), states_(walk.order().size()) {}

  const std::vector<double>& values(int64_t node) {
    walk_.fill_values(node, state_before(node));
    return walk_.values();
  }
  void choose(int64_t node, int32_t label) {
    states_[node] = walk_.states().target(state_before(node), label);
  }

 private:
  int32_t state_before(int64_t node) const {
    return walk_.is_root(node) ? 0 : states_[walk_.order().parents[node]];
  }

  GraphWalk<Best>& walk_;
  std::vector<int32_t> states_;
};

// Calls task(walk, chunk) for all sequences, some at a time, after walk.open().
template <class Fast, class Task>
void for_each_graph_walk(const GraphScores& scores, const GraphChunks& chunks, int n_threads,
                         Stop& stop, Task task) {
  for_each_graph<GraphWalk, Fast>(scores, chunks, n_threads, stop,
                                  [&](auto& walk, int64_t chunk, std::span<const int64_t> chosen) {
                                    if (!walk.open(chosen)) return false;
                                    task(walk, chunk);
                                    return true;
                                  });
}

// A measure over the states of each node, for the likelihood with weights of positions.
template <class Walk>
class NodeMeasures {
 public:
  NodeMeasures(const GraphScores& scores, const int32_t* labels, const double* weights,
               const GraphPosteriors& out, const SumTable& arc_sums, Walk& walk)
      : scores_(scores),
        labels_(labels),
        weights_(weights),
        out_(out),
        arc_sums_(arc_sums),
        walk_(walk),
        n_states_(walk.states().n_states()),
        masses_(walk.order().size() * n_states_, 0.0),
        observed_(walk.order().size()),
        before_(n_states_) {}

  // Adds log-likelihoods, and writes the counts of a node, after those of its parent.
  void visit(int64_t i) {
    const int64_t position = walk_.order().positions[i], parent = walk_.order().parents[i];
    const double weight = weights_[position];
    counts_ = out_.marginals + position * scores_.n_labels;
    pairs_ = out_.pairs ? out_.pairs + position * scores_.n_edges() : nullptr;
    std::fill(counts_, counts_ + scores_.n_labels, 0.0);
    if (pairs_) std::fill(pairs_, pairs_ + scores_.n_edges(), 0.0);
    if (parent < 0) return spread(i, 0, weight, true);
    std::copy_n(masses_.begin() + parent * n_states_, n_states_, before_.begin());
    const double change = weights_[walk_.order().positions[parent]] - weight;
    before_[observed_[parent]] -= change;
    for (int32_t q = 0; q < n_states_; ++q)
      if (before_[q] != 0.0 || q == observed_[parent])
        spread(i, q, before_[q], q == observed_[parent]);
  }

 private:
  // Distributes a mass from a state of the parent to those of the node.
  void spread(int64_t i, int32_t state, double mass, bool observed) {
    const int64_t position = walk_.order().positions[i];
    const GraphStates& states = walk_.states();
    const bool root = walk_.is_root(i);
    walk_.fill_values(i, state);
    if (observed) {
      const int32_t label = labels_[position];
      observed_[i] = states.target(state, label);
      double& sum = out_.log_likelihoods[walk_.sequence_of(i)];
      if (weights_[position] != 0.0) sum += weights_[position] * walk_.log_prob(label);
    }
    if (mass == 0.0 || walk_.total() == 0.0) return;
    walk_.normalize();
    for (int32_t k = 0; k < scores_.n_labels; ++k) {
      const double count = mass * walk_.values()[k];
      counts_[k] += count;
      masses_[i * n_states_ + states.target(state, k)] += count;
      if (arc_sums_ && !(root && states.first_order())) arc_sums_.add(states.arc(state, k), count);
      if (pairs_ && !root) pairs_[states.edge(state, k)] += count;
    }
  }

  const GraphScores& scores_;
  const int32_t* labels_;
  const double* weights_;
  const GraphPosteriors& out_;
  SumTable arc_sums_;
  Walk& walk_;
  int64_t n_states_;
  std::vector<double> masses_;     // (n, X)
  std::vector<int32_t> observed_;  // (n,) state that the given labels lead to
  std::vector<double> before_;     // (X,) of the parent
  double *counts_ = nullptr, *pairs_ = nullptr;
};

}  // namespace

void fill_graph_viterbi(const GraphScores& scores, int32_t* labels, int n_threads, Stop& stop) {
  const GraphChunks chunks(scores);
  for_each_graph_walk<Best>(scores, chunks, n_threads, stop, [&](auto& walk, int64_t) {
    const GraphOrder& order = walk.order();
    std::vector<int32_t> states(order.size());
    for (int64_t i = 0; i < order.size(); ++i) {
      const int32_t before = walk.is_root(i) ? 0 : states[order.parents[i]];
      const int32_t best = walk.best_label(i, before);
      labels[order.positions[i]] = best;
      states[i] = walk.states().target(before, best);
    }
  });
}

void fill_graph_k_best(const GraphScores& scores, int64_t n_best, int32_t* labels, int64_t* counts,
                       double* losses, int n_threads, Stop& stop) {
  const int64_t n_positions = scores.offsets[scores.n_sequences];
  const GraphStates states(scores, true);
  parallel_for(scores.n_sequences, n_threads, stop, [&](int64_t s) {
    GraphWalk<Best> walk(scores, states, stop);
    walk.open(std::span<const int64_t>(&s, 1));
    NodeWalk nodes(walk);
    KBestSearch search;
    const GraphOrder& order = walk.order();
    const auto write = [&](int64_t rank, const int32_t* found, double loss) {
      for (int64_t i = 0; i < order.size(); ++i)
        labels[rank * n_positions + order.positions[i]] = found[i];
      losses[rank * scores.n_sequences + s] = loss;
    };
    counts[s] = search.run(nodes, order.size(), n_best, write);
  });
}

void fill_graph_samples(const GraphScores& scores, int64_t n_samples, const double* uniforms,
                        int32_t* labels, int n_threads, Stop& stop) {
  const int64_t n_positions = scores.offsets[scores.n_sequences];
  const GraphChunks chunks(scores);
  for_each_graph_walk<Scaled>(scores, chunks, n_threads, stop, [&](auto& walk, int64_t) {
    const GraphOrder& order = walk.order();
    std::vector<int32_t> states(order.size() * n_samples);
    for (int64_t i = 0; i < order.size(); ++i) {
      walk.check_stop();
      int32_t seen = -1;
      for (int64_t sample = 0; sample < n_samples; ++sample) {
        const int32_t before = walk.is_root(i) ? 0 : states[order.parents[i] * n_samples + sample];
        if (before != seen) {
          walk.fill_values(i, before);
          walk.normalize();
          seen = before;
        }
        const int64_t place = sample * n_positions + order.positions[i];
        labels[place] = draw(walk.values(), uniforms[place]);
        states[i * n_samples + sample] = walk.states().target(before, labels[place]);
      }
    }
  });
}

// By the chain rule, parents before children, log P(y) = sum_t log P(y_t | q_parent(t)); here each
// term has its own weight w_t. The gradient is observed minus expected counts, where the expected
// counts at t are a measure m_t over the states, of total w_t, that the conditional probabilities
// carry from parents p to each of their children:
//   m_t(q') = sum over (q, k) that lead to q' of
//             (m_p(q) - (w_p - w_t) [q is the observed state]) P(y_t = k | q),
// from w_t at the beginning for a root. With equal weights m_t is w times the posterior.
void fill_graph_weighted_posteriors(const GraphScores& scores, const int32_t* labels,
                                    const double* weights, const GraphPosteriors& out,
                                    int n_threads, Stop& stop) {
  const GraphChunks chunks(scores);
  ChunkSums arc_sums(out.arc_sums, scores.n_arcs(), chunks.n_chunks(), SumGrid(out.bound));
  std::fill(out.log_likelihoods, out.log_likelihoods + scores.n_sequences, 0.0);
  for_each_graph_walk<Scaled>(scores, chunks, n_threads, stop, [&](auto& walk, int64_t chunk) {
    NodeMeasures measures(scores, labels, weights, out, arc_sums.open(chunk), walk);
    for (int64_t i = 0; i < walk.order().size(); ++i) {
      walk.check_stop();
      measures.visit(i);
    }
  });
  arc_sums.finish();
}

}  // namespace hedgerow
