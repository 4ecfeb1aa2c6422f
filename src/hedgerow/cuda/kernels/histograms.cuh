// Histograms: sums over the examples of a node, by bin.
//
// The work is a list of segments, each with the examples of one node; starts (n_segments + 1,) are
// the cumulative sums of their sizes. It is divided equally among the blocks.
#pragma once

#include "examples.cuh"
#include "segments.cuh"

// The nodes to count, and where their examples are: in one of two lists.
struct Counted {
  const int *rows, *rows_odd;
  const Example *examples, *examples_odd;
  int n_rows;
  const int* n_safe;  // (K,) number of examples that can be added up in 32 bits
  const OpenNode* open;
  int max_nodes;
  const int* nodes;  // (n_segments,)
  const i64* starts;
  int n_segments;
};
#define COUNTED                                                                               \
  const int *rows, const Example *examples, const int *rows_odd, const Example *examples_odd, \
      int n_rows, const int *n_safe, const OpenNode *open, int max_nodes, const int *nodes,   \
      const i64 *starts, int n_segments
#define AS_COUNTED                                             \
  {rows, rows_odd,  examples, examples_odd, n_rows,    n_safe, \
   open, max_nodes, nodes,    starts,       n_segments}

// The share of a block, part after part: examples of one node each, and not too many of them.
struct Share {
  const Counted& counted;
  i64 at, end;
  int segment;
  // The part: examples first to last - 1 of a node of tree k.
  const int* rows;
  const Example* examples;
  int first, last, k, histogram;

  __device__ explicit Share(const Counted& all) : counted(all) {
    const i64 n_all = all.starts[all.n_segments];
    at = n_all * blockIdx.x / gridDim.x;
    end = n_all * (blockIdx.x + 1) / gridDim.x;
    segment = at < end ? find_segment(all.starts, all.n_segments, at) : 0;
  }
  __device__ bool next() {
    if (at >= end) return false;
    while (counted.starts[segment + 1] <= at) ++segment;
    const i64 begin = counted.starts[segment], stop = counted.starts[segment + 1];
    const int id = counted.nodes[segment];
    const OpenNode& node = counted.open[id];
    k = id / counted.max_nodes;
    i64 next = stop < end ? stop : end;
    if (next > at + counted.n_safe[k]) next = at + counted.n_safe[k];
    const size_t from = (size_t)k * counted.n_rows + node.begin;
    rows = (node.depth & 1 ? counted.rows_odd : counted.rows) + from;
    examples = (node.depth & 1 ? counted.examples_odd : counted.examples) + from;
    histogram = node.histogram;
    first = (int)(at - begin);
    last = (int)(next - begin);
    at = next;
    return true;
  }
};

__device__ __forceinline__ void add_to(Sum& sum, u32 gradient, u32 curvature) {
  if (curvature == 0) return;
  atomicAdd((u64*)&sum.gradient, (u64)(i64)(int)gradient);
  atomicAdd((u64*)&sum.curvature, (u64)curvature);
}

// A tile is some columns at one offset, whose histogram fits into shared memory. Every column has a
// slot for missing values, one for each bin, and one for positions outside of sequences.
struct Tile {
  int offset, first_word, n_words, first_slot, n_slots;
};

// Index of a slot in shared memory: columns with few bins are in different banks.
__device__ __forceinline__ int place_of(int slot) { return slot + (slot >> 4); }

#define AT_ONCE 4  // examples of a thread whose loads are under way at the same time

// Adds the examples of each node to its histogram, in histograms (K, n_histograms, n_slots). Four
// columns are a word of `bins` (n_rows, n_words); slots (4 n_words of all columns,): the first slot
// of each column at the first offset, -1 for padding; n_bins likewise.
extern "C" __global__ void __launch_bounds__(256)
    count_examples(const u32* bins, int n_words, const int* slots, const int* n_bins,
                   const Tile* tiles, int slots_of_offset, int first_offset, NEIGHBOURS, COUNTED,
                   int n_histograms, int n_slots, Sum* histograms) {
  const Neighbours neighbours AS_NEIGHBOURS;
  const Counted counted AS_COUNTED;
  DYNAMIC_SHARED(u32, words);
  const Tile tile = tiles[blockIdx.y];
  const int n_places = place_of(tile.n_slots - 1) + 1;
  u32 *gradients = words, *curvatures = words + n_places;
  const int n_together = 256 / tile.n_words, own = threadIdx.x / tile.n_words;
  const int word = tile.first_word + threadIdx.x % tile.n_words;
  const int shift = tile.first_slot - (tile.offset - first_offset) * slots_of_offset;
  int first_slots[4], last_slots[4];
  UNROLL for (int j = 0; j < 4; ++j) {
    first_slots[j] = slots[4 * word + j] - shift;
    last_slots[j] = first_slots[j] + n_bins[4 * word + j] + 1;
    if (slots[4 * word + j] < 0) first_slots[j] = -1;
  }
  for (Share share(counted); share.next();) {
    for (int i = threadIdx.x; i < 2 * n_places; i += 256) words[i] = 0;
    __syncthreads();
    int e = own < n_together ? share.first + own : share.last;
    for (; e < share.last; e += AT_ONCE * n_together) {
      int at[AT_ONCE];
      Example found[AT_ONCE];
      u32 four[AT_ONCE];
      UNROLL for (int r = 0; r < AT_ONCE; ++r) {
        const int i = e + r * n_together;
        at[r] = i < share.last ? share.rows[i] : -1;
        found[r] = {0, 0};
        if (i < share.last) found[r] = share.examples[i];
      }
      UNROLL for (int r = 0; r < AT_ONCE; ++r) {
        if (at[r] >= 0) at[r] = neighbours.at(at[r], tile.offset);
        four[r] = at[r] < 0 ? 0 : bins[(size_t)at[r] * n_words + word];
      }
      UNROLL for (int r = 0; r < AT_ONCE; ++r) {
        if (found[r].curvature == 0) continue;
        UNROLL for (int j = 0; j < 4; ++j) {
          if (first_slots[j] < 0) continue;
          const int place =
              place_of(at[r] < 0 ? last_slots[j] : first_slots[j] + ((four[r] >> (8 * j)) & 255));
          atomicAdd(gradients + place, (u32)found[r].gradient);
          atomicAdd(curvatures + place, found[r].curvature);
        }
      }
    }
    __syncthreads();
    Sum* out = histograms + ((size_t)share.k * n_histograms + share.histogram) * n_slots;
    for (int i = threadIdx.x; i < tile.n_slots; i += 256)
      add_to(out[tile.first_slot + i], gradients[place_of(i)], curvatures[place_of(i)]);
    __syncthreads();
  }
}

// The same for columns of one or two bins without missing values: each lane has one word of
// columns, and sums the examples in the second bins in registers. Blocks with the same blockIdx.y
// have 32 words at one offset.
extern "C" __global__ void __launch_bounds__(256)
    count_pairs_of_bins(const u32* bins, int n_words, const int* slots, const int* n_bins,
                        int slots_of_offset, int first_offset, NEIGHBOURS, COUNTED,
                        int n_histograms, int n_slots, Sum* histograms) {
  const Neighbours neighbours AS_NEIGHBOURS;
  const Counted counted AS_COUNTED;
  __shared__ u32 gradients[4][32], curvatures[4][32];
  __shared__ u32 totals[2][2];  // of all examples, and of those whose offset is outside
  const int n_parts = (n_words + 31) / 32, o = blockIdx.y / n_parts, offset = first_offset + o;
  const int lane = lane_of_warp(), warp = threadIdx.x >> 5;
  const int first_word = 32 * (blockIdx.y % n_parts), word = first_word + lane;
  const bool has_word = word < n_words;
  for (Share share(counted); share.next();) {
    if (warp < 4) gradients[warp][lane] = curvatures[warp][lane] = 0;
    if (threadIdx.x < 4) totals[threadIdx.x / 2][threadIdx.x % 2] = 0;
    __syncthreads();
    u32 own_gradients[4] = {0, 0, 0, 0}, own_curvatures[4] = {0, 0, 0, 0};
    u32 of_all[2] = {0, 0}, of_outside[2] = {0, 0};
    for (int e = share.first + warp; e < share.last; e += 8 * AT_ONCE) {
      int at[AT_ONCE];
      Example found[AT_ONCE];
      u32 four[AT_ONCE];
      UNROLL for (int r = 0; r < AT_ONCE; ++r) {
        const int i = e + 8 * r;
        at[r] = i < share.last ? share.rows[i] : -1;
        found[r] = {0, 0};
        if (i < share.last) found[r] = share.examples[i];
      }
      UNROLL for (int r = 0; r < AT_ONCE; ++r) {
        if (at[r] >= 0) at[r] = neighbours.at(at[r], offset);
        four[r] = at[r] < 0 || !has_word ? 0 : bins[(size_t)at[r] * n_words + word];
      }
      UNROLL for (int r = 0; r < AT_ONCE; ++r) {
        const u32 gradient = (u32)found[r].gradient, curvature = found[r].curvature;
        of_all[0] += gradient;
        of_all[1] += curvature;
        if (at[r] < 0) {
          of_outside[0] += gradient;
          of_outside[1] += curvature;
        }
        UNROLL for (int j = 0; j < 4; ++j) {
          const bool is_second = (four[r] >> (8 * j + 1)) & 1;
          own_gradients[j] += is_second ? gradient : 0;
          own_curvatures[j] += is_second ? curvature : 0;
        }
      }
    }
    UNROLL for (int j = 0; j < 4; ++j) {
      atomicAdd(&gradients[j][lane], own_gradients[j]);
      atomicAdd(&curvatures[j][lane], own_curvatures[j]);
    }
    if (lane < 2) {
      atomicAdd(&totals[0][lane], lane ? of_all[1] : of_all[0]);
      atomicAdd(&totals[1][lane], lane ? of_outside[1] : of_outside[0]);
    }
    __syncthreads();
    Sum* out = histograms + ((size_t)share.k * n_histograms + share.histogram) * n_slots +
               (size_t)o * slots_of_offset;
    const int column = 4 * first_word + threadIdx.x, j = threadIdx.x & 3, place = threadIdx.x >> 2;
    if (threadIdx.x < 128 && column < 4 * n_words && slots[column] >= 0) {
      const u32 gradient = gradients[j][place], curvature = curvatures[j][place];
      Sum* sums = out + slots[column];
      add_to(sums[1], totals[0][0] - totals[1][0] - gradient,
             totals[0][1] - totals[1][1] - curvature);
      if (n_bins[column] > 1) add_to(sums[2], gradient, curvature);
      add_to(sums[n_bins[column] + 1], totals[1][0], totals[1][1]);
    }
    __syncthreads();
  }
}
