#include "objectives/observed.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hedgerow {
namespace {

constexpr int64_t kChunk = 4096;  // positions to a task

int64_t count_chunks(const Observed& observed) {
  return (observed.n_positions + kChunk - 1) / kChunk;
}

// Calls visit(task, position, code) wherever something was observed.
template <typename Visit>
void for_each_observed(const Observed& observed, int n_threads, Stop& stop, const Visit& visit) {
  parallel_for(count_chunks(observed), n_threads, stop, [&](int64_t chunk) {
    stop.check();
    const int64_t end = std::min((chunk + 1) * kChunk, observed.n_positions);
    for (int64_t t = chunk * kChunk; t < end; ++t)
      if (observed.codes[t] >= 0) visit(chunk, t, observed.codes[t]);
  });
}

}  // namespace

void subtract_observed(const Observed& observed, double* expected, int n_threads, Stop& stop) {
  for_each_observed(observed, n_threads, stop, [&](int64_t, int64_t t, int32_t code) {
    expected[t * observed.n_outputs + code] -=
        observed.weights == nullptr ? 1.0 : observed.weights[t];
  });
}

int64_t count_right(const Observed& observed, const double* probabilities, int n_threads,
                    Stop& stop) {
  std::vector<int64_t> counts(count_chunks(observed));
  for_each_observed(observed, n_threads, stop, [&](int64_t chunk, int64_t t, int32_t code) {
    const double* p = probabilities + t * observed.n_outputs;
    counts[chunk] += std::max_element(p, p + observed.n_outputs) - p == code;
  });
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

}  // namespace hedgerow
