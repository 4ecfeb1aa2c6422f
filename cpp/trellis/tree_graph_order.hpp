// The nodes of some tree-shaped sequences in an order in which messages can be passed.
//
// Nodes are numbered breadth first: all roots, then their children, and so on. A level, the nodes
// of equal depth, is a range of numbers, and so are the children of a node; nodes of a level do not
// depend on each other. Upwards levels are taken from the last to the first, downwards the other
// way round. Neither long paths nor many children make it slower than linear.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace hedgerow {

struct GraphOrder {
  GraphOrder() = default;
  // Of one sequence. See build().
  GraphOrder(const int64_t* offsets, const int32_t* parent_places, int64_t sequence) {
    build(offsets, parent_places, &sequence, 1);
  }

  // The nodes of some sequences together. offsets: (S+1,) where all sequences begin and end;
  // parent_places: (N,) place of the parent within the sequence, -1 for a root. Throws
  // std::invalid_argument if these are not forests.
  void build(const int64_t* offsets, const int32_t* parent_places, const int64_t* chosen,
             int64_t n_chosen) {
    positions.clear(), parents.clear(), sequences.clear(), levels.assign(1, 0);
    child_begins_.clear(), listed_.clear();
    std::vector<int64_t> bases(n_chosen + 1, 0);  // first local place of each sequence
    for (int64_t i = 0; i < n_chosen; ++i)
      bases[i + 1] = bases[i] + offsets[chosen[i] + 1] - offsets[chosen[i]];
    list_children(offsets, parent_places, chosen, bases);
    // Each node in turn appends its children: the places of nodes are those of listed_.
    std::vector<int64_t> places(listed_.begin(), listed_.begin() + n_roots_);
    places.reserve(bases.back());
    parents.assign(n_roots_, -1);
    first_children.clear();
    for (size_t level_end = n_roots_, i = 0; i < places.size(); ++i) {
      if (i == level_end) levels.push_back(i), level_end = places.size();
      first_children.push_back(places.size());
      for (int64_t c = child_begins_[places[i]]; c < child_begins_[places[i] + 1]; ++c) {
        places.push_back(listed_[c]);
        parents.push_back(i);
      }
    }
    first_children.push_back(places.size());
    if (!places.empty()) levels.push_back(places.size());
    find_positions(offsets, chosen, bases, places);
  }

  int64_t size() const { return static_cast<int64_t>(positions.size()); }
  int64_t n_levels() const { return static_cast<int64_t>(levels.size()) - 1; }
  int64_t n_children(int64_t node) const { return first_children[node + 1] - first_children[node]; }

  std::vector<int64_t> positions;       // (n,) of each node among all N
  std::vector<int64_t> parents;         // (n,) number of the parent; -1 for a root
  std::vector<int64_t> first_children;  // (n+1,) the children of i: first_children[i] to [i + 1]
  std::vector<int64_t> sequences;       // (n,) which of the chosen sequences a node is in
  std::vector<int64_t> levels;          // (L+1,) first node of each level, then n

 private:
  // Local places of the roots, then of the children of each place in turn.
  void list_children(const int64_t* offsets, const int32_t* parent_places, const int64_t* chosen,
                     const std::vector<int64_t>& bases) {
    const int64_t n = bases.back();
    child_begins_.assign(n + 2, 0);
    const auto for_each = [&](auto visit) {
      for (size_t i = 0; i + 1 < bases.size(); ++i)
        for (int64_t t = 0; t < bases[i + 1] - bases[i]; ++t) {
          const int64_t parent = parent_places[offsets[chosen[i]] + t];
          if (parent < -1 || parent >= bases[i + 1] - bases[i] || parent == t)
            throw std::invalid_argument(
                "position " + std::to_string(t) + " of sequence " + std::to_string(chosen[i]) +
                " has the parent " + std::to_string(parent) +
                "; expected another position of its sequence, or -1 for a root");
          visit(bases[i] + t, parent < 0 ? -1 : bases[i] + parent);
        }
    };
    // A counting sort by parent, roots first.
    for_each([&](int64_t, int64_t parent) { ++child_begins_[parent + 1]; });
    n_roots_ = child_begins_[0];
    for (int64_t p = 1; p <= n; ++p) child_begins_[p] += child_begins_[p - 1];
    listed_.resize(n);
    for (int64_t p = n; p > 0; --p) child_begins_[p] = child_begins_[p - 1];
    child_begins_[0] = 0;
    for_each([&](int64_t place, int64_t parent) { listed_[child_begins_[parent + 1]++] = place; });
    // Now child_begins_[p + 1] is where the children of p end, and [p] where they begin.
    child_begins_.resize(n + 1);
  }

  void find_positions(const int64_t* offsets, const int64_t* chosen,
                      const std::vector<int64_t>& bases, const std::vector<int64_t>& places) {
    if (static_cast<int64_t>(places.size()) != bases.back())
      throw std::invalid_argument(
          "the parents of a sequence go around in a circle; expected trees, each with a root");
    std::vector<int64_t> owners(places.size());
    for (size_t i = 0; i + 1 < bases.size(); ++i)
      for (int64_t p = bases[i]; p < bases[i + 1]; ++p) owners[p] = static_cast<int64_t>(i);
    positions.resize(places.size());
    sequences.resize(places.size());
    for (size_t i = 0; i < places.size(); ++i) {
      sequences[i] = owners[places[i]];
      positions[i] = offsets[chosen[sequences[i]]] + places[i] - bases[sequences[i]];
    }
  }

  int64_t n_roots_ = 0;
  std::vector<int64_t> child_begins_;  // (n+1,) where the children of each local place begin
  std::vector<int64_t> listed_;        // (n,) local places of roots, then children by parent
};

}  // namespace hedgerow
