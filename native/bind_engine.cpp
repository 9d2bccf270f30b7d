// Python bindings of the dual engine.
#include <variant>

#include "bind_member.hpp"
#include "bind_link.hpp"
#include "bind_state.hpp"
#include "certify.hpp"
#include "formulated.hpp"
#include "ownership.hpp"
#include "polling.hpp"
#include "problem.hpp"
#include "shares.hpp"
#include "widen.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

constexpr const char* kNoShares = "with a kernel u is not a sum over shares of the examples";
constexpr const char* kKernelLink = "with a kernel w belongs to L2: the link must be the identity and nu 0";

// An engine of either precision, with the calls that Python makes.
class EngineHandle final : public Owned {
 public:
  EngineHandle(Problem& problem, double C, bool single, bool factored, const Link& link, double nu,
               const std::string& slack, const std::string& rescale)
      : Owned("the engine"), problem_(problem), formulated_(problem, slack, rescale), formulation_(slack, rescale), nu_(nu) {
    require(std::isfinite(C) && C > 0.0, "C must be positive and finite, got " + std::to_string(C));
    require(std::isfinite(nu) && nu >= 0.0, "nu must be finite and not negative, got " + std::to_string(nu));
    require(!factored || (formulated_.plain() && formulated_.slack() == Slack::kLinear),
            "blocks are kept in parts with linear slacks and margin rescaling only");
    const auto make = [&]<class T>(T) {
      const Structure<T>* structure = formulated_.structure<T>();
      require(structure != nullptr, "this structure trains with 8-byte weights only (dtype=\"float64\")");
      structure->require_truth();
      engine_ = std::make_shared<Engine<T>>(*structure, C, factored, checked(link, C, *structure), formulated_.slack());
    };
    if (single) {
      make(float{});
    } else {
      make(double{});
    }
  }

  template <class Call>
  auto run(std::optional<double> seconds, Call&& call) {
    return std::visit([&](auto& engine) { return run_polled(engine->loop, seconds, [&] { return call(*engine); }); }, engine_);
  }

  // `batch`: where the oracle is asked in other processes, so many examples at a time are asked for under one w.
  PassResult exact_pass(Order order, const PassOptions& options, std::optional<double> seconds, std::size_t batch, int threads) {
    check_order(order, problem_.n_examples());
    return run(seconds, [&]<class T>(Engine<T>& engine) {
      const std::span<const std::uint32_t> visited{order.data(), order.shape(0)};
      const Expecting<T> expecting(*formulated_.structure<T>(), visited, batch);
      return engine.exact_pass(visited, options, threads);
    });
  }
  PassResult cached_pass(Order order, const PassOptions& options, std::optional<double> seconds, int threads) {
    check_order(order, problem_.n_examples());
    return run(seconds, [&](auto& engine) { return engine.cached_pass({order.data(), order.shape(0)}, options, threads); });
  }
  PassResult newton_pass(const NewtonOptions& options, std::optional<double> seconds) {
    return run(seconds, [&](auto& engine) { return engine.newton_pass(options); });
  }
  PassResult coordinate_pass(Order order, const CoordinateOptions& options, std::optional<double> seconds) {
    check_order(order, problem_.n_examples());
    return run(seconds, [&](auto& engine) { return engine.coordinate_pass({order.data(), order.shape(0)}, options); });
  }
  bool offers_coordinates() const {
    return std::visit([](const auto& e) { return e->offers_coordinates(); }, engine_);
  }
  // Is the dual a quadratic function, as it is where w is linear in u?
  bool quadratic() const {
    return std::visit([](const auto& e) { return e->weights().quadratic(); }, engine_);
  }
  PassResult collect_pass(int threads, std::optional<double> seconds, bool measured) {
    return run(seconds, [&](auto& engine) { return engine.collect_pass(threads, measured); });
  }
  PassResult interior_pass(double accuracy, int max_iterations, bool warm, bool prune, std::optional<double> seconds) {
    require(accuracy >= 0.0, "the accuracy must not be negative");
    require(max_iterations >= 1, "max_iterations must be at least 1");
    return run(seconds, [&](auto& engine) { return engine.interior_pass({accuracy, max_iterations, warm}, prune); });
  }
  nb::dict interior_size() const {
    const InteriorSize size = std::visit([](const auto& e) { return e->interior_size(); }, engine_);
    nb::dict d;
    d["columns"] = size.columns, d["planes"] = size.planes, d["work"] = size.work, d["bytes"] = size.bytes;
    return d;
  }
  double hinge(int threads) {
    return run(std::nullopt, [&](auto& engine) { return engine.hinge(threads); });
  }
  double objective(int threads) {
    return run(std::nullopt, [&](auto& engine) { return engine.objective(threads); });
  }
  double unsure() const { return unsure_; }
  std::optional<std::size_t> missed() const { return missed_; }
  bool unbounded() const {
    return std::visit([](const auto& e) { return e->blocks().unbounded(); }, engine_);
  }
  nb::object average() const {
    return std::visit([](const auto& e) {
      using T = std::decay_t<decltype(*e->weights().data())>;
      std::vector<T> out(e->weights().size());
      e->average().write(e->weights(), out.data());
      return to_numpy(std::move(out));
    }, engine_);
  }
  void forget_average() {
    std::visit([](auto& e) { e->average().forget(); }, engine_);
  }
  nb::object block_gaps() const {
    return to_numpy(std::visit([](const auto& e) { return e->blocks().gaps(); }, engine_));
  }
  // The slack of each example at the present w: max over y of F_i(y).
  nb::object slacks(int threads) {
    const bool looked = run(std::nullopt, [&](auto& engine) { return engine.look(threads, Slack::kLinear); });
    require(looked, "the pass over the examples was cut short");
    return to_numpy(std::visit([](auto& e) { return std::vector<double>(e->blocks().slacks()); }, engine_));
  }
  // All planes with their multipliers: examples, losses, α, and Δf as sparse rows.
  nb::tuple planes() {
    return std::visit([&](auto& e) {
      using T = std::decay_t<decltype(*e->weights().data())>;
      const Structure<T>& structure = *formulated_.structure<T>();
      auto ws = structure.workspace();
      auto delta = Weights<T>::recorder(structure.n_weights());
      std::vector<std::int64_t> example, indptr{0}, indices;
      std::vector<double> loss, alpha, values;
      std::vector<std::size_t> places;
      const double one = 1.0;
      for_windows(e->blocks().windows(), e->blocks().n_examples(), [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
          for (const auto& part : e->blocks()[i]) {
            for (std::size_t k = 1; k < part.set.size(); ++k) {
              const CodeView code = part.set.code(k);
              delta.wipe();
              structure.accumulate(*ws, i, part.index, {&code, 1}, &one, delta);
              delta.places(places);
              example.push_back(std::int64_t(i));
              loss.push_back(part.set.loss()[k]);
              alpha.push_back(part.set.alpha()[k]);
              for (const std::size_t j : places) {
                indices.push_back(std::int64_t(j));
                values.push_back(double(delta.data()[j]));
              }
              indptr.push_back(std::int64_t(indices.size()));
            }
          }
        }
      });
      return nb::make_tuple(to_numpy(std::move(example)), to_numpy(std::move(loss)), to_numpy(std::move(alpha)),
                            to_numpy(std::move(indptr)), to_numpy(std::move(indices)), to_numpy(std::move(values)));
    }, engine_);
  }
  double expected_loss() const {
    return std::visit([](const auto& e) { return e->blocks().expected_loss(); }, engine_);
  }
  double penalty() const {
    return std::visit([](const auto& e) { return e->weights().penalty(); }, engine_);
  }
  double conjugate() const {
    return std::visit([](const auto& e) { return e->weights().conjugate(); }, engine_);
  }
  // D at the present multipliers, counted anew.
  double dual() const {
    return std::visit([](const auto& e) { return e->dual(); }, engine_);
  }
  void beta_step() {
    std::visit([](auto& e) { e->beta_step(); }, engine_);
  }
  double unsettled() const {
    return std::visit([](const auto& e) { return e->weights().unsettled(); }, engine_);
  }
  double nu() const { return nu_; }
  // Of the weights, without a look at them.
  std::size_t n_weights() const {
    return std::visit([](const auto& e) { return e->n_weights(); }, engine_);
  }
  // Would so many threads make the steps of a pass at the same time?
  bool joins(int threads) const {
    return std::visit([&](const auto& e) { return e->joins(threads); }, engine_);
  }
  // Are the weights those on which several threads agreed?
  bool agrees() const {
    return std::visit([](const auto& e) { return e->agreed_weights(); }, engine_);
  }
  int weight_bytes() const { return std::holds_alternative<std::shared_ptr<Engine<float>>>(engine_) ? 4 : 8; }
  std::pair<std::string, std::string> formulation() const { return formulation_; }
  // Is w a map of u that the structure knows (a kernel)?
  bool mapped() const {
    return std::visit([](const auto& e) { return e->weights().mapped(); }, engine_);
  }
  Link link() const {
    return std::visit([](const auto& e) { return e->weights().link(); }, engine_);
  }
  double C() const {
    return std::visit([](const auto& e) { return e->C(); }, engine_);
  }
  bool factored() const {
    return std::visit([](const auto& e) { return e->blocks().factored(); }, engine_);
  }
  void rescale(double C) {
    require(std::isfinite(C) && C > 0.0, "C must be positive and finite, got " + std::to_string(C));
    std::visit([&](auto& e) {
      const Link link = e->weights().link();
      e->rescale(C);
      if (nu_ > 0.0) e->relink(with_decay(link, C));
    }, engine_);
  }

  void relink(const Link& link) {
    std::visit([&](auto& e) {
      using T = std::decay_t<decltype(*e->weights().data())>;
      const Link own = widened_ ? mm::widened(link, narrow(), wide()) : link;
      e->relink(checked(own, e->C(), *formulated_.structure<T>()));
    }, engine_);
  }

  // Another fixed linear term u₀; None: none.
  void set_fixed(nb::handle fixed) {
    require(!mapped(), "with a kernel there are no weights of features that a fixed linear term could be of");
    require(formulated_.slack() != Slack::kHard, "a hard margin has no fixed linear term: its weights are scaled as a whole");
    std::visit([&](auto& e) {
      using T = std::decay_t<decltype(*e->weights().data())>;
      if (fixed.is_none()) return e->set_fixed(nullptr);
      Array<T> array;
      require(nb::try_cast(fixed, array, false), "the fixed linear term must have the type of the weights");
      require(array.shape(0) == e->weights().size(), "the fixed linear term must have an entry for each weight");
      for (std::size_t j = 0; j < array.shape(0); ++j) require(std::isfinite(array.data()[j]), "the fixed linear term must be finite");
      e->set_fixed(array.data());
    }, engine_);
  }
  nb::object fixed() const {
    return std::visit([](const auto& e) -> nb::object {
      using T = std::decay_t<decltype(*e->weights().data())>;
      const T* fixed = e->weights().fixed();
      if (fixed == nullptr) return nb::none();
      return to_numpy(std::vector<T>(fixed, fixed + e->weights().size()));
    }, engine_);
  }
  // u receives what was added to it elsewhere; planes and multipliers here stay as they are.
  void receive(nb::handle change) {
    require(!mapped(), "with a kernel u is not the sum of the features of planes alone");
    std::visit([&](auto& e) {
      using T = std::decay_t<decltype(*e->weights().data())>;
      Array<T> array;
      require(nb::try_cast(change, array, false), "the change of u must have the type of the weights");
      require(array.shape(0) == e->weights().size(), "the change of u must have an entry for each weight");
      for (std::size_t j = 0; j < array.shape(0); ++j) require(std::isfinite(array.data()[j]), "the change of u must be finite");
      e->receive(array.data());
    }, engine_);
  }

  template <class Call>
  auto with_certifier(int threads, Call&& call) {
    return std::visit([&](auto& e) {
      using T = std::decay_t<decltype(*e->weights().data())>;
      const Structure<double>& exact = *formulated_.structure<double>();
      std::optional<nb::gil_scoped_release> release;
      if (exact.thread_safe()) release.emplace();
      Certifier<T> certifier(*e, exact, problem_, threads);
      const auto answer = call(certifier);
      unsure_ = certifier.unsure, missed_ = certifier.missed;
      return answer;
    }, engine_);
  }

  // Primal and dual in 8-byte arithmetic, w rebuilt from the multipliers. The engine goes on with
  // the rebuilt weights, so that what is returned is what was certified, as it is rounded.
  std::pair<double, double> certify(int threads) {
    return with_certifier(threads, [](auto& certifier) { return certifier.certify(); });
  }

  // ---- shares of the examples (shares.hpp) ----

  template <class Call>
  auto with_array(nb::handle given, Call&& call) const {
    require(!mapped(), kNoShares);
    return std::visit([&](const auto& e) {
      using T = std::decay_t<decltype(*e->weights().data())>;
      Array<T> array;
      require(nb::try_cast(given, array, false), "the sums must have the type of the weights");
      require(array.shape(0) == e->weights().size(), "the sums must have an entry for each weight");
      return call(*e, array.data());
    }, engine_);
  }

  nb::tuple changes(nb::handle base, double scale) const {
    return with_array(base, [&](const auto& e, const auto* array) {
      SparseChange found = mm::changes(e.weights(), array, scale);
      return nb::make_tuple(to_numpy(std::move(found.indices)), to_numpy(std::move(found.values)));
    });
  }
  void settle(nb::handle sums, double C) {
    require(std::isfinite(C) && C > 0.0, "C must be positive and finite, got " + std::to_string(C));
    with_array(sums, [&](auto& e, const auto* array) { e.settle(array, C); });
  }
  nb::object own_sums() {
    require(!mapped(), kNoShares);
    return to_numpy(std::visit([&](const auto& e) { return mm::own_sums(*e, *formulated_.structure<double>()); }, engine_));
  }
  nb::tuple place(Array<double> sums, int threads) {
    require(!mapped(), kNoShares);
    require(sums.shape(0) == formulated_.structure<double>()->n_weights(), "expected an entry for each 8-byte weight");
    const auto [penalty, conjugate, risk] = with_certifier(threads, [&](auto& certifier) { return certifier.place(sums.data()); });
    return nb::make_tuple(penalty, conjugate, risk);
  }
  // f(engine, structure), for what is built on the engine (bind_member.hpp).
  template <class Call>
  void visit(Call&& call) {
    require(!mapped(), kNoShares);
    std::visit([&](auto& e) {
      using T = std::decay_t<decltype(*e->weights().data())>;
      call(*e, *formulated_.structure<T>());
    }, engine_);
  }
  // Σ of what the slacks cost at the last w that was looked at, and Σ α l less the price of quadratic slacks.
  std::pair<double, double> risk_and_worth() const {
    return std::visit([](const auto& e) { return std::pair(e->blocks().risk(), e->blocks().expected_loss() - e->blocks().expected_price()); }, engine_);
  }

  // The primal of weights that need not be the present ones, under the same objective.
  template <class T>
  double primal_of(Array<T> weights, int threads) {
    require(!mapped(), "with a kernel the primal is that of multipliers, not of weights");
    if constexpr (sizeof(T) == 4) {
      if (widened_) {  // weights of before
        require(weights.shape(0) == narrow().n_weights(), "expected " + std::to_string(narrow().n_weights()) + " weights, got " + std::to_string(weights.shape(0)));
        const std::vector<double> copy = mm::widened(weights.data(), narrow(), wide());
        return with_certifier(threads, [&](auto& certifier) { return primal_at(certifier, copy.data()); });
      }
    }
    auto* engine = std::get_if<std::shared_ptr<Engine<T>>>(&engine_);
    require(engine != nullptr, "the weights must be of the type of the engine's own");
    const std::size_t n = (*engine)->weights().size();
    require(weights.shape(0) == n, "expected " + std::to_string(n) + " weights, got " + std::to_string(weights.shape(0)));
    return with_certifier(threads, [&](auto& certifier) { return primal_at(certifier, weights.data()); });
  }

  // ---- 8-byte weights in the place of 4-byte ones (widen.hpp) ----

  // ---- problems that grow (chunked.hpp) ----

  // Take the examples in that the problem has got since.
  void grow() {
    std::visit([](auto& e) { e->grow(); }, engine_);
  }
  // u and w of the multipliers from scratch, in 8-byte arithmetic, and the running sums with them.
  void refresh() {
    with_certifier(1, [](auto& certifier) { return certifier.refresh(); });
  }
  // Take the planes of some examples out of u, and make u anew.
  void release(Order examples) {
    check_order(examples, problem_.n_examples());
    std::visit([&](auto& e) { e->release({examples.data(), examples.shape(0)}); }, engine_);
    refresh();
  }
  std::size_t shed(std::size_t budget) {
    return std::visit([&](auto& e) { return e->shed(budget); }, engine_);
  }

  // What rounding does to the primal at the present multipliers; 0 where weights are 8-byte.
  double rounding(int threads) {
    if (std::holds_alternative<std::shared_ptr<Engine<double>>>(engine_)) return 0.0;
    const bool looked = run(std::nullopt, [&](auto& engine) { return engine.look(threads, engine.blocks().slack()); });
    if (!looked) return std::nan("");
    const std::vector<double> own = std::visit([](auto& e) { return e->blocks().slacks(); }, engine_);
    const double unsure = unsure_;
    const std::optional<std::size_t> missed = missed_;
    const double answer = with_certifier(threads, [&](auto& certifier) { return certifier.rounding(own); });
    unsure_ = unsure, missed_ = missed;  // those of the last certificate
    return answer;
  }
  // Go on with 8-byte weights, from the same multipliers.
  void widen() {
    const auto* engine = std::get_if<std::shared_ptr<Engine<float>>>(&engine_);
    require(engine != nullptr, "the weights are 8-byte already");
    require(!windowed_, "weights do not become wider where planes are kept in windows");
    std::shared_ptr<Engine<double>> fresh = mm::widened(**engine, narrow(), wide());
    engine_ = std::move(fresh);
    widened_ = true;
  }
  bool was_widened() const { return widened_; }
  // An array with an entry for each of the 4-byte weights, in the layout of the 8-byte ones.
  nb::object widened_array(Array<double> array) {
    require(problem_.offers_single() && array.shape(0) == narrow().n_weights(), "expected an entry for each 4-byte weight");
    return to_numpy(mm::widened(array.data(), narrow(), wide()));
  }

  bool solves(const Problem& problem) const { return &problem == &problem_; }

  // ---- windows (plane_windows.hpp) ----

  ~EngineHandle() {
    if (windowed_) problem_.in_windows = false;
  }
  void set_windows(std::vector<std::size_t> ends, std::size_t limit, int descriptor) {
    require(!problem_.in_windows, "another engine keeps windows of this problem");
    require(!mapped(), "with a kernel all examples are needed at once");
    std::visit([&](auto& e) { e->set_windows(std::move(ends), limit, descriptor); }, engine_);
    problem_.in_windows = windowed_ = true;
  }
  bool windowed() const { return windowed_; }
  nb::object window_state(std::size_t k) {
    return std::visit([&](auto& e) {
      require(windowed_ && k < e->windows()->size(), "there is no such window");
      const std::vector<std::byte> bytes = e->windows()->state(k);
      const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
      return to_numpy(std::vector<std::uint8_t>(first, first + bytes.size()));
    }, engine_);
  }
  void restore_window(std::size_t k, Array<std::uint8_t> piece) {
    std::visit([&](auto& e) {
      require(windowed_ && k < e->windows()->size(), "there is no such window");
      e->windows()->restore(k, {reinterpret_cast<const std::byte*>(piece.data()), piece.shape(0)});
    }, engine_);
  }
  nb::dict window_size() const {
    return std::visit([](const auto& e) {
      nb::dict d;
      d["windows"] = e->windows() == nullptr ? 0 : e->windows()->size();
      d["away"] = e->windows() == nullptr ? 0 : e->windows()->n_away();
      d["file_bytes"] = e->windows() == nullptr ? 0 : e->windows()->file_bytes();
      return d;
    }, engine_);
  }

  // The weights, as a view that keeps the engine alive. Solvers that average w write to it; their engines make no passes
  // of several threads, whose copies would not follow.
  static nb::object weights(nb::handle self) {
    EngineHandle& handle = nb::cast<EngineHandle&>(self);
    return std::visit([&](auto& e) -> nb::object {
      using T = std::decay_t<decltype(*e->weights().data())>;
      struct View {
        nb::object handle;
        std::shared_ptr<Engine<T>> engine;
      };
      nb::capsule owner(new View{nb::borrow(self), e}, [](void* view) noexcept { delete static_cast<View*>(view); });
      return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(const_cast<T*>(e->weights().data()), {e->weights().size()}, owner));
    }, handle.engine_);
  }

  // Copies: u = C Σ α Δf, and the β of w = (u - β) / ρ₂ where it has a cost-to-move.
  nb::object sums() const {
    return std::visit([](const auto& e) {
      using T = std::decay_t<decltype(*e->weights().data())>;
      return to_numpy(std::vector<T>(e->weights().sums(), e->weights().sums() + e->weights().size()));
    }, engine_);
  }
  nb::object beta() const {
    return std::visit([](const auto& e) {
      using T = std::decay_t<decltype(*e->weights().data())>;
      const T* beta = e->weights().beta();
      return to_numpy(beta == nullptr ? std::vector<T>() : std::vector<T>(beta, beta + e->weights().size()));
    }, engine_);
  }

  nb::dict size() const {
    return std::visit([](const auto& e) {
      const auto size = e->size();
      nb::dict d;
      d["parts"] = size.parts;
      d["planes"] = size.planes;
      d["plane_bytes"] = size.plane_bytes;
      d["bytes"] = size.bytes;
      return d;
    }, engine_);
  }

  nb::dict state() const {
    return std::visit([](const auto& e) { return state_of(e); }, engine_);
  }
  void restore(const nb::dict& d) {
    std::visit([&](auto& e) {
      using T = std::decay_t<decltype(*e->weights().data())>;
      restore_state(e, d, *formulated_.structure<T>(), windowed_);
    }, engine_);
  }

 private:
  const Structure<float>& narrow() { return *formulated_.structure<float>(); }
  const Structure<double>& wide() { return *formulated_.structure<double>(); }

  template <class CertifierOf, class T>
  static double primal_at(CertifierOf& certifier, const T* weights) {
    if constexpr (std::is_same_v<typename CertifierOf::Precision, T>) {
      return certifier.primal_of(weights);
    } else {
      return 0.0;  // not met: the engine is of the type of the weights
    }
  }

  // With the r of (IV.14) that goes with ν; 1/scale is the paper's ρ₂.
  Link with_decay(Link link, double C) const {
    const double price = nu_ * C / link.scale.all;
    link.decay = nu_ > 0.0 ? price / (1.0 + price) : 0.0;
    return link;
  }
  template <class T>
  Link checked(const Link& link, double C, const Structure<T>& structure) const {
    link.check(structure.n_weights());
    require(nu_ == 0.0 || link.uniform(), "a cost-to-move of beta goes with one pair of thresholds and one scale for all weights");
    require(formulated_.slack() != Slack::kHard || link.uniform(), "hard margins scale all weights by one factor: the link must be one pair of thresholds and one scale for all");
    require(!structure.maps_weights() || (link.identity() && nu_ == 0.0), kKernelLink);
    return with_decay(link, C);
  }

  Problem& problem_;
  Formulated formulated_;
  std::pair<std::string, std::string> formulation_;  // slack, rescale
  std::optional<std::size_t> missed_;  // where the oracle was worst beside a kept plane, in the last certificate
  double unsure_ = 0.0;  // by how much an oracle may have missed its best output, in the last certificate
  double nu_;  // cost-to-move of β
  // Shared with the arrays that are views of the weights: they outlive `widen`.
  std::variant<std::shared_ptr<Engine<float>>, std::shared_ptr<Engine<double>>> engine_;
  bool widened_ = false;
  bool windowed_ = false;
};

}  // namespace

void bind_engine(nb::module_& m) {
  bind_link(m);

  nb::class_<PassOptions>(m, "PassOptions")
      .def("__init__",
           [](PassOptions* self, double tau, double tau_inner, double tau_relative, int max_smo,
              int rounds, double relaxation, bool recombine, double min_violation, bool prune,
              double mu, bool beta_steps, double epsilon, bool frank_wolfe, bool average, bool coordinate, std::uint64_t seed, double open, double share, double tolerance, int replay, std::size_t seen, bool joint, int sweeps, bool measure, double steepness) {
             require(tau >= 0 && tau_inner >= 0 && tau_relative >= 0 && min_violation >= 0, "tolerances must not be negative");
             require(mu >= 0 && std::isfinite(mu), "mu must not be negative");
             require(relaxation > 0 && relaxation < 2, "relaxation must be between 0 and 2");
             require(share >= 0 && tolerance >= 0 && std::isfinite(open) && std::isfinite(share), "open and share must be finite, share and tolerance not negative");
             require(replay >= 0, "replay must not be negative");
             require(sweeps >= 0, "sweeps must not be negative");
             require(steepness >= 0 && std::isfinite(steepness), "steepness must not be negative");
             require(max_smo >= 1 && rounds >= 1, "max_smo and rounds must be at least 1");
             new (self) PassOptions{tau, tau_inner, tau_relative, max_smo, rounds, relaxation, recombine, min_violation, prune, mu, beta_steps, epsilon, frank_wolfe, average, coordinate, seed, replay, seen, open, share, tolerance, joint, sweeps, measure, steepness};
           },
           nb::kw_only(), "tau"_a = 0.0, "tau_inner"_a = 0.0, "tau_relative"_a = 0.0,
           "max_smo"_a = 1000, "rounds"_a = 1, "relaxation"_a = 1.0, "recombine"_a = false,
           "min_violation"_a = 0.0, "prune"_a = true, "mu"_a = 0.0, "beta_steps"_a = true,
           "epsilon"_a = -1.0, "frank_wolfe"_a = false, "average"_a = false, "coordinate"_a = false, "seed"_a = 0,
           "open"_a = 0.0, "share"_a = 0.0, "tolerance"_a = kInfinity, "replay"_a = 0, "seen"_a = 0, "joint"_a = false, "sweeps"_a = 1, "measure"_a = false, "steepness"_a = 0.0);

  m.def("core_latency", [](int rounds) { return core_latency(std::clamp(rounds, 1, 1'000'000)); }, "rounds"_a, nb::call_guard<nb::gil_scoped_release>());

  nb::class_<NewtonOptions>(m, "NewtonOptions")
      .def("__init__",
           [](NewtonOptions* self, int products, int solves, double flat, double worth) {
             new (self) NewtonOptions{products, solves, flat, worth};
           },
           nb::kw_only(), "products"_a = 30, "solves"_a = 10, "flat"_a = 0.02, "worth"_a = 0.0);

  nb::class_<CoordinateOptions>(m, "CoordinateOptions")
      .def("__init__",
           [](CoordinateOptions* self, int rounds, double enough, double goal, double shrink, std::uint64_t seed) {
             require(rounds >= 1, "rounds must be at least 1");
             require(enough >= 0 && goal >= 0 && shrink >= 0, "enough, goal and shrink must not be negative");
             new (self) CoordinateOptions{rounds, enough, goal, shrink, seed};
           },
           nb::kw_only(), "rounds"_a = 10, "enough"_a = 0.1, "goal"_a = 0.0, "shrink"_a = kInfinity, "seed"_a = 0);

  nb::class_<PassResult>(m, "PassResult")
      .def_ro("gap", &PassResult::gap)
      .def_ro("cached_gap", &PassResult::cached_gap)
      .def_ro("hinge", &PassResult::hinge)
      .def_ro("gain", &PassResult::gain)
      .def_ro("work", &PassResult::work)
      .def_ro("psi_max", &PassResult::psi_max)
      .def_ro("psi_cached_max", &PassResult::psi_cached_max)
      .def_ro("looked", &PassResult::looked)
      .def_ro("oracle_calls", &PassResult::oracle_calls)
      .def_ro("visits", &PassResult::visits)
      .def_ro("added", &PassResult::added)
      .def_ro("solved", &PassResult::solved)
      .def_ro("smo_steps", &PassResult::smo_steps)
      .def_ro("merges", &PassResult::merges)
      .def_ro("interrupted", &PassResult::interrupted);

  OwnedClass<EngineHandle>(m, "Engine")
      .init<Problem&, double, bool, bool, const Link&, double, const std::string&, const std::string&>("problem"_a, "C"_a, "single"_a = true,
           "factored"_a = true, "link"_a = Link{}, "nu"_a = 0.0, "slack"_a = "linear", "rescale"_a = "margin", nb::keep_alive<1, 2>())
      .def("exact_pass", &EngineHandle::exact_pass, "order"_a, "options"_a, "seconds"_a = nb::none(), "batch"_a = 0, "threads"_a = 1)
      .def("cached_pass", &EngineHandle::cached_pass, "order"_a, "options"_a, "seconds"_a = nb::none(), "threads"_a = 1)
      .def("newton_pass", &EngineHandle::newton_pass, "options"_a, "seconds"_a = nb::none())
      .def("coordinate_pass", &EngineHandle::coordinate_pass, "order"_a, "options"_a, "seconds"_a = nb::none())
      .property("offers_coordinates", &EngineHandle::offers_coordinates)
      .property("quadratic", &EngineHandle::quadratic)
      .def("collect_pass", &EngineHandle::collect_pass, "threads"_a = 1, "seconds"_a = nb::none(), "measured"_a = true)
      .def("interior_pass", &EngineHandle::interior_pass, "accuracy"_a = 0.0, "max_iterations"_a = 100, "warm"_a = true, "prune"_a = false,
           "seconds"_a = nb::none())
      .def("interior_size", &EngineHandle::interior_size)
      .def("hinge", &EngineHandle::hinge, "threads"_a = 1)
      .def("expected_loss", &EngineHandle::expected_loss)
      .def("penalty", &EngineHandle::penalty)
      .def("conjugate", &EngineHandle::conjugate)
      .def("dual", &EngineHandle::dual)
      .def("objective", &EngineHandle::objective, "threads"_a = 1)
      .def("average", &EngineHandle::average)
      .def("forget_average", &EngineHandle::forget_average)
      .property("unbounded", &EngineHandle::unbounded)
      .def("block_gaps", &EngineHandle::block_gaps)
      .def("slacks", &EngineHandle::slacks, "threads"_a = 1)
      .def("planes", &EngineHandle::planes)
      .property("oracle_error_bound", &EngineHandle::unsure)
      .property("missed", &EngineHandle::missed)
      .def("beta_step", &EngineHandle::beta_step)
      .def("unsettled", &EngineHandle::unsettled)
      .def("sums", &EngineHandle::sums)
      .def("beta", &EngineHandle::beta)
      .def("certify", &EngineHandle::certify, "threads"_a = 1)
      .def("primal_of", &EngineHandle::primal_of<float>, "weights"_a, "threads"_a = 1)
      .def("primal_of", &EngineHandle::primal_of<double>, "weights"_a, "threads"_a = 1)
      .def("rounding", &EngineHandle::rounding, "threads"_a = 1)
      .def("widen", &EngineHandle::widen)
      .def("widened_array", &EngineHandle::widened_array, "array"_a)
      .property("widened", &EngineHandle::was_widened)
      .def("rescale", &EngineHandle::rescale, "C"_a)
      .def("relink", &EngineHandle::relink, "link"_a)
      .def("set_fixed", &EngineHandle::set_fixed, "fixed"_a.none())
      .def("receive", &EngineHandle::receive, "change"_a)
      .def("changes", &EngineHandle::changes, "base"_a, "scale"_a)
      .def("settle", &EngineHandle::settle, "sums"_a, "C"_a)
      .def("own_sums", &EngineHandle::own_sums)
      .def("place", &EngineHandle::place, "sums"_a, "threads"_a = 1)
      .def("risk_and_worth", &EngineHandle::risk_and_worth)
      .def("grow", &EngineHandle::grow)
      .def("refresh", &EngineHandle::refresh)
      .def("release", &EngineHandle::release, "examples"_a)
      .def("shed", &EngineHandle::shed, "budget"_a)
      .property("fixed", &EngineHandle::fixed)
      .def("state", &EngineHandle::state)
      .def("restore", &EngineHandle::restore, "state"_a)
      .def("size", &EngineHandle::size)
      .property("C", &EngineHandle::C)
      .property("link", &EngineHandle::link)
      .property("formulation", &EngineHandle::formulation)
      .property("nu", &EngineHandle::nu)
      .property("factored", &EngineHandle::factored)
      .def("solves", &EngineHandle::solves, "problem"_a)
      .def("set_windows", &EngineHandle::set_windows, "ends"_a, "limit"_a, "descriptor"_a)
      .property("windowed", &EngineHandle::windowed)
      .def("window_state", &EngineHandle::window_state, "k"_a)
      .def("restore_window", &EngineHandle::restore_window, "k"_a, "piece"_a)
      .def("window_size", &EngineHandle::window_size)
      .def("joins", &EngineHandle::joins, "threads"_a)
      .property("agrees", &EngineHandle::agrees)
      .property("n_weights", &EngineHandle::n_weights)
      .property("weight_bytes", &EngineHandle::weight_bytes)
      .property("weights", &EngineHandle::weights);

  bind_member<EngineHandle>(m);
}

}  // namespace mm
