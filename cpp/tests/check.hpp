// Shared by the files of the test program: the list of tests, checks that count failures and
// continue, and random numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace hedgerow::tests {

struct Place {
  const char* file;
  int line;
};

struct Test {
  const char* name;
  void (*run)();
};

inline std::vector<Test>& all_tests() {
  static std::vector<Test> tests;
  return tests;
}

// Defines a test, which the program runs.
#define TEST(name)                                         \
  void test_##name();                                      \
  [[maybe_unused]] const bool name##_is_listed =           \
      (all_tests().push_back({#name, test_##name}), true); \
  void test_##name()

inline int n_checks = 0;
inline int n_failures = 0;
inline std::string context;  // which of many random cases is being checked; first the test's name

inline void check(bool holds, const char* what, Place place) {
  ++n_checks;
  if (holds) return;
  ++n_failures;
  std::printf("%s:%d: failed: %s  [%s]\n", place.file, place.line, what, context.c_str());
}

inline void check_near(double got, double expected, double tolerance, const char* what,
                       Place place) {
  const bool holds = got == expected || std::fabs(got - expected) <= tolerance;
  check(holds, what, place);
  if (!holds) std::printf("  got %.17g, expected %.17g within %g\n", got, expected, tolerance);
}

// Runs `action`, which must throw an Error whose message contains `part`.
template <class Error>
void check_throws(const std::function<void()>& action, const std::string& part, Place place) {
  std::string message = "nothing was thrown";
  try {
    action();
  } catch (const Error& error) {
    message = error.what();
  }
  const bool holds = message.find(part) != std::string::npos;
  check(holds, ("throws \"" + part + "\"").c_str(), place);
  if (!holds) std::printf("  got: %s\n", message.c_str());
}

#define CHECK(condition) check((condition), #condition, Place{__FILE__, __LINE__})
#define CHECK_NEAR(got, expected, tolerance) \
  check_near((got), (expected), (tolerance), #got, Place{__FILE__, __LINE__})
#define CHECK_THROWS(Error, action, part) \
  check_throws<Error>([&] { action; }, (part), Place{__FILE__, __LINE__})

inline std::mt19937_64 random_bits;  // starts anew with every test

inline double uniform(double low, double high) {
  return low + (high - low) * static_cast<double>(random_bits() >> 11) * 0x1p-53;
}
inline int64_t below(int64_t n) {
  return static_cast<int64_t>(random_bits() % static_cast<uint64_t>(n));
}

inline std::vector<double> random_numbers(int64_t n, double low, double high) {
  std::vector<double> numbers(n);
  for (double& x : numbers) x = uniform(low, high);
  return numbers;
}

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = a.size() == b.size() ? 0.0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == b[i]) continue;
    const double difference = std::fabs(a[i] - b[i]);
    if (!(difference <= largest)) largest = difference;  // a NaN stays
  }
  return largest;
}

}  // namespace hedgerow::tests
