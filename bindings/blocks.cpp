#include <nanobind/stl/vector.h>

#include <cstring>

#include "arrays.hpp"
#include "digest.hpp"

namespace hedgerow::bindings {
namespace {

// The memory of an array, looked at for as long as this lives.
class Buffer {
 public:
  explicit Buffer(nb::handle array)
      : is_there_(PyObject_GetBuffer(array.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0) {
    if (!is_there_) PyErr_Clear();
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (is_there_) PyBuffer_Release(&view_);
  }

  bool is_table() const {
    return is_there_ && view_.ndim == 2 && view_.shape[0] > 0 && view_.shape[1] > 0;
  }
  bool is_like(const Buffer& other) const {
    return view_.shape[1] == other.view_.shape[1] &&
           std::strcmp(view_.format, other.view_.format) == 0;
  }
  int64_t n_rows() const { return view_.shape[0]; }
  const char* begin() const { return static_cast<const char*>(view_.buf); }
  const char* end() const { return begin() + view_.len; }

 private:
  Py_buffer view_;
  bool is_there_;
};

std::optional<std::tuple<Returned<int64_t>, bool>> measure_blocks(
    const nb::typed<nb::list, nb::any>& blocks) {
  if (blocks.size() == 0) return {};
  const Buffer first(blocks[0]);
  std::vector<int64_t> lengths;
  bool are_adjacent = true;
  const char* end = nullptr;
  for (const nb::handle block : blocks) {
    const Buffer buffer(block);
    if (!first.is_table() || !buffer.is_table() || !buffer.is_like(first)) return {};
    are_adjacent &= end == nullptr || buffer.begin() == end;
    end = buffer.end();
    lengths.push_back(buffer.n_rows());
  }
  return std::tuple{to_numpy(std::move(lengths)), are_adjacent};
}

using Rows = std::tuple<Array<const uint8_t, 2>, Offsets>;

Returned<uint64_t> digest_rows(const std::vector<Rows>& parts, int64_t n_sequences, int n_threads) {
  std::vector<DigestedRows> read;
  for (const auto& [bytes, bounds] : parts) {
    check(static_cast<int64_t>(bounds.shape(0)) == n_sequences + 1,
          "bounds must have one entry more than there are sequences");
    check_offsets(bounds, bytes.shape(0));
    read.push_back({bytes.data(), static_cast<int64_t>(bytes.shape(1)), bounds.data()});
  }
  std::vector<uint64_t> digests;
  run_kernel([&](Stop& stop) { digests = digest_sequences(read, n_sequences, n_threads, stop); });
  return to_numpy(std::move(digests));
}

}  // namespace

void bind_blocks(nb::module_& module) {
  module.def("measure_blocks", &measure_blocks, nb::arg("blocks"),
             "Of 2-D arrays that are C-contiguous, of one type and with the same columns: their "
             "numbers of rows, and whether each begins in memory where the last one ends. None if "
             "they are not like that, or empty.");
  module.def("digest_sequences", &digest_rows, nb::arg("parts"), nb::arg("n_sequences"),
             nb::arg("n_threads"),
             "A number for the contents of each sequence: of rows of bytes, and of the bounds of "
             "its rows in them.");
}

}  // namespace hedgerow::bindings
