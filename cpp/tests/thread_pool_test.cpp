// Pools: threads that persist between calls of any kind.
#include "thread_pool.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "crew.hpp"
#include "parallel.hpp"
#include "tests/check.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace hedgerow::tests {
namespace {

bool runs_every_task(int64_t n_tasks, int n_threads) {
  Stop stop(nullptr);
  std::vector<int> runs(n_tasks, 0);
  parallel_for(n_tasks, n_threads, stop, [&](int64_t i) { ++runs[i]; });
  return runs == std::vector<int>(n_tasks, 1);
}

TEST(calls_of_a_pool) {
  const ThreadPool pool;
  for (int round = 0; round < 200; ++round) {
    context = "round " + std::to_string(round);
    CHECK(runs_every_task(round % 13, 1 + round % 5));
  }
  Stop stop(nullptr);
  std::vector<int> runs(300, 0);
  Crew crew(4, stop);
  crew.run(3, [&] {
    return [&](int64_t task) { crew.share(100, [&](int64_t i) { ++runs[100 * task + i]; }); };
  });
  CHECK(runs == std::vector<int>(300, 1));
}

// All that run a task, the caller among them, are the same threads each time.
TEST(threads_stay) {
  const ThreadPool pool;
  std::mutex mutex;
  std::set<std::thread::id> seen;
  for (int round = 0; round < 50; ++round) {
    const Helpers helpers(3, [&] {
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
    CHECK(helpers.size() == 3);
  }
  CHECK(seen.size() == 3);
}

// Whether calls need them all, more of them or none.
TEST(threads_that_are_started_in_advance) {
  for (const int n_started : {2, 6, 9})
    for (const int n_threads : {0, 1, 3, 9, 12}) {
      const ThreadPool pool(n_started);
      for (int round = 0; n_threads > 0 && round < 3; ++round)
        CHECK(runs_every_task(20, n_threads));
    }
}

// Those that have begun by then are waited for, and no other begins.
TEST(helpers_that_are_dismissed) {
  const ThreadPool pool;
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> n_ran{0};
    int n_helpers = 0;
    {
      Helpers helpers(3, [&] { ++n_ran; });
      if (round % 2 == 1) std::this_thread::yield();
      helpers.dismiss();
      n_helpers = helpers.size();
    }
    CHECK(n_helpers >= 0 && n_helpers <= 3 && n_ran == n_helpers);
  }
  CHECK(runs_every_task(7, 3));
}

// Calls within calls, of other threads, and of another pool.
TEST(pools_that_are_at_work) {
  const ThreadPool pool;
  Stop stop(nullptr);
  std::vector<uint8_t> all_ran(20, 0);
  parallel_for(20, 3, stop, [&](int64_t i) { all_ran[i] = runs_every_task(7, 2); });
  CHECK(all_ran == std::vector<uint8_t>(20, 1));
  bool ran = false;
  std::thread([&] { ran = runs_every_task(7, 2); }).join();
  CHECK(ran);
  {
    const ThreadPool inner;
    CHECK(runs_every_task(7, 3));
  }
  CHECK(runs_every_task(7, 3));
}

#if (defined(__unix__) || defined(__APPLE__)) && !defined(__SANITIZE_THREAD__)
// The threads do not exist, so others are started, and the old ones are not waited for.
TEST(pools_of_a_process_that_forked) {
  auto pool = std::make_unique<ThreadPool>(6);
  {
    // A thread allocates memory when it starts. If that happened during the fork, the address
    // sanitizer would wait for it in the child.
    std::atomic<int> n_started{0};
    const Helpers helpers(5, [&] { ++n_started; });
    while (n_started < helpers.size()) pause_thread();
  }
  CHECK(runs_every_task(7, 3));
  const pid_t child = fork();
  if (child == 0) {
    bool ran = runs_every_task(7, 3);
    pool.reset();
    ran &= runs_every_task(7, 3);
    _exit(ran ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(runs_every_task(7, 3));
}
#endif

}  // namespace
}  // namespace hedgerow::tests
