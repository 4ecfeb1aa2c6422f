#include "trees/histogram.hpp"

#include <algorithm>

#include "simd.hpp"

namespace hedgerow {
namespace {

constexpr size_t kAhead = 8;             // examples whose rows are fetched early
constexpr size_t kBatch = 1 << 14;       // examples between two checks of Stop
constexpr int64_t kBlockBins = 1 << 13;  // bins that are filled in one pass: 64 KiB

}  // namespace

HistogramBuilder::HistogramBuilder(const TreeData& data, Stop& stop)
    : data_(data),
      stop_(stop),
      slots_(static_cast<size_t>(data.n_slots()) * data.n_offsets()),
      scratch_(static_cast<size_t>(data.bins().n_dense) * data.n_offsets()) {}

void HistogramBuilder::fill(std::span<const Example> examples, const Histogram* of_parent,
                            Histogram& histogram) {
  histogram.full.assign(data_.n_full_bins(), Sum{});
  histogram.outside.assign(data_.n_offsets(), Sum{});
  for (size_t first = 0; first < examples.size(); first += kBatch) {
    stop_.check();
    const auto batch = examples.subspan(first, std::min(kBatch, examples.size() - first));
    add_full(batch, histogram.full);
    if (data_.has_sparse()) add_sparse(batch, histogram.outside);
  }
  if (of_parent != nullptr)
    take_slots_of(of_parent->sparse, histogram.sparse);
  else
    take_slots(histogram.sparse);
}

// The slots that have examples.
void HistogramBuilder::take_slots(std::vector<SlotSum>& out) {
  out.clear();
  for (size_t place = 0; place < slots_.size(); ++place) {
    if (slots_[place].is_empty()) continue;
    out.push_back({static_cast<int32_t>(place), slots_[place]});
    slots_[place] = Sum{};
  }
}

void HistogramBuilder::take_slots_of(const std::vector<SlotSum>& parent,
                                     std::vector<SlotSum>& out) {
  out.resize(parent.size());
  for (size_t i = 0; i < parent.size(); ++i) {
    Sum& sum = slots_[parent[i].place];
    out[i] = {parent[i].place, sum};
    sum = Sum{};
  }
}

void subtract(Histogram& of_parent, Histogram& counted) {
  for (size_t i = 0; i < counted.full.size(); ++i) of_parent.full[i] -= counted.full[i];
  for (size_t o = 0; o < counted.outside.size(); ++o) of_parent.outside[o] -= counted.outside[o];
  size_t n_counted = 0, n_rest = 0;
  for (size_t i = 0; i < counted.sparse.size(); ++i) {
    const SlotSum slot = counted.sparse[i];
    const SlotSum rest{slot.place, of_parent.sparse[i].sum - slot.sum};
    counted.sparse[n_counted] = slot;
    of_parent.sparse[n_rest] = rest;
    n_counted += !slot.sum.is_empty();
    n_rest += !rest.sum.is_empty();
  }
  counted.sparse.resize(n_counted);
  of_parent.sparse.resize(n_rest);
}

// Features go in blocks whose bins stay in the cache.
void HistogramBuilder::add_full(std::span<const Example> examples, std::vector<Sum>& sums) {
  const auto& features = data_.full_features();
  size_t first = 0;
  while (first < features.size()) {
    size_t last = first + 1;
    while (last < features.size() && features[last].base - features[first].base < kBlockBins)
      ++last;
    for (const Example& example : examples) {
      const uint8_t* window = data_.room().window(data_.bins(), example.position, scratch_.data());
      const Sum amount(example);
      for (size_t f = first; f < last; ++f)
        sums[features[f].base + window[features[f].where]] += amount;
    }
    first = last;
  }
}

void HistogramBuilder::add_sparse(std::span<const Example> examples, std::vector<Sum>& outside) {
  const int64_t* offsets = data_.entry_offsets();
  const int32_t* entries = data_.entries();
  const int before = data_.windows().before;
  const int64_t n_slots = data_.n_slots();
  for (size_t i = 0; i < examples.size(); ++i) {
    const Example& example = examples[i];
    if (i + kAhead < examples.size())
      HEDGEROW_PREFETCH(entries + offsets[examples[i + kAhead].position]);
    const Sum amount(example);
    for (int o = 0; o < data_.n_offsets(); ++o) {
      if (!data_.room().holds(example.position, o - before)) {
        outside[o] += amount;
        continue;
      }
      const int64_t row = example.position + o - before;
      Sum* slots = slots_.data() + o * n_slots;
      const int32_t* end = entries + offsets[row + 1];
      for (const int32_t* entry = entries + offsets[row]; entry < end;
           entry += TreeData::kEntriesTogether)
        for (int i = 0; i < TreeData::kEntriesTogether; ++i) slots[entry[i]] += amount;
    }
  }
  for (int o = 0; o < data_.n_offsets(); ++o) slots_[o * n_slots + data_.filler()] = Sum{};
}

}  // namespace hedgerow
