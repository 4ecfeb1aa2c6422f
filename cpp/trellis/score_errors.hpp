// Errors that the kernels throw for invalid scores.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace hedgerow {

// No labelling of a sequence has a finite score.
struct NoPath : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// arcs: (K, K) [label before, label]
inline void check_arcs(const double* arcs, int64_t n_labels) {
  for (int64_t i = 0; i < n_labels * n_labels; ++i)
    if (!(arcs[i] < std::numeric_limits<double>::infinity()))
      throw std::invalid_argument(
          "an arc score is NaN or +inf, from label " + std::to_string(i / n_labels) + " to label " +
          std::to_string(i % n_labels) + "; scores must be finite numbers or -inf");
}

// what: "a node" or "an edge"; t: the position within the sequence
[[noreturn]] inline void throw_bad_score(const char* what, int64_t t, int64_t sequence) {
  throw std::invalid_argument(std::string(what) + " score is NaN or +inf at position " +
                              std::to_string(t) + " of sequence " + std::to_string(sequence) +
                              "; scores must be finite numbers or -inf");
}

// Every path has ended before position t.
[[noreturn]] inline void throw_no_path(int64_t t, int64_t sequence) {
  throw NoPath("sequence " + std::to_string(sequence) +
               " has no labelling with a finite score: every path ends before position " +
               std::to_string(t) + "; allow more labels or arcs");
}

}  // namespace hedgerow
