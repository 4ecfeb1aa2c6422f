// Mean gains of the rows of tree-shaped graphs along a direction, up and down.
//
// Every number x of a row has a mean gain a = d log x: how much the scores of the labellings summed
// in x increase along the direction, on average. The gain of a product is the sum of the gains of
// its factors; that of a sum is their mean, weighted by the terms:
//   belief    a[x] = v[label of x] + sum over the children of their messages' gains
//   message   a[q] = sum_k P(y = k | parent in q) (belief's a[target] + u[q, k])
//   reach     a[x] = sum over (q, k) that lead to x of P(q, k | x) (outside's a[q] + u[q, k])
//   outside   a[x] = the parent's reach + v + sum over the siblings of their messages' gains
// Each row may be shifted by a constant. So the mean of v under the marginals is subtracted from
// it, and likewise the means of messages and outsides, so that nothing grows with the size of a
// tree.
//
// If all nodes have the same weights, sums over arcs are products with the matrices of w and of w
// u, or steps over an automaton with these weights, for several nodes at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "trellis/tangent.hpp"
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

// Passes with gains over the sequences that are chosen.
template <class Algebra>
class GraphGains : public GraphPass<Algebra> {
 public:
  // grid: of sums over arcs
  GraphGains(const GraphScores& scores, const GraphStates& states, const Direction& direction,
             const SumGrid& grid, Stop& stop)
      : GraphPass<Algebra>(scores, states, stop, false, grid),
        direction_(direction),
        moves_(table_size(), 0.0),
        reach_(kGraphBlock * this->stride_),
        reach_gains_(reach_.size()),
        carried_(reach_.size()),
        rows_(this->stride_),
        gathered_(states.label_stride()),
        slopes_(states.label_stride()) {
    for (int64_t q = 0; q < states.n_states() && direction.arcs; ++q)
      for (int32_t k = 0; k < scores.n_labels; ++k) {
        const int32_t arc = states.arc(q, k);
        // The move of a forbidden arc may be any number.
        moves_[q * states.label_stride() + k] =
            scores.arcs[arc] > -kInfinity ? direction.arcs[arc] : 0.0;
      }
    if (direction.arcs && same_weights()) weigh_moves(grid);
  }

 protected:
  using Base = GraphPass<Algebra>;
  using Base::belief;
  using Base::message;
  using Base::order_;
  using Base::outside;
  using Base::scores_;
  using Base::states_;
  using Base::stride_;
  using Base::table_size;

  // Whether the arcs into all nodes have the same weights, and these are not logarithms.
  bool same_weights() const { return !Algebra::kLogs && scores_.edges == nullptr; }
  double* belief_gain(int64_t i) { return belief_gains_.data() + i * stride_; }
  double* message_gain(int64_t i) { return message_gains_.data() + i * stride_; }
  double* outside_gain(int64_t i) { return outside_gains_.data() + i * stride_; }
  double* marginal(int64_t i) { return marginals_.data() + i * stride_; }

  void resize_gains() {
    const size_t n = order_.size() * static_cast<size_t>(stride_);
    for (PaddedVector* rows : {&belief_gains_, &message_gains_, &outside_gains_, &marginals_})
      if (rows->size() < n) rows->resize(n);
    message_means_.resize(order_.size());
  }

  void weigh_moves(const SumGrid& grid) {
    if (this->steps_) {
      std::vector<double> weights = states_.arc_weights();
      for (size_t a = 0; a < weights.size(); ++a)
        if (weights[a] > 0.0) weights[a] *= direction_.arcs[a];
      moved_steps_.emplace(states_, weights, grid);
      return;
    }
    weighted_moves_.resize(table_size()), weighted_moves_back_.resize(table_size());
    for (int64_t q = 0; q < scores_.n_labels; ++q)
      for (int64_t k = 0; k < scores_.n_labels; ++k)
        weighted_moves_[q * stride_ + k] = weighted_moves_back_[k * stride_ + q] =
            states_.matrix()[q * stride_ + k] * moves_[q * stride_ + k];
  }

  // Fills a row with the direction of a node's states minus its mean under the marginals; and fills
  // marginal(i), in which all states of a label have the same weight.
  HEDGEROW_INLINE void fill_direction(int64_t i, double* row) {
    const int64_t position = order_.positions[i], at = position * scores_.n_labels;
    const bool inner = position < this->n_inner_;
    const double *probs = direction_.marginals + at, *moves = direction_.nodes + at;
    const Row labels(scores_.n_labels);
    double* by_label = states_.first_order() ? row : gathered_.data();
    double* kept = states_.first_order() ? marginal(i) : slopes_.data();
    Lanes sums = broadcast(0.0);
    for (int k = 0; k < states_.label_stride(); k += kLanes) {
      const Lanes prob = labels.load_at(probs, k, inner), move = labels.load_at(moves, k, inner);
      sums += where_positive(prob, prob * move);
      store(kept + k, prob);
      store(by_label + k, move);
    }
    const Lanes mean = broadcast(sum_lanes(sums));
    for (int k = 0; k < states_.label_stride(); k += kLanes)
      store(by_label + k, where_positive(load(kept + k), load(by_label + k) - mean));
    if (states_.first_order()) return;
    double* weights = marginal(i);
    for (double* out : {row, weights}) std::fill(out, out + stride_, 0.0);
    for (int32_t k = 0; k < scores_.n_labels; ++k) {
      const int32_t first = states_.first_state(k), end = states_.first_state(k + 1);
      const double move = by_label[k], weight = kept[k] / (end - first);
      for (int32_t x = first; x < end; ++x) row[x] = move, weights[x] = weight;
    }
  }

  // Subtracts from gains, one for each state of a node, their mean under marginal(i). Returns the
  // mean.
  HEDGEROW_INLINE double centre(int64_t i, double* gains) {
    Lanes sums = broadcast(0.0);
    for (int x = 0; x < stride_; x += kLanes) sums += load(marginal(i) + x) * load(gains + x);
    const double mean = sum_lanes(sums);
    for (int x = 0; x < stride_; x += kLanes) store(gains + x, load(gains + x) - broadcast(mean));
    return mean;
  }

  // The gains of labels, given a state: gains[target(q, k)], (label_stride,).
  const double* gather_gains(const double* by_state, int64_t state) {
    if (states_.first_order()) return by_state;
    for (int32_t k = 0; k < scores_.n_labels; ++k)
      gathered_[k] = by_state[states_.target(state, k)];
    return gathered_.data();
  }

  void up_gains() {
    for (int64_t first = 0; first < order_.size(); first += kGraphBlock) {
      this->stop_.check();
      fill_directions(first, std::min(first + kGraphBlock, order_.size()));
    }
    for (int64_t level = order_.n_levels() - 1; level >= 0; --level)
      for (int64_t first = order_.levels[level]; first < order_.levels[level + 1];
           first += kGraphBlock) {
        this->stop_.check();
        const int64_t end = std::min(first + kGraphBlock, order_.levels[level + 1]);
        fill_belief_gains(first, end);
        if (level == 0) continue;
        if (same_weights())
          fill_same_message_gains(first, end);
        else
          for (int64_t i = first; i < end; ++i) fill_message_gains(i, this->matrix_of(i));
      }
  }
  // For the nodes at places first .. end-1, so that the direction is read in its order.
  HEDGEROW_CLONES void fill_directions(int64_t first, int64_t end) {
    for (int64_t place = first; place < end; ++place) {
      const int64_t i = order_.nodes[place];
      fill_direction(i, belief_gain(i));
    }
  }
  HEDGEROW_CLONES void fill_belief_gains(int64_t first, int64_t end) {
    for (int64_t c = order_.first_children[first]; c < order_.first_children[end]; ++c) {
      const int64_t parent = order_.parents[c];
      message_means_[c] = centre(parent, message_gain(c));
      copy_row(belief_gain(parent), stride_, outside_gain(c));
      add_rows(belief_gain(parent), message_gain(c), belief_gain(parent));
    }
  }
  // out = a + b
  HEDGEROW_INLINE void add_rows(const double* a, const double* b, double* out) const {
    for (int x = 0; x < stride_; x += kLanes) store(out + x, load(a + x) + load(b + x));
  }

  // carried_ = x gains, all of n_rows rows.
  HEDGEROW_CLONES void carry(const double* x, const double* gains, int64_t n_rows) {
    double* carried = carried_.data();
    for (int64_t p = 0; p < n_rows * stride_; p += kLanes)
      store(carried + p, load(x + p) * load(gains + p));
  }
  // out = (out + carried_ if `added`) / totals, 0 where that is 0.
  HEDGEROW_CLONES void divide_gains(const double* totals, int64_t n_rows, bool added, double* out) {
    for (int64_t p = 0; p < n_rows * stride_; p += kLanes) {
      const Lanes sums = added ? load(out + p) + load(&carried_[p]) : load(out + p);
      store(out + p, where_positive(load(totals + p), sums / load(totals + p)));
    }
  }
  // out = carried_ times a matrix (K, stride), and carried_ = x times one of moves, unless empty.
  HEDGEROW_CLONES void send_gains(const double* x, int64_t n_rows, const double* matrix,
                                  const PaddedVector& moves, double* out) {
    const int n = scores_.n_labels;
    send_all_rows<Scaled>(carried_.data(), n_rows, stride_, matrix, n, stride_, out, stride_);
    if (!moves.empty())
      send_all_rows<Scaled>(x, n_rows, stride_, moves.data(), n, stride_, carried_.data(), stride_);
  }
  // The gains of messages and of reach: sum_i x[i] (gains[i] w[i, j] + (w u)[i, j]) / totals[j].
  void fill_same_message_gains(int64_t first, int64_t end) {
    const int64_t n = end - first;
    double* out = message_gain(first);
    carry(belief(first), belief_gain(first), n);
    if (this->steps_) {
      this->steps_->fill_messages(carried_.data(), n, out);
      if (moved_steps_) moved_steps_->fill_messages(belief(first), n, carried_.data());
    } else {
      send_gains(belief(first), n, states_.transposed(), weighted_moves_back_, out);
    }
    divide_gains(message(first), n, direction_.arcs != nullptr, out);
  }
  void fill_same_reach_gains(int64_t first, int64_t end) {
    const int64_t n = end - first;
    carry(outside(first), outside_gain(first), n);
    if (this->steps_) {
      this->steps_->fill_reach(carried_.data(), n, reach_gains_.data());
      if (moved_steps_) moved_steps_->fill_reach(outside(first), n, carried_.data());
    } else {
      send_gains(outside(first), n, states_.matrix(), weighted_moves_, reach_gains_.data());
    }
    divide_gains(reach_.data(), n, direction_.arcs != nullptr, reach_gains_.data());
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

  // Gains of reach, of nodes of one level, rows of reach_gains_.
  void fill_reach_gains(int64_t first, int64_t end) {
    if (order_.parents[first] >= 0 && same_weights()) return fill_same_reach_gains(first, end);
    for (int64_t i = first; i < end; ++i)
      gain_downwards(i, reach_.data() + (i - first) * stride_,
                     reach_gains_.data() + (i - first) * stride_);
  }
  void gain_downwards(int64_t i, const double* reach, double* gains) {
    std::fill(gains, gains + stride_, 0.0);
    if (order_.parents[i] < 0) {
      for (int32_t k = 0; k < scores_.n_labels && !states_.first_order(); ++k)
        gains[states_.target(0, k)] = moves_[k];
      return;
    }
    add_reach_gains(i, this->matrix_of(i), reach, gains);
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

  // Like fill_outsides(), of gains. reach_gains_: of the reach of these nodes
  HEDGEROW_CLONES void fill_outside_gains(int64_t first, int64_t end) {
    double* gains = reach_gains_.data();
    for (int64_t i = first; i < end; ++i) centre(i, gains + (i - first) * stride_);
    for (int64_t c = order_.first_children[end] - 1; c >= order_.first_children[first]; --c) {
      double* later = gains + (order_.parents[c] - first) * stride_;
      add_rows(outside_gain(c), later, outside_gain(c));
      add_rows(later, message_gain(c), later);
    }
  }

  const Direction& direction_;
  PaddedVector moves_;                                         // (X, label_stride) of the arcs
  PaddedVector weighted_moves_, weighted_moves_back_;          // (K, stride) w u, its transpose
  std::optional<GraphSteps<SumProduct>> moved_steps_;          // with the weights w u
  PaddedVector belief_gains_, message_gains_, outside_gains_;  // (n, stride)
  std::vector<double> message_means_;                          // (n,) subtracted from message gains
  PaddedVector marginals_;                                     // (n, stride) see fill_direction
  PaddedVector reach_, reach_gains_, carried_;                 // (kGraphBlock, stride)
  PaddedVector rows_, gathered_, slopes_;                      // scratch
};

}  // namespace
}  // namespace hedgerow
