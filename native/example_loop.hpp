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

  // The lane of a member of a crew, for which enlist() has a place. The member itself makes it: what one thread
  // allocates lies apart from what others do, so that no two write to one cache line.
  void enlist(std::size_t members) {
    if (others_.size() + 1 < members) others_.resize(members - 1);
  }
  Lane& lane(std::size_t member) {
    if (member == 0) return first;
    std::unique_ptr<Lane>& own = others_[member - 1];
    if (!own) own = std::make_unique<Lane>(structure_);
    return *own;
  }

  // f(lane, i, end of the piece, total) for all examples, in contiguous pieces (of each window). What is added up is
  // added up for each piece, and so it does not depend on which thread took it.
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
    const std::size_t pieces = shares == 1 ? 1 : n_shares(kPieces, n);
    enlist(shares);
    std::vector<Apart<Total>> totals(pieces);
    std::vector<Apart<std::atomic<std::size_t>>> taken(shares);  // pieces of each share
    std::atomic<bool> halt{false};
    // Only the thread that Python called may ask. It also asks while it waits for the others, whose examples
    // may be the long ones, and in shares that it took over because there was no thread for them.
    const std::thread::id caller = std::this_thread::get_id();
    const auto piece = [&](Lane& lane, std::size_t k) {
      Total& total = totals[k].it;
      const std::size_t end = first + n * (k + 1) / pieces;
      for (std::size_t i = first + n * k / pieces; i < end; ++i) {
        if (std::this_thread::get_id() == caller && stop(total)) halt = true;
        if (halt.load(std::memory_order_relaxed)) {
          total.interrupted = true;
          break;
        }
        f(lane, i, end, total);
      }
    };
    // Each thread has a contiguous share of the pieces, as in passes in which several make steps (joint_pass.hpp), since
    // it has their planes in its cache. Who is done helps the others: neither cores nor examples are alike.
    const auto work = [&](std::size_t share) {
      Lane& lane = this->lane(share);
      structure_.weights_changed(*lane.ws);
      for (std::size_t at = 0; at < shares; ++at) {
        const std::size_t whose = (share + at) % shares, begin = pieces * whose / shares, end = pieces * (whose + 1) / shares;
        for (std::size_t k; (k = begin + taken[whose].it.fetch_add(1, std::memory_order_relaxed)) < end;) piece(lane, k);
      }
    };
    run_shares(shares, work, [&] {
      if (!halt && asked_to_stop()) halt = true;
    });
    Total total;
    for (const Apart<Total>& t : totals) total.add(t.it);
    return total;
  }
  static constexpr int kPieces = 64;
  // On cache lines of its own (two, since they are fetched in pairs).
  template <class It>
  struct alignas(128) Apart {
    It it{};
  };

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
