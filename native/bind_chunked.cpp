// Python bindings of problems that grow (chunked.hpp).
#include "bindings.hpp"
#include "chunked.hpp"
#include "data_hash.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

class ChunkedProblem final : public Problem {
 public:
  explicit ChunkedProblem(nb::object first) : single_(chunks_), double_(chunks_) { append(std::move(first)); }

  std::size_t n_examples() const override { return chunks_.n_examples(); }
  std::uint64_t data_hash() const override {
    DataHash hash(chunks_.n_examples());
    for (std::size_t k = 0; k < chunks_.n_chunks(); ++k) {
      const std::uint64_t own = chunks_.chunk(k).problem->data_hash();
      if (own == 0) return 0;
      hash.mix(&own, sizeof own);
    }
    return hash.value();
  }
  bool slow_oracle() const override { return first().slow_oracle(); }
  bool exact_oracle() const override { return first().exact_oracle(); }
  bool offers_single() const override { return first().offers_single(); }
  const Structure<float>* single_precision() override { return offers_single() ? &single_ : nullptr; }
  const Structure<double>* double_precision() override { return &double_; }

  void append(nb::object object) {
    Problem& problem = checked(object);
    chunks_.append(problem);
    owners_.push_back(std::move(object));
  }
  void merge(std::size_t count, nb::object object) {
    require(count >= 1 && count <= chunks_.n_chunks(), "there are not so many chunks to be merged");
    Problem& problem = checked(object);
    require(problem.n_examples() == chunks_.tail(count), "the merged chunk must have the examples of those that it replaces");
    chunks_.merge(count, problem);
    owners_.resize(owners_.size() - count);
    owners_.push_back(std::move(object));
  }
  std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> out(chunks_.n_chunks());
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = chunks_.chunk(k).problem->n_examples();
    return out;
  }

 private:
  const Problem& first() const { return *chunks_.chunk(0).problem; }

  // A chunk of the kind and layout of the others.
  Problem& checked(const nb::object& object) {
    Problem& problem = nb::cast<Problem&>(object);
    require(!problem.has_kernel(), "examples with a kernel cannot be in chunks: each token is a weight of its own");
    require(dynamic_cast<ChunkedProblem*>(&problem) == nullptr, "a chunk cannot be in chunks itself");
    if (chunks_.n_chunks() == 0) return problem;
    require(typeid(problem) == typeid(first()), "all chunks must be of one kind");
    const auto weights = [](Problem& of) {
      return std::pair{of.double_precision()->n_weights(), of.double_precision()->row_size()};
    };
    require(weights(problem) == weights(*chunks_.chunk(0).problem), "all chunks must have the same weights");
    return problem;
  }

  ChunkList chunks_;
  std::vector<nb::object> owners_;
  Chunked<float> single_;
  Chunked<double> double_;
};

}  // namespace

void bind_chunked(nb::module_& m) {
  nb::class_<ChunkedProblem, Problem>(m, "ChunkedProblem", "A problem whose examples come in chunks, and may become more.")
      .def(nb::init<nb::object>(), "first"_a)
      .def("append", &ChunkedProblem::append, "problem"_a, "Add the examples of a problem behind those that there are.")
      .def("merge", &ChunkedProblem::merge, "count"_a, "problem"_a, "Replace the last chunks by one with the same examples.")
      .def_prop_ro("sizes", &ChunkedProblem::sizes, "Number of examples of each chunk.");
}

}  // namespace mm
