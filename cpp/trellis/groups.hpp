// A batch's sequences in groups that go through an automaton side by side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "large_pages.hpp"
#include "parallel.hpp"
#include "trellis/lockstep.hpp"

namespace hedgerow {

// Groups of sequences of similar length, the longest first, and chunks of groups, one task each.
// All depends on the data alone, so that sums over a chunk, added in chunk order, are the same for
// any number of threads.
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
    // Every chunk may have a table of sums over the arcs: fewer chunks where it is long.
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

  // task(worker, chunk, first group, end of groups) for every chunk. Each thread has one worker,
  // made by make_worker(), for the sake of its memory.
  template <class MakeWorker, class Task>
  void for_each_chunk(int n_threads, Stop& stop, MakeWorker make_worker, Task task) const {
    const auto make_task = [&] {
      return [&, worker = make_worker()](int64_t chunk) {
        task(*worker, chunk, groups.data() + bounds[chunk], groups.data() + bounds[chunk + 1]);
      };
    };
    parallel_for_each_thread(static_cast<int64_t>(n_chunks()), n_threads, stop, make_task);
  }

  std::vector<Group> groups;
  std::vector<size_t> bounds{0};
};

// Runs a group with fast(group), which gives false when it refuses some lanes; these go to
// slow(group) in the end.
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

// Writes what a group's position has for each term, (E,) in the order of to_cells, as a sum for
// each arc and for each label pair. arcs: (N, A), pairs: (N, K, K); either may be null
inline void copy_terms(const AutomatonScores& scores, const Group& group, int64_t t,
                       const Packed* values, double* arcs, double* pairs) {
  const Automaton& automaton = scores.automaton;
  const int64_t n_pairs = int64_t{automaton.n_labels()} * automaton.n_labels();
  for (int l = 0; l < kLanes; ++l) {
    if (!group.live[l] || t >= group.lengths[l]) continue;
    const int64_t position = scores.offsets[group.sequences[l]] + t;
    double* by_arc = arcs ? arcs + position * automaton.n_arcs() : nullptr;
    double* by_pair = pairs ? pairs + position * n_pairs : nullptr;
    if (by_arc) std::fill(by_arc, by_arc + automaton.n_arcs(), 0.0);
    if (by_pair) std::fill(by_pair, by_pair + n_pairs, 0.0);
    for (int e = 0; e < automaton.n_terms(); ++e) {
      const int32_t arc = automaton.to_cells.arcs[e];
      if (by_arc) by_arc[arc] += values[e].values[l];
      if (by_pair && t > 0 && automaton.pair(arc) < n_pairs)
        by_pair[automaton.pair(arc)] += values[e].values[l];
    }
  }
}

// Rows of numbers, one for each position of a group. A long group keeps the rows of one block of
// positions at a time, and one row at each boundary of blocks, from which a block is made again.
class BlockRows {
 public:
  explicit BlockRows(int row_size) : row_size_(row_size) {}

  void open(int64_t n_positions, bool keep_all = false) {
    block_size_ = std::max<int64_t>(n_positions, 1);
    if (!keep_all && n_positions * row_size_ > kMaxNumbers)
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
  int64_t current() const { return current_; }
  void set_current(int64_t block) { current_ = block; }

  // Of a position in the current block.
  Packed* row(int64_t t) { return block_.get() + t % block_size_ * row_size_; }
  // Between block - 1 and block.
  Packed* boundary(int64_t block) { return boundaries_.get() + block * row_size_; }

 private:
  static constexpr int64_t kMaxNumbers = 1 << 21;  // 64 MiB

  // Memory that nobody has touched costs nothing until it is needed.
  static void grow(std::unique_ptr<Packed[]>& numbers, int64_t& capacity, int64_t size) {
    if (size <= capacity) return;
    numbers.reset();
    numbers = std::make_unique_for_overwrite<Packed[]>(size);
    prefer_large_pages(numbers.get(), size * sizeof(Packed));
    capacity = size;
  }

  int64_t row_size_;
  int64_t n_positions_ = 0;
  int64_t block_size_ = 1;
  int64_t n_blocks_ = 0;
  int64_t current_ = -1;
  int64_t block_capacity_ = 0;
  int64_t boundary_capacity_ = 0;
  std::unique_ptr<Packed[]> block_;       // (block_size, row_size)
  std::unique_ptr<Packed[]> boundaries_;  // (n_blocks + 1, row_size)
};

}  // namespace hedgerow
