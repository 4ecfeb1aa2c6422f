#include "arrays.hpp"
#include "linear/potentials.hpp"

namespace hedgerow::bindings {
namespace {

using Offsets = Array<const int64_t, 1>;
using Columns = Array<const int32_t, 1>;
using Values = OptionalArray<const double, 1>;

SparseMatrix read_matrix(const Offsets& offsets, const Columns& columns, const Values& values,
                         int64_t n_columns) {
  check(offsets.shape(0) >= 1 && offsets.data()[0] == 0 &&
            offsets.data()[offsets.shape(0) - 1] == static_cast<int64_t>(columns.shape(0)),
        "offsets must run from 0 to the number of entries");
  check(!values || values->shape(0) == columns.shape(0), "values must have an entry for each column");
  return {static_cast<int64_t>(offsets.shape(0)) - 1, n_columns, offsets.data(), columns.data(),
          data_or_null(values)};
}

WeightLayout read_layout(const Offsets& offsets, const Columns& outputs, int64_t n_outputs) {
  check(offsets.shape(0) >= 1 &&
            offsets.data()[offsets.shape(0) - 1] == static_cast<int64_t>(outputs.shape(0)),
        "weight offsets must end at the number of weights");
  return {static_cast<int64_t>(offsets.shape(0)) - 1, static_cast<int>(n_outputs), offsets.data(),
          outputs.data()};
}

}  // namespace

void bind_linear(nb::module_& module) {
  module.def(
      "fill_scores",
      [](Offsets offsets, Columns columns, Values values, Offsets weight_offsets,
         Columns weight_outputs, Array<const double, 1> weights,
         OptionalArray<const double, 1> biases, Array<double, 2> scores, int n_threads) {
        const WeightLayout layout = read_layout(weight_offsets, weight_outputs, scores.shape(1));
        const SparseMatrix matrix = read_matrix(offsets, columns, values, layout.n_attributes);
        check(weights.shape(0) == weight_outputs.shape(0), "weights do not fit their outputs");
        check(!biases || biases->shape(0) == scores.shape(1), "biases do not fit scores");
        check(static_cast<int64_t>(scores.shape(0)) == matrix.n_rows,
              "scores must have a row for each position");
        run_kernel([&](Stop& stop) {
          fill_scores(matrix, layout, weights.data(), data_or_null(biases), scores.data(),
                      n_threads, stop);
        });
      },
      nb::arg("offsets").noconvert(), nb::arg("columns").noconvert(),
      nb::arg("values").noconvert().none(), nb::arg("weight_offsets").noconvert(),
      nb::arg("weight_outputs").noconvert(), nb::arg("weights").noconvert(),
      nb::arg("biases").noconvert().none(), nb::arg("scores").noconvert(), nb::arg("n_threads"));
  module.def(
      "fill_gradient",
      [](Offsets offsets, Columns columns, Values values, Offsets weight_offsets,
         Columns weight_outputs, Array<const double, 2> residuals, Array<double, 1> gradient,
         int n_threads) {
        const SparseMatrix matrix = read_matrix(offsets, columns, values, residuals.shape(0));
        const WeightLayout layout = read_layout(weight_offsets, weight_outputs, residuals.shape(1));
        check(matrix.n_rows == layout.n_attributes, "attributes do not fit their weights");
        check(gradient.shape(0) == weight_outputs.shape(0), "gradient must have a weight's shape");
        run_kernel([&](Stop& stop) {
          fill_gradient(matrix, layout, residuals.data(), gradient.data(), n_threads, stop);
        });
      },
      nb::arg("offsets").noconvert(), nb::arg("columns").noconvert(),
      nb::arg("values").noconvert().none(), nb::arg("weight_offsets").noconvert(),
      nb::arg("weight_outputs").noconvert(), nb::arg("residuals").noconvert(),
      nb::arg("gradient").noconvert(), nb::arg("n_threads"));
  module.def(
      "build_transpose",
      [](Offsets offsets, Columns columns, Values values, int64_t n_columns) {
        const SparseMatrix matrix = read_matrix(offsets, columns, values, n_columns);
        for (size_t e = 0; e < columns.shape(0); ++e)
          check(columns.data()[e] >= 0 && columns.data()[e] < n_columns, "a column is out of range");
        Transpose out;
        run_kernel([&](Stop&) { out = build_transpose(matrix); });
        return nb::make_tuple(
            to_numpy(std::move(out.offsets)), to_numpy(std::move(out.columns)),
            values ? nb::cast(to_numpy(std::move(out.values))) : nb::object(nb::none()));
      },
      nb::arg("offsets").noconvert(), nb::arg("columns").noconvert(),
      nb::arg("values").noconvert().none(), nb::arg("n_columns"));
  module.def(
      "build_seen_pairs",
      [](Offsets offsets, Columns columns, Array<const int32_t, 1> outputs, int n_outputs) {
        const SparseMatrix matrix = read_matrix(offsets, columns, {}, outputs.shape(0));
        for (size_t t = 0; t < outputs.shape(0); ++t)
          check(outputs.data()[t] < n_outputs, "an output is out of range");
        SeenPairs out;
        run_kernel([&](Stop&) { out = build_seen_pairs(matrix, outputs.data(), n_outputs); });
        return nb::make_tuple(to_numpy(std::move(out.offsets)), to_numpy(std::move(out.outputs)));
      },
      nb::arg("offsets").noconvert(), nb::arg("columns").noconvert(),
      nb::arg("outputs").noconvert(), nb::arg("n_outputs"));
}

}  // namespace hedgerow::bindings
