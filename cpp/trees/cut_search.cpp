#include "trees/cut_search.hpp"

namespace hedgerow {
namespace {

// The two sides of cuts, one per lane.
struct CutLanes {
  Lanes left_curvature, right_curvature;  // in whole units
  Lanes left_gradient, right_gradient, left_weight, right_weight;

  // The cuts from i on, with some `more` on the left.
  HEDGEROW_INLINE CutLanes(const Lefts& lefts, int i, const WideSum& total, const WideSum& more,
                           const SplitRules& rules) {
    const auto broadcast_integer = [](int64_t x) HEDGEROW_INLINE_LAMBDA {
      return broadcast(static_cast<double>(x));
    };
    const Lanes gradient_unit = broadcast(rules.gradient_unit);
    const Lanes curvature_unit = broadcast(rules.curvature_unit);
    const Lanes gradient = load(lefts.gradients.data() + i) + broadcast_integer(more.gradient());
    left_curvature = load(lefts.curvatures.data() + i) + broadcast_integer(more.curvature());
    right_curvature = broadcast_integer(total.curvature()) - left_curvature;
    left_gradient = gradient * gradient_unit;
    right_gradient = (broadcast_integer(total.gradient()) - gradient) * gradient_unit;
    left_weight = left_curvature * curvature_unit;
    right_weight = right_curvature * curvature_unit;
  }

  // 0 where a cut is not allowed.
  HEDGEROW_INLINE Lanes where_allowed(double min_child_weight, Lanes gain) const {
    gain = where_positive(left_curvature, where_positive(right_curvature, gain));
    return where_at_least(left_weight, min_child_weight,
                          where_at_least(right_weight, min_child_weight, gain));
  }
};

}  // namespace

HEDGEROW_CLONES bool may_reach(const Lefts& lefts, const WideSum& total, const WideSum& more,
                               const SplitRules& rules, double score) {
  constexpr double kRounding = 1e-12;
  const Lanes lambda = broadcast(rules.reg_lambda), least = broadcast(score * (1.0 - kRounding));
  Lanes largest = broadcast(0.0);
  for (int i = 0; i < lefts.n; i += kLanes) {
    const CutLanes cuts(lefts, i, total, more, rules);
    // G_L^2 / D_L + G_R^2 / D_R >= score, times D_L D_R
    const Lanes left = cuts.left_weight + lambda, right = cuts.right_weight + lambda;
    const Lanes excess = cuts.left_gradient * cuts.left_gradient * right +
                         cuts.right_gradient * cuts.right_gradient * left - least * left * right;
    largest = maximum(largest, cuts.where_allowed(rules.min_child_weight, excess));
  }
  return max_lane(largest) > 0.0;
}

// Like fill_gains, with totals, and least weights of a child, by lane.
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
  const Lanes lambda = broadcast(rules.reg_lambda);
  for (int i = 0; i < lefts.n; i += kLanes) {
    const CutLanes cuts(lefts, i, total, WideSum{}, rules);
    const Lanes gain = cuts.left_gradient * cuts.left_gradient / (cuts.left_weight + lambda) +
                       cuts.right_gradient * cuts.right_gradient / (cuts.right_weight + lambda) -
                       broadcast(node_score);
    store(gains + i, cuts.where_allowed(rules.min_child_weight, gain));
  }
}

}  // namespace hedgerow
