#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "arrays.hpp"
#include "digest.hpp"
#include "draws.hpp"

namespace hedgerow::bindings {
namespace {

// The memory of an array, borrowed as long as this object lives.
class Buffer {
 public:
  explicit Buffer(nb::handle array)
      : is_there_(PyObject_GetBuffer(array.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0) {
    if (!is_there_) PyErr_Clear();
  }
  Buffer(Buffer&& other) noexcept
      : view_(other.view_), is_there_(std::exchange(other.is_there_, false)) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() {
    if (is_there_) PyBuffer_Release(&view_);
  }

  // Whether it has this many dimensions, and none of them is empty.
  bool is_filled(int n_dimensions) const {
    if (!is_there_ || view_.ndim != n_dimensions) return false;
    return std::all_of(view_.shape, view_.shape + n_dimensions, [](auto n) { return n > 0; });
  }
  // Whether the type and all lengths but the number of rows are the same.
  bool is_like(const Buffer& other) const {
    return view_.ndim == other.view_.ndim &&
           std::equal(view_.shape + 1, view_.shape + view_.ndim, other.view_.shape + 1) &&
           std::strcmp(view_.format, other.view_.format) == 0;
  }
  int n_dimensions() const { return is_there_ ? view_.ndim : 0; }
  int64_t n_rows() const { return view_.shape[0]; }
  int64_t n_bytes() const { return view_.len; }
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
  const int n_dimensions = first.n_dimensions();
  if (n_dimensions == 0 || !first.is_filled(n_dimensions)) return {};
  const nb::handle type = nb::handle(blocks[0]).type();
  const nb::str base_name("base");
  const nb::object base = nb::getattr(blocks[0], base_name, nb::none());
  std::vector<int64_t> lengths;
  bool are_pieces = !base.is_none();
  const char* end = first.begin();
  for (const nb::handle block : blocks) {
    const Buffer buffer(block);
    if (!block.type().is(type) || !buffer.is_filled(n_dimensions) || !buffer.is_like(first))
      return {};
    are_pieces = are_pieces && buffer.begin() == end && nb::getattr(block, base_name).is(base);
    end = buffer.end();
    lengths.push_back(buffer.n_rows());
  }
  return std::tuple{to_numpy(std::move(lengths)), are_pieces};
}

// The blocks' memory is borrowed with the GIL, and copied without it.
void join_blocks(const nb::typed<nb::list, nb::any>& blocks, const Array<uint8_t, 1>& out,
                 int n_threads) {
  constexpr int64_t kBytesPerTask = 1 << 18;
  std::vector<Buffer> buffers;
  buffers.reserve(blocks.size());
  std::vector<int64_t> firsts;  // where blocks begin in the output
  std::vector<size_t> tasks;    // first block of each
  int64_t n_bytes = 0;
  for (const nb::handle block : blocks) {
    const Buffer& buffer = buffers.emplace_back(block);
    check(buffer.n_dimensions() > 0, "a block is not C-contiguous");
    if (tasks.empty() || n_bytes - firsts[tasks.back()] >= kBytesPerTask)
      tasks.push_back(firsts.size());
    firsts.push_back(n_bytes);
    n_bytes += buffer.n_bytes();
  }
  check(n_bytes == static_cast<int64_t>(out.size()), "out must have the bytes of all blocks");
  run_kernel([&](Stop& stop) {
    parallel_for(std::ssize(tasks), n_threads, stop, [&](int64_t task) {
      stop.check();
      const size_t end = task + 1 < std::ssize(tasks) ? tasks[task + 1] : buffers.size();
      for (size_t i = tasks[task]; i < end; ++i)
        std::memcpy(out.data() + firsts[i], buffers[i].begin(),
                    static_cast<size_t>(buffers[i].n_bytes()));
    });
  });
}

// Copies row codes[i] of the table to row i of the output.
void take_rows(const Array<const uint8_t, 2>& table, const Codes& codes,
               const Array<uint8_t, 2>& out, int n_threads) {
  const size_t width = table.shape(1);
  check_shape(out, {codes.shape(0), width},
              "out must have a row for each code, as wide as those of the table");
  check(are_within(codes, 0, table.shape(0), n_threads), "a code is out of range");
  const auto copy = [&](int64_t begin, int64_t end, size_t n_bytes) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(out.data() + i * n_bytes, table.data() + codes.data()[i] * n_bytes, n_bytes);
  };
  run_kernel([&](Stop& stop) {
    parallel_for_pieces(static_cast<int64_t>(codes.shape(0)), kPositionsPerTask, n_threads, stop,
                        [&](int64_t begin, int64_t end) {
                          if (width == 8)
                            copy(begin, end, 8);  // the compiler knows the number then
                          else
                            copy(begin, end, width);
                        });
  });
}

// Sets numbers to 0.
void clear_numbers(const Array<double, 2>& numbers, int n_threads) {
  const auto n = static_cast<int64_t>(numbers.size());
  run_kernel([&](Stop& stop) {
    parallel_for_pieces(n, 4 * kPositionsPerTask, n_threads, stop, [&](int64_t begin, int64_t end) {
      std::fill(numbers.data() + begin, numbers.data() + end, 0.0);
    });
  });
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

Returned<uint64_t> identify_positions(Array<const uint64_t, 1> identities, Offsets offsets,
                                      int n_threads) {
  check(offsets.shape(0) == identities.shape(0) + 1,
        "offsets must have one entry more than there are sequences");
  check_offsets(offsets, static_cast<size_t>(offsets.data()[identities.shape(0)]));
  auto found = make_array<uint64_t>(offsets.data()[identities.shape(0)]);
  run_kernel([&](Stop& stop) {
    fill_position_identities(identities.data(), offsets.data(),
                             static_cast<int64_t>(identities.shape(0)), found.data(), n_threads,
                             stop);
  });
  return found;
}

Returned<double> draw_uniforms(Array<const uint64_t, 1> identities, uint64_t key, int n_threads) {
  const auto n = static_cast<int64_t>(identities.shape(0));
  auto drawn = make_array<double>(n);
  run_kernel(
      [&](Stop& stop) { fill_uniforms(identities.data(), n, key, drawn.data(), n_threads, stop); });
  return drawn;
}

double find_uniform(Doubles uniforms, int64_t place, int n_threads) {
  const auto n = static_cast<int64_t>(uniforms.shape(0));
  check(place >= 0 && place < n, "the place is out of range");
  double found = 0.0;
  run_kernel(
      [&](Stop& stop) { found = find_smallest(uniforms.data(), n, place, n_threads, stop); });
  return found;
}

}  // namespace

void bind_blocks(nb::module_& module) {
  module.def("measure_blocks", &measure_blocks, nb::arg("blocks"),
             "For arrays that are C-contiguous, of one type and with the same columns, if any, the "
             "number of rows of each, and whether they are adjacent pieces of one array. None if "
             "they are not like that, or empty.");
  module.def("join_blocks", &join_blocks, nb::arg("blocks"), array("out"), nb::arg("n_threads"),
             "Copies the bytes of C-contiguous arrays to out, one array after another.");
  module.def("take_rows", &take_rows, array("table"), array("codes"), array("out"),
             nb::arg("n_threads"), "Fills the rows of out with rows of the table, by their codes.");
  module.def("clear_numbers", &clear_numbers, array("numbers"), nb::arg("n_threads"),
             "Sets numbers to 0.");
  module.def("digest_sequences", &digest_rows, nb::arg("parts"), nb::arg("n_sequences"),
             nb::arg("n_threads"),
             "A number for the contents of each sequence. Each part has rows of bytes, and bounds "
             "that say which rows belong to each sequence.");
  module.def("identify_positions", &identify_positions, array("identities"), array("offsets"),
             nb::arg("n_threads"), "A number for each position, from those of the sequences.");
  module.def("draw_uniforms", &draw_uniforms, array("identities"), nb::arg("key"),
             nb::arg("n_threads"), "A random number for each identity under a key.");
  module.def("find_uniform", &find_uniform, array("uniforms"), nb::arg("place"),
             nb::arg("n_threads"),
             "The number that would be at a place, from 0, if the numbers were sorted.");
}

}  // namespace hedgerow::bindings
