#include "digest.hpp"

#include <cstring>

#include "random.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kSequencesAtOnce = 64;

uint64_t add_bytes(uint64_t digest, const uint8_t* bytes, int64_t n) {
  constexpr int64_t kWord = sizeof(uint64_t);
  digest = mix_bits(digest ^ static_cast<uint64_t>(n));
  uint64_t word;
  for (; n >= kWord; bytes += kWord, n -= kWord) {
    std::memcpy(&word, bytes, kWord);
    digest = mix_bits(digest ^ word);
  }
  if (n == 0) return digest;
  word = 0;
  std::memcpy(&word, bytes, static_cast<size_t>(n));
  return mix_bits(digest ^ word);
}

}  // namespace

std::vector<uint64_t> digest_sequences(std::span<const DigestedRows> parts, int64_t n,
                                       int n_threads, Stop& stop) {
  std::vector<uint64_t> digests(static_cast<size_t>(n));
  parallel_for_pieces(n, kSequencesAtOnce, n_threads, stop, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      stop.check();
      for (const DigestedRows& part : parts) {
        const int64_t first = part.bounds[s], last = part.bounds[s + 1];
        digests[s] =
            add_bytes(digests[s], part.bytes + first * part.width, (last - first) * part.width);
      }
    }
  });
  return digests;
}

}  // namespace hedgerow
