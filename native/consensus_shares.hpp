// Who has what in a consensus (consensus.hpp): which examples each member visits, and which rows of weights only one of them
// reads.
#pragma once

#include "parallel.hpp"
#include "structure.hpp"

namespace mm {

template <class T>
class ConsensusShares {
 public:
  // Weights that do not come in rows are taken so many at a time; all examples read them.
  static constexpr std::size_t kPlainRow = 64;
  static constexpr std::uint32_t kOwn = ~std::uint32_t{0};  // a row that is not shared

  struct Share {
    std::size_t first = 0, last = 0;  // examples
    std::vector<std::uint32_t> own;   // rows that no other member reads
  };

  ConsensusShares(const Structure<T>& structure, std::size_t members) : n_weights_(structure.n_weights()), shares_(members) {
    const bool plain = structure.row_size() >= n_weights_;
    row_ = plain ? kPlainRow : std::max<std::size_t>(structure.row_size(), 1);
    divide_examples(structure);
    divide_rows(structure, plain);
  }

  std::size_t members() const { return shares_.size(); }
  const Share& of(std::size_t k) const { return shares_[k]; }
  std::size_t row() const { return row_; }
  std::size_t n_rows() const { return (n_weights_ + row_ - 1) / row_; }
  // Rows that several members read, and where each row is among these.
  const std::vector<std::uint32_t>& shared() const { return shared_; }
  const std::vector<std::uint32_t>& place() const { return place_; }

 private:
  // Contiguous pieces of about the same work.
  void divide_examples(const Structure<T>& structure) {
    const std::size_t n = structure.n_examples(), K = members();
    double all = 0.0;
    for (std::size_t i = 0; i < n; ++i) all += structure.oracle_work(i);
    double done = 0.0;
    std::size_t i = 0;
    for (std::size_t k = 0; k < K; ++k) {
      Share& share = shares_[k];
      share.first = i;
      while (i < n - (K - 1 - k) && (k + 1 == K || i == share.first || done < all * double(k + 1) / double(K))) done += structure.oracle_work(i++);
      share.last = i;
    }
  }
  void divide_rows(const Structure<T>& structure, bool plain) {
    std::vector<std::vector<bool>> reads(members());
    run_shares(members(), [&](std::size_t k) {
      reads[k].assign(n_rows(), plain);
      std::vector<std::size_t> rows;
      for (std::size_t i = shares_[k].first; i < shares_[k].last && !plain; ++i) {
        structure.rows_read(i, rows);
        for (const std::size_t row : rows) reads[k][row] = true;
      }
    });
    place_.assign(n_rows(), kOwn);
    for (std::size_t row = 0; row < n_rows(); ++row) {
      std::size_t readers = 0, reader = 0;
      for (std::size_t k = 0; k < members(); ++k) {
        if (reads[k][row]) ++readers, reader = k;
      }
      if (readers > 1) {
        place_[row] = std::uint32_t(shared_.size());
        shared_.push_back(std::uint32_t(row));
      } else if (readers == 1) {
        shares_[reader].own.push_back(std::uint32_t(row));
      }
    }
  }

  std::size_t n_weights_, row_ = 1;
  std::vector<Share> shares_;
  std::vector<std::uint32_t> shared_, place_;
};

}  // namespace mm
