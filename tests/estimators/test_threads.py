"""How many threads n_jobs stands for, also in the workers of a pool."""

from __future__ import annotations

import multiprocessing
import warnings

import joblib
import numpy as np
import pytest

from maxmargin import SequenceTagger
from maxmargin.estimators.threads import threads_of

X, Y = [[["a"], ["b"]], [["b"]]] * 3, [["A", "B"], ["B"]] * 3


def test_counting():
    all_of_them = joblib.cpu_count()
    assert threads_of(None) == 1
    assert threads_of(3) == 3
    assert threads_of(np.int64(2)) == 2
    assert threads_of(-1) == all_of_them
    assert threads_of(-2) == max(1, all_of_them - 1)
    assert threads_of(-10_000) == 1


@pytest.mark.parametrize("n_jobs", [1.5, "2", True, [1]])
def test_no_number(n_jobs):
    with pytest.raises(TypeError, match=r"^n_jobs is "):
        threads_of(n_jobs)


def test_zero():
    with pytest.raises(ValueError, match=r"^n_jobs is 0; expected "):
        threads_of(0)
    with pytest.raises(ValueError, match=r"^n_jobs is 0; expected "):
        SequenceTagger(n_jobs=0).fit(X, Y)


def in_a_worker(n_jobs):
    """Return the threads and the warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tagger = SequenceTagger(n_jobs=n_jobs).fit(X, Y)
        assert tagger.predict(X).tolist() == [list(y) for y in Y]
    return threads_of(n_jobs), [str(warning.message) for warning in caught]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork")
def test_no_complaints_in_a_forked_pool():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(in_a_worker, [2]) == [(2, [])]
