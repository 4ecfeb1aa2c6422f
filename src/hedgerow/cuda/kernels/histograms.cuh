// Histograms: what the examples of a node add up to, bin by bin.
//
// Work is a list of segments, the examples of a node each; starts (n_segments + 1,) are the sums of
// their sizes before each. Blocks have equal shares of it.
#pragma once

#include "examples.cuh"
#include "segments.cuh"

// A tile is some columns at one offset, whose histogram fits into shared memory. There its rows are
// bins, with a row for missing values before them and one for what is outside of sequences after
// them, and columns lie `stride` apart from a row to the next, so that they are in different banks.
struct Tile {
  int offset, first_word, n_words, stride, n_bins;
};

#define COUNTING 512  // threads of a block
#define AT_ONCE 4     // examples of a thread whose loads are under way at the same time

// histograms[node's place] of (K, n_histograms, n_slots). Four columns are a word of `bins`
// (n_rows, n_words); slots (4 n_words of all columns,): the first slot of each column at the first
// offset, -1 for padding; n_bins likewise. A block adds up to n_safe examples in 32 bits.
extern "C" __global__ void __launch_bounds__(COUNTING)
    count_examples(const u32* bins, int n_words, const int* slots, const int* n_bins,
                   const Tile* tiles, int slots_of_offset, int first_offset, NEIGHBOURS,
                   const int* rows, const Example* examples, const int* rows_odd,
                   const Example* examples_odd, int n_rows, const int* n_safe, const OpenNode* open,
                   int max_nodes, const int* nodes, const i64* starts, int n_segments,
                   int n_histograms, int n_slots, Sum* histograms) {
  const Neighbours neighbours AS_NEIGHBOURS;
  DYNAMIC_SHARED(u32, words);
  const Tile tile = tiles[blockIdx.y];
  const int outside = tile.n_bins + 1, n_places = (outside + 1) * tile.stride;
  u32 *gradients = words, *curvatures = words + n_places;
  const i64 n_all = starts[n_segments];
  i64 begin = n_all * blockIdx.x / gridDim.x;
  const i64 end = n_all * (blockIdx.x + 1) / gridDim.x;
  if (begin >= end) return;
  const int n_together = COUNTING / tile.n_words, own = threadIdx.x / tile.n_words;
  const int own_word = threadIdx.x % tile.n_words;
  // Lanes begin with different columns of their words, and so use all banks.
  const int turn = lane_of_warp() >> 3;
  for (int s = find_segment(starts, n_segments, begin); begin < end;) {
    const int k = nodes[s] / max_nodes;
    i64 stop = end < starts[s + 1] ? end : starts[s + 1];
    if (stop > begin + n_safe[k]) stop = begin + n_safe[k];
    if (stop <= begin) {
      ++s;
      continue;
    }
    for (int i = threadIdx.x; i < 2 * n_places; i += COUNTING) words[i] = 0;
    __syncthreads();
    const OpenNode& node = open[nodes[s]];
    const size_t from = (size_t)k * n_rows + node.begin;
    const int* own_rows = (node.depth & 1 ? rows_odd : rows) + from;
    const Example* own_examples = (node.depth & 1 ? examples_odd : examples) + from;
    const int last = (int)(stop - starts[s]);
    int e = own < n_together ? (int)(begin - starts[s]) + own : last;
    for (; e < last; e += AT_ONCE * n_together) {
      int at[AT_ONCE];
      Example found[AT_ONCE];
      u32 four[AT_ONCE];
      UNROLL for (int r = 0; r < AT_ONCE; ++r) {
        const int i = e + r * n_together;
        at[r] = i < last ? own_rows[i] : -1;
        found[r] = {0, 0};
        if (i < last) found[r] = own_examples[i];
      }
      UNROLL for (int r = 0; r < AT_ONCE; ++r) {
        if (at[r] >= 0) at[r] = neighbours.at(at[r], tile.offset);
        four[r] = at[r] < 0 ? 0 : bins[(size_t)at[r] * n_words + tile.first_word + own_word];
      }
      UNROLL for (int r = 0; r < AT_ONCE; ++r) {
        if (found[r].curvature == 0) continue;
        UNROLL for (int i = 0; i < 4; ++i) {
          const int j = (i + turn) & 3;
          const int bin = at[r] < 0 ? outside : (four[r] >> (8 * j)) & 255;
          const int place = bin * tile.stride + 4 * own_word + j;
          atomicAdd(gradients + place, (u32)found[r].gradient);
          atomicAdd(curvatures + place, found[r].curvature);
        }
      }
    }
    __syncthreads();
    Sum* out = histograms + ((size_t)k * n_histograms + node.histogram) * n_slots +
               (size_t)(tile.offset - first_offset) * slots_of_offset;
    for (int i = threadIdx.x; i < n_places; i += COUNTING) {
      const int bin = i / tile.stride, column = 4 * tile.first_word + i % tile.stride;
      const u32 curvature = curvatures[i];
      if (curvature == 0 || slots[column] < 0) continue;
      Sum& sum = out[slots[column] + (bin == outside ? n_bins[column] + 1 : bin)];
      atomicAdd((u64*)&sum.gradient, (u64)(i64)(int)gradients[i]);
      atomicAdd((u64*)&sum.curvature, (u64)curvature);
    }
    __syncthreads();
    begin = stop;
  }
}
