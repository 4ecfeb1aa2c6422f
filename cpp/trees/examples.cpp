#include "trees/examples.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "random.hpp"
#include "require.hpp"
#include "simd.hpp"

namespace hedgerow {
namespace {

// flags[i] = 1 if |gradients[i]| is above the limit, or NaN, which is refused later; else 0.
HEDGEROW_CLONES void flag_large(const double* HEDGEROW_RESTRICT gradients, int64_t n, double limit,
                                uint8_t* HEDGEROW_RESTRICT flags) {
  for (int64_t i = 0; i < n; ++i) flags[i] = !(std::abs(gradients[i]) <= limit);
}

constexpr int64_t kFlagsTogether = 128;  // positions: their flags stay in the cache

// counts[k] += flags[t, k] of n positions, kFlagsTogether at most
HEDGEROW_CLONES void count_flags(const uint8_t* HEDGEROW_RESTRICT flags, int64_t n, int n_outputs,
                                 int64_t* HEDGEROW_RESTRICT counts) {
  static_assert(kFlagsTogether < 1 << 8);
  constexpr int kWidth = 32;
  for (int first = 0; first < n_outputs; first += kWidth) {
    // A row is read in whole vectors, with flags of the next one, which are not used.
    uint8_t sums[kWidth] = {};
    const int n_used = std::min(kWidth, n_outputs - first);
    const int64_t n_inside = n - (kWidth - n_used + n_outputs - 1) / n_outputs;
    int64_t t = 0;
    for (; t < n_inside; ++t)
      for (int k = 0; k < kWidth; ++k)
        sums[k] = static_cast<uint8_t>(sums[k] + flags[t * n_outputs + first + k]);
    for (; t < n; ++t)
      for (int k = 0; k < n_used; ++k)
        sums[k] = static_cast<uint8_t>(sums[k] + flags[t * n_outputs + first + k]);
    for (int k = 0; k < n_used; ++k) counts[first + k] += sums[k];
  }
}

// Flags the examples of some positions, by output: flags (n_positions, n_outputs) of all.
void flag_examples(const DerivativeTable& table, const Sampling& sampling, int64_t begin,
                   int64_t end, uint8_t* flags) {
  const int64_t n_outputs = table.n_outputs;
  if (sampling.scales == nullptr) {
    flag_large(table.gradients + begin * n_outputs, (end - begin) * n_outputs, sampling.trim,
               flags + begin * n_outputs);
  } else {
    for (int64_t t = begin; t < end; ++t)
      flag_large(table.gradients + t * n_outputs, n_outputs, sampling.trim * sampling.scales[t],
                 flags + t * n_outputs);
  }
  for (int64_t t = begin; t < end && table.observed != nullptr; ++t) {
    const int32_t k = table.observed[t];
    const double limit = sampling.trim * (sampling.scales == nullptr ? 1.0 : sampling.scales[t]);
    if (k >= 0) flags[t * n_outputs + k] = !(std::abs(table.gradient(t, k)) <= limit);
  }
  for (int64_t t = begin; t < end; ++t) {
    const bool is_left_out = (sampling.selected != nullptr && !sampling.selected[t]) ||
                             (sampling.scales != nullptr && sampling.scales[t] == 0.0);
    if (is_left_out)
      std::fill_n(flags + t * n_outputs, n_outputs, uint8_t{0});
    else if (table.is_opposite)
      flags[t * n_outputs] = 0;
  }
}

// One bit per flag, of up to 64 flags.
uint64_t pack_flags(const uint8_t* flags, int64_t n) {
  uint64_t bits = 0;
  if constexpr (std::endian::native == std::endian::little) {
    for (int64_t i = 0; i + 8 <= n; i += 8) {
      uint64_t eight;
      std::memcpy(&eight, flags + i, sizeof(eight));
      bits |= (eight * 0x0102040810204080 >> 56) << i;  // byte j becomes bit j
    }
  }
  const int64_t n_packed = std::endian::native == std::endian::little ? n / 8 * 8 : 0;
  for (int64_t i = n_packed; i < n; ++i) bits |= uint64_t{flags[i]} << i;
  return bits;
}

// Calls take(t, k) where flags[t, k] is 1, position by position. Branches are mispredicted only at
// the end of 64 flags. flags: (n_positions, n_outputs)
template <class Take>
void for_each_flag(const uint8_t* flags, int64_t n_positions, int64_t n_outputs, const Take& take) {
  const int64_t n = n_positions * n_outputs;
  const auto divisor = static_cast<uint32_t>(n_outputs);
  for (int64_t first = 0; first < n; first += 64) {
    for (uint64_t bits = pack_flags(flags + first, std::min<int64_t>(64, n - first)); bits != 0;
         bits &= bits - 1) {
      const auto i = static_cast<uint32_t>(first + std::countr_zero(bits));
      take(i / divisor, i % divisor);
    }
  }
}

// Keeps examples for which weigh(i) is not 0, with that weight; returns their number.
template <class Weigh>
int64_t keep(std::span<Derivatives> examples, Weigh weigh) {
  int64_t n_kept = 0;
  for (int64_t i = 0; i < std::ssize(examples); ++i) {
    const float weight = weigh(i);
    if (weight == 0.0f) continue;
    const auto [position, gradient, curvature] = examples[i];
    examples[n_kept++] = {position, gradient * weight, curvature * weight};
  }
  return n_kept;
}

// Newton's method for the rate of an output: the sum is concave in c, so c is approached from
// below, and a c that is still too small draws fewer examples, with larger weights.
class RateSearch {
 public:
  RateSearch(double largest, int64_t n_examples, double share)
      : grid_(largest * static_cast<double>(n_examples)),
        n_wanted_(share * static_cast<double>(n_examples)) {}

  double rate() const { return rate_; }
  bool is_done() const { return is_done_; }
  // Number of examples that are drawn with certainty, and the sum of the sizes of the others, in
  // units.
  std::pair<int64_t, int64_t> measure(std::span<const float> sizes) const {
    double rest = 0.0;
    int64_t n = 0;
    for (const float size : sizes) {
      const bool is_sure = rate_ * size >= 1.0;
      n += is_sure;
      rest += is_sure ? 0.0 : grid_.round(size);
    }
    const double units = rest / grid_.unit();  // not a number if sizes are not, or none is above 0
    return {n, std::isfinite(units) ? std::llround(units) : 0};
  }
  // Takes the sums of these over all workers.
  void step(int64_t n, int64_t units) {
    const double rest = static_cast<double>(units) * grid_.unit();
    is_done_ = n == n_sure_ || rest == 0.0;
    if (is_done_) return;
    n_sure_ = n;
    rate_ = (n_wanted_ - static_cast<double>(n)) / rest;
  }

 private:
  SumGrid grid_;
  double n_wanted_, rate_ = 0.0;
  int64_t n_sure_ = -1;
  bool is_done_ = false;
};

// Sampling by size has its own keys.
constexpr uint64_t kBySize = uint64_t{1} << 32;

}  // namespace

std::vector<double> find_rates(std::span<const std::vector<float>> sizes, double share,
                               const Workers& workers, int n_threads, Stop& stop) {
  constexpr int kMaxIterations = 50;
  const auto n_outputs = static_cast<int>(sizes.size());
  std::vector<double> largest(n_outputs), rates;
  std::vector<int64_t> counts;
  for (int k = 0; k < n_outputs; ++k) {
    for (const float size : sizes[k]) largest[k] = std::max(largest[k], double{size});
    counts.push_back(std::ssize(sizes[k]));
  }
  workers.max(largest);
  workers.sum(counts);
  std::vector<RateSearch> searches;
  for (int k = 0; k < n_outputs; ++k) searches.emplace_back(largest[k], counts[k], share);
  const auto are_done = [&] {
    return std::all_of(searches.begin(), searches.end(),
                       [](const RateSearch& search) { return search.is_done(); });
  };
  for (int i = 0; i < kMaxIterations && !are_done(); ++i) {
    std::vector<int64_t> sums(2 * n_outputs);
    parallel_for(n_outputs, n_threads, stop, [&](int64_t k) {
      if (searches[k].is_done()) return;
      std::tie(sums[2 * k], sums[2 * k + 1]) = searches[k].measure(sizes[k]);
    });
    workers.sum(sums);
    for (int k = 0; k < n_outputs; ++k)
      if (!searches[k].is_done()) searches[k].step(sums[2 * k], sums[2 * k + 1]);
  }
  for (const RateSearch& search : searches) rates.push_back(search.rate());
  return rates;
}

DrawnBySize::DrawnBySize(double rate, const Sampling& sampling, int output)
    : sampling_(sampling),
      key_(derive_key(sampling.key, kBySize + static_cast<uint64_t>(output))),
      rate_(rate) {}

float DrawnBySize::weigh(int32_t position, float size) const {
  const double probability = rate_ * size;
  if (probability >= 1.0) return 1.0f;
  const bool is_left_out = draw_uniform(key_, sampling_.identity(position)) >= probability;
  return is_left_out ? 0.0f : static_cast<float>(1.0 / probability);
}

Negatives::Negatives(const Sampling& sampling, int output, int64_t n_positive, int64_t n_examples)
    : sampling_(sampling),
      output_(output),
      key_(derive_key(sampling.key, static_cast<uint64_t>(output))) {
  const auto n_positives = static_cast<double>(std::max<int64_t>(n_positive, 1));
  const auto n_negatives = static_cast<double>(std::max<int64_t>(n_examples - n_positive, 1));
  share_ = std::min(sampling.negative_ratio * n_positives / n_negatives, 1.0);
  switch (sampling.negative_weight) {
    case NegativeWeight::kUnbiased: weight_ = static_cast<float>(1.0 / share_); break;
    case NegativeWeight::kNone: weight_ = 1.0f; break;
    case NegativeWeight::kBalanced:
      weight_ = static_cast<float>(n_positives / (share_ * n_negatives));
      break;
  }
}

float Negatives::weigh(int32_t position) const {
  if (sampling_.codes[position] == output_) return 1.0f;
  const bool is_drawn = share_ >= 1.0 || draw_uniform(key_, sampling_.identity(position)) < share_;
  return is_drawn ? weight_ : 0.0f;
}

// Threads first count the examples of their positions, then write them to their places.
Examples::Examples(const DerivativeTable& table, const Sampling& sampling,
                   const std::shared_ptr<MemoryPool>& pool, int n_threads, Stop& stop,
                   const Workers& workers, const UnitBits& unit_bits)
    : n_positions_(table.n_positions),
      is_opposite_(table.is_opposite),
      bound_(sampling.bound),
      unit_bits_(unit_bits) {
  const int n_outputs = table.n_outputs;
  const int64_t n_chunks = (table.n_positions + kPositionsPerTask - 1) / kPositionsPerTask;
  std::vector<int64_t> firsts((n_chunks + 1) * n_outputs);  // of a chunk, by output
  PooledArray<uint8_t> flags(pool, table.n_positions * n_outputs);
  parallel_for_pieces(
      table.n_positions, kPositionsPerTask, n_threads, stop, [&](int64_t begin, int64_t end) {
        int64_t* counts = firsts.data() + (begin / kPositionsPerTask + 1) * n_outputs;
        for (int64_t t = begin; t < end; t += kFlagsTogether) {
          const int64_t next = std::min(t + kFlagsTogether, end);
          flag_examples(table, sampling, t, next, flags.data());
          count_flags(flags.data() + t * n_outputs, next - t, n_outputs, counts);
        }
      });
  for (size_t i = n_outputs; i < firsts.size(); ++i) firsts[i] += firsts[i - n_outputs];
  sizes_.assign(firsts.end() - n_outputs, firsts.end());
  for (const int64_t size : sizes_) by_output_.emplace_back(pool, size);
  parallel_for_pieces(
      table.n_positions, kPositionsPerTask, n_threads, stop, [&](int64_t begin, int64_t end) {
        std::vector<Derivatives*> next(n_outputs);  // where the next example of an output goes
        for (int k = 0; k < n_outputs; ++k)
          next[k] = by_output_[k].data() + firsts[begin / kPositionsPerTask * n_outputs + k];
        const auto take = [&, places = next.data()](int64_t in_piece, int64_t k) {
          const int64_t t = begin + in_piece;
          *places[k]++ = {static_cast<int32_t>(t), static_cast<float>(table.gradient(t, k)),
                          table.curvature(t, k)};
        };
        for_each_flag(flags.data() + begin * n_outputs, end - begin, n_outputs, take);
      });
  if (sampling.share < 1.0) draw_by_size(sampling, workers, n_threads, stop);
  if (sampling.negative_ratio > 0.0) stratify(sampling, workers, n_threads, stop);
}

void Examples::draw_by_size(const Sampling& sampling, const Workers& workers, int n_threads,
                            Stop& stop) {
  std::vector<std::vector<float>> sizes(n_outputs());
  parallel_for(n_outputs(), n_threads, stop, [&](int64_t k) {
    stop.check();
    for (const Derivatives& e : of_output(static_cast<int>(k)))
      sizes[k].push_back(example_size(e.gradient, e.curvature));
  });
  const std::vector<double> rates = find_rates(sizes, sampling.share, workers, n_threads, stop);
  parallel_for(n_outputs(), n_threads, stop, [&](int64_t k) {
    stop.check();
    const std::span all(by_output_[k].data(), static_cast<size_t>(sizes_[k]));
    const DrawnBySize drawn(rates[k], sampling, static_cast<int>(k));
    sizes_[k] = keep(all, [&](int64_t i) { return drawn.weigh(all[i].position, sizes[k][i]); });
  });
}

// Keeps all examples of an output where its label was observed, and a share of the others.
void Examples::stratify(const Sampling& sampling, const Workers& workers, int n_threads,
                        Stop& stop) {
  std::vector<int64_t> counts(2 * n_outputs());  // observed, and all
  parallel_for(n_outputs(), n_threads, stop, [&](int64_t k) {
    stop.check();
    for (const Derivatives& e : of_output(static_cast<int>(k)))
      counts[2 * k] += sampling.codes[e.position] == k;
    counts[2 * k + 1] = sizes_[k];
  });
  workers.sum(counts);
  parallel_for(n_outputs(), n_threads, stop, [&](int64_t k) {
    stop.check();
    const std::span all(by_output_[k].data(), static_cast<size_t>(sizes_[k]));
    const Negatives negatives(sampling, static_cast<int>(k), counts[2 * k], counts[2 * k + 1]);
    sizes_[k] = keep(all, [&](int64_t i) { return negatives.weigh(all[i].position); });
  });
}

Examples::Examples(const std::vector<std::vector<Derivatives>>& by_output,
                   const std::shared_ptr<MemoryPool>& pool, const UnitBits& unit_bits)
    : n_positions_(0), unit_bits_(unit_bits) {
  for (const std::vector<Derivatives>& examples : by_output) {
    const auto rises = [](const Derivatives& a, const Derivatives& b) {
      return a.position >= b.position;
    };
    require(std::adjacent_find(examples.begin(), examples.end(), rises) == examples.end(),
            "the positions of examples must be in ascending order");
    sizes_.push_back(static_cast<int64_t>(examples.size()));
    by_output_.emplace_back(pool, examples.size());
    std::copy(examples.begin(), examples.end(), by_output_.back().data());
    if (examples.empty()) continue;
    require(examples.front().position >= 0, "a position is negative");
    n_positions_ = std::max<int64_t>(n_positions_, examples.back().position + 1);
  }
}

Magnitudes measure(std::span<const Derivatives> derivatives, const MagnitudeGrid& grid,
                   Crew& crew) {
  const auto n = static_cast<int64_t>(derivatives.size());
  std::vector<Magnitudes> by_piece((n + kPositionsPerTask - 1) / kPositionsPerTask);
  crew.share_pieces(n, kPositionsPerTask, [&](int64_t begin, int64_t end) {
    Magnitudes sums;
    for (const Derivatives& d : derivatives.subspan(begin, end - begin))
      sums.add(d.gradient, d.curvature, grid);
    by_piece[begin / kPositionsPerTask] = sums;
  });
  Magnitudes all;
  for (const Magnitudes& sums : by_piece) all.add(sums);
  return all;
}

Units choose_units(std::span<const Magnitudes> by_piece, const UnitBits& bits) {
  Magnitudes all;
  for (const Magnitudes& sums : by_piece) all.add(sums);
  if (all.has_negative || !std::isfinite(all.gradients) || !std::isfinite(all.curvatures))
    throw std::invalid_argument("derivatives must be finite, and curvatures not negative");
  // Units are powers of two, so that converting from one to another is exact.
  const auto unit_for = [&](double sum, int n_bits, double largest, int bits_of_each) {
    int exponent = (sum > 0.0 ? std::ilogb(sum) + 1 : 0) - n_bits;
    if (bits.are_wide() && largest > 0.0)
      exponent = std::max(exponent, std::ilogb(largest) + 1 - bits_of_each);
    return std::ldexp(1.0, exponent);
  };
  return {
      unit_for(all.gradients, bits.gradients, all.largest_gradient, UnitBits::kGradientsOfSum),
      unit_for(all.curvatures, bits.curvatures, all.largest_curvature, UnitBits::kCurvaturesOfSum)};
}

}  // namespace hedgerow
