// Growth: which nodes are split, and where their examples go.
//
// All trees grow at the same time, step by step. Each step simulates best-first growth with the
// splits known so far: the node with the largest gain is split first, until the tree has all its
// leaves. The nodes that this splits and that have no children yet are split for real. The nodes
// below these are not known yet; once known, they can only push other nodes out of the tree, never
// bring any in. So a node of the final tree is split in the step after its parent, and the tree is
// complete after as many steps as its maximum depth. If all nodes will be split in the end, the
// order does not matter.
#pragma once

#include "histograms.cuh"
#include "splits.cuh"

__device__ void open_node(OpenNode& open, Node& node, Sum total, int depth, u64 place,
                          const double* units, const Rules& rules) {
  open.total = total;
  open.place = place;
  open.depth = depth;
  open.children = -1;
  open.has_split = 0;
  node.column = node.left = -1;
  node.offset = 0;
  node.ways = 0;
  node.gain = 0.0;
  node.value = value_of(total, units, rules);
  node.weight = (float)weight_of(total, units);
}

// Creates the roots, one thread per tree; counted (K,) and starts (K + 1,): the examples to count.
extern "C" __global__ void plant(const int* n_examples, const Sum* totals, const double* units,
                                 const double* all_rules, OpenNode* open, Node* nodes,
                                 int max_nodes, int* counted, i64* starts) {
  const Rules rules{all_rules[0], all_rules[1], all_rules[2], all_rules[3], all_rules[4]};
  for (int k = threadIdx.x; k < K; k += blockDim.x) {
    OpenNode& root = open[(size_t)k * max_nodes];
    open_node(root, nodes[(size_t)k * max_nodes], totals[k], 0, 0, units + 2 * k, rules);
    root.begin = root.histogram = 0;
    root.count = n_examples[k];
    counted[k] = k * max_nodes;
  }
  if (threadIdx.x) return;
  i64 sum = starts[0] = 0;
  for (int k = 0; k < K; ++k) starts[k + 1] = sum += n_examples[k];
}

// Makes a node's children, left and left + 1.
__device__ void split_node(int at, int left, OpenNode* open, Node* nodes, const double* units,
                           const Rules& rules) {
  OpenNode& parent = open[at];
  parent.children = left;
  const u64 place = 2 * parent.place + 1;
  open_node(open[left], nodes[left], parent.on_left, parent.depth + 1, place, units, rules);
  open_node(open[left + 1], nodes[left + 1], parent.total - parent.on_left, parent.depth + 1,
            place + 1, units, rules);
}

// The node with the largest gain that may be split now, the oldest one in a tie; -1 if there is
// none. numbers (max_nodes,): the order in which such nodes were created, -1 for all others.
__device__ int best_node(const Node* nodes, const int* numbers, int n_nodes) {
  double gain = -1.0;
  int number = 0x7FFFFFFF, found = -1;
  for (int i = lane_of_warp(); i < n_nodes; i += 32)
    if (numbers[i] >= 0 &&
        (nodes[i].gain > gain || (nodes[i].gain == gain && numbers[i] < number))) {
      gain = nodes[i].gain;
      number = numbers[i];
      found = i;
    }
  for (int mask = 16; mask; mask >>= 1) {
    const double other_gain = __shfl_xor_sync(~0u, gain, mask);
    const int other_number = __shfl_xor_sync(~0u, number, mask);
    const int other = __shfl_xor_sync(~0u, found, mask);
    if (other_gain > gain || (other_gain == gain && other_number < number)) {
      gain = other_gain;
      number = other_number;
      found = other;
    }
  }
  return found;
}

// The nodes of a tree from which a warp chooses those to split, and the list of the chosen ones.
// `numbers` (max_nodes,) is scratch.
struct Chooser {
  OpenNode* open;
  Node* nodes;
  const double* units;
  const Rules& rules;
  int *numbers, *chosen, max_chosen;

  // Splits and lists all nodes that have a split but no children yet; returns their number.
  __device__ int split_all(int n_nodes) const {
    int n_chosen = 0;
    for (int first = 0; first < n_nodes; first += 32) {
      const int at = first + lane_of_warp();
      const bool is_ready = at < n_nodes && open[at].has_split && open[at].children < 0;
      const u32 votes = __ballot_sync(~0u, is_ready);
      const int number = n_chosen + __popc(votes & ((1u << lane_of_warp()) - 1));
      if (is_ready && number < max_chosen) {
        split_node(at, n_nodes + 2 * number, open, nodes, units, rules);
        chosen[number] = at;
      }
      n_chosen += __popc(votes);
    }
    return n_chosen < max_chosen ? n_chosen : max_chosen;
  }

  // The same for nodes that best-first growth splits, by what is known so far; or, at the end,
  // marks the splits of the final tree.
  __device__ int split_best(int n_nodes, int max_leaves, bool is_last) const {
    const int lane = lane_of_warp();
    int n_chosen = 0, n_numbers = 1;
    for (int i = lane; i < n_nodes; i += 32) numbers[i] = i == 0 && open[0].has_split ? 0 : -1;
    __syncwarp();
    for (int n_leaves = 1; n_leaves < max_leaves; ++n_leaves) {
      const int at = best_node(nodes, numbers, n_nodes);
      if (at < 0) break;
      __syncwarp();
      if (lane == 0) {
        numbers[at] = -1;
        const int left = open[at].children;
        if (left >= 0 && is_last) nodes[at].left = left;
        if (left < 0 && !is_last && n_chosen < max_chosen) {
          split_node(at, n_nodes + 2 * n_chosen, open, nodes, units, rules);
          chosen[n_chosen++] = at;
        }
        for (int child = left; left >= 0 && child < left + 2; ++child, ++n_numbers)
          if (open[child].has_split) numbers[child] = n_numbers;
      }
      __syncwarp();
    }
    return __shfl_sync(~0u, n_chosen, 0);
  }
};

// starts[s + 1] = sum of sizes up to s; size_of(s) is called once for each, by one block.
template <class SizeOf>
__device__ void plan(int n_segments, i64* starts, SizeOf size_of) {
  __shared__ i64 of_warps[32];
  const int lane = lane_of_warp(), warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
  i64 before = 0;
  if (threadIdx.x == 0) starts[0] = 0;
  for (int first = 0; first < n_segments; first += blockDim.x) {
    const int s = first + threadIdx.x;
    i64 sum = s < n_segments ? size_of(s) : 0;
    for (int o = 1; o < 32; o <<= 1) {
      const i64 more = __shfl_up_sync(~0u, sum, o);
      if (lane >= o) sum += more;
    }
    if (lane == 31) of_warps[warp] = sum;
    __syncthreads();
    for (int w = 0; w < n_warps; ++w) {
      if (w < warp) sum += of_warps[w];
      if (w == warp && s < n_segments) starts[s + 1] = before + sum;
    }
    for (int w = 0; w < n_warps; ++w) before += of_warps[w];
    __syncthreads();
  }
}

// Chooses the nodes to split next, and plans how their examples are partitioned; or, at the end
// (is_last), marks the splits of the final tree. One block, one warp per tree. Segments are (tree,
// number among the chosen). numbers (K, max_nodes) is scratch.
extern "C" __global__ void __launch_bounds__(1024)
    choose_nodes(int best_first, int is_last, int max_leaves, const double* units,
                 const double* all_rules, OpenNode* open, Node* nodes, int max_nodes, int* n_nodes,
                 int* numbers, int* chosen, int* n_chosen, int max_chosen, int* cursors,
                 i64* starts) {
  const Rules rules{all_rules[0], all_rules[1], all_rules[2], all_rules[3], all_rules[4]};
  const int lane = lane_of_warp();
  for (int k = threadIdx.x >> 5; k < K; k += blockDim.x >> 5) {
    const size_t first = (size_t)k * max_nodes;
    const Chooser chooser{open + first, nodes + first,   units + 2 * k,
                          rules,        numbers + first, chosen + (size_t)k * max_chosen,
                          max_chosen};
    const int n_before = n_nodes[k];
    int n_own = 0;
    if (best_first)
      n_own = chooser.split_best(n_before, max_leaves, is_last);
    else if (!is_last)
      n_own = chooser.split_all(n_before);
    for (int i = lane; is_last && i < n_before; i += 32) {
      Node& node = chooser.nodes[i];
      if (!best_first && chooser.open[i].children >= 0) node.left = chooser.open[i].children;
      if (node.left < 0) node.column = -1;
    }
    for (int i = lane; i < 2 * n_own; i += 32) cursors[(size_t)2 * k * max_chosen + i] = 0;
    __syncwarp();
    if (lane) continue;
    n_nodes[k] = n_before + 2 * n_own;
    n_chosen[k] = n_own;
  }
  __syncthreads();
  if (is_last) return;
  plan(K * max_chosen, starts, [=](int s) -> i64 {
    const int k = s / max_chosen;
    if (s % max_chosen >= n_chosen[k]) return 0;
    return open[(size_t)k * max_nodes + chosen[s]].count;
  });
}

// Gives children their examples, and chooses the one to be counted, the smaller one. It gets a new
// histogram, and the other one that of the parent.
extern "C" __global__ void __launch_bounds__(1024)
    plan_counts(OpenNode* open, int max_nodes, const int* chosen, const int* n_chosen,
                int max_chosen, const int* cursors, const double* units, const double* all_rules,
                int max_depth, int* counted, i64* starts) {
  const Rules rules{all_rules[0], all_rules[1], all_rules[2], all_rules[3], all_rules[4]};
  plan(K * max_chosen, starts, [=](int s) -> i64 {
    const int k = s / max_chosen;
    counted[s] = k * max_nodes;
    if (s % max_chosen >= n_chosen[k]) return 0;
    const OpenNode& parent = open[(size_t)k * max_nodes + chosen[s]];
    const int at = k * max_nodes + parent.children;
    OpenNode &left = open[at], &right = open[at + 1];
    left.begin = parent.begin;
    left.count = cursors[2 * s];
    right.begin = parent.begin + left.count;
    right.count = cursors[2 * s + 1];
    const bool counts_left = left.count <= right.count;
    const int own = 1 + (parent.children - 1) / 2;
    left.histogram = counts_left ? own : parent.histogram;
    right.histogram = counts_left ? parent.histogram : own;
    counted[s] = counts_left ? at : at + 1;
    const bool is_needed = may_split(left, max_depth, units + 2 * k, rules) ||
                           may_split(right, max_depth, units + 2 * k, rules);
    return is_needed ? open[counted[s]].count : 0;
  });
}

// Moves examples to the other list: those of the left child to the front of the node's range, those
// of the right child to its back, in any order. cursors (K max_chosen, 2): how many of each so far.
extern "C" __global__ void __launch_bounds__(256, 5)
    partition(const u8* columns, NEIGHBOURS, const OpenNode* open, const Node* nodes, int max_nodes,
              const int* chosen, int max_chosen, const i64* starts, int n_segments, int n_rows,
              int* rows, Example* examples, int* rows_odd, Example* examples_odd, int* cursors) {
  const Neighbours neighbours AS_NEIGHBOURS;
  __shared__ int lefts[8], rights[8], bases[2];
  const i64 n_all = starts[n_segments];
  i64 begin = n_all * blockIdx.x / gridDim.x;
  const i64 end = n_all * (blockIdx.x + 1) / gridDim.x;
  if (begin >= end) return;
  const int lane = lane_of_warp(), warp = threadIdx.x >> 5;
  const u32 below = (1u << lane) - 1;
  for (int s = find_segment(starts, n_segments, begin); begin < end; ++s) {
    const i64 stop = end < starts[s + 1] ? end : starts[s + 1];
    if (stop <= begin) continue;
    const int k = s / max_chosen, id = k * max_nodes + chosen[s];
    const OpenNode& node = open[id];
    const Node& asked = nodes[id];
    const bool is_odd = node.depth & 1;
    const size_t from = (size_t)k * n_rows + node.begin;
    const int* rows_in = (is_odd ? rows_odd : rows) + from;
    const Example* examples_in = (is_odd ? examples_odd : examples) + from;
    int* rows_out = (is_odd ? rows : rows_odd) + from;
    Example* examples_out = (is_odd ? examples : examples_odd) + from;
    const u8* column = columns + (size_t)asked.column * n_rows;
    for (i64 tile = begin; tile < stop; tile += 2048) {
      int own[8], n_left = 0, n_right = 0;
      Example moved[8];
      u32 own_left = 0;  // a bit for each of them
      const i64 first = tile - starts[s] + warp * 256 + lane;
      UNROLL for (int r = 0; r < 8; ++r) {
        const i64 e = first + r * 32;
        own[r] = -1;
        if (e < stop - starts[s]) {
          own[r] = rows_in[e];
          moved[r] = examples_in[e];
        }
      }
      UNROLL for (int r = 0; r < 8; ++r) {
        bool goes = false;
        if (own[r] >= 0) {
          const int at = neighbours.at(own[r], asked.offset);
          goes = goes_left(asked.ways, asked.set, at < 0 ? 0 : column[at], at < 0);
        }
        own_left |= (u32)goes << r;
        n_left += __popc(__ballot_sync(~0u, goes));
        n_right += __popc(__ballot_sync(~0u, own[r] >= 0 && !goes));
      }
      if (lane == 0) {
        lefts[warp] = n_left;
        rights[warp] = n_right;
      }
      __syncthreads();
      if (threadIdx.x < 2) {
        int* of_warps = threadIdx.x ? rights : lefts;
        int sum = 0;
        for (int w = 0; w < 8; ++w) {
          const int more = of_warps[w];
          of_warps[w] = sum;
          sum += more;
        }
        bases[threadIdx.x] = atomicAdd(cursors + 2 * s + threadIdx.x, sum);
      }
      __syncthreads();
      int to_left = bases[0] + lefts[warp], to_right = node.count - 1 - bases[1] - rights[warp];
      UNROLL for (int r = 0; r < 8; ++r) {
        const bool goes = (own_left >> r) & 1;
        const u32 lefts_of_warp = __ballot_sync(~0u, goes);
        const u32 rights_of_warp = __ballot_sync(~0u, own[r] >= 0 && !goes);
        if (own[r] >= 0) {
          const int place = goes ? to_left + __popc(lefts_of_warp & below)
                                 : to_right - __popc(rights_of_warp & below);
          rows_out[place] = own[r];
          examples_out[place] = moved[r];
        }
        to_left += __popc(lefts_of_warp);
        to_right -= __popc(rights_of_warp);
      }
      __syncthreads();
    }
    begin = stop;
  }
}

// Copies the tree of output 1 to output 0, with values of the opposite sign: with two labels, one
// tree determines the other.
extern "C" __global__ void __launch_bounds__(256) mirror(Node* nodes, int max_nodes, int* n_nodes) {
  for (int i = threadIdx.x; i < n_nodes[1]; i += 256) {
    nodes[i] = nodes[max_nodes + i];
    nodes[i].value = -nodes[i].value;
  }
  __syncthreads();
  if (threadIdx.x == 0) n_nodes[0] = n_nodes[1];
}
