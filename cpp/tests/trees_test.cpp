// Trees: their nodes against the examples in them, the scores of a forest against a simple walk.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"
#include "tests/check.hpp"
#include "trees/column_rules.hpp"
#include "trees/data.hpp"
#include "trees/examples.hpp"
#include "trees/forest.hpp"
#include "trees/grow.hpp"
#include "trees/histogram_builder.hpp"

namespace hedgerow::tests {
namespace {

const auto kPool = std::make_shared<MemoryPool>();

// Random bins of columns that are spread out, or mostly in one bin, or missing here and there, or
// categories; and of attributes.
struct Table {
  int64_t n_positions;
  int32_t n_dense, n_attributes;
  std::vector<int64_t> offsets{0};
  std::vector<uint8_t> all;  // (N, n_columns)
  std::vector<uint8_t> dense, attribute_bins, default_bins, categorical;
  std::vector<int64_t> entry_offsets{0};
  std::vector<int32_t> attributes, n_bins, parents;

  Table(const std::vector<int64_t>& lengths, int32_t n_dense, int32_t n_attributes,
        int32_t most_bins = 255)
      : n_dense(n_dense), n_attributes(n_attributes) {
    for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
    n_positions = offsets.back();
    for (const int64_t length : lengths)
      for (int64_t t = 0; t < length; ++t)  // the parent is any position before, or there is none
        parents.push_back(static_cast<int32_t>(below(t + 1)) - 1);
    std::vector<uint8_t> usual;
    for (int32_t c = 0; c < n_columns(); ++c) {
      const auto few = 1 + static_cast<int32_t>(below(std::min(6, most_bins)));
      n_bins.push_back(c % 5 == 4 ? most_bins : few);
      usual.push_back(static_cast<uint8_t>(below(n_bins[c] + 1)));
      categorical.push_back(c % 3 == 2);
    }
    for (int64_t i = 0; i < n_positions * n_columns(); ++i) {
      const auto c = static_cast<int32_t>(i % n_columns());
      const bool is_usual = uniform(0, 1) < 0.4 * (c % 3);
      const bool is_missing = c % 2 == 0 && uniform(0, 1) < 0.2;
      const auto other = static_cast<uint8_t>(is_missing ? 0 : 1 + below(n_bins[c]));
      all.push_back(is_usual ? usual[c] : other);
    }
    default_bins.assign(usual.begin() + n_dense, usual.end());
    for (int64_t t = 0; t < n_positions; ++t) {
      for (int32_t c = 0; c < n_columns(); ++c) {
        const uint8_t bin = at(t, c);
        if (c < n_dense) {
          dense.push_back(bin);
        } else if (bin != usual[c]) {
          attributes.push_back(c - n_dense);
          attribute_bins.push_back(bin);
        }
      }
      entry_offsets.push_back(static_cast<int64_t>(attributes.size()));
    }
  }

  int32_t n_columns() const { return n_dense + n_attributes; }
  uint8_t at(int64_t t, int32_t column) const { return all[t * n_columns() + column]; }
  // What a feature sees.
  uint8_t at(int64_t t, int32_t column, int offset) const {
    const int64_t row = look(t, offset);
    return row >= 0 ? at(row, column) : uint8_t{0};
  }
  bool is_inside(int64_t t, int offset) const { return look(t, offset) >= 0; }
  // The position at an offset, -1 if there is none.
  int64_t look(int64_t t, int offset) const {
    const auto end = std::upper_bound(offsets.begin(), offsets.end(), t);
    if (offset < kParent)
      return t + offset >= end[-1] && t + offset < *end ? t + offset : int64_t{-1};
    for (; offset >= kParent && t >= 0; --offset) t = parents[t] < 0 ? -1 : end[-1] + parents[t];
    return t;
  }
  BinTable bins() const {
    return {n_positions,
            n_dense,
            n_attributes,
            dense.data(),
            n_attributes == 0 ? nullptr : entry_offsets.data(),
            attributes.data(),
            attribute_bins.data(),
            n_bins.data(),
            default_bins.data(),
            categorical.data()};
  }
  Sequences sequences() const {
    return {static_cast<int64_t>(offsets.size()) - 1, offsets.data(), parents.data()};
  }
  Windows windows(int before, int after, int ancestors = 0) const {
    return {sequences(), {before, after, ancestors}};
  }
};

std::vector<Derivatives> random_derivatives(int64_t n_positions, double share) {
  std::vector<Derivatives> derivatives;
  for (int32_t t = 0; t < n_positions; ++t)
    if (uniform(0, 1) < share)
      derivatives.push_back({t, static_cast<float>(below(2000) - 1000) / 512.0f,
                             static_cast<float>(1 + below(1000)) / 1024.0f});
  return derivatives;
}

void check_lookups(const Table& table, const TreeData& data) {
  bool equal = true;
  for (int64_t t = 0; t < table.n_positions; ++t)
    for (int32_t c = 0; c < table.n_columns(); ++c) {
      equal &= data.bin_at(t, c) == table.at(t, c);
      for (int o = 0; o < data.n_offsets(); ++o) {
        const int offset = data.windows().offset(o);
        equal &= data.windows().number(offset) == o;
        equal &= data.bin_at(t, c, offset) == table.at(t, c, offset);
      }
    }
  CHECK(equal);
}

// The same in the other kind of sums.
BinSums<WideSum> widen(const BinSums<Sum>& sums) {
  BinSums<WideSum> wide{{sums.full.begin(), sums.full.end()},
                        {},
                        {sums.outside.begin(), sums.outside.end()},
                        {sums.contexts.begin(), sums.contexts.end()}};
  for (const SlotSum<Sum>& slot : sums.sparse) wide.sparse.push_back({slot.place, slot.sum});
  return wide;
}

size_t count_slots(const Histogram& histogram) {
  return std::visit([](const auto& sums) { return sums.sparse.size(); }, histogram);
}

// Subtraction gives what counting gives, and both kinds of sums are equal.
void check_histograms(const Table& table, const TreeData& data) {
  Stop stop(nullptr);
  Crew crew(1, stop);
  HistogramBuilder builder(data, crew, stop, false), wide_builder(data, crew, stop, true);
  std::vector<Sum> sums(table.n_positions);
  std::vector<int32_t> both, left, right;
  const std::vector<Derivatives> examples = random_derivatives(table.n_positions, 0.8);
  const Magnitudes sizes = measure(examples, MagnitudeGrid(0.0), crew);
  const Units units = choose_units({&sizes, 1});
  for (const Derivatives& d : examples) {
    sums[d.position] = units.round(d);
    both.push_back(d.position);
    (below(3) == 0 ? left : right).push_back(d.position);
  }
  std::vector<Histogram> found;  // of the left, by kind
  for (HistogramBuilder* each : {&builder, &wide_builder}) {
    const auto all = each->count({both, sums.data()}, nullptr);
    const auto of_left = each->count({left, sums.data()}, nullptr);
    const auto of_right = each->count({right, sums.data()}, nullptr);
    const auto counted = each->count({left, sums.data()}, all.get());
    CHECK(count_slots(*counted) == count_slots(*all));
    subtract(*all, *counted);
    CHECK(*counted == *of_left && *all == *of_right);
    found.push_back(*of_left);
  }
  CHECK(widen(std::get<BinSums<Sum>>(found[0])) == std::get<BinSums<WideSum>>(found[1]));
}

int32_t walk(const Table& table, const GrownTree& tree, int64_t t) {
  int32_t at = 0;
  while (tree[at].column >= 0) {
    const TreeNode& node = tree[at];
    const uint8_t bin = table.at(t, node.column, node.offset);
    const bool is_inside = table.is_inside(t, node.offset);
    at = node.left + !(is_inside ? contains(node.left_bins, bin) : node.outside_left);
  }
  return at;
}

const GrowthRules kRules{
    .max_leaves = 20,
    .max_depth = 6,
    .min_child_weight = 0.5,
    .min_split_gain = 0.0,
    .reg_lambda = 1.0,
    .max_step = 100.0,
    .learning_rate = 0.5,
    .colsample_bytree = 1.0,
    .colsample_bynode = 1.0,
};

// A forest adds what is expected to 0.25: in place, from several threads at once, at half the
// weight, and joined.
void check_forest(const Table& table, const Forest& forest, const std::vector<double>& expected) {
  check_trees(forest.trees(), forest.n_outputs(), table.n_columns());
  Stop stop(nullptr);
  const auto add = [&](const Forest& trees, const double* scores, double* out, int n_threads) {
    trees.add_scores(table.bins(), table.sequences(), scores, out, n_threads, stop);
  };
  const Forest half = forest.scaled(0.5);
  CHECK(half.trees().values.data() == forest.trees().values.data());
  std::vector<std::vector<double>> outs(4, std::vector<double>(expected.size(), 0.25));
  parallel_for(4, 4, stop, [&](int64_t i) {  // the first walks at the same time
    add(i % 2 == 0 ? forest : half, outs[i].data(), outs[i].data(), 1);
  });
  CHECK(outs[0] == expected && outs[2] == expected);
  for (size_t i = 0; i < expected.size(); ++i)
    CHECK_NEAR(2.0 * outs[1][i] - 0.25, expected[i], 1e-12);
  const Forest joined = Forest::join(forest.n_outputs(), {&half, &half});
  CHECK(joined.trees().n_trees() == 2 * forest.trees().n_trees());
  CHECK(joined.trees().round_offsets.size() == 3 && joined.n_columns() == forest.n_columns());
  check_trees(joined.trees(), forest.n_outputs(), table.n_columns());
  std::vector<double> once(expected.size(), 0.25);
  add(half, once.data(), once.data(), 1);
  add(half, once.data(), once.data(), 1);
  for (const int n_threads : {1, 3}) {
    const std::vector<double> scores(expected.size(), 0.25);
    std::vector<double> out(expected.size(), NAN);
    add(forest, scores.data(), out.data(), n_threads);
    CHECK(out == expected);
    add(joined, scores.data(), out.data(), n_threads);
    CHECK(out == once);
  }
}

// The examples that reach a leaf are those it was grown from, and a forest adds the values of
// leaves.
void check_trees_of(const Table& table, const TreeData& data) {
  std::vector<std::vector<Derivatives>> by_label;
  for (const double share : {1.0, 0.5, 0.02, 0.0})
    by_label.push_back(random_derivatives(table.n_positions, share));
  const Examples examples(by_label, kPool);
  Stop stop(nullptr);
  const std::vector<GrownTree> trees =
      grow_trees(data, examples, kRules, nullptr, 7, kPool, 1, stop);
  const std::vector<GrownTree> again =
      grow_trees(data, examples, kRules, nullptr, 7, kPool, 3, stop);
  const auto n_labels = static_cast<int>(trees.size());
  CHECK(n_labels == 4 && trees[3].size() == 1 && trees[3][0].value == 0.0f);
  std::vector<double> expected(table.n_positions * n_labels, 0.25);
  for (int k = 0; k < n_labels; ++k) {
    CHECK(trees[k] == again[k]);
    std::vector<double> gradients(trees[k].size()), weights(trees[k].size());
    for (const Derivatives& d : examples.of_output(k)) {
      const int32_t leaf = walk(table, trees[k], d.position);
      gradients[leaf] += d.gradient;
      weights[leaf] += d.curvature;
    }
    for (size_t n = 0; n < trees[k].size(); ++n) {
      const TreeNode& node = trees[k][n];
      if (node.column >= 0) {
        CHECK(node.left > static_cast<int32_t>(n) && node.gain > 0.0f);
        continue;
      }
      CHECK_NEAR(node.weight, weights[n], 1e-5);
      CHECK_NEAR(node.value, -0.5 * gradients[n] / (weights[n] + 1.0), 1e-5);
      CHECK(trees[k].size() == 1 || weights[n] >= 0.5 - 1e-6);
    }
    for (int64_t t = 0; t < table.n_positions; ++t)
      expected[t * n_labels + k] += trees[k][walk(table, trees[k], t)].value;
  }
  check_forest(table, build_forest(trees), expected);
}

void check_table(const Table& table, int before, int after, int ancestors = 0) {
  context = std::to_string(table.n_positions) + " positions, " + std::to_string(table.n_dense) +
            "+" + std::to_string(table.n_attributes) + " columns, window " +
            std::to_string(before) + "+" + std::to_string(after) + ", ancestors " +
            std::to_string(ancestors);
  Stop stop(nullptr);
  const TreeData data(table.bins(), table.windows(before, after, ancestors), nullptr, 1, stop);
  check_lookups(table, data);
  check_histograms(table, data);
  check_trees_of(table, data);
}

TEST(random_tables) {
  const std::vector<std::vector<int64_t>> all_lengths{{}, {1}, {1, 3, 2}, {40, 1, 1, 600}};
  const std::vector<std::pair<int32_t, int32_t>> all_columns{{1, 0}, {0, 3}, {6, 0}, {6, 4}};
  for (const auto& lengths : all_lengths)
    for (const auto& [n_dense, n_attributes] : all_columns)
      for (const auto& [before, after] : {std::pair(0, 0), std::pair(2, 1), std::pair(0, 3)})
        for (const int ancestors : {0, 2})
          check_table(Table(lengths, n_dense, n_attributes), before, after, ancestors);
  check_table(Table({20000, 15000}, 2, 1), 1, 0);    // examples are counted in batches
  check_table(Table({40, 1, 9, 600}, 3, 2), 9, 11);  // and more offsets than are added at once
}

// Many entries among few slots are bits.
TEST(slot_bits) {
  for (const auto& [n_dense, most_bins] :
       {std::pair(44, 2), std::pair(100, 2), std::pair(160, 3)}) {
    const Table table({1, 300, 70}, n_dense, 0, most_bins);
    Stop stop(nullptr);
    const TreeData data(table.bins(), table.windows(0, 0), nullptr, 1, stop);
    CHECK((data.n_slot_words() > 0) == adds_eight_at_once());
    check_table(table, 0, 0);
  }
}

// So are those of windows, in one word or several; some windows end early.
TEST(window_bits) {
  for (const auto& [n_dense, before, after] :
       {std::tuple(4, 10, 10), std::tuple(5, 0, 20), std::tuple(7, 9, 11)}) {
    const Table table({1, 300, 12, 70}, n_dense, 0, 2);
    Stop stop(nullptr);
    const TreeData data(table.bins(), table.windows(before, after), nullptr, 1, stop);
    CHECK((data.n_slot_words() > 0) == adds_eight_at_once());
    check_table(table, before, after);
  }
}

// Threads share the work on one large tree.
TEST(one_tree_on_many_threads) {
  for (const auto& [n_dense, n_attributes] : {std::pair(12, 0), std::pair(4, 6)}) {
    const Table table({20000, 1, 9000}, n_dense, n_attributes);
    context = std::to_string(n_dense) + "+" + std::to_string(n_attributes) + " columns";
    Stop stop(nullptr);
    const TreeData data(table.bins(), table.windows(1, 1), nullptr, 3, stop);
    const Examples examples({random_derivatives(table.n_positions, 0.9)}, kPool);
    const auto grow = [&](int n_threads) {
      return grow_trees(data, examples, kRules, nullptr, 7, kPool, n_threads, stop);
    };
    const std::vector<GrownTree> alone = grow(1);
    CHECK(std::ssize(alone[0]) == 2 * kRules.max_leaves - 1);
    CHECK(grow(2) == alone && grow(7) == alone);
  }
}

// Features are drawn for each tree and for each node; what cannot be split stays a leaf.
TEST(growth_rules) {
  const Table table({300}, 6, 4);
  Stop stop(nullptr);
  const TreeData data(table.bins(), table.windows(1, 1), nullptr, 1, stop);
  const Examples examples({random_derivatives(300, 1.0)}, kPool);
  GrowthRules rules = kRules;
  rules.colsample_bytree = rules.colsample_bynode = 0.4;
  const GrownTree tree = grow_trees(data, examples, rules, nullptr, 7, kPool, 1, stop)[0];
  std::set<std::pair<int32_t, int32_t>> features;
  for (const TreeNode& node : tree)
    if (node.column >= 0) features.insert({node.column, node.offset});
  CHECK(tree.size() > 1 && features.size() <= 12);
  rules = kRules;
  rules.min_child_weight = 1e6;
  CHECK(grow_trees(data, examples, rules, nullptr, 7, kPool, 1, stop)[0].size() == 1);
  rules = kRules;
  rules.min_split_gain = 1e6;
  CHECK(grow_trees(data, examples, rules, nullptr, 7, kPool, 1, stop)[0].size() == 1);
}

// For all methods for missing values, children sum to their parent, threads change nothing, and
// forests equal their trees.
TEST(missing_values) {
  const Table table({200, 1, 60}, 6, 4);
  Stop stop(nullptr);
  const TreeData data(table.bins(), table.windows(1, 1), nullptr, 1, stop);
  const Examples examples(
      {random_derivatives(table.n_positions, 1.0), random_derivatives(table.n_positions, 0.6)},
      kPool);
  for (const MissingMethod method : {MissingMethod::kFractional, MissingMethod::kSurrogate,
                                     MissingMethod::kImpute, MissingMethod::kIndicator}) {
    GrowthRules rules = kRules;
    rules.missing.method = method;
    if (!rules.missing.leaves_out()) rules.missing.fills.assign(table.n_columns(), 1);
    const auto grow = [&](int n_threads) {
      return grow_trees(data, examples, rules, nullptr, 7, kPool, n_threads, stop);
    };
    const std::vector<GrownTree> trees = grow(1);
    CHECK(trees == grow(3));
    for (const GrownTree& tree : trees)
      for (const TreeNode& node : tree) {
        if (node.column < 0) continue;
        CHECK_NEAR(tree[node.left].weight + tree[node.left + 1].weight, node.weight,
                   1e-5 * node.weight);
        CHECK((node.fraction >= 0.0f) == (method == MissingMethod::kFractional));
        CHECK(node.surrogates.empty() || method == MissingMethod::kSurrogate);
      }
    const Forest forest = build_forest(trees);
    check_trees(forest.trees(), 2, table.n_columns());
    const Forest joined = Forest::join(2, {&forest, &forest});
    check_trees(joined.trees(), 2, table.n_columns());
    const auto n_scores = static_cast<size_t>(2 * table.n_positions);
    std::vector<double> once(n_scores, 0.0), twice(n_scores, 0.0);
    const auto add = [&](const Forest& trees, double* scores, int n_threads) {
      trees.add_scores(table.bins(), {std::ssize(table.offsets) - 1, table.offsets.data()}, scores,
                       scores, n_threads, stop);
    };
    for (int i = 0; i < 2; ++i) add(forest, once.data(), 1);
    add(joined, twice.data(), 3);
    CHECK(once == twice);
  }
}

// Values are monotone, columns of a branch belong to one group, and the checks detect violations.
TEST(column_rules) {
  const Table table({200, 1, 60}, 6, 4);
  Stop stop(nullptr);
  const TreeData data(table.bins(), table.windows(1, 1), nullptr, 1, stop);
  const int n_outputs = 5;
  std::vector<std::vector<Derivatives>> by_output;
  std::vector<int8_t> directions;
  for (int k = 0; k < n_outputs; ++k) {
    by_output.push_back(random_derivatives(table.n_positions, 1.0));
    for (int32_t c = 0; c < table.n_columns(); ++c)
      directions.push_back(static_cast<int8_t>(c % 3 == 2 ? 2 * below(2) : below(4) - 1));
  }
  const Examples examples(by_output, kPool);
  const std::vector<std::vector<int32_t>> groups{{0, 1, 3}, {1, 4, 6, 7}, {2, 5, 8, 9}};
  const std::vector<ColumnRules> all_rules{
      {10, directions, {}, 0}, {10, {}, groups, 0}, {10, {}, {}, 2}, {10, directions, groups, 0}};
  const auto grow = [&](const ColumnRules* rules, int n_threads) {
    return grow_trees(data, examples, kRules, rules, 7, kPool, n_threads, stop);
  };
  const TreeArrays free = build_forest(grow(nullptr, 1)).trees();
  for (const ColumnRules& rules : all_rules) {
    const std::vector<GrownTree> trees = grow(&rules, 1);
    CHECK(trees == grow(&rules, 3));
    CHECK(rules.are_kept(build_forest(trees).trees()) && !rules.are_kept(free));
    if (rules.n_outputs() < 0) continue;
    for (int k = 0; k < n_outputs; ++k) {
      Table moved = table;
      for (int64_t i = 0; i < table.n_positions * table.n_columns(); ++i) {
        const auto c = static_cast<int32_t>(i % table.n_columns());
        const int direction = rules.directions(k)[c];
        if (direction == kUnused || direction == kAnyWay || table.all[i] == 0) continue;
        const auto bin = table.all[i] + direction * static_cast<int>(below(3));
        moved.all[i] = static_cast<uint8_t>(std::clamp<int>(bin, 1, table.n_bins[c]));
      }
      bool rises = true;
      for (int64_t t = 0; t < table.n_positions; ++t)
        rises &=
            trees[k][walk(moved, trees[k], t)].value >= trees[k][walk(table, trees[k], t)].value;
      CHECK(rises);
    }
  }
  CHECK_THROWS(std::invalid_argument, ColumnRules(2, {0, 3}, {}, 0), "a direction is out of range");
  CHECK_THROWS(std::invalid_argument, ColumnRules(2, {}, {{0, 2}}, 0), "a column of a group");
  const ColumnRules other(11, {}, groups, 0), of_categories(10, std::vector<int8_t>(50, 1), {}, 0);
  CHECK_THROWS(std::invalid_argument, grow(&other, 1), "a different number of columns");
  CHECK_THROWS(std::invalid_argument, grow(&of_categories, 1), "must not have a direction");
}

// Arrays that are not valid trees are refused before anything is read.
TEST(damaged_trees) {
  const Table table({30}, 2, 1);
  Stop stop(nullptr);
  const TreeData data(table.bins(), table.windows(1, 1), nullptr, 1, stop);
  const Examples examples({random_derivatives(30, 1.0), random_derivatives(30, 1.0)}, kPool);
  const TreeArrays trees =
      build_forest(grow_trees(data, examples, kRules, nullptr, 0, kPool, 1, stop)).trees();
  const auto refuses = [&](auto change, const char* part) {
    TreeArrays arrays = trees;
    change(arrays);
    CHECK_THROWS(std::invalid_argument, check_trees(arrays, 2, table.n_columns()), part);
  };
  refuses([](TreeArrays& a) { a.tree_offsets[1] = int64_t{1} << 62; }, "tree 0: it has no nodes");
  refuses([](TreeArrays& a) { a.tree_offsets[1] = -1; }, "tree 0: it has no nodes");
  refuses([](TreeArrays& a) { a.tree_offsets[2] += 1; }, "trees do not begin at 0 and end at");
  refuses([](TreeArrays& a) { a.lefts[0] = 0; }, "children do not come after their parent");
  refuses([](TreeArrays& a) { a.lefts[0] = 1 << 30; }, "children do not come after their parent");
  refuses([](TreeArrays& a) { a.columns[0] = 3; }, "a column is out of range");
  refuses([](TreeArrays& a) { a.offsets[0] = 1 << 20; }, "an offset is out of range");
  refuses([](TreeArrays& a) { a.sets[0] = 1000; }, "a set of bins is out of range");
  refuses([](TreeArrays& a) { a.outputs[1] = 2; }, "tree 1: its output is out of range");
  refuses([](TreeArrays& a) { a.outputs.pop_back(); }, "every tree needs an output");
  refuses([](TreeArrays& a) { a.round_offsets.clear(); }, "rounds do not begin at 0");
  refuses([](TreeArrays& a) { a.round_offsets = {0, 5, 2}; }, "a round ends before it begins");
  refuses([](TreeArrays& a) { a.gains.pop_back(); }, "an entry for each node");
  refuses([](TreeArrays& a) { a.values[1] = NAN; }, "a value is not finite");
}

}  // namespace
}  // namespace hedgerow::tests
