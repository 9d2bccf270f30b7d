// z of all shares, as the coordinator keeps it in rounds of consensus (consensus.hpp has the mathematics, member.hpp what
// the shares do): sweeps over the chunks of shared rows in which some share takes part.
//
// With Y = Σ_k ρ_k v_k and R = Σ_k ρ_k, over the shares that take part in a weight, z = argmin Ω(z) + ½ R z² - Y z. The
// shares tell λ ρ_k (w_k - z), by which ρ_k v_k moves; so Σ_k u_k = Y + Σ told / λ - R z with the old Y and z, and nobody has
// to send u_k as well. v_k is taken to be what was told of it, and the z of the shares what they were told.
#pragma once

#include "consensus_metric.hpp"
#include "consensus_shares.hpp"
#include "link.hpp"
#include "member.hpp"
#include "short_floats.hpp"

namespace mm {

template <class T>
class Meeting {
 public:
  using Lanes = RowChunks::Lanes;
  using Places = typename Member<T>::Places;
  using PlacesView = typename Member<T>::PlacesView;

  // `reads`: for each share the rows that its examples read, ascending.
  Meeting(Link link, std::size_t n_weights, std::size_t row, const std::vector<std::span<const std::uint32_t>>& reads)
      : link_(std::move(link)), at_(RowChunks::of<T>(row, n_weights)), n_rows_((n_weights + row - 1) / row), seats_(reads.size()) {
    link_.check(n_weights);
    plain_ = link_.identity();
    std::vector<std::uint32_t> readers(n_rows_);
    for (const auto& rows : reads) {
      std::int64_t last = -1;
      for (const std::uint32_t row : rows) {
        if (std::int64_t(row) <= last || row >= n_rows_) throw BadInput("rows that a share reads must be ascending, and there");
        last = row, ++readers[row];
      }
    }
    std::vector<std::uint32_t> place(n_rows_, kNone);
    for (std::size_t row = 0; row < n_rows_; ++row) {
      if (readers[row] > 1) place[row] = std::uint32_t(shared_.size()), shared_.push_back(std::uint32_t(row));
    }
    first_reader_.assign(shared_.size() + 1, 0);
    for (std::size_t k = 0; k < reads.size(); ++k) {
      Seat& seat = seats_[k];
      seat.common.resize(reads[k].size());
      for (std::size_t n = 0; n < reads[k].size(); ++n) {
        const std::uint32_t g = place[reads[k][n]];
        if (g == kNone) {
          seat.own.push_back(reads[k][n]);
        } else {
          seat.common[n] = 1, seat.shared.push_back(g), ++first_reader_[g + 1];
        }
      }
    }
    for (std::size_t g = 0; g < shared_.size(); ++g) first_reader_[g + 1] += first_reader_[g];
    readers_.resize(first_reader_.back());
    std::vector<std::uint32_t> at(first_reader_.begin(), first_reader_.end() - 1);
    for (std::size_t k = 0; k < seats_.size(); ++k) {
      for (std::size_t s = 0; s < seats_[k].shared.size(); ++s) readers_[at[seats_[k].shared[s]]++] = {std::uint32_t(k), std::uint32_t(s)};
    }
    slot_.assign(shared_.size() * at_.chunks, kNone);
    if (!link_.uniform()) rest_ = rest_of_all(readers);
  }

  std::size_t n_shared() const { return shared_.size(); }
  // Weights in which some share takes part.
  std::size_t size() const { return z_.size(); }
  // For each row that the share reads: whether others do, too.
  const std::vector<std::uint8_t>& common(std::size_t k) const { return seats_.at(k).common; }
  // Ω(z) and Ω*(Σ u_k), but for rows that one share alone reads.
  double penalty() const { return penalty_ + rest_; }
  double conjugate() const { return conjugate_ - rest_; }
  bool zero() const {
    return std::all_of(z_.begin(), z_.end(), [](T z) { return z == T(0); });
  }

  // ---- messages from a share ----

  // Shares begin anew, at the present z.
  void begin() {
    clear();
    for (Seat& seat : seats_) {
      seat.members.clear(), seat.metric.clear(), seat.in.clear(), seat.known.clear();
    }
    changed_ = false;
  }
  // A share that was made anew knows of nothing.
  void forget(std::size_t k) {
    Seat& seat = seats_.at(k);
    seat.near.clear(), seat.joined = {};
    for (const Slot& slot : slots_) {
      for (std::size_t r = first_reader_[slot.g]; r < first_reader_[slot.g + 1]; ++r) {
        if (readers_[r].k == k) come_near(seat, readers_[r].s, slot, slot.live);
      }
    }
  }
  // Another metric for all, who then say what it is; they know of all that is live, and put their lists in order.
  void measure() {
    clear();
    for (Seat& seat : seats_) {
      seat.members.clear(), seat.in.clear(), seat.near.clear();
      seat.known.resize(seat.shared.size() * at_.chunks);
      for (std::size_t chunk = 0; chunk < seat.known.size(); ++chunk) {
        const std::uint32_t s = std::uint32_t(chunk / at_.chunks), slot = slot_[seat.shared[s] * at_.chunks + chunk % at_.chunks];
        if (slot == kNone) continue;
        const Lanes in = seat.known[chunk];
        if (in != 0) seat.members.push_back({s, std::uint32_t(std::popcount(in))});
        RowChunks::for_lanes(in, [&](std::size_t l) { seat.in.push_back(place_[slots_[slot].at + l]); });
        RowChunks::for_lanes(slots_[slot].live, [&](std::size_t l) { seat.near.push_back(place_[slots_[slot].at + l]); });
      }
    }
  }
  // What a share begins with, or its metric and u_k wherever it takes part (Member::Opening).
  void open(std::size_t k, std::span<const std::uint8_t> metric, const PlacesView& joined, std::span<const float> sums) {
    Seat& seat = seats_.at(k);
    if (!metric.empty() && metric.size() != seat.shared.size()) throw BadInput("expected the metric of all shared rows of a share");
    seat.metric.assign(metric.begin(), metric.end());
    join(seat, joined, false);
    if (sums.size() != seat.in.size()) throw BadInput("a share told of other weights than it takes part in");
    std::size_t n = 0;
    for (const MemberChunk& member : seat.members) {
      const double rho = seat.rho_of(member.s);
      for (std::size_t k = 0; k < member.n; ++k, ++n) {
        const std::uint32_t at = seat.in[n];
        Y_[at] += rho * double(z_[at]) + double(sums[n]);
        R_[at] += float(rho);
      }
    }
  }
  // What it did in a round at the present z (Member::Told).
  void add(std::size_t k, const PlacesView& joined, std::span<const std::uint16_t> codes, ShortFloats scale) {
    Seat& seat = seats_.at(k);
    join(seat, joined, true);
    if (codes.size() != seat.in.size()) throw BadInput("a share told of other weights than it takes part in");
    float* const total = total_.data();
    for (std::size_t n = 0; n < codes.size(); ++n) total[seat.in[n]] += scale.value(codes[n]);
  }

  // ---- the next z ----

  void meet(double relaxation) {
    const std::size_t n = z_.size();
    told_.resize(n), change_.resize(n);
    const double part = 1.0 / relaxation;
    double conjugate[4] = {}, square[4] = {};
    const auto each = [&](auto&& conjugate_at, auto&& held) {
      for (std::size_t k = 0; k < n; ++k) {
        const double R = R_[k], moved = total_[k], z = double(z_[k]), Y = Y_[k];
        conjugate[k & 3] += conjugate_at(k, Y + part * moved - R * z);
        Y_[k] = Y + moved;
        told_[k] = float(held(k, Y + moved, R) - z);
      }
    };
    if (plain_) {
      each([](std::size_t, double u) { return 0.5 * u * u; }, [](std::size_t, double Y, double R) { return Y / (1.0 + R); });
    } else {
      each([&](std::size_t k, double u) { return link_.conjugate(j_[k], u, link_.weight(j_[k], u)); },
           [&](std::size_t k, double Y, double R) { return link_.held(j_[k], Y, R); });
    }
    std::fill(total_.begin(), total_.end(), 0.0f);
    conjugate_ = (conjugate[0] + conjugate[1]) + (conjugate[2] + conjugate[3]);
    scale_ = ShortFloats::up_to(told_);
    for (std::size_t k = 0; k < n; ++k) change_[k] = scale_.code(told_[k]);
    for (std::size_t k = 0; k < n; ++k) {
      z_[k] += T(scale_.value(change_[k]));
      square[k & 3] += double(z_[k]) * double(z_[k]);
    }
    changed_ = true;
    penalty_ = 0.5 * ((square[0] + square[1]) + (square[2] + square[3]));
    if (!plain_) penalty_of_z();
  }
  // What share k is told of it: where somebody takes part from now on, and the change of z wherever somebody does. No codes: z
  // did not change.
  Places take_joined(std::size_t k) { return std::exchange(seats_.at(k).joined, {}); }
  std::vector<std::uint16_t> told(std::size_t k) const {
    if (!changed_) return {};
    return gather(seats_.at(k), change_.data());
  }
  ShortFloats scale() const { return scale_; }

  // ---- certificates ----

  // u_k of all shares in 8 bytes (Member::Exact): first this, then add_exact() for each.
  void begin_exact() { exact_.assign(z_.size(), 0.0); }
  void add_exact(std::size_t k, const PlacesView& places, std::span<const double> sums) {
    Seat& seat = seats_.at(k);
    std::size_t n = 0;
    for (const Lanes lanes : places.lanes) n += std::size_t(std::popcount(lanes));
    if (n != sums.size()) throw BadInput("a share told of other weights than it has");
    const double* u = sums.data();
    for (std::size_t p = 0; p < places.chunks.size(); ++p) {
      const std::uint32_t slot = slot_at(seat, places.chunks[p], places.lanes.size() > p ? places.lanes[p] : 0);
      exact_.resize(z_.size());
      RowChunks::for_lanes(places.lanes[p], [&](std::size_t l) { exact_[place_[slots_[slot].at + l]] += *u++; });
    }
  }
  // Ω* of these sums, but for rows of one share alone.
  double exact_conjugate() const {
    double sum = 0.0;
    for_live([&](std::size_t k, std::size_t j) { sum += plain_ ? 0.5 * exact_[k] * exact_[k] : link_.conjugate(j, exact_[k], link_.weight(j, exact_[k])); });
    return sum - rest_;
  }
  // z is link(Σ u_k); or without the rounding of messages: what a link holds at a bound or at zero is there then.
  void place_sums() {
    for_live([&](std::size_t k, std::size_t j) { z_[k] = T(link_.weight(j, exact_[k])); });
    changed_ = false;
    penalty_of_z();
  }
  void place_held() {
    for_live([&](std::size_t k, std::size_t j) { z_[k] = T(link_.held(j, Y_[k], double(R_[k]))); });
    changed_ = false;
    penalty_of_z();
  }
  // z where share k reads it.
  std::vector<T> placed(std::size_t k) const { return gather(seats_.at(k), z_.data()); }

  // ---- the model ----

  // z in its rows, of all weights; others are as they were.
  void write(T* w) const {
    for_live([&](std::size_t k, std::size_t j) { w[j] = z_[k]; });
  }
  std::vector<T> values() const { return z_; }
  void set_values(std::span<const T> z) {
    if (z.size() != z_.size()) throw BadInput("expected z at all weights");
    std::copy(z.begin(), z.end(), z_.begin());
    penalty_of_z();
  }
  // Rows of share k alone (Member::Weighed).
  void write_own(std::size_t k, std::span<const std::uint32_t> chunks, std::span<const T> values, T* w) const {
    const Seat& seat = seats_.at(k);
    const T* value = values.data();
    const T* const end = value + values.size();
    for (const std::uint32_t chunk : chunks) {
      const std::size_t r = chunk / at_.chunks, c = chunk % at_.chunks;
      if (r >= seat.own.size()) throw BadInput("a share told of rows that it does not read");
      const std::size_t n = at_.width(seat.own[r], c);
      if (std::size_t(end - value) < n) throw BadInput("a share told of other weights than it has");
      std::copy(value, value + n, w + std::size_t(seat.own[r]) * at_.row + c * at_.chunk);
      value += n;
    }
    if (value != end) throw BadInput("a share told of other weights than it has");
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Slot {
    std::uint32_t g, c;  // a shared row, and a chunk of it
    std::uint32_t at, n;
    Lanes live = 0;      // where some share takes part
  };
  struct Reader {
    std::uint32_t k, s;  // a share, and the row's place among those that it shares
  };
  // Weights of a row in which a share takes part, which joined together.
  struct MemberChunk {
    std::uint32_t s, n;
  };
  struct Seat {
    std::vector<std::uint8_t> common, metric;  // metric: of its shared rows
    std::vector<std::uint32_t> own, shared;    // rows; places among all shared rows
    std::vector<MemberChunk> members;
    std::vector<std::uint32_t> in, near;       // weights in which it takes part, and that it is told of
    std::vector<Lanes> known;                  // of each chunk: where it takes part
    Places joined;                             // what it has to be told of
    float rho_of(std::uint32_t s) const { return metric.empty() ? 1.0f : 1.0f / float(RowSlopes<T>::slope_of(metric[s])); }
  };

  void clear() { std::fill(Y_.begin(), Y_.end(), 0.0), std::fill(R_.begin(), R_.end(), 0.0f), std::fill(total_.begin(), total_.end(), 0.0f); }
  // f(place, weight) where some share takes part.
  template <class F>
  void for_live(F&& f) const {
    for (std::size_t k = 0; k < j_.size(); ++k) f(k, j_[k]);
  }
  template <class X>
  std::vector<X> gather(const Seat& seat, const X* from) const {
    std::vector<X> to(seat.near.size());
    for (std::size_t n = 0; n < to.size(); ++n) to[n] = from[seat.near[n]];
    return to;
  }
  void come_near(Seat& seat, std::uint32_t s, const Slot& slot, Lanes fresh) {
    RowChunks::for_lanes(fresh, [&](std::size_t l) { seat.near.push_back(place_[slot.at + l]); });
    seat.joined.add(s * at_.chunks + slot.c, fresh);
  }
  // The slot of a chunk, in which a share takes part in some weights.
  std::uint32_t slot_at(const Seat& seat, std::uint32_t chunk, Lanes lanes) {
    const std::size_t s = chunk / at_.chunks, c = chunk % at_.chunks;
    const std::size_t n = s < seat.shared.size() ? at_.width(shared_[seat.shared[s]], c) : 0;
    if (n == 0 || lanes == 0 || (lanes & ~RowChunks::all_lanes(n)) != 0) throw BadInput("a weight of a share is none of all shares");
    const std::uint32_t g = seat.shared[s];
    std::uint32_t& place = slot_[g * at_.chunks + c];
    if (place == kNone) {
      place = std::uint32_t(slots_.size());
      slots_.push_back({g, std::uint32_t(c), std::uint32_t(place_.size()), std::uint32_t(n)});
      place_.resize(place_.size() + n, kNone);
    }
    Slot& slot = slots_[place];
    const Lanes fresh = lanes & ~slot.live;
    if (fresh == 0) return place;
    slot.live |= fresh;
    RowChunks::for_lanes(fresh, [&](std::size_t l) {
      const std::size_t j = at_.first(shared_[g], c) + l;
      const double w = plain_ ? 0.0 : link_.weight(j, 0.0);
      place_[slot.at + l] = std::uint32_t(z_.size());
      j_.push_back(j), z_.push_back(T(w));
      if (!link_.uniform()) rest_ -= link_.penalty(j, w);
    });
    Y_.resize(z_.size()), R_.resize(z_.size()), total_.resize(z_.size());
    for (std::size_t r = first_reader_[g]; r < first_reader_[g + 1]; ++r) come_near(seats_[readers_[r].k], readers_[r].s, slot, fresh);
    return place;
  }
  // `at_z`: what it joins at has been z; else it says with what.
  void join(Seat& seat, const PlacesView& joined, bool at_z) {
    if (joined.chunks.size() != joined.lanes.size()) throw BadInput("the weights that join are damaged");
    seat.known.resize(seat.shared.size() * at_.chunks);
    for (std::size_t p = 0; p < joined.chunks.size(); ++p) {
      const std::uint32_t chunk = joined.chunks[p], slot = slot_at(seat, chunk, joined.lanes[p]), s = std::uint32_t(chunk / at_.chunks);
      const Lanes fresh = joined.lanes[p] & ~seat.known[chunk];
      seat.known[chunk] |= fresh;
      seat.members.push_back({s, std::uint32_t(std::popcount(fresh))});
      const float rho = seat.rho_of(s);
      RowChunks::for_lanes(fresh, [&](std::size_t l) {
        const std::uint32_t at = place_[slots_[slot].at + l];
        seat.in.push_back(at);
        if (!at_z) return;
        Y_[at] += double(rho) * double(z_[at]);
        R_[at] += rho;
      });
    }
  }
  void penalty_of_z() {
    double sum = 0.0;
    for_live([&](std::size_t k, std::size_t j) {
      // Rounding to two bytes may leave the bounds of a weight, as the nearest 4-byte number may.
      const double z = double(z_[k]);
      sum += plain_ ? 0.5 * z * z : link_.penalty(j, std::clamp(z, link_.least.at(j), link_.most.at(j)));
    });
    penalty_ = sum;
  }
  // Ω(link(0)) of rows that are not of one share alone.
  double rest_of_all(const std::vector<std::uint32_t>& readers) const {
    double sum = 0.0;
    for (std::size_t row = 0; row < n_rows_; ++row) {
      if (readers[row] == 1) continue;
      for (std::size_t j = row * at_.row; j < std::min((row + 1) * at_.row, at_.n_weights); ++j) sum += link_.penalty(j, link_.weight(j, 0.0));
    }
    return sum;
  }

  Link link_;
  bool plain_ = true;
  RowChunks at_;
  std::size_t n_rows_;
  std::vector<Seat> seats_;
  std::vector<std::uint32_t> shared_;  // rows
  std::vector<std::uint32_t> first_reader_;
  std::vector<Reader> readers_;
  std::vector<std::uint32_t> slot_;    // of each chunk of shared rows
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> place_;   // of each weight in slots, where some share takes part
  std::vector<std::size_t> j_;         // weights there; what follows is of these
  std::vector<double> Y_, exact_;
  std::vector<float> R_, total_;
  std::vector<T> z_;
  std::vector<float> told_;
  std::vector<std::uint16_t> change_;  // of the change of z, which is told next if it did change
  bool changed_ = false;
  ShortFloats scale_;
  double penalty_ = 0.0, conjugate_ = 0.0, rest_ = 0.0;
};

}  // namespace mm
