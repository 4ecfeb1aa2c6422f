// Numbers strings 0, 1, 2, ... in order of first appearance.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace hedgerow {

class StringIndex {
 public:
  StringIndex();

  int64_t size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  std::string_view at(int64_t id) const {
    return {text_.data() + offsets_[id], static_cast<size_t>(offsets_[id + 1] - offsets_[id])};
  }
  // The string's number, or -1.
  int32_t find(std::string_view string) const;
  // The same for many strings at once, which is faster: memory is prefetched.
  void find_all(const std::string_view* strings, int64_t n, int32_t* ids) const;
  // The string's number, a new one if need be.
  int32_t add(std::string_view string);

  // A digest of each string's bytes, (size,).
  std::vector<uint64_t> digests() const;
  // The number that each string would have in order of counts, the largest first; equal counts in
  // order of places, then of bytes. counts, places: (size,)
  std::vector<int32_t> numbers_by_count(const int64_t* counts, const uint64_t* places) const;

  // All strings one after another, and where each begins.
  const std::vector<char>& text() const { return text_; }
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  // Open addressing. `tag` is the upper half of the hash: most other strings are ruled out without
  // reading their text.
  struct Slot {
    int32_t id = -1;
    uint32_t tag = 0;
  };
  size_t slot_of(std::string_view string, uint64_t hash) const;
  void find_some(const std::string_view* strings, int n, int32_t* ids) const;
  void grow();

  std::vector<char> text_;
  std::vector<int64_t> offsets_{0};
  std::vector<Slot> slots_;  // a power of two of them, at most three quarters in use
};

}  // namespace hedgerow
