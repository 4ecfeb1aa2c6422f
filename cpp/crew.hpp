// Crew: threads that share the work of tasks of very different sizes.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "thread_pool.hpp"

namespace hedgerow {

// Consecutive pieces of 0 .. n - 1, each for the next thread that asks: slower threads get fewer.
class PieceQueue {
 public:
  PieceQueue(int64_t n, int64_t size) : n_(n), size_(size) {}

  // Begin and end of a piece; the same if none is left.
  std::pair<int64_t, int64_t> take() {
    const int64_t begin = std::min(next_.fetch_add(size_, std::memory_order_relaxed), n_);
    return {begin, std::min(begin + size_, n_)};
  }

 private:
  int64_t n_, size_;
  std::atomic<int64_t> next_{0};
};

// A task that runs on the crew may divide a part of its work into pieces and `share` them: idle
// threads take some. The division may depend on the number of idle threads, so results must not
// depend on the division: only sums of integers, or results by piece.
class Crew {
 public:
  Crew(int n_threads, Stop& stop)
      : n_threads_(std::max(n_threads, 1)),
        stop_(stop),
        caller_(std::this_thread::get_id()),
        boards_(n_threads_) {}

  // Runs task(0) ... task(n_tasks - 1), as parallel_for_each_thread does, on all threads of the
  // crew: those for which no task is left help the others. Call it once.
  template <class MakeTask>
  void run(int64_t n_tasks, MakeTask make_task) {
    detail::TaskQueue queue(n_tasks);
    n_at_work_.store(n_threads_);
    const auto work = [&] {
      detail::run_tasks(queue, make_task);
      if (n_at_work_.fetch_sub(1) == 1) announce();
      help();
    };
    {
      const Helpers helpers(n_threads_ - 1, work);
      n_at_work_.fetch_sub(n_threads_ - 1 - helpers.size());
      work();
    }
    if (interrupted_) std::rethrow_exception(interrupted_);
    queue.rethrow();
  }

  // Number of pieces for some work: one for this thread and one for each thread that is idle, or
  // will be, unless others need it; at most `most`.
  int64_t n_pieces(int64_t most) const {
    const int due = (n_threads_ - 1) / std::max(n_at_work_.load(std::memory_order_relaxed), 1);
    const int n_idle = n_idle_.load(std::memory_order_relaxed);
    return std::clamp<int64_t>(std::max(due, n_idle) + 1, 1, std::max<int64_t>(most, 1));
  }

  // While it exists, work that this thread helps with counts as its own task.
  class AtWork {
   public:
    explicit AtWork(Crew& crew) : crew_(crew) { crew_.n_at_work_.fetch_add(1); }
    AtWork(const AtWork&) = delete;
    AtWork& operator=(const AtWork&) = delete;
    ~AtWork() { crew_.n_at_work_.fetch_sub(1); }

   private:
    Crew& crew_;
  };

  // Runs task(0) ... task(n_tasks - 1) on this thread and on those that are idle.
  template <class Task>
  void share(int64_t n_tasks, const Task& task) {
    const bool may_have_help = n_at_work_.load(std::memory_order_relaxed) < n_threads_;
    Board* board = n_tasks > 1 && may_have_help ? take_board() : nullptr;
    if (board == nullptr) {
      for (int64_t i = 0; i < n_tasks; ++i) task(i);
      return;
    }
    Job job{detail::TaskQueue(n_tasks), &task,
            [](const void* shared, int64_t i) { (*static_cast<const Task*>(shared))(i); }};
    board->job.store(&job);
    announce();
    job.run();
    board->job.store(nullptr);
    while (board->n_readers.load() > 0) pause_thread();
    board->is_taken.store(false);
    job.queue.rethrow();
  }

  // The same for consecutive pieces of 0 .. n - 1, of `size` each except for the last: calls
  // task(begin, end).
  template <class Task>
  void share_pieces(int64_t n, int64_t size, const Task& task) {
    share((n + size - 1) / size,
          [&](int64_t piece) { task(piece * size, std::min((piece + 1) * size, n)); });
  }

 private:
  struct Job {
    detail::TaskQueue queue;
    const void* task;
    void (*call)(const void*, int64_t);

    void run() {
      const auto one = [this](int64_t i) { call(task, i); };
      queue.run(one);
    }
  };
  // Where a thread announces the work that it shares. The job is destroyed once no thread reads the
  // cleared board, so readers register first.
  struct alignas(64) Board {
    std::atomic<bool> is_taken{false};
    std::atomic<Job*> job{nullptr};
    std::atomic<int> n_readers{0};
  };

  // Wakes sleeping threads: there is work, or all threads are done.
  void announce() {
    news_.fetch_add(1);
    news_.notify_all();
  }

  // Helps with shared work until all threads are done.
  void help() {
    const int seat = n_seats_.fetch_add(1);
    n_idle_.fetch_add(1);
    while (n_at_work_.load() > 0) {
      const uint32_t seen = news_.load();
      const bool has_news = watch_for([&] { return help_someone(seat) || n_at_work_.load() == 0; });
      if (has_news) continue;
      if (std::this_thread::get_id() == caller_)
        poll();
      else
        news_.wait(seen);
    }
    n_idle_.fetch_sub(1);
  }

  // Null if all boards are in use.
  Board* take_board() {
    for (Board& board : boards_)
      if (!board.is_taken.load(std::memory_order_relaxed) && !board.is_taken.exchange(true))
        return &board;
    return nullptr;
  }

  // Returns whether there was something to do. Threads begin to look in different places, so that
  // tasks get equal help and end at about the same time.
  bool help_someone(int seat) {
    const int first = seat % std::max(n_at_work_.load(std::memory_order_relaxed), 1);
    for (int i = 0; i < n_threads_; ++i) {
      Board& board = boards_[(first + i) % n_threads_];
      if (board.job.load(std::memory_order_relaxed) == nullptr) continue;
      board.n_readers.fetch_add(1);
      Job* job = board.job.load();
      const bool helps = job != nullptr && job->queue.has_more();
      if (helps) {
        n_idle_.fetch_sub(1);
        job->run();
        n_idle_.fetch_add(1);
      }
      // All of its remaining work has been taken. No other job can be here, since there is a
      // reader.
      if (job != nullptr) board.job.store(nullptr);
      board.n_readers.fetch_sub(1);
      if (helps) return true;
    }
    return false;
  }

  // The others notice an interrupt at their next check.
  void poll() {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (interrupted_) return;
    try {
      stop_.check();
    } catch (const Interrupted&) {
      interrupted_ = std::current_exception();
    }
  }

  int n_threads_;
  Stop& stop_;
  std::thread::id caller_;
  std::exception_ptr interrupted_;  // of the caller's thread
  std::vector<Board> boards_;
  std::atomic<int> n_at_work_{0};
  std::atomic<int> n_idle_{0};
  std::atomic<int> n_seats_{0};  // threads that have begun to help
  std::atomic<uint32_t> news_{0};
};

}  // namespace hedgerow
