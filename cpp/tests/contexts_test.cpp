// Trees that split on previous labels: the same ones on any number of threads, and what they add
// against a walk by hand.
#include <cstdint>
#include <memory>
#include <vector>

#include "parallel.hpp"
#include "tests/check.hpp"
#include "trees/context_forest.hpp"
#include "trees/grow.hpp"

namespace hedgerow::tests {
namespace {

const auto kPoolOfContexts = std::make_shared<MemoryPool>();
constexpr int kLabels = 3;

// Edge j * K + k leads from label j to label k.
Contexts make_pairs() {
  std::vector<int32_t> outputs;
  std::vector<uint8_t> before;
  for (int e = 0; e < kLabels * kLabels; ++e) {
    outputs.push_back(e % kLabels);
    before.push_back(static_cast<uint8_t>(1 + e / kLabels));
  }
  return Contexts(kLabels, outputs, 1, before);
}

// Two columns of random bins, gradients and probabilities.
struct Problem {
  std::vector<int64_t> offsets{0};
  std::vector<uint8_t> dense;
  std::vector<int32_t> n_bins{5, 4};
  std::vector<uint8_t> categorical{0, 1};
  std::vector<double> gradients;
  std::vector<double> probabilities;
  std::vector<float> curvatures;
  std::vector<int32_t> codes;

  Problem(int64_t n_sequences, int64_t length) {
    for (int64_t s = 0; s < n_sequences; ++s) offsets.push_back(offsets.back() + length);
    for (int64_t t = 0; t < offsets.back(); ++t) {
      for (const int32_t n : n_bins) dense.push_back(static_cast<uint8_t>(below(n + 1)));
      for (int e = 0; e < kLabels * kLabels; ++e) {
        gradients.push_back(uniform(-1, 1));
        probabilities.push_back(uniform(0, 0.2));
      }
      curvatures.push_back(static_cast<float>(uniform(0, 2)));
      codes.push_back(static_cast<int32_t>(below(kLabels)));
    }
  }

  int64_t n_sequences() const { return std::ssize(offsets) - 1; }
  BinTable bins() const {
    return {.n_positions = offsets.back(),
            .n_dense = 2,
            .n_attributes = 0,
            .dense = dense.data(),
            .entry_offsets = nullptr,
            .attributes = nullptr,
            .attribute_bins = nullptr,
            .n_bins = n_bins.data(),
            .default_bins = nullptr,
            .categorical = categorical.data()};
  }

  std::vector<GrownTree> grow(bool newton, int n_threads) const {
    Stop stop(nullptr);
    const TreeData data(bins(), {{n_sequences(), offsets.data()}, {1, 1}}, nullptr, n_threads,
                        stop);
    ContextExamples examples(make_pairs(), offsets.back());
    Sampling sampling{0.5, nullptr, nullptr, 1.0, codes.data(), 7};
    sampling.share = 0.9;
    examples.add({0, offsets.back(), n_sequences(), offsets.data(), gradients.data(),
                  newton ? probabilities.data() : nullptr, curvatures.data()},
                 sampling, n_threads, stop);
    examples.draw(sampling, n_threads, stop);
    const GrowthRules rules{12, 6, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0};
    return grow_trees(data, examples, rules, nullptr, 3, kPoolOfContexts, n_threads, stop);
  }
};

double value_of(const GrownTree& tree, const Problem& problem, int64_t sequence, int64_t t,
                uint8_t before) {
  int32_t at = 0;
  while (tree[at].column >= 0) {
    const TreeNode& node = tree[at];
    const int64_t place = t + node.offset;
    const bool is_there =
        place >= problem.offsets[sequence] && place < problem.offsets[sequence + 1];
    const bool asks_label = node.column >= 2;
    bool left = node.outside_left;
    if (asks_label || is_there)
      left = contains(node.left_bins, asks_label ? before : problem.dense[place * 2 + node.column]);
    at = node.left + !left;
  }
  return tree[at].value;
}

void check_context_scores(const Problem& problem, const std::vector<GrownTree>& trees) {
  Stop stop(nullptr);
  const ContextForest forest(build_forest(trees), make_pairs(), 2);
  const int64_t n = problem.offsets.back();
  std::vector<double> nodes(n * kLabels);
  std::vector<float> edges(n * kLabels * kLabels);
  forest.add_scores(problem.bins(), {problem.n_sequences(), problem.offsets.data()},
                    {nodes.data(), edges.data(), nodes.data(), edges.data()}, 3, stop);
  for (int64_t s = 0; s < problem.n_sequences(); ++s)
    for (int64_t t = problem.offsets[s]; t < problem.offsets[s + 1]; ++t)
      for (int k = 0; k < kLabels; ++k) {
        if (t == problem.offsets[s]) {
          CHECK_NEAR(nodes[t * kLabels + k], value_of(trees[k], problem, s, t, 0), 1e-6);
          continue;
        }
        for (int j = 0; j < kLabels; ++j) {
          const double sum = nodes[t * kLabels + k] + edges[(t * kLabels + j) * kLabels + k];
          const auto before = static_cast<uint8_t>(j + 1);
          CHECK_NEAR(sum, value_of(trees[k], problem, s, t, before), 1e-6);
        }
      }
}

}  // namespace

TEST(trees_of_contexts) {
  for (const bool newton : {true, false}) {
    const Problem problem(60, 9);
    const std::vector<GrownTree> trees = problem.grow(newton, 1);
    for (const int n_threads : {2, 5}) CHECK(problem.grow(newton, n_threads) == trees);
    bool asks_labels = false;
    for (const GrownTree& tree : trees)
      for (const TreeNode& node : tree) asks_labels |= node.column >= 2;
    CHECK(asks_labels);
    check_context_scores(problem, trees);
  }
}

TEST(contexts_in_pieces) {
  const Problem problem(40, 600);
  CHECK(problem.grow(true, 4) == problem.grow(true, 1));
}

}  // namespace hedgerow::tests
