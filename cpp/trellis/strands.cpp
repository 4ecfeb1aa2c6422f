#include "trellis/strands.hpp"

namespace hedgerow {

HEDGEROW_CLONES
void rows_to_lanes(const LaneRows<const double>& in, Packed* out, int64_t n) {
  const int64_t whole = in.shared() / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    Lanes block[kLanes];
    for (int l = 0; l < kLanes; ++l) block[l] = load(in.rows[l] + i);
    transpose(block);
    for (int l = 0; l < kLanes; ++l) out[i + l] = block[l];
  }
  for (int64_t i = whole; i < n; ++i)
    for (int l = 0; l < kLanes; ++l) out[i].values[l] = i < in.counts[l] ? in.rows[l][i] : 0.0;
}

HEDGEROW_CLONES
void lanes_to_rows(const Packed* in, const LaneRows<double>& out) {
  const int64_t whole = out.shared() / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    Lanes block[kLanes];
    for (int l = 0; l < kLanes; ++l) block[l] = in[i + l];
    transpose(block);
    for (int l = 0; l < kLanes; ++l) store(out.rows[l] + i, block[l]);
  }
  for (int l = 0; l < kLanes; ++l)
    for (int64_t i = whole; i < out.counts[l]; ++i) out.rows[l][i] = in[i].values[l];
}

}  // namespace hedgerow
