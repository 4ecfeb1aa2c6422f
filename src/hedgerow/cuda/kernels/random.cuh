// Random numbers that depend on a key alone: those of random.hpp.
#pragma once

#include "common.cuh"

__device__ __forceinline__ u64 mix_bits(u64 x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}
__device__ __forceinline__ u64 derive_key(u64 key, u64 purpose) {
  return mix_bits(mix_bits(key) ^ purpose);
}
