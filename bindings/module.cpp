#include "arrays.hpp"

NB_MODULE(_core, module) {
  module.doc() = "The loops that take the time. Arrays in, arrays out; the GIL is released.";
  hedgerow::bindings::bind_trellis(module);
  hedgerow::bindings::bind_linear(module);
  hedgerow::bindings::bind_items(module);
}
