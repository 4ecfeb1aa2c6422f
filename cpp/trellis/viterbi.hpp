// The best labelling of a chain, in log space.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "trellis/chain.hpp"
#include "trellis/padded.hpp"

namespace hedgerow {

class ViterbiChain {
 public:
  ViterbiChain(const ChainScores& scores, Stop& stop);

  // labels: (T,). Throws std::invalid_argument when no labelling has a finite score.
  void decode(int64_t sequence, int32_t* labels);

 private:
  PaddedScores scores_;
  Stop& stop_;
  PaddedVector rows_;         // (2, stride) scratch
  std::vector<double> best_;  // (T, K) score of the best path that ends in k at t, less a constant
};

}  // namespace hedgerow
