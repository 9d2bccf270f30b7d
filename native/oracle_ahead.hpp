// Exact passes in which several threads ask the oracle: for some dozens of examples at a time under one w, before the
// steps on these examples are made, one after the other, by one thread.
//
// An answer is a plane like any other; its margin is computed under the w of its step. So steps raise the dual as
// they do in a pass of one thread, and only the planes are those of a w that is a few steps older. How many examples
// are asked for together does not depend on the number of threads, and so the result depends on it in one respect
// alone: whether there is more than one.
#pragma once

#include <optional>

#include "block_step.hpp"
#include "example_loop.hpp"

namespace mm {

template <class T>
class OracleAhead {
 public:
  struct Answer {
    Found found;
    std::vector<Code> code;
    double more_work = 0.0;
  };

  // Examples that are asked for under one w.
  static constexpr std::size_t kTogether = 64;

  OracleAhead(const Structure<T>& structure, ExampleLoop<T, Lane<T>>& loop, int threads)
      : structure_(structure), loop_(loop), crew_(n_shares(threads, kTogether / 4)), answers_(kTogether) {
    loop.enlist(crew_.members());
  }

  // The answer for the example at a place of the order; the places are visited one after the other.
  const Answer& answer(std::span<const std::uint32_t> order, std::size_t at, const T* w) {
    if (at % kTogether == 0) ask(order.subspan(at, std::min(kTogether, order.size() - at)), w);
    return answers_[at % kTogether];
  }

  // Does it pay? Steps whose margins the oracle did not leave in the workspace take longer, and threads wait for each
  // other: some dozens of labels are the least. (Counted work decides, so that a run can be repeated.)
  static bool pays(const Structure<T>& structure) {
    double work = 0.0;
    for (std::size_t i = 0; i < structure.n_examples(); ++i) work += structure.oracle_work(i);
    return work >= kDear * double(structure.n_examples());
  }

 private:
  static constexpr double kDear = 15000.0;  // cycles: of chains with 11, 22, 44 and 181 labels 5, 5, 9 and 28 thousand

  void ask(std::span<const std::uint32_t> examples, const T* w) {
    crew_.run([&](std::size_t member) {
      auto& ws = *loop_.lane(member).ws;
      structure_.weights_changed(ws);
      const std::size_t begin = examples.size() * member / crew_.members(), end = examples.size() * (member + 1) / crew_.members();
      for (std::size_t k = begin; k < end; ++k) {
        if (k + 4 < end) structure_.prefetch_example(examples[k + 4]);
        if (k + 2 < end) structure_.prefetch_oracle(examples[k + 2], w);
        if (structure_.example_weight(examples[k]) == 0.0) continue;  // its visit does not look
        Answer& answer = answers_[k];
        answer.found = structure_.oracle(ws, examples[k], w);
        answer.code.assign(ws.code.begin(), answer.found.truth ? ws.code.begin() : ws.code.end());
        answer.more_work = ws.more_work;
      }
    });
    structure_.weights_changed(*loop_.first.ws);
  }

  const Structure<T>& structure_;
  ExampleLoop<T, Lane<T>>& loop_;
  Crew crew_;
  std::vector<Answer> answers_;
};

}  // namespace mm
