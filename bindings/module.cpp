#include <cstdlib>

#include "arrays.hpp"
#include "trellis/score_errors.hpp"
#if defined(__GLIBC__)
#include <malloc.h>
#endif

NB_MODULE(_core, module) {
  module.doc() = "The loops that take the time. Arrays in, arrays out; the GIL is released.";
  // Objects that a user's cache still holds when Python ends are no business of the user's
  // terminal.
  nanobind::set_leak_warnings(false);
  module.def(
      "release_memory",
      [] {
#if defined(__GLIBC__)
        malloc_trim(0);
#endif
      },
      "Hand memory that is no longer used back to the system, where the allocator would keep it.");
  nanobind::module_::import_("atexit").attr("register")(
      nanobind::cpp_function(&hedgerow::bindings::PythonEnd::announce));
  if (nanobind::module_ os = nanobind::module_::import_("os"); nanobind::hasattr(os, "fork"))
    os.attr("register_at_fork")(nanobind::arg("after_in_child") = nanobind::cpp_function(
                                    &hedgerow::bindings::PythonEnd::forget_threads));
  nanobind::exception<hedgerow::NoPath>(module, "NoPathError", PyExc_ValueError);
  hedgerow::bindings::bind_trellis(module);
  hedgerow::bindings::bind_automaton(module);
  hedgerow::bindings::bind_linear(module);
  hedgerow::bindings::bind_items(module);
  hedgerow::bindings::bind_bins(module);
  hedgerow::bindings::bind_trees(module);
  hedgerow::bindings::bind_forest(module);
  hedgerow::bindings::bind_objectives(module);
}
