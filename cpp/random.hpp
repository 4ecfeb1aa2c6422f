// A stateless random number generator: the i-th draw for a key is always the same, on any thread
// and whatever was drawn before.
#pragma once

#include <cstdint>

namespace hedgerow {

// A bijection of 64-bit numbers that looks random (the finaliser of SplitMix64).
inline uint64_t mix_bits(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// A key derived from another key, for one purpose.
inline uint64_t derive_key(uint64_t key, uint64_t purpose) {
  return mix_bits(mix_bits(key) ^ purpose);
}

// The i-th number for a key, uniform in [0, 1).
inline double draw_uniform(uint64_t key, uint64_t i) {
  return static_cast<double>(derive_key(key, i) >> 11) * 0x1p-53;
}

}  // namespace hedgerow
