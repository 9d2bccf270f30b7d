// Python's view of vocabularies and of the encoding of tokens and labels.
#include "bindings.hpp"
#include "encode.hpp"
#include "renumber.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using mm::to_numpy;
using mm::Vocabulary;

nb::object to_str(std::string_view text) {
  nb::object result = nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "strict"));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

// The text of a str, or nothing where no vocabulary can hold it: a lone surrogate.
bool text_of(nb::str x, std::string_view& out) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(x.ptr(), &size);
  if (text == nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nb::python_error();
    PyErr_Clear();
    return false;
  }
  out = {text, std::size_t(size)};
  return true;
}

std::uint32_t add(Vocabulary& self, nb::str name) {
  return self.add(mm::py::utf8(name.ptr(), [] { return std::string(); }));
}

nb::object names(const Vocabulary& self) {
  nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(self.size())));
  if (!list.is_valid()) throw nb::python_error();
  for (std::size_t id = 0; id < self.size(); ++id) {
    nb::object name = to_str(self.name(static_cast<std::uint32_t>(id)));
    if (PyList_SetItem(list.ptr(), static_cast<Py_ssize_t>(id), name.release().ptr()) != 0) {
      throw nb::python_error();
    }
  }
  return list;
}

Vocabulary from_names(nb::handle names, std::size_t max_size) {
  nb::object held;
  if (!mm::py::to_items(names, held)) {
    mm::py::type_error("names is " + mm::py::a_type(names.ptr()) + "; expected a list of str");
  }
  const mm::py::Items items(std::move(held));
  Vocabulary result(max_size);
  result.reserve(static_cast<std::size_t>(items.size()));
  for (Py_ssize_t k = 0; k < items.size(); ++k) {
    const nb::object item = nb::borrow(items[k]);
    const auto where = [&] { return "name " + std::to_string(k) + ": "; };
    if (!PyUnicode_Check(item.ptr())) {
      mm::py::type_error(where() + "found " + mm::py::a_type(item.ptr()) + "; expected a str");
    }
    const std::uint32_t id = result.add(mm::py::utf8(item.ptr(), where));
    if (id != static_cast<std::size_t>(k)) {
      throw mm::BadInput(where() + mm::py::shown(item.ptr()) + " is also name " +
                         std::to_string(id) + "; expected different names");
    }
  }
  return result;
}

// State: (version, size limit, all strings end to end, their lengths). A length is written in
// groups of 7 bits, the lowest first, the high bit set in all but the last: mostly one byte.
constexpr int kStateVersion = 1;

nb::tuple get_state(const Vocabulary& self) {
  std::string lengths;
  lengths.reserve(self.size());
  for (std::size_t id = 0; id < self.size(); ++id) {
    std::size_t n = self.name(static_cast<std::uint32_t>(id)).size();
    for (; n >= 0x80; n >>= 7) lengths.push_back(static_cast<char>(n & 0x7F) | '\x80');
    lengths.push_back(static_cast<char>(n));
  }
  const std::string_view arena = self.arena();
  return nb::make_tuple(kStateVersion, self.max_size(), nb::bytes(arena.data(), arena.size()),
                        nb::bytes(lengths.data(), lengths.size()));
}

Vocabulary from_state(nb::tuple state) {
  const auto bad = [](const char* what) {
    return mm::BadInput(std::string("the state of a Vocabulary is damaged: ") + what);
  };
  if (state.size() != 4) throw bad("expected a tuple of four");
  int version = 0;
  std::size_t max_size = 0;
  if (!nb::try_cast(state[0], version) || version != kStateVersion) throw bad("unknown version");
  if (!nb::try_cast(state[1], max_size)) throw bad("the size limit is not a number");
  const nb::object text = state[2], packed = state[3];
  if (!PyBytes_Check(text.ptr()) || !PyBytes_Check(packed.ptr())) throw bad("expected bytes");
  const auto bytes_of = [](const nb::object& x) {
    const nb::bytes b = nb::borrow<nb::bytes>(x);
    return std::string_view(b.c_str(), b.size());
  };
  const std::string_view arena = bytes_of(text), lengths = bytes_of(packed);
  if (!mm::is_utf8(arena)) throw bad("the strings are not UTF-8");
  const auto strings = static_cast<std::size_t>(
      std::count_if(lengths.begin(), lengths.end(), [](char c) { return (c & '\x80') == 0; }));
  if (strings > max_size) throw bad("more strings than the size limit allows");
  Vocabulary result(max_size);
  result.reserve(strings, arena.size());
  std::size_t begin = 0;
  for (std::size_t at = 0; at < lengths.size();) {
    std::size_t n = 0;
    for (unsigned shift = 0;; shift += 7, ++at) {
      if (at == lengths.size() || shift > 56) throw bad("a length is cut short or too long");
      n |= std::size_t(static_cast<unsigned char>(lengths[at]) & 0x7Fu) << shift;
      if ((lengths[at] & '\x80') == 0) break;
    }
    ++at;
    if (n > arena.size() - begin) throw bad("the lengths sum to more than there is text");
    // The whole is UTF-8, so a part is too unless it begins within a character.
    if (n > 0 && (static_cast<unsigned char>(arena[begin]) & 0xC0u) == 0x80u) {
      throw bad("a string begins within a character");
    }
    const std::size_t before = result.size();
    result.add(arena.substr(begin, n));
    if (result.size() == before) throw bad("a string occurs twice");
    begin += n;
  }
  if (begin != arena.size()) throw bad("the lengths sum to less than there is text");
  return result;
}

nb::tuple encode_tokens(nb::handle X, Vocabulary& vocabulary, bool grow, bool wide, int threads) {
  mm::TokenEncoder encoder(vocabulary, grow, wide);
  encoder.encode(X, threads);
  nb::object values = !encoder.weighted ? nb::object(nb::none()) : wide ? to_numpy(encoder.values64) : to_numpy(encoder.values);
  return nb::make_tuple(to_numpy(encoder.offsets), to_numpy(encoder.indptr),
                        to_numpy(encoder.indices), std::move(values));
}

nb::tuple encode_labels(nb::handle y, nb::dict labels, bool grow) {
  mm::LabelEncoder encoder(std::move(labels), grow);
  encoder.encode(y);
  return nb::make_tuple(to_numpy(encoder.offsets), to_numpy(encoder.codes));
}

nb::tuple table(const Vocabulary& self) {
  mm::Buffer<std::int64_t> ends;
  ends.push(0);
  for (std::size_t id = 0; id < self.size(); ++id) {
    ends.push(ends.data()[id] + std::int64_t(self.name(static_cast<std::uint32_t>(id)).size()));
  }
  const std::string_view arena = self.arena();
  return nb::make_tuple(nb::bytes(arena.data(), arena.size()), to_numpy(ends));
}

Vocabulary from_table(mm::Array<std::uint8_t> text, mm::Array<std::int64_t> ends) {
  const std::string_view arena{reinterpret_cast<const char*>(text.data()), text.shape(0)};
  mm::require(ends.shape(0) >= 1 && ends.data()[0] == 0 && ends.data()[ends.shape(0) - 1] == std::int64_t(arena.size()),
              "the strings of a vocabulary do not fit their lengths");
  Vocabulary result;
  result.reserve(ends.shape(0) - 1, arena.size());
  for (std::size_t id = 0; id + 1 < ends.shape(0); ++id) {
    const std::int64_t a = ends.data()[id], b = ends.data()[id + 1];
    mm::require(0 <= a && a <= b && b <= std::int64_t(arena.size()), "the lengths of strings are not in order");
    const std::string_view name = arena.substr(std::size_t(a), std::size_t(b - a));
    mm::require(mm::is_utf8(name), "a string of a vocabulary is not UTF-8");
    mm::require(result.add(name) == id, "a string occurs twice in a vocabulary");
  }
  return result;
}

nb::object hashes(const Vocabulary& self) {
  mm::Buffer<std::uint64_t> out;
  for (std::size_t id = 0; id < self.size(); ++id) out.push(mm::hash_bytes(self.name(static_cast<std::uint32_t>(id))));
  return to_numpy(out);
}

template <class X>
nb::tuple renumber_rows(mm::Array<std::int64_t> indptr, mm::Array<std::uint32_t> indices, std::optional<mm::Array<X>> values,
                        mm::Array<std::uint32_t> number) {
  const auto view = [](const auto& array) { return std::span(array.data(), array.shape(0)); };
  mm::require(indptr.shape(0) >= 1 && indptr.data()[0] == 0 && std::is_sorted(indptr.data(), indptr.data() + indptr.shape(0)) &&
                  indptr.data()[indptr.shape(0) - 1] == std::int64_t(indices.shape(0)) && (!values || values->shape(0) == indices.shape(0)),
              "the rows do not fit their entries");
  mm::Rows<X> rows = mm::renumber<X>(view(indptr), view(indices), values ? values->data() : nullptr, view(number));
  nb::object kept = values ? mm::to_numpy(std::move(rows.values)) : nb::none();
  return nb::make_tuple(mm::to_numpy(std::move(rows.indptr)), mm::to_numpy(std::move(rows.indices)), kept);
}

}  // namespace

void bind_encode(nb::module_& m) {
  nb::class_<Vocabulary>(m, "Vocabulary",
                         "Strings numbered in the order in which they were first seen.")
      .def(nb::init<std::size_t>(), "max_size"_a = Vocabulary::kMaxSize,
           "An empty vocabulary that will hold at most ``max_size`` strings.")
      .def_static("from_names", &from_names, "names"_a.none(), "max_size"_a = Vocabulary::kMaxSize,
                  "The vocabulary in which ``names[i]`` has number i; the names must differ.")
      .def("__len__", &Vocabulary::size)
      .def("__contains__",
           [](const Vocabulary& self, nb::handle name) {
             std::string_view text;
             return PyUnicode_Check(name.ptr()) && text_of(nb::borrow<nb::str>(name), text) &&
                    self.find(text) != Vocabulary::npos;
           },
           "name"_a.none())
      .def("__repr__",
           [](const Vocabulary& self) {
             const std::string n = std::to_string(self.size());
             return nb::str(("<Vocabulary of " + n + " strings>").c_str());
           })
      .def("get",
           [](const Vocabulary& self, nb::str name) -> nb::object {
             std::string_view text;
             const std::uint32_t id = text_of(name, text) ? self.find(text) : Vocabulary::npos;
             return id == Vocabulary::npos ? nb::none() : nb::object(nb::int_(id));
           },
           "name"_a, nb::sig("def get(self, name: str) -> int | None"),
           "The number of a string, or None if it is not there.")
      .def("add", &add, "name"_a,
           "The number of a string, which gets the next free one if it is new.")
      .def("name",
           [](const Vocabulary& self, std::size_t id) {
             if (id >= self.size()) {
               throw nb::index_error(("number " + std::to_string(id) + " of a vocabulary of " +
                                      std::to_string(self.size()) + " strings")
                                         .c_str());
             }
             return to_str(self.name(static_cast<std::uint32_t>(id)));
           },
           "id"_a, nb::sig("def name(self, id: int) -> str"), "The string with this number.")
      .def("names", &names, nb::sig("def names(self) -> list[str]"), "All strings, by number.")
      .def("table", &table, "All strings end to end, and the number of bytes where each ends.")
      .def_static("from_table", &from_table, "text"_a, "ends"_a, "What table() gives, turned back.")
      .def("hashes", &hashes, "64-bit hashes of all strings, by number.")
      .def_prop_ro("memory_bytes", &Vocabulary::bytes, "The memory it holds, in bytes.")
      .def("__getstate__", &get_state)
      .def("__setstate__", [](Vocabulary& self, nb::tuple state) {
        new (&self) Vocabulary(from_state(std::move(state)));
      });

  m.def("encode_tokens", &encode_tokens, "X"_a.none(), "vocabulary"_a, "grow"_a, "wide"_a = false, "threads"_a = 1,
        "Encode sequences of tokens, dicts or collections of strings, as compressed rows.\n\n"
        "Returns (offsets, indptr, indices, values); values is None when all are one. With grow,\n"
        "new features are put into the vocabulary, also those that come before an error; without,\n"
        "they are left out. With more than one thread nobody else may use the vocabulary meanwhile;\n"
        "what is found is the same.");
  m.def("renumber", &renumber_rows<float>, "indptr"_a, "indices"_a, "values"_a.none(), "number"_a,
        "Rows with other feature numbers, as (indptr, indices, values): number[old], or 2^32 - 1\n"
        "to drop the feature.");
  m.def("renumber", &renumber_rows<double>, "indptr"_a, "indices"_a, "values"_a, "number"_a);
  m.def("encode_labels", &encode_labels, "y"_a.none(), "labels"_a, "grow"_a,
        "Encode sequences of labels by the dict {label: code}; returns (offsets, codes).\n\n"
        "With grow, new labels get the next code and are put into the dict; without, they are an\n"
        "error.");
}
