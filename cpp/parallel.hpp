// parallel_for over std::thread: no OpenMP, so that a process may fork after a fit and fit again in
// the child, and no runtime has to be shipped. Threads live as long as the call, or as long as the
// ThreadPool that they are of.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#include "thread_pool.hpp"

namespace hedgerow {

// Thrown out of a kernel that the user stopped.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// Returns true when the user asked to stop. Called on the calling thread only.
using InterruptPoll = bool (*)();

// Lets a running kernel notice, from any of its threads, that the user wants it to end.
class Stop {
 public:
  explicit Stop(InterruptPoll poll) : poll_(poll), caller_(std::this_thread::get_id()) {}

  // Call about once a millisecond of work; throws Interrupted.
  void check() {
    if (requested_.load(std::memory_order_relaxed)) throw Interrupted{};
    if (poll_ != nullptr && std::this_thread::get_id() == caller_) poll_if_due();
  }

 private:
  void poll_if_due() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_poll_ < std::chrono::milliseconds(50)) return;
    last_poll_ = now;
    if (poll_()) {
      requested_.store(true, std::memory_order_relaxed);
      throw Interrupted{};
    }
  }

  InterruptPoll poll_;
  std::thread::id caller_;
  std::chrono::steady_clock::time_point last_poll_ = std::chrono::steady_clock::now();
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

// A task is made only where there is one to do.
template <class MakeTask>
void run_tasks(TaskQueue& queue, MakeTask& make_task) {
  std::optional<decltype(make_task())> task;
  const auto run = [&](int64_t index) {
    if (!task) task.emplace(make_task());
    (*task)(index);
  };
  queue.run(run);
}

}  // namespace detail

// Runs task(0) ... task(n_tasks - 1) on up to n_threads threads, the caller's among them. Each
// thread has a task of its own, made by make_task() on that thread, which may keep scratch memory
// from one call to the next. What a task computes may not depend on which thread runs it.
template <class MakeTask>
void parallel_for_each_thread(int64_t n_tasks, int n_threads, Stop& stop, MakeTask make_task) {
  detail::TaskQueue queue(n_tasks);
  std::mutex mutex;
  std::condition_variable idle;
  std::atomic<int> n_done{0};
  std::exception_ptr interrupted;
  {
    Helpers helpers(std::min<int64_t>(n_threads, n_tasks) - 1, [&] {
      detail::run_tasks(queue, make_task);
      const std::lock_guard lock(mutex);
      ++n_done;
      idle.notify_one();
    });
    detail::run_tasks(queue, make_task);
    helpers.dismiss();  // no task is left for them
    watch_for([&] { return n_done == helpers.size(); });
    std::unique_lock lock(mutex);
    while (n_done < helpers.size()) {
      idle.wait_for(lock, std::chrono::milliseconds(50));
      if (n_done == helpers.size() || interrupted) continue;
      lock.unlock();
      try {
        stop.check();
      } catch (const Interrupted&) {
        interrupted = std::current_exception();  // the helpers see it at their next check
      }
      lock.lock();
    }
  }
  if (interrupted) std::rethrow_exception(interrupted);
  queue.rethrow();
}

// The same with one task for all threads.
template <class Task>
void parallel_for(int64_t n_tasks, int n_threads, Stop& stop, Task task) {
  parallel_for_each_thread(n_tasks, n_threads, stop,
                           [&] { return [&task](int64_t index) { task(index); }; });
}

constexpr int64_t kPositionsPerTask = 4096;  // where each position is a few operations

// Runs task(first, end) for consecutive pieces of 0 .. n - 1, of `size` each but for the last.
template <class Task>
void parallel_for_pieces(int64_t n, int64_t size, int n_threads, Stop& stop, Task task) {
  parallel_for((n + size - 1) / size, n_threads, stop, [&](int64_t piece) {
    stop.check();
    task(piece * size, std::min((piece + 1) * size, n));
  });
}

}  // namespace hedgerow
