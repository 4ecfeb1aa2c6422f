#include "trees.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "trees/device_trees.hpp"
#include "trees/grow.hpp"
#include "trees/shared_growth.hpp"
#include "trellis/edge_pairs.hpp"

namespace hedgerow::bindings {
namespace {

std::shared_ptr<MemoryPool> or_new(const std::shared_ptr<MemoryPool>& pool) {
  return pool == nullptr ? std::make_shared<MemoryPool>() : pool;
}

// Bits of gradients and of curvatures, see UnitBits.
const std::pair<int, int> kUnitBits{UnitBits::kGradientsOfSum, UnitBits::kCurvaturesOfSum};

using Identities = OptionalArray<const uint64_t, 1>;

// The workers of a Comm in Python, or a single worker.
class CommWorkers : public Workers {
 public:
  explicit CommWorkers(nb::object comm) : comm_(std::move(comm)) {}

  void sum(std::span<int64_t> numbers) const override { replace("sum", numbers); }
  void max(std::span<double> numbers) const override { replace("max", numbers); }

 private:
  template <class T>
  void replace(const char* method, std::span<T> numbers) const {
    const nb::gil_scoped_acquire gil;
    if (comm_.is_none()) return;
    const auto all = nb::cast<Array<const T, 1>>(
        comm_.attr(method)(to_numpy(std::vector<T>(numbers.begin(), numbers.end()))));
    check(all.shape(0) == numbers.size(),
          "the sums of all workers must have the size of those of one worker");
    std::copy_n(all.data(), numbers.size(), numbers.begin());
  }

  nb::object comm_;
};

UnitBits read_unit_bits(std::pair<int, int> bits) {
  check(bits.first >= UnitBits::kGradientsOfSum && bits.second >= UnitBits::kCurvaturesOfSum &&
            std::max(bits.first, bits.second) <= 48,
        "units must have 30 to 48 bits, those of curvatures at least 31");
  return {bits.first, bits.second};
}

std::unique_ptr<Examples> read_examples(
    Table gradients, Array<const float, 2> curvatures, double trim, std::optional<Doubles> scales,
    OptionalArray<const uint8_t, 1> selected, double share, double negative_ratio,
    NegativeWeight negative_weight, std::optional<Codes> codes, uint64_t key,
    const Identities& identities, double bound, bool opposite, int n_threads,
    std::shared_ptr<MemoryPool> pool, nb::object comm, std::pair<int, int> unit_bits,
    std::optional<Codes> observed, std::pair<float, float> rule) {
  const size_t n_positions = gradients.shape(0), n_outputs = gradients.shape(1);
  check(n_positions < size_t{1} << 31, "at most 2^31 - 1 positions are supported");
  check(curvatures.shape(0) == n_positions &&
            (curvatures.shape(1) == n_outputs || curvatures.shape(1) == 1),
        "curvatures must have an entry for each position and output, or one for each position");
  check_shape(scales, {n_positions}, "scales must have an entry for each position");
  check_shape(selected, {n_positions}, "selected must have an entry for each position");
  check_shape(identities, {n_positions}, "identities must have an entry for each position");
  check(share > 0.0, "a share of the examples must be above 0");
  check(codes || !(negative_ratio > 0.0), "a negative ratio needs codes");
  for (const auto& known : {codes, observed})
    if (known) check_codes(*known, n_positions, n_outputs, n_threads);
  check(!opposite || (n_outputs == 2 && !(negative_ratio > 0.0)),
        "opposite outputs need exactly two outputs, without sampling of negative examples");
  const DerivativeTable table{static_cast<int64_t>(n_positions),
                              static_cast<int>(n_outputs),
                              gradients.data(),
                              curvatures.data(),
                              curvatures.shape(1) == n_outputs,
                              opposite,
                              data_or_null(observed),
                              {rule.first, rule.second}};
  const Sampling sampling{trim,
                          data_or_null(scales),
                          data_or_null(selected),
                          negative_ratio,
                          data_or_null(codes),
                          key,
                          negative_weight,
                          share,
                          data_or_null(identities),
                          bound};
  const CommWorkers workers(std::move(comm));
  const UnitBits bits = read_unit_bits(unit_bits);
  std::unique_ptr<Examples> examples;
  run_kernel([&](Stop& stop) {
    examples =
        std::make_unique<Examples>(table, sampling, or_new(pool), n_threads, stop, workers, bits);
  });
  return examples;
}

std::unique_ptr<Examples> list_examples(Offsets offsets, Codes positions,
                                        Array<const float, 1> gradients,
                                        Array<const float, 1> curvatures,
                                        std::pair<int, int> unit_bits) {
  check_offsets(offsets, positions.shape(0));
  check(gradients.shape(0) == positions.shape(0) && curvatures.shape(0) == positions.shape(0),
        "gradients and curvatures must have an entry for each position");
  std::vector<std::vector<Derivatives>> by_output(offsets.shape(0) - 1);
  for (size_t k = 0; k < by_output.size(); ++k)
    for (int64_t i = offsets.data()[k]; i < offsets.data()[k + 1]; ++i) {
      by_output[k].push_back({positions.data()[i], gradients.data()[i], curvatures.data()[i]});
    }
  return std::make_unique<Examples>(by_output, std::make_shared<MemoryPool>(),
                                    read_unit_bits(unit_bits));
}

Contexts read_contexts(int n_labels, Codes labels, Array<const uint8_t, 2> before) {
  check(n_labels >= 1 && labels.shape(0) == before.shape(0),
        "every edge needs a label and labels before it");
  return Contexts(n_labels, {labels.data(), labels.shape(0)}, static_cast<int>(before.shape(1)),
                  {before.data(), before.size()});
}

// What the examples of some more sequences depend on besides their derivatives; see Sampling.
struct AddedExamples {
  double trim;
  std::optional<Doubles> scales;
  OptionalArray<const uint8_t, 1> selected;
  double bound;
  int n_threads;
};

void add_examples(ContextExamples& examples, const EdgeDerivatives& derivatives,
                  const AddedExamples& more) {
  const int64_t first = derivatives.first_position;
  check(first >= 0 && first >= examples.n_positions(), "positions must come in order");
  const auto end = static_cast<size_t>(first + derivatives.n_positions);
  check(end < size_t{1} << 31, "at most 2^31 - 1 positions are supported");
  for (int64_t t = 0; derivatives.observed && t < derivatives.n_positions; ++t)
    check(derivatives.observed[t] < examples.contexts().n_edges(),
          "an observed edge is out of range");
  check(!more.scales || more.scales->shape(0) >= end,
        "scales must have an entry for each position");
  check(!more.selected || more.selected->shape(0) >= end,
        "selected must have an entry for each position");
  Sampling sampling{more.trim, data_or_null(more.scales), data_or_null(more.selected), 0.0, nullptr,
                    0};
  sampling.bound = more.bound;
  run_kernel([&](Stop& stop) { examples.add(derivatives, sampling, more.n_threads, stop); });
}

void add_context_examples(ContextExamples& examples, int64_t first_position, Offsets offsets,
                          Table gradients, std::optional<Table> probabilities,
                          Array<const float, 1> curvatures, std::optional<Codes> observed,
                          std::optional<Doubles> weights, std::optional<Codes> parents,
                          std::optional<Table> totals, double trim, std::optional<Doubles> scales,
                          OptionalArray<const uint8_t, 1> selected, double bound, int n_threads) {
  const size_t n_positions = gradients.shape(0);
  const auto n_edges = static_cast<size_t>(examples.contexts().n_edges());
  check_offsets(offsets, n_positions);
  check(gradients.shape(1) == n_edges, "gradients must have an entry for each position and edge");
  check_shape(probabilities, {n_positions, n_edges},
              "probabilities must have an entry for each position and edge");
  check_shape(curvatures, {n_positions}, "curvatures must have an entry for each position");
  check_shape(observed, {n_positions}, "observed must have an edge for each position");
  check_shape(weights, {n_positions}, "weights must have an entry for each position");
  check_shape(parents, {n_positions}, "parents must have an entry for each position");
  check_shape(totals, {n_positions, static_cast<size_t>(examples.n_outputs())},
              "totals must have an entry for each position and output");
  check(observed || !totals, "totals are for gradients that are expected counts: pass observed");
  const EdgeDerivatives derivatives{first_position,
                                    static_cast<int64_t>(n_positions),
                                    static_cast<int64_t>(offsets.shape(0)) - 1,
                                    offsets.data(),
                                    gradients.data(),
                                    data_or_null(probabilities),
                                    curvatures.data(),
                                    data_or_null(observed),
                                    data_or_null(weights),
                                    data_or_null(parents),
                                    data_or_null(totals)};
  add_examples(examples, derivatives, {trim, scales, selected, bound, n_threads});
}

void add_pair_examples(ContextExamples& examples, int64_t first_position, Offsets offsets,
                       Array<const float, 3> by_label, Doubles observed_probs, Codes observed,
                       Table totals, Array<const float, 1> curvatures, double trim,
                       std::optional<Doubles> scales, OptionalArray<const uint8_t, 1> selected,
                       double bound, int n_threads) {
  const size_t n_positions = totals.shape(0);
  const auto n_outputs = static_cast<size_t>(examples.n_outputs());
  check(examples.contexts().are_pairs() && n_outputs >= PairsByLabel::kFewestLabels,
        "by_label needs contexts that are label pairs, and many labels");
  check_offsets(offsets, n_positions);
  check_by_label(by_label, observed_probs, first_position, n_positions, n_outputs);
  check_shape(totals, {n_positions, n_outputs},
              "totals must have an entry for each position and output");
  check_shape(curvatures, {n_positions}, "curvatures must have an entry for each position");
  check_shape(observed, {n_positions}, "observed must have an edge for each position");
  EdgeDerivatives derivatives{first_position,
                              static_cast<int64_t>(n_positions),
                              static_cast<int64_t>(offsets.shape(0)) - 1,
                              offsets.data(),
                              nullptr,
                              nullptr,
                              curvatures.data(),
                              observed.data(),
                              nullptr,
                              nullptr,
                              totals.data()};
  derivatives.by_label = by_label.data();
  derivatives.n_by_label = static_cast<int64_t>(by_label.shape(1));
  derivatives.observed_probs = observed_probs.data();
  add_examples(examples, derivatives, {trim, scales, selected, bound, n_threads});
}

void draw_context_examples(ContextExamples& examples, double share, double negative_ratio,
                           NegativeWeight negative_weight, std::optional<Codes> codes, uint64_t key,
                           const Identities& identities, int n_threads) {
  check(share > 0.0, "a share of the examples must be above 0");
  check(!(negative_ratio > 0.0) ||
            (codes && static_cast<int64_t>(codes->shape(0)) >= examples.n_positions()),
        "sampling by label needs a code for each position");
  check(!identities || static_cast<int64_t>(identities->shape(0)) >= examples.n_positions(),
        "identities must have an entry for each position");
  const Sampling sampling{
      0.0, nullptr,         nullptr, negative_ratio,          data_or_null(codes),
      key, negative_weight, share,   data_or_null(identities)};
  run_kernel([&](Stop& stop) { examples.draw(sampling, n_threads, stop); });
}

std::tuple<Returned<int32_t>, Returned<float>, Returned<float>> arrays_of_output(
    const Examples& examples, int output) {
  check(output >= 0 && output < examples.n_outputs(), "the output is out of range");
  std::vector<int32_t> positions;
  std::vector<float> gradients, curvatures;
  for (const Derivatives& d : examples.of_output(output)) {
    positions.push_back(d.position);
    gradients.push_back(d.gradient);
    curvatures.push_back(d.curvature);
  }
  return {to_numpy(std::move(positions)), to_numpy(std::move(gradients)),
          to_numpy(std::move(curvatures))};
}

MissingRules read_missing(const std::string& name, OptionalArray<const uint8_t, 1> fills) {
  const std::map<std::string, MissingMethod> methods{{"learned", MissingMethod::kLearned},
                                                     {"fractional", MissingMethod::kFractional},
                                                     {"surrogate", MissingMethod::kSurrogate},
                                                     {"impute", MissingMethod::kImpute},
                                                     {"indicator", MissingMethod::kIndicator}};
  const auto method = methods.find(name);
  check(method != methods.end(), "unknown method for missing values");
  const bool fills_in =
      method->second == MissingMethod::kImpute || method->second == MissingMethod::kIndicator;
  check(fills.has_value() == fills_in, "fills are for impute and indicator");
  MissingRules rules{method->second};
  if (fills) rules.fills.assign(fills->data(), fills->data() + fills->shape(0));
  return rules;
}

GrowthRules read_rules(int max_leaves, int max_depth, double min_child_weight,
                       double min_split_gain, double reg_lambda, double max_step,
                       double learning_rate, double colsample_bytree, double colsample_bynode,
                       double label_lambda, const std::string& missing,
                       OptionalArray<const uint8_t, 1> fills) {
  check(max_leaves >= 1 && max_leaves <= kMaxTreeNodes / 2, "max_leaves is out of range");
  check(max_depth >= 0, "max_depth is negative");
  return {max_leaves,
          max_depth,
          min_child_weight,
          min_split_gain,
          reg_lambda,
          max_step,
          learning_rate,
          colsample_bytree,
          colsample_bynode,
          label_lambda,
          read_missing(missing, fills)};
}

std::unique_ptr<ColumnRules> read_column_rules(int32_t n_columns,
                                               OptionalArray<const int8_t, 2> directions,
                                               std::optional<Offsets> group_offsets,
                                               std::optional<Codes> group_columns,
                                               int max_columns) {
  std::vector<int8_t> by_output;
  if (directions) {
    check(static_cast<int64_t>(directions->shape(1)) == n_columns,
          "directions must have an entry for each output and column");
    by_output.assign(directions->data(), directions->data() + directions->size());
  }
  check(group_offsets.has_value() == group_columns.has_value(),
        "groups need both offsets and columns");
  std::vector<std::vector<int32_t>> groups;
  if (group_offsets) {
    check_offsets(*group_offsets, group_columns->shape(0));
    const int64_t* offsets = group_offsets->data();
    for (size_t g = 0; g + 1 < group_offsets->shape(0); ++g)
      groups.emplace_back(group_columns->data() + offsets[g],
                          group_columns->data() + offsets[g + 1]);
  }
  return std::make_unique<ColumnRules>(n_columns, std::move(by_output), std::move(groups),
                                       max_columns);
}

template <class AnyExamples>
Forest grow(const TreeData& data, const AnyExamples& examples, const GrowthRules& rules,
            uint64_t key, int n_threads, const ColumnRules* column_rules,
            std::shared_ptr<MemoryPool> pool) {
  check(examples.n_positions() <= data.bins().n_positions, "an example has no position");
  std::vector<GrownTree> trees;
  run_kernel([&](Stop& stop) {
    trees = grow_trees(data, examples, rules, column_rules, key, or_new(pool), n_threads, stop);
  });
  return build_forest(trees);
}

// (K, 4), by output: sums of the gradients, in absolute value, and of the curvatures, and the
// largest of each; a negative curvature makes the sum of curvatures NaN.
Returned<double> sum_magnitudes(const Examples& examples, int n_threads) {
  std::vector<double> sums(4 * examples.n_outputs());
  run_kernel([&](Stop& stop) {
    Crew crew(n_threads, stop);
    crew.run(1, [&] {
      return [&](int64_t) {
        for (int k = 0; k < examples.n_outputs(); ++k) {
          const Magnitudes found =
              measure(examples.of_output(k), MagnitudeGrid(examples.bound()), crew);
          sums[4 * k] = found.gradients;
          sums[4 * k + 1] = found.has_negative ? std::nan("") : found.curvatures;
          sums[4 * k + 2] = found.largest_gradient;
          sums[4 * k + 3] = found.largest_curvature;
        }
      };
    });
  });
  return to_numpy(std::move(sums));
}

std::unique_ptr<SharedGrowth> begin_growth(const TreeData& data, const Examples& examples,
                                           const GrowthRules& rules, uint64_t key,
                                           Doubles magnitudes, int n_threads,
                                           const ColumnRules* column_rules,
                                           std::shared_ptr<MemoryPool> pool) {
  check(examples.n_positions() <= data.bins().n_positions, "an example has no position");
  check(static_cast<int>(magnitudes.shape(0)) == 4 * examples.n_outputs(),
        "magnitudes must have four entries for each output");
  std::vector<Magnitudes> sums;
  for (int k = 0; k < examples.n_outputs(); ++k) {
    const double* own = magnitudes.data() + 4 * k;
    sums.push_back({own[0], own[1], own[2], own[3], false});
  }
  std::unique_ptr<SharedGrowth> growth;
  run_kernel([&](Stop& stop) {
    growth = std::make_unique<SharedGrowth>(data, examples, rules, column_rules, key, sums,
                                            or_new(pool), n_threads, stop);
  });
  return growth;
}

Returned<int64_t> propose_counts(SharedGrowth& growth, int n_threads) {
  std::vector<int64_t> counts;
  run_kernel([&](Stop& stop) { counts = growth.propose(n_threads, stop); });
  return to_numpy(std::move(counts));
}

void accept_counts(SharedGrowth& growth, Array<const int64_t, 1> counts, int n_threads) {
  run_kernel([&](Stop& stop) { growth.accept({counts.data(), counts.shape(0)}, n_threads, stop); });
}

Forest read_device_forest(Array<const uint8_t, 3> nodes, bool best_first) {
  check(nodes.shape(1) > 0 && nodes.shape(2) == sizeof(DeviceNode),
        "nodes must have the size of a node of the device");
  const std::span all(reinterpret_cast<const DeviceNode*>(nodes.data()),
                      nodes.shape(0) * nodes.shape(1));
  const auto n_outputs = static_cast<int>(nodes.shape(0));
  return Forest(n_outputs, read_device_trees(all, static_cast<int64_t>(nodes.shape(1)), best_first),
                std::vector<double>(n_outputs, 1.0));
}

}  // namespace

void bind_trees(nb::module_& module) {
  module.attr("PARENT") = kParent;
  nb::class_<MemoryPool>(module, "MemoryPool", "Memory of a round, kept for the next one.")
      .def(nb::init<>());
  nb::enum_<NegativeWeight>(module, "NegativeWeight",
                            "The weight of the negative examples that are drawn.")
      .value("UNBIASED", NegativeWeight::kUnbiased)
      .value("NONE", NegativeWeight::kNone)
      .value("BALANCED", NegativeWeight::kBalanced);
  nb::class_<Examples>(module, "Examples", "What the trees of a round learn from.")
      .def(nb::new_(&read_examples), array("gradients"), array("curvatures"), nb::kw_only(),
           nb::arg("trim"), optional_array("scales") = nb::none(),
           optional_array("selected") = nb::none(), nb::arg("share") = 1.0,
           nb::arg("negative_ratio") = 0.0, nb::arg("negative_weight") = NegativeWeight::kUnbiased,
           optional_array("codes") = nb::none(), nb::arg("key") = 0,
           optional_array("identities") = nb::none(), nb::arg("bound") = 0.0,
           nb::arg("opposite") = false, nb::arg("n_threads"), nb::arg("pool").none() = nb::none(),
           nb::arg("comm").none() = nb::none(), nb::arg("unit_bits") = kUnitBits,
           optional_array("observed") = nb::none(), nb::arg("rule") = std::pair(1.0f, 0.0f),
           "With ``observed`` codes, ``gradients`` are probabilities, from which 1 is subtracted\n"
           "at the observed outputs, and ``curvatures`` are gammas. ``rule`` is the factor of "
           "gammas,\n"
           "and the gamma up to which they are used unchanged.")
      .def_static("of_lists", &list_examples, array("offsets"), array("positions"),
                  array("gradients"), array("curvatures"), nb::arg("unit_bits") = kUnitBits)
      .def("of_output", &arrays_of_output, nb::arg("output"))
      .def("magnitudes", &sum_magnitudes, nb::arg("n_threads"));
  // What the bounds of sums of gradients and curvatures are multiplied by, see MagnitudeGrid.
  module.attr("GRADIENT_FACTOR") = MagnitudeGrid::kGradients;
  module.attr("CURVATURE_FACTOR") = MagnitudeGrid::kCurvatures;
  nb::class_<Contexts>(module, "Contexts",
                       "Labels before a position, as far as trees may split on them.")
      .def(nb::new_(&read_contexts), nb::arg("n_labels"), array("labels"), array("before"),
           "Edge e of a position leads to the label ``labels[e]``, -1 if it is only taken\n"
           "where a sequence begins, and ``before[e]`` are 1 + the labels one, two ... positions\n"
           "before, 0 if the edge does not depend on them.")
      .def_prop_ro("n_edges", &Contexts::n_edges)
      .def_prop_ro("n_lags", &Contexts::n_lags);
  nb::class_<ContextExamples>(module, "ContextExamples",
                              "What the trees of a round learn from, context by context.")
      .def(nb::new_(
               [](const Contexts& contexts, int64_t n_positions, std::pair<int, int> unit_bits) {
                 return std::make_unique<ContextExamples>(contexts, n_positions,
                                                          read_unit_bits(unit_bits));
               }),
           nb::arg("contexts"), nb::arg("n_positions"), nb::arg("unit_bits") = kUnitBits)
      .def("clear", &ContextExamples::clear)
      .def("add", &add_context_examples, nb::arg("first_position"), array("offsets"),
           array("gradients"), optional_array("probabilities"), array("curvatures"), nb::kw_only(),
           optional_array("observed") = nb::none(), optional_array("weights") = nb::none(),
           optional_array("parents") = nb::none(), optional_array("totals") = nb::none(),
           nb::arg("trim"), optional_array("scales") = nb::none(),
           optional_array("selected") = nb::none(), nb::arg("bound") = 0.0, nb::arg("n_threads"))
      .def("add_pairs", &add_pair_examples, nb::arg("first_position"), array("offsets"),
           array("by_label"), array("observed_probs"), array("observed"), array("totals"),
           array("curvatures"), nb::kw_only(), nb::arg("trim"),
           optional_array("scales") = nb::none(), optional_array("selected") = nb::none(),
           nb::arg("bound") = 0.0, nb::arg("n_threads"), nb::keep_alive<1, 4>())
      .def("draw", &draw_context_examples, nb::kw_only(), nb::arg("share") = 1.0,
           nb::arg("negative_ratio") = 0.0, nb::arg("negative_weight") = NegativeWeight::kUnbiased,
           optional_array("codes") = nb::none(), nb::arg("key"),
           optional_array("identities") = nb::none(), nb::arg("n_threads"))
      .def("n_rows", &ContextExamples::n_rows, nb::arg("output"));
  nb::class_<GrowthRules>(module, "GrowthRules", "Limits on the growth and the values of a tree.")
      .def(nb::new_(&read_rules), nb::kw_only(), nb::arg("max_leaves"), nb::arg("max_depth"),
           nb::arg("min_child_weight"), nb::arg("min_split_gain"), nb::arg("reg_lambda"),
           nb::arg("max_step"), nb::arg("learning_rate"), nb::arg("colsample_bytree") = 1.0,
           nb::arg("colsample_bynode") = 1.0, nb::arg("label_lambda") = 0.0,
           nb::arg("missing") = "learned", optional_array("fills") = nb::none())
      .def_ro("max_leaves", &GrowthRules::max_leaves)
      .def_ro("max_depth", &GrowthRules::max_depth)
      .def_ro("min_child_weight", &GrowthRules::min_child_weight)
      .def_ro("min_split_gain", &GrowthRules::min_split_gain)
      .def_ro("reg_lambda", &GrowthRules::reg_lambda)
      .def_ro("max_step", &GrowthRules::max_step)
      .def_ro("learning_rate", &GrowthRules::learning_rate)
      .def_ro("colsample_bytree", &GrowthRules::colsample_bytree)
      .def_ro("colsample_bynode", &GrowthRules::colsample_bynode);
  nb::class_<ColumnRules>(module, "ColumnRules",
                          "Monotone constraints, and groups of columns that may interact.")
      .def(nb::new_(&read_column_rules), nb::kw_only(), nb::arg("n_columns"),
           optional_array("directions") = nb::none(), optional_array("group_offsets") = nb::none(),
           optional_array("group_columns") = nb::none(), nb::arg("max_columns") = 0)
      .def(
          "are_kept",
          [](const ColumnRules& rules, const Forest& forest) {
            const bool fits = rules.n_outputs() < 0 || rules.n_outputs() == forest.n_outputs();
            check(fits, "column rules are for a different number of outputs");
            return rules.are_kept(forest.trees());
          },
          nb::arg("forest"));
  const auto define_grow = [&](auto* function) {
    module.def("grow_trees", function, nb::arg("data"), nb::arg("examples"), nb::arg("rules"),
               nb::arg("key"), nb::arg("n_threads"), nb::arg("column_rules").none() = nb::none(),
               nb::arg("pool").none() = nb::none());
  };
  define_grow(&grow<Examples>);
  define_grow(&grow<ContextExamples>);
  nb::class_<SharedGrowth>(module, "SharedGrowth",
                           "Trees whose examples are divided among several workers.")
      .def(nb::new_(&begin_growth), nb::arg("data"), nb::arg("examples"), nb::arg("rules"),
           nb::arg("key"), array("magnitudes"), nb::arg("n_threads"),
           nb::arg("column_rules").none() = nb::none(), nb::arg("pool").none() = nb::none(),
           nb::keep_alive<0, 1>(), nb::keep_alive<0, 7>())
      .def("propose", &propose_counts, nb::arg("n_threads"))
      .def("accept", &accept_counts, array("counts"), nb::arg("n_threads"))
      .def("finish", [](SharedGrowth& growth) { return build_forest(growth.take()); });
  module.def("read_device_forest", &read_device_forest, array("nodes"), nb::arg("best_first"),
             "The trees of a round, one for each output, from nodes (T, max_nodes, 64 bytes) that\n"
             "were grown on another device.");
}

}  // namespace hedgerow::bindings
