// The inverse Hessian as L-BFGS knows it: by its effect on a gradient, from the last few steps.
#pragma once

#include <cstdint>
#include <deque>

#include "large_vector.hpp"
#include "parallel.hpp"

namespace hedgerow {

// Keeps steps and changes of the gradient in single precision, which is enough for a model of the
// curvature, and half the memory; sums are in double precision.
class InverseHessian {
 public:
  // A step, and how the gradient changed over it. (n_weights,) each
  struct Pair {
    LargeVector<float> step;
    LargeVector<float> change;
    double curvature;  // step . change
    double squared;    // change . change
  };

  // memory: how many steps to remember, at least 1.
  InverseHessian(int64_t n_weights, int memory);

  int64_t n_weights() const { return n_weights_; }

  // Remembers a step, size * direction, and how the gradient changed over it, forgetting the
  // oldest. Steps along which the gradient does not rise are left out: they would make the model
  // indefinite. Arrays: (n_weights,)
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
  // Forgets the oldest step if there is no room for another: for who needs its memory before the
  // next push, which will not be of a step that is left out.
  void make_room() {
    if (is_full()) pairs_.pop_front();
  }
  bool is_empty() const { return pairs_.empty(); }

  // What is remembered, the oldest first; and to remember just that.
  const std::deque<Pair>& pairs() const { return pairs_; }
  void restore(std::deque<Pair> pairs);

  // direction = -H gradient, by the two-loop recursion (Nocedal 1980); -gradient when nothing is
  // remembered. All: (n_weights,)
  void fill_direction(const double* gradient, double* direction, int n_threads, Stop& stop) const;

 private:
  bool is_full() const { return pairs_.size() == memory_; }

  int64_t n_weights_;
  size_t memory_;
  std::deque<Pair> pairs_;
};

}  // namespace hedgerow
