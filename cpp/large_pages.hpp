// Gigabytes of memory are allocated in pages of a few kilobytes, and touching each of them for the
// first time can take longer than the actual work. So larger pages are requested where the system
// supports them.
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
