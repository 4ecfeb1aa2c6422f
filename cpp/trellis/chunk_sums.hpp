// Sums over all sequences, the same for any number of threads: every chunk has a table of its own,
// and these are added in the order of the chunks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hedgerow {

class ChunkSums {
 public:
  // out: (size,), or null if the sums are not wanted
  ChunkSums(double* out, size_t size, size_t n_chunks)
      : out_(out), size_(size), parts_(out ? n_chunks : 0) {}

  // The table (size,) that a chunk adds to, zeros at first; null if the sums are not wanted.
  double* open(int64_t chunk) {
    if (out_ == nullptr) return nullptr;
    if (parts_[chunk].empty()) parts_[chunk].assign(size_, 0.0);
    return parts_[chunk].data();
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
  std::vector<std::vector<double>> parts_;  // (n_chunks,) tables, empty until opened
};

}  // namespace hedgerow
