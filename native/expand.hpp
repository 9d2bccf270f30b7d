// Column tables -> features of their tokens, by a template.
//
// Tokens are done in blocks: first the hashes of all atoms of the block, then line after line of
// the template, so that a loop is over thousands of tokens with everything else fixed.
// Which features there are is learned in learn_features.hpp.
#pragma once

#include "buffer.hpp"
#include "parallel.hpp"
#include "template_program.hpp"

namespace mm {

// A template applied to a table. `columns[k]` is the column of the table that the template calls k.
class Expansion {
 public:
  static constexpr std::size_t kBlock = 8192;  // tokens
  static constexpr std::size_t kAround = 64;   // tokens on each side of a piece that are looked at with it
  static constexpr std::uint32_t kNone = FeatureIndex::npos;

  Expansion(const TemplateProgram& program, const ColumnTable& table, std::vector<std::size_t> columns)
      : program_(program), table_(table), columns_(std::move(columns)) {
    if (columns_.size() < program.n_columns()) throw BadInput("the template needs more columns");
    for (const std::size_t c : columns_) {
      if (c >= table.n_columns()) throw BadInput("the table has no column " + std::to_string(c));
    }
    if (table.n_tokens() >= kNone) throw BadInput("there are more tokens than the index type holds");
  }

  const TemplateProgram& program() const { return program_; }
  const ColumnTable& table() const { return table_; }

  // A thread's memory for one block of tokens: whole sequences, or a piece of one that is longer than
  // a block.
  struct Block {
    std::size_t first = 0, last = 0;                // sequences: that of the first token, that of the next block
    std::size_t begin = 0, size = 0;                // tokens
    std::size_t seen_begin = 0, seen_end = 0;       // tokens whose atoms are there: the block and some around it
    std::vector<std::vector<std::uint64_t>> atoms;  // [atom][token - seen_begin]
    std::vector<Fingerprint> fingerprints;          // [token] of the line at hand; 0: no feature
    std::string scratch;
  };

  // Puts the block before sequence i: next_block() begins there.
  void seek(Block& block, std::size_t i) const {
    block.last = i;
    block.begin = std::size_t(table_.offsets()[i]);
    block.size = 0;
  }

  // The block behind the present one; false if all tokens before sequence `end` are done.
  bool next_block(Block& block, std::size_t end) const {
    const auto offsets = table_.offsets();
    std::size_t i = block.last;
    if (i >= end) return false;
    block.first = i;
    block.begin += block.size;
    const std::size_t sequence_begin = std::size_t(offsets[i]), sequence_end = std::size_t(offsets[i + 1]);
    if (sequence_end - sequence_begin > kBlock) {
      block.size = std::min(kBlock, sequence_end - block.begin);
      block.last = block.begin + block.size == sequence_end ? i + 1 : i;
      block.seen_begin = std::max(sequence_begin, block.begin - std::min(block.begin, kAround));
      block.seen_end = std::min(sequence_end, block.begin + block.size + kAround);
    } else {
      while (i < end && std::size_t(offsets[i + 1]) - block.begin <= kBlock) ++i;
      block.last = i;
      block.size = std::size_t(offsets[i]) - block.begin;
      block.seen_begin = block.begin;
      block.seen_end = block.begin + block.size;
    }
    block.atoms.resize(program_.atoms().size());
    for (auto& hashes : block.atoms) hashes.clear();
    return true;
  }

  // Fills block.fingerprints with the features of one line.
  void expand_line(Block& block, const TemplateProgram::Line& line) const {
    for (const auto& operand : line.operands) load_atom(block, operand.atom);
    block.fingerprints.resize(block.size);
    const auto offsets = table_.offsets();
    bool relative = true;
    std::int64_t left = 0, right = 0;  // how far the line looks
    for (const auto& operand : line.operands) {
      relative = relative && operand.mode == TemplatePiece::Mode::kRelative;
      left = std::max<std::int64_t>(left, -operand.offset);
      right = std::max<std::int64_t>(right, operand.offset);
    }
    for (std::size_t i = block.first; i == block.first || i < block.last; ++i) {
      // The tokens of the sequence that are in the block, and of these the ones whose neighbours are all
      // there, counted from the beginning of the sequence.
      const std::int64_t begin = offsets[i], n = offsets[i + 1] - begin;
      const std::int64_t low = std::max(std::int64_t(block.begin) - begin, std::int64_t{0});
      const std::int64_t high = std::min(std::int64_t(block.begin + block.size) - begin, n);
      const std::int64_t seen_low = std::max(std::int64_t(block.seen_begin) - begin, std::int64_t{0});
      const std::int64_t seen_high = std::min(std::int64_t(block.seen_end) - begin, n);
      const std::int64_t from = relative ? std::clamp(seen_low + left, low, high) : high;
      const std::int64_t to = relative ? std::clamp(seen_high - right, from, high) : high;
      const auto one = [&](std::int64_t t) {
        block.fingerprints[std::size_t(begin + t) - block.begin] = slow(block, line, std::size_t(begin), n, t);
      };
      for (std::int64_t t = low; t < from; ++t) one(t);
      if (from < to) inner(block, line, begin + from, begin + to);
      for (std::int64_t t = to; t < high; ++t) one(t);
    }
  }

  // The name of the feature that a line gives a token: the line with the values put in.
  void append_name(std::size_t sequence, std::size_t token, std::size_t line, std::string& out, std::string& scratch) const {
    const auto offsets = table_.offsets();
    const std::int64_t begin = offsets[sequence], n = offsets[sequence + 1] - begin;
    std::size_t operand = 0;
    for (const TemplatePiece& piece : program_.lines()[line].pieces) {
      if (piece.kind == '=') {
        out.append(piece.argument);
        continue;
      }
      const auto& op = program_.lines()[line].operands[operand++];
      const TemplateProgram::Atom& atom = program_.atoms()[op.atom];
      const std::int64_t at = position(op, std::size_t(begin), n, std::int64_t(token) - begin);
      const auto value = at < 0     ? TemplateProgram::marker(atom, at, scratch)
                         : at >= n  ? TemplateProgram::marker(atom, at - n + 1, scratch)
                                    : TemplateProgram::value(atom, cell(std::size_t(begin + at), atom.column), scratch);
      if (value) out.append(*value);
    }
  }

 private:
  std::string_view cell(std::size_t token, std::size_t column) const { return table_.cell(token, columns_[column]); }

  void load_atom(Block& block, std::uint32_t a) const {
    auto& hashes = block.atoms[a];
    if (!hashes.empty()) return;
    const TemplateProgram::Atom& atom = program_.atoms()[a];
    hashes.resize(block.seen_end - block.seen_begin);
    for (std::size_t k = 0; k < hashes.size(); ++k) hashes[k] = hash_at(atom, block.seen_begin + k, block.scratch);
  }

  std::uint64_t hash_at(const TemplateProgram::Atom& atom, std::size_t token, std::string& scratch) const {
    return TemplateProgram::hash_value(TemplateProgram::value(atom, cell(token, atom.column), scratch));
  }

  // The token that an operand looks at, counted from the beginning of its sequence; may be outside.
  std::int64_t position(const TemplateProgram::Operand& op, std::size_t begin, std::int64_t n, std::int64_t t) const {
    switch (op.mode) {
      case TemplatePiece::Mode::kRelative: return t + op.offset;
      case TemplatePiece::Mode::kAbsolute: return op.offset < 0 ? n + op.offset : op.offset - 1;
      default: return t + leading_number(cell(begin + std::size_t(t), std::size_t(op.offset)));
    }
  }

  static std::int64_t leading_number(std::string_view text) {
    std::size_t k = 0;
    while (k < text.size() && (text[k] == ' ' || (text[k] >= '\t' && text[k] <= '\r'))) ++k;
    const bool negative = k < text.size() && text[k] == '-';
    if (k < text.size() && (text[k] == '-' || text[k] == '+')) ++k;
    std::int64_t number = 0;
    for (; k < text.size() && text[k] >= '0' && text[k] <= '9'; ++k) {
      number = std::min<std::int64_t>(number * 10 + (text[k] - '0'), std::int64_t{1} << 40);
    }
    return negative ? -number : number;
  }

  static Fingerprint finish(Fingerprint x) { return x != 0 ? x : 1; }

  // The feature of token t of the sequence of n tokens that begins with token `begin`.
  Fingerprint slow(Block& block, const TemplateProgram::Line& line, std::size_t begin, std::int64_t n, std::int64_t t) const {
    Fingerprint x = line.seed;
    for (const auto& op : line.operands) {
      const std::int64_t p = position(op, begin, n, t);
      const std::uint64_t h = p < 0    ? program_.marker_hash(op.atom, p, block.scratch)
                              : p >= n ? program_.marker_hash(op.atom, p - n + 1, block.scratch)
                                       : seen_hash(block, op.atom, begin + std::size_t(p));
      if (h == 0) return 0;
      x = TemplateProgram::join(x, h);
    }
    return finish(x);
  }

  std::uint64_t seen_hash(Block& block, std::uint32_t a, std::size_t token) const {
    if (token >= block.seen_begin && token < block.seen_end) return block.atoms[a][token - block.seen_begin];
    return hash_at(program_.atoms()[a], token, block.scratch);
  }

  // Tokens from..to, counted in the table, whose neighbours are seen as far as the line looks.
  void inner(Block& block, const TemplateProgram::Line& line, std::int64_t from, std::int64_t to) const {
    Fingerprint* out = block.fingerprints.data() + (from - std::int64_t(block.begin));
    const std::size_t n = std::size_t(to - from);
    std::fill(out, out + n, line.seed);
    for (const auto& op : line.operands) {
      const std::uint64_t* h = block.atoms[op.atom].data() + (from - std::int64_t(block.seen_begin) + op.offset);
      for (std::size_t t = 0; t < n; ++t) {
        out[t] = out[t] == 0 || h[t] == 0 ? 0 : finish(TemplateProgram::join(out[t], h[t]));
      }
    }
  }

  const TemplateProgram& program_;
  const ColumnTable& table_;
  std::vector<std::size_t> columns_;
};

// ---- rows of features ---------------------------------------------------------------------------

// The features of some tokens as compressed rows; ids ascend within a token.
struct FeatureRows {
  Buffer<std::int64_t> indptr;
  Buffer<std::uint32_t> indices;

  FeatureRows() { indptr.push(0); }

  // Sorts what was put behind the last row and makes it a row.
  void end_row() {
    std::uint32_t* begin = indices.data() + indptr.data()[indptr.size() - 1];
    std::uint32_t* end = indices.data() + indices.size();
    if (end - begin > 48) {
      std::sort(begin, end);
    } else {
      for (std::uint32_t* i = begin; i < end; ++i) {  // short, and often nearly sorted
        const std::uint32_t id = *i;
        std::uint32_t* j = i;
        for (; j > begin && j[-1] > id; --j) *j = j[-1];
        *j = id;
      }
    }
    indices.truncate(std::size_t(std::unique(begin, end) - indices.data()));  // hashing may join two
    indptr.push(static_cast<std::int64_t>(indices.size()));
  }
};

// The rows of all tokens.
struct AllRows {
  Buffer<std::int64_t> indptr;
  Buffer<std::uint32_t> indices;
};

// Shares of tokens, joined in order; each thread copies its own.
inline AllRows join_rows(std::vector<FeatureRows>& shares) {
  if (shares.size() == 1) return {std::move(shares[0].indptr), std::move(shares[0].indices)};
  std::vector<std::size_t> tokens{0}, entries{0};
  for (const FeatureRows& share : shares) {
    tokens.push_back(tokens.back() + share.indptr.size() - 1);
    entries.push_back(entries.back() + share.indices.size());
  }
  AllRows all;
  std::int64_t* ends = all.indptr.extend(tokens.back() + 1);
  std::uint32_t* ids = all.indices.extend(entries.back());
  ends[0] = 0;
  run_shares(shares.size(), [&](std::size_t k) {
    const FeatureRows mine = std::move(shares[k]);  // freed as soon as it is copied
    const auto shift = static_cast<std::int64_t>(entries[k]);
    for (std::size_t t = 1; t < mine.indptr.size(); ++t) ends[tokens[k] + t] = mine.indptr.data()[t] + shift;
    std::copy_n(mine.indices.data(), mine.indices.size(), ids + entries[k]);
  });
  return all;
}

// Shares of the sequences with about as many tokens each.
inline std::vector<std::size_t> cut_sequences(std::span<const std::int64_t> offsets, std::size_t shares) {
  std::vector<std::size_t> cuts{0};
  for (std::size_t k = 1; k < shares; ++k) {
    const auto want = static_cast<std::int64_t>(double(offsets.back()) * double(k) / double(shares));
    const auto at = std::lower_bound(offsets.begin(), offsets.end() - 1, want);
    cuts.push_back(std::max(cuts.back(), std::size_t(at - offsets.begin())));
  }
  cuts.push_back(offsets.size() - 1);
  return cuts;
}

// Rows of all tokens, where number(fingerprint) says which feature it is, kNone if none.
// prefetch(fingerprint) is called some time before.
template <class Prefetch, class Number>
AllRows expand_rows(const Expansion& expansion, int threads, Prefetch&& prefetch, Number&& number) {
  const auto& lines = expansion.program().lines();
  const auto offsets = expansion.table().offsets();
  const std::size_t shares = n_shares(threads, expansion.table().n_sequences());
  const std::vector<std::size_t> cuts = cut_sequences(offsets, shares);
  std::vector<FeatureRows> rows(shares);
  run_shares(shares, [&](std::size_t share) {
    FeatureRows& mine = rows[share];
    Expansion::Block block;
    std::vector<std::uint32_t> ids;  // [line][token]
    expansion.seek(block, cuts[share]);
    while (expansion.next_block(block, cuts[share + 1])) {
      ids.resize(lines.size() * block.size);
      for (std::size_t j = 0; j < lines.size(); ++j) {
        expansion.expand_line(block, lines[j]);
        const Fingerprint* x = block.fingerprints.data();
        std::uint32_t* out = ids.data() + j * block.size;
        constexpr std::size_t kAhead = 24;
        for (std::size_t t = 0; t < std::min(kAhead, block.size); ++t) prefetch(x[t]);
        for (std::size_t t = 0; t < block.size; ++t) {
          if (t + kAhead < block.size) prefetch(x[t + kAhead]);
          out[t] = x[t] == 0 ? Expansion::kNone : number(x[t]);
        }
      }
      for (std::size_t t = 0; t < block.size; ++t) {
        for (std::size_t j = 0; j < lines.size(); ++j) {
          const std::uint32_t id = ids[j * block.size + t];
          if (id != Expansion::kNone) mine.indices.push(id);
        }
        mine.end_row();
      }
    }
  });
  return join_rows(rows);
}

inline AllRows expand_known(const Expansion& expansion, const FeatureIndex& index, int threads) {
  return expand_rows(
      expansion, threads, [&](Fingerprint x) { index.prefetch(x); }, [&](Fingerprint x) { return index.find(x); });
}

inline AllRows expand_hashed(const Expansion& expansion, unsigned bits, int threads) {
  return expand_rows(
      expansion, threads, [](Fingerprint) {}, [bits](Fingerprint x) { return static_cast<std::uint32_t>(x >> (64 - bits)); });
}

}  // namespace mm
