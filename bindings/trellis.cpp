#include "arrays.hpp"
#include "trellis/chain.hpp"
#include "trellis/mixing.hpp"
#include "trellis/tangent.hpp"

namespace hedgerow::bindings {
namespace {

using Nodes = Array<const double, 2>;
using Arcs = Array<const double, 2>;
using Edges = OptionalArray<const double, 3>;
using Offsets = Array<const int64_t, 1>;
using Labels = OptionalArray<const int32_t, 1>;

ChainScores read_scores(const Nodes& nodes, const Arcs& arcs, const Edges& edges,
                        const Offsets& offsets) {
  const size_t n_positions = nodes.shape(0), n_labels = nodes.shape(1);
  check(n_labels >= 1, "nodes must have at least one column");
  check(arcs.shape(0) == n_labels && arcs.shape(1) == n_labels,
        "arcs must be a square with a row for each column of nodes");
  if (edges) check_edges(*edges, n_positions, n_labels);
  check_offsets(offsets, n_positions);
  return {static_cast<int64_t>(offsets.shape(0)) - 1,
          offsets.data(),
          static_cast<int>(n_labels),
          nodes.data(),
          arcs.data(),
          data_or_null(edges)};
}

ChainPosteriors read_outputs(const Nodes& nodes, const Offsets& offsets,
                             const OptionalArray<double, 1>& log_z,
                             const OptionalArray<double, 1>& log_likelihoods,
                             const OptionalArray<double, 2>& marginals,
                             const OptionalArray<double, 2>& pair_sums,
                             const OptionalArray<double, 3>& pairs,
                             const OptionalArray<const double, 1>& weights) {
  const size_t n_sequences = offsets.shape(0) - 1, n_labels = nodes.shape(1);
  for (const auto* per_sequence : {&log_z, &log_likelihoods})
    check(!*per_sequence || (*per_sequence)->shape(0) == n_sequences,
          "log_z and log_likelihoods must have an entry for each sequence");
  check(!marginals || (marginals->shape(0) == nodes.shape(0) && marginals->shape(1) == n_labels),
        "marginals must have the shape of nodes");
  check(!pair_sums || (pair_sums->shape(0) == n_labels && pair_sums->shape(1) == n_labels),
        "pair_sums must have the shape of arcs");
  if (pairs) check_edges(*pairs, nodes.shape(0), n_labels);
  check(!weights || weights->shape(0) == n_sequences,
        "weights must have an entry for each sequence");
  return {data_or_null(log_z),     data_or_null(log_likelihoods), data_or_null(marginals),
          data_or_null(pair_sums), data_or_null(pairs),           data_or_null(weights)};
}

MixingBounds read_bounds(const Nodes& nodes, const Offsets& offsets,
                         const OptionalArray<const double, 1>& weights,
                         const Array<float, 1>& node_gammas,
                         const OptionalArray<float, 1>& edge_gammas,
                         const OptionalArray<double, 2>& pair_curvature) {
  const size_t n_positions = nodes.shape(0), n_labels = nodes.shape(1);
  check(
      node_gammas.shape(0) == n_positions && (!edge_gammas || edge_gammas->shape(0) == n_positions),
      "node_gammas and edge_gammas must have an entry for each position");
  check(!pair_curvature ||
            (pair_curvature->shape(0) == n_labels && pair_curvature->shape(1) == n_labels),
        "pair_curvature must have the shape of arcs");
  check(!weights || weights->shape(0) + 1 == offsets.shape(0),
        "weights must have an entry for each sequence");
  return {node_gammas.data(), data_or_null(edge_gammas), data_or_null(pair_curvature),
          data_or_null(weights)};
}

}  // namespace

void bind_trellis(nb::module_& module) {
  module.def(
      "fill_posteriors",
      [](Nodes nodes, Arcs arcs, Edges edges, Offsets offsets, Labels labels,
         OptionalArray<double, 1> log_z, OptionalArray<double, 1> log_likelihoods,
         OptionalArray<double, 2> marginals, OptionalArray<double, 2> pair_sums,
         OptionalArray<double, 3> pairs, Patterns patterns, OptionalArray<const double, 1> weights,
         int n_threads) {
        const ChainScores scores = read_scores(nodes, arcs, edges, offsets);
        ChainPosteriors out = read_outputs(nodes, offsets, log_z, log_likelihoods, marginals,
                                           pair_sums, pairs, weights);
        const auto by_pattern = read_patterns(patterns, nodes.shape(0), arcs.size());
        if (by_pattern) out.patterns = &*by_pattern;
        if (labels) check_labels(*labels, nodes.shape(0), nodes.shape(1));
        check(labels || !log_likelihoods, "log_likelihoods need labels");
        run_kernel([&](Stop& stop) {
          fill_posteriors(scores, data_or_null(labels), out, n_threads, stop);
        });
      },
      nb::arg("nodes").noconvert(), nb::arg("arcs").noconvert(),
      nb::arg("edges").noconvert().none(), nb::arg("offsets").noconvert(),
      nb::arg("labels").noconvert().none(), nb::arg("log_z").noconvert().none(),
      nb::arg("log_likelihoods").noconvert().none(), nb::arg("marginals").noconvert().none(),
      nb::arg("pair_sums").noconvert().none(), nb::arg("pairs").noconvert().none(),
      nb::arg("patterns").noconvert().none(), nb::arg("weights").noconvert().none(),
      nb::arg("n_threads"));
  module.def(
      "fill_weighted_posteriors",
      [](Nodes nodes, Arcs arcs, Edges edges, Offsets offsets, Array<const int32_t, 1> labels,
         Array<const double, 1> weights, Array<double, 1> log_likelihoods,
         Array<double, 2> marginals, OptionalArray<double, 2> pair_sums,
         OptionalArray<double, 3> pairs, int n_threads) {
        const ChainScores scores = read_scores(nodes, arcs, edges, offsets);
        const ChainPosteriors out =
            read_outputs(nodes, offsets, {}, log_likelihoods, marginals, pair_sums, pairs, {});
        check_labels(labels, nodes.shape(0), nodes.shape(1));
        check(weights.shape(0) == nodes.shape(0), "weights must have an entry for each position");
        run_kernel([&](Stop& stop) {
          fill_weighted_posteriors(scores, labels.data(), weights.data(), out, n_threads, stop);
        });
      },
      nb::arg("nodes").noconvert(), nb::arg("arcs").noconvert(),
      nb::arg("edges").noconvert().none(), nb::arg("offsets").noconvert(),
      nb::arg("labels").noconvert(), nb::arg("weights").noconvert(),
      nb::arg("log_likelihoods").noconvert(), nb::arg("marginals").noconvert(),
      nb::arg("pair_sums").noconvert().none(), nb::arg("pairs").noconvert().none(),
      nb::arg("n_threads"));
  module.def(
      "fill_viterbi",
      [](Nodes nodes, Arcs arcs, Edges edges, Offsets offsets, Array<int32_t, 1> labels,
         int n_threads) {
        const ChainScores scores = read_scores(nodes, arcs, edges, offsets);
        check(labels.shape(0) == nodes.shape(0), "labels must have an entry for each position");
        run_kernel([&](Stop& stop) { fill_viterbi(scores, labels.data(), n_threads, stop); });
      },
      nb::arg("nodes").noconvert(), nb::arg("arcs").noconvert(),
      nb::arg("edges").noconvert().none(), nb::arg("offsets").noconvert(),
      nb::arg("labels").noconvert(), nb::arg("n_threads"));
  module.def(
      "fill_tangents",
      [](Nodes nodes, Arcs arcs, Offsets offsets, Array<const double, 2> marginals,
         Array<const double, 2> node_moves, OptionalArray<const double, 2> arc_moves,
         Array<double, 2> marginal_slopes, OptionalArray<double, 2> pair_sum_slopes,
         OptionalArray<double, 3> pair_slopes, Array<uint8_t, 1> refused, int n_threads) {
        const ChainScores scores = read_scores(nodes, arcs, {}, offsets);
        check_rows(nodes, marginals, "marginals must have the shape of nodes");
        check_rows(nodes, node_moves, "the direction of nodes must have their shape");
        check(!arc_moves ||
                  (arc_moves->shape(0) == nodes.shape(1) && arc_moves->shape(1) == nodes.shape(1)),
              "the direction of arcs must have their shape");
        check(refused.shape(0) + 1 == offsets.shape(0),
              "refused must have an entry for each sequence");
        const ChainPosteriors out =
            read_outputs(nodes, offsets, {}, {}, marginal_slopes, pair_sum_slopes, pair_slopes, {});
        const Direction direction{marginals.data(), node_moves.data(), data_or_null(arc_moves)};
        run_kernel([&](Stop& stop) {
          fill_tangents(scores, direction, {out.marginals, out.pair_sums, out.pairs},
                        refused.data(), n_threads, stop);
        });
      },
      nb::arg("nodes").noconvert(), nb::arg("arcs").noconvert(), nb::arg("offsets").noconvert(),
      nb::arg("marginals").noconvert(), nb::arg("node_moves").noconvert(),
      nb::arg("arc_moves").noconvert().none(), nb::arg("marginal_slopes").noconvert(),
      nb::arg("pair_sum_slopes").noconvert().none(), nb::arg("pair_slopes").noconvert().none(),
      nb::arg("refused").noconvert(), nb::arg("n_threads"));
  module.def(
      "fill_mixing",
      [](Nodes nodes, Arcs arcs, Offsets offsets, OptionalArray<const double, 1> weights,
         Array<float, 1> node_gammas, OptionalArray<float, 1> edge_gammas,
         OptionalArray<double, 2> pair_curvature, int n_threads) {
        const ChainScores scores = read_scores(nodes, arcs, {}, offsets);
        const MixingBounds out =
            read_bounds(nodes, offsets, weights, node_gammas, edge_gammas, pair_curvature);
        run_kernel([&](Stop& stop) { fill_mixing(scores, out, n_threads, stop); });
      },
      nb::arg("nodes").noconvert(), nb::arg("arcs").noconvert(), nb::arg("offsets").noconvert(),
      nb::arg("weights").noconvert().none(), nb::arg("node_gammas").noconvert(),
      nb::arg("edge_gammas").noconvert().none(), nb::arg("pair_curvature").noconvert().none(),
      nb::arg("n_threads"));
}

}  // namespace hedgerow::bindings
