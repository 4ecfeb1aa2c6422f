#include "trees/tiles.hpp"

#include "simd_float.hpp"

namespace hedgerow {
namespace {

#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)

// Eight rows of eight floats: row r of `columns` gets what was lane r of all of them.
HEDGEROW_INLINE void transpose(const float* rows, int64_t stride, float* columns, int64_t width) {
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

void transpose(const float* rows, int64_t stride, float* columns, int64_t width) {
  copy_tile<float, float>(rows, stride, kTileColumns, kTileColumns, columns, width);
}

#endif

}  // namespace

HEDGEROW_CLONES
void copy_whole_tile(const float* rows, int64_t stride, int64_t n_rows, float* columns,
                     int64_t width) {
  int64_t r = 0;
  for (; r + 8 <= n_rows; r += 8) transpose(rows + r * stride, stride, columns + r, width);
  for (; r < n_rows; ++r)
    for (int64_t c = 0; c < kTileColumns; ++c) columns[c * width + r] = rows[r * stride + c];
}

}  // namespace hedgerow
