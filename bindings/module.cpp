#include <cstdlib>
#include <optional>

#include "arrays.hpp"
#include "large_pages.hpp"
#include "thread_pool.hpp"
#include "trellis/score_errors.hpp"
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace {

// A thread pool for the duration of a `with` block; within another one, that of the outer block.
struct PoolContext {
  explicit PoolContext(int n) : n_threads(n) {}

  int n_threads;
  std::optional<hedgerow::ThreadPool> pool;
};

}  // namespace

NB_MODULE(_core, module) {
#ifdef HEDGEROW_LEVEL
  if (!__builtin_cpu_supports(HEDGEROW_LEVEL)) {
    throw nanobind::import_error(
        "hedgerow was compiled on another machine, for its processor alone, and this one is older; "
        "compile it here: run make clean, then make again");
  }
#endif
  module.doc() =
      "The loops that take most of the time. Arrays in, arrays out; the GIL is released.";
  // Do not report objects that are still in a user's cache when Python exits.
  nanobind::set_leak_warnings(false);
  module.def(
      "release_memory",
      [] {
#if defined(__GLIBC__)
        malloc_trim(0);
#endif
      },
      "Return unused memory to the system, if the allocator would otherwise keep it.");
  module.def(
      "prefer_large_pages",
      [](hedgerow::bindings::Array<float, 2> zeros) {
        hedgerow::prefer_large_pages(zeros.data(), zeros.nbytes());
      },
      nanobind::arg("zeros").noconvert(),
      "Ask for large memory pages, before anything is written to an array.");
  nanobind::class_<PoolContext>(module, "ThreadPool",
                                "For a ``with`` block: calls from this thread share one set of "
                                "worker threads instead of starting new ones each time. There are "
                                "``n_threads`` from the beginning, the calling one included.")
      .def(nanobind::init<int>(), nanobind::arg("n_threads") = 1)
      .def("__enter__",
           [](PoolContext& self) {
             if (hedgerow::ThreadPool::idle() == nullptr) self.pool.emplace(self.n_threads);
           })
      .def(
          "__exit__",
          [](PoolContext& self, nanobind::handle, nanobind::handle, nanobind::handle) {
            self.pool.reset();
          },
          nanobind::arg("kind").none(), nanobind::arg("error").none(),
          nanobind::arg("traceback").none());
  nanobind::module_::import_("atexit").attr("register")(
      nanobind::cpp_function(&hedgerow::bindings::PythonEnd::announce));
  if (nanobind::module_ os = nanobind::module_::import_("os"); nanobind::hasattr(os, "fork"))
    os.attr("register_at_fork")(nanobind::arg("after_in_child") = nanobind::cpp_function(
                                    &hedgerow::bindings::PythonEnd::forget_threads));
  nanobind::exception<hedgerow::NoPath>(module, "NoPathError", PyExc_ValueError);
  hedgerow::bindings::bind_trellis(module);
  hedgerow::bindings::bind_automaton(module);
  hedgerow::bindings::bind_tree_graph(module);
  hedgerow::bindings::bind_linear(module);
  hedgerow::bindings::bind_items(module);
  hedgerow::bindings::bind_blocks(module);
  hedgerow::bindings::bind_bins(module);
  hedgerow::bindings::bind_tree_data(module);
  hedgerow::bindings::bind_trees(module);
  hedgerow::bindings::bind_forest(module);
  hedgerow::bindings::bind_objectives(module);
}
