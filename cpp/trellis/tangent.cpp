#include "trellis/tangent.hpp"

#include "trellis/chunk_sums.hpp"
#include "trellis/chunks.hpp"
#include "trellis/score_errors.hpp"
#include "trellis/tangent_scaled.hpp"

namespace hedgerow {

void fill_tangents(const ChainScores& scores, const Direction& direction, const ChainTangents& out,
                   uint8_t* refused, int n_threads, Stop& stop) {
  check_arcs(scores.arcs, scores.n_labels);
  const MovedArcs arcs(scores, direction.arcs);
  const int64_t n_labels = scores.n_labels;
  const auto bounds = build_chunks(scores);
  ChunkSums pair_sums(out.pair_sums, n_labels * n_labels, bounds.size() - 1, SumGrid(out.bound));

  const auto run = [&](EdgeFactors& edges, int64_t chunk, int64_t first, int64_t end) {
    const SumTable sums = pair_sums.open(chunk);
    ScaledTangent chain(scores, arcs, edges, direction, longest(scores, first, end), sums);
    for (int64_t s = first; s < end; ++s) {
      double* slopes = out.marginals + scores.offsets[s] * n_labels;
      refused[s] = !(arcs.scaled.usable && chain.forward(s, slopes, stop));
      if (refused[s]) continue;
      chain.backward(s, slopes,
                     out.pairs ? out.pairs + scores.offsets[s] * n_labels * n_labels : nullptr,
                     stop);
    }
    if (sums) chain.add_pair_sums(sums.sums);
  };
  for_each_chunk_with(
      scores, bounds, n_threads, stop, [&] { return std::make_unique<EdgeFactors>(scores); }, run);
  pair_sums.finish();
}

}  // namespace hedgerow
