// Counting the examples of a large node for all offsets of a window at once.
#pragma once

#include <cstdint>
#include <vector>

#include "crew.hpp"
#include "parallel.hpp"
#include "trees/data.hpp"
#include "trees/histogram.hpp"

namespace hedgerow {

// The values of a row are seen at offset o by the example o positions before it. So the sums of a
// bin at all offsets grow by the amounts of consecutive examples, the neighbours of the row: by one
// addition of vectors, instead of one addition of numbers for each offset. All rows are read, even
// those without examples nearby, which is worthwhile if the node has many examples.
template <class AnySum>
class WindowCounter {
 public:
  WindowCounter(const TreeData& data, Crew& crew, Stop& stop);

  // Whether to count examples in this way is less work than to count one after another. It is for
  // windows without ancestors: the descendants of a row are not looked up.
  bool suits(int64_t n_examples) const;

  // Takes the examples to count, and fills `outside`, (n_offsets,), with the sums of those whose
  // window ends before an offset.
  void read(const NodeExamples& examples, std::vector<AnySum>& outside);
  // Writes the sums of full features, (n_full_bins,).
  void count_full(const std::vector<AnySum>& outside, std::vector<AnySum>& sums);
  // Adds the sums of sparse columns to `slots`, (n_offsets, n_slots), of all but the filler.
  void count_sparse(std::vector<AnySum>& slots);

 private:
  // Neighbours that are added at once: the first of them comes `first` places after the first of
  // all.
  struct Lanes {
    int first;
    int n;
    int n_padded;  // 4, 8, 12 or 16
  };
  // The rows of a sequence that has examples.
  struct Rows {
    int64_t begin, end;
    const AnySum* amounts;  // of the neighbours of the first row
  };

  // The number of the offset that a lane is for, counted from the first.
  int offset_of(const Lanes& lanes, int lane) const {
    return data_.n_offsets() - 1 - lanes.first - lane;
  }
  void read_sequences(const NodeExamples& examples, int64_t begin, int64_t end);
  void add_outside(const Rows& rows, std::vector<AnySum>& outside) const;

  const TreeData& data_;
  Crew& crew_;
  Stop& stop_;
  std::vector<Lanes> lanes_;
  std::vector<int32_t> full_columns_;
  int64_t gap_;                  // zeros before and after the amounts of a sequence
  std::vector<AnySum> amounts_;  // of the examples by position, zero where there are none
  std::vector<uint8_t> used_;    // by sequence, whether it has examples
  std::vector<Rows> rows_;
};

}  // namespace hedgerow
