#include <nanobind/stl/variant.h>

#include <variant>

#include "arrays.hpp"
#include "trellis/chain.hpp"
#include "trellis/mixing.hpp"
#include "trellis/tangent.hpp"

namespace hedgerow::bindings {
namespace {

// In double or in single precision.
using Edges = std::optional<std::variant<Array<const double, 3>, Array<const float, 3>>>;

ChainScores read_scores(const Table& nodes, const Table& arcs, const Edges& edges,
                        const Offsets& offsets) {
  const size_t n_positions = nodes.shape(0), n_labels = nodes.shape(1);
  check(n_labels >= 1, "nodes must have at least one column");
  check_shape(arcs, {n_labels, n_labels},
              "arcs must be a square with a row for each column of nodes");
  check_offsets(offsets, n_positions);
  ChainScores scores{static_cast<int64_t>(offsets.shape(0)) - 1,
                     offsets.data(),
                     static_cast<int>(n_labels),
                     nodes.data(),
                     arcs.data(),
                     nullptr};
  if (!edges) return scores;
  std::visit([&](const auto& given) { check_edges(std::optional(given), n_positions, n_labels); },
             *edges);
  if (const auto* single = std::get_if<1>(&*edges)) {
    check(takes_single_edges(scores.n_labels), "with few labels, edges must be doubles");
    scores.single_edges = single->data();
  } else {
    scores.edges = std::get<0>(*edges).data();
  }
  return scores;
}

ChainPosteriors read_outputs(const Table& nodes, const Offsets& offsets,
                             const OptionalArray<double, 1>& log_z,
                             const OptionalArray<double, 1>& log_likelihoods,
                             const OptionalArray<double, 2>& marginals,
                             const OptionalArray<double, 2>& pair_sums,
                             const OptionalArray<double, 3>& pairs,
                             const std::optional<Doubles>& weights) {
  const size_t n_sequences = offsets.shape(0) - 1, n_labels = nodes.shape(1);
  for (const auto* per_sequence : {&log_z, &log_likelihoods})
    check_shape(*per_sequence, {n_sequences},
                "log_z and log_likelihoods must have an entry for each sequence");
  check_shape(marginals, {nodes.shape(0), n_labels}, "marginals must have the shape of nodes");
  check_shape(pair_sums, {n_labels, n_labels}, "pair_sums must have the shape of arcs");
  check_edges(pairs, nodes.shape(0), n_labels);
  check_shape(weights, {n_sequences}, "weights must have an entry for each sequence");
  return {data_or_null(log_z),     data_or_null(log_likelihoods), data_or_null(marginals),
          data_or_null(pair_sums), data_or_null(pairs),           data_or_null(weights)};
}

// Gammas of nodes and edges, and the curvature of pairs.
using Gammas = std::optional<std::tuple<Array<float, 1>, Array<float, 1>, Array<double, 2>>>;

// Pair posteriors by label, those of the labels that were passed, the first position and the trim:
// see PairsByLabel.
using ByLabel = std::optional<std::tuple<Array<float, 3>, Array<double, 1>, int64_t, double>>;

MixingBounds read_bounds(const Table& nodes, const Offsets& offsets,
                         const std::optional<Doubles>& weights, const Array<float, 1>& node_gammas,
                         const OptionalArray<float, 1>& edge_gammas,
                         const OptionalArray<double, 2>& pair_curvature) {
  const size_t n_positions = nodes.shape(0), n_labels = nodes.shape(1);
  const char* message = "node_gammas and edge_gammas must have an entry for each position";
  check_shape(node_gammas, {n_positions}, message);
  check_shape(edge_gammas, {n_positions}, message);
  check_shape(pair_curvature, {n_labels, n_labels}, "pair_curvature must have the shape of arcs");
  check_shape(weights, {offsets.shape(0) - 1}, "weights must have an entry for each sequence");
  return {node_gammas.data(), data_or_null(edge_gammas), data_or_null(pair_curvature),
          data_or_null(weights)};
}

}  // namespace

void bind_trellis(nb::module_& module) {
  module.def("takes_single_edges", &takes_single_edges, nb::arg("n_labels"));
  module.attr("FEWEST_LABELS_OF_PAIRS") = PairsByLabel::kFewestLabels;
  module.def(
      "fill_posteriors",
      [](Table nodes, Table arcs, Edges edges, Offsets offsets, std::optional<Codes> labels,
         OptionalArray<double, 1> log_z, OptionalArray<double, 1> log_likelihoods,
         OptionalArray<double, 2> marginals, OptionalArray<double, 2> pair_sums,
         OptionalArray<double, 3> pairs, Patterns patterns, Gammas mixing,
         std::optional<Doubles> weights, int n_threads, double bound, ByLabel by_label) {
        const ChainScores scores = read_scores(nodes, arcs, edges, offsets);
        ChainPosteriors out = read_outputs(nodes, offsets, log_z, log_likelihoods, marginals,
                                           pair_sums, pairs, weights);
        out.bound = bound;
        const auto by_pattern = read_patterns(patterns, nodes.shape(0), arcs.size());
        if (by_pattern) out.patterns = &*by_pattern;
        std::optional<MixingBounds> bounds;
        if (mixing) {
          const auto& [node_gammas, edge_gammas, pair_curvature] = *mixing;
          check(posteriors_give_mixing(scores.n_labels, edges.has_value()),
                "with few labels, mixing rates are not computed together with posteriors");
          bounds = read_bounds(nodes, offsets, weights, node_gammas, edge_gammas, pair_curvature);
          bounds->bound = bound;
          out.mixing = &*bounds;
        }
        if (labels) check_labels(*labels, nodes.shape(0), nodes.shape(1), n_threads);
        check(labels || !(log_likelihoods || by_label),
              "log_likelihoods and pairs by label need labels");
        std::optional<PairsByLabel> pairs_by_label;
        if (by_label) {
          const auto& [probs, observed, first, trim] = *by_label;
          check(marginals.has_value() && nodes.shape(1) >= PairsByLabel::kFewestLabels,
                "pairs by label need marginals, and many labels");
          check_by_label(probs, observed, first, nodes.shape(0), nodes.shape(1));
          pairs_by_label = {probs.data(),   static_cast<int64_t>(probs.shape(1)),
                            first,          trim,
                            labels->data(), observed.data()};
          out.by_label = &*pairs_by_label;
        }
        run_kernel([&](Stop& stop) {
          fill_posteriors(scores, data_or_null(labels), out, n_threads, stop);
        });
      },
      array("nodes"), array("arcs"), optional_array("edges"), array("offsets"),
      optional_array("labels"), optional_array("log_z"), optional_array("log_likelihoods"),
      optional_array("marginals"), optional_array("pair_sums"), optional_array("pairs"),
      optional_array("patterns"), optional_array("mixing"), optional_array("weights"),
      nb::arg("n_threads"), nb::arg("bound") = 0.0, optional_array("by_label") = nb::none());
  module.def("posteriors_give_mixing", &posteriors_give_mixing, nb::arg("n_labels"),
             nb::arg("edges"));
  module.def(
      "fill_weighted_posteriors",
      [](Table nodes, Table arcs, Edges edges, Offsets offsets, Codes labels, Doubles weights,
         Array<double, 1> log_likelihoods, Array<double, 2> marginals,
         OptionalArray<double, 2> pair_sums, OptionalArray<double, 3> pairs, int n_threads,
         double bound) {
        const ChainScores scores = read_scores(nodes, arcs, edges, offsets);
        ChainPosteriors out =
            read_outputs(nodes, offsets, {}, log_likelihoods, marginals, pair_sums, pairs, {});
        out.bound = bound;
        check_labels(labels, nodes.shape(0), nodes.shape(1), n_threads);
        check_shape(weights, {nodes.shape(0)}, "weights must have an entry for each position");
        run_kernel([&](Stop& stop) {
          fill_weighted_posteriors(scores, labels.data(), weights.data(), out, n_threads, stop);
        });
      },
      array("nodes"), array("arcs"), optional_array("edges"), array("offsets"), array("labels"),
      array("weights"), array("log_likelihoods"), array("marginals"), optional_array("pair_sums"),
      optional_array("pairs"), nb::arg("n_threads"), nb::arg("bound") = 0.0);
  module.def(
      "fill_viterbi",
      [](Table nodes, Table arcs, Edges edges, Offsets offsets, Array<int32_t, 1> labels,
         int n_threads) {
        const ChainScores scores = read_scores(nodes, arcs, edges, offsets);
        check_shape(labels, {nodes.shape(0)}, "labels must have an entry for each position");
        run_kernel([&](Stop& stop) { fill_viterbi(scores, labels.data(), n_threads, stop); });
      },
      array("nodes"), array("arcs"), optional_array("edges"), array("offsets"), array("labels"),
      nb::arg("n_threads"));
  module.def(
      "fill_tangents",
      [](Table nodes, Table arcs, Edges edges, Offsets offsets, Table marginals, Table node_moves,
         std::optional<Table> arc_moves, Array<double, 2> marginal_slopes,
         OptionalArray<double, 2> pair_sum_slopes, OptionalArray<double, 3> pair_slopes,
         Array<uint8_t, 1> refused, int n_threads, double bound) {
        const ChainScores scores = read_scores(nodes, arcs, edges, offsets);
        check_shape(marginals, {nodes.shape(0), nodes.shape(1)},
                    "marginals must have the shape of nodes");
        check_shape(node_moves, {nodes.shape(0), nodes.shape(1)},
                    "the direction of nodes must have their shape");
        check_shape(arc_moves, {nodes.shape(1), nodes.shape(1)},
                    "the direction of arcs must have their shape");
        check_shape(refused, {offsets.shape(0) - 1},
                    "refused must have an entry for each sequence");
        const ChainPosteriors out =
            read_outputs(nodes, offsets, {}, {}, marginal_slopes, pair_sum_slopes, pair_slopes, {});
        const Direction direction{marginals.data(), node_moves.data(), data_or_null(arc_moves)};
        run_kernel([&](Stop& stop) {
          fill_tangents(scores, direction, {out.marginals, out.pair_sums, out.pairs, bound},
                        refused.data(), n_threads, stop);
        });
      },
      array("nodes"), array("arcs"), optional_array("edges"), array("offsets"), array("marginals"),
      array("node_moves"), optional_array("arc_moves"), array("marginal_slopes"),
      optional_array("pair_sum_slopes"), optional_array("pair_slopes"), array("refused"),
      nb::arg("n_threads"), nb::arg("bound") = 0.0);
  module.def(
      "fill_mixing",
      [](Table nodes, Table arcs, Edges edges, Offsets offsets, std::optional<Doubles> weights,
         Array<float, 1> node_gammas, OptionalArray<float, 1> edge_gammas,
         OptionalArray<double, 2> pair_curvature, int n_threads, double bound) {
        const ChainScores scores = read_scores(nodes, arcs, edges, offsets);
        MixingBounds out =
            read_bounds(nodes, offsets, weights, node_gammas, edge_gammas, pair_curvature);
        out.bound = bound;
        run_kernel([&](Stop& stop) { fill_mixing(scores, out, n_threads, stop); });
      },
      array("nodes"), array("arcs"), optional_array("edges"), array("offsets"),
      optional_array("weights"), array("node_gammas"), optional_array("edge_gammas"),
      optional_array("pair_curvature"), nb::arg("n_threads"), nb::arg("bound") = 0.0);
}

}  // namespace hedgerow::bindings
