// The label automaton: how the score of a label depends on the labels before it. There is a worked
// example at the top of automaton.cpp.
//
// A state stands for the last labels of a labelling; in state 0, there is no label yet. An explicit
// arc (q, k) stands for the label string q k. A state without an arc of its own for label k takes
// that of its failure state, the longest proper suffix that is a state too, and so on; state 0 has
// an arc for every label. An arc's link is the arc of the longest proper suffix of its string.
//
// A step over all states and labels therefore needs, for every explicit arc (q, k), the sum over
// the states p that take it: the subtree of q in the tree of failures, less the subtrees of the
// states below q that have an arc for k themselves. Such a difference must not be computed by
// subtraction: if the subtracted states hold nearly all the weight, all digits cancel. It is
// computed as a sum instead. With the states numbered in preorder, a subtree is a range, and what
// remains of it is a set of ranges, at most one more than are taken out of it, so at most twice the
// number of arcs altogether. Each range consists of cells of a binary tree over the states, which
// are summed once per step. Only positive numbers are ever added, so nothing cancels, and the same
// steps work for every semiring, even without subtraction.
#pragma once

#include <cstdint>
#include <vector>

#include "simd.hpp"

namespace hedgerow {

// The tables of an automaton: S states, A arcs sorted by (source, label), K labels.
struct AutomatonTables {
  int n_labels;
  int n_states;
  int n_arcs;
  const int32_t* failures;     // (S,) failure state, a shorter suffix; -1 for state 0
  const int32_t* last_labels;  // (S,) last label of the state; -1 for state 0
  const int32_t* sources;      // (A,) state
  const int32_t* labels;       // (A,) label that takes the arc
  const int32_t* targets;      // (A,) state reached
  const int32_t* links;        // (A,) arc of the longest proper suffix, -1 for arcs from state 0
};

// A sparse matrix with E terms that every step multiplies by:
//   row r = sum over its terms of weight of the term's arc * value of the term's column.
// Rows with the same number of terms form a run, so that the branches of the loops over them are
// easy to predict. Within a run the terms of kLanes rows are interleaved, the first term of each
// row, then the second of each; the terms of the last rows, fewer than kLanes, come row by row.
struct TermTable {
  struct Run {
    int n_terms;                 // of each of its rows
    int64_t first_row, end_row;  // rows[first_row] to rows[end_row]
    int64_t first_term;          // its terms begin here
  };
  struct Term {
    int32_t row, column, arc;
  };

  TermTable() = default;
  // pairs: (A,) Automaton::pair of each arc
  TermTable(const std::vector<Term>& terms, int n_rows, const std::vector<int32_t>& pairs);

  // Calls use(row, term) for all terms in order.
  template <class Use>
  void for_each_term(Use use) const {
    for (const Run& run : runs) {
      int64_t term = run.first_term;
      for (int64_t r = run.first_row; r < run.end_row;) {
        const int64_t n_rows = run.end_row - r >= kLanes ? kLanes : 1;
        for (int i = 0; i < run.n_terms; ++i)
          for (int64_t j = 0; j < n_rows; ++j) use(rows[r + j], term++);
        r += n_rows;
      }
    }
  }

  std::vector<Run> runs;
  std::vector<int32_t> rows;     // (n_rows,) in the order of the runs
  std::vector<int32_t> columns;  // (E,) column of each term
  std::vector<int32_t> arcs;     // (E,) arc of each term
  std::vector<int32_t> pairs;    // (E,) Automaton::pair of each term's arc
};

class Automaton {
 public:
  // Throws std::invalid_argument if the tables are inconsistent.
  explicit Automaton(const AutomatonTables& tables);

  int n_labels() const { return n_labels_; }
  int n_states() const { return n_states_; }
  int n_arcs() const { return static_cast<int>(targets_.size()); }
  int n_terms() const { return static_cast<int>(to_states.arcs.size()); }
  // Whether every pair of labels has an arc, so that the previous label is known on every arc.
  bool has_all_pairs() const { return has_all_pairs_; }

  // The state before the first label. States are numbered in preorder of the tree of failures, not
  // as in the tables; arcs are numbered as in the tables.
  static constexpr int32_t kBegin = 0;
  int32_t target(int32_t arc) const { return targets_[arc]; }
  // Index j * K + k, in an edge table, of the pair (label before, label) of an arc, or K * K for
  // arcs from state 0. Only if has_all_pairs().
  int32_t pair(int32_t arc) const { return pairs_[arc]; }
  // The arc taken from a state on a label.
  int32_t find_arc(int32_t state, int32_t label) const;
  // The same for all labels. arcs: (K,)
  void fill_arcs(int32_t state, int32_t* arcs) const;

  // The sums that every step computes. There are C cells: cells 0 .. S-1 are the states, each other
  // cell is the sum of two cells before it. Forward, the value of a state is the sum over the
  // terms of to_states: cells whose states take an arc into it. Backward, the value of a cell is
  // the sum over the terms of to_cells: states that arcs lead to from all states of the cell.
  struct Cell {
    int32_t sum, left, right;  // cells; sum = left + right
  };
  int n_cells() const { return n_states_ + static_cast<int>(sums.size()); }
  std::vector<Cell> sums;             // (C-S,) left and right come before sum
  TermTable to_states;                // rows: states; columns: cells
  TermTable to_cells;                 // rows: cells; columns: states
  std::vector<int32_t> label_bounds;  // (K+1,) label_bounds[k] to [k+1]: the states that end in k

 private:
  void number_states(const AutomatonTables& tables);
  void number_arcs(const AutomatonTables& tables);
  void build_program(const AutomatonTables& tables);

  int n_labels_;
  int n_states_;
  bool has_all_pairs_;
  std::vector<int32_t> numbers_;  // (S,) preorder number of each state of the tables
  // From here on, states have preorder numbers.
  std::vector<int32_t> failures_;     // (S,) failure state of each state, -1 for state 0
  std::vector<int32_t> ends_;         // (S,) states q .. ends_[q] - 1 are the subtree of q
  std::vector<int64_t> arc_offsets_;  // (S+1,) the arcs from q: arcs_[arc_offsets_[q]] to [q+1]
  std::vector<int32_t> arcs_;         // (A,) the arcs by source state and label
  std::vector<int32_t> arc_labels_;   // (A,) the labels of arcs_
  std::vector<int32_t> targets_;      // (A,) state that each arc leads to
  std::vector<int32_t> pairs_;        // (A,) see pair(); zeros without all pairs
};

}  // namespace hedgerow
