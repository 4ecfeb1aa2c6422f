#include "string_index.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "random.hpp"
#include "simd.hpp"

namespace hedgerow {
namespace {

constexpr size_t kFirstSlots = 1 << 10;
constexpr int kAtOnce = 32;  // strings that find_all looks up together

constexpr uint64_t kOdd1 = 0x9e3779b97f4a7c15ULL;
constexpr uint64_t kOdd2 = 0xd6e8feb86659fd93ULL;

uint64_t word_at(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

// A fixed function of the bytes, so that behaviour is reproducible. Names are short: up to 16 bytes
// take two words, which overlap if need be, and one round.
uint64_t hash_of(std::string_view string) {
  const char* p = string.data();
  size_t left = string.size();
  uint64_t hash = left * kOdd1;
  for (; left > 16; p += 8, left -= 8) hash = (std::rotl(hash, 29) ^ word_at(p)) * kOdd2;
  uint64_t first = 0, last = 0;
  if (left >= 8) {
    first = word_at(p);
    last = word_at(p + left - 8);
  } else if (left > 0) {
    std::memcpy(&first, p, left);
  }
  hash += (first ^ kOdd2) * kOdd1 + std::rotl((last ^ kOdd1) * kOdd2, 32);
  hash = (hash ^ (hash >> 32)) * kOdd2;
  return hash ^ (hash >> 29);
}

}  // namespace

StringIndex::StringIndex() : slots_(kFirstSlots) {}

// The slot that holds the string, or the empty one where it belongs.
size_t StringIndex::slot_of(std::string_view string, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  for (size_t i = hash & mask;; i = (i + 1) & mask)
    if (slots_[i].id < 0 || (slots_[i].tag == tag && at(slots_[i].id) == string)) return i;
}

int32_t StringIndex::find(std::string_view string) const {
  return slots_[slot_of(string, hash_of(string))].id;
}

// Three passes, each of which prefetches the memory that the next one reads.
void StringIndex::find_some(const std::string_view* strings, int n, int32_t* ids) const {
  const size_t mask = slots_.size() - 1;
  uint64_t hashes[kAtOnce];
  for (int i = 0; i < n; ++i) {
    hashes[i] = hash_of(strings[i]);
    HEDGEROW_PREFETCH(&slots_[hashes[i] & mask]);
  }
  for (int i = 0; i < n; ++i) {
    ids[i] = slots_[hashes[i] & mask].id;
    if (ids[i] >= 0) HEDGEROW_PREFETCH(&offsets_[ids[i]]);
  }
  for (int i = 0; i < n; ++i)
    if (ids[i] >= 0) HEDGEROW_PREFETCH(text_.data() + offsets_[ids[i]]);
  for (int i = 0; i < n; ++i) ids[i] = slots_[slot_of(strings[i], hashes[i])].id;
}

void StringIndex::find_all(const std::string_view* strings, int64_t n, int32_t* ids) const {
  for (int64_t i = 0; i < n; i += kAtOnce)
    find_some(strings + i, static_cast<int>(std::min<int64_t>(kAtOnce, n - i)), ids + i);
}

int32_t StringIndex::add(std::string_view string) {
  const uint64_t hash = hash_of(string);
  const size_t slot = slot_of(string, hash);
  if (slots_[slot].id >= 0) return slots_[slot].id;
  if (size() >= std::numeric_limits<int32_t>::max())
    throw std::length_error(
        "there are more than 2147483647 different attributes; leave out rare ones");
  const auto id = static_cast<int32_t>(size());
  slots_[slot] = {id, static_cast<uint32_t>(hash >> 32)};
  text_.insert(text_.end(), string.begin(), string.end());
  offsets_.push_back(static_cast<int64_t>(text_.size()));
  if (static_cast<size_t>(size()) * 4 > slots_.size() * 3) grow();
  return id;
}

std::vector<uint64_t> StringIndex::digests() const {
  std::vector<uint64_t> found(size());
  for (int64_t id = 0; id < size(); ++id) found[id] = mix_bits(hash_of(at(id)));
  return found;
}

std::vector<int32_t> StringIndex::numbers_by_count(const int64_t* counts,
                                                   const uint64_t* places) const {
  struct Entry {
    int64_t count;
    uint64_t place;
    int32_t id;
  };
  std::vector<Entry> order(size());
  for (int64_t id = 0; id < size(); ++id)
    order[id] = {counts[id], places[id], static_cast<int32_t>(id)};
  std::sort(order.begin(), order.end(), [&](const Entry& a, const Entry& b) {
    if (a.count != b.count) return a.count > b.count;
    return a.place != b.place ? a.place < b.place : at(a.id) < at(b.id);
  });
  std::vector<int32_t> numbers(size());
  for (size_t i = 0; i < order.size(); ++i) numbers[order[i].id] = static_cast<int32_t>(i);
  return numbers;
}

void StringIndex::grow() {
  slots_.assign(slots_.size() * 2, Slot{});
  const size_t mask = slots_.size() - 1;
  for (int64_t id = 0; id < size(); ++id) {
    const uint64_t hash = hash_of(at(id));
    size_t i = hash & mask;
    while (slots_[i].id >= 0) i = (i + 1) & mask;
    slots_[i] = {static_cast<int32_t>(id), static_cast<uint32_t>(hash >> 32)};
  }
}

}  // namespace hedgerow
