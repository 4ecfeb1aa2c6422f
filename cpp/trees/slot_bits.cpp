#include "trees/slot_bits.hpp"

#include <bit>
#include <cstddef>

#include "simd.hpp"

#ifdef HEDGEROW_HAS_CLONES
#include <immintrin.h>
#endif

namespace hedgerow {
namespace {

#ifdef HEDGEROW_HAS_CLONES

// Words of slots, which are added to: those of a Sum, or every other one of a WideSum.
struct PackedWords {
  static int64_t amount(Sum sum) { return std::bit_cast<int64_t>(sum); }
};
struct GradientWords {
  static int64_t amount(Sum sum) { return sum.gradient(); }
};
struct CurvatureWords {
  static int64_t amount(Sum sum) { return sum.curvature(); }
};

// The same for `together` words of bits of each position, whose sums stay in registers; see
// adds_eight_at_once. slots: the first of those words, which are `stride` apart
template <int together, class Words, int stride>
__attribute__((target("arch=x86-64-v4"))) void count_words(const uint64_t* bits, int64_t n_words,
                                                           std::span<const int32_t> positions,
                                                           const Sum* sums, void* slots) {
  constexpr int kEights = 8;  // in a word
  const auto at = [&](int w, int j) {
    return static_cast<std::byte*>(slots) + 8 * stride * (64 * w + 8 * j);
  };
  const __m512i one_each = _mm512_set_epi64(128, 64, 32, 16, 8, 4, 2, 1);
  const __m512i places =
      _mm512_mullo_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi64(stride));
  __m512i masks[kEights], totals[together][kEights];
  for (int j = 0; j < kEights; ++j) masks[j] = _mm512_slli_epi64(one_each, 8 * j);
  for (int w = 0; w < together; ++w)
    for (int j = 0; j < kEights; ++j)
      totals[w][j] =
          stride == 1 ? _mm512_loadu_si512(at(w, j)) : _mm512_i64gather_epi64(places, at(w, j), 8);
  for (const int32_t position : positions) {
    const __m512i amounts = _mm512_set1_epi64(Words::amount(sums[position]));
    const uint64_t* row = bits + position * n_words;
    for (int w = 0; w < together; ++w) {
      const __m512i word = _mm512_set1_epi64(std::bit_cast<int64_t>(row[w]));
      for (int j = 0; j < kEights; ++j)
        totals[w][j] = _mm512_mask_add_epi64(totals[w][j], _mm512_test_epi64_mask(word, masks[j]),
                                             totals[w][j], amounts);
    }
  }
  for (int w = 0; w < together; ++w)
    for (int j = 0; j < kEights; ++j)
      if constexpr (stride == 1)
        _mm512_storeu_si512(at(w, j), totals[w][j]);
      else
        _mm512_i64scatter_epi64(at(w, j), places, totals[w][j], 8);
}

template <int together>
void count_words(const uint64_t* bits, int64_t n_words, std::span<const int32_t> positions,
                 const Sum* sums, Sum* slots) {
  count_words<together, PackedWords, 1>(bits, n_words, positions, sums, slots);
}

template <int together>
void count_words(const uint64_t* bits, int64_t n_words, std::span<const int32_t> positions,
                 const Sum* sums, WideSum* slots) {
  static_assert(sizeof(WideSum) == 2 * sizeof(int64_t));
  count_words<together, GradientWords, 2>(bits, n_words, positions, sums, slots);
  count_words<together, CurvatureWords, 2>(bits, n_words, positions, sums,
                                           reinterpret_cast<std::byte*>(slots) + sizeof(int64_t));
}

#else

template <int together, class AnySum>
void count_words(const uint64_t* bits, int64_t n_words, std::span<const int32_t> positions,
                 const Sum* sums, AnySum* slots) {
  for (const int32_t position : positions)
    for (int s = 0; s < 64 * together; ++s) {
      const uint64_t word = bits[position * n_words + s / 64];
      slots[s] += sums[position].only_if((word >> (s % 64)) & 1);
    }
}

#endif

template <class AnySum>
void count_all_words(const uint64_t* bits, int64_t n_words, std::span<const int32_t> positions,
                     const Sum* sums, AnySum* slots) {
  int64_t w = 0;
  for (; w + 2 <= n_words; w += 2)
    count_words<2>(bits + w, n_words, positions, sums, slots + 64 * w);
  if (w < n_words) count_words<1>(bits + w, n_words, positions, sums, slots + 64 * w);
}

}  // namespace

void count_slot_bits(const uint64_t* bits, int64_t n_words, std::span<const int32_t> positions,
                     const Sum* sums, Sum* slots) {
  count_all_words(bits, n_words, positions, sums, slots);
}

void count_slot_bits(const uint64_t* bits, int64_t n_words, std::span<const int32_t> positions,
                     const Sum* sums, WideSum* slots) {
  count_all_words(bits, n_words, positions, sums, slots);
}

}  // namespace hedgerow
