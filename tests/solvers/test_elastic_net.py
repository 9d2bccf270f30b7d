"""The elastic net: exact zeros, certificates, and an independent solver of the same problem."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from kit import Classes
from maxmargin import ElasticNet, SequenceTagger, StructuralSVM
from maxmargin._native import ChainProblem, Engine, PassOptions, padded_labels
from maxmargin.regularizers import L2
from maxmargin.solvers import SDM, solve

L = 2  # labels


class Case:
    """A few short sequences, with all their outputs written down."""

    def __init__(self, seed: int, n: int = 4, d: int = 6) -> None:
        rng = np.random.default_rng(seed)
        lengths = rng.integers(1, 4, n)
        self.offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        tokens = int(self.offsets[-1])
        sizes = rng.integers(1, 4, tokens)
        self.rows = [np.sort(rng.choice(d, size, replace=False)) for size in sizes]
        self.labels = rng.integers(0, L, tokens).astype(np.int32)
        self.d = d
        self.n = n
        ends = np.concatenate([[0], np.cumsum([len(row) for row in self.rows])])
        self.problem = ChainProblem(
            L,
            d,
            self.offsets,
            ends.astype(np.int64),
            np.concatenate(self.rows).astype(np.uint32),
            labels=self.labels,
        )
        # [example][output]: difference of the features from the truth's, and the loss
        self.planes = []
        for i in range(n):
            truth = self.labels[self.offsets[i] : self.offsets[i + 1]]
            outputs = itertools.product(range(L), repeat=len(truth))
            self.planes.append(
                [
                    (self.features(i, truth) - self.features(i, y), float(np.sum(y != truth)))
                    for y in map(np.array, outputs)
                ]
            )

    def features(self, i: int, y: np.ndarray) -> np.ndarray:
        f = np.zeros((self.d + L + 2, L))
        for t, label in enumerate(y):
            f[self.rows[self.offsets[i] + t], label] += 1
            if t:
                f[self.d + y[t - 1], label] += 1
        f[self.d + L, y[0]] += 1
        f[self.d + L + 1, y[-1]] += 1
        return f.ravel()

    def primal(self, w: np.ndarray, C: float, rho1: float, rho2: float) -> float:
        hinge = sum(max(loss - w @ delta for delta, loss in planes) for planes in self.planes)
        return rho1 * np.abs(w).sum() + 0.5 * rho2 * w @ w + C * hinge

    def optimum(self, C: float, rho1: float, rho2: float) -> float:
        """Maximise the dual over all multipliers of all outputs, by a solver of SciPy."""
        deltas = np.array([delta for planes in self.planes for delta, _ in planes])
        losses = np.array([loss for planes in self.planes for _, loss in planes])
        owner = np.repeat(np.arange(self.n), [len(planes) for planes in self.planes])
        simplex = (owner == np.arange(self.n)[:, None]).astype(float)

        def value(alpha):
            excess = np.maximum(np.abs(C * alpha @ deltas) - rho1, 0)
            return excess @ excess / (2 * rho2) - C * alpha @ losses

        def slope(alpha):
            u = C * alpha @ deltas
            w = np.sign(u) * np.maximum(np.abs(u) - rho1, 0) / rho2
            return C * (deltas @ w - losses)

        found = minimize(
            value,
            simplex.T @ (1 / simplex.sum(axis=1)),
            jac=slope,
            bounds=[(0, 1)] * len(losses),
            constraints=LinearConstraint(simplex, 1, 1),
            method="trust-constr",
            options={"gtol": 1e-10, "xtol": 1e-14, "barrier_tol": 1e-12, "maxiter": 3000},
        )
        return -found.fun


def unpadded(weights: np.ndarray) -> np.ndarray:
    return weights.reshape(-1, padded_labels(L, weights.itemsize == 4))[:, :L].ravel()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("rho1", "rho2"), [(0.0, 1.0), (0.2, 0.8), (0.5, 0.5), (0.3, 2.0)])
def test_against_an_independent_solver(seed, rho1, rho2):
    case = Case(seed)
    optimum = case.optimum(1.0, rho1, rho2)
    for schedule in ("auto", "paper"):
        solver = SDM(schedule, tau=1e-9, tau_inner=1e-10)
        found = solve(
            case.problem,
            solver,
            C=1.0,
            dtype="float64",
            regularizer=ElasticNet(rho1, rho2),
            gap=1e-9,
            max_passes=20000,
            random_state=seed,
            warn=False,
        )
        certificate = found.certificate
        assert certificate.dual <= optimum * (1 + 1e-6) + 1e-6
        assert certificate.primal == pytest.approx(optimum, rel=1e-5, abs=1e-6)
        by_hand = case.primal(unpadded(found.weights), 1.0, rho1, rho2)
        assert certificate.primal == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_net_without_l1_is_l2(dtype):
    case = Case(1)
    options = {"C": 1.0, "dtype": dtype, "gap": 1e-6, "random_state": 0}
    plain = solve(case.problem, SDM(), regularizer=L2(), **options)
    net = solve(case.problem, SDM(), regularizer=ElasticNet(0.0, 1.0), **options)
    np.testing.assert_array_equal(plain.weights, net.weights)
    assert plain.certificate == net.certificate


def test_much_l1_leaves_nothing():
    case = Case(2)
    found = solve(case.problem, SDM(), C=0.1, regularizer=ElasticNet(100.0, 1.0))
    assert not found.weights.any()
    assert found.certificate.gap == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_are_the_soft_threshold_of_the_sums(dtype):
    """From the multipliers of the engine, by hand; and small ones are exactly zero."""
    case = Case(3, n=8, d=12)
    rho1, rho2 = 0.3, 0.7
    found = solve(
        case.problem,
        SDM(schedule="paper", tau=1e-6, tau_inner=1e-7),
        C=0.8,
        dtype=dtype,
        regularizer=ElasticNet(rho1, rho2),
        gap=1e-6,
        random_state=0,
    )
    sums = found.engine.state()["weights"]
    w = np.sign(sums) * np.maximum(np.abs(sums) - rho1, 0) / rho2
    np.testing.assert_allclose(found.weights, w, rtol=1e-5, atol=1e-6)
    zero = found.weights == 0
    assert zero.any()
    assert not zero.all()
    assert (np.abs(sums[zero]) <= rho1 * (1 + 1e-6)).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("single", [False, True])
def test_the_dual_rises_and_stays_below(seed, single):
    case = Case(seed, n=10, d=10)
    rho1, rho2, C = 0.2, 0.5, 0.7
    engine = Engine(case.problem, C, single, True, ElasticNet(rho1, rho2).link.native())
    rng = np.random.default_rng(seed)
    best_primal, dual = np.inf, 0.0
    for number in range(30):
        order = rng.permutation(case.n).astype(np.uint32)
        options = PassOptions(relaxation=1.3 if number % 2 else 1.0, recombine=True)
        step = engine.exact_pass if number % 3 == 0 else engine.cached_pass
        result = step(order, options)
        true = C * engine.expected_loss() - engine.conjugate()
        slack = 1e-5 if single else 1e-10
        assert result.gain >= -slack
        assert true == pytest.approx(dual + result.gain, abs=slack)
        dual = true
        primal = engine.penalty() + C * engine.hinge()
        assert primal == pytest.approx(
            case.primal(unpadded(engine.weights).astype(float), C, rho1, rho2), abs=10 * slack
        )
        best_primal = min(best_primal, primal)
        assert dual <= best_primal + slack
        collected = engine.collect_pass()
        assert collected.gap == pytest.approx(primal - dual, abs=10 * slack)


def test_checkpoints_go_on_bit_for_bit(tmp_path):
    case = Case(5, n=10, d=10)
    options = {"C": 1.0, "regularizer": ElasticNet(0.2, 0.5), "gap": 0.0, "warn": False}
    whole = solve(case.problem, SDM(), max_passes=20, random_state=3, **options)
    path = tmp_path / "run.npz"
    solve(case.problem, SDM(), max_passes=9, random_state=3, checkpoint=path, **options)
    rest = solve(
        case.problem, SDM(), max_passes=20, random_state=3, checkpoint=path, resume=True, **options
    )
    np.testing.assert_array_equal(whole.weights, rest.weights)
    assert whole.certificate == rest.certificate
    with pytest.raises(ValueError):
        solve(
            case.problem,
            SDM(),
            max_passes=20,
            checkpoint=path,
            resume=True,
            **{**options, "regularizer": ElasticNet(0.3, 0.5)},
        )


@pytest.mark.parametrize("n", [4, 30])
def test_warm_starts_under_another_c_or_regulariser(n):
    case = Case(6, n=n, d=3 * n)
    options = {"dtype": "float64", "gap": 1e-6, "random_state": 0}
    warm = solve(case.problem, SDM(), C=0.5, regularizer=ElasticNet(0.1, 0.9), **options)
    nets = [ElasticNet(0.1, 0.9), L2(), ElasticNet(0.3, 0.4), ElasticNet(0.0, 2.0), L2()]
    for regularizer in nets:
        cold = solve(case.problem, SDM(), C=1.0, regularizer=regularizer, **options)
        warm = solve(
            case.problem, SDM(), C=1.0, regularizer=regularizer, engine=warm.engine, **options
        )
        assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=1e-5)


def test_a_structure_in_python():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60).tolist()
    # three numbers that tell the class, and eight that tell nothing
    X = [np.concatenate([np.eye(3)[k] * 2, rng.normal(0, 0.3, 8)]) for k in y]
    model = StructuralSVM(Classes(), C=0.1, regularizer=ElasticNet(l1_ratio=0.8), random_state=0)
    model.fit(X, y)
    weights = model.weights_.reshape(3, 11)
    assert np.count_nonzero(weights[:, 3:]) < np.count_nonzero(weights[:, :3])
    assert model.score(X, y) > -0.1
    assert model.certificate_.gap <= 0.01


def test_sparse_taggers_have_sparse_files(tmp_path):
    rng = np.random.default_rng(1)
    y = [[("A", "B")[k] for k in rng.integers(0, 2, 8)] for _ in range(60)]
    X = [[[f"is={label}", f"noise={rng.integers(50)}"] for label in labels] for labels in y]
    sizes = []
    for regularizer in (None, ElasticNet(l1_ratio=0.9)):
        tagger = SequenceTagger(C=0.1, regularizer=regularizer, random_state=0).fit(X, y)
        assert tagger.score(X, y) == 1.0
        sizes.append((np.count_nonzero(tagger.weights_), tagger.save(tmp_path / "m.mm")))
        loaded = SequenceTagger.load(tmp_path / "m.mm")
        assert loaded.predict(X).tolist() == tagger.predict(X).tolist()
    assert sizes[1][0] < sizes[0][0]
    assert sizes[1][1] < sizes[0][1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rho1": -0.1, "rho2": 1.0}, "rho1 must be finite and at least 0, got -0.1"),
        ({"rho1": np.nan, "rho2": 1.0}, "rho1 must be finite and at least 0, got nan"),
        ({"rho1": 0.5, "rho2": 0.0}, "linear program"),
        ({"rho1": 0.5, "rho2": -1.0}, "rho2 must be finite and above 0, got -1.0"),
        ({"rho1": 0.5, "rho2": np.inf}, "rho2 must be finite and above 0, got inf"),
        ({"l1_ratio": 1.0}, "linear program"),
        ({"l1_ratio": 1.5}, "l1_ratio is 1.5; expected 0 to 1"),
        ({"l1_ratio": -0.5}, "l1_ratio is -0.5; expected 0 to 1"),
        ({"l1_ratio": 0.5, "rho1": 1.0}, "not both"),
        ({"rho1": 0.5}, "expected rho1 and rho2"),
        ({}, "expected rho1 and rho2"),
    ],
)
def test_bad_parameters(given, message):
    with pytest.raises(ValueError, match=message):
        ElasticNet(**given)


def test_description():
    assert ElasticNet(l1_ratio=0.75) == ElasticNet(0.75, 0.25)
    link = ElasticNet(0.75, 0.25).link
    assert (link.lower, link.upper, link.scale) == (-0.75, 0.75, 4.0)
    assert repr(ElasticNet(0.75, 0.25)) == "ElasticNet(rho1=0.75, rho2=0.25)"
