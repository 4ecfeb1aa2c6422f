// Throws an error for the caller unless a condition holds.
#pragma once

#include <stdexcept>

namespace hedgerow {

inline void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace hedgerow
