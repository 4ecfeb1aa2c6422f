// Threads: every task runs once, errors and interrupts are propagated.
#include "parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

TEST(parallel_for) {
  for (const int n_threads : {0, 1, 2, 7})
    for (const int64_t n_tasks : {0, 1, 5, 200}) {
      context = std::to_string(n_tasks) + " tasks, " + std::to_string(n_threads) + " threads";
      Stop stop(nullptr);
      std::vector<int> runs(n_tasks, 0);
      parallel_for(n_tasks, n_threads, stop, [&](int64_t i) { ++runs[i]; });
      CHECK(runs == std::vector<int>(n_tasks, 1));
    }
}

// The error with the lowest index is thrown, after all earlier tasks have ended.
TEST(errors_come_out) {
  for (int round = 0; round < 50; ++round) {
    const int n_threads = 1 + round % 4;
    context = "round " + std::to_string(round);
    Stop stop(nullptr);
    std::vector<int> runs(100, 0);
    const auto task = [&](int64_t i) {
      if (i == 11) std::this_thread::yield();
      ++runs[i];
      if (i % 20 == 11 || i == 12) throw std::runtime_error("task " + std::to_string(i) + ".");
    };
    CHECK_THROWS(std::runtime_error, parallel_for(100, n_threads, stop, task), "task 11.");
    CHECK(std::all_of(runs.begin(), runs.begin() + 12, [](int n) { return n == 1; }));
  }
}

// Calls stop.check() until it throws, or gives up after ten seconds.
void work_until_stopped(Stop& stop) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) stop.check();
}

TEST(interrupts) {
  const InterruptPoll always = [] { return true; };
  for (const int n_threads : {1, 3}) {
    context = "all work, " + std::to_string(n_threads) + " threads";
    Stop stop(always);
    CHECK_THROWS(Interrupted,
                 parallel_for(5, n_threads, stop, [&](int64_t) { work_until_stopped(stop); }),
                 "interrupted");
    CHECK_THROWS(Interrupted, stop.check(), "interrupted");
  }
  context = "the caller waits for its helper";
  Stop stop(always);
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> helping{false};
  const auto task = [&](int64_t) {
    if (std::this_thread::get_id() != caller) {
      helping = true;
      work_until_stopped(stop);
    }
    while (!helping) std::this_thread::yield();
  };
  CHECK_THROWS(Interrupted, parallel_for(2, 2, stop, task), "interrupted");
}

}  // namespace
}  // namespace hedgerow::tests
