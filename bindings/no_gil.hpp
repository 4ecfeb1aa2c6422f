// Working without the GIL, also while Python shuts down.
//
// A thread that requests the GIL while the interpreter shuts down is terminated (until Python
// 3.13), in the middle of C++ code, which aborts the process. Daemon threads may do that. So the
// thread that shuts Python down announces it first, through atexit, and from then on all other
// threads wait for the end of the process instead of requesting the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace hedgerow::bindings {

namespace nb = nanobind;

class PythonEnd {
 public:
  // Held while a thread requests the GIL. Does not return in a thread that must no longer request
  // it.
  class Asking {
   public:
    Asking() {
      ++n_asking_;
      if (!is_ending_ || std::this_thread::get_id() == ending_thread_) return;
      --n_asking_;
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
    ~Asking() { --n_asking_; }
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;
  };

  // Called with the GIL, before the interpreter is shut down: returns when no other thread requests
  // it.
  static void announce() {
    ending_thread_ = std::this_thread::get_id();
    is_ending_ = true;
    nb::gil_scoped_release no_gil;
    while (n_asking_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  // Called in a child process after a fork: the threads that requested the GIL do not exist there,
  // and the child is not shutting down even if the parent was.
  static void forget_threads() {
    n_asking_ = 0;
    is_ending_ = false;
  }

 private:
  static inline std::atomic<int> n_asking_{0};
  static inline std::atomic<bool> is_ending_{false};
  static inline std::thread::id ending_thread_;  // read only once is_ending_ is true
};

// The GIL is released as long as this exists.
class NoGil {
 public:
  NoGil() : state_(PyEval_SaveThread()) {}
  ~NoGil() {
    const PythonEnd::Asking asking;
    PyEval_RestoreThread(state_);
  }
  NoGil(const NoGil&) = delete;
  NoGil& operator=(const NoGil&) = delete;

 private:
  PyThreadState* state_;
};

// Whether a signal, such as Ctrl-C, has raised an exception. To be called without the GIL.
inline bool signal_has_raised() {
  PyGILState_STATE state;
  {
    const PythonEnd::Asking asking;
    state = PyGILState_Ensure();
  }
  const bool has_raised = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return has_raised;
}

}  // namespace hedgerow::bindings
