// Python bindings of consensus between processes: a share's part in it (member.hpp) and z of all shares (meeting.hpp).
#pragma once

#include <variant>

#include "bindings.hpp"
#include "certify.hpp"
#include "member.hpp"
#include "meeting.hpp"
#include "ownership.hpp"

namespace mm {

inline ShortFloats short_floats(int base) {
  require(base >= 0 && base <= ShortFloats::kMaxBase, "the scale of a message is damaged");
  return {base};
}
template <class X>
std::span<const X> span_of(const Array<X>& array) { return {array.data(), array.shape(0)}; }

using LanesArray = Array<std::uint64_t>;
template <class T>
typename Member<T>::PlacesView places(const Array<std::uint32_t>& chunks, const LanesArray& lanes) { return {span_of(chunks), span_of(lanes)}; }

// With the ownership of its engine, which must outlive it. `Handle`: that of the engine.
template <class Handle>
class MemberHandle {
 public:
  explicit MemberHandle(Handle& engine) : engine_(engine) {
    const Owned::Hold hold(engine_);
    engine_.visit([&](auto& e, const auto& structure) {
      using T = std::decay_t<decltype(*e.weights().data())>;
      member_.template emplace<Member<T>>(e, structure);
    });
  }

  // Rows that the examples read; weights in a row.
  nb::tuple reads() {
    return with([](auto& member) { return nb::make_tuple(to_numpy(std::vector<std::uint32_t>(member.reads())), member.chunks().row); });
  }
  void share(Array<std::uint8_t> common) {
    with([&](auto& member) { member.share(span_of(common)); });
  }
  nb::tuple open(double C, double steepness) {
    require(std::isfinite(C) && C > 0.0 && steepness >= 0.0, "C must be positive and finite, the steepness not negative");
    return with([&](auto& member) { return opening(released([&] { return member.open(C, steepness); })); });
  }
  nb::tuple measure(double steepness) {
    require(steepness > 0.0, "the metric must be steep");
    return with([&](auto& member) { return opening(released([&] { return member.measure(steepness); })); });
  }
  void follow(Array<std::uint32_t> chunks, LanesArray lanes, Array<std::uint16_t> codes, int base, bool show) {
    const ShortFloats scale = short_floats(base);
    with([&]<class T>(Member<T>& member) {
      const nb::gil_scoped_release release;
      member.follow(places<T>(chunks, lanes), span_of(codes), scale, show);
    });
  }
  void aim() {
    with([](auto& member) { member.aim(); });
  }
  void begin_steps() {
    with([](auto& member) { member.begin_steps(); });
  }
  void end_steps() {
    with([](auto& member) { member.end_steps(); });
  }
  nb::tuple take(double relaxation) {
    require(relaxation > 0.0 && relaxation < 2.0, "the relaxation must be between 0 and 2");
    return with([&](auto& member) {
      auto told = released([&] { return member.take(relaxation); });
      return nb::make_tuple(to_numpy(std::move(told.joined.chunks)), to_numpy(std::move(told.joined.lanes)), to_numpy(std::move(told.codes)), told.scale.base, told.residual);
    });
  }
  // Ω(w) and Ω*(u) in own rows.
  std::pair<double, double> own() {
    return with([](auto& member) {
      const auto sums = member.own();
      return std::pair(sums.penalty, sums.conjugate);
    });
  }
  nb::tuple exact(int threads) {
    return with([&]<class T>(Member<T>& member) {
      auto exact = certified<T>(threads, [&](auto& certifier) { return certifier.exact_of(member); });
      return nb::make_tuple(to_numpy(std::move(exact.places.chunks)), to_numpy(std::move(exact.places.lanes)), to_numpy(std::move(exact.sums)), exact.conjugate);
    });
  }
  // w in shared rows near by.
  void place(Array<std::uint32_t> chunks, LanesArray lanes, nb::handle values) {
    with([&]<class T>(Member<T>& member) {
      Array<T> array;
      require(nb::try_cast(values, array, false), "w must have the type of the weights");
      member.place(places<T>(chunks, lanes), span_of(array));
    });
  }
  // At that w: Ω(w) in own rows, and what the slacks cost.
  std::pair<double, double> look(int threads) {
    return with([&]<class T>(Member<T>& member) {
      return certified<T>(threads, [&](auto& certifier) { return certifier.look_at(member); });
    });
  }
  nb::tuple weights() {
    return with([](auto& member) {
      auto found = released([&] { return member.weights(); });
      return nb::make_tuple(to_numpy(std::move(found.chunks)), to_numpy(std::move(found.values)));
    });
  }

 private:
  template <class Call>
  auto with(Call&& call) {
    const Owned::Hold hold(engine_);
    if (auto* member = std::get_if<Member<float>>(&member_)) return call(*member);
    return call(std::get<Member<double>>(member_));
  }
  template <class Call>
  static auto released(Call&& call) {
    const nb::gil_scoped_release release;
    return call();
  }
  // The engine is of the type of its member.
  template <class T, class Call>
  auto certified(int threads, Call&& call) {
    return engine_.with_certifier(threads, [&]<class CertifierOf>(CertifierOf& certifier) {
      if constexpr (std::is_same_v<typename CertifierOf::Precision, T>) {
        return call(certifier);
      } else {
        return std::decay_t<decltype(call(std::declval<Certifier<T>&>()))>{};
      }
    });
  }
  template <class Opening>
  static nb::tuple opening(Opening&& opening) {
    return nb::make_tuple(to_numpy(std::move(opening.metric)), to_numpy(std::move(opening.joined.chunks)), to_numpy(std::move(opening.joined.lanes)), to_numpy(std::move(opening.sums)));
  }

  Handle& engine_;
  std::variant<std::monostate, Member<float>, Member<double>> member_;
};

// z of all shares; `single`: they have 4-byte weights.
class MeetingHandle final : public Owned {
  template <class Call>
  auto visit(Call&& call) {
    if (auto* m = std::get_if<Meeting<float>>(&meeting_)) return call(*m);
    return call(std::get<Meeting<double>>(meeting_));
  }
  template <class Call>
  auto visit(Call&& call) const {
    if (auto* m = std::get_if<Meeting<float>>(&meeting_)) return call(*m);
    return call(std::get<Meeting<double>>(meeting_));
  }

 public:
  MeetingHandle(const Link& link, std::size_t n_weights, std::size_t row, const std::vector<Array<std::uint32_t>>& reads, bool single) : Owned("the meeting") {
    require(row > 0 && reads.size() > 0, "there are shares, and weights in rows");
    std::vector<std::span<const std::uint32_t>> rows;
    for (const Array<std::uint32_t>& one : reads) rows.push_back(span_of(one));
    if (single) {
      meeting_.emplace<Meeting<float>>(link, n_weights, row, rows);
    } else {
      meeting_.emplace<Meeting<double>>(link, n_weights, row, rows);
    }
    n_weights_ = n_weights;
  }
  std::size_t n_shared() const {
    return visit([](const auto& m) { return m.n_shared(); });
  }
  std::size_t size() const {
    return visit([](const auto& m) { return m.size(); });
  }
  double penalty() const {
    return visit([](const auto& m) { return m.penalty(); });
  }
  double conjugate() const {
    return visit([](const auto& m) { return m.conjugate(); });
  }
  bool zero() const {
    return visit([](const auto& m) { return m.zero(); });
  }
  nb::object common(std::size_t k) const {
    return visit([&](const auto& m) { return to_numpy(std::vector<std::uint8_t>(m.common(k))); });
  }
  void begin() {
    visit([](auto& m) { m.begin(); });
  }
  void forget(std::size_t k) {
    visit([&](auto& m) { m.forget(k); });
  }
  void measure() {
    visit([](auto& m) { m.measure(); });
  }
  void open(std::size_t k, Array<std::uint8_t> metric, Array<std::uint32_t> chunks, LanesArray lanes, Array<float> sums) {
    visit([&]<class T>(Meeting<T>& m) { m.open(k, span_of(metric), places<T>(chunks, lanes), span_of(sums)); });
  }
  void add(std::size_t k, Array<std::uint32_t> chunks, LanesArray lanes, Array<std::uint16_t> codes, int base) {
    const ShortFloats scale = short_floats(base);
    visit([&]<class T>(Meeting<T>& m) { m.add(k, places<T>(chunks, lanes), span_of(codes), scale); });
  }
  void meet(double relaxation) {
    require(relaxation > 0.0 && relaxation < 2.0, "the relaxation must be between 0 and 2");
    visit([&](auto& m) { m.meet(relaxation); });
  }
  // Chunks that are new to share k, and the change of z in all that it reads.
  nb::tuple tell(std::size_t k) {
    return visit([&](auto& m) {
      auto joined = m.take_joined(k);
      return nb::make_tuple(to_numpy(std::move(joined.chunks)), to_numpy(std::move(joined.lanes)), to_numpy(m.told(k)), m.scale().base);
    });
  }
  void begin_exact() {
    visit([](auto& m) { m.begin_exact(); });
  }
  void add_exact(std::size_t k, Array<std::uint32_t> chunks, LanesArray lanes, Array<double> sums) {
    visit([&]<class T>(Meeting<T>& m) { m.add_exact(k, places<T>(chunks, lanes), span_of(sums)); });
  }
  double exact_conjugate() const {
    return visit([](const auto& m) { return m.exact_conjugate(); });
  }
  void place_sums() {
    visit([](auto& m) { m.place_sums(); });
  }
  void place_held() {
    visit([](auto& m) { m.place_held(); });
  }
  nb::tuple placed(std::size_t k) {
    return visit([&](auto& m) {
      auto joined = m.take_joined(k);
      return nb::make_tuple(to_numpy(std::move(joined.chunks)), to_numpy(std::move(joined.lanes)), to_numpy(m.placed(k)));
    });
  }
  nb::object values() const {
    return visit([](const auto& m) { return to_numpy(m.values()); });
  }
  void set_values(nb::handle values) {
    visit([&]<class T>(Meeting<T>& m) {
      Array<T> array;
      require(nb::try_cast(values, array, false), "z must have the type of the weights");
      m.set_values(span_of(array));
    });
  }
  void write(nb::handle weights) const {
    visit([&]<class T>(const Meeting<T>& m) { m.write(target<T>(weights)); });
  }
  void write_own(std::size_t k, Array<std::uint32_t> chunks, nb::handle values, nb::handle weights) const {
    visit([&]<class T>(const Meeting<T>& m) {
      Array<T> array;
      require(nb::try_cast(values, array, false), "w must have the type of the weights");
      m.write_own(k, span_of(chunks), span_of(array), target<T>(weights));
    });
  }

 private:
  template <class T>
  T* target(nb::handle weights) const {
    Target<T> array;
    require(nb::try_cast(weights, array, false) && array.shape(0) == n_weights_, "expected an array of all weights");
    return array.data();
  }

  std::variant<std::monostate, Meeting<float>, Meeting<double>> meeting_;
  std::size_t n_weights_ = 0;
};

template <class Handle>
void bind_member(nb::module_& m) {
  using nb::literals::operator""_a;
  using Bound = MemberHandle<Handle>;
  nb::class_<Bound>(m, "Member")
      .def(nb::init<Handle&>(), "engine"_a, nb::keep_alive<1, 2>())
      .def("reads", &Bound::reads)
      .def("share", &Bound::share, "common"_a)
      .def("open", &Bound::open, "C"_a, "steepness"_a)
      .def("measure", &Bound::measure, "steepness"_a)
      .def("follow", &Bound::follow, "chunks"_a, "lanes"_a, "codes"_a, "base"_a, "show"_a)
      .def("aim", &Bound::aim)
      .def("begin_steps", &Bound::begin_steps)
      .def("end_steps", &Bound::end_steps)
      .def("take", &Bound::take, "relaxation"_a)
      .def("own", &Bound::own)
      .def("exact", &Bound::exact, "threads"_a = 1)
      .def("place", &Bound::place, "chunks"_a, "lanes"_a, "values"_a)
      .def("look", &Bound::look, "threads"_a = 1)
      .def("weights", &Bound::weights);
  OwnedClass<MeetingHandle>(m, "Meeting")
      .template init<const Link&, std::size_t, std::size_t, const std::vector<Array<std::uint32_t>>&, bool>("link"_a, "n_weights"_a, "row"_a, "reads"_a, "single"_a)
      .property("n_shared", &MeetingHandle::n_shared)
      .property("size", &MeetingHandle::size)
      .property("penalty", &MeetingHandle::penalty)
      .property("conjugate", &MeetingHandle::conjugate)
      .property("zero", &MeetingHandle::zero)
      .def("common", &MeetingHandle::common, "k"_a)
      .def("begin", &MeetingHandle::begin)
      .def("forget", &MeetingHandle::forget, "k"_a)
      .def("measure", &MeetingHandle::measure)
      .def("open", &MeetingHandle::open, "k"_a, "metric"_a, "chunks"_a, "lanes"_a, "sums"_a)
      .def("add", &MeetingHandle::add, "k"_a, "chunks"_a, "lanes"_a, "codes"_a, "base"_a)
      .def("meet", &MeetingHandle::meet, "relaxation"_a)
      .def("tell", &MeetingHandle::tell, "k"_a)
      .def("begin_exact", &MeetingHandle::begin_exact)
      .def("add_exact", &MeetingHandle::add_exact, "k"_a, "chunks"_a, "lanes"_a, "sums"_a)
      .def("exact_conjugate", &MeetingHandle::exact_conjugate)
      .def("place_sums", &MeetingHandle::place_sums)
      .def("place_held", &MeetingHandle::place_held)
      .def("placed", &MeetingHandle::placed, "k"_a)
      .def("values", &MeetingHandle::values)
      .def("set_values", &MeetingHandle::set_values, "values"_a)
      .def("write", &MeetingHandle::write, "weights"_a)
      .def("write_own", &MeetingHandle::write_own, "k"_a, "chunks"_a, "values"_a, "weights"_a);
}

}  // namespace mm
