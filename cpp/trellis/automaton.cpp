// A worked example: labels 0 and 1, patterns 01 and 101, as in labels/automaton.py. The test
// program checks its tables and its two steps (automaton_test.cpp, worked_example).
//
// The tables. The states are the empty string, the labels, and the proper prefixes of patterns; the
// arcs are the labels and the prefixes of patterns (K = 2, S = 4, A = 5):
//
//   state  string  failure              arc  string  source  label  target  link
//     0    empty     -1                  0   0       0       0      1       -1
//     1    0          0                  1   1       0       1      2       -1
//     2    1          0                  2   01      1       1      2        1
//     3    10         1                  3   10      2       0      3        0
//                                        4   101     3       1      2        2
//
// An arc leads to the longest suffix of its string that is a state: that of 01 is 1, state 2. State
// 2 has no arc for label 1 and takes that of its failure state 0, arc 1. State 3 has no arc for
// label 0, nor has its failure state 1, so it takes that of state 0, arc 0.
//
// Numbering 1, states in preorder of the tree of failures (number_states), from here on:
//
//   number           0      1   2   3       empty has the children 0 and 1,
//   string           empty  0   10  1       0 has the child 10
//   end of subtree   4      3   3   4       so the subtree of 0 is the range 1 .. 2
//   label_bounds     (1, 3, 4): states 1 .. 2 end in label 0, state 3 in label 1
//
// Numbering 2, arcs by (preorder number of the source, label), only to look them up (number_arcs):
// arc_offsets_ = (0, 2, 3, 4, 5), arcs_ = (0, 1, 2, 4, 3). Everywhere else an arc keeps its number.
//
// The states that take an arc: the subtree of its source, less the subtrees of the sources of the
// arcs that link to it (build_program):
//
//   arc  string  subtree  less             taken by
//    0   0       0 .. 3   3 (arc 3)        0 .. 2
//    1   1       0 .. 3   1 .. 2 (arc 2)   0 and 3
//    2   01      1 .. 2   2 (arc 4)        1
//    3   10      3                         3
//    4   101     2                         2
//
// Numbering 3, cells, sums over ranges of states. Cells 0 .. 3 are the states. CellTree joins, from
// the last state to the first, each state with the subtrees below it: 1 and 2 to cell 4 (states
// 1 .. 2), 0 and cell 4 to cell 5 (0 .. 2), cell 5 and 3 to cell 6 (0 .. 3). Arc 0 needs cell 5,
// and that needs cell 4; no arc needs cell 6, so it is dropped and C = 6. Cells would be renumbered
// if a dropped one were not the last. sums = {4 = 1 + 2, 5 = 0 + 4}.
//
// Terms (row, column, arc), E = 6: (target, cell, arc) for every cell that makes up what an arc is
// taken by. They make two tables, each a sparse matrix with one arc's weight per entry:
//
//   to_states, rows are states              to_cells, rows are cells (the transpose)
//     0 (empty)  no terms                     0  w1 [3]
//     1 (0)      w0 [5]                       1  w2 [3]
//     2 (10)     w3 [3]                       2  w4 [3]
//     3 (1)      w1 [0] + w1 [3]              3  w1 [3] + w3 [2]
//                + w2 [1] + w4 [2]            4  no terms
//                                             5  w0 [1]
//   runs: rows (0), (1, 2), (3)             runs: rows (4), (0, 1, 2, 5), (3)
//   of 0, 1 and 4 terms per row             of 0, 1 and 2 terms per row
//
// One step forward with arc weights w = (1, 1, 0.5, 1, 0.25), label factors f = (0.4, 1), and
// alpha_{t-1} = (0, 0.5, 0.2, 0.3) of the states empty, 0, 10, 1, whose norm is 1:
//
//   cell 4 = 0.5 + 0.2 = 0.7, cell 5 = 0 + 0.7 = 0.7
//   reached[0]  = 1 * 0.7 = 0.7                                        (string 0)
//   reached[10] = 1 * 0.3 = 0.3
//   reached[1]  = 1 * 0 + 1 * 0.3 + 0.5 * 0.5 + 0.25 * 0.2 = 0.6
//   alpha_t = f * reached = (0, 0.4 * 0.7, 0.4 * 0.3, 1 * 0.6) = (0, 0.28, 0.12, 0.6), norm 1
//
// The step back from beta_t = 1 in all states is the transpose. With reached = f * beta_t =
// (0.4, 0.4, 1) of the states 0, 10, 1, the terms of to_cells give
//
//   cells 0 .. 5 = (1, 0.5, 0.25, 1 + 0.4, 0, 0.4)
//
// and what a cell has comes back to its parts, the sums in reverse: cell 5 to 0 and 4, so cell 0 =
// 1.4 and cell 4 = 0.4; cell 4 to 1 and 2, so cell 1 = 0.9 and cell 2 = 0.65. beta_{t-1} = cells
// 0 .. 3 = (1.4, 0.9, 0.65, 1.4). Check: sum alpha_{t-1} beta_{t-1} = 0.45 + 0.13 + 0.42 = 1.
#include "trellis/automaton.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "require.hpp"

namespace hedgerow {
namespace {

void check_tables(const AutomatonTables& tables) {
  const int n_labels = tables.n_labels, n_states = tables.n_states, n_arcs = tables.n_arcs;
  require(n_labels >= 1 && n_states > n_labels && n_arcs >= n_labels,
          "an automaton needs a state and an arc for every label");
  require(tables.failures[0] == -1, "state 0 must not have a failure state");
  for (int s = 1; s < n_states; ++s) {
    require(tables.failures[s] >= 0 && tables.failures[s] < s,
            "a failure state must come before its state");
    const int32_t label = tables.last_labels[s];
    require(s <= n_labels
                ? label == s - 1 && tables.failures[s] == 0
                : tables.failures[s] > 0 && label == tables.last_labels[tables.failures[s]],
            "states must be in this order: the empty string, each single label, longer strings, "
            "which must end in the string of their failure state");
  }
  for (int a = 0; a < n_arcs; ++a) {
    require(tables.sources[a] >= 0 && tables.sources[a] < n_states && tables.targets[a] > 0 &&
                tables.targets[a] < n_states && tables.labels[a] >= 0 &&
                tables.labels[a] < n_labels &&
                tables.last_labels[tables.targets[a]] == tables.labels[a],
            "an arc leads out of range, or to a state of another label");
    require(a == 0 || std::pair(tables.sources[a - 1], tables.labels[a - 1]) <
                          std::pair(tables.sources[a], tables.labels[a]),
            "arcs must be sorted by source and label");
    require(a < n_labels ? tables.sources[a] == 0 && tables.links[a] == -1
                         : tables.sources[a] > 0 && tables.links[a] >= 0 && tables.links[a] < a &&
                               tables.labels[tables.links[a]] == tables.labels[a],
            "state 0 must have an arc for every label, and every other arc must link to an arc "
            "before it");
  }
}

// Sorts the indices 0 .. n-1 by key, stably; those with a negative key are left out. Those of key k
// are order[offsets[k]] to order[offsets[k + 1]]. keys: (n,)
struct Buckets {
  Buckets(const std::vector<int32_t>& keys, int n_keys)
      : offsets(n_keys + 1, 0), order(keys.size()) {
    for (int32_t key : keys)
      if (key >= 0) ++offsets[key + 1];
    for (int k = 0; k < n_keys; ++k) offsets[k + 1] += offsets[k];
    std::vector<int64_t> next(offsets.begin(), offsets.end() - 1);
    for (size_t i = 0; i < keys.size(); ++i)
      if (keys[i] >= 0) order[next[keys[i]]++] = static_cast<int32_t>(i);
  }
  std::vector<int64_t> offsets;  // (n_keys + 1,)
  std::vector<int32_t> order;    // (n,)
};

// A binary tree over the states, each of whose cells is a range of them. With `by_subtree` the
// cells of a state and of the subtrees below it are joined pairwise to the cell of its own subtree:
// the ranges that arcs need are such subtrees, and runs of them, but the tree is as deep as the
// tree of failures. Without it all states are joined pairwise, and any range takes at most 2
// log2(S) cells.
class CellTree {
 public:
  // failures: (S,) in preorder
  CellTree(const std::vector<int32_t>& failures, bool by_subtree) : tops_(failures.size()) {
    const auto n_states = static_cast<int32_t>(failures.size());
    for (int32_t q = 0; q < n_states; ++q) cells_.push_back({-1, -1, q, q + 1});
    std::vector<int32_t> parts(n_states);
    if (!by_subtree) {
      std::iota(parts.begin(), parts.end(), 0);
      std::fill(tops_.begin(), tops_.end(), join_all(parts));
      return;
    }
    const Buckets children(failures, n_states);
    for (int32_t q = n_states - 1; q >= 0; --q) {
      parts.assign(1, q);
      for (int64_t i = children.offsets[q]; i < children.offsets[q + 1]; ++i)
        parts.push_back(tops_[children.order[i]]);
      tops_[q] = join_all(parts);
    }
  }

  // Calls use(cell) for the cells that together are the states begin .. end-1, all of which must
  // lie in the subtree of q.
  template <class Use>
  void cover(int32_t q, int32_t begin, int32_t end, Use use) {
    if (begin >= end) return;
    waiting_.assign(1, tops_[q]);
    while (!waiting_.empty()) {
      const Cell cell = cells_[waiting_.back()];
      if (begin <= cell.begin && cell.end <= end) use(waiting_.back());
      const bool apart =
          (begin <= cell.begin && cell.end <= end) || cell.end <= begin || end <= cell.begin;
      waiting_.pop_back();
      if (apart) continue;
      waiting_.push_back(cell.right);
      waiting_.push_back(cell.left);
    }
  }

  int32_t size() const { return static_cast<int32_t>(cells_.size()); }
  int32_t left(int32_t cell) const { return cells_[cell].left; }
  int32_t right(int32_t cell) const { return cells_[cell].right; }

 private:
  struct Cell {
    int32_t left, right;  // -1 for a state
    int32_t begin, end;   // the states begin .. end-1
  };

  int32_t join_all(std::vector<int32_t>& parts) {
    while (parts.size() > 1) {
      size_t n_joined = 0;
      for (size_t i = 0; i < parts.size(); i += 2)
        parts[n_joined++] = i + 1 < parts.size() ? join(parts[i], parts[i + 1]) : parts[i];
      parts.resize(n_joined);
    }
    return parts[0];
  }

  int32_t join(int32_t left, int32_t right) {
    cells_.push_back({left, right, cells_[left].begin, cells_[right].end});
    return size() - 1;
  }

  std::vector<Cell> cells_;
  std::vector<int32_t> tops_;     // (S,) a cell that contains the subtree of each state
  std::vector<int32_t> waiting_;  // cells that cover() has not visited yet
};

}  // namespace

TermTable::TermTable(const std::vector<Term>& terms, int n_rows,
                     const std::vector<int32_t>& pairs_of_arcs)
    : rows(n_rows) {
  std::vector<int32_t> row_of(terms.size());
  for (size_t i = 0; i < terms.size(); ++i) row_of[i] = terms[i].row;
  const Buckets by_row(row_of, n_rows);
  const auto n_terms = [&](int32_t row) {
    return static_cast<int>(by_row.offsets[row + 1] - by_row.offsets[row]);
  };
  std::iota(rows.begin(), rows.end(), 0);
  // Rows stay in order within a run, so that the columns are read nearly in order too: states in
  // preorder are strings sorted from their last label back, and so are their extensions by any one
  // label. The columns of a run therefore ascend in at most K interleaved sequences.
  std::stable_sort(rows.begin(), rows.end(),
                   [&](int32_t a, int32_t b) { return n_terms(a) < n_terms(b); });
  int64_t n_before = 0;
  for (int64_t r = 0; r < n_rows; ++r) {
    const int n = n_terms(rows[r]);
    if (runs.empty() || runs.back().n_terms != n) runs.push_back({n, r, r, n_before});
    ++runs.back().end_row;
    n_before += n;
  }
  std::vector<int64_t> next(by_row.offsets.begin(), by_row.offsets.end() - 1);
  for_each_term([&](int32_t row, int64_t) {
    const Term& term = terms[by_row.order[next[row]++]];
    columns.push_back(term.column);
    arcs.push_back(term.arc);
    pairs.push_back(pairs_of_arcs[term.arc]);
  });
}

Automaton::Automaton(const AutomatonTables& tables)
    : n_labels_(tables.n_labels), n_states_(tables.n_states) {
  check_tables(tables);
  number_states(tables);
  number_arcs(tables);
  build_program(tables);
}

void Automaton::number_states(const AutomatonTables& tables) {
  std::vector<int32_t> sizes(n_states_, 1), next(n_states_, 1);
  for (int s = n_states_ - 1; s > 0; --s) sizes[tables.failures[s]] += sizes[s];
  numbers_.assign(n_states_, 0);
  failures_.assign(n_states_, -1);
  ends_.assign(n_states_, n_states_);
  for (int s = 1; s < n_states_; ++s) {
    const int32_t failure = tables.failures[s];
    const int32_t number = numbers_[failure] + next[failure];
    next[failure] += sizes[s];
    numbers_[s] = number;
    failures_[number] = numbers_[failure];
    ends_[number] = number + sizes[s];
  }
  for (int k = 0; k < n_labels_; ++k) label_bounds.push_back(numbers_[k + 1]);
  label_bounds.push_back(n_states_);
}

void Automaton::number_arcs(const AutomatonTables& tables) {
  // Arcs whose strings have two labels come right after those with one: all pairs are there if the
  // arc at the place of the last pair leaves the last label's state.
  const int64_t n_pairs = int64_t{n_labels_} * n_labels_;
  has_all_pairs_ =
      tables.n_arcs >= n_labels_ + n_pairs && tables.sources[n_labels_ + n_pairs - 1] == n_labels_;
  std::vector<int32_t> sources(tables.n_arcs);
  targets_.resize(tables.n_arcs);
  pairs_.resize(tables.n_arcs);
  for (int a = 0; a < tables.n_arcs; ++a) {
    const int32_t before = tables.last_labels[tables.sources[a]];
    sources[a] = numbers_[tables.sources[a]];
    targets_[a] = numbers_[tables.targets[a]];
    if (has_all_pairs_)
      pairs_[a] =
          static_cast<int32_t>(before < 0 ? n_pairs : before * n_labels_ + tables.labels[a]);
  }
  Buckets by_source(sources, n_states_);
  arc_offsets_ = std::move(by_source.offsets);
  arcs_ = std::move(by_source.order);
  for (const int32_t arc : arcs_) arc_labels_.push_back(tables.labels[arc]);
}

void Automaton::build_program(const AutomatonTables& tables) {
  // For each arc, the arcs that link to it, as places in arcs_, which is the order of their
  // sources.
  const auto source = [&](int32_t arc) { return numbers_[tables.sources[arc]]; };
  std::vector<int32_t> links(arcs_.size());
  for (size_t i = 0; i < arcs_.size(); ++i) links[i] = tables.links[arcs_[i]];
  const Buckets below(links, tables.n_arcs);

  const auto build_terms_of = [&](CellTree& tree) {
    std::vector<TermTable::Term> terms;
    for (int32_t arc = 0; arc < tables.n_arcs; ++arc) {
      const auto add = [&](int32_t cell) { terms.push_back({targets_[arc], cell, arc}); };
      int32_t begin = source(arc);
      for (int64_t j = below.offsets[arc]; j < below.offsets[arc + 1]; ++j) {
        const int32_t other = source(arcs_[below.order[j]]);
        tree.cover(source(arc), begin, other, add);
        begin = ends_[other];
      }
      tree.cover(source(arc), begin, ends_[source(arc)], add);
    }
    return terms;
  };
  CellTree tree(failures_, true);
  std::vector<TermTable::Term> terms = build_terms_of(tree);
  if (terms.size() > 4 * targets_.size()) {  // the tree may be too deep
    CellTree level(failures_, false);
    std::vector<TermTable::Term> others = build_terms_of(level);
    if (others.size() < terms.size()) {
      terms = std::move(others);
      tree = std::move(level);
    }
  }

  // Only cells that some term reads, or that are part of such a cell, are kept, and renumbered.
  std::vector<char> needed(tree.size(), 0);
  std::fill(needed.begin(), needed.begin() + n_states_, 1);
  for (const auto& term : terms) needed[term.column] = 1;
  for (int32_t cell = tree.size() - 1; cell >= n_states_; --cell)
    if (needed[cell]) needed[tree.left(cell)] = needed[tree.right(cell)] = 1;
  std::vector<int32_t> places(tree.size(), -1);
  int32_t n_cells = 0;
  for (int32_t cell = 0; cell < tree.size(); ++cell) {
    if (!needed[cell]) continue;
    places[cell] = n_cells++;
    if (cell >= n_states_)
      sums.push_back({places[cell], places[tree.left(cell)], places[tree.right(cell)]});
  }
  for (auto& term : terms) term.column = places[term.column];
  to_states = TermTable(terms, n_states_, pairs_);
  for (auto& term : terms) std::swap(term.row, term.column);
  to_cells = TermTable(terms, n_cells, pairs_);
}

int32_t Automaton::find_arc(int32_t state, int32_t label) const {
  for (;; state = failures_[state]) {
    const auto begin = arc_labels_.begin() + arc_offsets_[state];
    const auto end = arc_labels_.begin() + arc_offsets_[state + 1];
    const auto found = std::lower_bound(begin, end, label);
    if (found != end && *found == label) return arcs_[found - arc_labels_.begin()];
  }
}

void Automaton::fill_arcs(int32_t state, int32_t* arcs) const {
  std::fill(arcs, arcs + n_labels_, -1);
  for (; state >= 0; state = failures_[state])
    for (int64_t i = arc_offsets_[state]; i < arc_offsets_[state + 1]; ++i)
      if (arcs[arc_labels_[i]] < 0) arcs[arc_labels_[i]] = arcs_[i];
}

}  // namespace hedgerow
