"""MulticlassSVM beside LIBLINEAR's Crammer-Singer solver: the same objective, data and C.

Claims shown: on newsgroups (a bag of words) and on the chunks of CoNLL-2000, token by token
(211,727 tokens, 338,551 features, 22 classes), `MulticlassSVM` comes within 1 % of the optimum in
no more time than `LinearSVC(multi_class="crammer_singer")`; and an exact pass over data with 22,
100 and 1000 classes takes time that grows no faster than the classes.

    python benchmarks/classes.py --data ../shared/data

Both are trained without a bias. Times are CPU seconds of this process (one thread) around `fit`,
best of `--repeat` runs that take turns. The objective ½‖W‖² + C Σ hinge of either is computed by
the same few lines of NumPy from its weights. LIBLINEAR stops by a tolerance of its own, which says
nothing about the objective; so it is trained with several, and its time is that of the fastest run
that ends within 1 % of the best objective that anybody reached, which it cannot know in advance.
The default (`tol=1e-4` in scikit-learn) is shown beside it; that run is left out with --quick.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.svm import LinearSVC

from maxmargin import MulticlassSVM, _native
from maxmargin.features.bag_of_words import BagOfWords
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.io.columns import read_columns
from maxmargin.io.labelled_text import read_labelled_text
from maxmargin.structures import Chain

TOLERANCES = (1.0, 0.3, 0.1, 0.03)
DEFAULT_TOLERANCE = 1e-4
CLASSES = (22, 100, 1000)
QUICK = 300  # documents or sentences with --quick


class Data(NamedTuple):
    """Examples with a class each."""

    title: str
    X: Any
    y: np.ndarray


def newsgroups(folder: Path, limit: int | None = None) -> Data:
    """Return the training documents as bags of words."""
    texts, labels = read_labelled_text(folder / "newsgroups_taxonomy" / "train.txt.gz")
    step = 1 if limit is None else max(1, len(texts) // limit)
    X = BagOfWords(min_count=2).fit_transform(texts[::step])
    assert labels is not None
    return Data("newsgroups, tf-idf", X.astype(np.float64), np.array(labels[::step]))


def chunking(folder: Path, limit: int | None = None) -> Data:
    """Return the tokens of CoNLL-2000 with the features of the template of chunking."""
    table = read_columns(folder / "conll2000" / "train.tsv.gz")
    if limit is not None:
        from maxmargin.features.columns import ColumnTable

        table = ColumnTable.from_rows(table.rows()[:limit])
    train, labels = table.labelled(2)
    chain = Chain(encoder=TemplateEncoder(Template.load("chunking@1")))
    batch, codes = chain.learn(train, labels)
    assert batch.indices is not None
    assert batch.indptr is not None
    ones = np.ones(len(batch.indices))
    X = scipy.sparse.csr_array(
        (ones, batch.indices.astype(np.int32), batch.indptr.astype(np.int32)),
        (batch.n_tokens, batch.n_sparse),
    )
    return Data("CoNLL-2000 chunks, token by token", X, np.array(chain.labels_)[codes])


def many_classes(n_classes: int, n: int = 10_000, d: int = 2_000, per_row: int = 20) -> Data:
    """Return invented examples: a class prefers some features of its own."""
    draw = np.random.default_rng(0)
    y = draw.permutation(np.arange(n) % n_classes)
    own = draw.integers(0, d, (n_classes, per_row))
    columns = np.where(draw.random((n, per_row)) < 0.3, own[y], draw.integers(0, d, (n, per_row)))
    ends = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    X = scipy.sparse.csr_array(
        (np.ones(n * per_row), columns.ravel().astype(np.int32), ends), (n, d)
    )
    X.sum_duplicates()
    X.data[:] = 1.0
    return Data(f"{n_classes} classes", X, y)


def objective(W: Any, data: Data, classes: Any, C: float) -> float:
    """Return ½‖W‖² + C Σ_i max_c ([c ≠ y_i] + x_i·W_c - x_i·W_{y_i}), W being (K, d)."""
    W = np.asarray(W, dtype=np.float64)
    codes = np.searchsorted(classes, data.y)
    rows = np.arange(len(codes))
    total = 0.0
    for at in range(0, len(codes), 20_000):
        part, own = rows[: len(codes[at : at + 20_000])], codes[at : at + 20_000]
        scores = np.asarray(data.X[at : at + 20_000] @ W.T)
        truth = scores[part, own].copy()
        scores += 1.0
        scores[part, own] -= 1.0
        total += float((scores.max(axis=1) - truth).sum())
    return 0.5 * float((W**2).sum()) + C * total


def timed(make: Callable[[], Any], data: Data, C: float) -> tuple[float, float, Any]:
    """Return CPU seconds of a fit, its objective, and the model."""
    model = make()
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.X, data.y)
    seconds = time.process_time() - begin
    return seconds, objective(model.coef_, data, model.classes_, C), model


class Line(NamedTuple):
    """One training."""

    name: str
    seconds: float
    objective: float


def compare(data: Data, C: float, *, repeat: int = 3, default: bool = True) -> dict[str, Any]:
    """Train with both, print a table, and return the ratios."""
    makers: dict[str, Callable[[], Any]] = {
        "maxmargin": lambda: MulticlassSVM(C=C, fit_intercept=False, gap=0.01, random_state=0)
    }

    def peer(tolerance: float) -> Callable[[], Any]:
        return lambda: LinearSVC(
            C=C, multi_class="crammer_singer", fit_intercept=False, tol=tolerance, random_state=0
        )

    makers |= {f"LIBLINEAR tol={tol:g}": peer(tol) for tol in TOLERANCES}
    best: dict[str, Line] = {}
    for _ in range(repeat):
        for name, make in makers.items():
            seconds, value, _ = timed(make, data, C)
            if name not in best or seconds < best[name].seconds:
                best[name] = Line(name, seconds, value)
    if default:
        name = f"LIBLINEAR tol={DEFAULT_TOLERANCE:g}"
        best[name] = Line(name, *timed(peer(DEFAULT_TOLERANCE), data, C)[:2])
    lowest = min(line.objective for line in best.values())
    ours = best["maxmargin"]
    within = [b for b in best.values() if b is not ours and b.objective <= 1.01 * lowest]
    print(f"\n{data.title}, C = {C:g}: {data.X.shape[0]} x {data.X.shape[1]}, "
          f"{len(np.unique(data.y))} classes")
    for line in best.values():
        print(
            f"  {line.name:22s} {line.seconds:8.2f} s   objective {line.objective:12.4f}   "
            f"{100 * (line.objective / lowest - 1):+6.2f} %"
        )
    found: dict[str, Any] = {"objective": ours.objective / lowest}
    if within:
        first = min(within, key=lambda line: line.seconds)
        found["first"] = ours.seconds / first.seconds
        print(f"  time of maxmargin over LIBLINEAR's first within 1 % ({first.name}): "
              f"{found['first']:.2f}")
    if default:
        found["default"] = ours.seconds / best[f"LIBLINEAR tol={DEFAULT_TOLERANCE:g}"].seconds
        print(f"  time of maxmargin over LIBLINEAR's with its default tolerance: "
              f"{found['default']:.2f}")
    return found


def growth(
    counts: tuple[int, ...] = CLASSES, n: int = 10_000, repeat: int = 5
) -> dict[int, tuple[float, float]]:
    """Print how long passes take with so many classes; return CPU seconds.

    The first exact pass makes a step on nearly every example, however many classes there are, as
    nothing is learned yet; the pass at one w that follows calls the oracle and does little else.
    """
    from maxmargin.structures import Multiclass

    seconds: dict[int, tuple[float, float]] = {}
    print(f"\nthe first exact pass over {n} examples, 2000 features; a pass of oracle calls alone")
    for K in counts:
        data = many_classes(K, n)
        problem, _ = Multiclass().prepare_problem(data.X, data.y)
        order = np.random.default_rng(0).permutation(n).astype(np.uint32)
        exact, collect = [], []
        for _ in range(repeat):
            engine = _native.Engine(problem, 1.0, True)
            times = [time.process_time()]
            engine.exact_pass(order, _native.PassOptions())
            times.append(time.process_time())
            engine.collect_pass(1)
            times.append(time.process_time())
            exact.append(times[1] - times[0])
            collect.append(times[2] - times[1])
        seconds[K] = min(exact), min(collect)
        first = seconds[counts[0]]
        print(
            f"  {K:5d} classes {1e3 * seconds[K][0]:8.1f} ms and {1e3 * seconds[K][1]:8.1f} ms: "
            f"{seconds[K][0] / first[0]:.2f} and {seconds[K][1] / first[1]:.2f} times those of "
            f"{counts[0]}, with {K / counts[0]:.2f} times the classes"
        )
    return seconds


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--C", default="0.1,1", help="values of C")
    parser.add_argument("--repeat", type=int, default=3, help="runs, of which the best counts")
    help_quick = f"{QUICK} documents or sentences, no default tolerance: does all work?"
    parser.add_argument("--quick", action="store_true", help=help_quick)
    help_default = "leave out LIBLINEAR with its default tolerance, which takes minutes"
    parser.add_argument("--skip-default", action="store_true", help=help_default)
    args = parser.parse_args()
    limit, repeat = (QUICK, 1) if args.quick else (None, args.repeat)
    for load in (newsgroups, chunking):
        data = load(args.data, limit)
        for C in args.C.split(","):
            compare(data, float(C), repeat=repeat, default=not (args.quick or args.skip_default))
    growth(n=500 if args.quick else 10_000)


if __name__ == "__main__":
    main()
