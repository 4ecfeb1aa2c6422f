// Drawing a label by a random number.
#pragma once

#include <cstdint>
#include <vector>

namespace hedgerow {

// The first label whose cumulative probability exceeds a number in [0, 1).
inline int32_t draw(const std::vector<double>& probs, double uniform) {
  double cumulated = 0.0;
  int32_t last = 0;
  for (size_t k = 0; k < probs.size(); ++k) {
    if (probs[k] == 0.0) continue;
    cumulated += probs[k];
    last = static_cast<int32_t>(k);
    if (cumulated > uniform) break;
  }
  return last;
}

}  // namespace hedgerow
