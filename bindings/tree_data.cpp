// Bins of some sequences, checked, and laid out for growing trees.
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <optional>
#include <vector>

#include "arrays.hpp"
#include "trees.hpp"
#include "trees/data.hpp"

namespace hedgerow::bindings {
namespace {

using Bytes = Array<const uint8_t, 1>;

void check_dense(const BinTable& table, int n_threads, Stop& stop) {
  constexpr int64_t kRows = 64;  // compared at a time
  const int64_t n_dense = table.n_dense;
  std::vector<uint8_t> most;
  for (int64_t row = 0; row < kRows; ++row)
    most.insert(most.end(), table.n_bins, table.n_bins + n_dense);
  const auto check_rows = [&](int64_t first, int64_t end) {
    uint8_t outside = 0;
    for (int64_t t = first; t < end; t += kRows) {
      const uint8_t* rows = table.dense + t * n_dense;
      const int64_t n = std::min(kRows, end - t) * n_dense;
      for (int64_t i = 0; i < n; ++i) outside |= static_cast<uint8_t>(rows[i] > most[i]);
    }
    check(outside == 0, "a bin is larger than its column's number of bins");
  };
  parallel_for_pieces(table.n_positions, kPositionsPerTask, n_threads, stop, check_rows);
}

void check_entries(const BinTable& table, int64_t n_entries) {
  check(table.entry_offsets[0] == 0 && table.entry_offsets[table.n_positions] == n_entries,
        "entry offsets must run from 0 to the number of entries");
  for (int64_t t = 0; t < table.n_positions; ++t) {
    const int64_t begin = table.entry_offsets[t], end = table.entry_offsets[t + 1];
    check(begin <= end && end <= n_entries, "entry offsets must not decrease");
    for (int64_t e = begin; e < end; ++e) {
      const int32_t attribute = table.attributes[e];
      check(attribute >= 0 && attribute < table.n_attributes, "an attribute is out of range");
      check(e == begin || table.attributes[e - 1] < attribute,
            "attributes must be in ascending order within a position");
      check(table.attribute_bins[e] <= table.n_bins[table.n_dense + attribute] &&
                table.attribute_bins[e] != table.default_bins[attribute],
            "an entry has a bin that is out of range, or the default");
    }
  }
}

void check_columns(const BinTable& table) {
  for (int32_t c = 0; c < table.n_columns(); ++c)
    check(table.n_bins[c] >= 1 && table.n_bins[c] <= 255, "a column needs 1 to 255 bins");
  for (int32_t a = 0; a < table.n_attributes; ++a)
    check(table.default_bins[a] <= table.n_bins[table.n_dense + a],
          "a default bin is out of range");
}

void check_parents(const Codes& parents, const Offsets& offsets) {
  const int64_t* bounds = offsets.data();
  const size_t n_sequences = offsets.shape(0) - 1;
  check_shape(parents, {static_cast<size_t>(bounds[n_sequences])},
              "parents must have an entry for each position");
  for (size_t s = 0; s < n_sequences; ++s)
    for (int64_t t = bounds[s]; t < bounds[s + 1]; ++t)
      check(parents.data()[t] >= -1 && parents.data()[t] < bounds[s + 1] - bounds[s],
            "a parent lies outside its sequence");
}

std::unique_ptr<Bins> read_bins(Array<const uint8_t, 2> dense, std::optional<Offsets> entry_offsets,
                                std::optional<Codes> attributes,
                                std::optional<Bytes> attribute_bins, Codes n_bins,
                                Bytes default_bins, Bytes categorical, Offsets offsets,
                                std::optional<Codes> parents, int n_threads) {
  const size_t n_positions = dense.shape(0);
  check(n_positions < size_t{1} << 31, "at most 2^31 - 1 positions are supported");
  check_offsets(offsets, n_positions);
  if (parents) check_parents(*parents, offsets);
  check(n_bins.shape(0) == dense.shape(1) + default_bins.shape(0) &&
            categorical.shape(0) == n_bins.shape(0),
        "n_bins and categorical must have an entry for each column");
  check(entry_offsets.has_value() == attributes.has_value() &&
            entry_offsets.has_value() == attribute_bins.has_value() &&
            (entry_offsets.has_value() || default_bins.shape(0) == 0),
        "attributes need entry_offsets, attributes and attribute_bins, all three or none");
  BinTable table{static_cast<int64_t>(n_positions),
                 static_cast<int32_t>(dense.shape(1)),
                 static_cast<int32_t>(default_bins.shape(0)),
                 dense.data(),
                 data_or_null(entry_offsets),
                 data_or_null(attributes),
                 data_or_null(attribute_bins),
                 n_bins.data(),
                 default_bins.data(),
                 categorical.data()};
  check_columns(table);
  run_kernel([&](Stop& stop) { check_dense(table, n_threads, stop); });
  if (entry_offsets) {
    check(entry_offsets->shape(0) == n_positions + 1 &&
              attributes->shape(0) == attribute_bins->shape(0),
          "entries do not fit the positions");
    check_entries(table, static_cast<int64_t>(attributes->shape(0)));
  }
  return std::make_unique<Bins>(Bins{dense, entry_offsets, attributes, attribute_bins, n_bins,
                                     default_bins, categorical, offsets, parents, table});
}

}  // namespace

void bind_tree_data(nb::module_& module) {
  nb::class_<Bins>(module, "Bins", "Bins of the columns at every position.")
      .def(nb::new_(&read_bins), array("dense"), optional_array("entry_offsets"),
           optional_array("attributes"), optional_array("attribute_bins"), array("n_bins"),
           array("default_bins"), array("categorical"), array("offsets"),
           optional_array("parents") = nb::none(), nb::arg("n_threads") = 1);
  nb::class_<TreeData>(module, "TreeData", "Bins, laid out for growing trees.")
      .def(
          "__init__",
          [](TreeData* self, const Bins& bins, int before, int after, int ancestors, int n_threads,
             const BinCounts* counts) {
            check(before >= 0 && before <= kFarthest && after >= 0 && after <= kFarthest,
                  "a window reaches 0 to 255 positions to either side");
            check(ancestors >= 0 && ancestors <= kFarthest, "ancestors must be from 0 to 255");
            const Windows windows{bins.sequences(), {before, after, ancestors}};
            run_kernel([&](Stop& stop) {
              new (self) TreeData(bins.table, windows, counts, n_threads, stop);
            });
          },
          nb::keep_alive<1, 2>(), nb::arg("bins"), nb::arg("before"), nb::arg("after"),
          nb::arg("ancestors") = 0, nb::arg("n_threads") = 1,
          nb::arg("counts").none() = nb::none());
  nb::class_<BinCounts>(module, "BinCounts", "How many positions are in each bin.")
      .def_static(
          "of",
          [](const Bins& bins, int n_threads) {
            BinCounts counts;
            run_kernel([&](Stop& stop) { counts = count_bins(bins.table, n_threads, stop); });
            return counts;
          },
          nb::arg("bins"), nb::arg("n_threads"))
      .def("to_array",
           [](const BinCounts& counts) {
             std::vector<int64_t> all{counts.n_positions};
             all.insert(all.end(), counts.dense.begin(), counts.dense.end());
             all.insert(all.end(), counts.missing.begin(), counts.missing.end());
             return to_numpy(std::move(all));
           })
      .def(
          "replaced",
          [](const BinCounts& counts, Array<const int64_t, 1> all) {
            const size_t n_dense = counts.dense.size(), n_missing = counts.missing.size();
            check_shape(all, {1 + n_dense + n_missing},
                        "counts must have the size that to_array returns");
            const int64_t* first = all.data() + 1;
            return BinCounts{all.data()[0],
                             {first, first + n_dense},
                             {first + n_dense, first + n_dense + n_missing}};
          },
          array("counts"));
}

}  // namespace hedgerow::bindings
