// Sums over all sequences: every chunk of them has its own table, and the tables are added up at
// the end. Since all numbers are multiples of a grid, their order does not matter; without a grid,
// it depends only on the data, not on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sum_grid.hpp"

namespace hedgerow {

class ChunkSums {
 public:
  // out: (size,), or null if the sums are not wanted
  ChunkSums(double* out, size_t size, size_t n_chunks, const SumGrid& grid)
      : out_(out), size_(size), grid_(grid), parts_(out ? n_chunks : 0) {}

  // The table (size,) that a chunk adds to, zeros at first; null if the sums are not wanted.
  SumTable open(int64_t chunk) {
    if (out_ == nullptr) return {nullptr, grid_};
    if (parts_[chunk].empty()) parts_[chunk].assign(size_, 0.0);
    return {parts_[chunk].data(), grid_};
  }

  // Fills `out` with the sum of the chunks' tables.
  void finish() {
    if (out_ == nullptr) return;
    std::fill(out_, out_ + size_, 0.0);
    for (const auto& part : parts_)
      for (size_t i = 0; i < part.size(); ++i) out_[i] += part[i];
  }

 private:
  double* out_;
  size_t size_;
  SumGrid grid_;
  std::vector<std::vector<double>> parts_;  // (n_chunks,) tables, empty until opened
};

}  // namespace hedgerow
