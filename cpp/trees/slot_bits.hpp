// Counting examples whose slots are bits.
#pragma once

#include <cstdint>
#include <span>

#include "trees/histogram.hpp"

namespace hedgerow {

// Adds examples to the slots whose bits are set at their positions: bits (N, n_words), sums (N,) by
// position, slots (64 * n_words,).
void count_slot_bits(const uint64_t* bits, int64_t n_words, std::span<const int32_t> positions,
                     const Sum* sums, Sum* slots);
void count_slot_bits(const uint64_t* bits, int64_t n_words, std::span<const int32_t> positions,
                     const Sum* sums, WideSum* slots);

}  // namespace hedgerow
