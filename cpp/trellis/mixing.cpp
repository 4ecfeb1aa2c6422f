#include "trellis/mixing.hpp"

#include <memory>
#include <optional>

#include "trellis/chunk_sums.hpp"
#include "trellis/lane_mixing.hpp"
#include "trellis/mixing_log.hpp"
#include "trellis/score_errors.hpp"

namespace hedgerow {
namespace {

// With few labels: a sequence in each lane.
void fill_mixing_in_lanes(const ChainScores& scores, const MixingArcs& arcs,
                          const MixingBounds& out, int n_threads, Stop& stop) {
  const StrandGroups<kFloats> groups(scores);
  const auto n_chunks = static_cast<int64_t>(groups.n_chunks());
  const auto n_others = static_cast<int64_t>(groups.others.size());
  ChunkSums curvature(out.pair_curvature, int64_t{scores.n_labels} * scores.n_labels,
                      n_chunks + n_others, curvature_grid(out.bound));
  parallel_for(n_others, n_threads, stop, [&](int64_t i) {
    fill_mixing_of(scores, groups.others[i], out, curvature.open(n_chunks + i), stop);
  });
  struct Worker {
    LaneMixing lanes;
    std::optional<LogMixing> one;  // built when first needed
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
        if (!worker.one) worker.one.emplace(scores, kLongestStrand);
        worker.one->fill(s, out, sums, stop);
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
  ChainPosteriors wanted{};
  wanted.mixing = &out;
  if (posteriors_give_mixing(scores.n_labels, scores.has_edges()))
    return fill_posteriors(scores, nullptr, wanted, n_threads, stop);
  const MixingArcs arcs(scores);
  if (arcs.usable) return fill_mixing_in_lanes(scores, arcs, out, n_threads, stop);
  fill_posteriors_in_turn(scores, nullptr, wanted, n_threads, stop);
}

}  // namespace hedgerow
