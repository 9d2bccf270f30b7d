// A compiled feature template: which values of which cells a token's features are made of.
//
// A line of a template is literal text with commands in it. Each command picks a cell (relative to
// the token, or counted from an end of the sequence, or as far away as a number in a column says)
// and takes a value from it: the cell, a prefix, a shape, ... What is taken, without the place it is
// taken from, is an *atom*: "the lower-cased word" is one atom, whichever neighbour it is asked of.
// So each atom is computed and hashed once a token, and a feature is a combination of hashes.
//
// The rules (markers outside the sequence, upper-case letters, ...) are in docs/templates.md.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "columns.hpp"
#include "feature_index.hpp"
#include "small_regex.hpp"
#include "word_functions.hpp"

namespace mm {

struct TemplatePiece {
  enum class Mode : std::uint8_t { kRelative, kAbsolute, kIndirect };
  char kind = '=';  // = literal, x cell, t test, m match, p prefix, s suffix, h shape, c short shape
  Mode mode = Mode::kRelative;
  std::int32_t offset = 0;  // tokens away; token from an end; column with the number of tokens
  std::uint32_t column = 0;
  std::string argument;  // literal text, regular expression, number of characters
  bool lower = false;
};

class TemplateProgram {
 public:
  struct Atom {
    char kind;
    std::uint32_t column;
    std::string argument;
    bool lower;
    unsigned n = 0;
    std::shared_ptr<const SmallRegex> regex;
  };
  struct Operand {
    std::uint32_t atom;
    TemplatePiece::Mode mode;
    std::int32_t offset;
  };
  struct Line {
    Fingerprint seed;
    std::vector<TemplatePiece> pieces;
    std::vector<Operand> operands;  // of the pieces that are commands, in order
  };

  explicit TemplateProgram(std::vector<std::vector<TemplatePiece>> lines) {
    Known known;
    for (auto& pieces : lines) {
      Line line;
      // Features are told apart by the text around their values, as in CRF++: two lines that write
      // the same name mean the same feature (a bag of words), wherever they find it.
      std::string text;
      for (TemplatePiece& piece : pieces) {
        const bool literal = piece.kind == '=';
        text.append(literal ? std::to_string(piece.argument.size()) + "=" + piece.argument : "%");
        if (piece.kind == '=') continue;
        if (piece.offset > kFarthest || piece.offset < -kFarthest) throw BadInput("an offset is out of range");
        line.operands.push_back({atom_of(piece, known), piece.mode, piece.offset});
        n_columns_ = std::max<std::size_t>(n_columns_, piece.column + std::size_t{1});
        if (piece.mode == TemplatePiece::Mode::kIndirect) {
          if (piece.offset < 0) throw BadInput("a column is negative");
          n_columns_ = std::max<std::size_t>(n_columns_, std::size_t(piece.offset) + 1);
        }
      }
      line.seed = hash_bytes(text);
      line.pieces = std::move(pieces);
      lines_.push_back(std::move(line));
    }
    for (std::size_t a = 0; a < atoms_.size(); ++a) {
      std::string scratch;
      for (std::int64_t d = 1; d <= kMarkers; ++d) {
        before_.push_back(hash_marker(atoms_[a], -d, scratch));
        after_.push_back(hash_marker(atoms_[a], d, scratch));
      }
    }
  }

  const std::vector<Line>& lines() const { return lines_; }
  const std::vector<Atom>& atoms() const { return atoms_; }
  std::size_t n_columns() const { return n_columns_; }  // that a table must have

  // ---- values ----------------------------------------------------------------------------------

  // The value of an atom of a cell; nothing if the word is too short. Lives in the cell or in
  // scratch.
  static std::optional<std::string_view> value(const Atom& atom, std::string_view cell, std::string& scratch) {
    std::string_view out = cell;
    switch (atom.kind) {
      case 'x': break;
      case 'p':
        if (!prefix(cell, atom.n, out)) return std::nullopt;
        break;
      case 's':
        if (!suffix(cell, atom.n, out)) return std::nullopt;
        break;
      case 'h': shape(cell, scratch); return std::string_view(scratch);
      case 'c': short_shape(cell, scratch); return std::string_view(scratch);
      default: {
        std::size_t begin = 0, length = 0;
        const bool matches = atom.regex->match(cell, begin, length);
        if (atom.kind == 't') return matches ? "true" : "false";
        out = matches ? cell.substr(begin, length) : std::string_view();
      }
    }
    if (!atom.lower) return out;
    lower_case(out, scratch);
    return std::string_view(scratch);
  }

  // The value of an atom d tokens before the first (d < 0) or behind the last token.
  static std::optional<std::string_view> marker(const Atom& atom, std::int64_t d, std::string& scratch) {
    if (atom.kind == 'p' || atom.kind == 's') return std::nullopt;
    const std::string text = (d < 0 ? "_B" : "_B+") + std::to_string(d);
    if (atom.kind == 'h' || atom.kind == 'c') {
      scratch = text;
      return std::string_view(scratch);
    }
    const auto found = value(atom, text, scratch);
    // It may lie in `text`, which ends here.
    if (found->data() != scratch.data()) scratch = std::string(*found);
    return std::string_view(scratch);
  }

  // 0 where there is no value.
  static std::uint64_t hash_value(std::optional<std::string_view> value) {
    if (!value) return 0;
    const std::uint64_t h = hash_bytes(*value);
    return h != 0 ? h : 1;
  }
  static std::uint64_t hash_marker(const Atom& atom, std::int64_t d, std::string& scratch) {
    return hash_value(marker(atom, d, scratch));
  }
  std::uint64_t marker_hash(std::uint32_t atom, std::int64_t d, std::string& scratch) const {
    if (d < -kMarkers || d > kMarkers) return hash_marker(atoms_[atom], d, scratch);
    return d < 0 ? before_[atom * kMarkers + std::size_t(-d - 1)] : after_[atom * kMarkers + std::size_t(d - 1)];
  }

  // One more operand of a feature. Not the same in another order.
  static Fingerprint join(Fingerprint sofar, std::uint64_t value) {
    return detail::fold_multiply(sofar ^ 0x9e3779b97f4a7c15u, value ^ 0xc2b2ae3d27d4eb4fu);
  }

 private:
  static constexpr std::int32_t kFarthest = 1 << 30;
  static constexpr std::int64_t kMarkers = 8;

  using Known = std::unordered_map<std::string, std::uint32_t>;  // what tells atoms apart -> number

  std::uint32_t atom_of(const TemplatePiece& piece, Known& known) {
    std::string key = std::string{piece.kind, piece.lower ? '1' : '0'} + std::to_string(piece.column) + ',' + piece.argument;
    const auto [found, is_new] = known.try_emplace(std::move(key), static_cast<std::uint32_t>(atoms_.size()));
    if (!is_new) return found->second;
    Atom atom{piece.kind, piece.column, piece.argument, piece.lower, 0, nullptr};
    switch (atom.kind) {
      case 'x':
      case 'h':
      case 'c': break;
      case 't':
      case 'm': atom.regex = std::make_shared<const SmallRegex>(atom.argument); break;
      case 'p':
      case 's': {
        atom.n = static_cast<unsigned>(std::atoi(atom.argument.c_str()));
        if (atom.n < 1) throw BadInput("a prefix or suffix needs at least one character");
        break;
      }
      default: throw BadInput(std::string("unknown command ") + atom.kind);
    }
    atoms_.push_back(std::move(atom));
    return found->second;
  }

  std::vector<Line> lines_;
  std::vector<Atom> atoms_;
  std::vector<std::uint64_t> before_, after_;  // [atom][kMarkers] hashes of the markers
  std::size_t n_columns_ = 0;
};

}  // namespace mm
