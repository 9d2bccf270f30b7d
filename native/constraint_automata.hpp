// The automata of constraints that look at more than two neighbouring labels, all of one set run side by side.
//
// A state is two 64-bit words, in which each automaton has a field:
//   kSegments  the set of labels seen; with one coordinate a sequence, bit 0 says that the rule is broken
//   kOrder     1 + the highest rank seen, 0 before any; with one coordinate a sequence, the top value: broken
//   kLength    tokens of the present segment, no more than the least length; 0: broken
//   kCount     the count, no more than decides
//   kTotal     the count
//   kNgrams    1 + the labels of the n - 2 tokens before the present one, 0: none
// A broken rule that has one coordinate a sequence needs no memory any more: all such states are one.
//
// For the search each automaton also bounds what it will be worth: relaxed() is at least the worth of a
// step whatever the state, potential() what is at most to come at the end of the sequence from a state.
#pragma once

#include <bit>

#include "constraint_data.hpp"

namespace mm {

struct ConstraintState {
  std::uint64_t word[2] = {0, 0};
  bool operator==(const ConstraintState&) const = default;
};

class ConstraintAutomata {
 public:
  ConstraintAutomata(const ConstraintData& data, std::size_t longest) : data_(&data), L_(data.n_labels) {
    std::size_t used[2] = {0, 0};
    for (const AutomatonData& a : data.automata) {
      Field field;
      field.data = &a;
      field.width = width_of(a, longest, field);
      field.word = used[0] + field.width <= 64 ? 0 : 1;
      if (field.width > 64 || used[field.word] + field.width > 64) {
        throw BadInput("the constraints on segments, counts, orders and n-grams need more than 128 bits of state together; "
                       "expected fewer of them, or of fewer labels");
      }
      field.shift = used[field.word];
      used[field.word] += field.width;
      fields_.push_back(std::move(field));
    }
  }

  bool empty() const { return fields_.empty(); }
  // Is relaxed() or relaxed_end() ever other than zero?
  bool relaxes() const {
    return std::any_of(fields_.begin(), fields_.end(), [](const Field& f) {
      return f.data->per_token || f.data->kind == AutomatonKind::kTotal || f.data->kind == AutomatonKind::kNgrams;
    });
  }

  // ---- one sequence: where its automata stand ----

  // The tokens [begin, begin + n) of the data.
  struct Place {
    std::size_t sequence, begin, n;
  };

  // Go to label l at token t, from label p (L where t is 0): emit(coordinate, φ) for the coordinates that are
  // decided here.
  template <class Emit>
  void step(ConstraintState& state, const Place& at, std::size_t t, std::size_t p, std::size_t l, Emit&& emit) const {
    for (const Field& f : fields_) {
      const AutomatonData& a = *f.data;
      std::uint64_t s = get(state, f);
      const std::size_t first = std::size_t(a.first[at.sequence]);
      const bool changed = t > 0 && p != l;
      bool broken = false;
      switch (a.kind) {
        case AutomatonKind::kSegments: {
          if (!a.per_token && (s & 1) != 0) continue;
          const std::uint64_t bit = f.bits[l];
          broken = changed && (s & bit) != 0;
          s = broken && !a.per_token ? 1 : s | bit;
          break;
        }
        case AutomatonKind::kOrder: {
          if (!a.per_token && s == f.top) continue;
          const std::int32_t rank = a.labels[l];
          const std::uint64_t own = rank < 0 ? 0 : std::uint64_t(rank) + 1;
          broken = changed && rank >= 0 && s > own;
          s = broken && !a.per_token ? f.top : std::max(s, own);
          break;
        }
        case AutomatonKind::kLength: {
          if (!a.per_token && t > 0 && s == 0) continue;
          broken = changed && s < std::uint64_t(a.labels[p]);
          s = broken && !a.per_token ? 0 : t == 0 || changed ? 1 : std::min(s + 1, f.top);
          break;
        }
        case AutomatonKind::kCount:
        case AutomatonKind::kTotal:
          if (a.increments[p * L_ + l] != 0 && (a.active.empty() || a.active[at.begin + t] != 0)) s = std::min(s + 1, f.top);
          break;
        case AutomatonKind::kNgrams: {
          // s has the tokens t - 2, t - 3, ...: the newest lowest.
          if (t + 1 >= a.order) {
            const std::size_t g = gram(a, f, s, p, l);
            if (g < f.n_grams) emit(first + t * f.n_grams + g, 1.0);
          }
          const std::uint64_t mask = (std::uint64_t{1} << f.width) - 1;
          s = ((s << f.label_bits) | (t == 0 ? 0 : p + 1)) & mask;
          break;
        }
      }
      put(state, f, s);
      if (t > 0 && a.per_token) emit(first + t - 1, broken ? 0.0 : 1.0);
    }
  }

  // After the last token, with label l.
  template <class Emit>
  void end(const ConstraintState& state, const Place& at, std::size_t l, Emit&& emit) const {
    for (const Field& f : fields_) {
      const AutomatonData& a = *f.data;
      const std::uint64_t s = get(state, f);
      const std::size_t first = std::size_t(a.first[at.sequence]);
      switch (a.kind) {
        case AutomatonKind::kSegments:
          if (!a.per_token) emit(first, (s & 1) != 0 ? 0.0 : 1.0);
          break;
        case AutomatonKind::kOrder:
          if (!a.per_token) emit(first, s == f.top ? 0.0 : 1.0);
          break;
        case AutomatonKind::kLength: {
          const bool broken = s == 0 || s < std::uint64_t(a.labels[l]);
          emit(a.per_token ? first + at.n - 1 : first, broken ? 0.0 : 1.0);
          break;
        }
        case AutomatonKind::kCount:
          emit(first, within(a, s) ? 1.0 : 0.0);
          break;
        case AutomatonKind::kTotal:
          emit(first, double(s));
          break;
        case AutomatonKind::kNgrams:
          break;
      }
    }
  }

  // ---- bounds ----

  // Slopes of the lines that stand for q n² of the totals in the bounds (tangents where q < 0, chords where
  // q > 0), and the counts where the tangents touch.
  struct Lines {
    std::vector<double> slope, touch;
  };
  // For a sequence; `touch` has a count for each automaton, of which those of totals matter.
  void set_lines(Lines& lines, const Place& at, const Worths& worths, std::span<const double> touch) const {
    lines.slope.assign(fields_.size(), 0.0);
    lines.touch.assign(touch.begin(), touch.end());
    lines.touch.resize(fields_.size(), 0.0);
    for (std::size_t k = 0; k < fields_.size(); ++k) {
      if (fields_[k].data->kind != AutomatonKind::kTotal) continue;
      lines.slope[k] = worths.q() > 0.0 ? worths.q() * double(most_counted(fields_[k], at)) : 2.0 * worths.q() * lines.touch[k];
    }
  }
  bool has_totals() const {
    return std::any_of(fields_.begin(), fields_.end(), [](const Field& f) { return f.data->kind == AutomatonKind::kTotal; });
  }
  // The counts of a labelling, one for each automaton (of others than totals: anything).
  void counts(const ConstraintState& state, std::vector<double>& out) const {
    out.clear();
    for (const Field& f : fields_) out.push_back(double(get(state, f)));
  }

  // No state gains more by going from p to l at token t.
  double relaxed(const Place& at, std::size_t t, std::size_t p, std::size_t l, const Worths& worths, const Lines& lines) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < fields_.size(); ++k) {
      const Field& f = fields_[k];
      const AutomatonData& a = *f.data;
      const std::size_t first = std::size_t(a.first[at.sequence]);
      switch (a.kind) {
        case AutomatonKind::kSegments:
        case AutomatonKind::kOrder:
        case AutomatonKind::kLength: {
          if (!a.per_token || t == 0) break;
          const bool may_break = p != l && (a.kind == AutomatonKind::kLength ? a.labels[p] > 1 : f.restricts(l));
          sum += may_break ? worths.most(first + t - 1) : worths.of(first + t - 1, 1.0);
          break;
        }
        case AutomatonKind::kCount:
          break;
        case AutomatonKind::kTotal:
          if (a.increments[p * L_ + l] != 0 && (a.active.empty() || a.active[at.begin + t] != 0)) {
            sum += worths.c(first) + lines.slope[k];
          }
          break;
        case AutomatonKind::kNgrams: {
          if (t + 1 < a.order) break;
          double best = f.complete(p, l) ? -kInfinity : 0.0;
          for (std::size_t g = f.by_pair[p * L_ + l]; g != f.n_grams; g = f.next[g]) {
            best = std::max(best, worths.of(first + t * f.n_grams + g, 1.0));
          }
          sum += best;
          break;
        }
      }
    }
    return sum;
  }
  // The same of the end.
  double relaxed_end(const Place& at, std::size_t l, const Worths& worths) const {
    double sum = 0.0;
    for (const Field& f : fields_) {
      if (f.data->kind != AutomatonKind::kLength || !f.data->per_token) continue;
      const std::size_t k = std::size_t(f.data->first[at.sequence]) + at.n - 1;
      sum += f.data->labels[l] > 1 ? worths.most(k) : worths.of(k, 1.0);
    }
    return sum;
  }
  // What coordinates of the whole sequence are at most worth at its end, from a state with so many tokens left.
  double potential(const ConstraintState& state, const Place& at, std::size_t left, const Worths& worths, const Lines& lines) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < fields_.size(); ++k) {
      const Field& f = fields_[k];
      const AutomatonData& a = *f.data;
      const std::uint64_t s = get(state, f);
      const std::size_t first = std::size_t(a.first[at.sequence]);
      switch (a.kind) {
        case AutomatonKind::kSegments:
          if (!a.per_token) sum += (s & 1) != 0 ? worths.of(first, 0.0) : worths.most(first);
          break;
        case AutomatonKind::kOrder:
          if (!a.per_token) sum += s == f.top ? worths.of(first, 0.0) : worths.most(first);
          break;
        case AutomatonKind::kLength:
          if (!a.per_token) sum += s == 0 && left < at.n ? worths.of(first, 0.0) : worths.most(first);
          break;
        case AutomatonKind::kCount: {
          const bool never = (a.high >= 0 && std::int64_t(s) > a.high) || std::int64_t(s + left) < a.low;
          const bool surely = std::int64_t(s) >= a.low && (a.high < 0 || std::int64_t(s + left) <= a.high);
          sum += never ? worths.of(first, 0.0) : surely ? worths.of(first, 1.0) : worths.most(first);
          break;
        }
        case AutomatonKind::kTotal: {
          // The greatest c (n + r) + q (n + r)² over the counts r to come, less what relaxed() has of them.
          const double n = double(s), q = worths.q(), c = worths.c(first), n0 = lines.touch[k];
          if (q > 0.0) {
            sum += c * n + lines.slope[k] * n;
          } else {
            sum += c * n + (n <= n0 ? (2.0 * n - n0) * q * n0 : q * n * n);
          }
          break;
        }
        case AutomatonKind::kNgrams:
          break;
      }
    }
    return sum;
  }

 private:
  struct Field {
    const AutomatonData* data = nullptr;
    std::size_t word = 0, shift = 0, width = 0;
    std::uint64_t top = 0;             // the highest state that there is
    std::vector<std::uint64_t> bits;   // [L] kSegments
    // kNgrams: the n-grams by their last two labels, in lists.
    std::size_t n_grams = 0, label_bits = 0, stride = 0;
    std::vector<std::size_t> by_pair, next;  // [L * L], [n-grams]; n_grams ends a list
    std::vector<std::uint8_t> all;           // [L * L] whether every n-gram with these last labels is listed

    bool restricts(std::size_t l) const { return data->kind == AutomatonKind::kSegments ? bits[l] != 0 : data->labels[l] >= 0; }
    bool complete(std::size_t p, std::size_t l) const { return all[p * stride + l] != 0; }
  };

  static std::uint64_t get(const ConstraintState& state, const Field& f) {
    if (f.width == 0) return 0;
    const std::uint64_t mask = f.width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << f.width) - 1;
    return (state.word[f.word] >> f.shift) & mask;
  }
  static void put(ConstraintState& state, const Field& f, std::uint64_t s) {
    if (f.width == 0) return;
    const std::uint64_t mask = (f.width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << f.width) - 1) << f.shift;
    state.word[f.word] = (state.word[f.word] & ~mask) | (s << f.shift);
  }
  static bool within(const AutomatonData& a, std::uint64_t n) {
    return std::int64_t(n) >= a.low && (a.high < 0 || std::int64_t(n) <= a.high);
  }

  // Bits of a state of one automaton; fills what goes with them.
  std::size_t width_of(const AutomatonData& a, std::size_t longest, Field& f) const {
    switch (a.kind) {
      case AutomatonKind::kSegments: {
        std::size_t used = a.per_token ? 0 : 1;
        f.bits.assign(L_, 0);
        for (std::size_t l = 0; l < L_; ++l) {
          if (a.labels[l] != 0 && used < 64) f.bits[l] = std::uint64_t{1} << used;
          if (a.labels[l] != 0) ++used;
        }
        return used;
      }
      case AutomatonKind::kOrder:
        f.top = std::uint64_t(*std::max_element(a.labels.begin(), a.labels.end()) + 2);
        return std::size_t(std::bit_width(f.top));
      case AutomatonKind::kLength:
        f.top = std::uint64_t(std::max(*std::max_element(a.labels.begin(), a.labels.end()), 1));
        return std::size_t(std::bit_width(f.top));
      case AutomatonKind::kCount:
        f.top = std::uint64_t(a.high >= 0 ? a.high + 1 : a.low);
        return std::size_t(std::bit_width(f.top));
      case AutomatonKind::kTotal:
        f.top = longest;
        return std::size_t(std::bit_width(f.top));
      case AutomatonKind::kNgrams: {
        f.n_grams = a.grams.size() / a.order;
        f.stride = L_;
        f.label_bits = std::size_t(std::bit_width(L_));
        f.by_pair.assign(L_ * L_, f.n_grams);
        f.next.assign(f.n_grams, f.n_grams);
        std::vector<std::size_t> listed(L_ * L_, 0);
        for (std::size_t g = f.n_grams; g-- > 0;) {
          const std::uint32_t* y = a.grams.data() + g * a.order;
          const std::size_t pair = y[a.order - 2] * L_ + y[a.order - 1];
          f.next[g] = std::exchange(f.by_pair[pair], g);
          ++listed[pair];
        }
        std::size_t every = 1;
        for (std::size_t k = 2; k < a.order && every <= f.n_grams; ++k) every *= L_;
        f.all.resize(L_ * L_);
        for (std::size_t pair = 0; pair < L_ * L_; ++pair) f.all[pair] = listed[pair] == every;
        return (a.order - 2) * f.label_bits;
      }
    }
    return 0;
  }

  // The n-gram that ends with the labels p, l and has those of state s before them; n_grams: none.
  std::size_t gram(const AutomatonData& a, const Field& f, std::uint64_t s, std::size_t p, std::size_t l) const {
    const std::uint64_t one = (std::uint64_t{1} << f.label_bits) - 1;
    for (std::size_t g = f.by_pair[p * L_ + l]; g != f.n_grams; g = f.next[g]) {
      const std::uint32_t* y = a.grams.data() + g * a.order;
      bool same = true;
      for (std::size_t back = 0; same && back + 2 < a.order; ++back) {
        same = ((s >> (back * f.label_bits)) & one) == std::uint64_t(y[a.order - 3 - back]) + 1;
      }
      if (same) return g;
    }
    return f.n_grams;
  }

  std::size_t most_counted(const Field& f, const Place& at) const {
    if (f.data->active.empty()) return at.n;
    std::size_t n = 0;
    for (std::size_t t = 0; t < at.n; ++t) n += f.data->active[at.begin + t] != 0;
    return n;
  }

  const ConstraintData* data_;
  std::size_t L_;
  std::vector<Field> fields_;
};

}  // namespace mm
