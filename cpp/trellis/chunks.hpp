// Cutting a batch of chains into tasks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "trellis/chain.hpp"

namespace hedgerow {

// Cuts a batch into chunks of consecutive sequences, one task each. Returns the first sequence of
// each chunk, then the number of sequences. The chunks depend only on the data, so that sums over a
// chunk, added in chunk order, are the same for any number of threads.
inline std::vector<int64_t> build_chunks(const ChainScores& scores) {
  constexpr int64_t kMaxChunks = 64;
  // Positions x labels, or x label pairs with edges.
  constexpr int64_t kMinChunkWork = kLowLimits ? 1 << 10 : 1 << 14;
  const int64_t n_positions = scores.offsets[scores.n_sequences], n_labels = scores.n_labels;
  const int64_t per_position = scores.has_edges() ? n_labels * n_labels : n_labels;
  const int64_t target = std::max(n_positions / kMaxChunks + 1, kMinChunkWork / per_position + 1);
  std::vector<int64_t> bounds{0};
  for (int64_t s = 0; s < scores.n_sequences; ++s)
    if (s + 1 == scores.n_sequences ||
        scores.offsets[s + 1] - scores.offsets[bounds.back()] >= target)
      bounds.push_back(s + 1);
  return bounds;
}

// task(scratch, chunk, first sequence, end sequence) for every chunk, the longest first. Each
// thread has its own scratch memory, to which make_scratch() returns a pointer.
template <class MakeScratch, class Task>
void for_each_chunk_with(const ChainScores& scores, const std::vector<int64_t>& bounds,
                         int n_threads, Stop& stop, MakeScratch make_scratch, Task task) {
  std::vector<int64_t> order(bounds.size() - 1);
  std::iota(order.begin(), order.end(), 0);
  const auto size = [&](int64_t c) {
    return scores.offsets[bounds[c + 1]] - scores.offsets[bounds[c]];
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return size(a) > size(b); });
  const auto make_task = [&] {
    return [&, scratch = make_scratch()](int64_t i) {
      task(*scratch, order[i], bounds[order[i]], bounds[order[i] + 1]);
    };
  };
  parallel_for_each_thread(static_cast<int64_t>(order.size()), n_threads, stop, make_task);
}

// task(chunk, first sequence, end sequence), without scratch memory.
template <class Task>
void for_each_chunk(const ChainScores& scores, const std::vector<int64_t>& bounds, int n_threads,
                    Stop& stop, Task task) {
  struct Nothing {};
  for_each_chunk_with(
      scores, bounds, n_threads, stop, [] { return std::make_unique<Nothing>(); },
      [&](Nothing&, int64_t chunk, int64_t first, int64_t end) { task(chunk, first, end); });
}

// Length of the longest of the sequences first .. end-1.
inline int64_t longest(const ChainScores& scores, int64_t first, int64_t end) {
  int64_t length = 0;
  for (int64_t s = first; s < end; ++s) length = std::max(length, scores.length(s));
  return length;
}

}  // namespace hedgerow
