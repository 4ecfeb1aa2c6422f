// Histograms: what the examples of a node add up to, bin by bin.
//
// Work is a list of segments, the examples of a node each; starts (n_segments + 1,) are the sums of
// their sizes before each. Blocks have equal shares of it.
#pragma once

#include "examples.cuh"
#include "segments.cuh"

// A tile is some columns at one offset, whose histogram fits into shared memory. Of every column
// there is a slot for missing values, one for each bin, and one for what is outside of sequences.
struct Tile {
  int offset, first_word, n_words, first_slot, n_slots;
};

// Where a slot is in shared memory: columns of few bins lie in different banks.
__device__ __forceinline__ int place_of(int slot) { return slot + (slot >> 4); }

#define AT_ONCE 4  // examples of a thread whose loads are under way at the same time

// histograms[node's place] of (K, n_histograms, n_slots). Four columns are a word of `bins`
// (n_rows, n_words); slots (4 n_words of all columns,): the first slot of each column at the first
// offset, -1 for padding; n_bins likewise. A block adds up to n_safe examples in 32 bits.
extern "C" __global__ void __launch_bounds__(256)
    count_examples(const u32* bins, int n_words, const int* slots, const int* n_bins,
                   const Tile* tiles, int slots_of_offset, int first_offset, NEIGHBOURS,
                   const int* rows, const Example* examples, const int* rows_odd,
                   const Example* examples_odd, int n_rows, const int* n_safe, const OpenNode* open,
                   int max_nodes, const int* nodes, const i64* starts, int n_segments,
                   int n_histograms, int n_slots, Sum* histograms) {
  const Neighbours neighbours AS_NEIGHBOURS;
  DYNAMIC_SHARED(u32, words);
  const Tile tile = tiles[blockIdx.y];
  const int n_places = place_of(tile.n_slots - 1) + 1;
  u32 *gradients = words, *curvatures = words + n_places;
  const i64 n_all = starts[n_segments];
  i64 begin = n_all * blockIdx.x / gridDim.x;
  const i64 end = n_all * (blockIdx.x + 1) / gridDim.x;
  if (begin >= end) return;
  const int n_together = 256 / tile.n_words, own = threadIdx.x / tile.n_words;
  const int word = tile.first_word + threadIdx.x % tile.n_words;
  const int shift = tile.first_slot - (tile.offset - first_offset) * slots_of_offset;
  int first_slots[4], last_slots[4];
  UNROLL for (int j = 0; j < 4; ++j) {
    first_slots[j] = slots[4 * word + j] - shift;
    last_slots[j] = first_slots[j] + n_bins[4 * word + j] + 1;
    if (slots[4 * word + j] < 0) first_slots[j] = -1;
  }
  for (int s = find_segment(starts, n_segments, begin); begin < end;) {
    const int k = nodes[s] / max_nodes;
    i64 stop = end < starts[s + 1] ? end : starts[s + 1];
    if (stop > begin + n_safe[k]) stop = begin + n_safe[k];
    if (stop <= begin) {
      ++s;
      continue;
    }
    for (int i = threadIdx.x; i < 2 * n_places; i += 256) words[i] = 0;
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
        four[r] = at[r] < 0 ? 0 : bins[(size_t)at[r] * n_words + word];
      }
      UNROLL for (int r = 0; r < AT_ONCE; ++r) {
        if (found[r].curvature == 0) continue;
        UNROLL for (int j = 0; j < 4; ++j) {
          if (first_slots[j] < 0) continue;
          const int place = place_of(at[r] < 0 ? last_slots[j]
                                               : first_slots[j] + ((four[r] >> (8 * j)) & 255));
          atomicAdd(gradients + place, (u32)found[r].gradient);
          atomicAdd(curvatures + place, found[r].curvature);
        }
      }
    }
    __syncthreads();
    Sum* out = histograms + ((size_t)k * n_histograms + node.histogram) * n_slots + tile.first_slot;
    for (int i = threadIdx.x; i < tile.n_slots; i += 256) {
      const u32 curvature = curvatures[place_of(i)];
      if (curvature == 0) continue;
      atomicAdd((u64*)&out[i].gradient, (u64)(i64)(int)gradients[place_of(i)]);
      atomicAdd((u64*)&out[i].curvature, (u64)curvature);
    }
    __syncthreads();
    begin = stop;
  }
}
