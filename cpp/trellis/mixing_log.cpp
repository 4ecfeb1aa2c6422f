#include "trellis/mixing_log.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "trellis/log_rows.hpp"
#include "trellis/score_errors.hpp"

namespace hedgerow {
namespace {

// log_sums[i] = log sum_j exp(arcs[i, j] + message[j]), and the rate
//   1 - sum_j min_i P(j | i), where P(j | i) = exp(arcs[i, j] + message[j] - log_sums[i]),
// over all i that are possible: nodes[i] and log_sums[i] are finite. scratch: two rows.
HEDGEROW_CLONES
float fill_log_sums(const double* arcs, const double* message, const double* nodes, int n_labels,
                    int stride, double* scratch, double* log_sums) {
  double* smallest = scratch;
  double* terms = scratch + stride;
  std::fill(smallest, smallest + stride, 1.0);
  for (int i = 0; i < n_labels; ++i, arcs += stride) {
    add_rows(arcs, message, 0.0, stride, terms);
    const double largest = row_maximum(terms, stride);
    const double sum = exponentiate(terms, stride, largest);
    log_sums[i] = largest + std::log(sum);
    if (largest == -kInfinity || nodes[i] == -kInfinity) continue;
    const Lanes per_sum = broadcast(1.0 / sum);
    for (int k = 0; k < stride; k += kLanes)
      store(smallest + k, minimum(load(terms + k) * per_sum, load(smallest + k)));
  }
  double overlap = 0.0;
  for (int j = 0; j < n_labels; ++j) overlap += smallest[j];
  return static_cast<float>(std::clamp(1.0 - overlap, 0.0, 1.0));
}

// message = nodes + log_sums less the largest, which is returned.
double fill_message(const double* nodes, const double* log_sums, int n_labels, double* message) {
  double largest = -kInfinity;
  for (int k = 0; k < n_labels; ++k) {
    message[k] = nodes[k] + log_sums[k];
    largest = std::max(largest, message[k]);
  }
  if (largest == -kInfinity) return largest;
  for (int k = 0; k < n_labels; ++k) message[k] -= largest;
  return largest;
}

}  // namespace

LogMixing::LogMixing(const ChainScores& scores, int64_t longest)
    : scores_(scores),
      stride_(scores_.stride()),
      to_previous_(static_cast<size_t>(scores.n_labels) * stride_, -kInfinity),
      befores_(longest * stride_, -kInfinity),
      afters_(longest * stride_, -kInfinity),
      rows_(3 * stride_),
      pairs_(to_previous_.size()) {
  if (!scores.has_edges()) transpose(scores_.arcs_at(0));
}

void LogMixing::transpose(const double* arcs) {
  const int64_t n_labels = scores_.n_labels();
  for (int64_t j = 0; j < n_labels; ++j)
    for (int64_t k = 0; k < n_labels; ++k) to_previous_[k * stride_ + j] = arcs[j * stride_ + k];
}

const double* LogMixing::arcs_back(int64_t position) {
  if (scores_.has_edges()) transpose(scores_.arcs_at(position));
  return to_previous_.data();
}

void LogMixing::fill(int64_t sequence, const MixingBounds& out, const SumTable& sums, Stop& stop) {
  const int64_t begin = scores_.begin(sequence), length = scores_.length(sequence);
  std::vector<float> to_next(length), to_previous(length), own(length);
  const MixingRates rates{to_next.data(), to_previous.data()};
  float* edge_gammas = out.edge_gammas ? out.edge_gammas + begin : own.data();
  fill_rates(sequence, rates, stop);
  fill_gammas(length, rates, out.node_gammas + begin, edge_gammas);
  if (sums) add_pairs(sequence, edge_gammas, out.weight(sequence), sums, stop);
}

void LogMixing::fill_rates(int64_t sequence, const MixingRates& rates, Stop& stop) {
  scores_.check(sequence, stop);
  pass(sequence, true, rates.to_previous, stop);
  pass(sequence, false, rates.to_next, stop);
}

// Forward:   before_t[j] = nodes[t, j] + log sum_i exp(before_{t-1}[i] + arcs[i, j])
// Backward:  after_t[i] = nodes[t, i] + log sum_j exp(arcs[i, j] + after_{t+1}[j])
void LogMixing::pass(int64_t sequence, bool forward, float* rates, Stop& stop) {
  const int n_labels = scores_.n_labels();
  const int64_t begin = scores_.begin(sequence), length = scores_.length(sequence);
  const int64_t step = forward ? 1 : -1;
  PaddedVector& messages = forward ? befores_ : afters_;
  double* log_sums = rows_.data();
  double* scratch = log_sums + stride_;
  std::fill(log_sums, log_sums + n_labels, 0.0);
  for (int64_t i = 0; i < length; ++i) {
    stop.check();
    const int64_t t = forward ? i : length - 1 - i;
    const double* nodes = scores_.nodes_at(begin + t);
    double* message = messages.data() + t * stride_;
    rates[t] = 0.0f;
    if (i > 0) {
      const double* arcs = forward ? arcs_back(begin + t) : scores_.arcs_at(begin + t + 1);
      rates[t] = fill_log_sums(arcs, message - step * stride_, nodes, n_labels, stride_, scratch,
                               log_sums);
    }
    if (fill_message(nodes, log_sums, n_labels, message) == -kInfinity) throw_no_path(t, sequence);
  }
}

// P(y_{t-1} = i, y_t = j) = exp(before_{t-1}[i] + arcs[i, j] + after_t[j]) / their sum
HEDGEROW_CLONES
void LogMixing::add_pairs(int64_t sequence, const float* edge_gammas, double weight,
                          const SumTable& sums, Stop& stop) {
  const int64_t n_labels = scores_.n_labels(), stride = stride_;
  for (int64_t t = 1; t < scores_.length(sequence); ++t) {
    stop.check();
    const double* arcs = scores_.arcs_at(scores_.begin(sequence) + t);
    const double* before = befores_.data() + (t - 1) * stride;
    const double* after = afters_.data() + t * stride;
    for (int64_t i = 0; i < n_labels; ++i)
      add_rows(arcs + i * stride, after, before[i], stride_, pairs_.data() + i * stride);
    const double total = exponentiate(pairs_.data(), n_labels * stride,
                                      row_maximum(pairs_.data(), n_labels * stride));
    // The largest entry is 1. The sum of all others is computed on its own, as the difference
    // total - 1 would lose digits.
    double& largest = *std::max_element(pairs_.begin(), pairs_.end());
    largest = 0.0;
    const double others = std::accumulate(pairs_.begin(), pairs_.end(), 0.0);
    largest = 1.0;
    for (int64_t i = 0; i < n_labels; ++i)
      for (int64_t j = 0; j < n_labels; ++j) {
        const double& pair = pairs_[i * stride + j];
        const double rest = &pair == &largest ? others : total - pair;
        sums.add(i * n_labels + j, weight * edge_gammas[t] * (pair / total) * (rest / total));
      }
  }
}

}  // namespace hedgerow
