// A column file in memory: tokens in rows, cells in columns, sequences between blank lines.
//
// The text is kept as it was read; a cell is a place in it. One 8-byte number a cell: 40 bits where
// it begins, 24 bits how long it is.
#pragma once

#include <string_view>

#include "common.hpp"
#include "vocabulary.hpp"

namespace mm {

enum class Separator : std::uint8_t { kAuto, kTab, kSpace };

struct ColumnFormat {
  Separator separator = Separator::kAuto;  // kAuto: tabs if the first token's line has one
  std::string comment;                     // lines that begin with this are skipped; empty: none are
  std::size_t n_columns = 0;               // 0: as many as the first token has
  std::size_t first_line = 1;              // number of the first line, for messages
};

class ColumnTable {
 public:
  std::size_t n_columns() const { return n_columns_; }
  std::size_t n_tokens() const { return n_columns_ == 0 ? 0 : cells_.size() / n_columns_; }
  std::size_t n_sequences() const { return offsets_.size() - 1; }
  std::span<const std::int64_t> offsets() const { return offsets_; }
  Separator separator() const { return separator_; }
  std::string_view text() const { return text_; }
  std::size_t n_lines() const { return n_lines_; }  // lines of the text, whatever is in them
  std::size_t bytes() const {
    return own_.capacity() + cells_.capacity() * sizeof(std::uint64_t) +
           offsets_.capacity() * sizeof(std::int64_t);
  }

  std::string_view cell(std::size_t token, std::size_t column) const {
    const std::uint64_t place = cells_[token * n_columns_ + column];
    return text_.substr(place >> kSizeBits, place & kMaxSize);
  }

  // Number of the line that a token stands in.
  std::size_t line_of(std::size_t token) const {
    const std::size_t begin = cells_[token * n_columns_] >> kSizeBits;
    return first_line_ + std::size_t(std::count(text_.begin(), text_.begin() + std::ptrdiff_t(begin), '\n'));
  }

  // ---- from a file -----------------------------------------------------------------------------

  // The text must live as long as the table does.
  static ColumnTable parse(std::string_view text, const ColumnFormat& format) {
    ColumnTable table;
    table.text_ = text;
    table.first_line_ = format.first_line;
    table.separator_ = format.separator;
    table.n_columns_ = format.n_columns;
    if (text.size() >= std::uint64_t{1} << (64 - kSizeBits)) throw BadInput("the text is too large");
    require_utf8(text, format.first_line);
    table.cells_.reserve(text.size() / 4);
    std::size_t at = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;  // a byte order mark is no text
    for (std::size_t line = format.first_line; at < text.size(); ++line) {
      const void* found = std::memchr(text.data() + at, '\n', text.size() - at);
      const std::size_t newline = found == nullptr ? text.size() : std::size_t(static_cast<const char*>(found) - text.data());
      std::size_t end = newline;
      if (end > at && text[end - 1] == '\r') --end;
      table.add_line(at, end, line, format.comment);
      at = newline + 1;
      ++table.n_lines_;
    }
    table.end_sequence();
    table.cells_.shrink_to_fit();
    return table;
  }

  // What a line holds: a token, or nothing (a blank line, a comment).
  static bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r\v\f") == line.npos; }
  static bool is_token(std::string_view line, std::string_view comment) {
    return !is_blank(line) && (comment.empty() || !line.starts_with(comment));
  }

  // ---- by hand: cell by cell, row by row -------------------------------------------------------

  void add_cell(std::string_view value) {
    if (value.size() > kMaxSize) throw BadInput("a cell has more than 16 million bytes");
    cells_.push_back(std::uint64_t{own_.size()} << kSizeBits | value.size());
    own_.insert(own_.end(), value.begin(), value.end());
  }
  void set_columns(std::size_t n) { n_columns_ = n; }
  void end_sequence() {
    const std::int64_t end = std::int64_t(n_tokens());
    if (end > offsets_.back()) offsets_.push_back(end);
  }
  void finish() { text_ = {own_.data(), own_.size()}; }

  ColumnTable() : offsets_{0} {}

 private:
  static constexpr unsigned kSizeBits = 24;
  static constexpr std::uint64_t kMaxSize = (std::uint64_t{1} << kSizeBits) - 1;

  static std::string at_line(std::size_t line) { return "line " + std::to_string(line) + ": "; }

  static void require_utf8(std::string_view text, std::size_t line) {
    const std::size_t good = utf8_prefix(text);
    if (good == text.size()) return;
    const std::size_t begin = text.substr(0, good).rfind('\n') + 1;  // npos + 1 is 0
    line += std::size_t(std::count(text.begin(), text.begin() + std::ptrdiff_t(good), '\n'));
    static constexpr char kHex[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(text[good]);
    throw BadInput(at_line(line) + "byte " + std::to_string(good - begin + 1) + " is 0x" + kHex[byte >> 4] +
                   kHex[byte & 15] + ", which is not UTF-8 there; expected UTF-8 text, or the name of its "
                   "encoding, such as latin-1 (--encoding; in Python, encoding=)");
  }

  void add_line(std::size_t begin, std::size_t end, std::size_t line, std::string_view comment) {
    const std::string_view text = text_.substr(begin, end - begin);
    if (is_blank(text)) return end_sequence();
    if (!comment.empty() && text.starts_with(comment)) return;
    if (separator_ == Separator::kAuto) {
      separator_ = text.find('\t') != text.npos ? Separator::kTab : Separator::kSpace;
    }
    std::size_t found = 0;
    const auto push = [&](std::size_t from, std::size_t to) {
      if (to - from > kMaxSize) throw BadInput(at_line(line) + "a cell has more than 16 million bytes");
      cells_.push_back(std::uint64_t{from} << kSizeBits | (to - from));
      ++found;
    };
    if (separator_ == Separator::kTab) {
      for (std::size_t from = begin;;) {
        const void* tab = std::memchr(text_.data() + from, '\t', end - from);
        const std::size_t to = tab == nullptr ? end : std::size_t(static_cast<const char*>(tab) - text_.data());
        push(from, to);
        if (tab == nullptr) break;
        from = to + 1;
      }
    } else {
      const auto space = [&](std::size_t k) { return text_[k] == ' ' || text_[k] == '\t'; };
      for (std::size_t from = begin;;) {
        while (from < end && space(from)) ++from;
        if (from == end) break;
        std::size_t to = from;
        while (to < end && !space(to)) ++to;
        push(from, to);
        from = to;
      }
    }
    if (n_columns_ == 0) n_columns_ = found, n_columns_from_ = line;
    if (found != n_columns_) {
      const auto columns = [](std::size_t n) { return std::to_string(n) + (n == 1 ? " column" : " columns"); };
      const std::string why = n_columns_from_ > 0 ? ", as in line " + std::to_string(n_columns_from_) : "";
      const std::string by = separator_ == Separator::kTab ? "tabs" : "spaces";
      throw BadInput(at_line(line) + "found " + columns(found) + " (separated by " + by + "); expected " +
                     std::to_string(n_columns_) + why);
    }
  }

  std::string_view text_;
  std::vector<char> own_;  // of tables made by hand
  std::vector<std::uint64_t> cells_;
  std::vector<std::int64_t> offsets_;
  std::size_t n_columns_ = 0, n_columns_from_ = 0, first_line_ = 1, n_lines_ = 0;
  Separator separator_ = Separator::kAuto;
};

}  // namespace mm
