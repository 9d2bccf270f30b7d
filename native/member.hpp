// A share of the examples in rounds of consensus between processes (consensus.hpp has the mathematics, and
// maxmargin.distributed.consensus the messages).
//
// Where its examples alone read a row, w = link(u), and nobody is told of it. In shared rows the engine's weights follow u
// by the slopes of rows, as those of a thread do, and u_k is kept nowhere. What there is for a weight besides w is z and v,
// in *slots*: chunks of rows in which somebody takes part. Of each the share knows which weights it takes part in itself
// (*in*), and which of them somebody does (*live*). Lists of these only grow, in the same order on both sides, so that
// messages need no places. A chunk's number is its place among all chunks of the rows that the
// share has in common with others. (Messages of whole chunks were tried: three of four weights in them were zero.)
#pragma once

#include "consensus.hpp"
#include "consensus_metric.hpp"
#include "engine.hpp"
#include "short_floats.hpp"

namespace mm {

template <class T>
class Member {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  using Lanes = RowChunks::Lanes;

  // Chunks, and which weights of each are meant.
  struct Places {
    std::vector<std::uint32_t> chunks;
    std::vector<Lanes> lanes;
    void add(std::size_t chunk, Lanes of) { chunks.push_back(std::uint32_t(chunk)), lanes.push_back(of); }
  };
  struct PlacesView {
    std::span<const std::uint32_t> chunks;
    std::span<const Lanes> lanes;
  };

  // With what a share begins, or goes on with another metric.
  struct Opening {
    std::vector<std::uint8_t> metric;   // codes of slopes of shared rows; empty: ρ = 1
    Places joined;                      // where it takes part from now on
    std::vector<float> sums;            // u_k wherever it takes part
  };
  // By how much ρ v changed wherever it takes part, in 2 bytes.
  struct Told {
    Places joined;
    std::vector<std::uint16_t> codes;
    ShortFloats scale;
    double residual = 0.0;  // ‖v' - v‖², weighted by ρ, without over-relaxation
  };

  Member(Engine<T>& engine, const Structure<T>& structure) : engine_(engine), structure_(structure) {
    const std::size_t n = structure.n_weights();
    const bool plain = structure.row_size() >= n;
    at_ = RowChunks::of<T>(plain ? ConsensusShares<T>::kPlainRow : std::max<std::size_t>(structure.row_size(), 1), n);
    n_rows_ = (n + at_.row - 1) / at_.row;
    std::vector<bool> reads(n_rows_, plain);
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < structure.n_examples() && !plain; ++i) {
      structure.rows_read(i, rows);
      for (const std::size_t row : rows) reads.at(row) = true;
    }
    for (std::size_t row = 0; row < n_rows_; ++row) {
      if (reads[row]) reads_.push_back(std::uint32_t(row));
    }
  }

  // Rows that its examples read, ascending; of so many weights each, and how many rows there are.
  const std::vector<std::uint32_t>& reads() const { return reads_; }
  const RowChunks& chunks() const { return at_; }
  std::size_t n_rows() const { return n_rows_; }

  // For each of these: whether others read it, too. Nothing is known of shared rows then.
  void share(std::span<const std::uint8_t> common) {
    if (common.size() != reads_.size()) throw BadInput("other rows are shared than the examples read");
    own_.clear(), shared_.clear();
    place_.assign(n_rows_, kNone);
    for (std::size_t k = 0; k < reads_.size(); ++k) {
      if (common[k] != 0) place_[reads_[k]] = std::uint32_t(shared_.size());
      (common[k] != 0 ? shared_ : own_).push_back(reads_[k]);
    }
    slopes_ = RowSlopes<T>(n_rows_, at_.row);
    slot_.assign(shared_.size() * at_.chunks, kNone);
    slots_.clear(), z_.clear(), v_.clear();
    near_.clear(), n_live_ = 0;
    leave();
  }
  const std::vector<std::uint32_t>& shared() const { return shared_; }

  // ---- beginning ----

  // With the multipliers that there are, at the engine's w, which is link(u) in own rows, and the same z for all in shared ones.
  // `steepness`: of the metric of its planes; 0: ρ = 1.
  Opening open(double C, double steepness) {
    engine_.start_rounds(C);
    Weights<T>& weights = engine_.weights_to_change();
    const T* const w = weights.data();
    const bool empty = engine_.blocks().size().planes == 0;
    slopes_.touched().clear();
    for (const std::uint32_t row : own_) {
      slopes_.clear(row, RowSlopes<T>::kUntouched);
      if (empty && weights.link().uniform()) continue;  // memory that nobody touched yet
      at_.for_all(row, [&](std::size_t c, std::size_t j, std::size_t n) {
        if (!all_zero(w + j, n)) slopes_.move(row, slopes_.bit_of(c * at_.chunk));
      });
    }
    for (const std::uint32_t row : shared_) slopes_.clear(row, 1);
    leave();
    Opening out;
    if (empty) return out;
    AlignedArray<T> u(shared_.size() * at_.row);
    GatheredRows<T> rows{place_.data(), at_.row, u.data()};
    gather_planes(structure_, engine_.blocks(), 0, structure_.n_examples(), 1, rows, [](double mass) { return mass; });
    if (steepness > 0.0) out.metric = metric(steepness);
    for (std::size_t s = 0; s < shared_.size(); ++s) {
      const std::uint32_t row = shared_[s];
      if (steepness > 0.0) slopes_.set_code(row, out.metric[s]);
      std::uint32_t marks = 0;
      at_.for_all(row, [&](std::size_t c, std::size_t, std::size_t n) {
        if (!all_zero(u.data() + s * at_.row + c * at_.chunk, n)) marks |= 1u << c / at_.parts;
      });
      slopes_.mark(row, known_[s] = marks);
      at_.for_marked(row, marks, [&](std::size_t c, std::size_t j, std::size_t n) {
        const T* const own = u.data() + s * at_.row + c * at_.chunk;
        Slot& slot = become_member(s, c);
        slot.in = RowChunks::lanes_of(own, n);
        if (slot.in != 0) out.joined.add(s * at_.chunks + c, slot.in), told_.push_back({members_.back(), slot.in});
        std::copy(w + j, w + j + n, z_.data() + slot.at);
        RowChunks::for_lanes(slot.in, [&](std::size_t l) {
          v_[slot.at + l] = w[j + l] + slopes_.slope(row) * own[l];
          out.sums.push_back(float(own[l]));
        });
      });
    }
    n_in_ = out.sums.size();
    return out;
  }

  // Another metric, that of the planes which there are by now; u_k and z stay. After aim().
  // Lists are put in the order of the weights, on both sides.
  Opening measure(double steepness) {
    Opening out;
    out.metric = metric(steepness);
    put_in_order();
    out.sums.reserve(n_in_);
    T* const all = engine_.weights_to_change().data();
    for (const Entry& entry : told_) {
      const Slot& slot = slots_[entry.slot];
      T* const w = all + slot.j;
      T *const v = v_.data() + slot.at, *const z = z_.data() + slot.at;
      const T rho = T(1) / slopes_.slope(slot.row), slope = RowSlopes<T>::slope_of(out.metric[place_[slot.row]]);
      RowChunks::for_lanes(entry.lanes, [&](std::size_t l) {
        const T u = rho * (w[l] - T(2) * z[l] + v[l]);
        v[l] = z[l] + slope * u;
        w[l] = z[l];
        out.sums.push_back(float(u));
      });
    }
    for (std::size_t s = 0; s < shared_.size(); ++s) slopes_.set_code(shared_[s], out.metric[s]);
    return out;
  }

  // ---- a round ----

  // Take the change of z where somebody takes part, also in `joined` from now on. `show`: the engine's w is z until aim();
  // else the share's problem begins at it.
  void follow(const PlacesView& joined, std::span<const std::uint16_t> codes, ShortFloats scale, bool show) {
    come_near(joined);
    if (!codes.empty() && codes.size() != n_live_) throw BadInput("the change of z is not that of the weights near by");
    T* const all = engine_.weights_to_change().data();
    const bool moves = !codes.empty();
    const std::uint16_t* code = codes.data();
    for (std::size_t k = 0; k < near_.size(); ++k) {
      if (k + kAhead < near_.size()) fetch(all, slots_[near_[k + kAhead].slot]);
      const Slot& slot = slots_[near_[k].slot];
      T *const w = all + slot.j, *const z = z_.data() + slot.at;
      RowChunks::for_lanes(near_[k].lanes, [&](std::size_t l) {
        if (moves) z[l] += T(scale.value(*code++));
        if (show) {
          std::swap(z[l], w[l]);
        } else {
          w[l] = (slot.in >> l & 1) != 0 ? w[l] + T(2) * z[l] : z[l];
        }
      });
    }
  }
  // After the oracle looked at z.
  void aim() {
    T* const all = engine_.weights_to_change().data();
    for (std::size_t k = 0; k < near_.size(); ++k) {
      if (k + kAhead < near_.size()) fetch(all, slots_[near_[k + kAhead].slot]);
      const Slot& slot = slots_[near_[k].slot];
      T *const w = all + slot.j, *const z = z_.data() + slot.at;
      RowChunks::for_lanes(near_[k].lanes, [&](std::size_t l) {
        const T now = w[l];
        w[l] = (slot.in >> l & 1) != 0 ? z[l] + T(2) * now : now;
        z[l] = now;
      });
    }
  }
  void begin_steps() { engine_.weights_to_change().set_slopes(&slopes_); }
  void end_steps() { engine_.weights_to_change().set_slopes(nullptr); }

  // After the passes: v' = v + λ (w - z). What is left in w is u_k / ρ - v', to which follow() adds 2z.
  Told take(double relaxation) {
    Told out;
    for (std::size_t s = 0; s < shared_.size(); ++s) {
      const std::uint32_t marks = slopes_.marks(shared_[s]);
      if (marks == known_[s]) continue;
      at_.for_marked(shared_[s], marks & ~known_[s], [&](std::size_t c, std::size_t, std::size_t) { become_member(s, c); });
      known_[s] = marks;
    }
    T* const all = engine_.weights_to_change().data();
    for (std::size_t k = 0; k < members_.size(); ++k) {
      if (k + kAhead < members_.size()) fetch(all, slots_[members_[k + kAhead]]);
      Slot& slot = slots_[members_[k]];
      const T *const w = all + slot.j, *const z = z_.data() + slot.at;
      const Lanes fresh = RowChunks::differ(w, z, slot.n) & ~slot.in;
      if (fresh == 0) continue;
      told_.push_back({members_[k], fresh});
      slot.in |= fresh;
      n_in_ += std::size_t(std::popcount(fresh));
      out.joined.add(place_[slot.row] * at_.chunks + (slot.j - slot.row * at_.row) / at_.chunk, fresh);
      RowChunks::for_lanes(fresh, [&](std::size_t l) { v_[slot.at + l] = z[l]; });
    }
    std::vector<float> told(n_in_);
    float* change = told.data();
    for (std::size_t k = 0; k < told_.size(); ++k) {
      if (k + kAhead < told_.size()) fetch(all, slots_[told_[k + kAhead].slot]);
      const Slot& slot = slots_[told_[k].slot];
      const T *const w = all + slot.j, *const z = z_.data() + slot.at;
      const float rho = 1.0f / float(slopes_.slope(slot.row)), by = float(relaxation) * rho;
      float sum = 0.0f;
      RowChunks::for_lanes(told_[k].lanes, [&](std::size_t l) {
        const float apart = float(w[l] - z[l]);
        *change++ = by * apart;
        sum += apart * apart;
      });
      out.residual += double(rho * sum);
    }
    out.scale = ShortFloats::up_to(told);
    out.codes.resize(n_in_);
    for (std::size_t k = 0; k < n_in_; ++k) out.codes[k] = out.scale.code(told[k]);
    const std::uint16_t* code = out.codes.data();
    for (std::size_t k = 0; k < told_.size(); ++k) {
      if (k + kAhead < told_.size()) fetch(all, slots_[told_[k + kAhead].slot]);
      const Slot& slot = slots_[told_[k].slot];
      T *const w = all + slot.j, *const v = v_.data() + slot.at;
      const T* const z = z_.data() + slot.at;
      const T slope = slopes_.slope(slot.row);
      RowChunks::for_lanes(told_[k].lanes, [&](std::size_t l) {
        const T kept = v[l], now = kept + slope * T(out.scale.value(*code++));
        w[l] = w[l] - T(2) * z[l] + kept - now;
        v[l] = now;
      });
    }
    return out;
  }

  // ---- sums over own rows ----

  struct Sums {
    double penalty = 0.0, conjugate = 0.0;  // Ω(w) and Ω*(u)
  };
  Sums own() const {
    const Weights<T>& weights = engine_.weights();
    const Link& link = weights.link();
    const T *const w = weights.data(), *const u = weights.sums();
    Sums sums;
    if (!link.uniform()) {
      for (const std::uint32_t row : own_) {
        for (std::size_t j = row * at_.row; j < std::min((row + 1) * at_.row, at_.n_weights); ++j) {
          const double price = link.penalty(j, double(w[j]));
          sums.penalty += price;
          sums.conjugate += double(w[j]) * double(u[j]) - price;
        }
      }
      return sums;
    }
    double squares = 0.0, kinks = 0.0;
    const bool kinked = link.lower.all != 0.0 || link.upper.all != 0.0;
    const std::vector<std::uint32_t>& rows = slopes_.touched();
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (k + kAhead < rows.size()) slopes_.fetch(rows[k + kAhead]), prefetch(w + rows[k + kAhead] * at_.row);
      at_.for_marked(rows[k], slopes_.marks(rows[k]), [&](std::size_t, std::size_t j, std::size_t n) {
        T sum[8] = {};
        std::size_t l = 0;
        for (; l + 8 <= n; l += 8) {
          for (std::size_t m = 0; m < 8; ++m) sum[m] += w[j + l + m] * w[j + l + m];
        }
        for (; l < n; ++l) sum[0] += w[j + l] * w[j + l];
        squares += double(((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7])));
        for (l = 0; kinked && l < n; ++l) kinks += double(w[j + l]) * (w[j + l] > T(0) ? link.upper.all : link.lower.all);
      });
    }
    sums.conjugate = 0.5 / link.scale.all * squares;
    sums.penalty = sums.conjugate + kinks;
    return sums;
  }

  // ---- certificates (certify.hpp) ----

  // u_k in shared rows, in 8 bytes, where it is not zero.
  struct Exact {
    Places places;
    std::vector<double> sums;
    double conjugate = 0.0;  // Ω*(u) in own rows
  };
  // `wide`: where a weight is in the layout of 8-byte weights; kNoWide: nowhere.
  static constexpr std::size_t kNoWide = ~std::size_t{0};
  template <class Wide>
  Exact exact(const Weights<double>& sums, Wide&& wide) const {
    Exact out;
    for (std::size_t s = 0; s < shared_.size(); ++s) {
      at_.for_all(shared_[s], [&](std::size_t c, std::size_t j, std::size_t n) {
        Lanes lanes = 0;
        for (std::size_t l = 0; l < n; ++l) {
          const std::size_t k = wide(j + l);
          if (k == kNoWide || sums.sums()[k] == 0.0) continue;
          lanes |= Lanes{1} << l;
          out.sums.push_back(sums.sums()[k]);
        }
        if (lanes != 0) out.places.add(s * at_.chunks + c, lanes);
      });
    }
    out.conjugate = sum_own(wide, [&](std::size_t k) { return sums.link().conjugate(k, sums.sums()[k], sums.data()[k]); });
    return out;
  }
  // Σ f(weight in the wide layout) over own rows.
  template <class Wide, class F>
  double sum_own(Wide&& wide, F&& f) const {
    double sum = 0.0;
    for (const std::uint32_t row : own_) {
      double part = 0.0;
      for (std::size_t j = row * at_.row; j < std::min((row + 1) * at_.row, at_.n_weights); ++j) {
        const std::size_t k = wide(j);
        if (k != kNoWide) part += f(k);
      }
      sum += part;
    }
    return sum;
  }
  // The w of shared rows near by, of which some are new: one that is certified, or at which rounds begin. Who goes on has to open() anew.
  void place(const PlacesView& joined, std::span<const T> values) {
    come_near(joined);
    if (values.size() != n_live_) throw BadInput("expected w at all weights near by");
    leave();
    T* const all = engine_.weights_to_change().data();
    const T* value = values.data();
    for (const Entry& entry : near_) {
      const Slot& slot = slots_[entry.slot];
      RowChunks::for_lanes(entry.lanes, [&](std::size_t l) { all[slot.j + l] = z_[slot.at + l] = *value++; });
    }
  }

  // Own rows as they are: chunks that are not at link(0), each numbered by its row's place among own rows.
  struct Weighed {
    std::vector<std::uint32_t> chunks;
    std::vector<T> values;
  };
  Weighed weights() const {
    Weighed out;
    const T* const w = engine_.weights().data();
    for (std::size_t k = 0; k < own_.size(); ++k) {
      at_.for_all(own_[k], [&](std::size_t c, std::size_t j, std::size_t n) {
        bool rests = true;
        for (std::size_t l = 0; l < n && rests; ++l) rests = w[j + l] == engine_.weights().at_rest(j + l);
        if (rests) return;
        out.chunks.push_back(std::uint32_t(k * at_.chunks + c));
        out.values.insert(out.values.end(), w + j, w + j + n);
      });
    }
    return out;
  }

 private:
  struct Slot {
    std::size_t j;              // the first weight
    std::uint32_t row, at, n;   // where z and v have it, and how many weights
    Lanes in = 0, live = 0;
  };
  // Weights that joined together.
  struct Entry {
    std::uint32_t slot;
    Lanes lanes;
  };
  static constexpr std::size_t kAhead = 16;

  void fetch(const T* w, const Slot& slot) const {
    prefetch_to_write(w + slot.j);
  }
  static bool all_zero(const T* x, std::size_t n) {
    return std::all_of(x, x + n, [](T value) { return value == T(0); });
  }

  std::vector<std::uint8_t> metric(double steepness) const {
    return metric_codes(structure_, engine_.blocks(), 0, structure_.n_examples(), place_.data(), shared_.size(), at_.row, steepness);
  }
  // It takes part nowhere.
  void leave() {
    members_.clear(), told_.clear(), n_in_ = 0;
    known_.assign(shared_.size(), 0u);
    for (Slot& slot : slots_) slot.in = 0;
  }
  std::uint32_t slot_of(std::size_t s, std::size_t c) {
    std::uint32_t& slot = slot_[s * at_.chunks + c];
    if (slot != kNone) return slot;
    slot = std::uint32_t(slots_.size());
    const std::uint32_t row = shared_[s];
    const std::size_t n = at_.width(row, c), j = at_.first(row, c);
    slots_.push_back({j, row, std::uint32_t(z_.size()), std::uint32_t(n)});
    for (std::size_t l = 0; l < n; ++l) z_.push_back(engine_.weights().at_rest(j + l));
    v_.resize(z_.size());
    return slot;
  }
  Slot& become_member(std::size_t s, std::size_t c) {
    const std::uint32_t slot = slot_of(s, c);
    members_.push_back(slot);
    return slots_[slot];
  }
  void put_in_order() {
    members_.clear(), told_.clear(), near_.clear();
    for (std::size_t chunk = 0; chunk < slot_.size(); ++chunk) {
      if (slot_[chunk] == kNone) continue;
      const Slot& slot = slots_[slot_[chunk]];
      if ((known_[chunk / at_.chunks] >> chunk % at_.chunks / at_.parts & 1) != 0) members_.push_back(slot_[chunk]);
      if (slot.in != 0) told_.push_back({slot_[chunk], slot.in});
      if (slot.live != 0) near_.push_back({slot_[chunk], slot.live});
    }
  }
  void come_near(const PlacesView& joined) {
    if (joined.chunks.size() != joined.lanes.size()) throw BadInput("the weights that join are damaged");
    for (std::size_t k = 0; k < joined.chunks.size(); ++k) {
      const std::size_t s = joined.chunks[k] / at_.chunks, c = joined.chunks[k] % at_.chunks;
      const std::size_t n = s < shared_.size() ? at_.width(shared_[s], c) : 0;
      if (n == 0 || (joined.lanes[k] & ~RowChunks::all_lanes(n)) != 0) throw BadInput("a weight that is none joins");
    }
    for (std::size_t k = 0; k < joined.chunks.size(); ++k) {
      const std::uint32_t place = slot_of(joined.chunks[k] / at_.chunks, joined.chunks[k] % at_.chunks);
      Slot& slot = slots_[place];
      const Lanes fresh = joined.lanes[k] & ~slot.live;
      near_.push_back({place, fresh});
      n_live_ += std::size_t(std::popcount(fresh));
      slot.live |= fresh;
    }
  }

  Engine<T>& engine_;
  const Structure<T>& structure_;
  RowChunks at_;
  std::size_t n_rows_ = 0;
  std::vector<std::uint32_t> reads_, own_, shared_, place_;  // rows; place_: of each row among shared ones
  RowSlopes<T> slopes_;
  std::vector<std::uint32_t> slot_;   // of each chunk of shared rows
  std::vector<std::uint32_t> known_;  // of each shared row: the marks of chunks that it is a member of
  std::vector<Slot> slots_;
  std::vector<T> z_, v_;              // in slots
  std::vector<std::uint32_t> members_;  // slots in which a step was made
  std::vector<Entry> told_, near_;      // where it takes part, and where somebody does
  std::size_t n_in_ = 0, n_live_ = 0;  // weights
};

}  // namespace mm
