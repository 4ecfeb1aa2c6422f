#include "trellis/tree_graph.hpp"

#include "arrays.hpp"

namespace hedgerow::bindings {
namespace {

using ArcNumbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

// Scores of tree-shaped graphs, and the arrays that own their memory.
class BoundGraph {
 public:
  BoundGraph(Table nodes, ArcNumbers arcs, EdgesOfAny<const double> edges, Offsets offsets,
             Codes parents, const Automaton* automaton)
      : nodes_(nodes), arcs_(arcs), edges_(edges), offsets_(offsets), parents_(parents) {
    const size_t n_positions = nodes.shape(0), n_labels = nodes.shape(1);
    check(n_labels >= 1, "nodes must have at least one column");
    const size_t n_arcs = automaton ? automaton->n_arcs() : n_labels * n_labels;
    check(arcs.size() == n_arcs, "arcs must have an entry for each arc");
    check(!automaton || automaton->n_labels() == static_cast<int>(n_labels),
          "nodes must have a column for each label of the automaton");
    check_edges(edges, n_positions, n_labels, n_arcs);
    const bool by_arc = automaton && is_by_arc(edges);
    check(!edges || by_arc || (!is_by_arc(edges) && (!automaton || automaton->has_all_pairs())),
          "edges of label pairs need an arc for every label pair");
    check_offsets(offsets, n_positions);
    check_shape(parents, {n_positions}, "parents must have an entry for each position");
    scores = {static_cast<int64_t>(offsets.shape(0)) - 1,
              offsets.data(),
              parents.data(),
              static_cast<int>(n_labels),
              nodes.data(),
              arcs.data(),
              data_or_null(edges),
              automaton,
              by_arc};
  }

  size_t n_positions() const { return nodes_.shape(0); }
  size_t n_labels() const { return nodes_.shape(1); }
  size_t n_sequences() const { return offsets_.shape(0) - 1; }

  GraphPosteriors read_outputs(const OptionalArray<double, 1>& log_z,
                               const OptionalArray<double, 1>& log_likelihoods,
                               const OptionalArray<double, 2>& marginals,
                               const EdgesOfAny<double>& arc_sums, const EdgesOfAny<double>& pairs,
                               const std::optional<Doubles>& weights) const {
    for (const auto* per_sequence : {&log_z, &log_likelihoods})
      check_shape(*per_sequence, {n_sequences()},
                  "log_z and log_likelihoods must have an entry for each sequence");
    check_shape(marginals, {n_positions(), n_labels()}, "marginals must have the shape of nodes");
    check(!arc_sums || arc_sums->size() == arcs_.size(), "arc_sums must have the shape of arcs");
    check_edges(pairs, n_positions(), n_labels(), arcs_.size());
    check(!pairs || is_by_arc(pairs) == scores.by_arc, "pairs must have the shape of edges");
    check(!pairs || scores.by_arc || !scores.automaton || scores.automaton->has_all_pairs(),
          "pairs need an automaton with an arc for every label pair");
    check_shape(weights, {n_sequences()}, "weights must have an entry for each sequence");
    return {data_or_null(log_z),
            data_or_null(log_likelihoods),
            data_or_null(marginals),
            data_or_null(arc_sums),
            data_or_null(pairs),
            data_or_null(weights),
            nullptr,
            nullptr};
  }

  GraphScores scores;

 private:
  Table nodes_;
  ArcNumbers arcs_;
  EdgesOfAny<const double> edges_;
  Offsets offsets_;
  Codes parents_;
};

// Gammas of nodes and edges, and the curvature of pairs.
using GraphGammas = std::optional<std::tuple<Array<float, 1>, Array<float, 1>, Array<double, 2>>>;

void fill_posteriors_of(const BoundGraph& graph, const std::optional<Codes>& labels,
                        const OptionalArray<double, 1>& log_z,
                        const OptionalArray<double, 1>& log_likelihoods,
                        const OptionalArray<double, 2>& marginals,
                        const EdgesOfAny<double>& arc_sums, const EdgesOfAny<double>& pairs,
                        const Patterns& patterns, const GraphGammas& mixing,
                        const std::optional<Doubles>& weights, int n_threads, double bound) {
  GraphPosteriors out =
      graph.read_outputs(log_z, log_likelihoods, marginals, arc_sums, pairs, weights);
  out.bound = bound;
  const auto by_pattern = read_patterns(patterns, graph.n_positions(), graph.scores.n_arcs());
  if (by_pattern) out.patterns = &*by_pattern;
  std::optional<MixingBounds> bounds;
  if (mixing) {
    const auto& [node_gammas, edge_gammas, pair_curvature] = *mixing;
    check(graph.scores.automaton == nullptr,
          "mixing rates can be computed for first-order models only");
    for (const auto* gammas : {&node_gammas, &edge_gammas})
      check_shape(*gammas, {graph.n_positions()}, "gammas must have an entry for each position");
    check_shape(pair_curvature, {graph.n_labels(), graph.n_labels()},
                "pair_curvature must have the shape of arcs");
    bounds = {node_gammas.data(), edge_gammas.data(), pair_curvature.data(), data_or_null(weights),
              bound};
    out.mixing = &*bounds;
  }
  if (labels) check_labels(*labels, graph.n_positions(), graph.n_labels(), n_threads);
  check(labels || !log_likelihoods, "log_likelihoods need labels");
  run_kernel([&](Stop& stop) {
    fill_graph_posteriors(graph.scores, data_or_null(labels), out, n_threads, stop);
  });
}

void fill_tangents_of(const BoundGraph& graph, const Table& marginals, const Table& node_moves,
                      const EdgesOfAny<const double>& arc_moves,
                      const Array<double, 2>& marginal_slopes,
                      const EdgesOfAny<double>& arc_sum_slopes,
                      const EdgesOfAny<double>& pair_slopes, int n_threads, double bound) {
  for (const Table* table : {&marginals, &node_moves})
    check_shape(*table, {graph.n_positions(), graph.n_labels()},
                "marginals and the direction of nodes must have the shape of nodes");
  check(!arc_moves || static_cast<int64_t>(arc_moves->size()) == graph.scores.n_arcs(),
        "the direction of arcs must have their shape");
  const GraphPosteriors out =
      graph.read_outputs({}, {}, marginal_slopes, arc_sum_slopes, pair_slopes, {});
  const Direction direction{marginals.data(), node_moves.data(), data_or_null(arc_moves)};
  run_kernel([&](Stop& stop) {
    fill_graph_tangents(graph.scores, direction,
                        {out.marginals, out.arc_sums, nullptr, out.pairs, bound}, n_threads, stop);
  });
}

}  // namespace

void bind_tree_graph(nb::module_& module) {
  nb::class_<BoundGraph>(module, "GraphScores")
      .def(
          nb::init<Table, ArcNumbers, EdgesOfAny<const double>, Offsets, Codes, const Automaton*>(),
          array("nodes"), array("arcs"), optional_array("edges"), array("offsets"),
          array("parents"), nb::arg("automaton").none(), nb::keep_alive<1, 7>())
      .def("fill_posteriors", &fill_posteriors_of, optional_array("labels"),
           optional_array("log_z"), optional_array("log_likelihoods"), optional_array("marginals"),
           optional_array("arc_sums"), optional_array("pairs"), optional_array("patterns"),
           optional_array("mixing"), optional_array("weights"), nb::arg("n_threads"),
           nb::arg("bound") = 0.0)
      .def(
          "fill_weighted_posteriors",
          [](const BoundGraph& graph, Codes labels, Doubles weights,
             Array<double, 1> log_likelihoods, Array<double, 2> marginals,
             EdgesOfAny<double> arc_sums, EdgesOfAny<double> pairs, int n_threads, double bound) {
            GraphPosteriors out =
                graph.read_outputs({}, log_likelihoods, marginals, arc_sums, pairs, {});
            out.bound = bound;
            check_labels(labels, graph.n_positions(), graph.n_labels(), n_threads);
            check_shape(weights, {graph.n_positions()},
                        "weights must have an entry for each position");
            run_kernel([&](Stop& stop) {
              fill_graph_weighted_posteriors(graph.scores, labels.data(), weights.data(), out,
                                             n_threads, stop);
            });
          },
          array("labels"), array("weights"), array("log_likelihoods"), array("marginals"),
          optional_array("arc_sums"), optional_array("pairs"), nb::arg("n_threads"),
          nb::arg("bound") = 0.0)
      .def("fill_tangents", &fill_tangents_of, array("marginals"), array("node_moves"),
           optional_array("arc_moves"), array("marginal_slopes"), optional_array("arc_sum_slopes"),
           optional_array("pair_slopes"), nb::arg("n_threads"), nb::arg("bound") = 0.0)
      .def(
          "fill_viterbi",
          [](const BoundGraph& graph, Array<int32_t, 1> labels, int n_threads) {
            check_shape(labels, {graph.n_positions()},
                        "labels must have an entry for each position");
            run_kernel([&](Stop& stop) {
              fill_graph_viterbi(graph.scores, labels.data(), n_threads, stop);
            });
          },
          array("labels"), nb::arg("n_threads"))
      .def(
          "fill_k_best",
          [](const BoundGraph& graph, Array<int32_t, 2> labels, Array<int64_t, 1> counts,
             Array<double, 2> losses, int n_threads) {
            check(labels.shape(1) == graph.n_positions(),
                  "labels must have a column for each position");
            check_shape(counts, {graph.n_sequences()},
                        "counts must have an entry for each sequence");
            check_shape(losses, {labels.shape(0), graph.n_sequences()},
                        "losses must have a row for each row of labels and a column for each "
                        "sequence");
            run_kernel([&](Stop& stop) {
              fill_graph_k_best(graph.scores, static_cast<int64_t>(labels.shape(0)), labels.data(),
                                counts.data(), losses.data(), n_threads, stop);
            });
          },
          array("labels"), array("counts"), array("losses"), nb::arg("n_threads"))
      .def(
          "fill_samples",
          [](const BoundGraph& graph, Table uniforms, Array<int32_t, 2> labels, int n_threads) {
            check(labels.shape(1) == graph.n_positions(),
                  "labels must have a column for each position");
            check_shape(uniforms, {labels.shape(0), labels.shape(1)},
                        "uniforms must have the shape of labels");
            run_kernel([&](Stop& stop) {
              fill_graph_samples(graph.scores, static_cast<int64_t>(labels.shape(0)),
                                 uniforms.data(), labels.data(), n_threads, stop);
            });
          },
          array("uniforms"), array("labels"), nb::arg("n_threads"));
}

}  // namespace hedgerow::bindings
