// A problem of a structure S<T> over data that do not depend on the precision: both precisions from
// one template, each built at its first use.
//
// Data has size() (the number of examples) and data_hash(); S<T> is made from the data and what
// else is given.
#pragma once

#include <memory>
#include <tuple>

#include "bindings.hpp"
#include "problem.hpp"

namespace mm {

template <template <class> class S, class Data, class... Extra>
class ProblemOf : public Problem {
 public:
  explicit ProblemOf(Data data = {}, Extra... extra) : data_(std::move(data)), extra_(std::move(extra)...) {}

  const Data& data() const { return data_; }
  std::size_t n_examples() const override { return data_.size(); }
  std::uint64_t data_hash() const override { return data_.data_hash(); }
  const Structure<float>* single_precision() override { return built<float>(); }
  const Structure<double>* double_precision() override { return built<double>(); }

  template <class T>
  const S<T>* built() {
    auto& slot = std::get<std::unique_ptr<S<T>>>(built_);
    if (slot == nullptr) slot = std::apply([&](const auto&... extra) { return std::make_unique<S<T>>(data_, extra...); }, extra_);
    return slot.get();
  }

 protected:
  // The data point into arrays of Python's, which live as long as the problem.
  template <class Owner>
  void keep(const Owner& array) {
    owners_.push_back(nb::cast(array));
  }

  Data data_;
  std::vector<nb::object> owners_;

 private:
  std::tuple<Extra...> extra_;
  std::tuple<std::unique_ptr<S<float>>, std::unique_ptr<S<double>>> built_;
};

}  // namespace mm
