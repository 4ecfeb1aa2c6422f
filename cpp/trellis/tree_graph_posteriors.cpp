// Posteriors of tree-shaped graphs.
#include <memory>
#include <span>

#include "trellis/chunk_sums.hpp"
#include "trellis/tree_graph_chunks.hpp"
#include "trellis/tree_graph_lanes.hpp"
#include "trellis/tree_graph_up_down.hpp"

namespace hedgerow {
namespace {

// Sums over chunks of sequences.
class GraphTables {
 public:
  GraphTables(const GraphScores& scores, const GraphPosteriors& out, size_t n_chunks)
      : arc_sums_(out.arc_sums, scores.n_arcs(), n_chunks, SumGrid(out.bound)),
        curvature_(out.mixing ? out.mixing->pair_curvature : nullptr,
                   int64_t{scores.n_labels} * scores.n_labels, n_chunks,
                   curvature_grid(out.mixing ? out.mixing->bound : 0.0)) {}

  SumTable arc_sums(int64_t chunk) { return arc_sums_.open(chunk); }
  SumTable curvature(int64_t chunk) { return curvature_.open(chunk); }
  void finish() {
    arc_sums_.finish();
    curvature_.finish();
  }

 private:
  ChunkSums arc_sums_, curvature_;
};

// The sequences of some chunks, of which the first has the table first_table.
void fill_by_rows(const GraphScores& scores, const int32_t* labels, const GraphPosteriors& out,
                  const GraphChunks& chunks, int64_t first_table, GraphTables& tables,
                  int n_threads, Stop& stop) {
  for_each_graph<GraphUpDown, Scaled>(
      scores, chunks, n_threads, stop,
      [&](auto& pass, int64_t chunk, std::span<const int64_t> chosen) {
        const int64_t table = first_table + chunk;
        return pass.run(chosen, tables.arc_sums(table), tables.curvature(table));
      },
      labels, out);
}

// Groups with a sequence in each lane, in double precision; sequences that are refused are computed
// in log space. Scratch memory of one thread.
class GraphLaneWorker {
 public:
  // states: of probabilities
  GraphLaneWorker(const GraphScores& scores, const GraphStates& states,
                  const GraphStates& log_states, const int32_t* labels, const GraphPosteriors& out)
      : scores_(scores),
        log_states_(log_states),
        labels_(labels),
        out_(out),
        fast_(scores, states, labels, out) {}

  void run(const StrandGroup<kLanes>& group, const SumTable& arc_sums, const SumTable& curvature,
           Stop& stop) {
    fast_.run(group, stop);
    for (int l = 0; l < group.n_strands; ++l) {
      const int64_t s = group.sequences[l];
      const LaneTotals totals = fast_.totals(l);
      if (totals.refused) {
        if (!slow_)
          slow_ = std::make_unique<GraphUpDown<Logs>>(scores_, log_states_, labels_, out_, stop);
        slow_->run(std::span(&s, 1), arc_sums, curvature);
        continue;
      }
      fast_.add_tables(l, arc_sums, curvature);
      if (out_.log_z) out_.log_z[s] = totals.log_z();
      if (out_.log_likelihoods) out_.log_likelihoods[s] = totals.log_likelihood();
    }
  }

 private:
  const GraphScores& scores_;
  const GraphStates& log_states_;
  const int32_t* labels_;
  const GraphPosteriors& out_;
  GraphLanes<DoubleLanes> fast_;
  std::unique_ptr<GraphUpDown<Logs>> slow_;  // built when first needed
};

// The same in single precision; sequences that are refused are computed in double precision.
class SingleGraphLaneWorker {
 public:
  SingleGraphLaneWorker(const GraphScores& scores, const GraphStates& states,
                        const GraphStates& log_states, const int32_t* labels,
                        const GraphPosteriors& out)
      : fast_(scores, states, labels, out), exact_(scores, states, log_states, labels, out) {}

  void run(const StrandGroup<kFloats>& group, const SumTable& arc_sums, const SumTable& curvature,
           Stop& stop) {
    fast_.run(group, stop);
    StrandGroup<kLanes> refused;
    for (int l = 0; l < group.n_strands; ++l) {
      if (!fast_.refused(l)) {
        fast_.add_tables(l, arc_sums, curvature);
        continue;
      }
      refused.add(group.sequences[l], group.begins[l], group.lengths[l]);
      if (refused.n_strands == kLanes) {
        exact_.run(refused, arc_sums, curvature, stop);
        refused = {};
      }
    }
    if (refused.n_strands > 0) exact_.run(refused, arc_sums, curvature, stop);
  }

 private:
  GraphLanes<FloatLanes> fast_;
  GraphLaneWorker exact_;
};

// The sequences of groups, and those that are too long for a lane.
template <class Worker, int kWidth>
void fill_in_lanes(const GraphScores& scores, const GraphStates& states, const int32_t* labels,
                   const GraphPosteriors& out, int n_threads, Stop& stop) {
  const StrandGroups<kWidth> groups(
      {scores.n_sequences, scores.offsets, scores.n_labels, scores.nodes, scores.arcs, nullptr});
  const GraphChunks others(scores, groups.others);
  const auto n_groups = static_cast<int64_t>(groups.n_chunks());
  GraphTables tables(scores, out, n_groups + others.n_chunks());
  const GraphStates log_states(scores, true);
  groups.for_each(
      n_threads, stop,
      [&] { return std::make_unique<Worker>(scores, states, log_states, labels, out); },
      [&](Worker& worker, int64_t chunk, const StrandGroup<kWidth>& group) {
        worker.run(group, tables.arc_sums(chunk), tables.curvature(chunk), stop);
      });
  fill_by_rows(scores, labels, out, others, n_groups, tables, n_threads, stop);
  tables.finish();
}

}  // namespace

void fill_graph_posteriors(const GraphScores& scores, const int32_t* labels,
                           const GraphPosteriors& out, int n_threads, Stop& stop) {
  const GraphStates states(scores, false);
  if (GraphLanes<FloatLanes>::fit(scores, states, out))
    return fill_in_lanes<SingleGraphLaneWorker, kFloats>(scores, states, labels, out, n_threads,
                                                         stop);
  if (GraphLanes<DoubleLanes>::fit(scores, states, out))
    return fill_in_lanes<GraphLaneWorker, kLanes>(scores, states, labels, out, n_threads, stop);
  const GraphChunks chunks(scores);
  GraphTables tables(scores, out, chunks.n_chunks());
  fill_by_rows(scores, labels, out, chunks, 0, tables, n_threads, stop);
  tables.finish();
}

}  // namespace hedgerow
