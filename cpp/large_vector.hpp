// Vectors of many numbers.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "large_pages.hpp"

namespace hedgerow {

// Uses large pages, and leaves new elements uninitialised when a vector is resized.
template <class T>
struct LargeAllocator {
  using value_type = T;

  LargeAllocator() = default;
  template <class Other>
  LargeAllocator(const LargeAllocator<Other>&) {}

  T* allocate(size_t n) {
    T* memory = std::allocator<T>().allocate(n);
    prefer_large_pages(memory, n * sizeof(T));
    return memory;
  }
  void deallocate(T* memory, size_t n) { std::allocator<T>().deallocate(memory, n); }

  template <class Number>
  void construct(Number* at) {
    ::new (static_cast<void*>(at)) Number;
  }
  template <class Number, class... Values>
  void construct(Number* at, Values&&... values) {
    ::new (static_cast<void*>(at)) Number(std::forward<Values>(values)...);
  }

  bool operator==(const LargeAllocator&) const { return true; }
};

template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace hedgerow
