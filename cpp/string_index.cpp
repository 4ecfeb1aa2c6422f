#include "string_index.hpp"

#include <cstring>
#include <limits>
#include <stdexcept>

namespace hedgerow {
namespace {

constexpr size_t kFirstSlots = 1 << 10;

uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ULL;
  x ^= x >> 32;
  return x;
}

// Eight bytes a step; a fixed function, so that behaviour repeats from run to run.
uint64_t hash_of(std::string_view string) {
  uint64_t hash = mix(string.size() + 0x9e3779b97f4a7c15ULL);
  const char* p = string.data();
  size_t left = string.size();
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    hash = mix(hash ^ word) * 0x9e3779b97f4a7c15ULL;
  }
  uint64_t word = 0;
  if (left > 0) std::memcpy(&word, p, left);
  return mix(hash ^ word);
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

int32_t StringIndex::add(std::string_view string) {
  const uint64_t hash = hash_of(string);
  const size_t slot = slot_of(string, hash);
  if (slots_[slot].id >= 0) return slots_[slot].id;
  if (size() >= std::numeric_limits<int32_t>::max())
    throw std::length_error("more than 2147483647 different attributes");
  const auto id = static_cast<int32_t>(size());
  slots_[slot] = {id, static_cast<uint32_t>(hash >> 32)};
  text_.insert(text_.end(), string.begin(), string.end());
  offsets_.push_back(static_cast<int64_t>(text_.size()));
  if (static_cast<size_t>(size()) * 4 > slots_.size() * 3) grow();
  return id;
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
