"""Starts from weights and from checkpoints: never worse, with the same certificate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.errors import ModelFormatError, NotCompatibleError
from maxmargin.links import Link
from maxmargin.regularizers import L2, ElasticNet
from maxmargin.solvers import SDM, NSlack, solve
from maxmargin.solvers.planting import plant
from maxmargin.solvers.subgradient import Subgradient
from maxmargin.structures.chain import Chain
from maxmargin.structures.chain_start import carry_over


def sequences(n, seed, labels="ABC"):
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        y = [labels[k] for k in rng.integers(len(labels), size=rng.integers(1, 6))]
        X.append([[f"w{label}{rng.integers(4)}", f"x{rng.integers(5)}"] for label in y])
        Y.append(y)
    return X, Y


@pytest.fixture(scope="module")
def problem():
    chain = Chain()
    return chain.prepare_problem(*sequences(40, 0)).problem


@pytest.mark.parametrize("regularizer", [L2(), ElasticNet(l1_ratio=0.3)])
@pytest.mark.parametrize("solver", [SDM(), NSlack(), SDM(slack="quadratic")])
def test_a_start_from_weights(problem, solver, regularizer):
    options = {"C": 0.5, "gap": 1e-3, "random_state": 0, "regularizer": regularizer}
    cold = solve(problem, solver, **options)
    for weights in (cold.weights, 0.3 * cold.weights, -cold.weights, np.zeros_like(cold.weights)):
        warm = solve(problem, solver, **options, start=weights)
        # (nslack ends by a criterion of its own)
        assert warm.certificate.gap <= (5e-3 if isinstance(solver, NSlack) else 1e-3)
        # both are within the gap of the one optimum
        assert warm.certificate.dual <= cold.certificate.primal * (1 + 1e-6)
        assert cold.certificate.dual <= warm.certificate.primal * (1 + 1e-6)
        assert warm.history[0].oracle_calls >= 2 * problem.n_examples


def test_planting_raises_the_dual(problem):
    cold = solve(problem, SDM(), C=0.5, gap=1e-2, random_state=0)
    machine = SDM().start(problem, 0.5, L2(), True)
    assert machine.dual() == 0
    calls = plant(machine, cold.weights, L2(), np.random.default_rng(0))
    assert calls == problem.n_examples
    assert 0 < machine.dual() <= cold.certificate.primal
    assert machine.fixed is None


def test_what_cannot_start_from_weights(problem):
    w = solve(problem, SDM(), C=0.5, random_state=0).weights
    with pytest.raises(NotCompatibleError, match="solvers that move multipliers"):
        solve(problem, Subgradient(), C=0.5, start=w)
    with pytest.raises(NotCompatibleError, match="a hard margin"):
        solve(problem, SDM(slack="hard"), C=0.5, start=w)
    with pytest.raises(ValueError, match="have the shape"):
        solve(problem, SDM(), C=0.5, start=w[:-1])
    with pytest.raises(ValueError, match="finite"):
        solve(problem, SDM(), C=0.5, start=w * np.nan)
    engine = SDM().start(problem, 0.5, L2(), True)
    with pytest.raises(ValueError, match="start and engine"):
        solve(problem, SDM(), C=0.5, start=w, engine=engine)
    kernel = Chain(kernel="rbf").prepare_problem(*sequences(5, 1)).problem
    with pytest.raises(NotCompatibleError, match="a kernel"):
        solve(kernel, SDM(), C=0.5, start=w)


@pytest.mark.parametrize("regularizer", [L2(), ElasticNet(l1_ratio=0.3)])
@pytest.mark.parametrize("C", [0.5, 0.2, 2.0])
def test_a_start_from_a_checkpoint(problem, tmp_path, C, regularizer):
    path = tmp_path / "state"
    first = solve(
        problem, SDM(), C=0.5, gap=1e-4, random_state=0, checkpoint=path, regularizer=regularizer
    )
    cold = solve(problem, SDM(), C=C, gap=1e-3, random_state=0, regularizer=regularizer)
    warm = solve(
        problem, SDM(), C=C, gap=1e-3, random_state=0, regularizer=regularizer, start=path
    )
    assert warm.certificate.gap <= 1e-3
    assert warm.certificate.dual <= cold.certificate.primal * (1 + 1e-6)
    assert cold.certificate.dual <= warm.certificate.primal * (1 + 1e-6)
    if C == 0.5:  # where it begins is the optimum already
        assert warm.history[-1].oracle_calls < 0.5 * first.history[-1].oracle_calls
        assert warm.n_passes < cold.n_passes


def test_other_checkpoints_are_refused(problem, tmp_path):
    path = tmp_path / "state"
    solve(problem, SDM(), C=0.5, random_state=0, checkpoint=path)
    other = Chain().prepare_problem(*sequences(40, 5)).problem
    with pytest.raises(ModelFormatError, match="checkpoint of another run"):
        solve(other, SDM(), C=0.5, start=path)
    with pytest.raises(ModelFormatError, match="checkpoint of another run: solver"):
        solve(problem, NSlack(), C=0.5, start=path)
    with pytest.raises(ModelFormatError, match="checkpoint of another run: regularizer"):
        solve(problem, SDM(), C=0.5, start=path, regularizer=ElasticNet(l1_ratio=0.5))
    path.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(ModelFormatError, match="not a readable checkpoint"):
        solve(problem, SDM(), C=0.5, start=path)


@settings(max_examples=60)
@given(
    st.lists(st.floats(-3, 3), min_size=1, max_size=6),
    st.floats(0, 1),
    st.floats(0.1, 3),
    st.floats(-1, 1),
)
def test_sums_undo_a_link(weights, threshold, scale, offset):
    w = np.array(weights)
    link = Link(lower=-threshold, upper=threshold, scale=scale, offset=np.full(len(w), offset))
    np.testing.assert_allclose(link.weights(link.sums(w)), w, atol=1e-12)
    bounded = Link(least=0.0)
    np.testing.assert_allclose(bounded.weights(bounded.sums(w)), np.maximum(w, 0), atol=1e-12)


def test_weights_are_carried_over_by_name():
    old, new = Chain(), Chain()
    old.prepare(*sequences(30, 1, "ABC"))
    new.prepare(*sequences(30, 2, "BCD"))
    rng = np.random.default_rng(0)
    w = old.pad(rng.normal(size=old.n_features))
    carried = carry_over(new, old, w, "float64")
    a, b = old.unpack(w), new.unpack(carried.weights)
    names = [dict(zip(c.encoder.feature_names(), range(9999), strict=False)) for c in (old, new)]
    shared = set(names[0]) & set(names[1])
    assert (carried.n_features, carried.n_labels) == (len(shared), 2)
    places = [{label: k for k, label in enumerate(c.labels_)} for c in (old, new)]
    for x in "BC":
        i, j = places[0][x], places[1][x]
        assert a.start[i] == b.start[j]
        assert a.end[i] == b.end[j]
        for y in "BC":
            assert a.transitions[i, places[0][y]] == b.transitions[j, places[1][y]]
        for name in shared:
            assert a.coef[names[0][name], i] == b.coef[names[1][name], j]
    assert not b.coef[:, places[1]["D"]].any()
    assert not b.transitions[places[1]["D"]].any()
    assert not b.coef[[k for name, k in names[1].items() if name not in shared]].any()
