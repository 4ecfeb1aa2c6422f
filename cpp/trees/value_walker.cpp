#include "trees/value_walker.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "trees/tiles.hpp"

namespace hedgerow {

ValueWalker::ValueWalker(const TreeArrays& trees) : lanes_(build_lanes(trees)) {}

// In the lanes, the bin of a value is 1 + the number of cuts in use that are <= the value. So at a
// split, as many bins go left as there are cuts in use up to and including its own.
PositionLanes ValueWalker::build_lanes(const TreeArrays& trees) {
  std::map<int32_t, std::array<uint8_t, 256>> limits;  // by column and by last bin that goes left
  for (int64_t n = 0; n < trees.n_nodes(); ++n) {
    if (trees.columns[n] < 0) continue;
    before_ = std::max(before_, -trees.offsets[n]);
    after_ = std::max(after_, trees.offsets[n]);
    limits.try_emplace(trees.columns[n]).first->second[trees.cuts[n]] = 1;
  }
  for (auto& [number, of_column] : limits) {
    const auto first_cut = static_cast<int64_t>(asked_cuts_.size());
    uint8_t n_cuts = of_column[0] = 0;
    for (int cut = 1; cut < 256; ++cut) {
      if (!of_column[cut]) continue;
      asked_cuts_.push_back(static_cast<uint8_t>(cut));
      of_column[cut] = ++n_cuts;
    }
    columns_.push_back({number, 0, first_cut, static_cast<int64_t>(asked_cuts_.size())});
  }
  TreeArrays renumbered = trees;
  for (int64_t n = 0; n < trees.n_nodes(); ++n)
    if (trees.columns[n] >= 0) renumbered.cuts[n] = limits[trees.columns[n]][trees.cuts[n]];
  PositionLanes lanes(renumbered, before_, after_);
  for (Column& column : columns_) {
    const auto found = std::find(lanes.columns().begin(), lanes.columns().end(), column.number);
    column.place = static_cast<size_t>(found - lanes.columns().begin());
  }
  // For other columns, trees only test whether a position is outside.
  std::erase_if(columns_,
                [&](const Column& column) { return column.place == lanes.columns().size(); });
  return lanes;
}

// If the last bin that goes left is the last of the column, all values go left, since none is
// infinite.
template <class Number>
std::vector<Number> ValueWalker::read_cuts(const Cuts& cuts) const {
  std::vector<Number> values;
  values.reserve(asked_cuts_.size());
  for (const Column& column : columns_) {
    const int64_t* bounds = cuts.offsets + column.number;
    for (int64_t i = column.first_cut; i < column.end_cut; ++i) {
      const int64_t cut = bounds[0] + asked_cuts_[i] - 1;
      values.push_back(cut < bounds[1] ? round_up<Number>(cuts.values[cut])
                                       : std::numeric_limits<Number>::infinity());
    }
  }
  return values;
}

// Each thread has its own.
template <class Value>
class ValueWalker::Walk {
 public:
  using Number = Compared<Value>;

  Walk(const ValueWalker& walker, const ValueTable<Value>& values, const std::vector<Number>& cuts,
       const Room& room, const ScoreTable& table)
      : walker_(walker),
        values_(values),
        cuts_(cuts),
        room_(room),
        table_(table),
        block_(walker.lanes_),
        width_(kWalkBlock + walker.before_ + walker.after_),
        tile_(kTileColumns * width_) {}

  void operator()(int64_t begin, int64_t end) {
    const int64_t first = walker_.lanes_.first_around(begin);
    const int64_t n = walker_.lanes_.end_around(end, values_.n_positions) - first;
    const Column* column = walker_.columns_.data();
    const Column* const last = column + walker_.columns_.size();
    while (column != last) {
      const int64_t tile = first_of_tile(column->number, values_.n_columns);
      const int64_t end_of_tile = std::min(tile + kTileColumns, values_.n_columns);
      copy_tile(values_.values + first * values_.n_columns + tile, values_.n_columns, n,
                end_of_tile - tile, tile_.data(), width_);
      for (; column != last && column->number < end_of_tile; ++column)
        fill_column_bins(tile_.data() + (column->number - tile) * width_, n,
                         cuts_.data() + column->first_cut, column->end_cut - column->first_cut,
                         block_.bins_around(column->place, begin));
    }
    block_.add_scores(room_, table_, begin, end);
  }

 private:
  const ValueWalker& walker_;
  const ValueTable<Value>& values_;
  const std::vector<Number>& cuts_;
  const Room& room_;
  ScoreTable table_;
  PositionLanes::Block block_;
  int64_t width_;
  std::vector<Number> tile_;  // (kTileColumns, width_) values around a block
};

template <class Value>
void ValueWalker::add_scores(const ValueTable<Value>& values, const Sequences& sequences,
                             const ScoreTable& table, int n_threads, Stop& stop) const {
  const Room room({sequences, {before_, after_}}, values.n_positions);
  const auto cuts = read_cuts<Compared<Value>>(values.cuts);
  walk_blocks(values.n_positions, table, n_threads, stop,
              [&] { return Walk<Value>(*this, values, cuts, room, table); });
}

template void ValueWalker::add_scores(const ValueTable<float>&, const Sequences&, const ScoreTable&,
                                      int, Stop&) const;
template void ValueWalker::add_scores(const ValueTable<double>&, const Sequences&,
                                      const ScoreTable&, int, Stop&) const;
template void ValueWalker::add_scores(const ValueTable<uint8_t>&, const Sequences&,
                                      const ScoreTable&, int, Stop&) const;

}  // namespace hedgerow
