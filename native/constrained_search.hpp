// The best labelling of a sequence under scores and constraints:
//
//   argmax over y of  w·Φ(x, y) + Σ_k c_k φ_k(x, y) + q ‖φ(x, y)‖²,
//
// the inference problems (14) and (15) of the transductive paper (c = ∓(μ/2) v, q = ±μ/4), soft decoding
// (c = the weights, q = 0) and hard decoding (c infinite).
//
// Coordinates at tokens and edges are terms of the emissions and transitions, so that with these alone one
// Viterbi pass is exact. With automata the states are pairs of a label and a state of the automata: for a
// count that is the paper's "double" dynamic programme, for fields that occur once it is labels times sets of
// labels seen. These may be many, so the search is guided:
//
//   1. A backward Viterbi pass over labels alone, in which each automaton has its upper bound, gives B[t][l]:
//      no labelling gains more behind token t with label l there. If its own best labelling is worth what the
//      bound says, that is the answer.
//   2. A forward pass over (label, state) drops what cannot beat the best labelling known: score + B[t][l] +
//      what the state may still be worth. At most `width` states a token are kept, those with the highest such
//      bounds, and the highest bound that was dropped is remembered. Width grows from small to what is allowed;
//      a pass that dropped nothing better than what it found has found the best.
//
// So the answer comes with an upper bound of all labellings, and is exact where the two meet.
#pragma once

#include "constraint_automata.hpp"

namespace mm {

// Scores of the labels of a sequence: S[t][Lp], start, end, and into(t) -> [L][Lp] transitions into token t.
template <class T>
struct LabelScores {
  const T* S;
  const T* start;
  const T* end;
  std::size_t Lp;
};

class ConstrainedSearch {
 public:
  ConstrainedSearch(const ConstraintData& data, const ConstraintAutomata& automata) : data_(data), automata_(automata), L_(data.n_labels) {}

  struct Result {
    double score = -kInfinity;  // of the labelling in y(); -inf where there is none
    double bound = -kInfinity;  // of all labellings
    // Is there nothing better?
    bool exact() const { return !(bound > score); }
  };

  const std::vector<std::uint32_t>& y() const { return y_; }

  using Place = ConstraintAutomata::Place;

  template <class T, class Into>
  Result best(const Place& at, const LabelScores<T>& scores, Into&& into, const Worths& worths, std::size_t width) {
    load_nodes(at, scores, worths);
    const auto edges = [&](std::size_t t) { load_edges(at, t, into(t), scores.Lp, worths); };
    if (automata_.empty()) return viterbi(at.n, edges);
    const double relaxed = relax(at, worths, edges);
    Result best;
    if (relaxed == -kInfinity) return best;
    best.score = evaluate(at, worths, edges, y_);
    best.bound = relaxed;
    const double rounding = 1e-12 * (1.0 + std::abs(relaxed));
    if (best.score >= relaxed - rounding) {
      best.bound = best.score;
      return best;
    }
    for (std::size_t w = std::min<std::size_t>(width, 16);; w = std::min(width, w * 8)) {
      const double dropped = pass(at, worths, edges, w, best.score);
      best.bound = std::max(best.score, std::min(best.bound, dropped));
      if (dropped <= best.score + rounding) best.bound = best.score;
      if (best.exact() || w == width) return best;
    }
  }

  // φ of a labelling: emit(coordinate, φ) for all coordinates that are not zero, and some that are.
  template <class Emit>
  void phi(const Place& at, const std::uint32_t* y, Emit&& emit) const {
    ConstraintState state;
    for (std::size_t t = 0; t < at.n; ++t) {
      data_.tokens.at(at.begin + t, [&](std::size_t k, const double* table) { emit(k, table[y[t]]); });
      if (t > 0) data_.edges.at(at.begin + t, [&](std::size_t k, const double* table) { emit(k, table[y[t - 1] * L_ + y[t]]); });
      automata_.step(state, at, t, t == 0 ? L_ : y[t - 1], y[t], emit);
    }
    automata_.end(state, at, y[at.n - 1], emit);
  }

 private:
  struct Entry {
    double score, bound;  // of the best prefix; of the best labelling that begins with it
    ConstraintState state;
    std::uint32_t label, back;
  };

  template <class T>
  void load_nodes(const Place& at, const LabelScores<T>& scores, const Worths& worths) {
    node_.resize(at.n * L_);
    end_.assign(scores.end, scores.end + L_);
    for (std::size_t t = 0; t < at.n; ++t) {
      double* row = node_.data() + t * L_;
      for (std::size_t l = 0; l < L_; ++l) row[l] = double(scores.S[t * scores.Lp + l]) + (t == 0 ? double(scores.start[l]) : 0.0);
      data_.tokens.at(at.begin + t, [&](std::size_t k, const double* table) {
        for (std::size_t l = 0; l < L_; ++l) row[l] += worths.of(k, table[l]);
      });
    }
  }

  // edge_ = the transitions into token t, with the coordinates there.
  template <class T>
  void load_edges(const Place& at, std::size_t t, const T* A, std::size_t Lp, const Worths& worths) {
    edge_.resize(L_ * L_);
    for (std::size_t p = 0; p < L_; ++p) {
      for (std::size_t l = 0; l < L_; ++l) edge_[p * L_ + l] = double(A[p * Lp + l]);
    }
    data_.edges.at(at.begin + t, [&](std::size_t k, const double* table) {
      // Tables of rules have few different values; those of one's own may have any.
      for (std::size_t e = 0; e < L_ * L_; ++e) edge_[e] += worths.of(k, table[e]);
    });
  }

  template <class Edges>
  Result viterbi(std::size_t n, Edges&& edges) {
    B_.resize(n * L_);
    next_.resize(n * L_);
    double* D = B_.data();  // forward scores here
    std::copy_n(node_.data(), L_, D);
    for (std::size_t t = 1; t < n; ++t) {
      edges(t);
      const double* before = D + (t - 1) * L_;
      double* here = D + t * L_;
      std::uint32_t* from = next_.data() + t * L_;
      std::fill_n(here, L_, -kInfinity);
      std::fill_n(from, L_, 0u);
      for (std::size_t p = 0; p < L_; ++p) {
        const double* row = edge_.data() + p * L_;
        for (std::size_t l = 0; l < L_; ++l) {
          const double x = before[p] + row[l];
          if (x > here[l]) here[l] = x, from[l] = std::uint32_t(p);
        }
      }
      for (std::size_t l = 0; l < L_; ++l) here[l] += node_[t * L_ + l];
    }
    Result result;
    y_.assign(n, 0);
    const double* last = D + (n - 1) * L_;
    for (std::size_t l = 0; l < L_; ++l) {
      if (last[l] + end_[l] > result.score) result.score = last[l] + end_[l], y_[n - 1] = std::uint32_t(l);
    }
    for (std::size_t t = n - 1; t > 0; --t) y_[t - 1] = next_[t * L_ + y_[t]];
    result.bound = result.score;
    return result;
  }

  // Step 1: fills B_ and y_, and returns the bound.
  template <class Edges>
  double relax(const Place& at, const Worths& worths, Edges&& edges) {
    touch_.clear();
    automata_.set_lines(lines_, at, worths, touch_);
    double bound = backward(at, worths, edges);
    if (!(worths.q() < 0.0) || !automata_.has_totals()) return bound;
    // Tangents of the totals: from where they touch towards the counts of the labelling that they give. The
    // bound of any of them holds; the lowest is kept.
    std::vector<double> top(touch_), counts;
    std::vector<std::uint32_t> y = y_;
    for (int round = 0; round < 8; ++round) {
      automata_.counts(state_of(at), counts);
      touch_.resize(counts.size(), 0.0);
      for (std::size_t k = 0; k < counts.size(); ++k) touch_[k] += (counts[k] - touch_[k]) / (round + 2.0);
      automata_.set_lines(lines_, at, worths, touch_);
      const double other = backward(at, worths, edges);
      if (other < bound) bound = other, top = touch_;
    }
    automata_.set_lines(lines_, at, worths, top);
    return backward(at, worths, edges);
  }

  ConstraintState state_of(const Place& at) const {
    ConstraintState state;
    for (std::size_t t = 0; t < at.n; ++t) automata_.step(state, at, t, t == 0 ? L_ : y_[t - 1], y_[t], [](std::size_t, double) {});
    return state;
  }

  template <class Edges>
  double backward(const Place& at, const Worths& worths, Edges&& edges) {
    const std::size_t n = at.n;
    const bool relaxes = automata_.relaxes();
    B_.resize(n * L_);
    next_.resize(n * L_);
    double* last = B_.data() + (n - 1) * L_;
    for (std::size_t l = 0; l < L_; ++l) last[l] = end_[l] + (relaxes ? automata_.relaxed_end(at, l, worths) : 0.0);
    for (std::size_t t = n - 1; t > 0; --t) {
      edges(t);
      const double* after = B_.data() + t * L_;
      const double* node = node_.data() + t * L_;
      double* here = B_.data() + (t - 1) * L_;
      for (std::size_t p = 0; p < L_; ++p) {
        double top = -kInfinity;
        std::uint32_t to = 0;
        for (std::size_t l = 0; l < L_; ++l) {
          double x = edge_[p * L_ + l] + node[l] + after[l];
          if (relaxes) x += automata_.relaxed(at, t, p, l, worths, lines_);
          if (x > top) top = x, to = std::uint32_t(l);
        }
        here[p] = top;
        next_[(t - 1) * L_ + p] = to;
      }
    }
    double best = -kInfinity;
    y_.assign(n, 0);
    for (std::size_t l = 0; l < L_; ++l) {
      const double x = node_[l] + B_[l] + (relaxes ? automata_.relaxed(at, 0, L_, l, worths, lines_) : 0.0);
      if (x > best) best = x, y_[0] = std::uint32_t(l);
    }
    for (std::size_t t = 1; t < n; ++t) y_[t] = next_[(t - 1) * L_ + y_[t - 1]];
    return best + automata_.potential({}, at, n, worths, lines_);
  }

  // What a labelling is worth.
  template <class Edges>
  double evaluate(const Place& at, const Worths& worths, Edges&& edges, const std::vector<std::uint32_t>& y) {
    ConstraintState state;
    double sum = end_[y[at.n - 1]];
    const auto emit = [&](std::size_t k, double phi) { sum += worths.of(k, phi); };
    for (std::size_t t = 0; t < at.n; ++t) {
      sum += node_[t * L_ + y[t]];
      if (t > 0) edges(t), sum += edge_[y[t - 1] * L_ + y[t]];
      automata_.step(state, at, t, t == 0 ? L_ : y[t - 1], y[t], emit);
    }
    automata_.end(state, at, y[at.n - 1], emit);
    return sum;
  }

  // Step 2, with so many states a token: a better labelling than one of worth `known` replaces it and y_.
  // Returns the highest bound that was dropped for want of room.
  template <class Edges>
  double pass(const Place& at, const Worths& worths, Edges&& edges, std::size_t width, double& known) {
    double dropped = -kInfinity;
    entries_.clear();
    first_.assign(1, 0);
    for (std::size_t t = 0; t < at.n; ++t) {
      const std::size_t begin = t == 0 ? 0 : first_[t - 1], end = first_[t];
      const std::size_t left = at.n - 1 - t;
      clear_table();
      if (t > 0) edges(t);
      const auto reach = [&](const ConstraintState& from, double score, std::size_t p, std::size_t l, std::size_t back) {
        ConstraintState state = from;
        score += node_[t * L_ + l];
        if (score == -kInfinity) return;
        automata_.step(state, at, t, p, l, [&](std::size_t k, double phi) { score += worths.of(k, phi); });
        const double bound = score + B_[t * L_ + l] + automata_.potential(state, at, left, worths, lines_);
        if (bound > known) enter({score, bound, state, std::uint32_t(l), std::uint32_t(back)}, end);
      };
      if (t == 0) {
        for (std::size_t l = 0; l < L_; ++l) reach({}, 0.0, L_, l, 0);
      }
      for (std::size_t e = begin; e < end; ++e) {
        const Entry from = entries_[e];
        const double* row = edge_.data() + from.label * L_;
        for (std::size_t l = 0; l < L_; ++l) reach(from.state, from.score + row[l], from.label, l, e);
      }
      if (entries_.size() - end > width) {
        const auto first = entries_.begin() + std::ptrdiff_t(end), cut = first + std::ptrdiff_t(width);
        std::nth_element(first, cut, entries_.end(), [](const Entry& a, const Entry& b) { return a.bound > b.bound; });
        for (auto e = cut; e != entries_.end(); ++e) dropped = std::max(dropped, e->bound);
        entries_.erase(cut, entries_.end());
      }
      first_.push_back(entries_.size());
    }
    std::size_t top = entries_.size();
    for (std::size_t e = first_[at.n - 1]; e < entries_.size(); ++e) {
      double score = entries_[e].score + end_[entries_[e].label];
      automata_.end(entries_[e].state, at, entries_[e].label, [&](std::size_t k, double phi) { score += worths.of(k, phi); });
      if (score > known) known = score, top = e;
    }
    if (top < entries_.size()) {
      for (std::size_t t = at.n; t-- > 0; top = entries_[top].back) y_[t] = entries_[top].label;
    }
    return dropped;
  }

  // ---- the states of a token, each once: a table of places in entries_ ----

  void clear_table() { slots_.assign(64, 0), held_ = 0; }
  static std::size_t hash(const Entry& e) {
    std::uint64_t h = e.state.word[0] * 0x9e3779b97f4a7c15u ^ (e.state.word[1] + e.label) * 0xc2b2ae3d27d4eb4fu;
    h ^= h >> 29;
    return std::size_t(h * 0xbf58476d1ce4e5b9u >> 20);
  }
  void enter(const Entry& entry, std::size_t begin) {
    if (2 * (held_ + 1) > slots_.size()) {
      slots_.assign(slots_.size() * 2, 0);
      for (std::size_t e = begin; e < entries_.size(); ++e) slots_[slot(entries_[e])] = std::uint32_t(e + 1);
    }
    const std::size_t at = slot(entry);
    if (slots_[at] == 0) {
      entries_.push_back(entry);
      slots_[at] = std::uint32_t(entries_.size());
      ++held_;
    } else if (Entry& old = entries_[slots_[at] - 1]; entry.score > old.score) {
      old = entry;
    }
  }
  std::size_t slot(const Entry& entry) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t k = hash(entry) & mask;; k = (k + 1) & mask) {
      if (slots_[k] == 0) return k;
      const Entry& other = entries_[slots_[k] - 1];
      if (other.label == entry.label && other.state == entry.state) return k;
    }
  }

  const ConstraintData& data_;
  const ConstraintAutomata& automata_;
  std::size_t L_;
  std::vector<double> node_, end_, edge_, B_, touch_;
  std::vector<std::uint32_t> next_, y_;
  std::vector<Entry> entries_;
  std::vector<std::size_t> first_;
  std::vector<std::uint32_t> slots_;
  std::size_t held_ = 0;
  ConstraintAutomata::Lines lines_;
};

}  // namespace mm
