// What the kernels throw when no labelling of a sequence has a finite score.
#pragma once

#include <stdexcept>

namespace hedgerow {

struct NoPath : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

}  // namespace hedgerow
