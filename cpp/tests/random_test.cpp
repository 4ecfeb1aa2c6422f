// Counter-based random numbers: those of SplitMix64, uniform and independent.
#include "random.hpp"

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

// The first numbers of SplitMix64 from a seed of 0, as its authors print them.
TEST(known_bits) {
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
  CHECK(mix_bits(0) == 0xE220A8397B1DCDAF);
  CHECK(mix_bits(kStep) == 0x6E789E6AA1B965F4);
  CHECK(mix_bits(2 * kStep) == 0x06C45D188009454F);
}

TEST(keys_differ) {
  std::set<uint64_t> keys;
  for (uint64_t key = 0; key < 100; ++key)
    for (uint64_t purpose = 0; purpose < 100; ++purpose) keys.insert(derive_key(key, purpose));
  CHECK(keys.size() == 10000);
  CHECK(derive_key(1, 2) != derive_key(2, 1));
  CHECK(derive_key(~uint64_t{0}, 0) == derive_key(~uint64_t{0}, 0));
}

// Neighbouring draws, and the draws of neighbouring keys, spread evenly over pairs of tenths.
TEST(uniforms) {
  constexpr int kDraws = 100000, kTenths = 10;
  for (const uint64_t key : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    context = "key " + std::to_string(key);
    std::vector<int> pairs(kTenths * kTenths), keys(kTenths * kTenths);
    bool inside = true;
    const auto tenth = [&](uint64_t k, uint64_t i) {
      const double draw = draw_uniform(k, i);
      inside &= draw >= 0.0 && draw < 1.0;
      return static_cast<int>(draw * kTenths);
    };
    for (uint64_t i = 0; i < kDraws; ++i) {
      const int drawn = tenth(key, i);
      ++pairs[drawn * kTenths + tenth(key, i + 1)];
      ++keys[drawn * kTenths + tenth(key + 1, i)];
    }
    CHECK(inside);
    const auto check_even = [&](const std::vector<int>& boxes) {
      const double share = 1.0 / static_cast<double>(boxes.size());
      const double sd = std::sqrt(kDraws * share * (1.0 - share));
      for (const int count : boxes) CHECK_NEAR(count, kDraws * share, 5.0 * sd);
    };
    check_even(pairs);
    check_even(keys);
  }
}

}  // namespace
}  // namespace hedgerow::tests
