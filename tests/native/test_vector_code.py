"""Decoding of a chain: against brute force, against a textbook, and on bad input."""

from __future__ import annotations

import contextlib
import gc
import itertools
import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from maxmargin import _native
from native_problems import FEATURES, KERNELS, random_case, run_isolated, using, viterbi

PRECISIONS = [pytest.param(True, id="float32"), pytest.param(False, id="float64")]

# Around every multiple of a vector (4, 8), of the slice of 8 vectors (32, 64) and of the number of
# labels above which predecessors are skipped (24).
MANY_LABELS = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 23, 24, 25, 31, 32, 33, 44, 63, 64, 65, 70, 130, 500]
MANY_LENGTHS = (1, 2, 3, 20, 300)


def relative(single):
    return 2e-5 if single else 1e-12


def random_weights(rng, case, transition_scale=1.0):
    w = rng.normal(size=case.reference.n_features)
    w[case.reference.n_token_features * case.n_labels :] *= transition_scale
    return w


# --- brute force ---


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_labels=st.integers(1, 5),
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    features=st.sampled_from(FEATURES),
    single=st.booleans(),
    labelled=st.booleans(),
    k=st.integers(1, 30),
)
def test_decoding_against_brute_force(seed, *, n_labels, lengths, features, single, labelled, k):
    rng = np.random.default_rng(seed)
    case = random_case(rng, n_labels=n_labels, lengths=lengths, features=features)
    problem = case.problem() if labelled else case.problem(labels=None)
    w, chain = random_weights(rng, case), case.reference
    given_labels = rng.integers(0, n_labels, sum(lengths)).astype(np.int32)
    tolerance = {"rtol": 0, "atol": relative(single) * (1 + np.abs(w).sum())}
    for kernels in KERNELS:
        with using(kernels):
            native = case.weights(w, single)
            labels, scores = problem.predict(native)
            given_scores = problem.score(native, given_labels)
            marginals = problem.max_marginals(native).reshape(-1, n_labels)
            best = problem.kbest(native, k)
        assert labels.dtype == np.int32
        assert scores.dtype == np.float64
        assert len(scores) == len(best) == len(lengths)
        of_sequences = zip(
            case.X,
            case.per_sequence(labels),
            scores,
            case.per_sequence(given_labels),
            given_scores,
            case.per_sequence(marginals),
            best,
            strict=True,
        )
        for x, y, score, given_y, given_score, marginal, paths in of_sequences:
            values, every = chain.all_values(x, w), chain.all_outputs(len(x))
            np.testing.assert_allclose(score, values.max(), **tolerance)
            np.testing.assert_allclose(w @ chain.joint_feature(x, y), values.max(), **tolerance)
            np.testing.assert_allclose(
                given_score, w @ chain.joint_feature(x, given_y), **tolerance
            )
            wanted = [
                [values[every[:, t] == label].max() for label in range(n_labels)]
                for t in range(len(x))
            ]
            np.testing.assert_allclose(marginal, wanted, **tolerance)
            assert len(paths) == min(k, len(every))
            assert len({path.tobytes() for _, path in paths}) == len(paths), "the same path twice"
            np.testing.assert_allclose(
                [s for s, _ in paths], np.sort(values)[::-1][: len(paths)], **tolerance
            )
            for path_score, path in paths:
                np.testing.assert_allclose(
                    path_score, w @ chain.joint_feature(x, path), **tolerance
                )


# --- a textbook ---


@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("n_labels", MANY_LABELS)
def test_decoding_against_textbook_viterbi(n_labels, single):
    rng = np.random.default_rng(n_labels)
    features = FEATURES[n_labels % len(FEATURES)]
    case = random_case(
        rng, n_labels=n_labels, lengths=MANY_LENGTHS, features=features, n_sparse=40, n_dense=5
    )
    problem, chain = case.problem(labels=None), case.reference
    for transition_scale in (0.01, 1.0, 20.0):  # few to all predecessors matter
        w = random_weights(rng, case, transition_scale)
        native = case.weights(w, single)
        w = case.unpadded(native)  # rounded
        transition = chain.split(w)[1]
        wanted = [viterbi(chain.unary(x, w), transition) for x in case.X]
        for kernels in KERNELS:
            with using(kernels):
                labels, scores = problem.predict(native)
            of_sequences = zip(case.X, case.per_sequence(labels), scores, wanted, strict=True)
            for x, y, score, (best, path) in of_sequences:
                close = relative(single) * (1 + np.abs(best)) * len(x)
                assert abs(score - best) <= close
                assert abs(w @ chain.joint_feature(x, y) - best) <= close
                if not single:
                    np.testing.assert_array_equal(y, path)


@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("n_labels", MANY_LABELS)
def test_small_integers_are_exact_and_the_lowest_label_wins_a_tie(n_labels, single):
    rng = np.random.default_rng(n_labels)
    lengths = (1, 2, 3, 20, 60) if n_labels < 500 else (1, 2, 5)
    case = random_case(rng, n_labels=n_labels, lengths=lengths, features="ones", n_sparse=9)
    chain = case.reference
    w = rng.integers(-2, 3, chain.n_features).astype(float)
    native, transition = case.weights(w, single), chain.split(w)[1]
    wanted = [viterbi(chain.unary(x, w), transition) for x in case.X]
    for kernels in KERNELS:
        with using(kernels):
            labels, scores = case.problem(labels=None).predict(native)
            marginals = case.problem().max_marginals(native).reshape(-1, n_labels)
        np.testing.assert_array_equal(scores, [score for score, _ in wanted])
        np.testing.assert_array_equal(labels, np.concatenate([path for _, path in wanted]))
        for marginal, score in zip(case.per_sequence(marginals), scores, strict=True):
            np.testing.assert_array_equal(marginal.max(axis=1), score)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_labels=st.integers(1, 40),
    features=st.sampled_from(FEATURES),
    single=st.booleans(),
)
def test_the_truth_does_not_help_prediction(seed, n_labels, features, single):
    # Ties abound: all weights are -1, 0 or 1 (or all zero, as before training).
    rng = np.random.default_rng(seed)
    case = random_case(rng, n_labels=n_labels, lengths=(1, 7, 4), features=features)
    w = rng.integers(-1, 2, case.reference.n_features).astype(float) * (seed % 3 > 0)
    native = case.weights(w, single)
    labels, scores = case.problem().predict(native)
    unlabelled, unlabelled_scores = case.problem(labels=None).predict(native)
    np.testing.assert_array_equal(scores, unlabelled_scores)
    np.testing.assert_array_equal(labels, unlabelled)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_labels=st.integers(1, 70), single=st.booleans())
def test_kernel_sets_agree(seed, n_labels, single):
    rng = np.random.default_rng(seed)
    for features in FEATURES:
        case = random_case(rng, n_labels=n_labels, lengths=(1, 6, 11), features=features)
        problem, native = case.problem(), case.weights(random_weights(rng, case), single)
        answers = []
        for kernels in KERNELS:
            with using(kernels):
                assert _native.vector_code_name() == kernels
                marginals = problem.max_marginals(native)
                answers.append((*problem.predict(native), marginals, problem.gather(native)))
        for (labels, *numbers), (other, *others) in itertools.pairwise(answers):
            np.testing.assert_array_equal(labels, other)
            for a, b in zip(numbers, others, strict=True):
                if "ones" in features.split("+") and "+" not in features:
                    np.testing.assert_array_equal(a, b)  # only additions: bit for bit
                else:
                    np.testing.assert_allclose(a, b, rtol=relative(single), atol=relative(single))


@pytest.mark.parametrize("single", PRECISIONS)
def test_kbest_of_longer_sequences(single):
    rng = np.random.default_rng(3)
    case = random_case(rng, n_labels=30, lengths=(25, 1, 40), features="values+dense64")
    problem, native = case.problem(labels=None), case.weights(random_weights(rng, case), single)
    labels, scores = problem.predict(native)
    for k in (1, 2, 17):
        best = problem.kbest(native, k)
        for y, score, paths in zip(case.per_sequence(labels), scores, best, strict=True):
            assert len(paths) == min(k, 30 ** len(y))
            np.testing.assert_array_equal(paths[0][1], y)
            assert paths[0][0] == pytest.approx(score, rel=1e-5)
            assert len({path.tobytes() for _, path in paths}) == len(paths)
            assert all(a >= b for (a, _), (b, _) in itertools.pairwise(paths))
        if k > 1:
            second = np.concatenate([paths[1][1] for paths in best])
            wanted = [paths[1][0] for paths in best]
            np.testing.assert_allclose(problem.score(native, second), wanted, rtol=1e-5)


def test_sequences_of_thousands_of_tokens():
    rng = np.random.default_rng(4)
    case = random_case(rng, n_labels=6, lengths=(5000, 1, 3000), features="ones", n_sparse=50)
    problem, w = case.problem(labels=None), rng.normal(size=case.reference.n_features)
    labels, scores = problem.predict(case.weights(w, False))
    for x, y, score in zip(case.X, case.per_sequence(labels), scores, strict=True):
        best, path = viterbi(case.reference.unary(x, w), case.reference.split(w)[1])
        assert score == pytest.approx(best, rel=1e-12)
        np.testing.assert_array_equal(y, path)
    marginals = problem.max_marginals(case.weights(w, False)).reshape(-1, 6)
    for marginal, score in zip(case.per_sequence(marginals), scores, strict=True):
        np.testing.assert_allclose(marginal.max(axis=1), score, rtol=1e-12)


# --- masks ---


def masked_edges(chain, w, masks):
    """Return copies of (transition, start, end) with -inf where a mask forbids."""
    _, *edges = chain.split(w)
    return [
        np.where(mask.reshape(edge.shape), edge, -np.inf)
        for edge, mask in zip(edges, masks, strict=True)
    ]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_labels=st.sampled_from([1, 2, 3, 4, 8, 9, 25, 32, 33, 64, 65, 70]),
    density=st.sampled_from([0.03, 0.2, 0.5, 0.9]),
    scale=st.sampled_from([0.01, 1.0, 20.0]),
    single=st.booleans(),
    labelled=st.booleans(),
)
def test_masks(seed, *, n_labels, density, scale, single, labelled):
    rng = np.random.default_rng(seed)
    case = random_case(rng, n_labels=n_labels, lengths=(5, 1, 12), features="values")
    chain = case.reference
    native = case.weights(random_weights(rng, case, scale), single)
    w = case.unpadded(native)
    masks = [
        (rng.random(size) < density).astype(np.uint8)
        for size in (n_labels * n_labels, n_labels, n_labels)
    ]
    used = [mask if rng.random() < 0.7 else None for mask in masks]
    filled = [
        np.ones_like(mask) if use is None else mask for mask, use in zip(masks, used, strict=True)
    ]
    transition, start, end = masked_edges(chain, w, filled)
    wanted = []
    for x in case.X:
        unary = x @ chain.split(w)[0]
        unary[0] += start
        unary[-1] += end
        wanted.append(viterbi(unary, transition))
    problem = case.problem() if labelled else case.problem(labels=None)
    possible = all(np.isfinite(score) for score, _ in wanted)
    for kernels in KERNELS:
        with using(kernels):
            if not possible:
                with pytest.raises(ValueError, match="no labelling of sequence"):
                    problem.predict(native, 1, *used)
                with pytest.raises(ValueError, match="no labelling of sequence"):
                    problem.kbest(native, 3, 1, *used)
                continue
            labels, scores = problem.predict(native, 2, *used)
            best = problem.kbest(native, 4, 1, *used)
        of_sequences = zip(case.per_sequence(labels), scores, wanted, best, case.X, strict=True)
        for y, score, (optimum, path), paths, x in of_sequences:
            close = relative(single) * (1 + np.abs(w).max()) * 10 * len(x)
            assert abs(score - optimum) <= close
            if not single:
                np.testing.assert_array_equal(y, path)
            for labelling in (y, *(p for _, p in paths)):
                assert filled[1][labelling[0]]
                assert filled[2][labelling[-1]]
                assert filled[0].reshape(n_labels, n_labels)[labelling[:-1], labelling[1:]].all()
            assert abs(paths[0][0] - optimum) <= close
            assert len({p.tobytes() for _, p in paths}) == len(paths)


def test_a_mask_with_one_way_through():
    rng = np.random.default_rng(0)
    for n_labels in (2, 30, 64, 100):
        case = random_case(rng, n_labels=n_labels, lengths=(9,), features="ones")
        path = rng.permutation(np.arange(9) % n_labels)
        transition = np.zeros((n_labels, n_labels), np.uint8)
        start, end = np.zeros(n_labels, np.uint8), np.zeros(n_labels, np.uint8)
        if n_labels == 2:
            path = np.arange(9) % 2
        transition[path[:-1], path[1:]] = 1
        start[path[0]] = end[path[-1]] = 1
        native = case.weights(random_weights(rng, case), True)
        for kernels in KERNELS:
            with using(kernels):
                labels, _ = case.problem().predict(native, 1, transition.ravel(), start, end)
                best = case.problem().kbest(native, 5, 1, transition.ravel(), start, end)[0]
            np.testing.assert_array_equal(labels, path)
            assert len(best) == 1


# --- threads ---


@pytest.mark.parametrize("single", PRECISIONS)
def test_threads_change_nothing(single):
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 30, 23)
    case = random_case(rng, n_labels=26, lengths=lengths, features="values+dense64")
    native = case.weights(random_weights(rng, case), single)
    some = rng.integers(0, 26, lengths.sum()).astype(np.int32)

    def answers(threads):
        problem = case.problem()
        best = problem.kbest(native, 3, threads)
        return [
            *problem.predict(native, threads),
            problem.score(native, some, threads),
            problem.max_marginals(native, threads),
            *(np.append(path, score) for paths in best for score, path in paths),
        ]

    alone = answers(1)
    for threads in (2, 5, 100, 0, -3):
        for a, b in zip(alone, answers(threads), strict=True):
            np.testing.assert_array_equal(a, b)


STATM = Path("/proc/self/statm")


def crowd():
    """Ask for more threads than the process may have."""
    n = 4000
    problem = _native.ChainProblem(3, 0, np.arange(n + 1, dtype=np.int64))
    used = int(STATM.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, resource.RLIM_INFINITY))
    weights = _native.aligned_array(5 * 8, True)
    try:
        labels, _ = problem.predict(weights, n)
        assert not labels.any()
    except (RuntimeError, MemoryError) as error:
        print("refused:", error)


@pytest.mark.skipif(not STATM.exists(), reason="needs Linux")
def test_more_threads_than_the_machine_gives():
    run_isolated(__file__, "crowd")


# --- special inputs ---


def test_sequences_without_any_feature():
    n_labels = 3
    problem = _native.ChainProblem(n_labels, 0, np.array([0, 1, 4], np.int64))
    for single in (True, False):
        Lp = _native.padded_labels(n_labels, single)
        weights = _native.aligned_array(5 * Lp, single)
        rows = weights.reshape(5, Lp)
        rows[:3, :3] = [[0, 2, 0], [0, 0, 2], [2, 0, 0]]  # 0 -> 1 -> 2 -> 0
        rows[3, :3], rows[4, :3] = [0, 3, 0], [1, 0, 0]
        for kernels in KERNELS:
            with using(kernels):
                labels, scores = problem.predict(weights)
            assert labels.tolist() == [1, 1, 2, 0]
            assert scores.tolist() == [3.0, 8.0]


def test_tokens_without_features_among_others():
    rng = np.random.default_rng(6)
    case = random_case(rng, n_labels=4, lengths=(3, 2), features="ones")
    empty = case.problem(labels=None, indptr=np.zeros(6, np.int64), indices=np.zeros(0, np.uint32))
    w = rng.normal(size=case.reference.n_features)
    _, scores = empty.predict(case.weights(w, False))
    chain = case.reference
    for x, score in zip(case.X, scores, strict=True):
        unary = chain.unary(np.zeros_like(x), w)
        assert score == pytest.approx(viterbi(unary, chain.split(w)[1])[0])


def test_infinite_and_nan_weights_do_no_harm():
    rng = np.random.default_rng(7)
    for n_labels in (3, 30, 70):
        case = random_case(rng, n_labels=n_labels, lengths=(6, 2), features="values+dense64")
        for single in (True, False):
            native = case.weights(rng.normal(size=case.reference.n_features), single)
            for bad in (np.nan, np.inf, -np.inf):
                native[rng.integers(0, len(native), 9)] = bad
                for kernels in KERNELS:
                    with using(kernels), contextlib.suppress(ValueError):
                        labels, _ = case.problem().predict(native)
                        assert ((labels >= 0) & (labels < n_labels)).all()
                        case.problem().kbest(native, 5)
                        case.problem().max_marginals(native)


def test_arrays_outlive_their_names():
    rng = np.random.default_rng(8)
    case = random_case(rng, n_labels=3, lengths=(4, 5), features="values+dense64", weighted=True)
    native = case.weights(random_weights(rng, case), False)
    before = case.problem().predict(native)[0]
    problem = _native.ChainProblem(
        **{k: v.copy() if isinstance(v, np.ndarray) else v for k, v in case.arrays.items()}
    )
    gc.collect()
    _ = [np.full(50, 7, np.int64) for _ in range(100)]
    np.testing.assert_array_equal(problem.predict(native)[0], before)


@pytest.mark.parametrize("n_labels", [1, 3, 4, 5, 8, 9, 31, 33])
def test_padding_and_alignment(n_labels):
    assert _native.padded_labels(n_labels, True) == -(-n_labels // 8) * 8
    assert _native.padded_labels(n_labels, False) == -(-n_labels // 4) * 4
    for single in (True, False):
        array = _native.aligned_array(n_labels * 100, single)
        assert array.dtype == (np.float32 if single else np.float64)
        assert array.ctypes.data % 32 == 0
        assert not array.any()


# --- bad input ---

GOOD = {
    "n_labels": 3,
    "n_sparse": 5,
    "offsets": np.array([0, 2, 3], np.int64),
    "indptr": np.array([0, 2, 2, 3], np.int64),
    "indices": np.array([1, 4, 0], np.uint32),
    "values": np.array([1.0, 2.0, 3.0], np.float32),
    "dense64": np.ones((3, 2)),
    "labels": np.array([0, 2, 1], np.int32),
    "token_weight": np.ones(3, np.float32),
    "cost": 1.0 - np.eye(3),
}


def int64(*values):
    return np.array(values, np.int64)


BAD = [
    ({"n_labels": 0}, "label"),
    ({"n_labels": 2**24}, "labels"),
    ({"n_labels": 2}, "label code"),
    ({"n_sparse": 4}, "ascending and below"),
    ({"n_sparse": 2**32 + 1}, "n_sparse|features"),
    ({"n_sparse": 2**61}, "n_sparse|features"),
    ({"n_sparse": 2**64 - 7}, "n_sparse|features"),
    ({"offsets": int64()}, "sequence"),
    ({"offsets": int64(0)}, "sequence"),
    ({"offsets": int64(1, 2, 3)}, "begin with 0"),
    ({"offsets": int64(0, 2, 2, 3)}, "sequence 1 is empty"),
    ({"offsets": int64(0, 0, 3)}, "sequence 0 is empty"),
    ({"offsets": int64(0, 3, 2, 3)}, "sequence 1"),
    ({"offsets": int64(0, -1, 3)}, "sequence 0"),
    ({"offsets": int64(0, 2, 4)}, "token"),
    ({"offsets": int64(0, 2, 2**62)}, "token"),
    ({"indptr": None}, "together"),
    ({"indices": None}, "together"),
    ({"indptr": None, "indices": None}, "without indices there must be no features"),
    ({"indptr": None, "indices": None, "n_sparse": 0}, "values"),
    ({"indptr": int64(0, 2, 3)}, "indptr"),
    ({"indptr": int64(1, 2, 2, 3)}, "indptr"),
    ({"indptr": int64(0, 2, 2, 2)}, "indptr"),
    ({"indptr": int64(0, 2, 2, 4)}, "indptr"),
    ({"indptr": int64(0, 3, 2, 3)}, "indptr|ascending"),
    ({"indptr": int64(0, 2**40, 2, 3)}, "indptr"),
    ({"indptr": int64(0, -5, 2, 3)}, "indptr"),
    ({"indptr": int64(0, 2, -(2**40), 3)}, "indptr"),
    ({"indices": np.array([4, 1, 0], np.uint32)}, "ascending"),
    ({"indices": np.array([1, 1, 0], np.uint32)}, "ascending"),
    ({"indices": np.array([1, 5, 0], np.uint32)}, "below the number of features"),
    ({"indices": np.array([1, 2**32 - 1, 0], np.uint32)}, "below the number of features"),
    ({"values": np.ones(2, np.float32)}, "values"),
    ({"values": np.ones(4, np.float32)}, "values"),
    ({"dense32": np.ones((3, 2), np.float32)}, "one precision"),
    ({"dense64": np.ones((2, 2))}, "row per token"),
    ({"dense64": np.ones((4, 2))}, "row per token"),
    ({"dense64": np.ones((3, 0))}, "column"),
    ({"labels": np.array([0, 3, 1], np.int32)}, "label code"),
    ({"labels": np.array([0, -1, 1], np.int32)}, "label code"),
    ({"labels": np.array([0, 1], np.int32)}, "labels"),
    ({"token_weight": np.ones(2, np.float32)}, "token weights"),
    ({"cost": np.ones((2, 3))}, "cost"),
    ({"cost": np.ones((4, 4))}, "cost"),
]


def name_of(change):
    return "-".join(
        f"{k}={'None' if v is None else np.ravel(v).tolist()}" for k, v in change.items()
    )


def make(change):
    return _native.ChainProblem(**{k: v for k, v in {**GOOD, **change}.items() if v is not None})


@pytest.mark.parametrize(("change", "message"), BAD, ids=[name_of(change) for change, _ in BAD])
def test_bad_problems_are_refused(change, message):
    make({})
    with pytest.raises(ValueError, match=message):
        make(change)


def test_unknown_kernels_are_refused():
    for name in ("sse9", "", "AVX2"):
        with pytest.raises(ValueError, match="instruction set"):
            _native.select_vector_code(name)


@pytest.mark.parametrize("single", PRECISIONS)
def test_bad_questions_are_refused(single):
    problem = make({})
    dtype = np.float32 if single else np.float64
    n = (5 + 2 + 3 + 2) * _native.padded_labels(3, single)
    weights = _native.aligned_array(n, single)
    problem.predict(weights)
    longer = _native.aligned_array(n + 64, single)
    lanes = 32 // dtype().itemsize
    for wrong in (weights[:-1], weights[:0], longer[: n + 1]):
        for ask in (
            problem.predict,
            problem.max_marginals,
            problem.gather,
            lambda w: problem.kbest(w, 2),
            lambda w: problem.score(w, GOOD["labels"]),
        ):
            with pytest.raises(ValueError, match="weights"):
                ask(wrong)
    for shift in range(1, lanes):
        with pytest.raises(ValueError, match="aligned"):
            problem.predict(longer[shift : shift + n])
    np.testing.assert_array_equal(
        problem.predict(longer[lanes : lanes + n])[0], problem.predict(weights)[0]
    )
    for labels in ([0, 1], [0, 1, 3], [0, -1, 1], [0, 1, 2, 0]):
        with pytest.raises(ValueError, match="label"):
            problem.score(weights, np.array(labels, np.int32))
    with pytest.raises(ValueError, match="k must be"):
        problem.kbest(weights, 0)
    for masks in (
        {"transition": np.ones(8, np.uint8)},
        {"transition": np.ones(3, np.uint8)},
        {"start": np.ones(4, np.uint8)},
        {"end": np.ones(0, np.uint8)},
    ):
        with pytest.raises(ValueError, match="mask"):
            problem.predict(weights, **masks)
        with pytest.raises(ValueError, match="mask"):
            problem.kbest(weights, 2, **masks)


def train_without_labels():
    def train():
        engine = _native.Engine(make({"labels": None}), 1.0)
        engine.exact_pass(np.arange(2, dtype=np.uint32), _native.PassOptions())

    with pytest.raises(ValueError, match="label"):
        train()


def test_training_without_labels_is_refused():
    run_isolated(__file__, "train_without_labels")


def test_more_tokens_than_codes_hold():
    problem = _native.ChainProblem(
        2**20, 0, np.array([0, 5000], np.int64), labels=np.zeros(5000, np.int32)
    )
    with pytest.raises(ValueError, match="at most 4096"):
        _native.Engine(problem, 1.0)


def test_more_weights_than_memory():
    problem = _native.ChainProblem(
        2**24 - 1, 0, np.array([0, 1], np.int64), labels=np.zeros(1, np.int32)
    )
    with pytest.raises(MemoryError):
        _native.Engine(problem, 1.0)


# --- garbage ---

DENSE = ("dense32", "dense64")
ANYTHING = {
    "n_labels": [0, 1, 2, 5, 2**24 - 1, 2**24, 2**32, 2**63, 2**64 - 1],
    "n_sparse": [0, 1, 5, 7, 2**44, 2**61, 2**62 + 1, 2**64 - 8, 2**64 - 1],
}


@st.composite
def damaged(draw):
    """The arguments of a good problem, with one to three things wrong (or not) with them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    case = random_case(
        rng,
        n_labels=draw(st.integers(1, 4)),
        lengths=draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)),
        features=draw(st.sampled_from(FEATURES)),
        cost=draw(st.booleans()),
        weighted=draw(st.booleans()),
    )
    arguments = dict(case.arrays)
    for name in draw(st.lists(st.sampled_from(sorted(arguments)), max_size=3)):
        old = arguments[name]
        if name in ANYTHING:
            arguments[name] = draw(st.sampled_from(ANYTHING[name]))
        elif old is None or draw(st.integers(0, 3)) == 0:
            arguments[name] = None if name != "offsets" else old[:0]
        elif draw(st.booleans()):
            n = draw(st.integers(0, len(old) + 2))
            arguments[name] = np.resize(old, (n, *old.shape[1:]))
        elif old.size:
            new = old.copy()
            at = draw(st.integers(0, old.size - 1))
            new.reshape(-1)[at] = draw(hnp.from_dtype(old.dtype) | st.integers(0, 6))
            arguments[name] = new
    return arguments


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(arguments=damaged(), single=st.booleans(), weight=st.sampled_from([0.0, 1.0, -1e30]))
def garbage(arguments, single, weight):
    """Whatever the constructor accepts must also decode and train without a crash."""
    try:
        problem = _native.ChainProblem(**{k: v for k, v in arguments.items() if v is not None})
    except (ValueError, TypeError):
        return
    tokens = int(arguments["offsets"][-1])
    n_labels, n_sparse = arguments["n_labels"], arguments["n_sparse"]
    if tokens > 100 or n_labels > 100:
        return  # large, but not wrong
    dense = [arguments[k].shape[1] for k in DENSE if arguments.get(k) is not None]
    n = (n_sparse + sum(dense) + n_labels + 2) * _native.padded_labels(n_labels, single)
    with contextlib.suppress(ValueError, MemoryError):
        weights = _native.aligned_array(n % 2**64, single)
        weights[:] = weight
        labels, _ = problem.predict(weights)
        assert len(labels) == tokens
        problem.kbest(weights, 2)
        problem.max_marginals(weights)
    with contextlib.suppress(ValueError, MemoryError):
        engine = _native.Engine(problem, 1.0, single=single)
        order = np.arange(problem.n_examples, dtype=np.uint32)
        for _ in range(2):
            engine.exact_pass(order, _native.PassOptions())
            engine.cached_pass(order, _native.PassOptions(recombine=True))
        engine.collect_pass(2)
        engine.certify()


def test_garbage_never_crashes():
    run_isolated(__file__, "garbage")
