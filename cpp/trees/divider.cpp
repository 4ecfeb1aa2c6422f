#include "trees/divider.hpp"

#include <algorithm>
#include <array>

#include "simd.hpp"
#include "trees/fractions.hpp"

namespace hedgerow {

Division Divider::divide(std::span<int32_t> positions, Sum* sums, int32_t* left_positions,
                         Sum* left_sums) const {
  Division found;
  std::array<uint8_t, kTogether> sides;
  std::array<uint16_t, kTogether> missing;  // first all of them, then those that go left
  std::array<Sum, kTogether> lefts;         // what these have there
  std::array<uint16_t, kTogether> places;   // on the left
  int32_t* right_positions = positions.data();
  Sum* right_sums = sums;
  while (!positions.empty()) {
    const auto n = static_cast<int64_t>(std::min<size_t>(positions.size(), kTogether));
    const int64_t n_missing =
        sides_.fill_and_list(positions.first(n), sides.data(), missing.data());
    int64_t n_lefts = 0;
    for (int64_t j = 0; j < n_missing; ++j) {
      if (j + kAhead < n_missing) HEDGEROW_PREFETCH(at_root_ + positions[missing[j + kAhead]]);
      const uint16_t i = missing[j];
      const Sum left = left_fraction(sums[i], share_, at_root_[positions[i]].curvature());
      sums[i] -= left;
      found.left_of_missing += left;
      const bool is_left = !left.is_empty(), is_both = is_left && !sums[i].is_empty();
      sides[i] = static_cast<uint8_t>(is_left + is_both);
      missing[n_lefts] = i;
      lefts[n_lefts] = left;
      n_lefts += is_left;
    }
    // Each is written to both sides and kept where it should be: there is no branch to mispredict.
    int64_t n_left = 0, n_right = 0;
    for (int64_t i = 0; i < n; ++i) {
      left_positions[n_left] = right_positions[n_right] = positions[i];
      left_sums[n_left] = right_sums[n_right] = sums[i];
      places[i] = static_cast<uint16_t>(n_left);
      n_left += sides[i] != kRightSide;
      n_right += sides[i] != kLeftSide;
    }
    for (int64_t j = 0; j < n_lefts; ++j) left_sums[places[missing[j]]] = lefts[j];
    left_positions += n_left, left_sums += n_left;
    right_positions += n_right, right_sums += n_right;
    found.n_left += n_left, found.n_right += n_right;
    positions = positions.subspan(n);
    sums += n;
  }
  return found;
}

WideSum Divider::left_of_missing(std::span<const int32_t> positions, const Sum* sums) const {
  WideSum total;
  std::array<uint8_t, kTogether> sides;
  std::array<uint16_t, kTogether> missing;
  for (size_t begin = 0; begin < positions.size(); begin += kTogether) {
    const std::span some =
        positions.subspan(begin, std::min<size_t>(positions.size() - begin, kTogether));
    const int64_t n_missing = sides_.fill_and_list(some, sides.data(), missing.data());
    for (int64_t j = 0; j < n_missing; ++j) {
      if (j + kAhead < n_missing) HEDGEROW_PREFETCH(at_root_ + some[missing[j + kAhead]]);
      const Sum whole = at_root_[some[missing[j]]];
      const Sum here = sums == nullptr ? whole : sums[begin + missing[j]];
      total += left_fraction(here, share_, whole.curvature());
    }
  }
  return total;
}

}  // namespace hedgerow
