// A problem under a formulation of the margin, as engines see it.
#pragma once

#include "bindings.hpp"
#include "formulation.hpp"
#include "oracle_pool.hpp"
#include "problem.hpp"

namespace mm {

inline Slack slack_of(const std::string& name) {
  if (name == "linear") return Slack::kLinear;
  if (name == "quadratic") return Slack::kQuadratic;
  if (name == "hard") return Slack::kHard;
  throw BadInput("slack must be \"linear\", \"quadratic\" or \"hard\", got \"" + name + "\"");
}
inline Rescale rescale_of(const std::string& name) {
  if (name == "margin") return Rescale::kMargin;
  if (name == "slack") return Rescale::kSlack;
  if (name == "none") return Rescale::kNone;
  throw BadInput("rescale must be \"margin\", \"slack\" or \"none\", got \"" + name + "\"");
}

class Formulated {
 public:
  Formulated(Problem& problem, const std::string& slack, const std::string& rescale)
      : problem_(problem), slack_(slack_of(slack)), rescale_(rescale_of(rescale)), names_(slack, rescale) {
    require(slack_ != Slack::kHard || rescale_ != Rescale::kSlack,
            "a hard margin has no slacks to rescale; rescale=\"margin\" or \"none\" goes with it");
  }

  Slack slack() const { return slack_; }
  // The structure as it is: margin rescaling, with its own loss.
  bool plain() const { return rescale_ == Rescale::kMargin && slack_ != Slack::kQuadratic; }

  template <class T>
  const Structure<T>* structure() {
    const Structure<T>* base = problem_.structure<T>();
    if (base == nullptr) return base;
    require(!base->signed_losses() || (plain() && slack_ == Slack::kLinear),
            "some losses are negative; that goes with linear slacks and margin rescaling only");
    const Structure<T>* own = plain() ? base : wrapped(*base);
    if constexpr (sizeof(T) == 8) {
      if (OraclePool* pool = problem_.oracle_pool()) {
        if (pooled_ == nullptr) pooled_ = std::make_unique<PooledOracle>(*own, *pool, names_.first, names_.second);
        return pooled_.get();
      }
    }
    return own;
  }

 private:
  template <class T>
  const Structure<T>* wrapped(const Structure<T>& base) {
    auto& slot = std::get<std::unique_ptr<Formulation<T>>>(wrapped_);
    if (slot == nullptr) {
      require(rescale_ != Rescale::kNone || base.offers_grades(true),
              "rescale=\"none\" needs the best output other than the truth, which this structure does not offer; "
              "give it a loss that is 1 for every wrong output, and take rescale=\"margin\"");
      slot = std::make_unique<Formulation<T>>(base, rescale_, slack_ == Slack::kQuadratic);
    }
    return slot.get();
  }

  Problem& problem_;
  Slack slack_;
  Rescale rescale_;
  std::pair<std::string, std::string> names_;
  std::unique_ptr<PooledOracle> pooled_;
  std::tuple<std::unique_ptr<Formulation<float>>, std::unique_ptr<Formulation<double>>> wrapped_;
};

}  // namespace mm
