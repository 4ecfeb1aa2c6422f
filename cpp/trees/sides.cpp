#include "trees/sides.hpp"

#include <bit>

#include "simd.hpp"

#ifdef HEDGEROW_HAS_CLONES
#include <immintrin.h>
#endif

namespace hedgerow {
namespace {

#ifdef HEDGEROW_HAS_CLONES

// Copies n positions, sixteen at a time, to those of their sides; returns how many each side has.
HEDGEROW_EIGHT_WIDE std::array<size_t, 3> copy_sixteens(const int32_t* positions,
                                                        const uint8_t* marks, size_t n,
                                                        const std::array<int32_t*, 3>& of_sides) {
  size_t n_right = 0, n_left = 0, n_none = 0;
  for (size_t i = 0; i < n; i += 16) {
    const __m512i own = _mm512_loadu_si512(positions + i);
    const __m128i sides = _mm_loadu_si128(reinterpret_cast<const __m128i*>(marks + i));
    const __mmask16 left = _mm_cmpeq_epi8_mask(sides, _mm_set1_epi8(kLeftSide));
    const __mmask16 none = _mm_cmpeq_epi8_mask(sides, _mm_set1_epi8(kNoSide));
    const auto right = static_cast<__mmask16>(~(left | none));
    // There is room for sixteen, since no side has more than i so far.
    _mm512_storeu_si512(of_sides[kRightSide] + n_right, _mm512_maskz_compress_epi32(right, own));
    _mm512_storeu_si512(of_sides[kLeftSide] + n_left, _mm512_maskz_compress_epi32(left, own));
    _mm512_storeu_si512(of_sides[kNoSide] + n_none, _mm512_maskz_compress_epi32(none, own));
    n_right += static_cast<size_t>(std::popcount(right));
    n_left += static_cast<size_t>(std::popcount(left));
    n_none += static_cast<size_t>(std::popcount(none));
  }
  return {n_right, n_left, n_none};
}

#endif

}  // namespace

BySide::BySide(const std::shared_ptr<MemoryPool>& pool, std::span<const int32_t> positions,
               const uint8_t* marks)
    : left_(pool, std::ssize(positions)),
      right_(pool, std::ssize(positions)),
      none_(pool, std::ssize(positions)) {
  static_assert(kRightSide == 0 && kLeftSide == 1 && kNoSide == 2);
  size_t i = 0;
#ifdef HEDGEROW_HAS_CLONES
  if (adds_eight_at_once()) {
    i = positions.size() / 16 * 16;
    sizes_ = copy_sixteens(positions.data(), marks, i, {right_.data(), left_.data(), none_.data()});
  }
#endif
  auto [n_right, n_left, n_none] = sizes_;
  for (; i < positions.size(); ++i) {
    left_[n_left] = right_[n_right] = none_[n_none] = positions[i];
    n_left += marks[i] == kLeftSide;
    n_right += marks[i] == kRightSide;
    n_none += marks[i] == kNoSide;
  }
  sizes_ = {n_right, n_left, n_none};
}

}  // namespace hedgerow
