"""Rounds of consensus: shares, the z of all of them, and what they tell each other."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import L2, ElasticNet, Nonnegative, SequenceTagger, _native
from maxmargin.distributed.agreeing import Agreeing
from maxmargin.distributed.consensus import Agreed, Member, Moved, Opening, Places, Reads
from maxmargin.distributed.coordinator import Coordinator
from maxmargin.distributed.features import finish, merge
from maxmargin.distributed.group import InProcess
from maxmargin.distributed.held import HeldSequences, Reading
from maxmargin.distributed.meeting import Meeting
from maxmargin.distributed.messages import Codes
from maxmargin.errors import ConvergenceWarning
from maxmargin.links import Link
from maxmargin.solvers import SDM, solve
from native_problems import flat_problem, native_python_problem

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
NONE = Places(np.empty(0, np.uint32), np.empty(0, np.uint64))
ROW = np.zeros(1, np.uint32)


def places(lanes):
    """Return weights of the first chunk, given as bits."""
    return Places(np.zeros(1, np.uint32), np.array([lanes], np.uint64))


def meeting_of(link, openings, n_weights=4):
    """Return a meeting of two shares with one row, who begin with these u_k and metrics."""
    meeting = Meeting(link, n_weights, [Reads(ROW, n_weights)] * len(openings), "float64")
    moves = []
    for code, lanes, sums in openings:
        joined = places(lanes) if lanes else NONE
        opening = Opening(np.array([code], np.uint8), joined, np.array(sums, np.float32))
        codes = Codes(np.zeros(len(sums), np.uint16), 0)
        moves.append(Moved(codes, NONE, 0.0, opening, 0.0, 0.0))
    meeting.add(moves, 1.8, True)
    return meeting


def rho_of(code):
    return 2 ** ((code - 1) / 8)


@pytest.mark.parametrize("name", LINKS)
def test_z_is_the_minimum(name):
    link, rng = LINKS[name], np.random.default_rng(0)
    rest = link.weights(np.zeros(4))
    for _ in range(20):
        codes, sums = rng.integers(1, 40, size=2), rng.normal(size=(2, 4)).astype(np.float32)
        meeting = meeting_of(link, [(c, 15, u) for c, u in zip(codes, sums, strict=True)])
        stiffness = rho_of(codes).sum() * np.ones(4)
        pull = stiffness * rest + sums.astype(float).sum(axis=0)
        assert meeting.conjugate == pytest.approx(link.conjugate(pull - stiffness * rest), abs=1e-5)
        meeting.place_held()
        z = np.clip(meeting.native.values(), link.least, link.most)

        def value(w, pull=pull, stiffness=stiffness):
            return link.penalty(w) + 0.5 * stiffness @ (w * w) - pull @ w

        assert meeting.penalty == pytest.approx(link.penalty(z), abs=1e-9)
        for j in range(4):
            for step in (-1e-3, 1e-3, -0.1, 0.1):
                other = z.copy()
                other[j] += step
                assert value(other) >= value(z) - 1e-6


@pytest.mark.parametrize("largest", [1e-24, 1.0, 7e30])
def test_two_bytes_tell_eleven_bits(largest):
    rng = np.random.default_rng(0)
    x = largest * np.ldexp(rng.uniform(-1, 1, size=8), -rng.integers(0, 30, size=8))
    x[:2] = largest, -largest
    meeting = meeting_of(Link(), [(1, 255, x), (1, 0, [])], n_weights=8)
    (one, other) = meeting.tell()
    assert one.joined.lanes.tolist() == other.joined.lanes.tolist() == [255]
    told = meeting.native.values()
    # R is the metric of the one share that takes part.
    np.testing.assert_allclose(told, x.astype(np.float32) / 2, rtol=2.0**-10, atol=largest * 1e-9)
    assert one.change.nbytes == 16


def test_changes_that_are_not_finite_are_refused():
    for bad in (np.inf, np.nan):
        with np.errstate(over="ignore"), pytest.raises(ValueError, match="not finite"):
            meeting_of(Link(), [(1, 3, [1.0, bad]), (1, 0, [])])


def test_weights_that_nobody_takes_part_in():
    """They are at link(0), which is not 0 where the bounds leave that out."""
    link = Link(least=np.array([0.5, -1.0, 0.25, -2.0]), scale=np.array([1.0, 2.0, 0.5, 1.0]))
    meeting = meeting_of(link, [(1, 2, [1.0]), (1, 0, [])])
    told = meeting.tell()
    assert [one.joined.lanes.tolist() for one in told] == [[2], [2]]
    assert [len(one.change.values) for one in told] == [1, 1]
    model = meeting.model([(np.empty(0, np.uint32), np.empty(0))] * 2)
    assert model[[0, 2, 3]].tolist() == [0.5, 0.25, 0.0]
    assert model[1] > 0
    assert meeting.penalty == pytest.approx(link.penalty(model))
    # Shares that were made anew are told of it once more.
    assert [one.joined.nbytes for one in meeting.tell()] == [0, 0]
    meeting.forget()
    assert [one.joined.lanes.tolist() for one in meeting.tell()] == [[2], [2]]


def test_z_that_is_certified_has_no_rounding():
    """Zeros and bounds that messages only come near to are there."""
    link = Link(lower=-0.5, upper=0.5, least=np.array([-9.0, -9.0, -9.0, 0.1]))
    meeting = meeting_of(link, [(9, 15, [0.4, -0.3, 3.0, -5.0]), (17, 15, [0.0, 0.0, 0.1, 0.0])])
    meeting.place_held()
    z = meeting.native.values()
    assert z[[0, 1, 3]].tolist() == [0.0, 0.0, 0.1]
    shown = meeting.shown()
    np.testing.assert_array_equal(shown[0].values, z)
    assert meeting.penalty == pytest.approx(link.penalty(z))


def flat_engine(seed=0, n=20, C=0.5):
    """Return an engine of 12 weights, of which every example reads all."""
    problem = native_python_problem(*flat_problem(np.random.default_rng(seed), n=n))
    return SDM().start(problem, C, L2(), False)


def test_the_metric_is_that_of_the_planes():
    engine, C = flat_engine(), 0.5
    for _ in range(3):
        engine.exact_pass(np.arange(20, dtype=np.uint32), _native.PassOptions())
    _, _, alpha, indptr, _, values = engine.planes()
    h = C * (np.repeat(alpha, np.diff(indptr)) * values**2).sum()
    own = engine.own_sums()
    member = Member(engine)
    assert member.reads().rows.tolist() == [0]
    member.native.share(np.ones(1, np.uint8))
    opened = member.open(C, 8.0)
    lanes = np.flatnonzero(np.unpackbits(opened.joined.lanes.view(np.uint8), bitorder="little"))
    assert lanes.size == np.count_nonzero(own) == opened.sums.size
    np.testing.assert_allclose(opened.sums, own[own != 0], rtol=1e-6)
    rho = max(1.0, 8 * np.sqrt(h / 2))
    assert rho > 1
    assert rho_of(float(opened.metric[0])) == pytest.approx(rho, rel=0.05)


def test_messages_that_do_not_fit_are_refused():
    engine = flat_engine()
    member = Member(engine)
    with pytest.raises(ValueError, match="other rows"):
        member.native.share(np.ones(2, np.uint8))
    member.native.share(np.ones(1, np.uint8))
    member.open(0.5, 8.0)
    codes = np.zeros(3, np.uint16)
    for bad in (
        Agreed(places(7), Codes(codes[:2], 0)),
        Agreed(Places(np.array([9], np.uint32), np.array([1], np.uint64)), Codes(codes[:1], 0)),
        Agreed(places(2**63), Codes(codes[:1], 0)),
        Agreed(Places(ROW, np.empty(0, np.uint64)), Codes(codes, 0)),
        Agreed(places(7), Codes(codes, 300)),
        Agreed(places(7), Codes(codes, -1)),
    ):
        fresh = Member(flat_engine())
        fresh.native.share(np.ones(1, np.uint8))
        with pytest.raises(ValueError, match=r"z|weight|scale"):
            fresh.follow(bad, False)
    member.follow(Agreed(places(7), Codes(codes, 0)), False)
    with pytest.raises(ValueError, match="near by"):
        member.native.place(*NONE, np.zeros(5))
    with pytest.raises(ValueError, match="between 0 and 2"):
        member.native.take(2.0)
    for C, steepness in ((np.nan, 8.0), (0.0, 8.0), (0.5, np.nan), (0.5, -1.0)):
        with pytest.raises(ValueError, match="C must be positive and finite, the steepness not"):
            Member(flat_engine()).open(C, steepness)
    with pytest.raises(ValueError, match="the metric must be steep"):
        member.measure(-1.0)
    meeting = meeting_of(Link(), [(1, 3, [1.0, 2.0]), (1, 0, [])])
    with pytest.raises(ValueError, match="other weights"):
        meeting.native.add(0, *NONE, codes, 0)
    with pytest.raises(ValueError, match="none of all shares"):
        meeting.native.add(0, *places(2**40), codes, 0)
    with pytest.raises(ValueError, match="ascending"):
        Meeting(Link(), 8, [Reads(np.array([1, 0], np.uint32), 4)], "float64")


# ---- shares with rows of their own ----

N = 90


def sentences():
    """Words that all shares read, that two of three do, and that one does; a label of the last."""
    rng = np.random.default_rng(3)
    X, y = [], []
    for i in range(N):
        words = [f"w{k}" for k in rng.integers(0, 12, rng.integers(2, 7))]
        words += [f"own{i // 30}"] if i % 3 == 0 else []
        words += ["two"] if i < 60 and i % 5 == 0 else []
        X.append([[f"w={word}", f"s={word[-1]}"] for word in words])
        y.append([f"L{(int(w[1:]) if w[1:].isdigit() else 1) % 3}" for w in words])
    for labels in y[::4]:
        labels[0] = "L0"
    y[-1][0] = "RARE"
    return X, y


def group_of(K, regularizer=None, dtype="float32"):
    """Return shares as workers make them."""
    X, y = sentences()
    pairs = list(zip(X, y, strict=True))
    tagger = SequenceTagger(C=0.5, regularizer=regularizer, dtype=dtype)

    def held(k):
        return HeldSequences(tagger, Reading(), k, pairs[N * k // K : N * (k + 1) // K])

    told = [held(k).told() for k in range(K)]
    for other in told[1:]:
        told[0] = merge(told[0], other)
    summary, models = finish(told[0], 1, None), []

    def make(k):
        one = held(k)
        one.adopt(summary, N, K > 1)
        models.append(one.model())
        return one.share

    return InProcess(make, K), *models[0]


def coordinator_of(group, regularizer, **options):
    return Coordinator(group, SDM(), C=0.5, regularizer=regularizer, **options)


REGULARIZERS = {
    "l2": None,
    "net": ElasticNet(l1_ratio=0.3),
    "some": Nonnegative(where=np.arange(0, 40, 3)),
}


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("name", REGULARIZERS)
def test_own_rows_and_rows_of_two_shares(name, K):
    group, structure, regularizer = group_of(K, REGULARIZERS[name])
    X, y = sentences()
    problem = structure.make_problem(X, y)
    size = {share.found().n_weights for share in group.shares}
    assert len(size) == 1
    assert all(share.engine.n_weights < max(size) for share in group.shares)
    run = coordinator_of(group, regularizer, gap=1e-3, max_rounds=500)
    found = run.run()
    assert found.converged
    assert isinstance(run.way, Agreeing)
    # One engine with all examples says the same of these weights, and of these multipliers.
    engine = _native.Engine(problem, 0.5, True, True, link=regularizer.link.native())
    assert len(found.weights) == engine.n_weights
    assert engine.primal_of(found.weights) == pytest.approx(found.certificate.primal, rel=1e-9)
    whole = solve(problem, SDM(), C=0.5, regularizer=regularizer, gap=1e-3, random_state=0)
    assert found.certificate.primal >= whole.certificate.dual * (1 - 1e-6)
    assert found.certificate.dual <= whole.certificate.primal * (1 + 1e-6)
    # Which rows are shared.
    features = list(structure.encoder.feature_names())
    common = dict.fromkeys(features, 0)
    for reads, flags in zip(run.way.reads, run.way.meeting.common(), strict=True):
        for row, flag in zip(reads.rows.tolist(), flags.tolist(), strict=True):
            if row < len(features):
                common[features[row]] += 1
                assert flag in (0, 1)
    assert common["w=w1"] == K
    assert common["w=own2"] == 1
    assert common["w=two"] == 2
    assert run.way.meeting.native.n_shared < structure.layout.n_rows
    own = structure.unpack(structure.native_weights(found.weights)).coef[features.index("w=own2")]
    assert np.any(own != 0)


def test_all_shares_have_the_z_of_the_coordinator():
    """To the bit, and z in the place of the w at which they begin."""
    group, structure, regularizer = group_of(3, dtype="float64")
    run = coordinator_of(group, regularizer, gap=0.0, max_rounds=8)
    seen = []

    def look(record):
        if record.n_pass < 8:
            return
        meeting = run.way.meeting
        told, common = meeting.tell(), meeting.common()
        z = meeting.model([(np.empty(0, np.uint32), np.empty(0))] * 3)
        z = z.reshape(structure.layout.n_rows, -1)
        for k, share in enumerate(group.shares):
            share.member.follow(told[k], True)
            rows = share.member.native.reads()[0][common[k] == 1]
            w = np.array(share.engine.weights).reshape(-1, z.shape[1])
            np.testing.assert_array_equal(w[rows], z[share.rows[rows]])
            seen.append(np.count_nonzero(w[rows]))

    run.callbacks = [look]
    with pytest.warns(ConvergenceWarning):
        run.run()
    assert len(seen) == 3
    assert min(seen) > 0


def test_the_dual_that_is_told_is_that_of_the_multipliers():
    group, _, regularizer = group_of(3, dtype="float64")
    run = coordinator_of(group, regularizer, gap=0.0, max_rounds=20)
    with pytest.warns(ConvergenceWarning):
        found = run.run()
    told = found.history[-2].dual
    assert told <= found.certificate.primal
    with pytest.warns(ConvergenceWarning):
        again = coordinator_of(
            group_of(3, dtype="float64")[0], regularizer, gap=0.0, max_rounds=19
        ).run()
    # What messages round away is told later.
    assert again.certificate.dual == pytest.approx(told, rel=1e-3)


@pytest.mark.parametrize("reported", [False, True])
@pytest.mark.parametrize("at", [1, 4, 7])
def test_a_lost_share_comes_back(at, reported):
    group, structure, regularizer = group_of(3)
    run = coordinator_of(
        group, regularizer, gap=1e-3, max_rounds=800, checkpoint_seconds=0.0 if reported else 1e9,
        callbacks=[lambda record: group.lose(1) if record.n_pass == at else None],
    )
    found = run.run()
    assert run.faults == 1
    assert found.converged
    engine = _native.Engine(structure.make_problem(*sentences()), 0.5, True, True)
    assert engine.primal_of(found.weights) == pytest.approx(found.certificate.primal, rel=1e-9)


@pytest.mark.parametrize("max_rounds", [4, 800])
def test_a_share_that_is_lost_behind_its_certificate(max_rounds, tmp_path):
    """What is returned is certified, and not what a share has that was made anew."""
    group, structure, regularizer = group_of(3)
    asked, call, call_one = [], group.call, group.call_one

    def losing(method):
        # The weights of the model are asked for, and the last report of all shares.
        if method in ("own_weights", "state"):
            asked.append(method)
            if asked.count(method) == 1:
                group.lose(0)

    def watched(method, *common, each=None):
        losing(method)
        return call(method, *common, each=each)

    def watched_one(k, method, *args):
        losing(method)
        return call_one(k, method, *args)

    group.call, group.call_one = watched, watched_one
    run = coordinator_of(
        group, regularizer, gap=1e-2, max_rounds=max_rounds, warn=False,
        checkpoint=tmp_path / "run.npz", checkpoint_seconds=1e9,
    )
    found = run.run()
    assert run.faults == 2
    assert found.converged is (max_rounds > 4)
    engine = _native.Engine(structure.make_problem(*sentences()), 0.5, True, True)
    assert engine.primal_of(found.weights) == pytest.approx(found.certificate.primal, rel=1e-9)


@pytest.mark.parametrize("at", [1, 2, 6])
def test_an_interrupted_round_leaves_a_model(at):
    """Also where some shares have made the round and others have not."""
    group, structure, regularizer = group_of(3)
    run = coordinator_of(group, regularizer, gap=1e-6, max_rounds=50)
    meet, calls = group.shares[1].meet, []

    def interrupted(*args):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return meet(*args)

    group.shares[1].meet = interrupted
    found = run.run()
    assert found.stop_reason.startswith("interrupted")
    engine = _native.Engine(structure.make_problem(*sentences()), 0.5, True, True)
    assert engine.primal_of(found.weights) == pytest.approx(found.certificate.primal, rel=1e-9)
    assert found.certificate.dual <= found.certificate.primal


@pytest.mark.parametrize("K", [1, 2, 5])
def test_a_run_goes_on_with_another_number_of_shares(tmp_path, K):
    file = tmp_path / "run.npz"
    group, _, regularizer = group_of(3)
    with pytest.warns(ConvergenceWarning):
        first = coordinator_of(
            group, regularizer, gap=0.0, max_rounds=7, checkpoint=file
        ).run()
    group, structure, regularizer = group_of(K)
    again = coordinator_of(group, regularizer, gap=1e-3, checkpoint=file, resume=True)
    assert again.dual == pytest.approx(first.certificate.dual, rel=1e-9)
    found = again.run()
    assert found.converged
    engine = _native.Engine(structure.make_problem(*sentences()), 0.5, True, True)
    assert engine.primal_of(found.weights) == pytest.approx(found.certificate.primal, rel=1e-9)
