// The inverse Hessian of L-BFGS: its product with a gradient, from the last few steps.
#pragma once

#include <cstdint>
#include <deque>

#include "large_vector.hpp"
#include "parallel.hpp"

namespace hedgerow {

// Keeps steps and changes of the gradient in single precision, which is enough for a model of the
// curvature and takes half the memory; sums are in double precision.
class InverseHessian {
 public:
  // A step, and the change of the gradient. (n_weights,) each
  struct Pair {
    LargeVector<float> step;
    LargeVector<float> change;
    double curvature;  // step . change
    double squared;    // change . change
  };

  // memory: how many steps to remember, at least 1.
  InverseHessian(int64_t n_weights, int memory);

  int64_t n_weights() const { return n_weights_; }

  // Stores a step, size * direction, and the change of the gradient, and drops the oldest. Steps
  // without positive curvature are skipped: they would make the model indefinite. Arrays:
  // (n_weights,)
  struct Step {
    const double* direction;
    double size;
    const double* gradient_before;
    const double* gradient_after;

    double step(int64_t i) const { return size * direction[i]; }
    double change(int64_t i) const { return gradient_after[i] - gradient_before[i]; }
  };
  void push(const Step& step, int n_threads, Stop& stop);
  void clear() { pairs_.clear(); }
  // Drops the oldest step if the memory is full, for callers that need its memory before the next
  // push, which must not be a step that is skipped.
  void make_room() {
    if (is_full()) pairs_.pop_front();
  }
  bool is_empty() const { return pairs_.empty(); }

  // The stored pairs, the oldest first; and restoring them.
  const std::deque<Pair>& pairs() const { return pairs_; }
  void restore(std::deque<Pair> pairs);

  // direction = -H gradient, by the two-loop recursion (Nocedal 1980); -gradient if no steps are
  // stored. All: (n_weights,)
  void fill_direction(const double* gradient, double* direction, int n_threads, Stop& stop) const;

 private:
  bool is_full() const { return pairs_.size() == memory_; }

  int64_t n_weights_;
  size_t memory_;
  std::deque<Pair> pairs_;
};

}  // namespace hedgerow
