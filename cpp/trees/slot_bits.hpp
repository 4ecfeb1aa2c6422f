// Counting examples whose slots are bits.
#pragma once

#include <cstdint>

#include "trees/histogram.hpp"

namespace hedgerow {

// The slots at which positions have entries, as bits: those of a row, then those of the next one,
// so that the bits of a window are contiguous.
struct SlotBits {
  static constexpr int64_t kMoreWords = 2;
  const uint64_t* words;  // those of the rows, and kMoreWords more
  int64_t row_bits;       // from a row to the next: without a window a multiple of 64
  int before;             // rows of a window before its position
  int64_t n_words;        // of a window
  uint64_t last_mask;     // which bits of the last of them belong to the window

  bool has_window() const { return row_bits % 64 != 0; }
};

// Adds examples to the slots whose bits are set in their windows, which must be whole: slots
// (64 * n_words,).
void count_slot_bits(const SlotBits& bits, const NodeExamples& examples, Sum* slots);
void count_slot_bits(const SlotBits& bits, const NodeExamples& examples, WideSum* slots);

}  // namespace hedgerow
