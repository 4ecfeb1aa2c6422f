#include "linear/leading.hpp"

#include <algorithm>

#include "linear/rows.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kPerTask = 1 << 8;
constexpr int64_t kFillNumbers = 1 << 14;

int divide_up(int a, int b) { return (a + b - 1) / b; }

// As many groups as threads, if there are enough outputs and no parts.
int group_width(int n_outputs, int max_parts, int n_threads) {
  const int n_lanes = padded(n_outputs) / kLanes;
  const int n_shared = max_parts > 1 ? 1 : std::min(n_threads, n_lanes);
  const int n_groups = std::max(divide_up(n_lanes, kRegisterLanes), n_shared);
  return divide_up(std::max(1, n_lanes), std::max(1, n_groups)) * kLanes;
}

}  // namespace

LeadingWeights::LeadingWeights(const WeightLayout& layout, const double* weights, int64_t n_leading,
                               int n_threads, Stop& stop)
    : layout_(layout),
      weights_(weights),
      n_leading_(std::min({n_leading, kMostLeading, layout.n_attributes})),
      stride_(padded(layout.n_outputs)),
      rows_(n_leading_ * stride_) {
  parallel_for_pieces(n_leading_, kPerTask, n_threads, stop, [&](int64_t first, int64_t end) {
    std::fill(rows_.begin() + first * stride_, rows_.begin() + end * stride_, 0.0);
    for (int64_t a = first; a < end; ++a)
      for (int64_t w = layout.offsets[a]; w < layout.offsets[a + 1]; ++w)
        rows_[a * stride_ + layout.output(a, w)] = weights[w];
  });
}

LeadingSums::LeadingSums(const WeightLayout& layout, const double* gradient, int64_t n_leading,
                         int max_parts, int n_threads, Stop& stop)
    : layout_(layout),
      n_leading_(std::min({n_leading, kMostLeading, layout.n_attributes})),
      width_(group_width(layout.n_outputs, max_parts, n_threads)),
      n_groups_(divide_up(padded(layout.n_outputs), width_)),
      n_parts_(std::max(1, std::min(divide_up(n_threads, std::max(1, n_groups_)), max_parts))),
      rows_(n_parts_ * n_groups_ * n_leading_ * width_),
      wide_row_(n_leading_, -1) {
  for (int64_t a = 0; a < n_leading_; ++a)
    if (layout.is_wide(a)) {
      wide_row_[a] = static_cast<int32_t>(wide_.size());
      wide_.push_back(static_cast<int32_t>(a));
    }
  totals_.resize(n_parts_ * n_groups_ * wide_.size() * width_);
  parallel_for_pieces(std::ssize(rows_), kFillNumbers, n_threads, stop,
                      [&](int64_t first, int64_t end) {
                        std::fill(rows_.begin() + first, rows_.begin() + end, 0.0);
                      });
  for_each(*this, n_threads, stop, [&](double* sum, int64_t, int64_t w) { *sum = gradient[w]; });
}

int LeadingSums::n_outputs(int group) const {
  return std::min(width_, layout_.n_outputs - first_output(group));
}

template <class Sums, class Visit>
void LeadingSums::for_each(Sums& sums, int n_threads, Stop& stop, Visit visit) {
  const WeightLayout& layout = sums.layout_;
  const auto n_wide = static_cast<int64_t>(sums.wide_.size());
  const int64_t width = int64_t{sums.n_groups_} * sums.width_;
  parallel_for_pieces(sums.n_leading_, kPerTask, n_threads, stop, [&](int64_t first, int64_t end) {
    for (int64_t a = first; a < end; ++a) {
      const int32_t wide = sums.wide_row_[a];
      const auto row = wide < 0 ? a : int64_t{wide}, n_rows = wide < 0 ? sums.n_leading_ : n_wide;
      auto* table = wide < 0 ? sums.rows_.data() : sums.totals_.data();
      for (int64_t w = layout.offsets[a]; w < layout.offsets[a + 1]; ++w)
        visit(table + sums.place(row, n_rows, layout.output(a, w)), n_rows * width, w);
    }
  });
}

void LeadingSums::add_up(int part, int group) {
  const auto n_wide = static_cast<int64_t>(wide_.size());
  double* total = totals_.data() + (part * n_groups_ + group) * n_wide * width_;
  for (const int32_t attribute : wide_) {
    double* row = rows(part, group) + attribute * int64_t{width_};
    add_row(1.0, row, width_, total);
    std::fill(row, row + width_, 0.0);
    total += width_;
  }
}

void LeadingSums::write(double* gradient, int n_threads, Stop& stop) const {
  for_each(*this, n_threads, stop, [&](const double* sum, int64_t stride, int64_t w) {
    gradient[w] = *sum;
    for (int part = 1; part < n_parts_; ++part) gradient[w] += sum[part * stride];
  });
}

}  // namespace hedgerow
