#include "trees/histogram.hpp"

#include <algorithm>

#include "simd.hpp"

namespace hedgerow {
namespace {

constexpr size_t kAhead = 8;             // examples whose rows are fetched early
constexpr size_t kBatch = 1 << 14;       // examples between two looks at the user's wish to stop
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
  histogram.sparse.clear();
  for (size_t first = 0; first < examples.size(); first += kBatch) {
    stop_.check();
    const auto batch = examples.subspan(first, std::min(kBatch, examples.size() - first));
    add_full(batch, histogram.full);
    if (data_.has_sparse()) add_sparse(batch, histogram.outside);
  }
  if (!data_.has_sparse()) return;
  if (of_parent != nullptr) {
    for (const SlotSum& slot : of_parent->sparse) take_slot(slot.place, histogram);
  } else {
    const auto n_places = static_cast<int32_t>(slots_.size());
    for (int32_t place = 0; place < n_places; ++place) take_slot(place, histogram);
  }
}

void HistogramBuilder::take_slot(int32_t place, Histogram& histogram) {
  Sum& sum = slots_[place];
  if (sum.is_empty()) return;
  histogram.sparse.push_back({place, sum});
  sum = Sum{};
}

void subtract(Histogram& histogram, const Histogram& of_some) {
  for (size_t i = 0; i < histogram.full.size(); ++i) histogram.full[i] -= of_some.full[i];
  for (size_t o = 0; o < histogram.outside.size(); ++o) histogram.outside[o] -= of_some.outside[o];
  size_t n_left = 0;
  auto some = of_some.sparse.begin();
  for (SlotSum& slot : histogram.sparse) {
    if (some != of_some.sparse.end() && some->place == slot.place) slot.sum -= (some++)->sum;
    if (!slot.sum.is_empty()) histogram.sparse[n_left++] = slot;
  }
  histogram.sparse.resize(n_left);
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
