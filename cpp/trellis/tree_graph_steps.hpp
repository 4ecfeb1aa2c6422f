// Steps over a label automaton between nodes of tree-shaped graphs and their parents.
//
// Four nodes are processed at a time, one per lane: the automaton's tables are read once for all
// four, and sums over states are shared between arcs, as along chains (lockstep.hpp). The nodes
// need not be from one sequence, as long as none of them depends on another. Between steps, the
// numbers of a node are a row, and rows are multiplied with each other where branches meet.
#pragma once

#include <cstdint>
#include <vector>

#include "simd.hpp"
#include "sum_grid.hpp"
#include "trellis/lockstep.hpp"
#include "trellis/tree_graph_states.hpp"

namespace hedgerow {

// Rows of consecutive nodes follow each other, `stride` numbers each. X states, A arcs, E terms and
// C cells of the automaton.
template <class Semiring>
class GraphSteps {
 public:
  // weights: (A,) of the arcs; grid: for what is added to the sums
  GraphSteps(const GraphStates& states, const std::vector<double>& weights, const SumGrid& grid);

  // message[q] = sum over labels k of w[q, k] belief[target(q, k)], for n nodes.
  void fill_messages(const double* beliefs, int64_t n, double* messages);
  // reach[x] = sum over (q, k) that lead to x of outside[q] w[q, k], for n nodes.
  void fill_reach(const double* outsides, int64_t n, double* reach);
  // The same, and adds outside[q] w[q, k] shares[target(q, k)] to the sum of each arc. shares:
  // rows, such as beliefs over norms, so that posteriors are added
  void fill_reach_and_sums(const double* outsides, const double* shares, int64_t n, double* reach)
    requires Semiring::kSums;

  // Sets the sums of all arcs to 0.
  void open_sums();
  // Adds them to arc_sums (A,).
  void add_sums_to(double* arc_sums) const;

 private:
  // out[i] = number i of the rows of up to kLanes nodes. out: (stride,)
  void load_rows(const double* rows, int64_t n_nodes, Packed* out) const;
  // Zeros in the lanes without a node.
  void clear_lanes(int64_t n_nodes, Packed* numbers) const;
  void store_rows(const Packed* in, int64_t n_nodes, double* rows);

  const Automaton& automaton_;
  SumGrid grid_;
  int n_states_, stride_;
  std::vector<double> to_states_, to_cells_;  // (E,) weights of the terms' arcs
  Numbers beliefs_;                           // (stride,), or shares
  Numbers reach_;                             // (stride,), zeros beyond the states
  Numbers outsides_;                          // (C or stride,) sums over the cells
  Numbers messages_;                          // (C or stride,) likewise
  Numbers sums_;                              // (E,) in the order of to_states
  PaddedVector unused_;                       // (stride,) the row of lanes without a node
};

}  // namespace hedgerow
