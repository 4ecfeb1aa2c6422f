// Sequences in lanes, one per lane: which of them share lanes, and how their numbers get from rows
// to lanes and back. Results of a lane do not depend on the others.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "trellis/chain.hpp"

namespace hedgerow {

// Kernels with a lane for each sequence keep all labels of a position in registers, so that only
// few labels are possible.
inline constexpr int kMostLaneLabels = kLowLimits ? 3 : 8;

inline bool labels_fit_lanes(int n_labels) {
  return n_labels <= kMostLaneLabels && has_wide_registers();
}

// The kernels for a number of labels. make(K) returns those for K labels, K being an
// integral_constant. It must be a lambda: each lambda has its own table.
template <class Make>
const auto& kernels_for(int n_labels, Make make) {
  static const auto kKernels = [&]<int... kBefore>(std::integer_sequence<int, kBefore...>) {
    return std::array{make(std::integral_constant<int, kBefore + 1>())...};
  }(std::make_integer_sequence<int, kMostLaneLabels>());
  return kKernels[n_labels - 1];
}

// Scratch memory of a lane grows with its sequence: sequences longer than this do not get a lane.
inline constexpr int64_t kLongestStrand = kLowLimits ? 1 << 9 : 1 << 14;
// Label pairs of all positions of a sequence with edges; a lane takes 8 bytes for each.
inline constexpr int64_t kMostStrandPairs = kLowLimits ? 1 << 12 : 1 << 18;

inline int64_t longest_strand(const ChainScores& scores) {
  const int64_t n_pairs = int64_t{scores.n_labels} * scores.n_labels;
  return scores.edges == nullptr ? kLongestStrand
                                 : std::min(kLongestStrand, kMostStrandPairs / n_pairs);
}

// What shares the lanes: whole sequences, or pieces of sequences.
template <int kWidth>
struct StrandGroup {
  int n_strands = 0;
  int64_t longest = 0;  // the largest length
  int64_t sequences[kWidth] = {};
  int64_t begins[kWidth] = {};   // first position of each in the batch
  int64_t lengths[kWidth] = {};  // 0 for lanes that are not used
  // For pieces, (K,): alpha at the position before, null where a sequence begins; and beta at the
  // last position, null where it ends.
  const double* starts[kWidth] = {};
  const double* ends[kWidth] = {};

  void add(int64_t sequence, int64_t begin, int64_t length, const double* start = nullptr,
           const double* end = nullptr) {
    const int lane = n_strands++;
    sequences[lane] = sequence;
    begins[lane] = begin;
    lengths[lane] = length;
    starts[lane] = start;
    ends[lane] = end;
    longest = std::max(longest, length);
  }
};

// Groups of sequences of similar length, the longest first, and chunks of groups, one task each.
// Everything depends only on the data, so that sums over a chunk, added in chunk order, are the
// same for any number of threads.
template <int kWidth>
class StrandGroups {
 public:
  using Group = StrandGroup<kWidth>;

  explicit StrandGroups(const ChainScores& scores) {
    std::vector<int64_t> order;
    const int64_t most = longest_strand(scores);
    for (int64_t s = 0; s < scores.n_sequences; ++s)
      (scores.length(s) <= most ? order : others).push_back(s);
    const auto longer = [&](int64_t a, int64_t b) { return scores.length(a) > scores.length(b); };
    if (!std::is_sorted(order.begin(), order.end(), longer))
      std::stable_sort(order.begin(), order.end(), longer);
    const int64_t target = std::max(scores.offsets[scores.n_sequences] / kMaxChunks + 1,
                                    kMinChunkWork / scores.n_labels + 1);
    int64_t waiting = 0;
    for (size_t first = 0; first < order.size(); first += kWidth) {
      Group group;
      for (size_t i = first; i < std::min(first + kWidth, order.size()); ++i) {
        group.add(order[i], scores.offsets[order[i]], scores.length(order[i]));
        waiting += scores.length(order[i]);
      }
      groups_.push_back(group);
      if (waiting < target && first + kWidth < order.size()) continue;
      bounds_.push_back(groups_.size());
      waiting = 0;
    }
  }

  size_t n_chunks() const { return bounds_.size() - 1; }

  std::vector<int64_t> others;  // sequences that are too long for a lane

  // Calls task(worker, chunk, group) for every group. Each thread has its own worker, to which
  // make_worker() returns a pointer.
  template <class MakeWorker, class Task>
  void for_each(int n_threads, Stop& stop, MakeWorker make_worker, Task task) const {
    const auto make_task = [&] {
      return [&, worker = make_worker()](int64_t chunk) {
        for (size_t g = bounds_[chunk]; g < bounds_[chunk + 1]; ++g)
          task(*worker, chunk, groups_[g]);
      };
    };
    parallel_for_each_thread(static_cast<int64_t>(n_chunks()), n_threads, stop, make_task);
  }

 private:
  static constexpr int64_t kMaxChunks = 64;
  static constexpr int64_t kMinChunkWork = 1 << 12;  // positions x labels

  std::vector<Group> groups_;
  std::vector<size_t> bounds_{0};  // (n_chunks + 1,) first group of each chunk, then their number
};

// Rows of numbers of four lanes, of `counts` numbers each.
template <class Number>
struct LaneRows {
  Number* rows[kLanes];
  int64_t counts[kLanes];

  // Numbers that all lanes have.
  int64_t shared() const { return *std::min_element(counts, counts + kLanes); }
};

// The rows of four lanes of a group, from lane `first` on, in a table (N, n_columns).
template <int kWidth, class Number>
LaneRows<Number> lane_rows(const StrandGroup<kWidth>& group, int first, Number* table,
                           int64_t n_columns) {
  LaneRows<Number> rows;
  for (int l = 0; l < kLanes; ++l) {
    rows.rows[l] = table + group.begins[first + l] * n_columns;
    rows.counts[l] = group.lengths[first + l] * n_columns;
  }
  return rows;
}

// out[i] = number i of each lane, 0 past the end of a lane. out: (n,)
void rows_to_lanes(const LaneRows<const double>& in, Packed* out, int64_t n);
// The reverse; lanes of 0 numbers are not written.
void lanes_to_rows(const Packed* in, const LaneRows<double>& out);

}  // namespace hedgerow
