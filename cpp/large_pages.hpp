// Memory by the gigabyte is handed out in pages of a few kilobytes, and first touching them can
// take longer than the work that is done there. Where the system can do with larger pages, ask for
// them.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hedgerow {

inline void prefer_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] size_t n_bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr uintptr_t kPage = uintptr_t{1} << 21;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t begin = (address + kPage - 1) / kPage * kPage;
  const uintptr_t end = (address + n_bytes) / kPage * kPage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace hedgerow
