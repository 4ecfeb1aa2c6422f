#include "objectives/accuracy.hpp"

#include <algorithm>
#include <cmath>

namespace hedgerow {
namespace {

constexpr int64_t kPositionsPerCheck = 4096;  // positions

// The probability of the most probable label other than `label`; 0 if there is no other.
double find_rival(const double* p, int n_labels, int label) {
  double largest = 0.0;
  for (int k = 0; k < n_labels; ++k)
    if (k != label && p[k] > largest) largest = p[k];
  return largest;
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// visit(position, label, probability of the rival, margin) for every position that counts.
template <class Visit>
void for_each_margin(const LabelledMarginals& table, Stop& stop, Visit visit) {
  for (int64_t t = 0; t < table.n_positions; ++t) {
    if (t % kPositionsPerCheck == 0) stop.check();
    const int32_t label = table.labels[t];
    if (label < 0 || table.weights[t] == 0.0) continue;
    const double* p = table.marginals + t * table.n_labels;
    const double rival = find_rival(p, table.n_labels, label);
    visit(t, label, rival, p[label] - rival);
  }
}

}  // namespace

void fill_accuracy_terms(const LabelledMarginals& table, double sharpness, double* terms,
                         Stop& stop) {
  std::fill(terms, terms + table.n_positions, 0.0);
  for_each_margin(table, stop, [&](int64_t t, int, double, double margin) {
    terms[t] = table.weights[t] * sigmoid(sharpness * margin);
  });
}

void fill_accuracy_gradient(const LabelledMarginals& table, double sharpness, double* gradient,
                            Stop& stop) {
  std::fill(gradient, gradient + table.n_positions * table.n_labels, 0.0);
  for_each_margin(table, stop, [&](int64_t t, int label, double rival, double margin) {
    // Q' = sharpness * Q (1 - Q), and 1 - Q(x) = Q(-x)
    const double slope =
        table.weights[t] * sharpness * sigmoid(sharpness * margin) * sigmoid(-sharpness * margin);
    const double* p = table.marginals + t * table.n_labels;
    double* row = gradient + t * table.n_labels;
    int n_rivals = 0;
    for (int k = 0; k < table.n_labels; ++k) n_rivals += k != label && p[k] == rival;
    for (int k = 0; k < table.n_labels; ++k)
      if (k != label && p[k] == rival) row[k] = -slope / n_rivals;
    row[label] = slope;
  });
}

}  // namespace hedgerow
