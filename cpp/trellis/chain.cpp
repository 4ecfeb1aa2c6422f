#include "trellis/chain.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "simd.hpp"
#include "trellis/chunk_sums.hpp"
#include "trellis/log_space.hpp"
#include "trellis/scaled.hpp"
#include "trellis/viterbi.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kMaxChunks = 64;
constexpr int64_t kMinChunkWork = 1 << 14;  // positions x labels

void check_arcs(const ChainScores& scores) {
  const int64_t n_labels = scores.n_labels;
  for (int64_t i = 0; i < n_labels * n_labels; ++i)
    if (!(scores.arcs[i] < kInfinity))
      throw std::invalid_argument(
          "an arc score is NaN or +inf, from label " + std::to_string(i / n_labels) + " to label " +
          std::to_string(i % n_labels) + "; scores must be finite numbers or -inf");
}

// Runs of consecutive sequences, one task each: cut by the data alone, so that sums over a chunk,
// added in chunk order, are the same for any number of threads.
std::vector<int64_t> build_chunks(const ChainScores& scores) {
  const int64_t n_positions = scores.offsets[scores.n_sequences];
  const int64_t target =
      std::max(n_positions / kMaxChunks + 1, kMinChunkWork / scores.n_labels + 1);
  std::vector<int64_t> bounds{0};
  for (int64_t s = 0; s < scores.n_sequences; ++s)
    if (s + 1 == scores.n_sequences ||
        scores.offsets[s + 1] - scores.offsets[bounds.back()] >= target)
      bounds.push_back(s + 1);
  return bounds;
}

// task(chunk, first sequence, end sequence) for every chunk, the longest first.
template <class Task>
void for_each_chunk(const ChainScores& scores, const std::vector<int64_t>& bounds, int n_threads,
                    Stop& stop, Task task) {
  std::vector<int64_t> order(bounds.size() - 1);
  std::iota(order.begin(), order.end(), 0);
  const auto size = [&](int64_t c) {
    return scores.offsets[bounds[c + 1]] - scores.offsets[bounds[c]];
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return size(a) > size(b); });
  parallel_for(static_cast<int64_t>(order.size()), n_threads, stop,
               [&](int64_t i) { task(order[i], bounds[order[i]], bounds[order[i] + 1]); });
}

int64_t longest(const ChainScores& scores, int64_t first, int64_t end) {
  int64_t length = 0;
  for (int64_t s = first; s < end; ++s) length = std::max(length, scores.length(s));
  return length;
}

double* at(double* array, int64_t index) { return array == nullptr ? nullptr : array + index; }
const int32_t* at(const int32_t* array, int64_t index) {
  return array == nullptr ? nullptr : array + index;
}

}  // namespace

void fill_posteriors(const ChainScores& scores, const int32_t* labels, const ChainPosteriors& out,
                     int n_threads, Stop& stop) {
  check_arcs(scores);
  const ScaledArcs arcs(scores);
  const int64_t n_labels = scores.n_labels;
  const auto bounds = build_chunks(scores);
  ChunkSums pair_sums(out.pair_sums, n_labels * n_labels, bounds.size() - 1);

  for_each_chunk(scores, bounds, n_threads, stop, [&](int64_t chunk, int64_t first, int64_t end) {
    double* sums = pair_sums.open(chunk);
    ScaledChain fast(scores, arcs, sums != nullptr);
    std::optional<LogChain> slow;
    std::vector<double> kept;  // the rows of alpha, where no marginals are wanted
    if (out.need_backward() && out.marginals == nullptr)
      kept.resize(longest(scores, first, end) * n_labels);
    for (int64_t s = first; s < end; ++s) {
      const int64_t begin = scores.offsets[s];
      const int32_t* path = at(labels, begin);
      double* alphas =
          out.marginals ? out.marginals + begin * n_labels : (kept.empty() ? nullptr : kept.data());
      double* pairs = at(out.pairs, begin * n_labels * n_labels);
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
  check_arcs(scores);
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
  check_arcs(scores);
  for_each_chunk(scores, build_chunks(scores), n_threads, stop,
                 [&](int64_t, int64_t first, int64_t end) {
                   ViterbiChain chain(scores, stop);
                   for (int64_t s = first; s < end; ++s)
                     chain.decode(s, labels + scores.offsets[s]);
                 });
}

}  // namespace hedgerow
