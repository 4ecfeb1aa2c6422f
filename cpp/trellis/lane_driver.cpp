#include "trellis/lane_driver.hpp"

#include <cmath>
#include <numeric>

#include "trellis/scaled.hpp"

namespace hedgerow {

void LaneDriver::run(const StrandGroup<kLanes>& group, const int32_t* labels, Stop& stop) {
  group_ = group;
  scratch_.longest = group.longest;
  load_nodes(scores_, group, scratch_.factors, scratch_.lengths);
  if (out_.need_backward()) ensure_size(scratch_.alphas, group.longest * scores_.n_labels);
  load();
  forward(stop);
  if (labels != nullptr) add_paths(labels);
  if (!out_.need_backward()) return;
  backward(stop);
  if (out_.marginals)
    lanes_to_rows(scratch_.alphas.data(), lane_rows(group_, 0, out_.marginals, scores_.n_labels));
}

void LaneDriver::add_paths(const int32_t* labels) {
  const int64_t n_labels = scores_.n_labels;
  paths_ = {};
  for (int64_t t = 0; t < group_.longest; ++t) {
    double nodes[kLanes] = {}, arcs[kLanes] = {};
    for (int l = 0; l < kLanes; ++l) {
      if (t >= group_.lengths[l]) continue;
      const int64_t position = group_.begins[l] + t;
      nodes[l] = scores_.nodes[position * n_labels + labels[position]];
      if (t > 0 || group_.starts[l] != nullptr)
        arcs[l] = scores_.arc_score(position, labels[position - 1], labels[position]);
    }
    paths_.add(hedgerow::load(nodes));
    paths_.add(hedgerow::load(arcs));
  }
}

LaneTotals LaneDriver::totals(int lane) const {
  const double* start = group_.starts[lane];
  LaneTotals totals;
  totals.refused = !(scratch_.smallest.values[lane] >= kSmallest);
  totals.shifts = scratch_.shifts.at(lane);
  add_arc_shifts(lane, totals.shifts);
  totals.paths = paths_.at(lane);
  totals.log_scale.add(std::log(scratch_.last_sum.values[lane]));
  totals.log_scale.add(scratch_.exponents.values[lane] * 0.6931471805599453);
  if (start != nullptr)
    totals.log_scale.add(-std::log(std::accumulate(start, start + scores_.n_labels, 0.0)));
  return totals;
}

void load_nodes(const ChainScores& scores, const StrandGroup<kLanes>& group,
                std::vector<Packed>& numbers, Packed& lengths) {
  for (int l = 0; l < kLanes; ++l) lengths.values[l] = static_cast<double>(group.lengths[l]);
  ensure_size(numbers, group.longest * scores.n_labels);
  rows_to_lanes(lane_rows(group, 0, scores.nodes, scores.n_labels), numbers.data(),
                group.longest * scores.n_labels);
}

}  // namespace hedgerow
