// Learning to align (Tsochantaridis et al., ICML 2004, section 5.4; Joachims 2003).
//
// An example is a native sequence, a second sequence with its true alignment (the homolog), and any number of
// decoys. An output is a second sequence and an alignment with it: [candidate, i0, j0, i1, j1, ...]. Another
// sequence than the homolog has the loss 1; another alignment of the homolog has the share of wrong matches or
// residues (alignment_data.hpp), or with decoys is no output at all, as in the paper (fixed_homolog). The loss
// is a sum over matches, so that the oracle is the same dynamic programme as prediction (alignment_table.hpp):
// a score profile of the second sequence per letter, with the losses of its residues in it, one number for the
// residue of the first, and the one true match of a row put in its place.
#pragma once

#include "alignment_layers.hpp"
#include "alignment_table.hpp"
#include "sparse_planes.hpp"

namespace mm {

template <class T>
class Alignment final : public Outputs<T> {
 public:
  using Workspace = typename Structure<T>::Workspace;
  using Grade = typename Structure<T>::Grade;
  using Base = typename Outputs<T>::Scratch;

  explicit Alignment(const AlignmentData& data) : data_(data), model_(data.model) {
    reference_from_.push_back(0);
    for (std::size_t i = 0; i < data.size(); ++i) {
      reference_.push_back(0);
      for (std::size_t k = 0; k < 2 * data.n_matches(i); ++k) reference_.push_back(Code(data.matches_of(i)[k]));
      reference_from_.push_back(reference_.size());
    }
  }

  struct Scratch final : Base {
    AlignmentTable<T> table;
    std::vector<T> profile, row, columns;  // [letter][m]; [m]; [d][m]
    std::vector<double> mixed;             // [d]
    std::vector<std::uint8_t> known;       // letters whose profile is made
    std::vector<std::int64_t> partner1, partner2;
    std::vector<Code> other;
    // What grades() found: its layers of the homolog, and the best decoy.
    AlignmentLayers layers;
    std::vector<std::size_t> graded;
    std::vector<Code> decoy;
  };
  std::unique_ptr<Workspace> workspace() const override { return std::make_unique<Scratch>(); }

  std::size_t n_examples() const override { return data_.size(); }
  std::size_t n_weights() const override { return model_.n_weights; }
  double example_weight(std::size_t i) const override { return data_.example_weight != nullptr ? data_.example_weight[i] : 1.0; }
  CodeView reference(std::size_t i) const override {
    return {reference_.data() + reference_from_[i], reference_from_[i + 1] - reference_from_[i]};
  }

  // ---- the oracle ----

  void best(Base& base, std::size_t i, const T* w, double scale) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    double most;
    if (fixed(i)) {
      const CodeView truth = reference(i);
      ws.output.assign(truth.begin(), truth.end());
      most = score(i, truth, w);
    } else {
      const double size = loss_size(i);
      most = align(ws, i, 0, w, scale / size, ws.output) + scale * double(loss_base(i)) / size;
    }
    const double found = best_decoy(ws, i, w, ws.other);
    if (found + scale > most) std::swap(ws.output, ws.other);
  }

  // The best candidate with its best alignment, into ws.output; its score.
  double predict(Scratch& ws, std::size_t i, const T* w) const {
    const double most = align(ws, i, 0, w, 0.0, ws.output);
    const double found = best_decoy(ws, i, w, ws.other);
    if (!(found > most)) return most;
    std::swap(ws.output, ws.other);
    return found;
  }
  // The score of the best alignment with one candidate.
  double candidate_score(Scratch& ws, std::size_t i, std::size_t c, const T* w) const { return align(ws, i, c, w, 0.0, ws.other); }

  double score(std::size_t i, CodeView output, const T* w) const {
    double sum = 0.0;
    for_features(i, output, [&](std::size_t j, double x) { sum += x * double(w[j]); });
    return sum;
  }
  void features(std::size_t i, CodeView output, SparseSum& f) const override {
    for_features(i, output, [&](std::size_t j, double x) { f.add(j, x); });
  }

  double output_loss(std::size_t i, CodeView output) const override {
    if (output[0] != 0) return 1.0;
    return double(loss_count(i, output)) / loss_size(i);
  }

  double oracle_work(std::size_t i) const override {
    double cells = 0.0;
    const double n = double(data_.length(std::size_t(data_.native[i])));
    for (std::size_t c = fixed(i) ? 1 : 0; c < data_.n_candidates(i); ++c) cells += (n + 30.0) * double(data_.length(data_.candidate(i, c)));
    const double position = model_.position == PositionScore::kNone ? 0.0 : 0.5 * double(model_.n_position) + 1.0;
    return 2000.0 + cells * (kCellWork + position) + 100.0 * double(data_.n_matches(i));
  }

  // ---- formulations ----

  LossRange losses(std::size_t i) const override {
    const bool alone = data_.n_candidates(i) == 1;
    if (fixed(i)) return {1.0, 1.0, 1.0};
    const double size = loss_size(i), step = alone ? 1.0 / size : 0.0;
    if (model_.loss == AlignmentLoss::kMatches) return {0.0, 1.0, step};
    // Residues become wrong in pairs at least: who has a wrong partner is a wrong partner, or lost one.
    const double all = double(data_.length(std::size_t(data_.native[i])) + data_.length(data_.candidate(i, 0)));
    return {alone ? 2.0 / size : std::min(1.0, 2.0 / size), std::max(1.0, all / size), step};
  }
  bool offers_grades(bool) const override { return true; }
  bool slow_grades(std::size_t i) const override { return !fixed(i); }
  bool grades(Workspace& base, std::size_t i, const T* w, bool, std::vector<Grade>& out) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    out.clear();
    ws.graded.clear();
    const double own = score(i, reference(i), w);
    if (!fixed(i)) {
      if (!(layer_cells(i) <= kMostLayerCells)) return false;
      run_layers(ws, i, w);
      for (std::size_t l = 0; l < ws.layers.size(); ++l) {
        if (l == ws.layers.truth() || ws.layers.value(l) == -kInfinity) continue;
        ws.graded.push_back(l);
        out.push_back({double(ws.layers.count(l)) / loss_size(i), own - ws.layers.value(l)});
      }
    }
    ws.more_work = fixed(i) ? oracle_work(i) : 40.0 * layer_cells(i);
    if (data_.n_candidates(i) > 1) out.push_back({1.0, own - best_decoy(ws, i, w, ws.decoy)});
    return true;
  }
  double take_grade(Workspace& base, std::size_t i, const T* w, std::size_t k) const override {
    Scratch& ws = static_cast<Scratch&>(base);
    if (k < ws.graded.size()) {
      ws.output.assign(1, 0);
      ws.layers.matches(ws.graded[k], ws.output);
    } else {
      ws.output = ws.decoy;
    }
    this->write_plane(ws, i, ws.output);
    return SparsePlane(ws.code).dot(w);
  }

 private:
  static constexpr double kCellWork = 6.0;  // cycles
  static constexpr double kMostLayerCells = 1 << 26;  // bytes of memory, and half a second or so

  bool fixed(std::size_t i) const { return model_.fixed_homolog && data_.n_candidates(i) > 1; }

  // ---- losses ----

  std::int64_t loss_base(std::size_t i) const { return std::int64_t(data_.n_matches(i)) * (model_.loss == AlignmentLoss::kResidues ? 2 : 1); }
  double loss_size(std::size_t i) const {
    return double(std::max<std::int64_t>(loss_base(i), 1));
  }
  // Missed matches, or wrong residues, of an alignment of the homolog.
  std::int64_t loss_count(std::size_t i, CodeView output) const {
    const std::int32_t* truth = data_.matches_of(i);
    const std::size_t n_true = data_.n_matches(i);
    const auto is = [&](std::size_t k, std::size_t side, Code at) { return k < n_true && Code(truth[2 * k + side]) == at; };
    std::int64_t count = loss_base(i);
    std::size_t p = 0, q = 0;  // into the true matches, by their first and second residues
    for (std::size_t k = 1; k + 1 < output.size(); k += 2) {
      while (p < n_true && Code(truth[2 * p]) < output[k]) ++p;
      while (q < n_true && Code(truth[2 * q + 1]) < output[k + 1]) ++q;
      const bool has1 = is(p, 0, output[k]), has2 = is(q, 1, output[k + 1]);
      if (has1 && has2 && p == q) {
        count -= model_.loss == AlignmentLoss::kResidues ? 2 : 1;
      } else if (model_.loss == AlignmentLoss::kResidues) {
        count += int(!has1) + int(!has2);
      }
    }
    return count;
  }

  // ---- scores ----

  template <class Visit>
  void for_features(std::size_t i, CodeView output, Visit&& visit) const {
    const std::size_t a = std::size_t(data_.native[i]), b = data_.candidate(i, output[0]);
    const std::size_t n = data_.length(a), m = data_.length(b), d = model_.n_position;
    const std::uint8_t *x = data_.letters_of(a), *z = data_.letters_of(b);
    const auto gap = [&](std::size_t length) {
      if (length > 0) visit(std::size_t(model_.open), 1.0);
      if (length > 1) visit(std::size_t(model_.extend), double(length - 1));
    };
    if (output.size() < 3) return for_unmatched(model_.mode, model_.free, n, m, gap);
    std::size_t i0 = 0, j0 = 0;
    for (std::size_t k = 1; k + 1 < output.size(); k += 2) {
      const std::size_t i1 = output[k], j1 = output[k + 1];
      if (k == 1) {
        for_outside(model_.mode, model_.free.start1, model_.free.start2, i1, j1, gap);
      } else {
        gap(i1 - i0), gap(j1 - j0);
      }
      visit(std::size_t(model_.table[x[i1] * model_.n_letters + z[j1]]), 1.0);
      i0 = i1 + 1, j0 = j1 + 1;
      if (model_.position == PositionScore::kNone) continue;
      const double *p = data_.positions_of(a) + i1 * d, *q = data_.positions_of(b) + j1 * d;
      for (std::size_t r = 0; r < d; ++r) {
        switch (model_.position) {
          case PositionScore::kProduct: visit(model_.position_from + r, p[r] * q[r]); break;
          case PositionScore::kDifference: visit(model_.position_from + r, std::abs(p[r] - q[r])); break;
          default:
            for (std::size_t c = 0; c < d; ++c) visit(model_.position_from + r * d + c, p[r] * q[c]);
        }
      }
    }
    for_outside(model_.mode, model_.free.end1, model_.free.end2, n - i0, m - j0, gap);
  }

  // The best alignment with candidate c, of score plus `unit` times the c(i, j) of the loss (0: no loss). Its
  // code is put into `output`; returned is the value.
  double align(Scratch& ws, std::size_t i, std::size_t c, const T* w, double unit, std::vector<Code>& output) const {
    const std::size_t a = std::size_t(data_.native[i]), b = data_.candidate(i, c);
    const std::size_t n = data_.length(a), m = data_.length(b), K = model_.n_letters;
    const std::uint8_t *x = data_.letters_of(a), *z = data_.letters_of(b);
    const bool residues = model_.loss == AlignmentLoss::kResidues, with_loss = unit != 0.0;
    if (ws.profile.size() < K * m + kAlignmentSlack) ws.profile.resize(K * m + K * m / 4 + kAlignmentSlack);
    if (with_loss) partners(ws, i, n, m);
    ws.known.assign(K, 0);
    const bool by_position = model_.position != PositionScore::kNone;
    if (by_position) put_columns(ws, b, m);
    const auto profile = [&](std::size_t letter) {
      T* row = ws.profile.data() + letter * m;
      if (ws.known[letter]) return row;
      ws.known[letter] = 1;
      const std::uint32_t* table = model_.table + letter * K;
      for (std::size_t j = 0; j < m; ++j) row[j] = w[table[z[j]]];
      if (with_loss && residues) {
        for (std::size_t j = 0; j < m; ++j) row[j] += ws.partner2[j] < 0 ? T(unit) : T(0);
      }
      return row;
    };
    T* changed = nullptr;  // the entry of the profile that holds the true match of a row
    T kept = 0;
    const auto row = [&](std::size_t r) -> typename AlignmentTable<T>::Row {
      if (changed != nullptr) *changed = kept, changed = nullptr;
      T* scores = profile(x[r]);
      const T add = with_loss && residues && ws.partner1[r] < 0 ? T(unit) : T(0);
      if (by_position) {
        put_row(ws, a, r, m, w, scores);
        scores = ws.row.data();
      }
      if (with_loss && ws.partner1[r] >= 0) {
        const std::size_t j = std::size_t(ws.partner1[r]);
        changed = scores + j, kept = *changed;
        *changed -= T(residues ? 2.0 * unit : unit);
      }
      return {scores, add};
    };
    const double value = ws.table.fill(model_.mode, model_.free, n, m, {w[model_.open], w[model_.extend]}, row);
    output.assign(1, Code(c));
    ws.table.matches(output);
    return value;
  }

  // The best alignment with a decoy, into `output`; -infinity without decoys.
  double best_decoy(Scratch& ws, std::size_t i, const T* w, std::vector<Code>& output) const {
    double most = -kInfinity;
    std::vector<Code> found;
    for (std::size_t c = 1; c < data_.n_candidates(i); ++c) {
      const double value = align(ws, i, c, w, 0.0, found);
      if (c == 1 || value > most) most = value, std::swap(output, found);  // scores that overflow compare with nothing
    }
    return most;
  }

  void partners(Scratch& ws, std::size_t i, std::size_t n, std::size_t m) const {
    ws.partner1.assign(n, -1), ws.partner2.assign(m, -1);
    const std::int32_t* truth = data_.matches_of(i);
    for (std::size_t k = 0; k < data_.n_matches(i); ++k) {
      ws.partner1[std::size_t(truth[2 * k])] = truth[2 * k + 1];
      ws.partner2[std::size_t(truth[2 * k + 1])] = truth[2 * k];
    }
  }

  // ---- scores of positions: a row of them at a time, from the columns of the second sequence's features ----

  void put_columns(Scratch& ws, std::size_t b, std::size_t m) const {
    const std::size_t d = model_.n_position;
    if (ws.columns.size() < d * m) ws.columns.resize(d * m);
    if (ws.row.size() < m + kAlignmentSlack) ws.row.resize(m + kAlignmentSlack);
    ws.mixed.resize(d);
    const double* q = data_.positions_of(b);
    for (std::size_t j = 0; j < m; ++j) {
      for (std::size_t r = 0; r < d; ++r) ws.columns[r * m + j] = T(q[j * d + r]);
    }
  }
  void put_row(Scratch& ws, std::size_t a, std::size_t r, std::size_t m, const T* w, const T* scores) const {
    const std::size_t d = model_.n_position;
    const double* p = data_.positions_of(a) + r * d;
    const T* v = w + model_.position_from;
    T* row = ws.row.data();
    std::copy(scores, scores + m, row);
    if (model_.position == PositionScore::kDifference) {
      for (std::size_t k = 0; k < d; ++k) {
        const T weight = v[k], at = T(p[k]);
        const T* column = ws.columns.data() + k * m;
        for (std::size_t j = 0; j < m; ++j) row[j] += weight * std::abs(at - column[j]);
      }
      return;
    }
    for (std::size_t k = 0; k < d; ++k) {
      double sum = 0.0;
      if (model_.position == PositionScore::kProduct) {
        sum = p[k] * double(v[k]);
      } else {
        for (std::size_t c = 0; c < d; ++c) sum += p[c] * double(v[c * d + k]);
      }
      const T factor = T(sum);
      if (factor == T(0)) continue;
      const T* column = ws.columns.data() + k * m;
      for (std::size_t j = 0; j < m; ++j) row[j] += factor * column[j];
    }
  }

  // ---- all losses at once ----

  double layer_cells(std::size_t i) const {
    const std::size_t n = data_.length(std::size_t(data_.native[i])), m = data_.length(data_.candidate(i, 0));
    return double(n) * double(m) * double(AlignmentLayers::n_layers(model_.loss, n, m, data_.n_matches(i)));
  }
  void run_layers(Scratch& ws, std::size_t i, const T* w) const {
    const std::size_t a = std::size_t(data_.native[i]), b = data_.candidate(i, 0), n = data_.length(a), m = data_.length(b);
    const std::uint8_t *x = data_.letters_of(a), *z = data_.letters_of(b);
    partners(ws, i, n, m);
    std::vector<double> scores(n * m);
    if (model_.position != PositionScore::kNone) put_columns(ws, b, m);
    std::vector<T> row(m);
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t j = 0; j < m; ++j) row[j] = w[model_.table[x[r] * model_.n_letters + z[j]]];
      const T* made = row.data();
      if (model_.position != PositionScore::kNone) put_row(ws, a, r, m, w, row.data()), made = ws.row.data();
      std::copy(made, made + m, scores.begin() + std::ptrdiff_t(r * m));
    }
    const AlignmentLayers::Task task{model_.mode, model_.free, model_.loss, n, m, data_.n_matches(i), double(w[model_.open]),
                                     double(w[model_.extend]), ws.partner1.data(), ws.partner2.data()};
    ws.layers.run(task, [&](std::size_t r, std::size_t j) { return scores[r * m + j]; });
  }

  AlignmentData data_;
  AlignmentModel model_;
  std::vector<Code> reference_;
  std::vector<std::size_t> reference_from_;
};

}  // namespace mm
