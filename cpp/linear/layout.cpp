#include "linear/layout.hpp"

#include <algorithm>
#include <limits>

#include "random.hpp"

namespace hedgerow {

std::vector<int64_t> count_positions(const AttributeRows& rows, int64_t n_attributes, Stop& stop) {
  std::vector<int64_t> counts(n_attributes), last(n_attributes, -1);
  for (int64_t t = 0; t < rows.n_positions; ++t) {
    if (t % (1 << 14) == 0) stop.check();
    for (int64_t e = rows.offsets[t]; e < rows.offsets[t + 1]; ++e) {
      const int32_t attribute = rows.attributes[e];
      counts[attribute] += last[attribute] != t;
      last[attribute] = t;
    }
  }
  return counts;
}

std::vector<uint64_t> find_places(const AttributeRows& rows, const std::vector<uint64_t>& digests,
                                  const int64_t* offsets, int64_t n_sequences, Stop& stop) {
  constexpr int64_t kPositions = 1 << 20;  // the last one stands for all that follow
  std::vector<uint64_t> places(digests.size(), std::numeric_limits<uint64_t>::max());
  for (int64_t s = 0; s < n_sequences; ++s) {
    stop.check();
    uint64_t digest = 0;
    for (int64_t t = offsets[s]; t < offsets[s + 1]; ++t) {
      // The order of a position's attributes does not matter.
      uint64_t sum = 0;
      for (int64_t e = rows.offsets[t]; e < rows.offsets[t + 1]; ++e)
        sum += digests[rows.attributes[e]];
      digest = derive_key(digest, sum);
    }
    for (int64_t t = offsets[s]; t < offsets[s + 1]; ++t) {
      const int64_t position = std::min(t - offsets[s], kPositions - 1);
      const uint64_t place = (digest & ~uint64_t{kPositions - 1}) | static_cast<uint64_t>(position);
      for (int64_t e = rows.offsets[t]; e < rows.offsets[t + 1]; ++e)
        places[rows.attributes[e]] = std::min(places[rows.attributes[e]], place);
    }
  }
  return places;
}

SeenPairs build_seen_pairs(const AttributeRows& rows, int64_t n_attributes, const int32_t* outputs,
                           int n_outputs, Stop& stop) {
  // A first pass sorts the outputs by attribute, a second removes duplicates.
  std::vector<int64_t> begin(n_attributes + 1, 0);
  for (int64_t t = 0; t < rows.n_positions; ++t) {
    if (t % 4096 == 0) stop.check();
    for (int64_t e = rows.offsets[t]; e < rows.offsets[t + 1]; ++e)
      if (outputs[t] >= 0) ++begin[rows.attributes[e] + 1];
  }
  for (int64_t a = 0; a < n_attributes; ++a) begin[a + 1] += begin[a];
  std::vector<int32_t> sorted(begin[n_attributes]);
  std::vector<int64_t> next(begin.begin(), begin.end() - 1);
  for (int64_t t = 0; t < rows.n_positions; ++t) {
    if (t % 4096 == 0) stop.check();
    for (int64_t e = rows.offsets[t]; e < rows.offsets[t + 1]; ++e)
      if (outputs[t] >= 0) sorted[next[rows.attributes[e]]++] = outputs[t];
  }

  SeenPairs out;
  out.offsets.reserve(n_attributes + 1);
  out.offsets.push_back(0);
  std::vector<int64_t> seen_by(n_outputs, -1);  // the last attribute that had this output
  for (int64_t a = 0; a < n_attributes; ++a) {
    if (a % 4096 == 0) stop.check();
    const size_t first = out.outputs.size();
    for (int64_t i = begin[a]; i < begin[a + 1]; ++i) {
      if (seen_by[sorted[i]] == a) continue;
      seen_by[sorted[i]] = a;
      out.outputs.push_back(sorted[i]);
    }
    std::sort(out.outputs.begin() + first, out.outputs.end());
    out.offsets.push_back(static_cast<int64_t>(out.outputs.size()));
  }
  return out;
}

}  // namespace hedgerow
