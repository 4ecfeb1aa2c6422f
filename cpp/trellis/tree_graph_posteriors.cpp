// Posteriors of tree-shaped graphs.
#include <cmath>
#include <vector>

#include "trellis/chunk_sums.hpp"
#include "trellis/tree_graph_mixing.hpp"
#include "trellis/tree_graph_pass.hpp"

namespace hedgerow {
namespace {

// sums[i, k] += sum over the rows r of x[r, i] y[r, k], for kRows rows.
template <int kRows>
HEDGEROW_INLINE void add_outer_products(const double* x, const double* y, int n, int stride,
                                        double* sums) {
  for (int i = 0; i < n; ++i) {
    Lanes from[kRows];
    for (int r = 0; r < kRows; ++r) from[r] = broadcast(x[r * stride + i]);
    double* row = sums + static_cast<int64_t>(i) * stride;
    for (int k = 0; k < stride; k += kLanes) {
      Lanes sum = load(row + k);
      for (int r = 0; r < kRows; ++r) sum += from[r] * load(y + r * stride + k);
      store(row + k, sum);
    }
  }
}

// The rates between a node and its parent, first order. Impossible labels do not count: those of
// the parent have outside * message = 0, those of the node reach * belief = 0.
struct RateRows {
  const double *outside, *message, *belief, *reach;
};

// weights: (K, stride); scratch: three rows
HEDGEROW_CLONES
void measure_rates(const RateRows& rows, const double* weights, int n_labels, int stride,
                   double* scratch, double* down, double* up) {
  constexpr double kLarge = 1e300;
  double *smallest = scratch, *inverse = smallest + stride, *penalty = inverse + stride;
  for (int k = 0; k < stride; ++k) {
    const bool possible = rows.reach[k] * rows.belief[k] > 0.0;
    smallest[k] = kLarge;
    inverse[k] = possible ? 1.0 / rows.reach[k] : 0.0;
    penalty[k] = possible ? 0.0 : kLarge;
  }
  double up_overlap = 0.0, down_overlap = 0.0;
  for (int i = 0; i < n_labels; ++i) {
    if (!(rows.outside[i] * rows.message[i] > 0.0)) continue;
    const double* row = weights + static_cast<int64_t>(i) * stride;
    const Lanes per_message = broadcast(1.0 / rows.message[i]);
    Lanes least = broadcast(kLarge);
    for (int k = 0; k < stride; k += kLanes) {
      const Lanes weight = load(row + k);
      store(smallest + k, minimum(weight * per_message, load(smallest + k)));
      least = minimum(weight * load(inverse + k) + load(penalty + k), least);
    }
    up_overlap += rows.outside[i] * min_lane(least);
  }
  for (int k = 0; k < n_labels; ++k)
    if (rows.belief[k] > 0.0) down_overlap += rows.belief[k] * smallest[k];
  *down = std::clamp(1.0 - down_overlap, 0.0, 1.0);
  *up = std::clamp(1.0 - up_overlap, 0.0, 1.0);
}

// The same of logarithms.
void measure_log_rates(const RateRows& rows, const double* weights, int n_labels, int stride,
                       double* down, double* up) {
  const auto overlap = [&](auto is_given, auto is_possible, auto prob) {
    double sum = 0.0;
    for (int j = 0; j < n_labels; ++j) {
      double least = 1.0;
      for (int i = 0; i < n_labels; ++i)
        if (is_given(i)) least = min_of(prob(i, j), least);
      if (is_possible(j)) sum += least;
    }
    return std::clamp(1.0 - sum, 0.0, 1.0);
  };
  const auto of_parent = [&](int i) { return rows.outside[i] + rows.message[i] > -kInfinity; };
  const auto of_node = [&](int k) { return rows.reach[k] + rows.belief[k] > -kInfinity; };
  const auto weight = [&](int i, int k) { return weights[static_cast<int64_t>(i) * stride + k]; };
  *down = overlap(of_parent, of_node, [&](int i, int k) {
    return std::exp(weight(i, k) + rows.belief[k] - rows.message[i]);
  });
  *up = overlap(of_node, of_parent, [&](int k, int i) {
    return std::exp(rows.outside[i] + weight(i, k) - rows.reach[k]);
  });
}

// Passes up and down of one run after the other.
template <class Algebra>
class GraphUpDown : public GraphPass<Algebra> {
 public:
  GraphUpDown(const GraphScores& scores, const GraphStates& states, const int32_t* labels,
              const GraphPosteriors& out, Stop& stop)
      : GraphPass<Algebra>(scores, states, stop),
        labels_(labels),
        out_(out),
        need_probs_(out.pairs || out.patterns || (out.arc_sums && !adds_outer_products())),
        sums_(out.arc_sums ? table_size() : 0),
        probs_(need_probs_ || out.mixing ? table_size() : 0),
        curvature_(out.mixing && out.mixing->pair_curvature ? table_size() : 0),
        reach_(kGraphBlock * this->stride_),
        product_(4 * this->stride_),
        arc_probs_(out.patterns ? scores.n_arcs() : 0) {}

  // Writes the results of some sequences; false if one is refused: what was written is then
  // meaningless. Sums are added to arc_sums (A,) and curvature (K, K), unless null.
  bool run(std::span<const int64_t> chosen, double* arc_sums, double* curvature) {
    this->up(chosen);
    if (this->any_refused()) return false;
    if (out_.need_down()) down();
    if (this->any_refused()) return false;
    write_totals();
    if (arc_sums != nullptr) add_arc_sums(arc_sums);
    if (out_.mixing != nullptr) write_mixing(curvature);
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

  // Whether sums over arcs are those of outer products, times the weights of the arcs in the end.
  bool adds_outer_products() const {
    return !Algebra::kLogs && states_.first_order() && scores_.edges == nullptr;
  }
  size_t table_size() const {
    return static_cast<size_t>(states_.n_states()) * states_.label_stride();
  }
  int64_t sequence_of(int64_t node) const { return this->chosen_[order_.sequences[node]]; }

  void down() {
    const size_t n = order_.size() * static_cast<size_t>(stride_);
    if (this->outside_.size() < n) this->outside_.resize(n);
    norms_.resize(order_.size());
    std::fill(sums_.begin(), sums_.end(), 0.0);
    if (out_.mixing) rates_.open(order_.size());
    for (int64_t level = 0; level < order_.n_levels(); ++level)
      for (int64_t first = order_.levels[level]; first < order_.levels[level + 1];
           first += kGraphBlock) {
        this->stop_.check();
        const int64_t end = std::min(first + kGraphBlock, order_.levels[level + 1]);
        this->fill_reach(first, end, reach_.data());
        finish(first, end);
        if (out_.arc_sums && adds_outer_products() && level > 0) add_outer(first, end);
        for (int64_t i = first; i < end && need_probs_; ++i) write_pairs(i);
        for (int64_t i = first; i < end && out_.mixing && level > 0; ++i)
          measure(i, reach_.data() + (i - first) * stride_);
      }
  }

  // Marginals, and the outsides of the children.
  HEDGEROW_CLONES void finish(int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      const double* reach = reach_.data() + (i - first) * stride_;
      norms_[i] = dot_rows<Algebra>(reach, belief(i), stride_);
      if (out_.marginals) {
        this->prefetch_ahead(out_.marginals, i);
        write_marginals(i, reach);
      }
      this->fill_outsides(i, reach);
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
    for (int32_t k = 0; k < scores_.n_labels; ++k) {
      out[k] = 0.0;
      for (int32_t x = states_.first_state(k); x < states_.first_state(k + 1); ++x)
        out[k] += probs[x];
    }
  }

  HEDGEROW_CLONES void add_outer(int64_t first, int64_t end) {
    double* rows = product_.data();
    for (int64_t i = first; i < end; i += 4) {
      const int64_t n_rows = std::min<int64_t>(4, end - i);
      for (int64_t r = 0; r < n_rows; ++r) {
        const Lanes share = broadcast(out_.weight(sequence_of(i + r)) / norms_[i + r]);
        for (int x = 0; x < stride_; x += kLanes)
          store(rows + r * stride_ + x, load(outside(i + r) + x) * share);
      }
      if (n_rows == 4)
        add_outer_products<4>(rows, belief(i), scores_.n_labels, stride_, sums_.data());
      else
        for (int64_t r = 0; r < n_rows; ++r)
          add_outer_products<1>(rows + r * stride_, belief(i + r), scores_.n_labels, stride_,
                                sums_.data());
    }
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
    double shift = 0.0;
    bool lost = false;
    const double* weights = this->matrix_of(i, shift, lost);
    fill_prob_rows(i, weights);
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
    if (out_.arc_sums && !adds_outer_products()) {
      const double weight = out_.weight(sequence_of(i));
      for (size_t p = 0; p < probs_.size(); ++p) sums_[p] += weight * probs_[p];
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

  void add_arc_sums(double* arc_sums) const {
    for (int64_t q = 0; q < states_.n_states(); ++q)
      for (int32_t k = 0; k < scores_.n_labels; ++k) {
        const int64_t place = q * states_.label_stride() + k;
        arc_sums[states_.arc(q, k)] +=
            sums_[place] * (adds_outer_products() ? states_.matrix()[place] : 1.0);
      }
  }

  void measure(int64_t i, const double* reach) {
    double shift = 0.0;
    bool lost = false;
    const double* weights = this->matrix_of(i, shift, lost);
    const RateRows rows{outside(i), message(i), belief(i), reach};
    if constexpr (Algebra::kLogs)
      measure_log_rates(rows, weights, scores_.n_labels, stride_, &rates_.down[i], &rates_.up[i]);
    else
      measure_rates(rows, weights, scores_.n_labels, stride_, product_.data(), &rates_.down[i],
                    &rates_.up[i]);
  }

  void write_mixing(double* curvature) {
    const MixingBounds& bounds = *out_.mixing;
    std::fill(curvature_.begin(), curvature_.end(), 0.0);
    rates_.fill_gammas(order_, [&](int64_t i, double node, double edge) {
      const int64_t position = order_.positions[i];
      bounds.node_gammas[position] = static_cast<float>(node);
      if (bounds.edge_gammas) bounds.edge_gammas[position] = static_cast<float>(edge);
      if (curvature == nullptr || order_.parents[i] < 0) return;
      fill_probs(i);
      add_curvature(bounds.weight(sequence_of(i)) * static_cast<float>(edge));
    });
    for (int64_t p = 0; curvature && p < int64_t{scores_.n_labels} * scores_.n_labels; ++p)
      curvature[p] += curvature_[p / scores_.n_labels * stride_ + p % scores_.n_labels];
  }
  // Adds gamma p (1 - p) of all label pairs; 1 - p of a likely one is the sum of the others.
  HEDGEROW_CLONES void add_curvature(double gamma) {
    const Lanes scale = broadcast(gamma), one = broadcast(1.0);
    Lanes largest = broadcast(0.0);
    const auto size = static_cast<int64_t>(probs_.size());
    for (int64_t p = 0; p < size; p += kLanes) {
      const Lanes probs = load(&probs_[p]);
      store(&curvature_[p], load(&curvature_[p]) + scale * probs * (one - probs));
      largest = maximum(probs, largest);
    }
    const double top = max_lane(largest);
    if (top < 0.5) return;
    const auto likely = std::find(probs_.begin(), probs_.end(), top) - probs_.begin();
    probs_[likely] = 0.0;
    Lanes others = broadcast(0.0);
    for (int64_t p = 0; p < size; p += kLanes) others += load(&probs_[p]);
    curvature_[likely] += gamma * top * (sum_lanes(others) - (1.0 - top));
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
  bool need_probs_;            // whether posteriors of arcs are needed node by node
  PaddedVector sums_, probs_;  // (X, label_stride)
  PaddedVector curvature_;     // the same of label pairs, summed
  PaddedVector reach_;         // (kGraphBlock, stride)
  PaddedVector product_;       // (4, stride) scratch
  std::vector<double> norms_;  // (n,) what posteriors are divided by
  std::vector<double> arc_probs_, path_scores_;
  GraphRates rates_;
};

}  // namespace

void fill_graph_posteriors(const GraphScores& scores, const int32_t* labels,
                           const GraphPosteriors& out, int n_threads, Stop& stop) {
  const GraphChunks chunks(scores, padded(scores.n_labels));
  const int64_t n_pairs = int64_t{scores.n_labels} * scores.n_labels;
  ChunkSums arc_sums(out.arc_sums, scores.n_arcs(), chunks.n_chunks());
  ChunkSums curvature(out.mixing ? out.mixing->pair_curvature : nullptr, n_pairs,
                      chunks.n_chunks());
  for_each_graph<GraphUpDown, Scaled>(
      scores, chunks, n_threads, stop,
      [&](auto& pass, int64_t chunk, std::span<const int64_t> chosen) {
        return pass.run(chosen, arc_sums.open(chunk), curvature.open(chunk));
      },
      labels, out);
  arc_sums.finish();
  curvature.finish();
}

}  // namespace hedgerow
