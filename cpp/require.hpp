// An error for the caller where something does not hold.
#pragma once

#include <stdexcept>

namespace hedgerow {

inline void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace hedgerow
