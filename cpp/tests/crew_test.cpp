// Crews: tasks that share their work with idle threads, errors and interrupts on the way.
#include "crew.hpp"

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

// Every piece of every task runs once.
TEST(shared_work) {
  for (const int n_threads : {0, 1, 2, 5})
    for (const int64_t n_tasks : {0, 1, 3, 20}) {
      context = std::to_string(n_tasks) + " tasks, " + std::to_string(n_threads) + " threads";
      Stop stop(nullptr);
      Crew crew(n_threads, stop);
      std::vector<std::vector<int>> runs(n_tasks, std::vector<int>(500, 0));
      std::atomic<bool> is_in_range{true};
      crew.run(n_tasks, [&] {
        return [&](int64_t task) {
          const int64_t n_pieces = crew.n_pieces(7);
          if (n_pieces < 1 || n_pieces > 7) is_in_range = false;
          for (int round = 0; round < 20; ++round)
            crew.share_pieces(500, 30, [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) ++runs[task][i];
            });
        };
      });
      CHECK(is_in_range);
      CHECK(runs == std::vector<std::vector<int>>(n_tasks, std::vector<int>(500, 20)));
    }
}

// A thread without a task takes pieces of another's, and sleeps while there are none.
TEST(idle_threads_help) {
  Stop stop(nullptr);
  Crew crew(2, stop);
  std::atomic<bool> helped{false};
  crew.run(1, [&] {
    return [&](int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const auto own = std::this_thread::get_id();
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (!helped && std::chrono::steady_clock::now() < end)
        crew.share(8, [&](int64_t) {
          if (std::this_thread::get_id() != own) helped = true;
          std::this_thread::yield();
        });
    };
  });
  CHECK(helped);
}

TEST(errors_in_shared_work) {
  for (const int n_threads : {1, 3}) {
    context = std::to_string(n_threads) + " threads";
    Stop stop(nullptr);
    Crew crew(n_threads, stop);
    const auto make_task = [&] {
      return [&](int64_t task) {
        crew.share(50, [&](int64_t piece) {
          if (task == 1 && piece == 30) throw std::runtime_error("piece 30.");
        });
      };
    };
    CHECK_THROWS(std::runtime_error, crew.run(4, make_task), "piece 30.");
  }
}

// The caller's thread has nothing to do but to wait, and notices.
TEST(interrupts_of_a_crew) {
  Stop stop([] { return true; });
  Crew crew(2, stop);
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> helping{false};
  const auto make_task = [&] {
    return [&](int64_t) {
      if (std::this_thread::get_id() == caller) {
        while (!helping) std::this_thread::yield();
        return;
      }
      helping = true;
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (std::chrono::steady_clock::now() < end) stop.check();
    };
  };
  CHECK_THROWS(Interrupted, crew.run(2, make_task), "interrupted");
}

}  // namespace
}  // namespace hedgerow::tests
