"""The β of SAP, which is brought up to date only where it is read, against dense steps of it."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import ElasticNet
from maxmargin._native import Engine, PassOptions
from native_problems import (
    brute_hinge,
    everyone,
    flat_problem,
    native_python_problem,
    random_case,
    read_parts,
)

PRECISIONS = [pytest.param(True, id="float32"), pytest.param(False, id="float64")]
FEATURES = ("values", "values+dense64", "values+dense32", "ones+dense32", "dense64")
LENGTHS = (3, 1, 4, 2, 3, 5, 1, 2)


def chain(rng, *, pairs=False, n_sparse=15, n_pair=8, **options):
    """Costs and weights of tokens are random, so that no two outputs are equally good.

    Features are few for each token and many in all: most rows rest while an example is visited.
    """
    options = {"n_labels": 3, "lengths": LENGTHS, "features": "values", **options}
    case = random_case(rng, n_sparse=n_sparse, cost=True, weighted=True, **options)
    if pairs:
        tokens = len(case.arrays["labels"])
        has = rng.random((tokens, n_pair)) < 0.1
        case.arrays["n_pair"] = n_pair
        case.arrays["pair_indptr"] = np.concatenate([[0], np.cumsum(has.sum(axis=1))])
        case.arrays["pair_indices"] = np.nonzero(has)[1].astype(np.uint32)
    return case


def flat(rng):
    return native_python_problem(*flat_problem(rng, n=8))


def problems(rng):
    """Problems of all kinds, with their names."""
    for features in FEATURES:
        for pairs in (False, True):
            case = chain(rng, pairs=pairs, features=features)
            weights = rng.choice([0.0, 0.5, 1.0, 3.0], len(LENGTHS))
            yield f"{features}, pairs {pairs}", case.problem()
            yield f"{features}, pairs {pairs}, weights", case.problem(example_weight=weights)
    yield "Python", flat(rng)


class Net:
    """ρ₁, ρ₂, ν and C, and one dense step of (IV.14)."""

    def __init__(self, rng):
        self.rho1, self.rho2 = rng.choice([0.05, 0.3, 1.0]), rng.choice([0.1, 0.8, 2.0])
        self.nu, self.C = rng.choice([1e-3, 0.3, 1.0, 20.0]), rng.choice([0.4, 1.0, 3.0])

    def engine(self, problem, single=False, factored=False):
        return Engine(
            problem,
            self.C,
            single=single,
            factored=factored,
            link=ElasticNet(self.rho1, self.rho2).link.native(),
            nu=self.nu,
        )

    def step(self, u, beta):
        cost = self.nu * self.C * self.rho2
        return np.clip((u + cost * beta) / (1 + cost), -self.rho1, self.rho1)

    def weights(self, u, beta):
        return (u - beta) / self.rho2


def close(found, wanted, tolerance):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * (1 + np.abs(wanted).max()))


def same(one, two, tolerance):
    for name in ("sums", "beta"):
        close(getattr(one, name)(), getattr(two, name)(), tolerance)
    close(one.weights, two.weights, tolerance)


def run(engine, kind, order, options, each):
    """One pass: in one call, or in one call for each example, which brings all rows up to date."""
    call = getattr(engine, f"{kind}_pass")
    if not each:
        return call(order, options)
    return [call(order[k : k + 1], options) for k in range(len(order))]


# --- a step is the formula ---


@pytest.mark.parametrize("seed", range(4))
def test_each_step_is_the_dense_formula(seed):
    rng = np.random.default_rng(seed)
    moved, clipped = 0, 0
    for name, problem in problems(rng):
        net = Net(rng)
        engine = net.engine(problem)
        options = PassOptions(tau_inner=1e-9, mu=rng.choice([0.0, 1e-3, 1.0]), beta_steps=True)
        beta = engine.beta()
        assert not beta.any()
        for _ in range(3):
            for i in rng.permutation(problem.n_examples).astype(np.uint32):
                engine.exact_pass(np.array([i]), options)
                u = engine.sums()
                before, beta = beta, net.step(u, beta)
                np.testing.assert_allclose(engine.beta(), beta, rtol=0, atol=1e-12, err_msg=name)
                np.testing.assert_allclose(
                    engine.weights, net.weights(u, beta), rtol=1e-12, atol=1e-12, err_msg=name
                )
                moved += np.count_nonzero(beta != before)
                clipped += np.count_nonzero(np.abs(beta) == net.rho1)
    assert moved > 1000
    assert clipped > 100


@pytest.mark.parametrize("seed", range(3))
def test_each_step_is_the_dense_formula_in_4_bytes(seed):
    rng = np.random.default_rng(seed)
    for pairs in (False, True):
        net, case = Net(rng), chain(rng, pairs=pairs, features="values+dense32")
        engine = net.engine(case.problem(), single=True)
        beta = engine.beta().astype(float)
        for i in [*everyone(8), *everyone(8)]:
            engine.exact_pass(np.array([i]), PassOptions(tau_inner=1e-5))
            u = engine.sums().astype(float)
            beta = net.step(u, beta)
            close(engine.beta(), beta, 1e-5)
            close(engine.weights, net.weights(u, beta), 1e-5)
    assert engine.beta().dtype == np.float32


@pytest.mark.parametrize("seed", range(4))
def test_each_cached_step_is_the_dense_formula(seed):
    rng = np.random.default_rng(seed)
    for _, problem in problems(rng):
        net = Net(rng)
        engine = net.engine(problem)
        engine.exact_pass(everyone(problem.n_examples), PassOptions(tau_inner=1e-9))
        for i in rng.permutation(problem.n_examples).astype(np.uint32):
            before = engine.beta()
            result = engine.cached_pass(np.array([i]), PassOptions(tau_inner=1e-9, mu=0.1))
            assert result.visits <= 1  # blocks are whole: one step for one example
            if result.visits == 0:
                np.testing.assert_array_equal(engine.beta(), before)
                continue
            beta = net.step(engine.sums(), before)
            np.testing.assert_allclose(engine.beta(), beta, rtol=0, atol=1e-12)
            np.testing.assert_allclose(
                engine.weights, net.weights(engine.sums(), beta), rtol=1e-12, atol=1e-12
            )


# --- many steps at once ---


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("factored", [False, True])
def test_lazy_steps_are_dense_steps(seed, factored):
    rng = np.random.default_rng(seed)
    for name, problem in problems(rng):
        net = Net(rng)
        lazy, dense = (net.engine(problem, factored=factored) for _ in range(2))
        # SMO to the end: which of two planes that are tight it takes first is a matter of rounding
        common = {"tau_inner": 1e-14, "max_smo": 50000, "mu": rng.choice([0.0, 1e-2, 1.0])}
        for kind, options in (
            ("exact", PassOptions(**common)),
            ("exact", PassOptions(**common, rounds=3)),
            ("cached", PassOptions(**common)),
            ("cached", PassOptions(**common, recombine=True, relaxation=1.3)),
            ("exact", PassOptions(**common, tau=0.05)),
        ):
            order = rng.permutation(problem.n_examples).astype(np.uint32)
            whole = run(lazy, kind, order, options, each=False)
            parts = run(dense, kind, order, options, each=True)
            assert whole.visits == sum(part.visits for part in parts), name
            assert whole.gain == pytest.approx(sum(part.gain for part in parts), abs=1e-9)
            same(lazy, dense, 1e-12)
            dense.restore(lazy.state())  # so that rounding does not add up
        assert lazy.sums().any()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pairs", [False, True])
def test_lazy_steps_are_dense_steps_in_4_bytes(seed, pairs):
    rng = np.random.default_rng(seed)
    problem, net = chain(rng, pairs=pairs, features="values+dense32").problem(), Net(rng)
    lazy, dense = (net.engine(problem, single=True) for _ in range(2))
    for kind in ("exact", "cached", "exact"):
        order = rng.permutation(problem.n_examples).astype(np.uint32)
        run(lazy, kind, order, PassOptions(tau_inner=1e-3), each=False)
        run(dense, kind, order, PassOptions(tau_inner=1e-3), each=True)
        same(lazy, dense, 1e-3)


@pytest.mark.parametrize("single", PRECISIONS)
def test_rows_that_nobody_reads_take_their_steps_too(single):
    """One example, many times: the rows of the others rest, and β goes on there all the same."""
    rng = np.random.default_rng(0)
    problem, net = chain(rng, n_sparse=40).problem(), Net(rng)
    net.nu, net.rho1, net.rho2, net.C = 5.0, 0.3, 1.0, 1.0
    tolerance = 1e-5 if single else 1e-12
    engine = net.engine(problem, single=single)
    engine.exact_pass(everyone(8), PassOptions(tau_inner=1e-4))
    beta, u = engine.beta().astype(float), engine.sums()
    # an example that is solved to within tau takes no step itself
    engine.exact_pass(np.zeros(50, dtype=np.uint32), PassOptions(tau=1e9))
    np.testing.assert_array_equal(engine.sums(), u)
    middle = beta
    for k in range(50):
        beta = net.step(u.astype(float), beta)
        middle = beta if k == 9 else middle
    close(engine.beta(), beta, tolerance)
    assert np.abs(middle - beta).max() > 1e-3  # there was a way to go
    close(engine.weights, net.weights(u, beta), tolerance)


@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("pairs", [False, True])
def test_a_weight_that_beta_has_reached_is_exactly_zero(single, pairs):
    rng = np.random.default_rng(1)
    problem, net = chain(rng, pairs=pairs).problem(), Net(rng)
    net.nu, net.rho1, net.C = 1.0, 0.5, 1.0
    engine = net.engine(problem, single=single)
    engine.exact_pass(everyone(8), PassOptions(tau_inner=1e-4))
    u = engine.sums()
    inside = (np.abs(u) <= 0.4) & (u != 0)
    assert inside.sum() > 5
    assert np.count_nonzero(engine.weights[inside]) > 5
    assert engine.unsettled() > 1e-3
    for _ in range(400):
        engine.beta_step()
    np.testing.assert_array_equal(engine.sums(), u)
    assert engine.unsettled() < 1e-6
    close(engine.beta(), np.clip(u, -net.rho1, net.rho1), 1e-6)
    tiny = np.abs(engine.weights[inside])
    # the fixed point is met to the last bit or so; certify() puts β there
    assert tiny.max() < 1e-6
    engine.certify()
    assert not engine.weights[inside].any()
    assert engine.weights.any()
    assert engine.unsettled() == 0


# --- β rests, or moves on its own ---


@pytest.mark.parametrize("kind", ["exact", "cached"])
def test_beta_rests_where_it_is_told_to(kind):
    moved = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        for _, problem in problems(rng):
            net = Net(rng)
            engine, n = net.engine(problem), problem.n_examples
            engine.exact_pass(everyone(n), PassOptions(tau_inner=1e-9))
            for _ in range(3):
                beta, u = engine.beta(), engine.sums()
                options = PassOptions(tau_inner=1e-9, beta_steps=False, mu=0.1)
                run(engine, kind, everyone(n), options, each=False)
                np.testing.assert_array_equal(engine.beta(), beta)
                moved += np.abs(engine.sums() - u).max() > 1e-6
                u = engine.sums()
                close(engine.weights, net.weights(u, beta), 1e-12)
                engine.beta_step()
                np.testing.assert_array_equal(engine.sums(), u)
                beta = net.step(u, beta)
                close(engine.beta(), beta, 1e-12)
                close(engine.weights, net.weights(u, beta), 1e-12)
    assert moved > 100


def test_without_a_cost_to_move_there_is_no_beta():
    rng = np.random.default_rng(2)
    problem, net = chain(rng).problem(), Net(rng)
    net.nu = 0.0
    engine = net.engine(problem)
    assert engine.nu == 0
    engine.exact_pass(everyone(8), PassOptions())
    before = engine.weights.copy()
    engine.beta_step()
    np.testing.assert_array_equal(engine.weights, before)
    assert engine.beta().size == 0
    assert engine.unsettled() == 0
    u = engine.sums()
    close(engine.weights, np.sign(u) * np.maximum(np.abs(u) - net.rho1, 0) / net.rho2, 1e-12)


@pytest.mark.parametrize("single", PRECISIONS)
def test_unsettled_is_the_distance_to_the_soft_threshold(single):
    rng = np.random.default_rng(3)
    for _ in range(5):
        problem, net = chain(rng).problem(), Net(rng)
        net.nu = rng.choice([0.5, 3.0])
        engine = net.engine(problem, single=single)
        engine.exact_pass(everyone(8), PassOptions(tau_inner=1e-4))
        u, w = engine.sums().astype(float), engine.weights.astype(float)
        soft = np.sign(u) * np.maximum(np.abs(u) - net.rho1, 0) / net.rho2
        assert engine.unsettled() == pytest.approx(np.abs(w - soft).max(), rel=1e-4)
        before = engine.unsettled()
        assert before > 1e-3
        engine.beta_step()
        assert engine.unsettled() < before
    fresh = net.engine(problem, single=single)
    assert fresh.unsettled() == 0


# --- what the rest of the engine says of such weights ---


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_sums_and_objectives_are_those_of_the_definitions(pairs, threads):
    """Also the dual, which is that of α alone, with β at its best."""
    rng = np.random.default_rng(4)
    for _ in range(4):
        case, net = chain(rng, pairs=pairs), Net(rng)
        engine = net.engine(case.problem())
        for kind in ("exact", "cached", "exact"):
            options = PassOptions(tau_inner=1e-6, beta_steps=kind == "exact")
            gain = run(engine, kind, everyone(8), options, each=False).gain
            w, u = engine.weights, engine.sums()
            hinge = case.problem().hinge(w)
            if not pairs:
                assert hinge == pytest.approx(brute_hinge(case, case.unpadded(w)), rel=1e-9)
            assert engine.hinge(threads) == pytest.approx(hinge, rel=1e-9)
            penalty = net.rho1 * np.abs(w).sum() + 0.5 * net.rho2 * w @ w
            assert engine.penalty() == pytest.approx(penalty, rel=1e-9)
            primal = penalty + net.C * hinge
            assert engine.objective(threads) == pytest.approx(primal, rel=1e-9)
            excess = np.maximum(np.abs(u) - net.rho1, 0)
            conjugate = excess @ excess / (2 * net.rho2)
            assert engine.conjugate() == pytest.approx(conjugate, rel=1e-9)
            loss = sum(float(part.alpha @ part.loss) for part in read_parts(engine.state()))
            assert engine.expected_loss() == pytest.approx(loss, rel=1e-9)
            dual = net.C * loss - conjugate
            assert engine.dual() == pytest.approx(dual, rel=1e-9)
            assert dual <= primal
            # the gains of the steps add up to it
            collected = engine.collect_pass(threads)
            assert collected.gain == pytest.approx(0.0, abs=1e-9 * (1 + abs(dual) + abs(gain)))
            assert collected.gap == pytest.approx(primal - dual, rel=1e-7)


def test_another_c_or_link_has_the_new_rate():
    """Warm starts put β at its fixed point; from there its steps are those of the new C and ρ."""
    rng = np.random.default_rng(5)
    problem, net = chain(rng).problem(), Net(rng)
    net.nu = 1.0
    engine = net.engine(problem)
    engine.exact_pass(everyone(8), PassOptions(tau_inner=1e-6))
    for change in ({"C": 0.2}, {"rho1": 0.7, "rho2": 0.3}, {"C": 5.0}, {"rho1": 0.1, "rho2": 1.5}):
        vars(net).update(change)
        before = engine.sums()
        if "C" in change:
            ratio = net.C / engine.C
            engine.rescale(net.C)
            close(engine.sums(), ratio * before, 1e-9)
        else:
            engine.relink(ElasticNet(net.rho1, net.rho2).link.native())
            np.testing.assert_array_equal(engine.sums(), before)
        link = ElasticNet(net.rho1, net.rho2).link.native()
        assert (engine.C, engine.link, engine.nu) == (net.C, link, 1.0)
        beta = np.clip(engine.sums(), -net.rho1, net.rho1)
        np.testing.assert_array_equal(engine.beta(), beta)
        assert engine.unsettled() < 1e-12
        for i in range(8):
            engine.exact_pass(np.array([i], dtype=np.uint32), PassOptions(tau_inner=1e-6))
            beta = net.step(engine.sums(), beta)
            close(engine.beta(), beta, 1e-12)
            close(engine.weights, net.weights(engine.sums(), beta), 1e-12)


# --- states ---


@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("factored", [False, True])
def test_a_restored_engine_goes_on_bit_for_bit(single, factored):
    rng = np.random.default_rng(6)
    problem, net = chain(rng).problem(), Net(rng)
    net.nu = 2.0
    engines = [net.engine(problem, single, factored) for _ in range(2)]

    def work(engine, seed):
        order = np.random.default_rng(seed).permutation(8).astype(np.uint32)
        engine.exact_pass(order, PassOptions(tau_relative=0.1, mu=0.01))
        engine.cached_pass(order, PassOptions(recombine=True, relaxation=1.2))
        engine.exact_pass(order, PassOptions(beta_steps=False))

    work(engines[0], 0)
    assert engines[0].unsettled() > 1e-3
    engines[1].restore({name: array.copy() for name, array in engines[0].state().items()})
    for seed in (1, 2):
        for engine in engines:
            work(engine, seed)
        first, second = (engine.state() for engine in engines)
        assert "beta" in first
        assert first.keys() == second.keys()
        for name in first:
            assert first[name].tobytes() == second[name].tobytes(), name
        assert engines[0].weights.tobytes() == engines[1].weights.tobytes()
    assert engines[0].certify() == engines[1].certify()


def test_damaged_betas_are_refused():
    rng = np.random.default_rng(7)
    problem, net = chain(rng).problem(), Net(rng)
    engine = net.engine(problem)
    engine.exact_pass(everyone(8), PassOptions())
    state = engine.state()
    beta = state["beta"]
    other = net.engine(problem)
    damaged = [beta[:-1], beta.astype(np.float32), np.full_like(beta, np.nan), np.append(beta, 0.0)]
    for bad in [*damaged, np.full_like(beta, np.inf), beta.reshape(2, -1), np.zeros(0)]:
        with pytest.raises(ValueError, match="beta"):
            other.restore({**state, "beta": bad})
    with pytest.raises(ValueError, match="beta"):
        other.restore({name: array for name, array in state.items() if name != "beta"})
    assert not other.weights.any()  # nothing was half done
    # outside of ±ρ₁ it is not a β of this dual: it is moved into it
    other.restore({**state, "beta": np.full_like(beta, 1e9)})
    np.testing.assert_array_equal(other.beta(), net.rho1)


@pytest.mark.parametrize("nu", [-1.0, -1e-300, np.nan, np.inf, -np.inf])
def test_bad_costs_to_move(nu):
    problem = chain(np.random.default_rng(8)).problem()
    with pytest.raises(ValueError, match="nu must be finite and not negative"):
        Engine(problem, 1.0, nu=nu)
    with pytest.raises(ValueError, match="mu must"):
        PassOptions(mu=nu)
