#include "trees/slot_bits.hpp"

#include <bit>
#include <cstddef>

#include "simd.hpp"

#ifdef HEDGEROW_HAS_CLONES
#include <immintrin.h>
#endif

namespace hedgerow {
namespace {

// Word w of those of a position's window; kWindow: they do not begin where a word does.
template <bool kWindow>
HEDGEROW_INLINE uint64_t word_at(const SlotBits& bits, int64_t position, int64_t w) {
  const int64_t first = (position - bits.before) * bits.row_bits;
  const uint64_t* words = bits.words + (first >> 6) + w;
  if constexpr (!kWindow) return words[0];
  const int shift = static_cast<int>(first & 63);
  return (words[0] >> shift) | ((words[1] << 1) << (63 - shift));
}

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

// The same for `together` words of bits of each position from word `first` on, whose sums stay in
// registers; see adds_eight_at_once. slots: the first of those words, which are `stride` apart
template <int together, bool kWindow, class Words, int stride>
__attribute__((target("arch=x86-64-v4"))) void count_words(const SlotBits& bits, int64_t first,
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
  const uint64_t last_mask = first + together == bits.n_words ? bits.last_mask : ~uint64_t{0};
  for (const int32_t position : positions) {
    const __m512i amounts = _mm512_set1_epi64(Words::amount(sums[position]));
    for (int w = 0; w < together; ++w) {
      const uint64_t all = word_at<kWindow>(bits, position, first + w);
      const __m512i word =
          _mm512_set1_epi64(std::bit_cast<int64_t>(w + 1 < together ? all : all & last_mask));
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

template <int together, bool kWindow>
void count_words(const SlotBits& bits, int64_t first, std::span<const int32_t> positions,
                 const Sum* sums, Sum* slots) {
  count_words<together, kWindow, PackedWords, 1>(bits, first, positions, sums, slots);
}

template <int together, bool kWindow>
void count_words(const SlotBits& bits, int64_t first, std::span<const int32_t> positions,
                 const Sum* sums, WideSum* slots) {
  static_assert(sizeof(WideSum) == 2 * sizeof(int64_t));
  count_words<together, kWindow, GradientWords, 2>(bits, first, positions, sums, slots);
  count_words<together, kWindow, CurvatureWords, 2>(
      bits, first, positions, sums, reinterpret_cast<std::byte*>(slots) + sizeof(int64_t));
}

#else

template <int together, bool kWindow, class AnySum>
void count_words(const SlotBits& bits, int64_t first, std::span<const int32_t> positions,
                 const Sum* sums, AnySum* slots) {
  const uint64_t last_mask = first + together == bits.n_words ? bits.last_mask : ~uint64_t{0};
  for (const int32_t position : positions)
    for (int s = 0; s < 64 * together; ++s) {
      const uint64_t word = word_at<kWindow>(bits, position, first + s / 64) &
                            (s / 64 + 1 < together ? ~uint64_t{0} : last_mask);
      slots[s] += sums[position].only_if((word >> (s % 64)) & 1);
    }
}

#endif

template <bool kWindow, class AnySum>
void count_all_words(const SlotBits& bits, std::span<const int32_t> positions, const Sum* sums,
                     AnySum* slots) {
  int64_t w = 0;
  for (; w + 2 <= bits.n_words; w += 2)
    count_words<2, kWindow>(bits, w, positions, sums, slots + 64 * w);
  if (w < bits.n_words) count_words<1, kWindow>(bits, w, positions, sums, slots + 64 * w);
}

template <class AnySum>
void count_bits_of_any(const SlotBits& bits, std::span<const int32_t> positions, const Sum* sums,
                       AnySum* slots) {
  if (bits.has_window())
    count_all_words<true>(bits, positions, sums, slots);
  else
    count_all_words<false>(bits, positions, sums, slots);
}

}  // namespace

void count_slot_bits(const SlotBits& bits, std::span<const int32_t> positions, const Sum* sums,
                     Sum* slots) {
  count_bits_of_any(bits, positions, sums, slots);
}

void count_slot_bits(const SlotBits& bits, std::span<const int32_t> positions, const Sum* sums,
                     WideSum* slots) {
  count_bits_of_any(bits, positions, sums, slots);
}

}  // namespace hedgerow
