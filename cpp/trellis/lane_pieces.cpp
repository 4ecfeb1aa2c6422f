#include "trellis/lane_pieces.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trellis/lane_loops.hpp"

namespace hedgerow {
namespace {

// Positions x labels: scratch memory stays in the cache.
constexpr int64_t kPieceNumbers = kLowLimits ? 1 << 9 : 1 << 11;

// What the kernel reads and writes for a group of pieces. T: length of the longest.
struct ProductScratch {
  const double* arcs = nullptr;    // (K, K) exp(arcs - shift)
  StrandGroup<kLanes> group{};     // the pieces
  Packed lengths;                  // of the pieces
  Packed first;                    // 1 where no position comes before a piece, otherwise 0
  std::vector<Packed> factors;     // (T, K) nodes, which become exp(nodes - maximum)
  Packed smallest;                 // of all numbers that must be at least kSmallest
  double* products[kLanes] = {};   // (K, K) of each lane
  double* exponents[kLanes] = {};  // (K,)
};

// All rows of a product are computed together, each like alpha in lane_chain.cpp. Row i begins with
// label i at the position before the piece; without such a position all rows are the same, and
// begin with any label. A row without a path becomes 0.
template <int kLabels>
HEDGEROW_INLINE void multiply_steps(ProductScratch& scratch, Stop& stop) {
  const Lanes zero = broadcast(0.0), one = broadcast(1.0), first = scratch.first;
  const double* arcs = scratch.arcs;
  Lanes alphas[kLabels][kLabels], sums[kLabels], exponents[kLabels];
  for (int i = 0; i < kLabels; ++i) sums[i] = one, exponents[i] = zero;
  Lanes left = scratch.lengths, smallest = one;
  for (int64_t t = 0; t < scratch.group.longest; ++t) {
    if (t % kCheckEvery == 0) stop.check();
    Packed* factors = scratch.factors.data() + t * kLabels;
    exponentiate<kLabels>(factors);
    Lanes least = one;
    for (int i = 0; i < kLabels; ++i) {
      Lanes reached[kLabels];
      if (t == 0) {
        for (int k = 0; k < kLabels; ++k)
          reached[k] = if_positive(first, one, broadcast(arcs[i * kLabels + k]));
      } else {
        multiply<kLabels, false>(alphas[i], arcs, reached);
      }
      exponents[i] += exponent_of(sums[i]);
      least = minimum(arrive<kLabels>(reached, factors, inverse_power(sums[i]), alphas[i]), least);
      sums[i] = total<kLabels>(alphas[i]);
    }
    smallest = minimum(if_positive(left, least, one), smallest);
    left = left - one;
    for (int l = 0; l < kLanes; ++l) {
      if (t + 1 != scratch.group.lengths[l]) continue;
      for (int i = 0; i < kLabels; ++i) {
        scratch.exponents[l][i] = lane(exponents[i], l);
        for (int k = 0; k < kLabels; ++k)
          scratch.products[l][i * kLabels + k] = lane(alphas[i][k], l);
      }
    }
  }
  scratch.smallest = smallest;
}

using ProductKernel = void (*)(ProductScratch&, Stop&);
ProductKernel product_kernel(int n_labels) {
  return kernels_for(n_labels,
                     [](auto n) -> ProductKernel { return wide_clone<multiply_steps<n()>>(); });
}

}  // namespace

LanePieces::LanePieces(const ChainScores& scores, const LaneArcs& arcs,
                       const std::vector<int64_t>& sequences, int n_threads, Stop& stop)
    : scores_(scores) {
  cut(sequences);
  fill_products(arcs, n_threads, stop);
  for (size_t i = 0; i < sequences.size(); ++i)
    refused_.push_back(!fill_starts(bounds_[i], bounds_[i + 1]) ||
                       !fill_ends(bounds_[i], bounds_[i + 1]));
}

// Pieces of a sequence differ by one position at most.
void LanePieces::cut(const std::vector<int64_t>& sequences) {
  const int64_t size = kPieceNumbers / scores_.n_labels;
  for (const int64_t s : sequences) {
    const int64_t length = scores_.length(s), n = (length + size - 1) / size;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t begin = length * i / n, end = length * (i + 1) / n;
      pieces_.push_back({s, scores_.offsets[s] + begin, end - begin, i == 0, i + 1 == n});
    }
    bounds_.push_back(n_pieces());
  }
  const int64_t n_numbers = n_pieces() * scores_.n_labels;
  products_.resize(n_numbers * scores_.n_labels);
  exponents_.resize(n_numbers);
  bad_products_.resize(n_pieces());
  starts_.assign(n_numbers, 0.0);
  ends_.assign(n_numbers, 1.0);
}

StrandGroup<kLanes> LanePieces::group(int64_t index) const {
  StrandGroup<kLanes> group{};
  for (int64_t p = index * kLanes; p < std::min((index + 1) * kLanes, n_pieces()); ++p) {
    const Piece& piece = pieces_[p];
    group.add(piece.sequence, piece.begin, piece.length,
              piece.first ? nullptr : starts_.data() + p * scores_.n_labels,
              piece.last ? nullptr : ends_.data() + p * scores_.n_labels);
  }
  return group;
}

void LanePieces::fill_products(const LaneArcs& arcs, int n_threads, Stop& stop) {
  const int64_t n_labels = scores_.n_labels;
  const auto make_task = [&] {
    return [&, scratch = ProductScratch{}](int64_t index) mutable {
      scratch.arcs = arcs.factors.data();
      scratch.group = group(index);
      for (int l = 0; l < scratch.group.n_strands; ++l) {
        const int64_t p = index * kLanes + l;
        scratch.first.values[l] = pieces_[p].first ? 1.0 : 0.0;
        scratch.products[l] = products_.data() + p * n_labels * n_labels;
        scratch.exponents[l] = exponents_.data() + p * n_labels;
      }
      load_nodes(scores_, scratch.group, scratch.factors, scratch.lengths);
      product_kernel(scores_.n_labels)(scratch, stop);
      for (int l = 0; l < scratch.group.n_strands; ++l)
        bad_products_[index * kLanes + l] = !(scratch.smallest.values[l] >= kSmallest);
    };
  };
  parallel_for_each_thread(n_groups(), n_threads, stop, make_task);
}

// alpha before each piece but the first, its sum between 1 and 2; false if it is not precise.
bool LanePieces::fill_starts(int64_t first, int64_t end) {
  const int64_t n_labels = scores_.n_labels;
  for (int64_t p = first; p < end; ++p) {
    if (bad_products_[p]) return false;
    if (p + 1 == end) break;
    const double* product = products_.data() + p * n_labels * n_labels;
    const double* exponents = exponents_.data() + p * n_labels;
    const double* start = starts_.data() + p * n_labels;
    double* next = starts_.data() + (p + 1) * n_labels;
    const auto weight = [&](int64_t i) { return p > first ? start[i] : (i == 0 ? 1.0 : 0.0); };
    double top = -kInfinity, sum = 0.0;
    for (int64_t i = 0; i < n_labels; ++i)
      if (weight(i) > 0.0 &&
          *std::max_element(product + i * n_labels, product + (i + 1) * n_labels) > 0.0)
        top = std::max(top, exponents[i]);
    if (top == -kInfinity) return false;
    std::vector<bool> reached(n_labels);
    for (int64_t i = 0; i < n_labels; ++i)
      for (int64_t k = 0; k < n_labels; ++k) {
        if (!(weight(i) > 0.0 && product[i * n_labels + k] > 0.0)) continue;
        const double term =
            std::ldexp(weight(i), static_cast<int>(exponents[i] - top)) * product[i * n_labels + k];
        reached[k] = true;
        next[k] += term;
        sum += term;
      }
    for (int64_t k = 0; k < n_labels; ++k) {
      next[k] = std::ldexp(next[k], -std::ilogb(sum));
      if (reached[k] && !(next[k] >= kSmallest)) return false;
    }
  }
  return true;
}

// beta at the end of each piece but the last, the largest between 1 and 2.
bool LanePieces::fill_ends(int64_t first, int64_t end) {
  const int64_t n_labels = scores_.n_labels;
  for (int64_t p = end - 1; p > first; --p) {
    const double* product = products_.data() + p * n_labels * n_labels;
    const double* exponents = exponents_.data() + p * n_labels;
    const double* next = ends_.data() + p * n_labels;
    double* out = ends_.data() + (p - 1) * n_labels;
    double top = -kInfinity;
    for (int64_t i = 0; i < n_labels; ++i) {
      out[i] = std::inner_product(next, next + n_labels, product + i * n_labels, 0.0);
      if (out[i] > 0.0) top = std::max(top, exponents[i] + std::ilogb(out[i]));
    }
    if (top == -kInfinity) return false;
    for (int64_t i = 0; i < n_labels; ++i) {
      if (!(out[i] > 0.0)) continue;
      out[i] = std::ldexp(out[i], static_cast<int>(exponents[i] - top));
      if (starts_[p * n_labels + i] > 0.0 && !(out[i] >= kSmallest)) return false;
    }
  }
  return true;
}

}  // namespace hedgerow
