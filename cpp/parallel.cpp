#include "parallel.hpp"

#include <condition_variable>

namespace hedgerow::detail {

void run_on_threads(const TaskQueue& queue, int64_t n_helpers, Stop& stop,
                    const std::function<void()>& run) {
  std::mutex mutex;
  std::condition_variable idle;
  std::atomic<int> n_done{0};
  std::exception_ptr interrupted;
  {
    Helpers helpers(n_helpers, [&] {
      run();
      const std::lock_guard lock(mutex);
      ++n_done;
      idle.notify_one();
    });
    run();
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

}  // namespace hedgerow::detail
