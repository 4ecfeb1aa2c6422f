// The best cut of a node's examples, feature by feature.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "simd.hpp"
#include "trees/split.hpp"

namespace hedgerow {

// Sums of the examples of a node by bin of a feature.
template <class AnySum>
struct FeatureSums {
  int32_t column;
  int32_t offset;
  bool categorical;
  bool may_miss;       // whether the column has missing values anywhere in the training data
  const AnySum* bins;  // of bins 1 .. n_bins; that of bin 0 is not read
  int n_bins;
  AnySum missing;
  AnySum outside;    // beyond the ends of sequences
  uint8_t fill = 0;  // bin that stands for missing values; 0: none does
};

// Sums on the left of cuts, one lane for each cut.
struct Lefts {
  static constexpr int kMost = 256;
  alignas(32) std::array<double, kMost> gradients;
  alignas(32) std::array<double, kMost> curvatures;
  int n = 0;

  void add(const WideSum& left) {
    gradients[n] = static_cast<double>(left.gradient());
    curvatures[n++] = static_cast<double>(left.curvature());
  }
};

// The largest gain of these cuts if `more` goes left too, 0 if none is allowed: the same bits as
// CutSearch computes for one cut after the other.
double find_largest_gain(const Lefts& lefts, const WideSum& total, const WideSum& more,
                         const SplitRules& rules, double node_score);

// The gain of each of them, likewise. gains: (padded(lefts.n),)
void fill_gains(const Lefts& lefts, const WideSum& total, const SplitRules& rules,
                double node_score, double* gains);

// The same where splits are found by known values only: `known` has the sum of the known values for
// each cut; `total` is the sum of all examples.
void fill_known_gains(const Lefts& lefts, const Lefts& known, const WideSum& total,
                      const SplitRules& rules, double* gains);

// Searches one feature after the other and keeps the best split; `monotone` is read only if
// is_monotone.
template <bool is_monotone, class AnySum>
class CutSearch {
 public:
  CutSearch(const AnySum& total, const SplitRules& rules, const MonotoneRules* monotone)
      : all_(total),
        total_(total),
        rules_(rules),
        min_child_weight_(rules.min_child_weight),
        monotone_(monotone) {
    all_score_ = node_score_ = score(total);
    best_.gain = std::max(rules.min_split_gain, kSmallestGain);
  }

  void look_at(const FeatureSums<AnySum>& feature) {
    column_ = feature.column;
    offset_ = feature.offset;
    if (feature.fill != 0)
      cut_filled(feature);
    else if (rules_.missing->leaves_out())
      cut_known(feature);
    else
      cut(feature);
  }

  // Merges the result of another search among other features.
  void look_at(const Split& split) {
    column_ = split.column;
    offset_ = split.offset;
    const bool is_better = split.gain > best_.gain || (split.gain == best_.gain && comes_first());
    if (split.exists() && is_better) best_ = split;
  }

  Split take() const { return best_.exists() ? best_ : Split{}; }

  // Minimum gain of a split.
  double least_gain() const { return best_.gain; }
  // The gains of cuts of all examples. gains: (Lefts::kMost,)
  void fill_gains(Lefts& lefts, double* gains) const {
    pad(lefts);
    hedgerow::fill_gains(lefts, total_, rules_, node_score_, gains);
  }
  // The gains of cuts of examples whose value is known.
  void fill_known_gains(Lefts& lefts, Lefts& known, double* gains) const {
    pad(lefts);
    pad(known);
    hedgerow::fill_known_gains(lefts, known, total_, rules_, gains);
  }

 private:
  static constexpr double kSmallestGain = 1e-6;  // anything less is rounding error
  static constexpr int kManyBins = 8;  // from this many on, cuts are first compared in lanes

  double score(const AnySum& sum) const {
    const double gradient = static_cast<double>(sum.gradient()) * rules_.gradient_unit;
    const double divisor = weight(sum) + rules_.reg_lambda;
    if constexpr (is_monotone) {
      const double free = -gradient / divisor;
      const double step = monotone_->bounds.clamp(free);
      if (step != free) return -step * (2.0 * gradient + divisor * step);
    }
    return gradient * gradient / divisor;
  }
  double weight(const AnySum& sum) const {
    return static_cast<double>(sum.curvature()) * rules_.curvature_unit;
  }

  // Whether the steps of the children are in the order that the column requires.
  bool keeps_order(const AnySum& left, const AnySum& right) const {
    const int8_t direction = monotone_->direction(column_);
    if (direction == kAnyWay) return true;
    const double on_left = step(left), on_right = step(right);
    return direction == kRising ? on_left <= on_right : on_left >= on_right;
  }
  double step(const AnySum& sum) const {
    const double gradient = static_cast<double>(sum.gradient()) * rules_.gradient_unit;
    return monotone_->bounds.clamp(-gradient / (weight(sum) + rules_.reg_lambda));
  }

  // Returns whether there is a better split.
  bool cut(const FeatureSums<AnySum>& feature) {
    return feature.categorical ? cut_categories(feature) : cut_values(feature);
  }

  // Missing values are treated as the fill value of their column.
  void cut_filled(const FeatureSums<AnySum>& feature) {
    FeatureSums<AnySum> filled = feature;
    std::array<AnySum, 256> bins;
    if (!feature.missing.is_empty()) {
      std::copy_n(feature.bins + 1, feature.n_bins, bins.begin() + 1);
      bins[feature.fill] += feature.missing;
      filled.bins = bins.data();
      filled.missing = AnySum{};
    }
    if (cut(filled)) {
      if (contains(best_.left_bins, feature.fill))
        insert(best_.left_bins, 0);
      else
        erase(best_.left_bins, 0);
    }
    if (rules_.missing->method != MissingMethod::kIndicator || feature.missing.is_empty()) return;
    if (!improves(total_ - feature.missing)) return;
    best_.categorical = feature.categorical;
    best_.outside_left = true;
    best_.left_bins = {};
    for (int bin = 1; bin <= feature.n_bins; ++bin) insert(best_.left_bins, bin);
  }

  // By known values only.
  void cut_known(const FeatureSums<AnySum>& feature) {
    FeatureSums<AnySum> known = feature;
    known.missing = AnySum{};
    if (!feature.missing.is_empty()) {
      total_ = all_ - feature.missing;
      if (total_.is_empty()) return reset();
      node_score_ = score(total_);
      if (rules_.missing->method == MissingMethod::kFractional)
        rules_.min_child_weight = min_child_weight_ * (static_cast<double>(total_.curvature()) /
                                                       static_cast<double>(all_.curvature()));
    }
    if (cut(known)) {
      const bool is_left_heavier = 2 * best_.left.curvature() > total_.curvature();
      if (is_left_heavier)
        insert(best_.left_bins, 0);
      else
        erase(best_.left_bins, 0);
    }
    reset();
  }
  void reset() {
    total_ = all_;
    node_score_ = all_score_;
    rules_.min_child_weight = min_child_weight_;
  }

  // Is there a better split with `left` on the left?
  bool improves(const AnySum& left) {
    const AnySum right = total_ - left;
    if (left.is_empty() || right.is_empty()) return false;
    if (weight(left) < rules_.min_child_weight || weight(right) < rules_.min_child_weight)
      return false;
    const double gain = score(left) + score(right) - node_score_;
    if (gain < best_.gain) return false;
    if (gain == best_.gain && !comes_first()) return false;
    if constexpr (is_monotone)
      if (!keeps_order(left, right)) return false;
    best_.gain = gain;
    best_.column = column_;
    best_.offset = offset_;
    best_.left = left;
    best_.known = total_;
    return true;
  }

  // Of two features with the same gain, the first is chosen, in whatever order they are searched.
  bool comes_first() const {
    return best_.exists() && std::pair(column_, offset_) < std::pair(best_.column, best_.offset);
  }

  struct Cut {
    int n_left = 0;  // bins on the left, of those in order; 0: no cut is better
    bool missing_left = false;
    bool outside_left = false;
  };

  // The best place to cut n bins in order, of which bin_of(i) is the i-th.
  template <class BinOf>
  Cut find_cut(const FeatureSums<AnySum>& feature, int n, BinOf bin_of) {
    const AnySum missing = feature.missing, outside = feature.outside;
    const bool has_missing = !missing.is_empty(), has_outside = !outside.is_empty();
    Cut cut;
    AnySum left;
    for (int i = 0; i < n; ++i) {
      const AnySum& bin = feature.bins[bin_of(i)];
      if (bin.is_empty()) continue;
      left += bin;
      if (improves(left)) cut = {i + 1, false, false};
      if (has_missing && improves(left + missing)) cut = {i + 1, true, false};
      if (has_outside && improves(left + outside)) cut = {i + 1, false, true};
      if (has_missing && has_outside && improves(left + missing + outside))
        cut = {i + 1, true, true};
    }
    choose_ways_of_unseen(feature, cut);
    return cut;
  }

  // Missing values and positions outside, if they do not occur here, go to the heavier side. But in
  // a column that has no missing values anywhere, they go where positions outside go, if these
  // occur.
  void choose_ways_of_unseen(const FeatureSums<AnySum>& feature, Cut& cut) const {
    const bool has_missing = !feature.missing.is_empty(), has_outside = !feature.outside.is_empty();
    const bool is_left_heavier = 2 * best_.left.curvature() > total_.curvature();
    if (!has_missing)
      cut.missing_left = has_outside && !feature.may_miss ? cut.outside_left : is_left_heavier;
    if (!has_outside) cut.outside_left = feature.offset == 0 ? cut.missing_left : is_left_heavier;
  }

  // Whether some cut of values is at least as good as the best split so far.
  bool may_improve(const FeatureSums<AnySum>& feature) {
    Lefts lefts;
    AnySum left;
    for (int bin = 1; bin <= feature.n_bins; ++bin) {
      left += feature.bins[bin];
      lefts.gradients[lefts.n] = static_cast<double>(left.gradient());
      lefts.curvatures[lefts.n] = static_cast<double>(left.curvature());
      lefts.n += !feature.bins[bin].is_empty();
    }
    pad(lefts);
    const AnySum missing = feature.missing, outside = feature.outside;
    const auto reaches_best = [&](AnySum more) {
      return find_largest_gain(lefts, total_, more, rules_, node_score_) >= best_.gain;
    };
    return reaches_best(AnySum{}) || (!missing.is_empty() && reaches_best(missing)) ||
           (!outside.is_empty() && reaches_best(outside)) ||
           (!missing.is_empty() && !outside.is_empty() && reaches_best(missing + outside));
  }

  // A cut with all examples on its left is not allowed.
  void pad(Lefts& lefts) const {
    for (int i = lefts.n; i < padded(lefts.n); ++i) {
      lefts.gradients[i] = static_cast<double>(total_.gradient());
      lefts.curvatures[i] = static_cast<double>(total_.curvature());
    }
  }

  bool cut_values(const FeatureSums<AnySum>& feature) {
    if constexpr (!is_monotone)
      if (feature.n_bins >= kManyBins && !may_improve(feature)) return false;
    const Cut cut = find_cut(feature, feature.n_bins, [](int i) { return i + 1; });
    if (cut.n_left == 0) return false;
    best_.categorical = false;
    best_.outside_left = cut.outside_left;
    best_.left_bins = {};
    for (int bin = cut.missing_left ? 0 : 1; bin <= cut.n_left; ++bin) insert(best_.left_bins, bin);
    return true;
  }

  // Categories are sorted by the steps they would take as leaves; those that do not occur here go
  // with missing values.
  bool cut_categories(const FeatureSums<AnySum>& feature) {
    const AnySum* bins = feature.bins;
    std::array<std::pair<double, int>, 256> order;
    int n_seen = 0;
    for (int bin = 1; bin <= feature.n_bins; ++bin) {
      if (bins[bin].is_empty()) continue;
      const double gradient = static_cast<double>(bins[bin].gradient()) * rules_.gradient_unit;
      order[n_seen++] = {gradient / (weight(bins[bin]) + rules_.reg_lambda), bin};
    }
    std::sort(order.begin(), order.begin() + n_seen);
    const Cut cut = find_cut(feature, n_seen, [&](int i) { return order[i].second; });
    if (cut.n_left == 0) return false;
    best_.categorical = true;
    best_.outside_left = cut.outside_left;
    best_.left_bins = {};
    for (int i = 0; i < cut.n_left; ++i) insert(best_.left_bins, order[i].second);
    if (!cut.missing_left) return true;
    for (int bin = 0; bin <= feature.n_bins; ++bin)
      if (bin == 0 || bins[bin].is_empty()) insert(best_.left_bins, bin);
    return true;
  }

  AnySum all_;
  AnySum total_;  // of the examples by which a feature is cut
  SplitRules rules_;
  double min_child_weight_;  // before scaling to the known examples
  const MonotoneRules* monotone_;
  double all_score_;
  double node_score_;
  Split best_;
  int32_t column_ = 0;
  int32_t offset_ = 0;
};

}  // namespace hedgerow
