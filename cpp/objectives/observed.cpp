#include "objectives/observed.hpp"

#include <numeric>
#include <vector>

#include "simd.hpp"

namespace hedgerow {
namespace {

// Calls visit(position, code) for all positions with an observation.
template <class Visit>
void for_each_observed(const Observed& observed, int n_threads, Stop& stop, Visit visit) {
  parallel_for_pieces(observed.n_positions, kPositionsPerTask, n_threads, stop,
                      [&](int64_t first, int64_t end) {
                        for (int64_t t = first; t < end; ++t)
                          if (observed.codes[t] >= 0) visit(t, observed.codes[t]);
                      });
}

// Number of positions whose observed label is the first one with the largest probability. kOutputs:
// number of outputs, 0 if the compiler does not know it.
template <int64_t kOutputs>
HEDGEROW_INLINE int64_t count_largest_of(const double* p, const int32_t* codes, int64_t n_positions,
                                         int64_t n_outputs) {
  if (kOutputs > 0) n_outputs = kOutputs;
  int64_t n_right = 0;
  for (int64_t t = 0; t < n_positions; ++t, p += n_outputs) {
    const int64_t code = codes[t];
    if (code < 0) continue;
    const double largest = p[code];
    int64_t is_right = 1;  // as wide as a double, so that several labels are compared at once
    for (int64_t k = 0; k < n_outputs; ++k)
      is_right &= int64_t{p[k] < largest} | (int64_t{p[k] == largest} & int64_t{k >= code});
    n_right += is_right;
  }
  return n_right;
}

// For few outputs a loop over them would take longer than the comparisons.
HEDGEROW_CLONES int64_t count_first_largest(const double* p, const int32_t* codes,
                                            int64_t n_positions, int64_t n_outputs) {
  if (n_outputs == 2) return count_largest_of<2>(p, codes, n_positions, n_outputs);
  if (n_outputs == 3) return count_largest_of<3>(p, codes, n_positions, n_outputs);
  return count_largest_of<0>(p, codes, n_positions, n_outputs);
}

template <int64_t kOutputs>
HEDGEROW_INLINE void find_largest_of(const double* p, int64_t n_positions, int64_t n_outputs,
                                     int32_t* out) {
  if (kOutputs > 0) n_outputs = kOutputs;
  for (int64_t t = 0; t < n_positions; ++t, p += n_outputs) {
    int32_t largest = 0;
    for (int64_t k = 1; k < n_outputs; ++k)
      largest = p[k] > p[largest] ? static_cast<int32_t>(k) : largest;
    out[t] = largest;
  }
}

}  // namespace

void subtract_observed(const Observed& observed, double* expected, int n_threads, Stop& stop) {
  for_each_observed(observed, n_threads, stop, [&](int64_t t, int32_t code) {
    expected[t * observed.n_outputs + code] -=
        observed.weights == nullptr ? 1.0 : observed.weights[t];
  });
}

void fill_most_probable(const double* probabilities, int64_t n, int64_t n_outputs, int32_t* out,
                        int n_threads, Stop& stop) {
  parallel_for_pieces(n, kPositionsPerTask, n_threads, stop, [&](int64_t first, int64_t end) {
    const double* p = probabilities + first * n_outputs;
    if (n_outputs == 2) return find_largest_of<2>(p, end - first, n_outputs, out + first);
    if (n_outputs == 3) return find_largest_of<3>(p, end - first, n_outputs, out + first);
    find_largest_of<0>(p, end - first, n_outputs, out + first);
  });
}

std::vector<int64_t> count_pairs(const int32_t* codes, const int64_t* offsets, int64_t n,
                                 int64_t n_labels) {
  // Neighbouring positions are counted in different tables, so that no addition waits for the one
  // before.
  std::vector<int64_t> counts(2 * n_labels * n_labels);
  int64_t* tables[2] = {counts.data(), counts.data() + n_labels * n_labels};
  for (int64_t s = 0; s < n; ++s)
    for (int64_t t = offsets[s] + 1; t < offsets[s + 1]; ++t)
      if (codes[t - 1] >= 0 && codes[t] >= 0) ++tables[t % 2][codes[t - 1] * n_labels + codes[t]];
  for (int64_t i = 0; i < n_labels * n_labels; ++i) tables[0][i] += tables[1][i];
  counts.resize(n_labels * n_labels);
  return counts;
}

int64_t count_right(const Observed& observed, const double* probabilities, int n_threads,
                    Stop& stop) {
  std::vector<int64_t> counts(observed.n_positions / kPositionsPerTask + 1);  // of each task
  parallel_for_pieces(
      observed.n_positions, kPositionsPerTask, n_threads, stop, [&](int64_t first, int64_t end) {
        counts[first / kPositionsPerTask] =
            count_first_largest(probabilities + first * observed.n_outputs, observed.codes + first,
                                end - first, observed.n_outputs);
      });
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

}  // namespace hedgerow
