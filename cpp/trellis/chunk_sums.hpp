// Sums over all sequences, the same for any number of threads: every chunk has a table of its own,
// and these are added in the order of the chunks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hedgerow {

class ChunkSums {
 public:
  // out: (size,), or null when nobody asked
  ChunkSums(double* out, size_t size, size_t n_chunks)
      : out_(out), size_(size), parts_(out ? n_chunks : 0) {}

  // A chunk's table, zeros at first, or null when nobody asked.
  double* open(int64_t chunk) {
    if (out_ == nullptr) return nullptr;
    if (parts_[chunk].empty()) parts_[chunk].assign(size_, 0.0);
    return parts_[chunk].data();
  }

  void finish() {
    if (out_ == nullptr) return;
    std::fill(out_, out_ + size_, 0.0);
    for (const auto& part : parts_)
      for (size_t i = 0; i < part.size(); ++i) out_[i] += part[i];
  }

 private:
  double* out_;
  size_t size_;
  std::vector<std::vector<double>> parts_;
};

}  // namespace hedgerow
