#include "trees/split.hpp"

#include <algorithm>
#include <utility>

namespace hedgerow {
namespace {

constexpr double kSmallestGain = 1e-6;  // less is rounding

void insert(BinSet& set, int bin) { set[bin >> 6] |= uint64_t{1} << (bin & 63); }

// Looks at one feature after the other and keeps the best split; `monotone` is read only where
// is_monotone.
template <bool is_monotone>
class Search {
 public:
  Search(const Sum& total, const SplitRules& rules, const MonotoneRules* monotone)
      : total_(total), rules_(rules), monotone_(monotone) {
    node_score_ = score(total);
    best_.gain = std::max(rules.min_split_gain, kSmallestGain);
  }

  // `bins` are the sums of bins 0 .. n_bins of a feature.
  void look_at(int32_t column, int32_t offset, bool categorical, const Sum* bins, int n_bins) {
    column_ = column;
    offset_ = offset;
    if (categorical)
      cut_categories(bins, n_bins);
    else
      cut_values(bins, n_bins);
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
    const int8_t direction = monotone_->directions[column_];
    if (direction == kAnyWay) return true;
    const double on_left = step(left), on_right = step(right);
    return direction == kRising ? on_left <= on_right : on_left >= on_right;
  }
  double step(const Sum& sum) const {
    const double gradient = static_cast<double>(sum.gradient()) * rules_.gradient_unit;
    return monotone_->bounds.clamp(-gradient / (weight(sum) + rules_.reg_lambda));
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
    return true;
  }

  // Of two features that gain the same the first is taken, whatever order they are looked at in.
  bool comes_first() const {
    return best_.exists() && std::pair(column_, offset_) < std::pair(best_.column, best_.offset);
  }

  struct Cut {
    int n_left = 0;  // bins on the left, of those that stand in a row; 0: no cut is better
    bool missing_left = false;
  };

  // The best place to cut n bins that stand in a row, bin_of(i) being the i-th.
  template <class BinOf>
  Cut find_cut(const Sum* bins, int n, BinOf bin_of) {
    const Sum missing = bins[0];
    Cut cut;
    Sum left;
    for (int i = 0; i < n; ++i) {
      const Sum& bin = bins[bin_of(i)];
      if (bin.is_empty()) continue;
      left += bin;
      if (improves(left)) cut = {i + 1, false};
      if (!missing.is_empty() && improves(left + missing)) cut = {i + 1, true};
    }
    // Nothing is missing here: what will be goes to the heavier side.
    if (missing.is_empty()) cut.missing_left = 2 * best_.left.curvature() > total_.curvature();
    return cut;
  }

  void cut_values(const Sum* bins, int n_bins) {
    const Cut cut = find_cut(bins, n_bins, [](int i) { return i + 1; });
    if (cut.n_left == 0) return;
    best_.categorical = false;
    best_.left_bins = {};
    for (int bin = cut.missing_left ? 0 : 1; bin <= cut.n_left; ++bin) insert(best_.left_bins, bin);
  }

  // Categories stand in the order of the steps they would take as leaves; those that do not occur
  // here go the way of missing values.
  void cut_categories(const Sum* bins, int n_bins) {
    std::array<std::pair<double, int>, 256> order;
    int n_seen = 0;
    for (int bin = 1; bin <= n_bins; ++bin) {
      if (bins[bin].is_empty()) continue;
      const double gradient = static_cast<double>(bins[bin].gradient()) * rules_.gradient_unit;
      order[n_seen++] = {gradient / (weight(bins[bin]) + rules_.reg_lambda), bin};
    }
    std::sort(order.begin(), order.begin() + n_seen);
    const Cut cut = find_cut(bins, n_seen, [&](int i) { return order[i].second; });
    if (cut.n_left == 0) return;
    best_.categorical = true;
    best_.left_bins = {};
    for (int i = 0; i < cut.n_left; ++i) insert(best_.left_bins, order[i].second);
    if (!cut.missing_left) return;
    for (int bin = 0; bin <= n_bins; ++bin)
      if (bin == 0 || bins[bin].is_empty()) insert(best_.left_bins, bin);
  }

  Sum total_;
  SplitRules rules_;
  const MonotoneRules* monotone_;
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

template <bool is_monotone>
Split search_all(const TreeData& data, const Histogram& histogram, const Sum& total,
                 const SplitRules& rules, const uint8_t* features, const MonotoneRules* monotone) {
  Search<is_monotone> search(total, rules, monotone);
  const BinTable& table = data.bins();
  const int before = data.windows().before, n_offsets = data.n_offsets();
  const auto allows = [&](int32_t column, int32_t offset) {
    return features == nullptr ||
           features[static_cast<int64_t>(column) * n_offsets + offset + before];
  };
  for (const TreeData::FullFeature& feature : data.full_features())
    if (allows(feature.column, feature.offset))
      search.look_at(feature.column, feature.offset, table.categorical[feature.column],
                     histogram.full.data() + feature.base, table.n_bins[feature.column]);

  std::array<Sum, 256> bins;
  // Where the window reaches beyond the sequence, every sparse column is missing, and all columns
  // without other missing values offer the same split. Only the first of them has to be looked at,
  // as it is taken among equals; if it has entries, that is done below. A monotone column may have
  // to refuse what others offer.
  const auto is_typical = [&](int32_t column) {
    if constexpr (is_monotone) return monotone->directions[column] == kAnyWay;
    return true;
  };
  for (int o = 0; o < n_offsets; ++o) {
    if (histogram.outside[o].is_empty()) continue;
    for (int32_t column = 0; column < table.n_columns(); ++column) {
      if (data.is_full(column) || data.default_bin(column) == 0) continue;
      if (!allows(column, o - before)) continue;
      const SlotSum* entry = first_entry(data, histogram, column, o);
      if (entry == nullptr) {
        std::fill_n(bins.begin(), table.n_bins[column] + 1, Sum{});
        bins[0] = histogram.outside[o];
        bins[data.default_bin(column)] = total - histogram.outside[o];
        search.look_at(column, o - before, table.categorical[column], bins.data(),
                       table.n_bins[column]);
        if (is_typical(column)) break;
      } else if (data.slot_bin(column, entry->place - o * data.n_slots()) != 0 &&
                 is_typical(column)) {
        break;
      }
    }
  }
  for (size_t i = 0; i < histogram.sparse.size();) {
    const int32_t o = histogram.sparse[i].place / data.n_slots();
    const int32_t column = data.slot_column(histogram.sparse[i].place % data.n_slots());
    const int32_t end = o * data.n_slots() + data.end_slot(column);
    const uint8_t usual = data.default_bin(column);
    std::fill_n(bins.begin(), table.n_bins[column] + 1, Sum{});
    bins[usual] = total - histogram.outside[o];
    for (; i < histogram.sparse.size() && histogram.sparse[i].place < end; ++i) {
      const SlotSum& slot = histogram.sparse[i];
      bins[data.slot_bin(column, slot.place - o * data.n_slots())] = slot.sum;
      bins[usual] -= slot.sum;
    }
    bins[0] += histogram.outside[o];
    if (allows(column, o - before))
      search.look_at(column, o - before, table.categorical[column], bins.data(),
                     table.n_bins[column]);
  }
  return search.take();
}

}  // namespace

Split find_split(const TreeData& data, const Histogram& histogram, const Sum& total,
                 const SplitRules& rules, const uint8_t* features, const MonotoneRules* monotone) {
  return monotone == nullptr ? search_all<false>(data, histogram, total, rules, features, monotone)
                             : search_all<true>(data, histogram, total, rules, features, monotone);
}

}  // namespace hedgerow
