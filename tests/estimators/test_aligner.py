"""`Aligner`: training, files, the prior, what it shows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import maxmargin
from alignment_reference import ListedAlignment
from maxmargin import Aligner, ElasticNet
from maxmargin.errors import ModelFormatError, NotCompatibleError
from maxmargin.estimators.aligner import prior_weights
from maxmargin.estimators.prior_mean import PriorMean
from maxmargin.io.substitution import blosum62, read_substitution
from maxmargin.regularizers import L1, L2
from maxmargin.structures.alignment import Alignment
from maxmargin.structures.alignment_sequences import Ranked
from qp_reference import Planes, solve_planes

X = [("ACGT", "ACT"), ("GATTACA", "GTACA"), ("CCGA", "CGA")]
Y = ["MM1M", "M11MMMM", "1MMM"]


@pytest.fixture(scope="module")
def model():
    return Aligner("dna", C=10.0, gap=1e-3, dtype="float64", random_state=0).fit(X, Y)


def test_it_learns(model):
    assert model.converged_
    assert model.score(X, Y) == 1.0
    rows = [("ACGT", "AC-T"), ("GATTACA", "G--TACA"), ("CCGA", "-CGA")]
    assert model.align(X) == rows
    assert model.score(X, rows) == 1.0
    assert model.score(X, [y.matches for y in (Ranked(0, m) for m in model.predict(X))]) == 1.0
    alphabet, scores = model.substitution_matrix_
    assert alphabet == "ACGTN"
    assert np.array_equal(scores, scores.T)
    assert scores[0, 0] > scores[0, 1]
    assert model.gap_open_ < 0
    assert model.position_scores_ is None
    best = model.decision_function(X)
    own = model.structure_.score_outputs(X, Y, model.weights_, 1)
    assert best == pytest.approx(own)


def test_the_score_is_the_share_of_matches():
    model = Aligner("dna", C=1.0).fit(X, Y)
    model.predict = lambda X: [np.array([(0, 0), (1, 1)]), np.zeros((0, 2)), np.array([(1, 1)])]
    assert model.score(X, Y) == 2 / 11
    assert model.score(X, Y, sample_weight=[1, 0, 0]) == 2 / 3


def test_decoys():
    rng = np.random.default_rng(0)
    data = []
    for _ in range(12):
        native = "".join(rng.choice(list("ACGT"), 12))
        homolog = "".join(c if rng.random() < 0.8 else rng.choice(list("ACGT")) for c in native)
        data.append((native, homolog, ["".join(rng.choice(list("ACGT"), 12)) for _ in range(3)]))
    truths = [np.column_stack([np.arange(12)] * 2)] * len(data)
    for homolog in ("fixed", "free"):
        model = Aligner("ACGT", mode="local", homolog=homolog, C=1.0, random_state=0)
        model.fit(data[:8], truths[:8])
        answers = model.predict(data)
        assert all(isinstance(answer, Ranked) for answer in answers)
        assert sum(answer.which == 0 for answer in answers) >= 11
        scores = model.candidate_scores(data)
        assert [int(np.argmax(s)) for s in scores] == [answer.which for answer in answers]
        assert model.decision_function(data) == pytest.approx([s.max() for s in scores])
        again = model.structure_.score_outputs(data, answers, model.weights_, 1)
        assert again == pytest.approx([s.max() for s in scores], rel=1e-5)
        assert 0.9 <= model.score(data, truths) <= 1.0
        assert len(model.align(data)[0][0]) >= 12


def test_positions():
    rng = np.random.default_rng(1)
    pairs, truths = [], []
    for _ in range(10):  # letters say nothing; the hidden kind of a residue does
        kinds = rng.integers(0, 3, 8)
        kept = np.sort(rng.choice(8, 6, replace=False))
        pairs.append((("A" * 8, np.eye(3)[kinds]), ("A" * 6, np.eye(3)[kinds[kept]])))
        truths.append(np.column_stack([kept, np.arange(6)]))
    for position in ("product", "bilinear"):
        model = Aligner("A", position=position, C=10.0, random_state=0).fit(pairs, truths)
        assert model.score(pairs, truths) > 0.8
        assert model.position_scores_.shape == ((3,) if position == "product" else (3, 3))
        assert "position_scores" in model.describe()
    model = Aligner("A", C=10.0).fit([("A" * 8, "A" * 6)] * 10, truths)
    assert model.score([("A" * 8, "A" * 6)] * 10, truths) < 0.8


# --- the prior ---


def test_a_prior_against_an_independent_solver():
    pairs = [("AB", "AB"), ("ABA", "AA"), ("BBA", "AB")]
    parsed = [np.array(y) for y in ([(0, 0), (1, 1)], [(0, 0), (2, 1)], [(1, 1)])]
    structure = ListedAlignment("AB", loss="residues")
    prior = ("AB", np.array([[2.0, -1.0], [-1.0, 3.0]]), -2.0, -0.5)
    structure.prepare(pairs, parsed)
    mean = prior_weights(structure, prior, 0.3)
    assert mean == pytest.approx(0.3 * np.array([2.0, -1.0, 3.0, -2.0, -0.5]))
    rows, losses, example = [], [], []
    for i, (x, y) in enumerate(zip(pairs, parsed, strict=True)):
        for z in structure.wrong_outputs(x, y):
            rows.append(structure.joint_feature(x, y) - structure.joint_feature(x, z))
            losses.append(structure.loss(y, z))
            example.append(i)
    planes = Planes(3, np.array(example), np.array(rows), np.array(losses))
    for base in (None, ElasticNet(0.05, 0.8)):
        model = Aligner(
            "AB", loss="residues", prior=prior, prior_scale=0.3, regularizer=base, C=0.7, gap=1e-7,
            dtype="float64", random_state=0,
        ).fit(pairs, parsed)  # fmt: skip
        link = PriorMean(base or L2(), mean).link
        optimum = solve_planes(planes, 0.7, link=link)
        assert model.certificate_.primal == pytest.approx(optimum.primal, rel=1e-5)
        assert model.weights_ == pytest.approx(optimum.w, abs=1e-3)
        assert model.certificate_.gap <= 1e-6


def test_without_data_the_prior_is_the_model():
    model = Aligner("protein", prior="blosum62", C=1e-9).fit([("ACD", "AD")], ["M1M"])
    letters, scores = model.substitution_matrix_
    assert np.allclose(scores, blosum62(letters)[1])
    assert (model.gap_open_, model.gap_extend_) == (-11, -1)


def test_a_weight_of_several_entries_gets_their_mean():
    structure = Alignment("ABZ", substitution="identity", gaps="linear")
    prior = ("AB", [[4.0, 0.0], [-2.0, 6.0]], -3.0, -1.0)
    assert prior_weights(structure, prior, 1.0).tolist() == [5.0, -1.0, -2.0]


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("pam", "expected 'blosum62'"),
        (("AB", np.eye(2)), "prior must be"),
        (("AB", np.eye(3), -1, -1), "expected finite numbers for the 2 letters"),
        (("AB", np.eye(2), "x", -1), "a gap of the prior"),
        (5, "prior must be"),
    ],
)
def test_bad_priors(prior, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Aligner("AB", prior=prior).fit([("AB", "A")], ["M1"])


def test_a_prior_needs_a_link():
    with pytest.raises(NotCompatibleError, match="a prior mean does not go with L1"):
        Aligner("AB", prior=("AB", np.eye(2), -1, -1), regularizer=L1()).fit([("AB", "A")], ["M1"])
    with pytest.raises(ValueError, match="prior_scale"):
        Aligner("AB", prior=("AB", np.eye(2), -1, -1), prior_scale=0).fit([("AB", "A")], ["M1"])


# --- files ---


def test_a_saved_model_is_the_same(tmp_path, model):
    path = tmp_path / "m.mm"
    model.save(path)
    again = maxmargin.load(path)
    assert isinstance(again, Aligner)
    assert again.get_params() == model.get_params()
    assert np.array_equal(again.weights_, model.weights_)
    assert again.describe() == model.describe()
    assert again.certificate_.primal == model.certificate_.primal
    assert all(
        np.array_equal(a, b) for a, b in zip(again.predict(X), model.predict(X), strict=True)
    )
    assert again.fit(X, Y).score(X, Y) == 1.0
    unpickled = pickle.loads(pickle.dumps(model))
    assert unpickled.align(X) == model.align(X)


def test_parameters_of_all_kinds_are_kept(tmp_path):
    prior = ("AB", np.eye(2), -1.0, -0.5)
    made = Aligner(
        "AB",
        mode="semiglobal",
        free_ends=("start1",),
        substitution=np.array([[0, 1], [1, 0]]),
        prior=prior,
        position="difference",
        loss="residues",
        unknown="B",
        gaps="linear",
        regularizer=ElasticNet(0.1, 1.0),
    )
    features = np.ones((2, 1))
    made.fit([(("AB", features), ("AC", features))], ["MM"])
    made.save(tmp_path / "m.mm")
    again = Aligner.load(tmp_path / "m.mm")
    assert again.mode == "semiglobal"
    assert again.regularizer == ElasticNet(0.1, 1.0)
    assert np.array_equal(again.prior[1], np.eye(2))
    assert again.structure_.state()[0] == made.structure_.state()[0]
    x = [(("AB", features), ("AZ", features))]
    assert np.array_equal(again.predict(x)[0], made.predict(x)[0])


def test_damaged_files_are_refused(tmp_path, model):
    path = tmp_path / "m.mm"
    model.save(path)
    data = bytearray(path.read_bytes())
    for at in range(0, len(data), 97):
        changed = bytearray(data)
        changed[at] ^= 0x55
        path.write_bytes(bytes(changed))
        with pytest.raises(ModelFormatError):
            Aligner.load(path)


def test_the_matrix_as_text(tmp_path, model):
    model.write_matrix(tmp_path / "m.txt")
    letters, scores = read_substitution(tmp_path / "m.txt")
    assert letters == "ACGTN"
    assert np.abs(scores).max() == 20
    assert np.array_equal(scores, np.rint(scores))
    text = (tmp_path / "m.txt").read_text()
    assert "# A gap scores -" in text
    exact = "\n".join(model.text_lines())
    (tmp_path / "n.txt").write_text(exact)
    _, own = read_substitution(tmp_path / "n.txt")
    assert own == pytest.approx(model.substitution_matrix_.scores, abs=1e-4)


# --- scikit-learn, and mistakes ---


def test_clone_and_seeds():
    first = Aligner("dna", C=0.5, random_state=3).fit(X, Y)
    second = clone(first).fit(X, Y)
    assert np.array_equal(first.weights_, second.weights_)
    # A solver of another kind finds the same model.
    third = Aligner("dna", C=0.5, solver="oneslack", gap=1e-3).fit(X, Y)
    assert third.certificate_.primal == pytest.approx(first.certificate_.primal, rel=0.02)


def test_warm_start():
    model = Aligner("dna", C=1.0, warm_start=True, random_state=0).fit(X, Y)
    model.set_params(C=2.0).fit(X, Y)
    assert model.certificate_.C == 2.0
    with pytest.raises(ValueError, match="warm_start=True goes on from the last fit"):
        model.fit(X[:2], Y[:2])


def test_mistakes(model):
    with pytest.raises(ValueError, match="requires y"):
        Aligner().fit(X, None)
    with pytest.raises(ValueError, match="sequence 1 of pair 0 has 'Z' at position 3"):
        model.predict([("ACZ", "A")])
    with pytest.raises(ValueError, match="the alignment of pair 1: found 2 positions"):
        Aligner("dna").fit(X, ["MM1M", "MM", "1MMM"])
    with pytest.raises(ValueError, match="mode must be one of"):
        Aligner(mode="up").fit(X, Y)
    with pytest.raises(ValueError, match="the alignment of pair 0"):
        model.score(X, ["M", "M", "M"])


def test_no_pairs(model):
    assert model.predict([]).tolist() == []
    assert model.align([]) == []
    assert model.candidate_scores([]) == []
    assert model.decision_function([]).shape == (0,)
    with pytest.raises(ValueError, match="no pairs"):
        Aligner("dna").fit([], [])


def test_what_is_no_list_of_pairs(model):
    for bad in (None, 5, "ACGT"):
        with pytest.raises(ValueError, match=r"X is .*expected a list of pairs"):
            model.predict(bad)
        with pytest.raises(ValueError, match=r"X is .*expected a list of pairs"):
            Aligner("dna").fit(bad, Y)
    for bad in (5, "MMM"):
        with pytest.raises(ValueError, match=r"y is .*expected a list of alignments"):
            Aligner("dna").fit(X, bad)
        with pytest.raises(ValueError, match=r"y is .*expected a list of alignments"):
            model.score(X, bad)
    with pytest.raises(ValueError, match="X has 3 pairs and y 2 alignments"):
        model.score(X, Y[:2])
    for weights in ([1.0], [1.0, -1.0, 1.0], "abc"):
        with pytest.raises((ValueError, TypeError), match="sample_weight"):
            model.score(X, Y, sample_weight=weights)


def test_rows_of_other_sequences(model):
    rows = [("ACGT", "AC-T"), ("GATTACA", "G--TACA"), ("ccga", "-cga")]
    assert Aligner("dna", random_state=0).fit(X, rows).score(X, rows) == model.score(X, rows) == 1
    wrong = [rows[0], ("GATTACA", "G--TATA"), rows[2]]
    message = "the alignment of pair 1: row 2 has 'T' where sequence 2 has 'C', at position 4"
    with pytest.raises(ValueError, match=message):
        Aligner("dna").fit(X, wrong)
    with pytest.raises(ValueError, match=message):
        model.score(X, wrong)


def test_free_ends_of_a_wrong_type():
    for bad in (5, None):
        with pytest.raises(TypeError, match="free_ends is"):
            Aligner("dna", free_ends=bad).fit(X, Y)
