// The first attributes of a layout, each with a row of all outputs. Attributes are numbered by how
// often they occur, so that these are the ones that most positions have; two bytes are enough to
// number them.
#pragma once

#include <cstdint>
#include <vector>

#include "large_vector.hpp"
#include "linear/layout.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace hedgerow {

// Maximum number of leading attributes.
inline constexpr int64_t kMostLeading = 1 << 16;

// Weights, and 0 where an attribute has none.
class LeadingWeights {
 public:
  // Refers to layout and weights, (n weights,), for all other attributes.
  LeadingWeights(const WeightLayout& layout, const double* weights, int64_t n_leading,
                 int n_threads, Stop& stop);

  int64_t n_leading() const { return n_leading_; }
  const WeightLayout& layout() const { return layout_; }
  const double* weights() const { return weights_; }
  // (padded n_outputs,)
  HEDGEROW_INLINE const double* row(uint16_t attribute) const {
    return rows_.data() + attribute * int64_t{stride_};
  }

 private:
  WeightLayout layout_;
  const double* weights_;
  int64_t n_leading_;
  int stride_;
  LargeVector<double> rows_;  // (n_leading, stride)
};

// Sums for the gradient. Threads share the work: outputs are divided into groups, and positions
// into parts. Each thread adds the positions of its part to the outputs of its group; every part
// has its own rows, which are added up at the end.
class LeadingSums {
 public:
  // Starts from a gradient, (n weights,). max_parts: 1 if the order of the positions matters, or if
  // there are so few that adding up the parts would take longer than adding up positions
  LeadingSums(const WeightLayout& layout, const double* gradient, int64_t n_leading, int max_parts,
              int n_threads, Stop& stop);

  int64_t n_leading() const { return n_leading_; }
  const WeightLayout& layout() const { return layout_; }
  int n_groups() const { return n_groups_; }
  int n_parts() const { return n_parts_; }
  // First output and number of outputs of a group, and the row stride, a multiple of kLanes.
  int first_output(int group) const { return group * width_; }
  int n_outputs(int group) const;
  // (n_leading, width)
  double* rows(int part, int group) {
    return rows_.data() + (part * n_groups_ + group) * n_leading_ * width_;
  }
  int width() const { return width_; }

  // To be called for each group of a part at regular intervals of positions.
  void add_up(int part, int group);
  // Writes the sums to the gradient.
  void write(double* gradient, int n_threads, Stop& stop) const;

 private:
  // The index of the sum of an attribute and output in the first part, within `rows_` or `totals_`.
  int64_t place(int64_t row, int64_t n_rows, int32_t output) const {
    return (output / width_ * n_rows + row) * width_ + output % width_;
  }
  // Calls visit(sum, stride, weight number) for all sums: of the first part, of the second one at a
  // distance of `stride`, and so on.
  template <class Sums, class Visit>
  static void for_each(Sums& sums, int n_threads, Stop& stop, Visit visit);

  WeightLayout layout_;
  int64_t n_leading_;
  int width_;  // outputs of a group, a multiple of kLanes
  int n_groups_;
  int n_parts_;
  LargeVector<double> rows_;  // (n_parts, n_groups, n_leading, width)
  // Attributes with many weights are those that occur most often. Their rows are summed in two
  // levels, to reduce rounding errors.
  std::vector<int32_t> wide_;      // these attributes, ascending
  std::vector<int32_t> wide_row_;  // (n_leading,) place of an attribute among them, or -1
  PaddedVector totals_;            // (n_parts, n_groups, n_wide, width)
};

}  // namespace hedgerow
