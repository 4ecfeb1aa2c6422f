#include "trees/data.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <numeric>
#include <stdexcept>

#include "simd.hpp"
#include "trees/tiles.hpp"

namespace hedgerow {
namespace {

constexpr int32_t kRunBins = 1 << 13;      // their sums take 64 KiB
constexpr int64_t kEntriesTask = 1 << 10;  // positions whose entries are read at a time

// Whether a column with this many bins can join a run: little space would be wasted.
bool fits(const TreeData::FullRun& run, int32_t n_bins) {
  const int32_t stride = std::max(run.stride, n_bins);
  const bool is_alike = 2 * std::min(run.stride, n_bins) >= stride || stride <= 16;
  return is_alike && (run.n_features + 1) * stride <= kRunBins;
}

}  // namespace

Room::Room(const Windows& windows, int64_t n_positions) : reach_(windows) {
  if (windows.ancestors > 0) find_ancestors(windows, n_positions);
  if (windows.before == 0 && windows.after == 0) return;
  before_.resize(n_positions);
  after_.resize(n_positions);
  for (int64_t s = 0; s < windows.n_sequences; ++s) {
    const int64_t begin = windows.offsets[s], end = windows.offsets[s + 1];
    for (int64_t t = begin; t < end; ++t) {
      before_[t] = static_cast<uint8_t>(std::min<int64_t>(t - begin, windows.before));
      after_[t] = static_cast<uint8_t>(std::min<int64_t>(end - 1 - t, windows.after));
    }
  }
}

void Room::find_ancestors(const Windows& windows, int64_t n_positions) {
  const int n = windows.ancestors;
  ancestors_.resize(n_positions * n);
  std::vector<int32_t> parents(n_positions, -1);  // among all positions
  for (int64_t s = 0; s < windows.n_sequences; ++s) {
    const int64_t begin = windows.offsets[s], end = windows.offsets[s + 1];
    for (int64_t t = begin; t < end; ++t) {
      const int64_t place = windows.parents == nullptr ? t - begin - 1 : windows.parents[t];
      if (place >= 0) parents[t] = static_cast<int32_t>(begin + place);
    }
  }
  for (int64_t t = 0; t < n_positions; ++t) {
    auto above = static_cast<int32_t>(t);
    for (int i = 0; i < n; ++i) ancestors_[t * n + i] = above = above < 0 ? -1 : parents[above];
  }
}

void Room::fill_window(const BinTable& bins, int64_t position, uint8_t* out) const {
  const int64_t width = bins.n_dense;
  for (int o = 0; o < reach_.n_offsets(); ++o, out += width) {
    const int offset = reach_.offset(o);
    if (holds(position, offset))
      std::copy_n(bins.dense + row(position, offset) * width, width, out);
    else
      std::fill_n(out, width, uint8_t{0});
  }
}

// A task counts some adjacent columns, row by row, for a share of the rows.
BinCounts count_bins(const BinTable& bins, int n_threads, Stop& stop) {
  constexpr int64_t kColumns = 16, kLeastRows = 1 << 14;
  const int64_t n_dense = bins.n_dense;
  BinCounts counts{bins.n_positions, std::vector<int64_t>(n_dense * 256),
                   std::vector<int64_t>(bins.n_attributes)};
  const int64_t n_parts = (n_dense + kColumns - 1) / kColumns;  // of the columns
  const int64_t n_shares = std::clamp<int64_t>(n_threads, 1, 1 + bins.n_positions / kLeastRows);
  std::mutex mutex;
  parallel_for(n_parts * n_shares, n_threads, stop, [&](int64_t task) {
    const int64_t begin = task % n_parts * kColumns, end = std::min(begin + kColumns, n_dense);
    const int64_t share = task / n_parts, last = bins.n_positions * (share + 1) / n_shares;
    std::vector<int64_t> own((end - begin) * 256);
    int64_t t = bins.n_positions * share / n_shares;
    for (const uint8_t* row = bins.dense + t * n_dense; t < last; ++t, row += n_dense) {
      if (t % kLeastRows == 0) stop.check();
      for (int64_t c = begin; c < end; ++c) ++own[(c - begin) * 256 + row[c]];
    }
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < own.size(); ++i) counts.dense[begin * 256 + i] += own[i];
  });
  if (bins.entry_offsets == nullptr) return counts;
  for (int64_t e = 0; e < bins.entry_offsets[bins.n_positions]; ++e)
    counts.missing[bins.attributes[e]] += bins.attribute_bins[e] == 0;
  return counts;
}

TreeData::TreeData(const BinTable& bins, const Windows& windows, const BinCounts* counts,
                   int n_threads, Stop& stop)
    : bins_(bins), windows_(windows), room_(windows, bins.n_positions) {
  transpose(n_threads, stop);
  bins_.columns = by_column_.data();
  bins_.column_stride = bins_.n_positions;
  choose_sparse_columns(counts != nullptr ? *counts : count_bins(bins, n_threads, stop));
  number_slots();
  lay_out_full();
  if (n_slot_words_ == 0) {
    list_entries(n_threads, stop);
    choose_window_bits();
  }
  if (n_slot_words_ > 0) mark_entries(n_threads, stop);
}

// Copies some rows at a time, so that source and target stay in the cache.
void TreeData::transpose(int n_threads, Stop& stop) {
  constexpr int64_t kRows = 256;
  const int64_t n_positions = bins_.n_positions, n_dense = bins_.n_dense;
  by_column_.resize(n_positions * n_dense);
  parallel_for_pieces(n_positions, kRows, n_threads, stop, [&](int64_t begin, int64_t end) {
    copy_bytes(bins_.dense + begin * n_dense, n_dense, end - begin, n_dense,
               by_column_.data() + begin, n_positions);
  });
}

// A dense column is worth listing if at least half of its positions are in one bin.
void TreeData::choose_sparse_columns(const BinCounts& counts) {
  is_full_.assign(bins_.n_columns(), 0);
  may_miss_.assign(bins_.n_columns(), 0);
  first_bins_.assign(bins_.n_columns(), 1);
  column_defaults_.resize(bins_.n_columns());
  std::vector<int64_t> n_usual(bins_.n_dense);  // positions in the default bin
  for (int32_t c = 0; c < bins_.n_dense; ++c) {
    const int64_t* own = counts.dense.data() + int64_t{c} * 256;
    const int64_t* most = std::max_element(own, own + 256);
    column_defaults_[c] = static_cast<uint8_t>(most - own);
    n_usual[c] = *most;
    is_full_[c] = 2 * *most < counts.n_positions;
    may_miss_[c] = own[0] > 0;
    if (own[0] > 0 && column_defaults_[c] != 0) first_bins_[c] = 0;
  }
  choose_slot_bits(n_usual, counts.n_positions);
  for (int32_t c = 0; c < bins_.n_dense; ++c) full_may_miss_ |= is_full_[c] && may_miss_[c];
  for (int32_t a = 0; a < bins_.n_attributes; ++a) {
    column_defaults_[bins_.n_dense + a] = bins_.default_bins[a];
    may_miss_[bins_.n_dense + a] = bins_.default_bins[a] == 0;
  }
  for (int32_t a = 0; a < bins_.n_attributes; ++a)
    if (counts.missing[a] > 0) {
      first_bins_[bins_.n_dense + a] = 0;
      may_miss_[bins_.n_dense + a] = 1;
    }
}

// Bits are faster if there are many entries per word of bits.
constexpr int64_t kLeastEntriesPerWord = 8;

// Columns with few bins are then sparse, even if no bin has half of the positions.
void TreeData::choose_slot_bits(const std::vector<int64_t>& n_usual, int64_t n_positions) {
  constexpr int kFewSlots = 3;
  if (!adds_eight_at_once() || n_offsets() > 1 || bins_.n_attributes > 0) return;
  std::vector<uint8_t> is_full = is_full_;
  int64_t n_slots = 0, n_entries = 0;  // without the filler, which is in no list here
  for (int32_t c = 0; c < bins_.n_dense; ++c) {
    is_full[c] = is_full[c] && n_own_slots(c) > kFewSlots;
    if (is_full[c]) continue;
    n_slots += n_own_slots(c);
    n_entries += n_positions - n_usual[c];
  }
  const int64_t n_words = (n_slots + 63) / 64;
  if (n_entries < kLeastEntriesPerWord * n_words * n_positions) return;
  n_slot_words_ = n_words;
  bits_per_row_ = 64 * n_words;
  is_full_ = std::move(is_full);
}

// Lists are kept: they are used for large nodes, see WindowCounter, and for windows that end early.
void TreeData::choose_window_bits() {
  if (!adds_eight_at_once() || n_offsets() == 1 || windows_.ancestors > 0) return;
  const int64_t n_words = (int64_t{n_slots()} * n_offsets() + 63) / 64;
  const int64_t n_entries = n_offsets() * std::ssize(entries_);
  if (n_slots() % 64 == 0 || n_entries < kLeastEntriesPerWord * n_words * bins_.n_positions) return;
  n_slot_words_ = n_words;
  bits_per_row_ = n_slots();
}

// Bins from the first to the last, except for the default.
int TreeData::n_own_slots(int32_t column) const {
  const uint8_t first = first_bins_[column];
  return bins_.n_bins[column] + 1 - first - (column_defaults_[column] >= first);
}

void TreeData::number_slots() {
  first_slots_.push_back(0);
  for (int32_t c = 0; c < bins_.n_columns(); ++c) {
    if (!is_full_[c]) slot_columns_.insert(slot_columns_.end(), n_own_slots(c), c);
    first_slots_.push_back(static_cast<int32_t>(slot_columns_.size()));
    if (static_cast<int64_t>(slot_columns_.size() + 1) * n_offsets() >
        std::numeric_limits<int32_t>::max())
      throw std::length_error(
          "the sparse columns have too many bins; pass fewer columns or a smaller max_bins");
  }
  slot_columns_.push_back(-1);
}

void TreeData::lay_out_full() {
  int32_t next = -1;  // where the next feature of a run would be
  for (int o = 0; o < n_offsets(); ++o)
    for (int32_t c = 0; c < bins_.n_dense; ++c) {
      if (!is_full_[c]) continue;
      const auto where = static_cast<int32_t>(o * bins_.n_dense + c);
      const int32_t n_own = bins_.n_bins[c] + 1;
      if (where != next || !fits(full_runs_.back(), n_own))
        full_runs_.push_back({where, 0, n_own, 0});
      FullRun& run = full_runs_.back();
      run.stride = std::max(run.stride, n_own);
      ++run.n_features;
      next = where + 1;
      full_features_.push_back({0, c, windows_.offset(o)});
    }
  size_t f = 0;
  for (FullRun& run : full_runs_) {
    run.base = static_cast<int32_t>(n_full_bins_);
    n_full_bins_ += static_cast<int64_t>(run.n_features) * run.stride;
    if (n_full_bins_ > std::numeric_limits<int32_t>::max())
      throw std::length_error("the columns have too many bins; pass a smaller window or max_bins");
    for (int32_t i = 0; i < run.n_features; ++i)
      full_features_[f++].base = run.base + i * run.stride;
  }
}

// Calls list(slot) for the entries of a position; `sparse_dense` are the dense columns that are
// sparse.
template <class List>
void TreeData::for_entries_at(int64_t position, const std::vector<int32_t>& sparse_dense,
                              List list) const {
  const uint8_t* row = bins_.dense + position * bins_.n_dense;
  for (const int32_t c : sparse_dense)
    if (row[c] != column_defaults_[c]) list(slot_of(c, row[c]));
  if (bins_.entry_offsets == nullptr) return;
  for (int64_t e = bins_.entry_offsets[position]; e < bins_.entry_offsets[position + 1]; ++e)
    list(slot_of(bins_.n_dense + bins_.attributes[e], bins_.attribute_bins[e]));
}

std::vector<int32_t> TreeData::find_sparse_dense() const {
  std::vector<int32_t> columns;
  for (int32_t c = 0; c < bins_.n_dense; ++c)
    if (!is_full_[c]) columns.push_back(c);
  return columns;
}

void TreeData::mark_entries(int n_threads, Stop& stop) {
  static_assert(kEntriesTask % 64 == 0);  // so that tasks share no word
  const std::vector<int32_t> sparse_dense = find_sparse_dense();
  const int64_t n_words = (bins_.n_positions * bits_per_row_ + 63) / 64;
  slot_bits_.resize(n_words + SlotBits::kMoreWords);
  parallel_for_pieces(bins_.n_positions, kEntriesTask, n_threads, stop,
                      [&](int64_t begin, int64_t end) {
                        std::fill(slot_bits_.data() + begin * bits_per_row_ / 64,
                                  slot_bits_.data() + (end * bits_per_row_ + 63) / 64, uint64_t{0});
                        for (int64_t t = begin; t < end; ++t)
                          for_entries_at(t, sparse_dense, [&](int32_t slot) {
                            const int64_t bit = t * bits_per_row_ + slot;
                            slot_bits_[bit >> 6] |= uint64_t{1} << (bit & 63);
                          });
                      });
  std::fill(slot_bits_.data() + n_words, slot_bits_.data() + slot_bits_.size(), uint64_t{0});
}

SlotBits TreeData::slot_bits() const {
  const int64_t n_last = int64_t{n_slots()} * n_offsets() % 64;
  const bool all = n_offsets() == 1 || n_last == 0;
  return {slot_bits_.data(), bits_per_row_, windows_.before, n_slot_words_,
          all ? ~uint64_t{0} : (uint64_t{1} << n_last) - 1};
}

void TreeData::list_entries(int n_threads, Stop& stop) {
  const std::vector<int32_t> sparse_dense = find_sparse_dense();
  // Threads first count the entries of their positions, then write them to their places.
  const int64_t n_tasks = (bins_.n_positions + kEntriesTask - 1) / kEntriesTask;
  const auto for_pieces = [&](auto task) {
    parallel_for_pieces(bins_.n_positions, kEntriesTask, n_threads, stop, task);
  };
  std::vector<int64_t> firsts(n_tasks + 1);  // of a task
  entry_offsets_.resize(bins_.n_positions + 1);
  entry_offsets_[0] = 0;
  for_pieces([&](int64_t begin, int64_t end) {
    int64_t n_before = 0, n_entries = 0;
    for (int64_t t = begin; t < end; ++t, n_before = n_entries) {
      for_entries_at(t, sparse_dense, [&](int32_t) { ++n_entries; });
      entry_offsets_[t + 1] = n_entries - n_before;
    }
    firsts[begin / kEntriesTask + 1] = n_entries;
  });
  const int64_t n_entries = std::accumulate(firsts.begin(), firsts.end(), int64_t{0});
  while (entries_together_ > 1 && n_entries < entries_together_ * bins_.n_positions)
    entries_together_ /= 2;
  const auto pad = [&](int64_t n) {
    return (n + entries_together_ - 1) / entries_together_ * entries_together_;
  };
  for_pieces([&](int64_t begin, int64_t end) {
    int64_t n_padded = 0;
    for (int64_t t = begin; t < end; ++t) n_padded += pad(entry_offsets_[t + 1]);
    firsts[begin / kEntriesTask + 1] = n_padded;
  });
  std::partial_sum(firsts.begin(), firsts.end(), firsts.begin());
  entries_.resize(firsts.back());
  for_pieces([&](int64_t begin, int64_t end) {
    int64_t first = firsts[begin / kEntriesTask];
    for (int64_t t = begin; t < end; ++t) {
      int32_t* next = entries_.data() + first;
      first += pad(entry_offsets_[t + 1]);
      for_entries_at(t, sparse_dense, [&](int32_t slot) { *next++ = slot; });
      std::fill(next, entries_.data() + first, filler());
      entry_offsets_[t + 1] = first;
    }
  });
}

// A word of bits takes about as long as this many entries.
int64_t TreeData::n_sparse_additions() const {
  constexpr int64_t kPerWord = 8;
  if (n_slot_words_ > 0) return kPerWord * n_slot_words_;
  return n_offsets() * static_cast<int64_t>(entries_.size()) /
         std::max<int64_t>(bins_.n_positions, 1);
}

uint8_t TreeData::bin_at(int64_t position, int32_t column) const {
  if (column < bins_.n_dense) return this->column(column)[position];
  const int32_t* begin = entries_.data() + entry_offsets_[position];
  const int32_t* end = entries_.data() + entry_offsets_[position + 1];
  const int32_t* found = std::lower_bound(begin, end, first_slots_[column]);
  if (found == end || slot_columns_[*found] != column) return column_defaults_[column];
  return slot_bin(column, *found);
}

}  // namespace hedgerow
