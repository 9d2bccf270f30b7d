// A loop over the examples of a problem: its threads, their scratch memory, and the question now
// and then whether to stop.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include "oracle_pool.hpp"
#include "parallel.hpp"
#include "structure.hpp"
#include "windows.hpp"

namespace mm {

// Lane: what one thread needs; made from a structure, with the structure's workspace as `ws`.
// Total: what a loop adds up; has add(Total) and `interrupted`.
template <class T, class Lane>
class ExampleLoop {
 public:
  explicit ExampleLoop(const Structure<T>& structure) : first(structure), structure_(structure) {}

  Lane first;  // of the calling thread

  // Asked now and then; true ends the loop after the current example.
  std::function<bool()> poll;

  // Of the examples, where not all are in memory: the loop goes from window to window.
  Windows* windows = nullptr;

  // The lane of a member of a crew; enlist() makes them.
  void enlist(std::size_t members) {
    while (others_.size() + 1 < members) others_.push_back(std::make_unique<Lane>(structure_));
  }
  Lane& lane(std::size_t member) { return member == 0 ? first : *others_[member - 1]; }

  // f(lane, i, end of the share, total) for all examples, in contiguous shares (of each window) so that
  // the result does not depend on timing.
  template <class Total, class F>
  Total run(int threads, F&& f) {
    Total total;
    for_windows(windows, structure_.n_examples(), [&](std::size_t begin, std::size_t end) {
      if (!total.interrupted) total.add(run<Total>(threads, begin, end, f));
    });
    return total;
  }

  // f(lane, k, total) for the places k of a list of examples.
  template <class Total, class F>
  Total run_some(int threads, std::span<const std::uint32_t> examples, F&& f) {
    return share_out<Total>(threads, 0, examples.size(), [&](Lane& lane, std::size_t k, std::size_t, Total& total) { f(lane, k, total); });
  }

 private:
  template <class Total, class F>
  Total run(int threads, std::size_t first, std::size_t last, F& f) {
    const Expecting<T> expecting(structure_, first, last, threads);
    return share_out<Total>(threads, first, last, f);
  }

  template <class Total, class F>
  Total share_out(int threads, std::size_t first, std::size_t last, F&& f) {
    const std::size_t n = last - first;
    const std::size_t shares = structure_.thread_safe() ? n_shares(threads, n) : 1;
    enlist(shares);
    std::vector<Total> totals(shares);
    std::atomic<bool> halt{false};
    // Only the thread that Python called may ask. It also asks while it waits for the others, whose examples
    // may be the long ones, and in shares that it took over because there was no thread for them.
    const std::thread::id caller = std::this_thread::get_id();
    const auto work = [&](std::size_t share) {
      Lane& lane = this->lane(share);
      structure_.weights_changed(*lane.ws);
      const std::size_t end = first + n * (share + 1) / shares;
      for (std::size_t i = first + n * share / shares; i < end; ++i) {
        if (std::this_thread::get_id() == caller && stop(totals[share])) halt = true;
        if (halt.load(std::memory_order_relaxed)) {
          totals[share].interrupted = true;
          break;
        }
        f(lane, i, end, totals[share]);
      }
    };
    run_shares(shares, work, [&] {
      if (!halt && asked_to_stop()) halt = true;
    });
    Total total;
    for (const Total& t : totals) total.add(t);
    return total;
  }

 public:
  // Ask whether to stop, unless that was asked a moment ago.
  template <class Total>
  bool stop(Total& total) {
    // The clock costs less than a visit, but not nothing.
    if (!poll || (structure_.thread_safe() && structure_.n_examples() > 1000 && (++polled_ & 15) != 0)) return false;
    if (asked_to_stop()) total.interrupted = true;
    return total.interrupted;
  }

  // The same, without an answer that is given again later.
  bool asked_to_stop() {
    const auto now = std::chrono::steady_clock::now();
    if (!poll || now - last_poll_ < std::chrono::milliseconds(50)) return false;
    last_poll_ = now;
    return poll();
  }

 private:
  const Structure<T>& structure_;
  std::vector<std::unique_ptr<Lane>> others_;
  std::uint32_t polled_ = 0;
  std::chrono::steady_clock::time_point last_poll_{};
};

}  // namespace mm
