// Histograms: what the examples of a node add up to, bin by bin.
//
// Work is a list of segments, the examples of a node each; starts (n_segments + 1,) are the sums of
// their sizes before each. Blocks have equal shares of it.
#pragma once

#include "examples.cuh"

__device__ __forceinline__ int find_segment(const i64* starts, int n, i64 at) {
  int low = 0, high = n;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (starts[middle] <= at)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// Adds a number of 64 bits to two words of 32: atomic additions of 64 bits are slow in shared
// memory. The high word is mostly left alone, for small negative numbers too.
__device__ __forceinline__ void add_in_words(u32* low, u32* high, i64 number) {
  const u32 word = (u32)number;
  const u32 old = atomicAdd(low, word);
  const u32 more = (u32)(number >> 32) + (old + word < old);
  if (more) atomicAdd(high, more);
}

// A tile is some columns at one offset, whose histogram fits into shared memory. Of every column
// there is a slot for missing values, one for each bin, and one for what is outside of sequences.
struct Tile {
  int offset, first_word, n_words, first_slot, n_slots;
};

// histograms[node's place] of (K, n_histograms, n_slots). Four columns are a word of `bins`
// (n_rows, n_words); slots (4 n_words of all columns,): the first slot of each column at the first
// offset, -1 for padding; n_bins likewise. With `is_wide` sums may need more than 32 bits.
extern "C" __global__ void __launch_bounds__(256)
    count_examples(const u32* bins, int n_words, const int* slots, const int* n_bins,
                   const Tile* tiles, int slots_of_offset, int first_offset, NEIGHBOURS,
                   const int* rows, const float2* examples, const int* rows_odd,
                   const float2* examples_odd, int n_rows, const double* units,
                   const OpenNode* open, int max_nodes, const int* nodes, const i64* starts,
                   int n_segments, int is_wide, int n_histograms, int n_slots, Sum* histograms) {
  const Neighbours neighbours AS_NEIGHBOURS;
  DYNAMIC_SHARED(u32, words);
  const Tile tile = tiles[blockIdx.y];
  u32 *gradients = words, *curvatures = words + tile.n_slots;
  u32 *high_gradients = words + 2 * tile.n_slots, *high_curvatures = words + 3 * tile.n_slots;
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
  for (int s = find_segment(starts, n_segments, begin); begin < end; ++s) {
    const i64 stop = end < starts[s + 1] ? end : starts[s + 1];
    if (stop <= begin) continue;
    for (int i = threadIdx.x; i < (is_wide ? 4 : 2) * tile.n_slots; i += 256) words[i] = 0;
    __syncthreads();
    const OpenNode& node = open[nodes[s]];
    const int k = nodes[s] / max_nodes;
    const double per_gradient = 1.0 / units[2 * k], per_curvature = 1.0 / units[2 * k + 1];
    const size_t from = (size_t)k * n_rows + node.begin;
    const int* own_rows = (node.depth & 1 ? rows_odd : rows) + from;
    const float2* own_examples = (node.depth & 1 ? examples_odd : examples) + from;
    for (i64 e = begin - starts[s] + own; own < n_together && e < stop - starts[s];
         e += n_together) {
      const int at = neighbours.at(own_rows[e], tile.offset);
      const Sum sum = round_to_units(own_examples[e], per_gradient, per_curvature);
      const u32 four = at < 0 ? 0 : bins[(size_t)at * n_words + word];
      UNROLL for (int j = 0; j < 4; ++j) {
        if (first_slots[j] < 0) continue;
        const int slot = at < 0 ? last_slots[j] : first_slots[j] + ((four >> (8 * j)) & 255);
        if (is_wide) {
          add_in_words(gradients + slot, high_gradients + slot, sum.gradient);
          add_in_words(curvatures + slot, high_curvatures + slot, sum.curvature);
        } else {
          atomicAdd(gradients + slot, (u32)sum.gradient);
          atomicAdd(curvatures + slot, (u32)sum.curvature);
        }
      }
    }
    __syncthreads();
    Sum* out = histograms + ((size_t)k * n_histograms + node.histogram) * n_slots + tile.first_slot;
    for (int i = threadIdx.x; i < tile.n_slots; i += 256) {
      i64 gradient = (int)gradients[i];
      u64 curvature = curvatures[i];
      if (is_wide) {
        gradient = (i64)((u64)high_gradients[i] << 32 | gradients[i]);
        curvature |= (u64)high_curvatures[i] << 32;
      }
      if (curvature == 0) continue;
      atomicAdd((u64*)&out[i].gradient, (u64)gradient);
      atomicAdd((u64*)&out[i].curvature, curvature);
    }
    __syncthreads();
    begin = stop;
  }
}
