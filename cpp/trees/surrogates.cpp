#include "trees/surrogates.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "trees/column_rules.hpp"
#include "trees/sides.hpp"

namespace hedgerow {
namespace {

// Weights by bin.
using Weights = std::array<int64_t, 256>;

template <class AnySum>
class SurrogateSearch {
 public:
  SurrogateSearch(const TreeData& data, const DividedNode& node, const Split& split,
                  const uint8_t* features, const int8_t* directions)
      : data_(data), node_(node), split_(split), features_(features), directions_(directions) {
    is_left_heavier_ = 2 * split.left.curvature() > split.known.curvature();
  }

  std::vector<Surrogate> find() {
    look_at_full();
    if (data_.has_sparse()) look_at_sparse();
    const auto n = std::min<ptrdiff_t>(std::ssize(found_), kMaxSurrogates);
    std::partial_sort(found_.begin(), found_.begin() + n, found_.end(),
                      [](const Surrogate& a, const Surrogate& b) {
                        return std::tuple(-a.association, a.column, a.offset) <
                               std::tuple(-b.association, b.column, b.offset);
                      });
    found_.resize(n);
    return std::move(found_);
  }

 private:
  bool allows(int32_t column, int32_t offset) const {
    if (column == split_.column && offset == split_.offset) return false;
    if (directions_ != nullptr && directions_[column] != kAnyWay) return false;
    return features_ == nullptr || features_[static_cast<int64_t>(column) * data_.n_offsets() +
                                             data_.windows().number(offset)];
  }

  static const BinSums<AnySum>& sums_of(const CountedExamples& examples) {
    return std::get<BinSums<AnySum>>(*examples.histogram);
  }

  void look_at_full() {
    for (const TreeData::FullFeature& feature : data_.full_features()) {
      if (!allows(feature.column, feature.offset)) continue;
      const int n_bins = data_.bins().n_bins[feature.column];
      const auto weight = [&](const CountedExamples& examples, int bin) {
        if (examples.histogram == nullptr) return int64_t{0};
        return sums_of(examples).full[feature.base + bin].curvature();
      };
      for (int bin = 1; bin <= n_bins; ++bin)
        set_weights(bin, weight(node_.all, bin) - weight(node_.missing, bin),
                    weight(node_.one_side, bin));
      look_at(feature.column, feature.offset, n_bins);
    }
  }

  // Columns without entries here have one value, and predict nothing.
  void look_at_sparse() {
    const std::vector<SlotSum<AnySum>>& all = sums_of(node_.all).sparse;
    const SlotSum<AnySum>* missing =
        node_.missing.histogram == nullptr ? nullptr : sums_of(node_.missing).sparse.data();
    const SlotSum<AnySum>* one_side = sums_of(node_.one_side).sparse.data();
    int32_t o = 0, first_place = 0;           // of an offset
    int64_t both_inside = 0, one_inside = 0;  // of all bins there
    for (size_t i = 0; i < all.size();) {
      for (; all[i].place - first_place >= data_.n_slots(); ++o) first_place += data_.n_slots();
      if (i == 0 || all[i - 1].place < first_place) {
        both_inside = weight_inside(node_.all, o) - weight_inside(node_.missing, o);
        one_inside = weight_inside(node_.one_side, o);
      }
      const int32_t column = data_.slot_column(all[i].place - first_place);
      const int32_t end = first_place + data_.end_slot(column);
      const int n_bins = data_.bins().n_bins[column];
      const size_t first = i;
      while (i < all.size() && all[i].place < end) ++i;
      const int32_t offset = data_.windows().offset(o);
      if (!allows(column, offset)) continue;
      // Examples without an entry are in the default bin.
      for (int bin = 0; bin <= n_bins; ++bin) lefts_[bin] = rights_[bin] = 0;
      int64_t usual_both = both_inside, usual_one = one_inside;
      for (size_t slot = first; slot < i; ++slot) {
        const int64_t both =
            all[slot].sum.curvature() - (missing == nullptr ? 0 : missing[slot].sum.curvature());
        const int64_t one = one_side[slot].sum.curvature();
        set_weights(data_.slot_bin(column, all[slot].place - first_place), both, one);
        usual_both -= both;
        usual_one -= one;
      }
      set_weights(data_.default_bin(column), usual_both, usual_one);
      look_at(column, offset, n_bins);
    }
  }

  // The weight of examples whose window reaches that far.
  int64_t weight_inside(const CountedExamples& examples, int32_t o) const {
    if (examples.histogram == nullptr) return 0;
    return (examples.total - sums_of(examples).outside[o]).curvature();
  }

  void set_weights(int bin, int64_t both, int64_t one_side) {
    lefts_[bin] = node_.is_left ? one_side : both - one_side;
    rights_[bin] = both - lefts_[bin];
  }

  void look_at(int32_t column, int32_t offset, int n_bins) {
    left_ = right_ = 0;
    for (int bin = 1; bin <= n_bins; ++bin) {
      left_ += lefts_[bin];
      right_ += rights_[bin];
    }
    const int64_t smaller = std::min(left_, right_);
    if (smaller == 0) return;
    Surrogate surrogate{
        .column = column, .offset = offset, .categorical = data_.bins().categorical[column] != 0};
    const int64_t agreed =
        surrogate.categorical ? divide(surrogate, n_bins) : cut(surrogate, n_bins);
    const int64_t excess = smaller - (left_ + right_ - agreed);
    if (excess <= 0) return;
    surrogate.association = static_cast<double>(excess) / static_cast<double>(smaller);
    found_.push_back(surrogate);
  }

  // Chooses where to cut values, and returns the weight that agrees.
  int64_t cut(Surrogate& surrogate, int n_bins) const {
    int64_t most = 0, left = 0, right = 0;
    for (int bin = 1; bin < n_bins; ++bin) {
      if (lefts_[bin] + rights_[bin] == 0) continue;
      left += lefts_[bin];
      right += rights_[bin];
      for (const bool reversed : {false, true}) {
        const int64_t agreed = reversed ? right + left_ - left : left + right_ - right;
        if (agreed <= most) continue;
        most = agreed;
        surrogate.cut = static_cast<uint8_t>(bin);
        surrogate.reversed = reversed;
      }
    }
    for (int bin = 1; bin <= n_bins; ++bin)
      if ((bin <= surrogate.cut) != surrogate.reversed) insert(surrogate.left_bins, bin);
    return most;
  }

  // The same for categories; those that could go either way go to the heavier side.
  int64_t divide(Surrogate& surrogate, int n_bins) const {
    int64_t agreed = 0;
    for (int bin = 1; bin <= n_bins; ++bin) {
      agreed += std::max(lefts_[bin], rights_[bin]);
      const bool is_open = lefts_[bin] == rights_[bin];
      if (is_open ? is_left_heavier_ : lefts_[bin] > rights_[bin]) insert(surrogate.left_bins, bin);
    }
    return agreed;
  }

  const TreeData& data_;
  const DividedNode& node_;
  const Split& split_;
  const uint8_t* features_;
  const int8_t* directions_;
  bool is_left_heavier_;
  Weights lefts_{}, rights_{};    // by bin of a feature
  int64_t left_ = 0, right_ = 0;  // of all its bins
  std::vector<Surrogate> found_;
};

}  // namespace

std::vector<Surrogate> find_surrogates(const TreeData& data, const DividedNode& node,
                                       const Split& split, const uint8_t* features,
                                       const int8_t* directions) {
  return std::visit(
      [&]<class AnySum>(const BinSums<AnySum>&) {
        return SurrogateSearch<AnySum>(data, node, split, features, directions).find();
      },
      *node.all.histogram);
}

std::vector<uint8_t> find_sides_by(const std::vector<Surrogate>& surrogates, const Split& split,
                                   const TreeData& data, std::span<const int32_t> positions) {
  const uint8_t usual = contains(split.left_bins, 0) ? kLeftSide : kRightSide;
  std::vector<uint8_t> sides(positions.size(), usual), found(positions.size());
  // Positions without a side so far, and their places among all.
  std::vector<int32_t> open(positions.begin(), positions.end()), places(positions.size());
  std::iota(places.begin(), places.end(), 0);
  for (const Surrogate& surrogate : surrogates) {
    Sides(data, surrogate).fill(open, found.data());
    size_t n_open = 0;
    for (size_t i = 0; i < open.size(); ++i) {
      const bool is_open = found[i] == kNoSide;
      sides[places[i]] = is_open ? usual : found[i];
      open[n_open] = open[i];
      places[n_open] = places[i];
      n_open += is_open;
    }
    open.resize(n_open);
  }
  return sides;
}

}  // namespace hedgerow
