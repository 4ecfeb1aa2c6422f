#include "arrays.hpp"
#include "trellis/automaton_chain.hpp"
#include "trellis/row_sums.hpp"
#include "trellis/tangent.hpp"
#include "trellis/tree_graph_order.hpp"

namespace hedgerow::bindings {
namespace {

AutomatonScores read_scores(const Automaton& automaton, const Table& nodes, const Doubles& arcs,
                            const EdgesOfAny<const double>& edges, const Offsets& offsets) {
  const size_t n_labels = automaton.n_labels();
  check(nodes.shape(1) == n_labels, "nodes must have a column for each label of the automaton");
  check_shape(arcs, {static_cast<size_t>(automaton.n_arcs())},
              "arcs must have an entry for each arc of the automaton");
  check_edges(edges, nodes.shape(0), n_labels, automaton.n_arcs());
  const bool by_arc = is_by_arc(edges);
  check(!edges || by_arc || automaton.has_all_pairs(),
        "edges need an automaton with an arc for every label pair");
  check_offsets(offsets, nodes.shape(0));
  return {automaton,      static_cast<int64_t>(offsets.shape(0)) - 1,
          offsets.data(), nodes.data(),
          arcs.data(),    data_or_null(edges),
          by_arc};
}

AutomatonPosteriors read_outputs(
    const AutomatonScores& scores, const OptionalArray<double, 1>& log_z,
    const OptionalArray<double, 1>& log_likelihoods, const OptionalArray<double, 2>& marginals,
    const OptionalArray<double, 1>& arc_sums, const OptionalArray<double, 2>& arc_marginals,
    const EdgesOfAny<double>& pairs, const std::optional<Doubles>& weights) {
  const size_t n_sequences = scores.n_sequences, n_labels = scores.automaton.n_labels();
  const size_t n_positions = scores.offsets[n_sequences], n_arcs = scores.automaton.n_arcs();
  for (const auto* per_sequence : {&log_z, &log_likelihoods})
    check_shape(*per_sequence, {n_sequences},
                "log_z and log_likelihoods must have an entry for each sequence");
  check_shape(marginals, {n_positions, n_labels}, "marginals must have the shape of nodes");
  check_shape(arc_sums, {n_arcs}, "arc_sums must have the shape of arcs");
  check_shape(arc_marginals, {n_positions, n_arcs},
              "arc_marginals must have shape (positions, arcs)");
  check_edges(pairs, n_positions, n_labels, n_arcs);
  check(!pairs || is_by_arc(pairs) == scores.by_arc, "pairs must have the shape of edges");
  check(!pairs || scores.by_arc || scores.automaton.has_all_pairs(),
        "pairs need an automaton with an arc for every label pair");
  check_shape(weights, {n_sequences}, "weights must have an entry for each sequence");
  return {data_or_null(log_z),    data_or_null(log_likelihoods), data_or_null(marginals),
          data_or_null(arc_sums), data_or_null(arc_marginals),   data_or_null(pairs),
          data_or_null(weights)};
}

Automaton build_automaton(int n_labels, const Codes& failures, const Codes& last_labels,
                          const Codes& sources, const Codes& labels, const Codes& targets,
                          const Codes& links) {
  check_shape(last_labels, {failures.shape(0)}, "last_labels must have an entry for each state");
  for (const Codes* per_arc : {&labels, &targets, &links})
    check_shape(*per_arc, {sources.shape(0)},
                "labels, targets and links must have an entry for each arc");
  return Automaton({n_labels, static_cast<int>(failures.shape(0)),
                    static_cast<int>(sources.shape(0)), failures.data(), last_labels.data(),
                    sources.data(), labels.data(), targets.data(), links.data()});
}

// Fills arcs (N,) with the arc that the labels take into each position. Where a label is not known
// (code -1) it is -1, and the automaton starts again from its first state. parents: (N,) see
// GraphScores; without them sequences are chains
void fill_arcs_taken(const Automaton& automaton, const Codes& labels, const Offsets& offsets,
                     const std::optional<Codes>& parents, const Array<int32_t, 1>& arcs) {
  check_offsets(offsets, labels.shape(0));
  check_shape(arcs, {labels.shape(0)}, "arcs must have an entry for each position");
  check_shape(parents, {labels.shape(0)}, "parents must have an entry for each position");
  for (size_t t = 0; t < labels.shape(0); ++t)
    check(labels.data()[t] >= -1 && labels.data()[t] < automaton.n_labels(),
          "a label code lies outside -1 .. number of labels - 1");
  const auto take = [&](int64_t position, int64_t before) {
    const int32_t label = labels.data()[position];
    const int32_t arc_before = before < 0 ? -1 : arcs.data()[before];
    const int32_t state = arc_before < 0 ? Automaton::kBegin : automaton.target(arc_before);
    arcs.data()[position] = label < 0 ? -1 : automaton.find_arc(state, label);
  };
  for (size_t s = 0; s + 1 < offsets.shape(0); ++s) {
    const int64_t begin = offsets.data()[s], end = offsets.data()[s + 1];
    if (!parents) {
      for (int64_t t = begin; t < end; ++t) take(t, t == begin ? -1 : t - 1);
      continue;
    }
    const GraphOrder order(offsets.data(), parents->data(), s);
    for (int64_t i = 0; i < order.size(); ++i)
      take(order.positions[i], order.parents[i] < 0 ? -1 : order.positions[order.parents[i]]);
  }
}

}  // namespace

void bind_automaton(nb::module_& module) {
  module.def(
      "fill_row_sums",
      [](Table values, Offsets offsets, Codes places, std::optional<Doubles> weights,
         Array<double, 2> sums, int n_threads) {
        check_offsets(offsets, places.shape(0));
        check_shape(weights, {places.shape(0)}, "weights must have an entry for each place");
        const RowSums wanted{static_cast<int64_t>(values.shape(1)),
                             static_cast<int64_t>(offsets.shape(0)) - 1, offsets.data(),
                             places.data(), data_or_null(weights)};
        check(are_within(places, 0, values.shape(1), n_threads), "a place lies outside the row");
        check_shape(sums, {values.shape(0), offsets.shape(0) - 1},
                    "sums must have a row for each row of values, and a column for each sum (one "
                    "fewer than offsets)");
        run_kernel([&](Stop& stop) {
          fill_row_sums(wanted, values.shape(0), values.data(), sums.data(), n_threads, stop);
        });
      },
      array("values"), array("offsets"), array("places"), optional_array("weights"), array("sums"),
      nb::arg("n_threads"));
  nb::class_<Automaton>(module, "Automaton")
      .def(
          "__init__",
          [](Automaton* self, int n_labels, Codes failures, Codes last_labels, Codes sources,
             Codes labels, Codes targets, Codes links) {
            new (self) Automaton(
                build_automaton(n_labels, failures, last_labels, sources, labels, targets, links));
          },
          nb::arg("n_labels"), array("failures"), array("last_labels"), array("sources"),
          array("labels"), array("targets"), array("links"))
      .def_prop_ro("n_terms", &Automaton::n_terms)
      .def("fill_arcs_taken", &fill_arcs_taken, array("labels"), array("offsets"),
           optional_array("parents"), array("arcs"));
  module.def(
      "fill_automaton_posteriors",
      [](const Automaton& automaton, Table nodes, Doubles arcs, EdgesOfAny<const double> edges,
         Offsets offsets, std::optional<Codes> labels, OptionalArray<double, 1> log_z,
         OptionalArray<double, 1> log_likelihoods, OptionalArray<double, 2> marginals,
         OptionalArray<double, 1> arc_sums, OptionalArray<double, 2> arc_marginals,
         EdgesOfAny<double> pairs, Patterns patterns, std::optional<Doubles> weights, int n_threads,
         double bound) {
        const AutomatonScores scores = read_scores(automaton, nodes, arcs, edges, offsets);
        AutomatonPosteriors out = read_outputs(scores, log_z, log_likelihoods, marginals, arc_sums,
                                               arc_marginals, pairs, weights);
        out.bound = bound;
        const auto by_pattern = read_patterns(patterns, nodes.shape(0), automaton.n_arcs());
        if (by_pattern) out.patterns = &*by_pattern;
        if (labels) check_labels(*labels, nodes.shape(0), nodes.shape(1), n_threads);
        check(labels || !log_likelihoods, "log_likelihoods need labels");
        run_kernel([&](Stop& stop) {
          fill_posteriors(scores, data_or_null(labels), out, n_threads, stop);
        });
      },
      nb::arg("automaton"), array("nodes"), array("arcs"), optional_array("edges"),
      array("offsets"), optional_array("labels"), optional_array("log_z"),
      optional_array("log_likelihoods"), optional_array("marginals"), optional_array("arc_sums"),
      optional_array("arc_marginals"), optional_array("pairs"), optional_array("patterns"),
      optional_array("weights"), nb::arg("n_threads"), nb::arg("bound") = 0.0);
  module.def(
      "fill_weighted_automaton_posteriors",
      [](const Automaton& automaton, Table nodes, Doubles arcs, EdgesOfAny<const double> edges,
         Offsets offsets, Codes labels, Doubles weights, Array<double, 1> log_likelihoods,
         Array<double, 2> marginals, OptionalArray<double, 1> arc_sums, EdgesOfAny<double> pairs,
         int n_threads, double bound) {
        const AutomatonScores scores = read_scores(automaton, nodes, arcs, edges, offsets);
        AutomatonPosteriors out =
            read_outputs(scores, {}, log_likelihoods, marginals, arc_sums, {}, pairs, {});
        out.bound = bound;
        check_labels(labels, nodes.shape(0), nodes.shape(1), n_threads);
        check_shape(weights, {nodes.shape(0)}, "weights must have an entry for each position");
        run_kernel([&](Stop& stop) {
          fill_weighted_posteriors(scores, labels.data(), weights.data(), out, n_threads, stop);
        });
      },
      nb::arg("automaton"), array("nodes"), array("arcs"), optional_array("edges"),
      array("offsets"), array("labels"), array("weights"), array("log_likelihoods"),
      array("marginals"), optional_array("arc_sums"), optional_array("pairs"), nb::arg("n_threads"),
      nb::arg("bound") = 0.0);
  module.def(
      "fill_automaton_tangents",
      [](const Automaton& automaton, Table nodes, Doubles arcs, EdgesOfAny<const double> edges,
         Offsets offsets, Table marginals, Table node_moves, std::optional<Doubles> arc_moves,
         OptionalArray<const uint8_t, 1> wanted, Array<double, 2> marginal_slopes,
         OptionalArray<double, 1> arc_sum_slopes, OptionalArray<double, 2> arc_slopes,
         EdgesOfAny<double> pair_slopes, int n_threads, double bound) {
        const AutomatonScores scores = read_scores(automaton, nodes, arcs, edges, offsets);
        check_shape(marginals, {nodes.shape(0), nodes.shape(1)},
                    "marginals must have the shape of nodes");
        check_shape(node_moves, {nodes.shape(0), nodes.shape(1)},
                    "the direction of nodes must have their shape");
        check_shape(arc_moves, {arcs.shape(0)}, "the direction of arcs must have their shape");
        check_shape(wanted, {offsets.shape(0) - 1}, "wanted must have an entry for each sequence");
        const AutomatonPosteriors out = read_outputs(scores, {}, {}, marginal_slopes,
                                                     arc_sum_slopes, arc_slopes, pair_slopes, {});
        const Direction direction{marginals.data(), node_moves.data(), data_or_null(arc_moves)};
        run_kernel([&](Stop& stop) {
          fill_tangents(scores, direction, data_or_null(wanted),
                        {out.marginals, out.arc_sums, out.arc_marginals, out.pairs, bound},
                        n_threads, stop);
        });
      },
      nb::arg("automaton"), array("nodes"), array("arcs"), optional_array("edges"),
      array("offsets"), array("marginals"), array("node_moves"), optional_array("arc_moves"),
      optional_array("wanted"), array("marginal_slopes"), optional_array("arc_sum_slopes"),
      optional_array("arc_slopes"), optional_array("pair_slopes"), nb::arg("n_threads"),
      nb::arg("bound") = 0.0);
  module.def(
      "fill_automaton_viterbi",
      [](const Automaton& automaton, Table nodes, Doubles arcs, EdgesOfAny<const double> edges,
         Offsets offsets, Array<int32_t, 1> labels, int n_threads) {
        const AutomatonScores scores = read_scores(automaton, nodes, arcs, edges, offsets);
        check_shape(labels, {nodes.shape(0)}, "labels must have an entry for each position");
        run_kernel([&](Stop& stop) { fill_viterbi(scores, labels.data(), n_threads, stop); });
      },
      nb::arg("automaton"), array("nodes"), array("arcs"), optional_array("edges"),
      array("offsets"), array("labels"), nb::arg("n_threads"));
  module.def(
      "fill_k_best",
      [](const Automaton& automaton, Table nodes, Doubles arcs, EdgesOfAny<const double> edges,
         Offsets offsets, Array<int32_t, 2> labels, Array<int64_t, 1> counts,
         Array<double, 2> losses, int n_threads) {
        const AutomatonScores scores = read_scores(automaton, nodes, arcs, edges, offsets);
        const size_t n_sequences = scores.n_sequences;
        check(labels.shape(1) == nodes.shape(0), "labels must have a column for each position");
        check_shape(counts, {n_sequences}, "counts must have an entry for each sequence");
        check_shape(losses, {labels.shape(0), n_sequences},
                    "losses must have a row for each row of labels and a column for each sequence");
        run_kernel([&](Stop& stop) {
          fill_k_best(scores, static_cast<int64_t>(labels.shape(0)), labels.data(), counts.data(),
                      losses.data(), n_threads, stop);
        });
      },
      nb::arg("automaton"), array("nodes"), array("arcs"), optional_array("edges"),
      array("offsets"), array("labels"), array("counts"), array("losses"), nb::arg("n_threads"));
  module.def(
      "fill_samples",
      [](const Automaton& automaton, Table nodes, Doubles arcs, EdgesOfAny<const double> edges,
         Offsets offsets, Table uniforms, Array<int32_t, 2> labels, int n_threads) {
        const AutomatonScores scores = read_scores(automaton, nodes, arcs, edges, offsets);
        check(labels.shape(1) == nodes.shape(0), "labels must have a column for each position");
        check_shape(uniforms, {labels.shape(0), labels.shape(1)},
                    "uniforms must have the shape of labels");
        run_kernel([&](Stop& stop) {
          fill_samples(scores, static_cast<int64_t>(labels.shape(0)), uniforms.data(),
                       labels.data(), n_threads, stop);
        });
      },
      nb::arg("automaton"), array("nodes"), array("arcs"), optional_array("edges"),
      array("offsets"), array("uniforms"), array("labels"), nb::arg("n_threads"));
}

}  // namespace hedgerow::bindings
