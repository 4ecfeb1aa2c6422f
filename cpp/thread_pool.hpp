// Threads that all run the same thing: new ones, or those of a pool, which wait for it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace hedgerow {

// For a thread that waits for another, which will not take long.
inline void pause_thread() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Waits until something holds, for up to a millisecond or so; returns whether it does. To wake a
// thread that sleeps can take a fifth of that. Where others want the processor, they get it.
template <class Condition>
bool watch_for(const Condition& holds) {
  for (int look = 0; look < 1000; ++look) {
    if (holds()) return true;
    pause_thread();
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
  while (std::chrono::steady_clock::now() < end) {
    if (holds()) return true;
    std::this_thread::yield();
  }
  return holds();
}

// Threads that stay from one parallel call to the next: to start one takes longer than many a call.
// While a pool exists, calls of the thread that made it use its threads, which are started when
// they are first needed. A process that was forked off has none of them, and calls there start
// their own.
class ThreadPool {
 public:
  ThreadPool() : outer_(std::exchange(current_, this)) {}
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // On the thread that made it.
  ~ThreadPool() {
    current_ = outer_;
    if (!is_of_this_process()) {
      static_cast<void>(new std::vector<std::thread>(std::move(threads_)));  // nobody to be joined
      return;
    }
    call(kEnd);
    for (std::thread& thread : threads_) thread.join();
  }

  // That of the calling thread, unless it is at work; or null.
  static ThreadPool* idle() {
    ThreadPool* pool = current_;
    return pool != nullptr && pool->work_ == nullptr && pool->is_of_this_process() ? pool : nullptr;
  }

  // Has up to n threads call `work`, and returns how many.
  int start(int n, const std::function<void()>& work) {
    while (std::ssize(threads_) < n) {
      const auto number = static_cast<uint32_t>(threads_.size());
      try {
        threads_.emplace_back([this, number, seen = last_call_.load()] { serve(number, seen); });
      } catch (const std::system_error&) {
        break;  // the system gives no more threads
      }
    }
    n = std::min(n, static_cast<int>(threads_.size()));
    work_ = &work;
    n_running_.store(n);
    call(static_cast<uint32_t>(n));
    return n;
  }

  // Until all of them have returned.
  void join() {
    while (n_running_.load() > 0) pause_thread();
    work_ = nullptr;
  }

 private:
  static constexpr uint32_t kEnd = ~uint32_t{0};

  // For threads 0 to n - 1.
  void call(uint32_t n) {
    const uint64_t number = (last_call_.load() >> 32) + 1;
    last_call_.store(number << 32 | n);
    last_call_.notify_all();
  }

  void serve(uint32_t number, uint64_t seen) {
    for (;;) {
      if (!watch_for([&] { return last_call_.load() != seen; })) last_call_.wait(seen);
      seen = last_call_.load();
      const auto n_called = static_cast<uint32_t>(seen);
      if (n_called == kEnd) return;
      // Only if it was called is there no other call before it has returned.
      if (number >= n_called) continue;
      (*work_)();
      n_running_.fetch_sub(1);
    }
  }

#if defined(__unix__) || defined(__APPLE__)
  bool is_of_this_process() const { return process_ == getpid(); }
  pid_t process_ = getpid();
#else
  bool is_of_this_process() const { return true; }
#endif

  static inline thread_local ThreadPool* current_ = nullptr;
  ThreadPool* outer_;
  std::vector<std::thread> threads_;
  const std::function<void()>* work_ = nullptr;  // of the last call, written before it is made
  std::atomic<uint64_t> last_call_{0};           // its number, and how many threads it is for
  std::atomic<int> n_running_{0};
};

// Threads that run work() while the caller goes on; up to n, fewer if the system gives no more.
class Helpers {
 public:
  Helpers(int64_t n, std::function<void()> work)
      : work_(std::move(work)), pool_(n > 0 ? ThreadPool::idle() : nullptr) {
    if (pool_ != nullptr) {
      n_ = pool_->start(static_cast<int>(n), work_);
      return;
    }
    try {
      for (; n_ < n; ++n_) threads_.emplace_back(std::ref(work_));
    } catch (const std::system_error&) {
      // Those that exist do the work.
    }
  }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;
  ~Helpers() {
    if (pool_ != nullptr) pool_->join();
    for (std::thread& thread : threads_) thread.join();
  }

  int size() const { return n_; }

 private:
  std::function<void()> work_;
  ThreadPool* pool_;
  int n_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace hedgerow
