// Digests of sequences: a number for the contents of each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parallel.hpp"

namespace hedgerow {

// Rows of bytes, of which sequence s has rows bounds[s] to bounds[s + 1].
struct DigestedRows {
  const uint8_t* bytes;
  int64_t width;
  const int64_t* bounds;
};

// The digests of n sequences, each of all its rows. Equal contents have equal digests; different
// contents have different ones, except for one pair in 2^64.
std::vector<uint64_t> digest_sequences(std::span<const DigestedRows> parts, int64_t n,
                                       int n_threads, Stop& stop);

}  // namespace hedgerow
