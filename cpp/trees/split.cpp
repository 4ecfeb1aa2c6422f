#include "trees/split.hpp"

#include <algorithm>
#include <utility>

#include "simd.hpp"

namespace hedgerow {
namespace {

constexpr double kSmallestGain = 1e-6;  // less is rounding
constexpr int kManyBins = 8;            // that are worth a look at four at a time

// Sums on the left of cuts, for as many lanes as there are cuts.
struct Lefts {
  alignas(32) std::array<double, 256> gradients;
  alignas(32) std::array<double, 256> curvatures;
  int n = 0;
};

// The largest gain of any of these cuts with some `more` on the left, 0 if none is allowed: to the
// last bit what Search computes for one cut after the other.
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

// What a node's examples at a feature add up to.
struct FeatureSums {
  int32_t column;
  int32_t offset;
  bool categorical;
  bool may_miss;    // whether the column misses values anywhere in the training data
  const Sum* bins;  // of bins 1 .. n_bins; that of bin 0 is not read
  int n_bins;
  Sum missing;
  Sum outside;       // beyond the ends of sequences
  uint8_t fill = 0;  // bin that stands for missing values; 0: none does
};

// Looks at one feature after the other and keeps the best split; `monotone` is read only where
// is_monotone.
template <bool is_monotone>
class Search {
 public:
  Search(const Sum& total, const SplitRules& rules, const MonotoneRules* monotone)
      : all_(total),
        total_(total),
        rules_(rules),
        min_child_weight_(rules.min_child_weight),
        monotone_(monotone) {
    all_score_ = node_score_ = score(total);
    best_.gain = std::max(rules.min_split_gain, kSmallestGain);
  }

  void look_at(const FeatureSums& feature) {
    column_ = feature.column;
    offset_ = feature.offset;
    if (feature.fill != 0)
      cut_filled(feature);
    else if (rules_.missing->leaves_out())
      cut_known(feature);
    else
      cut(feature);
  }

  // What another search has found among other features.
  void look_at(const Split& split) {
    column_ = split.column;
    offset_ = split.offset;
    const bool is_better = split.gain > best_.gain || (split.gain == best_.gain && comes_first());
    if (split.exists() && is_better) best_ = split;
  }

  Split take() const { return best_.exists() ? best_ : Split{}; }

 private:
  double score(const Sum& sum) const {
    const double gradient = static_cast<double>(sum.gradient()) * rules_.gradient_unit;
    const double divisor = weight(sum) + rules_.reg_lambda;
    if constexpr (is_monotone) {
      const double free = -gradient / divisor;
      const double step = monotone_->bounds.clamp(free);
      if (step != free) return -step * (2.0 * gradient + divisor * step);
    }
    return gradient * gradient / divisor;
  }
  double weight(const Sum& sum) const {
    return static_cast<double>(sum.curvature()) * rules_.curvature_unit;
  }

  // Are the steps of the children in the order that the column asks for?
  bool keeps_order(const Sum& left, const Sum& right) const {
    const int8_t direction = monotone_->direction(column_);
    if (direction == kAnyWay) return true;
    const double on_left = step(left), on_right = step(right);
    return direction == kRising ? on_left <= on_right : on_left >= on_right;
  }
  double step(const Sum& sum) const {
    const double gradient = static_cast<double>(sum.gradient()) * rules_.gradient_unit;
    return monotone_->bounds.clamp(-gradient / (weight(sum) + rules_.reg_lambda));
  }

  // Returns whether there is a better split.
  bool cut(const FeatureSums& feature) {
    return feature.categorical ? cut_categories(feature) : cut_values(feature);
  }

  // Missing values count as their column's fill.
  void cut_filled(const FeatureSums& feature) {
    FeatureSums filled = feature;
    std::array<Sum, 256> bins;
    if (!feature.missing.is_empty()) {
      std::copy_n(feature.bins + 1, feature.n_bins, bins.begin() + 1);
      bins[feature.fill] += feature.missing;
      filled.bins = bins.data();
      filled.missing = Sum{};
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

  // By known values alone.
  void cut_known(const FeatureSums& feature) {
    FeatureSums known = feature;
    known.missing = Sum{};
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
  bool improves(const Sum& left) {
    const Sum right = total_ - left;
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

  // Of two features that gain the same the first is taken, whatever order they are looked at in.
  bool comes_first() const {
    return best_.exists() && std::pair(column_, offset_) < std::pair(best_.column, best_.offset);
  }

  struct Cut {
    int n_left = 0;  // bins on the left, of those that stand in a row; 0: no cut is better
    bool missing_left = false;
    bool outside_left = false;
  };

  // The best place to cut n bins that stand in a row, bin_of(i) being the i-th.
  template <class BinOf>
  Cut find_cut(const FeatureSums& feature, int n, BinOf bin_of) {
    const Sum missing = feature.missing, outside = feature.outside;
    const bool has_missing = !missing.is_empty(), has_outside = !outside.is_empty();
    Cut cut;
    Sum left;
    for (int i = 0; i < n; ++i) {
      const Sum& bin = feature.bins[bin_of(i)];
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

  // What does not occur here, but may later, goes to the heavier side. Values of a column that is
  // never missing go the way of what lies outside, if that occurs.
  void choose_ways_of_unseen(const FeatureSums& feature, Cut& cut) const {
    const bool has_missing = !feature.missing.is_empty(), has_outside = !feature.outside.is_empty();
    const bool is_left_heavier = 2 * best_.left.curvature() > total_.curvature();
    if (!has_missing)
      cut.missing_left = has_outside && !feature.may_miss ? cut.outside_left : is_left_heavier;
    if (!has_outside) cut.outside_left = feature.offset == 0 ? cut.missing_left : is_left_heavier;
  }

  // Whether some cut of values is at least as good as the best split so far.
  bool may_improve(const FeatureSums& feature) {
    Lefts lefts;
    Sum left;
    for (int bin = 1; bin <= feature.n_bins; ++bin) {
      left += feature.bins[bin];
      lefts.gradients[lefts.n] = static_cast<double>(left.gradient());
      lefts.curvatures[lefts.n] = static_cast<double>(left.curvature());
      lefts.n += !feature.bins[bin].is_empty();
    }
    // A cut with all examples on its left is not allowed.
    for (int i = lefts.n; i < padded(lefts.n); ++i) {
      lefts.gradients[i] = static_cast<double>(total_.gradient());
      lefts.curvatures[i] = static_cast<double>(total_.curvature());
    }
    const Sum missing = feature.missing, outside = feature.outside;
    const auto reaches_best = [&](Sum more) {
      return find_largest_gain(lefts, total_, more, rules_, node_score_) >= best_.gain;
    };
    return reaches_best(Sum{}) || (!missing.is_empty() && reaches_best(missing)) ||
           (!outside.is_empty() && reaches_best(outside)) ||
           (!missing.is_empty() && !outside.is_empty() && reaches_best(missing + outside));
  }

  bool cut_values(const FeatureSums& feature) {
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

  // Categories stand in the order of the steps they would take as leaves; those that do not occur
  // here go the way of missing values.
  bool cut_categories(const FeatureSums& feature) {
    const Sum* bins = feature.bins;
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

  Sum all_;
  Sum total_;  // of those that a feature is cut by
  SplitRules rules_;
  double min_child_weight_;  // of all
  const MonotoneRules* monotone_;
  double all_score_;
  double node_score_;
  Split best_;
  int32_t column_ = 0;
  int32_t offset_ = 0;
};

// The first slot of a column that has examples at an offset, or null.
const SlotSum* first_entry(const TreeData& data, const Histogram& histogram, int32_t column,
                           int o) {
  const int32_t first = o * data.n_slots() + data.first_slot(column);
  const auto found =
      std::lower_bound(histogram.sparse.begin(), histogram.sparse.end(), first,
                       [](const SlotSum& slot, int32_t place) { return slot.place < place; });
  const bool is_own =
      found != histogram.sparse.end() && found->place < o * data.n_slots() + data.end_slot(column);
  return is_own ? &*found : nullptr;
}

// All features of a node's histogram.
template <bool is_monotone>
class NodeSearch {
 public:
  NodeSearch(const TreeData& data, const Histogram& histogram, const Sum& total,
             const SplitRules& rules, const uint8_t* features, const MonotoneRules* monotone,
             const NodeContexts* contexts)
      : data_(data),
        histogram_(histogram),
        total_(total),
        rules_(rules),
        features_(features),
        monotone_(monotone),
        contexts_(contexts) {}

  // Idle threads take some of the full features each.
  Split find(Crew& crew) const {
    const auto n_full = static_cast<int64_t>(data_.full_features().size());
    const int64_t n_parts = crew.n_pieces(n_full / kFeaturesWorthSharing);
    std::vector<Split> found(n_parts);
    crew.share(n_parts, [&](int64_t part) {
      Search<is_monotone> search(total_, rules_, monotone_);
      look_at_full(search, n_full * part / n_parts, n_full * (part + 1) / n_parts);
      if (part == 0 && data_.has_sparse()) {
        look_at_edges(search);
        look_at_sparse(search);
      }
      if (part == 0 && contexts_ != nullptr) look_at_labels(search);
      found[part] = search.take();
    });
    Search<is_monotone> best(total_, rules_, monotone_);
    for (const Split& split : found) best.look_at(split);
    return best.take();
  }

 private:
  static constexpr int64_t kFeaturesWorthSharing = 8;

  bool allows(int32_t column, int32_t offset) const {
    return features_ == nullptr || features_[static_cast<int64_t>(column) * data_.n_offsets() +
                                             data_.windows().number(offset)];
  }

  void look_at_full(Search<is_monotone>& search, int64_t first, int64_t end) const {
    for (int64_t f = first; f < end; ++f) {
      const TreeData::FullFeature& feature = data_.full_features()[f];
      if (!allows(feature.column, feature.offset)) continue;
      const Sum* bins = histogram_.full.data() + feature.base;
      // In a column without missing values bin 0 is what lies outside.
      const Sum outside = data_.may_miss(feature.column)
                              ? histogram_.outside[data_.windows().number(feature.offset)]
                              : bins[0];
      search.look_at(describe(feature.column, feature.offset, bins, bins[0] - outside, outside));
    }
  }

  FeatureSums describe(int32_t column, int32_t offset, const Sum* bins, Sum missing,
                       Sum outside) const {
    const BinTable& table = data_.bins();
    const std::vector<uint8_t>& fills = rules_.missing->fills;
    return {column,
            offset,
            table.categorical[column] != 0,
            data_.may_miss(column),
            bins,
            table.n_bins[column],
            missing,
            outside,
            fills.empty() ? uint8_t{0} : fills[column]};
  }

  // Where the window reaches beyond the sequence, all sparse columns with known values offer the
  // same split. Only the first of them has to be looked at, as it is taken among equals; if it has
  // entries, that is done by look_at_sparse. A monotone column may have to refuse what others
  // offer.
  void look_at_edges(Search<is_monotone>& search) const {
    const BinTable& table = data_.bins();
    const auto is_typical = [&](int32_t column) {
      if constexpr (is_monotone) return monotone_->directions[column] == kAnyWay;
      return true;
    };
    std::array<Sum, 256> bins;
    for (int o = 0; o < data_.n_offsets(); ++o) {
      const Sum outside = histogram_.outside[o];
      const int offset = data_.windows().offset(o);
      if (outside.is_empty()) continue;
      for (int32_t column = 0; column < table.n_columns(); ++column) {
        if (data_.is_full(column) || !allows(column, offset)) continue;
        const SlotSum* entry = first_entry(data_, histogram_, column, o);
        if (!has_known(column, o, entry)) continue;
        if (entry == nullptr) {
          std::fill_n(bins.begin(), table.n_bins[column] + 1, Sum{});
          bins[data_.default_bin(column)] = total_ - outside;
          search.look_at(describe(column, offset, bins.data(), Sum{}, outside));
        }
        if (is_typical(column)) break;
      }
    }
  }

  // Whether a sparse column has known values here, given its first slot with examples, or null.
  bool has_known(int32_t column, int o, const SlotSum* entry) const {
    if (data_.default_bin(column) == 0) return entry != nullptr;
    const bool has_missing =
        entry != nullptr && data_.slot_bin(column, entry->place - o * data_.n_slots()) == 0;
    return (has_missing ? entry->sum : Sum{}) != total_ - histogram_.outside[o];
  }

  void look_at_sparse(Search<is_monotone>& search) const {
    const BinTable& table = data_.bins();
    const std::vector<SlotSum>& slots = histogram_.sparse;
    std::array<Sum, 256> bins;
    for (size_t i = 0; i < slots.size();) {
      const int32_t o = slots[i].place / data_.n_slots();
      const int32_t column = data_.slot_column(slots[i].place % data_.n_slots());
      const int32_t end = o * data_.n_slots() + data_.end_slot(column);
      const uint8_t usual = data_.default_bin(column);
      std::fill_n(bins.begin(), table.n_bins[column] + 1, Sum{});
      bins[usual] = total_ - histogram_.outside[o];
      for (; i < slots.size() && slots[i].place < end; ++i) {
        bins[data_.slot_bin(column, slots[i].place - o * data_.n_slots())] = slots[i].sum;
        bins[usual] -= slots[i].sum;
      }
      const int offset = data_.windows().offset(o);
      if (allows(column, offset))
        search.look_at(describe(column, offset, bins.data(), bins[0], histogram_.outside[o]));
    }
  }

  void look_at_labels(Search<is_monotone>& search) const {
    const ContextRows& rows_of_node = *contexts_->rows;
    const int n_labels = rows_of_node.n_labels();
    std::array<Sum, 256> bins;
    SplitRules rules = rules_;
    rules.reg_lambda += contexts_->more_lambda;
    const MissingRules learned;  // that a label is not known is an answer too
    rules.missing = &learned;
    Search<is_monotone> own(total_, rules, monotone_);
    for (int lag = 0; lag < rows_of_node.n_lags(); ++lag) {
      rows_of_node.fill_bins(contexts_->contexts, histogram_.contexts.data(), lag,
                             std::span(bins).first(n_labels + 1));
      own.look_at(
          {data_.bins().n_columns() + lag, 0, true, true, bins.data(), n_labels, bins[0], Sum{}});
    }
    search.look_at(own.take());
  }

  const TreeData& data_;
  const Histogram& histogram_;
  Sum total_;
  const SplitRules& rules_;
  const uint8_t* features_;
  const MonotoneRules* monotone_;
  const NodeContexts* contexts_;
};

}  // namespace

Split find_split(const TreeData& data, const Histogram& histogram, const Sum& total,
                 const SplitRules& rules, const uint8_t* features, const MonotoneRules* monotone,
                 const NodeContexts* contexts, Crew& crew) {
  if (monotone == nullptr)
    return NodeSearch<false>(data, histogram, total, rules, features, nullptr, contexts).find(crew);
  return NodeSearch<true>(data, histogram, total, rules, features, monotone, contexts).find(crew);
}

}  // namespace hedgerow
