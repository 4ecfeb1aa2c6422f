#include "trees/tiles.hpp"

#include <bit>
#include <cstring>

#include "simd_float.hpp"

namespace hedgerow {
namespace {

#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)

// Eight rows of eight floats: row r of `columns` gets lane r of all rows.
HEDGEROW_INLINE void transpose_rows(const float* rows, int64_t stride, float* columns,
                                    int64_t width) {
  Floats pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    const Floats a = load(rows + i * stride), b = load(rows + (i + 1) * stride);
    pairs[i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      const Floats a = pairs[i + j], b = pairs[i + j + 2];
      fours[i + 2 * j] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
      fours[i + 2 * j + 1] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < 4; ++i) {
    const Floats a = fours[i], b = fours[i + 4];
    store(columns + i * width, __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11));
    store(columns + (i + 4) * width, __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15));
  }
}

#else

void transpose_rows(const float* rows, int64_t stride, float* columns, int64_t width) {
  copy_tile<float, float>(rows, stride, kTileColumns, kTileColumns, columns, width);
}

#endif

// Swaps the bits of `b` in `mask` with the bits of `a` that are `shift` places higher.
HEDGEROW_INLINE void swap_bits(uint64_t& a, uint64_t& b, int shift, uint64_t mask) {
  const uint64_t different = ((a >> shift) ^ b) & mask;
  a ^= different << shift;
  b ^= different;
}

// Eight rows of eight bytes: halves of the rows change places, then quarters, then bytes.
HEDGEROW_INLINE void transpose_rows(const uint8_t* rows, int64_t stride, uint8_t* columns,
                                    int64_t width) {
  uint64_t eight[8];
  for (int r = 0; r < 8; ++r) std::memcpy(eight + r, rows + r * stride, 8);
  for (int i = 0; i < 4; ++i) swap_bits(eight[i], eight[i + 4], 32, 0xFFFFFFFF);
  for (const int i : {0, 1, 4, 5}) swap_bits(eight[i], eight[i + 2], 16, 0xFFFF0000FFFF);
  for (int i = 0; i < 8; i += 2) swap_bits(eight[i], eight[i + 1], 8, 0xFF00FF00FF00FF);
  for (int c = 0; c < 8; ++c) std::memcpy(columns + c * width, eight + c, 8);
}

}  // namespace

HEDGEROW_CLONES
void copy_whole_tile(const float* rows, int64_t stride, int64_t n_rows, float* columns,
                     int64_t width) {
  int64_t r = 0;
  for (; r + 8 <= n_rows; r += 8) transpose_rows(rows + r * stride, stride, columns + r, width);
  for (; r < n_rows; ++r)
    for (int64_t c = 0; c < kTileColumns; ++c) columns[c * width + r] = rows[r * stride + c];
}

void copy_bytes(const uint8_t* rows, int64_t stride, int64_t n_rows, int64_t n_columns,
                uint8_t* columns, int64_t width) {
  const bool has_tiles = std::endian::native == std::endian::little && n_columns >= kTileColumns;
  const int64_t n_in_tiles = has_tiles ? n_rows / 8 * 8 : 0;
  for (int64_t c = 0; n_in_tiles > 0 && c < n_columns; c += kTileColumns) {
    const int64_t first = first_of_tile(c, n_columns);
    for (int64_t r = 0; r < n_in_tiles; r += 8)
      transpose_rows(rows + r * stride + first, stride, columns + first * width + r, width);
  }
  copy_tile<uint8_t, uint8_t>(rows + n_in_tiles * stride, stride, n_rows - n_in_tiles, n_columns,
                              columns + n_in_tiles, width);
}

}  // namespace hedgerow
