// Python's view of the parser of item files.
#include "bindings.hpp"
#include "items.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

nb::list names(const Vocabulary& labels) {
  nb::list list;
  for (std::size_t code = 0; code < labels.size(); ++code) {
    const std::string_view name = labels.name(static_cast<std::uint32_t>(code));
    list.append(nb::str(name.data(), name.size()));
  }
  return list;
}

nb::tuple parse_items(Array<std::uint8_t> data, const std::string& format, Vocabulary& vocabulary,
                      bool grow, bool labels_wanted, std::size_t first_line) {
  const bool crfsuite = format == "crfsuite";
  require(crfsuite || format == "svmhmm",
          "format is '" + format + "'; expected 'crfsuite' or 'svmhmm'");
  ItemParser parser(vocabulary, grow, labels_wanted, first_line);
  {
    // Other Python threads run meanwhile. They must leave the vocabulary alone: it is grown without
    // a lock. (Without grow they may look things up in it.)
    const nb::gil_scoped_release release;
    const auto poll = [] {
      const nb::gil_scoped_acquire gil;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    };
    const std::string_view text(reinterpret_cast<const char*>(data.data()), data.shape(0));
    if (crfsuite) {
      parser.parse_crfsuite(text, poll);
    } else {
      parser.parse_svmhmm(text, poll);
    }
  }
  nb::object values = parser.rows.weighted ? to_numpy(parser.rows.values) : nb::none();
  nb::object codes = labels_wanted ? to_numpy(parser.codes) : nb::none();
  nb::object weights = parser.weighted ? to_numpy(parser.weights) : nb::none();
  return nb::make_tuple(to_numpy(parser.offsets), to_numpy(parser.rows.indptr),
                        to_numpy(parser.rows.indices), std::move(values), std::move(codes),
                        names(parser.labels), std::move(weights));
}

}  // namespace

void bind_items(nb::module_& m) {
  m.attr("MAX_VALUE") = kMaxValue;
  m.def("parse_items", &parse_items, "data"_a, "format"_a, "vocabulary"_a, "grow"_a,
        "labels_wanted"_a, "first_line"_a = 1,
        "Parse an item file, 'crfsuite' or 'svmhmm', from its bytes.\n\n"
        "Returns (offsets, indptr, indices, values, codes, label names, sequence weights). values\n"
        "is None when all are one, codes when labels are not wanted, the weights when none is given.\n"
        "With grow, new features are put into the vocabulary, also those that come before an error;\n"
        "without, they are left out. No other thread may use the vocabulary meanwhile.");
}

}  // namespace mm
