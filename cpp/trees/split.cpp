#include "trees/split.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "trees/cut_search.hpp"

namespace hedgerow {
namespace {

// The first slot of a column that has examples at an offset, or null.
template <class AnySum>
const SlotSum<AnySum>* first_entry(const TreeData& data, const BinSums<AnySum>& histogram,
                                   int32_t column, int o) {
  const int32_t first = o * data.n_slots() + data.first_slot(column);
  const auto found = std::lower_bound(
      histogram.sparse.begin(), histogram.sparse.end(), first,
      [](const SlotSum<AnySum>& slot, int32_t place) { return slot.place < place; });
  const bool is_own =
      found != histogram.sparse.end() && found->place < o * data.n_slots() + data.end_slot(column);
  return is_own ? &*found : nullptr;
}

// Slots of one column at an offset that have examples.
template <class AnySum>
struct ColumnSlots {
  int32_t column;
  int o;                // number of the offset
  int32_t first_place;  // of the offset
  std::span<const SlotSum<AnySum>> slots;
};

// All features of a node's histogram.
template <bool is_monotone, class AnySum>
class NodeSearch {
 public:
  NodeSearch(const TreeData& data, const BinSums<AnySum>& histogram, const WideSum& total,
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
      Search search(total_, rules_, monotone_);
      look_at_full(search, n_full * part / n_parts, n_full * (part + 1) / n_parts);
      if (part == 0 && data_.has_sparse()) {
        look_at_edges(search);
        look_at_sparse(search);
      }
      if (part == 0 && contexts_ != nullptr) look_at_labels(search);
      found[part] = search.take();
    });
    Search best(total_, rules_, monotone_);
    for (const Split& split : found) best.look_at(split);
    return best.take();
  }

 private:
  using Search = CutSearch<is_monotone, AnySum>;
  static constexpr int64_t kFeaturesWorthSharing = 32;  // else waiting for a thread takes longer

  bool allows(int32_t column, int32_t offset) const {
    return features_ == nullptr || features_[static_cast<int64_t>(column) * data_.n_offsets() +
                                             data_.windows().number(offset)];
  }

  void look_at_full(Search& search, int64_t first, int64_t end) const {
    for (int64_t f = first; f < end; ++f) {
      const TreeData::FullFeature& feature = data_.full_features()[f];
      if (!allows(feature.column, feature.offset)) continue;
      const AnySum* bins = histogram_.full.data() + feature.base;
      // In a column without missing values, bin 0 has the positions outside.
      const AnySum outside = data_.may_miss(feature.column)
                                 ? histogram_.outside[data_.windows().number(feature.offset)]
                                 : bins[0];
      search.look_at(describe(feature.column, feature.offset, bins, bins[0] - outside, outside));
    }
  }

  FeatureSums<AnySum> describe(int32_t column, int32_t offset, const AnySum* bins, AnySum missing,
                               AnySum outside) const {
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

  // Where the window reaches beyond the sequence, all sparse columns with known values have the
  // same split, between positions inside and outside. Only the first of them has to be searched,
  // since it is chosen among equals; if it has entries, look_at_sparse does that. A monotone column
  // may have to reject splits that others allow.
  void look_at_edges(Search& search) const {
    const BinTable& table = data_.bins();
    const auto is_typical = [&](int32_t column) {
      if constexpr (is_monotone) return monotone_->directions[column] == kAnyWay;
      return true;
    };
    std::array<AnySum, 256> bins;
    for (int o = 0; o < data_.n_offsets(); ++o) {
      const AnySum outside = histogram_.outside[o];
      const int offset = data_.windows().offset(o);
      if (outside.is_empty()) continue;
      for (int32_t column = 0; column < table.n_columns(); ++column) {
        if (data_.is_full(column) || !allows(column, offset)) continue;
        const SlotSum<AnySum>* entry = first_entry(data_, histogram_, column, o);
        if (!has_known(column, o, entry)) continue;
        if (entry == nullptr) {
          std::fill_n(bins.begin(), table.n_bins[column] + 1, AnySum{});
          bins[data_.default_bin(column)] = total_ - outside;
          search.look_at(describe(column, offset, bins.data(), AnySum{}, outside));
        }
        if (is_typical(column)) break;
      }
    }
  }

  // Whether a sparse column has known values here, given its first slot with examples, or null.
  bool has_known(int32_t column, int o, const SlotSum<AnySum>* entry) const {
    if (data_.default_bin(column) == 0) return entry != nullptr;
    const bool has_missing =
        entry != nullptr && data_.slot_bin(column, entry->place - o * data_.n_slots()) == 0;
    return (has_missing ? entry->sum : AnySum{}) != total_ - histogram_.outside[o];
  }

  // Columns with two bins are collected and processed many at a time.
  void look_at_sparse(Search& search) const {
    const std::vector<SlotSum<AnySum>>& slots = histogram_.sparse;
    WaitingColumns waiting;
    int o = 0;
    for (size_t i = 0, next = 0; i < slots.size(); i = next) {
      while (slots[i].place >= (o + 1) * data_.n_slots()) ++o;
      const ColumnSlots<AnySum> own = column_at(i, o);
      next = i + own.slots.size();
      const bool has_three_parts =
          data_.bins().n_bins[own.column] == 2 && histogram_.outside[o].is_empty();
      if (is_monotone || !has_three_parts) {
        look_at_slots(own, search);
        continue;
      }
      if (rules_.missing->leaves_out())
        add_known_cut(own, waiting);
      else
        add_cuts(own, waiting);
      waiting.columns[waiting.n_columns++] = {i, waiting.lefts.n};
      if (waiting.lefts.n + 3 > Lefts::kMost) look_at_waiting(waiting, search);
    }
    look_at_waiting(waiting, search);
  }

  // The column whose first slot with examples is this one.
  ColumnSlots<AnySum> column_at(size_t first, int o) const {
    const std::vector<SlotSum<AnySum>>& slots = histogram_.sparse;
    const int32_t first_place = o * data_.n_slots();
    const int32_t column = data_.slot_column(slots[first].place - first_place);
    const int32_t end = first_place + data_.end_slot(column);
    size_t next = first + 1;
    while (next < slots.size() && slots[next].place < end) ++next;
    return {column, o, first_place, {&slots[first], next - first}};
  }

  // Columns whose cuts are compared together, each with at least one cut.
  struct WaitingColumns {
    struct Column {
      size_t first_slot;
      int end;  // of its cuts
    };
    Lefts lefts, known;  // known: where splits use only these
    std::array<Column, Lefts::kMost> columns;
    int n_columns = 0;
  };

  // Every example is in one of two bins, or missing: every cut parts one of the three from the
  // others.
  void add_cuts(const ColumnSlots<AnySum>& own, WaitingColumns& waiting) const {
    AnySum rest = total_;
    for (const SlotSum<AnySum>& slot : own.slots) {
      waiting.lefts.add(slot.sum);
      rest -= slot.sum;
    }
    if (own.slots.size() > 1) waiting.lefts.add(rest);
  }

  // The cut between two bins.
  void add_known_cut(const ColumnSlots<AnySum>& own, WaitingColumns& waiting) const {
    std::array<AnySum, 3> bins{};
    AnySum rest = total_;
    for (const SlotSum<AnySum>& slot : own.slots) {
      bins[data_.slot_bin(own.column, slot.place - own.first_place)] = slot.sum;
      rest -= slot.sum;
    }
    bins[data_.default_bin(own.column)] = rest;
    waiting.lefts.add(bins[1]);
    waiting.known.add(bins[1] + bins[2]);
  }

  void look_at_waiting(WaitingColumns& waiting, Search& search) const {
    std::array<double, Lefts::kMost> gains;
    if (rules_.missing->leaves_out())
      search.fill_known_gains(waiting.lefts, waiting.known, gains.data());
    else
      search.fill_gains(waiting.lefts, gains.data());
    int first = 0;
    for (const auto& [slot, end] : std::span(waiting.columns).first(waiting.n_columns)) {
      const double largest = *std::max_element(gains.begin() + first, gains.begin() + end);
      first = end;
      if (!(largest >= search.least_gain())) continue;
      look_at_slots(column_at(slot, histogram_.sparse[slot].place / data_.n_slots()), search);
    }
    waiting.lefts.n = waiting.known.n = waiting.n_columns = 0;
  }

  void look_at_slots(const ColumnSlots<AnySum>& own, Search& search) const {
    const int offset = data_.windows().offset(own.o);
    if (!allows(own.column, offset)) return;
    const uint8_t usual = data_.default_bin(own.column);
    std::array<AnySum, 256> bins;
    std::fill_n(bins.begin(), data_.bins().n_bins[own.column] + 1, AnySum{});
    bins[usual] = total_ - histogram_.outside[own.o];
    for (const SlotSum<AnySum>& slot : own.slots) {
      bins[data_.slot_bin(own.column, slot.place - own.first_place)] = slot.sum;
      bins[usual] -= slot.sum;
    }
    search.look_at(describe(own.column, offset, bins.data(), bins[0], histogram_.outside[own.o]));
  }

  void look_at_labels(Search& search) const {
    const ContextRows& rows_of_node = *contexts_->rows;
    const int n_labels = rows_of_node.n_labels();
    std::array<AnySum, 256> bins;
    SplitRules rules = rules_;
    rules.reg_lambda += contexts_->more_lambda;
    const MissingRules learned;  // an unknown label is informative too
    rules.missing = &learned;
    Search own(total_, rules, monotone_);
    for (int lag = 0; lag < rows_of_node.n_lags(); ++lag) {
      rows_of_node.fill_bins(contexts_->contexts, histogram_.contexts.data(), lag,
                             std::span(bins).first(n_labels + 1));
      own.look_at({data_.bins().n_columns() + lag, 0, true, true, bins.data(), n_labels, bins[0],
                   AnySum{}});
    }
    search.look_at(own.take());
  }

  const TreeData& data_;
  const BinSums<AnySum>& histogram_;
  AnySum total_;
  const SplitRules& rules_;
  const uint8_t* features_;
  const MonotoneRules* monotone_;
  const NodeContexts* contexts_;
};

}  // namespace

Split find_split(const TreeData& data, const Histogram& histogram, const WideSum& total,
                 const SplitRules& rules, const uint8_t* features, const MonotoneRules* monotone,
                 const NodeContexts* contexts, Crew& crew) {
  return std::visit(
      [&]<class AnySum>(const BinSums<AnySum>& sums) {
        if (monotone == nullptr)
          return NodeSearch<false, AnySum>(data, sums, total, rules, features, nullptr, contexts)
              .find(crew);
        return NodeSearch<true, AnySum>(data, sums, total, rules, features, monotone, contexts)
            .find(crew);
      },
      histogram);
}

}  // namespace hedgerow
