// Tiles: some columns of some rows, with the values of each column contiguous.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hedgerow {

inline constexpr int64_t kTileColumns = 8;

// Copies columns 0 to n_columns - 1, at most kTileColumns, of some rows, `stride` numbers apart:
// column c goes to columns + c * width.
template <class Value, class Number>
void copy_tile(const Value* rows, int64_t stride, int64_t n_rows, int64_t n_columns,
               Number* columns, int64_t width) {
  for (int64_t c = 0; c < n_columns; ++c)
    for (int64_t r = 0; r < n_rows; ++r) columns[c * width + r] = rows[r * stride + c];
}

// The same, but faster, for kTileColumns columns.
void copy_whole_tile(const float* rows, int64_t stride, int64_t n_rows, float* columns,
                     int64_t width);

inline void copy_tile(const float* rows, int64_t stride, int64_t n_rows, int64_t n_columns,
                      float* columns, int64_t width) {
  if (n_columns == kTileColumns)
    copy_whole_tile(rows, stride, n_rows, columns, width);
  else
    copy_tile<float, float>(rows, stride, n_rows, n_columns, columns, width);
}

// The same for bytes, any number of columns.
void copy_bytes(const uint8_t* rows, int64_t stride, int64_t n_rows, int64_t n_columns,
                uint8_t* columns, int64_t width);

// The first column of a tile that contains this one, of n_columns.
inline int64_t first_of_tile(int64_t column, int64_t n_columns) {
  return std::max<int64_t>(std::min(column, n_columns - kTileColumns), 0);
}

}  // namespace hedgerow
