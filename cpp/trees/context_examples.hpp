// Examples of trees that may split on previous labels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "large_vector.hpp"
#include "parallel.hpp"
#include "trees/context_block.hpp"
#include "trees/contexts.hpp"
#include "trees/examples.hpp"

namespace hedgerow {

// An example of an output is a row: a position, with a gradient and a probability in each context.
struct ContextRow {
  int32_t position;
  float curvature;
  float probability;  // of all contexts together
  // Where gradients are shared, the observed context, -1 if it is not one of this output, and the
  // gradient there; the others are the probabilities.
  int32_t observed;
  float observed_gradient;
};

// The rows of every output, by position. Parts of the positions are added one after the other.
class ContextExamples {
 public:
  // Reserves address space for the rows of this many positions; memory is used as it is filled.
  ContextExamples(Contexts contexts, int64_t n_positions, const UnitBits& unit_bits = {});

  const Contexts& contexts() const { return contexts_; }
  int n_outputs() const { return contexts_.n_outputs(); }
  int64_t n_rows(int output) const { return std::ssize(by_output_[output].rows); }
  std::span<const ContextRow> rows(int output) const { return by_output_[output].rows; }
  // (n_rows, n_contexts) both. Gradients are empty where they are shared, probabilities where there
  // are none.
  std::span<const float> gradients(int output) const { return by_output_[output].gradients; }
  std::span<const float> probabilities(int output) const;
  // Whether probabilities are (n_positions, n_contexts) instead, of which only those of rows are
  // filled: see EdgeDerivatives::by_label.
  bool are_by_position() const { return by_label_ != nullptr; }
  // Magnitudes of gradients and curvatures, in parts that depend only on the data.
  std::span<const Magnitudes> magnitudes(int output) const { return by_output_[output].magnitudes; }
  // Whether curvatures are to be multiplied by p (1 - p).
  bool has_probabilities() const { return has_probabilities_; }
  // All positions are below.
  int64_t n_positions() const { return n_positions_; }
  const UnitBits& unit_bits() const { return unit_bits_; }

  void clear();
  // Rows whose gradients, in absolute value, sum to no more than the trim are left out. The
  // sampling is that of all positions.
  void add(const EdgeDerivatives& derivatives, const Sampling& sampling, int n_threads, Stop& stop);
  // Samples rows, first by their sizes and then among negative ones.
  void draw(const Sampling& sampling, int n_threads, Stop& stop);

 private:
  struct OfOutput {
    LargeVector<ContextRow> rows;
    LargeVector<float> gradients, probabilities;
    std::vector<Magnitudes> magnitudes;
  };
  // Keeps the rows that are there.
  void resize(int output, int64_t n_rows);
  // Finds the sizes of a part, and counts its rows: n_rows[chunk + 1, output]
  void size_up(const EdgeDerivatives& derivatives, const Sampling& sampling, int n_threads,
               Stop& stop, int64_t* n_rows);
  bool is_row(int64_t t, int output) const { return !(sizes_[t * n_outputs() + output] < 0.0f); }
  // Writes the row of an output at a position of a block, and adds to its magnitudes.
  void write_row(const EdgeDerivatives& derivatives, const ContextBlock& block, int64_t t,
                 bool is_first, int output, int n_contexts, int64_t row, Magnitudes& magnitudes);
  void write_rows(const EdgeDerivatives& derivatives, int64_t begin, int64_t end, int64_t* next);
  // Writes gradients that were shared.
  void write_gradients(int output);
  void draw_by_size(int output, const Sampling& sampling, Stop& stop);
  void stratify(int output, const Sampling& sampling);
  // Keeps rows for which weigh(row) is not 0, with that weight.
  template <class Weigh>
  void keep(int output, Weigh weigh);

  Contexts contexts_;
  std::vector<OfOutput> by_output_;
  // (N, K) of the part that is being added: sum of the gradients of a row, in absolute value;
  // negative where there is no row.
  std::vector<float> sizes_;
  MagnitudeGrid grid_{0.0};
  bool shared_ = false, has_probabilities_ = false;
  int64_t n_positions_ = 0;
  const float* by_label_ = nullptr;  // (K, n_by_label, n_contexts), see EdgeDerivatives
  int64_t n_by_label_ = 0;
  UnitBits unit_bits_;
};

}  // namespace hedgerow
