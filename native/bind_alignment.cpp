// Python bindings of alignments: the problem, predictions and scores.
#include "alignment.hpp"
#include "bind_tokens.hpp"
#include "prediction_loop.hpp"
#include "problem_of.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

class AlignmentProblem final : public ProblemOf<Alignment, AlignmentData> {
 public:
  AlignmentProblem(int mode, int free_ends, int loss, bool fixed_homolog, Array<std::uint32_t, 2> table, std::uint32_t open,
                   std::uint32_t extend, std::size_t n_weights, Array<std::uint8_t> letters, Array<std::int64_t> sequences,
                   Array<std::int64_t> native, Array<std::int64_t> candidates_from, Array<std::int64_t> candidates,
                   Array<std::int64_t> matches_from, Array<std::int32_t, 2> matches, int position_score,
                   std::optional<Array<double, 2>> position, std::optional<Array<double>> example_weight) {
    const auto view = [](const auto& array) { return std::span(array.data(), array.shape(0)); };
    const auto keep = [this](const auto& array) { this->keep(array); };
    AlignmentModel& model = data_.model;
    require(mode >= 0 && mode <= 2, "the mode of an alignment is 0, 1 or 2");
    require(free_ends >= 0 && free_ends < 16, "free ends are four bits");
    require(loss >= 0 && loss <= 1, "the loss of an alignment is 0 or 1");
    require(position_score >= 0 && position_score <= 3, "position scores are 0, 1, 2 or 3");
    model.mode = AlignmentMode(mode);
    model.free = {(free_ends & 1) != 0, (free_ends & 2) != 0, (free_ends & 4) != 0, (free_ends & 8) != 0};
    model.loss = AlignmentLoss(loss);
    model.fixed_homolog = fixed_homolog;
    model.n_letters = table.shape(0);
    require(model.n_letters >= 1 && model.n_letters <= 255 && table.shape(1) == model.n_letters, "the table of matches must be letters x letters, of at most 255");
    model.table = table.data();
    model.open = open, model.extend = extend;
    model.n_weights = n_weights;
    require(n_weights >= 1 && n_weights < (std::size_t{1} << 31), "expected between 1 and 2^31 - 1 weights");
    require(open < n_weights && extend < n_weights, "the weight of a gap is out of range");
    for (std::size_t k = 0; k < model.n_letters * model.n_letters; ++k) require(model.table[k] < n_weights, "the weight of a match is out of range");
    data_.letters = view(letters), data_.sequences = view(sequences), data_.native = view(native);
    data_.candidates_from = view(candidates_from), data_.candidates = view(candidates), data_.matches_from = view(matches_from);
    data_.matches = matches.data();
    keep(table), keep(letters), keep(sequences), keep(native), keep(candidates_from), keep(candidates), keep(matches_from), keep(matches);

    check_ends(data_.sequences, letters.shape(0), 1, "a sequence is empty");
    const std::size_t n_sequences = data_.sequences.size() - 1, n = data_.native.size();
    for (std::size_t s = 0; s < n_sequences; ++s) require(data_.length(s) < (std::size_t{1} << 30), "a sequence is too long");
    for (const std::uint8_t letter : data_.letters) require(letter < model.n_letters, "a letter is out of range");
    require(n >= 1, "at least one example is needed");
    require(data_.candidates_from.size() == n + 1 && data_.matches_from.size() == n + 1, "expected candidates and matches for each example");
    check_ends(data_.candidates_from, candidates.shape(0), 1, "an example has no second sequence");
    check_ends(data_.matches_from, matches.shape(0), 0, "the ends of the matches must not decrease");
    require(matches.shape(1) == 2, "a match is a pair");
    for (const auto& list : {data_.native, data_.candidates}) {
      for (const std::int64_t s : list) require(s >= 0 && std::size_t(s) < n_sequences, "a sequence is out of range");
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::int32_t* match = data_.matches_of(i);
      const std::int64_t most[2] = {std::int64_t(data_.length(std::size_t(data_.native[i]))), std::int64_t(data_.length(data_.candidate(i, 0)))};
      for (std::size_t k = 0; k < data_.n_matches(i); ++k) {
        for (std::size_t side = 0; side < 2; ++side) {
          const std::int64_t at = match[2 * k + side];
          require(at >= 0 && at < most[side] && (k == 0 || at > match[2 * k - 2 + side]), "matches must be within the sequences and ascend");
        }
      }
    }
    model.position = PositionScore(position_score);
    require(position.has_value() == (model.position != PositionScore::kNone), "features of positions go with a way to score them");
    if (position) {
      require(position->shape(0) == letters.shape(0) && position->shape(1) >= 1, "expected a row of position features for each letter");
      model.n_position = position->shape(1);
      data_.position = position->data();
      keep(*position);
      const std::size_t own = model.position == PositionScore::kBilinear ? model.n_position * model.n_position : model.n_position;
      require(model.n_position < 65536 && own <= n_weights, "there are fewer weights than position features");
      model.position_from = std::uint32_t(n_weights - own);
      for (std::size_t k = 0; k < position->shape(0) * model.n_position; ++k) {
        require(std::abs(data_.position[k]) <= kMaxValue, "a position feature is not finite or above 1e12");
      }
    }
    take_example_weights(example_weight, n, "pair", data_.example_weight, keep);
  }

  // The best output of each example: candidates, ends of the matches, matches, scores.
  template <class T>
  nb::tuple predict(Array<T> weights, int threads) {
    const Alignment<T>& structure = checked(weights);
    const std::size_t n = data_.size();
    std::vector<std::vector<Code>> outputs(n);
    std::vector<double> scores(n);
    for_examples<T>(threads, [&](auto& ws, std::size_t i) {
      scores[i] = structure.predict(ws, i, weights.data());
      outputs[i] = ws.output;
    });
    std::vector<std::int32_t> which(n), flat;
    std::vector<std::int64_t> ends(1, 0);
    for (std::size_t i = 0; i < n; ++i) {
      which[i] = std::int32_t(outputs[i][0]);
      for (std::size_t k = 1; k < outputs[i].size(); ++k) flat.push_back(std::int32_t(outputs[i][k]));
      ends.push_back(std::int64_t(flat.size() / 2));
    }
    return nb::make_tuple(to_numpy(std::move(which)), to_numpy(std::move(ends)), to_numpy(std::move(flat)), to_numpy(std::move(scores)));
  }

  // The scores of the given alignments with the first candidates.
  template <class T>
  nb::object score(Array<T> weights, int threads) {
    const Alignment<T>& structure = checked(weights);
    std::vector<double> scores(data_.size());
    for_examples<T>(threads, [&](auto&, std::size_t i) { scores[i] = structure.score(i, structure.reference(i), weights.data()); });
    return to_numpy(std::move(scores));
  }

  // The score of the best alignment with each candidate of each example.
  template <class T>
  nb::object candidate_scores(Array<T> weights, int threads) {
    const Alignment<T>& structure = checked(weights);
    std::vector<double> scores(data_.candidates.size());
    for_examples<T>(threads, [&](auto& ws, std::size_t i) {
      for (std::size_t c = 0; c < data_.n_candidates(i); ++c) {
        scores[std::size_t(data_.candidates_from[i]) + c] = structure.candidate_score(ws, i, c, weights.data());
      }
    });
    return to_numpy(std::move(scores));
  }

  // The oracle's answers: as predict(), with so many times the loss on top.
  template <class T>
  nb::tuple augmented(Array<T> weights, double scale) {
    const Alignment<T>& structure = checked(weights);
    require(std::isfinite(scale), "the factor of the loss is not finite");
    const std::size_t n = data_.size();
    const auto base = structure.workspace();
    auto& ws = static_cast<typename Alignment<T>::Scratch&>(*base);
    std::vector<std::int32_t> which(n), flat;
    std::vector<std::int64_t> ends(1, 0);
    std::vector<double> losses(n);
    for (std::size_t i = 0; i < n; ++i) {
      structure.best(ws, i, weights.data(), scale);
      which[i] = std::int32_t(ws.output[0]);
      losses[i] = structure.output_loss(i, ws.output);
      for (std::size_t k = 1; k < ws.output.size(); ++k) flat.push_back(std::int32_t(ws.output[k]));
      ends.push_back(std::int64_t(flat.size() / 2));
    }
    return nb::make_tuple(to_numpy(std::move(which)), to_numpy(std::move(ends)), to_numpy(std::move(flat)), to_numpy(std::move(losses)));
  }

 private:
  static void check_ends(std::span<const std::int64_t> ends, std::size_t last, std::int64_t least, const char* message) {
    require(!ends.empty() && ends.front() == 0 && ends.back() == std::int64_t(last), "ends must run from 0 to the number of entries");
    for (std::size_t k = 1; k < ends.size(); ++k) require(ends[k] >= ends[k - 1] && ends[k] - ends[k - 1] >= least, message);
  }

  template <class T>
  const Alignment<T>& checked(const Array<T>& weights) {
    const Alignment<T>& structure = *this->template built<T>();
    require(weights.shape(0) == structure.n_weights(), "expected " + std::to_string(structure.n_weights()) + " weights, got " + std::to_string(weights.shape(0)));
    return structure;
  }

  // visit(workspace, example) on some threads.
  template <class T, class Visit>
  void for_examples(int threads, Visit&& visit) {
    for_predictions(threads, data_.size(), [&](std::size_t, auto) {
      return [&, ws = std::make_unique<typename Alignment<T>::Scratch>()](std::size_t i) { visit(*ws, i); };
    });
  }
};

}  // namespace

void bind_alignment(nb::module_& m) {
  using P = AlignmentProblem;
  nb::class_<P, Problem>(m, "AlignmentProblem", "Pairs of sequences with their alignments, and decoys.")
      .def(nb::init<int, int, int, bool, Array<std::uint32_t, 2>, std::uint32_t, std::uint32_t, std::size_t, Array<std::uint8_t>,
                    Array<std::int64_t>, Array<std::int64_t>, Array<std::int64_t>, Array<std::int64_t>, Array<std::int64_t>,
                    Array<std::int32_t, 2>, int, std::optional<Array<double, 2>>, std::optional<Array<double>>>(),
           "mode"_a, "free_ends"_a, "loss"_a, "fixed_homolog"_a, "table"_a, "open"_a, "extend"_a, "n_weights"_a, "letters"_a,
           "sequences"_a, "native"_a, "candidates_from"_a, "candidates"_a, "matches_from"_a, "matches"_a, "position_score"_a = 0,
           "position"_a = nb::none(), "example_weight"_a = nb::none())
      .def("predict", &P::predict<float>, "weights"_a, "threads"_a = 1, "Candidates, ends of matches, matches and scores of the best outputs.")
      .def("predict", &P::predict<double>, "weights"_a, "threads"_a = 1)
      .def("score", &P::score<float>, "weights"_a, "threads"_a = 1, "Scores of the given alignments.")
      .def("score", &P::score<double>, "weights"_a, "threads"_a = 1)
      .def("candidate_scores", &P::candidate_scores<float>, "weights"_a, "threads"_a = 1, "Scores of the best alignments with each candidate.")
      .def("candidate_scores", &P::candidate_scores<double>, "weights"_a, "threads"_a = 1)
      .def("augmented", &P::augmented<float>, "weights"_a, "scale"_a = 1.0, "As predict(), of score plus scale times loss; the losses last.")
      .def("augmented", &P::augmented<double>, "weights"_a, "scale"_a = 1.0);
}

}  // namespace mm
