"""Everything native that uses several threads, with two: the same as with one.

``make sanitize-threads`` runs this file under the thread sanitizer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from maxmargin import SequenceTagger, _native
from maxmargin.features.encode import FeatureEncoder
from maxmargin.features.template import Template
from native_problems import random_case

LENGTHS = (4, 7, 1, 12, 3, 9, 2, 5) * 5


@pytest.fixture(scope="module")
def case() -> Any:
    return random_case(np.random.default_rng(0), n_labels=4, lengths=LENGTHS, noise=0.3)


def engines(case: Any, single: bool) -> tuple[_native.Engine, _native.Engine]:
    one, two = (_native.Engine(case.problem(), 0.5, single=single) for _ in range(2))
    order = np.arange(len(LENGTHS), dtype=np.uint32)
    for engine in (one, two):
        engine.exact_pass(order, _native.PassOptions())
    return one, two


@pytest.mark.parametrize("single", [True, False], ids=["float32", "float64"])
def test_engine(case: Any, single: bool) -> None:
    one, two = engines(case, single)
    order = np.arange(len(LENGTHS), dtype=np.uint32)
    for _ in range(3):
        found = [one.collect_pass(1), two.collect_pass(2)]
        assert found[0].gap == pytest.approx(found[1].gap, rel=1e-12)
        assert found[0].added == found[1].added
        for engine in (one, two):
            engine.cached_pass(order, _native.PassOptions())
        assert np.array_equal(one.weights, two.weights)
    assert one.hinge(1) == two.hinge(2)
    assert np.array_equal(one.slacks(1), two.slacks(2))
    assert one.certify(1) == two.certify(2)


@pytest.mark.parametrize("single", [True, False], ids=["float32", "float64"])
def test_primal(case: Any, single: bool) -> None:
    one, two = (_native.Primal(case.problem(), single) for _ in range(2))
    rng = np.random.default_rng(1)
    for primal in (one, two):
        primal.weights[:] = 0.0
    step = 0.1 * rng.normal(size=one.weights.size).astype(one.weights.dtype)
    for _ in range(3):
        assert one.sweep(1).hinge == two.sweep(2).hinge
        assert np.array_equal(one.plane, two.plane)
        for primal in (one, two):
            primal.weights[:] = primal.weights + step
    assert one.exact_hinge(1) == two.exact_hinge(2)


def sentences(n: int = 300, seed: int = 0) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = [f"w{k}" for k in rng.integers(0, 80, rng.integers(1, 12))]
        X.append([{"word": w, "number": float(len(w)), "same": [w, w]} for w in words])
        y.append(["even" if int(w[1:]) % 2 == 0 else "odd" for w in words])
    return X, y


@pytest.mark.parametrize("hash_bits", [None, 8])
def test_names_are_looked_up_in_another_thread(hash_bits: int | None) -> None:
    X, _ = sentences(2000)
    one, two = (FeatureEncoder(hash_bits=hash_bits, threads=n) for n in (1, 2))
    for call in ("fit_transform", "transform"):
        a, b = (getattr(encoder, call)(X) for encoder in (one, two))
        for name in ("offsets", "indptr", "indices", "values"):
            assert np.array_equal(getattr(a, name), getattr(b, name))
    if hash_bits is None:
        assert one.feature_names() == two.feature_names()


def test_an_error_of_either_thread_is_that_of_one() -> None:
    """The first error in the data is raised, whichever thread finds it."""
    for place in (0, 500, 1999):
        for bad, what in (({"x": [1]}, TypeError), (None, TypeError)):
            X, _ = sentences(2000)
            X[place] = [bad]
            said = []
            for threads in (1, 2):
                with pytest.raises(what, match=f"sequence {place}, token 0") as caught:
                    FeatureEncoder(threads=threads).fit_transform(X)
                said.append(str(caught.value))
            assert said[0] == said[1]


def test_a_sum_that_is_too_large_is_named() -> None:
    X, _ = sentences(200)
    large = {"a": {"b": 9e11}, "a:b": 9e11}
    for later in (None, [None]):  # an error of the reader behind it does not come first
        X[120].append(large)
        if later is not None:
            X[121] = later
        said = []
        for threads in (1, 2):
            said_where = r"sequence 120, token .*'a:b': its values"
            with pytest.raises(ValueError, match=said_where) as caught:
                FeatureEncoder(threads=threads).fit_transform(X)
            said.append(str(caught.value))
        assert said[0] == said[1]


def test_tagger_trains_and_predicts() -> None:
    X, y = sentences()
    one, two = (SequenceTagger(C=0.3, gap=1e-3, random_state=0, n_jobs=n).fit(X, y) for n in (1, 2))
    assert np.array_equal(one.weights_, two.weights_)
    assert [list(p) for p in one.predict(X)] == [list(p) for p in two.predict(X)]


def test_templates_expand() -> None:
    X = [[[f"w{k % 17}", "AB"[k % 2]] for k in range(n % 9 + 1)] for n in range(200)]
    y = [[row[1] for row in sequence] for sequence in X]
    template = Template.parse("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB")
    one, two = (
        SequenceTagger(C=0.3, template=template, n_jobs=n, random_state=0) for n in (1, 2)
    )
    assert np.array_equal(one.fit(X, y).weights_, two.fit(X, y).weights_)
