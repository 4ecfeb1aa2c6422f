#include "draws.hpp"

#include <algorithm>
#include <vector>

#include "random.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kSequencesPerTask = 64;
constexpr int64_t kNumbersPerTask = 1 << 16;
constexpr int kIntervals = 1 << 12;  // of equal width, from 0 to 1

int interval_of(double uniform) {
  return static_cast<int>(std::min(std::max(0.0, uniform), 1.0 - 1.0 / kIntervals) * kIntervals);
}

}  // namespace

void fill_position_identities(const uint64_t* identities, const int64_t* offsets, int64_t n,
                              uint64_t* out, int n_threads, Stop& stop) {
  parallel_for_pieces(n, kSequencesPerTask, n_threads, stop, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s)
      for (int64_t t = offsets[s]; t < offsets[s + 1]; ++t)
        out[t] = derive_key(identities[s], static_cast<uint64_t>(t - offsets[s]));
  });
}

void fill_uniforms(const uint64_t* identities, int64_t n, uint64_t key, double* out, int n_threads,
                   Stop& stop) {
  parallel_for_pieces(n, kNumbersPerTask, n_threads, stop, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = draw_uniform(key, identities[i]);
  });
}

double find_smallest(const double* uniforms, int64_t n, int64_t place, int n_threads, Stop& stop) {
  const int64_t n_pieces = (n + kNumbersPerTask - 1) / kNumbersPerTask;
  std::vector<std::vector<int32_t>> counts(n_pieces);  // by piece and interval
  parallel_for_pieces(n, kNumbersPerTask, n_threads, stop, [&](int64_t begin, int64_t end) {
    std::vector<int32_t>& own = counts[begin / kNumbersPerTask];
    own.resize(kIntervals);
    for (int64_t i = begin; i < end; ++i) ++own[interval_of(uniforms[i])];
  });
  int interval = 0;  // the one that contains the number
  for (;; ++interval) {
    int64_t n_here = 0;
    for (const std::vector<int32_t>& own : counts) n_here += own[interval];
    if (place < n_here) break;
    place -= n_here;
  }
  std::vector<std::vector<double>> found(n_pieces);
  parallel_for_pieces(n, kNumbersPerTask, n_threads, stop, [&](int64_t begin, int64_t end) {
    const int64_t piece = begin / kNumbersPerTask;
    if (counts[piece][interval] == 0) return;
    for (int64_t i = begin; i < end; ++i)
      if (interval_of(uniforms[i]) == interval) found[piece].push_back(uniforms[i]);
  });
  std::vector<double> all;
  for (const std::vector<double>& own : found) all.insert(all.end(), own.begin(), own.end());
  std::nth_element(all.begin(), all.begin() + place, all.end());
  return all[place];
}

}  // namespace hedgerow
