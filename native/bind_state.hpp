// The state of an engine as arrays of Python: what checkpoints keep, and its checks when it is read back.
#pragma once

#include <memory>

#include "bindings.hpp"
#include "engine.hpp"
#include "engine_state.hpp"

namespace mm {

template <class T>
nb::dict state_of(const std::shared_ptr<Engine<T>>& e) {
  // The planes of windows are asked for one by one.
  auto s = save_state(e->blocks(), 0, e->windows() == nullptr ? e->blocks().n_examples() : 0);
  nb::dict d;
  d["example"] = to_numpy(std::move(s.example));
  d["lo"] = to_numpy(std::move(s.lo));
  d["hi"] = to_numpy(std::move(s.hi));
  d["violation"] = to_numpy(std::move(s.violation));
  d["stiffness"] = to_numpy(std::move(s.stiffness));
  d["n_planes"] = to_numpy(std::move(s.n_planes));
  d["alpha"] = to_numpy(std::move(s.alpha));
  d["loss"] = to_numpy(std::move(s.loss));
  d["gram"] = to_numpy(std::move(s.gram));
  d["code_size"] = to_numpy(std::move(s.code_size));
  d["codes"] = to_numpy(std::move(s.codes));
  d["gaps"] = to_numpy(std::vector<double>(e->blocks().gaps()));
  d["running"] = to_numpy(std::vector<double>{e->running()[0], e->running()[1]});
  if (e->blocks().slack() == Slack::kQuadratic) d["price"] = to_numpy(std::vector<double>{e->running()[2]});
  d["weights"] = to_numpy(std::vector<T>(e->weights().sums(), e->weights().sums() + e->weights().size()));
  // Rounding makes w differ from what its map would give; a run that goes on needs the same bits.
  if (e->weights().mapped()) d["mapped"] = to_numpy(std::vector<T>(e->weights().data(), e->weights().data() + e->weights().size()));
  if (e->own_weights()) d["own"] = to_numpy(std::vector<T>(e->weights().data(), e->weights().data() + e->weights().size()));
  if (e->agreed_weights()) d["agreed"] = to_numpy(std::vector<std::uint8_t>{1});
  if (const T* fixed = e->weights().fixed()) d["fixed"] = to_numpy(std::vector<T>(fixed, fixed + e->weights().size()));
  if (e->average().visits() > 0.0) {
    const Weights<T>* lag = e->average().lag();
    d["lag"] = to_numpy(lag == nullptr ? std::vector<T>() : std::vector<T>(lag->data(), lag->data() + lag->size()));
    d["visits"] = to_numpy(std::vector<double>{e->average().visits()});
  }
  if (e->weights().lagging()) d["beta"] = to_numpy(std::vector<T>(e->weights().beta(), e->weights().beta() + e->weights().size()));
  return d;
}

template <class X>
void take(const nb::dict& d, const char* key, std::vector<X>& out) {
  require(d.contains(key), std::string("the checkpoint has no array \"") + key + "\"");
  Array<X> array;
  require(nb::try_cast(d[key], array, false), std::string("the checkpoint's array \"") + key + "\" has the wrong type");
  out.assign(array.data(), array.data() + array.shape(0));
}

template <class T>
void restore_state(const std::shared_ptr<Engine<T>>& e, const nb::dict& d, const Structure<T>& structure, bool windowed) {
  EngineState<T> s;
  take(d, "example", s.example);
  take(d, "lo", s.lo);
  take(d, "hi", s.hi);
  take(d, "violation", s.violation);
  take(d, "stiffness", s.stiffness);
  take(d, "n_planes", s.n_planes);
  take(d, "alpha", s.alpha);
  take(d, "loss", s.loss);
  take(d, "gram", s.gram);
  take(d, "code_size", s.code_size);
  take(d, "codes", s.codes);
  std::vector<T> weights;
  std::vector<double> running;
  take(d, "weights", weights);
  // Of a share of the examples (shares.hpp) nobody has the running sums: it says None. A file that has no such
  // array is damaged.
  const bool counted = !d.contains("running") || !d["running"].is_none();
  if (counted) take(d, "running", running);
  std::vector<double> gaps;
  take(d, "gaps", gaps);
  require(gaps.size() == e->blocks().n_examples(), "the checkpoint does not fit this problem: it has the gaps of other examples");
  for (const double g : gaps) require(std::isfinite(g), "the checkpoint holds a gap that is not finite");
  require(!counted || running.size() == 2, "the checkpoint's running sums are damaged");
  if (!counted) running.assign(2, 0.0);
  require(std::isfinite(running[0]) && std::isfinite(running[1]), "the checkpoint's running sums are damaged");
  require(weights.size() == e->weights().size(), "the checkpoint does not fit this problem: expected " +
          std::to_string(e->weights().size()) + " weights, found " + std::to_string(weights.size()));
  for (const T w : weights) require(std::isfinite(w), "the checkpoint holds a weight that is not finite");
  std::vector<T> scores;
  if (e->weights().mapped()) {
    take(d, "mapped", scores);
    require(scores.size() == weights.size(), "the checkpoint's scores do not fit its weights");
    for (const T x : scores) require(std::isfinite(x), "the checkpoint holds a score that is not finite");
  }
  std::vector<T> own;
  if (d.contains("own")) {
    require(!e->weights().mapped() && !e->weights().lagging(), "the checkpoint has weights of an interior point, which this problem cannot have");
    take(d, "own", own);
    require(own.size() == weights.size(), "the checkpoint's weights of an interior point do not fit its sums");
    for (const T x : own) require(std::isfinite(x), "the checkpoint holds a weight that is not finite");
  }
  const bool agreed = d.contains("agreed");
  require(!agreed || (!own.empty() && e->blocks().slack() != Slack::kHard), "the checkpoint has weights that several threads agreed on, which this problem cannot have");
  std::vector<T> beta;
  if (e->weights().lagging()) {
    take(d, "beta", beta);
    require(beta.size() == weights.size(), "the checkpoint's beta does not fit its weights");
    for (const T b : beta) require(std::isfinite(b), "the checkpoint holds a beta that is not finite");
  }
  std::vector<T> lag;
  std::vector<double> visits{0.0};
  if (d.contains("visits")) {
    take(d, "lag", lag);
    take(d, "visits", visits);
    require(lag.empty() || lag.size() == weights.size(), "the checkpoint's average does not fit its weights");
    for (const T x : lag) require(std::isfinite(x), "the checkpoint holds an average that is not finite");
    require(visits.size() == 1 && visits[0] >= 1.0 && visits[0] <= 1e15 && visits[0] == std::floor(visits[0]),
            "the checkpoint's average is not of a whole number of visits");
  }
  std::vector<double> stored_price;  // files of earlier versions have none
  if (d.contains("price")) {
    take(d, "price", stored_price);
    require(stored_price.size() == 1 && std::isfinite(stored_price[0]), "the checkpoint's running sums are damaged");
  }
  std::vector<T> fixed;
  if (d.contains("fixed")) {
    take(d, "fixed", fixed);
    require(fixed.size() == weights.size(), "the checkpoint's fixed linear term does not fit its weights");
    for (const T x : fixed) require(std::isfinite(x), "the checkpoint holds a fixed linear term that is not finite");
    require(!e->weights().mapped() && e->blocks().slack() != Slack::kHard, "the checkpoint has a fixed linear term, which this problem cannot have");
  }
  // Those of windows were put in place before.
  auto restored = restore_parts(s, structure, e->blocks().factored(), e->blocks().unconstrained(), 0, windowed ? 0 : e->blocks().n_examples());
  const auto put = [&](std::vector<Parts<T>>& parts, const std::vector<T>& sums, const std::vector<T>& w, const std::vector<T>& b) {
    if (!windowed) std::swap(e->blocks().parts(), parts);
    std::copy(sums.begin(), sums.end(), e->weights_to_change().sums());
    e->weights_to_change().relink();
    std::copy(w.begin(), w.end(), e->weights_to_change().data());
    if (e->weights().lagging()) e->weights_to_change().follow(b.data());
  };
  const auto copy_of = [&](const T* from) { return from == nullptr ? std::vector<T>() : std::vector<T>(from, from + weights.size()); };
  const std::vector<T> old_sums = copy_of(e->weights().sums()), old_beta = copy_of(e->weights().beta());
  const std::vector<T> old_scores = copy_of(e->weights().mapped() || e->own_weights() ? e->weights().data() : nullptr);
  const std::vector<T> old_fixed = copy_of(e->weights().fixed());
  e->weights_to_change().set_fixed(fixed.empty() ? nullptr : fixed.data());
  const bool was_own = e->own_weights(), was_agreed = e->agreed_weights();
  e->set_own_weights(false);
  put(restored, weights, scores, beta);
  if (!own.empty()) {  // where u is w, the sums are these weights too
    e->blocks().rebuild(structure, e->weights_to_change());
    e->weights_to_change().relink();
    e->weights_to_change().take_change();
  }
  if (!counted) running = {e->blocks().expected_loss(), e->dual()};
  // The sums that steps added up, within what rounding may have done to them.
  const double loss = e->blocks().expected_loss(), size = e->C() * (loss + e->blocks().expected_price());
  const bool loss_fits = std::abs(running[0] - loss) <= 1e-6 * (1.0 + std::abs(loss));
  const double price = e->blocks().expected_price();
  const bool price_fits = stored_price.empty() || std::abs(stored_price[0] - price) <= 1e-6 * (1.0 + std::abs(price));
  const bool dual_fits = e->weights().lagging() || std::abs(running[1] - e->dual()) <= 1e-2 * (std::abs(size) + std::abs(e->dual()) + 1e-9);
  if (!loss_fits || !dual_fits || !price_fits) {
    e->weights_to_change().set_fixed(old_fixed.empty() ? nullptr : old_fixed.data());
    put(restored, old_sums, old_scores, old_beta);
    e->set_own_weights(was_own);
    if (was_agreed) e->set_agreed_weights();
    require(loss_fits, "the checkpoint's sum of losses is not that of its multipliers");
    require(price_fits, "the checkpoint's price of the multipliers is not that of its multipliers");
    require(dual_fits, "the checkpoint's dual is not that of its multipliers");
  }
  e->set_running(running[0], running[1], stored_price.empty() ? price : stored_price[0]);
  e->blocks().gaps() = gaps;
  std::copy(own.begin(), own.end(), e->weights_to_change().data());
  e->set_own_weights(!own.empty());
  if (agreed) e->set_agreed_weights();
  e->average().restore(lag, visits[0]);
}

}  // namespace mm
