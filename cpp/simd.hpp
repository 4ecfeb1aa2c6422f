// Four doubles at a time, written once for every machine.
//
// Kernels marked HEDGEROW_CLONES are compiled for several x86-64 levels and the best one is chosen
// when the library is loaded, or only for HEDGEROW_LEVEL; elsewhere the compiler's target decides.
// All helpers are inlined into the clones. GCC assumes that the dispatcher of a clone does not
// throw: if a clone may throw, as an interrupt does, callers in the same file must have nothing to
// clean up, or the process is terminated.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>
#include <vector>

#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) && \
    defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HEDGEROW_HAS_CLONES
// A function with instructions for eight 64-bit numbers, see adds_eight_at_once.
#define HEDGEROW_EIGHT_WIDE __attribute__((target("arch=x86-64-v4")))
// No clone WITHOUT_FMA may fuse a product with a sum, which rounds once instead of twice.
#if !defined(HEDGEROW_LEVEL)
#define HEDGEROW_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define HEDGEROW_CLONES_WITHOUT_FMA __attribute__((target_clones("avx2", "default")))
#else
#define HEDGEROW_CLONES __attribute__((noinline, target("arch=" HEDGEROW_LEVEL)))
#define HEDGEROW_CLONES_WITHOUT_FMA __attribute__((noinline, target("avx2")))
#endif
#else
#define HEDGEROW_EIGHT_WIDE
#define HEDGEROW_CLONES
#define HEDGEROW_CLONES_WITHOUT_FMA
#endif

// Sanitized code is slow to compile: each helper is then compiled only once.
#if defined(__GNUC__) && !defined(HEDGEROW_SANITIZED)
#define HEDGEROW_INLINE inline __attribute__((always_inline))
#define HEDGEROW_INLINE_LAMBDA __attribute__((always_inline))
#else
#define HEDGEROW_INLINE inline
#define HEDGEROW_INLINE_LAMBDA
#endif

#if defined(__GNUC__)
#define HEDGEROW_RESTRICT __restrict__
#define HEDGEROW_PREFETCH(address) __builtin_prefetch(address)
// Only into the second-level cache.
#define HEDGEROW_PREFETCH_FAR(address) __builtin_prefetch(address, 0, 2)
#else
#define HEDGEROW_RESTRICT __restrict
#define HEDGEROW_PREFETCH(address) static_cast<void>(address)
#define HEDGEROW_PREFETCH_FAR(address) static_cast<void>(address)
#endif

namespace hedgerow {

// Sanitized code is also slow to run: size limits are lower, so that short tests exceed them.
#ifdef HEDGEROW_SANITIZED
inline constexpr bool kLowLimits = true;
#else
inline constexpr bool kLowLimits = false;
#endif

// Fetches a row of n numbers into the cache.
template <class Number>
HEDGEROW_INLINE void prefetch_row(const Number* row, int64_t n) {
  constexpr int kPerLine = 64 / sizeof(Number);
  for (int64_t c = 0; c < n; c += kPerLine) HEDGEROW_PREFETCH(row + c);
  HEDGEROW_PREFETCH(row + n - 1);
}

inline constexpr int kLanes = 4;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Kernels with a copy for each number of labels are compiled only for processors with registers of
// four doubles. For others their code is several times as long and takes as long to compile as all
// other clones together; kernels for any number of labels do the work there.
#ifdef HEDGEROW_HAS_CLONES
#ifdef HEDGEROW_LEVEL
constexpr bool has_wide_registers() { return true; }
constexpr bool has_wider_registers() { return HEDGEROW_LEVEL == std::string_view("x86-64-v4"); }
#else
inline bool has_wide_registers() { return __builtin_cpu_supports("x86-64-v3"); }
inline bool has_wider_registers() { return __builtin_cpu_supports("x86-64-v4"); }
#endif

template <auto kKernel>
struct WideClones;
template <class... Arguments, void (*kKernel)(Arguments...)>
struct WideClones<kKernel> {
  __attribute__((target("arch=x86-64-v4"))) static void v4(Arguments... arguments) {
    kKernel(arguments...);
  }
  __attribute__((target("arch=x86-64-v3"))) static void v3(Arguments... arguments) {
    kKernel(arguments...);
  }
};

// The best clone of a kernel, which must be HEDGEROW_INLINE.
template <auto kKernel>
auto wide_clone() {
  using Clones = WideClones<kKernel>;
#ifdef HEDGEROW_LEVEL  // so that the other one is not compiled
  if constexpr (has_wider_registers())
    return &Clones::v4;
  else
    return &Clones::v3;
#else
  return has_wider_registers() ? &Clones::v4 : &Clones::v3;
#endif
}
// The clone for four doubles at a time, of a kernel that is no faster with the registers of v4.
template <auto kKernel>
auto wide_clone_v3() {
  return &WideClones<kKernel>::v3;
}
// The best clone of a kernel with two versions, for eight doubles at a time and for four. Unlike
// the others it may be used without wide registers too.
template <auto kOfEight, auto kOfFour>
auto eight_wide_clone() {
#ifdef HEDGEROW_LEVEL
  if constexpr (has_wider_registers())
    return &WideClones<kOfEight>::v4;
  else
    return &WideClones<kOfFour>::v3;
#else
  if (has_wider_registers()) return &WideClones<kOfEight>::v4;
  return has_wide_registers() ? &WideClones<kOfFour>::v3 : kOfFour;
#endif
}
#else
inline bool has_wide_registers() { return true; }

template <auto kKernel>
auto wide_clone() {
  return kKernel;
}
template <auto kKernel>
auto wide_clone_v3() {
  return kKernel;
}
template <auto, auto kOfFour>
auto eight_wide_clone() {
  return kOfFour;
}
#endif

// Whether clones add eight integers at once, also under a mask.
#if defined(HEDGEROW_HAS_CLONES)
inline bool adds_eight_at_once() { return has_wider_registers(); }
#elif defined(__GNUC__)
inline bool adds_eight_at_once() { return kLowLimits; }  // so that sanitizers test that code too
#else
inline bool adds_eight_at_once() { return false; }
#endif

// Smallest multiple of kLanes that holds n doubles.
HEDGEROW_INLINE constexpr int padded(int n) { return (n + kLanes - 1) / kLanes * kLanes; }

#if defined(__GNUC__)

using Lanes = double __attribute__((vector_size(32)));

#if defined(__clang__) || __GNUC__ >= 12
// A shuffle is one instruction; for Lanes{x, x, x, x} GCC generates three, and repeats them in
// loops.
HEDGEROW_INLINE Lanes broadcast(double x) {
  const Lanes first{x};
  return __builtin_shufflevector(first, first, 0, 0, 0, 0);
}
#else
HEDGEROW_INLINE Lanes broadcast(double x) { return Lanes{x, x, x, x}; }
#endif
HEDGEROW_INLINE Lanes maximum(Lanes a, Lanes b) { return a > b ? a : b; }
HEDGEROW_INLINE Lanes minimum(Lanes a, Lanes b) { return a < b ? a : b; }
HEDGEROW_INLINE double lane(const Lanes& a, int i) { return a[i]; }

// The first n lanes of a, and `outside` in the others.
HEDGEROW_INLINE Lanes keep_lanes(Lanes a, int64_t n, double outside) {
  using Index = int64_t __attribute__((vector_size(32)));
  return Index{0, 1, 2, 3} < Index{n, n, n, n} ? a : broadcast(outside);
}

HEDGEROW_INLINE Lanes one_if_zero(Lanes a) { return a == broadcast(0.0) ? broadcast(1.0) : a; }
// a, or 0 where b is not positive.
HEDGEROW_INLINE Lanes where_positive(Lanes b, Lanes a) {
  return b > broadcast(0.0) ? a : broadcast(0.0);
}
// a, or 0 where b is less than `least`.
HEDGEROW_INLINE Lanes where_at_least(Lanes b, double least, Lanes a) {
  return b >= broadcast(least) ? a : broadcast(0.0);
}
// a where x > 0, b elsewhere.
HEDGEROW_INLINE Lanes if_positive(Lanes x, Lanes a, Lanes b) { return x > broadcast(0.0) ? a : b; }
// a, or b where a is -inf.
HEDGEROW_INLINE Lanes replace_minus_infinity(Lanes a, Lanes b) {
  return a == broadcast(-kInfinity) ? b : a;
}
// The larger of a and least, but -inf where a is -inf.
HEDGEROW_INLINE Lanes raise_finite(Lanes a, double least) {
  return a == broadcast(-kInfinity) ? a : maximum(a, broadcast(least));
}
// 1 where a is +inf or NaN, otherwise 0.
HEDGEROW_INLINE Lanes one_if_bad(Lanes a) {
  return a < broadcast(kInfinity) ? broadcast(0.0) : broadcast(1.0);
}

// The power of two 2^-e that brings a positive normal number to [1, 2), and e itself.
HEDGEROW_INLINE Lanes inverse_power(Lanes a) {
  using Bits = int64_t __attribute__((vector_size(32)));
  const Bits exponent = std::bit_cast<Bits>(a) & 0x7FF0000000000000;
  return std::bit_cast<Lanes>(0x7FE0000000000000 - exponent);
}
HEDGEROW_INLINE Lanes exponent_of(Lanes a) {
  using Bits = int64_t __attribute__((vector_size(32)));
  // The biased exponent in the low bits of 2^52.
  const Bits exponent = ((std::bit_cast<Bits>(a) >> 52) & 0x7FF) + 0x4330000000000000;
  return std::bit_cast<Lanes>(exponent) - broadcast(0x1p52 + 1023);
}

// exp(x) for x <= 0 within 2 ulp; 0 below -708, where a normal double ends.
HEDGEROW_INLINE Lanes exp_nonpositive(Lanes x) {
  using Bits = int64_t __attribute__((vector_size(32)));
  const Lanes limit = broadcast(-708.0);
  const Lanes round_bits =
      broadcast(0x1.8p52);  // adding it leaves the nearest integer in the low bits
  const Lanes clipped = maximum(x, limit);
  const Lanes shifted = clipped * 1.4426950408889634 + round_bits;
  const Lanes n = shifted - round_bits;
  // x = n ln 2 + r, |r| <= ln 2 / 2; ln 2 in two parts, the first exact when multiplied by n.
  const Lanes r = (clipped - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  // exp(r) by its Taylor polynomial of degree 13 (remainder < 5e-18), summed pairwise.
  const Lanes r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
  const Lanes a = (1.0 + r) + r2 * (1.0 / 2 + r * (1.0 / 6));
  const Lanes b = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
  const Lanes c = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
  const Lanes d = 1.0 / 479001600 + r * (1.0 / 6227020800);
  const Lanes polynomial = (a + r4 * b) + r8 * (c + r4 * d);
  const Bits exponent = (std::bit_cast<Bits>(shifted) << 52) + 0x3FF0000000000000;
  const Lanes result = polynomial * std::bit_cast<Lanes>(exponent);
  return x < limit ? broadcast(0.0) : result;
}

#else

struct Lanes {
  double v[kLanes];
};
HEDGEROW_INLINE double lane(const Lanes& a, int i) { return a.v[i]; }
template <class Op>
HEDGEROW_INLINE Lanes each(Lanes a, Lanes b, Op op) {
  Lanes out;
  for (int i = 0; i < kLanes; ++i) out.v[i] = op(a.v[i], b.v[i]);
  return out;
}
HEDGEROW_INLINE Lanes broadcast(double x) { return Lanes{{x, x, x, x}}; }
HEDGEROW_INLINE Lanes operator+(Lanes a, Lanes b) {
  return each(a, b, [](double x, double y) { return x + y; });
}
HEDGEROW_INLINE Lanes operator-(Lanes a, Lanes b) {
  return each(a, b, [](double x, double y) { return x - y; });
}
HEDGEROW_INLINE Lanes operator*(Lanes a, Lanes b) {
  return each(a, b, [](double x, double y) { return x * y; });
}
HEDGEROW_INLINE Lanes operator/(Lanes a, Lanes b) {
  return each(a, b, [](double x, double y) { return x / y; });
}
HEDGEROW_INLINE Lanes& operator+=(Lanes& a, Lanes b) { return a = a + b; }
HEDGEROW_INLINE Lanes maximum(Lanes a, Lanes b) {
  return each(a, b, [](double x, double y) { return x > y ? x : y; });
}
HEDGEROW_INLINE Lanes minimum(Lanes a, Lanes b) {
  return each(a, b, [](double x, double y) { return x < y ? x : y; });
}
HEDGEROW_INLINE Lanes keep_lanes(Lanes a, int64_t n, double outside) {
  for (int64_t i = n; i < kLanes; ++i) a.v[i] = outside;
  return a;
}
HEDGEROW_INLINE Lanes one_if_zero(Lanes a) {
  for (int i = 0; i < kLanes; ++i) a.v[i] = a.v[i] == 0.0 ? 1.0 : a.v[i];
  return a;
}
HEDGEROW_INLINE Lanes where_positive(Lanes b, Lanes a) {
  return each(a, b, [](double x, double y) { return y > 0.0 ? x : 0.0; });
}
HEDGEROW_INLINE Lanes where_at_least(Lanes b, double least, Lanes a) {
  return each(a, b, [least](double x, double y) { return y >= least ? x : 0.0; });
}
HEDGEROW_INLINE Lanes if_positive(Lanes x, Lanes a, Lanes b) {
  for (int i = 0; i < kLanes; ++i) a.v[i] = x.v[i] > 0.0 ? a.v[i] : b.v[i];
  return a;
}
HEDGEROW_INLINE Lanes inverse_power(Lanes a) {
  for (int i = 0; i < kLanes; ++i) a.v[i] = std::ldexp(1.0, -std::ilogb(a.v[i]));
  return a;
}
HEDGEROW_INLINE Lanes exponent_of(Lanes a) {
  for (int i = 0; i < kLanes; ++i) a.v[i] = std::ilogb(a.v[i]);
  return a;
}
HEDGEROW_INLINE Lanes replace_minus_infinity(Lanes a, Lanes b) {
  return each(a, b, [](double x, double y) { return x == -kInfinity ? y : x; });
}
HEDGEROW_INLINE Lanes raise_finite(Lanes a, double least) {
  return each(a, broadcast(least),
              [](double x, double y) { return x == -kInfinity || x > y ? x : y; });
}
HEDGEROW_INLINE Lanes one_if_bad(Lanes a) {
  for (int i = 0; i < kLanes; ++i) a.v[i] = a.v[i] < kInfinity ? 0.0 : 1.0;
  return a;
}
HEDGEROW_INLINE Lanes exp_nonpositive(Lanes x) {
  Lanes out;
  for (int i = 0; i < kLanes; ++i) out.v[i] = x.v[i] < -708.0 ? 0.0 : std::exp(x.v[i]);
  return out;
}

#endif

HEDGEROW_INLINE Lanes load(const double* p) {
  Lanes out;
  std::memcpy(&out, p, sizeof(out));
  return out;
}
HEDGEROW_INLINE void store(double* p, Lanes a) { std::memcpy(p, &a, sizeof(a)); }

// Allocates whole cache lines, so that lanes never span two of them.
template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class Other>
  LineAllocator(const LineAllocator<Other>&) {}
  T* allocate(size_t n) {
    return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{kCacheLine}));
  }
  void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t{kCacheLine}); }
  bool operator==(const LineAllocator&) const { return true; }
  static constexpr size_t kCacheLine = 64;
};

// Numbers in padded rows.
using PaddedVector = std::vector<double, LineAllocator<double>>;

// Lanes in memory. The alignment of Lanes depends on the clone that uses them, so data that several
// clones may share (arrays, members, references) must be Packed instead.
struct alignas(kLanes * sizeof(double)) Packed {
  Packed() = default;
  HEDGEROW_INLINE Packed(Lanes a) { store(values, a); }
  HEDGEROW_INLINE operator Lanes() const { return load(values); }
  HEDGEROW_INLINE Packed& operator+=(Lanes a) {
    store(values, load(values) + a);
    return *this;
  }
  double values[kLanes];
};

HEDGEROW_INLINE double sum_lanes(Lanes a) {
  return (lane(a, 0) + lane(a, 1)) + (lane(a, 2) + lane(a, 3));
}
HEDGEROW_INLINE double max_of(double a, double b) { return a > b ? a : b; }
HEDGEROW_INLINE double min_of(double a, double b) { return a < b ? a : b; }
// Computed in lanes: comparisons of single numbers become branches, which are hard to predict.
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
HEDGEROW_INLINE double max_lane(Lanes a) {
  const Lanes pairs = maximum(a, __builtin_shufflevector(a, a, 1, 0, 3, 2));
  return lane(maximum(pairs, __builtin_shufflevector(pairs, pairs, 2, 3, 0, 1)), 0);
}
HEDGEROW_INLINE double min_lane(Lanes a) {
  const Lanes pairs = minimum(a, __builtin_shufflevector(a, a, 1, 0, 3, 2));
  return lane(minimum(pairs, __builtin_shufflevector(pairs, pairs, 2, 3, 0, 1)), 0);
}
#else
HEDGEROW_INLINE double max_lane(Lanes a) {
  return max_of(max_of(lane(a, 0), lane(a, 1)), max_of(lane(a, 2), lane(a, 3)));
}
HEDGEROW_INLINE double min_lane(Lanes a) {
  return min_of(min_of(lane(a, 0), lane(a, 1)), min_of(lane(a, 2), lane(a, 3)));
}
#endif

// The sums of four vectors, in one vector.
HEDGEROW_INLINE Lanes sum_each(Lanes a, Lanes b, Lanes c, Lanes d) {
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
  const Lanes ab =
      __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
  const Lanes cd =
      __builtin_shufflevector(c, d, 0, 4, 2, 6) + __builtin_shufflevector(c, d, 1, 5, 3, 7);
  return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
#else
  const double sums[kLanes] = {sum_lanes(a), sum_lanes(b), sum_lanes(c), sum_lanes(d)};
  return load(sums);
#endif
}

// Four rows of four numbers become four columns.
HEDGEROW_INLINE void transpose(Lanes* rows) {
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
  const Lanes a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 2, 6);
  const Lanes b = __builtin_shufflevector(rows[0], rows[1], 1, 5, 3, 7);
  const Lanes c = __builtin_shufflevector(rows[2], rows[3], 0, 4, 2, 6);
  const Lanes d = __builtin_shufflevector(rows[2], rows[3], 1, 5, 3, 7);
  rows[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  rows[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  rows[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  rows[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
#else
  double numbers[kLanes][kLanes], column[kLanes];
  for (int i = 0; i < kLanes; ++i) store(numbers[i], rows[i]);
  for (int i = 0; i < kLanes; ++i) {
    for (int j = 0; j < kLanes; ++j) column[j] = numbers[j][i];
    rows[i] = load(column);
  }
#endif
}

// A row of n doubles, of which the last lanes may be partly filled.
struct Row {
  explicit Row(int n) : size(n), whole(n / kLanes * kLanes), rest(n - whole) {}

  // Rows are contiguous. A row is inner if enough numbers of other rows follow it for whole lanes
  // to be read, or written, past its end. The last n_outer_rows() rows are not inner.
  int n_outer_rows() const { return rest == 0 ? 0 : (kLanes - rest + size - 1) / size; }

  // The last, partly filled lanes, `outside` beyond the end of the row.
  HEDGEROW_INLINE Lanes load_rest(const double* row, bool inner, double outside) const {
    if (inner) return keep_lanes(load(row + whole), rest, outside);
    double lanes[kLanes] = {outside, outside, outside, outside};
    for (int i = 0; i < rest; ++i) lanes[i] = row[whole + i];
    return load(lanes);
  }

  // The lanes from column k on, zeros outside the row.
  HEDGEROW_INLINE Lanes load_at(const double* row, int k, bool inner) const {
    return k < whole ? load(row + k) : load_rest(row, inner, 0.0);
  }

  // Writes the lanes from column k on. Past the end of an inner row, other rows are overwritten.
  HEDGEROW_INLINE void store_at(double* row, int k, bool inner, Lanes lanes) const {
    if (k < whole || inner) return store(row + k, lanes);
    for (int i = 0; i < rest; ++i) row[whole + i] = lane(lanes, i);
  }

  // Copies a row to padded memory, zeros in the padding.
  HEDGEROW_INLINE void copy_to_padded(const double* row, bool inner, double* out) const {
    for (int i = 0; i < whole; i += kLanes) store(out + i, load(row + i));
    if (rest > 0) store(out + whole, load_rest(row, inner, 0.0));
  }

  // Copies padded memory to a row. Past the end of an inner row, other rows are overwritten.
  HEDGEROW_INLINE void copy_from_padded(const double* from, bool inner, double* row) const {
    for (int i = 0; i < whole; i += kLanes) store(row + i, load(from + i));
    if (rest == 0) return;
    if (inner) {
      store(row + whole, load(from + whole));
    } else {
      for (int i = whole; i < size; ++i) row[i] = from[i];
    }
  }

  int size;
  int whole;  // columns that fill lanes completely
  int rest;   // columns in the last, partly filled lanes; 0 if there are none
};

}  // namespace hedgerow
