// Python bindings of the chain: encoded batches, decoding.
#include "nonzeros.hpp"
#include "bind_decoding.hpp"
#include "bind_tokens.hpp"
#include "chain_marginals.hpp"
#include "data_hash.hpp"

namespace mm {

using nb::literals::operator""_a;

ChainProblem::ChainProblem(std::size_t n_labels, std::size_t n_sparse, Array<std::int64_t> offsets,
                           std::optional<Array<std::int64_t>> indptr,
                           std::optional<Array<std::uint32_t>> indices,
                           std::optional<Array<float>> values,
                           std::optional<Array<float, 2>> dense32,
                           std::optional<Array<double, 2>> dense64,
                           std::optional<Array<std::int32_t>> labels,
                           std::optional<Array<float>> token_weight,
                           std::optional<Array<double, 2>> cost,
                           std::optional<Array<double>> example_weight, std::size_t n_pair,
                           std::optional<Array<std::int64_t>> pair_indptr,
                           std::optional<Array<std::uint32_t>> pair_indices,
                           std::optional<Array<double>> values64,
                           std::optional<Array<double>> token_weight64,
                           std::optional<Array<std::uint8_t>> mapping, std::uint64_t file_hash) {
  const auto keep = [this](const auto& array) { this->keep(array); };
  if (mapping) {
    data_.mapping.bytes = {mapping->data(), mapping->shape(0)};
    data_.file_hash = file_hash;
    keep(*mapping);
  }
  data_.n_labels = n_labels;
  data_.offsets = {offsets.data(), offsets.shape(0)};
  keep(offsets);
  require(n_labels >= 1, "at least one label is needed");
  require(n_labels < (std::size_t{1} << 24), "more labels than the index type holds (2^24 - 1)");
  require(data_.offsets.size() >= 2, "at least one sequence is needed");
  require(data_.offsets.front() == 0, "offsets must begin with 0");
  for (std::size_t i = 1; i < data_.offsets.size(); ++i) {
    if (data_.offsets[i] <= data_.offsets[i - 1]) throw BadInput("sequence " + std::to_string(i - 1) + " is empty");
  }
  const std::size_t tokens = std::size_t(data_.offsets.back());
  take_tokens(data_, n_sparse, tokens, {indptr, indices, values, values64, dense32, dense64}, keep);
  data_.n_pair = n_pair;
  require(n_pair <= ~std::uint32_t{0}, "more pair features than the index type holds (2^32 - 1)");
  take_rows(pair_indptr, pair_indices, n_pair, tokens, data_.pair_indptr, data_.pair_indices, keep, data_.mapping);
  if (labels) {
    require(labels->shape(0) == tokens, "labels must have one entry per token");
    for (std::size_t t = 0; t < tokens; ++t) {
      require(labels->data()[t] >= 0 && std::size_t(labels->data()[t]) < n_labels, "label code out of range");
    }
    data_.mapping.release(labels->data(), tokens);
    data_.labels = labels->data();
    keep(*labels);
  }
  require(!(token_weight && token_weight64), "values and token weights have one precision");
  take_numbers(token_weight, tokens, data_.token_weight, "token weights must have one entry per token", keep);
  take_numbers(token_weight64, tokens, data_.token_weight64, "token weights must have one entry per token", keep);
  take_example_weights(example_weight, data_.size(), "sequence", data_.example_weight, keep);
  take_costs(cost, n_labels, data_.cost, keep);
}

namespace {

using Known = std::optional<Array<std::int32_t>>;

KnownLabels known_labels(const ChainProblem& problem, const Known& known) {
  if (!known) return {};
  require(known->shape(0) == std::size_t(problem.data().offsets.back()), "known labels must have one entry per token");
  for (std::size_t t = 0; t < known->shape(0); ++t) {
    const std::int32_t label = known->data()[t];
    require(label >= -1 && (label < 0 || std::size_t(label) < problem.data().n_labels), "code of a known label out of range");
  }
  return {known->data(), known->shape(0)};
}

std::size_t decoding_work(ChainProblem& problem, std::size_t times = 1) {
  return times * ReleaseIfLong::decoding(std::size_t(problem.data().offsets.back()), problem.data().n_labels);
}

template <class Weights>
void bind_decoding(nb::class_<ChainProblem, Problem>& cls) {
  using T = typename Precision<Weights>::type;
  cls.def(
      "predict",
      [](ChainProblem& problem, const Weights& weights, int threads, Mask transition, Mask start, Mask end, std::size_t table_bytes, Known known) {
        const ChainDecoder<T> decoder(*problem.chain<T>(), checked_weights(problem.data(), weights),
                                      allowed_edges(problem.data(), transition, start, end), table_bytes,
                                      known_labels(problem, known));
        std::vector<std::int32_t> labels(std::size_t(problem.data().offsets.back()));
        std::vector<double> scores(problem.n_examples());
        {
          ReleaseIfLong release(decoding_work(problem));
          decoder.best(threads, labels.data(), scores.data());
        }
        return nb::make_tuple(to_numpy(std::move(labels)), to_numpy(std::move(scores)));
      },
      "weights"_a, "threads"_a = 1, "transition"_a = nb::none(), "start"_a = nb::none(), "end"_a = nb::none(),
      "table_bytes"_a = ChainDecoder<T>::kTableBytes, "known"_a = nb::none());
  cls.def(
      "score",
      [](ChainProblem& problem, const Weights& weights, Array<std::int32_t> labels, int threads, std::size_t table_bytes) {
        require(labels.shape(0) == std::size_t(problem.data().offsets.back()), "labels must have one entry per token");
        for (std::size_t t = 0; t < labels.shape(0); ++t) {
          require(labels.data()[t] >= 0 && std::size_t(labels.data()[t]) < problem.data().n_labels, "label code out of range");
        }
        const ChainDecoder<T> decoder(*problem.chain<T>(), checked_weights(problem.data(), weights), {}, table_bytes);
        std::vector<double> scores(problem.n_examples());
        {
          ReleaseIfLong release(decoding_work(problem));
          decoder.score(threads, labels.data(), scores.data());
        }
        return to_numpy(std::move(scores));
      },
      "weights"_a, "labels"_a, "threads"_a = 1, "table_bytes"_a = ChainDecoder<T>::kTableBytes);
  cls.def(
      "max_marginals",
      [](ChainProblem& problem, const Weights& weights, int threads, std::size_t table_bytes, Known known) {
        const ChainDecoder<T> decoder(*problem.chain<T>(), checked_weights(problem.data(), weights), {}, table_bytes,
                                      known_labels(problem, known));
        std::vector<double> out(std::size_t(problem.data().offsets.back()) * problem.data().n_labels);
        {
          ReleaseIfLong release(decoding_work(problem));
          decoder.max_marginals(threads, out.data());
        }
        return to_numpy(std::move(out));
      },
      "weights"_a, "threads"_a = 1, "table_bytes"_a = ChainDecoder<T>::kTableBytes, "known"_a = nb::none());
  cls.def(
      "marginals",
      [](ChainProblem& problem, const Weights& weights, double temperature, bool tokens, int threads, Mask transition, Mask start, Mask end, std::size_t table_bytes, Known known) {
        require(std::isfinite(temperature) && temperature > 0.0, "the temperature must be positive and finite, got " + std::to_string(temperature));
        const ChainMarginals<T> chain(*problem.chain<T>(), checked_weights(problem.data(), weights),
                                      allowed_edges(problem.data(), transition, start, end), 1.0 / temperature, table_bytes,
                                      known_labels(problem, known));
        std::vector<double> out(tokens ? std::size_t(problem.data().offsets.back()) * problem.data().n_labels : 0);
        std::vector<double> log_z(problem.n_examples());
        {
          ReleaseIfLong release(decoding_work(problem));
          if (tokens) {
            chain.marginals(threads, log_z.data(), out.data());
          } else {
            chain.log_partition(threads, log_z.data());
          }
        }
        return nb::make_tuple(to_numpy(std::move(log_z)), to_numpy(std::move(out)));
      },
      "weights"_a, "temperature"_a, "tokens"_a = true, "threads"_a = 1, "transition"_a = nb::none(), "start"_a = nb::none(),
      "end"_a = nb::none(), "table_bytes"_a = ChainDecoder<T>::kTableBytes, "known"_a = nb::none());
  cls.def(
      "kbest",
      [](ChainProblem& problem, const Weights& weights, std::size_t k, int threads, Mask transition, Mask start, Mask end, std::size_t table_bytes, Known known) {
        require(k >= 1, "k must be at least 1");
        const ChainDecoder<T> decoder(*problem.chain<T>(), checked_weights(problem.data(), weights),
                                      allowed_edges(problem.data(), transition, start, end), table_bytes,
                                      known_labels(problem, known));
        std::vector<std::vector<Labelling>> paths;
        {
          ReleaseIfLong release(decoding_work(problem, k));
          paths = decoder.kbest(threads, k);
        }
        nb::list result;
        for (auto& of_sequence : paths) {
          nb::list row;
          for (auto& path : of_sequence) row.append(nb::make_tuple(path.score, to_numpy(std::move(path.labels))));
          result.append(row);
        }
        return result;
      },
      "weights"_a, "k"_a, "threads"_a = 1, "transition"_a = nb::none(), "start"_a = nb::none(), "end"_a = nb::none(),
      "table_bytes"_a = ChainDecoder<T>::kTableBytes, "known"_a = nb::none());
  cls.def(
      "hinge",
      [](ChainProblem& problem, const Weights& weights, int threads) {
        problem.chain<T>()->require_truth();
        const ChainDecoder<T> decoder(*problem.chain<T>(), checked_weights(problem.data(), weights), {});
        nb::gil_scoped_release release;
        return decoder.hinge(threads);
      },
      "weights"_a, "threads"_a = 1);
  cls.def(
      "gather",
      [](ChainProblem& problem, const Weights& weights) {
        const ChainDecoder<T> decoder(*problem.chain<T>(), checked_weights(problem.data(), weights), {});
        nb::gil_scoped_release release;
        return decoder.gather();
      },
      "weights"_a);
}

template <class Label>
void bind_sparse_init(nb::class_<SparseWeights>& cls) {
  cls.def("__init__", [](SparseWeights* self, std::size_t n_labels, Array<std::uint32_t> starts, Array<Label> labels, Array<float> weights, Array<float> tail) {
    const auto view = [](const auto& array) { return std::span(array.data(), array.shape(0)); };
    new (self) SparseWeights(n_labels, padded_labels<float>(n_labels), view(starts), view(labels), view(weights), view(tail));
  }, "n_labels"_a, "starts"_a.noconvert(), "labels"_a.noconvert(), "weights"_a.noconvert(), "tail"_a.noconvert());
}

void bind_sparse_weights(nb::module_& m) {
  auto cls = nb::class_<SparseWeights>(m, "SparseWeights", "Weights of a chain, most of which are zero.");
  bind_sparse_init<std::uint8_t>(cls);
  bind_sparse_init<std::uint16_t>(cls);
  bind_sparse_init<std::uint32_t>(cls);
  cls.def_prop_ro("n_rows", &SparseWeights::n_rows)
      .def_prop_ro("n_labels", &SparseWeights::n_labels)
      .def_prop_ro("n_entries", &SparseWeights::n_entries)
      .def_prop_ro("memory_bytes", &SparseWeights::bytes)
      .def("dense", [](const SparseWeights& self) {
        const std::size_t Lp = self.row_size(), head = self.n_rows() * Lp, n = head + self.tail().size();
        auto* kept = new AlignedArray<float>(n);
        nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<AlignedArray<float>*>(p); });
        for (std::size_t f = 0; f < self.n_rows(); ++f) {
          for (const SparseWeights::Entry& entry : self.row(f)) (*kept)[f * Lp + entry.label] = entry.weight;
        }
        std::copy_n(self.tail().data(), self.tail().size(), kept->data() + head);
        return nb::cast(nb::ndarray<nb::numpy, float, nb::ndim<1>>(kept->data(), {n}, owner));
      }, "The full matrix, as native code takes it.")
      .def("arrays", [](const SparseWeights& self) {
        std::vector<std::uint32_t> counts, labels;
        std::vector<float> weights, tail;
        for (std::size_t f = 0; f < self.n_rows(); ++f) {
          counts.push_back(static_cast<std::uint32_t>(self.row(f).size()));
          for (const SparseWeights::Entry& entry : self.row(f)) labels.push_back(entry.label), weights.push_back(entry.weight);
        }
        for (std::size_t r = 0; r < self.tail().size(); r += self.row_size()) {
          tail.insert(tail.end(), self.tail().data() + r, self.tail().data() + r + self.n_labels());
        }
        return nb::make_tuple(to_numpy(std::move(counts)), to_numpy(std::move(labels)), to_numpy(std::move(weights)), to_numpy(std::move(tail)));
      }, "Counts of the rows, labels and weights of the entries, the dense rows without padding.");
}

}  // namespace

// Which weights are not zero (nonzeros.hpp).
template <class T, class Column>
nb::tuple entries_of(Array<T, 2> matrix, Array<std::uint64_t> rows, std::size_t n_columns) {
  std::vector<std::uint32_t> counts(rows.shape(0));
  std::vector<Column> columns;
  std::vector<T> values;
  {
    nb::gil_scoped_release release;
    const auto row = [&](std::size_t r) { return matrix.data() + rows.data()[r] * matrix.shape(1); };
    std::size_t n = 0, at = 0;
    for (std::size_t r = 0; r < counts.size(); ++r) {
      if (rows.data()[r] >= matrix.shape(0)) throw BadInput("a row of weights is none");
      n += counts[r] = count_in_row(row(r), n_columns);
    }
    columns.resize(n), values.resize(n);
    for (std::size_t r = 0; r < counts.size(); ++r) at = collect_row(row(r), n_columns, at, columns.data(), values.data());
  }
  return nb::make_tuple(to_numpy(std::move(counts)), to_numpy(std::move(columns)), to_numpy(std::move(values)));
}
template <class T>
void bind_nonzeros(nb::module_& m) {
  m.def("count_nonzero", [](Array<T> weights, int threads) { return count_nonzero(weights.data(), weights.shape(0), threads); }, "weights"_a, "threads"_a = 1,
        nb::call_guard<nb::gil_scoped_release>());
  m.def("row_counts", [](Array<T, 2> matrix, std::size_t n_columns) {
    require(n_columns <= matrix.shape(1), "there are fewer columns");
    std::vector<std::uint32_t> counts(matrix.shape(0));
    for (std::size_t r = 0; r < counts.size(); ++r) counts[r] = count_in_row(matrix.data() + r * matrix.shape(1), n_columns);
    return to_numpy(std::move(counts));
  }, "matrix"_a, "n_columns"_a);
  m.def("row_entries", [](Array<T, 2> matrix, Array<std::uint64_t> rows, std::size_t n_columns) {
    require(n_columns <= matrix.shape(1), "there are fewer columns");
    if (n_columns <= 256) return entries_of<T, std::uint8_t>(matrix, rows, n_columns);
    if (n_columns <= 65536) return entries_of<T, std::uint16_t>(matrix, rows, n_columns);
    return entries_of<T, std::uint32_t>(matrix, rows, n_columns);
  }, "matrix"_a, "rows"_a, "n_columns"_a);
}

void bind_chain(nb::module_& m) {
  nb::class_<Problem>(m, "Problem", nb::dynamic_attr())
      .def_prop_ro("n_examples", &Problem::n_examples)
      .def_prop_ro("slow_oracle", &Problem::slow_oracle)
      .def_prop_ro("exact_oracle", &Problem::exact_oracle)
      .def_prop_ro("has_kernel", &Problem::has_kernel)
      .def_prop_ro("offers_single", &Problem::offers_single)
      .def("data_hash", &Problem::data_hash, nb::call_guard<nb::gil_scoped_release>(),
           "A hash of the data; 0 if it cannot be told.")
      .attr("linear_term") = nb::none();  // the u₀ of the objective, for whoever gives the problem one
  m.attr("Problem").attr("windows") = nb::none();  // how the engine keeps its planes, where they may not fit in memory
  auto cls = nb::class_<ChainProblem, Problem>(m, "ChainProblem");
  cls.def(nb::init<std::size_t, std::size_t, Array<std::int64_t>, std::optional<Array<std::int64_t>>,
                   std::optional<Array<std::uint32_t>>, std::optional<Array<float>>,
                   std::optional<Array<float, 2>>, std::optional<Array<double, 2>>,
                   std::optional<Array<std::int32_t>>, std::optional<Array<float>>,
                   std::optional<Array<double, 2>>, std::optional<Array<double>>, std::size_t,
                   std::optional<Array<std::int64_t>>, std::optional<Array<std::uint32_t>>,
                   std::optional<Array<double>>, std::optional<Array<double>>,
                   std::optional<Array<std::uint8_t>>, std::uint64_t>(),
          "n_labels"_a, "n_sparse"_a, "offsets"_a, "indptr"_a = nb::none(), "indices"_a = nb::none(),
          "values"_a = nb::none(), "dense32"_a = nb::none(), "dense64"_a = nb::none(),
          "labels"_a = nb::none(), "token_weight"_a = nb::none(), "cost"_a = nb::none(),
          "example_weight"_a = nb::none(), "n_pair"_a = 0, "pair_indptr"_a = nb::none(),
          "pair_indices"_a = nb::none(), "values64"_a = nb::none(), "token_weight64"_a = nb::none(),
          "mapping"_a = nb::none(), "file_hash"_a = 0);
  bind_sparse_weights(m);
  bind_decoding<Array<float>>(cls);
  bind_decoding<Array<double>>(cls);
  bind_decoding<SparseWeights>(cls);
  m.def("padded_labels", [](std::size_t n_labels, bool single) {
    return single ? padded_labels<float>(n_labels) : padded_labels<double>(n_labels);
  }, "n_labels"_a, "single"_a);
  m.def("select_vector_code", &select_vector_code, "name"_a);
  m.def("vector_code_name", [] { return std::string(vector_code<float>().name); });
  bind_nonzeros<float>(m);
  bind_nonzeros<double>(m);
  m.def("aligned_array", [](std::size_t n, bool single) -> nb::object {
    const auto make = [&]<class T>(T) {
      auto* kept = new AlignedArray<T>(n);
      nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<AlignedArray<T>*>(p); });
      return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {n}, owner));
    };
    return single ? make(float{}) : make(double{});
  }, "n"_a, "single"_a);
}

}  // namespace mm
