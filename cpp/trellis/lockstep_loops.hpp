// The loops of Lockstep: over cells, over terms, over states, each compiled for several x86-64
// levels. K labels, S states, C cells, E terms; see lockstep.hpp for the formulas.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simd.hpp"
#include "simd_exp.hpp"
#include "sum_grid.hpp"
#include "trellis/automaton.hpp"
#include "trellis/lockstep.hpp"
#include "trellis/semiring.hpp"

namespace hedgerow {
namespace {

// cells[sum] = cells[left] + cells[right], from the smallest cells up. cells: (C,), the states
// given
template <class Semiring>
HEDGEROW_CLONES void sum_cells(const Automaton& automaton, Packed* cells) {
  for (const Automaton::Cell cell : automaton.sums)
    cells[cell.sum] = Semiring::add(cells[cell.left], cells[cell.right]);
}

// The transpose of sum_cells: betas[left] += betas[sum] and betas[right] += betas[sum], from the
// largest cells down. betas: (C,)
template <class Semiring>
HEDGEROW_CLONES void spread_cells(const Automaton& automaton, Packed* betas) {
  for (auto cell = automaton.sums.rbegin(); cell != automaton.sums.rend(); ++cell) {
    betas[cell->left] = Semiring::add(betas[cell->left], betas[cell->sum]);
    betas[cell->right] = Semiring::add(betas[cell->right], betas[cell->sum]);
  }
}

// What a multiplication by a table of terms reads. These are pointers, not vectors: the compiler
// must assume that a store of lanes changes the fields of a vector, but not a local copy of a
// pointer.
struct Step {
  const TermTable& table;
  const int32_t* rows;         // (n_rows,)
  const int32_t* columns;      // (E,)
  const int32_t* edges;        // (E,) which edge each term reads
  const double* weights;       // (E,) weight of each term's arc
  const Packed* edge_factors;  // (M + 1,) factors of the edges, or null
  const Packed* values;        // (n_columns,)
  // With kMoves, values[column] + moves[term] * numbers[column] takes the place of values[column].
  const double* moves = nullptr;    // (E,)
  const Packed* numbers = nullptr;  // (n_columns,)
};

Step step_over(const TermTable& table, const std::vector<double>& weights,
               const Packed* edge_factors, bool by_arc, const Packed* values) {
  return {table,
          table.rows.data(),
          table.columns.data(),
          by_arc ? table.arcs.data() : table.pairs.data(),
          weights.data(),
          edge_factors,
          values};
}

// There are three kinds of sums to which the terms' posteriors are added: none,
struct NoTermSums {
  static constexpr bool kWanted = false, kWeighted = false;
};
// sums over the positions of each lane's sequence, without the weights of the arcs,
struct TermSums {
  static constexpr bool kWanted = true, kWeighted = false;
  HEDGEROW_INLINE void add(int64_t term, Lanes prob) const {
    sums[term] += static_cast<Lanes>(share) * prob;
  }

  const Packed* row_values;  // (n_rows,) what multiplies the terms of each row
  Packed share;              // weight of each lane's sequence
  Packed* sums;              // (E,) sums over positions, by lane
};
// or sums over nodes of different sequences, each rounded to a grid.
struct RoundedTermSums {
  static constexpr bool kWanted = true, kWeighted = true;
  HEDGEROW_INLINE void add(int64_t term, Lanes prob) const { sums[term] += grid.round(prob); }

  const Packed* row_values;  // (n_rows,)
  SumGrid grid;
  Packed* sums;  // (E,)
};

// One term of a row: adds weight * value of the column (* edge factor) to the row's sum, and
// returns the term's posterior, at_row * weight * value; if the numbers are probabilities, this is
// without the weight unless kWeighted, since the weight is then multiplied in after the sum over
// positions.
template <class Semiring, bool kEdges, bool kMoves, bool kWeighted>
HEDGEROW_INLINE Lanes add_term(const Step& step, int64_t term, Lanes at_row, Lanes& sum) {
  Lanes value = step.values[step.columns[term]];
  if constexpr (kMoves) {
    const Lanes number = step.numbers[step.columns[term]];
    value += broadcast(step.moves[term]) * number;
  }
  if constexpr (kEdges) value = Semiring::multiply(value, step.edge_factors[step.edges[term]]);
  const Lanes weighted = Semiring::multiply(broadcast(step.weights[term]), value);
  sum = Semiring::add(sum, weighted);
  return Semiring::multiply(at_row, Semiring::kLogarithms || kWeighted ? weighted : value);
}

// out[row] = sum over its terms of weight * value of the column (* edge factor); if sums are
// wanted, the posterior of each term is added to them, lane by lane. The loop over kLanes rows at a
// time is written out for four of them, so that their sums stay in registers.
template <class Semiring, bool kEdges, bool kMoves, class Sums>
HEDGEROW_INLINE void fill_rows(const Step& given, Packed* out, const Sums& wanted) {
  static_assert(kLanes == 4);
  constexpr bool kSums = Sums::kWanted, kWeighted = Sums::kWeighted;
  const Step step = given;
  const Sums sums = wanted;
  const Packed* row_values = out;
  if constexpr (kSums) row_values = sums.row_values;
  const Lanes zero = broadcast(Semiring::kZero);
  for (const TermTable::Run run : step.table.runs) {
    int64_t term = run.first_term, r = run.first_row;
    for (; r + kLanes <= run.end_row; r += kLanes) {
      const int32_t* rows = step.rows + r;
      Lanes sum[kLanes] = {zero, zero, zero, zero}, at_row[kLanes] = {zero, zero, zero, zero};
      if constexpr (kSums)
        for (int j = 0; j < kLanes; ++j) at_row[j] = row_values[rows[j]];
      for (int i = 0; i < run.n_terms; ++i, term += kLanes) {
        const Lanes a =
            add_term<Semiring, kEdges, kMoves, kWeighted>(step, term, at_row[0], sum[0]);
        const Lanes b =
            add_term<Semiring, kEdges, kMoves, kWeighted>(step, term + 1, at_row[1], sum[1]);
        const Lanes c =
            add_term<Semiring, kEdges, kMoves, kWeighted>(step, term + 2, at_row[2], sum[2]);
        const Lanes d =
            add_term<Semiring, kEdges, kMoves, kWeighted>(step, term + 3, at_row[3], sum[3]);
        if constexpr (kSums) {
          sums.add(term, Semiring::to_prob(a));
          sums.add(term + 1, Semiring::to_prob(b));
          sums.add(term + 2, Semiring::to_prob(c));
          sums.add(term + 3, Semiring::to_prob(d));
        }
      }
      for (int j = 0; j < kLanes; ++j) out[rows[j]] = sum[j];
    }
    for (; r < run.end_row; ++r) {
      Lanes sum = zero, at_row = zero;
      if constexpr (kSums) at_row = row_values[step.rows[r]];
      for (int i = 0; i < run.n_terms; ++i, ++term) {
        const Lanes prob = add_term<Semiring, kEdges, kMoves, kWeighted>(step, term, at_row, sum);
        if constexpr (kSums) sums.add(term, Semiring::to_prob(prob));
      }
      out[step.rows[r]] = sum;
    }
  }
}

template <class Semiring, bool kMoves = false>
HEDGEROW_CLONES void fill_rows(const Step& step, Packed* out) {
  if (step.edge_factors == nullptr)
    fill_rows<Semiring, false, kMoves>(step, out, NoTermSums());
  else
    fill_rows<Semiring, true, kMoves>(step, out, NoTermSums());
}

template <class Semiring, bool kMoves = false, class Sums>
HEDGEROW_CLONES void fill_rows_and_sums(const Step& step, Packed* out, const Sums& wanted) {
  if (step.edge_factors == nullptr)
    fill_rows<Semiring, false, kMoves>(step, out, wanted);
  else
    fill_rows<Semiring, true, kMoves>(step, out, wanted);
}

// probs[term] = row_values[row] * value of the column * (weight * edge factor) of each term.
template <class Semiring>
HEDGEROW_CLONES void fill_probs(const Step& given, const Packed* row_values, Packed* probs) {
  const Step step = given;
  step.table.for_each_term([&](int32_t row, int64_t term) {
    Lanes weight = broadcast(step.weights[term]);
    if (step.edge_factors != nullptr)
      weight = Semiring::multiply(weight, step.edge_factors[step.edges[term]]);
    const Lanes value = Semiring::multiply(row_values[row], step.values[step.columns[term]]);
    probs[term] = Semiring::to_prob(Semiring::multiply(value, weight));
  });
}

// The smallest of some numbers, ignoring zeros, and their sum or the largest of them. Numbers are
// added to two parts in turn, so that consecutive additions do not depend on each other.
enum class Wanted { kTotal, kLargest };

template <class Semiring, Wanted kWanted>
struct Measure {
  Lanes sums[2], smallest[2];  // of each part; `sums` by the semiring's addition or by maximum

  HEDGEROW_INLINE Measure() {
    for (int p = 0; p < 2; ++p) {
      sums[p] = broadcast(Semiring::kZero);
      smallest[p] = broadcast(kInfinity);
    }
  }
  static HEDGEROW_INLINE Lanes join(Lanes a, Lanes b) {
    return kWanted == Wanted::kTotal ? Semiring::add(a, b) : maximum(a, b);
  }
  template <int kPart>
  HEDGEROW_INLINE void add(Lanes value) {
    sums[kPart] = join(sums[kPart], value);
    if constexpr (!Semiring::kLogarithms)
      smallest[kPart] = minimum(one_if_zero(value), smallest[kPart]);
  }
  HEDGEROW_INLINE Extent extent() const {
    return {join(sums[0], sums[1]), minimum(smallest[0], smallest[1])};
  }
};

// The largest and the smallest number of a row (n,).
template <class Semiring>
HEDGEROW_CLONES void measure_row(const Packed* row, int n, Extent& extent) {
  Measure<Semiring, Wanted::kLargest> measure;
  int q = 0;
  for (; q + 2 <= n; q += 2) {
    measure.template add<0>(row[q]);
    measure.template add<1>(row[q + 1]);
  }
  if (q < n) measure.template add<0>(row[q]);
  extent = measure.extent();
}

// alpha[q] = cells[q] = factors[label of q] * reached[q], and the sum and the smallest of alpha.
// factors: (K,), reached, alpha: (S,), cells: (C,), of which only the states are filled
template <class Semiring>
HEDGEROW_CLONES void fill_alpha(const Automaton& automaton, const Packed* factors,
                                const Packed* reached, Packed* alpha, Packed* cells,
                                Extent& extent) {
  Measure<Semiring, Wanted::kTotal> measure;
  alpha[Automaton::kBegin] = cells[Automaton::kBegin] = broadcast(Semiring::kZero);
  for (int k = 0; k < automaton.n_labels(); ++k) {
    const Lanes factor = factors[k];
    const int32_t end = automaton.label_bounds[k + 1];
    int32_t q = automaton.label_bounds[k];
    for (; q + 2 <= end; q += 2) {
      const Lanes first = Semiring::multiply(factor, reached[q]);
      const Lanes second = Semiring::multiply(factor, reached[q + 1]);
      alpha[q] = cells[q] = first;
      alpha[q + 1] = cells[q + 1] = second;
      measure.template add<0>(first);
      measure.template add<1>(second);
    }
    if (q < end) {
      alpha[q] = cells[q] = Semiring::multiply(factor, reached[q]);
      measure.template add<0>(alpha[q]);
    }
  }
  extent = measure.extent();
}

// reached[q] = factors[label of q] * beta[q]. factors: (K,), beta, reached: (S,)
template <class Semiring>
HEDGEROW_CLONES void fill_reached(const Automaton& automaton, const Packed* factors,
                                  const Packed* beta, Packed* reached) {
  for (int k = 0; k < automaton.n_labels(); ++k) {
    const Lanes factor = factors[k];
    for (int32_t q = automaton.label_bounds[k]; q < automaton.label_bounds[k + 1]; ++q)
      reached[q] = Semiring::multiply(factor, beta[q]);
  }
}

// The same, and marginals[k] = sum over the states q of label k of alpha[q] * beta[q], (K,), and
// the largest and the smallest of beta.
template <class Semiring>
HEDGEROW_CLONES void fill_reached_and_marginals(const Automaton& automaton, const Packed* factors,
                                                const Packed* alpha, const Packed* beta,
                                                Packed* reached, Packed* marginals,
                                                Extent& extent) {
  Measure<Semiring, Wanted::kLargest> measure;
  for (int k = 0; k < automaton.n_labels(); ++k) {
    const Lanes factor = factors[k];
    Lanes sum = broadcast(0.0);
    const int32_t end = automaton.label_bounds[k + 1];
    int32_t q = automaton.label_bounds[k];
    for (; q + 2 <= end; q += 2) {
      const Lanes first = beta[q], second = beta[q + 1];
      reached[q] = Semiring::multiply(factor, first);
      reached[q + 1] = Semiring::multiply(factor, second);
      sum += Semiring::to_prob(Semiring::multiply(alpha[q], first));
      sum += Semiring::to_prob(Semiring::multiply(alpha[q + 1], second));
      measure.template add<0>(first);
      measure.template add<1>(second);
    }
    if (q < end) {
      const Lanes last = beta[q];
      reached[q] = Semiring::multiply(factor, last);
      sum += Semiring::to_prob(Semiring::multiply(alpha[q], last));
      measure.template add<0>(last);
    }
    marginals[k] = sum;
  }
  extent = measure.extent();
}

// out[q] = by * row[q], q = 0 .. n-1.
template <class Semiring>
HEDGEROW_CLONES void scale(const Packed& by, int n, const Packed* row, Packed* out) {
  const Lanes factor = by;
  for (int q = 0; q < n; ++q) out[q] = Semiring::multiply(row[q], factor);
}

// 1 / a in every lane, 1 where a is 0.
template <class Semiring>
Lanes invert(Lanes a) {
  double inverses[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    const double value = lane(a, l);
    inverses[l] = value == Semiring::kZero ? Semiring::kOne : Semiring::invert(value);
  }
  return load(inverses);
}

// numbers = exp(numbers - shift), where shift is at least each of them; 0 below exp(-700).
template <class Vector>
HEDGEROW_INLINE void exponentiate_packed(Packed* numbers, int64_t n, const Packed& shift) {
  constexpr int kTogether = sizeof(Vector) / sizeof(Packed);
  const auto take = [&](double* in_out, auto by) {
    using AnyVector = decltype(by);
    const AnyVector depth = load_as<AnyVector>(in_out) - by;
    store_all(in_out, where_at_least(depth, -700.0, exp_moderate(depth)));
  };
  Packed shifts[kTogether];
  std::fill(shifts, shifts + kTogether, shift);
  const auto by = load_as<Vector>(shifts[0].values);
  int64_t k = 0;
  for (; k + kTogether <= n; k += kTogether) take(numbers[k].values, by);
  for (; k < n; ++k) take(numbers[k].values, static_cast<Lanes>(shift));
}

inline void exponentiate_many(Packed* numbers, int64_t n, const Packed& shift) {
  static const auto kernel =
      eight_wide_clone<exponentiate_packed<EightLanes>, exponentiate_packed<Lanes>>();
  kernel(numbers, n, shift);
}

// factors[k] = exp(rows[lane][k] - largest score of the lane), k = 0 .. n-1, for one row of n
// scores per lane. extent: largest score and smallest finite score; bad: number of scores NaN or
// +inf. kMany: whether there are enough of them for a faster way to exponentiate them
template <class Semiring, bool kMany>
HEDGEROW_CLONES void fill_factor_rows(const double* const* rows, int64_t n, Packed* factors,
                                      Extent& extent, Packed& bad) {
  Lanes largest = broadcast(-kInfinity), smallest = broadcast(kInfinity), n_bad = broadcast(0.0);
  for (int64_t k = 0; k < n; ++k) {
    const double scores[kLanes] = {rows[0][k], rows[1][k], rows[2][k], rows[3][k]};
    const Lanes score = load(scores);
    factors[k] = score;
    largest = maximum(score, largest);
    smallest = minimum(replace_minus_infinity(score, broadcast(kInfinity)), smallest);
    n_bad += one_if_bad(score);
  }
  const Lanes shift = replace_minus_infinity(largest, broadcast(0.0));
  extent = {largest, smallest};
  bad = n_bad;
  if constexpr (kMany && !Semiring::kLogarithms) {
    return exponentiate_many(factors, n, shift);
  }
  for (int64_t k = 0; k < n; ++k)
    factors[k] = Semiring::from_score(static_cast<Lanes>(factors[k]) - shift);
}

}  // namespace
}  // namespace hedgerow
