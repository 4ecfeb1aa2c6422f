#include "trellis/log_space.hpp"

#include <algorithm>
#include <cmath>

#include "simd.hpp"
#include "trellis/log_rows.hpp"
#include "trellis/score_errors.hpp"
#include "trellis/sums.hpp"

namespace hedgerow {
namespace {

// out[k] = log sum_j exp(x[j] + arcs[j, k]). largest: a scratch row
HEDGEROW_CLONES
void log_multiply(const double* x, const double* arcs, int n_labels, int stride, double* largest,
                  double* out) {
  std::fill(largest, largest + stride, -kInfinity);
  for (int j = 0; j < n_labels; ++j) {
    const Lanes from = broadcast(x[j]);
    const double* row = arcs + static_cast<int64_t>(j) * stride;
    for (int k = 0; k < stride; k += kLanes)
      store(largest + k, maximum(from + load(row + k), load(largest + k)));
  }
  for (int k = 0; k < stride; ++k) largest[k] = largest[k] == -kInfinity ? 0.0 : largest[k];
  std::fill(out, out + stride, 0.0);
  for (int j = 0; j < n_labels; ++j) {
    if (x[j] == -kInfinity) continue;
    const Lanes from = broadcast(x[j]);
    const double* row = arcs + static_cast<int64_t>(j) * stride;
    for (int k = 0; k < stride; k += kLanes)
      store(out + k, load(out + k) + exp_nonpositive(from + load(row + k) - load(largest + k)));
  }
  for (int k = 0; k < n_labels; ++k) out[k] = largest[k] + std::log(out[k]);
  for (int k = n_labels; k < stride; ++k) out[k] = -kInfinity;
}

// row = exp(row) / sum of exp(row), over a padded row.
HEDGEROW_CLONES
void normalize(double* row, int stride) {
  const double sum = exponentiate(row, stride, row_maximum(row, stride));
  const Lanes per_sum = broadcast(1.0 / sum);
  for (int k = 0; k < stride; k += kLanes) store(row + k, load(row + k) * per_sum);
}

// pairs[j, k] = from[j] + arcs[j, k] + to[k], padded rows.
HEDGEROW_CLONES
void fill_pair_scores(const double* from, const double* arcs, const double* to, int n_labels,
                      int stride, double* pairs) {
  for (int j = 0; j < n_labels; ++j) {
    const Lanes score = broadcast(from[j]);
    const int64_t row = static_cast<int64_t>(j) * stride;
    for (int k = 0; k < stride; k += kLanes)
      store(pairs + row + k, score + load(arcs + row + k) + load(to + k));
  }
}

// row[k] = exp(arcs[k] + x[k] - maximum), the maximum taken over k, which is returned; sum: the sum
// of the row.
HEDGEROW_CLONES
double softmax_row(const double* arcs, const double* x, int stride, double* row, double& sum) {
  for (int k = 0; k < stride; k += kLanes) store(row + k, load(arcs + k) + load(x + k));
  const double largest = row_maximum(row, stride);
  sum = exponentiate(row, stride, largest);
  return largest;
}

}  // namespace

LogChain::LogChain(const ChainScores& scores, Stop& stop)
    : scores_(scores),
      stop_(stop),
      stride_(scores_.stride()),
      rows_(static_cast<size_t>(stride_) * 5, -kInfinity) {}

// log alpha_t[k] = nodes[t, k] + log sum_j exp(log alpha_{t-1}[j] + arcs[j, k]), less its maximum.
void LogChain::forward(int64_t sequence, const int32_t* labels, double* log_alphas) {
  scores_.check(sequence, stop_);
  const int64_t begin = scores_.begin(sequence), n_labels = scores_.n_labels();
  double* row = rows_.data();
  double* next = row + stride_;
  double* scratch = next + stride_;
  std::fill(row, row + stride_, -kInfinity);
  ExactSum shifts, path;
  for (int64_t t = 0; t < scores_.length(sequence); ++t) {
    stop_.check();
    const double* nodes = scores_.nodes_at(begin + t);
    if (t == 0) {
      std::fill(next, next + n_labels, 0.0);
      std::fill(next + n_labels, next + stride_, -kInfinity);
    } else {
      const double* arcs = scores_.arcs_at(begin + t);
      log_multiply(row, arcs, scores_.n_labels(), stride_, scratch, next);
      if (labels != nullptr)
        path.add(arcs[labels[t - 1] * static_cast<int64_t>(stride_) + labels[t]]);
    }
    for (int64_t k = 0; k < n_labels; ++k) next[k] += nodes[k];
    const double largest = row_maximum(next, stride_);
    if (largest == -kInfinity) throw_no_path(t, sequence);
    for (int64_t k = 0; k < n_labels; ++k) next[k] -= largest;
    std::swap(row, next);
    if (log_alphas != nullptr) std::copy(row, row + n_labels, log_alphas + t * n_labels);
    shifts.add(largest);
    if (labels != nullptr) {
      path.add(nodes[labels[t]]);
      path.add(-largest);
    }
  }
  const bool empty = scores_.length(sequence) == 0;
  const double rest = empty ? 0.0 : std::log(exponentiate(row, stride_, 0.0));
  log_z_ = shifts.value() + rest;
  log_likelihood_ = path.value() - rest;
}

// log beta_{t-1}[j] = log sum_k exp(arcs[j, k] + nodes[t, k] + log beta_t[k]), less its maximum,
// from log_betas = log beta_t, a padded row.
void LogChain::fill_log_betas_before(int64_t position, const double* log_betas, double* out) {
  const double* arcs = scores_.arcs_at(position);
  const double* nodes = scores_.nodes_at(position);
  double* reached = rows_.data() + 3 * stride_;
  double* scratch = reached + stride_;
  for (int k = 0; k < scores_.n_labels(); ++k) reached[k] = nodes[k] + log_betas[k];
  for (int j = 0; j < scores_.n_labels(); ++j) {
    double sum = 0.0;
    const double largest =
        softmax_row(arcs + static_cast<int64_t>(j) * stride_, reached, stride_, scratch, sum);
    out[j] = largest + std::log(sum);
  }
  const double largest = *std::max_element(out, out + scores_.n_labels());
  for (int k = 0; k < scores_.n_labels(); ++k) out[k] -= largest;
}

void LogChain::backward(int64_t sequence, double* log_alphas, double weight,
                        const SumTable& pair_sums, PairRows& pairs) {
  const int64_t begin = scores_.begin(sequence), n_labels = scores_.n_labels();
  double* log_beta = rows_.data();
  double* next = log_beta + stride_;
  double* row = next + stride_;
  std::vector<double> posterior(pair_sums || pairs.wanted() ? n_labels * stride_ : 0);
  std::fill(log_beta, log_beta + 2 * stride_, -kInfinity);
  std::fill(log_beta, log_beta + n_labels, 0.0);
  for (int64_t t = scores_.length(sequence) - 1; t >= 0; --t) {
    stop_.check();
    double* marginals = log_alphas + t * n_labels;  // still log alpha_t
    std::fill(row, row + stride_, -kInfinity);
    for (int64_t k = 0; k < n_labels; ++k) row[k] = marginals[k] + log_beta[k];
    normalize(row, stride_);
    std::copy(row, row + n_labels, marginals);
    if (t == 0) break;

    const double* log_alpha = marginals - n_labels;
    if (!posterior.empty()) {
      // P(y_{t-1} = j, y_t = k) is exp(log alpha_{t-1}[j] + arcs[j, k] + nodes[t, k] + log
      // beta_t[k]), normalised.
      const double* arcs = scores_.arcs_at(begin + t);
      const double* nodes = scores_.nodes_at(begin + t);
      std::fill(row, row + stride_, -kInfinity);
      for (int64_t k = 0; k < n_labels; ++k) row[k] = nodes[k] + log_beta[k];
      fill_pair_scores(log_alpha, arcs, row, scores_.n_labels(), stride_, posterior.data());
      normalize(posterior.data(), static_cast<int>(posterior.size()));
      for (int64_t j = 0; j < n_labels; ++j) {
        const double* pair = posterior.data() + j * stride_;
        if (pairs.wanted()) std::copy(pair, pair + n_labels, pairs.row(t) + j * n_labels);
        if (!pair_sums) continue;
        for (int64_t k = 0; k < n_labels; ++k) pair_sums.add(j * n_labels + k, weight * pair[k]);
      }
      if (pairs.wanted()) pairs.close(t);
    }
    fill_log_betas_before(begin + t, log_beta, next);
    std::swap(log_beta, next);
  }
  if (pairs.wanted() && scores_.length(sequence) > 0) pairs.close_first();
}

// By the chain rule log P(y) = sum_t log P(y_t | y_{t-1}); here each term has its own weight w_t.
// The gradient is observed minus expected counts, where the expected counts at t are a measure m_t
// of total w_t that the conditional probabilities carry forward:
//   m_0(k) = w_0 P(y_0 = k)
//   m_t(k) = sum_j (m_{t-1}(j) - (w_{t-1} - w_t) [j = y_{t-1}]) P(y_t = k | y_{t-1} = j).
// With equal weights m_t is w times the marginals.
void LogChain::weighted(int64_t sequence, const int32_t* labels, const double* weights,
                        double* counts, const SumTable& pair_sums, double* pairs) {
  scores_.check(sequence, stop_);
  const int64_t begin = scores_.begin(sequence), n_labels = scores_.n_labels();
  const int64_t length = scores_.length(sequence), n_pairs = n_labels * n_labels;
  double* row = rows_.data();
  double* reached = row + stride_;
  std::fill(row, row + 5 * stride_, -kInfinity);
  ExactSum total;
  std::vector<double> log_betas(static_cast<size_t>(length) * n_labels);
  for (int64_t t = length - 1; t > 0; --t) {
    stop_.check();
    fill_log_betas_before(begin + t, log_betas.data() + t * n_labels,
                          log_betas.data() + (t - 1) * n_labels);
  }
  // Adds mass * P(y_t = k | y_{t-1} = from) to the counts at t, and, if `from` is the observed
  // label, w_t log P(y_t | y_{t-1} = from) to the total. arcs: (stride,) the arcs from that label
  const auto spread = [&](int64_t t, double mass, const double* arcs, int64_t from, bool observed) {
    double sum = 0.0;
    const double largest = softmax_row(arcs, reached, stride_, row, sum);
    if (largest == -kInfinity) throw_no_path(t, sequence);
    if (observed && weights[t] != 0.0) {
      const double log_prob = arcs[labels[t]] + reached[labels[t]] - largest - std::log(sum);
      total.add(weights[t] * log_prob);
    }
    for (int64_t k = 0; k < n_labels; ++k) {
      const double count = mass * (row[k] / sum);
      counts[t * n_labels + k] += count;
      if (t == 0) continue;
      if (pair_sums) pair_sums.add(from * n_labels + k, count);
      if (pairs != nullptr) pairs[t * n_pairs + from * n_labels + k] = count;
    }
  };
  const std::vector<double> no_arcs(stride_, 0.0);
  std::fill(counts, counts + length * n_labels, 0.0);
  if (pairs != nullptr) std::fill(pairs, pairs + length * n_pairs, 0.0);
  for (int64_t t = 0; t < length; ++t) {
    stop_.check();
    const double* nodes = scores_.nodes_at(begin + t);
    for (int64_t k = 0; k < n_labels; ++k) reached[k] = nodes[k] + log_betas[t * n_labels + k];
    if (t == 0) {
      spread(0, weights[0], no_arcs.data(), 0, true);
      continue;
    }
    const double* arcs = scores_.arcs_at(begin + t);
    for (int64_t j = 0; j < n_labels; ++j) {
      const bool observed = j == labels[t - 1];
      const double mass =
          counts[(t - 1) * n_labels + j] - (observed ? weights[t - 1] - weights[t] : 0.0);
      if (observed || mass != 0.0) spread(t, mass, arcs + j * stride_, j, observed);
    }
  }
  log_likelihood_ = total.value();
}

}  // namespace hedgerow
