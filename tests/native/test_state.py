"""Saving and restoring an engine: bit for bit, and never a crash on a damaged state."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from maxmargin import _native
from native_problems import (
    FEATURES,
    ChainPlanes,
    check_state,
    everyone,
    flat_problem,
    native_python_problem,
    random_case,
    run_isolated,
)

PRECISIONS = [pytest.param(True, id="float32"), pytest.param(False, id="float64")]
BLOCKS = [pytest.param(True, id="factored"), pytest.param(False, id="whole")]


def work(engine, n, rng, passes):
    """Run some passes of all kinds."""
    for _ in range(passes):
        order = rng.permutation(n).astype(np.uint32)
        engine.exact_pass(order, _native.PassOptions(relaxation=1.3))
        engine.cached_pass(order[::-1].copy(), _native.PassOptions(recombine=True))
        engine.cached_pass(order, _native.PassOptions(recombine=True, prune=False))
        engine.collect_pass(1)
        engine.cached_pass(order, _native.PassOptions(min_violation=1e-3, recombine=True))


def assert_same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype
        assert a[name].tobytes() == b[name].tobytes(), name


def copied(state):
    return {name: array.copy() for name, array in state.items()}


# --- round trips ---


def check_round_trip(make, n, before=2, after=3):
    """Make an engine, work, save; going on must equal restoring in a new engine and going on."""
    engine = make()
    work(engine, n, np.random.default_rng(1), before)
    saved = copied(engine.state())
    other = make()
    other.restore(copied(saved))
    assert_same(other.state(), saved)
    used = make()  # whatever an engine held before does not matter
    work(used, n, np.random.default_rng(2), 2)
    used.restore(copied(saved))
    for one in (engine, other, used):
        work(one, n, np.random.default_rng(3), after)
    assert_same(engine.state(), other.state())
    assert_same(engine.state(), used.state())
    assert engine.expected_loss() == other.expected_loss()
    assert engine.penalty() == other.penalty()
    assert engine.certify() == other.certify()


@pytest.mark.parametrize("factored", BLOCKS)
@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("features", FEATURES)
def test_a_chain_goes_on_bit_for_bit(features, single, factored):
    rng = np.random.default_rng(0)
    lengths = (*rng.integers(1, 20, 8), 260)
    case = random_case(
        rng, n_labels=5, lengths=lengths, features=features, n_sparse=15, cost=True, noise=0.2
    )
    check_round_trip(
        lambda: _native.Engine(case.problem(), 0.5, single=single, factored=factored), 9
    )


def test_a_python_structure_goes_on_bit_for_bit():
    structure, X, Y = flat_problem(np.random.default_rng(1))
    check_round_trip(
        lambda: _native.Engine(native_python_problem(structure, X, Y), 0.5, single=False), len(Y)
    )


@pytest.mark.parametrize("k", [0, 1, 5])
def test_every_pass_can_be_a_checkpoint(k):
    case = random_case(np.random.default_rng(2), n_labels=4, lengths=(9, 3, 7), noise=0.2)

    def make():
        return _native.Engine(case.problem(), 2.0, single=False)

    check_round_trip(make, 3, before=k, after=6 - k)


def test_an_empty_state():
    case = random_case(np.random.default_rng(3))
    engine = _native.Engine(case.problem(), 1.0)
    empty = copied(engine.state())
    work(engine, 3, np.random.default_rng(3), 1)
    engine.restore(empty)
    assert engine.size()["planes"] == 0
    assert not engine.weights.any()
    assert_same(engine.state(), empty)


@pytest.mark.parametrize("first", BLOCKS)
def test_blocks_of_the_other_kind(first):
    # A state of whole blocks is a state of factored ones, and the other way round.
    rng = np.random.default_rng(4)
    case = random_case(rng, n_labels=4, lengths=(20, 12, 16), n_sparse=20, noise=0.1)
    engine = _native.Engine(case.problem(), 1.0, single=False, factored=first)
    work(engine, 3, np.random.default_rng(4), 2)
    other = _native.Engine(case.problem(), 1.0, single=False, factored=not first)
    other.restore(engine.state())
    planes = ChainPlanes(case)
    for _ in range(3):
        work(other, 3, np.random.default_rng(5), 1)
        check_state(other, planes, case.unpadded, tolerance=1e-6)
    assert other.expected_loss() > 0.0


# --- damage ---


def chain_engine(*, single=False, factored=True):
    rng = np.random.default_rng(5)
    case = random_case(
        rng, n_labels=5, lengths=(25,) * 10, features="values", n_sparse=30, noise=0.1
    )
    return _native.Engine(case.problem(), 1.0, single=single, factored=factored), 10


def python_engine():
    structure, X, Y = flat_problem(np.random.default_rng(6))
    return _native.Engine(native_python_problem(structure, X, Y), 1.0, single=False), len(Y)


def worked_state(make):
    engine, n = make()
    work(engine, n, np.random.default_rng(7), 2)
    return copied(engine.state())


MAKERS = {"chain": chain_engine, "python": python_engine}


def use(engine, n):
    """Do everything that reads a restored state."""
    for recombine in (True, False):
        engine.cached_pass(everyone(n), _native.PassOptions(recombine=recombine, prune=recombine))
    engine.collect_pass(2)
    for _ in range(2):
        engine.exact_pass(everyone(n), _native.PassOptions())
    engine.certify()
    engine.rescale(0.5)
    engine.state()


def set_at(name, index, value):
    def damage(state):
        state[name][index] = value

    return damage


def cut(*names, by=1):
    def damage(state):
        for name in names:
            state[name] = state[name][:-by].copy()

    return damage


def longer(*names):
    def damage(state):
        for name in names:
            state[name] = np.append(state[name], state[name][-1:])

    return damage


def as_type(name, dtype):
    def damage(state):
        state[name] = state[name].astype(dtype)

    return damage


def without(name):
    def damage(state):
        del state[name]

    return damage


def fill(name, value):
    def damage(state):
        state[name][:] = value

    return damage


def neighbours(state):
    """Return a part that has the same example as the next one."""
    return int(np.flatnonzero(np.diff(state["example"].astype(int)) == 0)[0])


def overlap(state):
    p = neighbours(state)
    state["hi"][p] = state["lo"][p + 1]


def swap_parts(state):
    """Exchange the planes of two parts of an example, so that they lie outside of their extents."""
    p = neighbours(state)
    plane = np.concatenate([[0], np.cumsum(state["n_planes"])]).astype(int)
    starts = {"alpha": plane, "loss": plane, "code_size": plane}
    starts["codes"] = np.concatenate([[0], np.cumsum(state["code_size"])]).astype(int)[plane]
    starts["gram"] = np.concatenate([[0], np.cumsum(state["n_planes"].astype(int) ** 2)])
    if "index" in state:
        starts["index"] = np.concatenate([[0], np.cumsum(state["n_index"])]).astype(int)
    for name, start in starts.items():
        if name in state:
            (a, b, c), old = start[p : p + 3], state[name]
            state[name] = np.concatenate([old[:a], old[b:c], old[a:b], old[c:]])
    for name in ("n_planes", "n_index"):
        if name in state:
            state[name][[p, p + 1]] = state[name][[p + 1, p]]


def lose_the_last_part(state):
    """Cut all arrays that have one entry a part, so that they still agree with each other."""
    n = len(state["example"])
    for name in state:
        if len(state[name]) == n:
            state[name] = state[name][:-1].copy()


def split_python_part(state):
    """Two parts where a Python structure has one: merging them would join two codes."""
    for name in ("example", "lo", "hi", "violation", "stale", "n_planes", "n_index"):
        if name in state:
            state[name] = np.insert(state[name], 0, state[name][0])
    state["lo"][:2], state["hi"][:2] = [0, 5], [4, 9]
    m = int(state["n_planes"][0])
    words = int(state["code_size"][:m].sum())
    sizes = {"alpha": m, "loss": m, "gram": m * m, "code_size": m, "codes": words}
    for name, count in sizes.items():
        if name in state:
            state[name] = np.concatenate([state[name][:count], state[name]])


PER_PART = ("example", "lo", "hi", "violation", "n_planes", "n_index")

# What could as well be made anew from the rest.
RECOMPUTED = {"loss", "gram", "index", "n_index"}

# name -> what is wrong; each must raise a ValueError
DAMAGE = {
    **{f"no {name}": without(name) for name in (*PER_PART, "alpha", "loss", "gram", "weights")},
    "no codes": without("codes"),
    "no index": without("index"),
    **{f"{name} cut": cut(name) for name in (*PER_PART, "alpha", "loss", "gram", "weights")},
    "code_size cut": cut("code_size"),
    "codes cut": cut("codes"),
    "index cut": cut("index"),
    **{f"{name} longer": longer(name) for name in (*PER_PART, "alpha", "loss", "gram", "weights")},
    "code_size longer": longer("code_size"),
    "codes longer": longer("codes"),
    "index longer": longer("index"),
    "the last part lost": lose_the_last_part,
    "gram cut by much": cut("gram", by=7),
    "codes of another type": as_type("codes", np.float64),
    "codes of 8 bytes": as_type("codes", np.int64),
    "alpha of 4 bytes": as_type("alpha", np.float32),
    "weights of the other precision": as_type("weights", np.float32),
    "gram of the other precision": as_type("gram", np.float32),
    "example as a float": as_type("example", np.float64),
    "alpha negative": set_at("alpha", 1, -1e-3),
    "alpha above one": set_at("alpha", 1, 1.5),
    "alpha nan": set_at("alpha", 1, np.nan),
    "alpha infinite": set_at("alpha", 0, np.inf),
    "alpha does not sum to one": lambda state: state["alpha"].__imul__(0.9),
    "loss nan": set_at("loss", 1, np.nan),
    "loss infinite": set_at("loss", 1, np.inf),
    "loss of another plane": set_at("loss", 1, 12.5),
    "loss of the truth": set_at("loss", 0, 1.0),
    "gram nan": fill("gram", np.nan),
    "gram infinite": fill("gram", np.inf),
    "gram negative": fill("gram", -1.0),
    "violation nan": fill("violation", np.nan),
    "weights nan": set_at("weights", 0, np.nan),
    "weights infinite": set_at("weights", -1, -np.inf),
    "example out of range": set_at("example", -1, 10),
    "example far out of range": set_at("example", 0, 2**32 - 1),
    "no plane": set_at("n_planes", 0, 0),
    "too many planes": set_at("n_planes", 0, 2**32 - 1),
    "one plane more": lambda state: state["n_planes"].__setitem__(0, state["n_planes"][0] + 1),
    "one plane less": lambda state: state["n_planes"].__setitem__(0, state["n_planes"][0] - 1),
    "the truth has a code": set_at("code_size", 0, 1),
    "a plane without code": set_at("code_size", 1, 0),
    "a code of 4 billion words": set_at("code_size", 1, 2**32 - 1),
    "a code out of range": set_at("codes", 0, 2**32 - 1),
    "codes out of order": lambda state: state["codes"].__setitem__(
        slice(None), state["codes"][::-1].copy()
    ),
    "codes all zero": fill("codes", 0),
    "extent upside down": lambda state: (fill("lo", 3)(state), fill("hi", 2)(state)),
    "parts overlap": overlap,
    "all of one example": fill("example", 0),
    "index of garbage": lambda state: state["index"].__setitem__(
        slice(None), np.random.default_rng(0).integers(0, 2**32, len(state["index"]), np.uint32)
    ),
    "index of ones": fill("index", 2**32 - 1),
    "index of zeros": fill("index", 0),
    "index of no words": lambda state: (
        fill("n_index", 0)(state),
        state.__setitem__("index", np.zeros(0, np.uint32)),
    ),
    "n_index too large": set_at("n_index", 0, 2**32 - 1),
    "cells missing from the index": lambda state: state["index"].__setitem__(0, 1),
    "cells too many in the index": set_at("index", 0, 10**6),
    "index of another token": set_at("index", 1, 19),
    "index of a token far away": set_at("index", 1, 10**9),
    "index with a wrong truth": set_at("index", 2, 10**6),
    "index with a wrong label before": set_at("index", 3, 10**6),
    "index with a wrong label after": set_at("index", 4, 10**6),
    "index with many labels": set_at("index", 5, 10**8),
    "index with a wrong label": set_at("index", 6, 10**6),
    "planes outside of their extents": swap_parts,
}

# What a Python structure's state must also stand: it has no index and one part an example.
PYTHON_DAMAGE = {
    "two parts of a whole": split_python_part,
    "an extent too small": lambda state: (fill("lo", 3)(state), fill("hi", 3)(state)),
    "codes of ones": fill("codes", 2**32 - 1),
    "a code cut": set_at("code_size", 1, 4),
    "loss of another plane": set_at("loss", 1, 12.5),
    "gram nan": fill("gram", np.nan),
    "all of one example": fill("example", 0),
}

CASES = [("chain", name) for name in DAMAGE] + [("python", name) for name in PYTHON_DAMAGE]


def damaged(kind, name):
    """Restore a damaged state: refused, or the damage must be without any effect."""
    good = worked_state(MAKERS[kind])
    state = copied(good)
    try:
        (DAMAGE if kind == "chain" else PYTHON_DAMAGE)[name](state)
    except KeyError as missing:
        if missing.args[0] in RECOMPUTED:
            return  # not part of a state any more: cannot be wrong
        raise
    engine, n = MAKERS[kind]()
    work(engine, n, np.random.default_rng(8), 1)
    before = copied(engine.state())
    refused = False
    try:
        engine.restore(state)
    except ValueError:
        refused = True
    after = engine.state()
    expected = before if refused else good
    same = all(expected[key].tobytes() == after[key].tobytes() for key in expected)
    use(engine, n)  # to see whether that crashes, too
    assert same, "half restored" if refused else "accepted"


def all_damage():
    """All of them in a process each, forked from this one so that it is quick."""
    failures = []
    for kind, name in CASES:
        sys.stdout.flush()
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            faulthandler.disable()
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            status = 0
            try:
                damaged(kind, name)
            except BaseException as error:
                print(f"{type(error).__name__}: {error}")
                status = 1
            sys.stdout.flush()
            os._exit(status)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            said = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status != 0:
            failures.append(f"{kind}: {name}: ended with {status}: {said.strip()}")
    assert not failures, "\n" + "\n".join(failures)


def test_damaged_states_are_refused():
    run_isolated(__file__, "all_damage")


@st.composite
def corrupted(draw):
    """A state with a few random entries, sizes or types changed."""
    kind = draw(st.sampled_from(sorted(MAKERS)))
    state = copied(STATES[kind])
    for name in draw(st.lists(st.sampled_from(sorted(state)), min_size=1, max_size=3)):
        old = state[name]
        if draw(st.integers(0, 5)) == 0:
            state[name] = old[: draw(st.integers(0, len(old)))].copy()
        elif len(old):
            at = draw(st.integers(0, len(old) - 1))
            small = st.integers(0, 30).map(old.dtype.type)
            old[at] = draw(hnp.from_dtype(old.dtype) | small)
            if draw(st.booleans()):
                old[:] = draw(st.permutations(range(len(old))).map(old.__getitem__))
    return kind, state


STATES = {}


def corruption():
    """Random damage: refused or harmless, never a crash or an endless loop."""
    STATES.update({kind: worked_state(make) for kind, make in MAKERS.items()})

    @settings(
        max_examples=300,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(corrupted())
    def restore(chosen):
        kind, state = chosen
        engine, n = MAKERS[kind]()
        with contextlib.suppress(ValueError):
            engine.restore(state)
        with contextlib.suppress(ValueError):  # a weight may be anything finite
            use(engine, n)

    restore()


def test_corrupted_states_never_crash():
    run_isolated(__file__, "corruption")


@pytest.mark.parametrize("single", PRECISIONS)
def test_a_state_of_another_problem_is_refused(single):
    rng = np.random.default_rng(9)
    same = {"features": "values", "n_sparse": 30}
    cases = {
        "fewer examples": random_case(rng, n_labels=5, lengths=(25,) * 5, **same),
        "shorter": random_case(rng, n_labels=5, lengths=(2,) * 10, **same),
        "fewer labels": random_case(rng, n_labels=3, lengths=(25,) * 10, **same),
    }
    state = worked_state(lambda: chain_engine(single=single))
    for case in cases.values():
        engine = _native.Engine(case.problem(), 1.0, single=single)
        with pytest.raises(ValueError, match="does not fit this problem"):
            engine.restore(state)
        assert engine.size()["planes"] == 0


def test_what_is_not_a_state_at_all():
    engine, _ = chain_engine()
    with pytest.raises(ValueError, match="no array"):
        engine.restore({})
    for wrong in (None, [], "state", 3):
        with pytest.raises(TypeError):
            engine.restore(wrong)
    for value in (None, 3, "x", [1, 2], np.zeros((2, 2)), np.array(["a"])):
        state = worked_state(chain_engine)
        state["alpha"] = value
        with pytest.raises(ValueError, match="alpha"):
            engine.restore(state)
