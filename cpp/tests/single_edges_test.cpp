// Forward-backward of training in single precision, compared with double precision.
#include "trellis/single_edges.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/batch.hpp"
#include "tests/by_label.hpp"
#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

// All that training wants.
struct Wanted {
  Posteriors posteriors;
  ByLabel by_label;
  std::vector<float> node_gammas, edge_gammas;
  std::vector<double> curvature;
};

// single: whether the edges are floats
Wanted measure_single(const Batch& batch, bool single, double trim, int n_threads) {
  Wanted found{of_first_order(Posteriors(batch), batch), ByLabel(batch, trim),
               std::vector<float>(batch.n_positions()), std::vector<float>(batch.n_positions()),
               std::vector<double>(batch.n_labels() * batch.n_labels())};
  found.posteriors.pairs.clear();
  found.by_label.out.probs = found.by_label.probs.data();
  found.by_label.out.labels = found.by_label.labels.data();
  found.by_label.out.observed = found.by_label.observed.data();
  const std::vector<float> edges(batch.edges.begin(), batch.edges.end());
  ChainScores scores = batch.chain();
  if (single) {
    scores.edges = nullptr;
    scores.single_edges = edges.data();
  }
  const double bound = 4.0 * static_cast<double>(batch.n_positions());
  const MixingBounds mixing{found.node_gammas.data(), found.edge_gammas.data(),
                            found.curvature.data(), batch.weights.data(), bound};
  ChainPosteriors out = pointers_to(found.posteriors, scores);
  out.weights = batch.weights.data();
  out.mixing = &mixing;
  out.bound = bound;
  out.by_label = &found.by_label.out;
  Stop stop(nullptr);
  fill_posteriors(scores, found.by_label.labels.data(), out, n_threads, stop);
  return found;
}

template <class Numbers>
void check_all_near(const Numbers& found, const Numbers& expected, double relative,
                    double absolute) {
  CHECK(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    CHECK_NEAR(found[i], expected[i], relative * std::abs(expected[i]) + absolute);
}

void check_rows_by_label(const Batch& batch, const Wanted& found, const Wanted& expected) {
  const int64_t n = batch.n_labels();
  for (int64_t s = 0; s < batch.n_sequences(); ++s)
    for (int64_t t = batch.offsets[s]; t < batch.offsets[s + 1]; ++t) {
      if (t > batch.offsets[s])
        CHECK_NEAR(found.by_label.observed[t], expected.by_label.observed[t], 3e-6);
      for (int64_t k = 0; k < n; ++k) {
        const double marginal = found.posteriors.marginals[t * n + k];
        if (!found.by_label.out.wants(t, k, marginal)) continue;
        for (int64_t j = 0; j <= n; ++j)
          CHECK_NEAR(found.by_label.out.at(t, k, n)[j], expected.by_label.out.at(t, k, n)[j], 3e-6);
      }
    }
}

Batch single_batch(int n_labels, const std::vector<int64_t>& lengths, const Kind& kind) {
  Batch batch = first_order(n_labels, lengths, kind);
  for (double& edge : batch.edges) edge = static_cast<float>(edge);
  return batch;
}

// Where scores lie far apart, or arcs are forbidden, it is in double precision after all.
TEST(single_edges) {
  for (const int n_labels : {9, 16, 26, 31, 32, 33, 65})
    for (const double spread : {0.0, 2.0, 9.0, 13.0, 60.0})
      for (const double holes : {0.0, 0.2}) {
        const Kind kind{spread, holes, true};
        context = describe(n_labels, kind);
        const Batch batch = single_batch(n_labels, {6, 1, 0, 40, 2}, kind);
        const Wanted found = measure_single(batch, true, 0.05, 1);
        const Wanted expected = measure_single(batch, false, 0.05, 1);
        check_all_near(found.posteriors.log_z, expected.posteriors.log_z, 1e-8, 1e-6);
        check_all_near(found.posteriors.log_likelihoods, expected.posteriors.log_likelihoods, 1e-8,
                       1e-6);
        check_all_near(found.posteriors.marginals, expected.posteriors.marginals, 1e-5, 1e-12);
        check_all_near(found.posteriors.arc_sums, expected.posteriors.arc_sums, 1e-5, 1e-12);
        check_all_near(found.node_gammas, expected.node_gammas, 1e-5, 1e-5);
        check_all_near(found.edge_gammas, expected.edge_gammas, 1e-5, 1e-5);
        check_all_near(found.curvature, expected.curvature, 1e-3, 1e-6);
        check_rows_by_label(batch, found, expected);
      }
}

TEST(single_edges_by_threads) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 70; ++i) lengths.push_back(i % 23);
  const Batch batch = single_batch(11, lengths, {3, 0, true});
  const Wanted one = measure_single(batch, true, 0.0, 1);
  for (const int n_threads : {2, 5}) {
    const Wanted other = measure_single(batch, true, 0.0, n_threads);
    CHECK(other.posteriors == one.posteriors);
    CHECK(other.curvature == one.curvature);
    CHECK(other.node_gammas == one.node_gammas);
  }
}

}  // namespace
}  // namespace hedgerow::tests
