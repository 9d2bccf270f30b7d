"""Probabilities of a chain: against the sum over all labellings, and at scores far apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import _native
from native_problems import (
    FEATURES,
    KERNELS,
    masks,
    random_case,
    random_weights,
    using,
    with_pairs,
)

SEEDS = st.integers(0, 2**32 - 1)


def brute_force(problem, w, offsets, n_labels, temperature, mask, known=None):  # noqa: PLR0917
    """Return log Z and the marginals by adding up all labellings, by their native scores."""
    log_z, tokens = [], []
    transition = np.reshape(mask.get("transition", np.ones(n_labels**2)), (n_labels, n_labels))
    start, end = mask.get("start", np.ones(n_labels)), mask.get("end", np.ones(n_labels))
    lengths = np.diff(offsets)
    paths = [list(itertools.product(range(n_labels), repeat=int(n))) for n in lengths]
    scores = [[] for _ in lengths]
    for k in range(max(map(len, paths))):  # one labelling of each sequence at a time
        labels = np.concatenate([rows[min(k, len(rows) - 1)] for rows in paths]).astype(np.int32)
        for i, score in enumerate(problem.score(w, labels)):
            if k < len(paths[i]):
                scores[i].append(score / temperature)
    if known is None:
        known = np.full(offsets[-1], -1)
    for rows, values, held in zip(paths, scores, np.split(known, offsets[1:-1]), strict=True):
        kept = [
            (y, s)
            for y, s in zip(rows, values, strict=True)
            if start[y[0]]
            and end[y[-1]]
            and all(transition[a, b] for a, b in itertools.pairwise(y))
            and all(k in (-1, a) for k, a in zip(held, y, strict=True))
        ]
        top = max(s for _, s in kept)
        z = sum(np.exp(s - top) for _, s in kept)
        log_z.append(top + np.log(z))
        table = np.zeros((len(rows[0]), n_labels))
        for y, s in kept:
            table[np.arange(len(y)), list(y)] += np.exp(s - top) / z
        tokens.append(table)
    return np.array(log_z), np.concatenate(tokens)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("single", [True, False])
@settings(max_examples=15)
@given(
    seed=SEEDS,
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    n_labels=st.integers(1, 5),
    temperature=st.sampled_from([0.001, 0.01, 0.3, 1.0, 7.0]),
    pairs=st.booleans(),
    masked=st.booleans(),
    share=st.sampled_from([0.0, 0.4, 1.0]),
)
def test_the_sum_over_all_labellings(  # noqa: PLR0917
    kernels, single, seed, lengths, n_labels, temperature, pairs, masked, share
):
    rng = np.random.default_rng(seed)
    case = random_case(
        rng, n_labels=n_labels, lengths=lengths, features=FEATURES[rng.integers(len(FEATURES))]
    )
    problem = with_pairs(case, rng) if pairs else case.problem()
    w = random_weights(case.n_rows + 3 * n_labels * pairs, n_labels, rng, single=single)
    mask = masks(n_labels, rng) if masked else {}
    # Labels of a labelling that is allowed are known here and there, or everywhere, or nowhere.
    possible, _ = problem.predict(w, **mask)
    known = np.where(rng.random(len(possible)) < share, possible, -1).astype(np.int32)
    wanted = brute_force(problem, w, case.arrays["offsets"], n_labels, temperature, mask, known)
    if share > 0:
        mask["known"] = known
    with using(kernels):
        log_z, tokens = problem.marginals(w, temperature, **mask)
        alone, nothing = problem.marginals(w, temperature, tokens=False, **mask)
    scale = (1e-5 if single else 1e-11) / temperature
    np.testing.assert_allclose(log_z, wanted[0], rtol=1e-9, atol=scale * 10)
    np.testing.assert_allclose(tokens.reshape(-1, n_labels), wanted[1], atol=min(scale * 10, 0.1))
    np.testing.assert_allclose(tokens.reshape(-1, n_labels).sum(axis=1), 1.0, rtol=1e-9)
    assert alone.tolist() == log_z.tolist()
    assert len(nothing) == 0


@pytest.mark.parametrize("n_labels", [1, 3, 4, 9, 33, 70])
@pytest.mark.parametrize("single", [True, False])
def test_products_and_logarithms_agree(n_labels, single):
    """A mask that forbids nothing but an edge of score -250 temperatures forces logarithms."""
    rng = np.random.default_rng(n_labels)
    case = random_case(rng, n_labels=n_labels, lengths=[1, 2, 40, 300], features=FEATURES[0])
    problem = case.problem()
    w = random_weights(case.n_rows, n_labels, rng, single=single)
    fast = problem.marginals(w, 1.0)
    matrix = w.reshape(case.n_rows, -1)
    matrix[-1, n_labels - 1] = -1000.0  # the weight of ending with the last label
    slow = problem.marginals(w, 1.0)
    end = np.ones(n_labels, np.uint8)
    end[-1] = n_labels == 1
    matrix[-1, n_labels - 1] = -1000.0 if n_labels == 1 else 0.0
    masked = problem.marginals(w, 1.0, end=end)
    for found, other in zip(slow, masked, strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-8, atol=1e-9)
    assert n_labels == 1 or np.abs(fast[0] - slow[0]).max() > 1e-6


def test_threads_and_windows_change_nothing():
    rng = np.random.default_rng(0)
    case = random_case(rng, n_labels=9, lengths=[1, 100, 33, 16, 17, 2], features=FEATURES[0])
    for problem, rows in ((case.problem(), 0), (with_pairs(case, rng), 27)):
        w = random_weights(case.n_rows + rows, 9, rng, single=True)
        for temperature in (0.5, 0.001):
            plain = problem.marginals(w, temperature)
            for other in ({"threads": 3}, {"table_bytes": 1}):
                for a, b in zip(plain, problem.marginals(w, temperature, **other), strict=True):
                    assert a.tolist() == b.tolist()


@pytest.mark.parametrize("pairs", [True, False])
def test_known_labels_take_the_fast_way_and_are_as_precise(pairs):
    """Against a mask, which says the same of the end of a sequence, and in logarithms."""
    rng = np.random.default_rng(3)
    case = random_case(rng, n_labels=7, lengths=[1, 2, 40, 300], features=FEATURES[0])
    problem = with_pairs(case, rng) if pairs else case.problem()
    w = random_weights(case.n_rows + 21 * pairs, 7, rng, single=False)
    known = np.full(343, -1, np.int32)
    known[np.array([0, 2, 42, 342])] = 4  # the last tokens
    end = (np.arange(7) == 4).astype(np.uint8)
    for a, b in zip(
        problem.marginals(w, 1.0, known=known), problem.marginals(w, 1.0, end=end), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    some = np.where(rng.random(343) < 0.5, rng.integers(7, size=343), -1).astype(np.int32)
    some[known >= 0] = 4
    log_z, fast = problem.marginals(w, 1.0, known=some)
    # The weight of an end that cannot be: too far from the others for products.
    w.reshape(case.n_rows + 21 * pairs, -1)[case.n_rows - 1, 6] = -1000.0
    other, slow = problem.marginals(w, 1.0, known=some)
    np.testing.assert_allclose(log_z, other, rtol=1e-9)
    np.testing.assert_allclose(fast, slow, rtol=1e-7, atol=1e-10)
    table = fast.reshape(-1, 7)
    there = np.flatnonzero(some >= 0)
    assert (table[there, some[there]] == 1).all()
    assert table[there].sum() == pytest.approx(len(there))


@pytest.mark.parametrize("kernels", KERNELS)
def test_small_temperatures_give_the_best_labelling(kernels):
    rng = np.random.default_rng(1)
    case = random_case(rng, n_labels=6, lengths=[30, 5], features=FEATURES[0])
    problem = case.problem()
    w = random_weights(case.n_rows, 6, rng, single=False)
    with using(kernels):
        labels, _ = problem.predict(w)
        _, cold = problem.marginals(w, 1e-7)
        _, hot = problem.marginals(w, 1e12)
    assert cold.reshape(-1, 6).argmax(axis=1).tolist() == labels.tolist()
    np.testing.assert_allclose(hot, 1 / 6, rtol=1e-6)


def test_bad_input():
    case = random_case(np.random.default_rng(0), n_labels=2, lengths=[2], features=FEATURES[0])
    problem = case.problem()
    w = random_weights(case.n_rows, 2, np.random.default_rng(0), single=True)
    for temperature in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="temperature must be positive"):
            problem.marginals(w, temperature)
    nothing = np.zeros(2, np.uint8)
    with pytest.raises(ValueError, match="no labelling of sequence 0"):
        problem.marginals(w, 1.0, end=nothing)
    with pytest.raises(ValueError, match=r"expected .* weights"):
        problem.marginals(_native.aligned_array(1, True), 1.0)
