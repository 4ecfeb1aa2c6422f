// Draws: random numbers by identities, and the smallest of them.
#include "draws.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "random.hpp"
#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

TEST(draws) {
  const std::vector<uint64_t> sequences{7, 8, 9};
  const std::vector<int64_t> offsets{0, 100'000, 100'000, 150'000};
  Stop stop(nullptr);
  for (const int n_threads : {1, 3}) {
    std::vector<uint64_t> positions(offsets.back());
    fill_position_identities(sequences.data(), offsets.data(), 3, positions.data(), n_threads,
                             stop);
    CHECK(positions[99'999] == derive_key(7, 99'999));
    CHECK(positions[100'000] == derive_key(9, 0));
    std::vector<double> uniforms(positions.size());
    fill_uniforms(positions.data(), std::ssize(positions), 5, uniforms.data(), n_threads, stop);
    CHECK(uniforms[3] == draw_uniform(5, positions[3]));
    std::vector<double> sorted = uniforms;
    std::sort(sorted.begin(), sorted.end());
    for (const int64_t place : {0, 4, 70'000, 149'999})
      CHECK(find_smallest(uniforms.data(), std::ssize(uniforms), place, n_threads, stop) ==
            sorted[place]);
  }
}

}  // namespace
}  // namespace hedgerow::tests
