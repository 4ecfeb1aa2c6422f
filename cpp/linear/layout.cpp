#include "linear/layout.hpp"

#include <algorithm>

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

SeenPairs build_seen_pairs(const AttributeRows& rows, int64_t n_attributes, const int32_t* outputs,
                           int n_outputs, Stop& stop) {
  // A first pass sorts the outputs by attribute, a second keeps each of them once.
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
