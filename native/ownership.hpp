// One user at a time: an object with state that native calls change while other threads may run
// (the GIL is released in them, and a user's oracle runs in the middle of them).
//
// Every call that Python makes takes ownership of its object for as long as it lasts. A second call
// that comes meanwhile, from another thread or from an oracle that the first call asked, is refused
// instead of reading memory that moves. Nobody waits: the oracle of the first call could wait for
// the second for ever.
#pragma once

#include <atomic>
#include <stdexcept>
#include <string>
#include <utility>

#include <nanobind/nanobind.h>

namespace mm {

// Becomes maxmargin.errors.InUseError.
struct InUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What an object that has one user at a time is derived from.
class Owned {
 public:
  // Ownership, for as long as this lives.
  class Hold {
   public:
    explicit Hold(Owned& object) : object_(object) {
      if (object_.in_use_.exchange(true, std::memory_order_acquire)) throw InUse(object_.name_ + kRefused);
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() { object_.in_use_.store(false, std::memory_order_release); }

   private:
    static constexpr const char* kRefused =
        " is in use: another thread trains with it, or it was called from within its own oracle or callback. "
        "Fit one estimator (one solver state) at a time; a clone of it has a state of its own";
    Owned& object_;
  };

 protected:
  explicit Owned(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
  std::atomic<bool> in_use_{false};
};

// A method as Python calls it: with ownership of its object.
template <class Handle, class Base, class Result, class... Args>
auto owning(Result (Base::*method)(Args...)) {
  return [method](Handle& self, Args... args) -> Result {
    const Owned::Hold hold(self);
    return (self.*method)(std::forward<Args>(args)...);
  };
}
template <class Handle, class Base, class Result, class... Args>
auto owning(Result (Base::*method)(Args...) const) {
  return [method](Handle& self, Args... args) -> Result {
    const Owned::Hold hold(self);
    return (self.*method)(std::forward<Args>(args)...);
  };
}
// A function of the Python object: for arrays that keep it alive.
template <class Handle>
auto owning(nanobind::object (*function)(nanobind::handle)) {
  return [function](nanobind::handle self) {
    const Owned::Hold hold(nanobind::cast<Handle&>(self));
    return function(self);
  };
}

// A class_ all of whose methods and properties take ownership first.
template <class Handle>
class OwnedClass {
 public:
  OwnedClass(nanobind::module_& m, const char* name) : class_(m, name) {}

  template <class... Args, class... Extra>
  OwnedClass& init(const Extra&... extra) {
    class_.def(nanobind::init<Args...>(), extra...);
    return *this;
  }
  template <class Method, class... Extra>
  OwnedClass& def(const char* name, Method method, const Extra&... extra) {
    class_.def(name, owning<Handle>(method), extra...);
    return *this;
  }
  template <class Method>
  OwnedClass& property(const char* name, Method method) {
    class_.def_prop_ro(name, owning<Handle>(method));
    return *this;
  }

 private:
  nanobind::class_<Handle> class_;
};

}  // namespace mm
