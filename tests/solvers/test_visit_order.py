"""The order in which passes visit examples: neighbours together where that is quicker."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit import assert_same_run, quietly
from maxmargin.solvers import SAP, SDM, handover
from maxmargin.solvers.auto import AutoSchedule
from maxmargin.solvers.steps import Context
from native_problems import flat_problem, native_python_problem, random_case


@pytest.fixture
def block_ascent(monkeypatch):
    """Nothing is handed over to interior passes."""
    monkeypatch.setattr(handover, "MOST_WEIGHTS", 0)



def several():
    """Sequences of several tokens."""
    return random_case(
        np.random.default_rng(0), lengths=[9] * 30, n_labels=4, n_sparse=40
    ).problem()


def single():
    """Sequences of one token: one part each."""
    return random_case(np.random.default_rng(0), lengths=[1] * 30, n_labels=4).problem()


def flat():
    return native_python_problem(*flat_problem(np.random.default_rng(0), n=30))


@given(n=st.integers(1, 60), together=st.integers(1, 12), seed=st.integers(0, 5))
def test_an_order_has_every_example_once_and_neighbours_in_groups(n, together, seed):
    order = Context(n, np.random.default_rng(seed)).order(together=together)
    assert order.dtype == np.uint32
    assert sorted(order) == list(range(n))
    # Within a group of neighbours, examples come in the order of the data.
    place = np.argsort(order)
    for first in range(0, n, together):
        group = place[first : first + together]
        assert (np.diff(group) == 1).all()


def test_groups_come_in_a_new_random_order_each_time():
    context = Context(400, np.random.default_rng(0))
    one, two = context.order(together=8), context.order(together=8)
    assert (one != two).any()
    assert (one[::8] != np.sort(one[::8])).any()


def test_one_at_a_time_is_the_order_of_old():
    """Whoever does not ask for neighbours draws the same random numbers as ever."""
    one = Context(50, np.random.default_rng(3)).order()
    np.testing.assert_array_equal(one, np.random.default_rng(3).permutation(50))
    np.testing.assert_array_equal(Context(50, np.random.default_rng(3)).order(False), range(50))


def passes_of(make, solver, monkeypatch, passes=30):
    """Return the `together` of the orders asked for, in turn, and the kinds of the passes."""
    asked = []
    order = Context.order

    def spy(self, permute=True, together=1):
        asked.append(together)
        return order(self, permute, together)

    monkeypatch.setattr(Context, "order", spy)
    result = quietly(make(), solver, C=1.0, gap=1e-5, random_state=0, max_passes=passes)
    kinds = [k for k in result.history.column("kind") if k != "collect"]
    return list(zip(kinds, asked, strict=True))


def allow(monkeypatch):
    """Let problems of this size be of many examples with several parts, and looks be exact."""
    monkeypatch.setattr(AutoSchedule, "MANY", 10)
    monkeypatch.setattr(AutoSchedule, "PARTS", 0.5)
    monkeypatch.setattr(AutoSchedule, "SETTLED", 0.0)


@pytest.mark.parametrize("solver", [SDM(), SAP()])
def test_exact_passes_keep_neighbours_together_where_blocks_have_several_parts(solver, monkeypatch):
    allow(monkeypatch)
    passes = passes_of(several, solver, monkeypatch)
    assert passes[0] == ("exact", 1)  # before the first look nobody knows the parts
    later = [together for kind, together in passes[1:] if kind == "exact"]
    assert later
    assert set(later) == {AutoSchedule.TOGETHER}
    assert {together for kind, together in passes if kind == "cached"} == {1}


@pytest.mark.usefixtures("block_ascent")
@pytest.mark.parametrize("make", [single, flat])
def test_examples_of_one_part_are_visited_in_random_order(make, monkeypatch):
    monkeypatch.setattr(AutoSchedule, "MANY", 10)
    assert {together for _, together in passes_of(make, SDM(), monkeypatch)} == {1}


def test_few_examples_are_visited_in_random_order(monkeypatch):
    monkeypatch.setattr(AutoSchedule, "PARTS", 0.5)
    assert {together for _, together in passes_of(several, SDM(), monkeypatch)} == {1}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_runs_with_neighbours_reach_the_same_optimum_and_resume(dtype, monkeypatch, tmp_path):
    options = {"C": 0.7, "random_state": 4, "dtype": dtype}
    reference = quietly(several(), SDM(), gap=1e-5, max_passes=2000, **options)
    allow(monkeypatch)
    found = quietly(several(), SDM(), gap=1e-5, max_passes=2000, **options)
    assert found.converged
    np.testing.assert_allclose(found.certificate.primal, reference.certificate.primal, rtol=3e-5)
    duals = np.array(found.history.column("dual"))
    assert (np.diff(duals) >= -1e-6 * abs(duals[1:])).all()
    path = tmp_path / "run.npz"
    whole = quietly(several(), SDM(), gap=0.0, max_passes=14, **options)
    for passes in (3, 7):
        quietly(
            several(), SDM(), gap=0.0, max_passes=passes, checkpoint=path, resume=True, **options
        )
    again = quietly(
        several(), SDM(), gap=0.0, max_passes=14, checkpoint=path, resume=True, **options
    )
    assert_same_run(whole, again)
