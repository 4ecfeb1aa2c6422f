// Usable numbers: finite, or not too large.
#pragma once

#include <cstdint>

#include "parallel.hpp"

namespace hedgerow {

// Index of the first of n numbers that is not usable, or n: a number outside of -largest to
// largest, or NaN unless it `may_be_missing`. Value is float or double.
template <class Value>
int64_t find_unusable(const Value* values, int64_t n, Value largest, bool may_be_missing,
                      int n_threads, Stop& stop);

}  // namespace hedgerow
