// What several workers have to agree on when they grow trees together, each with some of the
// examples.
#pragma once

#include <cstdint>
#include <span>

namespace hedgerow {

// This base class is for a single worker, which has all examples.
struct Workers {
  virtual ~Workers() = default;
  // Replaces numbers by their sums over all workers.
  virtual void sum(std::span<int64_t>) const {}
  // Replaces numbers by the largest of any worker.
  virtual void max(std::span<double>) const {}
};

}  // namespace hedgerow
