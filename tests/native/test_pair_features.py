"""Features of a token and two labels: decoding, training and the Python methods, by enumeration."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qp_reference
from maxmargin import _native
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.solvers import SDM, make_solver, solve
from maxmargin.structures import Chain
from native_problems import (
    FEATURES,
    ChainCase,
    ChainPlanes,
    check_state,
    converge,
    everyone,
    random_case,
)
from reference_chain import ReferenceChain, dense_tokens, labels_of

PRECISIONS = [pytest.param(True, id="float32"), pytest.param(False, id="float64")]
SEEDS = st.integers(0, 2**32 - 1)
SHORT = st.lists(st.integers(1, 4), min_size=1, max_size=4)


# --- the reference ---


class PairChain(ReferenceChain):
    """A chain with pair features, the last `n_pair` columns of x.

    f has e(y_{t-1}) ⊗ e(y_t) for each pair feature of each token but the first; [g][L][L], last.
    """

    def __init__(self, n_labels, n_token_features, n_pair, cost=None):
        super().__init__(n_labels, n_token_features, cost)
        self.n_pair, self.n_plain = n_pair, self.n_features
        self.n_features += n_pair * n_labels * n_labels

    def split(self, w):
        return super().split(w[: self.n_plain])

    def pairs(self, w):
        return w[self.n_plain :].reshape(self.n_pair, self.n_labels, self.n_labels)

    def joint_feature(self, x, y):
        d, labels = self.n_token_features, labels_of(y)
        f = super().joint_feature(x[:, :d], y)
        for t in range(1, len(labels)):
            self.pairs(f)[:, labels[t - 1], labels[t]] += x[t, d:]
        return f

    def unary(self, x, w, truth=None):
        return super().unary(x[:, : self.n_token_features], w, truth)

    def best(self, x, w, truth=None):
        """Return (value, labels) by Viterbi with transitions of each token."""
        unary, transition = self.unary(x, w, truth), self.split(w)[1]
        best, back = unary[0], []
        for t in range(1, len(unary)):
            extra = np.tensordot(x[t, self.n_token_features :], self.pairs(w), axes=1)
            reach = best[:, None] + transition + extra
            back.append(reach.argmax(axis=0))
            best = reach.max(axis=0) + unary[t]
        labels = [int(best.argmax())]
        for pointers in reversed(back):
            labels.append(int(pointers[labels[-1]]))
        return float(best.max()), np.array(labels[::-1])


@dataclasses.dataclass
class PairCase(ChainCase):
    @property
    def n_rows(self):
        chain = self.reference
        return chain.n_token_features + chain.n_labels + 2 + chain.n_pair * chain.n_labels


def pair_case(rng, *, n_pair=4, per_pair=2, **options):
    """A random batch with pair features."""
    case = random_case(rng, **options)
    tokens = len(case.arrays["labels"])
    has = rng.random((tokens, n_pair)).argsort(axis=1) < rng.integers(0, per_pair + 1, (tokens, 1))
    arrays = {
        **case.arrays,
        "n_pair": n_pair,
        "pair_indptr": np.concatenate([[0], np.cumsum(has.sum(axis=1))]).astype(np.int64),
        "pair_indices": np.nonzero(has)[1].astype(np.uint32),
    }
    chain = case.reference
    reference = PairChain(chain.n_labels, chain.n_token_features, n_pair, arrays.get("cost"))
    blocks = np.split(has.astype(float), case.arrays["offsets"][1:-1])
    X = [np.hstack([dense_tokens(x), z]) for x, z in zip(case.X, blocks, strict=True)]
    return PairCase(reference, X, case.Y, arrays)


def draw_weights(case, rng, single):
    """Random weights for the reference, exact in 4 bytes if they must be, and the native ones."""
    w = rng.normal(size=case.reference.n_features)
    if single:
        w = w.astype(np.float32).astype(float)
    return w, case.weights(w, single)


def sparse_weights(case, w, label_type=np.uint32):
    """The same weights in the form in which most are zero; pair features are in the tail."""
    L, n_sparse = case.n_labels, case.arrays["n_sparse"]
    rows = w.reshape(case.n_rows, L).astype(np.float32)
    feature, labels = np.nonzero(rows[:n_sparse])
    counts = np.bincount(feature, minlength=n_sparse)
    return _native.SparseWeights(
        L,
        np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32),
        labels.astype(label_type),
        rows[feature, labels],
        rows[n_sparse:].ravel(),
    )


def allowed_outputs(outputs, masks):
    transition = masks["transition"].reshape(len(masks["start"]), -1)
    good = (masks["start"][outputs[:, 0]] != 0) & (masks["end"][outputs[:, -1]] != 0)
    for a, b in itertools.pairwise(outputs.T):
        good &= transition[a, b] != 0
    return good


def random_masks(rng, n_labels):
    """Masks that leave a labelling of any length: label 0 may do everything."""
    masks = {
        "transition": (rng.random((n_labels, n_labels)) < 0.6).astype(np.uint8),
        "start": (rng.random(n_labels) < 0.6).astype(np.uint8),
        "end": (rng.random(n_labels) < 0.6).astype(np.uint8),
    }
    masks["transition"][0, 0] = masks["start"][0] = masks["end"][0] = 1
    return {name: mask.ravel() for name, mask in masks.items()}


def check_decoding(case, w, weights, rng, *, tolerance, threads=1):
    """Compare all that decoding says with all labellings."""
    chain, problem = case.reference, case.problem()
    close = {"rtol": tolerance, "atol": tolerance}
    labels, scores = problem.predict(weights, threads)
    marginals = problem.max_marginals(weights, threads).reshape(-1, case.n_labels)
    best = problem.kbest(weights, 4, threads)
    given_labels = rng.integers(0, case.n_labels, len(labels)).astype(np.int32)
    given_scores = problem.score(weights, given_labels, threads)
    masks = random_masks(rng, case.n_labels)
    _, masked_scores = masked = problem.predict(weights, threads, **masks)
    masked_best = problem.kbest(weights, 4, threads, **masks)
    hinge = 0.0
    parts = map(case.per_sequence, (labels, marginals, given_labels, masked[0]))
    for i, (y, marginal, other, masked_y) in enumerate(zip(*parts, strict=True)):
        x, truth = case.X[i], case.Y[i]
        values, outputs = chain.all_values(x, w), chain.all_outputs(len(x))
        np.testing.assert_allclose(scores[i], values.max(), **close)
        np.testing.assert_allclose(w @ chain.joint_feature(x, y), values.max(), **close)
        np.testing.assert_allclose(given_scores[i], w @ chain.joint_feature(x, other), **close)
        for t, label in np.ndindex(marginal.shape):
            wanted = values[outputs[:, t] == label].max()
            np.testing.assert_allclose(marginal[t, label], wanted, **close)
        allowed = allowed_outputs(outputs, masks)
        np.testing.assert_allclose(masked_scores[i], values[allowed].max(), **close)
        assert allowed_outputs(masked_y[None], masks).all()
        for paths, which in ((best[i], slice(None)), (masked_best[i], allowed)):
            wanted = np.sort(values[which])[::-1][:4]
            np.testing.assert_allclose([score for score, _ in paths], wanted, **close)
            assert len({path.tobytes() for _, path in paths}) == len(paths)
            for score, path in paths:
                np.testing.assert_allclose(w @ chain.joint_feature(x, path), score, **close)
        assert all(allowed_outputs(path[None], masks).all() for _, path in masked_best[i])
        true_score = w @ chain.joint_feature(x, labels_of(truth))
        hinge += max(0.0, chain.all_values(x, w, truth).max() - true_score)
    np.testing.assert_allclose(problem.hinge(weights, threads), hinge, **close)


# --- decoding ---


@settings(max_examples=40, deadline=None)
@given(
    seed=SEEDS,
    features=st.sampled_from(FEATURES),
    n_labels=st.integers(1, 4),
    lengths=SHORT,
    single=st.booleans(),
    weighted=st.booleans(),
    threads=st.integers(1, 3),
)
def test_against_enumeration(*, seed, features, n_labels, lengths, single, weighted, threads):
    rng = np.random.default_rng(seed)
    case = pair_case(
        rng, n_labels=n_labels, lengths=lengths, features=features, cost=weighted, weighted=weighted
    )
    w, weights = draw_weights(case, rng, single)
    tolerance = 1e-4 if single else 1e-9
    check_decoding(case, w, weights, rng, tolerance=tolerance, threads=threads)


@settings(max_examples=30, deadline=None)
@given(
    seed=SEEDS,
    features=st.sampled_from(FEATURES),
    n_labels=st.integers(1, 4),
    lengths=SHORT,
    label_type=st.sampled_from([np.uint8, np.uint16, np.uint32]),
)
def test_sparse_weights_against_enumeration(*, seed, features, n_labels, lengths, label_type):
    rng = np.random.default_rng(seed)
    case = pair_case(rng, n_labels=n_labels, lengths=lengths, features=features)
    w, full = draw_weights(case, rng, single=True)
    sparse = sparse_weights(case, w, label_type)
    np.testing.assert_array_equal(sparse.dense(), full)
    check_decoding(case, w, sparse, rng, tolerance=1e-4)


@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("n_labels", [1, 7, 8, 9, 33])
@pytest.mark.parametrize("kernels", ["baseline", "avx2"])
def test_whatever_the_padding_and_the_kernels(n_labels, single, kernels):
    before = _native.vector_code_name()
    try:
        _native.select_vector_code(kernels)
    except ValueError:
        pytest.skip(f"this machine has no {kernels}")
    try:
        rng = np.random.default_rng(n_labels)
        case = pair_case(rng, n_labels=n_labels, lengths=(30, 1, 12), n_pair=5, features="values")
        w, weights = draw_weights(case, rng, single)
        close = {"rel": 1e-4 if single else 1e-10}
        for form in [weights, *([sparse_weights(case, w)] if single else [])]:
            labels, scores = case.problem().predict(form)
            hinge = 0.0
            for i, y in enumerate(case.per_sequence(labels)):
                x, truth = case.X[i], case.Y[i]
                best, path = case.reference.best(x, w)
                assert scores[i] == pytest.approx(best, **close)
                np.testing.assert_array_equal(y, path)
                score = w @ case.reference.joint_feature(x, labels_of(truth))
                hinge += case.reference.best(x, w, truth)[0] - score
            assert case.problem().hinge(form) == pytest.approx(hinge, **close)
    finally:
        _native.select_vector_code(before)


@pytest.mark.parametrize("single", PRECISIONS)
def test_threads_change_nothing(single):
    rng = np.random.default_rng(0)
    case = pair_case(rng, n_labels=9, lengths=rng.integers(1, 15, 40))
    _, weights = draw_weights(case, rng, single)
    problem, masks = case.problem(), random_masks(rng, 9)
    labels = rng.integers(0, 9, len(case.arrays["labels"])).astype(np.int32)

    def answers(threads):
        best = problem.kbest(weights, 3, threads, **masks)
        return [
            *problem.predict(weights, threads),
            *problem.predict(weights, threads, **masks),
            problem.max_marginals(weights, threads),
            problem.score(weights, labels, threads),
            np.array(problem.hinge(weights, threads)),
            np.array([score for paths in best for score, _ in paths]),
            np.concatenate([path for paths in best for _, path in paths]),
        ]

    for threads in (2, 3):
        for one, many in zip(answers(1), answers(threads), strict=True):
            np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize("single", PRECISIONS)
def test_without_pair_features_nothing_changes(single):
    rng = np.random.default_rng(1)
    plain = random_case(rng, n_labels=3, lengths=(4, 1, 6))
    tokens = len(plain.arrays["labels"])
    nothing = {
        "pair_indptr": np.zeros(tokens + 1, np.int64),
        "pair_indices": np.zeros(0, np.uint32),
    }
    w = rng.normal(size=plain.reference.n_features)
    wanted = plain.problem()
    weights = plain.weights(w, single)
    for n_pair in (0, 2):  # that exist, but no token has them
        extra = n_pair * 3 * _native.padded_labels(3, single)
        longer = _native.aligned_array(len(weights) + extra, single)
        longer[: len(weights)], longer[len(weights) :] = weights, 0.5
        found = plain.problem(n_pair=n_pair, **nothing)
        for a, b in zip(found.predict(longer), wanted.predict(weights), strict=True):
            np.testing.assert_array_equal(a, b)
        assert found.hinge(longer) == wanted.hinge(weights)


@pytest.mark.parametrize("single", PRECISIONS)
def test_the_first_token_has_no_label_before_it(single):
    rng = np.random.default_rng(2)
    case = pair_case(rng, n_labels=3, lengths=(1, 3, 1, 4))
    _, weights = draw_weights(case, rng, single)
    rows = case.per_sequence(np.arange(len(case.arrays["labels"])))
    ends, ids = case.arrays["pair_indptr"], case.arrays["pair_indices"]
    every = [ids[a:b] for a, b in itertools.pairwise(ends)]
    for sequence in rows:
        every[sequence[0]] = np.arange(4, dtype=np.uint32)
    other = case.problem(
        pair_indptr=np.concatenate([[0], np.cumsum([len(z) for z in every])]).astype(np.int64),
        pair_indices=np.concatenate(every),
    )
    for a, b in zip(other.predict(weights), case.problem().predict(weights), strict=True):
        np.testing.assert_array_equal(a, b)
    assert other.hinge(weights) == case.problem().hinge(weights)
    results = [
        solve(problem, make_solver("sdm"), C=0.5, gap=1e-3, random_state=0)
        for problem in (other, case.problem())
    ]
    np.testing.assert_array_equal(results[0].weights, results[1].weights)


# --- what is refused ---


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pair_indptr": None}, "go together"),
        ({"pair_indices": None}, "go together"),
        ({"pair_indptr": None, "pair_indices": None}, "without indices there must be no features"),
        ({"pair_indptr": np.array([0, 1, 3])}, "one entry more than there are tokens"),
        ({"pair_indptr": np.array([0, 1, 1, 2])}, "from 0 to the number of indices"),
        ({"pair_indptr": np.array([1, 1, 1, 3])}, "from 0 to the number of indices"),
        ({"pair_indptr": np.array([0, 2, 1, 3])}, r"must not decrease|ascending"),
        ({"pair_indptr": np.array([0, 9, 1, 3])}, "must not decrease"),
        ({"pair_indices": np.array([1, 0, 4], np.uint32)}, "ascending and below the number"),
        ({"pair_indices": np.array([1, 2, 2], np.uint32)}, "ascending and below the number"),
        ({"pair_indices": np.array([1, 3, 0], np.uint32)}, "ascending and below the number"),
        ({"n_pair": 3}, "ascending and below the number"),
        ({"n_pair": 2**32}, "more pair features"),
    ],
)
def test_bad_arguments(change, message):
    arguments = {
        "n_labels": 2,
        "n_sparse": 0,
        "offsets": np.array([0, 1, 3]),
        "n_pair": 4,
        "pair_indptr": np.array([0, 1, 1, 3]),
        "pair_indices": np.array([1, 0, 3], np.uint32),
    }
    problem = _native.ChainProblem(**arguments)
    with pytest.raises(ValueError, match=r"size|fit|weights"):
        problem.predict(_native.aligned_array(4 * _native.padded_labels(2, False), False))
    with pytest.raises(ValueError, match=message):
        _native.ChainProblem(**{**arguments, **change})


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_sparse_weights_without_enough_rows(missing):
    rng = np.random.default_rng(3)
    case = pair_case(rng, n_labels=3)
    w, _ = draw_weights(case, rng, single=True)
    counts, labels, values, tail = sparse_weights(case, w).arrays()
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    wrong = _native.SparseWeights(3, starts, labels, values, tail[: -3 * missing].copy())
    with pytest.raises(ValueError, match=r"size|fit|weights"):
        case.problem().predict(wrong)


# --- training ---


@settings(max_examples=15, deadline=None)
@given(
    seed=SEEDS,
    features=st.sampled_from(FEATURES),
    n_labels=st.integers(2, 4),
    lengths=st.lists(st.integers(1, 8), min_size=1, max_size=5),
    single=st.booleans(),
    factored=st.booleans(),
    weighted=st.booleans(),
    noise=st.sampled_from([0.2, 1.0]),
)
def test_states_are_consistent(
    *, seed, features, n_labels, lengths, single, factored, weighted, noise
):
    rng = np.random.default_rng(seed)
    case = pair_case(
        rng, n_labels=n_labels, lengths=lengths, features=features, noise=noise, cost=weighted,
        weighted=weighted,
    )  # fmt: skip
    engine = _native.Engine(case.problem(), 0.7, single=single, factored=factored)
    planes, order = ChainPlanes(case), everyone(len(lengths))
    tolerance = 1e-4 if single else 1e-9
    for _ in range(3):
        engine.exact_pass(order, _native.PassOptions(relaxation=1.2))
        check_state(engine, planes, case.unpadded, tolerance=tolerance)
        engine.cached_pass(order, _native.PassOptions(recombine=True))
        rebuilt = check_state(engine, planes, case.unpadded, tolerance=tolerance)
    best = [case.reference.best(x, rebuilt.w, y)[0] for x, y in zip(case.X, case.Y, strict=True)]
    truth = [
        rebuilt.w @ case.reference.joint_feature(x, labels_of(y))
        for x, y in zip(case.X, case.Y, strict=True)
    ]
    hinge = sum(best) - sum(truth)
    assert engine.hinge() == pytest.approx(hinge, rel=1e-4, abs=1e-3 if single else 1e-8)


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, factored=st.booleans(), weighted=st.booleans())
def test_the_engine_reaches_the_optimum(seed, factored, weighted):
    rng = np.random.default_rng(seed)
    case = pair_case(rng, n_labels=3, lengths=(3, 1, 4, 2), cost=weighted, weighted=weighted)
    best = qp_reference.solve(case.reference, case.X, case.Y, 1.0)
    engine = _native.Engine(case.problem(), 1.0, single=False, factored=factored)
    converge(engine, 4, gap=1e-8)
    w = case.unpadded(engine.weights)
    np.testing.assert_allclose(w, best.w, atol=1e-3 * (1 + np.abs(best.w).max()))
    assert 0.5 * w @ w + engine.hinge() == pytest.approx(best.primal, rel=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("schedule", ["auto", "paper", "basic"])
@pytest.mark.parametrize("seed", range(3))
def test_every_schedule_reaches_the_optimum(seed, schedule, dtype):
    case = pair_case(np.random.default_rng(seed), n_labels=3, lengths=(3, 1, 4, 2, 4))
    best = qp_reference.solve(case.reference, case.X, case.Y, 1.0)
    solver = SDM(schedule, tau=1e-4, tau_inner=1e-4)
    options = {"dtype": dtype, "gap": 1e-4, "max_passes": 5000, "random_state": 0}
    result = solve(case.problem(), solver, C=1.0, **options)
    assert result.converged
    assert result.certificate.primal == pytest.approx(best.primal, rel=1e-3)
    assert result.certificate.dual <= best.primal * (1 + 1e-7)
    w = case.unpadded(result.weights)
    hinge = sum(
        case.reference.all_values(x, w, y).max() - w @ case.reference.joint_feature(x, y)
        for x, y in zip(case.X, case.Y, strict=True)
    )
    assert result.certificate.primal == pytest.approx(0.5 * w @ w + hinge, rel=1e-5)
    assert case.reference.pairs(w).any()


# --- states and checkpoints ---


def work(engine, n, rng, passes):
    for _ in range(passes):
        order = rng.permutation(n).astype(np.uint32)
        engine.exact_pass(order, _native.PassOptions(relaxation=1.3))
        engine.cached_pass(order, _native.PassOptions(recombine=True))
        engine.collect_pass(1)


@pytest.mark.parametrize("factored", [True, False])
@pytest.mark.parametrize("single", PRECISIONS)
def test_a_restored_engine_goes_on_bit_for_bit(single, factored):
    rng = np.random.default_rng(4)
    case = pair_case(rng, n_labels=5, lengths=(*rng.integers(1, 20, 8), 260), noise=0.2)
    engines = [
        _native.Engine(case.problem(), 0.5, single=single, factored=factored) for _ in range(2)
    ]
    work(engines[0], 9, np.random.default_rng(1), 2)
    engines[1].restore({name: array.copy() for name, array in engines[0].state().items()})
    for engine in engines:
        work(engine, 9, np.random.default_rng(2), 3)
    first, second = (engine.state() for engine in engines)
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].tobytes() == second[name].tobytes(), name
    assert engines[0].certify() == engines[1].certify()


def test_checkpoints(tmp_path):
    case = pair_case(np.random.default_rng(5), n_labels=4, lengths=(9, 3, 7, 5), noise=0.3)
    path, solver = tmp_path / "state.mmc", make_solver("sdm")
    options = {"C": 0.5, "dtype": "float64", "gap": 1e-5, "random_state": 0, "max_passes": 2000}
    solve(case.problem(), solver, **{**options, "max_passes": 2}, checkpoint=path, warn=False)
    saved = path.read_bytes()
    resumed = solve(case.problem(), solver, **options, checkpoint=path, resume=True)
    whole = solve(case.problem(), solver, **options)
    assert resumed.converged
    assert resumed.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-4)
    # of other pair features
    other = case.arrays["pair_indices"].copy()
    free = [a for a, b in itertools.pairwise(case.arrays["pair_indptr"]) if b == a + 1]
    other[free[0]] = (other[free[0]] + 1) % 4
    path.write_bytes(saved)
    problem = case.problem(pair_indices=other)
    with pytest.raises(ValueError, match=r"checkpoint|data|problem"):
        solve(problem, solver, **options, checkpoint=path, resume=True)


# --- the methods of Chain ---

TEMPLATE = "U0|%x[0,0]\nU1|%x[-1,0]\nB\nB0|%x[0,0]\n*1|%x[0,1]|%x[1,1]"
LABELS = ["N", "V", "O"]


def prepared(seed, **options):
    """A chain with pair features, and data: (chain, X, Y)."""
    rng = np.random.default_rng(seed)
    lengths = [3, *rng.integers(1, 5, 5)]
    X = [
        [[str(rng.choice(list("abc"))), str(rng.choice(list("xy")))] for _ in range(T)]
        for T in lengths
    ]
    Y = [[str(rng.choice(LABELS)) for _ in range(T)] for T in lengths]
    Y[0] = list(LABELS)
    chain = Chain(encoder=TemplateEncoder(Template.parse(TEMPLATE)), **options)
    chain.prepare(X, Y)
    return chain, X, Y


def dense_feature(chain, x, y):
    f = np.zeros(chain.n_features)
    np.add.at(f, *chain.joint_feature(x, y))
    return f


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pad_and_unpack(dtype):
    chain, _, _ = prepared(0)
    n, g, L = chain.encoder.n_sparse, chain.encoder.n_pair, chain.n_labels
    assert g > 3
    assert chain.n_features == (n + L + 2 + g * L) * L
    w = np.random.default_rng(0).normal(size=chain.n_features).astype(dtype)
    weights = chain.pad(w, dtype)
    assert weights.shape == (chain.n_weights(dtype),)
    parts = chain.unpack(weights)
    assert parts.pairs.shape == (g, L, L)
    for part in parts:
        assert np.shares_memory(part, weights)
    np.testing.assert_array_equal(np.concatenate([part.ravel() for part in parts]), w)
    name, n_bytes = chain.memory_needed(dtype)
    assert f"{g} pair features" in name
    assert n_bytes == 2 * weights.nbytes + 8 * chain.n_weights("float64")


@pytest.mark.parametrize("seed", range(4))
def test_joint_feature(seed):
    chain, X, Y = prepared(seed)
    names, pair_names = chain.encoder.feature_names(), chain.encoder.pair_names()
    code = {label: k for k, label in enumerate(chain.labels_)}
    w = np.random.default_rng(seed).normal(size=chain.n_features)
    weights = chain.pad(w)
    parts = chain.unpack(weights)
    scores = chain.score_labellings(X, Y, weights)
    for x, y, score in zip(X, Y, scores, strict=True):
        f = dense_feature(chain, x, y)
        assert score == pytest.approx(w @ f, rel=1e-12, abs=1e-12)
        found = chain.unpack(chain.pad(f))
        wanted = np.zeros_like(parts.pairs)
        padded = [*x, ["_B+1", "_B+1"]]
        for t in range(1, len(x)):
            for name in (f"B0|{x[t][0]}", f"*1|{x[t][1]}|{padded[t + 1][1]}"):
                wanted[pair_names.index(name), code[y[t - 1]], code[y[t]]] += 1.0
        np.testing.assert_array_equal(found.pairs, wanted)
        assert found.coef.sum() == 3 * len(x)  # * lines are U lines too
        assert {name[0] for name in names} == {"U", "*"}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "allowed", [None, lambda a, b: (a, b) != ("V", "V") and (a, b) != (None, "O")]
)
def test_argmax(seed, allowed):
    chain, X, Y = prepared(seed, allowed=allowed)
    w = np.random.default_rng(seed + 10).normal(size=chain.n_features)
    predicted = chain.predict(X, chain.pad(w))
    for x, y, found in zip(X, Y, predicted, strict=True):
        assert chain.argmax(x, w) == found
        every = [list(p) for p in itertools.product(LABELS, repeat=len(x))]
        if allowed is None:
            good = every
        else:
            good = [
                p for p in every if all(allowed(a, b) for a, b in itertools.pairwise([None, *p]))
            ]
        assert found == max(good, key=lambda p: w @ dense_feature(chain, x, p))
        wanted = max(every, key=lambda p: chain.loss(y, p) + w @ dense_feature(chain, x, p))
        assert chain.argmax(x, w, y) == wanted


def test_a_chain_is_trained_with_pair_features():
    # The label is the one before, or another one: "=" and "!" tell, of two labels.
    rng = np.random.default_rng(0)
    X, Y = [], []
    for _ in range(30):
        signs = [str(rng.choice(["=", "!"])) for _ in range(6)]
        y = ["a"]
        for sign in signs[1:]:
            y.append(y[-1] if sign == "=" else "ba"[y[-1] == "b"])
        X.append([[sign] for sign in signs])
        Y.append(y)
    errors = {}
    for text in ("U|%x[0,0]", "*|%x[0,0]"):
        chain = Chain(encoder=TemplateEncoder(Template.parse(text)))
        chain.prepare(X, Y)
        result = solve(chain.make_problem(X, Y), make_solver("sdm"), C=10.0, gap=1e-3)
        found = chain.predict(X, result.weights)
        errors[text[0]] = sum(
            a != b for p, y in zip(found, Y, strict=True) for a, b in zip(p, y, strict=True)
        )
    assert errors["*"] == 0
    assert errors["U"] > 10
