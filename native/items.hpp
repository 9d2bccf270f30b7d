// Item files, whose features are already expanded: CRFsuite's and SVM^hmm's.
//
// The whole text is one piece of memory; names are looked up where they lie. Every error begins
// with the number of its line. Nothing here knows of Python.
//
// CRFsuite:  label TAB attribute TAB attribute:value ...      a blank line ends a sequence
//   As CRFsuite's own reader has it: `\:` is a colon and `\\` a backslash that belong to the name, any
//   other backslash is itself; an empty field is skipped; `name:` has the value one; a first field
//   `@weight:2.5`, on a line of its own or before a label, is the weight of the sequence.
// SVM^hmm:   tag qid:number feature:value ... # comment       another qid begins a sequence
//   Blank lines and those that begin with # are skipped. Feature k is called "k".
#pragma once

#include <charconv>
#include <functional>
#include <system_error>
#include <unordered_set>

#include "row_builder.hpp"

namespace mm {

namespace detail {

// A piece of a file for an error message: in quotes, shortened, without control characters.
inline std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::size_t cut = std::min(text.size(), kLongest);
  while (cut < text.size() && cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0u) == 0x80u) {
    --cut;
  }
  std::string out = "'";
  for (const char c : text.substr(0, cut)) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      constexpr const char* kHex = "0123456789abcdef";
      out.append("\\x").push_back(kHex[c >> 4 & 15]);
      out.push_back(kHex[c & 15]);
    } else {
      out.push_back(c);
    }
  }
  return out + (cut < text.size() ? "...'" : "'");
}

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// A decimal number, perhaps with an exponent; false for anything else, also for nan and infinity.
// What is too small for a double is zero, what is too large is infinite.
inline bool parse_number(std::string_view text, double& out) {
  text = trimmed(text);
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return false;
  }
  const std::size_t first = !text.empty() && text.front() == '-' ? 1 : 0;
  if (text.size() <= first) return false;
  const char c = text[first];
  if (!((c >= '0' && c <= '9') || c == '.')) return false;
  // Most numbers are short and without exponent. Up to 15 digits are exact in a double, and so is
  // the power of ten: the quotient is the nearest double.
  constexpr std::size_t kExact = 15;
  if (text.size() - first <= kExact) {
    constexpr double kTen[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                               1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    std::int64_t digits = 0;
    std::size_t k = first, point = text.size();
    for (; k < text.size(); ++k) {
      if (text[k] >= '0' && text[k] <= '9') {
        digits = digits * 10 + (text[k] - '0');
      } else if (text[k] == '.' && point == text.size()) {
        point = k;
      } else {
        break;
      }
    }
    if (k == text.size() && !(point == first && k == first + 1)) {
      const std::size_t behind = point == text.size() ? 0 : text.size() - point - 1;
      const double size = static_cast<double>(digits) / kTen[behind];
      out = first == 1 ? -size : size;
      return true;
    }
  }
#if defined(__cpp_lib_to_chars)  // Some standard libraries read no floats.
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc()) return end == text.data() + text.size();
  if (error != std::errc::result_out_of_range) return false;
  if (end != text.data() + text.size()) return false;
#endif
  if (text.find_first_not_of("+-.0123456789eE") != std::string_view::npos) return false;
  const std::string copy(text);
  char* stop = nullptr;
  out = std::strtod(copy.c_str(), &stop);
  return stop == copy.c_str() + copy.size();
}

}  // namespace detail

class ItemParser {
 public:
  // The parser changes the vocabulary if it is to grow, and reads it while it parses: nobody else
  // may use it meanwhile (without grow: nobody else may add to it).
  // Lines are counted from `first_line` on: the text may be a piece of a file.
  ItemParser(Vocabulary& vocabulary, bool grow, bool labels_wanted, std::size_t first_line = 1)
      : rows(vocabulary, grow), labels_wanted_(labels_wanted), first_line_(first_line) {
    offsets.push(0);
  }

  Buffer<std::int64_t> offsets;  // [sequences + 1]
  RowBuilder rows;               // [tokens]
  Buffer<std::int32_t> codes;    // [tokens], empty if labels are not wanted
  Vocabulary labels{std::size_t{1} << 31};  // by code, in order of appearance
  Buffer<float> weights;         // [sequences]
  bool weighted = false;         // whether any weight was given

  // `poll` is called now and then, and may throw.
  void parse_crfsuite(std::string_view data, const std::function<void()>& poll) {
    each_line(data, poll, [this](std::string_view line) { crfsuite_line(line); });
    end_sequence();
  }
  void parse_svmhmm(std::string_view data, const std::function<void()>& poll) {
    each_line(data, poll, [this](std::string_view line) { svmhmm_line(line); });
    end_sequence();
  }

 private:
  static constexpr std::size_t kBytesPerPoll = std::size_t{1} << 24;

  [[noreturn]] void fail(const std::string& message) const { fail(line_, message); }
  [[noreturn]] static void fail(std::size_t line, const std::string& message) {
    throw BadInput("line " + std::to_string(line) + ": " + message);
  }

  template <class Line>
  void each_line(std::string_view data, const std::function<void()>& poll, Line&& take) {
    if (data.starts_with("\xEF\xBB\xBF")) data.remove_prefix(3);
    const bool text = is_utf8(data);
    std::size_t polled = data.size();
    for (line_ = first_line_; !data.empty(); ++line_) {
      const std::size_t size = std::min(data.find('\n'), data.size());
      std::string_view line = data.substr(0, size);
      data.remove_prefix(std::min(size + 1, data.size()));
      if (!text) {  // It is somewhere; until there, only look for it.
        if (!is_utf8(line)) {
          fail("found bytes that are not UTF-8; expected text in UTF-8");
        }
        continue;
      }
      if (line.ends_with('\r')) line.remove_suffix(1);
      take(line);
      if (polled - data.size() >= kBytesPerPoll) {
        polled = data.size();
        poll();
      }
    }
  }

  static bool is_blank(std::string_view line) {
    return line.find_first_not_of(" \t") == std::string_view::npos;
  }

  void add_label(std::string_view label) {
    if (labels_wanted_) codes.push(static_cast<std::int32_t>(labels.add(label)));
  }

  void end_token(const char* what) {
    rows.end_row([&](std::string_view name) {
      fail("found values of " + std::string(what) + " " + detail::quoted(name) +
           " that sum to more than 1e12 in size; expected a smaller sum");
    });
  }

  void end_sequence() {
    const auto end = static_cast<std::int64_t>(rows.rows());
    if (end == offsets.data()[offsets.size() - 1]) {
      if (weight_line_ != 0) {
        fail(weight_line_, "found @weight and no token after it; expected a sequence");
      }
      return;
    }
    offsets.push(end);
    weights.push(weight_);
    weight_ = 1.0f;
    weight_line_ = 0;
  }

  // --- CRFsuite ---

  struct Field {
    std::string_view text;
    std::size_t colon;  // the last one that is not escaped, or npos
    bool escaped;       // whether there is a backslash
  };

  // The field at the beginning of `rest`, which is taken from it together with the tab behind it.
  static Field next_field(std::string_view& rest) {
    Field field{{}, std::string_view::npos, false};
    const char* const p = rest.data();
    const std::size_t n = rest.size();
    std::size_t k = 0;
    for (; k < n && p[k] != '\t'; ++k) {
      if (p[k] == ':') {
        field.colon = k;
      } else if (p[k] == '\\') {
        field.escaped = true;
        if (k + 1 < n && (p[k + 1] == ':' || p[k + 1] == '\\')) ++k;
      }
    }
    field.text = rest.substr(0, k);
    rest.remove_prefix(std::min(k + 1, n));
    return field;
  }

  // Good until the next call.
  std::string_view unescaped(std::string_view text) {
    unescaped_.clear();
    for (std::size_t k = 0; k < text.size(); ++k) {
      const bool escape = text[k] == '\\' && k + 1 < text.size() &&
                          (text[k + 1] == ':' || text[k + 1] == '\\');
      unescaped_.push_back(text[escape ? ++k : k]);
    }
    return unescaped_;
  }

  void crfsuite_line(std::string_view line) {
    if (is_blank(line)) {
      end_sequence();
      return;
    }
    Field label = next_field(line);
    while (label.text.starts_with('@')) {
      declare(label);
      if (is_blank(line)) return;
      label = next_field(line);
    }
    if (label.text.empty()) {
      fail("found no label before the first tab; expected a label, a tab and attributes");
    }
    // A colon in a label has no other meaning, so that it need not be escaped.
    add_label(label.escaped ? unescaped(label.text) : label.text);
    rows.begin_row();
    while (!line.empty()) attribute(next_field(line));
    end_token("attribute");
  }

  void attribute(const Field& field) {
    if (field.text.empty()) return;
    const std::string_view name = field.text.substr(0, field.colon);  // All of it, if npos.
    if (name.empty()) {
      fail("found an attribute without a name, " + detail::quoted(field.text) +
           "; expected a name before the colon (a colon in a name is written \\:)");
    }
    double value = 1.0;
    if (field.colon != std::string_view::npos && field.colon + 1 < field.text.size()) {
      const std::string_view text = field.text.substr(field.colon + 1);
      if (!detail::parse_number(text, value)) {
        fail("found the value " + detail::quoted(text) + " of attribute " + detail::quoted(name) +
             "; expected a number (a colon in a name is written \\:)");
      }
      if (too_large(value)) {
        fail("found the value " + detail::quoted(text) + " of attribute " + detail::quoted(name) + kWithin);
      }
      if (value == 0.0) return;
    }
    if (field.escaped) {
      rows.add_joined(value, unescaped(name));
    } else {
      rows.add(name, value);
    }
  }

  void declare(const Field& field) {
    constexpr const char* kExpected = "expected @weight:number (no label can begin with @)";
    const std::string_view name = field.text.substr(0, field.colon);
    if (name != "@weight") {
      fail("found the declaration " + detail::quoted(name) + "; " + kExpected);
    }
    const std::string_view text = field.colon == std::string_view::npos
                                      ? std::string_view()
                                      : field.text.substr(field.colon + 1);
    double value = 0.0;
    if (!detail::parse_number(text, value) || value < 0.0) {
      fail("found " + detail::quoted(field.text) + "; " + kExpected +
           ", where the number is not negative");
    }
    if (too_large(value)) fail("found " + detail::quoted(field.text) + kWithin);
    if (weight_line_ != 0) {
      fail("found a second @weight of a sequence, the first is on line " +
           std::to_string(weight_line_) + "; expected one");
    }
    weight_ = static_cast<float>(value);
    weight_line_ = line_;
    weighted = true;
  }

  static constexpr const char* kWithin = "; expected a number between -1e12 and 1e12";
  static bool too_large(double value) { return !(std::abs(value) <= kMaxValue); }

  // --- SVM^hmm ---

  static std::string_view next_word(std::string_view& rest) {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    const std::size_t size = std::min(rest.find_first_of(" \t"), rest.size());
    const std::string_view word = rest.substr(0, size);
    rest.remove_prefix(size);
    return word;
  }

  void svmhmm_line(std::string_view line) {
    const std::string_view tag = next_word(line);
    if (tag.empty() || tag.front() == '#') return;
    line = line.substr(0, line.find('#'));
    const std::string_view qid = next_word(line);
    if (!qid.starts_with("qid:")) {
      fail(qid.empty() ? "found no qid after the tag " + detail::quoted(tag) +
                             "; expected tag qid:number feature:value ..."
                       : "found " + detail::quoted(qid) + " after the tag " + detail::quoted(tag) +
                             "; expected qid:number");
    }
    const std::string_view digits = qid.substr(4);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      fail("found " + detail::quoted(qid) + "; expected qid: and an integer");
    }
    if (rows.rows() == 0 || number != qid_) {
      end_sequence();
      if (!qids_.insert(number).second) {
        fail("found qid " + std::to_string(number) +
             " again, after another one; expected all lines of a qid one after the other");
      }
      qid_ = number;
    }
    add_label(tag);
    rows.begin_row();
    numbers_.clear();
    bool ascending = true;
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
      const std::uint64_t feature = numbered_feature(word);
      ascending = ascending && (numbers_.empty() || numbers_.back() < feature);
      numbers_.push_back(feature);
    }
    if (!ascending) {
      std::sort(numbers_.begin(), numbers_.end());
      const auto twice = std::adjacent_find(numbers_.begin(), numbers_.end());
      if (twice != numbers_.end()) {
        fail("found feature " + std::to_string(*twice) +
             " twice; expected every number at most once in a line");
      }
    }
    end_token("feature");
  }

  // Adds the feature and returns its number.
  std::uint64_t numbered_feature(std::string_view word) {
    const std::size_t colon = std::min(word.find(':'), word.size());
    std::string_view name = word.substr(0, colon);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    double value = 0.0;
    if (error != std::errc() || end != name.data() + name.size() || colon == word.size()) {
      fail("found " + detail::quoted(word) + "; expected feature:value, where the feature is a " +
           "positive integer");
    }
    if (number == 0) fail("found feature 0; expected numbers from 1 on");
    const std::string_view text = word.substr(colon + 1);
    if (!detail::parse_number(text, value)) {
      fail("found the value " + detail::quoted(text) + " of feature " + detail::quoted(name) +
           "; expected a number");
    }
    if (too_large(value)) {
      fail("found the value " + detail::quoted(text) + " of feature " + detail::quoted(name) + kWithin);
    }
    name.remove_prefix(name.find_first_not_of('0'));
    if (value != 0.0) rows.add(name, value);
    return number;
  }

  const bool labels_wanted_;
  const std::size_t first_line_;
  std::size_t line_ = 0;
  float weight_ = 1.0f;           // of the sequence at hand
  std::size_t weight_line_ = 0;   // where it was given, or 0
  std::string unescaped_;
  std::int64_t qid_ = 0;
  std::unordered_set<std::int64_t> qids_;
  std::vector<std::uint64_t> numbers_;  // of the features of a line
};

}  // namespace mm
