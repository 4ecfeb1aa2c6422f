#include "trees/shared_growth.hpp"

#include <algorithm>
#include <utility>

#include "random.hpp"
#include "require.hpp"

namespace hedgerow {

SharedGrowth::SharedGrowth(const TreeData& data, const Examples& examples, const GrowthRules& rules,
                           const ColumnRules* column_rules, uint64_t key,
                           std::span<const Magnitudes> magnitudes,
                           const std::shared_ptr<MemoryPool>& pool, int n_threads, Stop& stop)
    : data_(data),
      rules_(rules),
      column_rules_(column_rules),
      unit_bits_(examples.unit_bits()),
      pool_(pool),
      is_opposite_(examples.is_opposite()),
      trees_(examples.n_outputs() - (is_opposite_ ? 1 : 0)) {
  require(std::ssize(magnitudes) == examples.n_outputs(),
          "magnitudes must have an entry for each output");
  const int first = is_opposite_ ? 1 : 0;
  for_each_tree(n_threads, stop, [&](Grower& grower, SharedTree& tree) {
    const int output = first + static_cast<int>(&tree - trees_.data());
    tree = grower.plant_shared(examples, output, derive_key(key, static_cast<uint64_t>(output)),
                               choose_units(magnitudes.subspan(output, 1), unit_bits_));
  });
}

template <class Task>
void SharedGrowth::for_each_tree(int n_threads, Stop& stop, const Task& task) {
  Crew crew(n_threads, stop);
  GrowerPool growers([&] {
    return std::make_unique<Grower>(data_, rules_, column_rules_, unit_bits_, pool_, growers, crew,
                                    stop);
  });
  crew.run(std::ssize(trees_), [&] {
    return [&](int64_t i) {
      std::unique_ptr<Grower> grower = growers.take();
      task(*grower, trees_[i]);
      growers.give_back(std::move(grower));
    };
  });
}

std::vector<int64_t> SharedGrowth::propose(int n_threads, Stop& stop) {
  for_each_tree(n_threads, stop, [](Grower& grower, SharedTree& tree) { grower.advance(tree); });
  std::vector<int64_t> sums;
  for (const SharedTree& tree : trees_)
    sums.insert(sums.end(), tree.counted.begin(), tree.counted.end());
  return sums;
}

void SharedGrowth::accept(std::span<const int64_t> sums, int n_threads, Stop& stop) {
  size_t n_sums = 0;
  for (SharedTree& tree : trees_) {
    const size_t size = tree.counted.size();
    require(n_sums + size <= sums.size(), "fewer sums were accepted than proposed");
    std::copy_n(sums.begin() + static_cast<std::ptrdiff_t>(n_sums), size, tree.counted.begin());
    n_sums += size;
  }
  require(n_sums == sums.size(), "more sums were accepted than proposed");
  for_each_tree(n_threads, stop, [](Grower& grower, SharedTree& tree) { grower.accept(tree); });
}

std::vector<GrownTree> SharedGrowth::take() {
  std::vector<GrownTree> grown;
  for (SharedTree& tree : trees_)
    grown.push_back(Grower::grows_by_level(rules_) ? renumber(tree.tree.nodes)
                                                   : std::move(tree.tree.nodes));
  if (is_opposite_) grown.insert(grown.begin(), negate(grown[0]));
  return grown;
}

}  // namespace hedgerow
