#include "arrays.hpp"
#include "objectives/accuracy.hpp"

namespace hedgerow::bindings {
namespace {

using Marginals = Array<const double, 2>;
using Labels = Array<const int32_t, 1>;
using Weights = Array<const double, 1>;

LabelledMarginals read_marginals(const Marginals& marginals, const Labels& labels,
                                 const Weights& weights) {
  const size_t n_positions = marginals.shape(0), n_labels = marginals.shape(1);
  check(labels.shape(0) == n_positions && weights.shape(0) == n_positions,
        "labels and weights must have an entry for each position");
  for (size_t t = 0; t < n_positions; ++t)
    check(labels.data()[t] < static_cast<int32_t>(n_labels), "a label code is out of range");
  return {static_cast<int64_t>(n_positions), static_cast<int>(n_labels), marginals.data(),
          labels.data(), weights.data()};
}

}  // namespace

void bind_objectives(nb::module_& module) {
  module.def(
      "sum_accuracy",
      [](Marginals marginals, Labels labels, Weights weights, double sharpness) {
        const LabelledMarginals table = read_marginals(marginals, labels, weights);
        double sum = 0.0;
        run_kernel([&](Stop& stop) { sum = sum_accuracy(table, sharpness, stop); });
        return sum;
      },
      nb::arg("marginals").noconvert(), nb::arg("labels").noconvert(),
      nb::arg("weights").noconvert(), nb::arg("sharpness"));
  module.def(
      "fill_accuracy_gradient",
      [](Marginals marginals, Labels labels, Weights weights, double sharpness,
         Array<double, 2> gradient) {
        const LabelledMarginals table = read_marginals(marginals, labels, weights);
        check(gradient.shape(0) == marginals.shape(0) && gradient.shape(1) == marginals.shape(1),
              "gradient must have the shape of marginals");
        run_kernel(
            [&](Stop& stop) { fill_accuracy_gradient(table, sharpness, gradient.data(), stop); });
      },
      nb::arg("marginals").noconvert(), nb::arg("labels").noconvert(),
      nb::arg("weights").noconvert(), nb::arg("sharpness"), nb::arg("gradient").noconvert());
}

}  // namespace hedgerow::bindings
