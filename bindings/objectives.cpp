#include "arrays.hpp"
#include "objectives/accuracy.hpp"
#include "objectives/curvatures.hpp"
#include "objectives/observed.hpp"

namespace hedgerow::bindings {
namespace {

LabelledMarginals read_marginals(const Table& marginals, const Codes& labels,
                                 const Doubles& weights) {
  const size_t n_positions = marginals.shape(0), n_labels = marginals.shape(1);
  check(labels.shape(0) == n_positions && weights.shape(0) == n_positions,
        "labels and weights must have an entry for each position");
  check_codes(labels, n_positions, n_labels, 1);
  return {static_cast<int64_t>(n_positions), static_cast<int>(n_labels), marginals.data(),
          labels.data(), weights.data()};
}

Observed read_observed(size_t n_positions, size_t n_outputs, const Codes& codes,
                       const double* weights, int n_threads) {
  check_codes(codes, n_positions, n_outputs, n_threads);
  return {static_cast<int64_t>(n_positions), static_cast<int64_t>(n_outputs), codes.data(),
          weights};
}

// `gammas` are (N,) or (N, K).
void write_curvatures(Table probabilities,
                      nb::ndarray<const float, nb::c_contig, nb::device::cpu> gammas,
                      std::optional<Doubles> scales, float rate, float modest, Array<float, 2> out,
                      int n_threads) {
  const size_t n_positions = probabilities.shape(0), n_labels = probabilities.shape(1);
  const bool by_label = gammas.ndim() == 2;
  check((gammas.ndim() == 1 || by_label) && gammas.shape(0) == n_positions &&
            (!by_label || gammas.shape(1) == n_labels),
        "gammas must have an entry for each position, or one for each position and label");
  check_shape(scales, {n_positions}, "scales must have an entry for each position");
  check_shape(out, {n_positions, n_labels}, "out must have the shape of probabilities");
  const CurvatureTable table{static_cast<int64_t>(n_positions),
                             static_cast<int>(n_labels),
                             probabilities.data(),
                             gammas.data(),
                             by_label,
                             data_or_null(scales),
                             {rate, modest}};
  run_kernel([&](Stop& stop) { fill_curvatures(table, out.data(), n_threads, stop); });
}

}  // namespace

void bind_objectives(nb::module_& module) {
  module.def(
      "fill_accuracy_terms",
      [](Table marginals, Codes labels, Doubles weights, double sharpness, Array<double, 1> terms) {
        const LabelledMarginals table = read_marginals(marginals, labels, weights);
        check_shape(terms, {marginals.shape(0)}, "terms must have an entry for each position");
        run_kernel([&](Stop& stop) { fill_accuracy_terms(table, sharpness, terms.data(), stop); });
      },
      array("marginals"), array("labels"), array("weights"), nb::arg("sharpness"), array("terms"));
  module.def(
      "fill_accuracy_gradient",
      [](Table marginals, Codes labels, Doubles weights, double sharpness,
         Array<double, 2> gradient) {
        const LabelledMarginals table = read_marginals(marginals, labels, weights);
        check_shape(gradient, {marginals.shape(0), marginals.shape(1)},
                    "gradient must have the shape of marginals");
        run_kernel(
            [&](Stop& stop) { fill_accuracy_gradient(table, sharpness, gradient.data(), stop); });
      },
      array("marginals"), array("labels"), array("weights"), nb::arg("sharpness"),
      array("gradient"));
  module.def(
      "subtract_observed",
      [](Array<double, 2> expected, Codes codes, std::optional<Doubles> weights, int n_threads) {
        const size_t n_positions = expected.shape(0);
        check_shape(weights, {n_positions}, "weights must have an entry for each position");
        const Observed observed =
            read_observed(n_positions, expected.shape(1), codes, data_or_null(weights), n_threads);
        run_kernel(
            [&](Stop& stop) { subtract_observed(observed, expected.data(), n_threads, stop); });
      },
      array("expected"), array("codes"), optional_array("weights"), nb::arg("n_threads"));
  module.def(
      "count_right",
      [](Table probabilities, Codes codes, int n_threads) {
        const Observed observed = read_observed(probabilities.shape(0), probabilities.shape(1),
                                                codes, nullptr, n_threads);
        int64_t n_right = 0;
        run_kernel([&](Stop& stop) {
          n_right = count_right(observed, probabilities.data(), n_threads, stop);
        });
        return n_right;
      },
      array("probabilities"), array("codes"), nb::arg("n_threads"));
  module.def(
      "find_most_probable",
      [](Table probabilities, int n_threads) {
        check(probabilities.shape(1) >= 1, "probabilities must have at least one column");
        auto codes = make_array<int32_t>(static_cast<int64_t>(probabilities.shape(0)));
        run_kernel([&](Stop& stop) {
          fill_most_probable(probabilities.data(), static_cast<int64_t>(probabilities.shape(0)),
                             static_cast<int64_t>(probabilities.shape(1)), codes.data(), n_threads,
                             stop);
        });
        return codes;
      },
      array("probabilities"), nb::arg("n_threads"),
      "Code of the most probable output of each position, the first if there are several.");
  module.def(
      "count_pairs",
      [](Codes codes, Offsets offsets, int n_labels) {
        check(n_labels >= 1, "there must be at least one label");
        check_offsets(offsets, codes.shape(0));
        check_codes(codes, codes.shape(0), static_cast<size_t>(n_labels), 1);
        return to_numpy(count_pairs(codes.data(), offsets.data(),
                                    static_cast<int64_t>(offsets.shape(0)) - 1, n_labels));
      },
      array("codes"), array("offsets"), nb::arg("n_labels"),
      "How often label k follows label j in chains, at j * n_labels + k; a code of -1 is a label "
      "that is not known.");
  module.def("fill_curvatures", &write_curvatures, array("probabilities"), array("gammas"),
             optional_array("scales"), nb::arg("rate"), nb::arg("modest"), array("out"),
             nb::arg("n_threads"));
}

}  // namespace hedgerow::bindings
