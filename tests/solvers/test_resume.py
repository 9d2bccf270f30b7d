"""Checkpoints of all solvers: they go on bit for bit, and what cannot be true is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kit import assert_same_run, quietly
from maxmargin.errors import ModelFormatError
from maxmargin.regularizers import L1, L2, ElasticNet, L1Ball
from maxmargin.solvers import (
    BCFW,
    LP,
    SAP,
    SDM,
    DualCoordinate,
    ExtraGradient,
    InteriorPoint,
    NSlack,
    OneSlack,
    Online,
    Subgradient,
)
from maxmargin.solvers.steps import Context
from native_problems import flat_problem, native_python_problem, random_case

RUNS = {
    "sdm": (SDM(), L2()),
    "sdm paper": (SDM("paper", tau=1e-6, tau_inner=1e-6, kappa1=2), L2()),
    "sdm quadratic": (SDM(slack="quadratic"), L2()),
    "sdm slack": (SDM(rescale="slack"), L2()),
    "sap": (SAP(), ElasticNet(0.1, 0.9)),
    "sap paper": (SAP("paper", theta=0.0), ElasticNet(0.1, 0.9)),
    "nslack": (NSlack(epsilon=1e-6), L2()),
    "interiorpoint": (InteriorPoint(warm_passes=2, keep_rounds=2), L2()),
    "dualcoordinate": (DualCoordinate(), L2()),
    "online": (Online(), L2()),
    "bcfw": (BCFW(), L2()),
    "bcfw gap": (BCFW("gap", cached_passes=2), L2()),
    "bcfw last": (BCFW("uniform", average=False), L2()),
    "oneslack": (OneSlack(), L2()),
    "oneslack cache": (OneSlack(cuts=1, cache=3, stabilize="proximal"), L2()),
    "subgradient": (Subgradient(), L2()),
    "subgradient last": (Subgradient(average=False, step_size=0.5), L2()),
    "subgradient ball": (Subgradient(project="example"), L1Ball(3.0)),
    "lp": (LP(), L1(0.5)),
    "extragradient": (ExtraGradient(inner=5), L1(0.5, nonnegative=True)),
}
PRIMAL = [name for name, (solver, _) in RUNS.items() if not solver.linear_terms]


def chain():
    rng = np.random.default_rng(0)
    return random_case(rng, n_labels=4, lengths=[5] * 12, n_sparse=15).problem()


def flat():
    return native_python_problem(*flat_problem(np.random.default_rng(0), n=12))


def go(name, passes, make=chain, **options):
    """Make so many passes."""
    solver, regularizer = RUNS[name]
    options = {"C": 0.7, "gap": 0.0, "random_state": 4, **options}
    return quietly(make(), solver, regularizer=regularizer, max_passes=passes, **options)


@pytest.mark.parametrize("make", [chain, flat])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", RUNS)
def test_stopped_and_resumed_equals_one_run(name, dtype, make, tmp_path):
    path = tmp_path / "run.npz"
    whole = go(name, 9, make, dtype=dtype)
    for passes in (2, 5):
        if passes < whole.n_passes:
            go(name, passes, make, dtype=dtype, checkpoint=path, resume=True)
    assert path.exists()
    assert_same_run(whole, go(name, 9, make, dtype=dtype, checkpoint=path, resume=True))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The checkpoint of each run after a few passes."""
    folder = tmp_path_factory.mktemp("saved")
    contents = {}
    for name in RUNS:
        go(name, 6, checkpoint=folder / "run.npz")
        contents[name] = (folder / "run.npz").read_bytes()
    return contents


def changed(content, path, about=None, **arrays):
    """Write a checkpoint with some of it changed by functions."""
    path.write_bytes(content)
    with np.load(path) as stored:
        kept = dict(stored)
    text = json.loads(bytes(kept["about"]).decode())
    if about is not None:
        about(text["run"])
    kept["about"] = np.frombuffer(json.dumps(text).encode(), dtype=np.uint8)
    for name, change in arrays.items():
        kept[f"engine_{name}"] = change(kept[f"engine_{name}"])
    with path.open("wb") as file:
        np.savez(file, **kept)


# --- bounds and sums that are not true ---


@pytest.mark.parametrize("name", PRIMAL)
@pytest.mark.parametrize("bound", [-1.0, 1e4, np.nan])
def test_a_wrong_bound_is_refused(name, bound, saved, tmp_path):
    path = tmp_path / "run.npz"
    changed(
        saved[name],
        path,
        lambda r: r.update(dual=bound),
        bound=lambda b: np.full_like(b, bound),
    )
    with pytest.raises(ModelFormatError, match="bound"):
        go(name, 8, checkpoint=path, resume=True)


@pytest.mark.parametrize("name", ["subgradient", "subgradient last", "subgradient ball"])
def test_a_wrong_mean_loss_is_refused(name, saved, tmp_path):
    path = tmp_path / "run.npz"
    changed(saved[name], path, mean_loss=lambda loss: 3 * loss + 5)
    with pytest.raises(ModelFormatError, match=r"run\.npz: the checkpoint"):
        go(name, 8, checkpoint=path, resume=True)


@pytest.mark.parametrize("name", ["oneslack", "oneslack cache", "lp", "extragradient"])
def test_planes_with_a_wrong_loss_are_refused(name, saved, tmp_path):
    path = tmp_path / "run.npz"
    changed(saved[name], path, loss=lambda loss: 3 * loss + 5)
    with pytest.raises(ModelFormatError, match="planes"):
        go(name, 8, checkpoint=path, resume=True)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_wrong_primal_of_the_centre_is_refused(factor, saved, tmp_path):
    path = tmp_path / "run.npz"
    changed(saved["oneslack"], path, best=lambda best: factor * best)
    with pytest.raises(ModelFormatError, match="primal"):
        go("oneslack", 8, checkpoint=path, resume=True)


@pytest.mark.parametrize("name", ["oneslack", "subgradient", "subgradient ball", "lp"])
@pytest.mark.parametrize("factor", [1.05, 2.0])
def test_a_bound_that_is_a_little_wrong_is_never_a_convergence(name, factor, saved, tmp_path):
    # too small a lie to be seen when it is read: it shows when the primal falls below it
    path = tmp_path / "run.npz"
    true = go(name, 100, gap=1e-3)

    def lie(run):
        run["dual"] = factor * true.certificate.primal

    changed(
        saved[name], path, lie, bound=lambda b: np.full_like(b, factor * true.certificate.primal)
    )
    try:
        result = go(name, 100, gap=1e-3, checkpoint=path, resume=True)
    except ModelFormatError as error:
        assert "bound" in str(error)  # noqa: PT017
        return
    assert result.certificate.primal >= true.certificate.dual * (1 - 1e-6)
    if result.certificate.dual > result.certificate.primal * (1 + 1e-6):
        assert result.certificate.approximate
        assert not result.converged


@pytest.mark.parametrize("name", ["sdm", "sdm quadratic", "nslack", "bcfw", "sap"])
@pytest.mark.parametrize("which", [0, 1])
def test_running_sums_that_are_not_those_of_the_multipliers(name, which, saved, tmp_path):
    path = tmp_path / "run.npz"

    def lie(sums):
        sums = sums.copy()
        sums[which] = 2 * sums[which] + 1
        return sums

    changed(saved[name], path, running=lie)
    with pytest.raises(ModelFormatError, match="not that of its multipliers"):
        go(name, 8, checkpoint=path, resume=True)


@pytest.mark.parametrize(
    ("lie", "said"),
    [(lambda price: 2 * price + 1, "not that of its multipliers"), (lambda p: p[:0], "damaged")],
)
def test_a_running_price_that_is_not_that_of_the_multipliers(lie, said, saved, tmp_path):
    path = tmp_path / "run.npz"
    changed(saved["sdm quadratic"], path, price=lie)
    with pytest.raises(ModelFormatError, match=said):
        go("sdm quadratic", 8, checkpoint=path, resume=True)


@pytest.mark.parametrize("name", ["sdm", "bcfw", "lp", "subgradient"])
@pytest.mark.parametrize("dual", [1e6, -5.0, float("nan"), float("inf")])
def test_a_dual_of_the_run_that_is_not_that_of_the_engine(name, dual, saved, tmp_path):
    path = tmp_path / "run.npz"
    changed(saved[name], path, lambda run: run.update(dual=dual))
    with pytest.raises(ModelFormatError, match="dual"):
        go(name, 8, checkpoint=path, resume=True)


# --- averages ---


@pytest.mark.parametrize(
    "damage",
    [
        {"visits": lambda v: v[:0]},
        {"visits": lambda v: -v},
        {"visits": lambda v: v + 0.5},
        {"visits": lambda v: v * np.nan},
        {"visits": lambda v: v * 1e300},
        {"lag": lambda x: x[:-1]},
        {"lag": lambda x: x.astype(np.float64)},
        {"lag": lambda x: np.full_like(x, np.nan)},
        {"averaged": lambda x: x[:-1]},
        {"averaged": lambda x: np.full_like(x, np.inf)},
    ],
)
def test_damaged_averages_of_bcfw(damage, saved, tmp_path):
    path = tmp_path / "run.npz"
    changed(saved["bcfw"], path, **damage)
    with pytest.raises(ModelFormatError):
        go("bcfw", 8, checkpoint=path, resume=True)


# --- counts that are nonsense ---


NUMBERS = [None, True, "x", -1, 10**400, float("nan"), float("inf"), [], 0.5, 0]


@pytest.mark.parametrize(
    "name",
    [
        "sdm",
        "sdm paper",
        "sap paper",
        "nslack",
        "dualcoordinate",
        "online",
        "bcfw",
        "oneslack",
        "subgradient",
    ],
)
def test_nonsense_in_the_state_of_a_solver(name, saved, tmp_path):
    path = tmp_path / "run.npz"
    solver, _ = RUNS[name]
    keys = list(solver.init(Context(12, np.random.default_rng(0))))
    for key in keys:
        for value in NUMBERS:
            changed(saved[name], path, lambda run, k=key, v=value: run["solver"].update({k: v}))
            try:
                go(name, 8, checkpoint=path, resume=True)
            except ModelFormatError as error:
                assert str(path) in str(error)  # noqa: PT017


@pytest.mark.parametrize("name", [name for name in RUNS if RUNS[name][0].later])
def test_states_of_earlier_versions_are_gone_on_from(name, saved, tmp_path):
    path = tmp_path / "run.npz"
    later = RUNS[name][0].later

    def earlier(run):
        for key in later:
            run["solver"].pop(key, None)  # not every schedule has it

    changed(saved[name], path, earlier)
    found = go(name, 9, checkpoint=path, resume=True)
    assert_same_run(go(name, 9), found)


@pytest.mark.parametrize(
    ("name", "key", "value"), [("dualcoordinate", "share", 1.5), ("online", "seen", 13)]
)
def test_values_out_of_range(name, key, value, saved, tmp_path):
    path = tmp_path / "run.npz"
    changed(saved[name], path, lambda run: run["solver"].update({key: value}))
    with pytest.raises(ModelFormatError, match=f"{key} is {value}"):
        go(name, 8, checkpoint=path, resume=True)


@pytest.mark.parametrize("value", [0, -1, 2.5, None])
def test_no_parts(value, saved, tmp_path):
    path = tmp_path / "run.npz"
    changed(saved["sdm"], path, lambda run: run["solver"].update(parts=value))
    with pytest.raises(ModelFormatError, match="parts"):
        go("sdm", 8, checkpoint=path, resume=True)


@pytest.mark.parametrize("name", ["sdm", "oneslack"])
def test_nonsense_in_the_state_of_the_run(name, saved, tmp_path):
    path = tmp_path / "run.npz"
    for key in ("seconds", "oracle_calls"):
        for value in (None, "x", -1 if key == "oracle_calls" else float("nan"), 10**400):
            changed(saved[name], path, lambda run, k=key, v=value: run.update({k: v}))
            with pytest.raises(ModelFormatError):
                go(name, 8, checkpoint=path, resume=True)
    for key in ("n_pass", "kind", "seconds", "oracle_calls", "dual", "planes", "nonzeros", "gap"):
        for value in (None, [], {}):
            changed(saved[name], path, lambda run, k=key, v=value: run["history"][2].update({k: v}))
            with pytest.raises(ModelFormatError):
                go(name, 8, checkpoint=path, resume=True)


@pytest.mark.parametrize("groups", [0, -1, 3, 2**30])
def test_nonsense_groups(groups, saved, tmp_path):
    path = tmp_path / "run.npz"
    changed(saved["oneslack"], path, groups=lambda g: np.full_like(g, groups))
    with pytest.raises(ModelFormatError):
        go("oneslack", 8, checkpoint=path, resume=True)
