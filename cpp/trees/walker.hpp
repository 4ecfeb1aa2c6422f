// The walker: trees laid out for walking.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "trees/data.hpp"
#include "trees/tree_arrays.hpp"

namespace hedgerow {

// What to add to, and how much each tree adds.
struct ScoreTable {
  int n_outputs;
  const double* tree_weights;  // (T,)
  const double* scores;        // (N, n_outputs)
  double* out;                 // (N, n_outputs); may be the same as scores
};

// Immutable; any number of threads may walk it.
class Walker {
 public:
  // `trees` have been checked, and outlive the walker. Columns from n_dense on are attributes.
  Walker(const TreeArrays& trees, int32_t n_dense);

  int32_t n_dense() const { return n_dense_; }

  // See Forest::add_scores. The window is that of the trees, whatever `sequences` say of it.
  void add_scores(const BinTable& bins, const Windows& sequences, const ScoreTable& table,
                  int n_threads, Stop& stop) const;

 private:
  // Leaves lead to themselves, so that every path of a tree can be walked to the same length.
  // A bin goes left if bin - shift, as a byte, is at most `limit`: with a shift of 1 missing values
  // wrap around and go right.
  struct Node {
    uint32_t feature;
    uint8_t limit;
    uint8_t shift;  // 2 for a categorical split
    uint16_t left;
  };
  struct Tree {
    int64_t first;  // node
    int32_t depth;
    int32_t output;
  };
  // An attribute that is asked for, and where in the window.
  struct Feature {
    int32_t attribute;
    int32_t offset;
  };
  // The numbers of the features at one offset by their attributes: a hash table with linear
  // probing, as most attributes of a large vocabulary are not asked for.
  class FeatureNumbers {
   public:
    // The number of an attribute's feature, -1 if there is none.
    int32_t find(int32_t attribute) const {
      if (slots_.empty()) return -1;
      for (size_t place = home(attribute);; place = (place + 1) & (slots_.size() - 1)) {
        const Slot& slot = slots_[place];
        if (slot.attribute == attribute || slot.attribute < 0) return slot.number;
      }
    }
    // `attribute` has no number yet.
    void add(int32_t attribute, int32_t number);
    bool empty() const { return slots_.empty(); }

   private:
    struct Slot {
      int32_t attribute = -1;
      int32_t number = -1;
    };
    size_t home(int32_t attribute) const {
      return (static_cast<uint32_t>(attribute) * 2654435769u) >> shift_;
    }
    std::vector<Slot> slots_;  // a power of two, a quarter of it in use at most
    size_t n_used_ = 0;
    int shift_ = 32;
  };
  class Walk;

  void measure_window();
  void number_attributes();
  Node pack_node(int64_t node, int64_t first) const;
  int n_offsets() const { return before_ + after_ + 1; }
  const FeatureNumbers& numbers_at(int32_t offset) const { return numbers_[offset + before_]; }

  const TreeArrays& arrays_;
  int32_t n_dense_;
  int before_ = 0, after_ = 0;
  bool has_sets_ = false;
  std::vector<Tree> trees_;
  std::vector<Node> nodes_;
  // Features are the bytes of all dense columns in the window, then the attributes in use.
  std::vector<Feature> attributes_;
  std::vector<FeatureNumbers> numbers_;  // (n_offsets,)
};

}  // namespace hedgerow
