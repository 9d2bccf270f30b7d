// Python bindings of chains with prior-knowledge constraints: inference, φ, features, training problems.
#include <cmath>

#include "bind_decoding.hpp"
#include "constrained_chain.hpp"
#include "interval_rows.hpp"
#include "prediction_loop.hpp"
#include "several.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

// An automaton as Python describes it; its arrays are kept alive by the problem.
struct AutomatonSpec {
  AutomatonData data;
  std::vector<nb::object> owners;

  AutomatonSpec(const std::string& kind, Array<std::int64_t> first, bool per_token, std::vector<std::int32_t> labels, std::int64_t low,
                std::int64_t high, std::vector<std::uint8_t> increments, std::optional<Array<std::uint8_t>> active, std::size_t order,
                std::vector<std::uint32_t> grams) {
    const char* names[] = {"segments", "order", "length", "count", "total", "ngrams"};
    const auto found = std::find(std::begin(names), std::end(names), kind);
    require(found != std::end(names), "there is no automaton '" + kind + "'");
    data.kind = AutomatonKind(found - names);
    data.per_token = per_token;
    data.labels = std::move(labels);
    data.low = low, data.high = high;
    data.increments = std::move(increments);
    data.order = order;
    data.grams = std::move(grams);
    data.first = {first.data(), first.shape(0)};
    owners.push_back(nb::cast(first));
    if (active) data.active = {active->data(), active->shape(0)}, owners.push_back(nb::cast(*active));
  }

  // Coordinates that a sequence of n tokens has of it.
  std::size_t coordinates(std::size_t n) const {
    if (data.kind == AutomatonKind::kNgrams) return n * (data.grams.size() / data.order);
    if (!data.per_token) return 1;
    return data.kind == AutomatonKind::kLength ? n : n - 1;
  }

  void check(const ChainData& chain, const ConstraintData& constraints) const {
    const std::size_t L = chain.n_labels, tokens = std::size_t(chain.offsets.back());
    const bool counts = data.kind == AutomatonKind::kCount || data.kind == AutomatonKind::kTotal;
    if (counts) {
      require(data.increments.size() == (L + 1) * L, "expected (L + 1) L increments");
      require(!data.per_token, "a count has one coordinate a sequence");
      require(data.active.empty() || data.active.size() == tokens, "expected an entry for each token");
      require(data.low >= 0 && data.low < (std::int64_t{1} << 31) && data.high < (std::int64_t{1} << 31), "a count is out of range");
    } else if (data.kind == AutomatonKind::kNgrams) {
      require(data.order >= 3 && data.order <= 8 && !data.grams.empty() && data.grams.size() % data.order == 0, "expected n-grams of 3 to 8 labels");
      require(!data.per_token, "n-grams have their own coordinates");
      for (const std::uint32_t l : data.grams) require(l < L, "label code out of range");
    } else {
      require(data.labels.size() == L, "expected a number for each label");
      const std::int32_t least = data.kind == AutomatonKind::kOrder ? -1 : 0;
      for (const std::int32_t x : data.labels) require(x >= least && x < (1 << 24), "a number of a label is out of range");
    }
    require(data.first.size() == chain.size(), "expected a first coordinate for each sequence");
    for (std::size_t i = 0; i < chain.size(); ++i) {
      require(data.first[i] >= constraints.offsets[i] && data.first[i] + std::int64_t(coordinates(chain.length(i))) <= constraints.offsets[i + 1],
              "a coordinate is outside of its sequence");
    }
  }
};

using Int64s = std::optional<Array<std::int64_t>>;
using Words = std::optional<Array<std::uint32_t>>;

class ConstrainedProblem final : public ProblemOf<ConstrainedChain, ConstrainedData> {
 public:
  ConstrainedProblem(nb::object chain, Array<std::int64_t> offsets, Int64s token_indptr, Int64s token_coordinates, Words token_tables,
                     Array<double, 2> token_values, Int64s edge_indptr, Int64s edge_coordinates, Words edge_tables,
                     Array<double, 2> edge_values, nb::list automata, std::optional<Array<std::int32_t>> groups, std::size_t n_groups,
                     bool group_weights, bool auxiliary, bool chain_loss, double kappa, double tau, std::size_t width,
                     std::optional<Array<std::int32_t>> free, std::optional<Array<double>> b) {
    data_.chain = nb::cast<const ChainProblem&>(chain).data();
    owners_.push_back(chain);
    ConstraintData& c = data_.constraints;
    c.n_labels = data_.chain.n_labels;
    c.offsets = {offsets.data(), offsets.shape(0)};
    keep(offsets);
    require(c.offsets.size() == data_.chain.size() + 1 && c.offsets.front() == 0, "offsets must begin with 0, one more than there are sequences");
    for (std::size_t i = 0; i < c.size(); ++i) require(c.offsets[i] <= c.offsets[i + 1], "offsets must not descend");
    take_sites(c.tokens, token_indptr, token_coordinates, token_tables, token_values, c.n_labels);
    take_sites(c.edges, edge_indptr, edge_coordinates, edge_tables, edge_values, c.n_labels * c.n_labels);
    for (const nb::handle entry : automata) {
      const AutomatonSpec& spec = nb::cast<const AutomatonSpec&>(entry);
      spec.check(data_.chain, c);
      c.automata.push_back(spec.data);
      owners_.insert(owners_.end(), spec.owners.begin(), spec.owners.end());
    }
    if (groups) {
      require(groups->shape(0) == c.n_coordinates(), "expected a group for each coordinate");
      for (std::size_t k = 0; k < groups->shape(0); ++k) require(groups->data()[k] >= -1 && groups->data()[k] < std::int64_t(n_groups), "a group is out of range");
      c.groups = {groups->data(), groups->shape(0)};
      keep(*groups);
    }
    c.n_groups = n_groups;
    require(n_groups < (std::size_t{1} << 31), "too many groups");
    require(std::isfinite(kappa) && std::isfinite(tau), "kappa and tau must be finite");
    data_.group_weights = group_weights, data_.auxiliary = auxiliary, data_.chain_loss = chain_loss;
    data_.kappa = kappa, data_.tau = tau;
    take_free(free, b);
    set_width(width);
    require(data_.chain.n_rows() * (c.n_labels + 64) + c.n_coordinates() * 2 + n_groups < ~std::uint32_t{0}, "more weights than the index type holds");
    ConstraintAutomata(data_.constraints, data_.longest());  // throws where states are too large
  }

  void set_width(std::size_t width) {
    require(width >= 1 && width <= (std::size_t{1} << 22), "width must be between 1 and 2^22");
    require(width * data_.longest() < (std::size_t{1} << 31), "width times the longest sequence must be below 2^31");
    data_.width = width;
  }
  const ConstraintData& constraints() const { return data_.constraints; }
  std::size_t n_tokens() const { return std::size_t(data_.chain.offsets.back()); }

  // Labels that the caller gives, checked.
  const std::uint32_t* checked(const Array<std::int32_t>& labels) const {
    require(labels.shape(0) == n_tokens(), "labels must have one entry per token");
    for (std::size_t t = 0; t < labels.shape(0); ++t) {
      require(labels.data()[t] >= 0 && std::size_t(labels.data()[t]) < data_.chain.n_labels, "label code out of range");
    }
    return reinterpret_cast<const std::uint32_t*>(labels.data());
  }

 private:
  void take_free(const std::optional<Array<std::int32_t>>& free, const std::optional<Array<double>>& b) {
    const std::size_t n = data_.constraints.n_coordinates();
    if (free) {
      require(data_.auxiliary && free->shape(0) == n, "expected which weight v each coordinate has");
      std::int32_t most = -1;
      for (std::size_t k = 0; k < n; ++k) require(free->data()[k] >= -1, "a weight v is out of range"), most = std::max(most, free->data()[k]);
      data_.free = {free->data(), n}, data_.n_free = std::size_t(most + 1);
      require(data_.n_free <= n, "a weight v is out of range");
      keep(*free);
    }
    if (b) {
      require(b->shape(0) == n, "expected a b for each coordinate");
      for (std::size_t k = 0; k < n; ++k) require(std::isfinite(b->data()[k]), "b must be finite");
      data_.b = b->data();
      keep(*b);
    }
  }

  void take_sites(Sites& sites, const Int64s& indptr, const Int64s& coordinates, const Words& tables, const Array<double, 2>& values, std::size_t size) {
    require(values.shape(0) == 0 || values.shape(1) == size, "a table has the wrong size");
    sites.size = size;
    sites.values = values.data();
    keep(values);
    if (!indptr) return;
    require(coordinates.has_value() && tables.has_value(), "indptr, coordinates and tables go together");
    sites.indptr = {indptr->data(), indptr->shape(0)};
    sites.coordinates = {coordinates->data(), coordinates->shape(0)};
    sites.tables = {tables->data(), tables->shape(0)};
    keep(*indptr), keep(*coordinates), keep(*tables);
    require(sites.indptr.size() == n_tokens() + 1 && sites.indptr.front() == 0 && sites.indptr.back() == std::int64_t(sites.coordinates.size()),
            "indptr must have one entry more than there are tokens, from 0 to the number of coordinates");
    require(sites.tables.size() == sites.coordinates.size(), "coordinates and tables differ in length");
    for (std::size_t t = 0; t < n_tokens(); ++t) require(sites.indptr[t] <= sites.indptr[t + 1], "indptr must not descend");
    for (const std::uint32_t table : sites.tables) require(table < values.shape(0), "a table is out of range");
    for (std::size_t k = 0; k < values.shape(0) * size; ++k) require(std::isfinite(values.data()[k]), "a value of φ is not finite");
    for (std::size_t i = 0; i < data_.chain.size(); ++i) {
      for (std::int64_t e = sites.indptr[std::size_t(data_.chain.offsets[i])]; e < sites.indptr[std::size_t(data_.chain.offsets[i + 1])]; ++e) {
        const std::int64_t k = sites.coordinates[std::size_t(e)];
        require(k >= data_.constraints.offsets[i] && k < data_.constraints.offsets[i + 1], "a coordinate is outside of its sequence");
      }
    }
  }
};

class IntervalProblem final : public ProblemOf<IntervalRows, IntervalData> {
 public:
  IntervalProblem(nb::object constrained, Array<std::int64_t> indptr, Array<std::int64_t> indices, Array<double> values, Array<double> low,
                  Array<double> high, Array<double> weight) {
    data_.layout = nb::cast<const ConstrainedProblem&>(constrained).data();
    owners_.push_back(constrained);
    const std::size_t n = low.shape(0), D = data_.layout.constraints.n_coordinates();
    require(data_.layout.auxiliary, "the constrained chain has no auxiliary weights");
    require(n >= 1 && indptr.shape(0) == n + 1 && high.shape(0) == n && weight.shape(0) == n, "expected an interval and a weight for each row");
    require(indptr.data()[0] == 0 && indptr.data()[n] == std::int64_t(indices.shape(0)) && values.shape(0) == indices.shape(0), "the rows do not fit together");
    for (std::size_t i = 0; i < n; ++i) {
      require(indptr.data()[i] <= indptr.data()[i + 1], "indptr must not descend");
      require(low.data()[i] <= high.data()[i] && low.data()[i] < kInfinity && high.data()[i] > -kInfinity, "an interval is empty");
      require(weight.data()[i] >= 0.0 && weight.data()[i] <= 1e30, "a weight is negative or not finite");
    }
    for (std::size_t e = 0; e < indices.shape(0); ++e) {
      require(indices.data()[e] >= 0 && std::size_t(indices.data()[e]) < D, "a coordinate is out of range");
      require(std::isfinite(values.data()[e]), "a value is not finite");
    }
    data_.indptr = {indptr.data(), n + 1};
    data_.indices = {indices.data(), indices.shape(0)};
    data_.values = values.data(), data_.low = low.data(), data_.high = high.data(), data_.weight = weight.data();
    keep(indptr), keep(indices), keep(values), keep(low), keep(high), keep(weight);
  }
};

// Several problems over the same weights.
class JointProblem final : public Problem {
 public:
  explicit JointProblem(const nb::list& problems) {
    require(nb::len(problems) >= 1, "at least one problem is needed");
    for (const nb::handle problem : problems) {
      members_.push_back(&nb::cast<Problem&>(problem));
      owners_.push_back(nb::borrow(problem));
    }
  }
  std::size_t n_examples() const override {
    std::size_t n = 0;
    for (const Problem* member : members_) n += member->n_examples();
    return n;
  }
  std::uint64_t data_hash() const override {
    DataHash hash(members_.size());
    for (const Problem* member : members_) {
      const std::uint64_t own = member->data_hash();
      if (own == 0) return 0;
      hash.mix_number(own);
    }
    return hash.value();
  }
  bool slow_oracle() const override { return false; }
  const Structure<float>* single_precision() override { return built(single_); }
  const Structure<double>* double_precision() override { return built(double_); }

 private:
  template <class T>
  const Structure<T>* built(std::unique_ptr<Several<T>>& slot) {
    if (slot == nullptr) {
      std::vector<const Structure<T>*> members;
      for (Problem* member : members_) {
        members.push_back(member->structure<T>());
        require(members.back() != nullptr, "a problem does not offer this precision");
        require(members.back()->row_size() == members[0]->row_size(), "the problems have rows of different lengths");
        require(!members.back()->maps_weights(), "problems with kernels cannot be joined");
      }
      slot = std::make_unique<Several<T>>(std::move(members));
    }
    return slot.get();
  }
  std::vector<Problem*> members_;
  std::vector<nb::object> owners_;
  std::unique_ptr<Several<float>> single_;
  std::unique_ptr<Several<double>> double_;
};

// Σ_i amount_i f(x_i, y_i), as the weights lie.
template <class T>
nb::object sum_features(ConstrainedProblem& problem, const Array<std::int32_t>& labels, const Array<double>& amounts, double kappa) {
  const std::uint32_t* y = problem.checked(labels);
  require(amounts.shape(0) == problem.n_examples(), "expected an amount for each sequence");
  const ConstrainedChain<T>& chain = *problem.built<T>();
  std::vector<double> sum(chain.n_weights());
  {
    nb::gil_scoped_release release;
    typename ConstrainedChain<T>::Scratch ws(chain);
    for (std::size_t i = 0; i < problem.n_examples(); ++i) {
      const double a = amounts.data()[i];
      if (a == 0.0) continue;
      chain.features(ws, i, y + problem.data().chain.offsets[i], kappa, 
                     [&](std::size_t row, std::size_t column, double x) { sum[row * chain.row_size() + column] += a * x; });
    }
  }
  return to_numpy(std::move(sum));
}

template <class T>
nb::object places(ConstrainedProblem& problem, bool auxiliary) {
  const ExtraWeights& extra = auxiliary ? problem.built<T>()->auxiliary() : problem.built<T>()->groups();
  std::vector<std::int64_t> at(extra.count);
  for (std::size_t k = 0; k < extra.count; ++k) at[k] = std::int64_t(extra.place(k));
  return to_numpy(std::move(at));
}

// The weights of decoding: a full matrix of either precision, or sparse ones; the chain's own, without extras.
template <class Weights>
void bind_best(nb::class_<ConstrainedProblem, Problem>& cls) {
  using T = typename Precision<Weights>::type;
  cls.def("best", [](ConstrainedProblem& problem, const Weights& weights, Array<double> c, double q, std::size_t width, int threads, Mask transition, Mask start, Mask end) {
    const ConstraintData& constraints = problem.constraints();
    const ChainData& data = problem.data().chain;
    require(c.shape(0) == constraints.n_coordinates(), "expected a c for each coordinate of φ");
    for (std::size_t k = 0; k < c.shape(0); ++k) require(c.data()[k] == kInfinity || std::isfinite(c.data()[k]), "c must be finite, or plus infinity for what is hard");
    require(std::isfinite(q), "q must be finite");
    problem.set_width(width);
    const ConstrainedChain<T>& chain = *problem.built<T>();
    const ChainDecoder<T> decoder(chain.chain(), checked_weights(data, weights), allowed_edges(data, transition, start, end));
    std::vector<std::int32_t> labels(problem.n_tokens());
    std::vector<double> scores(problem.n_examples()), bounds(problem.n_examples());
    for_predictions(threads, problem.n_examples(), [&](std::size_t, const auto&) {
      return [&, ws = std::make_shared<typename ConstrainedChain<T>::Scratch>(chain)](std::size_t i) {
        const std::size_t first = std::size_t(constraints.offsets[i]), n = std::size_t(constraints.offsets[i + 1]) - first;
        ws->worths.reset(first, n, q);
        for (std::size_t k = first; k < first + n; ++k) ws->worths.c(k) = c.data()[k];
        decoder.load(ws->scores, i);
        const Edges<T>& edge = decoder.edges();
        const auto found = ws->search.best(chain.place(i), LabelScores<T>{ws->scores.S.data(), edge.start, edge.end, chain.row_size()},
                                           [&](std::size_t t) { return chain.chain().into(ws->scores, edge, t); }, ws->worths, problem.data().width);
        scores[i] = found.score, bounds[i] = found.bound;
        std::copy(ws->search.y().begin(), ws->search.y().end(), labels.begin() + std::ptrdiff_t(data.offsets[i]));
      };
    });
    return nb::make_tuple(to_numpy(std::move(labels)), to_numpy(std::move(scores)), to_numpy(std::move(bounds)));
  }, "weights"_a, "c"_a, "q"_a = 0.0, "width"_a = 1000, "threads"_a = 1, "transition"_a = nb::none(), "start"_a = nb::none(), "end"_a = nb::none(),
     "argmax of w.f + c.phi + q |phi|^2 of every sequence: labels, scores (-inf: there is none), upper bounds.");
}

}  // namespace

void bind_constraints(nb::module_& m) {
  nb::class_<AutomatonSpec>(m, "Automaton", "A constraint that reads a labelling from the left.")
      .def(nb::init<const std::string&, Array<std::int64_t>, bool, std::vector<std::int32_t>, std::int64_t, std::int64_t, std::vector<std::uint8_t>,
                    std::optional<Array<std::uint8_t>>, std::size_t, std::vector<std::uint32_t>>(),
           "kind"_a, "first"_a, "per_token"_a = false, "labels"_a = std::vector<std::int32_t>(), "low"_a = 0, "high"_a = -1,
           "increments"_a = std::vector<std::uint8_t>(), "active"_a = nb::none(), "order"_a = 0, "grams"_a = std::vector<std::uint32_t>());
  auto cls = nb::class_<ConstrainedProblem, Problem>(m, "ConstrainedProblem", "A chain with prior-knowledge constraints.");
  cls.def(nb::init<nb::object, Array<std::int64_t>, Int64s, Int64s, Words, Array<double, 2>, Int64s, Int64s, Words, Array<double, 2>, nb::list,
                   std::optional<Array<std::int32_t>>, std::size_t, bool, bool, bool, double, double, std::size_t, std::optional<Array<std::int32_t>>, std::optional<Array<double>>>(),
          "chain"_a, "offsets"_a, "token_indptr"_a.none(), "token_coordinates"_a.none(), "token_tables"_a.none(), "token_values"_a,
          "edge_indptr"_a.none(), "edge_coordinates"_a.none(), "edge_tables"_a.none(), "edge_values"_a, "automata"_a, "groups"_a = nb::none(),
          "n_groups"_a = 0, "group_weights"_a = false, "auxiliary"_a = false, "chain_loss"_a = true, "kappa"_a = 0.0, "tau"_a = 0.0, "width"_a = 1000,
          "free"_a = nb::none(), "b"_a = nb::none())
      .def_prop_ro("n_coordinates", [](const ConstrainedProblem& problem) { return problem.constraints().n_coordinates(); })
      .def("n_weights", [](ConstrainedProblem& problem, bool single) {
        return single ? problem.built<float>()->n_weights() : problem.built<double>()->n_weights();
      }, "single"_a)
      .def("group_places", [](ConstrainedProblem& problem, bool single) { return single ? places<float>(problem, false) : places<double>(problem, false); }, "single"_a,
           "Where the weights of the groups stand among all weights.")
      .def("auxiliary_places", [](ConstrainedProblem& problem, bool single) { return single ? places<float>(problem, true) : places<double>(problem, true); }, "single"_a,
           "Where v stands among all weights, coordinate by coordinate.")
      .def("phi", [](ConstrainedProblem& problem, Array<std::int32_t> labels) {
        const std::uint32_t* y = problem.checked(labels);
        const ConstrainedChain<double>& chain = *problem.built<double>();
        std::vector<double> all, phi;
        all.reserve(problem.constraints().n_coordinates());
        {
          nb::gil_scoped_release release;
          ConstrainedChain<double>::Scratch ws(chain);
          for (std::size_t i = 0; i < problem.n_examples(); ++i) {
            chain.read_phi(ws, i, y + problem.data().chain.offsets[i], phi);
            all.insert(all.end(), phi.begin(), phi.end());
          }
        }
        return to_numpy(std::move(all));
      }, "labels"_a, "phi of given labellings, of all sequences one after the other.")
      .def("sum_features", [](ConstrainedProblem& problem, Array<std::int32_t> labels, Array<double> amounts, std::optional<double> kappa, bool single) {
        const double k = kappa.value_or(problem.data().kappa);
        return single ? sum_features<float>(problem, labels, amounts, k) : sum_features<double>(problem, labels, amounts, k);
      }, "labels"_a, "amounts"_a, "kappa"_a = nb::none(), "single"_a = true, "The sum over the sequences of amount times f(x, y), in the layout of the weights.");
  nb::class_<IntervalProblem, Problem>(m, "IntervalProblem", "Distances of rows over v from intervals: a piecewise linear penalty, a block each.")
      .def(nb::init<nb::object, Array<std::int64_t>, Array<std::int64_t>, Array<double>, Array<double>, Array<double>, Array<double>>(),
           "constrained"_a, "indptr"_a, "indices"_a, "values"_a, "low"_a, "high"_a, "weight"_a);
  nb::class_<JointProblem, Problem>(m, "JointProblem", "Several problems over the same weights, as one: their examples one after the other.")
      .def(nb::init<const nb::list&>(), "problems"_a);
  bind_best<Array<float>>(cls);
  bind_best<Array<double>>(cls);
  bind_best<SparseWeights>(cls);
}

}  // namespace mm
