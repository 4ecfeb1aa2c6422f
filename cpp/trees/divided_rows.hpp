// Parts of the examples of one tree, which may split on previous labels and sends missing values
// both ways.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "memory_pool.hpp"
#include "trees/sum.hpp"

namespace hedgerow {

// The sums of a node's examples in each context, in whole units: those of ContextRows, or parts of
// them. A node whose examples are all whole has no DividedRows.
class DividedRows {
 public:
  DividedRows(const std::shared_ptr<MemoryPool>& pool, int64_t n_rows, int n_contexts,
              int64_t n_positions)
      : n_contexts_(n_contexts), row_of_(pool, n_positions), sums_(pool, n_rows * n_contexts) {}

  // The sums of a row by context, to be written; the row belongs to the position from now on.
  Sum* assign(int64_t row, int32_t position) {
    row_of_[position] = static_cast<int32_t>(row);
    return sums_.data() + row * n_contexts_;
  }
  // Those of a position.
  const Sum* at(int32_t position) const {
    return sums_.data() + static_cast<int64_t>(row_of_[position]) * n_contexts_;
  }
  // The sum of a position over some contexts.
  Sum sum(int32_t position, std::span<const int32_t> contexts) const {
    Sum total;
    const Sum* sums = at(position);
    for (const int32_t c : contexts) total += sums[c];
    return total;
  }
  // Adds the sums of positions in each of some contexts to by_context.
  template <class AnySum>
  void add_to(std::span<const int32_t> positions, std::span<const int32_t> contexts,
              AnySum* by_context) const {
    for (const int32_t t : positions) {
      const Sum* sums = at(t);
      for (const int32_t c : contexts) by_context[c] += sums[c];
    }
  }

 private:
  int n_contexts_;
  PooledArray<int32_t> row_of_;  // (N,) by position; not filled where there is none
  PooledArray<Sum> sums_;        // (n_rows, n_contexts); only the contexts of the node are filled
};

}  // namespace hedgerow
