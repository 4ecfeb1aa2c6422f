// Messages up and down tree-shaped graphs, and what is computed from them: posteriors, mixing
// rates.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sum_grid.hpp"
#include "trellis/scaled_loops.hpp"
#include "trellis/tree_graph_curvature.hpp"
#include "trellis/tree_graph_edge_rows.hpp"
#include "trellis/tree_graph_mixing.hpp"
#include "trellis/tree_graph_pass.hpp"
#include "trellis/tree_graph_rates.hpp"

namespace hedgerow {
namespace {

// Passes up and down, for one run after the other.
template <class Algebra>
class GraphUpDown : public GraphPass<Algebra> {
 public:
  GraphUpDown(const GraphScores& scores, const GraphStates& states, const int32_t* labels,
              const GraphPosteriors& out, Stop& stop)
      : GraphPass<Algebra>(scores, states, stop, out.log_z || out.log_likelihoods,
                           SumGrid(out.bound)),
        labels_(labels),
        out_(out),
        grid_(out.bound),
        need_probs_(out.pairs || out.patterns || adds_probs()),
        sums_(out.arc_sums ? table_size() : 0),
        probs_(need_probs_ || out.mixing ? table_size() : 0),
        reach_(kGraphBlock * this->stride_),
        shares_(adds_terms() ? reach_.size() : 0),
        product_(kWaitingRows * this->stride_),
        outer_(out.arc_sums && adds_outer_products() ? 2 : 0, this->stride_),
        arc_probs_(out.patterns ? scores.n_arcs() : 0) {
    if (out.mixing && out.mixing->pair_curvature)
      curvature_.emplace(states, curvature_grid(out.mixing->bound), adds_outer_products());
  }

  // Writes the results of some sequences; false if one is refused: what was written is then
  // meaningless. Sums are added to arc_sums (A,) and curvature (K, K), unless null.
  bool run(std::span<const int64_t> chosen, const SumTable& arc_sums, const SumTable& curvature) {
    this->up(chosen);
    if (this->any_refused()) return false;
    if (out_.need_down()) down();
    if (this->any_refused()) return false;
    write_totals();
    if (arc_sums) add_arc_sums(arc_sums.sums);
    if (out_.mixing != nullptr) write_mixing(curvature.sums);
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
  using Base::table_size;

  // Whether sums over arcs are those of outer products, times the weights of the arcs.
  bool adds_outer_products() const {
    return !Algebra::kLogs && states_.first_order() && scores_.edges == nullptr;
  }
  // Whether these sums are computed by the steps down.
  bool adds_terms() const { return out_.arc_sums && this->steps_; }
  // Whether these sums are those of the arcs' posteriors, node by node.
  bool adds_probs() const { return out_.arc_sums && !adds_outer_products() && !adds_terms(); }
  int64_t sequence_of(int64_t node) const { return this->chosen_[order_.sequences[node]]; }

  void down() {
    norms_.resize(order_.size());
    std::fill(sums_.begin(), sums_.end(), 0.0);
    if (adds_terms()) this->steps_->open_sums();
    outer_.open(order_);
    if (out_.mixing) rates_.open(order_.size());
    for (int64_t level = 0; level < order_.n_levels(); ++level)
      for (int64_t first = order_.levels[level]; first < order_.levels[level + 1];
           first += kGraphBlock) {
        this->stop_.check();
        const int64_t end = std::min(first + kGraphBlock, order_.levels[level + 1]);
        if (adds_terms())
          fill_reach_and_sums(first, end);
        else
          this->fill_reach(first, end, reach_.data());
        finish(first, end);
        if (out_.arc_sums && adds_outer_products() && level > 0) keep_expected_arcs(first, end);
        for (int64_t i = first; i < end && need_probs_; ++i) write_pairs(i);
        if (out_.mixing) measure(first, end);
        this->fill_outsides(first, end, reach_.data());
      }
  }

  HEDGEROW_CLONES void fill_reach_and_sums(int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      const bool is_root = order_.parents[i] < 0;
      if (is_root) this->open_outside(i);
      const double norm = is_root ? dot_rows<Algebra>(states_.begin(), belief(i), stride_)
                                  : dot_rows<Algebra>(outside(i), message(i), stride_);
      scale_row(out_.weight(sequence_of(i)) / norm, belief(i), stride_,
                shares_.data() + (i - first) * stride_);
    }
    this->steps_->fill_reach_and_sums(outside(first), shares_.data(), end - first, reach_.data());
  }

  // Norms and marginals.
  HEDGEROW_CLONES void finish(int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      const double* reach = reach_.data() + (i - first) * stride_;
      norms_[i] = dot_rows<Algebra>(reach, belief(i), stride_);
      if (out_.marginals) {
        this->prefetch_ahead(out_.marginals, i);
        write_marginals(i, reach);
      }
    }
  }

  HEDGEROW_INLINE void write_marginals(int64_t i, const double* reach) {
    double* probs = product_.data();
    const Lanes norm = broadcast(Algebra::kLogs ? norms_[i] : 1.0 / norms_[i]);
    for (int x = 0; x < stride_; x += kLanes) {
      const Lanes both = product<Algebra>(load(reach + x), load(belief(i) + x));
      if constexpr (Algebra::kLogs)
        store(probs + x, exp_nonpositive(minimum(both - norm, broadcast(0.0))));
      else
        store(probs + x, both * norm);
    }
    double* out = out_.marginals + order_.positions[i] * scores_.n_labels;
    if (states_.first_order()) return Row(scores_.n_labels).copy_from_padded(probs, false, out);
    for (int32_t k = 0; k < scores_.n_labels; ++k)
      out[k] = sum_range(probs + states_.first_state(k), probs + states_.first_state(k + 1));
  }

  HEDGEROW_CLONES void keep_expected_arcs(int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      scale_row(out_.weight(sequence_of(i)) / norms_[i], outside(i), stride_, outer_.row(0, i));
      scale_row(1.0, belief(i), stride_, outer_.row(1, i));
    }
  }
  HEDGEROW_CLONES void add_expected_arcs() {
    const double* weights = states_.matrix();
    outer_.sum(0, 1, [&](int64_t place, Lanes outer) {
      store(&sums_[place], load(&sums_[place]) + grid_.round(load(weights + place) * outer));
    });
  }

  // Fills probs_ with P(state of the parent = q, label = k); at a root, only q = 0 of an automaton.
  void fill_probs(int64_t i) {
    if (order_.parents[i] < 0) {
      std::fill(probs_.begin(), probs_.end(), 0.0);
      for (int32_t k = 0; k < scores_.n_labels && !states_.first_order(); ++k) {
        const int32_t x = states_.target(0, k);
        probs_[k] = share<Algebra>(states_.begin()[x], belief(i)[x], norms_[i]);
      }
      return;
    }
    fill_prob_rows(i, this->matrix_of(i));
  }
  HEDGEROW_CLONES void fill_prob_rows(int64_t i, const double* weights) {
    const int label_stride = states_.label_stride();
    const double per_norm = Algebra::kLogs ? -norms_[i] : 1.0 / norms_[i];
    double* out = probs_.data();
    for (int64_t q = 0; q < states_.n_states(); ++q) {
      const Lanes factor = broadcast(product<Algebra>(outside(i)[q], per_norm));
      const double* beliefs = this->gather(belief(i), q);
      for (int k = 0; k < label_stride; k += kLanes, out += kLanes, weights += kLanes) {
        const Lanes both = product<Algebra>(load(weights), load(beliefs + k));
        if constexpr (Algebra::kLogs)
          store(out, exp_nonpositive(minimum(both + factor, broadcast(0.0))));
        else
          store(out, both * factor);
      }
    }
  }

  void write_pairs(int64_t i) {
    fill_probs(i);
    const int64_t position = order_.positions[i], n_pairs = scores_.n_edges();
    const bool is_root = order_.parents[i] < 0;
    if (adds_probs()) {
      const double weight = out_.weight(sequence_of(i));
      for (size_t p = 0; p < probs_.size(); ++p) sums_[p] += grid_.round(weight * probs_[p]);
    }
    double* pairs = out_.pairs ? out_.pairs + position * n_pairs : nullptr;
    if (pairs) std::fill(pairs, pairs + n_pairs, 0.0);
    std::fill(arc_probs_.begin(), arc_probs_.end(), 0.0);
    for (int64_t q = 0; q < states_.n_states(); ++q)
      for (int32_t k = 0; k < scores_.n_labels && (pairs || out_.patterns); ++k) {
        const double prob = probs_[q * states_.label_stride() + k];
        if (pairs && !is_root && (q > 0 || states_.first_order()))
          pairs[states_.edge(q, k)] += prob;
        if (out_.patterns) arc_probs_[states_.arc(q, k)] += prob;
      }
    if (out_.patterns) out_.patterns->write(position, arc_probs_.data());
  }

  void add_arc_sums(double* arc_sums) {
    if (adds_outer_products()) add_expected_arcs();
    if (adds_terms()) return this->steps_->add_sums_to(arc_sums);
    for (int64_t q = 0; q < states_.n_states(); ++q)
      for (int32_t k = 0; k < scores_.n_labels; ++k) {
        const int64_t place = q * states_.label_stride() + k;
        arc_sums[states_.arc(q, k)] += sums_[place];
      }
  }

  // Rates between nodes of one level and their parents, and what the curvature needs to know about
  // the nodes.
  void measure(int64_t first, int64_t end) {
    if (curvature_ && adds_outer_products())
      curvature_->find_likely(first, end, reach_.data(), belief(first), norms_.data());
    if (order_.parents[first] < 0) return;
    double *down = rates_.down.data(), *up = rates_.up.data();
    if (adds_outer_products()) {
      const RateRows rows{outside(first), message(first), belief(first), reach_.data()};
      return measure_rates(rows, end - first, states_.matrix(), states_.transposed(),
                           scores_.n_labels, stride_, product_.data(), down + first, up + first);
    }
    for (int64_t i = first; i < end; ++i) {
      const double* weights = this->matrix_of(i);
      const RateRows rows{outside(i), message(i), belief(i), reach_.data() + (i - first) * stride_};
      if constexpr (Algebra::kLogs)
        measure_log_rates(rows, weights, scores_.n_labels, stride_, down + i, up + i);
      else
        measure_edge_rates(rows, weights, scores_.n_labels, stride_, product_.data(), down + i,
                           up + i);
    }
  }

  void write_mixing(double* curvature) {
    const MixingBounds& bounds = *out_.mixing;
    if (curvature) curvature_->open(order_);
    rates_.fill_gammas(order_, [&](int64_t i, double node, double edge) {
      const int64_t position = order_.positions[i], parent = order_.parents[i];
      bounds.node_gammas[position] = static_cast<float>(node);
      if (bounds.edge_gammas) bounds.edge_gammas[position] = static_cast<float>(edge);
      if (curvature == nullptr || parent < 0) return;
      const double gamma = bounds.weight(sequence_of(i)) * static_cast<float>(edge);
      if (adds_outer_products() &&
          curvature_->add(i, parent, outside(i), belief(i), norms_[i], gamma))
        return;
      fill_probs(i);
      curvature_->add_probs(gamma, probs_);
    });
    if (curvature == nullptr) return;
    if (adds_outer_products()) curvature_->finish();
    curvature_->add_to(curvature);
  }

  void write_totals() {
    if (labels_ != nullptr && out_.log_likelihoods) this->fill_path_scores(labels_, path_scores_);
    for (int64_t c = 0; c < std::ssize(this->chosen_); ++c) {
      const int64_t s = this->chosen_[c];
      if (out_.log_z) out_.log_z[s] = this->log_z(c);
      if (out_.log_likelihoods) out_.log_likelihoods[s] = this->log_likelihood(c, path_scores_[c]);
    }
  }

  const int32_t* labels_;
  const GraphPosteriors& out_;
  SumGrid grid_;
  bool need_probs_;            // whether posteriors of arcs are needed node by node
  PaddedVector sums_, probs_;  // (X, label_stride), padded to whole lanes of rows
  PaddedVector reach_;         // (kGraphBlock, stride)
  PaddedVector shares_;        // (kGraphBlock, stride) beliefs over norms, times weights
  PaddedVector product_;       // (kWaitingRows, stride) scratch
  EdgeRows outer_;             // outsides over norms, times weights; beliefs
  std::optional<PairCurvature> curvature_;
  std::vector<double> norms_;  // (n,) what posteriors are divided by
  std::vector<double> arc_probs_, path_scores_;
  GraphRates rates_;
};

}  // namespace
}  // namespace hedgerow
