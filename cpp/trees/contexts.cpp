#include "trees/contexts.hpp"

#include <algorithm>
#include <cmath>

#include "require.hpp"

namespace hedgerow {

Contexts::Contexts(int n_outputs, std::span<const int32_t> outputs, int n_lags,
                   std::span<const uint8_t> labels)
    : n_outputs_(n_outputs),
      n_lags_(n_lags),
      n_edges_(std::ssize(outputs)),
      are_pairs_(true),
      outputs_(outputs.begin(), outputs.end()),
      contexts_(outputs.size()),
      edges_(n_outputs),
      labels_(n_outputs) {
  require(n_outputs <= 255, "there are more than 255 labels");
  require(n_edges_ >= n_outputs, "there are fewer edges than labels");
  require(labels.size() == outputs.size() * n_lags, "an edge lacks labels");
  for (int64_t e = 0; e < n_edges_; ++e) {
    require(outputs[e] < n_outputs, "an edge leads to no label");
    are_pairs_ &= outputs[e] == e % n_outputs;
    if (outputs[e] < 0) continue;
    contexts_[e] = static_cast<int32_t>(edges_[outputs[e]].size());
    edges_[outputs[e]].push_back(static_cast<int32_t>(e));
    for (int lag = 0; lag < n_lags; ++lag) {
      const uint8_t label = labels[e * n_lags + lag];
      require(label <= n_outputs, "a label of a context is out of range");
      labels_[outputs[e]].push_back(label);
    }
  }
  for (int output = 0; output < n_outputs; ++output) {
    edges_[output].push_back(output);
    labels_[output].resize(labels_[output].size() + n_lags, 0);
  }
}

void Contexts::sum_sizes(const double* edges, std::span<double> sums) const {
  std::fill(sums.begin(), sums.end(), 0.0);
  if (are_pairs_) {
    double* out = sums.data();
    for (int64_t first = 0; first < n_edges_; first += n_outputs_)
      for (int k = 0; k < n_outputs_; ++k) out[k] += std::abs(edges[first + k]);
    return;
  }
  for (int k = 0; k < n_outputs_; ++k)
    for (size_t c = 0; c + 1 < edges_[k].size(); ++c) sums[k] += std::abs(edges[edges_[k][c]]);
}

}  // namespace hedgerow
