// A w without multipliers: what primal and cutting-plane solvers ask of a structure.
//
//   hinge             Σ_i max_y F_i(y) at the present w
//   sweep             every example's most violated output at one w, added up to one plane
//   find, shares      the same, with one sparse plane for each of some groups of examples
//   remember, recall  the same from the outputs that were found lately, without the oracle
//   cuts              the same outputs as single planes
//   subgradient_pass  a stochastic subgradient step on each example, with decay, averaging and the
//                     projection onto an L1 ball
#pragma once

#include <atomic>
#include <cmath>

#include "chunks.hpp"
#include "example_loop.hpp"
#include "l1_ball.hpp"
#include "output_cache.hpp"
#include "weights.hpp"

namespace mm {

struct SweepResult {
  double unsure = 0.0;  // by how much an oracle may have missed its best output, at most
  double loss = 0.0;    // Σ of the weights of examples times l_i(ŷ_i)
  double hinge = 0.0;   // Σ of max F, in the same weights
  std::int64_t oracle_calls = 0, violated = 0;
  bool interrupted = false;

  void add(const SweepResult& other) {
    loss += other.loss;
    hinge += other.hinge;
    oracle_calls += other.oracle_calls;
    violated += other.violated;
    interrupted = interrupted || other.interrupted;
    unsure = std::max(unsure, other.unsure);
  }
};

struct SubgradientOptions {
  double lambda = 0.0;      // w decays by 1 - ηλ in each step
  double eta = 1.0;         // η of step t is eta / (1 + eta λ t) with decay, eta / √(1 + t / n) without
  double radius = 0.0;      // of the L1 ball; 0: none
  bool each = false;        // project after every example, not only at the end of the pass
  bool average = false;     // add the iterates up, the t-th with weight t
};

template <class T>
class Primal {
 public:
  explicit Primal(const Structure<T>& structure)
      : loop(structure), cache(structure), structure_(structure), w_(structure.n_weights()), plane_(structure.n_weights()),
        value_(structure.n_examples()), codes_(structure.n_examples()) {}

  struct Lane {
    explicit Lane(const Structure<T>& structure) : ws(structure.workspace()) {}
    std::unique_ptr<typename Structure<T>::Workspace> ws;
    std::unique_ptr<Weights<T>> delta;  // a vector that knows where it is written, once it was needed
    std::vector<Code> index;
  };
  ExampleLoop<T, Lane> loop;
  OutputCache<T> cache;

  T* weights() { return w_.data(); }
  std::size_t size() const { return w_.size(); }
  // Of the last sweep or pass: Σ_i weight_i Δf_i(ŷ_i).
  T* plane() { return plane_.data(); }

  // Of the last look at all examples: max F of each.
  const std::vector<double>& slacks() const { return value_; }

  // The weights were written from outside.
  void written() {
    support_known_ = false;
    scale_ = 1.0;
  }

  SweepResult hinge(int threads) { return look(threads, false); }

  // The same over some examples.
  SweepResult hinge_of(std::span<const std::uint32_t> order, int threads) {
    std::vector<double> value(order.size());
    SweepResult result = loop.template run_some<SweepResult>(threads, order, [&](Lane& lane, std::size_t k, SweepResult& share) {
      value[k] = std::max(structure_.oracle(*lane.ws, order[k], w_.data()).F, 0.0);
      ++share.oracle_calls;
    });
    for (std::size_t k = 0; k < order.size(); ++k) result.hinge += structure_.example_weight(order[k]) * value[k];
    return result;
  }

  SweepResult sweep(int threads) {
    SweepResult result = look(threads, true);
    plane_.clear();
    if (result.interrupted) return result;
    for (std::size_t i = 0; i < codes_.size(); ++i) {
      if (codes_[i].empty()) continue;
      const double weight = structure_.example_weight(i);
      result.loss += weight * structure_.loss(i, codes_[i]);
      accumulate(loop.first, i, codes_[i], weight, plane_);
    }
    return result;
  }

  // The outputs of a sweep, without their plane.
  SweepResult find(int threads) { return look(threads, true); }

  // Put the outputs last found into the cache, which keeps so many for an example.
  void remember(std::size_t limit) {
    for (std::size_t i = 0; i < codes_.size(); ++i) cache.remember(*loop.first.ws, i, codes_[i], limit);
  }
  // find() among the outputs of the cache.
  SweepResult recall(int threads) {
    SweepResult result = loop.template run<SweepResult>(threads, [&](Lane& lane, std::size_t i, std::size_t, SweepResult&) {
      value_[i] = cache.best(*lane.ws, i, w_.data(), codes_[i]);
    });
    add_up(result);
    return result;
  }

  // Σ_i weight_i Δf_i and Σ_i weight_i l_i of the outputs last found, for each of k groups: the
  // examples in contiguous shares. Columns in no order. Threads take group after group, with a vector of all weights each.
  struct Shares {
    std::vector<double> loss;
    std::vector<std::int64_t> indptr{0};
    std::vector<std::uint32_t> indices;
    std::vector<T> values;
  };
  Shares shares(std::size_t k, int threads) {
    struct Group {
      double loss = 0.0;
      std::vector<std::uint32_t> indices;
      std::vector<T> values;
    };
    std::vector<Group> groups(k);
    const std::size_t n = codes_.size(), workers = structure_.thread_safe() ? n_shares(threads, k) : 1;
    loop.enlist(workers);
    for (std::size_t worker = 0; worker < workers; ++worker) make_delta(loop.lane(worker));
    std::atomic<std::size_t> next{0};
    run_shares(workers, [&](std::size_t worker) {
      Lane& lane = loop.lane(worker);
      for (std::size_t g; (g = next.fetch_add(1, std::memory_order_relaxed)) < k;) {
        const std::size_t end = n * (g + 1) / k;
        for (std::size_t i = n * g / k; i < end; ++i) {
          const double weight = structure_.example_weight(i);
          if (codes_[i].empty() || weight == 0.0) continue;
          groups[g].loss += weight * structure_.loss(i, codes_[i]);
          accumulate(lane, i, codes_[i], weight, *lane.delta);
        }
        lane.delta->drain(groups[g].indices, groups[g].values);
      }
    });
    Shares shares;
    for (Group& group : groups) {
      shares.loss.push_back(group.loss);
      shares.indices.insert(shares.indices.end(), group.indices.begin(), group.indices.end());
      shares.values.insert(shares.values.end(), group.values.begin(), group.values.end());
      shares.indptr.push_back(std::int64_t(shares.indices.size()));
      group = {};
    }
    return shares;
  }

  // One row per example whose max F exceeds its entry of `least`, columns ascending.
  struct Cuts {
    std::vector<std::int64_t> example, indptr{0}, indices;
    std::vector<double> loss, F, values;
    SweepResult result;
  };
  Cuts cuts(const double* least, int threads) {
    Cuts cuts;
    cuts.result = look(threads, true);
    if (cuts.result.interrupted) return cuts;
    for (std::size_t i = 0; i < codes_.size(); ++i) {
      if (codes_[i].empty() || !(value_[i] > least[i]) || structure_.example_weight(i) == 0.0) continue;
      difference(i, codes_[i]);
      cuts.example.push_back(std::int64_t(i));
      cuts.loss.push_back(structure_.loss(i, codes_[i]));
      cuts.F.push_back(value_[i]);
      for (const std::size_t j : touched_) {
        cuts.indices.push_back(std::int64_t(j));
        cuts.values.push_back(double(loop.first.delta->data()[j]));
      }
      cuts.indptr.push_back(std::int64_t(cuts.indices.size()));
    }
    return cuts;
  }

  // Minimise λ/2 |w|² + Σ_i weight_i max_y F_i(y) / n, or without λ the latter over an L1 ball. Step
  // t (from `done`, over all passes): the oracle under w, then
  //   w <- (1 - η_t λ) w + η_t weight_i Δf_i(ŷ_i)
  // and, if asked for, the projection. w is kept as scale * v, so that the decay costs nothing; the
  // oracle sees v, and a loss that is as much larger.
  SweepResult subgradient_pass(std::span<const std::uint32_t> order, const SubgradientOptions& options,
                               double done) {
    SweepResult result;
    plane_.clear();
    auto& ws = *loop.first.ws;
    structure_.weights_changed(ws);
    const double n = double(structure_.n_examples());
    const bool decays = options.lambda > 0.0, ball = options.radius > 0.0;
    if (options.average && sums_.size() == 0) sums_.reset(w_.size());
    // A pass depends on w alone, not on how it came about: a resumed run finds the same.
    support_known_ = false;
    random_ = 1;
    if (ball && options.each) find_support();
    // However the pass ends (a user's oracle may raise), w is left as the methods above expect it.
    struct Finish {
      Primal& self;
      double radius;
      ~Finish() {
        self.loop.first.ws->loss_scale = 1.0;
        self.fold();
        if (radius > 0.0) self.project(radius);
      }
    } finish{*this, options.radius};
    for (const std::uint32_t i : order) {
      if (loop.stop(result)) break;
      const double weight = structure_.example_weight(i);
      ws.loss_scale = 1.0 / scale_;
      const Found found = structure_.oracle(ws, i, w_.data());
      ws.loss_scale = 1.0;
      ++result.oracle_calls;
      result.hinge += weight * std::max(found.F, 0.0) * scale_;
      const double eta = decays ? options.eta / (1.0 + options.eta * options.lambda * done) : options.eta / std::sqrt(1.0 + done / n);
      done += 1.0;
      if (decays) decay(1.0 - eta * options.lambda);
      if (!found.truth && weight > 0.0) {
        code_.assign(ws.code.begin(), ws.code.end());
        ++result.violated;
        result.loss += weight * structure_.loss(i, code_);
        difference(i, code_);
        const double step = eta * weight / scale_, lag = step * mass_;
        for (const std::size_t j : touched_) {
          const T d = loop.first.delta->data()[j];
          plane_.data()[j] += T(weight) * d;
          if (support_known_ && listed_[j] == 0) list(j);
          w_.data()[j] += T(step) * d;
          if (options.average) sums_[j] -= T(lag) * d;
        }
        structure_.weights_changed(ws);
        if (ball && options.each) project(options.radius);
      }
      if (options.average) {
        mass_ += done * scale_;
        weight_ += done;
      }
      if (scale_ < 1e-6) fold();
    }
    return result;
  }

  // The average of all iterates so far, the t-th with weight t.
  void average(T* out, int threads) const {
    for_chunks(w_.size(), threads, [&](std::size_t, std::size_t begin, std::size_t end) {
      for (std::size_t j = begin; j < end; ++j) {
        out[j] = weight_ > 0.0 ? T((mass_ * double(w_.data()[j]) + double(sums_[j])) / weight_) : w_.data()[j];
      }
    });
  }

  std::span<const T> sums() const { return {sums_.data(), sums_.size()}; }
  std::pair<double, double> masses() const { return {mass_, weight_}; }
  void set_averages(std::span<const T> sums, double mass, double weight) {
    sums_.reset(sums.size());
    std::copy(sums.begin(), sums.end(), sums_.data());
    mass_ = mass, weight_ = weight;
  }

  // Move w to the nearest point of the L1 ball; θ of the threshold.
  double project(double radius) {
    T* w = w_.data();
    if (!support_known_) find_support();
    sizes_.clear();
    for (const std::size_t j : support_) sizes_.push_back(std::abs(w[j]));
    const double theta = l1_threshold(sizes_, radius, random_);
    if (theta == 0.0) return 0.0;
    std::size_t kept = 0;
    const T cut = T(theta);
    for (const std::size_t j : support_) {
      const T size = std::abs(w[j]);
      w[j] = size > cut ? std::copysign(size - cut, w[j]) : T(0);
      if (w[j] != T(0)) support_[kept++] = j; else listed_[j] = 0;
    }
    support_.resize(kept);
    // θ was rounded to the type of the weights: what is left outside is pulled in.
    double norm = 0.0;
    for (const std::size_t j : support_) norm += std::abs(double(w[j]));
    if (norm > radius) {
      for (const std::size_t j : support_) w[j] *= T(radius / norm);
    }
    structure_.weights_changed(*loop.first.ws);
    return theta;
  }

  std::size_t bytes() const {
    std::size_t total = (w_.size() * (2 + deltas_) + sums_.size()) * sizeof(T) + support_.capacity() * sizeof(std::size_t) + listed_.size();
    for (const auto& code : codes_) total += code.capacity() * sizeof(Code);
    return total + cache.bytes();
  }

 private:
  // The oracle on all examples: their values, and their codes if asked for.
  SweepResult look(int threads, bool keep) {
    SweepResult result = loop.template run<SweepResult>(threads, [&](Lane& lane, std::size_t i, std::size_t, SweepResult& share) {
      const Found found = structure_.oracle(*lane.ws, i, w_.data());
      value_[i] = found.upper();
      share.unsure = std::max(share.unsure, value_[i] - std::max(found.F, 0.0));
      if (keep) {
        codes_[i].clear();
        if (!found.truth) codes_[i].assign(lane.ws->code.begin(), lane.ws->code.end());
      }
      ++share.oracle_calls;
      if (!found.truth) ++share.violated;
    });
    add_up(result);
    return result;
  }
  // In order, whatever the number of threads.
  void add_up(SweepResult& result) const {
    for (std::size_t i = 0; i < value_.size(); ++i) result.hinge += structure_.example_weight(i) * value_[i];
  }

  void accumulate(Lane& lane, std::size_t i, CodeView code, double coef, Weights<T>& into) {
    lane.index.clear();
    structure_.index(*lane.ws, i, code, lane.index);
    structure_.accumulate(*lane.ws, i, lane.index, {&code, 1}, &coef, into);
  }

  // Δf_i of a code: into the calling thread's vector, at the places touched_, ascending.
  void difference(std::size_t i, CodeView code) {
    make_delta(loop.first);
    accumulate(loop.first, i, code, 1.0, *loop.first.delta);
    loop.first.delta->places(touched_);
  }

  // An empty vector for a lane.
  void make_delta(Lane& lane) {
    if (!lane.delta) {
      lane.delta = std::make_unique<Weights<T>>(Weights<T>::recorder(w_.size()));
      ++deltas_;
    }
    lane.delta->wipe();
  }

  void decay(double factor) {
    scale_ *= factor;
    if (factor > 0.0) return;
    // The first step of Pegasos forgets w altogether.
    for (std::size_t j = 0; j < sums_.size(); ++j) sums_[j] += T(mass_) * w_.data()[j];
    mass_ = 0.0;
    w_.clear();
    written();
  }

  void fold() {
    if (scale_ == 1.0) return;
    // Σ c_t a_t v_t with v = w / scale: the sums stay what they are in units of w.
    for (std::size_t j = 0; j < w_.size(); ++j) w_.data()[j] *= T(scale_);
    mass_ /= scale_;
    scale_ = 1.0;
    structure_.weights_changed(*loop.first.ws);
  }

  void find_support() {
    support_.clear();
    listed_.assign(w_.size(), 0);
    for (std::size_t j = 0; j < w_.size(); ++j) {
      if (w_.data()[j] != T(0)) list(j);
    }
    support_known_ = true;
  }

  void list(std::size_t j) {
    support_.push_back(j);
    listed_[j] = 1;
  }

  const Structure<T>& structure_;
  Weights<T> w_, plane_;
  std::size_t deltas_ = 0;  // lanes that have such a vector
  std::vector<double> value_;             // max F of each example
  std::vector<std::vector<Code>> codes_;  // and its output, empty for the truth
  std::vector<Code> code_;
  std::vector<std::size_t> touched_;
  double scale_ = 1.0;
  // Averaging: Σ_t c_t w_t = mass * v + sums, where every update d of v takes mass * d off the sums.
  double mass_ = 0.0, weight_ = 0.0;
  AlignedArray<T> sums_;
  std::vector<std::size_t> support_;  // all places where w is not zero, once; maybe others
  std::vector<std::uint8_t> listed_;  // whether a place is in the support
  bool support_known_ = false;
  std::vector<T> sizes_;
  std::uint64_t random_ = 1;
};

}  // namespace mm
