#include "linear/vectors.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kTaskNumbers = 1 << 16;

}  // namespace

void fill_multiple(double factor, const double* x, const double* plus, int64_t n, double* out,
                   int n_threads, Stop& stop) {
  parallel_for_pieces(n, kTaskNumbers, n_threads, stop, [&](int64_t first, int64_t end) {
    if (plus == nullptr) {
      for (int64_t i = first; i < end; ++i) out[i] = factor * x[i];
    } else {
      for (int64_t i = first; i < end; ++i) out[i] = factor * x[i] + plus[i];
    }
  });
}

}  // namespace hedgerow
