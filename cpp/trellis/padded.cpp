#include "trellis/padded.hpp"

#include <algorithm>

#include "simd.hpp"
#include "trellis/score_errors.hpp"

namespace hedgerow {

PaddedScores::PaddedScores(const ChainScores& scores)
    : scores_(scores), stride_(padded(scores.n_labels)) {
  const size_t n_labels = scores.n_labels;
  constant_arcs_.assign(n_labels * stride_, -kInfinity);
  for (size_t j = 0; j < n_labels; ++j)
    std::copy(scores.arcs + j * n_labels, scores.arcs + (j + 1) * n_labels,
              constant_arcs_.begin() + j * stride_);
  if (scores.edges != nullptr) arcs_ = constant_arcs_;
}

const double* PaddedScores::arcs_at(int64_t position) {
  if (scores_.edges == nullptr) return constant_arcs_.data();
  const int64_t n_labels = scores_.n_labels;
  const double* edges = scores_.edges + position * n_labels * n_labels;
  for (int64_t j = 0; j < n_labels; ++j)
    for (int64_t k = 0; k < n_labels; ++k)
      arcs_[j * stride_ + k] = constant_arcs_[j * stride_ + k] + edges[j * n_labels + k];
  return arcs_.data();
}

void PaddedScores::check(int64_t sequence, Stop& stop) const {
  const int64_t n_labels = scores_.n_labels, n_pairs = n_labels * n_labels;
  const auto check_row = [&](const char* name, const double* row, int64_t n, int64_t t) {
    if (std::all_of(row, row + n, [](double x) { return x < kInfinity; })) return;
    throw_bad_score(name, t, sequence);
  };
  for (int64_t t = 0; t < length(sequence); ++t) {
    if (t % kCheckEvery == 0) stop.check();
    const int64_t position = begin(sequence) + t;
    check_row("a node", nodes_at(position), n_labels, t);
    if (scores_.edges != nullptr && t > 0)
      check_row("an edge", scores_.edges + position * n_pairs, n_pairs, t);
  }
}

}  // namespace hedgerow
