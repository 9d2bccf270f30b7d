"""Alignments: the native programme against all alignments of short sequences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_reference import ListedAlignment, all_alignments
from kit import formulated, quietly, slacks
from maxmargin import StructuralSVM, _native, check_structure
from maxmargin.io.alignment_forms import pairs_to_rows
from maxmargin.solvers import SDM
from maxmargin.structures.alignment import Alignment
from maxmargin.structures.alignment_features import END_NAMES, match_table
from maxmargin.structures.alignment_sequences import (
    Ranked,
    encode_pairs,
    parse_alignment,
)
from qp_reference import Planes, solve_planes

LETTERS = "ABC"


@st.composite
def structures(draw, position=True):
    return ListedAlignment(
        LETTERS,
        mode=draw(st.sampled_from(["global", "local", "semiglobal"])),
        gaps=draw(st.sampled_from(["affine", "linear"])),
        substitution=draw(
            st.sampled_from(["symmetric", "free", "identity", "table"]).map(
                lambda name: (
                    np.array([[0, 1, 2], [1, 0, 0], [2, 1, 1]]) if name == "table" else name
                )
            )
        ),
        position=draw(st.sampled_from([None, "product", "difference", "bilinear"]))
        if position
        else None,
        free_ends=tuple(draw(st.sets(st.sampled_from(END_NAMES)))),
        loss=draw(st.sampled_from(["matches", "residues"])),
        homolog=draw(st.sampled_from(["fixed", "free"])),
    )


def sequences(draw, structure, most=4):
    text = draw(st.text(LETTERS, min_size=1, max_size=most))
    if structure.position is None:
        return text
    numbers = st.sampled_from([-1.0, 0.0, 0.5, 2.0])
    rows = st.lists(st.tuples(numbers, numbers), min_size=len(text), max_size=len(text))
    return text, np.array(draw(rows))


@st.composite
def cases(draw, decoys=2, **options):
    """A structure, an example, its truth and weights, all of them small."""
    structure = draw(structures(**options))
    x = (sequences(draw, structure), sequences(draw, structure))
    n, m = (len(s if isinstance(s, str) else s[0]) for s in x)
    n_decoys = draw(st.integers(0, decoys))
    if n_decoys:
        x = (*x, [sequences(draw, structure, 3) for _ in range(n_decoys)])
    truth = draw(st.sampled_from(all_alignments(n, m)))
    structure.prepare([x], [truth])
    weights = st.integers(-16, 16).map(lambda k: k / 8)
    size = structure.n_features
    return structure, x, truth, np.array(draw(st.lists(weights, min_size=size, max_size=size)))


@given(cases())
def test_the_best_output_is_the_best_of_all(case):
    structure, x, _truth, w = case
    scores = [structure.joint_feature(x, y) @ w for y in structure.outputs(x)]
    for weights in (w, w.astype(np.float32)):
        (best,), (score,) = structure.predict_with_scores([x], weights)
        assert score == max(scores)
        assert structure.joint_feature(x, best) @ w == max(scores)
        assert structure.score_outputs([x], [best], weights) == score
    assert len({structure.encode(y) for y in structure.outputs(x)}) == len(scores)


@given(cases())
def test_the_oracle_has_the_greatest_loss_and_score(case):
    structure, x, truth, w = case
    best = max(
        structure.loss(truth, y) + structure.joint_feature(x, y) @ w
        for y in [truth, *structure.wrong_outputs(x, truth)]
    )
    found = structure.argmax(x, w, truth)
    value = structure.loss(truth, found) + structure.joint_feature(x, found) @ w
    assert value == pytest.approx(best, abs=1e-12)


@given(cases())
def test_each_candidate_has_its_own_score(case):
    structure, x, _truth, w = case
    (found,) = structure.candidate_scores([x], w)
    for second, score in zip([x[1], *(x[2] if len(x) == 3 else [])], found, strict=True):
        pair = (x[0], second)
        assert score == max(structure.joint_feature(pair, y) @ w for y in structure.outputs(pair))


@given(
    cases(decoys=1),
    st.sampled_from(["linear", "quadratic"]),
    st.sampled_from(["margin", "slack", "none"]),
)
def test_every_formulation_is_exact(case, slack, rescale):
    """The certificate's primal is that of all outputs, written down; and it is the least."""
    structure, x, truth, _w = case
    wrong = list(structure.wrong_outputs(x, truth))
    if not wrong:
        return
    own = structure.joint_feature(x, truth)
    planes = Planes(
        1,
        np.zeros(len(wrong), dtype=int),
        np.array([own - structure.joint_feature(x, y) for y in wrong]),
        np.array([structure.loss(truth, y) for y in wrong]),
    )
    problem = structure.prepare_problem([x], [truth], dtype="float64").problem
    result = quietly(
        problem,
        SDM(slack=slack, rescale=rescale),
        C=0.5,
        dtype="float64",
        gap=1e-6,
        max_passes=500,
        random_state=0,
    )
    certificate = result.certificate
    assert not certificate.approximate
    outputs = formulated(planes, slack, rescale)
    xi = slacks(outputs, np.asarray(result.weights))
    by_hand = 0.5 * result.weights @ result.weights
    by_hand += 0.5 * (xi if slack == "linear" else 0.5 * xi**2).sum()
    assert certificate.primal == pytest.approx(by_hand, rel=1e-7, abs=1e-9)
    assert certificate.gap <= 1e-5


def test_it_reaches_the_optimum_of_an_independent_solver():
    rng = np.random.default_rng(5)
    structure = ListedAlignment("AB", mode="semiglobal", free_ends=("start1", "end2"))
    X = [("".join(rng.choice(list("AB"), 4)), "".join(rng.choice(list("AB"), 3))) for _ in range(6)]
    Y = [all_alignments(4, 3)[rng.integers(35)] for _ in X]
    rows, losses, example = [], [], []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        for z in structure.wrong_outputs(x, y):
            rows.append(structure.joint_feature(x, y) - structure.joint_feature(x, z))
            losses.append(structure.loss(y, z))
            example.append(i)
    planes = Planes(len(X), np.array(example), np.array(rows), np.array(losses))
    problem = structure.prepare_problem(X, Y, dtype="float64").problem
    result = quietly(problem, SDM(), C=0.7, dtype="float64", gap=1e-7, random_state=0)
    optimum = solve_planes(planes, 0.7)
    assert result.certificate.primal == pytest.approx(optimum.primal, rel=1e-6)


# --- what an alignment scores, told in another way ---


def runs(row):
    """Return the lengths of the runs of gaps."""
    return [len(list(group)) for key, group in itertools.groupby(row) if key == "-"]


@given(st.text("AB", min_size=1, max_size=5), st.text("AB", min_size=1, max_size=5), st.data())
def test_a_global_alignment_scores_what_its_rows_show(first, second, data):
    matches = data.draw(st.sampled_from(all_alignments(len(first), len(second))))
    rows = pairs_to_rows(matches, first, second)
    assert tuple(row.replace("-", "") for row in rows) == (first, second)
    assert np.array_equal(parse_alignment(rows, len(first), len(second)), matches)
    structure = Alignment("AB", substitution="free")
    f = structure.joint_feature((first, second), matches)
    columns = list(zip(*rows, strict=True))
    for k, pair in enumerate(itertools.product("AB", repeat=2)):
        assert f[k] == columns.count(pair)
    gaps = [*runs(rows[0]), *runs(rows[1])]
    assert (f[4], f[5]) == (len(gaps), sum(gaps) - len(gaps))


def test_modes_differ_in_their_ends():
    x, matches = ("AAABB", "BBCCCC"), [(3, 0), (4, 1)]
    features = {}
    for mode, ends in [
        ("global", END_NAMES),
        ("local", ()),
        ("semiglobal", ()),
        ("semiglobal", ("start1",)),
        ("semiglobal", ("end2",)),
        ("semiglobal", END_NAMES),
    ]:
        structure = Alignment("ABC", mode=mode, free_ends=ends, substitution="identity")
        features[mode, ends] = structure.joint_feature(x, matches)[2:].tolist()
    assert features["global", END_NAMES] == features["semiglobal", ()] == [2, 5]
    assert features["local", ()] == features["semiglobal", END_NAMES] == [0, 0]
    assert features["semiglobal", ("start1",)] == [1, 3]
    assert features["semiglobal", ("end2",)] == [1, 2]
    # Where both sequences overhang at the same end, one of them is paid for: the shorter one.
    structure = Alignment("ABC", mode="semiglobal", substitution="identity")
    assert structure.joint_feature(("AAAC", "BC"), [(3, 1)]).tolist() == [1, 0, 1, 0]


def test_nothing_matched():
    nothing = np.zeros((0, 2), dtype=int)
    found = {}
    for ends in [(), ("start1",), ("start1", "end1"), ("start1", "start2"), ("start1", "end2")]:
        structure = Alignment("AB", mode="semiglobal", free_ends=ends, substitution="identity")
        found[ends] = structure.joint_feature(("AAA", "BB"), nothing)[2:].tolist()
    assert found == {
        (): [2, 3],
        ("start1",): [1, 1],
        ("start1", "end1"): [1, 1],
        ("start1", "start2"): [1, 1],
        ("start1", "end2"): [0, 0],
    }
    assert not Alignment("AB", mode="local").joint_feature(("AAA", "BB"), nothing).any()
    local = Alignment("AB", mode="local", substitution="identity")
    matches, score = local.predict_with_scores([("AA", "BB")], np.array([1.0, -1.0, 5.0, 5.0]))
    assert (len(matches[0]), score[0]) == (0, 0.0)  # gaps are no alignment, whatever they score


def test_losses():
    truth = np.array([(0, 0), (1, 1), (2, 2)])
    matches, residues = Alignment("A"), Alignment("A", loss="residues")
    shifted = np.array([(0, 1), (1, 2), (2, 3)])
    more = np.array([(0, 0), (1, 1), (2, 2), (3, 3)])
    assert matches.loss(truth, truth) == residues.loss(truth, truth) == 0
    assert matches.loss(truth, shifted) == 1
    assert residues.loss(truth, shifted) == 7 / 6  # the residue without a partner got one
    assert matches.loss(truth, more) == 0
    assert residues.loss(truth, more) == 2 / 6
    assert matches.loss(Ranked(0, truth), Ranked(1, truth)) == 1


def test_losses_of_all_forms_of_alignments():
    structure = Alignment("A")
    found = np.array([(0, 0), (2, 1)])
    for truth in ("M1M", ("AAA", "A-A"), ("AAA", "A.A"), found):
        assert structure.loss(truth, found) == structure.loss(found, truth) == 0
        assert structure.loss(truth, found[:1]) == 0.5
    X, Y = [("AAA", "AA"), ("AAB", "AB")], ["M1M", ("AAB", "A-B")]
    model = StructuralSVM(Alignment("AB"), random_state=0).fit(X, Y)
    assert model.score(X, Y) == model.score(X, [found, found])


def test_check_structure_finds_nothing():
    X = [("ABCA", "ACA"), ("BBCA", "BCAA")]
    Y = [np.array([(0, 0), (2, 1), (3, 2)]), np.array([(1, 0), (2, 1)])]
    for mode, loss in itertools.product(["global", "local", "semiglobal"], ["matches", "residues"]):
        report = check_structure(Alignment("ABC", mode=mode, loss=loss), X, Y)
        # An alignment without matches looks to it like an empty list, not like a list of pairs.
        assert {problem.kind for problem in report.problems} <= {"kind of output"}, str(report)
        assert not report.warnings


def test_weights_of_examples():
    structure = Alignment("AB")
    X, Y = [("AB", "AB"), ("AAB", "AB")], ["MM", "1MM"]
    twice = structure.prepare_problem([*X, X[0]], [*Y, Y[0]], dtype="float64").problem
    heavy = structure.prepare_problem(X, Y, dtype="float64", sample_weight=[2, 1]).problem
    found = [
        quietly(problem, SDM(), C=1.0, dtype="float64", gap=1e-6, random_state=0).certificate
        for problem in (twice, heavy)
    ]
    assert found[0].primal == pytest.approx(found[1].primal, rel=1e-5)


def test_threads_do_not_matter():
    rng = np.random.default_rng(0)
    structure = Alignment("ABC", mode="local")
    X = [
        tuple("".join(rng.choice(list("ABC"), n)) for n in rng.integers(1, 30, 2))
        for _ in range(20)
    ]
    w = rng.normal(size=structure.n_features)
    one, three = structure.predict(X, w, 1), structure.predict(X, w, 3)
    assert all(np.array_equal(a, b) for a, b in zip(one, three, strict=True))


def test_slack_rescaling_of_long_sequences_is_bounded():
    """The table with a layer for each loss would be too large; the primal is no less than it is."""
    rng = np.random.default_rng(1)
    x = tuple("".join(rng.choice(list("AB"), 500)) for _ in range(2))
    truth = np.column_stack([np.arange(500)] * 2)
    structure = Alignment("AB")
    problem = structure.prepare_problem([x], [truth], dtype="float64").problem
    result = quietly(
        problem,
        SDM(rescale="slack"),
        C=1.0,
        dtype="float64",
        gap=0.01,
        max_passes=4,
        random_state=0,
    )
    w = np.asarray(result.weights)
    own = structure.joint_feature(x, truth) @ w
    worst = 0.0
    for scale in (0.1, 0.5, 1.0, 2.0, 5.0, 20.0):
        _, _, flat, (loss,) = problem.augmented(w, scale)
        margin = own - structure.joint_feature(x, flat.reshape(-1, 2)) @ w
        worst = max(worst, loss * (1 - margin))
    assert worst > 0
    assert result.certificate.primal >= 0.5 * w @ w + worst - 1e-9
    assert result.certificate.dual <= result.certificate.primal


@pytest.mark.parametrize("name", ["baseline", "auto"])
def test_vector_code_of_all_kinds_finds_the_same(name):
    """Against the sums of the best path, for lengths around the width of a vector."""
    rng = np.random.default_rng(3)
    _native.select_vector_code(name)
    try:
        for mode, dtype in itertools.product(
            ["global", "local", "semiglobal"], [np.float32, float]
        ):
            structure = Alignment("ABC", mode=mode)
            w = (rng.integers(-16, 17, structure.n_features) / 8).astype(dtype)
            w[-2:] = -np.abs(w[-2:])
            X = [
                tuple("".join(rng.choice(list("ABC"), k)) for k in (n, m))
                for n, m in itertools.product([1, 2, 7, 9], [1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 25])
            ]
            found, scores = structure.predict_with_scores(X, w)
            by_features = [structure.joint_feature(x, y) @ w for x, y in zip(X, found, strict=True)]
            assert scores == pytest.approx(by_features, abs=1e-6)
            # The other way round it is the same problem.
            turned = structure.predict_with_scores([(b, a) for a, b in X], w)[1]
            assert scores == pytest.approx(turned, abs=1e-6)
    finally:
        _native.select_vector_code("auto")


# --- model files ---


@given(structures())
def test_a_restored_structure_is_the_same(structure):
    position = np.ones((2, 2))
    x = ("AB", "BC") if structure.position is None else (("AB", position), ("BC", position))
    structure.prepare([x], ["MM"])
    again = Alignment.restore(*structure.state())
    assert again.state()[0] == structure.state()[0]
    assert again.n_features == structure.n_features
    assert np.array_equal(
        again.joint_feature(x, [(0, 0), (1, 1)]), structure.joint_feature(x, "MM")
    )


@pytest.mark.parametrize(
    "change",
    [
        {"alphabet": 3},
        {"alphabet": "AA"},
        {"alphabet": ""},
        {"mode": "sideways"},
        {"gaps": None},
        {"substitution": 1},
        {"substitution": "table"},
        {"free_ends": "start1"},
        {"free_ends": ["middle"]},
        {"position": "product"},
        {"n_position": 3},
        {"n_position": True},
        {"n_position": -1},
        {"loss": []},
        {"homolog": {}},
        {"unknown": "Q"},
        {"unknown": 5},
    ],
)
def test_nonsense_is_not_restored(change):
    meta, arrays = Alignment("AB").state()
    with pytest.raises((ValueError, KeyError, TypeError)):
        Alignment.restore({**meta, **change}, arrays)


# --- bad input ---


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (
            ("ABD", "AB"),
            r"sequence 1 of pair 1 has 'D' at position 3, which is not in the alphabet",
        ),
        (("AB", "A b"), r"sequence 2 of pair 1 has ' ' at position 2"),
        (("AB", "AB", ["A", "Z"]), r"decoy 1 of pair 1 has 'Z' at position 1"),
        (("AB", ""), r"sequence 2 of pair 1 is empty"),
        ("AB", r"pair 1 is 'AB'; expected \(first sequence, second sequence\)"),
        (("AB",), r"pair 1 is"),
        (("AB", 5), r"sequence 2 of pair 1 is 5; expected a text"),
        (("AB", "AB", "AB"), r"the decoys of pair 1 are 'AB'; expected a list"),
        (("AB", ("AB", np.ones((2, 1)))), r"has 1 features for each character; expected 0"),
        (("AB", ("AB", np.ones((3, 1)))), r"expected a row for each of its 2 characters"),
        (("AB", ("AB", [np.nan, 1])), r"must be finite"),
        (("AB", ("AB", ["x", "y"])), r"no array of numbers"),
    ],
)
def test_bad_sequences(x, message):
    structure = Alignment("ABC")
    with pytest.raises((ValueError, TypeError), match=message):
        structure.predict([("A", "B"), x], np.zeros(structure.n_features))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ("MMM", r"the alignment of pair 0: found 3 positions of sequence 2"),
        ("MxM", r"found 'x' at position 2 of the alignment; expected M, 1 or 2"),
        (("AB-", "A"), r"rows of 3 and 1 letters"),
        (("AB", "AB"), r"rows with 2 and 2 characters that are no gaps; expected 3 and 2"),
        ([(0, 2)], r"pair 0: found position 2 of sequence 2; expected one from 0 to 1"),
        ([(-1, 0)], r"found position -1 of sequence 1"),
        (
            [(0, 0), (1, 0)],
            r"found position 0 of sequence 2 after 0; expected positions that ascend",
        ),
        ([(1, 0), (0, 1)], r"found position 0 of sequence 1 after 1"),
        ([(0.5, 0.5)], r"expected integers of shape \(k, 2\)"),
        ([1, 2, 3], r"expected integers of shape"),
        ([[1], [2, 3]], r"the alignment of pair 0: "),
        (Ranked(1, np.zeros((0, 2))), r"the truth of pair 0 is decoy 0"),
    ],
)
def test_bad_alignments(y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Alignment("AB").prepare_problem([("ABA", "AB")], [y], dtype="float64")


def test_unknown_characters_are_read_as_a_letter_if_asked():
    structure = Alignment("protein", unknown="X")
    f, g = (structure.joint_feature((s, "AX"), "MM") for s in ("AX", "A*"))
    assert np.array_equal(f, g)
    with pytest.raises(ValueError, match="unknown is 'Q', which is not in the alphabet"):
        Alignment("AB", unknown="Q").predict([("A", "B")], np.zeros(5))


def test_an_alphabet_of_the_data():
    structure = Alignment()
    with pytest.raises(ValueError, match="the alphabet is not known before training"):
        structure.joint_feature(("A", "B"), "M")
    structure.prepare([("zu", "za")], ["MM"])
    assert structure.alphabet == "auz"
    assert encode_pairs([("zu", "a")], "auz", None, 0).letters.tolist() == [2, 1, 0]


def test_other_mistakes():
    with pytest.raises(ValueError, match="X has 1 pairs and y 2"):
        Alignment("A").prepare_problem([("A", "A")], ["M", "M"], dtype="float32")
    with pytest.raises(ValueError, match="there are no pairs"):
        Alignment("A").prepare_problem([], [], dtype="float32")
    assert Alignment("A").predict([], np.zeros(3)) == []
    with pytest.raises(ValueError, match="expected 3 floats"):
        Alignment("A").predict([("A", "A")], np.zeros(4))
    with pytest.raises(ValueError, match="features, but position is 'product'"):
        Alignment("A", position="product").prepare([("A", "A")], ["M"])
    with pytest.raises(ValueError, match="sample_weight"):
        Alignment("A").prepare_problem([("A", "A")], ["M"], dtype="float32", sample_weight=[-1])
    with pytest.raises(ValueError, match=r"mode must be one of"):
        Alignment(mode="up")
    with pytest.raises(ValueError, match="stand for gaps"):
        Alignment("A-")
    with pytest.raises(ValueError, match="without leaving out"):
        match_table(np.array([[0, 2], [2, 0]]), 2)
    with pytest.raises(ValueError, match="expected ints of the shape"):
        match_table(np.zeros((2, 2)), 2)
    with pytest.raises(ValueError, match="expected 'symmetric'"):
        match_table("all", 2)
