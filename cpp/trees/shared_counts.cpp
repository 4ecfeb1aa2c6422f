#include "trees/shared_counts.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <variant>

namespace hedgerow {
namespace {

template <class AnySum>
void append_sums(std::span<const AnySum> sums, std::vector<int64_t>& counts) {
  static_assert(sizeof(AnySum) % sizeof(int64_t) == 0);
  if (sums.empty()) return;
  const size_t first = counts.size();
  counts.resize(first + sums.size_bytes() / sizeof(int64_t));
  std::memcpy(counts.data() + first, sums.data(), sums.size_bytes());
}

template <class AnySum>
void read_sum(const int64_t*& counts, AnySum& sum) {
  std::array<int64_t, sizeof(AnySum) / sizeof(int64_t)> words;
  std::copy_n(counts, words.size(), words.begin());
  sum = std::bit_cast<AnySum>(words);
  counts += words.size();
}

template <class AnySum>
void add_sums_of_node(const TreeData& data, const BinSums<AnySum>& sums, const WideSum* total,
                      std::vector<int64_t>& counts) {
  append_sums<AnySum>(sums.full, counts);
  append_sums<AnySum>(sums.outside, counts);
  if (total == nullptr) {
    for (const SlotSum<AnySum>& slot : sums.sparse) append_sums<AnySum>({&slot.sum, 1}, counts);
    return;
  }
  std::vector<AnySum> slots(int64_t{data.n_slots()} * data.n_offsets() + 1);
  for (const SlotSum<AnySum>& slot : sums.sparse) slots[slot.place] = slot.sum;
  slots.back() = AnySum(*total);
  append_sums<AnySum>(slots, counts);
}

template <class AnySum>
const int64_t* read_sums_of_node(const TreeData& data, const int64_t* counts, BinSums<AnySum>& sums,
                                 WideSum* total) {
  for (std::vector<AnySum>* some : {&sums.full, &sums.outside})
    for (AnySum& sum : *some) read_sum(counts, sum);
  if (total == nullptr) {
    for (SlotSum<AnySum>& slot : sums.sparse) read_sum(counts, slot.sum);
    return counts;
  }
  sums.sparse.clear();
  const int64_t n_places = int64_t{data.n_slots()} * data.n_offsets();
  AnySum sum;
  for (int64_t place = 0; place < n_places; ++place) {
    read_sum(counts, sum);
    if (!sum.is_empty()) sums.sparse.push_back({static_cast<int32_t>(place), sum});
  }
  read_sum(counts, sum);
  *total = sum;
  return counts;
}

}  // namespace

void add_counts(const TreeData& data, const OpenNode& node, bool is_root,
                std::vector<int64_t>& counts) {
  const WideSum* total = is_root ? &node.total : nullptr;
  std::visit([&](const auto& sums) { add_sums_of_node(data, sums, total, counts); },
             *node.histogram);
}

const int64_t* read_counts(const TreeData& data, const int64_t* counts, bool is_root,
                           OpenNode& node) {
  WideSum* total = is_root ? &node.total : nullptr;
  return std::visit([&](auto& sums) { return read_sums_of_node(data, counts, sums, total); },
                    *node.histogram);
}

}  // namespace hedgerow
