// Memory that is reused, and not returned to the system in between, which would have to clear it
// each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "large_pages.hpp"

namespace hedgerow {

// Free blocks of memory for reuse. Threads may share a pool.
class MemoryPool {
 public:
  MemoryPool() = default;
  MemoryPool(const MemoryPool&) = delete;

  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    size_t size = 0;
  };

  // The smallest block that is large enough, or a new one.
  Block take(size_t size) {
    {
      const std::lock_guard lock(mutex_);
      size_t best = idle_.size();
      for (size_t i = 0; i < idle_.size(); ++i)
        if (idle_[i].size >= size && (best == idle_.size() || idle_[i].size < idle_[best].size))
          best = i;
      if (best < idle_.size()) {
        std::swap(idle_[best], idle_.back());
        Block block = std::move(idle_.back());
        idle_.pop_back();
        return block;
      }
      // A block that is too small for this is freed: it might never be reused.
      if (size >= kLeastKept && !idle_.empty()) idle_.pop_back();
    }
    Block block{std::make_unique_for_overwrite<std::byte[]>(size), size};
    prefer_large_pages(block.bytes.get(), size);
    return block;
  }

  // Small blocks are returned to the heap, which reuses them well.
  void give_back(Block block) {
    if (block.size < kLeastKept) return;
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(block));
  }

  static constexpr size_t kLeastKept = size_t{1} << 21;

 private:
  std::mutex mutex_;
  std::vector<Block> idle_;
};

// n uninitialised values in memory of a pool.
template <class T>
class PooledArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  PooledArray() = default;
  PooledArray(std::shared_ptr<MemoryPool> pool, size_t n)
      : pool_(std::move(pool)), block_(pool_->take(n * sizeof(T))) {}
  PooledArray(PooledArray&& other) noexcept { swap(other); }
  PooledArray& operator=(PooledArray&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PooledArray() {
    if (pool_ != nullptr) pool_->give_back(std::move(block_));
  }

  T* data() { return reinterpret_cast<T*>(block_.bytes.get()); }
  const T* data() const { return reinterpret_cast<const T*>(block_.bytes.get()); }
  T& operator[](int64_t i) { return data()[i]; }
  const T& operator[](int64_t i) const { return data()[i]; }

 private:
  void swap(PooledArray& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(block_, other.block_);
  }

  std::shared_ptr<MemoryPool> pool_;
  MemoryPool::Block block_;
};

}  // namespace hedgerow
