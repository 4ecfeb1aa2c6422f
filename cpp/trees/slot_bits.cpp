#include "trees/slot_bits.hpp"

#include <bit>

#include "simd.hpp"

#ifdef HEDGEROW_HAS_CLONES
#include <immintrin.h>
#endif

namespace hedgerow {
namespace {

#ifdef HEDGEROW_HAS_CLONES

// The same for `together` words of each position, whose sums stay in registers; see
// adds_eight_at_once.
template <int together>
__attribute__((target("arch=x86-64-v4"))) void count_words(const uint64_t* bits, int64_t n_words,
                                                           std::span<const int32_t> positions,
                                                           const Sum* sums, Sum* slots) {
  constexpr int kEights = 8;  // in a word
  const auto at = [&](int w, int j) { return slots + 64 * w + 8 * j; };
  const __m512i one_each = _mm512_set_epi64(128, 64, 32, 16, 8, 4, 2, 1);
  __m512i masks[kEights], totals[together][kEights];
  for (int j = 0; j < kEights; ++j) masks[j] = _mm512_slli_epi64(one_each, 8 * j);
  for (int w = 0; w < together; ++w)
    for (int j = 0; j < kEights; ++j) totals[w][j] = _mm512_loadu_si512(at(w, j));
  for (const int32_t position : positions) {
    const __m512i amounts = _mm512_set1_epi64(std::bit_cast<int64_t>(sums[position]));
    const uint64_t* row = bits + position * n_words;
    for (int w = 0; w < together; ++w) {
      const __m512i word = _mm512_set1_epi64(std::bit_cast<int64_t>(row[w]));
      for (int j = 0; j < kEights; ++j)
        totals[w][j] = _mm512_mask_add_epi64(totals[w][j], _mm512_test_epi64_mask(word, masks[j]),
                                             totals[w][j], amounts);
    }
  }
  for (int w = 0; w < together; ++w)
    for (int j = 0; j < kEights; ++j) _mm512_storeu_si512(at(w, j), totals[w][j]);
}

#else

template <int together>
void count_words(const uint64_t* bits, int64_t n_words, std::span<const int32_t> positions,
                 const Sum* sums, Sum* slots) {
  for (const int32_t position : positions)
    for (int s = 0; s < 64 * together; ++s) {
      const uint64_t word = bits[position * n_words + s / 64];
      slots[s] += sums[position].only_if((word >> (s % 64)) & 1);
    }
}

#endif

}  // namespace

void count_slot_bits(const uint64_t* bits, int64_t n_words, std::span<const int32_t> positions,
                     const Sum* sums, Sum* slots) {
  int64_t w = 0;
  for (; w + 2 <= n_words; w += 2)
    count_words<2>(bits + w, n_words, positions, sums, slots + 64 * w);
  if (w < n_words) count_words<1>(bits + w, n_words, positions, sums, slots + 64 * w);
}

}  // namespace hedgerow
