#include "trees/divider.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <vector>

#include "simd.hpp"
#include "trees/fractions.hpp"

#ifdef HEDGEROW_HAS_CLONES
#include <immintrin.h>
#endif

namespace hedgerow {
namespace {

constexpr int64_t kSidesAtOnce = 1 << 10;    // examples whose sides are found at a time
constexpr int64_t kDividedAtOnce = 1 << 13;  // examples that a thread divides at a time

// Some examples with the bytes of their sides, and what to do with them.
struct Block {
  const uint8_t* sides;
  double share;  // of an example whose value is missing, how much goes left
  ExampleArrays examples, left, right;
};

#ifdef HEDGEROW_HAS_CLONES

// Rounded shares of eight integers.
HEDGEROW_EIGHT_WIDE HEDGEROW_INLINE __m512i parts_of(__m512i numbers, __m512d share) {
  const __m512d round = _mm512_set1_pd(kRoundFraction);
  // The product has an explicit rounding mode, so it is not fused with the sum.
  const __m512d products = _mm512_mul_round_pd(_mm512_cvtepi64_pd(numbers), share,
                                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  return _mm512_sub_epi64(_mm512_castpd_si512(_mm512_add_pd(products, round)),
                          _mm512_castpd_si512(round));
}

HEDGEROW_EIGHT_WIDE HEDGEROW_INLINE __m512i gradients_of(__m512i sums) {
  return _mm512_srai_epi64(sums, 32);
}
HEDGEROW_EIGHT_WIDE HEDGEROW_INLINE __m512i curvatures_of(__m512i sums) {
  return _mm512_and_si512(sums, _mm512_set1_epi64(0xFFFFFFFF));
}

// The parts of eight examples that go left: see left_fraction.
HEDGEROW_EIGHT_WIDE HEDGEROW_INLINE __m512i lefts_of(__m512i sums, __m512i leasts, __m512d share,
                                                     __mmask8 are_left, __mmask8 are_missing) {
  const __m512i curvatures = curvatures_of(sums);
  const __m512i left = parts_of(curvatures, share), right = _mm512_sub_epi64(curvatures, left);
  const __mmask8 are_whole =
      _mm512_mask_cmplt_epi64_mask(are_missing, _mm512_min_epi64(left, right), leasts);
  const __mmask8 are_heavier = _mm512_mask_cmpgt_epi64_mask(are_whole, left, right);
  const __m512i gradients = _mm512_slli_epi64(parts_of(gradients_of(sums), share), 32);
  return _mm512_mask_add_epi64(
      _mm512_maskz_mov_epi64(static_cast<__mmask8>(are_left | are_heavier), sums),
      static_cast<__mmask8>(are_missing & ~are_whole), gradients, left);
}

// Writes those of eight examples that are not empty, one after the other; returns how many.
HEDGEROW_EIGHT_WIDE HEDGEROW_INLINE int keep_some(__m256i positions, __m512i sums, __m256i leasts,
                                                  const ExampleArrays& out) {
  const __mmask8 some = _mm512_test_epi64_mask(sums, _mm512_set1_epi64(0xFFFFFFFF));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.positions),
                      _mm256_maskz_compress_epi32(some, positions));
  _mm512_storeu_si512(out.sums, _mm512_maskz_compress_epi64(some, sums));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.leasts),
                      _mm256_maskz_compress_epi32(some, leasts));
  return std::popcount(some);
}

// Eight of n examples at a time.
template <bool are_kept>
HEDGEROW_EIGHT_WIDE Division divide_eights(const Block& block, int64_t n) {
  const auto [sides, share, examples, left, right] = block;
  const auto read = [](const int32_t* numbers) HEDGEROW_INLINE_LAMBDA {
    return reinterpret_cast<const __m256i*>(numbers);
  };
  const __m512d shares = _mm512_set1_pd(share);
  __m512i gradients = _mm512_setzero_si512(), curvatures = gradients;  // on the left, of missing
  Division found;
  for (int64_t i = 0; i < n; i += 8) {
    const __m128i own = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(sides + i));
    const auto are_left = static_cast<__mmask8>(_mm_test_epi8_mask(own, _mm_set1_epi8(kLeftSide)));
    const auto are_missing = static_cast<__mmask8>(_mm_test_epi8_mask(own, _mm_set1_epi8(kNoSide)));
    const __m512i sums = _mm512_loadu_si512(examples.sums + i);
    const __m256i leasts = _mm256_loadu_si256(read(examples.leasts + i));
    const __m512i on_left =
        lefts_of(sums, _mm512_cvtepi32_epi64(leasts), shares, are_left, are_missing);
    gradients = _mm512_mask_add_epi64(gradients, are_missing, gradients, gradients_of(on_left));
    curvatures = _mm512_mask_add_epi64(curvatures, are_missing, curvatures, curvatures_of(on_left));
    if constexpr (are_kept) {
      const __m256i positions = _mm256_loadu_si256(read(examples.positions + i));
      const __m512i on_right = _mm512_sub_epi64(sums, on_left);
      found.n_left += keep_some(positions, on_left, leasts, left.from(found.n_left));
      found.n_right += keep_some(positions, on_right, leasts, right.from(found.n_right));
    }
  }
  found.left_of_missing =
      WideSum(_mm512_reduce_add_epi64(gradients), _mm512_reduce_add_epi64(curvatures));
  return found;
}

#endif

// Writes each of n examples to both sides and keeps it where it should be: there is no branch to
// mispredict.
template <bool are_kept>
Division divide_block(const Block& block, int64_t n) {
  const auto [sides, share, examples, left, right] = block;
  Division found;
  int64_t i = 0;
#ifdef HEDGEROW_HAS_CLONES
  if (adds_eight_at_once()) found = divide_eights<are_kept>(block, i = n / 8 * 8);
#endif
  for (; i < n; ++i) {
    const Sum sum = examples.sums[i];
    const int32_t position = examples.positions[i], least = examples.leasts[i];
    Sum on_left = sum.only_if(sides[i] == kLeftSide);
    if (sides[i] == kNoSide) found.left_of_missing += on_left = left_fraction(sum, share, least);
    if constexpr (!are_kept) continue;
    const Sum on_right = sum - on_left;
    left.positions[found.n_left] = right.positions[found.n_right] = position;
    left.leasts[found.n_left] = right.leasts[found.n_right] = least;
    left.sums[found.n_left] = on_left;
    right.sums[found.n_right] = on_right;
    found.n_left += !on_left.is_empty();
    found.n_right += !on_right.is_empty();
  }
  return found;
}

}  // namespace

Division& Division::operator+=(const Division& other) {
  n_left += other.n_left;
  n_right += other.n_right;
  left_of_missing += other.left_of_missing;
  return *this;
}

template <bool are_kept>
Division Divider::divide_piece(ExampleArrays examples, int64_t n, ExampleArrays left) const {
  stop_.check();
  std::array<uint8_t, kSidesAtOnce> sides;
  const ExampleArrays right = examples;
  Division found;
  for (; n > 0; n -= kSidesAtOnce, examples = examples.from(kSidesAtOnce)) {
    const int64_t size = std::min(n, kSidesAtOnce);
    sides_.fill({examples.positions, static_cast<size_t>(size)}, sides.data());
    found += divide_block<are_kept>(
        {sides.data(), share_, examples, left.from(found.n_left), right.from(found.n_right)}, size);
  }
  return found;
}

Division Divider::divide(const ExampleArrays& examples, int64_t n,
                         const ExampleArrays& left) const {
  const int64_t size = crew_.n_pieces(n / kDividedAtOnce) == 1 ? n : kDividedAtOnce;
  std::vector<Division> pieces((n + size - 1) / size);
  crew_.share_pieces(n, size, [&](int64_t begin, int64_t end) {
    pieces[begin / size] = divide_piece<true>(examples.from(begin), end - begin, left.from(begin));
  });
  Division all;
  for (int64_t piece = 0; piece < std::ssize(pieces); ++piece) {
    left.move_up(piece * size, pieces[piece].n_left, all.n_left);
    examples.move_up(piece * size, pieces[piece].n_right, all.n_right);
    all += pieces[piece];
  }
  return all;
}

WideSum Divider::left_of_missing(const ExampleArrays& examples, int64_t n) const {
  std::vector<WideSum> totals((n + kDividedAtOnce - 1) / kDividedAtOnce);
  crew_.share_pieces(n, kDividedAtOnce, [&](int64_t begin, int64_t end) {
    const ExampleArrays piece = examples.from(begin);
    totals[begin / kDividedAtOnce] = divide_piece<false>(piece, end - begin, piece).left_of_missing;
  });
  WideSum all;
  for (const WideSum& total : totals) all += total;
  return all;
}

}  // namespace hedgerow
