// Exact passes in which several threads ask the oracle: for some dozens of examples at a time under one w, before the
// steps on these examples are made, one after the other, by one thread.
//
// An answer is a plane like any other; its margin is computed under the w of its step. So steps raise the dual as
// they do in a pass of one thread, and only the planes are those of a w that is a few steps older. How many examples
// are asked for together does not depend on the number of threads, and so the result depends on it in one respect
// alone: whether there is more than one.
#pragma once

#include <atomic>

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

  // Be ready for the example at a place of the order; the places are visited one after the other. False: it was told to
  // stop, and has no answers.
  bool ready(std::span<const std::uint32_t> order, std::size_t at, const T* w) {
    return at % kTogether != 0 || ask(order.subspan(at, std::min(kTogether, order.size() - at)), w);
  }
  const Answer& answer(std::size_t at) const { return answers_[at % kTogether]; }

  // Does it pay? Steps whose margins the oracle did not leave in the workspace take longer, and threads wait for each
  // other: some dozens of labels are the least. (Counted work decides, so that a run can be repeated.)
  static bool pays(const Structure<T>& structure) {
    double work = 0.0;
    for (std::size_t i = 0; i < structure.n_examples(); ++i) work += structure.oracle_work(i);
    return work >= kDear * double(structure.n_examples());
  }

 private:
  static constexpr double kDear = 15000.0;  // cycles: of chains with 11, 22, 44 and 181 labels 5, 5, 9 and 28 thousand

  // Examples are taken one by one, as some take far longer than others; where an answer goes does not depend on who
  // found it. Only the thread that Python called asks whether to stop.
  bool ask(std::span<const std::uint32_t> examples, const T* w) {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> halt{false};
    crew_.run([&](std::size_t member) {
      auto& ws = *loop_.lane(member).ws;
      structure_.weights_changed(ws);
      for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < examples.size();) {
        if (member == 0 && loop_.asked_to_stop()) halt.store(true, std::memory_order_relaxed);
        if (halt.load(std::memory_order_relaxed)) break;
        if (structure_.example_weight(examples[k]) == 0.0) continue;  // its visit does not look
        if (k + crew_.members() < examples.size()) structure_.prefetch_example(examples[k + crew_.members()]);
        Answer& answer = answers_[k];
        answer.found = structure_.oracle(ws, examples[k], w);
        answer.code.assign(ws.code.begin(), answer.found.truth ? ws.code.begin() : ws.code.end());
        answer.more_work = ws.more_work;
      }
    });
    structure_.weights_changed(*loop_.first.ws);
    return !halt;
  }

  const Structure<T>& structure_;
  ExampleLoop<T, Lane<T>>& loop_;
  Crew crew_;
  std::vector<Answer> answers_;
};

}  // namespace mm
