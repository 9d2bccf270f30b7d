"""Shares in one process: the algorithm, without any transport."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from maxmargin import L2, NotCompatibleError, _native
from maxmargin.distributed.coordinator import Coordinator
from maxmargin.distributed.group import InProcess
from maxmargin.distributed.joint import JointSums
from maxmargin.distributed.messages import EMPTY, SparseVector, Task
from maxmargin.distributed.saving import split_state
from maxmargin.distributed.share import Share
from maxmargin.errors import ConvergenceWarning, ModelFormatError
from maxmargin.links import Link
from maxmargin.regularizers import ElasticNet, Regularizer
from maxmargin.solvers import SDM, solve
from maxmargin.solvers.joint_rounds import SEE_EVERY, WARM
from native_problems import flat_problem, native_python_problem, random_case

N = 24


class Named(Regularizer):
    """A regulariser of any link."""

    def __init__(self, link):
        self._link = link

    @property
    def link(self):
        return self._link


def flat(seed=0, n=N):
    structure, X, Y = flat_problem(np.random.default_rng(seed), n=n)

    def problem(first=0, last=None):
        return native_python_problem(structure, X[first:last], Y[first:last])

    return problem


def group_of(problem, n, K, *, C=0.5, regularizer=None, solver=None):
    regularizer, solver = regularizer or L2(), solver or SDM()

    def make(k):
        part = problem(n * k // K, n * (k + 1) // K)
        return Share(part, solver, C, regularizer, single=False, seed=k)

    return InProcess(make, K)


def coordinator(group, C=0.5, regularizer=None, solver=None, **options):
    return Coordinator(
        group, solver or SDM(), C=C, regularizer=regularizer or L2(), **options
    )


REGULARIZERS = {
    "l2": L2(),
    "net": ElasticNet(l1_ratio=0.3),
    "each": Named(
        Link(
            scale=np.linspace(0.5, 2, 12),
            offset=np.linspace(-0.1, 0.1, 12),
            least=np.full(12, -1.0),
        )
    ),
}


@pytest.mark.parametrize("aggregation", ["safe", "fast"])
@pytest.mark.parametrize("K", [1, 2, 3, 7])
@pytest.mark.parametrize("name", REGULARIZERS)
def test_shares_reach_the_optimum_of_the_whole(name, K, aggregation):
    problem = flat()
    regularizer = REGULARIZERS[name]
    whole = solve(
        problem(0, N), SDM(), C=0.5, regularizer=regularizer, gap=1e-6, dtype="float64",
        random_state=0,
    )
    group = group_of(problem, N, K, regularizer=regularizer)
    found = coordinator(
        group, regularizer=regularizer, gap=1e-3, aggregation=aggregation, max_rounds=6000
    ).run()
    assert found.converged
    assert found.certificate.gap <= 1e-3
    assert found.certificate.primal >= whole.certificate.dual * (1 - 1e-9)
    assert found.certificate.dual <= whole.certificate.primal * (1 + 1e-9)
    # One engine with all examples says the same of these weights, and of these multipliers.
    engine = _native.Engine(problem(0, N), 0.5, False, True, link=regularizer.link.native())
    assert engine.primal_of(found.weights) == pytest.approx(found.certificate.primal, rel=1e-9)
    states = group.call("state")
    firsts = [N * k // K for k in range(K)]
    joined = {
        key: np.concatenate(
            [
                (s[key] + first).astype(s[key].dtype) if key == "example" else s[key]
                for s, first in zip(states, firsts, strict=True)
            ]
        )
        for key in states[0]
    }
    engine.restore({**joined, "weights": engine.sums(), "running": None})
    primal, dual = engine.certify()
    assert dual == pytest.approx(found.certificate.dual, rel=1e-9)
    if aggregation == "safe" or K == 1:
        assert primal == pytest.approx(found.certificate.primal, rel=1e-9)
    else:  # the weights are the better ones of z and of link(u)
        assert found.certificate.primal <= primal * (1 + 1e-9)


@pytest.mark.parametrize("slack", ["linear", "quadratic"])
@pytest.mark.parametrize("name", ["l2", "net"])
@pytest.mark.parametrize("K", [2, 5])
def test_safe_rounds_never_lower_the_dual(K, name, slack):
    for seed in range(3):
        problem, solver = flat(seed), SDM(slack=slack)
        group = group_of(problem, N, K, regularizer=REGULARIZERS[name], solver=solver, C=2.0)
        with pytest.warns(ConvergenceWarning):
            found = coordinator(
                group, C=2.0, regularizer=REGULARIZERS[name], solver=solver, gap=0.0,
                aggregation="safe", max_rounds=25,
            ).run()
        duals = [record.dual for record in found.history]
        assert len(duals) == 25
        scale = 1e-6 * abs(duals[-1])  # changes of u are sent in 4 bytes
        assert all(b >= a - scale for a, b in itertools.pairwise(duals))
        assert duals[-1] > duals[0] > 0


def test_a_round_gains_at_least_what_its_shares_gained():
    problem, K = flat(3), 4
    group = group_of(problem, N, K)
    joint = JointSums(group.shares[0].joint.size, "float64", Link())
    dual = 0.0
    for n_round in range(1, 8):
        task = Task(n_round, float(K), "exact", 3)
        reports = group.call("round", joint.change, task)
        joint.add([r.change for r in reports])
        now = 0.5 * sum(r.worth for r in reports) - joint.conjugate
        assert now - dual >= sum(r.gain for r in reports) - 1e-6 * abs(now)
        dual = now


def test_a_share_counts_its_step_sigma_times():
    """The engine of a share sees u + σ Δu_k, and hands back Δu_k."""
    share = group_of(flat(1), N, 1).shares[0]
    report = share.round(EMPTY, Task(1, 3.0, "exact", 2))
    moved = share.engine.sums()
    np.testing.assert_allclose(
        report.change.dense(moved.size, np.float64), moved / 3.0, rtol=1e-6, atol=1e-12
    )
    np.testing.assert_allclose(share.engine.own_sums() / 3.0, moved / 3.0, atol=1e-9)
    exact = share.exact()
    assert exact.worth == report.worth
    np.testing.assert_allclose(exact.sums.dense(moved.size, np.float64), moved / 3, atol=1e-9)


def test_what_rounding_takes_away_comes_in_the_next_message():
    rng = np.random.default_rng(0)
    joint, theirs = JointSums(50, "float32", Link()), np.zeros(50, np.float32)
    total = np.zeros(50)
    for _ in range(200):
        change = SparseVector.of(rng.normal(size=50), np.float32)
        joint.add([change])
        total += change.values
        joint.change.add_to(theirs)
    np.testing.assert_array_equal(theirs, joint.theirs)
    np.testing.assert_allclose(theirs, total, rtol=2e-7)
    np.testing.assert_allclose(joint.exact, total, rtol=1e-14)
    assert joint.conjugate == pytest.approx(0.5 * total @ total, rel=1e-9)
    assert joint.penalty == pytest.approx(0.5 * total @ total, rel=1e-9)


def test_the_penalty_and_its_conjugate_are_kept_up_to_date():
    rng = np.random.default_rng(1)
    for link in (Link(lower=-0.2, upper=0.2, scale=2.0), Link(offset=np.full(20, 0.3))):
        joint = JointSums(20, "float64", link)
        for _ in range(5):
            joint.add([SparseVector.of(rng.normal(size=20), np.float32) for _ in range(2)])
        assert joint.conjugate == pytest.approx(link.conjugate(joint.exact), rel=1e-9)
        assert joint.penalty == pytest.approx(link.penalty(link.weights(joint.exact)), rel=1e-9)


@pytest.mark.parametrize("reported", [False, True])
def test_a_lost_share_comes_back_and_the_certificate_is_true(reported):
    problem = flat(2)
    group = group_of(problem, N, 3)
    lost = []

    def lose(record):
        if record.n_pass in (3, 6):
            group.lose(1)
            lost.append(record.dual)

    run = coordinator(
        group, gap=1e-3, callbacks=[lose], max_rounds=2000,
        checkpoint_seconds=0.0 if reported else 1e9,
    )
    found = run.run()
    assert len(lost) == 2
    assert run.faults == 2
    assert sum(record.recovered for record in found.history) == 2
    assert found.converged
    whole = solve(problem(0, N), SDM(), C=0.5, gap=1e-6, dtype="float64", random_state=0)
    assert all(r.dual <= whole.certificate.primal * (1 + 1e-6) for r in found.history)
    assert found.certificate.dual <= whole.certificate.primal * (1 + 1e-9)
    assert found.certificate.primal <= whole.certificate.primal * (1 + 2e-3)
    if not reported:  # its multipliers went back to the truth
        after = next(r for r in found.history if r.recovered)
        assert after.recovered == 1


@pytest.mark.parametrize("K", [1, 2, 5])
def test_a_run_goes_on_with_another_number_of_shares(tmp_path, K):
    problem, file = flat(4), tmp_path / "run.npz"
    with pytest.warns(ConvergenceWarning):
        first = coordinator(
            group_of(problem, N, 3), gap=0.0, max_rounds=6, checkpoint=file
        ).run()
    again = coordinator(group_of(problem, N, K), gap=1e-3, checkpoint=file, resume=True)
    assert again.dual == pytest.approx(first.certificate.dual, rel=1e-9)
    found = again.run()
    assert found.converged
    assert len(found.history) > 6
    assert [r.dual for r in found.history[:5]] == [r.dual for r in first.history[:5]]


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    problem, file = flat(4), tmp_path / "run.npz"
    with pytest.warns(ConvergenceWarning):
        coordinator(group_of(problem, N, 2), gap=0.0, max_rounds=2, checkpoint=file).run()
    with pytest.raises(ModelFormatError, match=r"another training: C is 0\.5 there, and 0\.7 here"):
        coordinator(group_of(problem, N, 2, C=0.7), C=0.7, checkpoint=file, resume=True)
    with pytest.raises(ModelFormatError, match="n_examples"):
        coordinator(group_of(flat(4, 20), 20, 2), checkpoint=file, resume=True)
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(ModelFormatError, match="is no checkpoint"):
        coordinator(group_of(problem, N, 2), checkpoint=file, resume=True)
    with pytest.raises(ValueError, match="needs a checkpoint"):
        coordinator(group_of(problem, N, 2), resume=True)


def test_states_are_cut_at_examples():
    group = group_of(flat(5), N, 1)
    group.call("round", EMPTY, Task(1, 1.0, "exact", 3))
    state = group.call("state")[0]
    pieces = split_state(state, [5, 0, 10, 9])
    assert [len(piece["gaps"]) for piece in pieces] == [5, 0, 10, 9]
    for key in ("alpha", "loss", "gram", "codes", "code_size"):
        np.testing.assert_array_equal(np.concatenate([p[key] for p in pieces]), state[key])
    with pytest.raises(ValueError, match="24 examples; expected 23"):
        split_state(state, [5, 18])


def test_limits_and_callbacks_end_a_run():
    problem = flat(6)
    with pytest.warns(ConvergenceWarning, match="max_rounds = 3"):
        found = coordinator(group_of(problem, N, 2), gap=0.0, max_rounds=3).run()
    assert found.stop_reason.startswith("max_rounds = 3")
    assert len(found.history) == 3
    with pytest.warns(ConvergenceWarning, match="stopped by a callback"):
        found = coordinator(group_of(problem, N, 2), gap=0.0, callbacks=[lambda r: True]).run()
    assert len(found.history) == 1
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        coordinator(group_of(problem, N, 2), gap=0.0, time_limit=1e-3).run()
    assert not np.isnan(found.certificate.gap)


def test_rounds_of_consensus_look_now_and_then():
    problem = flat(8)
    run = coordinator(group_of(problem, N, 3), gap=1e-9, max_rounds=40)
    with pytest.warns(ConvergenceWarning):
        found = run.run()
    kinds = [record.kind for record in found.history]
    assert kinds[:WARM] == ["exact"] * WARM
    assert kinds[WARM] == "collect"
    looked = [n for n, kind in enumerate(kinds) if kind != "cached"]
    assert max(b - a for a, b in itertools.pairwise(looked)) == SEE_EVERY
    for record in found.history[:-1]:  # the last one has the certificate
        assert np.isfinite(record.primal) == (record.kind == "collect")
        assert np.isfinite(record.dual)
    assert found.history[-1].oracle_calls == N * len(looked)


def test_a_certificate_has_the_better_one_of_two_weights():
    problem = flat(9)
    group = group_of(problem, N, 2)
    with pytest.warns(ConvergenceWarning):
        found = coordinator(group, gap=0.0, max_rounds=12).run()
    # It is no worse than link(u), which is what shares add up to.
    total = sum(one.sums.dense(12, np.float64) for one in group.call("exact"))
    engine = _native.Engine(problem(0, N), 0.5, False, True)
    assert found.certificate.primal == pytest.approx(engine.primal_of(found.weights), rel=1e-9)
    assert found.certificate.primal <= engine.primal_of(total) * (1 + 1e-12)
    exact = group.call("exact_sums")
    np.testing.assert_allclose(sum(one.sums for one in exact), total, atol=1e-12)
    assert found.certificate.dual == pytest.approx(
        0.5 * sum(one.worth for one in exact) - 0.5 * total @ total, rel=1e-12
    )


def test_bytes_are_counted(capsys):
    problem = flat(7)
    found = coordinator(group_of(problem, N, 2), gap=1e-3, verbose=2).run()
    assert found.bytes_sent >= sum(r.bytes_up + r.bytes_down for r in found.history) > 0
    said = capsys.readouterr().err
    assert said.count("round") == len(found.history)
    assert "MB" in said
    assert found.history[0].bytes_down == 0  # no share takes part in a weight yet
    assert all(r.shares == 2 for r in found.history)


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (SDM(slack="hard"), "hard margins"),
        (SDM(schedule="paper"), "automatic schedule"),
        ("sdm", "train with SDM"),
    ],
)
def test_what_cannot_be_shared_is_refused(solver, message):
    with pytest.raises(NotCompatibleError, match=message):
        Share(flat()(0, N), solver, 0.5, L2())


def test_shares_with_other_weights_are_refused():
    def make(k):
        case = random_case(np.random.default_rng(k), lengths=(4, 3), n_labels=2 + k)
        return Share(case.problem(), SDM(), 0.5, L2(), single=False)

    with pytest.raises(NotCompatibleError, match="shares of the data have different weights"):
        coordinator(InProcess(make, 2))
