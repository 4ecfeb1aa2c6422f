// The tangent of the passes over tree-shaped graphs: see tangent.hpp, and for the gains of rows
// tree_graph_gains.hpp.
#include "trellis/chunk_sums.hpp"
#include "trellis/scaled_loops.hpp"
#include "trellis/tree_graph_chunks.hpp"
#include "trellis/tree_graph_edge_rows.hpp"
#include "trellis/tree_graph_gains.hpp"

namespace hedgerow {
namespace {

// Passes up and down with gains, for one run after the other.
template <class Algebra>
class GraphTangent : public GraphGains<Algebra> {
 public:
  GraphTangent(const GraphScores& scores, const GraphStates& states, const Direction& direction,
               const AutomatonTangents& out, Stop& stop)
      : GraphGains<Algebra>(scores, states, direction, SumGrid(out.bound), stop),
        out_(out),
        grid_(out.bound),
        sums_(out.arc_sums && !adds_terms() ? this->table_size() : 0),
        shares_(adds_terms() ? reach_.size() : 0),
        share_gains_(shares_.size()),
        outer_(out.arc_sums && adds_outer_products() ? 4 : 0, stride_) {}

  // Writes the results of some sequences; false if one is refused.
  bool run(std::span<const int64_t> chosen, const SumTable& arc_sums) {
    this->up(chosen);
    if (this->any_refused()) return false;
    this->resize_gains();
    outer_.open(order_);
    std::fill(sums_.begin(), sums_.end(), 0.0);
    if (adds_terms()) this->steps_->open_sums();
    if (adds_terms() && moved_steps_) moved_steps_->open_sums();
    this->up_gains();
    down();
    if (this->any_refused()) return false;
    if (arc_sums) add_arc_sums(arc_sums.sums);
    return true;
  }

 private:
  using Base = GraphGains<Algebra>;
  using Base::belief;
  using Base::belief_gain;
  using Base::carried_;
  using Base::message;
  using Base::message_gain;
  using Base::moved_steps_;
  using Base::moves_;
  using Base::order_;
  using Base::outside;
  using Base::outside_gain;
  using Base::reach_;
  using Base::reach_gains_;
  using Base::same_weights;
  using Base::scores_;
  using Base::slopes_;
  using Base::states_;
  using Base::stride_;

  // Whether sums over arcs are those of outer products, times the weights.
  bool adds_outer_products() const {
    return same_weights() && states_.first_order() && !out_.pairs;
  }
  // Whether these sums are computed by the steps down.
  bool adds_terms() const { return out_.arc_sums && this->steps_; }

  void down() {
    for (int64_t level = 0; level < order_.n_levels(); ++level)
      for (int64_t first = order_.levels[level]; first < order_.levels[level + 1];
           first += kGraphBlock) {
        this->stop_.check();
        const int64_t end = std::min(first + kGraphBlock, order_.levels[level + 1]);
        if (adds_terms()) {
          fill_shares(first, end);
          fill_reach_and_sums(first, end);
        } else {
          this->fill_reach(first, end, reach_.data());
          this->fill_reach_gains(first, end);
        }
        finish(first, end);
        if (out_.arc_sums && level > 0 && adds_outer_products()) keep_arc_rows(first, end);
        this->fill_outsides(first, end, reach_.data());
        this->fill_outside_gains(first, end);
      }
  }

  // The derivative of a posterior, outside w belief / norm, is
  //   (outside w) (belief (belief's gain - mean) / norm) + (outside (outside's gain + u) w) (belief
  //   / norm),
  // the mean being that of the gains of all labellings. Fills the factors of a node's states, rows
  // of share_gains_ and of shares_; norms and means are known from the messages.
  HEDGEROW_CLONES void fill_shares(int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      double norm = 0.0, mean = 0.0;
      if (order_.parents[i] < 0) {
        this->open_outside(i);
        std::fill(outside_gain(i), outside_gain(i) + stride_, 0.0);
        for (int32_t k = 0; k < scores_.n_labels; ++k) {
          const int32_t x = states_.target(Automaton::kBegin, k);
          const double weight = states_.begin()[x] * belief(i)[x];
          norm += weight, mean += weight * (moves_[k] + belief_gain(i)[x]);
        }
        mean /= norm;
      } else {
        Lanes norms = broadcast(0.0), gains = broadcast(0.0);
        for (int x = 0; x < stride_; x += kLanes) {
          const Lanes weight = load(outside(i) + x) * load(message(i) + x);
          norms += weight;
          gains += weight * (load(outside_gain(i) + x) + load(message_gain(i) + x));
        }
        norm = sum_lanes(norms);
        mean = sum_lanes(gains) / norm + this->message_means_[i];
      }
      norms_[i - first] = norm, means_[i - first] = mean;
      const Lanes per_norm = broadcast(1.0 / norm), centre = broadcast(mean);
      double* shares = shares_.data() + (i - first) * stride_;
      double* gains = share_gains_.data() + (i - first) * stride_;
      for (int x = 0; x < stride_; x += kLanes) {
        const Lanes share = load(belief(i) + x) * per_norm;
        store(shares + x, share);
        store(gains + x, share * (load(belief_gain(i) + x) - centre));
      }
    }
  }
  void fill_reach_and_sums(int64_t first, int64_t end) {
    const int64_t n = end - first;
    double *reach = reach_.data(), *gains = reach_gains_.data();
    this->steps_->fill_reach_and_sums(outside(first), share_gains_.data(), n, reach);
    this->carry(outside(first), outside_gain(first), n);
    this->steps_->fill_reach_and_sums(carried_.data(), shares_.data(), n, gains);
    if (moved_steps_)
      moved_steps_->fill_reach_and_sums(outside(first), shares_.data(), n, carried_.data());
    this->divide_gains(reach, n, moved_steps_.has_value(), gains);
  }

  HEDGEROW_CLONES void finish(int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      const double* reach = reach_.data() + (i - first) * stride_;
      const double* gains = reach_gains_.data() + (i - first) * stride_;
      this->prefetch_ahead(out_.marginals, i);
      write(i, i - first, reach, gains);
    }
  }

  // Derivatives of the marginals, and of the arcs into the node.
  HEDGEROW_INLINE void write(int64_t i, int64_t place, const double* reach, const double* gains) {
    const bool known = adds_terms();
    const double norm = known ? norms_[place] : dot_rows<Algebra>(reach, belief(i), stride_);
    const Lanes scale = broadcast(Algebra::kLogs ? -norm : 1.0 / norm);
    double* slopes = this->rows_.data();
    Lanes sums = broadcast(0.0);
    for (int x = 0; x < stride_; x += kLanes) {
      Lanes prob = product<Algebra>(product<Algebra>(load(reach + x), load(belief(i) + x)), scale);
      if constexpr (Algebra::kLogs) prob = exp_nonpositive(minimum(prob, broadcast(0.0)));
      store(slopes + x, prob);
      sums += prob * (load(gains + x) + load(belief_gain(i) + x));
    }
    const double mean = known ? means_[place] : sum_lanes(sums);
    for (int x = 0; x < stride_; x += kLanes)
      store(slopes + x,
            load(slopes + x) * (load(gains + x) + load(belief_gain(i) + x) - broadcast(mean)));
    double* out = out_.marginals + order_.positions[i] * scores_.n_labels;
    if (states_.first_order())
      Row(scores_.n_labels).copy_from_padded(slopes, false, out);
    else
      for (int32_t k = 0; k < scores_.n_labels; ++k)
        out[k] = sum_range(slopes + states_.first_state(k), slopes + states_.first_state(k + 1));
    norms_[place] = norm, means_[place] = mean;
    if (out_.pairs || (out_.arc_sums && !adds_outer_products() && !adds_terms()))
      write_arcs(i, norm, mean);
  }

  // Sums over arcs have three terms: w times outside (outside's gain - mean) / norm times belief, w
  // times outside / norm times belief and its gain, and w u times outside / norm times belief.
  enum Kinds { kGained, kProbs, kBeliefs, kBeliefGains };
  HEDGEROW_CLONES void keep_arc_rows(int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      const Lanes per_norm = broadcast(1.0 / norms_[i - first]);
      const Lanes mean = broadcast(means_[i - first]);
      double *gained = outer_.row(kGained, i), *probs = outer_.row(kProbs, i);
      double *beliefs = outer_.row(kBeliefs, i), *gains = outer_.row(kBeliefGains, i);
      for (int x = 0; x < stride_; x += kLanes) {
        const Lanes prob = load(outside(i) + x) * per_norm, here = load(belief(i) + x);
        store(probs + x, prob);
        store(gained + x, prob * (load(outside_gain(i) + x) - mean));
        store(beliefs + x, here);
        store(gains + x, here * load(belief_gain(i) + x));
      }
    }
  }
  HEDGEROW_CLONES void add_arc_rows() {
    const double* weights = states_.matrix();
    const auto add_times = [&](const double* factors) {
      return [=, this](int64_t place, Lanes outer) {
        const Lanes slopes = where_positive(load(weights + place), load(factors + place) * outer);
        store(&sums_[place], load(&sums_[place]) + grid_.round(slopes));
      };
    };
    outer_.sum(kGained, kBeliefs, add_times(weights));
    outer_.sum(kProbs, kBeliefGains, add_times(weights));
    if (!this->weighted_moves_.empty())
      outer_.sum(kProbs, kBeliefs, add_times(this->weighted_moves_.data()));
  }

  void add_arc_sums(double* arc_sums) {
    if (adds_outer_products()) add_arc_rows();
    if (adds_terms()) this->steps_->add_sums_to(arc_sums);
    if (adds_terms() && moved_steps_) moved_steps_->add_sums_to(arc_sums);
    if (adds_terms()) return;
    for (int64_t q = 0; q < states_.n_states(); ++q)
      for (int32_t k = 0; k < scores_.n_labels; ++k)
        arc_sums[states_.arc(q, k)] += sums_[q * states_.label_stride() + k];
  }

  void write_arcs(int64_t i, double norm, double mean) {
    const int64_t n_pairs = scores_.n_edges();
    double* pairs = out_.pairs ? out_.pairs + order_.positions[i] * n_pairs : nullptr;
    if (pairs) std::fill(pairs, pairs + n_pairs, 0.0);
    const bool is_root = order_.parents[i] < 0;
    if (is_root && states_.first_order()) return;
    const double* weights = is_root ? states_.matrix() : this->matrix_of(i);
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
    const double *beliefs = this->gather(belief(i), q),
                 *gains = this->gather_gains(belief_gain(i), q);
    for (int k = 0; k < states_.label_stride(); k += kLanes) {
      Lanes prob = product<Algebra>(load(weights + begin + k), load(beliefs + k));
      prob = product<Algebra>(prob, broadcast(from));
      if constexpr (Algebra::kLogs) prob = exp_nonpositive(minimum(prob, broadcast(0.0)));
      const Lanes slopes = prob * (broadcast(gain) + load(&moves_[begin + k]) + load(gains + k));
      store(&slopes_[k], slopes);
      if (!sums_.empty()) store(&sums_[begin + k], load(&sums_[begin + k]) + grid_.round(slopes));
    }
  }

  const AutomatonTangents& out_;
  SumGrid grid_;
  PaddedVector sums_;  // (X, label_stride) derivatives of the arcs' posteriors, summed
  PaddedVector shares_, share_gains_;  // (kGraphBlock, stride) see fill_shares
  EdgeRows outer_;
  double norms_[kGraphBlock], means_[kGraphBlock];  // of the nodes of a block
};

}  // namespace

void fill_graph_tangents(const GraphScores& scores, const Direction& direction,
                         const AutomatonTangents& out, int n_threads, Stop& stop) {
  const GraphChunks chunks(scores);
  ChunkSums arc_sums(out.arc_sums, scores.n_arcs(), chunks.n_chunks(), SumGrid(out.bound));
  for_each_graph<GraphTangent, Scaled>(
      scores, chunks, n_threads, stop,
      [&](auto& pass, int64_t chunk, std::span<const int64_t> chosen) {
        return pass.run(chosen, arc_sums.open(chunk));
      },
      direction, out);
  arc_sums.finish();
}

}  // namespace hedgerow
