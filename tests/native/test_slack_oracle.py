"""The oracle of every formulation of the margin, against all outputs written down."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin._native import ChainProblem, Engine, PassOptions, Primal, aligned_array
from native_problems import everyone, flat_problem, native_python_problem, random_case
from qp_reference import list_planes

PAIRS = [
    (slack, rescale)
    for slack in ("linear", "quadratic", "hard")
    for rescale in ("margin", "slack", "none")
    if (slack, rescale) != ("hard", "slack")
]
SEEDS = st.integers(0, 2**32 - 1)
LENGTHS = st.lists(st.integers(1, 5), min_size=1, max_size=3)
FEATURES = st.sampled_from(["ones", "values", "dense64", "values+dense64", "pairs"])
SCALES = st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0])


class Outputs:
    """A problem, and H of every output of each example under each formulation."""

    def __init__(self, rng, lengths, n_labels, features, **options):
        shape = {"lengths": lengths, "n_labels": n_labels, "n_sparse": 4}
        plain = "values" if features == "pairs" else features
        self.case = random_case(rng, features=plain, **shape, **options)
        self.changes, self.extra = {}, None
        if features == "pairs":
            tokens = sum(lengths)
            self.extra = rng.random((tokens, 2)) < 0.5
            self.changes = {
                "n_pair": 2,
                "pair_indptr": np.r_[0, np.cumsum(self.extra.sum(axis=1))].astype(np.int64),
                "pair_indices": np.nonzero(self.extra)[1].astype(np.uint32),
            }
        self.problem = self.case.problem(**self.changes)
        self.planes = list_planes(self.case.reference, self.case.X, self.case.Y)
        self.n, self.d = len(lengths), self.planes.delta.shape[1]
        if self.extra is not None:
            self.planes = self.planes._replace(
                delta=np.hstack([self.planes.delta, self.pair_deltas()])
            )

    def pair_deltas(self):
        """Δ of the pair features, [N][2][L][L]."""
        L, rows = self.case.n_labels, []
        ends = self.case.arrays["offsets"]
        for i in range(self.n):
            extra = self.extra[ends[i] : ends[i + 1]]
            truth = self.case.arrays["labels"][ends[i] : ends[i + 1]]

            def of(y, extra=extra):
                f = np.zeros((2, L, L))
                for t in range(1, len(y)):
                    f[:, y[t - 1], y[t]] += extra[t]
                return f.ravel()

            for y in self.case.reference.all_outputs(len(truth)):
                if (y != truth).any():
                    rows.append(of(truth) - of(y))
        return np.array(rows).reshape(len(rows), -1)

    def native(self, w):
        """Weights in the native layout; pair features stand last."""
        L = self.case.n_labels
        Lp = self.case.weights(np.zeros(self.d), False).size // self.case.n_rows
        rows = w.reshape(-1, L)
        native = aligned_array(len(rows) * Lp, False)
        native.reshape(len(rows), Lp)[:, :L] = rows
        return native

    def values(self, w, slack, rescale):
        """Return H of every plane."""
        g = np.sqrt(self.planes.loss) if slack == "quadratic" else self.planes.loss
        margin = self.planes.delta @ w
        if rescale == "slack":
            return g * (1 - margin)
        return (1.0 if rescale == "none" else g) - margin

    def slacks(self, w, slack, rescale):
        xi = np.zeros(self.n)
        np.maximum.at(xi, self.planes.example, self.values(w, slack, rescale))
        return xi

    def engine(self, slack, rescale, w=None):
        engine = Engine(
            self.problem, 1.0, single=False, factored=False, slack=slack, rescale=rescale
        )
        if w is not None:
            engine.weights[:] = self.native(w)
        return engine


def draw(seed, lengths, n_labels, features, scale, **options):
    rng = np.random.default_rng(seed)
    if n_labels**5 > 300:
        lengths = [min(length, 4) for length in lengths]
    outputs = Outputs(rng, lengths, n_labels, features, **options)
    return outputs, scale * rng.normal(size=outputs.planes.delta.shape[1])


def found_planes(outputs, slack, rescale, w):
    """Call the oracle of every example once at w; return {example: H of the output it found}."""
    found = {}
    for i in range(outputs.n):
        engine = outputs.engine(slack, rescale, w)
        engine.exact_pass(np.array([i], np.uint32), PassOptions(prune=False, tau=1e300))
        example, loss, _, indptr, indices, values = engine.planes()
        if len(example) == 0:
            continue
        assert example.tolist() == [i]
        assert indptr.tolist() == [0, len(indices)]
        found[i] = loss[0] - values @ outputs.native(w)[indices]
    return found


@given(SEEDS, LENGTHS, st.integers(2, 4), FEATURES, SCALES)
@settings(max_examples=40, deadline=None)
def test_hamming_losses_are_exact(seed, lengths, n_labels, features, scale):
    outputs, w = draw(seed, lengths, n_labels, features, scale)
    for slack, rescale in PAIRS:
        expected = outputs.slacks(w, slack, rescale)
        found = found_planes(outputs, slack, rescale, w)
        for i, xi in enumerate(expected):
            if i in found:
                assert abs(found[i] - xi) < 1e-9 * (1 + abs(xi))
            else:
                assert xi < 1e-9
        engine = outputs.engine(slack, rescale, w)
        risk = 0.5 * expected @ expected if slack == "quadratic" else expected.sum()
        np.testing.assert_allclose(engine.hinge(), risk, rtol=1e-9, atol=1e-9)
        if slack != "hard":
            np.testing.assert_allclose(engine.objective(), 0.5 * w @ w + risk, rtol=1e-9, atol=1e-9)


@given(SEEDS, LENGTHS, st.integers(2, 4), FEATURES, SCALES)
@settings(max_examples=30, deadline=None)
def test_other_losses_are_bounded(seed, lengths, n_labels, features, scale):
    """What was found is an output; no output is above the bound."""
    for options in ({"cost": True}, {"weighted": True}, {"cost": True, "weighted": True}):
        outputs, w = draw(seed, lengths[:1], n_labels, features, scale, **options)
        for slack, rescale in PAIRS:
            H = outputs.values(w, slack, rescale)
            best = max(0.0, H.max(initial=0.0))
            close = 1e-6 * (1 + best)
            found = found_planes(outputs, slack, rescale, w).get(0, 0.0)
            assert found <= best + close
            assert found < close or np.abs(H - found).min() < close
            risk = outputs.engine(slack, rescale, w).hinge()
            bound = np.sqrt(2 * risk) if slack == "quadratic" else risk
            assert bound >= best - close
            if rescale == "none" or (slack != "quadratic" and rescale == "margin"):
                assert found == pytest.approx(best, abs=close)
                assert bound == pytest.approx(best, abs=close)


def test_the_corner_search_finds_the_best_often_and_not_always():
    """Else the test above would say nothing of one case or the other."""
    exact = []
    for seed in range(40):
        outputs, w = draw(seed, [3], 3, "values", 0.5, cost=True)
        best = outputs.slacks(w, "linear", "slack")[0]
        found = found_planes(outputs, "linear", "slack", w).get(0, 0.0)
        bound = outputs.engine("linear", "slack", w).hinge()
        exact.append((abs(found - best) < 1e-6, bound - best < 1e-6))
    found, proved = np.array(exact).mean(axis=0)
    assert found > 0.5
    assert 0.1 < proved < 1.0


@given(SEEDS, st.integers(1, 5), st.integers(2, 4), SCALES)
@settings(max_examples=30, deadline=None)
def test_without_losses_the_best_output_is_not_the_truth(seed, length, n_labels, scale):
    """Where w likes the truth best, the oracle must look for the second best."""
    rng = np.random.default_rng(seed)
    outputs, w = draw(seed, [length], n_labels, "values", scale)
    w = w + rng.uniform(0, 0.02) * outputs.planes.delta.sum(axis=0)
    margin = (outputs.planes.delta @ w).min()
    found = found_planes(outputs, "linear", "none", w)
    if margin < 1 - 1e-9:
        assert found[0] == pytest.approx(1 - margin, abs=1e-9 * (1 + abs(margin)))
    elif margin > 1 + 1e-9:
        assert found == {}


# --- without multipliers ---


def primal_of(outputs, rescale, w):
    primal = Primal(outputs.problem, False, rescale)
    primal.weights[:] = outputs.native(w)
    primal.written()
    return primal


@pytest.mark.parametrize("rescale", ["margin", "slack", "none"])
@pytest.mark.parametrize("seed", range(4))
def test_primal(seed, rescale):
    for scale in (0.0, 0.5, 3.0):
        outputs, w = draw(seed, [3, 1, 4, 2], 3, "values", scale)
        H = outputs.values(w, "linear", rescale)
        xi = outputs.slacks(w, "linear", rescale)
        primal = primal_of(outputs, rescale, w)
        assert primal.hinge().hinge == pytest.approx(xi.sum(), rel=1e-10)
        assert primal.exact_hinge() == pytest.approx(xi.sum(), rel=1e-10)
        some = np.array([2, 0], np.uint32)
        assert primal.hinge_of(some).hinge == pytest.approx(xi[some].sum(), rel=1e-10)

        swept = primal.sweep()
        assert swept.hinge == pytest.approx(xi.sum(), rel=1e-10)
        example, loss, F, indptr, indices, values, result = primal.cuts(np.zeros(outputs.n))
        assert example.tolist() == np.flatnonzero(xi > 0).tolist()
        assert result.hinge == swept.hinge
        assert loss.sum() == pytest.approx(swept.loss)
        np.testing.assert_allclose(F, xi[example], rtol=1e-10, atol=1e-12)
        # each row is a plane of the formulation: some output has this h and this Δ
        plane, own_h = np.zeros_like(primal.plane), outputs.planes.loss
        for row, i in enumerate(example):
            dense = np.zeros_like(primal.plane)
            part = slice(indptr[row], indptr[row + 1])
            dense[indices[part]] = values[part]
            plane += dense
            own = outputs.planes.example == i
            h = np.ones(own.sum()) if rescale == "none" else own_h[own]
            times = own_h[own] if rescale == "slack" else np.ones(own.sum())
            scaled = np.array(
                [
                    outputs.native(t * delta)
                    for t, delta in zip(times, outputs.planes.delta[own], strict=True)
                ]
            )
            miss = np.abs(scaled - dense).max(axis=1) + np.abs(h - loss[row])
            best = np.abs(H[own] - xi[i]) < 1e-9
            assert miss[best].min() < 1e-9
        np.testing.assert_allclose(primal.plane, plane, rtol=0, atol=1e-9)


@pytest.mark.parametrize("rescale", ["slack", "none"])
def test_primal_with_4_byte_weights(rescale):
    outputs, w = draw(5, [3, 1, 4, 2], 3, "values", 0.5)
    primal = Primal(outputs.problem, True, rescale)
    primal.weights[:] = outputs.case.weights(w, True)
    primal.written()
    xi = outputs.slacks(outputs.case.unpadded(primal.weights), "linear", rescale)
    assert primal.hinge().hinge == pytest.approx(xi.sum(), rel=1e-5)
    assert primal.exact_hinge() == pytest.approx(xi.sum(), rel=1e-12)


@pytest.mark.parametrize("rescale", ["slack", "none"])
def test_primal_of_a_structure_in_python(rescale):
    structure, X, Y = flat_problem(np.random.default_rng(0))
    planes = list_planes(structure, X, Y)
    primal = Primal(native_python_problem(structure, X, Y), False, rescale)
    w = np.random.default_rng(1).normal(size=len(primal.weights))
    primal.weights[:] = w
    primal.written()
    margin = planes.delta @ w
    xi = np.zeros(len(Y))
    np.maximum.at(
        xi, planes.example, planes.loss * (1 - margin) if rescale == "slack" else 1 - margin
    )
    assert primal.hinge().hinge == pytest.approx(xi.sum(), rel=1e-12)
    example, _, F, *_ = primal.cuts(np.zeros(len(Y)))
    assert example.tolist() == np.flatnonzero(xi > 0).tolist()
    np.testing.assert_allclose(F, xi[example], rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"cost": True, "weighted": True}])
@pytest.mark.parametrize(("slack", "rescale"), PAIRS)
def test_threads_change_nothing(slack, rescale, options):
    outputs, w = draw(3, [3, 1, 4, 2, 3, 3, 4], 3, "values", 0.5, **options)
    engines = [outputs.engine(slack, rescale, w) for _ in range(3)]
    assert len({e.hinge(threads) for e, threads in zip(engines, (1, 2, 7), strict=True)}) == 1
    assert len({e.objective(threads) for e, threads in zip(engines, (1, 2, 7), strict=True)}) == 1
    results = [e.collect_pass(threads) for e, threads in zip(engines, (1, 2, 7), strict=True)]
    assert len({repr(r.gap) for r in results}) == 1
    for one, two in itertools.pairwise(engines):
        for mine, theirs in zip(one.planes(), two.planes(), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    if slack == "linear":
        primal = primal_of(outputs, rescale, w)
        one = [primal.cuts(np.zeros(outputs.n), 1)[:6], primal.cuts(np.zeros(outputs.n), 3)[:6]]
        for mine, theirs in zip(*one, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert primal.sweep(1).hinge == primal.sweep(4).hinge == primal.hinge(2).hinge


def test_one_label_has_no_wrong_output():
    problem = ChainProblem(
        1,
        0,
        np.array([0, 2], np.int64),
        dense64=np.ones((2, 1)),
        labels=np.zeros(2, np.int32),
    )
    for slack, rescale in PAIRS:
        engine = Engine(problem, 1.0, single=False, factored=False, slack=slack, rescale=rescale)
        result = engine.exact_pass(everyone(1), PassOptions())
        assert (result.added, engine.hinge(), engine.dual()) == (0, 0.0, 0.0)


def test_a_sequence_that_is_too_long_for_slack_rescaling():
    # The table of tokens, errors and labels would take 80 GB.
    n = 50_000
    case = random_case(np.random.default_rng(0), n_labels=2, lengths=(3, n))
    engine = Engine(case.problem(), 1.0, factored=False, rescale="slack")
    with pytest.raises(ValueError, match=r"^sequence 1 has 50000 tokens: .* 80 GB; expected"):
        engine.exact_pass(np.arange(2, dtype=np.uint32), PassOptions())
