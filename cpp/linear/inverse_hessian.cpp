#include "linear/inverse_hessian.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "simd.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kTaskWeights = 1 << 15;

// Adds up task(first, end) over pieces of 0 .. n, in order: the same for any number of threads.
template <class Task>
double sum_pieces(int64_t n, int n_threads, Stop& stop, Task task) {
  std::vector<double> sums((n + kTaskWeights - 1) / kTaskWeights);
  parallel_for_pieces(n, kTaskWeights, n_threads, stop, [&](int64_t first, int64_t end) {
    sums[first / kTaskWeights] = task(first, end);
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// x = scale * (x + factor * add), then the sum of x * with; add and with may be null.
HEDGEROW_CLONES
double update_and_dot(double* x, double factor, const float* add, double scale, const float* with,
                      int64_t first, int64_t end) {
  constexpr int kParts = 8;  // partial sums, so that the additions need not wait for each other
  double sums[kParts] = {};
  for (int64_t i = first; i < end; i += kParts) {
    const int n = static_cast<int>(std::min<int64_t>(kParts, end - i));
    for (int p = 0; p < n; ++p) {
      if (add != nullptr) x[i + p] += factor * add[i + p];
      x[i + p] *= scale;
      if (with != nullptr) sums[p] += x[i + p] * with[i + p];
    }
  }
  return std::accumulate(sums, sums + kParts, 0.0);
}

}  // namespace

InverseHessian::InverseHessian(int64_t n_weights, int memory)
    : n_weights_(n_weights), memory_(std::max(1, memory)) {}

void InverseHessian::push(const Step& step, int n_threads, Stop& stop) {
  const auto for_pieces = [&](const auto& task) {
    parallel_for_pieces(n_weights_, kTaskWeights, n_threads, stop, task);
  };
  const int64_t n_pieces = (n_weights_ + kTaskWeights - 1) / kTaskWeights;
  std::vector<double> curvatures(n_pieces), squares(n_pieces);
  for_pieces([&](int64_t first, int64_t end) {
    double curvature = 0.0, squared = 0.0;
    for (int64_t i = first; i < end; ++i) {
      curvature += step.step(i) * step.change(i);
      squared += step.change(i) * step.change(i);
    }
    curvatures[first / kTaskWeights] = curvature;
    squares[first / kTaskWeights] = squared;
  });
  const double curvature = std::accumulate(curvatures.begin(), curvatures.end(), 0.0);
  const double squared = std::accumulate(squares.begin(), squares.end(), 0.0);
  if (!(curvature > 1e-14 * squared)) return;
  Pair pair;
  if (is_full()) {  // the oldest pair's memory is used again
    pair = std::move(pairs_.front());
    pairs_.pop_front();
  }
  pair.step.resize(n_weights_);
  pair.change.resize(n_weights_);
  for_pieces([&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      pair.step[i] = static_cast<float>(step.step(i));
      pair.change[i] = static_cast<float>(step.change(i));
    }
  });
  pair.curvature = curvature;
  pair.squared = squared;
  pairs_.push_back(std::move(pair));
}

void InverseHessian::restore(std::deque<Pair> pairs) {
  const auto fits = [&](const Pair& pair) {
    return static_cast<int64_t>(pair.step.size()) == n_weights_ &&
           static_cast<int64_t>(pair.change.size()) == n_weights_ && pair.curvature > 0 &&
           pair.squared > 0;
  };
  if (pairs.size() > memory_ || !std::all_of(pairs.begin(), pairs.end(), fits))
    throw std::invalid_argument(
        "these steps cannot come from L-BFGS: there are too many, they have another size, or a "
        "product is not positive");
  pairs_ = std::move(pairs);
}

void InverseHessian::fill_direction(const double* gradient, double* direction, int n_threads,
                                    Stop& stop) const {
  parallel_for_pieces(n_weights_, kTaskWeights, n_threads, stop, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) direction[i] = -gradient[i];
  });
  if (pairs_.empty()) return;
  const auto pass = [&](double factor, const LargeVector<float>* add, double scale,
                        const LargeVector<float>* with) {
    return sum_pieces(n_weights_, n_threads, stop, [&](int64_t first, int64_t end) {
      return update_and_dot(direction, factor, add ? add->data() : nullptr, scale,
                            with ? with->data() : nullptr, first, end);
    });
  };
  // From the newest pair to the oldest: a_i = s_i . q / (s_i . y_i), q -= a_i y_i. Each pass
  // subtracts one pair and prepares the next.
  const size_t n_pairs = pairs_.size();
  std::vector<double> factors(n_pairs);
  double product = pass(0.0, nullptr, 1.0, &pairs_.back().step);
  for (size_t i = n_pairs; i-- > 0;) {
    factors[i] = product / pairs_[i].curvature;
    const bool last = i == 0;
    // The last pass also scales q by (s . y) / (y . y) of the newest pair, the size of H.
    const double scale = last ? pairs_.back().curvature / pairs_.back().squared : 1.0;
    const auto* with = last ? &pairs_[0].change : &pairs_[i - 1].step;
    product = pass(-factors[i], &pairs_[i].change, scale, with);
  }
  // And back: q += (a_i - y_i . q / (s_i . y_i)) s_i.
  for (size_t i = 0; i < n_pairs; ++i) {
    const double factor = factors[i] - product / pairs_[i].curvature;
    product = pass(factor, &pairs_[i].step, 1.0, i + 1 < n_pairs ? &pairs_[i + 1].change : nullptr);
  }
}

}  // namespace hedgerow
