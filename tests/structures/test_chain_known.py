"""Decoding with known labels: against brute force, with masks, windows and pair features."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import SequenceTagger, _native
from maxmargin.errors import KnownLabelError
from maxmargin.structures.chain import Chain
from maxmargin.structures.chain_layout import ChainLayout

problems = st.tuples(
    st.integers(0, 2**31),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.integers(1, 4),
    st.sampled_from(["float32", "float64"]),
    st.booleans(),
)


def scores_of(problem, layout, weights):
    """Return what a labelling scores, by the weights alone."""
    rows = layout.rows(weights).astype(float)
    emission, parts = problem, layout.split(rows)

    def score(i, y):
        x = emission[i] @ parts.coef
        total = parts.start[y[0]] + parts.end[y[-1]]
        total += sum(x[t, label] for t, label in enumerate(y))
        return total + sum(parts.transitions[a, b] for a, b in itertools.pairwise(y))

    return score


@settings(max_examples=80)
@given(problems)
def test_best_of_those_that_have_the_known_labels(drawn):
    seed, lengths, L, dtype, masked = drawn
    rng = np.random.default_rng(seed)
    d = 3
    X = [rng.normal(size=(n, d)) for n in lengths]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    dense = np.vstack(X).astype(dtype)
    layout = ChainLayout(0, d, L)
    weights = layout.pad(rng.normal(size=(layout.n_rows, L)), dtype)
    name = "dense32" if dtype == "float32" else "dense64"
    problem = _native.ChainProblem(n_labels=L, n_sparse=0, offsets=offsets, **{name: dense})
    known = rng.integers(-1, L, size=offsets[-1]).astype(np.int32)
    masks = [None, None, None]
    transition, start, end = np.ones((L, L)), np.ones(L), np.ones(L)
    if masked:
        transition = (rng.random((L, L)) < 0.7).astype(np.uint8)
        start, end = ((rng.random(L) < 0.8).astype(np.uint8) for _ in range(2))
        masks = [transition.reshape(-1), start, end]
    score = scores_of([x.astype(float) for x in X], layout, weights)

    def allowed(i, y):
        fits = all(k in (-1, label) for k, label in
                   zip(known[offsets[i]:offsets[i + 1]], y, strict=True))
        return fits and start[y[0]] and end[y[-1]] and all(
            transition[a, b] for a, b in itertools.pairwise(y)
        )

    every = [
        sorted((score(i, y), y) for y in itertools.product(range(L), repeat=n) if allowed(i, y))
        for i, n in enumerate(lengths)
    ]
    for table_bytes in (1 << 26, 1):  # in one piece, and in windows
        call = (weights, 1, *masks)
        if not all(every):
            with pytest.raises(ValueError, match="and has the known labels"):
                problem.predict(*call, table_bytes, known=known)
            continue
        labels, found = problem.predict(*call, table_bytes, known=known)
        paths = problem.kbest(weights, 3, 1, *masks, table_bytes, known=known)
        for i, possible in enumerate(every):
            part = labels[offsets[i] : offsets[i + 1]]
            assert allowed(i, part)
            assert found[i] == pytest.approx(possible[-1][0], rel=1e-4, abs=1e-4)
            assert score(i, part) == pytest.approx(possible[-1][0], rel=1e-4, abs=1e-4)
            got = [s for s, _ in paths[i]]
            best = [s for s, _ in possible[::-1][:3]]
            assert got == pytest.approx(best, rel=1e-4, abs=1e-4)
            assert all(allowed(i, y) for _, y in paths[i])
    if not masked:  # max-marginals do not look at masks
        scores = problem.max_marginals(weights, 1, known=known).reshape(-1, L)
        for i, possible in enumerate(every):
            for t in range(lengths[i]):
                for label in range(L):
                    best = max((s for s, y in possible if y[t] == label), default=-np.inf)
                    here = scores[offsets[i] + t, label]
                    assert here == pytest.approx(best, rel=1e-4, abs=1e-4)


def test_many_labels():
    """More labels than one vector has lanes, where bounds leave out predecessors."""
    rng = np.random.default_rng(3)
    L, n = 70, 12
    layout = ChainLayout(0, 2, L)
    weights = layout.pad(rng.normal(size=(layout.n_rows, L)), "float32")
    offsets = np.array([0, n])
    problem = _native.ChainProblem(
        n_labels=L, n_sparse=0, offsets=offsets, dense32=rng.normal(size=(n, 2)).astype(np.float32)
    )
    free, score = problem.predict(weights)
    same, again = problem.predict(weights, known=free)
    assert (same == free).all()
    assert again[0] == pytest.approx(score[0], rel=1e-5)
    known = np.full(n, -1, np.int32)
    for t in range(0, n, 3):
        known[t] = (free[t] + 1) % L
    held, lower = problem.predict(weights, known=known)
    assert (held[::3] == known[::3]).all()
    assert lower[0] < score[0]
    assert lower[0] == pytest.approx(problem.score(weights, held)[0], rel=1e-4)


def test_native_code_checks_known_labels():
    problem = _native.ChainProblem(n_labels=2, n_sparse=0, offsets=np.array([0, 2]),
                                   dense32=np.zeros((2, 1), np.float32))
    layout = ChainLayout(0, 1, 2)
    weights = layout.zeros("float32")
    for bad, message in (([0], "one entry per token"), ([0, 2], "out of range"),
                         ([-2, 0], "out of range")):
        with pytest.raises(ValueError, match=message):
            problem.predict(weights, known=np.array(bad, np.int32))


X = [[["dogs"], ["bark"]], [["bark"], ["dogs"], ["sleep"]]]
Y = [["N", "V"], ["V", "N", "V"]]


@pytest.fixture(scope="module", params=["linear", "rbf"])
def tagger(request):
    return SequenceTagger(C=1.0, kernel=request.param).fit(X, Y)


def test_tagger(tagger):
    assert list(tagger.predict(X, known=[["V", None], None])) == [["V", "V"], ["V", "N", "V"]]
    assert list(tagger.predict(X, known=[[None, None], [None] * 3])) == list(tagger.predict(X)) == Y
    paths = tagger.predict_kbest(X, 10, known=[["V", None], ["V", "V", None]])
    assert [len(p) for p in paths] == [2, 2]
    assert all(labels[0] == "V" for labels, _ in paths[0])


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ("NV", "known is 'NV'; expected a list of sequences"),
        (3, "known is 3; expected a list"),
        ([["N", "V"]], "X has 2 sequences and known 1"),
        ([["N"], None], "sequence 0 has 2 tokens and 1 known labels"),
        (["NV", None], "sequence 0 of known is 'NV'"),
        ([None, [None, "Q", None]], "sequence 1, token 1: the known label 'Q' is not one of the 2"),
        ([None, [None, [], None]], "sequence 1, token 1: the known label"),
    ],
)
def test_bad_known_labels(tagger, known, message):
    with pytest.raises((ValueError, TypeError), match=message):
        tagger.predict(X, known=known)


def test_labels_that_cannot_be():
    data = [[["a"], ["b"], ["c"]]]
    tags = [["B-X", "I-X", "O"]]
    tagger = SequenceTagger(C=1.0, allowed="iob2").fit(data, tags)
    assert tagger.predict(data, known=[[None, "I-X", None]])[0][:2] == ["B-X", "I-X"]
    with pytest.raises(KnownLabelError, match=r"token 1: the known label 'I-X' does not go") as e:
        tagger.predict(data * 2, known=[None, ["O", "I-X", None]])
    assert (e.value.token, e.value.place) == (4, 1)
    assert "behind 'O'" in str(e.value)
    again = pickle.loads(pickle.dumps(e.value))
    assert (str(again), again.token, again.place) == (str(e.value), 4, 1)
    with pytest.raises(KnownLabelError, match="token 0: the known label 'I-X' does not go"):
        tagger.predict_kbest(data, 2, known=[["I-X", None, None]])
    ends = Chain(allowed=lambda a, b: not (b is None and a == "O"))
    ends.prepare(data, tags)
    weights = ends.pad(np.zeros(ends.n_features))
    with pytest.raises(KnownLabelError, match="at the end of its sequence"):
        ends.predict(data, weights, known=[[None, None, "O"]])
