// Feature vectors as users write them in Python, read without detours.
//
// The common kinds are read here: a flat array, a tuple (indices, values) of arrays or lists, a dict
// {index: value}. What is unusual in any way (another type, a number that is not finite, an index
// out of range, a wrong size) is not judged here: read() says no, and the Python side
// (maxmargin.structures.vectors.sparse_vector) takes its time and finds out what is wrong, if anything.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "common.hpp"

namespace mm {

namespace nb = nanobind;

// The memory of a flat array, through the buffer protocol: a fraction of the cost of an nb::ndarray.
class FlatBuffer {
 public:
  explicit FlatBuffer(nb::handle object) : held_(PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FORMAT | PyBUF_STRIDES) == 0) {
    if (!held_) PyErr_Clear();
  }
  FlatBuffer(const FlatBuffer&) = delete;
  FlatBuffer& operator=(const FlatBuffer&) = delete;
  ~FlatBuffer() {
    if (held_) PyBuffer_Release(&view_);
  }

  bool flat() const { return held_ && view_.ndim == 1; }
  std::size_t size() const { return std::size_t(view_.shape[0]); }

  // Is it an array of T without gaps?
  template <class T>
  bool is() const {
    return flat() && kind() == kind_of<T>() && view_.itemsize == sizeof(T) && (size() < 2 || view_.strides[0] == sizeof(T));
  }
  template <class T>
  std::span<const T> span() const {
    return {static_cast<const T*>(view_.buf), size()};
  }

  // f(number) for each entry of an array of integers (`whole`) or real numbers; false for others.
  template <class F>
  bool each(bool whole, F&& f) const {
    if (!flat()) return false;
    const auto run = [&]<class T>(T) {
      const char* at = static_cast<const char*>(view_.buf);
      for (std::size_t k = 0; k < size(); ++k, at += view_.strides[0]) {
        T x;
        std::memcpy(&x, at, sizeof x);
        f(x);
      }
      return true;
    };
    const auto is = [&](char kind, std::size_t size) { return this->kind() == kind && std::size_t(view_.itemsize) == size; };
    if (is('i', 8)) return run(std::int64_t{});
    if (is('i', 4)) return run(std::int32_t{});
    if (is('u', 4)) return run(std::uint32_t{});
    if (whole) return false;
    if (is('f', 8)) return run(double{});
    if (is('f', 4)) return run(float{});
    return false;
  }

 private:
  template <class T>
  static constexpr char kind_of() {
    return std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 'i' : 'u';
  }
  // Of a number in the machine's own byte order; 0 for anything else.
  char kind() const {
    const char* format = view_.format;
    if (format == nullptr) return 0;
    if (*format == '@') ++format;
    if (*format == 0 || format[1] != 0) return 0;
    if (std::strchr("bhilqn", *format) != nullptr) return 'i';
    if (std::strchr("BHILQN", *format) != nullptr) return 'u';
    return std::strchr("fd", *format) != nullptr ? 'f' : char(0);
  }

  Py_buffer view_{};
  bool held_;
};

// Indices that ascend, and values that are finite and not zero.
class FeatureReader {
 public:
  std::span<const std::uint32_t> indices() const { return indices_; }
  std::span<const double> values() const { return values_; }
  std::vector<std::uint32_t>& indices() { return indices_; }
  std::vector<double>& values() { return values_; }

  // Look the types up that are recognised; once, when the module is imported.
  static void prepare() { types_of_python(); }

  // `size`: how many features there are, 0 where that is not known.
  bool read(nb::handle features, std::size_t size) {
    indices_.clear(), values_.clear();
    bound_ = size > 0 ? size : ~std::uint32_t{0};
    const Types& types = types_of_python();
    const PyTypeObject* type = Py_TYPE(features.ptr());
    if (type == types.array) return read_array(features, size);
    entries_.clear();
    if (type == &PyTuple_Type) return read_pair(features) && arrange();
    if (type == &PyDict_Type || type == types.default_dict || type == types.counter) return read_dict(features) && arrange();
    return false;
  }

 private:
  // Types that are recognised; what derives from them may mean something else.
  struct Types {
    PyTypeObject *array, *int64, *default_dict, *counter;
  };
  static const Types& types_of_python() {
    static const Types types = [] {
      const auto get = [](const char* module, const char* name) {
        return reinterpret_cast<PyTypeObject*>(nb::object(nb::module_::import_(module).attr(name)).release().ptr());
      };
      return Types{get("numpy", "ndarray"), get("numpy", "int64"), get("collections", "defaultdict"), get("collections", "Counter")};
    }();
    return types;
  }

  bool read_array(nb::handle features, std::size_t size) {
    const FlatBuffer array(features);
    if (!array.flat() || (size > 0 && array.size() != size) || array.size() > bound_) return false;
    bool good = true;
    std::uint32_t at = 0;
    const auto take = [&](double x) {
      if (x != 0.0) {
        good = good && std::isfinite(x);
        indices_.push_back(at), values_.push_back(x);
      }
      ++at;
    };
    if (!array.is<double>()) return array.each(false, [&](auto x) { take(double(x)); }) && good;
    // Most entries of most such vectors are zero: these are passed over in blocks.
    const auto x = array.span<double>();
    constexpr std::size_t kBlock = 32;
    while (at + kBlock <= x.size()) {
      std::uint64_t bits = 0;
      for (std::size_t k = 0; k < kBlock; ++k) bits |= std::bit_cast<std::uint64_t>(x[at + k]);
      if (bits << 1 == 0) {
        at += kBlock;
      } else {
        for (std::size_t k = 0; k < kBlock; ++k) take(x[at]);
      }
    }
    while (at < x.size()) take(x[at]);
    return good;
  }

  bool read_pair(nb::handle features) {
    if (PyTuple_Size(features.ptr()) != 2) return false;
    const nb::handle indices = PyTuple_GetItem(features.ptr(), 0), values = PyTuple_GetItem(features.ptr(), 1);
    bool good = read_list(indices, [&](nb::handle x) { return read_index(x, entries_.emplace_back().first); }) ||
                (is_array(indices) && FlatBuffer(indices).each(true, [&](auto x) { entries_.push_back({std::int64_t(x), 0.0}); }));
    if (!good) return false;
    std::size_t k = 0;
    const auto take = [&](double x) {
      if (k < entries_.size()) entries_[k].second = x;
      ++k;
    };
    good = read_list(values, [&](nb::handle x) {
             double value = 0.0;
             const bool ok = read_value(x, value);
             take(value);
             return ok;
           }) || (k == 0 && is_array(values) && FlatBuffer(values).each(false, [&](auto x) { take(double(x)); }));
    return good && k == entries_.size();
  }

  bool read_dict(nb::handle features) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(features.ptr(), &at, &key, &value) != 0;) {
      auto& [index, x] = entries_.emplace_back();
      if (!read_index(key, index) || !read_value(value, x)) return false;
    }
    return true;
  }

  static bool is_array(nb::handle object) { return Py_TYPE(object.ptr()) == types_of_python().array; }

  template <class F>
  static bool read_list(nb::handle list, F&& f) {
    if (Py_TYPE(list.ptr()) != &PyList_Type) return false;
    const Py_ssize_t n = PyList_Size(list.ptr());
    for (Py_ssize_t k = 0; k < n; ++k) {
      if (!f(nb::handle(PyList_GetItem(list.ptr(), k)))) return false;
    }
    return true;
  }

  static bool read_index(nb::handle object, std::int64_t& index) {
    PyTypeObject* type = Py_TYPE(object.ptr());
    if (type == &PyLong_Type) return read_whole(object, index);
    if (type != types_of_python().int64) return false;
    const nb::object whole = nb::steal(PyNumber_Index(object.ptr()));
    if (!whole.is_valid()) PyErr_Clear();
    return whole.is_valid() && read_whole(whole, index);
  }
  static bool read_value(nb::handle object, double& value) {
    if (PyFloat_Check(object.ptr())) {
      value = PyFloat_AsDouble(object.ptr());
      return true;
    }
    std::int64_t whole = 0;
    if (Py_TYPE(object.ptr()) != &PyLong_Type || !read_whole(object, whole)) return false;
    value = double(whole);
    return true;
  }
  static bool read_whole(nb::handle object, std::int64_t& whole) {
    int overflow = 0;
    whole = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
    return overflow == 0;
  }

  // Sort the entries, add equal indices up, leave zeros out.
  bool arrange() {
    const auto before = [](const auto& a, const auto& b) { return a.first < b.first; };
    const auto not_before = [](const auto& a, const auto& b) { return a.first >= b.first; };
    if (std::adjacent_find(entries_.begin(), entries_.end(), not_before) != entries_.end()) {
      std::stable_sort(entries_.begin(), entries_.end(), before);
    }
    for (std::size_t k = 0; k < entries_.size();) {
      const std::int64_t index = entries_[k].first;
      double sum = entries_[k].second;
      for (++k; k < entries_.size() && entries_[k].first == index; ++k) sum += entries_[k].second;
      if (index < 0 || std::uint64_t(index) >= bound_ || !std::isfinite(sum)) return false;
      if (sum != 0.0) indices_.push_back(std::uint32_t(index)), values_.push_back(sum);
    }
    return true;
  }

  std::vector<std::pair<std::int64_t, double>> entries_;
  std::vector<std::uint32_t> indices_;
  std::vector<double> values_;
  std::size_t bound_ = 0;
};

}  // namespace mm
