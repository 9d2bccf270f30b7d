// Python bindings of the link (link.hpp).
#pragma once

#include "bindings.hpp"
#include "link.hpp"

namespace mm {

// A number, or an array with one for each weight.
inline LinkField link_field(nb::handle value, const char* name) {
  LinkField field;
  if (nb::try_cast(value, field.all)) return field;
  Array<double> array;
  require(nb::try_cast(value, array, true), std::string("the link's ") + name + " must be a number or a one-dimensional array of numbers");
  field.each = std::make_shared<const std::vector<double>>(array.data(), array.data() + array.shape(0));
  return field;
}

inline nb::object link_field(const LinkField& field) {
  return field.each ? to_numpy(std::vector<double>(*field.each)) : nb::cast(field.all);
}

inline void bind_link(nb::module_& m) {
  using nb::literals::operator""_a;
  const auto field = [](LinkField Link::* member) { return [member](const Link& link) { return link_field(link.*member); }; };
  nb::class_<Link>(m, "Link", "w = clip(offset + scale * soft(u; lower, upper), least, most).")
      .def("__init__",
           [](Link* self, nb::handle lower, nb::handle upper, nb::handle scale, nb::handle offset, nb::handle least, nb::handle most) {
             Link link;
             link.lower = link_field(lower, "lower"), link.upper = link_field(upper, "upper");
             link.scale = link_field(scale, "scale"), link.offset = link_field(offset, "offset");
             link.least = link_field(least, "least"), link.most = link_field(most, "most");
             new (self) Link(std::move(link));
           },
           nb::kw_only(), "lower"_a = 0.0, "upper"_a = 0.0, "scale"_a = 1.0, "offset"_a = 0.0, "least"_a = -kInfinity, "most"_a = kInfinity)
      .def_prop_ro("lower", field(&Link::lower))
      .def_prop_ro("upper", field(&Link::upper))
      .def_prop_ro("scale", field(&Link::scale))
      .def_prop_ro("offset", field(&Link::offset))
      .def_prop_ro("least", field(&Link::least))
      .def_prop_ro("most", field(&Link::most))
      .def("check", &Link::check, "n_weights"_a, "Raise ValueError unless this is a link of so many weights.")
      .def("__eq__", [](const Link& a, nb::handle b) { return nb::isinstance<Link>(b) && a.same(nb::cast<const Link&>(b)); }, "other"_a.none());
}

}  // namespace mm
