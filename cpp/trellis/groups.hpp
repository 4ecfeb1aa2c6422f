// The sequences of a batch in groups of kLanes, one per lane of Lockstep.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "large_pages.hpp"
#include "parallel.hpp"
#include "simd.hpp"
#include "trellis/lockstep.hpp"
#include "trellis/strands.hpp"

namespace hedgerow {

// Groups of sequences of similar length, the longest first, and chunks of groups, one task each.
// Everything depends only on the data, so that sums over a chunk, added in chunk order, are the
// same for any number of threads.
struct Groups {
  // wanted: (S,) 0 for the sequences to leave out; null: none
  explicit Groups(const AutomatonScores& scores, const uint8_t* wanted = nullptr) {
    std::vector<int64_t> order;
    for (int64_t s = 0; s < scores.n_sequences; ++s)
      if (wanted == nullptr || wanted[s] != 0) order.push_back(s);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return scores.length(a) > scores.length(b); });
    int64_t work = 0;
    for (size_t first = 0; first < order.size(); first += kLanes) {
      Group group{};
      for (size_t l = 0; l < kLanes && first + l < order.size(); ++l) {
        group.sequences[l] = order[first + l];
        group.lengths[l] = scores.length(order[first + l]);
        group.live[l] = true;
      }
      group.longest = group.lengths[0];
      work += group.longest;
      groups.push_back(group);
    }
    // Each chunk may have a table (A,) of sums over its positions: fewer chunks if A is large.
    const int64_t n_chunks =
        std::clamp<int64_t>((int64_t{1} << 20) / scores.automaton.n_arcs(), 4, 64);
    int64_t waiting = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      waiting += groups[g].longest;
      if (waiting * n_chunks < work && g + 1 < groups.size()) continue;
      bounds.push_back(g + 1);
      waiting = 0;
    }
  }

  size_t n_chunks() const { return bounds.size() - 1; }

  // Calls task(worker, chunk, group) for every group. Each thread has its own worker, to which
  // make_worker() returns a pointer, so that scratch memory is allocated once per thread.
  template <class MakeWorker, class Task>
  void for_each(int n_threads, Stop& stop, MakeWorker make_worker, Task task) const {
    const auto make_task = [&] {
      return [&, worker = make_worker()](int64_t chunk) {
        for (size_t g = bounds[chunk]; g < bounds[chunk + 1]; ++g) task(*worker, chunk, groups[g]);
      };
    };
    parallel_for_each_thread(static_cast<int64_t>(n_chunks()), n_threads, stop, make_task);
  }

  std::vector<Group> groups;
  std::vector<size_t> bounds{0};  // (n_chunks + 1,) first group of each chunk, then their number
};

// Runs a group with fast(group). As long as that returns false, the lanes for which refused(lane)
// holds are removed, and fast runs again with the others. Finally slow(group) runs with the removed
// lanes, if there are any.
template <class Fast, class Refused, class Slow>
void run_group(const Group& group, Fast fast, Refused refused, Slow slow) {
  Group kept = group, left = group;
  std::fill(left.live, left.live + kLanes, false);
  const auto any = [](const Group& g) {
    return std::any_of(g.live, g.live + kLanes, std::identity{});
  };
  while (any(kept) && !fast(kept))
    for (int l = 0; l < kLanes; ++l)
      if (refused(l)) kept.live[l] = false, left.live[l] = true;
  if (any(left)) slow(left);
}

// Writes the numbers (n,) of each lane to its position t of out (N, n).
inline void copy_lanes(const AutomatonScores& scores, const Group& group, int64_t t,
                       const Numbers& numbers, double* out) {
  const auto n = static_cast<int64_t>(numbers.size());
  LaneRows<double> rows{};
  for (int l = 0; l < kLanes; ++l) {
    if (!group.live[l] || t >= group.lengths[l]) continue;
    rows.rows[l] = out + (scores.offsets[group.sequences[l]] + t) * n;
    rows.counts[l] = n;
  }
  lanes_to_rows(numbers.data(), rows);
}

// Sums values (E,), one per term in the order of to_cells, over the terms of each arc and of each
// edge, and writes the sums of each lane to its position t. arcs: (N, A), pairs: (N, M), see
// AutomatonScores::edges; either may be null. sums: scratch memory
inline void copy_terms(const AutomatonScores& scores, const Group& group, int64_t t,
                       const Numbers& values, Numbers& sums, double* arcs, double* pairs) {
  const auto copy = [&](const std::vector<int32_t>& places, int64_t n, double* out) {
    sums.assign(n + 1, Packed(broadcast(0.0)));  // the last sum is that of terms without a place
    add_by_place(values.data(), places, sums.data());
    sums.pop_back();
    copy_lanes(scores, group, t, sums, out);
  };
  const TermTable& table = scores.automaton.to_cells;
  if (arcs) copy(table.arcs, scores.automaton.n_arcs(), arcs);
  if (!pairs) return;
  if (t > 0) return copy(scores.by_arc ? table.arcs : table.pairs, scores.n_edges(), pairs);
  sums.assign(scores.n_edges(), Packed(broadcast(0.0)));
  copy_lanes(scores, group, t, sums, pairs);
}

// Rows of numbers, one per position of a group. If they would take too much memory, only the rows
// of one block of positions are kept, and one row at each boundary between blocks, from which the
// caller recomputes the rows of a block. The block size is about 2 sqrt(n_positions) at most.
class BlockRows {
 public:
  static constexpr int64_t kMaxNumbers = kLowLimits ? 1 << 17 : 1 << 21;  // the latter: 64 MiB

  // n_beside: how many other numbers the caller keeps for each position of a block
  explicit BlockRows(int row_size, int64_t n_beside = 0)
      : row_size_(row_size), n_beside_(n_beside) {}

  // keep_all: a single block in any case
  void open(int64_t n_positions, bool keep_all = false) {
    block_size_ = std::max<int64_t>(n_positions, 1);
    if (!keep_all && n_positions * (row_size_ + n_beside_) > kMaxNumbers)
      while (block_size_ * block_size_ > 4 * n_positions) block_size_ = (block_size_ + 1) / 2;
    n_blocks_ = (n_positions + block_size_ - 1) / block_size_;
    n_positions_ = n_positions;
    grow(block_, block_capacity_, block_size_ * row_size_);
    grow(boundaries_, boundary_capacity_, (n_blocks_ + 1) * row_size_);
    current_ = -1;
  }

  int64_t row_size() const { return row_size_; }
  int64_t n_blocks() const { return n_blocks_; }
  int64_t block_of(int64_t t) const { return t / block_size_; }
  int64_t begin(int64_t block) const { return block * block_size_; }
  int64_t end(int64_t block) const { return std::min(begin(block + 1), n_positions_); }
  // The block whose rows are kept, -1 for none yet.
  int64_t current() const { return current_; }
  void set_current(int64_t block) { current_ = block; }

  // (row_size,) row of a position in the current block.
  Packed* row(int64_t t) { return block_.get() + t % block_size_ * row_size_; }
  // (row_size,) row at the boundary between block - 1 and block.
  Packed* boundary(int64_t block) { return boundaries_.get() + block * row_size_; }

 private:
  // Leaves the memory uninitialised: pages that are never written take no memory.
  static void grow(std::unique_ptr<Packed[]>& numbers, int64_t& capacity, int64_t size) {
    if (size <= capacity) return;
    numbers.reset();
    numbers = std::make_unique_for_overwrite<Packed[]>(size);
    prefer_large_pages(numbers.get(), size * sizeof(Packed));
    capacity = size;
  }

  int64_t row_size_, n_beside_;
  int64_t n_positions_ = 0;
  int64_t block_size_ = 1;
  int64_t n_blocks_ = 0;
  int64_t current_ = -1;
  int64_t block_capacity_ = 0;
  int64_t boundary_capacity_ = 0;
  std::unique_ptr<Packed[]> block_;       // (block_size, row_size)
  std::unique_ptr<Packed[]> boundaries_;  // (n_blocks + 1, row_size)
};

// What forward-backward keeps of the forward pass for the backward pass: a row per position, in
// blocks, the factors of the labels in the current block, and of the edges, if there are any, and
// all norms.
class ForwardRows : public BlockRows {
 public:
  ForwardRows(int row_size, int64_t n_factors)
      : BlockRows(row_size, n_factors), n_factors_(n_factors) {}

  void open(int64_t n_positions, double norm_before) {
    BlockRows::open(n_positions);
    norms_.resize(n_positions + 1);
    norms_[0] = broadcast(norm_before);
  }

  // (n_factors,) factors of a position in the current block.
  Packed* factors(int64_t t) { return factors_.data() + (t - begin(current())) * n_factors_; }
  // norm_t, where norm(-1) is that before the first position.
  Packed& norm(int64_t t) { return norms_[t + 1]; }
  // The row of position t - 1, for a position t in the current block.
  const Packed* row_before(int64_t t) {
    return t == begin(current()) ? boundary(current()) : row(t - 1);
  }

  // Makes a block the current one: calls step(t), which fills in what is kept for position t, for
  // all of its positions, until one returns false. If it is the first time, the block's last row
  // becomes the boundary to the next.
  template <class Step>
  bool fill_block(int64_t block, bool first_time, Step step) {
    set_current(block);
    factors_.resize((end(block) - begin(block)) * n_factors_);
    for (int64_t t = begin(block); t < end(block); ++t)
      if (!step(t)) return false;
    if (first_time && block + 1 < n_blocks())
      std::copy(row(end(block) - 1), row(end(block) - 1) + row_size(), boundary(block + 1));
    return true;
  }

 private:
  int64_t n_factors_;
  Numbers factors_;  // (positions of the current block, n_factors)
  Numbers norms_;    // (T+1,)
};

}  // namespace hedgerow
