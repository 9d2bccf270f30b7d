"""Small hard problems: every solver that promises the optimum reaches it, or is named here.

Measurements as they come, large C, cost matrices, weights of tokens, structures in Python and
listed outputs; under every formulation of the margin and every kind of link. What the optimum is
says an independent interior point method (`qp_reference`), which has all outputs written down.

Solvers are those of the registry but for `OTHERS`, so that a new one is tested as soon as it is
registered. `KNOWN_FAILURES` has what does not reach the optimum. It is strict: an entry that is
reached after all is an error, and its certificate must hold whether it is reached or not.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np
import pytest

from kit import Instance, Watcher, assert_same_run, formulated, quietly
from maxmargin.errors import NotCompatibleError
from maxmargin.links import Link
from maxmargin.regularizers import L2, ElasticNet, Regularizer
from maxmargin.solvers import SOLVERS, make_solver
from native_problems import Flat, listed_problem, random_case
from qp_reference import list_planes, solve_planes
from reference_chain import ReferenceChain

#: Solvers that promise a small gap, but not six digits: first-order ones, linear programs.
OTHERS = {"dualcoordinate", "online", "oneslack", "bcfw", "subgradient", "lp", "extragradient"}
EXACT = [name for name in SOLVERS if name not in OTHERS]
#: What some of them are told, so that they do not stop before.
TOLD = {"nslack": {"epsilon": 1e-13}, "sap": {"theta": 0.0}}

ALL = "all"
SOFT = list(itertools.product(("linear", "quadratic"), ("margin", "slack", "none")))
HARD = [("hard", "margin"), ("hard", "none")]
COST = np.array([[0.0, 3.0, 1.0], [1.0, 0.0, 2.0], [2.0, 1.0, 0.0]])
#: Sizes of the columns of measurements.
SIZES = np.array([0.01, 1.0, 30.0, 1e3])

# --- problems ---


@dataclasses.dataclass(frozen=True)
class Hard:
    """A problem with all its outputs, and the C it is solved with."""

    instance: Instance
    C: float


def tokens(scale=1.0, n=24, noise=0.3):
    """Return chains of one token with measurements of very different sizes, not centred."""
    rng = np.random.default_rng(5)
    case = random_case(rng, lengths=(1,) * n, features="dense64", n_dense=4)
    x = scale * SIZES * (case.arrays["dense64"] + 2.0)
    right = (case.arrays["dense64"] @ rng.normal(size=(4, 3))).argmax(axis=1)
    clear = rng.random(n) >= noise
    case.arrays["labels"][clear] = right[clear]
    case.arrays["dense64"] = np.ascontiguousarray(x)
    case.X, case.Y = list(x[:, None]), list(case.arrays["labels"][:, None])
    return case


def chains(seed=0, cost=None, **options):
    shape = {"lengths": (3, 3, 3), "features": "dense64", "n_dense": 3}
    case = random_case(np.random.default_rng(seed), **{**shape, **options})
    if cost is not None:
        case.arrays["cost"] = cost
        case.reference = ReferenceChain(3, case.reference.n_token_features, cost)
    return case


def flat():
    rng = np.random.default_rng(2)
    return Flat(COST, 3), list(rng.normal(size=(10, 3)) * [1, 10, 100]), rng.integers(0, 3, 10)


def listed():
    case = chains(1, COST, lengths=(2, 3, 2))
    planes = list_planes(case.reference, case.X, case.Y)
    return Instance(listed_problem(case.reference, case.X, case.Y), planes)


def of_case(make, C):
    return lambda: Hard(Instance.of_case(make()), C)


PROBLEMS = {
    "unscaled": of_case(tokens, 1.0),
    "unscaled, C 1e4": of_case(tokens, 1e4),
    "scale 1e5": of_case(lambda: tokens(scale=100.0), 10.0),
    "costs": of_case(lambda: chains(cost=COST), 30.0),
    "token weights": of_case(lambda: chains(1, weighted=True), 30.0),
    "C 1e4": of_case(lambda: chains(3, lengths=(3, 2, 3, 1, 2)), 1e4),
    "separable, C 1e6": of_case(lambda: chains(4, n_dense=10, noise=0.0), 1e6),
    "python": lambda: Hard(Instance.of_structure(*flat()), 1e3),
    "listed": lambda: Hard(listed(), 30.0),
}
PROBLEMS = {name: functools.cache(make) for name, make in PROBLEMS.items()}

# --- regularisers ---


@dataclasses.dataclass(frozen=True)
class NonNegative(Regularizer):
    """½‖w‖² over weights that are not negative."""

    @property
    def link(self):
        return Link(least=0.0)


@dataclasses.dataclass(frozen=True, eq=False)
class Prior(Regularizer):
    """A Gaussian prior for each weight, with a mean and a variance of its own."""

    mean: np.ndarray
    variance: np.ndarray

    @property
    def link(self):
        return Link(offset=self.mean, scale=self.variance)


def prior(instance, single):
    """Return one, in the layout of the solver and in that of the reference."""
    rng = np.random.default_rng(7)
    mean, variance = 0.1 * rng.normal(size=instance.d), rng.uniform(0.2, 3.0, instance.d)
    native = Prior(*(np.array(instance.padded(v, single), float) for v in (mean, variance)))
    return native, Prior(mean, variance)


#: Name -> what gives the regulariser for the solver and that for the reference.
REGULARIZERS = {
    "l2": lambda *_: (L2(), L2()),
    "elastic net": lambda *_: (ElasticNet(0.2, 0.8),) * 2,
    "nonnegative": lambda *_: (NonNegative(),) * 2,
    "prior": prior,
}

#: (problem, regulariser, slack, rescale): all problems with L2, and two with all regularisers.
CASES = [(problem, "l2", *pair) for problem in PROBLEMS for pair in SOFT]
CASES += [("separable, C 1e6", "l2", *pair) for pair in HARD]
CASES += [
    (problem, regularizer, *pair)
    for problem in ("unscaled", "costs")
    for regularizer in REGULARIZERS
    if regularizer != "l2"
    for pair in SOFT
]


def can(name, case):
    """Whether a solver does the regulariser and the formulation of a case."""
    kind, (_, regularizer, slack, rescale) = SOLVERS[name], case
    sample = {"prior": Prior(np.zeros(1), np.ones(1)), "nonnegative": NonNegative()}
    try:
        make_solver(name, slack=slack, rescale=rescale)
    except (NotCompatibleError, ValueError):
        return False
    return kind.supports(sample.get(regularizer) or REGULARIZERS[regularizer](None)[0])


#: (solver, problem, regulariser, slack, rescale)
RUNS = [(name, *case) for name in EXACT for case in CASES if can(name, case)]

#: Formulations whose oracle of chains only bounds the best output of costs and weights.
BY_CORNERS = "linear slack, quadratic margin, quadratic slack"
#: What is not solved by some: problem and regulariser -> formulations (`ALL`: every soft one).
NOT_YET = {
    "unscaled, l2": ALL,
    "unscaled, C 1e4, l2": ALL,
    "scale 1e5, l2": ALL,
    "costs, l2": BY_CORNERS,
    "token weights, l2": BY_CORNERS,
    "C 1e4, l2": ALL,
    "python, l2": ALL,
    "unscaled, elastic net": ALL,
    "unscaled, nonnegative": ALL,
    "unscaled, prior": ALL,
    "costs, elastic net": BY_CORNERS,
    "costs, nonnegative": BY_CORNERS,
    "costs, prior": BY_CORNERS,
}
#: Solver -> what it does not solve, as far as it does the regulariser at all.
KNOWN_FAILURES = {}


def known(name, problem, regularizer, slack, rescale):
    """Whether a run is among the known failures."""
    listed = KNOWN_FAILURES.get(name, {}).get(f"{problem}, {regularizer}", "")
    return slack != "hard" and (listed == ALL or f"{slack} {rescale}" in listed.split(", "))


@functools.cache
def optimum(problem, regularizer, slack, rescale):
    hard = PROBLEMS[problem]()
    planes = formulated(hard.instance.planes, slack, rescale)
    link = REGULARIZERS[regularizer](hard.instance, False)[1].link
    return solve_planes(planes, hard.C, slack=slack, link=link)


def train(name, *case, extra=None, **options):
    """Train; `extra` are parameters of the solver."""
    problem, regularizer, slack, rescale = case
    hard = PROBLEMS[problem]()
    options = {"gap": 1e-7, "dtype": "float64", "random_state": 0, **options}
    options.setdefault("max_passes", 30 if name == "nslack" else 2000)
    omega = REGULARIZERS[regularizer](hard.instance, options["dtype"] == "float32")[0]
    own = {**TOLD.get(name, {}), **(extra or {})}
    solver = make_solver(name, slack=slack, rescale=rescale, **own)
    return quietly(hard.instance.problem, solver, C=hard.C, regularizer=omega, **options)


@pytest.mark.parametrize("run", RUNS, ids=", ".join)
def test_the_optimum(run):
    best = optimum(*run[1:])
    certificate = train(*run).certificate
    rounding = 1e-9 * abs(best.primal)
    assert certificate.dual <= best.primal + rounding
    assert certificate.primal >= best.dual - rounding
    close = certificate.primal - best.primal <= 1e-6 * abs(best.primal)
    if known(*run):
        assert not close, "it is reached now: take it out of KNOWN_FAILURES"
        pytest.xfail(f"gap {100 * certificate.gap:.3g} %")
    assert close, f"primal {certificate.primal}, optimum {best.primal}"


def test_every_solver_is_run():
    """A new solver joins with the parameters that the others have, or it joins `OTHERS`."""
    assert set(SOLVERS) >= OTHERS
    assert {run[0] for run in RUNS} == set(EXACT)


def test_known_failures_are_runs():
    """Every entry of the table names something that is run."""
    for name, entries in KNOWN_FAILURES.items():
        assert name in EXACT
        for which, formulations in entries.items():
            pairs = {
                f"{slack} {rescale}" for *case, slack, rescale in CASES if ", ".join(case) == which
            }
            assert pairs >= ({*formulations.split(", ")} - {ALL}), (name, which)
            assert pairs, (name, which)


# --- every pass ---


def switches(name):
    """Return the default, and the solver with each of its switches the other way round."""
    solver = SOLVERS[name]()
    fields = [f.name for f in dataclasses.fields(solver) if f.init]
    flags = {f: getattr(solver, f) for f in fields if isinstance(getattr(solver, f), bool)}
    return [{}, *({flag: not value} for flag, value in flags.items())]


#: One run of each solver for every kind of problem and link, with every switch.
WATCHED = [
    (name, extra, case)
    for name in EXACT
    for extra in switches(name)
    for case in CASES
    if can(name, case)
    and case[2:] in (("linear", "margin"), ("quadratic", "slack"))
    and case[0] in ("unscaled", "costs", "C 1e4", "python")
]


def watched_id(value):
    if isinstance(value, dict):
        return "-".join(f"{k}={v}" for k, v in value.items()) or "default"
    return value if isinstance(value, str) else ", ".join(value)


@pytest.mark.parametrize(("name", "extra", "case"), WATCHED, ids=watched_id)
def test_the_dual_never_falls(name, extra, case):
    best, last = optimum(*case), [-np.inf]

    def look(_, machine):
        dual = machine.dual()
        assert dual >= last[0] - 1e-11 * abs(best.primal)
        assert dual <= best.primal * (1 + 1e-9)
        last[0] = dual

    passes = 15 if name == "nslack" else 300
    train(name, *case, extra=extra, max_passes=passes, gap=1e-6, callbacks=[Watcher(look)])
    assert last[0] > -np.inf


RESUMED = [
    run
    for run in RUNS
    if run[1] in ("unscaled", "costs", "C 1e4", "python", "separable, C 1e6")
    and run[3:] in (("linear", "margin"), ("quadratic", "slack"))
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("run", RESUMED, ids=", ".join)
def test_resumed_runs_are_the_same(run, dtype, tmp_path):
    """Stopped anywhere, before and after a solver changes over to another kind of pass."""
    path, last = tmp_path / "run.npz", 12 if run[0] == "nslack" else 200
    options = {"dtype": dtype, "gap": 1e-7}
    whole = train(*run, max_passes=last, **options)
    for passes in sorted({1, whole.n_passes // 3, whole.n_passes - 1} - {0}):
        train(*run, max_passes=passes, checkpoint=path, resume=True, **options)
    assert_same_run(whole, train(*run, max_passes=last, checkpoint=path, resume=True, **options))
