// Splits: where to cut the examples of a node in two.
#pragma once

#include "random.cuh"
#include "tree_nodes.cuh"

struct Rules {
  double reg_lambda, min_child_weight, min_split_gain, max_step, learning_rate;
};

__device__ __forceinline__ double weight_of(Sum sum, const double* units) {
  return (double)sum.curvature * units[1];
}
__device__ __forceinline__ double score_of(Sum sum, const double* units, const Rules& rules) {
  const double gradient = (double)sum.gradient * units[0];
  return gradient * gradient / (weight_of(sum, units) + rules.reg_lambda);
}
__device__ __forceinline__ float value_of(Sum sum, const double* units, const Rules& rules) {
  const double gradient = (double)sum.gradient * units[0];
  const double divisor = weight_of(sum, units) + rules.reg_lambda;
  double step = divisor > 0 ? -gradient / divisor : 0.0;
  step = step < -rules.max_step ? -rules.max_step : step > rules.max_step ? rules.max_step : step;
  return (float)(step * rules.learning_rate);
}
__device__ __forceinline__ bool may_split(const OpenNode& node, int max_depth, const double* units,
                                          const Rules& rules) {
  return node.depth < max_depth && node.count >= 2 &&
         weight_of(node.total, units) >= 2.0 * rules.min_child_weight;
}

// The best cut that a warp has seen: the one with the largest gain, and in a tie the first one, by
// column, offset, place among the bins, and whether missing values and positions outside go left.
struct Cut {
  double gain;
  u64 order;  // place << 2 | ways, below the number of the feature
  Sum on_left;

  __device__ void look_at(const Cut& other) {
    if (other.gain > gain || (other.gain == gain && other.order < order)) *this = other;
  }
};
#define PLACE_BITS 10

__device__ __forceinline__ Cut exchange(const Cut& cut, int mask) {
  return {__shfl_xor_sync(~0u, cut.gain, mask),
          __shfl_xor_sync(~0u, cut.order, mask),
          {__shfl_xor_sync(~0u, cut.on_left.gradient, mask),
           __shfl_xor_sync(~0u, cut.on_left.curvature, mask)}};
}

struct FeatureSums {
  const Sum* bins;  // of missing values, of bins 1 to n_bins, and of positions outside
  int n_bins;
  const u8* sorted;  // bins of categories in the order in which they are cut; null: ascending
  int n_sorted;

  __device__ Sum missing() const { return bins[0]; }
  __device__ Sum outside() const { return bins[n_bins + 1]; }
  __device__ int n_places() const { return sorted ? n_sorted : n_bins; }
  __device__ Sum at(int place) const { return bins[sorted ? sorted[place] : place + 1]; }
};

// What is needed to compare the cuts of a node.
struct Search {
  Sum total;
  double node_score;
  const double* units;
  const Rules& rules;

  // The cuts at a place of a feature: `left` is the sum of its bins up to there; missing values and
  // positions outside may also go left.
  __device__ __forceinline__ void look_at(const FeatureSums& feature, u64 number, int place,
                                          Sum left, Cut& best) const {
    const Sum missing = feature.missing(), outside = feature.outside();
    for (int ways = 0; ways < 4; ++ways) {
      if (((ways & 1) && missing.is_empty()) || ((ways & 2) && outside.is_empty())) continue;
      Sum on_left = left;
      if (ways & 1) on_left = on_left + missing;
      if (ways & 2) on_left = on_left + outside;
      const Sum on_right = total - on_left;
      if (on_left.is_empty() || on_right.is_empty()) continue;
      if (weight_of(on_left, units) < rules.min_child_weight ||
          weight_of(on_right, units) < rules.min_child_weight)
        continue;
      const double gain =
          score_of(on_left, units, rules) + score_of(on_right, units, rules) - node_score;
      best.look_at({gain, (number << PLACE_BITS | (u64)place << 2 | ways), on_left});
    }
  }
};

// All cuts of a feature with few bins, by a single lane.
__device__ void search_alone(const FeatureSums& feature, u64 number, const Search& search,
                             Cut& best) {
  Sum left{0, 0};
  for (int place = 0; place < feature.n_bins; ++place) {
    const Sum bin = feature.at(place);
    left = left + bin;
    if (!bin.is_empty()) search.look_at(feature, number, place, left, best);
  }
}

// All cuts of a feature: lanes have neighbouring places, 32 of them at a time.
__device__ void search_feature(const FeatureSums& feature, u64 number, const Search& search,
                               Cut& best) {
  const int lane = lane_of_warp();
  Sum before{0, 0};
  for (int first = 0; first < feature.n_places(); first += 32) {
    const int place = first + lane;
    Sum bin{0, 0};
    if (place < feature.n_places()) bin = feature.at(place);
    Sum left = bin;
    for (int o = 1; o < 32; o <<= 1) {
      const i64 gradient = __shfl_up_sync(~0u, left.gradient, o);
      const i64 curvature = __shfl_up_sync(~0u, left.curvature, o);
      if (lane >= o) left = left + Sum{gradient, curvature};
    }
    left = before + left;
    if (!bin.is_empty()) search.look_at(feature, number, place, left, best);
    before = {__shfl_sync(~0u, left.gradient, 31), __shfl_sync(~0u, left.curvature, 31)};
  }
}

// The categories that occur, sorted by the value that each would have as a leaf.
__device__ int sort_categories(const Sum* bins, int n_bins, const double* units, const Rules& rules,
                               double* keys, u8* sorted) {
  const int lane = lane_of_warp();
  __syncwarp();
  for (int bin = 1 + lane; bin <= n_bins; bin += 32)
    keys[bin] =
        (double)bins[bin].gradient * units[0] / (weight_of(bins[bin], units) + rules.reg_lambda);
  __syncwarp();
  int n_seen = 0;
  for (int bin = 1 + lane; bin <= n_bins; bin += 32) {
    if (bins[bin].is_empty()) continue;
    int rank = 0;
    for (int other = 1; other <= n_bins; ++other)
      rank += !bins[other].is_empty() &&
              (keys[other] < keys[bin] || (keys[other] == keys[bin] && other < bin));
    sorted[rank] = (u8)bin;
    ++n_seen;
  }
  n_seen = warp_sum(n_seen);
  __syncwarp();
  return n_seen;
}

// Writes the best split of a node. Missing values and positions outside that do not occur here go
// to the side with the larger weight, but missing values of a column that never has any go where
// positions outside go, if those occur. Categories that do not occur go where missing values go.
__device__ void write_split(const Cut& cut, int column, int offset, const FeatureSums& feature,
                            bool may_miss, OpenNode& node, Node& out) {
  const int place = (int)(cut.order >> 2) & ((1 << (PLACE_BITS - 2)) - 1);
  const bool is_left_heavier = 2 * cut.on_left.curvature > node.total.curvature;
  const bool has_missing = !feature.missing().is_empty();
  const bool has_outside = !feature.outside().is_empty();
  bool missing_left = cut.order & 1, outside_left = cut.order & 2;
  if (!has_missing) missing_left = has_outside && !may_miss ? outside_left : is_left_heavier;
  if (!has_outside) outside_left = offset == 0 ? missing_left : is_left_heavier;
  out.column = column;
  out.offset = offset;
  out.gain = cut.gain;
  out.ways = (missing_left ? MISSING_LEFT : 0) | (outside_left ? OUTSIDE_LEFT : 0);
  node.on_left = cut.on_left;
  node.has_split = 1;
  if (!feature.sorted) {
    out.ways |= place + 1;
    return;
  }
  out.ways |= BY_SET;
  for (int i = 0; i < 8; ++i) out.set[i] = 0;
  for (int i = 0; i <= place; ++i)
    out.set[feature.sorted[i] >> 5] |= 1u << (feature.sorted[i] & 31);
  for (int bin = 0; missing_left && bin <= feature.n_bins; ++bin)
    if (bin == 0 || feature.bins[bin].is_empty()) out.set[bin >> 5] |= 1u << (bin & 31);
}

#define NODE_COLUMNS 2  // purpose of random numbers, as in feature_choice.cpp

// Draws a number for each feature that a tree may use; a node may use the n_wanted features with
// the smallest numbers. All threads of a block take part.
struct NodeFeatures {
  u64 key;
  u64 limit;  // the largest of these numbers

  __device__ u64 draw(int feature) const { return derive_key(key, feature); }
  __device__ bool has(int feature) const { return draw(feature) <= limit; }

  // Finds the limit bit by bit: a bit is 1 if too few numbers with the same higher bits have a 0.
  __device__ void choose(const u8* features, int n_features, int n_wanted) {
    __shared__ int n_found;
    int n_below = 0;
    limit = 0;
    for (int bit = 63; bit >= 0; --bit) {
      if (threadIdx.x == 0) n_found = 0;
      __syncthreads();
      int n_own = 0;
      for (int f = threadIdx.x; f < n_features; f += blockDim.x)
        n_own += (!features || features[f]) && draw(f) >> bit == limit >> bit;
      if (n_own) atomicAdd(&n_found, n_own);
      __syncthreads();
      if (n_below + n_found < n_wanted) {
        n_below += n_found;
        limit |= 1ull << bit;
      }
      __syncthreads();
    }
  }
};

// The best splits of new nodes: roots, or the children of those that were chosen. The histogram of
// one child was counted; that of the other is its parent's, which it replaces, minus the first.
// Features are (column, offset); `features` (K, n_columns n_offsets) has 0 for those that
// a tree may not use, null: it may use all. Of these a node may use n_of_node, chosen by a key; 0:
// all. The features of a node are shared among n_parts blocks, whose best cuts are in
// cuts (K, number of nodes, n_parts); n_found (K, number of nodes) is 0 before and afterwards. With
// `few_bins` a lane searches a feature by itself.
extern "C" __global__ void __launch_bounds__(256)
    find_splits(int is_root, const int* chosen, const int* n_chosen, int max_chosen,
                const int* slots, const int* n_bins, const u8* is_categorical, const u8* may_miss,
                const u8* features, const u64* key, int n_of_node, int n_columns, int n_offsets,
                int first_offset, int slots_of_offset, int n_histograms, int n_slots,
                Sum* histograms, const double* all_units, const double* all_rules, int max_depth,
                int few_bins, int n_parts, Cut* cuts, int* n_found, OpenNode* open, Node* nodes,
                int max_nodes) {
  __shared__ Cut of_warps[8];
  __shared__ int is_last;
  __shared__ double keys[8][256];
  __shared__ u8 sorted[8][256];
  const Rules rules{all_rules[0], all_rules[1], all_rules[2], all_rules[3], all_rules[4]};
  const int k = blockIdx.y / n_parts, part = blockIdx.y % n_parts;
  const int lane = lane_of_warp(), warp = threadIdx.x >> 5;
  const double* units = all_units + 2 * k;
  open += (size_t)k * max_nodes;
  nodes += (size_t)k * max_nodes;
  histograms += (size_t)k * n_histograms * n_slots;
  if (features) features += (size_t)k * n_columns * n_offsets;
  int at = 0;
  if (!is_root) {
    if ((int)blockIdx.x / 2 >= n_chosen[k]) return;
    const OpenNode& parent = open[chosen[(size_t)k * max_chosen + blockIdx.x / 2]];
    at = parent.children + blockIdx.x % 2;
  }
  OpenNode& node = open[at];
  if (!may_split(node, max_depth, units, rules)) return;
  const Sum total = node.total;
  Sum* own = histograms + (size_t)node.histogram * n_slots;
  const OpenNode& sibling = open[is_root ? 0 : ((at - 1) ^ 1) + 1];
  const Sum* counted = 0;
  if (!is_root && node.histogram < sibling.histogram)
    counted = histograms + (size_t)sibling.histogram * n_slots;
  NodeFeatures of_node;
  if (n_of_node) {
    of_node.key = derive_key(derive_key(derive_key(key[0], k), NODE_COLUMNS), node.place);
    of_node.choose(features, n_columns * n_offsets, n_of_node);
  }
  const Search search{total, score_of(total, units, rules), units, rules};
  const double least = rules.min_split_gain > 1e-6 ? rules.min_split_gain : 1e-6;
  Cut best{least, 0, {0, 0}};  // a split must have a larger gain
  const int n_features = n_columns * n_offsets;
  const int first = (int)((i64)n_features * part / n_parts);
  const int stop = (int)((i64)n_features * (part + 1) / n_parts);
  const int step = few_bins ? 256 : 8;
  for (int f = first + (few_bins ? (int)threadIdx.x : warp); f < stop; f += step) {
    const int column = f / n_offsets, o = f % n_offsets;
    Sum* sums = own + o * slots_of_offset + slots[column];
    if (counted) {
      const Sum* less = counted + (sums - own);
      for (int i = few_bins ? 0 : lane; i < n_bins[column] + 2; i += few_bins ? 1 : 32)
        sums[i] = sums[i] - less[i];
      if (!few_bins) __syncwarp();
    }
    if ((features && !features[f]) || (n_of_node && !of_node.has(f))) continue;
    FeatureSums feature{sums, n_bins[column], 0, 0};
    if (few_bins) {
      search_alone(feature, f, search, best);
      continue;
    }
    if (is_categorical[column]) {
      feature.n_sorted =
          sort_categories(feature.bins, feature.n_bins, units, rules, keys[warp], sorted[warp]);
      feature.sorted = sorted[warp];
    }
    search_feature(feature, f, search, best);
  }
  for (int mask = 16; mask; mask >>= 1) best.look_at(exchange(best, mask));
  if (lane == 0) of_warps[warp] = best;
  __syncthreads();
  if (warp > 0) return;
  for (int w = 1; w < 8; ++w) best.look_at(of_warps[w]);
  if (n_parts > 1) {
    const size_t number = (size_t)k * gridDim.x + blockIdx.x;
    cuts += number * n_parts;
    if (lane == 0) {
      cuts[part] = best;
      __threadfence();
      is_last = atomicAdd(n_found + number, 1) == n_parts - 1;
      if (is_last) n_found[number] = 0;
      __threadfence();
    }
    __syncwarp();
    if (!is_last) return;
    for (int other = lane; other < n_parts; other += 32) best.look_at(cuts[other]);
    for (int mask = 16; mask; mask >>= 1) best.look_at(exchange(best, mask));
  }
  if (!(best.gain > least)) return;
  const int f = (int)(best.order >> PLACE_BITS), column = f / n_offsets, o = f % n_offsets;
  FeatureSums feature{own + o * slots_of_offset + slots[column], n_bins[column], 0, 0};
  if (is_categorical[column]) {
    feature.n_sorted =
        sort_categories(feature.bins, feature.n_bins, units, rules, keys[0], sorted[0]);
    feature.sorted = sorted[0];
  }
  if (lane == 0)
    write_split(best, column, first_offset + o, feature, may_miss[column], node, nodes[at]);
}
