// Prefetching of memory that is read later.
#pragma once

// Into the second-level cache alone.
#if defined(__GNUC__)
#define HEDGEROW_PREFETCH_FAR(address) __builtin_prefetch(address, 0, 2)
#else
#define HEDGEROW_PREFETCH_FAR(address) static_cast<void>(address)
#endif
