// Predictions of many examples: on some threads, without the GIL, and open to Ctrl-C.
#pragma once

#include <atomic>
#include <chrono>

#include "bindings.hpp"
#include "parallel.hpp"

namespace mm {

// Has Ctrl-C been pressed? The thread of Python asks, the others are told.
class Interruption {
 public:
  // To be asked often: true where the work is to end. `own`: this is the thread that Python called.
  bool ask(bool own) {
    if (own && !halted_.load(std::memory_order_relaxed)) {
      const auto now = std::chrono::steady_clock::now();
      if (now - asked_ >= std::chrono::milliseconds(50)) {
        asked_ = now;
        nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) pending_.emplace(), halted_ = true;
      }
    }
    return halted_.load(std::memory_order_relaxed);
  }
  // With the GIL, at the end.
  void raise() {
    if (pending_) throw nb::python_error(std::move(*pending_));
  }

 private:
  std::atomic<bool> halted_{false};
  std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
  std::optional<nb::python_error> pending_;
};

// new_visitor(share, ask) makes what a thread calls as visit(i) for the examples of its share; ask() is true
// where a long visit should end at once, whatever its result.
template <class NewVisitor>
void for_predictions(int threads, std::size_t n, NewVisitor&& new_visitor) {
  const std::size_t shares = n_shares(threads, n);
  Interruption interruption;
  {
    nb::gil_scoped_release release;
    const auto work = [&](std::size_t share) {
      const auto ask = [&interruption, share] { return interruption.ask(share == 0); };
      auto visit = new_visitor(share, ask);
      for (std::size_t i = n * share / shares; i < n * (share + 1) / shares && !ask(); ++i) visit(i);
    };
    run_shares(shares, work, [&] { interruption.ask(true); });  // the long ones may be in other shares
  }
  interruption.raise();
}

}  // namespace mm
