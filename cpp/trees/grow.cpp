#include "trees/grow.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "random.hpp"
#include "require.hpp"
#include "trees/grower.hpp"

namespace hedgerow {
namespace {

void check_column_rules(const TreeData& data, const ColumnRules& rules, int n_outputs) {
  require(rules.n_columns() == data.bins().n_columns(),
          "column rules are for a different number of columns");
  if (rules.n_outputs() < 0) return;
  require(rules.n_outputs() == n_outputs, "column rules are for a different number of outputs");
  for (int output = 0; output < n_outputs; ++output)
    for (int32_t c = 0; c < rules.n_columns(); ++c) {
      const int8_t direction = rules.directions(output)[c];
      require(!data.bins().categorical[c] || direction == kAnyWay || direction == kUnused,
              "a column of categories must not have a direction");
    }
}

void check_fills(const TreeData& data, const std::vector<uint8_t>& fills) {
  if (fills.empty()) return;
  const BinTable& bins = data.bins();
  require(std::ssize(fills) == bins.n_columns(), "fills are for a different number of columns");
  for (int32_t c = 0; c < bins.n_columns(); ++c)
    require(fills[c] >= 1 && fills[c] <= bins.n_bins[c], "a fill is not a bin of its column");
}

int64_t n_rows(const Examples& examples, int output) {
  return std::ssize(examples.of_output(output));
}
int64_t n_rows(const ContextExamples& examples, int output) { return examples.n_rows(output); }

// Uses only as many threads as have enough work, since starting one takes time.
template <class AnyExamples>
int limit_threads(const TreeData& data, const AnyExamples& examples, int n_threads) {
  constexpr int64_t kAdditions = 1 << 15;
  int64_t n_examples = 0;
  for (int k = 0; k < examples.n_outputs(); ++k) n_examples += n_rows(examples, k);
  const int64_t per_example = 1 + data.n_full_additions() + data.n_sparse_additions();
  return static_cast<int>(std::min<int64_t>(n_threads, 1 + n_examples * per_example / kAdditions));
}

// Trees of the outputs from `first` on.
template <class AnyExamples>
std::vector<GrownTree> grow_all(const TreeData& data, const AnyExamples& examples, int first,
                                const GrowthRules& rules, const ColumnRules* column_rules,
                                uint64_t key, const std::shared_ptr<MemoryPool>& pool,
                                int n_threads, Stop& stop) {
  if (column_rules != nullptr) check_column_rules(data, *column_rules, examples.n_outputs());
  check_fills(data, rules.missing.fills);
  // The largest first, so that no thread starts a long one at the end.
  std::vector<int> order(examples.n_outputs() - first);
  std::iota(order.begin(), order.end(), first);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return n_rows(examples, a) > n_rows(examples, b); });
  std::vector<GrownTree> trees(examples.n_outputs());
  Crew crew(limit_threads(data, examples, n_threads), stop);
  GrowerPool growers([&] {
    return std::make_unique<Grower>(data, rules, column_rules, examples.unit_bits(), pool, growers,
                                    crew, stop);
  });
  crew.run(std::ssize(order), [&] {
    return [&](int64_t i) {
      const int output = order[i];
      std::unique_ptr<Grower> grower = growers.take();
      trees[output] =
          grower->grow(examples, output, derive_key(key, static_cast<uint64_t>(output)));
      growers.give_back(std::move(grower));
    };
  });
  return trees;
}

}  // namespace

std::vector<GrownTree> grow_trees(const TreeData& data, const Examples& examples,
                                  const GrowthRules& rules, const ColumnRules* column_rules,
                                  uint64_t key, const std::shared_ptr<MemoryPool>& pool,
                                  int n_threads, Stop& stop) {
  const int first = examples.is_opposite() ? 1 : 0;
  std::vector<GrownTree> trees =
      grow_all(data, examples, first, rules, column_rules, key, pool, n_threads, stop);
  if (examples.is_opposite()) trees[0] = negate(trees[1]);
  return trees;
}

std::vector<GrownTree> grow_trees(const TreeData& data, const ContextExamples& examples,
                                  const GrowthRules& rules, const ColumnRules* column_rules,
                                  uint64_t key, const std::shared_ptr<MemoryPool>& pool,
                                  int n_threads, Stop& stop) {
  return grow_all(data, examples, 0, rules, column_rules, key, pool, n_threads, stop);
}

}  // namespace hedgerow
