// What several workers that grow trees together have to agree on, each with some of the examples.
#pragma once

#include <cstdint>
#include <span>

namespace hedgerow {

// One worker alone, who has all examples.
struct Workers {
  virtual ~Workers() = default;
  // Numbers become their sums over all workers.
  virtual void sum(std::span<int64_t>) const {}
  // Numbers become the largest of any worker.
  virtual void max(std::span<double>) const {}
};

}  // namespace hedgerow
