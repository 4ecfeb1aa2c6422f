// parallel_for over std::thread: no OpenMP, so that a process may fork after a fit and fit again in
// the child, and no runtime has to be shipped. Threads live as long as the call, or as long as
// their ThreadPool.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#include "thread_pool.hpp"

namespace hedgerow {

// Thrown when the user has stopped a kernel.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// Returns true when the user asked to stop. Called on the calling thread only.
using InterruptPoll = bool (*)();

// Lets any thread of a running kernel check whether the user wants to stop it.
class Stop {
 public:
  explicit Stop(InterruptPoll poll) : poll_(poll), caller_(std::this_thread::get_id()) {}

  // Call about once per millisecond of work; throws Interrupted.
  void check() {
    if (requested_.load(std::memory_order_relaxed)) throw Interrupted{};
    if (poll_ != nullptr && std::this_thread::get_id() == caller_) poll_if_due();
  }

 private:
  // Reading the clock takes longer than some of the work between two checks: while these come
  // within a fraction of a millisecond, more and more of them are skipped.
  void poll_if_due() {
    if (n_skipped_ < n_to_skip_) {
      ++n_skipped_;
      return;
    }
    const auto now = std::chrono::steady_clock::now();
    const bool is_soon = now - last_look_ < std::chrono::microseconds(100);
    n_to_skip_ = is_soon ? std::min(2 * n_to_skip_ + 1, kMaxSkipped) : 0;
    n_skipped_ = 0;
    last_look_ = now;
    if (now - last_poll_ < std::chrono::milliseconds(50)) return;
    last_poll_ = now;
    if (poll_()) {
      requested_.store(true, std::memory_order_relaxed);
      throw Interrupted{};
    }
  }

  static constexpr int kMaxSkipped = 15;

  InterruptPoll poll_;
  std::thread::id caller_;
  int n_skipped_ = 0, n_to_skip_ = 0;  // checks since the clock was read, and until it is read
  std::chrono::steady_clock::time_point last_look_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_poll_ = last_look_;
  std::atomic<bool> requested_{false};
};

namespace detail {

// Tasks are handed out in index order, so when one fails all earlier ones have been started; those
// run to their end and the failure of the lowest index is kept: the error does not depend on
// timing.
class TaskQueue {
 public:
  explicit TaskQueue(int64_t n_tasks) : n_tasks_(n_tasks) {}

  template <class Task>
  void run(Task& task) {
    while (!failed_.load(std::memory_order_relaxed)) {
      const int64_t index = next_.fetch_add(1);
      if (index >= n_tasks_) return;
      try {
        task(index);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (index < error_index_) {
          error_index_ = index;
          error_ = std::current_exception();
        }
        failed_.store(true);
      }
    }
  }

  bool has_more() const {
    return next_.load(std::memory_order_relaxed) < n_tasks_ &&
           !failed_.load(std::memory_order_relaxed);
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  int64_t n_tasks_;
  std::atomic<int64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  int64_t error_index_ = std::numeric_limits<int64_t>::max();
  std::exception_ptr error_;
};

// A task object is made only if there is work.
template <class MakeTask>
void run_tasks(TaskQueue& queue, MakeTask& make_task) {
  std::optional<decltype(make_task())> task;
  const auto run = [&](int64_t index) {
    if (!task) task.emplace(make_task());
    (*task)(index);
  };
  queue.run(run);
}

// Calls run() on up to n_helpers threads and on the caller, and waits for them; run() returns when
// the queue has no task left. Throws what a task threw, or Interrupted.
void run_on_threads(const TaskQueue& queue, int64_t n_helpers, Stop& stop,
                    const std::function<void()>& run);

}  // namespace detail

// Runs task(0) ... task(n_tasks - 1) on up to n_threads threads, including the caller's. Each
// thread has its own task object, made by make_task() on that thread, which may keep scratch memory
// between calls. The results of a task must not depend on the thread that runs it.
template <class MakeTask>
void parallel_for_each_thread(int64_t n_tasks, int n_threads, Stop& stop, MakeTask make_task) {
  detail::TaskQueue queue(n_tasks);
  detail::run_on_threads(queue, std::min<int64_t>(n_threads, n_tasks) - 1, stop,
                         [&] { detail::run_tasks(queue, make_task); });
}

// The same with one task object for all threads.
template <class Task>
void parallel_for(int64_t n_tasks, int n_threads, Stop& stop, Task task) {
  parallel_for_each_thread(n_tasks, n_threads, stop,
                           [&] { return [&task](int64_t index) { task(index); }; });
}

constexpr int64_t kPositionsPerTask = 4096;  // if each position takes a few operations

// Runs task(first, end) for consecutive pieces of 0 .. n - 1, of `size` each but for the last.
template <class Task>
void parallel_for_pieces(int64_t n, int64_t size, int n_threads, Stop& stop, Task task) {
  parallel_for((n + size - 1) / size, n_threads, stop, [&](int64_t piece) {
    stop.check();
    task(piece * size, std::min((piece + 1) * size, n));
  });
}

}  // namespace hedgerow
