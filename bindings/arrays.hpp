// NumPy arrays as arguments and results, and the common frame of every kernel call.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "large_vector.hpp"
#include "no_gil.hpp"
#include "parallel.hpp"
#include "simd.hpp"
#include "trellis/pattern_marginals.hpp"

namespace hedgerow::bindings {

namespace nb = nanobind;

template <class T, int n_dimensions>
using Array = nb::ndarray<T, nb::ndim<n_dimensions>, nb::c_contig, nb::device::cpu>;
template <class T, int n_dimensions>
using OptionalArray = std::optional<Array<T, n_dimensions>>;
using Offsets = Array<const int64_t, 1>;
using Codes = Array<const int32_t, 1>;
using Doubles = Array<const double, 1>;
using Table = Array<const double, 2>;

// An argument that is an array. It is never converted, since results would be written to a copy.
inline auto array(const char* name) { return nb::arg(name).noconvert(); }
inline auto optional_array(const char* name) { return array(name).none(); }

template <class AnyArray>
auto data_or_null(const std::optional<AnyArray>& array) {
  return array ? array->data() : nullptr;
}

inline void check(bool holds, const char* message) {
  if (!holds) throw std::invalid_argument(message);
}

// Checks the lengths of an array's dimensions.
template <class AnyArray>
void check_shape(const AnyArray& array, std::initializer_list<size_t> shape, const char* message) {
  size_t dimension = 0;
  for (const size_t length : shape) check(array.shape(dimension++) == length, message);
}
template <class AnyArray>
void check_shape(const std::optional<AnyArray>& array, std::initializer_list<size_t> shape,
                 const char* message) {
  if (array) check_shape(*array, shape, message);
}

inline void check_offsets(const Offsets& offsets, size_t n_positions) {
  const int64_t* bounds = offsets.data();
  check(offsets.shape(0) >= 1 && bounds[0] == 0 &&
            bounds[offsets.shape(0) - 1] == static_cast<int64_t>(n_positions),
        "offsets must run from 0 to the number of positions");
  for (size_t s = 1; s < offsets.shape(0); ++s)
    check(bounds[s] >= bounds[s - 1], "offsets must not decrease");
}

// Edges, or marginals of label pairs.
template <class T>
void check_edges(const OptionalArray<T, 3>& edges, size_t n_positions, size_t n_labels) {
  check_shape(edges, {n_positions, n_labels, n_labels},
              "edges and pairs must have shape (positions, labels, labels)");
}

// Probabilities of label pairs by label, of all positions: see PairsByLabel.
template <class Probs, class Observed>
void check_by_label(const Probs& probs, const Observed& observed, int64_t first_position,
                    size_t n_positions, size_t n_labels) {
  check(probs.shape(0) == n_labels && probs.shape(2) == n_labels + 1,
        "pairs by label must have shape (labels, positions, labels + 1)");
  check(first_position >= 0 && first_position + n_positions <= probs.shape(1),
        "pairs by label must have an entry for each position");
  check_shape(observed, {n_positions}, "observed pairs must have an entry for each position");
}

// Edges over an automaton, of label pairs (N, K, K) or of arcs (N, A), or marginals of these.
template <class T>
using EdgesOfAny = std::optional<nb::ndarray<T, nb::c_contig, nb::device::cpu>>;

template <class T>
bool is_by_arc(const EdgesOfAny<T>& edges) {
  return edges && edges->ndim() == 2;
}
template <class T>
void check_edges(const EdgesOfAny<T>& edges, size_t n_positions, size_t n_labels, size_t n_arcs) {
  if (!edges) return;
  check(edges->ndim() == 2 || edges->ndim() == 3,
        "edges and pairs must have shape (positions, labels, labels) or (positions, arcs)");
  const bool by_arc = is_by_arc(edges);
  check(edges->shape(0) == n_positions && edges->shape(1) == (by_arc ? n_arcs : n_labels) &&
            (by_arc || edges->shape(2) == n_labels),
        "edges and pairs must have shape (positions, labels, labels) or (positions, arcs)");
}

// Optional output of a call for label patterns, (offsets, arcs, marginals): see PatternMarginals.
using Patterns = std::optional<std::tuple<Offsets, Codes, Array<double, 2>>>;

inline std::optional<PatternMarginals> read_patterns(const Patterns& patterns, size_t n_positions,
                                                     int64_t n_arcs) {
  if (!patterns) return {};
  const auto& [offsets, arcs, marginals] = *patterns;
  check_offsets(offsets, arcs.shape(0));
  for (size_t i = 0; i < arcs.shape(0); ++i)
    check(arcs.data()[i] >= 0 && arcs.data()[i] < n_arcs, "an arc of a pattern is out of range");
  check_shape(
      marginals, {n_positions, offsets.shape(0) - 1},
      "marginals of patterns must have a row for each position and a column for each pattern");
  return PatternMarginals{static_cast<int64_t>(marginals.shape(1)), offsets.data(), arcs.data(),
                          marginals.data()};
}

// A NumPy array that a call returns.
template <class T>
using Returned = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// A new array of n values that are not initialised: threads that write them touch their memory
// first.
template <class T>
Returned<T> make_array(int64_t n) {
  auto* values = new LargeVector<T>(static_cast<size_t>(n));
  nb::capsule owner(values, [](void* p) noexcept { delete static_cast<LargeVector<T>*>(p); });
  return Returned<T>(values->data(), {static_cast<size_t>(n)}, owner);
}

// A vector passed to NumPy without a copy.
template <class T>
Returned<T> to_numpy(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Returned<T>(kept->data(), {kept->size()}, owner);
}

// Runs a kernel without the GIL. Ctrl-C ends it: the pending KeyboardInterrupt is raised.
template <class Kernel>
void run_kernel(Kernel kernel) {
  Stop stop(&signal_has_raised);
  try {
    const NoGil no_gil;
    kernel(stop);
  } catch (const Interrupted&) {
    throw nb::python_error();
  }
}

// Whether all codes are from `first` to n - 1. There may be many, so the loop has no branch and can
// be vectorised.
inline bool are_within(const Codes& codes, int32_t first, size_t n, int n_threads = 1) {
  constexpr int64_t kCodesPerTask = 1 << 15;
  const auto last = static_cast<int32_t>(std::min<size_t>(n, INT32_MAX)) - 1;
  std::atomic<bool> are_all_within{true};
  run_kernel([&](Stop& stop) {
    const auto look = [&](int64_t begin, int64_t end) {
      bool is_within = true;
      for (int64_t t = begin; t < end; ++t)
        is_within &= (codes.data()[t] >= first) & (codes.data()[t] <= last);
      if (!is_within) are_all_within = false;
    };
    parallel_for_pieces(static_cast<int64_t>(codes.shape(0)), kCodesPerTask, n_threads, stop, look);
  });
  return are_all_within;
}

inline void check_labels(const Codes& labels, size_t n_positions, size_t n_labels, int n_threads) {
  check(labels.shape(0) == n_positions, "labels must have an entry for each position");
  check(are_within(labels, 0, n_labels, n_threads),
        "a label code lies outside 0 .. number of labels - 1");
}

// Labels of positions, or other outputs, -1 where they are not known.
inline void check_codes(const Codes& codes, size_t n_positions, size_t n_outputs, int n_threads) {
  check(codes.shape(0) == n_positions, "codes must have an entry for each position");
  check(are_within(codes, INT32_MIN, n_outputs, n_threads), "a label code is out of range");
}

void bind_trellis(nb::module_& module);
void bind_automaton(nb::module_& module);
void bind_tree_graph(nb::module_& module);
void bind_linear(nb::module_& module);
void bind_items(nb::module_& module);
void bind_blocks(nb::module_& module);
void bind_bins(nb::module_& module);
void bind_tree_data(nb::module_& module);
void bind_trees(nb::module_& module);
void bind_forest(nb::module_& module);
void bind_objectives(nb::module_& module);

}  // namespace hedgerow::bindings
