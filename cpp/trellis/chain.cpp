#include "trellis/chain.hpp"

#include <optional>
#include <vector>

#include "trellis/chunk_sums.hpp"
#include "trellis/chunks.hpp"
#include "trellis/log_space.hpp"
#include "trellis/scaled.hpp"
#include "trellis/score_errors.hpp"
#include "trellis/viterbi.hpp"

namespace hedgerow {
namespace {

template <class T>
T* at(T* array, int64_t index) {
  return array == nullptr ? nullptr : array + index;
}

}  // namespace

void fill_posteriors(const ChainScores& scores, const int32_t* labels, const ChainPosteriors& out,
                     int n_threads, Stop& stop) {
  check_arcs(scores.arcs, scores.n_labels);
  const ScaledArcs arcs(scores);
  const int64_t n_labels = scores.n_labels;
  const auto bounds = build_chunks(scores);
  ChunkSums pair_sums(out.pair_sums, n_labels * n_labels, bounds.size() - 1);

  for_each_chunk(scores, bounds, n_threads, stop, [&](int64_t chunk, int64_t first, int64_t end) {
    double* sums = pair_sums.open(chunk);
    ScaledChain fast(scores, arcs, sums != nullptr);
    std::optional<LogChain> slow;
    PairRows pairs(out, n_labels);
    std::vector<double> kept;  // (T, K) alpha, where no marginals can hold it
    if (out.need_backward() && out.marginals == nullptr)
      kept.resize(longest(scores, first, end) * n_labels);
    for (int64_t s = first; s < end; ++s) {
      const int64_t begin = scores.offsets[s];
      const int32_t* path = at(labels, begin);
      double* alphas =
          out.marginals ? out.marginals + begin * n_labels : (kept.empty() ? nullptr : kept.data());
      pairs.open(begin);
      const bool scaled =
          arcs.usable && fast.forward(s, path, alphas, stop) &&
          (!out.need_backward() || fast.backward(s, alphas, out.weight(s), pairs, stop));
      if (!scaled) {
        if (!slow) slow.emplace(scores, stop);
        slow->forward(s, path, alphas);
        if (out.need_backward()) slow->backward(s, alphas, out.weight(s), sums, pairs);
      }
      if (out.log_z) out.log_z[s] = scaled ? fast.log_z() : slow->log_z();
      if (out.log_likelihoods)
        out.log_likelihoods[s] = scaled ? fast.log_likelihood() : slow->log_likelihood();
    }
    if (sums != nullptr) fast.add_pair_sums(sums);
  });
  pair_sums.finish();
}

void fill_weighted_posteriors(const ChainScores& scores, const int32_t* labels,
                              const double* weights, const ChainPosteriors& out, int n_threads,
                              Stop& stop) {
  check_arcs(scores.arcs, scores.n_labels);
  const int64_t n_labels = scores.n_labels;
  const auto bounds = build_chunks(scores);
  ChunkSums pair_sums(out.pair_sums, n_labels * n_labels, bounds.size() - 1);
  for_each_chunk(scores, bounds, n_threads, stop, [&](int64_t chunk, int64_t first, int64_t end) {
    double* sums = pair_sums.open(chunk);
    LogChain chain(scores, stop);
    for (int64_t s = first; s < end; ++s) {
      const int64_t begin = scores.offsets[s];
      chain.weighted(s, labels + begin, weights + begin, out.marginals + begin * n_labels, sums,
                     at(out.pairs, begin * n_labels * n_labels));
      out.log_likelihoods[s] = chain.log_likelihood();
    }
  });
  pair_sums.finish();
}

void fill_viterbi(const ChainScores& scores, int32_t* labels, int n_threads, Stop& stop) {
  check_arcs(scores.arcs, scores.n_labels);
  for_each_chunk(scores, build_chunks(scores), n_threads, stop,
                 [&](int64_t, int64_t first, int64_t end) {
                   ViterbiChain chain(scores, stop);
                   for (int64_t s = first; s < end; ++s)
                     chain.decode(s, labels + scores.offsets[s]);
                 });
}

}  // namespace hedgerow
