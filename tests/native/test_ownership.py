"""One user at a time: threads and oracles that call an engine which is in use, and shared problems.

The functions without ``test_`` run in a process of their own, because what they look for may end
the process.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

from maxmargin import SDM, StructuralSVM, _native, errors
from maxmargin.errors import StructureError
from maxmargin.features import EncodedBatch
from maxmargin.regularizers import L2
from maxmargin.solvers import BCFW, OneSlack, Subgradient, solve
from maxmargin.structures.kernels import Kernel, KernelProblem
from native_problems import (
    Flat,
    everyone,
    flat_problem,
    native_python_problem,
    random_case,
    run_isolated,
)

N = 150


def chain_case(seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 12, N)
    return random_case(rng, n_labels=8, lengths=lengths, features="values", n_sparse=60)


def kernel_problem():
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 3 * 60 + 1, 3)
    batch = EncodedBatch(offsets=offsets, n_sparse=0, dense=rng.normal(size=(180, 3)))
    labels = rng.integers(0, 4, 180).astype(np.int32)
    # room for a few rows only, so that every step drives others out
    kernel = Kernel("rbf", gamma=0.5, cache_mb=0.005).resolved(batch)
    return KernelProblem(batch, kernel, n_labels=4, labels=labels)


def together(*calls):
    """Run calls at the same time; return what each returned or raised."""
    ready, outcomes = threading.Barrier(len(calls)), [None] * len(calls)

    def work(k):
        ready.wait()
        try:
            outcomes[k] = calls[k]()
        except Exception as error:
            outcomes[k] = error

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


# --- one engine, several threads ---


def insist(call, times):
    """Call again and again; return how often that was refused, and how often not."""
    refused = done = 0
    for _ in range(times):
        try:
            call()
            done += 1
        except errors.InUseError:
            refused += 1
    return refused, done


def passes_of_one_engine():
    engine = _native.Engine(chain_case().problem(), 0.5, single=False)
    order = np.tile(everyone(N), 3)
    calls = [
        lambda: engine.exact_pass(order, _native.PassOptions()),
        lambda: engine.exact_pass(order, _native.PassOptions()),
        lambda: engine.cached_pass(order, _native.PassOptions(recombine=True)),
        lambda: engine.collect_pass(2),
        lambda: (engine.state(), engine.planes()),
        lambda: engine.certify(2),
    ]
    engine.exact_pass(order, _native.PassOptions())
    found = together(*[lambda call=call: insist(call, 300) for call in calls])
    assert all(isinstance(f, tuple) for f in found), found
    assert sum(refused for refused, _ in found) > 0, found
    assert sum(done for _, done in found) > 0, found
    primal, dual = engine.certify()  # it is free again, and whole
    assert primal >= dual > 0


def sweeps_of_one_primal():
    primal = _native.Primal(chain_case().problem(), False)
    calls = [lambda: primal.sweep(2), lambda: primal.cuts(np.zeros(N), 2), primal.state]
    found = together(*[lambda call=call: insist(call, 100) for call in calls])
    assert all(isinstance(f, tuple) for f in found), found
    assert sum(refused for refused, _ in found) > 0, found


def warm_fits_of_one_estimator():
    case = flat_problem(np.random.default_rng(0), n=40)
    model = StructuralSVM(case[0], solver=SDM(), C=1.0, gap=1e-3, warm_start=True).fit(*case[1:])
    model.set_params(C=5.0)
    found = together(*[lambda: model.fit(*case[1:])] * 4)
    assert all(f is model or isinstance(f, errors.InUseError) for f in found), found
    alone = StructuralSVM(case[0], C=5.0, gap=1e-3).fit(*case[1:])
    assert abs(model.certificate_.primal / alone.certificate_.primal - 1) < 2e-3


@pytest.mark.parametrize(
    "name", ["passes_of_one_engine", "sweeps_of_one_primal", "warm_fits_of_one_estimator"]
)
def test_an_engine_in_use_refuses_other_threads(name):
    run_isolated(__file__, name)


# --- two engines of one problem ---


def compare_engines(make, n, passes, rounds):
    """Train engines of one problem at the same time; each must end as it does alone."""
    order, costs = np.tile(everyone(n), passes), (0.2, 0.5, 0.9)
    problem = make()
    alone = [_native.Engine(problem, C, single=False) for C in costs]
    for engine in alone:
        engine.exact_pass(order, _native.PassOptions())
    for _ in range(rounds):
        problem = make()
        engines = [_native.Engine(problem, C, single=False) for C in costs]
        together(*[lambda e=e: e.exact_pass(order, _native.PassOptions()) for e in engines])
        for engine, other in zip(engines, alone, strict=True):
            assert engine.weights.tobytes() == other.weights.tobytes()


def engines_of_one_chain():
    # long sequences: making their inner products, at the first use, takes a while
    case = random_case(np.random.default_rng(0), n_labels=3, lengths=[250] * 20, per_token=6)
    compare_engines(case.problem, 20, 1, 20)


def engines_of_one_kernel():
    compare_engines(kernel_problem, 60, 30, 2)


@pytest.mark.parametrize("name", ["engines_of_one_chain", "engines_of_one_kernel"])
def test_two_engines_may_share_a_problem(name):
    run_isolated(__file__, name)


# --- an oracle that calls what called it ---


class Nosy(Flat):
    """Looks at, or trains with, whatever is in ``self.call`` while it is asked."""

    call = None

    def argmax(self, x, w, truth=None):
        if self.call is not None:
            self.call()
        return super().argmax(x, w, truth)

    def __deepcopy__(self, memo):
        return self


def nosy():
    structure, X, Y = flat_problem(np.random.default_rng(0))
    return Nosy(structure.cost, len(X[0])), X, Y


@pytest.mark.parametrize(
    "call",
    [
        lambda engine: engine.exact_pass(everyone(8), _native.PassOptions()),
        lambda engine: engine.certify(),
        lambda engine: engine.rescale(2.0),
        lambda engine: engine.state(),
        lambda engine: engine.weights,
        lambda engine: engine.C,
    ],
)
@pytest.mark.parametrize("outer", ["exact_pass", "collect_pass", "certify", "hinge"])
def test_an_oracle_cannot_call_its_own_engine(call, outer):
    structure, X, Y = nosy()
    engine = _native.Engine(native_python_problem(structure, X, Y), 1.0, single=False)
    structure.call = lambda: call(engine)
    arguments = (everyone(8), _native.PassOptions()) if outer == "exact_pass" else ()
    with pytest.raises(StructureError, match="in use") as caught:
        getattr(engine, outer)(*arguments)
    assert isinstance(caught.value.__cause__, errors.InUseError)
    structure.call = None
    primal, dual = engine.certify()  # free again
    assert primal >= dual


def test_an_oracle_cannot_fit_its_own_estimator():
    structure, X, Y = nosy()
    model = StructuralSVM(structure, gap=1e-6, warm_start=True).fit(X, Y)
    before = model.weights_.copy()
    model.set_params(C=7.0)
    structure.call = lambda: model.fit(X, Y)
    with pytest.raises(StructureError, match="in use"):
        model.fit(X, Y)
    assert (model.weights_ == before).all()
    structure.call = None
    primal = model.fit(X, Y).certificate_.primal
    assert primal == pytest.approx(
        StructuralSVM(structure, C=7.0, gap=1e-6).fit(X, Y).certificate_.primal, rel=1e-5
    )


@pytest.mark.parametrize("solver", [SDM(), BCFW(), Subgradient(), OneSlack()], ids=str)
def test_a_callback_cannot_train_with_the_machine_of_its_run(solver):
    problem = native_python_problem(*flat_problem(np.random.default_rng(0)))
    first = solve(problem, solver, C=1.0, gap=0.0, max_passes=3, warn=False)
    refused = []

    def again(record):
        with pytest.raises(errors.InUseError, match="in use"):
            solve(problem, solver, C=2.0, max_passes=2, engine=first.engine)
        refused.append(record.n_pass)

    solve(
        problem, solver, C=1.0, gap=0.0, max_passes=3, warn=False, engine=first.engine,
        callbacks=[again],
    )  # fmt: skip
    assert refused == [1, 2, 3]
    # and afterwards it may be used again
    solve(problem, solver, C=2.0, max_passes=2, warn=False, engine=first.engine, regularizer=L2())


def test_the_machine_is_free_after_a_run_that_failed():
    structure, X, Y = nosy()
    problem = native_python_problem(structure, X, Y)
    engine = solve(problem, SDM(), C=1.0).engine

    def fail():
        raise ZeroDivisionError

    structure.call = fail
    with pytest.raises(StructureError):
        solve(problem, SDM(), C=2.0, engine=engine)
    structure.call = None
    assert solve(problem, SDM(), C=2.0, engine=engine).converged
