#include "trees/cuts.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <type_traits>

#include "large_vector.hpp"
#include "simd.hpp"
#include "trees/bins.hpp"

namespace hedgerow {
namespace {

// Numbers are sorted as integers of the same order: their bits, which are inverted for negative
// numbers. All that are not finite have the last key.
template <class Number>
using KeyOf = std::conditional_t<sizeof(Number) == 4, uint32_t, uint64_t>;
template <class Key>
using NumberOf = std::conditional_t<sizeof(Key) == 4, float, double>;
template <class Key>
constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
template <class Key>
constexpr Key kNotFinite = static_cast<Key>(~Key{0});

template <class Number>
HEDGEROW_INLINE KeyOf<Number> to_key(Number number) {
  using Key = KeyOf<Number>;
  const auto bits = std::bit_cast<Key>(number + Number{0});  // that of -0 is 0
  const Key key = bits ^ (bits & kSign<Key> ? kNotFinite<Key> : kSign<Key>);
  return std::isfinite(number) ? key : kNotFinite<Key>;
}

template <class Key>
double to_number(Key key) {
  const Key bits = key ^ (key & kSign<Key> ? kSign<Key> : kNotFinite<Key>);
  return static_cast<double>(std::bit_cast<NumberOf<Key>>(bits));
}

constexpr int kDigits = 3;
constexpr int kDigitBits = 11;
constexpr size_t kDigitValues = size_t{1} << kDigitBits;
constexpr int64_t kFewKeys = 1000;  // up to this many, comparing is faster than counting

// Sorts n keys by at most their upper 33 bits, one digit after the other from the lowest. Few keys
// that differ have the same upper bits; these are then sorted by comparing them. The result is in
// `keys`, which may have been exchanged with `scratch`, of the same size.
template <class Key>
void sort_keys(Key*& keys, Key*& scratch, int64_t n) {
  if (n <= kFewKeys) {
    std::sort(keys, keys + n);
    return;
  }
  constexpr int kLowest = sizeof(Key) == 4 ? 0 : 64 - kDigits * kDigitBits;
  const auto digit = [](Key key, int d) {
    return static_cast<size_t>(key >> (kLowest + d * kDigitBits)) & (kDigitValues - 1);
  };
  std::array<std::array<int64_t, kDigitValues>, kDigits> places{};
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < kDigits; ++d) ++places[d][digit(keys[i], d)];
  for (int d = 0; d < kDigits; ++d) {
    if (places[d][digit(keys[0], d)] == n) continue;  // all have the same
    std::exclusive_scan(places[d].begin(), places[d].end(), places[d].begin(), int64_t{0});
    for (int64_t i = 0; i < n; ++i) scratch[places[d][digit(keys[i], d)]++] = keys[i];
    std::swap(keys, scratch);
  }
  if constexpr (kLowest > 0) {
    for (int64_t begin = 0, end; begin < n; begin = end) {
      bool is_sorted = true;
      for (end = begin + 1; end < n && keys[end] >> kLowest == keys[begin] >> kLowest; ++end)
        is_sorted &= keys[end - 1] <= keys[end];
      if (!is_sorted) std::sort(keys + begin, keys + end);
    }
  }
}

// Removes duplicates from n sorted keys, and counts them. Returns the number of distinct keys.
template <class Key>
int64_t count_keys(Key* keys, int64_t n, Key* counts) {
  int64_t m = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i == 0 || keys[i] != keys[m - 1]) {
      keys[m] = keys[i];
      counts[m++] = 0;
    }
    ++counts[m - 1];
  }
  return m;
}

template <class Key>
HEDGEROW_INLINE int64_t count_equal(const Key* keys, int64_t n, Key key) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += keys[i] == key;
  return count;
}
// Templates have no clones.
HEDGEROW_CLONES int64_t count_key(const uint32_t* keys, int64_t n, uint32_t key) {
  return count_equal(keys, n, key);
}
HEDGEROW_CLONES int64_t count_key(const uint64_t* keys, int64_t n, uint64_t key) {
  return count_equal(keys, n, key);
}

// The same for keys that are not sorted, of which only a few are distinct: counting each of them
// is faster than sorting. Returns 0 if there are more, and changes nothing then.
template <class Key>
int64_t count_few_keys(Key* keys, int64_t n, Key* counts) {
  constexpr int64_t kFew = 4, kFirst = 256;
  std::vector<Key> found;
  for (int64_t i = 0; i < std::min(n, kFirst); ++i) {
    if (std::find(found.begin(), found.end(), keys[i]) != found.end()) continue;
    if (std::ssize(found) == kFew) return 0;
    found.push_back(keys[i]);
  }
  std::sort(found.begin(), found.end());
  int64_t n_counted = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const int64_t count = count_key(keys, n, found[i]);
    counts[i] = static_cast<Key>(count);
    n_counted += count;
  }
  if (n_counted < n) return 0;
  std::copy(found.begin(), found.end(), keys);
  return std::ssize(found);
}

// Size of a bin. A value that occurs more often is heavy, and has its own bin: with H of them, size
// = (sum of the light counts) / (max_bins - H). The more values are heavy, the smaller is the size;
// H < max_bins, since there are more values than bins.
template <class Key>
double find_bin_size(const Key* counts, int64_t m, int max_bins) {
  int64_t n_heavy = 0;
  auto n_light = std::accumulate(counts, counts + m, int64_t{0});
  for (;;) {
    const double size = static_cast<double>(n_light) / static_cast<double>(max_bins - n_heavy);
    const auto most = static_cast<Key>(size);
    int64_t n_heavier = 0;
    n_light = 0;
    for (int64_t i = 0; i < m; ++i) {
      n_heavier += counts[i] > most;
      n_light += counts[i] > most ? 0 : static_cast<int64_t>(counts[i]);
    }
    if (n_heavier == n_heavy) return size;
    n_heavy = n_heavier;
  }
}

// Heavy values may split a bin: merges neighbouring bins, small ones first.
template <class Key>
void join_bins(const Key* counts, int64_t m, int max_bins, std::vector<int64_t>& firsts) {
  if (std::ssize(firsts) <= max_bins) return;
  std::vector<int64_t> sizes;
  for (size_t b = 0; b < firsts.size(); ++b) {
    const int64_t end = b + 1 < firsts.size() ? firsts[b + 1] : m;
    sizes.push_back(std::accumulate(counts + firsts[b], counts + end, int64_t{0}));
  }
  while (std::ssize(firsts) > max_bins) {
    int64_t left = 0;
    for (int64_t b = 1; b + 1 < std::ssize(sizes); ++b)
      if (sizes[b] + sizes[b + 1] < sizes[left] + sizes[left + 1]) left = b;
    sizes[left] += sizes[left + 1];
    sizes.erase(sizes.begin() + left + 1);
    firsts.erase(firsts.begin() + left + 1);
  }
}

// The first value of each bin, of m ascending ones that occur counts[i] times; at most one count is
// 0.
template <class Key>
std::vector<int64_t> choose_bins(const Key* counts, int64_t m, int max_bins) {
  std::vector<int64_t> firsts;
  if (m <= max_bins) {
    firsts.resize(m);
    std::iota(firsts.begin(), firsts.end(), int64_t{0});
    return firsts;
  }
  // The bin of a light value follows from the middle of its places in the order: floor(middle /
  // size). The division is skipped if the result is clear.
  const double size = find_bin_size(counts, m, max_bins);
  const auto most = static_cast<Key>(size);
  bool was_heavy = true;
  int64_t n_before = 0;
  double bin = 0.0, same_below = 0.0;
  for (int64_t i = 0; i < m; ++i) {
    const bool is_heavy = counts[i] > most;
    const int64_t n_light = is_heavy ? 0 : static_cast<int64_t>(counts[i]);
    const double middle = static_cast<double>(2 * n_before + n_light) / 2;
    n_before += n_light;
    double next = bin;
    if (middle >= same_below) {
      next = std::floor(middle / size);
      same_below = (next + 1) * size * (1 - 1e-9);
    }
    if (next != bin || is_heavy || was_heavy) firsts.push_back(i);
    bin = next;
    was_heavy = is_heavy;
  }
  join_bins(counts, m, max_bins, firsts);
  return firsts;
}

// Halfway between two values: low < cut <= high, even for adjacent floating-point numbers.
double cut_between(double low, double high) {
  const double middle = low / 2 + high / 2;  // their sum could overflow
  return low < middle && middle <= high ? middle : high;
}

// Cuts between m ascending values that occur counts[i] times.
template <class Key>
std::vector<double> cut_keys(const Key* keys, const Key* counts, int64_t m, int max_bins) {
  std::vector<double> cuts;
  for (const int64_t first : choose_bins(counts, m, max_bins))
    if (first > 0) cuts.push_back(cut_between(to_number(keys[first - 1]), to_number(keys[first])));
  return cuts;
}

ColumnCuts join_cuts(const std::vector<std::vector<double>>& by_column) {
  ColumnCuts cuts;
  for (const std::vector<double>& of_column : by_column) {
    cuts.counts.push_back(std::ssize(of_column));
    cuts.values.insert(cuts.values.end(), of_column.begin(), of_column.end());
  }
  return cuts;
}

// About this many numbers are copied at once: the same number of columns per thread, at least one.
constexpr int64_t kCopiedNumbers = 1 << 22;
constexpr int64_t kRowsTogether = 256;

}  // namespace

template <class Value>
ColumnCuts cut_columns(const Value* values, int64_t n_columns, const int64_t* rows, int64_t n_rows,
                       int max_bins, int n_threads, Stop& stop) {
  using Key = KeyOf<Compared<Value>>;
  const int64_t n_fitting = kCopiedNumbers / std::max<int64_t>(n_rows, 1);
  const int64_t n_each = std::max<int64_t>(n_fitting / std::max(n_threads, 1), 1);
  const int64_t n_at_once = std::min(n_each * std::max(n_threads, 1), n_columns);
  LargeVector<Key> block(n_at_once * n_rows);  // column after column
  std::vector<std::vector<double>> cuts(n_columns);
  for (int64_t begin = 0; begin < n_columns; begin += n_at_once) {
    const int64_t n_block = std::min(n_at_once, n_columns - begin);
    parallel_for_pieces(n_rows, kRowsTogether, n_threads, stop, [&](int64_t first, int64_t end) {
      for (int64_t c = 0; c < n_block; ++c)
        for (int64_t i = first; i < end; ++i) {
          const Value* row = values + (rows == nullptr ? i : rows[i]) * n_columns + begin;
          block[c * n_rows + i] = to_key(static_cast<Compared<Value>>(row[c]));
        }
    });
    parallel_for_each_thread(n_block, n_threads, stop, [&] {
      return [&, memory = LargeVector<Key>(n_rows)](int64_t c) mutable {
        stop.check();
        Key *keys = block.data() + c * n_rows, *scratch = memory.data();
        int64_t m = count_few_keys(keys, n_rows, scratch);
        if (m == 0) {
          sort_keys(keys, scratch, n_rows);
          m = count_keys(keys, n_rows, scratch);
        }
        if (m > 0 && keys[m - 1] == kNotFinite<Key>) --m;
        cuts[begin + c] = cut_keys(keys, scratch, m, max_bins);
      };
    });
  }
  return join_cuts(cuts);
}

template ColumnCuts cut_columns(const float*, int64_t, const int64_t*, int64_t, int, int, Stop&);
template ColumnCuts cut_columns(const double*, int64_t, const int64_t*, int64_t, int, int, Stop&);
template ColumnCuts cut_columns(const uint8_t*, int64_t, const int64_t*, int64_t, int, int, Stop&);

ColumnCuts cut_attributes(const AttributeValues& entries, int max_bins, int n_threads, Stop& stop) {
  std::vector<uint8_t> is_cut(entries.n_attributes, 0);
  std::vector<int64_t> n_absent(entries.n_attributes, entries.n_positions);
  std::vector<int64_t> offsets(entries.n_attributes + 1, 0);
  for (int64_t e = 0; e < entries.n_entries; ++e) {
    if (e % kCopiedNumbers == 0) stop.check();
    const double value = entries.values[e];
    const int32_t attribute = entries.attributes[e];
    is_cut[attribute] |= std::isfinite(value) && value != 0 && value != 1;
    n_absent[attribute] -= value != 0;
    offsets[attribute + 1] += value != 0;
  }
  if (std::any_of(n_absent.begin(), n_absent.end(), [](int64_t n) { return n < 0; }))
    throw std::invalid_argument("an attribute has more entries than there are positions");
  // Attributes that are cut have one more key: that of 0.
  for (int64_t a = 0; a < entries.n_attributes; ++a)
    offsets[a + 1] = offsets[a] + (is_cut[a] ? offsets[a + 1] + 1 : 0);
  LargeVector<uint64_t> keys_of_all(offsets.back());
  std::vector<int64_t> next(offsets.begin(), offsets.end() - 1);
  for (int64_t e = 0; e < entries.n_entries; ++e) {
    if (e % kCopiedNumbers == 0) stop.check();
    const int32_t attribute = entries.attributes[e];
    if (is_cut[attribute] && entries.values[e] != 0)
      keys_of_all[next[attribute]++] = to_key(entries.values[e]);
  }
  std::vector<std::vector<double>> cuts(entries.n_attributes);
  parallel_for_each_thread(entries.n_attributes, n_threads, stop, [&] {
    return [&, memory = LargeVector<uint64_t>()](int64_t a) mutable {
      stop.check();
      if (!is_cut[a]) return;
      const int64_t n = offsets[a + 1] - offsets[a];
      if (std::ssize(memory) < n) memory.resize(n);
      uint64_t *keys = keys_of_all.data() + offsets[a], *scratch = memory.data();
      const uint64_t zero = to_key(0.0);
      keys[n - 1] = zero;
      sort_keys(keys, scratch, n);
      const int64_t n_finite = std::lower_bound(keys, keys + n, kNotFinite<uint64_t>) - keys;
      const int64_t m = count_keys(keys, n_finite, scratch);
      scratch[std::lower_bound(keys, keys + m, zero) - keys] = n_absent[a];
      cuts[a] = cut_keys(keys, scratch, m, max_bins);
    };
  });
  return join_cuts(cuts);
}

}  // namespace hedgerow
