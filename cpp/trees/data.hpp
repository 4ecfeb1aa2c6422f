// Input of the tree learner: the bin of every column at every position.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "large_vector.hpp"
#include "parallel.hpp"
#include "trees/slot_bits.hpp"

namespace hedgerow {

// Bins of N positions. Bin 0 is a missing value, bins 1 .. n_bins[c] are the values of column c in
// order. Columns 0 .. n_dense - 1 have a byte at every position; columns from n_dense on are
// attributes, kept where they differ from their default.
struct BinTable {
  int64_t n_positions;
  int32_t n_dense;
  int32_t n_attributes;
  const uint8_t* dense;           // (N, n_dense)
  const int64_t* entry_offsets;   // (N + 1,), or null if there are no attributes
  const int32_t* attributes;      // attribute of each entry, ascending within a position
  const uint8_t* attribute_bins;  // bin of each entry
  const int32_t* n_bins;          // (n_dense + n_attributes,)
  const uint8_t* default_bins;    // (n_attributes,) bin where there is no entry
  const uint8_t* categorical;     // (n_dense + n_attributes,) 1 if the order of bins means nothing
  // The dense bins again, or null: (n_dense, column_stride), of which the first N are in use.
  const uint8_t* columns = nullptr;
  int64_t column_stride = 0;

  int32_t n_columns() const { return n_dense + n_attributes; }
  // Those of n positions from `first` on.
  BinTable from(int64_t first, int64_t n) const {
    BinTable part = *this;
    part.n_positions = n;
    part.dense += first * n_dense;
    if (columns != nullptr) part.columns += first;
    if (entry_offsets != nullptr) part.entry_offsets += first;
    return part;
  }
};

// Bounds of sequences, and parents of positions.
struct Sequences {
  int64_t n_sequences;
  const int64_t* offsets;  // (n_sequences + 1,)
  // (N,) the parent of each position, by its place in the sequence; -1 for a root. There are no
  // cycles. Null for chains, in which the parent is the position before.
  const int32_t* parents = nullptr;
};

// An offset says where a feature is read, relative to a position: that number of positions after
// it, or before it if negative; from kParent on at an ancestor: kParent is the parent, kParent + 1
// the grandparent.
constexpr int kParent = 256;
constexpr int kFarthest = 255;  // in every direction

inline bool is_offset(int32_t offset) {
  return offset >= -kFarthest && offset < kParent + kFarthest;
}

// The extent of the window around a position: to either side, and up the tree.
struct Reach {
  int before = 0;
  int after = 0;
  int ancestors = 0;

  // All offsets are numbered: those to either side from the first to the last, then ancestors.
  int n_offsets() const { return before + after + 1 + ancestors; }
  int offset(int number) const {
    const int first_ancestor = before + after + 1;
    return number < first_ancestor ? number - before : kParent + number - first_ancestor;
  }
  int number(int offset) const {
    return offset < kParent ? offset + before : before + after + 1 + offset - kParent;
  }
  void include(int offset) {
    before = std::max(before, -offset);
    if (offset < kParent)
      after = std::max(after, offset);
    else
      ancestors = std::max(ancestors, offset - kParent + 1);
  }
};

struct Windows : Sequences, Reach {};

// Which offsets of each position exist, as far as the window reaches: how many positions of its
// sequence are before and after it, and which ones are its ancestors.
class Room {
 public:
  Room(const Windows& windows, int64_t n_positions);

  bool holds(int64_t position, int offset) const {
    if (offset == 0) return true;
    if (offset < 0) return -offset <= before_[position];
    return offset < kParent ? offset <= after_[position] : ancestor(position, offset) >= 0;
  }
  bool holds_all(int64_t position) const {
    if (reach_.ancestors > 0) return false;
    return before_.empty() ||
           (before_[position] == reach_.before && after_[position] == reach_.after);
  }
  // The row at an offset of a position, which must exist.
  int64_t row(int64_t position, int offset) const {
    return offset < kParent ? position + offset : ancestor(position, offset);
  }

  // The bytes of all dense columns at all offsets of a position's window, in order of offset: read
  // in place if the window is whole, otherwise copied to `scratch`, with 0 where there is no
  // position.
  const uint8_t* window(const BinTable& bins, int64_t position, uint8_t* scratch) const {
    if (holds_all(position)) return bins.dense + (position - reach_.before) * bins.n_dense;
    fill_window(bins, position, scratch);
    return scratch;
  }
  void fill_window(const BinTable& bins, int64_t position, uint8_t* out) const;

 private:
  int32_t ancestor(int64_t position, int offset) const {
    return ancestors_[position * reach_.ancestors + offset - kParent];
  }
  void find_ancestors(const Windows& windows, int64_t n_positions);

  Reach reach_;
  std::vector<uint8_t> before_;  // (N,), empty without a window
  std::vector<uint8_t> after_;
  std::vector<int32_t> ancestors_;  // (N, ancestors) positions, -1 beyond the root
};

// Number of positions in each bin, on which the layout of columns depends.
struct BinCounts {
  int64_t n_positions;
  std::vector<int64_t> dense;    // (n_dense, 256)
  std::vector<int64_t> missing;  // (n_attributes,) entries of attributes in bin 0
};
BinCounts count_bins(const BinTable& bins, int n_threads, Stop& stop);

// A feature is a column seen at an offset: the bin of position t is the column's bin at t + offset,
// or at an ancestor of t, and missing where the sequence ends before that. Nothing is copied for a
// window.
//
// Columns come in two kinds. Full ones are read at every position. Sparse ones have one bin at most
// positions, their default; only the others are listed, as entries of a position, and what an
// example adds to the default bin is found by subtraction. Pixels, one-hot columns and attributes
// are sparse. Where windows have many entries among few slots, as pixels and bases of DNA do, there
// is a bit for every slot.
class TreeData {
 public:
  // counts: of the bins of all workers; null: of these alone
  TreeData(const BinTable& bins, const Windows& windows, const BinCounts* counts, int n_threads,
           Stop& stop);

  const BinTable& bins() const { return bins_; }
  const Windows& windows() const { return windows_; }
  const Room& room() const { return room_; }
  int n_offsets() const { return windows_.n_offsets(); }
  int64_t n_features() const { return static_cast<int64_t>(bins_.n_columns()) * n_offsets(); }

  // Columns after those of X are the previous labels, see grow_trees.
  bool is_label(int32_t column) const { return column >= bins_.n_columns(); }

  // The bins of a dense column, (N,).
  const uint8_t* column(int32_t column) const {
    return by_column_.data() + column * bins_.n_positions;
  }
  // The bytes of all dense columns at all offsets of a position whose window is whole.
  const uint8_t* first_of_window(int64_t position) const {
    return bins_.dense + (position - windows_.before) * bins_.n_dense;
  }
  // The bin of a column at a position.
  uint8_t bin_at(int64_t position, int32_t column) const;
  // The bin of a feature.
  uint8_t bin_at(int64_t position, int32_t column, int offset) const {
    return room_.holds(position, offset) ? bin_at(room_.row(position, offset), column) : uint8_t{0};
  }

  // Full columns: the sums of bins 0 .. n_bins of a feature begin at `base` in a histogram.
  struct FullFeature {
    int32_t base;
    int32_t column;
    int32_t offset;
  };
  const std::vector<FullFeature>& full_features() const { return full_features_; }
  // Full features that are counted together, since they are adjacent, have about the same number of
  // bins, and all their sums stay in the cache. The byte of feature i of a run is `where` + i bytes
  // after the first one of the window, its bin 0 at `base` + i * `stride` in a histogram.
  struct FullRun {
    int32_t where;
    int32_t base;
    int32_t stride;
    int32_t n_features;
  };
  const std::vector<FullRun>& full_runs() const { return full_runs_; }
  int64_t n_full_bins() const { return n_full_bins_; }

  // Sparse columns: every bin but the default has a slot, the bin of missing values only if the
  // column has any. The last slot belongs to no bin: it pads the entries of a position to a
  // multiple of entries_together().
  int entries_together() const { return entries_together_; }
  int32_t n_slots() const { return static_cast<int32_t>(slot_columns_.size()); }
  int32_t filler() const { return n_slots() - 1; }
  int32_t slot_column(int32_t slot) const { return slot_columns_[slot]; }
  bool has_sparse() const { return full_features_.size() < static_cast<size_t>(n_features()); }
  bool is_full(int32_t column) const { return is_full_[column]; }
  // Whether a column has missing values anywhere; and whether any full column has.
  bool may_miss(int32_t column) const { return may_miss_[column]; }
  bool full_may_miss() const { return full_may_miss_; }
  int32_t first_slot(int32_t column) const { return first_slots_[column]; }
  int32_t end_slot(int32_t column) const { return first_slots_[column + 1]; }
  uint8_t default_bin(int32_t column) const { return column_defaults_[column]; }
  uint8_t slot_bin(int32_t column, int32_t slot) const {
    const int32_t bin = slot - first_slots_[column] + first_bins_[column];
    const uint8_t usual = column_defaults_[column];
    return static_cast<uint8_t>(bin + (usual >= first_bins_[column] && bin >= usual ? 1 : 0));
  }
  const int64_t* entry_offsets() const { return entry_offsets_.data(); }
  const int32_t* entries() const { return entries_.data(); }
  // Bits of the slots at which the window of a position has entries, n_slots() for each offset:
  // this many words; 0 if there are only lists. Without a window, there are either bits or lists.
  int64_t n_slot_words() const { return n_slot_words_; }
  SlotBits slot_bits() const;
  // Average cost of counting an example.
  int64_t n_full_additions() const { return static_cast<int64_t>(full_features_.size()); }
  int64_t n_sparse_additions() const;

 private:
  void transpose(int n_threads, Stop& stop);
  void choose_sparse_columns(const BinCounts& counts);
  void choose_slot_bits(const std::vector<int64_t>& n_usual, int64_t n_positions);
  void choose_window_bits();
  int n_own_slots(int32_t column) const;
  void number_slots();
  void lay_out_full();
  std::vector<int32_t> find_sparse_dense() const;
  template <class List>
  void for_entries_at(int64_t position, const std::vector<int32_t>& sparse_dense, List list) const;
  void list_entries(int n_threads, Stop& stop);
  void mark_entries(int n_threads, Stop& stop);
  int32_t slot_of(int32_t column, uint8_t bin) const {
    const uint8_t usual = column_defaults_[column];
    return first_slots_[column] + bin - first_bins_[column] -
           (usual >= first_bins_[column] && bin > usual ? 1 : 0);
  }

  BinTable bins_;
  Windows windows_;
  Room room_;
  std::vector<uint8_t> is_full_;   // by column
  std::vector<uint8_t> may_miss_;  // by column
  bool full_may_miss_ = false;
  std::vector<uint8_t> column_defaults_;  // by column
  std::vector<uint8_t> first_bins_;       // by column: 0 if it has missing values, otherwise 1
  std::vector<int32_t> first_slots_;      // (n_columns + 1,)
  std::vector<int32_t> slot_columns_;     // -1 for the filler
  LargeVector<uint8_t> by_column_;        // (n_dense, N), the dense bins again
  std::vector<FullFeature> full_features_;
  std::vector<FullRun> full_runs_;
  int64_t n_full_bins_ = 0;
  LargeVector<int64_t> entry_offsets_;  // (N + 1,)
  LargeVector<int32_t> entries_;        // slots, ascending within a position
  int entries_together_ = 4;            // or 2, or 1
  int64_t n_slot_words_ = 0;
  int64_t bits_per_row_ = 0;
  LargeVector<uint64_t> slot_bits_;  // bits_per_row_ for every position, and kMoreWords more
};

}  // namespace hedgerow
