#include "trees/cut_search.hpp"

namespace hedgerow {
namespace {

// The gains of the cuts from i on, one per lane; 0 where one is not allowed.
HEDGEROW_INLINE Lanes gains_at(const Lefts& lefts, int i, const WideSum& total, const WideSum& more,
                               const SplitRules& rules, double node_score) {
  const Lanes all_gradients = broadcast(static_cast<double>(total.gradient()));
  const Lanes all_curvatures = broadcast(static_cast<double>(total.curvature()));
  const Lanes gradient_unit = broadcast(rules.gradient_unit);
  const Lanes curvature_unit = broadcast(rules.curvature_unit);
  const Lanes lambda = broadcast(rules.reg_lambda);
  const Lanes gradients =
      load(lefts.gradients.data() + i) + broadcast(static_cast<double>(more.gradient()));
  const Lanes curvatures =
      load(lefts.curvatures.data() + i) + broadcast(static_cast<double>(more.curvature()));
  const Lanes rest = all_curvatures - curvatures;
  const Lanes left_gradient = gradients * gradient_unit;
  const Lanes right_gradient = (all_gradients - gradients) * gradient_unit;
  const Lanes left_weight = curvatures * curvature_unit;
  const Lanes right_weight = rest * curvature_unit;
  Lanes gain = left_gradient * left_gradient / (left_weight + lambda) +
               right_gradient * right_gradient / (right_weight + lambda) - broadcast(node_score);
  gain = where_positive(curvatures, where_positive(rest, gain));
  return where_at_least(left_weight, rules.min_child_weight,
                        where_at_least(right_weight, rules.min_child_weight, gain));
}

}  // namespace

HEDGEROW_CLONES double find_largest_gain(const Lefts& lefts, const WideSum& total,
                                         const WideSum& more, const SplitRules& rules,
                                         double node_score) {
  Lanes largest = broadcast(0.0);
  for (int i = 0; i < lefts.n; i += kLanes)
    largest = maximum(largest, gains_at(lefts, i, total, more, rules, node_score));
  return max_lane(largest);
}

// Like gains_at, but the total and the minimum weight of a child differ by lane.
HEDGEROW_CLONES_WITHOUT_FMA void fill_known_gains(const Lefts& lefts, const Lefts& known,
                                                  const WideSum& total, const SplitRules& rules,
                                                  double* gains) {
  const bool is_fractional = rules.missing->method == MissingMethod::kFractional;
  const Lanes all = broadcast(static_cast<double>(total.curvature()));
  const Lanes gradient_unit = broadcast(rules.gradient_unit);
  const Lanes curvature_unit = broadcast(rules.curvature_unit);
  const Lanes lambda = broadcast(rules.reg_lambda);
  const Lanes least = broadcast(rules.min_child_weight);
  for (int i = 0; i < lefts.n; i += kLanes) {
    const Lanes gradients = load(lefts.gradients.data() + i);
    const Lanes curvatures = load(lefts.curvatures.data() + i);
    const Lanes known_gradients = load(known.gradients.data() + i);
    const Lanes known_curvatures = load(known.curvatures.data() + i);
    const Lanes rest = known_curvatures - curvatures;
    const Lanes gradient = known_gradients * gradient_unit;
    const Lanes left_gradient = gradients * gradient_unit;
    const Lanes right_gradient = (known_gradients - gradients) * gradient_unit;
    const Lanes left_weight = curvatures * curvature_unit;
    const Lanes right_weight = rest * curvature_unit;
    Lanes gain = left_gradient * left_gradient / (left_weight + lambda) +
                 right_gradient * right_gradient / (right_weight + lambda) -
                 gradient * gradient / (known_curvatures * curvature_unit + lambda);
    gain = where_positive(curvatures, where_positive(rest, gain));
    const Lanes own_least = is_fractional ? least * (known_curvatures / all) : least;
    gain = where_at_least(left_weight - own_least, 0.0, gain);
    store(gains + i, where_at_least(right_weight - own_least, 0.0, gain));
  }
}

HEDGEROW_CLONES void fill_gains(const Lefts& lefts, const WideSum& total, const SplitRules& rules,
                                double node_score, double* gains) {
  for (int i = 0; i < lefts.n; i += kLanes)
    store(gains + i, gains_at(lefts, i, total, WideSum{}, rules, node_score));
}

}  // namespace hedgerow
