#include "trees/divider.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "simd.hpp"
#include "trees/fractions.hpp"

#ifdef HEDGEROW_HAS_CLONES
#include <immintrin.h>
#endif

namespace hedgerow {

constexpr int64_t kBlockSize = 1024;  // examples

// Where examples of a block go.
struct ExampleWays {
  std::array<uint64_t, kBlockSize / 64> are_left, are_missing;  // bits, of each example
  const Sum* lefts;  // of the next missing example, and those after it: what they have on the left
};

namespace {

// A bit of each of eight bytes, side by side.
uint64_t pack_bits(const uint8_t* bytes, int bit) {
  uint64_t all;
  std::memcpy(&all, bytes, sizeof(all));
  static_assert(std::endian::native == std::endian::little);
  return ((all >> bit & 0x0101010101010101) * 0x0102040810204080) >> 56;
}

// lefts: (n,) what n examples have on the left
HEDGEROW_CLONES_WITHOUT_FMA void fill_left_fractions(const ExamplePart* HEDGEROW_RESTRICT examples,
                                                     const int32_t* HEDGEROW_RESTRICT at_root,
                                                     int64_t n, double share,
                                                     Sum* HEDGEROW_RESTRICT lefts) {
  for (int64_t i = 0; i < n; ++i) {
    const ExamplePart left = left_fraction(examples[i], share, at_root[i]);
    lefts[i] = Sum(left.gradient, left.curvature);
  }
}

struct SideSizes {
  int64_t left = 0, right = 0;
};

#ifdef HEDGEROW_HAS_CLONES

// Writes those of eight examples that are not empty, close together; returns how many.
HEDGEROW_EIGHT_WIDE HEDGEROW_INLINE int keep_some(__m256i positions, __m512i sums,
                                                  const ExampleArrays& out) {
  const __mmask8 some = _mm512_test_epi64_mask(sums, _mm512_set1_epi64(0xFFFFFFFF));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.positions),
                      _mm256_maskz_compress_epi32(some, positions));
  _mm512_storeu_si512(out.sums, _mm512_maskz_compress_epi64(some, sums));
  return std::popcount(some);
}

// Eight examples at a time, n of them, to the left, to the right or to both.
HEDGEROW_EIGHT_WIDE SideSizes part_eights(ExampleWays& ways, int64_t n,
                                          const ExampleArrays& examples, const ExampleArrays& left,
                                          const ExampleArrays& right) {
  SideSizes found;
  for (int64_t i = 0; i < n; i += 8) {
    const auto is_left = static_cast<__mmask8>(ways.are_left[i / 64] >> i % 64);
    const auto is_missing = static_cast<__mmask8>(ways.are_missing[i / 64] >> i % 64);
    const __m256i positions =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(examples.positions + i));
    const __m512i sums = _mm512_loadu_si512(examples.sums + i);
    const __m512i on_left = _mm512_mask_mov_epi64(
        _mm512_maskz_expandloadu_epi64(is_missing, ways.lefts), is_left, sums);
    const __m512i on_right = _mm512_sub_epi64(sums, on_left);
    ways.lefts += std::popcount(is_missing);
    found.left += keep_some(positions, on_left, left.from(found.left));
    found.right += keep_some(positions, on_right, right.from(found.right));
  }
  return found;
}

#endif

// Writes each example to both sides and keeps it where it should be: there is no branch to
// mispredict.
SideSizes part_block(ExampleWays& ways, int64_t n, const ExampleArrays& examples,
                     const ExampleArrays& left, const ExampleArrays& right) {
  SideSizes found;
  int64_t i = 0;
#ifdef HEDGEROW_HAS_CLONES
  if (adds_eight_at_once()) found = part_eights(ways, i = n / 8 * 8, examples, left, right);
#endif
  for (; i < n; ++i) {
    const bool is_left = ways.are_left[i / 64] >> i % 64 & 1;
    const bool is_missing = ways.are_missing[i / 64] >> i % 64 & 1;
    const Sum sum = examples.sums[i];
    const Sum on_left = sum.only_if(is_left) + ways.lefts->only_if(is_missing);
    const Sum on_right = sum - on_left;
    ways.lefts += is_missing;
    left.positions[found.left] = right.positions[found.right] = examples.positions[i];
    left.sums[found.left] = on_left;
    right.sums[found.right] = on_right;
    found.left += !on_left.is_empty();
    found.right += !on_right.is_empty();
  }
  return found;
}

}  // namespace

// Some examples that stand side by side.
class Divider::Block {
 public:
  // sum_of(i, whole) is what the i-th of them has at the node, given the whole example.
  template <class SumOf>
  void read(const Divider& divider, std::span<const int32_t> positions, const SumOf& sum_of) {
    divider.sides_.fill(positions, sides_.data());
    std::fill(sides_.begin() + positions.size(), sides_.end(), uint8_t{kRightSide});
    static_assert(kLeftSide == 1 && kNoSide == 2);
    n_missing_ = 0;
    for (int64_t w = 0; w < kBlockSize / 64; ++w) {
      uint64_t left = 0, missing = 0;
      for (int64_t i = 0; i < 64; i += 8) {
        left |= pack_bits(sides_.data() + 64 * w + i, 0) << i;
        missing |= pack_bits(sides_.data() + 64 * w + i, 1) << i;
      }
      ways_.are_left[w] = left;
      ways_.are_missing[w] = missing;
      for (; missing != 0; missing &= missing - 1) {
        const int64_t i = 64 * w + std::countr_zero(missing);
        HEDGEROW_PREFETCH(divider.at_root_ + positions[i]);
        places_[n_missing_++] = static_cast<uint16_t>(i);
      }
    }
    for (int64_t j = 0; j < n_missing_; ++j) {
      const int64_t i = places_[j];
      const Sum whole = divider.at_root_[positions[i]], here = sum_of(i, whole);
      missing_[j] = {static_cast<int32_t>(here.gradient()), static_cast<int32_t>(here.curvature())};
      at_root_[j] = static_cast<int32_t>(whole.curvature());
    }
    fill_left_fractions(missing_.data(), at_root_.data(), n_missing_, divider.share_,
                        lefts_.data());
    ways_.lefts = lefts_.data();
  }

  // What missing ones have on the left.
  std::span<const Sum> lefts() const { return {lefts_.data(), static_cast<size_t>(n_missing_)}; }
  ExampleWays& ways() { return ways_; }

 private:
  std::array<uint8_t, kBlockSize> sides_;
  ExampleWays ways_;
  int64_t n_missing_;
  std::array<uint16_t, kBlockSize> places_;      // of missing ones
  std::array<ExamplePart, kBlockSize> missing_;  // what they have at the node
  std::array<int32_t, kBlockSize> at_root_;      // their curvatures
  std::array<Sum, kBlockSize + 1> lefts_;
};

Division Divider::divide(std::span<int32_t> positions, Sum* sums, ExampleArrays left) const {
  Division found;
  Block block;
  ExampleArrays right{positions.data(), sums};
  while (!positions.empty()) {
    const std::span some = positions.first(std::min<size_t>(positions.size(), kBlockSize));
    block.read(*this, some, [&](int64_t i, const Sum&) { return sums[i]; });
    for (const Sum& on_left : block.lefts()) found.left_of_missing += on_left;
    const SideSizes n =
        part_block(block.ways(), std::ssize(some), {some.data(), sums}, left, right);
    left = left.from(n.left);
    right = right.from(n.right);
    found.n_left += n.left;
    found.n_right += n.right;
    positions = positions.subspan(some.size());
    sums += some.size();
  }
  return found;
}

WideSum Divider::left_of_missing(std::span<const int32_t> positions, const Sum* sums) const {
  WideSum total;
  Block block;
  for (size_t begin = 0; begin < positions.size(); begin += kBlockSize) {
    const std::span some =
        positions.subspan(begin, std::min<size_t>(positions.size() - begin, kBlockSize));
    block.read(*this, some, [&](int64_t i, const Sum& whole) {
      return sums == nullptr ? whole : sums[begin + i];
    });
    for (const Sum& on_left : block.lefts()) total += on_left;
  }
  return total;
}

}  // namespace hedgerow
