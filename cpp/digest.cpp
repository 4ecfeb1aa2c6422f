#include "digest.hpp"

#include <algorithm>
#include <cstring>

#include "random.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kSequencesAtOnce = 64;

// Several sequences are digested at a time, since each word has to wait for the digest of those
// before it.
constexpr int kTogether = 4;
struct Bytes {
  const uint8_t* first;
  int64_t n;
};

// Adds bytes to n digests.
template <int n>
void add_bytes(const Bytes* bytes, uint64_t* digests) {
  constexpr int64_t kWord = sizeof(uint64_t);
  const auto add = [&](int i, int64_t begin, int64_t n_bytes) {
    uint64_t word = 0;
    std::memcpy(&word, bytes[i].first + begin, static_cast<size_t>(n_bytes));
    digests[i] = mix_bits(digests[i] ^ word);
  };
  int64_t shortest = bytes[0].n;
  for (int i = 0; i < n; ++i) {
    digests[i] = mix_bits(digests[i] ^ static_cast<uint64_t>(bytes[i].n));
    shortest = std::min(shortest, bytes[i].n);
  }
  int64_t together = 0;
  for (; together + kWord <= shortest; together += kWord)
    for (int i = 0; i < n; ++i) add(i, together, kWord);
  for (int i = 0; i < n; ++i) {
    int64_t begin = together;
    for (; begin + kWord <= bytes[i].n; begin += kWord) add(i, begin, kWord);
    if (begin < bytes[i].n) add(i, begin, bytes[i].n - begin);
  }
}

template <int n>
void add_parts(std::span<const DigestedRows> parts, int64_t first, uint64_t* digests) {
  for (const DigestedRows& part : parts) {
    Bytes bytes[n];
    for (int i = 0; i < n; ++i) {
      const int64_t begin = part.bounds[first + i], end = part.bounds[first + i + 1];
      bytes[i] = {part.bytes + begin * part.width, (end - begin) * part.width};
    }
    add_bytes<n>(bytes, digests + first);
  }
}

}  // namespace

std::vector<uint64_t> digest_sequences(std::span<const DigestedRows> parts, int64_t n,
                                       int n_threads, Stop& stop) {
  std::vector<uint64_t> digests(static_cast<size_t>(n));
  parallel_for_pieces(n, kSequencesAtOnce, n_threads, stop, [&](int64_t begin, int64_t end) {
    int64_t s = begin;
    for (; s + kTogether <= end; s += kTogether) {
      stop.check();
      add_parts<kTogether>(parts, s, digests.data());
    }
    for (; s < end; ++s) add_parts<1>(parts, s, digests.data());
  });
  return digests;
}

}  // namespace hedgerow
