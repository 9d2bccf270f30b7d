// Python bindings of consensus: the centre of a share (centre.hpp) and z of all shares (meeting.hpp).
#pragma once

#include <variant>

#include "bindings.hpp"
#include "centre.hpp"
#include "meeting.hpp"
#include "ownership.hpp"

namespace mm {

inline ShortFloats short_floats(int base) {
  require(base >= 0 && base <= ShortFloats::kMaxBase, "the scale of a message is damaged");
  return {base};
}
template <class X>
std::span<const X> span_of(const Array<X>& array) { return {array.data(), array.shape(0)}; }

// With the ownership of its engine, which must outlive it. `Handle`: that of the engine.
template <class Handle>
class CentreHandle {
 public:
  explicit CentreHandle(Handle& engine) : engine_(engine) {
    const Owned::Hold hold(engine_);
    engine_.visit([&](auto& e, const auto& structure) {
      using T = std::decay_t<decltype(*e.weights().data())>;
      centre_.template emplace<Centre<T>>(e, structure);
    });
  }

  void open(bool placed, double C, double steepness) {
    require(C > 0.0 && steepness >= 0.0, "C must be positive, the steepness not negative");
    with([&](auto& centre) { centre.open(placed, C, steepness); });
  }
  nb::object members() {
    return with([](auto& centre) { return to_numpy(std::vector<std::uint32_t>(centre.members())); });
  }
  nb::object rho() {
    return with([](auto& centre) { return to_numpy(std::vector<float>(centre.rho())); });
  }
  nb::object pull() {
    return with([](auto& centre) { return to_numpy(std::vector<double>(centre.pull())); });
  }
  nb::object z() {
    return with([](auto& centre) { return to_numpy(centre.z()); });
  }
  void follow(Array<std::uint32_t> joined, Array<std::uint16_t> codes, int base) {
    with([&](auto& centre) { centre.follow(span_of(joined), span_of(codes), short_floats(base)); });
  }
  void take_z(nb::handle values) {
    with([&]<class T>(Centre<T>& centre) {
      Array<T> array;
      require(nb::try_cast(values, array, false), "z must have the type of the weights");
      centre.take_z(span_of(array));
    });
  }
  void aim() {
    with([](auto& centre) { centre.aim(); });
  }
  nb::tuple take(double relaxation) {
    require(relaxation > 0.0 && relaxation < 2.0, "the relaxation of centres must be between 0 and 2");
    return with([&](auto& centre) {
      auto told = centre.take(relaxation);
      return nb::make_tuple(to_numpy(std::move(told.codes)), told.scale.base, to_numpy(std::move(told.joined)), told.residual);
    });
  }

 private:
  template <class Call>
  auto with(Call&& call) {
    const Owned::Hold hold(engine_);
    if (auto* centre = std::get_if<Centre<float>>(&centre_)) return call(*centre);
    return call(std::get<Centre<double>>(centre_));
  }

  Handle& engine_;
  std::variant<std::monostate, Centre<float>, Centre<double>> centre_;
};

template <class T>
nb::tuple hold_of(const Link& link, Target<double> pull, Target<double> total, Array<double> stiffness, double relaxation, Target<T> z) {
  const std::size_t n = pull.shape(0);
  require(total.shape(0) == n && stiffness.shape(0) == n && z.shape(0) == n, "expected arrays of one length");
  require(relaxation > 0.0, "the relaxation must be positive");
  link.check(n);
  std::vector<std::uint16_t> codes(n);
  const Held held = hold<T>(link, {pull.data(), n}, {total.data(), n}, span_of(stiffness), relaxation, z.data(), codes.data());
  return nb::make_tuple(to_numpy(std::move(codes)), held.scale.base, held.penalty, held.conjugate);
}

template <class Handle>
void bind_centre(nb::module_& m) {
  using nb::literals::operator""_a;
  using Bound = CentreHandle<Handle>;
  nb::class_<Bound>(m, "Centre")
      .def(nb::init<Handle&>(), "engine"_a, nb::keep_alive<1, 2>())
      .def("open", &Bound::open, "placed"_a, "C"_a, "steepness"_a)
      .def_prop_ro("members", &Bound::members)
      .def_prop_ro("rho", &Bound::rho)
      .def_prop_ro("pull", &Bound::pull)
      .def_prop_ro("z", &Bound::z)
      .def("follow", &Bound::follow, "joined"_a, "codes"_a, "base"_a)
      .def("take_z", &Bound::take_z, "values"_a)
      .def("aim", &Bound::aim)
      .def("take", &Bound::take, "relaxation"_a);
  m.def("add_told", [](Target<double> total, Array<std::uint32_t> places, Array<std::uint16_t> codes, int base) {
    add_told({total.data(), total.shape(0)}, span_of(places), span_of(codes), short_floats(base));
  }, "total"_a, "places"_a, "codes"_a, "base"_a);
  m.def("hold", &hold_of<float>, "link"_a, "pull"_a, "total"_a, "stiffness"_a, "relaxation"_a, "z"_a);
  m.def("hold", &hold_of<double>, "link"_a, "pull"_a, "total"_a, "stiffness"_a, "relaxation"_a, "z"_a);
}

}  // namespace mm
