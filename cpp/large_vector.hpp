// Vectors of many numbers.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "large_pages.hpp"

namespace hedgerow {

// Uses large pages and whole cache lines, and leaves new elements uninitialised when a vector is
// resized.
template <class T>
struct LargeAllocator {
  using value_type = T;

  LargeAllocator() = default;
  template <class Other>
  LargeAllocator(const LargeAllocator<Other>&) {}

  T* allocate(size_t n) {
    void* memory = ::operator new(n * sizeof(T), kCacheLine);
    prefer_large_pages(memory, n * sizeof(T));
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { ::operator delete(memory, kCacheLine); }

  template <class Number>
  void construct(Number* at) {
    ::new (static_cast<void*>(at)) Number;
  }
  template <class Number, class... Values>
  void construct(Number* at, Values&&... values) {
    ::new (static_cast<void*>(at)) Number(std::forward<Values>(values)...);
  }

  bool operator==(const LargeAllocator&) const { return true; }
  static constexpr std::align_val_t kCacheLine{64};
};

template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace hedgerow
