// Methods for missing values.
#pragma once

#include <cstdint>
#include <vector>

namespace hedgerow {

enum class MissingMethod : uint8_t {
  kLearned,     // they go the way that gains more
  kFractional,  // both ways, by the weights of those that are known
  kSurrogate,   // the way that a similar split sends them
  kImpute,      // where a value of their column goes
  kIndicator,   // the same, and there may be a split between them and all others
};

struct MissingRules {
  MissingMethod method = MissingMethod::kLearned;
  std::vector<uint8_t> fills{};  // by column: the bin that stands for them; empty: none does

  // Whether splits are found by known values only.
  bool leaves_out() const {
    return method == MissingMethod::kFractional || method == MissingMethod::kSurrogate;
  }
};

}  // namespace hedgerow
