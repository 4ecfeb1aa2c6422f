#include "trellis/padded.hpp"

#include <algorithm>

#include "simd.hpp"
#include "trellis/score_errors.hpp"

namespace hedgerow {
namespace {

// out[j, k] = arcs[j, k] + edges[j, k]. edges: (K, K); arcs, out: (K, stride)
template <class Number>
HEDGEROW_INLINE void add_any_edges(const double* HEDGEROW_RESTRICT arcs,
                                   const Number* HEDGEROW_RESTRICT edges, int64_t n_labels,
                                   int64_t stride, double* HEDGEROW_RESTRICT out) {
  for (int64_t j = 0; j < n_labels; ++j)
    for (int64_t k = 0; k < n_labels; ++k)
      out[j * stride + k] = arcs[j * stride + k] + edges[j * n_labels + k];
}
// Templates have no clones.
HEDGEROW_CLONES
void add_edges(const double* arcs, const double* edges, int64_t n_labels, int64_t stride,
               double* out) {
  add_any_edges(arcs, edges, n_labels, stride, out);
}
HEDGEROW_CLONES
void add_edges(const double* arcs, const float* edges, int64_t n_labels, int64_t stride,
               double* out) {
  add_any_edges(arcs, edges, n_labels, stride, out);
}

// Whether none of n scores is NaN or +inf.
HEDGEROW_CLONES
bool all_good(const double* scores, int64_t n) {
  Lanes n_bad = broadcast(0.0);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) n_bad += one_if_bad(load(scores + i));
  bool good = sum_lanes(n_bad) == 0.0;
  for (; i < n; ++i) good = good && scores[i] < kInfinity;
  return good;
}
bool all_good(const float* scores, int64_t n) {
  return std::all_of(scores, scores + n, [](float score) { return score < kInfinity; });
}

}  // namespace

PaddedScores::PaddedScores(const ChainScores& scores)
    : scores_(scores), stride_(padded(scores.n_labels)) {
  const size_t n_labels = scores.n_labels;
  constant_arcs_.assign(n_labels * stride_, -kInfinity);
  for (size_t j = 0; j < n_labels; ++j)
    std::copy(scores.arcs + j * n_labels, scores.arcs + (j + 1) * n_labels,
              constant_arcs_.begin() + j * stride_);
  if (has_edges()) arcs_ = constant_arcs_;
}

const double* PaddedScores::arcs_at(int64_t position) {
  if (!has_edges()) return constant_arcs_.data();
  const int64_t n_labels = scores_.n_labels, at = position * n_labels * n_labels;
  if (scores_.edges != nullptr)
    add_edges(constant_arcs_.data(), scores_.edges + at, n_labels, stride_, arcs_.data());
  else
    add_edges(constant_arcs_.data(), scores_.single_edges + at, n_labels, stride_, arcs_.data());
  return arcs_.data();
}

void PaddedScores::check(int64_t sequence, Stop& stop) const {
  const int64_t n_labels = scores_.n_labels, n_pairs = n_labels * n_labels;
  const auto check_row = [&](const char* name, const auto* row, int64_t n, int64_t t) {
    if (!all_good(row, n)) throw_bad_score(name, t, sequence);
  };
  for (int64_t t = 0; t < length(sequence); ++t) {
    if (t % kCheckEvery == 0) stop.check();
    const int64_t position = begin(sequence) + t;
    check_row("a node", nodes_at(position), n_labels, t);
    if (scores_.edges != nullptr && t > 0)
      check_row("an edge", scores_.edges + position * n_pairs, n_pairs, t);
    if (scores_.single_edges != nullptr && t > 0)
      check_row("an edge", scores_.single_edges + position * n_pairs, n_pairs, t);
  }
}

}  // namespace hedgerow
