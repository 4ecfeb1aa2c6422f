// Draws: random numbers of sequences and positions by their identities, and the smallest of them.
#pragma once

#include <cstdint>

#include "parallel.hpp"

namespace hedgerow {

// A number for each position, from those of the n sequences: sequence s has the positions
// offsets[s] to offsets[s + 1].
void fill_position_identities(const uint64_t* identities, const int64_t* offsets, int64_t n,
                              uint64_t* out, int n_threads, Stop& stop);

// The random number of each of n identities under a key.
void fill_uniforms(const uint64_t* identities, int64_t n, uint64_t key, double* out, int n_threads,
                   Stop& stop);

// The number at a place, from 0, among n sorted numbers from [0, 1). They are not sorted for it:
// most of them are only counted, which is fast if they are spread evenly.
double find_smallest(const double* uniforms, int64_t n, int64_t place, int n_threads, Stop& stop);

}  // namespace hedgerow
