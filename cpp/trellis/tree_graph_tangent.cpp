// The tangent of the passes over tree-shaped graphs: see tangent.hpp.
//
// Beside every number x of a row stands its mean gain a = d log x, what the scores of the
// labellings that x is a sum of gain along the direction, on average. Gains of products add up;
// that of a sum is the mean, weighted by the terms:
//   belief    a[x] = v[label of x] + sum over the children of their messages' gains
//   message   a[q] = sum_k P(y = k | parent in q) (belief's a[target] + u[q, k])
//   reach     a[x] = sum over (q, k) that lead to x of P(q, k | x) (outside's a[q] + u[q, k])
//   outside   a[x] = the parent's reach + v + sum over the siblings of their messages' gains
// Each row may be shifted by a constant. So v is taken less its mean under the marginals, and of
// messages and outsides the mean is subtracted, so that nothing grows with the size of a tree.
#include <cmath>
#include <vector>

#include "trellis/chunk_sums.hpp"
#include "trellis/tree_graph_pass.hpp"

namespace hedgerow {
namespace {

// a b / c as probabilities, 0 where c is zero; Scaled: a b, to be divided by c later.
template <class Algebra>
HEDGEROW_INLINE Lanes unscaled_share(Lanes a, Lanes b, Lanes c) {
  if constexpr (Algebra::kLogs)
    return exp_nonpositive(
        minimum(a + b - replace_minus_infinity(c, broadcast(0.0)), broadcast(0.0)));
  else
    return a * b;
}

// Passes up and down with gains, of one run after the other.
template <class Algebra>
class GraphTangent : public GraphPass<Algebra> {
 public:
  GraphTangent(const GraphScores& scores, const GraphStates& states, const Direction& direction,
               const AutomatonTangents& out, Stop& stop)
      : GraphPass<Algebra>(scores, states, stop),
        direction_(direction),
        out_(out),
        moves_(table_size(), 0.0),
        sums_(out.arc_sums ? table_size() : 0),
        reach_(kGraphBlock * this->stride_),
        rows_(3 * this->stride_),
        gathered_(states.label_stride()),
        slopes_(states.label_stride()) {
    for (int64_t q = 0; q < states.n_states() && direction.arcs; ++q)
      for (int32_t k = 0; k < scores.n_labels; ++k) {
        const int32_t arc = states.arc(q, k);
        // Where an arc is forbidden its move may be anything.
        moves_[q * states.label_stride() + k] =
            scores.arcs[arc] > -kInfinity ? direction.arcs[arc] : 0.0;
      }
  }

  // Writes the results of some sequences; false if one is refused.
  bool run(std::span<const int64_t> chosen, double* arc_sums) {
    this->up(chosen);
    if (this->any_refused()) return false;
    const size_t n = order_.size() * static_cast<size_t>(stride_);
    if (this->outside_.size() < n) this->outside_.resize(n);
    for (PaddedVector* gains : {&belief_gains_, &message_gains_, &outside_gains_})
      if (gains->size() < n) gains->resize(n);
    std::fill(sums_.begin(), sums_.end(), 0.0);
    for (int64_t i = order_.size() - 1; i >= 0; --i) gain_upwards(i);
    down();
    if (this->any_refused()) return false;
    for (int64_t q = 0; q < states_.n_states() && arc_sums; ++q)
      for (int32_t k = 0; k < scores_.n_labels; ++k)
        arc_sums[states_.arc(q, k)] += sums_[q * states_.label_stride() + k];
    return true;
  }

 private:
  using Base = GraphPass<Algebra>;
  using Base::belief;
  using Base::message;
  using Base::order_;
  using Base::outside;
  using Base::scores_;
  using Base::states_;
  using Base::stride_;

  size_t table_size() const {
    return static_cast<size_t>(states_.n_states()) * states_.label_stride();
  }
  double* belief_gain(int64_t i) { return belief_gains_.data() + i * stride_; }
  double* message_gain(int64_t i) { return message_gains_.data() + i * stride_; }
  double* outside_gain(int64_t i) { return outside_gains_.data() + i * stride_; }

  // The direction of a node's states, less its mean under the marginals.
  void fill_direction(int64_t i, double* row) const {
    const int64_t at = order_.positions[i] * scores_.n_labels;
    const double *probs = direction_.marginals + at, *moves = direction_.nodes + at;
    double mean = 0.0;
    for (int32_t k = 0; k < scores_.n_labels; ++k)
      if (probs[k] > 0.0) mean += probs[k] * moves[k];
    std::fill(row, row + stride_, 0.0);
    for (int32_t k = 0; k < scores_.n_labels; ++k)
      std::fill(row + states_.first_state(k), row + states_.first_state(k + 1),
                probs[k] > 0.0 ? moves[k] - mean : 0.0);
  }

  // Subtracts from gains, one for each state of a node, their mean under its marginals; the states
  // of a label count the same.
  void centre(int64_t i, double* gains) const {
    const double* probs = direction_.marginals + order_.positions[i] * scores_.n_labels;
    double mean = 0.0;
    for (int32_t k = 0; k < scores_.n_labels; ++k) {
      const int32_t first = states_.first_state(k), end = states_.first_state(k + 1);
      for (int32_t x = first; x < end; ++x) mean += probs[k] * gains[x] / (end - first);
    }
    for (int x = 0; x < stride_; ++x) gains[x] -= mean;
  }

  // What labels gain from a state: gains[target(q, k)], (label_stride,).
  const double* gather_gains(const double* by_state, int64_t state) {
    if (states_.first_order()) return by_state;
    for (int32_t k = 0; k < scores_.n_labels; ++k)
      gathered_[k] = by_state[states_.target(state, k)];
    return gathered_.data();
  }

  void gain_upwards(int64_t i) {
    if (i % kGraphBlock == 0) this->stop_.check();
    double* gains = belief_gain(i);
    fill_direction(i, gains);
    for (int64_t c = order_.first_children[i]; c < order_.first_children[i + 1]; ++c)
      for (int x = 0; x < stride_; ++x) gains[x] += message_gain(c)[x];
    if (order_.parents[i] < 0) return;
    double shift = 0.0;
    const double* weights = this->matrix_of(i, shift, this->total_of(i).refused);
    fill_message_gains(i, weights);
    centre(order_.parents[i], message_gain(i));
  }

  HEDGEROW_CLONES void fill_message_gains(int64_t i, const double* weights) {
    const int label_stride = states_.label_stride();
    double* out = message_gain(i);
    std::fill(out, out + stride_, 0.0);
    for (int64_t q = 0; q < states_.n_states(); ++q) {
      const double total = message(i)[q];
      if (total == Algebra::kZero) continue;
      const double *row = weights + q * label_stride, *moves = moves_.data() + q * label_stride;
      const double *beliefs = this->gather(belief(i), q), *gains = gather_gains(belief_gain(i), q);
      Lanes sums = broadcast(0.0);
      for (int k = 0; k < label_stride; k += kLanes)
        sums += unscaled_share<Algebra>(load(row + k), load(beliefs + k), broadcast(total)) *
                (load(gains + k) + load(moves + k));
      out[q] = Algebra::kLogs ? sum_lanes(sums) : sum_lanes(sums) / total;
    }
  }

  void down() {
    for (int64_t level = 0; level < order_.n_levels(); ++level)
      for (int64_t first = order_.levels[level]; first < order_.levels[level + 1];
           first += kGraphBlock) {
        this->stop_.check();
        const int64_t end = std::min(first + kGraphBlock, order_.levels[level + 1]);
        this->fill_reach(first, end, reach_.data());
        for (int64_t i = first; i < end; ++i) {
          const double* reach = reach_.data() + (i - first) * stride_;
          double* gains = rows_.data();
          gain_downwards(i, reach, gains);
          write(i, reach, gains);
          this->fill_outsides(i, reach);
          fill_outside_gains(i, gains);
        }
      }
  }

  // Gains of reach.
  void gain_downwards(int64_t i, const double* reach, double* gains) {
    std::fill(gains, gains + stride_, 0.0);
    if (order_.parents[i] < 0) {
      for (int32_t k = 0; k < scores_.n_labels && !states_.first_order(); ++k)
        gains[states_.target(0, k)] = moves_[k];
      return;
    }
    double shift = 0.0;
    const double* weights = this->matrix_of(i, shift, this->total_of(i).refused);
    add_reach_gains(i, weights, reach, gains);
  }
  HEDGEROW_CLONES void add_reach_gains(int64_t i, const double* weights, const double* reach,
                                       double* gains) {
    const int label_stride = states_.label_stride();
    double* terms = slopes_.data();
    for (int64_t q = 0; q < states_.n_states(); ++q) {
      const double from = outside(i)[q];
      if (from == Algebra::kZero) continue;
      const double *row = weights + q * label_stride, *moves = moves_.data() + q * label_stride;
      const double* totals = Algebra::kLogs ? this->gather(reach, q) : row;
      const Lanes gain = broadcast(outside_gain(i)[q]);
      for (int k = 0; k < label_stride; k += kLanes)
        store(terms + k, unscaled_share<Algebra>(broadcast(from), load(row + k), load(totals + k)) *
                             (gain + load(moves + k)));
      for (int32_t k = 0; k < scores_.n_labels; ++k) gains[states_.target(q, k)] += terms[k];
    }
    for (int x = 0; x < stride_ && !Algebra::kLogs; ++x)
      gains[x] = reach[x] > 0.0 ? gains[x] / reach[x] : 0.0;
  }

  // Derivatives of the marginals, and of the arcs into the node.
  void write(int64_t i, const double* reach, const double* gains) {
    const double norm = dot_rows<Algebra>(reach, belief(i), stride_);
    double* probs = rows_.data() + stride_;
    double mean = 0.0;
    for (int x = 0; x < states_.n_states(); ++x) {
      probs[x] = share<Algebra>(reach[x], belief(i)[x], norm);
      mean += probs[x] * (gains[x] + belief_gain(i)[x]);
    }
    double* out = out_.marginals + order_.positions[i] * scores_.n_labels;
    for (int32_t k = 0; k < scores_.n_labels; ++k) {
      out[k] = 0.0;
      for (int32_t x = states_.first_state(k); x < states_.first_state(k + 1); ++x)
        out[k] += probs[x] * (gains[x] + belief_gain(i)[x] - mean);
    }
    if (out_.arc_sums || out_.pairs) write_arcs(i, norm, mean);
  }

  void write_arcs(int64_t i, double norm, double mean) {
    const int64_t n_pairs = scores_.n_edges();
    double* pairs = out_.pairs ? out_.pairs + order_.positions[i] * n_pairs : nullptr;
    if (pairs) std::fill(pairs, pairs + n_pairs, 0.0);
    const bool is_root = order_.parents[i] < 0;
    if (is_root && states_.first_order()) return;
    double shift = 0.0;
    const double* weights =
        is_root ? states_.matrix() : this->matrix_of(i, shift, this->total_of(i).refused);
    for (int64_t q = 0; q < (is_root ? 1 : states_.n_states()); ++q) {
      const double from = is_root ? Algebra::kOne : outside(i)[q];
      if (from == Algebra::kZero) continue;
      fill_arc_slopes(i, q, product<Algebra>(from, Algebra::kLogs ? -norm : 1.0 / norm),
                      (is_root ? 0.0 : outside_gain(i)[q]) - mean, weights);
      for (int32_t k = 0; k < scores_.n_labels && pairs && !is_root; ++k)
        pairs[states_.edge(q, k)] += slopes_[k];
    }
  }
  // Derivatives of the arcs from a state of the parent, in slopes_ and added to sums_. from:
  // outside, divided by the norm; gain: of the outside, less the mean
  HEDGEROW_CLONES void fill_arc_slopes(int64_t i, int64_t q, double from, double gain,
                                       const double* weights) {
    const int64_t begin = q * states_.label_stride();
    const double *beliefs = this->gather(belief(i), q), *gains = gather_gains(belief_gain(i), q);
    for (int k = 0; k < states_.label_stride(); k += kLanes) {
      Lanes prob = product<Algebra>(load(weights + begin + k), load(beliefs + k));
      prob = product<Algebra>(prob, broadcast(from));
      if constexpr (Algebra::kLogs) prob = exp_nonpositive(minimum(prob, broadcast(0.0)));
      const Lanes slopes = prob * (broadcast(gain) + load(&moves_[begin + k]) + load(gains + k));
      store(&slopes_[k], slopes);
      if (!sums_.empty()) store(&sums_[begin + k], load(&sums_[begin + k]) + slopes);
    }
  }

  // gains: of the node's reach, which become those of reach times factors
  void fill_outside_gains(int64_t i, double* gains) {
    const int64_t begin = order_.first_children[i], end = order_.first_children[i + 1];
    if (begin == end) return;
    double *own = rows_.data() + stride_, *suffix = own + stride_;
    fill_direction(i, own);
    for (int x = 0; x < stride_; ++x) gains[x] += own[x];
    centre(i, gains);
    std::copy(gains, gains + stride_, outside_gain(begin));
    for (int64_t c = begin; c + 1 < end; ++c)
      for (int x = 0; x < stride_; ++x)
        outside_gain(c + 1)[x] = outside_gain(c)[x] + message_gain(c)[x];
    std::fill(suffix, suffix + stride_, 0.0);
    for (int64_t c = end - 1; c >= begin; --c)
      for (int x = 0; x < stride_; ++x) {
        outside_gain(c)[x] += suffix[x];
        suffix[x] += message_gain(c)[x];
      }
  }

  const Direction& direction_;
  const AutomatonTangents& out_;
  PaddedVector moves_;  // (X, label_stride) of the arcs
  PaddedVector sums_;   // (X, label_stride) derivatives of the arcs' posteriors, summed
  PaddedVector belief_gains_, message_gains_, outside_gains_;  // (n, stride)
  PaddedVector reach_;                                         // (kGraphBlock, stride)
  PaddedVector rows_, gathered_, slopes_;                      // scratch
};

}  // namespace

void fill_graph_tangents(const GraphScores& scores, const Direction& direction,
                         const AutomatonTangents& out, int n_threads, Stop& stop) {
  const GraphChunks chunks(scores, padded(scores.n_labels));
  ChunkSums arc_sums(out.arc_sums, scores.n_arcs(), chunks.n_chunks());
  for_each_graph<GraphTangent, Scaled>(
      scores, chunks, n_threads, stop,
      [&](auto& pass, int64_t chunk, std::span<const int64_t> chosen) {
        return pass.run(chosen, arc_sums.open(chunk));
      },
      direction, out);
  arc_sums.finish();
}

}  // namespace hedgerow
