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

  // F[k] = losses[k] - w.Δf(planes[k]). `fresh`: oracle(i) was the last call under the same w.
  virtual void margins(Workspace& ws, std::size_t i, const T* w, std::span<const CodeView> planes,
                       std::span<const double> losses, bool fresh, double* F) const = 0;

  // row[k] = Δf(a).Δf(planes[k]).
  virtual void gram(Workspace& ws, std::size_t i, CodeView a, std::span<const CodeView> planes,
                    double* row) const = 0;

  // u += sum over k of coef[k] * Δf(planes[k]).
  virtual void accumulate(Workspace& ws, std::size_t i, std::span<const CodeView> planes,
                          const double* coef, Weights<T>& weights) const = 0;

  // Start fetching what a visit of example i will read.
  virtual void prefetch(std::size_t, std::span<const Code>, const T*) const {}

  // How many outputs one oracle call costs, in units of one multiply-add; used to weigh exact
  // against cached visits without a clock, so that a run can be repeated.
  virtual double oracle_cost(std::size_t) const { return 1.0; }
};

}  // namespace mm
