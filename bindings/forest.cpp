#include "trees/forest.hpp"

#include <nanobind/stl/string.h>

#include <cmath>
#include <limits>
#include <string>

#include "arrays.hpp"
#include "trees.hpp"
#include "trees/context_forest.hpp"

namespace hedgerow::bindings {
namespace {

// Calls visit(name, member, documentation) for every array of the trees.
template <class Visit>
void visit_arrays(Visit visit) {
  visit("round_offsets", &TreeArrays::round_offsets,
        "(R + 1,) int64. Trees ``round_offsets[r]`` to ``round_offsets[r + 1]`` are of round r.");
  visit("tree_offsets", &TreeArrays::tree_offsets,
        "(T + 1,) int64. Nodes ``tree_offsets[i]`` to ``tree_offsets[i + 1]`` are tree i.");
  visit("outputs", &TreeArrays::outputs, "(T,) int32. The output whose score a tree adds to.");
  visit("columns", &TreeArrays::columns, "int32, by node. Column of a split, -1 for a leaf.");
  visit("offsets", &TreeArrays::offsets,
        "int32, by node. Position of the column's value, relative to the one that is scored.");
  visit("cuts", &TreeArrays::cuts,
        "uint8, by node. Bins 1 to this one go left; 0 for a split by categories.");
  visit("missing_left", &TreeArrays::missing_left,
        "uint8, by node. Whether missing values go left, unless the split is by categories.");
  visit("outside_left", &TreeArrays::outside_left,
        "uint8, by node. Whether positions beyond the ends of a sequence go left.");
  visit("sets", &TreeArrays::sets,
        "int32, by node. Row of `left_sets` for a split by categories, else -1.");
  visit("lefts", &TreeArrays::lefts,
        "int32, by node. Left child, counted from the tree's first node; the right one follows it. "
        "-1 for a leaf.");
  visit("values", &TreeArrays::values,
        "float32, by node. What a leaf adds to the score, before it is multiplied by the tree's "
        "weight; for other nodes, what they would add as leaves.");
  visit("gains", &TreeArrays::gains,
        "float32, by node. G_L^2 / (H_L + lambda) + G_R^2 / (H_R + lambda) - G^2 / (H + lambda) of "
        "a split: twice the amount by which it lowers the bound on the loss.");
  visit("weights", &TreeArrays::weights,
        "float32, by node. Sum of the curvatures of a node's examples.");
  visit("fractions", &TreeArrays::fractions,
        "float32, by node. Share of missing values that goes left at splits that send them both "
        "ways; empty if none does.");
  visit("surrogate_starts", &TreeArrays::surrogate_starts,
        "int64, (number of nodes + 1,). Surrogates ``surrogate_starts[n]`` to "
        "``surrogate_starts[n + 1]`` are those of node n, the best first: where its value is "
        "missing, the first one whose own value is known is used. Empty if there are none.");
  visit("surrogate_columns", &TreeArrays::surrogate_columns, "int32, by surrogate. Its column.");
  visit("surrogate_offsets", &TreeArrays::surrogate_offsets,
        "int32, by surrogate. Position of its value, relative to the one that is scored.");
  visit("surrogate_cuts", &TreeArrays::surrogate_cuts,
        "uint8, by surrogate. Bins 1 to this one go left; 0 for categories.");
  visit("surrogate_reversed", &TreeArrays::surrogate_reversed,
        "uint8, by surrogate. Whether bins 1 to the surrogate's cut go right, and all others "
        "left.");
  visit("surrogate_sets", &TreeArrays::surrogate_sets,
        "int32, by surrogate. Row of `left_sets` for categories, else -1.");
  visit("left_sets", &TreeArrays::left_sets,
        "(32 * number of sets,) uint8. A bit for each bin that goes left.");
}

// A view; the binding keeps the owner alive.
template <class T>
nb::ndarray<nb::numpy, const T, nb::ndim<1>> view(const std::vector<T>& values) {
  return nb::ndarray<nb::numpy, const T, nb::ndim<1>>(values.data(), {values.size()});
}

template <class T>
void read_array(const nb::dict& arrays, const char* name, std::vector<T>& out) {
  if (!arrays.contains(name))
    throw std::invalid_argument("the arrays of a forest lack " + std::string(name));
  Array<const T, 1> array;
  if (!nb::try_cast(arrays[name], array, false))
    throw std::invalid_argument(std::string(name) + " has the wrong type");
  out.assign(array.data(), array.data() + array.shape(0));
}

using Arrays = nb::typed<nb::dict, nb::str, nb::any>;

Forest read_forest(const Arrays& arrays, int n_outputs, std::optional<int32_t> n_columns) {
  TreeArrays trees;
  visit_arrays(
      [&](const char* name, auto member, const char*) { read_array(arrays, name, trees.*member); });
  std::vector<double> tree_weights;
  read_array(arrays, "tree_weights", tree_weights);
  check_trees(trees, n_outputs, n_columns.value_or(std::numeric_limits<int32_t>::max()));
  check(tree_weights.size() == trees.outputs.size(), "every tree needs a weight");
  for (const double weight : tree_weights)
    check(std::isfinite(weight), "the weight of a tree is not finite");
  return Forest(n_outputs, std::move(trees), std::move(tree_weights));
}

Forest join(int n_outputs, const nb::typed<nb::list, Forest>& parts) {
  std::vector<const Forest*> forests;
  for (const nb::handle part : parts) {
    forests.push_back(nb::cast<const Forest*>(part));
    check(forests.back()->n_outputs() == n_outputs,
          "forests with different numbers of outputs cannot be joined");
  }
  return Forest::join(n_outputs, forests);
}

Arrays arrays_of_forest(nb::handle_t<Forest> forest) {
  Arrays arrays;
  visit_arrays([&](const char* name, auto, const char*) { arrays[name] = forest.attr(name); });
  arrays["tree_weights"] = forest.attr("tree_weights");
  return arrays;
}

void check_scores(const Forest& forest, size_t n_positions, size_t n_columns, const Table& scores,
                  const Array<double, 2>& out) {
  check(n_columns >= static_cast<size_t>(forest.n_columns()),
        "the trees split on columns that do not exist");
  check_shape(scores, {n_positions, static_cast<size_t>(forest.n_outputs())},
              "scores must have a row for each position and a column for each output");
  check_shape(out, {scores.shape(0), scores.shape(1)}, "out must have the shape of scores");
}

void add_scores_of(const Forest& forest, const BinTable& bins, const Sequences& sequences,
                   const Table& scores, const Array<double, 2>& out, int n_threads) {
  check_scores(forest, static_cast<size_t>(bins.n_positions), bins.n_columns(), scores, out);
  run_kernel([&](Stop& stop) {
    forest.add_scores(bins, sequences, scores.data(), out.data(), n_threads, stop);
  });
}

void add_scores(const Forest& forest, const Bins& bins, Table scores, Array<double, 2> out,
                int n_threads) {
  add_scores_of(forest, bins.table, bins.sequences(), scores, out, n_threads);
}

void add_training_scores(const Forest& forest, const TreeData& data, Table scores,
                         Array<double, 2> out, int n_threads) {
  add_scores_of(forest, data.bins(), data.windows(), scores, out, n_threads);
}

void add_scores_of_values(const Forest& forest, const ColumnValues& values, Table scores,
                          Array<double, 2> out, int n_threads) {
  check_scores(forest, values.n_positions(), values.n_columns(), scores, out);
  check(forest.asks_numbers(), "the trees do not split on numbers only");
  visit_numbers(values.numbers, [&]<class Value>(const Value* numbers) {
    const ValueTable<Value> table{static_cast<int64_t>(values.n_positions()),
                                  static_cast<int64_t>(values.n_columns()),
                                  numbers,
                                  {values.cut_offsets.data(), values.cuts.data()}};
    run_kernel([&](Stop& stop) {
      forest.add_scores(table, values.sequences(), scores.data(), out.data(), n_threads, stop);
    });
  });
}

ContextForest read_context_forest(const Forest& forest, const Contexts& contexts,
                                  int32_t first_label_column) {
  check(forest.n_outputs() == contexts.n_outputs(), "contexts have a different number of labels");
  check(forest.n_columns() <= first_label_column + contexts.n_lags(),
        "there are splits on a label that no context has");
  return ContextForest(forest, contexts, first_label_column);
}

void add_context_scores_of(const ContextForest& forest, const BinTable& bins,
                           const Sequences& sequences, Table nodes, Array<const float, 2> edges,
                           Array<double, 2> out_nodes, Array<float, 2> out_edges, int n_threads) {
  check(forest.n_columns() <= bins.n_columns(), "the trees split on columns that do not exist");
  const auto n_positions = static_cast<size_t>(bins.n_positions);
  const auto n_labels = static_cast<size_t>(forest.n_outputs());
  const auto n_edges = static_cast<size_t>(forest.n_edges());
  const char* of_nodes = "nodes must have a row for each position and a column for each label";
  const char* of_edges = "edges must have a row for each position and a column for each edge";
  check_shape(nodes, {n_positions, n_labels}, of_nodes);
  check_shape(out_nodes, {n_positions, n_labels}, of_nodes);
  check_shape(edges, {n_positions, n_edges}, of_edges);
  check_shape(out_edges, {n_positions, n_edges}, of_edges);
  run_kernel([&](Stop& stop) {
    forest.add_scores(bins, sequences,
                      {nodes.data(), edges.data(), out_nodes.data(), out_edges.data()}, n_threads,
                      stop);
  });
}

void add_context_scores(const ContextForest& forest, const Bins& bins, Table nodes,
                        Array<const float, 2> edges, Array<double, 2> out_nodes,
                        Array<float, 2> out_edges, int n_threads) {
  add_context_scores_of(forest, bins.table, bins.sequences(), nodes, edges, out_nodes, out_edges,
                        n_threads);
}

void add_training_context_scores(const ContextForest& forest, const TreeData& data, Table nodes,
                                 Array<const float, 2> edges, Array<double, 2> out_nodes,
                                 Array<float, 2> out_edges, int n_threads) {
  add_context_scores_of(forest, data.bins(), data.windows(), nodes, edges, out_nodes, out_edges,
                        n_threads);
}

void write_edges(Array<const float, 2> edges, std::optional<Table> others, Array<double, 2> out,
                 int n_threads) {
  const char* message = "edges and out must have the same shape";
  check_shape(others, {edges.shape(0), edges.shape(1)}, message);
  check_shape(out, {edges.shape(0), edges.shape(1)}, message);
  run_kernel([&](Stop& stop) {
    fill_edges(edges.data(), data_or_null(others), edges.shape(0), edges.shape(1), out.data(),
               n_threads, stop);
  });
}

}  // namespace

void bind_forest(nb::module_& module) {
  nb::class_<ContextForest>(module, "ContextForest",
                            "Trees that split on labels before a position, ready to be walked.")
      .def(nb::new_(&read_context_forest), nb::arg("forest"), nb::arg("contexts"),
           nb::arg("first_label_column"))
      .def(
          "add_scores", &add_context_scores, nb::arg("bins"), array("nodes"), array("edges"),
          array("out_nodes"), array("out_edges"), nb::arg("n_threads"),
          "Fill the outputs with the scores of labels, (N, K), and of edges, (N, E) float32, plus\n"
          "what all trees add to them; at first positions they add to labels only.")
      .def("add_scores", &add_training_context_scores, nb::arg("data"), array("nodes"),
           array("edges"), array("out_nodes"), array("out_edges"), nb::arg("n_threads"),
           "The same for the data that trees are grown on, which is faster.");
  module.def("fill_edges", &write_edges, array("edges"), optional_array("others"), array("out"),
             nb::arg("n_threads"),
             "Fill out (N, E) with scores of edges, float32, plus those of other potentials.");
  nb::class_<Forest> forest(
      module, "Forest",
      "All trees of a model: T trees, grown in R rounds, as flat arrays.\n\n"
      "Arrays over nodes hold all trees one after the other. Siblings are adjacent, and come\n"
      "after their parent. A forest does not change, its arrays are read-only views, and any\n"
      "number of threads may use it.");
  visit_arrays([&](const char* name, auto member, const char* documentation) {
    forest.def_prop_ro(
        name, [member](const Forest& self) { return view(self.trees().*member); }, documentation);
  });
  forest
      .def_prop_ro(
          "tree_weights", [](const Forest& self) { return view(self.tree_weights()); },
          "(T,) float64. What the values of a tree are multiplied by.")
      .def_prop_ro("n_outputs", &Forest::n_outputs, "Number of outputs.")
      .def_prop_ro("n_columns", &Forest::n_columns, "Splits use only columns below this number.")
      .def_prop_ro(
          "n_trees", [](const Forest& self) { return self.trees().n_trees(); }, "T.")
      .def_prop_ro(
          "n_rounds", [](const Forest& self) { return self.trees().round_offsets.size() - 1; },
          "R.")
      .def(nb::new_(&read_forest), nb::arg("arrays"), nb::arg("n_outputs"),
           nb::arg("n_columns").none() = nb::none(),
           "Trees from the output of `arrays`; raises ValueError if the arrays are not valid, or\n"
           "if a tree splits on column n_columns or a later one.")
      .def_static("join", &join, nb::arg("n_outputs"), nb::arg("parts"),
                  "One forest with the rounds of several forests, which may be none.")
      .def("scaled", &Forest::scaled, nb::arg("factor"),
           "The same trees, with all their weights multiplied; the arrays are shared.")
      .def("arrays", &arrays_of_forest, "All arrays by name.")
      .def("add_scores", &add_scores, nb::arg("bins"), array("scores"), array("out"),
           nb::arg("n_threads"),
           "Fill `out` (N, n_outputs) with the scores plus what all trees add to them.")
      .def("add_scores", &add_training_scores, nb::arg("data"), array("scores"), array("out"),
           nb::arg("n_threads"), "The same for the data that trees are grown on, which is faster.")
      .def("walks_values", &Forest::walks_values, nb::arg("n_positions"),
           "Whether walking this many positions with their values is faster than binning them "
           "first.")
      .def("add_scores", &add_scores_of_values, nb::arg("values"), array("scores"), array("out"),
           nb::arg("n_threads"), "The same from values, for trees that split on numbers only.")
      .def("__reduce__", [](nb::handle_t<Forest> self) -> nb::typed<nb::tuple, nb::any, nb::any> {
        return nb::make_tuple(self.type(),
                              nb::make_tuple(arrays_of_forest(self), self.attr("n_outputs")));
      });
}

}  // namespace hedgerow::bindings
