// A share of the examples: their multipliers and planes, and what is summed over them.
//
// The dual is a sum over examples but for Ω*(u). So whoever works on some of them (one thread on all, several
// threads on examples of their own, processes with a share each) needs their blocks, which are here, and
// u with w = link(u), which is apart (weights.hpp) and common to all shares. A step on a block changes
// its share and adds C Σ δα Δf to u; u may also move from elsewhere (Weights::receive).
//
// With linear slacks the multipliers of an example sum to one. With quadratic ones and with hard
// margins they have no sum (*unconstrained*), and with M_i = Σ_{y≠y_i} α_i(y) quadratic slacks cost
// ½ M_i² in the dual.
#pragma once

#include <limits>

#include "parallel.hpp"
#include "part.hpp"
#include "slack.hpp"
#include "windows.hpp"

namespace mm {

template <class T>
class Blocks {
 public:
  Blocks(const Structure<T>& structure, double C, Slack slack, bool factored)
      : structure_(structure), C_(C), slack_(slack), factored_(factored), parts_(structure.n_examples()),
        hinge_(structure.n_examples()), gaps_(structure.n_examples()) {}

  std::size_t n_examples() const { return parts_.size(); }
  // As many as the structure has by now; the new ones are untouched.
  void grow() {
    parts_.resize(structure_.n_examples());
    hinge_.resize(parts_.size());
    gaps_.resize(parts_.size());
  }
  double C() const { return C_; }
  void set_C(double C) { C_ = C; }
  double C_of(std::size_t i) const { return C_ * structure_.example_weight(i); }
  Slack slack() const { return slack_; }
  // Are there several parts in a block, where places of its output do not interact?
  bool factored() const { return factored_; }
  // Is there no constraint on the sum of a block's multipliers?
  bool unconstrained() const { return slack_ != Slack::kLinear; }

  Parts<T>& operator[](std::size_t i) { return parts_[i]; }
  const Parts<T>& operator[](std::size_t i) const { return parts_[i]; }
  std::vector<Parts<T>>& parts() { return parts_; }
  const std::vector<Parts<T>>& parts() const { return parts_; }

  // Where only the planes of one window are sure to be in memory (windows.hpp); nullptr: all of them are.
  Windows* windows() const { return windows_; }
  void set_windows(Windows* windows) { windows_ = windows; }

  // Was the dual found to have no upper bound?
  bool unbounded() const { return unbounded_; }
  void set_unbounded() { unbounded_ = true; }

  // ---- sums that steps keep up to date ----

  double loss() const { return loss_; }    // Σ α l
  double price() const { return price_; }  // Σ ½ M², with quadratic slacks
  void set_sums(double loss, double price) { loss_ = loss, price_ = price; }
  void add_to_sums(double loss, double price) { loss_ += loss, price_ += price; }
  // The linear part of the dual.
  double linear() const { return C_ * (loss_ - price_); }
  void recount() { loss_ = expected_loss(), price_ = expected_price(); }

  // Σ_i Σ_y α_i(y) l_i(y)
  double expected_loss() const {
    if (windows_ == nullptr) return loss_of(0, parts_.size());
    return over_windows([](const Windows::Sums& sums) { return sums.loss; });
  }
  double loss_of(std::size_t begin, std::size_t end) const {
    double sum = 0.0;
    for (std::size_t i = begin; i < end; ++i) {
      const double weight = structure_.example_weight(i);
      for (const Part<T>& part : parts_[i]) {
        for (std::size_t k = 1; k < part.set.size(); ++k) {
          sum += weight * part.set.alpha()[k] * part.set.loss()[k];
        }
      }
    }
    return sum;
  }
  // Σ_i ½ M_i², where slacks are quadratic.
  double expected_price() const {
    if (windows_ == nullptr) return price_of(0, parts_.size());
    return over_windows([](const Windows::Sums& sums) { return sums.price; });
  }
  double price_of(std::size_t begin, std::size_t end) const {
    if (slack_ != Slack::kQuadratic) return 0.0;
    double sum = 0.0;
    for (std::size_t i = begin; i < end; ++i) {
      for (const Part<T>& part : parts_[i]) {
        const double M = mass(part);
        sum += structure_.example_weight(i) * 0.5 * M * M;
      }
    }
    return sum;
  }
  // ---- slacks ----

  // Of each example, at the last w that was looked at (or its factor, for hard margins).
  std::vector<double>& slacks() { return hinge_; }
  // What each example's block was short of at its last visit (its share of the gap).
  std::vector<double>& gaps() { return gaps_; }
  const std::vector<double>& gaps() const { return gaps_; }

  // The primal, from what the weights cost and the slacks.
  double objective(double penalty) const {
    return slack_ == Slack::kHard ? hard_primal(penalty) : penalty + C_ * risk();
  }

  // Σ over y ≠ y_i of α(y)
  static double mass(const Part<T>& part) {
    double sum = 0.0;
    for (std::size_t k = 1; k < part.set.size(); ++k) sum += part.set.alpha()[k];
    return sum;
  }

  // Σ_i of what the slacks in hinge_ cost, in order, whatever the number of threads.
  double risk() const {
    double sum = 0.0;
    for (std::size_t i = 0; i < hinge_.size(); ++i) {
      const double xi = hinge_[i];
      sum += structure_.example_weight(i) * (slack_ == Slack::kQuadratic ? 0.5 * xi * xi : xi);
    }
    return sum;
  }

  // Ω of the multiple of w that has all margins; hinge_ has each example's factor. (ρ₁|w|₁ grows with
  // the factor only, so that with it this is a bound.)
  double hard_primal(double penalty) const {
    double factor = 1.0;
    for (std::size_t i = 0; i < hinge_.size(); ++i) {
      if (structure_.example_weight(i) > 0.0) factor = std::max(factor, hinge_[i]);
    }
    return factor == kInfinity ? kInfinity : penalty * factor * factor;  // at w = 0 too
  }

  // What the gap is short of in one block: ξ is max F, `mean` Σ α F.
  double block_gap(std::size_t i, double xi, double mean, double M) const {
    switch (slack_) {
      case Slack::kLinear: return C_of(i) * (xi - mean);
      case Slack::kQuadratic: return C_of(i) * (0.5 * xi * xi + 0.5 * M * M - mean);
      default: return C_of(i) * std::max(0.0, M * xi - mean);  // of no more than the kept planes
    }
  }

  // What is not sure of an example's slack.
  struct Doubt {
    double unsure = 0.0;  // by how much the oracle may have missed its best output, at most
    double missed = 0.0;  // by how much it did miss a kept one, beyond rounding
  };

  // The slack of an example at w (slack.hpp): the oracle's or, where a user's oracle is worse than
  // what is kept, that of the kept planes.
  template <class U>
  double slack_of(const Structure<U>& structure, typename Structure<U>::Workspace& ws, std::size_t i, const U* w,
                  Slack slack, Doubt* doubt = nullptr) const {
    const double found = worst_slack(structure, ws, i, w, slack, doubt == nullptr ? nullptr : &doubt->unsure);
    if (structure.exact_oracle()) return found;
    const Known kept = known(structure, ws, i, w, slack);
    if (doubt != nullptr && kept.slack > found + kept.rounding) doubt->missed = kept.slack - found;
    return std::max(found, kept.slack);
  }

  struct Known {
    double slack = 0.0;     // of the best output that the parts can put together, or its factor
    double rounding = 0.0;  // that an oracle may have misjudged it by
  };
  template <class U>
  Known known(const Structure<U>& structure, typename Structure<U>::Workspace& ws, std::size_t i, const U* w, Slack slack) const {
    Known all;
    std::vector<CodeView> views;
    std::vector<double> F;
    for (const Part<T>& part : parts_[i]) {
      part.set.views(views);
      F.resize(part.set.size());
      structure.margins(ws, i, w, part.index, views, {part.set.loss(), part.set.size()}, Structure<U>::Fresh::kNo, F.data());
      double top = 0.0;
      std::size_t best = 0;
      for (std::size_t k = 1; k < F.size(); ++k) {
        const double loss = part.set.loss()[k], margin = loss - F[k];
        // Hard margins: the factor of w that this output needs, if any will do.
        const double need = slack != Slack::kHard ? F[k] : !(F[k] > 1e-12) ? 1.0 : margin > 0.0 ? loss / margin : kInfinity;
        if (need > top) top = need, best = k;
      }
      all.slack += top;
      if (best > 0) all.rounding += slack == Slack::kHard ? 1e-6 * top : structure.rounding(i, views[best], w);
    }
    return all;
  }

  // ---- all of it ----

  // u = u₀ + C Σ α Δf from scratch, and w with it; into weights of any precision.
  template <class U>
  void rebuild(const Structure<U>& structure, Weights<U>& weights, int threads = 1) const {
    weights.clear();
    add_all(structure, weights, threads);
  }
  // The same for weights that nothing was added to yet.
  template <class U>
  void add_all(const Structure<U>& structure, Weights<U>& weights, int threads) const {
    const bool joint = structure.thread_safe() && !weights.mapped() && !weights.lagging() && windows_ == nullptr;
    const std::size_t members = joint ? OwnBlocks<U>::members(n_shares(threads, parts_.size() / kFewShared)) : 1;
    if (members > 1) {
      run_shares(members, [&](std::size_t member) {
        Weights<U> own(weights, member, members);
        add_examples(structure, own);
      });
      return weights.relink();
    }
    weights.set_sums_only(true);
    add_examples(structure, weights);
    weights.set_sums_only(false);
    if (weights.mapped()) structure.map_weights(weights);
  }

  static void drop_idle(Parts<T>& parts) {
    std::erase_if(parts, [](const Part<T>& part) { return part.set.size() == 1; });
  }

  struct Size {
    std::size_t parts = 0, planes = 0, bytes = 0, plane_bytes = 0;
  };
  // A part with its planes.
  static std::size_t plane_bytes(const Part<T>& part) {
    return sizeof(Part<T>) + part.set.bytes() + part.index.capacity() * sizeof(Code);
  }
  Size size() const {
    Size size;
    if (windows_ == nullptr) {
      size = size_of(0, parts_.size());
    } else {
      for (std::size_t k = 0; k < windows_->size(); ++k) {
        const Windows::Sums sums = windows_->sums(k);
        size.parts += sums.parts, size.planes += sums.planes, size.bytes += sums.bytes;
      }
    }
    size.bytes += parts_.capacity() * sizeof(Parts<T>);
    return size;
  }
  Size size_of(std::size_t begin, std::size_t end) const {
    Size size;
    for (std::size_t i = begin; i < end; ++i) {
      const Parts<T>& parts = parts_[i];
      if (i + kAhead < end && !parts_[i + kAhead].empty()) prefetch_range(parts_[i + kAhead].data(), sizeof(Part<T>));
      size.parts += parts.size();
      size.bytes += parts.capacity() * sizeof(Part<T>);
      for (const Part<T>& part : parts) {
        size.planes += part.set.size() - 1;
        size.bytes += part.set.bytes() + part.index.capacity() * sizeof(Code);
        size.plane_bytes += plane_bytes(part);
      }
    }
    return size;
  }

  // Examples that loops over all of them look ahead: parts lie anywhere in memory.
  static constexpr std::size_t kAhead = 16;

 private:
  // Examples for which another thread pays when u is made anew.
  static constexpr std::size_t kFewShared = 500;

  template <class U>
  void add_examples(const Structure<U>& structure, Weights<U>& weights) const {
    auto ws = structure.workspace();
    std::vector<CodeView> views;
    std::vector<double> coef;
    for_windows(windows_, parts_.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        if (i + kAhead < end && !parts_[i + kAhead].empty()) prefetch_range(parts_[i + kAhead].data(), sizeof(Part<T>));
        for (const Part<T>& part : parts_[i]) {
          part.set.views(views);
          coef.assign(part.set.alpha(), part.set.alpha() + part.set.size());
          coef[0] = 0.0;  // the truth has no features, and maybe a mass without end
          for (double& c : coef) c *= C_of(i);
          structure.accumulate(*ws, i, part.index, views, coef.data(), weights);
        }
      }
    });
  }

  template <class Of>
  double over_windows(Of&& of) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < windows_->size(); ++k) sum += of(windows_->sums(k));
    return sum;
  }

  const Structure<T>& structure_;
  double C_;
  Slack slack_;
  bool factored_;
  std::vector<Parts<T>> parts_;
  double loss_ = 0.0, price_ = 0.0;
  bool unbounded_ = false;
  std::vector<double> hinge_, gaps_;
  Windows* windows_ = nullptr;
};

}  // namespace mm
