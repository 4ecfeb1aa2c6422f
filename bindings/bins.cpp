#include "trees/bins.hpp"

#include <algorithm>
#include <limits>

#include "arrays.hpp"
#include "trees.hpp"
#include "trees/cuts.hpp"
#include "usable_numbers.hpp"

namespace hedgerow::bindings {
namespace {

// The search never leaves a column's cuts, whatever their order.
Cuts read_cuts(const Offsets& offsets, const Doubles& cuts) {
  check(offsets.shape(0) >= 1 && offsets.data()[0] >= 0, "cut offsets must begin at 0 or later");
  for (size_t c = 1; c < offsets.shape(0); ++c) {
    const int64_t begin = offsets.data()[c - 1], end = offsets.data()[c];
    check(begin <= end && end <= static_cast<int64_t>(cuts.shape(0)),
          "cut offsets must not decrease or exceed the number of cuts");
    check(end - begin <= kMaxCuts, "a column has more than 254 cuts");
  }
  return {offsets.data(), cuts.data()};
}

Cuts read_cuts_of(const Numbers& values, const Offsets& offsets, const Doubles& cuts) {
  const Cuts read = read_cuts(offsets, cuts);
  check_shape(offsets, {values.shape(1) + 1},
              "cut offsets must have one entry more than there are columns");
  return read;
}

ColumnValues read_values(const nb::any& given, Offsets cut_offsets, Doubles cuts, Offsets offsets) {
  const Numbers values = read_numbers(given);
  read_cuts_of(values, cut_offsets, cuts);
  visit_numbers(values, [](const auto*) {});
  check_offsets(offsets, values.shape(0));
  return {values, cut_offsets, cuts, offsets};
}

void check_column_numbers(const Codes& columns, int64_t n_columns) {
  check(are_within(columns, 0, static_cast<size_t>(std::max<int64_t>(n_columns, 0))),
        "a column is out of range");
}

template <class Value>
int64_t find_unusable_number(Array<const Value, 1> values, double largest, bool may_be_missing,
                             int n_threads) {
  const double most = std::min<double>(largest, std::numeric_limits<Value>::max());
  const auto n = static_cast<int64_t>(values.shape(0));
  int64_t found = n;
  run_kernel([&](Stop& stop) {
    found =
        find_unusable(values.data(), n, static_cast<Value>(most), may_be_missing, n_threads, stop);
  });
  return found;
}

using ReturnedCuts = std::tuple<Returned<int64_t>, Returned<double>>;

ReturnedCuts return_cuts(ColumnCuts&& cuts) {
  return {to_numpy(std::move(cuts.counts)), to_numpy(std::move(cuts.values))};
}

void check_max_bins(int max_bins) {
  check(max_bins >= 2 && max_bins <= kMaxCuts + 1, "max_bins must be from 2 to 255");
}

ReturnedCuts cut_all_columns(const nb::any& given, std::optional<Offsets> rows, int max_bins,
                             int n_threads) {
  const Numbers values = read_numbers(given);
  check_max_bins(max_bins);
  for (size_t i = 0; rows && i < rows->shape(0); ++i)
    check(rows->data()[i] >= 0 && rows->data()[i] < static_cast<int64_t>(values.shape(0)),
          "a row is out of range");
  const size_t n_rows = rows ? rows->shape(0) : values.shape(0);
  check(n_rows < size_t{1} << 32, "at most 2^32 - 1 rows are supported");
  ColumnCuts cuts;
  visit_numbers(values, [&](const auto* numbers) {
    run_kernel([&](Stop& stop) {
      cuts = cut_columns(numbers, static_cast<int64_t>(values.shape(1)), data_or_null(rows),
                         static_cast<int64_t>(n_rows), max_bins, n_threads, stop);
    });
  });
  return return_cuts(std::move(cuts));
}

ReturnedCuts cut_all_attributes(Codes attributes, Doubles values, int64_t n_positions,
                                int64_t n_attributes, int max_bins, int n_threads) {
  check_max_bins(max_bins);
  check_shape(values, {attributes.shape(0)}, "values must have an entry for each attribute");
  check_column_numbers(attributes, n_attributes);
  ColumnCuts cuts;
  run_kernel([&](Stop& stop) {
    cuts = cut_attributes({n_positions, n_attributes, static_cast<int64_t>(values.shape(0)),
                           attributes.data(), values.data()},
                          max_bins, n_threads, stop);
  });
  return return_cuts(std::move(cuts));
}

}  // namespace

void bind_bins(nb::module_& module) {
  module.def("find_unusable", &find_unusable_number<float>, array("values"), nb::arg("largest"),
             nb::arg("may_be_missing"), nb::arg("n_threads"),
             "Index of the first number that is not between -largest and largest, or that is NaN "
             "unless numbers may be missing; the number of values if there is none.");
  module.def("find_unusable", &find_unusable_number<double>, array("values"), nb::arg("largest"),
             nb::arg("may_be_missing"), nb::arg("n_threads"));
  module.def(
      "cut_columns", &cut_all_columns, nb::arg("values"), optional_array("rows"),
      nb::arg("max_bins"), nb::arg("n_threads"),
      "How many cuts each column has, and the cuts, computed from some rows, or from all if rows "
      "is None.");
  module.def(
      "cut_attributes", &cut_all_attributes, array("attributes"), array("values"),
      nb::arg("n_positions"), nb::arg("n_attributes"), nb::arg("max_bins"), nb::arg("n_threads"),
      "Like `cut_columns`, from the entries of sparse attributes; those with no other values "
      "than 0 and 1 have no cuts.");
  nb::class_<ColumnValues>(module, "Values",
                           "Numbers of the columns at every position, and the cuts of their bins.")
      .def(nb::new_(&read_values), nb::arg("values"), array("cut_offsets"), array("cuts"),
           array("offsets"));
  module.def(
      "fill_bins",
      [](const nb::any& given, Offsets cut_offsets, Doubles cuts, Array<uint8_t, 2> bins,
         int n_threads) {
        const Numbers values = read_numbers(given);
        const Cuts read = read_cuts_of(values, cut_offsets, cuts);
        check(bins.shape(0) == values.shape(0) && bins.shape(1) >= values.shape(1),
              "bins must have the rows of values, and at least its columns");
        visit_numbers(values, [&](const auto* numbers) {
          run_kernel([&](Stop& stop) {
            fill_bins(read, numbers, static_cast<int64_t>(values.shape(0)),
                      static_cast<int64_t>(values.shape(1)), bins.data(),
                      static_cast<int64_t>(bins.shape(1)), n_threads, stop);
          });
        });
      },
      nb::arg("values"), array("cut_offsets"), array("cuts"), array("bins"), nb::arg("n_threads"));
  module.def(
      "fill_entry_bins",
      [](Doubles values, Codes columns, Offsets cut_offsets, Doubles cuts, Array<uint8_t, 1> bins,
         int n_threads) {
        const Cuts read = read_cuts(cut_offsets, cuts);
        const auto n_columns = static_cast<int64_t>(cut_offsets.shape(0)) - 1;
        check(columns.shape(0) == values.shape(0) && bins.shape(0) == values.shape(0),
              "columns and bins must have an entry for each value");
        check_column_numbers(columns, n_columns);
        run_kernel([&](Stop& stop) {
          fill_entry_bins(read, values.data(), columns.data(),
                          static_cast<int64_t>(values.shape(0)), bins.data(), n_threads, stop);
        });
      },
      array("values"), array("columns"), array("cut_offsets"), array("cuts"), array("bins"),
      nb::arg("n_threads"));
}

}  // namespace hedgerow::bindings
