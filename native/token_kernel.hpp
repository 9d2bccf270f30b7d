// A kernel between tokens: what a chain knows of its emissions where features have no weights.
//
// Tokens with the same features are one: the kernel is over *distinct* tokens 0 ... size() - 1.
#pragma once

#include <span>

#include "common.hpp"

namespace mm {

class TokenKernel {
 public:
  using Tokens = std::span<const std::uint32_t>;

  virtual ~TokenKernel() = default;
  virtual std::size_t size() const = 0;

  // out[a][t] = k(which[a], t) for all distinct tokens t.
  virtual void rows(Tokens which, double* out) const = 0;

  // out[a][b] = k(first[a], second[b]).
  virtual void block(Tokens first, Tokens second, double* out) const = 0;

  // May several threads ask at once?
  virtual bool thread_safe() const { return true; }

  // A hash of the data and of what the kernel does with them; 0 where nobody can tell.
  virtual std::uint64_t data_hash() const = 0;
};

}  // namespace mm
