"""The oracle of every formulation of the margin, against all outputs written down."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maxmargin._native import ChainProblem, Engine, PassOptions, Primal, aligned_array
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.io import columns
from maxmargin.structures import Chain
from native_problems import everyone, flat_problem, native_python_problem, random_case
from qp_reference import list_planes
from real_data import data_file

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

    def relabel(self, *, cost=None, token_weight64=None):
        """Give errors other costs, or tokens other weights."""
        L, offsets = self.case.n_labels, self.case.arrays["offsets"]
        if cost is not None:
            self.changes["cost"] = cost
        if token_weight64 is not None:
            self.changes["token_weight64"] = token_weight64
        cost = self.changes.get("cost", 1.0 - np.eye(L))
        weight = self.changes.get("token_weight64", np.ones(offsets[-1]))
        self.problem = self.case.problem(**self.changes)
        losses = []
        for i in range(self.n):
            own = slice(offsets[i], offsets[i + 1])
            truth = self.case.arrays["labels"][own]
            for y in self.case.reference.all_outputs(len(truth)):
                if (y != truth).any():
                    losses.append(weight[own] @ cost[truth, y])
        self.planes = self.planes._replace(loss=np.array(losses))

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


COSTS = {
    "reals": lambda rng, L: rng.random((L, L)) * 2.0,
    "integers": lambda rng, L: rng.integers(1, 6, (L, L)).astype(float),
    "a common step": lambda rng, L: 0.3 * rng.integers(1, 5, (L, L)),
    "free errors": lambda rng, L: rng.integers(0, 3, (L, L)).astype(float),
}
WEIGHTS = {
    "reals": lambda rng, n: rng.random(n) * 2.0,
    "a common step": lambda rng, n: 0.5 * rng.integers(0, 4, n),
    "integers": lambda rng, n: rng.integers(1, 4, n).astype(float),
}


KINDS_OF_LOSS = st.tuples(st.sampled_from([None, *COSTS]), st.sampled_from([None, *WEIGHTS]))


@given(SEEDS, LENGTHS, st.integers(2, 4), st.tuples(FEATURES, SCALES), KINDS_OF_LOSS)
@example(2, [4, 1, 1], 2, ("pairs", 0.1), ("a common step", None))  # 3 x 0.3 - 0.3 < 2 x 0.3
@settings(max_examples=120, deadline=None)
def test_other_losses_are_exact(seed, lengths, n_labels, kind, losses):
    outputs, w = draw(seed, lengths, n_labels, *kind)
    cost, weight = losses
    rng = np.random.default_rng(seed)
    if cost is not None:
        matrix = COSTS[cost](rng, n_labels)
        np.fill_diagonal(matrix, 0.0)
        outputs.relabel(cost=matrix)
    if weight is not None:
        outputs.relabel(token_weight64=WEIGHTS[weight](rng, sum(lengths_of(outputs))))
    check_exact(outputs, w)


def lengths_of(outputs):
    return np.diff(outputs.case.arrays["offsets"]).tolist()


def check_exact(outputs, w, pairs=PAIRS):
    """What is found has the greatest H of all outputs, and nothing is left to a bound."""
    for slack, rescale in pairs:
        expected = outputs.slacks(w, slack, rescale)
        found = found_planes(outputs, slack, rescale, w)
        for i, xi in enumerate(expected):
            if i in found:
                assert abs(found[i] - xi) < 1e-7 * (1 + abs(xi)), (slack, rescale)
            else:
                assert xi < 1e-7, (slack, rescale)
        risk = 0.5 * expected @ expected if slack == "quadratic" else expected.sum()
        engine = outputs.engine(slack, rescale, w)
        np.testing.assert_allclose(engine.hinge(), risk, rtol=1e-7, atol=1e-7)


def test_corners_alone_would_not_do():
    """Else the test above would say nothing of the search behind them: H of the best corner."""
    worse = 0
    for seed in range(40):
        outputs, w = draw(seed, [4], 3, "values", 0.2, cost=True)
        w = w + 0.004 * outputs.planes.delta.sum(axis=0)  # so that some margins are kept
        H = outputs.values(w, "linear", "slack")
        margin = outputs.planes.delta @ w
        slopes = np.geomspace(1e-4, 1e4, 4000)
        corners = {int(np.argmax(s * outputs.planes.loss - margin)) for s in slopes}
        worse += max(H[list(corners)].max(), 0) < max(H.max(), 0) - 1e-6
        check_exact(outputs, w, [("linear", "slack"), ("quadratic", "margin")])
    assert worse >= 5


@pytest.mark.parametrize("options", [{}, {"cost": True}, {"cost": True, "weighted": True}])
def test_long_sequences_equal_a_programme_over_all_losses(options):
    """More tokens than can be listed; the losses on a grid, all of whose points are tried."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        case = random_case(rng, lengths=(30, 17), n_labels=4, n_sparse=8, noise=0.3)
        changes, cost, weight = {}, 1.0 - np.eye(4), np.ones(47)
        if "cost" in options:
            cost = rng.integers(1, 5, (4, 4)) * (1.0 - np.eye(4))
            changes["cost"] = cost
        if "weighted" in options:
            weight = rng.integers(1, 3, 47).astype(float)
            changes["token_weight64"] = weight
        problem = case.problem(**changes)
        w = rng.normal(0, 0.4, case.reference.n_token_features * 4 + 24)
        for slack, rescale in PAIRS:
            if rescale == "none" or slack == "hard":
                continue
            engine = Engine(
                problem, 1.0, single=False, factored=False, slack=slack, rescale=rescale
            )
            engine.weights[:] = case.weights(w, False)
            xi = [
                max(
                    merit(slack, rescale, loss, margin)
                    for loss, margin in margins_by_loss(case, i, w, cost, weight).items()
                )
                for i in range(2)
            ]
            xi = np.maximum(xi, 0.0)
            risk = 0.5 * xi @ xi if slack == "quadratic" else xi.sum()
            assert engine.hinge() == pytest.approx(risk, rel=1e-9)


def merit(slack, rescale, loss, margin):
    g = np.sqrt(loss) if slack == "quadratic" else loss
    return g * (1 - margin) if rescale == "slack" else g - margin


def margins_by_loss(case, i, w, cost, weight):
    """Return {loss: least margin}, by a programme over tokens, labels and whole losses."""
    L, d = case.n_labels, case.reference.n_token_features
    rows = w.reshape(-1, L)
    score = case.X[i] @ rows[:d]
    transition, start, end = rows[d : d + L], rows[d + L], rows[d + L + 1]
    first, truth = case.arrays["offsets"][i], case.Y[i]
    best = {}
    for t in range(len(truth)):
        now = {}
        for y in range(L):
            loss = int(weight[first + t] * cost[truth[t], y])
            for (p, before), value in best.items() if t else [((None, 0), 0.0)]:
                step = score[t, y] + (start[y] if p is None else transition[p, y])
                key = y, before + loss
                now[key] = max(now.get(key, -np.inf), value + step)
        best = now
    own = score[np.arange(len(truth)), truth].sum() + start[truth[0]] + end[truth[-1]]
    own += transition[truth[:-1], truth[1:]].sum()
    margins = {}
    for (y, loss), value in best.items():
        if loss > 0:
            margins[loss] = min(margins.get(loss, np.inf), own - value - end[y])
    return margins


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


def test_a_very_long_sequence():
    """A table of tokens, errors and labels would take 80 GB; a few corners and few pairs do."""
    case = random_case(np.random.default_rng(0), n_labels=2, lengths=(3, 50_000), noise=0.01)
    engine = Engine(case.problem(), 1.0, factored=False, rescale="slack")
    result = engine.exact_pass(np.arange(2, dtype=np.uint32), PassOptions())
    assert result.gain > 0
    assert engine.objective() >= engine.dual()


def chunking(n):
    """Return the first n sentences of CoNLL-2000, with the chunk as label."""
    table, labels = columns.read_columns(data_file("conll2000/train.tsv.gz")).labelled(2)
    chain = Chain(encoder=TemplateEncoder(Template.load("chunking")))
    batch, codes = chain.learn(table, labels)
    part = batch.take(np.arange(n))
    return chain.encoded_problem(part, codes[: part.n_tokens].copy())


@pytest.mark.data
@pytest.mark.parametrize(
    ("slack", "rescale", "most"),
    [
        ("linear", "slack", 4.0),
        ("linear", "none", 4.0),
        ("quadratic", "margin", 5.0),
        ("quadratic", "slack", 4.0),
    ],
)
def test_oracles_of_text_take_few_calls(slack, rescale, most):
    """Counted work of a look, over that of the plain oracle, from the first passes to the last."""
    problem = chunking(300)
    plain = Engine(problem, 0.1)
    plain.collect_pass()
    unit = plain.collect_pass().work  # at w = 0 nothing new is found any more: only oracle calls
    engine = Engine(problem, 0.1, factored=False, slack=slack, rescale=rescale)
    order = np.arange(problem.n_examples, dtype=np.uint32)
    for _ in range(12):
        for _ in range(3):
            engine.exact_pass(order, PassOptions(tau_relative=0.1))
        engine.collect_pass()
        look = engine.collect_pass()
        assert look.added == 0
        assert look.work < most * unit


def test_a_search_without_an_end_is_given_up():
    """Subset sums: all outputs lie on one line, and which sum is best is hard to tell."""
    rng = np.random.default_rng(0)
    n, slope = 30, 0.025
    loss = rng.uniform(1.0, 2.0, n)
    problem = ChainProblem(
        2,
        0,
        np.array([0, n], np.int64),
        dense64=loss[:, None].copy(),
        token_weight64=loss,
        labels=np.zeros(n, np.int32),
    )
    engine = Engine(problem, 1.0, single=False, factored=False, rescale="slack")
    engine.weights[0] = slope  # an error at token t has the margin slope * loss[t]
    # H = Δ (1 - slope Δ) is at most 1 / (4 slope), at Δ = 1 / (2 slope).
    bound = engine.hinge()
    assert bound == pytest.approx(0.25 / slope, rel=1e-9)
    engine.exact_pass(np.array([0], np.uint32), PassOptions(prune=False, tau=1e300))
    _, h, *_, indices, values = engine.planes()
    found = h[0] - values @ np.asarray(engine.weights)[indices]
    assert 0.0 < found < bound
    sums = [loss[:k].sum() for k in range(n)]  # some outputs; the best is at least as good as these
    assert max(d * (1 - slope * d) for d in sums) <= bound + 1e-9
