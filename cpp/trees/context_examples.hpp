// Examples of trees that may ask about labels before a position.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "crew.hpp"
#include "large_vector.hpp"
#include "memory_pool.hpp"
#include "parallel.hpp"
#include "trees/contexts.hpp"
#include "trees/examples.hpp"

namespace hedgerow {

// Derivatives of the loss with respect to the scores of E edges, of some consecutive sequences.
struct EdgeDerivatives {
  int64_t first_position;  // of all positions
  int64_t n_positions;
  int64_t n_sequences;
  const int64_t* offsets;       // (n_sequences + 1,) from 0
  const double* gradients;      // (N, E)
  const double* probabilities;  // (N, E); null: every example has the curvature of its position
  const float* curvatures;      // (N,) that of an edge is this times p (1 - p)
  // Where given, (N,): the gradients are expected counts, from which 1 is subtracted at the
  // observed edge (-1: at none), and which are then multiplied by the weight of the position (null:
  // 1).
  const int32_t* observed = nullptr;
  const double* weights = nullptr;
  // (N,) of tree-shaped graphs, negative at roots, which take the place of first positions.
  const int32_t* parents = nullptr;

  double weight(int64_t t) const { return weights == nullptr ? 1.0 : weights[t]; }
};

// An example of an output is a row: a position, with a gradient and a probability in each context.
struct ContextRow {
  int32_t position;
  float curvature;
  float probability;  // of all contexts together
};

// The rows of every output, by position. Parts of the positions are added one after the other.
class ContextExamples {
 public:
  // There is room for the rows of so many positions, which takes memory as it is filled.
  ContextExamples(Contexts contexts, int64_t n_positions);

  const Contexts& contexts() const { return contexts_; }
  int n_outputs() const { return contexts_.n_outputs(); }
  int64_t n_rows(int output) const { return std::ssize(by_output_[output].rows); }
  std::span<const ContextRow> rows(int output) const { return by_output_[output].rows; }
  // (n_rows, n_contexts) both; probabilities are empty where there are none.
  std::span<const float> gradients(int output) const { return by_output_[output].gradients; }
  std::span<const float> probabilities(int output) const {
    return by_output_[output].probabilities;
  }
  // How large gradients and curvatures are together, in parts that depend on the data alone.
  std::span<const Magnitudes> magnitudes(int output) const { return by_output_[output].magnitudes; }
  // Whether curvatures are to be multiplied by p (1 - p).
  bool has_probabilities() const { return has_probabilities_; }
  // All positions are below.
  int64_t n_positions() const { return n_positions_; }

  void clear();
  // Rows whose gradients sum to no more than the trim, signs apart, are left out. The sampling is
  // that of all positions.
  void add(const EdgeDerivatives& derivatives, const Sampling& sampling, int n_threads, Stop& stop);
  // Draws among the rows, by their sizes and then among those of labels that were not observed.
  void draw(const Sampling& sampling, int n_threads, Stop& stop);

 private:
  struct OfOutput {
    LargeVector<ContextRow> rows;
    LargeVector<float> gradients, probabilities;
    std::vector<Magnitudes> magnitudes;

    void resize(int64_t n_rows, int n_contexts, bool has_probabilities);
  };
  struct Block;
  void size_up(const EdgeDerivatives& derivatives, const Sampling& sampling, int n_threads,
               Stop& stop);
  bool is_row(int64_t t, int output) const { return !(sizes_[t * n_outputs() + output] < 0.0f); }
  void read_block(const EdgeDerivatives& derivatives, int64_t begin, int64_t end,
                  Block& block) const;
  // Writes the row of an output at a position of a block, and adds to its magnitudes.
  void write_row(const EdgeDerivatives& derivatives, const Block& block, int64_t t, bool is_first,
                 int output, int64_t row, Magnitudes& magnitudes);
  void write_rows(const EdgeDerivatives& derivatives, int64_t begin, int64_t end, int64_t* next);
  void draw_by_size(int output, const Sampling& sampling);
  void stratify(int output, const Sampling& sampling);
  // Keeps rows that weigh(row) finds to count for something, by how much they do.
  template <class Weigh>
  void keep(int output, Weigh weigh);

  Contexts contexts_;
  std::vector<OfOutput> by_output_;
  // (N, K) of the part that is being added: sum of the gradients of a row, signs apart; negative
  // where there is no row.
  std::vector<float> sizes_;
  bool has_probabilities_ = false;
  int64_t n_positions_ = 0;
};

// The examples of one tree in whole units, for sets of contexts, which are ascending numbers.
class ContextRows {
 public:
  ContextRows(const ContextExamples& examples, int output, const std::shared_ptr<MemoryPool>& pool,
              int64_t n_positions, Crew& crew);

  const Units& units() const { return units_; }
  int64_t n_rows() const { return std::ssize(rows_); }
  int n_contexts() const { return n_contexts_; }
  int n_lags() const { return contexts_.n_lags(); }
  int n_labels() const { return contexts_.n_outputs(); }
  bool has_probabilities() const { return has_probabilities_; }
  int32_t position(int64_t row) const { return rows_[row].position; }

  // What a position has in some contexts.
  Sum sum(int32_t position, std::span<const int32_t> contexts) const {
    const int64_t row = row_of_[position];
    if (std::ssize(contexts) == n_contexts_) return totals_[row];
    Sum total;
    const Sum* sums = sums_.data() + row * n_contexts_;
    for (const int32_t c : contexts) total += sums[c];
    return total;
  }
  // Adds what positions have in each of some contexts to by_context (n_contexts,).
  void add_to(std::span<const int32_t> positions, std::span<const int32_t> contexts,
              Sum* by_context) const;
  // The curvature of a position where a step is the same in some contexts: those of probability
  // p_1 ... p_n together have the probability p = p_1 + ... + p_n, and the position's curvature
  // times p (1 - p). That is less than the sum of what each of them has.
  float joint_curvature(int32_t position, std::span<const int32_t> contexts) const;
  // The same of all contexts.
  float joint_curvature(int32_t position) const {
    const auto [_, curvature, p] = rows_[row_of_[position]];
    return curvature * (p * (1.0f - p));
  }
  // Adds up the sums of contexts by the label that is lag + 1 positions before: bins (K + 1,).
  void fill_bins(std::span<const int32_t> contexts, const Sum* by_context, int lag,
                 std::span<Sum> bins) const;
  // Of some contexts those whose label of a lag is among the bins; `is_left` (256,).
  std::vector<int32_t> select(std::span<const int32_t> contexts, int lag, const uint8_t* is_left,
                              bool wanted) const;

 private:
  const Contexts& contexts_;
  int output_;
  int n_contexts_;
  bool has_probabilities_;
  std::span<const ContextRow> rows_;
  std::span<const float> probabilities_;
  PooledArray<int32_t> row_of_;  // (N,) by position; not filled where there is none
  Units units_;
  PooledArray<Sum> sums_;    // (n_rows, n_contexts); empty where there is no gradient
  PooledArray<Sum> totals_;  // (n_rows,) of all contexts
};

}  // namespace hedgerow
