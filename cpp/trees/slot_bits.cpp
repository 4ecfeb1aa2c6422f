#include "trees/slot_bits.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "simd.hpp"

#ifdef HEDGEROW_HAS_CLONES
#include <immintrin.h>
// GCC's own headers leave registers unset on purpose.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace hedgerow {
namespace {

// Word w of those of a position's window; kWindow: the bits of a window may begin within a word.
template <bool kWindow>
HEDGEROW_INLINE uint64_t word_at(const SlotBits& bits, int64_t position, int64_t w) {
  const int64_t first = (position - bits.before) * bits.row_bits;
  const uint64_t* words = bits.words + (first >> 6) + w;
  if constexpr (!kWindow) return words[0];
  const int shift = static_cast<int>(first & 63);
  return (words[0] >> shift) | ((words[1] << 1) << (63 - shift));
}

#ifdef HEDGEROW_HAS_CLONES

// The words of slots that are added to: those of a Sum, or every other word of a WideSum.
struct PackedWords {
  static int64_t amount(Sum sum) { return std::bit_cast<int64_t>(sum); }
};
struct GradientWords {
  static int64_t amount(Sum sum) { return sum.gradient(); }
};
struct CurvatureWords {
  static int64_t amount(Sum sum) { return sum.curvature(); }
};

// Words w and w + 1 of a position's window.
template <bool kWindow>
HEDGEROW_EIGHT_WIDE HEDGEROW_INLINE __m128i two_words_at(const SlotBits& bits, int64_t position,
                                                         int64_t w) {
  const auto read = [](const uint64_t* words) HEDGEROW_EIGHT_WIDE HEDGEROW_INLINE_LAMBDA {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(words));
  };
  if constexpr (!kWindow) return read(bits.words + position * bits.n_words + w);
  const int64_t first = (position - bits.before) * bits.row_bits;
  const uint64_t* words = bits.words + (first >> 6) + w;
  const __m128i own = read(words);
  const __m128i next = read(words + 1);
  const __m128i shift = _mm_cvtsi64_si128(first & 63);
  return _mm_or_si128(_mm_srl_epi64(own, shift),
                      _mm_sll_epi64(next, _mm_sub_epi64(_mm_cvtsi64_si128(64), shift)));
}

// Interleaves the bits of four positions, each given by two words, so that the same bit of all four
// is contiguous: lane c has bits c, c + 4, c + 8 and so on of the first words, lane 4 + c those of
// the second ones.
HEDGEROW_EIGHT_WIDE HEDGEROW_INLINE __m512i interleave(__m128i a, __m128i b, __m128i c, __m128i d) {
  constexpr int kOnes = 0x55555555, kTwos = 0x33333333;
  const __m512i keep_ones =
      _mm512_mask_set1_epi32(_mm512_set1_epi32(kOnes), 0b1100110011001100, ~kOnes);
  const __m512i keep_twos =
      _mm512_mask_set1_epi32(_mm512_set1_epi32(kTwos), 0b1111000011110000, ~kTwos);
  constexpr int kIfKept = 0xCA;  // the second number's bit where the first one's is set
  __m512i all =
      _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(b, a)), _mm256_set_m128i(d, c), 1);
  // A matrix of 4 x 4 bits is transposed by exchanging single bits, then pairs.
  all = _mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), all);
  const __m512i by_one = _mm512_set_epi64(63, 1, 63, 1, 63, 1, 63, 1);
  all = _mm512_ternarylogic_epi64(
      keep_ones, all, _mm512_rolv_epi64(_mm512_permutex_epi64(all, 0b10110001), by_one), kIfKept);
  const __m512i by_two = _mm512_set_epi64(62, 62, 2, 2, 62, 62, 2, 2);
  return _mm512_ternarylogic_epi64(
      keep_twos, all, _mm512_rolv_epi64(_mm512_permutex_epi64(all, 0b01001110), by_two), kIfKept);
}

// count_slot_bits for `together` words of bits of each position from word `first` on, whose sums
// stay in registers; see adds_eight_at_once. The sum of every subset of four positions is computed
// once, and looked up by their bits for eight slots at a time. slots: those of the first word,
// `stride` numbers apart
template <int together, bool kWindow, class Words, int stride>
HEDGEROW_EIGHT_WIDE void count_words(const SlotBits& bits, int64_t first,
                                     const NodeExamples& examples, void* slots) {
  constexpr int kEights = 8;  // in a word
  const auto at = [&](int w, int j) {
    return static_cast<std::byte*>(slots) + 8 * stride * (64 * w + 8 * j);
  };
  const __m512i places =
      _mm512_mullo_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi64(stride));
  __m512i totals[together][kEights];
  for (int w = 0; w < together; ++w)
    for (int j = 0; j < kEights; ++j)
      totals[w][j] =
          stride == 1 ? _mm512_loadu_si512(at(w, j)) : _mm512_i64gather_epi64(places, at(w, j), 8);
  const uint64_t last_mask = first + together == bits.n_words ? bits.last_mask : ~uint64_t{0};
  const __m128i mask = together == 1 ? _mm_set_epi64x(0, std::bit_cast<int64_t>(last_mask))
                                     : _mm_set_epi64x(std::bit_cast<int64_t>(last_mask), -1);
  const auto add = [&](const int32_t (&positions)[4],
                       const int64_t (&amounts)[4]) HEDGEROW_EIGHT_WIDE HEDGEROW_INLINE_LAMBDA {
    const __m512i of_a_b = _mm512_add_epi64(_mm512_maskz_set1_epi64(0b10101010, amounts[0]),
                                            _mm512_maskz_set1_epi64(0b11001100, amounts[1]));
    const __m512i without_d =
        _mm512_add_epi64(of_a_b, _mm512_maskz_set1_epi64(0b11110000, amounts[2]));
    const __m512i with_d = _mm512_add_epi64(without_d, _mm512_set1_epi64(amounts[3]));
    const auto read = [&](int j) HEDGEROW_EIGHT_WIDE HEDGEROW_INLINE_LAMBDA {
      const __m128i words = two_words_at<kWindow>(bits, positions[j], first);
      return kWindow || together == 1 ? _mm_and_si128(words, mask) : words;
    };
    const __m512i subsets = interleave(read(0), read(1), read(2), read(3));
    for (int w = 0; w < together; ++w) {
      // Four bits each: of slots c and c + 4 in lanes c and c + 4, and so on.
      __m512i own = w == 0 ? _mm512_shuffle_i64x2(subsets, subsets, 0b01000100)
                           : _mm512_shuffle_i64x2(subsets, subsets, 0b11101110);
      own = _mm512_srlv_epi64(own, _mm512_set_epi64(4, 4, 4, 4, 0, 0, 0, 0));
      for (int j = 0; j < kEights; ++j) {
        const __m512i sums_of_subsets =
            _mm512_permutex2var_epi64(without_d, _mm512_srli_epi64(own, 8 * j), with_d);
        totals[w][j] = _mm512_add_epi64(totals[w][j], sums_of_subsets);
      }
    }
  };
  const int32_t* positions = examples.positions.data();
  const int64_t n = std::ssize(examples.positions);
  const auto amount = [&](int64_t j) HEDGEROW_EIGHT_WIDE HEDGEROW_INLINE_LAMBDA {
    return Words::amount(examples.sum(j));
  };
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    add({positions[i], positions[i + 1], positions[i + 2], positions[i + 3]},
        {amount(i), amount(i + 1), amount(i + 2), amount(i + 3)});
  if (i < n) {  // those after the last add nothing
    int32_t last_positions[4];
    int64_t last_amounts[4];
    for (int64_t j = 0; j < 4; ++j) {
      last_positions[j] = positions[std::min(i + j, n - 1)];
      last_amounts[j] = i + j < n ? amount(i + j) : 0;
    }
    add(last_positions, last_amounts);
  }
  for (int w = 0; w < together; ++w)
    for (int j = 0; j < kEights; ++j)
      if constexpr (stride == 1)
        _mm512_storeu_si512(at(w, j), totals[w][j]);
      else
        _mm512_i64scatter_epi64(at(w, j), places, totals[w][j], 8);
}

template <int together, bool kWindow>
void count_words(const SlotBits& bits, int64_t first, const NodeExamples& examples, Sum* slots) {
  count_words<together, kWindow, PackedWords, 1>(bits, first, examples, slots);
}

template <int together, bool kWindow>
void count_words(const SlotBits& bits, int64_t first, const NodeExamples& examples,
                 WideSum* slots) {
  static_assert(sizeof(WideSum) == 2 * sizeof(int64_t));
  count_words<together, kWindow, GradientWords, 2>(bits, first, examples, slots);
  count_words<together, kWindow, CurvatureWords, 2>(
      bits, first, examples, reinterpret_cast<std::byte*>(slots) + sizeof(int64_t));
}

#else

template <int together, bool kWindow, class AnySum>
void count_words(const SlotBits& bits, int64_t first, const NodeExamples& examples, AnySum* slots) {
  const uint64_t last_mask = first + together == bits.n_words ? bits.last_mask : ~uint64_t{0};
  for (int64_t i = 0; i < std::ssize(examples.positions); ++i)
    for (int s = 0; s < 64 * together; ++s) {
      const uint64_t word = word_at<kWindow>(bits, examples.positions[i], first + s / 64) &
                            (s / 64 + 1 < together ? ~uint64_t{0} : last_mask);
      slots[s] += examples.sum(i).only_if((word >> (s % 64)) & 1);
    }
}

#endif

template <bool kWindow, class AnySum>
void count_all_words(const SlotBits& bits, const NodeExamples& examples, AnySum* slots) {
  int64_t w = 0;
  for (; w + 2 <= bits.n_words; w += 2) count_words<2, kWindow>(bits, w, examples, slots + 64 * w);
  if (w < bits.n_words) count_words<1, kWindow>(bits, w, examples, slots + 64 * w);
}

template <class AnySum>
void count_bits_of_any(const SlotBits& bits, const NodeExamples& examples, AnySum* slots) {
  if (bits.has_window())
    count_all_words<true>(bits, examples, slots);
  else
    count_all_words<false>(bits, examples, slots);
}

}  // namespace

void count_slot_bits(const SlotBits& bits, const NodeExamples& examples, Sum* slots) {
  count_bits_of_any(bits, examples, slots);
}

void count_slot_bits(const SlotBits& bits, const NodeExamples& examples, WideSum* slots) {
  count_bits_of_any(bits, examples, slots);
}

}  // namespace hedgerow
