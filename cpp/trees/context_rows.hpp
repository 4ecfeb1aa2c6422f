// Examples of one tree that may split on previous labels, while it grows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "crew.hpp"
#include "memory_pool.hpp"
#include "trees/context_examples.hpp"

namespace hedgerow {

// The examples of one tree in whole units, for sets of contexts, which are ascending numbers.
class ContextRows {
 public:
  ContextRows(const ContextExamples& examples, int output, const std::shared_ptr<MemoryPool>& pool,
              int64_t n_positions, Crew& crew);

  const Units& units() const { return units_; }
  int64_t n_rows() const { return std::ssize(rows_); }
  int n_contexts() const { return n_contexts_; }
  int n_lags() const { return contexts_.n_lags(); }
  int n_labels() const { return contexts_.n_outputs(); }
  bool has_probabilities() const { return has_probabilities_; }
  int32_t position(int64_t row) const { return rows_[row].position; }

  // The sum of a position over some contexts.
  Sum sum(int32_t position, std::span<const int32_t> contexts) const {
    const int64_t row = row_of_[position];
    if (std::ssize(contexts) == n_contexts_) return totals_[row];
    Sum total;
    const Sum* sums = sums_.data() + row * n_contexts_;
    for (const int32_t c : contexts) total += sums[c];
    return total;
  }
  // The sums of a position by context, (n_contexts,).
  const Sum* at(int32_t position) const {
    return sums_.data() + static_cast<int64_t>(row_of_[position]) * n_contexts_;
  }
  // Adds the sums of positions in each of some contexts to by_context (n_contexts,).
  template <class AnySum>
  void add_to(std::span<const int32_t> positions, std::span<const int32_t> contexts,
              AnySum* by_context) const;
  // joint[t] is the curvature of position t where a step is the same in some contexts: if their
  // probabilities are p_1 ... p_n and p is their sum, it is the position's curvature times
  // p (1 - p), which is less than the sum of their own curvatures.
  struct JointOf {
    std::span<const int32_t> contexts;
    float* joint;
  };
  // Fills those of some positions, for several sets of contexts at a time.
  void fill_joint(std::span<const int32_t> positions, std::span<const JointOf> sets) const;
  // Adds up the sums of contexts by the label that is lag + 1 positions before: bins (K + 1,).
  template <class AnySum>
  void fill_bins(std::span<const int32_t> contexts, const AnySum* by_context, int lag,
                 std::span<AnySum> bins) const {
    std::fill(bins.begin(), bins.end(), AnySum{});
    for (const int32_t c : contexts) bins[contexts_.label(output_, c, lag)] += by_context[c];
  }
  // Of some contexts, those whose label at a lag goes left by `is_left` (256,), or if not `wanted`,
  // those whose label does not.
  std::vector<int32_t> select(std::span<const int32_t> contexts, int lag, const uint8_t* is_left,
                              bool wanted) const;

 private:
  // That of all contexts; of few; and where there are many.
  float joint_curvature(int32_t position) const {
    const ContextRow& row = rows_[row_of_[position]];
    return row.curvature * (row.probability * (1.0f - row.probability));
  }
  float joint_curvature(int32_t position, std::span<const int32_t> contexts) const;
  void fill_joint_of_many(std::span<const int32_t> positions, std::span<const JointOf> sets) const;
  const float* probabilities_at(int32_t position) const;

  const Contexts& contexts_;
  int output_;
  int n_contexts_;
  bool has_probabilities_, are_by_position_;
  std::span<const ContextRow> rows_;
  std::span<const float> probabilities_;  // see ContextExamples
  PooledArray<int32_t> row_of_;           // (N,) by position; not filled where there is none
  Units units_;
  PooledArray<Sum> sums_;    // (n_rows, n_contexts); empty where there is no gradient
  PooledArray<Sum> totals_;  // (n_rows,) of all contexts
};

}  // namespace hedgerow
