// The extension module maxmargin._native.
#include <nanobind/nanobind.h>

#include <system_error>

#include "common.hpp"
#include "ownership.hpp"

void bind_encode(nanobind::module_& m);

namespace mm {
void bind_alignment(nanobind::module_& m);
void bind_chain(nanobind::module_& m);
void bind_chunked(nanobind::module_& m);
void bind_constraints(nanobind::module_& m);
void bind_dependency(nanobind::module_& m);
void bind_engine(nanobind::module_& m);
void bind_features(nanobind::module_& m);
void bind_grammar(nanobind::module_& m);
void bind_items(nanobind::module_& m);
void bind_impute(nanobind::module_& m);
void bind_planes(nanobind::module_& m);
void bind_kernel(nanobind::module_& m);
void bind_primal(nanobind::module_& m);
void bind_python(nanobind::module_& m);
void bind_rows(nanobind::module_& m);
void bind_structures(nanobind::module_& m);
void bind_taxonomy(nanobind::module_& m);
void bind_text(nanobind::module_& m);
void bind_words(nanobind::module_& m);
}  // namespace mm

NB_MODULE(_native, m) {
  // A user's structure may refer back to what holds it; at exit that is no news for the user.
  nanobind::set_leak_warnings(false);
  nanobind::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const mm::BadInput& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    } catch (const std::system_error& error) {  // a full disk
      const nanobind::object found = nanobind::make_tuple(error.code().value(), error.what());
      PyErr_SetObject(PyExc_OSError, found.ptr());
    } catch (const mm::InUse& error) {
      const nanobind::object errors = nanobind::module_::import_("maxmargin.errors");
      PyErr_SetString(nanobind::object(errors.attr("InUseError")).ptr(), error.what());
    }
  });
  bind_encode(m);
  mm::bind_chain(m);
  mm::bind_chunked(m);
  mm::bind_constraints(m);
  mm::bind_dependency(m);
  mm::bind_engine(m);
  mm::bind_features(m);
  mm::bind_grammar(m);
  mm::bind_items(m);
  mm::bind_impute(m);
  mm::bind_planes(m);
  mm::bind_kernel(m);
  mm::bind_primal(m);
  mm::bind_python(m);
  mm::bind_rows(m);
  mm::bind_structures(m);
  mm::bind_taxonomy(m);
  mm::bind_alignment(m);
  mm::bind_text(m);
  mm::bind_words(m);
}
