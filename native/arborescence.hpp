// The best dependency tree of any shape: a maximum spanning arborescence (Chu and Liu 1965, Edmonds 1967) of
// the complete graph, in O(n²) (Tarjan 1977, on a dense matrix).
//
// A path of (contracted) words is grown backwards: the last word on it takes its best incoming arc. If
// that comes from the root, or from a word that has been settled, the whole path is settled. If it comes
// from the path itself, the words from there on are a cycle, which is contracted to one word: its arcs
// are the best of those of its members, each less the arc that the member has within the cycle. A
// contraction of k words costs O(k n) and saves k - 1 words, so that all of them together cost O(n²); so
// do the n searches for the best arc of a word. Contractions are undone from the last to the first: the
// arc into a cycle takes the place of one of its arcs.
//
// Exactly one child of the root: every arc from the root is made worse by more than a tree's score can
// vary. A tree with fewer of them is then always better, and one with a single one always exists. Numbers are 8-byte
// ones, so that this costs no more than the last bits of scores of 4 bytes.
#pragma once

#include <cmath>

#include "common.hpp"

namespace mm {

template <class T>
class Arborescence {
 public:
  // heads[1..n] of the best tree; score[h * (n + 1) + d], where arcs into 0 and to itself are not read.
  void decode(std::size_t n, const T* score, bool one_root, std::uint32_t* heads) {
    if (n == 0) return;
    const std::size_t m = n + 1;
    // in_[d][h]: the score of the best arc from (what is now) h to d, and which arc it is.
    in_.resize(m * m);
    double low = kInfinity, high = -kInfinity;
    bool forbids = false;
    for (std::size_t h = 0; h < m; ++h) {
      for (std::size_t d = 1; d < m; ++d) {
        const double value = double(score[h * m + d]);
        in_[d * m + h] = {value, static_cast<std::uint32_t>(h), static_cast<std::uint32_t>(d)};
        // An arc that is forbidden (-inf) is no measure of what scores are.
        if (h == d) continue;
        if (std::isfinite(value)) {
          low = std::min(low, value), high = std::max(high, value);
        } else {
          forbids = true;
        }
      }
    }
    if (!(low <= high)) low = high = 0.0;
    // Sums of n² of the largest numbers that there are must be numbers, too.
    const double unit = std::max(std::abs(low), std::abs(high)) > 1e270 ? 1e-50 : 1.0;
    low *= unit, high *= unit;
    // A forbidden arc is worse than all others together, so that it is taken only where nothing else is left;
    // a second child of the root is worse still.
    const double more = 1.0 + std::max(std::abs(low), std::abs(high));  // something that is not lost beside them
    const double least = forbids ? low - (high - low) * double(n) - more : low;
    const double price = (high - least) * double(n) + more;
    for (std::size_t d = 1; d < m; ++d) {
      for (std::size_t h = 0; h < m; ++h) {
        Arc& arc = in_[d * m + h];
        arc.value = std::isfinite(arc.value) ? arc.value * unit : arc.value > 0.0 ? high : least;
      }
      if (one_root) in_[d * m].value -= price;
    }
    state_.assign(m, kFree);
    state_[0] = kSettled;
    parent_.resize(2 * m);
    for (std::size_t v = 0; v < 2 * m; ++v) parent_[v] = v;
    live_.resize(m);
    node_.resize(m);
    for (std::size_t v = 0; v < m; ++v) live_[v] = node_[v] = v;
    chosen_.assign(2 * m, {});
    cycles_.clear();
    next_ = m;

    for (std::size_t start = 1; start < m; ++start) {
      if (state_[start] != kFree) continue;
      path_.assign(1, start);
      state_[start] = kOnPath;
      for (;;) {
        // A slot of the matrix stands for a word or for what words were contracted to.
        const std::size_t v = path_.back();
        std::size_t from = m;
        double top = -kInfinity;
        for (const std::size_t h : live_) {
          if (h != v && (from == m || in_[v * m + h].value > top)) top = in_[v * m + h].value, from = h;
        }
        chosen_[node_[v]] = in_[v * m + from];
        if (state_[from] == kSettled) {
          for (const std::size_t u : path_) state_[u] = kSettled;
          break;
        }
        if (state_[from] == kFree) {
          state_[from] = kOnPath;
          path_.push_back(from);
          continue;
        }
        contract(m, from);
      }
    }
    expand(m, heads);
  }

 private:
  struct Arc {
    double value = 0.0;
    std::uint32_t head = 0, dependent = 0;
  };
  enum State : std::uint8_t { kFree, kOnPath, kSettled, kGone };

  // The words of the path from `from` to its end become one, in the slot of `from`.
  void contract(std::size_t m, std::size_t from) {
    const std::size_t fresh = next_++;
    std::size_t at = path_.size();
    while (path_[at - 1] != from) --at;
    --at;
    const std::size_t keep = from;
    for (std::size_t k = at; k < path_.size(); ++k) {
      parent_[node_[path_[k]]] = fresh;
      state_[path_[k]] = kGone;
    }
    state_[keep] = kOnPath;
    live_.erase(std::remove_if(live_.begin(), live_.end(), [&](std::size_t v) { return state_[v] == kGone; }), live_.end());
    // Arcs into the cycle, less what they replace; and arcs out of it.
    for (const std::size_t h : live_) {
      if (h == keep) continue;
      Arc in;
      in.value = -kInfinity;
      bool first = true;
      for (std::size_t k = at; k < path_.size(); ++k) {
        const std::size_t v = path_[k];
        Arc arc = in_[v * m + h];
        arc.value -= chosen_[node_[v]].value;
        if (first || arc.value > in.value) in = arc, first = false;
        if (h != 0 && v != keep && in_[h * m + v].value > in_[h * m + keep].value) in_[h * m + keep] = in_[h * m + v];
      }
      in_[keep * m + h] = in;
    }
    node_[keep] = fresh;
    cycles_.push_back(fresh);
    path_.resize(at + 1);
  }

  // From the last contraction to the first: the arc into a contracted word goes to one of its members, whose
  // arc within the cycle it replaces.
  void expand(std::size_t m, std::uint32_t* heads) {
    for (std::size_t c = cycles_.size(); c-- > 0;) {
      const Arc arc = chosen_[cycles_[c]];
      std::size_t v = arc.dependent;
      while (parent_[v] != cycles_[c]) v = parent_[v];
      chosen_[v] = arc;
    }
    for (std::size_t d = 1; d < m; ++d) heads[d] = chosen_[d].head;
  }

  std::vector<Arc> in_, chosen_;
  std::vector<State> state_;
  std::vector<std::size_t> parent_, live_, node_, path_, cycles_;
  std::size_t next_ = 0;
};

}  // namespace mm
