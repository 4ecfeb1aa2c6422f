#include "objectives/observed.hpp"

#include <numeric>
#include <vector>

namespace hedgerow {
namespace {

// Calls visit(position, code) wherever something was observed.
template <class Visit>
void for_each_observed(const Observed& observed, int n_threads, Stop& stop, Visit visit) {
  parallel_for_pieces(observed.n_positions, kPositionsPerTask, n_threads, stop,
                      [&](int64_t first, int64_t end) {
                        for (int64_t t = first; t < end; ++t)
                          if (observed.codes[t] >= 0) visit(t, observed.codes[t]);
                      });
}

// Whether entry `place` of p is the first of its largest ones; false if the place is negative.
bool is_first_largest(const double* p, int n, int32_t place) {
  if (place < 0) return false;
  bool is_largest = true;
  const double largest = p[place];
  for (int k = 0; k < n; ++k) is_largest &= (p[k] < largest) | ((p[k] == largest) & (k >= place));
  return is_largest;
}

}  // namespace

void subtract_observed(const Observed& observed, double* expected, int n_threads, Stop& stop) {
  for_each_observed(observed, n_threads, stop, [&](int64_t t, int32_t code) {
    expected[t * observed.n_outputs + code] -=
        observed.weights == nullptr ? 1.0 : observed.weights[t];
  });
}

int64_t count_right(const Observed& observed, const double* probabilities, int n_threads,
                    Stop& stop) {
  std::vector<int64_t> counts(observed.n_positions / kPositionsPerTask + 1);  // of each task
  parallel_for_pieces(observed.n_positions, kPositionsPerTask, n_threads, stop,
                      [&](int64_t first, int64_t end) {
                        int64_t n_right = 0;
                        for (int64_t t = first; t < end; ++t)
                          n_right += is_first_largest(probabilities + t * observed.n_outputs,
                                                      observed.n_outputs, observed.codes[t]);
                        counts[first / kPositionsPerTask] = n_right;
                      });
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

}  // namespace hedgerow
