#include "trees/cut_search.hpp"

namespace hedgerow {

HEDGEROW_CLONES double find_largest_gain(const Lefts& lefts, Sum total, Sum more,
                                         const SplitRules& rules, double node_score) {
  const Lanes all_gradients = broadcast(static_cast<double>(total.gradient()));
  const Lanes all_curvatures = broadcast(static_cast<double>(total.curvature()));
  const Lanes gradient_unit = broadcast(rules.gradient_unit);
  const Lanes curvature_unit = broadcast(rules.curvature_unit);
  const Lanes lambda = broadcast(rules.reg_lambda);
  const auto more_gradient = static_cast<double>(more.gradient());
  const auto more_curvature = static_cast<double>(more.curvature());
  Lanes largest = broadcast(0.0);
  for (int i = 0; i < lefts.n; i += kLanes) {
    const Lanes gradients = load(lefts.gradients.data() + i) + broadcast(more_gradient);
    const Lanes curvatures = load(lefts.curvatures.data() + i) + broadcast(more_curvature);
    const Lanes rest = all_curvatures - curvatures;
    const Lanes left_gradient = gradients * gradient_unit;
    const Lanes right_gradient = (all_gradients - gradients) * gradient_unit;
    const Lanes left_weight = curvatures * curvature_unit;
    const Lanes right_weight = rest * curvature_unit;
    Lanes gain = left_gradient * left_gradient / (left_weight + lambda) +
                 right_gradient * right_gradient / (right_weight + lambda) - broadcast(node_score);
    gain = where_positive(curvatures, where_positive(rest, gain));
    gain = where_at_least(left_weight, rules.min_child_weight,
                          where_at_least(right_weight, rules.min_child_weight, gain));
    largest = maximum(largest, gain);
  }
  return max_lane(largest);
}

}  // namespace hedgerow
