#include "trees/context_rows.hpp"

#include <algorithm>
#include <bit>

#include "simd.hpp"
#include "simd_float.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kRowsToRound = 256;  // by one thread

constexpr int64_t kRowsAhead = 8;  // that are read soon
constexpr int kFewContexts = 8;    // a row is a cache line or two, and the next rows follow it

// Some rows of ContextExamples.
struct RowNumbers {
  const ContextRow* rows;
  const float* gradients;      // null where they are shared
  const float* probabilities;  // null where a row's curvature is that of each context
  bool are_by_position;        // the probabilities, of all positions
};

// Whole units of the gradients and curvatures of n_rows rows, empty where there is no gradient; and
// their sum, row by row. kContexts: their number where it is known to the compiler, otherwise 0.
template <int kContexts>
HEDGEROW_INLINE void round_any_rows(const RowNumbers& numbers, int64_t n_rows, int any_contexts,
                                    Units units, Sum* HEDGEROW_RESTRICT sums,
                                    Sum* HEDGEROW_RESTRICT totals) {
  const int n_contexts = kContexts > 0 ? kContexts : any_contexts;
  const float *gradients = numbers.gradients, *probabilities = numbers.probabilities;
  for (int64_t row = 0; row < n_rows; ++row, sums += n_contexts) {
    const ContextRow& own = numbers.rows[row];
    if (kContexts == 0 && numbers.are_by_position) {
      const auto at = [&](int64_t i) {
        return numbers.probabilities + int64_t{numbers.rows[i].position} * n_contexts;
      };
      probabilities = at(row);
      prefetch_row(at(std::min(row + kRowsAhead, n_rows - 1)), n_contexts);
    }
    uint64_t total = 0;  // of sums, which are words
    const auto round = [&](int c, float gradient, float curvature) {
      const uint64_t kept = gradient != 0.0f ? ~uint64_t{0} : 0;
      const uint64_t sum = kept & std::bit_cast<uint64_t>(units.round({0, gradient, curvature}));
      sums[c] = std::bit_cast<Sum>(sum);
      total += sum;
    };
    const auto curvature_at = [&](int c) {
      return own.curvature * (probabilities[c] * (1.0f - probabilities[c]));
    };
    if (probabilities == nullptr) {
      for (int c = 0; c < n_contexts; ++c) round(c, gradients[c], own.curvature);
    } else if (gradients != nullptr) {
      for (int c = 0; c < n_contexts; ++c) round(c, gradients[c], curvature_at(c));
    } else {
      for (int c = 0; c < n_contexts; ++c) round(c, probabilities[c], curvature_at(c));
      if (own.observed >= 0) {
        total -= std::bit_cast<uint64_t>(sums[own.observed]);
        round(own.observed, own.observed_gradient, curvature_at(own.observed));
      }
    }
    if (gradients != nullptr) gradients += n_contexts;
    if (probabilities != nullptr) probabilities += n_contexts;
    totals[row] = std::bit_cast<Sum>(total);
  }
}

// Loops over the contexts of two or three labels are too short unless they are unrolled.
HEDGEROW_CLONES void round_rows(const RowNumbers& numbers, int64_t n_rows, int n_contexts,
                                Units units, Sum* sums, Sum* totals) {
  if (n_contexts == 3)
    round_any_rows<3>(numbers, n_rows, 3, units, sums, totals);
  else if (n_contexts == 4)
    round_any_rows<4>(numbers, n_rows, 4, units, sums, totals);
  else
    round_any_rows<0>(numbers, n_rows, n_contexts, units, sums, totals);
}

// by_context[c] += sums[row_of[t] * n + c] for all positions t.
template <class AnySum>
HEDGEROW_INLINE void add_any_rows(std::span<const int32_t> positions, const int32_t* row_of,
                                  const Sum* sums, int n, AnySum* by_context) {
  const auto at = [&](int64_t i) { return sums + int64_t{row_of[positions[i]]} * n; };
  for (int64_t i = 0; i < std::ssize(positions); ++i) {
    const Sum* row = at(i);
    if (n > kFewContexts) prefetch_row(at(std::min(i + kRowsAhead, std::ssize(positions) - 1)), n);
    for (int c = 0; c < n; ++c) by_context[c] += row[c];
  }
}

// Templates have no clones.
HEDGEROW_CLONES void add_rows(std::span<const int32_t> positions, const int32_t* row_of,
                              const Sum* sums, int n, Sum* by_context) {
  add_any_rows(positions, row_of, sums, n, by_context);
}
HEDGEROW_CLONES void add_rows(std::span<const int32_t> positions, const int32_t* row_of,
                              const Sum* sums, int n, WideSum* by_context) {
  add_any_rows(positions, row_of, sums, n, by_context);
}

}  // namespace

ContextRows::ContextRows(const ContextExamples& examples, int output,
                         const std::shared_ptr<MemoryPool>& pool, int64_t n_positions, Crew& crew)
    : contexts_(examples.contexts()),
      output_(output),
      n_contexts_(contexts_.n_contexts(output)),
      has_probabilities_(examples.has_probabilities()),
      are_by_position_(examples.are_by_position()),
      rows_(examples.rows(output)),
      probabilities_(examples.probabilities(output)),
      row_of_(pool, n_positions),
      units_(choose_units(examples.magnitudes(output), examples.unit_bits())),
      sums_(pool, rows_.size() * n_contexts_),
      totals_(pool, rows_.size()) {
  const std::span<const float> gradients = examples.gradients(output);
  crew.share_pieces(n_rows(), kRowsToRound, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) row_of_[position(row)] = static_cast<int32_t>(row);
    const int64_t at = begin * n_contexts_;
    const RowNumbers numbers{
        rows_.data() + begin, gradients.empty() ? nullptr : gradients.data() + at,
        probabilities_.empty() ? nullptr : probabilities_.data() + (are_by_position_ ? 0 : at),
        are_by_position_};
    round_rows(numbers, end - begin, n_contexts_, units_, sums_.data() + at,
               totals_.data() + begin);
  });
}

template <class AnySum>
void ContextRows::add_to(std::span<const int32_t> positions, std::span<const int32_t> contexts,
                         AnySum* by_context) const {
  if (std::ssize(contexts) == n_contexts_)
    return add_rows(positions, row_of_.data(), sums_.data(), n_contexts_, by_context);
  // Several at a time are added about as fast as one: where there are many, all are.
  constexpr int kAtATime = 4;
  if (std::ssize(contexts) * kAtATime > n_contexts_) {
    std::vector<AnySum> all(n_contexts_);
    add_rows(positions, row_of_.data(), sums_.data(), n_contexts_, all.data());
    for (const int32_t c : contexts) by_context[c] += all[c];
    return;
  }
  for (const int32_t position : positions) {
    const Sum* sums = sums_.data() + static_cast<int64_t>(row_of_[position]) * n_contexts_;
    for (const int32_t c : contexts) by_context[c] += sums[c];
  }
}

template void ContextRows::add_to(std::span<const int32_t>, std::span<const int32_t>, Sum*) const;
template void ContextRows::add_to(std::span<const int32_t>, std::span<const int32_t>,
                                  WideSum*) const;

const float* ContextRows::probabilities_at(int32_t position) const {
  const int64_t row = are_by_position_ ? position : row_of_[position];
  return probabilities_.data() + row * n_contexts_;
}

void ContextRows::fill_joint(std::span<const int32_t> positions,
                             std::span<const JointOf> sets) const {
  const auto has_all = [&](const JointOf& set) { return std::ssize(set.contexts) == n_contexts_; };
  if (n_contexts_ >= kFloats && std::none_of(sets.begin(), sets.end(), has_all))
    return fill_joint_of_many(positions, sets);
  for (const JointOf& set : sets)
    for (const int32_t t : positions)
      set.joint[t] = has_all(set) ? joint_curvature(t) : joint_curvature(t, set.contexts);
}

// The probability is a scalar product: of the row, and of 1 in these contexts and 0 elsewhere. The
// last vector of a row begins within the one before.
HEDGEROW_CLONES void ContextRows::fill_joint_of_many(std::span<const int32_t> positions,
                                                     std::span<const JointOf> sets) const {
  const int last = n_contexts_ - kFloats, n_whole = n_contexts_ / kFloats * kFloats;
  const int n_chosen = n_whole + kFloats;
  PaddedFloats chosen(std::ssize(sets) * n_chosen);
  for (int64_t s = 0; s < std::ssize(sets); ++s)
    for (const int32_t c : sets[s].contexts)
      chosen[s * n_chosen + (c < n_whole ? c : c - last + n_whole)] = 1.0f;
  for (int64_t i = 0; i < std::ssize(positions); ++i) {
    const int32_t t = positions[i];
    const float* row = probabilities_at(t);
    prefetch_row(probabilities_at(positions[std::min(i + kRowsAhead, std::ssize(positions) - 1)]),
                 n_contexts_);
    const float* own = chosen.data();
    for (const JointOf& set : sets) {
      Floats sums = load(row + last) * load(own + n_whole);
      for (int c = 0; c < n_whole; c += kFloats) sums += load(row + c) * load(own + c);
      const float p = std::min(fold_lanes<Total>(sums), 1.0f);
      set.joint[t] = rows_[row_of_[t]].curvature * (p * (1.0f - p));
      own += n_chosen;
    }
  }
}

float ContextRows::joint_curvature(int32_t position, std::span<const int32_t> contexts) const {
  const int64_t row = row_of_[position];
  const float* probabilities = probabilities_at(position);
  const int32_t* c = contexts.data();
  const int32_t* end = c + contexts.size();
  // Side by side, so that no sum waits for the last one, and each in a register.
  float first = 0.0f, second = 0.0f, third = 0.0f, fourth = 0.0f;
  for (; end - c >= 4; c += 4) {
    first += probabilities[c[0]];
    second += probabilities[c[1]];
    third += probabilities[c[2]];
    fourth += probabilities[c[3]];
  }
  if (end - c > 0) first += probabilities[c[0]];
  if (end - c > 1) second += probabilities[c[1]];
  if (end - c > 2) third += probabilities[c[2]];
  const float p = std::min((first + second) + (third + fourth), 1.0f);
  return rows_[row].curvature * (p * (1.0f - p));
}

std::vector<int32_t> ContextRows::select(std::span<const int32_t> contexts, int lag,
                                         const uint8_t* is_left, bool wanted) const {
  std::vector<int32_t> chosen;
  for (const int32_t c : contexts)
    if ((is_left[contexts_.label(output_, c, lag)] != 0) == wanted) chosen.push_back(c);
  return chosen;
}

}  // namespace hedgerow
