// The nodes of some tree-shaped sequences in an order in which messages can be passed.
//
// Nodes are numbered breadth first: all roots, then their children, and so on. A level, the nodes
// of equal depth, is a range of numbers, and so are the children of a node; nodes of a level do not
// depend on each other. Upwards, levels are processed from the last to the first; downwards, from
// the first to the last. The time is linear even with long paths or many children.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "simd.hpp"

namespace hedgerow {

[[noreturn]] inline void throw_bad_parent(int64_t parent, int64_t place, int64_t sequence) {
  throw std::invalid_argument("position " + std::to_string(place) + " of sequence " +
                              std::to_string(sequence) + " has the parent " +
                              std::to_string(parent) +
                              "; expected another position of its sequence, or -1 for a root");
}
[[noreturn]] inline void throw_circle() {
  throw std::invalid_argument(
      "the parents of a sequence form a cycle; expected trees, each with a root");
}
// Throws std::invalid_argument for a parent that is neither another place of the sequence nor -1.
HEDGEROW_INLINE void check_parent(int64_t parent, int64_t place, int64_t length, int64_t sequence) {
  if (parent < -1 || parent >= length || parent == place) throw_bad_parent(parent, place, sequence);
}

struct GraphOrder {
  GraphOrder() = default;
  // The nodes of one sequence, see build().
  GraphOrder(const int64_t* offsets, const int32_t* parent_places, int64_t sequence) {
    build(offsets, parent_places, &sequence, 1);
  }

  // The nodes of some sequences together. offsets: (S+1,) where all sequences begin and end;
  // parent_places: (N,) place of the parent within the sequence, -1 for a root. Throws
  // std::invalid_argument if these are not forests.
  void build(const int64_t* offsets, const int32_t* parent_places, const int64_t* chosen,
             int64_t n_chosen) {
    begins.assign(n_chosen + 1, 0), shifts_.resize(n_chosen);
    for (int64_t i = 0; i < n_chosen; ++i) {
      begins[i + 1] = begins[i] + offsets[chosen[i] + 1] - offsets[chosen[i]];
      shifts_[i] = offsets[chosen[i]] - begins[i];
    }
    list_children(offsets, parent_places, chosen);
    const int64_t n = begins.back();
    for (auto* numbers : {&positions, &parents, &sequences}) numbers->resize(n + kAtOnce);
    first_children.resize(n + 1);
    levels.assign(1, 0);
    // Each node in turn appends its children. Positions are local places until all are there.
    int64_t n_placed = 0;
    for (int64_t sequence = 0; n_placed < n_roots_; ++n_placed) {
      while (listed_[n_placed] >= begins[sequence + 1]) ++sequence;
      positions[n_placed] = listed_[n_placed];
      parents[n_placed] = -1;
      sequences[n_placed] = sequence;
    }
    for (int64_t i = 0, level_end = n_placed; i < n_placed; ++i) {
      if (i == level_end) levels.push_back(i), level_end = n_placed;
      first_children[i] = n_placed;
      const int64_t place = positions[i], sequence = sequences[i];
      const int64_t n_children = child_begins_[place + 1] - child_begins_[place];
      const int32_t* children = listed_.data() + child_begins_[place];
      // Always kAtOnce are written, even if there are fewer: their number is hard to predict.
      for (int64_t c = 0; c == 0 || c < n_children; c += kAtOnce)
        for (int64_t at_once = c; at_once < c + kAtOnce; ++at_once) {
          positions[n_placed + at_once] = children[at_once];
          parents[n_placed + at_once] = i;
          sequences[n_placed + at_once] = sequence;
        }
      n_placed += n_children;
      positions[i] = place + shifts_[sequence];
    }
    if (n_placed != n) throw_circle();
    for (auto* numbers : {&positions, &parents, &sequences}) numbers->resize(n);
    first_children[n] = n;
    if (n > 0) levels.push_back(n);
    nodes.resize(n);
    for (int64_t i = 0; i < n; ++i) nodes[place(i)] = i;
  }

  int64_t size() const { return static_cast<int64_t>(positions.size()); }
  int64_t n_levels() const { return static_cast<int64_t>(levels.size()) - 1; }
  int64_t n_children(int64_t node) const { return first_children[node + 1] - first_children[node]; }

  // The place of a node if the positions of the chosen sequences are concatenated.
  int64_t place(int64_t node) const { return positions[node] - shifts_[sequences[node]]; }

  std::vector<int64_t> begins;          // (n_chosen + 1,) first place of each sequence, then n
  std::vector<int64_t> positions;       // (n,) position of each node, among all N
  std::vector<int64_t> parents;         // (n,) number of the parent; -1 for a root
  std::vector<int64_t> first_children;  // (n+1,) the children of i: first_children[i] to [i + 1]
  std::vector<int64_t> sequences;       // (n,) which of the chosen sequences a node is in
  std::vector<int64_t> nodes;           // (n,) node at each place
  std::vector<int64_t> levels;          // (L+1,) first node of each level, then n

 private:
  static constexpr int64_t kAtOnce = 2;

  // Local places of the roots, then of the children of each place in turn.
  void list_children(const int64_t* offsets, const int32_t* parent_places, const int64_t* chosen) {
    const int64_t n = begins.back();
    child_begins_.assign(n + 2, 0);
    listed_.resize(n + kAtOnce);
    const auto for_each = [&](auto visit) {
      for (size_t i = 0; i + 1 < begins.size(); ++i)
        for (int64_t t = 0; t < begins[i + 1] - begins[i]; ++t) {
          const int64_t parent = parent_places[offsets[chosen[i]] + t];
          check_parent(parent, t, begins[i + 1] - begins[i], chosen[i]);
          visit(begins[i] + t, parent < 0 ? -1 : begins[i] + parent);
        }
    };
    // A counting sort by parent, roots first.
    for_each([&](int64_t, int64_t parent) { ++child_begins_[parent + 2]; });
    n_roots_ = child_begins_[1];
    for (int64_t p = 2; p <= n + 1; ++p) child_begins_[p] += child_begins_[p - 1];
    for_each([&](int64_t place, int64_t parent) {
      listed_[child_begins_[parent + 1]++] = static_cast<int32_t>(place);
    });
    // Now child_begins_[p + 1] is where the children of p end, and [p] where they begin.
    child_begins_.resize(n + 1);
  }

  int64_t n_roots_ = 0;
  std::vector<int64_t> shifts_;        // (n_chosen,) from places to positions
  std::vector<int32_t> child_begins_;  // (n+1,) where the children of each local place begin
  std::vector<int32_t> listed_;        // (n,) local places of roots, then children by parent
};

}  // namespace hedgerow
