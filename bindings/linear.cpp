#include "arrays.hpp"
#include "linear/blocks.hpp"
#include "linear/inverse_hessian.hpp"
#include "linear/layout.hpp"
#include "linear/leading.hpp"
#include "linear/scorer.hpp"
#include "linear/vectors.hpp"
#include "string_index.hpp"

namespace hedgerow::bindings {
namespace {

using Values = std::optional<Doubles>;

AttributeRows read_rows(const Offsets& offsets, const Codes& attributes, const Values& values) {
  check(offsets.shape(0) >= 1 && offsets.data()[0] == 0 &&
            offsets.data()[offsets.shape(0) - 1] == static_cast<int64_t>(attributes.shape(0)),
        "offsets must run from 0 to the number of entries");
  check_shape(values, {attributes.shape(0)}, "values must have the length of attributes");
  return {static_cast<int64_t>(offsets.shape(0)) - 1, offsets.data(), attributes.data(),
          data_or_null(values)};
}

void check_range(const Codes& codes, int64_t end, const char* message) {
  for (size_t i = 0; i < codes.shape(0); ++i) check(codes.data()[i] < end, message);
}

void check_length(const InverseHessian& hessian, size_t length) {
  check(static_cast<int64_t>(length) == hessian.n_weights(),
        "a vector must have an entry for each weight");
}

// Steps (m, n_weights), changes (m, n_weights), and the two products of each (m, 2), all flat.
std::tuple<Returned<float>, Returned<float>, Returned<double>> arrays_of(
    const InverseHessian& hessian) {
  std::vector<float> steps, changes;
  std::vector<double> products;
  for (const InverseHessian::Pair& pair : hessian.pairs()) {
    steps.insert(steps.end(), pair.step.begin(), pair.step.end());
    changes.insert(changes.end(), pair.change.begin(), pair.change.end());
    products.insert(products.end(), {pair.curvature, pair.squared});
  }
  return std::make_tuple(to_numpy(std::move(steps)), to_numpy(std::move(changes)),
                         to_numpy(std::move(products)));
}

void restore(InverseHessian& hessian, const Array<const float, 1>& steps,
             const Array<const float, 1>& changes, const Doubles& products) {
  const size_t n_pairs = products.shape(0) / 2, n_weights = hessian.n_weights();
  check(products.shape(0) == 2 * n_pairs && steps.shape(0) == n_pairs * n_weights &&
            changes.shape(0) == n_pairs * n_weights,
        "steps, changes and products must have the same number of pairs");
  std::deque<InverseHessian::Pair> pairs;
  for (size_t i = 0; i < n_pairs; ++i) {
    const float* step = steps.data() + i * n_weights;
    const float* change = changes.data() + i * n_weights;
    const double* product = products.data() + 2 * i;
    pairs.push_back(
        {{step, step + n_weights}, {change, change + n_weights}, product[0], product[1]});
  }
  hessian.restore(std::move(pairs));
}

// Where every attribute has all outputs they need not be listed.
WeightLayout read_layout(const Offsets& offsets, const Codes& outputs, int64_t n_outputs) {
  check(offsets.shape(0) >= 1, "weight offsets must not be empty");
  const int64_t n_attributes = static_cast<int64_t>(offsets.shape(0)) - 1;
  const int64_t n_weights = offsets.data()[n_attributes];
  const bool is_full = outputs.shape(0) == 0 && n_weights == n_attributes * n_outputs;
  check(is_full || n_weights == static_cast<int64_t>(outputs.shape(0)),
        "weight offsets must end at the number of weights");
  return {n_attributes, static_cast<int>(n_outputs), offsets.data(),
          is_full ? nullptr : outputs.data()};
}

size_t count_weights(const WeightLayout& layout) { return layout.offsets[layout.n_attributes]; }

// Weights or sums of the leading attributes of these blocks, for tables with this many rows.
template <class Leading>
void check_leading(const AttributeBlocks& blocks, const Leading& leading, size_t n_rows,
                   size_t n_columns) {
  check(leading.n_leading() == blocks.n_leading(),
        "blocks and weights must have the same number of leading attributes");
  check(static_cast<int64_t>(n_rows) == blocks.n_positions(),
        "scores and residuals must have a row for each position");
  check(static_cast<int>(n_columns) == leading.layout().n_outputs,
        "scores and residuals must have a column for each output");
  check(leading.layout().n_outputs == blocks.n_outputs() &&
            static_cast<int64_t>(count_weights(leading.layout())) == blocks.n_weights(),
        "blocks and weights must have the same layout");
}

}  // namespace

void bind_linear(nb::module_& module) {
  nb::class_<Scorer>(module, "Scorer", "Scores of positions under given weights.")
      .def(
          "__init__",
          [](Scorer* self, Offsets weight_offsets, Codes weight_outputs, int n_outputs,
             Doubles weights, Values biases) {
            const WeightLayout layout = read_layout(weight_offsets, weight_outputs, n_outputs);
            check_shape(weights, {count_weights(layout)}, "weights do not fit their outputs");
            check_shape(biases, {static_cast<size_t>(n_outputs)}, "biases do not fit the outputs");
            new (self) Scorer(layout, weights.data(), data_or_null(biases));
          },
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 5>(),
          array("weight_offsets"), array("weight_outputs"), nb::arg("n_outputs"), array("weights"),
          optional_array("biases"))
      .def(
          "add_scores",
          [](const Scorer& scorer, Offsets offsets, Codes attributes, Values values,
             Array<double, 2> scores, int n_threads) {
            const AttributeRows rows = read_rows(offsets, attributes, values);
            check(static_cast<int>(scores.shape(1)) == scorer.n_outputs(),
                  "scores must have a column for each output");
            check(static_cast<int64_t>(scores.shape(0)) == rows.n_positions,
                  "scores must have a row for each position");
            run_kernel(
                [&](Stop& stop) { scorer.add_scores(rows, scores.data(), n_threads, stop); });
          },
          array("offsets"), array("attributes"), optional_array("values"), array("scores"),
          nb::arg("n_threads"));
  nb::class_<LeadingWeights>(
      module, "LeadingWeights",
      "Weights; each of the first attributes has a row, with an entry for every output.")
      .def(
          "__init__",
          [](LeadingWeights* self, Offsets weight_offsets, Codes weight_outputs, int n_outputs,
             Doubles weights, int64_t n_leading, int n_threads) {
            const WeightLayout layout = read_layout(weight_offsets, weight_outputs, n_outputs);
            check_shape(weights, {count_weights(layout)}, "weights do not fit their outputs");
            run_kernel([&](Stop& stop) {
              new (self) LeadingWeights(layout, weights.data(), n_leading, n_threads, stop);
            });
          },
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 5>(),
          array("weight_offsets"), array("weight_outputs"), nb::arg("n_outputs"), array("weights"),
          nb::arg("n_leading"), nb::arg("n_threads"));
  nb::class_<LeadingSums>(module, "LeadingSums",
                          "Sums for a gradient; each of the first attributes has a row, with an "
                          "entry for every output.")
      .def(
          "__init__",
          [](LeadingSums* self, Offsets weight_offsets, Codes weight_outputs, int n_outputs,
             Doubles gradient, int64_t n_leading, int n_threads, int max_parts) {
            const WeightLayout layout = read_layout(weight_offsets, weight_outputs, n_outputs);
            check_shape(gradient, {count_weights(layout)},
                        "gradient must have an entry for each weight");
            run_kernel([&](Stop& stop) {
              new (self)
                  LeadingSums(layout, gradient.data(), n_leading, max_parts, n_threads, stop);
            });
          },
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), array("weight_offsets"),
          array("weight_outputs"), nb::arg("n_outputs"), array("gradient"), nb::arg("n_leading"),
          nb::arg("n_threads"), nb::arg("max_parts") = 1)
      .def(
          "write",
          [](const LeadingSums& sums, Array<double, 1> gradient, int n_threads) {
            check_shape(gradient, {count_weights(sums.layout())},
                        "gradient must have an entry for each weight");
            run_kernel([&](Stop& stop) { sums.write(gradient.data(), n_threads, stop); });
          },
          array("gradient"), nb::arg("n_threads"));
  nb::class_<AttributeBlocks>(module, "AttributeBlocks",
                              "Attributes of training positions, laid out for many passes.")
      .def(
          "__init__",
          [](AttributeBlocks* self, Offsets offsets, Codes attributes, Values values,
             Offsets weight_offsets, Codes weight_outputs, int n_outputs, int64_t n_leading) {
            const AttributeRows rows = read_rows(offsets, attributes, values);
            const WeightLayout layout = read_layout(weight_offsets, weight_outputs, n_outputs);
            check_range(attributes, layout.n_attributes, "an attribute is out of range");
            run_kernel(
                [&](Stop& stop) { new (self) AttributeBlocks(rows, layout, n_leading, stop); });
          },
          array("offsets"), array("attributes"), optional_array("values"), array("weight_offsets"),
          array("weight_outputs"), nb::arg("n_outputs"), nb::arg("n_leading"))
      .def(
          "fill_scores",
          [](const AttributeBlocks& blocks, const LeadingWeights& weights, Values biases,
             Array<double, 2> scores, int n_threads) {
            check_leading(blocks, weights, scores.shape(0), scores.shape(1));
            check_shape(biases, {scores.shape(1)}, "biases do not fit scores");
            run_kernel([&](Stop& stop) {
              blocks.fill_scores(weights, data_or_null(biases), scores.data(), n_threads, stop);
            });
          },
          nb::arg("weights"), optional_array("biases"), array("scores"), nb::arg("n_threads"))
      .def(
          "add_gradient",
          [](const AttributeBlocks& blocks, Table residuals, LeadingSums& sums,
             Array<double, 1> gradient, OptionalArray<double, 1> bias_gradient, int n_threads,
             double bound, Values powers) {
            check_leading(blocks, sums, residuals.shape(0), residuals.shape(1));
            check_shape(gradient, {count_weights(sums.layout())},
                        "gradient must have an entry for each weight");
            check_shape(bias_gradient, {residuals.shape(1)},
                        "bias_gradient must have an entry for each output");
            check_shape(powers, {static_cast<size_t>(sums.layout().n_attributes)},
                        "powers must have an entry for each attribute");
            const ResidualGrid grid{SumGrid(bound), data_or_null(powers)};
            run_kernel([&](Stop& stop) {
              blocks.add_gradient(residuals.data(), sums, gradient.data(),
                                  data_or_null(bias_gradient), grid, n_threads, stop);
            });
          },
          array("residuals"), nb::arg("sums"), array("gradient"), optional_array("bias_gradient"),
          nb::arg("n_threads"), nb::arg("bound") = 0.0, optional_array("powers") = nb::none());
  module.def(
      "count_positions",
      [](Offsets offsets, Codes attributes, int64_t n_attributes) {
        const AttributeRows rows = read_rows(offsets, attributes, {});
        check_range(attributes, n_attributes, "an attribute is out of range");
        std::vector<int64_t> counts;
        run_kernel([&](Stop& stop) { counts = count_positions(rows, n_attributes, stop); });
        return to_numpy(std::move(counts));
      },
      array("offsets"), array("attributes"), nb::arg("n_attributes"),
      "At how many positions each attribute occurs, however often it is repeated there.");
  module.def(
      "find_places",
      [](Offsets sequence_offsets, Offsets offsets, Codes attributes, const StringIndex& index) {
        const AttributeRows rows = read_rows(offsets, attributes, {});
        check_range(attributes, index.size(), "an attribute is out of range");
        check_offsets(sequence_offsets, rows.n_positions);
        std::vector<uint64_t> places;
        run_kernel([&](Stop& stop) {
          places = find_places(rows, index.digests(), sequence_offsets.data(),
                               static_cast<int64_t>(sequence_offsets.shape(0)) - 1, stop);
        });
        return to_numpy(std::move(places));
      },
      array("sequence_offsets"), array("offsets"), array("attributes"), nb::arg("index"),
      "A number for the first place of each attribute, made from the contents of its sequence, so "
      "that it does not depend on the order of the sequences.");
  module.def(
      "build_seen_pairs",
      [](Offsets offsets, Codes attributes, int64_t n_attributes, Codes outputs, int n_outputs) {
        const AttributeRows rows = read_rows(offsets, attributes, {});
        check_range(attributes, n_attributes, "an attribute is out of range");
        check_range(outputs, n_outputs, "an output is out of range");
        check(static_cast<int64_t>(outputs.shape(0)) == rows.n_positions,
              "outputs must have an entry for each position");
        SeenPairs out;
        run_kernel([&](Stop& stop) {
          out = build_seen_pairs(rows, n_attributes, outputs.data(), n_outputs, stop);
        });
        return std::make_tuple(to_numpy(std::move(out.offsets)), to_numpy(std::move(out.outputs)));
      },
      array("offsets"), array("attributes"), nb::arg("n_attributes"), array("outputs"),
      nb::arg("n_outputs"));
  module.def(
      "fill_multiple",
      [](double factor, Doubles x, Values plus, Array<double, 1> out, int n_threads) {
        check_shape(plus, {x.shape(0)}, "both vectors must have the same length");
        check_shape(out, {x.shape(0)}, "the result must have the length of the vectors");
        run_kernel([&](Stop& stop) {
          fill_multiple(factor, x.data(), data_or_null(plus), static_cast<int64_t>(x.shape(0)),
                        out.data(), n_threads, stop);
        });
      },
      nb::arg("factor"), array("x"), optional_array("plus"), array("out"), nb::arg("n_threads"));
  nb::class_<InverseHessian>(module, "InverseHessian",
                             "The inverse Hessian as L-BFGS knows it, from the last few steps.")
      .def(nb::init<int64_t, int>(), nb::arg("n_weights"), nb::arg("memory"))
      .def(
          "push",
          [](InverseHessian& hessian, Doubles direction, double size, Doubles gradient_before,
             Doubles gradient_after, int n_threads) {
            for (const Doubles& vector : {direction, gradient_before, gradient_after})
              check_length(hessian, vector.shape(0));
            const InverseHessian::Step step{direction.data(), size, gradient_before.data(),
                                            gradient_after.data()};
            run_kernel([&](Stop& stop) { hessian.push(step, n_threads, stop); });
          },
          array("direction"), nb::arg("size"), array("gradient_before"), array("gradient_after"),
          nb::arg("n_threads"))
      .def("clear", &InverseHessian::clear)
      .def("make_room", &InverseHessian::make_room)
      .def_prop_ro("is_empty", &InverseHessian::is_empty)
      .def("to_arrays", &arrays_of)
      .def("restore", &restore, array("steps"), array("changes"), array("products"))
      .def(
          "fill_direction",
          [](const InverseHessian& hessian, Doubles gradient, Array<double, 1> direction,
             int n_threads) {
            check_length(hessian, gradient.shape(0));
            check_length(hessian, direction.shape(0));
            run_kernel([&](Stop& stop) {
              hessian.fill_direction(gradient.data(), direction.data(), n_threads, stop);
            });
          },
          array("gradient"), array("direction"), nb::arg("n_threads"));
}

}  // namespace hedgerow::bindings
