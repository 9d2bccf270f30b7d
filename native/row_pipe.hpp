// Rows of named features in two stages: one thread collects the names, another looks them up.
//
// Python's objects can only be read by the thread that holds the GIL. It copies the names of some hundred
// rows into a piece; meanwhile another thread, which never needs the GIL, puts the names of the pieces before
// into the vocabulary, in their order. So features have the numbers that one thread would have given them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "row_builder.hpp"

namespace mm {

class RowPipe {
 public:
  // What went wrong with a row that was collected before.
  struct Overflow {
    std::size_t row;
    std::string name;
  };

  // `rows` belongs to the other thread until finish().
  explicit RowPipe(RowBuilder& rows) : rows_(rows), first_row_(rows.rows()), thread_([this] { build(); }) {}
  RowPipe(const RowPipe&) = delete;
  RowPipe& operator=(const RowPipe&) = delete;
  ~RowPipe() {
    given_up_ = true;
    close();
  }

  void begin_row() { row_size_ = 0; }
  std::size_t row_size() const { return row_size_; }
  std::size_t rows() const { return first_row_ + collected_; }

  template <class... Parts>
  void add(double weight, const Parts&... parts) {
    const std::size_t begin = piece_.text.size();
    (piece_.text.append(parts), ...);
    piece_.ends.push_back(piece_.text.size());
    // It is in the cache now; and the other thread has more to do.
    piece_.fragments.push_back(Vocabulary::fragment(std::string_view(piece_.text).substr(begin)));
    if (weight != 1.0) piece_.weights.push_back({piece_.ends.size() - 1, weight});
    ++row_size_;
  }

  // Throws what went wrong in the other thread, which may be an Overflow.
  void end_row() {
    piece_.row_ends.push_back(piece_.ends.size());
    ++collected_;
    if (piece_.text.size() >= kBytes || piece_.row_ends.size() >= kRows) hand_over();
  }

  // All rows are there; throws what went wrong.
  void finish() {
    if (!piece_.row_ends.empty()) hand_over();
    close();
    if (failure_) std::rethrow_exception(failure_);
  }
  // The same where something else went wrong while a row was collected: those before it come first.
  void finish_before() {
    if (!piece_.row_ends.empty()) {
      piece_.ends.resize(piece_.row_ends.back());
      hand_over();
    }
    finish();
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 16, kRows = 1024, kWaiting = 4;

  struct Piece {
    std::string text;
    std::vector<std::size_t> ends, row_ends;  // of features in the text, of rows in the features
    std::vector<std::uint32_t> fragments;  // of features
    std::vector<std::pair<std::size_t, double>> weights;  // of features, where not one
    void clear() {
      text.clear(), ends.clear(), fragments.clear(), row_ends.clear(), weights.clear();
    }
  };

  void hand_over() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.size() < kWaiting || failure_; });
    if (failure_) {
      lock.unlock();
      close();
      std::rethrow_exception(failure_);
    }
    waiting_.push_back(std::move(piece_));
    piece_ = {};
    if (!spare_.empty()) {
      piece_ = std::move(spare_.back());
      spare_.pop_back();
    }
    lock.unlock();
    changed_.notify_all();
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // The other thread.
  void build() {
    std::size_t row = first_row_;
    for (;;) {
      Piece piece;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !waiting_.empty() || closed_; });
        if (waiting_.empty() || given_up_) return;
        piece = std::move(waiting_.front());
        waiting_.pop_front();
      }
      changed_.notify_all();
      try {
        build(piece, row);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
        changed_.notify_all();
        return;
      }
      piece.clear();
      const std::lock_guard lock(mutex_);
      spare_.push_back(std::move(piece));
    }
  }

  void build(const Piece& piece, std::size_t& row) {
    std::size_t feature = 0, begin = 0, weight = 0;
    for (const std::size_t end : piece.row_ends) {
      rows_.begin_row();
      for (; feature < end; ++feature) {
        const std::string_view text = std::string_view(piece.text).substr(begin, piece.ends[feature] - begin);
        begin = piece.ends[feature];
        const bool weighs = weight < piece.weights.size() && piece.weights[weight].first == feature;
        rows_.add(text, weighs ? piece.weights[weight++].second : 1.0, piece.fragments[feature]);
      }
      rows_.end_row([&](std::string_view name) { throw Overflow{row, std::string(name)}; });
      ++row;
    }
  }

  RowBuilder& rows_;
  std::size_t first_row_, collected_ = 0, row_size_ = 0;
  Piece piece_;  // that is being collected

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<Piece> waiting_;
  std::vector<Piece> spare_;
  std::exception_ptr failure_;
  bool closed_ = false;
  std::atomic<bool> given_up_ = false;
  std::thread thread_;  // the last member: it uses all others
};

}  // namespace mm
