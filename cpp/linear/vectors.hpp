// Operations on vectors of millions of weights.
#pragma once

#include <cstdint>

#include "parallel.hpp"

namespace hedgerow {

// out = factor * x, plus `plus` unless it is null. All: (n,)
void fill_multiple(double factor, const double* x, const double* plus, int64_t n, double* out,
                   int n_threads, Stop& stop);

}  // namespace hedgerow
