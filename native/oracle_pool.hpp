// An oracle that is asked in other processes: a structure around another one, and what it needs of a pool.
//
// A loop that is about to call the oracle of many examples says so (Expecting, below). The pool is then told
// the examples and the w, and hands out answers when the oracle is asked for them; for an example of which it
// has none, the structure inside is asked here and now. Both find the same, so that a result does not depend
// on where an answer came from.
//
// In a loop that moves w between two examples the answers are those under the w of the beginning of a batch of
// examples. They are valid planes all the same; what they are worth is computed under the present w.
#pragma once

#include <chrono>
#include <numeric>

#include "forwarding.hpp"

namespace mm {

// Where else than here the oracle can be asked.
class OraclePool {
 public:
  struct Answer {
    Found found;
    double more_work = 0.0;
    std::vector<Code> code;
  };

  virtual ~OraclePool() = default;
  virtual bool open() const = 0;
  // The oracle will be asked for these examples, in this order, all of them under w, which stays as it is until end().
  virtual void begin(std::span<const std::uint32_t> examples, std::span<const double> w, const std::string& slack, const std::string& rescale) = 0;
  // The answer for an example; false: ask here.
  virtual bool take(std::size_t i, Answer& answer) = 0;
  // So long took an answer that was found here.
  virtual void took(double seconds) = 0;
  virtual void end() noexcept = 0;
};

class PooledOracle final : public Forwarding<double> {
 public:
  PooledOracle(const Structure<double>& base, OraclePool& pool, std::string slack, std::string rescale)
      : base_(base), pool_(pool), slack_(std::move(slack)), rescale_(std::move(rescale)) {}

  bool asks_elsewhere() const override { return pool_.open(); }

  // `batch` 0: w does not change.
  void expect(std::vector<std::uint32_t> order, std::size_t batch) const override {
    order_ = std::move(order);
    batch_ = batch == 0 ? order_.size() : batch;
    moves_ = batch > 0;
    at_ = end_ = 0;
  }
  void expect_no_more() const noexcept override {
    if (end_ > 0) pool_.end();
    order_.clear();
    at_ = end_ = 0;
  }

  Found oracle(Workspace& ws, std::size_t i, const double* w) const override {
    if (ws.loss_scale != 1.0 || !next(ws, i, w)) return base_.oracle(ws, i, w);
    const double* const at = moves_ ? frozen_.data() : w;
    Found found;
    if (pool_.take(i, answer_)) {
      found = answer_.found;
      if (!found.truth && !base_.valid(i, answer_.code)) throw BadInput("another process sent a plane that is none, for example " + std::to_string(i));
      ws.code = answer_.code;
      ws.more_work = answer_.more_work;
    } else {
      const auto begin = std::chrono::steady_clock::now();
      found = base_.oracle(ws, i, at);
      pool_.took(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return moves_ && !found.truth ? under(ws, i, w) : found;
  }

 protected:
  const Structure<double>& base() const override { return base_; }

 private:
  // Is this example the next one of those that are expected (some may be left out)? At the first of a batch
  // the pool is told.
  bool next(Workspace& ws, std::size_t i, const double* w) const {
    std::size_t at = at_;
    while (at < order_.size() && order_[at] != i) ++at;
    if (at == order_.size()) return false;
    at_ = at + 1;
    if (at < end_) return true;
    const std::size_t begin = at;
    if (end_ > 0) pool_.end();
    end_ = std::min(begin + batch_, order_.size());
    if (moves_) {
      frozen_.assign(w, w + base_.n_weights());
      base_.weights_changed(inner(ws));
    }
    pool_.begin(std::span(order_).subspan(begin, end_ - begin), {moves_ ? frozen_.data() : w, base_.n_weights()}, slack_, rescale_);
    return true;
  }

  // The output in the workspace under another w than that for which it was found.
  Found under(Workspace& ws, std::size_t i, const double* w) const {
    const CodeView code(ws.code);
    const double loss = base_.loss(i, code);
    double F = 0.0;
    index_.clear();
    base_.index(inner(ws), i, code, index_);
    base_.margins(inner(ws), i, w, index_, {&code, 1}, {&loss, 1}, Fresh::kNo, &F);
    Found found;
    found.truth = !(F > 0.0);  // not violated any more
    if (found.truth) {
      ws.code.clear();
    } else {
      found.F = F;
    }
    return found;
  }

  const Structure<double>& base_;
  OraclePool& pool_;
  std::string slack_, rescale_;  // the formulation, which the structure inside already is
  // Engines that have such a structure use it from one thread (thread_safe() is false) and one at a time.
  mutable std::vector<std::uint32_t> order_;
  mutable std::size_t batch_ = 0, at_ = 0, end_ = 0;  // end_: of the batch that the pool has
  mutable bool moves_ = false;
  mutable std::vector<double> frozen_;  // w at the beginning of the batch, where it moves
  mutable std::vector<Code> index_;
  mutable OraclePool::Answer answer_;
};

// While it lives, the oracle is about to be asked for these examples in this order.
template <class T>
class Expecting {
 public:
  // All under one w.
  Expecting(const Structure<T>& structure, std::size_t begin, std::size_t end, int threads) : structure_(structure) {
    if (threads < 2 || !structure.asks_elsewhere()) return;
    std::vector<std::uint32_t> order(end - begin);
    std::iota(order.begin(), order.end(), std::uint32_t(begin));
    structure.expect(std::move(order), 0);
    told_ = true;
  }
  // So many at a time under one w; examples without a weight are not asked for. 0: none.
  Expecting(const Structure<T>& structure, std::span<const std::uint32_t> order, std::size_t batch) : structure_(structure) {
    if (batch == 0 || !structure.asks_elsewhere()) return;
    std::vector<std::uint32_t> asked;
    for (const std::uint32_t i : order) {
      if (structure.example_weight(i) > 0.0) asked.push_back(i);
    }
    structure.expect(std::move(asked), batch);
    told_ = true;
  }
  Expecting(const Expecting&) = delete;
  Expecting& operator=(const Expecting&) = delete;
  ~Expecting() {
    if (told_) structure_.expect_no_more();
  }

 private:
  const Structure<T>& structure_;
  bool told_ = false;
};

}  // namespace mm
