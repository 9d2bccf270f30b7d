"""Few labels, much text and rules: the transductive structural SVM against its rivals.

    python benchmarks/transductive.py --data DIR --task citations|ads|ocr --labelled 5,20 --draws 3

Token accuracy on the test file in per cent, over random labelled subsets, the same for all methods:

- supervised: a structural SVM on the labelled sequences, first-order HMM features (word and
  transitions) as in the paper;
- codl: from it, constraint-driven self-training; self_training: the same without constraints;
- transductive: from that start, with constraints on dev + test + unlabelled sequences (``--begin
  supervised``: from the supervised model, as in the paper);
- supervised_i, codl_i, transductive_i: with constraint features, those of the paper: changes after
  punctuation. No method has word rules as features;
- constrained: the supervised model with soft constrained decoding.

"One segment" and "at least three words" only guide the imputation (``margins="labels"``). The
parameters below were chosen on the development files with three draws (``--dev`` prints figures of
that file, ``--tune`` a scan; neither looks at the test file). ``--task ocr`` compares section 4 of
the paper, labels as constraints, with the standard structural SVM over the ten folds. ``--curve``
adds learning curves of `suggest` against random choice, ``--speed`` times, the growth with the
number of unlabelled sequences and both schedules; ``--only`` leaves the comparison out. The
last line is one JSON object, of which ``transductive_picture.py`` draws the learning curve.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.estimators.self_training import driven_weights
from maxmargin.estimators.tagger import SequenceTagger
from maxmargin.estimators.transductive import prepare_transductive
from maxmargin.io.columns import read_columns
from maxmargin.solvers import make_solver, solve
from maxmargin.solvers.transductive import TransductiveSVM
from maxmargin.structures.chain import Chain
from maxmargin.structures.chain_constraints import ChainConstraints
from transductive_rules import AD_WORDS, ad_rules, citation_rules, frequent_words

Own = dict[str, float]

#: C1 of all trainings; penalty and mixing of constraint-driven learning, both the rival and
#: the start; the rest is of transductive training.
NAMES = ("C1", "penalty", "mixing", "C2", "mu", "outer", "label_margin")
#: Chosen on the development files by ``transductive_tune.py``, by number of labelled sequences,
#: without and with constraint features.
PARAMETERS: dict[str, dict[int, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "citations": {
        5: ((10, 4, 0.1, 1000, 2, 3, 0.3), (30, 2, 0.3, 300, 2, 1, 1)),
        20: ((100, 4, 0.1, 1000, 2, 3, 0.1), (100, 2, 0.3, 300, 2, 1, 1)),
        300: ((300, 2, 0.1, 3000, 2, 3, 0.1), (1000, 2, 0.1, 1000, 4, 3, 0.3)),
    },
    "ads": {
        10: ((30, 2, 0.1, 300, 4, 3, 0), (30, 2, 0.1, 300, 4, 3, 0)),
        25: ((100, 2, 0.1, 300, 4, 3, 0), (100, 2, 0.1, 300, 4, 3, 0)),
        100: ((300, 2, 0.1, 1000, 4, 3, 0), (300, 2, 0.1, 1000, 4, 3, 0)),
    },
}
CHOSEN: dict[str, dict[int, dict[str, Own]]] = {
    task: {
        n: {
            kind: dict(zip(NAMES, values, strict=True))
            for kind, values in zip(("plain", "features"), both, strict=True)
        }
        for n, both in table.items()
    }
    for task, table in PARAMETERS.items()
}
#: Weights of rules of each kind.
WEIGHTS = {
    "citations": {"words": 4.0, "changes": 1.0, "first": 4.0, "segment": 8.0},
    "ads": {"words": 4.0, "changes": 0.3, "length": 1.0},
}
#: Those of constraint-driven learning, where others are better for it.
CODL_WEIGHTS = {
    "citations": WEIGHTS["citations"],
    "ads": {"words": 4.0, "changes": 1.0, "length": 4.0},
}
FOLDER = {"citations": "citations_cora", "ads": "ads"}
#: In the place of an infinite penalty: no rule is violated if one labelling violates none.
HARD = 1e5
GAP, TOL, WIDTH = 0.1, 1e-3, 64


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
        self.labels = sorted({label for y in self.y for label in y})
        self.dev, self.dev_y = read(folder / "dev.tsv.gz")
        self.test, self.test_y = read(folder / "test.tsv.gz")
        table = read_columns(folder / "unlabelled.tsv.gz").rows()
        more = [[row[0] for row in x] for x in table[:unlabelled]]
        self.pool = self.dev + self.test + more
        if name == "citations":
            self.rules, self.codl_rules = map(citation_rules, (weights, CODL_WEIGHTS[name]))
            return
        known = " ".join(AD_WORDS.values()).split()
        words = frequent_words(self.X, self.y, known)
        self.rules, self.codl_rules = (ad_rules(w, words) for w in (weights, CODL_WEIGHTS[name]))

    def data(self, chosen: Any, features: bool) -> Any:
        """Encode a labelled subset and all unlabelled sequences."""
        rules = ChainConstraints(self.rules, features=features, width=WIDTH)
        chain = Chain(labels=self.labels, constraints=rules)
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
    own = data.chain.own_weights(found.weights)
    return own, data.chain.constraints.weights if data.features else None


def transductive(data: Any, start: Any, own: Own, **given: Any) -> Any:
    """Train the transductive SVM from some weights."""
    options: dict[str, Any] = {name: own[name] for name in ("C1", "C2", "mu", "label_margin")}
    options |= {"max_outer": int(own["outer"]), **given}
    svm = TransductiveSVM(
        gap=GAP,
        tol=TOL,
        width=WIDTH,
        margins="labels",
        gammas=False,
        random_state=0,
        **options,
    )
    return svm.train(data, *start)


def nearest(table: dict[int, Any], n: int) -> Any:
    """Return the parameters chosen for the number of labelled sequences that is closest to n."""
    return table[min(table, key=lambda k: abs(np.log(k / n)))]


def driven(task: Task, data: Any, start: Any, own: Own) -> tuple[Any, Any]:
    """Train by constraint-driven learning, or by plain self-training with a penalty of 0."""
    if task.codl_rules != task.rules:
        pool = [hmm(x) for x in task.pool]
        data = replace(data, bound=task.codl_rules.bind(pool, data.chain.labels_))
    options = {name: own[name] for name in ("penalty", "mixing")}
    return driven_weights(data, *start, C=1.0, random_state=0, beam=WIDTH, **options)


def one_draw(
    task: Task, n: int, draw: int, p: dict[str, Own], begin: str
) -> tuple[dict[str, tuple[float, float]], dict[str, float]]:
    """Return (dev, test) of all methods on one labelled subset, and seconds of processor time.

    Those of transductive training have the start by constraint-driven learning in them.
    """
    chosen = np.random.default_rng(draw).permutation(len(task.X))[:n]
    out: dict[str, tuple[float, float]] = {}
    seconds: dict[str, float] = {}

    def timed(name: str, run: Any, *arguments: Any, **options: Any) -> Any:
        before = time.process_time()
        result = run(*arguments, **options)
        seconds[name] = time.process_time() - before
        return result

    for features, end in ((False, ""), (True, "_i")):
        data, own = task.data(chosen, features), p["features" if features else "plain"]
        start = timed("supervised" + end, supervised, data, own["C1"])
        out["supervised" + end] = task.score(data, *start)
        codl = timed("codl" + end, driven, task, data, start, own)
        out["codl" + end] = task.score(data, *codl)
        name, options = "transductive" + end, {} if begin == "driven" else {"max_outer": 6}
        first = codl if begin == "driven" else start
        model = timed(name, transductive, data, first, own, **options)
        out[name] = task.score(data, model.chain_weights, model.group_weights)
        if begin == "driven":
            seconds[name] += seconds["codl" + end]
        if not features:
            alone = timed("self_training", driven, task, data, start, {**own, "penalty": 0.0})
            out["self_training"] = task.score(data, *alone)
            for how, weights in (("supervised", start), ("codl", codl)):
                out[f"{how}_soft"] = task.score(data, weights[0], penalty=own["penalty"])
            soft = task.score(data, model.chain_weights, penalty=own["penalty"])
            out["transductive_soft"] = soft
            out["supervised_hard"] = task.score(data, start[0], penalty=HARD)
    return out, seconds


def standard_error(values: Any) -> float:
    """Return the standard error of the mean."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def compare(task: Task, labelled: list[int], draws: int, on: int, begin: str) -> dict[str, Any]:
    """Return the figures of all numbers of labelled sequences; ``on``: 0 is dev, 1 is test."""
    figures: dict[str, Any] = {}
    for n in labelled:
        full = n >= len(task.X)
        runs = [
            one_draw(task, n, draw, nearest(CHOSEN[task.name], n), begin)
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
        for end in ("", "_i"):
            row["standard_error_over_codl" + end] = round(
                standard_error(score["transductive" + end] - score["codl" + end]), 2
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
            f"over codl {row['transductive'] - row['codl']:+.2f} "
            f"± {row['standard_error_over_codl']:.2f} and "
            f"{row['transductive_i'] - row['codl_i']:+.2f} "
            f"± {row['standard_error_over_codl_i']:.2f}; "
            f"seconds {row['seconds']}",
            flush=True,
        )
    return figures


def curve(
    task: Task, draws: int, on: int, *, steps: int = 5, step: int = 5, C: float = 5.0
) -> dict[str, Any]:
    """Return accuracies while labelled sequences are added, by `suggest` and at random.

    Both begin with the same random sequences; models are supervised, without decoding by rules.
    """
    X, y = (task.dev, task.dev_y) if on == 0 else (task.test, task.test_y)
    runs: dict[str, list[list[float]]] = {"suggest": [], "random": []}
    for draw, how in itertools.product(range(draws), runs):
        order = np.random.default_rng(draw).permutation(len(task.X)).tolist()
        chosen, left = order[:step], order[step:]
        scores = []
        for k in range(steps + 1):
            tagger = SequenceTagger(C=C, labels=task.labels, constraints=task.rules, random_state=0)
            tagger.fit([hmm(task.X[i]) for i in chosen], [task.y[i] for i in chosen])
            scores.append(100 * tagger.score([hmm(x) for x in X], y))
            if k == steps:
                break
            found = list(range(step))
            if how == "suggest":
                found = [one.index for one in tagger.suggest([hmm(task.X[i]) for i in left], step)]
            chosen = chosen + [left[i] for i in found]
            left = [x for i, x in enumerate(left) if i not in set(found)]
        runs[how].append(scores)
    gain = np.array(runs["suggest"]) - np.array(runs["random"])
    out: dict[str, Any] = {
        "labelled": [step * (k + 1) for k in range(steps + 1)],
        **{how: np.round(np.mean(scores, axis=0), 2).tolist() for how, scores in runs.items()},
        "gain": np.round(gain.mean(axis=0), 2).tolist(),
        "standard_error": [round(standard_error(column), 2) for column in gain.T],
        "mean_gain": round(float(gain[:, 1:].mean()), 2),
        "mean_gain_standard_error": round(standard_error(gain[:, 1:].mean(axis=1)), 2),
    }
    for key, value in out.items():
        print(f"curve, {key}: {value}", flush=True)
    return out


def paper_times(task: Task, name: str) -> dict[str, float]:
    """Return seconds and objectives of both schedules of the convex steps."""
    own, out = CHOSEN[name][20]["plain"], {}
    data = task.data(range(20), False)
    start = driven(task, data, supervised(data, own["C1"]), own)
    for schedule in ("engine", "paper"):
        begin = time.process_time()
        model = transductive(data, start, own, max_outer=4, schedule=schedule)
        out[f"{schedule}_seconds"] = round(time.process_time() - begin, 2)
        out[f"{schedule}_objective"] = round(model.objective, 3)
        out[f"{schedule}_outer"] = len(model.result.outer)
        out[f"{schedule}_gap"] = round(model.result.certificate.gap, 3)
    print(f"schedules: {out}", flush=True)
    return out


def speed(data: Path, name: str) -> dict[str, Any]:
    """Return times against supervised training, and the growth with the unlabelled sequences."""
    import resource

    task = Task(data, name, WEIGHTS[name], 1213 if name == "citations" else 500)
    n = 300 if name == "citations" else 100
    own = CHOSEN[name][n]["plain"]
    full = task.data(range(n), False)
    begin = time.process_time()
    supervised(full, own["C1"])
    base = time.process_time() - begin
    out: dict[str, Any] = {"supervised_seconds": round(base, 2)}
    out |= paper_times(task, name) if name == "citations" else {}
    small = 20 if name == "citations" else 25
    own = CHOSEN[name][small]["plain"]
    sizes = [300, 600, 1213] if name == "citations" else [1000, 2000, 4000, 8464]
    for m in sizes:
        task = Task(data, name, WEIGHTS[name], m)
        d = task.data(range(small), False)
        start = supervised(d, own["C1"])
        begin = time.process_time()
        transductive(d, driven(task, d, start, own), own)
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


def main(argv: list[str] | None = None) -> int:
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
    for flag in ("curve", "speed", "dev", "only"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--begin", choices=("driven", "supervised"), default="driven")
    options = parser.parse_args(argv)
    if options.task == "ocr":
        from transductive_ocr import compare_ocr

        words = [int(k) for k in options.labelled.split(",")] if options.labelled else [0]
        print(json.dumps({"ocr": compare_ocr(options.data, words, options.draws)}))
        return 0
    default = "5,20,300" if options.task == "citations" else "10,25,100"
    labelled = [int(k) for k in (options.labelled or default).split(",")]
    task = Task(options.data, options.task, WEIGHTS[options.task], options.unlabelled)
    on = 0 if options.dev else 1
    result: dict[str, Any] = {}
    if not options.only:
        result = compare(task, labelled, options.draws, on, options.begin)
    if options.curve:
        result["curve"] = curve(task, options.draws, on)
    if options.speed:
        result["speed"] = speed(options.data, options.task)
    print(json.dumps({options.task: result}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
