// Walks: for splits on any columns, scores equal those of a walk node by node.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "parallel.hpp"
#include "tests/check.hpp"
#include "trees/data.hpp"
#include "trees/forest.hpp"
#include "trees/tree_arrays.hpp"

namespace hedgerow::tests {
namespace {

constexpr int kOutputs = 3;

// Random bins of columns, all of which have a default; the last ones are attributes.
struct Bins {
  std::vector<int64_t> offsets{0};
  int32_t n_dense, n_attributes;
  std::vector<int32_t> n_bins;
  std::vector<uint8_t> all, dense, defaults, attribute_bins, categorical;
  std::vector<int64_t> entry_offsets{0};
  std::vector<int32_t> attributes;

  Bins(const std::vector<int64_t>& lengths, int32_t n_dense, int32_t n_attributes)
      : n_dense(n_dense), n_attributes(n_attributes) {
    for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
    const int32_t n_columns = n_dense + n_attributes;
    categorical.assign(n_columns, 0);
    for (int32_t c = 0; c < n_columns; ++c) n_bins.push_back(c % 3 == 2 ? 255 : 2);
    for (int32_t c = n_dense; c < n_columns; ++c)
      defaults.push_back(static_cast<uint8_t>(1 + below(n_bins[c])));
    for (int64_t t = 0; t < offsets.back(); ++t) {
      for (int32_t c = 0; c < n_columns; ++c) {
        const bool is_usual = c >= n_dense && uniform(0, 1) < 0.7;
        const auto other = static_cast<uint8_t>(below(n_bins[c] + 1));
        const uint8_t bin = is_usual ? defaults[c - n_dense] : other;
        all.push_back(bin);
        if (c < n_dense) dense.push_back(bin);
        if (c < n_dense || bin == defaults[c - n_dense]) continue;
        attributes.push_back(c - n_dense);
        attribute_bins.push_back(bin);
      }
      entry_offsets.push_back(static_cast<int64_t>(attributes.size()));
    }
  }

  BinTable table() const {
    return {offsets.back(),       n_dense,           n_attributes,          dense.data(),
            entry_offsets.data(), attributes.data(), attribute_bins.data(), n_bins.data(),
            defaults.data(),      categorical.data()};
  }
  bool is_inside(int64_t sequence, int64_t t) const {
    return t >= offsets[sequence] && t < offsets[sequence + 1];
  }
  uint8_t at(int64_t t, int32_t column) const { return all[t * (n_dense + n_attributes) + column]; }
};

// Numbers whose bins these are, for columns with the cuts 0.5, 1.5 and so on.
template <class Value>
struct Values {
  std::vector<int64_t> cut_offsets{0};
  std::vector<double> cuts;
  std::vector<Value> values;
  const Bins& bins;

  explicit Values(const Bins& bins) : bins(bins) {
    for (const int32_t n_bins : bins.n_bins) {
      for (int32_t cut = 1; cut < n_bins; ++cut) cuts.push_back(cut - 0.5);
      cut_offsets.push_back(static_cast<int64_t>(cuts.size()));
    }
    for (const uint8_t bin : bins.dense)
      values.push_back(bin == 0 ? static_cast<Value>(NAN) : static_cast<Value>(bin - 1));
  }
  ValueTable<Value> table() const {
    return {bins.offsets.back(), bins.n_dense, values.data(), {cut_offsets.data(), cuts.data()}};
  }
};

// One more tree with the splits of the last one and values of its own.
void repeat_last(TreeArrays& trees) {
  const int64_t end = trees.n_nodes(), first = trees.tree_offsets[trees.n_trees() - 1];
  for (int64_t n = first; n < end; ++n) {
    trees.values.push_back(static_cast<float>(uniform(-1, 1)));
    for (auto* numbers : {&trees.columns, &trees.offsets, &trees.sets, &trees.lefts})
      numbers->push_back(int32_t{(*numbers)[n]});
    for (auto* bytes : {&trees.cuts, &trees.missing_left, &trees.outside_left})
      bytes->push_back(uint8_t{(*bytes)[n]});
    for (auto* zeros : {&trees.gains, &trees.weights}) zeros->push_back(0.0f);
  }
  trees.tree_offsets.push_back(trees.n_nodes());
  trees.outputs.push_back(static_cast<int32_t>(below(kOutputs)));
}

// Trees with up to this many arbitrary splits, or a single leaf. Some have the same splits as the
// previous one.
TreeArrays random_trees(const Bins& bins, int n_trees, int max_splits, int reach) {
  TreeArrays trees;
  for (int i = 0; i < n_trees; ++i) {
    if (i > 0 && below(3) == 0) {
      repeat_last(trees);
      continue;
    }
    const auto n_splits = static_cast<int>(i == 0 ? max_splits : below(max_splits + 1));
    const int64_t first = trees.n_nodes(), n_nodes = 2 * n_splits + 1;
    for (int64_t n = 0; n < n_nodes; ++n) {
      trees.columns.push_back(-1);
      trees.values.push_back(static_cast<float>(uniform(-1, 1)));
    }
    const auto end = static_cast<size_t>(first + n_nodes);
    for (auto* zeros : {&trees.cuts, &trees.missing_left, &trees.outside_left})
      zeros->resize(end, 0);
    trees.offsets.resize(end, 0);
    for (auto* none : {&trees.sets, &trees.lefts}) none->resize(end, -1);
    for (auto* zeros : {&trees.gains, &trees.weights}) zeros->resize(end, 0.0f);
    std::vector<int32_t> leaves{0};
    for (int32_t split = 0; split < n_splits; ++split) {
      const auto chosen = static_cast<size_t>(below(static_cast<int64_t>(leaves.size())));
      const int64_t n = first + leaves[chosen];
      leaves.erase(leaves.begin() + static_cast<int64_t>(chosen));
      trees.lefts[n] = 2 * split + 1;
      leaves.insert(leaves.end(), {2 * split + 1, 2 * split + 2});
      trees.columns[n] = static_cast<int32_t>(below(bins.n_dense + bins.n_attributes));
      trees.offsets[n] = static_cast<int32_t>(below(2 * reach + 1)) - reach;
      trees.missing_left[n] = static_cast<uint8_t>(below(2));
      trees.outside_left[n] = static_cast<uint8_t>(below(2));
      trees.cuts[n] = static_cast<uint8_t>(1 + below(bins.n_bins[trees.columns[n]]));
    }
    trees.tree_offsets.push_back(trees.n_nodes());
    trees.outputs.push_back(static_cast<int32_t>(below(kOutputs)));
  }
  trees.round_offsets.push_back(n_trees);
  check_trees(trees, kOutputs, bins.n_dense + bins.n_attributes);
  return trees;
}

float walk(const TreeArrays& trees, int64_t tree, const Bins& bins, int64_t sequence, int64_t t) {
  int64_t n = trees.tree_offsets[tree];
  while (trees.columns[n] >= 0) {
    const int64_t seen = t + trees.offsets[n];
    bool left = trees.outside_left[n] != 0;
    if (bins.is_inside(sequence, seen)) {
      const uint8_t bin = bins.at(seen, trees.columns[n]);
      left = bin == 0 ? trees.missing_left[n] != 0 : bin <= trees.cuts[n];
    }
    n = trees.tree_offsets[tree] + trees.lefts[n] + (left ? 0 : 1);
  }
  return trees.values[n];
}

// Trees that split only on numbers give the same scores from these.
template <class Value>
void check_values(const Forest& forest, const Bins& bins, const std::vector<double>& scores,
                  const std::vector<double>& expected, int n_threads) {
  if (bins.n_attributes > 0 || !forest.asks_numbers()) return;
  const Values<Value> values(bins);
  Stop stop(nullptr);
  std::vector<double> out(scores.size());
  forest.add_scores(values.table(),
                    {static_cast<int64_t>(bins.offsets.size()) - 1, bins.offsets.data()},
                    scores.data(), out.data(), n_threads, stop);
  CHECK(out == expected);
}

void check_walks(const Bins& bins, int n_trees, int max_splits, int reach) {
  const auto n_sequences = static_cast<int64_t>(bins.offsets.size()) - 1;
  context = std::to_string(bins.n_dense) + "+" + std::to_string(bins.n_attributes) + " columns, " +
            std::to_string(max_splits) + " splits, reach " + std::to_string(reach);
  std::vector<double> weights, scores;
  for (int i = 0; i < n_trees; ++i) weights.push_back(i % 2 == 0 ? 1.0 : 0.25);
  for (int64_t i = 0; i < bins.offsets.back() * kOutputs; ++i) scores.push_back(uniform(-1, 1));
  const Forest forest(kOutputs, random_trees(bins, n_trees, max_splits, reach), weights);
  const TreeArrays& trees = forest.trees();
  std::vector<double> expected = scores;
  for (int64_t s = 0; s < n_sequences; ++s)
    for (int64_t t = bins.offsets[s]; t < bins.offsets[s + 1]; ++t)
      for (int64_t i = 0; i < n_trees; ++i)
        expected[t * kOutputs + trees.outputs[i]] +=
            weights[i] * static_cast<double>(walk(trees, i, bins, s, t));
  Stop stop(nullptr);
  const Sequences sequences{n_sequences, bins.offsets.data()};
  const TreeData data(bins.table(), {sequences, {0, 0}}, nullptr, 2, stop);
  for (const int n_threads : {1, 3}) {
    for (const BinTable& table : {bins.table(), data.bins()}) {
      std::vector<double> out(scores.size());
      forest.add_scores(table, sequences, scores.data(), out.data(), n_threads, stop);
      CHECK(out == expected);
    }
    check_values<float>(forest, bins, scores, expected, n_threads);
    check_values<double>(forest, bins, scores, expected, n_threads);
  }
}

TEST(walks) {
  const std::vector<std::vector<int64_t>> all_lengths{{}, {0, 3, 0}, {90, 0, 1, 40, 2}};
  const std::vector<std::pair<int32_t, int32_t>> all_columns{{4, 0}, {19, 0}, {0, 5}, {3, 3}};
  for (const auto& lengths : all_lengths)
    for (const auto& [n_dense, n_attributes] : all_columns) {
      const Bins bins(lengths, n_dense, n_attributes);
      for (const int reach : {0, 2, 70})
        for (const int max_splits : {0, 3, 63, 64, 255, 256})
          check_walks(bins, 5, max_splits, reach);
    }
  check_walks(Bins({5, 2}, 0, 4), 2100, 3, 1);  // more trees than are walked together
}

}  // namespace
}  // namespace hedgerow::tests
