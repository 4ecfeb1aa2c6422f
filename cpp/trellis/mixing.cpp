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

// Of one sequence after the other, in scaled or in log space.
class SequenceMixing {
 public:
  // longest: positions of the longest sequence
  SequenceMixing(const ChainScores& scores, const MixingArcs& arcs, const MixingBounds& out,
                 int64_t longest)
      : scores_(scores),
        arcs_(arcs),
        out_(out),
        longest_(longest),
        to_next_(longest),
        to_previous_(longest),
        gammas_(longest) {}

  // sums: (K, K), to which the curvature of pairs is added, or null. That of scaled space comes
  // with add_pair_curvature.
  void fill(int64_t sequence, const SumTable& sums, Stop& stop) {
    if (!arcs_.usable) return fill_in_log_space(sequence, sums, stop);
    if (!fast_) fast_.emplace(scores_, arcs_, longest_, static_cast<bool>(sums), sums.grid);
    if (!fast_->fill_rates(sequence, rates(), stop)) return fill_in_log_space(sequence, sums, stop);
    const float* edge_gammas = fill_gammas(sequence);
    if (sums) fast_->add_pairs(scores_.length(sequence), edge_gammas, out_.weight(sequence));
  }
  void fill_in_log_space(int64_t sequence, const SumTable& sums, Stop& stop) {
    if (!slow_) slow_.emplace(scores_, longest_);
    slow_->fill(sequence, out_, sums, stop);
  }
  void add_pair_curvature(const SumTable& sums) {
    if (fast_ && sums) fast_->add_pair_curvature(sums.sums);
  }

 private:
  MixingRates rates() { return {to_next_.data(), to_previous_.data()}; }
  // Returns those of the edges, (T,).
  const float* fill_gammas(int64_t sequence) {
    const int64_t begin = scores_.offsets[sequence], length = scores_.length(sequence);
    float* edge_gammas = out_.edge_gammas ? out_.edge_gammas + begin : gammas_.data();
    hedgerow::fill_gammas(length, rates(), out_.node_gammas + begin, edge_gammas);
    return edge_gammas;
  }

  const ChainScores& scores_;
  const MixingArcs& arcs_;
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
                      n_chunks + n_others, curvature_grid(out.bound));
  parallel_for(n_others, n_threads, stop, [&](int64_t i) {
    const int64_t s = groups.others[i];
    SequenceMixing one(scores, arcs, out, scores.length(s));
    const SumTable sums = curvature.open(n_chunks + i);
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
    const SumTable sums = curvature.open(chunk);
    worker.lanes.run(group, stop);
    for (int l = 0; l < group.n_strands; ++l) {
      const int64_t s = group.sequences[l];
      if (worker.lanes.refused(l)) {
        if (!worker.one) worker.one.emplace(scores, arcs, out, kLongestStrand);
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
  if (scores.edges != nullptr) {
    ChainPosteriors wanted{};
    wanted.mixing = &out;
    return fill_posteriors(scores, nullptr, wanted, n_threads, stop);
  }
  const MixingArcs arcs(scores);
  if (arcs.usable && labels_fit_lanes(scores.n_labels))
    return fill_mixing_in_lanes(scores, arcs, out, n_threads, stop);
  const int64_t n_labels = scores.n_labels;
  const auto bounds = build_chunks(scores);
  ChunkSums curvature(out.pair_curvature, n_labels * n_labels, bounds.size() - 1,
                      curvature_grid(out.bound));
  for_each_chunk(scores, bounds, n_threads, stop, [&](int64_t chunk, int64_t first, int64_t end) {
    const SumTable sums = curvature.open(chunk);
    SequenceMixing one(scores, arcs, out, longest(scores, first, end));
    for (int64_t s = first; s < end; ++s) one.fill(s, sums, stop);
    one.add_pair_curvature(sums);
  });
  curvature.finish();
}

}  // namespace hedgerow
