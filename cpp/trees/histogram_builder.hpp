// Counting examples into histograms.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "crew.hpp"
#include "parallel.hpp"
#include "trees/data.hpp"
#include "trees/histogram.hpp"
#include "trees/window_counter.hpp"

namespace hedgerow {

// Counts examples bin by bin. Idle threads help.
template <class AnySum>
class BinCounter {
 public:
  BinCounter(const TreeData& data, Crew& crew, Stop& stop);

  // Fills all sums except for those of contexts. The sums of a child need the slots of its parent.
  void fill(const NodeExamples& examples, const BinSums<AnySum>* of_parent,
            BinSums<AnySum>& histogram);

 private:
  void fill_full(const NodeExamples& examples, std::vector<AnySum>& sums);
  void fill_outside(const NodeExamples& examples, std::vector<AnySum>& outside) const;
  void fill_sparse(const NodeExamples& examples, std::vector<AnySum>& outside);
  void take_slots(std::vector<SlotSum<AnySum>>& out);
  void take_slots_of(const std::vector<SlotSum<AnySum>>& parent, std::vector<SlotSum<AnySum>>& out);

  const TreeData& data_;
  Crew& crew_;
  Stop& stop_;
  // (n_offsets * n_slots,), all zero between calls: the first is for this thread, the others are
  // for helpers
  std::vector<std::vector<AnySum>> slots_;
  WindowCounter<AnySum> windows_;
  std::vector<std::vector<AnySum>> apart_;  // (n_full_bins,) each: what helpers count
};

// Makes histograms; each thread has its own builder.
class HistogramBuilder {
 public:
  // is_wide: whether sums of examples may be beyond the range of a Sum
  HistogramBuilder(const TreeData& data, Crew& crew, Stop& stop, bool is_wide);

  // Counts the examples of a node. The slots are those that have examples, or for a child all those
  // of its parent, in order, so that the counts of several workers can be added up slot by slot.
  std::unique_ptr<Histogram> count(const NodeExamples& examples, const Histogram* of_parent);
  // Takes a histogram, or null, for reuse.
  void give_back(std::unique_ptr<Histogram> histogram);

 private:
  std::variant<BinCounter<Sum>, BinCounter<WideSum>> counter_;
  std::vector<std::unique_ptr<Histogram>> idle_;
};

}  // namespace hedgerow
