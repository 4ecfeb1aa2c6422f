// Memory pools: blocks come back, and arrays never share one.
#include "memory_pool.hpp"

#include <cstdint>
#include <memory>
#include <utility>

#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

TEST(large_blocks_are_used_again) {
  constexpr size_t kLarge = MemoryPool::kLeastKept / sizeof(double);
  const auto pool = std::make_shared<MemoryPool>();
  const void* first;
  {
    PooledArray<int32_t> small(pool, 10);
    PooledArray<double> large(pool, 2 * kLarge);
    first = large.data();
  }
  PooledArray<double> again(pool, kLarge);
  CHECK(static_cast<const void*>(again.data()) == first);
  PooledArray<double> other(pool, kLarge);
  CHECK(other.data() != again.data());
  PooledArray<double> moved = std::move(again);
  for (int64_t i = 0; i < 100; ++i) moved[i] = other[i] = 1.0;
  CHECK(static_cast<const void*>(moved.data()) == first);
}

TEST(arrays_outlive_their_owners_pool) {
  auto pool = std::make_shared<MemoryPool>();
  PooledArray<int32_t> array(pool, 10);
  pool.reset();
  for (int64_t i = 0; i < 10; ++i) array[i] = 3;
  CHECK(array[9] == 3);
}

}  // namespace
}  // namespace hedgerow::tests
