// Converts lists of lists of dicts or of strings, as in sklearn-crfsuite, to sparse rows.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <string_view>

#include "arrays.hpp"
#include "parallel.hpp"
#include "simd.hpp"
#include "string_index.hpp"

namespace hedgerow::bindings {
namespace {

std::string_view text_of(nb::handle string) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(string.ptr(), &size);
  if (text == nullptr) throw nb::python_error();
  return {text, static_cast<size_t>(size)};
}

std::string kind_of(nb::handle value) {
  return nb::cast<std::string>(value.type().attr("__name__"));
}

bool is_string_list(nb::handle value) {
  PyObject* p = value.ptr();
  return PyList_Check(p) || PyTuple_Check(p) || PyAnySet_Check(p);
}

// Whether PyFloat_AsDouble runs no Python code.
bool is_plain_number(PyObject* p) { return PyLong_CheckExact(p) || PyFloat_CheckExact(p); }

// Prefetches a string: the object, and the text that follows it.
void prefetch_string(nb::handle string) {
  const char* p = reinterpret_cast<const char*>(string.ptr());
  HEDGEROW_PREFETCH(p);
  HEDGEROW_PREFETCH(p + 64);
}

// An element of a container. Without a GIL another thread may remove it in the meantime, so it is
// kept alive; the container is locked only while getting it.
#ifdef NB_FREE_THREADED
constexpr bool kHasGil = false;
using Element = nb::object;
Element element(PyObject* borrowed) { return nb::borrow(borrowed); }
#else
constexpr bool kHasGil = true;
using Element = nb::handle;
Element element(PyObject* borrowed) { return borrowed; }
#endif

bool next_of_list(PyObject* list, Py_ssize_t at, Element& next) {
  const nb::ft_object_guard guard(list);
  if (at >= PyList_Size(list)) return false;
  next = element(PyList_GetItem(list, at));
  return true;
}

bool next_of_dict(PyObject* dict, Py_ssize_t& at, Element& key, Element& value) {
  const nb::ft_object_guard guard(dict);
  PyObject* next_key = nullptr;
  PyObject* next_value = nullptr;
  if (!PyDict_Next(dict, &at, &next_key, &next_value)) return false;
  key = element(next_key);
  value = element(next_value);
  return true;
}

// Calls visit(element) for each element of a list or tuple, faster than with an iterator.
template <class Visit>
void for_each(nb::handle list_or_tuple, Visit visit) {
  PyObject* p = list_or_tuple.ptr();
  if (PyList_Check(p)) {
    Element next;
    for (Py_ssize_t i = 0; next_of_list(p, i, next); ++i) visit(next);
  } else {
    for (Py_ssize_t i = 0; i < PyTuple_Size(p); ++i) visit(element(PyTuple_GetItem(p, i)));
  }
}

// Names that a thread looks up at once: few enough that they are still in the cache. With several
// threads so many are recorded first that starting the threads takes little of the time.
constexpr int64_t kNamesAtOnce = 512;
constexpr int64_t kSharedNames = 1 << 14;

class ItemWalker {
 public:
  ItemWalker(StringIndex& index, bool grow, int n_threads)
      : index_(index),
        grow_(grow),
        n_threads_(n_threads),
        most_names_(n_threads > 1 ? n_threads * kSharedNames : kNamesAtOnce) {}

  void walk(nb::list sequences) {
    offsets_.push_back(0);
    indptr_.push_back(0);
    for_each(sequences, [&](const Element& sequence) {
      PyObject* p = sequence.ptr();
      // Python code, which makes a list here, may change the objects that names point into.
      const bool is_made = !PyList_CheckExact(p) && !PyTuple_CheckExact(p);
      if (is_made) flush();
      const nb::object items =
          nb::steal(PySequence_Fast(p, "a sequence must be a list of positions"));
      if (!items.is_valid()) throw nb::python_error();
      position_ = 0;
      for_each(items, [&](const Element& item) {
        walk_item(item);
        found_ends_.push_back(found_names_.size());
        ++position_;
        if (std::ssize(found_names_) >= most_names_) flush();
        if (++n_walked_ % 4096 == 0) check_signals();
      });
      if (is_made) flush();  // while the items exist
      offsets_.push_back(n_walked_);
      ++sequence_;
    });
    flush();
  }

  std::tuple<Returned<int64_t>, Returned<int64_t>, Returned<int32_t>,
             std::optional<Returned<double>>>
  result() {
    std::optional<Returned<double>> values;
    if (!values_.empty()) values = to_numpy(std::move(values_));
    return {to_numpy(std::move(offsets_)), to_numpy(std::move(indptr_)),
            to_numpy(std::move(columns_)), std::move(values)};
  }

 private:
  std::string_view text(nb::handle string) {
    try {
      return text_of(string);
    } catch (const nb::python_error&) {
      fail(
          "has a string that is not valid Unicode (half of a surrogate pair); "
          "repair or remove it");
    }
  }

  void walk_item(nb::handle item) {
    name_.clear();
    if (PyDict_Check(item.ptr())) {
      walk_dict(item);
    } else if (is_string_list(item)) {
      walk_strings(item);
    } else {
      fail("is of type " + kind_of(item) + "; expected a dict, or a list of attribute strings");
    }
  }

  // name_ holds the keys above, each with its colon.
  void walk_dict(nb::handle dict) {
    if (gather(dict)) {
      for (const auto& [key, value] : entries_) walk_entry(key, value);
      return;
    }
    Element key;
    Element value;
    Py_ssize_t at = 0;
    while (next_of_dict(dict.ptr(), at, key, value)) walk_entry(key, value);
  }

  // Lists the entries of a dict, and prefetches their keys; false if a value is not plain: then
  // reading it may run Python code, which may change the dict.
  bool gather(nb::handle dict) {
    entries_.clear();
    Element key;
    Element value;
    Py_ssize_t at = 0;
    while (next_of_dict(dict.ptr(), at, key, value)) {
      PyObject* p = value.ptr();
      if (!is_plain_number(p) && !PyBool_Check(p) && !PyUnicode_Check(p)) return false;
      prefetch_string(key);
      entries_.emplace_back(key, value);
    }
    return true;
  }

  void walk_entry(nb::handle key, nb::handle value) {
    if (!PyUnicode_Check(key.ptr()))
      fail("has a key of type " + kind_of(key) + "; attribute names must be strings");
    const std::string_view own = text(key);
    const size_t prefix = name_.size();
    if (prefix == 0 && add_number(own, value)) return;
    name_.append(own);
    walk_value(value);
    name_.resize(prefix);
  }

  // Records an attribute whose value is a plain number, which is the usual case: its name is the
  // key, which need not be copied. False if the value is no plain number.
  bool add_number(std::string_view name, nb::handle value) {
    PyObject* p = value.ptr();
    double number = 1.0;
    if (p != one_.ptr()) {
      if (!is_plain_number(p)) return false;
      number = PyFloat_AsDouble(p);
      if (number == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
      }
    }
    add(name, number);
    return true;
  }

  void walk_value(nb::handle value) {
    PyObject* p = value.ptr();
    if (PyUnicode_Check(p)) {
      name_.push_back(':');
      name_.append(text(value));
      add(name_, 1.0);
    } else if (PyBool_Check(p)) {
      add(name_, p == Py_True ? 1.0 : 0.0);
    } else if (PyDict_Check(p)) {
      if (++depth_ > 100) fail("nests dicts deeper than 100 levels at '" + name_ + "'");
      name_.push_back(':');
      walk_dict(value);
      --depth_;
    } else if (is_string_list(value)) {
      name_.push_back(':');
      walk_strings(value);
    } else {
      // Python code may change the objects that recorded names point into.
      if (!is_plain_number(p)) flush();
      const double number = value.is_none() ? -1.0 : PyFloat_AsDouble(p);
      if (value.is_none() || (number == -1.0 && PyErr_Occurred())) {
        PyErr_Clear();
        fail("has a value of type " + kind_of(value) + " for '" + name_ +
             "'; expected a number up to 1e100, a bool, a string, a list of strings or a dict; "
             "leave it out where it is missing");
      }
      add(name_, number);
    }
  }

  // Python code, which may run in here, may change the objects that recorded names point into.
  void check_signals() {
    flush();
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

  // The order of sets is not reproducible, so they are sorted, and of elements that are not
  // strings, the type whose name comes first is reported.
  void walk_strings(nb::handle strings) {
    if (PyAnySet_Check(strings.ptr())) {
      flush();  // subclasses of sets and strings may run Python code
      nb::list sorted;
      std::string odd;
      for (nb::handle string : strings) {
        if (PyUnicode_Check(string.ptr())) {
          sorted.append(string);
        } else if (const std::string kind = kind_of(string); odd.empty() || kind < odd) {
          odd = kind;
        }
      }
      if (!odd.empty()) refuse_in_list(odd);
      sorted.attr("sort")();
      walk_strings(sorted);
      flush();  // while the list exists
      return;
    }
    const size_t prefix = name_.size();
    strings_.clear();
    for_each(strings, [&](const Element& string) {
      prefetch_string(string);
      strings_.push_back(string);
    });
    for (const Element& string : strings_) {
      if (!PyUnicode_Check(string.ptr())) refuse_in_list(kind_of(string));
      if (prefix == 0) {
        add(text(string), 1.0);
      } else {
        name_.append(text(string));
        add(name_, 1.0);
        name_.resize(prefix);
      }
    }
  }

  [[noreturn]] void refuse_in_list(const std::string& kind) {
    fail("has a value of type " + kind + " in a list of attributes; expected strings");
  }

  // Records an attribute of this position. `name` must remain valid until the next flush, unless it
  // is name_, which is copied.
  void add(std::string_view name, double value) {
    if (std::isfinite(value) && std::fabs(value) >= 1e100)
      fail("has a number beyond 1e100 as the value of '" + std::string(name) + "'; scale it");
    if (!std::isfinite(value))
      fail("has " + std::string(std::isnan(value) ? "NaN" : "an infinite number") +
           " as the value of '" + std::string(name) +
           "'; leave it out where it is missing, otherwise pass a finite number");
    if (value == 0.0) return;
    if (!kHasGil || name.data() == name_.data()) name = made_.emplace_back(name);
    found_names_.push_back(name);
    found_values_.push_back(value);
  }

  // Looks up the numbers of the recorded attributes, many at once, since they are scattered in
  // memory. The threads do not need the GIL: while this thread has it, no name changes.
  void flush() {
    const size_t n = found_names_.size();
    ids_.resize(n);
    Stop never(nullptr);
    parallel_for_pieces(
        static_cast<int64_t>(n), kNamesAtOnce, n_threads_, never, [&](int64_t first, int64_t end) {
          index_.find_all(found_names_.data() + first, end - first, ids_.data() + first);
        });
    auto position_end = found_ends_.begin();
    const auto end_positions = [&](size_t end) {
      for (; position_end != found_ends_.end() && *position_end == end; ++position_end)
        indptr_.push_back(static_cast<int64_t>(columns_.size()));
    };
    for (size_t i = 0; i < n; ++i) {
      end_positions(i);
      const int32_t id = ids_[i] < 0 && grow_ ? index_.add(found_names_[i]) : ids_[i];
      if (id < 0) continue;
      const double value = found_values_[i];
      if (value != 1.0 && values_.empty()) values_.assign(columns_.size(), 1.0);
      columns_.push_back(id);
      if (!values_.empty() || value != 1.0) values_.push_back(value);
    }
    end_positions(n);
    found_names_.clear();
    found_values_.clear();
    found_ends_.clear();
    made_.clear();
  }

  [[noreturn]] void fail(const std::string& what) {
    throw nb::value_error(
        ("X[" + std::to_string(sequence_) + "][" + std::to_string(position_) + "] " + what)
            .c_str());
  }

  StringIndex& index_;
  bool grow_;
  int n_threads_;
  int64_t most_names_;
  int64_t sequence_ = 0;
  int64_t position_ = 0;
  int64_t n_walked_ = 0;
  int depth_ = 0;
  nb::int_ one_{1};  // Python has one object for each small number
  std::string name_;
  // Of the dict or list that is being read.
  std::vector<std::pair<Element, Element>> entries_;
  std::vector<Element> strings_;
  // Recorded since the last flush.
  std::vector<std::string_view> found_names_;
  std::vector<double> found_values_;
  std::vector<size_t> found_ends_;  // number of names at the end of each position
  // Names composed of keys and values; without a GIL, all of them.
  std::deque<std::string> made_;
  std::vector<int32_t> ids_;
  std::vector<int64_t> offsets_;
  std::vector<int64_t> indptr_;
  std::vector<int32_t> columns_;
  std::vector<double> values_;  // empty as long as all are 1
};

nb::object decode(std::string_view text) {
  nb::object string =
      nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr));
  if (!string.is_valid()) throw nb::python_error();
  return string;
}

nb::typed<nb::list, nb::str> names_of(const StringIndex& index) {
  nb::typed<nb::list, nb::str> names;
  for (int64_t id = 0; id < index.size(); ++id) names.append(decode(index.at(id)));
  return names;
}

std::pair<Returned<uint8_t>, Returned<int64_t>> arrays_of_index(const StringIndex& index) {
  return {to_numpy(std::vector<uint8_t>(index.text().begin(), index.text().end())),
          to_numpy(std::vector<int64_t>(index.offsets()))};
}

void fill_index(StringIndex& index, const Array<const uint8_t, 1>& text, const Offsets& offsets) {
  const int64_t* bounds = offsets.data();
  const size_t n = offsets.shape(0);
  check(n >= 1 && bounds[0] == 0 && bounds[n - 1] == static_cast<int64_t>(text.shape(0)),
        "name offsets must run from 0 to the length of the text");
  for (size_t i = 0; i + 1 < n; ++i) {
    check(bounds[i] <= bounds[i + 1] && bounds[i + 1] <= bounds[n - 1],
          "name offsets must not decrease");
    const std::string_view name{reinterpret_cast<const char*>(text.data()) + bounds[i],
                                static_cast<size_t>(bounds[i + 1] - bounds[i])};
    decode(name);
    check(index.add(name) == static_cast<int32_t>(i), "a name occurs twice");
  }
}

}  // namespace

void bind_items(nb::module_& module) {
  nb::class_<StringIndex>(module, "StringIndex",
                          "Numbers strings 0, 1, 2, ... in order of first appearance. While it "
                          "grows it belongs to one thread; then it never changes.")
      .def(nb::init<>())
      .def("__len__", &StringIndex::size)
      .def(
          "find", [](const StringIndex& index, nb::str name) { return index.find(text_of(name)); },
          nb::arg("name"))
      .def(
          "add", [](StringIndex& index, nb::str name) { return index.add(text_of(name)); },
          nb::arg("name"))
      .def("names", &names_of)
      .def("digests", [](const StringIndex& index) { return to_numpy(index.digests()); })
      .def(
          "numbers_by_count",
          [](const StringIndex& index, Array<const int64_t, 1> counts,
             Array<const uint64_t, 1> places) {
            const auto size = static_cast<size_t>(index.size());
            check_shape(counts, {size}, "counts must have an entry for each name");
            check_shape(places, {size}, "places must have an entry for each name");
            return to_numpy(index.numbers_by_count(counts.data(), places.data()));
          },
          array("counts"), array("places"))
      .def(
          "renumbered",
          [](const StringIndex& index, Codes numbers) {
            const auto size = static_cast<size_t>(index.size());
            check(numbers.shape(0) == size, "numbers must have an entry for each name");
            std::vector<int64_t> order(size, -1);
            for (size_t id = 0; id < size; ++id) {
              const int32_t number = numbers.data()[id];
              check(number >= 0 && static_cast<size_t>(number) < size && order[number] < 0,
                    "numbers must be 0, 1, 2, ... in any order");
              order[number] = static_cast<int64_t>(id);
            }
            StringIndex other;
            for (const int64_t id : order) other.add(index.at(id));
            return other;
          },
          array("numbers"))
      .def("to_arrays", &arrays_of_index)
      .def_static(
          "from_arrays",
          [](const Array<const uint8_t, 1>& text, const Offsets& offsets) {
            StringIndex index;
            fill_index(index, text, offsets);
            return index;
          },
          nb::arg("text"), nb::arg("offsets"))
      .def("__getstate__", &arrays_of_index)
      .def("__setstate__",
           [](StringIndex& index, const std::pair<Array<const uint8_t, 1>, Offsets>& state) {
             new (&index) StringIndex();
             fill_index(index, state.first, state.second);
           });
  module.def(
      "walk_items",
      [](nb::typed<nb::list, nb::any> sequences, StringIndex& index, bool grow, int n_threads) {
        ItemWalker walker(index, grow, n_threads);
        walker.walk(sequences);
        return walker.result();
      },
      nb::arg("sequences"), nb::arg("index"), nb::arg("grow"), nb::arg("n_threads"));
}

}  // namespace hedgerow::bindings
