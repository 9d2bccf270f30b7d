// The certificate of an engine's model: primal and dual from scratch, in 8-byte arithmetic.
//
// w is added up anew from the multipliers and given to the engine, narrowed to 4 bytes where its
// weights are. The dual is that of the multipliers. The primal is that of the weights as the engine
// then has them: what is certified is what is returned, and no rounding can hide. (An interior point may
// have left weights with digits that sums of multipliers lose; then the better of the two are kept. Several threads agree
// on weights that are near those of the multipliers; then these are returned.)
#pragma once

#include <array>
#include <optional>

#include "engine.hpp"
#include "parallel.hpp"
#include "problem.hpp"

namespace mm {

template <class T>
class Certifier {
 public:
  using Precision = T;

  Certifier(Engine<T>& engine, const Structure<double>& exact, Problem& problem, int threads)
      : engine_(engine), exact_(exact), problem_(problem), threads_(threads) {}

  double unsure = 0.0;                // by how much an oracle may have missed its best output
  std::optional<std::size_t> missed;  // an example whose oracle did miss a better output that is kept

  // Primal and dual. The engine goes on with the rebuilt weights.
  std::pair<double, double> certify() {
    if (engine_.agreed_weights()) return certify_agreed();
    std::optional<double> primal;
    std::vector<T> own;
    if (engine_.own_weights()) own.assign(engine_.weights().data(), engine_.weights().data() + engine_.weights().size());
    Weights<double> wide = rebuild(primal);
    const double conjugate = conjugate_of(wide);
    const Blocks<T>& blocks = engine_.blocks();
    const double dual = engine_.C() * (blocks.expected_loss() - blocks.expected_price()) - conjugate;
    // The array is used again: the system would have to clear a new one, which is large where labels are many.
    if (!primal) primal = primal_of(engine_.weights().data(), wide.data());
    if (!own.empty()) {
      // Multipliers may not give w to the digits that it had: the better of the two is returned.
      const std::vector<double> slacks = engine_.blocks().slacks();
      const double rebuilt_unsure = unsure;
      const std::optional<std::size_t> rebuilt_missed = missed;
      const double primal_of_own = primal_of(own.data(), wide.data());
      if (primal_of_own < *primal) {
        primal = primal_of_own;
        std::copy(own.begin(), own.end(), engine_.weights_to_change().data());
      } else {
        engine_.set_own_weights(false);
        engine_.blocks().slacks() = slacks;
        unsure = rebuilt_unsure, missed = rebuilt_missed;
      }
    }
    return {*primal, dual};
  }

  // Give the engine the w of its multipliers; nothing of what steps added up stays.
  bool refresh() {
    std::optional<double> primal;
    engine_.set_own_weights(false);
    rebuild(primal);
    return true;
  }

  // The primal of any w under the engine's formulation and regulariser.
  double primal_of(const T* weights) {
    AlignedArray<double> wide(exact_.n_weights());
    return primal_of(weights, wide.data());
  }

  // Of the sum of all shares' u (shares.hpp): Ω of the engine's w, Ω*(u), and what the slacks of the
  // engine's own examples cost at w. The engine goes on with u and w.
  std::array<double, 3> place(const double* sums) {
    double conjugate = 0.0;
    {  // Shares have weights by the hundred million: there is room for one array of 8 bytes at a time.
      Weights<double> exact(exact_.n_weights(), widened_link());
      std::copy(sums, sums + exact.size(), exact.sums());
      exact.relink();
      problem_.copy_weights(exact, engine_.weights_to_change(), threads_);
      conjugate = conjugate_of(exact);
    }
    engine_.set_own_weights(false);
    engine_.recount();
    AlignedArray<double> w(exact_.n_weights());
    widen(engine_.weights().data(), w.data());
    const double penalty = widened_link().penalty(w.data(), w.size(), threads_);
    objective(penalty, w.data());
    return {penalty, conjugate, engine_.blocks().risk()};
  }

  // ---- for rounds between processes (member.hpp), where others have a part in u in some rows ----

  // Own u of the multipliers in shared rows, and Ω*(u) in the others; the engine's w is link(u) there.
  template <class Member>
  typename Member::Exact exact_of(const Member& member) {
    const Weights<double> own = rebuilt();
    problem_.copy_weights(own, engine_.weights_to_change(), threads_);
    engine_.set_own_weights(false);
    return member.exact(own, WidePlace(engine_, exact_));
  }
  // At the engine's w: Ω(w) in rows that others do not read, and what the slacks cost.
  template <class Member>
  std::pair<double, double> look_at(const Member& member) {
    AlignedArray<double> w(exact_.n_weights());
    widen(engine_.weights().data(), w.data());
    const Link link = widened_link();
    const double penalty = member.sum_own(WidePlace(engine_, exact_), [&](std::size_t k) { return link.penalty(k, w[k]); });
    objective(penalty, w.data());
    return {penalty, engine_.blocks().risk()};
  }

  // What rounding does to the primal: the sum over the examples of by how much their costs at the
  // engine's own w, as the engine computes them, differ from those at the w of its multipliers in
  // 8-byte arithmetic. `own` are the engine's slacks. Nothing of the engine's state changes but these.
  double rounding(const std::vector<double>& own) {
    const Blocks<T>& blocks = engine_.blocks();
    double penalty = 0.0, exact = 0.0;
    if (engine_.agreed_weights()) {  // which are not those of the multipliers; what is left is the rounding of margins
      AlignedArray<double> w(exact_.n_weights());
      widen(engine_.weights().data(), w.data());
      penalty = widened_link().penalty(w.data(), w.size(), threads_);
      exact = objective(penalty, w.data());
    } else {
      const Weights<double> w = rebuilt();
      penalty = w.mapped() ? w.penalty() : w.link().penalty(w.data(), w.size(), threads_);
      exact = objective(penalty, w.data());
    }
    if (blocks.slack() == Slack::kHard) {
      engine_.blocks().slacks() = own;
      return std::abs(exact - blocks.objective(penalty));
    }
    const std::vector<double>& slacks = engine_.blocks().slacks();
    const auto cost = [&](double xi) { return blocks.slack() == Slack::kQuadratic ? 0.5 * xi * xi : xi; };
    double sum = 0.0;
    for (std::size_t i = 0; i < own.size(); ++i) sum += exact_.example_weight(i) * std::abs(cost(own[i]) - cost(slacks[i]));
    return engine_.C() * sum;
  }

 private:
  // Weights on which several threads agree are near link(u), and better as a rule: they are the model. Any dual is a bound for
  // their primal.
  std::pair<double, double> certify_agreed() {
    engine_.disband();
    Weights<double> wide = rebuilt();
    const Blocks<T>& blocks = engine_.blocks();
    const double loss = blocks.expected_loss(), price = blocks.expected_price(), dual = engine_.C() * (loss - price) - conjugate_of(wide);
    engine_.set_running(loss, dual, price);
    return {primal_of(engine_.weights().data(), wide.data()), dual};
  }

  // Where a weight is in the layout of 8-byte weights; nowhere: it is padding.
  class WidePlace {
   public:
    WidePlace(const Engine<T>& engine, const Structure<double>& exact)
        : own_(engine.row_size()), wide_(exact.row_size()), same_(own_ == wide_ || engine.n_weights() == exact.n_weights()) {}
    std::size_t operator()(std::size_t j) const {
      if (same_) return j;
      const std::size_t column = j % own_;
      return column < wide_ ? j / own_ * wide_ + column : ~std::size_t{0};
    }

   private:
    std::size_t own_, wide_;
    bool same_;
  };

  // The same, with room for w in 8 bytes.
  double primal_of(const T* weights, double* w) {
    widen(weights, w);
    double penalty = widened_link().penalty(w, exact_.n_weights(), threads_);
    if (const T* fixed = engine_.weights().fixed()) {
      penalty -= sum_each(engine_.weights().size(), threads_, [&](std::size_t j) { return double(weights[j]) * double(fixed[j]); });
    }
    return objective(penalty, w);
  }

  // Ω*(u), where β is at its fixed point.
  double conjugate_of(const Weights<double>& w) const {
    return w.mapped() ? w.conjugate() : w.link().conjugate(w.sums(), w.data(), w.size(), threads_);
  }

  // w of the multipliers, in 8-byte arithmetic.
  Weights<double> rebuilt() {
    // β at its fixed point, whatever its cost-to-move: the w at which Ω*(u) has its gradient.
    Weights<double> w(exact_.n_weights(), widened_link(), 0, exact_.maps_weights());
    if (const T* fixed = engine_.weights().fixed()) {
      AlignedArray<double> wide(w.size());
      widen(fixed, wide.data());
      w.set_fixed(wide.data());
    }
    engine_.blocks().add_all(exact_, w, threads_);
    return w;
  }

  // Give the engine the w of its multipliers and return it in 8 bytes. With a kernel the model are the
  // multipliers: their primal is computed on the way.
  Weights<double> rebuild(std::optional<double>& primal) {
    Weights<double> w = rebuilt();
    if (w.mapped() && w.conjugate() < -1e-9 * (1.0 + engine_.C() * engine_.blocks().expected_loss())) throw IndefiniteKernel();
    if (w.mapped()) primal = objective(w.penalty(), w.data());
    problem_.copy_weights(w, engine_.weights_to_change(), threads_);
    if (engine_.weights().lagging()) engine_.weights_to_change().follow();
    engine_.recount();
    return w;
  }

  // From what the weights cost and the slack of each example at w; notes how unsure the oracle is of
  // them, and an example whose oracle missed a better output that is kept.
  double objective(double penalty, const double* w) {
    Blocks<T>& blocks = engine_.blocks();
    unsure = 0.0;
    missed.reset();
    double most = 0.0;
    std::vector<double> value;
    std::vector<typename Blocks<T>::Doubt> doubts;
    for_windows(blocks.windows(), exact_.n_examples(), [&](std::size_t begin, std::size_t end) {
      const std::size_t n = end - begin, shares = exact_.thread_safe() ? n_shares(threads_, n) : 1;
      value.assign(n, 0.0);
      doubts.assign(n, {});
      const Expecting<double> expecting(exact_, begin, end, threads_);
      run_shares(shares, [&](std::size_t share) {
        auto ws = exact_.workspace();
        for (std::size_t k = n * share / shares; k < n * (share + 1) / shares; ++k) {
          value[k] = blocks.slack_of(exact_, *ws, begin + k, w, blocks.slack(), &doubts[k]);
        }
      });
      for (std::size_t k = 0; k < n; ++k) {
        unsure = std::max(unsure, doubts[k].unsure);
        const double short_by = exact_.example_weight(begin + k) * doubts[k].missed;
        if (short_by > most) most = short_by, missed = begin + k;
      }
      std::copy(value.begin(), value.end(), blocks.slacks().begin() + std::ptrdiff_t(begin));
    });
    return blocks.objective(penalty);
  }

  void widen(const T* from, double* to) {
    if constexpr (sizeof(T) == 4) {
      problem_.widen(from, to, threads_);
    } else {
      std::copy(from, from + engine_.weights().size(), to);
    }
  }

  // The link for 8-byte weights, whose layout may be padded differently.
  Link widened_link() {
    Link link = engine_.weights().link();
    link.decay = 0.0;
    if constexpr (sizeof(T) == 4) {
      link.for_fields([&](LinkField& field) {
        if (!field.each) return;
        const std::vector<float> narrow(field.each->begin(), field.each->end());
        std::vector<double> wide(exact_.n_weights());
        problem_.widen(narrow.data(), wide.data());
        field.each = std::make_shared<const std::vector<double>>(std::move(wide));
      });
    }
    return link;
  }

  Engine<T>& engine_;
  const Structure<double>& exact_;
  Problem& problem_;
  int threads_;
};

}  // namespace mm
