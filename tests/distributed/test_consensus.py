"""Rounds of consensus: centres, the z of all shares, and what they tell each other."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import L2, _native
from maxmargin.distributed.consensus import STEEPNESS, Agreed, Centre, Opening
from maxmargin.distributed.meeting import Meeting
from maxmargin.distributed.messages import Codes
from maxmargin.links import Link
from maxmargin.solvers import SDM
from native_problems import flat_problem, native_python_problem, random_case

LINKS = {
    "l2": Link(),
    "net": Link(lower=-0.3, upper=0.3, scale=2.0),
    "each": Link(
        scale=np.array([0.0, 1.0, 2.0, 0.5]),
        offset=np.array([0.1, -0.2, 0.3, 0.0]),
        least=np.array([-1.0, -0.1, -1.0, 0.0]),
        most=np.array([1.0, 1.0, 0.4, 5.0]),
    ),
}
NOTHING = Agreed(np.empty(0, np.uint32), Codes(np.empty(0, np.uint16), 0))


def flat_engine(seed=0, n=20, C=0.5):
    """Return an engine of 12 weights, of which every example reads all."""
    problem = native_python_problem(*flat_problem(np.random.default_rng(seed), n=n))
    return SDM().start(problem, C, L2(), False)


def opening(members, pull, rho, size):
    """Return what a share would say that reads all weights."""
    return Opening(
        np.array(members, np.uint32), np.array(pull, np.float32), np.array(rho, np.float32),
        np.packbits([1]), size,
    )


def hold(link, pull, stiffness, z, times=1):
    """Return what `_native.hold` says the last time; z moves."""
    none = np.zeros(len(pull))
    for _ in range(times):
        answer = _native.hold(link.native(), pull.copy(), none, stiffness, 1.0, z)
    return answer


@pytest.mark.parametrize("name", LINKS)
def test_z_is_the_minimum(name):
    link, rng = LINKS[name], np.random.default_rng(0)
    for _ in range(20):
        pull, stiffness = 3 * rng.normal(size=4), rng.uniform(0, 4, size=4)
        z = np.zeros(4)
        # What rounding leaves of a message is in the next one.
        _, _, penalty, conjugate = hold(link, pull, stiffness, z, times=6)

        def value(w, pull=pull, stiffness=stiffness):
            return link.penalty(w) + 0.5 * stiffness @ (w * w) - pull @ w

        z = np.clip(z, link.least, link.most)
        assert np.isfinite(value(z))
        assert penalty == pytest.approx(link.penalty(z), abs=1e-9)
        assert conjugate == pytest.approx(link.conjugate(pull - stiffness * z), abs=1e-9)
        for j in range(4):
            for step in (-1e-4, 1e-4, -0.1, 0.1):
                other = z.copy()
                other[j] += step
                assert value(other) >= value(z) - 1e-10


def test_without_shares_z_is_the_link():
    for link in LINKS.values():
        z = np.zeros(4)
        hold(link, np.zeros(4), np.zeros(4), z, times=6)
        np.testing.assert_allclose(z, link.weights(np.zeros(4)), rtol=1e-12)


@pytest.mark.parametrize("largest", [1e-24, 1.0, 7e30])
def test_two_bytes_tell_eleven_bits(largest):
    rng = np.random.default_rng(0)
    x = largest * np.ldexp(rng.uniform(-1, 1, size=400), -rng.integers(0, 40, size=400))
    x[:3] = largest, -largest, 0.0
    x = x.astype(np.float32).astype(float)
    z = np.zeros(400)
    codes, base, *_ = hold(Link(), x, np.zeros(400), z)
    told = np.zeros(400)
    _native.add_told(told, np.arange(400, dtype=np.uint32), codes, base)
    np.testing.assert_array_equal(told, z)
    near = np.abs(x) >= largest * 2.0**-29
    np.testing.assert_allclose(z[near], x[near], rtol=2.0**-11)
    assert (np.abs(z) <= np.abs(x) * (1 + 2.0**-11)).all()
    assert z[2] == 0.0


def test_changes_that_are_not_finite_are_refused():
    for bad in (np.inf, np.nan, 1e300):
        with pytest.raises(ValueError, match="not finite"):
            hold(Link(), np.array([1.0, bad]), np.zeros(2), np.zeros(2))


def test_the_metric_is_that_of_the_planes():
    engine, C = flat_engine(), 0.5
    for _ in range(3):
        engine.exact_pass(np.arange(20, dtype=np.uint32), _native.PassOptions())
    _, _, alpha, indptr, indices, values = engine.planes()
    mass = np.repeat(alpha, np.diff(indptr)) * values**2
    h = C * np.bincount(indices, weights=mass, minlength=12)
    own, w = engine.own_sums(), np.array(engine.weights)
    opened = Centre(engine).open(True, C)
    np.testing.assert_array_equal(opened.members, np.flatnonzero(own))
    rho = np.maximum(1, STEEPNESS * np.sqrt(h))[opened.members]
    assert (rho > 1).any()
    np.testing.assert_allclose(opened.rho, rho, rtol=1e-6)
    pull = (rho * w[opened.members]) + own[opened.members]
    np.testing.assert_allclose(opened.pull, pull, rtol=1e-6)


def test_steps_beside_a_centre_gain_what_they_say():
    """The engine's problem is C Σ α l - Ω*(u) with the centre's own Ω*."""
    engine, order = flat_engine(1), np.arange(20, dtype=np.uint32)
    engine.exact_pass(order, _native.PassOptions())
    centre = Centre(engine)
    members = centre.open(True, 0.5).members
    rng = np.random.default_rng(0)
    tell = rng.normal(size=12)
    codes, base, *_ = hold(Link(), tell, np.zeros(12), np.zeros(12))
    centre.follow(Agreed(np.arange(12, dtype=np.uint32), Codes(codes, base)))
    np.testing.assert_array_equal(engine.weights, centre.z)
    centre.aim()
    assert not np.allclose(engine.weights[members], centre.z[members])
    before = 0.5 * engine.expected_loss() - engine.conjugate()
    gain = 0.0
    for _ in range(3):
        gain += engine.exact_pass(order, _native.PassOptions()).gain
        gain += engine.cached_pass(order, _native.PassOptions()).gain
    assert gain > 0.01
    after = 0.5 * engine.expected_loss() - engine.conjugate()
    assert after - before == pytest.approx(gain, rel=1e-6)
    # u is that of the multipliers, and another link finds it there.
    np.testing.assert_allclose(engine.sums(), engine.own_sums(), atol=1e-12)
    engine.relink(Link().native())
    np.testing.assert_array_equal(engine.weights, engine.sums())


def test_weights_that_nobody_takes_part_in():
    """They are at link(0), which is not 0 where the bounds leave that out."""
    link = Link(least=np.array([0.5, -1.0, 0.25, -2.0]), scale=np.array([1.0, 2.0, 0.5, 1.0]))
    z = np.array([0.0, 0.5, 0.25, 0.0], np.float64)
    meeting = Meeting(z, link, [opening([1], [0.5 * 2 + 1.0], [2.0], 4)])
    assert meeting.active.tolist() == [0, 1]  # the first has to be told
    (told,) = meeting.tell()
    assert told.joined.tolist() == [0, 1]
    assert meeting.z[[0, 2, 3]].tolist() == [0.5, 0.25, 0.0]
    assert meeting.penalty == pytest.approx(link.penalty(meeting.z))
    assert meeting.tell()[0].joined.tolist() == []


def test_z_that_is_certified_has_no_rounding():
    """Zeros and bounds that messages only come near to are there."""
    link = Link(lower=-0.5, upper=0.5, least=np.array([-9.0, -9.0, -9.0, 0.1]))
    z, rng = np.array([0.3, -0.7, 0.11, 0.9]), np.random.default_rng(0)
    pull = np.array([0.4, -0.3, 3.0, -5.0])
    meeting = Meeting(z, link, [opening(range(4), pull, rng.uniform(1, 3, 4), 4)])
    assert (meeting.z[:2] != 0).all()
    (told,) = meeting.tell_exact()
    np.testing.assert_array_equal(told.exact, meeting.z)
    assert meeting.z[[0, 1, 3]].tolist() == [0.0, 0.0, 0.1]
    assert meeting.penalty == pytest.approx(link.penalty(meeting.z))


@pytest.mark.parametrize("single", [False, True])
def test_coordinator_and_shares_agree(single):
    """Centres, z and the sum of all u_k are what the coordinator makes of messages."""
    K, rng = 3, np.random.default_rng(2)
    engines = []
    for k in range(K):
        case = random_case(np.random.default_rng(k), lengths=(2, 3), n_sparse=12, per_token=2)
        engines.append(SDM().start(case.problem(), 0.5, L2(), single))
    size, dtype = engines[0].weights.size, engines[0].weights.dtype
    answers = [engine.rows_read() for engine in engines]
    reads = [np.repeat(rows[: size // row], row) > 0 for rows, row in answers]
    assert all(not mine.all() for mine in reads)  # some weights are only those of others
    centres = [Centre(engine) for engine in engines]
    z = np.zeros(size, dtype)
    meeting = Meeting(z, Link(), [centre.open(True, 0.5) for centre in centres])
    for n in range(60):
        if n == 8:  # begin anew, as where the metric is found
            for centre, told in zip(centres, meeting.tell(), strict=True):
                centre.follow(told)
            meeting = Meeting(meeting.z, Link(), [centre.open(False, 0.5) for centre in centres])
        moves = []
        for engine, centre, mine, told in zip(engines, centres, reads, meeting.tell(), strict=True):
            centre.follow(told)
            np.testing.assert_array_equal(centre.z[mine], meeting.z[mine])
            np.testing.assert_array_equal(engine.weights[mine], meeting.z[mine])
            sweeps = centre._sweeps
            at, rho, v = sweeps.members, sweeps.rho, sweeps.pull / sweeps.rho
            assert mine[at].all()
            centre.aim()
            u = engine.sums()
            np.testing.assert_allclose(
                engine.weights[at], 2 * centre.z[at] - v + u[at] / rho, rtol=1e-4, atol=1e-5
            )
            # Shares that answer linearly, so that there is a fixed point.
            wanted = np.where(mine & (rng.random(size) < 0.1 * (n < 12)), 0.5, 0.0)
            wanted[at] -= 0.2 * (v + u[at])
            engine.receive(wanted.astype(dtype))
            moves.append(centre.take(1.6))
        meeting.add(moves, 1.6)
        u = sum(engine.sums().astype(float) for engine in engines)
        total, stiffness = np.zeros(size), np.zeros(size)
        for centre in centres:
            total[centre._sweeps.members] += centre._sweeps.pull
            stiffness[centre._sweeps.members] += centre._sweeps.rho
        at = meeting.active
        np.testing.assert_allclose(meeting.pull, total[at], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(meeting.stiffness, stiffness[at], rtol=1e-6)
        assert not np.delete(u, at).any()
        assert meeting.conjugate == pytest.approx(0.5 * u @ u, rel=0.02, abs=0.02)
    assert meeting.residual < 1e-2
    assert meeting.conjugate == pytest.approx(0.5 * u @ u, rel=1e-3, abs=1e-5)


def test_messages_that_do_not_fit_are_refused():
    engine = flat_engine()
    centre = Centre(engine)
    centre.open(True, 0.5)
    places, codes = np.arange(3, dtype=np.uint32), np.zeros(3, np.uint16)
    for bad in (
        Agreed(places, Codes(codes[:2], 0)),
        Agreed(places + 10, Codes(codes, 0)),
        Agreed(places, Codes(codes, 300)),
        Agreed(places, Codes(codes, -1)),
        NOTHING._replace(exact=np.zeros(5)),
    ):
        with pytest.raises(ValueError, match=r"z|weight|scale"):
            centre.follow(bad)
    centre.follow(Agreed(places, Codes(codes, 0)))
    with pytest.raises(ValueError, match="z"):
        centre.follow(NOTHING)
    total = np.zeros(2)
    with pytest.raises(ValueError, match="none of all shares"):
        _native.add_told(total, places, codes, 0)
    with pytest.raises(ValueError, match="other weights"):
        _native.add_told(total, places[:2], codes, 0)
    with pytest.raises(ValueError, match="one length"):
        _native.hold(Link().native(), total, total, np.zeros(3), 1.0, total.copy())
    with pytest.raises(ValueError, match="between 0 and 2"):
        centre.take(2.0)
