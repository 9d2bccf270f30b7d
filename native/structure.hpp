// What the dual engine asks of a structure. A solver never sees more than this.
//
// An output y of example i is kept as a *plane*: an opaque code from which the structure can tell
// Δf_i(y) = f(x_i, y_i) - f(x_i, y) and l_i(y). The truth y_i is never coded: its plane is zero.
#pragma once

#include <memory>
#include <span>

#include "common.hpp"
#include "weights.hpp"

namespace mm {

using Code = std::uint32_t;
using CodeView = std::span<const Code>;

// The most violated output of an example: F = l - w.Δf, its loss, and its code in the workspace.
struct Found {
  double F = 0.0;
  double loss = 0.0;
  bool truth = true;  // y_i itself: nothing is violated and there is no code
  bool fresh = false; // margins() may use what this call computed
};

struct Extent {
  std::uint32_t lo = 0, hi = 0;
  bool meets(const Extent& other) const { return lo <= other.hi && other.lo <= hi; }
};

template <class T>
class Structure {
 public:
  // Scratch memory of one thread, allocated once.
  struct Workspace {
    virtual ~Workspace() = default;
    std::vector<Code> code;  // the output that the last oracle call found
  };

  virtual ~Structure() = default;
  virtual std::size_t n_examples() const = 0;
  virtual std::size_t n_weights() const = 0;  // with padding
  virtual std::unique_ptr<Workspace> workspace() const = 0;

  // The weights changed outside of accumulate(): forget everything derived from them.
  virtual void weights_changed(Workspace&) const {}

  // argmax_y F_i(y). Leaves the code in ws.code unless the truth was found.
  virtual Found oracle(Workspace& ws, std::size_t i, const T* w) const = 0;

  // Where in the output a plane differs from the truth, as a closed interval in units of the
  // structure's own. Planes with disjoint extents do not interact: features and losses of
  // differing in both places are the sums of differing in each.
  virtual Extent extent(std::size_t /*i*/, CodeView) const { return {0, ~std::uint32_t{0}}; }

  // Length of the first piece of a non-empty code whose extent is disjoint from the rest's.
  virtual std::size_t first_piece(CodeView code) const { return code.size(); }

  // The best output that can be put together from pieces of the kept planes, far cheaper than the
  // oracle; `index` is what index() made of them. Nothing (truth) where a structure has no such.
  virtual Found recombine(Workspace&, std::size_t, const T*, CodeView /*index*/) const { return {}; }

  // Merge a plane into the digest of a block's planes that recombine() and prefetch() read.
  virtual void index(CodeView /*plane*/, std::vector<Code>& /*index*/) const {}
  // The digest of two merged parts, the first one before the second.
  virtual void join_index(CodeView, CodeView, std::vector<Code>& /*index*/) const {}

  // F[k] = losses[k] - w.Δf(planes[k]). `fresh`: oracle(i) or recombine(i)
  // was the last call under the same w.
  virtual void margins(Workspace& ws, std::size_t i, const T* w, std::span<const CodeView> planes,
                       std::span<const double> losses, bool fresh, double* F) const = 0;

  // The loss of a plane (the truth's, with an empty code, is zero).
  virtual double loss(std::size_t i, CodeView plane) const = 0;

  // row[k] = Δf(a).Δf(planes[k]).
  virtual void gram(Workspace& ws, std::size_t i, CodeView a, std::span<const CodeView> planes,
                    double* row) const = 0;

  // u += sum over k of coef[k] * Δf(planes[k]).
  virtual void accumulate(Workspace& ws, std::size_t i, std::span<const CodeView> planes,
                          const double* coef, Weights<T>& weights) const = 0;

  // Start fetching what a visit of example i will read.
  // Stages run in order, some visits apart; each may read what the one before it fetched.
  virtual void prefetch_example(std::size_t, int /*stage: 0, 1*/) const {}
  virtual void prefetch_part(std::size_t, CodeView /*index*/, const T*, int /*stage: 0, 1*/) const {}

  // Is a code one that the oracle could have made? Asked of codes read from a file.
  virtual bool valid(std::size_t i, CodeView code) const = 0;
  virtual bool valid_index(std::size_t, CodeView index) const { return index.empty(); }

  // May several threads call the oracle at once?
  virtual bool thread_safe() const { return true; }

  // Memory that the structure keeps for the engine's sake.
  virtual std::size_t cache_bytes() const { return 0; }
};

}  // namespace mm
