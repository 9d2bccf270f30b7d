"""SparseWeights: the same answers as the full matrix, and no trust in what it is made of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import _native
from native_problems import FEATURES, brute_hinge, random_case, run_isolated

LABEL_TYPES = [np.uint8, np.uint16, np.uint32]
SPARSE = [f for f in FEATURES if "ones" in f or "values" in f]


def sparse_of(case, w, label_type=np.uint32):
    """The weights of a reference's layout as SparseWeights, without the zeros."""
    n_sparse, L = case.arrays["n_sparse"], case.n_labels
    rows = w.reshape(case.n_rows, L).astype(np.float32)
    feature, label = np.nonzero(rows[:n_sparse])
    counts = np.bincount(feature, minlength=n_sparse)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    return _native.SparseWeights(
        L, starts, label.astype(label_type), rows[feature, label], rows[n_sparse:].ravel()
    )


def pair(case, rng, *, share=0.4, label_type=np.uint32, whole=False):
    """Random weights three times: as 8-byte numbers, as the full matrix, and sparse.

    With `whole`, they are small integers, which sums of any order leave exact.
    """
    size = case.n_rows * case.n_labels
    w = rng.normal(size=size) if not whole else rng.integers(-9, 10, size).astype(float)
    w = w.astype(np.float32).astype(float)
    emissions = case.arrays["n_sparse"] * case.n_labels
    w[:emissions] *= rng.random(emissions) < share
    return w, case.weights(w, single=True), sparse_of(case, w, label_type)


def every_mask(case, rng):
    """Masks that always leave something: a label may follow itself, begin and end."""
    L = case.n_labels
    transition = (rng.random((L, L)) < 0.6) | np.eye(L, dtype=bool)
    start, end = rng.random(L) < 0.7, rng.random(L) < 0.7
    start[0] = end[0] = True
    masks = {"transition": transition.ravel(), "start": start, "end": end}
    return {name: mask.astype(np.uint8) for name, mask in masks.items()}


def assert_same_answers(case, full, sparse, rng, *, exact, threads=1):
    """Compare all that decoding can be asked."""
    problem = case.problem()

    def close(found, expected):
        if exact:
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)

    for masks in ({}, every_mask(case, rng)):
        labels, scores = problem.predict(sparse, threads, **masks)
        wanted, wanted_scores = problem.predict(full, threads, **masks)
        np.testing.assert_array_equal(labels, wanted)
        close(scores, wanted_scores)
        found = problem.kbest(sparse, 4, threads, **masks)
        for paths, others in zip(found, problem.kbest(full, 4, threads, **masks), strict=True):
            close([score for score, _ in paths], [score for score, _ in others])
            for (_, path), (_, other) in zip(paths, others, strict=True):
                np.testing.assert_array_equal(path, other)
    given_labels = rng.integers(0, case.n_labels, len(labels)).astype(np.int32)
    close(problem.score(sparse, given_labels, threads), problem.score(full, given_labels, threads))
    close(problem.max_marginals(sparse, threads), problem.max_marginals(full, threads))
    close(problem.hinge(sparse, threads), problem.hinge(full, threads))
    close(problem.gather(sparse), problem.gather(full))


# --- the same answers ---


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    features=st.sampled_from(FEATURES),
    n_labels=st.integers(1, 20),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    label_type=st.sampled_from(LABEL_TYPES),
    weighted=st.booleans(),
)
def test_the_same_answers_as_the_full_matrix(
    *, seed, features, n_labels, lengths, share, label_type, weighted
):
    rng = np.random.default_rng(seed)
    case = random_case(
        rng, n_labels=n_labels, lengths=lengths, features=features, n_sparse=12, per_token=6,
        cost=weighted, weighted=weighted,
    )  # fmt: skip
    # Random numbers have no ties, except where a feature says nothing at all.
    _, full, sparse = pair(case, rng, share=share, label_type=label_type)
    assert_same_answers(case, full, sparse, rng, exact=False)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_labels=st.integers(1, 20),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    share=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_ties_are_broken_alike(seed, n_labels, lengths, share):
    rng = np.random.default_rng(seed)
    case = random_case(rng, n_labels=n_labels, lengths=lengths, n_sparse=12, per_token=6)
    _, full, sparse = pair(case, rng, share=share, whole=True)
    assert_same_answers(case, full, sparse, rng, exact=True)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("n_labels", [1, 7, 8, 9, 33])
def test_whatever_the_padding(features, n_labels):
    rng = np.random.default_rng(n_labels)
    case = random_case(
        rng, n_labels=n_labels, lengths=(30, 1, 12), features=features, n_sparse=40, per_token=9
    )
    _, full, sparse = pair(case, rng)
    assert_same_answers(case, full, sparse, rng, exact=False)


@pytest.mark.parametrize(("n_labels", "label_type"), [(255, np.uint8), (300, np.uint16)])
def test_many_labels(n_labels, label_type):
    rng = np.random.default_rng(3)
    case = random_case(rng, n_labels=n_labels, lengths=(5, 3), n_sparse=30, per_token=8)
    _, full, sparse = pair(case, rng, share=0.05, label_type=label_type)
    problem = case.problem()
    np.testing.assert_array_equal(problem.predict(sparse)[0], problem.predict(full)[0])
    np.testing.assert_allclose(problem.hinge(sparse), problem.hinge(full), rtol=1e-5)


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_change_nothing(threads):
    rng = np.random.default_rng(0)
    case = random_case(rng, n_labels=6, lengths=rng.integers(1, 12, 40), features="values+dense64")
    _, full, sparse = pair(case, rng)
    problem = case.problem()
    for name, arguments in (("predict", ()), ("kbest", (3,)), ("max_marginals", ()), ("hinge", ())):
        one, many = (getattr(problem, name)(sparse, *arguments, n) for n in (1, threads))
        if name == "kbest":
            one, many = (
                [(score, path.tolist()) for paths in found for score, path in paths]
                for found in (one, many)
            )
            assert one == many
        elif name == "predict":
            np.testing.assert_array_equal(one[0], many[0])
            np.testing.assert_array_equal(one[1], many[1])
        else:
            np.testing.assert_array_equal(one, many)
    assert_same_answers(case, full, sparse, rng, exact=False, threads=threads)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    features=st.sampled_from(FEATURES),
    n_labels=st.integers(1, 4),
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    cost=st.booleans(),
    weighted=st.booleans(),
)
def test_against_brute_force(*, seed, features, n_labels, lengths, cost, weighted):
    rng = np.random.default_rng(seed)
    case = random_case(
        rng, n_labels=n_labels, lengths=lengths, features=features, cost=cost, weighted=weighted
    )
    w, full, sparse = pair(case, rng)
    problem = case.problem()
    wanted = brute_hinge(case, w)
    assert problem.hinge(sparse) == pytest.approx(wanted, rel=1e-5, abs=1e-4)
    assert problem.hinge(full) == pytest.approx(wanted, rel=1e-5, abs=1e-4)
    _, scores = problem.predict(sparse)
    marginals = case.per_sequence(problem.max_marginals(sparse).reshape(-1, n_labels))
    found = problem.kbest(sparse, 3)
    for i, x in enumerate(case.X):
        values = case.reference.all_values(x, w)
        every = case.reference.all_outputs(len(x))
        assert scores[i] == pytest.approx(values.max(), rel=1e-5, abs=1e-4)
        best = [score for score, _ in case.reference.kbest(x, w, 3)]
        np.testing.assert_allclose([s for s, _ in found[i]], best, rtol=1e-5, atol=1e-4)
        for t in range(len(x)):
            wanted = [values[every[:, t] == label].max() for label in range(n_labels)]
            np.testing.assert_allclose(marginals[i][t], wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("features", SPARSE)
@pytest.mark.parametrize("kernels", ["baseline", "avx2"])
def test_every_kernel(features, kernels):
    before = _native.vector_code_name()
    try:
        _native.select_vector_code(kernels)
    except ValueError:
        pytest.skip(f"this machine has no {kernels}")
    try:
        rng = np.random.default_rng(8)
        case = random_case(rng, n_labels=11, lengths=(9, 4), features=features)
        _, full, sparse = pair(case, rng)
        assert_same_answers(case, full, sparse, rng, exact=False)
    finally:
        _native.select_vector_code(before)


def test_hinge_needs_the_truth():
    rng = np.random.default_rng(0)
    case = random_case(rng)
    _, full, sparse = pair(case, rng)
    problem = case.problem(labels=None)
    problem.predict(sparse)
    for weights in (full, sparse):
        with pytest.raises(ValueError, match="label"):
            problem.hinge(weights)


def test_masks_that_leave_nothing():
    rng = np.random.default_rng(0)
    case = random_case(rng)
    _, _, sparse = pair(case, rng)
    none = np.zeros(case.n_labels, dtype=np.uint8)
    for ask in (lambda p, **m: p.predict(sparse, **m), lambda p, **m: p.kbest(sparse, 2, **m)):
        with pytest.raises(ValueError, match="no labelling of sequence 0"):
            ask(case.problem(), start=none)
        with pytest.raises(ValueError, match="starts has the wrong size"):
            ask(case.problem(), start=none[1:])


# --- sizes and round trips ---


@pytest.mark.parametrize("label_type", LABEL_TYPES)
@pytest.mark.parametrize("features", ["none", "ones", "values+dense64"])
def test_arrays_come_back(label_type, features):
    rng = np.random.default_rng(1)
    case = random_case(rng, n_labels=5, features=features)
    w, _, sparse = pair(case, rng, label_type=label_type)
    rows = w.reshape(case.n_rows, 5).astype(np.float32)
    n_sparse = case.arrays["n_sparse"]
    counts, labels, weights, tail = sparse.arrays()
    np.testing.assert_array_equal(counts, (rows[:n_sparse] != 0).sum(axis=1))
    feature = np.repeat(np.arange(n_sparse), counts)
    again = np.zeros_like(rows[:n_sparse])
    again[feature, labels] = weights
    np.testing.assert_array_equal(again, rows[:n_sparse])
    np.testing.assert_array_equal(tail.reshape(-1, 5), rows[n_sparse:])
    assert (sparse.n_rows, sparse.n_labels) == (n_sparse, 5)
    assert sparse.n_entries == len(labels) == len(weights)
    assert sparse.memory_bytes >= 8 * len(labels) + 4 * len(tail)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    np.testing.assert_array_equal(sparse.dense(), case.weights(w, single=True))
    assert sparse.dense().ctypes.data % 32 == 0
    twin = _native.SparseWeights(5, starts, labels, weights, tail)
    for a, b in zip(twin.arrays(), sparse.arrays(), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("labels", [[1, 0], [1, 1], [0, 0]])
def test_labels_of_a_row_must_ascend(labels):
    with pytest.raises(ValueError, match="the labels of a row are not in order"):
        _native.SparseWeights(
            2,
            np.array([0, 2], np.uint32),
            np.array(labels, np.uint8),
            np.array([1, 2], np.float32),
            np.zeros(8, np.float32),
        )


def test_it_keeps_copies():
    starts, labels = np.array([0, 1], np.uint32), np.array([0], np.uint8)
    values, tail = np.ones(1, np.float32), np.zeros(8, np.float32)
    weights = _native.SparseWeights(2, starts, labels, values, tail)
    for array in (starts, labels, values, tail):
        array[:] = 77
    assert [a.tolist() for a in weights.arrays()] == [[1], [0], [1.0], [0.0] * 8]


def test_read_only_arrays_will_do():
    arrays = [
        np.array([0, 1], np.uint32),
        np.array([0], np.uint8),
        np.ones(1, np.float32),
        np.zeros(8, np.float32),
    ]
    for array in arrays:
        array.flags.writeable = False
    assert _native.SparseWeights(2, *arrays).n_entries == 1


# --- what is refused ---

GOOD = {
    "n_labels": 3,
    "starts": np.array([0, 2, 2, 3], np.uint32),
    "labels": np.array([0, 2, 1], np.uint8),
    "weights": np.ones(3, np.float32),
    "tail": np.zeros(15, np.float32),
}
NONE = np.zeros(0, np.float32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"starts": np.array([0, 3, 2, 3], np.uint32)}, "not in order"),
        ({"starts": np.array([0, 2**32 - 1, 2, 3], np.uint32)}, "not in order"),
        ({"starts": np.array([1, 2, 2, 3], np.uint32)}, "do not fit their entries"),
        ({"starts": np.array([0, 2, 2, 4], np.uint32)}, "do not fit their entries"),
        ({"starts": np.array([0, 2, 2, 2], np.uint32)}, "do not fit their entries"),
        ({"starts": np.zeros(0, np.uint32)}, "do not fit their entries"),
        ({"labels": np.array([0, 3, 1], np.uint8)}, "a label that does not exist"),
        ({"labels": np.array([0, 255, 1], np.uint8)}, "a label that does not exist"),
        ({"labels": np.array([0, 3, 1], np.uint16)}, "a label that does not exist"),
        ({"labels": np.array([0, 2**32 - 1, 1], np.uint32)}, "a label that does not exist"),
        ({"labels": np.array([0, 2], np.uint8)}, "do not fit their entries"),
        ({"weights": np.ones(2, np.float32)}, "differ in number"),
        ({"weights": np.ones(4, np.float32)}, "differ in number"),
        ({"tail": np.zeros(14, np.float32)}, "incomplete"),
        ({"tail": np.zeros(16, np.float32)}, "incomplete"),
        ({"n_labels": 0}, "incomplete"),
        ({"n_labels": 2}, "incomplete"),
    ],
)
@pytest.mark.parametrize("times", [1, 50])
def test_bad_arrays(changes, message, times):
    for _ in range(times):  # what a failed constructor leaves behind would be found now
        with pytest.raises(ValueError, match=message):
            _native.SparseWeights(**{**GOOD, **changes})
    assert _native.SparseWeights(**GOOD).n_rows == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"n_labels": -1},
        {"n_labels": 1.5},
        {"n_labels": None},
        {"starts": None},
        {"starts": GOOD["starts"].reshape(2, 2)},
        {"labels": [0, 2, 1]},
        {"tail": GOOD["tail"].reshape(5, 3)},
        {"tail": None},
    ],
)
def test_other_types(changes):
    with pytest.raises(TypeError):
        _native.SparseWeights(**{**GOOD, **changes})


@pytest.mark.parametrize("label_type", [np.int32, np.int64, np.uint64, np.float64])
def test_conversion_does_not_change_labels(label_type):
    labels = np.array([258, 0, 1], dtype=label_type)
    try:
        weights = _native.SparseWeights(**{**GOOD, "n_labels": 300, "labels": labels, "tail": NONE})
    except (TypeError, ValueError):
        return
    assert weights.arrays()[1].tolist() == [258, 0, 1]


def test_conversion_does_not_change_rows():
    starts = np.array([0, 2, 2, 2**32 + 3], dtype=np.int64)
    with pytest.raises((TypeError, ValueError)):
        _native.SparseWeights(**{**GOOD, "starts": starts})


@pytest.mark.parametrize("n_labels", [2**24, 2**31, 2**32, 2**61, 2**63, 2**64 - 1])
@pytest.mark.parametrize("entries", [True, False])
def test_absurd_numbers_of_labels(n_labels, entries):
    # Nothing may be allocated by the number of labels alone.
    arrays = {**GOOD, "n_labels": n_labels}
    if not entries:
        arrays.update(
            starts=np.zeros(4, np.uint32),
            labels=np.zeros(0, np.uint8),
            weights=np.zeros(0, np.float32),
        )
    with pytest.raises(ValueError):
        _native.SparseWeights(**arrays)
    try:
        empty = _native.SparseWeights(**{**arrays, "tail": NONE})
    except ValueError:
        return
    assert empty.n_labels == n_labels
    assert empty.memory_bytes < 1000
    with pytest.raises(ValueError, match="other features or labels"):
        random_case(np.random.default_rng(0)).problem().predict(empty)


def make_dense(n_labels):
    """In a process of its own: ask for a matrix of an absurd size."""
    starts = np.array([0, 2, 2, 2, 3], np.uint32)  # four rows: four times 2^63 is 0
    changes = {"n_labels": int(n_labels), "starts": starts, "tail": NONE}
    try:
        _native.SparseWeights(**{**GOOD, **changes}).dense()
    except (ValueError, MemoryError):
        return
    raise AssertionError("there cannot be such a matrix")


@pytest.mark.parametrize("n_labels", [2**63, 2**64 - 1])
def test_full_matrix_of_absurd_size(n_labels):
    run_isolated(__file__, "make_dense", str(n_labels))


@pytest.mark.parametrize(
    "other",
    [
        {"n_labels": 4},
        {"n_labels": 9},  # another padding
        {"n_sparse": 5},
        {"n_sparse": 7},
        {"features": "none"},
        {"features": "ones+dense32"},
        {"features": "dense32"},
    ],
)
def test_weights_of_another_problem(other):
    rng = np.random.default_rng(0)
    case = random_case(rng, n_labels=3, n_sparse=6, features="ones")
    _, _, weights = pair(random_case(rng, **{"n_labels": 3, "n_sparse": 6, **other}), rng)
    problem = case.problem()
    labels = case.arrays["labels"]
    for ask in (
        lambda: problem.predict(weights),
        lambda: problem.score(weights, labels),
        lambda: problem.kbest(weights, 2),
        lambda: problem.max_marginals(weights),
        lambda: problem.hinge(weights),
        lambda: problem.gather(weights),
    ):
        with pytest.raises(ValueError, match="other features or labels"):
            ask()


def test_number_of_dense_features():
    rng = np.random.default_rng(0)
    case = random_case(rng, features="ones+dense32", n_dense=2)
    for n_dense in (1, 3):
        other = random_case(rng, features="ones+dense32", n_dense=n_dense)
        _, _, weights = pair(other, rng)
        with pytest.raises(ValueError, match="other features or labels"):
            case.problem().predict(weights)


def test_bad_labels_to_score():
    rng = np.random.default_rng(0)
    case = random_case(rng)
    _, _, sparse = pair(case, rng)
    labels = case.arrays["labels"].copy()
    with pytest.raises(ValueError, match="one entry per token"):
        case.problem().score(sparse, labels[1:])
    for bad in (-1, case.n_labels, 2**31 - 1):
        labels[2] = bad
        with pytest.raises(ValueError, match="out of range"):
            case.problem().score(sparse, labels)


def test_k_must_be_positive():
    rng = np.random.default_rng(0)
    case = random_case(rng)
    _, _, sparse = pair(case, rng)
    with pytest.raises(ValueError, match="k must be at least 1"):
        case.problem().kbest(sparse, 0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_numbers_that_are_none(value):
    # Nobody should do this; no index may come of it.
    rng = np.random.default_rng(0)
    case = random_case(rng, n_labels=5, lengths=(8, 3))
    w = rng.normal(size=case.n_rows * 5)
    w[rng.random(len(w)) < 0.3] = value
    with np.errstate(all="ignore"):
        sparse = sparse_of(case, w)
    for ask in ("predict", "max_marginals", "hinge"):
        try:
            found = getattr(case.problem(), ask)(sparse)
        except ValueError:
            continue
        if ask == "predict":
            assert ((found[0] >= 0) & (found[0] < 5)).all()
