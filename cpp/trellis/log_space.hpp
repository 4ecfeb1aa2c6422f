// Forward-backward in log space: slower than scaled.hpp, right for any scores and for arcs that
// differ from position to position.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "trellis/chain.hpp"
#include "trellis/padded.hpp"

namespace hedgerow {

class LogChain {
 public:
  LogChain(const ChainScores& scores, Stop& stop);

  // Throws std::invalid_argument for NaN, +inf, or a sequence without any path.
  // log_alphas (T, K), each row up to a constant of its own. `labels` (T,) or null.
  void forward(int64_t sequence, const int32_t* labels, double* log_alphas);
  // Turns log_alphas into marginals; adds `weight` times the pair posteriors to pair_sums (K, K),
  // fills pairs where wanted.
  void backward(int64_t sequence, double* log_alphas, double weight, double* pair_sums,
                PairRows& pairs);
  // sum_t w_t log P(y_t | y_{t-1}) and the expected counts of its gradient, in place of marginals.
  void weighted(int64_t sequence, const int32_t* labels, const double* weights, double* counts,
                double* pair_sums, double* pairs);

  // Of the sequence that went last.
  double log_z() const { return log_z_; }
  double log_likelihood() const { return log_likelihood_; }

 private:
  void fill_log_betas_before(int64_t position, const double* log_betas, double* out);

  PaddedScores scores_;
  Stop& stop_;
  int stride_;
  double log_z_ = 0.0;
  double log_likelihood_ = 0.0;
  PaddedVector rows_;  // five padded scratch rows
};

}  // namespace hedgerow
