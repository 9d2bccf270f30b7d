// Tokens and labels given as Python objects, turned into numbers.
//
// Everything here runs with the GIL held and uses only the stable ABI. Python code of the user may
// run in the middle (an __iter__, a __float__, a signal handler) and may change any container, so:
// sizes are asked for again at every step, whatever is used across such a call is held by a strong
// reference, and text is copied unless nothing of the user's can run before it is used.
#pragma once

#include <nanobind/nanobind.h>

#include "row_pipe.hpp"

namespace mm {

namespace nb = nanobind;

namespace py {

[[noreturn]] inline void type_error(const std::string& message) {
  throw nb::type_error(message.c_str());
}

inline bool is_text(PyObject* x) { return PyUnicode_Check(x) || PyBytes_Check(x); }

inline std::string type_name(PyObject* x) {
  nb::object name = nb::steal(PyType_GetName(Py_TYPE(x)));
  const char* text = name.is_valid() ? PyUnicode_AsUTF8AndSize(name.ptr(), nullptr) : nullptr;
  if (text == nullptr) PyErr_Clear();
  return text != nullptr ? text : "object";
}

// The repr of an object, shortened; its type if it has no usable one.
inline std::string shown(PyObject* x) {
  constexpr Py_ssize_t kLongest = 80;
  nb::object repr = nb::steal(PyObject_Repr(x));
  Py_ssize_t size = 0;
  const char* text = repr.is_valid() ? PyUnicode_AsUTF8AndSize(repr.ptr(), &size) : nullptr;
  if (text == nullptr) {
    // A pending Ctrl-C must not be lost in an error message; anything else may.
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) throw nb::python_error();
    PyErr_Clear();
    return std::string("<").append(type_name(x)).append(">");
  }
  if (size <= kLongest) return {text, std::size_t(size)};
  Py_ssize_t cut = kLongest;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0u) == 0x80u) --cut;
  return std::string(text, std::size_t(cut)) + "...";
}

inline std::string shown(std::string_view utf8) {
  nb::object text = nb::steal(
      PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "backslashreplace"));
  if (!text.is_valid()) throw nb::python_error();
  return shown(text.ptr());
}

// "a" or "an" and the type.
inline std::string a_type(PyObject* x) {
  if (x == Py_None) return "None";
  const std::string name = type_name(x);
  const bool vowel = name.find_first_of("aeiouAEIOU") == 0;
  return (vowel ? "an " : "a ") + name;
}

// Let Ctrl-C be seen and other threads run. Only where nothing borrowed is in use.
inline void breathe() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  const nb::gil_scoped_release others;
}

// The UTF-8 bytes of a str or bytes object; they live as long as it does. No Python code runs.
// `where` is called for the beginning of an error message.
template <class Where>
std::string_view utf8(PyObject* x, Where&& where) {
  Py_ssize_t size = 0;
  if (PyUnicode_Check(x)) {
    const char* text = PyUnicode_AsUTF8AndSize(x, &size);
    if (text != nullptr) return {text, std::size_t(size)};
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nb::python_error();
    PyErr_Clear();
    const nb::object held = nb::borrow(x);  // its repr may be the user's, and drop it
    throw BadInput(where() + "the string " + shown(x) +
                   " holds a lone surrogate, so it cannot be written as UTF-8; expected text");
  }
  char* bytes = nullptr;
  if (PyBytes_AsStringAndSize(x, &bytes, &size) != 0) throw nb::python_error();
  const std::string_view text{bytes, std::size_t(size)};
  if (!is_utf8(text)) {
    const nb::object held = nb::borrow(x);
    throw BadInput(where() + shown(x) + " is not UTF-8; expected text");
  }
  return text;
}

// A list or tuple seen as items, whatever happens to it meanwhile.
class Items {
 public:
  explicit Items(nb::object list_or_tuple)
      : object_(std::move(list_or_tuple)), is_list_(PyList_Check(object_.ptr())) {}
  Py_ssize_t size() const {
    return is_list_ ? PyList_Size(object_.ptr()) : PyTuple_Size(object_.ptr());
  }
  // Borrowed.
  PyObject* operator[](Py_ssize_t i) const {
    PyObject* x = is_list_ ? PyList_GetItem(object_.ptr(), i) : PyTuple_GetItem(object_.ptr(), i);
    if (x == nullptr) throw nb::python_error();
    return x;
  }

 private:
  nb::object object_;
  bool is_list_;
};

inline bool is_list_or_tuple(PyObject* x) { return PyList_Check(x) || PyTuple_Check(x); }

// Whether it is a mapping by the rule of dict(x): it has keys.
inline bool is_mapping(PyObject* x) {
  return PyDict_Check(x) || PyObject_HasAttrString(x, "keys") == 1;
}

// Any finite ordered collection as items: not text, not a dict or set, not an iterator. Returns
// false, without an error set, if it is none; what its __len__ or __iter__ raises is passed on.
inline bool to_items(nb::handle x, nb::object& out) {
  if (is_list_or_tuple(x.ptr())) {
    out = nb::borrow(x);
    return true;
  }
  if (is_text(x.ptr()) || PyAnySet_Check(x.ptr()) || PyDict_Check(x.ptr())) return false;
  if (PyObject_Size(x.ptr()) < 0) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    return false;
  }
  out = nb::steal(PySequence_List(x.ptr()));
  if (!out.is_valid()) throw nb::python_error();
  return true;
}

inline std::string at(std::size_t sequence) { return "sequence " + std::to_string(sequence); }
inline std::string at(std::size_t sequence, std::size_t token) {
  return at(sequence) + ", token " + std::to_string(token);
}

}  // namespace py

// Sequences of tokens -> compressed sparse rows, one row a token.
//
// A token is a dict, read as python-crfsuite reads it, or a collection of strings, each a feature
// of weight one. With grow, new features get the next number; without, they are left out. Features
// of weight zero are left out too, and get no number.
class TokenEncoder : RowBuilder {
 public:
  using RowBuilder::indices;
  using RowBuilder::indptr;
  using RowBuilder::RowBuilder;
  using RowBuilder::values;
  using RowBuilder::values64;
  using RowBuilder::weighted;
  Buffer<std::int64_t> offsets;  // [sequences + 1]

  // With more than one thread names are looked up in another one (row_pipe.hpp).
  void encode(nb::handle X, int threads) {
    nb::object held;
    if (!py::to_items(X, held)) py::type_error("X is " + py::a_type(X.ptr()) + "; " + kShape);
    const py::Items sequences(std::move(held));
    if (sequences.size() == 0) throw BadInput("X is empty; expected at least one sequence");
    if (threads < 2 || sequences.size() < kWorthAThread) {
      encode_all(sequences);
      return;
    }
    RowPipe pipe(*this);
    pipe_ = &pipe;
    try {
      try {
        encode_all(sequences);
      } catch (const RowPipe::Overflow&) {
        throw;
      } catch (...) {
        pipe.finish_before();  // an error in an earlier row comes first
        throw;
      }
      pipe.finish();
    } catch (const RowPipe::Overflow& found) {
      find_row(found.row);
      too_large(found.name);
    }
    pipe_ = nullptr;
  }

 private:
  static constexpr const char* kShape =
      "expected a list of sequences, where a sequence is a list of tokens and a token is a dict of "
      "features or a list of feature strings";
  static constexpr const char* kToken =
      "; expected a dict of features or a list of feature strings";
  static constexpr std::size_t kWorkPerBreath = std::size_t{1} << 15;
  static constexpr int kDeepest = 64;
  static constexpr Py_ssize_t kWorthAThread = 16;

  void encode_all(const py::Items& sequences) {
    offsets.push(0);
    for (Py_ssize_t i = 0; i < sequences.size(); ++i) {
      sequence_ = std::size_t(i);
      encode_sequence(nb::borrow(sequences[i]));
      offsets.push(static_cast<std::int64_t>(pipe_ != nullptr ? pipe_->rows() : rows()));
    }
  }

  // Make `where` that of a row.
  void find_row(std::size_t row) {
    const std::int64_t* const first = offsets.data();
    sequence_ = std::size_t(std::upper_bound(first, first + offsets.size(), std::int64_t(row)) - first) - 1;
    token_ = row - std::size_t(first[sequence_]);
  }
  [[noreturn]] void too_large(std::string_view name) {
    throw BadInput(where() + ", feature " + py::shown(name) +
                   ": its values sum to more than 1e12 in size; expected a smaller sum");
  }

  // Features of a row, here or in the other thread. The text of `add` stays where it is until the row ends.
  void add(std::string_view text) {
    if (pipe_ != nullptr) {
      pipe_->add(1.0, text);
    } else {
      RowBuilder::add(text);
    }
  }
  template <class... Parts>
  void add_joined(double weight, const Parts&... parts) {
    if (pipe_ != nullptr) {
      pipe_->add(weight, parts...);
    } else {
      RowBuilder::add_joined(weight, parts...);
    }
  }

  std::string where() const { return py::at(sequence_, token_); }
  auto prefix_where() const {
    return [this] { return where() + ": "; };
  }

  // Only where no borrowed reference is in use, for Python code may run.
  void count_work(std::size_t amount) {
    work_ += amount;
    if (work_ < kWorkPerBreath) return;
    work_ = 0;
    py::breathe();
  }

  void encode_sequence(const nb::object& sequence) {
    nb::object held;
    if (!py::to_items(sequence, held)) {
      py::type_error(py::at(sequence_) + " is " + py::a_type(sequence.ptr()) + "; " + kShape);
    }
    const py::Items tokens(std::move(held));
    if (tokens.size() == 0) {
      throw BadInput(py::at(sequence_) + " is empty; expected at least one token");
    }
    for (Py_ssize_t t = 0; t < tokens.size(); ++t) {
      token_ = std::size_t(t);
      if (t + 1 < tokens.size()) fetch_ahead(tokens[t + 1]);
      encode_token(nb::borrow(tokens[t]));
    }
  }

  // The strings of a corpus lie all over memory, and reading them costs more than looking them up:
  // those of the next token are on their way while this one is encoded.
  static void fetch_ahead(PyObject* token) {
    if (!PyList_Check(token)) return;
    const Py_ssize_t n = PyList_Size(token);
    for (Py_ssize_t k = 0; k < n; ++k) prefetch_range(PyList_GetItem(token, k), 80);
  }

  void encode_token(const nb::object& token) {
    if (pipe_ != nullptr) {
      pipe_->begin_row();
    } else {
      begin_row();
    }
    prefix_.clear();
    PyObject* x = token.ptr();
    if (PyDict_Check(x)) {
      read_dict(x, 0);
    } else if (py::is_list_or_tuple(x)) {
      read_list(py::Items(token));
    } else {
      read_other(x);
    }
    // No Python code runs in here.
    std::size_t size = 0;
    if (pipe_ != nullptr) {
      size = pipe_->row_size();
      pipe_->end_row();
    } else {
      end_row([this](std::string_view name) { too_large(name); });
      size = row_size();
    }
    count_work(size + 1);
  }

  // No Python code runs in here, so that the texts can stay where they are until end_row().
  void read_list(const py::Items& items) {
    const Py_ssize_t n = items.size();
    borrowed_.clear();
    for (Py_ssize_t k = 0; k < n; ++k) {
      borrowed_.push_back(items[k]);
      prefetch(borrowed_.back());
    }
    for (PyObject* item : borrowed_) {
      if (!py::is_text(item)) not_a_string(item);
      add(py::utf8(item, prefix_where()));
    }
  }

  [[noreturn]] void not_a_string(PyObject* item) {
    const nb::object held = nb::borrow(item);
    const bool number = PyNumber_Check(item) == 1;
    py::type_error(where() + ": a feature is " + py::a_type(item) + ", " + py::shown(item) +
                   "; expected a str" +
                   (number ? " (for numbers use {name: number} dicts or one (tokens, features) "
                             "numpy array a sequence)"
                           : ""));
  }

  // Sets, generators, arrays of strings, mappings that are no dicts.
  void read_other(PyObject* x) {
    if (py::is_text(x)) {
      py::type_error(where() + " is " + py::a_type(x) + ", " + py::shown(x) +
                     kToken + ". X has one level of nesting too few: " + kShape);
    }
    if (py::is_mapping(x)) {
      read_mapping(x, 0);
      return;
    }
    nb::object iterator = nb::steal(PyObject_GetIter(x));
    if (!iterator.is_valid()) {
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
      nb::python_error cause;
      const std::string message = where() + " is " + py::a_type(x) + kToken;
      nb::raise_from(cause, PyExc_TypeError, "%s", message.c_str());
      throw nb::python_error();
    }
    read_iterator(iterator);
  }

  void read_iterator(const nb::object& iterator) {
    for (;;) {
      const nb::object item = nb::steal(PyIter_Next(iterator.ptr()));
      if (!item.is_valid()) break;
      if (!py::is_text(item.ptr())) {
        if (prefix_.empty()) not_a_string(item.ptr());
        bad_value(item.ptr(), "a str within the collection");
      }
      push(py::utf8(item.ptr(), prefix_where()), 1.0);
      count_work(1);
    }
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
  }

  void read_mapping(PyObject* x, int depth) {
    const nb::object copy = nb::steal(PyDict_New());
    if (!copy.is_valid() || PyDict_Update(copy.ptr(), x) != 0) throw nb::python_error();
    read_dict(copy.ptr(), depth);
  }

  void read_dict(PyObject* dict, int depth) {
    if (depth > kDeepest) {
      throw BadInput(where() + ": dicts are nested more than " + std::to_string(kDeepest) +
                     " deep under " + py::shown(std::string_view(prefix_).substr(0, 40)));
    }
    const Py_ssize_t size = PyDict_Size(dict);
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    while (PyDict_Next(dict, &position, &key, &value) != 0) {
      if (!py::is_text(key)) {
        const nb::object held = nb::borrow(key);
        py::type_error(where() + ": the key " + py::shown(key) + " is " + py::a_type(key) +
                       "; expected a str");
      }
      const std::string_view name = py::utf8(key, prefix_where());
      if (py::is_text(value)) {
        push(name, py::utf8(value, prefix_where()));
      } else if (value == Py_True) {
        push(name, 1.0);
      } else if (PyFloat_Check(value)) {
        push_number(name, PyFloat_AsDouble(value), value);
      } else if (value != Py_False) {
        const nb::object key_held = nb::borrow(key), value_held = nb::borrow(value);
        read_slow_value(name, value, depth);
        if (PyDict_Size(dict) != size) {
          throw BadInput(where() + ": the dict changed while it was read");
        }
      }
    }
  }

  // Whatever may run Python code or recurse. Key and value are held by the caller.
  void read_slow_value(std::string_view name, PyObject* value, int depth) {
    if (PyLong_Check(value)) {
      push_number(name, PyLong_AsDouble(value), value);
      return;
    }
    // Anything with a float in it, such as a numpy scalar; but not an array of one number, which
    // would work by accident only.
    const bool sized = PySequence_Check(value) == 1 && PyObject_Size(value) >= 0;
    if (PyErr_Occurred() != nullptr) {
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
      PyErr_Clear();
    }
    if (!sized && PyNumber_Check(value) == 1) {
      const double number = PyFloat_AsDouble(value);
      const bool failed = number == -1.0 && PyErr_Occurred() != nullptr;
      // A ValueError is what an array of one string gives.
      if (!failed || !(PyErr_ExceptionMatches(PyExc_TypeError) ||
                       PyErr_ExceptionMatches(PyExc_ValueError))) {
        push_number(name, number, value);
        return;
      }
      PyErr_Clear();
    }
    const std::size_t outer = prefix_.size();
    prefix_.append(name).push_back(':');
    if (PyDict_Check(value)) {
      read_dict(value, depth + 1);
    } else if (py::is_list_or_tuple(value) || PyAnySet_Check(value)) {
      const nb::object iterator = nb::steal(PyObject_GetIter(value));
      if (!iterator.is_valid()) throw nb::python_error();
      read_iterator(iterator);
    } else if (PyNumber_Check(value) == 0 && py::is_mapping(value)) {
      read_mapping(value, depth + 1);
    } else {
      bad_value(value, "a number, bool, str, dict, or a list, tuple or set of str");
    }
    prefix_.resize(outer);
  }

  // prefix_ is the path to the value, with a colon at its end.
  [[noreturn]] void bad_value(PyObject* value, const char* expected) {
    py::type_error(where() + ", key " +
                   py::shown(std::string_view(prefix_).substr(0, prefix_.size() - 1)) +
                   ": found " + py::a_type(value) + ", " + py::shown(value) + "; expected " +
                   expected);
  }

  // -1.0 with an error set means that there was no number in it.
  void push_number(std::string_view name, double number, PyObject* value) {
    if (number == -1.0 && PyErr_Occurred() != nullptr) {
      if (!PyErr_ExceptionMatches(PyExc_OverflowError)) throw nb::python_error();
      PyErr_Clear();
      number = std::numeric_limits<double>::infinity();
    }
    if (!(std::abs(number) <= kMaxValue)) {
      const nb::object held = nb::borrow(value);
      // Python refuses to show a really long integer.
      const std::string found = PyLong_Check(value) ? "an integer too large" : py::shown(value);
      throw BadInput(where() + ", feature " + py::shown(prefix_ + std::string(name)) + ": found " +
                     found + "; expected a number between -1e12 and 1e12");
    }
    if (number != 0.0) push(name, number);
  }

  void push(std::string_view name, double weight) { add_joined(weight, prefix_, name); }
  void push(std::string_view name, std::string_view value) {
    add_joined(1.0, prefix_, name, ":", value);
  }

  std::size_t sequence_ = 0, token_ = 0, work_ = 0;
  RowPipe* pipe_ = nullptr;
  std::vector<PyObject*> borrowed_;
  std::string prefix_;  // "outer:inner:" within nested dicts
};

// Sequences of labels -> codes, by way of a dict {label: code}. With grow, new labels get the next
// code and are put into the dict; without, they are an error.
class LabelEncoder {
 public:
  LabelEncoder(nb::dict labels, bool grow) : labels_(std::move(labels)), grow_(grow) {}

  Buffer<std::int64_t> offsets;  // [sequences + 1]
  Buffer<std::int32_t> codes;    // [tokens]

  void encode(nb::handle y) {
    nb::object held;
    if (!py::to_items(y, held)) py::type_error("y is " + py::a_type(y.ptr()) + "; " + kShape);
    const py::Items sequences(std::move(held));
    if (sequences.size() == 0) {
      throw BadInput("y is empty; expected at least one sequence of labels");
    }
    offsets.push(0);
    std::size_t work = 0;
    for (Py_ssize_t i = 0; i < sequences.size(); ++i) {
      const nb::object sequence = nb::borrow(sequences[i]);
      nb::object items;
      if (!py::to_items(sequence, items)) {
        py::type_error("y: " + py::at(std::size_t(i)) + " is " + py::a_type(sequence.ptr()) + "; " +
                       kShape);
      }
      const py::Items tokens(std::move(items));
      if (tokens.size() == 0) {
        throw BadInput("y: " + py::at(std::size_t(i)) + " is empty; expected at least one label");
      }
      for (Py_ssize_t t = 0; t < tokens.size(); ++t) {
        PyObject* label = tokens[t];
        // The same few objects come again and again: an address is found faster than a hash.
        Recent& recent = recent_[(reinterpret_cast<std::uintptr_t>(label) >> 4) % kRecent];
        if (recent.label.ptr() != label) {
          const nb::object label_held = nb::borrow(label);
          recent.code = look_up(label, std::size_t(i), std::size_t(t));
          recent.label = label_held;
        }
        codes.push(recent.code);
        if (++work % (std::size_t{1} << 15) == 0) py::breathe();
      }
      offsets.push(static_cast<std::int64_t>(codes.size()));
    }
  }

 private:
  static constexpr const char* kShape =
      "expected a list of sequences, where a sequence is a list of labels, one for each token";
  static constexpr std::size_t kRecent = 256;

  struct Recent {
    nb::object label;  // held, so that no other object can come to live at its address
    std::int32_t code = 0;
  };

  static std::string where(std::size_t i, std::size_t t) { return "y: " + py::at(i, t) + ": "; }

  std::int32_t look_up(PyObject* label, std::size_t i, std::size_t t) {
    if (PyObject_Hash(label) == -1) {
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
      PyErr_Clear();
      py::type_error(where(i, t) + "a label is " + py::a_type(label) + ", " + py::shown(label) +
                     "; expected something hashable, such as a str or an int");
    }
    PyObject* known = PyDict_GetItemWithError(labels_.ptr(), label);
    if (known != nullptr) {
      const nb::object known_held = nb::borrow(known);
      int overflow = 0;
      const long long code =
          PyLong_Check(known) ? PyLong_AsLongLongAndOverflow(known, &overflow) : -1;
      if (overflow != 0 || code < 0 || code > std::numeric_limits<std::int32_t>::max()) {
        throw BadInput("the code of label " + py::shown(label) + " is " + py::shown(known) +
                       "; expected an int from 0 to 2^31 - 1");
      }
      return static_cast<std::int32_t>(code);
    }
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    if (!grow_) unknown(label, i, t);
    // Not-a-number is unequal to itself: it would be a new class at every token.
    const nb::object differs = nb::steal(PyObject_RichCompare(label, label, Py_NE));
    if (!differs.is_valid()) throw nb::python_error();
    const int is_nan = PyObject_IsTrue(differs.ptr());
    if (is_nan < 0) throw nb::python_error();
    if (is_nan != 0) {
      throw BadInput(where(i, t) + "the label " + py::shown(label) +
                     " is not equal to itself; expected a str or an int");
    }
    const Py_ssize_t code = PyDict_Size(labels_.ptr());
    if (code < 0 || code > std::numeric_limits<std::int32_t>::max()) {
      throw BadInput("too many different labels");
    }
    const nb::object number = nb::steal(PyLong_FromSsize_t(code));
    if (!number.is_valid() || PyDict_SetItem(labels_.ptr(), label, number.ptr()) != 0) {
      throw nb::python_error();
    }
    return static_cast<std::int32_t>(code);
  }

  [[noreturn]] void unknown(PyObject* label, std::size_t i, std::size_t t) {
    constexpr Py_ssize_t kListed = 10;
    std::string known;
    const nb::object list = nb::steal(PyDict_Keys(labels_.ptr()));
    if (!list.is_valid()) throw nb::python_error();
    const py::Items keys(list);
    for (Py_ssize_t k = 0; k < std::min(keys.size(), kListed); ++k) {
      known += (k > 0 ? ", " : "") + py::shown(nb::borrow(keys[k]).ptr());
    }
    if (keys.size() > kListed) known += ", ...";
    throw BadInput(where(i, t) + "unknown label " + py::shown(label) + "; expected one of the " +
                   std::to_string(keys.size()) + " known labels (" + known + ")");
  }

  nb::dict labels_;
  const bool grow_;
  Recent recent_[kRecent];
};

}  // namespace mm
