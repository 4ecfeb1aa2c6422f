#include "trees/window_counter.hpp"

#include <algorithm>
#include <span>

#include "simd.hpp"

namespace hedgerow {
namespace {

constexpr int kMaxLanes = 16;  // so the sums of 256 bins fit into the first-level cache
constexpr int64_t kMaxSlots = 1 << 12;
constexpr int64_t kSequencesPerTask = 64;

template <int kLanes, class AnySum>
HEDGEROW_INLINE void add(const AnySum* amounts, AnySum* out) {
#if defined(__GNUC__)
  using Four = uint64_t __attribute__((vector_size(32), aligned(8), may_alias));
  constexpr int kPerFour = sizeof(Four) / sizeof(AnySum);
  for (int i = 0; i < kLanes; i += kPerFour)
    *reinterpret_cast<Four*>(out + i) += *reinterpret_cast<const Four*>(amounts + i);
#else
  for (int i = 0; i < kLanes; ++i) out[i] += amounts[i];
#endif
}

// table[bins[r]] += amounts[r .. r + kLanes - 1]
template <int kLanes, class AnySum>
HEDGEROW_INLINE void add_bins(const uint8_t* bins, int64_t n, const AnySum* amounts,
                              AnySum* table) {
  for (int64_t r = 0; r < n; ++r) add<kLanes>(amounts + r, table + bins[r] * int64_t{kLanes});
}

// The same for all entries of a row, which begin at offsets[r].
template <int kLanes, class AnySum>
HEDGEROW_INLINE void add_entries(const int64_t* offsets, const int32_t* entries, int64_t n,
                                 const AnySum* amounts, AnySum* table) {
  for (int64_t r = 0; r < n; ++r)
    for (int64_t e = offsets[r]; e < offsets[r + 1]; ++e)
      add<kLanes>(amounts + r, table + entries[e] * int64_t{kLanes});
}

template <class AnySum>
HEDGEROW_INLINE void add_bins_of_any(int n_lanes, const uint8_t* bins, int64_t n,
                                     const AnySum* amounts, AnySum* table) {
  if (n_lanes == 4) return add_bins<4>(bins, n, amounts, table);
  if (n_lanes == 8) return add_bins<8>(bins, n, amounts, table);
  if (n_lanes == 12) return add_bins<12>(bins, n, amounts, table);
  add_bins<16>(bins, n, amounts, table);
}

template <class AnySum>
HEDGEROW_INLINE void add_entries_of_any(int n_lanes, const int64_t* offsets, const int32_t* entries,
                                        int64_t n, const AnySum* amounts, AnySum* table) {
  if (n_lanes == 4) return add_entries<4>(offsets, entries, n, amounts, table);
  if (n_lanes == 8) return add_entries<8>(offsets, entries, n, amounts, table);
  if (n_lanes == 12) return add_entries<12>(offsets, entries, n, amounts, table);
  add_entries<16>(offsets, entries, n, amounts, table);
}

// Templates have no clones.
HEDGEROW_CLONES void add_bins(int n_lanes, const uint8_t* bins, int64_t n, const Sum* amounts,
                              Sum* table) {
  add_bins_of_any(n_lanes, bins, n, amounts, table);
}
HEDGEROW_CLONES void add_bins(int n_lanes, const uint8_t* bins, int64_t n, const WideSum* amounts,
                              WideSum* table) {
  add_bins_of_any(n_lanes, bins, n, amounts, table);
}
HEDGEROW_CLONES void add_entries(int n_lanes, const int64_t* offsets, const int32_t* entries,
                                 int64_t n, const Sum* amounts, Sum* table) {
  add_entries_of_any(n_lanes, offsets, entries, n, amounts, table);
}
HEDGEROW_CLONES void add_entries(int n_lanes, const int64_t* offsets, const int32_t* entries,
                                 int64_t n, const WideSum* amounts, WideSum* table) {
  add_entries_of_any(n_lanes, offsets, entries, n, amounts, table);
}

}  // namespace

template <class AnySum>
WindowCounter<AnySum>::WindowCounter(const TreeData& data, Crew& crew, Stop& stop)
    : data_(data),
      crew_(crew),
      stop_(stop),
      gap_(std::max(data.windows().before, data.windows().after)) {
  for (int first = 0; first < data.n_offsets(); first += kMaxLanes) {
    const int n = std::min(data.n_offsets() - first, kMaxLanes);
    lanes_.push_back({first, n, (n + 3) / 4 * 4});
  }
  for (int32_t c = 0; c < data.bins().n_dense; ++c)
    if (data.is_full(c)) full_columns_.push_back(c);
}

// An addition of vectors takes as long as about two of numbers; bits take a third of the time.
template <class AnySum>
bool WindowCounter<AnySum>::suits(int64_t n_examples) const {
  const int64_t gain = data_.n_slot_words() > 0 ? 2 : 6;
  return data_.windows().ancestors == 0 && data_.n_offsets() >= 3 &&
         gain * n_examples >= data_.bins().n_positions &&
         (!data_.has_sparse() || data_.n_slots() <= kMaxSlots);
}

template <class AnySum>
void WindowCounter<AnySum>::read(const NodeExamples& examples, std::vector<AnySum>& outside) {
  const Windows& windows = data_.windows();
  amounts_.resize(data_.bins().n_positions + (windows.n_sequences + 1) * gap_ + kMaxLanes);
  used_.resize(windows.n_sequences);
  crew_.share_pieces(windows.n_sequences, kSequencesPerTask, [&](int64_t begin, int64_t end) {
    stop_.check();
    read_sequences(examples, begin, end);
  });
  rows_.clear();
  outside.assign(data_.n_offsets(), AnySum{});
  for (int64_t s = 0; s < windows.n_sequences; ++s) {
    if (!used_[s]) continue;
    const int64_t begin = windows.offsets[s];
    const AnySum* own = amounts_.data() + begin + (s + 1) * gap_;
    rows_.push_back({begin, windows.offsets[s + 1], own - windows.after});
    add_outside(rows_.back(), outside);
  }
}

template <class AnySum>
void WindowCounter<AnySum>::read_sequences(const NodeExamples& examples, int64_t begin,
                                           int64_t end) {
  const int64_t* offsets = data_.windows().offsets;
  const std::span positions = examples.positions;
  auto next = std::lower_bound(positions.begin(), positions.end(), offsets[begin]);
  for (int64_t s = begin; s < end; ++s) {
    used_[s] = next != positions.end() && *next < offsets[s + 1];
    if (!used_[s]) continue;                         // and the zeros around it are not needed
    AnySum* own = amounts_.data() + (s + 1) * gap_;  // of position 0, if it were in this sequence
    std::fill(own + offsets[s], own + offsets[s + 1], AnySum{});
    for (; next != positions.end() && *next < offsets[s + 1]; ++next)
      own[*next] = examples.sums[*next];
  }
}

template <class AnySum>
void WindowCounter<AnySum>::add_outside(const Rows& rows, std::vector<AnySum>& outside) const {
  const Windows& windows = data_.windows();
  const int64_t length = rows.end - rows.begin;
  const AnySum* own = rows.amounts + windows.after;
  AnySum before, after;
  for (int o = 1; o <= std::max(windows.before, windows.after); ++o) {
    if (o <= length) {
      before += own[o - 1];
      after += own[length - o];
    }
    if (o <= windows.before) outside[windows.before - o] += before;
    if (o <= windows.after) outside[windows.before + o] += after;
  }
}

template <class AnySum>
void WindowCounter<AnySum>::count_full(const std::vector<AnySum>& outside,
                                       std::vector<AnySum>& sums) {
  const auto n_columns = std::ssize(full_columns_), n_parts = std::ssize(lanes_);
  sums.resize(data_.n_full_bins());
  crew_.share(n_columns * n_parts, [&](int64_t task) {
    const int64_t place = task / n_parts;
    const int32_t column = full_columns_[place];
    const Lanes& lanes = lanes_[task % n_parts];
    const int n_bins = data_.bins().n_bins[column] + 1;
    std::vector<AnySum> table(static_cast<size_t>(n_bins) * lanes.n_padded);
    for (const Rows& rows : rows_)
      add_bins(lanes.n_padded, data_.column(column) + rows.begin, rows.end - rows.begin,
               rows.amounts + lanes.first, table.data());
    stop_.check();
    for (int lane = 0; lane < lanes.n; ++lane) {
      const int offset = offset_of(lanes, lane);
      AnySum* out = sums.data() + data_.full_features()[offset * n_columns + place].base;
      for (int bin = 0; bin < n_bins; ++bin) out[bin] = table[bin * lanes.n_padded + lane];
      out[0] += outside[offset];
    }
  });
}

template <class AnySum>
void WindowCounter<AnySum>::count_sparse(std::vector<AnySum>& slots) {
  const int64_t n_slots = data_.n_slots(), n_sequences = std::ssize(rows_);
  const int64_t n_pieces = crew_.n_pieces(n_sequences);
  for (const Lanes& lanes : lanes_) {
    std::vector<std::vector<AnySum>> tables(n_pieces);
    PieceQueue queue(n_sequences, 1);
    crew_.share(n_pieces, [&](int64_t piece) {
      std::vector<AnySum>& table = tables[piece];
      table.resize(n_slots * lanes.n_padded);
      for (int64_t i = queue.take().first; i < n_sequences; i = queue.take().first) {
        stop_.check();
        const Rows& rows = rows_[i];
        add_entries(lanes.n_padded, data_.entry_offsets() + rows.begin, data_.entries(),
                    rows.end - rows.begin, rows.amounts + lanes.first, table.data());
      }
    });
    for (int lane = 0; lane < lanes.n; ++lane) {
      AnySum* out = slots.data() + offset_of(lanes, lane) * n_slots;
      for (const std::vector<AnySum>& table : tables)
        for (int64_t slot = 0; slot < n_slots - 1; ++slot)
          out[slot] += table[slot * lanes.n_padded + lane];
    }
  }
}

template class WindowCounter<Sum>;
template class WindowCounter<WideSum>;

}  // namespace hedgerow
