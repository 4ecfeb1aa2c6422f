// Forward-backward of training in single precision, compared with double precision.
#include "trellis/single_edges.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
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

// Calls measure(scores, out) with places for all results. single: whether the edges are floats
template <class Measure>
Wanted measure_into(const Batch& batch, bool single, double trim, Measure measure) {
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
  measure(scores, out);
  return found;
}

Wanted measure_single(const Batch& batch, bool single, double trim, int n_threads) {
  return measure_into(batch, single, trim, [&](const ChainScores& scores, ChainPosteriors& out) {
    Stop stop(nullptr);
    fill_posteriors(scores, out.by_label->labels, out, n_threads, stop);
  });
}

// sixteen_at_once: see SingleEdges
Wanted measure_by_width(const Batch& batch, bool sixteen_at_once) {
  return measure_into(batch, true, 0.05, [&](const ChainScores& scores, ChainPosteriors& out) {
    SingleEdges single(scores, out, sixteen_at_once);
    for (int64_t s = 0; s < scores.n_sequences; ++s) {
      const bool done = single.fill(s, out.by_label->labels + scores.offsets[s]);
      CHECK(done || kLowLimits);  // under sanitizers some sequences are too long
      if (!done) continue;
      out.log_z[s] = single.log_z();
      out.log_likelihoods[s] = single.log_likelihood();
    }
    std::fill_n(out.pair_sums, scores.n_labels * scores.n_labels, 0.0);
    single.add_tables(out.pair_sums, out.mixing->pair_curvature);
  });
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

// Also where nothing was written.
template <class Numbers>
bool have_same_bits(const Numbers& a, const Numbers& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
}

// Results must not depend on the processor.
TEST(single_edges_same_bits_for_any_width) {
  if (!adds_eight_at_once()) return;
  for (const int n_labels : {8, 9, 15, 16, 17, 26, 32, 33, 41, 65, 97}) {
    const Kind kind{2.0, 0.0, true};
    context = describe(n_labels, kind);
    const Batch batch = single_batch(n_labels, {6, 1, 40, 2}, kind);
    const Wanted wide = measure_by_width(batch, true), narrow = measure_by_width(batch, false);
    CHECK(have_same_bits(wide.posteriors.marginals, narrow.posteriors.marginals));
    CHECK(have_same_bits(wide.posteriors.arc_sums, narrow.posteriors.arc_sums));
    CHECK(have_same_bits(wide.posteriors.log_z, narrow.posteriors.log_z));
    CHECK(have_same_bits(wide.posteriors.log_likelihoods, narrow.posteriors.log_likelihoods));
    CHECK(have_same_bits(wide.by_label.probs, narrow.by_label.probs));
    CHECK(have_same_bits(wide.by_label.observed, narrow.by_label.observed));
    CHECK(wide.node_gammas == narrow.node_gammas);
    CHECK(wide.edge_gammas == narrow.edge_gammas);
    CHECK(wide.curvature == narrow.curvature);
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
