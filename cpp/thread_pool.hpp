// Threads that all run the same function: new ones, or those of a pool.
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

// A pause in a loop that waits for another thread for a short time.
inline void pause_thread() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Waits until a condition holds, for up to about a millisecond; returns whether it does. Waking a
// sleeping thread can take a fifth of that. Yields the processor to other threads.
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

// Threads that persist between parallel calls, since starting a thread takes longer than many
// calls. While a pool exists, calls of the thread that created it use its threads, which are
// started when first needed. A forked process has none of them, and calls there start their own.
class ThreadPool {
 public:
  // n_threads: number of threads, including the caller, to be started now, if there are more than
  // a few. Starting many takes a while, so another thread does it, while the caller prepares the
  // first call
  explicit ThreadPool(int n_threads = 1) : outer_(std::exchange(current_, this)) {
    if (n_threads <= kFewThreads) return;
    threads_.reserve(n_threads);
    try {
      starter_ = std::thread([this, n_threads] { add_threads(n_threads - 1); });
    } catch (const std::system_error&) {
      // Calls try again.
    }
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Must run on the thread that created the pool.
  ~ThreadPool() {
    current_ = outer_;
    if (!is_of_this_process()) {
      // There is no thread to join.
      static_cast<void>(new std::pair(std::move(starter_), std::move(threads_)));
      return;
    }
    await_starter();
    call(kEnd);
    for (std::thread& thread : threads_) thread.join();
  }

  // The pool of the calling thread, unless it is busy; or null.
  static ThreadPool* idle() {
    ThreadPool* pool = current_;
    return pool != nullptr && pool->work_ == nullptr && pool->is_of_this_process() ? pool : nullptr;
  }

  // Lets up to n threads call `work`, and returns their number.
  int start(int n, const std::function<void()>& work) {
    await_starter();
    add_threads(n);
    n = std::min(n, static_cast<int>(threads_.size()));
    work_ = &work;
    n_running_.store(n);
    call(static_cast<uint32_t>(n));
    return n;
  }

  // Withdraws the call for threads that have not started yet, and returns their number. If the
  // processor is busy, a caller without work left need not wait for these.
  int dismiss() {
    uint64_t last = last_call_.load();
    while (!last_call_.compare_exchange_weak(last, last - places_of(last))) continue;
    const auto n = static_cast<int>(places_of(last));
    n_running_.fetch_sub(n);
    return n;
  }

  // Waits until all threads that started have returned.
  void join() {
    while (n_running_.load() > 0) pause_thread();
    work_ = nullptr;
  }

 private:
  static constexpr uint32_t kEnd = ~uint32_t{0};
  static constexpr int kFewThreads = 4;

  // Starts threads until there are n, or the system refuses more.
  void add_threads(int n) {
    try {
      while (std::ssize(threads_) < n)
        threads_.emplace_back([this, seen = number_of(last_call_.load())] { serve(seen); });
    } catch (const std::system_error&) {
      // Those that were started do the work.
    }
  }

  void await_starter() {
    if (starter_.joinable()) starter_.join();
  }

  // A call has a number, and one place per requested thread, which each thread takes.
  static uint32_t number_of(uint64_t call) { return static_cast<uint32_t>(call >> 32); }
  static uint32_t places_of(uint64_t call) { return static_cast<uint32_t>(call); }

  void call(uint32_t n_places) {
    const uint64_t number = number_of(last_call_.load()) + uint32_t{1};
    last_call_.store(number << 32 | n_places);
    last_call_.notify_all();
  }

  void serve(uint32_t seen) {
    for (;;) {
      const auto is_new = [&] { return number_of(last_call_.load()) != seen; };
      while (!watch_for(is_new)) {
        const uint64_t last = last_call_.load();
        if (number_of(last) == seen) last_call_.wait(last);
      }
      uint64_t last = last_call_.load();
      while (places_of(last) != 0 && places_of(last) != kEnd &&
             !last_call_.compare_exchange_weak(last, last - 1))
        continue;
      if (places_of(last) == kEnd) return;
      seen = number_of(last);
      if (places_of(last) == 0) continue;
      (*work_)();  // there is no other call before it has returned
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
  std::thread starter_;  // starts the first threads; no other thread changes `threads_` meanwhile
  std::vector<std::thread> threads_;
  const std::function<void()>* work_ = nullptr;  // of the last call, written before it is made
  std::atomic<uint64_t> last_call_{0};           // its number, and places that are left
  std::atomic<int> n_running_{0};                // threads at work, and places that are left
};

// Threads that run work() concurrently with the caller; up to n, fewer if the system refuses more.
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
      // The threads that were started do the work.
    }
  }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;
  ~Helpers() {
    if (pool_ != nullptr) pool_->join();
    for (std::thread& thread : threads_) thread.join();
  }

  int size() const { return n_; }

  // Withdraws the call for threads of a pool that have not started; `size` is then the number of
  // the others.
  void dismiss() {
    if (pool_ != nullptr) n_ -= pool_->dismiss();
  }

 private:
  std::function<void()> work_;
  ThreadPool* pool_;
  int n_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace hedgerow
