// What the dual engine asks of a structure. A solver never sees more than this.
//
// An output y of example i is kept as a *plane*: an opaque code from which the structure can tell
// Δf_i(y) = f(x_i, y_i) - f(x_i, y) and l_i(y). The truth y_i has the empty code: its plane is zero.
#pragma once

#include <memory>
#include <span>

#include "common.hpp"
#include "pareto_search.hpp"
#include "weights.hpp"

namespace mm {

using Code = std::uint32_t;
using CodeView = std::span<const Code>;

// An output that was found; its code is in the workspace.
struct Found {
  double F = 0.0;      // l - w.Δf
  bool truth = true;   // y_i itself: nothing is violated and there is no code
  double bound = 0.0;  // no output has an F above this, where the one found may not be the best
  // The hinge is at most this.
  double upper() const { return std::max({F, bound, 0.0}); }
};

// Where in the output a plane differs from the truth: a closed interval in the structure's units.
struct Extent {
  std::uint32_t lo = 0, hi = 0;
  bool meets(const Extent& other) const { return lo <= other.hi && other.lo <= hi; }
};

template <class T>
class SignedRows;

template <class T>
class Structure {
 public:
  // Scratch memory of one thread, allocated once, on cache lines of its own.
  struct alignas(128) Workspace {
    virtual ~Workspace() = default;
    std::vector<Code> code;  // the output that the last oracle() or recombine() found
    double loss_scale = 1.0;  // the oracle takes so many times the loss
    bool same = false;  // corner(), one_error(), grades() and undecided() have the i and w of the call before
    double more_work = 0.0;  // cycles that the last oracle() took beyond oracle_work(), or undecided() in all
  };

  virtual ~Structure() = default;
  virtual std::size_t n_examples() const = 0;
  virtual std::size_t n_weights() const = 0;  // with padding
  virtual std::unique_ptr<Workspace> workspace() const = 0;

  // A factor of C for example i; an example of weight zero is as if it were not there.
  virtual double example_weight(std::size_t /*i*/) const { return 1.0; }

  // Throws BadInput where the examples have no truth to learn from.
  virtual void require_truth() const {}

  // May a loss be negative? (Relative to the reference; then only the plain formulation goes.)
  virtual bool signed_losses() const { return false; }

  // May several threads call the oracle at once?
  virtual bool thread_safe() const { return true; }

  // May answers of the oracle come from elsewhere, if they are announced (oracle_pool.hpp)? A loop over many
  // examples then says which ones it will ask for, in which order, and when there are no more.
  virtual bool asks_elsewhere() const { return false; }
  virtual void expect(std::vector<std::uint32_t> /*order*/, std::size_t /*batch*/) const {}
  virtual void expect_no_more() const noexcept {}

  // May several threads make the steps at the same time, each on examples of its own (joint_pass.hpp)?
  virtual bool shares_steps() const { return false; }

  // Memory that the structure keeps for the engine's sake.
  virtual std::size_t cache_bytes() const { return 0; }

  // Of examples begin .. end - 1: the same, and what else can be given back while they are not visited.
  // The pages of data that are mapped from a file always are, what is kept for speed if `all`.
  virtual std::size_t cache_bytes(std::size_t /*begin*/, std::size_t /*end*/) const { return 0; }
  virtual void release(std::size_t /*begin*/, std::size_t /*end*/, bool /*all*/) const {}

  // The weights changed outside of accumulate(): forget everything derived from them.
  virtual void weights_changed(Workspace&) const {}

  // Weights come in rows of this many, of which an example reads all or none ...
  virtual std::size_t row_size() const { return n_weights(); }
  // ... and these are the rows that example i may read.
  virtual void rows_read(std::size_t /*i*/, std::vector<std::size_t>& rows) const { rows.assign(1, 0); }

  // Is the oracle's answer the argmax, or at least bounded (Found::bound)? A user's may be worse than
  // outputs that are known already; what is kept is then looked at too.
  virtual bool exact_oracle() const { return true; }
  // By how much such an oracle may misjudge an output for having computed with 4-byte numbers.
  virtual double rounding(std::size_t /*i*/, CodeView /*plane*/, const T*) const { return 0.0; }

  // An output by its loss and its margin w.Δf.
  struct Grade {
    double loss, margin;
  };

  // argmax_y F_i(y).
  virtual Found oracle(Workspace& ws, std::size_t i, const T* w) const = 0;

  // argmax_y λ l_i(y) - w.Δf_i(y), a corner of the hull of all outputs (hull.hpp): its loss and w.Δf.
  // The truth has zeros and no code.
  virtual Grade corner(Workspace& ws, std::size_t i, const T* w, double lambda) const {
    const double scale = ws.loss_scale;
    ws.loss_scale = lambda;
    const Found found = oracle(ws, i, w);
    ws.loss_scale = scale;
    if (found.truth) return {0.0, 0.0};
    const double l = loss(i, ws.code);
    return {l, lambda * l - found.F};
  }
  virtual double corner_work(std::size_t i) const { return oracle_work(i); }  // of one more under the same w
  virtual LossRange losses(std::size_t /*i*/) const { return {}; }

  // The output of the greatest merit among those that differ from the truth in one place, in the workspace.
  // All outputs with a loss below twice the least must be such. False where a structure has no places.
  virtual bool one_error(Workspace&, std::size_t /*i*/, const T*, const Merit&, Grade& /*found*/) const { return false; }

  // An output of a greater merit than `open.top`, where the corners of the hull do not decide. kGaveUp
  // where a structure cannot tell.
  using Outcome = typename ParetoSearch<T>::Outcome;
  virtual bool offers_search() const { return false; }
  virtual Outcome undecided(Workspace&, std::size_t /*i*/, const T*, const Merit&, const Undecided& /*open*/, Grade& /*found*/) const {
    return Outcome::kGaveUp;
  }

  // The output of the greatest merit of all but the truth, in the workspace, for a structure that finds it at
  // once and need not be asked for corners. kNothing: none has a merit above zero. kGaveUp: it cannot tell.
  virtual Outcome greatest(Workspace&, std::size_t /*i*/, const T*, const Merit&, Grade& /*found*/) const { return Outcome::kGaveUp; }

  // The best outputs by their loss, for formulations that the oracle does not serve: for every loss
  // that an output other than the truth can have, the smallest w.Δf. `any`: for all of them together.
  // False where a structure cannot tell.
  virtual bool offers_grades(bool /*any*/) const { return false; }
  // Do grades of example i take far longer than some calls of the oracle? Then they are the last resort.
  virtual bool slow_grades(std::size_t /*i*/) const { return false; }
  virtual bool grades(Workspace&, std::size_t /*i*/, const T*, bool /*any*/, std::vector<Grade>&) const { return false; }
  // Put the output of the k-th grade of the last grades(i) into the workspace; return its w.Δf.
  virtual double take_grade(Workspace&, std::size_t /*i*/, const T*, std::size_t /*k*/) const { return 0.0; }

  // About how many processor cycles an oracle call, or the Gram entries of a new plane against
  // old ones, take. Schedules weigh exact against cached passes by it: a clock would make runs
  // impossible to repeat. The default stands for a user's Python oracle.
  virtual double oracle_work(std::size_t /*i*/) const { return 1e6; }
  virtual double gram_work(CodeView added, CodeView kept) const {
    return 5.0 * double(added.size() + kept.size());
  }
  // And a visit of a part, for each word of its codes and its index.
  virtual double word_work() const { return 40.0; }

  // Itself, if its planes are rows with a sign (signed_rows.hpp): their multipliers have passes of their own.
  virtual const SignedRows<T>* signed_rows() const { return nullptr; }

  // ---- planes ----

  virtual double loss(std::size_t i, CodeView plane) const = 0;

  // row[k] = Δf(a).Δf(planes[k]).
  virtual void gram(Workspace& ws, std::size_t i, CodeView a, std::span<const CodeView> planes,
                    double* row) const = 0;

  // Is a code one that the oracle could have made? Asked of codes read from a file.
  virtual bool valid(std::size_t i, CodeView code) const = 0;

  // Planes with disjoint extents do not interact: features and losses of differing from the truth
  // in both places are the sums of those of differing in each.
  virtual Extent extent(std::size_t /*i*/, CodeView) const { return {0, ~std::uint32_t{0}}; }

  // Length of the first piece of a non-empty code whose extent is disjoint from the rest's.
  virtual std::size_t first_piece(CodeView code) const { return code.size(); }

  // ---- parts: several planes of one place, and an index that the structure makes of them ----

  // Put a plane into the index. It may hold more than the present planes, never less.
  virtual void index(Workspace&, std::size_t /*i*/, CodeView /*plane*/,
                     std::vector<Code>& /*index*/) const {}

  // Make the index hold just these planes; it holds them and maybe more.
  virtual void reindex(Workspace&, std::size_t /*i*/, std::span<const CodeView> /*planes*/,
                       std::vector<Code>& /*index*/) const {}

  // The best output that can be put together from pieces of the kept planes, far cheaper than the
  // oracle; nothing (the truth) where a structure has no such thing.
  virtual Found recombine(Workspace&, std::size_t, const T*, CodeView /*index*/) const {
    return {};
  }

  // F[k] = losses[k] - w.Δf(planes[k]); `fresh` says that oracle(i), or recombine(i) with this
  // index, was the last call under the same w.
  enum class Fresh { kNo, kOracle, kRecombine };
  virtual void margins(Workspace& ws, std::size_t i, const T* w, CodeView index,
                       std::span<const CodeView> planes, std::span<const double> losses,
                       Fresh fresh, double* F) const = 0;

  // u += sum over k of coef[k] * Δf(planes[k]).
  virtual void accumulate(Workspace& ws, std::size_t i, CodeView index,
                          std::span<const CodeView> planes, const double* coef,
                          Weights<T>& weights) const = 0;

  // About how many processor cycles accumulate() takes beyond what a visit with this index does.
  virtual double update_work(CodeView /*index*/) const { return 0.0; }

  // ---- kernels: w is not u but a linear map of it, which only the structure knows ----

  // If so, accumulate() keeps w up to date with u, unless the weights are `sums_only`.
  virtual bool maps_weights() const { return false; }

  // w from u, from scratch.
  virtual void map_weights(Weights<T>&) const {}

  // Start fetching the weights that a visit with this index will read.
  virtual void prefetch_part(std::size_t /*i*/, CodeView /*index*/, const T*) const {}
  // ... or where the data of example i begin and end, then what they hold, which a visit will read soon, ...
  virtual void prefetch_ends(std::size_t /*i*/) const {}
  virtual void prefetch_example(std::size_t /*i*/) const {}
  // ... and then the weights that an oracle call will read.
  virtual void prefetch_oracle(std::size_t /*i*/, const T*) const {}
};

}  // namespace mm
