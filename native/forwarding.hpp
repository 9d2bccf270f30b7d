// A structure around another one: every call goes to the inner structure unless a subclass says
// otherwise. Formulations of the margin and kernels are such wrappers; they write only what differs.
//
// The wrapper's workspace may be the inner structure's own (a subclass of it), or hold it as a
// member; `inner()` tells where it is.
#pragma once

#include "structure.hpp"

namespace mm {

template <class T>
class Forwarding : public Structure<T> {
 public:
  using Base = Structure<T>;
  using Workspace = typename Base::Workspace;
  using Fresh = typename Base::Fresh;
  using Grade = typename Base::Grade;

  std::size_t n_examples() const override { return base().n_examples(); }
  std::size_t n_weights() const override { return base().n_weights(); }
  std::unique_ptr<Workspace> workspace() const override { return base().workspace(); }
  double example_weight(std::size_t i) const override { return base().example_weight(i); }
  void require_truth() const override { base().require_truth(); }
  bool exact_oracle() const override { return base().exact_oracle(); }
  double rounding(std::size_t i, CodeView plane, const T* w) const override { return base().rounding(i, plane, w); }
  bool signed_losses() const override { return base().signed_losses(); }
  bool thread_safe() const override { return base().thread_safe(); }
  bool shares_steps() const override { return base().shares_steps(); }
  std::size_t cache_bytes() const override { return base().cache_bytes(); }
  std::size_t cache_bytes(std::size_t begin, std::size_t end) const override { return base().cache_bytes(begin, end); }
  void release(std::size_t begin, std::size_t end, bool all) const override { base().release(begin, end, all); }
  void weights_changed(Workspace& ws) const override { base().weights_changed(inner(ws)); }
  std::size_t row_size() const override { return base().row_size(); }
  void rows_read(std::size_t i, std::vector<std::size_t>& rows) const override { base().rows_read(i, rows); }

  Found oracle(Workspace& ws, std::size_t i, const T* w) const override { return base().oracle(inner(ws), i, w); }
  Grade corner(Workspace& ws, std::size_t i, const T* w, double lambda) const override { return base().corner(inner(ws), i, w, lambda); }
  double corner_work(std::size_t i) const override { return base().corner_work(i); }
  LossRange losses(std::size_t i) const override { return base().losses(i); }
  bool one_error(Workspace& ws, std::size_t i, const T* w, const Merit& merit, Grade& found) const override {
    return base().one_error(inner(ws), i, w, merit, found);
  }
  bool offers_search() const override { return base().offers_search(); }
  typename Base::Outcome undecided(Workspace& ws, std::size_t i, const T* w, const Merit& merit, const Undecided& open,
                                   Grade& found) const override {
    return base().undecided(inner(ws), i, w, merit, open, found);
  }
  typename Base::Outcome greatest(Workspace& ws, std::size_t i, const T* w, const Merit& merit, Grade& found) const override {
    return base().greatest(inner(ws), i, w, merit, found);
  }
  bool offers_grades(bool any) const override { return base().offers_grades(any); }
  bool slow_grades(std::size_t i) const override { return base().slow_grades(i); }
  bool grades(Workspace& ws, std::size_t i, const T* w, bool any, std::vector<Grade>& out) const override {
    return base().grades(inner(ws), i, w, any, out);
  }
  double take_grade(Workspace& ws, std::size_t i, const T* w, std::size_t k) const override {
    return base().take_grade(inner(ws), i, w, k);
  }

  double oracle_work(std::size_t i) const override { return base().oracle_work(i); }
  double gram_work(CodeView added, CodeView kept) const override { return base().gram_work(added, kept); }
  double word_work() const override { return base().word_work(); }
  double update_work(CodeView index) const override { return base().update_work(index); }

  double loss(std::size_t i, CodeView plane) const override { return base().loss(i, plane); }
  void gram(Workspace& ws, std::size_t i, CodeView a, std::span<const CodeView> planes, double* row) const override {
    base().gram(inner(ws), i, a, planes, row);
  }
  bool valid(std::size_t i, CodeView code) const override { return base().valid(i, code); }
  Extent extent(std::size_t i, CodeView plane) const override { return base().extent(i, plane); }
  std::size_t first_piece(CodeView code) const override { return base().first_piece(code); }

  void index(Workspace& ws, std::size_t i, CodeView plane, std::vector<Code>& index) const override {
    base().index(inner(ws), i, plane, index);
  }
  void reindex(Workspace& ws, std::size_t i, std::span<const CodeView> planes, std::vector<Code>& index) const override {
    base().reindex(inner(ws), i, planes, index);
  }
  Found recombine(Workspace& ws, std::size_t i, const T* w, CodeView index) const override {
    return base().recombine(inner(ws), i, w, index);
  }
  void margins(Workspace& ws, std::size_t i, const T* w, CodeView index, std::span<const CodeView> planes,
               std::span<const double> losses, Fresh fresh, double* F) const override {
    base().margins(inner(ws), i, w, index, planes, losses, fresh, F);
  }
  void accumulate(Workspace& ws, std::size_t i, CodeView index, std::span<const CodeView> planes,
                  const double* coef, Weights<T>& weights) const override {
    base().accumulate(inner(ws), i, index, planes, coef, weights);
  }
  void prefetch_part(std::size_t i, CodeView index, const T* w) const override { base().prefetch_part(i, index, w); }
  void prefetch_ends(std::size_t i) const override { base().prefetch_ends(i); }
  void prefetch_example(std::size_t i) const override { base().prefetch_example(i); }
  void prefetch_oracle(std::size_t i, const T* w) const override { base().prefetch_oracle(i, w); }

  bool maps_weights() const override { return base().maps_weights(); }
  void map_weights(Weights<T>& weights) const override { base().map_weights(weights); }

 protected:
  virtual const Base& base() const = 0;
  // The workspace of the inner structure.
  virtual Workspace& inner(Workspace& ws) const { return ws; }
};

}  // namespace mm
