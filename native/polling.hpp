// Native loops that Python starts: without the GIL, but open to Ctrl-C and to a deadline.
#pragma once

#include <chrono>

#include "bindings.hpp"

namespace mm {

// call(), while `loop` asks now and then for signals and the time. A pending Python exception is
// raised when the call has come to its end.
template <class Loop, class Call>
auto run_polled(Loop& loop, std::optional<double> seconds, Call&& call) {
  std::optional<nb::python_error> pending;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds.value_or(1e9));
  loop.poll = [&] {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) pending.emplace();
    return pending.has_value() || std::chrono::steady_clock::now() > deadline;
  };
  struct Reset {
    Loop& loop;
    ~Reset() { loop.poll = nullptr; }
  } reset{loop};
  auto result = [&] {
    nb::gil_scoped_release release;
    return call();
  }();
  if (pending) throw nb::python_error(std::move(*pending));
  return result;
}

// The order in which a pass visits the examples.
using Order = Array<std::uint32_t>;

inline void check_order(const Order& order, std::size_t n_examples) {
  for (std::size_t k = 0; k < order.shape(0); ++k) require(order.data()[k] < n_examples, "an example in the order is out of range");
}

}  // namespace mm
