// Python's view of the functions of one word: for the tests, which compare them with Python's own.
#include <nanobind/stl/string_view.h>

#include "bindings.hpp"
#include "small_regex.hpp"
#include "unicode.hpp"
#include "word_functions.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

const char* class_name(CharClass kind) {
  switch (kind) {
    case CharClass::upper: return "upper";
    case CharClass::lower: return "lower";
    case CharClass::other_letter: return "other_letter";
    case CharClass::digit: return "digit";
    case CharClass::punctuation: return "punctuation";
    case CharClass::space: return "space";
    case CharClass::other: break;
  }
  return "other";
}

std::optional<std::string> word_function(std::string_view name, std::string_view text, unsigned n) {
  std::string_view part;
  std::string out;
  if (name == "prefix" || name == "suffix") {
    const bool has = name == "prefix" ? prefix(text, n, part) : suffix(text, n, part);
    if (!has) return std::nullopt;
    return std::string(part);
  }
  if (name == "lower") {
    lower_case(text, out);
  } else if (name == "shape") {
    shape(text, out);
  } else if (name == "short_shape") {
    short_shape(text, out);
  } else {
    throw BadInput("word function '" + std::string(name) +
                   "' is none of prefix, suffix, lower, shape, short_shape");
  }
  return out;
}

}  // namespace

void bind_words(nb::module_& m) {
  m.attr("unicode_version") = nb::str(kUnicodeVersion.data(), kUnicodeVersion.size());
  m.def("word_function", &word_function, "name"_a, "text"_a, "n"_a = 0,
        "A function of a word: prefix and suffix (of n characters; None if there are fewer), "
        "lower, shape, short_shape.");
  m.def(
      "regex_match",
      [](std::string_view pattern,
         std::string_view text) -> std::optional<std::pair<std::size_t, std::size_t>> {
        std::pair<std::size_t, std::size_t> found;
        const SmallRegex regex(pattern);
        if (!regex.match(text, found.first, found.second)) return std::nullopt;
        return found;
      },
      "pattern"_a, "text"_a,
      "Where the text matches a small regular expression and how long, in bytes of UTF-8.");
  m.def(
      "char_class",
      [](std::uint32_t cp) {
        require(cp <= 0x10FFFF, "code point " + std::to_string(cp) + " is above 0x10ffff");
        return class_name(char_class(cp));
      },
      "cp"_a,
      "The class of a code point: upper, lower, other_letter, digit, punctuation, space, other.");
  m.def(
      "decode_utf8",
      [](nb::bytes data) {
        // A copy of just this size, so that a sanitizer sees what is read beyond it.
        const auto* begin = static_cast<const char*>(data.data());
        const std::vector<char> exact(begin, begin + data.size());
        std::vector<std::uint32_t> out;
        const char* const end = exact.data() + exact.size();
        for (const char* p = exact.data(); p < end;) out.push_back(decode_utf8(p, end));
        return out;
      },
      "data"_a, "The code points of bytes; 0xfffd for every byte that is no UTF-8.");
}

}  // namespace mm
