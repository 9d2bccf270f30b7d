// Tokens with named features -> compressed sparse rows, one row a token.
//
// A row is begun, its features are added, and it is ended: only then are the names looked up, all of
// them stage by stage, so that the cache misses of a token's look-ups overlap. With grow, new
// features get the next number; without, they are left out. Repeated features are added up, and
// what is then exactly zero is left out. Nothing here knows of Python.
#pragma once

#include <cmath>
#include <limits>

#include "buffer.hpp"
#include "vocabulary.hpp"

namespace mm {

class RowBuilder {
 public:
  // `wide`: values of 8 bytes instead of 4.
  RowBuilder(Vocabulary& vocabulary, bool grow, bool wide = false) : vocabulary_(vocabulary), grow_(grow), wide_(wide) {
    indptr.push(0);
  }

  Buffer<std::int64_t> indptr;    // [rows + 1]
  Buffer<std::uint32_t> indices;  // ascending within a row, no two alike
  Buffer<float> values;           // [len(indices)], empty while all are exactly one
  Buffer<double> values64;        // the same, if wide
  bool weighted = false;          // whether values, or values64, is in use
  bool wide() const { return wide_; }

  std::size_t rows() const { return indptr.size() - 1; }
  std::size_t row_size() const { return features_.size(); }  // of the row that is being made
  const Vocabulary& vocabulary() const { return vocabulary_; }

  void begin_row() {
    features_.clear();
    weights_.clear();
    scratch_.clear();
  }

  // A feature whose text stays where it is until end_row(). The weight is finite and not zero.
  void add(std::string_view text, double weight = 1.0) {
    features_.push_back({text.data(), 0, text.size()});
    set_weight(weight);
  }

  // The same, with the Vocabulary::fragment() of the text.
  void add(std::string_view text, double weight, std::uint32_t fragment) {
    features_.push_back({text.data(), kHashed, text.size(), fragment});
    set_weight(weight);
  }

  // A feature whose text is put together here.
  template <class... Parts>
  void add_joined(double weight, const Parts&... parts) {
    const std::size_t begin = scratch_.size();
    (scratch_.append(parts), ...);
    features_.push_back({nullptr, begin, scratch_.size() - begin});
    set_weight(weight);
  }

  // Names -> ids -> one row. `overflow(name)` is called, and must throw, for a feature whose values
  // sum to more than kMaxValue.
  template <class Overflow>
  void end_row(Overflow&& overflow) {
    for (Feature& f : features_) {
      if (f.text == nullptr) f.text = scratch_.data() + f.at;
      if (f.at != kHashed) f.fragment = Vocabulary::fragment({f.text, f.size});
      vocabulary_.prefetch(f.fragment);
    }
    for (Feature& f : features_) f.guess = vocabulary_.guess(f.fragment);
    for (const Feature& f : features_) vocabulary_.prefetch_name(f.guess);
    if (!weights_.empty()) weights_.resize(features_.size(), 1.0);
    ids_.clear();
    for (std::size_t k = 0; k < features_.size(); ++k) {
      const std::string_view text{features_[k].text, features_[k].size};
      const std::uint32_t id = grow_ ? vocabulary_.add(text, features_[k].fragment)
                                     : vocabulary_.find(text, features_[k].fragment);
      if (id == Vocabulary::npos) continue;
      if (!weights_.empty()) weights_[ids_.size()] = weights_[k];
      ids_.push_back(id);
    }
    if (!weights_.empty()) weights_.resize(ids_.size());
    if (weights_.empty()) {
      sort(ids_);
      if (std::adjacent_find(ids_.begin(), ids_.end()) == ids_.end()) {
        std::copy(ids_.begin(), ids_.end(), indices.extend(ids_.size()));
        if (weighted) push_ones(ids_.size());
        indptr.push(static_cast<std::int64_t>(indices.size()));
        return;
      }
    }
    add_up(overflow);
  }

 private:
  static constexpr std::size_t kHashed = ~std::size_t{0};  // in the place of a place: the fragment is known

  // Text in memory of its own, or at a place in scratch_.
  struct Feature {
    const char* text;
    std::size_t at;
    std::size_t size;
    std::uint32_t fragment = 0;
    std::uint32_t guess = 0;
  };

  void set_weight(double weight) {
    if (weight == 1.0) return;
    weights_.resize(features_.size() - 1, 1.0);
    weights_.push_back(weight);
  }

  void push_ones(std::size_t n) {
    if (wide_) std::fill_n(values64.extend(n), n, 1.0); else std::fill_n(values.extend(n), n, 1.0f);
  }

  // A row with weights or with repeated features.
  template <class Overflow>
  void add_up(Overflow&& overflow) {
    weights_.resize(ids_.size(), 1.0);
    keys_.clear();
    for (std::size_t k = 0; k < ids_.size(); ++k) keys_.push_back(std::uint64_t{ids_[k]} << 32 | k);
    sort(keys_);
    for (std::size_t k = 0; k < keys_.size();) {
      const auto id = static_cast<std::uint32_t>(keys_[k] >> 32);
      double sum = 0.0;
      for (; k < keys_.size() && keys_[k] >> 32 == id; ++k) {
        sum += weights_[static_cast<std::uint32_t>(keys_[k])];
      }
      if (!(std::abs(sum) <= kMaxValue)) overflow(vocabulary_.name(id));
      const double value = wide_ ? sum : double(static_cast<float>(sum));
      if (value == 0.0) continue;
      if (value != 1.0 && !weighted) {
        weighted = true;
        push_ones(indices.size());
      }
      indices.push(id);
      if (!weighted) continue;
      if (wide_) values64.push(value); else values.push(static_cast<float>(value));
    }
    indptr.push(static_cast<std::int64_t>(indices.size()));
  }

  // A token has a few dozen features at most, and new ones come in order.
  template <class T>
  static void sort(std::vector<T>& keys) {
    if (keys.size() > 48) {
      std::sort(keys.begin(), keys.end());
      return;
    }
    for (std::size_t i = 1; i < keys.size(); ++i) {
      const T key = keys[i];
      std::size_t j = i;
      for (; j > 0 && keys[j - 1] > key; --j) keys[j] = keys[j - 1];
      keys[j] = key;
    }
  }

  Vocabulary& vocabulary_;
  const bool grow_, wide_;
  std::vector<Feature> features_;
  std::vector<double> weights_;  // of features_; shorter where the rest weighs one
  std::string scratch_;          // texts that were put together
  std::vector<std::uint32_t> ids_;
  std::vector<std::uint64_t> keys_;
};

}  // namespace mm
