#include "trees/surrogate_walker.hpp"

#include "trees/feature_rows.hpp"

namespace hedgerow {

SurrogateWalker::SurrogateWalker(const TreeArrays& trees, const AskedAttributes& asked,
                                 int32_t n_dense)
    : arrays_(trees), asked_(asked) {
  const auto place = [&](int32_t column, int offset) {
    return FeatureRows::place(asked, n_dense, column, offset);
  };
  nodes_.reserve(trees.n_nodes());
  for (int64_t n = 0; n < trees.n_nodes(); ++n) {
    if (trees.columns[n] < 0)
      nodes_.push_back({-1, 0, -1, {}, false, false});
    else
      nodes_.push_back({place(trees.columns[n], trees.offsets[n]), trees.offsets[n], trees.lefts[n],
                        bin_test(trees, n), trees.sets[n] >= 0, trees.outside_left[n] != 0});
  }
  for (int64_t i = 0; i < trees.n_surrogates(); ++i)
    surrogate_features_.push_back(place(trees.surrogate_columns[i], trees.surrogate_offsets[i]));
}

// Each thread has its own.
class SurrogateWalker::Walk {
 public:
  Walk(const SurrogateWalker& walker, const BinTable& bins, const Room& room,
       const ScoreTable& table)
      : walker_(walker),
        arrays_(walker.arrays_),
        room_(room),
        table_(table),
        rows_(walker.asked_, bins, room),
        copy_(rows_.width()) {}

  void operator()(int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const uint8_t* row = rows_.find(t, copy_.data());
      double* out = table_.out + t * table_.n_outputs;
      for (int64_t i = 0; i < arrays_.n_trees(); ++i)
        out[arrays_.outputs[i]] +=
            table_.tree_weights[i] * value_of(arrays_.tree_offsets[i], t, row);
    }
  }

 private:
  // What a tree that begins at node `first` adds at a position.
  double value_of(int64_t first, int64_t t, const uint8_t* row) const {
    int64_t n = first;
    while (walker_.nodes_[n].feature >= 0) {
      const Node& node = walker_.nodes_[n];
      const uint8_t bin = row[node.feature];
      bool is_left = node.outside_left;
      if (room_.holds(t, node.offset))
        is_left = bin == 0       ? answer_missing(n, t, row)
                  : node.has_set ? goes_left(arrays_, n, bin)
                                 : node.test.goes_left(bin);
      n = first + node.left + !is_left;
    }
    return static_cast<double>(arrays_.values[n]);
  }

  // Whether a missing value goes left at a split.
  bool answer_missing(int64_t n, int64_t t, const uint8_t* row) const {
    for (int64_t i = arrays_.surrogate_starts[n]; i < arrays_.surrogate_starts[n + 1]; ++i) {
      const uint8_t bin = row[walker_.surrogate_features_[i]];
      if (bin != 0 && room_.holds(t, arrays_.surrogate_offsets[i]))
        return surrogate_goes_left(arrays_, i, bin);
    }
    return goes_left(arrays_, n, 0);
  }

  const SurrogateWalker& walker_;
  const TreeArrays& arrays_;
  const Room& room_;
  ScoreTable table_;
  FeatureRows rows_;
  std::vector<uint8_t> copy_;  // a row
};

void SurrogateWalker::add_scores(const BinTable& bins, const Room& room, const ScoreTable& table,
                                 int n_threads, Stop& stop) const {
  walk_blocks(bins.n_positions, table, n_threads, stop,
              [&] { return Walk(*this, bins, room, table); });
}

}  // namespace hedgerow
