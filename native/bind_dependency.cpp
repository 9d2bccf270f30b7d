// Python bindings of dependency trees (dependency.hpp), and the hashes of the texts that they are made of.
#include <cmath>

#include "bind_tokens.hpp"
#include "dependency.hpp"
#include "prediction_loop.hpp"
#include "problem_of.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

// The templates as Python hands them over: label, distance, number of atoms, then side, column and offset of each.
std::vector<ArcTemplate> take_templates(Array<std::int32_t> program, Array<std::uint64_t> seeds, std::size_t columns) {
  std::vector<ArcTemplate> templates;
  const std::int32_t* at = program.data();
  const std::int32_t* const end = at + program.shape(0);
  while (at < end) {
    require(end - at >= 3 && at[2] >= 1 && end - at >= 3 + 3 * std::ptrdiff_t(at[2]), "the program of the templates ends too early");
    require((at[0] == 0 || at[0] == 1) && (at[1] == 0 || at[1] == 1), "a flag of a template is neither 0 nor 1");
    require(templates.size() < seeds.shape(0), "expected one seed for each template");
    ArcTemplate t;
    t.label = at[0] == 1, t.distance = at[1] == 1, t.seed = seeds.data()[templates.size()];
    const std::int32_t n = at[2];
    at += 3;
    for (std::int32_t k = 0; k < n; ++k, at += 3) {
      require(at[0] >= 0 && at[0] <= 2 && at[1] >= 0 && std::size_t(at[1]) < columns && at[2] >= -1000 && at[2] <= 1000,
              "an atom of a template is out of range");
      t.atoms.push_back({std::uint32_t(at[0]), std::uint32_t(at[1]), at[2]});
    }
    require(!(t.label && t.has(2)), "a template of relations cannot ask what lies between");
    templates.push_back(std::move(t));
  }
  require(templates.size() == seeds.shape(0), "expected one seed for each template");
  require(templates.size() <= 4096, "expected at most 4096 templates");
  return templates;
}

class DependencyProblem final : public ProblemOf<Dependency, DependencyData> {
 public:
  DependencyProblem(Array<std::int64_t> offsets, Array<std::uint64_t, 2> atoms, Array<std::uint64_t, 2> specials, Array<std::int32_t> program,
                    Array<std::uint64_t> seeds, unsigned arc_bits, unsigned row_bits, std::size_t n_labels,
                    std::optional<Array<std::int32_t>> heads, std::optional<Array<std::int32_t>> labels, bool projective, bool one_root,
                    bool zero_one, std::optional<Array<double>> example_weight) {
    const auto keep = [this](const auto& array) { this->keep(array); };
    data_.offsets = {offsets.data(), offsets.shape(0)};
    keep(offsets), keep(atoms), keep(specials);
    require(!data_.offsets.empty() && data_.offsets.front() == 0, "offsets must begin with 0");
    for (std::size_t i = 1; i < data_.offsets.size(); ++i) {
      require(data_.offsets[i] >= data_.offsets[i - 1], "offsets must not decrease");
      require(data_.offsets[i] - data_.offsets[i - 1] < 0xFFFF, "a sentence has more than 65534 words");
    }
    const std::size_t tokens = std::size_t(data_.offsets.back()), columns = atoms.shape(1);
    require(atoms.shape(0) == tokens, "expected one row of atoms for each token");
    require(columns >= 1 && specials.shape(0) == 3 && specials.shape(1) == columns, "expected three rows of special atoms");
    data_.source = {atoms.data(), specials.data(), columns};
    require(arc_bits >= 3 && arc_bits <= 30 && row_bits >= 3 && row_bits <= 24, "expected 3 to 30 bits for arcs and 3 to 24 for rows");
    require(n_labels < 0xFFFF, "expected fewer than 65535 relations");
    data_.arc_bits = arc_bits, data_.row_bits = row_bits, data_.n_labels = n_labels;
    require(data_.n_weights() < (std::size_t{1} << 32), "more weights than the index type holds");
    data_.templates = take_templates(program, seeds, columns);
    data_.projective = projective, data_.one_root = one_root, data_.zero_one = zero_one;
    require(!(labels && !heads), "relations come with heads");
    if (heads) {
      require(heads->shape(0) == tokens, "expected one head for each token");
      require(labels.has_value() == (n_labels > 0), "heads come with relations if there are any");
      data_.heads = heads->data();
      keep(*heads);
      check_heads(heads->data());
    }
    if (labels) {
      require(labels->shape(0) == tokens, "expected one relation for each token");
      for (std::size_t t = 0; t < tokens; ++t) require(labels->data()[t] >= 0 && std::size_t(labels->data()[t]) < n_labels, "a relation is out of range");
      data_.labels = labels->data();
      keep(*labels);
    }
    take_example_weights(example_weight, data_.size(), "sentence", data_.example_weight, keep);
    nb::gil_scoped_release release;
    data_.make_hashes();
  }

  template <class T>
  nb::object predict(Array<T> weights, int threads) {
    const Dependency<T>& structure = checked(weights);
    const std::size_t tokens = std::size_t(data_.offsets.back()), n = data_.size();
    std::vector<std::int32_t> heads(tokens), labels(tokens);
    for_predictions(threads, n, [&](std::size_t, auto ask) {
      auto ws = std::make_unique<typename Dependency<T>::Scratch>();
      ws->eisner.halted = ask;
      return [&, ws = std::move(ws)](std::size_t i) {
        structure.predict(*ws, i, weights.data());
        const std::size_t first = std::size_t(data_.offsets[i]);
        for (std::size_t d = 1; d <= data_.length(i); ++d) {
          heads[first + d - 1] = std::int32_t(ws->heads[d]), labels[first + d - 1] = std::int32_t(ws->labels[d]);
        }
      };
    });
    return nb::make_tuple(to_numpy(std::move(heads)), to_numpy(std::move(labels)));
  }

  // The loss-augmented argmax of each sentence: heads and relations of all tokens.
  nb::object oracle(Array<double> weights) {
    const Dependency<double>& structure = checked(weights);
    structure.require_truth();
    const std::size_t tokens = std::size_t(data_.offsets.back());
    std::vector<std::int32_t> heads(data_.heads, data_.heads + tokens), labels(tokens);
    if (data_.labels != nullptr) labels.assign(data_.labels, data_.labels + tokens);
    const auto ws = structure.workspace();
    for (std::size_t i = 0; i < data_.size(); ++i) {
      structure.oracle(*ws, i, weights.data());
      for (std::size_t k = 0; k < ws->code.size(); k += 2) {
        const std::size_t at = std::size_t(data_.offsets[i]) + ws->code[k] - 1;
        heads[at] = std::int32_t(ws->code[k + 1] & 0xFFFFu), labels[at] = std::int32_t(ws->code[k + 1] >> 16);
      }
    }
    return nb::make_tuple(to_numpy(std::move(heads)), to_numpy(std::move(labels)));
  }

  // w.f of given trees.
  template <class T>
  nb::object score(Array<T> weights, Array<std::int32_t> heads, Array<std::int32_t> labels, int threads) {
    const Dependency<T>& structure = checked(weights);
    check_trees(heads, labels);
    const std::size_t n = data_.size();
    std::vector<double> out(n);
    {
      nb::gil_scoped_release release;
      const std::size_t shares = n_shares(threads, n);
      run_shares(shares, [&](std::size_t share) {
        for (std::size_t i = n * share / shares; i < n * (share + 1) / shares; ++i) {
          const std::size_t first = std::size_t(data_.offsets[i]);
          for (std::size_t d = 1; d <= data_.length(i); ++d) {
            out[i] += structure.scorer().score(i, std::size_t(heads.data()[first + d - 1]), d, std::size_t(labels.data()[first + d - 1]), weights.data());
          }
        }
      });
    }
    return to_numpy(std::move(out));
  }

  // The weights of all arcs of given trees, one after the other, and where those of each sentence begin.
  nb::object features(Array<std::int32_t> heads, Array<std::int32_t> labels) {
    check_trees(heads, labels);
    const ArcScorer<double>& scorer = built<double>()->scorer();
    std::vector<std::uint32_t> indices;
    std::vector<std::int64_t> ends{0};
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const std::size_t first = std::size_t(data_.offsets[i]);
      for (std::size_t d = 1; d <= data_.length(i); ++d) {
        const std::size_t h = std::size_t(heads.data()[first + d - 1]), l = std::size_t(labels.data()[first + d - 1]);
        const auto add = [&](std::size_t j) { indices.push_back(static_cast<std::uint32_t>(j)); };
        scorer.for_arc(i, h, d, add);
        scorer.for_label(i, h, d, l, add);
      }
      ends.push_back(std::int64_t(indices.size()));
    }
    return nb::make_tuple(to_numpy(std::move(indices)), to_numpy(std::move(ends)));
  }

  std::size_t n_weights() const { return data_.n_weights(); }

 private:
  template <class T>
  const Dependency<T>& checked(const Array<T>& weights) {
    require(weights.shape(0) == data_.n_weights(), "expected " + std::to_string(data_.n_weights()) + " weights, got " + std::to_string(weights.shape(0)));
    return *built<T>();
  }

  void check_heads(const std::int32_t* heads) const {
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const std::size_t first = std::size_t(data_.offsets[i]), n = data_.length(i);
      for (std::size_t d = 1; d <= n; ++d) {
        const std::int32_t h = heads[first + d - 1];
        require(h >= 0 && std::size_t(h) <= n && std::size_t(h) != d, "a head is out of range, or the word itself");
      }
    }
  }
  void check_trees(const Array<std::int32_t>& heads, const Array<std::int32_t>& labels) const {
    const std::size_t tokens = std::size_t(data_.offsets.back());
    require(heads.shape(0) == tokens && labels.shape(0) == tokens, "expected one head and one relation for each token");
    check_heads(heads.data());
    const std::size_t most = std::max<std::size_t>(data_.n_labels, 1);
    for (std::size_t t = 0; t < tokens; ++t) require(labels.data()[t] >= 0 && std::size_t(labels.data()[t]) < most, "a relation is out of range");
  }
};

// A decoder on a matrix of scores: heads of the words 1..n.
template <class T>
nb::object decode_tree(nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu> scores, bool projective, bool one_root) {
  require(scores.shape(0) == scores.shape(1) && scores.shape(0) >= 1 && scores.shape(0) < 0xFFFF, "expected a square matrix of scores, with the root first");
  const std::size_t n = scores.shape(0) - 1;
  for (std::size_t h = 0; h <= n; ++h) {
    for (std::size_t d = 1; d <= n; ++d) require(h == d || std::isfinite(scores.data()[h * (n + 1) + d]), "a score is not finite");
  }
  std::vector<std::uint32_t> heads(n + 1);
  {
    nb::gil_scoped_release release;
    if (projective) {
      Eisner<T>().decode(n, scores.data(), one_root, heads.data());
    } else {
      Arborescence<T>().decode(n, scores.data(), one_root, heads.data());
    }
  }
  return to_numpy(std::vector<std::int32_t>(heads.begin() + 1, heads.end()));
}

}  // namespace

void bind_dependency(nb::module_& m) {
  nb::class_<DependencyProblem, Problem>(m, "DependencyProblem", "Sentences with dependency trees, first order.")
      .def(nb::init<Array<std::int64_t>, Array<std::uint64_t, 2>, Array<std::uint64_t, 2>, Array<std::int32_t>, Array<std::uint64_t>, unsigned,
                    unsigned, std::size_t, std::optional<Array<std::int32_t>>, std::optional<Array<std::int32_t>>, bool, bool, bool,
                    std::optional<Array<double>>>(),
           nb::kw_only(), "offsets"_a, "atoms"_a, "specials"_a, "program"_a, "seeds"_a, "arc_bits"_a, "row_bits"_a, "n_labels"_a = 0,
           "heads"_a = nb::none(), "labels"_a = nb::none(), "projective"_a = true, "one_root"_a = true, "zero_one"_a = false,
           "example_weight"_a = nb::none())
      .def_prop_ro("n_weights", &DependencyProblem::n_weights)
      .def("predict", &DependencyProblem::predict<float>, "weights"_a, "threads"_a = 1, "Heads and relations of all tokens.")
      .def("predict", &DependencyProblem::predict<double>, "weights"_a, "threads"_a = 1)
      .def("oracle", &DependencyProblem::oracle, "weights"_a, "Heads and relations of the loss-augmented argmax.")
      .def("score", &DependencyProblem::score<float>, "weights"_a, "heads"_a, "labels"_a, "threads"_a = 1, "w.f of given trees.")
      .def("score", &DependencyProblem::score<double>, "weights"_a, "heads"_a, "labels"_a, "threads"_a = 1)
      .def("features", &DependencyProblem::features, "heads"_a, "labels"_a, "Indices of the weights of given trees, and where each sentence's begin.");
  m.def("decode_tree", &decode_tree<double>, "scores"_a, "projective"_a = true, "one_root"_a = true,
        "Heads of the words of the best tree; scores[h, d] is that of the arc from h to d, and 0 is the root.");
  m.def("text_hashes", [](const std::vector<std::string>& texts) {
    std::vector<std::uint64_t> out;
    out.reserve(texts.size());
    for (const std::string& text : texts) out.push_back(hash_bytes(text));
    return to_numpy(std::move(out));
  }, "texts"_a, "The 64-bit hash of each text, the same on every platform.");
}

}  // namespace mm
