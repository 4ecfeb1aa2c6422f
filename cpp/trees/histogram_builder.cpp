#include "trees/histogram_builder.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <tuple>

#include "simd.hpp"
#include "trees/slot_bits.hpp"

namespace hedgerow {
namespace {

constexpr size_t kAhead = 16;               // examples whose entries are fetched early
constexpr int64_t kBatch = 1 << 11;         // examples whose entries are counted at a time
constexpr int64_t kWorthSharing = 1 << 16;  // additions that make another thread worthwhile
constexpr int64_t kShared = 1 << 12;        // examples that a thread takes at a time

// Examples with the bytes of their windows, which are read in place, or copied to `edges_` where a
// window ends early. Below the root of a tree, rows and sums are scattered in memory. While the
// examples of one batch are counted, those of the next are fetched into the second-level cache:
// requests for the first-level cache, of which fewer can be under way, would keep additions
// waiting. Wide rows are counted in several runs of columns: batches are then larger, as each run
// brings its histogram back into the first-level cache. They are too large for the second-level
// cache, so the next one is not fetched.
template <class AnySum>
class Batch {
 public:
  explicit Batch(const TreeData& data)
      : data_(data),
        width_(static_cast<size_t>(data.bins().n_dense) * data.n_offsets()),
        has_one_run_(data.full_runs().size() == 1),
        n_soon_(has_one_run_ ? 4 : 16) {}

  // The number of examples in the next batch, if n_left are left.
  int64_t next_size(int64_t n_left) const {
    return std::min<int64_t>(n_left, has_one_run_ ? kMaxSize / 4 : kMaxSize);
  }
  bool has_one_run() const { return has_one_run_; }

  void read(const NodeExamples& examples) {
    const std::span<const int32_t> positions = examples.positions;
    size_ = positions.size();
    size_t n_edges = 0;
    for (size_t i = 0; i < size_; ++i) {
      const int32_t position = positions[i];
      amounts_[i] = examples.sum(static_cast<int64_t>(i));
      if (data_.room().holds_all(position)) {
        rows_[i] = data_.first_of_window(position);
      } else {
        rows_[i] = nullptr;
        ++n_edges;
      }
    }
    if (n_edges == 0) return;
    if (edges_.size() < n_edges * width_) edges_.resize(n_edges * width_);
    uint8_t* next = edges_.data();
    for (size_t i = 0; i < size_; ++i) {
      if (rows_[i] != nullptr) continue;
      data_.room().fill_window(data_.bins(), positions[i], next);
      rows_[i] = next;
      next += width_;
    }
  }

  // `next`: the next batch, to be fetched.
  void count(const TreeData::FullRun& run, const NodeExamples& next, AnySum* sums) const {
    const size_t n_next = next.positions.size();
    for (size_t i = 0; i < size_; i += kTogether) {
      for (size_t ahead = i; ahead < std::min(i + kTogether, n_next); ++ahead)
        fetch(next, ahead, run);
      add(run, i, std::min(i + kTogether, size_), sums);
    }
  }

 private:
  static constexpr size_t kTogether = 16;  // fetched at a time
  static constexpr size_t kMaxSize = 1 << 11;

  // Always inlined: compilers may drop a call that has no effect known to them.
  HEDGEROW_INLINE void fetch(const NodeExamples& examples, size_t i,
                             const TreeData::FullRun& run) const {
    const BinTable& bins = data_.bins();
    const int64_t position = examples.positions[i];
    const int64_t first = std::max<int64_t>(position - data_.windows().before, 0);
    const uint8_t* row = bins.dense + first * bins.n_dense + run.where;
    HEDGEROW_PREFETCH_FAR(row);
    HEDGEROW_PREFETCH_FAR(row + run.n_features - 1);  // it may be in the next cache line
    if (!examples.are_in_order) HEDGEROW_PREFETCH_FAR(examples.sums + position);
  }

  void add(const TreeData::FullRun& run, size_t begin, size_t end, AnySum* sums) const {
    const size_t n = run.n_features, stride = run.stride;
    for (size_t i = begin; i < end; ++i) {
      if (i + n_soon_ < size_) {
        const uint8_t* soon = rows_[i + n_soon_] + run.where;
        HEDGEROW_PREFETCH(soon);
        HEDGEROW_PREFETCH(soon + n - 1);
      }
      const uint8_t* row = rows_[i] + run.where;
      const AnySum amount = amounts_[i];
      AnySum *a = sums, *b = a + stride, *c = b + stride, *d = c + stride;
      size_t f = 0;
      for (; f + 4 <= n; f += 4) {
        a[row[f]] += amount;
        b[row[f + 1]] += amount;
        c[row[f + 2]] += amount;
        d[row[f + 3]] += amount;
        a += 4 * stride, b += 4 * stride, c += 4 * stride, d += 4 * stride;
      }
      for (; f < n; ++f, a += stride) a[row[f]] += amount;
    }
  }

  const TreeData& data_;
  size_t width_;
  bool has_one_run_;
  size_t n_soon_;  // a row comes into the first-level cache when it is this many examples ahead
  size_t size_ = 0;
  std::array<const uint8_t*, kMaxSize> rows_;
  std::array<AnySum, kMaxSize> amounts_;
  std::vector<uint8_t> edges_;
};

// Adds examples to the slots at which they have entries, `together` entries at a time.
template <int together, class AnySum>
void count_slots(const TreeData& data, const NodeExamples& examples, AnySum* slots,
                 std::vector<AnySum>& outside) {
  const std::span<const int32_t> positions = examples.positions;
  const int64_t* offsets = data.entry_offsets();
  const int32_t* entries = data.entries();
  const Reach& reach = data.windows();
  const int n_offsets = data.n_offsets();
  const int64_t n_slots = data.n_slots();
  for (size_t i = 0; i < positions.size(); ++i) {
    const int32_t position = positions[i];
    if (i + kAhead < positions.size()) HEDGEROW_PREFETCH(entries + offsets[positions[i + kAhead]]);
    const AnySum amount = examples.sum(static_cast<int64_t>(i));
    const bool is_whole = data.room().holds_all(position);
    AnySum* of_offset = slots;
    for (int o = 0; o < n_offsets; ++o, of_offset += n_slots) {
      const int offset = reach.offset(o);
      if (!is_whole && !data.room().holds(position, offset)) {
        outside[o] += amount;
        continue;
      }
      const int64_t row = data.room().row(position, offset);
      const int32_t* end = entries + offsets[row + 1];
      for (const int32_t* entry = entries + offsets[row]; entry < end; entry += together)
        for (int e = 0; e < together; ++e) of_offset[entry[e]] += amount;
    }
  }
  for (int o = 0; o < n_offsets; ++o) slots[o * n_slots + data.filler()] = AnySum{};
}

// The same where entries are bits; windows that end early are counted by their lists.
template <class AnySum>
void count_bits(const TreeData& data, const NodeExamples& examples, AnySum* slots,
                std::vector<AnySum>& outside) {
  if (data.n_offsets() == 1) return count_slot_bits(data.slot_bits(), examples, slots);
  const std::span<const int32_t> positions = examples.positions;
  std::array<int32_t, kBatch> sorted;
  const auto end =
      std::partition_copy(positions.begin(), positions.end(), sorted.begin(), sorted.rbegin(),
                          [&](int32_t position) { return data.room().holds_all(position); })
          .first;
  const auto n_whole = end - sorted.begin(), n_others = std::ssize(positions) - n_whole;
  const auto n = static_cast<size_t>(n_whole);
  count_slot_bits(data.slot_bits(), {{sorted.data(), n}, examples.sums}, slots);
  if (n_others > 0)
    count_slots<1>(data, {{sorted.end() - n_others, sorted.end()}, examples.sums}, slots, outside);
}

}  // namespace

template <class AnySum>
BinCounter<AnySum>::BinCounter(const TreeData& data, Crew& crew, Stop& stop)
    : data_(data), crew_(crew), stop_(stop), slots_(1), windows_(data, crew, stop) {
  // Bits without a slot are never set.
  slots_[0].resize(
      std::max<int64_t>(int64_t{data.n_slots()} * data.n_offsets(), 64 * data.n_slot_words()));
}

template <class AnySum>
void BinCounter<AnySum>::fill(const NodeExamples& examples, const BinSums<AnySum>* of_parent,
                              BinSums<AnySum>& histogram) {
  if (windows_.suits(std::ssize(examples.positions))) {
    windows_.read(examples, histogram.outside);
    windows_.count_full(histogram.outside, histogram.full);
    if (data_.has_sparse()) windows_.count_sparse(slots_[0]);
  } else {
    fill_full(examples, histogram.full);
    histogram.outside.assign(data_.n_offsets(), AnySum{});
    if (data_.has_sparse())
      fill_sparse(examples, histogram.outside);
    else if (data_.full_may_miss() && data_.n_offsets() > 1)
      fill_outside(examples, histogram.outside);
  }
  if (of_parent != nullptr)
    take_slots_of(of_parent->sparse, histogram.sparse);
  else
    take_slots(histogram.sparse);
}

// Threads share the runs, or, if there are few, the examples.
template <class AnySum>
void BinCounter<AnySum>::fill_full(const NodeExamples& examples, std::vector<AnySum>& sums) {
  const auto& runs = data_.full_runs();
  const auto n_runs = static_cast<int64_t>(runs.size());
  const auto n_bins = static_cast<size_t>(data_.n_full_bins());
  sums.resize(n_bins);
  const auto n_examples = std::ssize(examples.positions);
  const int64_t n_additions = n_examples * data_.n_full_additions();
  const int64_t n_threads = crew_.n_pieces(n_additions / kWorthSharing);
  const int64_t n_parts = std::min(n_threads, n_runs);  // of the runs
  // Separate counts have to be added up.
  const int64_t most_pieces = n_additions / (4 * std::max<int64_t>(data_.n_full_bins(), 1)) + 1;
  const int64_t n_pieces =
      n_parts == 0 ? 0 : std::min((n_threads + n_parts - 1) / n_parts, most_pieces);
  while (std::ssize(apart_) + 1 < n_pieces) apart_.emplace_back(n_bins);
  std::deque<PieceQueue> queues;  // of each part
  for (int64_t part = 0; part < n_parts; ++part)
    queues.emplace_back(n_examples, n_pieces > 1 ? kShared : n_examples);
  // If most rows are read, the processor prefetches them by itself.
  const bool fetches = 2 * n_examples < data_.bins().n_positions;
  crew_.share(n_parts * n_pieces, [&](int64_t task) {
    const int64_t part = task % n_parts, piece = task / n_parts;
    const std::span those(runs.data() + n_runs * part / n_parts,
                          runs.data() + n_runs * (part + 1) / n_parts);
    AnySum* out = piece == 0 ? sums.data() : apart_[piece - 1].data();
    const TreeData::FullRun& last = those.back();
    std::fill(out + those.front().base, out + last.base + last.n_features * last.stride, AnySum{});
    const auto batch = std::make_unique<Batch<AnySum>>(data_);
    const bool fetches_next = fetches && batch->has_one_run();
    for (auto [begin, end] = queues[part].take(); begin < end;) {
      stop_.check();
      const int64_t end_batch = begin + batch->next_size(end - begin);
      batch->read(examples.part(begin, end_batch));
      begin = end_batch;
      if (begin == end) std::tie(begin, end) = queues[part].take();
      const int64_t n_next = fetches_next ? batch->next_size(end - begin) : 0;
      const NodeExamples next = examples.part(begin, begin + n_next);
      for (const TreeData::FullRun& run : those) batch->count(run, next, out + run.base);
    }
  });
  if (n_pieces <= 1) return;
  crew_.share_pieces(static_cast<int64_t>(n_bins), 1 << 11, [&](int64_t begin, int64_t end) {
    for (int64_t piece = 1; piece < n_pieces; ++piece)
      for (int64_t i = begin; i < end; ++i) sums[i] += apart_[piece - 1][i];
  });
}

template <class AnySum>
void BinCounter<AnySum>::fill_outside(const NodeExamples& examples,
                                      std::vector<AnySum>& outside) const {
  const Reach& reach = data_.windows();
  for (const int32_t position : examples.positions) {
    if (data_.room().holds_all(position)) continue;
    for (int o = 0; o < data_.n_offsets(); ++o)
      if (!data_.room().holds(position, reach.offset(o))) outside[o] += examples.sums[position];
  }
}

template <class AnySum>
void BinCounter<AnySum>::fill_sparse(const NodeExamples& examples, std::vector<AnySum>& outside) {
  const auto n_examples = std::ssize(examples.positions);
  const auto n_places = static_cast<int64_t>(slots_[0].size());
  const int64_t n_additions = n_examples * data_.n_sparse_additions();
  const int64_t n_pieces =
      crew_.n_pieces(std::min(n_additions / kWorthSharing, n_additions / (4 * n_places)));
  while (static_cast<int64_t>(slots_.size()) < n_pieces) slots_.emplace_back(n_places);
  std::vector<std::vector<AnySum>> all_outside(n_pieces, std::vector<AnySum>(outside.size()));
  const auto count = data_.n_slot_words() > 0        ? &count_bits<AnySum>
                     : data_.entries_together() == 1 ? &count_slots<1, AnySum>
                     : data_.entries_together() == 2 ? &count_slots<2, AnySum>
                                                     : &count_slots<4, AnySum>;
  PieceQueue queue(n_examples, kBatch);
  crew_.share(n_pieces, [&](int64_t piece) {
    for (auto [begin, end] = queue.take(); begin < end; std::tie(begin, end) = queue.take()) {
      stop_.check();
      count(data_, examples.part(begin, end), slots_[piece].data(), all_outside[piece]);
    }
  });
  for (const std::vector<AnySum>& piece : all_outside)
    for (size_t o = 0; o < outside.size(); ++o) outside[o] += piece[o];
  if (n_pieces == 1) return;
  crew_.share_pieces(n_places, 1 << 12, [&](int64_t begin, int64_t end) {
    for (int64_t piece = 1; piece < n_pieces; ++piece)
      for (int64_t i = begin; i < end; ++i) {
        slots_[0][i] += slots_[piece][i];
        slots_[piece][i] = AnySum{};
      }
  });
}

// The slots that have examples.
template <class AnySum>
void BinCounter<AnySum>::take_slots(std::vector<SlotSum<AnySum>>& out) {
  out.clear();
  for (size_t place = 0; place < slots_[0].size(); ++place) {
    if (slots_[0][place].is_empty()) continue;
    out.push_back({static_cast<int32_t>(place), slots_[0][place]});
    slots_[0][place] = AnySum{};
  }
}

template <class AnySum>
void BinCounter<AnySum>::take_slots_of(const std::vector<SlotSum<AnySum>>& parent,
                                       std::vector<SlotSum<AnySum>>& out) {
  out.resize(parent.size());
  for (size_t i = 0; i < parent.size(); ++i) {
    AnySum& sum = slots_[0][parent[i].place];
    out[i] = {parent[i].place, sum};
    sum = AnySum{};
  }
}

HistogramBuilder::HistogramBuilder(const TreeData& data, Crew& crew, Stop& stop, bool is_wide)
    : counter_(std::in_place_type<BinCounter<Sum>>, data, crew, stop) {
  if (is_wide) counter_.emplace<BinCounter<WideSum>>(data, crew, stop);
}

std::unique_ptr<Histogram> HistogramBuilder::count(const NodeExamples& examples,
                                                   const Histogram* of_parent) {
  return std::visit(
      [&]<class AnySum>(BinCounter<AnySum>& counter) {
        std::unique_ptr<Histogram> histogram;
        if (idle_.empty()) {
          histogram = std::make_unique<Histogram>(BinSums<AnySum>{});
        } else {
          histogram = std::move(idle_.back());
          idle_.pop_back();
        }
        auto& sums = std::get<BinSums<AnySum>>(*histogram);
        counter.fill(examples,
                     of_parent == nullptr ? nullptr : &std::get<BinSums<AnySum>>(*of_parent), sums);
        sums.contexts.clear();  // of its last use
        return histogram;
      },
      counter_);
}

void HistogramBuilder::give_back(std::unique_ptr<Histogram> histogram) {
  if (histogram != nullptr) idle_.push_back(std::move(histogram));
}

}  // namespace hedgerow
