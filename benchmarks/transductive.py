"""Few labels, much text and rules: the transductive structural SVM against its rivals.

    python benchmarks/transductive.py --data DIR --task citations|ads|ocr --labelled 5,20 --draws 3

Token accuracy on the test file in per cent, over random labelled subsets, the same for all methods:

- supervised: a structural SVM on the labelled sequences, first-order HMM features (word and
  transitions) as in the paper;
- transductive: from it, with constraints on dev + test + unlabelled sequences;
- supervised_i, transductive_i: both with constraint features;
- codl: constraint-driven self-training; self_training: the same without constraints;
- constrained: the supervised model with soft constrained decoding.

The parameters below were chosen on the development files (``--tune`` prints the scan; it does not
look at the test file). ``--task ocr`` compares section 4 of the paper, labels as constraints, with
the standard structural SVM over the ten folds. ``--curve`` adds learning curves of `suggest`
against random choice, ``--speed`` times and the growth with the number of unlabelled sequences and
both schedules. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.constraints import Changes, ConstraintSet, First, OneSegment, Words
from maxmargin.estimators.self_training import constraint_driven
from maxmargin.estimators.tagger import SequenceTagger
from maxmargin.estimators.transductive import prepare_transductive
from maxmargin.io.columns import read_columns
from maxmargin.solvers import make_solver, solve
from maxmargin.solvers.transductive import TransductiveSVM
from maxmargin.structures.chain import Chain
from maxmargin.structures.chain_constraints import ChainConstraints

#: Chosen on the development files: by number of labelled sequences, C1 of the supervised training,
#: then C2 and mu; of CODL the penalty, the mixing and C; with constraint features C2 and mu.
CHOSEN: dict[str, dict[int, dict[str, float]]] = {
    "citations": {
        5: {"C1": 30, "C2": 10, "mu": 4, "C2_i": 30, "mu_i": 4},
        20: {"C1": 100, "C2": 30, "mu": 4, "C2_i": 30, "mu_i": 4},
        300: {"C1": 1000, "C2": 10, "mu": 1, "C2_i": 10, "mu_i": 1},
    },
    "ads": {
        10: {"C1": 30, "C2": 30, "mu": 4, "C2_i": 30, "mu_i": 4},
        25: {"C1": 100, "C2": 30, "mu": 4, "C2_i": 30, "mu_i": 4},
        100: {"C1": 300, "C2": 10, "mu": 1, "C2_i": 10, "mu_i": 1},
    },
}
CODL = {
    "citations": {"penalty": 2.0, "mixing": 0.5, "C": 0.1},
    "ads": {"penalty": 1.0, "mixing": 0.5, "C": 0.1},
}
#: Weights of rules of each kind.
WEIGHTS = {
    "citations": {"words": 4.0, "changes": 0.3, "first": 4.0, "segment": 0.0},
    "ads": {"words": 4.0, "changes": 0.1, "first": 1.0, "segment": 0.0},
}
FOLDER = {"citations": "citations_cora", "ads": "ads"}
GAP, TOL, OUTER, WIDTH = 0.1, 5e-3, 4, 64


def citation_rules(w: dict[str, float]) -> ConstraintSet:
    """Return the rules of Chang, Ratinov and Roth (2007) for references."""
    words = [
        (["pp", "pages"], "pages"),
        (['"', "``", "''"], "title"),
        (["note", "submitted", "appear"], "note"),
        (["CA", "Australia", "NY"], "location"),
        (["tech", "technical"], "tech"),
        (["proc", "journal", "proceedings", "ACM"], ["journal", "booktitle"]),
        (["ed", "editors"], "editor"),
    ]
    rules: list[Any] = [Words(a, b, weight=w["words"]) for a, b in words]
    rules.append(Words(pattern="(19|20)[0-9][0-9]", labels="date", weight=w["words"]))
    rules.append(First(["author", "editor"], weight=w["first"]))
    rules.append(Changes(after="punctuation", weight=w["changes"]))
    if w["segment"]:
        rules.append(OneSegment(weight=w["segment"]))
    return ConstraintSet(rules)


def ad_rules(w: dict[str, float]) -> ConstraintSet:
    """Return their rules for advertisements; line breaks are missing from this copy."""
    words = [
        ("laundry kitchen parking", "FEATURES"),
        ("sq ft bdrm", "SIZE"),
        ("$ *MONEY*", "RENT"),
        ("close near shopping", "NEIGHBORHOOD"),
        ("phone email *PHONE* *EMAIL*", "CONTACT"),
        ("immediately begin cheaper", "AVAILABLE"),
        ("roommates respectful drama", "ROOMATES"),
        ("smoking dogs cats", "RESTRICTIONS"),
        ("http image link", "PHOTOS"),
        ("address carlmont st cross", "ADDRESS"),
        ("utilities pays electricity", "UTILITIES"),
    ]
    rules: list[Any] = [Words(a.split(), b, weight=w["words"]) for a, b in words]
    rules.append(Changes(after="punctuation", weight=w["changes"]))
    return ConstraintSet(rules)


def read(path: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Return the words and the labels of a file."""
    X, y = read_columns(path).labelled(-1)
    return [[row[0] for row in x] for x in X.rows()], y.sequences()


def hmm(x: list[str]) -> list[list[str]]:
    """Return the features of the paper's baseline: the word, in lower case."""
    return [["w=" + word.lower()] for word in x]


class Task:
    """The files of a task, encoded once."""

    def __init__(self, data: Path, name: str, weights: dict[str, float], unlabelled: int) -> None:
        folder = data / FOLDER[name]
        self.name = name
        self.X, self.y = read(folder / "train.tsv.gz")
        self.dev, self.dev_y = read(folder / "dev.tsv.gz")
        self.test, self.test_y = read(folder / "test.tsv.gz")
        table = read_columns(folder / "unlabelled.tsv.gz").rows()
        more = [[row[0] for row in x] for x in table[:unlabelled]]
        self.pool = self.dev + self.test + more
        self.rules = (citation_rules if name == "citations" else ad_rules)(weights)

    def data(self, chosen: Any, features: bool) -> Any:
        """Encode a labelled subset and all unlabelled sequences."""
        labels = sorted({label for y in self.y for label in y})
        chain = Chain(
            labels=labels, constraints=ChainConstraints(self.rules, features=features, width=WIDTH)
        )
        X = [hmm(self.X[i]) for i in chosen]
        return prepare_transductive(
            chain, X, [self.y[i] for i in chosen], [hmm(x) for x in self.pool]
        )

    def score(
        self, data: Any, weights: Any, groups: Any = None, penalty: float = 0.0
    ) -> tuple[float, float]:
        """Return the token accuracy on dev and test, in per cent."""
        bound, chain = data.bound, data.chain
        problem = bound.problem(chain.encoded_problem(data.unlabelled), width=WIDTH)
        c = bound.coefficients("soft", penalty)
        if groups is not None and len(groups):
            c = c + np.append(groups, 0.0)[bound.groups]
        codes = bound.best(problem, weights, c, width=WIDTH).codes
        out, begin = [], 0
        for truth in (self.dev_y, self.test_y):
            flat = np.array(chain.known_codes(truth))
            out.append(100 * float(np.mean(codes[begin : begin + len(flat)] == flat)))
            begin += len(flat)
        return out[0], out[1]


def supervised(data: Any, C1: float) -> tuple[Any, Any]:
    """Train on the labelled sequences alone: weights of the chain, and of constraint features."""
    problem = data.labelled_problem(C1 / data.n_labelled, WIDTH)
    found = solve(problem, make_solver("sdm"), C=1.0, gap=0.01, random_state=0, warn=False)
    return data.chain.own_weights(found.weights), data.chain.constraints.weights


def transductive(
    data: Any, start: Any, C1: float, C2: float, mu: float, *, schedule: str = "engine"
) -> Any:
    """Train the transductive SVM from a supervised model."""
    svm = TransductiveSVM(
        C1=C1,
        C2=C2,
        mu=mu,
        gap=GAP,
        tol=TOL,
        max_outer=OUTER,
        width=WIDTH,
        gammas=False,
        random_state=0,
        schedule=schedule,
    )
    return svm.train(data, *start)


def nearest(table: dict[int, Any], n: int) -> Any:
    """Return the parameters chosen for the number of labelled sequences that is closest to n."""
    return table[min(table, key=lambda k: abs(np.log(k / n)))]


def one_draw(
    task: Task, n: int, draw: int, p: dict[str, float]
) -> tuple[dict[str, tuple[float, float]], dict[str, float]]:
    """Return (dev, test) of all methods on one labelled subset, and seconds of processor time."""
    chosen = np.random.default_rng(draw).permutation(len(task.X))[:n]
    out: dict[str, tuple[float, float]] = {}
    seconds: dict[str, float] = {}

    def timed(name: str, run: Any) -> Any:
        begin = time.process_time()
        result = run()
        seconds[name] = time.process_time() - begin
        return result

    data = task.data(chosen, False)
    start = timed("supervised", lambda: supervised(data, p["C1"]))
    out["supervised"] = task.score(data, start[0])
    codl = CODL[task.name]
    out["constrained"] = task.score(data, start[0], penalty=codl["penalty"])
    model = timed(
        "transductive", lambda: transductive(data, (start[0], None), p["C1"], p["C2"], p["mu"])
    )
    out["transductive"] = task.score(data, model.chain_weights)
    found = timed(
        "codl", lambda: constraint_driven(data, start[0], random_state=0, beam=WIDTH, **codl)
    )
    out["codl"] = task.score(data, found)
    found = timed(
        "self_training",
        lambda: constraint_driven(
            data, start[0], random_state=0, beam=WIDTH, **{**codl, "penalty": 0.0}
        ),
    )
    out["self_training"] = task.score(data, found)
    data = task.data(chosen, True)
    start = timed("supervised_i", lambda: supervised(data, p["C1"]))
    out["supervised_i"] = task.score(data, *start)
    model = timed(
        "transductive_i", lambda: transductive(data, start, p["C1"], p["C2_i"], p["mu_i"])
    )
    out["transductive_i"] = task.score(data, model.chain_weights, model.group_weights)
    return out, seconds


def standard_error(values: Any) -> float:
    """Return the standard error of the mean."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def compare(task: Task, labelled: list[int], draws: int, on: int) -> dict[str, Any]:
    """Return the figures of all numbers of labelled sequences; ``on``: 0 is dev, 1 is test."""
    figures: dict[str, Any] = {}
    for n in labelled:
        full = n >= len(task.X)
        runs = [
            one_draw(task, n, draw, nearest(CHOSEN[task.name], n))
            for draw in range(1 if full else draws)
        ]
        names = list(runs[0][0])
        score = {name: np.array([run[0][name][on] for run in runs]) for name in names}
        row: dict[str, Any] = {name: round(float(score[name].mean()), 2) for name in names}
        row["standard_error"] = round(
            standard_error(score["transductive"] - score["supervised"]), 2
        )
        row["standard_error_i"] = round(
            standard_error(score["transductive_i"] - score["supervised_i"]), 2
        )
        row["draws"] = len(runs)
        row["seconds"] = {
            k: round(float(np.mean([run[1][k] for run in runs])), 2) for k in runs[0][1]
        }
        figures[str(n)] = row
        print(
            f"{task.name}, {n} labelled: " + "  ".join(f"{k} {row[k]:.2f}" for k in names),
            flush=True,
        )
        print(
            f"  gain {row['transductive'] - row['supervised']:+.2f} ± {row['standard_error']:.2f}, "
            f"with constraint "
            f"features {row['transductive_i'] - row['supervised_i']:+.2f} "
            f"± {row['standard_error_i']:.2f}; "
            f"seconds {row['seconds']}",
            flush=True,
        )
    return figures


def tune(task: Task, labelled: list[int], draws: int) -> None:
    """Print the scan over C2 and mu on the development file."""
    for n, features in itertools.product(labelled, (False, True)):
        C1 = nearest(CHOSEN[task.name], n)["C1"]
        starts = []
        for draw in range(draws):
            data = task.data(np.random.default_rng(draw).permutation(len(task.X))[:n], features)
            starts.append((data, supervised(data, C1)))
        base = np.mean([task.score(d, w, g if features else None)[0] for d, (w, g) in starts])
        print(
            f"{n} labelled, C1={C1:g}, features={features}: supervised dev {base:.2f}", flush=True
        )
        for C2, mu in itertools.product((3, 10, 30, 100), (1, 4, 10)):
            found = []
            for d, (w, g) in starts:
                model = transductive(d, (w, g if features else None), C1, C2, mu)
                found.append(task.score(d, model.chain_weights, model.group_weights)[0])
            print(
                f"  C2={C2:g} mu={mu:g}: dev {np.mean(found):.2f} ({np.mean(found) - base:+.2f})",
                flush=True,
            )


def curve(task: Task, draws: int, steps: int = 4, step: int = 5) -> dict[str, list[float]]:
    """Return test accuracies while labelled sequences are added, by `suggest` and at random."""
    out: dict[str, list[float]] = {}
    for how in ("suggest", "random"):
        runs = []
        for draw in range(draws):
            rng = np.random.default_rng(draw)
            order = rng.permutation(len(task.X)).tolist()
            chosen, left = order[:step], order[step:]
            scores = []
            for _ in range(steps + 1):
                tagger = SequenceTagger(C=1.0, constraints=task.rules, random_state=0)
                tagger.fit([hmm(task.X[i]) for i in chosen], [task.y[i] for i in chosen])
                scores.append(100 * tagger.score([hmm(x) for x in task.test], task.test_y))
                if how == "suggest":
                    pool = [hmm(task.X[i]) for i in left]
                    found = [one.sequence for one in tagger.suggest(pool, step)]
                else:
                    found = list(range(step))
                chosen = chosen + [left[k] for k in found]
                left = [x for k, x in enumerate(left) if k not in set(found)]
            runs.append(scores)
        out[how] = np.round(np.mean(runs, axis=0), 2).tolist()
        print(f"labelled {step}, {2 * step}, ... by {how}: {out[how]}", flush=True)
    return out


def paper_times(task: Task, name: str) -> dict[str, float]:
    """Return seconds and objectives of both schedules of the convex steps."""
    p, out = CHOSEN[name][20], {}
    data = task.data(range(20), False)
    start = supervised(data, p["C1"])
    for schedule in ("engine", "paper"):
        begin = time.process_time()
        model = transductive(data, (start[0], None), p["C1"], p["C2"], p["mu"], schedule=schedule)
        out[f"{schedule}_seconds"] = round(time.process_time() - begin, 2)
        out[f"{schedule}_objective"] = round(model.objective, 3)
    print(f"schedules: {out}", flush=True)
    return out


def speed(data: Path, name: str) -> dict[str, Any]:
    """Return times against supervised training, and the growth with the unlabelled sequences."""
    import resource

    task = Task(data, name, WEIGHTS[name], 1213 if name == "citations" else 500)
    n = 300 if name == "citations" else 100
    p = CHOSEN[name][n]
    full = task.data(range(n), False)
    begin = time.process_time()
    supervised(full, p["C1"])
    base = time.process_time() - begin
    out: dict[str, Any] = {"supervised_seconds": round(base, 2)}
    out |= paper_times(task, name) if name == "citations" else {}
    small = 20 if name == "citations" else 25
    p = CHOSEN[name][small]
    sizes = [300, 600, 1213] if name == "citations" else [1000, 2000, 4000, 8464]
    for m in sizes:
        task = Task(data, name, WEIGHTS[name], m)
        d = task.data(range(small), False)
        start = supervised(d, p["C1"])
        begin = time.process_time()
        transductive(d, (start[0], None), p["C1"], p["C2"], p["mu"])
        seconds = time.process_time() - begin
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        out[str(d.n_unlabelled)] = {
            "seconds": round(seconds, 2),
            "ratio": round(seconds / base, 1),
            "peak_mb": round(rss),
        }
        print(
            f"{d.n_unlabelled} unlabelled: {seconds:.2f} s, {seconds / base:.1f} x supervised; "
            f"peak {rss:.0f} MB",
            flush=True,
        )
    return out


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--task", choices=("citations", "ads", "ocr"), default="citations")
    parser.add_argument(
        "--labelled", default=None, help="numbers between commas; of ocr: training words"
    )
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--unlabelled", type=int, default=1000)
    for flag in ("tune", "curve", "speed", "dev"):
        parser.add_argument(f"--{flag}", action="store_true")
    options = parser.parse_args()
    if options.task == "ocr":
        from transductive_ocr import compare_ocr

        labelled = [int(k) for k in options.labelled.split(",")] if options.labelled else [0]
        print(json.dumps({"ocr": compare_ocr(options.data, labelled, options.draws)}))
        return
    default = "5,20,300" if options.task == "citations" else "10,25,100"
    labelled = [int(k) for k in (options.labelled or default).split(",")]
    task = Task(options.data, options.task, WEIGHTS[options.task], options.unlabelled)
    if options.tune:
        tune(task, labelled, options.draws)
        return
    result: dict[str, Any] = compare(task, labelled, options.draws, 0 if options.dev else 1)
    if options.curve:
        result["curve"] = curve(task, options.draws)
    if options.speed:
        result["speed"] = speed(options.data, options.task)
    print(json.dumps({options.task: result}))


if __name__ == "__main__":
    main()
