#include "trellis/mixing.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "trellis/chunk_sums.hpp"
#include "trellis/chunks.hpp"
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

}  // namespace

void fill_mixing(const ChainScores& scores, const MixingBounds& out, int n_threads, Stop& stop) {
  check_arcs(scores.arcs, scores.n_labels);
  const MixingArcs arcs(scores);
  const int64_t n_labels = scores.n_labels;
  const auto bounds = build_chunks(scores);
  ChunkSums pair_curvature(out.pair_curvature, n_labels * n_labels, bounds.size() - 1);

  for_each_chunk(scores, bounds, n_threads, stop, [&](int64_t chunk, int64_t first, int64_t end) {
    double* sums = pair_curvature.open(chunk);
    const int64_t max_length = longest(scores, first, end);
    ScaledMixing fast(scores, arcs, max_length, sums != nullptr);
    std::optional<LogMixing> slow;
    std::vector<float> to_next(max_length), to_previous(max_length), gammas(max_length);
    const MixingRates rates{to_next.data(), to_previous.data()};
    for (int64_t s = first; s < end; ++s) {
      const int64_t begin = scores.offsets[s], length = scores.length(s);
      const bool scaled = arcs.usable && fast.fill_rates(s, rates, stop);
      if (!scaled) {
        if (!slow) slow.emplace(scores, max_length);
        slow->fill_rates(s, rates, stop);
      }
      fill_messages(length, rates);
      fill_node_gammas(length, rates, out.node_gammas + begin);
      float* edge_gammas = out.edge_gammas ? out.edge_gammas + begin : gammas.data();
      fill_edge_gammas(length, rates, edge_gammas);
      if (sums == nullptr) continue;
      const double weight = out.weights == nullptr ? 1.0 : out.weights[s];
      if (scaled) {
        fast.add_pairs(length, edge_gammas, weight);
      } else {
        slow->add_pairs(length, edge_gammas, weight, sums, stop);
      }
    }
    if (sums != nullptr) fast.add_pair_curvature(sums);
  });
  pair_curvature.finish();
}

}  // namespace hedgerow
