"""Hard problems: measurements as they come, large C, slack rescaling, cost matrices, dense nets.

Claims shown: how far one call of a solver gets, as a user would make it, where block-coordinate
ascent is slow: the certified gap, passes, sweeps of the oracle, processor time over that of one
exact pass; on dense measurements beside LIBLINEAR (Crammer-Singer, the same problem).

    python benchmarks/hard.py --data ../shared/data [--solver sdm] [--rows wine,costs] [--limit 25]

Parts, in the order of the table in `docs/benchmarks.md`:

    iris, wine, breast-cancer, diabetes, digits
                   scikit-learn's, unscaled, chains of one token, C = 0.1, 1, 10 and 1e4, beside
                   LIBLINEAR, which gets the two constant columns that are a chain's start and end;
                   at C = 1 accuracies over 3 folds. Diabetes: quartiles of the target, unscaled.
    scale          features of scale 1 to 1e5, C from 1 to 1e6, one label in five random
    separable      5 sequences that can be separated, C from 1e4 to 1e6: seeds that missed the gap
    costs          slack rescaling and quadratic slacks with a cost matrix, against the optimum
    slack          slack rescaling on 2,000 sentences of CoNLL-2000
    nets           elastic nets with quadratic slacks, against the optimum
    ocr            OCR, elastic net: passes to a gap of 5 %

Chunking and parts of speech at C = 0.1 and 1 are rows of `sdm.py`. The optimum is that of the
independent solver of the tests. Processor times are divided by that of one exact pass (all oracles
at a fixed w) in the same process. The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from maxmargin import L2, Chain, ElasticNet
from maxmargin.errors import NotCompatibleError
from maxmargin.regularizers import Regularizer
from maxmargin.solvers import SOLVERS, SolveResult, make_solver, solve
from sdm import Data
from sparse import Letters

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from kit import formulated
from native_problems import ChainCase, random_case
from qp_reference import Planes, list_planes, solve_planes
from reference_chain import ReferenceChain

#: The certificate that every row should reach.
GOAL = 0.001
MEASUREMENTS = ("iris", "wine", "breast-cancer", "diabetes", "digits")
VALUES_OF_C = (0.1, 1.0, 10.0, 1e4)
COST = np.array([[0.0, 3.0, 1.0], [1.0, 0.0, 2.0], [2.0, 1.0, 0.0]])
#: The independent solver lists all planes; the digits have too many.
MOST_PLANES = 3000
#: LIBLINEAR's iterations, as a user has them (1,000) and while the time allows.
ITERATIONS = (1000, 10_000, 100_000, 1_000_000)


#: Seeds of tiny problems.
SEEDS = 6
#: Slacks and rescaling other than those of the default.
OTHERS = (
    ("linear", "slack"),
    ("quadratic", "margin"),
    ("quadratic", "slack"),
    ("quadratic", "none"),
)


@dataclass(frozen=True)
class Task:
    """One training, as a user would ask for it."""

    problem: Any
    C: float
    slack: str = "linear"
    rescale: str = "margin"
    regularizer: Regularizer = field(default_factory=L2)
    dtype: str = "float32"
    gap: float = GOAL
    seed: int = 0


@dataclass(frozen=True)
class Settings:
    """What the command line says: data, solver, C of the measurements, seconds of each run."""

    data: Path
    solver: str
    values_of_C: tuple[float, ...]  # noqa: N815
    limit: float


def train(task: Task, settings: Settings) -> tuple[SolveResult, float]:
    """Train with the solver asked for; the result and the processor time."""
    formulation = {"slack": task.slack, "rescale": task.rescale}
    plain = formulation == {"slack": "linear", "rescale": "margin"}
    solver = make_solver(settings.solver, **({} if plain else formulation))
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = solve(
            task.problem,
            solver,
            C=task.C,
            dtype=task.dtype,
            regularizer=task.regularizer,
            gap=task.gap,
            random_state=task.seed,
            callbacks=[lambda _: time.process_time() - begin > settings.limit],
        )
    return result, time.process_time() - begin


def exact_pass(machine: Any, least: float = 0.02) -> float:
    """Return the processor time of one exact pass: the best of three samples."""
    samples = []
    for _ in range(3):
        n, begin = 0, time.process_time()
        while (spent := time.process_time() - begin) < least:
            machine.objective(1)
            n += 1
        samples.append(spent / n)
    return min(samples)


def measure(task: Task, settings: Settings, optimum: float | None = None) -> dict[str, Any]:
    """Train once; what is printed of it."""
    try:
        result, seconds = train(task, settings)
    except NotCompatibleError as error:
        return {"refused": str(error)}
    certificate = result.certificate
    calls = result.history[-1].oracle_calls if len(result.history) else 0
    row: dict[str, Any] = {
        "gap": certificate.gap,
        "reached": bool(certificate.gap <= task.gap),
        "passes": result.n_passes,
        "sweeps": calls / task.problem.n_examples,
        "exact_passes": seconds / exact_pass(result.engine),
        "seconds": seconds,
        "primal": certificate.primal,
        "dual": certificate.dual,
        "stopped_by": result.stop_reason,
    }
    if optimum is not None:
        row["primal_over_optimum"] = certificate.primal / optimum
    return row


def show(name: str, row: dict[str, Any], note: str = "") -> dict[str, Any]:
    """Print a row and return it."""
    if "refused" in row:
        print(f"{name:38s} refused: {row['refused']:.60s}", flush=True)
        return row
    if "primal_over_optimum" in row:
        note += f"primal {row['primal_over_optimum']:.4g} x the optimum"
    print(
        f"{name:38s} {100 * row['gap']:9.4f} {row['passes']:7d} {row['sweeps']:9.1f} "
        f"{row['exact_passes']:13.1f} {row['seconds']:8.2f}  {note}",
        flush=True,
    )
    return row


# --- dense measurements, beside LIBLINEAR ---


class Measurements:
    """One of scikit-learn's data sets, as classes and as chains of one token."""

    def __init__(self, name: str) -> None:
        loaders: dict[str, Callable[[], Any]] = {
            "iris": datasets.load_iris,
            "wine": datasets.load_wine,
            "breast-cancer": datasets.load_breast_cancer,
            "diabetes": lambda: datasets.load_diabetes(scaled=False),
            "digits": datasets.load_digits,
        }
        found = loaders[name]()
        self.X, self.y = found.data, found.target
        if name == "diabetes":
            self.y = np.digitize(self.y, np.quantile(self.y, (0.25, 0.5, 0.75)))

    def chains(self, rows: Any = slice(None)) -> tuple[Chain, Any]:
        """Return a chain and the problem of these rows."""
        chain = Chain(labels=sorted(set(self.y.tolist())))
        prepared = chain.prepare_problem(self.X[rows, None, :], self.y[rows, None].tolist())
        return chain, prepared.problem

    def planes(self) -> Planes:
        """List all wrong classes of all rows."""
        X, K = with_ends(self.X), int(self.y.max()) + 1
        example, wrong = np.nonzero(np.arange(K) != self.y[:, None])
        place = np.arange(len(example))
        delta = np.zeros((len(example), K, X.shape[1]))
        delta[place, self.y[example]] = X[example]
        delta[place, wrong] -= X[example]
        return Planes(len(X), example, delta.reshape(len(example), -1), np.ones(len(example)))

    def accuracy(self, C: float, settings: Settings) -> tuple[float, float]:
        """Return the share of right answers over 3 folds: ours, and LIBLINEAR's."""
        right = np.zeros(2)
        for inside, outside in StratifiedKFold(3, shuffle=True, random_state=0).split(
            self.X, self.y
        ):
            chain, problem = self.chains(inside)
            result, _ = train(Task(problem, C), settings)
            ours = np.ravel(chain.predict(list(self.X[outside, None, :]), result.weights))
            svc, _, _ = liblinear(self.X[inside], self.y[inside], C, ITERATIONS[0])
            theirs = svc.predict(with_ends(self.X[outside]))
            right += [(answer == self.y[outside]).sum() for answer in (ours, theirs)]
        return float(right[0] / len(self.y)), float(right[1] / len(self.y))


def with_ends(X: np.ndarray) -> np.ndarray:
    """Return the rows with two constant columns, which are a chain's start and end weights."""
    return np.hstack([X, np.ones((len(X), 2))])


def liblinear(
    X: np.ndarray, y: np.ndarray, C: float, iterations: int
) -> tuple[LinearSVC, bool, float]:
    """Train LIBLINEAR: the model, whether it warned, processor time."""
    svc = LinearSVC(
        multi_class="crammer_singer",
        fit_intercept=False,
        C=C,
        max_iter=iterations,
        tol=1e-4 if iterations == ITERATIONS[0] else 1e-10,
        random_state=0,
    )
    begin = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        svc.fit(with_ends(X), y)
    warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return svc, warned, time.process_time() - begin


def class_weights(svc: LinearSVC) -> np.ndarray:
    """Return the weights [class][column]; of two classes scikit-learn keeps the difference only."""
    if len(svc.coef_) == 1:  # the two sum to zero, as all weights of this problem do
        return np.vstack([-svc.coef_ / 2, svc.coef_ / 2])
    return svc.coef_


def crammer_singer(W: np.ndarray, X: np.ndarray, y: np.ndarray, C: float) -> float:
    """Return ½‖W‖² + C Σ_i max_k [1 (k is not y_i) + w_k.x_i - w_y.x_i]."""
    scores = with_ends(X) @ W.T
    right = np.searchsorted(np.unique(y), y)
    margin = scores + 1.0 - np.eye(len(W))[right]
    margin -= scores[np.arange(len(y)), right][:, None]
    return 0.5 * float((W**2).sum()) + C * float(margin.max(axis=1).sum())


def chain_weights(chain: Chain, W: np.ndarray) -> np.ndarray:
    """Return weights of classes as those of a chain: no transitions, start and end at the end."""
    rows = np.zeros((chain.layout.n_rows, chain.n_labels))
    columns = np.asarray(chain.class_columns_)
    rows[: W.shape[1] - 2, columns] = W[:, :-2].T
    rows[chain.layout.start, columns], rows[chain.layout.end, columns] = W[:, -2], W[:, -1]
    return chain.pad(rows.ravel())


def rival(data: Measurements, C: float, dual: float, limit: float) -> dict[str, Any]:
    """Train LIBLINEAR as a user would, then for longer until its true gap is that of the goal."""
    row: dict[str, Any] = {}
    for iterations in ITERATIONS:
        svc, warned, seconds = liblinear(data.X, data.y, C, iterations)
        W = class_weights(svc)
        primal = crammer_singer(W, data.X, data.y, C)
        gap = (primal - dual) / primal
        if not row:
            row = {"warned": warned, "gap": gap, "primal": primal, "seconds": seconds, "W": W}
        row["to_goal"] = seconds if gap <= GOAL else None
        if gap <= GOAL or 10 * seconds > limit or not warned:
            break
    return row


def check_objective(chain: Chain, problem: Any, C: float, theirs: dict[str, Any]) -> None:
    """Make sure that LIBLINEAR's objective is ours, at its weights."""
    begun = solve(problem, make_solver("sdm"), C=C, dtype="float64", max_passes=1, warn=False)
    ours = begun.engine.primal_of(chain_weights(chain, theirs.pop("W")))
    if abs(ours / theirs["primal"] - 1) > 1e-6:
        raise AssertionError(f"the objectives differ: {ours} and {theirs['primal']}")


def measurements(name: str, settings: Settings) -> list[dict[str, Any]]:
    """Unscaled measurements at several C."""
    data, rows = Measurements(name), []
    planes = data.planes()
    for C in settings.values_of_C:
        chain, problem = data.chains()
        small = len(planes.loss) <= MOST_PLANES
        best = solve_planes(planes, C) if small else None
        row = measure(Task(problem, C), settings, best.primal if best else None)
        # Where nobody knows the optimum, LIBLINEAR is at most so far from it.
        dual, sign = (best.dual, "") if best else (row.get("dual", 0.0), "<= ")
        row["liblinear"] = theirs = rival(data, C, dual, settings.limit)
        check_objective(chain, problem, C, theirs)
        goal = f"{theirs['to_goal']:.2f} s" if theirs["to_goal"] is not None else "not reached"
        note = (
            f"LIBLINEAR {'warned' if theirs['warned'] else 'ended'} at {sign}"
            f"{100 * max(theirs['gap'], 0):.3g} %, {theirs['seconds']:.2f} s; to the goal {goal}; "
        )
        if C == 1 and "refused" not in row:
            row["accuracy"], theirs["accuracy"] = data.accuracy(C, settings)
            note += f"right {100 * row['accuracy']:.1f} and {100 * theirs['accuracy']:.1f} %; "
        rows.append(show(f"{name}, C = {C:g}", row, note) | {"C": C})
    return rows


# --- synthetic problems ---


def scale(settings: Settings) -> list[dict[str, Any]]:
    """Features of large scale, or large C, with labels of which one in five is random."""
    rows = []
    for size, C in ((1.0, 1e4), (1.0, 1e6), (1e3, 1.0), (1e5, 1.0), (1e3, 1e4)):
        for dtype in ("float32", "float64"):
            case = random_case(
                np.random.default_rng(1),
                n_labels=4,
                lengths=(1,) * 150,
                features="dense64",
                n_dense=8,
                scale=size,
                noise=0.2,
            )
            row = measure(Task(case.problem(), C, dtype=dtype), settings)
            rows.append(show(f"scale {size:g}, C = {C:g}, {dtype}", row))
            rows[-1] |= {"scale": size, "C": C, "dtype": dtype}
    return rows


def worst_of(name: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    """Print and return the worst of the rows of several seeds, and how many missed the gap."""
    missed = sum(not row.get("reached", False) for row in found)
    worst = max(found, key=lambda row: row.get("primal_over_optimum", row.get("gap", 0.0)))
    show(f"{name}, worst of {len(found)}", worst, f"{missed} missed; ")
    return worst | {"missed": missed, "seeds": len(found)}


def separable(settings: Settings) -> list[dict[str, Any]]:
    """Tiny sequences that can be separated, with a C that no multiplier reaches."""
    shape = {"lengths": (4, 3, 5, 4, 4), "features": "dense32", "n_dense": 12, "noise": 0.0}
    rows = []
    for C in (1e4, 1e5, 1e6):
        found = []
        for seed in range(SEEDS):
            case = random_case(np.random.default_rng(seed), **shape)
            found.append(measure(Task(case.problem(), C, seed=seed), settings))
        rows.append(worst_of(f"separable, C = {C:g}", found) | {"C": C})
    return rows


def tiny(seed: int, cost: np.ndarray | None = None) -> ChainCase:
    """Return three examples of three tokens and three labels, which are random."""
    case = random_case(np.random.default_rng(seed), lengths=(3,) * 3, features="dense64", n_dense=3)
    if cost is not None:
        case.arrays["cost"] = cost
        case.reference = ReferenceChain(3, case.reference.n_token_features, cost)
    return case


def against_optimum(
    name: str,
    cases: list[ChainCase],
    C: float,
    regularizer: Regularizer,
    settings: Settings,
) -> Iterator[dict[str, Any]]:
    """Every formulation that the oracle of margin rescaling does not serve."""
    outputs = [list_planes(case.reference, case.X, case.Y) for case in cases]
    for slack, rescale in OTHERS:
        found = []
        for case, listed in zip(cases, outputs, strict=True):
            planes = formulated(listed, slack, rescale)
            best = solve_planes(planes, C, slack=slack, link=regularizer.link)
            task = Task(case.problem(), C, slack, rescale, regularizer)
            found.append(measure(task, settings, best.primal))
        row = worst_of(f"{name}, {slack}, {rescale}", found)
        yield row | {"C": C, "slack": slack, "rescale": rescale}


def costs(settings: Settings) -> list[dict[str, Any]]:
    """Cost matrices, C = 30."""
    cases = [tiny(seed, COST) for seed in range(SEEDS)]
    return list(against_optimum("costs", cases, 30.0, L2(), settings))


def nets(settings: Settings) -> list[dict[str, Any]]:
    """Elastic nets, by the solver asked for and by that for sparse models."""
    net, rows = ElasticNet(0.2, 0.8), []
    cases = [tiny(seed) for seed in range(SEEDS)]
    for name in dict.fromkeys((settings.solver, "sap")):
        found = against_optimum(f"net, {name}", cases, 30.0, net, replace(settings, solver=name))
        rows += [row | {"solver": name} for row in found]
    return rows


# --- real data ---


def slack_rescaling(settings: Settings) -> list[dict[str, Any]]:
    """Chunking with slack rescaling, C = 0.1."""
    problem = Data(settings.data, "chunk").problem(2000)
    row = measure(Task(problem, 0.1, rescale="slack"), settings)
    if "refused" in row:
        return [show("slack rescaling, 2,000 sentences", row)]
    margin, _ = train(Task(problem, 0.1, gap=0.1), settings)
    ratio = row["seconds"] / row["exact_passes"] / exact_pass(margin.engine)
    note = f"its exact pass is {ratio:.1f} of margin rescaling"
    return [show("slack rescaling, 2,000 sentences", row, note) | {"exact_over_margin": ratio}]


def ocr(settings: Settings) -> list[dict[str, Any]]:
    """One fold of the OCR words under an elastic net, to 5 %."""
    letters = Letters(settings.data, 0)
    net = ElasticNet(0.7, 0.3)
    rows = []
    for name in dict.fromkeys((settings.solver, "sap")):
        task = Task(letters.problem, 1.0, regularizer=net, gap=0.05)
        row = measure(task, replace(settings, solver=name))
        rows.append(show(f"OCR, elastic net to 5 %, {name}", row) | {"solver": name})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/ ...")
    parser.add_argument("--solver", default="sdm", help="by the name that solver= takes")
    parser.add_argument("--limit", type=float, default=25, help="processor seconds of a run")
    parser.add_argument("--C", default=",".join(f"{C:g}" for C in VALUES_OF_C), help="measurements")
    parts: dict[str, Callable[[Settings], list[dict[str, Any]]]] = {
        **{name: lambda s, name=name: measurements(name, s) for name in MEASUREMENTS},
        "scale": scale,
        "separable": separable,
        "costs": costs,
        "slack": slack_rescaling,
        "nets": nets,
        "ocr": ocr,
    }
    parser.add_argument("--rows", default=",".join(parts), help="of %(default)s")
    args = parser.parse_args()
    wanted = args.rows.split(",")
    if not set(wanted) <= set(parts):
        parser.error(f"--rows takes some of {', '.join(parts)}; got {args.rows}")
    if args.solver not in SOLVERS:
        parser.error(f"--solver takes one of {', '.join(SOLVERS)}; got {args.solver}")
    values = tuple(float(C) for C in args.C.split(","))
    settings = Settings(args.data, args.solver, values, args.limit)
    print(
        f"solver {args.solver}, goal {100 * GOAL:g} %, at most {args.limit:g} processor seconds a "
        "run; chunking and parts of speech: sdm.py"
    )
    print(
        f"{'':38s} {'gap %':>9s} {'passes':>7s} {'sweeps':>9s} {'exact passes':>13s} {'CPU s':>8s}"
    )
    output = {name: parts[name](settings) for name in wanted}
    rows = [row for part in output.values() for row in part]
    reached = sum(row.get("reached", False) for row in rows)
    print(f"{reached} of {len(rows)} rows reached the gap asked for")
    print(json.dumps({"solver": args.solver, "rows": output}))


if __name__ == "__main__":
    main()
