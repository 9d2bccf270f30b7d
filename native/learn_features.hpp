// Learning what features there are, from a table or from its pieces one after the other.
//
// Lines that cannot give the same feature have an index each, and threads share these groups of lines
// without locks; the numbers that features get (by first token, then line) do not depend on the number of
// threads, nor on where a table was cut into pieces.
#pragma once

#include <deque>
#include <numeric>
#include <unordered_map>

#include "expand.hpp"

namespace mm {

// What a piece brought.
struct LearnedFeatures {
  AllRows rows;
  std::vector<Fingerprint> fingerprints;  // [new feature]
  std::vector<std::uint32_t> token;       // [new feature] where it was seen first in the piece,
  std::vector<std::uint32_t> line;        // and by which line of the template: for its name
};

class FeatureLearner {
 public:
  explicit FeatureLearner(const TemplateProgram& program) : group_of_(program.lines().size()), ids_(program.lines().size()) {
    const auto& lines = program.lines();
    std::unordered_map<Fingerprint, std::size_t> group_with;  // by seed
    for (std::size_t j = 0; j < lines.size(); ++j) {
      const std::size_t g = group_with.try_emplace(lines[j].seed, groups_.size()).first->second;
      if (g == groups_.size()) groups_.emplace_back();
      groups_[g].lines.push_back(j);
      group_of_[j] = g;
    }
  }

  FeatureLearner(const FeatureLearner&) = delete;
  FeatureLearner& operator=(const FeatureLearner&) = delete;

  std::size_t size() const { return size_; }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const Group& group : groups_) sum += group.index.bytes() + group.features.capacity() * sizeof(Feature);
    return sum;
  }

  // The features of the next piece, an expansion of the same program. Features that are new and occur at
  // least min_count times in the piece get the next numbers; those that do not are left out for good, so
  // that a count above one is for tables in one piece.
  LearnedFeatures add(const Expansion& expansion, std::size_t min_count, int threads) {
    const std::size_t n_tokens = expansion.table().n_tokens();
    look(expansion, threads);
    LearnedFeatures learned;
    number(n_tokens, min_count, learned);
    learned.rows = rows(n_tokens, threads);
    for (Group& group : groups_) group.known = group.features.size();
    for (auto& ids : ids_) ids.clear();
    return learned;
  }

  // In how many tokens each feature occurred, by number.
  std::vector<std::uint32_t> counts() {
    std::vector<std::uint32_t> counts(size_);
    for (Group& group : groups_) {
      group.take_counts();
      for (const Feature& feature : group.features) {
        if (feature.number != Expansion::kNone) counts[feature.number] = feature.count;
      }
    }
    return counts;
  }

 private:
  // A feature of a group: its fingerprint, where the piece has it first, in how many tokens, its number.
  struct Feature {
    Fingerprint fingerprint;
    std::uint32_t token, line, count, number;
  };
  struct Group {
    std::vector<std::size_t> lines;
    FeatureIndex index;
    std::vector<Feature> features;
    std::size_t known = 0;  // of them, those of earlier pieces

    // Of groups of one line the index counts; others count while they look.
    void take_counts() {
      if (lines.size() > 1) return;
      index.for_each([&](const FeatureIndex::Slot& slot) { features[slot.next_id - 1].count = slot.count; });
    }
  };

  // ids_[line][token]: the feature of the line's group.
  void look(const Expansion& expansion, int threads) {
    const auto& lines = expansion.program().lines();
    const std::size_t n_tokens = expansion.table().n_tokens(), workers = n_shares(threads, groups_.size());
    run_shares(workers, [&](std::size_t worker) {
      Expansion::Block block;
      std::vector<std::vector<std::uint64_t>> twice(groups_.size());  // (feature, token) of groups of lines
      expansion.seek(block, 0);
      while (expansion.next_block(block, expansion.table().n_sequences())) {
        for (std::size_t g = worker; g < groups_.size(); g += workers) {
          Group& group = groups_[g];
          for (const std::size_t j : group.lines) {
            expansion.expand_line(block, lines[j]);
            ids_[j].reserve(n_tokens);
            const Fingerprint* x = block.fingerprints.data();
            constexpr std::size_t kAhead = 16;
            for (std::size_t t = 0; t < block.size; ++t) {
              if (t + kAhead < block.size) group.index.prefetch(x[t + kAhead]);
              if (x[t] == 0) {
                ids_[j].push_back(Expansion::kNone);
                continue;
              }
              const std::uint32_t id = group.index.add(x[t]).next_id - 1;
              const auto token = std::uint32_t(block.begin + t), line = std::uint32_t(j);
              if (id == group.features.size()) group.features.push_back({x[t], token, line, 0, Expansion::kNone});
              if (group.lines.size() > 1) {
                Feature& feature = group.features[id];
                const bool first = std::pair(token, line) < std::pair(feature.token, feature.line);
                if (id >= group.known && first) feature.token = token, feature.line = line;
                twice[g].push_back(std::uint64_t{id} << 32 | token);
              }
              ids_[j].push_back(id);
            }
          }
        }
      }
      for (std::size_t g = worker; g < groups_.size(); g += workers) {
        // Several lines may give a token the same feature, which then has it once.
        std::sort(twice[g].begin(), twice[g].end());
        twice[g].erase(std::unique(twice[g].begin(), twice[g].end()), twice[g].end());
        for (const std::uint64_t seen : twice[g]) ++groups_[g].features[seen >> 32].count;
      }
    });
  }

  // The features of a group of one line stand in the order of their tokens, so that one walk over
  // the tokens numbers them all; those of other groups are brought into that order first.
  void number(std::size_t n_tokens, std::size_t min_count, LearnedFeatures& learned) {
    std::vector<std::vector<std::uint32_t>> order(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (min_count > 1) groups_[g].take_counts();
      const auto& features = groups_[g].features;
      order[g].resize(features.size() - groups_[g].known);
      std::iota(order[g].begin(), order[g].end(), std::uint32_t(groups_[g].known));
      if (groups_[g].lines.size() == 1) continue;
      std::sort(order[g].begin(), order[g].end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(features[a].token, a) < std::pair(features[b].token, b);
      });
    }
    std::vector<std::size_t> cursor(groups_.size(), 0);
    std::vector<Feature*> here;  // features that a token is the first to have
    for (std::size_t t = 0; t < n_tokens; ++t) {
      here.clear();
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        for (; cursor[g] < order[g].size(); ++cursor[g]) {
          Feature& feature = groups_[g].features[order[g][cursor[g]]];
          if (feature.token != t) break;
          if (min_count <= 1 || feature.count >= min_count) here.push_back(&feature);
        }
      }
      if (groups_.size() < group_of_.size()) {  // else the groups are the lines
        std::sort(here.begin(), here.end(), [](const Feature* a, const Feature* b) { return a->line < b->line; });
      }
      for (Feature* feature : here) {
        if (size_ + 1 >= Expansion::kNone) throw BadInput("there are more features than the index type holds");
        feature->number = static_cast<std::uint32_t>(size_++);
        learned.fingerprints.push_back(feature->fingerprint);
        learned.token.push_back(feature->token);
        learned.line.push_back(feature->line);
      }
    }
  }

  AllRows rows(std::size_t n_tokens, int threads) {
    const std::size_t n_lines = group_of_.size(), shares = n_shares(threads, n_tokens);
    std::vector<FeatureRows> rows(shares);
    run_shares(shares, [&](std::size_t share) {
      FeatureRows& mine = rows[share];
      const std::size_t begin = n_tokens * share / shares, end = n_tokens * (share + 1) / shares;
      for (std::size_t t = begin; t < end; ++t) {
        for (std::size_t j = 0; j < n_lines; ++j) {
          if (ids_[j][t] == Expansion::kNone) continue;
          const std::uint32_t number = groups_[group_of_[j]].features[ids_[j][t]].number;
          if (number != Expansion::kNone) mine.indices.push(number);
        }
        mine.end_row();
      }
    });
    return join_rows(rows);
  }

  std::deque<Group> groups_;  // an index cannot move
  std::vector<std::size_t> group_of_;           // [line]
  std::vector<std::vector<std::uint32_t>> ids_;  // [line][token] of the piece at hand
  std::size_t size_ = 0;
};

// All features of a table that occur at least min_count times.
inline LearnedFeatures expand_learning(const Expansion& expansion, std::size_t min_count, int threads) {
  return FeatureLearner(expansion.program()).add(expansion, min_count, threads);
}

}  // namespace mm
