// A problem that grows: examples in chunks, each a problem of its own, that are one problem to the engine.
//
// The examples of the first chunk come first, then those of the second, and so on. Every call about example i
// goes to the chunk that has it. All chunks are of one kind and have the same layout of the weights; whoever
// needs another layout (more labels, more features than there is room for) makes a new problem.
//
// New examples are a new chunk at the end. Chunks at the end may be replaced by one that has the same
// examples (merge): by merging those of about the same size, as a log-structured merge tree does, there are
// O(log n) chunks of n examples, and an example is copied O(log n) times. Planes are not touched by that: their
// codes and indices count places within an example.
//
// A workspace has one of each chunk, made when it is first asked for. What structures derive from w and keep
// there must be forgotten when w moves. A step on an example of one chunk tells that chunk alone; the others are
// told when they are next asked (`version`).
#pragma once

#include <memory>
#include <vector>

#include "problem.hpp"

namespace mm {

// The chunks, whatever the precision.
class ChunkList {
 public:
  struct Chunk {
    Problem* problem;
    const Structure<float>* single;   // nullptr where it is not offered
    const Structure<double>* precise;
    std::size_t begin;                // its first example
    std::uint64_t serial;             // no two chunks ever have the same

    template <class T>
    const Structure<T>& structure() const {
      if constexpr (sizeof(T) == 4) {
        return *single;
      } else {
        return *precise;
      }
    }
  };

  std::size_t n_examples() const { return chunk_of_.size(); }
  std::size_t n_chunks() const { return chunks_.size(); }
  const Chunk& chunk(std::size_t k) const { return chunks_[k]; }
  // The chunk of an example.
  std::size_t of(std::size_t i) const { return chunk_of_[i]; }

  void append(Problem& problem) {
    chunks_.push_back({&problem, problem.single_precision(), problem.double_precision(), n_examples(), ++serial_});
    chunk_of_.resize(n_examples() + problem.n_examples(), std::uint32_t(chunks_.size() - 1));
  }
  // Examples in the last `count` chunks.
  std::size_t tail(std::size_t count) const { return n_examples() - chunks_[chunks_.size() - count].begin; }
  void merge(std::size_t count, Problem& problem) {
    const std::size_t begin = chunks_[chunks_.size() - count].begin;
    chunks_.resize(chunks_.size() - count);
    chunk_of_.resize(begin);
    append(problem);
  }

 private:
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> chunk_of_;
  std::uint64_t serial_ = 0;
};

template <class T>
class Chunked final : public Structure<T> {
 public:
  using Base = Structure<T>;
  using Workspace = typename Base::Workspace;
  using Fresh = typename Base::Fresh;
  using Grade = typename Base::Grade;
  using Outcome = typename Base::Outcome;

  explicit Chunked(const ChunkList& chunks) : chunks_(chunks) {}

  struct Scratch final : Workspace {
    struct Own {
      std::uint64_t serial = 0, version = 0;
      std::unique_ptr<Workspace> ws;
    };
    std::vector<Own> own;       // by chunk
    std::uint64_t version = 0;  // of w: how often it moved behind the back of some chunk
  };

  std::size_t n_examples() const override { return chunks_.n_examples(); }
  std::size_t n_weights() const override { return first().n_weights(); }
  std::unique_ptr<Workspace> workspace() const override { return std::make_unique<Scratch>(); }
  double example_weight(std::size_t i) const override { return at(i).example_weight(local(i)); }
  void require_truth() const override {
    for_all([](const Base& chunk) { chunk.require_truth(); });
  }
  bool signed_losses() const override {
    bool any = false;
    for_all([&](const Base& chunk) { any = any || chunk.signed_losses(); });
    return any;
  }
  bool thread_safe() const override { return first().thread_safe(); }
  std::size_t cache_bytes() const override {
    std::size_t sum = 0;
    for_all([&](const Base& chunk) { sum += chunk.cache_bytes(); });
    return sum;
  }
  void weights_changed(Workspace& ws) const override { ++static_cast<Scratch&>(ws).version; }
  std::size_t row_size() const override { return first().row_size(); }
  void rows_read(std::size_t i, std::vector<std::size_t>& rows) const override { at(i).rows_read(local(i), rows); }
  bool exact_oracle() const override { return first().exact_oracle(); }
  double rounding(std::size_t i, CodeView plane, const T* w) const override { return at(i).rounding(local(i), plane, w); }

  Found oracle(Workspace& ws, std::size_t i, const T* w) const override {
    return asked(ws, i, [&](Workspace& own) { return at(i).oracle(own, local(i), w); });
  }
  Grade corner(Workspace& ws, std::size_t i, const T* w, double lambda) const override {
    return asked(ws, i, [&](Workspace& own) { return at(i).corner(own, local(i), w, lambda); });
  }
  double corner_work(std::size_t i) const override { return at(i).corner_work(local(i)); }
  LossRange losses(std::size_t i) const override { return at(i).losses(local(i)); }
  bool one_error(Workspace& ws, std::size_t i, const T* w, const Merit& merit, Grade& found) const override {
    return asked(ws, i, [&](Workspace& own) { return at(i).one_error(own, local(i), w, merit, found); });
  }
  bool offers_search() const override { return first().offers_search(); }
  Outcome undecided(Workspace& ws, std::size_t i, const T* w, const Merit& merit, const Undecided& open, Grade& found) const override {
    return asked(ws, i, [&](Workspace& own) { return at(i).undecided(own, local(i), w, merit, open, found); });
  }
  Outcome greatest(Workspace& ws, std::size_t i, const T* w, const Merit& merit, Grade& found) const override {
    return asked(ws, i, [&](Workspace& own) { return at(i).greatest(own, local(i), w, merit, found); });
  }
  bool offers_grades(bool any) const override { return first().offers_grades(any); }
  bool slow_grades(std::size_t i) const override { return at(i).slow_grades(local(i)); }
  bool grades(Workspace& ws, std::size_t i, const T* w, bool any, std::vector<Grade>& out) const override {
    return asked(ws, i, [&](Workspace& own) { return at(i).grades(own, local(i), w, any, out); });
  }
  double take_grade(Workspace& ws, std::size_t i, const T* w, std::size_t k) const override {
    return asked(ws, i, [&](Workspace& own) { return at(i).take_grade(own, local(i), w, k); });
  }

  double oracle_work(std::size_t i) const override { return at(i).oracle_work(local(i)); }
  double gram_work(CodeView added, CodeView kept) const override { return first().gram_work(added, kept); }
  double word_work() const override { return first().word_work(); }
  double update_work(CodeView index) const override { return first().update_work(index); }

  double loss(std::size_t i, CodeView plane) const override { return at(i).loss(local(i), plane); }
  void gram(Workspace& ws, std::size_t i, CodeView a, std::span<const CodeView> planes, double* row) const override {
    at(i).gram(enter(ws, i), local(i), a, planes, row);
  }
  bool valid(std::size_t i, CodeView code) const override { return at(i).valid(local(i), code); }
  Extent extent(std::size_t i, CodeView plane) const override { return at(i).extent(local(i), plane); }
  std::size_t first_piece(CodeView code) const override { return first().first_piece(code); }

  void index(Workspace& ws, std::size_t i, CodeView plane, std::vector<Code>& index) const override {
    at(i).index(enter(ws, i), local(i), plane, index);
  }
  void reindex(Workspace& ws, std::size_t i, std::span<const CodeView> planes, std::vector<Code>& index) const override {
    at(i).reindex(enter(ws, i), local(i), planes, index);
  }
  Found recombine(Workspace& ws, std::size_t i, const T* w, CodeView index) const override {
    return asked(ws, i, [&](Workspace& own) { return at(i).recombine(own, local(i), w, index); });
  }
  void margins(Workspace& ws, std::size_t i, const T* w, CodeView index, std::span<const CodeView> planes,
               std::span<const double> losses, Fresh fresh, double* F) const override {
    at(i).margins(enter(ws, i), local(i), w, index, planes, losses, fresh, F);
  }
  void accumulate(Workspace& base, std::size_t i, CodeView index, std::span<const CodeView> planes, const double* coef,
                  Weights<T>& weights) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    at(i).accumulate(enter(ws, i), local(i), index, planes, coef, weights);
    ws.own[chunks_.of(i)].version = ++ws.version;  // the chunk itself knows
  }

  void prefetch_part(std::size_t i, CodeView index, const T* w) const override { at(i).prefetch_part(local(i), index, w); }
  void prefetch_ends(std::size_t i) const override { at(i).prefetch_ends(local(i)); }
  void prefetch_example(std::size_t i) const override { at(i).prefetch_example(local(i)); }
  void prefetch_oracle(std::size_t i, const T* w) const override { at(i).prefetch_oracle(local(i), w); }

 private:
  const Base& chunk(std::size_t k) const { return chunks_.chunk(k).template structure<T>(); }
  const Base& first() const { return chunk(0); }
  const Base& at(std::size_t i) const { return chunk(chunks_.of(i)); }
  std::size_t local(std::size_t i) const { return i - chunks_.chunk(chunks_.of(i)).begin; }

  template <class F>
  void for_all(F&& f) const {
    for (std::size_t k = 0; k < chunks_.n_chunks(); ++k) f(chunk(k));
  }

  // The workspace of the chunk of example i, told what it must know.
  Workspace& enter(Workspace& base, std::size_t i) const {
    Scratch& ws = static_cast<Scratch&>(base);
    const std::size_t k = chunks_.of(i);
    const ChunkList::Chunk& its = chunks_.chunk(k);
    if (ws.own.size() != chunks_.n_chunks()) ws.own.resize(chunks_.n_chunks());
    typename Scratch::Own& own = ws.own[k];
    if (own.serial != its.serial) own = {its.serial, ws.version, chunk(k).workspace()};
    if (own.version != ws.version) {
      chunk(k).weights_changed(*own.ws);
      own.version = ws.version;
    }
    own.ws->loss_scale = ws.loss_scale;
    own.ws->same = ws.same;
    return *own.ws;
  }

  // ... and what it found, handed on.
  template <class Ask>
  auto asked(Workspace& ws, std::size_t i, Ask&& ask) const {
    Workspace& own = enter(ws, i);
    own.more_work = ws.more_work;
    const auto answer = ask(own);
    ws.code.assign(own.code.begin(), own.code.end());
    ws.more_work = own.more_work;
    return answer;
  }

  const ChunkList& chunks_;
};

}  // namespace mm
