#include "trellis/mixing.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "trellis/chunk_sums.hpp"
#include "trellis/chunks.hpp"
#include "trellis/lane_mixing.hpp"
#include "trellis/mixing_log.hpp"
#include "trellis/mixing_scaled.hpp"
#include "trellis/score_errors.hpp"

namespace hedgerow {
namespace {

// Turns rates into messages (Eq. 17):
//   to_next[t]     = beta_{t+1->t} = alpha_{t,t+1} (1 + beta_{t+2->t+1})
//   to_previous[t] = beta_{t-1->t} = alpha_{t,t-1} (1 + beta_{t-2->t-1})
void fill_messages(int64_t length, const MixingRates& rates) {
  for (int64_t t = length - 2; t >= 0; --t) rates.to_next[t] *= 1.0f + rates.to_next[t + 1];
  for (int64_t t = 1; t < length; ++t) rates.to_previous[t] *= 1.0f + rates.to_previous[t - 1];
}

// Theorem 4.1: gamma_t = 2 (1 + beta_{t-1->t} + beta_{t+1->t}), at most 2 n, as every rate is at
// most 1.
void fill_node_gammas(int64_t length, const MixingRates& messages, float* gammas) {
  for (int64_t t = 0; t < length; ++t)
    gammas[t] = 2.0f * (1.0f + (messages.to_previous[t] + messages.to_next[t]));
}

// Theorem 4.2, for the pair (t-1, t): gamma_t = 2 (3 + beta_{t-2->t-1} + beta_{t+1->t}). It counts
// a distance for each neighbouring pair, even where there is none: n - 1 pairs have at most n - 1.
void fill_edge_gammas(int64_t length, const MixingRates& messages, float* gammas) {
  const float most = 2.0f * static_cast<float>(length - 1);
  if (length > 0) gammas[0] = 0.0f;
  for (int64_t t = 1; t < length; ++t)
    gammas[t] = std::min(most, 2.0f * (3.0f + (messages.to_previous[t - 1] + messages.to_next[t])));
}

// Of one sequence after the other, in scaled or in log space.
class SequenceMixing {
 public:
  // longest: positions of the longest sequence
  SequenceMixing(const ChainScores& scores, const MixingArcs& arcs, EdgeFactors<float>& edges,
                 const MixingBounds& out, int64_t longest)
      : scores_(scores),
        arcs_(arcs),
        edges_(edges),
        out_(out),
        longest_(longest),
        to_next_(longest),
        to_previous_(longest),
        gammas_(longest) {}

  // sums: (K, K), to which the curvature of pairs is added, or null. That of scaled space comes
  // with add_pair_curvature.
  void fill(int64_t sequence, double* sums, Stop& stop) {
    if (!arcs_.usable) return fill_in_log_space(sequence, sums, stop);
    if (!fast_) fast_.emplace(scores_, arcs_, edges_, longest_, sums != nullptr);
    if (!fast_->fill_rates(sequence, rates(), stop)) return fill_in_log_space(sequence, sums, stop);
    const float* edge_gammas = fill_gammas(sequence);
    if (sums != nullptr)
      fast_->add_pairs(scores_.length(sequence), edge_gammas, out_.weight(sequence));
  }
  void fill_in_log_space(int64_t sequence, double* sums, Stop& stop) {
    if (!slow_) slow_.emplace(scores_, longest_);
    slow_->fill_rates(sequence, rates(), stop);
    const float* edge_gammas = fill_gammas(sequence);
    if (sums != nullptr) slow_->add_pairs(sequence, edge_gammas, out_.weight(sequence), sums, stop);
  }
  void add_pair_curvature(double* sums) {
    if (fast_ && sums != nullptr) fast_->add_pair_curvature(sums);
  }

 private:
  MixingRates rates() { return {to_next_.data(), to_previous_.data()}; }
  // Returns those of the edges, (T,).
  const float* fill_gammas(int64_t sequence) {
    const int64_t begin = scores_.offsets[sequence], length = scores_.length(sequence);
    float* edge_gammas = out_.edge_gammas ? out_.edge_gammas + begin : gammas_.data();
    fill_messages(length, rates());
    fill_node_gammas(length, rates(), out_.node_gammas + begin);
    fill_edge_gammas(length, rates(), edge_gammas);
    return edge_gammas;
  }

  const ChainScores& scores_;
  const MixingArcs& arcs_;
  EdgeFactors<float>& edges_;
  const MixingBounds& out_;
  int64_t longest_;
  std::vector<float> to_next_, to_previous_, gammas_;
  std::optional<ScaledMixing> fast_;  // both built when first needed
  std::optional<LogMixing> slow_;
};

// With few labels: a sequence in each lane.
void fill_mixing_in_lanes(const ChainScores& scores, const MixingArcs& arcs,
                          const MixingBounds& out, int n_threads, Stop& stop) {
  const StrandGroups<kFloats> groups(scores);
  const auto n_chunks = static_cast<int64_t>(groups.n_chunks());
  const auto n_others = static_cast<int64_t>(groups.others.size());
  ChunkSums curvature(out.pair_curvature, int64_t{scores.n_labels} * scores.n_labels,
                      n_chunks + n_others);
  EdgeFactors<float> no_edges(scores);
  parallel_for(n_others, n_threads, stop, [&](int64_t i) {
    const int64_t s = groups.others[i];
    SequenceMixing one(scores, arcs, no_edges, out, scores.length(s));
    double* sums = curvature.open(n_chunks + i);
    one.fill(s, sums, stop);
    one.add_pair_curvature(sums);
  });
  struct Worker {
    LaneMixing lanes;
    std::optional<SequenceMixing> one;  // built when first needed
  };
  const auto make_worker = [&] {
    return std::unique_ptr<Worker>(new Worker{{scores, arcs, out}, std::nullopt});
  };
  const auto run = [&](Worker& worker, int64_t chunk, const StrandGroup<kFloats>& group) {
    double* sums = curvature.open(chunk);
    worker.lanes.run(group, stop);
    for (int l = 0; l < group.n_strands; ++l) {
      const int64_t s = group.sequences[l];
      if (worker.lanes.refused(l)) {
        if (!worker.one) worker.one.emplace(scores, arcs, no_edges, out, kLongestStrand);
        worker.one->fill_in_log_space(s, sums, stop);
      } else if (sums) {
        worker.lanes.add_pair_curvature(l, out.weight(s), sums);
      }
    }
  };
  groups.for_each(n_threads, stop, make_worker, run);
  curvature.finish();
}

}  // namespace

void fill_mixing(const ChainScores& scores, const MixingBounds& out, int n_threads, Stop& stop) {
  check_arcs(scores.arcs, scores.n_labels);
  const MixingArcs arcs(scores);
  if (arcs.usable && scores.edges == nullptr && labels_fit_lanes(scores.n_labels))
    return fill_mixing_in_lanes(scores, arcs, out, n_threads, stop);
  const int64_t n_labels = scores.n_labels;
  const auto bounds = build_chunks(scores);
  ChunkSums curvature(out.pair_curvature, n_labels * n_labels, bounds.size() - 1);
  const auto run = [&](EdgeFactors<float>& edges, int64_t chunk, int64_t first, int64_t end) {
    double* sums = curvature.open(chunk);
    SequenceMixing one(scores, arcs, edges, out, longest(scores, first, end));
    for (int64_t s = first; s < end; ++s) one.fill(s, sums, stop);
    one.add_pair_curvature(sums);
  };
  for_each_chunk_with<EdgeFactors<float>>(scores, bounds, n_threads, stop, run);
  curvature.finish();
}

}  // namespace hedgerow
