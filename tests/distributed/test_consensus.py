"""Rounds of consensus: centres, their mixing, and the z of all shares."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.distributed.consensus import LEAST, Centre, metric_of
from maxmargin.distributed.meeting import Meeting, held_weights
from maxmargin.distributed.mixing import Memory, Mixing
from maxmargin.links import Link

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


@pytest.mark.parametrize("name", LINKS)
def test_z_is_the_minimum(name):
    link, rng = LINKS[name], np.random.default_rng(0)
    for _ in range(20):
        pull, stiffness = 3 * rng.normal(size=4), rng.uniform(0, 4, size=4)
        z = held_weights(link, pull, stiffness)

        def value(w, pull=pull, stiffness=stiffness):
            return link.penalty(w) + 0.5 * stiffness @ (w * w) - pull @ w

        assert np.isfinite(value(z))
        for j in range(4):
            for step in (-1e-4, 1e-4, -0.1, 0.1):
                other = z.copy()
                other[j] += step
                assert value(other) >= value(z) - 1e-12


def test_without_shares_z_is_the_link():
    for link in LINKS.values():
        none = np.zeros(4)
        np.testing.assert_allclose(held_weights(link, none, none), link.weights(none))


def test_mixing_solves_a_linear_map_in_pieces():
    """m differences solve a linear fixed-point equation in m + 1 dimensions, whoever has them."""
    rng = np.random.default_rng(1)
    size, metric = 6, rng.uniform(0.5, 2, 6)
    matrix = rng.normal(size=(size, size))
    matrix *= 0.9 / np.abs(np.linalg.eigvals(matrix)).max()
    shift = rng.normal(size=size)
    solution = np.linalg.solve(np.eye(size) - matrix, shift)
    pieces = [slice(0, 2), slice(2, 6)]
    memories, mixing = [Memory(8), Memory(8)], Mixing()
    mixing.GROWN = np.inf
    v, last = np.zeros(size), np.zeros(size)
    for _ in range(size + 3):
        after = matrix @ v + shift
        for memory, piece in zip(memories, pieces, strict=True):
            memory.add((after - last)[piece], (after - v)[piece], None)
        last = after
        gamma = mixing.decide(
            sum(m.products(metric[p]) for m, p in zip(memories, pieces, strict=True))
        )
        v = np.concatenate(
            [m.mixed(after[p], gamma) for m, p in zip(memories, pieces, strict=True)]
        )
    np.testing.assert_allclose(v, solution, rtol=1e-3, atol=1e-3)


def test_a_residual_that_grows_ends_the_memory():
    mixing = Mixing()
    assert mixing.decide(np.array([[1.0]])) == ()
    assert mixing.decide(np.array([[1.0, 0.5], [0.5, 1.0]])) == pytest.approx((0.5,))
    assert mixing.decide(np.array([[1.0, 0.5], [0.5, 100.0]])) is None
    assert mixing.decide(np.array([[100.0]])) == ()


def test_the_metric_is_that_of_the_planes():
    planes = (
        np.array([0, 0]), np.ones(2), np.array([0.25, 0.5]), np.array([0, 2, 3]),
        np.array([1, 2, 1]), np.array([1.0, -2.0, 30.0]),
    )
    rho = metric_of(planes, 4.0, 4)
    assert rho[0] == rho[3] == LEAST
    assert rho[1] == pytest.approx(rho[2] * np.sqrt((0.25 + 450.0) / 1.0), rel=1e-6)


def test_weights_that_nobody_takes_part_in():
    """They are at link(0), which is not 0 where the bounds leave that out."""
    link = Link(least=np.array([0.5, -1.0, 0.25, -2.0]), scale=np.array([1.0, 2.0, 0.5, 1.0]))
    z = np.array([0.0, 0.5, 0.0, 0.25], np.float32)
    centre = Centre(z.copy(), np.array([0.0, 1.0, 0.0, 0.0]), np.full(4, 2.0))
    meeting = Meeting(z, link, [centre.opening()])
    assert meeting.active.tolist() == [1]
    assert meeting.z[[0, 2, 3]].tolist() == [0.5, 0.25, 0.0]
    centre.follow(meeting.change)
    np.testing.assert_array_equal(centre.z, meeting.z)
    assert meeting.penalty == pytest.approx(link.penalty(meeting.z))
    u = np.array([0.0, 1.0, 3.0, 0.0])
    centre.mix(meeting.gamma)
    meeting.add([centre.take(u, 1.0)], 1.0)
    assert meeting.active.tolist() == [1, 2]
    np.testing.assert_allclose(meeting.sums, u[[1, 2]], atol=1e-6)
    assert meeting.conjugate == pytest.approx(link.conjugate(u))
    assert meeting.penalty == pytest.approx(link.penalty(meeting.z))


def test_coordinator_and_shares_agree_on_every_centre():
    """What shares have as v_k, and the sum of u_k, are what the coordinator makes of messages."""
    rng, size, K = np.random.default_rng(2), 30, 3
    owns = [np.where(rng.random(size) < 0.4, rng.normal(size=size), 0.0) for _ in range(K)]
    rho = [1 + np.float32(rng.uniform(0, 4, size)).astype(float) for _ in range(K)]
    z = np.zeros(size, np.float32)
    centres = [Centre(z.copy(), own, r) for own, r in zip(owns, rho, strict=True)]
    meeting = Meeting(z, Link(), [centre.opening() for centre in centres])
    for n in range(25):
        moves = []
        for k, centre in enumerate(centres):
            centre.follow(meeting.change)
            np.testing.assert_array_equal(
                centre.level(), (centre.z * centre.rho_of_all).astype(np.float32)
            )
            centre.mix(meeting.gamma)
            # Shares that answer linearly, so that there is a fixed point.
            wanted = np.where(rng.random(size) < 0.1 * (n < 5), 0.5, 0.0)
            wanted[centre.members] -= 0.2 * (centre.v + centre.own)
            owns[k] = owns[k] + wanted.astype(np.float32)
            moves.append(centre.take(owns[k], 1.6))
        np.testing.assert_array_equal(meeting.z, centres[0].z)
        meeting.add(moves, 1.6)
        at = meeting.active
        np.testing.assert_allclose(meeting.sums, sum(owns)[at], atol=1e-4)
        assert meeting.conjugate == pytest.approx(Link().conjugate(sum(owns)), abs=1e-3)
        assert not np.delete(sum(np.abs(own) for own in owns), at).any()
        total, stiffness = np.zeros(size), np.zeros(size)
        for centre in centres:
            total[centre.members] += centre.pull
            stiffness[centre.members] += centre.rho
        np.testing.assert_allclose(meeting.pull, total[at], atol=1e-5)
        np.testing.assert_allclose(meeting.stiffness, stiffness[at], rtol=1e-6)
        mixed = np.zeros(size)
        for centre in centres:
            v = centre.pull / centre.rho
            if meeting.gamma:
                v = centre.memory.mixed(v, meeting.gamma)
            mixed[centre.members] += centre.rho * v
        np.testing.assert_allclose(meeting.mixed, mixed[at], atol=1e-3)
