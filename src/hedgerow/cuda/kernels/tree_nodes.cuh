// Nodes of trees, and their splits.
#pragma once

#include "common.cuh"

// Sums over examples, in units that each tree has of its own: integers, so that sums do not depend
// on the order. Curvatures of examples are at least 1.
struct Sum {
  i64 gradient, curvature;

  __device__ bool is_empty() const { return curvature == 0; }
};
__device__ __forceinline__ Sum operator+(Sum a, Sum b) {
  return {a.gradient + b.gradient, a.curvature + b.curvature};
}
__device__ __forceinline__ Sum operator-(Sum a, Sum b) {
  return {a.gradient - b.gradient, a.curvature - b.curvature};
}

#define MISSING_LEFT 0x100
#define OUTSIDE_LEFT 0x200
#define BY_SET 0x400
#define WAYS_BITS 11

// 64 bytes, in the layout that the core reads.
struct Node {
  int column;  // column of a split; -1: a leaf
  int offset;  // its position, relative to the one that is scored
  u32 ways;    // the last bin that goes left, and flags from the list above
  int left;    // the left child, before the right one, counted from the tree's first; -1: a leaf
  double gain;
  float value;   // value of a leaf
  float weight;  // sum of curvatures
  u32 set[8];    // if BY_SET: one bit for each bin, 1 if it goes left
};

// A node while the tree grows. Its examples are begin to begin + count of those of its tree, in one
// of two lists, for even and for odd depths.
struct OpenNode {
  Sum total, on_left;
  int begin, count, depth;
  int histogram;  // its place among those of the tree
  int children;   // the left one; -1: it has not been split yet
  int has_split;
  u64 place;  // in a full tree: 0 is the root, and p has the children 2 p + 1 and 2 p + 2
};

__device__ __forceinline__ bool goes_left(u32 ways, const u32* set, int bin, bool is_outside) {
  if (is_outside) return ways & OUTSIDE_LEFT;
  if (ways & BY_SET) return (set[bin >> 5] >> (bin & 31)) & 1;
  return bin == 0 ? (ways & MISSING_LEFT) != 0 : bin <= (int)(ways & 255);
}

// Places of rows in their sequences, for splits on other positions.
struct Neighbours {
  const int* position;  // (n_rows,) of a row; -1: padding
  const int* row;       // (N,) of a position
  const u8* before;     // (n_rows,) positions before it in its sequence, up to 255
  const u8* after;

  // The row at an offset, or -1 if that is outside of the sequence.
  __device__ int at(int from, int offset) const {
    if (offset == 0) return from;
    if (offset < 0 ? -offset > before[from] : offset > after[from]) return -1;
    return row[position[from] + offset];
  }
};
#define NEIGHBOURS const int *position, const int *row, const u8 *before, const u8 *after
#define AS_NEIGHBOURS {position, row, before, after}
