#include <nanobind/stl/unique_ptr.h>

#include <memory>

#include "arrays.hpp"
#include "trees/forest.hpp"
#include "trees/grow.hpp"

namespace hedgerow::bindings {
namespace {

using Offsets = Array<const int64_t, 1>;
using Codes = Array<const int32_t, 1>;
using Bytes = Array<const uint8_t, 1>;

// Bins of some sequences, with the arrays they lie in.
struct Bins {
  Array<const uint8_t, 2> dense;
  std::optional<Offsets> entry_offsets;
  std::optional<Codes> attributes;
  std::optional<Bytes> attribute_bins;
  Codes n_bins;
  Bytes default_bins;
  Bytes categorical;
  Offsets offsets;
  BinTable table;

  int64_t n_sequences() const { return static_cast<int64_t>(offsets.shape(0)) - 1; }
};

void check_dense(const BinTable& table) {
  for (int64_t t = 0; t < table.n_positions; ++t) {
    const uint8_t* row = table.dense + t * table.n_dense;
    bool fits = true;
    for (int32_t c = 0; c < table.n_dense; ++c) fits &= row[c] <= table.n_bins[c];
    check(fits, "a bin is larger than its column's number of bins");
  }
}

void check_entries(const BinTable& table, int64_t n_entries) {
  check(table.entry_offsets[0] == 0 && table.entry_offsets[table.n_positions] == n_entries,
        "entry offsets must run from 0 to the number of entries");
  for (int64_t t = 0; t < table.n_positions; ++t) {
    const int64_t begin = table.entry_offsets[t], end = table.entry_offsets[t + 1];
    check(begin <= end && end <= n_entries, "entry offsets must not fall");
    for (int64_t e = begin; e < end; ++e) {
      const int32_t attribute = table.attributes[e];
      check(attribute >= 0 && attribute < table.n_attributes, "an attribute is out of range");
      check(e == begin || table.attributes[e - 1] < attribute,
            "attributes must rise within a position");
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

std::unique_ptr<Bins> read_bins(Array<const uint8_t, 2> dense, std::optional<Offsets> entry_offsets,
                                std::optional<Codes> attributes,
                                std::optional<Bytes> attribute_bins, Codes n_bins,
                                Bytes default_bins, Bytes categorical, Offsets offsets) {
  const size_t n_positions = dense.shape(0);
  check(n_positions < size_t{1} << 31, "at most 2^31 - 1 positions are supported");
  check_offsets(offsets, n_positions);
  check(n_bins.shape(0) == dense.shape(1) + default_bins.shape(0) &&
            categorical.shape(0) == n_bins.shape(0),
        "n_bins and categorical must have an entry for each column");
  check(entry_offsets.has_value() == attributes.has_value() &&
            entry_offsets.has_value() == attribute_bins.has_value() &&
            (entry_offsets.has_value() || default_bins.shape(0) == 0),
        "attributes need entry offsets, attributes and their bins");
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
  check_dense(table);
  if (entry_offsets) {
    check(entry_offsets->shape(0) == n_positions + 1 &&
              attributes->shape(0) == attribute_bins->shape(0),
          "entries do not fit the positions");
    check_entries(table, static_cast<int64_t>(attributes->shape(0)));
  }
  return std::make_unique<Bins>(Bins{dense, entry_offsets, attributes, attribute_bins, n_bins,
                                     default_bins, categorical, offsets, table});
}

void check_same_shape(const Array<const double, 2>& a, size_t n_rows, size_t n_columns) {
  check(a.shape(0) == n_rows && a.shape(1) == n_columns,
        "tables of positions and labels must have the same shape");
}

// Labels of positions, -1 where they are not known.
void check_codes(const Codes& codes, size_t n_positions, size_t n_labels) {
  check(codes.shape(0) == n_positions, "codes must have an entry for each position");
  for (size_t t = 0; t < n_positions; ++t)
    check(codes.data()[t] < static_cast<int32_t>(n_labels), "a label code is out of range");
}

std::unique_ptr<Examples> read_examples(
    Array<const double, 2> expected, Array<const double, 2> probabilities,
    bool expected_is_weighted, Codes codes, OptionalArray<const double, 1> weights,
    OptionalArray<const double, 1> scales, OptionalArray<const int64_t, 1> partial_positions,
    OptionalArray<const double, 2> partial_observed, OptionalArray<const float, 1> gammas,
    OptionalArray<const float, 2> label_gammas, OptionalArray<const double, 2> gradients,
    double trim, OptionalArray<const uint8_t, 1> selected, double negative_ratio, uint64_t key,
    int n_threads) {
  const size_t n_positions = expected.shape(0), n_labels = expected.shape(1);
  check(n_positions < size_t{1} << 31, "at most 2^31 - 1 positions are supported");
  check_same_shape(probabilities, n_positions, n_labels);
  check_codes(codes, n_positions, n_labels);
  for (const auto* each : {&weights, &scales})
    check(!*each || (*each)->shape(0) == n_positions, "weights must have one for each position");
  check(!selected || selected->shape(0) == n_positions, "selected must have one for each position");
  check(!gammas || gammas->shape(0) == n_positions, "gammas must have one for each position");
  check(!label_gammas ||
            (label_gammas->shape(0) == n_positions && label_gammas->shape(1) == n_labels),
        "gammas must have one for each position and label");
  if (gradients) check_same_shape(*gradients, n_positions, n_labels);
  check(partial_positions.has_value() == partial_observed.has_value(),
        "partial positions and observations go together");
  int64_t n_partial = 0;
  if (partial_positions) {
    n_partial = static_cast<int64_t>(partial_positions->shape(0));
    check_same_shape(*partial_observed, partial_positions->shape(0), n_labels);
    for (int64_t i = 0; i < n_partial; ++i)
      check(partial_positions->data()[i] >= 0 &&
                partial_positions->data()[i] < static_cast<int64_t>(n_positions) &&
                (i == 0 || partial_positions->data()[i - 1] < partial_positions->data()[i]),
            "partial positions must rise and be in range");
  }
  const MarginalTable table{static_cast<int64_t>(n_positions),
                            static_cast<int>(n_labels),
                            expected.data(),
                            probabilities.data(),
                            expected_is_weighted,
                            codes.data(),
                            data_or_null(weights),
                            data_or_null(scales),
                            n_partial,
                            data_or_null(partial_positions),
                            data_or_null(partial_observed),
                            label_gammas ? label_gammas->data() : data_or_null(gammas),
                            label_gammas.has_value(),
                            data_or_null(gradients)};
  std::unique_ptr<Examples> examples;
  run_kernel([&](Stop& stop) {
    examples = std::make_unique<Examples>(
        table, Sampling{trim, data_or_null(selected), negative_ratio, key}, n_threads, stop);
  });
  return examples;
}

std::unique_ptr<Examples> list_examples(Offsets offsets, Codes positions,
                                        Array<const float, 1> gradients,
                                        Array<const float, 1> curvatures) {
  check_offsets(offsets, positions.shape(0));
  check(gradients.shape(0) == positions.shape(0) && curvatures.shape(0) == positions.shape(0),
        "gradients and curvatures must have an entry for each position");
  std::vector<std::vector<Derivatives>> by_label(offsets.shape(0) - 1);
  for (size_t k = 0; k < by_label.size(); ++k)
    for (int64_t i = offsets.data()[k]; i < offsets.data()[k + 1]; ++i) {
      check(positions.data()[i] >= 0, "a position is negative");
      check(std::isfinite(gradients.data()[i]) && std::isfinite(curvatures.data()[i]) &&
                curvatures.data()[i] >= 0.0f,
            "derivatives must be finite, and curvatures not negative");
      by_label[k].push_back({positions.data()[i], gradients.data()[i], curvatures.data()[i]});
    }
  return std::make_unique<Examples>(std::move(by_label));
}

std::tuple<Returned<int32_t>, Returned<float>, Returned<float>> arrays_of_label(
    const Examples& examples, int label) {
  check(label >= 0 && label < examples.n_labels(), "the label is out of range");
  std::vector<int32_t> positions;
  std::vector<float> gradients, curvatures;
  for (const Derivatives& d : examples.of_label(label)) {
    positions.push_back(d.position);
    gradients.push_back(d.gradient);
    curvatures.push_back(d.curvature);
  }
  return {to_numpy(std::move(positions)), to_numpy(std::move(gradients)),
          to_numpy(std::move(curvatures))};
}

// The last bin that a split of values has on its left.
uint8_t last_bin(const BinSet& set) {
  for (int bin = 255; bin > 0; --bin)
    if (contains(set, static_cast<uint8_t>(bin))) return static_cast<uint8_t>(bin);
  return 0;
}

nb::typed<nb::dict, nb::str, nb::any> to_arrays(const std::vector<GrownTree>& trees) {
  std::vector<int64_t> tree_offsets{0};
  std::vector<int32_t> columns, offsets, sets, lefts;
  std::vector<uint8_t> cuts, missing_left, left_sets;
  std::vector<float> values, gains, weights;
  for (const GrownTree& tree : trees) {
    for (const TreeNode& node : tree) {
      const bool has_set = node.column >= 0 && node.categorical;
      columns.push_back(node.column);
      offsets.push_back(node.offset);
      lefts.push_back(node.left);
      cuts.push_back(has_set ? uint8_t{0} : last_bin(node.left_bins));
      missing_left.push_back(contains(node.left_bins, 0));
      sets.push_back(has_set ? static_cast<int32_t>(left_sets.size() / 32) : -1);
      if (has_set)
        for (const uint64_t word : node.left_bins)
          for (int byte = 0; byte < 8; ++byte)
            left_sets.push_back(static_cast<uint8_t>(word >> (8 * byte)));
      values.push_back(node.value);
      gains.push_back(node.gain);
      weights.push_back(node.weight);
    }
    tree_offsets.push_back(static_cast<int64_t>(columns.size()));
  }
  nb::typed<nb::dict, nb::str, nb::any> out;
  out["tree_offsets"] = to_numpy(std::move(tree_offsets));
  out["columns"] = to_numpy(std::move(columns));
  out["offsets"] = to_numpy(std::move(offsets));
  out["cuts"] = to_numpy(std::move(cuts));
  out["missing_left"] = to_numpy(std::move(missing_left));
  out["sets"] = to_numpy(std::move(sets));
  out["lefts"] = to_numpy(std::move(lefts));
  out["values"] = to_numpy(std::move(values));
  out["gains"] = to_numpy(std::move(gains));
  out["weights"] = to_numpy(std::move(weights));
  out["left_sets"] = to_numpy(std::move(left_sets));
  return out;
}

TreeArrays read_trees(const Offsets& tree_offsets, const Codes& tree_labels, const Codes& columns,
                      const Codes& offsets, const Bytes& cuts, const Bytes& missing_left,
                      const Codes& sets, const Codes& lefts, const Array<const float, 1>& values,
                      const Bytes& left_sets) {
  const size_t n_nodes = columns.shape(0);
  check(tree_offsets.shape(0) == tree_labels.shape(0) + 1, "every tree needs a label");
  check(offsets.shape(0) == n_nodes && cuts.shape(0) == n_nodes &&
            missing_left.shape(0) == n_nodes && sets.shape(0) == n_nodes &&
            lefts.shape(0) == n_nodes && values.shape(0) == n_nodes,
        "arrays of trees must have an entry for each node");
  check(left_sets.shape(0) % 32 == 0, "a set of bins has 32 bytes");
  return {static_cast<int64_t>(tree_labels.shape(0)),
          tree_offsets.data(),
          tree_labels.data(),
          columns.data(),
          offsets.data(),
          cuts.data(),
          missing_left.data(),
          sets.data(),
          lefts.data(),
          values.data(),
          static_cast<int64_t>(left_sets.shape(0) / 32),
          left_sets.data()};
}

}  // namespace

void bind_trees(nb::module_& module) {
  nb::class_<Bins>(module, "Bins", "Bins of the columns at every position.")
      .def(nb::new_(&read_bins), nb::arg("dense").noconvert(),
           nb::arg("entry_offsets").noconvert().none(), nb::arg("attributes").noconvert().none(),
           nb::arg("attribute_bins").noconvert().none(), nb::arg("n_bins").noconvert(),
           nb::arg("default_bins").noconvert(), nb::arg("categorical").noconvert(),
           nb::arg("offsets").noconvert());
  nb::class_<TreeData>(module, "TreeData", "Bins, laid out for growing trees.")
      .def(
          "__init__",
          [](TreeData* self, const Bins& bins, int before, int after) {
            check(before >= 0 && before <= 255 && after >= 0 && after <= 255,
                  "a window reaches 0 to 255 positions to either side");
            const Windows windows{bins.n_sequences(), bins.offsets.data(), before, after};
            run_kernel([&](Stop& stop) { new (self) TreeData(bins.table, windows, stop); });
          },
          nb::keep_alive<1, 2>(), nb::arg("bins"), nb::arg("before"), nb::arg("after"));
  nb::class_<Examples>(module, "Examples", "What the trees of a round learn from.")
      .def(nb::new_(&read_examples), nb::arg("expected").noconvert(),
           nb::arg("probabilities").noconvert(), nb::arg("expected_is_weighted"),
           nb::arg("codes").noconvert(), nb::arg("weights").noconvert().none(),
           nb::arg("scales").noconvert().none(), nb::arg("partial_positions").noconvert().none(),
           nb::arg("partial_observed").noconvert().none(), nb::arg("gammas").noconvert().none(),
           nb::arg("label_gammas").noconvert().none(), nb::arg("gradients").noconvert().none(),
           nb::arg("trim"), nb::arg("selected").noconvert().none(), nb::arg("negative_ratio"),
           nb::arg("key"), nb::arg("n_threads"))
      .def_static("of_lists", &list_examples, nb::arg("offsets").noconvert(),
                  nb::arg("positions").noconvert(), nb::arg("gradients").noconvert(),
                  nb::arg("curvatures").noconvert())
      .def("of_label", &arrays_of_label, nb::arg("label"));
  module.def(
      "count_right",
      [](Array<const double, 2> probabilities, Codes codes, int n_threads) {
        check_codes(codes, probabilities.shape(0), probabilities.shape(1));
        int64_t n_right = 0;
        run_kernel([&](Stop& stop) {
          n_right = count_right(probabilities.data(), codes.data(),
                                static_cast<int64_t>(probabilities.shape(0)),
                                static_cast<int>(probabilities.shape(1)), n_threads, stop);
        });
        return n_right;
      },
      nb::arg("probabilities").noconvert(), nb::arg("codes").noconvert(), nb::arg("n_threads"));
  module.def(
      "grow_trees",
      [](const TreeData& data, const Examples& examples, int max_leaves, int max_depth,
         double min_child_weight, double min_split_gain, double reg_lambda, double max_step,
         double learning_rate, double colsample_bytree, double colsample_bynode, uint64_t key,
         int n_threads) {
        for (int k = 0; k < examples.n_labels(); ++k)
          for (const Derivatives& d : examples.of_label(k))
            check(d.position < data.bins().n_positions, "an example has no position");
        check(max_leaves >= 1 && max_leaves <= kMaxTreeNodes / 2, "max_leaves is out of range");
        check(max_depth >= 0, "max_depth is negative");
        const GrowthRules rules{max_leaves,     max_depth,        min_child_weight,
                                min_split_gain, reg_lambda,       max_step,
                                learning_rate,  colsample_bytree, colsample_bynode};
        std::vector<GrownTree> trees;
        run_kernel(
            [&](Stop& stop) { trees = grow_trees(data, examples, rules, key, n_threads, stop); });
        return to_arrays(trees);
      },
      nb::arg("data"), nb::arg("examples"), nb::arg("max_leaves"), nb::arg("max_depth"),
      nb::arg("min_child_weight"), nb::arg("min_split_gain"), nb::arg("reg_lambda"),
      nb::arg("max_step"), nb::arg("learning_rate"), nb::arg("colsample_bytree"),
      nb::arg("colsample_bynode"), nb::arg("key"), nb::arg("n_threads"));
  nb::class_<Forest>(module, "Forest", "Trees made for walking.")
      .def(
          "__init__",
          [](Forest* self, Offsets tree_offsets, Codes tree_labels, Codes columns, Codes offsets,
             Bytes cuts, Bytes missing_left, Codes sets, Codes lefts, Array<const float, 1> values,
             Bytes left_sets, int32_t n_dense, int32_t n_attributes, int n_labels) {
            const TreeArrays trees = read_trees(tree_offsets, tree_labels, columns, offsets, cuts,
                                                missing_left, sets, lefts, values, left_sets);
            check(n_dense >= 0 && n_attributes >= 0, "there are fewer than no columns");
            check_trees(trees, static_cast<int64_t>(columns.shape(0)), n_dense + n_attributes,
                        n_labels);
            new (self) Forest(trees, n_dense, n_attributes, n_labels);
          },
          nb::arg("tree_offsets").noconvert(), nb::arg("tree_labels").noconvert(),
          nb::arg("columns").noconvert(), nb::arg("offsets").noconvert(),
          nb::arg("cuts").noconvert(), nb::arg("missing_left").noconvert(),
          nb::arg("sets").noconvert(), nb::arg("lefts").noconvert(), nb::arg("values").noconvert(),
          nb::arg("left_sets").noconvert(), nb::arg("n_dense"), nb::arg("n_attributes"),
          nb::arg("n_labels"))
      .def(
          "add_scores",
          [](const Forest& forest, const Bins& bins, Array<const double, 2> scores,
             Array<double, 2> out, int n_threads) {
            const BinTable& table = bins.table;
            check(table.n_dense == forest.n_dense() && table.n_attributes == forest.n_attributes(),
                  "the bins have other columns than the trees");
            check_same_shape(scores, bins.dense.shape(0), static_cast<size_t>(forest.n_labels()));
            check(out.shape(0) == scores.shape(0) && out.shape(1) == scores.shape(1),
                  "out must have the shape of scores");
            run_kernel([&](Stop& stop) {
              forest.add_scores(table, bins.n_sequences(), bins.offsets.data(), scores.data(),
                                out.data(), n_threads, stop);
            });
          },
          nb::arg("bins"), nb::arg("scores").noconvert(), nb::arg("out").noconvert(),
          nb::arg("n_threads"));
}

}  // namespace hedgerow::bindings
