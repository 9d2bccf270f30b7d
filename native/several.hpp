// Several structures as one: the examples of the first, then those of the second, and so on, over the same
// weights. A structure that has fewer weights than another reads the first of them.
//
// The labelled examples, the unlabelled ones and Γ of a transductive problem are three such structures. Each
// keeps its own planes, workspaces and oracles; parts of outputs (extents) are not used, since a code alone
// does not say whose it is.
#pragma once

#include "structure.hpp"

namespace mm {

template <class T>
class Several final : public Structure<T> {
 public:
  using Base = Structure<T>;
  using Workspace = typename Base::Workspace;
  using Fresh = typename Base::Fresh;

  explicit Several(std::vector<const Base*> members) : members_(std::move(members)) {
    first_.push_back(0);
    for (const Base* member : members_) {
      first_.push_back(first_.back() + member->n_examples());
      n_weights_ = std::max(n_weights_, member->n_weights());
    }
  }

  struct Scratch final : Workspace {
    std::vector<std::unique_ptr<Workspace>> inner;
  };
  std::unique_ptr<Workspace> workspace() const override {
    auto ws = std::make_unique<Scratch>();
    for (const Base* member : members_) ws->inner.push_back(member->workspace());
    return ws;
  }

  std::size_t n_examples() const override { return first_.back(); }
  std::size_t n_weights() const override { return n_weights_; }
  std::size_t row_size() const override { return members_[0]->row_size(); }
  void rows_read(std::size_t i, std::vector<std::size_t>& rows) const override {
    const Member m = of(i);
    m.structure.rows_read(m.i, rows);
  }
  double example_weight(std::size_t i) const override {
    const Member m = of(i);
    return m.structure.example_weight(m.i);
  }
  void require_truth() const override {
    for (const Base* member : members_) member->require_truth();
  }
  bool signed_losses() const override { return any([](const Base& s) { return s.signed_losses(); }); }
  bool exact_oracle() const override { return !any([](const Base& s) { return !s.exact_oracle(); }); }
  bool thread_safe() const override { return !any([](const Base& s) { return !s.thread_safe(); }); }
  std::size_t cache_bytes() const override {
    std::size_t sum = 0;
    for (const Base* member : members_) sum += member->cache_bytes();
    return sum;
  }
  void weights_changed(Workspace& ws) const override {
    for (std::size_t k = 0; k < members_.size(); ++k) members_[k]->weights_changed(*static_cast<Scratch&>(ws).inner[k]);
  }
  double rounding(std::size_t i, CodeView plane, const T* w) const override {
    const Member m = of(i);
    return m.structure.rounding(m.i, plane, w);
  }

  Found oracle(Workspace& ws, std::size_t i, const T* w) const override {
    const Member m = of(i);
    Workspace& in = inner(ws, m);
    in.same = false;
    in.more_work = 0.0;
    const Found found = m.structure.oracle(in, m.i, w);
    ws.more_work = in.more_work;
    ws.code.assign(in.code.begin(), in.code.end());
    return found;
  }
  double oracle_work(std::size_t i) const override {
    const Member m = of(i);
    return m.structure.oracle_work(m.i);
  }
  double gram_work(CodeView added, CodeView kept) const override { return members_.back()->gram_work(added, kept); }

  double loss(std::size_t i, CodeView plane) const override {
    const Member m = of(i);
    return m.structure.loss(m.i, plane);
  }
  void gram(Workspace& ws, std::size_t i, CodeView a, std::span<const CodeView> planes, double* row) const override {
    const Member m = of(i);
    m.structure.gram(inner(ws, m), m.i, a, planes, row);
  }
  bool valid(std::size_t i, CodeView code) const override {
    const Member m = of(i);
    return m.structure.valid(m.i, code);
  }
  void index(Workspace& ws, std::size_t i, CodeView plane, std::vector<Code>& index) const override {
    const Member m = of(i);
    m.structure.index(inner(ws, m), m.i, plane, index);
  }
  void reindex(Workspace& ws, std::size_t i, std::span<const CodeView> planes, std::vector<Code>& index) const override {
    const Member m = of(i);
    m.structure.reindex(inner(ws, m), m.i, planes, index);
  }
  Found recombine(Workspace& ws, std::size_t i, const T* w, CodeView index) const override {
    const Member m = of(i);
    Workspace& in = inner(ws, m);
    const Found found = m.structure.recombine(in, m.i, w, index);
    ws.code.assign(in.code.begin(), in.code.end());
    return found;
  }
  void margins(Workspace& ws, std::size_t i, const T* w, CodeView index, std::span<const CodeView> planes,
               std::span<const double> losses, Fresh fresh, double* F) const override {
    const Member m = of(i);
    m.structure.margins(inner(ws, m), m.i, w, index, planes, losses, fresh, F);
  }
  void accumulate(Workspace& ws, std::size_t i, CodeView index, std::span<const CodeView> planes, const double* coef,
                  Weights<T>& weights) const override {
    const Member m = of(i);
    m.structure.accumulate(inner(ws, m), m.i, index, planes, coef, weights);
    // What a workspace knows of the weights holds no longer: a step of one changes what others read.
    for (std::size_t k = 0; k < members_.size(); ++k) {
      if (k != m.number) members_[k]->weights_changed(*static_cast<Scratch&>(ws).inner[k]);
    }
  }
  double update_work(CodeView index) const override { return members_.back()->update_work(index); }
  void prefetch_part(std::size_t i, CodeView index, const T* w) const override {
    const Member m = of(i);
    m.structure.prefetch_part(m.i, index, w);
  }

 private:
  struct Member {
    const Base& structure;
    std::size_t number, i;
  };
  Member of(std::size_t i) const {
    const std::size_t k = std::size_t(std::upper_bound(first_.begin(), first_.end(), i) - first_.begin()) - 1;
    return {*members_[k], k, i - first_[k]};
  }
  static Workspace& inner(Workspace& base, const Member& m) {
    Workspace& in = *static_cast<Scratch&>(base).inner[m.number];
    in.loss_scale = base.loss_scale;
    return in;
  }
  template <class Ask>
  bool any(Ask&& ask) const {
    return std::any_of(members_.begin(), members_.end(), [&](const Base* member) { return ask(*member); });
  }

  std::vector<const Base*> members_;
  std::vector<std::size_t> first_;
  std::size_t n_weights_ = 0;
};

}  // namespace mm
