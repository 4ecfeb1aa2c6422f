// Methods for missing values.
#pragma once

#include <cstdint>
#include <vector>

namespace hedgerow {

enum class MissingMethod : uint8_t {
  kLearned,     // they go the way with the larger gain
  kFractional,  // both ways, in proportion to the weights of known values
  kSurrogate,   // the way in which a similar split sends them
  kImpute,      // where a given bin of their column goes, see `fills`
  kIndicator,   // the same, but a split may separate them from all others
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
