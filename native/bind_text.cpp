// Python's view of texts: checksums, column files, templates, expansion into features.
#include "bindings.hpp"
#include "encode.hpp"
#include "mapping.hpp"
#include "learn_features.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

using Bytes = Array<std::uint8_t>;

// A table and what keeps its text alive.
struct Columns {
  ColumnTable table;
  std::optional<Bytes> owner;  // its buffer stays locked: nobody can resize it under the table
};

std::string_view text_of(const Bytes& data) {
  return {reinterpret_cast<const char*>(data.data()), data.shape(0)};
}

Separator separator_of(const std::string& name) {
  if (name == "auto") return Separator::kAuto;
  if (name == "tab") return Separator::kTab;
  if (name == "space") return Separator::kSpace;
  throw BadInput("separator is '" + name + "'; expected auto, tab or space");
}

nb::str to_str(std::string_view text) { return nb::str(text.data(), text.size()); }

Columns* parse(Bytes data, const std::string& separator, const std::string& comment, std::size_t n_columns,
               std::size_t first_line) {
  const ColumnFormat format{separator_of(separator), comment, n_columns, first_line};
  const std::string_view text = text_of(data);
  auto columns = std::make_unique<Columns>();
  {
    nb::gil_scoped_release release;
    columns->table = ColumnTable::parse(text, format);
  }
  columns->owner = std::move(data);
  return columns.release();
}

// Rows as Python has them: sequences of tokens, a token a str (one column) or a list of str. With
// n_columns, exactly so many are expected.
Columns* from_rows(nb::handle X, std::size_t n_columns) {
  static constexpr const char* kShape =
      "expected a list of sequences, where a sequence is a list of tokens and a token is a list of "
      "str, one for each column (or one str)";
  nb::object held;
  if (!py::to_items(X, held)) py::type_error("X is " + py::a_type(X.ptr()) + "; " + kShape);
  const py::Items sequences(std::move(held));
  if (sequences.size() == 0) throw BadInput("X is empty; expected at least one sequence");
  auto columns = std::make_unique<Columns>();
  ColumnTable& table = columns->table;
  table.set_columns(n_columns);
  for (Py_ssize_t i = 0; i < sequences.size(); ++i) {
    const nb::object sequence = nb::borrow(sequences[i]);
    nb::object items;
    if (!py::to_items(sequence, items)) {
      py::type_error(py::at(std::size_t(i)) + " is " + py::a_type(sequence.ptr()) + "; " + kShape);
    }
    const py::Items tokens(std::move(items));
    if (tokens.size() == 0) throw BadInput(py::at(std::size_t(i)) + " is empty; expected at least one token");
    for (Py_ssize_t t = 0; t < tokens.size(); ++t) {
      const nb::object token = nb::borrow(tokens[t]);
      const auto where = [&] { return py::at(std::size_t(i), std::size_t(t)) + ": "; };
      std::size_t found = 0;
      const auto add = [&](const nb::object& held) {
        PyObject* cell = held.ptr();
        if (!py::is_text(cell)) {
          py::type_error(where() + "column " + std::to_string(found) + " is " + py::a_type(cell) + ", " + py::shown(cell) + "; expected a str");
        }
        table.add_cell(py::utf8(cell, where));
        ++found;
      };
      nb::object cells;
      if (py::is_text(token.ptr())) {
        add(token);
      } else if (py::to_items(token, cells)) {
        const py::Items row(std::move(cells));
        for (Py_ssize_t k = 0; k < row.size(); ++k) add(nb::borrow(row[k]));
      } else {
        py::type_error(where() + "found " + py::a_type(token.ptr()) + "; " + kShape);
      }
      if (table.n_columns() == 0) table.set_columns(found);
      if (found != table.n_columns() || found == 0) {
        throw BadInput(where() + "found " + std::to_string(found) + " columns; expected " +
                       (table.n_columns() == 0 ? "at least one" : std::to_string(table.n_columns())));
      }
    }
    table.end_sequence();
    if ((i + 1) % 1024 == 0) py::breathe();
  }
  table.finish();
  return columns.release();
}

std::size_t checked(const Columns& columns, std::int64_t token, std::int64_t column) {
  require(token >= 0 && std::size_t(token) < columns.table.n_tokens(), "there is no token " + std::to_string(token));
  require(column >= 0 && std::size_t(column) < columns.table.n_columns(), "there is no column " + std::to_string(column));
  return std::size_t(token);
}

// Codes of the values of a column, in order of first appearance, and the values.
nb::tuple codes_of(const Columns& columns, std::size_t column) {
  checked(columns, 0, std::int64_t(column));
  std::vector<std::int32_t> codes(columns.table.n_tokens());
  Vocabulary names(std::size_t{1} << 31);
  {
    nb::gil_scoped_release release;
    for (std::size_t t = 0; t < codes.size(); ++t) {
      codes[t] = static_cast<std::int32_t>(names.add(columns.table.cell(t, column)));
    }
  }
  nb::list listed;
  for (std::size_t k = 0; k < names.size(); ++k) listed.append(to_str(names.name(std::uint32_t(k))));
  return nb::make_tuple(to_numpy(std::move(codes)), listed);
}

nb::list rows_of(const Columns& columns, std::size_t sequence, const std::vector<std::size_t>& which) {
  require(sequence < columns.table.n_sequences(), "there is no sequence " + std::to_string(sequence));
  for (const std::size_t c : which) checked(columns, 0, std::int64_t(c));
  nb::list rows;
  for (std::int64_t t = columns.table.offsets()[sequence]; t < columns.table.offsets()[sequence + 1]; ++t) {
    nb::list row;
    for (const std::size_t c : which) row.append(to_str(columns.table.cell(std::size_t(t), c)));
    rows.append(std::move(row));
  }
  return rows;
}

// The text with one column more: codes[token] says which of the names. Lines without a token are
// written as they are, so that there are as many lines as before.
nb::bytes with_column(const Columns& columns, Array<std::int32_t> codes, const std::vector<std::string>& names, const std::string& comment) {
  const ColumnTable& table = columns.table;
  require(table.n_lines() > 0 || table.n_tokens() == 0, "a table that was made of rows has no lines to put a column into");
  require(codes.shape(0) == table.n_tokens(), "there must be one code for each token");
  for (std::size_t t = 0; t < codes.shape(0); ++t) {
    require(codes.data()[t] >= 0 && std::size_t(codes.data()[t]) < names.size(), "a code is out of range");
  }
  std::string out;
  {
    nb::gil_scoped_release release;
    const std::string_view text = table.text();
    const char separator = table.separator() == Separator::kSpace ? ' ' : '\t';
    out.reserve(text.size() + codes.shape(0) * 8);
    std::size_t token = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t newline = std::min(text.find('\n', at), text.size());
      const std::string_view line = text.substr(at, newline - at);
      const bool cr = line.ends_with('\r');
      const std::string_view bare = cr ? line.substr(0, line.size() - 1) : line;
      out.append(bare);
      const bool mark = at == 0 && bare.starts_with("\xEF\xBB\xBF");
      if (token < codes.shape(0) && ColumnTable::is_token(mark ? bare.substr(3) : bare, comment)) {
        out.push_back(separator);
        out.append(names[std::size_t(codes.data()[token++])]);
      }
      if (cr) out.push_back('\r');
      if (newline < text.size() || cr || !bare.empty()) out.push_back('\n');
      at = newline + 1;
    }
  }
  return nb::bytes(out.data(), out.size());
}

TemplatePiece piece_of(nb::handle item) {
  using Fields = std::tuple<std::string, int, std::int64_t, std::int64_t, std::string, bool>;
  const auto [kind, mode, offset, column, argument, lower] = nb::cast<Fields>(item);
  require(kind.size() == 1, "the kind of a piece is one letter");
  require(mode >= 0 && mode <= 2, "the mode of a piece is 0, 1 or 2");
  constexpr std::int64_t kMost = 1 << 30;
  require(offset >= -kMost && offset <= kMost && column >= 0 && column <= kMost, "a number is out of range");
  return {kind[0], TemplatePiece::Mode(mode), std::int32_t(offset), std::uint32_t(column), argument, lower};
}

std::shared_ptr<const TemplateProgram> compile(nb::list lines) {
  std::vector<std::vector<TemplatePiece>> program;
  for (nb::handle line : lines) {
    auto& pieces = program.emplace_back();
    for (nb::handle piece : line) pieces.push_back(piece_of(piece));
  }
  return std::make_shared<const TemplateProgram>(std::move(program));
}

struct PyTemplate {
  std::shared_ptr<const TemplateProgram> program;
};

nb::tuple numpy_rows(AllRows&& rows) { return nb::make_tuple(to_numpy(rows.indptr), to_numpy(rows.indices)); }

using Which = std::vector<std::size_t>;

nb::tuple numpy_learned(LearnedFeatures&& learned) {
  return nb::make_tuple(to_numpy(learned.rows.indptr), to_numpy(learned.rows.indices),
                        to_numpy(std::move(learned.fingerprints)), to_numpy(std::move(learned.token)),
                        to_numpy(std::move(learned.line)));
}

nb::tuple learn(const PyTemplate& t, const Columns& columns, const Which& which, std::size_t min_count, int threads) {
  LearnedFeatures learned;
  {
    nb::gil_scoped_release release;
    learned = expand_learning(Expansion(*t.program, columns.table, which), min_count, threads);
  }
  return numpy_learned(std::move(learned));
}

// Learns the features of a table that comes in pieces.
struct PyLearner {
  explicit PyLearner(const PyTemplate& t) : program(t.program), learner(*program) {}
  PyLearner(const PyLearner&) = delete;
  PyLearner& operator=(const PyLearner&) = delete;

  nb::tuple add(const Columns& columns, const Which& which, int threads) {
    LearnedFeatures learned;
    {
      nb::gil_scoped_release release;
      learned = learner.add(Expansion(*program, columns.table, which), 1, threads);
    }
    return numpy_learned(std::move(learned));
  }

  std::shared_ptr<const TemplateProgram> program;
  FeatureLearner learner;
};

nb::tuple known(const PyTemplate& t, const Columns& columns, const Which& which, const FeatureIndex& index, int threads) {
  AllRows rows;
  {
    ReleaseIfLong release(columns.table.n_tokens() * ReleaseIfLong::kExpansion);
    rows = expand_known(Expansion(*t.program, columns.table, which), index, threads);
  }
  return numpy_rows(std::move(rows));
}

nb::tuple hashed(const PyTemplate& t, const Columns& columns, const Which& which, unsigned bits, int threads) {
  require(bits >= 1 && bits <= 31, "hash bits are " + std::to_string(bits) + "; expected 1 to 31");
  AllRows rows;
  {
    ReleaseIfLong release(columns.table.n_tokens() * ReleaseIfLong::kExpansion);
    rows = expand_hashed(Expansion(*t.program, columns.table, which), bits, threads);
  }
  return numpy_rows(std::move(rows));
}

// Names of features by where they were seen: end to end, and where each ends.
nb::tuple names(const PyTemplate& t, const Columns& columns, const Which& which, Array<std::uint32_t> token, Array<std::uint32_t> line) {
  require(token.shape(0) == line.shape(0), "there must be a line for each token");
  const std::size_t n_tokens = columns.table.n_tokens(), n_lines = t.program->lines().size();
  std::string text, scratch;
  std::vector<std::int64_t> ends{0};
  {
    nb::gil_scoped_release release;
    const Expansion expansion(*t.program, columns.table, which);
    const auto offsets = columns.table.offsets();
    for (std::size_t k = 0; k < token.shape(0); ++k) {
      const std::size_t at = token.data()[k], j = line.data()[k];
      require(at < n_tokens && j < n_lines, "there is no such token or line");
      const auto sequence = std::upper_bound(offsets.begin(), offsets.end(), std::int64_t(at)) - offsets.begin() - 1;
      expansion.append_name(std::size_t(sequence), at, j, text, scratch);
      ends.push_back(std::int64_t(text.size()));
    }
  }
  return nb::make_tuple(nb::bytes(text.data(), text.size()), to_numpy(std::move(ends)));
}

// The features of one sequence by name, token by token: for converters and for eyes.
nb::list named_rows(const PyTemplate& t, const Columns& columns, const Which& which, std::size_t sequence) {
  require(sequence < columns.table.n_sequences(), "there is no sequence " + std::to_string(sequence));
  const Expansion expansion(*t.program, columns.table, which);
  Expansion::Block block;
  nb::list result;
  std::string name, scratch;
  expansion.seek(block, sequence);
  while (expansion.next_block(block, sequence + 1)) {
    std::vector<nb::list> rows(block.size);
    for (std::size_t j = 0; j < t.program->lines().size(); ++j) {
      expansion.expand_line(block, t.program->lines()[j]);
      for (std::size_t k = 0; k < block.size; ++k) {
        if (block.fingerprints[k] == 0) continue;
        name.clear();
        expansion.append_name(sequence, block.begin + k, j, name, scratch);
        rows[k].append(to_str(name));
      }
    }
    for (nb::list& row : rows) result.append(std::move(row));
  }
  return result;
}

}  // namespace

void bind_text(nb::module_& m) {
  m.def(
      "checksum",
      [](Bytes data, bool mapped) {
        nb::gil_scoped_release release;
        if (!mapped) return hash_bytes(text_of(data));
        const Mapping mapping{{data.data(), data.shape(0)}};
        return hash_bytes(text_of(data), [&](const char* first, std::size_t n) { mapping.release(first, n); });
      },
      "data"_a, "mapped"_a = false,
      "64-bit hash of bytes, the same on every platform. mapped: they are those of a file that is mapped for\n"
      "reading, and its pages are given back as the hash goes on.");

  nb::class_<Columns>(m, "Columns", "A column file in memory.")
      .def_static("parse", &parse, "data"_a, "separator"_a = "auto", "comment"_a = "", "n_columns"_a = 0,
                  "first_line"_a = 1, nb::rv_policy::take_ownership)
      .def_static("from_rows", &from_rows, "X"_a, "n_columns"_a = 0, nb::rv_policy::take_ownership)
      .def_prop_ro("n_tokens", [](const Columns& c) { return c.table.n_tokens(); })
      .def_prop_ro("n_sequences", [](const Columns& c) { return c.table.n_sequences(); })
      .def_prop_ro("n_columns", [](const Columns& c) { return c.table.n_columns(); })
      .def_prop_ro("n_lines", [](const Columns& c) { return c.table.n_lines(); })
      .def_prop_ro("separator", [](const Columns& c) { return c.table.separator() == Separator::kSpace ? "space" : c.table.separator() == Separator::kTab ? "tab" : "auto"; })
      .def_prop_ro("memory_bytes", [](const Columns& c) { return c.table.bytes(); })
      .def_prop_ro("offsets", [](const Columns& c) {
        return to_numpy(std::vector<std::int64_t>(c.table.offsets().begin(), c.table.offsets().end()));
      })
      .def("cell", [](const Columns& c, std::int64_t token, std::int64_t column) {
        return to_str(c.table.cell(checked(c, token, column), std::size_t(column)));
      }, "token"_a, "column"_a)
      .def("line_of", [](const Columns& c, std::int64_t token) { return c.table.line_of(checked(c, token, 0)); }, "token"_a)
      .def("codes", &codes_of, "column"_a)
      .def("rows", &rows_of, "sequence"_a, "columns"_a)
      .def("with_column", &with_column, "codes"_a, "names"_a, "comment"_a = "");

  nb::class_<FeatureIndex>(m, "FeatureIndex", "Fingerprint -> number.")
      .def("__init__", [](FeatureIndex* self, Array<std::uint64_t> keys) {
        new (self) FeatureIndex();
        self->reserve(keys.shape(0));
        for (std::size_t k = 0; k < keys.shape(0); ++k) {
          if (self->add(keys.data()[k]).next_id != k + 1) {
            self->~FeatureIndex();
            throw BadInput("two features have the same fingerprint");
          }
        }
      }, "keys"_a)
      .def("__len__", &FeatureIndex::size)
      .def_prop_ro("memory_bytes", &FeatureIndex::bytes);

  nb::class_<PyTemplate>(m, "TemplateProgram", "A compiled feature template.")
      .def("__init__", [](PyTemplate* self, nb::list lines) { new (self) PyTemplate{compile(lines)}; }, "lines"_a)
      .def("__len__", [](const PyTemplate& t) { return t.program->lines().size(); })
      .def_prop_ro("n_columns", [](const PyTemplate& t) { return t.program->n_columns(); })
      .def("learn", &learn, "columns"_a, "which"_a, "min_count"_a = 1, "threads"_a = 1)
      .def("known", &known, "columns"_a, "which"_a, "index"_a, "threads"_a = 1)
      .def("hashed", &hashed, "columns"_a, "which"_a, "bits"_a, "threads"_a = 1)
      .def("names", &names, "columns"_a, "which"_a, "token"_a, "line"_a)
      .def("learner", [](const PyTemplate& t) { return new PyLearner(t); }, nb::rv_policy::take_ownership)
      .def("named_rows", &named_rows, "columns"_a, "which"_a, "sequence"_a);
  nb::class_<PyLearner>(m, "FeatureLearner", "Learns the features of a table that comes in pieces.")
      .def("add", &PyLearner::add, "columns"_a, "which"_a, "threads"_a = 1,
           "indptr and indices of a piece; fingerprints, tokens and lines of the features that it was the first to have.")
      .def("counts", [](PyLearner& l) { return to_numpy(l.learner.counts()); }, "In how many tokens each feature occurred.")
      .def_prop_ro("memory_bytes", [](const PyLearner& l) { return l.learner.bytes(); })
      .def("__len__", [](const PyLearner& l) { return l.learner.size(); });
}

}  // namespace mm
