// Forward-backward in log space: slower than scaled.hpp, but correct for any scores, and for arcs
// that differ from position to position.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "sum_grid.hpp"
#include "trellis/chain.hpp"
#include "trellis/padded.hpp"

namespace hedgerow {

// Scratch memory of one task. T: length of the sequence.
class LogChain {
 public:
  LogChain(const ChainScores& scores, Stop& stop);

  // Computes log Z, the log-likelihood of labels (T,) if given, and fills log_alphas (T, K), if
  // given, with log alpha_t minus its maximum over the labels.
  // Throws std::invalid_argument for NaN, +inf, or a sequence without any path.
  void forward(int64_t sequence, const int32_t* labels, double* log_alphas);
  // After forward: turns log_alphas into marginals, adds `weight` times the pair posteriors to
  // pair_sums (K, K), if given, and fills pairs where wanted.
  void backward(int64_t sequence, double* log_alphas, double weight, const SumTable& pair_sums,
                PairRows& pairs);
  // Computes sum_t w_t log P(y_t | y_{t-1}) as the log-likelihood, and the expected counts of its
  // gradient. labels, weights: (T,); counts: (T, K), of labels; pair_sums: (K, K), to which those
  // of label pairs are added, or null; pairs: (T, K, K), those of each position, or null
  void weighted(int64_t sequence, const int32_t* labels, const double* weights, double* counts,
                const SumTable& pair_sums, double* pairs);

  // Results of the last forward(); the log-likelihood may also be that of the last weighted().
  double log_z() const { return log_z_; }
  double log_likelihood() const { return log_likelihood_; }

 private:
  void fill_log_betas_before(int64_t position, const double* log_betas, double* out);

  PaddedScores scores_;
  Stop& stop_;
  int stride_;
  double log_z_ = 0.0;
  double log_likelihood_ = 0.0;
  PaddedVector rows_;  // (5, stride) scratch
};

}  // namespace hedgerow
