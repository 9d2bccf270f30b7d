"""Decoding long sequences in windows: the same numbers as in one piece, in less memory."""

from __future__ import annotations

import resource
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import _native
from native_problems import (
    FEATURES,
    masks,
    random_case,
    random_weights,
    run_isolated,
    with_pairs,
)

SEEDS = st.integers(0, 2**32 - 1)
# A window has at least 16 tokens: these make one, two and more of them, full and not.
LENGTHS = st.lists(st.sampled_from([1, 2, 15, 16, 17, 31, 32, 33, 50, 100]), min_size=1, max_size=4)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("pairs", [False, True])
@settings(max_examples=15)
@given(seed=SEEDS, lengths=LENGTHS, n_labels=st.sampled_from([1, 2, 9, 30]))
def test_windows_change_nothing(single, pairs, seed, lengths, n_labels):
    rng = np.random.default_rng(seed)
    features = FEATURES[rng.integers(len(FEATURES))]
    case = random_case(rng, n_labels=n_labels, lengths=lengths, features=features)
    problem = with_pairs(case, rng) if pairs else case.problem()
    rows = case.n_rows + (3 * n_labels if pairs else 0)
    w = random_weights(rows, n_labels, rng, single=single)
    small = {"table_bytes": 1}
    for mask in ({}, masks(n_labels, rng)):
        labels, scores = problem.predict(w, **mask)
        in_windows = problem.predict(w, **mask, **small)
        assert in_windows[0].tolist() == labels.tolist()
        assert in_windows[1].tolist() == scores.tolist()
        for one, other in zip(problem.kbest(w, 2, **mask), problem.kbest(w, 2, **mask, **small),
                              strict=True):
            assert [(s, y.tolist()) for s, y in one] == [(s, y.tolist()) for s, y in other]
    assert problem.score(w, labels, **small).tolist() == problem.score(w, labels).tolist()
    assert problem.max_marginals(w, **small).tolist() == problem.max_marginals(w).tolist()


@settings(max_examples=15)
@given(seed=SEEDS, lengths=LENGTHS)
def test_windows_of_sparse_weights(seed, lengths):
    rng = np.random.default_rng(seed)
    case = random_case(rng, n_labels=5, lengths=lengths, features="ones+dense32")
    problem, L, n_sparse = case.problem(), 5, case.arrays["n_sparse"]
    rows = rng.normal(size=(case.n_rows, L)).astype(np.float32)
    starts = (L * np.arange(n_sparse + 1)).astype(np.uint32)
    every = np.tile(np.arange(L, dtype=np.uint32), n_sparse)
    w = _native.SparseWeights(L, starts, every, rows[:n_sparse].ravel(), rows[n_sparse:].ravel())
    whole, parts = problem.predict(w), problem.predict(w, table_bytes=1)
    assert whole[0].tolist() == parts[0].tolist()
    assert whole[1].tolist() == parts[1].tolist()


def decode_a_long_sequence():
    """Decode a sequence whose tables would be 320 MB (400 with their room to grow)."""
    n, L = 1_000_000, 40
    rng = np.random.default_rng(0)
    problem = _native.ChainProblem(
        n_labels=L,
        n_sparse=10,
        offsets=np.array([0, n]),
        indptr=np.arange(n + 1, dtype=np.int64),
        indices=rng.integers(0, 10, n).astype(np.uint32),
    )
    w = random_weights(10 + L + 2, L, rng, single=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    labels, _ = problem.predict(w)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(labels) == n
    assert after - before < 120_000  # kB


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kB on Linux")
def test_the_memory_of_a_long_sequence():
    run_isolated(__file__, "decode_a_long_sequence")
